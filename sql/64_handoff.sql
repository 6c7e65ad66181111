-- What to do next, in a form for programs and in one for language models.

CREATE FUNCTION stepwise.why(plan_id uuid) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_why';
COMMENT ON FUNCTION stepwise.why(uuid) IS 'show whom a plan waits for, since when and why, and the call that continues it';

CREATE FUNCTION stepwise.handoff(plan_id uuid) RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_handoff';
COMMENT ON FUNCTION stepwise.handoff(uuid) IS 'write a message for a language model: why a plan stopped, and the numbered calls that continue it';
