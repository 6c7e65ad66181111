-- run_tools of get_next_step, resume and submit_user_decision; and what run answers beside the steps.

\set ECHO none
\i test/agent.sql
CREATE SCHEMA regress_run_tools;
GRANT USAGE ON SCHEMA regress_run_tools TO PUBLIC;
CREATE FUNCTION regress_run_tools.say(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT a';
CREATE FUNCTION regress_run_tools.fail(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it failed'; END $$;
CREATE FUNCTION regress_run_tools.who(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT to_jsonb(current_user::text)';
-- a tool that uses the engine on its own plan
CREATE FUNCTION regress_run_tools.ask(a jsonb) RETURNS jsonb LANGUAGE sql AS
    $$ SELECT jsonb_build_object('told', stepwise.get_next_step((a ->> 'plan')::uuid, run_tools => true) ->> 'status') $$;
CREATE FUNCTION regress_run_tools.release(a jsonb) RETURNS jsonb LANGUAGE sql AS
    $$ SELECT stepwise.release_step(s.id) FROM stepwise.step AS s WHERE s.plan_id = (a ->> 'plan')::uuid AND s.status = 'in_progress' $$;
-- the next step after the tools have run
CREATE FUNCTION pg_temp.go(plan text, worker text = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.brief(stepwise.get_next_step(pg_temp.plan(plan), worker, run_tools => true))
$$;
-- the answer of a run without its steps
CREATE FUNCTION pg_temp.ran(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.plain(stepwise.run(pg_temp.plan(plan)), 'steps', 'task_id', 'pause_reason')
$$;
\set ECHO all

SELECT stepwise.register_tool(name, ('regress_run_tools.' || name || '(jsonb)')::regprocedure, CASE name WHEN 'say' THEN '{"properties": {"n": {"type": "number"}}}'::jsonb END) ->> 'inDatabase'
FROM unnest('{say,fail,who,ask,release}'::text[]) AS name;

-- ---------- get_next_step ----------

-- in a sequence: up to the step that needs the caller, to the end
SELECT pg_temp.make('line', '[{"name": "a", "tool": "say", "arguments": {"n": 1}}, {"name": "b", "arguments": {"x": "${steps.a.outputs.n}"}}, {"name": "c", "tool": "say"}, {"name": "d", "tool": "mine"}, {"name": "e", "tool": "say"}]', outputs => '{"n": "${steps.a.outputs.n}"}');
SELECT pg_temp.go('line', 'w');
SELECT pg_temp.go('line', 'w');
SELECT pg_temp.submit('line', 'b'), pg_temp.go('line', 'w');
SELECT pg_temp.submit('line', 'd'), pg_temp.go('line', 'w');
SELECT pg_temp.show('line');
-- no pause reason was written on the way, and the worker and the session are those of the call
SELECT pg_temp.log('line', 'plan_paused');
SELECT DISTINCT a.actor LIKE '%w' FROM stepwise.audit AS a WHERE a.plan_id = pg_temp.plan('line') AND a.detail ->> 'by' = 'run';
-- with dependencies: what is due in the database is run first, wherever it is
SELECT pg_temp.make('graph', '[{"name": "a", "dependsOn": []}, {"name": "b", "tool": "say"}, {"name": "c", "tool": "say", "dependsOn": ["b"]}, {"name": "d", "tool": "say", "dependsOn": ["a"]}]');
SELECT pg_temp.go('graph');
SELECT pg_temp.show('graph');
SELECT pg_temp.submit('graph', 'a'), pg_temp.go('graph');
-- it stops at a claim in a sequence, where other agents may go on
SELECT pg_temp.make('claim', '[{"name": "a"}, {"name": "b", "tool": "say"}, {"name": "c"}]');
SELECT pg_temp.next('claim', 'w'), pg_temp.go('claim'), pg_temp.go('claim', 'w');
SELECT pg_temp.submit('claim', 'a'), pg_temp.go('claim');
-- an open failure: paused, where other agents go on; under continue it goes on too
SELECT pg_temp.make('open ' || on_failure, '[{"name": "a", "tool": "fail"}, {"name": "b"}]', on_failure => on_failure) FROM unnest('{stop,pause,continue,fail}'::text[]) AS on_failure;
SELECT on_failure, pg_temp.go('open ' || on_failure) FROM unnest('{stop,pause,continue,fail}'::text[]) AS on_failure;
SELECT pg_temp.next('open stop');
-- the last step too
SELECT pg_temp.make('last', '[{"name": "a", "tool": "fail"}]', on_failure => 'stop');
SELECT pg_temp.go('last'), pg_temp.next('last');
SELECT stepwise.skip_step(pg_temp.step('last', 'a')) ->> 'planStatus';
-- with dependencies, what comes before the failure in order is done and handed out, and nothing after it
SELECT pg_temp.make('graph stop', '[{"name": "a", "dependsOn": []}, {"name": "b", "tool": "fail"}, {"name": "c", "tool": "say"}, {"name": "d"}]', on_failure => 'stop');
SELECT pg_temp.go('graph stop'), pg_temp.go('graph stop');
SELECT pg_temp.show('graph stop');
-- arguments that do not fit the schema are not for the caller to repair by calling the tool
SELECT pg_temp.make('schema', '[{"name": "a", "tool": "say", "arguments": {"n": "x"}}]');
SELECT pg_temp.go('schema'), pg_temp.next('schema');
-- prompts, nested plans, resources
SELECT stepwise.define_workflow('{"name": "run tools below", "steps": [{"name": "x", "tool": "say"}, {"name": "y"}, {"name": "z", "tool": "say"}]}') ->> 'version';
SELECT pg_temp.make('nest', '[{"name": "a", "tool": "say"}, {"name": "h", "workflow": "run tools below"}, {"name": "ask", "prompt": "Sure?"}, {"name": "b", "tool": "say"}]');
SELECT pg_temp.go('nest'), pg_temp.submit('run tools below', 'y'), split_part(pg_temp.go('nest'), ' ', 1);
SELECT pg_temp.show('nest') ~ '^[12]\. [ah] completed|^3\. ask awaiting_input|^4\. b pending|^plan awaiting_review';
-- a tool that asks for its own plan, and one that releases its step: neither runs for ever
SELECT pg_temp.make('own', '[{"name": "a", "tool": "ask", "arguments": {"plan": "${plan.id}"}}, {"name": "b", "tool": "say"}]');
SELECT pg_temp.go('own');
SELECT s.result FROM stepwise.step AS s WHERE s.id = pg_temp.step('own', 'a');
SELECT pg_temp.show('own');
SELECT pg_temp.make('frees', '[{"name": "a", "tool": "release", "arguments": {"plan": "${plan.id}"}}]');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('frees'), run_tools => true), 'arguments', 'path', 'stepType');
-- inDatabase
SELECT pg_temp.make('where', '[{"name": "a", "tool": "say"}, {"name": "b", "tool": "mine"}, {"name": "c"}, {"name": "d", "tool": "state_read", "arguments": {"name": "x"}}]');
SELECT x ->> 'name', x -> 'inDatabase' FROM generate_series(1, 4) AS n CROSS JOIN LATERAL stepwise.get_next_step(pg_temp.plan('where'), 'w' || n) AS x;
-- nonsense is refused before a tool runs
SELECT pg_temp.make('nonsense', '[{"name": "a", "tool": "say"}]');
SELECT pg_temp.try(format('stepwise.get_next_step(%L, %L, %L, run_tools => true)', pg_temp.plan('nonsense'), worker, lease)) FROM (VALUES ('', NULL), ('w', '-1 s'), ('w', '0'), (repeat('x', 3000), NULL)) AS v (worker, lease);
SELECT pg_temp.try(format('stepwise.get_next_step(%L, run_tools => true)', id)) FROM unnest('{NULL,00000000-0000-7000-8000-000000000000}'::uuid[]) AS id;
SELECT pg_temp.show('nonsense');
SELECT pg_temp.brief(stepwise.get_next_step(pg_temp.plan('nonsense'), run_tools => NULL));

-- ---------- resume ----------

SELECT pg_temp.make(plan, '[{"name": "ask", "prompt": "How many?"}, {"name": "a", "tool": "say", "arguments": {"n": "${steps.ask.outputs.response}"}}, {"name": "b", "tool": "mine"}, {"name": "c", "tool": "say"}]', outputs => '{"n": "${steps.a.outputs.n}"}')
FROM unnest('{answered,stays}'::text[]) AS plan;
SELECT split_part(pg_temp.go(plan), ' ', 1) FROM unnest('{answered,stays}'::text[]) AS plan;
SELECT pg_temp.plain(stepwise.resume(pg_temp.waiting('stays', 'ask'), '3'));
SELECT pg_temp.plain(stepwise.resume(pg_temp.waiting('answered', 'ask'), '3', run_tools => true), 'planId', 'stepId');
SELECT pg_temp.show('answered');
-- with detail, to the end, from a nested plan; rootPlanId is the plan that goes on
SELECT stepwise.define_workflow('{"name": "asks below", "steps": [{"name": "ask", "prompt": "How many?"}]}') ->> 'version';
SELECT pg_temp.make('deep', '[{"name": "h", "workflow": "asks below"}, {"name": "a", "tool": "say", "arguments": {"n": 4}}]', outputs => '{"n": "${steps.a.outputs.n}"}');
SELECT split_part(pg_temp.go('deep'), ' ', 1);
SELECT pg_temp.plain(x, 'blocks', 'metadata'), (SELECT array_agg(k) FROM jsonb_object_keys(x -> 'blocks') AS k), (x ->> 'rootPlanId')::uuid = pg_temp.plan('deep')
FROM stepwise.resume(pg_temp.waiting('asks below', 'ask'), '3', true, true) AS x;
SELECT pg_temp.try(format('stepwise.resume(%L, %L, true, true)', NULL, '1'));

-- ---------- submit_user_decision ----------

SELECT pg_temp.make(plan, '[{"name": "look"}, {"name": "a", "tool": "who"}, {"name": "b"}]') FROM unnest('{approved,modified,rejected,skipped}'::text[]) AS plan;
SELECT pg_temp.next(plan), stepwise.request_user_review(pg_temp.step(plan, 'look'), 'Look') ->> 'stepStatus' FROM unnest('{approved,modified,rejected,skipped}'::text[]) AS plan;
SELECT decision, pg_temp.plain(x, 'planId', 'stepId', 'run'), pg_temp.plain(x -> 'run', 'task_id', 'pause_reason', 'next_call')
FROM (VALUES ('approve', 'approved'), ('modify', 'modified'), ('reject', 'rejected'), ('skip', 'skipped')) AS v (decision, plan),
     stepwise.submit_user_decision(pg_temp.waiting(plan, 'look'), decision, 'because', decided_by => 'ann', run_tools => true) AS x;
-- the person who decided is named
SELECT DISTINCT a.actor LIKE '%ann' FROM stepwise.audit AS a WHERE a.plan_id = pg_temp.plan('approved') AND a.detail ->> 'by' = 'run';

-- ---------- with the rights of the caller ----------

CREATE ROLE regress_run_tools_agent;
SELECT stepwise.grant_agent('regress_run_tools_agent') ->> 'granted', stepwise.add_member('regress_run_tools_agent', 'default') ->> 'added';
SELECT pg_temp.make('rights', '[{"name": "a", "tool": "who"}, {"name": "b"}]');
SELECT pg_temp.plan('rights') AS id \gset
SET ROLE regress_run_tools_agent;
SELECT stepwise.get_next_step(:'id', run_tools => true) ->> 'name';
RESET ROLE;
SELECT s.result FROM stepwise.step AS s WHERE s.id = pg_temp.step('rights', 'a');
DROP OWNED BY regress_run_tools_agent;
SELECT stepwise.remove_member('regress_run_tools_agent', 'default') ->> 'removed';
DROP ROLE regress_run_tools_agent;

-- ---------- what run answers ----------

SELECT pg_temp.make('outputs', '[{"name": "a", "tool": "say"}]', outputs => '{"n": 1}'), pg_temp.make('no outputs', '[{"name": "a", "tool": "say"}]');
SELECT pg_temp.ran('outputs'), pg_temp.ran('no outputs');
-- claims: they stop a sequence and are passed over otherwise; next_call does something
SELECT pg_temp.make('held', '[{"name": "a"}, {"name": "b", "tool": "say"}]'), pg_temp.make('passed', '[{"name": "a", "dependsOn": []}, {"name": "b", "tool": "say"}]');
SELECT pg_temp.next('held', 'w'), pg_temp.next('passed', 'w');
SELECT pg_temp.ran('held'), pg_temp.ran('passed');
-- in a nested plan, with its path; a step that was sent back is nobody's
SELECT pg_temp.make('below', '[{"name": "h", "workflow": "run tools below"}]');
SELECT pg_temp.go('below'), pg_temp.ran('below');
SELECT pg_temp.make('sent', '[{"name": "a"}, {"name": "b", "tool": "say"}]');
SELECT pg_temp.next('sent'), stepwise.request_user_review(pg_temp.step('sent', 'a'), 'Look') ->> 'stepStatus', stepwise.submit_user_decision(pg_temp.waiting('sent', 'a'), 'modify', 'more') ->> 'stepStatus';
SELECT pg_temp.ran('sent');
-- a failed tool: retry or leave out; a client's tool: its result
SELECT pg_temp.make('failed', '[{"name": "a", "tool": "fail"}]', on_failure => 'stop'), pg_temp.make('retryable', '[{"name": "a", "tool": "fail", "retryable": true}]', on_failure => 'stop'), pg_temp.make('client', '[{"name": "a", "tool": "mine"}]');
SELECT pg_temp.ran('failed'), pg_temp.ran('retryable'), pg_temp.ran('client');

SELECT pg_temp.unsound();
SELECT count(stepwise.drop_tool(name)) FROM unnest('{say,fail,who,ask,release}'::text[]) AS name;
DROP SCHEMA regress_run_tools CASCADE;
