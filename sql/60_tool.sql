-- Tools and resources that run in the database.

CREATE FUNCTION stepwise.register_tool(name text, function regprocedure = NULL, input_schema jsonb = NULL, description text = NULL,
    retryable boolean = false, expose boolean = false) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_register_tool';
COMMENT ON FUNCTION stepwise.register_tool(text, regprocedure, jsonb, text, boolean, boolean)
IS 'register a function (jsonb) returns jsonb as a tool that plans run in the database; without a function, a tool that the client calls';

CREATE FUNCTION stepwise.drop_tool(name text) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_drop_tool';
COMMENT ON FUNCTION stepwise.drop_tool(text) IS 'remove a registered tool; the client then calls tools of this name';

CREATE FUNCTION stepwise.list_tools(after text = NULL, max int = 50) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_list_tools';
COMMENT ON FUNCTION stepwise.list_tools(text, int) IS 'list the registered and the built-in tools by name, page by page';

CREATE FUNCTION stepwise.register_resource(pattern text, function regprocedure) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_register_resource';
COMMENT ON FUNCTION stepwise.register_resource(text, regprocedure)
IS 'register a function (text or jsonb) returns jsonb that reads the resources whose URI matches a pattern; * matches anything';

CREATE FUNCTION stepwise.drop_resource(pattern text) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_drop_resource';
COMMENT ON FUNCTION stepwise.drop_resource(text) IS 'remove a registered resource function';
