-- Nested plans: the tree as it stands, as it stood, and tried another way.

CREATE FUNCTION stepwise.execution(plan_id uuid, depth int = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_execution';
COMMENT ON FUNCTION stepwise.execution(uuid, int) IS 'the execution tree of a plan: inputs, outputs, metadata and blocks, recursively';

CREATE FUNCTION stepwise.workflow_response(plan_id uuid, detail boolean = false) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_workflow_response';
COMMENT ON FUNCTION stepwise.workflow_response(uuid, boolean) IS 'how a plan stands, as an answer to who started it: success, failure, paused or running';

CREATE FUNCTION stepwise.fork_plan(plan_id uuid, from_step text) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_fork_plan';
COMMENT ON FUNCTION stepwise.fork_plan(uuid, text) IS 'a new plan with the results of everything before a step, to try another way from there';

CREATE FUNCTION stepwise.execution_as_of(plan_id uuid, at timestamptz) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_execution_as_of';
COMMENT ON FUNCTION stepwise.execution_as_of(uuid, timestamptz) IS 'the execution tree as it was at a time, from the audit chain';
