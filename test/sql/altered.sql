-- Tables to which the owner has added something of his own: the engine, which writes them without statements, keeps to it.

\set ECHO none
\i test/agent.sql
\set ECHO all

SELECT pg_temp.make('plain', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}, {"name": "e", "dependsOn": ["d"]}]', on_failure => 'pause');
SELECT pg_temp.next('plain'), pg_temp.submit('plain', 'a');

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
-- an index that calls a function: not with the caller's search path, which would make it his
CREATE FUNCTION signature(name text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN upper(name); END $$;
CREATE INDEX signed ON stepwise.step (signature(message));
CREATE SCHEMA trap;
CREATE FUNCTION trap.upper(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE EXCEPTION 'trapped as %', current_user; END $$;
SET search_path = trap, pg_catalog, public;
SELECT pg_temp.fail('plain', 'd', 'Oh dear');
RESET search_path;
SELECT stepwise.retry_step(pg_temp.step('plain', 'd')) ->> 'stepStatus', pg_temp.next('plain');
DROP INDEX stepwise.signed;
DROP SCHEMA trap CASCADE;
DROP FUNCTION signature;
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
