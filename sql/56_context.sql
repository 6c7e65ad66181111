-- What a session needs to continue a plan or a step.

CREATE FUNCTION stepwise.get_plan_context(plan_id uuid, session_id text = NULL, max_bytes int = 32000) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_plan_context';
COMMENT ON FUNCTION stepwise.get_plan_context(uuid, text, int) IS 'show all that a new session needs to continue a plan, in at most max_bytes';

CREATE FUNCTION stepwise.get_step_context(step_id uuid, max_bytes int = 32000) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_step_context';
COMMENT ON FUNCTION stepwise.get_step_context(uuid, int) IS 'show a step, the results of the steps before it, and their artifacts, in at most max_bytes';

-- Internal: the tenant is an argument. "entries" is the length of a list, "cut" the bytes of a text or value that are not cut; at 0
-- it is left out. What is cut is then filled in by api/bound.c, as far as there is room. The lists beside the steps get shorter with
-- the texts, so that they leave room for the steps.

CREATE FUNCTION stepwise.beside(entries int, cut int) RETURNS int
LANGUAGE sql IMMUTABLE
RETURN CASE WHEN $2 = 0 THEN 0 WHEN $2 >= 300 THEN $1 ELSE least($1, greatest($2 / 10, 3)) END;
COMMENT ON FUNCTION stepwise.beside(int, int) IS 'internal: the length of a list that stands beside the list of steps';

-- Rows are not passed to functions as a whole: that would read all their values.
CREATE FUNCTION stepwise.step_json(tenant text, step_id uuid, cut int) RETURNS jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT stepwise.drop_nulls(jsonb_build_object(
        'stepId', s.id, 'stepOrder', s.step_order, 'name', s.name, 'stepType', s.type,
        'status', s.status, 'outcome', nullif(s.outcome, 'n/a'), 'tool', stepwise.cut_text(s.tool, $3, 'get_step_context'),
        'workflow', stepwise.cut_text(s.workflow, $3, 'get_step_context'), 'version', s.version,
        'binding', s.binding, 'attempt', nullif(s.attempt, 0), 'maxAttempts', s.max_attempts, 'retryable', s.retryable,
        'worker', stepwise.cut_text(s.worker, $3, 'get_step_context'),
        'leaseExpiresAt', stepwise.time_text(s.lease_expires_at), 'stallAfter', stepwise.interval_text(s.stall_after),
        'executionOrder', s.execution_order,
        'startedAt', stepwise.time_text(s.started_at), 'completedAt', stepwise.time_text(s.completed_at),
        'message', stepwise.cut_text(s.message, $3, 'get_step_context'),
        'pauseReason', CASE WHEN $3 >= 300 THEN stepwise.cut_json(s.pause_reason, $3, 'get_step_context', 'step_id', s.id::text, 'max_bytes') END,
        'confidence', s.confidence,
        'resultSummary', stepwise.cut_text(s.result_summary, $3, 'get_step_context'))
        -- what a step that has ended was to do is of less interest; where room is short, what is cut is left out
        || CASE WHEN s.status IN ('completed', 'skipped') THEN '{}' ELSE jsonb_build_object(
            'prompt', stepwise.cut_text(s.prompt, $3, 'get_step_context'),
            'instructions', stepwise.cut_text(s.instructions, $3, 'get_step_context'),
            'arguments', CASE WHEN $3 >= 300 THEN stepwise.cut_json(s.arguments, $3, 'get_step_context', 'step_id', s.id::text, 'max_bytes') END) END)
        || jsonb_build_object('result', CASE WHEN $3 > 0 THEN stepwise.cut_json(s.result, $3, 'get_step_context', 'step_id', s.id::text, 'max_bytes')
                                             WHEN s.result IS NOT NULL THEN '{"cut": true}' END)
    FROM stepwise.step AS s WHERE s.tenant = $1 AND s.id = $2;
END;
COMMENT ON FUNCTION stepwise.step_json(text, uuid, int) IS 'internal: a step as JSON';

CREATE FUNCTION stepwise.artifact_json(tenant text, artifact_id uuid, cut int) RETURNS jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT stepwise.drop_nulls(jsonb_build_object(
        'name', stepwise.cut_text(a.name, greatest($3, 40), 'get_artifact'), 'version', a.version, 'size', octet_length(a.content),
        'planId', a.plan_id, 'stepId', a.step_id, 'mediaType', stepwise.cut_text(a.media_type, $3, 'get_artifact')))
    FROM stepwise.artifact AS a WHERE a.tenant = $1 AND a.id = $2;
END;
COMMENT ON FUNCTION stepwise.artifact_json(text, uuid, int) IS 'internal: an artifact as JSON, without its content';

CREATE FUNCTION stepwise.skill_json(execution stepwise.skill_execution, cut int) RETURNS jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT jsonb_build_object(
        'executionId', ($1).id, 'skillName', ($1).skill_name, 'status', ($1).status, 'sessionId', ($1).session_id,
        'planId', ($1).plan_id, 'metadata', stepwise.cut_json(($1).metadata, $2, 'get_plan_context', 'plan_id', coalesce(($1).plan_id, ($1).id)::text, 'max_bytes'),
        'errorMessage', stepwise.cut_text(($1).error_message, $2, 'get_plan_context'),
        'outputMediaType', stepwise.cut_text(($1).metadata ->> 'outputMediaType', $2, 'get_plan_context'),
        'outputFormattingInstructions', stepwise.cut_text(($1).metadata ->> 'outputFormattingInstructions', $2, 'get_plan_context'),
        'startedAt', stepwise.time_text(($1).started_at), 'completedAt', stepwise.time_text(($1).completed_at));
END;
COMMENT ON FUNCTION stepwise.skill_json(stepwise.skill_execution, int) IS 'internal: an execution of a skill as JSON';

CREATE FUNCTION stepwise.depends_on_json(tenant text, step_id uuid, entries int) RETURNS jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT CASE WHEN count(*) = 0 THEN '{}' ELSE jsonb_build_object(
               'dependsOn', coalesce(jsonb_agg(jsonb_build_object('step', x.name)
                                               || CASE WHEN x.ended THEN '{"when": "ended"}' ELSE jsonb_build_object('required', x.required) END
                                               ORDER BY x.step_order) FILTER (WHERE x.n <= $3), '[]'))
               || CASE WHEN count(*) > $3 THEN jsonb_build_object('dependsOnCount', count(*)) ELSE '{}' END END
    FROM (SELECT p.name, p.step_order, d.required, d.ended, row_number() OVER (ORDER BY p.step_order) AS n
          FROM stepwise.dependency AS d
          JOIN stepwise.step AS p ON p.tenant = $1 AND p.id = d.depends_on
          WHERE d.tenant = $1 AND d.step_id = $2) AS x;
END;
COMMENT ON FUNCTION stepwise.depends_on_json(text, uuid, int) IS 'internal: what a step depends on, as members of a step';

CREATE FUNCTION stepwise.plan_context_json(tenant text, plan_id uuid, entries int, cut int) RETURNS SETOF jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH RECURSIVE tree AS (
        SELECT $2 AS id
        UNION ALL
        SELECT n.id FROM tree AS t
        JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = t.id AND s.workflow IS NOT NULL
        JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = s.id),
    counted AS (
        SELECT p.completed + p.skipped + p.failed AS done, p.pending + p.in_progress + p.awaiting_input AS open
        FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2),
    -- the last done, and the next to come
    picked AS (
        (SELECT s.id, s.step_order, s.workflow FROM stepwise.step AS s
         WHERE s.tenant = $1 AND s.plan_id = $2 AND s.status IN ('pending', 'in_progress', 'awaiting_input')
         ORDER BY s.status = 'pending', s.step_order LIMIT (SELECT greatest(($3 + 1) / 2, $3 - c.done) FROM counted AS c))
        UNION ALL
        (SELECT s.id, s.step_order, s.workflow FROM stepwise.step AS s
         WHERE s.tenant = $1 AND s.plan_id = $2 AND s.status IN ('completed', 'skipped', 'failed')
         ORDER BY s.completed_at DESC NULLS LAST, s.step_order DESC LIMIT (SELECT greatest($3 / 2, $3 - c.open) FROM counted AS c))),
    steps AS (
        SELECT coalesce(jsonb_agg(stepwise.step_json($1, x.id, $4) || stepwise.depends_on_json($1, x.id, least($4 / 20, 50))
                                  || coalesce((SELECT jsonb_build_object('nestedPlanId', n.id) FROM stepwise.plan AS n
                                               WHERE n.tenant = $1 AND n.parent_step_id = x.id AND x.workflow IS NOT NULL
                                               ORDER BY n.id DESC LIMIT 1), '{}')
                                  ORDER BY x.step_order), '[]') AS list
        FROM picked AS x),
    checkpoints AS (
        SELECT coalesce(jsonb_agg(stepwise.drop_nulls(jsonb_build_object(
                                      'checkpointId', x.checkpoint_id, 'planId', x.plan_id, 'stepId', x.step_id,
                                      'path', stepwise.cut_json(to_jsonb(x.path), $4, 'get_step_context', 'step_id', x.step_id::text, 'max_bytes'),
                                      'kind', x.kind, 'since', stepwise.time_text(x.since),
                                      'prompt', stepwise.cut_text(x.prompt, $4, 'get_step_context'),
                                      'questions', stepwise.cut_json(x.questions, $4, 'get_step_context', 'step_id', x.step_id::text, 'max_bytes')))
                                  ORDER BY x.n) FILTER (WHERE x.n <= stepwise.beside($3, $4)), '[]') AS list,
               count(*) AS count
        FROM (SELECT c.*, row_number() OVER (ORDER BY c.checkpoint_id) AS n
              FROM stepwise.checkpoints AS c
              WHERE c.tenant = $1 AND c.root_plan_id = (SELECT p.root_id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2)
                AND c.plan_id IN (SELECT t.id FROM tree AS t)) AS x),
    claims AS (
        SELECT coalesce(jsonb_agg(stepwise.drop_nulls(jsonb_build_object(
                                      'stepId', x.step_id, 'planId', x.plan_id, 'name', x.name,
                                      'path', stepwise.cut_json(to_jsonb(x.path), $4, 'get_step_context', 'step_id', x.step_id::text, 'max_bytes'),
                                      'worker', stepwise.cut_text(x.worker, $4, 'get_step_context'), 'attempt', x.attempt,
                                      'since', stepwise.time_text(x.since),
                                      'leaseExpiresAt', stepwise.time_text(x.lease_expires_at),
                                      'activeAt', stepwise.time_text(x.active_at),
                                      'stalled', x.stalled, 'expired', x.expired))
                                  ORDER BY x.n) FILTER (WHERE x.n <= stepwise.beside($3, $4)), '[]') AS list,
               count(*) AS count
        FROM (SELECT c.*, row_number() OVER (ORDER BY c.stalled OR c.expired DESC, c.silent_for DESC, c.step_id) AS n
              FROM stepwise.claims AS c WHERE c.tenant = $1 AND c.plan_id IN (SELECT t.id FROM tree AS t)) AS x),
    artifacts AS (
        SELECT coalesce(jsonb_agg(stepwise.artifact_json($1, x.id, $4) ORDER BY x.n DESC) FILTER (WHERE x.n <= stepwise.beside($3, $4)), '[]') AS list, count(*) AS count
        FROM (SELECT a.id, row_number() OVER (ORDER BY a.id DESC) AS n
              FROM stepwise.artifact AS a WHERE a.tenant = $1 AND a.plan_id IN (SELECT t.id FROM tree AS t)) AS x),
    skill AS (
        SELECT stepwise.drop_nulls(stepwise.skill_json(e, $4)) AS latest
        FROM stepwise.skill_execution AS e WHERE e.tenant = $1 AND e.plan_id = $2 AND $4 > 0 ORDER BY e.id DESC LIMIT 1)
    SELECT stepwise.drop_nulls(jsonb_build_object(
        'planId', p.id, 'rootPlanId', p.root_id, 'parentStepId', p.parent_step_id,
        'name', stepwise.cut_text(p.name, greatest($4, 40), 'get_plan_context'),
        'goal', stepwise.cut_text(p.goal, $4, 'get_plan_context'),
        'status', p.status, 'planStatus', p.status, 'outcome', p.outcome, 'onFailure', p.on_failure,
        'workflow', stepwise.cut_text(p.workflow, $4, 'get_plan_context'), 'version', p.version,
        'description', stepwise.cut_text(d.description, $4, 'get_plan_context'),
        'designRationale', stepwise.cut_text(d.design_rationale, $4, 'get_plan_context'),
        'inputs', stepwise.cut_json(p.inputs, $4, 'get_plan_context', 'plan_id', p.id::text, 'max_bytes'),
        'outputs', stepwise.cut_json(p.outputs, $4, 'get_plan_context', 'plan_id', p.id::text, 'max_bytes'),
        'variables', stepwise.cut_json(coalesce(d.variables, '{}'), $4, 'task_variables', 'plan_id', p.id::text, ''),
        'sessionId', stepwise.cut_text(p.session_id, $4, 'get_plan_context'),
        'message', stepwise.cut_text(p.message, $4, 'get_plan_context'),
        'pauseReason', stepwise.cut_json(p.pause_reason, $4, 'why', 'plan_id', p.id::text, ''),
        'createdAt', stepwise.time_text(p.created_at), 'startedAt', stepwise.time_text(p.started_at),
        'completedAt', stepwise.time_text(p.completed_at), 'updatedAt', stepwise.time_text(p.updated_at),
        'totalSteps', c.done + c.open,
        'progress', round(100.0 * (p.completed + p.skipped) / greatest(c.done + c.open, 1)),
        'steps', (SELECT s.list FROM steps AS s),
        'openClaims', (SELECT x.list FROM claims AS x), 'openClaimCount', (SELECT x.count FROM claims AS x),
        'checkpoints', (SELECT x.list FROM checkpoints AS x), 'checkpointCount', (SELECT x.count FROM checkpoints AS x),
        'artifacts', (SELECT x.list FROM artifacts AS x), 'artifactCount', (SELECT x.count FROM artifacts AS x),
        'skill', (SELECT k.latest FROM skill AS k)))
        || jsonb_build_object(
            'outputFormattingNotes', stepwise.cut_text(d.output_formatting_notes, $4, 'get_plan_context'),
            'finalOutput', CASE WHEN d.final_output IS NOT NULL
                                THEN jsonb_build_object('content', stepwise.cut_text(d.final_output, $4, 'get_output'),
                                                        'mediaType', stepwise.cut_text(d.final_media_type, $4, 'get_output')) END)
    FROM stepwise.plan AS p
    LEFT JOIN stepwise.plan_detail AS d ON d.tenant = $1 AND d.plan_id = $2
    CROSS JOIN counted AS c
    WHERE p.tenant = $1 AND p.id = $2;
END;
COMMENT ON FUNCTION stepwise.plan_context_json(text, uuid, int, int) IS 'internal: what get_plan_context answers';

CREATE FUNCTION stepwise.step_context_json(tenant text, step_id uuid, names text[], bindings text[], entries int, cut int) RETURNS SETOF jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH step AS (
        SELECT s.plan_id, s.step_order, s.status FROM stepwise.step AS s WHERE s.tenant = $1 AND s.id = $2),
    -- the steps before it: those that it depends on, those that it refers to, and in a sequence the last ones
    parents AS (
        SELECT DISTINCT ON (x.id) x.id, x.via, x.required, x.ended, x.rank
        FROM (SELECT d.depends_on AS id, 'dependsOn' AS via, d.required, d.ended, 1 AS rank
              FROM stepwise.dependency AS d WHERE d.tenant = $1 AND d.step_id = $2
              UNION ALL
              SELECT p.id, 'reference', NULL, NULL, 2
              FROM step AS x JOIN stepwise.step AS p ON p.tenant = $1 AND p.plan_id = x.plan_id
              WHERE p.name = ANY ($3) OR p.binding = ANY ($4)
              UNION ALL
              SELECT p.id, 'sequence', NULL, NULL, 3
              FROM step AS x
              JOIN stepwise.plan AS q ON q.tenant = $1 AND q.id = x.plan_id AND q.sequential
              JOIN stepwise.step AS p ON p.tenant = $1 AND p.plan_id = q.id
                   AND p.step_order BETWEEN x.step_order - 20 AND x.step_order - 1) AS x
        ORDER BY x.id, x.rank),
    dependencies AS (
        SELECT coalesce(jsonb_agg(stepwise.step_json($1, x.id, $6) || jsonb_build_object('via', x.via)
                                  || CASE WHEN x.ended THEN '{"when": "ended"}'
                                          WHEN x.required IS NULL THEN '{}'
                                          ELSE jsonb_build_object('required', x.required) END
                                  ORDER BY x.n) FILTER (WHERE x.n <= $5), '[]') AS list,
               count(*) AS count
        FROM (SELECT s.id, p.via, p.required, p.ended, row_number() OVER (ORDER BY p.rank, s.step_order DESC) AS n
              FROM parents AS p JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = p.id) AS x),
    dependents AS (
        SELECT coalesce(jsonb_agg(x.name ORDER BY x.n) FILTER (WHERE x.n <= stepwise.beside($5, $6)), '[]') AS list, count(*) AS count
        FROM (SELECT s.name, row_number() OVER (ORDER BY s.step_order) AS n
              FROM stepwise.dependency AS d JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = d.step_id
              WHERE d.tenant = $1 AND d.depends_on = $2) AS x),
    -- its own artifacts, those of the steps before it, and those of the plan
    artifacts AS (
        SELECT coalesce(jsonb_agg(stepwise.artifact_json($1, x.id, $6) ORDER BY x.n DESC) FILTER (WHERE x.n <= stepwise.beside($5, $6)), '[]') AS list, count(*) AS count
        FROM (SELECT a.id, row_number() OVER (ORDER BY a.id DESC) AS n
              FROM stepwise.artifact AS a
              WHERE a.tenant = $1 AND a.plan_id = (SELECT x.plan_id FROM step AS x)
                AND (a.step_id IS NULL OR a.step_id = $2 OR a.step_id IN (SELECT p.id FROM parents AS p))) AS x)
    SELECT jsonb_build_object(
        'stepId', $2, 'stepStatus', x.status, 'planId', p.id, 'rootPlanId', p.root_id, 'planStatus', p.status,
        'step', stepwise.step_json($1, $2, $6) || stepwise.depends_on_json($1, $2, least($6 / 20, 50))
                || coalesce((SELECT jsonb_build_object('nestedPlanId', n.id) FROM stepwise.plan AS n
                             WHERE n.tenant = $1 AND n.parent_step_id = $2 ORDER BY n.id DESC LIMIT 1), '{}'),
        'plan', stepwise.drop_nulls(jsonb_build_object(
            'planId', p.id, 'rootPlanId', p.root_id, 'name', stepwise.cut_text(p.name, greatest($6, 40), 'get_plan_context'),
            'goal', stepwise.cut_text(p.goal, $6, 'get_plan_context'), 'status', p.status,
            'inputs', stepwise.cut_json(p.inputs, $6, 'get_plan_context', 'plan_id', p.id::text, 'max_bytes'),
            'pauseReason', stepwise.cut_json(p.pause_reason, $6, 'why', 'plan_id', p.id::text, ''), 'onFailure', p.on_failure)),
        'dependencies', (SELECT d.list FROM dependencies AS d), 'dependencyCount', (SELECT d.count FROM dependencies AS d),
        'dependents', (SELECT d.list FROM dependents AS d), 'dependentCount', (SELECT d.count FROM dependents AS d),
        'checkpoint', (SELECT stepwise.drop_nulls(jsonb_build_object(
                           'checkpointId', k.id, 'kind', k.kind, 'since', stepwise.time_text(k.since), 'gate', k.gate,
                           'prompt', stepwise.cut_text(k.prompt, $6, 'get_step_context'),
                           'questions', stepwise.cut_json(k.questions, $6, 'get_step_context', 'step_id', $2::text, 'max_bytes'),
                           'submission', stepwise.cut_json(k.submission, $6, 'get_step_context', 'step_id', $2::text, 'max_bytes')))
                       FROM stepwise.checkpoint AS k WHERE k.tenant = $1 AND k.step_id = $2),
        'artifacts', (SELECT a.list FROM artifacts AS a), 'artifactCount', (SELECT a.count FROM artifacts AS a))
    FROM step AS x
    JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = x.plan_id;
END;
COMMENT ON FUNCTION stepwise.step_context_json(text, uuid, text[], text[], int, int) IS 'internal: what get_step_context answers';
