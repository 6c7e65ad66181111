-- modify_plan: its five actions, and what they refuse. Orders, counters, branches and dependencies stay consistent.

\pset format unaligned
\pset tuples_only on
\set VERBOSITY sqlstate
SET client_min_messages = warning;

-- The steps of a plan in their order.
CREATE FUNCTION pg_temp.steps(plan uuid) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(s.name || CASE WHEN s.status <> 'pending' THEN '=' || s.status ELSE '' END, ' ' ORDER BY s.step_order)
           || CASE WHEN min(s.step_order) = 1 AND max(s.step_order) = count(*) THEN '' ELSE ' HOLES' END
    FROM stepwise.step AS s WHERE s.plan_id = $1
$$;

CREATE FUNCTION pg_temp.id(plan uuid, name text) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM stepwise.step AS s WHERE s.plan_id = $1 AND s.name = $2
$$;

-- The params of an action on one step, or on all in this order.
CREATE FUNCTION pg_temp.step(plan uuid, name text, more jsonb = '{}') RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('stepId', pg_temp.id($1, $2)) || $3
$$;
CREATE FUNCTION pg_temp.sequence(plan uuid, names text) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('stepIds', jsonb_agg(pg_temp.id($1, x.name) ORDER BY x.n))
    FROM string_to_table($2, ' ') WITH ORDINALITY AS x (name, n)
$$;

-- Modify, and show the answer without ids.
CREATE FUNCTION pg_temp.modify(plan uuid, action text, params jsonb, rationale text = NULL) RETURNS jsonb LANGUAGE sql AS $$
    SELECT answer - '{planId,rootPlanId,stepId,stepIds,nextCall}'::text[] || CASE WHEN answer ? 'stepIds'
           THEN jsonb_build_object('stepIds', jsonb_array_length(answer -> 'stepIds')) ELSE '{}' END
    FROM stepwise.modify_plan(plan, action, params, rationale) AS answer
$$;

-- The faults that a refused modification names.
CREATE FUNCTION pg_temp.faults(plan uuid, action text, params jsonb) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    code text;
    list text;
BEGIN
    PERFORM stepwise.modify_plan(plan, action, params);
    RETURN NEXT 'accepted';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, list = PG_EXCEPTION_DETAIL;
    IF list LIKE '[%' THEN
        RETURN QUERY SELECT format('%s %s: %s [%s]', code, e ->> 'path', e ->> 'message', regexp_replace(e ->> 'hint', '[0-9a-f-]{36}', 'ID'))
                     FROM jsonb_array_elements(list::jsonb) AS e;
    ELSE
        RETURN NEXT code || ' ' || regexp_replace(sqlerrm, '[0-9a-f-]{36}', '(id)');
    END IF;
END $$;

SELECT stepwise.create_plan('modified', 'to be modified', '[
    {"name": "search", "binding": "found"},
    {"name": "extract", "arguments": {"from": "${bindings.found.urls}"}},
    {"name": "check", "condition": "${steps.extract.succeeded}"},
    {"name": "write", "instructions": "Write."}]',
    branching_conditions => '[
    {"afterStepOrder": 1, "conditionExpression": "confidence < 0.5", "ifTrueAction": "skip_to", "actionParams": {"stepOrder": 4}},
    {"afterStepOrder": 2, "conditionExpression": "steps.search.succeeded", "ifTrueAction": "add_steps",
     "actionParams": {"steps": [{"name": "again", "instructions": "${steps.extract.outputs}"}]}}]',
    outputs => '{"text": "${steps.write.outputs}"}') ->> 'planId' AS plan \gset

-- ---------- add_steps ----------

SELECT pg_temp.modify(:'plan', 'add_steps', '{"steps": [{"name": "last"}]}', 'one more at the end');
SELECT pg_temp.modify(:'plan', 'add_steps', '{"steps": [{"name": "first"}, {"name": "second"}], "insertAfterOrder": 0}');
SELECT pg_temp.modify(:'plan', 'add_steps', '{"steps": [{"name": "middle", "arguments": {"x": "${bindings.found}"}}], "insertAfterOrder": 3}');
SELECT pg_temp.steps(:'plan');
SELECT every(wave = step_order - 1) FROM stepwise.step WHERE plan_id = :'plan';

-- a refused call changes nothing
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"name": "x"}], "insertAfterOrder": 9}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"name": "x"}], "insertAfterOrder": -1}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"name": "x"}], "insertAfterOrder": 1.5}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"name": "x"}], "insertAfterOrder": 1e30}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"name": "x"}], "insertAfterOrder": "end"}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"name": "x"}], "insertAfterOrder": null}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"name": "search"}, {"typ": "analyze"}], "insertAfterOrder": 100}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"prompt": "${steps.write.outputs}"}], "insertAfterOrder": 2}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"name": "x", "dependsOn": ["search"]}]}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": []}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": {}}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": null}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": 1}');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"step": [], "insert_after_order": 1}');

-- ---------- remove_step ----------

SELECT pg_temp.modify(:'plan', 'remove_step', pg_temp.step(:'plan', 'second'), 'not needed');
SELECT pg_temp.modify(:'plan', 'remove_step', pg_temp.step(:'plan', 'first'));
SELECT pg_temp.modify(:'plan', 'remove_step', pg_temp.step(:'plan', 'middle'));
SELECT pg_temp.steps(:'plan');

-- referred to: by binding, by name in a condition, in branches, as a target, in the outputs
SELECT pg_temp.faults(:'plan', 'remove_step', pg_temp.step(:'plan', 'search'));
SELECT pg_temp.faults(:'plan', 'remove_step', pg_temp.step(:'plan', 'extract'));
SELECT pg_temp.faults(:'plan', 'remove_step', pg_temp.step(:'plan', 'write'));
SELECT pg_temp.faults(:'plan', 'remove_step', '{}');
SELECT pg_temp.faults(:'plan', 'remove_step', '{"stepId": "search"}');
SELECT pg_temp.faults(:'plan', 'remove_step', '{"stepId": 7}');
SELECT pg_temp.faults(:'plan', 'remove_step', '{"stepId": null}');
SELECT pg_temp.faults(:'plan', 'remove_step', '{"stepId": "00000000-0000-0000-0000-000000000000"}');

-- ---------- reorder_steps ----------

SELECT pg_temp.modify(:'plan', 'reorder_steps', pg_temp.sequence(:'plan', 'last search extract check write'));
SELECT pg_temp.steps(:'plan');
SELECT every(wave = step_order - 1) FROM stepwise.step WHERE plan_id = :'plan';
SELECT pg_temp.faults(:'plan', 'reorder_steps', pg_temp.sequence(:'plan', 'write check extract search last'));
SELECT pg_temp.faults(:'plan', 'reorder_steps', pg_temp.sequence(:'plan', 'search search extract last'));
SELECT pg_temp.faults(:'plan', 'reorder_steps', '{"stepIds": []}');
SELECT pg_temp.faults(:'plan', 'reorder_steps', '{"stepIds": "all"}');
SELECT pg_temp.faults(:'plan', 'reorder_steps', '{"stepIds": ["a", null, 3]}');
SELECT pg_temp.faults(:'plan', 'reorder_steps', '{"stepIds": ["00000000-0000-0000-0000-000000000000"]}');
SELECT pg_temp.steps(:'plan');

-- ---------- update_step_instructions ----------

SELECT pg_temp.modify(:'plan', 'update_step_instructions',
                      pg_temp.step(:'plan', 'write', '{"instructions": "Write about ${steps.extract.outputs.title}."}'), 'more precise');
SELECT instructions, dynamic FROM stepwise.step WHERE id = pg_temp.id(:'plan', 'write');
SELECT pg_temp.modify(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'write', '{"instructions": "Write $5."}'));
SELECT instructions, dynamic FROM stepwise.step WHERE id = pg_temp.id(:'plan', 'write');
SELECT pg_temp.modify(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'extract', '{"instructions": "Plain."}'));
SELECT instructions, dynamic FROM stepwise.step WHERE id = pg_temp.id(:'plan', 'extract');
SELECT pg_temp.faults(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'search', '{"instructions": "${steps.write.outputs}"}'));
SELECT pg_temp.faults(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'search', '{"instructions": "${steps.wirte.outputs}"}'));
SELECT pg_temp.faults(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'search', '{"instructions": "${inputs.x}"}'));
SELECT pg_temp.faults(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'search', '{"instructions": "${"}'));
SELECT pg_temp.faults(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'search', '{"instructions": "  "}'));
SELECT pg_temp.faults(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'search'));
SELECT pg_temp.faults(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'search', '{"instructions": 1}'));

-- the pause reason is cleared with the instructions that caused it
SELECT stepwise.create_plan('blamed', 'test', '[{"name": "a"}, {"name": "b", "instructions": "As ${steps.a.outputs.nowhere} says"}]') ->> 'planId' AS blamed \gset
SELECT stepwise.submit_step_result(pg_temp.id(:'blamed', 'a'), '1') ->> 'stepStatus', stepwise.get_next_step(:'blamed') ->> 'status';
SELECT message IS NOT NULL, pause_reason IS NOT NULL FROM stepwise.step WHERE id = pg_temp.id(:'blamed', 'b');
SELECT pg_temp.modify(:'blamed', 'update_step_instructions', pg_temp.step(:'blamed', 'b', '{"instructions": "Go on."}')) IS NOT NULL;
SELECT message, pause_reason FROM stepwise.step WHERE id = pg_temp.id(:'blamed', 'b');

-- ---------- fail_step, and steps that have begun ----------

SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT pg_temp.faults(:'plan', 'remove_step', pg_temp.step(:'plan', 'last'));
SELECT pg_temp.modify(:'plan', 'fail_step', pg_temp.step(:'plan', 'last', '{"reason": "not possible"}'), 'no way');
SELECT pg_temp.faults(:'plan', 'fail_step', pg_temp.step(:'plan', 'last', '{"reason": "again"}'));
SELECT pg_temp.faults(:'plan', 'fail_step', pg_temp.step(:'plan', 'search'));
SELECT message FROM stepwise.step WHERE id = pg_temp.id(:'plan', 'last');
-- a pending step may be moved before finished ones, and is then the next
SELECT pg_temp.modify(:'plan', 'add_steps', '{"steps": [{"name": "before"}], "insertAfterOrder": 0}');
SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT stepwise.submit_step_result(pg_temp.id(:'plan', 'before'), '{}') ->> 'planStatus';
SELECT pg_temp.modify(:'plan', 'reorder_steps', pg_temp.sequence(:'plan', 'search extract before last check write'));
SELECT pg_temp.modify(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'before', '{"instructions": "Done already."}'));
SELECT pg_temp.steps(:'plan');
SELECT stepwise.get_next_step(:'plan') ->> 'name';
-- the branch goes to its target, even if the order of that step has changed
SELECT stepwise.submit_step_result(pg_temp.id(:'plan', 'search'), '{"urls": []}', confidence => 0.1) #>> '{branch,action}';
SELECT pg_temp.steps(:'plan');
-- a branch that was decided no longer protects its target; a step that is not pending cannot be removed
SELECT pg_temp.faults(:'plan', 'remove_step', pg_temp.step(:'plan', 'check'));
SELECT pg_temp.faults(:'plan', 'remove_step', pg_temp.step(:'plan', 'write'));
SELECT stepwise.advance((stepwise.get_next_step(:'plan') ->> 'stepId')::uuid, '"text"') #>> '{next,outputs}';
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"name": "x"}]}');

-- ---------- invalid modifications ----------

SELECT stepwise.create_plan('other', 'for another', '[{"name": "only"}]') ->> 'planId' AS other \gset
SELECT pg_temp.faults(:'other', 'remove_steps', '{}');
SELECT pg_temp.faults(:'other', 'addSteps', '{}');
SELECT pg_temp.faults(:'other', 'explode', '{}');
SELECT pg_temp.faults(:'other', NULL, '{}');
SELECT pg_temp.faults(:'other', 'add_steps', NULL);
SELECT pg_temp.faults(:'other', 'add_steps', '[]');
SELECT pg_temp.faults(:'other', 'add_steps', '"steps"');
SELECT pg_temp.faults(NULL, 'add_steps', '{}');
SELECT pg_temp.faults('00000000-0000-0000-0000-000000000000', 'add_steps', '{}');
SELECT pg_temp.faults(:'other', 'remove_step', pg_temp.step(:'other', 'only'));
SELECT pg_temp.faults(:'other', 'fail_step', pg_temp.step(:'plan', 'write', '{"reason": "of another plan"}'));
SELECT pg_temp.faults(:'other', 'reorder_steps', pg_temp.sequence(:'plan', 'write'));
SELECT stepwise.modify_plan(:'other', 'add_steps', '{"steps": [{"name": "x"}]}', repeat('x', 2000000));
SELECT pg_temp.steps(:'other');

-- removing the last pending step completes the plan; adding steps to a plan that has not started does not start it
SELECT pg_temp.modify(:'other', 'add_steps', '{"steps": [{"name": "more"}]}');
SELECT stepwise.submit_step_result(pg_temp.id(:'other', 'only'), '1') ->> 'planStatus';
SELECT pg_temp.modify(:'other', 'remove_step', pg_temp.step(:'other', 'more'));

-- ---------- the states in which a plan is not modified ----------

CREATE FUNCTION pg_temp.two() RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('states', 'in each state', '[{"name": "a"}, {"name": "b"}]') ->> 'planId')::uuid
$$;
SELECT pg_temp.two() AS p \gset
SELECT stepwise.request_user_review((stepwise.get_next_step(:'p') ->> 'stepId')::uuid, 'look') ->> 'planStatus';
SELECT pg_temp.faults(:'p', 'add_steps', '{"steps": [{"name": "x"}]}');
SELECT pg_temp.two() AS p \gset
SELECT stepwise.get_next_step(:'p') ->> 'name';
SELECT stepwise.get_plan_status(:'p', interval '0') ->> 'status';
SELECT pg_temp.faults(:'p', 'add_steps', '{"steps": [{"name": "x"}]}');
SELECT stepwise.cancel_plan(:'p') ->> 'planStatus';
SELECT pg_temp.faults(:'p', 'update_step_instructions', pg_temp.step(:'p', 'a', '{"instructions": "x"}'));
SELECT stepwise.create_plan('f', 'fails', '[{"name": "a"}, {"name": "b"}]', on_failure => 'fail') ->> 'planId' AS p \gset
SELECT pg_temp.modify(:'p', 'fail_step', pg_temp.step(:'p', 'b', '{"reason": "no"}'));
SELECT pg_temp.faults(:'p', 'add_steps', '{"steps": [{"name": "x"}]}');

-- ---------- with dependencies ----------

SELECT stepwise.create_plan('graph', 'with dependencies', '[
    {"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": [{"step": "b", "required": false}]}, {"name": "d"}]',
    inputs => '{"x": 1}') ->> 'planId' AS plan \gset
SELECT pg_temp.modify(:'plan', 'add_steps', '{"steps": [{"name": "e", "dependsOn": ["b", "f"]}, {"name": "f", "dependsOn": ["a"]}], "insertAfterOrder": 1}');
SELECT string_agg(format('%s:%s:%s:%s', name, wave, blockers, coalesce((SELECT true FROM stepwise.plan AS p WHERE p.id = s.plan_id AND (s.ready_mark OR s.step_order = ANY (p.ready_steps))), false)), ' ' ORDER BY step_order) FROM stepwise.step AS s WHERE plan_id = :'plan';
SELECT pg_temp.faults(:'plan', 'remove_step', pg_temp.step(:'plan', 'b'));
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"name": "g", "dependsOn": ["h"]}, {"name": "h", "dependsOn": ["g"]}]}');
SELECT pg_temp.faults(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'd', '{"instructions": "${steps.a.outputs}"}'));
SELECT pg_temp.modify(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'e', '{"instructions": "${steps.a.outputs} ${inputs.x}"}'));
-- the order of steps is arbitrary, since dependencies decide which step runs first
SELECT pg_temp.modify(:'plan', 'reorder_steps', pg_temp.sequence(:'plan', 'c d e f b a'));
SELECT string_agg(format('%s:%s', name, wave), ' ' ORDER BY step_order) FROM stepwise.step WHERE plan_id = :'plan';
SELECT pg_temp.modify(:'plan', 'remove_step', pg_temp.step(:'plan', 'e'));
SELECT count(*) FROM stepwise.dependency WHERE plan_id = :'plan';
SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT stepwise.get_next_step(:'plan') ->> 'name';
-- a failed step causes its required dependents to be skipped, also those that are added later
SELECT pg_temp.modify(:'plan', 'fail_step', pg_temp.step(:'plan', 'a', '{"reason": "no"}'));
SELECT pg_temp.modify(:'plan', 'add_steps', '{"steps": [{"name": "late", "dependsOn": ["a"]}, {"name": "later", "dependsOn": ["late", "d"]}]}');
SELECT pg_temp.steps(:'plan');
SELECT stepwise.submit_step_result(pg_temp.id(:'plan', 'd'), '1') ->> 'planStatus';

-- ---------- reasons and nested plans ----------

-- the instructions may be the cause of a pause reason
SELECT stepwise.create_plan('paused', 'to be unblocked', '[{"name": "a"}, {"name": "b", "instructions": "${steps.a.outputs.x}"}]') ->> 'planId' AS plan \gset
SELECT stepwise.advance((stepwise.get_next_step(:'plan') ->> 'stepId')::uuid, '{}') #>> '{next,pauseReason,type}';
SELECT pg_temp.modify(:'plan', 'update_step_instructions', pg_temp.step(:'plan', 'b', '{"instructions": "Without it."}'));
SELECT pause_reason FROM stepwise.plan WHERE id = :'plan';
SELECT stepwise.get_next_step(:'plan') ->> 'instructions';
SELECT stepwise.modify_plan(:'plan', 'add_steps', '{"steps": [{"name": "c", "instructions": "${steps.a.outputs.x}"}]}') ->> 'planStatus';
SELECT stepwise.advance(pg_temp.id(:'plan', 'b'), '{}') #>> '{next,pauseReason,type}';
SELECT pg_temp.modify(:'plan', 'remove_step', pg_temp.step(:'plan', 'c'));

SELECT stepwise.define_workflow('{"name": "modified_below", "inputs": {"n": {"type": "integer", "required": false}},
    "steps": [{"name": "x"}, {"name": "y"}]}') ->> 'version';
SELECT stepwise.create_plan('above', 'with a nested plan', '[{"name": "n", "workflow": "modified_below"}, {"name": "z"}]') ->> 'planId' AS plan \gset
SELECT stepwise.get_next_step(:'plan') ->> 'planId' AS below \gset
SELECT pg_temp.modify(:'below', 'add_steps', '{"steps": [{"name": "w", "instructions": "${inputs.n}"}], "insertAfterOrder": 1}');
SELECT pg_temp.modify(:'below', 'fail_step', pg_temp.step(:'below', 'w', '{"reason": "no"}'));
SELECT pg_temp.steps(:'below'), pg_temp.steps(:'plan');
SELECT stepwise.modify_plan(:'plan', 'fail_step', pg_temp.step(:'plan', 'n', '{"reason": "no"}')) ->> 'stepStatus';
SELECT pg_temp.steps(:'below'), pg_temp.steps(:'plan');
SELECT stepwise.retry_step(pg_temp.id(:'plan', 'n')) ->> 'stepStatus';
SELECT pg_temp.faults(:'plan', 'remove_step', pg_temp.step(:'plan', 'n'));

-- added steps cannot create a circle, direct or indirect
SELECT stepwise.define_workflow('{"name": "modify inner", "steps": [{"name": "x"}, {"name": "z"}]}') ->> 'version',
       stepwise.define_workflow('{"name": "modify outer", "steps": [{"name": "in", "workflow": "modify inner"}, {"name": "last"}]}') ->> 'version';
SELECT stepwise.start_workflow('modify outer') ->> 'planId' AS outer \gset
SELECT stepwise.get_next_step(:'outer') ->> 'planId' AS inner \gset
SELECT pg_temp.faults(:'outer', 'add_steps', '{"steps": [{"name": "again", "workflow": "modify outer"}]}');
SELECT pg_temp.faults(:'inner', 'add_steps', '{"steps": [{"name": "again", "workflow": "modify outer"}]}');
SELECT pg_temp.faults(:'inner', 'add_steps', '{"steps": [{"name": "again", "workflow": "modify inner"}]}');
SELECT pg_temp.modify(:'outer', 'add_steps', '{"steps": [{"name": "again", "workflow": "modify inner"}]}') IS NOT NULL;
SET stepwise.allow_recursion = on;
SELECT pg_temp.modify(:'inner', 'add_steps', '{"steps": [{"name": "again", "workflow": "modify outer"}]}') IS NOT NULL;
RESET stepwise.allow_recursion;

-- ---------- another tenant, many steps ----------

BEGIN;
SELECT stepwise.enter_tenant('modify_b');
SELECT pg_temp.faults(:'plan', 'add_steps', '{"steps": [{"name": "x"}]}');
SELECT stepwise.create_plan('mine', 'of b', '[{"name": "only"}]') ->> 'planId' AS mine \gset
SELECT pg_temp.faults(:'mine', 'fail_step', pg_temp.step(:'plan', 'z', '{"reason": "foreign"}'));
COMMIT;

SELECT stepwise.create_plan('many', 'many steps', (SELECT jsonb_agg(jsonb_build_object('name', 's' || n)) FROM generate_series(1, 2000) AS n)) ->> 'planId' AS plan \gset
SELECT (stepwise.modify_plan(:'plan', 'reorder_steps', jsonb_build_object('stepIds',
           (SELECT jsonb_agg(id ORDER BY step_order DESC) FROM stepwise.step WHERE plan_id = :'plan')))) ->> 'stepCount';
SELECT stepwise.get_next_step(:'plan') ->> 'name';

-- ---------- final checks ----------

SELECT a.event, a.detail ->> 'action', a.detail ->> 'name', a.detail ->> 'rationale'
FROM stepwise.audit AS a JOIN stepwise.plan AS p ON p.id = a.plan_id
WHERE p.name = 'modified' AND a.event = 'plan_modified' AND a.detail ->> 'rationale' IS NOT NULL ORDER BY a.id;
SELECT count(*) FROM stepwise.plan AS p WHERE p.tenant = 'default' AND NOT (stepwise.verify_audit(p.id) ->> 'valid')::boolean;
SELECT * FROM stepwise.check_integrity();
