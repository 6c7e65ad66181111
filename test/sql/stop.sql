-- What a failed step does under on_failure stop: a run stops, agents go on and are told, and a failure that nobody has dealt
-- with keeps the plan open.

\set ECHO none
\i test/agent.sql
\set ECHO all

CREATE SCHEMA regress_stop;
GRANT USAGE ON SCHEMA regress_stop TO PUBLIC;
CREATE FUNCTION regress_stop.say(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT a';
CREATE FUNCTION regress_stop.fail(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no luck'; END $$;
SELECT stepwise.register_tool('stop_say', 'regress_stop.say(jsonb)') ->> 'name', stepwise.register_tool('stop_fail', 'regress_stop.fail(jsonb)') ->> 'name';
CREATE FUNCTION pg_temp.start(plan text, steps jsonb, on_failure text = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT stepwise.create_plan(plan, 'test', steps, on_failure => $3) ->> 'status' $$;
CREATE FUNCTION pg_temp.run(name text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', r ->> 'task_status', r -> 'pause_reason' ->> 'type', r -> 'pause_reason' ->> 'failedStep') FROM stepwise.run(pg_temp.plan(name)) AS r $$;

-- ---------- the default ----------

SELECT pg_temp.start('sequence', '[{"name": "a"}]'), pg_temp.start('graph', '[{"name": "a", "dependsOn": []}]');
SELECT name, on_failure FROM stepwise.plan WHERE id IN (pg_temp.plan('sequence'), pg_temp.plan('graph')) ORDER BY id;
SELECT stepwise.derive_plan_status('{failed,completed}', 'stop'), stepwise.derive_plan_status('{failed,pending}', 'stop');

-- ---------- a run stops at once ----------

SELECT pg_temp.start('first', '[{"name": "a", "tool": "stop_say"}, {"name": "b", "tool": "stop_fail"}, {"name": "c", "tool": "stop_say"}]');
SELECT pg_temp.run('first');
SELECT pg_temp.show('first');
-- again: nothing happens
SELECT pg_temp.run('first');
-- at the last step too: the plan does not complete by itself
SELECT pg_temp.start('last', '[{"name": "a", "tool": "stop_say"}, {"name": "b", "tool": "stop_fail"}]');
SELECT pg_temp.run('last');
SELECT pg_temp.show('last');
-- with dependencies, a run does what is due before the failed step in order, and nothing after it
SELECT pg_temp.start('between', '[{"name": "a", "tool": "stop_say", "dependsOn": []}, {"name": "b", "tool": "stop_fail", "dependsOn": []}, {"name": "c", "tool": "stop_say", "dependsOn": []}]', on_failure => 'stop');
SELECT pg_temp.run('between');
SELECT pg_temp.show('between');
-- under continue it goes on
SELECT pg_temp.start('goes on', '[{"name": "a", "tool": "stop_fail"}, {"name": "b", "tool": "stop_say"}]', on_failure => 'continue');
SELECT pg_temp.run('goes on');

-- ---------- agents go on, and are told ----------

SELECT stepwise.get_next_step(pg_temp.plan('first')) -> 'failedBefore';
SELECT pg_temp.submit('first', 'c');
-- nothing is left but the failure
SELECT pg_temp.next('first');
SELECT pg_temp.show('first');

-- ---------- who deals with it ----------

-- a retry
SELECT stepwise.retry_step(pg_temp.step('first', 'b')) ->> 'planStatus';
SELECT pg_temp.next('first');
SELECT stepwise.submit_step_result(pg_temp.step('first', 'b'), '1', attempt => 2) ->> 'planStatus';
-- to skip it
SELECT stepwise.skip_step(pg_temp.step('last', 'b')) ->> 'planStatus';
-- to give it up: the step stays failed, and the plan completes with failure
SELECT pg_temp.start('given up', '[{"name": "a", "tool": "stop_fail"}]');
SELECT pg_temp.run('given up');
SELECT stepwise.fail_step(pg_temp.step('given up', 'a'), 'never mind') - ARRAY['planId', 'stepId', 'nextCall'];
SELECT pg_temp.show('given up');
SELECT pg_temp.log('given up');
-- the client's result
SELECT pg_temp.start('answered', '[{"name": "a", "tool": "stop_fail"}]');
SELECT pg_temp.run('answered');
SELECT stepwise.record_tool_result(pg_temp.plan('answered'), 'stop_fail', '1') ->> 'task_status';
-- a step that an agent gives up, or modify_plan, is given up already
SELECT pg_temp.start('told', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.fail('told', 'a');
SELECT pause_reason IS NULL FROM stepwise.plan WHERE id = pg_temp.plan('told');
SELECT stepwise.modify_plan(pg_temp.plan('told'), 'fail_step', jsonb_build_object('stepId', pg_temp.step('told', 'b'), 'reason', 'no')) ->> 'planStatus';
-- attempts used up are a failure that somebody has to deal with
SELECT pg_temp.start('used up', '[{"name": "a", "maxAttempts": 1}]');
SELECT pg_temp.next('used up');
SELECT stepwise.release_step(pg_temp.step('used up', 'a')) ->> 'stepStatus';
SELECT pg_temp.next('used up');
SELECT pg_temp.show('used up');
SELECT stepwise.retry_step(pg_temp.step('used up', 'a')) ->> 'stepStatus', pg_temp.next('used up');

-- ---------- nested plans ----------

SELECT stepwise.define_workflow('{"name": "stop inner", "steps": [{"name": "x", "tool": "stop_fail"}, {"name": "y", "tool": "stop_say"}]}') ->> 'version';
SELECT pg_temp.start('nested', '[{"name": "h", "workflow": "stop inner"}, {"name": "after", "tool": "stop_say"}]');
SELECT pg_temp.run('nested');
SELECT stepwise.run(pg_temp.plan('nested')) -> 'pause_reason' -> 'path';
SELECT pg_temp.next('nested');
-- cancelling the nested plan gives its step up
SELECT stepwise.cancel_plan((SELECT id FROM stepwise.plan WHERE parent_step_id = pg_temp.step('nested', 'h'))) ->> 'planStatus';
SELECT pg_temp.show('nested');
SELECT pg_temp.run('nested');

SELECT pg_temp.unsound();
DROP SCHEMA regress_stop CASCADE;
SELECT stepwise.drop_tool('stop_say') ->> 'dropped', stepwise.drop_tool('stop_fail') ->> 'dropped';
