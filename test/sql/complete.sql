-- Every kind of wait, from one table. get_next_step, why, handoff, get_plan_context and run tell the same about each of them. The call
-- that they name, and every alternative, is made as it stands, with the places in <…> filled in, and changes something. Then the other
-- keys that an answer has so that a model can act on it.

\set ECHO none
\i test/agent.sql
CREATE SCHEMA complete;
CREATE FUNCTION complete.fine(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION complete.broken(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'out of paper' USING ERRCODE = 'P0007', DETAIL = 'Tray 2 is empty.', HINT = 'Fill tray 2.';
END $$;
SELECT stepwise.register_tool('co_fine', 'complete.fine(jsonb)') IS NOT NULL,
       stepwise.register_tool('co_broken', 'complete.broken(jsonb)') IS NOT NULL,
       stepwise.register_tool('co_again', 'complete.broken(jsonb)', retryable => true) IS NOT NULL,
       stepwise.register_tool('co_strict', 'complete.fine(jsonb)', '{"type": "object", "required": ["config"]}') IS NOT NULL,
       stepwise.register_resource('co:*', 'complete.broken(jsonb)') IS NOT NULL \g /dev/null
\set ECHO all

-- ---------- the table ----------

-- How to come to each wait: the plan, and the calls before it.
CREATE TEMP TABLE wait (place int GENERATED ALWAYS AS IDENTITY, name text, on_failure text, steps jsonb, calls text[] DEFAULT '{}');
INSERT INTO wait (name, on_failure, steps, calls) VALUES
    ('prompt', 'stop', '[{"name": "a", "prompt": "Sure?"}, {"name": "b"}]', '{next}'),
    ('review', 'stop', '[{"name": "a"}, {"name": "b"}]', '{next,review}'),
    ('gate before', 'stop', '[{"name": "a", "tool": "co_fine", "review": {"when": "before", "summary": "Go?"}}]', '{next}'),
    ('gate after', 'stop', '[{"name": "a", "review": {"when": "after", "summary": "Good?"}}, {"name": "b"}]', '{next,submit}'),
    ('changes', 'stop', '[{"name": "a", "tool": "co_fine", "arguments": {"x": 1}, "review": {"when": "before"}}, {"name": "b"}]', '{next,modify}'),
    ('arguments', 'stop', '[{"name": "a", "tool": "theirs", "arguments": {"x": "${inputs.o.p}", "y": 1}}, {"name": "b"}]', '{next}'),
    ('instructions', 'stop', '[{"name": "a", "instructions": "See ${inputs.o.p}"}, {"name": "b"}]', '{next}'),
    ('schema', 'stop', '[{"name": "a", "tool": "co_strict", "arguments": {"zone": 1}}, {"name": "b"}]', '{run}'),
    ('condition', 'stop', '[{"name": "a", "condition": "${inputs.o} > 1"}, {"name": "b"}]', '{next}'),
    ('dependency', 'continue', '[{"name": "z"}, {"name": "a", "arguments": {"x": "${steps.z.outputs.n}"}}]', '{fail z,next}'),
    ('skipped dependency', 'continue', '[{"name": "z"}, {"name": "a", "arguments": {"x": "${steps.z.outputs.n}"}}]', '{skip z,next}'),
    ('dependency of a text', 'continue', '[{"name": "z"}, {"name": "a", "instructions": "See ${steps.z.outputs.n}"}]', '{skip z,next}'),
    ('person and failure', 'pause', '[{"name": "f", "tool": "theirs", "dependsOn": []}, {"name": "a", "prompt": "Sure?", "dependsOn": []}]', '{fail f,next}'),
    ('failed, stop', 'stop', '[{"name": "a", "tool": "co_broken"}, {"name": "b"}]', '{run}'),
    ('failed at the end', 'stop', '[{"name": "a", "tool": "co_broken"}]', '{run}'),
    ('failed, pause', 'pause', '[{"name": "a", "tool": "co_broken"}, {"name": "b"}]', '{run}'),
    ('failed, retryable', 'pause', '[{"name": "a", "tool": "co_again"}, {"name": "b"}]', '{run}'),
    ('failed at the client', 'pause', '[{"name": "a", "tool": "theirs"}, {"name": "b"}]', '{next,fail a}'),
    ('failed resource', 'stop', '[{"name": "a", "resources": ["co:1"]}, {"name": "b", "tool": "theirs"}]', '{run}'),
    ('client', 'stop', '[{"name": "a", "tool": "theirs", "arguments": {"x": 1}}, {"name": "b"}]', '{run}'),
    ('instructed', 'stop', '[{"name": "a", "instructions": "Think"}, {"name": "b"}]', '{run}'),
    ('held', 'stop', '[{"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": ["a"]}]', '{claim}'),
    ('leased', 'stop', '[{"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": ["a"]}]', '{lease}'),
    ('stalled', 'stop', '[{"name": "a", "stallAfter": "1 microsecond", "dependsOn": []}, {"name": "b", "dependsOn": ["a"]}]', '{claim}');

CREATE FUNCTION pg_temp.prepare(plan text, call text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    id uuid := pg_temp.plan(plan);
    step uuid := pg_temp.step(plan, coalesce(nullif(split_part(call, ' ', 2), ''), 'a'));
BEGIN
    CASE split_part(call, ' ', 1)
        WHEN 'next' THEN RETURN stepwise.get_next_step(id);
        WHEN 'claim' THEN RETURN stepwise.get_next_step(id, 'anna');
        WHEN 'lease' THEN RETURN stepwise.get_next_step(id, 'anna', '1 hour');
        WHEN 'run' THEN RETURN stepwise.run(id);
        WHEN 'submit' THEN RETURN stepwise.submit_step_result(step, '1');
        WHEN 'review' THEN RETURN stepwise.request_user_review(step, 'Look');
        WHEN 'modify' THEN RETURN stepwise.submit_user_decision(pg_temp.waiting(plan, 'a'), 'modify', 'Not so');
        WHEN 'fail' THEN RETURN stepwise.fail_step(step, 'no luck');
        WHEN 'skip' THEN RETURN stepwise.skip_step(step);
    END CASE;
END $$;
SELECT w.name FROM wait AS w,
    LATERAL stepwise.create_plan(w.name, 'test', w.steps, on_failure => w.on_failure, inputs => '{"o": {}}') AS made WHERE made ->> 'planId' IS NULL;
DO $$
DECLARE
    w record;
BEGIN
    FOR w IN SELECT x.name, c.call FROM wait AS x, unnest(x.calls) WITH ORDINALITY AS c (call, n) ORDER BY x.place, c.n LOOP
        PERFORM pg_temp.prepare(w.name, w.call);
    END LOOP;
END $$;

-- ---------- all tell the same ----------

-- What a call answers; nothing is changed.
CREATE FUNCTION pg_temp.would(call text, OUT answer jsonb, OUT changed boolean) LANGUAGE plpgsql AS $$
DECLARE
    before bigint := (SELECT sum(p.audit_entries) FROM stepwise.plan AS p);
BEGIN
    EXECUTE 'SELECT ' || call INTO answer;
    changed := (SELECT sum(p.audit_entries) FROM stepwise.plan AS p) <> before;
    RAISE EXCEPTION USING ERRCODE = 'UNDO1';
EXCEPTION
    WHEN SQLSTATE 'UNDO1' THEN
        NULL;
    WHEN OTHERS THEN
        answer := to_jsonb(sqlstate || ' ' || sqlerrm);
END $$;

-- A call that an answer names, with the places in <…> filled in.
CREATE FUNCTION pg_temp.spelled(call jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT format('stepwise.%I(%s)', call ->> 'function', (
        SELECT string_agg(format('%I => %L', key, CASE WHEN key = 'decision' THEN 'approve' WHEN key IN ('result', 'response') THEN '1'
            WHEN key = 'params' THEN CASE WHEN value ? 'condition' THEN jsonb_set(value, '{condition}', '"true"')
                                          WHEN jsonb_typeof(value -> 'arguments') = 'string' THEN jsonb_set(value, '{arguments}', '{"x": 2}')
                                          WHEN value ? 'instructions' THEN jsonb_set(value, '{instructions}', '"Go"')
                                          ELSE value END #>> '{}'
            ELSE value #>> '{}' END), ', ')
        FROM jsonb_each(call -> 'arguments')))
$$;

-- What is told about a wait, and by whom something else is told.
CREATE FUNCTION pg_temp.told(plan text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    id uuid := pg_temp.plan(plan);
    why jsonb := stepwise.why(id);
    next jsonb := (pg_temp.would(format('stepwise.get_next_step(%L)', id))).answer;
    run jsonb := (pg_temp.would(format('stepwise.run(%L)', id))).answer;
    handoff text := stepwise.handoff(id);
    other text := '';
BEGIN
    IF next ->> 'status' <> 'step_ready' AND (next -> 'message' <> why -> 'message' OR next -> 'nextCall' <> why -> 'nextCall') THEN
        other := other || ' get_next_step';
    END IF;
    IF run -> 'message' <> why -> 'message' OR run -> 'next_call' <> why -> 'nextCall' THEN
        other := other || ' run';
    END IF;
    IF stepwise.get_plan_context(id) -> 'nextCall' <> why -> 'nextCall' THEN
        other := other || ' get_plan_context';
    END IF;
    IF position(why ->> 'message' IN handoff) = 0 OR position(why -> 'nextCall' ->> 'arguments' IN handoff) = 0
       OR EXISTS (SELECT FROM jsonb_array_elements(why -> 'alternatives') AS c WHERE position(c ->> 'arguments' IN handoff) = 0) THEN
        other := other || ' handoff';
    END IF;
    RETURN concat_ws(' | ', plan, next ->> 'status', run ->> 'task_status', why -> 'reason' ->> 'type', why ->> 'waitingOn', why ->> 'message',
        why -> 'nextCall' ->> 'function', (SELECT string_agg(c ->> 'function', ' ') FROM jsonb_array_elements(why -> 'alternatives') AS c),
        'told otherwise by:' || nullif(other, ''));
END $$;
SELECT pg_temp.told(w.name) FROM wait AS w ORDER BY w.place;

-- ---------- and what they name works ----------

-- Nothing: every call that is named changes something, or says for whose claim one has to wait.
SELECT w.name, c.call, d.answer FROM wait AS w, stepwise.why(pg_temp.plan(w.name)) AS y,
    LATERAL (SELECT y -> 'nextCall' UNION ALL SELECT * FROM jsonb_array_elements(y -> 'alternatives')) AS c (call),
    LATERAL pg_temp.would(pg_temp.spelled(c.call)) AS d
WHERE d.changed IS NOT TRUE AND NOT coalesce(d.answer::jsonb -> 'waitingFor' -> 0 ?| '{worker,leaseExpiresAt}', false) ORDER BY w.place;

-- every type of pause reason is among them: no row
\set types `sed -n 's/^.\[REASON_[A-Z_]*\] = {"\([a-zA-Z]*\)", "[a-z]*Step".*/\1/p' src/engine/pause.c`
SELECT regexp_split_to_table(:'types', '\s+') EXCEPT SELECT stepwise.why(pg_temp.plan(w.name)) #>> '{reason,type}' FROM wait AS w;
SELECT count(*) >= 10 FROM regexp_split_to_table(:'types', '\s+');

-- ---------- for who may not decide, and for a reader ----------

\set ECHO none
CREATE ROLE regress_complete_agent;
CREATE ROLE regress_complete_reader;
SELECT stepwise.grant_agent('regress_complete_agent', decide => false), stepwise.grant_reader('regress_complete_reader'),
       stepwise.add_member('regress_complete_agent', 'default'), stepwise.add_member('regress_complete_reader', 'default') \g /dev/null
INSERT INTO wait (name, on_failure, steps, calls) VALUES
    ('behind, arguments', 'stop', '[{"name": "p", "prompt": "Sure?"}, {"name": "a", "instructions": "See ${inputs.o.p}"}]', '{next,answer p,next}'),
    ('behind, condition', 'stop', '[{"name": "p", "prompt": "Sure?"}, {"name": "a", "condition": "${inputs.o} > 1"}]', '{next,answer p,next}'),
    ('gate, arguments', 'stop', '[{"name": "a", "instructions": "See ${inputs.o.p}", "review": {"when": "before"}}, {"name": "b"}]', '{next}'),
    ('gate, failed', 'stop', '[{"name": "a", "tool": "co_broken", "review": {"when": "after"}}, {"name": "b"}]', '{run}');
SELECT stepwise.create_plan(w.name, 'test', w.steps, on_failure => w.on_failure, inputs => '{"o": {}}') FROM wait AS w WHERE w.name ~ '^(behind|gate), ' \g /dev/null
SELECT pg_temp.next('behind, arguments'), pg_temp.next('behind, condition') \g /dev/null
SELECT stepwise.resume(pg_temp.waiting(w.name, 'p'), '1') FROM wait AS w WHERE w.name LIKE 'behind, %' \g /dev/null
SELECT CASE w.name WHEN 'gate, failed' THEN stepwise.run(pg_temp.plan(w.name)) ELSE stepwise.get_next_step(pg_temp.plan(w.name)) END FROM wait AS w WHERE w.name ~ '^(behind|gate), ' \g /dev/null
GRANT SELECT ON wait TO PUBLIC;
-- All functions that are named to the current role, in calls and in words.
CREATE FUNCTION pg_temp.functions_named(plan text) RETURNS text[] LANGUAGE sql AS $$
    SELECT array_agg(DISTINCT m[1] ORDER BY m[1]) FROM (SELECT pg_temp.plan(plan) AS id) AS p, stepwise.why(p.id) AS y, stepwise.handoff(p.id) AS h,
        regexp_matches(concat_ws(' ', y ->> 'message', y ->> 'nextCall', y ->> 'alternatives', stepwise.get_plan_context(p.id) ->> 'nextCall', h), '(?:stepwise\.|"function": ")(\w+)', 'g') AS m
$$;
\set ECHO all

-- Nothing: no call is refused that is named to them, and what depends on a gate is not to be changed.
SET ROLE regress_complete_agent;
SELECT w.name, c.call, d.answer FROM wait AS w, stepwise.why(pg_temp.plan(w.name)) AS y,
    LATERAL (SELECT y -> 'nextCall' UNION ALL SELECT * FROM jsonb_array_elements(y -> 'alternatives')) AS c (call),
    LATERAL pg_temp.would(pg_temp.spelled(c.call)) AS d
WHERE d.answer #>> '{}' ~ '^(42|SW)' ORDER BY w.place;
SELECT w.name, n FROM wait AS w, unnest(pg_temp.functions_named(w.name)) AS n WHERE NOT EXISTS (
    SELECT FROM pg_proc AS p WHERE p.pronamespace = 'stepwise'::regnamespace AND p.proname = n AND has_function_privilege(p.oid, 'EXECUTE'));
SELECT w.name, pg_temp.functions_named(w.name), stepwise.why(pg_temp.plan(w.name)) ->> 'message' FROM wait AS w WHERE w.name ~ '^(behind|gate|prompt|review)' ORDER BY w.place;
SET ROLE regress_complete_reader;
SELECT w.name, pg_temp.functions_named(w.name) FROM wait AS w WHERE pg_temp.functions_named(w.name) IS NOT NULL;
SELECT y ->> 'message', y -> 'nextCall', y -> 'alternatives', stepwise.get_output(pg_temp.plan('held')) ->> 'message' FROM stepwise.why(pg_temp.plan('held')) AS y;
SELECT stepwise.handoff(pg_temp.plan('client')) LIKE '%wait for somebody who may.%';
RESET ROLE;
DELETE FROM wait WHERE name ~ '^(behind|gate), ';

-- ---------- to the end ----------

-- Who only follows the next calls comes to the end of each plan, unless each claim stalls at once. Who has to wait gets the claim of another ended.
CREATE FUNCTION pg_temp.follow(plan text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    call jsonb;
    answer jsonb;
    made text[] := '{}';
BEGIN
    FOR i IN 1 .. 8 LOOP
        call := stepwise.why(pg_temp.plan(plan)) -> 'nextCall';
        EXIT WHEN call = 'null';
        made := made || (call ->> 'function');
        EXECUTE 'SELECT ' || CASE WHEN i > 2 THEN replace(pg_temp.spelled(call), 'retry_step', 'skip_step') ELSE pg_temp.spelled(call) END INTO answer;
        IF answer -> 'waitingFor' -> 0 ? 'worker' THEN
            made := made || text '(submitted by the worker)';
            PERFORM stepwise.submit_step_result((answer #>> '{waitingFor,0,stepId}')::uuid, '{}', worker => answer #>> '{waitingFor,0,worker}');
        END IF;
    END LOOP;
    RETURN concat_ws(' | ', plan, array_to_string(made, ' '), (SELECT p.status FROM stepwise.plan AS p WHERE p.id = pg_temp.plan(plan)));
END $$;
SELECT pg_temp.follow(w.name) FROM wait AS w WHERE w.name <> 'stalled' ORDER BY w.place;

-- The attempt of a claim that somebody holds is nowhere told. A claim that may be the caller's own comes before it, and is named with its attempt.
SELECT pg_temp.make('two', '[{"name": "a"}, {"name": "b"}]'), pg_temp.next('two', 'anna', '1 hour');
SELECT stepwise.submit_step_result(pg_temp.step('two', 'b'), '{}') ->> 'stepStatus';
SELECT y::text ~ 'attempt', (y ->> 'retryAfterMs')::int > 3500000, stepwise.handoff(pg_temp.plan('two')) ~ 'attempt', stepwise.get_plan_context(pg_temp.plan('two')) ->> 'nextCall' ~ 'attempt'
FROM stepwise.why(pg_temp.plan('two')) AS y;
SELECT pg_temp.make('three', '[{"name": "a"}, {"name": "b"}]'), pg_temp.next('three', 'anna'), pg_temp.next('three');
SELECT y ->> 'message', y -> 'nextCall' ->> 'function', y #>> '{nextCall,arguments,step_id}' = pg_temp.step('three', 'b')::text FROM stepwise.why(pg_temp.plan('three')) AS y;
-- set_variables of a nested plan names the root
SELECT stepwise.define_workflow('{"name": "complete low", "steps": [{"name": "l"}]}') ->> 'version', pg_temp.make('high', '[{"name": "h", "workflow": "complete low"}]'), pg_temp.next('high');
SELECT stepwise.set_variables(p.id, '{"a": 1}') ->> 'rootPlanId' = p.root_id::text FROM stepwise.plan AS p WHERE p.root_id = pg_temp.plan('high') AND p.parent_step_id IS NOT NULL;

-- ---------- plans that have ended ----------

SELECT pg_temp.make('done', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.submit('done', 'a'), pg_temp.submit('done', 'b', outcome => 'failure');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('done')));
SELECT stepwise.store_output(pg_temp.plan('done'), 'All of it') ->> 'size';
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('done')) -> 'nextCall');
-- it waits for nobody
SELECT pg_temp.plain(stepwise.why(pg_temp.plan('done')), 'planId', 'since');
SELECT pg_temp.make('lost', '[{"name": "a"}]', on_failure => 'fail'), pg_temp.fail('lost', 'a');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('lost')));
SELECT pg_temp.make('left', '[{"name": "a"}]'), stepwise.cancel_plan(pg_temp.plan('left'), 'enough') ->> 'planStatus';
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('left')));
-- of a nested plan that has ended, the root goes on; and every answer about a nested plan names the root
SELECT stepwise.define_workflow('{"name": "co inner", "steps": [{"name": "x"}]}') ->> 'version';
SELECT pg_temp.make('outer', '[{"name": "h", "workflow": "co inner"}, {"name": "z"}]'), pg_temp.next('outer');
SELECT f.name, f.answer ->> 'rootPlanId' = pg_temp.plan('outer')::text AS root, f.answer -> 'nextCall' -> 'arguments' ->> 'plan_id' = pg_temp.plan('outer')::text AS goes_on
FROM (VALUES ('heartbeat', stepwise.heartbeat(pg_temp.step('co inner', 'x'))),
             ('get_next_step', stepwise.get_next_step(pg_temp.plan('co inner'))),
             ('modify_plan', stepwise.modify_plan(pg_temp.plan('co inner'), 'set_outputs', '{"outputs": {}}')),
             ('release_step', stepwise.release_step(pg_temp.step('co inner', 'x'))),
             ('submit_step_result', stepwise.submit_step_result((stepwise.get_next_step(pg_temp.plan('outer')) ->> 'stepId')::uuid, '1', attempt => 2)),
             ('ended', stepwise.get_next_step(pg_temp.plan('co inner')))) AS f (name, answer);

-- ---------- for whom it waits ----------

SELECT pg_temp.make('many', (SELECT jsonb_agg(jsonb_build_object('name', 's' || n, 'dependsOn', '[]'::jsonb) ORDER BY n) || '{"name": "z", "dependsOn": ["s1"]}' FROM generate_series(1, 12) AS n));
SELECT count(stepwise.get_next_step(pg_temp.plan('many'), 'w' || n, CASE n WHEN 1 THEN interval '1 hour' END)) FROM generate_series(1, 12) AS n;
SELECT a ->> 'status', a -> 'inProgressCount', a -> 'failedCount', a -> 'pendingCount', jsonb_array_length(a -> 'waitingFor'), a -> 'waitingForCount',
       (a ->> 'retryAfterMs')::int BETWEEN 3500000 AND 3600001, pg_temp.plain(a -> 'waitingFor' -> 0), a ->> 'message'
FROM stepwise.get_next_step(pg_temp.plan('many')) AS a;
-- in a strict sequence a claim that stalls is handed out again
SELECT stepwise.create_plan('strict', 'test', '[{"name": "a"}, {"name": "b"}]', strict_order => true, stall_after => '10 minutes') ->> 'status', pg_temp.next('strict', 'anna');
SELECT a ->> 'status', (a ->> 'retryAfterMs')::int BETWEEN 500000 AND 600001 FROM stepwise.get_next_step(pg_temp.plan('strict'), 'bert') AS a;
-- several people are asked, and the oldest question is told; a lease may end before they answer
SELECT pg_temp.make('asks', '[{"name": "a", "prompt": "First?", "dependsOn": []}, {"name": "b", "prompt": "Second?", "dependsOn": []}, {"name": "c", "dependsOn": []}]');
SELECT pg_temp.next('asks', 'anna', '1 hour');
SELECT a ->> 'status', a ->> 'prompt', a -> 'waitingCount', a ? 'retryAfterMs', a -> 'nextCall' -> 'arguments' -> 'checkpoint_id' = a -> 'checkpointId' FROM stepwise.get_next_step(pg_temp.plan('asks'), 'bert') AS a;

-- ---------- the attempt before ----------

CREATE FUNCTION pg_temp.again(plan text, lease interval = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', a ->> 'name', a ->> 'attempt', a ->> 'goal', a ->> 'previousError', a ->> 'previousResult', a ->> 'feedback')
    FROM stepwise.get_next_step(pg_temp.plan(plan), lease => $2) AS a
$$;
SELECT pg_temp.make('tries', '[{"name": "a"}]', on_failure => 'pause'), pg_temp.again('tries');
SELECT stepwise.fail_step(pg_temp.step('tries', 'a'), 'no route', code => 'ENET') ->> 'stepStatus', stepwise.retry_step(pg_temp.step('tries', 'a')) ->> 'stepStatus';
SELECT pg_temp.again('tries');
-- a claim that is given back is no error; the last one is still told
SELECT stepwise.release_step(pg_temp.step('tries', 'a'), 2) ->> 'stepStatus', pg_temp.again('tries', '1 microsecond'), pg_sleep(0.01);
SELECT pg_temp.again('tries');
SELECT stepwise.reclaim_stalled('0', pg_temp.plan('tries')) -> 'count', pg_temp.again('tries');
SELECT stepwise.request_user_review(pg_temp.step('tries', 'a'), 'Look', result => '{"n": 1}', attempt => 5) ->> 'stepStatus';
SELECT stepwise.submit_user_decision(pg_temp.waiting('tries', 'a'), 'modify', 'more') ->> 'stepStatus', pg_temp.again('tries');
SELECT pg_temp.submit('tries', 'a');
SELECT s.previous_error IS NULL FROM stepwise.step AS s WHERE s.id = pg_temp.step('tries', 'a');
-- what a tool says beside its message is kept
SELECT pg_temp.make('said', '[{"name": "a", "tool": "co_broken"}, {"name": "b"}]', on_failure => 'pause'), stepwise.run(pg_temp.plan('said')) ->> 'task_status';
SELECT stepwise.task_variables(pg_temp.plan('said')) -> '_workflow.result.a';
SELECT stepwise.retry_step(pg_temp.step('said', 'a')) ->> 'stepStatus', pg_temp.again('said');

-- ---------- after a change, the answer says what to call ----------

SELECT pg_temp.make('moves', '[{"name": "a"}, {"name": "b", "tool": "theirs"}, {"name": "c", "tool": "co_fine"}, {"name": "d", "prompt": "Sure?"}]');
SELECT pg_temp.next('moves');
SELECT f.name, f.answer -> 'nextCall' ->> 'function' FROM (VALUES
    ('release_step', stepwise.release_step(pg_temp.step('moves', 'a'))),
    ('fail_step', stepwise.fail_step(pg_temp.step('moves', 'a'), 'no')),
    ('again', stepwise.fail_step(pg_temp.step('moves', 'a'), 'no')),
    ('retry_step', stepwise.retry_step(pg_temp.step('moves', 'a'))),
    ('skip_step', stepwise.skip_step(pg_temp.step('moves', 'a'))),
    ('record_tool_result', stepwise.record_tool_result(pg_temp.plan('moves'), 'theirs', '1')),
    ('modify_plan', stepwise.modify_plan(pg_temp.plan('moves'), 'set_outputs', '{"outputs": {}}')),
    ('get_next_step', stepwise.get_next_step(pg_temp.plan('moves'))),
    ('request_user_review', stepwise.request_user_review(pg_temp.step('moves', 'c'), 'Look', result => '1')),
    ('submit_user_decision', stepwise.submit_user_decision(pg_temp.waiting('moves', 'c'), 'approve'))) AS f (name, answer);
-- with run_tools, what is left after the run
SELECT pg_temp.make('moves2', '[{"name": "a"}, {"name": "c", "tool": "co_fine"}, {"name": "d", "prompt": "Sure?"}]'), pg_temp.next('moves2');
SELECT stepwise.request_user_review(pg_temp.step('moves2', 'a'), 'Look') ->> 'stepStatus';
SELECT stepwise.submit_user_decision(pg_temp.waiting('moves2', 'a'), 'approve', run_tools => true) -> 'nextCall' ->> 'function';

-- ---------- conditions that cannot be decided ----------

SELECT pg_temp.make('branches', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', '[{"afterStep": "a", "conditionExpression": "confidence < 0.5", "ifTrueAction": "fail"},
    {"afterStep": "a", "conditionExpression": "result.n > 1", "ifTrueAction": "fail"},
    {"afterStep": "b", "conditionExpression": "result.n > 1", "ifTrueAction": "fail"}, {"afterStep": "b", "conditionExpression": "true", "ifTrueAction": "continue"}]');
SELECT stepwise.submit_step_result(pg_temp.step('branches', 'a'), '{"n": "one"}') -> 'branch';
SELECT stepwise.submit_step_result(pg_temp.step('branches', 'b'), '{}') -> 'branch';
-- a repeated call is answered in the same way
SELECT a -> 'duplicate', a -> 'branch' FROM unnest('{a,b}'::text[], '{"{\"n\": \"one\"}","{}"}'::jsonb[]) AS s (name, result), stepwise.submit_step_result(pg_temp.step('branches', s.name), s.result) AS a;
SELECT a.detail -> 'position', a.detail ->> 'undecided' FROM stepwise.audit AS a WHERE a.plan_id = pg_temp.plan('branches') AND a.detail ? 'undecided' ORDER BY a.id;

-- ---------- what the caller may do ----------

SET client_min_messages = error;
DROP ROLE IF EXISTS regress_complete;
RESET client_min_messages;
CREATE ROLE regress_complete;
SELECT stepwise.add_member('regress_complete', stepwise.current_tenant()) ->> 'added', stepwise.grant_agent('regress_complete', false) ->> 'decide';
GRANT USAGE ON SCHEMA complete TO regress_complete;
CREATE FUNCTION pg_temp.named(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', plan, w ->> 'waitingOn', w ->> 'message', w -> 'nextCall' ->> 'function', (SELECT string_agg(c ->> 'function', ' ') FROM jsonb_array_elements(w -> 'alternatives') AS c))
    FROM stepwise.why(pg_temp.plan(plan)) AS w
$$;
-- a gate is neither decided nor passed by another way, and no call that would do that is named
SELECT pg_temp.make('r prompt', '[{"name": "a", "prompt": "Sure?"}]'), pg_temp.next('r prompt');
SELECT pg_temp.make('r gate', '[{"name": "a", "tool": "co_fine", "review": {"when": "before", "summary": "Go?"}}]'), pg_temp.next('r gate');
SELECT pg_temp.make('r changes', '[{"name": "a", "tool": "co_fine", "review": {"when": "before"}}]'), pg_temp.next('r changes');
SELECT pg_temp.prepare('r changes', 'modify') ->> 'stepStatus';
SELECT pg_temp.make('r behind', '[{"name": "p", "prompt": "Sure?"}, {"name": "a", "instructions": "See ${inputs.o.p}"}]', inputs => '{"o": {}}'), pg_temp.next('r behind');
SELECT stepwise.resume(pg_temp.waiting('r behind', 'p'), '1') ->> 'status', pg_temp.next('r behind');
SELECT pg_temp.make('r asks', '[{"name": "a", "prompt": "See ${inputs.o.p}"}]', inputs => '{"o": {}}'), pg_temp.next('r asks');
SELECT pg_temp.make('r broken', '[{"name": "a", "tool": "co_broken", "review": {"when": "after"}}]', on_failure => 'pause'), stepwise.run(pg_temp.plan('r broken')) ->> 'task_status';
SET ROLE regress_complete;
SELECT pg_temp.named('r ' || w) FROM unnest('{prompt,gate,changes,behind,asks,broken}'::text[]) AS w;
RESET ROLE;
SELECT pg_temp.named('r ' || w) FROM unnest('{prompt,gate,changes,behind,asks,broken}'::text[]) AS w;
-- who has a part in a step that wants another reviewer waits for that one
SELECT stepwise.grant_agent('regress_complete') ->> 'decide';
SELECT pg_temp.make('r part', '[{"name": "a"}]', separate_reviewer => true), pg_temp.next('r part');
SELECT stepwise.request_user_review(pg_temp.step('r part', 'a'), 'Look') -> 'nextCall' ->> 'function', pg_temp.named('r part');
SET ROLE regress_complete;
SELECT pg_temp.named('r part');
RESET ROLE;
DROP OWNED BY regress_complete;
SELECT stepwise.remove_member('regress_complete', stepwise.current_tenant()) ->> 'removed';
DROP ROLE regress_complete;

-- ---------- names that are not meant, or meant twice ----------

SELECT w ->> 'path', w ->> 'message', w ->> 'hint' FROM stepwise.validate_definition('{"name": "w", "steps": [{"tool": "co_fin"}, {"tool": "state-read"}, {"tool": "co_fine"}, {"tool": "unlike any"}]}') AS a,
    jsonb_array_elements(a -> 'warnings') AS w;
SELECT stepwise.define_workflow('{"name": "co twice", "steps": [{"name": "go", "tool": "theirs"}, {"name": "on"}]}') ->> 'version';
SELECT pg_temp.make('twice', '[{"name": "l", "workflow": "co twice", "dependsOn": []}, {"name": "r", "workflow": "co twice", "dependsOn": []}]'), stepwise.run(pg_temp.plan('twice')) ->> 'task_status';
SELECT pg_temp.try(format('stepwise.record_tool_result(%L, NULL, %L, step_name => %L) ->> %L', pg_temp.plan('twice'), '1', 'go', 'stepStatus'));
SELECT stepwise.record_tool_result(s.plan_id, NULL, '1', step_name => 'go') ->> 'stepStatus' FROM stepwise.step AS s WHERE s.root_id = pg_temp.plan('twice') AND s.name = 'go' ORDER BY s.id LIMIT 1;
-- the repeated call reaches the same step; another result the one that is left
SELECT stepwise.record_tool_result(pg_temp.plan('twice'), NULL, r::text::jsonb, step_name => 'go') -> 'duplicate' FROM generate_series(1, 2) AS r;
SELECT array_agg(s.result ORDER BY s.id) FROM stepwise.step AS s WHERE s.root_id = pg_temp.plan('twice') AND s.name = 'go';

-- ---------- nested plans ----------

-- what is told of a nested plan names its root; a step of a workflow without a description has the goal of the root
SELECT stepwise.define_workflow('{"name": "complete nested", "steps": [{"name": "i"}]}') ->> 'version';
SELECT pg_temp.make('c root', '[{"name": "h", "workflow": "complete nested"}]');
SELECT a ->> 'goal', a ->> 'rootPlanId' = pg_temp.plan('c root')::text FROM stepwise.get_next_step(pg_temp.plan('c root')) AS a;
SELECT f, (stepwise.call(f, jsonb_build_object('planId', pg_temp.plan('complete nested'))) ->> 'rootPlanId')::uuid = pg_temp.plan('c root')
FROM unnest('{why,get_plan_status,get_plan_context,get_next_step}'::text[]) AS f;
SELECT (stepwise.get_step_context(pg_temp.step('complete nested', 'i')) ->> 'rootPlanId')::uuid = pg_temp.plan('c root'),
       (stepwise.log_skill_execution('complete', 'started', plan_id => pg_temp.plan('complete nested')) ->> 'rootPlanId')::uuid = pg_temp.plan('c root'),
       stepwise.why(pg_temp.plan('c root')) ? 'rootPlanId', stepwise.get_plan_status(pg_temp.plan('c root')) ? 'rootPlanId';

SELECT * FROM pg_temp.unsound();
SELECT count(stepwise.drop_tool(t)) FROM unnest('{co_fine,co_broken,co_again,co_strict}'::text[]) AS t;
SELECT stepwise.drop_resource('co:*') ->> 'dropped';
SET client_min_messages = error;
DROP SCHEMA complete CASCADE;
