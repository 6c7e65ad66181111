-- Versions of artifacts, get_artifact and get_output, artifacts of steps anywhere in the tree, the goal of start_workflow.

\set ECHO none
\i test/agent.sql
CREATE FUNCTION pg_temp.hint(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text;
BEGIN
    EXECUTE 'SELECT ' || expression;
    RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS said = PG_EXCEPTION_HINT;
    RETURN said;
END $$;
\set ECHO all

-- ---------- versions ----------

SELECT pg_temp.make('v', '[{"name": "a"}, {"name": "b"}]');
SELECT pg_temp.make('w', '[{"name": "a"}]');
SELECT stepwise.store_artifact(pg_temp.plan('v'), 'report', 'A first draft about owls', pg_temp.step('v', 'a'), 'text/plain', '{"pages": 1}', 'https://a.example') -> 'version';
SELECT stepwise.store_artifact(pg_temp.plan('v'), 'report', 'A second draft about eagles') -> 'version';
SELECT stepwise.store_artifact(pg_temp.plan('v'), 'Report', 'Another name') -> 'version';
SELECT stepwise.store_artifact(pg_temp.plan('w'), 'report', 'Another plan') -> 'version';
SELECT pg_temp.plain(stepwise.get_artifact(pg_temp.plan('v'), 'report'));
SELECT pg_temp.plain(stepwise.get_artifact(pg_temp.plan('v'), 'report', 1));
SELECT stepwise.get_artifact(pg_temp.plan('w'), 'report') -> 'content';
-- of the versions that match, the newest is shown
SELECT q, r ->> 'name', r -> 'version', r -> 'newestVersion'
FROM unnest(ARRAY['draft', 'owl', 'eagle']) AS q, jsonb_array_elements(stepwise.search_artifacts(q, pg_temp.plan('v')) -> 'results') AS r;
-- the newest fifty are named
SELECT count(stepwise.store_artifact(pg_temp.plan('w'), 'report', 'Draft ' || n)) FROM generate_series(2, 60) AS n;
SELECT a -> 'content', a -> 'version', a #> '{versions,0}', a #> '{versions,-1}', jsonb_array_length(a -> 'versions')
FROM stepwise.get_artifact(pg_temp.plan('w'), 'report') AS a;
SELECT stepwise.get_artifact(pg_temp.plan('w'), 'report', 3) -> 'content';
-- what is not there
SELECT call, pg_temp.try(call), pg_temp.hint(call) FROM unnest(ARRAY[
    $$stepwise.get_artifact(pg_temp.plan('v'), 'repor')$$,
    $$stepwise.get_artifact(pg_temp.plan('v'), 'report', 3)$$,
    $$stepwise.get_artifact(pg_temp.plan('v'), 'report', 0)$$,
    $$stepwise.get_artifact(pg_temp.plan('v'), NULL)$$,
    $$stepwise.get_artifact(pg_temp.plan('v'), '')$$,
    $$stepwise.get_artifact(NULL, 'report')$$,
    $$stepwise.get_artifact('00000000-0000-0000-0000-000000000000', 'report')$$,
    $$stepwise.get_output(NULL)$$,
    $$stepwise.get_output('00000000-0000-0000-0000-000000000000')$$]) AS call;
SELECT pg_temp.make('bare', '[{"name": "a"}]');
SELECT pg_temp.hint($$stepwise.get_artifact(pg_temp.plan('bare'), 'report')$$);
-- a text of a megabyte comes back whole
SELECT stepwise.store_artifact(pg_temp.plan('bare'), 'large', repeat('0123456789', 100000)) -> 'size';
SELECT a ->> 'content' = repeat('0123456789', 100000), a -> 'size' FROM stepwise.get_artifact(pg_temp.plan('bare'), 'large') AS a;

-- ---------- the final output ----------

SELECT pg_temp.plain(stepwise.get_output(pg_temp.plan('v')));
SELECT stepwise.store_output(pg_temp.plan('v'), '# All') -> 'size';
SELECT pg_temp.plain(stepwise.get_output(pg_temp.plan('v')));
-- more than one answer can hold
SET stepwise.max_result_bytes = '100MB';
SELECT stepwise.store_output(pg_temp.plan('w'), repeat('x', 70000000)) -> 'size';
SELECT stepwise.store_artifact(pg_temp.plan('w'), 'huge', repeat('x', 70000000)) -> 'version';
RESET stepwise.max_result_bytes;
SELECT call, pg_temp.try(call), pg_temp.hint(call) FROM unnest(ARRAY[
    $$stepwise.get_output(pg_temp.plan('w'))$$, $$stepwise.get_artifact(pg_temp.plan('w'), 'huge')$$]) AS call;

-- ---------- steps anywhere in the tree ----------

SELECT stepwise.define_workflow('{"name": "versions inner", "description": "Look inside", "steps": [{"name": "x"}, {"name": "y"}]}') ->> 'version';
SELECT pg_temp.make('tree', '[{"name": "h", "workflow": "versions inner"}, {"name": "z"}]');
SELECT pg_temp.next('tree');
SELECT a - '{planId,stepId,artifactId}'::text[], (a ->> 'planId')::uuid = pg_temp.plan('tree'), (a ->> 'stepId')::uuid = pg_temp.step('versions inner', 'x')
FROM stepwise.store_artifact(pg_temp.plan('tree'), 'from below', 'Words', pg_temp.step('versions inner', 'x')) AS a;
SELECT stepwise.store_artifact(pg_temp.plan('versions inner'), 'from above', 'Words', pg_temp.step('tree', 'z')) ->> 'stepStatus';
SELECT stepwise.store_artifact(pg_temp.plan('versions inner'), 'from beside', 'Words', pg_temp.step('versions inner', 'y')) ->> 'stepStatus';
SELECT pg_temp.try($$stepwise.store_artifact(pg_temp.plan('tree'), 'from elsewhere', 'Words', pg_temp.step('v', 'a'))$$);
SELECT (stepwise.get_artifact(pg_temp.plan('tree'), 'from below') ->> 'stepId')::uuid = pg_temp.step('versions inner', 'x');
-- an artifact outlives its step, in whatever plan of the tree it is
SELECT stepwise.store_artifact(pg_temp.plan('tree'), 'of y', 'Words', pg_temp.step('versions inner', 'y')) ->> 'stepStatus';
SELECT stepwise.modify_plan(pg_temp.plan('versions inner'), 'remove_step', '{"step": "y"}') ->> 'stepCount';
SELECT a.name, s.name FROM stepwise.artifact AS a LEFT JOIN stepwise.step AS s ON s.id = a.step_id
WHERE a.plan_id IN (pg_temp.plan('tree'), pg_temp.plan('versions inner')) ORDER BY a.id;
SELECT stepwise.verify_audit(pg_temp.plan('tree'), true) -> 'valid';

-- ---------- the goal of a workflow ----------

SELECT stepwise.start_workflow('versions inner') -> 'goal', stepwise.start_workflow('versions inner', goal => 'See what is there') -> 'goal';
SELECT p.goal FROM stepwise.plan AS p WHERE p.id = pg_temp.plan('versions inner');
SELECT pg_temp.try($$stepwise.start_workflow('versions inner', goal => '')$$), pg_temp.try($$stepwise.start_workflow('versions inner', goal => repeat('x', 2000000))$$);
-- it belongs to the content of a request
SELECT stepwise.start_workflow('versions inner', goal => 'once', idempotency_key => 'versions') ? 'existing',
       stepwise.start_workflow('versions inner', goal => 'once', idempotency_key => 'versions') ? 'existing';
SELECT pg_temp.try($$stepwise.start_workflow('versions inner', goal => 'twice', idempotency_key => 'versions')$$);

SELECT pg_temp.unsound();
