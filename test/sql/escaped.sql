-- A byte of content may take six in an answer: control characters are escaped. Answers fit nevertheless. And a search through long
-- words sends no notices.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

CREATE ROLE regress_stepwise_escaped;
SELECT stepwise.grant_agent('regress_stepwise_escaped') IS NOT NULL, stepwise.add_member('regress_stepwise_escaped', 'escaped') IS NOT NULL;
SET ROLE regress_stepwise_escaped;

-- ---------- a step that was sent back, in every max_bytes ----------

SELECT stepwise.create_plan(repeat('"', 200), 'zebra', jsonb_build_array(jsonb_build_object(
    'name', repeat('n', 63), 'binding', repeat('b', 63), 'tool', repeat('t', 200), 'instructions', repeat(E'\x01', 3000),
    'arguments', jsonb_build_object('a', repeat(E'\x01', 3000)), 'maxAttempts', 5, 'stallAfter', '1 hour'))) ->> 'planId' AS plan \gset
SELECT stepwise.get_next_step(:'plan') ->> 'stepId' AS step \gset
SELECT stepwise.request_user_review(:'step', 'good?', '[]', to_jsonb(repeat(E'\x01', 3000))) ->> 'checkpointId' AS checkpoint \gset
SELECT stepwise.submit_user_decision(:'checkpoint', 'modify', repeat(E'\x01', 3000)) ->> 'stepStatus';
SELECT stepwise.get_next_step(:'plan', repeat(E'\x01', 400), '1 hour') ->> 'attempt';
SELECT max_bytes, octet_length(stepwise.get_step_context(:'step', max_bytes)::text) AS step, octet_length(stepwise.get_plan_context(:'plan', max_bytes => max_bytes)::text) AS plan
FROM generate_series(2000, 40000, 190) AS max_bytes
WHERE octet_length(stepwise.get_step_context(:'step', max_bytes)::text) > max_bytes
   OR octet_length(stepwise.get_plan_context(:'plan', max_bytes => max_bytes)::text) > max_bytes;
-- what is cut says so, and is whole where there is room
SELECT a -> 'previousResult', a -> 'arguments' FROM stepwise.get_step_context(:'step', 2000) AS a;
SELECT length(a ->> 'previousResult'), length(a #>> '{arguments,a}') FROM stepwise.get_step_context(:'step', 200000) AS a;

-- ---------- a query is shown, but not at any length ----------

SELECT count(stepwise.create_plan(repeat('ä', 195) || n, 'zebra ' || repeat(E'\x01', 2000), '[{}]', session_id => repeat(E'\x01', 200))) FROM generate_series(1, 30) AS n;
SELECT octet_length(a::text) <= 40000, length(a ->> 'query') < 300, a -> 'count' FROM stepwise.find_plans('zebra ' || repeat(E'\x01', 1990)) AS a;
SELECT stepwise.find_plans('giraffe') -> 'query';

-- ---------- words that are too long to be searched for ----------

SELECT stepwise.create_plan('long', 'quagga', '[{}]', inputs => jsonb_build_object('x', repeat('x', 3000))) ->> 'planId' AS plan \gset
SELECT stepwise.store_output(:'plan', 'okapi ' || repeat('y', 3000)) ->> 'size';
SET client_min_messages = notice;
SELECT stepwise.find_plans('quagga') -> 'count', stepwise.find_plans('okapi') -> 'count', stepwise.search_artifacts('okapi') -> 'count';
\set VERBOSITY terse
SELECT stepwise.find_plans('the');
SHOW client_min_messages;

RESET ROLE;
SELECT stepwise.remove_member('regress_stepwise_escaped', 'escaped') IS NOT NULL;
DROP OWNED BY regress_stepwise_escaped;
DROP ROLE regress_stepwise_escaped;
