-- The agent's loop except get_next_step: submit, advance, fail, retry, skip, release, heartbeat, leases, cancel. Each call is
-- repeated, as by a client that lost the answer. Each is refused where it must be, and then changes nothing.

\set ECHO none
\i test/agent.sql
\set ECHO all

-- ---------- submit ----------

-- from in_progress, with all arguments
SELECT pg_temp.make('submit', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]');
SELECT pg_temp.next('submit');
SELECT pg_temp.plain(stepwise.submit_step_result(pg_temp.step('submit', 'a'), '{"n": [1, {"m": null}]}', 'found one', 0.75, '{"ms": 12}', 'as a list', 'success', 1));
SELECT s.result, s.result_summary, s.confidence, s.execution_report, s.output_formatting_notes, s.outcome, s.completed_at >= s.started_at
FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('submit', 'a'));

-- from pending, if it is due: both moves are in the log, and the step counts as claimed once
SELECT pg_temp.try($$pg_temp.submit('submit', 'c')$$);
SELECT pg_temp.submit('submit', 'b');
SELECT pg_temp.log('submit');
SELECT s.attempt, s.execution_order FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('submit', 'b'));

-- the last submission completes the plan
SELECT pg_temp.submit('submit', 'c', outcome => 'failure');
SELECT p.status, p.outcome, p.completed_at >= p.started_at FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('submit'));

-- any JSON is a result; SQL NULL is none
SELECT pg_temp.make('kinds', '[{}, {}, {}, {}, {}, {}, {}]', outputs => '{"all": ["${steps.step_1.outputs}", "${steps.step_2.outputs}", "${steps.step_3.outputs}",
    "${steps.step_4.outputs}", "${steps.step_5.outputs}", "${steps.step_6.outputs}", "${steps.step_7.outputs}"]}');
SELECT pg_temp.submit('kinds', 'step_1', 'null');
SELECT pg_temp.try($$pg_temp.submit('kinds', 'step_2', NULL)$$);
SELECT pg_temp.submit('kinds', 'step_2', '"second"');
SELECT pg_temp.submit('kinds', 'step_3', '"text"');
SELECT pg_temp.submit('kinds', 'step_4', '12345678901234567890.12345678901234567890');
SELECT pg_temp.submit('kinds', 'step_5', 'false');
SELECT pg_temp.submit('kinds', 'step_6', '[]');
SELECT pg_temp.submit('kinds', 'step_7', '{}');
SELECT p.outputs FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('kinds'));

-- arguments are also resolved for a step that was not handed out: submitted, prompted or moved by plain SQL
SELECT pg_temp.make('unasked', '[
    {"name": "submitted", "arguments": {"x": "${inputs.v}"}}, {"name": "reviewed", "arguments": {"x": "${steps.submitted.inputs.x}"}},
    {"name": "asked", "prompt": "Well?", "arguments": {"x": "${steps.reviewed.inputs.x}"}}, {"name": "by_hand", "arguments": {"x": "${steps.asked.inputs.x}"}},
    {"name": "cannot", "arguments": {"x": "${steps.submitted.outputs.nowhere}"}},
    {"name": "last", "instructions": "${steps.submitted.inputs.x} ${steps.reviewed.inputs.x} ${steps.asked.inputs.x} ${steps.by_hand.inputs.x}"}]', inputs => '{"v": 5}');
SELECT pg_temp.submit('unasked', 'submitted');
SELECT pg_temp.next('unasked');
SELECT stepwise.request_user_review(pg_temp.step('unasked', 'reviewed'), 'Good?') ->> 'stepStatus';
SELECT stepwise.submit_user_decision(pg_temp.waiting('unasked', 'reviewed'), 'approve') ->> 'stepStatus';
SELECT left(pg_temp.next('unasked'), 15);
SELECT stepwise.resume(pg_temp.waiting('unasked', 'asked'), '"yes"') ->> 'stepStatus';
UPDATE stepwise.step SET status = 'in_progress' WHERE id = (SELECT pg_temp.step('unasked', 'by_hand'));
UPDATE stepwise.step SET status = 'completed' WHERE id = (SELECT pg_temp.step('unasked', 'by_hand'));
SELECT pg_temp.try($$pg_temp.submit('unasked', 'cannot')$$);
SELECT stepwise.skip_step(pg_temp.step('unasked', 'cannot')) ->> 'stepStatus';
SELECT stepwise.get_next_step(pg_temp.plan('unasked')) ->> 'instructions';
SELECT s.name, s.inputs FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('unasked')) ORDER BY s.step_order;
-- a retried step is resolved again
SELECT pg_temp.make('anew', '[{"name": "a", "arguments": {"x": "${inputs.v}"}}]', inputs => '{"v": 5}', on_failure => 'pause');
SELECT pg_temp.next('anew');
SELECT pg_temp.fail('anew', 'a');
SELECT stepwise.retry_step(pg_temp.step('anew', 'a')) ->> 'stepStatus';
SELECT s.inputs IS NULL FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('anew', 'a'));
SELECT pg_temp.next('anew');

-- ---------- the same again ----------

-- an identical submission gets the same answer, marked as a duplicate, whatever happened since
SELECT pg_temp.make('twice', '[{"name": "a"}, {"name": "b"}]', '[{"afterStepOrder": 1, "conditionExpression": "confidence > 0.5", "ifTrueAction": "continue"}]');
SELECT pg_temp.next('twice');
SELECT pg_temp.plain(stepwise.submit_step_result(pg_temp.step('twice', 'a'), '{"n": 1}', 'one', 0.9, '{"r": 1}', 'bold'));
SELECT pg_temp.plain(stepwise.submit_step_result(pg_temp.step('twice', 'a'), '{"n": 1}', 'one', 0.90, '{"r": 1}', 'bold'));
SELECT pg_temp.plain(stepwise.submit_step_result(pg_temp.step('twice', 'a'), '{"n": 1.0}', 'one', 0.9, '{"r": 1}', 'bold', attempt => 1));
-- a different one is refused
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('twice', 'a'), '{"n": 2}', 'one', 0.9, '{"r": 1}', 'bold')$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('twice', 'a'), '{"n": 1}', 'two', 0.9, '{"r": 1}', 'bold')$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('twice', 'a'), '{"n": 1}', 'one', 0.8, '{"r": 1}', 'bold')$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('twice', 'a'), '{"n": 1}', 'one', 0.9, '{"r": 2}', 'bold')$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('twice', 'a'), '{"n": 1}', 'one', 0.9, '{"r": 1}')$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('twice', 'a'), '{"n": 1}', 'one', 0.9, '{"r": 1}', 'bold', 'failure')$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('twice', 'a'), '{"n": 1}', 'one', 0.9, '{"r": 1}', 'bold', attempt => 2)$$);
-- after the end of the plan too
SELECT pg_temp.submit('twice', 'b');
SELECT pg_temp.submit('twice', 'b');
SELECT count(*) FROM stepwise.audit AS a WHERE a.plan_id = (SELECT pg_temp.plan('twice')) AND a.event = 'step_completed';

-- ---------- a plan that has ended since the claim ----------

SELECT pg_temp.make('over', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', on_failure => 'fail');
SELECT pg_temp.next('over');
SELECT pg_temp.next('over');
SELECT pg_temp.fail('over', 'a');
SELECT pg_temp.try($$pg_temp.submit('over', 'b')$$);
SELECT pg_temp.try($$pg_temp.submit('over', 'c')$$);
SELECT pg_temp.try($$pg_temp.fail('over', 'b')$$);
SELECT pg_temp.try($$stepwise.skip_step(pg_temp.step('over', 'c'))$$);
SELECT pg_temp.try($$stepwise.retry_step(pg_temp.step('over', 'a'))$$);
SELECT pg_temp.try($$stepwise.release_step(pg_temp.step('over', 'b'))$$);
SELECT pg_temp.try($$stepwise.heartbeat(pg_temp.step('over', 'b'), 1)$$);
SELECT pg_temp.try($$stepwise.request_user_review(pg_temp.step('over', 'b'), 'look')$$);
SELECT pg_temp.try($$stepwise.cancel_plan(pg_temp.plan('over'))$$);
SELECT pg_temp.show('over');

-- ---------- steps that an agent cannot submit ----------

SELECT stepwise.define_workflow('{"name": "loop inner", "steps": [{"name": "x"}]}') ->> 'version';
SELECT pg_temp.make('not yours', '[{"name": "a", "prompt": "Well?"}, {"name": "b", "workflow": "loop inner"}, {"name": "c"}]');
SELECT pg_temp.try($$pg_temp.submit('not yours', 'a')$$);
SELECT pg_temp.try($$pg_temp.submit('not yours', 'b')$$);
SELECT pg_temp.next('not yours');
SELECT pg_temp.try($$pg_temp.submit('not yours', 'a')$$);
SELECT stepwise.resume(pg_temp.waiting('not yours', 'a'), '1') ->> 'status';
SELECT pg_temp.next('not yours');
SELECT pg_temp.try($$pg_temp.submit('not yours', 'b')$$);
SELECT pg_temp.try($$stepwise.release_step(pg_temp.step('not yours', 'b'))$$);
SELECT pg_temp.try($$stepwise.request_user_review(pg_temp.step('not yours', 'b'), 'look')$$);
-- skipped, with what is nested in it
SELECT stepwise.skip_step(pg_temp.step('not yours', 'b'), 'not now') ->> 'stepStatus';
SELECT pg_temp.show('loop inner');
SELECT pg_temp.try($$pg_temp.submit('not yours', 'b')$$);

-- ---------- advance ----------

SELECT pg_temp.make('advance', '[{"name": "a"}, {"name": "b", "arguments": {"n": "${steps.a.outputs.n}"}}]', outputs => '{"n": "${steps.b.outputs.n}"}');
SELECT pg_temp.next('advance', 'anna');
SELECT pg_temp.plain(stepwise.advance(pg_temp.step('advance', 'a'), '{"n": 1}', attempt => 1, worker => 'anna', lease => '1 hour'));
-- repeated: the submission is a duplicate, and the worker gets its claim again
SELECT a -> 'submitted' ->> 'duplicate', a -> 'next' ->> 'name', a -> 'next' ->> 'again'
FROM stepwise.advance(pg_temp.step('advance', 'a'), '{"n": 1}', attempt => 1, worker => 'anna') AS a;
-- the last step: the answer contains the end of the plan
SELECT pg_temp.plain(stepwise.advance(pg_temp.step('advance', 'b'), '{"n": 2}', worker => 'anna'));
SELECT a -> 'submitted' ->> 'duplicate', a -> 'next' ->> 'status' FROM stepwise.advance(pg_temp.step('advance', 'b'), '{"n": 2}', worker => 'anna') AS a;
-- one transaction: if the submission is refused, nothing is claimed
SELECT pg_temp.make('advance not', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.next('advance not');
SELECT pg_temp.try($$stepwise.advance(pg_temp.step('advance not', 'a'), '{}', attempt => 7)$$);
SELECT pg_temp.try($$stepwise.advance(pg_temp.step('advance not', 'a'), '{}', confidence => 2)$$);
SELECT pg_temp.try($$stepwise.advance(pg_temp.step('advance not', 'a'), '{}', lease => '-1')$$);
SELECT pg_temp.show('advance not');
-- a branch that ends the plan: the answer tells so, even to a worker that has a claim in it
SELECT pg_temp.make('advance ends', '[{"name": "a"}, {"name": "b"}]', '[{"afterStepOrder": 2, "conditionExpression": "outcome == ''failure''", "ifTrueAction": "fail", "actionParams": {"reason": "too bad"}}]');
SELECT pg_temp.next('advance ends', 'anna');
SELECT pg_temp.next('advance ends', 'bert');
SELECT pg_temp.plain(stepwise.advance(pg_temp.step('advance ends', 'b'), '{}', outcome => 'failure', worker => 'bert'));
-- next is the next step of the root plan, at any depth of the step
SELECT pg_temp.make('advance root', '[{"name": "a", "workflow": "loop inner"}, {"name": "b"}]');
SELECT pg_temp.next('advance root', 'anna');
SELECT a -> 'submitted' ->> 'planStatus', a -> 'next' ->> 'path' FROM stepwise.advance(pg_temp.step('loop inner', 'x'), '{}', worker => 'anna') AS a;
-- a session that is not the plan's last
SELECT a -> 'next' ->> 'status' FROM stepwise.advance(pg_temp.step('advance root', 'b'), '{}', session_id => 'one') AS a;
SELECT p.session_id FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('advance root'));

-- ---------- fail, retry, skip ----------

SELECT pg_temp.make('moves', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]');
SELECT pg_temp.next('moves');
SELECT pg_temp.plain(stepwise.fail_step(pg_temp.step('moves', 'a'), 'broken', true));
-- the same call again is no error, a different call is
SELECT pg_temp.fail('moves', 'a', 'broken');
SELECT pg_temp.try($$pg_temp.fail('moves', 'a', 'broken otherwise')$$);
SELECT pg_temp.try($$pg_temp.submit('moves', 'a')$$);
-- a pending step can fail, and be skipped
SELECT pg_temp.fail('moves', 'b');
SELECT pg_temp.plain(stepwise.skip_step(pg_temp.step('moves', 'c'), 'not needed'));
SELECT pg_temp.show('moves');
-- only a failed step can be retried; a skipped step is final
SELECT pg_temp.try($$stepwise.retry_step(pg_temp.step('moves', 'c'))$$);
SELECT pg_temp.try($$stepwise.retry_step(pg_temp.step('moves', 'd'))$$);
SELECT pg_temp.plain(stepwise.skip_step(pg_temp.step('moves', 'c')));
SELECT pg_temp.try($$pg_temp.submit('moves', 'c')$$);
SELECT stepwise.retry_step(pg_temp.step('moves', 'a')) ->> 'stepStatus';
SELECT pg_temp.next('moves');
SELECT pg_temp.submit('moves', 'a');
SELECT stepwise.skip_step(pg_temp.step('moves', 'b')) ->> 'planStatus';
SELECT pg_temp.try($$pg_temp.fail('moves', 'a')$$);
SELECT stepwise.skip_step(pg_temp.step('moves', 'd')) ->> 'planStatus';
SELECT pg_temp.show('moves');
SELECT pg_temp.log('moves');

-- a step that is retried after its dependency was skipped is skipped too, since it would wait forever
SELECT pg_temp.make('late retry', '[{"name": "s1"}, {"name": "s2", "dependsOn": ["s1"]}, {"name": "s3", "dependsOn": ["s2"]}, {"name": "s4", "dependsOn": []}]');
SELECT pg_temp.fail('late retry', 's2');
SELECT stepwise.skip_step(pg_temp.step('late retry', 's1')) ->> 'stepStatus';
SELECT stepwise.retry_step(pg_temp.step('late retry', 's2')) ->> 'stepStatus';
SELECT pg_temp.submit('late retry', 's4');
SELECT pg_temp.show('late retry');
-- the same by plain SQL, both in one statement
SELECT pg_temp.make('late by hand', '[{"name": "s1"}, {"name": "s2", "dependsOn": ["s1"]}, {"name": "s3", "dependsOn": []}]');
SELECT pg_temp.fail('late by hand', 's2');
UPDATE stepwise.step SET status = CASE name WHEN 's1' THEN 'skipped' ELSE 'pending' END::stepwise.step_status
WHERE plan_id = (SELECT pg_temp.plan('late by hand')) AND name IN ('s1', 's2');
SELECT pg_temp.show('late by hand');

-- ---------- claims: release, leases, heartbeat ----------

SELECT pg_temp.make('claims', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.next('claims', 'anna');
-- released: the old attempt number is stale, both before and after another worker claims the step
SELECT pg_temp.plain(stepwise.release_step(pg_temp.step('claims', 'a'), 1));
SELECT pg_temp.try($$pg_temp.submit('claims', 'a', attempt => 1)$$);
SELECT pg_temp.plain(stepwise.release_step(pg_temp.step('claims', 'a'), 1));
SELECT pg_temp.plain(stepwise.release_step(pg_temp.step('claims', 'a')));
SELECT pg_temp.try($$stepwise.heartbeat(pg_temp.step('claims', 'a'), 1)$$);
SELECT pg_temp.next('claims', 'bert');
SELECT pg_temp.try($$pg_temp.submit('claims', 'a', attempt => 1)$$);
SELECT pg_temp.try($$stepwise.advance(pg_temp.step('claims', 'a'), '{}', attempt => 1)$$);
SELECT pg_temp.try($$stepwise.release_step(pg_temp.step('claims', 'a'), 1)$$);
SELECT pg_temp.try($$stepwise.heartbeat(pg_temp.step('claims', 'a'), 1, '1 hour')$$);
SELECT s.worker, s.attempt, s.status, s.lease_expires_at FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('claims', 'a'));
SELECT pg_temp.submit('claims', 'a', attempt => 2);

-- heartbeat: a sign of life, and with extend a lease from now on
SELECT pg_temp.next('claims', 'bert');
SELECT pg_temp.plain(stepwise.heartbeat(pg_temp.step('claims', 'b'), 1));
SELECT pg_temp.plain(stepwise.heartbeat(pg_temp.step('claims', 'b'), 1, '1 hour'));
SELECT s.lease_expires_at - clock_timestamp() BETWEEN '59 minutes' AND '1 hour' FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('claims', 'b'));
SELECT stepwise.heartbeat(pg_temp.step('claims', 'b'), 1) ->> 'leaseExpiresAt' IS NOT NULL;
-- asking again with a lease extends it too
SELECT pg_temp.next('claims', 'bert', '2 hours');
SELECT s.lease_expires_at - clock_timestamp() BETWEEN '119 minutes' AND '2 hours' FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('claims', 'b'));
SELECT pg_temp.try($$stepwise.heartbeat(pg_temp.step('claims', 'a'), 2)$$);

-- an expired lease counts as released: the next worker that asks gets the step, with a new attempt number
SELECT pg_temp.make('expire', '[{"name": "a", "maxAttempts": 2}, {"name": "b"}]');
SELECT pg_temp.next('expire', 'anna', '1 millisecond');
SELECT pg_sleep(0.01);
SELECT pg_temp.next('expire', 'bert', '1 millisecond');
SELECT pg_temp.try($$pg_temp.submit('expire', 'a', attempt => 1)$$);
SELECT pg_sleep(0.01);
-- also the same worker; and the second attempt was the last
SELECT pg_temp.next('expire', 'bert');
SELECT pg_temp.show('expire');
SELECT pg_temp.log('expire');

-- a nested claim expires like any other
SELECT pg_temp.make('expire below', '[{"name": "a", "workflow": "loop inner"}]');
SELECT pg_temp.next('expire below', 'anna', '1 millisecond');
SELECT pg_sleep(0.01);
SELECT pg_temp.next('expire below', 'bert');

-- ---------- cancel ----------

SELECT stepwise.define_workflow('{"name": "loop asks", "steps": [{"name": "q", "prompt": "Well?"}]}') ->> 'version';
SELECT pg_temp.make('cancel', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d", "dependsOn": ["a"]}, {"name": "e", "workflow": "loop asks"}]');
SELECT pg_temp.submit('cancel', 'a');
SELECT pg_temp.fail('cancel', 'b');
SELECT pg_temp.next('cancel');
SELECT pg_temp.next('cancel');
SELECT pg_temp.next('cancel');
SELECT pg_temp.plain(stepwise.cancel_plan(pg_temp.plan('cancel')));
SELECT pg_temp.show('cancel');
SELECT pg_temp.show('loop asks');
SELECT count(*) FROM stepwise.checkpoint AS k WHERE k.root_id = (SELECT pg_temp.plan('cancel'));
SELECT pg_temp.try($$pg_temp.submit('cancel', 'c')$$);
SELECT pg_temp.try($$stepwise.cancel_plan(pg_temp.plan('submit'))$$);
-- a nested plan that is cancelled fails the step that holds it
SELECT pg_temp.make('cancel below', '[{"name": "a", "workflow": "loop inner"}, {"name": "b"}]');
SELECT pg_temp.next('cancel below');
SELECT stepwise.cancel_plan(pg_temp.plan('loop inner'), 'no more') ->> 'planStatus';
SELECT pg_temp.show('cancel below');

-- ---------- limits: the call is refused, and nothing changes ----------

SELECT pg_temp.make('limits', '[{"name": "a"}, {"name": "b"}]');
CREATE FUNCTION pg_temp.deep(levels int) RETURNS jsonb LANGUAGE sql AS $$ SELECT (repeat('[', levels) || repeat(']', levels))::jsonb $$;
SELECT pg_temp.next('limits');
SELECT pg_temp.try($$pg_temp.submit('limits', 'a', to_jsonb(repeat('x', 1048576)))$$);
SELECT pg_temp.try($$pg_temp.submit('limits', 'a', pg_temp.deep(65))$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('limits', 'a'), '{}', repeat('x', 1048577))$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('limits', 'a'), '{}', execution_report => pg_temp.deep(65))$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('limits', 'a'), '{}', execution_report => to_jsonb(repeat('x', 1048576)))$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('limits', 'a'), '{}', output_formatting_notes => repeat('x', 1048577))$$);
SELECT pg_temp.try($$stepwise.advance(pg_temp.step('limits', 'a'), pg_temp.deep(65))$$);
SELECT pg_temp.try($$pg_temp.fail('limits', 'a', repeat('x', 1048577))$$);
SELECT pg_temp.try($$stepwise.skip_step(pg_temp.step('limits', 'a'), repeat('x', 1048577))$$);
SELECT pg_temp.try($$stepwise.cancel_plan(pg_temp.plan('limits'), repeat('x', 1048577))$$);
SELECT pg_temp.show('limits');
SELECT count(*) FROM stepwise.audit AS a WHERE a.plan_id = (SELECT pg_temp.plan('limits'));
-- values at the limit are accepted
SELECT pg_temp.submit('limits', 'a', pg_temp.deep(64));
SET stepwise.max_result_bytes = 1024;
SELECT pg_temp.try($$pg_temp.submit('limits', 'b', to_jsonb(repeat('x', 1024)))$$);
RESET stepwise.max_result_bytes;
SELECT pg_temp.submit('limits', 'b', to_jsonb(repeat('x', 1024)));
-- arguments that resolve to a value that is too large or too deep block only their step
SELECT pg_temp.make('too much', '[{"name": "a", "arguments": {"both": ["${inputs.x}", "${inputs.x}"]}}, {"name": "b", "arguments": {"deep": [["${inputs.deep}"]]}},
    {"name": "c", "instructions": "${inputs.x}${inputs.x}"}, {"name": "d", "prompt": "${inputs.x} ${inputs.x}"}, {"name": "e"}, {"name": "f", "dependsOn": ["e"]}]',
    inputs => jsonb_build_object('x', repeat('x', 600000), 'deep', pg_temp.deep(62)));
SELECT pg_temp.next('too much');
SELECT pg_temp.next('too much');
SELECT pg_temp.show('too much');

-- ---------- invalid calls ----------

SELECT pg_temp.make('nonsense', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.next('nonsense');
SELECT pg_temp.try(call) FROM unnest(ARRAY[
    $$stepwise.submit_step_result(NULL, '{}')$$,
    $$stepwise.submit_step_result('00000000-0000-7000-8000-000000000000', '{}')$$,
    $$pg_temp.submit('nonsense', 'a', confidence => 1.01)$$,
    $$pg_temp.submit('nonsense', 'a', confidence => -0.01)$$,
    $$pg_temp.submit('nonsense', 'a', confidence => 'NaN')$$,
    $$pg_temp.submit('nonsense', 'a', confidence => 'Infinity')$$,
    $$pg_temp.submit('nonsense', 'a', outcome => 'n/a')$$,
    $$pg_temp.submit('nonsense', 'a', outcome => 'Success')$$,
    $$pg_temp.submit('nonsense', 'a', outcome => '')$$,
    $$pg_temp.submit('nonsense', 'a', attempt => 0)$$,
    $$pg_temp.submit('nonsense', 'a', attempt => -1)$$,
    $$pg_temp.submit('nonsense', 'a', attempt => 2147483647)$$,
    $$stepwise.advance(NULL, '{}')$$,
    $$stepwise.advance('00000000-0000-7000-8000-000000000000', '{}')$$,
    $$stepwise.advance(pg_temp.step('nonsense', 'a'), '{}', worker => '')$$,
    $$stepwise.fail_step(NULL, 'x')$$,
    $$stepwise.fail_step('00000000-0000-7000-8000-000000000000', 'x')$$,
    $$stepwise.fail_step(pg_temp.step('nonsense', 'a'), NULL)$$,
    $$stepwise.fail_step(pg_temp.step('nonsense', 'a'), '')$$,
    $$stepwise.retry_step(NULL)$$,
    $$stepwise.retry_step('00000000-0000-7000-8000-000000000000')$$,
    $$stepwise.skip_step(NULL)$$,
    $$stepwise.skip_step('00000000-0000-7000-8000-000000000000')$$,
    $$stepwise.release_step(NULL)$$,
    $$stepwise.release_step('00000000-0000-7000-8000-000000000000')$$,
    $$stepwise.heartbeat(NULL, 1)$$,
    $$stepwise.heartbeat(pg_temp.step('nonsense', 'a'), 1, '0')$$,
    $$stepwise.heartbeat(pg_temp.step('nonsense', 'a'), 1, '-1 hour')$$,
    $$stepwise.heartbeat(pg_temp.step('nonsense', 'a'), 1, '100000000 years')$$,
    $$stepwise.heartbeat(pg_temp.step('nonsense', 'b'), 0)$$,
    $$stepwise.cancel_plan(NULL)$$,
    $$stepwise.cancel_plan('00000000-0000-7000-8000-000000000000')$$]) AS call;
SELECT pg_temp.show('nonsense');
SELECT pg_temp.log('nonsense');
-- 0 and 1 are valid confidences
SELECT pg_temp.submit('nonsense', 'a', confidence => 0);
SELECT pg_temp.submit('nonsense', 'b', confidence => 1.000);

SELECT pg_temp.unsound();
