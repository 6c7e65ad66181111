-- The audit log is stored as one row per call and plan, and shown entry by entry. (Rows of several calls are in test/t/log_rows.pl, since
-- they depend on the room in a page.) What is stored is shown exactly, whatever its size and characters. Conditions on the plan reach the
-- index, and a role sees the entries of its own tenant only. Entries are written when a
-- call saves, and share the fate of what they tell about: savepoints, errors, tools that call the engine.

\pset format unaligned
\pset tuples_only on
\set ECHO none
\i test/sound.sql
\i test/plain.sql
\set ECHO all
SET client_min_messages = warning;
SET test.goal = 'entries.sql';

-- The entries of a plan, with the rows in which they are.
CREATE FUNCTION pg_temp.shown(plan text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a.id, 'in', a.batch, a.event, s.name, (a.detail - 'resultDigest')::text) FROM stepwise.audit AS a LEFT JOIN stepwise.step AS s ON s.id = a.step_id
    WHERE a.plan_id = pg_temp.id(plan) ORDER BY a.id
$$;

-- ---------- one row per call ----------

-- this trigger makes each call write a row of its own
CREATE FUNCTION pg_temp.watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER watch AFTER INSERT ON stepwise.audit_log FOR EACH ROW EXECUTE FUNCTION pg_temp.watch();

SELECT stepwise.create_plan('calls', 'entries.sql', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]') ->> 'status';
SELECT stepwise.get_next_step(pg_temp.id('calls'), lease => '1 hour', worker => 'anna') ->> 'name';
SELECT stepwise.advance(pg_temp.id('calls', 'a'), '{"n": 1}', worker => 'anna') #>> '{next,name}';
SELECT stepwise.release_step(pg_temp.id('calls', 'b'), 1) ->> 'stepStatus';
SELECT stepwise.skip_step(pg_temp.id('calls', 'b'), 'no need') ->> 'stepStatus';
SELECT stepwise.fail_step(pg_temp.id('calls', 'c'), 'it broke', code => 'EBROKEN') ->> 'stepStatus';
SELECT regexp_replace(x, '"leaseExpiresAt": "[^"]*"', '"leaseExpiresAt": …') FROM pg_temp.shown('calls') AS x;
SELECT id, actor = concat_ws('/', current_user, CASE WHEN id IN (2, 4) THEN 'anna' END), session_id FROM stepwise.audit_log WHERE plan_id = pg_temp.id('calls') ORDER BY id;
-- small rows: a claim, a completed step with a claim
SELECT id, length(entries) FROM stepwise.audit_log WHERE plan_id = pg_temp.id('calls') AND id IN (2, 4) ORDER BY id;
DROP TRIGGER watch ON stepwise.audit_log;

-- ---------- what is stored is shown ----------

-- entries of every size, with every kind of value
SELECT stepwise.create_plan('kinds', 'entries.sql', '[{"name": "a"}]') ->> 'status';
SELECT count(stepwise.set_variables(pg_temp.id('kinds'), jsonb_build_object('v' || n, repeat('x', n)))) FROM unnest(ARRAY[1, 100, 200, 255, 256, 3000, 9000, 100000]) AS n;
SELECT stepwise.set_variables(pg_temp.id('kinds'), '{"n": 1.50, "big": 123456789012345678901234567890.5, "neg": -0.0, "t": true, "null": null, "list": [1, "2", {"k": []}], "ü": "日本 \"quoted\" \\ \n\t"}') IS NOT NULL;
SELECT stepwise.fail_step(pg_temp.id('kinds', 'a'), repeat('äöü ', 300)) ->> 'stepStatus';
SELECT a.id, a.event, md5(a.detail::text), length(a.detail::text) FROM stepwise.audit AS a WHERE a.plan_id = pg_temp.id('kinds') AND event <> 'step_failed' ORDER BY id;
SELECT detail ->> 'message' = rtrim(repeat('äöü ', 300)) OR detail ->> 'message' = repeat('äöü ', 300) FROM stepwise.audit WHERE plan_id = pg_temp.id('kinds') AND event = 'step_failed';
-- larger than a page, too
SELECT stepwise.create_plan('large', 'entries.sql', '[{"name": "a"}]') ->> 'status';
SELECT stepwise.get_next_step(pg_temp.id('large')) ->> 'name';
SELECT stepwise.request_user_review(pg_temp.id('large', 'a'), (SELECT string_agg(md5(n::text) || 'ß', '') FROM generate_series(1, 2000) AS n)) ->> 'stepStatus';
SELECT event, length(detail ->> 'summary'), md5(detail ->> 'summary') = (SELECT md5(string_agg(md5(n::text) || 'ß', '')) FROM generate_series(1, 2000) AS n)
FROM stepwise.audit WHERE plan_id = pg_temp.id('large') AND event = 'user_reviewed';
SELECT p.name, stepwise.verify_audit(p.id) -> 'valid' FROM stepwise.plan AS p WHERE p.goal = 'entries.sql' AND p.name IN ('kinds', 'large') ORDER BY p.name;
-- How a query is planned: the lines that match.
CREATE FUNCTION pg_temp.planned(query text, lines text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS OFF, VERBOSE) ' || query LOOP
        IF line ~ lines THEN
            RETURN NEXT btrim(line);
        END IF;
    END LOOP;
END $$;
-- the detail is made only if it is asked for
SELECT * FROM pg_temp.planned($$SELECT id, event FROM stepwise.audit WHERE plan_id = pg_temp.id('kinds')$$, 'audit_detail');

-- bytes that are no entries are refused, and nothing worse: every byte alone, pairs, pieces of entries, noise
CREATE FUNCTION pg_temp.read(bytes bytea) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stepwise.audit_detail(e.body) FROM stepwise.audit_entries(1, now(), bytes) AS e;
    PERFORM stepwise.audit_detail(bytes);
    RETURN 'read';
EXCEPTION WHEN SQLSTATE 'SW005' OR data_exception OR untranslatable_character OR character_not_in_repertoire THEN
    RETURN 'refused';
END $$;
SELECT pg_temp.read(''), pg_temp.read('\x00'), pg_temp.read('\xff'), pg_temp.read('\xffffffffff'), pg_temp.read('\xff7fffffff'), pg_temp.read('\x0000');
SELECT count(*) FROM generate_series(0, 255) AS a, generate_series(0, 255) AS b, pg_temp.read(set_byte(set_byte('\x0000', 0, a), 1, b)) WHERE a < 20;
SELECT count(*) FROM stepwise.audit_log AS l, stepwise.audit_entries(l.id, l.at, l.entries) AS e, generate_series(0, 40) AS n, pg_temp.read(substr(e.body, 1, n)) WHERE l.plan_id = pg_temp.id('calls');
SELECT count(*) FROM stepwise.audit_log AS l, generate_series(0, length(l.entries) - 1) AS n, generate_series(0, 255, 5) AS v, pg_temp.read(set_byte(l.entries, n, v))
WHERE l.plan_id = pg_temp.id('calls') AND l.id IN (2, 4);
SELECT count(*) FROM generate_series(1, 2000) AS n, pg_temp.read(sha256(n::text::bytea)) AS a, pg_temp.read(set_byte('\x0004', 0, n % 15) || sha256(n::text::bytea)) AS b, pg_temp.read('\x030f' || sha256(n::text::bytea)) AS c;

-- ---------- which rows are read ----------

CREATE ROLE regress_entries_reader;
SELECT stepwise.grant_reader('regress_entries_reader') IS NOT NULL, stepwise.add_member('regress_entries_reader', 'default') IS NOT NULL;
BEGIN;
SELECT stepwise.enter_tenant('entries.sql other');
SELECT stepwise.create_plan('theirs', 'entries.sql', '[{"name": "a"}]') ->> 'planId' AS theirs \gset
COMMIT;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_sort = off;
CREATE FUNCTION pg_temp.nobody() RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ SELECT '00000000-0000-7000-8000-000000000000'::uuid $$;
SET ROLE regress_entries_reader;
SELECT q, pg_temp.planned('SELECT * FROM stepwise.audit WHERE ' || q, 'Index Cond|Index Scan|Seq Scan|Sort') FROM unnest(ARRAY[
    'plan_id = pg_temp.nobody()', 'plan_id = pg_temp.nobody() AND event = ''step_failed'' AND detail ->> ''message'' = ''x''', 'plan_id = pg_temp.nobody() AND batch > 100',
    'plan_id = pg_temp.nobody() ORDER BY plan_id DESC, batch DESC, id DESC LIMIT 3', 'tenant = ''default'' AND plan_id IS NULL ORDER BY tenant, batch']) AS q;
-- only those of its tenant
SELECT count(*) > 10, count(*) FILTER (WHERE tenant <> 'default') FROM stepwise.audit;
SELECT count(*) > 5, count(*) FILTER (WHERE tenant <> 'default') FROM stepwise.audit_log;
SELECT count(*) FROM stepwise.audit WHERE plan_id = :'theirs';
SELECT count(*) FROM stepwise.audit_log WHERE plan_id = :'theirs';
-- a function of the reader does not see what it may not: the rows are chosen before they are taken apart
CREATE FUNCTION pg_temp.leak(detail jsonb) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN RAISE NOTICE 'saw %', detail; RETURN true; END $$;
SET client_min_messages = notice;
SELECT count(*) FROM stepwise.audit WHERE plan_id = :'theirs' AND pg_temp.leak(detail);
SET client_min_messages = warning;
SELECT pg_temp.try('INSERT INTO stepwise.audit SELECT * FROM stepwise.audit LIMIT 1'), pg_temp.try('DELETE FROM stepwise.audit'), pg_temp.try('DELETE FROM stepwise.audit_log');
RESET ROLE;
RESET enable_seqscan;
RESET enable_bitmapscan;
RESET enable_sort;
SELECT count(*) FROM stepwise.audit WHERE plan_id = :'theirs';
SELECT stepwise.remove_member('regress_entries_reader', 'default') IS NOT NULL;
DROP OWNED BY regress_entries_reader;
DROP ROLE regress_entries_reader;

-- ---------- subtransactions, errors, tools, triggers ----------

-- what is rolled back is gone, with its entries; nothing is lost or doubled
SELECT stepwise.create_plan('savepoints', 'entries.sql', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]') ->> 'status';
BEGIN;
SELECT stepwise.get_next_step(pg_temp.id('savepoints')) ->> 'name';
SAVEPOINT one;
SELECT stepwise.submit_step_result(pg_temp.id('savepoints', 'a'), '1') ->> 'stepStatus';
SAVEPOINT two;
SELECT stepwise.get_next_step(pg_temp.id('savepoints')) ->> 'name';
ROLLBACK TO two;
SELECT stepwise.get_next_step(pg_temp.id('savepoints'), worker => 'again') ->> 'name';
RELEASE one;
DO $$
BEGIN
    PERFORM stepwise.submit_step_result(pg_temp.id('savepoints', 'b'), '2');
    BEGIN
        PERFORM stepwise.advance(pg_temp.id('savepoints', 'c'), '3');
        RAISE EXCEPTION USING errcode = 'XXXXX';
    EXCEPTION WHEN SQLSTATE 'XXXXX' THEN
        PERFORM stepwise.advance(pg_temp.id('savepoints', 'c'), '4');
    END;
END $$;
COMMIT;
SELECT regexp_replace(x, ' in \d+', '') FROM pg_temp.shown('savepoints') AS x;
SELECT stepwise.verify_audit(pg_temp.id('savepoints')) - 'planId' - 'head';
-- a call that fails in the middle leaves no entry
SELECT pg_temp.try(format('SELECT stepwise.submit_step_result(%L, ''1'', attempt => 77)', pg_temp.id('savepoints', 'd')));
SELECT stepwise.verify_audit(pg_temp.id('savepoints')) - 'planId' - 'head';

-- tools that call the engine on the same plan, and fail or not
CREATE SCHEMA regress_entries;
CREATE FUNCTION regress_entries.meddle(arguments jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    seen int;
BEGIN
    SELECT count(*) INTO seen FROM stepwise.audit WHERE plan_id = (arguments ->> 'plan')::uuid;
    PERFORM stepwise.set_variables((arguments ->> 'plan')::uuid, jsonb_build_object('n', arguments -> 'n'));
    IF (arguments ->> 'fails')::boolean THEN
        RAISE EXCEPTION 'after % entries', seen;
    END IF;
    RETURN jsonb_build_object('seen', seen, 'now', (SELECT count(*) FROM stepwise.audit WHERE plan_id = (arguments ->> 'plan')::uuid));
END $$;
SELECT stepwise.register_tool('entries_meddle', 'regress_entries.meddle(jsonb)') IS NOT NULL;
SELECT stepwise.create_plan('tools', 'entries.sql', jsonb_agg(jsonb_build_object('name', 's' || n, 'tool', 'entries_meddle', 'arguments',
    jsonb_build_object('plan', '${plan.id}', 'n', n, 'fails', n % 2 = 0))), on_failure => 'continue') ->> 'status' FROM generate_series(1, 4) AS n;
SELECT stepwise.run(pg_temp.id('tools')) ->> 'task_status';
SELECT name, status, result, message FROM stepwise.step WHERE plan_id = pg_temp.id('tools') ORDER BY step_order;
SELECT stepwise.verify_audit(pg_temp.id('tools')) - 'planId' - 'head', (SELECT count(*) = count(DISTINCT id) AND count(*) = max(id) FROM stepwise.audit WHERE plan_id = pg_temp.id('tools'));
SELECT stepwise.drop_tool('entries_meddle') IS NOT NULL;
DROP SCHEMA regress_entries CASCADE;

-- a trigger on plans or steps sees the entries of what came before it in the same call
CREATE FUNCTION pg_temp.look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING '% %: % entries', TG_TABLE_NAME, NEW.name, (SELECT count(*) FROM stepwise.audit AS a WHERE a.plan_id = CASE TG_TABLE_NAME WHEN 'plan' THEN NEW.id ELSE pg_temp.id('looked') END);
    RETURN NULL;
END $$;
SELECT stepwise.create_plan('looked', 'entries.sql', '[{"name": "a"}, {"name": "b"}]') ->> 'status';
SELECT stepwise.get_next_step(pg_temp.id('looked')) ->> 'name';
CREATE TRIGGER look AFTER UPDATE ON stepwise.step FOR EACH ROW EXECUTE FUNCTION pg_temp.look();
CREATE TRIGGER look AFTER UPDATE ON stepwise.plan FOR EACH ROW EXECUTE FUNCTION pg_temp.look();
\set VERBOSITY terse
SELECT stepwise.advance(pg_temp.id('looked', 'a'), '1') #>> '{next,name}';
\set VERBOSITY default
DROP TRIGGER look ON stepwise.step;
DROP TRIGGER look ON stepwise.plan;
SELECT stepwise.verify_audit(pg_temp.id('looked')) - 'planId' - 'head';

-- the deferred trigger of a user acts at the commit, after all calls
CREATE FUNCTION pg_temp.later() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE WARNING 'later: %', (SELECT string_agg(e.event, ', ' ORDER BY e.id) FROM stepwise.audit_entries(NEW.id, NEW.at, NEW.entries) AS e);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER later AFTER INSERT ON stepwise.audit_log DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION pg_temp.later();
\set VERBOSITY terse
BEGIN;
SELECT stepwise.submit_step_result(pg_temp.id('looked', 'b'), '2') ->> 'planStatus';
COMMIT;
\set VERBOSITY default
DROP TRIGGER later ON stepwise.audit_log;
SELECT stepwise.verify_audit(pg_temp.id('looked')) - 'planId' - 'head';

-- a call that makes thousands of entries writes them in rows of a bounded size
SELECT stepwise.create_plan('many', 'entries.sql', (SELECT jsonb_agg(jsonb_build_object('name', 's' || n)) FROM generate_series(1, 3000) AS n)) ->> 'status';
SELECT stepwise.cancel_plan(pg_temp.id('many'), 'enough') ->> 'planStatus';
SELECT count(*) BETWEEN 50 AND 200, max(length(entries)) < 4000, min(length(entries)) FILTER (WHERE id > 1 AND id < 2900) > 3400 FROM stepwise.audit_log WHERE plan_id = pg_temp.id('many');
SELECT stepwise.verify_audit(pg_temp.id('many')) - 'planId' - 'head';
SELECT * FROM stepwise.check_integrity();
SELECT * FROM pg_temp.sound();
