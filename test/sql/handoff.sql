-- why and handoff for each pause reason, for plans that wait for nobody, and for plans that have ended.

\set ECHO none
\i test/tools.sql
\set ECHO all

CREATE SCHEMA regress_handoff;
GRANT USAGE ON SCHEMA regress_handoff TO PUBLIC;
SET search_path = regress_handoff;

CREATE FUNCTION plan(steps jsonb, on_failure text = 'continue', inputs jsonb = '{}') RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('deploy', 'Bring it out', steps, on_failure => on_failure, inputs => inputs) ->> 'planId')::uuid
$$;
-- Replace ids, which differ in each run.
CREATE FUNCTION pg_temp.veil(text) RETURNS text LANGUAGE sql AS $$
    SELECT regexp_replace($1, '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 'ID', 'g')
$$;
-- Run a plan, then show why and handoff. The time must be within the run. The call must exist and have these arguments.
CREATE FUNCTION pg_temp.tell(id uuid, run boolean = true) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    w jsonb;
BEGIN
    IF run THEN
        PERFORM stepwise.run(id);
    END IF;
    w := stepwise.why(id);
    ASSERT (w ->> 'since')::timestamptz BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp(), 'since';
    ASSERT w -> 'reason' = coalesce((SELECT p.pause_reason FROM stepwise.plan AS p WHERE p.id = tell.id), 'null'), 'reason';
    ASSERT w -> 'nextCall' = 'null' OR EXISTS (
        SELECT FROM pg_proc AS p WHERE p.pronamespace = 'stepwise'::regnamespace AND p.proname = w -> 'nextCall' ->> 'function'
        AND p.proargnames @> ARRAY(SELECT jsonb_object_keys(w -> 'nextCall' -> 'arguments'))), 'nextCall';
    RETURN pg_temp.veil(format(E'%s | %s | %s\n%s', w ->> 'waitingOn', w -> 'reason' ->> 'type', w -> 'nextCall', stepwise.handoff(id)));
END $$;
CREATE FUNCTION step_id(plan uuid, named text) RETURNS uuid LANGUAGE sql AS $$ SELECT s.id FROM stepwise.step AS s WHERE s.plan_id = $1 AND s.name = $2 $$;
-- Run a plan, and make the call that why names without changes. Show the reason, the call, the state of its step, and the next run.
CREATE FUNCTION pg_temp.follow(id uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    w jsonb;
    answer jsonb;
BEGIN
    PERFORM stepwise.run(id);
    w := stepwise.why(id);
    EXECUTE format('SELECT stepwise.%I(%s)', w -> 'nextCall' ->> 'function', (
        SELECT string_agg(format('%I => %L', key, CASE WHEN key IN ('result', 'response') THEN value::text ELSE value #>> '{}' END), ', ')
        FROM jsonb_each(w -> 'nextCall' -> 'arguments'))) INTO answer;
    RETURN concat_ws(' | ', w -> 'reason' ->> 'type', w -> 'nextCall' ->> 'function', answer ->> 'stepStatus',
        (SELECT coalesce(r -> 'pause_reason' ->> 'type', r ->> 'task_status') FROM stepwise.run(id) AS r));
END $$;

CREATE FUNCTION say(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT a';
CREATE FUNCTION fail(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it failed'; END $$;
SELECT stepwise.register_tool('say', 'say(jsonb)') ->> 'name', stepwise.register_tool('fail', 'fail(jsonb)') ->> 'name',
    stepwise.register_tool('try_again', 'fail(jsonb)', retryable => true) ->> 'name', stepwise.register_tool('ship', 'say(jsonb)', '{"required": ["zone", "config"], "properties": {"zone": {"enum": ["a"]}}}') ->> 'name';

-- ---------- plans that are not blocked ----------

SELECT pg_temp.tell(plan('[{"name": "a", "tool": "say", "arguments": {"x": "${inputs.x}"}}, {"name": "b", "tool": "mine"}]', inputs => '{"x": 1}'), false);
SELECT pg_temp.tell(plan('[{"name": "a", "instructions": "think"}]'), false);
SELECT plan('[{"name": "a", "instructions": "think about ${inputs.x}"}]', inputs => '{"x": "this"}') AS id \gset
SELECT stepwise.get_next_step(:'id', 'worker 7') ->> 'name';
SELECT pg_temp.tell(:'id', false);
SELECT pg_sleep(0.05);
SELECT stepwise.get_plan_status(:'id', stall_after => '10 milliseconds') ->> 'status';
SELECT pg_temp.tell(:'id', false);

-- ---------- each pause reason ----------

SELECT pg_temp.tell(plan('[{"name": "a", "tool": "say", "arguments": {"x": 5, "y": "${inputs.o.p}", "z": "${plan.name}"}}, {"name": "b", "tool": "mine", "arguments": {"q": "see ${steps.a.outputs.x}"}}]', inputs => '{"o": {}}'));
SELECT pg_temp.tell(plan('[{"name": "a", "tool": "ship", "arguments": {"zone": "c"}}]'));
SELECT pg_temp.tell(plan('[{"name": "a", "tool": "fail", "arguments": {"x": 1}}, {"name": "b", "tool": "say"}]', 'pause'));
SELECT pg_temp.tell(plan('[{"name": "a", "tool": "try_again"}]', 'pause'));
SELECT pg_temp.tell(plan('[{"name": "a", "resources": ["none://x"]}, {"name": "b", "tool": "mine"}]', 'pause'));
SELECT pg_temp.tell(plan('[{"name": "a", "tool": "fail", "binding": "made"}, {"name": "b", "tool": "say", "arguments": {"x": "${bindings.made.y}"}}]'));
SELECT pg_temp.tell(plan('[{"name": "a", "tool": "say", "condition": "false"}, {"name": "b", "tool": "say", "arguments": {"x": "${steps.a.outputs.y}"}}]'));
SELECT pg_temp.tell(plan('[{"name": "a", "tool": "say", "arguments": {"n": 1}}, {"name": "b", "tool": "mine", "arguments": {"x": "${steps.a.outputs.n}"}, "instructions": "mind ${steps.a.outputs.n}"},
    {"name": "c", "tool": "say", "arguments": {"x": "${steps.b.outputs.url}"}}, {"name": "d", "prompt": "Keep ${steps.b.outputs.url}?"}, {"name": "e", "instructions": "write it up"}, {"name": "f", "resources": ["docs://x"]}, {"name": "g"}]'));
SELECT pg_temp.tell(plan('[{"name": "a", "instructions": "think about ${inputs.x}"}]', inputs => '{"x": "this"}'));
SELECT pg_temp.tell(plan('[{"name": "a", "prompt": "Shall we?"}]'));
SELECT plan('[{"name": "a", "tool": "say"}]') AS id \gset
SELECT stepwise.get_next_step(:'id') ->> 'name', stepwise.request_user_review(step_id(:'id', 'a'), 'Look at it') ->> 'planStatus';
SELECT pg_temp.tell(:'id');
SELECT pg_temp.tell(plan('[{"name": "a", "tool": "say", "condition": "${inputs.x} > 1"}]', inputs => '{"x": "one"}'));

-- ---------- steps that only the engine can do: why proposes to skip them ----------

SELECT stepwise.define_workflow('{"name": "need", "inputs": {"n": {"type": "integer"}}, "steps": [{"name": "in", "tool": "say"}]}') ->> 'name';
SELECT plan('[{"name": "k", "tool": "say"}, {"name": "u", "workflow": "need", "arguments": {"n": "${steps.k.outputs.zip}"}}, {"name": "z", "tool": "say"}]') AS id \gset
SELECT pg_temp.tell(:'id');
SELECT stepwise.get_plan_context(:'id') -> 'nextCall' ->> 'function';
-- an added step before it does its work
SELECT stepwise.modify_plan(:'id', 'add_steps', '{"steps": [{"name": "u2", "workflow": "need", "arguments": {"n": 7}}], "insertAfterOrder": 2}') ->> 'planStatus';
SELECT pg_temp.follow(:'id');
SELECT s.name, s.status, s.message FROM stepwise.step AS s WHERE s.plan_id = :'id' ORDER BY s.step_order;
-- the step that produces the value was skipped or failed: a failed one is retried
SELECT pg_temp.follow(plan('[{"name": "k", "tool": "say", "condition": "false"}, {"name": "u", "workflow": "need", "arguments": {"n": "${steps.k.outputs.n}"}}, {"name": "z", "tool": "say"}]'));
SELECT pg_temp.follow(plan('[{"name": "k", "tool": "fail"}, {"name": "u", "workflow": "need", "arguments": {"n": "${steps.k.outputs.n}"}}, {"name": "z", "tool": "say"}]'));
-- a prompt with a missing value, and undecided conditions
SELECT pg_temp.follow(plan('[{"name": "ask", "prompt": "Keep ${inputs.o.p}?"}, {"name": "z", "tool": "say"}]', inputs => '{"o": {}}'));
SELECT pg_temp.follow(plan('[{"name": "ask", "prompt": "Sure?", "condition": "${inputs.x} > 1"}, {"name": "z", "tool": "say"}]', inputs => '{"x": "one"}'));
SELECT plan('[{"name": "u", "workflow": "need", "arguments": {"n": 1}, "condition": "${inputs.x} > 1"}, {"name": "z", "tool": "say"}]', inputs => '{"x": "one"}') AS id \gset
SELECT pg_temp.tell(:'id');
SELECT pg_temp.follow(:'id');

-- ---------- nested ----------

SELECT stepwise.define_workflow('{"name": "inner", "steps": [{"name": "go", "tool": "mine", "arguments": {"x": 1}}, {"name": "on", "tool": "say"}]}') ->> 'name';
SELECT plan('[{"name": "outer", "workflow": "inner"}, {"name": "again", "workflow": "inner", "arguments": {}}]') AS id \gset
SELECT pg_temp.tell(:'id');
SELECT stepwise.record_tool_result(:'id', 'mine', '1') ->> 'stepStatus';
SELECT pg_temp.tell(:'id', false);
-- asked for the nested plan itself
SELECT pg_temp.tell(id, false) FROM stepwise.plan WHERE root_id = :'id' AND depth = 1;

-- several nested plans that are blocked at once: the open work of each
SELECT stepwise.define_workflow('{"name": "deep", "steps": [{"name": "far", "workflow": "inner"}, {"name": "near", "tool": "say"}]}') ->> 'name';
SELECT plan('[{"name": "l", "workflow": "inner", "dependsOn": []}, {"name": "r", "workflow": "deep", "dependsOn": []}, {"name": "z", "tool": "say", "dependsOn": ["l", "r"]}]') AS id \gset
SELECT pg_temp.tell(:'id');
SELECT pg_temp.follow(:'id');
SELECT pg_temp.tell(:'id');

-- a step of a nested plan did not produce a value: a step of the same name outside does not matter
SELECT stepwise.define_workflow(format('{"name": "made_%1$s", "onFailure": "%1$s", "steps": [{"name": "b", "tool": "fail"}, {"name": "z", "tool": "say"}]}', f)::jsonb) ->> 'name'
FROM unnest('{continue,fail}'::text[]) AS f;
SELECT plan('[{"name": "b", "tool": "fail"}, {"name": "k", "workflow": "made_continue"}, {"name": "p", "tool": "say", "arguments": {"v": "${steps.k.steps.b.outputs.v}"}}]') AS id \gset
SELECT stepwise.run(:'id') -> 'pause_reason';
SELECT pg_temp.veil(stepwise.why(:'id') ->> 'nextCall');
SELECT pg_temp.follow(:'id');
-- if the nested plan has failed, the step that holds it is retried
SELECT plan('[{"name": "b", "tool": "fail"}, {"name": "k", "workflow": "made_fail"}, {"name": "p", "tool": "say", "arguments": {"v": "${steps.k.steps.b.outputs.v}"}}]') AS id \gset
SELECT stepwise.run(:'id') ->> 'task_status', (stepwise.why(:'id') #>> '{nextCall,arguments,step_id}')::uuid = step_id(:'id', 'k');
SELECT pg_temp.follow(:'id');

-- ---------- plans that have ended ----------

SELECT pg_temp.tell((stepwise.create_plan('done', 'Be done', '[{"name": "a", "tool": "say", "arguments": {"x": 1}}]', outputs => '{"x": "${steps.a.outputs.x}"}') ->> 'planId')::uuid);
SELECT pg_temp.tell(plan('[{"name": "a", "tool": "fail"}, {"name": "b", "tool": "say"}]', 'fail'));
SELECT plan('[{"name": "a", "tool": "say"}]') AS id \gset
SELECT stepwise.cancel_plan(:'id', 'no longer wanted') ->> 'planStatus';
SELECT pg_temp.tell(:'id');

-- ---------- a refused call has a correct detail, and a hint with a call that works ----------

CREATE FUNCTION pg_temp.refused(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    EXECUTE statement;
    RETURN 'not refused';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', sqlstate || ' ' || sqlerrm, detail, regexp_replace(hint, '[0-9a-f]{8}-[0-9a-f-]{27}', 'ID', 'g'));
END $$;
SELECT plan('[{"name": "a", "tool": "mine"}, {"name": "h", "workflow": "inner"}, {"name": "ask", "prompt": "Sure?"}]') AS id \gset
SELECT pg_temp.refused(format('SELECT stepwise.request_user_review(%L, %L)', step_id(:'id', s), 'Look')) FROM unnest('{h,ask}'::text[]) AS s;
SELECT pg_temp.refused(format('SELECT stepwise.heartbeat(%L, 0)', step_id(:'id', 'a')));
SELECT stepwise.get_next_step(:'id') ->> 'name';
SELECT pg_temp.refused(format('SELECT stepwise.retry_step(%L)', step_id(:'id', 'a')));
SELECT stepwise.release_step(step_id(:'id', 'a')) ->> 'stepStatus', stepwise.get_next_step(:'id') ->> 'name', stepwise.request_user_review(step_id(:'id', 'a'), 'Look', attempt => 2) ->> 'checkpointId' IS NOT NULL;
SELECT pg_temp.refused(format(call, step_id(:'id', 'a'))) FROM unnest(ARRAY['SELECT stepwise.submit_step_result(%L, ''1'')', 'SELECT stepwise.release_step(%L)']) AS call;
SELECT pg_temp.refused(format('SELECT stepwise.record_tool_result(%L, %L, %L, step_name => %L)', :'id', 'mine', '1', 'a'));
SELECT stepwise.submit_user_decision(checkpoint_id, 'approve') ->> 'stepStatus' FROM stepwise.checkpoints WHERE plan_id = :'id';
-- a step that holds a nested plan: work on the steps of that plan, or end the step
SELECT stepwise.get_next_step(:'id') -> 'path';
SELECT pg_temp.refused(format(call, step_id(:'id', 'h'))) FROM unnest(ARRAY['SELECT stepwise.request_user_review(%L, ''Look'')', 'SELECT stepwise.retry_step(%L)']) AS call;
SELECT stepwise.skip_step(step_id(:'id', 'h')) ->> 'stepStatus';
-- if the transition is not allowed, the detail lists the allowed ones
SELECT pg_temp.refused(format('SELECT stepwise.fail_step(%L, %L)', step_id(:'id', 'h'), 'no'));

-- ---------- many steps, and invalid calls ----------

SELECT pg_temp.tell(plan((SELECT jsonb_agg(jsonb_build_object('name', 's' || n, 'tool', 'mine')) FROM generate_series(1, 25) AS n)));
SELECT pg_temp.try(format('SELECT stepwise.%s(%L)', f, id)) FROM unnest('{why,handoff}'::text[]) AS f, unnest('{NULL,00000000-0000-7000-8000-000000000000}'::uuid[]) AS id;

SELECT count(stepwise.drop_tool(name)) > 0 FROM stepwise.tool WHERE tenant = stepwise.current_tenant() AND coalesce(function, 'regress_handoff.') LIKE 'regress_handoff.%';
DROP SCHEMA regress_handoff CASCADE;
