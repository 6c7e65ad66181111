-- A worker that is late does not speak for the claim of another one: neither fail_step in its name gives up a failure that was not its
-- own, nor does a reported result end a step that a worker holds.

\set ECHO none
\i test/agent.sql
\set ECHO all

-- ---------- giving up ----------

-- anna holds attempt 1 and loses it; attempt 2 fails openly, and was that of another worker, or of nobody who gave a name
CREATE FUNCTION pg_temp.failed(plan text, other text, on_failure text = 'stop') RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_temp.make(plan, '[{"name": "a", "tool": "t"}, {"name": "b"}]', on_failure => on_failure);
    PERFORM stepwise.get_next_step(pg_temp.plan(plan), 'anna');
    PERFORM stepwise.release_step(pg_temp.step(plan, 'a'));
    PERFORM stepwise.get_next_step(pg_temp.plan(plan));
    PERFORM stepwise.record_tool_result(pg_temp.plan(plan), 't', '"broke"', is_error => true);
    -- a report does not end the claim of a worker
    UPDATE stepwise.step SET worker = other WHERE id = (SELECT pg_temp.step(plan, 'a')) AND other IS NOT NULL;
    RETURN (SELECT concat_ws(' ', s.status, '#' || s.attempt, s.worker, s.pause_reason ->> 'type') FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step(plan, 'a')));
END $$;
-- What fail_step answers, and whether the failure is open afterwards. The change is rolled back.
CREATE FUNCTION pg_temp.gives_up(plan text, says text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text;
BEGIN
    said := pg_temp.try(format($q$(SELECT concat_ws(' ', a ->> 'stepStatus', CASE WHEN a ? 'duplicate' THEN 'duplicate' END)
        FROM stepwise.fail_step(%L, 'no'%s) AS a)$q$, pg_temp.step(plan, 'a'), says));
    said := concat(said, ', open ', (SELECT s.pause_reason IS NOT NULL FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step(plan, 'a'))));
    RAISE EXCEPTION USING errcode = 'ZZZZZ', message = said;
EXCEPTION WHEN SQLSTATE 'ZZZZZ' THEN
    RETURN sqlerrm;
END $$;
CREATE TEMP TABLE says AS SELECT * FROM unnest(ARRAY['', ', worker => ''anna''', ', worker => ''bert''', ', attempt => 1', ', attempt => 2',
    ', attempt => 2, worker => ''anna''', ', attempt => 1, worker => ''bert''']) WITH ORDINALITY AS x (says, n);

SELECT pg_temp.failed('late', 'bert');
SELECT says, pg_temp.gives_up('late', says) FROM says ORDER BY n;
-- the claim that failed had no name: who names a worker must say its attempt
SELECT pg_temp.failed('nameless', NULL);
SELECT says, pg_temp.gives_up('nameless', says) FROM says ORDER BY n;
-- nobody but the first claim: a worker may give up what nobody else has had
SELECT pg_temp.make('only', '[{"name": "a", "tool": "t"}, {"name": "b"}]', on_failure => 'stop');
SELECT pg_temp.next('only'), stepwise.record_tool_result(pg_temp.plan('only'), 't', '"broke"', is_error => true) ->> 'stepStatus';
SELECT says, pg_temp.gives_up('only', says) FROM says ORDER BY n;
-- a failure that is given up already, or that waits under pause, does not change: the call is a duplicate, whoever makes it
SELECT stepwise.fail_step(pg_temp.step('late', 'a'), 'no', worker => 'bert') ->> 'stepStatus';
SELECT pg_temp.gives_up('late', ', worker => ''anna''');
SELECT pg_temp.failed('pause', 'bert', 'pause');
SELECT pg_temp.gives_up('pause', ', worker => ''anna''');

-- ---------- reporting ----------

-- by name: a step that a worker or a lease holds takes no report, in a sequence and with dependencies
CREATE FUNCTION pg_temp.report(plan text, step text = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.try(format($q$(SELECT coalesce(a ->> 'stepStatus', 'matched ' || (a ->> 'matched')) FROM stepwise.record_tool_result(%L, 't', '1', step_name => %L) AS a)$q$, pg_temp.plan(plan), step))
$$;
SELECT pg_temp.make('sequence', '[{"name": "a", "tool": "t"}]'), pg_temp.make('tree', '[{"name": "a", "tool": "t", "dependsOn": []}]');
SELECT plan, pg_temp.next(plan, 'anna'), pg_temp.report(plan, 'a'), pg_temp.report(plan) FROM unnest('{sequence,tree}'::text[]) AS plan;
SELECT plan, stepwise.release_step(pg_temp.step(plan, 'a')) ->> 'stepStatus', pg_temp.next(plan, lease => '1 hour'), pg_temp.report(plan, 'a') FROM unnest('{sequence,tree}'::text[]) AS plan;
-- the worker itself submits; what it submitted is a duplicate when it is reported by name
SELECT stepwise.submit_step_result(pg_temp.step('tree', 'a'), '1', attempt => 2) ->> 'stepStatus', pg_temp.report('tree', 'a');
-- a claim without worker and lease takes a report
SELECT stepwise.release_step(pg_temp.step('sequence', 'a'), 2) ->> 'stepStatus', pg_temp.next('sequence'), pg_temp.report('sequence', 'a');

SELECT pg_temp.unsound();
