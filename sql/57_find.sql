-- Finding plans, and the questions that wait for people.

CREATE FUNCTION stepwise.list_active_plans(status text = NULL, session_id text = NULL, after uuid = NULL, max int = 50) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_list_active_plans';
COMMENT ON FUNCTION stepwise.list_active_plans(text, text, uuid, int) IS 'list unfinished plans, newest first, page by page';

CREATE FUNCTION stepwise.list_plans(status text = NULL, session_id text = NULL, workflow text = NULL, after uuid = NULL, max int = 50) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_list_plans';
COMMENT ON FUNCTION stepwise.list_plans(text, text, text, uuid, int) IS 'list plans, finished ones too, newest first, page by page';

CREATE FUNCTION stepwise.list_checkpoints(after uuid = NULL, max int = 50) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_list_checkpoints';
COMMENT ON FUNCTION stepwise.list_checkpoints(uuid, int) IS 'list the steps that wait for a person, newest first, page by page';

CREATE FUNCTION stepwise.find_plans(query text, max int = 20) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_find_plans';
COMMENT ON FUNCTION stepwise.find_plans(text, int) IS 'find plans by any word of their name, goal, inputs, names of steps or final output; active ones first, best match first';
