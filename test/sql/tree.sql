-- Nested plans: how they open, pause, continue and end at any depth, and the execution tree that shows them.

\set ECHO none
\i test/trees.sql
\set ECHO all

-- The audit chain of a plan, without times and digests.
CREATE FUNCTION pg_temp.log(plan_id uuid) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a.event, s.name, (a.detail ->> 'from') || ' to ' || (a.detail ->> 'to'), a.detail ->> 'action',
                     a.detail ->> 'nestedStatus', '(' || coalesce(a.detail ->> 'message', a.detail #>> '{reason,type}', a.detail ->> 'reason') || ')')
    FROM stepwise.audit AS a LEFT JOIN stepwise.step AS s ON s.tenant = 'default' AND s.id = a.step_id
    WHERE a.tenant = 'default' AND a.plan_id = $1 ORDER BY a.id
$$;

-- Workflows that call each other down to the fourth level, where these steps are: a/b/c/d.
CREATE FUNCTION pg_temp.tower(name text, steps jsonb, more jsonb = '{}', top jsonb = '{}') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    common jsonb := '{"inputs": {"n": {"type": "integer", "default": 1}}}';
BEGIN
    PERFORM pg_temp.define(name || '4', steps, common || more);
    FOR i IN REVERSE 3..0 LOOP
        PERFORM pg_temp.define(name || coalesce(nullif(i, 0)::text, ''), jsonb_build_array(jsonb_build_object(
                'name', chr(97 + i), 'workflow', name || i + 1, 'arguments', '{"n": "${inputs.n}"}'::jsonb)),
            common || jsonb_build_object('outputs', jsonb_build_object('r', format('${steps.%s.outputs.r}', chr(97 + i)))) || top);
    END LOOP;
END $$;


-- ---------- opening: arguments become inputs, outputs become the result, and the outcome is passed on ----------

SELECT pg_temp.define('add', '[{"name": "sum", "tool": "calc", "arguments": {"x": "${inputs.x}", "y": "${inputs.y}"}}]', '{
    "description": "Add two numbers", "inputs": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 10}},
    "outputs": {"total": "${steps.sum.outputs.total}", "of": "${inputs}"}}');
SELECT pg_temp.define('twice', '[
    {"name": "first", "workflow": "add", "arguments": {"x": "${inputs.x}"}, "binding": "one"},
    {"name": "second", "workflow": "add", "arguments": {"x": "${bindings.one.total}", "y": "${steps.first.steps.sum.outputs.total}"}},
    {"name": "say", "instructions": "Say ${steps.second.outputs.total}"}]', '{
    "inputs": {"x": {"type": "integer"}}, "outputs": {"total": "${steps.second.outputs.total}"}}');

-- an agent that asks for the root plan gets leaf steps with their paths
SELECT pg_temp.start('pass', 'twice', '{"x": 1}');
SELECT x ->> 'status', x -> 'path', x ->> 'name', x -> 'arguments', x ->> 'stepOrder', (x ->> 'rootPlanId')::uuid = pg_temp.plan('pass') AS root,
       (x ->> 'planId')::uuid = pg_temp.nested('pass', 'first') AS nested, (x ->> 'stepId')::uuid = pg_temp.step('pass', 'first/sum') AS step
FROM stepwise.get_next_step(pg_temp.plan('pass'), 'ann') AS x;
SELECT p.name, p.goal, p.workflow, p.version, p.depth, p.inputs, p.status, p.root_id = pg_temp.plan('pass') AS root,
       p.parent_step_id = pg_temp.step('pass', 'first') AS parent
FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.nested('pass', 'first'));
SELECT pg_temp.next('pass', 'ann');
SELECT x -> 'submitted' ->> 'planStatus', x -> 'next' -> 'path', x -> 'next' -> 'arguments'
FROM stepwise.advance(pg_temp.step('pass', 'first/sum'), '{"total": 11}', worker => 'ann') AS x;
SELECT x -> 'submitted' ->> 'planStatus', x -> 'next' -> 'path', x -> 'next' ->> 'instructions'
FROM stepwise.advance(pg_temp.step('pass', 'second/sum'), '{"total": 22}', worker => 'ann') AS x;
SELECT x -> 'submitted' ->> 'planStatus', pg_temp.plain(x -> 'next')
FROM stepwise.advance(pg_temp.step('pass', 'say'), '"said"', worker => 'ann') AS x;
SELECT pg_temp.show('pass');

-- an agent may ask for a nested plan
SELECT pg_temp.start('part', 'twice', '{"x": 1}');
SELECT pg_temp.next('part');
SELECT pg_temp.next(pg_temp.nested('part', 'first'));
SELECT pg_temp.submit('part', 'first/sum', '{"total": 5}');
SELECT pg_temp.next(pg_temp.nested('part', 'first'));
SELECT pg_temp.next('part');

-- outcome failure becomes the outcome of the step, which does not fail
SELECT pg_temp.start('outcome', 'twice', '{"x": 1}');
SELECT pg_temp.next('outcome');
SELECT pg_temp.submit('outcome', 'first/sum', '{"total": 5}', 'failure');
SELECT pg_temp.next('outcome');
SELECT pg_temp.submit('outcome', 'second/sum', '{"total": 5}');
SELECT pg_temp.submit('outcome', 'say');
SELECT pg_temp.show('outcome');

-- the newest version at the time of opening, or the one that is named
SELECT pg_temp.define('versioned', '[{"name": "old"}]');
SELECT pg_temp.define('calls', '[{"name": "newest", "workflow": "versioned"}, {"name": "first", "workflow": "versioned", "version": 1}]');
SELECT pg_temp.start('versions', 'calls');
SELECT pg_temp.define('versioned', '[{"name": "new"}]');
SELECT pg_temp.next('versions');
SELECT p.version FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.nested('versions', 'newest'));
SELECT pg_temp.submit('versions', 'newest/new');
SELECT pg_temp.next('versions');
SELECT pg_temp.submit('versions', 'first/old');

-- ---------- a prompt four levels down shows at every level ----------

SELECT pg_temp.tower('prompt', '[{"name": "ask", "prompt": "Is ${inputs.n} enough?"}, {"name": "work"}, {"name": "again", "prompt": "Sure?"}]',
    '{"outputs": {"r": ["${steps.ask.outputs.response}", "${steps.again.outputs.response}"]}}');
SELECT pg_temp.start('prompt', 'prompt', '{"n": 7}');
SELECT pg_temp.next('prompt');
SELECT pg_temp.show('prompt');
-- all levels have the same reason with the path from the root
SELECT count(*), count(DISTINCT p.pause_reason), count(DISTINCT x -> 'pauseReason')
FROM stepwise.plan AS p, stepwise.get_plan_status(p.id) AS x WHERE p.root_id = (SELECT pg_temp.plan('prompt'));
SELECT p.pause_reason - 'checkpointId', (p.pause_reason ->> 'checkpointId')::uuid = pg_temp.checkpoint('prompt', 'a/b/c/d/ask') AS checkpoint
FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.nested('prompt', 'a/b'));
SELECT pg_temp.plain(stepwise.workflow_response(pg_temp.plan('prompt')));
SELECT pg_temp.plain(stepwise.workflow_response(pg_temp.nested('prompt', 'a/b/c')));
-- asking again changes nothing
SELECT pg_temp.next('prompt');
SELECT k.kind, k.prompt, k.path, k.root_plan_id = pg_temp.plan('prompt') AS root, k.plan_id = pg_temp.nested('prompt', 'a/b/c/d') AS nested,
       k.step_id = pg_temp.step('prompt', 'a/b/c/d/ask') AS step
FROM stepwise.checkpoints AS k WHERE k.root_plan_id = (SELECT pg_temp.plan('prompt'));
-- the wrong function, then the right one; after that the checkpoint is used
SELECT left(pg_temp.try($$SELECT stepwise.submit_user_decision(pg_temp.checkpoint('prompt', 'a/b/c/d/ask'), 'approve')$$), 5);
SELECT pg_temp.checkpoint('prompt', 'a/b/c/d/ask') AS used \gset
SELECT pg_temp.plain(stepwise.resume(:'used', '"yes"'));
SELECT left(pg_temp.try(format($$SELECT stepwise.resume(%L, '"no"')$$, :'used')), 5);
SELECT pg_temp.show('prompt');
SELECT pg_temp.next('prompt');
SELECT pg_temp.submit('prompt', 'a/b/c/d/work');
-- a second pause in the same nested plan works like the first; its answer completes all levels
SELECT pg_temp.next('prompt');
SELECT pg_temp.show('prompt');
SELECT pg_temp.plain(stepwise.resume(pg_temp.checkpoint('prompt', 'a/b/c/d/again'), '{"sure": true}'));
SELECT pg_temp.show('prompt');
SELECT pg_temp.log(pg_temp.plan('prompt'));
SELECT pg_temp.log(pg_temp.nested('prompt', 'a/b/c/d'));

-- ---------- a review four levels down ----------

SELECT pg_temp.tower('review', '[{"name": "draft", "instructions": "Write"}, {"name": "send"}]', '{"outputs": {"r": "${steps.draft.outputs}"}}');
SELECT pg_temp.start('review', 'review');
SELECT pg_temp.next('review');
SELECT pg_temp.plain(stepwise.request_user_review(pg_temp.step('review', 'a/b/c/d/draft'), 'Look at it', '["Good?"]'));
SELECT pg_temp.show('review');
SELECT pg_temp.next('review');
SELECT left(pg_temp.try($$SELECT stepwise.resume(pg_temp.checkpoint('review', 'a/b/c/d/draft'), '"yes"')$$), 5);
-- modify: the plans continue at every level
SELECT pg_temp.plain(stepwise.submit_user_decision(pg_temp.checkpoint('review', 'a/b/c/d/draft'), 'modify', 'shorter'));
SELECT pg_temp.show('review');
SELECT pg_temp.plain(stepwise.request_user_review(pg_temp.step('review', 'a/b/c/d/draft'), 'Look again'));
SELECT pg_temp.plain(stepwise.submit_user_decision(pg_temp.checkpoint('review', 'a/b/c/d/draft'), 'approve', answers => '["yes"]'));
SELECT pg_temp.next('review');
SELECT pg_temp.plain(stepwise.request_user_review(pg_temp.step('review', 'a/b/c/d/send'), 'Send it?'));
SELECT pg_temp.plain(stepwise.submit_user_decision(pg_temp.checkpoint('review', 'a/b/c/d/send'), 'skip', 'not today'));
SELECT pg_temp.show('review');

-- reject: the plan fails independent of on_failure, and each level above follows its own on_failure
SELECT pg_temp.start('rejected', 'review');
SELECT pg_temp.next('rejected');
SELECT pg_temp.plain(stepwise.request_user_review(pg_temp.step('rejected', 'a/b/c/d/draft'), 'Look at it'));
SELECT pg_temp.plain(stepwise.submit_user_decision(pg_temp.checkpoint('rejected', 'a/b/c/d/draft'), 'reject', 'bad'));
SELECT pg_temp.show('rejected');
SELECT pg_temp.plain(stepwise.workflow_response(pg_temp.plan('rejected')));

-- ---------- a failed step four levels down, under pause ----------

SELECT pg_temp.tower('error', '[{"name": "fetch", "tool": "http_get", "retryable": true}, {"name": "store"}]',
    '{"onFailure": "pause", "outputs": {"r": "${steps.fetch.outputs}"}}');
SELECT pg_temp.start('error', 'error');
SELECT pg_temp.next('error');
SELECT pg_temp.plain(stepwise.fail_step(pg_temp.step('error', 'a/b/c/d/fetch'), 'timeout'));
-- every level stays executing, and shows the reason
SELECT pg_temp.show('error');
SELECT pg_temp.next('error');
SELECT pg_temp.plain(stepwise.workflow_response(pg_temp.plan('error')));
SELECT pg_temp.plain(x) -> 'pauseReason', x ->> 'status', x ->> 'derivedStatus' FROM stepwise.get_plan_status(pg_temp.nested('error', 'a/b')) AS x;
SELECT string_agg(format('%s %s', level, status), ', ' ORDER BY level) FROM (
    SELECT 'plan' AS level, x #>> '{metadata,status}' AS status FROM stepwise.execution(pg_temp.plan('error')) AS x
    UNION ALL SELECT 'step', x #>> '{blocks,a,metadata,status}' FROM stepwise.execution(pg_temp.plan('error')) AS x
    UNION ALL SELECT 'the failed step', x #>> '{blocks,a,blocks,b,blocks,c,blocks,d,blocks,fetch,metadata,status}' FROM stepwise.execution(pg_temp.plan('error')) AS x) AS x;
SELECT pg_temp.plain(stepwise.retry_step(pg_temp.step('error', 'a/b/c/d/fetch')));
SELECT pg_temp.show('error');
SELECT pg_temp.next('error');
SELECT pg_temp.submit('error', 'a/b/c/d/fetch', '"page"');
SELECT pg_temp.plain(stepwise.fail_step(pg_temp.step('error', 'a/b/c/d/store'), 'disk full'));
SELECT pg_temp.plain(stepwise.skip_step(pg_temp.step('error', 'a/b/c/d/store'), 'never mind'));
SELECT pg_temp.show('error');
-- the reason has an audit entry at every level
SELECT p.depth, count(*) FILTER (WHERE a.event = 'plan_paused') AS paused, count(*) FILTER (WHERE a.event = 'plan_status_changed') AS changed
FROM stepwise.plan AS p JOIN stepwise.audit AS a ON a.plan_id = p.id WHERE p.root_id = (SELECT pg_temp.plan('error')) GROUP BY p.depth ORDER BY p.depth;

-- a step that cannot be resolved is blocked, at every level too
SELECT pg_temp.tower('blocked', '[{"name": "get", "tool": "get"}, {"name": "use", "tool": "use", "arguments": {"v": "${steps.get.outputs.v}"}}]');
SELECT pg_temp.start('blocked', 'blocked');
SELECT pg_temp.next('blocked');
SELECT pg_temp.submit('blocked', 'a/b/c/d/get', '{"w": 1}');
SELECT pg_temp.next('blocked');
SELECT pg_temp.show('blocked');
SELECT pg_temp.plain(stepwise.skip_step(pg_temp.step('blocked', 'a/b/c/d/use')));
SELECT pg_temp.next('blocked');

-- ---------- two prompts in parallel branches: both listed, answered in either order, neither lost ----------

SELECT pg_temp.define('question', '[{"name": "ask", "prompt": "${inputs.text}?"}, {"name": "note"}]', '{
    "inputs": {"text": {"type": "string"}}, "outputs": {"said": "${steps.ask.outputs.response}"}}');
SELECT pg_temp.define('survey', '[
    {"name": "left", "workflow": "question", "arguments": {"text": "Left"}, "dependsOn": []},
    {"name": "right", "workflow": "question", "arguments": {"text": "Right"}},
    {"name": "count", "arguments": {"l": "${steps.left.outputs.said}", "r": "${steps.right.outputs.said}"}, "dependsOn": ["left", "right"]}]', '{
    "outputs": {"l": "${steps.left.outputs.said}", "r": "${steps.right.outputs.said}"}}');
SELECT pg_temp.define('two', '[{"name": "s", "workflow": "survey"}]', '{"outputs": {"s": "${steps.s.outputs}"}}');
SELECT pg_temp.start('in order', 'two'), pg_temp.start('reverse', 'two');
SELECT pg_temp.next('in order');
SELECT pg_temp.next('reverse');
SELECT pg_temp.show('in order');
SELECT l.label, k.path, k.prompt FROM stepwise.checkpoints AS k JOIN labelled AS l ON l.plan_id = k.root_plan_id
WHERE l.label IN ('in order', 'reverse') ORDER BY l.label, k.checkpoint_id;
SELECT pg_temp.plain(stepwise.resume(pg_temp.checkpoint('in order', 's/left/ask'), '"l"'));
-- the other still waits, while this branch goes on
SELECT pg_temp.next('in order');
SELECT pg_temp.show('in order');
SELECT pg_temp.submit('in order', 's/left/note');
SELECT pg_temp.next('in order');
SELECT pg_temp.plain(stepwise.resume(pg_temp.checkpoint('in order', 's/right/ask'), '"r"'));
SELECT pg_temp.next('in order');
SELECT pg_temp.submit('in order', 's/right/note');
SELECT pg_temp.next('in order');
SELECT pg_temp.submit('in order', 's/count');
SELECT pg_temp.next('in order');
SELECT pg_temp.plain(stepwise.resume(pg_temp.checkpoint('reverse', 's/right/ask'), '"r"'));
SELECT pg_temp.plain(stepwise.resume(pg_temp.checkpoint('reverse', 's/left/ask'), '"l"'));
SELECT pg_temp.next('reverse');
SELECT pg_temp.next('reverse');
SELECT pg_temp.next('reverse');
SELECT pg_temp.submit('reverse', 's/left/note'), pg_temp.submit('reverse', 's/right/note'), pg_temp.submit('reverse', 's/count');
SELECT pg_temp.show('reverse');

-- ---------- failure ----------

-- a nested plan that fails makes its step failed, with its message
SELECT pg_temp.define('strict', '[{"name": "check"}, {"name": "go"}]', '{"onFailure": "fail"}');
SELECT pg_temp.define('under continue', '[{"name": "h", "workflow": "strict"}, {"name": "after"}]', '{"onFailure": "continue"}');
SELECT pg_temp.define('under pause', '[{"name": "h", "workflow": "strict"}, {"name": "after"}]', '{"onFailure": "pause"}');
SELECT pg_temp.define('under fail', '[{"name": "h", "workflow": "strict"}, {"name": "after"}]', '{"onFailure": "fail"}');
SELECT pg_temp.start(w, w) FROM unnest('{under continue, under pause, under fail}'::text[]) AS w;
SELECT pg_temp.next(w) FROM unnest('{under continue, under pause, under fail}'::text[]) AS w;
SELECT pg_temp.plain(stepwise.fail_step(pg_temp.step(w, 'h/check'), 'no disk')) FROM unnest('{under continue, under pause, under fail}'::text[]) AS w;
SELECT pg_temp.show(w) FROM unnest('{under continue, under pause, under fail}'::text[]) AS w;
SELECT pg_temp.next(w) FROM unnest('{under continue, under pause, under fail}'::text[]) AS w;
SELECT w, pg_temp.plain(stepwise.workflow_response(pg_temp.plan(w))) FROM unnest('{under continue, under pause, under fail}'::text[]) AS w;
-- a retry of the failed step under pause opens a new nested plan; the old one stays readable
SELECT pg_temp.plain(stepwise.retry_step(pg_temp.step('under pause', 'h')));
SELECT pg_temp.next('under pause');
SELECT pg_temp.show('under pause');
SELECT pg_temp.submit('under pause', 'h/check'), pg_temp.submit('under pause', 'h/go'), pg_temp.submit('under pause', 'after');
SELECT pg_temp.show('under pause');
-- the tree shows the new one
SELECT x #>> '{blocks,h,blocks,check,metadata,status}', x #>> '{blocks,h,metadata,attempt}' FROM stepwise.execution(pg_temp.plan('under pause')) AS x;

-- a branch that fails the nested plan
SELECT pg_temp.define('branching', '[{"name": "look"}, {"name": "rest"}]', '{"branchingConditions": [
    {"afterStepOrder": 1, "conditionExpression": "confidence < 0.5", "ifTrueAction": "fail", "actionParams": {"reason": "not sure enough"}}]}');
SELECT pg_temp.define('calls branching', '[{"name": "h", "workflow": "branching"}, {"name": "after", "condition": "${steps.h.failed}"}]');
SELECT pg_temp.start('branch', 'calls branching');
SELECT pg_temp.next('branch');
SELECT x ->> 'planStatus', x #>> '{branch,action}' FROM stepwise.submit_step_result(pg_temp.step('branch', 'h/look'), '{}', confidence => 0.1) AS x;
SELECT pg_temp.next('branch');
SELECT pg_temp.show('branch');

-- invalid inputs fail the step before anything is opened; all faults are named
SELECT pg_temp.define('declares', '[{"name": "x"}]', '{"inputs": {"n": {"type": "integer"}, "s": {"type": "string"}, "o": {"type": "object", "required": false}}}');
SELECT pg_temp.define('misuses', '[{"name": "h", "workflow": "declares", "arguments": {"n": "${inputs.n}", "s": "", "t": 1}}, {"name": "after"}]', '{"inputs": {"n": {"type": "string"}}}');
SELECT pg_temp.start('inputs', 'misuses', '{"n": "one"}');
SELECT pg_temp.next('inputs');
SELECT pg_temp.show('inputs');
SELECT pg_temp.plain(stepwise.retry_step(pg_temp.step('inputs', 'h')));
SELECT pg_temp.next('inputs');

-- several levels may fail within one call
SELECT pg_temp.define('misuses strictly', '[{"name": "h", "workflow": "declares", "arguments": {"n": 1}}, {"name": "never"}]', '{"onFailure": "fail"}');
SELECT pg_temp.define('calls that', '[{"name": "i", "workflow": "misuses strictly"}, {"name": "never"}]', '{"onFailure": "fail"}');
SELECT pg_temp.start('at once', 'calls that');
SELECT pg_temp.next('at once');
SELECT pg_temp.show('at once');
-- or end without any work
SELECT pg_temp.define('nothing', '[{"name": "x", "condition": "1 == 2"}]', '{"outputs": {"x": "${steps.x.outputs}"}}');
SELECT pg_temp.define('calls nothing', '[{"name": "h", "workflow": "nothing"}, {"name": "i", "workflow": "nothing"}]', '{"outputs": {"h": "${steps.h.outputs}"}}');
SELECT pg_temp.start('nothing', 'calls nothing');
SELECT pg_temp.next('nothing');
SELECT pg_temp.show('nothing');

-- ---------- only its nested plan can complete a step that holds one ----------

SELECT pg_temp.define('work', '[{"name": "x", "workflow": "strict"}, {"name": "y"}]');
SELECT pg_temp.define('holds', '[{"name": "h", "workflow": "work"}, {"name": "after"}]');
SELECT pg_temp.start('held', 'holds');
SELECT pg_temp.try($$SELECT pg_temp.submit('held', 'h')$$);
SELECT pg_temp.next('held');
SELECT pg_temp.try($$SELECT pg_temp.submit('held', 'h')$$);
SELECT pg_temp.try($$SELECT stepwise.advance(pg_temp.step('held', 'h'), '{}')$$);
SELECT pg_temp.try($$SELECT stepwise.release_step(pg_temp.step('held', 'h'))$$);
SELECT pg_temp.try($$SELECT stepwise.heartbeat(pg_temp.step('held', 'h'), 1, '1 second')$$);
SELECT left(pg_temp.try($$SELECT stepwise.request_user_review(pg_temp.step('held', 'h'), 'Look')$$), 5);
SELECT pg_temp.try($$SELECT stepwise.retry_step(pg_temp.step('held', 'h'))$$);
-- plain SQL cannot do it either
SELECT s, pg_temp.try(format($$UPDATE stepwise.step SET status = %L WHERE id = (SELECT pg_temp.step('held', 'h'))$$, s))
FROM unnest('{pending, awaiting_input, completed}'::text[]) AS s;
SELECT s, pg_temp.try(format($$UPDATE stepwise.step SET status = %L WHERE id = (SELECT pg_temp.step('held', 'h/x'))$$, s))
FROM unnest('{pending, awaiting_input, completed}'::text[]) AS s;
SELECT pg_temp.try($$UPDATE stepwise.step SET lease_expires_at = now() WHERE id = (SELECT pg_temp.step('held', 'h'))$$);
SELECT pg_temp.try($$UPDATE stepwise.step SET workflow = NULL WHERE id = (SELECT pg_temp.step('held', 'h'))$$);
SELECT pg_temp.try($$UPDATE stepwise.plan SET status = 'completed' WHERE id = (SELECT pg_temp.nested('held', 'h'))$$);
SELECT pg_temp.try($$UPDATE stepwise.plan SET parent_step_id = NULL WHERE id = (SELECT pg_temp.nested('held', 'h'))$$);
SELECT pg_temp.try($$DELETE FROM stepwise.plan WHERE id = (SELECT pg_temp.nested('held', 'h'))$$);
SELECT pg_temp.start('not opened', 'holds');
SELECT s, pg_temp.try(format($$UPDATE stepwise.step SET status = %L WHERE id = (SELECT pg_temp.step('not opened', 'h'))$$, s))
FROM unnest('{in_progress, completed}'::text[]) AS s;
SELECT pg_temp.show('held');

-- ---------- ending such a step ends the nested plan, and both chains record it ----------

SELECT pg_temp.start(l, 'holds') FROM unnest('{failed, skipped, cancelled, middle, deep, raw, modified}'::text[]) AS l;
SELECT pg_temp.next(l) FROM unnest('{failed, skipped, cancelled, middle, deep, raw, modified}'::text[]) AS l;
SELECT pg_temp.plain(stepwise.fail_step(pg_temp.step('failed', 'h'), 'gave up'));
SELECT pg_temp.show('failed');
SELECT pg_temp.log(pg_temp.plan('failed'));
SELECT pg_temp.log(pg_temp.nested('failed', 'h'));
SELECT pg_temp.log(pg_temp.nested('failed', 'h/x'));
SELECT pg_temp.next('failed');
SELECT left(pg_temp.try($$SELECT pg_temp.submit('failed', 'h/x/check')$$), 5);
-- retried: a new nested plan from the beginning
SELECT pg_temp.plain(stepwise.retry_step(pg_temp.step('failed', 'h')));
SELECT pg_temp.next('failed');
SELECT pg_temp.show('failed');
SELECT pg_temp.plain(stepwise.skip_step(pg_temp.step('skipped', 'h'), 'not needed'));
SELECT pg_temp.show('skipped');
SELECT pg_temp.log(pg_temp.nested('skipped', 'h'));
SELECT pg_temp.plain(stepwise.cancel_plan(pg_temp.plan('cancelled'), 'changed my mind'));
SELECT pg_temp.show('cancelled');
SELECT pg_temp.log(pg_temp.plan('cancelled'));
SELECT pg_temp.log(pg_temp.nested('cancelled', 'h/x'));
SELECT pg_temp.plain(stepwise.workflow_response(pg_temp.plan('cancelled')));
-- a nested plan may be cancelled: then its step fails
SELECT pg_temp.plain(stepwise.cancel_plan(pg_temp.nested('middle', 'h'), 'too slow'));
SELECT pg_temp.show('middle');
SELECT pg_temp.log(pg_temp.plan('middle'));
SELECT pg_temp.plain(stepwise.cancel_plan(pg_temp.nested('deep', 'h/x')));
SELECT pg_temp.show('deep');
SELECT pg_temp.next('deep');
-- plain SQL ends them in the same way, one step or a whole tree
UPDATE stepwise.step SET status = 'skipped' WHERE id = (SELECT pg_temp.step('raw', 'h/x'));
SELECT pg_temp.show('raw');
SELECT pg_temp.next('raw');
UPDATE stepwise.step SET status = 'skipped' WHERE root_id = (SELECT pg_temp.plan('raw')) AND status IN ('pending', 'in_progress');
SELECT pg_temp.show('raw');
SELECT pg_temp.plain(stepwise.modify_plan(pg_temp.plan('modified'), 'fail_step', jsonb_build_object('stepId', pg_temp.step('modified', 'h'), 'reason', 'wrong')));
SELECT pg_temp.show('modified');

-- ending a waiting nested plan closes its checkpoints
SELECT pg_temp.start('waiting', 'two');
SELECT pg_temp.next('waiting');
SELECT pg_temp.checkpoint('waiting', 's/left/ask') AS gone \gset
SELECT pg_temp.plain(stepwise.skip_step(pg_temp.step('waiting', 's/left'), 'enough'));
SELECT pg_temp.show('waiting');
SELECT left(pg_temp.try(format($$SELECT stepwise.resume(%L, '1')$$, :'gone')), 5);
SELECT pg_temp.plain(stepwise.cancel_plan(pg_temp.plan('waiting'), 'over'));
SELECT count(*) FROM stepwise.checkpoints WHERE root_plan_id = (SELECT pg_temp.plan('waiting'));

-- a plan fails while other steps hold nested plans: those steps keep their states, the nested plans end
SELECT pg_temp.define('race', '[
    {"name": "talk", "workflow": "question", "arguments": {"text": "Well"}, "dependsOn": []},
    {"name": "work", "workflow": "holds", "dependsOn": []},
    {"name": "trip", "dependsOn": []}]', '{"onFailure": "fail"}');
SELECT pg_temp.define('calls race', '[{"name": "r", "workflow": "race"}, {"name": "after"}]');
SELECT pg_temp.start('race', 'calls race');
SELECT pg_temp.next('race', 'ann');
SELECT pg_temp.show('race');
SELECT pg_temp.plain(stepwise.fail_step(pg_temp.step('race', 'r/trip'), 'fell'));
SELECT pg_temp.show('race');
SELECT pg_temp.log(pg_temp.nested('race', 'r'));
SELECT pg_temp.log(pg_temp.nested('race', 'r/talk'));
SELECT count(*) FROM stepwise.checkpoints WHERE root_plan_id = (SELECT pg_temp.plan('race'));
SELECT pg_temp.next('race', 'ann');

-- one statement that moves steps of a nested plan and a step of the root that depends on them
SELECT pg_temp.define('fragile', '[{"name": "x"}]', '{"onFailure": "fail"}');
SELECT pg_temp.define('by hand', '[{"name": "c", "workflow": "fragile", "dependsOn": []}, {"name": "e", "dependsOn": ["c"]}, {"name": "f", "dependsOn": []}]');
SELECT pg_temp.start('by hand', 'by hand');
SELECT pg_temp.next('by hand');
UPDATE stepwise.step SET status = 'in_progress' WHERE id = (SELECT pg_temp.step('by hand', 'e'));
UPDATE stepwise.step SET status = CASE name WHEN 'x' THEN 'failed' ELSE 'pending' END::stepwise.step_status
WHERE id IN ((SELECT pg_temp.step('by hand', 'c/x')), (SELECT pg_temp.step('by hand', 'e')));
SELECT pg_temp.show('by hand');
SELECT * FROM pg_temp.log(pg_temp.plan('by hand'));

-- ---------- circles ----------

SELECT pg_temp.define('ring a', '[{"name": "x"}]'), pg_temp.define('ring b', '[{"name": "to_a", "workflow": "ring a"}]'),
       pg_temp.define('ring c', '[{"name": "to_b", "workflow": "ring b"}]');
SELECT pg_temp.try($$SELECT pg_temp.define('ring a', '[{"name": "to_c", "workflow": "ring c"}]')$$);
SELECT pg_temp.try($$SELECT pg_temp.define('ring a', '[{"name": "itself", "workflow": "ring a"}]')$$);
SELECT pg_temp.try($$SELECT pg_temp.define('ring d', '[{"name": "itself", "workflow": "ring d"}]')$$);

-- with recursion allowed, a bounded recursion works
SET stepwise.allow_recursion = on;
SELECT pg_temp.define('countdown', '[
    {"name": "tick", "arguments": {"n": "${inputs.n}"}},
    {"name": "again", "workflow": "countdown", "arguments": {"n": "${steps.tick.outputs.left}"}, "condition": "${steps.tick.outputs.left} > 0"}]', '{
    "inputs": {"n": {"type": "integer"}}, "outputs": {"n": "${inputs.n}", "below": "${steps.again.outputs}"}}');
SELECT pg_temp.start('countdown', 'countdown', '{"n": 4}');
CREATE FUNCTION pg_temp.count_down(label text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    x jsonb;
BEGIN
    LOOP
        x := stepwise.get_next_step(pg_temp.plan(label));
        IF x ->> 'status' <> 'step_ready' THEN
            RETURN NEXT concat_ws(' ', x ->> 'status', x -> 'outputs', x ->> 'error');
            RETURN;
        END IF;
        RETURN NEXT concat_ws(' ', x -> 'path', x #> '{arguments,n}');
        PERFORM stepwise.submit_step_result((x ->> 'stepId')::uuid, jsonb_build_object('left', (x #>> '{arguments,n}')::int - 1));
    END LOOP;
END $$;
SELECT pg_temp.count_down('countdown');
SELECT pg_temp.show('countdown');
-- at the limit the step that would go deeper fails; the tree stays readable
SET stepwise.max_nesting = 3;
SELECT pg_temp.start('limit', 'countdown', '{"n": 9}');
SELECT pg_temp.count_down('limit');
SELECT pg_temp.show('limit');
SELECT jsonb_path_query_array(stepwise.execution(pg_temp.plan('limit')), 'strict $.**.again.metadata.status');
RESET stepwise.max_nesting;
-- the default is 50; without the setting, the plan fails where it would open the circle
SELECT pg_temp.start('fifty', 'countdown', '{"n": 60}');
SELECT count(*) FROM pg_temp.count_down('fifty');
SELECT count(*), max(depth) FROM stepwise.plan WHERE root_id = (SELECT pg_temp.plan('fifty'));
SELECT length(message) > 50 * length('countdown'), left(message, 200) FROM stepwise.step WHERE root_id = (SELECT pg_temp.plan('fifty')) AND status = 'failed';
SELECT pg_temp.start('later off', 'countdown', '{"n": 2}');
RESET stepwise.allow_recursion;
SELECT pg_temp.count_down('later off');
SELECT pg_temp.show('later off');
SELECT pg_temp.try($$SELECT pg_temp.start('off', 'countdown', '{"n": 2}')$$);

-- ---------- the execution tree ----------

-- A tree without times: statuses, outcomes and so on.
CREATE FUNCTION pg_temp.timeless(tree jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT regexp_replace(tree::text, '"(started_at|completed_at|execution_time_ms)": ([0-9.]+|"[^"]*")', '"\1": "some"', 'g')::jsonb
$$;
SELECT pg_temp.define('part', '[{"name": "do", "tool": "t", "arguments": {"v": "${inputs.v}"}}, {"name": "redo", "condition": "${steps.do.failed}"}]', '{
    "inputs": {"v": {"type": "integer"}}, "outputs": {"v": "${steps.do.outputs.v}"}}');
SELECT pg_temp.define('whole', '[
    {"name": "good", "workflow": "part", "arguments": {"v": 1}, "dependsOn": []},
    {"name": "bad", "workflow": "part", "arguments": {"v": "x"}},
    {"name": "ended", "workflow": "part", "arguments": {"v": 3}},
    {"name": "late", "workflow": "part", "arguments": {"v": "${steps.good.outputs.v}"}, "dependsOn": ["good"]},
    {"name": "plain", "dependsOn": ["late"]}]', '{"inputs": {"w": {"type": "string", "default": "d"}}, "outputs": {"v": "${steps.good.outputs.v}"}}');
SELECT pg_temp.start('whole', 'whole');
SELECT jsonb_pretty(pg_temp.timeless(stepwise.execution(pg_temp.plan('whole'), 0)));
SELECT pg_temp.next('whole'), pg_temp.next('whole'), pg_temp.next('whole');
SELECT pg_temp.submit('whole', 'good/do', '{"v": 10}');
SELECT pg_temp.plain(stepwise.fail_step(pg_temp.step('whole', 'ended/do'), 'broken'));
SELECT pg_temp.next('whole'), pg_temp.next('whole');
SELECT pg_temp.show('whole');
SELECT jsonb_pretty(pg_temp.timeless(stepwise.execution(pg_temp.plan('whole'))));
-- the same shape everywhere, exactly these keys of metadata, and only valid words and combinations
WITH RECURSIVE block AS (
    SELECT stepwise.execution(plan_id) AS b FROM labelled
    UNION ALL
    SELECT x.value FROM block, jsonb_each(b -> 'blocks') AS x)
SELECT (SELECT string_agg(k, ' ' ORDER BY k) FROM jsonb_object_keys(b) AS k) AS keys,
       (SELECT string_agg(k, ' ' ORDER BY k) FROM jsonb_object_keys(b -> 'metadata') AS k) AS metadata
FROM block GROUP BY 1, 2;
WITH RECURSIVE block AS (
    SELECT stepwise.execution(plan_id) AS b FROM labelled
    UNION ALL
    SELECT x.value FROM block, jsonb_each(b -> 'blocks') AS x)
SELECT b #>> '{metadata,status}' AS status, b #>> '{metadata,outcome}' AS outcome, bool_and(jsonb_typeof(b -> 'inputs') = 'object') AS inputs,
       bool_and((b #>> '{metadata,completed_at}' IS NOT NULL) = (b #>> '{metadata,status}' IN ('completed', 'failed', 'skipped'))) AS completed_at,
       bool_and((b #>> '{metadata,started_at}' IS NOT NULL) = (b #>> '{metadata,execution_time_ms}' IS NOT NULL)) AS execution_time
FROM block GROUP BY 1, 2 ORDER BY 1, 2;
-- depth limits the tree
SELECT d, x -> 'blocks' ? 'good' AS steps, x #> '{blocks,good,blocks}' ? 'do' AS nested
FROM generate_series(0, 3) AS d, stepwise.execution(pg_temp.plan('whole'), d) AS x;
SELECT pg_temp.try($$SELECT stepwise.execution(pg_temp.plan('whole'), -1)$$);
SELECT stepwise.execution(pg_temp.plan('whole'), 10) -> 'blocks' -> 'good' -> 'blocks'
       = stepwise.execution(pg_temp.nested('whole', 'good')) -> 'blocks' AS same;
SELECT left(pg_temp.try($$SELECT stepwise.execution('00000000-0000-7000-8000-000000000000')$$), 5),
       left(pg_temp.try($$SELECT stepwise.workflow_response(NULL)$$), 5);

-- workflow_response for each status, and with detail
SELECT pg_temp.plain(stepwise.workflow_response(pg_temp.plan('whole')));
SELECT pg_temp.submit('whole', 'late/do', '{"v": 11}');
SELECT pg_temp.submit('whole', 'ended/redo');
SELECT pg_temp.next('whole');
SELECT pg_temp.submit('whole', 'plain');
SELECT stepwise.workflow_response(pg_temp.plan('whole'));
SELECT stepwise.workflow_response(pg_temp.nested('whole', 'ended'));
SELECT (SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(x) AS k), x -> 'blocks' = e -> 'blocks' AS blocks,
       (x -> 'metadata') - 'execution_time_ms' = (e -> 'metadata') - 'execution_time_ms' AS metadata
FROM stepwise.workflow_response(pg_temp.plan('whole'), true) AS x, stepwise.execution(pg_temp.plan('whole')) AS e;
SELECT l.label, (SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(x) AS k), x ->> 'status'
FROM labelled AS l, stepwise.workflow_response(l.plan_id, true) AS x
WHERE l.label IN ('pass', 'outcome', 'rejected', 'cancelled', 'under fail', 'whole') ORDER BY l.label;

-- ---------- references into nested plans ----------

SELECT pg_temp.define('inner', '[{"name": "make", "arguments": {"k": [1, {"deep": "${inputs.v}"}]}}, {"name": "never", "condition": "1 > 2"}]', '{"inputs": {"v": {}}}');
SELECT pg_temp.define('outer', '[{"name": "in", "workflow": "inner", "arguments": {"v": "${inputs.v}"}}]', '{"inputs": {"v": {}}}');
SELECT pg_temp.define('reads', '[
    {"name": "out", "workflow": "outer", "arguments": {"v": {"a": null}}},
    {"name": "use", "arguments": {
        "result": "${steps.out.steps.in.steps.make.outputs.list.1.name}", "same": "${blocks.out.blocks.in.blocks.make.outputs}",
        "given": "${steps.out.steps.in.steps.make.inputs.k.1.deep}", "text": "it ${steps.out.steps.in.status}",
        "succeeded": "${steps.out.steps.in.steps.make.succeeded}", "failed": "${steps.out.steps.in.failed}",
        "skipped": "${steps.out.steps.in.steps.never.skipped}", "status": "${steps.out.steps.in.steps.never.status}",
        "outcome": "${steps.out.steps.in.outcome}", "attempt": "${steps.out.steps.in.steps.make.metadata.attempt}",
        "message": "${steps.out.steps.in.steps.never.metadata.message}", "order": "${steps.out.metadata.execution_order}"},
     "condition": "${steps.out.steps.in.succeeded} and not ${steps.out.steps.in.steps.never.succeeded}"}]');
SELECT pg_temp.start('reads', 'reads');
SELECT pg_temp.next('reads');
SELECT pg_temp.submit('reads', 'out/in/make', '{"list": [0, {"name": "x"}]}');
SELECT jsonb_pretty(x -> 'arguments') FROM stepwise.get_next_step(pg_temp.plan('reads')) AS x;

-- missing: a segment, a step, a nested plan
SELECT pg_temp.define('misreads', '[{"name": "out", "workflow": "outer", "arguments": {"v": 1}}, {"name": "a", "arguments": {"x": "${steps.out.steps.in.steps.make.outputs.nope}"}}]');
SELECT pg_temp.start('misreads', 'misreads');
SELECT pg_temp.next('misreads');
SELECT pg_temp.submit('misreads', 'out/in/make', '{"yes": 1}');
SELECT pg_temp.next('misreads');
SELECT message FROM stepwise.step WHERE id = (SELECT pg_temp.step('misreads', 'a'));
SELECT pg_temp.define('misnames', '[{"name": "out", "workflow": "outer", "arguments": {"v": 1}}, {"name": "a", "arguments": {"x": "${steps.out.steps.nobody.outputs}"}}]');
SELECT pg_temp.start('misnames', 'misnames');
SELECT pg_temp.next('misnames');
SELECT pg_temp.submit('misnames', 'out/in/make');
SELECT pg_temp.next('misnames');

-- references into a failed nested plan: completed steps have values, and it is certain that the others have none
SELECT pg_temp.define('breaks', '[{"name": "one"}, {"name": "two"}, {"name": "three"}]', '{"onFailure": "fail"}');
SELECT pg_temp.define('looks', '[
    {"name": "h", "workflow": "breaks"},
    {"name": "look", "arguments": {"one": "${steps.h.steps.one.outputs.v}", "two": "${steps.h.steps.two.status}", "three": "${steps.h.steps.three.status}",
        "succeeded": "${steps.h.steps.three.succeeded}", "failed": "${steps.h.steps.two.failed}", "message": "${steps.h.metadata.message}"},
     "condition": "${steps.h.failed} and not ${steps.h.steps.three.succeeded}"},
    {"name": "need", "arguments": {"three": "${steps.h.steps.three.outputs.v}"}}]');
SELECT pg_temp.start('looks', 'looks');
SELECT pg_temp.next('looks');
SELECT pg_temp.submit('looks', 'h/one', '{"v": 1}');
SELECT pg_temp.plain(stepwise.fail_step(pg_temp.step('looks', 'h/two'), 'broke'));
SELECT pg_temp.next('looks');
SELECT pg_temp.submit('looks', 'look');
SELECT pg_temp.next('looks');
-- the same for a step that ended without opening its plan: no step of it has run
SELECT pg_temp.define('needs a number', '[{"name": "x"}]', '{"inputs": {"n": {"type": "integer"}}}');
SELECT pg_temp.define('unopened', '[
    {"name": "bad", "workflow": "needs a number", "arguments": {"n": "none"}},
    {"name": "gone", "workflow": "needs a number", "arguments": {"n": 1}, "condition": "1 == 2"},
    {"name": "look", "arguments": {"succeeded": "${steps.bad.steps.x.succeeded}", "failed": "${steps.bad.steps.x.failed}", "outcome": "${steps.bad.steps.x.outcome}",
        "status": "${steps.gone.steps.x.status}", "skipped": "${steps.gone.steps.x.skipped}", "at": "${steps.gone.steps.x.metadata.started_at}"}},
    {"name": "need", "arguments": {"x": "${steps.gone.steps.x.outputs}"}}]');
SELECT pg_temp.start('unopened', 'unopened');
SELECT pg_temp.next('unopened');
SELECT pg_temp.submit('unopened', 'look');
SELECT pg_temp.next('unopened');
-- while the nested plan runs, the reader waits for the value
SELECT pg_temp.start('awaits', 'looks');
SELECT pg_temp.next('awaits'), pg_temp.next('awaits'), pg_temp.next('awaits'), pg_temp.next('awaits');
SELECT pg_temp.show('awaits');

-- ---------- claims of nested steps: again, leases, stalls ----------

SELECT pg_temp.define('pair', '[{"name": "x", "dependsOn": []}, {"name": "y", "dependsOn": []}]');
SELECT pg_temp.define('pairs', '[{"name": "p", "workflow": "pair", "dependsOn": []}, {"name": "q", "workflow": "pair", "dependsOn": []}]');
SELECT pg_temp.define('top pairs', '[{"name": "t", "workflow": "pairs"}]');
SELECT pg_temp.start('claims', 'top pairs');
-- a worker that asks again gets its step again, for any plan of the tree
SELECT pg_temp.next('claims', 'ann');
SELECT pg_temp.next('claims', 'ann');
SELECT pg_temp.next('claims', 'bob');
SELECT pg_temp.next(pg_temp.nested('claims', 't/p'), 'bob');
SELECT pg_temp.next(pg_temp.nested('claims', 't'), 'ann');
-- a nested plan hands out only its own steps and those below
SELECT pg_temp.next(pg_temp.nested('claims', 't/p'), 'cid');
SELECT pg_temp.next(pg_temp.nested('claims', 't'), 'cid', '1 hour');
SELECT pg_temp.next('claims', 'dan');
SELECT pg_temp.next('claims', 'eve');
-- an expired lease counts as released, at any depth
UPDATE stepwise.step SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE id = (SELECT pg_temp.step('claims', 't/q/x'));
SELECT pg_temp.next('claims', 'eve');
SELECT left(pg_temp.try($$SELECT stepwise.submit_step_result(pg_temp.step('claims', 't/q/x'), '{}', attempt => 1)$$), 5);
-- a silent claim in a nested plan stalls the plans above, and reclaim_stalled releases it
SELECT x ->> 'status', x ->> 'derivedStatus', x ->> 'stalled', (SELECT string_agg(s ->> 'name', ' ') FROM jsonb_array_elements(x -> 'stalledSteps') AS s)
FROM stepwise.get_plan_status(pg_temp.plan('claims'), '1 hour') AS x;
SELECT x ->> 'status', x ->> 'derivedStatus', x ->> 'stalled', (SELECT count(*) FROM jsonb_array_elements(x -> 'stalledSteps') AS s)
FROM stepwise.get_plan_status(pg_temp.plan('claims'), '0') AS x;
SELECT x ->> 'status' FROM stepwise.get_plan_status(pg_temp.nested('claims', 't'), '0') AS x;
-- any transition below wakes them
SELECT pg_temp.submit('claims', 't/p/x');
SELECT depth, status FROM stepwise.plan WHERE id IN ((SELECT pg_temp.plan('claims')), (SELECT pg_temp.nested('claims', 't')), (SELECT pg_temp.nested('claims', 't/p'))) ORDER BY depth;
SELECT x ->> 'status' FROM stepwise.get_plan_status(pg_temp.plan('claims'), '0') AS x;
SELECT older, (SELECT count(*) FROM stepwise.reclaim_stalled(older) AS x, jsonb_array_elements(x -> 'reclaimed') AS s
               WHERE (s ->> 'planId')::uuid IN ((SELECT pg_temp.nested('claims', 't/p')), (SELECT pg_temp.nested('claims', 't/q'))))
FROM unnest('{1 hour, 0 s}'::interval[]) AS older;
SELECT pg_temp.show('claims');
SELECT pg_temp.next('claims', 'ann');
-- at every level between, and asked for at any level
SELECT pg_temp.start('deep stall', 'error');
SELECT pg_temp.next('deep stall');
SELECT x ->> 'status', x #>> '{stalledSteps,0,name}' FROM stepwise.get_plan_status(pg_temp.nested('deep stall', 'a'), '0') AS x;
SELECT pg_temp.show('deep stall');
SELECT pg_temp.submit('deep stall', 'a/b/c/d/fetch');
SELECT pg_temp.show('deep stall');
-- the threshold of the nested plan applies below it
SELECT pg_temp.define('quick', '[{"name": "x"}]', '{"stallAfter": "1 microsecond"}');
SELECT pg_temp.define('slow', '[{"name": "h", "workflow": "quick"}]', '{"stallAfter": "1 hour"}');
SELECT pg_temp.start('slow', 'slow');
SELECT pg_temp.next('slow');
SELECT x ->> 'status', x #>> '{stalledSteps,0,name}' FROM stepwise.get_plan_status(pg_temp.plan('slow')) AS x;
SELECT pg_temp.next('slow');
SELECT pg_temp.submit('slow', 'h/x');
SELECT pg_temp.next('slow');

-- a session that takes over the root
SELECT pg_temp.start('session', 'holds');
SELECT x ->> 'status' FROM stepwise.get_next_step(pg_temp.plan('session'), session_id => 'first') AS x;
SELECT x ->> 'status' FROM stepwise.get_next_step(pg_temp.plan('session'), session_id => 'second') AS x;
SELECT pg_temp.log(pg_temp.plan('session'));

-- thresholds of the holding step and of the plans above apply where no own threshold is set
SELECT pg_temp.define('silent', '[{"name": "x"}]');
SELECT pg_temp.define('silent 1s', '[{"name": "x"}]', '{"stallAfter": "1 second"}');
SELECT name, stepwise.create_plan(name, 'test', steps, stall_after => after) ->> 'status'
FROM (VALUES ('stall root', '[{"name": "t", "workflow": "silent"}]'::jsonb, '1 second'::interval),
             ('stall holder', '[{"name": "t", "workflow": "silent", "stallAfter": "1 second"}]', '1 hour'),
             ('stall inner', '[{"name": "t", "workflow": "silent 1s", "stallAfter": "1 hour"}]', '1 hour'),
             ('stall not', '[{"name": "t", "workflow": "silent", "stallAfter": "1 hour"}]', '1 second')) AS p (name, steps, after);
INSERT INTO labelled SELECT p.name, p.id FROM stepwise.plan AS p WHERE p.tenant = 'default' AND p.name LIKE 'stall %';
SELECT l.label, pg_temp.next(l.label) FROM labelled AS l WHERE l.label LIKE 'stall %' ORDER BY l.label;
SELECT pg_sleep(1.1);
SELECT l.label, x ->> 'status', x ->> 'stalled' FROM labelled AS l, stepwise.get_plan_status(l.plan_id) AS x WHERE l.label LIKE 'stall %' ORDER BY l.label;
SELECT (stepwise.reclaim_stalled() ->> 'count')::int;

-- ---------- verify_audit over the tree ----------

SELECT x -> 'valid', jsonb_array_length(x -> 'nested'), (SELECT bool_and((n -> 'valid')::boolean) FROM jsonb_array_elements(x -> 'nested') AS n)
FROM stepwise.verify_audit(pg_temp.plan('prompt'), true) AS x;
SELECT x ? 'nested' FROM stepwise.verify_audit(pg_temp.plan('prompt')) AS x;
-- both nested plans of a retried step are verified
SELECT x -> 'valid', jsonb_array_length(x -> 'nested') FROM stepwise.verify_audit(pg_temp.plan('failed'), true) AS x;
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE stepwise.step SET result = '{"response": "no"}' WHERE id = (SELECT pg_temp.step('prompt', 'a/b/c/d/ask'));
SELECT x -> 'valid' FROM stepwise.verify_audit(pg_temp.plan('prompt')) AS x;
SELECT x -> 'valid', n -> 'firstInvalid' FROM stepwise.verify_audit(pg_temp.plan('prompt'), true) AS x, jsonb_array_elements(x -> 'nested') AS n WHERE n ? 'firstInvalid';
ROLLBACK;

-- ---------- in the database ----------

CREATE FUNCTION double_it(arguments jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('v', (arguments ->> 'v')::numeric * 2) $$;
CREATE FUNCTION divide_it(arguments jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('v', 12 / (arguments ->> 'v')::int) $$;
SELECT x ->> 'name' FROM stepwise.register_tool('double_it', 'double_it(jsonb)') AS x;
SELECT x ->> 'name' FROM stepwise.register_tool('divide_it', 'divide_it(jsonb)') AS x;
SELECT pg_temp.tower('double', '[{"name": "work", "tool": "double_it", "arguments": {"v": "${inputs.n}"}}]', '{"outputs": {"r": "${steps.work.outputs.v}"}}');
SELECT pg_temp.start('run', 'double', '{"n": 21}'), pg_temp.start('run_steps', 'double', '{"n": 21}');
SELECT pg_temp.plain(stepwise.run(pg_temp.plan('run')));
SELECT pg_temp.plan('run_steps') AS plan \gset
CALL stepwise.run_steps(:'plan') \gset
SELECT pg_temp.plain(:'result');
SELECT pg_temp.show('run');
-- both ways give the same result
SELECT a = b AS same FROM (SELECT array_agg(regexp_replace(l, 'run_steps', 'run')) AS a FROM pg_temp.show('run') AS l) AS x,
                          (SELECT array_agg(l) AS b FROM pg_temp.show('run_steps') AS l) AS y;
-- a tool error under pause, four levels down; the run continues after a retry
SELECT pg_temp.tower('divide', '[{"name": "work", "tool": "divide_it", "arguments": {"v": "${inputs.n}"}}, {"name": "more", "tool": "double_it", "arguments": {"v": 1}}]',
    '{"onFailure": "pause", "outputs": {"r": "${steps.more.outputs.v}"}}');
SELECT pg_temp.start('division', 'divide', '{"n": 0}');
SELECT pg_temp.plain(stepwise.run(pg_temp.plan('division')));
SELECT pg_temp.show('division');
SELECT pg_temp.plain(stepwise.retry_step(pg_temp.step('division', 'a/b/c/d/work')));
SELECT pg_temp.plain(stepwise.run(pg_temp.plan('division'))) -> 'pause_reason' ->> 'error';
SELECT pg_temp.plain(stepwise.skip_step(pg_temp.step('division', 'a/b/c/d/work')));
SELECT pg_temp.plain(stepwise.run(pg_temp.plan('division')));
-- a client tool four levels down; the run continues after its result is recorded
SELECT pg_temp.tower('client', '[{"name": "get", "tool": "their_tool", "arguments": {"v": "${inputs.n}"}}, {"name": "more", "tool": "double_it", "arguments": {"v": "${steps.get.outputs.v}"}}]',
    '{"outputs": {"r": "${steps.more.outputs.v}"}}');
SELECT pg_temp.start('client', 'client', '{"n": 3}');
SELECT pg_temp.plain(stepwise.run(pg_temp.plan('client')));
SELECT pg_temp.next('client');
SELECT pg_temp.submit('client', 'a/b/c/d/get', '{"v": 4}');
SELECT pg_temp.plain(stepwise.run(pg_temp.plan('client')));
SELECT pg_temp.plain(stepwise.workflow_response(pg_temp.plan('client')));
-- a prompt stops the run, and it continues after resume
SELECT pg_temp.tower('asked', '[{"name": "ask", "prompt": "How much?"}, {"name": "more", "tool": "double_it", "arguments": {"v": "${steps.ask.outputs.response}"}}]',
    '{"outputs": {"r": "${steps.more.outputs.v}"}}');
SELECT pg_temp.start('asked', 'asked');
SELECT pg_temp.plain(stepwise.run(pg_temp.plan('asked')));
SELECT pg_temp.plain(stepwise.resume(pg_temp.checkpoint('asked', 'a/b/c/d/ask'), '8'));
SELECT pg_temp.plain(stepwise.run(pg_temp.plan('asked')));
SELECT pg_temp.plain(stepwise.workflow_response(pg_temp.plan('asked')));
-- one step of it
SELECT pg_temp.define('many', '[{"name": "a", "workflow": "double", "arguments": {"n": 1}}, {"name": "b", "workflow": "double", "arguments": {"n": 2}}]');
SELECT pg_temp.start('many', 'many');
SELECT pg_temp.plain(stepwise.run(pg_temp.plan('many'), 1));
SELECT pg_temp.plain(stepwise.run(pg_temp.nested('many', 'a')));
SELECT pg_temp.plain(stepwise.run(pg_temp.plan('many')));
-- a run of a nested plan does only its steps
SELECT pg_temp.start('alone', 'many');
SELECT pg_temp.next('alone');
SELECT x ->> 'stepStatus' FROM stepwise.release_step(pg_temp.step('alone', 'a/a/b/c/d/work')) AS x;
SELECT pg_temp.plain(stepwise.run(pg_temp.nested('alone', 'a')));
SELECT pg_temp.plain(x) FROM (SELECT jsonb_build_object('a', s.status, 'result', s.result) AS x FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('alone')) ORDER BY s.step_order) AS x;
-- a bounded recursion
SET stepwise.allow_recursion = on;
CREATE FUNCTION less(arguments jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('left', (arguments ->> 'n')::int - 1) $$;
SELECT x ->> 'name' FROM stepwise.register_tool('less', 'less(jsonb)') AS x;
SELECT pg_temp.define('down', '[
    {"name": "tick", "tool": "less", "arguments": {"n": "${inputs.n}"}},
    {"name": "again", "workflow": "down", "arguments": {"n": "${steps.tick.outputs.left}"}, "condition": "${steps.tick.outputs.left} > 0"}]', '{
    "inputs": {"n": {"type": "integer"}}, "outputs": {"n": "${inputs.n}", "below": "${steps.again.outputs}"}}');
SELECT pg_temp.start('down', 'down', '{"n": 5}');
SELECT pg_temp.plain(stepwise.run(pg_temp.plan('down')));
SELECT outputs FROM stepwise.plan WHERE id = (SELECT pg_temp.plan('down'));
RESET stepwise.allow_recursion;

-- ---------- limits ----------

-- the outputs of a nested plan are limited like any result
SELECT pg_temp.define('big', '[{"name": "x"}]', '{"outputs": {"a": "${steps.x.outputs}", "b": "${steps.x.outputs}", "c": "${steps.x.outputs}"}}');
SELECT pg_temp.define('calls big', '[{"name": "h", "workflow": "big"}]');
SELECT pg_temp.start('big', 'calls big');
SELECT pg_temp.next('big');
SELECT pg_temp.submit('big', 'h/x', to_jsonb(repeat('x', 500000)));
SELECT status, message FROM stepwise.step WHERE id = (SELECT pg_temp.step('big', 'h'));

-- ---------- all is well ----------

\set ECHO none
\i test/sound.sql
\set ECHO all
SELECT * FROM pg_temp.sound();
SELECT count(*) FROM labelled AS l, stepwise.verify_audit(l.plan_id, true) AS x WHERE NOT (x -> 'valid')::boolean;
-- no open plan under one that has ended; every waiting leaf is listed
SELECT count(*) FROM stepwise.plan AS p JOIN stepwise.step AS s ON s.tenant = p.tenant AND s.id = p.parent_step_id
WHERE p.completed_at IS NULL AND (s.status NOT IN ('in_progress', 'awaiting_input')
                                  OR EXISTS (SELECT FROM stepwise.plan AS u WHERE u.tenant = s.tenant AND u.id = s.plan_id AND u.completed_at IS NOT NULL));
SELECT count(*) FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.tenant = s.tenant AND p.id = s.plan_id
WHERE s.status = 'awaiting_input' AND s.workflow IS NULL AND p.completed_at IS NULL
  AND NOT EXISTS (SELECT FROM stepwise.checkpoints AS k WHERE k.step_id = s.id);

DROP FUNCTION double_it, divide_it, less;
