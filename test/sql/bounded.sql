-- No answer to a model grows without limit. A plan of 2,000 steps with large contents, 200 tools and workflows: every function that
-- a reader may call, and those that write, answer in at most 40 kB, unless more was asked for. Functions that give data whole refuse
-- with SW007 past their limit.

\pset format unaligned
\pset tuples_only on
\set VERBOSITY terse
SET client_min_messages = warning;
SET jit = off;

-- A tenant of its own: the lists are those of the tenant.
CREATE ROLE regress_stepwise_bounded;
SELECT stepwise.grant_agent('regress_stepwise_bounded') IS NOT NULL, stepwise.add_member('regress_stepwise_bounded', 'bounded') IS NOT NULL;
CREATE TEMP TABLE size (what text, bytes int, answer jsonb);
CREATE TEMP TABLE given (plan uuid, root uuid, step uuid);
GRANT ALL ON size, given TO regress_stepwise_bounded;

BEGIN;
SELECT stepwise.enter_tenant('bounded');
SELECT count(stepwise.register_tool('tool_' || n, input_schema => jsonb_build_object('type', 'object', 'description', repeat('s', 3000)), description => repeat('d', 3000)))
FROM generate_series(100, 299) AS n;
COMMIT;

SET ROLE regress_stepwise_bounded;

-- An answer, kept with its size.
CREATE FUNCTION pg_temp.ask(call text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    EXECUTE 'SELECT to_jsonb(x) FROM ' || call || ' AS x' INTO answer;
    INSERT INTO size VALUES (call, octet_length(answer::text), answer);
    RETURN answer;
END $$;

-- The SQLSTATE of a call, and its hint.
CREATE FUNCTION pg_temp.refused(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    EXECUTE 'SELECT ' || call;
    RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN sqlstate || ' ' || hint;
END $$;

-- ---------- the plan ----------

-- Steps 1 to 1000 get large results, 1001 to 1100 fail, 1101 to 1300 are claimed; the others are pending, each with a long argument.
SELECT count(stepwise.define_workflow(jsonb_build_object('name', 'flow_' || n, 'description', repeat('w', 3000), 'steps', '[{}]'::jsonb,
    'inputs', jsonb_build_object('x', jsonb_build_object('type', 'string', 'required', false, 'description', repeat('i', 3000))))))
FROM generate_series(100, 299) AS n;
SELECT a -> 'stepCount', jsonb_array_length(a -> 'stepIds'), a #>> '{firstStep,instructions}' LIKE 'iii%(cut: 5000 bytes in all; get_step_context reads it)',
       length(a ->> 'goal')
FROM pg_temp.ask($$stepwise.create_plan('large', repeat('g', 50000),
    (SELECT jsonb_agg(jsonb_build_object('name', 's' || n, 'dependsOn', '[]'::jsonb, 'instructions', repeat('i', CASE n WHEN 1 THEN 5000 ELSE 150 END),
                                         'tool', 'tool_' || n % 200 + 100, 'arguments', jsonb_build_object('a', repeat('a', 150)))) FROM generate_series(1, 2000) AS n),
    inputs => jsonb_build_object('x', repeat('x', 100000)), on_failure => 'pause')$$) AS a;
INSERT INTO given SELECT id, root_id FROM stepwise.plan WHERE name = 'large';
SELECT plan FROM given \gset
CREATE FUNCTION pg_temp.step(n int) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM stepwise.step AS s, given AS g WHERE s.plan_id = g.plan AND s.step_order = n
$$;
UPDATE given SET step = pg_temp.step(1500);

SELECT count(stepwise.submit_step_result(s.id, to_jsonb(repeat(md5(s.name), 2200)), repeat('r', 3000), output_formatting_notes => repeat('n', 3000)))
FROM (SELECT * FROM stepwise.step AS x WHERE x.plan_id = :'plan' AND x.step_order <= 1000 ORDER BY x.step_order) AS s;
SELECT count(stepwise.fail_step(s.id, repeat('e', 3000))) FROM stepwise.step AS s WHERE s.plan_id = :'plan' AND s.step_order BETWEEN 1001 AND 1100;
SELECT count(stepwise.get_next_step(:'plan', repeat('w', 400) || n)) FROM generate_series(1, 200) AS n;
SELECT count(stepwise.store_artifact(:'plan', 'artifact ' || n, repeat('c', 20000))) FROM generate_series(1, 200) AS n;
SELECT stepwise.store_output(:'plan', repeat('o', 100000)) ->> 'size';
SELECT status, count(*) FROM stepwise.step WHERE plan_id = :'plan' GROUP BY status ORDER BY status;

-- ---------- functions that read ----------

-- Values for the arguments that have no default, of all functions or of one.
CREATE FUNCTION pg_temp.value(function text, argument text) RETURNS text LANGUAGE sql AS $$
    SELECT v.value FROM given AS g, LATERAL (VALUES
        ('plan_id', g.plan::text), ('step_id', g.step::text), ('at', 'infinity'), ('statuses', '{pending}'), ('on_failure', 'stop'),
        ('from_status', 'pending'), ('to_status', 'failed'), ('plan_transition_allowed.from_status', 'planning'), ('outcome', 'n/a'), ('status', 'executing'), ('completed_at', 'infinity'),
        ('query', 'large'), ('search_artifacts.query', 'artifact'), ('name', 'flow_100'), ('get_artifact.name', 'artifact 1'), ('id', g.plan::text), ('tenant', 'bounded'),
        ('call.function', 'list_plans'), ('inputs', '{}'),
        ('request', '{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'),
        -- 600 steps that depend on what is not there
        ('definition', (SELECT jsonb_build_object('name', 'wrong', 'steps', jsonb_agg(jsonb_build_object('name', 's' || n, 'dependsOn', ARRAY[repeat('x', 3000)])))::text
                        FROM generate_series(1, 600) AS n))) AS v (key, value)
    WHERE v.key IN (argument, function || '.' || argument) ORDER BY length(v.key) DESC LIMIT 1
$$;

-- A call with all its required arguments; what lacks a value is shown as an error.
CREATE FUNCTION pg_temp.call_of(routine oid) RETURNS text LANGUAGE sql AS $$
    SELECT format('stepwise.%I(%s)', p.proname, (
        SELECT string_agg(format('%I => %L', a.name, coalesce(pg_temp.value(p.proname, a.name), '<no value for ' || a.name || '>')), ', ')
        FROM unnest(p.proargnames) WITH ORDINALITY AS a (name, n) WHERE a.n <= p.pronargs - p.pronargdefaults))
    FROM pg_proc AS p WHERE p.oid = routine
$$;

-- These give data whole; workflow_response does with detail.
CREATE TEMP TABLE whole AS SELECT unnest('{execution,execution_as_of,task_variables,get_artifact,get_output,get_workflow}'::text[]) AS name;

RESET ROLE;
CREATE ROLE regress_stepwise_bounded_reader;
SELECT stepwise.grant_reader('regress_stepwise_bounded_reader') IS NOT NULL;
CREATE TEMP TABLE reading AS
SELECT p.proname::text AS name, p.oid FROM pg_proc AS p
WHERE p.pronamespace = 'stepwise'::regnamespace AND p.prokind = 'f' AND p.prorettype <> 'void'::regtype
  AND has_function_privilege('regress_stepwise_bounded_reader', p.oid, 'EXECUTE')
  -- these take stored rows of the log apart
  AND p.proname NOT IN ('audit_entries', 'audit_detail');
GRANT SELECT ON reading TO regress_stepwise_bounded;
SET ROLE regress_stepwise_bounded;

SELECT count(*) >= 15 FROM reading;
SELECT count(pg_temp.ask(pg_temp.call_of(r.oid))) = count(*) FROM reading AS r WHERE r.name NOT IN (SELECT w.name FROM whole AS w);
SELECT left(what, 100), bytes FROM size WHERE bytes > 40000;

-- past 64 MB
SELECT pg_temp.refused(format('stepwise.execution(%L)', :'plan'));
SELECT pg_temp.refused(format('stepwise.execution_as_of(%L, %L)', :'plan', 'infinity'));
SELECT pg_temp.refused(format('stepwise.task_variables(%L)', :'plan'));
SELECT pg_temp.refused(format('stepwise.workflow_response(%L, true)', :'plan'));
SELECT stepwise.execution(:'plan', 0) -> 'blocks';

-- ---------- lists have their count beside them ----------

SELECT a -> 'totalSteps', a -> 'completedCount', jsonb_array_length(a -> 'completedSteps'), a -> 'failedCount', jsonb_array_length(a -> 'failedSteps'),
       a -> 'pendingCount', jsonb_array_length(a -> 'pendingSteps'), a -> 'inProgressCount', jsonb_array_length(a -> 'inProgressSteps')
FROM stepwise.get_plan_status(:'plan', max => 20) AS a;
-- the last done, the next to come, and who holds a step since when
SELECT a #>> '{completedSteps,4,name}', a #>> '{pendingSteps,0,name}', a #>> '{inProgressSteps,0,name}', (a #>> '{inProgressSteps,0,worker}') LIKE 'www%',
       a #> '{inProgressSteps,0}' ? 'since', a #> '{inProgressSteps,0}' ? 'leaseExpiresAt'
FROM stepwise.get_plan_status(:'plan', max => 5) AS a;
SELECT jsonb_array_length(a -> 'pendingSteps') FROM stepwise.get_plan_status(:'plan', max => 500) AS a;
SELECT pg_temp.refused(format('stepwise.get_plan_status(%L, max => 0)', :'plan'));

-- Names on all pages, and the sizes of the pages.
CREATE FUNCTION pg_temp.pages(function text, list text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    page jsonb;
    last text;
    names text[] := '{}';
    largest int := 0;
BEGIN
    LOOP
        EXECUTE format('SELECT stepwise.%I(after => $1)', function) INTO page USING last;
        names := names || ARRAY(SELECT e ->> 'name' FROM jsonb_array_elements(page -> list) AS e);
        largest := greatest(largest, octet_length(page::text));
        last := page ->> 'next';
        EXIT WHEN last IS NULL;
    END LOOP;
    RETURN concat_ws(' ', cardinality(names), (SELECT count(DISTINCT n) FROM unnest(names) AS n), names[1], names[200], largest < 40000);
END $$;
SELECT pg_temp.pages('list_tools', 'tools'), stepwise.list_tools() -> 'toolCount';
SELECT pg_temp.pages('list_workflows', 'workflows'), stepwise.list_workflows() -> 'workflowCount';
-- what is cut names the call that reads it
SELECT t -> 'inputSchema' FROM jsonb_array_elements(stepwise.list_tools() -> 'tools') AS t WHERE t ->> 'name' = 'tool_110';
SELECT length(stepwise.list_tools(after => 'tool_109', max => 1) #>> '{tools,0,inputSchema,description}');
SELECT w -> 'inputs' FROM jsonb_array_elements(stepwise.list_workflows() -> 'workflows') AS w WHERE w ->> 'name' = 'flow_110';
SELECT length(stepwise.get_workflow('flow_110') #>> '{definition,inputs,x,description}');
SELECT stepwise.list_tools(after => 'state_read') #> '{tools,0,name}', stepwise.list_tools(after => 'state_write') -> 'next';

-- ---------- the context ----------

-- It fits for every max_bytes.
CREATE FUNCTION pg_temp.misfits(call text) RETURNS SETOF int LANGUAGE plpgsql AS $$
DECLARE
    max int;
    bytes int;
BEGIN
    FOREACH max IN ARRAY '{2000,2500,4000,9000,32000,150000}'::int[] LOOP
        EXECUTE format('SELECT octet_length((%s)::text)', replace(call, '<max>', max::text)) INTO bytes;
        IF bytes > max OR (max >= 32000 AND bytes < max / 2) THEN
            RETURN NEXT bytes;
        END IF;
    END LOOP;
END $$;
SELECT pg_temp.misfits(format('stepwise.get_plan_context(%L, max_bytes => <max>)', :'plan'));
SELECT jsonb_array_length(c -> 'steps'), c -> 'totalSteps', jsonb_array_length(c -> 'artifacts') > 5, c -> 'artifactCount', c -> 'openClaimCount',
       c #>> '{artifacts,0,name}' LIKE 'artifact %', c #> '{artifacts,0,size}', c -> 'nextCall' ? 'function', c ? 'finalOutput', c ? 'outputFormattingNotes'
FROM stepwise.get_plan_context(:'plan') AS c;
SELECT (c -> 'inputs') - 'call', c #> '{inputs,call,function}' FROM stepwise.get_plan_context(:'plan') AS c;
-- with room for it, the latest result is whole, and an older one is cut
SELECT s ->> 'name', s #> '{result,cut}' FROM stepwise.get_plan_context(:'plan', max_bytes => 300000) AS c, jsonb_array_elements(c -> 'steps') AS s
WHERE s ->> 'name' IN ('s900', 's1000');
SELECT pg_temp.refused(format('stepwise.get_plan_context(%L, max_bytes => 1999)', :'plan'));
SELECT pg_temp.refused(format('stepwise.get_step_context(%L, max_bytes => -1)', pg_temp.step(1)));
SELECT c #> '{step,result,cut}', c #> '{step,result,bytes}', left(c #>> '{step,result,summary}', 6), c #> '{step,result,call,function}'
FROM stepwise.get_step_context(pg_temp.step(1), max_bytes => 30000) AS c;
-- the call that is named reads it whole
SELECT length(stepwise.get_step_context((c ->> 'step_id')::uuid, (c ->> 'max_bytes')::int) #>> '{step,result}')
FROM (SELECT stepwise.get_step_context(pg_temp.step(1)) #> '{step,result,call,arguments}') AS x (c);

-- Texts that are longer as JSON, in every place; numbers of many digits.
SELECT stepwise.create_plan(repeat('ä', 190), repeat(E'\x02', 9000), (SELECT jsonb_agg(jsonb_build_object('name', 's' || n, 'instructions', repeat(E'\x03', 9000),
           'tool', repeat('ä', 200), 'arguments', '{"n": 1e9000}'::jsonb)) FROM generate_series(1, 60) AS n),
       inputs => '{"n": 1e100000}', design_rationale => repeat(E'\x04', 9000), output_formatting_notes => repeat(E'\x05', 9000), session_id => repeat(E'\x06', 400),
       outputs => '{"n": "${inputs.n}"}') ->> 'planId' AS odd \gset
SELECT count(stepwise.advance(s.id, '{"n": 1e5000}', repeat(E'\x07', 3000))) FROM (SELECT * FROM stepwise.step AS x WHERE x.plan_id = :'odd' AND x.step_order <= 30 ORDER BY x.step_order) AS s;
SELECT count(stepwise.get_next_step(:'odd', repeat(E'\x08', 490) || n)) FROM generate_series(1, 20) AS n;
SELECT stepwise.set_variables(:'odd', jsonb_build_object('n', repeat(E'\x0b', 9000))) #> '{variables,cut}';
SELECT pg_temp.misfits(format('stepwise.get_plan_context(%L, max_bytes => <max>)', :'odd'));
SELECT pg_temp.misfits(format('stepwise.get_step_context(%L, max_bytes => <max>)', id)) FROM stepwise.step WHERE plan_id = :'odd' AND step_order = 40;

-- ---------- functions that write ----------

-- a variable of 500 kB, then a small one
SELECT a #> '{variables,cut}', a #> '{variables,call}' = jsonb_build_object('function', 'task_variables', 'arguments', jsonb_build_object('plan_id', :'plan'))
FROM pg_temp.ask(format('stepwise.set_variables(%L, jsonb_build_object(''v'', repeat(''v'', 500000)))', :'plan')) AS a;
SELECT a -> 'stepCount', jsonb_array_length(a -> 'steps'), a #>> '{steps,25,name}'
FROM pg_temp.ask(format('stepwise.record_tool_result(%L, ''no such tool'', ''1'')', :'plan')) AS a;
SELECT a -> 'count', jsonb_array_length(a -> 'reclaimed') FROM pg_temp.ask(format('stepwise.reclaim_stalled(''0'', %L)', :'plan')) AS a;
SELECT pg_temp.ask(format('stepwise.modify_plan(%L, ''add_steps'', (SELECT jsonb_build_object(''steps'', jsonb_agg(''{"dependsOn": []}''::jsonb)) FROM generate_series(1, 300)))', :'plan')) -> 'stepCount';
SELECT pg_temp.ask(format('stepwise.retry_step(%L)', pg_temp.step(1050))) ->> 'stepStatus';
SELECT pg_temp.ask(format('stepwise.submit_step_result(%L, to_jsonb(repeat(''x'', 500000)))', pg_temp.step(1999))) ->> 'stepStatus';
SELECT pg_temp.ask(format('stepwise.cancel_plan(%L, repeat(''c'', 100000))', :'plan')) ->> 'planStatus';
SELECT pg_temp.ask(format('stepwise.get_next_step(%L)', :'plan')) ->> 'status';
SELECT length(pg_temp.ask(format('stepwise.workflow_response(%L)', :'plan')) ->> 'error');

-- of many faults, the first 50 and their count
SELECT a -> 'errorCount', jsonb_array_length(a -> 'errors') FROM size, LATERAL (SELECT answer) AS x (a) WHERE what LIKE 'stepwise.validate_definition(%';
DO $$
DECLARE
    detail text;
BEGIN
    PERFORM stepwise.create_plan('wrong', 'g', (SELECT jsonb_agg(jsonb_build_object('dependsOn', ARRAY[repeat('x', 3000)])) FROM generate_series(1, 600)));
EXCEPTION WHEN sqlstate 'SW005' THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RAISE WARNING '%: % of them, in less than 20 kB: %', substring(sqlerrm FROM '\(and.*'), jsonb_array_length(detail::jsonb), octet_length(detail) < 20000;
END $$;

-- a step is handed out whole up to 64 kB; get_step_context reads what is larger
SELECT stepwise.create_plan('heavy', 'g', jsonb_build_array(jsonb_build_object('instructions', repeat('i', 50000)),
    jsonb_build_object('instructions', repeat('i', 50000), 'arguments', jsonb_build_object('a', repeat('a', 100000))))) ->> 'planId' AS heavy \gset
SELECT length(stepwise.get_next_step(:'heavy') ->> 'instructions');
SELECT stepwise.get_next_step(:'heavy') AS claim \gset
SELECT octet_length(a::text) < 64000, length(a ->> 'instructions') < 5000, a #> '{arguments,cut}',
       length(c #>> '{arguments,a}'), length(c ->> 'instructions')
FROM (SELECT :'claim'::jsonb) AS x (a), stepwise.get_step_context((a ->> 'stepId')::uuid, 400000) AS c;

-- conditions that cannot be decided: the first ones, and their count; the same again says the same
SELECT stepwise.create_plan('undecided', 'g', '[{"name": "a"}, {"name": "b"}]', (SELECT jsonb_agg(jsonb_build_object('afterStepOrder', 1, 'ifTrueAction', 'continue',
    'conditionExpression', CASE n WHEN 200 THEN 'true' ELSE format('nothing.%s > %s', repeat('n', 900), n) END)) FROM generate_series(1, 200) AS n)) ->> 'planId' AS undecided \gset
SELECT id AS a FROM stepwise.step WHERE plan_id = :'undecided' AND name = 'a' \gset
SELECT pg_temp.ask(format('stepwise.submit_step_result(%L, ''{}'')', :'a')) AS submitted \gset
SELECT octet_length(:'submitted') < 20000, jsonb_array_length(:'submitted'::jsonb #> '{branch,undecided}'), :'submitted'::jsonb #> '{branch,undecidedCount}', :'submitted'::jsonb #> '{branch,action}';
SELECT stepwise.submit_step_result(:'a', '{}') - 'duplicate' = :'submitted'::jsonb;

-- a deep tree of long names, in which much is claimed or waits
SELECT count(stepwise.define_workflow(jsonb_build_object('name', 'deep' || n, 'steps', CASE n
    WHEN 30 THEN (SELECT jsonb_agg(jsonb_build_object('name', rpad('leaf' || i || '_', 63, 'x'), 'dependsOn', '[]'::jsonb)
                                   || CASE WHEN i > 60 THEN jsonb_build_object('prompt', repeat(E'\x01', 3000)) ELSE '{}' END) FROM generate_series(1, 120) AS i)
    ELSE jsonb_build_array(jsonb_build_object('name', rpad('level' || n || '_', 63, 'x'), 'workflow', 'deep' || n + 1)) END)))
FROM (SELECT generate_series(30, 1, -1)) AS x (n);
SELECT stepwise.start_workflow('deep1') ->> 'planId' AS deep \gset
SELECT count(stepwise.get_next_step(:'deep', repeat(E'\x01', 300) || n)) FROM generate_series(1, 25) AS n;
CREATE FUNCTION pg_temp.ask_all(plan uuid) RETURNS bigint LANGUAGE sql AS $$
    SELECT count(pg_temp.ask(format('stepwise.%I(%L)', f, plan))) FROM unnest('{get_next_step,why,handoff,run,get_plan_status,workflow_response}'::text[]) AS f
$$;
SELECT pg_temp.ask_all(:'deep');
SELECT count(stepwise.get_next_step(:'deep', repeat(E'\x01', 300) || n)) FROM generate_series(26, 61) AS n;
SELECT pg_temp.ask_all(:'deep');
SELECT jsonb_array_length(a -> 'claimed') FROM stepwise.run(:'deep') AS a;
SELECT count(pg_temp.ask('stepwise.list_checkpoints()'));

-- a step after many that others hold, and many that failed
SELECT stepwise.create_plan('held', 'g', (SELECT jsonb_agg(jsonb_build_object('name', rpad('s' || n || '_', 63, 'x'), 'instructions', repeat(E'\x01', 3000))) FROM generate_series(1, 150) AS n)) ->> 'planId' AS held \gset
SELECT count(stepwise.get_next_step(:'held', repeat(E'\x01', 300) || n)) FROM generate_series(1, 140) AS n;
SELECT count(stepwise.fail_step(s.id, 'no', worker => s.worker)) FROM stepwise.step AS s WHERE s.plan_id = :'held' AND s.step_order BETWEEN 50 AND 110;
SELECT octet_length(a::text) < 40000, jsonb_array_length(a -> 'openBefore'), a -> 'inProgressCount', jsonb_array_length(a -> 'failedBefore'), a -> 'failedCount' FROM stepwise.get_next_step(:'held', 'me') AS a;

-- the end of a plan with many failures and notes, each of them long
SELECT stepwise.create_plan('failures', 'g', (SELECT jsonb_agg(jsonb_build_object('name', rpad('s' || n || '_', 63, 'x'))) FROM generate_series(1, 100) AS n),
    outputs => jsonb_build_object('o', repeat('o', 15000)), on_failure => 'continue', output_formatting_notes => repeat(E'\x01', 3000)) ->> 'planId' AS failures \gset
SELECT count(CASE WHEN s.step_order % 2 = 0 THEN stepwise.fail_step(s.id, repeat(E'\x01', 2000))
                  ELSE stepwise.submit_step_result(s.id, '1', outcome => 'failure', output_formatting_notes => repeat(E'\x01', 2000)) END)
FROM (SELECT * FROM stepwise.step AS x WHERE x.plan_id = :'failures' ORDER BY x.step_order) AS s;
SELECT pg_temp.ask_all(:'failures');
SELECT a ->> 'status', jsonb_array_length(a -> 'failedSteps') > 20, a -> 'failedCount', jsonb_array_length(a -> 'stepFormattingNotes') > 10, a -> 'stepFormattingNoteCount', length(a #>> '{outputs,o}')
FROM stepwise.get_next_step(:'failures') AS a;

SELECT left(what, 100), bytes FROM size WHERE bytes > 40000;

RESET ROLE;
DROP OWNED BY regress_stepwise_bounded, regress_stepwise_bounded_reader;
SELECT stepwise.remove_member('regress_stepwise_bounded', 'bounded') IS NOT NULL;
DROP ROLE regress_stepwise_bounded, regress_stepwise_bounded_reader;
