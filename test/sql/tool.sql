-- Tools and resources: what can be registered, and what is refused. Test tap_rights has the rights.

\set ECHO none
\i test/tools.sql
\set ECHO all

CREATE SCHEMA regress_tool;
GRANT USAGE ON SCHEMA regress_tool TO PUBLIC;
SET search_path = regress_tool;

CREATE FUNCTION echo(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION echo_strict(jsonb) RETURNS jsonb LANGUAGE sql STRICT AS 'SELECT $1';
CREATE FUNCTION "Odd ""name"""(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION of_text(text) RETURNS jsonb LANGUAGE sql AS 'SELECT to_jsonb($1)';
CREATE FUNCTION of_two(jsonb, int DEFAULT 1) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION of_none() RETURNS jsonb LANGUAGE sql AS $$ SELECT '{}'::jsonb $$;
CREATE FUNCTION to_json(jsonb) RETURNS json LANGUAGE sql AS 'SELECT $1::json';
CREATE FUNCTION to_text(jsonb) RETURNS text LANGUAGE sql AS 'SELECT $1::text';
CREATE FUNCTION many(jsonb) RETURNS SETOF jsonb LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION pg_temp.passing(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
CREATE PROCEDURE doing(jsonb) LANGUAGE sql AS '';
CREATE AGGREGATE gather(jsonb) (SFUNC = jsonb_concat, STYPE = jsonb);

-- ---------- registering ----------

SELECT stepwise.register_tool('echo', 'echo(jsonb)');
SELECT stepwise.register_tool('echo', 'echo_strict(jsonb)', description => 'says it again', retryable => true);
SELECT stepwise.register_tool('odd', '"Odd ""name"""(jsonb)', expose => true);
SELECT stepwise.register_tool('deploy', input_schema => '{"type": "object", "required": ["region"]}');
SELECT stepwise.register_tool('send mail', NULL);

SELECT t ->> 'name', t ->> 'function', t -> 'inDatabase', t -> 'retryable', t -> 'expose', t -> 'builtIn', t ->> 'description', t -> 'inputSchema'
FROM jsonb_array_elements(stepwise.list_tools() -> 'tools') AS t WHERE t ->> 'name' IN ('echo', 'odd', 'deploy', 'send mail') OR (t -> 'builtIn')::boolean;

-- ---------- functions that cannot be tools ----------

SELECT f, pg_temp.try(format('SELECT stepwise.register_tool(%L, %L)', 'x', f))
FROM unnest('{of_text(text),"of_two(jsonb,int)",of_none(),to_json(jsonb),to_text(jsonb),many(jsonb),pg_temp.passing(jsonb),doing(jsonb),gather(jsonb),jsonb_agg(anyelement)}'::text[]) AS f;
SELECT pg_temp.try('SELECT stepwise.register_tool(''x'', 4711::regprocedure)');
SELECT pg_temp.try('SELECT stepwise.register_tool(''x'', 0::regprocedure)');

-- ---------- names ----------

SELECT n, pg_temp.try(format('SELECT stepwise.register_tool(%L, %L)', n, 'echo(jsonb)'))
FROM unnest(ARRAY[NULL, '', '  ', E'two\nlines', repeat('x', 201), 'state_read', 'state_write', 'state_merge']) AS n;
SELECT pg_temp.try('SELECT stepwise.register_tool(''x'', retryable => NULL)');
SELECT pg_temp.try('SELECT stepwise.register_tool(''x'', expose => NULL)');

-- ---------- schemas ----------

SELECT s, pg_temp.try(format('SELECT stepwise.register_tool(%L, input_schema => %L)', 'x', s))
FROM unnest(ARRAY['null', '[]', '"object"', '{"type": "string"}', '{"type": ["object"]}', '{"required": "a"}', '{"required": [1]}',
    '{"properties": []}', '{"properties": {"a": 1}}', '{"properties": {"a": {"type": "int"}}}', '{"properties": {"a": {"type": ["string", 7]}}}',
    '{"properties": {"a": {"enum": "b"}}}']) AS s;
SELECT stepwise.register_tool('x', input_schema => '{}');
SELECT stepwise.register_tool('x', input_schema => '{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "required": [],
    "properties": {"a": true, "b": {}, "c": {"type": ["string", "null"], "enum": ["x", null]}}, "additionalProperties": false}');

-- ---------- dropping ----------

SELECT stepwise.drop_tool('x');
SELECT n, pg_temp.try(format('SELECT stepwise.drop_tool(%L)', n)) FROM unnest(ARRAY['x', NULL, '', 'state_read']) AS n;

-- ---------- resources ----------

SELECT stepwise.register_resource('docs://*', 'of_text(text)');
SELECT stepwise.register_resource('docs://*', 'echo(jsonb)');
SELECT f, pg_temp.try(format('SELECT stepwise.register_resource(%L, %L)', 'x://*', f))
FROM unnest(ARRAY[NULL, 'of_none()', 'to_text(jsonb)', 'many(jsonb)', 'doing(jsonb)']) AS f;
SELECT p, pg_temp.try(format('SELECT stepwise.register_resource(%L, %L)', p, 'echo(jsonb)'))
FROM unnest(ARRAY[NULL, '', 'stepwise://*', 'stepwise://artifact/x']) AS p;
SELECT * FROM stepwise.resource WHERE pattern LIKE 'docs:%';
SELECT stepwise.drop_resource('docs://*');
SELECT p, pg_temp.try(format('SELECT stepwise.drop_resource(%L)', p)) FROM unnest(ARRAY['docs://*', NULL]) AS p;

-- ---------- a tenant has its own ----------

CREATE ROLE regress_tool_agent;
SELECT stepwise.grant_agent('regress_tool_agent') ->> 'granted', stepwise.add_member('regress_tool_agent', 'elsewhere') ->> 'added';
SET ROLE regress_tool_agent;
SELECT jsonb_path_query_array(stepwise.list_tools(), '$.tools[*].name');
SELECT pg_temp.try('SELECT stepwise.register_tool(''mine'')');
RESET ROLE;
BEGIN;
SELECT stepwise.enter_tenant('elsewhere');
SELECT stepwise.register_tool('theirs') ->> 'name';
COMMIT;
SET ROLE regress_tool_agent;
SELECT jsonb_path_query_array(stepwise.list_tools(), '$.tools[*].name');
RESET ROLE;

DROP OWNED BY regress_tool_agent;
SELECT stepwise.remove_member('regress_tool_agent', 'elsewhere') ->> 'removed';
DROP ROLE regress_tool_agent;

SELECT count(stepwise.drop_tool(name)) > 0 FROM stepwise.tool WHERE tenant = stepwise.current_tenant() AND coalesce(function, 'regress_tool.') LIKE 'regress_tool.%';
DROP SCHEMA regress_tool CASCADE;
