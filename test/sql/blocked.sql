-- Pause reasons that block an agent: their keys, and what clears them. (Test "pause" has the pause reasons of a run.)

\set ECHO none
\i test/agent.sql
CREATE FUNCTION pg_temp.reason(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.plain(p.pause_reason) FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan($1))
$$;
\set ECHO all

-- ---------- each with its keys ----------

-- unresolvableParams: blockedStep, missingParam, suggestedTool
SELECT pg_temp.make('params', '[{"name": "a", "tool": "t", "arguments": {"x": 1, "y": "${inputs.o.k}"}}, {"name": "b"}]', inputs => '{"o": {}}');
SELECT pg_temp.next('params');
-- conditionError: blockedStep, condition, error
SELECT pg_temp.make('condition', '[{"name": "a", "condition": "${inputs.o.k} > 1"}, {"name": "b"}]', inputs => '{"o": {}}');
SELECT pg_temp.next('condition');
-- unresolvedDependency: blockedStep, missingOutput, producingStep, suggestedTool, producingTool
SELECT pg_temp.make('dependency', '[{"name": "a", "tool": "make"}, {"name": "b", "tool": "use", "arguments": {"x": "${steps.a.outputs.k}"}}, {"name": "c"}]');
SELECT pg_temp.fail('dependency', 'a');
SELECT pg_temp.next('dependency');
-- toolError: failedStep, error, code, retryable, suggestedTool
SELECT pg_temp.make('error', '[{"name": "a", "tool": "t"}, {"name": "b"}]', on_failure => 'pause');
SELECT stepwise.fail_step(pg_temp.step('error', 'a'), 'out of paper', true) ->> 'planStatus';
SELECT pg_temp.next('error');
-- inputRequired: blockedStep, prompt, checkpointId
SELECT pg_temp.make('input', '[{"name": "a", "prompt": "Well?"}, {"name": "b"}]');
SELECT pg_temp.next('input');
-- reviewRequested: blockedStep, summary, questions, checkpointId
SELECT pg_temp.make('review', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.next('review');
SELECT stepwise.request_user_review(pg_temp.step('review', 'a'), 'Look', '["Good?"]') ->> 'planStatus';
SELECT pg_temp.next('review');

-- a blocked step stays pending, one with an error failed, one that waits awaiting_input; the later ones are pending
SELECT p.name, p.status, array_agg(s.name || ' ' || s.status ORDER BY s.step_order)
FROM stepwise.plan AS p JOIN stepwise.step AS s ON s.plan_id = p.id, began
WHERE p.created_at >= began.at GROUP BY p.id, p.name, p.status ORDER BY p.id;
-- each is audited once, when it appears
SELECT pg_temp.next('params'), pg_temp.next('params');
SELECT p.name, count(*) FROM stepwise.plan AS p JOIN stepwise.audit AS a ON a.plan_id = p.id AND a.event = 'plan_paused', began
WHERE p.created_at >= began.at GROUP BY p.id, p.name ORDER BY p.id;

-- ---------- what clears them ----------

-- skipping the blocked step, which cannot be submitted, retrying the failed step, answering the prompt
SELECT pg_temp.try($$pg_temp.submit('params', 'a')$$);
SELECT stepwise.skip_step(pg_temp.step('params', 'a')) ->> 'stepStatus', pg_temp.reason('params');
SELECT stepwise.skip_step(pg_temp.step('condition', 'a')) ->> 'stepStatus', pg_temp.reason('condition');
SELECT stepwise.retry_step(pg_temp.step('error', 'a')) ->> 'stepStatus';
SELECT pg_temp.reason('error');
SELECT stepwise.resume(pg_temp.waiting('input', 'a'), '1') ->> 'status';
SELECT pg_temp.reason('input');
SELECT stepwise.submit_user_decision(pg_temp.waiting('review', 'a'), 'modify', 'more') ->> 'stepStatus';
SELECT pg_temp.reason('review');
SELECT stepwise.retry_step(pg_temp.step('dependency', 'a')) ->> 'stepStatus';
SELECT pg_temp.reason('dependency');
SELECT pg_temp.submit('dependency', 'a', '{"k": 1}');
SELECT pg_temp.next('dependency');
-- the end of the plan
SELECT pg_temp.make('ends', '[{"name": "a"}, {"name": "b"}]', on_failure => 'pause');
SELECT pg_temp.fail('ends', 'a');
SELECT stepwise.cancel_plan(pg_temp.plan('ends')) ->> 'planStatus';
SELECT pg_temp.reason('ends') IS NULL;

-- ---------- several: the first step that still blocks, in order ----------

SELECT pg_temp.make('several', '[{"name": "a", "arguments": {"x": "${inputs.o.k}"}}, {"name": "b", "prompt": "Well?"}, {"name": "c"}, {"name": "d", "dependsOn": ["c"], "condition": "${inputs.o.k}"}]', inputs => '{"o": {}}', on_failure => 'pause');
SELECT pg_temp.next('several');
SELECT pg_temp.fail('several', 'c');
SELECT pg_temp.next('several');
SELECT stepwise.skip_step(pg_temp.step('several', 'a')) ->> 'stepStatus';
SELECT pg_temp.reason('several');
SELECT stepwise.resume(pg_temp.waiting('several', 'b'), '1') ->> 'status';
SELECT pg_temp.reason('several');
SELECT stepwise.retry_step(pg_temp.step('several', 'c')) ->> 'stepStatus';
SELECT pg_temp.reason('several') IS NULL;
SELECT pg_temp.next('several');
SELECT pg_temp.submit('several', 'c');
SELECT pg_temp.next('several');
SELECT a.detail -> 'reason' ->> 'type' FROM stepwise.audit AS a WHERE a.plan_id = (SELECT pg_temp.plan('several')) AND a.event = 'plan_paused' ORDER BY a.id;

-- in a sequence the first blocked step stops the search
SELECT pg_temp.make('stops', '[{"name": "a"}, {"name": "b", "arguments": {"x": "${inputs.o.k}"}}, {"name": "c", "condition": "${inputs.o.k}"}]', inputs => '{"o": {}}');
SELECT pg_temp.next('stops');
SELECT pg_temp.next('stops');
SELECT count(*) FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('stops')) AND s.pause_reason IS NOT NULL;

-- ---------- below ----------

-- a reason appears at every level above, with its path, and is cleared at every level
SELECT stepwise.define_workflow('{"name": "pause c", "onFailure": "pause", "steps": [{"name": "z", "tool": "t"}]}') ->> 'version';
SELECT stepwise.define_workflow('{"name": "pause b", "steps": [{"name": "y", "workflow": "pause c"}]}') ->> 'version';
SELECT pg_temp.make('pause a', '[{"name": "x", "workflow": "pause b"}]');
SELECT pg_temp.next('pause a');
SELECT pg_temp.fail('pause c', 'z');
SELECT pg_temp.show('pause a'), pg_temp.show('pause b'), pg_temp.show('pause c');
SELECT pg_temp.next('pause a');
SELECT pg_temp.next('pause b');
SELECT stepwise.retry_step(pg_temp.step('pause c', 'z')) ->> 'stepStatus';
SELECT pg_temp.reason('pause a') IS NULL, pg_temp.reason('pause b') IS NULL, pg_temp.reason('pause c') IS NULL;
SELECT pg_temp.next('pause a');
SELECT pg_temp.submit('pause c', 'z');
SELECT pg_temp.next('pause a');

SELECT pg_temp.unsound();
