-- Statistics reveal nothing about other tenants. No column of the schema has any. So the estimates of EXPLAIN are the same whether
-- another tenant has the searched value or nobody has it. The tests are generated from the catalog, so that they cover columns that
-- a later version adds.

BEGIN;
SELECT * FROM no_plan();

CREATE ROLE regress_statistics;
SELECT stepwise.grant_agent('regress_statistics') ->> 'granted', stepwise.add_member('regress_statistics', 'spy') ->> 'added';

-- ---------- the catalog ----------

SELECT is_empty($$
    SELECT c.relname, a.attname FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'stepwise'::regnamespace AND c.relkind IN ('r', 'p', 'm') AND a.attnum > 0 AND NOT a.attisdropped
      AND coalesce(a.attstattarget, -1) <> 0
$$, 'no column has statistics');
-- an index on an expression has statistics of its own
SELECT is_empty($$
    SELECT c.relname, a.attname
    FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'stepwise'::regnamespace AND i.indkey[a.attnum - 1] = 0 AND coalesce(a.attstattarget, -1) <> 0
$$, 'no expression of an index has statistics');
SELECT is_empty($$
    SELECT s.stxname FROM pg_statistic_ext AS s JOIN pg_class AS c ON c.oid = s.stxrelid
    WHERE c.relnamespace = 'stepwise'::regnamespace
$$, 'there are no extended statistics');

-- ---------- values of another tenant ----------

SELECT stepwise.enter_tenant('victim');
SELECT count(stepwise.define_workflow(jsonb_build_object('name', 'secret' || n % 3, 'steps', jsonb_build_array(jsonb_build_object('name', 's' || n)))))
FROM generate_series(1, 10) AS n;
SELECT count(stepwise.register_tool('secret_tool' || n, description => 'secret')) FROM generate_series(1, 5) AS n;
SELECT count(stepwise.state_write(jsonb_build_object('name', 'secret' || n, 'value', n))) FROM generate_series(1, 5) AS n;
SELECT count(stepwise.log_skill_execution('secret', 'started', 'secret session')) FROM generate_series(1, 10) AS n;
-- most values are common, so they would be in a list of common values; some differ, so there would be a histogram
SELECT count(stepwise.create_plan('secret name', 'secret goal ' || n,
    '[{"name": "a", "tool": "secret_tool", "instructions": "secret instructions", "binding": "b", "arguments": {"x": "secret"}},
      {"name": "c", "dependsOn": ["a"], "prompt": "secret?"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "confidence < 0.5", "ifTrueAction": "continue"}]',
    session_id => 'secret session', idempotency_key => 'secret key ' || n))
FROM generate_series(1, 200) AS n;
SELECT count(stepwise.store_artifact(p.id, 'secret artifact', 'secret content', source_url => 'https://secret.example'))
FROM stepwise.plan AS p WHERE p.tenant = 'victim';
SELECT count(stepwise.store_output(p.id, 'secret output')) FROM stepwise.plan AS p WHERE p.tenant = 'victim';
SELECT count(stepwise.get_next_step(p.id, 'secret worker', '1 hour')) FROM stepwise.plan AS p WHERE p.tenant = 'victim';

SELECT is_empty($$
    SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = 'stepwise'::regnamespace AND c.relkind = 'r'
      AND c.relname NOT IN ('engine', 'member', 'resource', 'checkpoint', 'tool_call')
      AND (xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM stepwise.%I', c.relname), false, true, '')))[1]::text = '0'
$$, 'the tables have something to tell');

DO $$
DECLARE
    t name;
BEGIN
    FOR t IN SELECT relname FROM pg_class WHERE relnamespace = 'stepwise'::regnamespace AND relkind = 'r' LOOP
        EXECUTE format('ANALYZE stepwise.%I', t);
    END LOOP;
END $$;

SELECT is_empty($$
    SELECT s.starelid::regclass, s.staattnum FROM pg_statistic AS s JOIN pg_class AS c ON c.oid = s.starelid
    LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
    WHERE 'stepwise'::regnamespace IN (c.relnamespace, (SELECT x.relnamespace FROM pg_class AS x WHERE x.oid = i.indrelid))
$$, 'ANALYZE has kept nothing');

-- ---------- queries that an agent can explain ----------

-- Every leakproof comparison, on every column that an agent may read, with values of the other tenant and with a value that does
-- not exist.
CREATE TEMP TABLE probe (relname name, attname name, oprname name, type text, value text, statement text);
GRANT SELECT ON probe TO regress_statistics;

CREATE FUNCTION pg_temp.estimate(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan json;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO plan;
    RETURN plan #>> '{0,Plan,Plan Rows}';
END $$;

-- The two most common values of each column, as the owner sees them, and one that does not exist.
CREATE FUNCTION pg_temp.look() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    target record;
    secret text;
BEGIN
    FOR target IN
        SELECT c.relname, a.attname, o.oprname, format_type(a.atttypid, NULL) AS type,
               CASE format_type(a.atttypid, NULL)
                   WHEN 'text' THEN 'nobody has this' WHEN 'integer' THEN '-77' WHEN 'bigint' THEN '-77' WHEN 'boolean' THEN NULL
                   WHEN 'uuid' THEN '00000000-0000-0000-0000-000000000001'
                   WHEN 'timestamp with time zone' THEN '1970-01-01 00:00:00+00' WHEN 'bytea' THEN '\x00' END AS nobodys
        FROM pg_class AS c
        JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_operator AS o ON o.oprleft = a.atttypid AND o.oprright = a.atttypid AND o.oprname IN ('=', '<', '>')
        JOIN pg_proc AS p ON p.oid = o.oprcode AND p.proleakproof
        WHERE c.relnamespace = 'stepwise'::regnamespace AND c.relkind = 'r' AND has_table_privilege('regress_statistics', c.oid, 'SELECT')
    LOOP
        FOR secret IN EXECUTE format('(SELECT %1$I::text FROM stepwise.%2$I WHERE %1$I IS NOT NULL GROUP BY %1$I ORDER BY count(*) DESC LIMIT 2)
                                      UNION SELECT %3$L', target.attname, target.relname, target.nobodys)
        LOOP
            CONTINUE WHEN secret IS NULL;
            INSERT INTO probe VALUES (target.relname, target.attname, target.oprname, target.type, secret,
                format('SELECT FROM stepwise.%I WHERE %I %s %L::%s', target.relname, target.attname, target.oprname, secret, target.type));
        END LOOP;
    END LOOP;
END $$;
SELECT pg_temp.look();

SET ROLE regress_statistics;
SELECT cmp_ok((SELECT count(*)::int FROM probe WHERE type = 'text'), '>', 100, 'there are texts to ask for');
SELECT is_empty($$
    SELECT relname, attname, oprname, array_agg(DISTINCT pg_temp.estimate(statement)) FROM probe
    GROUP BY relname, attname, oprname HAVING count(DISTINCT pg_temp.estimate(statement)) > 1
$$, 'estimates do not depend on the value that is asked for');
SELECT is(pg_temp.estimate($$SELECT FROM stepwise.plan WHERE pause_reason IS NULL$$),
          pg_temp.estimate($$SELECT FROM stepwise.plan WHERE session_id IS NULL$$), 'nor do they say how many have none');

-- ---------- usage counters of indexes ----------

-- Any role can read how many rows the scans of an index have found in its transaction. The search indexes contain the words of all
-- tenants. A search must find no row of another tenant.
CREATE FUNCTION pg_temp.found(query text) RETURNS TABLE (shown int, rows_read int) LANGUAGE plpgsql AS $$
DECLARE
    indexes oid[] := ARRAY(SELECT c.oid FROM pg_class AS c JOIN pg_am AS m ON m.oid = c.relam
                           WHERE c.relnamespace = 'stepwise'::regnamespace AND m.amname = 'gin');
    before bigint := (SELECT sum(pg_stat_get_xact_tuples_returned(i)) FROM unnest(indexes) AS i);
BEGIN
    shown := jsonb_array_length(stepwise.search_artifacts(query, max => 100) -> 'results');
    rows_read := (SELECT sum(pg_stat_get_xact_tuples_returned(i)) FROM unnest(indexes) AS i) - before;
    RETURN NEXT;
END $$;
SELECT stepwise.create_plan('mine', 'mine', '[{"name": "a"}]') ->> 'planId' AS mine \gset
SELECT stepwise.store_artifact(:'mine', 'mine', 'my diary') ->> 'name';
SELECT stepwise.store_output(:'mine', 'my memories') ->> 'size';
SELECT results_eq(format('SELECT * FROM pg_temp.found(%L)', q), 'VALUES (0, 0)', 'a search for ' || q || ' reads nothing of others')
FROM unnest(ARRAY['secret', '"secret content"', 'output', 'content or nothing', 'secret -nothing', 'tenant']) AS q;
SELECT results_eq('SELECT * FROM pg_temp.found(''diary'')', 'VALUES (1, 1)', 'an artifact of one''s own is found');
SELECT results_eq('SELECT * FROM pg_temp.found(''-secret'')', 'VALUES (2, 2)', 'and so is what has not a word that others have');
RESET ROLE;

-- ---------- pg_locks ----------

-- A lock of a tenant is shown as a number. That number must not confirm a guess of the tenant's name. The guess here is the hash of
-- "workflows", a zero, the tenant and a zero, which together are as long as a UUID.
SELECT stepwise.enter_tenant('abcde');
SELECT stepwise.define_workflow('{"name": "locked", "steps": [{"name": "a"}]}') ->> 'version';
SET ROLE regress_statistics;
SELECT cmp_ok(count(*)::int, '>', 0, 'there is a lock to be seen') FROM pg_locks WHERE locktype = 'advisory' AND objsubid = x'5357'::int;
SELECT is_empty($$
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = x'5357'::int
      AND (classid::bigint << 32 | objid::bigint) = uuid_hash_extended(encode('workflows\000abcde\000', 'hex')::uuid, 0)
$$, 'what is locked cannot be guessed');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
