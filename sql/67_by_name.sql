-- Calls by name, for drivers and programs that have JSON and no SQL types.

CREATE FUNCTION stepwise.call(function text, arguments jsonb = '{}', tenant text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_call';
COMMENT ON FUNCTION stepwise.call(text, jsonb, text) IS 'call a function by its name with arguments in JSON, in a tenant that holds for this call only';
