-- Functions that the tests of MCP share: requests of both generations, and calls of tools.

\i test/agent.sql

-- Send a request of a legacy client.
CREATE FUNCTION pg_temp.ask(method text, params jsonb = '{}', meta jsonb = NULL) RETURNS jsonb LANGUAGE sql AS $$
    SELECT stepwise.mcp(jsonb_build_object('jsonrpc', '2.0', 'id', 1, 'method', method,
        'params', CASE WHEN meta IS NULL THEN params ELSE params || jsonb_build_object('_meta', meta) END))
$$;
-- The same of a modern client.
CREATE FUNCTION pg_temp.ask_modern(method text, params jsonb = '{}', meta jsonb = '{}') RETURNS jsonb LANGUAGE sql AS $$
    SELECT pg_temp.ask(method, params, '{"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}'::jsonb || meta)
$$;

-- Call a tool: the text of its result, after "ERROR" if it is one; or the error of JSON-RPC.
CREATE FUNCTION pg_temp.tool(name text, arguments jsonb = '{}', meta jsonb = '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    response jsonb := stepwise.mcp(jsonb_build_object('jsonrpc', '2.0', 'id', 1, 'method', 'tools/call',
        'params', jsonb_build_object('name', name, 'arguments', arguments, '_meta', meta)));
    text text := response #>> '{result,content,0,text}';
BEGIN
    IF response ? 'error' THEN
        RETURN (response #>> '{error,code}') || ': ' || (response #>> '{error,message}');
    END IF;
    RETURN CASE WHEN (response #> '{result,isError}') = 'true' THEN 'ERROR ' ELSE '' END
        || CASE WHEN left(text, 1) = '{' AND (response -> 'result') ? 'structuredContent' THEN pg_temp.plain(text::jsonb)
                ELSE regexp_replace(text, '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}', 'ID', 'g') END;
END $$;
-- The object that a tool answers.
CREATE FUNCTION pg_temp.answer(name text, arguments jsonb = '{}', meta jsonb = '{}') RETURNS jsonb LANGUAGE sql AS $$
    SELECT stepwise.mcp(jsonb_build_object('jsonrpc', '2.0', 'id', 1, 'method', 'tools/call',
        'params', jsonb_build_object('name', name, 'arguments', arguments, '_meta', meta))) #> '{result,structuredContent}'
$$;
-- The tools that a request lists.
CREATE FUNCTION pg_temp.tools(meta jsonb = '{}') RETURNS SETOF jsonb LANGUAGE sql AS $$
    SELECT jsonb_array_elements(pg_temp.ask('tools/list', '{}', meta) #> '{result,tools}')
$$;
CREATE FUNCTION pg_temp.names(meta jsonb = '{}') RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(t ->> 'name', ' ' ORDER BY n) FROM pg_temp.tools(meta) WITH ORDINALITY AS x (t, n)
$$;
