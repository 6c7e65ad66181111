-- Functions that the tests of the agent's loop share: plans and steps by their names, answers without ids and times, errors as values.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;
SET jit = off;

CREATE TEMP TABLE began AS SELECT clock_timestamp() AS at;

-- The newest plan of a name, and a step of it.
CREATE FUNCTION pg_temp.plan(plan text) RETURNS uuid LANGUAGE sql AS $$
    SELECT p.id FROM stepwise.plan AS p WHERE p.name = plan ORDER BY p.id DESC LIMIT 1
$$;
CREATE FUNCTION pg_temp.step(plan text, step text) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan($1)) AND s.name = $2
$$;

-- The checkpoint at which a step waits.
CREATE FUNCTION pg_temp.waiting(plan text, step text) RETURNS uuid LANGUAGE sql AS $$
    SELECT k.id FROM stepwise.checkpoint AS k WHERE k.step_id = (SELECT pg_temp.step($1, $2))
$$;

-- An answer without ids and times, and without some of its keys.
CREATE FUNCTION pg_temp.plain(answer jsonb, VARIADIC without text[] = '{}') RETURNS text LANGUAGE sql AS $$
    SELECT regexp_replace(regexp_replace(regexp_replace(CASE WHEN without = '{}' THEN answer ELSE answer - without END::text,
        '[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}', 'ID', 'g'),
        '"20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+[^"]*"', '"TIME"', 'g'),
        '"retryAfterMs": [0-9]+', '"retryAfterMs": "MS"', 'g')
$$;

-- The value of an expression, or its SQLSTATE and message.
CREATE FUNCTION pg_temp.try(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
    code text;
    said text;
BEGIN
    EXECUTE 'SELECT (' || expression || ')::text' INTO answer;
    RETURN answer;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, said = MESSAGE_TEXT;
    RETURN code || ': ' || (pg_temp.plain(to_jsonb(said))::jsonb #>> '{}');
END $$;

CREATE FUNCTION pg_temp.make(plan text, steps jsonb, branches jsonb = '[]', inputs jsonb = '{}', outputs jsonb = '{}',
    on_failure text = 'continue', separate_reviewer boolean = false) RETURNS text LANGUAGE sql AS $$
    SELECT stepwise.create_plan(plan, 'test', steps, branches, inputs, outputs, on_failure,
                                separate_reviewer => $7) ->> 'status'
$$;

-- get_next_step in short: its status, and name, attempt and arguments of a ready step.
CREATE FUNCTION pg_temp.brief(answer jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', answer ->> 'status', answer ->> 'name', '#' || (answer ->> 'attempt'),
                     nullif(answer ->> 'arguments', '{}'), CASE WHEN answer ? 'again' THEN 'again' END,
                     pg_temp.plain(answer -> 'pauseReason'))
$$;
CREATE FUNCTION pg_temp.next(plan text, worker text = NULL, lease interval = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.brief(stepwise.get_next_step(pg_temp.plan(plan), worker, lease))
$$;

-- The attempt of a claim that is fenced. Tests of the fence itself call the functions directly.
CREATE FUNCTION pg_temp.attempt(step_id uuid) RETURNS int LANGUAGE sql AS $$
    SELECT s.attempt FROM stepwise.step AS s
    WHERE s.id = step_id AND s.status = 'in_progress' AND (s.attempt > 1 OR s.lease_expires_at IS NOT NULL)
$$;
CREATE FUNCTION pg_temp.submit(plan text, step text, result jsonb = '{}', outcome text = 'success', confidence numeric = NULL,
    attempt int = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'stepStatus', a ->> 'planStatus', CASE WHEN a ? 'duplicate' THEN 'duplicate' END,
                     'branch ' || (a -> 'branch' ->> 'action'))
    FROM stepwise.submit_step_result(pg_temp.step(plan, step), result, outcome => $4, confidence => $5,
                                     attempt => coalesce($6, pg_temp.attempt(pg_temp.step(plan, step)))) AS a
$$;
CREATE FUNCTION pg_temp.fail(plan text, step text, error text = 'no luck') RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'stepStatus', a ->> 'planStatus', CASE WHEN a ? 'duplicate' THEN 'duplicate' END)
    FROM stepwise.fail_step(pg_temp.step(plan, step), error, attempt => pg_temp.attempt(pg_temp.step(plan, step))) AS a
$$;

-- The steps of a plan, one per line, and the state of the plan.
CREATE FUNCTION pg_temp.show(plan text) RETURNS SETOF text LANGUAGE sql AS $$
    (SELECT concat_ws(' ', s.step_order || '.', s.name, s.status, nullif(s.outcome, 'n/a'), '(' || s.message || ')')
     FROM stepwise.step AS s WHERE s.plan_id = (SELECT pg_temp.plan(plan)) ORDER BY s.step_order)
    UNION ALL
    SELECT concat_ws(' ', 'plan', p.status, nullif(p.outcome, 'n/a'), '(' || p.message || ')', pg_temp.plain(p.pause_reason))
    FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan(plan))
$$;

-- The audit entries of a plan in short.
CREATE FUNCTION pg_temp.log(plan text, event text = NULL) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a.event, s.name, pg_temp.plain(a.detail, 'attempt', 'resultDigest'))
    FROM stepwise.audit AS a LEFT JOIN stepwise.step AS s ON s.plan_id = a.plan_id AND s.id = a.step_id
    WHERE a.plan_id = (SELECT pg_temp.plan(plan)) AND (log.event IS NULL OR a.event = log.event) ORDER BY a.id
$$;

-- Contradictions in the plans of the test, and invalid chains: there must be none.
CREATE FUNCTION pg_temp.unsound() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT p.name || ': ' || i.problem
    FROM stepwise.check_integrity() AS i JOIN stepwise.plan AS p ON p.id = i.plan_id, began WHERE p.created_at >= began.at
    UNION ALL
    SELECT p.name || ': ' || pg_temp.plain(stepwise.verify_audit(p.id))
    FROM stepwise.plan AS p, began
    WHERE CASE WHEN p.created_at >= began.at THEN NOT (stepwise.verify_audit(p.id) ->> 'valid')::boolean END
$$;
