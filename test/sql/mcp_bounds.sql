-- What a model reads over MCP is bounded, however large a plan is. Every tool, view, resource and prompt is asked about a plan of 2,000
-- steps: no list has more than 20 entries and no text more than 25,000 characters, unless more was asked for. What the lists of
-- tools and resources name, and this test does not ask, fails it.

\set ECHO none
\pset format unaligned
\pset tuples_only on
\set VERBOSITY terse
SET client_min_messages = warning;
SET jit = off;
\i test/client.sql
CREATE FUNCTION public.mcp_bounds_tool(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT jsonb_build_object(''text'', repeat(''t'', 3000))';
-- every answer: what was asked, and its result
CREATE TEMP TABLE asked (kind text, what text, said text DEFAULT '', result jsonb);
CREATE TEMP TABLE given (plan uuid, run uuid, step uuid);
-- The length of the longest list in a result. The blocks of an execution are a list, too.
CREATE FUNCTION pg_temp.longest(value jsonb, key text = NULL) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE jsonb_typeof(value)
        WHEN 'array' THEN (SELECT greatest(count(*), max(pg_temp.longest(e))) FROM jsonb_array_elements(value) AS e)
        WHEN 'object' THEN (SELECT greatest(count(*) FILTER (WHERE $2 = 'blocks'), max(pg_temp.longest(e.value, e.key))) FROM jsonb_each(value) AS e)
        ELSE 0 END;
END $$;
-- The characters of a result: those of a tool as they are sent, of others the texts of the messages, the longer one of the contents, or the form.
CREATE FUNCTION pg_temp.characters(result jsonb) RETURNS int LANGUAGE sql AS $$
    SELECT CASE WHEN result ? 'content' THEN length(result::text) ELSE coalesce(sum(length(x #>> '{}')), 0) END FROM (
        SELECT jsonb_path_query(result, '$.messages[*].content.text') UNION ALL
        SELECT to_jsonb((SELECT c ->> 'text' FROM jsonb_path_query(result, '$.contents[*]') AS c ORDER BY length(c ->> 'text') DESC LIMIT 1)) UNION ALL
        SELECT jsonb_path_query(result, '$.inputRequests') UNION ALL
        SELECT jsonb_path_query(result, '$.message')) AS t (x)
$$;
-- The answer of a tool. Where it does not fit twice, it is only text.
CREATE FUNCTION pg_temp.answer(result jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT coalesce(result -> 'structuredContent', CASE WHEN result #>> '{content,0,text}' LIKE '{%' THEN (result #>> '{content,0,text}')::jsonb END, result)
$$;
-- Call a tool, and keep its result. "said" is the word of an enum that the call gives.
CREATE FUNCTION pg_temp.ask(tool text, arguments jsonb = '{}', said text = '', more jsonb = '{}', can jsonb = '{}') RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb := pg_temp.modern('tools/call', jsonb_build_object('name', tool, 'arguments', arguments, '_meta', more), can);
BEGIN
    INSERT INTO asked VALUES (CASE WHEN more ->> 'stepwise/tools' = 'all' THEN 'all' ELSE 'tool' END, tool, said, coalesce(answer -> 'result', answer -> 'error'));
    RETURN coalesce(pg_temp.answer(answer -> 'result'), answer);
END $$;
-- Ask by another method.
CREATE FUNCTION pg_temp.ask_by(method text, params jsonb, what text, client regproc = 'pg_temp.modern') RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    EXECUTE format('SELECT %s($1, $2, $3)', client) INTO answer
    USING method, params, '{"extensions": {"io.modelcontextprotocol/tasks": {}}}'::jsonb;
    INSERT INTO asked VALUES (method, what, '', coalesce(answer -> 'result', answer -> 'error'));
    RETURN coalesce(answer -> 'result', answer);
END $$;
CREATE FUNCTION pg_temp.step(n int) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM stepwise.step AS s, given AS g WHERE s.plan_id = g.plan AND s.step_order = n
$$;
\set ECHO all
BEGIN;
SELECT stepwise.enter_tenant('mcp bounds') \g /dev/null

-- ---------- a large plan, and much else ----------

SELECT count(stepwise.register_tool('tool_' || n, 'public.mcp_bounds_tool(jsonb)', jsonb_build_object('type', 'object', 'description', repeat('s', 1000)), repeat('d', 1000)))
FROM generate_series(100, 199) AS n;
SELECT count(stepwise.define_workflow(jsonb_build_object('name', 'flow_' || n, 'description', repeat('w', 1000),
    'inputs', jsonb_build_object('x', jsonb_build_object('type', 'string', 'default', repeat('i', 1000))),
    'steps', (SELECT jsonb_agg(jsonb_build_object('tool', 'tool_100', 'arguments', jsonb_build_object('a', repeat('a', 1000)))) FROM generate_series(1, 60)))))
FROM generate_series(100, 199) AS n;
SELECT count(stepwise.define_workflow(jsonb_build_object('name', 'flow_100', 'description', repeat('w', 1000) || n, 'steps', '[{"tool": "tool_100"}]'::jsonb))) FROM generate_series(1, 60) AS n;
-- steps 1 to 900 have ended, 901 to 960 have failed, 961 to 1020 are claimed, 1021 to 1100 wait for a person, the others are pending
INSERT INTO given SELECT (pg_temp.ask('create_plan', jsonb_build_object('name', 'large', 'goal', repeat('g', 30000), 'onFailure', 'continue', 'inputs', jsonb_build_object('x', repeat('x', 30000)),
    'steps', (SELECT jsonb_agg(CASE WHEN n BETWEEN 1021 AND 1100 THEN jsonb_build_object('name', 's' || n, 'prompt', repeat('p', 2000), 'dependsOn', '[]'::jsonb)
                               ELSE jsonb_build_object('name', 's' || n, 'dependsOn', '[]'::jsonb, 'instructions', repeat('i', 1000), 'tool', 'client_' || n % 100) END)
              FROM generate_series(1, 2000) AS n))) ->> 'planId')::uuid;
SELECT plan FROM given \gset
UPDATE given SET step = pg_temp.step(1500), run = (stepwise.start_workflow('flow_199') ->> 'planId')::uuid;
SELECT run FROM given \gset
SELECT count(stepwise.submit_step_result(s.id, to_jsonb(repeat(md5(s.name), 120)), repeat('r', 1000), output_formatting_notes => repeat('n', 1000)))
FROM (SELECT * FROM stepwise.step AS x WHERE x.plan_id = :'plan' AND x.step_order <= 900 ORDER BY x.step_order) AS s;
SELECT count(stepwise.fail_step(s.id, repeat('e', 2000))) FROM stepwise.step AS s WHERE s.plan_id = :'plan' AND s.step_order BETWEEN 901 AND 960;
SELECT count(stepwise.get_next_step(:'plan', repeat('w', 200) || n)) FROM generate_series(1, 61) AS n;
SELECT count(stepwise.store_artifact(:'plan', 'document ' || n, repeat('c ', 15000))) FROM generate_series(1, 60) AS n;
SELECT stepwise.store_output(:'plan', repeat('o', 60000)) ->> 'size';
SELECT status, count(*) FROM stepwise.step WHERE plan_id = :'plan' GROUP BY status ORDER BY status;

-- ---------- the tools that a model sees ----------

\set ECHO none
\set all '{"stepwise/tools": "all"}'
CREATE FUNCTION pg_temp.of_plan(more jsonb = '{}') RETURNS jsonb LANGUAGE sql AS $$SELECT jsonb_build_object('plan_id', plan) || more FROM given$$;
-- what reads
SELECT pg_temp.ask('get_plan_status', pg_temp.of_plan(jsonb_build_object('view', v)), v) FROM unnest('{status,context,why,tree}'::text[]) AS v \g /dev/null
SELECT pg_temp.ask('get_plan_status', pg_temp.of_plan('{"step": "s1500", "view": "context"}')) \g /dev/null
SELECT pg_temp.ask('get_plan_status', a) FROM unnest('{"{}","{\"query\": \"large\"}"}'::jsonb[]) AS a \g /dev/null
SELECT pg_temp.ask('get_plan_status', jsonb_build_object('status', w), w) FROM unnest(enum_range(NULL::stepwise.plan_status)::text[]) AS w \g /dev/null
SELECT pg_temp.ask('start_workflow') \g /dev/null
SELECT pg_temp.ask('search_artifacts', '{"query": "c"}'), pg_temp.ask('search_artifacts', pg_temp.of_plan('{"name": "document 1"}')) \g /dev/null
-- what acts
SELECT pg_temp.ask('start_workflow', '{"workflow": "flow_150"}') \g /dev/null
SELECT pg_temp.ask('run', jsonb_build_object('plan_id', :'run')), pg_temp.ask('run', pg_temp.of_plan()) \g /dev/null
SELECT pg_temp.ask('get_next_step', pg_temp.of_plan('{"worker": "me"}')) \g /dev/null
SELECT pg_temp.ask('get_next_step', pg_temp.of_plan('{"worker": "me"}')) ->> 'name' AS mine \gset
-- agents send their name and the attempt with every call
SELECT pg_temp.ask('update_step', pg_temp.of_plan(jsonb_build_object('step', step, 'action', action, 'worker', 'me', 'attempt', 1) || more), action)
FROM (VALUES (:'mine', 'heartbeat', '{}'::jsonb), (:'mine', 'fail', jsonb_build_object('error', repeat('e', 5000))), (:'mine', 'retry', '{}'), ('s902', 'skip', '{}')) AS v (step, action, more) \g /dev/null
SELECT pg_temp.ask('get_next_step', pg_temp.of_plan('{"worker": "me"}')) ->> 'name' AS mine \gset
SELECT pg_temp.ask('update_step', pg_temp.of_plan(jsonb_build_object('step', :'mine', 'action', 'release', 'worker', 'me')), 'release') \g /dev/null
SELECT pg_temp.ask('get_next_step', pg_temp.of_plan('{"worker": "me"}')) ->> 'name' AS mine \gset
SELECT pg_temp.ask('submit_step_result', pg_temp.of_plan(jsonb_build_object('step', :'mine', 'worker', 'me', 'result', 1, 'outcome', 'success')), 'success') #>> '{next,name}' AS mine \gset
SELECT pg_temp.ask('submit_step_result', pg_temp.of_plan(jsonb_build_object('step', :'mine', 'worker', 'me', 'result', 1, 'outcome', 'failure')), 'failure') #>> '{next,name}' AS mine \gset
-- reviews with long questions, decided in each way, and a prompt; the client is asked first
SELECT pg_temp.ask('request_user_review', pg_temp.of_plan(jsonb_build_object('step', s.name, 'worker', s.worker, 'summary', repeat('s', 9000),
           'questions', (SELECT jsonb_agg(repeat('q', 3000)) FROM generate_series(1, 20)))), '', '{}', '{"elicitation": {"form": {}}}')
FROM stepwise.step AS s WHERE s.plan_id = :'plan' AND s.status = 'in_progress' ORDER BY s.step_order LIMIT 4 \g /dev/null
SELECT pg_temp.ask('submit_user_decision', jsonb_build_object('checkpoint_id', k.checkpoint_id, 'decision', d, 'feedback', repeat('f', 9000)), d)
FROM (SELECT *, row_number() OVER (ORDER BY checkpoint_id) AS n FROM stepwise.checkpoints WHERE plan_id = :'plan' AND kind = 'review') AS k
JOIN unnest('{approve,modify,skip}'::text[]) WITH ORDINALITY AS x (d, n) USING (n) \g /dev/null
SELECT pg_temp.ask('submit_user_decision', jsonb_build_object('checkpoint_id', checkpoint_id, 'response', repeat('r', 9000), 'run_tools', true))
FROM stepwise.checkpoints WHERE plan_id = :'plan' AND kind = 'prompt' ORDER BY checkpoint_id LIMIT 1 \g /dev/null
SELECT stepwise.create_plan('other', 'g', (SELECT jsonb_agg(jsonb_build_object('name', 's' || n)) FROM generate_series(1, 100) AS n)) ->> 'planId' AS other \gset
SELECT pg_temp.ask('modify_plan', jsonb_build_object('plan_id', :'other', 'action', 'reorder_steps', 'params', jsonb_build_object('steps', (SELECT jsonb_agg('s' || n ORDER BY n DESC) FROM generate_series(1, 100) AS n))), 'reorder_steps') \g /dev/null
SELECT pg_temp.ask('modify_plan', jsonb_build_object('plan_id', :'other', 'action', a, 'params', p), a) FROM (VALUES
    ('add_steps', (SELECT jsonb_build_object('steps', jsonb_agg('{"instructions": "x"}'::jsonb)) FROM generate_series(1, 60))),
    ('remove_step', '{"step": "s99"}'), ('update_step_instructions', jsonb_build_object('step', 's98', 'instructions', repeat('i', 9000))),
    ('update_step', jsonb_build_object('step', 's98', 'resources', (SELECT jsonb_agg('file:///' || repeat('u', 900)) FROM generate_series(1, 20)))),
    ('fail_step', '{"step": "s97", "reason": "r"}'), ('set_outputs', '{"outputs": {}}'), ('cancel', '{}')) AS v (a, p) \g /dev/null
SELECT pg_temp.ask('store_artifact', pg_temp.of_plan('{"name": "new", "content": "c"}')), pg_temp.ask('store_artifact', pg_temp.of_plan('{"final": true, "step": "s1", "content": "c"}')) \g /dev/null
-- a definition with many faults
SELECT pg_temp.ask('create_plan', (SELECT jsonb_build_object('name', 'n', 'goal', 'g', 'onFailure', w, 'steps', jsonb_agg(jsonb_build_object('name', 's' || n, 'dependsOn', ARRAY[repeat('x', 3000)])))
    FROM generate_series(1, 600) AS n), w) FROM unnest('{continue,stop,pause,fail}'::text[]) AS w \g /dev/null

-- ---------- a tool for each function that reads ----------

SELECT pg_temp.ask(f, pg_temp.of_plan(), '', :'all') FROM unnest('{get_plan_status,get_plan_context,why,handoff,execution,workflow_response,task_variables,get_output,verify_audit,audit_head}'::text[]) AS f \g /dev/null
SELECT pg_temp.ask(f, '{}', '', :'all') FROM unnest('{list_active_plans,list_plans,list_checkpoints,list_workflows,list_tools,current_tenant,help}'::text[]) AS f \g /dev/null
SELECT pg_temp.ask(f, a, '', :'all') FROM (VALUES
    ('get_step_context', jsonb_build_object('step_id', pg_temp.step(1500))), ('find_plans', '{"query": "large"}'),
    ('search_artifacts', '{"query": "c"}'), ('get_artifact', pg_temp.of_plan('{"name": "document 1"}')), ('get_workflow', '{"name": "flow_100"}'), ('get_workflow', '{"name": "flow_101"}'),
    ('execution_as_of', pg_temp.of_plan('{"at": "infinity"}')), ('workflow_response', pg_temp.of_plan('{"detail": true}')), ('verify_audit', pg_temp.of_plan('{"recursive": true}')),
    ('validate_definition', (SELECT jsonb_build_object('definition', jsonb_build_object('name', 'x', 'steps', jsonb_agg(jsonb_build_object('name', 's' || n, 'dependsOn', ARRAY[repeat('x', 3000)])))) FROM generate_series(1, 600) AS n)),
    ('derive_plan_status', '{"statuses": ["pending"], "on_failure": "stop"}'), ('step_transition_allowed', '{"from_status": "pending", "to_status": "failed"}'),
    ('plan_transition_allowed', '{"from_status": "planning", "to_status": "failed"}'), ('slot_of', jsonb_build_object('id', :'plan')), ('tenant_slot', '{"tenant": "x"}'),
    -- and some that act
    ('record_tool_result', pg_temp.of_plan('{"tool": "none", "result": 1}')), ('reclaim_stalled', '{"older_than": "0 seconds"}'), ('run', pg_temp.of_plan()),
    ('fork_plan', jsonb_build_object('plan_id', :'run', 'from_step', 'step_30')), ('advance', jsonb_build_object('step_id', pg_temp.step(1600), 'result', 1))) AS v (f, a) \g /dev/null

-- ---------- resources, prompts and tasks ----------

SELECT pg_temp.ask_by('resources/read', jsonb_build_object('uri', replace(replace(t, '{planId}', :'plan'), '{name}', 'document%201')), t)
FROM (VALUES ('stepwise://plan/{planId}'), ('stepwise://plan/{planId}/markdown'), ('stepwise://plan/{planId}/artifact/{name}'), ('stepwise://plan/{planId}/output')) AS v (t) \g /dev/null
-- a plan with many lines to indent
SELECT stepwise.create_plan('lines', 'g', (SELECT jsonb_agg(jsonb_build_object('name', 's' || n)) FROM generate_series(1, 30) AS n)) ->> 'planId' AS lines \gset
SELECT stepwise.submit_step_result(s.id, to_jsonb(repeat(E'\n', 900)), repeat(E'\n', 900)) FROM (SELECT * FROM stepwise.step WHERE plan_id = :'lines' ORDER BY step_order) AS s \g /dev/null
SELECT pg_temp.ask_by('resources/read', jsonb_build_object('uri', 'stepwise://plan/' || :'lines'), 'lines') \g /dev/null
SELECT pg_temp.ask_by('prompts/get', '{"name": "flow_120"}', 'flow_120', client::regproc) FROM unnest('{pg_temp.legacy,pg_temp.modern}'::text[]) AS client \g /dev/null
SELECT pg_temp.ask_by('prompts/get', jsonb_build_object('name', 'flow_120', 'arguments', (SELECT jsonb_object_agg(n || repeat('k', 1000), 'v') FROM generate_series(1, 100) AS n)), 'faults') \g /dev/null
SELECT pg_temp.ask_by(method, jsonb_build_object('taskId', task), method, client::regproc)
FROM (VALUES ('tasks/get', 'modern'), ('tasks/get', 'legacy'), ('tasks/result', 'legacy'), ('tasks/list', 'legacy')) AS m (method, c),
    concat('pg_temp.', c) AS client, unnest(ARRAY[:'plan', :'run']) AS task WHERE method <> 'tasks/result' OR task = :'run' \g /dev/null
\set ECHO all

-- ---------- what was measured ----------

-- longer than it may be: no row. A document that is named as a resource is read whole.
SELECT kind, what, said, pg_temp.longest(result -> 'structuredContent'), pg_temp.longest(result -> '_meta'), pg_temp.characters(result) FROM asked
WHERE greatest(pg_temp.longest(result -> 'structuredContent'), pg_temp.longest(result -> '_meta')) > 20
   OR pg_temp.characters(result) > 25000 AND what !~ 'artifact/|/output$';
-- answered with an error, as they should be
SELECT kind, what, said, left(coalesce(result #>> '{content,0,text}', result ->> 'message'), 60) FROM asked
WHERE result ->> 'isError' = 'true' OR result ? 'code' ORDER BY kind, what, said;
-- the text is the object: no row
SELECT kind, what, said FROM asked WHERE result ? 'structuredContent' AND (result #>> '{content,0,text}')::jsonb <> result -> 'structuredContent';

-- ---------- nothing was left out: no rows ----------

SELECT t ->> 'name' FROM jsonb_array_elements(pg_temp.modern('tools/list') #> '{result,tools}') AS t WHERE t ->> 'name' NOT IN (SELECT a.what FROM asked AS a WHERE a.kind = 'tool');
-- each word of each enum, but what would end the large plan
SELECT t ->> 'name', p.name, w FROM jsonb_array_elements(pg_temp.modern('tools/list') #> '{result,tools}') AS t, jsonb_each(t #> '{inputSchema,properties}') AS p (name, schema),
    jsonb_array_elements_text(p.schema -> 'enum') AS w
WHERE (t ->> 'name', w) NOT IN (SELECT a.what, a.said FROM asked AS a WHERE a.kind = 'tool') AND w <> 'reject';
SELECT t ->> 'name' FROM jsonb_array_elements(pg_temp.modern('tools/list', jsonb_build_object('_meta', :'all'::jsonb)) #> '{result,tools}') AS t
JOIN pg_proc AS p ON p.pronamespace = 'stepwise'::regnamespace AND p.proname = t ->> 'name'
WHERE (t #> '{annotations,readOnlyHint}' = 'true' OR t #> '{annotations,idempotentHint}' = 'true') AND t ->> 'name' NOT IN (SELECT a.what FROM asked AS a WHERE a.kind = 'all');
SELECT r ->> 'uriTemplate' FROM jsonb_array_elements(pg_temp.modern('resources/templates/list') #> '{result,resourceTemplates}') AS r
WHERE r ->> 'uriTemplate' NOT IN (SELECT a.what FROM asked AS a WHERE a.kind = 'resources/read');

-- ---------- the full count is beside a list that was cut ----------

SELECT a.what, a.said, l.key, string_agg(DISTINCT c.key || ' ' || c.value, ', ') FROM asked AS a,
    jsonb_each(pg_temp.answer(a.result)) AS l, jsonb_each(pg_temp.answer(a.result)) AS c
WHERE jsonb_typeof(l.value) = 'array' AND jsonb_array_length(l.value) = 20 AND jsonb_typeof(c.value) = 'number'
  AND (c.key ~* concat('^', left(rtrim(l.key, 's'), 6), '.*Count$') OR (l.key, c.key) IN (('stepIds', 'stepCount'), ('steps', 'totalSteps'), ('reclaimed', 'count'), ('stalledSteps', 'stalledCount')))
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
-- of an execution too
SELECT a.what, a.said, pg_temp.answer(a.result) -> 'blockCount' FROM asked AS a WHERE pg_temp.answer(a.result) ? 'blocks' AND pg_temp.answer(a.result) ->> 'blocks' <> '{}';
-- of the steps of a plan, the last done and the next to come are shown
SELECT string_agg(s ->> 'name', ' ') FROM asked AS a, jsonb_array_elements(pg_temp.answer(a.result) -> 'steps') AS s WHERE a.what = 'get_plan_status' AND a.said = 'context';
SELECT string_agg(DISTINCT s ->> 'status', ' ') FROM asked AS a, jsonb_array_elements(pg_temp.answer(a.result) -> 'steps') AS s WHERE a.what = 'run' AND a.kind = 'all';

-- ---------- who asks for more gets it ----------

SELECT f, jsonb_array_length(pg_temp.ask(f, jsonb_build_object('plan_id', :'run', 'view', v, 'max', 30) - CASE WHEN v IS NULL THEN 'view' ELSE '' END) -> 'steps') FROM (VALUES ('run', NULL), ('get_plan_status', 'context')) AS x (f, v);
SELECT jsonb_array_length(pg_temp.ask('get_plan_status', pg_temp.of_plan('{"max": 30, "max_bytes": 100000}')) -> 'pendingSteps');
SELECT jsonb_array_length(pg_temp.ask('start_workflow', '{"max": 30, "maxBytes": 100000}') -> 'workflows');
SELECT jsonb_array_length(pg_temp.ask('run', jsonb_build_object('plan_id', :'run', 'max_bytes', 50000)) -> 'steps');
-- who asks for less gets less, in every view
SELECT v, pg_temp.characters(pg_temp.modern('tools/call', jsonb_build_object('name', 'get_plan_status', 'arguments', pg_temp.of_plan(jsonb_build_object('view', v, 'max_bytes', 2000)))) -> 'result') <= 2000
FROM unnest('{status,context,why,tree}'::text[]) AS v;
SELECT (SELECT count(*) FROM jsonb_object_keys(a -> 'blocks')), a -> 'blockCount' FROM unnest('{25000,400000}'::int[]) AS n, pg_temp.ask('get_plan_status', jsonb_build_object('plan_id', :'run', 'view', 'tree', 'max_bytes', n)) AS a;
-- values of users have no such limit
SELECT jsonb_array_length(pg_temp.ask('get_next_step', jsonb_build_object('plan_id', stepwise.create_plan('values', 'g', '[{"name": "a", "tool": "t", "arguments": {"list": "${inputs.list}"}}]',
    inputs => jsonb_build_object('list', (SELECT jsonb_agg(n) FROM generate_series(1, 100) AS n))) ->> 'planId')) #> '{arguments,list}');
SELECT left(pg_temp.ask('run', jsonb_build_object('plan_id', :'run', 'max', m)) #>> '{content,0,text}', 60) FROM unnest('{0,"\"x\""}'::jsonb[]) AS m;
ROLLBACK;
DROP FUNCTION public.mcp_bounds_tool(jsonb);
