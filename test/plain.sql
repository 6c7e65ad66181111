-- Functions that the tests of plain SQL share: ids by the names of plans and steps, and errors as values. The setting test.goal has
-- the goal of the test's plans, since other tests may use the same names.

CREATE FUNCTION pg_temp.id(plan text) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT p.id FROM stepwise.plan AS p WHERE p.name = plan AND p.goal = current_setting('test.goal')
$$;

CREATE FUNCTION pg_temp.id(plan text, step text) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT s.id FROM stepwise.step AS s WHERE s.plan_id = pg_temp.id(plan) AND s.name = step
$$;

-- Run a statement that should fail: SQLSTATE and message, and detail and hint if requested.
CREATE FUNCTION pg_temp.try(statement text, more boolean = false) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    EXECUTE statement;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', sqlstate || ' ' || sqlerrm, CASE WHEN more THEN detail END, CASE WHEN more THEN regexp_replace(hint, '[0-9a-f]{8}-[0-9a-f-]{27}', 'ID', 'g') END);
END $$;
