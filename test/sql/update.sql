-- modify_plan by the names of steps, update_step and set_outputs; all faults of an action and its params in one error.

\set ECHO none
\i test/agent.sql
-- Modify, and show the answer without ids; or the faults of the refused modification.
CREATE FUNCTION pg_temp.modify(plan text, action text, params jsonb) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    code text;
    list text;
BEGIN
    RETURN NEXT pg_temp.plain(stepwise.modify_plan(pg_temp.plan(plan), action, params), 'planId', 'stepId', 'stepIds', 'planStatus');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, list = PG_EXCEPTION_DETAIL;
    IF list LIKE '[%' THEN
        RETURN QUERY SELECT format('%s %s: %s [%s]', code, e ->> 'path', e ->> 'message', e ->> 'hint')
                     FROM jsonb_array_elements(list::jsonb) AS e;
    ELSE
        RETURN NEXT code || ' ' || (pg_temp.plain(to_jsonb(sqlerrm))::jsonb #>> '{}');
    END IF;
END $$;
CREATE FUNCTION pg_temp.update(plan text, step text, keys jsonb) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT pg_temp.modify(plan, 'update_step', jsonb_build_object('step', step) || keys)
$$;
CREATE FUNCTION pg_temp.defined(plan text, step text) RETURNS text LANGUAGE sql AS $$
    SELECT jsonb_strip_nulls(to_jsonb(x))::text
    FROM (SELECT s.name, nullif(s.type, 'custom') AS type, s.tool, s.workflow, s.version, s.prompt, s.instructions, s.arguments, s.resources,
                 s.binding, s.condition, s.condition_operands, s.retryable, s.max_attempts, s.stall_after, s.dynamic, s.wave, s.blockers,
                 (SELECT true FROM stepwise.plan AS p WHERE p.id = s.plan_id AND (s.ready_mark OR s.step_order = ANY (p.ready_steps))) AS ready
          FROM stepwise.step AS s WHERE s.id = pg_temp.step($1, $2)) AS x
$$;
\set ECHO all

-- ---------- steps by their names ----------

SELECT pg_temp.make('named', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]');
SELECT pg_temp.modify('named', 'add_steps', '{"steps": [{"name": "a2"}], "after": "a"}');
SELECT pg_temp.modify('named', 'reorder_steps', '{"steps": ["a", "c", "a2", "b"]}');
SELECT pg_temp.modify('named', 'remove_step', '{"step": "c"}');
SELECT pg_temp.modify('named', 'update_step_instructions', '{"step": "b", "instructions": "Do it"}');
SELECT pg_temp.modify('named', 'fail_step', '{"step": "a2", "reason": "no"}');
SELECT pg_temp.show('named');
-- unknown names, and a name beside an id
SELECT pg_temp.modify('named', 'remove_step', '{"step": "aa"}');
SELECT pg_temp.modify('named', 'remove_step', '{"step": 1}');
SELECT pg_temp.modify('named', 'remove_step', '{"step": null}');
SELECT pg_temp.modify('named', 'remove_step', jsonb_build_object('step', 'b', 'stepId', pg_temp.step('named', 'b')));
SELECT pg_temp.modify('named', 'add_steps', '{"steps": [{"name": "d"}], "after": "x"}');
SELECT pg_temp.modify('named', 'add_steps', '{"steps": [{"name": "d"}], "after": "a", "insertAfterOrder": 1}');
SELECT pg_temp.modify('named', 'reorder_steps', '{"steps": ["a", "b"]}');
SELECT pg_temp.modify('named', 'reorder_steps', '{"steps": ["a", "a", "b", "a2"]}');
SELECT pg_temp.modify('named', 'reorder_steps', '{"steps": ["a", "B", "a2", "x"]}');
SELECT pg_temp.modify('named', 'reorder_steps', '{"steps": []}');
SELECT pg_temp.modify('named', 'reorder_steps', '{}');
-- a step of another plan
SELECT pg_temp.make('elsewhere', '[{"name": "far"}]');
SELECT pg_temp.modify('named', 'remove_step', '{"step": "far"}');
SELECT pg_temp.modify('named', 'remove_step', jsonb_build_object('stepId', pg_temp.step('elsewhere', 'far')));

-- ---------- all faults at once ----------

SELECT pg_temp.modify('named', 'updat_step', '{"stepp": "b", "step": "zz"}');
SELECT pg_temp.modify('named', 'fial_step', '{"step": "zz"}');
SELECT pg_temp.modify('named', 'add_steps', '{"steps": [{"name": "a"}, {"tol": "x"}], "after": "x", "befor": 1}');
SELECT pg_temp.modify('named', 'update_step', '{"step": "b", "arguments": 1, "tool": "x", "prompt": "y", "maxAttempts": 0, "color": null}');
SELECT pg_temp.modify('named', 'explode', '[]');
SELECT pg_temp.modify('named', NULL, NULL);
SELECT pg_temp.modify('named', 'update_step', NULL);

-- ---------- update_step ----------

SELECT stepwise.define_workflow('{"name": "update inner", "inputs": {"x": {"type": "integer"}}, "steps": [{"name": "i"}]}') ->> 'version';
SELECT stepwise.define_workflow('{"name": "update inner", "inputs": {"x": {"type": "integer"}}, "steps": [{"name": "i"}, {"name": "j"}]}') ->> 'version';
SELECT pg_temp.make('changed', '[
    {"name": "find", "binding": "found"},
    {"name": "read", "tool": "fetch", "arguments": {"url": "${bindings.found.url}"}, "retryable": true, "maxAttempts": 2},
    {"name": "tell", "instructions": "Tell", "condition": "${steps.read.succeeded}"}]', outputs => '{"told": "${steps.tell.outputs}"}');
SELECT pg_temp.update('changed', 'read', '{"arguments": {"url": "http://x"}, "maxAttempts": null, "stallAfter": "1 hour", "type": "extract"}');
SELECT pg_temp.defined('changed', 'read');
SELECT pg_temp.update('changed', 'read', '{"tool": null, "arguments": null, "retryable": null, "instructions": "Read ${bindings.found.url}", "type": null}');
SELECT pg_temp.defined('changed', 'read');
SELECT pg_temp.update('changed', 'read', '{"workflow": "update inner", "version": 1, "arguments": {"x": 1}, "instructions": null}');
SELECT pg_temp.defined('changed', 'read');
-- another workflow begins without a version
SELECT pg_temp.update('changed', 'read', '{"workflow": "update inner"}');
SELECT pg_temp.defined('changed', 'read');
SELECT pg_temp.update('changed', 'read', '{"version": 3}');
SELECT pg_temp.update('changed', 'read', '{"workflow": "update outer"}');
SELECT pg_temp.update('changed', 'read', '{"workflow": null, "version": 1}');
SELECT pg_temp.update('changed', 'read', '{"workflow": null, "version": null, "tool": "fetch", "arguments": {"url": "${bindings.found.url}"}}');
SELECT pg_temp.update('changed', 'tell', '{"condition": "${steps.find.succeeded} and ${bindings.found.n} > 1", "resources": ["file:///${bindings.found.url}"]}');
SELECT pg_temp.defined('changed', 'tell');
SELECT pg_temp.update('changed', 'tell', '{"condition": null, "resources": null}');
SELECT pg_temp.defined('changed', 'tell');
-- the kind cannot be two things
SELECT pg_temp.update('changed', 'read', '{"prompt": "Really?"}');
-- references are checked where the step is
SELECT pg_temp.update('changed', 'find', '{"instructions": "${steps.read.outputs} ${steps.nobody.outputs}", "condition": "${steps.find.succeeded}"}');
SELECT pg_temp.update('changed', 'find', '{"condition": "1 ="}');
-- who is referred to keeps name and binding; others may get new ones
SELECT pg_temp.update('changed', 'find', '{"binding": "seen"}');
SELECT pg_temp.update('changed', 'find', '{"binding": null}');
SELECT pg_temp.update('changed', 'tell', '{"name": "say"}');
SELECT pg_temp.update('changed', 'find', '{"name": "seek"}');
SELECT pg_temp.update('changed', 'seek', '{"name": "read"}');
SELECT pg_temp.update('changed', 'seek', '{"name": null}');
SELECT pg_temp.update('changed', 'seek', '{"name": "1x"}');
SELECT pg_temp.update('changed', 'seek', '{}');
SELECT pg_temp.update('changed', 'seek', '{"dependsOn": ["read"]}');
SELECT pg_temp.update('changed', 'seek', '{"dependsOn": []}');
SELECT pg_temp.show('changed');
SELECT pg_temp.log('changed', 'plan_modified');
-- a branch refers to its own step by name, and one may add a step that depends on another
SELECT pg_temp.make('branched', '[{"name": "a"}, {"name": "b"}]', '[
    {"afterStepOrder": 1, "conditionExpression": "steps.a.succeeded", "ifTrueAction": "continue"}]');
SELECT pg_temp.update('branched', 'a', '{"name": "x"}');
SELECT pg_temp.update('branched', 'b', '{"name": "x"}');

-- a long value is in the audit log as its digest
SELECT pg_temp.update('branched', 'a', jsonb_build_object('instructions', repeat('long ', 1000)));
SELECT detail -> 'changes' -> 'instructions' -> 'to' ->> 'bytes', length(detail -> 'changes' -> 'instructions' -> 'to' ->> 'digest') > 32
FROM stepwise.audit WHERE plan_id = pg_temp.plan('branched') AND detail ->> 'action' = 'update_step' ORDER BY id DESC LIMIT 1;

-- ---------- states ----------

SELECT pg_temp.next('changed');
SELECT pg_temp.update('changed', 'seek', '{"instructions": "Too late"}');
SELECT pg_temp.submit('changed', 'seek', '{"url": "http://y"}');
SELECT pg_temp.update('changed', 'seek', '{"instructions": "Too late"}');
-- arguments of an earlier attempt are forgotten
SELECT pg_temp.next('changed');
SELECT pg_temp.fail('changed', 'read');
SELECT pg_temp.update('changed', 'read', '{"arguments": {"url": "http://z"}}');
SELECT pg_temp.update('changed', 'read', '{"name": "other"}');
SELECT stepwise.retry_step(pg_temp.step('changed', 'read')) ->> 'stepStatus';
SELECT pg_temp.next('changed');
SELECT pg_temp.show('changed');
-- a blocked step is looked at again
SELECT pg_temp.make('blocked', '[{"name": "a"}, {"name": "b", "arguments": {"x": "${steps.a.outputs.none}"}}]');
SELECT pg_temp.next('blocked');
SELECT pg_temp.submit('blocked', 'a');
SELECT pg_temp.next('blocked');
SELECT pg_temp.update('blocked', 'b', '{"arguments": {"x": "${steps.a.outputs.neither}"}}');
SELECT pg_temp.show('blocked');
SELECT pg_temp.update('blocked', 'b', '{"arguments": {"x": 1}}');
SELECT pg_temp.show('blocked');
SELECT pg_temp.next('blocked');
-- a plan that has ended
SELECT stepwise.cancel_plan(pg_temp.plan('blocked')) ->> 'planStatus';
SELECT pg_temp.update('blocked', 'b', '{"arguments": {}}');
SELECT pg_temp.modify('blocked', 'set_outputs', '{"outputs": {}}');

-- ---------- dependencies ----------

SELECT pg_temp.make('graph', '[
    {"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["b"], "instructions": "${steps.a.outputs}"},
    {"name": "d", "dependsOn": ["c"]}]');
SELECT pg_temp.update('graph', 'a', '{"dependsOn": ["d"]}');
SELECT pg_temp.update('graph', 'd', '{"dependsOn": ["d", "x", "a", "a"]}');
-- c would not come after a any more
SELECT pg_temp.update('graph', 'b', '{"dependsOn": []}');
SELECT pg_temp.update('graph', 'c', '{"dependsOn": ["a"]}');
SELECT pg_temp.update('graph', 'b', '{"dependsOn": []}');
SELECT s.name, s.wave, s.blockers, (SELECT true FROM stepwise.plan AS p WHERE p.id = s.plan_id AND (s.ready_mark OR s.step_order = ANY (p.ready_steps))) AS ready FROM stepwise.step AS s WHERE s.plan_id = pg_temp.plan('graph') ORDER BY s.step_order;
SELECT pg_temp.update('graph', 'd', '{"dependsOn": [{"step": "b", "required": false}, "c"]}');
SELECT pg_temp.next('graph'), pg_temp.next('graph'), pg_temp.next('graph');
SELECT pg_temp.submit('graph', 'a'), pg_temp.submit('graph', 'b', '{}', 'failure');
-- b has ended: without success, so what requires it is skipped
SELECT pg_temp.update('graph', 'd', '{"dependsOn": ["b", "c"]}');
SELECT pg_temp.show('graph');
SELECT pg_temp.make('graph 2', '[{"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["b"]}]');
SELECT pg_temp.next('graph 2'), pg_temp.submit('graph 2', 'a');
SELECT pg_temp.update('graph 2', 'c', '{"dependsOn": ["a"]}');
SELECT pg_temp.next('graph 2'), pg_temp.next('graph 2'), pg_temp.next('graph 2');

-- ---------- set_outputs ----------

SELECT pg_temp.make('outputs', '[{"name": "a"}, {"name": "b"}]', outputs => '{"old": "${steps.b.outputs}"}');
SELECT pg_temp.modify('outputs', 'set_outputs', '{"outputs": {"new": "${steps.a.outputs.x}"}}');
SELECT pg_temp.modify('outputs', 'set_outputs', '{"outputs": {"new": "${steps.c.outputs.x}"}}');
SELECT pg_temp.modify('outputs', 'set_outputs', '{"outputs": []}');
SELECT pg_temp.modify('outputs', 'set_outputs', '{"output": {}}');
-- what the old outputs needed can be removed now
SELECT pg_temp.modify('outputs', 'remove_step', '{"step": "b"}');
SELECT pg_temp.next('outputs'), pg_temp.submit('outputs', 'a', '{"x": 5}');
SELECT outputs FROM stepwise.plan WHERE id = pg_temp.plan('outputs');

SELECT pg_temp.unsound();
