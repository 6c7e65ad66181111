-- Effects of a branch on other steps: which steps it skips, which waves it moves, which names it takes, and which workflows it needs.

\set ECHO none
\i test/agent.sql
CREATE FUNCTION pg_temp.waves(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(s.name || ' ' || s.wave, ', ' ORDER BY s.step_order) FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan(plan))
$$;
-- Steps whose wave does not follow from their dependencies. A review is one wave after the reviewed step.
CREATE FUNCTION pg_temp.wrong_waves(plan text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT s.name || ': ' || s.wave || ' instead of ' || max(p.wave) + 1
    FROM stepwise.step AS s JOIN stepwise.dependency AS d ON d.step_id = s.id JOIN stepwise.step AS p ON p.id = d.depends_on
    WHERE s.plan_id = (SELECT pg_temp.plan(plan)) GROUP BY s.id, s.name, s.wave HAVING s.wave <> max(p.wave) + 1
$$;
CREATE FUNCTION pg_temp.faults(definition jsonb) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT concat(e ->> 'path', ': ', e ->> 'message', ' [', e ->> 'hint', ']') FROM jsonb_array_elements(stepwise.validate_definition(definition) -> 'errors') AS e
$$;
\set ECHO all

-- ---------- skip_to never skips its target, nor steps that the target depends on ----------

SELECT pg_temp.make('skips', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "x", "dependsOn": ["a"]}, {"name": "y", "dependsOn": ["x"]},
    {"name": "c", "dependsOn": [{"step": "b", "required": false}]}, {"name": "t", "dependsOn": ["a", "c"]}, {"name": "z", "dependsOn": ["x"]},
    {"name": "u", "dependsOn": [{"step": "y", "required": false}]}]',
    '[{"afterStepOrder": 1, "conditionExpression": "true", "ifTrueAction": "skip_to", "actionParams": {"stepName": "t"}}]');
SELECT pg_temp.submit('skips', 'a');
SELECT pg_temp.show('skips');
SELECT detail -> 'skippedSteps' FROM stepwise.audit WHERE plan_id = pg_temp.plan('skips') AND detail ? 'skippedSteps';
SELECT pg_temp.next('skips'), pg_temp.submit('skips', 'b');
SELECT pg_temp.next('skips', 'one'), pg_temp.next('skips', 'two');
SELECT pg_temp.submit('skips', 'c'), pg_temp.submit('skips', 'u'), pg_temp.submit('skips', 't');
-- the target depends on no step between, so all of them are skipped as in a sequence
SELECT pg_temp.make('skips all', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["b"]}, {"name": "t", "dependsOn": ["a"]}]',
    '[{"afterStepOrder": 1, "conditionExpression": "true", "ifTrueAction": "skip_to", "actionParams": {"stepOrder": 4}}]');
SELECT pg_temp.submit('skips all', 'a');
SELECT pg_temp.show('skips all');

-- ---------- an added review moves the waves after it ----------

SELECT pg_temp.make('waves', '[{"name": "a"}, {"name": "other"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["b", "other"]},
    {"name": "long_1", "dependsOn": ["other"]}, {"name": "long_2", "dependsOn": ["long_1"]}, {"name": "long_3", "dependsOn": ["long_2"]},
    {"name": "join", "dependsOn": ["a", "long_3"]}, {"name": "end", "dependsOn": ["c", "join"]}]',
    '[{"afterStepOrder": 1, "conditionExpression": "true", "ifTrueAction": "request_review", "actionParams": {"summary": "Good?"}},
      {"afterStepOrder": 3, "conditionExpression": "true", "ifTrueAction": "request_review", "actionParams": {"summary": "Still good?"}}]');
SELECT pg_temp.waves('waves');
SELECT pg_temp.submit('waves', 'a');
SELECT pg_temp.waves('waves');
SELECT pg_temp.wrong_waves('waves');
SELECT stepwise.submit_user_decision(pg_temp.waiting('waves', 'a_review'), 'approve') ->> 'planStatus';
SELECT pg_temp.submit('waves', 'b');
SELECT pg_temp.waves('waves');
SELECT pg_temp.wrong_waves('waves');
-- a step that is added afterwards has a later wave than its dependencies
SELECT stepwise.submit_user_decision(pg_temp.waiting('waves', 'b_review'), 'approve') ->> 'planStatus';
SELECT stepwise.modify_plan(pg_temp.plan('waves'), 'add_steps', '{"steps": [{"name": "more", "dependsOn": ["c"]}]}') ->> 'stepCount';
SELECT pg_temp.waves('waves');
-- a fork from a step before the reviews has neither the reviews nor the moved waves
SELECT stepwise.fork_plan(pg_temp.plan('waves'), 'a') ->> 'keptSteps';
SELECT pg_temp.waves('waves');
SELECT pg_temp.wrong_waves('waves');
SELECT pg_temp.submit('waves', 'a');
SELECT pg_temp.waves('waves');
-- in a sequence it is the order
SELECT pg_temp.make('waves in order', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "true", "ifTrueAction": "request_review", "actionParams": {"summary": "Good?"}}]');
SELECT pg_temp.submit('waves in order', 'a');
SELECT pg_temp.waves('waves in order');

-- ---------- two branches that would add the same name ----------

SELECT pg_temp.faults('{"name": "w", "steps": [{"name": "a"}, {"name": "b"}, {"name": "c"}], "branchingConditions": [
    {"afterStepOrder": 1, "conditionExpression": "n == 1", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "x"}, {"name": "y", "binding": "found"}]}},
    {"afterStepOrder": 2, "conditionExpression": "n == 1", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "z", "binding": "found"}, {"name": "x"}]}}]}');
-- of the branches after one step only one acts; names that the plan generates are always new
SELECT pg_temp.make('one acts', '[{"name": "a"}, {"name": "b"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "n == 1", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "x", "binding": "found"}]}},
      {"afterStepOrder": 1, "conditionExpression": "n == 2", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "x", "binding": "found"}, {}]}},
      {"afterStepOrder": 2, "conditionExpression": "true", "ifTrueAction": "add_steps", "actionParams": {"steps": [{}]}}]');
SELECT pg_temp.next('one acts'), pg_temp.next('one acts');
SELECT pg_temp.submit('one acts', 'a', '{"n": 2}'), pg_temp.submit('one acts', 'b');
SELECT pg_temp.show('one acts');
SELECT pg_temp.try($$pg_temp.make('two act', '[{"name": "a"}, {"name": "b"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "true", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "x"}]}},
      {"afterStepOrder": 2, "conditionExpression": "true", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "x"}]}}]')$$);

-- ---------- a workflow that only a branch names ----------

SELECT stepwise.define_workflow('{"name": "only by branch", "steps": [{"name": "n"}]}') ->> 'version',
       stepwise.define_workflow('{"name": "only by branch", "steps": [{"name": "n"}, {"name": "m"}]}') ->> 'version';
SELECT pg_temp.make('may need it', '[{"name": "a"}, {"name": "b"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "n == 1", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "x", "workflow": "only by branch", "version": 1}]}}]');
SELECT pg_temp.make('may need the newest', '[{"name": "a"}, {"name": "b"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "n == 1", "ifTrueAction": "add_steps", "actionParams": {"steps": [{}, {"name": "x", "workflow": "only by branch"}]}}]');
SELECT pg_temp.try($$stepwise.drop_workflow('only by branch')$$);
SELECT pg_temp.try($$stepwise.drop_workflow('only by branch', 1)$$);
SELECT pg_temp.try($$stepwise.drop_workflow('only by branch', 2)$$);
-- a step without a version uses the newest one that remains
SELECT pg_temp.try($$stepwise.drop_workflow('only by branch', 1)$$);
-- the branch did not fire: only a step without a version still needs the workflow
SELECT pg_temp.submit('may need it', 'a', '{"n": 0}');
SELECT pg_temp.try($$stepwise.drop_workflow('only by branch', 1)$$);
-- the branch fired: the added step needs the workflow
SELECT pg_temp.submit('may need the newest', 'a', '{"n": 1}');
SELECT pg_temp.try($$stepwise.drop_workflow('only by branch')$$);
SELECT stepwise.cancel_plan(pg_temp.plan('may need the newest')) ->> 'planStatus';
SELECT pg_temp.try($$stepwise.drop_workflow('only by branch')$$);

SELECT pg_temp.unsound();
