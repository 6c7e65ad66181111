-- What the functions tell agrees with what they do. why, handoff and nextCall agree with get_next_step. The pause reason of a plan
-- agrees with the steps that block it. A run agrees with the failures that stop it. A plan that has ended has no waiting step.

\set ECHO none
\i test/agent.sql
CREATE FUNCTION agree_fine(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
SELECT stepwise.register_tool('agree_fine', 'agree_fine(jsonb)') IS NOT NULL \g /dev/null
\set ECHO all

-- The answer of why: whom the plan waits for, the message, and the call with its step. Checks that handoff and nextCall tell the same.
CREATE FUNCTION pg_temp.told(plan text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    w jsonb := stepwise.why(pg_temp.plan(plan));
BEGIN
    ASSERT stepwise.get_plan_context(pg_temp.plan(plan)) -> 'nextCall' = w -> 'nextCall', 'nextCall';
    ASSERT position(w ->> 'message' IN stepwise.handoff(pg_temp.plan(plan))) > 0, 'handoff';
    RETURN concat_ws(' | ', w ->> 'waitingOn', w ->> 'message', w -> 'nextCall' ->> 'function',
        (SELECT s.name || coalesce('#' || (w -> 'nextCall' -> 'arguments' ->> 'attempt'), '') FROM stepwise.step AS s
         WHERE s.id = (w -> 'nextCall' -> 'arguments' ->> 'step_id')::uuid));
END $$;
CREATE FUNCTION pg_temp.reason(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', p.pause_reason ->> 'type', coalesce(p.pause_reason ->> 'blockedStep', p.pause_reason ->> 'failedStep'))
    FROM stepwise.plan AS p WHERE p.id = pg_temp.plan(plan)
$$;
CREATE FUNCTION pg_temp.ran(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg((s ->> 'name') || ' ' || (s ->> 'status'), ', ')
    FROM stepwise.run(pg_temp.plan(plan)) AS r, jsonb_array_elements(r -> 'steps') AS s
$$;

-- ---------- what comes next ----------

-- the next step reads the result of a step in progress: why names the submission of that step
SELECT pg_temp.make('reads', '[{"name": "a"}, {"name": "b", "arguments": {"x": "${steps.a.outputs.n}"}}]');
SELECT pg_temp.told('reads');
SELECT pg_temp.next('reads', 'anna');
SELECT pg_temp.told('reads');
SELECT pg_temp.next('reads', 'bert');
SELECT pg_temp.submit('reads', 'a', '{"n": 1}', attempt => 1);
SELECT pg_temp.told('reads');
SELECT pg_temp.next('reads');

-- the same for a condition, instructions and a prompt; of several claims, the one that is read is named
SELECT pg_temp.make('reads2', '[{"name": "a"}, {"name": "b"}, {"name": "c", "condition": "${steps.b.succeeded}"}, {"name": "d", "instructions": "see ${steps.a.outputs.n}"}, {"name": "e", "prompt": "Keep ${steps.a.outputs.n}?"}]');
SELECT pg_temp.next('reads2'), pg_temp.next('reads2');
SELECT pg_temp.told('reads2');
SELECT pg_temp.submit('reads2', 'b');
SELECT pg_temp.told('reads2');
SELECT pg_temp.next('reads2');
SELECT pg_temp.told('reads2');
SELECT pg_temp.submit('reads2', 'c');
SELECT pg_temp.told('reads2');
SELECT stepwise.skip_step(pg_temp.step('reads2', 'd')) ->> 'stepStatus';
SELECT pg_temp.told('reads2');

-- with dependencies: an open step blocks its dependents, and the other steps are handed out
SELECT pg_temp.make('waits', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": []}]');
SELECT pg_temp.next('waits');
SELECT pg_temp.told('waits');
SELECT pg_temp.next('waits');
SELECT pg_temp.told('waits');

-- the value comes from a nested plan
SELECT stepwise.define_workflow('{"name": "agree low", "steps": [{"name": "l"}, {"name": "l2"}]}') ->> 'version';
SELECT pg_temp.make('below', '[{"name": "h", "workflow": "agree low"}, {"name": "r", "arguments": {"x": "${steps.h.steps.l.outputs.n}"}}]');
SELECT pg_temp.next('below'), pg_temp.next('below');
SELECT pg_temp.told('below'), pg_temp.next('below');
SELECT pg_temp.submit('agree low', 'l', '{"n": 1}');
SELECT pg_temp.told('below'), pg_temp.next('below');

-- the first nested plan has no step to hand out, but the second has
SELECT pg_temp.make('second', '[{"name": "h", "workflow": "agree low", "dependsOn": []}, {"name": "i", "workflow": "agree low", "dependsOn": []}, {"name": "z", "dependsOn": ["h", "i"]}]');
SELECT pg_temp.next('second'), pg_temp.next('second'), pg_temp.next('second');
SELECT pg_temp.told('second');
SELECT pg_temp.next('second');
SELECT pg_temp.told('second');

-- an expired lease counts as released: the step is handed out again, before the one after it
SELECT pg_temp.make('lease', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.next('lease', lease => '1 microsecond');
SELECT pg_sleep(0.01);
SELECT pg_temp.told('lease');
SELECT pg_temp.next('lease');
SELECT pg_temp.told('lease');
SELECT pg_temp.make('lease2', '[{"name": "a", "dependsOn": []}, {"name": "b"}, {"name": "c", "dependsOn": ["b"]}]');
SELECT pg_temp.next('lease2'), pg_temp.next('lease2', lease => '1 microsecond');
SELECT pg_sleep(0.01);
SELECT pg_temp.told('lease2'), pg_temp.next('lease2');
SELECT pg_temp.told('lease2');
-- also in a nested plan, before steps of the plans above
SELECT pg_temp.make('lease3', '[{"name": "h", "workflow": "agree low"}, {"name": "r"}]');
SELECT pg_temp.next('lease3', lease => '1 microsecond'), pg_temp.next('agree low');
SELECT pg_sleep(0.01);
SELECT pg_temp.told('lease3'), pg_temp.next('lease3');
-- a step that has used all its attempts fails instead, which is a change too
SELECT pg_temp.make('lease4', '[{"name": "a", "maxAttempts": 1}, {"name": "b"}]');
SELECT pg_temp.next('lease4', lease => '1 microsecond');
SELECT pg_sleep(0.01);
SELECT pg_temp.told('lease4'), pg_temp.next('lease4');

-- a stalled claim is released, wherever in the tree it is
SELECT pg_temp.make('silent', '[{"name": "h", "workflow": "agree low", "dependsOn": []}, {"name": "i", "workflow": "agree low", "dependsOn": []}]');
SELECT pg_temp.next('silent'), pg_temp.next('silent'), pg_temp.next('silent');
SELECT stepwise.release_step(s.id) ->> 'stepStatus' FROM stepwise.step AS s
WHERE s.root_id = pg_temp.plan('silent') AND s.status = 'in_progress' AND s.workflow IS NULL AND s.plan_id <> pg_temp.plan('agree low');
SELECT stepwise.get_plan_status(pg_temp.plan('silent'), '0') ->> 'status';
SELECT pg_temp.told('silent'), (stepwise.why(pg_temp.plan('silent')) -> 'nextCall' -> 'arguments' ->> 'step_id')::uuid = pg_temp.step('agree low', 'l');

-- ---------- what is handed out ----------

-- a pause in a nested plan ends: the step that waited for it in the plan between is ready, and is handed out
SELECT stepwise.define_workflow('{"name": "agree c", "onFailure": "pause", "steps": [{"name": "x", "dependsOn": []}, {"name": "y", "dependsOn": []}]}') ->> 'version';
SELECT stepwise.define_workflow('{"name": "agree b", "steps": [{"name": "h", "workflow": "agree c"}, {"name": "m"}]}') ->> 'version';
SELECT pg_temp.make('middle', '[{"name": "g", "workflow": "agree b"}, {"name": "r"}]');
SELECT pg_temp.next('middle'), pg_temp.next('middle');
SELECT pg_temp.fail('agree c', 'x');
SELECT pg_temp.next('middle');
SELECT stepwise.skip_step(pg_temp.step('agree c', 'x')) ->> 'stepStatus';
SELECT pg_temp.told('middle'), pg_temp.next('middle'), pg_temp.next('middle');

-- the same for a value that the plan between reads from a nested plan
SELECT stepwise.define_workflow('{"name": "agree d", "steps": [{"name": "h", "workflow": "agree low"}, {"name": "m", "arguments": {"x": "${steps.h.steps.l.outputs.n}"}}, {"name": "n"}]}') ->> 'version';
SELECT pg_temp.make('middle2', '[{"name": "g", "workflow": "agree d"}]');
SELECT pg_temp.next('middle2'), pg_temp.next('middle2'), pg_temp.next('middle2');
SELECT pg_temp.submit('agree low', 'l', '{"n": 1}');
SELECT pg_temp.told('middle2'), pg_temp.next('middle2');
SELECT stepwise.define_workflow('{"name": "agree e", "steps": [{"name": "h", "workflow": "agree low"}, {"name": "m", "condition": "${steps.h.steps.l.outputs.n} > 0"}]}') ->> 'version';
SELECT pg_temp.make('middle3', '[{"name": "g", "workflow": "agree e"}]');
SELECT pg_temp.next('middle3'), pg_temp.next('middle3'), pg_temp.next('middle3');
SELECT pg_temp.submit('agree low', 'l', '{"n": 1}');
SELECT pg_temp.told('middle3'), pg_temp.next('middle3');

-- whatever stops a sequence also stops plans nested in later steps: a failure under pause, a person, a pause in a nested plan; the same in a run
SELECT stepwise.define_workflow('{"name": "agree behind", "steps": [{"name": "x"}, {"name": "y"}]}') ->> 'version';
SELECT pg_temp.make('behind', '[{"name": "a"}, {"name": "h", "workflow": "agree behind"}]', on_failure => 'pause');
SELECT pg_temp.next('behind'), pg_temp.next('behind');
SELECT pg_temp.fail('behind', 'a');
SELECT pg_temp.told('behind'), pg_temp.next('behind');
-- a call for the nested plan itself gets no step either
SELECT pg_temp.next('agree behind');
SELECT stepwise.skip_step(pg_temp.step('behind', 'a')) ->> 'stepStatus';
SELECT pg_temp.told('behind'), pg_temp.next('behind');
SELECT pg_temp.make('behind2', '[{"name": "a"}, {"name": "h", "workflow": "agree behind"}]');
SELECT pg_temp.next('behind2'), pg_temp.next('behind2');
SELECT stepwise.request_user_review(pg_temp.step('behind2', 'a'), 'Look') ->> 'stepStatus';
SELECT pg_temp.told('behind2'), pg_temp.next('behind2');
SELECT stepwise.submit_user_decision(pg_temp.waiting('behind2', 'a'), 'approve') ->> 'stepStatus';
SELECT pg_temp.told('behind2'), pg_temp.next('behind2');
-- with dependencies, independent steps go on
SELECT pg_temp.make('behind3', '[{"name": "a", "dependsOn": []}, {"name": "h", "workflow": "agree behind", "dependsOn": []}]', on_failure => 'pause');
SELECT pg_temp.next('behind3'), pg_temp.next('behind3');
SELECT pg_temp.fail('behind3', 'a');
SELECT pg_temp.next('behind3');

-- ---------- the reason of a plan ----------

-- c is blocked by a, not by b, so a retry of b changes nothing for c
SELECT pg_temp.make('still', '[{"name": "a"}, {"name": "b"}, {"name": "c", "arguments": {"x": "${steps.a.outputs.n}"}}]');
SELECT pg_temp.next('still'), pg_temp.next('still');
SELECT pg_temp.fail('still', 'a'), pg_temp.fail('still', 'b');
SELECT pg_temp.next('still');
SELECT stepwise.retry_step(pg_temp.step('still', 'b')) ->> 'stepStatus';
SELECT pg_temp.reason('still');
SELECT s.message FROM stepwise.step AS s WHERE s.id = pg_temp.step('still', 'c');
SELECT stepwise.retry_step(pg_temp.step('still', 'a')) ->> 'stepStatus';
SELECT pg_temp.reason('still') = '', pg_temp.told('still');
-- the same with a condition that neither of the two decides
SELECT pg_temp.make('still2', '[{"name": "a"}, {"name": "b"}, {"name": "c", "condition": "${inputs.x} > 1 or ${steps.b.outputs.n} > 1"}]', inputs => '{"x": "one"}');
SELECT pg_temp.next('still2'), pg_temp.next('still2');
SELECT pg_temp.fail('still2', 'a'), pg_temp.fail('still2', 'b'), pg_temp.next('still2') ~ 'conditionError';
SELECT stepwise.retry_step(pg_temp.step('still2', 'a')) ->> 'stepStatus';
SELECT pg_temp.reason('still2');
SELECT stepwise.retry_step(pg_temp.step('still2', 'b')) ->> 'stepStatus';
SELECT pg_temp.reason('still2') = '';
-- an argument blocks c, but its condition depends on b, which is next now
SELECT pg_temp.make('still4', '[{"name": "b"}, {"name": "c", "condition": "${steps.b.failed}", "arguments": {"x": "${inputs.o.k}"}}, {"name": "d"}]', inputs => '{"o": {}}');
SELECT pg_temp.next('still4'), pg_temp.fail('still4', 'b'), pg_temp.next('still4') ~ 'unresolvableParams';
SELECT stepwise.retry_step(pg_temp.step('still4', 'b')) ->> 'stepStatus';
SELECT pg_temp.reason('still4') = '', pg_temp.told('still4'), pg_temp.next('still4'), pg_temp.submit('still4', 'b'), pg_temp.next('still4');
-- a retry in a nested plan: a step above that reads its result waits for it
SELECT stepwise.define_workflow('{"name": "agree f", "steps": [{"name": "l"}, {"name": "l2"}]}') ->> 'version';
SELECT pg_temp.make('still3', '[{"name": "h", "workflow": "agree f"}, {"name": "c", "arguments": {"x": "${steps.h.steps.l.outputs.n}"}}]');
SELECT pg_temp.next('still3'), pg_temp.next('still3'), pg_temp.fail('agree f', 'l'), pg_temp.next('still3');
SELECT stepwise.retry_step(pg_temp.step('agree f', 'l')) ->> 'stepStatus';
SELECT pg_temp.reason('still3') = '', pg_temp.told('still3');

-- new instructions do not give an argument its value
SELECT pg_temp.make('instruct', '[{"name": "a", "instructions": "go", "arguments": {"x": "${inputs.o.k}"}}]', inputs => '{"o": {}, "p": 1}');
SELECT pg_temp.next('instruct');
SELECT stepwise.modify_plan(pg_temp.plan('instruct'), 'update_step_instructions', jsonb_build_object('stepId', pg_temp.step('instruct', 'a'), 'instructions', 'go slowly')) ->> 'stepStatus';
SELECT pg_temp.reason('instruct');
SELECT count(*) FROM pg_temp.log('instruct', 'plan_paused');
-- but they do if the instructions were the cause
SELECT pg_temp.make('instruct2', '[{"name": "a", "instructions": "go to ${inputs.o.k}"}]', inputs => '{"o": {}, "p": 1}');
SELECT pg_temp.next('instruct2');
SELECT stepwise.modify_plan(pg_temp.plan('instruct2'), 'update_step_instructions', jsonb_build_object('stepId', pg_temp.step('instruct2', 'a'), 'instructions', 'go to ${inputs.o.l}')) ->> 'stepStatus';
SELECT pg_temp.reason('instruct2');
SELECT stepwise.modify_plan(pg_temp.plan('instruct2'), 'update_step_instructions', jsonb_build_object('stepId', pg_temp.step('instruct2', 'a'), 'instructions', 'go to ${inputs.p}')) ->> 'stepStatus';
SELECT pg_temp.reason('instruct2') = '', pg_temp.next('instruct2');
-- a step for a client tool stays one, with the new instructions
SELECT pg_temp.make('instruct3', '[{"name": "a", "instructions": "go"}, {"name": "b"}]');
SELECT pg_temp.ran('instruct3');
SELECT stepwise.modify_plan(pg_temp.plan('instruct3'), 'update_step_instructions', jsonb_build_object('stepId', pg_temp.step('instruct3', 'a'), 'instructions', 'go on')) ->> 'stepStatus';
SELECT pg_temp.reason('instruct3'), p.pause_reason ->> 'instructions' FROM stepwise.plan AS p WHERE p.id = pg_temp.plan('instruct3');

-- ---------- a run, and what stops it ----------

-- under pause a failure stops a run, also one that happens during the run: no step after it in order is done
SELECT stepwise.define_workflow('{"name": "agree need", "inputs": {"n": {"type": "integer"}}, "steps": [{"name": "l"}]}') ->> 'version';
SELECT pg_temp.make('stops', '[{"name": "a", "workflow": "agree need", "arguments": {"n": "x"}, "dependsOn": []}, {"name": "b", "tool": "agree_fine", "dependsOn": []}]', on_failure => 'pause');
SELECT pg_temp.ran('stops'), pg_temp.reason('stops');
SELECT pg_temp.make('stops2', '[{"name": "a", "maxAttempts": 1, "dependsOn": []}, {"name": "b", "tool": "agree_fine", "dependsOn": []}]', on_failure => 'pause');
SELECT pg_temp.next('stops2');
SELECT stepwise.release_step(pg_temp.step('stops2', 'a')) ->> 'stepStatus';
SELECT pg_temp.ran('stops2'), pg_temp.reason('stops2');
-- an agent may continue with steps that do not depend on it
SELECT pg_temp.next('stops2');

-- steps before it are done
SELECT pg_temp.make('before', '[{"name": "a", "tool": "agree_fine", "dependsOn": []}, {"name": "b", "dependsOn": []}, {"name": "c", "tool": "agree_fine", "dependsOn": ["a"]}, {"name": "d", "tool": "agree_fine", "dependsOn": ["a"]}]', on_failure => 'pause');
SELECT pg_temp.fail('before', 'b');
SELECT pg_temp.ran('before'), pg_temp.reason('before');
SELECT pg_temp.make('before2', '[{"name": "a", "tool": "agree_fine"}, {"name": "b"}, {"name": "c", "tool": "agree_fine"}]', on_failure => 'pause');
SELECT pg_temp.fail('before2', 'b');
SELECT pg_temp.ran('before2'), pg_temp.reason('before2');
-- a nested plan counts at the place of its step
SELECT stepwise.define_workflow('{"name": "agree runs", "steps": [{"name": "l", "tool": "agree_fine"}]}') ->> 'version';
SELECT pg_temp.make('before3', '[{"name": "a", "workflow": "agree runs", "dependsOn": []}, {"name": "b", "dependsOn": []}, {"name": "c", "workflow": "agree runs", "dependsOn": []}]', on_failure => 'pause');
SELECT pg_temp.next('before3'), pg_temp.next('before3'), pg_temp.next('before3');
SELECT stepwise.release_step(s.id) ->> 'stepStatus' FROM stepwise.step AS s WHERE s.root_id = pg_temp.plan('before3') AND s.name = 'l' ORDER BY s.id;
SELECT pg_temp.fail('before3', 'b');
SELECT pg_temp.ran('before3'), pg_temp.reason('before3');
SELECT stepwise.skip_step(pg_temp.step('before3', 'b')) ->> 'stepStatus';
SELECT pg_temp.ran('before3');

-- ---------- a plan that has ended ----------

-- its checkpoints are closed, and answering one is too late; its steps stay as they are
SELECT pg_temp.make('ended', '[{"name": "a"}, {"name": "ask", "prompt": "Well?", "dependsOn": []}, {"name": "look"}, {"name": "stuck", "arguments": {"x": "${inputs.o.k}"}}]', inputs => '{"o": {}}', on_failure => 'fail');
SELECT pg_temp.next('ended'), pg_temp.next('ended');
SELECT stepwise.request_user_review(pg_temp.step('ended', 'look'), 'Look') ->> 'stepStatus';
SELECT pg_temp.waiting('ended', 'ask') AS ask, pg_temp.waiting('ended', 'look') AS look \gset
SELECT pg_temp.next('ended') ~ 'awaiting_review';
SELECT pg_temp.fail('ended', 'a');
SELECT pg_temp.reason('ended') = '', pg_temp.waiting('ended', 'ask') IS NULL, pg_temp.waiting('ended', 'look') IS NULL;
SELECT s.name, s.status, s.pause_reason ->> 'type' FROM stepwise.step AS s WHERE s.plan_id = pg_temp.plan('ended') ORDER BY s.step_order;
SELECT pg_temp.try(format('stepwise.resume(%L, %L)', :'ask', '1')) ~ '^SW009', pg_temp.try(format('stepwise.submit_user_decision(%L, %L)', :'look', 'approve')) ~ '^SW009';
SELECT stepwise.get_step_context(pg_temp.step('ended', 'ask')) ->> 'checkpoint' IS NULL;
-- for every way to end
SELECT pg_temp.make('ended2', '[{"name": "a"}, {"name": "ask", "prompt": "Well?"}]');
SELECT pg_temp.next('ended2'), pg_temp.next('ended2') ~ 'awaiting_review';
SELECT stepwise.cancel_plan(pg_temp.plan('ended2')) ->> 'planStatus', pg_temp.waiting('ended2', 'ask') IS NULL, pg_temp.reason('ended2') = '';
SELECT pg_temp.make('ended3', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.next('ended3'), pg_temp.next('ended3');
SELECT stepwise.request_user_review(pg_temp.step('ended3', n), 'Look') ->> 'planStatus' FROM unnest('{a,b}'::text[]) AS n;
SELECT pg_temp.waiting('ended3', 'b') AS look \gset
SELECT stepwise.submit_user_decision(pg_temp.waiting('ended3', 'a'), 'reject', 'no') ->> 'planStatus', pg_temp.waiting('ended3', 'b') IS NULL, pg_temp.reason('ended3') = '';
SELECT pg_temp.try(format('stepwise.submit_user_decision(%L, %L)', :'look', 'approve')) ~ '^SW009';

-- a step that holds a nested plan is no longer paused, since that plan has ended too. execution and execution_as_of agree
SELECT stepwise.define_workflow('{"name": "agree g", "steps": [{"name": "l", "tool": "agree_client"}]}') ->> 'version';
SELECT pg_temp.make('ended4', '[{"name": "h", "workflow": "agree g", "dependsOn": []}, {"name": "b", "dependsOn": []}]', on_failure => 'fail');
SELECT pg_temp.ran('ended4'), pg_temp.reason('ended4');
SELECT pg_temp.fail('ended4', 'b');
SELECT s.name, s.status, s.pause_reason IS NULL FROM stepwise.step AS s WHERE s.plan_id = pg_temp.plan('ended4') ORDER BY s.step_order;
SELECT tree -> 'blocks' -> 'h' -> 'metadata' ->> 'status' FROM unnest(ARRAY[stepwise.execution(pg_temp.plan('ended4')),
    stepwise.execution_as_of(pg_temp.plan('ended4'), clock_timestamp())]) AS tree;

-- ---------- the same review, requested again ----------

-- the step that holds the nested plan of this review is another step
SELECT pg_temp.make('again', '[{"name": "h", "workflow": "agree low"}]');
SELECT pg_temp.next('again');
SELECT stepwise.request_user_review(pg_temp.step('agree low', 'l'), 'Look', '["Well?"]') ->> 'stepStatus';
SELECT stepwise.request_user_review(pg_temp.step('agree low', 'l'), 'Look', '["Well?"]') ->> 'duplicate';
SELECT pg_temp.try(format('stepwise.request_user_review(%L, %L, %L)', pg_temp.step('again', 'h'), 'Look', '["Well?"]'));
-- another summary or other questions make another review
SELECT pg_temp.try(format('stepwise.request_user_review(%L, %L, %L)', pg_temp.step('agree low', 'l'), 'Look', '[]'));
-- in a plan that has ended nothing waits any more
SELECT pg_temp.try(format('stepwise.request_user_review(%L, %L)', pg_temp.step('ended', 'look'), 'Look'));
SELECT pg_temp.try(format('stepwise.request_user_review(%L, %L)', pg_temp.step('ended3', 'b'), 'Look'));

-- ---------- stalled, and going on ----------

-- a claim wakes every plan above it, also if a plan between was not stalled
SELECT stepwise.define_workflow('{"name": "agree s2", "steps": [{"name": "l"}, {"name": "k"}]}') ->> 'version',
    stepwise.define_workflow('{"name": "agree s1", "steps": [{"name": "i", "workflow": "agree s2"}]}') ->> 'version',
    stepwise.define_workflow('{"name": "agree s0", "steps": [{"name": "quiet"}, {"name": "h", "workflow": "agree s1"}]}') ->> 'version';
SELECT pg_temp.make('levels', '[{"name": "g", "workflow": "agree s0"}]');
SELECT pg_temp.next('levels'), pg_temp.next('levels');
SELECT stepwise.release_step(pg_temp.step('agree s2', 'l')) ->> 'stepStatus';
SELECT stepwise.get_plan_status(pg_temp.plan('agree s0'), '0') ->> 'status', stepwise.get_plan_status(pg_temp.plan('agree s1'), '0') ->> 'status';
SELECT pg_temp.next('levels');
SELECT p.name, p.status FROM stepwise.plan AS p WHERE p.root_id = pg_temp.plan('levels') ORDER BY p.depth;

SELECT pg_temp.unsound();
SELECT stepwise.drop_tool('agree_fine') IS NOT NULL;
DROP FUNCTION agree_fine(jsonb);
