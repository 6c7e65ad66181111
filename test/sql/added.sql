-- Steps that are added to a plan with a gate. Behind the gate they need the right to decide, since who answers there does not see them.
-- Before the gate they are free: it still asks before the steps that it guards.

\set ECHO none
\i test/agent.sql
CREATE ROLE regress_stepwise_adds;
SELECT stepwise.grant_agent('regress_stepwise_adds', decide => false) IS NOT NULL, stepwise.add_member('regress_stepwise_adds', 'default') IS NOT NULL;
-- Add steps as an agent that may not decide: the order in which the steps stand then, or the SQLSTATE. The change is rolled back.
CREATE FUNCTION pg_temp.add(plan text, params jsonb) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    SET LOCAL ROLE regress_stepwise_adds;
    PERFORM stepwise.modify_plan(pg_temp.plan(plan), 'add_steps', params);
    RAISE EXCEPTION USING errcode = 'ZZZZZ', message = (SELECT string_agg(s.name, ' ' ORDER BY s.step_order) FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan(plan)));
EXCEPTION
    WHEN SQLSTATE 'ZZZZZ' THEN
        RETURN sqlerrm;
    WHEN OTHERS THEN
        RETURN sqlstate;
END $$;
\set ECHO all

SELECT stepwise.define_workflow('{"name": "added asks", "steps": [{"name": "ask", "prompt": "Well?"}]}') ->> 'version';
SELECT pg_temp.make('prompt', '[{"name": "build"}, {"name": "ok", "prompt": "Deploy?"}, {"name": "deploy"}]');
SELECT pg_temp.make('review', '[{"name": "build"}, {"name": "ok", "review": {"when": "after"}}, {"name": "deploy"}]');
SELECT pg_temp.make('nested', '[{"name": "build"}, {"name": "ok", "workflow": "added asks"}, {"name": "deploy"}]');
SELECT pg_temp.make('free', '[{"name": "build"}, {"name": "ok"}, {"name": "deploy"}]');
-- in a sequence, at every place
SELECT plan, place, pg_temp.add(plan, jsonb_strip_nulls(jsonb_build_object('insertAfterOrder', place, 'steps', '[{"name": "x"}]'::jsonb)))
FROM unnest('{prompt,review,nested,free}'::text[]) WITH ORDINALITY AS p (plan, n), unnest(ARRAY[0, 1, 2, 3, NULL]) AS place ORDER BY n, place;
SELECT pg_temp.add('prompt', '{"after": "ok", "steps": [{"name": "x"}]}'), pg_temp.add('prompt', '{"after": "build", "steps": [{"name": "x"}]}');
-- a gate that is added too does not stop its own steps
SELECT pg_temp.add('free', '{"steps": [{"name": "sure", "prompt": "Sure?"}, {"name": "x"}]}');

-- with dependencies, at any distance
SELECT pg_temp.make('tree', '[{"name": "build", "dependsOn": []}, {"name": "ok", "prompt": "Deploy?", "dependsOn": ["build"]}, {"name": "deploy", "dependsOn": ["ok"]}]');
SELECT steps, pg_temp.add('tree', jsonb_build_object('steps', steps)) FROM unnest(ARRAY[
    '[{"name": "x"}]', '[{"name": "x", "dependsOn": ["build"]}]', '[{"name": "x", "dependsOn": ["ok"]}]', '[{"name": "x", "dependsOn": ["deploy"]}]',
    '[{"name": "y"}, {"name": "x", "dependsOn": ["y", {"step": "deploy", "when": "ended"}]}]',
    '[{"name": "sure", "prompt": "Sure?"}, {"name": "x", "dependsOn": ["sure"]}]',
    '[{"name": "sure", "prompt": "Sure?", "dependsOn": ["ok"]}, {"name": "x", "dependsOn": ["sure"]}]']::jsonb[]) WITH ORDINALITY AS s (steps, n) ORDER BY n;

-- the gate was passed: it stays one
SELECT pg_temp.next('prompt'), pg_temp.submit('prompt', 'build'), pg_temp.next('prompt') ~ '^awaiting_review';
SELECT stepwise.resume(pg_temp.waiting('prompt', 'ok'), '"yes"') ->> 'planStatus';
SELECT pg_temp.add('prompt', '{"steps": [{"name": "x"}]}'), pg_temp.add('prompt', '{"steps": [{"name": "x"}], "insertAfterOrder": 1}');
-- a step that was added before the gate is no door: the gate asks before the deployment
SELECT pg_temp.make('prompt', '[{"name": "build"}, {"name": "ok", "prompt": "Deploy?"}, {"name": "deploy"}]');
SELECT stepwise.modify_plan(pg_temp.plan('prompt'), 'add_steps', '{"after": "build", "steps": [{"name": "x"}]}') ->> 'stepCount';
SELECT pg_temp.next('prompt'), pg_temp.submit('prompt', 'build'), pg_temp.next('prompt'), pg_temp.submit('prompt', 'x'), pg_temp.next('prompt') ~ '^awaiting_review';

SELECT pg_temp.unsound();
\set ECHO none
SELECT stepwise.remove_member('regress_stepwise_adds', 'default') IS NOT NULL;
DROP OWNED BY regress_stepwise_adds;
DROP ROLE regress_stepwise_adds;
