-- Hints: each error of class SW names a call or a value, and whoever follows it gets on. No hint names a call that is refused to who got it.

\set ECHO none
\i test/agent.sql
CREATE ROLE regress_hint_agent;
CREATE ROLE regress_hint_other;
CREATE ROLE regress_hint_many;
CREATE ROLE regress_hint_stranger;
CREATE ROLE regress_hint_reader;
SELECT stepwise.grant_agent('regress_hint_agent', decide => false), stepwise.grant_agent('regress_hint_other'),
       stepwise.grant_agent('regress_hint_many'), stepwise.grant_agent('regress_hint_stranger'), stepwise.grant_reader('regress_hint_reader') \g /dev/null
SELECT stepwise.add_member('regress_hint_agent', 'default'), stepwise.add_member('regress_hint_reader', 'default'), stepwise.add_member('regress_hint_other', 'default'),
       stepwise.add_member('regress_hint_many', 'default'), stepwise.add_member('regress_hint_many', 'hint two') \g /dev/null

CREATE TEMP TABLE situation (
    number int GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL,
    before text NOT NULL,       -- statements that make the situation
    fails text NOT NULL,        -- the expression that fails
    code text NOT NULL,
    take text,                  -- what to take out of the hint: its first call, unless this says something else
    follow text);               -- what to do with it: %s is what was taken; unless this is given, it is called
-- What a hint leaves to its reader.
CREATE FUNCTION pg_temp.filled(call text) RETURNS text LANGUAGE sql AS $$
    SELECT replace(replace(replace(replace(replace(call,
        ', tool, result', $q$, 'fetch', '{}'$q$), ', result)', $q$, '{}')$q$), ', decision)', $q$, 'approve')$q$),
        ', response)', $q$, '"yes"')$q$), ', from_step)', $q$, 'a')$q$)
$$;
-- Make a situation, let the call fail, and follow the hint. All is rolled back.
CREATE FUNCTION pg_temp.followed(s situation) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text := 'no error';
    code text := '';
    hint text := '';
    taken text;
    answer text;
BEGIN
    EXECUTE s.before;
    BEGIN
        EXECUTE 'SELECT (' || s.fails || ')::text' INTO answer;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS said = MESSAGE_TEXT, code = RETURNED_SQLSTATE, hint = PG_EXCEPTION_HINT;
    END;
    taken := substring(hint FROM coalesce(s.take, '(stepwise\.\w+\((?:[^()'']|''[^'']*'')*\))'));
    IF code <> s.code OR taken IS NULL THEN
        RAISE SQLSTATE 'ZZ001' USING MESSAGE = format('WRONG: %s: %s [%s]', code, said, hint);
    END IF;
    taken := pg_temp.filled(taken);
    EXECUTE 'SELECT (' || replace(coalesce(s.follow, '%s'), '%s', taken) || ')::text' INTO answer;
    RAISE SQLSTATE 'ZZ001' USING MESSAGE = code || ' ' || regexp_replace(taken, '[0-9a-f-]{36}', 'ID', 'g');
EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
    RETURN sqlerrm;
WHEN OTHERS THEN
    RETURN format('FAILED: %s: %s, after %s [%s] %s', sqlstate, sqlerrm, code, hint, taken);
END $$;

-- Make a situation, let a role fail in it, and make all calls of the hint as that role; those that are refused. All is rolled back.
CREATE FUNCTION pg_temp.refused(s situation, role text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    hint text := '';
    call text;
    refused text[] := '{}';
BEGIN
    EXECUTE s.before;
    PERFORM set_config('role', role, true);
    BEGIN
        EXECUTE 'SELECT (' || s.fails || ')::text';
    EXCEPTION WHEN OTHERS THEN
        IF sqlstate LIKE 'SW%' THEN
            GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
        END IF;
    END;
    FOR call IN SELECT m[1] FROM regexp_matches(hint, '(stepwise\.\w+\((?:[^()'']|''[^'']*'')*\))', 'g') AS m WHERE hint NOT LIKE 'Ask the owner%' LOOP
        BEGIN
            EXECUTE 'SELECT (' || pg_temp.filled(call) || ')::text';
            -- each call of a hint is made in the situation in which it was named
            RAISE SQLSTATE 'ZZ002';
        EXCEPTION WHEN insufficient_privilege OR SQLSTATE 'SW003' OR SQLSTATE 'SW004' OR SQLSTATE 'SW009' OR SQLSTATE 'SW014' THEN
            refused := refused || format('%s, %s [%s]: %s', s.name, role, hint, sqlerrm);
        WHEN OTHERS THEN
            NULL;
        END;
    END LOOP;
    RAISE SQLSTATE 'ZZ001';
EXCEPTION WHEN SQLSTATE 'ZZ001' THEN
    RETURN refused;
END $$;

-- An answer must be about this step.
CREATE FUNCTION pg_temp.is_about(answer jsonb, step_id uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    ASSERT answer ->> 'stepId' = step_id::text;
    RETURN true;
END $$;
CREATE FUNCTION pg_temp.by_hand(statement text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE statement; END $$;
-- The owner does what a role has asked for.
CREATE FUNCTION pg_temp.as_owner(call text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN EXECUTE 'SELECT ' || call; END $$;

-- ---------- plans and steps ----------

INSERT INTO situation (name, before, fails, code, take, follow) VALUES
('no such plan', '', $$stepwise.get_next_step(stepwise.uuid7())$$, 'SW001', NULL, NULL),
('no plan', '', $$stepwise.why(NULL)$$, 'SW001', NULL, NULL),
('status of no plan', '', $$stepwise.get_plan_status(stepwise.uuid7())$$, 'SW001', NULL, NULL),
('before the plan was there', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.execution_as_of(pg_temp.plan('h'), '2000-01-01')$$, 'SW001', NULL, NULL),
('no such step', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.submit_step_result(stepwise.uuid7(), '{}')$$, 'SW002', '(stepwise\.get_plan_context\()plan_id\)', $$%spg_temp.plan('h'))$$),
('fork from no step', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.fork_plan(pg_temp.plan('h'), 'z')$$, 'SW002', NULL, NULL),
('modify no step', $$SELECT pg_temp.make('h', '[{"name": "fetch"}, {"name": "send"}]')$$, $$stepwise.modify_plan(pg_temp.plan('h'), 'remove_step', '{"step": "snd"}')$$, 'SW002', '"(\w+)"', $$stepwise.modify_plan(pg_temp.plan('h'), 'remove_step', '{"step": "%s"}')$$),
('record for no step', $$SELECT pg_temp.make('h', '[{"name": "a", "tool": "fetch"}]')$$, $$stepwise.record_tool_result(pg_temp.plan('h'), 'fetch', '{}', step_name => 'z')$$, 'SW002', NULL, NULL),
('record for two steps', $$SELECT pg_temp.make('h', '[{"name": "a", "tool": "fetch", "dependsOn": []}, {"name": "b", "tool": "fetch"}]')$$, $$stepwise.record_tool_result(pg_temp.plan('h'), 'fetch', '{}')$$, 'SW002', NULL, NULL),
-- ---------- states ----------
('retry what is in progress', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h')$$, $$stepwise.retry_step(pg_temp.step('h', 'a'))$$, 'SW003', NULL, NULL),
('release what is pending', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.heartbeat(pg_temp.step('h', 'a'))$$, 'SW003', NULL, NULL),
('submit what has failed', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b"}]'), pg_temp.next('h'), pg_temp.fail('h', 'a')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW003', NULL, NULL),
('submit another result', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b"}]'), pg_temp.next('h'), pg_temp.submit('h', 'a')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '1')$$, 'SW003', NULL, NULL),
('submit what was skipped', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b"}]'), stepwise.skip_step(pg_temp.step('h', 'a')), pg_temp.next('h')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '1')$$, 'SW003', NULL, NULL),
('submit what is not due', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}, {"name": "b"}]')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'b'), '{}')$$, 'SW003', NULL, NULL),
('submit a prompt', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW003', NULL, NULL),
('submit a prompt that waits', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]'), pg_temp.next('h')$$, $$stepwise.retry_step(pg_temp.step('h', 'a'))$$, 'SW003', '(stepwise\.list_checkpoints\(\))', NULL),
('submit a nested plan', $$SELECT stepwise.define_workflow('{"name": "hw", "steps": [{"name": "x"}]}'), pg_temp.make('h', '[{"name": "a", "workflow": "hw"}]'), pg_temp.next('h')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW003', '(stepwise\.skip_step\([^()]*\))', NULL),
('review what is pending', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.request_user_review(pg_temp.step('h', 'a'), 'Look')$$, 'SW003', NULL, NULL),
('release what was sent back', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h'), stepwise.request_user_review(pg_temp.step('h', 'a'), 'Look');
    SELECT stepwise.submit_user_decision(pg_temp.waiting('h', 'a'), 'modify', 'More')$$, $$stepwise.release_step(pg_temp.step('h', 'a'), attempt => 1)$$, 'SW003', NULL, NULL),
('work on a plan that has ended', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b"}]'), stepwise.cancel_plan(pg_temp.plan('h'))$$, $$stepwise.submit_step_result(pg_temp.step('h', 'b'), '{}')$$, 'SW003', NULL, NULL),
('remove what has begun', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b"}]'), pg_temp.next('h')$$, $$stepwise.modify_plan(pg_temp.plan('h'), 'remove_step', '{"step": "a"}')$$, 'SW003', NULL, NULL),
('remove what has ended', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b"}]'), pg_temp.next('h'), pg_temp.submit('h', 'a')$$, $$stepwise.modify_plan(pg_temp.plan('h'), 'remove_step', '{"step": "a"}')$$, 'SW003', NULL, NULL),
('update what has begun', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b"}]'), pg_temp.next('h')$$, $$stepwise.modify_plan(pg_temp.plan('h'), 'update_step', '{"step": "a", "tool": "x"}')$$, 'SW003', NULL, NULL),
('modify a plan that waits', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]'), pg_temp.next('h')$$, $$stepwise.modify_plan(pg_temp.plan('h'), 'add_steps', '{"steps": [{"name": "b"}]}')$$, 'SW004', NULL, NULL),
('modify a plan that has ended', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), stepwise.cancel_plan(pg_temp.plan('h'))$$, $$stepwise.modify_plan(pg_temp.plan('h'), 'add_steps', '{"steps": [{"name": "b"}]}')$$, 'SW004', NULL, NULL),
('drop a workflow in use', $$SELECT stepwise.define_workflow('{"name": "hw", "steps": [{"name": "x"}]}'), stepwise.start_workflow('hw')$$, $$stepwise.drop_workflow('hw')$$, 'SW004', NULL, NULL),
('drop a workflow that is called', $$SELECT stepwise.define_workflow('{"name": "hw", "steps": [{"name": "x"}]}'), stepwise.define_workflow('{"name": "hw''s caller", "steps": [{"workflow": "hw"}]}')$$, $$stepwise.drop_workflow('hw')$$, 'SW004', '(stepwise\.drop_workflow\(.*\))\.', NULL),
('a step set by hand', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b"}]'), pg_temp.next('h'), pg_temp.submit('h', 'a')$$, $$pg_temp.by_hand('UPDATE stepwise.step SET result = ''1'' WHERE id = pg_temp.step(''h'', ''a'')')$$, 'SW003', NULL, NULL),
('the audit log by hand', '', $$pg_temp.by_hand('DELETE FROM stepwise.audit')$$, 'SW015', 'CALL (stepwise\.purge)\(before\)', $$(SELECT p.prokind FROM pg_proc AS p WHERE p.oid = '%s'::regproc)$$),
-- ---------- gates: whoever may not decide is told something else ----------
('retry a prompt that is to come', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]')$$, $$stepwise.retry_step(pg_temp.step('h', 'a'))$$, 'SW003', NULL, NULL),
('retry what waits for a review', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h'), stepwise.request_user_review(pg_temp.step('h', 'a'), 'Look')$$, $$stepwise.retry_step(pg_temp.step('h', 'a'))$$, 'SW003', NULL, NULL),
('submit what has failed before its gate', $$SELECT pg_temp.make('h', '[{"name": "a", "review": {"when": "after"}}, {"name": "b"}]'), pg_temp.next('h'), pg_temp.fail('h', 'a')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW003', '(stepwise\.skip_step\([^()]*\))', NULL),
('submit another result before a gate', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b", "review": {"when": "before"}}]'), pg_temp.next('h'), pg_temp.submit('h', 'a')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '1')$$, 'SW003', NULL, NULL),
('submit another result while a person is asked', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b", "prompt": "So?"}]'), pg_temp.next('h'), pg_temp.submit('h', 'a'); SELECT pg_temp.next('h')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '1')$$, 'SW003', '(stepwise\.why\([^()]*\))', NULL),
('submit a nested plan with a gate', $$SELECT stepwise.define_workflow('{"name": "hw", "steps": [{"name": "x"}, {"name": "y", "prompt": "So?"}]}'), pg_temp.make('h', '[{"name": "a", "workflow": "hw"}]'), pg_temp.next('h')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW003', '(stepwise\.skip_step\([^()]*\))', NULL),
('submit a nested plan that has ended', $$SELECT stepwise.define_workflow('{"name": "hw", "steps": [{"name": "x"}]}'), pg_temp.make('h', '[{"name": "a", "workflow": "hw"}]'), pg_temp.next('h'), stepwise.cancel_plan(pg_temp.plan('h'))$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW003', NULL, NULL),
('retry what was in progress at the end', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b"}]', on_failure => 'fail'), pg_temp.next('h'), pg_temp.next('h'), pg_temp.fail('h', 'a')$$, $$stepwise.retry_step(pg_temp.step('h', 'b'))$$, 'SW003', NULL, NULL),
('remove what is needed before a gate', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b", "arguments": {"x": "${steps.a.outputs}"}}, {"name": "c", "prompt": "So?"}]')$$, $$stepwise.modify_plan(pg_temp.plan('h'), 'remove_step', '{"step": "a"}')$$, 'SW006', NULL, NULL),
('drop a workflow with a gate in use', $$SELECT stepwise.define_workflow('{"name": "hw", "steps": [{"name": "x", "prompt": "So?"}]}'), pg_temp.make('h', '[{"name": "a", "workflow": "hw"}]'), pg_temp.next('h')$$, $$stepwise.drop_workflow('hw')$$, 'SW004', NULL, NULL),
-- ---------- what a hint names can be done ----------
('review a prompt that was started by hand', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]'); UPDATE stepwise.step SET status = 'in_progress' WHERE id = pg_temp.step('h', 'a')$$, $$stepwise.request_user_review(pg_temp.step('h', 'a'), 'Look')$$, 'SW003', '^It was started by hand[^.]*(stepwise\.skip_step\([^()]*\))\.$', NULL),
('submit a prompt that was started by hand', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]'); UPDATE stepwise.step SET status = 'in_progress' WHERE id = pg_temp.step('h', 'a')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW003', NULL, NULL),
('submit a prompt that was answered', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}, {"name": "b"}]'), pg_temp.next('h'); SELECT stepwise.resume(pg_temp.waiting('h', 'a'), '1')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW003', '^A completed step is final[^.]*\. [^.]*(stepwise\.modify_plan\(.*\))\.$', NULL),
('submit a prompt at which a person is asked', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]'), pg_temp.next('h')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW003', '(stepwise\.resume\([^()]*\))', NULL),
('submit a prompt of a plan that has ended', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]'), stepwise.cancel_plan(pg_temp.plan('h'))$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW003', NULL, NULL),
('retry what waits for a review while others wait', $$SELECT pg_temp.make('h', '[{"name": "z", "dependsOn": []}, {"name": "a", "dependsOn": []}]'), pg_temp.next('h'), pg_temp.next('h');
    SELECT stepwise.request_user_review(pg_temp.step('h', 'z'), 'Look'), stepwise.request_user_review(pg_temp.step('h', 'a'), 'Look')$$, $$stepwise.retry_step(pg_temp.step('h', 'a'))$$, 'SW003', '(stepwise\.submit_user_decision\([^()]*\))', $$pg_temp.is_about(%s, pg_temp.step('h', 'a'))$$),
('retry what holds a plan in which a person is asked', $$SELECT stepwise.define_workflow('{"name": "hw", "steps": [{"name": "x", "prompt": "So?"}]}'), pg_temp.make('h', '[{"name": "a", "workflow": "hw"}]'), pg_temp.next('h')$$, $$stepwise.retry_step(pg_temp.step('h', 'a'))$$, 'SW003', '(stepwise\.resume\([^()]*\))', NULL),
('retry what holds a plan with a review', $$SELECT stepwise.define_workflow('{"name": "hw", "steps": [{"name": "x", "review": {"when": "before"}}]}'), pg_temp.make('h', '[{"name": "a", "workflow": "hw"}]'), pg_temp.next('h')$$, $$stepwise.retry_step(pg_temp.step('h', 'a'))$$, 'SW003', '(stepwise\.submit_user_decision\([^()]*\))', NULL),
('submit what was taken back before the end', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b"}]'), pg_temp.next('h'), stepwise.release_step(pg_temp.step('h', 'a')), stepwise.cancel_plan(pg_temp.plan('h'))$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}', attempt => 7)$$, 'SW012', 'Drop the result\. (stepwise\.why\([^()]*\)) says how the plan has ended\.$', NULL),
-- ---------- values ----------
('confidence in percent', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}', confidence => 85)$$, 'SW005', '(0\.\d+)', $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}', confidence => %s)$$),
('no result', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), NULL)$$, 'SW005', '(\{\})', $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '%s')$$),
('unknown outcome', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}', outcome => 'fine')$$, 'SW005', 'Use (\w+)', $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}', outcome => '%s')$$),
('unknown decision', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h'), stepwise.request_user_review(pg_temp.step('h', 'a'), 'Look')$$, $$stepwise.submit_user_decision(pg_temp.waiting('h', 'a'), 'perhaps')$$, 'SW005', 'Use (\w+)', $$stepwise.submit_user_decision(pg_temp.waiting('h', 'a'), '%s')$$),
('modify without feedback', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h'), stepwise.request_user_review(pg_temp.step('h', 'a'), 'Look')$$, $$stepwise.submit_user_decision(pg_temp.waiting('h', 'a'), 'modify')$$, 'SW005', '(what is to be done differently)', $$stepwise.submit_user_decision(pg_temp.waiting('h', 'a'), 'modify', '%s')$$),
('a review of nothing', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h')$$, $$stepwise.request_user_review(pg_temp.step('h', 'a'), '')$$, 'SW005', '(what the person is to look at)', $$stepwise.request_user_review(pg_temp.step('h', 'a'), '%s')$$),
('questions that are none', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h')$$, $$stepwise.request_user_review(pg_temp.step('h', 'a'), 'Look', '"So?"')$$, 'SW005', '(\[.*\])', $$stepwise.request_user_review(pg_temp.step('h', 'a'), 'Look', '%s')$$),
('a failure without error', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h')$$, $$stepwise.fail_step(pg_temp.step('h', 'a'), '')$$, 'SW005', '(what went wrong)', $$stepwise.fail_step(pg_temp.step('h', 'a'), '%s')$$),
('an empty code', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h')$$, $$stepwise.fail_step(pg_temp.step('h', 'a'), 'no', code => '')$$, 'SW005', '(E[A-Z]+)', $$stepwise.fail_step(pg_temp.step('h', 'a'), 'no', code => '%s')$$),
('a lease of nothing', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.get_next_step(pg_temp.plan('h'), 'w', '-1 minute')$$, 'SW005', '''(.*)''', $$stepwise.get_next_step(pg_temp.plan('h'), 'w', '%s')$$),
('a lease without end', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.get_next_step(pg_temp.plan('h'), 'w', '1000 years')$$, 'SW005', '''(.*)''', $$stepwise.get_next_step(pg_temp.plan('h'), 'w', '%s')$$),
('an empty worker', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.get_next_step(pg_temp.plan('h'), '')$$, 'SW005', '(Leave it out)', $$stepwise.get_next_step(pg_temp.plan('h'))$$),
('an unknown on_failure', '', $$stepwise.create_plan('h', 'g', '[{"name": "a"}]', on_failure => 'halt')$$, 'SW005', '(\w+)[^\w]*(?:, |$)', $$stepwise.create_plan('h', 'g', '[{"name": "a"}]', on_failure => '%s')$$),
('an unknown action', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.modify_plan(pg_temp.plan('h'), 'addsteps', '{"steps": [{"name": "b"}]}')$$, 'SW005', '"(\w+)"', $$stepwise.modify_plan(pg_temp.plan('h'), '%s', '{"steps": [{"name": "b"}]}')$$),
('an unknown key', '', $$stepwise.create_plan('h', 'g', '[{"name": "a", "instruction": "x"}]')$$, 'SW005', '"(\w+)"', $$stepwise.create_plan('h', 'g', '[{"name": "a", "%s": "x"}]')$$),
('an unknown type', '', $$stepwise.create_plan('h', 'g', '[{"name": "a", "type": "serach"}]')$$, 'SW005', '"(\w+)"', $$stepwise.create_plan('h', 'g', '[{"name": "a", "type": "%s"}]')$$),
('a value of the wrong kind', '', $$stepwise.create_plan('h', 'g', '[{"name": "a", "retryable": "yes"}]')$$, 'SW005', 'Write (\w+)', $$stepwise.create_plan('h', 'g', '[{"name": "a", "retryable": %s}]')$$),
('an interval that is none', '', $$stepwise.create_plan('h', 'g', '[{"name": "a", "stallAfter": "soon"}]')$$, 'SW005', '"(.*)"', $$stepwise.create_plan('h', 'g', '[{"name": "a", "stallAfter": "%s"}]')$$),
('a number of attempts that is none', '', $$stepwise.create_plan('h', 'g', '[{"name": "a", "maxAttempts": 0}]')$$, 'SW005', '(\d+)', $$stepwise.create_plan('h', 'g', '[{"name": "a", "maxAttempts": %s}]')$$),
('a condition without end', '', $$stepwise.create_plan('h', 'g', '[{"name": "a", "condition": "${inputs.size} >="}]', inputs => '{"size": 3}')$$, 'SW005', '(\$\{.*\} >= \d)', $$stepwise.create_plan('h', 'g', '[{"name": "a", "condition": "%s"}]', inputs => '{"size": 3}')$$),
('an unknown status', '', $$stepwise.list_plans('complete')$$, 'SW005', '"(\w+)"', $$stepwise.list_plans('%s')$$),
('a page that is none', '', $$stepwise.list_plans(after => gen_random_uuid())$$, 'SW005', '(leave it out)', $$stepwise.list_plans()$$),
('no rows', '', $$stepwise.list_plans(max => 0)$$, 'SW005', 'for (\d+)', $$stepwise.list_plans(max => %s)$$),
('no bytes', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.get_plan_context(pg_temp.plan('h'), max_bytes => 1)$$, 'SW005', 'for (\d+)', $$stepwise.get_plan_context(pg_temp.plan('h'), max_bytes => %s)$$),
('no steps to run', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.run(pg_temp.plan('h'), 0)$$, 'SW005', '(Leave it out)', $$stepwise.run(pg_temp.plan('h'))$$),
('no such help', '', $$stepwise.help('gate')$$, 'SW005', NULL, NULL),
('no such artifact', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), stepwise.store_artifact(pg_temp.plan('h'), 'report', 'x')$$, $$stepwise.get_artifact(pg_temp.plan('h'), 'rapport')$$, 'SW005', '"(\w+)"', $$stepwise.get_artifact(pg_temp.plan('h'), '%s')$$),
('variables that are none', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.set_variables(pg_temp.plan('h'), '[]')$$, 'SW005', '(\{.*\})', $$stepwise.set_variables(pg_temp.plan('h'), '%s')$$),
('no time', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.execution_as_of(pg_temp.plan('h'), NULL)$$, 'SW005', '(stepwise\.execution_as_of\(''[^'']*'', clock_timestamp\(\)\))', NULL),
('a missing input', $$SELECT stepwise.define_workflow('{"name": "hw", "inputs": {"size": {"type": "integer"}}, "steps": [{"name": "x"}]}')$$, $$stepwise.start_workflow('hw', '{"siez": 2}')$$, 'SW005', '(integer)', $$stepwise.start_workflow('hw', '{"size": 2}')$$),
('an input of the wrong type', $$SELECT stepwise.define_workflow('{"name": "hw", "inputs": {"size": {"type": "integer"}}, "steps": [{"name": "x"}]}')$$, $$stepwise.start_workflow('hw', '{"size": "2"}')$$, 'SW005', '(\d)', $$stepwise.start_workflow('hw', '{"size": %s}')$$),
('the only step', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.modify_plan(pg_temp.plan('h'), 'remove_step', '{"step": "a"}')$$, 'SW005', NULL, NULL),
('a step that is needed', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b", "arguments": {"x": "${steps.a.outputs}"}}]')$$, $$stepwise.modify_plan(pg_temp.plan('h'), 'remove_step', '{"step": "a"}')$$, 'SW006', NULL, NULL),
('an unknown reference', '', $$stepwise.create_plan('h', 'g', '[{"name": "fetch"}, {"name": "b", "arguments": {"x": "${steps.fetsh.outputs}"}}]')$$, 'SW006', '"(\w+)"', $$stepwise.create_plan('h', 'g', '[{"name": "fetch"}, {"name": "b", "arguments": {"x": "${steps.%s.outputs}"}}]')$$),
('a binding without its root', '', $$stepwise.create_plan('h', 'g', '[{"name": "a", "binding": "found"}, {"name": "b", "arguments": {"x": "${found.urls}"}}]')$$, 'SW006', 'Write (\S+)\.', $$stepwise.create_plan('h', 'g', '[{"name": "a", "binding": "found"}, {"name": "b", "arguments": {"x": "%s"}}]')$$),
('a step that runs later', '', $$stepwise.create_plan('h', 'g', '[{"name": "a", "dependsOn": []}, {"name": "b", "arguments": {"x": "${steps.a.outputs}"}}]')$$, 'SW006', 'Add "(\w+)" to dependsOn', $$stepwise.create_plan('h', 'g', '[{"name": "a", "dependsOn": []}, {"name": "b", "dependsOn": ["%s"], "arguments": {"x": "${steps.a.outputs}"}}]')$$),
-- ---------- sizes, circles, names ----------
('a result that is too large', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), to_jsonb(repeat('x', 1100000)))$$, 'SW007', '(where it is)', $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '"%s"')$$),
('a worker with a long name', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.get_next_step(pg_temp.plan('h'), repeat('x', 1000))$$, 'SW007', '''(.*)''', $$stepwise.get_next_step(pg_temp.plan('h'), '%s')$$),
('a long title', $$SELECT pg_temp.make('h', '[{"name": "a"}]')$$, $$stepwise.store_artifact(pg_temp.plan('h'), repeat('x', 1000), 'x')$$, 'SW007', '(short name)', $$stepwise.store_artifact(pg_temp.plan('h'), '%s', 'x')$$),
('a circle', '', $$stepwise.create_plan('h', 'g', '[{"name": "a", "dependsOn": ["b"]}, {"name": "b", "dependsOn": ["a"]}]')$$, 'SW008', '(remove one of these dependencies)', $$stepwise.create_plan('h', 'g', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}]')$$),
('a checkpoint that was used', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]'), pg_temp.next('h')$$, $$stepwise.resume(stepwise.uuid7(), '1')$$, 'SW009', NULL, NULL),
('a prompt that is decided', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]'), pg_temp.next('h')$$, $$stepwise.submit_user_decision(pg_temp.waiting('h', 'a'), 'approve')$$, 'SW009', NULL, NULL),
('a review that is answered', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h'), stepwise.request_user_review(pg_temp.step('h', 'a'), 'Look')$$, $$stepwise.resume(pg_temp.waiting('h', 'a'), '1')$$, 'SW009', NULL, NULL),
('a workflow that is not there', $$SELECT stepwise.define_workflow('{"name": "deploy", "steps": [{"name": "x"}]}')$$, $$stepwise.start_workflow('depoly')$$, 'SW016', '"(\w+)"', $$stepwise.start_workflow('%s')$$),
('no workflow', '', $$stepwise.get_workflow(NULL)$$, 'SW016', NULL, NULL),
('a tool that is not there', '', $$stepwise.drop_tool('nothing')$$, 'SW016', NULL, NULL),
('a state that is not there', '', $$stepwise.state_read('{"name": "hint"}')$$, 'SW016', '"(default)"', $$stepwise.state_read('{"name": "hint", "%s": 1}')$$),
-- ---------- tenants, claims, approvals ----------
('no tenant', $$SET LOCAL ROLE regress_hint_many$$, $$stepwise.list_plans()$$, 'SW010', NULL, NULL),
('member of nothing', $$SET LOCAL ROLE regress_hint_stranger$$, $$stepwise.list_plans()$$, 'SW010', NULL, $$pg_temp.as_owner($q$%s$q$)$$),
('a tenant of others', $$SET LOCAL ROLE regress_hint_stranger$$, $$stepwise.enter_tenant('hint two')$$, 'SW011', NULL, $$pg_temp.as_owner($q$%s$q$)$$),
('no tenant at all', '', $$stepwise.enter_tenant('')$$, 'SW011', '''(\w+)''', $$stepwise.enter_tenant('%s')$$),
('a claim that was taken back', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h'), stepwise.release_step(pg_temp.step('h', 'a'))$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}', attempt => 1)$$, 'SW012', NULL, NULL),
('a claim of another', $$SELECT pg_temp.make('h', '[{"name": "a"}, {"name": "b"}]'), pg_temp.next('h', 'one')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}', worker => 'two')$$, 'SW012', NULL, NULL),
('a claim that is not shown', $$SELECT pg_temp.make('h', '[{"name": "a"}]'), pg_temp.next('h', 'one', '5 minutes')$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW012', '(attempt)', $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}', %s => 1)$$),
('a key that was used', $$SELECT stepwise.create_plan('h', 'g', '[{"name": "a"}]', idempotency_key => 'hint')$$, $$stepwise.create_plan('h', 'g', '[{"name": "b"}]', idempotency_key => 'hint')$$, 'SW013', NULL, NULL),
('an empty key', '', $$stepwise.create_plan('h', 'g', '[{"name": "b"}]', idempotency_key => '')$$, 'SW005', '(Leave it out)', $$stepwise.create_plan('h', 'g', '[{"name": "b"}]')$$),
('an approval of something else', $$SELECT pg_temp.make('h', '[{"name": "a", "instructions": "x", "review": {"when": "after"}}, {"name": "b"}]'), pg_temp.next('h'), pg_temp.submit('h', 'a');
    SET LOCAL session_replication_role = replica; UPDATE stepwise.step SET instructions = 'y' WHERE id = pg_temp.step('h', 'a'); SET LOCAL session_replication_role = origin$$, $$stepwise.submit_user_decision(pg_temp.waiting('h', 'a'), 'approve')$$, 'SW014', NULL, NULL),
('no right to decide', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]'), pg_temp.next('h'); SET LOCAL ROLE regress_hint_agent$$, $$stepwise.skip_step(pg_temp.step('h', 'a'))$$, 'SW014', NULL, NULL),
('the wrong answer by a reviewer with a part', $$SET LOCAL ROLE regress_hint_other; SELECT pg_temp.make('h', '[{"name": "a", "review": {"when": "before"}}]', separate_reviewer => true); SELECT pg_temp.next('h')$$, $$stepwise.resume((SELECT c.checkpoint_id FROM stepwise.checkpoints AS c WHERE c.plan_id = pg_temp.plan('h')), '1')$$, 'SW009', '^Ask a person who may decide; (stepwise\.why\([^()]*\))', NULL),
('a retry by a reviewer with a part', $$SET LOCAL ROLE regress_hint_other; SELECT pg_temp.make('h', '[{"name": "a", "review": {"when": "before"}}]', separate_reviewer => true); SELECT pg_temp.next('h')$$, $$stepwise.retry_step(pg_temp.step('h', 'a'))$$, 'SW003', '^It waits for a person. Ask a person who may decide; (stepwise\.why\([^()]*\))', NULL),
('a retry of a prompt without the right to decide', $$SELECT pg_temp.make('h', '[{"name": "a", "prompt": "So?"}]'), pg_temp.next('h'); SET LOCAL ROLE regress_hint_agent$$, $$stepwise.retry_step(pg_temp.step('h', 'a'))$$, 'SW003', '^It waits for a person. Ask a person who may decide; (stepwise\.why\([^()]*\))', NULL),
('a failed gate without the right to decide', $$SELECT pg_temp.make('h', '[{"name": "a", "review": {"when": "after"}}, {"name": "b"}]'), pg_temp.next('h'), pg_temp.fail('h', 'a'); SET LOCAL ROLE regress_hint_agent$$, $$stepwise.submit_step_result(pg_temp.step('h', 'a'), '{}')$$, 'SW003', '(stepwise\.retry_step\([^()]*\))\. Ask a person', NULL),
('a reader asks for nothing', $$SET LOCAL ROLE regress_hint_reader$$, $$stepwise.get_plan_status(gen_random_uuid())$$, 'SW001', NULL, NULL),
('a reviewer with a part', $$SET LOCAL ROLE regress_hint_other; SELECT pg_temp.make('h', '[{"name": "a", "review": {"when": "before"}}]', separate_reviewer => true); SELECT pg_temp.next('h')$$, $$stepwise.submit_user_decision((SELECT c.checkpoint_id FROM stepwise.checkpoints AS c WHERE c.plan_id = pg_temp.plan('h')), 'approve')$$, 'SW014', NULL, NULL);
GRANT SELECT ON situation TO PUBLIC;
\set ECHO all

SELECT format('%s: %s', s.name, pg_temp.followed(s)) FROM situation AS s ORDER BY s.number;
-- whoever may not decide, only reads, or has a part in what is reviewed, gets no hint with a call that is refused: no row
SELECT unnest(pg_temp.refused(s, role)) FROM situation AS s, unnest('{regress_hint_agent,regress_hint_reader,regress_hint_other}'::text[]) AS role;
-- all is rolled back
SELECT count(*) FROM stepwise.plan AS p, began WHERE p.created_at >= began.at;

-- every code has a situation: no row
\set codes `sed -n "s/^#define ERRCODE.*SW_ERRCODE('\(.\)', '\(.\)')/SW0\1\2/p" src/base/errcodes.h`
SELECT regexp_split_to_table(:'codes', '\s+') EXCEPT SELECT s.code FROM situation AS s;
SELECT count(*) >= 16 FROM regexp_split_to_table(:'codes', '\s+');
SELECT count(*) >= 60 FROM situation;
