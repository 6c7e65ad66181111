-- What a session needs to continue a plan or a step.

CREATE FUNCTION stepwise.get_plan_context(plan_id uuid, session_id text = NULL, max_bytes int = 32000) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_plan_context';
COMMENT ON FUNCTION stepwise.get_plan_context(uuid, text, int) IS 'show all that a new session needs to continue a plan, in at most max_bytes';

CREATE FUNCTION stepwise.get_step_context(step_id uuid, max_bytes int = 32000) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_step_context';
COMMENT ON FUNCTION stepwise.get_step_context(uuid, int) IS 'show a step, the results of the steps before it, and their artifacts, in at most max_bytes';

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
