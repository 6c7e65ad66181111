-- get_next_step: every possible answer, and the side effects of the search.

\set ECHO none
\i test/agent.sql
\set ECHO all

-- ---------- step_ready ----------

-- with all its keys; the first claim starts the plan
SELECT pg_temp.make('keys', '[{"name": "a", "type": "search", "tool": "find", "instructions": "Look for ${inputs.what}",
    "arguments": {"q": "${inputs.what}"}, "resources": ["stepwise://artifact/${inputs.what}"]}]', inputs => '{"what": "cats"}');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('keys'), lease => '5 minutes'));
SELECT pg_temp.log('keys');

-- path and planId belong to the step, rootPlanId to the tree
SELECT pg_temp.make('plainest', '[{}]');
SELECT a ->> 'planId' = pg_temp.plan('plainest')::text, a ->> 'rootPlanId' = pg_temp.plan('plainest')::text,
       a ->> 'stepId' = pg_temp.step('plainest', 'step_1')::text, a - '{planId,rootPlanId,stepId}'::text[]
FROM stepwise.get_next_step(pg_temp.plan('plainest')) AS a;

-- in a sequence a step in progress does not block the next one: each call claims another step
SELECT pg_temp.make('line', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]');
SELECT pg_temp.next('line');
SELECT pg_temp.next('line');
SELECT pg_temp.next('line');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('line')));

-- unless the next step reads its result
SELECT pg_temp.make('reads', '[{"name": "a"}, {"name": "b", "arguments": {"x": "${steps.a.outputs.x}"}}, {"name": "c"}]');
SELECT pg_temp.next('reads');
SELECT pg_temp.next('reads');
SELECT pg_temp.submit('reads', 'a', '{"x": [1]}');
SELECT pg_temp.next('reads');

-- or its outcome
SELECT pg_temp.make('asks', '[{"name": "a"}, {"name": "b", "condition": "${steps.a.succeeded}"}, {"name": "c", "condition": "not ${steps.a.failed}"}]');
SELECT pg_temp.next('asks');
SELECT pg_temp.next('asks');
SELECT pg_temp.submit('asks', 'a');
SELECT pg_temp.next('asks');
SELECT pg_temp.next('asks');

-- a worker that asks again gets its claim again, whatever else is ready
SELECT pg_temp.make('lost', '[{"name": "a", "instructions": "Say ${inputs.x}", "arguments": {"x": "${inputs.x}"}}, {"name": "b"}]', inputs => '{"x": 1}');
SELECT pg_temp.next('lost', 'anna');
SELECT pg_temp.next('lost', 'anna');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('lost'), 'anna'));
SELECT pg_temp.next('lost', 'bert');
SELECT pg_temp.submit('lost', 'a');
SELECT pg_temp.next('lost', 'anna');

-- ---------- side effects of the search ----------

-- conditions that are false skip their steps, several in one call
SELECT pg_temp.make('skips', '[{"name": "a", "condition": "${inputs.n} > 9"}, {"name": "b", "condition": "not ${inputs.yes}"},
    {"name": "c", "condition": "${inputs.n} in [1, 2]"}, {"name": "d"}]', inputs => '{"n": 3, "yes": true}');
SELECT pg_temp.next('skips');
SELECT pg_temp.show('skips');
SELECT pg_temp.log('skips', 'step_skipped');

-- all of them: the plan is complete without a claim
SELECT pg_temp.make('none', '[{"name": "a", "condition": "${inputs.n} > 9"}, {"name": "b", "condition": "${steps.a.succeeded}"}]', inputs => '{"n": 3}');
SELECT pg_temp.next('none');
SELECT pg_temp.log('none', 'plan_status_changed');

-- their dependents are skipped too
SELECT pg_temp.make('skips tree', '[{"name": "a", "condition": "${inputs.n} > 9"}, {"name": "b", "dependsOn": ["a"]},
    {"name": "c", "dependsOn": [{"step": "a", "required": false}]}]', inputs => '{"n": 3}');
SELECT pg_temp.next('skips tree');
SELECT pg_temp.show('skips tree');

-- all attempts are used: the step fails, and the search goes on
SELECT pg_temp.make('often', '[{"name": "a", "maxAttempts": 2}, {"name": "b"}]');
SELECT pg_temp.next('often');
SELECT pg_temp.plain(stepwise.release_step(pg_temp.step('often', 'a')));
SELECT pg_temp.next('often');
SELECT stepwise.release_step(pg_temp.step('often', 'a'), 2) ->> 'stepStatus';
SELECT pg_temp.next('often');
SELECT pg_temp.show('often');

-- with dependsOn too, and under fail the plan fails
SELECT pg_temp.make('often tree', '[{"name": "a", "maxAttempts": 1}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": []}]', on_failure => 'fail');
SELECT pg_temp.next('often tree');
SELECT stepwise.release_step(pg_temp.step('often tree', 'a')) ->> 'stepStatus';
SELECT pg_temp.next('often tree');
SELECT pg_temp.show('often tree');

-- retry_step always works, and allows one more attempt
SELECT pg_temp.make('again', '[{"name": "a", "maxAttempts": 1}, {"name": "b"}]');
SELECT pg_temp.next('again');
SELECT pg_temp.fail('again', 'a');
SELECT pg_temp.plain(stepwise.retry_step(pg_temp.step('again', 'a')));
SELECT pg_temp.next('again');
SELECT stepwise.release_step(pg_temp.step('again', 'a'), 2) ->> 'stepStatus';
SELECT pg_temp.next('again');
SELECT pg_temp.show('again');

-- ---------- with dependsOn ----------

-- ready steps in order; waves are no barriers
SELECT pg_temp.make('tree', '[{"name": "a"}, {"name": "b"}, {"name": "c", "dependsOn": ["a"]}, {"name": "d", "dependsOn": ["b", "c"]}]');
SELECT s.name, s.wave FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('tree')) ORDER BY s.step_order;
SELECT pg_temp.next('tree');
SELECT pg_temp.next('tree');
SELECT pg_temp.next('tree');
SELECT pg_temp.submit('tree', 'a');
SELECT pg_temp.next('tree');
SELECT pg_temp.submit('tree', 'c');
SELECT pg_temp.next('tree');
SELECT pg_temp.submit('tree', 'b');
SELECT pg_temp.next('tree');
SELECT pg_temp.submit('tree', 'd');
SELECT s.name, s.execution_order FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('tree')) ORDER BY s.step_order;

-- a blocked or waiting step blocks only its dependents, and is reported when no other step is ready
SELECT pg_temp.make('looks on', '[{"name": "blocked", "arguments": {"x": "${inputs.missing.y}"}}, {"name": "asked", "prompt": "Well?"},
    {"name": "after_blocked", "dependsOn": ["blocked"]}, {"name": "after_asked", "dependsOn": ["asked"]}, {"name": "free"}]',
    inputs => '{"missing": {}}');
SELECT pg_temp.next('looks on');
SELECT pg_temp.next('looks on');
SELECT pg_temp.show('looks on');
SELECT stepwise.resume(pg_temp.waiting('looks on', 'asked'), '"yes"') ->> 'status';
SELECT pg_temp.next('looks on');
SELECT pg_temp.next('looks on');

-- ---------- no_pending_steps ----------

SELECT pg_temp.make('busy', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.next('busy');
SELECT pg_temp.next('busy');
SELECT pg_temp.fail('busy', 'a');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('busy')));

-- ---------- plan_complete ----------

-- with outputs and all formatting notes
INSERT INTO stepwise.skill_execution (tenant, id, session_id, skill_name, status, metadata)
VALUES ('default', stepwise.uuid7(), 'next session', 'writer', 'started',
        '{"outputMediaType": "text/markdown", "outputFormattingInstructions": "Use headings", "other": 1}');
SELECT stepwise.create_plan('formatted', 'test', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', outputs => '{"sum": "${steps.a.outputs.n}", "text": "a was ${steps.a.outputs}"}',
    session_id => 'next session', output_formatting_notes => 'No more than a page') ->> 'status';
SELECT stepwise.submit_step_result(pg_temp.step('formatted', 'a'), '{"n": 7}', output_formatting_notes => 'Round it') ->> 'planStatus';
SELECT stepwise.submit_step_result(pg_temp.step('formatted', 'b'), '{}') ->> 'planStatus';
SELECT stepwise.submit_step_result(pg_temp.step('formatted', 'c'), '{}', output_formatting_notes => 'In bold') ->> 'planStatus';
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('formatted')));

-- without them the keys are null
SELECT pg_temp.make('bare', '[{"name": "a"}]');
SELECT pg_temp.submit('bare', 'a', outcome => 'failure');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('bare')));

-- ---------- failed steps, under each on_failure ----------

-- continue: the next step is handed out; at the end the plan is complete, without success
SELECT pg_temp.make('continue', '[{"name": "a"}, {"name": "b"}]', outputs => '{"a": "${steps.a.outputs.x}", "b": "${steps.b.outputs.x}"}');
SELECT pg_temp.next('continue');
SELECT pg_temp.fail('continue', 'a');
SELECT pg_temp.next('continue');
SELECT pg_temp.submit('continue', 'b', '{"x": 1}');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('continue')));

-- pause: the plan stays executing, with a reason, until the step is retried, skipped or answered
SELECT pg_temp.make('pause', '[{"name": "a", "tool": "t", "retryable": true}, {"name": "b"}]', on_failure => 'pause');
SELECT pg_temp.next('pause');
SELECT pg_temp.fail('pause', 'a');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('pause')));
SELECT stepwise.retry_step(pg_temp.step('pause', 'a')) ->> 'stepStatus';
SELECT pg_temp.show('pause');
SELECT pg_temp.next('pause');
SELECT pg_temp.fail('pause', 'a');
SELECT stepwise.skip_step(pg_temp.step('pause', 'a')) ->> 'stepStatus';
SELECT pg_temp.next('pause');

-- steps before the failed one go on
SELECT pg_temp.make('pause before', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', on_failure => 'pause');
SELECT pg_temp.next('pause before');
SELECT pg_temp.next('pause before');
SELECT pg_temp.fail('pause before', 'b');
SELECT stepwise.release_step(pg_temp.step('pause before', 'a')) ->> 'stepStatus';
SELECT pg_temp.next('pause before');
SELECT pg_temp.next('pause before');

-- with dependsOn only its dependents wait
SELECT pg_temp.make('pause tree', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": [{"step": "a", "required": false}]}, {"name": "d"}]', on_failure => 'pause');
SELECT pg_temp.next('pause tree');
SELECT pg_temp.fail('pause tree', 'a');
SELECT pg_temp.next('pause tree');
SELECT pg_temp.next('pause tree');
SELECT pg_temp.show('pause tree');

-- fail: the plan has failed, and says why
SELECT pg_temp.make('fail', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', on_failure => 'fail');
SELECT pg_temp.next('fail', 'anna');
SELECT pg_temp.next('fail', 'bert', '1 millisecond');
SELECT pg_temp.fail('fail', 'a');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('fail')));
SELECT pg_temp.show('fail');
-- a worker with a claim is told too, even if the claim has expired
SELECT pg_sleep(0.01);
SELECT pg_temp.next('fail', 'bert');

-- ---------- plan_cancelled ----------

SELECT pg_temp.make('stopped', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.next('stopped', 'anna');
SELECT pg_temp.plain(stepwise.cancel_plan(pg_temp.plan('stopped'), 'enough'));
SELECT pg_temp.plain(stepwise.cancel_plan(pg_temp.plan('stopped'), 'enough'));
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('stopped'), 'anna'));
SELECT pg_temp.show('stopped');

-- ---------- awaiting_review ----------

-- a prompt waits as soon as it is reached; in a sequence it stops the search
SELECT pg_temp.make('asked', '[{"name": "a", "prompt": "Keep it in ${inputs.where}?"}, {"name": "b", "arguments": {"said": "${steps.a.outputs.response}"}}]', inputs => '{"where": "Rome"}');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('asked')));
SELECT pg_temp.next('asked');
SELECT a ->> 'checkpointId' = pg_temp.waiting('asked', 'a')::text FROM stepwise.get_next_step(pg_temp.plan('asked')) AS a;
SELECT pg_temp.log('asked');
SELECT pg_temp.plain(stepwise.resume(pg_temp.waiting('asked', 'a'), '{"keep": true}'));
SELECT pg_temp.next('asked');

-- the oldest of several checkpoints
SELECT pg_temp.make('many asked', '[{"name": "a", "prompt": "one"}, {"name": "b", "prompt": "two"}, {"name": "c", "dependsOn": ["a", "b"]}]');
SELECT stepwise.get_next_step(pg_temp.plan('many asked')) ->> 'prompt';
SELECT stepwise.resume(pg_temp.waiting('many asked', 'a'), '1') ->> 'status';
SELECT stepwise.get_next_step(pg_temp.plan('many asked')) ->> 'prompt';
SELECT stepwise.resume(pg_temp.waiting('many asked', 'b'), '2') ->> 'status';
SELECT pg_temp.next('many asked');

-- ---------- nested plans ----------

SELECT stepwise.define_workflow('{"name": "inner", "inputs": {"n": {"type": "integer"}}, "steps": [{"name": "x", "arguments": {"n": "${inputs.n}"}}, {"name": "y"}],
    "outputs": {"x": "${steps.x.outputs.v}"}}') ? 'version';
SELECT pg_temp.make('outer', '[{"name": "a", "workflow": "inner", "arguments": {"n": 1}}, {"name": "b", "arguments": {"v": "${steps.a.outputs.x}"}}]');
-- the first step of the nested plan, with the way to it
SELECT a ->> 'path', a ->> 'name', a ->> 'arguments', a ->> 'rootPlanId' = pg_temp.plan('outer')::text, a ->> 'planId' = pg_temp.plan('inner')::text
FROM stepwise.get_next_step(pg_temp.plan('outer'), 'anna') AS a;
SELECT stepwise.get_next_step(pg_temp.plan('outer'), 'bert') ->> 'path';
-- the worker's claim is found from any plan of the tree
SELECT stepwise.get_next_step(pg_temp.plan('inner'), 'anna') ->> 'path';
SELECT pg_temp.next('outer', 'carl');
SELECT pg_temp.submit('inner', 'x', '{"v": 5}');
SELECT pg_temp.submit('inner', 'y');
SELECT pg_temp.next('outer', 'carl');
SELECT pg_temp.submit('outer', 'b');
SELECT pg_temp.next('outer');
SELECT pg_temp.next('inner');

-- if a nested plan is blocked, the search continues where it may
SELECT stepwise.define_workflow('{"name": "cannot", "onFailure": "fail", "inputs": {"v": {"type": "string"}}, "steps": [{"name": "x", "workflow": "inner", "arguments": {"n": "${inputs.v}"}}]}') ->> 'version';
SELECT pg_temp.make('go on', '[{"name": "a", "workflow": "cannot", "arguments": {"v": "no number"}}, {"name": "b"}]');
SELECT pg_temp.next('go on');
SELECT pg_temp.show('go on');
-- otherwise the plan ends
SELECT pg_temp.make('go no more', '[{"name": "a", "workflow": "cannot", "arguments": {"v": "no number"}}, {"name": "b"}]', on_failure => 'fail');
SELECT pg_temp.next('go no more');
SELECT pg_temp.show('go no more');

-- another session continues: this is recorded in the plan of the call, even if the step belongs to a nested plan
SELECT stepwise.create_plan('sessions', 'test', '[{"name": "a", "workflow": "inner", "arguments": {"n": 1}}]', session_id => 's1') ->> 'status';
SELECT a ->> 'name' FROM stepwise.get_next_step(pg_temp.plan('sessions'), session_id => 's1') AS a;
SELECT a ->> 'name' FROM stepwise.get_next_step(pg_temp.plan('sessions'), 'anna', session_id => 's2') AS a;
SELECT a ->> 'name' FROM stepwise.get_next_step(pg_temp.plan('inner'), 'anna', session_id => 's3') AS a;
SELECT a ->> 'status' FROM stepwise.get_next_step(pg_temp.plan('sessions'), session_id => 's4') AS a;
SELECT pg_temp.log('sessions', 'session_resumed');
SELECT pg_temp.log('inner', 'session_resumed');

-- a failed plan hands out nothing, not even steps of open nested plans
SELECT pg_temp.make('ended', '[{"name": "a", "workflow": "inner", "arguments": {"n": 1}}, {"name": "b"}]', on_failure => 'fail');
SELECT pg_temp.next('ended', 'anna');
SELECT pg_temp.fail('ended', 'b');
SELECT pg_temp.next('ended');
SELECT pg_temp.next('ended', 'anna');
SELECT pg_temp.next('inner');

-- ---------- invalid calls ----------

SELECT pg_temp.try($$stepwise.get_next_step(NULL)$$);
SELECT pg_temp.try($$stepwise.get_next_step('00000000-0000-7000-8000-000000000000')$$);
SELECT pg_temp.try($$stepwise.get_next_step(pg_temp.plan('busy'), '')$$);
SELECT pg_temp.try($$stepwise.get_next_step(pg_temp.plan('busy'), repeat('x', 501))$$);
SELECT pg_temp.try($$stepwise.get_next_step(pg_temp.plan('busy'), lease => '0')$$);
SELECT pg_temp.try($$stepwise.get_next_step(pg_temp.plan('busy'), lease => '-1 second')$$);
SELECT pg_temp.try($$stepwise.get_next_step(pg_temp.plan('busy'), lease => '100000000 years')$$);

SELECT pg_temp.unsound();
