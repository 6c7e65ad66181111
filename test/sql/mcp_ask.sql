-- A call over MCP whose answer is that a person is waited for asks that person.

\set ECHO none
\i test/client.sql
CREATE FUNCTION public.mcp_ask_tool(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION pg_temp.reply(plan text, step text, content jsonb, action text = 'accept') RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('inputResponses', jsonb_build_object(pg_temp.waiting(plan, step)::text, jsonb_build_object('action', action, 'content', content)))
$$;
\set forms '''{"elicitation": {}}'''
\set ECHO all
BEGIN;
SELECT stepwise.enter_tenant('mcp ask') \g /dev/null
SELECT stepwise.register_tool('echo', 'public.mcp_ask_tool(jsonb)') ->> 'name';
-- a prompt
SELECT pg_temp.make('prompted', '[{"name": "ask", "prompt": "Which colour?"}, {"name": "paint", "instructions": "Paint it"}]');
SELECT pg_temp.plain(pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), :forms));
-- who cannot be asked gets the answer: no elicitation, only by URL, not behind stepwise-mcp, reading only
SELECT pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted')) #>> '{result,structuredContent,status}',
       pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), '{"elicitation": {"url": {}}}') #>> '{result,structuredContent,status}',
       pg_temp.legacy('tools/call', jsonb_build_object('name', 'get_next_step', 'arguments', pg_temp.plan_of('prompted')), :forms, false) #>> '{result,structuredContent,status}';
-- a client of 2025-11-25 is asked by stepwise-mcp, in the same words
SELECT pg_temp.tool('pg_temp.legacy', 'get_next_step', pg_temp.plan_of('prompted'), :forms) -> 'result'
     = (pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), :forms) -> 'result') - '_meta';
SELECT pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), '{"elicitation": {"form": {}}}') #>> '{result,resultType}',
       pg_temp.tool('pg_temp.modern', 'run', pg_temp.plan_of('prompted'), :forms) #>> '{result,resultType}';
-- decline and cancel leave it open, and get the ordinary answer
SELECT pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), :forms, pg_temp.reply('prompted', 'ask', '{}', 'decline')) #>> '{result,structuredContent,status}',
       pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), :forms, pg_temp.reply('prompted', 'ask', '{}', 'cancel')) #>> '{result,structuredContent,status}';
-- nonsense changes nothing
SELECT r, coalesce(a -> 'error', a -> 'result' -> 'content') FROM jsonb_array_elements('[1, {"x": 1}, {"x": {}}, {"x": {"action": "maybe"}}]') AS r,
       pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), :forms, jsonb_build_object('inputResponses', r)) AS a;
SELECT pg_temp.plain(pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), :forms, pg_temp.reply('prompted', 'ask', '{}')) -> 'result');
-- so does an answer that does not fit the form
SELECT c, pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), :forms, pg_temp.reply('prompted', 'ask', c)) #>> '{result,content,0,text}'
FROM jsonb_array_elements('[{"response": null}, {"response": 7}, {"response": {"a": []}}, {"decision": "approve"}, [], "yes", null]') AS c;
SELECT count(*) FROM stepwise.checkpoints WHERE plan_id = pg_temp.plan('prompted');
-- keys that are not known are ignored
SELECT pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), :forms, '{"inputResponses": {"x": {"action": "accept"}, "00000000-0000-7000-8000-000000000001": {"action": "accept"}}}') #>> '{result,resultType}';
-- the answer is taken in the same call
CREATE TEMP TABLE reply AS SELECT pg_temp.reply('prompted', 'ask', '{"response": "blue"}') AS r;
SELECT pg_temp.plain(pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), :forms, r) #> '{result,structuredContent}') FROM reply;
SELECT result FROM stepwise.step WHERE id = pg_temp.step('prompted', 'ask');
-- answered meanwhile: no error
SELECT pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('prompted'), :forms, r) #>> '{result,structuredContent,status}' FROM reply;

-- a gate after a step, met by a submission: with questions, sent back, approved
SELECT pg_temp.make('gated', '[{"name": "write", "instructions": "Write", "review": {"when": "after", "summary": "Good?", "questions": ["Long enough?", {"q": "Why?"}]}}, {"name": "print", "instructions": "Print"}]');
SELECT pg_temp.next('gated');
SELECT pg_temp.plain(pg_temp.tool('pg_temp.modern', 'submit_step_result', pg_temp.plan_of('gated', '{"step": "write", "result": {"text": "a"}}'), :forms) #> '{result}');
SELECT pg_temp.plain(pg_temp.tool('pg_temp.modern', 'submit_step_result', pg_temp.plan_of('gated', '{"step": "write", "result": {"text": "a"}}'), :forms,
       pg_temp.reply('gated', 'write', '{"decision": "modify"}')) #> '{result}');
SELECT c, left(pg_temp.tool('pg_temp.modern', 'submit_step_result', pg_temp.plan_of('gated', '{"step": "write", "result": {"text": "a"}}'), :forms, pg_temp.reply('gated', 'write', c)) #>> '{result,content,0,text}', 80)
FROM jsonb_array_elements('[{"decision": null}, {"decision": ["approve"]}, {"decision": "Approve"}, {"decision": "approve", "feedback": 7}, {"decision": "approve", "answer_1": []}]') AS c;
SELECT pg_temp.plain(pg_temp.tool('pg_temp.modern', 'submit_step_result', pg_temp.plan_of('gated', '{"step": "write", "result": {"text": "a"}}'), :forms,
       pg_temp.reply('gated', 'write', '{"decision": "modify", "feedback": "longer"}')) #> '{result,structuredContent}');
SELECT pg_temp.tool('pg_temp.modern', 'submit_step_result', pg_temp.plan_of('gated', '{"step": "write", "result": {"text": "aa"}, "attempt": 2}'), :forms) #>> '{result,resultType}';
SELECT pg_temp.plain(pg_temp.tool('pg_temp.modern', 'submit_step_result', pg_temp.plan_of('gated', '{"step": "write", "result": {"text": "aa"}, "attempt": 2, "next": false}'), :forms,
       pg_temp.reply('gated', 'write', '{"decision": "approve", "answer_1": "yes"}')) #> '{result,structuredContent}');
SELECT detail -> 'action', detail -> 'answers' FROM stepwise.audit WHERE plan_id = pg_temp.plan('gated') AND event = 'user_reviewed' AND detail ->> 'action' <> 'review_requested' ORDER BY id;

-- a review that an agent requests
SELECT pg_temp.next('gated');
SELECT pg_temp.tool('pg_temp.modern', 'request_user_review', pg_temp.plan_of('gated', '{"step": "print", "summary": "Look"}'), :forms) #>> '{result,resultType}';
SELECT pg_temp.plain(pg_temp.tool('pg_temp.modern', 'request_user_review', pg_temp.plan_of('gated', '{"step": "print", "summary": "Look"}'), :forms,
       pg_temp.reply('gated', 'print', '{}', 'decline')) #> '{result,structuredContent}');
SELECT pg_temp.plain(pg_temp.tool('pg_temp.modern', 'request_user_review', pg_temp.plan_of('gated', '{"step": "print", "summary": "Look"}'), :forms,
       pg_temp.reply('gated', 'print', '{"decision": "approve"}')) #> '{result,structuredContent}');

-- a gate before a tool of the database: run goes on after it, up to the next question
SELECT pg_temp.make('run', '[{"name": "one", "tool": "echo", "arguments": {"a": 1}, "review": {"when": "before", "summary": "Do it?"}}, {"name": "two", "prompt": "And now?"}]');
SELECT pg_temp.tool('pg_temp.modern', 'run', pg_temp.plan_of('run'), :forms) #>> ARRAY['result', 'inputRequests', pg_temp.waiting('run', 'one')::text, 'params', 'message'];
SELECT k = pg_temp.waiting('run', 'two')::text FROM jsonb_object_keys(pg_temp.tool('pg_temp.modern', 'run', pg_temp.plan_of('run'), :forms, pg_temp.reply('run', 'one', '{"decision": "approve"}')) #> '{result,inputRequests}') AS k;
SELECT pg_temp.tool('pg_temp.modern', 'run', pg_temp.plan_of('run'), :forms, pg_temp.reply('run', 'two', '{"response": "end"}')) #>> '{result,structuredContent,task_status}';

-- only who may decide is asked
CREATE ROLE mcp_ask_worker;
CREATE ROLE mcp_ask_judge;
SELECT stepwise.grant_agent('mcp_ask_worker', decide => false), stepwise.grant_agent('mcp_ask_judge') \g /dev/null
SELECT stepwise.add_member('mcp_ask_worker', 'mcp ask'), stepwise.add_member('mcp_ask_judge', 'mcp ask') \g /dev/null
SELECT pg_temp.make('separate', '[{"name": "write", "instructions": "Write", "review": {"when": "after", "summary": "Good?"}}]', separate_reviewer => true);
SELECT pg_temp.as_role('mcp_ask_judge', $$(stepwise.get_next_step('$$ || pg_temp.plan('separate') || $$') ->> 'stepId')::uuid = '$$ || pg_temp.step('separate', 'write') || $$'$$);
SELECT pg_temp.as_role('mcp_ask_judge', $$stepwise.submit_step_result('$$ || pg_temp.step('separate', 'write') || $$', '1') ->> 'stepStatus'$$);
CREATE FUNCTION pg_temp.asks(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT format($f$(stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_next_step", "arguments": {"plan_id": "%s"}, "_meta": {"stepwise/pipe": true, "stepwise/clientCapabilities": {"elicitation": {}}}}}') -> 'result' ? 'inputRequests')$f$, pg_temp.plan(plan))
$$;
SELECT pg_temp.make('open', '[{"name": "ask", "prompt": "Hm?"}]');
SELECT r, pg_temp.as_role(r, pg_temp.asks('open')) AS prompt, pg_temp.as_role(r, pg_temp.asks('separate')) AS separate_review
FROM unnest(ARRAY['mcp_ask_worker', 'mcp_ask_judge']) AS r;
-- the owner made the plan
SELECT pg_temp.tool('pg_temp.modern', 'get_next_step', pg_temp.plan_of('separate'), :forms) #>> '{result,structuredContent,status}';
ROLLBACK;
DROP FUNCTION public.mcp_ask_tool(jsonb);
