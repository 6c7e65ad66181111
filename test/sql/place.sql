-- A session remembers where the rows are that it wrote last. What is there later may be the row, another row, or nothing.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

CREATE FUNCTION pg_temp.plan(name text, size int) RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan(name, 'to be moved', (SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'instructions', 'do it')) FROM generate_series(1, size) AS i)) ->> 'planId')::uuid
$$;
CREATE FUNCTION pg_temp.next(plan uuid) RETURNS uuid LANGUAGE sql AS $$ SELECT (stepwise.get_next_step(plan) ->> 'stepId')::uuid $$;

-- ---------- the row is there: no index is searched, and SERIALIZABLE locks what was read ----------

SELECT pg_temp.plan('still', 1) AS plan \gset
SELECT pg_temp.next(:'plan') AS step \gset
BEGIN ISOLATION LEVEL SERIALIZABLE;
SAVEPOINT before;
SELECT stepwise.submit_step_result(:'step', '1') ->> 'stepStatus';
SELECT relation::regclass, locktype FROM pg_locks WHERE mode = 'SIReadLock' AND pid = pg_backend_pid() AND relation::regclass::text ~ '(plan|step)(_pkey)?$' ORDER BY relation::regclass::text;
ROLLBACK;

-- ---------- the row has moved ----------

SELECT pg_temp.plan('first', 3) AS plan \gset
SELECT pg_temp.next(:'plan') AS step \gset
UPDATE stepwise.step SET confidence = 0.5 WHERE id = :'step';
SELECT stepwise.submit_step_result(:'step', '1') ->> 'stepStatus';
SELECT pg_temp.next(:'plan') AS step \gset
VACUUM FULL stepwise.plan;
VACUUM FULL stepwise.step;
SELECT stepwise.submit_step_result(:'step', '2') ->> 'stepStatus';
-- rolled back
SELECT pg_temp.next(:'plan') AS step \gset
BEGIN;
SELECT stepwise.submit_step_result(:'step', '3') ->> 'planStatus';
ROLLBACK;
SELECT stepwise.submit_step_result(:'step', '4') ->> 'planStatus';
SELECT step_order, status, attempt, result FROM stepwise.step WHERE plan_id = :'plan' ORDER BY step_order;
SELECT stepwise.verify_audit(:'plan') -> 'valid';

-- ---------- the row is of another tenant ----------

SELECT pg_temp.plan('own', 2) AS plan \gset
SELECT pg_temp.next(:'plan') AS step \gset
\set VERBOSITY sqlstate
BEGIN;
SELECT stepwise.enter_tenant('place');
SAVEPOINT s;
SELECT stepwise.submit_step_result(:'step', '"other"') ->> 'stepStatus';
ROLLBACK TO s;
SELECT stepwise.get_next_step(:'plan');
ROLLBACK TO s;
SELECT stepwise.get_plan_status(:'plan');
ROLLBACK;
SELECT stepwise.submit_step_result(:'step', '"own"') ->> 'stepStatus';
SELECT tenant, step_order, status, result FROM stepwise.step WHERE plan_id = :'plan' ORDER BY tenant, step_order;
SELECT tenant, pending, completed FROM stepwise.plan WHERE id = :'plan' ORDER BY tenant;
\set VERBOSITY default

-- ---------- the next step is looked for behind the last one: it is there, it is another one, or it is taken ----------

SELECT pg_temp.plan('behind', 6) AS plan \gset
SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT stepwise.modify_plan(:'plan', 'reorder_steps', '{"steps": ["s1", "s2", "s6", "s5", "s4", "s3"]}') ->> 'planStatus';
SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT stepwise.modify_plan(:'plan', 'add_steps', '{"steps": [{"name": "between"}], "after": "s6"}') ->> 'planStatus';
SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT stepwise.skip_step(s.id) ->> 'stepStatus' FROM stepwise.step AS s WHERE s.plan_id = :'plan' AND s.name = 's5';
SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT stepwise.get_next_step(:'plan') ->> 'status';

-- ---------- a row that is written often stays in its page ----------

SELECT pg_temp.plan('often', 1) AS plan \gset
CREATE PROCEDURE pg_temp.claim_often(plan uuid, times int) LANGUAGE plpgsql AS $$
DECLARE
    claim jsonb;
BEGIN
    FOR i IN 1 .. times LOOP
        claim := stepwise.get_next_step(plan);
        COMMIT;
        PERFORM stepwise.release_step((claim ->> 'stepId')::uuid, (claim ->> 'attempt')::int);
        COMMIT;
    END LOOP;
END $$;
SELECT pg_relation_size('stepwise.step') AS steps, pg_relation_size('stepwise.plan') AS plans \gset
CALL pg_temp.claim_often(:'plan', 300);
SELECT attempt FROM stepwise.step WHERE plan_id = :'plan';
SELECT pg_relation_size('stepwise.step') - :steps <= 8192, pg_relation_size('stepwise.plan') - :plans <= 8192;

-- ---------- the page is gone; then another row is at the place ----------

SELECT pg_temp.plan('long', 3000) AS long \gset
SELECT pg_temp.plan('last', 2) AS plan \gset
SELECT pg_temp.next(:'plan') AS step \gset
SET session_replication_role = replica;
DELETE FROM stepwise.step WHERE plan_id IN (:'long', :'plan');
RESET session_replication_role;
VACUUM FULL stepwise.step;
\set VERBOSITY sqlstate
SELECT stepwise.submit_step_result(:'step', '1');
SELECT pg_temp.plan('longer', 4000) AS longer \gset
SELECT stepwise.submit_step_result(:'step', '1');
SELECT pending, completed FROM stepwise.plan WHERE id = :'longer';

-- nothing of it stays
SET session_replication_role = replica;
DELETE FROM stepwise.step WHERE plan_id = :'longer';
DELETE FROM stepwise.plan WHERE id IN (:'long', :'plan', :'longer');
DELETE FROM stepwise.plan_detail WHERE plan_id IN (:'long', :'plan', :'longer');
DELETE FROM stepwise.audit_log WHERE plan_id IN (:'long', :'plan', :'longer');
RESET session_replication_role;
