-- What a caller reports about its work: execution_report of heartbeat, fail_step and record_tool_result is kept with the step. A later
-- report replaces an earlier one, a call without one leaves it, and one that is too large is refused.

\set VERBOSITY terse
SELECT stepwise.create_plan('reported', 'Report', '[{"name": "a", "tool": "look"}, {"name": "b", "tool": "fetch"}]') ->> 'planId' AS plan \gset
CREATE FUNCTION pg_temp.reports() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('%s %s %s', s.name, s.status, s.execution_report) FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.id = s.plan_id
    WHERE p.name = 'reported' ORDER BY s.step_order
$$;
SELECT stepwise.get_next_step(:'plan', worker => 'w') ->> 'stepId' AS step \gset
SELECT stepwise.heartbeat(:'step', worker => 'w', execution_report => '{"usage": {"tokens": 5}}') ->> 'stepStatus';
SELECT pg_temp.reports();
SELECT stepwise.heartbeat(:'step', worker => 'w') ->> 'stepStatus';
SELECT pg_temp.reports();
SELECT stepwise.fail_step(:'step', 'no answer', worker => 'w', execution_report => '{"usage": {"tokens": 9}}') ->> 'stepStatus';
SELECT pg_temp.reports();
SELECT stepwise.record_tool_result(:'plan', 'fetch', '{"n": 1}', execution_report => '{"usage": {"tokens": 2}}') ->> 'stepStatus';
SELECT pg_temp.reports();
-- too large: refused whole
SELECT stepwise.create_plan('reported 2', 'Report', '[{"name": "a"}]') ->> 'planId' AS plan \gset
SELECT stepwise.get_next_step(:'plan') ->> 'stepId' AS step \gset
SELECT stepwise.fail_step(:'step', 'no', execution_report => to_jsonb(repeat('x', 2000000)));
SELECT stepwise.heartbeat(:'step', execution_report => to_jsonb(repeat('x', 2000000)));
SELECT status, execution_report FROM stepwise.step WHERE id = :'step';
