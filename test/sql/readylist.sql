-- The ready steps of a plan with dependencies: the plan lists them, and those for which it has no room are marked. Each is handed out, in order.

\set ECHO none
\i test/agent.sql
\i test/sound.sql
-- steps whose names begin with a letter and that depend on some; their names are n, n + 1, ...
CREATE FUNCTION pg_temp.steps(letter text, first int, last int, depends jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_agg(jsonb_build_object('name', letter || i, 'dependsOn', depends) ORDER BY i) FROM generate_series(first, last) AS i
$$;
CREATE FUNCTION pg_temp.modify(plan text, action text, params jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT stepwise.modify_plan(pg_temp.plan(plan), action, params) ->> 'planStatus'
$$;
-- what is listed and what is marked, by name, and whether the plan says that some are marked
CREATE FUNCTION pg_temp.ready(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT format('listed: %s; marked: %s%s',
                  string_agg(s.name, ' ' ORDER BY s.step_order) FILTER (WHERE s.step_order = ANY (p.ready_steps)),
                  string_agg(s.name, ' ' ORDER BY s.step_order) FILTER (WHERE s.ready_mark), CASE WHEN p.ready_marks THEN ', looks' END)
    FROM stepwise.plan AS p JOIN stepwise.step AS s ON s.plan_id = p.id WHERE p.id = pg_temp.plan(plan) GROUP BY p.id
$$;
CREATE FUNCTION pg_temp.counts(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT format('%s listed, %s marked%s', coalesce(cardinality(p.ready_steps), 0),
                  (SELECT count(*) FROM stepwise.step AS s WHERE s.plan_id = p.id AND s.ready_mark), CASE WHEN p.ready_marks THEN ', looks' END)
    FROM stepwise.plan AS p WHERE p.id = pg_temp.plan(plan)
$$;
-- Advance from a step that is in progress until nothing is left; the names in the order in which they came.
CREATE FUNCTION pg_temp.advance_all(plan text, step text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    x jsonb := (SELECT jsonb_build_object('status', 'step_ready', 'stepId', s.id, 'attempt', s.attempt) FROM stepwise.step AS s WHERE s.id = pg_temp.step($1, $2));
    names text[] := '{}';
BEGIN
    WHILE x ->> 'status' = 'step_ready' LOOP
        x := stepwise.advance((x ->> 'stepId')::uuid, '1', attempt => (x ->> 'attempt')::int) -> 'next';
        names := names || (x ->> 'name');
    END LOOP;
    RETURN array_remove(names, NULL);
END $$;
\set ECHO all

-- ---------- one after the other ----------

SELECT pg_temp.make('chain', '[{"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["b"]}]');
SELECT pg_temp.ready('chain');
SELECT pg_temp.next('chain'), pg_temp.ready('chain');
SELECT pg_temp.submit('chain', 'a'), pg_temp.ready('chain');
-- a claim that is given back
SELECT pg_temp.next('chain');
SELECT stepwise.release_step(pg_temp.step('chain', 'b')) ->> 'stepStatus', pg_temp.ready('chain');
SELECT pg_temp.next('chain');
-- released and claimed in one call
SELECT pg_temp.brief(stepwise.advance(pg_temp.step('chain', 'b'), '1', attempt => 2) -> 'next'), pg_temp.ready('chain');
-- the notes of the last step are in the answer that the plan is complete
SELECT pg_temp.plain(stepwise.advance(pg_temp.step('chain', 'c'), '1', output_formatting_notes => 'as a table') -> 'next');
-- by plain SQL
SELECT pg_temp.make('by hand', '[{"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": []}]');
UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id = pg_temp.plan('by hand') AND name IN ('a', 'c');
SELECT pg_temp.ready('by hand');
UPDATE stepwise.step SET status = 'completed' WHERE plan_id = pg_temp.plan('by hand') AND name = 'a';
UPDATE stepwise.step SET status = 'pending' WHERE plan_id = pg_temp.plan('by hand') AND name = 'c';
SELECT pg_temp.ready('by hand');
INSERT INTO stepwise.step (tenant, plan_id, step_order, name) SELECT 'default', pg_temp.plan('by hand'), 4, 'd';
SELECT pg_temp.ready('by hand'), pg_temp.next('by hand'), pg_temp.advance_all('by hand', 'b');
SELECT pg_temp.counts('by hand');

-- ---------- more than the list has room for ----------

SELECT pg_temp.make('wide', '[{"name": "first", "dependsOn": []}]' || pg_temp.steps('m', 1, 300, '["first"]')
    || jsonb_build_array(jsonb_build_object('name', 'last', 'dependsOn', (SELECT jsonb_agg('m' || i) FROM generate_series(1, 300) AS i))));
SELECT pg_temp.next('wide'), pg_temp.submit('wide', 'first'), pg_temp.counts('wide');
SELECT * FROM stepwise.check_integrity();
SELECT pg_temp.next('wide'), pg_temp.counts('wide');
-- all are handed out in order, and the join at the end
SELECT names = (SELECT array_agg('m' || i ORDER BY i) FROM generate_series(2, 300) AS i) || '{last}', pg_temp.counts('wide')
FROM pg_temp.advance_all('wide', 'm1') AS names;
-- the same, ready from the beginning
SELECT pg_temp.make('parallel', pg_temp.steps('m', 1, 300, '[]'));
SELECT pg_temp.counts('parallel'), pg_temp.next('parallel');
SELECT names = (SELECT array_agg('m' || i ORDER BY i) FROM generate_series(2, 300) AS i), pg_temp.counts('parallel')
FROM pg_temp.advance_all('parallel', 'm1') AS names;
-- the same by a run, as long as it keeps its rows in memory and when it has to write them
CREATE FUNCTION nothing(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT '{}'::jsonb $$;
SELECT stepwise.register_tool('nothing', 'nothing(jsonb)') IS NOT NULL;
SELECT pg_temp.make('run', (SELECT jsonb_agg(s || '{"tool": "nothing"}' ORDER BY n) FROM jsonb_array_elements(
    '[{"name": "first", "dependsOn": []}]' || pg_temp.steps('m', 1, 300, '["first"]') || '[{"name": "last", "dependsOn": ["m7", "m300"]}]') WITH ORDINALITY AS x (s, n)));
SELECT stepwise.run(pg_temp.plan('run'), 50) IS NOT NULL, pg_temp.counts('run');
SELECT stepwise.run(pg_temp.plan('run')) IS NOT NULL, pg_temp.counts('run');
SELECT status, (SELECT bool_and(s.execution_order = s.step_order) FROM stepwise.step AS s WHERE s.plan_id = p.id) FROM stepwise.plan AS p WHERE p.id = pg_temp.plan('run');
-- a step that is released takes its place before those that are marked
SELECT pg_temp.make('mixed', '[{"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": ["a"]}]' || pg_temp.steps('m', 1, 200, '[]'));
SELECT count(pg_temp.next('mixed')) FROM generate_series(1, 150);
SELECT pg_temp.counts('mixed');
SELECT pg_temp.submit('mixed', 'a'), pg_temp.counts('mixed'), pg_temp.next('mixed'), pg_temp.next('mixed');
SELECT pg_temp.sound();

-- ---------- other orders ----------

SELECT pg_temp.make('moved', pg_temp.steps('a', 1, 2, '[]') || pg_temp.steps('b', 1, 2, '["a1"]') || pg_temp.steps('c', 1, 1, '[]'));
SELECT pg_temp.next('moved'), pg_temp.ready('moved');
-- steps in front
SELECT pg_temp.modify('moved', 'add_steps', '{"steps": [{"name": "z", "dependsOn": []}, {"name": "y", "dependsOn": ["a2"]}], "insertAfterOrder": 0}');
SELECT pg_temp.ready('moved'), (SELECT string_agg(problem, ', ') FROM stepwise.check_integrity());
-- what becomes ready from now on is listed
SELECT pg_temp.submit('moved', 'a1'), pg_temp.ready('moved');
SELECT pg_temp.modify('moved', 'remove_step', '{"step": "b1"}'), pg_temp.ready('moved');
SELECT pg_temp.modify('moved', 'reorder_steps', jsonb_build_object('stepIds', (
    SELECT jsonb_agg(s.id ORDER BY s.name DESC) FROM stepwise.step AS s WHERE s.plan_id = pg_temp.plan('moved'))));
SELECT pg_temp.ready('moved'), (SELECT string_agg(problem, ', ') FROM stepwise.check_integrity());
SELECT pg_temp.next('moved'), pg_temp.advance_all('moved', 'z'), pg_temp.counts('moved');
SELECT pg_temp.show('moved');
-- a step that depends on more, or on nothing
SELECT pg_temp.make('changed', '[{"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": []}, {"name": "c", "dependsOn": ["a", "b"]}]');
SELECT pg_temp.modify('changed', 'update_step', '{"step": "b", "dependsOn": ["a"]}'), pg_temp.ready('changed');
SELECT pg_temp.modify('changed', 'update_step', '{"step": "c", "dependsOn": []}'), pg_temp.ready('changed');
SELECT pg_temp.next('changed'), pg_temp.advance_all('changed', 'a');
-- a branch adds a step that depends on the step that has one dependent
SELECT pg_temp.make('branched', '[{"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": ["a"]}]',
    '[{"afterStep": "a", "conditionExpression": "true", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "n", "dependsOn": ["a"]}]}}]');
SELECT pg_temp.next('branched'), pg_temp.submit('branched', 'a'), pg_temp.ready('branched');
SELECT pg_temp.next('branched'), pg_temp.advance_all('branched', 'n');
-- a fork of a plan in the middle
SELECT pg_temp.make('forked', pg_temp.steps('a', 1, 2, '[]') || pg_temp.steps('b', 1, 2, '["a1"]'));
SELECT pg_temp.next('forked'), pg_temp.submit('forked', 'a1'), pg_temp.ready('forked');
SELECT stepwise.fork_plan(pg_temp.plan('forked'), 'b1') ->> 'pendingSteps', pg_temp.ready('forked');
SELECT pg_temp.next('forked'), pg_temp.advance_all('forked', 'a2');
-- a join that has to wait again
SELECT pg_temp.make('join', '[{"name": "a", "dependsOn": []}, {"name": "j", "dependsOn": [{"step": "a", "when": "ended"}]}, {"name": "o", "dependsOn": []}]');
SELECT pg_temp.next('join'), pg_temp.fail('join', 'a'), pg_temp.ready('join');
SELECT stepwise.retry_step(pg_temp.step('join', 'a')) ->> 'stepStatus', pg_temp.ready('join');
SELECT pg_temp.next('join'), pg_temp.advance_all('join', 'a');
SELECT pg_temp.sound();

-- ---------- what check_integrity finds ----------

BEGIN;
SELECT pg_temp.make('broken', '[{"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": []}]');
ALTER TABLE stepwise.plan DISABLE TRIGGER USER;
ALTER TABLE stepwise.step DISABLE TRIGGER USER;
UPDATE stepwise.plan SET ready_steps = '{2,3}' WHERE id = pg_temp.plan('broken');
SELECT problem FROM stepwise.check_integrity() ORDER BY 1;
UPDATE stepwise.plan SET ready_steps = '{3}' WHERE id = pg_temp.plan('broken');
UPDATE stepwise.step SET ready_mark = true WHERE plan_id = pg_temp.plan('broken');
SELECT problem FROM stepwise.check_integrity() ORDER BY 1;
UPDATE stepwise.step SET ready_mark = NULL, dependents = 2 WHERE plan_id = pg_temp.plan('broken');
UPDATE stepwise.plan SET ready_steps = '{1,3}' WHERE id = pg_temp.plan('broken');
SELECT problem FROM stepwise.check_integrity() ORDER BY 1;
ROLLBACK;

SELECT stepwise.drop_tool('nothing') IS NOT NULL;
DROP FUNCTION nothing(jsonb);
