-- The progress of a plan, and claims that show no sign of life.

CREATE FUNCTION stepwise.get_plan_status(plan_id uuid, stall_after interval = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_plan_status';
COMMENT ON FUNCTION stepwise.get_plan_status(uuid, interval) IS 'show the progress of a plan; marks the plan stalled when a claim shows no sign of life';

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

CREATE FUNCTION stepwise.plan_status_json(tenant text, plan_id uuid, stall_after interval, default_after interval) RETURNS SETOF jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    -- summaries and errors are whole up to a sum of 8 MB, the newest first
    WITH steps AS (
        SELECT s.step_order, s.status,
               jsonb_build_object('stepId', s.id, 'stepOrder', s.step_order, 'name', s.name, 'stepType', s.type,
                                  'status', s.status) AS brief,
               jsonb_build_object('outcome', s.outcome, 'resultSummary', CASE WHEN s.size <= 8000000 THEN s.result_summary ELSE left(s.result_summary, 1000) END) AS achieved,
               jsonb_build_object('error', CASE WHEN s.size <= 8000000 THEN s.message ELSE left(s.message, 1000) END, 'retryable', coalesce(s.retryable, false), 'attempt', s.attempt) AS trouble,
               jsonb_build_object('worker', s.worker, 'attempt', s.attempt, 'startedAt', stepwise.time_text(s.started_at),
                                  'leaseExpiresAt', stepwise.time_text(s.lease_expires_at)) AS claim
        FROM (SELECT x.*, sum(coalesce(stepwise.text_size(x.result_summary), 0) + coalesce(stepwise.text_size(x.message), 0))
                          OVER (ORDER BY x.step_order DESC) AS size
              FROM stepwise.step AS x WHERE x.tenant = $1 AND x.plan_id = $2) AS s),
    stalled AS (
        SELECT coalesce(jsonb_agg(jsonb_build_object('stepId', x.step_id, 'name', x.name,
                                                     'silentSeconds', floor(extract(epoch FROM x.silent_for)))), '[]') AS list
        FROM stepwise.stalled_steps($1, $2, $3, $4) AS x)
    SELECT jsonb_build_object(
        'planId', p.id,
        'name', p.name,
        'status', p.status,
        'planStatus', p.status,
        'derivedStatus', (SELECT stepwise.derive_plan_status(coalesce(array_agg(s.status), '{}'), p.on_failure::text) FROM steps AS s),
        'outcome', p.outcome,
        'stalled', p.status = 'stalled' OR (SELECT x.list <> '[]' FROM stalled AS x),
        'stalledSteps', (SELECT x.list FROM stalled AS x),
        'progress', (SELECT round(100.0 * count(*) FILTER (WHERE s.status IN ('completed', 'skipped')) / greatest(count(*), 1)) FROM steps AS s),
        'totalSteps', (SELECT count(*) FROM steps AS s),
        'currentStep', (SELECT s.brief || s.claim FROM steps AS s WHERE s.status IN ('in_progress', 'awaiting_input')
                        ORDER BY s.step_order LIMIT 1),
        'completedSteps', (SELECT coalesce(jsonb_agg(s.brief || s.achieved ORDER BY s.step_order), '[]') FROM steps AS s
                           WHERE s.status IN ('completed', 'skipped')),
        'failedSteps', (SELECT coalesce(jsonb_agg(s.brief || s.trouble ORDER BY s.step_order), '[]') FROM steps AS s
                        WHERE s.status = 'failed'),
        'pendingSteps', (SELECT coalesce(jsonb_agg(s.brief ORDER BY s.step_order), '[]') FROM steps AS s
                         WHERE s.status = 'pending'),
        'pauseReason', p.pause_reason)
    FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2;
END;
COMMENT ON FUNCTION stepwise.plan_status_json(text, uuid, interval, interval) IS 'internal: what get_plan_status answers';
