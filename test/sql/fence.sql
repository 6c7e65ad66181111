-- Whose result it is. A claim with a lease, and every claim after the first, is fenced: a call about it says its attempt, or is made
-- by its worker. Who calls is who is recorded. Calls that are repeated. Claims that others hold, and what is left of lost ones.

\set ECHO none
\i test/agent.sql
\set ECHO all

CREATE FUNCTION pg_temp.id(plan text, step text) RETURNS text LANGUAGE sql AS $$ SELECT quote_literal(pg_temp.step(plan, step)) || '::uuid' $$;
-- Each function that acts on a claim, with what the call says about the claim. The changes are rolled back.
CREATE FUNCTION pg_temp.each(plan text, step text, says text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    call text;
BEGIN
    FOREACH call IN ARRAY ARRAY['submit_step_result(%s, ''{}''%s)', 'advance(%s, ''{}''%s)', 'fail_step(%s, ''broke''%s)', 'release_step(%s%s)',
                                'heartbeat(%s%s)', 'request_user_review(%s, ''Look''%s)'] LOOP
        BEGIN
            EXECUTE format('SELECT stepwise.' || call, pg_temp.id(plan, step), says);
            RAISE EXCEPTION USING errcode = 'ZZZZZ', message = 'fine';
        EXCEPTION WHEN OTHERS THEN
            RETURN NEXT concat_ws(' ', split_part(call, '(', 1), nullif(sqlstate, 'ZZZZZ'), sqlerrm);
        END;
    END LOOP;
END $$;
-- Who did what with a step.
CREATE FUNCTION pg_temp.actors(plan text, step text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT a.event || ' ' || replace(a.actor, current_user, 'role') FROM stepwise.audit AS a
    WHERE a.plan_id = pg_temp.plan(plan) AND a.step_id = pg_temp.step(plan, step) ORDER BY a.id
$$;

-- ---------- the fence ----------

-- the first claim without a lease: the call may say nothing, but what it says must be right
SELECT pg_temp.make('first', '[{"name": "a"}]');
SELECT pg_temp.next('first', 'anna');
SELECT pg_temp.each('first', 'a', '');
SELECT pg_temp.each('first', 'a', ', attempt => 1');
SELECT pg_temp.each('first', 'a', ', worker => ''anna''');
SELECT pg_temp.each('first', 'a', ', worker => ''bert''');
SELECT pg_temp.each('first', 'a', ', attempt => 2');
SELECT pg_temp.each('first', 'a', ', attempt => 2, worker => ''anna''');
SELECT pg_temp.each('first', 'a', ', attempt => 1, worker => ''bert''');
SELECT pg_temp.each('first', 'a', ', attempt => -1');
SELECT pg_temp.each('first', 'a', ', worker => ''''');

-- with a lease: the attempt or the worker
SELECT pg_temp.make('lease', '[{"name": "a"}]');
SELECT pg_temp.next('lease', 'anna', '1 hour');
SELECT pg_temp.each('lease', 'a', '');
SELECT pg_temp.each('lease', 'a', ', attempt => 1');
SELECT pg_temp.each('lease', 'a', ', worker => ''anna''');
SELECT pg_temp.each('lease', 'a', ', worker => ''bert''');

-- a lease without a worker: a name does not replace the attempt
SELECT pg_temp.make('nameless', '[{"name": "a"}]');
SELECT pg_temp.next('nameless', NULL, '1 hour');
SELECT pg_temp.each('nameless', 'a', ', worker => ''anna''');
SELECT pg_temp.each('nameless', 'a', ', attempt => 1, worker => ''anna''');

-- a heartbeat that gives a lease fences the claim from then on
SELECT pg_temp.make('beat', '[{"name": "a"}]');
SELECT pg_temp.next('beat');
SELECT stepwise.heartbeat(pg_temp.step('beat', 'a'), extend => '1 hour') ->> 'attempt';
SELECT pg_temp.try($$stepwise.heartbeat(pg_temp.step('beat', 'a'))$$);

-- the second claim: what the first worker says is refused, and no error tells the current attempt
SELECT pg_temp.make('late', '[{"name": "a"}]');
SELECT pg_temp.next('late', 'anna');
SELECT stepwise.release_step(pg_temp.step('late', 'a'), worker => 'anna') ->> 'stepStatus';
SELECT pg_temp.each('late', 'a', ', attempt => 1');
SELECT pg_temp.each('late', 'a', ', worker => ''anna''');
SELECT pg_temp.each('late', 'a', '');
SELECT pg_temp.next('late', 'bert');
SELECT pg_temp.each('late', 'a', '');
SELECT pg_temp.each('late', 'a', ', worker => ''anna''');
SELECT pg_temp.each('late', 'a', ', attempt => 1');
DO $$
DECLARE
    said text;
BEGIN
    PERFORM stepwise.submit_step_result(pg_temp.step('late', 'a'), '{}', attempt => 1);
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS said = PG_EXCEPTION_DETAIL;
    RAISE WARNING '%', concat_ws(' | ', sqlstate, sqlerrm, said);
END $$;
SELECT pg_temp.each('late', 'a', ', worker => ''bert''');

-- ---------- who calls is who is recorded ----------

SELECT stepwise.submit_step_result(pg_temp.step('late', 'a'), '{}', attempt => 2) ->> 'planStatus';
SELECT pg_temp.actors('late', 'a');
SELECT pg_temp.make('who', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.next('who', 'anna');
SELECT stepwise.fail_step(pg_temp.step('who', 'a'), 'broke', worker => 'anna', code => 'ETIMEOUT') ->> 'stepStatus';
-- a due step that was never claimed: it is the submitter's
SELECT stepwise.submit_step_result(pg_temp.step('who', 'b'), '{}', worker => 'bert') ->> 'stepStatus';
SELECT s.worker, s.holder, s.attempt FROM stepwise.step AS s WHERE s.id = pg_temp.step('who', 'b');
SELECT pg_temp.actors('who', s) FROM unnest('{a, b}'::text[]) AS s;

-- the code of an error
SELECT stepwise.task_variables(pg_temp.plan('who')) -> '_workflow.result.a';
SELECT pg_temp.make('codes', '[{"name": "a"}]');
SELECT pg_temp.try($$stepwise.fail_step(pg_temp.step('codes', 'a'), 'broke', code => ' ')$$);
SELECT pg_temp.try($$stepwise.fail_step(pg_temp.step('codes', 'a'), 'broke', code => repeat('x', 501))$$);

-- ---------- repeated calls ----------

SELECT pg_temp.make('again', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', on_failure => 'continue');
SELECT pg_temp.next('again', 'anna', '1 hour');
-- duplicates are recognized before the fence
SELECT stepwise.release_step(pg_temp.step('again', 'a'), 1) ? 'duplicate', stepwise.release_step(pg_temp.step('again', 'a'), 1) ? 'duplicate',
       stepwise.release_step(pg_temp.step('again', 'a')) ? 'duplicate', stepwise.release_step(pg_temp.step('again', 'a'), worker => 'anna') ? 'duplicate';
SELECT pg_temp.try($$stepwise.release_step(pg_temp.step('again', 'a'), 7)$$);
SELECT pg_temp.try($$stepwise.release_step(pg_temp.step('again', 'b'))$$);
SELECT pg_temp.next('again', 'anna');
SELECT stepwise.fail_step(pg_temp.step('again', 'a'), 'broke', attempt => 2) ? 'duplicate', stepwise.fail_step(pg_temp.step('again', 'a'), 'broke', attempt => 2) ? 'duplicate',
       stepwise.fail_step(pg_temp.step('again', 'a'), 'broke otherwise') ? 'duplicate';
SELECT pg_temp.try($$stepwise.fail_step(pg_temp.step('again', 'a'), 'broke', attempt => 1)$$);
SELECT stepwise.retry_step(pg_temp.step('again', 'a')) ? 'duplicate', stepwise.retry_step(pg_temp.step('again', 'a')) ? 'duplicate';
SELECT pg_temp.try($$stepwise.retry_step(pg_temp.step('again', 'b'))$$);
SELECT stepwise.skip_step(pg_temp.step('again', 'b')) ? 'duplicate', stepwise.skip_step(pg_temp.step('again', 'b'), 'why not') ? 'duplicate';
SELECT pg_temp.next('again', 'anna');
SELECT stepwise.submit_step_result(pg_temp.step('again', 'a'), '1', attempt => 3) ? 'duplicate', stepwise.submit_step_result(pg_temp.step('again', 'a'), '1') ? 'duplicate';
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('again', 'a'), '1', attempt => 2)$$);
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('again', 'a'), '2', attempt => 3)$$);
SELECT a.event, count(*) FROM stepwise.audit AS a WHERE a.plan_id = pg_temp.plan('again') AND a.step_id IS NOT NULL GROUP BY 1 ORDER BY 1;

-- retry_step starts the count of maxAttempts anew, each time; the attempt goes on
SELECT pg_temp.make('count', '[{"name": "a", "maxAttempts": 2}]', on_failure => 'pause');
CREATE FUNCTION pg_temp.wear_out() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
BEGIN
    FOR i IN 1..4 LOOP
        said := concat_ws(', ', nullif(said, ''), pg_temp.next('count'));
        EXIT WHEN said ~ 'paused';
        PERFORM stepwise.release_step(pg_temp.step('count', 'a'), pg_temp.attempt(pg_temp.step('count', 'a')));
    END LOOP;
    RETURN said;
END $$;
SELECT pg_temp.wear_out();
SELECT stepwise.retry_step(pg_temp.step('count', 'a')) ->> 'stepStatus';
SELECT pg_temp.wear_out();
SELECT stepwise.retry_step(pg_temp.step('count', 'a')) ->> 'stepStatus';
SELECT pg_temp.wear_out();

-- ---------- claims that others hold, and lost ones ----------

SELECT pg_temp.make('held', '[{"name": "a", "stallAfter": "1 microsecond"}, {"name": "b"}, {"name": "c"}, {"name": "d"}]');
SELECT stepwise.get_next_step(pg_temp.plan('held'), 'anna') ? 'openBefore';
SELECT o ->> 'name', o ->> 'worker', (o ->> 'since')::timestamptz <= clock_timestamp(), o ->> 'stalled'
FROM stepwise.get_next_step(pg_temp.plan('held'), 'bert') AS n, jsonb_array_elements(n -> 'openBefore') AS o;
SELECT o ->> 'name', o ->> 'worker', o ->> 'stalled' FROM stepwise.get_next_step(pg_temp.plan('held')) AS n, jsonb_array_elements(n -> 'openBefore') AS o;
-- one's own claim is not another's
SELECT o ->> 'name' FROM stepwise.get_next_step(pg_temp.plan('held'), 'bert') AS n, jsonb_array_elements(n -> 'openBefore') AS o;

-- a session that comes later is told of the lost claim first, although a step could be handed out
SELECT o ->> 'name', o ->> 'worker', o ->> 'attempt', o ->> 'stalled', o ->> 'expired' FROM stepwise.get_plan_context(pg_temp.plan('held')) AS c, jsonb_array_elements(c -> 'openClaims') AS o ORDER BY 1;
SELECT c -> 'openClaimCount', c -> 'nextCall' ->> 'function', (c -> 'nextCall' -> 'arguments' ->> 'step_id')::uuid = pg_temp.step('held', 'a'), c -> 'nextCall' = w -> 'nextCall', w ->> 'message'
FROM stepwise.get_plan_context(pg_temp.plan('held')) AS c, stepwise.why(pg_temp.plan('held')) AS w;
-- nobody has marked the plan, but the views know
SELECT p.status AS stored, v.status AS shown, v.waiting_on FROM stepwise.plan AS p JOIN stepwise.plan_progress AS v ON v.plan_id = p.id WHERE p.id = pg_temp.plan('held');
SELECT c.path, c.name, c.worker, c.attempt, c.stalled, c.expired, c.silent_for >= '0' FROM stepwise.claims AS c WHERE c.root_plan_id = pg_temp.plan('held') ORDER BY c.name;
SELECT c.name FROM stepwise.stalled AS c WHERE c.root_plan_id = pg_temp.plan('held');
-- the call that nextCall names works
SELECT stepwise.release_step((a ->> 'step_id')::uuid, (a ->> 'attempt')::int) ->> 'stepStatus' FROM stepwise.get_plan_context(pg_temp.plan('held')) AS c, jsonb_extract_path(c, 'nextCall', 'arguments') AS a;
SELECT stepwise.get_plan_context(pg_temp.plan('held')) -> 'nextCall' ->> 'function';

-- a lease that has expired behind a person who is asked
SELECT pg_temp.make('expired', '[{"name": "a", "dependsOn": []}, {"name": "ask", "prompt": "Well?", "dependsOn": []}]');
SELECT pg_temp.next('expired', 'anna', '1 microsecond');
UPDATE stepwise.step SET lease_expires_at = clock_timestamp() + interval '1 hour' WHERE id = pg_temp.step('expired', 'a');
SELECT pg_temp.next('expired', 'bert') ~ '^awaiting_review';
SELECT stepwise.get_plan_context(pg_temp.plan('expired')) -> 'nextCall' ->> 'function';
UPDATE stepwise.step SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE id = pg_temp.step('expired', 'a');
SELECT w ->> 'message', w -> 'nextCall' ->> 'function', w -> 'reason' ->> 'type' FROM stepwise.why(pg_temp.plan('expired')) AS w;
SELECT c.name, c.stalled, c.expired FROM stepwise.stalled AS c WHERE c.root_plan_id = pg_temp.plan('expired');
SELECT w.path, w.status, w.reason, w.waiting_on, w.message, w.checkpoint_id IS NOT NULL, w.since IS NOT NULL FROM stepwise.waiting AS w WHERE w.root_plan_id = pg_temp.plan('expired');

-- reclaim_stalled for one plan, with what is nested in it
SELECT stepwise.define_workflow('{"name": "fence inner", "stallAfter": "1 microsecond", "steps": [{"name": "x"}]}') ->> 'version';
SELECT pg_temp.make('one', '[{"name": "n", "workflow": "fence inner"}, {"name": "b"}]');
SELECT pg_temp.make('other', '[{"name": "n", "workflow": "fence inner"}, {"name": "b"}]');
SELECT pg_temp.next('one', 'anna'), pg_temp.next('other', 'bert');
SELECT c.path, c.worker FROM stepwise.stalled AS c WHERE c.root_plan_id IN (pg_temp.plan('one'), pg_temp.plan('other')) ORDER BY c.worker;
SELECT r ->> 'count', r #>> '{reclaimed,0,name}' FROM stepwise.reclaim_stalled(plan_id => pg_temp.plan('one')) AS r;
SELECT stepwise.reclaim_stalled(plan_id => pg_temp.plan('one')) ->> 'count';
SELECT c.path, c.worker FROM stepwise.stalled AS c WHERE c.root_plan_id IN (pg_temp.plan('one'), pg_temp.plan('other'));
SELECT pg_temp.try($$stepwise.reclaim_stalled(plan_id => '00000000-0000-7000-8000-000000000000')$$);
SELECT pg_temp.try($$stepwise.reclaim_stalled('-1', pg_temp.plan('one'))$$);

-- a step that a review sent back is held by nobody: its former agent may submit with its attempt
SELECT pg_temp.make('back', '[{"name": "a"}]');
SELECT pg_temp.next('back', 'anna', '1 hour');
SELECT stepwise.request_user_review(pg_temp.step('back', 'a'), 'Look', worker => 'anna') ->> 'checkpointId' AS checkpoint \gset
SELECT stepwise.submit_user_decision(:'checkpoint', 'modify', 'more') ->> 'stepStatus';
SELECT pg_temp.each('back', 'a', ', attempt => 1');
SELECT count(*) FROM stepwise.claims AS c WHERE c.plan_id = pg_temp.plan('back');
SELECT pg_temp.next('back', 'bert');
SELECT pg_temp.each('back', 'a', ', attempt => 1');

SELECT pg_temp.unsound();
