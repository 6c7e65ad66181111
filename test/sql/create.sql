-- create_plan and start_workflow: their answers, idempotency keys, versions, sessions, large plans.

\set ECHO none
\i test/agent.sql
\set ECHO all

-- ---------- the answer ----------

SELECT pg_temp.plain(stepwise.create_plan('answer', 'Find cats', '[{"name": "a", "type": "search", "instructions": "Look ${inputs.where}"}, {}]', inputs => '{"where": "up"}'));
SELECT stepwise.create_plan('answer 2', 'test', '[{}, {}, {}]') AS answer \gset
SELECT :'answer'::jsonb -> 'stepIds' = jsonb_agg(s.id ORDER BY s.step_order), :'answer'::jsonb -> 'stepIds' -> 0 = :'answer'::jsonb -> 'firstStep' -> 'stepId', :'answer'::jsonb ->> 'planId' = min(s.plan_id::text)
FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan('answer 2'));
-- every argument is stored
SELECT stepwise.create_plan('kept', 'Keep it', '[{"name": "a"}]', '[]', '{"x": 1}', '{"out": "${inputs.x}"}', 'pause', 'session', 'because', 'short', '5 minutes', 'create kept', true) ->> 'status';
SELECT p.goal, p.on_failure, p.inputs, p.session_id, p.stall_after, p.separate_reviewer, p.idempotency_key, d.outputs, d.design_rationale, d.output_formatting_notes
FROM stepwise.plan AS p JOIN stepwise.plan_detail AS d ON d.plan_id = p.id WHERE p.id = (SELECT pg_temp.plan('kept'));
-- NULL is the default
SELECT stepwise.create_plan('defaults', 'test', '[{"name": "a"}]', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) ->> 'status';
SELECT p.on_failure, p.inputs, p.outputs, p.separate_reviewer FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('defaults'));
SELECT pg_temp.log('defaults');

-- ---------- idempotency keys ----------

SELECT stepwise.create_plan('once', 'test', '[{"name": "a"}]', inputs => '{"x": 1}', idempotency_key => 'create once') -> 'existing' FROM generate_series(1, 3);
SELECT count(*) FROM stepwise.plan AS p WHERE p.idempotency_key = 'create once';
-- the same answer, even if the plan has changed since
SELECT pg_temp.submit('once', 'a');
SELECT pg_temp.plain(stepwise.create_plan('once', 'test', '[{"name": "a"}]', inputs => '{"x": 1}', idempotency_key => 'create once'));
-- from another session too
SELECT a -> 'existing' FROM stepwise.create_plan('once', 'test', '[{"name": "a"}]', inputs => '{"x": 1}', session_id => 'other', idempotency_key => 'create once') AS a;
-- with other arguments
SELECT pg_temp.try(call) FROM unnest(ARRAY[
    $$stepwise.create_plan('twice', 'test', '[{"name": "a"}]', inputs => '{"x": 1}', idempotency_key => 'create once')$$,
    $$stepwise.create_plan('once', 'other', '[{"name": "a"}]', inputs => '{"x": 1}', idempotency_key => 'create once')$$,
    $$stepwise.create_plan('once', 'test', '[{"name": "b"}]', inputs => '{"x": 1}', idempotency_key => 'create once')$$,
    $$stepwise.create_plan('once', 'test', '[{"name": "a"}]', inputs => '{"x": 2}', idempotency_key => 'create once')$$,
    $$stepwise.create_plan('once', 'test', '[{"name": "a"}]', inputs => '{"x": 1}', outputs => '{"x": 1}', idempotency_key => 'create once')$$,
    $$stepwise.create_plan('once', 'test', '[{"name": "a"}]', inputs => '{"x": 1}', on_failure => 'fail', idempotency_key => 'create once')$$,
    $$stepwise.create_plan('once', 'test', '[{"name": "a"}]', inputs => '{"x": 1}', design_rationale => 'why', idempotency_key => 'create once')$$,
    $$stepwise.create_plan('once', 'test', '[{"name": "a"}]', inputs => '{"x": 1}', stall_after => '1 hour', idempotency_key => 'create once')$$,
    $$stepwise.start_workflow('once', idempotency_key => 'create once')$$]) AS call;
-- a refused call does not use up its key
SELECT pg_temp.try($$stepwise.create_plan('refused', 'test', '[]', idempotency_key => 'create refused')$$);
SELECT a -> 'existing' FROM stepwise.create_plan('refused', 'test', '[{}]', idempotency_key => 'create refused') AS a;
-- a key belongs to one tenant
BEGIN;
SELECT stepwise.enter_tenant('regress_create');
SELECT a -> 'existing' FROM stepwise.create_plan('once', 'test', '[{"name": "b"}]', idempotency_key => 'create once') AS a;
ROLLBACK;
-- without a key each call creates a plan; an empty or too long key is refused
SELECT stepwise.create_plan('no key', 'test', '[{}]') -> 'existing' FROM generate_series(1, 2);
SELECT count(*) FROM stepwise.plan AS p WHERE p.name = 'no key';
SELECT pg_temp.try($$stepwise.create_plan('empty key', 'test', '[{}]', idempotency_key => '')$$);
SELECT pg_temp.try($$stepwise.create_plan('long key', 'test', '[{}]', idempotency_key => (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 300) AS i))$$);
SELECT pg_temp.try($$stepwise.start_workflow('long key', idempotency_key => repeat('x', 501))$$);

-- ---------- start_workflow ----------

SELECT stepwise.define_workflow('{"name": "create w", "description": "Say it", "inputs": {"word": {"type": "string"}, "times": {"type": "integer", "default": 1}}, "steps": [{"name": "say", "arguments": {"word": "${inputs.word}"}}],
    "onFailure": "fail", "stallAfter": "1 hour", "separateReviewer": true, "outputFormattingNotes": "loud", "outputs": {"said": "${steps.say.outputs}"}}') ->> 'version';
SELECT pg_temp.plain(stepwise.start_workflow('create w', '{"word": "hello"}'));
SELECT p.goal, p.on_failure, p.inputs, p.stall_after, p.separate_reviewer, p.workflow, p.version, d.output_formatting_notes
FROM stepwise.plan AS p JOIN stepwise.plan_detail AS d ON d.plan_id = p.id WHERE p.id = (SELECT pg_temp.plan('create w'));
-- a new version: existing plans keep theirs; the default is the newest
SELECT stepwise.define_workflow('{"name": "create w", "description": "Say it twice", "inputs": {"word": {"type": "string"}}, "steps": [{"name": "say"}, {"name": "again"}]}') ->> 'version';
SELECT pg_temp.next('create w');
SELECT a -> 'version', a -> 'stepCount' FROM stepwise.start_workflow('create w', '{"word": "hello"}') AS a;
SELECT a -> 'version', a -> 'stepCount' FROM stepwise.start_workflow('create w', '{"word": "hello"}', 1) AS a;
SELECT p.version, count(s.*) FROM stepwise.plan AS p JOIN stepwise.step AS s ON s.plan_id = p.id WHERE p.workflow = 'create w' GROUP BY p.id, p.version ORDER BY p.id;
-- idempotency: the same call again, also after a newer version; another one is a conflict
SELECT a -> 'version', a -> 'existing' FROM stepwise.start_workflow('create w', '{"word": "hi"}', idempotency_key => 'create w 1') AS a;
SELECT stepwise.define_workflow('{"name": "create w", "inputs": {"word": {"type": "string"}}, "steps": [{"name": "third"}]}') ->> 'version';
SELECT a -> 'version', a -> 'existing' FROM stepwise.start_workflow('create w', '{"word": "hi"}', idempotency_key => 'create w 1') AS a;
SELECT pg_temp.try(call) FROM unnest(ARRAY[
    $$stepwise.start_workflow('create w', '{"word": "ho"}', idempotency_key => 'create w 1')$$,
    $$stepwise.start_workflow('create w', '{"word": "hi"}', 1, idempotency_key => 'create w 1')$$]) AS call;
-- faults of the inputs, all in one error, and nothing is stored
SELECT count(*) AS before FROM stepwise.plan \gset
SELECT left(pg_temp.try(call), 200) FROM unnest(ARRAY[
    $$stepwise.start_workflow('create w')$$,
    $$stepwise.start_workflow('create w', '{"word": ""}', 1)$$,
    $$stepwise.start_workflow('create w', '{"word": 1, "times": "x", "else": 1}', 1)$$,
    $$stepwise.start_workflow('create w', '[]')$$,
    $$stepwise.start_workflow('create w', '"x"')$$,
    $$stepwise.start_workflow('create w', '{"word": "x"}', 9)$$,
    $$stepwise.start_workflow('create w', '{"word": "x"}', -1)$$,
    $$stepwise.start_workflow('create w', '{"word": "x"}', 0)$$,
    $$stepwise.start_workflow('nobody knows')$$,
    $$stepwise.start_workflow('')$$,
    $$stepwise.start_workflow(NULL)$$]) AS call;
SELECT count(*) = :before FROM stepwise.plan;

-- ---------- skills ----------

-- the session's latest started execution is linked, once
INSERT INTO stepwise.skill_execution (tenant, id, session_id, skill_name, status) VALUES
    ('default', stepwise.uuid7(), 'create session', 'first', 'started'), ('default', stepwise.uuid7(), 'create session', 'second', 'started'),
    ('default', stepwise.uuid7(), 'create session', 'third', 'completed'), ('default', stepwise.uuid7(), 'create other', 'fourth', 'started');
SELECT stepwise.create_plan('skilled', 'test', '[{}]', session_id => 'create session') ->> 'status';
SELECT e.skill_name FROM stepwise.skill_execution AS e WHERE e.plan_id = (SELECT pg_temp.plan('skilled'));
SELECT stepwise.start_workflow('create w', '{"word": "x"}', session_id => 'create other') ->> 'status';
SELECT e.skill_name FROM stepwise.skill_execution AS e WHERE e.plan_id = (SELECT pg_temp.plan('create w'));

-- ---------- large ----------

-- 10,000 steps in one call, claimed from the front and from the back
SELECT a -> 'stepCount', jsonb_array_length(a -> 'stepIds') FROM stepwise.create_plan('large', 'test', (SELECT jsonb_agg('{}'::jsonb) FROM generate_series(1, 10000))) AS a;
SELECT pg_temp.next('large');
SELECT pg_temp.submit('large', 'step_1');
SELECT pg_temp.next('large');
SELECT pg_temp.try($$stepwise.create_plan('larger', 'test', (SELECT jsonb_agg('{}'::jsonb) FROM generate_series(1, 10001)))$$);
-- as a chain of dependencies, all of which a failure skips at once
SELECT a -> 'stepCount' FROM stepwise.create_plan('chain', 'test', (SELECT jsonb_agg(CASE i WHEN 1 THEN '{}'::jsonb ELSE jsonb_build_object('dependsOn', jsonb_build_array('step_' || i - 1)) END ORDER BY i) FROM generate_series(1, 2000) AS i)) AS a;
SELECT s.wave FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('chain', 'step_2000'));
SELECT pg_temp.fail('chain', 'step_1');
SELECT p.skipped, p.status, p.outcome FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('chain'));
-- conditions that skip thousands of steps in one call
SELECT stepwise.create_plan('skips', 'test', (SELECT jsonb_agg(jsonb_build_object('condition', CASE i WHEN 2000 THEN 'true' ELSE '${inputs.x} > 1' END) ORDER BY i) FROM generate_series(1, 2000) AS i), inputs => '{"x": 1}') ->> 'status';
SELECT pg_temp.next('skips');

-- ---------- invalid calls (in addition to define.sql) ----------

SELECT left(pg_temp.try(call), 200) FROM unnest(ARRAY[
    $$stepwise.create_plan(NULL, NULL, NULL)$$,
    $$stepwise.create_plan('x', '', '[{}]')$$,
    $$stepwise.create_plan('x', 'test', '[{}]', inputs => '[]')$$,
    $$stepwise.create_plan('x', 'test', '[{}]', inputs => '1')$$,
    $$stepwise.create_plan('x', 'test', '[{}]', outputs => '[]')$$,
    $$stepwise.create_plan('x', 'test', '[{}]', on_failure => 'explode')$$,
    $$stepwise.create_plan('x', 'test', '[{}]', on_failure => '')$$,
    $$stepwise.create_plan('x', 'test', '[{}]', '{}')$$,
    $$stepwise.create_plan('x', 'test', '[{}]', stall_after => '-1 hour')$$,
    $$stepwise.create_plan('x', 'test', '[{}]', stall_after => '0')$$,
    $$stepwise.create_plan('x', 'test', '[{}]', stall_after => '100000000 years')$$,
    $$stepwise.create_plan('x', 'test', '[{}]', inputs => jsonb_build_object('x', repeat('x', 1048577)))$$,
    $$stepwise.create_plan('x', repeat('x', 1048577), '[{}]')$$,
    $$stepwise.create_plan('x', 'test', '[{}]', design_rationale => repeat('x', 1048577))$$,
    $$stepwise.create_plan('x', 'test', '[{}]', output_formatting_notes => repeat('x', 1048577))$$]) AS call;

SELECT pg_temp.unsound();

-- remove the many steps, so that later tests stay fast
SET client_min_messages = warning;
SELECT count(stepwise.cancel_plan(p.id, 'done')) > 0 FROM stepwise.plan AS p
WHERE p.tenant = stepwise.current_tenant() AND p.completed_at IS NULL AND p.parent_step_id IS NULL;
CALL stepwise.purge('infinity');
