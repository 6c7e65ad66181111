-- Artifacts, the final output, and the search in both.

CREATE FUNCTION stepwise.store_artifact(plan_id uuid, name text, content text, step_id uuid = NULL, media_type text = NULL,
    data jsonb = NULL, source_url text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_store_artifact';
COMMENT ON FUNCTION stepwise.store_artifact(uuid, text, text, uuid, text, jsonb, text)
IS 'store a text that a plan or one of its steps has produced';

CREATE FUNCTION stepwise.get_artifact(plan_id uuid, name text, version int = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_artifact';
COMMENT ON FUNCTION stepwise.get_artifact(uuid, text, int) IS 'show an artifact of a plan, whole: its newest version, or the one given';

CREATE FUNCTION stepwise.store_output(plan_id uuid, content text, media_type text = 'text/markdown') RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_store_output';
COMMENT ON FUNCTION stepwise.store_output(uuid, text, text) IS 'store the final output of a plan; it replaces an earlier one';

CREATE FUNCTION stepwise.get_output(plan_id uuid) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_get_output';
COMMENT ON FUNCTION stepwise.get_output(uuid) IS 'show the final output of a plan, whole';

CREATE FUNCTION stepwise.search_artifacts(query text, plan_id uuid = NULL, max int = 20) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_search_artifacts';
COMMENT ON FUNCTION stepwise.search_artifacts(text, uuid, int)
IS 'search artifacts and final outputs, best match first: of a plan and the plans nested in it, or of all plans';

-- Both indexes contain the words of all tenants, and any role can read the usage counters of an index. A search for a word alone
-- would show there how often other tenants use it. So each row has one more word that stands for its tenant, which no text can
-- contain, and each search asks for that word too.
-- A tsvector holds at most 1 MB, and one byte of text may take four bytes there. So only the first part of a long text is indexed.
CREATE INDEX plan_detail_search ON stepwise.plan_detail USING gin ((to_tsvector('pg_catalog.english', left(final_output, CASE WHEN octet_length(left(final_output, 250000)) <= 260000 THEN 250000 ELSE 65000 END))
    || array_to_tsvector(ARRAY['tenant ' || hashtextextended(tenant, 0)::text])))
WHERE final_output IS NOT NULL;

CREATE FUNCTION stepwise.search_headline(config regconfig, content text, query tsquery) RETURNS text
LANGUAGE C STABLE STRICT AS 'MODULE_PATHNAME', 'stepwise_search_headline';
COMMENT ON FUNCTION stepwise.search_headline(regconfig, text, tsquery)
IS 'internal: fragments of a text around the matches of a query, separated by character 30';

-- Internal: the tenant is an argument, and the query is a tsquery. Of several versions of an artifact that match, the newest counts.
-- Of the matches, the newest thousand artifacts and the newest thousand outputs are ranked, and outputs by their first 20,000
-- characters: what the ranking reads does not grow with what is stored.

CREATE FUNCTION stepwise.found_artifacts(tenant text, query text, plan_id uuid, max int) RETURNS TABLE (id uuid, item jsonb, count bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH wanted AS (
        SELECT $2::tsquery AS query, $2::tsquery && ('''tenant ' || hashtextextended($1 COLLATE "C", 0)::text || '''')::tsquery AS of_tenant),
    artifacts AS (
        SELECT m.id, m.plan_id, p.name AS plan_name
        FROM (SELECT DISTINCT ON (a.plan_id, a.name) a.id, a.plan_id
              FROM wanted AS w JOIN stepwise.artifact AS a ON a.tenant = $1 AND a.search @@ w.of_tenant
              ORDER BY a.plan_id, a.name, a.version DESC) AS m
        JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = m.plan_id AND ($3 IS NULL OR p.id = $3 OR p.root_id = $3)
        ORDER BY m.id DESC LIMIT 1000),
    outputs AS (
        SELECT d.plan_id, p.name AS plan_name
        FROM wanted AS w
        JOIN stepwise.plan_detail AS d ON d.tenant = $1 AND d.final_output IS NOT NULL
             AND (to_tsvector('pg_catalog.english', left(d.final_output, CASE WHEN octet_length(left(d.final_output, 250000)) <= 260000 THEN 250000 ELSE 65000 END))
                  || array_to_tsvector(ARRAY['tenant ' || hashtextextended(d.tenant, 0)::text])) @@ w.of_tenant
        JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = d.plan_id AND ($3 IS NULL OR p.id = $3 OR p.root_id = $3)
        ORDER BY d.plan_id DESC LIMIT 1000),
    ranked AS (
        SELECT m.id, m.plan_id, m.plan_name, ts_rank_cd(a.search, w.query) AS rank
        FROM wanted AS w CROSS JOIN artifacts AS m JOIN stepwise.artifact AS a ON a.tenant = $1 AND a.id = m.id
        UNION ALL
        SELECT NULL, m.plan_id, m.plan_name, ts_rank_cd(to_tsvector('pg_catalog.english', left(d.final_output, 20000)), w.query)
        FROM wanted AS w CROSS JOIN outputs AS m JOIN stepwise.plan_detail AS d ON d.tenant = $1 AND d.plan_id = m.plan_id),
    best AS (
        SELECT r.*, count(*) OVER () AS count
        FROM ranked AS r ORDER BY r.rank DESC, r.id DESC NULLS FIRST, r.plan_id LIMIT $4)
    SELECT coalesce(b.id, b.plan_id),
           jsonb_build_object(
               'kind', CASE WHEN b.id IS NULL THEN 'output' ELSE 'artifact' END, 'artifactId', b.id, 'planId', b.plan_id,
               'planName', b.plan_name, 'stepId', a.step_id, 'name', coalesce(a.name, 'output'), 'version', a.version,
               'newestVersion', (SELECT max(n.version) FROM stepwise.artifact AS n
                                 WHERE n.tenant = $1 AND n.plan_id = b.plan_id AND n.name = a.name),
               'mediaType', coalesce(a.media_type, d.final_media_type), 'createdAt', stepwise.time_text(a.created_at),
               'size', octet_length(coalesce(a.content, d.final_output)), 'rank', b.rank,
               'fragments', ARRAY(
                   SELECT left(f.fragment, 500)
                   FROM string_to_table(stepwise.search_headline('pg_catalog.english', left(coalesce(a.content, d.final_output), 250000),
                                                                 w.query), chr(30)) AS f (fragment)),
               'sourceUrl', stepwise.cut_text(a.source_url, 300, 'get_artifact')),
           b.count
    FROM wanted AS w CROSS JOIN best AS b
    LEFT JOIN stepwise.artifact AS a ON a.tenant = $1 AND a.id = b.id
    LEFT JOIN stepwise.plan_detail AS d ON d.tenant = $1 AND d.plan_id = b.plan_id AND b.id IS NULL
    ORDER BY b.rank DESC, b.id DESC NULLS FIRST, b.plan_id;
END;
COMMENT ON FUNCTION stepwise.found_artifacts(text, text, uuid, int) IS 'internal: the matches that search_artifacts answers, best first';
