-- Results of tools that the client calls.

CREATE FUNCTION stepwise.record_tool_result(plan_id uuid, tool text, result jsonb, is_error boolean = false, step_name text = NULL,
    outcome text = 'success', execution_report jsonb = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_record_tool_result';
COMMENT ON FUNCTION stepwise.record_tool_result(uuid, text, jsonb, boolean, text, text, jsonb)
IS 'give the result of a tool that the client called to the step that waits for it';
