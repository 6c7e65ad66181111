-- A client of MCP: requests of both generations, and what comes back.

\i test/agent.sql
-- A request of a client of 2025-11-25 behind stepwise-mcp, or behind another server if pipe is false.
CREATE FUNCTION pg_temp.legacy(method text, params jsonb = '{}', can jsonb = '{}', pipe boolean = true) RETURNS jsonb LANGUAGE sql AS $$
    SELECT stepwise.mcp(jsonb_build_object('jsonrpc', '2.0', 'id', 1, 'method', method, 'params', params
        || jsonb_build_object('_meta', jsonb_build_object('stepwise/version', '2025-11-25', 'stepwise/clientCapabilities', can)
           || CASE WHEN pipe THEN '{"stepwise/pipe": true}'::jsonb ELSE '{}' END || coalesce(params -> '_meta', '{}')))) - 'jsonrpc' - 'id'
$$;
-- A request of a client of 2026-07-28.
CREATE FUNCTION pg_temp.modern(method text, params jsonb = '{}', can jsonb = '{}', pipe boolean = true) RETURNS jsonb LANGUAGE sql AS $$
    SELECT stepwise.mcp(jsonb_build_object('jsonrpc', '2.0', 'id', 'm', 'method', method, 'params', params
        || jsonb_build_object('_meta', jsonb_build_object('io.modelcontextprotocol/protocolVersion', '2026-07-28',
               'io.modelcontextprotocol/clientCapabilities', can)
           || CASE WHEN pipe THEN '{"stepwise/pipe": true}'::jsonb ELSE '{}' END || coalesce(params -> '_meta', '{}')))) - 'jsonrpc' - 'id'
        #- '{result,_meta,io.modelcontextprotocol/serverInfo}'
$$;
-- The call of a tool, by either of them.
CREATE FUNCTION pg_temp.tool(client regproc, tool text, arguments jsonb = '{}', can jsonb = '{}', more jsonb = '{}') RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    EXECUTE format('SELECT %s($1, $2, $3)', client) INTO answer
    USING 'tools/call', jsonb_build_object('name', tool, 'arguments', arguments) || more, can;
    RETURN answer;
END $$;
-- Something done as another role.
CREATE FUNCTION pg_temp.as_role(role text, expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    EXECUTE 'SELECT (' || expression || ')::text' INTO answer;
    RESET ROLE;
    RETURN answer;
END $$;
CREATE FUNCTION pg_temp.plan_of(plan text, more jsonb = '{}') RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('plan_id', pg_temp.plan(plan)) || more
$$;
