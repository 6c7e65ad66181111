-- execution_as_of shows the execution tree of a past time, rebuilt from the audit chain.

\set ECHO none
\i test/trees.sql
\set ECHO all

-- A block and its blocks, one per line.
CREATE FUNCTION pg_temp.lines(name text, block jsonb, indent int = 0) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    m jsonb := block -> 'metadata';
    x record;
BEGIN
    RETURN NEXT repeat('  ', indent) || concat_ws(' ', name, m ->> 'status', nullif(m ->> 'outcome', 'n/a'), 'attempt ' || (m ->> 'attempt'),
        'number ' || nullif(m ->> 'execution_order', '0'), CASE WHEN m ->> 'started_at' IS NOT NULL THEN 'started' END,
        CASE WHEN m ->> 'completed_at' IS NOT NULL THEN 'completed' END, 'by ' || (m ->> 'actor'), '(' || (m ->> 'message') || ')',
        CASE WHEN block -> 'inputs' <> '{}' THEN 'in ' || (block ->> 'inputs') END, 'out ' || nullif(block ->> 'outputs', '{}'));
    FOR x IN SELECT k.key, k.value FROM jsonb_each(block -> 'blocks') AS k ORDER BY k.value #> '{metadata,wave}', k.key LOOP
        RETURN QUERY SELECT * FROM pg_temp.lines(x.key, x.value, indent + 1);
    END LOOP;
END $$;
CREATE FUNCTION pg_temp.as_of(label text, at timestamptz) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT pg_temp.lines(label, stepwise.execution_as_of(pg_temp.plan(label), at))
$$;

-- Whether execution_as_of(now) equals execution, to the microsecond. (Except for actors, and for the duration of running steps.)
CREATE FUNCTION pg_temp.same(plan_id uuid) RETURNS boolean LANGUAGE sql AS $$
    SELECT regexp_replace(regexp_replace(stepwise.execution_as_of(plan_id, 'infinity')::text, ', "(as_of|actor)": ("[^"]*"|null)|"(as_of|actor)": ("[^"]*"|null), ', '', 'g'),
                          '"execution_time_ms": [0-9.]+', '', 'g')
         = regexp_replace(stepwise.execution(plan_id)::text, '"execution_time_ms": [0-9.]+', '', 'g')
$$;

-- ---------- a nested plan, from its beginning to its end ----------

SELECT pg_temp.define('inner', '[{"name": "work", "arguments": {"x": "${inputs.x}"}}, {"name": "ask", "prompt": "Sure?"}, {"name": "maybe", "condition": "1 > 2"}]', '{
    "inputs": {"x": {"type": "integer"}}, "outputs": {"w": "${steps.work.outputs}"}}');
SELECT pg_temp.define('outer', '[{"name": "first"}, {"name": "h", "workflow": "inner", "arguments": {"x": "${steps.first.outputs.x}"}}, {"name": "last"}]', '{
    "outputs": {"all": "${steps.h.outputs.w}"}}');
SELECT clock_timestamp() AS before \gset
SELECT pg_temp.start('told', 'outer');
SELECT clock_timestamp() AS created \gset
SELECT pg_temp.next('told', 'ann');
SELECT clock_timestamp() AS first \gset
SELECT pg_temp.submit('told', 'first', '{"x": 5}');
SELECT clock_timestamp() AS between \gset
SELECT pg_temp.next('told', 'bob');
SELECT clock_timestamp() AS nested \gset
SELECT pg_temp.submit('told', 'h/work', '"done"');
SELECT pg_temp.next('told', 'bob');
SELECT clock_timestamp() AS waiting \gset
SELECT pg_temp.plain(stepwise.resume(pg_temp.checkpoint('told', 'h/ask'), '"yes"'));
SELECT pg_temp.next('told', 'cid');
SELECT clock_timestamp() AS last \gset
SELECT pg_temp.submit('told', 'last');
SELECT clock_timestamp() AS ended \gset
SELECT pg_temp.as_of('told', :'created');
SELECT pg_temp.as_of('told', :'first');
SELECT pg_temp.as_of('told', :'between');
SELECT pg_temp.as_of('told', :'nested');
SELECT pg_temp.as_of('told', :'waiting');
SELECT pg_temp.as_of('told', :'last');
SELECT pg_temp.as_of('told', :'ended');
-- a nested plan by itself
SELECT pg_temp.lines('h', stepwise.execution_as_of(pg_temp.nested('told', 'h'), :'waiting'));
-- the shape is that of the execution tree, with who and when
SELECT (SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(x) AS k), (SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(x -> 'metadata') AS k),
       (SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(x #> '{blocks,h}') AS k), (SELECT array_agg(k ORDER BY k) FROM jsonb_object_keys(x #> '{blocks,h,metadata}') AS k),
       (x #>> '{metadata,as_of}')::timestamptz = :'nested' AS as_of
FROM stepwise.execution_as_of(pg_temp.plan('told'), :'nested') AS x;
-- how long a running step had run by then
SELECT (x #>> '{blocks,first,metadata,execution_time_ms}')::numeric BETWEEN 0 AND extract(epoch FROM :'first'::timestamptz - :'created'::timestamptz) * 1000 AS time
FROM stepwise.execution_as_of(pg_temp.plan('told'), :'first') AS x;

-- ---------- times without a tree, and unusual times ----------

SELECT left(pg_temp.try(format($$SELECT stepwise.execution_as_of(pg_temp.plan('told'), %L)$$, :'before')), 5),
       left(pg_temp.try($$SELECT stepwise.execution_as_of(pg_temp.plan('told'), '-infinity')$$), 5),
       left(pg_temp.try(format($$SELECT stepwise.execution_as_of(pg_temp.nested('told', 'h'), %L)$$, :'created')), 5);
SELECT stepwise.execution_as_of(pg_temp.plan('told'), 'infinity') -> 'blocks' = stepwise.execution_as_of(pg_temp.plan('told'), '9999-01-01') -> 'blocks' AS same,
       (stepwise.execution_as_of(pg_temp.plan('told'), 'infinity') #>> '{metadata,as_of}')::timestamptz <= clock_timestamp() AS now;
SELECT pg_temp.try($$SELECT stepwise.execution_as_of(pg_temp.plan('told'), NULL)$$);
SELECT left(pg_temp.try($$SELECT stepwise.execution_as_of('00000000-0000-7000-8000-000000000000', now())$$), 5),
       left(pg_temp.try($$SELECT stepwise.execution_as_of(NULL, now())$$), 5);

-- ---------- outputs only where the digest still matches ----------

SELECT x #> '{blocks,h,blocks,work,outputs}' FROM stepwise.execution_as_of(pg_temp.plan('told'), :'ended') AS x;
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE stepwise.step SET result = '"forged"' WHERE id = (SELECT pg_temp.step('told', 'h/work'));
SELECT x #> '{blocks,h,blocks,work,outputs}', x #>> '{blocks,h,blocks,work,metadata,status}' FROM stepwise.execution_as_of(pg_temp.plan('told'), :'ended') AS x;
SELECT x #> '{blocks,h,blocks,work,outputs}' FROM stepwise.execution(pg_temp.plan('told')) AS x;
ROLLBACK;

-- ---------- at the time stored in a row, the change is visible ----------

CREATE FUNCTION pg_temp.status_at(label text, path text[], at timestamptz) RETURNS text LANGUAGE sql STRICT AS $$
    SELECT stepwise.execution_as_of(pg_temp.plan(label), at) #>> (path || '{metadata, status}')
$$;
SELECT pg_temp.status_at('told', '{}', p.created_at), pg_temp.status_at('told', '{blocks, first}', p.created_at),
       pg_temp.status_at('told', '{}', p.started_at), pg_temp.status_at('told', '{}', p.completed_at),
       pg_temp.status_at('told', '{}', p.completed_at - interval '1 microsecond')
FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('told'));
SELECT s.name, pg_temp.status_at('told', ARRAY['blocks', s.name], s.started_at) AS started, pg_temp.status_at('told', ARRAY['blocks', s.name], s.completed_at) AS completed
FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('told')) ORDER BY s.step_order;
SELECT s.name, pg_temp.status_at('told', ARRAY['blocks', 'h', 'blocks', s.name], s.started_at) AS started,
       pg_temp.status_at('told', ARRAY['blocks', 'h', 'blocks', s.name], s.completed_at) AS completed
FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.nested('told', 'h')) ORDER BY s.step_order;
-- a plan starts with its first step, and ends with its last
SELECT p.started_at = min(s.started_at) AS started, p.completed_at = max(s.completed_at) AS completed
FROM stepwise.plan AS p JOIN stepwise.step AS s ON s.plan_id = p.id WHERE p.id IN ((SELECT pg_temp.plan('told')), (SELECT pg_temp.nested('told', 'h')))
GROUP BY p.id, p.started_at, p.completed_at;
-- steps that a branch adds appear with the completion that added them
INSERT INTO labelled SELECT 'adds', (x ->> 'planId')::uuid FROM stepwise.create_plan('adds', 'Add a step', '[{"name": "a"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "1 < 2", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "more"}]}}]') AS x;
SELECT pg_temp.submit('adds', 'a');
SELECT pg_temp.status_at('adds', '{blocks, more}', s.completed_at), pg_temp.status_at('adds', '{blocks, more}', s.completed_at - interval '1 microsecond') IS NULL
FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('adds', 'a'));
-- by plain SQL: all rows of a statement change at one time, even if their plan has changed since the statement began
SELECT pg_temp.define('raw', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}, {"name": "e"}]');
SELECT pg_temp.start('raw', 'raw');
UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id = (SELECT pg_temp.plan('raw')) AND name IN ('a', 'b');
UPDATE stepwise.step SET status = 'completed' WHERE plan_id = (SELECT pg_temp.plan('raw')) AND name IN ('a', 'b');
CREATE FUNCTION pg_temp.meanwhile(label text, path text) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT pg_temp.submit(label, path);
    SELECT 'meanwhile'
$$;
UPDATE stepwise.step SET status = 'skipped', message = CASE name WHEN 'e' THEN pg_temp.meanwhile('raw', 'c') END
WHERE plan_id = (SELECT pg_temp.plan('raw')) AND name IN ('d', 'e');
SELECT s.name, s.status, s.message, s.started_at = min(s.started_at) OVER () AS first, pg_temp.status_at('raw', ARRAY['blocks', s.name], s.completed_at) AS completed
FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('raw')) ORDER BY s.step_order;
SELECT count(*) FROM stepwise.audit AS a JOIN stepwise.audit AS b ON b.plan_id = a.plan_id AND b.id = a.id + 1 WHERE b.at < a.at;
-- setting the clock back does not reverse the order of the chain
SELECT pg_temp.start('back', 'raw');
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE stepwise.plan SET updated_at = clock_timestamp() + interval '1 hour' WHERE id = (SELECT pg_temp.plan('back'));
COMMIT;
SELECT pg_temp.submit('back', 'a'), pg_temp.submit('back', 'b');
UPDATE stepwise.step SET status = 'skipped' WHERE plan_id = (SELECT pg_temp.plan('back')) AND name = 'c';
SELECT pg_temp.next('back');
SELECT count(*) FROM stepwise.audit AS a JOIN stepwise.audit AS b ON b.plan_id = a.plan_id AND b.id = a.id + 1 WHERE b.at < a.at;
SELECT s.name, s.completed_at > clock_timestamp() AS ahead, pg_temp.status_at('back', ARRAY['blocks', s.name], s.completed_at) AS completed
FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('back')) ORDER BY s.step_order;
SELECT x #>> '{blocks,d,metadata,status}', x #>> '{blocks,d,metadata,execution_time_ms}' FROM stepwise.execution_as_of(pg_temp.plan('back'), 'infinity') AS x;

-- ---------- attempts, failures, skips ----------

SELECT pg_temp.define('rough', '[{"name": "a"}, {"name": "h", "workflow": "inner", "arguments": {"x": 1}}, {"name": "z"}]', '{"onFailure": "pause"}');
SELECT pg_temp.start('rough', 'rough');
SELECT pg_temp.next('rough', 'ann');
SELECT x ->> 'stepStatus' FROM stepwise.release_step(pg_temp.step('rough', 'a')) AS x;
SELECT clock_timestamp() AS released \gset
SELECT pg_temp.next('rough', 'bob');
SELECT x ->> 'stepStatus' FROM stepwise.fail_step(pg_temp.step('rough', 'a'), 'broke', worker => 'bob') AS x;
SELECT clock_timestamp() AS failed \gset
SELECT x ->> 'stepStatus' FROM stepwise.retry_step(pg_temp.step('rough', 'a')) AS x;
SELECT clock_timestamp() AS retried \gset
SELECT x ->> 'stepStatus' FROM stepwise.skip_step(pg_temp.step('rough', 'a'), 'never mind') AS x;
SELECT pg_temp.next('rough', 'cid');
SELECT clock_timestamp() AS opened \gset
SELECT x ->> 'stepStatus' FROM stepwise.fail_step(pg_temp.step('rough', 'h'), 'wrong way') AS x;
SELECT clock_timestamp() AS given_up \gset
SELECT x ->> 'stepStatus' FROM stepwise.retry_step(pg_temp.step('rough', 'h')) AS x;
SELECT pg_temp.next('rough', 'dan');
SELECT clock_timestamp() AS anew \gset
SELECT x ->> 'action' FROM stepwise.modify_plan(pg_temp.plan('rough'), 'add_steps', '{"steps": [{"name": "added"}]}') AS x;
SELECT pg_temp.as_of('rough', :'released');
SELECT pg_temp.as_of('rough', :'failed');
SELECT pg_temp.as_of('rough', :'retried');
SELECT pg_temp.as_of('rough', :'opened');
SELECT pg_temp.as_of('rough', :'given_up');
SELECT pg_temp.as_of('rough', :'anew');
SELECT pg_temp.as_of('rough', 'infinity');
SELECT x ->> 'planStatus' FROM stepwise.cancel_plan(pg_temp.plan('rough'), 'over') AS x;
SELECT pg_temp.as_of('rough', 'infinity');
SELECT pg_temp.as_of('rough', :'anew');

-- ---------- steps that were removed ----------

SELECT pg_temp.define('shrinks', '[{"name": "a"}, {"name": "gone", "arguments": {"x": 1}, "instructions": "Go"}, {"name": "b"}]');
SELECT pg_temp.start('shrinks', 'shrinks');
SELECT pg_temp.next('shrinks', 'ann'), pg_temp.next('shrinks', 'bob');
SELECT clock_timestamp() AS begun \gset
SELECT x ->> 'stepStatus' FROM stepwise.release_step(pg_temp.step('shrinks', 'gone')) AS x;
SELECT clock_timestamp() AS given_back \gset
SELECT stepwise.execution(pg_temp.plan('shrinks')) -> 'blocks' AS then \gset
SELECT x ->> 'action' FROM stepwise.modify_plan(pg_temp.plan('shrinks'), 'remove_step', jsonb_build_object('stepId', pg_temp.step('shrinks', 'gone'))) AS x;
SELECT clock_timestamp() AS removed \gset
-- another step of the same name is added, and removed too
SELECT x ->> 'action' FROM stepwise.modify_plan(pg_temp.plan('shrinks'), 'add_steps', '{"steps": [{"name": "gone"}]}') AS x;
SELECT clock_timestamp() AS back \gset
SELECT x ->> 'action' FROM stepwise.modify_plan(pg_temp.plan('shrinks'), 'remove_step', jsonb_build_object('stepId', pg_temp.step('shrinks', 'gone'))) AS x;
SELECT pg_temp.as_of('shrinks', p.created_at) FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('shrinks'));
SELECT pg_temp.as_of('shrinks', :'begun');
SELECT pg_temp.as_of('shrinks', :'given_back');
SELECT pg_temp.as_of('shrinks', :'removed');
SELECT pg_temp.as_of('shrinks', :'back');
SELECT pg_temp.as_of('shrinks', 'infinity');
-- the removed step is shown as it was
SELECT x #> '{blocks,gone,inputs}' = :'then'::jsonb #> '{gone,inputs}' AS inputs, x #> '{blocks,gone,outputs}' AS outputs, x #> '{blocks,gone,blocks}' AS blocks,
       (x #> '{blocks,gone,metadata}') - 'actor' = :'then'::jsonb #> '{gone,metadata}' AS metadata
FROM stepwise.execution_as_of(pg_temp.plan('shrinks'), :'given_back') AS x;
-- a step that a branch added does not appear before that, even if it was removed since; an earlier step of the same name does
INSERT INTO labelled SELECT 'adds again', (x ->> 'planId')::uuid FROM stepwise.create_plan('adds again', 'Add a step', '[{"name": "a"}, {"name": "more"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "1 < 2", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "extra"}]}}]') AS x;
SELECT x ->> 'action' FROM stepwise.modify_plan(pg_temp.plan('adds again'), 'add_steps', '{"steps": [{"name": "extra", "arguments": {"by": "hand"}}]}') AS x;
SELECT clock_timestamp() AS by_hand \gset
SELECT x ->> 'action' FROM stepwise.modify_plan(pg_temp.plan('adds again'), 'remove_step', jsonb_build_object('stepId', pg_temp.step('adds again', 'extra'))) AS x;
SELECT clock_timestamp() AS before_adding \gset
SELECT pg_temp.submit('adds again', 'a');
SELECT clock_timestamp() AS added \gset
SELECT x ->> 'action' FROM stepwise.modify_plan(pg_temp.plan('adds again'), 'remove_step', jsonb_build_object('stepId', pg_temp.step('adds again', 'extra'))) AS x;
SELECT pg_temp.as_of('adds again', :'by_hand');
SELECT pg_temp.as_of('adds again', :'before_adding');
SELECT pg_temp.as_of('adds again', :'added');
SELECT pg_temp.as_of('adds again', 'infinity');

-- ---------- pauses without a question ----------

SELECT pg_temp.define('calls', '[{"name": "say", "tool": "loudspeaker"}, {"name": "rest"}]');
SELECT pg_temp.define('calls above', '[{"name": "c", "workflow": "calls"}]');
SELECT pg_temp.define('calls on top', '[{"name": "b", "workflow": "calls above"}, {"name": "after"}]');
SELECT pg_temp.start('pauses', 'calls on top');
SELECT x ->> 'task_status' FROM stepwise.run(pg_temp.plan('pauses')) AS x;
SELECT clock_timestamp() AS paused \gset
SELECT pg_temp.as_of('pauses', 'infinity');
SELECT pg_temp.same(pg_temp.plan('pauses')), pg_temp.same(pg_temp.nested('pauses', 'b')), pg_temp.same(pg_temp.nested('pauses', 'b/c'));
-- it continues: the pause ends at every level, and the chain records that
SELECT x ->> 'task_status' FROM stepwise.record_tool_result(pg_temp.nested('pauses', 'b/c'), 'loudspeaker', '"said"') AS x;
SELECT pg_temp.as_of('pauses', 'infinity');
SELECT pg_temp.as_of('pauses', :'paused');
SELECT p.name, a.event, a.detail #>> '{reason,type}' FROM stepwise.audit AS a JOIN stepwise.plan AS p ON p.id = a.plan_id
WHERE p.root_id = (SELECT pg_temp.plan('pauses')) AND a.event = 'plan_paused' ORDER BY p.depth, a.id;
-- a failed step under pause; the plan continues, pauses again and is cancelled, without an entry for the end of the pause
SELECT pg_temp.start('pauses again', 'rough');
SELECT pg_temp.next('pauses again');
SELECT x ->> 'planStatus' FROM stepwise.fail_step(pg_temp.step('pauses again', 'a'), 'broke') AS x;
SELECT pg_temp.as_of('pauses again', 'infinity');
SELECT pg_temp.same(pg_temp.plan('pauses again'));
SELECT x ->> 'planStatus' FROM stepwise.retry_step(pg_temp.step('pauses again', 'a')) AS x;
SELECT pg_temp.as_of('pauses again', 'infinity');
SELECT pg_temp.same(pg_temp.plan('pauses again'));
SELECT x ->> 'planStatus' FROM stepwise.fail_step(pg_temp.step('pauses again', 'a'), 'broke again') AS x;
SELECT x ->> 'planStatus' FROM stepwise.cancel_plan(pg_temp.plan('pauses again')) AS x;
SELECT pg_temp.as_of('pauses again', 'infinity');
SELECT a.detail #>> '{reason,error}' FROM stepwise.audit AS a WHERE a.plan_id = (SELECT pg_temp.plan('pauses again')) AND a.event = 'plan_paused' ORDER BY a.id;
-- a plan that never pauses has no entry for it
SELECT count(*) FROM stepwise.audit AS a WHERE a.plan_id = (SELECT pg_temp.plan('raw')) AND a.event = 'plan_paused';

-- ---------- forks ----------

CREATE FUNCTION pg_temp.fork(label text, of text, from_step text) RETURNS text LANGUAGE sql AS $$
    INSERT INTO labelled SELECT label, (x ->> 'planId')::uuid FROM stepwise.fork_plan(pg_temp.plan(of), from_step) AS x;
    SELECT label || ' forked'
$$;
SELECT pg_temp.fork('fork', 'told', 'last');
SELECT pg_temp.fork('fork from first', 'told', 'first');
SELECT pg_temp.as_of('fork', 'infinity');
SELECT pg_temp.as_of('fork from first', 'infinity');

-- ---------- the chain agrees with the rows ----------

SELECT l.label FROM labelled AS l WHERE NOT pg_temp.same(l.plan_id);
SELECT pg_temp.same(pg_temp.nested('told', 'h')), pg_temp.same(pg_temp.nested('fork', 'h'));

-- ---------- all is well ----------

\set ECHO none
\i test/sound.sql
\set ECHO all
SELECT * FROM pg_temp.sound();
