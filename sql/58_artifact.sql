-- Artifacts, the final output, and the search in both.

CREATE FUNCTION stepwise.store_artifact(plan_id uuid, name text, content text, step_id uuid = NULL, media_type text = NULL,
    data jsonb = NULL, source_url text = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_store_artifact';
COMMENT ON FUNCTION stepwise.store_artifact(uuid, text, text, uuid, text, jsonb, text)
IS 'store a text that a plan or one of its steps has produced';

CREATE FUNCTION stepwise.store_output(plan_id uuid, content text, media_type text = 'text/markdown') RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_store_output';
COMMENT ON FUNCTION stepwise.store_output(uuid, text, text) IS 'store the final output of a plan; it replaces an earlier one';

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

-- Internal: the tenant is an argument. Returns no row when the query contains no word to search for.

CREATE FUNCTION stepwise.search_artifacts_json(tenant text, query text, plan_id uuid, max int) RETURNS SETOF jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH wanted AS (
        SELECT q.query, q.query && ('''tenant ' || hashtextextended($1 COLLATE "C", 0)::text || '''')::tsquery AS of_tenant
        FROM websearch_to_tsquery('pg_catalog.english', $2) AS q (query) WHERE numnode(q.query) > 0),
    matches AS (
        SELECT 'artifact' AS kind, a.id, a.plan_id, a.step_id, a.name, a.media_type, a.source_url, a.created_at, a.content,
               ts_rank_cd(a.search, w.query) AS rank
        FROM wanted AS w JOIN stepwise.artifact AS a ON a.tenant = $1 AND a.search @@ w.of_tenant
        UNION ALL
        SELECT 'output', NULL, d.plan_id, NULL, 'output', d.final_media_type, NULL, NULL, d.final_output,
               ts_rank_cd(to_tsvector('pg_catalog.english', left(d.final_output, CASE WHEN octet_length(left(d.final_output, 250000)) <= 260000 THEN 250000 ELSE 65000 END)), w.query)
        FROM wanted AS w
        JOIN stepwise.plan_detail AS d ON d.tenant = $1 AND d.final_output IS NOT NULL
             AND (to_tsvector('pg_catalog.english', left(d.final_output, CASE WHEN octet_length(left(d.final_output, 250000)) <= 260000 THEN 250000 ELSE 65000 END))
                  || array_to_tsvector(ARRAY['tenant ' || hashtextextended(d.tenant, 0)::text])) @@ w.of_tenant),
    best AS (
        SELECT m.*, p.name AS plan_name
        FROM matches AS m
        JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = m.plan_id AND ($3 IS NULL OR p.id = $3 OR p.root_id = $3)
        ORDER BY m.rank DESC, m.id DESC NULLS FIRST, m.plan_id LIMIT $4)
    SELECT jsonb_build_object(
        'query', $2,
        'results', (
            SELECT coalesce(jsonb_agg(jsonb_build_object(
                'kind', b.kind, 'artifactId', b.id, 'planId', b.plan_id, 'planName', b.plan_name, 'stepId', b.step_id,
                'name', b.name, 'mediaType', b.media_type, 'sourceUrl', b.source_url, 'createdAt', stepwise.time_text(b.created_at),
                'size', octet_length(b.content), 'rank', b.rank,
                'fragments', string_to_array(
                    stepwise.search_headline('pg_catalog.english', left(b.content, 250000), w.query), chr(30)))
                ORDER BY b.rank DESC, b.id DESC NULLS FIRST, b.plan_id), '[]')
            FROM best AS b))
    FROM wanted AS w;
END;
COMMENT ON FUNCTION stepwise.search_artifacts_json(text, text, uuid, int) IS 'internal: what search_artifacts answers';
