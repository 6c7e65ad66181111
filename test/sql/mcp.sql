-- mcp(): requests of both generations of the protocol, notifications, batches, and what is malformed.

\set ECHO none
\i test/mcp.sql
\set ECHO all

-- ---------- legacy: initialize ----------

SELECT pg_temp.ask('initialize', '{"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}') #- '{result,instructions}';
-- a version that is known is taken, any other becomes the newest; it is never an error
SELECT v, pg_temp.ask('initialize', jsonb_build_object('protocolVersion', v)) #>> '{result,protocolVersion}'
FROM unnest('{2024-11-05,2025-03-26,2025-06-18,2025-11-25,2026-07-28,1999-01-01,""}'::text[]) AS v;
SELECT pg_temp.ask('initialize', '{}') #>> '{result,protocolVersion}', pg_temp.ask('initialize', '{"protocolVersion": 5}') #>> '{result,protocolVersion}';
-- hosts cut instructions at 2,048 characters
SELECT length(pg_temp.ask('initialize') #>> '{result,instructions}') < 2000;
SELECT pg_temp.ask('ping');
SELECT pg_temp.ask('logging/setLevel', '{"level": "warning"}');
SELECT pg_temp.ask('logging/setLevel', '{"level": "loud"}'), pg_temp.ask('logging/setLevel', '{"level": 1}'), pg_temp.ask('logging/setLevel');

-- ---------- modern: each request says its version ----------

SELECT pg_temp.ask_modern('server/discover') #- '{result,instructions}';
SELECT (pg_temp.ask_modern('server/discover') #> '{result,instructions}') = (pg_temp.ask('initialize') #> '{result,instructions}');
-- methods of the other generation are unknown
SELECT m, pg_temp.ask_modern(m) #>> '{error,code}' FROM unnest('{initialize,ping,logging/setLevel}'::text[]) AS m;
SELECT pg_temp.ask('server/discover');
-- lists may be cached, results of tools may not
SELECT jsonb_object_agg(k, v) FROM jsonb_each(pg_temp.ask_modern('tools/list') -> 'result') AS e (k, v) WHERE k <> 'tools';
SELECT pg_temp.plain(pg_temp.ask_modern('tools/call', '{"name": "current_tenant"}'));
-- unknown versions, and requests that lack something
SELECT pg_temp.ask('tools/list', '{}', '{"io.modelcontextprotocol/protocolVersion": "2026-12-31", "io.modelcontextprotocol/clientCapabilities": {}}');
SELECT pg_temp.ask('tools/list', '{}', '{"io.modelcontextprotocol/protocolVersion": "2025-11-25", "io.modelcontextprotocol/clientCapabilities": {}}') -> 'error';
SELECT pg_temp.ask('tools/list', '{}', '{"io.modelcontextprotocol/protocolVersion": "2026-07-28"}') -> 'error';
SELECT pg_temp.ask('tools/list', '{}', '{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": 1}') -> 'error';
SELECT pg_temp.ask('tools/list', '{}', '{"io.modelcontextprotocol/protocolVersion": 7}') -> 'error';
SELECT pg_temp.ask('tools/list', '{}', '{"io.modelcontextprotocol/protocolVersion": null}') -> 'error';

-- ---------- ids, notifications, responses ----------

-- an id comes back as it was; what is no id is not repeated
SELECT i, stepwise.mcp(jsonb_build_object('jsonrpc', '2.0', 'id', i, 'method', 'ping'))
FROM unnest(ARRAY['1', '"a"', '""', '0', '-7', '123456789012345678901234567890', 'null', '1.5', 'true', '{}', '[1]']::jsonb[]) AS i;
-- a notification has no answer and does nothing, whatever it names
SELECT stepwise.mcp('{"jsonrpc": "2.0", "method": "notifications/initialized"}') IS NULL,
       stepwise.mcp('{"jsonrpc": "2.0", "method": "no/such", "params": 7}') IS NULL,
       stepwise.mcp('{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "create_plan", "arguments": {"name": "mcp silent", "goal": "g", "steps": [{}]}}}') IS NULL;
SELECT count(*) FROM stepwise.plan WHERE name = 'mcp silent';
-- nor has a response
SELECT stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "result": {}}') IS NULL, stepwise.mcp('{"jsonrpc": "2.0", "error": {"code": -32700}}') IS NULL;

-- ---------- what is malformed ----------

SELECT m, stepwise.mcp(m)
FROM unnest(ARRAY['null', '1', '"x"', 'true', '{}', '{"id": 1}', '{"jsonrpc": "2.0", "id": 1}', '{"jsonrpc": "1.0", "id": 1, "method": "ping"}',
    '{"id": 1, "method": "ping"}', '{"jsonrpc": 2.0, "id": 1, "method": "ping"}', '{"jsonrpc": "2.0", "id": 1, "method": 5}',
    '{"jsonrpc": "2.0", "method": null}', '{"method": "ping"}', '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}',
    '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}', '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": 3}}',
    '{"jsonrpc": "2.0", "id": 1, "method": ""}', '{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}',
    '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 3}}',
    '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run", "arguments": [1]}}',
    '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run", "arguments": null}}',
    '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {"stepwise/clientCapabilities": 1}}}']::jsonb[]) AS m;
SELECT stepwise.mcp(NULL);
-- texts of the client are cut in messages
SELECT length(pg_temp.ask(repeat('x', 100000))::text) < 500, length(pg_temp.ask('tools/call', jsonb_build_object('name', repeat('x', 100000)))::text) < 500;

-- ---------- batches: one version has them ----------

\set ping '{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": {"stepwise/version": "2025-03-26"}}}'
SELECT stepwise.mcp('[]'), stepwise.mcp('[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]');
SELECT stepwise.mcp(jsonb_build_array(:'ping'::jsonb, 1, '{"jsonrpc": "2.0", "method": "notifications/x"}'::jsonb, '{"jsonrpc": "2.0", "id": "b", "method": "no"}'::jsonb, '[]'::jsonb));
SELECT stepwise.mcp(jsonb_build_array(:'ping'::jsonb #- '{id}')) IS NULL;
SELECT stepwise.mcp((SELECT jsonb_agg(:'ping'::jsonb) FROM generate_series(1, 101)));

-- ---------- an error does not end the transaction ----------

BEGIN;
SELECT pg_temp.tool('create_plan', '{"name": "mcp kept", "goal": "g", "steps": [{"name": "a"}]}') IS NOT NULL;
SELECT pg_temp.tool('get_next_step', '{"plan_id": "00000000-0000-7000-8000-000000000001"}');
SELECT pg_temp.tool('create_plan', '{"name": "mcp bad", "goal": "g", "steps": [{"name": "a", "tool": 5}]}');
COMMIT;
SELECT name FROM stepwise.plan WHERE name IN ('mcp kept', 'mcp bad');
-- a cancelled query is no error of a tool: it ends the call
CREATE FUNCTION mcp_cancelled(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '57014' USING MESSAGE = 'cancelled'; END $$;
CREATE FUNCTION mcp_serial(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '40001' USING MESSAGE = 'again'; END $$;
SELECT stepwise.register_tool('mcp_cancelled', 'mcp_cancelled(jsonb)', expose => true), stepwise.register_tool('mcp_serial', 'mcp_serial(jsonb)', expose => true) \g /dev/null
\set VERBOSITY terse
SELECT stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "mcp_cancelled"}}');
SELECT stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "mcp_serial"}}');
\set VERBOSITY default
SELECT stepwise.drop_tool('mcp_cancelled'), stepwise.drop_tool('mcp_serial') \g /dev/null
DROP FUNCTION mcp_cancelled(jsonb), mcp_serial(jsonb);

-- ---------- the log of calls ----------

DELETE FROM stepwise.tool_call;
SELECT pg_temp.ask('ping') IS NOT NULL, pg_temp.ask('no/such') IS NOT NULL, pg_temp.ask('tools/list') IS NOT NULL, stepwise.mcp('{}') IS NOT NULL;
SELECT pg_temp.tool('get_plan_status', jsonb_build_object('planId', pg_temp.plan('mcp kept'))) IS NOT NULL, pg_temp.tool('run'), pg_temp.tool('nothing');
SELECT tool, plan_id = pg_temp.plan('mcp kept') AS plan, is_error, duration >= '0' AS took, request_size > 0, answer_size > 0, at <= clock_timestamp() AND at > (SELECT at FROM began)
FROM stepwise.tool_call ORDER BY id;
SET stepwise.log_tool_calls = off;
SELECT pg_temp.tool('get_plan_status', jsonb_build_object('planId', pg_temp.plan('mcp kept'))) IS NOT NULL;
RESET stepwise.log_tool_calls;
SELECT count(*) FROM stepwise.tool_call;
-- nothing is written in a transaction that only reads, and the call is answered
BEGIN READ ONLY;
SELECT pg_temp.answer('get_plan_status', jsonb_build_object('planId', pg_temp.plan('mcp kept'))) ->> 'status', pg_temp.tool('update_step', jsonb_build_object('action', 'skip', 'step_id', pg_temp.step('mcp kept', 'a')));
COMMIT;
SELECT count(*) FROM stepwise.tool_call;
-- purge takes old calls along
CALL stepwise.purge(now() - interval '1 day');
SELECT count(*) FROM stepwise.tool_call;
CALL stepwise.purge(clock_timestamp() + interval '1 second', 2);
SELECT count(*) FROM stepwise.tool_call;
CALL stepwise.purge('infinity');
CALL stepwise.purge('-infinity');
