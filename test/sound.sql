-- Checks that must hold whenever nobody is writing, for the end of tests. No row means that there is no contradiction.
-- check_integrity() is a part of it. The rest would be too expensive for production.
CREATE OR REPLACE FUNCTION pg_temp.sound() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('%s: %s', p.name, i.problem)
    FROM stepwise.check_integrity() AS i LEFT JOIN stepwise.plan AS p ON p.tenant = i.tenant AND p.id = i.plan_id
    UNION ALL
    SELECT format('%s: %s', p.name, v -> 'firstInvalid')
    FROM stepwise.plan AS p, stepwise.verify_audit(p.id) AS v
    WHERE p.tenant = stepwise.current_tenant() AND NOT (v ->> 'valid')::boolean
    UNION ALL
    SELECT format('%s: the plan is %s, and its last audit entry says %s', p.name, p.status, a.now)
    FROM stepwise.plan AS p JOIN (
        SELECT DISTINCT ON (a.tenant, a.plan_id) a.tenant, a.plan_id, a.detail ->> 'to' AS now FROM stepwise.audit AS a
        WHERE a.step_id IS NULL AND (a.event = 'plan_status_changed' OR a.detail ->> 'action' = 'created')
        ORDER BY a.tenant, a.plan_id, a.id DESC) AS a ON a.tenant = p.tenant AND a.plan_id = p.id
    WHERE a.now <> p.status::text
    UNION ALL
    SELECT format('%s: step %s is %s, and its last audit entry says %s', p.name, s.name, s.status, a.now)
    FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.tenant = s.tenant AND p.id = s.plan_id LEFT JOIN (
        SELECT DISTINCT ON (a.tenant, a.step_id) a.tenant, a.step_id, a.detail ->> 'to' AS now FROM stepwise.audit AS a
        WHERE a.step_id IS NOT NULL AND a.detail ? 'from'
        ORDER BY a.tenant, a.step_id, a.id DESC) AS a ON a.tenant = s.tenant AND a.step_id = s.id
    WHERE coalesce(a.now, 'pending') <> s.status::text
    UNION ALL
    SELECT format('%s: audit entry %s goes from %s to %s, after %s', p.name, a.id, a.was, a.now, a.before)
    FROM stepwise.plan AS p JOIN (
        SELECT a.tenant, a.plan_id, a.step_id, a.id, a.detail ->> 'from' AS was, a.detail ->> 'to' AS now,
               lag(a.detail ->> 'to', 1, CASE WHEN a.step_id IS NULL THEN 'planning' ELSE 'pending' END)
               OVER (PARTITION BY a.tenant, a.plan_id, a.step_id ORDER BY a.id) AS before
        FROM stepwise.audit AS a
        WHERE a.detail ? 'from' AND (a.step_id IS NOT NULL OR a.event = 'plan_status_changed')) AS a ON a.tenant = p.tenant AND a.plan_id = p.id
    WHERE a.was <> a.before
       OR CASE WHEN a.step_id IS NULL THEN NOT stepwise.plan_transition_allowed(a.was::stepwise.plan_status, a.now::stepwise.plan_status)
               ELSE NOT stepwise.step_transition_allowed(a.was::stepwise.step_status, a.now::stepwise.step_status) END
    UNION ALL
    SELECT format('%s: audit entry %s is of an earlier time than the one before it', p.name, a.id)
    FROM stepwise.plan AS p JOIN (
        SELECT a.tenant, a.plan_id, a.id, a.at < lag(a.at) OVER (PARTITION BY a.tenant, a.plan_id ORDER BY a.id) AS earlier
        FROM stepwise.audit AS a) AS a ON a.tenant = p.tenant AND a.plan_id = p.id
    WHERE a.earlier
    UNION ALL
    SELECT format('%s: step %s is %s, with times %s', p.name, s.name, s.status, concat_ws(' ',
                  CASE WHEN s.started_at IS NOT NULL THEN 'started' END, CASE WHEN s.completed_at IS NOT NULL THEN 'completed' END))
    FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.tenant = s.tenant AND p.id = s.plan_id
    WHERE (s.completed_at IS NOT NULL) <> (s.status IN ('completed', 'failed', 'skipped'))
       OR (s.status = 'pending' AND s.started_at IS NOT NULL)
       OR (s.status IN ('in_progress', 'completed') AND s.started_at IS NULL)
       OR s.completed_at < s.started_at
    UNION ALL
    SELECT format('%s: %s steps have started, the plan says %s', p.name, c.n, p.started_steps)
    FROM stepwise.plan AS p, LATERAL (
        SELECT count(*) AS n, max(o.number) AS last FROM (
            SELECT s.execution_order FROM stepwise.step AS s WHERE s.tenant = p.tenant AND s.plan_id = p.id
            UNION ALL
            SELECT (a.detail ->> 'executionOrder')::int FROM stepwise.audit AS a
            WHERE a.tenant = p.tenant AND a.plan_id = p.id AND a.detail ->> 'action' = 'remove_step') AS o (number)
        WHERE o.number IS NOT NULL) AS c
    WHERE c.n <> p.started_steps OR coalesce(c.last, 0) <> p.started_steps
    UNION ALL
    SELECT format('%s: step %s is in wave %s, not %s', p.name, s.name, s.wave, w.wave)
    FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.tenant = s.tenant AND p.id = s.plan_id, LATERAL (
        SELECT CASE WHEN p.sequential THEN s.step_order - 1 ELSE coalesce(max(o.wave) + 1, 0) END AS wave, count(*) AS parents
        FROM stepwise.dependency AS d JOIN stepwise.step AS o ON o.tenant = d.tenant AND o.id = d.depends_on
        WHERE d.tenant = s.tenant AND d.step_id = s.id) AS w
    -- a review that a branch has added comes after its step without depending on it
    WHERE s.wave <> w.wave AND (p.sequential OR w.parents > 0 OR s.type <> 'checkpoint')
    UNION ALL
    SELECT format('%s: step %s completed with failure, and does not say why', p.name, s.name)
    FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.tenant = s.tenant AND p.id = s.plan_id
    WHERE s.outcome = 'failure' AND s.message IS NULL
    UNION ALL
    SELECT format('%s: step %s is %s, with an error', p.name, s.name, s.status)
    FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.tenant = s.tenant AND p.id = s.plan_id
    WHERE s.error IS NOT NULL AND s.status NOT IN ('failed', 'skipped')
    UNION ALL
    SELECT format('%s: completed with outcome %s', p.name, p.outcome)
    FROM stepwise.plan AS p
    WHERE p.status = 'completed' AND (p.outcome = 'failure') <> EXISTS (
        SELECT FROM stepwise.step AS s
        WHERE s.tenant = p.tenant AND s.plan_id = p.id AND (s.status = 'failed' OR s.outcome = 'failure'))
    UNION ALL
    SELECT format('%s: completed or ended %s times', p.name, e.n)
    FROM stepwise.plan AS p, LATERAL (
        SELECT count(*) AS n FROM stepwise.audit AS a
        WHERE a.tenant = p.tenant AND a.plan_id = p.id AND a.event = 'plan_status_changed'
          AND a.detail ->> 'to' IN ('completed', 'failed', 'cancelled')) AS e
    WHERE e.n <> (p.completed_at IS NOT NULL)::int
    ORDER BY 1
$$;
