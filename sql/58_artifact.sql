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
