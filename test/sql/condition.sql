-- Conditions at run time: true, false and undecided. (test/fuzz tests the grammar.)

\set ECHO none
\i test/agent.sql
-- Decide a condition over inputs: true, false, or why it is undecided.
CREATE FUNCTION pg_temp.decide(condition text, inputs jsonb = '{"n": 5, "s": "x", "t": true, "f": false, "z": null, "l": [1, "two", [3]], "o": {"k": 1}, "e": []}')
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    PERFORM pg_temp.make('decide', jsonb_build_array(jsonb_build_object('name', 'a', 'condition', condition)), inputs => inputs);
    answer := stepwise.get_next_step(pg_temp.plan('decide'));
    RETURN CASE answer ->> 'status' WHEN 'step_ready' THEN 'true' WHEN 'plan_complete' THEN 'false' ELSE answer -> 'pauseReason' ->> 'error' END;
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate || ': ' || sqlerrm;
END $$;
\set ECHO all

-- ---------- comparisons ----------

SELECT condition, pg_temp.decide(condition) FROM unnest(ARRAY[
    '${inputs.n} == 5', '${inputs.n} == 5.0', '${inputs.n} != 5', '${inputs.n} < 6', '${inputs.n} <= 5', '${inputs.n} > 5', '${inputs.n} >= 5.01', '5 == ${inputs.n}', '${inputs.n} === 5', '${inputs.n} !== 5',
    '${inputs.s} == "x"', '${inputs.s} == ''x''', '${inputs.s} < "y"', '${inputs.s} != "x"',
    '${inputs.t}', 'not ${inputs.t}', '${inputs.f}', 'not ${inputs.f}', '${inputs.t} == true', '${inputs.t} != ${inputs.f}',
    '${inputs.z} == null', '${inputs.z} != null', '${inputs.n} == null', '${inputs.s} != null',
    'true', 'false', 'not false', '1 < 2', '"a" == "a"']) AS condition;

-- values of different types cannot be compared: undecided, and so is "not"; === gives false
SELECT condition, pg_temp.decide(condition) FROM unnest(ARRAY[
    '${inputs.n} == "5"', '${inputs.n} != "5"', 'not (${inputs.n} == "5")', '${inputs.n} === "5"', '${inputs.n} !== "5"', '${inputs.s} > 1', '${inputs.t} == 1', '${inputs.n}', 'not ${inputs.n}', '${inputs.s}', '${inputs.z}',
    '${inputs.z} < 1', '${inputs.t} < ${inputs.f}', '${inputs.l} < 2']) AS condition;

-- arrays and objects are compared as a whole, never by an element
SELECT condition, pg_temp.decide(condition) FROM unnest(ARRAY[
    '${inputs.l} == 1', '${inputs.l} === 1', '${inputs.l} == [1, "two", [3]]', '${inputs.l} != [1]', '${inputs.e} == []', '${inputs.l} == ${inputs.l}', '${inputs.o} == ${inputs.o}', '${inputs.o} == ${inputs.l}', '${inputs.l.2} == [3]',
    '${inputs.l.0} == 1']) AS condition;

-- in
SELECT condition, pg_temp.decide(condition) FROM unnest(ARRAY[
    '${inputs.n} in [1, 5]', '${inputs.n} in ["5"]', '${inputs.n} not in [1, 2]', '${inputs.n} in []', '${inputs.s} in ["x", 1, null]', '${inputs.z} in [null]', '1 in ${inputs.l}', '"two" in ${inputs.l}', '"three" in ${inputs.l}', '"1" in ${inputs.l}', '[3] in ${inputs.l}', '3 in ${inputs.l}',
    '${inputs.n} in ${inputs.e}', '${inputs.n} not in ${inputs.e}', '1 in ${inputs.n}', '${inputs.n} in [${inputs.n}, 7]']) AS condition;

-- ---------- connectives: an undecided operand matters only if the result depends on it ----------

SELECT condition, pg_temp.decide(condition) FROM unnest(ARRAY[
    '${inputs.t} and ${inputs.f}', '${inputs.t} or ${inputs.f}', 'not ${inputs.t} or ${inputs.t}', 'not (${inputs.t} or ${inputs.t})', '${inputs.f} and ${inputs.f} or ${inputs.t}', '${inputs.f} and (${inputs.f} or ${inputs.t})', '${inputs.t} or ${inputs.t} and ${inputs.f}',
    '${inputs.o.missing} == 1', 'not (${inputs.o.missing} == 1)', '${inputs.o.missing} == 1 or ${inputs.t}', '${inputs.o.missing} == 1 and ${inputs.f}', '${inputs.o.missing} == 1 and ${inputs.t}', '${inputs.o.missing} == 1 or ${inputs.f}',
    '${inputs.o.missing} in [1]', '${inputs.o.missing} not in [1]', '1 in ${inputs.o.missing}', '${inputs.o.missing}', '${inputs.o.missing} == null', '${inputs.o.missing} === null', '${inputs.o.missing} == ${inputs.o.missing}']) AS condition;

-- ---------- jsonpath as written: strict, over inputs ----------

SELECT condition, pg_temp.decide(condition) FROM unnest(ARRAY[
    '$.inputs.n == 5', '$.inputs.n > 5', '$.inputs.missing == 5', '$.inputs.l[*] == 1', '$.inputs.l == 1', '$.inputs.s like_regex "^X" flag "i"', 'exists($.inputs.n)', '$.result == 1', '$.inputs.n', '$.inputs.t', '$.inputs.n / 0 == 1']) AS condition;

-- ---------- numbers, Unicode ----------

SELECT condition, pg_temp.decide(condition, '{"big": 123456789012345678901234567890.1, "größe": "日本", "q": "it''s \"so\""}') FROM unnest(ARRAY[
    '${inputs.big} == 123456789012345678901234567890.1', '${inputs.big} == 123456789012345678901234567890.2', '${inputs.big} > 123456789012345678901234567890', '${inputs.größe} == "日本"', '${inputs.größe} == "\u65e5\u672c"', '${inputs.q} == ''it\''s "so"''', '${inputs.q} == "it''s \"so\""']) AS condition;

-- ---------- in a plan ----------

-- undecided: the plan pauses, the step stays pending
SELECT pg_temp.make('undecided', '[{"name": "a", "tool": "t", "condition": "${inputs.o.missing} > 1"}, {"name": "b"}]', inputs => '{"o": {}}');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('undecided')));
SELECT pg_temp.next('undecided');
SELECT pg_temp.show('undecided');
SELECT pg_temp.log('undecided');
-- skipped by hand, the plan goes on
SELECT stepwise.skip_step(pg_temp.step('undecided', 'a')) ->> 'planStatus';
SELECT pg_temp.next('undecided');
-- a condition on steps: a failed step has no output, but "failed" is true
SELECT pg_temp.make('over steps', '[{"name": "a"}, {"name": "b", "condition": "${steps.a.failed} and ${steps.a.status} == \"failed\" and ${steps.a.outcome} == \"n/a\""}, {"name": "c", "condition": "${steps.a.outputs.n} > 1"}]');
SELECT pg_temp.fail('over steps', 'a');
SELECT pg_temp.next('over steps');
SELECT pg_temp.next('over steps');
-- retried: the reason is cleared, and the condition is decided again
SELECT stepwise.retry_step(pg_temp.step('over steps', 'a')) ->> 'stepStatus';
SELECT pg_temp.show('over steps');
SELECT pg_temp.submit('over steps', 'a', '{"n": 2}');
SELECT pg_temp.next('over steps');
-- with dependsOn: decided after the parents have ended, before the arguments are resolved
SELECT pg_temp.make('tree', '[{"name": "a"}, {"name": "b", "dependsOn": [{"step": "a", "required": false}], "condition": "${steps.a.succeeded}", "arguments": {"n": "${steps.a.outputs.n.m}"}}, {"name": "c", "dependsOn": ["b"]}]');
SELECT pg_temp.submit('tree', 'a', '{"n": 1}', outcome => 'failure');
SELECT pg_temp.next('tree');
SELECT pg_temp.show('tree');

SELECT pg_temp.unsound();
