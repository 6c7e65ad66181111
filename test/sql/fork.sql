-- fork_plan creates a plan that keeps what an old plan did before a step, to try another way from there.

\set ECHO none
\i test/trees.sql
\set ECHO all

-- The audit chain of a plan, without ids, times and digests.
CREATE FUNCTION pg_temp.log(plan_id uuid) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a.event, s.name, (a.detail ->> 'from') || ' to ' || (a.detail ->> 'to'), a.detail ->> 'action', a.detail ->> 'branchAction',
                     a.detail -> 'addedSteps', CASE WHEN a.detail ? 'forked' THEN 'forked' END, 'from step ' || (a.detail ->> 'fromStep'),
                     'forked from ' || (SELECT p.name FROM stepwise.plan AS p WHERE p.id = (a.detail ->> 'forkedFrom')::uuid),
                     'forked to ' || (SELECT p.name FROM stepwise.plan AS p WHERE p.id = (a.detail ->> 'forkedTo')::uuid))
    FROM stepwise.audit AS a LEFT JOIN stepwise.step AS s ON s.tenant = 'default' AND s.id = a.step_id
    WHERE a.tenant = 'default' AND a.plan_id = $1 ORDER BY a.id
$$;

-- Fork a plan; the fork gets its own label.
CREATE FUNCTION pg_temp.fork(label text, of uuid, from_step text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    x jsonb := stepwise.fork_plan(of, from_step);
BEGIN
    INSERT INTO labelled VALUES (label, (x ->> 'planId')::uuid);
    RETURN x - '{planId, forkedFrom}'::text[];
END $$;
CREATE FUNCTION pg_temp.fork(label text, of text, from_step text) RETURNS jsonb LANGUAGE sql AS $$
    SELECT pg_temp.fork(label, pg_temp.plan(of), from_step)
$$;

-- ---------- a sequence ----------

SELECT pg_temp.define('seq', '[
    {"name": "one", "arguments": {"x": "${inputs.x}"}},
    {"name": "two", "arguments": {"from": "${steps.one.outputs.v}"}, "maxAttempts": 3},
    {"name": "three", "condition": "${steps.two.outputs.v} > 100"},
    {"name": "four", "arguments": {"from": "${steps.two.outputs.v}"}, "binding": "last"}]', '{
    "inputs": {"x": {"type": "integer"}}, "outputs": {"v": "${bindings.last.v}"}}');
SELECT pg_temp.start('seq', 'seq', '{"x": 1}');
SELECT pg_temp.next('seq', 'ann', '1 hour');
SELECT pg_temp.submit('seq', 'one', '{"v": 10}');
SELECT pg_temp.next('seq', 'ann', '1 hour');
SELECT pg_temp.plain(stepwise.fail_step(pg_temp.step('seq', 'two'), 'no', worker => 'ann'));
SELECT pg_temp.plain(stepwise.retry_step(pg_temp.step('seq', 'two')));
SELECT pg_temp.next('seq', 'ann');
SELECT pg_temp.submit('seq', 'two', '{"v": 20}');
SELECT pg_temp.next('seq', 'ann');
SELECT pg_temp.submit('seq', 'four', '{"v": 30}');
SELECT pg_temp.show('seq');
SELECT pg_temp.fork('again', 'seq', 'four');
SELECT pg_temp.show('again');
SELECT (SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(x) AS k), (x ->> 'forkedFrom')::uuid = pg_temp.plan('seq') AS from
FROM stepwise.fork_plan(pg_temp.plan('seq'), 'two') AS x;
-- steps that start over have no result yet
SELECT name, status, attempt, execution_order, worker, holder, lease_expires_at, started_at IS NULL AS started, completed_at IS NULL AS completed, inputs, message
FROM stepwise.step WHERE plan_id = (SELECT pg_temp.plan('again')) ORDER BY step_order;
-- the fork ends differently; the old plan is unchanged
SELECT pg_temp.next('again', 'bob');
SELECT pg_temp.submit('again', 'four', '{"v": 31}');
SELECT pg_temp.show('again');
SELECT pg_temp.show('seq');
-- both chains refer to each other, and cover the kept results
SELECT pg_temp.log(pg_temp.plan('seq'));
SELECT pg_temp.log(pg_temp.plan('again'));
SELECT x -> 'valid' FROM stepwise.verify_audit(pg_temp.plan('again')) AS x;
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE stepwise.step SET result = '{"v": 11}' WHERE id = (SELECT pg_temp.step('again', 'one'));
SELECT x -> 'valid', x #>> '{firstInvalid,event}' FROM stepwise.verify_audit(pg_temp.plan('again')) AS x;
ROLLBACK;
-- from the first step; from the middle; of a fork
SELECT pg_temp.fork('first', 'seq', 'one');
SELECT pg_temp.show('first');
SELECT pg_temp.fork('middle', 'again', 'two');
SELECT pg_temp.next('middle');
SELECT pg_temp.submit('middle', 'two', '{"v": 200}');
SELECT pg_temp.next('middle');
SELECT pg_temp.show('middle');
-- of a running plan: steps in progress start over in the fork
SELECT pg_temp.fork('running', 'middle', 'four');
SELECT pg_temp.show('running');
SELECT pg_temp.next('running');
-- the fork does not get the key and the final output of the old plan, but gets its variables and notes
SELECT x ->> 'planId' AS keyed FROM stepwise.create_plan('keyed', 'Try keys', '[{"name": "a"}]', idempotency_key => 'fork', output_formatting_notes => 'short') AS x \gset
SELECT x ->> 'planId' IS NOT NULL FROM stepwise.store_output(:'keyed', 'the end') AS x;
SELECT x ->> 'planId' IS NOT NULL FROM stepwise.set_variables(:'keyed', '{"k": 1}') AS x;
SELECT pg_temp.fork('keyed', :'keyed'::uuid, 'a');
SELECT p.idempotency_key, d.final_output, d.final_media_type, d.variables, d.output_formatting_notes, d.forked_from = :'keyed' AS from
FROM stepwise.plan AS p JOIN stepwise.plan_detail AS d ON d.plan_id = p.id WHERE p.id = (SELECT pg_temp.plan('keyed'));

-- ---------- what cannot be forked ----------

SELECT pg_temp.try($$SELECT stepwise.fork_plan(pg_temp.plan('seq'), 'five')$$);
SELECT pg_temp.try($$SELECT stepwise.fork_plan(pg_temp.plan('seq'), NULL)$$);
SELECT left(pg_temp.try($$SELECT stepwise.fork_plan('00000000-0000-7000-8000-000000000000', 'one')$$), 5),
       left(pg_temp.try($$SELECT stepwise.fork_plan(NULL, 'one')$$), 5);

-- ---------- dependencies ----------

SELECT pg_temp.define('dag', '[
    {"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": []}, {"name": "c", "dependsOn": []},
    {"name": "ab", "dependsOn": ["a", "b"]}, {"name": "opt", "dependsOn": [{"step": "c", "required": false}]},
    {"name": "end", "dependsOn": ["ab", {"step": "opt", "required": false}]}]');
SELECT pg_temp.start('dag', 'dag');
SELECT pg_temp.submit('dag', 'b'), pg_temp.submit('dag', 'a'), pg_temp.submit('dag', 'c', '{}', 'failure'), pg_temp.submit('dag', 'ab', '{}', 'failure'),
       pg_temp.submit('dag', 'opt');
SELECT pg_temp.show('dag');
CREATE FUNCTION pg_temp.readiness(label text) RETURNS TABLE (step text, status stepwise.step_status, blockers int, ready boolean, execution_order int)
LANGUAGE sql AS $$
    SELECT name, status, blockers, (SELECT true FROM stepwise.plan AS p WHERE p.id = s.plan_id AND (s.ready_mark OR s.step_order = ANY (p.ready_steps))), execution_order FROM stepwise.step AS s WHERE plan_id = (SELECT pg_temp.plan(label)) ORDER BY step_order
$$;
-- from b: steps that do not depend on it are kept
SELECT pg_temp.fork('from b', 'dag', 'b');
SELECT * FROM pg_temp.readiness('from b');
SELECT pg_temp.next('from b');
SELECT pg_temp.submit('from b', 'b');
SELECT * FROM pg_temp.readiness('from b');
-- from end: its parent did not succeed, so it is skipped at once, and the fork has ended
SELECT pg_temp.fork('from end', 'dag', 'end');
SELECT pg_temp.show('from end');
-- a failed step starts over, and so do the steps that were skipped because of it
SELECT pg_temp.start('failing', 'dag');
SELECT pg_temp.submit('failing', 'a'), stepwise.fail_step(pg_temp.step('failing', 'b'), 'no') ->> 'planStatus';
SELECT pg_temp.show('failing');
SELECT pg_temp.fork('from c', 'failing', 'c');
SELECT * FROM pg_temp.readiness('from c');
SELECT pg_temp.next('from c'), pg_temp.next('from c'), pg_temp.next('from c');

-- ---------- plans that failed, were cancelled, or wait ----------

SELECT pg_temp.define('strict', '[{"name": "a"}, {"name": "b"}, {"name": "ask", "prompt": "Well?"}, {"name": "c"}]', '{"onFailure": "fail"}');
SELECT pg_temp.start('failed', 'strict');
SELECT pg_temp.submit('failed', 'a');
SELECT pg_temp.plain(stepwise.fail_step(pg_temp.step('failed', 'b'), 'no'));
SELECT pg_temp.fork('from failed', 'failed', 'b');
SELECT pg_temp.show('from failed');
SELECT pg_temp.submit('from failed', 'b');
SELECT pg_temp.next('from failed');
-- a fork of a waiting plan asks again; each plan has its own checkpoint
SELECT pg_temp.fork('asks', 'from failed', 'ask');
SELECT pg_temp.fork('asks later', 'from failed', 'c');
SELECT pg_temp.show('asks');
SELECT pg_temp.next('asks');
SELECT pg_temp.plain(stepwise.resume(pg_temp.checkpoint('asks', 'ask'), '"there"'));
SELECT pg_temp.show('from failed');
SELECT pg_temp.plain(stepwise.cancel_plan(pg_temp.plan('from failed'), 'enough'));
-- steps that were skipped only because the plan was cancelled start over
SELECT pg_temp.fork('from cancelled', 'from failed', 'c');
SELECT pg_temp.show('from cancelled');

-- ---------- branches ----------

-- a branch that fired does not fire again; if it is decided again, the steps that it added are not there
SELECT pg_temp.define('branching', '[{"name": "look"}, {"name": "write"}, {"name": "end"}]', '{"branchingConditions": [
    {"afterStepOrder": 1, "conditionExpression": "confidence < 0.5", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "look_again"}]}},
    {"afterStepOrder": 2, "conditionExpression": "confidence < 0.5", "ifTrueAction": "request_review", "actionParams": {"summary": "Good?", "questions": ["Sure?"]}}]}');
SELECT pg_temp.start('branching', 'branching');
SELECT x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('branching', 'look'), '{}', confidence => 0.1) AS x;
SELECT pg_temp.submit('branching', 'look_again');
SELECT x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('branching', 'write'), '{}', confidence => 0.1) AS x;
SELECT pg_temp.show('branching');
SELECT pg_temp.fork('from look', 'branching', 'look');
SELECT pg_temp.show('from look');
SELECT x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('from look', 'look'), '{}', confidence => 0.9) AS x;
SELECT x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('from look', 'write'), '{}', confidence => 0.1) AS x;
SELECT step_order, wave, name, status FROM stepwise.step WHERE plan_id = (SELECT pg_temp.plan('from look')) ORDER BY step_order;
SELECT pg_temp.fork('from write', 'branching', 'write');
SELECT pg_temp.show('from write');
-- a review that was requested before the step is requested again, so that a fork cannot bypass it
SELECT pg_temp.fork('review again', 'branching', 'end');
SELECT pg_temp.show('review again');
SELECT pg_temp.next('review again');
SELECT pg_temp.plain(stepwise.submit_user_decision(pg_temp.checkpoint('review again', 'write_review'), 'approve'));
SELECT pg_temp.next('review again');
SELECT pg_temp.fork('review done', 'review again', 'end');
SELECT pg_temp.show('review done');
SELECT pg_temp.plain(stepwise.submit_user_decision(pg_temp.checkpoint('branching', 'write_review'), 'reject', 'no'));
SELECT pg_temp.fork('review rejected', 'branching', 'end');
SELECT pg_temp.show('review rejected');
SELECT pg_temp.log(pg_temp.plan('review rejected'));
-- with dependencies too
SELECT pg_temp.define('branching dag', '[{"name": "look", "dependsOn": []}, {"name": "side", "dependsOn": []}, {"name": "end", "dependsOn": ["look"]}]', '{"branchingConditions": [
    {"afterStepOrder": 1, "conditionExpression": "confidence < 0.5", "ifTrueAction": "request_review", "actionParams": {"summary": "Good?"}}]}');
SELECT pg_temp.start('branching dag', 'branching dag');
SELECT x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('branching dag', 'look'), '{}', confidence => 0.1) AS x;
SELECT pg_temp.plain(stepwise.submit_user_decision(pg_temp.checkpoint('branching dag', 'look_review'), 'approve'));
SELECT * FROM pg_temp.readiness('branching dag');
SELECT pg_temp.fork('dag from look', 'branching dag', 'look');
SELECT * FROM pg_temp.readiness('dag from look');
SELECT x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('dag from look', 'look'), '{}', confidence => 0.9) AS x;
SELECT * FROM pg_temp.readiness('dag from look');
SELECT pg_temp.fork('dag from end', 'branching dag', 'end');
SELECT * FROM pg_temp.readiness('dag from end');

-- steps that a branch skipped, directly or by cascade, start over only if the branch is decided again
SELECT pg_temp.define('skipping dag', '[{"name": "s", "dependsOn": []}, {"name": "x", "dependsOn": []}, {"name": "e", "dependsOn": []}, {"name": "y", "dependsOn": ["x"]},
    {"name": "by_hand", "dependsOn": []}]', '{"branchingConditions": [
    {"afterStepOrder": 1, "conditionExpression": "confidence < 0.5", "ifTrueAction": "skip_to", "actionParams": {"stepName": "e"}}]}');
SELECT pg_temp.start('skipping dag', 'skipping dag');
SELECT x ->> 'stepStatus' FROM stepwise.skip_step(pg_temp.step('skipping dag', 'by_hand'), 'a branch after step "s" skipped to "e"') AS x;
SELECT x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('skipping dag', 's'), '{}', confidence => 0.1) AS x;
SELECT pg_temp.show('skipping dag');
SELECT a.detail -> 'skippedSteps' FROM stepwise.audit AS a WHERE a.plan_id = (SELECT pg_temp.plan('skipping dag')) AND a.detail ->> 'action' = 'branch';
SELECT pg_temp.fork('skipping from s', 'skipping dag', 's');
SELECT * FROM pg_temp.readiness('skipping from s');
SELECT x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('skipping from s', 's'), '{}', confidence => 0.9) AS x;
SELECT pg_temp.next('skipping from s');
SELECT pg_temp.fork('skipping from e', 'skipping dag', 'e');
SELECT pg_temp.show('skipping from e');
-- the same in a fork of a fork, which has the branches of the first plan
SELECT pg_temp.log(pg_temp.plan('skipping from e'));
SELECT pg_temp.fork('skipping from e from s', 'skipping from e', 's');
SELECT * FROM pg_temp.readiness('skipping from e from s');
SELECT pg_temp.fork('from write from look', 'from write', 'look');
SELECT pg_temp.show('from write from look');
SELECT pg_temp.fork('dag from end from look', 'dag from end', 'look');
SELECT * FROM pg_temp.readiness('dag from end from look');
-- a review that a fork requests is requested again in its forks
SELECT pg_temp.start('branching twice', 'branching');
SELECT x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('branching twice', 'look'), '{}', confidence => 0.9) AS x;
SELECT x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('branching twice', 'write'), '{}', confidence => 0.1) AS x;
SELECT pg_temp.fork('review once more', 'branching twice', 'end');
SELECT pg_temp.fork('review twice more', 'review once more', 'end');
SELECT pg_temp.show('review twice more');
-- in a sequence a skipped step may have been moved before the step that skipped it
SELECT pg_temp.define('skipping', '[{"name": "s"}, {"name": "x"}, {"name": "e"}]', '{"branchingConditions": [
    {"afterStepOrder": 1, "conditionExpression": "confidence < 0.5", "ifTrueAction": "skip_to", "actionParams": {"stepName": "e"}}]}');
SELECT pg_temp.start('skipping', 'skipping');
SELECT x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('skipping', 's'), '{}', confidence => 0.1) AS x;
SELECT x ->> 'planStatus' FROM stepwise.modify_plan(pg_temp.plan('skipping'), 'reorder_steps', jsonb_build_object('stepIds',
    jsonb_build_array(pg_temp.step('skipping', 'x'), pg_temp.step('skipping', 's'), pg_temp.step('skipping', 'e')))) AS x;
SELECT pg_temp.fork('skipping moved', 'skipping', 's');
SELECT pg_temp.show('skipping moved');
SELECT pg_temp.fork('skipping moved from e', 'skipping', 'e');
SELECT pg_temp.show('skipping moved from e');

-- ---------- nested plans ----------

SELECT pg_temp.define('leaf', '[{"name": "x"}, {"name": "y"}]', '{"outputs": {"o": "${steps.x.outputs.v}"}}');
SELECT pg_temp.define('mid', '[{"name": "l", "workflow": "leaf"}, {"name": "z"}]', '{"outputs": {"o": "${steps.l.outputs.o}"}}');
SELECT pg_temp.define('top', '[{"name": "m", "workflow": "mid"}, {"name": "n", "workflow": "mid"},
    {"name": "use", "arguments": {"v": "${steps.m.steps.l.steps.x.outputs.v}", "w": "${steps.n.outputs.o}"}}]');
SELECT pg_temp.start('top', 'top');
SELECT pg_temp.next('top'), pg_temp.submit('top', 'm/l/x', '{"v": 1}'), pg_temp.submit('top', 'm/l/y', '{}', 'failure'), pg_temp.submit('top', 'm/z');
SELECT pg_temp.next('top'), pg_temp.submit('top', 'n/l/x', '{"v": 2}');
SELECT pg_temp.show('top');
-- a kept step is copied with its nested plans, and references read the copy; a step that starts over opens a new nested plan
SELECT pg_temp.fork('from n', 'top', 'n');
SELECT pg_temp.show('from n');
SELECT count(*), count(*) FILTER (WHERE root_id = (SELECT pg_temp.plan('from n'))) FROM stepwise.plan WHERE id IN ((SELECT pg_temp.nested('from n', 'm')), (SELECT pg_temp.nested('from n', 'm/l')));
SELECT x -> 'valid', jsonb_array_length(x -> 'nested') FROM stepwise.verify_audit(pg_temp.plan('from n'), true) AS x;
SELECT pg_temp.log(pg_temp.nested('from n', 'm'));
SELECT pg_temp.log(pg_temp.nested('from n', 'm/l'));
SELECT stepwise.execution(pg_temp.plan('from n')) #> '{blocks,m}' = stepwise.execution(pg_temp.plan('top')) #> '{blocks,m}' AS same;
SELECT pg_temp.next('from n');
SELECT pg_temp.submit('from n', 'n/l/x', '{"v": 3}'), pg_temp.submit('from n', 'n/l/y');
SELECT pg_temp.next('from n'), pg_temp.submit('from n', 'n/z');
SELECT pg_temp.next('from n');
-- a skipped step keeps what its nested plan did
SELECT pg_temp.plain(stepwise.skip_step(pg_temp.step('top', 'n'), 'enough'));
SELECT pg_temp.fork('from use', 'top', 'use');
SELECT pg_temp.show('from use');
-- a failed one starts over
SELECT pg_temp.start('failing top', 'top');
SELECT pg_temp.next('failing top');
SELECT pg_temp.plain(stepwise.cancel_plan(pg_temp.nested('failing top', 'm'), 'stuck'));
SELECT pg_temp.fork('from failing', 'failing top', 'use');
SELECT pg_temp.show('from failing');
SELECT pg_temp.next('from failing');
-- a failed plan below a kept step is copied unchanged, with its waiting steps; its chain has only allowed transitions
SELECT pg_temp.define('fails waiting', '[{"name": "ask", "prompt": "Well?", "dependsOn": []}, {"name": "work", "dependsOn": []}, {"name": "more", "dependsOn": []}]', '{"onFailure": "fail"}');
SELECT pg_temp.define('goes on', '[{"name": "f", "workflow": "fails waiting"}]', '{"onFailure": "continue"}');
SELECT pg_temp.define('keeps', '[{"name": "g", "workflow": "goes on"}, {"name": "after"}]');
SELECT pg_temp.start('keeps', 'keeps');
SELECT pg_temp.next('keeps'), pg_temp.next('keeps');
SELECT x ->> 'planStatus' FROM stepwise.fail_step(pg_temp.step('keeps', 'g/f/work'), 'no') AS x;
SELECT pg_temp.fork('kept', 'keeps', 'after');
SELECT pg_temp.show('kept');
SELECT pg_temp.log(pg_temp.nested('kept', 'g/f'));
-- a nested plan by itself: the fork is a root
SELECT pg_temp.fork('nested', pg_temp.nested('from n', 'm'), 'z');
SELECT pg_temp.show('nested');
SELECT depth, parent_step_id, root_id = id AS root FROM stepwise.plan WHERE id = (SELECT pg_temp.plan('nested'));
SELECT pg_temp.next('nested');
SELECT pg_temp.submit('nested', 'z');
SELECT pg_temp.show('nested');
-- a workflow that it calls may have been dropped since
SELECT pg_temp.define('short-lived', '[{"name": "x"}]');
SELECT x ->> 'planId' AS plan FROM stepwise.create_plan('calls', 'Call it', '[{"name": "h", "workflow": "short-lived"}, {"name": "after"}]') AS x \gset
SELECT x ->> 'status' FROM stepwise.get_next_step(:'plan') AS x;
SELECT x ->> 'planStatus' FROM stepwise.cancel_plan(:'plan') AS x;
SELECT x ->> 'name' FROM stepwise.drop_workflow('short-lived') AS x;
SELECT pg_temp.fork('gone', :'plan'::uuid, 'h');
SELECT pg_temp.next('gone');
SELECT pg_temp.show('gone');

-- ---------- all is well ----------

\set ECHO none
\i test/sound.sql
\set ECHO all
SELECT * FROM pg_temp.sound();
SELECT count(*) FROM labelled AS l, stepwise.verify_audit(l.plan_id, true) AS x WHERE NOT (x -> 'valid')::boolean;
SELECT count(*) FROM stepwise.step WHERE blockers < 0;

-- the fork of a plan whose step a worker holds: nobody holds it there
SELECT stepwise.create_plan('held', 'g', '[{"name": "a"}, {"name": "b"}]') ->> 'planId' AS held \gset
SELECT stepwise.get_next_step(:'held', 'w') ->> 'attempt';
SELECT stepwise.fork_plan(:'held', 'a') ->> 'planId' AS fork \gset
SELECT stepwise.get_next_step(:'fork', 'w') - ARRAY['planId', 'rootPlanId', 'stepId'];
SELECT * FROM stepwise.check_integrity();
