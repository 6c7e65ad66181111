-- Errors that end a run instead of failing a step: those of the transaction (class 40), of resources (53), of operators (57), of the
-- system (58), and internal ones (XX). Their context names the tool and the step, and nothing of the run stays.

\set ECHO none
\i test/tools.sql
\set ECHO all

CREATE SCHEMA regress_run_ended;
SET search_path = regress_run_ended;

CREATE TABLE note (text text);
CREATE FUNCTION broken(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO note VALUES ('never seen');
    RAISE EXCEPTION USING message = 'it broke', errcode = a ->> 'code';
END $$;
CREATE FUNCTION broken_source(a text) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING message = 'it broke', errcode = '58030';
END $$;
CREATE FUNCTION slow(a jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT to_jsonb(pg_sleep(60)::text) $$;
CREATE FUNCTION run_other(a jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT stepwise.run((a ->> 'plan')::uuid) $$;
SELECT stepwise.register_tool(name, (name || '(jsonb)')::regprocedure) ->> 'name' FROM unnest('{broken,slow,run_other}'::text[]) AS name;
SELECT stepwise.register_resource('broken://*', 'broken_source(text)') ->> 'pattern';

CREATE FUNCTION plan(steps jsonb) RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('run ended', 'to be run', steps) ->> 'planId')::uuid
$$;
-- Run a plan: its status, or the SQLSTATE and what the context says of steps.
CREATE FUNCTION try(query text, id uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    context text;
    answer jsonb;
BEGIN
    EXECUTE query INTO answer USING id;
    RETURN concat_ws(' ', answer ->> 'task_status', answer -> 'pause_reason' ->> 'type');
EXCEPTION WHEN query_canceled OR others THEN
    GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
    RETURN concat_ws(' | ', sqlstate,
        (SELECT string_agg(line, ' | ')
         FROM regexp_split_to_table(context, '\n') AS line WHERE line ~ '^step '));
END $$;
CREATE FUNCTION try_run(steps jsonb) RETURNS text LANGUAGE sql AS $$ SELECT try('SELECT stepwise.run($1)', plan(steps)) $$;

-- ---------- the classes ----------

SELECT code, try_run(jsonb_build_array('{"name": "before", "tool": "state_write", "arguments": {"name": "ended", "value": 1}}'::jsonb,
    jsonb_build_object('name', 'pay', 'tool', 'broken', 'arguments', jsonb_build_object('code', code))))
FROM unnest('{40001,40P01,53100,53200,57014,57P01,58030,XX000,XX001,P0001,22012,23505,54000,55P03,SW003}'::text[]) AS code;

-- of a run that ended nothing stays: no note, no state, and every step is as it was
SELECT count(*) FROM note;
SELECT s.name, s.status, s.attempt, count(*)
FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.id = s.plan_id WHERE p.name = 'run ended' GROUP BY 1, 2, 3 ORDER BY 1, 2;

-- ---------- a timeout is the server's, whatever the tool is ----------

SELECT plan('[{"name": "wait", "tool": "slow"}]') AS id \gset
SET statement_timeout = '1s';
SELECT try('SELECT stepwise.run($1)', :'id');
RESET statement_timeout;
SELECT status, attempt FROM stepwise.step WHERE plan_id = :'id';

-- ---------- every way to run a tool ----------

SELECT plan('[{"name": "pay", "tool": "broken", "arguments": {"code": "40001"}}]') AS id \gset
SELECT try('SELECT stepwise.get_next_step($1, run_tools => true)', :'id');

SELECT plan('[{"name": "ask", "prompt": "Pay?"}, {"name": "pay", "tool": "broken", "arguments": {"code": "40001"}}]') AS id \gset
SELECT stepwise.get_next_step(:'id') ->> 'status';
SELECT try('SELECT stepwise.resume((SELECT checkpoint_id FROM stepwise.checkpoints WHERE plan_id = $1), ''true'', run_tools => true)', :'id');
-- the answer was rolled back too
SELECT status FROM stepwise.step WHERE plan_id = :'id' ORDER BY step_order;

-- resources
SELECT try_run('[{"name": "read", "resources": ["broken://1"]}]');
SELECT try_run('[{"name": "read", "resources": ["broken://1"], "tool": "broken"}]');

-- a nested plan
SELECT stepwise.define_workflow('{"name": "inner", "steps": [{"name": "pay", "tool": "broken", "arguments": {"code": "XX000"}}]}') ->> 'name';
SELECT try_run('[{"name": "outer", "workflow": "inner"}]');

-- a tool that runs another plan: both steps, the inner one first
SELECT plan('[{"name": "pay", "tool": "broken", "arguments": {"code": "53100"}}]') AS other \gset
SELECT try_run(jsonb_build_array(jsonb_build_object('name', 'both', 'tool', 'run_other', 'arguments', jsonb_build_object('plan', :'other'))));

-- after an error that only fails a step, the context of the next error names the next step alone
SELECT try_run('[{"name": "one", "tool": "broken", "arguments": {"code": "P0001"}, "dependsOn": []},
                 {"name": "two", "tool": "broken", "arguments": {"code": "58030"}}]');

SELECT stepwise.drop_resource('broken://*') ->> 'pattern';
SELECT stepwise.drop_tool(name) ->> 'name' FROM unnest('{broken,slow,run_other}'::text[]) AS name;
DROP SCHEMA regress_run_ended CASCADE;
