-- The state machines: the allowed transitions. Plain SQL follows the same rules as the functions: each change is checked, stamped,
-- counted and audited, and the status of the plan is derived. Otherwise it is refused, and nothing changes.

\pset format unaligned
\pset tuples_only on
\set ECHO none
\i test/sound.sql
\i test/plain.sql
\set ECHO all
SET client_min_messages = warning;
SET test.goal = 'state.sql';

-- Create a plan, which is known by its name below.
CREATE FUNCTION pg_temp.plan(name text, steps jsonb, on_failure text = 'continue', branches jsonb = '[]') RETURNS text
LANGUAGE sql AS $$
    SELECT stepwise.create_plan(name, 'state.sql', steps, branches, on_failure => on_failure) ->> 'status'
$$;

-- Steps in a line: [{"name": "a"}, {"name": "b"}, ...]
CREATE FUNCTION pg_temp.names(VARIADIC names text[]) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_agg(jsonb_build_object('name', n)) FROM unnest(names) AS n
$$;

-- A plain UPDATE.
CREATE FUNCTION pg_temp.move(plan text, step text, to_status text) RETURNS void LANGUAGE sql AS $$
    UPDATE stepwise.step AS s SET status = to_status::stepwise.step_status WHERE s.id = pg_temp.id(plan, step)
$$;

-- What a step and a plan look like now.
CREATE FUNCTION pg_temp.steps(plan text) RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' ', s.step_order, s.name, s.status, s.outcome, 'attempt ' || s.attempt, 'started as ' || s.execution_order,
                     CASE WHEN s.started_at IS NOT NULL THEN 'started' END,
                     CASE WHEN s.completed_at IS NOT NULL THEN 'completed' END,
                     CASE WHEN (SELECT true FROM stepwise.plan AS p WHERE p.id = s.plan_id AND (s.ready_mark OR s.step_order = ANY (p.ready_steps))) THEN 'ready' END, '"' || s.message || '"')
    FROM stepwise.step AS s WHERE s.plan_id = pg_temp.id(plan) ORDER BY s.step_order
$$;

CREATE FUNCTION pg_temp.look(plan text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' ', p.status, p.outcome, CASE WHEN p.started_at IS NOT NULL THEN 'started' END,
                     CASE WHEN p.completed_at IS NOT NULL THEN 'completed' END, '"' || p.message || '"',
                     p.pause_reason - 'checkpointId')
    FROM stepwise.plan AS p WHERE p.id = pg_temp.id(plan)
$$;

-- The audit entries of a plan in words, from a number on.
CREATE FUNCTION pg_temp.trail(plan text, since int = 1) RETURNS SETOF text LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' ', a.event, s.name, a.detail ->> 'action', (a.detail ->> 'from') || '>' || (a.detail ->> 'to'),
                     'attempt ' || (a.detail ->> 'attempt'), a.detail ->> 'outcome', '"' || (a.detail ->> 'message') || '"',
                     a.detail #>> '{reason,type}')
    FROM stepwise.audit AS a LEFT JOIN stepwise.step AS s ON s.id = a.step_id
    WHERE a.plan_id = pg_temp.id(plan) AND a.id >= since ORDER BY a.id
$$;

-- ---------- ids ----------

-- version 7, and the variant of RFC 9562; they rise, and hold the time
SELECT count(*), count(DISTINCT u), bool_and(substr(u::text, 15, 1) = '7'), bool_and(substr(u::text, 20, 1) IN ('8', '9', 'a', 'b')),
       bool_and(u > before) AS rising
FROM (SELECT u, lag(u) OVER (ORDER BY n) AS before
      FROM (SELECT n, stepwise.uuid7() AS u FROM generate_series(1, 20000) AS n OFFSET 0) AS made) AS pairs;
SELECT abs(('x' || left(replace(stepwise.uuid7()::text, '-', ''), 12))::bit(48)::bigint - extract(epoch FROM clock_timestamp()) * 1000) < 5000 AS is_now;

-- ---------- the tables of transitions ----------

SELECT rpad(f::text, 15) || string_agg(CASE WHEN stepwise.step_transition_allowed(f, t) THEN t::text ELSE '-' END, ' ' ORDER BY t)
FROM unnest(enum_range(NULL::stepwise.step_status)) AS f, unnest(enum_range(NULL::stepwise.step_status)) AS t
GROUP BY f ORDER BY f;
SELECT rpad(f::text, 16) || string_agg(CASE WHEN stepwise.plan_transition_allowed(f, t) THEN t::text ELSE '-' END, ' ' ORDER BY t)
FROM unnest(enum_range(NULL::stepwise.plan_status)) AS f, unnest(enum_range(NULL::stepwise.plan_status)) AS t
GROUP BY f ORDER BY f;
SELECT proname, provolatile, proisstrict, proparallel FROM pg_proc
WHERE pronamespace = 'stepwise'::regnamespace AND proname ~ 'derive_plan_status|transition_allowed' ORDER BY 1;

-- ---------- the status of a plan, derived ----------

-- every rule, under each on_failure
SELECT concat_ws(' ', coalesce(nullif(array_to_string(s, '+'), ''), 'nothing'), '>',
                 stepwise.derive_plan_status(s, 'continue'), stepwise.derive_plan_status(s, 'pause'), stepwise.derive_plan_status(s, 'fail'))
FROM (VALUES
    (1, '{}'::stepwise.step_status[]),
    (2, '{pending}'), (3, '{pending,pending}'),
    (4, '{in_progress}'), (5, '{pending,in_progress}'), (6, '{pending,completed}'), (7, '{pending,skipped}'), (8, '{in_progress,completed}'),
    (9, '{awaiting_input}'), (10, '{pending,awaiting_input}'), (11, '{completed,awaiting_input,in_progress}'),
    (12, '{completed}'), (13, '{skipped}'), (14, '{completed,skipped,completed}'),
    (15, '{failed}'), (16, '{failed,pending}'), (17, '{failed,completed,skipped}'), (18, '{failed,awaiting_input}'), (19, '{failed,in_progress}')
) AS example (n, s) ORDER BY n;

-- all sets of states, compared with the rules written in SQL
WITH every AS (
    SELECT array_remove(ARRAY[CASE WHEN b & 1 > 0 THEN 'pending' END, CASE WHEN b & 2 > 0 THEN 'in_progress' END,
                              CASE WHEN b & 4 > 0 THEN 'awaiting_input' END, CASE WHEN b & 8 > 0 THEN 'completed' END,
                              CASE WHEN b & 16 > 0 THEN 'failed' END, CASE WHEN b & 32 > 0 THEN 'skipped' END], NULL)::stepwise.step_status[] AS s, f
    FROM generate_series(0, 63) AS b, unnest(ARRAY['continue', 'pause', 'fail']) AS f)
SELECT count(*), count(*) FILTER (WHERE stepwise.derive_plan_status(s, f) <> expected OR stepwise.derive_plan_status(s || s || s, f) <> expected) AS wrong
FROM every, LATERAL (SELECT (CASE
    WHEN cardinality(s) = 0 THEN 'planning'
    WHEN 'failed' = ANY (s) AND f = 'fail' THEN 'failed'
    WHEN 'awaiting_input' = ANY (s) THEN 'awaiting_review'
    WHEN s <@ '{completed,skipped}' OR (f = 'continue' AND s <@ '{completed,skipped,failed}') THEN 'completed'
    WHEN s <@ '{pending}' THEN 'planning'
    ELSE 'executing' END)::stepwise.plan_status AS expected) AS rules;

SELECT pg_temp.try($$SELECT stepwise.derive_plan_status('{pending}', 'panic')$$, true);
SELECT pg_temp.try($$SELECT stepwise.derive_plan_status('{pending,NULL}', 'fail')$$);
SELECT stepwise.derive_plan_status(NULL, 'fail') IS NULL AND stepwise.derive_plan_status('{pending}', NULL) IS NULL;

-- ---------- a plan moved by plain SQL ----------

SELECT pg_temp.plan('plain', pg_temp.names('a', 'b', 'c'));
SELECT pg_temp.move('plain', 'a', 'in_progress');
SELECT pg_temp.steps('plain');
SELECT pg_temp.look('plain');
-- released: the attempt stays counted, the claim is gone
UPDATE stepwise.step SET worker = 'me' WHERE id = pg_temp.id('plain', 'a');
SELECT pg_temp.move('plain', 'a', 'pending');
SELECT pg_temp.steps('plain');
SELECT worker, holder, lease_expires_at, active_at FROM stepwise.step WHERE id = pg_temp.id('plain', 'a');
-- completed, with all result columns; the engine overrides times and outcomes that it knows itself
SELECT pg_temp.move('plain', 'a', 'in_progress');
UPDATE stepwise.step SET status = 'completed', result = '{"n": 1}', result_summary = 'one', confidence = 0.9, completed_at = 'epoch'
WHERE id = pg_temp.id('plain', 'a');
SELECT completed_at > now() - interval '1 hour', outcome, result, result_summary, confidence FROM stepwise.step WHERE id = pg_temp.id('plain', 'a');
-- completed with failure, through a wait that does not change the attempt
SELECT pg_temp.move('plain', 'b', 'in_progress');
SELECT pg_temp.move('plain', 'b', 'awaiting_input');
SELECT pg_temp.look('plain');
SELECT pg_temp.move('plain', 'b', 'in_progress');
UPDATE stepwise.step SET status = 'completed', outcome = 'failure' WHERE id = pg_temp.id('plain', 'b');
-- failed without having run, retried at once, then skipped with a message
UPDATE stepwise.step SET status = 'failed', message = 'no tool', outcome = 'failure' WHERE id = pg_temp.id('plain', 'c');
SELECT pg_temp.steps('plain');
SELECT pg_temp.look('plain');
SELECT pg_temp.trail('plain');
SELECT * FROM pg_temp.sound();

-- failed > in_progress counts as a new attempt, failed > pending does not until it is claimed; a cleared message
SELECT pg_temp.plan('retried', pg_temp.names('a', 'b'));
SELECT pg_temp.move('retried', 'a', 'in_progress');
UPDATE stepwise.step SET status = 'failed', message = 'broken' WHERE id = pg_temp.id('retried', 'a');
SELECT pg_temp.move('retried', 'a', 'in_progress');
SELECT pg_temp.steps('retried');
UPDATE stepwise.step SET status = 'failed', message = 'broken again' WHERE id = pg_temp.id('retried', 'a');
SELECT pg_temp.move('retried', 'a', 'pending');
SELECT pg_temp.steps('retried');
SELECT pg_temp.look('retried');
SELECT pg_temp.move('retried', 'a', 'skipped');
SELECT pg_temp.move('retried', 'b', 'skipped');
SELECT pg_temp.look('retried');
SELECT pg_temp.trail('retried', 2);
SELECT * FROM pg_temp.sound();

-- ---------- all transitions ----------

-- In a plan that stays open, bring a step to a state and try each transition. The UPDATE succeeds if the table allows it.
-- Otherwise neither the rows nor the log change.
CREATE FUNCTION pg_temp.try_move(from_status stepwise.step_status, to_status stepwise.step_status) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan text := format('%s to %s', from_status, to_status);
    before text;
    code text := 'moved';
BEGIN
    PERFORM pg_temp.plan(plan, pg_temp.names('a', 'b'));
    IF from_status NOT IN ('pending', 'skipped') THEN PERFORM pg_temp.move(plan, 'a', 'in_progress'); END IF;
    IF from_status NOT IN ('pending', 'in_progress') THEN PERFORM pg_temp.move(plan, 'a', from_status::text); END IF;
    SELECT (SELECT p::text FROM stepwise.plan AS p WHERE p.id = pg_temp.id(plan)) || (SELECT s::text FROM stepwise.step AS s WHERE s.id = pg_temp.id(plan, 'a')) INTO before;
    BEGIN
        PERFORM pg_temp.move(plan, 'a', to_status::text);
    EXCEPTION WHEN OTHERS THEN
        code := sqlstate;
    END;
    IF code <> 'moved' OR from_status = to_status THEN
        IF (SELECT p::text FROM stepwise.plan AS p WHERE p.id = pg_temp.id(plan)) || (SELECT s::text FROM stepwise.step AS s WHERE s.id = pg_temp.id(plan, 'a'))
           IS DISTINCT FROM before
        THEN
            code := code || ', and something changed';
        END IF;
    END IF;
    RETURN code;
END $$;

-- a state "moved" to itself is an UPDATE that changes nothing, and passes
SELECT rpad(f::text, 15) || string_agg(pg_temp.try_move(f, t), ' ' ORDER BY t)
FROM unnest(enum_range(NULL::stepwise.step_status)) AS f, unnest(enum_range(NULL::stepwise.step_status)) AS t
GROUP BY f ORDER BY f;
SELECT * FROM pg_temp.sound();

-- the error names both states and the allowed transitions, and has a hint
SELECT pg_temp.try($$SELECT pg_temp.move('pending to pending', 'a', 'completed')$$, true);
SELECT pg_temp.try($$SELECT pg_temp.move('pending to in_progress', 'a', 'in_progress')$$, true);
SELECT pg_temp.try($$SELECT pg_temp.move('pending to skipped', 'a', 'pending')$$, true);
SELECT pg_temp.try($$SELECT pg_temp.move('in_progress to failed', 'a', 'completed')$$, true);
SELECT pg_temp.try($$SELECT pg_temp.move('in_progress to awaiting_input', 'a', 'pending')$$, true);
SELECT pg_temp.try($$SELECT pg_temp.move('in_progress to completed', 'a', 'failed')$$, true);

-- one invalid row among valid ones: the whole statement is refused
SELECT pg_temp.try($$UPDATE stepwise.step SET status = 'in_progress'
    WHERE plan_id IN (pg_temp.id('pending to pending'), pg_temp.id('in_progress to completed'))$$);
SELECT pg_temp.steps('pending to pending');
SELECT pg_temp.try($$UPDATE stepwise.step SET status = NULL WHERE plan_id = pg_temp.id('pending to pending')$$);
SELECT pg_temp.try($$UPDATE stepwise.step SET outcome = NULL WHERE plan_id = pg_temp.id('pending to pending')$$);

-- ---------- outcomes ----------

-- The engine corrects outcomes: the outcome that a transition asks for, and the one that is stored.
CREATE FUNCTION pg_temp.try_outcome(to_status stepwise.step_status, outcome stepwise.outcome) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan text := format('%s with %s', to_status, outcome);
BEGIN
    PERFORM pg_temp.plan(plan, pg_temp.names('a', 'b'));
    IF to_status NOT IN ('in_progress', 'pending') THEN PERFORM pg_temp.move(plan, 'a', 'in_progress'); END IF;
    EXECUTE format('UPDATE stepwise.step SET status = %L, outcome = %L WHERE id = %L', to_status, outcome, pg_temp.id(plan, 'a'));
    RETURN (SELECT s.outcome FROM stepwise.step AS s WHERE s.id = pg_temp.id(plan, 'a'));
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate;
END $$;
SELECT rpad(t::text, 15) || string_agg(format('%s: %s', o, pg_temp.try_outcome(t, o)), ', ' ORDER BY o)
FROM unnest(enum_range(NULL::stepwise.step_status)) AS t, unnest(enum_range(NULL::stepwise.outcome)) AS o GROUP BY t ORDER BY t;

-- Without the engine the constraint applies: here a superuser has disabled all triggers.
BEGIN;
SET LOCAL session_replication_role = replica;
SELECT rpad(t::text, 15) || string_agg(rpad(o || ':', 9) || left(pg_temp.try(format(
    'UPDATE stepwise.step SET status = %L, outcome = %L WHERE id = %L', t, o, pg_temp.id('plain', 'a'))), 8), ', ' ORDER BY o)
FROM unnest(enum_range(NULL::stepwise.step_status)) AS t, unnest(enum_range(NULL::stepwise.outcome)) AS o GROUP BY t ORDER BY t;
SELECT pg_temp.try(format($$UPDATE stepwise.plan SET status = 'executing', completed_at = NULL WHERE id = %L$$, pg_temp.id('plain')));
SELECT pg_temp.try(format($$UPDATE stepwise.plan SET status = 'failed', outcome = 'n/a', completed_at = NULL WHERE id = %L$$, pg_temp.id('plain')));
ROLLBACK;

-- ---------- columns and rows that only the engine writes ----------

-- of the columns of a step, those that plain SQL may change while it is in progress
SELECT pg_temp.plan('columns', pg_temp.names('a', 'b'));
SELECT pg_temp.move('columns', 'a', 'in_progress');
CREATE FUNCTION pg_temp.another(column_name text, type text) RETURNS text LANGUAGE sql AS $$
    SELECT CASE type
        WHEN 'uuid' THEN '''00000000-0000-7000-8000-000000000000''' WHEN 'text' THEN '''other''' WHEN 'int4' THEN coalesce(column_name, '') || ' + 77'
        WHEN 'bool' THEN 'NOT coalesce(' || column_name || ', false)' WHEN 'timestamptz' THEN 'now() + interval ''1 day''' WHEN 'interval' THEN '''1 day'''
        WHEN 'jsonb' THEN '''{"a": 1}''' WHEN 'numeric' THEN '0.123' WHEN 'jsonpath' THEN '''$.b''' WHEN '_text' THEN '''{b}'''
        WHEN 'step_status' THEN '''failed''' WHEN 'outcome' THEN '''n/a''' END
$$;
BEGIN;
SELECT string_agg(c, ' ' ORDER BY attnum) FILTER (WHERE answer = 'no error') AS by_hand,
       string_agg(c, ' ' ORDER BY attnum) FILTER (WHERE answer = format('SW003 column %s of step "a" is kept by the engine', c)) AS kept,
       string_agg(c || ': ' || answer, ', ') FILTER (WHERE answer NOT LIKE 'SW003 column %' AND answer <> 'no error') AS else
FROM (SELECT attname::text AS c, attnum, pg_temp.try(format('UPDATE stepwise.step SET %I = %s%s WHERE id = %L', attname,
          CASE WHEN typname = 'int4' AND NOT attnotnull THEN '77' ELSE pg_temp.another(attname, typname) END,
          '', pg_temp.id('columns', 'a'))) AS answer
      FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
      WHERE attrelid = 'stepwise.step'::regclass AND attnum > 0 AND NOT attisdropped
        AND attname NOT IN ('status', 'outcome') ORDER BY attnum) AS tried \gx
ROLLBACK;
-- within the limits that the functions have
SELECT pg_temp.try(format('UPDATE stepwise.step SET %s WHERE id = %L', x, pg_temp.id('columns', 'a')))
FROM unnest(ARRAY[$$confidence = 1.1$$, $$confidence = 'NaN'$$, $$result = to_jsonb(repeat('x', 2000000))$$, $$result_summary = repeat('x', 2000000)$$,
                  $$worker = repeat('x', 501)$$, $$result = (repeat('[', 70) || repeat(']', 70))::jsonb$$]) AS x;
-- each accepted change has an audit entry, an UPDATE that changes nothing has none; a final step cannot change
UPDATE stepwise.step SET worker = 'w', lease_expires_at = now() + interval '1 hour' WHERE id = pg_temp.id('columns', 'a');
UPDATE stepwise.step SET status = status, message = message WHERE plan_id = pg_temp.id('columns');
SELECT pg_temp.trail('columns', 4);
SELECT pg_temp.try($$UPDATE stepwise.step SET lease_expires_at = now() WHERE id = pg_temp.id('columns', 'b')$$, true);
SELECT pg_temp.move('columns', 'a', 'completed');
SELECT lease_expires_at IS NULL FROM stepwise.step WHERE id = pg_temp.id('columns', 'a');
SELECT pg_temp.try($$UPDATE stepwise.step SET result = '2' WHERE id = pg_temp.id('columns', 'a')$$, true);
SELECT pg_temp.try($$UPDATE stepwise.step SET outcome = 'failure' WHERE id = pg_temp.id('columns', 'a')$$);
SELECT * FROM pg_temp.sound();

-- no column of a plan can be changed; an UPDATE that changes nothing is accepted
SELECT pg_temp.try(format($$UPDATE stepwise.plan SET status = %L, outcome = CASE WHEN %1$L = 'completed' THEN 'success' ELSE 'n/a' END::stepwise.outcome,
    completed_at = CASE WHEN %1$L IN ('completed', 'failed', 'cancelled') THEN now() END WHERE id = pg_temp.id('columns')$$, s))
FROM unnest(enum_range(NULL::stepwise.plan_status)) AS s;
SELECT pg_temp.try($$UPDATE stepwise.plan SET name = 'other' WHERE id = pg_temp.id('columns')$$, true);
UPDATE stepwise.plan SET status = status WHERE id = pg_temp.id('columns');

-- nothing is deleted, truncated or inserted by hand
CREATE TEMP TABLE guarded AS
SELECT relname::text AS name FROM pg_class
WHERE relnamespace = 'stepwise'::regnamespace AND relkind = 'r' AND relname NOT IN ('member', 'tool', 'resource', 'state', 'artifact', 'skill_execution', 'tool_call');
SELECT stepwise.define_workflow('{"name": "state.sql", "steps": [{}]}') -> 'version';
SELECT pg_temp.plan('guarded', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}]', 'continue',
    '[{"afterStepOrder": 1, "conditionExpression": "outcome == \"failure\"", "ifTrueAction": "fail"}]');
SELECT stepwise.store_output(pg_temp.id('guarded'), 'so that it has a row of details') IS NOT NULL;
SELECT pg_temp.move('guarded', 'a', 'in_progress');
SELECT pg_temp.move('guarded', 'a', 'awaiting_input');
SELECT name, left(pg_temp.try(format('DELETE FROM stepwise.%I', name)), 5) AS delete,
       left(pg_temp.try(format('TRUNCATE stepwise.%I', name)), 5) AS truncate,
       left(pg_temp.try(format('INSERT INTO stepwise.%I SELECT * FROM stepwise.%1$I AS r WHERE to_jsonb(r) ->> ''status'' IS DISTINCT FROM ''pending'' LIMIT 1', name)), 5) AS insert
FROM guarded ORDER BY name;
SELECT pg_temp.try('DELETE FROM stepwise.step', true);
SELECT pg_temp.try('TRUNCATE stepwise.plan', true);
SELECT pg_temp.try('UPDATE stepwise.engine SET used = false');
SELECT * FROM pg_temp.sound();

-- ---------- steps inserted by hand ----------

SELECT pg_temp.plan('grown', pg_temp.names('a'));
INSERT INTO stepwise.step (tenant, plan_id, step_order, name, instructions)
SELECT 'default', pg_temp.id('grown'), 1 + n, 'b' || n, 'by hand' FROM generate_series(1, 2) AS n;
SELECT step_order, name, status, wave, root_id = plan_id AS root FROM stepwise.step WHERE plan_id = pg_temp.id('grown') ORDER BY 1;
SELECT pending, next_order FROM stepwise.plan WHERE id = pg_temp.id('grown');
SELECT pg_temp.trail('grown', 2);
-- a plan does not complete without them
UPDATE stepwise.step SET status = 'skipped' WHERE plan_id = pg_temp.id('grown') AND name <> 'b2';
SELECT pg_temp.look('grown');

CREATE FUNCTION pg_temp.try_insert(what jsonb, plan text = 'grown') RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.try(format('INSERT INTO stepwise.step (%s) VALUES (%s)',
        string_agg(quote_ident(key), ', ' ORDER BY key), string_agg(quote_nullable(value), ', ' ORDER BY key)))
    FROM jsonb_each_text(jsonb_strip_nulls(jsonb_build_object('tenant', 'default', 'plan_id', pg_temp.id(plan), 'step_order', 4, 'name', 'x') || what))
$$;
SELECT rpad(e::text, 45) || pg_temp.try_insert(e) FROM (VALUES
    (1, '{"status": "in_progress"}'::jsonb), (2, '{"status": "skipped"}'), (3, '{"status": "completed", "outcome": "success"}'),
    (4, '{"outcome": "success"}'), (5, '{"attempt": 1}'), (6, '{"result": "1"}'), (7, '{"holder": "w"}'), (8, '{"worker": "w"}'),
    (9, '{"lease_expires_at": "2020-01-01"}'), (10, '{"pause_reason": "{}"}'), (11, '{"execution_order": 3}'), (12, '{"branches": true}'),
    (13, '{"blockers": 1}'), (14, '{"started_at": "2020-01-01"}'), (15, '{"message": "m"}'),
    (16, '{"step_order": 5}'), (17, '{"step_order": 3}'), (18, '{"name": "a"}'), (19, '{"step_order": 0}'),
    (20, '{"plan_id": "00000000-0000-7000-8000-000000000000"}'), (21, '{"dependents": 1}')) AS t (n, e) ORDER BY n;
-- constraints of the table raise their own errors
SELECT c, left(pg_temp.try_insert(jsonb_build_object(c, NULL)), 5) FROM unnest(ARRAY['tenant', 'plan_id', 'step_order', 'name']) AS c;
SELECT left(pg_temp.try(format('INSERT INTO stepwise.step (tenant, plan_id, step_order, name, status) VALUES (%L, %L, 4, %L, NULL)', 'default', pg_temp.id('grown'), 'x')), 5);
-- not into a plan that waits or has ended
SELECT pg_temp.try_insert('{"step_order": 3}', 'guarded');
SELECT pg_temp.try_insert('{"step_order": 4}', 'plain');
-- with dependencies in the plan, an inserted step is ready at once
SELECT pg_temp.plan('grown graph', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}]');
SELECT pg_temp.try_insert('{"step_order": 3}', 'grown graph');
SELECT pg_temp.steps('grown graph');
SELECT * FROM pg_temp.sound();

-- ---------- many at once ----------

-- several plans in one statement, each derived by itself; also in one with data-modifying parts
SELECT pg_temp.plan('one of four', pg_temp.names('a', 'b')), pg_temp.plan('two of four', pg_temp.names('a')),
       pg_temp.plan('three of four', pg_temp.names('a', 'b')), pg_temp.plan('four of four', pg_temp.names('a'), 'fail');
UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id IN (SELECT id FROM stepwise.plan WHERE name LIKE '% of four') AND name = 'a';
UPDATE stepwise.step AS s SET status = CASE p.name WHEN 'one of four' THEN 'completed' WHEN 'two of four' THEN 'completed'
                                           WHEN 'three of four' THEN 'awaiting_input' ELSE 'failed' END::stepwise.step_status
FROM stepwise.plan AS p WHERE p.id = s.plan_id AND p.name LIKE '% of four' AND s.name = 'a';
SELECT name, pg_temp.look(name) FROM stepwise.plan WHERE name LIKE '% of four' ORDER BY id;
WITH first AS (UPDATE stepwise.step SET status = 'skipped' WHERE id = pg_temp.id('one of four', 'b') RETURNING name),
     second AS (UPDATE stepwise.step SET status = 'in_progress' WHERE id = pg_temp.id('three of four', 'b') RETURNING name)
UPDATE stepwise.step SET status = 'completed' WHERE id = pg_temp.id('three of four', 'a') RETURNING (SELECT count(*) FROM first), (SELECT count(*) FROM second);
SELECT name, pg_temp.look(name) FROM stepwise.plan WHERE name LIKE '% of four' ORDER BY id;
SELECT pg_temp.trail('three of four', 2);
SELECT pg_temp.trail('four of four', 2);
SELECT * FROM pg_temp.sound();

-- other statements that write: INSERT ... ON CONFLICT, MERGE
SELECT pg_temp.plan('merged', pg_temp.names('a', 'b'));
INSERT INTO stepwise.step (tenant, id, plan_id, step_order, name) SELECT tenant, id, plan_id, step_order, name FROM stepwise.step WHERE plan_id = pg_temp.id('merged')
ON CONFLICT (id) DO UPDATE SET status = 'in_progress';
MERGE INTO stepwise.step AS s USING (VALUES ('a', 1), ('c', 3)) AS w (name, step_order) ON s.plan_id = pg_temp.id('merged') AND s.name = w.name
WHEN MATCHED THEN UPDATE SET status = 'completed'
WHEN NOT MATCHED THEN INSERT (tenant, plan_id, step_order, name) VALUES ('default', pg_temp.id('merged'), w.step_order, w.name);
SELECT pg_temp.steps('merged');
SELECT pg_temp.try($$MERGE INTO stepwise.step AS s USING (VALUES ('a')) AS w (name) ON s.plan_id = pg_temp.id('merged') AND s.name = w.name WHEN MATCHED THEN DELETE$$);
SELECT pg_temp.trail('merged', 2);
SELECT * FROM pg_temp.sound();

-- ---------- on_failure ----------

SELECT pg_temp.plan('goes on', pg_temp.names('a', 'b')), pg_temp.plan('pauses', pg_temp.names('a', 'b'), 'pause'), pg_temp.plan('fails', pg_temp.names('a', 'b'), 'fail');
UPDATE stepwise.step SET status = 'failed', message = 'broken' WHERE name = 'a' AND plan_id IN (pg_temp.id('goes on'), pg_temp.id('pauses'), pg_temp.id('fails'));
SELECT n, pg_temp.look(n) FROM unnest(ARRAY['goes on', 'pauses', 'fails']) AS n;
-- a failed plan has ended, the other two go on
SELECT pg_temp.try($$SELECT pg_temp.move('fails', 'b', 'in_progress')$$, true);
SELECT pg_temp.try($$SELECT pg_temp.move('fails', 'a', 'pending')$$);
SELECT pg_temp.move('goes on', 'b', 'skipped'), pg_temp.move('pauses', 'b', 'skipped');
SELECT n, pg_temp.look(n) FROM unnest(ARRAY['goes on', 'pauses']) AS n;
-- under pause, until the failed step is retried or skipped, which clears the reason
SELECT pg_temp.move('pauses', 'a', 'pending');
SELECT pg_temp.look('pauses');
SELECT pg_temp.move('pauses', 'a', 'failed');
SELECT pg_temp.move('pauses', 'a', 'skipped');
SELECT pg_temp.look('pauses');
SELECT pg_temp.trail('pauses', 2);
-- a terminal state is final, also for the other columns
SELECT pg_temp.try($$SELECT pg_temp.move('goes on', 'a', 'pending')$$);
SELECT pg_temp.try($$UPDATE stepwise.step SET message = 'other' WHERE id = pg_temp.id('goes on', 'a')$$);
SELECT * FROM pg_temp.sound();

-- ---------- dependencies ----------

-- the effect of a parent's end on required and on optional dependents
CREATE FUNCTION pg_temp.after(label text, on_failure text, changes text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.plan(label, '[{"name": "parent"}, {"name": "required", "dependsOn": ["parent"]},
                                  {"name": "optional", "dependsOn": [{"step": "parent", "required": false}]}, {"name": "other"}]', on_failure);
    PERFORM pg_temp.move(label, 'parent', 'in_progress');
    EXECUTE format('UPDATE stepwise.step SET %s WHERE id = %L', changes, pg_temp.id(label, 'parent'));
    RETURN QUERY SELECT label || ': ' || s FROM pg_temp.steps(label) AS s WHERE s !~ '^4';
END $$;
SELECT pg_temp.after('after success', 'continue', $$status = 'completed'$$);
SELECT pg_temp.after('after failure', 'continue', $$status = 'completed', outcome = 'failure'$$);
SELECT pg_temp.after('after failed', 'continue', $$status = 'failed', message = 'm'$$);
SELECT pg_temp.after('after skipped', 'continue', $$status = 'skipped'$$);
-- under pause they wait until the failed step is retried or skipped
SELECT pg_temp.after('after pause', 'pause', $$status = 'failed', message = 'm'$$);
SELECT pg_temp.look('after pause');
SELECT pg_temp.move('after pause', 'parent', 'in_progress');
SELECT pg_temp.move('after pause', 'parent', 'completed');
SELECT pg_temp.steps('after pause');
SELECT pg_temp.look('after pause');

-- cascades: through three levels, over a mixed one, and the last step of the plan with them
SELECT pg_temp.plan('cascade', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["b"]}, {"name": "d", "dependsOn": ["c"]},
    {"name": "e", "dependsOn": [{"step": "b", "required": false}]}, {"name": "f", "dependsOn": ["e", {"step": "d", "required": false}]}]');
SELECT pg_temp.steps('cascade');
UPDATE stepwise.step SET status = 'failed', message = 'no' WHERE id = pg_temp.id('cascade', 'a');
SELECT pg_temp.steps('cascade');
SELECT pg_temp.trail('cascade', 2);
UPDATE stepwise.step SET status = 'skipped' WHERE plan_id = pg_temp.id('cascade') AND status = 'pending';
SELECT pg_temp.look('cascade');
-- several parents end in one statement; one of them prevents what the other allows
SELECT pg_temp.plan('join', '[{"name": "a"}, {"name": "b"}, {"name": "c", "dependsOn": ["a", "b"]}, {"name": "d", "dependsOn": ["a", {"step": "b", "required": false}]},
    {"name": "e", "dependsOn": ["d"]}]');
UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id = pg_temp.id('join') AND name IN ('a', 'b');
UPDATE stepwise.step SET status = 'completed', outcome = CASE name WHEN 'a' THEN 'success' ELSE 'failure' END::stepwise.outcome
WHERE plan_id = pg_temp.id('join') AND name IN ('a', 'b');
SELECT pg_temp.steps('join');
-- the statement also moves the steps to which it would cascade
SELECT pg_temp.plan('by hand and by cascade', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["b"]}]');
UPDATE stepwise.step SET status = CASE name WHEN 'b' THEN 'in_progress' ELSE 'failed' END::stepwise.step_status, message = 'by hand'
WHERE plan_id = pg_temp.id('by hand and by cascade') AND name <> 'c';
SELECT pg_temp.steps('by hand and by cascade');
-- a step that was started before its turn, and given back
SELECT pg_temp.plan('impatient', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}]');
SELECT pg_temp.move('impatient', 'b', 'in_progress'), pg_temp.move('impatient', 'b', 'pending');
SELECT pg_temp.steps('impatient');
SELECT pg_temp.move('impatient', 'b', 'in_progress'), pg_temp.move('impatient', 'a', 'in_progress'), pg_temp.move('impatient', 'a', 'completed'), pg_temp.move('impatient', 'b', 'pending');
SELECT pg_temp.steps('impatient');
SELECT * FROM pg_temp.sound();

-- ---------- branches ----------

-- two steps complete in one statement, and their branches add steps at the right places
SELECT pg_temp.plan('branches', pg_temp.names('a', 'b', 'c'), 'continue',
    '[{"afterStepOrder": 1, "conditionExpression": "outcome == \"success\"", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "a1"}, {"name": "a2"}]}},
      {"afterStepOrder": 2, "conditionExpression": "outcome == \"success\"", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "b1"}]}}]');
UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id = pg_temp.id('branches') AND name <> 'c';
UPDATE stepwise.step SET status = 'completed' WHERE plan_id = pg_temp.id('branches') AND status = 'in_progress';
SELECT pg_temp.steps('branches');
-- a plan that a branch has failed stays failed; its other steps keep their states, and cannot change
SELECT pg_temp.plan('fail branch', pg_temp.names('a', 'b', 'c'), 'continue',
    '[{"afterStepOrder": 1, "conditionExpression": "result.bad == true", "ifTrueAction": "fail", "actionParams": {"reason": "bad"}}]');
UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id = pg_temp.id('fail branch') AND name <> 'c';
UPDATE stepwise.step SET status = 'completed', result = '{"bad": true}' WHERE id = pg_temp.id('fail branch', 'a');
SELECT pg_temp.look('fail branch');
SELECT pg_temp.steps('fail branch');
SELECT pg_temp.try($$SELECT pg_temp.move('fail branch', 'b', 'completed')$$);
SELECT * FROM pg_temp.sound();

-- ---------- waiting ----------

-- each wait opens a new checkpoint, and its end closes it
SELECT pg_temp.plan('waits', '[{"name": "a"}, {"name": "b", "prompt": "Go on?"}]');
UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id = pg_temp.id('waits');
UPDATE stepwise.step SET status = 'awaiting_input' WHERE plan_id = pg_temp.id('waits');
SELECT s.name, c.kind, c.prompt, c.requester = current_user, c.id::text = s.pause_reason ->> 'checkpointId'
FROM stepwise.checkpoint AS c JOIN stepwise.step AS s ON s.id = c.step_id WHERE c.plan_id = pg_temp.id('waits') ORDER BY s.step_order;
SELECT pg_temp.look('waits');
SELECT id AS first FROM stepwise.checkpoint WHERE step_id = pg_temp.id('waits', 'a') \gset
SELECT pg_temp.move('waits', 'a', 'in_progress');
SELECT pg_temp.look('waits');
SELECT pg_temp.move('waits', 'a', 'awaiting_input');
SELECT count(*), bool_and(id <> :'first') FROM stepwise.checkpoint WHERE step_id = pg_temp.id('waits', 'a');
SELECT pg_temp.move('waits', 'a', 'completed'), pg_temp.move('waits', 'b', 'failed');
SELECT count(*) FROM stepwise.checkpoint WHERE plan_id = pg_temp.id('waits');
SELECT pg_temp.look('waits');
SELECT pg_temp.trail('waits', 2);
SELECT * FROM pg_temp.sound();

-- ---------- the ends of a plan, and the functions ----------

SELECT pg_temp.plan('cancelled', pg_temp.names('a', 'b', 'c'));
SELECT pg_temp.move('cancelled', 'a', 'in_progress');
SELECT pg_temp.move('cancelled', 'b', 'failed');
SELECT stepwise.cancel_plan(pg_temp.id('cancelled'), 'enough') ->> 'planStatus';
SELECT pg_temp.steps('cancelled');
SELECT pg_temp.look('cancelled');
SELECT pg_temp.try($$SELECT pg_temp.move('cancelled', 'b', 'pending')$$);
SELECT pg_temp.try($$SELECT stepwise.cancel_plan(pg_temp.id('cancelled'))$$);
-- a plan stays stalled until a step changes its state; other UPDATEs do not count
SELECT pg_temp.plan('stalled', pg_temp.names('a', 'b'));
SELECT pg_temp.move('stalled', 'a', 'in_progress');
UPDATE stepwise.step SET active_at = now() - interval '1 day' WHERE id = pg_temp.id('stalled', 'a');
SELECT stepwise.get_plan_status(pg_temp.id('stalled')) ->> 'status';
UPDATE stepwise.step SET result_summary = 'half' WHERE id = pg_temp.id('stalled', 'a');
SELECT pg_temp.look('stalled');
SELECT pg_temp.move('stalled', 'a', 'completed');
SELECT pg_temp.look('stalled');
SELECT pg_temp.trail('stalled', 2);
-- functions and plain SQL on one plan
SELECT pg_temp.plan('mixed', pg_temp.names('a', 'b', 'c'));
SELECT stepwise.get_next_step(pg_temp.id('mixed'), 'w') ->> 'name';
SELECT pg_temp.move('mixed', 'a', 'completed');
SELECT stepwise.submit_step_result(pg_temp.id('mixed', 'b'), '1') ->> 'planStatus';
SELECT pg_temp.move('mixed', 'c', 'in_progress');
SELECT stepwise.submit_step_result(pg_temp.id('mixed', 'c'), '2') ->> 'planStatus';
SELECT pg_temp.trail('mixed', 2);
SELECT * FROM pg_temp.sound();

-- a nested plan: plain SQL on its steps affects the plans above. The step that holds it cannot be completed by plain SQL, but
-- ending that step by plain SQL ends the nested plan
SELECT stepwise.define_workflow('{"name": "state.sql nested", "steps": [{"name": "x"}, {"name": "y"}], "outputs": {"from": "${steps.x.outputs}"}}') -> 'version';
SELECT pg_temp.plan('holder', '[{"name": "a", "workflow": "state.sql nested"}, {"name": "b", "workflow": "state.sql nested"}]');
SELECT stepwise.get_next_step(pg_temp.id('holder')) -> 'path';
CREATE FUNCTION pg_temp.nested(plan text, step text) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT p.id FROM stepwise.plan AS p WHERE p.parent_step_id = pg_temp.id(plan, step)
$$;
UPDATE stepwise.step SET status = 'awaiting_input' WHERE plan_id = pg_temp.nested('holder', 'a') AND name = 'x';
SELECT pg_temp.steps('holder');
SELECT pg_temp.look('holder');
UPDATE stepwise.step SET status = 'completed', result = '1' WHERE plan_id = pg_temp.nested('holder', 'a') AND name = 'x';
UPDATE stepwise.step SET status = 'skipped' WHERE plan_id = pg_temp.nested('holder', 'a') AND name = 'y';
SELECT pg_temp.steps('holder');
SELECT result FROM stepwise.step WHERE id = pg_temp.id('holder', 'a');
SELECT stepwise.get_next_step(pg_temp.id('holder')) -> 'path';
SELECT * FROM pg_temp.sound();
SELECT pg_temp.try($$SELECT pg_temp.move('holder', 'b', 'completed')$$, true);
SELECT pg_temp.try($$SELECT pg_temp.move('holder', 'b', 'awaiting_input')$$);
SELECT pg_temp.try($$UPDATE stepwise.step SET status = 'completed' WHERE root_id = pg_temp.id('holder') AND status = 'in_progress'$$);
UPDATE stepwise.step SET lease_expires_at = now() + interval '1 day' WHERE plan_id = pg_temp.nested('holder', 'b') AND name = 'x';
SELECT leases FROM stepwise.plan WHERE id = pg_temp.id('holder');
UPDATE stepwise.step SET status = 'skipped', message = 'by hand' WHERE id = pg_temp.id('holder', 'b');
SELECT p.status, p.message, s.name, s.status FROM stepwise.plan AS p JOIN stepwise.step AS s ON s.plan_id = p.id WHERE p.id = pg_temp.nested('holder', 'b') ORDER BY s.step_order;
SELECT pg_temp.look('holder');
SELECT * FROM pg_temp.sound();

-- ---------- transactions ----------

-- rolling back to a savepoint undoes everything: rows, counters, chain, checkpoints
SELECT pg_temp.plan('rolled back', pg_temp.names('a', 'b'));
BEGIN;
SELECT pg_temp.move('rolled back', 'a', 'in_progress');
SAVEPOINT s;
SELECT pg_temp.move('rolled back', 'a', 'awaiting_input');
SELECT pg_temp.move('rolled back', 'b', 'in_progress');
SAVEPOINT t;
SELECT pg_temp.move('rolled back', 'b', 'completed');
RELEASE t;
ROLLBACK TO s;
SELECT pg_temp.look('rolled back');
SELECT pg_temp.move('rolled back', 'a', 'completed');
COMMIT;
SELECT pg_temp.steps('rolled back');
SELECT pg_temp.trail('rolled back', 2);
BEGIN;
SELECT pg_temp.move('rolled back', 'b', 'skipped');
SELECT pg_temp.look('rolled back');
ROLLBACK;
SELECT pg_temp.look('rolled back');
SELECT * FROM pg_temp.sound();

-- the other isolation levels without concurrency: each statement sees the changes of the one before
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT pg_temp.plan('repeatable', pg_temp.names('a', 'b'));
SELECT pg_temp.move('repeatable', 'a', 'in_progress');
UPDATE stepwise.step SET status = 'in_progress' WHERE id = pg_temp.id('repeatable', 'b');
UPDATE stepwise.step SET status = 'completed' WHERE plan_id = pg_temp.id('repeatable');
COMMIT;
SELECT pg_temp.look('repeatable');
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT pg_temp.plan('serializable', pg_temp.names('a', 'b'));
SELECT pg_temp.move('serializable', 'a', 'in_progress');
SAVEPOINT s;
UPDATE stepwise.step SET status = 'skipped' WHERE plan_id = pg_temp.id('serializable');
ROLLBACK TO s;
UPDATE stepwise.step SET status = 'in_progress' WHERE id = pg_temp.id('serializable', 'b');
UPDATE stepwise.step SET status = 'completed' WHERE plan_id = pg_temp.id('serializable');
COMMIT;
SELECT pg_temp.look('serializable');
SELECT * FROM pg_temp.sound();

-- ---------- a role that may update ----------

-- it needs no right on other tables; the log has its name; the same changes are refused
CREATE ROLE regress_state_writer;
SELECT stepwise.grant_agent('regress_state_writer') IS NOT NULL, stepwise.add_member('regress_state_writer', 'default') IS NOT NULL;
GRANT UPDATE ON stepwise.step TO regress_state_writer;
SELECT pg_temp.plan('role', pg_temp.names('a', 'b'));
SELECT pg_temp.id('role') AS role \gset
SET ROLE regress_state_writer;
UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id = :'role';
UPDATE stepwise.step SET status = 'completed' WHERE plan_id = :'role' AND name = 'a';
\set VERBOSITY sqlstate
UPDATE stepwise.step SET status = 'pending' WHERE plan_id = :'role' AND name = 'a';
\set VERBOSITY default
DELETE FROM stepwise.step WHERE plan_id = :'role';
UPDATE stepwise.plan SET status = 'completed' WHERE id = :'role';
SELECT current_user;
RESET ROLE;
SELECT event, CASE actor WHEN current_user THEN 'the owner' ELSE actor END FROM stepwise.audit WHERE plan_id = :'role' ORDER BY id;
SELECT pg_temp.look('role');
SELECT stepwise.remove_member('regress_state_writer', 'default') IS NOT NULL;
DROP OWNED BY regress_state_writer;
DROP ROLE regress_state_writer;
SELECT * FROM pg_temp.sound();

-- ---------- every object has its comment ----------

SELECT pg_describe_object(d.classid, d.objid, 0)
FROM pg_depend AS d JOIN pg_extension AS e ON e.extname = 'pg_stepwise' AND d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND d.deptype = 'e'
WHERE obj_description(d.objid, d.classid::regclass::name) IS NULL
  AND NOT (d.classid = 'pg_type'::regclass AND (SELECT t.typtype = 'c' OR t.typelem <> 0 FROM pg_type AS t WHERE t.oid = d.objid))
ORDER BY 1;

-- ---------- ten thousand at once ----------

SELECT pg_temp.plan('many', (SELECT jsonb_agg(jsonb_build_object('name', 's' || n)) FROM generate_series(1, 10000) AS n));
UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id = pg_temp.id('many');
SELECT count(DISTINCT execution_order), min(execution_order), max(execution_order), bool_and(execution_order = step_order)
FROM stepwise.step WHERE plan_id = pg_temp.id('many');
UPDATE stepwise.step SET status = 'completed', result = to_jsonb(step_order) WHERE plan_id = pg_temp.id('many') AND step_order < 10000;
SELECT pg_temp.look('many');
SELECT pg_temp.try($$UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id = pg_temp.id('many') AND name = 's1'$$);
UPDATE stepwise.step SET status = 'completed' WHERE plan_id = pg_temp.id('many') AND status <> 'completed';
SELECT pg_temp.look('many');
SELECT event, detail ->> 'from', detail ->> 'to', count(*) FROM stepwise.audit WHERE plan_id = pg_temp.id('many') GROUP BY 1, 2, 3 ORDER BY min(id);
SELECT completed, next_order, audit_entries FROM stepwise.plan WHERE id = pg_temp.id('many');
SELECT stepwise.verify_audit(pg_temp.id('many')) - 'head' - 'planId';

-- remove them, so that later tests stay fast
CALL stepwise.purge('infinity');
SELECT count(*) FROM stepwise.step WHERE name = 's10000';
