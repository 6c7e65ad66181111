-- Functions that the tests of tools and runs share.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

-- Run a statement, and return its answer, or the SQLSTATE and the message.
CREATE FUNCTION pg_temp.try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE statement INTO answer;
    RETURN answer;
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate || ' ' || sqlerrm;
END $$;
