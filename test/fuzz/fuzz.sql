-- Run the fuzz target. psql variables: module is the built library, cases is the number of cases of each kind, seed selects them.
-- Every test prints one line "ok ...", or an error whose CONTEXT names the case.

SET client_min_messages = warning;

CREATE FUNCTION fuzz_reference(cases int, seed bigint) RETURNS text LANGUAGE c STRICT AS :'module';
CREATE FUNCTION fuzz_condition(cases int, seed bigint) RETURNS text LANGUAGE c STRICT AS :'module';
CREATE FUNCTION fuzz_mutation(cases int, seed bigint) RETURNS text LANGUAGE c STRICT AS :'module';
CREATE FUNCTION fuzz_jsonpath(cases int, seed bigint) RETURNS text LANGUAGE c STRICT AS :'module';
CREATE FUNCTION random_definition(seed bigint, number int) RETURNS jsonb LANGUAGE c STRICT AS :'module';
CREATE FUNCTION try_reference("text" text) RETURNS text LANGUAGE c STRICT AS :'module';
CREATE FUNCTION try_condition(source text, "values" jsonb = '{}', branching boolean = false) RETURNS text
    LANGUAGE c STRICT AS :'module';

-- Each definition is validated, defined and started, and all of it is rolled back. Only errors of class SW are allowed. A definition
-- can be defined if and only if it is valid.
CREATE FUNCTION fuzz_definition_case(seed bigint, number int) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    definition jsonb := random_definition(seed, number);
    valid boolean := (stepwise.validate_definition(definition) ->> 'valid')::boolean;
    reached text := 'refused';
BEGIN
    BEGIN
        PERFORM stepwise.define_workflow(definition);
        reached := 'defined';
        PERFORM stepwise.start_workflow(definition ->> 'name', '{"b": {"c": [1]}}');
        reached := 'started';
        RAISE EXCEPTION USING ERRCODE = 'SW999', MESSAGE = 'undo';
    EXCEPTION WHEN OTHERS THEN
        IF SQLSTATE !~ '^SW' OR SQLERRM = '' THEN
            RAISE EXCEPTION 'definition case % of seed % is %, then: % %', number, seed, reached, SQLSTATE, SQLERRM
                USING DETAIL = definition;
        END IF;
        IF valid <> (reached <> 'refused') THEN
            RAISE EXCEPTION 'definition case % of seed %: valid is %, but it is %: %', number, seed, valid, reached, SQLERRM
                USING DETAIL = definition;
        END IF;
    END;
    RETURN reached;
END $$;

CREATE FUNCTION memory_used() RETURNS bigint LANGUAGE sql AS
    'SELECT sum(total_bytes)::bigint FROM pg_catalog.pg_backend_memory_contexts WHERE name NOT LIKE ''%Cache%''';

-- Each case is its own statement. Memory that remains belongs to the backend, and must not grow with the number of cases.
CREATE PROCEDURE fuzz_definition(cases int, seed bigint, INOUT report text = NULL) LANGUAGE plpgsql AS $$
DECLARE
    counts jsonb := '{"refused": 0, "defined": 0, "started": 0}';
    reached text;
    warm bigint;
BEGIN
    FOR number IN 1 .. cases LOOP
        reached := fuzz_definition_case(seed, number);
        counts := jsonb_set(counts, ARRAY[reached], to_jsonb((counts ->> reached)::int + 1));
        COMMIT;
        IF number = cases / 2 THEN
            warm := memory_used();
        END IF;
    END LOOP;
    IF memory_used() > warm + 1024 * 1024 THEN
        RAISE EXCEPTION 'definition: memory grew from % to % bytes', warm, memory_used();
    END IF;
    report := format('definition: %s cases, %s refused, %s defined, %s started', cases, counts ->> 'refused',
                     counts ->> 'defined', counts ->> 'started');
END $$;

\ir units.sql
SELECT 'ok ' || fuzz_reference(:cases, :seed);
SELECT 'ok ' || fuzz_condition(:cases, :seed);
SELECT 'ok ' || fuzz_mutation(:cases, :seed);
SELECT 'ok ' || fuzz_jsonpath(:cases, :seed);
CALL fuzz_definition(:cases / 10, :seed) \gset
SELECT 'ok ' || :'report';
