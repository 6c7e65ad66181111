-- A check of references and counters. The tables have no foreign keys, and the engine maintains the counters itself.

CREATE FUNCTION stepwise.check_integrity() RETURNS TABLE (tenant text, plan_id uuid, problem text)
LANGUAGE sql STABLE PARALLEL UNSAFE
BEGIN ATOMIC
    WITH counted AS (
        SELECT s.tenant, s.plan_id,
               count(*) FILTER (WHERE s.status = 'pending') AS pending,
               count(*) FILTER (WHERE s.status = 'in_progress') AS in_progress,
               count(*) FILTER (WHERE s.status = 'awaiting_input') AS awaiting_input,
               count(*) FILTER (WHERE s.status = 'completed') AS completed,
               count(*) FILTER (WHERE s.status = 'failed') AS failed,
               count(*) FILTER (WHERE s.status = 'skipped') AS skipped,
               count(*) FILTER (WHERE s.outcome = 'failure') AS unsuccessful,
               count(*) FILTER (WHERE s.pause_reason IS NOT NULL) AS paused,
               count(*) FILTER (WHERE s.holds) AS holding,
               count(*) FILTER (WHERE s.status = 'failed' AND s.pause_reason IS NOT NULL) AS open_failures,
               count(*) FILTER (WHERE s.execution_order IS NOT NULL) AS started_steps,
               min(s.step_order) FILTER (WHERE s.status = 'pending') AS first_pending,
               count(*) AS total, max(s.step_order) AS last_order,
               array_agg(s.status) AS statuses
        FROM stepwise.step AS s GROUP BY s.tenant, s.plan_id)
    SELECT p.tenant, p.id, 'counters do not fit the steps'
    FROM stepwise.plan AS p JOIN counted AS c ON c.tenant = p.tenant AND c.plan_id = p.id
    WHERE (p.pending, p.in_progress, p.awaiting_input, p.completed, p.failed, p.skipped, p.unsuccessful, p.paused,
           p.holding, p.open_failures)
          IS DISTINCT FROM (c.pending::int, c.in_progress::int, c.awaiting_input::int, c.completed::int, c.failed::int,
                            c.skipped::int, c.unsuccessful::int, c.paused::int, c.holding::int, c.open_failures::int)
    UNION ALL
    SELECT p.tenant, p.id, 'status ' || p.status || ' is not the derived ' || stepwise.derive_plan_status(c.statuses, p.on_failure::text)
    FROM stepwise.plan AS p JOIN counted AS c ON c.tenant = p.tenant AND c.plan_id = p.id
    WHERE p.status <> stepwise.derive_plan_status(c.statuses, p.on_failure::text)
      AND p.status NOT IN ('failed', 'cancelled', 'stalled')
      AND NOT (p.status = 'executing' AND stepwise.derive_plan_status(c.statuses, p.on_failure::text) = 'planning')
      AND NOT (p.status = 'executing' AND p.open_failures > 0)
    UNION ALL
    SELECT p.tenant, p.id, 'sent_back does not fit the tree'
    FROM stepwise.plan AS p
    WHERE p.sent_back <> (SELECT count(*) FROM stepwise.step AS s WHERE s.tenant = p.tenant AND s.root_id = p.id AND s.sent_back)
    UNION ALL
    SELECT p.tenant, p.id, 'crowded does not fit the tree'
    FROM stepwise.plan AS p
    LEFT JOIN (SELECT n.tenant, n.root_id, count(*) AS plans FROM stepwise.plan AS n WHERE n.holding > 1 GROUP BY n.tenant, n.root_id) AS c
        ON c.tenant = p.tenant AND c.root_id = p.id
    WHERE p.crowded <> coalesce(c.plans, 0)
    UNION ALL
    SELECT p.tenant, p.id, 'a pending step is below next_order'
    FROM stepwise.plan AS p JOIN counted AS c ON c.tenant = p.tenant AND c.plan_id = p.id
    WHERE c.first_pending < p.next_order
    UNION ALL
    SELECT c.tenant, c.plan_id, 'step orders have holes' FROM counted AS c WHERE c.total <> c.last_order
    UNION ALL
    SELECT p.tenant, p.id, 'plan has no steps'
    FROM stepwise.plan AS p WHERE NOT EXISTS (SELECT FROM counted AS c WHERE c.tenant = p.tenant AND c.plan_id = p.id)
    UNION ALL
    SELECT s.tenant, s.plan_id, 'step ' || s.name || ' has no plan'
    FROM stepwise.step AS s WHERE NOT EXISTS (SELECT FROM stepwise.plan AS p WHERE p.tenant = s.tenant AND p.id = s.plan_id AND p.root_id = s.root_id)
    UNION ALL
    SELECT s.tenant, s.plan_id, 'step ' || s.name || ' is ' || s.status || ' but has a claim'
    FROM stepwise.step AS s WHERE s.status <> 'in_progress' AND (s.holder IS NOT NULL OR s.lease_expires_at IS NOT NULL)
    UNION ALL
    SELECT s.tenant, s.plan_id, 'step ' || s.name || ' is marked as ready and is not'
    FROM stepwise.step AS s WHERE s.ready_mark AND (s.status <> 'pending' OR s.blockers <> 0)
    UNION ALL
    SELECT p.tenant, p.id, 'step ' || o.step_order || ' is listed as ready and is not'
    FROM stepwise.plan AS p CROSS JOIN LATERAL unnest(p.ready_steps) AS o (step_order)
    WHERE p.completed_at IS NULL
      AND NOT EXISTS (SELECT FROM stepwise.step AS s WHERE s.tenant = p.tenant AND s.plan_id = p.id AND s.step_order = o.step_order
                      AND s.status = 'pending' AND s.blockers = 0)
    UNION ALL
    SELECT s.tenant, s.plan_id, 'step ' || s.name || ' does not wait for what it depends on'
    FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.tenant = s.tenant AND p.id = s.plan_id
    CROSS JOIN LATERAL (
        SELECT count(*) AS open
        FROM stepwise.dependency AS d JOIN stepwise.step AS o ON o.tenant = d.tenant AND o.id = d.depends_on
        WHERE d.tenant = s.tenant AND d.step_id = s.id
          AND NOT (o.outcome = 'success' OR (NOT d.required AND (o.status = 'skipped' OR o.outcome = 'failure'))
                   OR (d.ended AND o.status = 'failed' AND p.on_failure <> 'pause'))) AS w
    WHERE NOT p.sequential AND s.status = 'pending' AND p.completed_at IS NULL
      AND (s.blockers <> w.open
           OR (s.ready_mark AND NOT p.ready_marks)
           OR (s.ready_mark IS TRUE)::int + coalesce(s.step_order = ANY (p.ready_steps), false)::int <> (w.open = 0)::int)
    UNION ALL
    SELECT s.tenant, s.plan_id, 'step ' || s.name || ' has other dependents than it counts'
    FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.tenant = s.tenant AND p.id = s.plan_id
    WHERE NOT p.relinked
      AND s.dependents <> (SELECT count(*) FROM stepwise.dependency AS d WHERE d.tenant = s.tenant AND d.depends_on = s.id)
    UNION ALL
    SELECT p.tenant, p.id, 'nested plan without its step'
    FROM stepwise.plan AS p
    WHERE p.parent_step_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM stepwise.step AS s WHERE s.tenant = p.tenant AND s.id = p.parent_step_id AND s.root_id = p.root_id)
    UNION ALL
    SELECT k.tenant, k.plan_id, 'checkpoint ' || k.id || ' of a step that does not wait'
    FROM stepwise.checkpoint AS k
    WHERE NOT EXISTS (SELECT FROM stepwise.step AS s WHERE s.tenant = k.tenant AND s.id = k.step_id AND s.status = 'awaiting_input')
    UNION ALL
    SELECT k.tenant, k.plan_id, 'checkpoint ' || k.id || ' of a plan that has ended'
    FROM stepwise.checkpoint AS k JOIN stepwise.plan AS p ON p.tenant = k.tenant AND p.id = k.plan_id
    WHERE p.completed_at IS NOT NULL
    UNION ALL
    SELECT p.tenant, p.id, 'plan has a pause reason, and has ended'
    FROM stepwise.plan AS p WHERE p.completed_at IS NOT NULL AND p.pause_reason IS NOT NULL
    UNION ALL
    SELECT s.tenant, s.plan_id, 'step ' || s.name || ' waits without a checkpoint'
    FROM stepwise.step AS s
    WHERE s.status = 'awaiting_input' AND s.workflow IS NULL
      AND NOT EXISTS (SELECT FROM stepwise.plan AS p WHERE p.tenant = s.tenant AND p.id = s.plan_id AND p.completed_at IS NOT NULL)
      AND NOT EXISTS (SELECT FROM stepwise.checkpoint AS k WHERE k.tenant = s.tenant AND k.step_id = s.id)
    UNION ALL
    SELECT d.tenant, d.plan_id, 'dependency of or on a step that is not there'
    FROM stepwise.dependency AS d
    WHERE NOT EXISTS (SELECT FROM stepwise.step AS s WHERE s.tenant = d.tenant AND s.id = d.step_id AND s.plan_id = d.plan_id)
       OR NOT EXISTS (SELECT FROM stepwise.step AS s WHERE s.tenant = d.tenant AND s.id = d.depends_on AND s.plan_id = d.plan_id)
    UNION ALL
    SELECT a.tenant, a.plan_id, 'versions of artifact ' || a.name || ' have holes'
    FROM stepwise.artifact AS a GROUP BY a.tenant, a.plan_id, a.name HAVING count(*) <> max(a.version)
    UNION ALL
    SELECT a.tenant, a.plan_id, 'artifact ' || a.name || ' without its plan, or of a step that is not in the tree'
    FROM stepwise.artifact AS a
    WHERE NOT EXISTS (
        SELECT FROM stepwise.plan AS p LEFT JOIN stepwise.step AS s ON s.tenant = p.tenant AND s.id = a.step_id AND s.root_id = p.root_id
        WHERE p.tenant = a.tenant AND p.id = a.plan_id AND (a.step_id IS NULL OR s.id IS NOT NULL))
    UNION ALL
    SELECT a.tenant, a.plan_id, 'audit entries of a plan that is not there'
    FROM (SELECT DISTINCT x.tenant, x.plan_id FROM stepwise.audit_log AS x WHERE x.plan_id IS NOT NULL) AS a
    WHERE NOT EXISTS (SELECT FROM stepwise.plan AS p WHERE p.tenant = a.tenant AND p.id = a.plan_id)
    UNION ALL
    SELECT i.tenant, i.plan_id, i.kind || ' ' || i.id || ' does not carry the slot of its tenant'
    FROM (SELECT p.tenant, p.id AS plan_id, 'plan' AS kind, p.id FROM stepwise.plan AS p
          UNION ALL SELECT s.tenant, s.plan_id, 'step', s.id FROM stepwise.step AS s
          UNION ALL SELECT k.tenant, k.plan_id, 'checkpoint', k.id FROM stepwise.checkpoint AS k
          UNION ALL SELECT a.tenant, a.plan_id, 'artifact', a.id FROM stepwise.artifact AS a
          UNION ALL SELECT e.tenant, e.plan_id, 'skill execution', e.id FROM stepwise.skill_execution AS e
          UNION ALL SELECT t.tenant, t.plan_id, 'tool call', t.id FROM stepwise.tool_call AS t) AS i
    WHERE stepwise.slot_of(i.id) <> stepwise.tenant_slot(i.tenant);
END;
COMMENT ON FUNCTION stepwise.check_integrity() IS 'list contradictions in the tables of all tenants; no row means that there are none';
