-- Executions of an agent's skills.

CREATE FUNCTION stepwise.log_skill_execution(skill_name text, status text, session_id text = NULL, plan_id uuid = NULL,
    metadata jsonb = '{}', error_message text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_log_skill_execution';
COMMENT ON FUNCTION stepwise.log_skill_execution(text, text, text, uuid, jsonb, text)
IS 'record the state of an execution of a skill: started, executing, completed or failed';
