-- Executions of skills: their states, which execution a call refers to, their link to plans, and their audit entries.

\pset format unaligned
\pset tuples_only on
\set VERBOSITY sqlstate
SET client_min_messages = warning;

-- Log, and show the answer without ids and times.
CREATE FUNCTION pg_temp.log(skill text, status text, session text = NULL, plan uuid = NULL, metadata jsonb = '{}', error text = NULL)
RETURNS text LANGUAGE sql AS $$
    SELECT format('%s %s session=%s linked=%s plan=%s ended=%s error=%s %s', a ->> 'skillName', a ->> 'status', a ->> 'sessionId',
                  a ->> 'planId' IS NOT NULL, a ->> 'planStatus', a ->> 'completedAt' IS NOT NULL, a ->> 'errorMessage', a -> 'metadata')
    FROM stepwise.log_skill_execution($1, $2, $3, $4, $5, $6) AS a
$$;

CREATE FUNCTION pg_temp.rows(session text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('%s %s linked=%s ended=%s', skill_name, status, plan_id IS NOT NULL, completed_at IS NOT NULL)
    FROM stepwise.skill_execution WHERE tenant = 'default' AND session_id = $1 ORDER BY id
$$;

-- ---------- a session, then a plan ----------

SELECT pg_temp.log('research', 'started', 'skill-1', metadata => '{"outputMediaType": "text/html", "a": 1}');
SELECT pg_temp.log('research', 'executing', 'skill-1', metadata => '{"outputFormattingInstructions": "a table", "a": 2}');
SELECT key FROM jsonb_object_keys(stepwise.log_skill_execution('research', 'executing', 'skill-1')) AS key ORDER BY key;
-- create_plan links what has started, not what executes
SELECT pg_temp.log('report', 'started', 'skill-1', metadata => '{"outputMediaType": "text/plain", "outputFormattingInstructions": "short"}');
SELECT stepwise.create_plan('skilled', 'made by a skill', '[{"name": "a"}]', session_id => 'skill-1', output_formatting_notes => 'notes') ->> 'planId' AS plan \gset
SELECT pg_temp.rows('skill-1');
SELECT pg_temp.log('report', 'executing', 'skill-1');
SELECT pg_temp.log('report', 'executing', plan => :'plan', metadata => '{"more": true}');
-- the answer at completion contains values of the metadata
SELECT answer ->> 'outputMediaType', answer ->> 'outputFormattingInstructions', answer ->> 'planFormattingNotes'
FROM (SELECT stepwise.advance((stepwise.get_next_step(:'plan') ->> 'stepId')::uuid, '1') -> 'next') AS x (answer);
SELECT pg_temp.log('report', 'completed', 'skill-1');
SELECT pg_temp.log('research', 'failed', 'skill-1', error => 'no net');
SELECT pg_temp.rows('skill-1');

-- ---------- which execution a call refers to ----------

-- the newest one that has not ended; an execution that was never started is recorded too
SELECT pg_temp.log('x', 'started', 'skill-2');
SELECT pg_temp.log('x', 'started', 'skill-2');
SELECT pg_temp.log('x', 'completed', 'skill-2');
SELECT pg_temp.rows('skill-2');
SELECT pg_temp.log('x', 'failed', 'skill-2', error => 'second');
SELECT pg_temp.log('x', 'completed', 'skill-2');
SELECT pg_temp.log('y', 'executing', 'skill-2');
SELECT pg_temp.rows('skill-2');
-- never one of another skill, session or plan
SELECT stepwise.create_plan('one', 'one', '[{"name": "a"}]') ->> 'planId' AS one \gset
SELECT stepwise.create_plan('two', 'two', '[{"name": "a"}]') ->> 'planId' AS two \gset
SELECT pg_temp.log('z', 'started', 'skill-3', :'one');
SELECT pg_temp.log('z', 'completed', 'skill-3', :'two');
SELECT pg_temp.rows('skill-3');
SELECT pg_temp.log('z', 'completed', 'skill-4');
SELECT pg_temp.log('z', 'completed', 'skill-4', :'one');
SELECT pg_temp.rows('skill-3');
-- without a session and a plan
SELECT pg_temp.log('loose', 'started');
SELECT pg_temp.log('loose', 'completed');
SELECT count(*) FROM stepwise.skill_execution WHERE skill_name = 'loose';

-- ---------- what is refused ----------

SELECT pg_temp.log('x', 'complete', 's');
SELECT pg_temp.log('x', NULL, 's');
SELECT pg_temp.log('x', '', 's');
SELECT pg_temp.log(NULL, 'started', 's');
SELECT pg_temp.log(' ', 'started', 's');
SELECT pg_temp.log(repeat('x', 201), 'started', 's');
SELECT pg_temp.log('x', 'started', repeat('s', 5000));
SELECT pg_temp.log('x', 'started', '');
SELECT pg_temp.log('x', 'started', 's', '00000000-0000-0000-0000-000000000000');
SELECT pg_temp.log('x', 'started', 's', metadata => '[]');
SELECT pg_temp.log('x', 'started', 's', metadata => '"text/html"');
SELECT pg_temp.log('x', 'started', 's', metadata => '{"outputMediaType": 1}');
SELECT pg_temp.log('x', 'started', 's', metadata => jsonb_build_object('x', repeat('x', 2000000)));
SELECT pg_temp.log('x', 'started', 's', error => repeat('x', 2000000));
SELECT pg_temp.log('x', 'started', 's', metadata => NULL);

-- ---------- audit and tenants ----------

SELECT a.event, a.session_id, a.detail ->> 'skillName', a.detail ->> 'from', a.detail ->> 'to', a.detail ->> 'error'
FROM stepwise.audit AS a WHERE a.plan_id = :'plan' AND a.event LIKE 'skill%' ORDER BY a.id;
SELECT a.event, a.session_id, a.detail ->> 'skillName', a.detail ->> 'from', a.detail ->> 'to'
FROM stepwise.audit AS a WHERE a.tenant = 'default' AND a.plan_id IS NULL AND a.session_id LIKE 'skill-%' ORDER BY a.id;
BEGIN;
SELECT stepwise.enter_tenant('skill_b');
SELECT pg_temp.log('z', 'started', 'skill-3');
SELECT count(*) FROM stepwise.skill_execution WHERE tenant = 'skill_b';
SELECT pg_temp.log('z', 'completed', 'skill-3', :'one');
ROLLBACK;

SELECT count(*) FROM stepwise.plan AS p WHERE p.tenant = 'default' AND NOT (stepwise.verify_audit(p.id) ->> 'valid')::boolean;
SELECT * FROM stepwise.check_integrity();
