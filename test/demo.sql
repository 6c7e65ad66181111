-- The script of "make demo". psql runs it in an empty database and stops at the first error.
-- The script checks what it claims: pg_temp.claim raises an error if a claim is false.

\set QUIET on
\pset footer off
\pset null ''
SET client_min_messages = warning;

CREATE EXTENSION pg_stepwise;

CREATE FUNCTION pg_temp.claim(claim text, holds boolean) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    IF holds IS NOT TRUE THEN
        RAISE EXCEPTION 'the demo claims what does not hold: %', claim;
    END IF;
    RETURN 'ok: ' || claim;
END $$;

-- Run a statement that must be refused, and return its error.
CREATE FUNCTION pg_temp.refused(statement text) RETURNS TABLE (code text, message text, hint text)
LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        EXECUTE statement;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
        RETURN NEXT;
        RETURN;
    END;
    RAISE EXCEPTION 'the demo claims what does not hold: this was not refused: %', statement;
END $$;

-- The audit log in a readable form: the details of an entry.
CREATE VIEW pg_temp.story AS
    SELECT a.plan_id, a.id, a.event, s.name AS step,
           coalesce((a.detail ->> 'from') || ' -> ' || (a.detail ->> 'to'), a.detail ->> 'action', a.detail #>> '{reason,type}', '') AS what,
           a.actor, a.session_id AS session, left(encode(a.hash, 'hex'), 12) AS hash
    FROM stepwise.audit AS a LEFT JOIN stepwise.step AS s ON s.tenant = a.tenant AND s.id = a.step_id;

-- The steps of a plan in a readable form.
CREATE VIEW pg_temp.steps AS
    SELECT plan_id, step_order AS no, name, status, outcome, attempt, coalesce(message, result_summary) AS note FROM stepwise.step;

\echo
\echo '================================================================'
\echo ' A plan, its states, and a log that can prove itself'
\echo '================================================================'
\echo
\echo 'An agent writes its plan into the database:'
SELECT stepwise.create_plan('tea', 'A good cup of tea',
    '[{"name": "boil",  "instructions": "Boil the water", "binding": "water"},
      {"name": "steep", "instructions": "Steep for ${inputs.minutes} minutes at ${bindings.water.celsius} degrees"},
      {"name": "pour",  "instructions": "Pour"}]',
    inputs => '{"minutes": 3}') ->> 'planId' AS plan \gset
SELECT name, goal, status FROM stepwise.plan WHERE id = :'plan';

\echo 'It asks for the next step. The claim makes the plan executing:'
SELECT stepwise.get_next_step(:'plan', worker => 'agent-1') AS next \gset
SELECT n ->> 'status' AS answer, n ->> 'name' AS step, n ->> 'instructions' AS instructions, n ->> 'attempt' AS attempt
FROM CAST(:'next' AS jsonb) AS n;

\echo 'It submits the result and gets the next step, in one round trip. References are filled in:'
SELECT stepwise.advance((CAST(:'next' AS jsonb) ->> 'stepId')::uuid, '{"celsius": 96}', worker => 'agent-1') -> 'next' AS next \gset
SELECT n ->> 'status' AS answer, n ->> 'name' AS step, n ->> 'instructions' AS instructions
FROM CAST(:'next' AS jsonb) AS n;

\echo 'The step fails, is put back, and succeeds at the second attempt:'
SELECT CAST(:'next' AS jsonb) ->> 'stepId' AS step \gset
SELECT stepwise.fail_step(:'step', 'the pot broke', worker => 'agent-1') ->> 'stepStatus' AS "fail_step",
       stepwise.retry_step(:'step') ->> 'stepStatus' AS "retry_step",
       stepwise.get_next_step(:'plan', worker => 'agent-1') ->> 'attempt' AS "attempt of get_next_step";
SELECT stepwise.advance(:'step', '{"cup": "strong"}', worker => 'agent-1') -> 'next' ->> 'stepId' AS step \gset
SELECT stepwise.submit_step_result(:'step', '{"cup": "poured"}') ->> 'planStatus' AS "planStatus after the last step";
SELECT no, name, status, outcome, attempt FROM pg_temp.steps WHERE plan_id = :'plan' ORDER BY no;

\echo 'Nothing bypasses the state machine, not even plain SQL:'
\x on
SELECT code, message FROM pg_temp.refused('UPDATE stepwise.step SET status = ''pending'' WHERE name = ''boil''');
SELECT code, message FROM pg_temp.refused('UPDATE stepwise.plan SET status = ''executing''');
SELECT code, message FROM pg_temp.refused('DELETE FROM stepwise.audit');
\x off

\echo 'Every change is in the audit log, in the same transaction, each entry hashed with the one before it:'
SELECT id, event, step, what, actor, hash FROM pg_temp.story WHERE plan_id = :'plan' ORDER BY id;
SELECT v ->> 'valid' AS "verify_audit: valid", v ->> 'entries' AS entries, left(v ->> 'head', 12) AS head
FROM stepwise.verify_audit(:'plan') AS v;

\echo 'A superuser can bypass the guards, but the chain shows it (this is rolled back):'
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE stepwise.audit_log SET actor = 'somebody else' WHERE plan_id = :'plan' AND id = 1;
SELECT v ->> 'valid' AS "verify_audit: valid", v #>> '{firstInvalid,id}' AS "first bad entry", v #>> '{firstInvalid,reason}' AS reason
FROM stepwise.verify_audit(:'plan') AS v;
SELECT pg_temp.claim('a forged entry is found', stepwise.verify_audit(:'plan') ->> 'valid' = 'false') AS ok \gset
\echo :ok
ROLLBACK;
SELECT pg_temp.claim('the plan is completed and its chain is valid',
    (SELECT status = 'completed' AND outcome = 'success' FROM stepwise.plan WHERE id = :'plan')
    AND stepwise.verify_audit(:'plan') ->> 'valid' = 'true') AS ok \gset
\echo :ok

\echo
\echo '================================================================'
\echo ' Research: a doubt, a person, a lost session, an answer'
\echo '================================================================'
\echo
\echo 'The agent starts a skill, and a plan in its session. If the extracted data are uncertain, a branch adds a step:'
SELECT stepwise.log_skill_execution('research', 'started', session_id => 'session-1',
    metadata => '{"outputMediaType": "text/markdown"}') IS NULL AS nothing \gset
SELECT stepwise.create_plan('research', 'How long do grid batteries last?',
    '[{"name": "search",  "type": "search",     "instructions": "Find sources on ${inputs.topic}", "binding": "found"},
      {"name": "extract", "type": "extract",    "instructions": "Take the lifetimes out of ${bindings.found.sources}"},
      {"name": "draft",   "type": "checkpoint", "instructions": "Draft the answer and let the user review it"},
      {"name": "answer",  "type": "synthesize", "instructions": "Write the final answer"}]',
    branching_conditions => '[{"afterStepOrder": 2, "conditionExpression": "confidence < 0.5", "ifTrueAction": "add_steps",
      "actionParams": {"steps": [{"name": "cross_check", "type": "critique", "instructions": "Find a second source for each number"}]}}]',
    inputs => '{"topic": "grid battery lifetime"}',
    outputs => '{"answer": "${steps.answer.outputs.text}"}',
    session_id => 'session-1') ->> 'planId' AS plan \gset

SELECT stepwise.get_next_step(:'plan', worker => 'agent-1') AS next \gset
SELECT n ->> 'name' AS step, n ->> 'instructions' AS instructions FROM CAST(:'next' AS jsonb) AS n;
\echo 'It stores its findings as artifacts, and continues:'
SELECT CAST(:'next' AS jsonb) ->> 'stepId' AS step \gset
SELECT stepwise.store_artifact(:'plan', 'field report', 'Lithium iron phosphate cells kept 80 % of their capacity after 6000 cycles.',
    step_id => :'step', source_url => 'https://example.org/report') IS NULL AS nothing \gset
SELECT stepwise.store_artifact(:'plan', 'data sheet', 'The maker warrants the battery for ten years.',
    step_id => :'step', source_url => 'https://example.org/sheet') IS NULL AS nothing \gset
SELECT stepwise.advance(:'step', '{"sources": ["field report", "data sheet"]}', result_summary => 'two sources',
    worker => 'agent-1') -> 'next' AS next \gset
SELECT n ->> 'name' AS step, n ->> 'instructions' AS instructions FROM CAST(:'next' AS jsonb) AS n;

\echo 'The extracted data are uncertain: confidence 0.4. The branch adds a step, which is handed out next.'
SELECT stepwise.advance((CAST(:'next' AS jsonb) ->> 'stepId')::uuid, '{"years": [10, 16]}', result_summary => 'ten to sixteen years',
    confidence => 0.4, worker => 'agent-1', lease => '20 milliseconds') AS advanced \gset
SELECT CAST(:'advanced' AS jsonb) -> 'next' ->> 'stepId' AS step \gset
SELECT b ->> 'condition' AS "branch: condition", b ->> 'action' AS action FROM jsonb_extract_path(:'advanced', 'submitted', 'branch') AS b;
SELECT no, name, status, note FROM pg_temp.steps WHERE plan_id = :'plan' ORDER BY no;
SELECT pg_temp.claim('the branch added a step and the agent holds it',
    (SELECT status = 'in_progress' AND attempt = 1 FROM stepwise.step WHERE id = :'step' AND name = 'cross_check')) AS ok \gset
\echo :ok

\echo
\echo 'Now agent-1 is lost in the middle of the step. Its lease expires.'
SELECT pg_sleep(0.05) IS NULL AS nothing \gset
\echo 'Another agent in another session asks for the state of the plan:'
SELECT stepwise.get_plan_context(:'plan', session_id => 'session-2') AS context \gset
SELECT jsonb_pretty(jsonb_build_object('goal', c -> 'goal', 'progress', c -> 'progress', 'nextCall', c -> 'nextCall')) AS "get_plan_context, in part"
FROM CAST(:'context' AS jsonb) AS c;
SELECT s ->> 'name' AS step, s ->> 'status' AS status, s ->> 'resultSummary' AS summary, s ->> 'result' AS result
FROM jsonb_array_elements(CAST(:'context' AS jsonb) -> 'steps') AS s;
SELECT a ->> 'name' AS artifact, a ->> 'sourceUrl' AS source FROM jsonb_array_elements(CAST(:'context' AS jsonb) -> 'artifacts') AS a;
\echo 'and gets the same step again, as attempt 2:'
SELECT stepwise.get_next_step(:'plan', worker => 'agent-2', session_id => 'session-2') AS next \gset
SELECT n ->> 'name' AS step, n ->> 'instructions' AS instructions, n ->> 'attempt' AS attempt FROM CAST(:'next' AS jsonb) AS n;
\echo 'When agent-1 comes back, its late result is refused, and changes nothing:'
\x on
SELECT * FROM pg_temp.refused(format('SELECT stepwise.submit_step_result(%L, ''{"years": [1]}'', attempt => 1)', :'step'));
\x off
SELECT stepwise.advance(:'step', '{"confirmed": true}', result_summary => 'both numbers found twice', confidence => 0.9,
    attempt => 2, worker => 'agent-2') -> 'next' AS next \gset

\echo 'A person reviews the draft. The plan waits in the database for as long as it takes:'
SELECT CAST(:'next' AS jsonb) ->> 'stepId' AS step \gset
SELECT stepwise.request_user_review(:'step', 'Draft: grid batteries last 10 to 16 years.', '["Is the range clear?"]', worker => 'agent-2') ->> 'checkpointId' AS checkpoint \gset
SELECT kind, path, prompt FROM stepwise.checkpoints WHERE checkpoint_id = :'checkpoint';
SELECT name, status, progress, percent, current_step, waiting_on FROM stepwise.plan_progress WHERE plan_id = :'plan';
SELECT n ->> 'status' AS "get_next_step answers" FROM stepwise.get_next_step(:'plan', worker => 'agent-2') AS n;

\echo 'The person asks for a change. The feedback is appended to the instructions, and the agent gets the step again:'
SELECT stepwise.submit_user_decision(:'checkpoint', 'modify', feedback => 'Say what the two numbers stand for.', decided_by => 'maria') ->> 'stepStatus' AS "stepStatus after modify";
SELECT stepwise.get_next_step(:'plan', worker => 'agent-2') ->> 'instructions' AS instructions;
\echo 'A checkpoint can be used only once:'
\x on
SELECT code, message FROM pg_temp.refused(format('SELECT stepwise.submit_user_decision(%L, ''approve'')', :'checkpoint'));
\x off
SELECT stepwise.request_user_review(:'step', 'Draft: 10 years by warranty, 16 by measured cycles.', worker => 'agent-2') ->> 'checkpointId' AS checkpoint \gset
SELECT stepwise.submit_user_decision(:'checkpoint', 'approve', decided_by => 'maria') ->> 'stepStatus' AS "stepStatus after approve";

\echo 'The last step, the final output, and the answer that the agent gets when it asks once more:'
SELECT stepwise.get_next_step(:'plan', worker => 'agent-2') ->> 'stepId' AS step \gset
SELECT stepwise.store_output(:'plan', '# Grid batteries' || E'\n\n' || 'Ten years by warranty, sixteen by measured cycles.') IS NULL AS nothing \gset
SELECT stepwise.advance(:'step', '{"text": "Ten years by warranty, sixteen by measured cycles."}', worker => 'agent-2') -> 'next' AS next \gset
SELECT jsonb_pretty(CAST(:'next' AS jsonb) - ARRAY['planId', 'planStatus', 'stepFormattingNotes', 'planFormattingNotes', 'outputFormattingInstructions']) AS "get_next_step answers";

\echo 'The findings of all plans of the tenant can be searched:'
SELECT r ->> 'kind' AS kind, r ->> 'name' AS name, r #>> '{fragments,0}' AS found
FROM jsonb_array_elements(stepwise.search_artifacts('cycle') -> 'results') AS r;

\echo 'The log shows who did what, and in which session:'
SELECT id, event, step, what, actor, session FROM pg_temp.story WHERE plan_id = :'plan' ORDER BY id;
SELECT pg_temp.claim('the plan is completed with success, resumed once, and its chain is valid',
    (SELECT status = 'completed' AND outcome = 'success' AND outputs ? 'answer' FROM stepwise.plan WHERE id = :'plan')
    AND (SELECT count(*) = 1 FROM stepwise.audit WHERE plan_id = :'plan' AND event = 'session_resumed')
    AND (SELECT count(*) = 4 FROM stepwise.audit WHERE plan_id = :'plan' AND event = 'user_reviewed')
    AND stepwise.verify_audit(:'plan') ->> 'valid' = 'true') AS ok \gset
\echo :ok

\ir demo_run.sql

\echo
SELECT pg_temp.claim('nothing in the tables contradicts itself', NOT EXISTS (SELECT FROM stepwise.check_integrity())) AS ok \gset
\echo :ok
\echo
\echo 'To try more: "make psql" opens psql on a cluster like this one, and README.md has examples.'
