-- What the random walk (walk.sql) has found, each as a small plan of its own: why, handoff, nextCall and get_next_step agree.

\set ECHO none
\i test/agent.sql
\set ECHO all

-- The message, the next call and the alternatives of why, and what get_next_step then says.
CREATE FUNCTION pg_temp.told(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', w ->> 'message', w -> 'nextCall' ->> 'function', (SELECT string_agg(a ->> 'function', ' ') FROM jsonb_array_elements(w -> 'alternatives') AS a))
    FROM stepwise.why(pg_temp.plan(plan)) AS w
$$;
CREATE FUNCTION pg_temp.asked(plan text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', n ->> 'status', n ->> 'message') FROM stepwise.get_next_step(pg_temp.plan(plan)) AS n
$$;

-- get_next_step is no alternative where it would only note that a second step is blocked too
SELECT pg_temp.make('second', '[{"name": "a", "tool": "walked"}, {"name": "b", "condition": "${steps.a.outputs.n} > 1"}]', on_failure => 'stop');
SELECT pg_temp.next('second');
SELECT stepwise.record_tool_result(pg_temp.plan('second'), 'walked', '"no luck"', is_error => true) ->> 'stepStatus';
SELECT pg_temp.told('second');
SELECT pg_temp.asked('second');
SELECT pg_temp.told('second');

-- of several claims, the same one is named before and after a search of the nested plans
SELECT stepwise.define_workflow('{"name": "walked low", "steps": [{"name": "l"}, {"name": "m", "condition": "${steps.l.succeeded}"}]}') ->> 'version';
SELECT pg_temp.make('claims', '[{"name": "a"}, {"name": "h", "workflow": "walked low"}, {"name": "z"}]');
SELECT pg_temp.next('claims', 'bert'), pg_temp.next('claims', 'anna');
SELECT pg_temp.told('claims');
SELECT pg_temp.asked('claims');
SELECT pg_temp.told('claims');

-- a nested plan that alone is marked stalled takes no change: the claim in it comes first
SELECT stepwise.define_workflow('{"name": "walked gate", "steps": [{"name": "a"}, {"name": "b", "tool": "walked", "review": {"when": "before"}}]}') ->> 'version';
SELECT pg_temp.make('stalled', '[{"name": "h", "workflow": "walked gate"}]');
SELECT pg_temp.next('stalled'), pg_temp.next('stalled') ~ '^awaiting_review';
SELECT stepwise.submit_user_decision(pg_temp.waiting('walked gate', 'b'), 'modify', 'more') -> 'nextCall' ->> 'function';
SELECT stepwise.get_plan_status(pg_temp.plan('walked gate'), '0') ->> 'status';
SELECT pg_temp.told('stalled');
SELECT stepwise.release_step(pg_temp.step('walked gate', 'a'), 1) ->> 'planStatus';
SELECT pg_temp.told('stalled'), pg_temp.next('stalled'), pg_temp.submit('walked gate', 'a');
SELECT pg_temp.told('stalled');

-- a step whose arguments do not fit its tool, and that takes no report because of its gate, is not handed out either
SELECT stepwise.register_tool('walked narrow', input_schema => '{"required": ["z"]}') IS NOT NULL;
SELECT pg_temp.make('narrow', '[{"name": "a", "tool": "walked narrow", "review": {"when": "before"}}, {"name": "b", "tool": "walked narrow"}]');
SELECT pg_temp.next('narrow');
SELECT pg_temp.told('narrow');
SELECT stepwise.skip_step(pg_temp.step('narrow', 'a')) ->> 'stepStatus', pg_temp.next('narrow');
SELECT pg_temp.told('narrow');
SELECT stepwise.drop_tool('walked narrow') IS NOT NULL;

-- who has a part in a step is not told to change its review, where the plan wants a separate reviewer
CREATE ROLE regress_walked_person;
CREATE ROLE regress_walked_few;
SELECT stepwise.grant_agent('regress_walked_person') IS NOT NULL, stepwise.add_member('regress_walked_person', 'default') IS NOT NULL, stepwise.add_member('regress_walked_few', 'default') IS NOT NULL;
SET ROLE regress_walked_person;
SELECT stepwise.create_plan('part', 'g', '[{"name": "a", "tool": "walked", "review": {"when": "before", "summary": "Do ${inputs.o.k}?"}}]', inputs => '{"o": {}}', separate_reviewer => true) ->> 'status';
SELECT pg_temp.next('part') ~ 'review.summary';
SELECT pg_temp.told('part');
RESET ROLE;
SELECT pg_temp.told('part');

-- a role that lacks some functions is told another call that ends the wait, and none that comes after one it may not make
GRANT USAGE ON SCHEMA stepwise TO regress_walked_few;
GRANT SELECT ON stepwise.plan TO regress_walked_few;
GRANT EXECUTE ON FUNCTION stepwise.current_tenant(), stepwise.why(uuid), stepwise.run(uuid, int), stepwise.skip_step(uuid, text) TO regress_walked_few;
SELECT pg_temp.make('few', '[{"name": "a", "tool": "walked"}]', on_failure => 'pause');
SELECT stepwise.record_tool_result(pg_temp.plan('few'), 'walked', '"no luck"', is_error => true) ->> 'stepStatus';
SELECT pg_temp.told('few');
SET ROLE regress_walked_few;
SELECT pg_temp.told('few');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION stepwise.skip_step(uuid, text) FROM regress_walked_few;
SET ROLE regress_walked_few;
SELECT pg_temp.told('few');
RESET ROLE;

SELECT pg_temp.unsound();
DROP OWNED BY regress_walked_few, regress_walked_person;
DROP ROLE regress_walked_few, regress_walked_person;
