-- A gate has no other door. A role that may not decide tries every way around a prompt and around a review, in every state of it.

\set ECHO none
\i test/agent.sql
CREATE ROLE regress_stepwise_bot;
SELECT stepwise.grant_agent('regress_stepwise_bot') IS NOT NULL, stepwise.add_member('regress_stepwise_bot', 'default') IS NOT NULL;
REVOKE EXECUTE ON FUNCTION stepwise.submit_user_decision, stepwise.resume FROM regress_stepwise_bot;
CREATE TABLE door_deployed (what text);
GRANT INSERT, SELECT ON door_deployed TO regress_stepwise_bot;
CREATE FUNCTION door_deploy(arguments jsonb) RETURNS jsonb LANGUAGE sql SECURITY DEFINER AS $$
    INSERT INTO door_deployed VALUES (arguments ->> 'tag') RETURNING '{}'::jsonb
$$;
SELECT stepwise.register_tool('door_deploy', 'door_deploy(jsonb)') ->> 'name' IS NOT NULL;
-- Call a function as the bot: its answer in short, or the SQLSTATE.
CREATE FUNCTION pg_temp.bot(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    SET LOCAL ROLE regress_stepwise_bot;
    EXECUTE 'SELECT ' || expression INTO answer;
    RESET ROLE;
    RETURN concat_ws(' ', answer ->> 'status', answer ->> 'task_status', answer ->> 'stepStatus', answer ->> 'name', answer -> 'pauseReason' ->> 'type');
EXCEPTION WHEN OTHERS THEN
    RESET ROLE;
    RETURN sqlstate;
END $$;
-- Every call that might get a step past its gate, and what came of it. "gate" is the step at which a person decides, "ship" the one behind it.
CREATE FUNCTION pg_temp.doors(plan text, gate text, ship text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    p uuid := pg_temp.plan(plan);
    g uuid := pg_temp.step(plan, gate);
    s uuid := pg_temp.step(plan, ship);
    call text;
BEGIN
    FOREACH call IN ARRAY ARRAY[
        format('stepwise.skip_step(%L)', g),
        format('stepwise.fail_step(%L, %L)', g, 'no'),
        format('stepwise.modify_plan(%L, %L, %L)', p, 'remove_step', jsonb_build_object('stepId', g)),
        format('stepwise.modify_plan(%L, %L, %L)', p, 'fail_step', jsonb_build_object('stepId', g, 'reason', 'no')),
        format('stepwise.modify_plan(%L, %L, %L)', p, 'update_step_instructions', jsonb_build_object('stepId', g, 'instructions', 'Something else')),
        format('stepwise.modify_plan(%L, %L, %L)', p, 'update_step_instructions', jsonb_build_object('stepId', s, 'instructions', 'Something else')),
        format('stepwise.modify_plan(%L, %L, %L)', p, 'reorder_steps', (SELECT jsonb_build_object('stepIds', jsonb_agg(x.id ORDER BY x.step_order DESC)) FROM stepwise.step AS x WHERE x.plan_id = p)),
        format('stepwise.submit_step_result(%L, %L)', g, '{}'),
        format('stepwise.submit_step_result(%L, %L)', s, '{}'),
        format('stepwise.advance(%L, %L)', s, '{}'),
        format('stepwise.record_tool_result(%L, %L, %L)', p, 'door_deploy', '{}'),
        format('stepwise.record_tool_result(%L, %L, %L, step_name => %L)', p, 'door_deploy', '{}', ship),
        format('stepwise.record_tool_result(%L, %L, %L, true, step_name => %L)', p, 'door_deploy', '"no"', ship),
        format('stepwise.release_step(%L)', s),
        format('stepwise.retry_step(%L)', s),
        format('stepwise.request_user_review(%L, %L)', s, 'Just click'),
        format('stepwise.run(%L)', p),
        format('stepwise.get_next_step(%L)', p)]
    LOOP
        RETURN NEXT rpad(regexp_replace(split_part(call, '(', 1), '^stepwise.', '')
                         || coalesce(' ' || substring(call FROM 'modify_plan\([^,]*, ''(\w+)'), '')
                         || CASE WHEN call LIKE '%' || g || '%' AND call NOT LIKE '%reorder%' THEN ' of the gate' ELSE '' END, 55)
                    || pg_temp.bot(call);
    END LOOP;
    RETURN NEXT format('deployed %s times; %s is %s, %s is %s', (SELECT count(*) FROM door_deployed AS d WHERE d.what = plan), gate,
                       (SELECT x.status FROM stepwise.step AS x WHERE x.id = g), ship, (SELECT x.status FROM stepwise.step AS x WHERE x.id = s));
END $$;
\set ECHO all

-- ---------- the gate has not opened yet ----------

-- a prompt that is not yet due, in a sequence and with dependencies: build is not done
SELECT pg_temp.make('prompt', '[{"name": "build"}, {"name": "ok", "prompt": "Deploy?"}, {"name": "deploy", "tool": "door_deploy", "arguments": {"tag": "prompt"}}]');
SELECT pg_temp.next('prompt');
SELECT pg_temp.doors('prompt', 'ok', 'deploy');
SELECT pg_temp.make('prompt tree', '[{"name": "build"}, {"name": "ok", "prompt": "Deploy?", "dependsOn": ["build"]}, {"name": "deploy", "tool": "door_deploy", "arguments": {"tag": "prompt tree"}, "dependsOn": ["ok"]}]');
SELECT pg_temp.next('prompt tree');
SELECT pg_temp.doors('prompt tree', 'ok', 'deploy');
-- a gate before the step
SELECT pg_temp.make('before', '[{"name": "build"}, {"name": "deploy", "tool": "door_deploy", "arguments": {"tag": "before"}, "review": {"when": "before"}}]');
SELECT pg_temp.next('before');
SELECT pg_temp.doors('before', 'deploy', 'deploy');

-- ---------- the gate waits ----------

SELECT pg_temp.submit(p, 'build') FROM unnest('{prompt,prompt tree,before}'::text[]) AS p;
SELECT pg_temp.next(p) LIKE 'awaiting_review%' FROM unnest('{prompt,prompt tree,before}'::text[]) AS p;
SELECT pg_temp.doors('prompt', 'ok', 'deploy');
SELECT pg_temp.doors('prompt tree', 'ok', 'deploy');
SELECT pg_temp.doors('before', 'deploy', 'deploy');
-- a gate after the step before: what was built may not be shipped
SELECT pg_temp.make('after', '[{"name": "build", "review": {"when": "after"}}, {"name": "deploy", "tool": "door_deploy", "arguments": {"tag": "after"}}]');
SELECT pg_temp.next('after');
SELECT pg_temp.submit('after', 'build', '{"ok": 1}');
SELECT pg_temp.doors('after', 'build', 'deploy');

-- ---------- the gate asked for changes, or sent the work back ----------

SELECT stepwise.submit_user_decision(pg_temp.waiting('before', 'deploy'), 'modify', 'Not today') ->> 'stepStatus';
SELECT pg_temp.doors('before', 'deploy', 'deploy');
-- the bot gets the build again, and that is all; after its new submission the gate waits again
SELECT stepwise.submit_user_decision(pg_temp.waiting('after', 'build'), 'modify', 'Better') ->> 'stepStatus';
SELECT pg_temp.doors('after', 'build', 'deploy');
SELECT pg_temp.make('requested', '[{"name": "build"}, {"name": "deploy", "tool": "door_deploy", "arguments": {"tag": "requested"}}]');
SELECT pg_temp.next('requested');
SELECT stepwise.request_user_review(pg_temp.step('requested', 'build'), 'Good?', result => '{}') ->> 'stepStatus';
SELECT stepwise.submit_user_decision(pg_temp.waiting('requested', 'build'), 'modify', 'No') ->> 'stepStatus';
SELECT pg_temp.bot(format('stepwise.run(%L)', pg_temp.plan('requested')));
SELECT pg_temp.bot(format('stepwise.submit_step_result(%L, %L)', pg_temp.step('requested', 'deploy'), '{}'));
SELECT pg_temp.bot(format('stepwise.get_next_step(%L)', pg_temp.plan('requested')));

-- ---------- the gate was passed ----------

-- what was approved is not changed any more, neither the answer nor what depends on it
SELECT stepwise.resume(pg_temp.waiting('prompt', 'ok'), '"yes"') ->> 'planStatus';
SELECT pg_temp.bot(format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('prompt'), 'update_step_instructions', jsonb_build_object('stepId', pg_temp.step('prompt', 'deploy'), 'instructions', 'To production')));
SELECT pg_temp.bot(format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('prompt'), 'fail_step', jsonb_build_object('stepId', pg_temp.step('prompt', 'deploy'), 'reason', 'x')));
SELECT pg_temp.bot(format('stepwise.run(%L)', pg_temp.plan('prompt')));
SELECT count(*) FROM door_deployed;
-- a step before the gate is free
SELECT pg_temp.make('free', '[{"name": "a"}, {"name": "b"}, {"name": "ok", "prompt": "Well?"}]');
SELECT pg_temp.bot(format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('free'), 'update_step_instructions', jsonb_build_object('stepId', pg_temp.step('free', 'b'), 'instructions', 'x')));
SELECT pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('free', 'a')));
SELECT pg_temp.bot(format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('free'), 'remove_step', jsonb_build_object('stepId', pg_temp.step('free', 'b'))));
-- inside a nested plan that a gate has approved
SELECT stepwise.define_workflow('{"name": "door inner", "steps": [{"name": "one"}, {"name": "two"}]}') ->> 'version';
SELECT pg_temp.make('door nest', '[{"name": "n", "workflow": "door inner", "review": {"when": "before"}}]');
SELECT pg_temp.next('door nest') LIKE 'awaiting_review%';
SELECT stepwise.submit_user_decision(pg_temp.waiting('door nest', 'n'), 'approve') ->> 'stepStatus';
SELECT pg_temp.bot(format('stepwise.get_next_step(%L)', pg_temp.plan('door nest')));
SELECT pg_temp.bot(format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('door inner'), 'add_steps', '{"steps": [{"name": "more", "tool": "door_deploy"}]}'));
SELECT pg_temp.bot(format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('door inner'), 'update_step_instructions', jsonb_build_object('stepId', pg_temp.step('door inner', 'two'), 'instructions', 'x')));
SELECT pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('door nest', 'n')));
-- the work itself goes on
SELECT pg_temp.bot(format('stepwise.submit_step_result(%L, %L)', pg_temp.step('door inner', 'one'), '{}'));

-- a gate inside a nested plan: neither the step that holds it nor the plan is ended, opened or not, at any depth
SELECT stepwise.define_workflow('{"name": "door asks", "steps": [{"name": "ask", "prompt": "Deploy?"}]}') ->> 'version';
SELECT stepwise.define_workflow('{"name": "door calls", "steps": [{"name": "calls", "workflow": "door asks"}]}') ->> 'version';
SELECT pg_temp.make('door deep', '[{"name": "n", "workflow": "door calls"}, {"name": "deploy", "tool": "door_deploy", "arguments": {"tag": "door deep"}}]');
SELECT pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('door deep', 'n')));
SELECT pg_temp.bot(format('stepwise.fail_step(%L, %L)', pg_temp.step('door deep', 'n'), 'x'));
SELECT pg_temp.bot(format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('door deep'), 'remove_step', jsonb_build_object('stepId', pg_temp.step('door deep', 'n'))));
SELECT pg_temp.bot(format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('door deep'), 'update_step_instructions', jsonb_build_object('stepId', pg_temp.step('door deep', 'deploy'), 'instructions', 'x')));
SELECT pg_temp.bot(format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('door deep'), 'reorder_steps', jsonb_build_object('stepIds', ARRAY[pg_temp.step('door deep', 'deploy'), pg_temp.step('door deep', 'n')])));
SELECT pg_temp.bot(format('stepwise.get_next_step(%L)', pg_temp.plan('door deep')));
SELECT pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('door deep', 'n')));
SELECT pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('door calls', 'calls')));
SELECT pg_temp.bot(format('stepwise.cancel_plan(%L)', pg_temp.plan('door asks')));
SELECT pg_temp.bot(format('stepwise.cancel_plan(%L)', pg_temp.plan('door calls')));
SELECT pg_temp.bot(format('stepwise.run(%L)', pg_temp.plan('door deep')));
-- a workflow without a gate may be left out
SELECT pg_temp.make('door none', '[{"name": "n", "workflow": "door inner"}, {"name": "b"}]');
SELECT pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('door none', 'n')));
-- a review that was requested, and a step that it sent back
SELECT pg_temp.make('door asked', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.next('door asked');
SELECT stepwise.request_user_review(pg_temp.step('door asked', 'a'), 'Look') ->> 'stepStatus';
SELECT pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('door asked', 'a')));
SELECT stepwise.submit_user_decision(pg_temp.waiting('door asked', 'a'), 'modify', 'More') ->> 'stepStatus';
SELECT pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('door asked', 'a')));
SELECT pg_temp.bot(format('stepwise.get_next_step(%L)', pg_temp.plan('door asked')));
SELECT pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('door asked', 'a')));
-- the whole plan may be cancelled
SELECT pg_temp.bot(format('stepwise.cancel_plan(%L)', pg_temp.plan('door asked')));
SELECT p.status FROM stepwise.plan AS p WHERE p.id = pg_temp.plan('door asked');

-- ---------- with the right to decide ----------

GRANT EXECUTE ON FUNCTION stepwise.submit_user_decision TO regress_stepwise_bot;
SELECT pg_temp.bot(format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('door inner'), 'update_step_instructions', jsonb_build_object('stepId', pg_temp.step('door inner', 'two'), 'instructions', 'x')));
SELECT pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('free', 'ok')));
SELECT pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('prompt tree', 'ok')));

SELECT pg_temp.unsound();
\set ECHO none
SELECT stepwise.drop_tool('door_deploy') IS NOT NULL;
DROP FUNCTION door_deploy(jsonb);
SELECT stepwise.remove_member('regress_stepwise_bot', 'default') IS NOT NULL;
DROP OWNED BY regress_stepwise_bot;
DROP TABLE door_deployed;
DROP ROLE regress_stepwise_bot;
