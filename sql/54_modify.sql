-- Changing plans while they run.

CREATE FUNCTION stepwise.modify_plan(plan_id uuid, action text, params jsonb, modification_rationale text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_modify_plan';
COMMENT ON FUNCTION stepwise.modify_plan(uuid, text, jsonb, text)
IS 'change a plan that is planning or executing: add_steps, remove_step, reorder_steps, update_step_instructions, update_step, fail_step, set_outputs';
