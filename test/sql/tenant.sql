-- Tenants are separated: entering and leaving a tenant, and what an agent of one tenant can try against another.
-- regress_a works for tenant Anna, regress_b for Bert. Tests of all functions take them from the catalog, and list failures: none.
\set VERBOSITY sqlstate
SET client_min_messages = warning;
SELECT current_user AS owner \gset

CREATE ROLE regress_a LOGIN;
CREATE ROLE regress_b LOGIN;
CREATE ROLE regress_ab LOGIN;
CREATE ROLE regress_none LOGIN;
CREATE ROLE regress_reader LOGIN;
CREATE ROLE regress_stranger LOGIN;
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['regress_a', 'regress_b', 'regress_ab', 'regress_none']
    LOOP
        PERFORM stepwise.grant_agent(name::regrole);
    END LOOP;
END $$;
SELECT stepwise.grant_reader('regress_reader') - 'objects' AS grant_reader;
SELECT stepwise.add_member('regress_a', 'Anna');
SELECT stepwise.add_member('regress_a', 'Anna');
SELECT stepwise.add_member('regress_b', 'Bert') -> 'added', stepwise.add_member('regress_ab', 'Anna') -> 'added',
       stepwise.add_member('regress_ab', 'Bert') -> 'added', stepwise.add_member('regress_reader', 'Anna') -> 'added';

-- ---------- what the tests use ----------

CREATE SCHEMA probe;
GRANT USAGE ON SCHEMA probe TO PUBLIC;

-- Create plans: one with a step in progress, one that waits for an answer, one for a review. Returns their ids by argument name.
CREATE FUNCTION probe.plans(of text) RETURNS jsonb
LANGUAGE plpgsql
AS $$
DECLARE
    plan_id uuid;
    step_id uuid;
    waiting uuid;
    reviewed uuid;
BEGIN
    plan_id := stepwise.create_plan('plan of ' || of, 'be seen by ' || of || ' only',
        '[{"name": "one", "tool": "hammer"}, {"name": "two"}, {"name": "three"}]') ->> 'planId';
    step_id := stepwise.get_next_step(plan_id, worker => 'w') ->> 'stepId';
    waiting := stepwise.create_plan('wait of ' || of, 'wait', format('[{"name": "ask", "prompt": "Well, you of %s?"}]', of)::jsonb) ->> 'planId';
    reviewed := stepwise.create_plan('review of ' || of, 'be reviewed', '[{"name": "one"}, {"name": "two"}]') #>> '{stepIds,0}';
    PERFORM stepwise.get_next_step(s.plan_id) FROM stepwise.step AS s WHERE s.id = reviewed;
    RETURN jsonb_build_object('plan_id', plan_id, 'step_id', step_id, 'checkpoint_id', stepwise.get_next_step(waiting) ->> 'checkpointId',
        'review_id', stepwise.request_user_review(reviewed, 'look, you of ' || of) ->> 'checkpointId');
END $$;

-- The answer of a statement, or its error. Its changes are rolled back. The session must have the same user as before.
CREATE FUNCTION probe.try(statement text, OUT state text, OUT answer text, OUT detail text, OUT hint text)
LANGUAGE plpgsql
AS $$
DECLARE
    before text := format('%s, %s', current_user, current_setting('search_path'));
BEGIN
    BEGIN
        EXECUTE statement INTO answer;
        RAISE EXCEPTION USING ERRCODE = 'ZZ000', MESSAGE = coalesce(answer, 'null');
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, answer = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    END;
    state := CASE state WHEN 'ZZ000' THEN 'fine' ELSE state END;
    IF before <> format('%s, %s', current_user, current_setting('search_path')) THEN
        state := format('the session is now %s, %s', current_user, current_setting('search_path'));
    END IF;
END $$;

-- The functions that the current role may call, one row for each argument.
CREATE VIEW probe.argument AS
    SELECT p.oid::regprocedure AS function, p.prokind = 'p' AS is_procedure, a.number, p.proargnames[a.number] AS name,
           a.type::regtype::text AS type
    FROM pg_proc AS p LEFT JOIN LATERAL unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (type, number) ON true
    WHERE p.pronamespace = 'stepwise'::regnamespace AND has_function_privilege(p.oid, 'EXECUTE');
GRANT SELECT ON probe.argument TO PUBLIC;

-- A useful value for an argument, chosen by its name or its type.
CREATE FUNCTION probe.value(name text, type text) RETURNS text
LANGUAGE sql
AS $$
    SELECT coalesce(
        CASE WHEN type IN ('text', 'jsonb', 'numeric') THEN '{
            "steps": "[{\"name\": \"zero\"}]", "definition": "{\"name\": \"flow\", \"steps\": [{\"name\": \"zero\"}]}",
            "workflow": "flow", "branching_conditions": "[]", "on_failure": "continue", "outcome": "success", "decision": "approve",
            "action": "add_steps", "params": "{\"steps\": [{\"name\": \"four\"}]}", "questions": "[]", "tenant": "Anna",
            "from_step": "one", "step_name": "one", "tool": "hammer", "confidence": "0.5", "worker": "w", "status": "started",
            "request": "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/list\"}"}'::jsonb ->> name END,
        '{"text": "x", "jsonb": "{}", "integer": "1", "numeric": "1", "interval": "1 hour", "boolean": "false",
          "uuid": "01234567-89ab-7def-8123-456789abcdef", "timestamp with time zone": "2030-01-01 00:00:00+00",
          "stepwise.step_status[]": "{pending}", "stepwise.step_status": "pending", "stepwise.plan_status": "planning",
          "stepwise.outcome": "n/a", "stepwise.on_failure": "continue"}'::jsonb ->> type)
$$;

-- The ids for a function. A function that decides a review needs another checkpoint than one that answers a prompt.
CREATE FUNCTION probe.ids(function regprocedure, ids jsonb) RETURNS jsonb
LANGUAGE sql
AS $$ SELECT CASE WHEN function::text ~ '^stepwise.submit_user_decision' THEN ids || jsonb_build_object('checkpoint_id', ids -> 'review_id') ELSE ids END $$;

-- A call of a function with values for all its arguments, some of them given; a given null becomes NULL.
CREATE FUNCTION probe.call(function regprocedure, given jsonb) RETURNS text
LANGUAGE sql
AS $$
    SELECT format(CASE WHEN bool_or(a.is_procedure) THEN 'CALL %s(%s)' ELSE 'SELECT %s(%s)' END, split_part($1::text, '(', 1),
                  string_agg(format('%I => %L', a.name, CASE WHEN given ? a.name THEN given ->> a.name ELSE probe.value(a.name, a.type) END),
                             ', ' ORDER BY a.number) FILTER (WHERE a.name IS NOT NULL))
    FROM probe.argument AS a WHERE a.function = $1
$$;

-- ---------- entering a tenant ----------

-- A role with one membership is in that tenant. With several it must enter one. With none it is in no tenant.
SET ROLE regress_a;
SELECT stepwise.current_tenant();
SELECT probe.plans('Anna') AS plans_a \gset
SET ROLE regress_b;
SELECT probe.plans('Bert') AS plans_b \gset
SELECT stepwise.current_tenant(), count(*), min(name) FROM stepwise.plan;
SET ROLE regress_ab;
SELECT stepwise.current_tenant();
SELECT count(*) FROM stepwise.plan;
SET ROLE regress_none;
SELECT stepwise.current_tenant();
SELECT count(*) FROM stepwise.plan;
SELECT stepwise.enter_tenant('Anna');
SELECT stepwise.enter_tenant('default');
SET ROLE regress_reader;
SELECT stepwise.current_tenant(), count(*), min(name) FROM stepwise.plan;
SET ROLE regress_stranger;
SELECT stepwise.current_tenant();
SELECT count(*) FROM stepwise.plan;

-- The owner is in the default tenant, and may enter any.
RESET ROLE;
SELECT stepwise.current_tenant();
BEGIN;
SELECT stepwise.enter_tenant('Bert');
SELECT stepwise.current_tenant();
COMMIT;
SELECT stepwise.current_tenant();

-- The error is the same for a tenant that exists and for one that does not.
SET ROLE regress_a;
SELECT x.name, t.state, replace(t.answer, x.name, '…') AS answer, t.detail, t.hint
FROM (VALUES ('Bert'), ('no such tenant'), ('default'), (''), ('Anna '), (' Anna')) AS x (name), probe.try(format('SELECT stepwise.enter_tenant(%L)', x.name)) AS t;
SELECT stepwise.enter_tenant(NULL);

-- ---------- leaving a tenant: only by the end of the transaction ----------

SET ROLE regress_ab;
BEGIN;
SELECT stepwise.enter_tenant('Anna');
SELECT stepwise.current_tenant();
SAVEPOINT s;
SELECT stepwise.enter_tenant('Bert');
SELECT stepwise.current_tenant();
ROLLBACK TO s;
SELECT stepwise.current_tenant();
SELECT stepwise.enter_tenant('Bert');
RELEASE s;
SELECT stepwise.current_tenant();
-- two savepoints: the inner one is released, the outer one is rolled back
SAVEPOINT outside;
SAVEPOINT inside;
SELECT stepwise.enter_tenant('Anna');
RELEASE inside;
SELECT stepwise.current_tenant();
ROLLBACK TO outside;
SELECT stepwise.current_tenant();
-- a refused call does not leave the tenant that was entered before
SAVEPOINT s;
SELECT stepwise.enter_tenant('Carl');
ROLLBACK TO s;
SELECT stepwise.current_tenant();
RESET ALL;
SELECT stepwise.current_tenant();
SET client_min_messages = warning;
COMMIT;
SELECT stepwise.current_tenant();

-- an exception block is a subtransaction
\set VERBOSITY terse
DO $$
BEGIN
    PERFORM stepwise.enter_tenant('Anna');
    BEGIN
        PERFORM stepwise.enter_tenant('Bert');
        RAISE EXCEPTION 'no';
    EXCEPTION WHEN raise_exception THEN
        RAISE WARNING 'after the exception: %', stepwise.current_tenant();
    END;
    BEGIN
        PERFORM stepwise.enter_tenant('Bert');
    EXCEPTION WHEN OTHERS THEN
        NULL;
    END;
    RAISE WARNING 'after a block that went well: %', stepwise.current_tenant();
    COMMIT;
    RAISE WARNING 'after COMMIT: %', (probe.try('SELECT stepwise.current_tenant()')).state;
END $$;
\set VERBOSITY sqlstate

BEGIN;
SELECT stepwise.enter_tenant('Anna');
ROLLBACK;
SELECT stepwise.current_tenant();
BEGIN;
SELECT stepwise.enter_tenant('Anna');
COMMIT AND CHAIN;
SELECT stepwise.current_tenant();
ROLLBACK;
BEGIN;
SELECT stepwise.enter_tenant('Anna');
COMMIT;
DISCARD ALL;
SET ROLE regress_ab;
SELECT stepwise.current_tenant();

-- ---------- another role: the entry counts only for the role that made it ----------

RESET ROLE;
BEGIN;
SELECT stepwise.enter_tenant('Bert');
SET LOCAL ROLE regress_a;
SELECT stepwise.current_tenant(), min(name) FROM stepwise.plan;
SET LOCAL ROLE regress_ab;
SAVEPOINT s;
SELECT stepwise.current_tenant();
ROLLBACK TO s;
SELECT stepwise.enter_tenant('Anna');
SELECT stepwise.current_tenant(), min(name) FROM stepwise.plan;
RESET ROLE;
SELECT stepwise.current_tenant();
SET LOCAL SESSION AUTHORIZATION regress_none;
SAVEPOINT s;
SELECT stepwise.current_tenant();
ROLLBACK TO s;
COMMIT;
RESET SESSION AUTHORIZATION;
SET client_min_messages = warning;

-- A security definer function of Bert works in the tenant of Bert. Its caller Anna is in her own tenant afterwards.
GRANT CREATE ON DATABASE :DBNAME TO regress_a, regress_b;
SET ROLE regress_b;
CREATE SCHEMA of_b;
GRANT USAGE ON SCHEMA of_b TO PUBLIC;
CREATE FUNCTION of_b.look() RETURNS text LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT stepwise.enter_tenant('Bert'); SELECT current_user || ' in ' || stepwise.current_tenant() || ': ' || min(name) FROM stepwise.plan $$;
CREATE FUNCTION of_b.try_to_enter(tenant text) RETURNS text LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT stepwise.enter_tenant(tenant); SELECT stepwise.current_tenant() $$;
SET ROLE regress_a;
BEGIN;
SELECT stepwise.enter_tenant('Anna');
SELECT of_b.look();
SELECT stepwise.current_tenant(), min(name) FROM stepwise.plan;
-- the tenant of Bert is not that of Anna
SELECT (probe.try($$ SELECT of_b.try_to_enter('Anna') $$)).state;
COMMIT;
-- A view uses the rights of its owner, but the tenant of the reader.
SET ROLE regress_b;
CREATE VIEW of_b.plans AS SELECT name FROM stepwise.plan;
GRANT SELECT ON of_b.plans TO PUBLIC;
SELECT min(name) FROM of_b.plans;
SET ROLE regress_a;
SELECT min(name) FROM of_b.plans;
SET ROLE regress_stranger;
SELECT min(name) FROM of_b.plans;

-- ---------- a membership ends while the tenant is entered: refused at the next use, not another tenant ----------

RESET ROLE;
BEGIN;
SET LOCAL ROLE regress_ab;
SELECT stepwise.enter_tenant('Anna');
SELECT min(name) FROM stepwise.plan;
RESET ROLE;
SELECT stepwise.remove_member('regress_ab', 'Anna');
SELECT stepwise.remove_member('regress_ab', 'Anna') -> 'removed' AS again;
SET LOCAL ROLE regress_ab;
SELECT (probe.try('SELECT stepwise.current_tenant()')).*;
SELECT (probe.try('SELECT count(*) FROM stepwise.plan')).state;
SELECT (probe.try('SELECT probe.plans($$AB$$)')).state;
-- the other tenant may be entered
SELECT stepwise.enter_tenant('Bert');
SELECT min(name) FROM stepwise.plan;
ROLLBACK;
-- the removal was rolled back, so it has no effect
BEGIN;
SET LOCAL ROLE regress_ab;
SELECT stepwise.enter_tenant('Anna');
SELECT min(name) FROM stepwise.plan;
COMMIT;
-- by plain SQL as the owner: effective at once too
BEGIN;
DELETE FROM stepwise.member WHERE role = 'regress_a'::regrole;
SET LOCAL ROLE regress_a;
SELECT (probe.try('SELECT stepwise.current_tenant()')).state;
ROLLBACK;

-- A renamed role stays a member. A new role of the same name is not a member.
CREATE ROLE regress_old;
SELECT stepwise.grant_agent('regress_old') -> 'granted' AS granted, stepwise.add_member('regress_old', 'Anna') -> 'added' AS added;
ALTER ROLE regress_old RENAME TO regress_new;
SET ROLE regress_new;
SELECT stepwise.current_tenant();
RESET ROLE;
DROP OWNED BY regress_new;
DROP ROLE regress_new;
CREATE ROLE regress_new;
SELECT stepwise.grant_agent('regress_new') -> 'granted' AS granted;
SET ROLE regress_new;
SELECT stepwise.current_tenant();
RESET ROLE;
DROP OWNED BY regress_new;
DROP ROLE regress_new;

-- Members and grants are for the owner alone, and need a role and a tenant.
SET ROLE regress_a;
SELECT stepwise.add_member('regress_a', 'Bert');
SELECT stepwise.remove_member('regress_b', 'Bert');
SELECT stepwise.grant_agent('regress_stranger');
SELECT * FROM stepwise.member;
RESET ROLE;
SELECT stepwise.add_member(NULL, 'Bert');
SELECT stepwise.add_member('regress_a', NULL);
SELECT stepwise.add_member('regress_a', '');
SELECT stepwise.remove_member('regress_a', NULL);
SELECT stepwise.grant_agent(NULL);
SELECT stepwise.grant_reader(NULL);

-- ---------- prepared statements, cursors, parallel workers ----------

SET ROLE regress_ab;
PREPARE plans AS SELECT stepwise.current_tenant(), min(name) FROM stepwise.plan;
BEGIN;
SELECT stepwise.enter_tenant('Anna');
EXECUTE plans;
SELECT stepwise.enter_tenant('Bert');
EXECUTE plans;
COMMIT;
EXECUTE plans;
SET ROLE regress_a;
EXECUTE plans;
SET plan_cache_mode = force_generic_plan;
EXECUTE plans;
SET ROLE regress_b;
EXECUTE plans;
RESET plan_cache_mode;
DEALLOCATE plans;

-- A plpgsql function keeps its plans too.
SET ROLE regress_b;
CREATE FUNCTION of_b.kept() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT min(name) FROM stepwise.plan); END $$;
SELECT of_b.kept() FROM generate_series(1, 7);
SET ROLE regress_a;
SELECT of_b.kept();

-- Parallel workers have no tenant. The policy gets its value from the leader.
RESET ROLE;
DO $$
BEGIN
    PERFORM set_config(name, CASE name WHEN 'max_parallel_workers_per_gather' THEN '2' WHEN 'parallel_leader_participation' THEN 'off' ELSE '0' END, false)
    FROM pg_settings
    WHERE name IN ('parallel_setup_cost', 'parallel_tuple_cost', 'min_parallel_table_scan_size', 'min_parallel_index_scan_size',
                   'max_parallel_workers_per_gather', 'parallel_leader_participation');
    PERFORM set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
    PERFORM set_config(name, 'off', false) FROM pg_settings
    WHERE name IN ('enable_indexscan', 'enable_indexonlyscan', 'enable_bitmapscan', 'enable_nestloop', 'enable_mergejoin');
END $$;
CREATE FUNCTION probe.is_parallel(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN plan::text ~ '"Gather';
END $$;
SET ROLE regress_a;
\set query 'SELECT count(*) > 0 AS some, min(a.tenant), max(s.tenant) FROM stepwise.audit_log AS a JOIN stepwise.step AS s USING (tenant, plan_id)'
SELECT probe.is_parallel(:'query');
:query;
SET ROLE regress_ab;
BEGIN;
SELECT stepwise.enter_tenant('Bert');
:query;
COMMIT;
:query;
-- A function may be marked as parallel safe falsely. In a worker it still has no tenant.
SET ROLE regress_a;
CREATE SCHEMA of_a;
GRANT USAGE ON SCHEMA of_a TO PUBLIC;
CREATE FUNCTION of_a.tenant_there() RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS $$ BEGIN RETURN stepwise.current_tenant(); END $$;
SELECT DISTINCT of_a.tenant_there() FROM stepwise.plan;
SET ROLE regress_ab;
BEGIN;
SELECT stepwise.enter_tenant('Bert');
SELECT of_a.tenant_there();
ROLLBACK;
\c -
\set VERBOSITY sqlstate
SET client_min_messages = warning;

-- ---------- a reader's function in a query sees only rows of the reader's tenant ----------

SET ROLE regress_a;
\set VERBOSITY terse
CREATE FUNCTION of_a.spy(tenant text, name text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$
BEGIN
    IF tenant <> 'Anna' THEN
        RAISE WARNING 'saw % of %', name, tenant;
    END IF;
    RETURN true;
END $$;
SELECT count(*) FROM stepwise.plan WHERE of_a.spy(tenant, name);
SELECT count(*) FROM stepwise.audit WHERE of_a.spy(tenant, event);
SELECT count(*) FROM stepwise.plan AS p JOIN stepwise.step AS s ON of_a.spy(p.tenant, s.name) AND of_a.spy(s.tenant, p.name) AND s.plan_id = p.id;
\set VERBOSITY sqlstate
SELECT count(*) FROM pg_stats WHERE schemaname = 'stepwise';
SET row_security = off;
SELECT count(*) FROM stepwise.plan;
SELECT (probe.try(format('SELECT stepwise.audit_head(%L)', :'plans_a'::jsonb ->> 'plan_id'))).state AS own,
       (probe.try(format('SELECT stepwise.audit_head(%L)', :'plans_b'::jsonb ->> 'plan_id'))).state AS foreign;
RESET row_security;

-- ---------- views ----------

-- Every readable view can be read, and shows only rows of the own tenant. Views that fail or show rows of Bert are listed.
CREATE FUNCTION of_a.views(OUT role name, OUT name text, OUT state text, OUT answer text) RETURNS SETOF record LANGUAGE sql AS $$
    SELECT current_user, c.relname, t.state, t.answer
    FROM pg_class AS c, probe.try(format('SELECT string_agg(v::text, %L) FROM stepwise.%I AS v', ' ', c.relname)) AS t
    WHERE c.relnamespace = 'stepwise'::regnamespace AND c.relkind = 'v' AND has_table_privilege(c.oid, 'SELECT')
$$;
SELECT name FROM of_a.views() ORDER BY name;
BEGIN;
SELECT stepwise.get_next_step((stepwise.create_plan('stall of Anna', 'be silent', '[{"name": "one"}]', stall_after => '1 microsecond') ->> 'planId')::uuid) ->> 'status' AS claimed;
SELECT * FROM of_a.views() WHERE state <> 'fine' OR answer ~ 'of Bert' OR answer !~ 'of Anna';
SET ROLE regress_reader;
SELECT * FROM of_a.views() WHERE state <> 'fine' OR answer ~ 'of Bert' OR answer !~ 'of Anna';
SET ROLE regress_b;
SELECT count(*) > 0 AS some FROM of_a.views() WHERE state = 'fine' AND answer ~ 'of Bert' AND answer !~ 'of Anna';
ROLLBACK;

-- ---------- agents write only through the functions, readers not at all ----------

RESET ROLE;
CREATE TABLE probe.wrote (role text, statement text, state text);
GRANT INSERT ON probe.wrote TO PUBLIC;
DO $do$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['regress_a', 'regress_reader', 'regress_stranger']
    LOOP
        PERFORM set_config('role', role, true);
        INSERT INTO probe.wrote
        SELECT role, x.statement, (probe.try(x.statement)).state
        FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = 1, format('%I.%I', 'stepwise', c.relname) AS t, unnest(ARRAY[
            format('INSERT INTO %s (%I) SELECT %2$I FROM %1$s RETURNING 1', t, a.attname),
            format('INSERT INTO %s DEFAULT VALUES RETURNING 1', t),
            format('UPDATE %s SET %I = DEFAULT RETURNING 1', t, a.attname),
            format('DELETE FROM %s RETURNING 1', t),
            format('TRUNCATE %s', t),
            format('LOCK TABLE %s IN ROW EXCLUSIVE MODE', t),
            format('SELECT 1 FROM %s FOR KEY SHARE', t),
            format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', t),
            format('ALTER TABLE %s DISABLE TRIGGER ALL', t),
            format('CREATE TRIGGER mine BEFORE UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()', t),
            format('CREATE POLICY mine ON %s USING (true)', t),
            format('CREATE RULE mine AS ON INSERT TO %s DO INSTEAD NOTHING', t)]) AS x (statement)
        WHERE c.relnamespace = 'stepwise'::regnamespace AND c.relkind = 'r';
    END LOOP;
END $do$;
SELECT role, state, count(DISTINCT statement) > 100 AS many FROM probe.wrote GROUP BY 1, 2 ORDER BY 1, 2;
SET ROLE regress_a;
SET session_replication_role = replica;
CREATE TABLE stepwise.mine ();

-- The reader may call nothing that changes something.
SET ROLE regress_reader;
SELECT DISTINCT function FROM probe.argument ORDER BY 1;

-- ---------- every function answers the same for a plan of another tenant and for a plan that does not exist ----------

-- each argument that is an id, the others being the caller's own
SET ROLE regress_a;
CREATE TEMP TABLE foreign_id AS
SELECT a.function, a.name, f.state AS foreign_state, u.state AS unknown_state,
       replace(concat_ws(E'\n', f.answer, f.detail, f.hint), b.ids ->> a.name, 'ID') AS foreign_answer,
       replace(concat_ws(E'\n', u.answer, u.detail, u.hint), '01234567-89ab-7def-8123-456789abcdef', 'ID') AS unknown_answer
FROM probe.argument AS a, probe.ids(a.function, :'plans_a') AS own (ids), probe.ids(a.function, :'plans_b') AS b (ids),
     probe.try(probe.call(a.function, own.ids || jsonb_build_object(a.name, b.ids ->> a.name))) AS f,
     probe.try(probe.call(a.function, own.ids || jsonb_build_object(a.name, '01234567-89ab-7def-8123-456789abcdef'))) AS u
WHERE a.type = 'uuid' AND b.ids ? a.name;
SELECT count(*) > 10 AS many FROM foreign_id;
SELECT * FROM foreign_id WHERE (foreign_state, foreign_answer) IS DISTINCT FROM (unknown_state, unknown_answer) ORDER BY function::text;
-- the error is "not found"; functions that filter by an id find nothing
SELECT function, name, foreign_state, foreign_answer FROM foreign_id
WHERE foreign_state <> '{"plan_id": "SW001", "step_id": "SW002", "checkpoint_id": "SW009"}'::jsonb ->> name
  AND function::text !~ '^stepwise\.(search_artifacts|run_steps)\('
ORDER BY function::text;
SELECT :'plans_b'::jsonb ->> 'plan_id' AS plan_of_b \gset
CALL stepwise.run_steps(:'plan_of_b');
CALL stepwise.run_steps('01234567-89ab-7def-8123-456789abcdef');
-- also for ids inside a value
SELECT m.action, f.state, replace(f.answer, :'plans_b'::jsonb ->> 'step_id', 'ID') = replace(u.answer, '01234567-89ab-7def-8123-456789abcdef', 'ID') AS same,
       f.detail = u.detail AND f.hint = u.hint AS same_detail_and_hint
FROM (VALUES ('remove_step', '{"stepId": "%s"}'), ('reorder_steps', '{"stepIds": ["%s"]}'), ('fail_step', '{"stepId": "%s", "reason": "x"}'),
             ('update_step_instructions', '{"stepId": "%s", "instructions": "x"}')) AS m (action, params),
     probe.try(format('SELECT stepwise.modify_plan(%L, %L, %L)', :'plans_a'::jsonb ->> 'plan_id', m.action, format(m.params, :'plans_b'::jsonb ->> 'step_id'))) AS f,
     probe.try(format('SELECT stepwise.modify_plan(%L, %L, %L)', :'plans_a'::jsonb ->> 'plan_id', m.action, format(m.params, '01234567-89ab-7def-8123-456789abcdef'))) AS u;
-- the ids are valid: for Bert the same calls do not answer "not found"
SET ROLE regress_b;
SELECT a.function, t.* FROM (SELECT DISTINCT function FROM probe.argument WHERE :'plans_b'::jsonb ? name) AS a,
       probe.try(probe.call(a.function, probe.ids(a.function, :'plans_b'))) AS t
WHERE t.state IN ('SW001', 'SW002', 'SW009') ORDER BY a.function::text;

-- Names used in one tenant are free in another. Workflows, keys and states of one tenant do not exist in another.
SET ROLE regress_b;
SELECT stepwise.define_workflow('{"name": "secret", "steps": [{"name": "one"}]}') -> 'version' AS version;
SELECT stepwise.create_plan('p', 'g', '[{"name": "one"}]', idempotency_key => 'key') ? 'existing' AS existing;
SET ROLE regress_a;
SELECT stepwise.list_workflows();
SELECT stepwise.get_workflow('secret');
SELECT stepwise.start_workflow('secret');
SELECT stepwise.drop_workflow('secret');
SELECT stepwise.create_plan('p', 'g', '[{"name": "one", "workflow": "secret"}]');
SELECT stepwise.create_plan('p', 'other', '[{"name": "one"}]', idempotency_key => 'key') ? 'existing' AS existing;
SELECT (probe.try($$SELECT stepwise.get_workflow('secret')$$)).hint IS NOT DISTINCT FROM (probe.try($$SELECT stepwise.get_workflow('secreu')$$)).hint AS same_hint;

-- ---------- a malicious schema first in the search path ----------

-- The schema has operators, functions and types that precede those of PostgreSQL. None of them may run inside a function of ours.
SET ROLE regress_a;
CREATE SCHEMA evil;
CREATE TABLE evil.call AS SELECT DISTINCT function::pg_catalog.text AS function, probe.call(function, probe.ids(function, :'plans_a')) AS statement FROM probe.argument;
CREATE FUNCTION evil.run(what text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'evil % ran as %', what, current_user USING ERRCODE = 'EV000';
END $$;
DO $do$
DECLARE
    o record;
BEGIN
    -- every operator with these names, and every function with these
    FOR o IN
        SELECT format('CREATE FUNCTION evil.%1$I(%2$s, %3$s) RETURNS boolean LANGUAGE sql AS $f$ SELECT evil.run(%4$L) $f$;'
                      'CREATE OPERATOR evil.%5$s (LEFTARG = %2$s, RIGHTARG = %3$s, FUNCTION = evil.%1$I)',
                      'op ' || p.oprname, p.oprleft::regtype, p.oprright::regtype, 'operator ' || p.oprname, p.oprname) AS statement
        FROM pg_operator AS p
        WHERE p.oprnamespace = 'pg_catalog'::regnamespace AND p.oprkind = 'b' AND p.oprresult = 'boolean'::regtype
          AND p.oprname IN ('=', '<>', '<', '<=', '>', '>=', '~', '~~', '!~', '~*', '@>', '<@', '?', '?|', '?&', '@@', '@?', '&&')
        UNION ALL
        SELECT format('CREATE FUNCTION evil.%I(%s) RETURNS %s LANGUAGE plpgsql AS $f$ BEGIN PERFORM evil.run(%L); END $f$',
                      p.proname, pg_get_function_identity_arguments(p.oid), pg_get_function_result(p.oid), 'function ' || p.proname)
        FROM pg_proc AS p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f'
          AND p.proname ~ ('^(jsonb?_.*|to_jsonb?|row_to_json|.*tsvector|.*tsquery|ts_.*|setweight|hash.*|pg_advisory_.*|pg_notify|.*_timestamp|now|age|'
                           'date_.*|extract|make_.*|to_char|format|left|right|[lr]?trim|[lr]pad|replace|lower|upper|.*length|concat.*|quote_.*|sha.*|encode|decode|'
                           'convert.*|md5|array_.*|cardinality|string_.*|regexp_.*|unnest|generate_.*|gen_.*|repeat|round|floor|ceil|abs|mod|set_config|'
                           'current_.*|has_.*|to_reg.*|position|strpos|substr.*|num_nonnulls|row_number)$')
    LOOP
        BEGIN
            EXECUTE o.statement;
        EXCEPTION WHEN feature_not_supported OR invalid_function_definition OR datatype_mismatch OR undefined_object OR duplicate_function THEN
            NULL;   -- of types that only C can handle
        END;
    END LOOP;
END $do$;
SELECT count(*) > 100 AS many_operators FROM pg_operator WHERE oprnamespace = 'evil'::regnamespace;
SELECT count(*) > 100 AS many_functions FROM pg_proc WHERE pronamespace = 'evil'::regnamespace;
CREATE AGGREGATE evil.count(*) (SFUNC = int8inc, STYPE = bigint, INITCOND = '666');
CREATE AGGREGATE evil.max(integer) (SFUNC = int4larger, STYPE = integer, INITCOND = '666');
CREATE DOMAIN evil.text AS pg_catalog.text CHECK (evil.run('domain text'));
CREATE DOMAIN evil.int4 AS pg_catalog.int4 CHECK (evil.run('domain int4'));
CREATE DOMAIN evil.jsonb AS pg_catalog.jsonb CHECK (evil.run('domain jsonb'));
CREATE DOMAIN evil.uuid AS pg_catalog.uuid CHECK (evil.run('domain uuid'));
CREATE DOMAIN evil.bool AS pg_catalog.bool CHECK (evil.run('domain bool'));
CREATE DOMAIN evil.regrole AS pg_catalog.oid CHECK (evil.run('domain regrole'));
CREATE DOMAIN evil.timestamptz AS pg_catalog.timestamptz CHECK (evil.run('domain timestamptz'));
CREATE DOMAIN evil.step_status AS pg_catalog.text CHECK (evil.run('domain step_status'));
CREATE TABLE evil.plan (tenant text, id uuid);
CREATE TABLE evil.step (tenant text, id uuid);
-- As the first calls of a session, so that the engine prepares its queries under that path; and again with kept ones.
CREATE FUNCTION evil.all_calls() RETURNS TABLE (function pg_catalog.text, state pg_catalog.text, answer pg_catalog.text)
LANGUAGE plpgsql AS $$
DECLARE
    c record;
    message pg_catalog.text;
BEGIN
    FOR c IN TABLE evil.call
    LOOP
        BEGIN
            EXECUTE c.statement;
            RAISE EXCEPTION USING ERRCODE = 'ZZ000';
        EXCEPTION WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
            function := c.function;
            state := SQLSTATE;
            answer := message;
            RETURN NEXT;
        END;
    END LOOP;
END $$;
\c - regress_a
\set VERBOSITY sqlstate
CREATE TEMP TABLE plan (tenant text, id uuid);
CREATE TEMP TABLE step (tenant text, id uuid);
CREATE TEMP TABLE audit (tenant text, id uuid);
CREATE TEMP TABLE pg_class (oid oid, relname name);
CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (evil.run('temporary domain text'));
CREATE DOMAIN pg_temp.jsonb AS pg_catalog.jsonb CHECK (evil.run('temporary domain jsonb'));
SET search_path = evil, pg_temp, pg_catalog;
SELECT 'a'::pg_catalog.text = 'a'::pg_catalog.text AS the_operators_work;
SELECT * FROM evil.all_calls() WHERE state OPERATOR(pg_catalog.~) '^(EV|XX|42)';
SELECT * FROM evil.all_calls() WHERE state OPERATOR(pg_catalog.~) '^(EV|XX|42)';
SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 5 AS some_went_well FROM evil.all_calls() WHERE state OPERATOR(pg_catalog.=) 'ZZ000';
SHOW search_path;
SELECT stepwise.current_tenant();
-- nor when reading the tables: policies and views keep the operators with which they were created
SELECT pg_catalog.count(*) FROM stepwise.plan;
RESET search_path;

-- Plain SQL reaches the engine through triggers, which set the search path too.
\c - :owner
\set VERBOSITY sqlstate
SET client_min_messages = warning;
BEGIN;
GRANT UPDATE, INSERT ON stepwise.step TO regress_a;
SET LOCAL ROLE regress_a;
SET LOCAL search_path = evil, pg_temp, pg_catalog;
UPDATE stepwise.step SET status = 'completed' WHERE name OPERATOR(pg_catalog.=) 'one' AND status OPERATOR(pg_catalog.=) 'in_progress' RETURNING name, status;
SHOW search_path;
SELECT current_user;
-- rows of another tenant are invisible, and no row can be moved or added to another tenant
UPDATE stepwise.step SET message = 'x' WHERE tenant OPERATOR(pg_catalog.=) 'Bert' RETURNING name;
SAVEPOINT s;
UPDATE stepwise.step SET tenant = 'Bert' WHERE name OPERATOR(pg_catalog.=) 'two';
ROLLBACK TO s;
INSERT INTO stepwise.step (tenant, plan_id, step_order, name)
    SELECT 'Bert', (:'plans_b'::pg_catalog.jsonb OPERATOR(pg_catalog.->>) 'plan_id')::pg_catalog.uuid, 4, 'mine';
ROLLBACK;

-- ---------- settings that a user makes, also before the library is loaded ----------

\c - regress_a
\set VERBOSITY sqlstate
SET client_min_messages = error;
SET stepwise.tenant = 'Bert';
SET stepwise.current_tenant = 'Bert';
SET stepwise.max_steps = 1;
SET stepwise.max_result_bytes = 268435456;
SET stepwise.allow_recursion = on;
SET stepwise.notify = on;
SELECT stepwise.current_tenant(), count(*), min(tenant), max(tenant) FROM stepwise.plan;
SHOW stepwise.max_steps;
SHOW stepwise.max_result_bytes;
SHOW stepwise.allow_recursion;
SHOW stepwise.notify;
SET stepwise.tenant = 'Bert';
SET stepwise.max_steps = 100;
SELECT stepwise.current_tenant(), count(*), min(tenant), max(tenant) FROM stepwise.plan;

-- ---------- NOTIFY reveals nothing about a tenant ----------

\c - :owner
\set VERBOSITY sqlstate
SET client_min_messages = warning;
SET stepwise.notify = on;
LISTEN stepwise;
SET ROLE regress_b;
\o |sed 's/PID [0-9]*/PID …/'
SELECT stepwise.cancel_plan((:'plans_b'::jsonb ->> 'plan_id')::uuid) IS NULL;
SELECT 'the end';
\o
UNLISTEN *;
RESET ROLE;
RESET stepwise.notify;

-- ---------- an error leaves the session as it was ----------

-- A statement is cancelled in the middle of a call: outside a transaction block, after a savepoint, in an exception block.
SET ROLE regress_a;
SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'instructions', repeat('x', 50))) AS steps FROM generate_series(1, 10000) AS i \gset
SET statement_timeout = '10ms';
SELECT stepwise.create_plan('long', 'to be cancelled', :'steps');
RESET statement_timeout;
SELECT current_user, current_setting('search_path') AS search_path, stepwise.current_tenant();
BEGIN;
SAVEPOINT s;
SET LOCAL statement_timeout = '10ms';
SELECT stepwise.create_plan('long', 'to be cancelled', :'steps');
ROLLBACK TO s;
SELECT current_user, current_setting('search_path') AS search_path, stepwise.current_tenant();
COMMIT;
SELECT set_config('probe.steps', :'steps', false) IS NULL AS set;
\set VERBOSITY terse
SET statement_timeout = '10ms';
DO $$
BEGIN
    PERFORM stepwise.create_plan('long', 'to be cancelled', current_setting('probe.steps')::jsonb);
    RAISE WARNING 'was not cancelled';
EXCEPTION WHEN query_canceled THEN
    PERFORM set_config('statement_timeout', '0', false);
    RAISE WARNING '% % %', current_user, current_setting('search_path'), stepwise.current_tenant();
END $$;
\set VERBOSITY sqlstate
RESET statement_timeout;
RESET probe.steps;
SELECT count(*) FROM stepwise.plan WHERE name = 'long';
BEGIN READ ONLY;
SELECT stepwise.create_plan('p', 'g', '[{"name": "one"}]');
ROLLBACK;
SELECT current_user, current_setting('search_path') AS search_path;

-- purge commits, and keeps the role of its caller
SELECT stepwise.cancel_plan((stepwise.create_plan('p', 'g', '[{"name": "one"}]') ->> 'planId')::uuid) ->> 'planStatus' AS status
FROM generate_series(1, 3);
CALL stepwise.purge(now());
RESET ROLE;
CREATE ROLE regress_admin;
GRANT :"owner" TO regress_admin;
SET ROLE regress_admin;
SET search_path = evil, pg_catalog;
SELECT pg_catalog.count(*) FROM stepwise.plan WHERE completed_at IS NOT NULL AND tenant OPERATOR(pg_catalog.~) 'Anna|Bert';
CALL stepwise.purge('infinity', 2);
SELECT current_user, pg_catalog.current_setting('search_path') AS search_path;
SELECT pg_catalog.count(*) FROM stepwise.plan WHERE completed_at IS NOT NULL AND tenant OPERATOR(pg_catalog.~) 'Anna|Bert';
CALL stepwise.purge(NULL);
CALL stepwise.purge('infinity', 0);
CALL stepwise.purge('infinity', NULL);
SELECT current_user, pg_catalog.current_setting('search_path') AS search_path;
RESET search_path;
-- as part of a larger transaction it does not commit
SET ROLE regress_a;
SELECT stepwise.cancel_plan((stepwise.create_plan('p', 'g', '[{"name": "one"}]') ->> 'planId')::uuid) ->> 'planStatus' AS status;
SET ROLE regress_admin;
BEGIN;
CALL stepwise.purge('infinity');
SELECT count(*) FROM stepwise.plan WHERE completed_at IS NOT NULL AND tenant ~ 'Anna|Bert';
ROLLBACK;
SELECT count(*) FROM stepwise.plan WHERE completed_at IS NOT NULL AND tenant ~ 'Anna|Bert';
RESET ROLE;

-- run_steps commits too. A tool runs as the caller. SET LOCAL ROLE ends with a commit, and then no tool may run as the former role.
CREATE FUNCTION probe.who(arguments jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('role', current_user, 'tenant', stepwise.current_tenant()) $$;
CREATE FUNCTION probe.become(arguments jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE arguments ->> 'how';
    RETURN jsonb_build_object('role', current_user);
END $$;
BEGIN;
SELECT stepwise.enter_tenant('Anna');
SELECT stepwise.register_tool('who', 'probe.who(jsonb)') ->> 'function' AS who, stepwise.register_tool('become', 'probe.become(jsonb)') ->> 'function' AS become;
COMMIT;
SET ROLE regress_a;
SELECT stepwise.create_plan('run', 'g', '[{"name": "one", "tool": "who"}, {"name": "two", "tool": "who"}, {"name": "three", "tool": "who"}]') ->> 'planId' AS plan_id \gset
SELECT set_config('probe.plan_id', :'plan_id', false) IS NULL AS set;
RESET ROLE;
DO $$
DECLARE
    result jsonb;
BEGIN
    SET LOCAL ROLE regress_a;
    CALL stepwise.run_steps(current_setting('probe.plan_id')::uuid, result => result);
END $$;
SELECT current_user = :'owner' AS owner;
SET ROLE regress_a;
SELECT name, status, result FROM stepwise.step WHERE plan_id = :'plan_id' ORDER BY step_order;
CALL stepwise.run_steps(:'plan_id') \g /dev/null
SELECT name, status, result FROM stepwise.step WHERE plan_id = :'plan_id' ORDER BY step_order;
-- settings of a tool end with it
SELECT stepwise.run((stepwise.create_plan('become', 'g', jsonb_agg(jsonb_build_object('name', name, 'tool', 'become', 'arguments', jsonb_build_object('how', how)) ORDER BY name)
                     || '[{"name": "z", "tool": "who"}]', on_failure => 'continue') ->> 'planId')::uuid) ->> 'task_status' AS status
FROM (VALUES ('a', 'SET ROLE regress_b'), ('b', 'RESET ROLE'), ('c', 'RESET SESSION AUTHORIZATION'), ('d', 'SET search_path = evil'), ('e', 'SET row_security = off'),
             ('f', 'SET TRANSACTION READ ONLY'), ('g', 'DELETE FROM stepwise.audit'), ('h', $$SELECT stepwise.enter_tenant('Bert')$$)) AS x (name, how);
SELECT s.name, s.status, s.result FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.id = s.plan_id WHERE p.name = 'become' ORDER BY s.step_order;
SELECT current_user, current_setting('search_path') AS search_path, current_setting('row_security') AS row_security, stepwise.current_tenant();
RESET ROLE;

-- ---------- null and unusual values are accepted, or refused with an SQLSTATE of class SW ----------

SET ROLE regress_a;
SELECT probe.plans('Anna') AS plans_a \gset
CREATE TEMP TABLE strange (type text, label text, value text);
INSERT INTO strange VALUES
    ('text', 'empty', ''), ('text', 'blank', E' \t\n'), ('text', 'quotes', $v$'"\;--/*${x}%s%n$1$$v$),
    ('text', 'not ASCII', U&'\00e4\4e2d\+01f600\202e\feff'),
    ('text', 'too long for an index', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 500) AS i)),
    ('text', 'over the limit', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 33000) AS i)),
    ('jsonb', 'null', 'null'), ('jsonb', 'string', '"x"'), ('jsonb', 'empty string', '""'), ('jsonb', 'number', '-1e400'),
    ('jsonb', 'boolean', 'true'), ('jsonb', 'array', '[]'), ('jsonb', 'array of null', '[null]'), ('jsonb', 'array of arrays', '[[[]]]'),
    ('jsonb', 'array of numbers', '[1]'), ('jsonb', 'array of strings', '["", "x"]'), ('jsonb', 'array of empty objects', '[{}]'), ('jsonb', 'object', '{}'),
    ('jsonb', 'empty key', '{"": {"": ""}}'), ('jsonb', 'reference', '{"x": "${", "steps": "${steps.x}", "y": "${__internal__.x}"}'),
    ('jsonb', 'too deep', repeat('[', 65) || repeat(']', 65)), ('jsonb', 'far too deep', repeat('{"x":', 3000) || '1' || repeat('}', 3000)),
    ('jsonb', 'too large', (SELECT jsonb_build_object('x', string_agg(md5(i::text), ''))::text FROM generate_series(1, 33000) AS i)),
    ('jsonb', 'many keys', (SELECT jsonb_object_agg('k' || i, i)::text FROM generate_series(1, 20000) AS i)),
    ('jsonb', 'many elements', (SELECT jsonb_agg(i)::text FROM generate_series(1, 20000) AS i)),
    ('integer', 'zero', '0'), ('integer', 'negative', '-1'), ('integer', 'largest', '2147483647'), ('integer', 'smallest', '-2147483648'),
    ('interval', 'zero', '0'), ('interval', 'negative', '-1 hour'), ('interval', 'months', '1 month'), ('interval', 'largest', '178000000 years'),
    ('interval', 'smallest', '-178000000 years'), ('interval', 'of microseconds', '1 microsecond'),
    ('numeric', 'not a number', 'NaN'), ('numeric', 'infinite', 'Infinity'), ('numeric', 'negative', '-0.1'), ('numeric', 'large', '1e1000'), ('numeric', 'small', '1e-1000'),
    ('timestamp with time zone', 'infinity', 'infinity'), ('timestamp with time zone', '-infinity', '-infinity'),
    ('timestamp with time zone', 'first', '4714-11-24 00:00:00+00 BC'), ('timestamp with time zone', 'last', '294276-12-31 23:59:59.999999+00'),
    ('timestamp with time zone', 'zero', '2000-01-01 00:00:00+00'),
    ('boolean', 'true', 'true'), ('uuid', 'zero', '00000000-0000-0000-0000-000000000000'), ('uuid', 'ones', 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
    ('stepwise.step_status[]', 'empty', '{}'), ('stepwise.step_status[]', 'null', '{NULL}'), ('stepwise.step_status[]', 'two dimensions', '{{pending},{failed}}');
SELECT count(*) > 500 AS many FROM probe.argument AS a JOIN strange AS v USING (type);
CREATE TEMP TABLE answered AS
SELECT g.function, g.name, g.label AS value, t.state, left(t.answer, 200) AS answer
FROM (
    -- each argument null, and all of them
    SELECT a.function, a.name, 'null' AS label, jsonb_build_object(a.name, NULL) AS given FROM probe.argument AS a WHERE a.name IS NOT NULL
    UNION ALL
    SELECT a.function, NULL, 'null', jsonb_object_agg(a.name, NULL) FROM probe.argument AS a WHERE a.name IS NOT NULL GROUP BY 1
    UNION ALL
    SELECT a.function, a.name, v.label, jsonb_build_object(a.name, v.value) FROM probe.argument AS a JOIN strange AS v USING (type)) AS g,
    probe.try(probe.call(g.function, probe.ids(g.function, :'plans_a') || g.given)) AS t;
SELECT * FROM answered WHERE state <> 'fine' AND state !~ '^SW0' ORDER BY function::text, name, value;
-- values over a limit are refused in every argument
SELECT function, name, value FROM answered
WHERE state = 'fine' AND value IN ('over the limit', 'too large', 'too deep', 'far too deep')
  AND function::text !~ '^stepwise\.(validate_definition|search_artifacts|list_active_plans|list_plans|list_checkpoints|find_plans|mcp)\(' ORDER BY function::text, name, value;

-- Settings that change the format of values or the execution of statements do not change answers.
-- (ids are new each time, and so are times)
CREATE FUNCTION of_a.steady(answer text) RETURNS text LANGUAGE sql AS $$
    SELECT regexp_replace(regexp_replace(answer, '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}', 'ID', 'g'),
                          '[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z|"(head|hash)": "[0-9a-f]{64}"|"execution_time_ms": [0-9.]+', 'TIME', 'g')
$$;
CREATE FUNCTION of_a.try_under(name text, value text, statement text, OUT state text, OUT answer text) LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        PERFORM set_config(name, value, true);
        EXECUTE statement INTO answer;
        state := 'fine';
        RAISE EXCEPTION USING ERRCODE = 'ZZ000';
    EXCEPTION WHEN SQLSTATE 'ZZ000' THEN
        NULL;
    WHEN OTHERS THEN
        state := SQLSTATE;
        answer := SQLERRM;
    END;
    answer := of_a.steady(answer);
END $$;
SELECT s.name, s.value, c.function, t.state, t.answer, u.state AS usual_state, u.answer AS usual_answer
FROM evil.call AS c, LATERAL probe.call(c.function::regprocedure, probe.ids(c.function::regprocedure, :'plans_a')) AS call (statement),
     of_a.try_under('work_mem', '4MB', call.statement) AS u,
     (VALUES ('DateStyle', 'SQL, DMY'), ('DateStyle', 'German'), ('IntervalStyle', 'sql_standard'), ('IntervalStyle', 'iso_8601'),
        ('TimeZone', 'Pacific/Chatham'), ('bytea_output', 'escape'), ('extra_float_digits', '-15'), ('client_encoding', 'SQL_ASCII'),
        ('standard_conforming_strings', 'off'), ('array_nulls', 'off'), ('transform_null_equals', 'on'), ('xmloption', 'document'),
        ('default_text_search_config', 'pg_catalog.simple'), ('row_security', 'off'), ('plan_cache_mode', 'force_custom_plan'),
        ('enable_indexscan', 'off'), ('enable_seqscan', 'off'), ('work_mem', '64kB'), ('quote_all_identifiers', 'on'), ('geqo_threshold', '2'),
        ('lc_numeric', 'C'), ('default_table_access_method', 'heap'), ('search_path', '')) AS s (name, value),
     of_a.try_under(s.name, s.value, call.statement) AS t
WHERE (t.state, t.answer) IS DISTINCT FROM (u.state, u.answer) AND c.function <> 'stepwise.uuid7()'
ORDER BY c.function, s.name;

-- ---------- the end ----------

-- The tables are consistent, and every chain is valid.
RESET ROLE;
SELECT * FROM stepwise.check_integrity() WHERE tenant IN ('Anna', 'Bert');
DO $$
DECLARE
    p record;
BEGIN
    FOR p IN SELECT tenant, id FROM stepwise.plan WHERE tenant IN ('Anna', 'Bert')
    LOOP
        PERFORM stepwise.enter_tenant(p.tenant);
        ASSERT (stepwise.verify_audit(p.id) -> 'valid')::boolean, p.id;
    END LOOP;
END $$;
REVOKE :"owner" FROM regress_admin;
DROP SCHEMA probe, of_a, of_b, evil CASCADE;
DELETE FROM stepwise.member WHERE tenant IN ('Anna', 'Bert');
DROP OWNED BY regress_a, regress_b, regress_ab, regress_none, regress_reader, regress_stranger, regress_admin;
DROP ROLE regress_a, regress_b, regress_ab, regress_none, regress_reader, regress_stranger, regress_admin;
