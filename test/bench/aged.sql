-- How the tables look after a while: HOT updates, dead rows, and bytes per completed step. Each line is: aged, table, HOT updates in
-- percent, dead rows per live row in percent, bytes on disk per step, free space in percent (if pgstattuple is there).

CREATE FUNCTION bench.free_percent(t regclass) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT round(approx_free_percent::numeric) FROM pgstattuple_approx(t));
EXCEPTION WHEN undefined_function THEN
    RETURN '-';
END $$;

SELECT pg_stat_clear_snapshot() \g /dev/null
SELECT 'aged', schemaname || '.' || relname, coalesce(round(100.0 * n_tup_hot_upd / nullif(n_tup_upd, 0))::text, '-'),
       round(100.0 * n_dead_tup / greatest(n_live_tup, 1)), round(pg_total_relation_size(relid) / greatest(d.done, 1)),
       bench.free_percent(relid)
FROM pg_stat_user_tables
JOIN (VALUES ('handwritten', (SELECT sum(completed) FROM handwritten.plan)), ('stepwise', (SELECT sum(completed) FROM stepwise.plan))) AS d (schema, done)
ON d.schema = schemaname
WHERE n_tup_ins > 1000
ORDER BY 2;
