-- Lists over MCP come in pages. A page is bounded, and costs the same wherever it is and however long the list is.

\set ECHO none
\i test/client.sql
CREATE FUNCTION public.mcp_lists_tool(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
-- How many rows of these tables this transaction has read.
CREATE FUNCTION pg_temp.rows_read(VARIADIC tables regclass[]) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT sum(pg_stat_get_xact_tuples_returned(t) + pg_stat_get_xact_tuples_fetched(t)) FROM unnest(tables) AS t
$$;
CREATE TEMP TABLE page (list text, number int, entries int, bytes int, next text, rows_read bigint, result jsonb);
-- Read all pages of a list.
CREATE FUNCTION pg_temp.read_all(list text, key text, VARIADIC tables regclass[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    params jsonb := '{}';
    result jsonb;
    before bigint;
BEGIN
    FOR number IN 1 .. 1000 LOOP
        before := pg_temp.rows_read(VARIADIC tables);
        result := pg_temp.legacy(list, params) -> 'result';
        INSERT INTO page VALUES (list, number, jsonb_array_length(result -> key), length(result::text), result ->> 'nextCursor',
            pg_temp.rows_read(VARIADIC tables) - before, result -> key);
        EXIT WHEN NOT result ? 'nextCursor';
        params := jsonb_build_object('cursor', result -> 'nextCursor');
    END LOOP;
END $$;
\set ECHO all
BEGIN;
SELECT stepwise.enter_tenant('mcp lists') \g /dev/null

-- prompts: 1,000 workflows of 3 versions; some are large
SELECT count(stepwise.define_workflow(jsonb_build_object('name', 'flow_' || n, 'description', 'Version ' || v, 'inputs', '{"a": {"type": "string", "default": "x"}}'::jsonb,
    'steps', '[{"instructions": "x"}]'::jsonb))) FROM generate_series(1, 1000) AS n, generate_series(1, 3) AS v WHERE v = 1 OR n % 10 = 0;
SELECT count(stepwise.define_workflow(jsonb_build_object('name', 'large_' || n, 'inputs', jsonb_build_object('a', jsonb_build_object('type', 'string', 'description', repeat('d', 50000))),
    'steps', '[{"instructions": "x"}]'::jsonb))) FROM generate_series(1, 30) AS n;
SELECT pg_temp.read_all('prompts/list', 'prompts', 'stepwise.workflow') \g /dev/null
SELECT count(*) > 10 AS pages, sum(entries), max(entries), max(bytes) < 400000 AS short, max(rows_read) < 500 AS few_rows FROM page WHERE list = 'prompts/list';
SELECT count(DISTINCT p ->> 'name'), string_agg(DISTINCT p ->> 'description', ', ') FROM page, jsonb_array_elements(result) AS p WHERE list = 'prompts/list';
-- what is removed between two pages is missed by nobody
SELECT next AS cursor FROM page WHERE list = 'prompts/list' AND number = 1 \gset
SELECT stepwise.drop_workflow(p ->> 'name') FROM page, jsonb_array_elements(result) AS p WHERE list = 'prompts/list' AND number = 1 \g /dev/null
SELECT pg_temp.legacy('prompts/list', jsonb_build_object('cursor', :'cursor')) #> '{result,prompts,0,name}' = result #> '{0,name}' AS same FROM page WHERE list = 'prompts/list' AND number = 2;

-- tools: 250 that are exposed among 1,500 that are not
SELECT count(stepwise.register_tool('tool_' || to_char(n, 'FM0000'), 'public.mcp_lists_tool(jsonb)', expose => n % 7 = 0)) FROM generate_series(1, 1750) AS n;
SELECT pg_temp.read_all('tools/list', 'tools', 'stepwise.tool') \g /dev/null
SELECT count(*) > 2 AS pages, sum(entries), max(entries), max(bytes) < 400000 AS short, max(rows_read) <= 1020 AS few_rows FROM page WHERE list = 'tools/list';
SELECT count(DISTINCT t ->> 'name') FROM page, jsonb_array_elements(result) AS t WHERE list = 'tools/list';

-- resources and tasks: 60 plans among 2,200 nested ones; one has many documents
SELECT stepwise.define_workflow('{"name": "inner", "steps": [{"tool": "tool_0001"}]}') ->> 'name';
SELECT count(stepwise.create_plan('old ' || n, 'x', '[{"instructions": "x"}]')) FROM generate_series(1, 30) AS n;
SELECT stepwise.create_plan('around', repeat('g', 100000), (SELECT jsonb_agg('{"workflow": "inner", "dependsOn": []}'::jsonb) FROM generate_series(1, 2200))) ->> 'planId' AS around \gset
SELECT stepwise.run(:'around') ->> 'task_status';
SELECT count(stepwise.store_artifact(:'around', 'document ' || n, 'text')) FROM generate_series(1, 200) AS n;
SELECT count(stepwise.create_plan('new ' || n, 'x', '[{"instructions": "x"}]')) FROM generate_series(1, 29) AS n;
SELECT pg_temp.read_all('resources/list', 'resources', 'stepwise.plan', 'stepwise.artifact') \g /dev/null
SELECT count(*) >= 4 AS pages, max(entries), max(bytes) < 50000 AS short, max(rows_read) < 2150 AS few_rows FROM page WHERE list = 'resources/list';
SELECT count(DISTINCT r ->> 'uri') FILTER (WHERE r ->> 'uri' ~ 'plan/[^/]*$') AS plans, count(*) FILTER (WHERE r ->> 'uri' ~ 'artifact') AS documents
FROM page, jsonb_array_elements(result) AS r WHERE list = 'resources/list';
SELECT pg_temp.read_all('tasks/list', 'tasks', 'stepwise.plan') \g /dev/null
SELECT count(*) >= 4 AS pages, sum(entries), max(entries), max(rows_read) < 2150 AS few_rows FROM page WHERE list = 'tasks/list';

-- completion: inputs that are large are not read
SELECT count(stepwise.start_workflow('flow_999', jsonb_build_object('a', CASE WHEN n % 2 = 0 THEN 'short ' || n ELSE (SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 2000)) END))) FROM generate_series(1, 20) AS n;
SELECT jsonb_array_length(pg_temp.legacy('completion/complete', '{"ref": {"type": "ref/prompt", "name": "flow_999"}, "argument": {"name": "a", "value": ""}}') #> '{result,completion,values}');
ROLLBACK;
DROP FUNCTION public.mcp_lists_tool(jsonb);
