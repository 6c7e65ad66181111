-- Artifacts, the final output, and the search in both.

\pset format unaligned
\pset tuples_only on
\set VERBOSITY sqlstate
SET client_min_messages = warning;

CREATE FUNCTION pg_temp.id(plan uuid, name text) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM stepwise.step AS s WHERE s.plan_id = $1 AND s.name = $2
$$;

-- The names that a search finds, best first, with the words that are highlighted.
CREATE FUNCTION pg_temp.found(query text, plan uuid = NULL, max int = 20) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('%s %s: %s', r ->> 'kind', r ->> 'name',
                  (SELECT string_agg(m[1], ' ') FROM jsonb_array_elements_text(r -> 'fragments') AS f, regexp_matches(f, '<b>(.*?)</b>', 'g') AS m))
    FROM jsonb_array_elements(stepwise.search_artifacts($1, $2, $3) -> 'results') AS r
$$;

SELECT stepwise.define_workflow('{"name": "artifact_below", "steps": [{"name": "leaf"}]}') ->> 'version';
SELECT stepwise.create_plan('birds', 'about birds', '[{"name": "a"}, {"name": "b", "workflow": "artifact_below"}]') ->> 'planId' AS birds \gset
SELECT stepwise.create_plan('fish', 'about fish', '[{"name": "a"}]') ->> 'planId' AS fish \gset

-- ---------- storing ----------

SELECT stepwise.store_artifact(:'birds', 'otters', 'Otters were juggling at midnight. ' || repeat('Nothing to see here. ', 60) || 'Then the otter juggles again.',
                               pg_temp.id(:'birds', 'a'), 'text/plain', '{"count": 2}', 'https://example.org/otters')
       - 'planId' - 'stepId' - 'artifactId';
SELECT stepwise.store_artifact(:'birds', 'juggling report', 'Who juggles what.') - 'planId' - 'artifactId';
SELECT stepwise.store_artifact(:'fish', 'sharks', 'Sharks juggle by day.') ->> 'name';
SELECT stepwise.store_output(:'fish', '# Fish' || chr(10) || chr(10) || 'Some fishes are jugglers.') - 'planId';
SELECT stepwise.store_output(:'fish', '# All about fish' || chr(10) || chr(10) || 'Some fishes juggle.', 'text/plain') - 'planId';
SELECT final_output, final_media_type FROM stepwise.plan_detail WHERE plan_id = :'fish';
SELECT name, media_type, data, source_url, step_id IS NOT NULL FROM stepwise.artifact WHERE plan_id = :'birds' ORDER BY id;
-- a name may be used again
SELECT stepwise.store_artifact(:'fish', 'sharks', 'A second one, without teeth.') ->> 'size';

-- the checks of an artifact
SELECT stepwise.store_artifact(:'birds', NULL, 'x');
SELECT stepwise.store_artifact(:'birds', '  ', 'x');
SELECT stepwise.store_artifact(:'birds', repeat('n', 201), 'x');
SELECT stepwise.store_artifact(:'birds', 'x', NULL);
SELECT stepwise.store_artifact(:'birds', 'x', '');
SELECT stepwise.store_artifact(:'birds', 'x', repeat('x', 2000000));
SELECT stepwise.store_artifact(:'birds', 'x', 'x', data => jsonb_build_array(repeat('x', 2000000)));
SELECT stepwise.store_artifact(:'birds', 'x', 'x', data => (repeat('[', 100) || repeat(']', 100))::jsonb);
SELECT stepwise.store_artifact(:'birds', 'x', 'x', media_type => '');
SELECT stepwise.store_artifact(:'birds', 'x', 'x', source_url => repeat('x', 2000000));
SELECT stepwise.store_artifact(NULL, 'x', 'x');
SELECT stepwise.store_artifact('00000000-0000-0000-0000-000000000000', 'x', 'x');
SELECT stepwise.store_artifact(:'birds', 'x', 'x', '00000000-0000-0000-0000-000000000000');
SELECT stepwise.store_artifact(:'birds', 'x', 'x', pg_temp.id(:'fish', 'a'));
SELECT stepwise.store_output(:'birds', NULL);
SELECT stepwise.store_output(:'birds', 'x', NULL);
SELECT stepwise.store_output(:'birds', repeat('x', 2000000));
SELECT stepwise.store_output(NULL, 'x');
SELECT count(*) FROM stepwise.artifact WHERE plan_id = :'birds';

-- ---------- searching ----------

-- stemming: juggle, juggles, juggling, jugglers; a match in the name counts more
SELECT pg_temp.found('juggle');
SELECT pg_temp.found('juggle', :'birds');
SELECT pg_temp.found('juggle', max => 1);
SELECT r ->> 'name' FROM jsonb_array_elements(stepwise.search_artifacts('"otter juggles"') -> 'results') AS r;
SELECT pg_temp.found('juggles -otter');
SELECT pg_temp.found('teeth or midnight', :'fish');
SELECT pg_temp.found('unicorns');
SELECT pg_temp.found('otter:*&|!(''" <-> ');
SELECT stepwise.search_artifacts('shark day') #> '{results,0,fragments}';
SELECT jsonb_array_length(stepwise.search_artifacts('otter') #> '{results,0,fragments}');
SELECT key FROM jsonb_object_keys(stepwise.search_artifacts('otter') #> '{results,0}') AS key ORDER BY key;
SELECT r ->> 'planName', r ->> 'mediaType', r ->> 'sourceUrl', (r ->> 'rank')::float > 0, r ->> 'size'
FROM jsonb_array_elements(stepwise.search_artifacts('midnight') -> 'results') AS r;
-- of a plan, and of the plans nested in it
SELECT stepwise.get_next_step(:'birds') ->> 'name';
SELECT stepwise.advance(pg_temp.id(:'birds', 'a'), '1') #>> '{next,planId}' AS below \gset
SELECT stepwise.store_artifact(:'below', 'deep', 'Penguins dive.') ->> 'planStatus';
SELECT pg_temp.found('penguin', :'birds'), pg_temp.found('penguin', :'below');
SELECT pg_temp.found('penguin', :'fish');

SELECT stepwise.search_artifacts(NULL);
SELECT stepwise.search_artifacts('   ');
SELECT stepwise.search_artifacts('the of and');
SELECT stepwise.search_artifacts('!?');
SELECT stepwise.search_artifacts(repeat('x', 2001));
SELECT stepwise.search_artifacts('otter', max => 0);
SELECT jsonb_array_length(stepwise.search_artifacts('otter', max => 1000000) -> 'results');
SELECT stepwise.search_artifacts('otter', '00000000-0000-0000-0000-000000000000');
-- a text of nothing but different words
SELECT stepwise.store_artifact(:'fish', 'words', (SELECT string_agg(to_hex(n), ' ') FROM generate_series(1000000, 1140000) AS n)) ->> 'size';
SELECT r ->> 'name' FROM jsonb_array_elements(stepwise.search_artifacts('f4243') -> 'results') AS r;
-- words of three characters with four bytes each: the part that fits into a tsvector is found
CREATE FUNCTION pg_temp.rare(n int) RETURNS text LANGUAGE sql AS $$ SELECT chr(131072 + n % 40000) || chr(131072 + (n / 7) % 40000) $$;
SELECT string_agg(pg_temp.rare(n) || '-' || pg_temp.rare(n + 90000), ' ') AS rare FROM generate_series(1, 41000) AS n \gset
SELECT (stepwise.store_artifact(:'fish', 'rare', :'rare') ->> 'size')::int > 700000;
SELECT stepwise.store_output(:'fish', :'rare') ->> 'replaced';
SELECT r ->> 'kind' FROM jsonb_array_elements(stepwise.search_artifacts(pg_temp.rare(100)) -> 'results') AS r ORDER BY 1;

-- ---------- what the index of words is not sure of, and very many matches ----------

BEGIN;
INSERT INTO stepwise.artifact (tenant, id, plan_id, name, content, version)
SELECT 'default', stepwise.uuid7(), :'fish', 'many ' || n, CASE WHEN n % 4000 = 0 THEN 'a walrus climbs ' ELSE 'it climbs, a walrus ' END
       || (SELECT string_agg(md5(n || ' ' || i), ' ') FROM generate_series(1, 12) AS i), 1
FROM generate_series(1, 12000) AS n;
-- words that stand together; with little memory, the bitmap has only pages
SELECT pg_temp.found('"walrus climbs"');
SET LOCAL work_mem = '64kB';
SELECT pg_temp.found('"walrus climbs"');
RESET work_mem;
-- the newest thousand are ranked
SELECT x ->> 'count', x #>> '{results,0,name}', x #>> '{results,19,name}' FROM stepwise.search_artifacts('walrus') AS x;
-- the same with indexes that are of another kind now
SELECT stepwise.store_output(:'fish', 'No walrus climbs') ->> 'planStatus', stepwise.find_plans('walrus') ->> 'count';
DROP INDEX stepwise.artifact_search, stepwise.plan_detail_search;
CREATE INDEX artifact_search ON stepwise.artifact (version);
CREATE INDEX plan_detail_search ON stepwise.plan_detail USING gin (variables);
SELECT pg_temp.found('"walrus climbs"'), stepwise.find_plans('walrus') ->> 'count';
-- and without them, or with a table of that name
DROP INDEX stepwise.artifact_search, stepwise.plan_detail_search;
CREATE TABLE stepwise.artifact_search (search tsvector);
SELECT pg_temp.found('"walrus climbs"'), stepwise.find_plans('walrus') ->> 'count';
ROLLBACK;

-- ---------- plans that have ended, tenants, final checks ----------

SELECT stepwise.cancel_plan(:'fish') ->> 'planStatus';
SELECT stepwise.store_output(:'fish', 'Enough.') ->> 'planStatus';
SELECT stepwise.store_artifact(:'fish', 'late', 'After the end.') ->> 'planStatus';
SELECT pg_temp.found('enough');

BEGIN;
SELECT stepwise.enter_tenant('artifact_b');
SELECT pg_temp.found('juggle');
SAVEPOINT s;
SELECT pg_temp.found('juggle', :'birds');
ROLLBACK TO s;
SELECT stepwise.store_artifact(:'birds', 'x', 'x');
ROLLBACK TO s;
SELECT stepwise.store_output(:'birds', 'x');
ROLLBACK;

SELECT a.detail ->> 'action', a.detail ->> 'name', a.detail ->> 'size', a.step_id IS NOT NULL
FROM stepwise.audit AS a WHERE a.plan_id IN (:'birds', :'fish') AND a.detail ->> 'action' LIKE '%stored' ORDER BY a.plan_id, a.id;
-- an artifact outlives its step
SELECT stepwise.create_plan('shrinking', 'loses a step', '[{"name": "a"}, {"name": "b"}]') ->> 'planId' AS plan \gset
SELECT stepwise.store_artifact(:'plan', 'kept', 'Kept.', pg_temp.id(:'plan', 'b')) ->> 'stepStatus';
SELECT stepwise.modify_plan(:'plan', 'remove_step', jsonb_build_object('stepId', pg_temp.id(:'plan', 'b'))) ->> 'stepCount';
SELECT name, step_id FROM stepwise.artifact WHERE plan_id = :'plan';

SELECT count(*) FROM stepwise.plan AS p WHERE p.tenant = 'default' AND NOT (stepwise.verify_audit(p.id) ->> 'valid')::boolean;
SELECT * FROM stepwise.check_integrity();
