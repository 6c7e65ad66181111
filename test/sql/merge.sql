-- The limits also hold for values that grow by many calls: SW007, and nothing changes.
\set VERBOSITY sqlstate
SET stepwise.max_result_bytes = '10kB';

-- metadata of a skill execution
SELECT stepwise.log_skill_execution('grow', 'started', 'merge', metadata => jsonb_build_object('a', repeat('x', 6000))) ->> 'status';
SELECT stepwise.log_skill_execution('grow', 'executing', 'merge', metadata => jsonb_build_object('b', repeat('x', 6000)));
SELECT stepwise.log_skill_execution('grow', 'completed', 'merge', metadata => jsonb_build_object('b', repeat('x', 6000)));
SELECT e.status, k.key, length(e.metadata ->> k.key)
FROM stepwise.skill_execution AS e, jsonb_object_keys(e.metadata) AS k (key) WHERE e.skill_name = 'grow';
-- replacing a value is no growth
SELECT stepwise.log_skill_execution('grow', 'completed', 'merge', metadata => jsonb_build_object('a', repeat('y', 9000))) ->> 'status';

-- variables of a plan
SELECT stepwise.create_plan('merge', 'go', '[{"name": "a", "instructions": "go"}]') ->> 'planId' AS plan \gset
SELECT stepwise.set_variables(:'plan', jsonb_build_object('a', repeat('x', 6000))) ->> 'planStatus';
SELECT stepwise.set_variables(:'plan', jsonb_build_object('b', repeat('x', 6000)));
SELECT k.key FROM stepwise.plan_detail AS d, jsonb_object_keys(d.variables) AS k (key) WHERE d.plan_id = :'plan';

-- named state
SELECT length(stepwise.state_merge(jsonb_build_object('name', 'merge', 'value', jsonb_build_object('a', repeat('x', 6000))))::text) > 6000 AS merged;
SELECT stepwise.state_merge(jsonb_build_object('name', 'merge', 'value', jsonb_build_object('b', repeat('x', 6000))));
SELECT k.key FROM stepwise.state AS s, jsonb_object_keys(s.value) AS k (key) WHERE s.name = 'merge';

-- instructions with the feedback of a review
SELECT stepwise.get_next_step(:'plan') ->> 'stepId' AS step \gset
SELECT stepwise.request_user_review(:'step', 'Look') ->> 'checkpointId' AS checkpoint \gset
SELECT stepwise.submit_user_decision(:'checkpoint', 'modify', repeat('x', 6000)) ->> 'stepStatus';
SELECT stepwise.request_user_review(:'step', 'Look again') ->> 'checkpointId' AS checkpoint \gset
SELECT stepwise.submit_user_decision(:'checkpoint', 'modify', repeat('x', 6000));
SELECT s.status, length(s.instructions) FROM stepwise.step AS s WHERE s.id = :'step';

-- inputs with the defaults of a workflow, at the root and in a nested plan
SELECT stepwise.define_workflow(jsonb_build_object('name', 'merge', 'inputs', jsonb_build_object('a', '{"type": "string"}'::jsonb,
    'b', jsonb_build_object('default', repeat('x', 6000))), 'steps', '[{"name": "a", "instructions": "go"}]'::jsonb)) ->> 'version';
SELECT stepwise.start_workflow('merge', jsonb_build_object('a', repeat('x', 6000)));
SELECT stepwise.create_plan('nest', 'go', jsonb_build_array(jsonb_build_object('name', 'nest', 'workflow', 'merge',
    'arguments', jsonb_build_object('a', repeat('x', 6000))))) ->> 'planId' AS plan \gset
SELECT stepwise.get_next_step(:'plan') \g /dev/null
SELECT status, left(message, 60) AS message FROM stepwise.step WHERE plan_id = :'plan';
