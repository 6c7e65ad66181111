-- Prompts over MCP are workflows: their list, what starting one answers, completion of their arguments.

\set ECHO none
\i test/client.sql
CREATE FUNCTION public.mcp_prompts_double(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF ($1 ->> 'n')::int > 100 THEN
        RAISE 'too large';
    END IF;
    RETURN jsonb_build_object('doubled', ($1 ->> 'n')::int * 2, 'loud', $1 -> 'loud');
END $$;
\set ECHO all
BEGIN;
SELECT stepwise.enter_tenant('mcp prompts') \g /dev/null
SELECT pg_temp.legacy('prompts/list'), pg_temp.modern('prompts/list');
SELECT stepwise.register_tool('double', 'public.mcp_prompts_double(jsonb)') ->> 'name';
SELECT stepwise.define_workflow('{"name": "doubling", "description": "Double a number",
  "inputs": {"n": {"type": "integer", "description": "the number"}, "loud": {"type": "boolean", "default": false}, "note": {"type": "string", "required": false},
             "tags": {"type": "array", "default": ["a"]}},
  "steps": [{"name": "double", "tool": "double", "arguments": {"n": "${inputs.n}", "loud": "${inputs.loud}"}},
            {"name": "look", "prompt": "Is ${steps.double.outputs.doubled} right?"}, {"name": "tell", "instructions": "Tell it"}],
  "outputs": {"is": "${steps.double.outputs.doubled}"}}') ->> 'version';
SELECT stepwise.define_workflow('{"name": "bare", "steps": [{"name": "twice", "tool": "double", "arguments": {"n": 4}}]}') ->> 'version';
SELECT jsonb_pretty(pg_temp.legacy('prompts/list') -> 'result');
SELECT pg_temp.modern('prompts/list') -> 'result' -> 'ttlMs', pg_temp.legacy('prompts/list', '{"cursor": "x"}') -> 'error' ->> 'code';

-- arguments are strings; the answer is the conversation, the handoff and _meta
CREATE FUNCTION pg_temp.get(arguments jsonb, name text = 'doubling', can jsonb = '{}', more jsonb = '{}', client text = 'modern') RETURNS jsonb LANGUAGE sql AS $$
    SELECT CASE client WHEN 'modern' THEN pg_temp.modern('prompts/get', jsonb_build_object('name', name, 'arguments', arguments) || more, can)
                       ELSE pg_temp.legacy('prompts/get', jsonb_build_object('name', name, 'arguments', arguments) || more, can) END
$$;
SELECT pg_temp.plain(jsonb_pretty(pg_temp.get('{"n": "21", "loud": "true", "tags": "[\"x\"]"}', client => 'legacy') -> 'result')::jsonb);
SELECT m #>> '{content,text}' FROM jsonb_array_elements(pg_temp.get('{}', 'bare') #> '{result,messages}') AS m LIMIT 1;
SELECT jsonb_object_keys(pg_temp.get('{}', 'bare') #> '{result,_meta}') AS key ORDER BY key;
SELECT pg_temp.get('{"n": "200"}') #>> '{result,_meta,pause_reason,type}';

-- nonsense
SELECT a, pg_temp.get(a) -> 'error' FROM jsonb_array_elements('[{}, {"n": "x"}, {"n": "1.5"}, {"n": "\"1\""}, {"n": "1", "m": "2"}, {"n": null}, {"n": ""}, {"n": "1", "loud": "yes"}, 1, [1], "x"]') AS a;
SELECT n, pg_temp.legacy('prompts/get', jsonb_build_object('name', n)) -> 'error' ->> 'code' FROM jsonb_array_elements('["none", "", 1, null, "bare"]') AS n;
SELECT count(*) FROM stepwise.plan WHERE tenant = 'mcp prompts';

-- a client that can ask is asked at once, and goes on with what the person says
CREATE TEMP TABLE asked AS SELECT pg_temp.get('{"n": "5"}', can => '{"elicitation": {}}') -> 'result' AS result;
SELECT pg_temp.plain(result) FROM asked;
SELECT pg_temp.plain(pg_temp.get('{"n": "5"}', can => '{"elicitation": {}}', more => jsonb_build_object('requestState', result -> 'requestState', 'inputResponses',
       jsonb_build_object(pg_temp.waiting('doubling', 'look')::text, '{"action": "decline"}'::jsonb))) #> '{result,_meta}') FROM asked;
SELECT pg_temp.plain(pg_temp.get('{"n": "5"}', can => '{"elicitation": {}}', more => jsonb_build_object('requestState', result -> 'requestState', 'inputResponses',
       jsonb_build_object(pg_temp.waiting('doubling', 'look')::text, '{"action": "accept", "content": {"response": "yes"}}'::jsonb))) #> '{result,_meta}') FROM asked;
SELECT result FROM stepwise.step WHERE id = pg_temp.step('doubling', 'look');
SELECT pg_temp.get('{"n": "5"}', more => '{"requestState": "x", "inputResponses": {}}') -> 'error' ->> 'code',
       pg_temp.get('{"n": "5"}', more => '{"requestState": "00000000-0000-7000-8000-000000000001", "inputResponses": {}}') -> 'error' ->> 'code';

-- completion: values of earlier plans, the default, true and false
CREATE FUNCTION pg_temp.complete(argument jsonb, ref jsonb = '{"type": "ref/prompt", "name": "doubling"}') RETURNS jsonb LANGUAGE sql AS $$
    SELECT coalesce(a -> 'result' -> 'completion', a #> '{error,code}') FROM pg_temp.legacy('completion/complete', jsonb_build_object('ref', ref, 'argument', argument)) AS a
$$;
SELECT pg_temp.complete('{"name": "n", "value": ""}'), pg_temp.complete('{"name": "n", "value": "2"}'), pg_temp.complete('{"name": "loud", "value": "T"}');
SELECT pg_temp.complete('{"name": "tags", "value": ""}'), pg_temp.complete('{"name": "none", "value": ""}'), pg_temp.complete('{"name": "note", "value": "%"}');
SELECT count(stepwise.start_workflow('doubling', jsonb_build_object('n', 1000 + i))) FROM generate_series(1, 120) AS i;
SELECT jsonb_array_length(c -> 'values'), c - 'values' FROM pg_temp.complete('{"name": "n", "value": "1"}') AS c;
SELECT a, pg_temp.complete(a) FROM jsonb_array_elements('[{}, 1, {"name": "n"}, {"name": 1, "value": ""}, {"name": "n", "value": 1}]') AS a;
SELECT r, pg_temp.complete('{"name": "n", "value": ""}', r) FROM jsonb_array_elements('[{}, 1, {"type": "ref/prompt"}, {"type": "ref/prompt", "name": "none"}, {"type": "ref/x", "name": "doubling"}, {"type": "ref/resource"}]') AS r;

-- who may not start workflows has no prompts; neither has a connection that only reads
CREATE ROLE mcp_prompts_reader;
SELECT stepwise.grant_reader('mcp_prompts_reader') \g /dev/null
SELECT stepwise.add_member('mcp_prompts_reader', 'mcp prompts') \g /dev/null
SELECT pg_temp.legacy('prompts/list', '{"_meta": {"stepwise/readOnly": true}}') -> 'result', pg_temp.legacy('prompts/get', '{"name": "bare", "_meta": {"stepwise/readOnly": true}}') -> 'error' ->> 'code';
SET LOCAL ROLE mcp_prompts_reader;
SELECT stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "prompts/list"}');
SELECT stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {"name": "bare"}}');
RESET ROLE;
ROLLBACK;
DROP FUNCTION public.mcp_prompts_double(jsonb);
