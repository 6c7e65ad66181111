-- Tasks over MCP are plans: both generations, the work after the answer, questions, cancelling.

\set ECHO none
\i test/client.sql
CREATE FUNCTION public.mcp_tasks_tool(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    CASE $1 ->> 'do'
        WHEN 'raise' THEN RAISE 'it is broken' USING DETAIL = 'quite', HINT = 'mend it', ERRCODE = 'P0042';
        WHEN 'fail' THEN RETURN '{"isError": true, "content": [{"type": "text", "text": "no"}]}';
        WHEN 'sleep' THEN PERFORM pg_sleep(0.6); RETURN $1;
        WHEN 'content' THEN RETURN '{"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}]}';
        ELSE RETURN $1;
    END CASE;
END $$;
\set known '''{"extensions": {"io.modelcontextprotocol/tasks": {}}}'''
\set asks '''{"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}'''
\set ECHO all
BEGIN;
SELECT stepwise.enter_tenant('mcp tasks') \g /dev/null
SELECT stepwise.register_tool('exposed', 'public.mcp_tasks_tool(jsonb)', '{"type": "object", "properties": {"do": {"type": "string"}}, "required": ["do"]}', expose => true) ->> 'name';
SELECT t ->> 'name', t -> 'execution' FROM jsonb_array_elements(pg_temp.legacy('tools/list') #> '{result,tools}') AS t WHERE t ? 'execution' ORDER BY 1;
SELECT count(*) FROM jsonb_array_elements(pg_temp.modern('tools/list') #> '{result,tools}') AS t WHERE t ? 'execution';
SELECT pg_temp.legacy('initialize') #> '{result,capabilities,tasks}', pg_temp.modern('server/discover') #> '{result,capabilities,extensions}';

-- 2025-11-25: the client asks for a task; stepwise-mcp does the work
CREATE FUNCTION pg_temp.steps() RETURNS jsonb LANGUAGE sql AS $$ SELECT '[{"name": "a", "tool": "exposed", "arguments": {"do": "x"}}, {"name": "b", "prompt": "Go on?"}, {"name": "c", "tool": "exposed", "arguments": {"do": "y"}}]'::jsonb $$;
CREATE FUNCTION pg_temp.task(plan text) RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('taskId', pg_temp.plan(plan)) $$;
SELECT pg_temp.make('old', pg_temp.steps());
SELECT pg_temp.plain(pg_temp.tool('pg_temp.legacy', 'run', pg_temp.plan_of('old'), more => '{"task": {"ttl": 60000}}'));
SELECT pg_temp.plain(pg_temp.legacy('tasks/get', pg_temp.task('old') || '{"task": {}}'));
SELECT pg_temp.plain(pg_temp.legacy('tasks/result', pg_temp.task('old')));
SELECT pg_temp.legacy('tasks/result', pg_temp.task('old'), pipe => false);
SELECT pg_temp.legacy('stepwise/work', pg_temp.task('old'));
SELECT pg_temp.plain(pg_temp.legacy('tasks/get', pg_temp.task('old')));
SELECT pg_temp.plain(pg_temp.legacy('tasks/result', pg_temp.task('old')));
-- a client that can ask is asked, and stepwise-mcp goes on with the work
SELECT pg_temp.plain(pg_temp.legacy('tasks/result', pg_temp.task('old'), '{"elicitation": {}}') -> 'result');
SELECT pg_temp.plain(pg_temp.legacy('tasks/result', pg_temp.task('old') || jsonb_build_object('inputResponses', jsonb_build_object(pg_temp.waiting('old', 'b')::text,
       '{"action": "accept", "content": {"response": "yes"}}'::jsonb)), '{"elicitation": {}}'));
SELECT pg_temp.legacy('stepwise/work', pg_temp.task('old'));
SELECT pg_temp.plain(pg_temp.legacy('tasks/result', pg_temp.task('old')) -> 'result');
SELECT pg_temp.plain(pg_temp.legacy('tasks/get', pg_temp.task('old')));
SELECT pg_temp.plain(pg_temp.legacy('tasks/cancel', pg_temp.task('old')));
-- without stepwise-mcp the work is done in the call
SELECT pg_temp.make('at once', '[{"tool": "exposed", "arguments": {"do": "x"}}]');
SELECT pg_temp.plain(pg_temp.legacy('tools/call', jsonb_build_object('name', 'run', 'arguments', pg_temp.plan_of('at once'), 'task', '{}'::jsonb), pipe => false));
SELECT pg_temp.legacy('tasks/get', pg_temp.task('at once')) #>> '{result,status}';

-- stepwise-mcp runs in rounds: after some time the request is to come again, with the state that it gets
CREATE FUNCTION pg_temp.again(method text, params jsonb, answer jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT pg_temp.legacy(method, params || jsonb_build_object('_meta', jsonb_build_object('stepwise/again', answer #> '{stepwise,again,state}')))
$$;
SELECT pg_temp.make('rounds', '[{"tool": "exposed", "arguments": {"do": "sleep"}}, {"tool": "exposed", "arguments": {"do": "sleep"}}, {"tool": "exposed", "arguments": {"do": "x"}}]');
SELECT jsonb_build_object('name', 'run', 'arguments', pg_temp.plan_of('rounds')) AS run \gset
SELECT pg_temp.legacy('tools/call', :'run') AS round \gset
SELECT pg_temp.plain(:'round');
SELECT pg_temp.again('tools/call', :'run', :'round') AS round \gset
SELECT pg_temp.plain(:'round');
SELECT pg_temp.plain(pg_temp.again('tools/call', :'run', :'round') #> '{result,structuredContent}');
-- it is one call, and took as long as all of them
SELECT count(*), min(duration) > '1.2 seconds' FROM stepwise.tool_call WHERE plan_id = pg_temp.plan('rounds');
-- so does a task; another server runs without rounds
SELECT pg_temp.make('task rounds', '[{"tool": "exposed", "arguments": {"do": "sleep"}}, {"tool": "exposed", "arguments": {"do": "x"}}]');
SELECT pg_temp.legacy('stepwise/work', pg_temp.task('task rounds')) AS round \gset
SELECT pg_temp.plain(:'round'), pg_temp.legacy('tasks/get', pg_temp.task('task rounds')) #>> '{result,statusMessage}';
SELECT pg_temp.again('stepwise/work', pg_temp.task('task rounds'), :'round'), pg_temp.legacy('tasks/get', pg_temp.task('task rounds')) #>> '{result,status}';
SELECT pg_temp.make('whole', '[{"tool": "exposed", "arguments": {"do": "sleep"}}, {"tool": "exposed", "arguments": {"do": "x"}}]');
SELECT pg_temp.legacy('tools/call', jsonb_build_object('name', 'run', 'arguments', pg_temp.plan_of('whole')), pipe => false) #>> '{result,structuredContent,task_status}';
-- a prompt: the workflow is started once
SELECT stepwise.define_workflow('{"name": "slow", "steps": [{"name": "a", "tool": "exposed", "arguments": {"do": "sleep"}}, {"name": "b", "tool": "exposed", "arguments": {"do": "x"}}]}') ->> 'version';
SELECT pg_temp.modern('prompts/get', '{"name": "slow"}') AS round \gset
SELECT pg_temp.plain(:'round');
SELECT pg_temp.again('prompts/get', '{"name": "slow"}', :'round') #>> '{result,_meta,task_status}', count(*) FROM stepwise.plan WHERE workflow = 'slow';
-- nonsense instead of a state is a first round
SELECT s, pg_temp.legacy('tools/call', :'run'::jsonb || jsonb_build_object('_meta', jsonb_build_object('stepwise/again', s))) #>> '{result,structuredContent,task_status}'
FROM jsonb_array_elements('[1, [], {"done": -5}, {"done": 1e99}, {"done": "x", "since": "never", "plan": 7}, {"since": "2999-01-01T00:00:00Z"}]') AS s;

-- a workflow is started and run; an exposed tool is a plan of one step, and its result is the tool's
SELECT stepwise.define_workflow('{"name": "flow", "steps": [{"name": "a", "tool": "exposed", "arguments": {"do": "x"}}], "outputs": {"is": "${steps.a.outputs.do}"}}') ->> 'version';
SELECT pg_temp.tool('pg_temp.legacy', 'start_workflow', '{"workflow": "flow"}', more => '{"task": {}}') #>> '{result,task,status}';
SELECT pg_temp.legacy('stepwise/work', pg_temp.task('flow')) -> 'result', pg_temp.legacy('tasks/result', pg_temp.task('flow')) #> '{result,structuredContent,outputs}';
CREATE FUNCTION pg_temp.exposed(arguments jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.legacy('tools/call', jsonb_build_object('name', 'exposed', 'arguments', arguments, 'task', '{}'::jsonb), pipe => false);
    RETURN jsonb_build_array(pg_temp.legacy('tasks/get', pg_temp.task('exposed')) #> '{result,status}',
        (pg_temp.legacy('tasks/result', pg_temp.task('exposed')) -> 'result') - '_meta',
        pg_temp.modern('tasks/get', pg_temp.task('exposed'), '{"extensions": {"io.modelcontextprotocol/tasks": {}}}') #> '{result,status}');
END $$;
SELECT pg_temp.exposed('{"do": "${inputs.x} $${y}", "more": {"deep": ["${z}"]}}');
SELECT pg_temp.exposed('{"do": "content"}');
SELECT pg_temp.exposed('{"do": "fail"}');
SELECT pg_temp.exposed('{"do": "raise"}');
-- what cannot be a task
SELECT n, pg_temp.plain(pg_temp.tool('pg_temp.legacy', n, a, more => '{"task": {}}')) FROM (VALUES ('get_plan_status', '{}'::jsonb), ('none', '{}'), ('run', '{}'), ('run', '{"planId": "x"}'),
    ('run', '{"planId": "00000000-0000-7000-8000-000000000001"}'), ('run', pg_temp.plan_of('old', '{"max_steps": 1}')), ('start_workflow', '{}'), ('start_workflow', '{"workflow": "none"}'), ('exposed', '{}')) AS v (n, a);
SELECT pg_temp.tool('pg_temp.legacy', 'run', pg_temp.plan_of('old'), more => '{"task": 1}') -> 'error';
-- a version without tasks takes no notice
SELECT pg_temp.tool('pg_temp.legacy', 'run', pg_temp.plan_of('old'), more => '{"task": {}, "_meta": {"stepwise/version": "2025-06-18"}}') -> 'result' ? 'task';

-- a call that continues a plan is no task of its own
SELECT pg_temp.make('continued', '[{"name": "a", "tool": "exposed", "arguments": {"do": "x"}}]');
SELECT c.answer #> '{result,structuredContent}', c.answer #>> '{result,_meta,stepwise/recorded,stepStatus}', c.answer -> 'error'
FROM (SELECT pg_temp.tool('pg_temp.legacy', 'exposed', '{"do": "x"}', more => jsonb_build_object('task', '{}'::jsonb, '_meta', jsonb_build_object('stepwise/taskId', pg_temp.plan('continued'))))
      UNION ALL SELECT pg_temp.tool('pg_temp.modern', 'exposed', '{"do": "x"}', :known, jsonb_build_object('_meta', jsonb_build_object('stepwise/taskId', pg_temp.plan('continued'))))) AS c (answer);
-- lists and cancelling
SELECT pg_temp.plain(pg_temp.legacy('tasks/list') -> 'result');
SELECT c, pg_temp.legacy('tasks/list', jsonb_build_object('cursor', c)) -> 'error' ->> 'code' FROM jsonb_array_elements('["x", 1]') AS c;
SELECT pg_temp.make('unwanted', pg_temp.steps());
SELECT pg_temp.plain(pg_temp.legacy('tasks/cancel', pg_temp.task('unwanted')));
SELECT status, message FROM stepwise.plan WHERE id = pg_temp.plan('unwanted');
SELECT pg_temp.plain(pg_temp.legacy('tasks/result', pg_temp.task('unwanted')) -> 'result');
SELECT m, p, pg_temp.legacy(m, p) -> 'error' ->> 'code' FROM unnest(ARRAY['tasks/get', 'tasks/result', 'tasks/cancel', 'stepwise/work']) AS m,
       jsonb_array_elements('[{}, {"taskId": 1}, {"taskId": "x"}, {"taskId": "00000000-0000-7000-8000-000000000001"}]') AS p;

-- 2026-07-28: the server makes a task of what it can finish
SELECT pg_temp.make('new', pg_temp.steps());
SELECT pg_temp.tool('pg_temp.modern', 'run', pg_temp.plan_of('new', '{"max_steps": 1}'), :known) #>> '{result,resultType}';
SELECT pg_temp.plain(pg_temp.tool('pg_temp.modern', 'run', pg_temp.plan_of('new'), :known));
SELECT pg_temp.tool('pg_temp.modern', 'run', pg_temp.plan_of('new')) #>> '{result,resultType}';
SELECT pg_temp.plain(pg_temp.modern('tasks/get', pg_temp.task('new'), :known) -> 'result');
SELECT pg_temp.plain(pg_temp.modern('tasks/get', pg_temp.task('new'), :asks) #> '{result,inputRequests}');
SELECT pg_temp.plain(pg_temp.modern('tasks/update', pg_temp.task('new') || jsonb_build_object('inputResponses', jsonb_build_object('x', '{"action": "accept"}'::jsonb,
       pg_temp.waiting('new', 'b')::text, '{"action": "accept", "content": {"response": "yes"}}'::jsonb)), :asks));
SELECT pg_temp.legacy('stepwise/work', pg_temp.task('new')) -> 'result';
SELECT pg_temp.plain(pg_temp.modern('tasks/get', pg_temp.task('new'), :known) -> 'result');
SELECT pg_temp.modern('tasks/cancel', pg_temp.task('new'), :known) -> 'result';
-- what needs its client is no task
SELECT pg_temp.make('with a client', '[{"tool": "exposed", "arguments": {"do": "x"}}, {"name": "mine", "instructions": "Do it"}]');
SELECT pg_temp.tool('pg_temp.modern', 'run', pg_temp.plan_of('with a client'), :known) #>> '{result,structuredContent,pause_reason,type}';
SELECT pg_temp.tool('pg_temp.modern', 'start_workflow', '{"workflow": "flow"}', :known) #>> '{result,resultType}', pg_temp.tool('pg_temp.modern', 'exposed', '{"do": "x"}', :known) #>> '{result,resultType}';
-- a checkpoint of another plan is not decided
SELECT pg_temp.make('other', pg_temp.steps());
SELECT stepwise.run(pg_temp.plan('other')) ->> 'task_status';
SELECT pg_temp.modern('tasks/update', pg_temp.task('with a client') || jsonb_build_object('inputResponses', jsonb_build_object(pg_temp.waiting('other', 'b')::text,
       '{"action": "accept", "content": {"response": "yes"}}'::jsonb)), :asks) -> 'result';
SELECT pg_temp.waiting('other', 'b') IS NOT NULL;
SELECT m, pg_temp.modern(m, pg_temp.task('new')) -> 'error' FROM unnest(ARRAY['tasks/get', 'tasks/update', 'tasks/cancel', 'tasks/list', 'tasks/result']) AS m;
SELECT r, pg_temp.modern('tasks/update', pg_temp.task('other') || r, :asks) -> 'error' FROM jsonb_array_elements('[{}, {"inputResponses": 1}, {"inputResponses": {"x": 1}}]') AS r;
ROLLBACK;
DROP FUNCTION public.mcp_tasks_tool(jsonb);
