-- What a session needs to continue a plan or a step, and the list of plans.

CREATE FUNCTION stepwise.get_plan_context(plan_id uuid, session_id text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_plan_context';
COMMENT ON FUNCTION stepwise.get_plan_context(uuid, text) IS 'show all that a new session needs to continue a plan';

CREATE FUNCTION stepwise.get_step_context(step_id uuid) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_step_context';
COMMENT ON FUNCTION stepwise.get_step_context(uuid) IS 'show a step, its dependencies with their results, and its artifacts';

CREATE FUNCTION stepwise.list_active_plans(status text = NULL, session_id text = NULL, after uuid = NULL, max int = 50) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_list_active_plans';
COMMENT ON FUNCTION stepwise.list_active_plans(text, text, uuid, int) IS 'list unfinished plans, newest first, page by page';

-- Internal: the tenant is an argument. The values of steps and the contents of artifacts are shown up to a sum of 8 MB, so that
-- an answer stays within what can be stored and read. The newest come first; of open questions to people, the oldest come
-- first. The answer tells what it leaves out, and get_step_context shows that.

CREATE FUNCTION stepwise.step_size(step stepwise.step) RETURNS bigint
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT coalesce(stepwise.json_size(($1).result), 0)::bigint + coalesce(stepwise.json_size(($1).execution_report), 0)
         + coalesce(stepwise.json_size(($1).inputs), 0) + coalesce(stepwise.json_size(($1).arguments), 0)
         + coalesce(stepwise.json_size(($1).resources), 0) + coalesce(stepwise.text_size(($1).condition), 0)
         + coalesce(stepwise.text_size(($1).instructions), 0) + coalesce(stepwise.text_size(($1).prompt), 0)
         + coalesce(stepwise.text_size(($1).message), 0) + coalesce(stepwise.text_size(($1).result_summary), 0)
         + coalesce(stepwise.text_size(($1).output_formatting_notes), 0);
END;
COMMENT ON FUNCTION stepwise.step_size(stepwise.step) IS 'internal: size of what step_json shows of a step';

CREATE FUNCTION stepwise.step_json(step stepwise.step, whole boolean) RETURNS jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT jsonb_build_object(
        'stepId', ($1).id, 'planId', ($1).plan_id, 'stepOrder', ($1).step_order, 'name', ($1).name, 'stepType', ($1).type,
        'status', ($1).status, 'outcome', ($1).outcome, 'tool', ($1).tool, 'workflow', ($1).workflow, 'version', ($1).version,
        'binding', ($1).binding, 'prompt', CASE WHEN $2 THEN ($1).prompt END,
        'instructions', CASE WHEN $2 THEN ($1).instructions END, 'arguments', CASE WHEN $2 THEN ($1).arguments END,
        'inputs', CASE WHEN $2 THEN ($1).inputs END, 'resources', CASE WHEN $2 THEN ($1).resources END,
        'condition', CASE WHEN $2 THEN ($1).condition END, 'attempt', ($1).attempt,
        'maxAttempts', ($1).max_attempts, 'retryable', ($1).retryable, 'worker', ($1).worker,
        'leaseExpiresAt', stepwise.time_text(($1).lease_expires_at), 'stallAfter', stepwise.interval_text(($1).stall_after), 'wave', ($1).wave,
        'executionOrder', ($1).execution_order, 'startedAt', stepwise.time_text(($1).started_at), 'completedAt', stepwise.time_text(($1).completed_at),
        'message', CASE WHEN $2 THEN ($1).message ELSE left(($1).message, 1000) END,
        'pauseReason', ($1).pause_reason, 'confidence', ($1).confidence,
        'resultSummary', CASE WHEN $2 THEN ($1).result_summary ELSE left(($1).result_summary, 1000) END, 'result', CASE WHEN $2 THEN ($1).result END,
        'resultOmitted', NOT $2 AND ($1).result IS NOT NULL,
        'executionReport', CASE WHEN $2 THEN ($1).execution_report END,
        'outputFormattingNotes', CASE WHEN $2 THEN ($1).output_formatting_notes END)
        || CASE WHEN $2 THEN '{}' ELSE '{"detailOmitted": true}'::jsonb END;
END;
COMMENT ON FUNCTION stepwise.step_json(stepwise.step, boolean) IS 'internal: a step as JSON';

CREATE FUNCTION stepwise.artifact_json(artifact stepwise.artifact, show_content boolean) RETURNS jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT jsonb_build_object(
        'artifactId', ($1).id, 'planId', ($1).plan_id, 'stepId', ($1).step_id, 'name', ($1).name, 'mediaType', ($1).media_type,
        'sourceUrl', ($1).source_url, 'createdAt', stepwise.time_text(($1).created_at), 'size', octet_length(($1).content),
        'content', CASE WHEN $2 THEN ($1).content END, 'data', CASE WHEN $2 THEN ($1).data END, 'contentOmitted', NOT $2);
END;
COMMENT ON FUNCTION stepwise.artifact_json(stepwise.artifact, boolean) IS 'internal: an artifact as JSON';

CREATE FUNCTION stepwise.skill_json(execution stepwise.skill_execution) RETURNS jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT jsonb_build_object(
        'executionId', ($1).id, 'skillName', ($1).skill_name, 'status', ($1).status, 'sessionId', ($1).session_id,
        'planId', ($1).plan_id, 'metadata', ($1).metadata, 'errorMessage', ($1).error_message,
        'outputMediaType', ($1).metadata -> 'outputMediaType',
        'outputFormattingInstructions', ($1).metadata -> 'outputFormattingInstructions',
        'startedAt', stepwise.time_text(($1).started_at), 'completedAt', stepwise.time_text(($1).completed_at));
END;
COMMENT ON FUNCTION stepwise.skill_json(stepwise.skill_execution) IS 'internal: an execution of a skill as JSON';

CREATE FUNCTION stepwise.plan_context_json(tenant text, plan_id uuid) RETURNS SETOF jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH RECURSIVE tree AS (
        SELECT $2 AS id
        UNION ALL
        SELECT n.id FROM tree AS t
        JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = t.id AND s.workflow IS NOT NULL
        JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = s.id),
    steps AS (
        SELECT coalesce(jsonb_agg(stepwise.step_json(x.s, coalesce(x.size, 0) <= 8000000)
                                  || jsonb_build_object('dependsOn', (
                                      -- a step may name thousands, and so may each that follows it
                                      SELECT coalesce(jsonb_agg(jsonb_build_object('step', y.name)
                                                                || CASE WHEN y.ended THEN '{"when": "ended"}'
                                                                        ELSE jsonb_build_object('required', y.required) END
                                                                ORDER BY y.step_order), '[]')
                                      FROM (SELECT p.name, p.step_order, d.required, d.ended
                                            FROM stepwise.dependency AS d
                                            JOIN stepwise.step AS p ON p.tenant = $1 AND p.id = d.depends_on
                                            WHERE d.tenant = $1 AND d.step_id = (x.s).id ORDER BY p.step_order LIMIT 50) AS y),
                                  'nestedPlanId', (
                                      SELECT n.id FROM stepwise.plan AS n
                                      WHERE n.tenant = $1 AND n.parent_step_id = (x.s).id AND (x.s).workflow IS NOT NULL
                                      ORDER BY n.id DESC LIMIT 1))
                                  || (SELECT CASE WHEN count(*) > 50 THEN jsonb_build_object('dependsOnCount', count(*)) ELSE '{}' END
                                      FROM stepwise.dependency AS d WHERE d.tenant = $1 AND d.step_id = (x.s).id)
                                  ORDER BY (x.s).step_order), '[]') AS list
        FROM (SELECT s, sum(stepwise.step_size(s)) OVER (ORDER BY s.step_order DESC) AS size
              FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2) AS x),
    checkpoints AS (
        SELECT coalesce(jsonb_agg(jsonb_build_object('checkpointId', x.checkpoint_id, 'planId', x.plan_id, 'stepId', x.step_id,
                                                     'path', x.path, 'kind', x.kind, 'since', stepwise.time_text(x.since),
                                                     'prompt', CASE WHEN x.size <= 8000000 THEN x.prompt ELSE left(x.prompt, 1000) END,
                                                     'questions', CASE WHEN x.size <= 8000000 THEN x.questions END)
                                  || CASE WHEN x.size <= 8000000 THEN '{}' ELSE '{"detailOmitted": true}'::jsonb END
                                  ORDER BY x.checkpoint_id), '[]') AS list
        FROM (SELECT c.*, sum(stepwise.text_size(c.prompt) + stepwise.json_size(c.questions)) OVER (ORDER BY c.checkpoint_id) AS size
              FROM stepwise.checkpoints AS c
              WHERE c.tenant = $1 AND c.root_plan_id = (SELECT p.root_id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2)
                AND c.plan_id IN (SELECT t.id FROM tree AS t)) AS x),
    claims AS (
        SELECT coalesce(jsonb_agg(jsonb_build_object('stepId', x.step_id, 'planId', x.plan_id, 'path', x.path, 'name', x.name,
                                                     'worker', x.worker, 'attempt', x.attempt, 'since', stepwise.time_text(x.since),
                                                     'leaseExpiresAt', stepwise.time_text(x.lease_expires_at),
                                                     'activeAt', stepwise.time_text(x.active_at),
                                                     'stalled', x.stalled, 'expired', x.expired)
                                  ORDER BY x.n) FILTER (WHERE x.n <= 50), '[]') AS list,
               count(*) AS count
        FROM (SELECT c.*, row_number() OVER (ORDER BY c.stalled OR c.expired DESC, c.silent_for DESC, c.step_id) AS n
              FROM stepwise.claims AS c WHERE c.tenant = $1 AND c.plan_id IN (SELECT t.id FROM tree AS t)) AS x),
    artifacts AS (
        SELECT coalesce(jsonb_agg(stepwise.artifact_json(x.a, x.size <= 8000000) ORDER BY (x.a).id), '[]') AS list
        FROM (SELECT a, sum(octet_length(a.content) + coalesce(octet_length(a.data::text), 0)) OVER (ORDER BY a.id DESC) AS size
              FROM stepwise.artifact AS a WHERE a.tenant = $1 AND a.plan_id IN (SELECT t.id FROM tree AS t)) AS x),
    skill AS (
        SELECT stepwise.skill_json(e) AS latest
        FROM stepwise.skill_execution AS e WHERE e.tenant = $1 AND e.plan_id = $2 ORDER BY e.id DESC LIMIT 1)
    SELECT jsonb_build_object(
        'planId', p.id, 'rootPlanId', p.root_id, 'parentStepId', p.parent_step_id, 'name', p.name, 'goal', p.goal,
        'status', p.status, 'planStatus', p.status, 'outcome', p.outcome, 'onFailure', p.on_failure,
        'workflow', p.workflow, 'version', p.version, 'description', d.description, 'designRationale', d.design_rationale,
        'outputFormattingNotes', d.output_formatting_notes, 'inputs', p.inputs, 'outputs', p.outputs, 'variables', d.variables,
        'sessionId', p.session_id, 'message', p.message, 'pauseReason', p.pause_reason,
        'createdAt', stepwise.time_text(p.created_at), 'startedAt', stepwise.time_text(p.started_at), 'completedAt', stepwise.time_text(p.completed_at), 'updatedAt', stepwise.time_text(p.updated_at),
        'totalSteps', jsonb_array_length(steps.list),
        'progress', round(100.0 * (p.completed + p.skipped) / greatest(jsonb_array_length(steps.list), 1)),
        'steps', steps.list,
        'openClaims', (SELECT c.list FROM claims AS c),
        'openClaimCount', (SELECT c.count FROM claims AS c),
        'checkpoints', (SELECT c.list FROM checkpoints AS c),
        'artifacts', (SELECT a.list FROM artifacts AS a),
        'finalOutput', CASE WHEN d.final_output IS NOT NULL
                            THEN jsonb_build_object('content', d.final_output, 'mediaType', d.final_media_type) END,
        'skill', (SELECT k.latest FROM skill AS k))
    FROM stepwise.plan AS p
    JOIN stepwise.plan_detail AS d ON d.tenant = $1 AND d.plan_id = $2
    CROSS JOIN steps
    WHERE p.tenant = $1 AND p.id = $2;
END;
COMMENT ON FUNCTION stepwise.plan_context_json(text, uuid) IS 'internal: what get_plan_context answers';

CREATE FUNCTION stepwise.step_context_json(tenant text, step_id uuid, names text[], bindings text[]) RETURNS SETOF jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH step AS (
        SELECT s FROM stepwise.step AS s WHERE s.tenant = $1 AND s.id = $2),
    -- what it depends on: as it says, by what it refers to, and in a sequence the last steps before it
    parents AS (
        SELECT DISTINCT ON (x.id) x.id, x.via, x.required, x.ended
        FROM (SELECT d.depends_on AS id, 'dependsOn' AS via, d.required, d.ended, 1 AS rank
              FROM stepwise.dependency AS d WHERE d.tenant = $1 AND d.step_id = $2
              UNION ALL
              SELECT p.id, 'reference', NULL, NULL, 2
              FROM step AS x JOIN stepwise.step AS p ON p.tenant = $1 AND p.plan_id = (x.s).plan_id
              WHERE p.name = ANY ($3) OR p.binding = ANY ($4)
              UNION ALL
              SELECT p.id, 'sequence', NULL, NULL, 3
              FROM step AS x
              JOIN stepwise.plan AS q ON q.tenant = $1 AND q.id = (x.s).plan_id AND q.sequential
              JOIN stepwise.step AS p ON p.tenant = $1 AND p.plan_id = q.id
                   AND p.step_order BETWEEN (x.s).step_order - 20 AND (x.s).step_order - 1) AS x
        ORDER BY x.id, x.rank),
    dependencies AS (
        SELECT coalesce(jsonb_agg(stepwise.step_json(x.s, coalesce(x.size, 0) <= 8000000)
                                  || jsonb_build_object('via', x.via)
                                  || CASE WHEN x.ended THEN '{"when": "ended"}'
                                          ELSE jsonb_build_object('required', x.required) END
                                  ORDER BY (x.s).step_order), '[]') AS list
        FROM (SELECT s, p.via, p.required, p.ended, sum(stepwise.step_size(s)) OVER (ORDER BY s.step_order DESC) AS size
              FROM parents AS p JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = p.id) AS x),
    dependents AS (
        SELECT coalesce(jsonb_agg(s.name ORDER BY s.step_order), '[]') AS list
        FROM stepwise.dependency AS d JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = d.step_id
        WHERE d.tenant = $1 AND d.depends_on = $2),
    artifacts AS (
        SELECT coalesce(jsonb_agg(stepwise.artifact_json(x.a, x.size <= 8000000) ORDER BY (x.a).id), '[]') AS list
        FROM (SELECT a, sum(octet_length(a.content) + coalesce(octet_length(a.data::text), 0)) OVER (ORDER BY a.id DESC) AS size
              FROM stepwise.artifact AS a
              WHERE a.tenant = $1 AND a.plan_id = (SELECT (x.s).plan_id FROM step AS x) AND a.step_id = $2) AS x)
    SELECT jsonb_build_object(
        'stepId', $2, 'stepStatus', (x.s).status, 'planId', p.id, 'planStatus', p.status,
        'step', stepwise.step_json(x.s, true) || jsonb_build_object('nestedPlanId', n.id),
        'plan', jsonb_build_object('planId', p.id, 'rootPlanId', p.root_id, 'name', p.name, 'goal', p.goal, 'status', p.status,
                                   'inputs', p.inputs, 'pauseReason', p.pause_reason, 'onFailure', p.on_failure),
        'dependencies', (SELECT d.list FROM dependencies AS d),
        'dependents', (SELECT d.list FROM dependents AS d),
        'checkpoint', (SELECT jsonb_build_object('checkpointId', k.id, 'kind', k.kind, 'prompt', k.prompt,
                                                 'questions', k.questions, 'since', stepwise.time_text(k.since))
                              || CASE WHEN k.gate IS NULL THEN '{}' ELSE jsonb_build_object('gate', k.gate) END
                              || CASE WHEN k.submission IS NULL THEN '{}' ELSE jsonb_build_object('submission', k.submission) END
                       FROM stepwise.checkpoint AS k WHERE k.tenant = $1 AND k.step_id = $2),
        'artifacts', (SELECT a.list FROM artifacts AS a))
    FROM step AS x
    JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = (x.s).plan_id
    LEFT JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = $2
    -- a step that was retried has had several
    ORDER BY n.id DESC NULLS LAST LIMIT 1;
END;
COMMENT ON FUNCTION stepwise.step_context_json(text, uuid, text[], text[]) IS 'internal: what get_step_context answers';

CREATE FUNCTION stepwise.active_plans_json(tenant text, status text, session_id text, after uuid, max int) RETURNS SETOF jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH found AS (
        SELECT p.*, row_number() OVER (ORDER BY p.id DESC) AS n
        FROM stepwise.plan AS p
        WHERE p.tenant = $1 AND p.completed_at IS NULL AND p.parent_step_id IS NULL
          AND ($2 IS NULL OR p.status = $2::stepwise.plan_status) AND ($3 IS NULL OR p.session_id = $3)
          AND p.id < coalesce($4, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
        ORDER BY p.id DESC LIMIT $5 + 1)
    SELECT jsonb_build_object(
        'plans', coalesce(jsonb_agg(jsonb_build_object(
            'planId', f.id, 'name', f.name, 'goal', f.goal, 'status', f.status, 'workflow', f.workflow, 'version', f.version,
            'sessionId', f.session_id, 'progress', round(100.0 * (f.completed + f.skipped)
                / greatest(f.pending + f.in_progress + f.awaiting_input + f.completed + f.failed + f.skipped, 1)),
            'totalSteps', f.pending + f.in_progress + f.awaiting_input + f.completed + f.failed + f.skipped,
            'pauseReason', f.pause_reason, 'createdAt', stepwise.time_text(f.created_at), 'updatedAt', stepwise.time_text(f.updated_at))
            ORDER BY f.id DESC) FILTER (WHERE f.n <= $5), '[]'),
        'next', CASE WHEN count(*) > $5 THEN (array_agg(f.id ORDER BY f.id DESC))[$5] END)
    FROM found AS f;
END;
COMMENT ON FUNCTION stepwise.active_plans_json(text, text, text, uuid, int) IS 'internal: what list_active_plans answers';
