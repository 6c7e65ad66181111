-- A pause reason is small, even if its step has large values: long texts are cut, and long values are replaced by the call that
-- reads them. The same holds for messages that are copied from one plan to many steps and plans.
\set ON_ERROR_STOP on
\set VERBOSITY sqlstate
SET stepwise.max_result_bytes = '4MB';

-- the keys of a reason, and whether it is within the limit
CREATE FUNCTION in_brief(reason jsonb) RETURNS TABLE (keys text, fits boolean) LANGUAGE sql AS $$
    SELECT string_agg(key, ' ' ORDER BY key), length(reason::text) <= 8192 FROM jsonb_object_keys(reason) AS key
$$;

-- ---------- values that are not cut ----------

SELECT stepwise.create_plan('short', 'go', '[{"name": "call", "tool": "client", "arguments": {"text": "short"}, "instructions": "Call it"}]') ->> 'planId' AS plan \gset
SELECT stepwise.run(:'plan') -> 'pause_reason';
SELECT stepwise.create_plan('fits', 'go', jsonb_build_array(jsonb_build_object('name', 'call', 'tool', 'client',
    'arguments', jsonb_build_object('text', repeat('x', 6000))))) ->> 'planId' AS plan \gset
SELECT length(stepwise.run(:'plan') #>> '{pause_reason,arguments,text}');

-- ---------- arguments and instructions ----------

SELECT stepwise.create_plan('long', 'go', jsonb_build_array(jsonb_build_object('name', 'call', 'tool', 'client',
    'arguments', jsonb_build_object('text', repeat('x', 2000000)), 'instructions', repeat('y', 100000)))) ->> 'planId' AS plan \gset
SELECT stepwise.run(:'plan') -> 'pause_reason' AS reason \gset
SELECT * FROM in_brief(:'reason');
SELECT right(:'reason'::jsonb ->> 'instructions', 67) AS instructions,
       :'reason'::jsonb #>> '{arguments,call,function}' AS function,
       (:'reason'::jsonb #>> '{arguments,call,arguments,step_id}')::uuid = s.id AS of_the_step,
       :'reason'::jsonb #> '{arguments,bytes}' AS bytes
FROM stepwise.step AS s WHERE s.plan_id = :'plan';
-- the call returns them uncut
SELECT length(stepwise.get_step_context((:'reason'::jsonb #>> '{arguments,call,arguments,step_id}')::uuid,
    (:'reason'::jsonb #>> '{arguments,call,arguments,max_bytes}')::int) #>> '{arguments,text}');

-- ---------- texts ----------

SELECT stepwise.create_plan('ask', 'go', jsonb_build_array(jsonb_build_object('name', 'ask', 'prompt', repeat('Really? ', 20000)))) ->> 'planId' AS plan \gset
SELECT stepwise.get_next_step(:'plan') AS asked \gset
SELECT length(:'asked'::jsonb ->> 'prompt') AS cut, length(stepwise.get_step_context((:'asked'::jsonb ->> 'stepId')::uuid, 200000) #>> '{checkpoint,prompt}') AS whole;
SELECT (in_brief(pause_reason)).*, right(pause_reason ->> 'prompt', 62) FROM stepwise.plan WHERE id = :'plan';

SELECT stepwise.create_plan('error', 'go', '[{"name": "try", "instructions": "Try"}]', on_failure => 'pause') ->> 'planId' AS plan \gset
SELECT stepwise.get_next_step(:'plan') ->> 'stepId' AS step \gset
SELECT stepwise.fail_step(:'step', repeat('no! ', 20000)) ->> 'stepStatus';
SELECT (in_brief(pause_reason)).fits, right(pause_reason ->> 'error', 62) FROM stepwise.plan WHERE id = :'plan';
SELECT length(message) FROM stepwise.step WHERE id = :'step';

-- a review with long questions; a repeated request is recognized by its full text
SELECT stepwise.create_plan('review', 'go', '[{"name": "do", "instructions": "Do"}]') ->> 'planId' AS plan \gset
SELECT stepwise.get_next_step(:'plan') ->> 'stepId' AS step \gset
SELECT jsonb_agg('Is it good? ' || i) AS questions FROM generate_series(1, 2000) AS i \gset
SELECT repeat('See: ', 10000) AS summary \gset
SELECT stepwise.request_user_review(:'step', :'summary', :'questions') ->> 'stepStatus';
SELECT (in_brief(pause_reason)).*, pause_reason #>> '{questions,call,function}' AS function FROM stepwise.plan WHERE id = :'plan';
SELECT jsonb_array_length(stepwise.get_step_context(:'step', 1000000) #> '{checkpoint,questions}');
SELECT stepwise.request_user_review(:'step', :'summary', :'questions') -> 'duplicate' AS duplicate;
\set ON_ERROR_STOP off
SELECT stepwise.request_user_review(:'step', overlay(:'summary' placing 'X' from 40000), :'questions');
\set ON_ERROR_STOP on

-- many fields
CREATE FUNCTION nothing(jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT '{}'::jsonb $$;
SELECT stepwise.register_tool('strict', 'nothing(jsonb)', jsonb_build_object('type', 'object', 'required',
    (SELECT jsonb_agg('field_' || i) FROM generate_series(1, 5000) AS i))) ->> 'name';
SELECT stepwise.create_plan('fields', 'go', '[{"name": "call", "tool": "strict"}]') ->> 'planId' AS plan \gset
SELECT stepwise.run(:'plan') -> 'pause_reason' AS reason \gset
SELECT * FROM in_brief(:'reason');
SELECT :'reason'::jsonb #>> '{missingFields,0}' AS first, :'reason'::jsonb #>> '{missingFields,-1}' AS last;

-- ---------- fifty levels ----------

-- 2 MB that do not compress, at the bottom
SELECT stepwise.define_workflow(jsonb_build_object('name', 'level_50', 'onFailure', 'fail', 'steps', jsonb_build_array(jsonb_build_object('name', 'call',
    'tool', 'client', 'arguments', jsonb_build_object('text', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 62500) AS i)))))) ->> 'version';
SELECT count(stepwise.define_workflow(jsonb_build_object('name', 'level_' || 50 - i, 'onFailure', 'fail', 'steps', jsonb_build_array(jsonb_build_object(
    'name', 'a_step_with_a_name_as_long_as_names_may_be_of_this_level_' || 50 - i, 'workflow', 'level_' || 51 - i))))) FROM generate_series(1, 49) AS i;
SELECT stepwise.start_workflow('level_1') ->> 'planId' AS plan \gset
CHECKPOINT;
SELECT pg_current_wal_insert_lsn() AS before \gset
SELECT (in_brief(stepwise.run(:'plan') -> 'pause_reason')).*;
-- the arguments are stored once, with the step; formerly each of 150 copies of the reason had them
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), :'before') < 12 * 1000 * 1000 AS little;
SELECT count(*), bool_and(pause_reason #>> '{arguments,call,function}' = 'get_step_context') AS all_refer,
       max(length(pause_reason::text)) <= 8192 AS all_fit
FROM stepwise.plan WHERE root_id = :'plan';

-- the message of a failure is copied to the plans above, but cut
SELECT id AS step FROM stepwise.step WHERE root_id = :'plan' AND name = 'call' \gset
SELECT stepwise.fail_step(:'step', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 62500) AS i)) ->> 'stepStatus';
SELECT length(message) AS at_the_bottom FROM stepwise.step WHERE id = :'step';
SELECT max(length(message)) < 3000 AS short_above FROM stepwise.step WHERE root_id = :'plan' AND name <> 'call';

-- ---------- one plan, many steps ----------

SELECT stepwise.create_plan('many', 'go', (SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'instructions', 'go'))
    FROM generate_series(1, 1000) AS i)) ->> 'planId' AS plan \gset
SELECT pg_current_wal_insert_lsn() AS before \gset
SELECT stepwise.cancel_plan(:'plan', (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 30000) AS i)) ->> 'planStatus';
SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), :'before') < 40 * 1000 * 1000 AS little;
SELECT length(p.message) AS of_the_plan, max(length(s.message)) AS of_the_steps
FROM stepwise.plan AS p JOIN stepwise.step AS s ON s.plan_id = p.id WHERE p.id = :'plan' GROUP BY p.message;
SELECT count(*) FROM stepwise.step WHERE status = 'skipped' AND message LIKE '%(cut: 960000 bytes in all)';
SELECT bool_and((stepwise.verify_audit(id) ->> 'valid')::boolean) FROM stepwise.plan
WHERE name IN ('long', 'ask', 'error', 'review', 'fields', 'level_1', 'level_50', 'many') AND tenant = 'default';
SELECT * FROM stepwise.check_integrity();

SELECT stepwise.drop_tool('strict') \g /dev/null
DROP FUNCTION nothing(jsonb), in_brief(jsonb);
