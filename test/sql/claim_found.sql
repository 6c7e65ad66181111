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
SELECT pg_temp.try($$pg_temp.submit('last', 'a', attempt => 1)$$);
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

-- ---------- a call that why names is taken ----------

-- a run has met a step that was claimed before: it takes no result without a claim
SELECT pg_temp.make('claimed before', '[{"name": "a"}]');
SELECT pg_temp.next('claimed before');
SELECT stepwise.release_step(pg_temp.step('claimed before', 'a')) ->> 'stepStatus';
SELECT stepwise.run(pg_temp.plan('claimed before')) -> 'next_call' ->> 'function';
SELECT pg_temp.follow('claimed before');
SELECT pg_temp.follow('claimed before');

-- a step was added before the one that blocks
SELECT pg_temp.make('added', '[{"name": "a"}, {"name": "b", "tool": "client", "arguments": {"x": "${steps.a.outputs.n}"}}]');
SELECT pg_temp.submit('added', 'a', '{}');
SELECT pg_temp.next('added');
SELECT stepwise.modify_plan(pg_temp.plan('added'), 'add_steps', '{"steps": [{"name": "m"}], "after": "a"}') ->> 'action';
SELECT pg_temp.follow('added');
SELECT pg_temp.follow('added');
SELECT pg_temp.follow('added');

-- a claim was given back before the step that blocks
SELECT pg_temp.make('given back', '[{"name": "a"}, {"name": "b", "tool": "client", "arguments": {"x": "${inputs.none ?? 1}", "y": "${variables.none}"}}]');
SELECT pg_temp.next('given back', 'anna');
SELECT pg_temp.next('given back', 'bert');
SELECT stepwise.release_step(pg_temp.step('given back', 'a'), worker => 'anna') ->> 'stepStatus';
SELECT pg_temp.follow('given back');

-- a step before the one that failed is tried again; the failed one takes no result before its turn
SELECT pg_temp.make('before it', '[{"name": "a"}, {"name": "b", "tool": "client"}]', on_failure => 'pause');
SELECT pg_temp.fail('before it', 'b');
SELECT pg_temp.follow('before it');

-- a gate before the step lets no result of a tool pass
SELECT pg_temp.make('gated', '[{"name": "a"}, {"name": "b", "tool": "client", "arguments": {"x": "${steps.a.outputs.n}"}, "review": {"when": "before", "summary": "Go?"}}]');
SELECT pg_temp.submit('gated', 'a', '{}');
SELECT pg_temp.next('gated');
SELECT pg_temp.follow('gated');

-- a nested plan is held back by a person whom the plan above asks
SELECT stepwise.define_workflow('{"name": "below", "steps": [{"name": "x"}, {"name": "y"}]}') ->> 'created';
SELECT pg_temp.make('above', '[{"name": "a"}, {"name": "b", "workflow": "below"}]');
SELECT pg_temp.fail('above', 'a');
SELECT pg_temp.next('above');
SELECT stepwise.submit_step_result(s.id, '{}') ->> 'stepStatus' FROM stepwise.step AS s WHERE s.root_id = pg_temp.plan('above') AND s.name = 'x';
SELECT stepwise.retry_step(pg_temp.step('above', 'a')) ->> 'stepStatus';
UPDATE stepwise.step SET status = 'in_progress' WHERE id = pg_temp.step('above', 'a');
SELECT stepwise.request_user_review(pg_temp.step('above', 'a'), 'Look', attempt => 1) ->> 'stepStatus';
SELECT pg_temp.follow('below');
SELECT pg_temp.follow('below');

SELECT * FROM pg_temp.unsound();
