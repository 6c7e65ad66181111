-- Ways around a gate that were found by trying, and what stands in each of them now.

\set ECHO none
\i test/agent.sql
CREATE ROLE regress_stepwise_found_bot;
CREATE ROLE regress_stepwise_found_boss;
SELECT stepwise.grant_agent('regress_stepwise_found_bot', decide => false) IS NOT NULL, stepwise.add_member('regress_stepwise_found_bot', 'default') IS NOT NULL;
SELECT stepwise.grant_agent('regress_stepwise_found_boss') IS NOT NULL, stepwise.add_member('regress_stepwise_found_boss', 'default') IS NOT NULL;
CREATE TABLE found_deployed (tag text);
CREATE FUNCTION found_deploy(arguments jsonb) RETURNS jsonb LANGUAGE sql SECURITY DEFINER AS $$
    INSERT INTO found_deployed VALUES (arguments ->> 'tag') RETURNING '{}'::jsonb
$$;
SELECT stepwise.register_tool('found_deploy', 'found_deploy(jsonb)') ->> 'name';
-- An expression as another role: its value in short, or its error.
CREATE FUNCTION pg_temp.as_role(who text, expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', 'regress_stepwise_found_' || who);
    EXECUTE 'SELECT ' || expression INTO answer;
    RESET ROLE;
    RETURN concat_ws(' ', answer ->> 'status', answer ->> 'task_status', answer ->> 'stepStatus', answer ->> 'name', answer ->> 'instructions',
                     answer -> 'pauseReason' ->> 'type');
EXCEPTION WHEN OTHERS THEN
    RESET ROLE;
    RETURN sqlstate || ': ' || sqlerrm;
END $$;
CREATE FUNCTION pg_temp.states(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(s.name || ' ' || s.status, ', ' ORDER BY s.step_order) FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan($1))
$$;
\set ECHO all

-- Reordering by names is reordering.
SELECT pg_temp.make('names', '[{"name": "ok", "prompt": "Ship?"}, {"name": "ship", "tool": "found_deploy", "arguments": {"tag": "names"}}]');
SELECT pg_temp.as_role('bot', format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('names'), 'reorder_steps', '{"steps": ["ship", "ok"]}'));
SELECT pg_temp.as_role('boss', format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('names'), 'reorder_steps', '{"steps": ["ok", "ship"]}'));
SELECT pg_temp.as_role('bot', format('stepwise.run(%L)', pg_temp.plan('names'))), pg_temp.states('names');

-- At the gate before an agent's step, modify is an approval too. It does not count for what was not shown.
SELECT pg_temp.make('shown', '[{"name": "ship", "instructions": "Ship ${variables.tag}", "review": {"when": "before"}}]');
SELECT stepwise.set_variables(pg_temp.plan('shown'), '{"tag": "good"}') -> 'variables';
SELECT pg_temp.as_role('bot', format('stepwise.get_next_step(%L)', pg_temp.plan('shown')));
SELECT pg_temp.as_role('bot', format('stepwise.set_variables(%L, %L)', pg_temp.plan('shown'), '{"tag": "other"}'));
SELECT pg_temp.as_role('boss', format('stepwise.submit_user_decision(%L, %L, %L)', pg_temp.waiting('shown', 'ship'), 'modify', 'Be quick'));
SELECT pg_temp.as_role('bot', format('stepwise.get_next_step(%L)', pg_temp.plan('shown')));
SELECT pg_temp.as_role('boss', format('stepwise.submit_user_decision(%L, %L, %L)', pg_temp.waiting('shown', 'ship'), 'modify', 'Be quick'));
SELECT pg_temp.as_role('bot', format('stepwise.get_next_step(%L)', pg_temp.plan('shown')));

-- A requested review that sends a step back does not approve what the gate before it has not shown.
SELECT pg_temp.make('back', '[{"name": "ship", "tool": "found_deploy", "arguments": {"tag": "${variables.tag}"}, "review": {"when": "before"}}]');
SELECT stepwise.set_variables(pg_temp.plan('back'), '{"tag": "good"}') -> 'variables';
SELECT pg_temp.as_role('bot', format('stepwise.get_next_step(%L)', pg_temp.plan('back')));
SELECT pg_temp.as_role('boss', format('stepwise.submit_user_decision(%L, %L)', pg_temp.waiting('back', 'ship'), 'approve'));
SELECT pg_temp.as_role('bot', format('stepwise.get_next_step(%L)', pg_temp.plan('back')));
SELECT pg_temp.as_role('bot', format('stepwise.set_variables(%L, %L)', pg_temp.plan('back'), '{"tag": "other"}'));
SELECT pg_temp.as_role('bot', format('stepwise.request_user_review(%L, %L)', pg_temp.step('back', 'ship'), 'Look'));
SELECT pg_temp.as_role('boss', format('stepwise.submit_user_decision(%L, %L, %L)', pg_temp.waiting('back', 'ship'), 'modify', 'Be quick'));
SELECT pg_temp.as_role('bot', format('stepwise.run(%L)', pg_temp.plan('back'))), pg_temp.states('back');
SELECT pg_temp.as_role('boss', format('stepwise.submit_user_decision(%L, %L)', pg_temp.waiting('back', 'ship'), 'approve'));
SELECT pg_temp.as_role('bot', format('stepwise.run(%L)', pg_temp.plan('back')));
SELECT array_agg(d.tag) FROM found_deployed AS d;

-- A role that may not review a step may change it as the review asks, but not take its gate away.
CREATE FUNCTION pg_temp.boss_makes(plan text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL ROLE regress_stepwise_found_boss;
    PERFORM stepwise.create_plan(plan, 'test', '[{"name": "ship", "tool": "found_deploy", "arguments": {"tag": "own"}, "review": {"when": "before"}}]',
                                 separate_reviewer => true);
    RESET ROLE;
    RETURN 'made';
END $$;
SELECT pg_temp.boss_makes('own');
SELECT pg_temp.as_role('boss', format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('own'), 'update_step', '{"step": "ship", "review": null}'));
SELECT pg_temp.as_role('boss', format('stepwise.run(%L)', pg_temp.plan('own')));
SELECT stepwise.submit_user_decision(pg_temp.waiting('own', 'ship'), 'modify', 'Another tag') ->> 'stepStatus';
SELECT pg_temp.as_role('boss', format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('own'), 'update_step', '{"step": "ship", "review": null}'));
SELECT pg_temp.as_role('boss', format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('own'), 'update_step', '{"step": "ship", "arguments": {"tag": "own 2"}}'));
SELECT pg_temp.as_role('boss', format('stepwise.run(%L)', pg_temp.plan('own'))), pg_temp.states('own');

-- An argument of the name prompt is no gate, a step that a branch may add can be one.
SELECT stepwise.define_workflow('{"name": "found asks model", "steps": [{"name": "ask", "tool": "model", "arguments": {"prompt": "Hello", "review": 1}}]}') ->> 'created';
SELECT stepwise.define_workflow('{"name": "found branches", "steps": [{"name": "a"}], "branchingConditions": [{"afterStep": "a", "conditionExpression": "confidence < 0.5",
    "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "b", "prompt": "Sure?"}]}}]}') ->> 'created';
SELECT stepwise.define_workflow('{"name": "found deep", "steps": [{"name": "c", "workflow": "found branches"}]}') ->> 'created';
SELECT pg_temp.make('below', '[{"name": "model", "workflow": "found asks model"}, {"name": "branch", "workflow": "found branches"}, {"name": "deep", "workflow": "found deep"}, {"name": "z"}]');
SELECT s.name, pg_temp.as_role('bot', format('stepwise.skip_step(%L)', s.id)) FROM stepwise.step AS s WHERE s.plan_id = pg_temp.plan('below') AND s.name <> 'z' ORDER BY s.step_order;

-- While a person is asked, the plan cannot be changed. Then why names the question first, and what it names goes through.
SELECT pg_temp.make('two', '[{"name": "ship", "tool": "found_deploy", "arguments": {"tag": "two"}, "review": {"when": "before"}, "dependsOn": []}, {"name": "ask", "prompt": "Who?", "dependsOn": []}]');
SELECT stepwise.get_next_step(pg_temp.plan('two')) ->> 'status';
SELECT stepwise.submit_user_decision(pg_temp.waiting('two', 'ship'), 'modify', 'Another tag') ->> 'planStatus';
SELECT stepwise.get_next_step(pg_temp.plan('two')) ->> 'prompt', w -> 'nextCall' ->> 'function', w -> 'nextCall' -> 'arguments' ->> 'checkpoint_id' = pg_temp.waiting('two', 'ask')::text, w ->> 'message'
    FROM stepwise.why(pg_temp.plan('two')) AS w;
SELECT stepwise.resume(pg_temp.waiting('two', 'ask'), '"me"') ->> 'stepStatus';
SELECT w -> 'nextCall' ->> 'function', w -> 'nextCall' -> 'arguments' ->> 'action' FROM stepwise.why(pg_temp.plan('two')) AS w;

-- The call that opens a void review anew does so, also if there is other work.
SELECT pg_temp.make('anew', '[{"name": "ship", "tool": "found_deploy", "arguments": {"tag": "${variables.tag}"}, "review": {"when": "before"}, "dependsOn": []},
    {"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": []}, {"name": "c", "dependsOn": []}]');
SELECT stepwise.set_variables(pg_temp.plan('anew'), '{"tag": "one"}') -> 'variables';
SELECT pg_temp.next('anew');
SELECT stepwise.set_variables(pg_temp.plan('anew'), '{"tag": "two"}') -> 'variables';
SELECT pg_temp.try($$stepwise.submit_user_decision(pg_temp.waiting('anew', 'ship'), 'approve') ->> 'stepStatus'$$);
SELECT pg_temp.next('anew');
SELECT pg_temp.try($$stepwise.submit_user_decision(pg_temp.waiting('anew', 'ship'), 'approve') ->> 'stepStatus'$$);
SELECT pg_temp.next('anew');

-- A step with a gate after it that has failed openly holds back the steps after it: a reported error, or attempts used up, is no approval.
SELECT stepwise.create_plan('failing', 'test', '[{"name": "build", "tool": "found_build", "maxAttempts": 1, "review": {"when": "after"}}, {"name": "ship", "tool": "found_deploy", "arguments": {"tag": "failing"}}]') ->> 'status';
SELECT pg_temp.as_role('bot', format('stepwise.get_next_step(%L)', pg_temp.plan('failing')));
SELECT pg_temp.as_role('bot', format('stepwise.release_step(%L)', pg_temp.step('failing', 'build')));
SELECT pg_temp.as_role('bot', format('stepwise.get_next_step(%L)', pg_temp.plan('failing'))), pg_temp.as_role('bot', format('stepwise.run(%L)', pg_temp.plan('failing')));
SELECT pg_temp.states('failing'), pg_temp.as_role('bot', format('stepwise.submit_step_result(%L, %L)', pg_temp.step('failing', 'ship'), '{}'));
SELECT pg_temp.as_role('bot', format('stepwise.retry_step(%L)', pg_temp.step('failing', 'build')));
SELECT pg_temp.as_role('bot', format('stepwise.record_tool_result(%L, %L, %L, true)', pg_temp.plan('failing'), 'found_build', '"broken"'));
SELECT pg_temp.as_role('bot', format('stepwise.get_next_step(%L)', pg_temp.plan('failing'))), w ->> 'message', w -> 'nextCall' ->> 'function' FROM stepwise.why(pg_temp.plan('failing')) AS w;
SELECT pg_temp.as_role('bot', format('stepwise.fail_step(%L, %L)', pg_temp.step('failing', 'build'), 'No matter')), pg_temp.as_role('bot', format('stepwise.skip_step(%L)', pg_temp.step('failing', 'build')));
SELECT pg_temp.as_role('bot', format('stepwise.record_tool_result(%L, %L, %L)', pg_temp.plan('failing'), 'found_build', '"built"')), pg_temp.states('failing');
SELECT pg_temp.as_role('boss', format('stepwise.submit_user_decision(%L, %L)', pg_temp.waiting('failing', 'build'), 'approve'));
SELECT pg_temp.as_role('bot', format('stepwise.run(%L)', pg_temp.plan('failing'))), pg_temp.states('failing');
SELECT * FROM stepwise.check_integrity();

-- A step that was claimed and given back takes no result before it is claimed again, and why does not name such a call.
SELECT pg_temp.make('again', '[{"name": "a", "instructions": "Do it"}]');
SELECT pg_temp.next('again');
SELECT stepwise.release_step(pg_temp.step('again', 'a')) ->> 'stepStatus';
SELECT stepwise.run(pg_temp.plan('again')) -> 'pause_reason' ->> 'type';
SELECT stepwise.why(pg_temp.plan('again')) -> 'nextCall' ->> 'function';
SELECT pg_temp.next('again');
