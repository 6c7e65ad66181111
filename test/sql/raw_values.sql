-- Values that only plain SQL can store: infinite times, the time that is stored as 0, and ids of other tenants.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

CREATE FUNCTION pg_temp.try(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ': ' || SQLERRM;
END $$;

CREATE ROLE regress_values;
SELECT stepwise.grant_agent('regress_values') ->> 'granted', stepwise.add_member('regress_values', 'values A') ->> 'added';

-- ---------- the time that is stored as 0 is a valid time ----------

BEGIN;
SELECT stepwise.enter_tenant('values A');
SELECT stepwise.create_plan('zero', 'test', '[{"name": "a"}, {"name": "b"}]') ->> 'planId' AS plan \gset
SELECT stepwise.get_next_step(:'plan', 'anna') ->> 'stepId' AS step \gset
COMMIT;
UPDATE stepwise.step SET lease_expires_at = '2000-01-01 00:00+00', active_at = '2000-01-01 00:00+00' WHERE id = :'step';
SELECT s.lease_expires_at = '2000-01-01 00:00+00', s.active_at = '2000-01-01 00:00+00' FROM stepwise.step AS s WHERE s.id = :'step';
-- it is the first lease in this tree; it has expired, so the next worker gets the step
BEGIN;
SELECT stepwise.enter_tenant('values A');
SELECT x ->> 'status', x ->> 'name', x ->> 'attempt' FROM stepwise.get_next_step(:'plan', 'bert') AS x;
SELECT x ->> 'status', x ->> 'name', x ->> 'attempt' FROM stepwise.get_next_step(:'plan', 'carl') AS x;
COMMIT;
SELECT detail ->> 'reason' FROM stepwise.audit WHERE plan_id = :'plan' AND event = 'step_released';

-- a claim of that time is stalled, and its time is shown
UPDATE stepwise.step SET started_at = '2000-01-01 00:00+00', active_at = '2000-01-01 00:00+00' WHERE plan_id = :'plan' AND status = 'in_progress';
BEGIN;
SELECT stepwise.enter_tenant('values A');
SET LOCAL timezone = 'UTC';
SELECT x #>> '{blocks,a,metadata,started_at}' LIKE '2000-01-01T00:00:00%', (x #> '{blocks,a,metadata,execution_time_ms}')::numeric > 1e11
FROM stepwise.execution(:'plan') AS x;
SELECT count(*) FROM jsonb_array_elements(stepwise.reclaim_stalled('1 year') -> 'reclaimed');
COMMIT;
SELECT name, status FROM stepwise.step WHERE plan_id = :'plan' ORDER BY step_order;

-- ---------- an infinite time is refused ----------

BEGIN;
SELECT stepwise.enter_tenant('values A');
SELECT stepwise.get_next_step(:'plan', 'anna', '1 hour') ->> 'stepId' AS step \gset
COMMIT;
SELECT a.attname, v.value, pg_temp.try(format('UPDATE stepwise.step SET %I = %L WHERE id = %L', a.attname, v.value, :'step'))
FROM pg_attribute AS a, (VALUES ('infinity'), ('-infinity')) AS v (value)
WHERE a.attrelid = 'stepwise.step'::regclass AND a.atttypid = 'timestamptz'::regtype ORDER BY a.attname, v.value;
SELECT pg_temp.try(format('UPDATE stepwise.step SET status = %L, %I = %L WHERE id = %L', 'completed', 'lease_expires_at', 'infinity', :'step'));
-- the largest finite values are accepted
UPDATE stepwise.step SET active_at = '4713-01-01 00:00+00 BC', lease_expires_at = '294276-12-31 00:00+00' WHERE id = :'step';
BEGIN;
SELECT stepwise.enter_tenant('values A');
SELECT jsonb_array_length(stepwise.get_plan_status(:'plan') -> 'stalledSteps'), jsonb_array_length(stepwise.reclaim_stalled() -> 'reclaimed');
COMMIT;

-- ---------- a step for another tenant's plan: there is no such plan ----------

BEGIN;
SELECT stepwise.enter_tenant('values B');
SELECT stepwise.create_plan('secret', 'test', '[{"name": "a"}]') ->> 'planId' AS foreign_plan \gset
COMMIT;
GRANT INSERT ON stepwise.step TO regress_values;
SET ROLE regress_values;
SELECT t.tenant, replace(pg_temp.try(format('INSERT INTO stepwise.step (tenant, plan_id, step_order, name) VALUES (%L, %L, 2, ''z'')', t.tenant, p.id)), p.id, 'ID')
FROM (VALUES ('values A'), ('values B'), ('nobody')) AS t (tenant), (VALUES (:'foreign_plan'), ('00000000-0000-7000-8000-000000000000')) AS p (id) ORDER BY 1;
-- a step for a plan of its own tenant is accepted
INSERT INTO stepwise.step (tenant, plan_id, step_order, name) VALUES ('values A', :'plan', 3, 'c');
RESET ROLE;
SELECT tenant, name, status FROM stepwise.step WHERE name = 'c' AND plan_id = :'plan';

-- ---------- an id of another tenant ----------

BEGIN;
SELECT stepwise.enter_tenant('values A');
SELECT stepwise.create_plan('twin', 'test', '[{"name": "a"}]') AS a \gset
COMMIT;
-- the error does not tell whether the id exists
SELECT split_part(pg_temp.try(format('INSERT INTO stepwise.step (tenant, id, plan_id, step_order, name) VALUES (%L, %L, %L, 2, %L)', 'values B', i.id, :'foreign_plan', 'b')), '"', 1)
FROM (VALUES (:'a'::jsonb #>> '{stepIds,0}'), ('00000000-0000-7000-8000-000000000000')) AS i (id);
BEGIN;
SELECT stepwise.enter_tenant('values A');
SELECT x ->> 'planStatus' FROM stepwise.submit_step_result((:'a'::jsonb #>> '{stepIds,0}')::uuid, '1') AS x;
COMMIT;

-- ---------- final checks ----------

BEGIN;
SELECT stepwise.enter_tenant('values A');
SELECT count(*), bool_and((stepwise.verify_audit(p.id) -> 'valid')::boolean) FROM stepwise.plan AS p WHERE p.tenant = 'values A';
SELECT count(stepwise.cancel_plan(p.id)) FROM stepwise.plan AS p WHERE p.tenant = 'values A' AND p.completed_at IS NULL;
SELECT stepwise.enter_tenant('values B');
SELECT count(*), bool_and((stepwise.verify_audit(p.id) -> 'valid')::boolean) FROM stepwise.plan AS p WHERE p.tenant = 'values B';
COMMIT;
SELECT * FROM stepwise.check_integrity() WHERE tenant LIKE 'values _';
SELECT stepwise.remove_member('regress_values', 'values A') ->> 'removed';
DROP OWNED BY regress_values;
DROP ROLE regress_values;
