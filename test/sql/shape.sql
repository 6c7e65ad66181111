-- The exact keys and values of answers that callers rely on.

\set ECHO none
\i test/agent.sql
-- A block of the execution tree without its blocks. Times and durations are compared with each other.
CREATE FUNCTION pg_temp.block(block jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', 'outputs ' || coalesce(block ->> 'outputs', 'null'), m ->> 'status', m ->> 'outcome',
        CASE WHEN m ->> 'started_at' IS NULL THEN 'not started' WHEN m ->> 'started_at' = m ->> 'completed_at' THEN 'started and ended at once'
             WHEN m ->> 'completed_at' IS NULL THEN 'started' ELSE 'started, ended' END,
        CASE jsonb_typeof(m -> 'execution_time_ms') WHEN 'number' THEN CASE WHEN (m -> 'execution_time_ms')::numeric = 0 THEN '0 ms' ELSE 'ms' END ELSE 'no ms' END,
        'wave ' || (m ->> 'wave'), 'number ' || (m ->> 'execution_order'), 'attempt ' || (m ->> 'attempt'),
        (SELECT string_agg(k, ' ') FROM unnest('{succeeded,failed,skipped}'::text[]) AS k WHERE (m -> k)::boolean), m ->> 'message')
    FROM (SELECT block -> 'metadata') AS x (m)
$$;
CREATE FUNCTION pg_temp.tree(plan text, block jsonb) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT plan || ': ' || pg_temp.block(block)
    UNION ALL
    SELECT plan || '/' || s.name || ': ' || pg_temp.block(block -> 'blocks' -> s.name)
    FROM (SELECT s.name FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan($1)) ORDER BY s.step_order) AS s
$$;
CREATE FUNCTION pg_temp.keys(object jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(k, ' ' ORDER BY k) FROM jsonb_object_keys(object) AS k
$$;
\set ECHO all

-- ---------- the execution tree ----------

SELECT pg_temp.make('tree', '[{"name": "good"}, {"name": "nothing"}, {"name": "begun"}, {"name": "left"}, {"name": "never"}, {"name": "broken"}, {"name": "runs"}, {"name": "later"}]',
    outputs => '{"good": "${steps.good.outputs}"}');
SELECT pg_temp.tree('tree', stepwise.execution(pg_temp.plan('tree')));
SELECT pg_temp.submit('tree', 'good', '{"n": 1}'), pg_temp.submit('tree', 'nothing', 'null'), pg_temp.next('tree');
SELECT pg_sleep(0.002);
SELECT stepwise.skip_step(pg_temp.step('tree', 'begun'), 'no use') ->> 'stepStatus', stepwise.skip_step(pg_temp.step('tree', 'left')) ->> 'stepStatus',
       pg_temp.fail('tree', 'never'), pg_temp.next('tree'), pg_temp.fail('tree', 'broken'), pg_temp.next('tree');
SELECT pg_temp.tree('tree', stepwise.execution(pg_temp.plan('tree')));
-- execution_as_of has the same shape
SELECT pg_temp.tree('tree', stepwise.execution_as_of(pg_temp.plan('tree'), 'infinity'));
SELECT pg_temp.keys(stepwise.execution(pg_temp.plan('tree'))), pg_temp.keys(stepwise.execution(pg_temp.plan('tree')) -> 'metadata'),
       pg_temp.keys(stepwise.execution(pg_temp.plan('tree')) #> '{blocks,good,metadata}');
-- fractions of a millisecond are not lost
SELECT (m ->> 'execution_time_ms')::numeric = extract(epoch FROM (m ->> 'completed_at')::timestamptz - (m ->> 'started_at')::timestamptz) * 1000 AS exact,
       m ->> 'execution_time_ms' ~ '^\d+\.\d{3}$' AS microseconds
FROM (SELECT stepwise.execution(pg_temp.plan('tree')) #> '{blocks,broken,metadata}') AS x (m);
-- a plan that was cancelled before it started has both times too
SELECT pg_temp.make('unborn', '[{"name": "a"}]');
SELECT stepwise.cancel_plan(pg_temp.plan('unborn'), 'not now') ->> 'planStatus';
SELECT pg_temp.tree('unborn', stepwise.execution(pg_temp.plan('unborn')));

-- ---------- completed with failure: there is a message ----------

SELECT pg_temp.make('failure', '[{}, {}, {}, {}, {}, {}, {}, {}, {"name": "said"}]');
SELECT stepwise.submit_step_result(s.id, j.result, r.summary, outcome => 'failure') ->> 'stepStatus'
FROM (VALUES (1, '{"error": "no disk", "stderr": "E", "message": "M"}', 'S'), (2, '{"error": {"deep": 1}, "stderr": "E", "message": "M"}', 'S'),
             (3, '{"error": " ", "message": "M"}', 'S'), (4, '{"n": 1}', 'S'), (5, '{}', NULL), (6, '"text"', ' '), (7, 'null', NULL),
             (8, json_build_object('stderr', repeat('é', 3000))::text, NULL)) AS r (n, result, summary)
JOIN stepwise.step AS s ON s.plan_id = pg_temp.plan('failure') AND s.step_order = r.n, LATERAL (SELECT r.result::jsonb) AS j (result) ORDER BY r.n;
UPDATE stepwise.step SET status = 'in_progress' WHERE id = pg_temp.step('failure', 'said');
UPDATE stepwise.step SET status = 'completed', outcome = 'failure', result = '{"error": "by hand"}' WHERE id = pg_temp.step('failure', 'said');
SELECT s.name, s.outcome, length(s.message), left(s.message, 30) FROM stepwise.step AS s WHERE s.plan_id = pg_temp.plan('failure') ORDER BY s.step_order;
SELECT stepwise.workflow_response(pg_temp.plan('failure'));

-- ---------- succeeded is short for metadata.succeeded ----------

SELECT stepwise.define_workflow('{"name": "shape inner", "steps": [{"name": "x"}, {"name": "y", "condition": "${steps.x.metadata.failed}"}], "outputs": {"x": "${steps.x.metadata.outcome}"}}') ->> 'version';
SELECT pg_temp.make('meta', '[{"name": "a"}, {"name": "h", "workflow": "shape inner"},
    {"name": "use", "condition": "${blocks.a.metadata.succeeded} and not ${steps.h.blocks.x.metadata.failed} and ${steps.h.steps.y.metadata.skipped} and ${blocks.a.metadata.status} == \"completed\"",
     "arguments": {"long": ["${blocks.a.metadata.succeeded}", "${blocks.a.metadata.failed}", "${blocks.a.metadata.skipped}", "${blocks.a.metadata.status}", "${blocks.a.metadata.outcome}"],
                   "short": ["${blocks.a.succeeded}", "${blocks.a.failed}", "${blocks.a.skipped}", "${blocks.a.status}", "${blocks.a.outcome}"],
                   "nested": ["${blocks.h.blocks.y.metadata.skipped}", "${blocks.h.blocks.x.metadata.outcome}"], "wave": "${blocks.h.metadata.wave}"}}]',
    '[{"afterStepOrder": 1, "conditionExpression": "steps.a.metadata.succeeded", "ifTrueAction": "continue"}]');
SELECT pg_temp.submit('meta', 'a');
SELECT pg_temp.next('meta'), pg_temp.submit('shape inner', 'x');
SELECT pg_temp.next('meta');
-- like the short form, it waits until the step has ended
SELECT pg_temp.make('meta waits', '[{"name": "a"}, {"name": "b", "condition": "${steps.a.metadata.succeeded}"}]');
SELECT pg_temp.next('meta waits', 'w'), pg_temp.next('meta waits', 'v');
SELECT pg_temp.submit('meta waits', 'a'), pg_temp.next('meta waits', 'v');
SELECT e ->> 'message' FROM jsonb_array_elements(stepwise.validate_definition('{"name": "w", "steps": [{"name": "a"}, {"name": "b", "condition": "${steps.a.metadata.succeeded.x}"}]}') -> 'errors') AS e;

-- ---------- pause reasons have exactly their keys; further details of a tool's error are with its result ----------

CREATE FUNCTION public.shape_fail(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'no disk' USING errcode = '22023', detail = 'It is full.', hint = 'Buy one.';
END $$;
SELECT stepwise.register_tool('shape_fail', 'public.shape_fail(jsonb)') ->> 'name';
SELECT pg_temp.make('tool error', '[{"name": "a", "tool": "shape_fail"}, {"name": "b", "tool": "ask"}, {"name": "c"}]', on_failure => 'pause');
SELECT stepwise.run(pg_temp.plan('tool error')) -> 'pause_reason';
SELECT stepwise.task_variables(pg_temp.plan('tool error')) -> '_workflow.result.a';
SELECT stepwise.why(pg_temp.plan('tool error')) ->> 'message';
-- a retry clears them
SELECT stepwise.retry_step(pg_temp.step('tool error', 'a')) ->> 'stepStatus';
SELECT error, message FROM stepwise.step WHERE id = pg_temp.step('tool error', 'a');
SELECT stepwise.record_tool_result(pg_temp.plan('tool error'), 'shape_fail', '{}') ->> 'stepStatus';
-- the object that a client reports is stored unchanged
SELECT stepwise.record_tool_result(pg_temp.plan('tool error'), 'ask', '{"error": "busy", "code": "E42", "more": [1]}', true) -> 'pause_reason';
SELECT stepwise.task_variables(pg_temp.plan('tool error')) -> '_workflow.result.b';
SELECT stepwise.record_tool_result(pg_temp.plan('tool error'), 'ask', '{"message": "still busy"}', true) -> 'pause_reason' ->> 'error';
SELECT stepwise.task_variables(pg_temp.plan('tool error')) -> '_workflow.result.b';
SELECT stepwise.record_tool_result(pg_temp.plan('tool error'), 'ask', '"no answer"', true) -> 'pause_reason' ->> 'error';
SELECT stepwise.task_variables(pg_temp.plan('tool error')) -> '_workflow.result.b';
SELECT stepwise.skip_step(pg_temp.step('tool error', 'b')) ->> 'stepStatus', pg_temp.fail('tool error', 'c');
SELECT stepwise.task_variables(pg_temp.plan('tool error')) -> '_workflow.result.c', stepwise.why(pg_temp.plan('tool error')) ->> 'message';
-- the same for a failed resource
SELECT pg_temp.make('resource error', '[{"name": "a", "resources": ["stepwise://artifact/none"]}]', on_failure => 'pause');
SELECT stepwise.run(pg_temp.plan('resource error')) -> 'pause_reason';
SELECT stepwise.task_variables(pg_temp.plan('resource error')) -> '_workflow.result.a';

-- a missing value of a nested step with an ambiguous name: the keys do not tell its place, but why finds it
SELECT stepwise.define_workflow('{"name": "shape below", "onFailure": "fail", "steps": [{"name": "make"}]}') ->> 'version';
SELECT pg_temp.make('producer', '[{"name": "make"}, {"name": "h", "workflow": "shape below"}, {"name": "use", "tool": "t", "arguments": {"x": "${steps.h.steps.make.outputs.x}"}}]');
SELECT pg_temp.submit('producer', 'make'), pg_temp.next('producer'), pg_temp.fail('shape below', 'make');
SELECT pg_temp.next('producer');
SELECT stepwise.why(pg_temp.plan('producer')) ->> 'message', w -> 'nextCall' ->> 'function', (w #>> '{nextCall,arguments,step_id}')::uuid = pg_temp.step('producer', 'h')
FROM stepwise.why(pg_temp.plan('producer')) AS w;

-- ---------- times are UTC, independent of the session's settings ----------

SET TimeZone = 'Asia/Kolkata';
SET DateStyle = 'German, DMY';
SELECT pg_temp.make('times', '[{"name": "a"}, {"name": "b"}]');
SELECT stepwise.get_next_step(pg_temp.plan('times'), 'w', '1 hour') ->> 'leaseExpiresAt' ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$';
SELECT stepwise.store_artifact(pg_temp.plan('times'), 'note', 'owls at night', pg_temp.step('times', 'a')) ->> 'name';
SELECT pg_temp.next('times');
SELECT stepwise.request_user_review(pg_temp.step('times', 'b'), 'Good?') ->> 'stepStatus';
-- every time in every answer
SELECT n, count(*), bool_and(t[1] ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$') FROM (VALUES
    ('execution', stepwise.execution(pg_temp.plan('times'))),
    ('execution_as_of', stepwise.execution_as_of(pg_temp.plan('times'), 'infinity')),
    ('get_plan_status', stepwise.get_plan_status(pg_temp.plan('times'))),
    ('get_plan_context', stepwise.get_plan_context(pg_temp.plan('times'))),
    ('get_step_context', stepwise.get_step_context(pg_temp.step('times', 'b'))),
    ('list_active_plans', stepwise.list_active_plans(max => 1)),
    ('search_artifacts', stepwise.search_artifacts('owl', pg_temp.plan('times'))),
    ('why', stepwise.why(pg_temp.plan('times'))),
    ('get_workflow', stepwise.get_workflow('shape inner')),
    ('log_skill_execution', stepwise.log_skill_execution('s', 'completed')),
    ('audit', (SELECT jsonb_agg(detail) FROM stepwise.audit WHERE plan_id = pg_temp.plan('times')))) AS a (n, answer),
    regexp_matches(answer::text, '"([^"]*\d{2}:\d{2}:\d{2}[^"]*)"', 'g') AS t GROUP BY n ORDER BY n;
-- and it is correct
SELECT (stepwise.execution(pg_temp.plan('times')) #>> '{metadata,started_at}')::timestamptz = (SELECT started_at FROM stepwise.plan WHERE id = pg_temp.plan('times'));
SELECT t, stepwise.time_text(t::timestamptz) FROM unnest('{2024-02-29 23:59:59.999999+00,2000-01-01 00:00:00+00,1999-12-31 23:59:59.5+05:30,0044-03-15 12:00:00+00 BC,12345-01-01 00:00:00+00,infinity,-infinity}'::text[]) AS t,
    set_config('DateStyle', 'ISO', false);
RESET TimeZone;
RESET DateStyle;

-- An interval looks the same in every session, and a call that is repeated in another session is the same call.
SELECT stepwise.create_plan('intervals', 'g', '[{"name": "a", "stallAfter": "1 day 2 hours"}]', stall_after => '90 minutes',
                            idempotency_key => 'intervals') ->> 'existing';
SELECT style, stepwise.create_plan('intervals', 'g', '[{"name": "a", "stallAfter": "1 day 2 hours"}]', stall_after => '90 minutes',
                                   idempotency_key => 'intervals') ->> 'existing',
       stepwise.get_plan_context(pg_temp.plan('intervals')) #>> '{steps,0,stallAfter}'
FROM unnest('{iso_8601,sql_standard,postgres_verbose,postgres}'::text[]) AS style, LATERAL set_config('IntervalStyle', style, false);
SELECT stepwise.get_plan_context((stepwise.create_plan('interval', 'g', jsonb_build_array(jsonb_build_object('name', 'a', 'stallAfter', i))) ->> 'planId')::uuid) #>> '{steps,0,stallAfter}' = i
FROM unnest('{1 mon 1 day,1 day 30:00:00.000001,00:00:00.5,1 year 2 mons 3 days 04:05:06}'::text[]) AS i;
RESET IntervalStyle;

-- ---------- no result, and confidence ----------

SELECT pg_temp.make('null', '[{"name": "a", "tool": "t"}, {"name": "b"}]');
SELECT pg_temp.try($$stepwise.submit_step_result(pg_temp.step('null', 'a'), NULL)$$), pg_temp.try($$stepwise.advance(pg_temp.step('null', 'a'), NULL)$$),
       pg_temp.try($$stepwise.record_tool_result(pg_temp.plan('null'), 't', NULL)$$), pg_temp.try($$stepwise.record_tool_result(pg_temp.plan('null'), 't', NULL, true)$$);
SELECT pg_temp.show('null');
SELECT confidence, pg_temp.try(format('stepwise.submit_step_result(pg_temp.step(%L, %L), %L, confidence => %L::double precision) ->> %L', 'null', 'a', 'null', confidence, 'stepStatus'))
FROM unnest('{NaN,Infinity,-Infinity,1.0000000000000002,-1e-300,0.1}'::text[]) AS confidence;
-- a float that a driver sends is stored exactly, and the same call again is a duplicate
SELECT confidence, confidence = 0.1 FROM stepwise.step WHERE id = pg_temp.step('null', 'a');
SELECT stepwise.submit_step_result(pg_temp.step('null', 'a'), 'null', confidence => 0.1::float8) ? 'duplicate', stepwise.submit_step_result(pg_temp.step('null', 'a'), 'null', confidence => 0.1) ? 'duplicate';
SELECT stepwise.submit_step_result(pg_temp.step('null', 'b'), '{}', confidence => 1::real) ->> 'planStatus';

SELECT pg_temp.unsound();
SELECT stepwise.drop_tool('shape_fail') ->> 'name';
DROP FUNCTION public.shape_fail(jsonb);
