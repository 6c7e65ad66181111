-- call(): wrong types and values for every argument of every function, from the catalog. Each is an error of class SW, with a hint, and changes nothing.

\set ECHO none
\i test/agent.sql
-- The functions that can be called by name: the error for an unknown one lists them.
CREATE FUNCTION pg_temp.callable() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    PERFORM stepwise.call('no such function');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN QUERY SELECT regexp_split_to_table(substring(detail FROM 'are: (.*)\.$'), ', ');
END $$;
-- What a call came to: its SQLSTATE, "no hint", or "answered". What an answered call has changed is rolled back.
CREATE FUNCTION pg_temp.tried(function text, arguments jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    PERFORM stepwise.call(function, arguments);
    RAISE SQLSTATE 'ZZ001';
EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
    RETURN 'answered';
WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN CASE WHEN hint = '' THEN 'no hint: ' || sqlstate || ' ' || sqlerrm ELSE sqlstate END;
END $$;
-- A digest of all tables of the extension.
CREATE FUNCTION pg_temp.tables_digest() RETURNS text LANGUAGE sql AS $$
    SELECT md5(string_agg(query_to_xml(format('SELECT count(*), md5(string_agg(t::text, E''\n'' ORDER BY t::text)) FROM %s AS t', c.oid::regclass), true, true, '')::text, '' ORDER BY c.relname))
    FROM pg_class AS c WHERE c.relnamespace = 'stepwise'::regnamespace AND c.relkind = 'r'
$$;
SELECT pg_temp.make('mistyped', '[{"name": "a", "tool": "fetch"}, {"name": "b"}, {"name": "ask", "prompt": "So?"}]') \g /dev/null
SELECT pg_temp.next('mistyped') \g /dev/null

-- Each argument, and right values for the others.
CREATE TEMP TABLE argument AS
SELECT p.proname::text AS function, a.name, t.typname::text AS type, a.n > p.pronargs - p.pronargdefaults AS optional,
       CASE WHEN a.name = 'plan_id' THEN to_jsonb(pg_temp.plan('mistyped'))
            WHEN a.name = 'step_id' THEN to_jsonb(pg_temp.step('mistyped', 'a'))
            WHEN t.typname = 'uuid' THEN to_jsonb(stepwise.uuid7())
            WHEN t.typname = 'jsonb' THEN '{}'
            WHEN t.typname = 'bool' THEN 'true'
            WHEN t.typname IN ('int4', 'float8') THEN '1'
            WHEN t.typname = 'interval' THEN '"1 minute"'
            WHEN t.typname = 'timestamptz' THEN '"2026-01-31T12:00:00Z"'
            WHEN t.typname = '_step_status' THEN '["pending"]'
            WHEN t.typname = 'outcome' THEN '"n/a"'
            WHEN t.typname IN ('step_status', 'plan_status') THEN '"completed"'
            ELSE '"word"' END::jsonb AS fine
FROM pg_temp.callable() AS f (name)
JOIN pg_proc AS p ON p.proname = f.name AND p.pronamespace = 'stepwise'::regnamespace,
     LATERAL (SELECT n, p.proargnames[n] AS name, p.proargtypes[n - 1] AS type FROM generate_series(1, p.pronargs) AS n) AS a
JOIN pg_type AS t ON t.oid = a.type;

-- What no argument of the type can be.
CREATE TEMP TABLE wrong (type text, value jsonb);
INSERT INTO wrong
SELECT t.type, v.value
FROM (SELECT DISTINCT a.type FROM argument AS a) AS t,
     jsonb_array_elements('[7, 1.5, -1e400, true, [], [[]], {}, "nonsense", "", " ", "\u00e4"]' || jsonb_build_array(repeat('x', 100000))) AS v (value)
WHERE CASE t.type
      WHEN 'jsonb' THEN false
      WHEN 'text' THEN jsonb_typeof(v.value) <> 'string'
      WHEN 'bool' THEN jsonb_typeof(v.value) <> 'boolean'
      WHEN 'int4' THEN v.value <> '7'
      WHEN 'float8' THEN jsonb_typeof(v.value) <> 'number'
      WHEN '_step_status' THEN v.value <> '[]'
      ELSE true END;
-- What some arguments take and others refuse: an error, if it is one, must be of class SW.
CREATE TEMP TABLE odd (type text, value jsonb);
INSERT INTO odd
SELECT t.type, v.value
FROM (VALUES ('jsonb', '[7, -1e400, true, [], [[]], [null], {}, {"a": null}, "", null]' || jsonb_build_array(repeat('x', 2000000), (repeat('[', 500) || repeat(']', 500))::jsonb)),
             ('text', '["", " ", "\n", "\u00e4", "${", "$$", "0", null]' || jsonb_build_array(repeat('x', 2000000))),
             ('bool', '[null]'),
             ('int4', '[0, -1, 2147483647, -2147483648, null]'),
             ('float8', '[85, -1, 1e308, 1e999, -1e999, null]'),
             ('interval', '["0", "-1 day", "170000000 years", "-170000000 years", "1 microsecond", null]'),
             ('timestamptz', '["infinity", "-infinity", "294276-12-31", "4713-01-01 BC", null]'),
             ('uuid', '["00000000-0000-0000-0000-000000000000", null]')) AS t (type, odd_ones),
     jsonb_array_elements(t.odd_ones) AS v (value);
SELECT pg_temp.tables_digest() AS digest, (SELECT count(*) FROM stepwise.audit) AS entries \gset
\set ECHO all

SELECT count(*) > 150 FROM argument;
SELECT count(*) > 1000 FROM argument JOIN wrong USING (type);
SELECT count(*) > 1000 FROM argument JOIN odd USING (type);
-- no row
SELECT a.function, a.name, left(w.value::text, 30), x.came
FROM argument AS a JOIN wrong AS w USING (type),
     LATERAL (SELECT pg_temp.tried(a.function, (SELECT jsonb_object_agg(o.name, o.fine) FROM argument AS o WHERE o.function = a.function AND NOT o.optional OR o = a) || jsonb_build_object(a.name, w.value)) AS came) AS x
WHERE x.came <> 'SW005' ORDER BY 1, 2, 3;
SELECT a.function, a.name, left(w.value::text, 30), x.came
FROM argument AS a JOIN odd AS w USING (type),
     LATERAL (SELECT pg_temp.tried(a.function, (SELECT jsonb_object_agg(o.name, o.fine) FROM argument AS o WHERE o.function = a.function AND NOT o.optional OR o = a) || jsonb_build_object(a.name, w.value)) AS came) AS x
WHERE x.came !~ '^(SW0\d\d|answered)$' ORDER BY 1, 2, 3;
-- nothing has changed
SELECT pg_temp.tables_digest() = :'digest', (SELECT count(*) FROM stepwise.audit) = :entries;
