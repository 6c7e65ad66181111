-- Finding plans and checkpoints: lists page by page, filters, cursors, cut values, and the search for plans by words.

\set ECHO none
\i test/agent.sql
-- All pages of a list, each as the values of one key.
CREATE FUNCTION pg_temp.pages(list text, key text, shown text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    page jsonb;
    last uuid;
BEGIN
    LOOP
        EXECUTE 'SELECT ' || replace(list, 'AFTER', quote_nullable(last)) INTO page;
        RETURN NEXT (SELECT coalesce(string_agg(p ->> shown, ' ' ORDER BY n), '-') FROM jsonb_array_elements(page -> key) WITH ORDINALITY AS e (p, n));
        last := page ->> 'next';
        EXIT WHEN last IS NULL;
    END LOOP;
END $$;
CREATE FUNCTION pg_temp.plans(arguments text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT pg_temp.pages('stepwise.list_plans(after => AFTER, ' || arguments || ')', 'plans', 'name')
$$;
CREATE FUNCTION pg_temp.found(query text, max int = 20) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'count', string_agg(p ->> 'name', ' ' ORDER BY n))
    FROM stepwise.find_plans(query, max) AS a LEFT JOIN jsonb_array_elements(a -> 'plans') WITH ORDINALITY AS e (p, n) ON true GROUP BY a
$$;
CREATE FUNCTION pg_temp.hint(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text;
BEGIN
    EXECUTE 'SELECT ' || expression;
    RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS said = PG_EXCEPTION_HINT;
    RETURN said;
END $$;
CREATE ROLE regress_finder;
CREATE ROLE regress_looker;
SELECT stepwise.grant_agent('regress_finder') IS NOT NULL, stepwise.add_member('regress_finder', 'find') IS NOT NULL,
       stepwise.grant_reader('regress_looker') IS NOT NULL, stepwise.add_member('regress_looker', 'find') IS NOT NULL \g /dev/null
\set ECHO all
SET ROLE regress_finder;

-- ---------- plans ----------

SELECT stepwise.list_plans();
SELECT stepwise.define_workflow('{"name": "inner", "description": "Look inside", "steps": [{"name": "ask", "prompt": "Really?"}]}') ->> 'version';
SELECT count(pg_temp.make('p' || n, '[{"name": "a"}, {"name": "b"}]')) FROM generate_series(1, 7) AS n;
SELECT stepwise.start_workflow('inner', session_id => 'here') ->> 'name';
SELECT stepwise.create_plan('outer', 'holds another', '[{"name": "h", "workflow": "inner"}]', inputs => '{"region": "eu"}', session_id => 'there') ->> 'status';
SELECT stepwise.get_next_step(pg_temp.plan('outer')) ->> 'status';
SELECT stepwise.cancel_plan(pg_temp.plan('p3')) ->> 'planStatus';
SELECT stepwise.get_next_step(pg_temp.plan('p4'), session_id => 'here') ->> 'status';
-- newest first, finished ones too, no nested ones
SELECT pg_temp.plans('max => 4');
SELECT pg_temp.plans('max => 9');
SELECT pg_temp.plans('max => 100000');
SELECT pg_temp.plans('max => NULL');
-- filters
SELECT pg_temp.plans($$status => 'cancelled'$$);
SELECT pg_temp.plans($$status => 'executing'$$);
SELECT pg_temp.plans($$session_id => 'here'$$);
SELECT pg_temp.plans($$workflow => 'inner'$$);
SELECT pg_temp.plans($$status => 'executing', session_id => 'here'$$);
SELECT pg_temp.plans($$session_id => 'nowhere'$$);
-- keys
SELECT pg_temp.plain(p) FROM jsonb_array_elements(stepwise.list_plans(session_id => 'there') -> 'plans') AS p;
SELECT pg_temp.plain(p) FROM jsonb_array_elements(stepwise.list_plans('cancelled') -> 'plans') AS p;
SELECT p -> 'inputs' FROM jsonb_array_elements(stepwise.list_active_plans(session_id => 'there') -> 'plans') AS p;
-- a cursor holds while others insert, finish and purge
SELECT stepwise.list_plans(max => 3) ->> 'next' AS next \gset
SELECT pg_temp.make('later', '[{"name": "a"}]');
SELECT stepwise.cancel_plan(:'next') ->> 'planStatus';
SELECT string_agg(p ->> 'name', ' ') FROM jsonb_array_elements(stepwise.list_plans(after => :'next') -> 'plans') AS p;
RESET ROLE;
CALL stepwise.purge(clock_timestamp());
SET ROLE regress_finder;
SELECT count(*) FROM stepwise.plan WHERE id = :'next';
SELECT string_agg(p ->> 'name', ' ') FROM jsonb_array_elements(stepwise.list_plans(after => :'next') -> 'plans') AS p;
SELECT string_agg(p ->> 'name', ' ') FROM jsonb_array_elements(stepwise.list_active_plans(after => :'next') -> 'plans') AS p;
-- nonsense
SELECT call, pg_temp.try('stepwise.' || call), pg_temp.hint('stepwise.' || call) FROM unnest(ARRAY[
    $$list_plans('done')$$,
    $$list_plans('')$$,
    $$list_plans(max => 0)$$,
    $$list_plans(after => '00000000-0000-0000-0000-000000000000')$$,
    $$list_active_plans('failled')$$,
    $$list_active_plans(after => '6e0b1f2a-6b1c-4d0e-9c43-0a8b5cf0a111')$$,
    $$list_checkpoints(after => '6e0b1f2a-6b1c-4d0e-9c43-0a8b5cf0a111')$$,
    $$list_checkpoints(max => -1)$$]) AS call;

-- ---------- long values ----------

SELECT count(stepwise.create_plan('long', repeat('far and wide ', 20000), jsonb_build_array(jsonb_build_object('name', 'a', 'prompt', repeat('Really? ', 200))),
    inputs => jsonb_build_object('text', repeat('x', 90000 + 10000 * (n % 3)), 'n', n, 'region', 'north'), session_id => repeat('s', 500)))
FROM generate_series(1, 60) AS n;
SELECT count(stepwise.get_next_step(id)) FROM stepwise.plan WHERE name = 'long';
-- a page is short enough, and all pages together have each plan once
SELECT octet_length(a::text) < 40000, jsonb_array_length(a -> 'plans') BETWEEN 10 AND 49, a ->> 'next' IS NOT NULL FROM stepwise.list_plans() AS a;
SELECT octet_length(a::text) < 40000 FROM stepwise.list_active_plans() AS a;
SELECT count(*), count(DISTINCT x) FROM (SELECT regexp_split_to_table(p, ' ') FROM pg_temp.pages('stepwise.list_plans(after => AFTER)', 'plans', 'planId') AS p) AS y (x);
SELECT count(*) FROM stepwise.plan WHERE parent_step_id IS NULL;
SELECT jsonb_array_length(stepwise.list_plans(max => 100) -> 'plans') > 49;
-- what is cut says its size, and the call that reads it
SELECT p ->> 'goal', (p -> 'inputs' ->> 'bytes')::int > 90000, p -> 'inputs' -> 'summary',
       p -> 'inputs' -> 'call' ->> 'function', p -> 'pauseReason' -> 'call' ->> 'function'
FROM jsonb_array_elements(stepwise.list_plans(max => 3) -> 'plans') AS p;
-- what fits is not
SELECT stepwise.create_plan('fits', repeat('g', 200), '[{"name": "a"}]', inputs => jsonb_build_object('x', repeat('x', 191))) ->> 'status';
SELECT length(p ->> 'goal'), length(p -> 'inputs' ->> 'x'), p -> 'inputs' ? 'cut'
FROM jsonb_array_elements(stepwise.list_plans(max => 1) -> 'plans') AS p;
SELECT count(stepwise.cancel_plan(id)) FROM stepwise.plan WHERE name = 'long';
RESET ROLE;
CALL stepwise.purge(clock_timestamp());
SET ROLE regress_finder;

-- ---------- checkpoints ----------

SELECT stepwise.get_next_step(pg_temp.plan('p4')) ->> 'name';
SELECT stepwise.request_user_review(pg_temp.step('p4', 'b'), 'Look at ' || repeat('this ', 1000),
    (SELECT jsonb_agg('Question ' || n) FROM generate_series(1, 100) AS n)) ->> 'stepStatus';
SELECT pg_temp.pages('stepwise.list_checkpoints(AFTER, 1)', 'checkpoints', 'path');
SELECT pg_temp.plain(c) FROM jsonb_array_elements(stepwise.list_checkpoints() -> 'checkpoints') AS c;
SELECT stepwise.resume((stepwise.list_checkpoints() #>> '{checkpoints,1,checkpointId}')::uuid, '"yes"') ->> 'status';
SELECT stepwise.cancel_plan(pg_temp.plan('p4')) ->> 'planStatus';
SELECT stepwise.list_checkpoints();

-- ---------- words ----------

SELECT stepwise.create_plan('Migrate-billing', 'Move the invoices to a new database', '[{"name": "dump_tables"}, {"name": "load"}]',
                            inputs => '{"customer": "Acme Holdings", "year": 2031}') ->> 'status';
SELECT stepwise.create_plan('archive', 'Keep what the migration of the invoices left behind', '[{"name": "copy"}]') ->> 'status';
SELECT stepwise.create_plan('holiday', 'Find a hotel', '[{"name": "search_hotels"}]') ->> 'status';
-- in the name, the goal, the inputs, the names of steps, in any form of the word
SELECT q, pg_temp.found(q) FROM unnest(ARRAY['migrating', 'INVOICE', 'acme', '2031', 'customers', 'dumped table', 'hotels', 'zebra', '"migrate" -invoice',
    'billing zebra', 'it''s \ ''invoices'' & | ! <->']) AS q;
-- more of the words are better, and so is the name
SELECT pg_temp.found('migrate invoice billing');
SELECT pg_temp.found('migrate invoice billing', 1);
-- active ones come first
SELECT stepwise.cancel_plan(pg_temp.plan('Migrate-billing')) ->> 'planStatus';
SELECT pg_temp.found('migrate invoice billing');
-- the final output, of a nested plan too
SELECT stepwise.store_output(pg_temp.plan('Migrate-billing'), 'Nine hundred ledgers were moved.') ->> 'size';
SELECT stepwise.create_plan('outer2', 'holds another', '[{"name": "h", "workflow": "inner"}]') ->> 'status';
SELECT stepwise.get_next_step(pg_temp.plan('outer2')) ->> 'status';
SELECT stepwise.store_output(pg_temp.plan('inner'), 'A ledger below.') ->> 'size';
SELECT pg_temp.found('ledger'), pg_temp.found('ledger hotel');
SELECT pg_temp.plain(a #- '{plans,0,rank}'), (a #>> '{plans,0,rank}')::float > 0 FROM stepwise.find_plans('hotel') AS a;
-- nonsense
SELECT call, pg_temp.try('stepwise.' || call), pg_temp.hint('stepwise.' || call) FROM unnest(ARRAY[
    $$find_plans(NULL)$$, $$find_plans('  ')$$, $$find_plans('the of')$$, $$find_plans('!?')$$, $$find_plans(repeat('x', 2001))$$, $$find_plans('x', 0)$$]) AS call;
-- long texts: the beginning of a goal counts, and a plan of many large ones does no harm
SELECT count(stepwise.create_plan('heavy', 'first ' || repeat('word ', 100000) || ' last', '[{"name": "a"}]',
    inputs => jsonb_build_object('text', (SELECT string_agg(md5(n::text), ' ') FROM generate_series(1, 10000) AS n)))) FROM generate_series(1, 30) AS n;
SELECT stepwise.find_plans('first') -> 'count', stepwise.find_plans('last') -> 'count', octet_length(stepwise.find_plans('word', 50)::text) < 40000;

-- ---------- others ----------

RESET ROLE;
SET ROLE regress_looker;
BEGIN READ ONLY;
SELECT jsonb_array_length(stepwise.list_plans(max => 3) -> 'plans'), jsonb_array_length(stepwise.list_active_plans(max => 3) -> 'plans'),
       jsonb_array_length(stepwise.list_checkpoints(max => 3) -> 'checkpoints'), pg_temp.found('hotel');
COMMIT;
RESET ROLE;
-- another tenant sees nothing of this
BEGIN;
SELECT stepwise.enter_tenant('find_b');
SELECT stepwise.list_plans(), stepwise.list_active_plans(), stepwise.list_checkpoints(), pg_temp.found('hotel');
COMMIT;

\set ECHO none
SELECT stepwise.remove_member('regress_finder', 'find') IS NOT NULL, stepwise.remove_member('regress_looker', 'find') IS NOT NULL \g /dev/null
DROP OWNED BY regress_finder, regress_looker;
DROP ROLE regress_finder, regress_looker;
