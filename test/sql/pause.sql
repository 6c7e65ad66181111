-- Why a run stops: each pause reason with its exact keys, the state of the blocked step, of later steps and of the plan, and how
-- the plan continues. Test "resource" has the errors of resources.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

CREATE SCHEMA regress_pause;
GRANT USAGE ON SCHEMA regress_pause TO PUBLIC;
SET search_path = regress_pause;

-- The answer of a run without the id.
CREATE FUNCTION told(answer jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', answer ->> 'task_status',
        (SELECT string_agg(s ->> 'name' || ' ' || (s ->> 'status'), ', ') FROM jsonb_array_elements(answer -> 'steps') AS s))
$$;
CREATE FUNCTION plan(steps jsonb, on_failure text = 'continue', inputs jsonb = '{}') RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('plan', 'to be run', steps, on_failure => on_failure, inputs => inputs) ->> 'planId')::uuid
$$;
-- Run a plan. Show the answer, the status, and the reason without the checkpoint's id. Check that all functions show the same reason.
CREATE FUNCTION pg_temp.run(id uuid, OUT told text, OUT plan text, OUT reason jsonb, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb := stepwise.run(run.id);
BEGIN
    told := told(answer);
    SELECT p.status, p.pause_reason INTO plan, reason FROM stepwise.plan AS p WHERE p.id = run.id;
    same := reason IS NOT DISTINCT FROM answer -> 'pause_reason'
        AND reason IS NOT DISTINCT FROM stepwise.task_variables(run.id) -> '_workflow.pause_reason'
        AND (SELECT jsonb_agg(s - 'tool') FROM jsonb_array_elements(stepwise.task_variables(run.id) -> '_workflow.progress' -> 'steps') AS s) = answer -> 'steps'
        AND stepwise.run(run.id) = answer;
    IF reason ? 'checkpointId' THEN
        same := same AND (SELECT count(*) = 1 FROM stepwise.checkpoint AS k WHERE k.id = (reason ->> 'checkpointId')::uuid);
        reason := jsonb_set(reason, '{checkpointId}', '"an id"');
    END IF;
END $$;
CREATE FUNCTION pg_temp.step_id(plan uuid, named text) RETURNS uuid LANGUAGE sql AS $$ SELECT s.id FROM stepwise.step AS s WHERE s.plan_id = $1 AND s.name = $2 $$;

CREATE FUNCTION say(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT a';
CREATE FUNCTION fail(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it failed'; END $$;
SELECT stepwise.register_tool('say', 'say(jsonb)') ->> 'name', stepwise.register_tool('fail', 'fail(jsonb)') ->> 'name',
    stepwise.register_tool('deploy', 'say(jsonb)', '{"type": "object", "required": ["zone", "config", "region"],
        "properties": {"zone": {"type": "string", "enum": ["a", "b"]}, "config": {"type": "object"}, "region": {"type": ["string", "null"]},
                       "count": {"type": "integer"}, "size": {"type": "number"}, "any": true}}') ->> 'name';

-- ---------- unresolvableParams names the argument at fault, not the first argument ----------

SELECT plan('[{"name": "make", "tool": "say", "arguments": {"x": 1}},
              {"name": "use", "tool": "say", "arguments": {"a": "${steps.make.outputs.x}", "b": {"c": ["${inputs.none.deeper}"]}, "d": "${plan.name}"}},
              {"name": "last", "tool": "say"}]', inputs => '{"none": {}}') AS id \gset
SELECT * FROM pg_temp.run(:'id');
SELECT status, attempt, message FROM stepwise.step WHERE plan_id = :'id' AND name = 'use';
SELECT plan('[{"name": "use", "tool": "say", "instructions": "go to ${inputs.url.host}"}]', inputs => '{"url": "x"}') AS id \gset
SELECT * FROM pg_temp.run(:'id');

-- ---------- schemaMismatch: all missing fields in the order of the schema, and wrong types ----------

SELECT plan('[{"name": "ship", "tool": "deploy", "arguments": {"count": "${inputs.count}"}}, {"name": "last", "tool": "say"}]', inputs => '{"count": 1.5}') AS id \gset
SELECT * FROM pg_temp.run(:'id');
SELECT message FROM stepwise.step WHERE plan_id = :'id' AND name = 'ship';
SELECT arguments, r.reason - 'type' - 'blockedStep' - 'suggestedTool', r.told
FROM unnest(ARRAY['{"zone": "a", "config": {}, "region": null, "count": 2.0, "size": 1.5, "any": [1], "more": 1}', '{"zone": "c", "config": {}, "region": "x"}',
                  '{"zone": 1, "config": [], "region": 7}', '{"zone": "b", "config": {}, "region": "x", "size": "1"}']::jsonb[]) AS arguments,
     plan(jsonb_build_array(jsonb_build_object('name', 'ship', 'tool', 'deploy', 'arguments', arguments))) AS id, pg_temp.run(id) AS r;

-- ---------- clientTool: a tool that is not in the database, with resolved arguments and instructions ----------

SELECT stepwise.register_tool('call', description => 'calls somebody', input_schema => '{"required": ["never"]}') ->> 'inDatabase';
SELECT r.told, r.plan, r.reason, r.same
FROM unnest(ARRAY['{"tool": "unheard_of", "arguments": {"x": "${inputs.x}"}}', '{"tool": "call", "instructions": "mind ${inputs.x.y}", "arguments": {"a": 1}}',
                  '{"instructions": "think about ${inputs.x}"}', '{}']::jsonb[]) AS step,
     plan(jsonb_build_array('{"name": "first", "tool": "say"}'::jsonb, step || '{"name": "mine"}', '{"name": "last", "tool": "say"}'::jsonb), inputs => '{"x": {"y": "it"}}') AS id,
     pg_temp.run(id) AS r;
-- with dependencies, only its dependents wait
SELECT r.* FROM plan('[{"name": "mine", "tool": "unheard_of"}, {"name": "after", "tool": "say", "dependsOn": ["mine"]}, {"name": "other", "tool": "say"},
    {"name": "yours", "tool": "unheard_of"}, {"name": "end", "tool": "say", "dependsOn": ["other"]}]') AS id, pg_temp.run(id) AS r;
-- an agent that asks gets the step, and the reason is cleared
SELECT plan('[{"name": "mine", "tool": "unheard_of", "arguments": {"x": 1}}, {"name": "last", "tool": "say"}]') AS id \gset
SELECT r.reason ->> 'type' FROM pg_temp.run(:'id') AS r;
SELECT n ->> 'status', n ->> 'name', n ->> 'tool', n ->> 'arguments', n ->> 'attempt' FROM stepwise.get_next_step(:'id') AS n;
SELECT pause_reason FROM stepwise.plan WHERE id = :'id';
-- once it is registered, a run does it
SELECT plan('[{"name": "mine", "tool": "late"}]') AS id \gset
SELECT r.reason ->> 'type' FROM pg_temp.run(:'id') AS r;
SELECT stepwise.register_tool('late', 'say(jsonb)') ->> 'name';
SELECT r.* FROM pg_temp.run(:'id') AS r;

-- ---------- toolError, and a step that failed in another way under pause ----------

SELECT plan('[{"name": "bad", "tool": "fail"}, {"name": "last", "tool": "say"}]', 'pause') AS id \gset
SELECT * FROM pg_temp.run(:'id');
SELECT plan('[{"name": "bad", "tool": "say", "retryable": true}, {"name": "last", "tool": "say"}]', 'pause') AS id \gset
SELECT stepwise.fail_step(pg_temp.step_id(:'id', 'bad'), 'an agent says so') ->> 'stepStatus';
SELECT * FROM pg_temp.run(:'id');

-- ---------- unresolvedDependency: the producer failed, or was skipped ----------

SELECT plan('[{"name": "make", "tool": "fail", "binding": "made"}, {"name": "use", "tool": "say", "arguments": {"a": 1, "x": "${bindings.made.y}"}}, {"name": "last", "tool": "say"}]') AS id \gset
SELECT * FROM pg_temp.run(:'id');
SELECT status, message FROM stepwise.step WHERE plan_id = :'id' AND name = 'use';
-- the producer is retried: nothing is blocked until it fails again
SELECT stepwise.retry_step(pg_temp.step_id(:'id', 'make')) ->> 'stepStatus';
SELECT pause_reason, paused FROM stepwise.plan WHERE id = :'id';
SELECT r.reason ->> 'type' FROM pg_temp.run(:'id') AS r;
-- under continue a failed step takes no result: it is kept as a variable
SELECT stepwise.record_tool_result(:'id', 'fail', '{"y": 7}') -> 'matched';
-- the step is retried, and the client supplies the missing result
SELECT stepwise.retry_step(pg_temp.step_id(:'id', 'make')) ->> 'stepStatus';
SELECT told(stepwise.record_tool_result(:'id', 'fail', '{"y": 7}'));
SELECT * FROM pg_temp.run(:'id');
SELECT result FROM stepwise.step WHERE plan_id = :'id' AND name = 'use';
SELECT r.* FROM plan('[{"name": "make", "tool": "say", "condition": "${inputs.go}"}, {"name": "use", "tool": "unheard_of", "arguments": {"x": "${steps.make.outputs}"}}]',
    inputs => '{"go": false}') AS id, pg_temp.run(id) AS r;

-- ---------- inputRequired and reviewRequested ----------

SELECT plan('[{"name": "ask", "prompt": "Keep it in ${inputs.region}?"}, {"name": "use", "tool": "say", "arguments": {"x": "${steps.ask.outputs.response}"}}]', inputs => '{"region": "eu"}') AS id \gset
SELECT * FROM pg_temp.run(:'id');
SELECT stepwise.resume(id, '"yes"') ->> 'status' FROM stepwise.checkpoint WHERE plan_id = :'id';
SELECT * FROM pg_temp.run(:'id');
SELECT plan('[{"name": "check", "tool": "say"}, {"name": "last", "tool": "say"}]') AS id \gset
SELECT stepwise.get_next_step(:'id') ->> 'name';
SELECT stepwise.request_user_review(pg_temp.step_id(:'id', 'check'), 'Is it good?', '["Really?"]') ->> 'planStatus';
SELECT * FROM pg_temp.run(:'id');
SELECT stepwise.submit_user_decision(id, 'approve') ->> 'stepStatus' FROM stepwise.checkpoint WHERE plan_id = :'id';
SELECT * FROM pg_temp.run(:'id');

-- ---------- conditionError ----------

SELECT plan('[{"name": "a", "tool": "say", "arguments": {"n": "many"}}, {"name": "b", "tool": "say", "condition": "${steps.a.outputs.n} > 3"}, {"name": "last", "tool": "say"}]') AS id \gset
SELECT * FROM pg_temp.run(:'id');
SELECT stepwise.skip_step(pg_temp.step_id(:'id', 'b')) ->> 'stepStatus';
SELECT * FROM pg_temp.run(:'id');

-- ---------- in nested plans, with the path ----------

SELECT stepwise.define_workflow(jsonb_build_object('name', 'leaf_' || tool, 'onFailure', 'pause', 'outputs', '{"x": "${steps.go.outputs.x}"}'::jsonb,
    'steps', jsonb_build_array(jsonb_build_object('name', 'go', 'tool', tool, 'arguments', '{"x": 5}'::jsonb)))) ->> 'name' FROM unnest('{say,fail,unheard_of}'::text[]) AS tool;
SELECT stepwise.define_workflow(jsonb_build_object('name', 'middle_' || tool, 'outputs', '{"x": "${steps.inner.outputs.x}"}'::jsonb,
    'steps', jsonb_build_array(jsonb_build_object('name', 'inner', 'workflow', 'leaf_' || tool)))) ->> 'name' FROM unnest('{say,fail,unheard_of}'::text[]) AS tool;
SELECT plan('[{"name": "outer", "workflow": "middle_say"}, {"name": "use", "tool": "say", "arguments": {"x": "${steps.outer.outputs.x}"}}]') AS id \gset
SELECT * FROM pg_temp.run(:'id');
SELECT result FROM stepwise.step WHERE plan_id = :'id' AND name = 'use';
SELECT plan('[{"name": "outer", "workflow": "middle_fail"}, {"name": "last", "tool": "say"}]') AS id \gset
SELECT * FROM pg_temp.run(:'id');
SELECT name, status, pause_reason -> 'path' FROM stepwise.plan WHERE root_id = :'id' ORDER BY depth;
SELECT told(stepwise.record_tool_result(:'id', 'fail', '{"x": 6}'));
SELECT * FROM pg_temp.run(:'id');
SELECT plan('[{"name": "outer", "workflow": "middle_unheard_of"}, {"name": "last", "tool": "say"}]') AS id \gset
SELECT * FROM pg_temp.run(:'id');
SELECT n ->> 'status', n ->> 'path' FROM stepwise.get_next_step(:'id') AS n;
-- run_steps goes into nested plans as well
CALL stepwise.run_steps(plan('[{"name": "outer", "workflow": "middle_say"}, {"name": "last", "workflow": "middle_unheard_of"}]')) \gset
SELECT told(:'result'), :'result'::jsonb -> 'pause_reason';

-- ---------- the reason of the first step that still blocks; audited when it changes ----------

SELECT plan('[{"name": "one", "tool": "first"}, {"name": "two", "tool": "second", "dependsOn": []}, {"name": "three", "tool": "say", "dependsOn": ["one", "two"]}]') AS id \gset
SELECT r.told, r.reason ->> 'blockedStep' FROM pg_temp.run(:'id') AS r;
SELECT stepwise.record_tool_result(:'id', 'first', '1') -> 'pause_reason' ->> 'blockedStep';
SELECT stepwise.record_tool_result(:'id', 'second', '1') -> 'pause_reason' ->> 'blockedStep';
SELECT r.told, r.reason FROM pg_temp.run(:'id') AS r;
SELECT detail -> 'reason' ->> 'blockedStep' FROM stepwise.audit WHERE plan_id = :'id' AND event = 'plan_paused' ORDER BY id;

SELECT * FROM stepwise.check_integrity();
SELECT DISTINCT stepwise.verify_audit(id) -> 'valid' FROM stepwise.plan WHERE tenant = stepwise.current_tenant();

SELECT count(stepwise.drop_tool(name)) > 0 FROM stepwise.tool WHERE tenant = stepwise.current_tenant() AND coalesce(function, 'regress_pause.') LIKE 'regress_pause.%';
DROP SCHEMA regress_pause CASCADE;
