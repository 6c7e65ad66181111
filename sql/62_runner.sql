-- Running plans in the database.

CREATE FUNCTION stepwise.run(plan_id uuid, max_steps int = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_run';
COMMENT ON FUNCTION stepwise.run(uuid, int) IS 'run the steps of a plan whose tools are in the database, in one transaction, until the plan ends or cannot go on';

CREATE PROCEDURE stepwise.run_steps(plan_id uuid, max_steps int = NULL, tenant text = NULL, INOUT result jsonb = NULL)
LANGUAGE C AS 'MODULE_PATHNAME', 'stepwise_run_steps';
COMMENT ON PROCEDURE stepwise.run_steps(uuid, int, text, jsonb) IS 'like run, but each step runs in its own transaction';

-- Internal, for the answer of run; the tenant is an argument.

-- The steps that workers hold, also in nested plans; null if there are none. Of a long path the end is shown.
CREATE FUNCTION stepwise.task_claimed(tenant text, plan_id uuid) RETURNS jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    WITH RECURSIVE tree AS (
        SELECT $2 AS id, '' COLLATE "C" AS above, ARRAY[]::int[] AS place
        UNION ALL
        SELECT x.id, t.above || x.name || '/', t.place || x.step_order FROM tree AS t
        CROSS JOIN LATERAL (
            SELECT n.id, h.name, h.step_order
            FROM stepwise.step AS h
            JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = h.id AND n.completed_at IS NULL
            WHERE h.tenant = $1 AND h.plan_id = t.id AND h.workflow IS NOT NULL AND h.status IN ('in_progress', 'awaiting_input')
            OFFSET 0) AS x)     -- plan by plan, however many the planner expects
    SELECT jsonb_build_object('claimed', jsonb_path_query_array(
               jsonb_agg(CASE WHEN length(c.path) > 300 THEN '...' || right(c.path, 300) ELSE c.path END ORDER BY c.place), '$[0 to 49]'))
           || CASE WHEN count(*) > 50 THEN jsonb_build_object('claimedCount', count(*)) ELSE '{}' END
    FROM (SELECT t.above || x.name AS path, t.place || x.step_order AS place FROM tree AS t
          CROSS JOIN LATERAL (
              SELECT s.name, s.step_order FROM stepwise.step AS s
              WHERE s.tenant = $1 AND s.plan_id = t.id AND s.status = 'in_progress' AND s.workflow IS NULL AND s.sent_back IS NOT TRUE
              OFFSET 0) AS x) AS c
    HAVING count(*) > 0;
END;
COMMENT ON FUNCTION stepwise.task_claimed(text, uuid) IS 'internal: names of the steps of a tree that workers hold, and how many they are if some are left out';
