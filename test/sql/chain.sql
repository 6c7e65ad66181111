-- Audit entries other than state changes. Entries without a plan are in the chain of their tenant, and are appended when the
-- transaction commits. Artifacts, outputs and instructions have digests in the log. The actor shows the role and the given name.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

CREATE FUNCTION pg_temp.digest(value text) RETURNS text LANGUAGE sql AS $$
    SELECT encode(sha256(convert_to(value, 'UTF8')), 'hex')
$$;
CREATE FUNCTION pg_temp.in_a() RETURNS void LANGUAGE sql AS $$ SELECT stepwise.enter_tenant('chain A') $$;
-- The entries of the tenant since the last time.
CREATE TEMP TABLE seen (id bigint);
INSERT INTO seen VALUES (0);
CREATE FUNCTION pg_temp.entries() RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT a.event || ' ' || a.detail::text FROM stepwise.audit AS a, seen
        WHERE a.tenant = 'chain A' AND a.plan_id IS NULL AND a.id > seen.id ORDER BY a.id;
    UPDATE seen SET id = (SELECT max(a.id) FROM stepwise.audit AS a WHERE a.tenant = 'chain A' AND a.plan_id IS NULL);
END $$;
-- The answer of verify_audit in short.
CREATE FUNCTION pg_temp.told(v jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', v -> 'valid', v #> '{firstInvalid,id}', v #>> '{firstInvalid,reason}')
$$;

-- ---------- entries without a plan ----------

CREATE ROLE regress_chain;
SELECT stepwise.grant_agent('regress_chain') ->> 'granted';
SELECT stepwise.add_member('regress_chain', 'chain A') ->> 'added', stepwise.add_member('regress_chain', 'chain A') ->> 'added';
BEGIN;
SELECT pg_temp.in_a();
SELECT stepwise.define_workflow('{"name": "flow", "steps": [{"name": "a"}]}') ->> 'version';
SELECT stepwise.define_workflow('{"name": "flow", "steps": [{"name": "a"}]}') ->> 'created';
SELECT stepwise.define_workflow('{"name": "flow", "steps": [{"name": "b"}]}') ->> 'version';
SELECT stepwise.drop_workflow('flow') -> 'dropped';
SELECT stepwise.register_tool('tool', description => 'A secret') ->> 'name';
SELECT stepwise.drop_tool('tool') ->> 'name';
SELECT stepwise.register_resource('docs://*', 'stepwise.state_read(jsonb)') ->> 'pattern';
SELECT stepwise.drop_resource('docs://*') ->> 'pattern';
SELECT stepwise.state_write('{"name": "s", "value": {"a": "a secret"}}');
SELECT stepwise.state_merge('{"name": "s", "value": {"b": [1, 2]}}');
-- the entry is not visible before the transaction commits
SELECT count(*) FROM stepwise.audit WHERE tenant = 'chain A' AND at >= now();
COMMIT;
SELECT stepwise.remove_member('regress_chain', 'chain A') ->> 'removed', stepwise.remove_member('regress_chain', 'chain A') ->> 'removed';
SELECT regexp_replace(e, '"digest": "[0-9a-f]{64}"', '"digest": "..."') FROM pg_temp.entries() AS e;
SELECT a.detail ->> 'definitionDigest' = pg_temp.digest('{"name": "flow", "steps": [{"name": "a"}]}'::jsonb::text)
FROM stepwise.audit AS a WHERE a.tenant = 'chain A' AND a.detail ->> 'action' = 'workflow_defined' AND a.detail ->> 'version' = '1';
SELECT a.detail ->> 'valueDigest' = pg_temp.digest(s.value::text)
FROM stepwise.audit AS a JOIN stepwise.state AS s ON s.tenant = a.tenant AND s.name = a.detail ->> 'name'
WHERE a.tenant = 'chain A' AND a.detail ->> 'action' = 'state_merged';

-- ---------- only committed work has entries ----------

BEGIN;
SELECT pg_temp.in_a();
SELECT stepwise.state_write('{"name": "kept", "value": 1}');
SAVEPOINT one;
SELECT stepwise.state_write('{"name": "undone", "value": 1}');
SAVEPOINT two;
SELECT stepwise.state_write('{"name": "undone too", "value": 1}');
RELEASE two;
ROLLBACK TO one;
SAVEPOINT three;
SELECT stepwise.state_write('{"name": "released", "value": 1}');
RELEASE three;
SELECT stepwise.state_write('{"name": "last", "value": 1}');
COMMIT;
SELECT pg_temp.entries() ~ '"(kept|released|last)"';
BEGIN;
SELECT pg_temp.in_a();
SELECT stepwise.state_write('{"name": "undone", "value": 1}');
ROLLBACK;
SELECT count(*) FROM pg_temp.entries();

-- a tool that fails leaves no entry; one that works in several tenants leaves an entry in each
CREATE FUNCTION writes_and_fails(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stepwise.state_write('{"name": "by a tool", "value": 1}');
    RAISE 'no';
END $$;
BEGIN;
SELECT pg_temp.in_a();
SELECT stepwise.register_tool('fails', 'writes_and_fails(jsonb)') ->> 'inDatabase';
SELECT stepwise.create_plan('tools', 'chain.sql', '[{"name": "a", "tool": "state_write", "arguments": {"name": "in a plan", "value": 1}},
    {"name": "b", "tool": "fails"}, {"name": "c", "tool": "state_merge", "arguments": {"name": "in a plan", "value": 2}}]', on_failure => 'continue') ->> 'planId' AS plan \gset
SELECT stepwise.run(:'plan') ->> 'task_status';
SELECT stepwise.drop_tool('fails') ->> 'dropped';
SELECT stepwise.enter_tenant('chain B');
SELECT stepwise.state_write('{"name": "elsewhere", "value": 1}');
SELECT pg_temp.in_a();
SELECT stepwise.state_write('{"name": "again", "value": 1}');
COMMIT;
SELECT concat_ws(' ', e ->> 'action', e ->> 'name') FROM (SELECT substr(x, 15)::jsonb FROM pg_temp.entries() AS x) AS t (e);
SELECT detail ->> 'name', id FROM stepwise.audit WHERE tenant = 'chain B' AND plan_id IS NULL;
DROP FUNCTION writes_and_fails;

-- a procedure that commits after each step appends its entries with each commit
BEGIN;
SELECT pg_temp.in_a();
SELECT stepwise.create_plan('steps', 'chain.sql', '[{"name": "a", "tool": "state_write", "arguments": {"name": "one", "value": 1}},
    {"name": "b", "tool": "state_write", "arguments": {"name": "two", "value": 2}}]') ->> 'planId' AS plan \gset
COMMIT;
CALL stepwise.run_steps(:'plan', 1, 'chain A') \gset
SELECT concat_ws(' ', e ->> 'action', e ->> 'name') FROM (SELECT substr(x, 15)::jsonb FROM pg_temp.entries() AS x) AS t (e);
CALL stepwise.run_steps(:'plan', NULL, 'chain A') \gset
SELECT concat_ws(' ', e ->> 'action', e ->> 'name') FROM (SELECT substr(x, 15)::jsonb FROM pg_temp.entries() AS x) AS t (e);

-- a transaction that becomes read-only after it wrote still commits
BEGIN;
SELECT pg_temp.in_a();
SELECT stepwise.state_write('{"name": "then read", "value": 1}');
SET TRANSACTION READ ONLY;
COMMIT;
SELECT count(*) FROM pg_temp.entries();
-- a user-defined trigger on the log may leave a cursor open
CREATE FUNCTION leaves_a_cursor() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    plain refcursor;
BEGIN
    OPEN plain FOR SELECT n FROM generate_series(1, 1000) AS n;
    MOVE 10 FROM plain;
    EXECUTE format('DECLARE %I CURSOR WITH HOLD FOR SELECT n FROM generate_series(1, 3) AS n', 'held ' || NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER leaves_a_cursor AFTER INSERT ON stepwise.audit_log FOR EACH ROW EXECUTE FUNCTION leaves_a_cursor();
BEGIN;
SELECT pg_temp.in_a();
SELECT stepwise.state_write('{"name": "under a trigger", "value": 1}');
COMMIT;
SELECT is_holdable FROM pg_cursors;
CLOSE ALL;
DROP TRIGGER leaves_a_cursor ON stepwise.audit_log;
DROP FUNCTION leaves_a_cursor;
SELECT count(*) FROM pg_temp.entries();
-- at every isolation level, also after concurrent appends
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT pg_temp.in_a();
SELECT stepwise.state_write('{"name": "serializable", "value": 1}');
COMMIT;
SELECT count(*) FROM pg_temp.entries();

-- ---------- verifying the chain ----------

BEGIN;
SELECT pg_temp.in_a();
SELECT v ->> 'tenant', v -> 'planId', v -> 'valid', (v ->> 'entries')::int = (SELECT max(id) FROM seen), v -> 'head' = h -> 'head', v -> 'entries' = h -> 'entries'
FROM stepwise.verify_audit(NULL) AS v, stepwise.audit_head(NULL) AS h;
SELECT stepwise.verify_audit(NULL, true) = stepwise.verify_audit(NULL);
SELECT stepwise.enter_tenant('chain of nobody');
SELECT stepwise.verify_audit(NULL);
SELECT stepwise.audit_head(NULL);
COMMIT;

-- Make a change that needs a superuser, show the answer, and roll back.
CREATE FUNCTION pg_temp.tamper(statement text, plan_id uuid = NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    BEGIN
        SET LOCAL session_replication_role = replica;
        EXECUTE statement;
        PERFORM pg_temp.in_a();
        answer := pg_temp.told(stepwise.verify_audit(plan_id));
        RAISE EXCEPTION USING ERRCODE = 'UN000';
    EXCEPTION WHEN SQLSTATE 'UN000' THEN
        RETURN answer;
    END;
END $$;
-- a row has the entries of one transaction
SELECT id, (SELECT count(*) FROM stepwise.audit AS a WHERE a.tenant = 'chain A' AND a.plan_id IS NULL AND a.batch = l.id) FROM stepwise.audit_log AS l
WHERE tenant = 'chain A' AND plan_id IS NULL ORDER BY id;
CREATE FUNCTION pg_temp.batch(n int) RETURNS bigint LANGUAGE sql STABLE AS $$ SELECT id FROM stepwise.audit_log WHERE tenant = 'chain A' AND plan_id IS NULL ORDER BY id OFFSET n - 1 LIMIT 1 $$;
SELECT pg_temp.tamper($$UPDATE stepwise.audit_log SET entries = set_byte(entries, 40, 0) WHERE tenant = 'chain A' AND plan_id IS NULL AND id = pg_temp.batch(3)$$);
SELECT pg_temp.tamper($$UPDATE stepwise.audit_log SET at = at + interval '1 us' WHERE tenant = 'chain A' AND plan_id IS NULL AND id = pg_temp.batch(4)$$);
SELECT pg_temp.tamper($$DELETE FROM stepwise.audit_log WHERE tenant = 'chain A' AND plan_id IS NULL AND id = pg_temp.batch(5)$$);
SELECT pg_temp.tamper($$DELETE FROM stepwise.audit_log WHERE tenant = 'chain A' AND plan_id IS NULL AND id = 1$$);
SELECT pg_temp.tamper($$INSERT INTO stepwise.audit_log SELECT 0, at, plan_id, tenant, actor, session_id, entries FROM stepwise.audit_log WHERE tenant = 'chain A' AND plan_id IS NULL AND id = 1$$);
SELECT pg_temp.tamper($$UPDATE stepwise.audit_log SET plan_id = NULL, id = (SELECT max(id) + 1 FROM seen) WHERE plan_id = (SELECT id FROM stepwise.plan WHERE tenant = 'chain A' AND name = 'tools') AND id = 1$$);
-- the newest entries are removed: only a head stored elsewhere detects that
SELECT pg_temp.tamper($$DELETE FROM stepwise.audit_log WHERE tenant = 'chain A' AND plan_id IS NULL AND id = (SELECT max(id) FROM seen)$$);

-- ---------- artifacts, outputs, instructions, results that no step takes ----------

BEGIN;
SELECT pg_temp.in_a();
SELECT stepwise.create_plan('stored', 'chain.sql', '[{"name": "a", "tool": "x", "instructions": "go"}]', outputs => '{"r": "${steps.a.outputs}"}') AS made \gset
SELECT :'made'::jsonb ->> 'planId' AS plan, :'made'::jsonb #>> '{stepIds,0}' AS step \gset
SELECT stepwise.store_artifact(:'plan', 'report', 'the content', :'step', 'text/plain', '{"n": 1}', 'https://a.example') ->> 'artifactId' AS artifact \gset
SELECT stepwise.store_artifact(:'plan', 'bare', 'content') ->> 'size';
SELECT stepwise.store_output(:'plan', 'first output') ->> 'replaced';
SELECT stepwise.store_output(:'plan', 'second output') ->> 'replaced';
SELECT stepwise.modify_plan(:'plan', 'update_step_instructions', jsonb_build_object('stepId', :'step'::text, 'instructions', 'short')) ->> 'action';
SELECT stepwise.modify_plan(:'plan', 'update_step_instructions', jsonb_build_object('stepId', :'step'::text, 'instructions', repeat('long ', 500))) ->> 'action';
SELECT stepwise.record_tool_result(:'plan', 'unknown', '{"found": 1}') ->> 'variable';
SELECT stepwise.record_tool_result(:'plan', 'unknown', '"bad"', true) ->> 'variable';
SELECT stepwise.submit_step_result(:'step', '{"done": true}') ->> 'planStatus';
COMMIT;
SELECT detail - ARRAY['artifactId', 'instructions'] FROM stepwise.audit WHERE plan_id = :'plan' AND event = 'plan_modified' AND detail ->> 'action' <> 'created' ORDER BY id;
SELECT a.detail ->> 'contentDigest' = pg_temp.digest('the content'), a.detail ->> 'dataDigest' = pg_temp.digest('{"n": 1}'), a.detail ->> 'sourceUrlDigest' = pg_temp.digest('https://a.example')
FROM stepwise.audit AS a WHERE a.plan_id = :'plan' AND a.detail ->> 'name' = 'report';
SELECT a.detail ->> 'instructionsDigest' = pg_temp.digest(s.instructions) FROM stepwise.audit AS a, stepwise.step AS s
WHERE a.plan_id = :'plan' AND a.detail ? 'instructionsDigest' AND s.id = :'step';
SELECT a.detail ->> 'outputsDigest' = pg_temp.digest(p.outputs::text) FROM stepwise.audit AS a JOIN stepwise.plan AS p ON p.id = a.plan_id
WHERE a.plan_id = :'plan' AND a.detail ? 'outputsDigest';
SELECT pg_temp.tamper('SELECT', :'plan');
SELECT change, pg_temp.tamper(format(change, :'artifact', :'plan'), :'plan') FROM unnest(ARRAY[
    'UPDATE stepwise.artifact SET content = ''changed'' WHERE id = %L',
    'UPDATE stepwise.artifact SET data = NULL WHERE id = %L',
    'UPDATE stepwise.artifact SET data = ''{"n": 2}'' WHERE id = %L',
    'UPDATE stepwise.artifact SET source_url = ''https://b.example'' WHERE id = %L',
    'UPDATE stepwise.artifact SET name = ''other'' WHERE id = %L',
    'UPDATE stepwise.artifact SET media_type = NULL WHERE id = %L',
    'DELETE FROM stepwise.artifact WHERE id = %L',
    'UPDATE stepwise.artifact SET plan_id = id WHERE id = %L',
    'UPDATE stepwise.artifact SET data = ''[]'' WHERE name = ''bare'' AND plan_id = %2$L',
    'UPDATE stepwise.plan_detail SET final_output = ''first output'' WHERE plan_id = %2$L',
    'UPDATE stepwise.plan_detail SET final_output = NULL WHERE plan_id = %2$L',
    'UPDATE stepwise.plan SET outputs = ''{}'' WHERE id = %2$L']) AS change;

-- ---------- the actor ----------

CREATE ROLE "regress/chain";
CREATE ROLE "regress""chain";
CREATE FUNCTION pg_temp.claim(role text, worker text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan uuid;
BEGIN
    PERFORM stepwise.grant_agent(quote_ident(role)::regrole), stepwise.add_member(quote_ident(role)::regrole, 'chain A');
    EXECUTE format('SET LOCAL ROLE %I', role);
    plan := stepwise.create_plan('who', 'chain.sql', '[{"name": "a"}]') ->> 'planId';
    PERFORM stepwise.get_next_step(plan, worker);
    RESET ROLE;
    PERFORM stepwise.remove_member(quote_ident(role)::regrole, 'chain A');
    RETURN (SELECT a.actor FROM stepwise.audit AS a WHERE a.plan_id = plan AND a.event = 'step_started');
END $$;
-- all actors are spelled differently
SELECT role, worker, pg_temp.claim(role, worker)
FROM (VALUES ('regress_chain', NULL), ('regress_chain', 'x/y'), ('regress_chain', '"x"'), ('regress/chain', NULL), ('regress/chain', 'x'), ('regress"chain', 'x')) AS t (role, worker);
SELECT detail ->> 'role' FROM stepwise.audit WHERE tenant = 'chain A' AND plan_id IS NULL AND detail ->> 'action' = 'member_added' AND id > (SELECT id FROM seen) ORDER BY id;
BEGIN;
SELECT pg_temp.in_a();
SELECT count(*), bool_and((stepwise.verify_audit(p.id) -> 'valid')::boolean), (stepwise.verify_audit(NULL) -> 'valid')::boolean FROM stepwise.plan AS p WHERE p.tenant = 'chain A';
SELECT count(stepwise.cancel_plan(p.id)) FROM stepwise.plan AS p WHERE p.tenant = 'chain A' AND p.completed_at IS NULL;
COMMIT;
DROP OWNED BY regress_chain, "regress/chain", "regress""chain";
DROP ROLE regress_chain, "regress/chain", "regress""chain";
