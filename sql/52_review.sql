-- Reviews, decisions, and answers to prompts.

CREATE FUNCTION stepwise.request_user_review(step_id uuid, summary text, questions jsonb = '[]', result jsonb = NULL,
    attempt int = NULL, worker text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_request_user_review';
COMMENT ON FUNCTION stepwise.request_user_review(uuid, text, jsonb, jsonb, int, text) IS 'make a step wait until a person has reviewed it';

CREATE FUNCTION stepwise.submit_user_decision(checkpoint_id uuid, decision text, feedback text = NULL, answers jsonb = NULL,
    decided_by text = NULL, run_tools boolean = false) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_submit_user_decision';
COMMENT ON FUNCTION stepwise.submit_user_decision(uuid, text, text, jsonb, text, boolean)
IS 'decide a review: approve, reject, modify or skip; and then run what is due, if asked to';

CREATE FUNCTION stepwise.resume(checkpoint_id uuid, response jsonb, run_tools boolean = false, detail boolean = false) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_resume';
COMMENT ON FUNCTION stepwise.resume(uuid, jsonb, boolean, boolean) IS 'answer the prompt of a step, at any depth; and then run what is due, if asked to';
