-- What a session needs to continue: get_plan_context, get_step_context, list_active_plans. Also the views for people.

\pset format unaligned
\pset tuples_only on
\set VERBOSITY sqlstate
SET client_min_messages = warning;

-- An answer with names in place of the ids of plans and steps, and without times.
CREATE FUNCTION pg_temp.clean(answer jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    shown text := answer::text;
    r record;
BEGIN
    FOR r IN SELECT id, name FROM stepwise.plan UNION ALL SELECT id, name FROM stepwise.step LOOP
        shown := replace(shown, r.id::text, '<' || r.name || '>');
    END LOOP;
    shown := regexp_replace(shown, '[0-9a-f]{8}-[0-9a-f-]{27}', '<id>', 'g');
    RETURN regexp_replace(shown, '\d{4}-\d\d-\d\dT[0-9:.]+Z', '<time>', 'g');
END $$;

CREATE FUNCTION pg_temp.id(plan uuid, name text) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM stepwise.step AS s WHERE s.plan_id = $1 AND s.name = $2
$$;

-- The keys of an object that are set.
CREATE FUNCTION pg_temp.set_only(answer jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_object_agg(key, value) FROM jsonb_each($1) WHERE value NOT IN ('null', '[]', '{}', 'false')
$$;

-- What to call next, and whether that can be called.
CREATE FUNCTION pg_temp.next(plan uuid) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.clean(stepwise.get_plan_context($1) -> 'nextCall')
$$;

-- ---------- a plan ----------

SELECT stepwise.log_skill_execution('research', 'started', 's1', metadata => '{"outputMediaType": "text/html"}') ->> 'status';
SELECT stepwise.create_plan('resumed', 'find out', '[
    {"name": "search", "type": "search", "tool": "web", "arguments": {"q": "${inputs.q}"}, "binding": "found"},
    {"name": "read", "instructions": "Read ${bindings.found.urls.0}"},
    {"name": "write"}]', inputs => '{"q": "owls"}', session_id => 's1', design_rationale => 'simple',
    output_formatting_notes => 'short') ->> 'planId' AS plan \gset
SELECT pg_temp.next(:'plan');
SELECT stepwise.get_next_step(:'plan', 'w1', session_id => 's1') ->> 'name';
SELECT stepwise.submit_step_result(pg_temp.id(:'plan', 'search'), '{"urls": ["a", "b"]}', 'two found', 0.9) ->> 'planStatus';
SELECT stepwise.get_next_step(:'plan', 'w1', session_id => 's1') ->> 'name';
SELECT stepwise.store_artifact(:'plan', 'notes', 'Owls fly at night.', pg_temp.id(:'plan', 'search'), 'text/plain') ->> 'name';

SELECT key, pg_temp.clean(value) FROM jsonb_each(stepwise.get_plan_context(:'plan')) WHERE key NOT IN ('steps') ORDER BY key;
SELECT jsonb_array_length(c -> 'steps'), pg_temp.clean(pg_temp.set_only(c #> '{steps,0}')) FROM stepwise.get_plan_context(:'plan') AS c;
SELECT string_agg(key, ' ' ORDER BY key) FROM stepwise.get_plan_context(:'plan') AS c, jsonb_object_keys(c #> '{steps,2}') AS key;
SELECT s ->> 'name', s ->> 'status', s ->> 'resultSummary', s -> 'result', s ->> 'worker'
FROM stepwise.get_plan_context(:'plan') AS c, jsonb_array_elements(c -> 'steps') AS s;

-- reading does not change the plan, but a new session is recorded once
SELECT audit_entries, session_id FROM stepwise.plan WHERE id = :'plan';
SELECT stepwise.get_plan_context(:'plan', 's1') ->> 'sessionId';
SELECT stepwise.get_plan_context(:'plan', 's2') ->> 'sessionId';
SELECT stepwise.get_plan_context(:'plan', 's2') ->> 'sessionId';
SELECT stepwise.get_plan_context(:'plan', 's3') ->> 'sessionId';
SELECT event, session_id, detail FROM stepwise.audit WHERE plan_id = :'plan' AND event = 'session_resumed' ORDER BY id;
-- a read-only transaction does not record its session
BEGIN READ ONLY;
SELECT stepwise.get_plan_context(:'plan', 's4') ->> 'sessionId';
COMMIT;

SELECT stepwise.get_plan_context(NULL);
SELECT stepwise.get_plan_context('00000000-0000-0000-0000-000000000000');
SELECT stepwise.get_plan_context(:'plan', repeat('x', 2000000));

-- ---------- a step ----------

SELECT key, pg_temp.clean(value) FROM jsonb_each(stepwise.get_step_context(pg_temp.id(:'plan', 'read'))) WHERE key NOT IN ('step', 'dependencies') ORDER BY key;
SELECT pg_temp.clean(pg_temp.set_only(stepwise.get_step_context(pg_temp.id(:'plan', 'read')) -> 'step'));
SELECT d ->> 'name', d ->> 'via', d ->> 'required', d ->> 'status', d -> 'result', d ->> 'resultSummary'
FROM jsonb_array_elements(stepwise.get_step_context(pg_temp.id(:'plan', 'write')) -> 'dependencies') AS d;
SELECT d ->> 'name', d ->> 'via' FROM jsonb_array_elements(stepwise.get_step_context(pg_temp.id(:'plan', 'read')) -> 'dependencies') AS d;
SELECT a ->> 'name', a -> 'size', a ? 'content' FROM jsonb_array_elements(stepwise.get_step_context(pg_temp.id(:'plan', 'search')) -> 'artifacts') AS a;
SELECT stepwise.get_step_context(NULL);
SELECT stepwise.get_step_context('00000000-0000-0000-0000-000000000000');

-- with dependencies: the declared ones, and the steps that are referred to
SELECT stepwise.create_plan('graph', 'with dependencies', '[
    {"name": "a", "binding": "aa"}, {"name": "b", "dependsOn": ["a"]}, {"name": "unrelated", "dependsOn": []},
    {"name": "c", "dependsOn": [{"step": "b", "required": false}], "condition": "${steps.a.succeeded}",
     "arguments": {"x": ["${bindings.aa}", {"y": "$${steps.unrelated.outputs}"}]}}]') ->> 'planId' AS graph \gset
SELECT d ->> 'name', d ->> 'via', d ->> 'required' FROM jsonb_array_elements(stepwise.get_step_context(pg_temp.id(:'graph', 'c')) -> 'dependencies') AS d;
SELECT stepwise.get_step_context(pg_temp.id(:'graph', 'a')) -> 'dependents';
SELECT s ->> 'name', s -> 'dependsOn' FROM jsonb_array_elements(stepwise.get_plan_context(:'graph') -> 'steps') AS s;

-- ---------- what to call next ----------

-- only a claim is left, which may be lost
SELECT stepwise.get_next_step(:'plan') ->> 'name';
SELECT pg_temp.next(:'plan');
-- a review, a decision, the end
SELECT stepwise.request_user_review(pg_temp.id(:'plan', 'write'), 'Good?', '["Really?"]') ->> 'checkpointId' AS checkpoint \gset
SELECT pg_temp.next(:'plan');
SELECT pg_temp.clean(stepwise.get_plan_context(:'plan') -> 'checkpoints');
SELECT pg_temp.clean(stepwise.get_step_context(pg_temp.id(:'plan', 'write')) -> 'checkpoint');
SELECT stepwise.submit_user_decision(:'checkpoint', 'approve') ->> 'planStatus';
SELECT stepwise.submit_step_result(pg_temp.id(:'plan', 'read'), '"all"') ->> 'planStatus';
SELECT stepwise.get_plan_context(:'plan') -> 'nextCall', stepwise.get_plan_context(:'plan') -> 'progress';
-- a tool error under pause, a condition that cannot be decided, an argument without value, a prompt
SELECT stepwise.create_plan('stuck', 'to be unblocked', '[{"name": "a", "tool": "t"}, {"name": "b", "condition": "${steps.a.outputs.n} > 1"},
    {"name": "c", "tool": "u", "arguments": {"x": "${steps.a.outputs.x}"}}, {"name": "d", "prompt": "Well?"}]', on_failure => 'pause') ->> 'planId' AS stuck \gset
SELECT stepwise.fail_step((stepwise.get_next_step(:'stuck') ->> 'stepId')::uuid, 'no net') ->> 'planStatus';
SELECT pg_temp.next(:'stuck');
SELECT stepwise.retry_step(pg_temp.id(:'stuck', 'a')) ->> 'planStatus';
SELECT stepwise.get_next_step(:'stuck') ->> 'attempt';
SELECT stepwise.advance(pg_temp.id(:'stuck', 'a'), '{}', attempt => 2) #>> '{next,status}';
SELECT pg_temp.next(:'stuck');
SELECT stepwise.skip_step(pg_temp.id(:'stuck', 'b')) ->> 'planStatus';
SELECT stepwise.get_next_step(:'stuck') ->> 'status';
SELECT pg_temp.next(:'stuck');
SELECT stepwise.skip_step(pg_temp.id(:'stuck', 'c')) ->> 'planStatus';
SELECT stepwise.get_next_step(:'stuck') ->> 'status';
SELECT pg_temp.next(:'stuck');

-- ---------- nested plans, and the views ----------

SELECT stepwise.define_workflow('{"name": "ask", "steps": [{"name": "prepare"}, {"name": "question", "prompt": "May I?"}]}') ->> 'version';
SELECT stepwise.define_workflow('{"name": "wrap", "steps": [{"name": "inner", "workflow": "ask"}]}') ->> 'version';
SELECT stepwise.create_plan('deep', 'asks far below', '[{"name": "outer", "workflow": "wrap"}, {"name": "after"}]') ->> 'planId' AS deep \gset
SELECT stepwise.get_next_step(:'deep') AS claim \gset
SELECT current_step, waiting_on, percent FROM stepwise.plan_progress WHERE plan_id = :'deep';
SELECT stepwise.store_artifact((:'claim'::jsonb ->> 'planId')::uuid, 'below', 'From below.') ->> 'planStatus';
SELECT stepwise.advance((:'claim'::jsonb ->> 'stepId')::uuid, '1') #>> '{next,status}';
SELECT path, kind, prompt, questions, tenant, root_plan_id = :'deep', plan_id = (:'claim'::jsonb ->> 'planId')::uuid
FROM stepwise.checkpoints WHERE root_plan_id = :'deep';
SELECT pg_temp.clean(stepwise.get_plan_context(:'deep') -> 'checkpoints');
SELECT a ->> 'name' FROM jsonb_array_elements(stepwise.get_plan_context(:'deep') -> 'artifacts') AS a;
SELECT pg_temp.next(:'deep'), pg_temp.next((:'claim'::jsonb ->> 'planId')::uuid);
SELECT jsonb_array_length(stepwise.get_plan_context((:'claim'::jsonb ->> 'planId')::uuid) -> 'checkpoints');
SELECT path, kind FROM stepwise.checkpoints WHERE root_plan_id IN (:'stuck', :'deep') ORDER BY checkpoint_id;

SELECT name, status, progress, percent, current_step, waiting_on, age < interval '1 hour' FROM stepwise.plan_progress
WHERE plan_id IN (:'plan', :'graph', :'stuck', :'deep') ORDER BY plan_id;
SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'stepwise.plan_progress'::regclass AND attnum > 0;

-- ---------- the list of plans ----------

CREATE FUNCTION pg_temp.code(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate || ' ' || sqlerrm;
END $$;

-- All pages, newest first.
CREATE FUNCTION pg_temp.pages(max int, status text = NULL, session text = NULL) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    page jsonb;
    last uuid;
BEGIN
    LOOP
        page := stepwise.list_active_plans(status => status, session_id => session, after => last, max => max);
        RETURN NEXT (SELECT string_agg(p ->> 'name', ' ') FROM jsonb_array_elements(page -> 'plans') AS p);
        last := page ->> 'next';
        EXIT WHEN last IS NULL;
    END LOOP;
END $$;

BEGIN;
SELECT stepwise.enter_tenant('context_list');
SELECT stepwise.list_active_plans();
SELECT count(stepwise.create_plan('n' || n, 'number ' || n, '[{"name": "a"}, {"name": "b"}]', session_id => 's' || n % 2)) FROM generate_series(1, 9) AS n;
SELECT count(stepwise.get_next_step(id)) FROM stepwise.plan WHERE tenant = 'context_list' AND name IN ('n2', 'n4');
SELECT count(stepwise.cancel_plan(id)) FROM stepwise.plan WHERE tenant = 'context_list' AND name IN ('n8', 'n9');
SELECT pg_temp.pages(3);
SELECT pg_temp.pages(7);
SELECT pg_temp.pages(100000);
SELECT pg_temp.pages(NULL);
SELECT pg_temp.pages(1, 'executing');
SELECT pg_temp.pages(2, session => 's1');
SELECT pg_temp.pages(2, 'planning', 's0');
SELECT pg_temp.pages(2, 'cancelled');
SELECT pg_temp.clean(stepwise.list_active_plans(max => 1));
SELECT pg_temp.code('SELECT stepwise.list_active_plans(max => 0)');
SELECT pg_temp.code('SELECT stepwise.list_active_plans(max => -5)');
SELECT pg_temp.code('SELECT stepwise.list_active_plans(''plannning'')');
SELECT pg_temp.code('SELECT stepwise.list_active_plans('''')');
COMMIT;

-- ---------- another tenant ----------

BEGIN;
SELECT stepwise.enter_tenant('context_b');
SELECT stepwise.list_active_plans();
SAVEPOINT s;
SELECT stepwise.get_plan_context(:'plan');
ROLLBACK TO s;
SELECT stepwise.get_step_context(pg_temp.id(:'plan', 'read'));
ROLLBACK;
CREATE ROLE stepwise_context_agent;
SELECT stepwise.grant_agent('stepwise_context_agent') IS NOT NULL, stepwise.add_member('stepwise_context_agent', 'context_b') IS NOT NULL;
SET ROLE stepwise_context_agent;
SELECT count(*) FROM stepwise.checkpoints;
SELECT count(*) FROM stepwise.plan_progress;
SELECT stepwise.list_active_plans();
SELECT stepwise.stalled_steps('default', :'plan', NULL, '1 hour');
SELECT stepwise.oldest_checkpoint('default', :'plan');
RESET ROLE;
SELECT stepwise.remove_member('stepwise_context_agent', 'context_b') IS NOT NULL;
DROP OWNED BY stepwise_context_agent;
DROP ROLE stepwise_context_agent;

-- ---------- large values ----------

-- results that do not fit are cut
SELECT stepwise.create_plan('large', 'large results', (SELECT jsonb_agg(jsonb_build_object('name', 's' || n)) FROM generate_series(1, 12) AS n)) ->> 'planId' AS large \gset
SELECT count(stepwise.submit_step_result(pg_temp.id(:'large', 's' || n), to_jsonb(repeat('x', 900000)))) FROM generate_series(1, 11) AS n;
SELECT count(*) FILTER (WHERE s -> 'result' <> 'null'), count(*) FILTER (WHERE s #> '{result,cut}' = 'true')
FROM jsonb_array_elements(stepwise.get_plan_context(:'large') -> 'steps') AS s;
SELECT length(stepwise.get_step_context(pg_temp.id(:'large', 's1'), 1000000) #>> '{step,result}');

SELECT count(*) FROM stepwise.plan AS p WHERE p.tenant = 'default' AND NOT (stepwise.verify_audit(p.id) ->> 'valid')::boolean;
SELECT * FROM stepwise.check_integrity();
