-- record_tool_result: results of tools that the client calls, by tool and by step; errors, results without a step, duplicates, ends.

\set ECHO none
\i test/tools.sql
\set ECHO all

CREATE SCHEMA regress_record;
GRANT USAGE ON SCHEMA regress_record TO PUBLIC;
SET search_path = regress_record;

-- An answer, without ids.
CREATE FUNCTION told(answer jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', answer ->> 'task_status',
        (SELECT string_agg(s ->> 'name' || ' ' || (s ->> 'status'), ', ') FROM jsonb_array_elements(answer -> 'steps') AS s),
        'plan ' || (answer ->> 'planStatus'), 'step ' || (answer ->> 'stepStatus'), 'kept as ' || (answer ->> 'variable'),
        CASE WHEN (answer -> 'duplicate')::boolean THEN 'duplicate' END, answer ->> 'pause_reason')
$$;
CREATE FUNCTION plan(steps jsonb, on_failure text = 'continue') RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('plan', 'to be continued', steps, on_failure => on_failure) ->> 'planId')::uuid
$$;
CREATE FUNCTION steps(id uuid) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(concat_ws(' ', s.name, s.status, s.outcome, s.attempt, s.result, s.message), E'\n' ORDER BY s.step_order) FROM stepwise.step AS s WHERE s.plan_id = $1
$$;
CREATE FUNCTION say(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT a';
CREATE FUNCTION fail(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it failed'; END $$;
SELECT stepwise.register_tool('say', 'say(jsonb)') ->> 'name', stepwise.register_tool('fail', 'fail(jsonb)') ->> 'name';

-- ---------- by tool: the step that has it and is due ----------

SELECT plan('[{"name": "a", "tool": "x"}, {"name": "b", "tool": "y"}, {"name": "c", "tool": "x"}, {"name": "d", "tool": "say", "arguments": {"c": "${steps.c.outputs}"}}]') AS id \gset
SELECT told(stepwise.run(:'id'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '{"n": 1}'));
-- the other step with this tool is not due, and no step has that tool
SELECT told(stepwise.record_tool_result(:'id', 'x', '{"n": 3}'));
SELECT told(stepwise.record_tool_result(:'id', 'z', 'null'));
SELECT stepwise.task_variables(:'id') -> '_workflow.extra.x', stepwise.task_variables(:'id') -> '_workflow.extra.z';
SELECT told(stepwise.record_tool_result(:'id', 'y', 'null'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '{"n": 2}'));
SELECT told(stepwise.run(:'id'));
SELECT steps(:'id');
SELECT event, step_id IS NOT NULL, detail - 'resultDigest' FROM stepwise.audit WHERE plan_id = :'id' ORDER BY id;

-- the plan ends by itself after the last step
SELECT plan('[{"name": "a", "tool": "x"}]') AS id \gset
SELECT told(stepwise.record_tool_result(:'id', 'x', '1'));
-- then it accepts no more results, and stores none
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L)', :'id', 'x', '2'));
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L)', :'id', 'z', '2'));
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L, step_name => %L)', :'id', 'x', '2', 'a'));
SELECT count(*) FROM stepwise.plan_detail WHERE plan_id = :'id' AND variables <> '{}';
-- except a repeated call
SELECT told(stepwise.record_tool_result(:'id', 'x', '1', step_name => 'a'));

-- ---------- by name ----------

SELECT plan('[{"name": "a", "tool": "x", "dependsOn": []}, {"name": "b", "tool": "x"}, {"name": "c", "instructions": "think"}, {"name": "d", "tool": "x"}, {"name": "ask", "prompt": "Sure?"}]') AS id \gset
SELECT told(stepwise.record_tool_result(:'id', 'x', '"b"', step_name => 'b'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '"b"', step_name => 'b'));
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L, step_name => %L)', :'id', 'x', '"other"', 'b'));
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L, step_name => %L, outcome => %L)', :'id', 'x', '"b"', 'b', 'failure'));
-- with another tool than planned, and for a step without a tool
SELECT told(stepwise.record_tool_result(:'id', 'y', '"d"', step_name => 'd'));
SELECT told(stepwise.record_tool_result(:'id', '', '"c"', step_name => 'c'));
SELECT told(stepwise.record_tool_result(:'id', NULL, '"a"', step_name => 'a'));
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L, step_name => %L)', :'id', 'x', '1', 'ask'));
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L, step_name => %L)', :'id', 'x', '1', 'none'));
-- a step that a worker has claimed takes no result from others, by name neither
SELECT plan('[{"name": "a", "tool": "x"}]') AS id \gset
SELECT stepwise.get_next_step(:'id', worker => 'w') ->> 'name';
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L)', :'id', 'x', '1'));
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L, step_name => %L)', :'id', 'x', '1', 'a'));

-- ---------- errors and outcomes ----------

SELECT plan('[{"name": "a", "tool": "x", "retryable": true}, {"name": "b", "tool": "say", "arguments": {"a": "${steps.a.outputs.n}"}}]', 'pause') AS id \gset
SELECT told(stepwise.record_tool_result(:'id', 'x', '{"error": "no answer", "code": "08001"}', true));
SELECT told(stepwise.record_tool_result(:'id', 'x', '{"error": "no answer", "code": "08001"}', true, step_name => 'a'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '"still none"', true));
SELECT told(stepwise.run(:'id'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '{"n": 5}'));
SELECT told(stepwise.run(:'id'));
SELECT steps(:'id');
SELECT result, stepwise.record_tool_result(plan('[{"name": "a", "tool": "x"}]', 'pause'), 'x', result, true) -> 'pause_reason' -> 'error'
FROM unnest(ARRAY['null', '"words"', '7', '{"message": "m"}', '{"error": {"deep": 1}}', '["list"]']::jsonb[]) AS result;
SELECT on_failure, told(stepwise.record_tool_result(plan('[{"name": "a", "tool": "x"}, {"name": "b", "tool": "y"}]', on_failure), 'x', '"no"', true)) FROM unnest('{continue,pause,fail}'::text[]) AS on_failure;
SELECT plan('[{"name": "a", "tool": "x"}, {"name": "b", "tool": "y"}, {"name": "c", "tool": "say", "dependsOn": ["a"]}, {"name": "d", "tool": "say", "dependsOn": ["b"]}]') AS id \gset
SELECT told(stepwise.record_tool_result(:'id', 'x', '{"n": 5}', outcome => 'failure'));
SELECT told(stepwise.record_tool_result(:'id', 'y', '{"isError": true}'));
SELECT steps(:'id');
SELECT status, outcome FROM stepwise.plan WHERE id = :'id';

-- a failed step of a run takes a result from the client, and the plan goes on
SELECT plan('[{"name": "a", "tool": "fail", "binding": "made"}, {"name": "b", "tool": "say", "arguments": {"made": "${bindings.made.n}"}, "dependsOn": ["a"]}]', 'pause') AS id \gset
SELECT told(stepwise.run(:'id'));
SELECT told(stepwise.record_tool_result(:'id', 'fail', '{"n": 1}'));
SELECT told(stepwise.run(:'id'));
SELECT steps(:'id');

-- ---------- called for the root, reaching nested plans: the first blocking step ----------

SELECT stepwise.define_workflow('{"name": "inner", "steps": [{"name": "first", "tool": "x"}, {"name": "second", "tool": "x"}], "outputs": {"x": "${steps.second.outputs}"}}') ->> 'name';
SELECT plan('[{"name": "outer", "workflow": "inner"}, {"name": "later", "tool": "x"}]') AS id \gset
SELECT told(stepwise.run(:'id'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '"to first"'));
SELECT told(stepwise.run(:'id'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '"to second"', step_name => 'second'));
-- the nested plan has ended; the client may have lost the answer, and repeats the call
SELECT told(stepwise.record_tool_result(:'id', 'x', '"to second"', step_name => 'second'));
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L, step_name => %L)', :'id', 'x', '1', 'second'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '"to later"'));
SELECT p.name, steps(p.id) FROM stepwise.plan AS p WHERE p.root_id = :'id' ORDER BY p.depth;
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L, step_name => %L)', :'id', 'x', '1', 'outer'));

-- ---------- names that occur in several nested plans: a repeated call does not reach another step ----------

CREATE FUNCTION tree(id uuid) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(concat_ws(' ', concat_ws('/', holder.name, s.name), s.status, s.result, s.message), ', ' ORDER BY p.depth, holder.step_order, p.id, s.step_order)
    FROM stepwise.plan AS p JOIN stepwise.step AS s ON s.plan_id = p.id LEFT JOIN stepwise.step AS holder ON holder.id = p.parent_step_id
    WHERE p.root_id = $1
$$;
-- Make the call that why names, with a result, and make it again.
CREATE FUNCTION twice(id uuid, result jsonb) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    call jsonb := stepwise.why(id) #> '{nextCall,arguments}';
    answer jsonb;
BEGIN
    FOR i IN 1 .. 2 LOOP
        answer := stepwise.record_tool_result((call ->> 'plan_id')::uuid, call ->> 'tool', result, step_name => call ->> 'step_name');
        ASSERT answer -> 'rootPlanId' = to_jsonb(id), 'rootPlanId';
        RETURN NEXT concat(told(answer), ' | root ', answer ->> 'rootPlanStatus');
    END LOOP;
END $$;
SELECT stepwise.define_workflow('{"name": "branch", "steps": [{"name": "cli", "tool": "x"}, {"name": "use", "tool": "say", "arguments": {"v": "${steps.cli.outputs.w}"}}]}') ->> 'name';
SELECT stepwise.define_workflow('{"name": "strict", "onFailure": "fail", "steps": [{"name": "cli", "tool": "x"}]}') ->> 'name';

-- parallel: the other step waits for the same tool, so the name is not enough; the call that why names tells the nested plan too
SELECT plan('[{"name": "l", "workflow": "branch", "dependsOn": []}, {"name": "r", "workflow": "branch", "dependsOn": []}]') AS id \gset
SELECT stepwise.run(:'id') -> 'pause_reason' -> 'path';
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L, step_name => %L)', :'id', 'x', '{"w": "first"}', 'cli'));
SELECT twice(:'id', '{"w": "first"}');
SELECT told(stepwise.record_tool_result(:'id', 'x', '{"w": "first"}', step_name => 'cli'));
SELECT tree(:'id');
-- with the call that why names, the same result is no duplicate
SELECT twice(:'id', '{"w": "first"}');
SELECT told(stepwise.run(:'id'));
SELECT tree(:'id');

-- in sequence: the nested plan of the call has ended, and then all have ended
SELECT plan('[{"name": "l", "workflow": "strict"}, {"name": "r", "workflow": "strict"}]') AS id \gset
SELECT told(stepwise.run(:'id'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '"first"', step_name => 'cli'));
SELECT told(stepwise.run(:'id'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '"first"', step_name => 'cli'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '"second"', step_name => 'cli'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '"second"', step_name => 'cli'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '"first"', step_name => 'cli'));
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L, step_name => %L)', :'id', 'x', '"third"', 'cli'));

-- an ended plan does not hide an open one; repeated errors are recognized too
SELECT plan('[{"name": "l", "workflow": "strict", "dependsOn": []}, {"name": "r", "workflow": "strict", "dependsOn": []}]') AS id \gset
SELECT stepwise.get_next_step(:'id') -> 'path', stepwise.get_next_step(:'id') -> 'path';
SELECT told(stepwise.record_tool_result(p.id, 'x', '"no"', true, step_name => 'cli')) FROM stepwise.plan AS p WHERE p.root_id = :'id' AND p.depth = 1 ORDER BY p.id LIMIT 1;
SELECT told(stepwise.record_tool_result(:'id', 'x', '"no"', true, step_name => 'cli'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '"yes"', step_name => 'cli'));
SELECT tree(:'id');

-- a retried step opens a new nested plan; results of the old one do not count there
SELECT plan('[{"name": "l", "workflow": "branch"}]', 'pause') AS id \gset
SELECT told(stepwise.run(:'id'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '{"w": 1}', step_name => 'cli'));
SELECT stepwise.fail_step(s.id, 'no luck') ->> 'stepStatus', stepwise.retry_step(s.id) ->> 'stepStatus' FROM stepwise.step AS s WHERE s.plan_id = :'id';
SELECT told(stepwise.record_tool_result(:'id', 'x', '{"w": 1}', step_name => 'cli'));
SELECT told(stepwise.run(:'id'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '{"w": 1}', step_name => 'cli'));
SELECT tree(:'id');

-- a step of the plan itself comes first, but a step that holds a nested plan takes no result
SELECT plan('[{"name": "l", "workflow": "strict", "dependsOn": []}, {"name": "cli", "tool": "x", "dependsOn": []}]') AS id \gset
SELECT stepwise.run(:'id') -> 'pause_reason' -> 'path';
SELECT twice(:'id', '1');
SELECT told(stepwise.record_tool_result(:'id', 'x', '1', step_name => 'cli'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '1', step_name => 'cli'));
SELECT tree(:'id');
SELECT plan('[{"name": "cli", "workflow": "strict"}]') AS id \gset
SELECT told(stepwise.run(:'id'));
SELECT told(stepwise.record_tool_result(:'id', 'x', '1', step_name => 'cli'));

-- ---------- invalid calls ----------

SELECT plan('[{"name": "a", "tool": "x"}]') AS id \gset
SELECT pg_temp.try('SELECT stepwise.record_tool_result(NULL, ''x'', ''1'')');
SELECT pg_temp.try('SELECT stepwise.record_tool_result(''00000000-0000-7000-8000-000000000000'', ''x'', ''1'')');
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L)', :'id', tool, '1')) FROM unnest(ARRAY[NULL, '', E'x\ny', repeat('x', 201)]) AS tool;
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L, outcome => %L)', :'id', 'x', '1', 'fine'));
SELECT pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L)', :'id', 'x', to_jsonb(repeat('x', 1048577))));
SELECT tool, pg_temp.try(format('SELECT stepwise.record_tool_result(%L, %L, %L) ->> %L', :'id', tool, to_jsonb(repeat('x', 600000)), 'variable')) FROM unnest('{y,z}'::text[]) AS tool;
SELECT told(stepwise.record_tool_result(:'id', 'x', '1', is_error => NULL, outcome => NULL));

SELECT * FROM stepwise.check_integrity();
SELECT DISTINCT stepwise.verify_audit(id) -> 'valid' FROM stepwise.plan WHERE tenant = stepwise.current_tenant();

SELECT count(stepwise.drop_tool(name)) > 0 FROM stepwise.tool WHERE tenant = stepwise.current_tenant() AND coalesce(function, 'regress_record.') LIKE 'regress_record.%';
DROP SCHEMA regress_record CASCADE;
