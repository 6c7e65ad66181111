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

SELECT pg_temp.unsound();
