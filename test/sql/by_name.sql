-- call(): functions by name, with arguments in JSON, in a tenant of their own.

\set ECHO none
\i test/agent.sql
-- Call by name; the answer without ids and times, or the error with detail and hint.
CREATE FUNCTION pg_temp.call(function text, arguments jsonb = '{}', tenant text = NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    RETURN pg_temp.plain(stepwise.call(function, arguments, tenant));
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN regexp_replace(concat_ws(E'\n    ', sqlstate || ': ' || sqlerrm, nullif(detail, ''), nullif(hint, '')), '01[0-9a-f]{6}-[0-9a-f-]{27}', 'ID', 'g');
END $$;
-- The same as a role.
CREATE FUNCTION pg_temp.call_as(role text, function text, arguments jsonb = '{}', tenant text = NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    answer := pg_temp.call(function, arguments, tenant);
    RESET ROLE;
    RETURN answer;
END $$;
CREATE FUNCTION pg_temp.with_plan(arguments jsonb = '{}', plan text = 'by name') RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('plan_id', pg_temp.plan(plan)) || arguments
$$;
CREATE FUNCTION pg_temp.with_step(step text, arguments jsonb = '{}') RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('stepId', pg_temp.step('by name', step)) || arguments
$$;
-- The functions that can be called by name: the error for an unknown one lists them.
CREATE FUNCTION pg_temp.callable() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
BEGIN
    PERFORM stepwise.call('no such function');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN QUERY SELECT regexp_split_to_table(substring(detail FROM 'are: (.*)\.$'), ', ');
END $$;
CREATE ROLE regress_named_agent;
CREATE ROLE regress_named_worker;
CREATE ROLE regress_named_reader;
CREATE ROLE regress_named_many;
SELECT stepwise.grant_agent('regress_named_agent'), stepwise.grant_agent('regress_named_worker', decide => false),
       stepwise.grant_reader('regress_named_reader'), stepwise.grant_agent('regress_named_many') \g /dev/null
SELECT stepwise.add_member(r::regrole, 'default')
FROM unnest('{regress_named_agent,regress_named_worker,regress_named_reader,regress_named_many}'::text[]) AS r \g /dev/null
SELECT stepwise.add_member('regress_named_many', 'named other') \g /dev/null
\set ECHO all

-- ---------- what can be called ----------

-- the table, the catalog and the list of grants agree: no row
WITH granted AS (
    SELECT DISTINCT p.proname::text AS name
    FROM stepwise.grants AS g
    JOIN pg_proc AS p ON g.statement = format('GRANT EXECUTE ON ROUTINE %s', p.oid::regprocedure)
    WHERE p.prokind = 'f' AND p.proname NOT IN ('call', 'mcp', 'audit_entries', 'audit_detail'))
SELECT 'not in the table: ' || name FROM (SELECT name FROM granted EXCEPT ALL SELECT pg_temp.callable()) AS missing
UNION ALL
SELECT 'not granted: ' || name FROM (SELECT pg_temp.callable() AS name EXCEPT ALL SELECT name FROM granted) AS surplus;
SELECT count(*) > 50 FROM pg_temp.callable();
-- the table knows what only reads: a role without rights is told which grant it needs, unless everybody may call the function
CREATE ROLE regress_named_nobody;
GRANT USAGE ON SCHEMA stepwise TO regress_named_nobody;
GRANT EXECUTE ON FUNCTION stepwise.call TO regress_named_nobody;
WITH hint AS (
    SELECT f.name, pg_temp.call_as('regress_named_nobody', f.name) AS said FROM pg_temp.callable() AS f (name)
    WHERE f.name NOT IN ('slot_of', 'tenant_slot'))
SELECT h.name, h.said FROM hint AS h
WHERE h.said NOT LIKE '42501: permission denied for function ' || h.name || E'\n%'
   OR (h.said LIKE '%grant_reader(role)%') <> has_function_privilege('regress_named_reader', (SELECT p.oid FROM pg_proc AS p WHERE p.proname = h.name AND p.pronamespace = 'stepwise'::regnamespace), 'EXECUTE')
   OR (h.said LIKE '%decides for a person%') = has_function_privilege('regress_named_worker', (SELECT p.oid FROM pg_proc AS p WHERE p.proname = h.name AND p.pronamespace = 'stepwise'::regnamespace), 'EXECUTE');
-- whatever is not an argument is refused, and whatever is null is answered or refused by class SW
SELECT f.name FROM pg_temp.callable() AS f (name)
WHERE pg_temp.call(f.name, '{"no such argument": 1}') NOT LIKE 'SW005: function ' || f.name || ' has no argument "no such argument"%';
SELECT f.name, x.said
FROM pg_temp.callable() AS f (name)
JOIN pg_proc AS p ON p.proname = f.name AND p.pronamespace = 'stepwise'::regnamespace,
     LATERAL (SELECT pg_temp.call(f.name, jsonb_object_agg(a, NULL), 'named nulls') AS said FROM unnest(p.proargnames[1:p.pronargs]) AS a) AS x
WHERE p.pronargs > 0 AND x.said ~ '^[0-9A-Z]{5}: ' AND x.said !~ E'^SW0[0-9]{2}: .*\n';
SELECT split_part(pg_temp.call(f), E'\n', 1), split_part(pg_temp.call(f), E'\n', 3)
FROM unnest(ARRAY['call', 'mcp', 'run_steps', 'purge', 'register_tool', 'add_member', 'step_json', 'pg_sleep', 'stepwise.run', 'GET_NEXT_STEP', 'get_nxt_step', repeat('x', 1000)]) AS f;
SELECT pg_temp.call(NULL), pg_temp.call(' ');

-- ---------- types ----------

SELECT stepwise.call('create_plan', '{"name": "by name", "goal": "try", "strictOrder": false, "stallAfter": "90 minutes", "session_id": null,
    "inputs": {"a": [1, null]}, "steps": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "ask", "prompt": "So?"}]}') ->> 'stepCount';
SELECT stepwise.call('get_plan_context', pg_temp.with_plan()) -> 'inputs', stall_after FROM stepwise.plan WHERE name = 'by name';
SELECT stepwise.call('get_next_step', pg_temp.with_plan('{"worker": "w", "lease": "10 minutes", "runTools": true}')) ->> 'name';
SELECT worker, lease_expires_at > clock_timestamp() + interval '9 minutes' FROM stepwise.step WHERE id = pg_temp.step('by name', 'a');
SELECT stepwise.call('submit_step_result', pg_temp.with_step('a', '{"result": null, "confidence": 0.25, "attempt": 1}')) ->> 'stepStatus';
SELECT result, confidence, outcome FROM stepwise.step WHERE id = pg_temp.step('by name', 'a');
SELECT stepwise.call('submit_step_result', pg_temp.with_step('b', '{"result": "done", "resultSummary": "b is done", "execution_report": {"n": 1e2}, "outcome": null}')) ->> 'stepStatus';
SELECT result, result_summary, execution_report, outcome FROM stepwise.step WHERE id = pg_temp.step('by name', 'b');
SELECT stepwise.call('list_active_plans', '{"max": 1.0, "sessionId": "nobody"}') -> 'plans';
-- answers that are not jsonb
SELECT pg_temp.call('uuid7');
SELECT jsonb_typeof(stepwise.call('handoff', pg_temp.with_plan())), stepwise.call('handoff', pg_temp.with_plan()) #>> '{}' = stepwise.handoff(pg_temp.plan('by name'));
SELECT pg_temp.call('current_tenant');
SELECT pg_temp.call('step_transition_allowed', '{"fromStatus": "pending", "to_status": "in_progress"}');
SELECT pg_temp.call('derive_plan_status', '{"statuses": ["completed", "failed"], "on_failure": "fail"}');
SELECT pg_temp.call('derive_plan_status', '{"statuses": [], "on_failure": "fail"}');
SELECT pg_temp.call('plan_fits', '{"status": "completed", "outcome": "success", "completedAt": "2026-01-31T12:00:00Z"}');
SELECT split_part(pg_temp.call('execution_as_of', pg_temp.with_plan('{"at": "2000-01-01T00:00:00Z"}')), E'\n', 1);
SELECT stepwise.call('execution_as_of', pg_temp.with_plan('{"at": "infinity"}')) -> 'metadata' ->> 'status';
-- null: the default, SQL NULL for an argument without one, the JSON value if it is jsonb
SELECT stepwise.call('verify_audit', '{"plan_id": null, "recursive": null}', 'named nulls') -> 'valid';
SELECT pg_temp.call('derive_plan_status', '{"statuses": null, "on_failure": "fail"}');
SELECT pg_temp.call('plan_fits', '{"status": "executing", "outcome": "n/a", "completed_at": null}');
SELECT stepwise.call('current_tenant', NULL), stepwise.call('current_tenant', 'null'), stepwise.call('current_tenant', tenant => NULL);

-- ---------- wrong arguments ----------

SELECT pg_temp.call('why');
SELECT pg_temp.call('why', '[]');
SELECT pg_temp.call('why', '"x"');
SELECT pg_temp.call('why', '{"planid": "x"}');
SELECT pg_temp.call('current_tenant', '{"plan_id": "x"}');
SELECT pg_temp.call('retry_step', '{"step_id": "x", "stepId": "x"}');
SELECT pg_temp.call('get_next_step', '{"plan_id": "nonsense"}');
SELECT pg_temp.call('get_next_step', '{"plan_id": 7}');
SELECT pg_temp.call('get_next_step', pg_temp.with_plan('{"lease": "soon"}'));
SELECT pg_temp.call('get_next_step', pg_temp.with_plan('{"lease": 600}'));
SELECT pg_temp.call('get_next_step', pg_temp.with_plan('{"lease": "999999999999 years"}'));
SELECT pg_temp.call('get_next_step', pg_temp.with_plan('{"lease": "-1 minute"}'));
SELECT pg_temp.call('get_next_step', pg_temp.with_plan('{"worker": 1}'));
SELECT pg_temp.call('get_next_step', pg_temp.with_plan('{"run_tools": "yes"}'));
SELECT pg_temp.call('execution', pg_temp.with_plan('{"depth": 99999999999}'));
SELECT pg_temp.call('execution', pg_temp.with_plan('{"depth": 1.5}'));
SELECT pg_temp.call('execution', pg_temp.with_plan('{"depth": "1"}'));
SELECT pg_temp.call('execution_as_of', pg_temp.with_plan('{"at": "yesteryear"}'));
SELECT pg_temp.call('submit_step_result', pg_temp.with_step('c', '{"result": 1, "confidence": 85}'));
SELECT pg_temp.call('submit_step_result', pg_temp.with_step('c', '{"result": 1, "confidence": 1e999}'));
SELECT pg_temp.call('submit_step_result', pg_temp.with_step('c', '{"result": 1, "confidence": "high"}'));
SELECT pg_temp.call('submit_step_result', pg_temp.with_step('c', '{"result": 1, "outcome": "fine"}'));
SELECT pg_temp.call('submit_step_result', pg_temp.with_step('c', '{}'));
SELECT pg_temp.call('step_transition_allowed', '{"from_status": "pending", "to_status": "done"}');
SELECT pg_temp.call('step_transition_allowed', jsonb_build_object('from_status', 'pending', 'to_status', repeat('x', 100)));
SELECT pg_temp.call('derive_plan_status', '{"statuses": ["completed", null], "on_failure": "fail"}');
SELECT pg_temp.call('derive_plan_status', '{"statuses": {"0": "completed"}, "on_failure": "fail"}');
SELECT pg_temp.call('derive_plan_status', '{"statuses": "completed", "on_failure": "fail"}');
SELECT length(pg_temp.call('why', jsonb_build_object('plan_id', repeat('x', 100000)))) < 400, length(pg_temp.call('why', jsonb_build_object(repeat('x', 100000), 1))) < 400;
-- an error has changed nothing
SELECT name, status FROM stepwise.step WHERE plan_id = pg_temp.plan('by name') ORDER BY step_order;
SELECT stepwise.call('submit_step_result', pg_temp.with_step('c', '{"result": 1}')) ->> 'stepStatus';
SELECT stepwise.call('get_next_step', pg_temp.with_plan()) ->> 'status';
SELECT pg_temp.call('submit_user_decision', jsonb_build_object('checkpointId', pg_temp.waiting('by name', 'ask'), 'decision', 'perhaps'));

-- ---------- rights ----------

SELECT pg_temp.call_as('regress_named_reader', 'get_plan_status', pg_temp.with_plan()) LIKE '{%';
SELECT pg_temp.call_as('regress_named_reader', 'get_next_step', pg_temp.with_plan());
-- the right comes before the arguments
SELECT pg_temp.call_as('regress_named_reader', 'get_next_step', '{"nonsense": 1}');
SELECT pg_temp.call_as('regress_named_worker', 'get_next_step', pg_temp.with_plan()) LIKE '{%';
SELECT pg_temp.call_as('regress_named_worker', 'resume', jsonb_build_object('checkpoint_id', pg_temp.waiting('by name', 'ask'), 'response', true));
SELECT pg_temp.call_as('regress_named_agent', 'resume', jsonb_build_object('checkpoint_id', pg_temp.waiting('by name', 'ask'), 'response', true)) LIKE '{%';
SELECT result FROM stepwise.step WHERE id = pg_temp.step('by name', 'ask');
-- who called is who is recorded
SELECT DISTINCT actor FROM stepwise.audit WHERE plan_id = (SELECT pg_temp.plan('by name')) AND step_id = (SELECT pg_temp.step('by name', 'ask')) AND event <> 'step_waiting' ORDER BY actor;

-- ---------- a tenant for one call ----------

SELECT pg_temp.call_as('regress_named_many', 'current_tenant');
SELECT pg_temp.call_as('regress_named_many', 'current_tenant', tenant => 'named other');
SELECT pg_temp.call_as('regress_named_many', 'current_tenant', tenant => 'default');
SELECT pg_temp.call_as('regress_named_many', 'current_tenant', tenant => 'foreign');
SELECT pg_temp.call_as('regress_named_many', 'current_tenant', tenant => '');
SELECT pg_temp.call_as('regress_named_many', 'get_plan_status', pg_temp.with_plan(), 'named other');
SELECT pg_temp.call_as('regress_named_many', 'create_plan', '{"name": "apart", "goal": "try", "steps": [{"name": "a"}]}', 'named other') LIKE '{%';
SELECT tenant FROM stepwise.plan WHERE name = 'apart';
-- afterwards the tenant is the one that was entered before, also after an error and in a subtransaction
BEGIN;
SET LOCAL ROLE regress_named_many;
SELECT stepwise.enter_tenant('default');
SELECT stepwise.call('current_tenant', tenant => 'named other'), stepwise.current_tenant();
SAVEPOINT inner_one;
SELECT stepwise.call('current_tenant', tenant => 'named other'), stepwise.current_tenant();
SELECT stepwise.call('why', tenant => 'named other');
ROLLBACK TO inner_one;
SELECT stepwise.current_tenant();
SELECT split_part(pg_temp.call('why', '{"plan_id": null}', 'named other'), ':', 1), stepwise.current_tenant();
-- entered in a call that has a tenant, it ends with the call; in one that has none, it stays
SELECT stepwise.call('enter_tenant', '{"tenant": "named other"}', 'default'), stepwise.current_tenant();
SELECT stepwise.call('enter_tenant', '{"tenant": "named other"}');
SELECT stepwise.current_tenant();
RELEASE inner_one;
SELECT stepwise.call('current_tenant', tenant => 'default'), stepwise.current_tenant();
ROLLBACK;

-- ---------- functions that change while the session goes on ----------

-- a tool that replaces the function that is running, and calls it by name
CREATE FUNCTION public.named_tool(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    ALTER FUNCTION stepwise.run COST 2;
    ALTER FUNCTION stepwise.create_plan COST 2;
    RETURN (stepwise.call('run', jsonb_build_object('planId',
        stepwise.call('create_plan', '{"name": "inner", "goal": "g", "steps": [{"tool": "state_write", "arguments": {"name": "named", "value": 1}}]}') -> 'planId')) - 'task_id');
END $$;
SELECT stepwise.register_tool('named_tool', 'named_tool(jsonb)') ->> 'name';
SELECT pg_temp.call('create_plan', '{"name": "outer", "goal": "g", "steps": [{"name": "t", "tool": "named_tool"}], "outputs": {"t": "${steps.t.outputs}"}}') LIKE '{%';
SELECT stepwise.call('run', pg_temp.with_plan(plan => 'outer')) -> 'outputs';
ALTER FUNCTION stepwise.run COST 1;
ALTER FUNCTION stepwise.create_plan COST 1;
-- a function that has lost and regained its right
REVOKE EXECUTE ON FUNCTION stepwise.why FROM regress_named_reader;
SELECT pg_temp.call_as('regress_named_reader', 'why', pg_temp.with_plan());
GRANT EXECUTE ON FUNCTION stepwise.why TO regress_named_reader;
SELECT pg_temp.call_as('regress_named_reader', 'why', pg_temp.with_plan()) LIKE '{%';
-- a function that is not there, as before an update of the extension
ALTER FUNCTION stepwise.why RENAME TO why_not;
SELECT split_part(pg_temp.call('why', pg_temp.with_plan()), E'\n', 1);
ALTER FUNCTION stepwise.why_not RENAME TO why;
-- another default
CREATE OR REPLACE FUNCTION stepwise.execution(plan_id uuid, depth int = 0) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS '$libdir/pg_stepwise', 'stepwise_execution';
SELECT stepwise.call('execution', pg_temp.with_plan(plan => 'outer')) -> 'blocks' ? 't';
CREATE OR REPLACE FUNCTION stepwise.execution(plan_id uuid, depth int = NULL) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS '$libdir/pg_stepwise', 'stepwise_execution';
SELECT stepwise.call('execution', pg_temp.with_plan(plan => 'outer')) -> 'blocks' ? 't';
