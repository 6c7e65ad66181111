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

-- "entries" is the length of a list, "cut" the bytes of a text that are not cut.
CREATE FUNCTION stepwise.plan_status_json(tenant text, plan_id uuid, stall_after interval, default_after interval, entries int, cut int)
RETURNS SETOF jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH step AS (
        SELECT s.id, s.step_order, s.status, s.completed_at, s.outcome, s.result_summary, s.message, s.retryable, s.attempt, s.worker, s.started_at,
               s.lease_expires_at, s.name, s.type
        FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2),
    statuses AS (
        SELECT coalesce(array_agg(s.status), '{}') AS list FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2),
    -- each list: the last done, or the next to come
    listed AS (
        SELECT s.*, row_number() OVER (PARTITION BY s.list ORDER BY CASE WHEN s.list IN ('done', 'failed') THEN s.completed_at END DESC NULLS LAST,
                                                                    CASE WHEN s.list IN ('done', 'failed') THEN -s.step_order ELSE s.step_order END) AS n
        FROM (SELECT x.*, CASE x.status WHEN 'completed' THEN 'done' WHEN 'skipped' THEN 'done' ELSE x.status::text END AS list FROM step AS x) AS s),
    shown AS (
        SELECT s.list, s.step_order, s.n,
               jsonb_build_object('stepId', s.id, 'stepOrder', s.step_order, 'name', s.name, 'stepType', s.type, 'status', s.status)
               || CASE WHEN s.list IN ('in_progress', 'awaiting_input') THEN stepwise.drop_nulls(jsonb_build_object(
                      'worker', stepwise.cut_text(s.worker, $6, 'get_step_context'), 'attempt', s.attempt,
                      'since', stepwise.time_text(s.started_at), 'leaseExpiresAt', stepwise.time_text(s.lease_expires_at)))
                  WHEN s.list = 'done' THEN stepwise.drop_nulls(jsonb_build_object(
                      'outcome', s.outcome, 'resultSummary', stepwise.cut_text(s.result_summary, $6, 'get_step_context')))
                  WHEN s.list = 'failed' THEN stepwise.drop_nulls(jsonb_build_object(
                      'error', stepwise.cut_text(s.message, $6, 'get_step_context'), 'retryable', coalesce(s.retryable, false), 'attempt', s.attempt))
                  ELSE '{}' END AS json
        FROM listed AS s WHERE s.n <= greatest($5, 1)),
    lists AS (
        SELECT s.list, jsonb_agg(s.json ORDER BY s.step_order) AS json FROM shown AS s WHERE s.n <= $5 GROUP BY s.list),
    stalled AS (
        SELECT coalesce(jsonb_agg(jsonb_build_object('stepId', x.step_id, 'name', x.name,
                                                     'silentSeconds', floor(extract(epoch FROM x.silent_for))) ORDER BY x.n)
                        FILTER (WHERE x.n <= $5), '[]') AS list,
               count(*) AS count
        FROM (SELECT y.*, row_number() OVER (ORDER BY y.silent_for DESC, y.step_id) AS n
              FROM stepwise.stalled_steps($1, $2, $3, $4) AS y) AS x)
    SELECT jsonb_build_object(
        'planId', p.id,
        'name', stepwise.cut_text(p.name, greatest($6, 40), 'get_plan_context'),
        'status', p.status,
        'planStatus', p.status,
        'derivedStatus', (SELECT stepwise.derive_plan_status(x.list, p.on_failure::text) FROM statuses AS x),
        'outcome', p.outcome,
        'stalled', p.status = 'stalled' OR x.count > 0,
        'stalledSteps', x.list,
        'stalledCount', x.count,
        'progress', round(100.0 * (p.completed + p.skipped)
                          / greatest(p.pending + p.in_progress + p.awaiting_input + p.completed + p.failed + p.skipped, 1)),
        'totalSteps', p.pending + p.in_progress + p.awaiting_input + p.completed + p.failed + p.skipped,
        'completedCount', p.completed + p.skipped,
        'failedCount', p.failed,
        'pendingCount', p.pending,
        'inProgressCount', p.in_progress,
        'awaitingCount', p.awaiting_input,
        'currentStep', (SELECT s.json FROM shown AS s WHERE s.list IN ('in_progress', 'awaiting_input') ORDER BY s.step_order LIMIT 1),
        'inProgressSteps', coalesce((SELECT l.json FROM lists AS l WHERE l.list = 'in_progress'), '[]'),
        'completedSteps', coalesce((SELECT l.json FROM lists AS l WHERE l.list = 'done'), '[]'),
        'failedSteps', coalesce((SELECT l.json FROM lists AS l WHERE l.list = 'failed'), '[]'),
        'pendingSteps', coalesce((SELECT l.json FROM lists AS l WHERE l.list = 'pending'), '[]'),
        'pauseReason', p.pause_reason)
        || CASE WHEN p.parent_step_id IS NULL THEN '{}' ELSE jsonb_build_object('rootPlanId', p.root_id) END
    FROM stepwise.plan AS p CROSS JOIN stalled AS x WHERE p.tenant = $1 AND p.id = $2;
END;
COMMENT ON FUNCTION stepwise.plan_status_json(text, uuid, interval, interval, int, int) IS 'internal: what get_plan_status answers';
