-- Functions that the tests of nested plans share: workflows and plans by labels, steps by their paths, trees line by line, errors as
-- values.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

-- Define a workflow with these steps and other keys.
CREATE FUNCTION pg_temp.define(name text, steps jsonb, more jsonb = '{}') RETURNS text LANGUAGE sql AS $$
    SELECT stepwise.define_workflow(jsonb_build_object('name', name, 'steps', steps) || more) ->> 'name'
$$;

-- Plans are known by a label.
CREATE TEMP TABLE labelled (label text PRIMARY KEY, plan_id uuid);
CREATE FUNCTION pg_temp.start(label text, workflow text, inputs jsonb = '{}') RETURNS text LANGUAGE sql AS $$
    INSERT INTO labelled SELECT label, (x ->> 'planId')::uuid FROM stepwise.start_workflow(workflow, inputs) AS x;
    SELECT label || ' started'
$$;
CREATE FUNCTION pg_temp.plan(label text) RETURNS uuid LANGUAGE sql AS $$
    SELECT l.plan_id FROM labelled AS l WHERE l.label = $1
$$;

-- The newest plan nested in the last step of a path ("a/b"; '' is the plan itself).
CREATE FUNCTION pg_temp.nested(label text, path text) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    found uuid := pg_temp.plan(label);
    word text;
BEGIN
    FOREACH word IN ARRAY string_to_array(path, '/') LOOP
        SELECT n.id INTO STRICT found FROM stepwise.step AS s JOIN stepwise.plan AS n ON n.tenant = 'default' AND n.parent_step_id = s.id
        WHERE s.tenant = 'default' AND s.plan_id = found AND s.name = word ORDER BY n.id DESC LIMIT 1;
    END LOOP;
    RETURN found;
END $$;

-- A step by its path.
CREATE FUNCTION pg_temp.step(label text, path text) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM stepwise.step AS s
    WHERE s.tenant = 'default' AND s.plan_id = pg_temp.nested(label, array_to_string(trim_array(string_to_array(path, '/'), 1), '/'))
      AND s.name = substring(path FROM '[^/]*$')
$$;

-- The checkpoint at which a step waits.
CREATE FUNCTION pg_temp.checkpoint(label text, path text) RETURNS uuid LANGUAGE sql AS $$
    SELECT k.id FROM stepwise.checkpoint AS k WHERE k.tenant = 'default' AND k.step_id = pg_temp.step(label, path)
$$;

-- An answer without ids and times, and without what a run says about the next call.
CREATE FUNCTION pg_temp.plain(answer jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT answer - '{planId,rootPlanId,stepId,checkpointId,checkpoint_id,leaseExpiresAt,task_id,goal,message,next_call,nextCall,waitingFor,retryAfterMs,failedSteps}'::text[]
           || CASE WHEN answer ? 'pauseReason' THEN jsonb_build_object('pauseReason', (answer -> 'pauseReason') - 'checkpointId') ELSE '{}' END
           || CASE WHEN answer ? 'pause_reason' THEN jsonb_build_object('pause_reason', (answer -> 'pause_reason') - 'checkpointId') ELSE '{}' END
$$;

-- get_next_step in short: the path of the step and its arguments, or why there is none.
CREATE FUNCTION pg_temp.next(plan_id uuid, worker text = NULL, lease interval = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', x ->> 'status', (SELECT string_agg(w, '/') FROM jsonb_array_elements_text(x -> 'path') AS w),
                     nullif(x -> 'arguments', '{}'), 'attempt ' || nullif(x ->> 'attempt', '1'), CASE WHEN x ? 'again' THEN 'again' END,
                     x ->> 'prompt', (x -> 'pauseReason') - 'checkpointId', x ->> 'error', x ->> 'outcome', x -> 'outputs')
    FROM stepwise.get_next_step(plan_id, worker, lease) AS x
$$;
CREATE FUNCTION pg_temp.next(label text, worker text = NULL, lease interval = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.next(pg_temp.plan(label), worker, lease)
$$;

-- The attempt of a claim that is fenced.
CREATE FUNCTION pg_temp.attempt(step_id uuid) RETURNS int LANGUAGE sql AS $$
    SELECT s.attempt FROM stepwise.step AS s
    WHERE s.tenant = 'default' AND s.id = step_id AND s.status = 'in_progress' AND (s.attempt > 1 OR s.lease_expires_at IS NOT NULL)
$$;

-- Submit a step, named by its path.
CREATE FUNCTION pg_temp.submit(label text, path text, result jsonb = '{}', outcome text = 'success') RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', x ->> 'stepStatus', 'plan', x ->> 'planStatus')
    FROM stepwise.submit_step_result(pg_temp.step(label, path), result, outcome => outcome, attempt => pg_temp.attempt(pg_temp.step(label, path))) AS x
$$;

-- A plan and all plans nested in it, line by line.
CREATE FUNCTION pg_temp.show(plan_id uuid, indent int = 0) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    p stepwise.plan;
    s stepwise.step;
    n uuid;
BEGIN
    SELECT * INTO p FROM stepwise.plan AS x WHERE x.tenant = 'default' AND x.id = plan_id;
    RETURN NEXT repeat('    ', indent) || concat_ws(' ', p.name, p.status, nullif(p.outcome, 'n/a'), p.outputs,
        (p.pause_reason ->> 'type') || ' at ' || coalesce((SELECT string_agg(w, '/') FROM jsonb_array_elements_text(p.pause_reason -> 'path') AS w), 'no path'),
        '(' || p.message || ')');
    FOR s IN SELECT * FROM stepwise.step AS x WHERE x.tenant = 'default' AND x.plan_id = p.id ORDER BY x.step_order LOOP
        RETURN NEXT repeat('    ', indent) || '  ' || concat_ws(' ', s.name, s.status, nullif(s.outcome, 'n/a'), s.result,
            'for ' || (s.pause_reason ->> 'type'), '(' || s.message || ')');
        FOR n IN SELECT x.id FROM stepwise.plan AS x WHERE x.tenant = 'default' AND x.parent_step_id = s.id ORDER BY x.id LOOP
            RETURN QUERY SELECT * FROM pg_temp.show(n, indent + 1);
        END LOOP;
    END LOOP;
END $$;
CREATE FUNCTION pg_temp.show(label text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT pg_temp.show(pg_temp.plan(label))
$$;

-- The error of a statement, or "fine".
CREATE FUNCTION pg_temp.try(statement text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE statement;
    RETURN 'fine';
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate || ' ' || sqlerrm;
END $$;
