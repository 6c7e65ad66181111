-- Rows of tenants have no statistics. The planner applies leakproof operators, such as < and = on text, to statistics over all
-- tenants, and EXPLAIN shows the estimates. With many such queries an agent could read the values of other tenants. Even a name,
-- an id or a time reveals something, so no column has statistics. The queries of the engine do not need them; see planner.c.
-- Indexes on expressions have statistics of their own, so these are turned off too. A column that a later version adds needs the
-- same. test/sql/tap_statistics.sql checks that.

DO $$
DECLARE
    change text;
BEGIN
    FOR change IN
        SELECT pg_catalog.format('ALTER TABLE stepwise.%I ', c.relname)
               || pg_catalog.string_agg(pg_catalog.format('ALTER COLUMN %I SET STATISTICS 0', a.attname), ', ')
        FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'stepwise'::pg_catalog.regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
        GROUP BY c.relname
        UNION ALL
        SELECT pg_catalog.format('ALTER INDEX stepwise.%I ALTER COLUMN %s SET STATISTICS 0', c.relname, a.attnum)
        FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
        JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'stepwise'::pg_catalog.regnamespace AND i.indkey[a.attnum - 1] = 0
    LOOP
        EXECUTE change;
    END LOOP;
END $$;
