-- The variables of a plan.

CREATE FUNCTION stepwise.set_variables(plan_id uuid, variables jsonb) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_set_variables';
COMMENT ON FUNCTION stepwise.set_variables(uuid, jsonb) IS 'merge values into the variables of a plan; null deletes a variable';

CREATE FUNCTION stepwise.task_variables(plan_id uuid) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_task_variables';
COMMENT ON FUNCTION stepwise.task_variables(uuid) IS 'show a plan as flat variables: progress, results, pause reason, and its own variables';

-- Internal: the tenant is an argument.
-- The answer is built by one aggregate, since each || would copy all of it.
CREATE FUNCTION stepwise.task_variables_json(tenant text, plan_id uuid) RETURNS SETOF jsonb
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT jsonb_object_agg(x.name, x.value)
    FROM (SELECT v.key AS name, v.value
          FROM stepwise.plan_detail AS d, jsonb_each(d.variables) AS v
          WHERE d.tenant = $1 AND d.plan_id = $2
          UNION ALL
          SELECT '_workflow.progress', jsonb_build_object(
              'goal', p.name || ': ' || p.goal,
              'steps', (SELECT coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('name', s.name, 'tool', s.tool, 'status', s.status))
                                                  ORDER BY s.step_order), '[]')
                        FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2),
              'schemaVersion', 1)
          FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2
          UNION ALL
          SELECT '_workflow.result.' || s.name, CASE s.status WHEN 'completed' THEN coalesce(s.result, 'null')
                                                              ELSE coalesce(s.error, jsonb_build_object('error', s.message)) END
          FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.status IN ('completed', 'failed')
          UNION ALL
          SELECT '_workflow.pause_reason', p.pause_reason
          FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2 AND p.pause_reason IS NOT NULL) AS x;
END;
COMMENT ON FUNCTION stepwise.task_variables_json(text, uuid) IS 'internal: what task_variables answers';
