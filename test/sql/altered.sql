-- The owner has added triggers, constraints, indexes or columns to the tables. The engine writes rows without SQL statements, and
-- still respects these additions.

\set ECHO none
\i test/agent.sql
\set ECHO all

SELECT pg_temp.make('plain', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}, {"name": "e", "dependsOn": ["d"]}]', on_failure => 'pause');
SELECT pg_temp.next('plain'), pg_temp.submit('plain', 'a');

-- the indexes that the engine knows as its own; table.c has the same list
SELECT indexrelid::regclass FROM pg_index WHERE indrelid IN ('stepwise.plan'::regclass, 'stepwise.step'::regclass, 'stepwise.audit'::regclass) ORDER BY indexrelid::regclass::text;

-- ---------- triggers ----------

CREATE TABLE seen (n int GENERATED ALWAYS AS IDENTITY, said text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'audit' THEN
        INSERT INTO public.seen (said) VALUES ('audit ' || NEW.event);
    ELSE
        INSERT INTO public.seen (said) VALUES (concat_ws(' ', TG_TABLE_NAME, NEW.name, OLD.status, 'to', NEW.status));
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER see AFTER UPDATE ON stepwise.step FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER see AFTER UPDATE ON stepwise.plan FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER see BEFORE INSERT ON stepwise.audit FOR EACH ROW EXECUTE FUNCTION see();
SELECT pg_temp.next('plain');
SELECT pg_temp.submit('plain', 'b');
SELECT said FROM seen ORDER BY n;
DROP TRIGGER see ON stepwise.step;
DROP TRIGGER see ON stepwise.plan;
DROP TRIGGER see ON stepwise.audit;
TRUNCATE seen;
SELECT pg_temp.next('plain');
SELECT count(*) FROM seen;

-- ---------- constraints, rules, columns, keys ----------

ALTER TABLE stepwise.step ADD CONSTRAINT no_secrets CHECK (NOT result ? 'password');
SELECT pg_temp.try($$pg_temp.submit('plain', 'c', '{"password": "1234"}')$$);
SELECT pg_temp.submit('plain', 'c', '{"name": "Paul"}');
ALTER TABLE stepwise.step DROP CONSTRAINT no_secrets;
CREATE RULE also AS ON UPDATE TO stepwise.step DO ALSO INSERT INTO public.seen (said) VALUES ('rule ' || NEW.status);
SELECT pg_temp.next('plain');
DROP RULE also ON stepwise.step;
SELECT said FROM seen ORDER BY n;
-- an index that calls a function must not use the search path of the caller
CREATE FUNCTION signature(name text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN upper(name); END $$;
CREATE INDEX signed ON stepwise.step (signature(message));
CREATE SCHEMA trap;
CREATE FUNCTION trap.upper(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE EXCEPTION 'trapped as %', current_user; END $$;
SET search_path = trap, pg_catalog, public;
SELECT pg_temp.fail('plain', 'd', 'Oh dear');
SHOW search_path;
RESET search_path;
SELECT stepwise.retry_step(pg_temp.step('plain', 'd')) ->> 'stepStatus', pg_temp.next('plain');
DROP INDEX stepwise.signed;
DROP SCHEMA trap CASCADE;
DROP FUNCTION signature;
-- generated and NOT NULL columns; deferred keys, and keys on columns that change
ALTER TABLE stepwise.audit ADD COLUMN about text GENERATED ALWAYS AS (event || '!') STORED;
SELECT pg_temp.make('also', '[{"name": "a"}, {"name": "b"}]');
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE stepwise.step SET worker = coalesce(worker, 'somebody');
SET LOCAL session_replication_role = origin;
ALTER TABLE stepwise.step ALTER COLUMN worker SET NOT NULL;
SELECT pg_temp.next('also', 'anna');
SELECT pg_temp.try($$stepwise.release_step(pg_temp.step('also', 'a'))$$);
ROLLBACK;
-- from 18 on, a generated column can be virtual
SELECT CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 'VIRTUAL' ELSE 'STORED' END AS kind \gset
BEGIN;
ALTER TABLE stepwise.step ADD COLUMN somebody text GENERATED ALWAYS AS (nullif(coalesce(worker, ''), 'nobody')) :kind NOT NULL;
SELECT pg_temp.try($$pg_temp.next('also', 'nobody')$$);
SELECT pg_temp.next('also', 'anna');
ROLLBACK;
BEGIN;
ALTER TABLE stepwise.step ADD CONSTRAINT other_words UNIQUE (plan_id, output_formatting_notes) DEFERRABLE INITIALLY DEFERRED;
SELECT stepwise.submit_step_result(pg_temp.step('also', 'a'), '1', output_formatting_notes => 'Short') ->> 'stepStatus';
SELECT stepwise.submit_step_result(pg_temp.step('also', 'b'), '1', output_formatting_notes => 'Short') ->> 'stepStatus';
\set VERBOSITY terse
COMMIT;
\set VERBOSITY default
CREATE UNIQUE INDEX status_index ON stepwise.plan (tenant, id, status);
CREATE TABLE followed (tenant text COLLATE "C", plan_id uuid, status stepwise.plan_status,
                       FOREIGN KEY (tenant, plan_id, status) REFERENCES stepwise.plan (tenant, id, status) ON UPDATE CASCADE);
INSERT INTO followed SELECT tenant, id, status FROM stepwise.plan WHERE id = pg_temp.plan('also');
SELECT pg_temp.next('also');
SELECT status FROM followed;
SELECT about FROM stepwise.audit WHERE plan_id = pg_temp.plan('also') ORDER BY id;
DROP TABLE followed;
DROP INDEX stepwise.status_index;
ALTER TABLE stepwise.audit DROP COLUMN about;
-- a trigger that writes steps does not count as the engine, and cannot call it
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.name = 'a' AND NEW.status = 'completed' THEN
        EXECUTE current_setting('test.meddle');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER meddle AFTER UPDATE ON stepwise.step FOR EACH ROW EXECUTE FUNCTION meddle();
SELECT set_config('test.meddle', format('SELECT stepwise.set_variables(%L, ''{"a": 1}'')', pg_temp.plan('also')), false) IS NOT NULL;
SELECT pg_temp.try($$pg_temp.submit('also', 'a')$$);
SELECT set_config('test.meddle', format('UPDATE stepwise.step SET attempt = 77 WHERE id = %L', pg_temp.step('also', 'b')), false) IS NOT NULL;
SELECT pg_temp.try($$pg_temp.submit('also', 'a')$$);
DROP TRIGGER meddle ON stepwise.step;
DROP FUNCTION meddle;
SELECT pg_temp.submit('also', 'a');
-- a summarizing index (BRIN), with many updates of one row
CREATE INDEX summary ON stepwise.plan USING brin (updated_at);
SELECT pg_temp.next('also');
SELECT count(stepwise.heartbeat(pg_temp.step('also', 'b'), 1)) FROM generate_series(1, 100);
DROP INDEX stepwise.summary;
SELECT pg_temp.submit('also', 'b');
ALTER TABLE stepwise.audit ADD COLUMN host text NOT NULL DEFAULT 'here';
SELECT pg_temp.submit('plain', 'd');
SELECT DISTINCT a.host FROM stepwise.audit AS a WHERE a.plan_id = (SELECT pg_temp.plan('plain'));
ALTER TABLE stepwise.audit DROP COLUMN host;
CREATE TABLE mine (tenant text COLLATE "C", plan_id uuid, FOREIGN KEY (tenant, plan_id) REFERENCES stepwise.plan (tenant, id));
INSERT INTO mine VALUES ('default', pg_temp.plan('plain'));
CREATE TABLE event (name text PRIMARY KEY);
INSERT INTO event VALUES ('step_started');
ALTER TABLE stepwise.audit ADD CONSTRAINT known_event FOREIGN KEY (event) REFERENCES event NOT VALID;
SELECT pg_temp.next('plain');
SELECT pg_temp.try($$pg_temp.submit('plain', 'e')$$);
ALTER TABLE stepwise.audit DROP CONSTRAINT known_event;
SELECT pg_temp.submit('plain', 'e');
DROP TABLE seen, mine, event;
DROP FUNCTION see;
SELECT pg_temp.show('plain');
SELECT stepwise.verify_audit(pg_temp.plan('plain')) -> 'valid';
SELECT * FROM stepwise.check_integrity();
