-- Answers as the client gets them: the library writes the text of the answer of a call, and it is that of PostgreSQL. With assertions, each
-- text is compared. Values that the library does not send are written by PostgreSQL, so the two can be compared here.

\pset format unaligned
\pset tuples_only on

SELECT stepwise.create_plan('sent', 'Look at answers', '[{}]') ->> 'planId' AS plan \gset

-- Show whether the text that was sent is the one that PostgreSQL writes.
\set same 'SELECT :''sent'' = stepwise.task_variables(:''plan'')::text, :''sent''::jsonb = stepwise.task_variables(:''plan'');'

-- ---------- strings ----------

-- each character that may need an escape, at each place of a word of eight bytes
SELECT stepwise.set_variables(:'plan', jsonb_object_agg('c' || c || '_' || n, repeat('x', n) || chr(c) || repeat('y', 9 - n)))  IS NOT NULL
FROM unnest('{1,8,9,10,11,12,13,27,31,32,33,34,35,47,91,92,93,126,127,128,160,255,8364,65533,128512}'::int[]) AS c, generate_series(0, 9) AS n;
SELECT stepwise.task_variables(:'plan') AS sent \gset
:same
SELECT stepwise.set_variables(:'plan', (SELECT jsonb_object_agg(key, NULL) FROM jsonb_each(stepwise.task_variables(:'plan')) WHERE key ~ '^c\d')) IS NOT NULL;

-- keys and strings of every length, in one piece and in several
SELECT stepwise.set_variables(:'plan', jsonb_build_object('lengths', (SELECT jsonb_agg(repeat('a"', n)) FROM generate_series(0, 20) AS n),
    'long', jsonb_build_array(repeat('z', 1023), repeat('z', 1024) || '"', repeat('z', 1025), repeat(E'\x01', 5000), repeat('é', 3000)),
    'keys', (SELECT jsonb_object_agg(repeat('k\', n) || n, n) FROM generate_series(0, 20) AS n))) IS NOT NULL;
SELECT stepwise.task_variables(:'plan') AS sent \gset
:same

-- ---------- numbers, words, containers ----------

SELECT stepwise.set_variables(:'plan', '{"numbers": [0, -0, 1, -1, 1.50, 1e3, 1E-7, 123456789012345678901234567890.000000001, 0.1, -12.5e10],
    "words": [true, false, null], "empty": [{}, [], "", [[]], {"a": {}}], "scalars": {"": "", "a b": null},
    "deep": [[[[[{"a": [{"b": {"c": [1, {"d": "e"}]}}]}]]]]]}') IS NOT NULL;
SELECT stepwise.set_variables(:'plan', jsonb_build_object('many', (SELECT jsonb_agg(n) FROM generate_series(1, 500) AS n),
    'wide', (SELECT jsonb_object_agg('k' || n, jsonb_build_array(n, 'v' || n, n % 2 = 0)) FROM generate_series(1, 500) AS n))) IS NOT NULL;
SELECT stepwise.task_variables(:'plan') AS sent \gset
:same
-- an array of arrays, as deep as values may be
SELECT stepwise.set_variables(:'plan', jsonb_build_object('deep', (repeat('[', 60) || repeat(']', 60))::jsonb)) IS NOT NULL;
SELECT stepwise.task_variables(:'plan') AS sent \gset
:same

-- ---------- ways to get an answer ----------

SELECT stepwise.set_variables(:'plan', jsonb_build_object('deep', NULL, 'many', NULL, 'wide', NULL, 'long', NULL, 'keys', NULL, 'lengths', NULL, 'numbers', NULL, 'words', NULL)) IS NOT NULL;
SELECT stepwise.task_variables(:'plan') AS sent \gset
\set answer 'stepwise.task_variables(:''plan'')'
:same

-- two columns, FROM, an expression, a subquery, UNION
SELECT :answer AS sent, 1 AS one \gset
:same
SELECT a AS sent FROM :answer AS a \gset
:same
SELECT :answer || '{}' AS sent \gset
:same
SELECT (SELECT :answer) AS sent \gset
:same
SELECT :answer AS sent UNION SELECT NULL WHERE false \gset
:same

-- of two calls in one expression the first one may not be taken for the second
SELECT coalesce(nullif(stepwise.why(:'plan'), stepwise.why(:'plan')), :answer) AS sent \gset
:same
-- another value, for a call that is made beside it
SELECT CASE WHEN stepwise.why(:'plan') IS NOT NULL THEN '{"mine": "\u00e9\"" }'::jsonb END;
SELECT jsonb_build_array(stepwise.why(:'plan') ->> 'planId' = :'plan', '"');

-- one answer for each of several rows
SELECT stepwise.mcp(jsonb_build_object('jsonrpc', '2.0', 'id', n, 'method', 'ping')) FROM generate_series(1, 3) AS n;
SELECT CASE n WHEN 2 THEN '"another"' ELSE stepwise.mcp(jsonb_build_object('jsonrpc', '2.0', 'id', n, 'method', 'ping')) END FROM generate_series(1, 3) AS n;

-- prepared statements, cursors, and a cursor that is read backward
PREPARE variables(uuid) AS SELECT stepwise.task_variables($1);
EXECUTE variables(:'plan') \gset
\set sent :task_variables
:same
BEGIN;
DECLARE forward CURSOR FOR SELECT :answer AS sent;
FETCH forward \gset
:same
DECLARE again SCROLL CURSOR FOR SELECT :answer AS sent;
MOVE ALL again;
FETCH BACKWARD 1 again \gset
:same
-- in binary there is a byte for the version before the text
DECLARE bytes BINARY CURSOR FOR SELECT :answer AS sent;
FETCH bytes \gset
SELECT :'sent' = E'\x01' || stepwise.task_variables(:'plan')::text;
COMMIT;
DEALLOCATE variables;

-- COPY, SQL functions and PL/pgSQL
COPY (SELECT stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "ping"}')) TO STDOUT;
CREATE FUNCTION regress_sent_sql(plan uuid) RETURNS jsonb LANGUAGE sql AS 'SELECT stepwise.task_variables(plan)';
CREATE FUNCTION regress_sent_plpgsql(plan uuid) RETURNS jsonb LANGUAGE plpgsql AS 'BEGIN RETURN stepwise.task_variables(plan); END';
SELECT regress_sent_sql(:'plan') AS sent \gset
:same
SELECT regress_sent_plpgsql(:'plan') AS sent \gset
:same
DROP FUNCTION regress_sent_sql, regress_sent_plpgsql;

-- by name, and over MCP
SELECT stepwise.call('task_variables', jsonb_build_object('planId', :'plan')) AS sent \gset
:same
SELECT stepwise.mcp(jsonb_build_object('jsonrpc', '2.0', 'id', E'"\n', 'method', 'ping'));

-- no answer, an error after an answer, and an answer after an error
SELECT stepwise.mcp('{"jsonrpc": "2.0", "method": "notifications/initialized"}') IS NULL;
SELECT stepwise.mcp('{"jsonrpc": "2.0", "method": "notifications/initialized"}');
SELECT stepwise.why(CASE n WHEN 1 THEN :'plan'::uuid END) ->> 'planId' = :'plan' FROM generate_series(1, 2) AS n;
SELECT :answer AS sent \gset
:same

SELECT stepwise.cancel_plan(:'plan') ->> 'planStatus';
