-- Finding plans, and the questions that wait for people.

CREATE FUNCTION stepwise.list_active_plans(status text = NULL, session_id text = NULL, after uuid = NULL, max int = 50) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_list_active_plans';
COMMENT ON FUNCTION stepwise.list_active_plans(text, text, uuid, int) IS 'list unfinished plans, newest first, page by page';

CREATE FUNCTION stepwise.list_plans(status text = NULL, session_id text = NULL, workflow text = NULL, after uuid = NULL, max int = 50) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_list_plans';
COMMENT ON FUNCTION stepwise.list_plans(text, text, text, uuid, int) IS 'list plans, finished ones too, newest first, page by page';

CREATE FUNCTION stepwise.list_checkpoints(after uuid = NULL, max int = 50) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_list_checkpoints';
COMMENT ON FUNCTION stepwise.list_checkpoints(uuid, int) IS 'list the steps that wait for a person, newest first, page by page';

CREATE FUNCTION stepwise.find_plans(query text, max int = 20) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_find_plans';
COMMENT ON FUNCTION stepwise.find_plans(text, int) IS 'find plans by any word of their name, goal, inputs, names of steps or final output; active ones first, best match first';

-- Its body is one expression, so that it is inlined and reads only the columns that it shows.
CREATE FUNCTION stepwise.plan_brief(plan stepwise.plan) RETURNS jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT jsonb_build_object(
               'planId', ($1).id, 'name', ($1).name, 'status', ($1).status, 'outcome', ($1).outcome,
               'workflow', ($1).workflow, 'version', ($1).version, 'sessionId', ($1).session_id,
               'progress', round(100.0 * (($1).completed + ($1).skipped)
                   / greatest(($1).pending + ($1).in_progress + ($1).awaiting_input + ($1).completed + ($1).failed + ($1).skipped, 1)),
               'totalSteps', ($1).pending + ($1).in_progress + ($1).awaiting_input + ($1).completed + ($1).failed + ($1).skipped,
               'createdAt', stepwise.time_text(($1).created_at), 'updatedAt', stepwise.time_text(($1).updated_at),
               'completedAt', stepwise.time_text(($1).completed_at),
               'goal', stepwise.cut_text(($1).goal, 200, 'get_plan_context'),
               'inputs', stepwise.cut_json(($1).inputs, 200, 'get_plan_context', 'plan_id', ($1).id::text, 'max_bytes'),
               'pauseReason', stepwise.cut_json(($1).pause_reason, 300, 'why', 'plan_id', ($1).id::text, ''));
END;
COMMENT ON FUNCTION stepwise.plan_brief(stepwise.plan) IS 'internal: a plan as lists show it';

-- Internal: the tenant is an argument, and the query is a tsquery. There is no index over the words of plans, since every plan
-- would pay for it. The words of the given plans are made here: texts up to a sum of 4 MB, and of the rest the names and the
-- beginnings of the goals. Final outputs have an index, and are found in all plans.

CREATE FUNCTION stepwise.found_plans(tenant text, query text, looked uuid[], max int) RETURNS TABLE (id uuid, item jsonb, count bigint)
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH wanted AS (
        SELECT $2::tsquery AS query, $2::tsquery && ('''tenant ' || hashtextextended($1 COLLATE "C", 0)::text || '''')::tsquery AS of_tenant),
    looked AS (
        SELECT l.id, false AS in_output FROM unnest($3) AS l (id)
        UNION ALL
        (SELECT p.root_id, true
         FROM wanted AS w
         JOIN stepwise.plan_detail AS d ON d.tenant = $1 AND d.final_output IS NOT NULL
              AND (to_tsvector('pg_catalog.english', left(d.final_output, CASE WHEN octet_length(left(d.final_output, 250000)) <= 260000 THEN 250000 ELSE 65000 END))
                   || array_to_tsvector(ARRAY['tenant ' || hashtextextended(d.tenant, 0)::text])) @@ w.of_tenant
         JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = d.plan_id
         ORDER BY d.plan_id DESC LIMIT 2000)),
    candidate AS (
        SELECT p.id, p.completed_at IS NULL AS active, l.in_output,
               sum(octet_length(p.goal) + stepwise.json_size(p.inputs)
                   + 64 * (p.pending + p.in_progress + p.awaiting_input + p.completed + p.failed + p.skipped))
                   OVER (ORDER BY p.completed_at IS NULL DESC, p.id DESC) <= 4000000 AS whole
        FROM (SELECT x.id, bool_or(x.in_output) AS in_output FROM looked AS x GROUP BY x.id) AS l
        JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = l.id),
    measured AS MATERIALIZED (
        SELECT c.id, c.active, c.in_output, w.query,
               setweight(to_tsvector('pg_catalog.english', p.name), 'A')
               || setweight(to_tsvector('pg_catalog.english', left(p.goal, CASE WHEN c.whole THEN 50000 ELSE 200 END)), 'B')
               || CASE WHEN c.whole THEN setweight(to_tsvector('pg_catalog.english', coalesce(
                      (SELECT string_agg(s.name, ' ') FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = c.id), '')), 'C') ELSE '' END
               || CASE WHEN c.whole AND stepwise.json_size(p.inputs) <= 100000
                       THEN jsonb_to_tsvector('pg_catalog.english', p.inputs, '["key", "string", "numeric"]') ELSE '' END AS words
        FROM wanted AS w CROSS JOIN candidate AS c
        JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = c.id),
    best AS (
        SELECT m.id, m.active, ts_rank(m.words, m.query) + CASE WHEN m.in_output THEN 0.05 ELSE 0 END AS rank, count(*) OVER () AS count
        FROM measured AS m WHERE m.in_output OR m.words @@ m.query
        ORDER BY m.active DESC, rank DESC, m.id DESC LIMIT $4)
    SELECT b.id, stepwise.plan_brief(p) || jsonb_build_object('rank', b.rank::real), b.count
    FROM best AS b JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = b.id
    ORDER BY b.active DESC, b.rank DESC, b.id DESC;
END;
COMMENT ON FUNCTION stepwise.found_plans(text, text, uuid[], int) IS 'internal: the matches among some plans and among final outputs, best first';
