-- A random walk: plans of random shape, nested, with branches, conditions and prompts, are treated to random calls, also plain
-- SQL and nonsense. Whatever happens, no error is outside class SW, the tables stay true, the chains verify, and every plan can
-- still be brought to its end: none waits for nobody. The seed is fixed; psql -v seed=0.7 -v plans=5000 -f walks another way.

\set ECHO none
SET client_min_messages = warning;
SET jit = off;
\if :{?seed} \else \set seed 0.42 \endif
\if :{?plans} \else \set plans 120 \endif
CREATE SCHEMA walk;
SET search_path = walk, public;

CREATE TABLE made (id int GENERATED ALWAYS AS IDENTITY, root uuid, call text, answer text);
CREATE TABLE trouble (what text, root uuid, detail text);

CREATE FUNCTION pick(VARIADIC words text[]) RETURNS text LANGUAGE sql AS $$
    SELECT words[1 + floor(random() * cardinality(words))::int]
$$;
CREATE FUNCTION upto(n int) RETURNS int LANGUAGE sql AS $$ SELECT 1 + floor(random() * n)::int $$;

-- ---------- random definitions ----------

CREATE FUNCTION random_parents(i int) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_agg(jsonb_build_object('step', parent, 'required', random() < 0.6))
    FROM (SELECT DISTINCT 's' || upto(i - 1) AS parent FROM generate_series(1, upto(2))) AS p
$$;

CREATE FUNCTION random_step(i int, depends boolean, level int) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    step jsonb := jsonb_build_object('name', 's' || i);
    kind float := random();
BEGIN
    IF depends AND i > 1 AND random() < 0.7 THEN
        step := step || jsonb_build_object('dependsOn', random_parents(i));
    END IF;
    IF kind < 0.1 THEN
        step := step || '{"prompt": "Well, ${inputs.x}?"}';
    ELSIF kind < 0.25 AND level > 0 THEN
        step := step || jsonb_build_object('workflow', format('walk%s_%s', level - 1, upto(3)));
    ELSIF kind < 0.4 THEN
        step := step || jsonb_build_object('tool', pick('client', 'fine', 'broken'), 'arguments', '{"x": "${inputs.x}"}'::jsonb);
    ELSIF kind < 0.5 AND NOT depends AND i > 1 THEN
        step := step || jsonb_build_object('arguments', jsonb_build_object('y', format('${steps.s%s.outputs.n}', upto(i - 1))));
    END IF;
    IF random() < 0.2 THEN
        step := step || jsonb_build_object('condition', pick('${inputs.x} > 0', '${inputs.x} < 0', '${inputs.x} == "s"', 'true', 'false'));
    ELSIF random() < 0.25 AND NOT depends AND i > 1 THEN
        step := step || jsonb_build_object('condition', format(pick('${steps.s%s.succeeded}', '${steps.s%s.failed}', 'not ${steps.s%s.skipped}',
                                                                    '${steps.s%s.outputs.n} > 1', '${steps.s%s.status} == "completed"'), upto(i - 1)));
    END IF;
    RETURN step || CASE WHEN random() < 0.1 THEN '{"maxAttempts": 2}' ELSE '{}' END::jsonb;
END $$;

CREATE FUNCTION random_branch(i int, n int, depends boolean) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    after int := upto(n);
    action text := pick('continue', 'skip_to', 'add_steps', 'add_steps', 'request_review', 'request_review', CASE WHEN random() < 0.3 THEN 'fail' ELSE 'continue' END);
BEGIN
    IF after = n AND action = 'skip_to' THEN
        action := 'continue';
    END IF;
    RETURN jsonb_strip_nulls(jsonb_build_object('afterStepOrder', after, 'ifTrueAction', action,
        'conditionExpression', pick('true', 'confidence < 0.5', 'result.n > 1', 'outcome == "failure"'),
        'actionParams', CASE action
            WHEN 'skip_to' THEN jsonb_build_object('stepOrder', after + upto(n - after))
            WHEN 'add_steps' THEN jsonb_build_object('steps', jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('name', 'added' || i,
                'dependsOn', CASE WHEN depends AND random() < 0.8 THEN jsonb_build_array('s' || after) END))))
            WHEN 'request_review' THEN '{"summary": "Look"}' END));
END $$;

CREATE FUNCTION random_definition(name text, level int) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    n int := upto(6);
    depends boolean := n > 1 AND random() < 0.5;
    steps jsonb := (SELECT jsonb_agg(random_step(i, depends, level) ORDER BY i) FROM generate_series(1, n) AS i);
BEGIN
    depends := steps::text LIKE '%dependsOn%';
    RETURN jsonb_build_object('name', name, 'steps', steps, 'onFailure', pick('continue', 'continue', 'pause', 'fail'),
        'branchingConditions', (SELECT coalesce(jsonb_agg(random_branch(i, n, depends)), '[]') FROM generate_series(2, upto(4)) AS i),
        'inputs', '{"x": {"type": "integer", "default": 1}}'::jsonb, 'outputs', '{"n": "${steps.s1.outputs.n}"}'::jsonb);
END $$;

-- ---------- random calls ----------

-- Call, note it, and take an error of class SW for an answer.
CREATE FUNCTION try(root uuid, call text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    EXECUTE 'SELECT to_jsonb(' || call || ')' INTO answer;
    INSERT INTO made (root, call, answer) VALUES (root, call, answer);
    RETURN answer;
EXCEPTION WHEN OTHERS THEN
    INSERT INTO made (root, call, answer) VALUES (root, call, sqlstate || ' ' || sqlerrm);
    IF sqlstate NOT LIKE 'SW%' THEN
        INSERT INTO trouble VALUES ('error', root, call || ': ' || sqlstate || ' ' || sqlerrm);
    END IF;
    RETURN NULL;
END $$;

-- Some step of the tree, mostly one of a state.
CREATE FUNCTION some_step(root uuid, state text) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM stepwise.step AS s WHERE s.root_id = root ORDER BY random() < 0.85 AND s.status::text = state DESC, random() LIMIT 1
$$;
CREATE FUNCTION some_plan(root uuid) RETURNS uuid LANGUAGE sql AS $$
    SELECT p.id FROM stepwise.plan AS p WHERE p.root_id = root ORDER BY random() < 0.5 AND p.id = root DESC, random() LIMIT 1
$$;
CREATE FUNCTION some_checkpoint(root uuid) RETURNS uuid LANGUAGE sql AS $$
    SELECT k.id FROM stepwise.checkpoint AS k WHERE k.root_id = root ORDER BY random() LIMIT 1
$$;
CREATE FUNCTION move_by_hand(step_id uuid, status text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE stepwise.step AS s SET status = $2::stepwise.step_status WHERE s.id = $1;
END $$;

CREATE FUNCTION random_call(root uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    chance float := random();
    step uuid;
BEGIN
    CASE
        WHEN chance < 0.30 THEN
            RETURN format('stepwise.get_next_step(%L, %L, %L)', some_plan(root), pick('anna', 'bert', NULL, NULL), CASE WHEN random() < 0.1 THEN '1 microsecond' END);
        WHEN chance < 0.55 THEN
            RETURN format('stepwise.%s(%L, %L, confidence => %s, outcome => %L)', pick('submit_step_result', 'advance'), some_step(root, 'in_progress'),
                          pick('{"n": 1}', '{"n": 2}', '{}'), round(random()::numeric, 1), pick('success', 'success', 'failure'));
        WHEN chance < 0.60 THEN
            RETURN format('stepwise.fail_step(%L, %L)', some_step(root, 'in_progress'), 'no luck');
        WHEN chance < 0.65 THEN
            RETURN format('stepwise.retry_step(%L)', some_step(root, 'failed'));
        WHEN chance < 0.68 THEN
            RETURN format('stepwise.skip_step(%L)', some_step(root, 'pending'));
        WHEN chance < 0.71 THEN
            RETURN format('stepwise.release_step(%L)', some_step(root, 'in_progress'));
        WHEN chance < 0.73 THEN
            RETURN format('stepwise.heartbeat(%L, 1, %L)', some_step(root, 'in_progress'), pick('1 hour', '1 microsecond'));
        WHEN chance < 0.77 THEN
            RETURN format('stepwise.request_user_review(%L, %L)', some_step(root, 'in_progress'), 'Look');
        WHEN chance < 0.84 THEN
            RETURN format('stepwise.submit_user_decision(%L, %L, %L)', some_checkpoint(root), pick('approve', 'approve', 'modify', 'skip', CASE WHEN random() < 0.3 THEN 'reject' END), 'more');
        WHEN chance < 0.89 THEN
            RETURN format('stepwise.resume(%L, %L)', some_checkpoint(root), '1');
        WHEN chance < 0.90 THEN
            RETURN 'stepwise.reclaim_stalled(''0'')';
        WHEN chance < 0.91 THEN
            RETURN format('stepwise.get_plan_status(%L, %L)', some_plan(root), '0');
        WHEN chance < 0.93 THEN
            RETURN format('walk.move_by_hand(%L, %L)', some_step(root, 'pending'), pick('pending', 'in_progress', 'awaiting_input', 'completed', 'failed', 'skipped'));
        WHEN chance < 0.96 THEN
            RETURN format('stepwise.modify_plan(%L, %L, %L)', some_plan(root), 'add_steps', jsonb_strip_nulls(jsonb_build_object('insertAfterOrder', CASE WHEN random() < 0.5 THEN 1 END,
                          'steps', jsonb_build_array(jsonb_strip_nulls(jsonb_build_object('name', 'm' || upto(100), 'dependsOn', CASE WHEN random() < 0.4 THEN '["s1"]'::jsonb END))))));
        WHEN chance < 0.97 THEN
            step := some_step(root, 'pending');
            RETURN format('stepwise.modify_plan(%L, %L, %L)', (SELECT s.plan_id FROM stepwise.step AS s WHERE s.id = step), 'remove_step', jsonb_build_object('stepId', step));
        WHEN chance < 0.98 THEN
            RETURN format('stepwise.run(%L)', root);
        WHEN chance < 0.99 THEN
            RETURN format('stepwise.record_tool_result(%L, %L, %L)', some_plan(root), pick('client', 'fine'), '{"n": 3}');
        WHEN chance < 0.995 THEN
            RETURN format('stepwise.fork_plan(%L, %L)', root, 's' || upto(3));
        ELSE
            RETURN format('stepwise.cancel_plan(%L)', some_plan(root));
    END CASE;
END $$;

-- ---------- to the end ----------

-- A step of an open plan of the tree that is in one of these states, and holds no nested plan unless there is nothing else.
CREATE FUNCTION open_step(root uuid, blocked boolean, VARIADIC states text[]) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.id = s.plan_id
    WHERE s.root_id = root AND p.completed_at IS NULL AND s.status::text = ANY (states) AND (s.pause_reason IS NOT NULL) = blocked
      AND (s.workflow IS NULL OR s.status <> 'in_progress')
    ORDER BY s.workflow IS NOT NULL, s.step_order LIMIT 1
$$;

-- Do what the last answer asks for; how the plan cannot be brought on, or NULL.
CREATE FUNCTION obey(root uuid, answer jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    step uuid;
BEGIN
    CASE answer ->> 'status'
        WHEN 'step_ready' THEN
            PERFORM try(root, format('stepwise.submit_step_result(%L, %L)', answer ->> 'stepId', '{"n": 2}'));
        WHEN 'awaiting_review' THEN
            PERFORM try(root, format(CASE answer ->> 'kind' WHEN 'prompt' THEN 'stepwise.resume(%L, ''1'')' ELSE 'stepwise.submit_user_decision(%L, ''approve'')' END,
                                     answer ->> 'checkpointId'));
        WHEN 'paused' THEN
            step := coalesce(open_step(root, true, 'pending', 'failed'), open_step(root, false, 'in_progress'));
            PERFORM try(root, format('stepwise.skip_step(%L)', step));
        WHEN 'no_pending_steps' THEN
            step := open_step(root, false, 'in_progress');
            PERFORM try(root, format('stepwise.submit_step_result(%L, %L)', step, '{"n": 2}'));
        ELSE
            RETURN 'unknown answer ' || coalesce(answer::text, '');
    END CASE;
    RETURN CASE WHEN answer ->> 'status' IN ('paused', 'no_pending_steps') AND step IS NULL THEN 'waits for nobody' END;
END $$;

CREATE FUNCTION bring_to_end(root uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
    stuck text;
BEGIN
    FOR i IN 1 .. 300 LOOP
        answer := try(root, format('stepwise.get_next_step(%L)', root));
        IF answer ->> 'status' IN ('plan_complete', 'plan_failed', 'plan_cancelled') THEN
            RETURN NULL;
        END IF;
        stuck := obey(root, answer);
        IF stuck IS NOT NULL THEN
            RETURN stuck;
        END IF;
    END LOOP;
    RETURN 'comes to no end';
END $$;

-- ---------- the walk ----------

CREATE PROCEDURE define_workflows() LANGUAGE plpgsql AS $$
BEGIN
    FOR level IN 0 .. 2 LOOP
        FOR i IN 1 .. 3 LOOP
            -- a random definition may be refused
            WHILE try(NULL, format('stepwise.define_workflow(%L)', random_definition(format('walk%s_%s', level, i), level))) IS NULL LOOP
            END LOOP;
        END LOOP;
    END LOOP;
END $$;

CREATE FUNCTION random_plan() RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    definition jsonb := random_definition('walk', 3);
    answer jsonb;
BEGIN
    WHILE answer IS NULL LOOP
        IF random() < 0.5 THEN
            answer := try(NULL, format('stepwise.start_workflow(%L)', 'walk2_' || upto(3)));
        ELSE
            answer := try(NULL, format('stepwise.create_plan(%L, %L, %L, %L, %L, %L, %L)', 'walk', 'to walk', definition -> 'steps', definition -> 'branchingConditions',
                                       '{"x": 1}', definition -> 'outputs', definition ->> 'onFailure'));
            definition := random_definition('walk', 3);
        END IF;
    END LOOP;
    RETURN answer ->> 'planId';
END $$;

CREATE PROCEDURE walk(plans int) LANGUAGE plpgsql AS $$
DECLARE
    root uuid;
BEGIN
    FOR n IN 1 .. plans LOOP
        IF n % 20 = 1 THEN
            CALL define_workflows();
        END IF;
        root := random_plan();
        FOR i IN 1 .. 10 + upto(40) LOOP
            PERFORM try(root, random_call(root));
            -- what has ended refuses everything; a little of that is enough
            EXIT WHEN random() < 0.3 AND (SELECT p.completed_at IS NOT NULL FROM stepwise.plan AS p WHERE p.id = root);
        END LOOP;
        INSERT INTO trouble SELECT 'end', root, stuck FROM bring_to_end(root) AS stuck WHERE stuck IS NOT NULL;
        COMMIT;
    END LOOP;
END $$;

CREATE FUNCTION fine(arguments jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('n', arguments -> 'x') $$;
CREATE FUNCTION broken(arguments jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT to_jsonb(1 / 0) $$;
SELECT stepwise.register_tool('fine', 'walk.fine(jsonb)') IS NOT NULL, stepwise.register_tool('broken', 'walk.broken(jsonb)') IS NOT NULL \g /dev/null
\pset format unaligned
\pset tuples_only on
\set ECHO all

SELECT setseed(:seed) \g /dev/null
CALL walk(:plans);

-- what calls came to, of which there must have been enough of either kind
SELECT count(*) FILTER (WHERE answer NOT LIKE 'SW%') > 10 * :plans, count(*) FILTER (WHERE answer LIKE 'SW%') > 5 * :plans FROM made;
-- nothing
SELECT what, detail, root FROM trouble;
SELECT p.name, i.problem, p.root_id FROM stepwise.check_integrity() AS i JOIN stepwise.plan AS p ON p.id = i.plan_id WHERE p.root_id IN (SELECT root FROM made);
SELECT p.name, stepwise.verify_audit(p.id) -> 'firstInvalid', p.root_id FROM stepwise.plan AS p
WHERE CASE WHEN p.root_id IN (SELECT root FROM made) THEN NOT (stepwise.verify_audit(p.id) ->> 'valid')::boolean END;

SELECT stepwise.drop_tool('fine') IS NOT NULL, stepwise.drop_tool('broken') IS NOT NULL \g /dev/null
SET client_min_messages = error;
DROP SCHEMA walk CASCADE;
