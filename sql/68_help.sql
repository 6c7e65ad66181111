-- What an agent needs to know.

CREATE FUNCTION stepwise.help(topic text = NULL) RETURNS text
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_help';
COMMENT ON FUNCTION stepwise.help(text) IS 'explain the extension to an agent; topics: agent (the default), definitions, gates, errors';
