-- Views for people. They use the rights of the caller, since a view of a superuser would bypass row-level security.

CREATE VIEW stepwise.checkpoints WITH (security_invoker) AS
    SELECT k.id AS checkpoint_id, k.plan_id, k.root_id AS root_plan_id, k.step_id,
           ARRAY(SELECT jsonb_array_elements_text(p.parent_names)) || s.name AS path,
           k.kind, k.prompt, k.since, k.questions, k.gate, k.submission, k.tenant
    FROM stepwise.checkpoint AS k
    JOIN stepwise.plan AS p ON p.tenant = k.tenant AND p.id = k.plan_id AND p.completed_at IS NULL
    JOIN stepwise.step AS s ON s.tenant = k.tenant AND s.id = k.step_id;
COMMENT ON VIEW stepwise.checkpoints IS 'steps that wait for a person, and the path to them; a step that only waits for a nested plan is not listed';
COMMENT ON COLUMN stepwise.checkpoints.path IS 'names of the steps from the root plan down to the one that waits';
COMMENT ON COLUMN stepwise.checkpoints.kind IS 'prompt: answered by stepwise.resume; review: decided by stepwise.submit_user_decision';
COMMENT ON COLUMN stepwise.checkpoints.gate IS 'before or after: the gate of the step; null: the review was requested, or a prompt asks';
COMMENT ON COLUMN stepwise.checkpoints.submission IS 'what the step was submitted with; an approval completes the step with it';

-- The setting stepwise.stall_after is read as text, since it may be asked for before the library is loaded.
CREATE VIEW stepwise.claims WITH (security_invoker) AS
    SELECT s.id AS step_id, s.plan_id, p.root_id AS root_plan_id,
           ARRAY(SELECT jsonb_array_elements_text(p.parent_names)) || s.name AS path,
           p.name AS plan_name, s.name, s.tool, s.worker, s.attempt, s.started_at AS since, coalesce(s.active_at, s.started_at) AS active_at, s.lease_expires_at,
           clock_timestamp() - coalesce(s.active_at, s.started_at) AS silent_for,
           clock_timestamp() - coalesce(s.active_at, s.started_at)
               >= coalesce(s.stall_after, p.stall_after, current_setting('stepwise.stall_after', true)::interval, '30 minutes') AS stalled,
           coalesce(s.lease_expires_at < clock_timestamp(), false) AS expired,
           s.tenant
    FROM stepwise.plan AS p
    JOIN stepwise.step AS s ON s.tenant = p.tenant AND s.plan_id = p.id
    WHERE p.completed_at IS NULL AND p.in_progress > 0
      AND s.status = 'in_progress' AND s.workflow IS NULL AND s.sent_back IS NULL;
COMMENT ON VIEW stepwise.claims IS 'steps that somebody holds now; a step that holds a nested plan, or that a review sent back, is held by nobody';
COMMENT ON COLUMN stepwise.claims.path IS 'names of the steps from the root plan down to the claimed one';
COMMENT ON COLUMN stepwise.claims.active_at IS 'the last sign of life: the claim itself or a heartbeat';
COMMENT ON COLUMN stepwise.claims.silent_for IS 'time since the last sign of life';
COMMENT ON COLUMN stepwise.claims.stalled IS 'silent for longer than its threshold, whether or not somebody has marked the plan';
COMMENT ON COLUMN stepwise.claims.expired IS 'its lease is over: the next call that asks for work takes it back';

CREATE VIEW stepwise.stalled WITH (security_invoker) AS
    SELECT c.* FROM stepwise.claims AS c WHERE c.stalled OR c.expired;
COMMENT ON VIEW stepwise.stalled IS 'claims that are stalled or whose lease is over; stepwise.reclaim_stalled takes them back';

CREATE VIEW stepwise.waiting WITH (security_invoker) AS
    SELECT s.id AS step_id, s.plan_id, p.root_id AS root_plan_id,
           ARRAY(SELECT jsonb_array_elements_text(p.parent_names)) || s.name AS path,
           p.name AS plan_name, s.name, s.status, s.pause_reason ->> 'type' AS reason,
           CASE WHEN s.status = 'awaiting_input' THEN 'person' ELSE 'client' END AS waiting_on,
           coalesce(k.prompt, s.pause_reason ->> 'error', s.message) AS message,
           k.id AS checkpoint_id, coalesce(k.since, s.completed_at, a.at) AS since, s.tenant
    FROM stepwise.plan AS p
    JOIN stepwise.step AS s ON s.tenant = p.tenant AND s.plan_id = p.id
    LEFT JOIN stepwise.checkpoint AS k ON k.tenant = s.tenant AND k.step_id = s.id
    LEFT JOIN LATERAL (
        SELECT x.at FROM stepwise.audit AS x
        WHERE s.status = 'pending' AND x.tenant = p.tenant AND x.plan_id = p.id AND x.event = 'plan_paused'
        ORDER BY x.plan_id DESC, x.batch DESC, x.id DESC LIMIT 1) AS a ON true
    WHERE p.completed_at IS NULL AND p.paused > 0 AND s.pause_reason IS NOT NULL
      -- a step that holds a nested plan has the reason of a step in there
      AND NOT (s.workflow IS NOT NULL AND s.status IN ('in_progress', 'awaiting_input') AND k.id IS NULL);
COMMENT ON VIEW stepwise.waiting IS 'steps that have a pause reason: they wait for a person, or for a client that deals with them';
COMMENT ON COLUMN stepwise.waiting.path IS 'names of the steps from the root plan down to the one that waits';
COMMENT ON COLUMN stepwise.waiting.reason IS 'type of its pause reason';
COMMENT ON COLUMN stepwise.waiting.checkpoint_id IS 'what a person answers; null if it waits for a client';

CREATE VIEW stepwise.plan_progress WITH (security_invoker) AS
    WITH shown AS (
        SELECT p.* FROM stepwise.plan AS p
        WHERE p.parent_step_id IS NULL AND p.completed_at IS NULL
        UNION ALL
        SELECT p.* FROM stepwise.plan AS p
        WHERE p.parent_step_id IS NULL AND p.completed_at > now() - interval '1 day'),
    measured AS (
        SELECT s.*,
               s.status = 'stalled' OR (s.status = 'executing'
                   AND s.id IN (SELECT c.root_plan_id FROM stepwise.claims AS c WHERE c.stalled)) AS is_stalled,
               round(100.0 * (s.completed + s.skipped)
                          / greatest(s.pending + s.in_progress + s.awaiting_input + s.completed + s.failed + s.skipped, 1))::int AS percent
        FROM shown AS s)
    SELECT m.name, CASE WHEN m.is_stalled THEN 'stalled' ELSE m.status END AS status,
           '[' || repeat('#', m.percent / 5) || repeat('.', 20 - m.percent / 5) || ']' AS progress,
           m.percent, c.path AS current_step,
           CASE WHEN m.completed_at IS NOT NULL THEN NULL
                WHEN m.pause_reason IS NOT NULL THEN
                    left(concat_ws(': ', m.pause_reason ->> 'type', coalesce(m.pause_reason ->> 'prompt', m.pause_reason ->> 'summary',
                                   m.pause_reason ->> 'error', m.pause_reason ->> 'feedback',
                                   m.pause_reason ->> 'blockedStep')), 80)
                WHEN m.is_stalled THEN 'a sign of life'
                WHEN m.in_progress = 0 THEN 'an agent'
           END AS waiting_on,
           date_trunc('second', coalesce(m.completed_at, clock_timestamp()) - m.created_at) AS age,
           m.id AS plan_id, m.tenant
    FROM measured AS m
    LEFT JOIN LATERAL (
        WITH RECURSIVE down AS (
            (SELECT s.id, s.name AS path, 1 AS level
             FROM stepwise.step AS s
             WHERE m.in_progress + m.awaiting_input > 0
               AND s.tenant = m.tenant AND s.plan_id = m.id AND s.status IN ('in_progress', 'awaiting_input')
             ORDER BY s.step_order LIMIT 1)
            UNION ALL
            SELECT x.id, d.path || ' / ' || x.name, d.level + 1
            FROM down AS d
            JOIN stepwise.plan AS n ON n.tenant = m.tenant AND n.parent_step_id = d.id
            CROSS JOIN LATERAL (
                SELECT s.id, s.name FROM stepwise.step AS s
                WHERE s.tenant = m.tenant AND s.plan_id = n.id AND s.status IN ('in_progress', 'awaiting_input')
                ORDER BY s.step_order LIMIT 1) AS x)
        SELECT d.path FROM down AS d ORDER BY d.level DESC LIMIT 1) AS c ON true
    ORDER BY m.id DESC;
COMMENT ON VIEW stepwise.plan_progress IS 'unfinished plans and those that ended within the last day, newest first; suitable for \watch';
COMMENT ON COLUMN stepwise.plan_progress.status IS 'stalled also if a claim is silent for too long and nobody has marked the plan yet';
COMMENT ON COLUMN stepwise.plan_progress.percent IS 'percentage of steps that are completed or skipped';
COMMENT ON COLUMN stepwise.plan_progress.current_step IS 'the first step in progress or waiting, down through nested plans';
