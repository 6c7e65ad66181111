-- Resources over MCP: plans, artifacts, templates, completion of their URIs, subscriptions.

\set ECHO none
\i test/client.sql
CREATE FUNCTION public.mcp_resources_tool(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
\set known '''{"extensions": {"io.modelcontextprotocol/tasks": {}}}'''
\set ECHO all

BEGIN;
SELECT stepwise.enter_tenant('mcp resources') \g /dev/null
-- nothing is there yet
SELECT pg_temp.legacy('resources/list');
SELECT pg_temp.modern('resources/list');
SELECT jsonb_pretty(pg_temp.legacy('resources/templates/list') -> 'result');

-- a plan and its documents
SELECT pg_temp.make('a report', '[{"name": "draft", "instructions": "Write it"}, {"name": "check", "prompt": "Is it good?"}]');
SELECT pg_temp.next('a report');
SELECT stepwise.submit_step_result(pg_temp.step('a report', 'draft'), '{"words": 12}', 'a short draft') ->> 'stepStatus';
SELECT pg_temp.next('a report');
SELECT stepwise.store_artifact(pg_temp.plan('a report'), 'first draft/ä', 'Once upon a time', media_type => 'text/markdown') ->> 'name';
SELECT stepwise.store_artifact(pg_temp.plan('a report'), 'plain', 'old') ->> 'name';
SELECT stepwise.store_artifact(pg_temp.plan('a report'), 'plain', 'new') ->> 'name';
SELECT stepwise.store_output(pg_temp.plan('a report'), '# The report') ->> 'planStatus';
SELECT pg_temp.plain(pg_temp.legacy('resources/list'));

CREATE FUNCTION pg_temp.uri(rest text = '', plan text = 'a report') RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('uri', 'stepwise://plan/' || pg_temp.plan(plan) || rest)
$$;
-- JSON, and the same as Markdown
SELECT c ->> 'mimeType', pg_temp.plain(c -> 'uri') FROM jsonb_array_elements(pg_temp.legacy('resources/read', pg_temp.uri()) #> '{result,contents}') AS c;
SELECT (pg_temp.legacy('resources/read', pg_temp.uri()) #>> '{result,contents,0,text}')::jsonb #>> '{steps,0,name}';
SELECT regexp_replace(pg_temp.legacy('resources/read', pg_temp.uri('/markdown')) #>> '{result,contents,0,text}', '[0-9a-f-]{36}', 'ID', 'g');
SELECT pg_temp.plain(pg_temp.modern('resources/read', pg_temp.uri('/artifact/first%20draft%2F%C3%A4')));
SELECT pg_temp.legacy('resources/read', pg_temp.uri('/artifact/plain')) #>> '{result,contents,0,text}';
SELECT pg_temp.legacy('resources/read', pg_temp.uri('/output')) #>> '{result,contents,0,text}';

-- what is not there
SELECT pg_temp.plain(pg_temp.legacy('resources/read', pg_temp.uri('/artifact/none')));
SELECT pg_temp.plain(pg_temp.modern('resources/read', pg_temp.uri('/artifact/none')));
SELECT u, pg_temp.legacy('resources/read', jsonb_build_object('uri', u)) -> 'error' ->> 'code'
FROM unnest(ARRAY['', 'x', 'stepwise://', 'stepwise://plan/', 'stepwise://plan/00000000-0000-7000-8000-000000000001',
                  'stepwise://plan/00000000-0000-7000-8000-00000000000', 'stepwise://plan/zzzzzzzz-0000-7000-8000-000000000001',
                  'stepwise://plan/00000000-0000-7000-8000-000000000001/', 'file:///etc/passwd']) AS u;
SELECT s, pg_temp.legacy('resources/read', pg_temp.uri(s)) -> 'error' ->> 'code'
FROM unnest(ARRAY['/', '/artifact', '/artifact/', '/artifact/%', '/artifact/%0', '/artifact/%zz', '/artifact/%00', '/artifact/%ff', '/markdown/', 'x']) AS s;
SELECT pg_temp.legacy('resources/read', '{"uri": 1}');
SELECT pg_temp.legacy('resources/read');

-- pages
SELECT count(stepwise.create_plan('plan ' || i, 'test', '[{"instructions": "x"}]')) FROM generate_series(1, 25) AS i;
SELECT jsonb_array_length(pg_temp.legacy('resources/list') #> '{result,resources}');
SELECT jsonb_array_length(pg_temp.legacy('resources/list', jsonb_build_object('cursor', pg_temp.legacy('resources/list') #>> '{result,nextCursor}')) #> '{result,resources}');
SELECT pg_temp.legacy('resources/list', '{"cursor": ""}') #>> '{result,resources,0,name}';
SELECT c, pg_temp.legacy('resources/list', jsonb_build_object('cursor', c)) -> 'error' ->> 'code' FROM jsonb_array_elements('["x", 1, null, {}, "12"]') AS c;

-- completion of the templates
CREATE FUNCTION pg_temp.complete(argument text, value text, context jsonb = '{}', template text = 'stepwise://plan/{planId}/artifact/{name}') RETURNS jsonb LANGUAGE sql AS $$
    SELECT pg_temp.legacy('completion/complete', jsonb_build_object('ref', jsonb_build_object('type', 'ref/resource', 'uri', template),
        'argument', jsonb_build_object('name', argument, 'value', value), 'context', context)) 
$$;
SELECT (pg_temp.complete('planId', '') #>> '{result,completion,total}')::int, pg_temp.complete('planId', 'zz');
SELECT pg_temp.complete('planId', left(pg_temp.plan('a report')::text, 36)) #>> '{result,completion,total}';
SELECT pg_temp.complete('name', 'P', jsonb_build_object('arguments', jsonb_build_object('planId', pg_temp.plan('a report'))));
SELECT pg_temp.complete('name', 'P', '{"arguments": {"planId": "x"}}'), pg_temp.complete('name', ''), pg_temp.complete('other', '');
SELECT pg_temp.complete('planId', '', template => 'stepwise://{x}') -> 'error' ->> 'code';

-- subscriptions of a client of 2025-11-25: stepwise-mcp keeps the state
SELECT pg_temp.plain(pg_temp.legacy('resources/subscribe', pg_temp.uri()));
SELECT pg_temp.plain(pg_temp.legacy('resources/subscribe', pg_temp.uri('/artifact/plain'), pipe => false));
SELECT pg_temp.plain(pg_temp.legacy('resources/subscribe', '{"uri": "stepwise://plan/00000000-0000-7000-8000-000000000001"}'));
SELECT pg_temp.plain(pg_temp.modern('resources/subscribe', pg_temp.uri()));
CREATE TEMP TABLE subscription AS SELECT pg_temp.legacy('resources/subscribe', pg_temp.uri()) #> '{stepwise,listen,state}' AS state;
SELECT pg_temp.legacy('stepwise/changes', jsonb_build_object('state', state)) #> '{result,messages}' FROM subscription;
SELECT stepwise.store_artifact(pg_temp.plan('a report'), 'another', 'text') ->> 'name';
SELECT pg_temp.plain(pg_temp.legacy('stepwise/changes', jsonb_build_object('state', state)) #> '{result,messages}') FROM subscription;
UPDATE subscription SET state = pg_temp.legacy('stepwise/changes', jsonb_build_object('state', state)) #> '{result,state}';
SELECT pg_temp.legacy('stepwise/changes', jsonb_build_object('state', state)) #> '{result,messages}' FROM subscription;
SELECT pg_temp.legacy('resources/unsubscribe', pg_temp.uri());
SELECT s, pg_temp.legacy('stepwise/changes', jsonb_build_object('state', s)) FROM jsonb_array_elements('[1, {}, {"uris": 1, "tasks": [], "lists": {"x": 1}}, {"uris": {"x": {}}, "tasks": {"y": 1}, "capabilities": 1}]') AS s;
SELECT pg_temp.legacy('stepwise/changes') -> 'error' ->> 'code';

-- to read a resource changes nothing, not even that a plan is stalled
SELECT pg_temp.make('stalled', '[{"name": "a", "stallAfter": "1 microsecond"}]'), pg_temp.next('stalled');
SELECT pg_temp.legacy('resources/read', jsonb_build_object('uri', 'stepwise://plan/' || pg_temp.plan('stalled') || e)) #>> '{result,contents,0,mimeType}' FROM unnest('{"",/markdown}'::text[]) AS e;
SELECT status, (SELECT count(*) FROM stepwise.audit AS a WHERE a.plan_id = p.id) FROM stepwise.plan AS p WHERE p.id = pg_temp.plan('stalled');

-- of a client of 2026-07-28: several things in one stream
SELECT pg_temp.plain(pg_temp.modern('subscriptions/listen', jsonb_build_object('notifications', jsonb_build_object('toolsListChanged', true,
    'promptsListChanged', true, 'resourcesListChanged', true, 'resourceSubscriptions', ARRAY[pg_temp.uri() ->> 'uri'], 'taskIds', ARRAY[pg_temp.plan('a report')])), :known));
CREATE TEMP TABLE stream AS SELECT pg_temp.modern('subscriptions/listen', jsonb_build_object('notifications', jsonb_build_object('toolsListChanged', true,
    'promptsListChanged', true, 'resourcesListChanged', true, 'resourceSubscriptions', ARRAY[pg_temp.uri() ->> 'uri'], 'taskIds', ARRAY[pg_temp.plan('a report')])), :known)
    #> '{stepwise,listen,state}' AS state;
SELECT pg_temp.legacy('stepwise/changes', jsonb_build_object('state', state)) #> '{result,messages}' FROM stream;
SELECT stepwise.define_workflow('{"name": "streamed", "steps": [{"instructions": "x"}]}') ->> 'created';
SELECT stepwise.register_tool('streamed', 'public.mcp_resources_tool(jsonb)', expose => true) ->> 'name';
SELECT stepwise.resume(pg_temp.waiting('a report', 'check'), '"yes"') ->> 'status';
SELECT pg_temp.make('newest', '[{"instructions": "x"}]');
SELECT pg_temp.plain(m #- '{params,result}') FROM stream, jsonb_array_elements(pg_temp.legacy('stepwise/changes', jsonb_build_object('state', state)) #> '{result,messages}') AS m;
SELECT n, pg_temp.modern('subscriptions/listen', jsonb_build_object('notifications', n)) -> 'error' ->> 'code'
FROM jsonb_array_elements('[1, {"taskIds": 1}, {"taskIds": [1]}, {"resourceSubscriptions": {}}, {"toolsListChanged": 1}, {"taskIds": []}]') AS n;
-- tasks are for clients that have declared that they know them
SELECT pg_temp.modern('subscriptions/listen', jsonb_build_object('notifications', jsonb_build_object('taskIds', ARRAY[pg_temp.plan('a report')]))) -> 'error';
SELECT pg_temp.modern('subscriptions/listen') -> 'error' ->> 'code', pg_temp.legacy('subscriptions/listen') -> 'error' ->> 'code';
ROLLBACK;

-- how the lists of tools and prompts stand is seen when a transaction has ended
CREATE FUNCTION pg_temp.lists(before jsonb = NULL) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stepwise.enter_tenant('mcp lists changed');
    IF before IS NULL THEN
        RETURN pg_temp.modern('subscriptions/listen', '{"notifications": {"toolsListChanged": true, "promptsListChanged": true}}') #> '{stepwise,listen,state}';
    END IF;
    RETURN (SELECT jsonb_build_object('state', r -> 'state', 'changed', jsonb_path_query_array(r, '$.messages[*].method'))
            FROM (SELECT pg_temp.legacy('stepwise/changes', jsonb_build_object('state', before)) -> 'result') AS a (r));
END $$;
SELECT pg_temp.lists() AS state \gset
SELECT pg_temp.lists(:'state') -> 'changed';
SELECT (stepwise.call('define_workflow', '{"definition": {"name": "listed", "steps": [{"instructions": "x"}]}}', 'mcp lists changed')) ->> 'created';
SELECT pg_temp.lists(:'state') -> 'changed';
BEGIN;
SELECT stepwise.enter_tenant('mcp lists changed') \g /dev/null
SELECT stepwise.register_tool('listed', 'public.mcp_resources_tool(jsonb)', expose => true) ->> 'name';
COMMIT;
SELECT pg_temp.lists(:'state') -> 'state' AS state \gset
SELECT pg_temp.lists(:'state') -> 'changed';
-- other entries of the audit log are no change of a list
SELECT stepwise.call('state_write', '{"arguments": {"name": "x", "value": 1}}', 'mcp lists changed');
SELECT pg_temp.lists(:'state') -> 'changed';
DROP FUNCTION public.mcp_resources_tool(jsonb);
