-- The progress of a plan, and claims that show no sign of life.

CREATE FUNCTION stepwise.get_plan_status(plan_id uuid, stall_after interval = NULL, max int = 50) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_plan_status';
COMMENT ON FUNCTION stepwise.get_plan_status(uuid, interval, int) IS 'show the progress of a plan; marks the plan stalled when a claim shows no sign of life';

CREATE FUNCTION stepwise.reclaim_stalled(older_than interval = NULL, plan_id uuid = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_reclaim_stalled';
COMMENT ON FUNCTION stepwise.reclaim_stalled(interval, uuid) IS 'put stalled and expired claims of the tenant, or of one plan, back to pending';

-- Internal: the tenant is an argument.

CREATE FUNCTION stepwise.stalled_steps(tenant text, plan_id uuid, stall_after interval, default_after interval)
RETURNS TABLE (step_id uuid, name text, silent_for interval)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH RECURSIVE tree AS (
        SELECT p.id, p.stall_after FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2 AND p.completed_at IS NULL
        UNION ALL
        SELECT x.id, x.stall_after
        FROM tree AS t
        CROSS JOIN LATERAL (
            SELECT n.id, n.stall_after
            FROM stepwise.step AS h
            JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = h.id AND n.completed_at IS NULL
            WHERE h.tenant = $1 AND h.plan_id = t.id AND h.workflow IS NOT NULL AND h.status = 'in_progress'
            OFFSET 0) AS x)     -- plan by plan, however many the planner expects
    SELECT x.id, x.name, x.silent_for
    FROM tree AS t
    CROSS JOIN LATERAL (
        SELECT s.id, s.name, s.stall_after, clock_timestamp() - coalesce(s.active_at, s.started_at) AS silent_for
        FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = t.id AND s.status = 'in_progress' AND s.workflow IS NULL AND s.sent_back IS NULL
        OFFSET 0) AS x
    WHERE x.silent_for >= coalesce($3, x.stall_after, t.stall_after, $4)
    ORDER BY x.id;
END;
COMMENT ON FUNCTION stepwise.stalled_steps(text, uuid, interval, interval) IS 'internal: stalled claims of a plan and of the plans nested in it';
