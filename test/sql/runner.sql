-- Running in the database: run and run_steps, errors of tools, rights, and tools that change their own plan. Test "pause" has the
-- reasons for which a run stops.

\set ECHO none
\i test/tools.sql
\set ECHO all

CREATE SCHEMA regress_runner;
GRANT USAGE ON SCHEMA regress_runner TO PUBLIC;
SET search_path = regress_runner;

-- The answer of a run without the id.
CREATE FUNCTION pg_temp.told(answer jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', answer ->> 'task_status',
        (SELECT string_agg(s ->> 'name' || ' ' || (s ->> 'status'), ', ') FROM jsonb_array_elements(answer -> 'steps') AS s),
        answer ->> 'pause_reason')
$$;
CREATE FUNCTION plan(steps jsonb, on_failure text = 'continue', outputs jsonb = '{}', inputs jsonb = '{}') RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('plan', 'to be run', steps, on_failure => on_failure, outputs => outputs, inputs => inputs) ->> 'planId')::uuid
$$;
-- How a step ended.
CREATE FUNCTION step(id uuid, named text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', s.status, s.outcome, s.attempt, left(s.result::text, 100), s.message)
    FROM stepwise.step AS s WHERE s.plan_id = $1 AND s.name = $2
$$;

CREATE TABLE note (at int GENERATED ALWAYS AS IDENTITY, text text);

CREATE FUNCTION add(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RETURN jsonb_build_object('sum', (a ->> 'a')::numeric + (a ->> 'b')::numeric);
END $$;
CREATE FUNCTION note(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO note (text) VALUES (a ->> 'text');
    RETURN a -> 'answer';
END $$;
CREATE FUNCTION fail(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO note (text) VALUES ('never seen');
    RAISE EXCEPTION USING message = coalesce(a ->> 'message', 'it failed'), errcode = coalesce(a ->> 'code', 'P0001');
END $$;
CREATE FUNCTION say(a jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT a -> 'result' $$;
SELECT stepwise.register_tool(name, (name || '(jsonb)')::regprocedure) ->> 'name' FROM unnest('{add,note,fail,say}'::text[]) AS name;

-- ---------- to the end, in one call ----------

SELECT plan('[{"name": "one", "tool": "add", "arguments": {"a": 1, "b": "${inputs.two}"}, "binding": "first"},
              {"name": "two", "tool": "add", "arguments": {"a": "${bindings.first.sum}", "b": 0.5}},
              {"name": "no", "tool": "fail", "condition": "${steps.two.outputs.sum} > 100"},
              {"name": "three", "tool": "note", "arguments": {"text": "sum is ${steps.two.outputs.sum}", "answer": "${steps.one.outputs}"}}]',
            outputs => '{"sum": "${steps.two.outputs.sum}", "no": "${steps.no.outputs}"}', inputs => '{"two": 2}') AS id \gset
SELECT pg_temp.told(stepwise.run(:'id'));
SELECT status, outcome, outputs FROM stepwise.plan WHERE id = :'id';
SELECT name, status, result, inputs, attempt, execution_order FROM stepwise.step WHERE plan_id = :'id' ORDER BY step_order;
SELECT text FROM note;
SELECT event, detail - 'resultDigest' FROM stepwise.audit WHERE plan_id = :'id' ORDER BY id;
-- again: nothing is left to do
SELECT pg_temp.told(stepwise.run(:'id'));
SELECT count(*) FROM note;

-- ---------- one transaction a step: the same ----------

SELECT plan('[{"name": "one", "tool": "note", "arguments": {"text": "one"}}, {"name": "two", "tool": "note", "arguments": {"text": "two"}},
              {"name": "three", "tool": "mine"}, {"name": "four", "tool": "note", "arguments": {"text": "four"}}]') AS id \gset
CALL stepwise.run_steps(:'id') \gset
SELECT pg_temp.told(:'result'), :'result'::jsonb = stepwise.run(:'id');
SELECT name, xmin::text <> lag(xmin::text) OVER (ORDER BY step_order) AS own_transaction FROM stepwise.step WHERE plan_id = :'id' AND status = 'completed';
-- in a transaction block it cannot commit, and raises an error
BEGIN;
CALL stepwise.run_steps(:'id');
ROLLBACK;
-- from a procedure and from DO it can
CREATE PROCEDURE go(id uuid, INOUT told text = NULL) LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    CALL stepwise.run_steps(id, result => answer);
    told := pg_temp.told(answer);
END $$;
CALL go(:'id');
SELECT stepwise.record_tool_result(:'id', 'mine', '1') ->> 'stepStatus';
DO $$
DECLARE
    id uuid := p.id FROM stepwise.plan AS p ORDER BY p.id DESC LIMIT 1;
    answer jsonb;
BEGIN
    CALL stepwise.run_steps(id, result => answer);
    RAISE WARNING '%', pg_temp.told(answer);
END $$;
-- but not in a block that catches errors
DO $$
DECLARE
    id uuid := p.id FROM stepwise.plan AS p ORDER BY p.id DESC LIMIT 1;
    answer jsonb;
BEGIN
    CALL stepwise.run_steps(id, result => answer);
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING '% %', SQLSTATE, SQLERRM;
END $$;
SELECT string_agg(text, ' ' ORDER BY at) FROM note;
TRUNCATE note;

-- ---------- max_steps ----------

SELECT plan('[{"name": "a", "tool": "note"}, {"name": "b", "tool": "note"}, {"name": "c", "tool": "note"}]') AS id \gset
SELECT pg_temp.told(stepwise.run(:'id', 1));
CALL stepwise.run_steps(:'id', 1) \gset
SELECT pg_temp.told(:'result');
SELECT pg_temp.told(stepwise.run(:'id', 5));
SELECT pg_temp.try(format('SELECT stepwise.run(%L, %s)', :'id', n)) FROM unnest('{0,-1}'::int[]) AS n;
SELECT pg_temp.try(format('SELECT stepwise.run(%L)', id)) FROM unnest('{NULL,00000000-0000-7000-8000-000000000000}'::uuid[]) AS id;
CALL stepwise.run_steps(NULL);
CALL stepwise.run_steps(:'id', 0);

-- ---------- what tools return ----------

SELECT plan('[{"name": "null", "tool": "note"}, {"name": "json_null", "tool": "say", "arguments": {"result": null}},
              {"name": "list", "tool": "say", "arguments": {"result": [1, "2"]}}, {"name": "text", "tool": "say", "arguments": {"result": "x"}},
              {"name": "error", "tool": "say", "arguments": {"result": {"isError": true, "content": "no"}}},
              {"name": "no_error", "tool": "say", "arguments": {"result": {"isError": "true"}}}]') AS id \gset
SELECT pg_temp.told(stepwise.run(:'id'));
SELECT name, step(:'id', name) FROM stepwise.step WHERE plan_id = :'id' ORDER BY step_order;
SELECT status, outcome FROM stepwise.plan WHERE id = :'id';
TRUNCATE note;

-- a result that cannot be stored is an error of the tool, and its writes are rolled back
CREATE FUNCTION large(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO note (text) VALUES ('never seen');
    RETURN to_jsonb(repeat('x', (a ->> 'size')::int));
END $$;
CREATE FUNCTION deep(a jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT (repeat('[', (a ->> 'depth')::int) || repeat(']', (a ->> 'depth')::int))::jsonb $$;
SELECT stepwise.register_tool(name, (name || '(jsonb)')::regprocedure) ->> 'name' FROM unnest('{large,deep}'::text[]) AS name;
SELECT plan('[{"name": "large", "tool": "large", "arguments": {"size": 1000000}}, {"name": "too_large", "tool": "large", "arguments": {"size": 1048577}},
              {"name": "deep", "tool": "deep", "arguments": {"depth": 64}}, {"name": "too_deep", "tool": "deep", "arguments": {"depth": 65}}]') AS id \gset
SELECT pg_temp.told(stepwise.run(:'id'));
SELECT name, step(:'id', name) FROM stepwise.step WHERE plan_id = :'id' ORDER BY step_order;
SELECT count(*) FROM note;
TRUNCATE note;

-- ---------- errors of tools are stored with their SQLSTATE; only the writes of the tool are rolled back ----------

SELECT plan('[{"name": "a", "tool": "note", "arguments": {"text": "a"}},
              {"name": "b", "tool": "fail", "arguments": {"message": "Ünïcode, \"quotes\"\nand lines", "code": "22012"}},
              {"name": "c", "tool": "note", "arguments": {"text": "c"}}]') AS id \gset
SELECT pg_temp.told(stepwise.run(:'id'));
SELECT name, step(:'id', name) FROM stepwise.step WHERE plan_id = :'id' ORDER BY step_order;
SELECT detail ->> 'code', detail ->> 'message' FROM stepwise.audit WHERE plan_id = :'id' AND event = 'step_failed';
SELECT string_agg(text, ' ' ORDER BY at) FROM note;
SELECT status, outcome FROM stepwise.plan WHERE id = :'id';

-- any SQLSTATE, except those of the transaction and the server, which are not caught and roll back the whole run
SELECT code, pg_temp.try(format($$ SELECT step(id, 'x') FROM (SELECT id, stepwise.run(id) FROM plan('[{"name": "x", "tool": "fail",
    "arguments": {"code": "%s"}}]') AS id OFFSET 0) AS r $$, code))
FROM unnest('{P0001,22012,23505,42501,42883,0A000,55P03,08001,54001,SW001,ZZZZZ,40001,40P01,53100,53200,57P01,58030,XX000,XX001}'::text[]) AS code;
-- the two that WHEN OTHERS does not catch
SELECT plan('[{"name": "x", "tool": "fail", "arguments": {"code": "P0004"}}]') AS id \gset
SELECT pg_temp.told(stepwise.run(:'id'));
SELECT plan('[{"name": "x", "tool": "fail", "arguments": {"code": "57014"}}]') AS id \gset
SELECT pg_temp.told(stepwise.run(:'id'));
SELECT step(:'id', 'x');
-- an error that the caller catches does not damage its transaction
DO $$
DECLARE
    id uuid := plan('[{"name": "a", "tool": "note", "arguments": {"text": "rolled back"}}, {"name": "b", "tool": "fail", "arguments": {"code": "40001"}}]');
BEGIN
    BEGIN
        PERFORM stepwise.run(id);
    EXCEPTION WHEN serialization_failure THEN
        RAISE WARNING 'caught: %, %', step(id, 'a'), step(id, 'b');
    END;
    INSERT INTO note (text) VALUES ('after');
END $$;
SELECT string_agg(text, ' ' ORDER BY at) FROM note;
-- a cancelled statement
CREATE FUNCTION sleep(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN a; END $$;
CREATE FUNCTION refuse(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT to_jsonb(1 / 0) $$;
CREATE FUNCTION dies(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN COMMIT; RETURN '1'; END $$;
CREATE FUNCTION forever(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RETURN forever(a); END $$;
SELECT stepwise.register_tool(name, (name || '(jsonb)')::regprocedure) ->> 'name' FROM unnest('{sleep,refuse,dies,forever}'::text[]) AS name;
SELECT plan('[{"name": "a", "tool": "note", "arguments": {"text": "a"}}, {"name": "b", "tool": "sleep"}]') AS id \gset
\set SHOW_CONTEXT never
SET statement_timeout = '1s';
SELECT stepwise.run(:'id');
CALL stepwise.run_steps(:'id');
RESET statement_timeout;
\set SHOW_CONTEXT errors
SELECT name, status FROM stepwise.step WHERE plan_id = :'id' ORDER BY step_order;
SELECT plan('[{"name": "a", "tool": "refuse"}, {"name": "b", "tool": "dies"}, {"name": "c", "tool": "forever"}]') AS id \gset
SELECT pg_temp.told(stepwise.run(:'id'));
SELECT name, step(:'id', name) FROM stepwise.step WHERE plan_id = :'id' ORDER BY step_order;
CALL stepwise.run_steps(plan('[{"name": "b", "tool": "dies"}]')) \gset
SELECT pg_temp.told(:'result');
TRUNCATE note;

-- ---------- what a failed step does to its plan ----------

SELECT on_failure, pg_temp.told(stepwise.run(id)), (SELECT p.status || ' ' || p.outcome || coalesce(' ' || p.message, '') FROM stepwise.plan AS p WHERE p.id = r.id)
FROM (SELECT on_failure, plan('[{"name": "a", "tool": "fail"}, {"name": "b", "tool": "note"}]', on_failure) AS id
      FROM unnest('{continue,pause,fail}'::text[]) AS on_failure OFFSET 0) AS r;
-- with dependencies: under pause independent steps wait too; under continue dependents are skipped
SELECT on_failure, pg_temp.told(stepwise.run(id))
FROM (SELECT on_failure, plan('[{"name": "a", "tool": "fail"}, {"name": "b", "tool": "note", "dependsOn": ["a"]}, {"name": "c", "tool": "note"},
                                {"name": "d", "tool": "note", "dependsOn": ["c"]}]', on_failure) AS id
      FROM unnest('{continue,pause,fail}'::text[]) AS on_failure OFFSET 0) AS r;

-- ---------- retry: finished steps are not run again ----------

CREATE TABLE luck (good boolean);
INSERT INTO luck VALUES (false);
CREATE FUNCTION lucky(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF NOT (SELECT good FROM luck) THEN RAISE EXCEPTION 'no luck'; END IF;
    RETURN '"lucky"';
END $$;
SELECT stepwise.register_tool('lucky', 'lucky(jsonb)', retryable => true) ->> 'name';
SELECT plan('[{"name": "a", "tool": "note", "arguments": {"text": "a"}}, {"name": "b", "tool": "lucky"}, {"name": "c", "tool": "note", "arguments": {"text": "c"}}]', 'pause') AS id \gset
SELECT pg_temp.told(stepwise.run(:'id'));
-- nothing is retried automatically
SELECT pg_temp.told(stepwise.run(:'id'));
UPDATE luck SET good = true;
SELECT stepwise.retry_step(id) ->> 'stepStatus' FROM stepwise.step WHERE plan_id = :'id' AND name = 'b';
SELECT pause_reason FROM stepwise.plan WHERE id = :'id';
SELECT pg_temp.told(stepwise.run(:'id'));
SELECT step(:'id', 'b'), (SELECT string_agg(text, ' ' ORDER BY at) FROM note);
-- the step decides whether it is retryable, else the tool
UPDATE luck SET good = false;
SELECT said, stepwise.run(id) -> 'pause_reason' -> 'retryable'
FROM (SELECT tool || said AS said, plan(format('[{"name": "a", "tool": "%s" %s}]', tool, said)::jsonb, 'pause') AS id
      FROM (VALUES ('fail', ''), ('fail', ', "retryable": true'), ('lucky', ', "retryable": false'), ('lucky', '')) AS v (tool, said) OFFSET 0) AS r;

-- ---------- a function that was dropped or replaced ----------

CREATE FUNCTION gone(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION other(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
SELECT stepwise.register_tool(name, (name || '(jsonb)')::regprocedure) ->> 'name' FROM unnest('{gone,other}'::text[]) AS name;
DROP FUNCTION gone(jsonb), other(jsonb);
CREATE FUNCTION other(jsonb) RETURNS SETOF jsonb LANGUAGE sql AS 'SELECT $1';
SELECT plan('[{"name": "a", "tool": "gone"}, {"name": "b", "tool": "other"}]') AS id \gset
SELECT pg_temp.told(stepwise.run(:'id'));
SELECT name, step(:'id', name) FROM stepwise.step WHERE plan_id = :'id' ORDER BY step_order;

-- ---------- rights: a tool runs as the caller ----------

CREATE ROLE regress_run_agent;
SELECT stepwise.grant_agent('regress_run_agent') ->> 'granted', stepwise.add_member('regress_run_agent', 'default') ->> 'added',
       stepwise.add_member('regress_run_agent', 'second') ->> 'added';
CREATE TABLE secret (text text);
INSERT INTO secret VALUES ('of the owner');
CREATE FUNCTION peek(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RETURN to_jsonb((SELECT text FROM regress_runner.secret)); END $$;
CREATE FUNCTION peek_plans(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN UPDATE stepwise.plan SET goal = 'stolen'; RETURN '1'; END $$;
CREATE FUNCTION forbidden(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
REVOKE ALL ON FUNCTION forbidden(jsonb) FROM PUBLIC;
CREATE SCHEMA hidden;
CREATE FUNCTION hidden.tool(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION whoami(jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('user', current_user, 'path', current_setting('search_path'), 'tenant', stepwise.current_tenant()) $$;
CREATE FUNCTION become(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE a ->> 'sql';
    RETURN regress_runner.whoami(a);
END $$;
SELECT stepwise.register_tool(split_part(f, '(', 1), f::regprocedure) ->> 'function'
FROM unnest('{peek(jsonb),peek_plans(jsonb),forbidden(jsonb),hidden.tool(jsonb),whoami(jsonb),become(jsonb)}'::text[]) AS f;
GRANT SELECT ON note TO regress_run_agent;

-- each in a plan of its own, as the agent: the result, or why it failed
CREATE FUNCTION try_tool(tool text, arguments jsonb = '{}') RETURNS text LANGUAGE sql AS $$
    SELECT step(id, 'x') FROM (SELECT id, stepwise.run(id) FROM plan(jsonb_build_array(jsonb_build_object('name', 'x', 'tool', tool,
        'arguments', arguments))) AS id OFFSET 0) AS r
$$;
BEGIN;
SET LOCAL ROLE regress_run_agent;
SELECT stepwise.enter_tenant('default');
SELECT tool, try_tool(tool) FROM unnest('{peek,peek_plans,forbidden,hidden.tool,whoami,note}'::text[]) AS tool;
-- a tool cannot change to another role, and its settings end with it
SELECT sql, try_tool('become', jsonb_build_object('sql', sql)), try_tool('whoami')
FROM unnest(ARRAY['SET ROLE pg_monitor', 'RESET ROLE', 'SET SESSION AUTHORIZATION pg_monitor', 'RESET SESSION AUTHORIZATION', 'SET search_path = hidden',
    'SET LOCAL search_path = hidden', $$ SELECT set_config('search_path', 'hidden', false) $$, $$ SELECT stepwise.enter_tenant('second') $$,
    'COMMIT', 'SAVEPOINT x', 'SET stepwise.max_steps = 1']) AS sql;
SELECT current_user, current_setting('search_path'), stepwise.current_tenant();
COMMIT;
SELECT count(*) FROM stepwise.plan WHERE goal = 'stolen';

-- the search path does not affect which function is called
BEGIN;
CREATE SCHEMA evil;
CREATE TYPE evil.jsonb AS (x int);
CREATE FUNCTION evil.whoami(pg_catalog.jsonb) RETURNS pg_catalog.jsonb LANGUAGE sql AS $$ SELECT '"evil"'::pg_catalog.jsonb $$;
SET LOCAL search_path = evil, pg_catalog, regress_runner;
SELECT substring(regress_runner.try_tool('whoami') FROM '"path": "[^"]*"');
ROLLBACK;

-- run_steps: a role with several memberships names the tenant, which is entered again after each commit
SELECT plan('[{"name": "a", "tool": "whoami"}, {"name": "b", "tool": "become", "arguments": {"sql": "SELECT stepwise.enter_tenant(''second'')"}},
              {"name": "c", "tool": "whoami"}]') AS id \gset
SET ROLE regress_run_agent;
CALL stepwise.run_steps(:'id');
CALL stepwise.run_steps(:'id', tenant => 'third');
CALL stepwise.run_steps(:'id', tenant => 'default') \gset
SELECT pg_temp.told(:'result'), current_user;
SELECT stepwise.current_tenant();
RESET ROLE;
SELECT name, result FROM stepwise.step WHERE plan_id = :'id' ORDER BY step_order;

-- ---------- a tool that uses the engine, on its own plan too ----------

CREATE FUNCTION meddle(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    plan uuid := a ->> 'plan';
    self uuid := s.id FROM stepwise.step AS s WHERE s.plan_id = plan AND s.status = 'in_progress' ORDER BY s.started_at DESC LIMIT 1;
BEGIN
    CASE a ->> 'how'
        WHEN 'submit' THEN PERFORM stepwise.submit_step_result(self, '"by itself"');
        WHEN 'fail' THEN PERFORM stepwise.fail_step(self, 'by itself');
        WHEN 'skip' THEN PERFORM stepwise.skip_step(self, 'by itself');
        WHEN 'release' THEN PERFORM stepwise.release_step(self);
        WHEN 'cancel' THEN PERFORM stepwise.cancel_plan(plan, 'by itself');
        WHEN 'review' THEN PERFORM stepwise.request_user_review(self, 'look at this');
        WHEN 'add' THEN PERFORM stepwise.modify_plan(plan, 'add_steps', '{"steps": [{"name": "added", "tool": "note", "arguments": {"text": "added"}}]}');
        WHEN 'run' THEN PERFORM stepwise.run(plan);
        WHEN 'raw' THEN UPDATE stepwise.step SET status = 'completed', result = '"by hand"' WHERE id = self;
        WHEN 'vain' THEN
            PERFORM stepwise.submit_step_result(self, '"in vain"');
            RAISE EXCEPTION 'and then it failed';
    END CASE;
    RETURN '"by the run"';
END $$;
SELECT stepwise.register_tool('meddle', 'meddle(jsonb)') ->> 'name';
SELECT how, pg_temp.told(stepwise.run(id)), step(id, 'a')
FROM (SELECT how, plan(jsonb_build_array(jsonb_build_object('name', 'a', 'tool', 'meddle', 'arguments', jsonb_build_object('plan', '${plan.id}', 'how', how)),
                                         jsonb_build_object('name', 'b', 'tool', 'note', 'arguments', jsonb_build_object('text', 'b')))) AS id
      FROM unnest('{submit,fail,skip,release,cancel,add,run,raw,vain}'::text[]) AS how OFFSET 0) AS r;
SELECT pg_temp.told(jsonb_set(answer, '{pause_reason}', (answer -> 'pause_reason') - 'checkpointId'))
FROM (SELECT stepwise.run(plan('[{"name": "a", "tool": "meddle", "arguments": {"plan": "${plan.id}", "how": "review"}}, {"name": "b", "tool": "note"}]')) AS answer) AS r;

-- ---------- the built-in tools ----------

CREATE FUNCTION state(tool text, arguments jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT try_tool(tool, arguments)
$$;
SELECT state('state_read', '{"name": "x"}');
SELECT state('state_read', '{"name": "x", "default": [1]}');
SELECT state('state_read', '{"name": "x", "default": null}');
SELECT state('state_write', '{"name": "x", "value": {"a": {"b": 1, "c": [1, 2]}, "d": 1}}');
SELECT state('state_merge', '{"name": "x", "value": {"a": {"c": [3], "e": {"f": null}}, "d": {"g": 1}}}');
SELECT state('state_read', '{"name": "x", "default": 1}');
SELECT state('state_merge', '{"name": "x", "value": 5}');
SELECT state('state_merge', '{"name": "x", "value": {"h": 1}}');
SELECT state('state_merge', '{"name": "new", "value": {"a": 1}}');
SELECT state('state_read', '{"name": ""}');
SELECT jsonb_pretty(stepwise.run(plan('[{"name": "a", "tool": "state_write", "arguments": {"name": 1}}]')) -> 'pause_reason');
SELECT pg_temp.try(format('SELECT stepwise.%s(%L)', tool, arguments))
FROM unnest('{state_read,state_write,state_merge}'::text[]) AS tool, unnest(ARRAY[NULL, '1', '{}', '{"name": "x"}']) AS arguments;
SELECT pg_temp.try(format('SELECT stepwise.%s(%L)', tool, jsonb_build_object('name', 'x', 'value', repeat('x', 1048577))))
FROM unnest('{state_write,state_merge}'::text[]) AS tool;
-- an error of the run rolls the state back
SELECT pg_temp.try($$ SELECT stepwise.run(plan('[{"name": "a", "tool": "state_write", "arguments": {"name": "y", "value": 1}}, {"name": "b", "tool": "fail", "arguments": {"code": "40001"}}]')) $$);
SELECT tenant, name, value FROM stepwise.state ORDER BY name;

-- ---------- memory ----------

-- Steps 100 and 10,000 measure the memory of this backend; the steps between fail. A run keeps up to 4 MB to be written together.
-- What the server keeps for each row that a transaction changes twice is not counted.
CREATE FUNCTION weigh(jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT to_jsonb(sum(used_bytes)) FROM pg_backend_memory_contexts
    WHERE name NOT IN ('Combo CIDs', 'AfterTriggerEvents', 'TopTransactionContext')
$$;
SELECT stepwise.register_tool('weigh', 'weigh(jsonb)') ->> 'name';
SELECT plan((SELECT jsonb_agg(jsonb_build_object('name', 's' || n, 'tool', CASE WHEN n IN (100, 10000) THEN 'weigh' ELSE 'fail' END)) FROM generate_series(1, 10000) AS n)) AS id \gset
SELECT count(*) FILTER (WHERE s ->> 'status' = 'failed') AS failed FROM jsonb_array_elements(stepwise.run(:'id') -> 'steps') AS s;
SELECT (SELECT result::numeric FROM stepwise.step WHERE plan_id = :'id' AND name = 's10000')
     - (SELECT result::numeric FROM stepwise.step WHERE plan_id = :'id' AND name = 's100') < 5000000 AS memory_does_not_grow;

-- ---------- final checks ----------

SELECT * FROM stepwise.check_integrity();
SELECT DISTINCT stepwise.verify_audit(id) -> 'valid' FROM stepwise.plan WHERE tenant = stepwise.current_tenant();

DROP OWNED BY regress_run_agent;
SELECT stepwise.remove_member('regress_run_agent', tenant) ->> 'removed' FROM unnest('{default,second}'::text[]) AS tenant;
DROP ROLE regress_run_agent;

SELECT count(stepwise.drop_tool(name)) > 0 FROM stepwise.tool WHERE tenant = stepwise.current_tenant() AND coalesce(function, 'regress_runner.') LIKE 'regress_runner.%';
DROP SCHEMA regress_runner, hidden CASCADE;
