-- Compare the tables of doc/functions.md with the catalog, with two source files, and with the answers of the functions. The test
-- fails after a function is added, an argument is renamed or a key of an answer is removed, until the page is changed too.

\set page `cat doc/functions.md`
\set errcodes `find src -name errcodes.h -exec cat {} +`
\set pause `find src -name pause.c -exec cat {} +`

BEGIN;
SELECT * FROM no_plan();

-- ---------- the page ----------

-- Its lines, each with the headings above it.
CREATE TEMP TABLE line AS
WITH numbered AS (
    SELECT t.n::int AS n, t.line FROM regexp_split_to_table(:'page', '\n') WITH ORDINALITY AS t (line, n)),
headed AS (
    SELECT n.n, n.line, count(*) FILTER (WHERE n.line ~ '^#{1,2} ') OVER (ORDER BY n.n) AS section,
           count(*) FILTER (WHERE n.line ~ '^#{1,3} ') OVER (ORDER BY n.n) AS part
    FROM numbered AS n)
SELECT h.n, h.line,
       first_value(h.line) OVER (PARTITION BY h.section ORDER BY h.n) AS section,
       first_value(h.line) OVER (PARTITION BY h.part ORDER BY h.n) AS part
FROM headed AS h;

-- The rows of its tables, without the lines of headers and rules: their first cell has code in it.
CREATE TEMP TABLE cell AS
SELECT l.n, substring(l.section FROM '^#+ (.*)') AS section, substring(l.part FROM '^#+ (.*)') AS part,
       string_to_array(trim(BOTH '|' FROM l.line), ' | ') AS cells
FROM line AS l WHERE l.line ~ '^\| `';

CREATE FUNCTION pg_temp.code(cell text) RETURNS SETOF text LANGUAGE sql AS
$$ SELECT m[1] FROM regexp_matches(cell, '`([^`]+)`', 'g') AS m $$;
CREATE FUNCTION pg_temp.word(cell text) RETURNS text LANGUAGE sql AS
$$ SELECT substring(cell FROM '`([^`]+)`') $$;

SELECT cmp_ok((SELECT count(*) FROM cell), '>', 200::bigint, 'the page has its tables');

-- ---------- functions ----------

CREATE FUNCTION pg_temp.short(text) RETURNS text LANGUAGE sql AS $$
    SELECT replace(replace(replace($1, 'stepwise.', ''), 'integer', 'int'), 'timestamp with time zone', 'timestamptz')
$$;

-- A routine as the page spells it: short names of types, and defaults without their casts.
CREATE FUNCTION pg_temp.spelled(routine oid) RETURNS text LANGUAGE sql AS $$
    SELECT CASE p.prokind WHEN 'p' THEN 'CALL ' ELSE '' END || p.proname || '('
        || regexp_replace(regexp_replace(regexp_replace(s.arguments, '\mIN ', '', 'g'), '::[a-z ]+(?=,|$)', '', 'g'), ' DEFAULT ', ' = ', 'g')
        || ')' || CASE p.prokind WHEN 'p' THEN '' ELSE ' → ' || s.result END
    FROM pg_proc AS p,
         (SELECT pg_temp.short(pg_get_function_arguments(routine)), pg_temp.short(pg_get_function_result(routine))) AS s (arguments, result)
    WHERE p.oid = routine
$$;

-- Those that only other parts of the extension call have a description that says so; triggers nobody can call.
CREATE TEMP TABLE public_routine AS
SELECT p.oid FROM pg_proc AS p
WHERE p.pronamespace = 'stepwise'::regnamespace AND p.prorettype <> 'trigger'::regtype
  AND coalesce(obj_description(p.oid, 'pg_proc'), '') NOT LIKE 'internal:%';

SELECT bag_eq(
    $$ SELECT pg_temp.word(cells[1]) FROM cell WHERE section = 'Functions' AND cells[1] LIKE '%(%)%' $$,
    $$ SELECT pg_temp.spelled(oid) FROM public_routine $$,
    'functions: name, arguments, defaults, result');

-- ---------- tables, views, settings, error codes ----------

SELECT bag_eq(
    $$ SELECT c.part, x.name FROM cell AS c, pg_temp.code(c.cells[1]) AS x (name) WHERE c.section = 'Tables and views' $$,
    $$ SELECT r.relname::text, a.attname::text
       FROM pg_class AS r JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
       WHERE r.relnamespace = 'stepwise'::regnamespace AND r.relkind NOT IN ('i', 'I') $$,
    'tables and views: columns');

-- A value as pg_settings shows it, whatever unit it is written in.
CREATE FUNCTION pg_temp.as_setting(setting text, value text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before text := current_setting(setting);
    shown text;
BEGIN
    IF value IS NULL THEN
        RETURN NULL;
    END IF;
    PERFORM set_config(setting, value, true);
    shown := (SELECT s.setting FROM pg_settings AS s WHERE s.name = $1);
    PERFORM set_config(setting, before, true);
    RETURN shown;
END $$;

-- the library defines them when it is loaded
SELECT stepwise.uuid7() \g /dev/null

SELECT bag_eq(
    $$ SELECT s.name, pg_temp.as_setting(s.name, pg_temp.word(c.cells[2])) AS boot_val, pg_temp.word(c.cells[3]) AS unit,
              pg_temp.as_setting(s.name, pg_temp.word(c.cells[4])) AS min_val,
              pg_temp.as_setting(s.name, pg_temp.word(c.cells[5])) AS max_val, pg_temp.word(c.cells[6]) AS context
       FROM cell AS c, pg_temp.word(c.cells[1]) AS s (name) WHERE c.section = 'Settings' $$,
    $$ SELECT name, boot_val, unit, min_val, max_val, context FROM pg_settings WHERE name LIKE 'stepwise.%' $$,
    'settings: default, unit, range, context');

-- up to PostgreSQL 15, the library puts them into a sorted array
SELECT is_empty('SELECT name FROM pg_settings WHERE current_setting(name, true) IS NULL', 'all settings are found by their names beside ours');
SELECT cmp_ok((SELECT count(*) FROM pg_settings WHERE name < 'stepwise' OR name > 'stepwisf'), '>', 300::bigint, 'none was lost');

CREATE TEMP TABLE source AS SELECT :'errcodes'::text AS errcodes, :'pause'::text AS pause;

SELECT bag_eq(
    $$ SELECT pg_temp.word(cells[1]) AS code, pg_temp.word(cells[2]) AS name FROM cell WHERE section = 'Error codes' $$,
    $$ SELECT 'SW0' || m[2] || m[3], lower(m[1])
       FROM source, regexp_matches(errcodes, '#define\s+ERRCODE_(\w+)\s+SW_ERRCODE\(''(.)'',\s*''(.)''\)', 'g') AS m $$,
    'error codes and their names');

SELECT bag_eq(
    $$ SELECT m[1] AS code, m[2] AS name FROM regexp_matches(stepwise.help('errors'), '^(SW\d+) +(\w+)', 'gn') AS m $$,
    $$ SELECT 'SW0' || m[2] || m[3], lower(m[1])
       FROM source, regexp_matches(errcodes, '#define\s+ERRCODE_(\w+)\s+SW_ERRCODE\(''(.)'',\s*''(.)''\)', 'g') AS m $$,
    'error codes and their names in the help');

-- ---------- states and pause reasons ----------

SELECT bag_eq(
    $$ SELECT f.name AS from_status, t.name AS to_status FROM cell AS c, pg_temp.code(c.cells[1]) AS f (name), pg_temp.code(c.cells[2]) AS t (name)
       WHERE c.section = 'States' $$,
    $$ SELECT f::text AS from_status, t::text AS to_status
       FROM unnest(enum_range(NULL::stepwise.step_status)) AS f, unnest(enum_range(NULL::stepwise.step_status)) AS t
       WHERE stepwise.step_transition_allowed(f, t)
       UNION ALL
       SELECT f::text, t::text
       FROM unnest(enum_range(NULL::stepwise.plan_status)) AS f, unnest(enum_range(NULL::stepwise.plan_status)) AS t
       WHERE stepwise.plan_transition_allowed(f, t) $$,
    'transitions of steps and plans');

-- Of the words with a capital in pause.c, those that the page does not list as keys are the types.
SELECT bag_eq(
    $$ SELECT pg_temp.word(c.cells[1]) FROM cell AS c WHERE c.section = 'Pause reasons' $$,
    $$ SELECT DISTINCT m[1] FROM source, regexp_matches(pause, '"([a-z]+[A-Z][A-Za-z]*)"', 'g') AS m
       EXCEPT SELECT x.key FROM cell AS c, pg_temp.code(c.cells[2]) AS x (key) WHERE c.section = 'Pause reasons' $$,
    'types of pause reasons');

-- ---------- keys of answers ----------

CREATE TEMP TABLE answer (label text, value jsonb);
CREATE FUNCTION pg_temp.note(label text, value jsonb) RETURNS jsonb LANGUAGE sql AS
$$ INSERT INTO answer VALUES (label, value) RETURNING value $$;

CREATE FUNCTION public.functions_echo(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';

DO $$
DECLARE
    plan uuid;
    other uuid;
    step uuid;
    j jsonb;
BEGIN
    PERFORM pg_temp.note('define_workflow', stepwise.define_workflow('{"name": "w", "steps": [{"name": "a", "instructions": "do"}]}'));
    PERFORM pg_temp.note('validate_definition', stepwise.validate_definition('{}'));
    j := pg_temp.note('list_workflows', stepwise.list_workflows());
    PERFORM pg_temp.note('list_workflows: workflows[]', j -> 'workflows' -> 0);
    PERFORM pg_temp.note('get_workflow', stepwise.get_workflow('w'));
    j := pg_temp.note('start_workflow', stepwise.start_workflow('w'));
    other := j ->> 'planId';
    j := pg_temp.note('create_plan', stepwise.create_plan('n', 'g', '[{"name": "a", "instructions": "do"}, {"name": "b", "prompt": "so?"},
        {"name": "c", "tool": "t"}, {"name": "d", "instructions": "do"}, {"name": "e", "instructions": "do"}]'));
    PERFORM pg_temp.note('create_plan: firstStep', j -> 'firstStep');
    plan := j ->> 'planId';

    j := pg_temp.note('get_next_step: step_ready', stepwise.get_next_step(plan, worker => 'w') - 'instructions');
    step := j ->> 'stepId';
    PERFORM pg_temp.note('get_plan_context: openClaims[]', stepwise.get_plan_context(plan) -> 'openClaims' -> 0);
    PERFORM pg_temp.note('heartbeat', stepwise.heartbeat(step, 1));
    PERFORM pg_temp.note('release_step', stepwise.release_step(step));
    PERFORM pg_temp.note('fail_step', stepwise.fail_step(step, 'no'));
    PERFORM pg_temp.note('retry_step', stepwise.retry_step(step));
    PERFORM stepwise.get_next_step(plan);
    j := pg_temp.note('request_user_review', stepwise.request_user_review(step, 'look', attempt => 2));
    PERFORM pg_temp.note('list_checkpoints', x), pg_temp.note('list_checkpoints: checkpoints[]', x -> 'checkpoints' -> 0)
    FROM stepwise.list_checkpoints() AS x;
    PERFORM pg_temp.note('submit_user_decision', stepwise.submit_user_decision((j ->> 'checkpointId')::uuid, 'modify', 'more') - 'message');
    j := pg_temp.note('get_plan_status', stepwise.get_plan_status(plan));
    PERFORM pg_temp.note('get_plan_status: currentStep', j -> 'currentStep');
    PERFORM pg_temp.note('get_plan_status: inProgressSteps[]', j -> 'inProgressSteps' -> 0);
    PERFORM pg_temp.note('get_plan_status: pendingSteps[]', j -> 'pendingSteps' -> 0);
    PERFORM pg_temp.note('submit_step_result', stepwise.submit_step_result(step, '{}', attempt => 2));
    PERFORM pg_temp.note('get_plan_status: completedSteps[]', stepwise.get_plan_status(plan) -> 'completedSteps' -> 0);
    j := pg_temp.note('get_next_step: awaiting_review', stepwise.get_next_step(plan));
    PERFORM pg_temp.note('workflow_response: paused', stepwise.workflow_response(plan));
    PERFORM pg_temp.note('get_plan_context: checkpoints[]', stepwise.get_plan_context(plan) -> 'checkpoints' -> 0);
    PERFORM pg_temp.note('resume', stepwise.resume((j ->> 'checkpointId')::uuid, '"yes"'));
    PERFORM pg_temp.note('workflow_response: running', stepwise.workflow_response(plan));
    PERFORM pg_temp.note('run: steps[]', stepwise.run(plan) -> 'steps' -> 0);
    PERFORM pg_temp.note('why', stepwise.why(plan));
    PERFORM pg_temp.note('record_tool_result', stepwise.record_tool_result(plan, 't', '{}') - '{message,next_call}'::text[]);
    PERFORM pg_temp.note('record_tool_result: no step', stepwise.record_tool_result(plan, 'another', '{}') - '{message,next_call}'::text[]);
    j := pg_temp.note('modify_plan: add_steps', stepwise.modify_plan(plan, 'add_steps',
        '{"steps": [{"name": "f", "instructions": "do"}, {"name": "g", "instructions": "do"}]}'));
    PERFORM pg_temp.note('modify_plan: remove_step', stepwise.modify_plan(plan, 'remove_step', jsonb_build_object('stepId', j -> 'stepIds' -> 1)));
    PERFORM pg_temp.note('modify_plan: update_step_instructions', stepwise.modify_plan(plan, 'update_step_instructions',
        jsonb_build_object('stepId', j -> 'stepIds' -> 0, 'instructions', 'do more')));
    PERFORM pg_temp.note('modify_plan: fail_step', stepwise.modify_plan(plan, 'fail_step',
        jsonb_build_object('stepId', j -> 'stepIds' -> 0, 'reason', 'no')));
    PERFORM stepwise.retry_step((j -> 'stepIds' ->> 0)::uuid);
    PERFORM pg_temp.note('modify_plan: set_outputs', stepwise.modify_plan(plan, 'set_outputs', '{"outputs": {}}'));
    PERFORM pg_temp.note('modify_plan: update_step', stepwise.modify_plan(plan, 'update_step',
        jsonb_build_object('stepId', j -> 'stepIds' -> 0, 'instructions', 'Other')));
    PERFORM pg_temp.note('modify_plan: reorder_steps', stepwise.modify_plan(plan, 'reorder_steps',
        (SELECT jsonb_build_object('stepIds', jsonb_agg(s.id ORDER BY s.step_order)) FROM stepwise.step AS s WHERE s.plan_id = plan)));

    j := pg_temp.note('get_plan_context', stepwise.get_plan_context(plan));
    PERFORM pg_temp.note('get_plan_context: steps[]', j -> 'steps' -> 0);
    j := pg_temp.note('get_step_context', stepwise.get_step_context(step) - 'feedback');
    PERFORM pg_temp.note('get_step_context: plan', j -> 'plan');
    j := pg_temp.note('list_active_plans', stepwise.list_active_plans());
    PERFORM pg_temp.note('list_active_plans: plans[]', j -> 'plans' -> 0);
    j := pg_temp.note('list_plans', stepwise.list_plans());
    PERFORM pg_temp.note('list_plans: plans[]', j -> 'plans' -> 0);
    j := pg_temp.note('find_plans', stepwise.find_plans((j -> 'plans' -> 0 ->> 'name') || ' words'));
    PERFORM pg_temp.note('find_plans: plans[]', j -> 'plans' -> 0);
    j := pg_temp.note('execution', stepwise.execution(plan));
    PERFORM pg_temp.note('execution: metadata', j -> 'metadata');
    PERFORM pg_temp.note('execution', j -> 'blocks' -> 'a');
    PERFORM pg_temp.note('execution: metadata', j -> 'blocks' -> 'a' -> 'metadata');
    j := pg_temp.note('execution_as_of', stepwise.execution_as_of(plan, clock_timestamp()));
    PERFORM pg_temp.note('execution_as_of: metadata', j -> 'metadata');
    PERFORM pg_temp.note('fork_plan', stepwise.fork_plan(plan, 'c'));
    PERFORM pg_temp.note('set_variables', stepwise.set_variables(plan, '{"a": 1}'));

    PERFORM pg_temp.note('store_artifact', stepwise.store_artifact(plan, 'notes', 'words'));
    PERFORM pg_temp.note('get_artifact', stepwise.get_artifact(plan, 'notes'));
    PERFORM pg_temp.note('get_plan_context: artifacts[]', stepwise.get_plan_context(plan) -> 'artifacts' -> 0);
    PERFORM pg_temp.note('store_output', stepwise.store_output(plan, 'words'));
    PERFORM pg_temp.note('get_output', stepwise.get_output(plan));
    j := pg_temp.note('search_artifacts', stepwise.search_artifacts('words'));
    PERFORM pg_temp.note('search_artifacts: results[]', j -> 'results' -> 0);
    PERFORM pg_temp.note('log_skill_execution', stepwise.log_skill_execution('skill', 'started'));
    PERFORM pg_temp.note('verify_audit', stepwise.verify_audit(plan));
    PERFORM pg_temp.note('verify_audit: of a tenant', stepwise.verify_audit(NULL));
    PERFORM pg_temp.note('audit_head', stepwise.audit_head(plan));
    PERFORM pg_temp.note('audit_head: of a tenant', stepwise.audit_head(NULL));

    step := stepwise.get_next_step(plan) ->> 'stepId';
    j := pg_temp.note('advance', stepwise.advance(step, '{}'));
    step := j -> 'next' ->> 'stepId';
    PERFORM pg_temp.note('skip_step', stepwise.skip_step(step));
    step := stepwise.get_next_step(plan) ->> 'stepId';
    j := pg_temp.note('get_next_step: no_pending_steps', stepwise.get_next_step(plan));
    PERFORM pg_temp.note('get_next_step: waitingFor[]', j -> 'waitingFor' -> 0);
    j := pg_temp.note('reclaim_stalled', stepwise.reclaim_stalled('0'));
    PERFORM pg_temp.note('reclaim_stalled: reclaimed[]', j -> 'reclaimed' -> 0);
    PERFORM stepwise.get_next_step(plan);
    PERFORM stepwise.submit_step_result(step, '{}', attempt => 2);
    PERFORM pg_temp.note('get_next_step: plan_complete', stepwise.get_next_step(plan));
    PERFORM pg_temp.note('workflow_response: success', stepwise.workflow_response(plan));
    PERFORM pg_temp.note('run', stepwise.run(plan));

    PERFORM stepwise.get_next_step(other);
    PERFORM pg_temp.note('get_plan_status: stalledSteps[]', stepwise.get_plan_status(other, '0') -> 'stalledSteps' -> 0);
    PERFORM pg_temp.note('cancel_plan', stepwise.cancel_plan(other));
    PERFORM pg_temp.note('get_next_step: plan_cancelled', stepwise.get_next_step(other));
    PERFORM pg_temp.note('workflow_response: failure', stepwise.workflow_response(other));
    PERFORM pg_temp.note('drop_workflow', stepwise.drop_workflow('w'));
    FOR j IN SELECT stepwise.create_plan('n', 'g', '[{"name": "a", "instructions": "do"}]', on_failure => x) FROM unnest('{fail,pause}'::text[]) AS x
    LOOP
        PERFORM stepwise.fail_step((j -> 'stepIds' ->> 0)::uuid, 'no');
        PERFORM pg_temp.note('get_next_step: ' || (x ->> 'status'), x - 'error')
        FROM stepwise.get_next_step((j ->> 'planId')::uuid) AS x;
        PERFORM pg_temp.note('get_plan_status: failedSteps[]', stepwise.get_plan_status((j ->> 'planId')::uuid) -> 'failedSteps' -> 0);
    END LOOP;

    j := stepwise.create_plan('n', 'g', '[{"name": "a", "instructions": "do"}]', on_failure => 'continue');
    PERFORM stepwise.fail_step((j -> 'stepIds' ->> 0)::uuid, 'no');
    PERFORM pg_temp.note('get_next_step: failedSteps[]', stepwise.get_next_step((j ->> 'planId')::uuid) -> 'failedSteps' -> 0);

    PERFORM pg_temp.note('register_tool', stepwise.register_tool('echo', 'functions_echo(jsonb)'));
    j := pg_temp.note('list_tools', stepwise.list_tools());
    PERFORM pg_temp.note('list_tools: tools[]', j -> 'tools' -> 0);
    PERFORM pg_temp.note('drop_tool', stepwise.drop_tool('echo'));
    PERFORM pg_temp.note('register_resource', stepwise.register_resource('x:*', 'functions_echo(jsonb)'));
    PERFORM pg_temp.note('drop_resource', stepwise.drop_resource('x:*'));
    PERFORM pg_temp.note('add_member', stepwise.add_member(current_user::regrole, 't'));
    PERFORM pg_temp.note('remove_member', stepwise.remove_member(current_user::regrole, 't'));
    PERFORM pg_temp.note('grant_reader', stepwise.grant_reader(current_user::regrole));
    PERFORM pg_temp.note('grant_agent', stepwise.grant_agent(current_user::regrole));
END $$;

CREATE FUNCTION pg_temp.keys(value jsonb) RETURNS text LANGUAGE sql AS
$$ SELECT string_agg(k, ' ' ORDER BY k COLLATE "C") FROM jsonb_object_keys(value) AS k $$;

-- A row of the page may tell of several answers that have the same keys.
SELECT set_eq(
    $$ SELECT l.label, k.keys
       FROM cell AS c, pg_temp.code(c.cells[1]) AS l (label),
            LATERAL (SELECT string_agg(x, ' ' ORDER BY x COLLATE "C") FROM pg_temp.code(c.cells[2]) AS x) AS k (keys)
       WHERE c.section = 'Keys of the answers' $$,
    $$ SELECT label, pg_temp.keys(value) FROM answer $$,
    'keys of answers');

-- Every function that answers jsonb has its keys on the page, but for those whose keys are the caller's or another function's.
SELECT set_eq(
    $$ SELECT DISTINCT split_part(label, ':', 1) FROM answer $$,
    $$ SELECT p.proname::text FROM public_routine AS r JOIN pg_proc AS p USING (oid)
       WHERE p.prorettype = 'jsonb'::regtype AND p.proname NOT IN ('call', 'mcp', 'task_variables', 'state_read', 'state_write', 'state_merge', 'audit_detail') $$,
    'functions of which the keys are compared');

SELECT * FROM finish();
ROLLBACK;
