-- The table of the audit log and the view over it: columns, keys, guards, policies, and what a dump has of them.

BEGIN;
SELECT * FROM no_plan();

SELECT has_table('stepwise'::name, 'audit_log'::name, 'the log is a table');
SELECT has_view('stepwise'::name, 'audit'::name, 'its entries are a view');
-- columns of a fixed size first, so that rows are small
SELECT columns_are('stepwise', 'audit_log', ARRAY['id', 'at', 'plan_id', 'tenant', 'actor', 'session_id', 'entries']);
SELECT columns_are('stepwise', 'audit', ARRAY['tenant', 'id', 'plan_id', 'step_id', 'event', 'actor', 'session_id', 'at', 'detail', 'hash', 'batch']);
SELECT is((SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'stepwise.audit_log'::regclass AND attnum > 0 AND attlen > 0),
    'id at plan_id', 'columns of a fixed size');
SELECT is((SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'stepwise.audit_log'::regclass AND attnum > 0 AND NOT attnotnull),
    'plan_id session_id', 'columns that may be null');
SELECT bag_eq(
    $$ SELECT a.attname::text, format_type(a.atttypid, a.atttypmod) FROM pg_attribute AS a WHERE a.attrelid = 'stepwise.audit'::regclass AND a.attnum > 0 $$,
    $$ VALUES ('actor', 'text'), ('at', 'timestamp with time zone'), ('batch', 'bigint'), ('detail', 'jsonb'), ('event', 'text'), ('hash', 'bytea'), ('id', 'bigint'),
              ('plan_id', 'uuid'), ('session_id', 'text'), ('step_id', 'uuid'), ('tenant', 'text') $$,
    'types of the view');

SELECT indexes_are('stepwise', 'audit_log', ARRAY['audit_log_plan', 'audit_log_tenant']);
SELECT index_is_unique('stepwise', 'audit_log', 'audit_log_plan', 'one row for a position in the chain of a plan');
SELECT index_is_unique('stepwise', 'audit_log', 'audit_log_tenant', 'and of a tenant');
SELECT triggers_are('stepwise', 'audit_log', ARRAY['guard', 'guard_truncate']);
SELECT triggers_are('stepwise', 'audit', ARRAY['guard']);
SELECT policies_are('stepwise', 'audit_log', ARRAY['tenant']);
SELECT is((SELECT relrowsecurity FROM pg_class WHERE oid = 'stepwise.audit_log'::regclass), true, 'row-level security is on');
SELECT is((SELECT relreplident FROM pg_class WHERE oid = 'stepwise.audit_log'::regclass), 'f', 'the log can be published');
SELECT is((SELECT 'stepwise.audit_log'::regclass = ANY (extconfig) FROM pg_extension WHERE extname = 'pg_stepwise'), true, 'a dump has its rows');

-- nobody writes, whatever the way
SELECT stepwise.create_plan('guarded', 'tap', '[{"name": "a"}]') \g /dev/null
SELECT throws_ok(statement, 'SW015', NULL, statement) FROM unnest(ARRAY[
    'INSERT INTO stepwise.audit_log SELECT * FROM stepwise.audit_log', 'UPDATE stepwise.audit_log SET at = at', 'DELETE FROM stepwise.audit_log', 'TRUNCATE stepwise.audit_log',
    'INSERT INTO stepwise.audit SELECT * FROM stepwise.audit', 'UPDATE stepwise.audit SET at = at', 'DELETE FROM stepwise.audit']) AS statement;
-- the position is unique, for the owner too
SET LOCAL session_replication_role = replica;
SELECT throws_ok('INSERT INTO stepwise.audit_log SELECT * FROM stepwise.audit_log', '23505', NULL, 'no second row for a position');
SET LOCAL session_replication_role = origin;

-- what takes rows apart is free of side effects
SELECT volatility_is('stepwise', 'audit_entries', ARRAY['bigint', 'timestamp with time zone', 'bytea'], 'immutable');
SELECT volatility_is('stepwise', 'audit_detail', ARRAY['bytea'], 'immutable');
SELECT is_strict('stepwise', 'audit_entries', ARRAY['bigint', 'timestamp with time zone', 'bytea']);
SELECT is_strict('stepwise', 'audit_detail', ARRAY['bytea']);

SELECT * FROM finish();
ROLLBACK;
