-- The built-in tools: named JSON state that outlives plans. Plans can use them without registration.

CREATE FUNCTION stepwise.state_read(arguments jsonb) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_state_read';
COMMENT ON FUNCTION stepwise.state_read(jsonb) IS 'tool: read state {name, default}';

CREATE FUNCTION stepwise.state_write(arguments jsonb) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_state_write';
COMMENT ON FUNCTION stepwise.state_write(jsonb) IS 'tool: write state {name, value}';

CREATE FUNCTION stepwise.state_merge(arguments jsonb) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_state_merge';
COMMENT ON FUNCTION stepwise.state_merge(jsonb) IS 'tool: merge into state {name, value}; objects are merged at every depth';
