-- Claims that stall in a strict sequence, and calls that why names where a step has come before the one that blocks.

\set ECHO none
\i test/agent.sql
\set ECHO all

-- The call that why names, and what it comes to. handoff and nextCall name the same.
CREATE FUNCTION pg_temp.follow(plan text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    w jsonb := stepwise.why(pg_temp.plan(plan));
    answer jsonb;
BEGIN
    ASSERT stepwise.get_plan_context(pg_temp.plan(plan)) -> 'nextCall' = w -> 'nextCall', 'nextCall';
    ASSERT position('stepwise.' || (w -> 'nextCall' ->> 'function') IN stepwise.handoff(pg_temp.plan(plan))) > 0, 'handoff';
    EXECUTE format('SELECT stepwise.%I(%s)', w -> 'nextCall' ->> 'function',
        (SELECT string_agg(format('%I => %L', key, CASE key WHEN 'result' THEN '{"n": 2}' WHEN 'decision' THEN 'approve' ELSE value #>> '{}' END), ', ')
         FROM jsonb_each(w -> 'nextCall' -> 'arguments'))) INTO answer;
    RETURN concat_ws(' | ', w ->> 'message', w -> 'nextCall' ->> 'function', coalesce(answer ->> 'name', answer ->> 'stepStatus', answer ->> 'status'));
END $$;
CREATE FUNCTION pg_temp.silent(plan text, step text) RETURNS void LANGUAGE sql AS $$
    UPDATE stepwise.step SET active_at = now() - interval '1 hour' WHERE id = pg_temp.step($1, $2)
$$;

-- ---------- a stalled claim of a strict sequence is handed out again ----------

-- of the last step too
SELECT stepwise.create_plan('last', 'strict', '[{"name": "a"}]', strict_order => true) ->> 'status';
SELECT pg_temp.next('last', 'anna');
SELECT pg_temp.next('last', 'bert');
SELECT pg_temp.silent('last', 'a') \g /dev/null
SELECT pg_temp.next('last', 'bert');
SELECT pg_temp.submit('last', 'a', attempt => 1);
SELECT pg_temp.submit('last', 'a', attempt => 2);

-- in a nested plan too, also if somebody has looked there before
SELECT stepwise.define_workflow('{"name": "strict", "strictOrder": true, "steps": [{"name": "x"}, {"name": "y"}]}') ->> 'created';
SELECT pg_temp.make('outer', '[{"name": "a", "workflow": "strict"}, {"name": "b"}]');
SELECT pg_temp.next('outer', 'anna');
SELECT pg_temp.next('outer', 'bert');
UPDATE stepwise.step SET active_at = now() - interval '1 hour' WHERE root_id = pg_temp.plan('outer') AND name = 'x';
SELECT pg_temp.next('outer', 'bert');
SELECT stepwise.submit_step_result(s.id, '{}', worker => 'bert') ->> 'stepStatus' FROM stepwise.step AS s WHERE s.root_id = pg_temp.plan('outer') AND s.name = 'x';
SELECT pg_temp.next('outer', 'bert');
SELECT pg_temp.next('outer', 'carl');
UPDATE stepwise.step SET active_at = now() - interval '1 hour' WHERE root_id = pg_temp.plan('outer') AND name = 'y';
SELECT pg_temp.next('outer', 'carl');

SELECT * FROM pg_temp.unsound();
