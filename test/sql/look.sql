-- A run keeps its rows in memory while a tool runs. Whoever looks at the tables meanwhile sees them as if they had been written.

\set ECHO none
\i test/tools.sql
\set ECHO all

CREATE SCHEMA regress_look;
SET search_path = regress_look;

CREATE FUNCTION plan(steps jsonb, on_failure text = NULL) RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('plan', 'to be looked at', steps, on_failure => on_failure) ->> 'planId')::uuid
$$;
-- What the tables say about a plan: its steps, its counters, its chain.
CREATE VIEW told AS
SELECT p.id, concat_ws(' | ', (SELECT string_agg(concat_ws(' ', s.name, s.status, s.attempt, s.result), ', ' ORDER BY s.step_order) FROM stepwise.step AS s WHERE s.plan_id = p.id),
    p.status, p.pending || ' ' || p.in_progress || ' ' || p.completed || ' ' || p.failed,
    (SELECT count(*) FROM stepwise.audit AS a WHERE a.plan_id = p.id) || ' of ' || p.audit_entries || ' entries') AS text
FROM stepwise.plan AS p;

CREATE TABLE note (at int GENERATED ALWAYS AS IDENTITY, text text);
CREATE FUNCTION quiet(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RETURN '1'; END $$;
CREATE FUNCTION look(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO note (text) SELECT t.text FROM told AS t WHERE t.id = (a ->> 'plan')::uuid;
    RETURN '2';
END $$;
CREATE FUNCTION look_stable(a jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN to_jsonb((SELECT t.text FROM told AS t WHERE t.id = (a ->> 'plan')::uuid)); END $$;
CREATE FUNCTION look_sql(a jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT to_jsonb(t.text) FROM regress_look.told AS t WHERE t.id = (a ->> 'plan')::uuid $$;
CREATE FUNCTION look_by_function(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT s -> 'completedCount' FROM stepwise.get_plan_status((a ->> 'plan')::uuid) AS s) || (stepwise.verify_audit((a ->> 'plan')::uuid) -> 'valid');
END $$;
CREATE FUNCTION look_and_fail(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%', (SELECT t.text FROM told AS t WHERE t.id = (a ->> 'plan')::uuid);
END $$;
-- It looks in blocks that are rolled back, and again.
CREATE FUNCTION look_twice(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    first text;
    second text;
BEGIN
    BEGIN
        BEGIN
            SELECT t.text INTO first FROM told AS t WHERE t.id = (a ->> 'plan')::uuid;
        EXCEPTION WHEN division_by_zero THEN
            NULL;
        END;
        PERFORM 1 / 0;
    EXCEPTION WHEN division_by_zero THEN
        SELECT t.text INTO second FROM told AS t WHERE t.id = (a ->> 'plan')::uuid;
    END;
    RETURN to_jsonb(first = second);
END $$;
-- A statement that writes rows, and calls a function for each that looks.
CREATE FUNCTION states(plan uuid) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT string_agg(s.status::text, ' ' ORDER BY s.step_order) FROM stepwise.step AS s WHERE s.plan_id = plan);
END $$;
CREATE FUNCTION look_inside(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    copied int;
BEGIN
    INSERT INTO note (text) VALUES ('one'), ('two');
    INSERT INTO note (text) SELECT states((a ->> 'plan')::uuid) FROM note WHERE text IN ('one', 'two');
    GET DIAGNOSTICS copied = ROW_COUNT;
    RETURN to_jsonb(copied);
END $$;
CREATE FUNCTION look_dynamic(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('SELECT string_agg(status::text, %L ORDER BY step_order) FROM stepwise.step WHERE plan_id = %L', ' ', a ->> 'plan') INTO answer;
    RETURN to_jsonb(answer);
END $$;
CREATE FUNCTION look_by_copy(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    CREATE TEMP TABLE copied AS SELECT s.status, s.step_order FROM stepwise.step AS s WHERE s.plan_id = (a ->> 'plan')::uuid;
    answer := to_jsonb((SELECT string_agg(c.status::text, ' ' ORDER BY c.step_order) FROM copied AS c));
    DROP TABLE copied;
    RETURN answer;
END $$;
SELECT stepwise.register_tool(name, (name || '(jsonb)')::regprocedure) ->> 'name'
FROM unnest('{quiet,look,look_stable,look_sql,look_by_function,look_and_fail,look_twice,look_inside,look_dynamic,look_by_copy}'::text[]) AS name;

-- ---------- each way to look ----------

-- a step that does not look, one that does, another one
CREATE FUNCTION three(tool text, dependencies boolean) RETURNS uuid LANGUAGE sql AS $$
    SELECT plan(jsonb_build_array(jsonb_build_object('name', 'a', 'tool', 'quiet', 'arguments', '{}'::jsonb),
        jsonb_build_object('name', 'b', 'tool', tool, 'arguments', '{"plan": "${plan.id}"}'::jsonb) || CASE WHEN dependencies THEN '{"dependsOn": ["a"]}' ELSE '{}'::jsonb END,
        jsonb_build_object('name', 'c', 'tool', 'quiet')  || CASE WHEN dependencies THEN '{"dependsOn": ["a", {"step": "b", "when": "ended"}]}' ELSE '{}'::jsonb END), 'continue')
$$;
CREATE FUNCTION ran(tool text, dependencies boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan uuid := three(tool, dependencies);
BEGIN
    TRUNCATE note;
    PERFORM stepwise.run(plan);
    RETURN concat_ws(E'\n', (SELECT concat_ws(' | ', s.status, s.message, s.result) FROM stepwise.step AS s WHERE s.plan_id = plan AND s.name = 'b'),
        (SELECT string_agg('note: ' || n.text, E'\n' ORDER BY n.at) FROM note AS n), (SELECT 'after: ' || t.text FROM told AS t WHERE t.id = plan),
        stepwise.verify_audit(plan) ->> 'valid');
END $$;
SELECT tool || E'\n' || ran(tool, false) FROM unnest('{look,look_stable,look_sql,look_by_function,look_and_fail,look_twice,look_inside,look_dynamic,look_by_copy}'::text[]) AS tool;
-- with dependencies it comes to the same
SELECT tool, ran(tool, true) = ran(tool, false)
FROM unnest('{look,look_stable,look_sql,look_by_function,look_and_fail,look_twice,look_inside,look_dynamic,look_by_copy}'::text[]) AS tool;

-- a cursor from before the run keeps its snapshot
BEGIN;
SELECT three('quiet', false) AS id \gset
DECLARE before CURSOR FOR SELECT string_agg(status::text, ' ' ORDER BY step_order) FROM stepwise.step WHERE plan_id = :'id';
SELECT stepwise.run(:'id') ->> 'task_status';
FETCH before;
COMMIT;

-- ---------- a tool that changes the tables, or their definition ----------

CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO regress_look.note (text) VALUES (concat_ws(' ', NEW.name, OLD.status, 'to', NEW.status));
    RETURN NEW;
END $$;
CREATE FUNCTION alter_tables(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE a ->> 'sql';
    IF a ? 'fail' THEN
        RAISE EXCEPTION 'it failed';
    END IF;
    RETURN '3';
END $$;
SELECT stepwise.register_tool('alter_tables', 'alter_tables(jsonb)') ->> 'name';
-- from there on, each change is written and fires the trigger; if the tool fails, there is no trigger
SELECT plan(jsonb_build_array('{"name": "a", "tool": "quiet"}'::jsonb,
    jsonb_build_object('name', 'b', 'tool', 'alter_tables', 'arguments', x || '{"sql": "CREATE TRIGGER see AFTER UPDATE ON stepwise.step FOR EACH ROW EXECUTE FUNCTION regress_look.see()"}'),
    '{"name": "c", "tool": "quiet"}'::jsonb, '{"name": "d", "tool": "quiet"}'::jsonb), 'continue') IS NOT NULL FROM unnest(ARRAY['{"fail": 1}', '{}']::jsonb[]) AS x;
TRUNCATE note;
SELECT stepwise.run(p.id) ->> 'task_status', (SELECT string_agg(n.text, ', ' ORDER BY n.at) FROM note AS n)
FROM stepwise.plan AS p WHERE p.goal = 'to be looked at' AND p.status = 'planning' ORDER BY p.id;
SELECT string_agg(n.text, ', ' ORDER BY n.at) FROM note AS n;
DROP TRIGGER see ON stepwise.step;
-- a column more
SELECT stepwise.run(plan('[{"name": "a", "tool": "quiet"}, {"name": "b", "tool": "alter_tables", "arguments": {"sql": "ALTER TABLE stepwise.step ADD COLUMN mine text"}},
    {"name": "c", "tool": "quiet"}]')) ->> 'task_status';
ALTER TABLE stepwise.step DROP COLUMN mine;

-- ---------- runs in runs ----------

CREATE FUNCTION run_another(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    other uuid := plan(a -> 'steps', 'continue');
    answer jsonb;
BEGIN
    answer := stepwise.run(other) -> 'steps';
    IF a ? 'fail' THEN
        RAISE EXCEPTION 'it failed after %', answer;
    END IF;
    RETURN answer;
END $$;
SELECT stepwise.register_tool('run_another', 'run_another(jsonb)') ->> 'name';
SELECT plan(format('[{"name": "a", "tool": "quiet"}, {"name": "b", "tool": "run_another", "arguments": %s}, {"name": "c", "tool": "quiet"}, {"name": "d", "tool": "look", "arguments": {"plan": "${plan.id}"}}]',
    x)::jsonb, 'continue') IS NOT NULL
FROM unnest(ARRAY['{"steps": [{"name": "x", "tool": "quiet"}, {"name": "y", "tool": "quiet"}]}',
    '{"steps": [{"name": "x", "tool": "quiet"}, {"name": "y", "tool": "look_and_fail", "arguments": {"plan": "$${plan.id}"}}, {"name": "z", "tool": "quiet"}]}',
    '{"fail": 1, "steps": [{"name": "x", "tool": "quiet"}, {"name": "y", "tool": "quiet"}]}',
    '{"fail": 1, "steps": [{"name": "x", "tool": "look_by_function", "arguments": {"plan": "$${plan.id}"}}, {"name": "y", "tool": "quiet"}]}']) AS x;
TRUNCATE note;
SELECT stepwise.run(p.id) ->> 'task_status' FROM stepwise.plan AS p WHERE p.goal = 'to be looked at' AND p.status = 'planning' ORDER BY p.id;
SELECT text FROM note ORDER BY at;

-- ---------- the same plans, with each change written at once and with rows in memory ----------

-- Something of everything: references, conditions, branches, failures, dependencies, nested plans, gates, prompts.
SELECT stepwise.define_workflow('{"name": "look_below", "inputs": {"n": {"type": "integer"}}, "steps": [{"name": "x", "tool": "say", "arguments": {"n": "${inputs.n}"}},
    {"name": "y", "tool": "say", "arguments": {"n": "${steps.x.outputs.n}"}}], "outputs": {"n": "${steps.y.outputs.n}"}}') ->> 'version';
CREATE FUNCTION say(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF a ? 'fail' THEN
        RAISE EXCEPTION '%', a ->> 'fail';
    END IF;
    RETURN a;
END $$;
SELECT stepwise.register_tool('say', 'say(jsonb)', '{"properties": {"n": {"type": "number"}}}') ->> 'name';
CREATE TABLE definition (name text, steps jsonb, branches jsonb DEFAULT '[]', on_failure text);
INSERT INTO definition (name, steps, on_failure) VALUES
('sequence', '[{"name": "a", "tool": "say", "arguments": {"n": 1}, "binding": "first"}, {"name": "b", "tool": "say", "arguments": {"n": "${bindings.first.n}"}},
  {"name": "c", "tool": "say", "condition": "${steps.b.outputs.n} > 1"}, {"name": "d", "tool": "say", "arguments": {"s": "${steps.b.status} ${steps.c.skipped}"}}]', 'stop'),
('fails, stop', '[{"name": "a", "tool": "say"}, {"name": "b", "tool": "say", "arguments": {"fail": "no"}}, {"name": "c", "tool": "say"}]', 'stop'),
('fails, continue', '[{"name": "a", "tool": "say"}, {"name": "b", "tool": "say", "arguments": {"fail": "no"}}, {"name": "c", "tool": "say", "arguments": {"x": "${steps.b.outputs}"}}]', 'continue'),
('fails, pause', '[{"name": "a", "tool": "say"}, {"name": "b", "tool": "say", "arguments": {"fail": "no"}}, {"name": "c", "tool": "say"}]', 'pause'),
('fails, fail', '[{"name": "a", "tool": "say"}, {"name": "b", "tool": "say", "arguments": {"fail": "no"}}, {"name": "c", "tool": "say"}]', 'fail'),
('isError', '[{"name": "a", "tool": "say", "arguments": {"isError": true, "message": "bad"}}, {"name": "b", "tool": "say", "dependsOn": ["a"]},
  {"name": "c", "tool": "say", "dependsOn": [{"step": "a", "required": false}]}]', 'continue'),
('diamond', '[{"name": "d", "tool": "say", "dependsOn": ["b", "c"]}, {"name": "c", "tool": "say", "dependsOn": ["a"]}, {"name": "b", "tool": "say", "dependsOn": ["a"]}, {"name": "a", "tool": "say", "dependsOn": []}]', NULL),
('wide', (SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'tool', 'say', 'dependsOn', CASE WHEN i = 1 THEN '[]'::jsonb WHEN i < 40 THEN '["s1"]' ELSE jsonb_build_array('s' || i - 1, 's' || i - 30) END)) FROM generate_series(1, 80) AS i), NULL),
('blocked', '[{"name": "a", "tool": "say", "dependsOn": []}, {"name": "b", "tool": "say", "arguments": {"n": "x"}, "dependsOn": ["a"]}, {"name": "c", "tool": "elsewhere", "dependsOn": ["a"]},
  {"name": "d", "tool": "say", "dependsOn": ["a"]}, {"name": "e", "tool": "say", "arguments": {"z": "${steps.a.outputs.zzz}"}, "dependsOn": ["a"]}]', NULL),
('nested', '[{"name": "a", "tool": "say"}, {"name": "b", "workflow": "look_below", "arguments": {"n": 5}}, {"name": "c", "tool": "say", "arguments": {"n": "${steps.b.outputs.n}"}}, {"name": "d", "workflow": "look_below", "arguments": {"n": 6}}]', NULL),
('prompt', '[{"name": "a", "tool": "say"}, {"name": "b", "prompt": "Go on?"}, {"name": "c", "tool": "say"}]', NULL),
('gates', '[{"name": "a", "tool": "say"}, {"name": "b", "tool": "say", "review": {"when": "after"}, "dependsOn": ["a"]}, {"name": "c", "tool": "say", "review": {"when": "before"}, "dependsOn": ["a"]}, {"name": "d", "tool": "say", "dependsOn": ["a"]}]', NULL),
('attempts', '[{"name": "a", "tool": "say", "maxAttempts": 1, "retryable": true, "arguments": {"fail": "once"}}, {"name": "b", "tool": "say"}]', 'continue'),
('long', (SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'tool', 'say', 'arguments', CASE WHEN i % 7 = 0 THEN '{"fail": "seven"}'::jsonb WHEN i > 1 AND i % 5 = 1 THEN jsonb_build_object('b', format('${steps.s%s.status}', i - 1)) ELSE '{}' END)) FROM generate_series(1, 600) AS i), 'continue');
INSERT INTO definition (name, steps, branches) VALUES
('branches', '[{"name": "a", "tool": "say", "arguments": {"n": 1}}, {"name": "b", "tool": "say"}, {"name": "c", "tool": "say"}, {"name": "d", "tool": "say"}]',
 '[{"afterStep": "a", "conditionExpression": "result.n == 1", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "added", "tool": "say"}]}},
   {"afterStep": "b", "conditionExpression": "outcome == ''success''", "ifTrueAction": "skip_to", "actionParams": {"stepName": "d"}}]');

CREATE TABLE come (how text, name text, steps text, plan text, audit text);
-- What must be the same. Ids and times differ, so they are left out.
CREATE FUNCTION come(how text, name text, id uuid) RETURNS void LANGUAGE sql AS $$
    INSERT INTO come SELECT how, name,
        (SELECT string_agg(concat_ws(' ', s.name, s.status, s.outcome, s.attempt, s.execution_order, s.blockers, s.ready_mark OR s.step_order = ANY (q.ready_steps), s.holds, s.message, s.result, s.inputs, s.pause_reason - 'checkpointId', s.error,
            s.started_at IS NULL, s.completed_at IS NULL, s.completed_at >= s.started_at), E'\n' ORDER BY q.depth, q.parent_names, s.step_order)
         FROM stepwise.plan AS q JOIN stepwise.step AS s ON s.plan_id = q.id WHERE q.root_id = $3),
        (SELECT string_agg(concat_ws(' ', q.name, q.status, q.outcome, q.pending, q.in_progress, q.completed, q.failed, q.skipped, q.awaiting_input, q.pause_reason - 'checkpointId', q.outputs, q.next_order, q.started_steps,
            q.paused, q.holding, q.open_failures, q.unsuccessful, q.audit_entries, q.message, q.updated_at >= coalesce(q.completed_at, q.started_at, q.created_at)), E'\n' ORDER BY q.depth, q.parent_names)
         FROM stepwise.plan AS q WHERE q.root_id = $3),
        (SELECT string_agg(concat_ws(' ', a.event, s.name, a.detail - 'checkpointId' - 'nestedPlanId' #- '{reason,checkpointId}', a.at >= q.created_at), E'\n' ORDER BY q.depth, q.parent_names, a.id)
         FROM stepwise.plan AS q JOIN stepwise.audit AS a ON a.plan_id = q.id LEFT JOIN stepwise.step AS s ON s.id = a.step_id WHERE q.root_id = $3)
$$;
CREATE PROCEDURE come_all(how text, by_step boolean) LANGUAGE plpgsql AS $$
DECLARE
    d definition;
    id uuid;
    answer jsonb;
BEGIN
    FOR d IN SELECT * FROM definition ORDER BY definition.name LOOP
        id := stepwise.create_plan(d.name, 'to be compared', d.steps, d.branches, on_failure => d.on_failure) ->> 'planId';
        IF by_step THEN
            COMMIT;
            CALL stepwise.run_steps(id, result => answer);
        ELSE
            PERFORM stepwise.run(id);
        END IF;
        PERFORM come(how, d.name, id);
    END LOOP;
END $$;
CALL come_all('in memory', false);
CALL come_all('by steps', true);
CREATE FUNCTION pass() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER pass AFTER UPDATE ON stepwise.step FOR EACH ROW EXECUTE FUNCTION pass();
CALL come_all('at once', false);
DROP TRIGGER pass ON stepwise.step;
-- a tool that looks at each step
CREATE OR REPLACE FUNCTION say(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF a ? 'fail' THEN
        RAISE EXCEPTION '%', a ->> 'fail' FROM stepwise.plan LIMIT 1;
    END IF;
    RETURN (SELECT a FROM (SELECT count(*) FROM stepwise.step WHERE status = 'in_progress') AS s);
END $$;
CALL come_all('looking', false);
SELECT x.how, count(*), count(*) FILTER (WHERE x.steps = y.steps AND x.plan = y.plan AND x.audit = y.audit) AS same
FROM come AS x JOIN come AS y USING (name) WHERE x.how <> 'at once' AND y.how = 'at once' GROUP BY x.how ORDER BY x.how;
SELECT x.how, name, x.steps, y.steps, x.plan, y.plan, x.audit, y.audit FROM come AS x JOIN come AS y USING (name)
WHERE y.how = 'at once' AND NOT (x.steps = y.steps AND x.plan = y.plan AND x.audit = y.audit);

-- ---------- a column of a user in the audit log, and one that was dropped ----------

ALTER TABLE stepwise.audit_log ADD COLUMN host text DEFAULT 'here';
SELECT plan(jsonb_build_array(jsonb_build_object('name', 'a', 'tool', 'look_at_log'))) AS plan \gset
CREATE FUNCTION look_at_log(a jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT to_jsonb(count(*) || ' of ' || (SELECT p.audit_entries FROM stepwise.plan AS p WHERE p.id = l.plan_id) || ' entries')
    FROM stepwise.audit AS l WHERE l.plan_id = (SELECT p.id FROM stepwise.plan AS p ORDER BY p.id DESC LIMIT 1) GROUP BY l.plan_id
$$;
SELECT stepwise.register_tool('look_at_log', 'look_at_log(jsonb)') ->> 'name';
SELECT stepwise.run(:'plan') ->> 'task_status';
SELECT result FROM stepwise.step WHERE plan_id = :'plan';
SELECT DISTINCT host FROM stepwise.audit_log WHERE plan_id = :'plan';
ALTER TABLE stepwise.audit_log DROP COLUMN host;
SELECT plan(jsonb_build_array(jsonb_build_object('name', 'a', 'tool', 'look_at_log'))) AS plan \gset
SELECT stepwise.run(:'plan') ->> 'task_status';
SELECT result FROM stepwise.step WHERE plan_id = :'plan';

-- ---------- final checks ----------

SELECT * FROM stepwise.check_integrity();
SELECT DISTINCT stepwise.verify_audit(id) -> 'valid' FROM stepwise.plan WHERE tenant = stepwise.current_tenant();

SELECT count(stepwise.drop_tool(name)) > 0 FROM stepwise.tool WHERE tenant = stepwise.current_tenant() AND function LIKE 'regress_look.%';
SELECT DISTINCT stepwise.cancel_plan(id) ->> 'planStatus' FROM stepwise.plan WHERE goal IN ('to be compared', 'to be looked at') AND completed_at IS NULL AND parent_step_id IS NULL;
SELECT stepwise.drop_workflow('look_below') ->> 'dropped';
DROP SCHEMA regress_look CASCADE;
