-- Tools and resources: what runs in the database.

CREATE FUNCTION stepwise.register_tool(name text, function regprocedure = NULL, input_schema jsonb = NULL, description text = NULL,
    retryable boolean = false, expose boolean = false) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_register_tool';
COMMENT ON FUNCTION stepwise.register_tool(text, regprocedure, jsonb, text, boolean, boolean)
IS 'make a function (jsonb) returns jsonb a tool that plans run in the database; without a function, a tool of the client';

CREATE FUNCTION stepwise.drop_tool(name text) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_drop_tool';
COMMENT ON FUNCTION stepwise.drop_tool(text) IS 'forget a registered tool; its name is then the client''s';

CREATE FUNCTION stepwise.list_tools() RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_list_tools';
COMMENT ON FUNCTION stepwise.list_tools() IS 'list the registered and the built-in tools';

CREATE FUNCTION stepwise.register_resource(pattern text, function regprocedure) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_register_resource';
COMMENT ON FUNCTION stepwise.register_resource(text, regprocedure)
IS 'let a function (text or jsonb) returns jsonb read the resources whose URI fits a pattern, in which * stands for anything';

CREATE FUNCTION stepwise.drop_resource(pattern text) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_drop_resource';
COMMENT ON FUNCTION stepwise.drop_resource(text) IS 'forget a registered resource function';
