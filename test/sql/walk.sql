-- A random walk. Random plans with nesting, branches, conditions, prompts and reviews, some in strict order or with a separate reviewer, get random calls
-- by several roles, including plain SQL and invalid calls.
-- Every error is of class SW, the tables stay consistent, the chains are valid, and every plan can still be brought to its end. What
-- the functions tell agrees with what they do: the calls that why names, the alternatives too, change something, or why says to wait; handoff,
-- get_plan_context, get_next_step and run name the same call; the pause reason of a plan is that of its first blocking step, and no ready step is
-- passed over. All that holds for the owner, for an agent without the right to decide, and for a person who has it. The hint of an error names no call
-- that is refused to who got it, or changes nothing, and a reader is told to leave the plan to others.
-- The seed is fixed: each run makes the same calls, whatever the clock and the ids are. So every choice among rows sorts them by id first; the ids of
-- one session are in the order in which they were made. "make walk SEEDS=..." takes other walks.

\set ECHO none
SET client_min_messages = warning;
SET jit = off;
\if :{?seed} \else \set seed 42 \endif
\if :{?plans} \else \set plans 100 \endif
\if :{?checks} \else \set checks 0.05 \endif
CREATE SCHEMA walk;
SET search_path = walk, public;

-- The roles of the walk: one that may not decide, one that may, a judge, who has no part in anything, a reader, and a stranger of another tenant. Their
-- names have the number of the database, since roles belong to the cluster.
CREATE FUNCTION role(part text) RETURNS text STABLE LANGUAGE sql AS $$
    SELECT format('walk_%s_%s', part, oid) FROM pg_database WHERE datname = current_database() AND part IS NOT NULL
$$;
SELECT format('CREATE ROLE %I', role(part)) FROM unnest('{agent,person,judge,reader,stranger}'::text[]) AS part \gexec
SELECT CASE part WHEN 'reader' THEN stepwise.grant_reader(role(part)::regrole) ELSE stepwise.grant_agent(role(part)::regrole, decide => part <> 'agent') END IS NOT NULL,
       stepwise.add_member(role(part)::regrole, CASE part WHEN 'stranger' THEN 'walk elsewhere' ELSE 'default' END) IS NOT NULL
FROM unnest('{agent,person,judge,reader,stranger}'::text[]) AS part \g /dev/null
SELECT format('GRANT USAGE ON SCHEMA walk TO %I', role(part)) FROM unnest('{agent,person,judge,reader,stranger}'::text[]) AS part \gexec

CREATE TABLE made (id int GENERATED ALWAYS AS IDENTITY, root uuid, part text, call text, answer text);
CREATE TABLE trouble (what text, root uuid, detail text);
CREATE TABLE blocked (step_id uuid, plan_id uuid, reason jsonb);

CREATE FUNCTION pick(VARIADIC words text[]) RETURNS text LANGUAGE sql AS $$
    SELECT words[1 + floor(random() * cardinality(words))::int]
$$;
CREATE FUNCTION upto(n int) RETURNS int LANGUAGE sql AS $$ SELECT 1 + floor(random() * n)::int $$;

-- ---------- random definitions ----------

CREATE FUNCTION random_parents(i int) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_agg(jsonb_build_object('step', parent) || CASE WHEN random() < 0.25 THEN '{"when": "ended"}' ELSE jsonb_build_object('required', random() < 0.6) END)
    FROM (SELECT DISTINCT 's' || upto(i - 1) AS parent FROM generate_series(1, upto(2)) ORDER BY parent OFFSET 0) AS p
$$;

CREATE FUNCTION random_step(i int, depends boolean, level int) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    step jsonb := jsonb_build_object('name', 's' || i);
    kind float := random();
BEGIN
    IF depends AND i > 1 AND random() < 0.7 THEN
        step := step || jsonb_build_object('dependsOn', random_parents(i));
    END IF;
    IF kind >= 0.1 AND random() < 0.15 THEN
        step := step || jsonb_build_object('review', jsonb_build_object('when', pick('before', 'after')));
    END IF;
    IF kind < 0.1 THEN
        step := step || jsonb_build_object('prompt', CASE WHEN depends OR i = 1 OR random() < 0.7 THEN 'Well, ${inputs.x}?' ELSE format('Well, ${steps.s%s.outputs.n}?', upto(i - 1)) END);
    ELSIF kind < 0.4 AND level > 0 THEN
        step := step || jsonb_build_object('workflow', format('walk%s_%s', level - 1, upto(3)));
        -- its inputs may not fit
        step := step || CASE WHEN random() < 0.1 THEN '{"arguments": {"x": "s"}}' ELSE '{}' END::jsonb;
    ELSIF kind < 0.6 THEN
        step := step || jsonb_build_object('tool', pick('client', 'fine', 'fine', 'broken', 'narrow'), 'arguments', '{"x": "${inputs.x}"}'::jsonb);
    ELSIF kind < 0.7 AND NOT depends AND i > 1 THEN
        step := step || jsonb_build_object('arguments', jsonb_build_object('y', format('${steps.s%s.outputs.n}', upto(i - 1))));
        -- the review may have nothing to show
        IF step ? 'review' AND random() < 0.5 THEN
            step := jsonb_set(step, '{review,summary}', to_jsonb(format('Is ${steps.s%s.outputs.n} enough?', upto(i - 1))));
        END IF;
    ELSIF kind < 0.75 THEN
        step := step || jsonb_build_object('resources', jsonb_build_array(pick('walk://fine', 'walk://fine', 'walk://broken', 'other://page')));
    END IF;
    IF random() < 0.2 THEN
        step := step || jsonb_build_object('condition', pick('${inputs.x} > 0', '${inputs.x} < 0', '${inputs.x} == "s"', 'true', 'false'));
    ELSIF random() < 0.25 AND NOT depends AND i > 1 THEN
        step := step || jsonb_build_object('condition', format(pick('${steps.s%s.succeeded}', '${steps.s%s.failed}', 'not ${steps.s%s.skipped}',
                                                                    '${steps.s%s.outputs.n} > 1', '${steps.s%s.status} == "completed"'), upto(i - 1)));
    END IF;
    RETURN step || CASE WHEN random() < 0.1 THEN jsonb_build_object('maxAttempts', upto(2)) ELSE '{}' END::jsonb;
END $$;

-- The attempt of a step in progress, which a call about a fenced claim must say.
CREATE FUNCTION attempt_of(step_id uuid) RETURNS int LANGUAGE sql AS $$
    SELECT s.attempt FROM stepwise.step AS s WHERE s.id = step_id AND s.status = 'in_progress'
$$;

-- Let a step of a sequence read one that is nested in a step before it.
CREATE FUNCTION read_below(steps jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    holder int := (SELECT min(i) FROM generate_series(0, jsonb_array_length(steps) - 2) AS i WHERE steps -> i ? 'workflow');
    reader int;
BEGIN
    IF holder IS NULL OR steps::text LIKE '%dependsOn%' OR random() < 0.3 THEN
        RETURN steps;
    END IF;
    reader := holder + upto(jsonb_array_length(steps) - 1 - holder);
    RETURN jsonb_set(steps, ARRAY[reader::text, 'arguments'], jsonb_build_object(
        CASE WHEN steps -> reader ? 'workflow' THEN 'x' ELSE 'z' END, format('${steps.s%s.steps.s%s.outputs.n}', holder + 1, upto(2))));
END $$;

CREATE FUNCTION random_branch(i int, n int, depends boolean) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    after int := upto(n);
    action text := pick('continue', 'skip_to', 'add_steps', 'add_steps', 'request_review', 'request_review', CASE WHEN random() < 0.3 THEN 'fail' ELSE 'continue' END);
BEGIN
    IF after = n AND action = 'skip_to' THEN
        action := 'continue';
    END IF;
    RETURN jsonb_strip_nulls(jsonb_build_object('afterStepOrder', after, 'ifTrueAction', action,
        'conditionExpression', pick('true', 'confidence < 0.5', 'result.n > 1', 'outcome == "failure"'),
        'actionParams', CASE action
            WHEN 'skip_to' THEN jsonb_build_object('stepOrder', after + upto(n - after))
            WHEN 'add_steps' THEN jsonb_build_object('steps', jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('name', 'added' || i,
                'dependsOn', CASE WHEN depends AND random() < 0.8 THEN jsonb_build_array('s' || after) END))))
            WHEN 'request_review' THEN '{"summary": "Look"}' END));
END $$;

CREATE FUNCTION random_definition(name text, level int) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    n int := upto(6);
    depends boolean := n > 1 AND random() < 0.5;
    steps jsonb := (SELECT jsonb_agg(random_step(i, depends, level) ORDER BY i) FROM generate_series(1, n) AS i);
BEGIN
    depends := steps::text LIKE '%dependsOn%';
    steps := read_below(steps);
    -- some are mostly for a run
    IF random() < 0.3 THEN
        steps := (SELECT jsonb_agg(CASE WHEN random() < 0.8 AND NOT s ?| '{prompt,workflow,tool}' THEN s || '{"tool": "fine"}' ELSE s END ORDER BY place)
                  FROM jsonb_array_elements(steps) WITH ORDINALITY AS x (s, place));
    END IF;
    RETURN CASE WHEN NOT depends AND random() < 0.25 THEN '{"strictOrder": true}' ELSE '{}' END::jsonb
        || CASE WHEN random() < 0.2 THEN '{"separateReviewer": true}' ELSE '{}' END::jsonb || jsonb_build_object('name', name, 'steps', steps, 'onFailure', pick('continue', 'stop', 'stop', 'pause', 'fail'),
        'branchingConditions', (SELECT coalesce(jsonb_agg(random_branch(i, n, depends)), '[]') FROM generate_series(2, upto(4)) AS i),
        'inputs', '{"x": {"type": "integer", "default": 1}}'::jsonb, 'outputs', '{"n": "${steps.s1.outputs.n}"}'::jsonb);
END $$;

-- ---------- random calls ----------

-- Call as one of the roles, or as the owner; an error undoes the change of the role too.
CREATE FUNCTION called(call text, part text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    PERFORM set_config('role', coalesce(role(part), 'none'), true);
    EXECUTE 'SELECT to_jsonb(' || call || ')' INTO answer;
    PERFORM set_config('role', 'none', true);
    RETURN answer;
END $$;

-- The calls that a hint names, with something in the place of what is left open.
CREATE FUNCTION hinted(hint text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT replace(replace(replace(replace(replace(m[1], ', tool, result', ', ''client'', ''{}'''), ', result)', ', ''{}'')'), ', decision)', ', ''skip'')'), ', response)', ', ''1'')'),
                   ', from_step)', ', ''s1'')')
    FROM regexp_matches(hint, '(stepwise\.\w+\((?:[^()'']|''[^'']*'')*\))', 'g') AS m
    -- of a step that is not there, the plan is not known
    WHERE m[1] <> 'stepwise.get_plan_context(plan_id)'
$$;
-- No call that a hint names is refused to who got it, and each that moves a step moves one. What the reader fills in may not fit (SW005, and SW002
-- for the name of a step), and a hint does not tell the attempt of a claim (SW012).
CREATE FUNCTION check_hint(root uuid, hint text, part text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    call text;
    w record;
    said text;
BEGIN
    FOR call IN SELECT hinted(hint) LOOP
        w := would(root, call, part);
        said := w.answer #>> '{}';
        IF said ~ '^[0-9A-Z]{5} ' AND said !~ '^SW0(05|12)' AND NOT (said LIKE 'SW002%' AND call ~ 'fork_plan|get_step_context') THEN
            RETURN NEXT format('the hint names %s: %s', call, said);
        ELSIF w.change IS NOT TRUE AND said !~ '^SW' AND call ~ '^stepwise[.](submit|advance|release|retry|skip|fail|resume|modify|cancel|record)' THEN
            RETURN NEXT format('the hint names %s, which changes nothing: %s', call, said);
        ELSIF w.change IS NOT TRUE AND call LIKE 'stepwise.get_next_step%' AND w.answer ->> 'status' LIKE 'plan%' THEN
            RETURN NEXT format('the hint names %s, but the plan has ended', call);
        END IF;
    END LOOP;
END $$;

-- The hint that a role would get for a call; nothing is changed.
CREATE FUNCTION hint_of(call text, part text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    PERFORM called(call, part);
    RAISE EXCEPTION USING ERRCODE = 'WALK1';
EXCEPTION
    WHEN SQLSTATE 'WALK1' THEN
        RETURN NULL;
    WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
        -- the hint of 42501 is for the owner
        RETURN CASE WHEN sqlstate LIKE 'SW%' THEN hint END;
END $$;
-- Call, note it, and take an error of class SW for an answer.
CREATE FUNCTION try(root uuid, call text, part text = NULL) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
    hint text;
BEGIN
    answer := called(call, part);
    INSERT INTO made (root, part, call, answer) VALUES (root, part, call, answer);
    RETURN answer;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    INSERT INTO made (root, part, call, answer) VALUES (root, part, call, sqlstate || ' ' || sqlerrm);
    INSERT INTO trouble SELECT 'hint', root, concat_ws(' ', part || ':', call || ':', problem) FROM check_hint(root, hint, part) AS problem
    -- the guard of plain SQL looks at the row only
    WHERE call NOT LIKE 'walk.%';
    IF sqlstate NOT LIKE 'SW%' THEN
        INSERT INTO trouble VALUES ('error', root, call || ': ' || sqlstate || ' ' || sqlerrm);
    END IF;
    RETURN NULL;
END $$;

-- The plans of a tree, by the indexes that there are.
CREATE FUNCTION tree(root uuid) RETURNS SETOF stepwise.plan STABLE LANGUAGE sql AS $$
    SELECT p.* FROM stepwise.plan AS p WHERE p.tenant = 'default' AND p.id = root
    UNION ALL SELECT p.* FROM stepwise.plan AS p WHERE p.tenant = 'default' AND p.root_id = root AND p.parent_step_id IS NOT NULL
$$;
-- Some step of the tree, mostly one of a state in a plan that is open.
CREATE FUNCTION some_step(root uuid, state text) RETURNS uuid LANGUAGE sql AS $$
    SELECT x.id FROM (SELECT s.id, s.status::text = state AND p.completed_at IS NULL AS fits
                      FROM tree(root) AS p JOIN stepwise.step AS s ON s.tenant = p.tenant AND s.plan_id = p.id ORDER BY s.id OFFSET 0) AS x
    ORDER BY random() < 0.85 AND x.fits DESC, random() LIMIT 1
$$;
CREATE FUNCTION some_plan(root uuid) RETURNS uuid LANGUAGE sql AS $$
    SELECT x.id FROM (SELECT p.id, p.completed_at IS NULL AS open FROM tree(root) AS p ORDER BY p.id OFFSET 0) AS x
    ORDER BY random() < 0.5 AND x.id = root DESC, random() < 0.8 AND x.open DESC, random() LIMIT 1
$$;
CREATE FUNCTION some_checkpoint(root uuid) RETURNS uuid LANGUAGE sql AS $$
    SELECT x.id FROM (SELECT k.id FROM stepwise.checkpoint AS k WHERE k.root_id = root ORDER BY k.id OFFSET 0) AS x ORDER BY random() LIMIT 1
$$;
CREATE FUNCTION move_by_hand(step_id uuid, status text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE stepwise.step AS s SET status = $2::stepwise.step_status WHERE s.id = $1;
END $$;

-- A call of somebody who does not look at the state of the step, or speaks of an old claim.
CREATE FUNCTION hasty_call(root uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    step uuid := some_step(root, pick('pending', 'awaiting_input', 'failed', 'completed', 'skipped'));
    attempt text := pick('NULL', '1', '2');
    worker text := pick('NULL', '''anna''', '''bert''');
BEGIN
    RETURN format(pick('stepwise.submit_step_result(%1$L, ''{"n": 1}'', attempt => %2$s, worker => %3$s)', 'stepwise.release_step(%1$L, %2$s, %3$s)',
                       'stepwise.fail_step(%1$L, ''no'', attempt => %2$s, worker => %3$s)', 'stepwise.heartbeat(%1$L, %2$s, worker => %3$s)',
                       'stepwise.request_user_review(%1$L, ''Look'', attempt => %2$s, worker => %3$s)', 'stepwise.retry_step(%1$L)', 'stepwise.skip_step(%1$L)',
                       'stepwise.modify_plan(%4$L, ''fail_step'', %5$L)', 'stepwise.modify_plan(%4$L, ''update_step'', %6$L)', 'stepwise.modify_plan(%4$L, ''remove_step'', %7$L)',
                       'stepwise.record_tool_result(%8$L, ''client'', ''{"n": 4}'', step_name => %9$L)'),
                  step, attempt, worker, (SELECT s.plan_id FROM stepwise.step AS s WHERE s.id = step), jsonb_build_object('stepId', step, 'reason', 'no'),
                  jsonb_build_object('stepId', step, 'instructions', 'otherwise'), jsonb_build_object('stepId', step), root, 's' || upto(4));
END $$;

CREATE FUNCTION random_call(root uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    chance float := random();
    step uuid;
BEGIN
    CASE
        WHEN chance < 0.28 THEN
            RETURN format('stepwise.get_next_step(%L, %L, %L, run_tools => %L)', some_plan(root), pick('anna', 'bert', NULL, NULL), CASE WHEN random() < 0.1 THEN '1 microsecond' END, random() < 0.1);
        WHEN chance < 0.50 THEN
            RETURN format('stepwise.%1$s(%2$L, %3$L, confidence => %4$s, outcome => %5$L, attempt => attempt_of(%2$L))', pick('submit_step_result', 'advance'), some_step(root, 'in_progress'),
                          pick('{"n": 1}', '{"n": 2}', '{}'), round(random()::numeric, 1), pick('success', 'success', 'failure'));
        WHEN chance < 0.53 THEN
            RETURN format('stepwise.run(%L)', some_plan(root));
        WHEN chance < 0.57 THEN
            RETURN format('stepwise.fail_step(%1$L, %2$L, attempt => attempt_of(%1$L))', some_step(root, 'in_progress'), 'no luck');
        WHEN chance < 0.61 THEN
            RETURN format('stepwise.retry_step(%L)', some_step(root, 'failed'));
        WHEN chance < 0.66 THEN
            RETURN format('stepwise.skip_step(%L)', some_step(root, pick('pending', 'failed')));
        WHEN chance < 0.71 THEN
            RETURN format('stepwise.release_step(%1$L, attempt_of(%1$L))', some_step(root, 'in_progress'));
        WHEN chance < 0.73 THEN
            RETURN format('stepwise.heartbeat(%L, 1, %L)', some_step(root, 'in_progress'), pick('1 hour', '1 microsecond'));
        WHEN chance < 0.77 THEN
            RETURN format('stepwise.request_user_review(%L, %L)', some_step(root, 'in_progress'), 'Look');
        WHEN chance < 0.84 THEN
            RETURN format('stepwise.submit_user_decision(%L, %L, %L)', some_checkpoint(root), pick('approve', 'approve', 'modify', 'skip', CASE WHEN random() < 0.3 THEN 'reject' END), 'more');
        WHEN chance < 0.89 THEN
            RETURN format('stepwise.resume(%L, %L)', some_checkpoint(root), '1');
        WHEN chance < 0.895 THEN
            RETURN hasty_call(root);
        WHEN chance < 0.90 THEN
            RETURN 'stepwise.reclaim_stalled(''0'')';
        WHEN chance < 0.92 THEN
            RETURN format('stepwise.get_plan_status(%L, %L)', some_plan(root), '0');
        WHEN chance < 0.935 THEN
            RETURN format('walk.move_by_hand(%L, %L)', some_step(root, 'pending'), pick('pending', 'in_progress', 'awaiting_input', 'completed', 'failed', 'skipped'));
        WHEN chance < 0.96 THEN
            RETURN format('stepwise.modify_plan(%L, %L, %L)', some_plan(root), 'add_steps', jsonb_strip_nulls(jsonb_build_object('insertAfterOrder', CASE WHEN random() < 0.5 THEN 1 END,
                          'steps', jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('name', 'm' || upto(100), 'dependsOn', CASE WHEN random() < 0.4 THEN '["s1"]'::jsonb END))))));
        WHEN chance < 0.97 THEN
            step := some_step(root, 'pending');
            RETURN format('stepwise.modify_plan(%L, %L, %L)', (SELECT s.plan_id FROM stepwise.step AS s WHERE s.id = step), 'remove_step', jsonb_build_object('stepId', step));
        WHEN chance < 0.975 THEN
            step := some_step(root, 'pending');
            RETURN format('stepwise.modify_plan(%L, %L, %L)', (SELECT s.plan_id FROM stepwise.step AS s WHERE s.id = step), 'update_step_instructions',
                          jsonb_build_object('stepId', step, 'instructions', pick('go', 'go to ${inputs.x}')));
        WHEN chance < 0.99 THEN
            RETURN format('stepwise.record_tool_result(%L, %L, %L)', some_plan(root), pick('client', 'fine'), '{"n": 3}');
        WHEN chance < 0.995 THEN
            RETURN format('stepwise.fork_plan(%L, %L)', root, 's' || upto(3));
        ELSE
            RETURN format('stepwise.cancel_plan(%L)', some_plan(root));
    END CASE;
END $$;

-- ---------- what is told agrees with what is done ----------

CREATE FUNCTION changes(root uuid) RETURNS bigint LANGUAGE sql AS $$ SELECT sum(p.audit_entries) FROM tree(root) AS p $$;

CREATE FUNCTION states(root uuid) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(concat(s.id, s.status), '' ORDER BY s.id) FROM tree(root) AS p JOIN stepwise.step AS s ON s.tenant = p.tenant AND s.plan_id = p.id
$$;

-- The change of a step, with something in the place of what is left open.
CREATE FUNCTION filled(params jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_object_agg(key, CASE WHEN value::text NOT LIKE '%<%' THEN value WHEN key = 'arguments' THEN jsonb_build_object('x', upto(1000))
                                      WHEN key = 'condition' THEN '"true"' ELSE to_jsonb('new ' || upto(1000)) END)
    FROM jsonb_each(params)
$$;
-- A call that an answer names, with something in the place of what is left open.
CREATE FUNCTION spelled(call jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT format('stepwise.%I(%s)', call ->> 'function', (
        SELECT string_agg(format('%I => %L', key, CASE WHEN key = 'result' THEN '{"n": 2}' WHEN key = 'response' THEN '1' WHEN key = 'decision' THEN 'skip'
                                                       WHEN key = 'params' THEN filled(value)::text
                                                       ELSE value #>> '{}' END), ', ')
        FROM jsonb_each(call -> 'arguments')))
$$;
CREATE FUNCTION named_call(why jsonb) RETURNS text LANGUAGE sql AS $$ SELECT spelled(why -> 'nextCall') $$;

-- What a call would answer, and whether it would change something; nothing is changed.
CREATE FUNCTION would(root uuid, call text, part text, OUT answer jsonb, OUT change boolean, OUT moved boolean, OUT reasons jsonb) LANGUAGE plpgsql AS $$
DECLARE
    before bigint := changes(root);
    stood text := states(root);
BEGIN
    answer := called(call, part);
    change := changes(root) <> before;
    moved := states(root) <> stood;
    reasons := (SELECT jsonb_object_agg(b.step_id, s.pause_reason) FROM blocked AS b JOIN stepwise.step AS s ON s.id = b.step_id);
    RAISE EXCEPTION USING ERRCODE = 'WALK1';
EXCEPTION
    WHEN SQLSTATE 'WALK1' THEN
        NULL;
    WHEN OTHERS THEN
        answer := to_jsonb(sqlstate || ' ' || sqlerrm);
END $$;

-- Does why say that one has to wait, and does the call say the same? One waits for a claim that somebody holds, and is told for which; or for a person.
CREATE FUNCTION says_wait(why jsonb, answer jsonb) RETURNS boolean LANGUAGE sql AS $$
    SELECT why -> 'nextCall' ->> 'function' = 'get_next_step' AND why ->> 'message' = answer ->> 'message' AND CASE
        WHEN why ->> 'message' LIKE '%wait until it has ended' THEN why -> 'alternatives' = '[]'
            AND (answer ->> 'status' = 'paused' OR answer ->> 'status' = 'no_pending_steps' AND answer -> 'waitingFor' -> 0 ?| '{worker,leaseExpiresAt}')
        WHEN why ->> 'message' LIKE '%Wait for a person who may decide.' THEN why ->> 'waitingOn' = 'person' AND answer ->> 'status' IN ('awaiting_review', 'paused', 'no_pending_steps')
        END
$$;
CREATE FUNCTION next_and_why(plan uuid) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb := stepwise.get_next_step(plan);
BEGIN
    RETURN answer || jsonb_build_object('why', stepwise.why(plan) -> 'nextCall');
END $$;
CREATE FUNCTION tools_and_why(plan uuid) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb := stepwise.get_next_step(plan, run_tools => true);
BEGIN
    RETURN answer || jsonb_build_object('why', stepwise.why(plan) -> 'nextCall');
END $$;
CREATE FUNCTION run_and_why(plan uuid) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb := stepwise.run(plan);
BEGIN
    RETURN answer || jsonb_build_object('why', stepwise.why(plan) -> 'nextCall');
END $$;

CREATE FUNCTION check_why(root uuid, plan uuid, part text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    why jsonb := called(format('stepwise.why(%L)', plan), part);
    call text;
    w record;
BEGIN
    IF EXISTS (SELECT FROM stepwise.plan AS p WHERE p.id = plan AND p.completed_at IS NOT NULL) THEN
        IF why -> 'nextCall' <> 'null' THEN
            RETURN NEXT 'an ended plan names a call';
        END IF;
        RETURN;
    END IF;
    call := named_call(why);
    w := would(root, call, part);
    IF w.change IS NOT TRUE AND NOT says_wait(why, w.answer) THEN
        RETURN NEXT format('why says "%s", and %s changes nothing: %s', why ->> 'message', call, w.answer);
    END IF;
    FOR call IN SELECT spelled(a) FROM jsonb_array_elements(why -> 'alternatives') AS a LOOP
        w := would(root, call, part);
        IF w.change IS NOT TRUE THEN
            RETURN NEXT format('why says "%s", and the alternative %s changes nothing: %s', why ->> 'message', call, w.answer);
        END IF;
    END LOOP;
END $$;

-- A reader is told by all to wait for others, and is named no call.
CREATE FUNCTION check_reader(plan uuid) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    why jsonb := called(format('stepwise.why(%L)', plan), 'reader');
    told text := called(format('stepwise.handoff(%L)', plan), 'reader') #>> '{}';
    context jsonb := called(format('stepwise.get_plan_context(%L)', plan), 'reader') -> 'nextCall';
BEGIN
    IF why -> 'nextCall' <> 'null' OR why -> 'alternatives' <> '[]' OR context <> 'null' OR told LIKE '%Call %'
       OR why ->> 'waitingOn' <> 'nobody' AND (why ->> 'message' || told) NOT LIKE '%wait for somebody who may.%wait for somebody who may.%' THEN
        RETURN NEXT format('a reader is told %s, %s, %s', why, told, context);
    END IF;
END $$;

-- The other functions name the call that why names, and handoff names the alternatives too.
CREATE FUNCTION check_same(root uuid, plan uuid, part text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    why jsonb := called(format('stepwise.why(%L)', plan), part);
    told text := called(format('stepwise.handoff(%L)', plan), part) #>> '{}';
    context jsonb := called(format('stepwise.get_plan_context(%L)', plan), part) -> 'nextCall';
    answer jsonb := (would(root, format('walk.next_and_why(%L)', plan), part)).answer;
    call jsonb;
BEGIN
    IF context <> why -> 'nextCall' THEN
        RETURN NEXT format('why names %s, get_plan_context %s', why -> 'nextCall', context);
    END IF;
    FOR call IN SELECT why -> 'nextCall' WHERE why -> 'nextCall' <> 'null' UNION ALL SELECT jsonb_array_elements(why -> 'alternatives') LOOP
        IF strpos(told, format('Call stepwise.%s with %s', call ->> 'function', call -> 'arguments')) = 0 THEN
            RETURN NEXT format('why names %s, handoff does not: %s', call, told);
        END IF;
    END LOOP;
    IF answer ->> 'status' NOT LIKE 'plan%' AND answer ->> 'status' <> 'step_ready' AND answer -> 'nextCall' <> answer -> 'why' THEN
        RETURN NEXT format('get_next_step names %s, and why then names %s', answer -> 'nextCall', answer -> 'why');
    END IF;
    answer := (would(root, format('walk.tools_and_why(%L)', plan), part)).answer;
    IF answer ->> 'status' NOT LIKE 'plan%' AND answer ->> 'status' <> 'step_ready' AND answer -> 'nextCall' <> answer -> 'why' THEN
        RETURN NEXT format('get_next_step with run_tools names %s, and why then names %s', answer -> 'nextCall', answer -> 'why');
    END IF;
    answer := (would(root, format('walk.run_and_why(%L)', plan), part)).answer;
    IF answer ? 'next_call' AND answer -> 'next_call' <> answer -> 'why' THEN
        RETURN NEXT format('run names %s, and why then names %s', answer -> 'next_call', answer -> 'why');
    END IF;
END $$;

-- Is a plan nested behind a step that stops a sequence?
CREATE FUNCTION held_up(plan uuid) RETURNS boolean LANGUAGE sql AS $$
    WITH RECURSIVE holder AS (
        SELECT s.* FROM stepwise.plan AS p JOIN stepwise.step AS s ON s.id = p.parent_step_id WHERE p.id = plan
        UNION ALL
        SELECT s.* FROM holder AS h JOIN stepwise.plan AS p ON p.id = h.plan_id JOIN stepwise.step AS s ON s.id = p.parent_step_id)
    SELECT EXISTS (SELECT FROM holder AS h JOIN stepwise.plan AS q ON q.id = h.plan_id AND q.sequential JOIN stepwise.step AS o
                   ON o.plan_id = q.id AND o.step_order < h.step_order AND o.status <> 'pending' AND o.pause_reason IS NOT NULL
                   -- an agent may go on after an open failure, unless it is one before a gate
                   AND (o.status <> 'failed' OR q.on_failure <> 'stop' OR o.holds))
$$;
CREATE FUNCTION next_and_held(root uuid) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb := stepwise.get_next_step(root);
BEGIN
    RETURN answer || jsonb_build_object('held', ARRAY(SELECT p.id FROM tree(root) AS p WHERE p.depth > 0 AND held_up(p.id)));
END $$;

-- What is handed out for a nested plan is handed out for the root too, the deepest first, unless a sequence has stopped before it.
CREATE FUNCTION check_passed_over(root uuid) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    at_root jsonb := (would(root, format('walk.next_and_held(%L)', root), NULL)).answer;
    at_plan jsonb;
    plan record;
BEGIN
    -- a step that was sent back comes first, wherever it is
    IF (SELECT p.sent_back > 0 FROM stepwise.plan AS p WHERE p.id = root) THEN
        RETURN;
    END IF;
    FOR plan IN SELECT p.id FROM tree(root) AS p WHERE p.depth > 0 AND p.completed_at IS NULL AND p.depth > coalesce(jsonb_array_length(at_root -> 'path') - 1, 0) LOOP
        CONTINUE WHEN at_root -> 'held' ? plan.id::text;
        at_plan := (would(root, format('stepwise.get_next_step(%L)', plan.id), NULL)).answer;
        IF at_plan ->> 'status' = 'step_ready' THEN
            RETURN NEXT format('the root answers %s, and passes over %s', concat_ws(' ', at_root ->> 'status', at_root ->> 'path'), at_plan ->> 'path');
        END IF;
    END LOOP;
    IF at_root -> 'held' ? (at_root ->> 'planId') AND NOT at_root ? 'again' THEN
        RETURN NEXT format('the root hands out %s, before which a sequence has stopped', at_root ->> 'path');
    END IF;
END $$;

-- A step that was blocked before the call, and is not now, would not be blocked by the same again;
-- and the step that did not make its value is no longer failed or skipped.
CREATE FUNCTION check_forgotten(root uuid) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    b record;
    w record;
BEGIN
    FOR b IN SELECT x.*, s.arguments::text ~ 'steps[.]s[0-9]+[.]steps' AS reads_below FROM blocked AS x JOIN stepwise.step AS s ON s.id = x.step_id JOIN stepwise.plan AS p ON p.id = s.plan_id
             WHERE s.status = 'pending' AND s.pause_reason IS NULL AND p.completed_at IS NULL
               -- a step before it was retried, and comes first
               AND NOT (p.sequential AND EXISTS (SELECT FROM stepwise.step AS o WHERE o.tenant = p.tenant AND o.plan_id = p.id AND o.step_order < s.step_order AND o.status = 'pending'))
    LOOP
        w := would(root, format(CASE WHEN b.reason ->> 'type' IN ('clientTool', 'schemaMismatch') THEN 'stepwise.run(%L)' ELSE 'stepwise.get_next_step(%L)' END, b.plan_id), NULL);
        IF (NOT w.moved AND w.reasons -> b.step_id::text = b.reason)
           OR (b.reads_below IS NOT TRUE AND EXISTS (SELECT FROM stepwise.step AS s WHERE s.tenant = 'default' AND s.plan_id = b.plan_id
                                                          AND s.name = b.reason ->> 'producingStep' AND s.status IN ('failed', 'skipped'))) THEN
            RETURN NEXT 'forgotten: ' || b.reason::text;
        END IF;
    END LOOP;
END $$;

CREATE FUNCTION check_tree(root uuid, answer jsonb) RETURNS SETOF text LANGUAGE sql AS $$
    WITH tree AS (SELECT * FROM tree(root))
    SELECT format('the reason of plan %s is %s, that of its first step that blocks is %s', t.id, t.pause_reason, s.pause_reason)
    FROM tree AS t LEFT JOIN LATERAL (SELECT s.pause_reason FROM stepwise.step AS s WHERE s.tenant = t.tenant AND s.plan_id = t.id AND s.pause_reason IS NOT NULL
                                      ORDER BY s.step_order LIMIT 1) AS s ON true
    WHERE t.completed_at IS NULL AND t.pause_reason - 'path' IS DISTINCT FROM s.pause_reason - 'path'
    UNION ALL
    SELECT 'an ended plan has a reason' FROM tree AS t WHERE t.completed_at IS NOT NULL AND t.pause_reason IS NOT NULL
    UNION ALL
    SELECT 'an ended plan has a checkpoint' FROM tree AS t JOIN stepwise.checkpoint AS k ON k.root_id = root AND k.plan_id = t.id WHERE t.completed_at IS NOT NULL
    UNION ALL
    (WITH RECURSIVE above AS (
         SELECT t.* FROM tree AS t WHERE answer ->> 'status' = 'step_ready' AND t.id = (answer ->> 'planId')::uuid
         UNION ALL SELECT t.* FROM above AS a JOIN stepwise.step AS h ON h.tenant = a.tenant AND h.id = a.parent_step_id JOIN tree AS t ON t.id = h.plan_id)
     SELECT 'a plan above a claim is stalled' FROM above AS a WHERE a.status = 'stalled')
$$;

-- Under pause, what a run has done comes before every step that had failed by then.
CREATE FUNCTION check_run(root uuid) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('run has done %s after %s had failed', d.name, f.name)
    FROM tree(root) AS p
    JOIN stepwise.step AS f ON f.tenant = p.tenant AND f.plan_id = p.id AND f.status = 'failed'
    JOIN stepwise.step AS d ON d.tenant = p.tenant AND d.plan_id = p.id AND d.step_order > f.step_order
    JOIN stepwise.audit AS a ON a.tenant = p.tenant AND a.plan_id = p.id AND a.step_id = d.id AND a.event = 'step_started' AND a.detail ->> 'by' = 'run'
    WHERE p.on_failure = 'pause'
      AND a.id > (SELECT max(x.id) FROM stepwise.audit AS x WHERE x.tenant = p.tenant AND x.plan_id = p.id AND x.step_id = f.id AND x.event = 'step_failed')
$$;

CREATE FUNCTION note_blocked(root uuid) RETURNS void LANGUAGE sql AS $$
    DELETE FROM blocked;
    INSERT INTO blocked SELECT s.id, p.id, s.pause_reason FROM tree(root) AS p JOIN stepwise.step AS s ON s.tenant = p.tenant AND s.plan_id = p.id
    WHERE p.completed_at IS NULL AND s.status = 'pending' AND s.pause_reason IS NOT NULL
$$;

-- A call that changes a plan names the call that why then names for the root.
CREATE FUNCTION check_next_call(root uuid, answer jsonb, part text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    why jsonb := called(format('stepwise.why(%L)', root), part);
BEGIN
    IF answer ? 'nextCall' AND NOT answer ? 'status' AND why ->> 'waitingOn' <> 'nobody' AND answer -> 'nextCall' <> why -> 'nextCall' THEN
        RETURN NEXT format('the answer names %s, why %s', answer -> 'nextCall', why -> 'nextCall');
    END IF;
END $$;

-- Call, and check what has become of the tree. What is told may depend on who asks, who may be another. Whoever else tries the call gets an honest hint, too.
CREATE FUNCTION try_and_check(root uuid, call text, part text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
    plan uuid := some_plan(root);
    asks text := pick('agent', 'person', 'judge', NULL, NULL);
    tries text := pick('agent', 'person', 'judge', 'reader', 'stranger', NULL);
BEGIN
    PERFORM note_blocked(root);
    INSERT INTO trouble SELECT 'hints', root, concat_ws(' ', tries || ':', call || ':', problem) FROM check_hint(root, hint_of(call, tries), tries) AS problem
    WHERE call NOT LIKE 'walk.%';
    answer := try(root, call, part);
    INSERT INTO trouble SELECT 'told', root, concat_ws(' ', part || ':', call || ':', asks || ':', problem)
    FROM (SELECT * FROM check_tree(root, coalesce(answer -> 'next', answer))
          UNION ALL SELECT * FROM check_next_call(root, answer, part)
          UNION ALL SELECT * FROM check_why(root, plan, asks)
          UNION ALL SELECT * FROM check_same(root, plan, asks)
          UNION ALL SELECT * FROM check_reader(plan)
          UNION ALL SELECT * FROM check_passed_over(root)
          UNION ALL SELECT * FROM check_forgotten(root)) AS x (problem);
END $$;

-- ---------- to the end ----------

-- A step of an open plan of the tree that is in one of these states, and holds no nested plan unless there is nothing else.
CREATE FUNCTION open_step(root uuid, blocked boolean, VARIADIC states text[]) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.id = s.plan_id
    WHERE s.root_id = root AND p.completed_at IS NULL AND s.status::text = ANY (states) AND (s.pause_reason IS NOT NULL) = blocked
      AND (s.workflow IS NULL OR s.status <> 'in_progress')
    ORDER BY s.workflow IS NOT NULL, s.step_order, s.id LIMIT 1
$$;

-- Do what the last answer asks for; how the plan cannot be brought on, or NULL.
CREATE FUNCTION obey(root uuid, answer jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    step uuid;
BEGIN
    CASE answer ->> 'status'
        WHEN 'step_ready' THEN
            PERFORM try(root, format('stepwise.submit_step_result(%1$L, %2$L, attempt => attempt_of(%1$L))', answer ->> 'stepId', '{"n": 2}'));
        WHEN 'awaiting_review' THEN
            PERFORM try(root, format(CASE answer ->> 'kind' WHEN 'prompt' THEN 'stepwise.resume(%L, ''1'')' ELSE 'stepwise.submit_user_decision(%L, ''approve'')' END,
                                     answer ->> 'checkpointId'), 'judge');
        WHEN 'paused' THEN
            step := coalesce(open_step(root, true, 'pending', 'failed'), open_step(root, false, 'in_progress'));
            PERFORM try(root, format('stepwise.skip_step(%L)', step), 'judge');
        WHEN 'no_pending_steps' THEN
            step := open_step(root, false, 'in_progress');
            IF step IS NOT NULL THEN
                -- plain SQL may have started a prompt, which takes no result
                PERFORM try(root, format(CASE WHEN (SELECT s.prompt IS NULL FROM stepwise.step AS s WHERE s.id = step)
                    THEN 'stepwise.submit_step_result(%1$L, %2$L, attempt => attempt_of(%1$L))' ELSE 'stepwise.skip_step(%1$L)' END, step, '{"n": 2}'));
            ELSE
                -- under stop, a failure that nobody has dealt with keeps the plan open
                step := open_step(root, true, 'failed');
                PERFORM try(root, format('stepwise.skip_step(%L)', step));
            END IF;
        ELSE
            RETURN 'unknown answer ' || coalesce(answer::text, '');
    END CASE;
    RETURN CASE WHEN answer ->> 'status' IN ('paused', 'no_pending_steps') AND step IS NULL THEN 'waits for nobody' END;
END $$;

-- Let who holds a claim submit it.
CREATE FUNCTION end_claim(root uuid) RETURNS void LANGUAGE sql AS $$
    SELECT try(root, format('stepwise.submit_step_result(%L, %L, attempt => %s)', s.id, '{"n": 2}', s.attempt))
    FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.id = s.plan_id
    WHERE s.root_id = root AND p.completed_at IS NULL AND s.status = 'in_progress' AND s.workflow IS NULL
    ORDER BY s.worker IS NULL AND s.lease_expires_at IS NULL, s.id LIMIT 1
$$;

-- A plan comes to its end also if only the calls that why names to a role are made, who holds a claim ends it, and the judge decides where the role may not.
CREATE FUNCTION follow(root uuid, part text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    why jsonb;
    call text;
    before bigint;
BEGIN
    FOR i IN 1 .. 300 LOOP
        why := called(format('stepwise.why(%L)', root), part);
        IF why -> 'nextCall' = 'null' THEN
            RETURN NULL;
        END IF;
        call := named_call(why);
        before := changes(root);
        -- what fails each time is not tried for ever; to leave it out may need the right to decide
        IF i > 30 AND call LIKE 'stepwise.retry_step%' THEN
            PERFORM try(root, replace(call, 'retry_step', 'skip_step'), 'judge');
        ELSE
            PERFORM try(root, call, part);
        END IF;
        IF changes(root) = before AND why ->> 'message' LIKE '%wait until it has ended' THEN
            PERFORM end_claim(root);
        ELSIF changes(root) = before AND why ->> 'message' LIKE '%Wait for a person who may decide.' THEN
            why := called(format('stepwise.why(%L)', root), 'judge');
            call := named_call(why);
            PERFORM try(root, call, 'judge');
        END IF;
        IF changes(root) = before THEN
            RETURN format('why says "%s", and %s changes nothing', why ->> 'message', call);
        END IF;
    END LOOP;
    RETURN 'whoever follows why comes to no end';
END $$;

CREATE FUNCTION bring_to_end(root uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
    stuck text;
BEGIN
    FOR i IN 1 .. 300 LOOP
        answer := try(root, format('stepwise.get_next_step(%L)', root));
        IF answer ->> 'status' IN ('plan_complete', 'plan_failed', 'plan_cancelled') THEN
            RETURN NULL;
        END IF;
        stuck := obey(root, answer);
        IF stuck IS NOT NULL THEN
            RETURN stuck;
        END IF;
    END LOOP;
    RETURN 'comes to no end';
END $$;

-- ---------- the walk ----------

CREATE PROCEDURE define_workflows() LANGUAGE plpgsql AS $$
BEGIN
    FOR level IN 0 .. 3 LOOP
        FOR i IN 1 .. 3 LOOP
            -- a random definition may be refused
            WHILE try(NULL, format('stepwise.define_workflow(%L)', random_definition(format('walk%s_%s', level, i), level))) IS NULL LOOP
            END LOOP;
        END LOOP;
    END LOOP;
END $$;

CREATE FUNCTION random_plan() RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    definition jsonb := random_definition('walk', 4);
    answer jsonb;
BEGIN
    WHILE answer IS NULL LOOP
        IF random() < 0.5 THEN
            answer := try(NULL, format('stepwise.start_workflow(%L)', 'walk3_' || upto(3)), pick('agent', 'person', NULL));
        ELSE
            answer := try(NULL, format('stepwise.create_plan(%L, %L, %L, %L, %L, %L, %L, strict_order => %L, separate_reviewer => %L)', 'walk', 'to walk', definition -> 'steps', definition -> 'branchingConditions',
                                       '{"x": 1}', definition -> 'outputs', definition ->> 'onFailure', coalesce(definition ->> 'strictOrder', 'false'), coalesce(definition ->> 'separateReviewer', 'false')),
                          pick('agent', 'person', NULL));
            definition := random_definition('walk', 4);
        END IF;
    END LOOP;
    RETURN answer ->> 'planId';
END $$;

-- Choose who makes a call: only the owner writes plain SQL; most decisions are made by the judge, who does nothing else; an agent makes none.
CREATE FUNCTION random_part(call text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN call LIKE 'walk.%' THEN NULL WHEN call ~ '^stepwise.(submit_user_decision|resume)' THEN pick('judge', 'judge', 'person', NULL)
                ELSE pick('agent', 'person', NULL, NULL) END
$$;

CREATE PROCEDURE walk(plans int, checks float) LANGUAGE plpgsql AS $$
DECLARE
    root uuid;
    call text;
BEGIN
    FOR n IN 1 .. plans LOOP
        IF n % 20 = 1 THEN
            CALL define_workflows();
        END IF;
        root := random_plan();
        FOR i IN 1 .. 10 + upto(40) LOOP
            call := random_call(root);
            IF random() < checks THEN
                PERFORM try_and_check(root, call, random_part(call));
            ELSE
                PERFORM try(root, call, random_part(call));
            END IF;
            -- what has ended refuses everything; a little of that is enough
            EXIT WHEN random() < 0.3 AND (SELECT p.completed_at IS NOT NULL FROM stepwise.plan AS p WHERE p.id = root);
        END LOOP;
        INSERT INTO trouble SELECT 'run', root, problem FROM check_run(root) AS problem;
        IF n % 2 = 1 THEN
            INSERT INTO trouble SELECT 'follow', root, stuck FROM follow(root, CASE n % 6 WHEN 1 THEN 'agent' WHEN 3 THEN 'person' END) AS stuck WHERE stuck IS NOT NULL;
        END IF;
        INSERT INTO trouble SELECT 'end', root, stuck FROM bring_to_end(root) AS stuck WHERE stuck IS NOT NULL;
        COMMIT;
    END LOOP;
END $$;

CREATE FUNCTION fine(arguments jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('n', arguments -> 'x') $$;
CREATE FUNCTION broken(arguments jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT to_jsonb(1 / 0) $$;
CREATE FUNCTION resource(uri text) RETURNS jsonb LANGUAGE sql AS $$ SELECT CASE WHEN uri LIKE '%fine' THEN '"text"' ELSE to_jsonb(1 / (length(uri) - 13)) END $$;
SELECT stepwise.register_tool('fine', 'walk.fine(jsonb)') IS NOT NULL, stepwise.register_tool('broken', 'walk.broken(jsonb)') IS NOT NULL,
       stepwise.register_tool('narrow', input_schema => '{"type": "object", "required": ["z"]}') IS NOT NULL, stepwise.register_resource('walk://*', 'walk.resource(text)') IS NOT NULL \g /dev/null
\pset format unaligned
\pset tuples_only on
\set ECHO all

SELECT setseed(:seed / 1000000.0) \g /dev/null
CALL walk(:plans, :checks);

-- what calls came to, of which there must have been enough of either kind
SELECT count(*) FILTER (WHERE answer NOT LIKE 'SW%') > 10 * :plans, count(*) FILTER (WHERE answer LIKE 'SW%') > 5 * :plans FROM made;
-- nothing
SELECT what, detail, root FROM trouble;
SELECT p.name, i.problem, p.root_id FROM stepwise.check_integrity() AS i JOIN stepwise.plan AS p ON p.id = i.plan_id WHERE p.root_id IN (SELECT root FROM made);
SELECT p.name, stepwise.verify_audit(p.id) -> 'firstInvalid', p.root_id FROM stepwise.plan AS p
WHERE CASE WHEN p.root_id IN (SELECT root FROM made) THEN NOT (stepwise.verify_audit(p.id) ->> 'valid')::boolean END;

SELECT stepwise.drop_tool('fine') IS NOT NULL, stepwise.drop_tool('broken') IS NOT NULL, stepwise.drop_tool('narrow') IS NOT NULL, stepwise.drop_resource('walk://*') IS NOT NULL \g /dev/null
SET client_min_messages = error;
\set ECHO none
SELECT format('DROP OWNED BY %1$I; DROP ROLE %1$I', role(part)) FROM unnest('{agent,person,judge,reader,stranger}'::text[]) AS part \gexec
DROP SCHEMA walk CASCADE;
