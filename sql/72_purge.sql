-- Retention.

CREATE PROCEDURE stepwise.purge(before timestamptz, batch int = 1000)
LANGUAGE C AS 'MODULE_PATHNAME', 'stepwise_purge';
COMMENT ON PROCEDURE stepwise.purge(timestamptz, int) IS 'remove plans of all tenants that finished before a time; commits after each batch';
