-- Joins: a dependency with "when": "ended" lets a step run however the other one ends.

\set ECHO none
\i test/agent.sql
-- a step that ends in each of four ways, and three steps that depend on it
CREATE FUNCTION pg_temp.three(plan text, on_failure text = 'continue') RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.make(plan, '[{"name": "p", "instructions": "work"}, {"name": "required", "instructions": "r", "dependsOn": ["p"]},
        {"name": "optional", "instructions": "o", "dependsOn": [{"step": "p", "required": false}]},
        {"name": "join", "instructions": "j", "dependsOn": [{"step": "p", "when": "ended"}]},
        {"name": "other", "instructions": "x", "dependsOn": []}]', on_failure => $2)
$$;
CREATE FUNCTION pg_temp.skip(plan text, step text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'stepStatus', a ->> 'planStatus') FROM stepwise.skip_step(pg_temp.step(plan, step)) AS a
$$;
CREATE FUNCTION pg_temp.retry(plan text, step text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'stepStatus', a ->> 'planStatus') FROM stepwise.retry_step(pg_temp.step(plan, step)) AS a
$$;
-- the dependents and their states; ready ones in capitals
CREATE FUNCTION pg_temp.dependents(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(CASE WHEN (SELECT true FROM stepwise.plan AS p WHERE p.id = s.plan_id AND (s.ready_mark OR s.step_order = ANY (p.ready_steps))) THEN upper(s.name) ELSE s.name END || ' ' || s.status, ', ' ORDER BY s.step_order)
    FROM stepwise.step AS s WHERE s.plan_id = pg_temp.plan(plan) AND s.name NOT IN ('p', 'other')
$$;
\set ECHO all

-- the table of the four ends and the three kinds of dependency
SELECT pg_temp.three('success'), pg_temp.next('success'), pg_temp.submit('success', 'p');
SELECT pg_temp.dependents('success');
SELECT pg_temp.three('failure'), pg_temp.next('failure'), pg_temp.submit('failure', 'p', outcome => 'failure');
SELECT pg_temp.dependents('failure');
SELECT pg_temp.three('failed'), pg_temp.next('failed'), pg_temp.fail('failed', 'p');
SELECT pg_temp.dependents('failed');
SELECT pg_temp.three('skipped'), pg_temp.skip('skipped', 'p');
SELECT pg_temp.dependents('skipped');
-- the join is handed out, and the plan ends with it
SELECT pg_temp.next('failed'), pg_temp.submit('failed', 'join');
SELECT pg_temp.submit('failed', 'other');
SELECT pg_temp.show('failed');

-- a failed step that is tried again has not ended: a join that has not begun waits for it again
SELECT pg_temp.three('again'), pg_temp.next('again'), pg_temp.fail('again', 'p');
SELECT pg_temp.retry('again', 'p');
SELECT pg_temp.dependents('again');
SELECT pg_temp.try(format('stepwise.submit_step_result(%L, ''{}'')', pg_temp.step('again', 'join')));
SELECT pg_temp.next('again'), pg_temp.submit('again', 'p');
SELECT pg_temp.dependents('again');
-- a join that has begun goes on; if it is released, it waits
SELECT pg_temp.three('begun'), pg_temp.next('begun'), pg_temp.fail('begun', 'p'), pg_temp.next('begun'), pg_temp.retry('begun', 'p');
SELECT pg_temp.dependents('begun');
SELECT stepwise.release_step(pg_temp.step('begun', 'join'), 1) ->> 'stepStatus';
SELECT pg_temp.dependents('begun');
SELECT pg_temp.next('begun'), pg_temp.fail('begun', 'p');
SELECT pg_temp.dependents('begun');
-- two plans stay like that, for the check at the end
SELECT pg_temp.three('left'), pg_temp.next('left'), pg_temp.fail('left', 'p'), pg_temp.retry('left', 'p');
SELECT pg_temp.three('left begun'), pg_temp.next('left begun'), pg_temp.fail('left begun', 'p'), pg_temp.next('left begun'), pg_temp.retry('left begun', 'p');
SELECT stepwise.release_step(pg_temp.step('left begun', 'join'), 1) ->> 'stepStatus';
-- a failed step is skipped: that ends it once, not twice
SELECT pg_temp.three('twice'), pg_temp.next('twice'), pg_temp.fail('twice', 'p'), pg_temp.skip('twice', 'p');
SELECT pg_temp.dependents('twice');
-- the same with plain SQL
SELECT pg_temp.three('raw');
UPDATE stepwise.step SET status = 'failed' WHERE id = pg_temp.step('raw', 'p');
UPDATE stepwise.step SET status = 'pending' WHERE id = pg_temp.step('raw', 'p');
SELECT pg_temp.dependents('raw');
UPDATE stepwise.step SET status = 'failed' WHERE id = pg_temp.step('raw', 'p');
SELECT pg_temp.dependents('raw');

-- under pause a failed step has not ended
SELECT pg_temp.three('pause', 'pause'), pg_temp.next('pause'), pg_temp.fail('pause', 'p');
SELECT pg_temp.dependents('pause');
SELECT pg_temp.skip('pause', 'p');
SELECT pg_temp.dependents('pause');
-- under stop it has; an open failure does not keep an agent from the join, but a run
SELECT pg_temp.three('stop', 'stop'), pg_temp.next('stop');
SELECT stepwise.record_tool_result(pg_temp.plan('stop'), 'none', '{"error": "down"}', true, 'p') ->> 'stepStatus';
SELECT pg_temp.dependents('stop');
SELECT pg_temp.next('stop');

-- a join of several steps waits for all of them
SELECT pg_temp.make('many', '[{"name": "a", "instructions": "a", "dependsOn": []}, {"name": "b", "instructions": "b"}, {"name": "c", "instructions": "c"},
    {"name": "join", "tool": "collect", "dependsOn": [{"step": "a", "when": "ended"}, {"step": "b", "when": "ended"}, {"step": "c", "required": false}],
     "arguments": {"a": "${steps.a.outputs.n ?? 0}", "b": "${steps.b.outputs.n ?? null}", "ok": "${steps.b.succeeded}"}}]');
SELECT pg_temp.next('many'), pg_temp.next('many'), pg_temp.next('many');
SELECT pg_temp.fail('many', 'a'), pg_temp.submit('many', 'c'), pg_temp.next('many');
SELECT pg_temp.fail('many', 'b'), pg_temp.next('many');
-- a step that modify_plan adds is a join of steps that have ended
SELECT stepwise.modify_plan(pg_temp.plan('many'), 'add_steps', '{"steps": [{"name": "late", "instructions": "l",
    "dependsOn": [{"step": "a", "when": "ended"}]}, {"name": "never", "instructions": "n", "dependsOn": ["a"]}]}') ->> 'planStatus';
SELECT pg_temp.show('many');
-- the dependency is shown as it was written, and a fork keeps it
SELECT jsonb_path_query_array(stepwise.get_plan_context(pg_temp.plan('many')), '$.steps[*] ? (@.name == "join").dependsOn[*]');
SELECT jsonb_path_query_array(stepwise.get_step_context(pg_temp.step('many', 'join')) -> 'dependencies', '$[*].when');
SELECT stepwise.fork_plan(pg_temp.plan('many'), 'b') ->> 'planStatus';
SELECT pg_temp.next('many'), pg_temp.next('many'), pg_temp.fail('many', 'a'), pg_temp.next('many'), pg_temp.fail('many', 'b'), pg_temp.next('many');
-- a review that a branch requests is waited for too
SELECT pg_temp.make('review', '[{"name": "a", "instructions": "a", "dependsOn": []}, {"name": "join", "instructions": "j", "dependsOn": [{"step": "a", "when": "ended"}]}]',
    '[{"afterStep": "a", "conditionExpression": "true", "ifTrueAction": "request_review", "actionParams": {"summary": "ok?"}}]');
SELECT pg_temp.next('review'), pg_temp.submit('review', 'a');
SELECT pg_temp.dependents('review'), pg_temp.fail('review', 'a_review');
SELECT pg_temp.dependents('review');

-- waves count joins
SELECT string_agg(s.name || ' ' || s.wave, ', ' ORDER BY s.step_order) FROM stepwise.step AS s WHERE s.plan_id = pg_temp.plan('many');

-- what is refused
SELECT d, stepwise.validate_definition(jsonb_build_object('name', 'w', 'steps',
    jsonb_build_array('{"name": "a", "instructions": "a"}'::jsonb, '{"name": "b", "instructions": "b"}'::jsonb || jsonb_build_object('dependsOn', jsonb_build_array(d)))))
    #> '{errors}'
FROM (VALUES ('{"step": "a", "when": "ended"}'::jsonb), ('{"step": "a", "when": "done"}'), ('{"step": "a", "when": null}'), ('{"when": "ended"}'),
    ('{"step": "a", "when": "ended", "required": false}'), ('{"step": "b", "when": "ended"}'), ('["a"]')) AS x (d);

SELECT * FROM pg_temp.unsound();
