-- Included by test/sql/encoding.sql in databases of several encodings. :good can be converted to UTF-8, :bad cannot.

\set ECHO none
SET client_encoding = 'SQL_ASCII';
SET client_min_messages = warning;
CREATE EXTENSION pg_stepwise;

CREATE FUNCTION good() RETURNS text LANGUAGE sql AS :'good';
CREATE FUNCTION bad() RETURNS text LANGUAGE sql AS :'bad';
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE statement INTO answer;
    RETURN coalesce(answer, 'done');
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE FUNCTION bad_result(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT to_jsonb(bad())';
CREATE FUNCTION bad_error(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE '%', bad(); END $$;
CREATE FUNCTION good_result(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT jsonb_build_object(good(), good())';
SELECT stepwise.create_plan('encoding', 'test', '[{"name": "a"}, {"name": "b", "prompt": "?"}]') AS made \gset
SELECT :'made'::jsonb ->> 'planId' AS plan, :'made'::jsonb #>> '{stepIds,0}' AS step \gset

SELECT getdatabaseencoding();
-- every text or jsonb argument of every function; calls that were not refused are listed
WITH function AS (
    SELECT p.proname AS name, p.proargnames[1:p.pronargs] AS names, p.proargtypes AS types FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
    WHERE p.pronamespace = 'stepwise'::regnamespace AND l.lanname = 'c' AND p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype AND p.proname <> 'derive_plan_status'
      AND obj_description(p.oid, 'pg_proc') NOT LIKE 'internal:%'),
argument AS (
    SELECT f.name AS function, n.name, n.number, f.names, f.types, f.types[n.number - 1]::regtype::text AS type
    FROM function AS f, unnest(f.names) WITH ORDINALITY AS n (name, number)),
called AS (
    SELECT a.function, a.name, try(format('SELECT stepwise.%I(%s)', a.function, string_agg(format('%I => %s', i.name,
        CASE WHEN i.number = a.number AND a.type = 'text' THEN 'bad()' WHEN i.number = a.number THEN 'jsonb_build_object(''x'', jsonb_build_array(bad()), ''name'', ''x'')'
             ELSE quote_literal(CASE i.name WHEN 'plan_id' THEN :'plan' WHEN 'step_id' THEN :'step' WHEN 'role' THEN current_user WHEN 'outcome' THEN 'success'
                 WHEN 'status' THEN 'started' WHEN 'function' THEN 'bad_result(jsonb)' ELSE CASE a.types[i.number - 1]::regtype::text
                     WHEN 'text' THEN 'x' WHEN 'jsonb' THEN '{}' WHEN 'integer' THEN '1' WHEN 'numeric' THEN '1' WHEN 'double precision' THEN '1'
                     WHEN 'boolean' THEN 'false' WHEN 'interval' THEN '1 hour' WHEN 'uuid' THEN :'plan' WHEN 'timestamp with time zone' THEN 'now' END END) END), ', '))) AS answer
    FROM argument AS a, unnest(a.names) WITH ORDINALITY AS i (name, number)
    WHERE a.type IN ('text', 'jsonb') GROUP BY a.function, a.name, a.number, a.names, a.types, a.type)
SELECT c.function, c.name, c.answer FROM called AS c
WHERE c.answer <> format('SW005 argument "%s" contains bytes that have no UTF-8 form', c.name)
UNION ALL SELECT 'called', 'with many', (count(*) > 50)::text FROM called;
-- the error names the argument
SELECT stepwise.submit_step_result(:'step', jsonb_build_object(bad(), 1));
-- plain SQL
SELECT try(format('UPDATE stepwise.step SET %I = %s WHERE id = %L', c.name, c.value, :'step'))
FROM (VALUES ('result', 'to_jsonb(bad())'), ('message', 'bad()'), ('worker', 'bad()'), ('result_summary', 'bad()')) AS c (name, value);
SELECT try(format('INSERT INTO stepwise.step (tenant, plan_id, step_order, name, %I) VALUES (''default'', %L, 3, ''c'', %s)', c.name, :'plan', c.value))
FROM (VALUES ('instructions', 'bad()'), ('arguments', 'jsonb_build_array(bad())')) AS c (name, value);
-- tools: a bad result is an error of the tool; the valid part of an error message is kept
SELECT count(stepwise.register_tool(t, (t || '(jsonb)')::regprocedure)) FROM unnest(ARRAY['bad_result', 'bad_error', 'good_result']) AS t;
SELECT stepwise.create_plan('tools', 'test', '[{"name": "a", "tool": "bad_result"}, {"name": "b", "tool": "bad_error"}, {"name": "c", "tool": "good_result"}]', on_failure => 'continue') ->> 'planId' AS tools \gset
SELECT count(stepwise.run(:'tools'));
SELECT name, status, message, result IS NOT NULL AS result FROM stepwise.step WHERE plan_id = :'tools' ORDER BY step_order;
-- the name of a role may be in the encoding of another database
SELECT format('CREATE ROLE %I', 'regress_' || bad()) \gexec
SELECT stepwise.grant_agent(format('%I', 'regress_' || bad())::regrole) ->> 'granted', stepwise.add_member(format('%I', 'regress_' || bad())::regrole, 'default') ->> 'added';
SELECT format('SET ROLE %I', 'regress_' || bad()) \gexec
SELECT stepwise.create_plan('role', 'test', '[{"name": "a"}]') ->> 'planId' AS role_plan \gset
RESET ROLE;
SELECT DISTINCT actor FROM stepwise.audit WHERE plan_id = :'role_plan';
SELECT format('DROP OWNED BY %I', 'regress_' || bad()) \gexec
SELECT format('DROP ROLE %I', 'regress_' || bad()) \gexec
-- text that can be converted is hashed in UTF-8
SELECT count(stepwise.state_write(jsonb_build_object('name', good(), 'value', good())));
SELECT stepwise.submit_step_result(:'step', jsonb_build_object('x', good()), good(), execution_report => jsonb_build_object(good(), 1)) ->> 'stepStatus';
SELECT count(stepwise.store_artifact(:'plan', good(), repeat(good(), 3000)));
SELECT a.detail ->> 'resultDigest' = encode(sha256(convert_to(s.result::text, 'UTF8')), 'hex') FROM stepwise.audit AS a JOIN stepwise.step AS s ON s.id = a.step_id
WHERE a.step_id = :'step' AND a.event = 'step_completed' AND getdatabaseencoding() <> 'SQL_ASCII';
SELECT a.detail ->> 'contentDigest' = encode(sha256(decode(repeat(CASE getdatabaseencoding() WHEN 'EUC_JP' THEN 'e38182' ELSE 'c3a9' END, 3000), 'hex')), 'hex')
FROM stepwise.audit AS a WHERE a.detail ->> 'action' = 'artifact_stored';
SELECT stepwise.tenant_slot(good()) = ('x' || left(encode(sha256(decode(CASE getdatabaseencoding() WHEN 'EUC_JP' THEN 'e38182' ELSE 'c3a9' END, 'hex')), 'hex'), 3))::bit(12)::int;
SELECT count(*), bool_and((stepwise.verify_audit(p.id) -> 'valid')::boolean), (stepwise.verify_audit(NULL) -> 'valid')::boolean FROM stepwise.plan AS p;
SELECT * FROM stepwise.check_integrity();
\set ECHO all
