-- Ids carry the slot of their tenant: their last three hex digits are the first 12 bits of the SHA-256 of its name in UTF-8.

\pset format unaligned
\pset tuples_only on
\set VERBOSITY sqlstate
SET client_min_messages = warning;
SET stepwise.log_tool_calls = on;

CREATE ROLE regress_slot;
CREATE ROLE regress_slot_stranger;
SELECT stepwise.grant_agent('regress_slot') ->> 'granted', stepwise.add_member('regress_slot', 'Zoë & Söhne') ->> 'added';

-- ---------- computed in plain SQL, as any language can ----------

CREATE FUNCTION pg_temp.slot(tenant text) RETURNS int LANGUAGE sql
AS $$ SELECT ('x' || left(encode(sha256(convert_to(tenant, 'UTF8')), 'hex'), 3))::bit(12)::int $$;
CREATE FUNCTION pg_temp.slot(id uuid) RETURNS int LANGUAGE sql AS $$ SELECT ('x' || right(id::text, 3))::bit(12)::int $$;

SELECT t.tenant, stepwise.tenant_slot(t.tenant) FROM (VALUES ('default'), ('Anna'), ('Zoë & Söhne'), ('日本'), ('')) AS t (tenant);
SELECT count(*) FROM generate_series(1, 2000) AS n, concat('tenant ', n) AS t (tenant) WHERE stepwise.tenant_slot(t.tenant) <> pg_temp.slot(t.tenant);
SELECT stepwise.tenant_slot(repeat('long', 100)) = pg_temp.slot(repeat('long', 100)), stepwise.tenant_slot('Anna') = pg_temp.slot('Anna');
SELECT min(stepwise.tenant_slot(n::text)), max(stepwise.tenant_slot(n::text)), count(DISTINCT stepwise.tenant_slot(n::text)) FROM generate_series(1, 50000) AS n;
SELECT stepwise.slot_of('01890a5d-ac96-774b-bcce-b302099a8fff'), stepwise.slot_of('01890a5d-ac96-774b-bcce-b302099af001'), stepwise.slot_of('00000000-0000-0000-0000-000000000000');
SELECT stepwise.slot_of(NULL) IS NULL, stepwise.tenant_slot(NULL) IS NULL;

-- both are immutable
CREATE TEMP TABLE routed (tenant text, slot int GENERATED ALWAYS AS (stepwise.tenant_slot(tenant)) STORED, id uuid, of_id int GENERATED ALWAYS AS (stepwise.slot_of(id)) STORED);

-- everyone may compute slots, and nothing else; by name too
SET ROLE regress_slot_stranger;
SELECT stepwise.tenant_slot('Anna') = stepwise.slot_of('00000000-0000-7000-8000-000000000bf4');
SELECT stepwise.uuid7();
SET ROLE regress_slot;
SELECT stepwise.call('tenant_slot', '{"tenant": "Anna"}'), stepwise.call('slot_of', '{"id": "00000000-0000-7000-8000-000000000bf4"}');

-- ---------- a new id ----------

-- of the tenant, version 7, unique, and ascending
SELECT count(DISTINCT id), bool_and(stepwise.slot_of(id) = stepwise.tenant_slot(stepwise.current_tenant())), bool_and(substr(id::text, 15, 1) = '7'),
       bool_and(substr(id::text, 20, 1) ~ '[89ab]'), bool_and(id > before) AS ascending
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM (SELECT n, stepwise.uuid7() AS id FROM generate_series(1, 10000) AS n) AS x) AS y;
-- the other bits of the last half are random: 50 of them, besides the variant and the slot
SELECT count(DISTINCT substr(id::text, 20, 4)) > 5000, count(DISTINCT substr(id::text, 25, 9)) FROM (SELECT stepwise.uuid7() AS id FROM generate_series(1, 10000)) AS x;
RESET ROLE;
SELECT stepwise.slot_of(stepwise.uuid7()) = stepwise.tenant_slot('default');
BEGIN;
SELECT stepwise.enter_tenant('Anna');
SELECT stepwise.slot_of(stepwise.uuid7()) = stepwise.tenant_slot('Anna');
SELECT stepwise.enter_tenant('default');
SELECT stepwise.slot_of(stepwise.uuid7()) = stepwise.tenant_slot('default');
COMMIT;

-- ---------- every id that the engine makes ----------

SET ROLE regress_slot;
SELECT count(stepwise.define_workflow('{"name": "inner", "steps": [{"name": "ask", "prompt": "Well?"}]}'));
SELECT stepwise.create_plan('slots', 'test', '[{"name": "a", "review": {"when": "after"}}, {"name": "b", "dependsOn": ["a"]}, {"name": "n", "workflow": "inner"}]',
    '[{"afterStep": "a", "conditionExpression": "outcome == \"success\"", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "added"}]}}]') AS plan \gset
SELECT :'plan'::jsonb ->> 'planId' AS plan, :'plan'::jsonb #>> '{stepIds,0}' AS step \gset
SELECT count(stepwise.store_artifact(:'plan', 'page', 'text')), count(stepwise.log_skill_execution('skill', 'started', 'session')),
       count(stepwise.modify_plan(:'plan', 'add_steps', '{"steps": [{"name": "more"}]}'));
SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT stepwise.get_next_step(:'plan') ->> 'status';
SELECT stepwise.submit_step_result(:'step', '1') ->> 'stepStatus';
SELECT checkpoint_id AS gate FROM stepwise.checkpoints WHERE step_id = :'step' \gset
SELECT count(*) FROM stepwise.checkpoint;
SELECT stepwise.submit_user_decision(:'gate', 'approve') ->> 'stepStatus';
SELECT count(stepwise.fork_plan(:'plan', 'b'));
SELECT stepwise.create_plan('asked', 'test', '[{"name": "a"}]') #>> '{stepIds,0}' AS asked \gset
SELECT stepwise.get_next_step(s.plan_id) ->> 'status' FROM stepwise.step AS s WHERE s.id = :'asked';
SELECT count(stepwise.request_user_review(:'asked', 'Good?'));
SELECT stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_plans", "arguments": {}}}') ->> 'id';

CREATE TEMP VIEW ids AS
    SELECT 'plan' AS kind, tenant, id FROM stepwise.plan
    UNION ALL SELECT 'step', tenant, id FROM stepwise.step
    UNION ALL SELECT 'checkpoint', tenant, id FROM stepwise.checkpoint
    UNION ALL SELECT 'artifact', tenant, id FROM stepwise.artifact
    UNION ALL SELECT 'skill_execution', tenant, id FROM stepwise.skill_execution
    UNION ALL SELECT 'tool_call', tenant, id FROM stepwise.tool_call;
SELECT kind, count(*), bool_and(pg_temp.slot(id) = pg_temp.slot(tenant)) FROM ids GROUP BY 1 ORDER BY 1;
RESET ROLE;
-- no other table has ids of its own, except the audit log, whose ids count
SELECT c.relname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE c.relnamespace = 'stepwise'::regnamespace AND c.relkind = 'r' AND a.attname = 'id' AND a.atttypid = 'uuid'::regtype ORDER BY 1;

-- ---------- plain SQL ----------

-- a step that comes without an id gets one of its tenant; another id is refused
UPDATE stepwise.step SET status = 'in_progress' WHERE id = :'asked';
INSERT INTO stepwise.step (tenant, plan_id, step_order, name) SELECT p.tenant, p.id, 2, 'by hand' FROM stepwise.plan AS p WHERE p.name = 'asked';
SELECT s.tenant, s.name, stepwise.slot_of(s.id) = stepwise.tenant_slot(s.tenant) FROM stepwise.step AS s WHERE s.name = 'by hand';
INSERT INTO stepwise.step (tenant, id, plan_id, step_order, name) SELECT p.tenant, '00000000-0000-7000-8000-000000000000', p.id, 3, 'refused' FROM stepwise.plan AS p WHERE p.name = 'asked';
INSERT INTO stepwise.step (tenant, id, plan_id, step_order, name) SELECT p.tenant, NULL, p.id, 3, NULL FROM stepwise.plan AS p WHERE p.name = 'asked';

-- check_integrity finds an id of another slot
SELECT * FROM stepwise.check_integrity() WHERE problem LIKE '%slot%' AND tenant = 'Zoë & Söhne';
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE stepwise.artifact SET id = '00000000-0000-7000-8000-000000000bf4' WHERE tenant = 'Zoë & Söhne';
UPDATE stepwise.step SET id = '00000000-0000-7000-8000-000000000bf4' WHERE name = 'by hand';
SELECT problem FROM stepwise.check_integrity() WHERE tenant = 'Zoë & Söhne' ORDER BY 1;
ROLLBACK;

-- nothing of it stays
SELECT stepwise.remove_member('regress_slot', 'Zoë & Söhne') ->> 'removed';
DROP VIEW ids;
DROP OWNED BY regress_slot;
DROP ROLE regress_slot;
DROP ROLE regress_slot_stranger;
