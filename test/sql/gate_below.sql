-- A nested plan that fails before a person was asked at the gate in it: in a sequence under on_failure stop, the step that holds it
-- keeps back what follows, as a step does that fails before the gate after it. Changes of the gate change that.

\set ECHO none
\i test/agent.sql
CREATE ROLE regress_stepwise_below;
SELECT stepwise.grant_agent('regress_stepwise_below', decide => false) IS NOT NULL, stepwise.add_member('regress_stepwise_below', 'default') IS NOT NULL;
-- Call a function as an agent that may not decide: its answer in short, or the SQLSTATE.
CREATE FUNCTION pg_temp.bot(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    SET LOCAL ROLE regress_stepwise_below;
    EXECUTE 'SELECT ' || expression INTO answer;
    RESET ROLE;
    RETURN concat_ws(' ', answer ->> 'status', answer ->> 'stepStatus', answer ->> 'name', answer -> 'pauseReason' ->> 'type', CASE WHEN answer ? 'failedBefore' THEN answer ->> 'failedBefore' END);
EXCEPTION WHEN OTHERS THEN
    RESET ROLE;
    RETURN sqlstate;
END $$;
CREATE FUNCTION pg_temp.bot_next(plan text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.bot(format('stepwise.get_next_step(%L)', pg_temp.plan(plan))) $$;
\set ECHO all

-- ---------- the nested plan fails on purpose ----------

-- the agent fails a step of its own before the prompt, and so the nested plan; the deployment behind it is not handed out
SELECT stepwise.define_workflow('{"name": "below asks", "onFailure": "fail", "steps": [{"name": "work"}, {"name": "ask", "prompt": "Deploy?"}]}') ->> 'version';
SELECT pg_temp.make('below', '[{"name": "n", "workflow": "below asks"}, {"name": "deploy"}]', on_failure => 'stop');
SELECT pg_temp.bot_next('below');
SELECT pg_temp.bot(format('stepwise.fail_step(%L, %L)', pg_temp.step('below asks', 'work'), 'on purpose'));
SELECT pg_temp.show('below');
SELECT pg_temp.bot_next('below');
SELECT pg_temp.bot(format('stepwise.submit_step_result(%L, %L)', pg_temp.step('below', 'deploy'), '{}'));
-- it cannot give up the failure or skip the step; it can try again
SELECT pg_temp.bot(format('stepwise.fail_step(%L, %L)', pg_temp.step('below', 'n'), 'x')), pg_temp.bot(format('stepwise.skip_step(%L)', pg_temp.step('below', 'n')));
SELECT w ->> 'message', w -> 'nextCall' ->> 'function' FROM stepwise.why(pg_temp.plan('below')) AS w;
SELECT pg_temp.bot(format('stepwise.retry_step(%L)', pg_temp.step('below', 'n'))), pg_temp.bot_next('below');
SELECT pg_temp.submit('below asks', 'work'), pg_temp.bot_next('below') ~ '^awaiting_review';
SELECT stepwise.resume(pg_temp.waiting('below asks', 'ask'), '"yes"') ->> 'planStatus', pg_temp.bot_next('below');
-- who may decide lets the plan go on
SELECT pg_temp.make('below', '[{"name": "n", "workflow": "below asks"}, {"name": "deploy"}]', on_failure => 'stop');
SELECT pg_temp.next('below'), pg_temp.fail('below asks', 'work'), pg_temp.bot_next('below');
SELECT pg_temp.fail('below', 'n'), pg_temp.bot_next('below');

-- ---------- which gates count ----------

CREATE FUNCTION pg_temp.after_failure(steps jsonb, fails text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stepwise.define_workflow(jsonb_build_object('name', 'below some', 'onFailure', 'fail', 'steps', steps));
    PERFORM pg_temp.make('some', '[{"name": "n", "workflow": "below some"}, {"name": "deploy"}]', on_failure => 'stop');
    FOR i IN 1 .. 10 LOOP
        PERFORM stepwise.get_next_step(pg_temp.plan('some'));
        EXIT WHEN (SELECT s.status = 'in_progress' FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('below some', fails)));
        PERFORM stepwise.resume(k.id, '1') FROM stepwise.checkpoint AS k WHERE k.root_id = (SELECT pg_temp.plan('some'));
        PERFORM stepwise.submit_step_result(s.id, '1') FROM stepwise.step AS s WHERE s.root_id = (SELECT pg_temp.plan('some')) AND s.status = 'in_progress' AND s.workflow IS NULL;
    END LOOP;
    PERFORM stepwise.fail_step(pg_temp.step('below some', fails), 'no');
    RETURN (SELECT s.status FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('some', 'n'))) || ', then ' || pg_temp.next('some');
END $$;
-- no gate: agents go on; a gate that was passed: likewise; one that was left out by its condition: likewise
SELECT pg_temp.after_failure('[{"name": "work"}, {"name": "more"}]', 'work');
SELECT pg_temp.after_failure('[{"name": "ask", "prompt": "Well?"}, {"name": "work"}]', 'work');
SELECT pg_temp.after_failure('[{"name": "ask", "prompt": "Well?", "condition": "false"}, {"name": "work"}]', 'work');
-- a review that is to come; one of two gates that is to come; one deeper, in a plan that is open or not
SELECT pg_temp.after_failure('[{"name": "work"}, {"name": "more", "review": {"when": "before"}}]', 'work') ~ 'failed, then paused';
SELECT pg_temp.after_failure('[{"name": "ask", "prompt": "Well?"}, {"name": "work"}, {"name": "sure", "prompt": "Sure?"}]', 'work') ~ 'failed, then paused';
SELECT pg_temp.after_failure('[{"name": "work"}, {"name": "deep", "workflow": "below asks"}]', 'work') ~ 'failed, then paused';
SELECT pg_temp.after_failure('[{"name": "deep", "workflow": "below asks", "dependsOn": []}, {"name": "work", "dependsOn": []}]', 'work') ~ 'failed, then paused';
-- the nested plan cannot be opened
SELECT stepwise.define_workflow('{"name": "below needs", "inputs": {"x": {"type": "integer"}}, "steps": [{"name": "ask", "prompt": "Well?"}]}') ->> 'version';
SELECT pg_temp.make('needs', '[{"name": "n", "workflow": "below needs", "arguments": {"x": "${inputs.x}"}}, {"name": "deploy"}]', inputs => '{"x": "text"}', on_failure => 'stop');
SELECT pg_temp.next('needs') ~ '^paused';

-- ---------- the gate is changed ----------

-- without its gate, a step that has failed holds back nothing any more; with a new one it does
SELECT pg_temp.make('change', '[{"name": "build", "tool": "t", "review": {"when": "after"}}, {"name": "deploy"}]', on_failure => 'stop');
SELECT pg_temp.next('change'), stepwise.record_tool_result(pg_temp.plan('change'), 't', '"broke"', is_error => true) ->> 'stepStatus';
SELECT pg_temp.next('change') ~ '^paused', pg_temp.bot(format('stepwise.modify_plan(%L, %L, %L)', pg_temp.plan('change'), 'update_step', '{"step": "build", "review": null}'));
SELECT stepwise.modify_plan(pg_temp.plan('change'), 'update_step', '{"step": "build", "review": null}') ->> 'stepStatus';
SELECT s.holds, p.holding FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.id = s.plan_id WHERE s.id = (SELECT pg_temp.step('change', 'build'));
SELECT stepwise.modify_plan(pg_temp.plan('change'), 'update_step', '{"step": "build", "review": {"when": "after"}}') ->> 'stepStatus', pg_temp.next('change') ~ '^paused';
SELECT stepwise.modify_plan(pg_temp.plan('change'), 'update_step', '{"step": "build", "review": {"when": "before"}}') ->> 'stepStatus', pg_temp.next('change');

SELECT pg_temp.unsound();
\set ECHO none
SELECT stepwise.remove_member('regress_stepwise_below', 'default') IS NOT NULL;
DROP OWNED BY regress_stepwise_below;
DROP ROLE regress_stepwise_below;
