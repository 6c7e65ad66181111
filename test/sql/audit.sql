-- The audit log has one entry per change, and the entries form a chain. Nobody can write it by hand. verify_audit detects any change
-- that bypasses the guards. Retention is the only way to remove entries.

\pset format unaligned
\pset tuples_only on
\set ECHO none
\i test/sound.sql
\i test/plain.sql
\set ECHO all
SET client_min_messages = warning;
SET test.goal = 'audit.sql';

-- Remove the finished plans of other tests, which would be counted below.
CALL stepwise.purge('infinity');

-- The answer of verify_audit, without values that differ between runs.
CREATE FUNCTION pg_temp.verify(plan text) RETURNS jsonb LANGUAGE sql AS $$
    SELECT stepwise.verify_audit(pg_temp.id(plan)) - 'planId' - 'head'
$$;

-- ---------- the chain ----------

-- With this trigger each call writes a row of its own; entries.sql is about rows of several calls.
CREATE FUNCTION pg_temp.watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER watch AFTER INSERT ON stepwise.audit_log FOR EACH ROW EXECUTE FUNCTION pg_temp.watch();
-- a plan with a history: six entries, then some more
SELECT stepwise.create_plan('watched', 'audit.sql', '[{"name": "a"}, {"name": "b"}]', session_id => 'session 1') ->> 'status';
UPDATE stepwise.step SET status = 'in_progress' WHERE id = pg_temp.id('watched', 'a');
UPDATE stepwise.step SET status = 'completed', result = '{"secret": "a long result", "n": 1.50}' WHERE id = pg_temp.id('watched', 'a');
UPDATE stepwise.step SET status = 'failed', message = 'broken' WHERE id = pg_temp.id('watched', 'b');
SELECT a.id, a.event, s.name, a.actor = current_user AS me, a.session_id, length(a.hash), a.detail - 'resultDigest' AS detail
FROM stepwise.audit AS a LEFT JOIN stepwise.step AS s ON s.id = a.step_id WHERE a.plan_id = pg_temp.id('watched') ORDER BY a.id;
-- times are clock time: they rise, also within a transaction
SELECT bool_and(at >= before), count(DISTINCT at) > 1 FROM (SELECT at, lag(at) OVER (ORDER BY id) AS before FROM stepwise.audit WHERE plan_id = pg_temp.id('watched')) AS pairs;
-- the log has the digest of a result, not the result; anybody can compute it
SELECT detail ->> 'resultDigest' = encode(sha256(convert_to(s.result::text, 'UTF8')), 'hex') AS digest,
       (SELECT count(*) FROM stepwise.audit AS x WHERE x.plan_id = pg_temp.id('watched') AND x::text LIKE '%secret%') AS results_in_the_log
FROM stepwise.audit AS a JOIN stepwise.step AS s ON s.id = a.step_id WHERE a.event = 'step_completed' AND a.plan_id = pg_temp.id('watched');
-- a step that completed without a result has none, which is not the same as the result null
SELECT stepwise.create_plan('null', 'audit.sql', '[{"name": "a"}, {"name": "b"}]') ->> 'status';
UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id = pg_temp.id('null');
UPDATE stepwise.step SET status = 'completed', result = CASE name WHEN 'b' THEN 'null'::jsonb END WHERE plan_id = pg_temp.id('null');
SELECT s.name, s.result IS NULL, a.detail -> 'resultDigest' = 'null' FROM stepwise.audit AS a JOIN stepwise.step AS s ON s.id = a.step_id
WHERE a.event = 'step_completed' AND a.plan_id = pg_temp.id('null') ORDER BY a.id;
SELECT pg_temp.verify('null');

DROP TRIGGER watch ON stepwise.audit_log;

-- verified: the head is the newest hash, is what audit_head says, and changes with every entry
SELECT v - 'planId' - 'head', v ->> 'head' = h ->> 'head', v -> 'entries' = h -> 'entries',
       h ->> 'head' = (SELECT encode(hash, 'hex') FROM stepwise.audit WHERE plan_id = pg_temp.id('watched') ORDER BY id DESC LIMIT 1)
FROM stepwise.verify_audit(pg_temp.id('watched')) AS v, stepwise.audit_head(pg_temp.id('watched')) AS h;
SELECT stepwise.audit_head(pg_temp.id('watched')) ->> 'head' AS head \gset
SELECT count(DISTINCT hash) = count(*) FROM stepwise.audit WHERE plan_id = pg_temp.id('watched');
SELECT pg_temp.try($$SELECT stepwise.verify_audit('00000000-0000-7000-8000-000000000000')$$), pg_temp.try($$SELECT stepwise.audit_head('00000000-0000-7000-8000-000000000000')$$);

-- the hash as documented, computed in SQL: the version, whether it is the first of its row, the hash before it, the columns of the
-- row if it is the first, and the body; the bodies are taken out by SQL too
CREATE FUNCTION pg_temp.field(value text) RETURNS bytea LANGUAGE sql AS $$
    SELECT coalesce(int4send(octet_length(convert_to(value, 'UTF8'))) || convert_to(value, 'UTF8'), '\xffffffff')
$$;
CREATE FUNCTION pg_temp.bodies(entries bytea) RETURNS TABLE (n int, body bytea, hash bytea) LANGUAGE plpgsql AS $$
DECLARE
    place int := length(entries);
    size int;
BEGIN
    n := 0;
    WHILE place > 0 LOOP
        size := get_byte(entries, place - 1);
        place := place - 1;
        IF size = 255 THEN
            size := ('x' || encode(substr(entries, place - 3, 4), 'hex'))::bit(32)::int;
            place := place - 4;
        END IF;
        hash := substr(entries, place - 31, 32);
        body := substr(entries, place - 31 - size, size);
        place := place - 32 - size;
        RETURN NEXT;
        n := n + 1;
    END LOOP;
END $$;
CREATE FUNCTION pg_temp.as_documented(plan uuid) RETURNS TABLE (entries bigint, fit boolean) LANGUAGE sql AS $$
    SELECT count(*), bool_and(hash = sha256('\x02' || CASE WHEN n > 0 THEN '\x00' || before ELSE '\x01' || before || pg_temp.field(tenant)
        || coalesce('\x01' || uuid_send(plan_id), decode(repeat('00', 17), 'hex')) || int8send(id)
        || int8send((extract(epoch FROM at - '2000-01-01 00:00:00+00') * 1000000)::bigint) || pg_temp.field(actor) || pg_temp.field(session_id) END || body))
    FROM (SELECT *, coalesce(lag(hash) OVER (ORDER BY id, n), decode(repeat('00', 32), 'hex')) AS before
          FROM stepwise.audit_log, pg_temp.bodies(entries) WHERE plan_id IS NOT DISTINCT FROM plan AND (plan IS NOT NULL OR tenant = 'default')) AS chain
$$;
SELECT * FROM pg_temp.as_documented(pg_temp.id('watched'));
-- the view shows what is stored
SELECT count(*), bool_and(a.hash = b.hash) FROM stepwise.audit_log AS l, pg_temp.bodies(l.entries) AS b, stepwise.audit AS a
WHERE l.plan_id = pg_temp.id('watched') AND a.plan_id = l.plan_id AND a.id = l.id + b.n AND a.batch = l.id;

-- ---------- by hand: refused, to everybody ----------

SELECT pg_temp.try('INSERT INTO stepwise.audit_log SELECT 99, at, plan_id, tenant, actor, session_id, entries FROM stepwise.audit_log LIMIT 1', true);
SELECT pg_temp.try($$UPDATE stepwise.audit_log SET actor = 'x'$$);
SELECT pg_temp.try('UPDATE stepwise.audit_log SET at = at');
SELECT pg_temp.try('DELETE FROM stepwise.audit_log');
SELECT pg_temp.try('TRUNCATE stepwise.audit_log');
SELECT pg_temp.try('TRUNCATE stepwise.audit_log, stepwise.plan, stepwise.step CASCADE');
\copy stepwise.audit_log (tenant, id, at, actor, entries) FROM STDIN
default	1	2020-01-01	x	\\x00
\.
-- through the view too
SELECT pg_temp.try('INSERT INTO stepwise.audit SELECT * FROM stepwise.audit LIMIT 1', true);
SELECT pg_temp.try($$UPDATE stepwise.audit SET event = 'step_failed'$$);
SELECT pg_temp.try('UPDATE stepwise.audit SET at = at');
SELECT pg_temp.try('DELETE FROM stepwise.audit');
\copy stepwise.audit (tenant, id, at, event, actor, detail, hash) FROM STDIN
default	1	2020-01-01	x	x	{}	\\x00
\.
-- also to a table owner that is no superuser, even after resetting the flag that says whether the engine was used
CREATE ROLE regress_audit_owner;
BEGIN;
GRANT USAGE ON SCHEMA stepwise TO regress_audit_owner;
ALTER TABLE stepwise.audit_log OWNER TO regress_audit_owner;
ALTER TABLE stepwise.engine OWNER TO regress_audit_owner;
SET LOCAL ROLE regress_audit_owner;
SELECT pg_temp.try('UPDATE stepwise.audit_log SET at = at'), pg_temp.try('DELETE FROM stepwise.audit_log'), pg_temp.try('TRUNCATE stepwise.audit_log'),
       pg_temp.try('INSERT INTO stepwise.audit_log SELECT * FROM stepwise.audit_log LIMIT 1');
SELECT pg_temp.try('UPDATE stepwise.engine SET used = false'), pg_temp.try('DELETE FROM stepwise.engine'), pg_temp.try('TRUNCATE stepwise.engine');
ROLLBACK;
DROP ROLE regress_audit_owner;
SELECT stepwise.audit_head(pg_temp.id('watched')) ->> 'head' = :'head';

-- ---------- changes that bypass the guards are detected ----------

-- Disable the guards as a superuser, make a change, and show the answer of verify_audit. All of it is rolled back.
CREATE FUNCTION pg_temp.tamper(statement text, plan text = 'watched') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    BEGIN
        ALTER TABLE stepwise.audit_log DISABLE TRIGGER USER;
        ALTER TABLE stepwise.step DISABLE TRIGGER USER;
        ALTER TABLE stepwise.plan DISABLE TRIGGER USER;
        EXECUTE replace(statement, '$plan', quote_literal(pg_temp.id(plan)));
        answer := pg_temp.verify(plan);
        RAISE EXCEPTION USING errcode = 'XXXXX';
    EXCEPTION WHEN SQLSTATE 'XXXXX' THEN
        RETURN answer;
    END;
END $$;

-- nothing done, nothing found
SELECT pg_temp.tamper('SELECT 1');
-- the rows, one per call
SELECT l.id, string_agg(a.event, ', ' ORDER BY a.id) FROM stepwise.audit_log AS l JOIN stepwise.audit AS a ON a.plan_id = l.plan_id AND a.batch = l.id
WHERE l.plan_id = pg_temp.id('watched') GROUP BY l.id ORDER BY l.id;
-- a changed row, by each of its columns
SELECT column_name || ': ' || pg_temp.tamper(format('UPDATE stepwise.audit_log SET %I = %s WHERE plan_id = $plan AND id = 2', column_name, value))
FROM (VALUES (1, 'at', $$at + interval '1 microsecond'$$), (2, 'actor', $$'somebody'$$), (3, 'session_id', 'NULL'), (4, 'session_id', $$''$$),
             (5, 'entries', $$''$$), (6, 'entries', $$'x'$$), (7, 'entries', $$'\x00' || entries$$), (8, 'entries', $$entries || entries$$),
             (9, 'entries', $$substr(entries, 2)$$), (10, 'id', '3'), (11, 'id', '-2'),
             (12, 'plan_id', $$'00000000-0000-7000-8000-000000000000'$$), (13, 'tenant', $$'other'$$)) AS change (n, column_name, value) ORDER BY n;
-- Change one of the entries of a row, counted from 0.
CREATE FUNCTION pg_temp.packed(bodies bytea[], hashes bytea[]) RETURNS bytea LANGUAGE sql AS $$
    SELECT string_agg(body || hash || set_byte('\x00', 0, length(body)), '' ORDER BY n DESC) FROM unnest(bodies, hashes) WITH ORDINALITY AS e (body, hash, n)
$$;
CREATE FUNCTION pg_temp.changed(entries bytea, which int, byte int, value int) RETURNS bytea LANGUAGE sql AS $$
    SELECT pg_temp.packed(array_agg(CASE WHEN n = which THEN set_byte(body, byte, value) ELSE body END ORDER BY n), array_agg(hash ORDER BY n))
    FROM pg_temp.bodies(entries)
$$;
-- its event (the first byte), another flag, the step, the states
SELECT pg_temp.tamper(format('UPDATE stepwise.audit_log SET entries = pg_temp.changed(entries, %s, %s, %s) WHERE plan_id = $plan AND id = 2', entry, byte, value))
FROM (VALUES (0, 0, 4), (1, 0, 4), (1, 0, 99), (0, 1, 255), (0, 5, 7), (0, 18, 3)) AS change (entry, byte, value);
-- any bit of a stored row is noticed, and it is an entry of that row
CREATE FUNCTION pg_temp.flip(plan uuid, batch bigint, n int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found jsonb;
BEGIN
    BEGIN
        SET LOCAL session_replication_role = replica;
        UPDATE stepwise.audit_log SET entries = set_bit(entries, n, 1 - get_bit(entries, n)) WHERE plan_id = plan AND id = batch;
        found := stepwise.verify_audit(plan) -> 'firstInvalid';
        RAISE EXCEPTION USING errcode = 'XXXXX';
    EXCEPTION WHEN SQLSTATE 'XXXXX' THEN
        RETURN concat_ws(' ', found -> 'id', found ->> 'reason');
    END;
END $$;
SELECT l.id, f.found, count(*) > 250 FROM stepwise.audit_log AS l, generate_series(0, 8 * length(l.entries) - 1) AS n, pg_temp.flip(l.plan_id, l.id, n) AS f (found)
WHERE l.plan_id = pg_temp.id('watched') AND l.id IN (2, 4) AND f.found NOT LIKE '%cannot be read' GROUP BY l.id, f.found ORDER BY l.id, f.found;
SELECT DISTINCT l.id, f.found FROM stepwise.audit_log AS l, generate_series(0, 8 * length(l.entries) - 1) AS n, pg_temp.flip(l.plan_id, l.id, n) AS f (found)
WHERE l.plan_id = pg_temp.id('watched') AND l.id IN (2, 4) AND f.found LIKE '%cannot be read' ORDER BY l.id, f.found;
SELECT count(*) FROM stepwise.audit_log AS l, generate_series(0, 8 * length(l.entries) - 1) AS n, pg_temp.flip(l.plan_id, l.id, n) AS f (found)
WHERE l.plan_id = pg_temp.id('watched') AND f.found = '';
-- the first, and the last
SELECT pg_temp.tamper($$UPDATE stepwise.audit_log SET actor = 'x' WHERE plan_id = $plan AND id = 1$$);
SELECT pg_temp.tamper($$UPDATE stepwise.audit_log SET entries = pg_temp.changed(entries, 1, 0, 1) WHERE plan_id = $plan AND id = 5$$);
-- removed: the first, one in the middle, the last, the last two, all; removed and the others moved up
SELECT pg_temp.tamper('DELETE FROM stepwise.audit_log WHERE plan_id = $plan AND id = 1');
SELECT pg_temp.tamper('DELETE FROM stepwise.audit_log WHERE plan_id = $plan AND id = 4');
SELECT pg_temp.tamper('DELETE FROM stepwise.audit_log WHERE plan_id = $plan AND id = 5');
SELECT pg_temp.tamper('DELETE FROM stepwise.audit_log WHERE plan_id = $plan AND id > 3');
SELECT pg_temp.tamper('DELETE FROM stepwise.audit_log WHERE plan_id = $plan');
SELECT pg_temp.tamper('DELETE FROM stepwise.audit_log WHERE plan_id = $plan AND id = 4; UPDATE stepwise.audit_log SET id = 4 WHERE plan_id = $plan AND id = 5');
SELECT pg_temp.tamper('DELETE FROM stepwise.audit_log WHERE plan_id = $plan AND id = 5; UPDATE stepwise.plan SET audit_entries = 4 WHERE id = $plan');
-- one entry of a row removed: the first, the last
SELECT pg_temp.tamper(format('UPDATE stepwise.audit_log SET entries = (SELECT pg_temp.packed(array_agg(body), array_agg(hash)) FROM pg_temp.bodies(entries) WHERE n = %s) WHERE plan_id = $plan AND id = 2', n))
FROM generate_series(0, 1) AS n;
SELECT pg_temp.tamper('UPDATE stepwise.audit_log SET entries = (SELECT pg_temp.packed(array_agg(body), array_agg(hash)) FROM pg_temp.bodies(entries) WHERE n = 0) WHERE plan_id = $plan AND id = 5');
-- a row split, two rows joined
SELECT pg_temp.tamper('INSERT INTO stepwise.audit_log SELECT 3, at, plan_id, tenant, actor, session_id, (SELECT pg_temp.packed(array_agg(body), array_agg(hash)) FROM pg_temp.bodies(entries) WHERE n = 1)
    FROM stepwise.audit_log WHERE plan_id = $plan AND id = 2;
    UPDATE stepwise.audit_log SET entries = (SELECT pg_temp.packed(array_agg(body), array_agg(hash)) FROM pg_temp.bodies(entries) WHERE n = 0) WHERE plan_id = $plan AND id = 2');
SELECT pg_temp.tamper('UPDATE stepwise.audit_log AS l SET entries = m.entries || l.entries FROM stepwise.audit_log AS m WHERE l.plan_id = $plan AND l.id = 4 AND m.plan_id = $plan AND m.id = 5;
    DELETE FROM stepwise.audit_log WHERE plan_id = $plan AND id = 5');
-- inserted: before all, at the end, in the middle with the others moved on; one of another plan; one without entries
SELECT pg_temp.tamper(format('INSERT INTO stepwise.audit_log SELECT %s, at, plan_id, tenant, actor, session_id, entries FROM stepwise.audit_log WHERE plan_id = $plan AND id = 2', id))
FROM unnest(ARRAY[0, -5, 7, 100]) AS id;
SELECT pg_temp.tamper('UPDATE stepwise.audit_log SET id = id + 100 WHERE plan_id = $plan AND id > 3; UPDATE stepwise.audit_log SET id = id - 98 WHERE plan_id = $plan AND id > 100;
    INSERT INTO stepwise.audit_log SELECT 4, at, plan_id, tenant, actor, session_id, entries FROM stepwise.audit_log WHERE plan_id = $plan AND id = 2');
SELECT pg_temp.tamper($$UPDATE stepwise.audit_log SET plan_id = $plan, id = 7 WHERE plan_id = pg_temp.id('null') AND id = 2$$);
SELECT pg_temp.tamper($$INSERT INTO stepwise.audit_log SELECT 3, at, plan_id, tenant, actor, session_id, '' FROM stepwise.audit_log WHERE plan_id = $plan AND id = 2$$);
-- two entries of a row swapped, with and without their hashes
SELECT pg_temp.tamper('UPDATE stepwise.audit_log SET entries = (SELECT pg_temp.packed(array_agg(body ORDER BY n DESC), array_agg(hash ORDER BY n DESC)) FROM pg_temp.bodies(entries)) WHERE plan_id = $plan AND id = 2');
SELECT pg_temp.tamper('UPDATE stepwise.audit_log SET entries = (SELECT pg_temp.packed(array_agg(body ORDER BY n DESC), array_agg(hash ORDER BY n)) FROM pg_temp.bodies(entries)) WHERE plan_id = $plan AND id = 2');
-- bytes that are no entries are an error in the view, too
CREATE FUNCTION pg_temp.read_changed(change text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL session_replication_role = replica;
    EXECUTE format('UPDATE stepwise.audit_log SET entries = %s WHERE plan_id = pg_temp.id(''watched'') AND id = 2', change);
    PERFORM * FROM stepwise.audit WHERE plan_id = pg_temp.id('watched');
    RAISE EXCEPTION USING errcode = 'XXXXX';
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate || ' ' || sqlerrm;
END $$;
SELECT pg_temp.read_changed($$entries || '\x00'$$), pg_temp.read_changed('pg_temp.changed(entries, 1, 0, 99)'), pg_temp.read_changed('pg_temp.changed(entries, 0, 1, 31)');

-- the chain is valid, but does not match the plan
SELECT pg_temp.tamper($$UPDATE stepwise.plan SET audit_head = sha256('x') WHERE id = $plan$$);
SELECT pg_temp.tamper('UPDATE stepwise.plan SET audit_entries = 7 WHERE id = $plan');
-- a result that was changed after its step had completed, or taken away; and the step itself
SELECT pg_temp.tamper($$UPDATE stepwise.step SET result = '{"secret": "another result", "n": 1.50}' WHERE id = pg_temp.id('watched', 'a')$$);
SELECT pg_temp.tamper($$UPDATE stepwise.step SET result = '{"secret": "a long result", "n": 1.5}' WHERE id = pg_temp.id('watched', 'a')$$);
SELECT pg_temp.tamper($$UPDATE stepwise.step SET result = NULL WHERE id = pg_temp.id('watched', 'a')$$);
SELECT pg_temp.tamper($$UPDATE stepwise.step SET result = NULL WHERE id = pg_temp.id('null', 'b')$$, 'null');
SELECT pg_temp.tamper($$UPDATE stepwise.step SET result = '1' WHERE id = pg_temp.id('null', 'a')$$, 'null');
SELECT pg_temp.tamper($$DELETE FROM stepwise.step WHERE id = pg_temp.id('watched', 'a')$$);
-- a chain that was computed anew as a whole is valid; only a head stored elsewhere detects that
SELECT pg_temp.tamper($$DELETE FROM stepwise.audit_log WHERE plan_id = $plan AND id = 5;
    UPDATE stepwise.plan SET audit_entries = 4, audit_head = (SELECT hash FROM stepwise.audit WHERE plan_id = $plan AND id = 4) WHERE id = $plan$$);
SELECT stepwise.audit_head(pg_temp.id('watched')) ->> 'head' = :'head', pg_temp.verify('watched') AS untouched;

-- a chain that is longer than one batch of reading; the wrong entry is in a later batch
SELECT stepwise.create_plan('long', 'audit.sql', (SELECT jsonb_agg(jsonb_build_object('name', 's' || n)) FROM generate_series(1, 1500) AS n)) ->> 'status';
UPDATE stepwise.step SET status = 'in_progress' WHERE plan_id = pg_temp.id('long');
UPDATE stepwise.step SET status = 'completed' WHERE plan_id = pg_temp.id('long') AND step_order > 1;
SELECT pg_temp.verify('long');
-- its rows have many entries, but none fills more than half a page
SELECT count(*) BETWEEN 30 AND 100, max(pg_column_size(entries)) < 4000 FROM stepwise.audit_log WHERE plan_id = pg_temp.id('long');
SELECT id AS late FROM stepwise.audit_log WHERE plan_id = pg_temp.id('long') AND id > 2345 ORDER BY id LIMIT 1 \gset
SELECT (v #>> '{firstInvalid,id}')::int = :late + 3, v #>> '{firstInvalid,event}', v #>> '{firstInvalid,reason}'
FROM (SELECT pg_temp.tamper(format('UPDATE stepwise.audit_log SET entries = pg_temp.changed(entries, 3, 0, 5) WHERE plan_id = $plan AND id = %s', :late), 'long')::jsonb) AS t (v);
SELECT (v #>> '{firstInvalid,id}')::int > 2000, v #>> '{firstInvalid,reason}'
FROM (SELECT pg_temp.tamper('DELETE FROM stepwise.audit_log WHERE plan_id = $plan AND id BETWEEN 1000 AND 2000', 'long')::jsonb) AS t (v);

-- a tree: valid only if all of it is
SELECT stepwise.define_workflow('{"name": "audit.sql nested", "steps": [{"name": "x"}]}') -> 'version';
SELECT stepwise.create_plan('tree', 'audit.sql', '[{"name": "a", "workflow": "audit.sql nested"}, {"name": "b"}]') ->> 'status';
SELECT stepwise.get_next_step(pg_temp.id('tree')) -> 'path';
SELECT id AS nested FROM stepwise.plan WHERE parent_step_id = pg_temp.id('tree', 'a') \gset
CREATE FUNCTION pg_temp.verify_tree() RETURNS text LANGUAGE sql AS $$
    SELECT format('%s %s, nested %s', v -> 'valid', v -> 'entries', (SELECT jsonb_agg(n - 'planId' - 'head') FROM jsonb_array_elements(v -> 'nested') AS n))
    FROM stepwise.verify_audit(pg_temp.id('tree'), true) AS v
$$;
SELECT pg_temp.verify_tree();
BEGIN;
ALTER TABLE stepwise.audit_log DISABLE TRIGGER USER;
UPDATE stepwise.audit_log SET actor = 'x' WHERE plan_id = :'nested' AND id = 1;
SELECT pg_temp.verify('tree');
SELECT pg_temp.verify_tree();
ROLLBACK;

-- who acted, and in which session
CREATE ROLE "regress audit agent";
SELECT stepwise.grant_agent('"regress audit agent"') IS NOT NULL, stepwise.add_member('"regress audit agent"', 'default') IS NOT NULL;
SELECT stepwise.create_plan('who', 'audit.sql', '[{"name": "a"}, {"name": "b"}]', session_id => 's1') ->> 'planId' AS who \gset
SET ROLE "regress audit agent";
SELECT stepwise.get_next_step(:'who', worker => 'robot', session_id => 's2') ->> 'name';
RESET ROLE;
SELECT stepwise.submit_step_result(pg_temp.id('who', 'a'), '1') ->> 'stepStatus';
SELECT event, replace(actor, current_user, 'the owner'), session_id FROM stepwise.audit WHERE plan_id = :'who' ORDER BY id;
SELECT stepwise.remove_member('"regress audit agent"', 'default') IS NOT NULL;
DROP OWNED BY "regress audit agent";
DROP ROLE "regress audit agent";
-- dropping or renaming a role does not break the chain
SELECT pg_temp.verify('who');
SELECT * FROM pg_temp.sound();

-- ---------- retention ----------

-- finished plans only, and only those from before the time
SELECT count(*), count(*) FILTER (WHERE completed_at IS NOT NULL) FROM stepwise.plan WHERE goal = 'audit.sql';
SELECT pg_temp.try('CALL stepwise.purge(NULL)'), pg_temp.try($$CALL stepwise.purge('infinity', 0)$$), pg_temp.try($$CALL stepwise.purge('infinity', -1)$$);
SET client_min_messages = notice;
CALL stepwise.purge(now() - interval '1 hour');
CALL stepwise.purge('-infinity');
CALL stepwise.purge('infinity');
SELECT name, status FROM stepwise.plan WHERE goal = 'audit.sql' ORDER BY id;
CALL stepwise.purge('infinity');
SELECT pg_temp.id('watched') IS NULL;

-- with all rows that belong to them, also nested plans; in batches; open plans stay
SELECT stepwise.log_skill_execution('a skill', 'started', 'audit.sql session') IS NOT NULL;
SELECT stepwise.create_plan('purged', 'audit.sql', '[{"name": "a", "workflow": "audit.sql nested"}, {"name": "b", "dependsOn": ["a"]}]', session_id => 'audit.sql session', outputs => '{"o": "${steps.b.outputs}"}',
    branching_conditions => '[{"afterStepOrder": 1, "conditionExpression": "outcome == \"failure\"", "ifTrueAction": "fail"}]') ->> 'status';
SELECT stepwise.get_next_step(pg_temp.id('purged')) ->> 'name';
SELECT stepwise.store_artifact(pg_temp.id('purged'), 'an artifact', 'content') IS NOT NULL;
UPDATE stepwise.step SET status = 'awaiting_input' WHERE root_id = pg_temp.id('purged') AND name = 'x';
SELECT id AS purged FROM stepwise.plan WHERE id = pg_temp.id('purged') \gset
SELECT id AS purged_nested FROM stepwise.plan WHERE parent_step_id = pg_temp.id('purged', 'a') \gset
CREATE FUNCTION pg_temp.left_of(VARIADIC plans uuid[]) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('%s %s', n, c) FROM (VALUES
        ('plan', (SELECT count(*) FROM stepwise.plan WHERE id = ANY (plans))),
        ('plan_detail', (SELECT count(*) FROM stepwise.plan_detail WHERE plan_id = ANY (plans))),
        ('step', (SELECT count(*) FROM stepwise.step WHERE plan_id = ANY (plans))),
        ('dependency', (SELECT count(*) FROM stepwise.dependency WHERE plan_id = ANY (plans))),
        ('branching_condition', (SELECT count(*) FROM stepwise.branching_condition WHERE plan_id = ANY (plans))),
        ('checkpoint', (SELECT count(*) FROM stepwise.checkpoint WHERE plan_id = ANY (plans))),
        ('artifact', (SELECT count(*) FROM stepwise.artifact WHERE plan_id = ANY (plans))),
        ('skill_execution', (SELECT count(*) FROM stepwise.skill_execution WHERE plan_id = ANY (plans))),
        ('audit', (SELECT count(*) FROM stepwise.audit WHERE plan_id = ANY (plans)))) AS t (n, c) WHERE c > 0
$$;
SELECT string_agg(regexp_replace(t, 'audit .*', 'audit'), ', ') FROM pg_temp.left_of(:'purged', :'purged_nested') AS t;
CALL stepwise.purge('infinity');
SELECT stepwise.cancel_plan(:'purged') ->> 'planStatus';
CALL stepwise.purge('infinity');
SELECT * FROM pg_temp.left_of(:'purged', :'purged_nested');
SELECT skill_name, plan_id FROM stepwise.skill_execution WHERE session_id = 'audit.sql session';

SELECT count(*) FROM generate_series(1, 7) AS n, stepwise.create_plan('batch ' || n, 'audit.sql', '[{"name": "a"}]');
UPDATE stepwise.step SET status = 'skipped' WHERE plan_id IN (SELECT id FROM stepwise.plan WHERE name LIKE 'batch%');
CALL stepwise.purge('infinity', 3);
-- each batch writes one entry to the chain of the tenant
SELECT id, event, plan_id, detail - 'before' FROM stepwise.audit WHERE plan_id IS NULL AND tenant = 'default' ORDER BY id DESC LIMIT 3 \g (format=aligned) | sed 's/^ *[0-9]* |/ n |/'
SELECT count(*) = max(id), count(DISTINCT id) = count(*), min(id) FROM stepwise.audit WHERE plan_id IS NULL AND tenant = 'default';
SELECT entries > 3, fit FROM pg_temp.as_documented(NULL);

-- inside a transaction block it does not commit
SELECT count(*) FROM generate_series(1, 4) AS n, stepwise.create_plan('block ' || n, 'audit.sql', '[{"name": "a"}]');
BEGIN;
UPDATE stepwise.step SET status = 'skipped' WHERE plan_id IN (SELECT id FROM stepwise.plan WHERE name LIKE 'block%');
CALL stepwise.purge('infinity', 1);
SELECT count(*) FROM stepwise.plan WHERE name LIKE 'block%';
ROLLBACK;
SELECT count(*), min(status) FROM stepwise.plan WHERE name LIKE 'block%';
-- called by a procedure, which may or may not commit
DO $$
BEGIN
    UPDATE stepwise.step SET status = 'skipped' WHERE plan_id IN (SELECT id FROM stepwise.plan WHERE name LIKE 'block%');
    CALL stepwise.purge('infinity', 1);
END $$;
SELECT count(*) FROM stepwise.plan WHERE name LIKE 'block%';
SELECT current_user = session_user;

-- a procedure that fails after a savepoint does not corrupt the memory of the session
CREATE FUNCTION pg_temp.memory(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    total int;
BEGIN
    SELECT sum(x) INTO total FROM generate_series(1, n) AS x;
    RETURN total + CASE WHEN n > 1 THEN pg_temp.memory(n - 1) ELSE 0 END;
END $$;
\set VERBOSITY terse
BEGIN READ ONLY;
SAVEPOINT one;
CALL stepwise.purge('infinity');
ROLLBACK TO one;
SELECT pg_temp.memory(20);
SAVEPOINT two;
CALL stepwise.purge('infinity');
ROLLBACK;
\set VERBOSITY default
SELECT pg_temp.memory(20);
-- in a block that catches errors it runs, but does not commit
DO $$
BEGIN
    CALL stepwise.purge('infinity', 1);
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING '%', SQLERRM;
END $$;

-- of every tenant; each has its own log
BEGIN;
SELECT stepwise.enter_tenant('audit.sql tenant');
SELECT stepwise.create_plan('elsewhere', 'audit.sql', '[{"name": "a"}]') ->> 'status';
UPDATE stepwise.step SET status = 'skipped' WHERE plan_id = pg_temp.id('elsewhere');
COMMIT;
CALL stepwise.purge('infinity');
SELECT id, event, detail - 'before' FROM stepwise.audit WHERE tenant = 'audit.sql tenant';
-- nobody else may
CREATE ROLE regress_audit_agent;
SELECT stepwise.grant_agent('regress_audit_agent') IS NOT NULL, stepwise.add_member('regress_audit_agent', 'default') IS NOT NULL;
SET ROLE regress_audit_agent;
CALL stepwise.purge('infinity');
RESET ROLE;
SELECT stepwise.remove_member('regress_audit_agent', 'default') IS NOT NULL;
DROP OWNED BY regress_audit_agent;
DROP ROLE regress_audit_agent;
SELECT * FROM pg_temp.sound();
