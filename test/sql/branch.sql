-- What happens when a step has ended: dependents run or are skipped, cascades, and branching conditions with their five actions.

\set ECHO none
\i test/agent.sql
-- One branching condition after a step.
CREATE FUNCTION pg_temp.branch(after int, condition text, action text, params jsonb = NULL) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object('afterStepOrder', after, 'conditionExpression', condition, 'ifTrueAction', action, 'actionParams', params))
$$;
\set ECHO all

-- ---------- the dependency table: eight cells ----------

-- each parent has a required and an optional dependent
SELECT pg_temp.make('table', '[{"name": "success"}, {"name": "failure"}, {"name": "failed"}, {"name": "skipped"},
    {"name": "success_required", "dependsOn": ["success"]}, {"name": "success_optional", "dependsOn": [{"step": "success", "required": false}]},
    {"name": "failure_required", "dependsOn": [{"step": "failure", "required": true}]}, {"name": "failure_optional", "dependsOn": [{"step": "failure", "required": false}]},
    {"name": "failed_required", "dependsOn": ["failed"]}, {"name": "failed_optional", "dependsOn": [{"step": "failed", "required": false}]},
    {"name": "skipped_required", "dependsOn": ["skipped"]}, {"name": "skipped_optional", "dependsOn": [{"step": "skipped", "required": false}]}]');
SELECT pg_temp.submit('table', 'success');
SELECT pg_temp.submit('table', 'failure', outcome => 'failure');
SELECT pg_temp.fail('table', 'failed');
SELECT stepwise.skip_step(pg_temp.step('table', 'skipped')) ->> 'stepStatus';
SELECT pg_temp.show('table');
SELECT pg_temp.next('table') FROM generate_series(1, 5);
SELECT pg_temp.submit('table', s.name) FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('table')) AND s.status = 'in_progress' ORDER BY s.step_order;
SELECT pg_temp.next('table');
SELECT p.outcome FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('table'));

-- cascades through three levels, each naming its parent; an optional dependent stops it
SELECT pg_temp.make('cascade', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["b"]}, {"name": "d", "dependsOn": ["c"]},
    {"name": "e", "dependsOn": [{"step": "d", "required": false}]}]');
SELECT pg_temp.fail('cascade', 'a');
SELECT pg_temp.show('cascade');
SELECT pg_temp.log('cascade', 'step_skipped');

-- required and optional mixed: the step runs only when all parents have ended, and is skipped as soon as one prevents it
SELECT pg_temp.make('mixed', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "all", "dependsOn": ["a", {"step": "b", "required": false}, {"step": "c", "required": false}]},
    {"name": "two", "dependsOn": ["a", "b"]}]');
SELECT pg_temp.submit('mixed', 'b', outcome => 'failure');
SELECT pg_temp.show('mixed');
SELECT pg_temp.submit('mixed', 'a');
SELECT stepwise.skip_step(pg_temp.step('mixed', 'c')) ->> 'stepStatus';
SELECT pg_temp.next('mixed');
-- two parents prevent it: skipped once, by the first
SELECT pg_temp.make('twice', '[{"name": "a"}, {"name": "b"}, {"name": "c", "dependsOn": ["a", "b"]}, {"name": "d", "dependsOn": ["c", "a"]}]');
SELECT pg_temp.fail('twice', 'b');
SELECT pg_temp.fail('twice', 'a');
SELECT pg_temp.show('twice');

-- under pause the dependents of a failed step wait until it is retried or skipped
SELECT pg_temp.make('waits', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": [{"step": "a", "required": false}]}]', on_failure => 'pause');
SELECT pg_temp.fail('waits', 'a');
SELECT pg_temp.show('waits');
SELECT stepwise.retry_step(pg_temp.step('waits', 'a')) ->> 'stepStatus';
SELECT pg_temp.next('waits');
SELECT pg_temp.fail('waits', 'a');
SELECT stepwise.skip_step(pg_temp.step('waits', 'a')) ->> 'stepStatus';
SELECT pg_temp.show('waits');
SELECT pg_temp.next('waits');
SELECT pg_temp.make('waits on', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}]', on_failure => 'pause');
SELECT pg_temp.fail('waits on', 'a');
SELECT stepwise.retry_step(pg_temp.step('waits on', 'a')) ->> 'stepStatus';
SELECT pg_temp.submit('waits on', 'a');
SELECT pg_temp.next('waits on');

-- under continue they are skipped at once, and stay so when the step is retried
SELECT pg_temp.make('too late', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c"}]');
SELECT pg_temp.fail('too late', 'a');
SELECT stepwise.retry_step(pg_temp.step('too late', 'a')) ->> 'stepStatus';
SELECT pg_temp.submit('too late', 'a');
SELECT pg_temp.show('too late');

-- ---------- continue ----------

SELECT pg_temp.make('continue', '[{"name": "a"}, {"name": "b"}]', jsonb_build_array(pg_temp.branch(1, 'result.n > 1', 'continue'), pg_temp.branch(1, 'true', 'fail')));
SELECT pg_temp.plain(stepwise.submit_step_result(pg_temp.step('continue', 'a'), '{"n": 2}'));
SELECT pg_temp.log('continue', 'plan_modified');
SELECT pg_temp.next('continue');

-- ---------- skip_to ----------

SELECT pg_temp.make('skip', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}, {"name": "e"}]',
    jsonb_build_array(pg_temp.branch(1, 'confidence >= 0.9', 'skip_to', '{"stepOrder": 4}'), pg_temp.branch(1, 'confidence >= 0.5', 'skip_to', '{"stepName": "c"}')));
SELECT pg_temp.next('skip');
SELECT pg_temp.submit('skip', 'a', confidence => 0.95);
SELECT pg_temp.show('skip');
SELECT pg_temp.next('skip');
-- the second condition fires; a claimed step between is not skipped
SELECT pg_temp.make('skip', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]',
    jsonb_build_array(pg_temp.branch(1, 'confidence >= 0.9', 'skip_to', '{"stepOrder": 4}'), pg_temp.branch(1, 'confidence >= 0.5', 'skip_to', '{"stepName": "d"}')));
SELECT pg_temp.next('skip'), pg_temp.next('skip');
SELECT pg_temp.submit('skip', 'a', confidence => 0.6);
SELECT pg_temp.show('skip');
SELECT pg_temp.log('skip', 'plan_modified');
-- the target is no longer pending: this is recorded, and nothing else happens
SELECT pg_temp.make('skip late', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', jsonb_build_array(pg_temp.branch(1, 'true', 'skip_to', '{"stepName": "c"}')));
UPDATE stepwise.step SET status = 'in_progress' WHERE id = (SELECT pg_temp.step('skip late', 'c'));
SELECT pg_temp.submit('skip late', 'c');
SELECT pg_temp.plain(stepwise.submit_step_result(pg_temp.step('skip late', 'a'), '{}'));
SELECT pg_temp.show('skip late');
SELECT pg_temp.log('skip late', 'plan_modified');
-- with dependsOn: the dependencies of the target are not skipped
SELECT pg_temp.make('skip tree', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": [{"step": "b", "required": false}]}, {"name": "d", "dependsOn": ["b"]}]',
    jsonb_build_array(pg_temp.branch(1, 'true', 'skip_to', '{"stepName": "c"}')));
SELECT pg_temp.submit('skip tree', 'a');
SELECT pg_temp.show('skip tree');
SELECT pg_temp.next('skip tree');
-- to the next one: nothing between
SELECT pg_temp.make('skip none', '[{"name": "a"}, {"name": "b"}]', jsonb_build_array(pg_temp.branch(1, 'true', 'skip_to', '{"stepOrder": 2}')));
SELECT pg_temp.submit('skip none', 'a');
SELECT pg_temp.next('skip none');

-- ---------- add_steps ----------

SELECT pg_temp.make('add', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]',
    jsonb_build_array(pg_temp.branch(1, 'confidence < 0.5', 'add_steps', '{"steps": [{"name": "x", "arguments": {"again": "${steps.a.outputs.q}"}}, {"name": "y", "condition": "${steps.x.succeeded}"}]}')));
SELECT pg_temp.next('add');
SELECT pg_temp.submit('add', 'a', '{"q": "cats"}', confidence => 0.3);
SELECT pg_temp.show('add');
SELECT pg_temp.next('add');
SELECT pg_temp.submit('add', 'x');
SELECT pg_temp.next('add');
SELECT s.name, s.wave FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('add')) ORDER BY s.step_order;
-- branches of later steps still follow their step, and go to their target
SELECT pg_temp.make('add before', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]',
    jsonb_build_array(pg_temp.branch(1, 'true', 'add_steps', '{"steps": [{"name": "x"}, {"name": "y"}]}'), pg_temp.branch(2, 'true', 'skip_to', '{"stepOrder": 4}')));
SELECT pg_temp.next('add before'), pg_temp.next('add before');
SELECT pg_temp.submit('add before', 'a');
SELECT pg_temp.submit('add before', 'b');
SELECT pg_temp.show('add before');
-- after the last step: the plan is not complete, since it has new steps
SELECT pg_temp.make('add last', '[{"name": "a"}]', jsonb_build_array(pg_temp.branch(1, 'true', 'add_steps', '{"steps": [{"name": "x"}]}')));
SELECT pg_temp.submit('add last', 'a');
SELECT pg_temp.next('add last');
SELECT pg_temp.submit('add last', 'x');
-- with dependsOn: on the step that has just completed, on one that has before, on one that has not, on each other
SELECT pg_temp.make('add tree', '[{"name": "before"}, {"name": "a"}, {"name": "b", "dependsOn": ["a"]}]',
    jsonb_build_array(pg_temp.branch(2, 'true', 'add_steps', '{"steps": [{"name": "x", "dependsOn": ["a", "before"]}, {"name": "y", "dependsOn": ["x", "a"]}, {"name": "z"}]}')));
SELECT pg_temp.submit('add tree', 'before');
SELECT pg_temp.submit('add tree', 'a');
SELECT pg_temp.next('add tree'), pg_temp.next('add tree'), pg_temp.next('add tree'), pg_temp.next('add tree');
SELECT pg_temp.submit('add tree', 'x');
SELECT pg_temp.next('add tree');
SELECT s.name, s.blockers, s.wave FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('add tree')) ORDER BY s.step_order;
-- on a step that did not succeed: required is skipped, optional is not
SELECT pg_temp.make('add tree no', '[{"name": "before"}, {"name": "a"}, {"name": "b", "dependsOn": ["a"]}]',
    jsonb_build_array(pg_temp.branch(2, 'true', 'add_steps', '{"steps": [{"name": "x", "dependsOn": ["a"]}, {"name": "y", "dependsOn": [{"step": "a", "required": false}]},
        {"name": "z", "dependsOn": ["before"]}, {"name": "after_z", "dependsOn": ["z"]}]}')));
SELECT pg_temp.submit('add tree no', 'before', outcome => 'failure');
SELECT pg_temp.submit('add tree no', 'a', outcome => 'failure');
SELECT pg_temp.show('add tree no');
SELECT pg_temp.next('add tree no');
-- steps that can no longer be added: this is recorded, and the plan goes on
SELECT pg_temp.make('add not', '[{"name": "a"}, {"name": "b"}]', jsonb_build_array(pg_temp.branch(1, 'true', 'add_steps', '{"steps": [{"name": "x"}]}')));
SELECT stepwise.modify_plan(pg_temp.plan('add not'), 'add_steps', '{"steps": [{"name": "x"}]}') ->> 'planStatus';
SELECT pg_temp.plain(stepwise.submit_step_result(pg_temp.step('add not', 'a'), '{}') -> 'branch');
SELECT pg_temp.show('add not');
SELECT pg_temp.log('add not', 'plan_modified');

-- ---------- fail ----------

-- the plan fails at once; the other steps stay as they are
SELECT pg_temp.make('fail', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', jsonb_build_array(pg_temp.branch(1, 'outcome == "failure"', 'fail', '{"reason": "a was no good"}')));
SELECT pg_temp.next('fail'), pg_temp.next('fail');
SELECT pg_temp.submit('fail', 'a', outcome => 'failure');
SELECT pg_temp.show('fail');
SELECT pg_temp.log('fail', 'plan_status_changed');
SELECT pg_temp.next('fail');
-- without a given reason, a default is used
SELECT pg_temp.make('fail plainly', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}]', jsonb_build_array(pg_temp.branch(1, 'true', 'fail')));
SELECT pg_temp.submit('fail plainly', 'a');
SELECT pg_temp.show('fail plainly');
-- as the last step: failed, not completed
SELECT pg_temp.make('fail last', '[{"name": "a"}]', jsonb_build_array(pg_temp.branch(1, 'true', 'fail')));
SELECT pg_temp.submit('fail last', 'a');

-- ---------- request_review ----------

-- in a sequence: a new step after this one waits; later steps are not handed out
SELECT pg_temp.make('review', '[{"name": "a"}, {"name": "b"}]', jsonb_build_array(pg_temp.branch(1, 'confidence < 0.5', 'request_review', '{"summary": "Not sure", "questions": ["Really?"]}')));
SELECT pg_temp.next('review', 'anna');
SELECT pg_temp.submit('review', 'a', confidence => 0.2);
SELECT pg_temp.show('review');
SELECT s.name, s.type FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('review')) ORDER BY s.step_order;
SELECT pg_temp.next('review');
SELECT pg_temp.log('review', 'user_reviewed');
SELECT stepwise.submit_user_decision(pg_temp.waiting('review', 'a_review'), 'approve', answers => '["yes"]') ->> 'planStatus';
SELECT pg_temp.next('review');
-- with dependsOn: dependents of the step wait for the review too; other steps go on
SELECT pg_temp.make('review tree', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c"}, {"name": "d", "dependsOn": ["c", "b"]}]',
    jsonb_build_array(pg_temp.branch(1, 'true', 'request_review', '{"summary": "Look"}')));
SELECT pg_temp.submit('review tree', 'a');
SELECT pg_temp.next('review tree');
SELECT pg_temp.next('review tree');
SELECT stepwise.submit_user_decision(pg_temp.waiting('review tree', 'a_review'), 'approve') ->> 'planStatus';
SELECT pg_temp.next('review tree');
-- rejected: the plan fails
SELECT pg_temp.make('review no', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}]', jsonb_build_array(pg_temp.branch(1, 'true', 'request_review', '{"summary": "Look"}')));
SELECT pg_temp.submit('review no', 'a');
SELECT stepwise.submit_user_decision(pg_temp.waiting('review no', 'a_review'), 'reject') ->> 'planStatus';
SELECT pg_temp.show('review no');
-- skipped like any other step: optional dependents of the reviewed step run
SELECT pg_temp.make('review skip', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": [{"step": "a", "required": false}]}]', jsonb_build_array(pg_temp.branch(1, 'true', 'request_review', '{"summary": "Look"}')));
SELECT pg_temp.submit('review skip', 'a');
SELECT stepwise.submit_user_decision(pg_temp.waiting('review skip', 'a_review'), 'skip') ->> 'planStatus';
SELECT pg_temp.show('review skip');
-- the last step, and one whose name is taken
SELECT pg_temp.make('review last', '[{"name": "a_review"}, {"name": "a"}]', jsonb_build_array(pg_temp.branch(2, 'true', 'request_review', '{"summary": "Look"}')));
SELECT pg_temp.submit('review last', 'a_review');
SELECT pg_temp.submit('review last', 'a');
SELECT pg_temp.show('review last');
SELECT stepwise.submit_user_decision(k.checkpoint_id, 'approve') ->> 'planStatus' FROM stepwise.checkpoints AS k WHERE k.plan_id = (SELECT pg_temp.plan('review last'));
SELECT pg_temp.log('review last', 'plan_status_changed');

-- ---------- several conditions, undecided ones, and all ways to complete a step ----------

-- tried in order; the first that fires wins; the log has the results of those before it
SELECT pg_temp.make('several', '[{"name": "a"}, {"name": "b"}]',
    jsonb_build_array(pg_temp.branch(1, 'result.n > 10', 'fail'), pg_temp.branch(1, 'result.missing > 10', 'fail'), pg_temp.branch(1, 'result.n > "x"', 'fail'),
                      pg_temp.branch(1, 'confidence < 0.5', 'fail'), pg_temp.branch(1, '$.result.n > 100', 'fail'), pg_temp.branch(1, '$.result.missing > 100', 'fail'),
                      pg_temp.branch(1, 'n == 5 and steps.a.succeeded', 'continue'), pg_temp.branch(1, 'true', 'fail')));
SELECT pg_temp.submit('several', 'a', '{"n": 5}');
SELECT pg_temp.log('several', 'plan_modified');
-- bare paths: known words come first, other names are looked up in the result
SELECT pg_temp.make('bare', '[{"name": "a"}, {"name": "b"}]', jsonb_build_array(pg_temp.branch(1, 'sources.count >= 3 and summary == "done" and outcome == "success" and inputs.go and result.sources.list.1 == "y"', 'fail', '{"reason": "fired"}')), '{"go": true}');
SELECT stepwise.submit_step_result(pg_temp.step('bare', 'a'), '{"sources": {"count": 3, "list": ["x", "y"]}, "summary": "not this"}', 'done') ->> 'planStatus';
-- a raw jsonpath over result, confidence, outcome, summary, inputs
SELECT pg_temp.make('raw', '[{"name": "a"}, {"name": "b"}]', jsonb_build_array(pg_temp.branch(1, '$.result.list[*] > 2 && $.confidence < 0.5 && $.outcome == "failure" && $.summary starts with "d" && $.inputs.n == 1', 'fail', '{"reason": "fired"}')), '{"n": 1}');
SELECT stepwise.submit_step_result(pg_temp.step('raw', 'a'), '{"list": [1, 3]}', 'done', 0.4, outcome => 'failure') ->> 'planStatus';
-- a failed or skipped step evaluates no conditions; a retried step does when it completes
SELECT pg_temp.make('only completed', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', jsonb_build_array(pg_temp.branch(1, 'true', 'fail'), pg_temp.branch(2, 'true', 'fail')));
SELECT pg_temp.fail('only completed', 'a');
SELECT stepwise.skip_step(pg_temp.step('only completed', 'b')) ->> 'planStatus';
SELECT pg_temp.log('only completed', 'plan_modified');
SELECT stepwise.retry_step(pg_temp.step('only completed', 'a')) ->> 'planStatus';
SELECT pg_temp.submit('only completed', 'a');
-- completed by an answer, by plain SQL, by a nested plan
SELECT pg_temp.make('by answer', '[{"name": "a", "prompt": "Go on?"}, {"name": "b"}]', jsonb_build_array(pg_temp.branch(1, 'not result.response', 'fail', '{"reason": "no"}')));
SELECT pg_temp.next('by answer') LIKE 'awaiting_review%';
SELECT stepwise.resume(pg_temp.waiting('by answer', 'a'), 'false') ->> 'error';
SELECT pg_temp.make('by hand', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', jsonb_build_array(pg_temp.branch(1, 'result.n == 1', 'skip_to', '{"stepName": "c"}')));
SELECT pg_temp.next('by hand');
UPDATE stepwise.step SET status = 'completed', result = '{"n": 1}' WHERE id = (SELECT pg_temp.step('by hand', 'a'));
SELECT pg_temp.show('by hand');
SELECT stepwise.define_workflow('{"name": "branch inner", "steps": [{"name": "x"}], "outputs": {"n": "${steps.x.outputs.n}"}}') ->> 'version';
SELECT pg_temp.make('by nested', '[{"name": "a", "workflow": "branch inner"}, {"name": "b"}]', jsonb_build_array(pg_temp.branch(1, 'n == 1', 'fail', '{"reason": "one"}')));
SELECT pg_temp.next('by nested');
SELECT pg_temp.submit('branch inner', 'x', '{"n": 1}');
SELECT pg_temp.show('by nested');
-- a duplicate submission does not evaluate the conditions again
SELECT pg_temp.make('once', '[{"name": "a"}, {"name": "b"}]', jsonb_build_array(pg_temp.branch(1, 'true', 'add_steps', '{"steps": [{"name": "x"}]}')));
SELECT pg_temp.submit('once', 'a');
SELECT pg_temp.submit('once', 'a');
SELECT count(*) FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('once'));

SELECT pg_temp.unsound();
