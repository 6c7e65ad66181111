-- Tools over MCP: what is listed, how tools become calls of functions, results and errors, rights, exposed tools.

\set ECHO none
\i test/mcp.sql
CREATE ROLE regress_mcp_agent;
CREATE ROLE regress_mcp_worker;
CREATE ROLE regress_mcp_reader;
CREATE ROLE regress_mcp_nobody;
SELECT stepwise.grant_agent('regress_mcp_agent'), stepwise.grant_agent('regress_mcp_worker', decide => false), stepwise.grant_reader('regress_mcp_reader'),
       stepwise.grant_agent('regress_mcp_nobody') \g /dev/null
SELECT stepwise.add_member(r::regrole, 'default') FROM unnest('{regress_mcp_agent,regress_mcp_worker,regress_mcp_reader}'::text[]) AS r \g /dev/null
-- arguments with the plan of a name
CREATE FUNCTION pg_temp.of(plan text, more jsonb = '{}') RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('plan_id', pg_temp.plan(plan)) || more
$$;
CREATE FUNCTION pg_temp.tool_as(role text, name text, arguments jsonb = '{}', meta jsonb = '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    answer := pg_temp.tool(name, arguments, meta);
    RESET ROLE;
    RETURN answer;
END $$;
CREATE FUNCTION pg_temp.names_as(role text, meta jsonb = '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    answer := pg_temp.names(meta);
    RESET ROLE;
    RETURN answer;
END $$;
\set ECHO all

-- ---------- what is listed ----------

SELECT pg_temp.names();
-- each tool has a title and a description; each parameter is described; the schema is closed; all four annotations are there: no row
SELECT t ->> 'name' FROM pg_temp.tools() AS t
WHERE t ->> 'title' IS NULL OR length(t ->> 'description') < 60 OR t #>> '{inputSchema,type}' <> 'object' OR t #> '{inputSchema,additionalProperties}' <> 'false'
   OR (SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(t -> 'annotations') AS k) <> '{destructiveHint,idempotentHint,openWorldHint,readOnlyHint}'
   OR EXISTS (SELECT FROM jsonb_each(t #> '{inputSchema,properties}') AS p (name, schema) WHERE coalesce(schema ->> 'description', '') = '')
   OR EXISTS (SELECT FROM jsonb_array_elements_text(t #> '{inputSchema,required}') AS r (name) WHERE NOT (t #> '{inputSchema,properties}') ? r.name);
SELECT t ->> 'name', (t -> 'annotations') - 'openWorldHint' FROM pg_temp.tools() AS t WHERE t #>> '{annotations,readOnlyHint}' = 'true' OR t #>> '{annotations,destructiveHint}' = 'true';
SELECT string_agg(t ->> 'name', ' ') FROM pg_temp.tools() AS t WHERE t #>> '{outputSchema,type}' = 'object';
-- short enough for every conversation; test/mcp/tokens.pl counts tokens
SELECT length(jsonb_agg(t)::text) < 13500 FROM pg_temp.tools() AS t;
-- the same in every connection, and in both generations, but for execution, which only the older one has
SELECT (SELECT jsonb_agg(t - 'execution') FROM jsonb_array_elements(pg_temp.ask('tools/list') #> '{result,tools}') AS t) = pg_temp.ask_modern('tools/list') #> '{result,tools}';

-- ---------- schemas and signatures ----------

-- the functions behind each tool, and the parameters that are the tool's own
CREATE TEMP TABLE behind (tool text, functions text[], own text[]);
INSERT INTO behind VALUES
    ('create_plan', '{create_plan}', '{}'),
    ('start_workflow', '{start_workflow}', '{}'),
    ('get_next_step', '{get_next_step}', '{max_bytes}'),
    ('submit_step_result', '{advance}', '{plan_id,step,next,max_bytes}'),
    ('update_step', '{fail_step,retry_step,skip_step,release_step,heartbeat}', '{action,plan_id,step}'),
    ('request_user_review', '{request_user_review}', '{plan_id,step}'),
    ('submit_user_decision', '{submit_user_decision,resume}', '{}'),
    ('modify_plan', '{modify_plan}', '{}'),
    ('get_plan_status', '{get_plan_status,find_plans,list_plans,get_plan_context}', '{view,step}'),
    ('run', '{run}', '{}'),
    ('store_artifact', '{store_artifact}', '{final,step}'),
    ('search_artifacts', '{search_artifacts,get_artifact}', '{max_bytes}');
CREATE TEMP VIEW signature AS
    SELECT p.proname::text AS function, a.name, a.n > p.pronargs - p.pronargdefaults AS has_default, format_type(a.type, NULL) AS type
    FROM pg_proc AS p, unnest(p.proargnames[1:p.pronargs], p.proargtypes::oid[]) WITH ORDINALITY AS a (name, type, n)
    WHERE p.pronamespace = 'stepwise'::regnamespace;
CREATE FUNCTION pg_temp.fits(type text, schema jsonb) RETURNS boolean LANGUAGE sql AS $$
    SELECT CASE type WHEN 'jsonb' THEN true
        ELSE schema ->> 'type' = CASE type WHEN 'integer' THEN 'integer' WHEN 'boolean' THEN 'boolean' WHEN 'double precision' THEN 'number'
            ELSE CASE WHEN type LIKE '%[]' THEN 'array' ELSE 'string' END END END
$$;
SELECT count(*) FROM behind AS b JOIN pg_temp.tools() AS t ON t ->> 'name' = b.tool;
-- a parameter that is not the tool's own is an argument of a function, of its type: no row
SELECT b.tool, p.name FROM behind AS b JOIN pg_temp.tools() AS t ON t ->> 'name' = b.tool, jsonb_each(t #> '{inputSchema,properties}') AS p (name, schema)
WHERE p.name <> ALL (b.own)
  AND NOT EXISTS (SELECT FROM signature AS s WHERE s.function = ANY (b.functions) AND s.name = p.name AND pg_temp.fits(s.type, p.schema));
-- what a single function needs is listed, and required unless the tool offers another way: these
SELECT b.tool, s.name FROM behind AS b JOIN pg_temp.tools() AS t ON t ->> 'name' = b.tool JOIN signature AS s ON s.function = b.functions[1]
WHERE NOT s.has_default AND NOT (t #> '{inputSchema,required}') ? s.name ORDER BY 1, 2;
-- what is required has no default: these are required by the tool alone
SELECT b.tool, r.name FROM behind AS b JOIN pg_temp.tools() AS t ON t ->> 'name' = b.tool, jsonb_array_elements_text(t #> '{inputSchema,required}') AS r (name)
WHERE NOT EXISTS (SELECT FROM signature AS s WHERE s.function = b.functions[1] AND s.name = r.name AND NOT s.has_default);
-- enums
SELECT t ->> 'name', p.name, p.schema -> 'enum' FROM pg_temp.tools() AS t, jsonb_each(t #> '{inputSchema,properties}') AS p (name, schema) WHERE p.schema ? 'enum' ORDER BY 1, 2;
SELECT (SELECT to_jsonb(array_agg(v ORDER BY v)) FROM unnest(enum_range(NULL::stepwise.on_failure)::text[]) AS v)
     = (SELECT jsonb_agg(v ORDER BY v) FROM pg_temp.tools() AS t, jsonb_array_elements_text(t #> '{inputSchema,properties,on_failure,enum}') AS v WHERE t ->> 'name' = 'create_plan');
SELECT (SELECT to_jsonb(enum_range(NULL::stepwise.plan_status)::text[])) = (SELECT t #> '{inputSchema,properties,status,enum}' FROM pg_temp.tools() AS t WHERE t ->> 'name' = 'get_plan_status');
SELECT pg_temp.make('mcp enum', '[{"name": "a"}, {"name": "b"}]');
-- each word is known to the function: no row says that it is not
SELECT v, pg_temp.tool('modify_plan', pg_temp.of('mcp enum', jsonb_build_object('action', v, 'params', '{"nonsense": 1}'::jsonb)))
FROM pg_temp.tools() AS t, jsonb_array_elements_text(t #> '{inputSchema,properties,action,enum}') AS v
WHERE t ->> 'name' = 'modify_plan' AND v <> 'cancel' AND pg_temp.tool('modify_plan', pg_temp.of('mcp enum', jsonb_build_object('action', v, 'params', '{"nonsense": 1}'::jsonb))) !~ 'nonsense|"step"';
SELECT v FROM pg_temp.tools() AS t, jsonb_array_elements_text(t #> '{inputSchema,properties,decision,enum}') AS v
WHERE pg_temp.tool('submit_user_decision', jsonb_build_object('checkpoint_id', '00000000-0000-7000-8000-000000000001', 'decision', v, 'feedback', 'f')) NOT LIKE 'ERROR SW009%';

-- ---------- all functions ----------

SELECT pg_temp.names('{"stepwise/tools": "all"}');
-- nobody registers, drops, grants or purges by a tool, listed or not: no row, and -32602
SELECT t ->> 'name' FROM pg_temp.tools('{"stepwise/tools": "all"}') AS t WHERE t ->> 'name' ~ 'register|drop|member|grant|purge|enter';
SELECT f, stepwise.mcp(jsonb_build_object('jsonrpc', '2.0', 'id', 1, 'method', 'tools/call', 'params', jsonb_build_object('name', f))) #> '{error,code}' FROM unnest('{drop_workflow,drop_tool,register_tool,add_member,grant_agent,purge,enter_tenant}'::text[]) AS f;
-- each has the signature of its function, and each argument is described: no row
SELECT t ->> 'name', s.name FROM pg_temp.tools('{"stepwise/tools": "all"}') AS t JOIN signature AS s ON s.function = t ->> 'name'
WHERE s.function NOT LIKE 'state\_%' AND (NOT coalesce(pg_temp.fits(s.type, t #> ARRAY['inputSchema', 'properties', s.name]), false)
    OR (t #> '{inputSchema,required}') ? s.name = s.has_default OR coalesce(t #>> ARRAY['inputSchema', 'properties', s.name, 'description'], '') = '');
SELECT t ->> 'name' FROM pg_temp.tools('{"stepwise/tools": "all"}') AS t
WHERE t ->> 'name' NOT LIKE 'state\_%' AND ((SELECT count(*) FROM jsonb_object_keys(t #> '{inputSchema,properties}')) <> (SELECT count(*) FROM signature AS s WHERE s.function = t ->> 'name')
    OR t ->> 'description' IS NULL);
-- enums; each word is known to its function: no row says that it is not
SELECT t ->> 'name', p.name, p.schema -> 'enum' FROM pg_temp.tools('{"stepwise/tools": "all"}') AS t, jsonb_each(t #> '{inputSchema,properties}') AS p (name, schema) WHERE p.schema ? 'enum' ORDER BY 1, 2;
SELECT f, w, pg_temp.tool(f, a || jsonb_build_object(n, w), '{"stepwise/tools": "all"}') FROM (VALUES ('list_plans', 'status', '{}'::jsonb), ('list_active_plans', 'status', '{}'), ('log_skill_execution', 'status', '{"skill_name": "mcp enum"}'),
    ('modify_plan', 'action', pg_temp.of('mcp enum', '{"params": {"nonsense": 1}}'))) AS v (f, n, a),
    pg_temp.tools('{"stepwise/tools": "all"}') AS t, jsonb_array_elements_text(t #> ARRAY['inputSchema', 'properties', n, 'enum']) AS w
WHERE t ->> 'name' = f AND pg_temp.tool(f, a || jsonb_build_object(n, w), '{"stepwise/tools": "all"}') !~ '^\{|nonsense|"step"';
-- there a function answers as it does in SQL
SELECT pg_temp.answer('submit_step_result', jsonb_build_object('step_id', pg_temp.step('mcp enum', 'a'), 'result', 1), '{"stepwise/tools": "all"}') ->> 'stepStatus';

-- there what notes something by the way does so, and does not say that it only reads
SELECT t ->> 'name' FROM pg_temp.tools('{"stepwise/tools": "all"}') AS t
WHERE t #>> '{annotations,readOnlyHint}' = 'false' AND has_function_privilege('regress_mcp_reader', (SELECT p.oid FROM pg_proc AS p WHERE p.pronamespace = 'stepwise'::regnamespace AND p.proname = t ->> 'name'), 'EXECUTE');

-- ---------- the loop ----------

SELECT pg_temp.tool('create_plan', '{"name": "mcp loop", "goal": "xylophones", "onFailure": "pause", "steps": [{"name": "a", "instructions": "look"},
    {"name": "b", "tool": "fetch", "arguments": {"x": null, "url": "${steps.a.outputs.url}"}}, {"name": "c", "prompt": "Go on?"}, {"name": "d"}, {"name": "e"}]}');
SELECT pg_temp.tool('get_next_step', jsonb_build_object('planId', pg_temp.plan('mcp loop'), 'worker', 'me'));
-- a step is named by its id, or by plan and name; the next one comes along; nulls in values stay
SELECT pg_temp.tool('submit_step_result', pg_temp.of('mcp loop', '{"step": "a", "result": {"url": "u"}, "resultSummary": "s", "worker": "me"}'));
SELECT pg_temp.tool('submit_step_result', jsonb_build_object('step', pg_temp.step('mcp loop', 'a'), 'result', '{"url": "u"}'::jsonb, 'result_summary', 's', 'worker', 'me', 'next', false));
-- a client's tool fails, and its result comes after all: what why names is listed, and does it
SELECT pg_temp.tool('update_step', pg_temp.of('mcp loop', '{"step": "b", "action": "fail", "error": "no net", "worker": "me"}'));
SELECT pg_temp.answer('get_plan_status', pg_temp.of('mcp loop', '{"view": "why"}')) ->> 'message', pg_temp.plain(pg_temp.answer('get_plan_status', pg_temp.of('mcp loop', '{"view": "why"}')) -> 'nextCall');
SELECT pg_temp.plain(pg_temp.answer('submit_step_result', pg_temp.of('mcp loop', '{"step": "b", "result": {"n": 1}}')) #- '{next,message}');
-- an answer of a person
SELECT pg_temp.plain(pg_temp.answer('get_next_step', pg_temp.of('mcp loop')) -> 'nextCall');
SELECT pg_temp.tool('submit_user_decision', jsonb_build_object('checkpoint_id', pg_temp.waiting('mcp loop', 'c'), 'response', 'yes', 'decision', 'approve'));
SELECT pg_temp.tool('submit_user_decision', jsonb_build_object('checkpoint_id', pg_temp.waiting('mcp loop', 'c')));
SELECT pg_temp.answer('submit_user_decision', jsonb_build_object('checkpointId', pg_temp.waiting('mcp loop', 'c'), 'response', 'yes')) ->> 'status';
-- a review
SELECT pg_temp.answer('get_next_step', pg_temp.of('mcp loop')) ->> 'name';
SELECT pg_temp.answer('request_user_review', pg_temp.of('mcp loop', '{"step": "d", "summary": "good?", "questions": ["why?"], "attempt": 1}')) ->> 'planStatus';
SELECT pg_temp.answer('submit_user_decision', jsonb_build_object('checkpointId', pg_temp.waiting('mcp loop', 'd'), 'decision', 'skip')) ->> 'stepStatus';
-- every action on a step
SELECT pg_temp.answer('get_next_step', pg_temp.of('mcp loop', '{"worker": "me"}')) ->> 'name';
SELECT a, pg_temp.answer('update_step', pg_temp.of('mcp loop', jsonb_build_object('step', 'e', 'action', a, 'worker', 'me'))) ->> 'stepStatus' FROM unnest('{heartbeat,release}'::text[]) AS a;
SELECT pg_temp.answer('update_step', pg_temp.of('mcp loop', '{"step": "e", "action": "fail", "error": "x", "retryable": true}')) ->> 'stepStatus';
SELECT pg_temp.answer('update_step', pg_temp.of('mcp loop', '{"step": "e", "action": "retry"}')) ->> 'stepStatus';
SELECT pg_temp.answer('update_step', pg_temp.of('mcp loop', '{"step": "e", "action": "skip", "reason": "enough"}')) ->> 'planStatus';
SELECT pg_temp.answer('get_next_step', pg_temp.of('mcp loop')) ->> 'status';

-- ---------- plans ----------

SELECT pg_temp.answer('modify_plan', pg_temp.of('mcp enum', '{"action": "add_steps", "params": {"steps": [{"name": "z"}]}}')) ->> 'planStatus';
SELECT pg_temp.answer('modify_plan', pg_temp.of('mcp enum', '{"action": "cancel", "modificationRationale": "no more"}')) ->> 'planStatus';
SELECT detail ->> 'reason' FROM stepwise.audit WHERE plan_id = pg_temp.plan('mcp enum') AND detail ->> 'to' = 'cancelled' AND step_id IS NULL;
-- the views, and lists without a plan
SELECT v, (SELECT string_agg(k, ' ') FROM jsonb_object_keys(pg_temp.answer('get_plan_status', pg_temp.of('mcp loop', jsonb_build_object('view', v)))) AS k WHERE k IN ('progress', 'steps', 'message', 'blocks'))
FROM unnest('{status,context,why,tree}'::text[]) AS v;
SELECT pg_temp.answer('get_plan_status', pg_temp.of('mcp loop', '{"view": "context", "step": "b"}')) #>> '{step,name}';
SELECT pg_temp.answer('get_plan_status', '{"query": "xylophone", "max": 1}') #>> '{plans,0,name}', pg_temp.answer('get_plan_status', '{"status": "cancelled", "max": 1}') #>> '{plans,0,status}';
SELECT pg_temp.make('mcp list ' || n, '[{}]') FROM generate_series(1, 25) AS n \g /dev/null
SELECT jsonb_array_length(pg_temp.answer('get_plan_status') -> 'plans'), jsonb_array_length(pg_temp.answer('get_plan_status', '{"max": 23}') -> 'plans');
-- looking marks no stalls, whoever looks
SELECT pg_temp.make('mcp stall', '[{}]'), pg_temp.next('mcp stall');
SELECT pg_temp.answer('get_plan_status', pg_temp.of('mcp stall', '{"stall_after": "0 seconds"}')) ->> 'stalled', (SELECT status FROM stepwise.plan WHERE id = pg_temp.plan('mcp stall'));
SELECT status FROM stepwise.plan WHERE id = pg_temp.plan('mcp stall');
SELECT stepwise.get_plan_status(pg_temp.plan('mcp stall'), '0 seconds') ->> 'stalled';
SELECT status FROM stepwise.plan WHERE id = pg_temp.plan('mcp stall');

-- ---------- workflows, runs, documents ----------

SELECT stepwise.define_workflow('{"name": "mcp flow", "description": "flows", "steps": [{"name": "w", "tool": "state_write", "arguments": {"name": "mcp", "value": {"n": null}}}, {"name": "r", "tool": "state_read", "arguments": {"name": "mcp"}}]}') ->> 'version';
SELECT count(*) FROM jsonb_array_elements(pg_temp.answer('start_workflow', '{"max": 1000, "maxBytes": 1000000}') -> 'workflows') AS w WHERE w ->> 'name' = 'mcp flow';
SELECT pg_temp.answer('start_workflow', '{"workflow": "mcp flow", "goal": "mine"}') ->> 'goal';
-- a client that wants to hear of progress gets notices, from the pipe alone
SET client_min_messages = notice;
\set SHOW_CONTEXT never
SELECT pg_temp.tool('run', jsonb_build_object('plan_id', (SELECT id FROM stepwise.plan WHERE workflow = 'mcp flow')), '{"stepwise/pipe": true, "progressToken": "p"}');
SELECT pg_temp.answer('start_workflow', '{"workflow": "mcp flow"}') ->> 'goal';
SELECT pg_temp.tool('run', jsonb_build_object('plan_id', (SELECT max(id::text) FROM stepwise.plan WHERE workflow = 'mcp flow')), '{"progressToken": "p"}');
SET client_min_messages = warning;
SELECT pg_temp.answer('store_artifact', pg_temp.of('mcp loop', '{"name": "notes", "content": "a whale song", "step": "a"}')) ->> 'name';
SELECT pg_temp.answer('store_artifact', pg_temp.of('mcp loop', '{"content": "the end", "final": true}')) ->> 'planStatus';
SELECT pg_temp.answer('search_artifacts', '{"query": "whales"}') #>> '{results,0,name}', pg_temp.answer('search_artifacts', pg_temp.of('mcp loop', '{"name": "notes"}')) ->> 'content';
SELECT pg_temp.answer('get_plan_status', pg_temp.of('mcp loop', '{"view": "context"}')) #>> '{finalOutput,content}';

-- ---------- names that are not listed ----------

SELECT pg_temp.answer('advance', jsonb_build_object('step_id', pg_temp.step('mcp list 1', 'step_1'), 'result', 1)) #>> '{next,status}';
SELECT pg_temp.answer('create_research_plan', '{"name": "mcp alias", "goal": "g", "steps": [{}]}') ->> 'name';
SELECT pg_temp.answer('get_research_context', pg_temp.of('mcp alias')) ->> 'name', pg_temp.answer('store_research', pg_temp.of('mcp alias', '{"name": "n", "content": "sediment"}')) ->> 'name',
       pg_temp.answer('store_research_output', pg_temp.of('mcp alias', '{"content": "c"}')) ->> 'planId' IS NOT NULL, pg_temp.answer('search_sources', '{"query": "sediment"}') #>> '{results,0,name}';
SELECT pg_temp.tool('derive_plan_status', '{"statuses": ["pending"], "onFailure": "stop"}'), left(pg_temp.tool('help'), 30);
SELECT pg_temp.tool('state_write', '{"name": "mcp", "value": {"a": null}}'), pg_temp.tool('state_read', '{"name": "mcp"}'), pg_temp.tool('state_read', '{}');
-- a session that resumes a plan is noted; variables of users stay as they are
SELECT pg_temp.answer('get_research_context', pg_temp.of('mcp alias', jsonb_build_object('sessionId', s))) ->> 'name' FROM unnest('{first,later}'::text[]) AS s;
SELECT count(*) FROM stepwise.audit WHERE plan_id = pg_temp.plan('mcp alias') AND event = 'session_resumed';
SELECT pg_temp.answer('set_variables', pg_temp.of('mcp alias', '{"variables": {"v": {"a": null}}}')) ->> 'planStatus', pg_temp.answer('task_variables', pg_temp.of('mcp alias')) -> 'v';
-- what is the owner's is no tool; nor is what calls by name
SELECT n, pg_temp.tool(n) FROM unnest('{register_tool,drop_tool,add_member,grant_agent,purge,call,mcp,run_steps,get_plan_statu,""}'::text[]) AS n;

-- ---------- results ----------

SELECT pg_temp.plain(pg_temp.ask('tools/call', jsonb_build_object('name', 'store_artifact', 'arguments', pg_temp.of('mcp alias', '{"name": "m", "content": "x"}'))));
-- an error is text, never an object
SELECT pg_temp.ask('tools/call', '{"name": "run", "arguments": {"plan_id": "00000000-0000-7000-8000-000000000001"}}');
-- hints and handoff name tools that are listed
SELECT pg_temp.tool('submit_step_result', jsonb_build_object('step_id', '00000000-0000-7000-8000-000000000001', 'result', 1));
SELECT pg_temp.make('mcp hand', '[{"name": "z"}, {"name": "a", "tool": "mcp_none", "arguments": {"x": "${steps.z.outputs.x}"}}, {"name": "b", "prompt": "q"}]');
SELECT pg_temp.plain(pg_temp.answer('submit_step_result', pg_temp.of('mcp hand', '{"step": "z", "result": {}}')) -> 'next');
SELECT pg_temp.tool('handoff', pg_temp.of('mcp hand'));
SELECT n FROM unnest('{retry_step,skip_step,resume,record_tool_result,get_plan_context,why(}'::text[]) AS n WHERE pg_temp.tool('handoff', pg_temp.of('mcp hand')) LIKE '%stepwise.' || n || '%';
-- a step that is blocked by its arguments takes the result of its tool; the answer is that of a submission
SELECT pg_temp.tool('submit_step_result', pg_temp.of('mcp hand', '{"step": "a", "result": {"x": 1}, "outcome": "failure", "next": false}'));
SELECT status, outcome, result FROM stepwise.step WHERE id = pg_temp.step('mcp hand', 'a');
SELECT pg_temp.answer('get_next_step', pg_temp.of('mcp hand')) ->> 'status';
-- a result longer than 25,000 characters is cut, unless more is asked for
SELECT pg_temp.make('mcp long', jsonb_build_array(jsonb_build_object('name', 'a', 'instructions', repeat('word ', 10000)), '{"name": "b"}'::jsonb));
SELECT pg_temp.answer('submit_step_result', pg_temp.of('mcp long', jsonb_build_object('step', 'a', 'result', (SELECT jsonb_agg(repeat('x', 500)) FROM generate_series(1, 400))))) #>> '{next,name}';
SELECT v, length(pg_temp.tool('get_plan_status', pg_temp.of('mcp long', jsonb_build_object('view', v)))) <= 25000, length(pg_temp.tool('get_plan_status', pg_temp.of('mcp long', jsonb_build_object('view', v, 'max_bytes', 400000)))) > 200000,
       length(pg_temp.tool('get_plan_status', pg_temp.of('mcp long', jsonb_build_object('view', v, 'maxBytes', 2000)))) <= 2000
FROM unnest('{context,tree}'::text[]) AS v;
SELECT (pg_temp.answer('get_plan_status', pg_temp.of('mcp long', '{"view": "tree"}')) #>> '{truncated,bytes}')::int > 200000;
-- what stands for a cut value names a tool that reads it
SELECT pg_temp.plain(s -> 'result') FROM jsonb_array_elements(pg_temp.answer('get_plan_status', pg_temp.of('mcp long', '{"view": "context"}')) -> 'steps') AS s WHERE s ->> 'name' = 'a';
SELECT length(pg_temp.tool('get_artifact', pg_temp.of('mcp long', '{"name": "big"}'))) FROM (SELECT stepwise.store_artifact(pg_temp.plan('mcp long'), 'big', repeat('y', 100000))) AS s;
SELECT length(pg_temp.tool('search_artifacts', pg_temp.of('mcp long', '{"name": "big"}'))) <= 25000, length(pg_temp.tool('search_artifacts', pg_temp.of('mcp long', '{"name": "big", "max_bytes": 200000}'))) > 100000;

-- ---------- nonsense in every place ----------

SELECT t, a, pg_temp.tool(t, a)
FROM (VALUES ('run', '{"plan": 1}'::jsonb), ('run', '{"plan_id": 5}'), ('run', '{"plan_id": "x"}'), ('run', '{"plan_id": null}'), ('run', '{"max_bytes": 10}'), ('run', '{"max_bytes": "x"}'),
    ('run', '{"planId": "00000000-0000-7000-8000-000000000001", "plan_id": "00000000-0000-7000-8000-000000000001"}'),
    ('update_step', '{}'), ('update_step', '{"action": 3}'), ('update_step', '{"action": "burn"}'), ('update_step', '{"action": "fail"}'), ('update_step', '{"action": "fail", "step": "a"}'),
    ('update_step', '{"action": "retry", "step": 5, "plan_id": "x"}'), ('update_step', '{"action": "retry", "step": "a", "plan_id": "00000000-0000-7000-8000-000000000001"}'),
    ('submit_step_result', '{}'), ('submit_step_result', '{"step_id": "x", "result": 1}'), ('submit_step_result', '{"step_id": 1, "result": 1}'), ('submit_step_result', '{"next": "no"}'),
    ('get_plan_status', '{"view": "moon"}'), ('get_plan_status', '{"view": {}}'), ('get_plan_status', '{"plan_id": "x", "view": "why"}'), ('get_plan_status', '{"max": 0}'), ('get_plan_status', '{"query": ""}'),
    ('get_plan_status', '{"step": "a"}'), ('submit_user_decision', '{"decision": "maybe", "checkpoint_id": "00000000-0000-7000-8000-000000000001"}'), ('submit_user_decision', '{"response": 1}'),
    ('modify_plan', '{"action": 1}'), ('modify_plan', '{"action": "cancel"}'), ('store_artifact', '{"final": 1}'), ('search_artifacts', '{}'), ('search_artifacts', '{"name": "x"}'),
    ('start_workflow', '{"workflow": 5}'), ('start_workflow', '{"inputs": {}}'), ('create_plan', '{}'), ('create_plan', '{"name": "x", "goal": "g", "steps": "all"}'), ('get_next_step', '{"": 1}')) AS x (t, a);
SELECT pg_temp.tool('update_step', pg_temp.of('mcp hand', '{"action": "retry", "step": "zzz"}'));
-- each tool meets each kind of JSON in each parameter with an answer, or an error that has a code
SELECT t ->> 'name', p.name, v, pg_temp.tool(t ->> 'name', jsonb_build_object(p.name, v))
FROM pg_temp.tools() AS t, jsonb_each(t #> '{inputSchema,properties}') AS p (name, schema), unnest(ARRAY['null', '1', '-1e400', '"x"', 'true', '[]', '[[]]', '{}', '{"a": {"b": null}}']::jsonb[]) AS v
WHERE pg_temp.tool(t ->> 'name', jsonb_build_object(p.name, v)) !~ '^(\{|ERROR (SW0[0-9][0-9]|22[0-9A-Z]{3}): )';
-- functions that a text mentions become tools; what cannot be read stays as it is
SELECT n, pg_temp.tool('run', jsonb_build_object(n, 1)) FROM unnest(ARRAY['stepwise.', 'stepwise.retry_step', 'stepwise.retry_step()', 'stepwise.retry_step(step_id)', 'stepwise.retry_step(''x''', 'stepwise.retry_step(''x',
    'stepwise.retry_step(((', 'stepwise.retry_step(1, 2, 3)', 'stepwise.skip_step(''a''''b'', reason => ''c'')', 'stepwise.modify_plan(a => 7, x)', 'stepwise.retry_step with {', 'stepwise.retry_step with {"a": "}\""}',
    'stepwise.retry_step with {"a": }', 'stepwise.purge(now())', 'stepwise.reclaim_stalled(plan_id)', 'stepwise.retry_step(007)', 'stepwise.retry_step(0)', 'stepwise.retry_step(' || repeat('9', 30) || ')', 'stepwise.why(plan_id) stepwise.run(plan_id)',
    '9 bytes in all; why reads it)', 'why reads it)']) AS n;
-- cursors
SELECT c, pg_temp.ask('tools/list', jsonb_build_object('cursor', c)) #>> '{error,code}', jsonb_array_length(pg_temp.ask('tools/list', jsonb_build_object('cursor', c)) #> '{result,tools}')
FROM unnest(ARRAY['""', '"after:"', '"after:z"', '"13"', '"x"', '"after"', '1', 'null', '{}']::jsonb[]) AS c;

-- ---------- rights ----------

-- who may not decide does not see the tool for it; a reader sees what reads; without a tenant, tools are listed all the same
SELECT r, pg_temp.names_as('regress_mcp_' || r) FROM unnest('{worker,reader,nobody}'::text[]) AS r;
SELECT pg_temp.tool_as('regress_mcp_worker', 'submit_user_decision', jsonb_build_object('checkpoint_id', pg_temp.waiting('mcp hand', 'b'), 'decision', 'approve'));
SELECT pg_temp.tool_as('regress_mcp_reader', 'get_next_step', pg_temp.of('mcp hand')), pg_temp.tool_as('regress_mcp_reader', 'get_plan_status', pg_temp.of('mcp hand')) LIKE '{%';
SELECT pg_temp.tool_as('regress_mcp_nobody', 'get_next_step', '{"plan_id": "00000000-0000-7000-8000-000000000001"}');
SELECT pg_temp.names('{"stepwise/readOnly": true}'), pg_temp.names('{"stepwise/readOnly": true, "stepwise/tools": "all"}');
-- who only reads is told nothing else; then the same role is told again what it may do
SELECT m, pg_temp.plain(pg_temp.answer('get_plan_status', pg_temp.of('mcp hand', '{"view": "why"}'), m) - 'reason'), pg_temp.tool('handoff', pg_temp.of('mcp hand'), m) ~ 'submit_user_decision',
       pg_temp.ask('initialize', '{}', m) #>> '{result,instructions}' ~ 'get_next_step'
FROM unnest(ARRAY['{"stepwise/readOnly": true}', '{}']::jsonb[]) AS m;
SELECT pg_temp.ask('initialize', '{}', '{"stepwise/readOnly": true}') #>> '{result,instructions}' = pg_temp.ask_modern('server/discover', '{}', '{"stepwise/readOnly": true}') #>> '{result,instructions}';
SELECT m, length(pg_temp.ask('initialize', '{}', m) #>> '{result,instructions}') < 2000 FROM unnest(ARRAY['{"stepwise/readOnly": true}', '{}', '{"stepwise/tools": "all"}']::jsonb[]) AS m;
SELECT pg_temp.tool('get_next_step', pg_temp.of('mcp hand'), '{"stepwise/readOnly": true}'), pg_temp.tool('get_plan_status', pg_temp.of('mcp hand'), '{"stepwise/readOnly": true}') LIKE '{%',
       pg_temp.tool('state_read', '{"name": "mcp"}', '{"stepwise/readOnly": true}');

-- ---------- exposed tools ----------

CREATE FUNCTION mcp_echo(arguments jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT CASE WHEN arguments ? 'answer' THEN arguments -> 'answer' ELSE jsonb_build_object('got', arguments) END $$;
CREATE FUNCTION mcp_raise(arguments jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'boom' USING DETAIL = 'd', HINT = 'h'; END $$;
SELECT stepwise.register_tool('mcp_echo', 'mcp_echo(jsonb)', '{"type": "object", "properties": {"n": {"type": "integer"}}}', 'Echo.', expose => true, retryable => true),
       stepwise.register_tool('mcp_raise', 'mcp_raise(jsonb)', expose => true), stepwise.register_tool('mcp_hidden', 'mcp_echo(jsonb)'), stepwise.register_tool('mcp_client', expose => true),
       stepwise.register_tool('run', 'mcp_echo(jsonb)', expose => true), stepwise.register_tool('mcp spaced', 'mcp_echo(jsonb)', expose => true) \g /dev/null
SELECT t FROM pg_temp.tools() AS t WHERE t ->> 'name' LIKE 'mcp%';
SELECT count(*) FROM pg_temp.tools() AS t WHERE t ->> 'name' = 'run';
SELECT pg_temp.tool('mcp_echo', '{"n": 1, "camelCase": null}'), pg_temp.tool('mcp_echo', '{"n": "x"}'), pg_temp.tool('mcp_raise'), pg_temp.tool('mcp_hidden'), pg_temp.tool('mcp_client'), pg_temp.tool('mcp spaced');
-- content blocks pass through as they are; other answers become text
SELECT pg_temp.ask('tools/call', jsonb_build_object('name', 'mcp_echo', 'arguments', jsonb_build_object('answer', a))) -> 'result'
FROM unnest(ARRAY['{"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}], "isError": false, "structuredContent": {"a": null}}', '{"isError": true, "why": "x"}', '"text"', '[1, 2]', 'null', '{"content": "no array"}']::jsonb[]) AS a;
-- a long answer is cut, unless the request asks for more
SELECT m, length(pg_temp.tool('mcp_echo', jsonb_build_object('long', repeat('z', 60000)), m)) > 25000 FROM unnest(ARRAY['{}', '{"stepwise/maxBytes": 100000}', '{"stepwise/maxBytes": 1}', '{"stepwise/maxBytes": "x"}']::jsonb[]) AS m;
-- with a plan, the call is recorded to it: both or neither
SELECT pg_temp.make('mcp recorded', '[{"name": "a", "tool": "mcp_echo"}, {"name": "b", "tool": "mcp_echo"}, {"name": "c", "tool": "mcp_raise"}]', on_failure => 'stop');
CREATE FUNCTION pg_temp.recorded(tool text, arguments jsonb, meta jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.plain(r #> '{result,content}') || ' ' || coalesce(r #>> '{result,_meta,stepwise/recorded,stepStatus}', r #>> '{error,message}', '') || ' ' || coalesce(r #>> '{result,isError}', '')
    FROM pg_temp.ask('tools/call', jsonb_build_object('name', tool, 'arguments', arguments), meta) AS r
$$;
SELECT pg_temp.recorded('mcp_echo', '{"n": 1}', jsonb_build_object('stepwise/taskId', pg_temp.plan('mcp recorded')));
SELECT pg_temp.recorded('mcp_echo', '{"answer": {"isError": true}}', jsonb_build_object('_task_id', pg_temp.plan('mcp recorded')));
SELECT pg_temp.recorded('mcp_raise', '{}', jsonb_build_object('stepwise/taskId', pg_temp.plan('mcp recorded')));
SELECT name, status, outcome, result, error ->> 'error' FROM stepwise.step WHERE plan_id = pg_temp.plan('mcp recorded') ORDER BY step_order;
SELECT pg_temp.recorded('mcp_echo', '{}', '{"stepwise/taskId": "00000000-0000-7000-8000-000000000001"}');
SELECT pg_temp.ask('tools/call', '{"name": "mcp_echo"}', '{"stepwise/taskId": "x"}') -> 'error';
SELECT tool, plan_id = pg_temp.plan('mcp recorded') AS plan, is_error FROM stepwise.tool_call WHERE tool LIKE 'mcp%' ORDER BY id DESC LIMIT 5;
-- many of them come in pages
SELECT stepwise.register_tool('mcp_many_' || n, 'mcp_echo(jsonb)', expose => true) FROM generate_series(1, 150) AS n \g /dev/null
SELECT jsonb_array_length(r #> '{result,tools}'), r #>> '{result,nextCursor}' FROM pg_temp.ask('tools/list') AS r;
WITH RECURSIVE page (r) AS (SELECT pg_temp.ask('tools/list')
    UNION ALL SELECT pg_temp.ask('tools/list', jsonb_build_object('cursor', r #> '{result,nextCursor}')) FROM page WHERE (r -> 'result') ? 'nextCursor')
SELECT count(*), count(DISTINCT t ->> 'name') FROM page, jsonb_array_elements(r #> '{result,tools}') AS t WHERE t ->> 'name' LIKE 'mcp_many%';
SELECT stepwise.drop_tool(name) FROM stepwise.tool WHERE name LIKE 'mcp%' OR name = 'run' \g /dev/null
DROP FUNCTION mcp_echo(jsonb), mcp_raise(jsonb);
SELECT stepwise.remove_member(r::regrole, 'default') FROM unnest('{regress_mcp_agent,regress_mcp_worker,regress_mcp_reader}'::text[]) AS r \g /dev/null
\set ECHO none
SELECT format('DROP OWNED BY %I', r) FROM unnest('{regress_mcp_agent,regress_mcp_worker,regress_mcp_reader,regress_mcp_nobody}'::text[]) AS r \gexec
DROP ROLE regress_mcp_agent, regress_mcp_worker, regress_mcp_reader, regress_mcp_nobody;
