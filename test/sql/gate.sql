-- Gates: the review that a definition puts before or after a step, for agents, tools, runs and nested plans.

\set ECHO none
\i test/agent.sql
-- Decide the review at which a step waits.
CREATE FUNCTION pg_temp.decide(plan text, step text, decision text, feedback text = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'decision', a ->> 'stepStatus', a ->> 'planStatus', 'branch ' || (a -> 'branch' ->> 'action'))
    FROM stepwise.submit_user_decision(pg_temp.waiting(plan, step), decision, feedback) AS a
$$;
-- Change a column of a step behind the engine's back, as a changed variable or a repaired row would.
CREATE FUNCTION pg_temp.alter_arguments(plan text, step text, arguments jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL session_replication_role = replica;
    UPDATE stepwise.step SET arguments = $3 WHERE id = pg_temp.step($1, $2);
    SET LOCAL session_replication_role = origin;
END $$;
-- The name of a tool's function is in the answer of a run: keep it short.
CREATE FUNCTION pg_temp.run(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'task_status', pg_temp.plain(a -> 'pause_reason')) FROM stepwise.run(pg_temp.plan(plan)) AS a
$$;
CREATE TABLE deployed (what text);
CREATE FUNCTION gate_deploy(arguments jsonb) RETURNS jsonb LANGUAGE sql AS $$
    INSERT INTO deployed VALUES (arguments ->> 'tag') RETURNING jsonb_build_object('url', 'https://' || what)
$$;
SELECT stepwise.register_tool('gate_deploy', 'gate_deploy(jsonb)') ->> 'name' IS NOT NULL;
\set ECHO all

-- ---------- the definition ----------

SELECT e ->> 'path', e ->> 'message' FROM jsonb_array_elements(stepwise.validate_definition('{"name": "g", "steps": [
    {"name": "a", "review": {"summary": "x"}},
    {"name": "b", "review": {"when": "later"}},
    {"name": "c", "review": "before"},
    {"name": "d", "review": {"when": "before", "questions": "why"}},
    {"name": "e", "review": {"when": "after", "summary": "${steps.f.outputs.x}", "who": 1}},
    {"name": "f", "prompt": "Well?", "review": {"when": "before"}},
    {"name": "g", "review": {"when": "before", "summary": "${bindings.no.x} ${oops"}},
    {"name": "h", "review": {"when": "before", "summary": "${steps.a.outputs.x}", "questions": ["${inputs.x}", {"q": 1}]}}]}') -> 'errors') AS e;
SELECT stepwise.define_workflow('{"name": "gate kept", "steps": [{"name": "a", "review": {"when": "after", "questions": ["Good?"]}}]}') ->> 'version';
SELECT stepwise.get_workflow('gate kept') -> 'definition' -> 'steps';

-- ---------- before: an agent's step ----------

SELECT pg_temp.make('before', '[{"name": "build", "binding": "img"},
    {"name": "deploy", "instructions": "Deploy ${bindings.img.tag}", "arguments": {"tag": "${bindings.img.tag}"},
     "review": {"when": "before", "summary": "Deploy ${bindings.img.tag}?", "questions": ["Is ${bindings.img.tag} tested?"]}},
    {"name": "tell"}]');
SELECT pg_temp.next('before');
SELECT pg_temp.submit('before', 'build', '{"tag": "v1"}');
-- the review opens instead of a hand-out, and no attempt is counted
SELECT pg_temp.next('before', 'anna');
SELECT s.status, s.attempt, s.execution_order, s.inputs FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('before', 'deploy'));
SELECT k.kind, k.gate, k.prompt, k.questions, k.submission FROM stepwise.checkpoints AS k WHERE k.plan_id = (SELECT pg_temp.plan('before'));
SELECT pg_temp.plain(stepwise.why(pg_temp.plan('before')), 'since', 'planId');
-- the answer of the loop is stable, and nothing gets past it
SELECT pg_temp.next('before', 'anna');
SELECT pg_temp.try($$pg_temp.submit('before', 'deploy')$$);
SELECT pg_temp.try($$pg_temp.submit('before', 'tell')$$);
SELECT pg_temp.decide('before', 'deploy', 'approve');
SELECT pg_temp.next('before', 'anna');
SELECT pg_temp.submit('before', 'deploy', '{"done": true}');
SELECT pg_temp.next('before');
SELECT pg_temp.log('before', 'user_reviewed');
SELECT a.event, a.detail ->> 'from', a.detail ->> 'to' FROM stepwise.audit AS a WHERE a.step_id = (SELECT pg_temp.step('before', 'deploy')) AND a.detail ? 'from' ORDER BY a.id;

-- a summary is written for a gate without one; an approved step may be submitted at once
SELECT pg_temp.make('plain gate', '[{"name": "a", "review": {"when": "before"}}]');
SELECT pg_temp.try($$pg_temp.submit('plain gate', 'a')$$);
SELECT stepwise.get_next_step(pg_temp.plan('plain gate')) ->> 'prompt';
SELECT pg_temp.decide('plain gate', 'a', 'approve');
SELECT pg_temp.submit('plain gate', 'a');

-- a retry with the same digest does not ask again; another digest does
SELECT pg_temp.make('again', '[{"name": "a", "arguments": {"tag": 1}, "review": {"when": "before"}}]');
SELECT pg_temp.next('again') LIKE 'awaiting_review%';
SELECT pg_temp.decide('again', 'a', 'approve');
SELECT pg_temp.next('again');
SELECT pg_temp.fail('again', 'a');
SELECT pg_temp.make('again', '[{"name": "a", "arguments": {"tag": 1}, "review": {"when": "before"}}, {"name": "b"}]');
SELECT pg_temp.next('again') LIKE 'awaiting_review%';
SELECT pg_temp.decide('again', 'a', 'approve');
SELECT pg_temp.next('again');
SELECT pg_temp.fail('again', 'a');
SELECT stepwise.retry_step(pg_temp.step('again', 'a')) ->> 'stepStatus';
SELECT pg_temp.next('again');
SELECT stepwise.release_step(pg_temp.step('again', 'a'), 2) ->> 'stepStatus';
SELECT pg_temp.alter_arguments('again', 'a', '{"tag": 2}');
SELECT pg_temp.brief(stepwise.get_next_step(pg_temp.plan('again'))) LIKE 'awaiting_review%';
SELECT pg_temp.decide('again', 'a', 'approve');
SELECT pg_temp.next('again');

-- an approval holds for what was shown; the next call that looks opens the review anew
SELECT pg_temp.make('shown', '[{"name": "a", "arguments": {"tag": 1}, "review": {"when": "before"}}, {"name": "b"}]');
SELECT pg_temp.next('shown') LIKE 'awaiting_review%';
SELECT pg_temp.waiting('shown', 'a') AS old \gset
SELECT pg_temp.alter_arguments('shown', 'a', '{"tag": 2}');
SELECT pg_temp.try($$pg_temp.decide('shown', 'a', 'approve')$$);
SELECT pg_temp.next('shown') LIKE 'awaiting_review%';
SELECT pg_temp.try(format($$stepwise.submit_user_decision(%L, 'approve')$$, :'old'));
SELECT pg_temp.decide('shown', 'a', 'approve');
SELECT pg_temp.next('shown');

-- modify of an agent's step approves it, with the feedback in its instructions
SELECT pg_temp.make('say more', '[{"name": "a", "instructions": "Say ${inputs.x}", "review": {"when": "before"}}, {"name": "b"}]', inputs => '{"x": "hello"}');
SELECT pg_temp.next('say more') LIKE 'awaiting_review%';
SELECT pg_temp.decide('say more', 'a', 'modify', 'not ${inputs.x}');
SELECT a ->> 'name', a ->> 'instructions', a ->> 'feedback', a ->> 'attempt' FROM stepwise.get_next_step(pg_temp.plan('say more')) AS a;
SELECT pg_temp.submit('say more', 'a');

-- ---------- before: tools ----------

-- a run stops at the gate, and goes on after the approval
SELECT pg_temp.make('run gate', '[{"name": "deploy", "tool": "gate_deploy", "arguments": {"tag": "v2"}, "review": {"when": "before", "summary": "Go?"}}, {"name": "tell", "tool": "gate_deploy", "arguments": {"tag": "v3"}}]');
SELECT pg_temp.run('run gate');
SELECT pg_temp.run('run gate');
SELECT count(*) FROM deployed;
SELECT pg_temp.decide('run gate', 'deploy', 'approve');
SELECT pg_temp.run('run gate');
SELECT * FROM deployed;
-- modify starts nothing: the step has to be changed
SELECT pg_temp.make('change it', '[{"name": "deploy", "tool": "gate_deploy", "arguments": {"tag": "v4"}, "review": {"when": "before"}}, {"name": "b"}]');
SELECT pg_temp.next('change it') LIKE 'awaiting_review%';
SELECT pg_temp.decide('change it', 'deploy', 'modify', 'Not on Friday');
SELECT pg_temp.show('change it');
SELECT pg_temp.next('change it');
SELECT pg_temp.run('change it');
SELECT pg_temp.try($$pg_temp.submit('change it', 'deploy')$$);
SELECT pg_temp.try($$stepwise.record_tool_result(pg_temp.plan('change it'), 'gate_deploy', '{}', step_name => 'deploy')$$);
SELECT pg_temp.plain(stepwise.why(pg_temp.plan('change it')), 'since', 'planId');
SELECT pg_temp.plain(to_jsonb(stepwise.handoff(pg_temp.plan('change it'))));
SELECT stepwise.modify_plan(pg_temp.plan('change it'), 'update_step_instructions', jsonb_build_object('stepId', pg_temp.step('change it', 'deploy'), 'instructions', 'On Monday')) ->> 'stepStatus';
SELECT pg_temp.show('change it');
SELECT pg_temp.next('change it') LIKE 'awaiting_review%';
SELECT pg_temp.decide('change it', 'deploy', 'approve');
SELECT pg_temp.run('change it');
SELECT count(*) FROM deployed WHERE what = 'v4';
-- the tool of a client: a run opens its gate too; then the client's result is taken
SELECT pg_temp.make('client', '[{"name": "mail", "tool": "send_mail", "arguments": {"to": "x"}, "review": {"when": "before", "summary": "Send?"}}]');
SELECT pg_temp.try($$stepwise.record_tool_result(pg_temp.plan('client'), 'send_mail', '{}', step_name => 'mail')$$);
SELECT pg_temp.run('client');
SELECT pg_temp.decide('client', 'mail', 'approve');
SELECT stepwise.record_tool_result(pg_temp.plan('client'), 'send_mail', '{}') ->> 'planStatus';

-- ---------- before: a nested workflow ----------

SELECT stepwise.define_workflow('{"name": "gate inner", "inputs": {"x": {"type": "integer"}}, "steps": [{"name": "one"}], "outputs": {"x": "${inputs.x}"}}') ->> 'version';
SELECT pg_temp.make('nest gate', '[{"name": "n", "workflow": "gate inner", "arguments": {"x": 1}, "review": {"when": "before"}}, {"name": "b"}]');
SELECT pg_temp.next('nest gate') LIKE 'awaiting_review%';
SELECT pg_temp.show('nest gate');
-- the version is that of the time when the gate opened
SELECT stepwise.define_workflow('{"name": "gate inner", "inputs": {"x": {"type": "integer"}}, "steps": [{"name": "two"}], "outputs": {"x": "${inputs.x}"}}') ->> 'version';
SELECT pg_temp.decide('nest gate', 'n', 'approve');
SELECT pg_temp.next('nest gate');
SELECT p.version FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('gate inner'));
SELECT pg_temp.submit('gate inner', 'one');
SELECT pg_temp.next('nest gate');
-- modify: the step waits for changes, and takes the newest version afterwards
SELECT pg_temp.make('nest gate', '[{"name": "n", "workflow": "gate inner", "arguments": {"x": 1}, "review": {"when": "before"}}]');
SELECT pg_temp.next('nest gate') LIKE 'awaiting_review%';
SELECT pg_temp.decide('nest gate', 'n', 'modify', 'Another x');
SELECT pg_temp.next('nest gate');
SELECT pg_temp.run('nest gate');

-- ---------- after ----------

SELECT pg_temp.make('after', '[{"name": "build", "binding": "img", "instructions": "Build", "review": {"when": "after", "questions": ["Good?"]}},
    {"name": "deploy", "arguments": {"tag": "${bindings.img.tag}"}}, {"name": "never"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "confidence < 0.9", "ifTrueAction": "skip_to", "actionParams": {"stepName": "deploy"}}]',
    outputs => '{"tag": "${bindings.img.tag}"}');
SELECT pg_temp.next('after', 'anna', '1 hour');
SELECT pg_temp.plain(stepwise.submit_step_result(pg_temp.step('after', 'build'), '{"tag": "v1"}', 'short', 0.5, '{"r": 1}', 'bold', worker => 'anna'));
-- nobody sees it yet
SELECT s.status, s.outcome, s.result, s.result_summary, s.confidence, s.execution_report, s.output_formatting_notes FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('after', 'build'));
SELECT k.gate, k.prompt, k.questions, k.submission FROM stepwise.checkpoints AS k WHERE k.plan_id = (SELECT pg_temp.plan('after'));
SELECT stepwise.get_step_context(pg_temp.step('after', 'build')) -> 'checkpoint' -> 'submission' -> 'result';
SELECT pg_temp.next('after') LIKE 'awaiting_review%';
-- the identical submission is a duplicate; another is refused
SELECT stepwise.submit_step_result(pg_temp.step('after', 'build'), '{"tag": "v1"}', 'short', 0.5, '{"r": 1}', 'bold') -> 'duplicate';
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('after', 'build'), '{"tag": "v2"}', 'short', 0.5, '{"r": 1}', 'bold')$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('after', 'build'), '{"tag": "v1"}')$$);
-- modify: sent back with what was submitted, and the next to be handed out
SELECT pg_temp.plain(stepwise.submit_user_decision(pg_temp.waiting('after', 'build'), 'modify', 'Smaller'));
SELECT pg_temp.try($$pg_temp.submit('after', 'deploy')$$);
SELECT a ->> 'name', a ->> 'attempt', a -> 'previousResult', a ->> 'feedback', a ->> 'instructions' FROM stepwise.get_next_step(pg_temp.plan('after'), 'paul') AS a;
SELECT pg_temp.plain(stepwise.submit_step_result(pg_temp.step('after', 'build'), '{"tag": "v2"}', 'short', 0.5, '{"r": 1}', 'bold', attempt => 2), 'stepId', 'planId');
-- approve: completed with all of it; branches and references see it now
SELECT pg_temp.decide('after', 'build', 'approve');
SELECT s.status, s.outcome, s.result, s.result_summary, s.confidence, s.execution_report, s.output_formatting_notes FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('after', 'build'));
SELECT stepwise.submit_step_result(pg_temp.step('after', 'build'), '{"tag": "v2"}', 'short', 0.5, '{"r": 1}', 'bold') -> 'duplicate';
SELECT pg_temp.next('after');

-- an outcome of failure waits too; a failure of the step does not
SELECT pg_temp.make('after failure', '[{"name": "a", "review": {"when": "after"}}, {"name": "b", "review": {"when": "after"}}]');
SELECT pg_temp.submit('after failure', 'a', '{"e": 1}', 'failure');
SELECT pg_temp.decide('after failure', 'a', 'approve');
SELECT pg_temp.next('after failure');
SELECT pg_temp.fail('after failure', 'b');
SELECT pg_temp.show('after failure');

-- advance, a run and the result of a tool wait in the same way
SELECT pg_temp.make('ways', '[{"name": "a", "review": {"when": "after"}}, {"name": "b", "tool": "gate_deploy", "arguments": {"tag": "v9"}, "review": {"when": "after"}}, {"name": "c", "tool": "mail", "review": {"when": "after"}}]');
SELECT pg_temp.next('ways');
SELECT a -> 'submitted' ->> 'stepStatus', a -> 'next' ->> 'status' FROM stepwise.advance(pg_temp.step('ways', 'a'), '1') AS a;
SELECT pg_temp.decide('ways', 'a', 'approve');
SELECT pg_temp.run('ways') LIKE 'input_required%';
SELECT k.submission FROM stepwise.checkpoints AS k WHERE k.plan_id = (SELECT pg_temp.plan('ways'));
-- a step of the database that was sent back is run again
SELECT pg_temp.decide('ways', 'b', 'modify', 'Once more');
SELECT pg_temp.run('ways') LIKE 'input_required%';
SELECT count(*) FROM deployed WHERE what = 'v9';
SELECT pg_temp.decide('ways', 'b', 'approve');
SELECT stepwise.record_tool_result(pg_temp.plan('ways'), 'mail', '{"sent": 1}', step_name => 'c') ->> 'stepStatus';
SELECT stepwise.record_tool_result(pg_temp.plan('ways'), 'mail', '{"sent": 1}', step_name => 'c') ->> 'duplicate';
SELECT pg_temp.decide('ways', 'c', 'approve');
-- a tool error is not gated
SELECT pg_temp.make('tool error', '[{"name": "c", "tool": "mail", "review": {"when": "after"}}]');
SELECT stepwise.record_tool_result(pg_temp.plan('tool error'), 'mail', '"no"', true) ->> 'stepStatus';

-- a nested plan that completes, also if it waited itself
SELECT stepwise.define_workflow('{"name": "gate asks", "steps": [{"name": "ask", "prompt": "Well?"}], "outputs": {"said": "${steps.ask.outputs.response}"}}') ->> 'version';
SELECT pg_temp.make('nest after', '[{"name": "n", "workflow": "gate asks", "review": {"when": "after"}}, {"name": "b", "arguments": {"said": "${steps.n.outputs.said}"}}]');
SELECT pg_temp.next('nest after') LIKE 'awaiting_review%';
SELECT stepwise.resume(pg_temp.waiting('gate asks', 'ask'), '"yes"') ->> 'planStatus';
SELECT pg_temp.show('nest after');
SELECT pg_temp.next('nest after') LIKE 'awaiting_review%';
SELECT pg_temp.try($$pg_temp.decide('nest after', 'n', 'modify', 'no')$$);
SELECT pg_temp.decide('nest after', 'n', 'approve');
SELECT pg_temp.next('nest after');

-- skip and reject at both gates
SELECT pg_temp.make('no', '[{"name": "a", "review": {"when": "before"}}, {"name": "b", "review": {"when": "after"}}, {"name": "c"}]');
SELECT pg_temp.next('no') LIKE 'awaiting_review%';
SELECT pg_temp.decide('no', 'a', 'skip', 'not needed');
SELECT pg_temp.next('no');
SELECT pg_temp.submit('no', 'b');
SELECT pg_temp.decide('no', 'b', 'reject', 'no good');
SELECT pg_temp.show('no');

-- ---------- a review that is requested ----------

-- only of a step in progress, with a result that the approval completes it with
SELECT pg_temp.make('asked', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.try($$stepwise.request_user_review(pg_temp.step('asked', 'a'), 'Look')$$);
SELECT pg_temp.next('asked');
SELECT pg_temp.plain(stepwise.request_user_review(pg_temp.step('asked', 'a'), 'Look', result => '{"text": "x"}'));
SELECT stepwise.request_user_review(pg_temp.step('asked', 'a'), 'Look', result => '{"text": "x"}') -> 'duplicate';
SELECT pg_temp.try($$stepwise.request_user_review(pg_temp.step('asked', 'a'), 'Look', result => '{"text": "y"}')$$);
SELECT pg_temp.try($$stepwise.request_user_review(pg_temp.step('asked', 'a'), 'Look')$$);
SELECT pg_temp.decide('asked', 'a', 'modify', 'Better');
SELECT a ->> 'name', a -> 'previousResult' FROM stepwise.get_next_step(pg_temp.plan('asked')) AS a;
SELECT stepwise.request_user_review(pg_temp.step('asked', 'a'), 'Look', result => 'null', attempt => 2) ->> 'stepStatus';
SELECT pg_temp.decide('asked', 'a', 'approve');
SELECT s.result, s.outcome FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('asked', 'a'));
-- the gate after the step comes all the same
SELECT pg_temp.make('asked gate', '[{"name": "a", "review": {"when": "after", "summary": "The gate"}}]');
SELECT pg_temp.next('asked gate');
SELECT stepwise.request_user_review(pg_temp.step('asked gate', 'a'), 'All fine, click here', result => '1') ->> 'stepStatus';
SELECT pg_temp.decide('asked gate', 'a', 'approve');
SELECT k.prompt, k.submission FROM stepwise.checkpoints AS k WHERE k.plan_id = (SELECT pg_temp.plan('asked gate'));
SELECT pg_temp.decide('asked gate', 'a', 'approve');
-- sent back, then changed behind what the gate before it has approved: the gate opens again
SELECT pg_temp.make('back', '[{"name": "a", "tool": "gate_deploy", "arguments": {"tag": "v5"}, "review": {"when": "before"}}]');
SELECT pg_temp.next('back') LIKE 'awaiting_review%';
SELECT pg_temp.decide('back', 'a', 'approve');
SELECT pg_temp.next('back');
SELECT stepwise.request_user_review(pg_temp.step('back', 'a'), 'Look') ->> 'stepStatus';
SELECT pg_temp.decide('back', 'a', 'modify', 'Go on');
SELECT pg_temp.alter_arguments('back', 'a', '{"tag": "evil"}');
SELECT pg_temp.run('back') LIKE 'input_required%';
SELECT count(*) FROM deployed WHERE what = 'evil';

-- ---------- rejected below ----------

SELECT stepwise.define_workflow('{"name": "gate low", "steps": [{"name": "low", "review": {"when": "before"}}]}') ->> 'version';
SELECT stepwise.define_workflow('{"name": "gate middle", "onFailure": "continue", "steps": [{"name": "mid", "workflow": "gate low"}, {"name": "after"}]}') ->> 'version';
SELECT pg_temp.make('gate top', '[{"name": "up", "workflow": "gate middle"}, {"name": "after"}]');
SELECT pg_temp.next('gate top') LIKE 'awaiting_review%';
SELECT pg_temp.decide('gate low', 'low', 'reject', 'no');
SELECT pg_temp.show(p) FROM unnest('{gate low,gate middle,gate top}'::text[]) AS p;
SELECT pg_temp.next('gate top');

-- ---------- forks, dependencies ----------

-- a fork keeps no approval
SELECT pg_temp.make('forked', '[{"name": "a"}, {"name": "b", "review": {"when": "before"}}]');
SELECT pg_temp.next('forked');
SELECT pg_temp.submit('forked', 'a');
SELECT pg_temp.next('forked') LIKE 'awaiting_review%';
SELECT pg_temp.decide('forked', 'b', 'approve');
SELECT stepwise.fork_plan(pg_temp.plan('forked'), 'b') ->> 'planId' AS fork \gset
SELECT stepwise.get_next_step(:'fork') ->> 'status';
-- with dependsOn, a gate holds back only what depends on it
SELECT pg_temp.make('dag', '[{"name": "a", "review": {"when": "before"}}, {"name": "b"}, {"name": "c", "dependsOn": ["a", "b"]}]');
SELECT pg_temp.next('dag');
SELECT pg_temp.submit('dag', 'b');
SELECT pg_temp.next('dag') LIKE 'awaiting_review%';
SELECT pg_temp.decide('dag', 'a', 'approve');
SELECT pg_temp.next('dag');
SELECT pg_temp.submit('dag', 'a');
SELECT pg_temp.next('dag');
-- a summary whose value is missing blocks the step before its gate, and nothing after it
SELECT pg_temp.make('missing', '[{"name": "a"}, {"name": "b", "review": {"when": "before", "summary": "${steps.a.outputs.x}"}}]');
SELECT pg_temp.next('missing');
SELECT pg_temp.submit('missing', 'a');
SELECT pg_temp.next('missing');
SELECT pg_temp.make('missing after', '[{"name": "a"}, {"name": "b", "review": {"when": "after", "summary": "${steps.a.outputs.x}", "questions": ["${steps.a.outputs.y}"]}}]');
SELECT pg_temp.next('missing after');
SELECT pg_temp.submit('missing after', 'a', '{"x": {"y": 1}}');
SELECT pg_temp.next('missing after');
SELECT pg_temp.submit('missing after', 'b');
SELECT k.prompt, k.questions FROM stepwise.checkpoints AS k WHERE k.plan_id = (SELECT pg_temp.plan('missing after'));

SELECT stepwise.cancel_plan(p.id) IS NOT NULL AS cancelled FROM stepwise.plan AS p, began WHERE p.created_at >= began.at AND p.parent_step_id IS NULL AND p.completed_at IS NULL AND p.name = 'missing after';
SELECT count(*) FROM stepwise.checkpoints AS k JOIN stepwise.plan AS p ON p.id = k.plan_id WHERE p.name = 'missing after';
SELECT pg_temp.unsound();
SELECT stepwise.drop_tool('gate_deploy') IS NOT NULL;
DROP FUNCTION gate_deploy(jsonb);
DROP TABLE deployed;
