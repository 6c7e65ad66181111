-- record_tool_result: which step takes a result, and what is refused. Open failures come first; otherwise one step must be due.

\set ECHO none
\i test/agent.sql
-- The step that took a result, or the error; and what the answer says if none took it.
CREATE FUNCTION pg_temp.record(plan text, tool text, step text = NULL, is_error boolean = false, result jsonb = '1') RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.try(format('(SELECT concat_ws('' '', (SELECT s.name FROM stepwise.step AS s WHERE s.id = (a ->> ''stepId'')::uuid), a ->> ''stepStatus'','
                              ' ''matched '' || (a ->> ''matched''), a ->> ''openTools'', a ->> ''variable'', CASE WHEN a ? ''duplicate'' THEN ''duplicate'' END)'
                              ' FROM stepwise.record_tool_result(%L, %L, %L, %L, %L) AS a)', pg_temp.plan(plan), tool, result, is_error, step))
$$;
CREATE FUNCTION pg_temp.said(plan text, tool text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    more text;
    hint text;
BEGIN
    PERFORM stepwise.record_tool_result(pg_temp.plan(plan), tool, '1');
    RETURN 'taken';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS more = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN sqlstate || ' ' || (pg_temp.plain(to_jsonb(more))::jsonb #>> '{}') || ' ' || regexp_replace(hint, '[0-9a-f]{8}-[0-9a-f-]{27}', 'ID', 'g');
END $$;
\set ECHO all

-- ---------- nothing matched ----------

SELECT pg_temp.make('none', '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "u"}, {"name": "c", "tool": "t"}]');
SELECT pg_temp.record('none', 'v');
-- a step of this tool exists, but is not due
SELECT pg_temp.record('none', 'u');
SELECT pg_temp.record('none', 't');
SELECT pg_temp.record('none', 't'), pg_temp.record('none', 'u');
SELECT pg_temp.record('none', 't');
SELECT pg_temp.show('none');

-- ---------- open failures first ----------

-- under stop and pause a failed step takes the result; under continue it does not
SELECT pg_temp.make('open ' || on_failure, '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "t"}, {"name": "c", "tool": "u"}]', on_failure => on_failure)
FROM unnest('{continue,stop,pause}'::text[]) AS on_failure;
SELECT on_failure, pg_temp.record('open ' || on_failure, 't', is_error => true, result => '"no"'), pg_temp.record('open ' || on_failure, 't')
FROM unnest('{continue,stop,pause}'::text[]) AS on_failure;
-- a failure that was given up is not open under stop, but holds a plan under pause
SELECT pg_temp.make('given up ' || on_failure, '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "u"}]', on_failure => on_failure) FROM unnest('{stop,pause}'::text[]) AS on_failure;
SELECT pg_temp.fail('given up ' || on_failure, 'a') FROM unnest('{stop,pause}'::text[]) AS on_failure;
SELECT pg_temp.record('given up ' || on_failure, 't') FROM unnest('{stop,pause}'::text[]) AS on_failure;
SELECT pg_temp.record('given up stop', 't', 'a');
-- two open failures of one tool
SELECT pg_temp.make('two', '[{"name": "a", "tool": "t", "dependsOn": []}, {"name": "b", "tool": "t"}, {"name": "c", "tool": "t"}]', on_failure => 'stop');
SELECT pg_temp.record('two', 't', step, true, '"no"') FROM unnest('{a,b}'::text[]) AS step;
SELECT pg_temp.record('two', 't');
SELECT pg_temp.record('two', 't', 'b');
SELECT pg_temp.record('two', 't'), pg_temp.record('two', 't');
-- a failed step behind a step that waits for a person: a retry would not be due either
SELECT pg_temp.make('behind', '[{"name": "a"}, {"name": "b", "tool": "t"}]', on_failure => 'stop');
SELECT pg_temp.next('behind'), pg_temp.next('behind'), pg_temp.record('behind', 't', is_error => true, result => '"no"');
SELECT stepwise.request_user_review(pg_temp.step('behind', 'a'), 'Look') ->> 'stepStatus';
SELECT pg_temp.record('behind', 't', 'b'), pg_temp.record('behind', 't');
-- the attempts are used up: a client may still give the result
SELECT pg_temp.make('used up', '[{"name": "a", "tool": "t", "maxAttempts": 1}]', on_failure => 'stop');
SELECT pg_temp.next('used up'), stepwise.release_step(pg_temp.step('used up', 'a')) ->> 'stepStatus', pg_temp.next('used up');
SELECT pg_temp.record('used up', 't');

-- ---------- several could take it ----------

SELECT pg_temp.make('several', '[{"name": "a", "tool": "t", "dependsOn": []}, {"name": "b", "tool": "t"}, {"name": "c", "tool": "t", "dependsOn": ["a"]}]');
SELECT pg_temp.said('several', 't');
SELECT pg_temp.record('several', 't', 'b'), pg_temp.record('several', 't'), pg_temp.record('several', 't');
-- claimed without worker and lease, beside one that is due
SELECT pg_temp.make('claimed', '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "t"}]');
SELECT pg_temp.next('claimed'), pg_temp.record('claimed', 't');
SELECT pg_temp.record('claimed', 't', 'a'), pg_temp.record('claimed', 't');
-- in two nested plans
SELECT stepwise.define_workflow('{"name": "matched below", "steps": [{"name": "x", "tool": "t"}]}') ->> 'version';
SELECT pg_temp.make('nested', '[{"name": "l", "workflow": "matched below", "dependsOn": []}, {"name": "r", "workflow": "matched below"}]');
SELECT pg_temp.next('nested'), pg_temp.next('nested');
SELECT pg_temp.said('nested', 't');
-- many: 50 are named
SELECT pg_temp.make('many', (SELECT jsonb_agg(jsonb_build_object('name', 's' || n, 'tool', 't', 'dependsOn', '[]'::jsonb)) FROM generate_series(1, 60) AS n));
SELECT pg_temp.said('many', 't') ~ '"s50"\] in plan ID and 10 more\. ';

-- ---------- blocked only by its arguments, or by more ----------

SELECT pg_temp.make('arguments', '[{"name": "a", "tool": "t", "arguments": {"x": "${inputs.n.gone}"}}]', inputs => '{"n": {}}');
SELECT pg_temp.next('arguments'), pg_temp.record('arguments', 't');
SELECT pg_temp.make('condition', '[{"name": "a", "tool": "t", "condition": "${inputs.n.gone} > 1"}]', inputs => '{"n": {}}');
SELECT pg_temp.next('condition'), pg_temp.record('condition', 't'), pg_temp.record('condition', 't', 'a');
SELECT pg_temp.make('both', '[{"name": "a", "tool": "t", "arguments": {"x": "${inputs.n.gone}"}, "condition": "${inputs.n} == 1"}]', inputs => '{"n": 2}');
SELECT pg_temp.record('both', 't'), pg_temp.record('both', 't', 'a');

-- ---------- claims of others ----------

-- by name: a step that a worker or a lease holds takes no result from others
SELECT pg_temp.make(plan, '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "t"}]') FROM unnest('{leased,second,first}'::text[]) AS plan;
SELECT pg_temp.next('leased', lease => '1 hour'), pg_temp.next('second'), pg_temp.next('first', 'w');
SELECT stepwise.release_step(pg_temp.step('second', 'a')) ->> 'stepStatus', pg_temp.next('second', 'w');
SELECT plan, pg_temp.record(plan, 't', 'a') FROM unnest('{leased,second,first}'::text[]) AS plan;
-- an expired lease holds nothing, by name neither
SELECT stepwise.heartbeat(pg_temp.step('leased', 'a'), 1, '1 microsecond') ->> 'stepStatus', pg_sleep(0.01);
SELECT pg_temp.record('leased', 't', 'a');
-- a step that was sent back is claimed by the report
SELECT pg_temp.make('back', '[{"name": "a", "tool": "t"}, {"name": "b", "tool": "t"}]');
SELECT pg_temp.next('back', 'w'), stepwise.request_user_review(pg_temp.step('back', 'a'), 'Look') ->> 'stepStatus';
SELECT stepwise.submit_user_decision(pg_temp.waiting('back', 'a'), 'modify', 'shorter') ->> 'stepStatus';
SELECT pg_temp.record('back', 't', 'b'), pg_temp.record('back', 't');
SELECT s.name, s.status, s.attempt FROM stepwise.step AS s WHERE s.plan_id = pg_temp.plan('back') ORDER BY 1;

-- ---------- by name ----------

SELECT pg_temp.make('named', '[{"name": "a", "tool": "t"}, {"name": "b"}, {"name": "ask", "prompt": "Sure?"}]');
SELECT pg_temp.record('named', 't', 'b'), pg_temp.record('named', 't', 'none'), pg_temp.record('named', 't', 'ask'), pg_temp.record('named', 't', '');
SELECT pg_temp.record('named', 't', 'a'), pg_temp.record('named', 't', 'a'), pg_temp.record('named', 't', 'a', result => '2');
SELECT pg_temp.record('named', NULL), pg_temp.record('named', ''), pg_temp.record('named', NULL, 'b');
-- of no plan
SELECT pg_temp.try(format('stepwise.record_tool_result(%L, ''t'', ''1'')', id)) FROM unnest('{NULL,00000000-0000-7000-8000-000000000000}'::uuid[]) AS id;

SELECT pg_temp.unsound();
