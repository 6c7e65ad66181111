-- Trees of nested plans: their current state, a past state, and forks.

CREATE FUNCTION stepwise.execution(plan_id uuid, depth int = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_execution';
COMMENT ON FUNCTION stepwise.execution(uuid, int) IS 'show the execution tree of a plan: inputs, outputs, metadata and blocks, recursively';

CREATE FUNCTION stepwise.workflow_response(plan_id uuid, detail boolean = false) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_workflow_response';
COMMENT ON FUNCTION stepwise.workflow_response(uuid, boolean) IS 'show the state of a plan as an answer to its caller: success, failure, paused or running';

CREATE FUNCTION stepwise.fork_plan(plan_id uuid, from_step text) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_fork_plan';
COMMENT ON FUNCTION stepwise.fork_plan(uuid, text) IS 'create a plan that keeps the results before a step, to try another way from there';

CREATE FUNCTION stepwise.execution_as_of(plan_id uuid, at timestamptz) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_execution_as_of';
COMMENT ON FUNCTION stepwise.execution_as_of(uuid, timestamptz) IS 'show the execution tree of a plan at a past time, rebuilt from the audit chain';
