-- The variables of a plan: its own, and those that show its progress.

\set ECHO none
\i test/tools.sql
\set ECHO all

CREATE SCHEMA regress_variables;
GRANT USAGE ON SCHEMA regress_variables TO PUBLIC;
SET search_path = regress_variables;

CREATE FUNCTION fail(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it failed'; END $$;
CREATE FUNCTION say(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT a';
SELECT stepwise.register_tool('say', 'say(jsonb)') ->> 'name', stepwise.register_tool('fail', 'fail(jsonb)') ->> 'name';

-- ---------- progress ----------

SELECT stepwise.create_plan('deploy', 'Bring it out', '[{"name": "ok", "tool": "say", "arguments": {"x": [1]}}, {"name": "bad", "tool": "fail"}, {"name": "no", "tool": "say", "condition": "false"},
    {"name": "think", "instructions": "think"}, {"name": "last", "tool": "say"}]', on_failure => 'continue') ->> 'planId' AS id \gset
SELECT jsonb_pretty(stepwise.task_variables(:'id'));
SELECT stepwise.run(:'id') ->> 'task_status';
SELECT jsonb_pretty(stepwise.task_variables(:'id'));

-- ---------- its own ----------

SELECT stepwise.set_variables(:'id', '{"region": "eu", "deep": {"a": 1, "b": 2}, "n": 1.50}') -> 'variables';
-- merged by name, not deeper; null deletes
SELECT stepwise.set_variables(:'id', '{"deep": {"c": 3}, "region": null, "never": null}') -> 'variables';
SELECT stepwise.set_variables(:'id', '{}') -> 'variables';
SELECT key, value FROM jsonb_each(stepwise.task_variables(:'id')) WHERE key NOT LIKE '\_workflow.%';
SELECT event, detail FROM stepwise.audit WHERE plan_id = :'id' AND detail ->> 'action' = 'set_variables' ORDER BY id;
-- stored beside client results that no step waited for, which cannot be deleted by name
SELECT stepwise.record_tool_result(:'id', 'spare', '[1]') ->> 'variable';
SELECT stepwise.set_variables(:'id', '{"deep": null}') -> 'variables';

-- ---------- refused ----------

SELECT v, pg_temp.try(format('SELECT stepwise.set_variables(%L, %L)', :'id', v))
FROM unnest(ARRAY[NULL, 'null', '1', '[]', '{"_workflow": 1}', '{"_workflow.progress": {}}', '{"a": 1, "_workflow.x": null}', '{"_workflow.extra.spare": null}']) AS v;
SELECT pg_temp.try(format('SELECT stepwise.set_variables(%L, %L)', :'id', jsonb_build_object('a', repeat('x', 1048577))));
SELECT stepwise.set_variables(:'id', jsonb_build_object('a', repeat('x', 600000))) ->> 'planStatus';
SELECT pg_temp.try(format('SELECT stepwise.set_variables(%L, %L)', :'id', jsonb_build_object('b', repeat('x', 600000))));
SELECT pg_temp.try(format('SELECT stepwise.set_variables(%L, %L)', :'id', jsonb_build_object('b', (repeat('[', 64) || repeat(']', 64))::jsonb)));
SELECT jsonb_object_keys(variables) FROM stepwise.plan_detail WHERE plan_id = :'id';
SELECT pg_temp.try('SELECT stepwise.set_variables(NULL, ''{}'')'), pg_temp.try('SELECT stepwise.task_variables(NULL)');
SELECT pg_temp.try('SELECT stepwise.set_variables(''00000000-0000-7000-8000-000000000000'', ''{}'')'), pg_temp.try('SELECT stepwise.task_variables(''00000000-0000-7000-8000-000000000000'')');
-- names that only start like reserved ones are allowed
SELECT stepwise.set_variables(:'id', '{"_workflows": 1, "_workflow_x": 2, "a": null}') -> 'variables';

SELECT stepwise.verify_audit(:'id') -> 'valid';

SELECT count(stepwise.drop_tool(name)) > 0 FROM stepwise.tool WHERE tenant = stepwise.current_tenant() AND coalesce(function, 'regress_variables.') LIKE 'regress_variables.%';
DROP SCHEMA regress_variables CASCADE;
