-- What the extension builds is the same jsonb, byte by byte, as what PostgreSQL reads from its text.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

CREATE SCHEMA regress_builder;
SET search_path = regress_builder;

CREATE FUNCTION same(built jsonb) RETURNS boolean LANGUAGE sql AS $$ SELECT record_image_eq(ROW(built), ROW(built::text::jsonb)) $$;

-- an object of n members. Keys and texts have all lengths, so that numbers and containers need padding; keys of equal length are not in order.
CREATE FUNCTION members(n int, first int = 1) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_object_agg(repeat('k', i % 5 + 1) || i * 7919 % 1009 || '.' || i,
                            CASE i % 8 WHEN 0 THEN to_jsonb(i) WHEN 1 THEN to_jsonb(repeat('ä', i % 7)) WHEN 2 THEN 'true' WHEN 3 THEN 'null'
                                       WHEN 4 THEN jsonb_build_object('n', -i / 8.0, 't', repeat('x', i % 4), 'd', '[]'::jsonb)
                                       WHEN 5 THEN jsonb_build_array(i, '{}'::jsonb, repeat('y', i % 3), 1e30, false)
                                       WHEN 6 THEN 'false' ELSE to_jsonb(''::text) END)
    FROM generate_series(first, first + n - 1) AS i
$$;

SELECT stepwise.create_plan('one', 'to be built', '[{"name": "a", "instructions": "do it"}]') ->> 'planId' AS plan \gset

-- ---------- objects: members that are merged, with few and with many keys ----------

-- a null removes a variable; the second call replaces the first half of the members and adds others
CREATE FUNCTION others(n int) RETURNS jsonb LANGUAGE sql AS $$
    SELECT members(n, n + 1) || (SELECT jsonb_object_agg(key, jsonb_build_array(n, 'x', 2.5)) FROM jsonb_object_keys(members((n + 1) / 2)) AS key)
$$;
SELECT n, same(stepwise.set_variables(:'plan', members(n))), same(stepwise.set_variables(:'plan', others(n)))
FROM unnest('{1,7,31,32,33,63,64,65,200,1000}'::int[]) AS n;
SELECT same(variables), variables = jsonb_strip_nulls(members(1000) || others(1000)), (SELECT count(*) FROM jsonb_object_keys(variables))
FROM stepwise.plan_detail WHERE plan_id = :'plan';

-- ---------- values of every kind, inside an answer and stored ----------

CREATE TABLE value (n int GENERATED ALWAYS AS IDENTITY, value jsonb);
INSERT INTO value (value)
VALUES ('null'), ('true'), ('false'), ('0'), ('-1.50'), ('1e400'), ('""'), ('"ä"'), ('"abc"'), ('{}'), ('[]'), ('[[]]'), ('[null]'), ('{"a": {"a": {"a": [{}, 1, "x", 2]}}}'),
       (members(3)), (members(70)), (jsonb_build_array(members(40), 1, members(5), 'z', 2));
CREATE FUNCTION built(value jsonb) RETURNS TABLE (context boolean, stored boolean, kept boolean, entry boolean) LANGUAGE plpgsql AS $$
DECLARE
    plan uuid := stepwise.create_plan('values', 'to be built', jsonb_build_array(jsonb_build_object('name', 'a', 'instructions', 'do it', 'arguments', jsonb_build_object('x', value)),
                                                                                '{"name": "b", "arguments": {"all": "${steps.a.outputs}", "text": "<${steps.a.outputs}>", "n": 1}}'::jsonb)) ->> 'planId';
    step uuid;
    ready jsonb := stepwise.get_next_step(plan);
BEGIN
    step := ready ->> 'stepId';
    kept := ready #> '{arguments,x}' = value AND same(ready);
    ready := stepwise.advance(step, value) -> 'next';
    kept := kept AND ready #> '{arguments,all}' = value AND same(ready);
    context := same(stepwise.get_step_context(step)) AND same(stepwise.get_plan_context(plan)) AND same(stepwise.get_plan_status(plan));
    stored := (SELECT bool_and(same(s.inputs) AND (s.result IS NULL OR same(s.result))) FROM stepwise.step AS s WHERE s.plan_id = plan);
    entry := (SELECT bool_and(same(a.detail)) FROM stepwise.audit AS a WHERE a.plan_id = plan);
    RETURN NEXT;
END $$;
SELECT v.n, b.* FROM value AS v, built(v.value) AS b ORDER BY v.n;

-- ---------- arrays: lists of ids and of objects ----------

SELECT n, same(answer), same(stepwise.get_plan_context((answer ->> 'planId')::uuid)), same(stepwise.why((answer ->> 'planId')::uuid))
FROM unnest('{1,31,32,33,65,300}'::int[]) AS n,
     LATERAL (SELECT stepwise.create_plan('list', 'to be built', (SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'instructions', repeat('x', i % 6 + 1), 'arguments', members(i % 4 + 1)) ORDER BY i)
                                                                   FROM generate_series(1, n) AS i)) AS answer OFFSET 0) AS a;

DROP SCHEMA regress_builder CASCADE;
