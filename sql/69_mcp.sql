-- The Model Context Protocol. A server in any language passes messages through.

CREATE FUNCTION stepwise.mcp(request jsonb) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_mcp';
COMMENT ON FUNCTION stepwise.mcp(jsonb) IS 'answer a JSON-RPC message of the Model Context Protocol; null for a notification';
