-- Reviews: requests, the four decisions, approval only of what was shown, single use. Also prompts and their answers.

\set ECHO none
\i test/agent.sql
-- Decide the review at which a step waits.
CREATE FUNCTION pg_temp.decide(plan text, step text, decision text, feedback text = NULL, answers jsonb = NULL, decided_by text = NULL)
RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'decision', a ->> 'stepStatus', a ->> 'planStatus', 'branch ' || (a -> 'branch' ->> 'action'))
    FROM stepwise.submit_user_decision(pg_temp.waiting(plan, step), decision, feedback, answers, decided_by) AS a
$$;
-- Request a review of a step. A step that nobody has claimed is started by hand first.
CREATE FUNCTION pg_temp.review(plan text, step text, summary text = 'Look', questions jsonb = '[]') RETURNS text LANGUAGE sql AS $$
    UPDATE stepwise.step SET status = 'in_progress' WHERE id = pg_temp.step($1, $2) AND status = 'pending' AND prompt IS NULL;
    SELECT concat_ws(' ', a ->> 'stepStatus', a ->> 'planStatus', CASE WHEN a ? 'duplicate' THEN 'duplicate' END)
    FROM stepwise.request_user_review(pg_temp.step(plan, step), summary, questions, attempt => pg_temp.attempt(pg_temp.step(plan, step))) AS a
$$;
\set ECHO all

-- ---------- requested ----------

SELECT pg_temp.make('ask', '[{"name": "a", "instructions": "Do it"}, {"name": "b"}]');
SELECT pg_temp.next('ask', 'anna', '1 hour');
SELECT pg_temp.plain(stepwise.request_user_review(pg_temp.step('ask', 'a'), 'Is it good?', '["Why?", {"q": "How?"}]', worker => 'anna'));
-- the same request again, by a client that lost the answer: the same checkpoint
SELECT pg_temp.plain(stepwise.request_user_review(pg_temp.step('ask', 'a'), 'Is it good?', '["Why?", {"q": "How?"}]', worker => 'anna'));
SELECT count(DISTINCT stepwise.request_user_review(pg_temp.step('ask', 'a'), 'Is it good?', '["Why?", {"q": "How?"}]', worker => 'anna') ->> 'checkpointId') FROM generate_series(1, 3);
-- a different request is refused, even if only the questions differ
SELECT pg_temp.try($$stepwise.request_user_review(pg_temp.step('ask', 'a'), 'Is it good?', '["Who?"]')$$);
SELECT pg_temp.try($$stepwise.request_user_review(pg_temp.step('ask', 'a'), 'Is it good?')$$);
SELECT pg_temp.try($$pg_temp.review('ask', 'a', 'Is it bad?')$$);
SELECT pg_temp.show('ask');
SELECT pg_temp.log('ask');
-- the claim has ended; every worker is told to wait
SELECT s.worker, s.holder, s.lease_expires_at FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('ask', 'a'));
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('ask'), 'anna'));
SELECT k.kind, k.prompt, k.path FROM stepwise.checkpoints AS k WHERE k.plan_id = (SELECT pg_temp.plan('ask'));

-- ---------- the four decisions ----------

-- modify: in progress again with the same attempt, and with the feedback below the instructions; the same worker gets it again
SELECT pg_temp.decide('ask', 'a', 'modify', E'Shorter.\nAnd ${kinder}', '{"Why?": "because"}', 'paul');
SELECT s.instructions, s.status, s.attempt, s.worker FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('ask', 'a'));
SELECT pg_temp.next('ask', 'anna');
-- a second review of the step, modified again: each feedback is appended
SELECT pg_temp.review('ask', 'a', 'Better?');
SELECT pg_temp.decide('ask', 'a', 'modify', 'Still shorter');
SELECT s.instructions FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('ask', 'a'));
-- approve: the decision becomes the result of a step without a result
SELECT pg_temp.review('ask', 'a', 'Now?', '["Really?"]');
SELECT pg_temp.decide('ask', 'a', 'approve', 'fine', '{"Really?": true}', 'paul');
SELECT s.result, s.outcome FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('ask', 'a'));
SELECT pg_temp.next('ask', 'anna');
SELECT pg_temp.log('ask', 'user_reviewed');
SELECT a.actor FROM stepwise.audit AS a WHERE a.plan_id = (SELECT pg_temp.plan('ask')) AND a.detail ->> 'action' = 'approve';

-- references in feedback are not resolved
SELECT pg_temp.make('no template', '[{"name": "a", "instructions": "Say ${inputs.x}"}]', inputs => '{"x": "hello"}');
SELECT pg_temp.next('no template', 'anna');
SELECT pg_temp.review('no template', 'a');
SELECT pg_temp.decide('no template', 'a', 'modify', 'not ${inputs.x} nor $${inputs.x}');
SELECT stepwise.get_next_step(pg_temp.plan('no template'), 'anna') ->> 'instructions';
-- a step without instructions gets only the feedback
SELECT pg_temp.make('no words', '[{"name": "a"}]');
SELECT pg_temp.review('no words', 'a');
SELECT pg_temp.decide('no words', 'a', 'modify', 'Do something');
SELECT s.instructions FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('no words', 'a'));

-- reject: the step has failed, and so has the plan, whatever its on_failure
SELECT pg_temp.make('reject', '[{"name": "a"}, {"name": "b"}]', on_failure => 'pause');
SELECT pg_temp.review('reject', 'a');
SELECT pg_temp.decide('reject', 'a', 'reject', 'no good');
SELECT pg_temp.show('reject');
SELECT pg_temp.next('reject');
SELECT pg_temp.make('reject tree', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c"}]');
SELECT pg_temp.review('reject tree', 'a');
SELECT pg_temp.review('reject tree', 'c');
SELECT pg_temp.waiting('reject tree', 'c') AS other \gset
SELECT pg_temp.decide('reject tree', 'a', 'reject');
SELECT pg_temp.show('reject tree');
-- other waiting steps keep their state, but their checkpoints are closed
SELECT count(*) FROM stepwise.checkpoints AS k WHERE k.plan_id = (SELECT pg_temp.plan('reject tree'));
SELECT pg_temp.try(format($$stepwise.submit_user_decision(%L, 'approve')$$, :'other'));

-- skip
SELECT pg_temp.make('skip', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": [{"step": "a", "required": false}]}]');
SELECT pg_temp.review('skip', 'a');
SELECT pg_temp.decide('skip', 'a', 'skip', 'not worth it');
SELECT pg_temp.show('skip');
SELECT pg_temp.next('skip');

-- branching conditions are evaluated after an approved step
SELECT pg_temp.make('branch', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', '[{"afterStepOrder": 1, "conditionExpression": "result.answers.jump == true", "ifTrueAction": "skip_to", "actionParams": {"stepName": "c"}}]');
SELECT pg_temp.review('branch', 'a');
SELECT pg_temp.decide('branch', 'a', 'approve', answers => '{"jump": true}');
SELECT pg_temp.show('branch');

-- the last waiting step approved: through executing to completed
SELECT pg_temp.make('last', '[{"name": "a"}]');
SELECT pg_temp.review('last', 'a');
SELECT pg_temp.decide('last', 'a', 'approve');
SELECT pg_temp.log('last', 'plan_status_changed');

-- ---------- used once ----------

SELECT pg_temp.make('once', '[{"name": "a"}]');
SELECT pg_temp.next('once');
SELECT stepwise.request_user_review(pg_temp.step('once', 'a'), 'Look') ->> 'checkpointId' AS used \gset
SELECT pg_temp.decide('once', 'a', 'modify', 'more');
SELECT pg_temp.try(format($$stepwise.submit_user_decision(%L, 'approve')$$, :'used'));
SELECT pg_temp.try(format($$stepwise.submit_user_decision(%L, 'modify', 'more')$$, :'used'));
SELECT pg_temp.try(format($$stepwise.resume(%L, '1')$$, :'used'));
-- a new review has a new id, and does not revive the old one
SELECT stepwise.request_user_review(pg_temp.step('once', 'a'), 'Look') ->> 'checkpointId' <> :'used';
SELECT pg_temp.try(format($$stepwise.submit_user_decision(%L, 'approve')$$, :'used'));
-- ending the step in another way also closes its checkpoint
SELECT pg_temp.waiting('once', 'a') AS used \gset
SELECT stepwise.skip_step(pg_temp.step('once', 'a')) ->> 'planStatus';
SELECT pg_temp.try(format($$stepwise.submit_user_decision(%L, 'approve')$$, :'used'));

-- ---------- an approval holds for what was shown ----------

-- instructions or arguments have changed since the request: approve is refused, other decisions are accepted
SELECT pg_temp.make('shown', '[{"name": "a", "instructions": "Pay 10", "arguments": {"sum": 10}}, {"name": "b"}]');
SELECT pg_temp.review('shown', 'a');
SET session_replication_role = replica;
UPDATE stepwise.step SET instructions = 'Pay 1000' WHERE id = (SELECT pg_temp.step('shown', 'a'));
RESET session_replication_role;
SELECT pg_temp.try($$pg_temp.decide('shown', 'a', 'approve')$$);
SET session_replication_role = replica;
UPDATE stepwise.step SET instructions = 'Pay 10', arguments = '{"sum": 1000}' WHERE id = (SELECT pg_temp.step('shown', 'a'));
RESET session_replication_role;
SELECT pg_temp.try($$pg_temp.decide('shown', 'a', 'approve')$$);
SELECT pg_temp.show('shown');
SELECT pg_temp.decide('shown', 'a', 'modify', 'Look again');
SELECT pg_temp.review('shown', 'a');
SELECT pg_temp.decide('shown', 'a', 'approve');
-- both the resolved and the written arguments are compared
SELECT pg_temp.make('resolved', '[{"name": "a", "arguments": {"sum": "${inputs.sum}", "to": "Paul"}}]', inputs => '{"sum": 10}');
SELECT pg_temp.next('resolved');
SELECT pg_temp.review('resolved', 'a');
SET session_replication_role = replica;
UPDATE stepwise.step SET arguments = '{"sum": "${inputs.sum}", "to": "Mallory"}' WHERE id = (SELECT pg_temp.step('resolved', 'a'));
RESET session_replication_role;
SELECT pg_temp.try($$pg_temp.decide('resolved', 'a', 'approve')$$);
-- feedback cannot make the instructions exceed the limit
SELECT pg_temp.make('grows', '[{"name": "a"}]');
SELECT pg_temp.review('grows', 'a');
SELECT pg_temp.decide('grows', 'a', 'modify', repeat('x', 1000000));
SELECT pg_temp.review('grows', 'a');
SELECT pg_temp.try($$pg_temp.decide('grows', 'a', 'modify', repeat('x', 1000000))$$);
SELECT octet_length(instructions), status FROM stepwise.step WHERE id = (SELECT pg_temp.step('grows', 'a'));

-- ---------- several at once ----------

SELECT pg_temp.make('several', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]');
SELECT pg_temp.next('several');
SELECT pg_temp.next('several');
SELECT pg_temp.review('several', 'b', 'Second first');
SELECT pg_temp.review('several', 'a', 'First second');
-- in a sequence the first waiting step stops the plan; the oldest checkpoint is shown
SELECT stepwise.get_next_step(pg_temp.plan('several')) ->> 'prompt';
SELECT k.prompt FROM stepwise.checkpoints AS k WHERE k.plan_id = (SELECT pg_temp.plan('several')) ORDER BY k.since;
SELECT pg_temp.decide('several', 'b', 'approve');
SELECT pg_temp.next('several');
SELECT pg_temp.decide('several', 'a', 'approve');
SELECT pg_temp.next('several');
-- from any session
SELECT a ->> 'status' FROM stepwise.get_next_step(pg_temp.plan('several'), session_id => 'another') AS a;

-- with dependsOn independent steps go on
SELECT pg_temp.make('several tree', '[{"name": "a"}, {"name": "b"}, {"name": "c", "dependsOn": ["a"]}, {"name": "d", "dependsOn": ["b"]}]');
SELECT pg_temp.review('several tree', 'a');
SELECT pg_temp.submit('several tree', 'b');
SELECT pg_temp.next('several tree');
SELECT pg_temp.next('several tree');
SELECT pg_temp.submit('several tree', 'd');
SELECT pg_temp.decide('several tree', 'a', 'approve');
SELECT pg_temp.next('several tree');

-- ---------- prompts ----------

-- the answer is the step's output; single use
SELECT pg_temp.make('prompt', '[{"name": "a", "prompt": "Which, ${inputs.who}?"}, {"name": "b", "arguments": {"it": "${steps.a.outputs.response.it}"}}]', inputs => '{"who": "Paul"}');
SELECT stepwise.get_next_step(pg_temp.plan('prompt')) ->> 'prompt';
SELECT pg_temp.waiting('prompt', 'a') AS used \gset
SELECT pg_temp.try($$pg_temp.decide('prompt', 'a', 'approve')$$);
SELECT pg_temp.plain(stepwise.resume(:'used', '{"it": 3}'), 'planId', 'stepId');
SELECT s.result FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('prompt', 'a'));
SELECT pg_temp.try(format($$stepwise.resume(%L, '{"it": 3}')$$, :'used'));
SELECT pg_temp.next('prompt');
SELECT pg_temp.log('prompt', 'step_completed');
-- the answer when the plan has ended or waits again
SELECT pg_temp.make('prompts', '[{"name": "a", "prompt": "one"}, {"name": "b", "prompt": "two"}]', outputs => '{"a": "${steps.a.outputs.response}"}');
SELECT pg_temp.next('prompts') LIKE 'awaiting_review%';
SELECT pg_temp.plain(stepwise.resume(pg_temp.waiting('prompts', 'a'), 'null'), 'planId', 'stepId');
SELECT pg_temp.next('prompts') LIKE 'awaiting_review%';
SELECT pg_temp.plain(stepwise.resume(pg_temp.waiting('prompts', 'b'), NULL), 'planId', 'stepId');
SELECT s.name, s.result FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('prompts')) ORDER BY s.step_order;
-- resume does not accept a review
SELECT pg_temp.make('other way', '[{"name": "a"}]');
SELECT pg_temp.review('other way', 'a');
SELECT pg_temp.try($$stepwise.resume(pg_temp.waiting('other way', 'a'), '1')$$);
DO $$
DECLARE
    hint text;
BEGIN
    PERFORM stepwise.resume(pg_temp.waiting('other way', 'a'), '1');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RAISE WARNING '%', regexp_replace(hint, '[0-9a-f-]{36}', 'ID');
END $$;
-- an answer within the limits that exceeds them as a result
SET stepwise.max_json_depth = 3;
SELECT pg_temp.make('deep answer', '[{"name": "a", "prompt": "How deep?"}]');
SELECT pg_temp.next('deep answer') LIKE 'awaiting_review%';
SELECT pg_temp.try($$stepwise.resume(pg_temp.waiting('deep answer', 'a'), '[[[1]]]')$$);
SELECT stepwise.resume(pg_temp.waiting('deep answer', 'a'), '[[1]]') ->> 'planStatus';
RESET stepwise.max_json_depth;
-- a prompt cannot be reviewed or claimed
SELECT pg_temp.make('no agent', '[{"name": "a", "prompt": "Well?"}]');
SELECT pg_temp.try($$pg_temp.review('no agent', 'a')$$);
SELECT pg_temp.next('no agent') LIKE 'awaiting_review%';
SELECT pg_temp.try($$pg_temp.review('no agent', 'a')$$);

-- ---------- invalid calls ----------

SELECT pg_temp.make('nonsense', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]');
SELECT pg_temp.review('nonsense', 'a');
UPDATE stepwise.step SET status = 'in_progress' WHERE id = (SELECT pg_temp.step('nonsense', 'b'));
SELECT pg_temp.submit('nonsense', 'b');
SELECT pg_temp.try(call) FROM unnest(ARRAY[
    $$stepwise.request_user_review(NULL, 'x')$$,
    $$stepwise.request_user_review('00000000-0000-7000-8000-000000000000', 'x')$$,
    $$stepwise.request_user_review(pg_temp.step('nonsense', 'c'), NULL)$$,
    $$stepwise.request_user_review(pg_temp.step('nonsense', 'c'), '')$$,
    $$stepwise.request_user_review(pg_temp.step('nonsense', 'c'), 'x', '{}')$$,
    $$stepwise.request_user_review(pg_temp.step('nonsense', 'c'), 'x', '"why"')$$,
    $$stepwise.request_user_review(pg_temp.step('nonsense', 'c'), repeat('x', 1048577))$$,
    $$stepwise.request_user_review(pg_temp.step('nonsense', 'c'), 'x', to_jsonb(ARRAY[repeat('x', 1048577)]))$$,
    $$stepwise.request_user_review(pg_temp.step('nonsense', 'b'), 'x')$$,
    $$stepwise.submit_user_decision(NULL, 'approve')$$,
    $$stepwise.submit_user_decision('00000000-0000-7000-8000-000000000000', 'approve')$$,
    $$stepwise.submit_user_decision(pg_temp.step('nonsense', 'a'), 'approve')$$,
    $$pg_temp.decide('nonsense', 'a', NULL)$$,
    $$pg_temp.decide('nonsense', 'a', '')$$,
    $$pg_temp.decide('nonsense', 'a', 'Approve')$$,
    $$pg_temp.decide('nonsense', 'a', 'modify')$$,
    $$pg_temp.decide('nonsense', 'a', 'modify', '')$$,
    $$pg_temp.decide('nonsense', 'a', 'approve', repeat('x', 1048577))$$,
    $$pg_temp.decide('nonsense', 'a', 'approve', answers => to_jsonb(repeat('x', 1048577)))$$,
    $$stepwise.resume(NULL, '1')$$,
    $$stepwise.resume('00000000-0000-7000-8000-000000000000', '1')$$,
    $$stepwise.resume(pg_temp.waiting('no agent', 'a'), to_jsonb(repeat('x', 1048577)))$$]) AS call;
SELECT pg_temp.show('nonsense');

SELECT pg_temp.unsound();
