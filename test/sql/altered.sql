-- The owner has added triggers, constraints, indexes or columns to the tables. The engine writes rows without SQL statements, and
-- still respects these additions.

\set ECHO none
\i test/agent.sql
\set ECHO all

SELECT pg_temp.make('plain', '[{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}, {"name": "e", "dependsOn": ["d"]}]', on_failure => 'pause');
SELECT pg_temp.next('plain'), pg_temp.submit('plain', 'a');

-- the indexes that the engine knows as its own; altered.c has the same list
SELECT indexrelid::regclass FROM pg_index WHERE indrelid = ANY ('{stepwise.plan,stepwise.plan_detail,stepwise.step,stepwise.dependency,stepwise.audit_log,stepwise.checkpoint}'::regclass[]) ORDER BY indexrelid::regclass::text;

-- ---------- triggers ----------

CREATE TABLE seen (n int GENERATED ALWAYS AS IDENTITY, said text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'audit_log' THEN
        INSERT INTO public.seen (said) SELECT 'audit ' || e.event FROM stepwise.audit_entries(NEW.id, NEW.at, NEW.entries) AS e;
    ELSE
        INSERT INTO public.seen (said) VALUES (concat_ws(' ', TG_TABLE_NAME, NEW.name, OLD.status, 'to', NEW.status));
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER see AFTER UPDATE ON stepwise.step FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER see AFTER UPDATE ON stepwise.plan FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER see BEFORE INSERT ON stepwise.audit_log FOR EACH ROW EXECUTE FUNCTION see();
SELECT pg_temp.next('plain');
SELECT pg_temp.submit('plain', 'b');
SELECT said FROM seen ORDER BY n;
DROP TRIGGER see ON stepwise.step;
DROP TRIGGER see ON stepwise.plan;
DROP TRIGGER see ON stepwise.audit_log;
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
-- an index of a name of ours that is of other columns, or not complete, is not searched
CREATE FUNCTION wide() RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_agg(jsonb_build_object('name', 's' || i) || CASE WHEN i < 201 THEN '{}' ELSE '{"dependsOn": ["s1"]}' END::jsonb) FROM generate_series(1, 201) AS i
$$;
DROP INDEX stepwise.step_ready, stepwise.plan_open;
CREATE INDEX step_ready ON stepwise.step (plan_id, name) WHERE ready_mark;
SELECT pg_temp.make('wide', wide());
SELECT pg_temp.try($$pg_temp.next('wide')$$);
DROP INDEX stepwise.step_ready;
CREATE INDEX step_ready ON stepwise.step (plan_id, step_order) WHERE ready_mark;
SELECT pg_temp.next('wide');
\set VERBOSITY sqlstate
CREATE UNIQUE INDEX CONCURRENTLY plan_open ON stepwise.plan (tenant, id, (1 / (CASE WHEN name = 'wide' THEN 0 ELSE 1 END))) WHERE completed_at IS NULL;
\set VERBOSITY default
SELECT pg_temp.try($$stepwise.list_active_plans()$$);
DROP INDEX stepwise.plan_open;
CREATE INDEX plan_open ON stepwise.plan (tenant, id) WHERE completed_at IS NULL;
SELECT stepwise.list_active_plans() -> 'plans' -> 0 -> 'name', stepwise.cancel_plan(pg_temp.plan('wide')) ->> 'planStatus';
DROP FUNCTION wide;
-- generated and NOT NULL columns; deferred keys, and keys on columns that change
ALTER TABLE stepwise.audit_log ADD COLUMN about text GENERATED ALWAYS AS (id || '!') STORED;
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
SELECT about FROM stepwise.audit_log WHERE plan_id = pg_temp.plan('also') ORDER BY id;
DROP TABLE followed;
DROP INDEX stepwise.status_index;
ALTER TABLE stepwise.audit_log DROP COLUMN about;
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
ALTER TABLE stepwise.audit_log ADD COLUMN host text NOT NULL DEFAULT 'here';
SELECT pg_temp.submit('plain', 'd');
SELECT DISTINCT a.host FROM stepwise.audit_log AS a WHERE a.plan_id = (SELECT pg_temp.plan('plain'));
ALTER TABLE stepwise.audit_log DROP COLUMN host;
CREATE TABLE mine (tenant text COLLATE "C", plan_id uuid REFERENCES stepwise.plan (id));
INSERT INTO mine VALUES ('default', pg_temp.plan('plain'));
CREATE TABLE tenants (name text COLLATE "C" PRIMARY KEY);
ALTER TABLE stepwise.audit_log ADD CONSTRAINT known_tenant FOREIGN KEY (tenant) REFERENCES tenants NOT VALID;
SELECT pg_temp.try($$pg_temp.next('plain')$$);
INSERT INTO tenants VALUES ('default');
SELECT pg_temp.next('plain');
SELECT pg_temp.submit('plain', 'e');
ALTER TABLE stepwise.audit_log DROP CONSTRAINT known_tenant;
-- ---------- new plans ----------

TRUNCATE seen RESTART IDENTITY;
CREATE FUNCTION see_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.seen (said) VALUES (concat_ws(' ', TG_TABLE_NAME, to_jsonb(NEW) ->> 'name', to_jsonb(NEW) ->> 'status', to_jsonb(NEW) ->> 'required'));
    IF TG_TABLE_NAME = 'step' AND to_jsonb(NEW) ->> 'tool' = 'rm' THEN
        RETURN jsonb_populate_record(NEW, '{"tool": "mv"}');
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION see_all() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.seen (said) SELECT format('%s steps, %s dependencies of the plan', count(*), (SELECT count(*) FROM stepwise.dependency AS d WHERE d.plan_id = (SELECT n.plan_id FROM new_steps AS n LIMIT 1))) FROM new_steps;
    RETURN NULL;
END $$;
BEGIN;
CREATE TRIGGER see BEFORE INSERT ON stepwise.plan FOR EACH ROW EXECUTE FUNCTION see_new();
CREATE TRIGGER see BEFORE INSERT ON stepwise.step FOR EACH ROW EXECUTE FUNCTION see_new();
CREATE TRIGGER see BEFORE INSERT ON stepwise.dependency FOR EACH ROW EXECUTE FUNCTION see_new();
CREATE TRIGGER see_all AFTER INSERT ON stepwise.step REFERENCING NEW TABLE AS new_steps FOR EACH STATEMENT EXECUTE FUNCTION see_all();
SELECT pg_temp.make('seen', '[{"name": "a", "tool": "rm", "condition": "${inputs.n} > 1"}, {"name": "b", "prompt": "Well?", "dependsOn": ["a"]}]', inputs => '{"n": 2}');
SELECT pg_temp.next('seen'), pg_temp.submit('seen', 'a');
SELECT said FROM seen ORDER BY n;
SELECT name, tool, prompt, condition, condition_operands, blockers, (SELECT true FROM stepwise.plan AS p WHERE p.id = s.plan_id AND (s.ready_mark OR s.step_order = ANY (p.ready_steps))) AS ready, wave FROM stepwise.step AS s WHERE plan_id = pg_temp.plan('seen') ORDER BY step_order;
SELECT * FROM stepwise.check_integrity();
ROLLBACK;
-- a trigger cannot make rows vanish
CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
BEGIN;
CREATE TRIGGER swallow BEFORE INSERT ON stepwise.step FOR EACH ROW WHEN (NEW.name = 'b') EXECUTE FUNCTION swallow();
SELECT pg_temp.try($$pg_temp.make('gone', '[{"name": "a"}, {"name": "b"}]')$$);
ROLLBACK;
DROP FUNCTION swallow;
-- constraints and indexes; if one is violated, nothing is left of the plan
ALTER TABLE stepwise.step ADD CONSTRAINT no_removal CHECK (tool <> 'rm');
SELECT pg_temp.try($$pg_temp.make('checked', '[{"name": "a"}, {"name": "b", "tool": "rm"}]')$$);
SELECT pg_temp.make('checked', '[{"name": "a", "tool": "mv"}, {"name": "b", "dependsOn": ["a"]}]');
ALTER TABLE stepwise.step DROP CONSTRAINT no_removal;
CREATE UNIQUE INDEX one_tool ON stepwise.step (plan_id, tool) WHERE tool IN ('once', 'one');
SELECT pg_temp.try($$pg_temp.make('unique', '[{"name": "a", "tool": "once"}, {"name": "b", "tool": "once"}]')$$);
SELECT pg_temp.make('unique', '[{"name": "a", "tool": "once"}, {"name": "b", "tool": "one"}]');
DROP INDEX stepwise.one_tool;
SELECT p.name, count(s.id) FROM stepwise.plan AS p LEFT JOIN stepwise.step AS s ON s.plan_id = p.id WHERE p.name IN ('checked', 'unique') GROUP BY p.name ORDER BY p.name;
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE stepwise.plan SET session_id = coalesce(session_id, 'some');
SET LOCAL session_replication_role = origin;
ALTER TABLE stepwise.plan ALTER COLUMN session_id SET NOT NULL;
SELECT pg_temp.try($$pg_temp.make('no session', '[{"name": "a"}]')$$);
SELECT stepwise.create_plan('session', 'test', '[{"name": "a"}]', session_id => 's') ->> 'status';
ROLLBACK;
-- columns, with defaults and generated ones; in a table that once had one, rows are written without statements again
BEGIN;
ALTER TABLE stepwise.step ADD COLUMN colour text NOT NULL DEFAULT 'red', ADD COLUMN size int GENERATED ALWAYS AS (length(name)) STORED;
ALTER TABLE stepwise.plan ADD COLUMN made_by name DEFAULT current_user;
ALTER TABLE stepwise.dependency ADD COLUMN note text DEFAULT 'none';
SELECT pg_temp.make('columns', '[{"name": "a"}, {"name": "bb", "dependsOn": ["a"]}]');
SELECT stepwise.modify_plan(pg_temp.plan('columns'), 'add_steps', '{"steps": [{"name": "ccc", "dependsOn": ["bb"]}]}') ->> 'planStatus';
SELECT s.name, s.colour, s.size, p.made_by = current_user, d.note FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.id = s.plan_id
LEFT JOIN stepwise.dependency AS d ON d.step_id = s.id WHERE p.id = pg_temp.plan('columns') ORDER BY s.step_order;
ALTER TABLE stepwise.step DROP COLUMN colour, DROP COLUMN size;
SELECT pg_temp.make('columns', '[{"name": "a"}]'), pg_temp.next('columns');
ROLLBACK;
-- an order that is taken is refused at once, also where the check of the constraint is deferred
BEGIN;
SET CONSTRAINTS ALL DEFERRED;
SELECT pg_temp.make('deferred', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]');
SELECT stepwise.modify_plan(pg_temp.plan('deferred'), 'add_steps', '{"steps": [{"name": "x"}, {"name": "y"}], "insertAfterOrder": 1}') ->> 'planStatus';
COMMIT;
SELECT string_agg(name, ' ' ORDER BY step_order) FROM stepwise.step WHERE plan_id = pg_temp.plan('deferred');
-- a plan has a row of seldom used columns only if it uses one
SELECT pg_temp.make('bare', '[{"name": "a"}]'), (SELECT count(*) FROM stepwise.plan_detail WHERE plan_id = pg_temp.plan('bare'));
SELECT stepwise.get_plan_context(pg_temp.plan('bare')) -> 'variables', stepwise.get_output(pg_temp.plan('bare')) -> 'content', stepwise.task_variables(pg_temp.plan('bare')) ? 'k';
SELECT stepwise.set_variables(pg_temp.plan('bare'), '{"k": 1}') ->> 'planStatus', stepwise.task_variables(pg_temp.plan('bare')) -> 'k';
SELECT outputs, variables, final_output FROM stepwise.plan_detail WHERE plan_id = pg_temp.plan('bare');
-- triggers on checkpoints, and on what is seldom set of a plan, see each row; a fork copies the columns of a user
BEGIN;
CREATE TABLE written (what text);
CREATE FUNCTION write_down() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.written VALUES (TG_OP || ' ' || TG_TABLE_NAME);
    RETURN NULL;
END $$;
CREATE TRIGGER users AFTER INSERT OR UPDATE OR DELETE ON stepwise.checkpoint FOR EACH ROW EXECUTE FUNCTION write_down();
CREATE TRIGGER users AFTER INSERT OR UPDATE OR DELETE ON stepwise.plan_detail FOR EACH ROW EXECUTE FUNCTION write_down();
ALTER TABLE stepwise.step ADD COLUMN colour text DEFAULT 'red', ADD COLUMN size int GENERATED ALWAYS AS (length(name)) STORED;
ALTER TABLE stepwise.plan ADD COLUMN made_for text DEFAULT 'nobody';
SELECT pg_temp.make('asked', '[{"name": "a", "prompt": "Which?"}, {"name": "bb", "dependsOn": ["a"]}]');
SELECT stepwise.resume((stepwise.get_next_step(pg_temp.plan('asked')) ->> 'checkpointId')::uuid, '"this one"') ->> 'status';
SELECT stepwise.store_output(pg_temp.plan('asked'), 'one') -> 'replaced', stepwise.store_output(pg_temp.plan('asked'), 'two') -> 'replaced';
ALTER TABLE stepwise.step ALTER COLUMN colour SET DEFAULT 'green';
ALTER TABLE stepwise.plan ALTER COLUMN made_for SET DEFAULT 'somebody';
SELECT stepwise.fork_plan(pg_temp.plan('asked'), 'bb') ->> 'planId' AS fork \gset
SELECT s.name, s.status, s.colour, s.size, p.made_for, s.blockers, nullif(coalesce(s.ready_mark, s.step_order = ANY (p.ready_steps)), false) AS ready FROM stepwise.plan AS p JOIN stepwise.step AS s ON s.plan_id = p.id
WHERE p.id = :'fork' ORDER BY s.step_order;
SELECT what, count(*) FROM written GROUP BY what ORDER BY what;
SELECT * FROM stepwise.check_integrity();
ROLLBACK;

DROP TABLE seen, mine, tenants;
DROP FUNCTION see, see_new, see_all;
SELECT pg_temp.show('plain');
SELECT stepwise.verify_audit(pg_temp.plan('plain')) -> 'valid';
SELECT * FROM stepwise.check_integrity();
