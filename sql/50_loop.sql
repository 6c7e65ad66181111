-- The agent's loop.

CREATE FUNCTION stepwise.get_next_step(plan_id uuid, worker text = NULL, lease interval = NULL, session_id text = NULL,
    run_tools boolean = false) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_next_step';
COMMENT ON FUNCTION stepwise.get_next_step(uuid, text, interval, text, boolean) IS 'claim the next step of a plan, or tell why there is none';

CREATE FUNCTION stepwise.submit_step_result(step_id uuid, result jsonb, result_summary text = NULL, confidence double precision = NULL,
    execution_report jsonb = NULL, output_formatting_notes text = NULL, outcome text = 'success', attempt int = NULL,
    worker text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_submit_step_result';
COMMENT ON FUNCTION stepwise.submit_step_result(uuid, jsonb, text, double precision, jsonb, text, text, int, text) IS 'complete a step with its result';

CREATE FUNCTION stepwise.advance(step_id uuid, result jsonb, result_summary text = NULL, confidence double precision = NULL,
    execution_report jsonb = NULL, output_formatting_notes text = NULL, outcome text = 'success', attempt int = NULL,
    worker text = NULL, lease interval = NULL, session_id text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_advance';
COMMENT ON FUNCTION stepwise.advance(uuid, jsonb, text, double precision, jsonb, text, text, int, text, interval, text)
IS 'complete a step and claim the next one of the root plan, in one round trip';

CREATE FUNCTION stepwise.fail_step(step_id uuid, error text, retryable boolean = NULL, attempt int = NULL,
    execution_report jsonb = NULL, code text = NULL, worker text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_fail_step';
COMMENT ON FUNCTION stepwise.fail_step(uuid, text, boolean, int, jsonb, text, text) IS 'report that a step could not be done';

CREATE FUNCTION stepwise.retry_step(step_id uuid) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_retry_step';
COMMENT ON FUNCTION stepwise.retry_step(uuid) IS 'put a failed step back to pending';

CREATE FUNCTION stepwise.skip_step(step_id uuid, reason text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_skip_step';
COMMENT ON FUNCTION stepwise.skip_step(uuid, text) IS 'skip a step';

CREATE FUNCTION stepwise.release_step(step_id uuid, attempt int = NULL, worker text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_release_step';
COMMENT ON FUNCTION stepwise.release_step(uuid, int, text) IS 'give a claimed step back';

CREATE FUNCTION stepwise.heartbeat(step_id uuid, attempt int = NULL, extend interval = NULL, worker text = NULL,
    execution_report jsonb = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_heartbeat';
COMMENT ON FUNCTION stepwise.heartbeat(uuid, int, interval, text, jsonb) IS 'show that a claimed step is being worked on, and extend its lease';

CREATE FUNCTION stepwise.cancel_plan(plan_id uuid, reason text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_cancel_plan';
COMMENT ON FUNCTION stepwise.cancel_plan(uuid, text) IS 'end a plan; its open steps become skipped';

-- Internal: the tenant is an argument. The engine reads its answers from these functions.

CREATE FUNCTION stepwise.oldest_checkpoint(tenant text, plan_id uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH RECURSIVE tree AS (
        SELECT $2 AS id
        UNION ALL
        SELECT x.id FROM tree AS t
        CROSS JOIN LATERAL (
            SELECT n.id
            FROM stepwise.step AS s
            JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = s.id AND n.completed_at IS NULL
            WHERE s.tenant = $1 AND s.plan_id = t.id AND s.status = 'awaiting_input' AND s.workflow IS NOT NULL AND s.pause_reason IS NOT NULL
            OFFSET 0) AS x)     -- plan by plan, however many the planner expects
    SELECT k.step_id
    FROM stepwise.checkpoint AS k
    WHERE k.tenant = $1 AND k.root_id = (SELECT p.root_id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2)
      AND CASE WHEN k.root_id = $2
               -- of a root: all that waits, but for steps that a failed plan has left as they were
               THEN (SELECT o.completed_at IS NULL FROM stepwise.plan AS o WHERE o.tenant = $1 AND o.id = k.plan_id)
               ELSE k.plan_id IN (SELECT t.id FROM tree AS t) END
    ORDER BY k.id LIMIT 1;
END;
COMMENT ON FUNCTION stepwise.oldest_checkpoint(text, uuid) IS 'internal: the step of the oldest open checkpoint in a tree with nested plans';
