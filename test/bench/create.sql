-- A plan of 10,000 steps, in milliseconds; and the same rows by one bare INSERT ... SELECT, into a table with the same keys and indexes, but
-- without triggers and checks. Each line is: create, way, milliseconds.

CREATE TABLE bench.bare (LIKE stepwise.step INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING INDEXES);
CREATE TABLE bench.took (way text, ms float8);
SELECT (stepwise.create_plan('bench', 'See how fast it goes', bench.steps(10000)) ->> 'planId') AS plan \gset
CREATE TABLE bench.saved AS SELECT * FROM stepwise.step WHERE plan_id = :'plan';

CREATE PROCEDURE bench.create_turns(turns int)
LANGUAGE plpgsql AS $$
DECLARE
    steps jsonb := bench.steps(10000);
    start timestamptz;
BEGIN
    FOR i IN 1 .. turns LOOP
        start := clock_timestamp();
        PERFORM stepwise.create_plan('bench', 'See how fast it goes', steps);
        COMMIT;
        INSERT INTO bench.took VALUES ('create_plan', extract(epoch FROM clock_timestamp() - start) * 1000);
        TRUNCATE bench.bare;
        COMMIT;
        start := clock_timestamp();
        INSERT INTO bench.bare SELECT * FROM bench.saved;
        COMMIT;
        INSERT INTO bench.took VALUES ('bare', extract(epoch FROM clock_timestamp() - start) * 1000);
        start := clock_timestamp();
        PERFORM bench.new_handwritten_plan(steps);
        COMMIT;
        INSERT INTO bench.took VALUES ('handwritten', extract(epoch FROM clock_timestamp() - start) * 1000);
    END LOOP;
END $$;

CALL bench.create_turns(:turns);
SELECT 'create', way, round(ms::numeric, 2) FROM bench.took;
