-- What to do next, told to a program and to a language model.

CREATE FUNCTION stepwise.why(plan_id uuid) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_why';
COMMENT ON FUNCTION stepwise.why(uuid) IS 'on whom a plan waits, since when and why, and the call that lets it go on';

CREATE FUNCTION stepwise.handoff(plan_id uuid) RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_handoff';
COMMENT ON FUNCTION stepwise.handoff(uuid) IS 'a message for a language model: why a plan stopped, and the numbered calls that continue it';
