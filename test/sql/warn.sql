-- validate_definition warns about what is allowed, but hardly meant: steps that never run, and an explicit continue in a sequence.

\pset format unaligned
\pset tuples_only on

CREATE FUNCTION pg_temp.warnings(steps jsonb, more jsonb = '{}') RETURNS SETOF text LANGUAGE sql AS $$
    SELECT coalesce(w ->> 'path', '') || ': ' || (w ->> 'message')
    FROM stepwise.validate_definition(jsonb_build_object('name', 'w', 'steps', steps) || more) AS a, jsonb_array_elements(a -> 'warnings') AS w
$$;

-- a condition that is false after the success that the step requires, and what requires that step
SELECT pg_temp.warnings('[
    {"name": "build", "instructions": "x", "dependsOn": []},
    {"name": "last", "instructions": "x", "dependsOn": ["clean"]},
    {"name": "clean", "instructions": "x", "dependsOn": ["undo", "build"]},
    {"name": "undo", "instructions": "x", "dependsOn": ["build"], "condition": "${steps.build.failed} and ${inputs.x} > 1"},
    {"name": "tell", "instructions": "x", "dependsOn": [{"step": "undo", "required": false}]}]', '{"inputs": {"x": {"type": "integer"}}}');
SELECT pg_temp.warnings(jsonb_build_array('{"name": "a", "instructions": "x", "dependsOn": []}'::jsonb,
    jsonb_build_object('name', 'b', 'instructions', 'x', 'dependsOn', '["a"]'::jsonb, 'condition', c)))
FROM unnest(ARRAY['not ${steps.a.succeeded}', '${steps.a.skipped}', '${steps.a.status} == "failed"', '${steps.a.outcome} != "success"', '1 == 2']) AS c;
-- what may happen gives no warning
SELECT pg_temp.warnings(jsonb_build_array('{"name": "a", "instructions": "x", "dependsOn": []}'::jsonb,
    jsonb_build_object('name', 'b', 'instructions', 'x', 'dependsOn', '["a"]'::jsonb, 'condition', c)))
FROM unnest(ARRAY['${steps.a.succeeded}', '${steps.a.outputs.x} == 1', 'not ${steps.a.failed}', '${steps.a.failed} or ${steps.a.outputs.x} > 1']) AS c;
SELECT pg_temp.warnings('[{"name": "a", "instructions": "x", "dependsOn": []},
    {"name": "b", "instructions": "x", "dependsOn": [{"step": "a", "required": false}], "condition": "${steps.a.failed}"}]');
SELECT pg_temp.warnings('[{"name": "a", "instructions": "x"}, {"name": "b", "instructions": "x", "condition": "${steps.a.failed}"}]');
SELECT pg_temp.warnings('[{"name": "a", "instructions": "x", "condition": "false"}]');

-- continue in a sequence, if it is written
SELECT pg_temp.warnings('[{"name": "a", "instructions": "x"}]', '{"onFailure": "continue"}');
SELECT pg_temp.warnings('[{"name": "a", "instructions": "x"}]', '{"onFailure": "stop"}');
SELECT pg_temp.warnings('[{"name": "a", "instructions": "x"}]');
SELECT pg_temp.warnings('[{"name": "a", "instructions": "x", "dependsOn": []}]', '{"onFailure": "continue"}');
