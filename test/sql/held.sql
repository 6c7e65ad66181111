-- record_tool_result without a step name, with steps that other workers have claimed.

\set ECHO none
\i test/agent.sql
CREATE FUNCTION pg_temp.record(plan text, tool text, result jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.try(format('(SELECT concat_ws('' '', (SELECT s.name FROM stepwise.step AS s WHERE s.id = (a ->> ''stepId'')::uuid), a ->> ''stepStatus'', a ->> ''variable'')'
                              ' FROM stepwise.record_tool_result(%L, %L, %L) AS a)', pg_temp.plan(plan), tool, result))
$$;
\set ECHO all

-- a worker has claimed the first step of the tool: the result does not go to the next step
SELECT pg_temp.make('worker', '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "t"}]');
SELECT pg_temp.next('worker', 'w');
SELECT pg_temp.record('worker', 't', '{"n": 1}');
SELECT pg_temp.show('worker');
SELECT pg_temp.submit('worker', 'a');
SELECT pg_temp.record('worker', 't', '{"n": 1}');
-- the same with a lease, until it expires
SELECT pg_temp.make('lease', '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "t"}]');
SELECT pg_temp.next('lease', lease => '1 hour');
SELECT pg_temp.record('lease', 't', '{"n": 1}');
SELECT stepwise.heartbeat(pg_temp.step('lease', 'a'), 1, '1 microsecond') ->> 'stepStatus';
SELECT pg_sleep(0.01);
SELECT pg_temp.record('lease', 't', '{"n": 1}');
SELECT pg_temp.show('lease');
-- a claim without worker and lease: the step could take the result, but so could the next one
SELECT pg_temp.make('nobody', '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "t"}]');
SELECT pg_temp.next('nobody');
SELECT pg_temp.record('nobody', 't', '{"n": 1}');
SELECT pg_temp.submit('nobody', 'a');
SELECT pg_temp.record('nobody', 't', '{"n": 2}');
-- the only step of the tool is claimed: the result is not stored as a variable either
SELECT pg_temp.make('only', '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "u"}]');
SELECT pg_temp.next('only', 'w');
SELECT pg_temp.record('only', 't', '{"n": 1}');
SELECT pg_temp.record('only', 'u', '{"n": 1}');
-- a later step is blocked by its arguments, but the step before it is claimed
SELECT pg_temp.make('blocked', '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "t", "arguments": {"x": "${inputs.n.missing}"}}]', inputs => '{"n": {}}');
SELECT pg_temp.next('blocked', 'w'), pg_temp.next('blocked', 'v');
SELECT pg_temp.record('blocked', 't', '{"n": 1}');
-- a failed step that pauses the plan takes the result first
SELECT pg_temp.make('failed', '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "t"}]', on_failure => 'pause');
SELECT pg_temp.next('failed', 'w'), pg_temp.next('failed', 'v'), pg_temp.fail('failed', 'b');
SELECT pg_temp.record('failed', 't', '{"n": 1}');
-- with dependencies the steps are parallel: a claimed step is passed over
SELECT pg_temp.make('beside', '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "t"}, {"name": "c", "dependsOn": ["a", "b"]}]');
SELECT pg_temp.next('beside', 'w');
SELECT pg_temp.record('beside', 't', '{"n": 1}');
SELECT pg_temp.record('beside', 't', '{"n": 2}');
-- the same in a nested plan
SELECT stepwise.define_workflow('{"name": "held below", "steps": [{"name": "a", "tool": "t"}, {"name": "b", "tool": "t"}]}') ->> 'version';
SELECT pg_temp.make('above', '[{"name": "h", "workflow": "held below"}]');
SELECT pg_temp.next('above', 'w');
SELECT pg_temp.record('above', 't', '{"n": 1}');
SELECT stepwise.release_step(pg_temp.step('held below', 'a')) ->> 'stepStatus';
SELECT pg_temp.record('above', 't', '{"n": 1}');

SELECT pg_temp.unsound();
