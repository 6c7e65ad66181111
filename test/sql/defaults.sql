-- Calls that leave arguments out: the library completes them as PostgreSQL itself does.

-- what EXPLAIN shows of calls with arguments left out, by position, by name and mixed, in the target list and in FROM
\set id '00000000-0000-7000-8000-000000000001'
\set calls 'EXPLAIN (VERBOSE, COSTS OFF) SELECT stepwise.submit_step_result(:''id'', ''1''), stepwise.submit_step_result(result => ''1'', step_id => :''id'', worker => ''w''), stepwise.get_next_step(:''id'', ''w'', run_tools => true) ->> ''x'', stepwise.why(:''id''); EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM stepwise.advance(:''id'', ''1'', attempt => 3) AS a, LATERAL stepwise.fail_step(:''id'', a ->> ''x'', code => ''c'');'

\pset format unaligned
-- in a new session, which has not loaded the library
\c -
:calls
-- the same with it
SELECT stepwise.current_tenant();
:calls
:calls

-- a prepared statement with parameters
PREPARE next(uuid) AS SELECT stepwise.get_next_step($1, lease => '1 hour');
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE next(:'id');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE next(:'id');
RESET plan_cache_mode;

-- a default that is changed counts at once, and one that is no constant too
CREATE FUNCTION stepwise.regress_default(a int, b int = 2, c int = 3) RETURNS text LANGUAGE sql RETURN concat_ws(',', a, b, c);
SELECT stepwise.regress_default(1), stepwise.regress_default(1, c => 7), stepwise.regress_default(c => 7, a => 5);
CREATE OR REPLACE FUNCTION stepwise.regress_default(a int, b int = 4, c int = 5) RETURNS text LANGUAGE sql RETURN concat_ws(',', a, b, c);
SELECT stepwise.regress_default(1), stepwise.regress_default(1, c => 7), stepwise.regress_default(c => 7, a => 5);
CREATE OR REPLACE FUNCTION stepwise.regress_default(a int, b int = 4, c int = length(current_schema)) RETURNS text LANGUAGE sql RETURN concat_ws(',', a, b, c);
SELECT stepwise.regress_default(1), stepwise.regress_default(1, c => 7), stepwise.regress_default(c => 7, a => 5);
DROP FUNCTION stepwise.regress_default;

-- a default of a type that follows the arguments
CREATE FUNCTION stepwise.regress_default(a anycompatible, b anycompatible = 7) RETURNS anycompatible LANGUAGE plpgsql AS 'BEGIN RETURN b; END';
SELECT stepwise.regress_default(1.5), pg_typeof(stepwise.regress_default(1.5)), (SELECT b FROM stepwise.regress_default(b => 2.5, a => 1) AS b);
SELECT stepwise.regress_default('1 day'::interval, '2 days'), stepwise.regress_default(1);
SELECT stepwise.regress_default(1.5);
DROP FUNCTION stepwise.regress_default;
