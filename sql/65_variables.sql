-- The variables of a plan.

CREATE FUNCTION stepwise.set_variables(plan_id uuid, variables jsonb) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_set_variables';
COMMENT ON FUNCTION stepwise.set_variables(uuid, jsonb) IS 'merge values into the variables of a plan; null deletes a variable';

CREATE FUNCTION stepwise.task_variables(plan_id uuid) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_task_variables';
COMMENT ON FUNCTION stepwise.task_variables(uuid) IS 'show a plan as flat variables: progress, results, pause reason, and its own variables';
