-- Statements that are one call of a function: the library plans them itself. They mean the same as those that the planner plans.

\pset format unaligned
\set id '00000000-0000-7000-8000-000000000001'
\set VERBOSITY terse

-- load the library
SELECT stepwise.current_tenant();

-- The plan of the library has no costs of evaluating the call, so its sum is smaller. That shows who has planned.
CREATE FUNCTION regress_planned(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || statement INTO plan;
    RETURN CASE WHEN (plan #>> '{0,Plan,Total Cost}')::float < 0.01 THEN 'library' ELSE 'planner' END || ': ' || (plan #>> '{0,Plan,Node Type}');
END
$$;

SELECT regress_planned(statement), statement FROM unnest(ARRAY[
    'SELECT stepwise.get_next_step(''' || :'id' || ''')',
    'SELECT stepwise.submit_step_result(step_id => ''' || :'id' || ''', result => ''{}'', outcome => ''failure'')',
    'SELECT stepwise.advance(''' || :'id' || ''', NULL) AS answer',
    -- all arguments by name, in another order
    'SELECT stepwise.get_plan_status(max => 1, stall_after => NULL, plan_id => ''' || :'id' || ''')',
    -- values that must be worked out
    'SELECT stepwise.get_next_step(gen_random_uuid())',
    'SELECT stepwise.get_next_step((SELECT ''' || :'id' || '''::uuid))',
    -- more than the call
    'SELECT stepwise.get_next_step(''' || :'id' || '''), 1',
    'SELECT stepwise.get_next_step(''' || :'id' || ''') ->> ''status''',
    'SELECT * FROM stepwise.get_next_step(''' || :'id' || ''')',
    'SELECT stepwise.get_next_step(''' || :'id' || ''') FROM (VALUES (1), (2)) AS v',
    'SELECT stepwise.get_next_step(''' || :'id' || ''') WHERE false',
    'SELECT stepwise.get_next_step(''' || :'id' || ''') LIMIT 0',
    'SELECT stepwise.get_next_step(''' || :'id' || ''') OFFSET 1',
    'SELECT stepwise.get_next_step(''' || :'id' || ''') ORDER BY 1',
    'SELECT DISTINCT stepwise.get_next_step(''' || :'id' || ''')',
    'SELECT stepwise.get_next_step(''' || :'id' || ''') GROUP BY ()',
    'SELECT stepwise.get_next_step(''' || :'id' || ''') HAVING false',
    'SELECT stepwise.get_next_step(''' || :'id' || ''') UNION ALL SELECT NULL',
    'WITH x AS (SELECT 1) SELECT stepwise.get_next_step(''' || :'id' || ''')',
    -- functions of others
    'SELECT pg_catalog.jsonb_pretty(''{}'')',
    'SELECT stepwise.uuid7()']) AS statement;

-- what has no rows calls nothing
SELECT stepwise.create_plan('planned', 'x', '[{}]') WHERE false;
SELECT stepwise.create_plan('planned', 'x', '[{}]') LIMIT 0;
SELECT count(*) FROM stepwise.plan WHERE name = 'planned';

-- parameters, of plans that are made for their values and of one that is made for all
SELECT stepwise.create_plan('planned', 'x', '[{"name": "a"}, {"name": "b"}]') ->> 'planId' AS plan \gset
PREPARE status(uuid, int) AS SELECT stepwise.get_plan_status($1, max => $2);
EXECUTE status(:'plan', 1) \g /dev/null
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE status(:'plan', 1);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE status(:'plan', 1);
EXECUTE status(:'plan', 2) \gset
SELECT :'get_plan_status'::jsonb = stepwise.get_plan_status(:'plan', max => 2);
EXECUTE status(NULL, 1);
RESET plan_cache_mode;

-- into a table, and into one that is there
CREATE TEMP TABLE planned AS SELECT stepwise.get_plan_status(:'plan', max => 1) AS answer;
INSERT INTO planned SELECT stepwise.get_plan_status(:'plan', max => 1);
SELECT count(*), bool_and(answer = stepwise.get_plan_status(:'plan', max => 1)) FROM planned;

-- as an expression of PL/pgSQL, and by EXECUTE with USING
DO $$
DECLARE
    plan   uuid := (SELECT id FROM stepwise.plan WHERE name = 'planned');
    answer jsonb;
BEGIN
    FOR i IN 1 .. 7 LOOP
        answer := stepwise.get_plan_status(plan, max => i);
        ASSERT answer ->> 'planId' = plan::text, answer;
        EXECUTE 'SELECT stepwise.get_plan_status($1, max => $2)' INTO answer USING plan, i;
        ASSERT answer ->> 'planId' = plan::text, answer;
    END LOOP;
END
$$;

-- a function that is replaced or gone counts at once, for statements that are prepared too
CREATE FUNCTION stepwise.regress_planned(a int, b int = 2) RETURNS text LANGUAGE sql RETURN concat_ws(',', a, b);
PREPARE replaced AS SELECT stepwise.regress_planned(1);
EXECUTE replaced;
CREATE OR REPLACE FUNCTION stepwise.regress_planned(a int, b int = 3) RETURNS text LANGUAGE sql RETURN concat_ws('-', a, b);
EXECUTE replaced;
ALTER FUNCTION stepwise.regress_planned(int, int) RENAME TO regress_renamed;
EXECUTE replaced;
DROP FUNCTION stepwise.regress_renamed;
EXECUTE replaced;
DEALLOCATE replaced;

-- one that returns rows, and one that takes any number of values
CREATE FUNCTION stepwise.regress_planned(a int, b int = 2) RETURNS SETOF int LANGUAGE sql RETURN generate_series(a, b);
SELECT stepwise.regress_planned(1);
SELECT regress_planned('SELECT stepwise.regress_planned(1)');
DROP FUNCTION stepwise.regress_planned(int, int);
CREATE FUNCTION stepwise.regress_planned(a int = 1, VARIADIC b int[] = '{}') RETURNS text LANGUAGE sql RETURN a || b::text;
SELECT stepwise.regress_planned(1, 2, 3);
SELECT stepwise.regress_planned(1);
DROP FUNCTION stepwise.regress_planned(int, int[]);

-- without the right to call it
CREATE ROLE regress_stepwise_planned;
SET ROLE regress_stepwise_planned;
SELECT stepwise.get_next_step(:'plan');
EXECUTE status(:'plan', 1);
RESET ROLE;
DROP ROLE regress_stepwise_planned;

-- a cursor that is read backward
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT stepwise.get_plan_status(:'plan', max => 1);
MOVE ALL c;
MOVE BACKWARD 1 c;
MOVE FORWARD ALL c;
COMMIT;

SELECT stepwise.cancel_plan(:'plan') ->> 'planStatus';
DROP FUNCTION regress_planned;
