-- A nested plan that a step of the plan above holds back, although nothing has paused and no review has sent a step back: a step before
-- its parent step is in progress again.

\set ECHO none
\i test/agent.sql
\set ECHO all

SELECT stepwise.define_workflow('{"name": "above inner", "steps": [{"name": "x"}]}') ->> 'version';
-- What the root and the nested plan of step n would hand out.
CREATE FUNCTION pg_temp.would(plan uuid) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING errcode = 'ZZZZZ', message = pg_temp.brief(stepwise.get_next_step(plan));
EXCEPTION WHEN SQLSTATE 'ZZZZZ' THEN
    RETURN sqlerrm;
END $$;
CREATE FUNCTION pg_temp.nested(plan text, step text) RETURNS uuid LANGUAGE sql AS $$
    SELECT p.id FROM stepwise.plan AS p WHERE p.parent_step_id = (SELECT pg_temp.step(plan, step)) ORDER BY p.id DESC LIMIT 1
$$;
CREATE FUNCTION pg_temp.both(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT format('root: %s; nested: %s; crowded %s', pg_temp.would(pg_temp.plan(plan)), pg_temp.would(pg_temp.nested(plan, 'n')),
                  (SELECT p.crowded FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan(plan))))
$$;

-- strictOrder: a step that was given up is tried again while the plan nested after it is open
SELECT stepwise.create_plan('strict', 'test', '[{"name": "a"}, {"name": "n", "workflow": "above inner"}]', strict_order => true) ->> 'status';
SELECT pg_temp.next('strict'), pg_temp.fail('strict', 'a'), pg_temp.next('strict');
SELECT stepwise.retry_step(pg_temp.step('strict', 'a')) ->> 'stepStatus', pg_temp.next('strict');
SELECT stepwise.release_step(pg_temp.step('above inner', 'x')) ->> 'stepStatus', pg_temp.both('strict');
SELECT w ->> 'message', w -> 'nextCall' ->> 'function' FROM stepwise.why(pg_temp.nested('strict', 'n')) AS w;
-- it goes on when the step before has ended
SELECT pg_temp.submit('strict', 'a'), pg_temp.both('strict');

-- a step with a nested plan is tried again while the next one is open
SELECT stepwise.create_plan('two', 'test', '[{"name": "m", "workflow": "above inner"}, {"name": "n", "workflow": "above inner"}, {"name": "b"}]') ->> 'status';
SELECT pg_temp.next('two'), pg_temp.fail('two', 'm'), pg_temp.next('two');
SELECT stepwise.retry_step(pg_temp.step('two', 'm')) ->> 'stepStatus', pg_temp.next('two');
SELECT stepwise.release_step(s.id) ->> 'stepStatus', pg_temp.both('two') FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.nested('two', 'n')) AND s.name = 'x';
-- the plan nested in the step before comes first
SELECT stepwise.submit_step_result(s.id, '1') ->> 'planStatus', pg_temp.both('two') FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.nested('two', 'm')) AND s.name = 'x';

SELECT pg_temp.unsound();
