-- The cost of a call must not grow with the number of other rows. It is measured in the server, without the client and the commit.
-- Microseconds are noisy, so they are medians over many calls. Pages and rows are exact.
-- psql variable: finished is the number of finished plans.

\pset footer off
SET client_min_messages = warning;
SET synchronous_commit = off;

CREATE TABLE bench.sample (part text NOT NULL, surroundings text NOT NULL, call text NOT NULL, us float8, pages int, rows int);

-- ---------- measuring one call ----------

-- The number of rows that this session has read or written in the tables and indexes of the two schemas.
CREATE FUNCTION bench.rows_so_far() RETURNS bigint
LANGUAGE sql VOLATILE AS $$
    SELECT sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid) + pg_stat_get_xact_tuples_inserted(oid)
               + pg_stat_get_xact_tuples_updated(oid) + pg_stat_get_xact_tuples_deleted(oid))
    FROM pg_class WHERE relnamespace IN ('stepwise'::regnamespace, 'handwritten'::regnamespace) AND relkind IN ('r', 'i')
$$;

-- Make a call, record its cost, and return its answer. EXPLAIN also counts the pages of queries inside a function, but does not show
-- the answer, so a setting passes it on.
CREATE FUNCTION bench.measured(part text, surroundings text, call text, expression text) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    before bigint := bench.rows_so_far();
    cost   json;
BEGIN
    EXECUTE format('EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) SELECT set_config(''bench.answer'', to_jsonb(%s)::text, false)', expression)
    INTO cost;
    INSERT INTO bench.sample
    VALUES (part, surroundings, call, (cost #>> '{0,Execution Time}')::float8 * 1000,
            (cost #>> '{0,Plan,Shared Hit Blocks}')::int + (cost #>> '{0,Plan,Shared Read Blocks}')::int,
            bench.rows_so_far() - before);
    RETURN nullif(current_setting('bench.answer'), '');
END $$;

-- Do the next two steps of a plan with all three calls, the given number of times. Each call is a transaction.
CREATE PROCEDURE bench.walk(part text, surroundings text, plan uuid, times int)
LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
    result text := quote_literal('{"value": 42, "kind": "number", "note": "what the agent found out about the item"}');
BEGIN
    FOR i IN 1 .. times LOOP
        answer := bench.measured(part, surroundings, '1 get_next_step', format('stepwise.get_next_step(%L)', plan));
        COMMIT;
        answer := bench.measured(part, surroundings, '2 advance', format('stepwise.advance(%L, %s)', answer ->> 'stepId', result));
        COMMIT;
        answer := bench.measured(part, surroundings, '3 submit_step_result',
                                 format('stepwise.submit_step_result(%L, %s)', answer #>> '{next,stepId}', result));
        COMMIT;
    END LOOP;
END $$;

CREATE PROCEDURE bench.walk_handwritten(part text, surroundings text, plan uuid, times int)
LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
    result text := quote_literal('{"value": 42, "kind": "number", "note": "what the agent found out about the item"}');
BEGIN
    FOR i IN 1 .. times LOOP
        answer := bench.measured(part, surroundings, '4 handwritten claim', format('handwritten.claim(%L)', plan));
        COMMIT;
        answer := bench.measured(part, surroundings, '6 handwritten advance', format('handwritten.advance(%L, %s)', answer ->> 'step_id', result));
        COMMIT;
        answer := bench.measured(part, surroundings, '5 handwritten complete', format('handwritten.complete(%L, %s)', answer ->> 'step_id', result));
        COMMIT;
    END LOOP;
END $$;

CREATE VIEW bench.cost AS
SELECT part, surroundings, substr(call, 3) AS call, count(*) AS calls,
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY us)) AS microseconds,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY pages) AS pages,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY rows) AS rows
FROM bench.sample AS s GROUP BY part, surroundings, s.call
ORDER BY part, s.call, min(s.ctid);

-- ---------- kinds of plans ----------

-- A plan with dependencies, in which each step depends on the one before it.
CREATE FUNCTION bench.chain(size int) RETURNS jsonb
LANGUAGE sql AS $$
    SELECT jsonb_agg(jsonb_build_object('name', 'step_' || i, 'tool', 'inspect')
                     || CASE WHEN i > 1 THEN jsonb_build_object('dependsOn', jsonb_build_array('step_' || i - 1)) ELSE '{}' END ORDER BY i)
    FROM generate_series(1, size) AS i
$$;

-- A plan whose first steps are finished, and whose other steps refer to three of them each.
CREATE FUNCTION bench.referring(finished int, referring int) RETURNS jsonb
LANGUAGE sql AS $$
    SELECT bench.steps(finished) || jsonb_agg(jsonb_build_object('name', 'refer_' || i, 'tool', 'inspect', 'arguments', jsonb_build_object(
        'first', '${steps.step_1.outputs.value}', 'middle', format('${steps.step_%s.outputs.value}', finished / 2),
        'last', format('As ${steps.step_%s.outputs.value} says', finished))))
    FROM generate_series(1, referring) AS i
$$;

-- ---------- finished plans ----------

-- Measure first in a nearly empty database with fresh statistics, then with many plans in the same session, whose cached query plans
-- were made for the empty database, then in a new session.
SELECT bench.new_plan(bench.steps(3)) AS template, bench.new_plan(bench.steps(200)) AS few, bench.new_plan(bench.steps(200)) AS same,
       bench.new_plan(bench.steps(200)) AS new \gset
CALL bench.finish(:'template', 3);
VACUUM (ANALYZE);
CALL bench.walk('finished', 'few', :'few', 100);
-- another session does this, so that the cached query plans of this session stay
\setenv multiply 'CALL bench.multiply(''':template''', ':finished')'
\! psql -X -q -c "$multiply"
CALL bench.walk('finished', :'finished' || ', a session of before', :'same', 100);
VACUUM (ANALYZE);
\connect
SET synchronous_commit = off;
CALL bench.walk('finished', :'finished', :'new', 100);

\echo 'Finished plans'
SELECT call, surroundings AS "finished plans", microseconds, pages, rows FROM bench.cost WHERE part = 'finished';

-- ---------- compared with handwritten PL/pgSQL ----------

SELECT bench.new_plan(bench.steps(1000)) AS plan, bench.new_handwritten_plan(bench.steps(1000)) AS handwritten \gset
CALL bench.walk('calls', '', :'plan', 500);
CALL bench.walk_handwritten('calls', '', :'handwritten', 500);

\echo 'A call in the server alone, without the client and the commit: medians over so many calls'
SELECT call, calls, microseconds, pages, rows FROM bench.cost WHERE part = 'calls';

-- ---------- the length of a plan ----------

-- Many short plans, one after the other.
CREATE PROCEDURE bench.walk_short(part text, definition jsonb, plans int)
LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. plans LOOP
        CALL bench.walk(part, '10', bench.new_plan(definition), 5);
    END LOOP;
END $$;

CALL bench.walk_short('length', bench.steps(10), 40);
SELECT bench.new_plan(bench.steps(10000)) AS plan \gset
CALL bench.walk('length', '10,000, at the beginning', :'plan', 200);
CALL bench.finish(:'plan', 9000);
VACUUM;
CALL bench.walk('length', '10,000, 9,000 finished', :'plan', 200);

\echo 'The length of a plan, a sequence'
SELECT call, surroundings AS "steps of the plan", microseconds, pages, rows FROM bench.cost WHERE part = 'length';

CALL bench.walk_short('dependencies', bench.chain(10), 40);
SELECT bench.new_plan(bench.chain(10000)) AS plan \gset
CALL bench.finish(:'plan', 9000);
VACUUM;
CALL bench.walk('dependencies', '10,000, 9,000 finished', :'plan', 200);

\echo 'The length of a plan with dependencies'
SELECT call, surroundings AS "steps of the plan", microseconds, pages, rows FROM bench.cost WHERE part = 'dependencies';

-- ---------- references ----------

SELECT bench.new_plan(bench.referring(10, 200)) AS few, bench.new_plan(bench.referring(9800, 200)) AS many \gset
CALL bench.finish(:'few', 10);
CALL bench.finish(:'many', 9800);
VACUUM;
CALL bench.walk('references', '10', :'few', 100);
CALL bench.walk('references', '9,800', :'many', 100);

\echo 'Three references a step'
SELECT call, surroundings AS "finished steps", microseconds, pages, rows FROM bench.cost WHERE part = 'references' AND call <> 'submit_step_result';

-- ---------- nested plans ----------

-- A deep tree: the innermost plan has the steps, and each plan above it has one step that holds the next plan.
CREATE FUNCTION bench.deep(depth int) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stepwise.define_workflow(jsonb_build_object('name', 'deep_0', 'steps', bench.steps(100)));
    FOR i IN 1 .. depth - 1 LOOP
        PERFORM stepwise.define_workflow(jsonb_build_object('name', 'deep_' || i,
            'steps', jsonb_build_array(jsonb_build_object('name', 'down', 'workflow', 'deep_' || i - 1))));
    END LOOP;
    RETURN jsonb_build_array(jsonb_build_object('name', 'down', 'workflow', 'deep_' || depth - 1));
END $$;

-- A wide tree: many steps, each of which holds a plan of two steps.
CREATE FUNCTION bench.wide(width int) RETURNS jsonb
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stepwise.define_workflow(jsonb_build_object('name', 'pair', 'steps', bench.steps(2)));
    RETURN (SELECT jsonb_agg(jsonb_build_object('name', 'hold_' || i, 'workflow', 'pair')) FROM generate_series(1, width) AS i);
END $$;

SELECT bench.new_plan(bench.deep(1)) AS plan \gset
CALL bench.walk('depth', '1', :'plan', 50);
SELECT bench.new_plan(bench.deep(10)) AS plan \gset
CALL bench.walk('depth', '10', :'plan', 50);
SELECT bench.new_plan(bench.deep(50)) AS plan \gset
CALL bench.walk('depth', '50', :'plan', 50);

\echo 'Steps of a plan that is nested so deep'
SELECT call, surroundings AS depth, microseconds, pages, rows FROM bench.cost WHERE part = 'depth';

SELECT bench.new_plan(bench.wide(1000)) AS plan \gset
CALL bench.walk('width', 'the first 100', :'plan', 100);
CALL bench.walk('width', 'between', :'plan', 800);
CALL bench.walk('width', 'the last 100', :'plan', 100);

\echo 'A root with 1,000 nested plans of two steps; get_next_step opens one, submit_step_result ends it'
SELECT call, surroundings AS "nested plans", microseconds, pages, rows FROM bench.cost WHERE part = 'width' AND surroundings <> 'between';

-- ---------- definitions ----------

-- 10,000 steps with one INSERT each, from a loop in the server and from a client. Each runs three times, and the fastest counts.
CREATE PROCEDURE bench.define(steps jsonb, size int)
LANGUAGE plpgsql AS $$
DECLARE
    start timestamptz;
    plan  uuid;
BEGIN
    FOR i IN 1 .. 3 LOOP
        start := clock_timestamp();
        PERFORM stepwise.create_plan('bench', 'See how fast it goes', steps);
        COMMIT;
        INSERT INTO bench.sample VALUES ('define', 'create_plan', '1', extract(epoch FROM clock_timestamp() - start) * 1000);
        start := clock_timestamp();
        plan := bench.new_handwritten_plan('[]');
        FOR i IN 1 .. size LOOP
            INSERT INTO handwritten.step (plan_id, step_order, name, tool, instructions, arguments)
            VALUES (plan, i, 'step_' || i, 'inspect', 'Look at item ' || i || ' and say what it is', '{"deep": true}');
        END LOOP;
        COMMIT;
        INSERT INTO bench.sample VALUES ('define', 'single INSERTs by hand, in a PL/pgSQL loop', '2', extract(epoch FROM clock_timestamp() - start) * 1000);
    END LOOP;
END $$;

CALL bench.define(bench.steps(10000), 10000);

SELECT bench.new_handwritten_plan('[]') AS plan, clock_timestamp() AS start \gset
BEGIN;
SELECT format('INSERT INTO handwritten.step (plan_id, step_order, name, tool, instructions, arguments) VALUES (%L, %s, %L, %L, %L, %L)',
              :'plan', i, 'step_' || i, 'inspect', 'Look at item ' || i || ' and say what it is', '{"deep": true}')
FROM generate_series(1, 10000) AS i
\gexec
COMMIT;
INSERT INTO bench.sample VALUES ('define', 'single INSERTs by hand, from a client', '3', extract(epoch FROM clock_timestamp() - :'start') * 1000);

\echo 'A definition of 10,000 steps'
SELECT surroundings AS way, round(min(us)) AS milliseconds FROM bench.sample WHERE part = 'define' GROUP BY way, call ORDER BY call;
