-- The progress of a plan, the four thresholds of a stall, and reclaiming. The test runs as an agent in its own tenant, because
-- reclaim_stalled works on all plans of the tenant.

\set ECHO none
\i test/agent.sql
CREATE ROLE regress_stepwise_worker;
SELECT stepwise.grant_agent('regress_stepwise_worker') IS NOT NULL, stepwise.add_member('regress_stepwise_worker', 'regress_progress') IS NOT NULL \g /dev/null
GRANT SELECT ON began TO regress_stepwise_worker;
-- get_plan_status in short.
CREATE FUNCTION pg_temp.status(plan text, stall_after interval = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'status', a ->> 'derivedStatus', 'stalled ' || (a ->> 'stalled'),
                     (SELECT string_agg(s ->> 'name', ',') FROM jsonb_array_elements(a -> 'stalledSteps') AS s))
    FROM stepwise.get_plan_status(pg_temp.plan(plan), stall_after) AS a
$$;
-- reclaim_stalled in short.
CREATE FUNCTION pg_temp.reclaim(older_than interval = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'count', (SELECT string_agg(format('%s #%s %s', s ->> 'name', s ->> 'attempt', s ->> 'stepStatus'), ', ') FROM jsonb_array_elements(a -> 'reclaimed') AS s))
    FROM stepwise.reclaim_stalled(older_than) AS a
$$;
SET ROLE regress_stepwise_worker;
\set ECHO all

-- ---------- get_plan_status ----------

SELECT pg_temp.make('status', '[{"name": "a"}, {"name": "b", "condition": "${inputs.x} == 2"}, {"name": "c"}, {"name": "d"}, {"name": "e"}, {"name": "f"}]', inputs => '{"x": 1}');
SELECT pg_temp.plain(stepwise.get_plan_status(pg_temp.plan('status')));
SELECT pg_temp.next('status');
SELECT stepwise.submit_step_result(pg_temp.step('status', 'a'), '{"big": "result"}', 'did a') ->> 'planStatus';
SELECT pg_temp.next('status', 'anna', '1 hour');
SELECT pg_temp.next('status');
SELECT stepwise.fail_step(pg_temp.step('status', 'd'), 'no luck', true) ->> 'planStatus';
SELECT pg_temp.next('status');
SELECT pg_temp.plain(stepwise.get_plan_status(pg_temp.plan('status')));
-- progress counts what is completed or skipped, rounded
SELECT pg_temp.make('percent', '[{}, {}, {}, {}, {}, {}]');
SELECT a -> 'progress', a -> 'totalSteps', a -> 'currentStep' FROM stepwise.get_plan_status(pg_temp.plan('percent')) AS a;
SELECT pg_temp.submit('percent', 'step_1');
SELECT stepwise.get_plan_status(pg_temp.plan('percent')) -> 'progress';
SELECT stepwise.skip_step(pg_temp.step('percent', 'step_2')) ->> 'planStatus';
SELECT pg_temp.fail('percent', 'step_3');
SELECT stepwise.get_plan_status(pg_temp.plan('percent')) -> 'progress';
-- a step that waits is the current one; the reason is shown
SELECT pg_temp.next('percent');
SELECT stepwise.request_user_review(pg_temp.step('percent', 'step_4'), 'Look') ->> 'planStatus';
SELECT a ->> 'status', a ->> 'derivedStatus', a -> 'currentStep' ->> 'status', pg_temp.plain(a -> 'pauseReason') FROM stepwise.get_plan_status(pg_temp.plan('percent')) AS a;
-- cases in which status and derived status differ
SELECT stepwise.cancel_plan(pg_temp.plan('percent')) ->> 'planStatus';
SELECT pg_temp.status('percent');
SELECT pg_temp.make('back', '[{"name": "a"}]');
SELECT pg_temp.next('back');
SELECT stepwise.release_step(pg_temp.step('back', 'a')) ->> 'planStatus';
SELECT pg_temp.status('back');

-- ---------- stalls ----------

-- the threshold: the argument, the step's, the plan's, the setting
SELECT stepwise.create_plan('stall', 'test', '[{"name": "a", "stallAfter": "1 millisecond"}, {"name": "b", "stallAfter": "1 hour"}, {"name": "c"}]', stall_after => '2 hours') ->> 'status';
SELECT pg_temp.next('stall', 'anna');
SELECT pg_sleep(0.01);
SELECT pg_temp.status('stall', '1 hour');
SELECT pg_temp.status('stall');
SELECT p.status FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('stall'));
SELECT pg_temp.log('stall', 'plan_status_changed');
-- shown and stored, until a step moves: a heartbeat does not move one, but shows life
SELECT stepwise.heartbeat(pg_temp.step('stall', 'a'), 1) ->> 'planStatus';
SELECT pg_temp.status('stall', '1 hour');
-- the next claim brings the plan back
SELECT pg_temp.next('stall', 'bert');
SELECT pg_temp.status('stall', '1 hour');
SELECT pg_temp.status('stall', '0');
-- so does a submission
SELECT pg_temp.submit('stall', 'a');
SELECT pg_temp.status('stall', '1 hour');
-- and the worker that asks again
SELECT pg_temp.status('stall', '0');
SELECT pg_temp.next('stall', 'bert');
SELECT pg_temp.status('stall');
-- the threshold of the plan precedes the setting
SELECT stepwise.create_plan('plan stall', 'test', '[{"name": "a"}]', stall_after => '2 hours') ->> 'status';
SELECT pg_temp.make('setting stall', '[{"name": "a"}]');
SELECT pg_temp.next('plan stall'), pg_temp.next('setting stall');
SELECT pg_sleep(1.1);
SELECT pg_temp.status('plan stall'), pg_temp.status('setting stall');
RESET ROLE;
SET stepwise.stall_after = '1s';
SET ROLE regress_stepwise_worker;
SELECT pg_temp.status('plan stall'), pg_temp.status('setting stall');
RESET ROLE;
RESET stepwise.stall_after;
SET ROLE regress_stepwise_worker;
SELECT pg_temp.status('setting stall');
-- a claim that began long ago, and heartbeats since
SELECT pg_temp.make('alive', '[{"name": "a"}]');
SELECT pg_temp.next('alive');
SELECT pg_sleep(0.3);
SELECT stepwise.heartbeat(pg_temp.step('alive', 'a'), 1) ->> 'stepStatus';
SELECT pg_temp.status('alive', (SELECT (clock_timestamp() - s.started_at) / 2 FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('alive', 'a'))));
-- steps that wait for a person and unclaimed steps are not stalled; only an executing plan is marked
SELECT pg_temp.make('quiet', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.status('quiet', '0');
SELECT pg_temp.next('quiet');
SELECT stepwise.request_user_review(pg_temp.step('quiet', 'a'), 'Look') ->> 'planStatus';
SELECT pg_temp.status('quiet', '0');
SELECT stepwise.skip_step(pg_temp.step('quiet', 'a')) ->> 'planStatus';
SELECT pg_temp.status('quiet', '0');
-- a claim in a nested plan stalls the plans above, and wakes them
SELECT stepwise.define_workflow('{"name": "progress inner", "steps": [{"name": "x"}, {"name": "y"}]}') ->> 'version';
SELECT pg_temp.make('above', '[{"name": "a", "workflow": "progress inner"}]');
SELECT pg_temp.next('above', 'anna');
SELECT pg_temp.status('above', '0'), pg_temp.status('progress inner', '0');
SELECT pg_temp.submit('progress inner', 'x');
SELECT pg_temp.status('above', '1 hour'), pg_temp.status('progress inner', '1 hour');
SELECT pg_temp.next('above', 'anna');
SELECT pg_temp.status('above', '0'), pg_temp.status('progress inner', '1 hour');
SELECT pg_temp.next('above', 'anna');
SELECT pg_temp.status('above', '1 hour'), pg_temp.status('progress inner', '1 hour');
-- read only: shown, not stored
SELECT pg_temp.next('quiet');
BEGIN READ ONLY;
SELECT pg_temp.status('quiet', '0');
COMMIT;
SELECT p.status FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('quiet'));

-- ---------- reclaim ----------

-- end the plans that are left
SELECT count(*) > 0 FROM stepwise.plan AS p, LATERAL stepwise.cancel_plan(p.id) WHERE p.status NOT IN ('completed', 'failed', 'cancelled') AND p.parent_step_id IS NULL;
SELECT pg_temp.make('reclaim', '[{"name": "a", "maxAttempts": 2}, {"name": "b"}, {"name": "c", "stallAfter": "1 millisecond"}, {"name": "d"}]');
SELECT pg_temp.next('reclaim', 'anna', '1 hour');
SELECT pg_temp.next('reclaim', 'bert', '1 millisecond');
SELECT pg_temp.make('reclaim other', '[{"name": "a"}]');
SELECT pg_temp.next('reclaim other');
-- only claims with an expired lease or with their own threshold are stalled yet
SELECT pg_sleep(0.01);
SELECT pg_temp.reclaim();
SELECT pg_temp.next('reclaim', 'carl'), pg_temp.next('reclaim', 'dora');
SELECT pg_sleep(0.01);
SELECT pg_temp.reclaim();
SELECT pg_temp.show('reclaim');
SELECT pg_temp.reclaim();
-- with older_than: also claims whose lease has not expired
SELECT pg_temp.reclaim('1 hour');
SELECT pg_temp.reclaim('0');
SELECT pg_temp.log('reclaim', 'step_released');
SELECT pg_temp.show('reclaim');
-- the late submitter is refused, and changes nothing
SELECT pg_temp.try($$pg_temp.submit('reclaim', 'a', attempt => 1)$$);
SELECT pg_temp.next('reclaim', 'emil');
SELECT pg_temp.try($$pg_temp.submit('reclaim', 'a', attempt => 1)$$);
SELECT pg_temp.show('reclaim');
-- a stalled plan goes on executing
SELECT pg_temp.status('reclaim', '0');
SELECT pg_temp.reclaim('0');
SELECT pg_temp.status('reclaim');
-- the second attempt was the last
SELECT pg_temp.next('reclaim', 'emil');
SELECT pg_temp.show('reclaim');
SELECT stepwise.cancel_plan(pg_temp.plan('reclaim')) ->> 'planStatus', stepwise.cancel_plan(pg_temp.plan('reclaim other')) ->> 'planStatus';
-- claims in nested plans; the steps of a plan that has ended do not change
SELECT pg_temp.make('reclaim above', '[{"name": "a", "workflow": "progress inner"}]');
SELECT pg_temp.next('reclaim above', 'anna');
SELECT pg_temp.make('reclaim ended', '[{"name": "a"}, {"name": "b"}]', on_failure => 'fail');
SELECT pg_temp.next('reclaim ended', 'anna', '1 millisecond');
SELECT pg_temp.fail('reclaim ended', 'b');
SELECT pg_sleep(0.01);
SELECT pg_temp.reclaim('0');
SELECT pg_temp.next('reclaim above', 'bert');

-- ---------- invalid calls ----------

SELECT pg_temp.try(call) FROM unnest(ARRAY[
    $$stepwise.get_plan_status(NULL)$$,
    $$stepwise.get_plan_status('00000000-0000-7000-8000-000000000000')$$,
    $$pg_temp.status('reclaim', '-1 second')$$,
    $$pg_temp.status('reclaim', '100000000 years')$$,
    $$stepwise.reclaim_stalled('-1 second')$$,
    $$stepwise.reclaim_stalled('100000000 years')$$]) AS call;

RESET ROLE;
BEGIN;
SELECT stepwise.enter_tenant('regress_progress');
SELECT pg_temp.unsound();
COMMIT;
SELECT stepwise.remove_member('regress_stepwise_worker', 'regress_progress') IS NOT NULL;
DROP OWNED BY regress_stepwise_worker;
DROP ROLE regress_stepwise_worker;
