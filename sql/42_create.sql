-- Creating plans.

CREATE FUNCTION stepwise.create_plan(name text, goal text, steps jsonb, branching_conditions jsonb = '[]', inputs jsonb = '{}',
    outputs jsonb = '{}', on_failure text = NULL, session_id text = NULL, design_rationale text = NULL,
    output_formatting_notes text = NULL, stall_after interval = NULL, idempotency_key text = NULL,
    separate_reviewer boolean = false, strict_order boolean = false) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_create_plan';
COMMENT ON FUNCTION stepwise.create_plan(text, text, jsonb, jsonb, jsonb, jsonb, text, text, text, text, interval, text, boolean, boolean)
IS 'create a plan from the given steps';

CREATE FUNCTION stepwise.start_workflow(workflow text, inputs jsonb = '{}', version int = NULL, session_id text = NULL,
    idempotency_key text = NULL, goal text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_start_workflow';
COMMENT ON FUNCTION stepwise.start_workflow(text, jsonb, int, text, text, text) IS 'create a plan from a workflow';
