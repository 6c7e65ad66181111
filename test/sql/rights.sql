-- Who may decide. A separate reviewer is told by roles, whatever names the callers give. A role without the right to decide, and a reader.

\set ECHO none
\i test/agent.sql
CREATE FUNCTION pg_temp.review(plan text, step text) RETURNS text LANGUAGE sql AS $$
    SELECT a ->> 'stepStatus' FROM stepwise.request_user_review(pg_temp.step(plan, step), 'Look', attempt => (SELECT s.attempt FROM stepwise.step AS s WHERE s.id = pg_temp.step(plan, step))) AS a
$$;
CREATE FUNCTION pg_temp.decide(plan text, step text, decision text, decided_by text = NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'decision', a ->> 'stepStatus')
    FROM stepwise.submit_user_decision(pg_temp.waiting(plan, step), decision, 'so', decided_by => $4) AS a
$$;
-- Evaluate an expression as a role; the value, or its error with detail and hint.
CREATE FUNCTION pg_temp.as(role text, expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
    code text;
    said text;
    detail text;
    hint text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    EXECUTE 'SELECT (' || expression || ')::text' INTO answer;
    RESET ROLE;
    RETURN answer;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, said = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RESET ROLE;
    RETURN concat_ws(' ', code || ':', said, '/', detail, '/', regexp_replace(hint, '[0-9a-f]{8}-[0-9a-f-]{27}', 'ID', 'g'));
END $$;
CREATE ROLE regress_maker;
CREATE ROLE regress_agent;
CREATE ROLE regress_other;
CREATE ROLE "regress_agent/x";
CREATE ROLE regress_person;
CREATE ROLE regress_watcher;
SELECT stepwise.grant_agent(r::regrole) IS NOT NULL, stepwise.add_member(r::regrole, 'default') IS NOT NULL
FROM unnest(ARRAY['regress_maker', 'regress_agent', 'regress_other', '"regress_agent/x"', 'regress_person']) AS r \g /dev/null
SELECT stepwise.add_member('regress_watcher', 'default') IS NOT NULL \g /dev/null
\set ECHO all

-- ---------- a separate reviewer ----------

SELECT pg_temp.as('regress_maker', $$pg_temp.make('two', '[{"name": "a"}, {"name": "b"}, {"name": "c"}]', separate_reviewer => true)$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.next('two', 'anna')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.review('two', 'a')$$);
-- the role that asked, by whatever name, and by whatever way
SELECT pg_temp.as('regress_agent', $$pg_temp.decide('two', 'a', 'approve', 'paul')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.decide('two', 'a', 'reject')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.decide('two', 'a', 'modify')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.decide('two', 'a', 'skip')$$);
SELECT pg_temp.as('regress_agent', $$stepwise.skip_step(pg_temp.step('two', 'a'))$$);
SELECT pg_temp.as('regress_agent', $$stepwise.fail_step(pg_temp.step('two', 'a'), 'no')$$);
-- the role that made the plan
SELECT pg_temp.as('regress_maker', $$pg_temp.decide('two', 'a', 'approve', 'paul')$$);
SELECT pg_temp.as('regress_maker', $$stepwise.skip_step(pg_temp.step('two', 'a'))$$);
-- another role, even if its name begins with that of the agent; sending the step back is no part in it
SELECT pg_temp.as('regress_person', $$pg_temp.decide('two', 'a', 'modify', 'anna')$$);
-- every role that ever had the step
SELECT pg_temp.as('regress_other', $$pg_temp.next('two', 'otto')$$);
SELECT pg_temp.as('regress_other', $$pg_temp.review('two', 'a')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.decide('two', 'a', 'approve')$$);
SELECT pg_temp.as('regress_other', $$pg_temp.decide('two', 'a', 'approve')$$);
SELECT pg_temp.as('regress_agent/x', $$pg_temp.decide('two', 'a', 'approve', 'anna')$$);
-- who had another step may decide
SELECT pg_temp.as('regress_other', $$pg_temp.next('two')$$);
SELECT pg_temp.as('regress_other', $$pg_temp.review('two', 'b')$$);
SELECT pg_temp.as('regress_agent', $$stepwise.skip_step(pg_temp.step('two', 'b')) ->> 'stepStatus'$$);
-- cancelling is left to all
SELECT pg_temp.as('regress_agent/x', $$pg_temp.next('two')$$);
SELECT pg_temp.as('regress_agent/x', $$pg_temp.review('two', 'c')$$);
SELECT pg_temp.as('regress_agent/x', $$pg_temp.decide('two', 'c', 'approve')$$);
SELECT pg_temp.as('regress_agent/x', $$stepwise.cancel_plan(pg_temp.plan('two')) ->> 'planStatus'$$);
SELECT pg_temp.show('two');

-- the review of a branch: who submitted the step has asked for it
SELECT pg_temp.as('regress_maker', $$pg_temp.make('branch', '[{"name": "a"}, {"name": "b"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "true", "ifTrueAction": "request_review", "actionParams": {"summary": "Look"}}]', separate_reviewer => true)$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.next('branch')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.submit('branch', 'a')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.decide('branch', 'a_review', 'approve', '')$$);
SELECT pg_temp.as('regress_other', $$pg_temp.decide('branch', 'a_review', 'approve')$$);

-- after an approval: the reviewer did not ask for it and may decide again; who submitted the step may not
SELECT pg_temp.as('regress_maker', $$pg_temp.make('approved', '[{"name": "a", "review": {"when": "after"}}, {"name": "b"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "true", "ifTrueAction": "request_review", "actionParams": {"summary": "Look"}}]', separate_reviewer => true)$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.next('approved')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.submit('approved', 'a')$$);
SELECT pg_temp.as('regress_person', $$pg_temp.decide('approved', 'a', 'approve')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.decide('approved', 'a_review', 'approve')$$);
SELECT pg_temp.as('regress_person', $$pg_temp.decide('approved', 'a_review', 'approve')$$);

-- the approval of a review that was requested brings the step to the gate after it: that is no submission of the reviewer
SELECT pg_temp.as('regress_maker', $$pg_temp.make('twice', '[{"name": "a", "review": {"when": "after"}}]', separate_reviewer => true)$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.next('twice')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.review('twice', 'a')$$);
SELECT pg_temp.as('regress_person', $$pg_temp.decide('twice', 'a', 'approve')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.decide('twice', 'a', 'approve')$$);
SELECT pg_temp.as('regress_person', $$pg_temp.decide('twice', 'a', 'approve')$$);

-- the gate after a workflow: who worked in it is excluded, who decided or asked in it is not
SELECT stepwise.define_workflow('{"name": "rights worked", "steps": [{"name": "i"}, {"name": "p", "prompt": "Well?"}]}') ->> 'version',
    stepwise.define_workflow('{"name": "rights around", "steps": [{"name": "w", "workflow": "rights worked"}]}') ->> 'version';
SELECT pg_temp.as('regress_maker', $$pg_temp.make('worked', '[{"name": "n", "workflow": "rights around", "review": {"when": "after"}}]', separate_reviewer => true)$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.next('worked')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.submit('rights worked', 'i')$$);
SELECT pg_temp.as('regress_person', $$pg_temp.next('worked')$$);
SELECT pg_temp.as('regress_person', $$stepwise.resume(pg_temp.waiting('rights worked', 'p'), '1') ->> 'status'$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.decide('worked', 'n', 'approve')$$);
SELECT pg_temp.as('regress_person', $$pg_temp.decide('worked', 'n', 'approve')$$);

-- nested: the plan above says it too, its maker is excluded, and ending the step above, or the nested plan alone, is no way around
SELECT stepwise.define_workflow('{"name": "rights inner", "steps": [{"name": "i"}]}') ->> 'version';
SELECT pg_temp.as('regress_maker', $$pg_temp.make('nested', '[{"name": "n", "workflow": "rights inner"}, {"name": "after"}]', separate_reviewer => true)$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.next('nested')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.review('rights inner', 'i')$$);
SELECT pg_temp.as('regress_agent', $$stepwise.skip_step(pg_temp.step('nested', 'n'))$$);
SELECT pg_temp.as('regress_agent', $$stepwise.fail_step(pg_temp.step('nested', 'n'), 'no')$$);
SELECT pg_temp.as('regress_agent', $$stepwise.cancel_plan(pg_temp.plan('rights inner'))$$);
SELECT pg_temp.as('regress_maker', $$pg_temp.decide('rights inner', 'i', 'approve')$$);
SELECT pg_temp.as('regress_person', $$pg_temp.decide('rights inner', 'i', 'approve')$$);
SELECT pg_temp.show('nested');

-- without separateReviewer everybody with the right may decide; a prompt has no reviewer
SELECT pg_temp.as('regress_agent', $$pg_temp.make('one', '[{"name": "a"}]')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.next('one')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.review('one', 'a')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.decide('one', 'a', 'approve')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.make('prompt', '[{"name": "p", "prompt": "Well?"}]', separate_reviewer => true)$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.next('prompt')$$);
SELECT pg_temp.as('regress_agent', $$stepwise.resume(pg_temp.waiting('prompt', 'p'), '1') ->> 'status'$$);

-- ---------- without the right to decide ----------

SELECT stepwise.grant_agent('regress_agent', decide => false) - 'objects';
SELECT pg_temp.as('regress_agent', $$pg_temp.make('may not', '[{"name": "a"}]')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.next('may not')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.review('may not', 'a')$$);
SELECT pg_temp.as('regress_agent', $$stepwise.submit_user_decision(pg_temp.waiting('may not', 'a'), 'approve')$$);
SELECT pg_temp.as('regress_agent', $$stepwise.resume(pg_temp.waiting('may not', 'a'), '1')$$);
-- nor can it end the wait in another way: of a review, of a prompt, and in a nested plan; it can cancel the plan
SELECT pg_temp.as('regress_agent', $$stepwise.skip_step(pg_temp.step('may not', 'a'))$$);
SELECT pg_temp.as('regress_agent', $$stepwise.fail_step(pg_temp.step('may not', 'a'), 'no')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.make('may not 2', '[{"name": "p", "prompt": "Well?"}, {"name": "b"}]')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.next('may not 2')$$);
SELECT pg_temp.as('regress_agent', $$stepwise.skip_step(pg_temp.step('may not 2', 'p'))$$);
SELECT stepwise.define_workflow('{"name": "rights asks", "steps": [{"name": "p", "prompt": "Well?"}]}') ->> 'version';
SELECT pg_temp.as('regress_agent', $$pg_temp.make('may not 3', '[{"name": "n", "workflow": "rights asks"}, {"name": "b"}]')$$);
SELECT pg_temp.as('regress_agent', $$pg_temp.next('may not 3')$$);
SELECT pg_temp.as('regress_agent', $$stepwise.skip_step(pg_temp.step('may not 3', 'n'))$$);
SELECT pg_temp.as('regress_agent', $$stepwise.cancel_plan(pg_temp.plan('rights asks'))$$);
SELECT pg_temp.as('regress_agent', $$stepwise.cancel_plan(pg_temp.plan('may not 3')) ->> 'planStatus'$$);
SELECT stepwise.grant_agent('regress_agent') - 'objects';
SELECT pg_temp.as('regress_agent', $$pg_temp.decide('may not', 'a', 'approve')$$);
SELECT pg_temp.try($$stepwise.grant_agent('regress_agent', NULL)$$);
SELECT pg_temp.try($$stepwise.grant_agent(NULL)$$);
SELECT pg_temp.try($$stepwise.grant_agent(4294967295::oid::regrole)$$);
SELECT pg_temp.try($$stepwise.grant_reader(4294967295::oid::regrole)$$);

-- ---------- a reader ----------

SELECT stepwise.grant_reader('regress_watcher') - 'objects';
SELECT pg_temp.make('watched', '[{"name": "a"}]');
SELECT stepwise.get_next_step(pg_temp.plan('watched'), session_id => 'first') ->> 'status';
SELECT pg_temp.as('regress_watcher', $$stepwise.get_next_step(pg_temp.plan('watched'))$$);
-- it sees the stall and marks nothing; it is no session that continues the plan
SELECT pg_temp.as('regress_watcher', $$stepwise.get_plan_status(pg_temp.plan('watched'), '0') -> 'stalled'$$);
SELECT pg_temp.as('regress_watcher', $$stepwise.get_plan_context(pg_temp.plan('watched'), 'second') -> 'status'$$);
SELECT pg_temp.as('regress_watcher', $$stepwise.why(pg_temp.plan('watched')) ->> 'waitingOn'$$);
-- whatever a reader may call answers, or refuses the argument, and writes and locks nothing, also where the transaction could write
CREATE FUNCTION pg_temp.reading() RETURNS TABLE (name text, came text) LANGUAGE plpgsql AS $$
DECLARE
    arguments jsonb := jsonb_build_object('plan_id', pg_temp.plan('watched'), 'step_id', pg_temp.step('watched', 'a'), 'stall_after', '0',
        'session_id', 'second', 'at', 'infinity', 'definition', '{}'::jsonb, 'query', 'test', 'tenant', 'default', 'on_failure', 'fail',
        'statuses', '{}', 'from_status', 'failed', 'to_status', 'failed', 'request', '{}'::jsonb, 'arguments', '{}'::jsonb,
        'id', pg_temp.plan('watched'), 'first', 1, 'since', 'now');
BEGIN
    FOR name, came IN
        SELECT p.proname, format('SELECT stepwise.%I(%s)::text', p.proname,
            string_agg(format('%I => %L::%s', a.name, coalesce(arguments ->> a.name, 'none'), a.type::regtype), ', ')
                FILTER (WHERE arguments ? a.name OR a.n <= p.pronargs - p.pronargdefaults))
        FROM pg_proc AS p LEFT JOIN LATERAL unnest(p.proargnames, p.proargtypes::oid[]) WITH ORDINALITY AS a (name, type, n) ON a.n <= p.pronargs
        WHERE p.pronamespace = 'stepwise'::regnamespace AND has_function_privilege('regress_watcher', p.oid, 'EXECUTE')
        GROUP BY p.oid, p.proname
    LOOP
        BEGIN
            EXECUTE came;
            came := 'answers';
        EXCEPTION WHEN OTHERS THEN
            came := sqlstate || ' ' || sqlerrm;
        END;
        RETURN NEXT;
    END LOOP;
END $$;
BEGIN;
SET LOCAL ROLE regress_watcher;
SELECT count(*) > 25, string_agg(name || ': ' || came, ', ') FILTER (WHERE came !~ '^(answers|SW005|SW016)') FROM pg_temp.reading();
SELECT pg_current_xact_id_if_assigned();
COMMIT;
BEGIN READ ONLY;
SET LOCAL ROLE regress_watcher;
SELECT count(*) > 25, string_agg(name || ': ' || came, ', ') FILTER (WHERE came !~ '^(answers|SW005|SW016)') FROM pg_temp.reading();
COMMIT;
SELECT p.status, p.session_id FROM stepwise.plan AS p WHERE p.id = pg_temp.plan('watched');
SELECT stepwise.get_plan_status(pg_temp.plan('watched'), '0') -> 'stalled';
SELECT p.status FROM stepwise.plan AS p WHERE p.id = pg_temp.plan('watched');

SELECT pg_temp.unsound();
\set ECHO none
SELECT stepwise.remove_member(r::regrole, 'default') IS NOT NULL
FROM unnest(ARRAY['regress_maker', 'regress_agent', 'regress_other', '"regress_agent/x"', 'regress_person', 'regress_watcher']) AS r \g /dev/null
DROP OWNED BY regress_maker, regress_agent, regress_other, "regress_agent/x", regress_person, regress_watcher;
DROP ROLE regress_maker, regress_agent, regress_other, "regress_agent/x", regress_person, regress_watcher;
