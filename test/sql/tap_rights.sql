-- Rights on every function, table, view and type of the schema, for the owner, agents of tenants A and B, a reader, a stranger and
-- PUBLIC. The tests are generated from the catalog. An object that the lists below do not name fails the test. A listed name that
-- does not exist yet is no failure.
--
--   everyone     granted to PUBLIC
--   reader too   granted by grant_reader and by grant_agent
--   agent        granted by grant_agent
--   decide       granted by grant_agent, unless decide is false
--   owner only   granted to nobody
--   internal     granted to nobody, and not for users: triggers, and functions whose first argument is the tenant

BEGIN;
SELECT * FROM no_plan();

CREATE TEMP TABLE listed (kind text, class text, names text);
INSERT INTO listed VALUES
('function', 'everyone', 'slot_of tenant_slot'),
('function', 'reader too', 'enter_tenant current_tenant derive_plan_status step_transition_allowed plan_transition_allowed'),
('function', 'reader too', 'get_plan_status get_plan_context get_step_context list_active_plans list_plans list_checkpoints find_plans why handoff task_variables'),
('function', 'reader too', 'validate_definition list_workflows get_workflow list_tools search_artifacts get_artifact get_output'),
('function', 'reader too', 'execution execution_as_of workflow_response verify_audit audit_head'),
('function', 'reader too', 'call mcp help'),
-- the view audit calls these as the role that reads it
('function', 'reader too', 'audit_entries audit_detail'),
('function', 'agent', 'create_plan define_workflow start_workflow drop_workflow fork_plan uuid7'),
('function', 'agent', 'get_next_step submit_step_result advance fail_step retry_step skip_step release_step heartbeat'),
('function', 'agent', 'reclaim_stalled cancel_plan request_user_review modify_plan'),
('function', 'agent', 'store_artifact store_output log_skill_execution'),
('function', 'agent', 'run run_steps record_tool_result set_variables state_read state_write state_merge'),
('function', 'decide', 'submit_user_decision resume'),
-- CHECK constraints call these as the writing role, which may be a role that was allowed to write by plain SQL
('function', 'agent', 'step_fits plan_fits'),
('function', 'owner only', 'add_member remove_member grant_agent grant_reader purge check_integrity'),
('function', 'owner only', 'register_tool drop_tool register_resource drop_resource'),
('function', 'internal', 'remembered_changed engine_guard step_guard steps_changed audit_guard'),
('function', 'internal', 'skill_json time_text cut_text cut_json drop_nulls json_size'),

('table', 'reader too', 'plan plan_detail step dependency branching_condition workflow checkpoint tool resource state'),
('table', 'reader too', 'artifact skill_execution tool_call audit_log'),
('table', 'owner only', 'member'),
('table', 'internal', 'engine'),

('view', 'reader too', 'audit checkpoints claims plan_progress stalled waiting'),
('view', 'owner only', 'grants'),

('type', 'owner only', 'step_status plan_status outcome on_failure');

-- ---------- the lists, the objects, and the roles ----------

-- Only the engine calls functions that take the tenant as an argument. Users get their tenant by membership.
CREATE TEMP TABLE expected AS
SELECT l.kind, l.class, n.name
FROM listed AS l, regexp_split_to_table(l.names, '\s+') AS n (name)
UNION ALL
SELECT 'function', 'internal', p.proname::text
FROM pg_proc AS p WHERE p.pronamespace = 'stepwise'::regnamespace AND p.pronargs > 0 AND p.proargnames[1] = 'tenant' AND p.proname NOT IN ('enter_tenant', 'tenant_slot');

CREATE TEMP TABLE object AS
SELECT 'function' AS kind, p.proname::text AS name, p.oid
FROM pg_proc AS p WHERE p.pronamespace = 'stepwise'::regnamespace
UNION ALL
SELECT CASE WHEN c.relkind IN ('v', 'm') THEN 'view' ELSE 'table' END, c.relname::text, c.oid
FROM pg_class AS c WHERE c.relnamespace = 'stepwise'::regnamespace AND c.relkind NOT IN ('i', 'I')
UNION ALL
-- not array types, which have no own privileges, nor the row types of tables, which are checked below
SELECT 'type', t.typname::text, t.oid
FROM pg_type AS t LEFT JOIN pg_class AS c ON c.oid = t.typrelid
WHERE t.typnamespace = 'stepwise'::regnamespace AND t.typcategory <> 'A' AND coalesce(c.relkind = 'c', true);

CREATE ROLE regress_rights_a;
CREATE ROLE regress_rights_b;
CREATE ROLE regress_rights_worker;
CREATE ROLE regress_rights_reader;
CREATE ROLE regress_rights_stranger;
SELECT stepwise.grant_agent('regress_rights_a') \g /dev/null
SELECT stepwise.grant_agent('regress_rights_b') \g /dev/null
-- the right to decide is taken away again
SELECT stepwise.grant_agent('regress_rights_worker'), stepwise.grant_agent('regress_rights_worker', decide => false) \g /dev/null
SELECT stepwise.grant_reader('regress_rights_reader') \g /dev/null
SELECT stepwise.add_member('regress_rights_a', 'A') \g /dev/null
SELECT stepwise.add_member('regress_rights_b', 'B') \g /dev/null
SELECT stepwise.add_member('regress_rights_reader', 'A') \g /dev/null

CREATE TEMP TABLE who (label text, role text, classes text[]);
INSERT INTO who VALUES
('owner', current_user, '{everyone,reader too,agent,decide,owner only,internal}'),
('agent of A', 'regress_rights_a', '{everyone,reader too,agent,decide}'),
('agent of B', 'regress_rights_b', '{everyone,reader too,agent,decide}'),
('worker', 'regress_rights_worker', '{everyone,reader too,agent}'),
('reader', 'regress_rights_reader', '{everyone,reader too}'),
('stranger', 'regress_rights_stranger', '{everyone}'),
('PUBLIC', 'public', '{everyone}');

CREATE FUNCTION pg_temp.may_use(role text, kind text, object oid) RETURNS boolean
LANGUAGE sql AS $$
    SELECT CASE kind WHEN 'function' THEN has_function_privilege(role, object, 'EXECUTE')
                     WHEN 'type' THEN has_type_privilege(role, object, 'USAGE')
                     ELSE has_table_privilege(role, object, 'SELECT') OR has_any_column_privilege(role, object, 'SELECT') END
$$;

-- ---------- every object is listed, once ----------

SELECT is_empty($$
    SELECT o.kind, o.name FROM object AS o
    WHERE NOT EXISTS (SELECT FROM expected AS e WHERE e.kind = o.kind AND e.name = o.name)
    ORDER BY 1, 2 $$, 'every object has an expectation (if not: add its name to a list at the top of this file)');
SELECT is_empty($$
    SELECT e.kind, e.name FROM expected AS e GROUP BY 1, 2 HAVING count(*) > 1 ORDER BY 1, 2 $$, 'no object has two expectations');
SELECT is_empty($$
    SELECT o.kind, o.name FROM object AS o GROUP BY 1, 2 HAVING count(*) > 1 ORDER BY 1, 2 $$, 'no function is overloaded');

-- ---------- every object is granted to the roles of its class, and to no others ----------

SELECT is(
    ARRAY(SELECT w.label FROM who AS w WHERE pg_temp.may_use(w.role, o.kind, o.oid) ORDER BY w.label),
    ARRAY(SELECT w.label FROM who AS w WHERE e.class = ANY (w.classes) ORDER BY w.label),
    format('%s %s is for: %s', o.kind, o.name, e.class))
FROM object AS o JOIN expected AS e ON e.kind = o.kind AND e.name = o.name
ORDER BY o.kind, o.name;

-- A new function or table is granted to nobody until it is in the list.
CREATE FUNCTION stepwise.unlisted() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE VIEW stepwise.unlisted WITH (security_invoker) AS SELECT 1 AS one;
REVOKE ALL ON FUNCTION stepwise.unlisted FROM PUBLIC;
SELECT stepwise.grant_agent('regress_rights_a'), stepwise.grant_reader('regress_rights_reader') \g /dev/null
SELECT is_empty($$
    SELECT w.label FROM who AS w WHERE w.label <> 'owner'
      AND (has_function_privilege(w.role, 'stepwise.unlisted()', 'EXECUTE') OR has_table_privilege(w.role, 'stepwise.unlisted', 'SELECT')) $$,
    'what is not in the list of grants is granted to nobody');
DROP FUNCTION stepwise.unlisted();
DROP VIEW stepwise.unlisted;

-- Nobody but the owner has more than SELECT, on a table or on a column of it.
SELECT is_empty(format($$
    SELECT w.label, p.privilege
    FROM who AS w,
         unnest('{INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS p (privilege)
    WHERE w.label <> 'owner'
      AND (has_table_privilege(w.role, %1$s::oid, p.privilege)
           OR p.privilege NOT IN ('DELETE', 'TRUNCATE', 'TRIGGER') AND has_any_column_privilege(w.role, %1$s::oid, p.privilege))
    $$, o.oid), format('%s %s: only the owner writes', o.kind, o.name))
FROM object AS o WHERE o.kind IN ('table', 'view') ORDER BY o.name;

SELECT is(
    ARRAY(SELECT w.label FROM who AS w WHERE has_schema_privilege(w.role, 'stepwise', 'USAGE') ORDER BY w.label),
    ARRAY(SELECT w.label FROM who AS w ORDER BY w.label), 'who may use the schema');
SELECT is(
    ARRAY(SELECT w.label FROM who AS w WHERE has_schema_privilege(w.role, 'stepwise', 'CREATE') ORDER BY w.label),
    ARRAY['owner'], 'who may create in the schema');

-- No grant can be passed on.
SELECT is_empty($$
    SELECT 'function', p.proname FROM pg_proc AS p, aclexplode(p.proacl) AS a
    WHERE p.pronamespace = 'stepwise'::regnamespace AND a.is_grantable AND a.grantee <> p.proowner
    UNION ALL
    SELECT 'table', c.relname FROM pg_class AS c, aclexplode(c.relacl) AS a
    WHERE c.relnamespace = 'stepwise'::regnamespace AND a.is_grantable AND a.grantee <> c.relowner $$, 'no grant can be passed on');

-- ---------- tenants: policies, views, keys ----------

SELECT is_empty($$
    SELECT c.relname FROM pg_class AS c
    WHERE c.relnamespace = 'stepwise'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relrowsecurity $$,
    'every table has row-level security');
SELECT policies_are('stepwise', o.name, CASE WHEN o.name = 'engine' THEN '{}' ELSE '{tenant}' END::name[],
                    format('table %s has exactly the policy of its tenant', o.name))
FROM object AS o WHERE o.kind = 'table' ORDER BY o.name;
SELECT is_empty($$
    SELECT p.tablename, p.permissive, p.roles, p.cmd, p.qual, p.with_check
    FROM pg_policies AS p
    WHERE p.schemaname = 'stepwise'
      AND (p.permissive, p.roles, p.cmd, p.qual, p.with_check) IS DISTINCT FROM
          ('PERMISSIVE', '{public}'::name[], 'ALL', '(tenant = ( SELECT stepwise.current_tenant() AS current_tenant))', NULL) $$,
    'every policy compares the tenant, and nothing else');
SELECT is_empty($$
    SELECT c.relname FROM pg_class AS c
    WHERE c.relnamespace = 'stepwise'::regnamespace AND c.relkind = 'v'
      AND NOT coalesce((SELECT o.option_value::boolean FROM pg_options_to_table(c.reloptions) AS o
                        WHERE o.option_name = 'security_invoker'), false) $$,
    'every view asks for the rights of its reader');
SELECT is_empty($$
    SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = 'stepwise'::regnamespace AND c.relkind NOT IN ('r', 'v', 'i') $$,
    'there are tables and views only: nothing that row-level security does not know');
SELECT is_empty($$
    SELECT i.indexrelid::regclass
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid
    WHERE c.relnamespace = 'stepwise'::regnamespace AND (i.indisunique OR i.indisprimary)
      AND NOT EXISTS (SELECT FROM pg_attribute AS a
                      WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND (a.attname = 'tenant' OR a.atttypid = 'uuid'::regtype)) $$,
    'every key leads with the tenant or with an id');
SELECT is(array_agg(i.indexrelid::regclass::text ORDER BY i.indexrelid::regclass::text), ARRAY['stepwise.' || t.name || '_pkey'],
    format('the key of table %s is its id', t.name))
FROM (VALUES ('plan'), ('step'), ('checkpoint'), ('artifact'), ('skill_execution'), ('tool_call')) AS t (name)
JOIN pg_index AS i ON i.indrelid = ('stepwise.' || t.name)::regclass AND i.indisprimary AND i.indnkeyatts = 1
JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attnum = 1 AND a.attname = 'id'
GROUP BY t.name;
SELECT is_empty($$
    SELECT o.name FROM object AS o
    WHERE o.kind = 'table' AND o.name <> 'engine'
      AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = o.oid AND i.indisunique AND i.indpred IS NULL) $$,
    'every table has a key');
SELECT is_empty($$
    SELECT o.name FROM object AS o
    WHERE o.kind = 'table' AND o.name <> 'engine'
      AND NOT EXISTS (SELECT FROM pg_attribute AS a
                      WHERE a.attrelid = o.oid AND a.attname = 'tenant' AND a.attnotnull
                        AND a.atttypid = 'text'::regtype AND a.attcollation = '"C"'::regcollation) $$,
    'every table has a column for the tenant');

-- ---------- properties of functions ----------

SELECT is_empty($$
    SELECT o.name FROM object AS o JOIN pg_proc AS p ON p.oid = o.oid WHERE o.kind = 'function' AND p.prosecdef $$,
    'no function is SECURITY DEFINER: the caller would be lost');
SELECT is_empty($$
    SELECT o.name FROM object AS o JOIN pg_proc AS p ON p.oid = o.oid WHERE o.kind = 'function' AND p.proconfig IS NOT NULL $$,
    'no function has a SET clause: a procedure could not commit');
SELECT is_empty($$
    SELECT o.name FROM object AS o JOIN pg_proc AS p ON p.oid = o.oid WHERE o.kind = 'function' AND p.proleakproof $$,
    'no function is leakproof: it would be called on rows of other tenants');
-- A parallel worker has no tenant, so the leader evaluates the policy.
SELECT is_empty($$
    SELECT o.name FROM object AS o JOIN pg_proc AS p ON p.oid = o.oid
    WHERE o.kind = 'function' AND p.proparallel = 's' AND p.provolatile <> 'i' $$,
    'only pure functions are parallel safe');
SELECT is(
    (SELECT (p.provolatile, p.proparallel)::text FROM pg_proc AS p WHERE p.oid = 'stepwise.current_tenant()'::regprocedure),
    '(s,r)', 'current_tenant is stable, and restricted to the leader');
SELECT is_empty($$
    SELECT o.name FROM object AS o JOIN pg_proc AS p ON p.oid = o.oid
    WHERE o.kind = 'function' AND p.proargnames IS NULL AND p.pronargs > 0 $$,
    'every argument has a name');

-- ---------- comments and dumps ----------

SELECT is_empty($$
    SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
    FROM pg_depend AS d JOIN pg_extension AS x ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = x.oid
    WHERE x.extname = 'pg_stepwise' AND d.deptype = 'e'
      AND obj_description(d.objid, d.classid::regclass::name) IS NULL
      AND NOT EXISTS (SELECT FROM pg_type AS t WHERE d.classid = 'pg_type'::regclass AND t.oid = d.objid
                                                     AND (t.typrelid <> 0 OR t.typcategory = 'A')) $$,
    'every object of the extension has its comment');
SELECT is_empty($$
    SELECT p.polrelid::regclass, p.polname FROM pg_policy AS p JOIN pg_class AS c ON c.oid = p.polrelid
    WHERE c.relnamespace = 'stepwise'::regnamespace AND obj_description(p.oid, 'pg_policy') IS NULL $$,
    'every policy has its comment');
SELECT is_empty($$
    SELECT o.kind, o.name FROM object AS o
    WHERE NOT EXISTS (SELECT FROM pg_depend AS d JOIN pg_extension AS x ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = x.oid
                      WHERE x.extname = 'pg_stepwise' AND d.deptype = 'e' AND d.objid = o.oid) $$,
    'every object belongs to the extension');
SELECT results_eq($$
    SELECT c.relname::text COLLATE "C" FROM pg_extension AS x, unnest(x.extconfig) AS e (oid) JOIN pg_class AS c ON c.oid = e.oid
    WHERE x.extname = 'pg_stepwise' ORDER BY 1 $$,
    $$ SELECT o.name COLLATE "C" FROM object AS o WHERE o.kind = 'table' AND o.name <> 'engine' ORDER BY 1 $$,
    'every table is dumped, but the flag that says whether the engine has been used');

SELECT * FROM finish();
ROLLBACK;
