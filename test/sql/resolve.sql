-- References at run time: their values and types, references inside text, and the messages for missing values.

\set ECHO none
\i test/agent.sql
-- Resolve arguments with given inputs: the arguments of the only step of a plan, or why it is blocked.
CREATE FUNCTION pg_temp.resolve(arguments jsonb, inputs jsonb = '{}') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    PERFORM pg_temp.make('resolve', jsonb_build_array(jsonb_build_object('name', 'a', 'arguments', arguments)), inputs => inputs);
    answer := stepwise.get_next_step(pg_temp.plan('resolve'));
    IF answer ->> 'status' = 'step_ready' THEN
        RETURN answer ->> 'arguments';
    END IF;
    RETURN concat_ws(' ', answer -> 'pauseReason' ->> 'type', answer -> 'pauseReason' ->> 'missingParam') || ': '
        || (SELECT s.message FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('resolve', 'a')));
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate || ': ' || sqlerrm;
END $$;
\set ECHO all

-- ---------- types are kept ----------

SELECT pg_temp.resolve('{"s": "${inputs.s}", "e": "${inputs.e}", "n": "${inputs.n}", "t": "${inputs.t}", "f": "${inputs.f}", "z": "${inputs.z}", "a": "${inputs.a}", "o": "${inputs.o}"}',
    '{"s": "text", "e": "", "n": 1.50, "t": true, "f": false, "z": null, "a": [1, [2]], "o": {"k": {}}}');
-- numbers beyond float, exact
SELECT pg_temp.resolve('{"n": "${inputs.n}", "text": "n=${inputs.n}", "deep": "${inputs.o}"}', '{"n": 123456789012345678901234567890.000000000000000000000000000001, "o": {"n": 1e400, "m": -0.10}}');
-- inside other text, strings are inserted unchanged, and other values as compact JSON
SELECT pg_temp.resolve('{"x": "<${inputs.s}> <${inputs.e}> <${inputs.n}> <${inputs.t}> <${inputs.z}> <${inputs.a}> <${inputs.o}>"}',
    '{"s": "a \"quoted\" \\ text", "e": "", "n": 1.50, "t": true, "z": null, "a": [1, "two", [null]], "o": {"k": "v", "l": {"m": [1, 2]}}}');
-- two references and nothing else are a text
SELECT pg_temp.resolve('{"x": "${inputs.n}${inputs.n}", "y": " ${inputs.n}", "z": "${inputs.n} "}', '{"n": 1}');
-- at any depth; keys and values that are not strings do not change
SELECT pg_temp.resolve('{"a": [1, {"b": ["${inputs.x}", {"${inputs.x}": "k ${inputs.x}"}]}, null, true, ""]}', '{"x": {"y": 1}}');
SELECT pg_temp.resolve('{}');

-- ---------- escapes, one pass ----------

SELECT pg_temp.resolve('{"a": "$${inputs.x}", "b": "$$${inputs.x}", "c": "$$$${inputs.x}", "d": "$ {inputs.x}", "e": "$", "f": "$$", "g": "{inputs.x}", "h": "${inputs.x}$${${inputs.x}", "i": "100$"}', '{"x": "v"}');
-- references and escapes inside a value are not resolved again
SELECT pg_temp.resolve('{"whole": "${inputs.x}", "part": "-${inputs.x}-", "deep": "${inputs.o}"}', '{"x": "${inputs.y} $${inputs.y}", "y": "no", "o": {"k": ["${inputs.y}"]}}');

-- ---------- paths ----------

SELECT pg_temp.resolve('{"a": "${inputs.a.b.0}", "b": "${inputs.a.b.1.c}", "c": "${inputs.a.b.2.0.0}"}', '{"a": {"b": [10, {"c": "x"}, [[7]]]}}');
-- object key before array index
SELECT pg_temp.resolve('{"key": "${inputs.o.0}", "index": "${inputs.l.0}", "long": "${inputs.o.01}"}', '{"o": {"0": "key", "01": "other"}, "l": ["index"]}');
-- an index is a plain number, in range
SELECT pg_temp.resolve('{"x": "${inputs.l.2}"}', '{"l": [1, 2]}');
SELECT pg_temp.resolve('{"x": "${inputs.l.01}"}', '{"l": [1, 2]}');
SELECT pg_temp.resolve('{"x": "${inputs.l.-1}"}', '{"l": [1, 2]}');
SELECT pg_temp.resolve('{"x": "${inputs.l.99999999999999999999}"}', '{"l": [1, 2]}');
SELECT pg_temp.resolve('{"x": "${inputs.l.first}"}', '{"l": [1, 2]}');
-- Unicode keys and values, and other odd ones
SELECT pg_temp.resolve('{"x": "${inputs.größe.日本}", "y": "→${inputs.größe.日本}←", "z": "${inputs.a-b.c_d}"}', '{"größe": {"日本": "🙂"}, "a-b": {"c_d": 1}}');

-- ---------- nothing there ----------

-- the message has the segment and what was found: some of the keys, or the type
SELECT pg_temp.resolve('{"ok": 1, "x": "${inputs.o.c}"}', '{"o": {"b": 1, "a": 2}}');
SELECT pg_temp.resolve('{"x": "${inputs.o.missing.deeper}"}', '{"o": {}}');
SELECT pg_temp.resolve('{"x": "${inputs.o.x}"}', jsonb_build_object('o', (SELECT jsonb_object_agg('key' || lpad(i::text, 2, '0'), i) FROM generate_series(1, 25) AS i)));
SELECT pg_temp.resolve('{"x": "${inputs.o.x}"}', jsonb_build_object('o', jsonb_build_object(repeat('k', 100), 1, 'a' || repeat('ü', 60), 2)));
SELECT pg_temp.resolve('{"x": "${inputs.v.x}"}', '{"v": "text"}');
SELECT pg_temp.resolve('{"x": "${inputs.v.x}"}', '{"v": 1}');
SELECT pg_temp.resolve('{"x": "${inputs.v.x}"}', '{"v": null}');
SELECT pg_temp.resolve('{"x": "${inputs.v.x}"}', '{"v": true}');
SELECT pg_temp.resolve('{"x": "${inputs.v.x}"}', '{"v": []}');
-- the message names the argument at fault, not the first argument
SELECT pg_temp.resolve('{"first": "${inputs.o.a}", "second": {"deep": ["${inputs.o.b}"]}, "third": "${inputs.o.a}"}', '{"o": {"a": 1}}');
-- refused when it is defined
SELECT pg_temp.resolve('{"x": "${inputs.o.__internal__}"}', '{"o": {}}');
SELECT pg_temp.resolve('{"x": "${inputs.__internal__.a}"}', '{"o": {}}');
SELECT pg_temp.resolve('{"x": "${inputs.missing}"}', '{"o": {}}');
SELECT pg_temp.resolve('{"x": "${inputs.}"}', '{"o": {}}');
SELECT pg_temp.resolve('{"x": "${inputs.o"}', '{"o": {}}');
SELECT pg_temp.resolve('{"x": "${nowhere.o}"}', '{"o": {}}');
SELECT pg_temp.resolve('{"x": "${}"}', '{"o": {}}');

-- ---------- steps ----------

SELECT pg_temp.make('steps', '[{"name": "a-b_c", "arguments": {"in": "${inputs.x}"}, "binding": "bound"}, {"name": "bad"}, {"name": "gone", "condition": "${inputs.x} == 2", "arguments": {"in": "${inputs.x}"}}, {"name": "broken"},
    {"name": "reads", "arguments": {"out": "${steps.a-b_c.outputs.n.0}", "blocks": "${blocks.a-b_c.outputs}", "bound": "${bindings.bound.n}", "all": "${bindings.bound}", "in": "${steps.a-b_c.inputs.in}",
        "flags": ["${steps.a-b_c.succeeded}", "${steps.a-b_c.failed}", "${steps.a-b_c.skipped}", "${steps.bad.succeeded}", "${steps.bad.failed}", "${steps.gone.skipped}", "${steps.broken.failed}"],
        "words": ["${steps.a-b_c.status}", "${steps.a-b_c.outcome}", "${steps.bad.status}", "${steps.bad.outcome}", "${steps.gone.status}", "${steps.gone.outcome}", "${steps.broken.status}"],
        "meta": ["${steps.a-b_c.metadata.attempt}", "${steps.a-b_c.metadata.execution_order}", "${steps.broken.metadata.message}", "${steps.gone.metadata.message}", "${steps.gone.metadata.started_at}"],
        "plan": ["${plan.name}", "${plan.goal}"], "id": "plan ${plan.id}"}},
    {"name": "last"}]', inputs => '{"x": 1}');
SELECT pg_temp.next('steps');
SELECT pg_temp.submit('steps', 'a-b_c', '{"n": ["first"]}');
SELECT pg_temp.submit('steps', 'bad', outcome => 'failure');
SELECT pg_temp.fail('steps', 'broken');
SELECT pg_temp.plain(stepwise.get_next_step(pg_temp.plan('steps')) -> 'arguments');
SELECT s.inputs ->> 'id' = 'plan ' || s.plan_id FROM stepwise.step AS s WHERE s.id = (SELECT pg_temp.step('steps', 'reads'));

-- a result that is a scalar, or none at all
SELECT pg_temp.make('scalar', '[{"name": "a"}, {"name": "b"}, {"name": "c", "arguments": {"a": "${steps.a.outputs}", "b": "${steps.b.outputs}"}}, {"name": "d", "arguments": {"x": "${steps.a.outputs.x}"}}]');
SELECT pg_temp.submit('scalar', 'a', '42'), pg_temp.submit('scalar', 'b', 'null');
SELECT pg_temp.next('scalar');
SELECT pg_temp.next('scalar');
SELECT pg_temp.show('scalar');

-- a value of a failed or skipped step, or of a step that never resolved its arguments
SELECT pg_temp.make('failed', '[{"name": "a", "tool": "t", "binding": "b"}, {"name": "x", "tool": "u", "arguments": {"v": "${bindings.b.n}"}}]');
SELECT pg_temp.fail('failed', 'a');
SELECT pg_temp.next('failed');
SELECT pg_temp.show('failed');
SELECT pg_temp.make('skipped', '[{"name": "a", "condition": "${inputs.x} == 2", "arguments": {"v": "${inputs.x}"}}, {"name": "x", "arguments": {"v": "${steps.a.outputs.n}"}}]', inputs => '{"x": 1}');
SELECT pg_temp.next('skipped');
SELECT pg_temp.make('unresolved', '[{"name": "a", "condition": "${inputs.x} == 2", "arguments": {"v": "${inputs.x}"}}, {"name": "x", "arguments": {"v": "${steps.a.inputs.v}"}}]', inputs => '{"x": 1}');
SELECT pg_temp.next('unresolved');
SELECT pg_temp.show('unresolved');

-- in prompts, instructions and resources as in arguments
SELECT pg_temp.make('texts', '[{"name": "a", "instructions": "Use ${inputs.o} and $${this}", "resources": ["stepwise://artifact/${inputs.s}"]}, {"name": "b", "prompt": "${inputs.o}"}, {"name": "c", "instructions": "${inputs.o.missing}"}]', inputs => '{"o": {"k": [1]}, "s": "file"}');
SELECT a ->> 'instructions', a -> 'resources' FROM stepwise.get_next_step(pg_temp.plan('texts')) AS a;
SELECT stepwise.get_next_step(pg_temp.plan('texts')) ->> 'prompt';
SELECT stepwise.resume(pg_temp.waiting('texts', 'b'), '1') ->> 'status';
SELECT pg_temp.next('texts');

-- ---------- inside nested plans ----------

SELECT stepwise.define_workflow('{"name": "resolve c", "inputs": {"n": {"type": "integer"}}, "steps": [{"name": "deep", "arguments": {"n": "${inputs.n}"}}, {"name": "deeper", "condition": "false"}]}') ->> 'version';
SELECT stepwise.define_workflow('{"name": "resolve b", "inputs": {"n": {"type": "integer"}}, "steps": [{"name": "mid", "workflow": "resolve c", "arguments": {"n": "${inputs.n}"}}], "outputs": {"from": "${steps.mid.steps.deep.outputs.v}"}}') ->> 'version';
SELECT pg_temp.make('nested', '[{"name": "top", "workflow": "resolve b", "arguments": {"n": 4}},
    {"name": "x", "arguments": {"out": "${steps.top.outputs.from}", "deep": "${steps.top.steps.mid.steps.deep.outputs.v.0}", "in": "${blocks.top.blocks.mid.blocks.deep.inputs.n}",
        "flag": "${steps.top.steps.mid.succeeded}", "skipped": "${steps.top.steps.mid.steps.deeper.skipped}", "status": "${steps.top.steps.mid.steps.deeper.status}"}},
    {"name": "y", "arguments": {"no": "${steps.top.steps.mid.steps.nobody.outputs}"}}]');
SELECT pg_temp.next('nested');
SELECT pg_temp.submit('resolve c', 'deep', '{"v": [9]}');
SELECT pg_temp.next('nested');
SELECT pg_temp.next('nested');
SELECT pg_temp.show('nested');

-- steps of a failed nested plan can be referred to; steps that did not run have no value
SELECT stepwise.define_workflow('{"name": "resolve d", "onFailure": "fail", "steps": [{"name": "p"}, {"name": "q"}]}') ->> 'version';
SELECT pg_temp.make('below failed', '[{"name": "top", "workflow": "resolve d"}, {"name": "x", "arguments": {"p": "${steps.top.steps.p.failed}", "q": "${steps.top.steps.q.status}", "s": "${steps.top.steps.q.succeeded}"}},
    {"name": "y", "arguments": {"q": "${steps.top.steps.q.outputs.v}"}}]');
SELECT pg_temp.next('below failed');
SELECT pg_temp.fail('resolve d', 'p');
SELECT pg_temp.next('below failed');
SELECT pg_temp.next('below failed');
SELECT pg_temp.show('below failed');
-- one that was never opened
SELECT pg_temp.make('below none', '[{"name": "top", "workflow": "resolve d", "condition": "false"}, {"name": "x", "arguments": {"q": "${steps.top.steps.q.outputs.v}"}}]');
SELECT pg_temp.next('below none');

-- ---------- outputs of a plan ----------

-- a reference to a failed or skipped step, or to a missing value, gives null, and blocks nothing
SELECT pg_temp.make('outputs', '[{"name": "a"}, {"name": "b"}, {"name": "c", "condition": "false"}]',
    outputs => '{"a": "${steps.a.outputs.n}", "a_missing": "${steps.a.outputs.m.o}", "b": "${steps.b.outputs.n}", "c": "${steps.c.outputs}", "text": "a ${steps.a.outputs.n}", "bad_text": "b ${steps.b.outputs.n}",
        "nested": {"list": ["${steps.c.outputs}", "${inputs.x}", 1]}, "c_skipped": "${steps.c.skipped}", "literal": "$${x}"}', inputs => '{"x": {"y": 1}}');
SELECT pg_temp.submit('outputs', 'a', '{"n": 5}');
SELECT pg_temp.fail('outputs', 'b');
SELECT pg_temp.next('outputs');
SELECT p.outputs FROM stepwise.plan AS p WHERE p.id = (SELECT pg_temp.plan('outputs'));
-- the size is limited: a template that refers to a large value many times
SELECT pg_temp.make('large outputs', '[{"name": "a"}]', outputs => jsonb_build_object('l', (SELECT jsonb_agg('${inputs.x}'::text) FROM generate_series(1, 1000))), inputs => jsonb_build_object('x', repeat('x', 100000)));
SELECT pg_temp.submit('large outputs', 'a');
SELECT count(*), count(*) FILTER (WHERE e <> 'null') BETWEEN 100 AND 200 FROM stepwise.plan AS p, LATERAL jsonb_array_elements(p.outputs -> 'l') AS e WHERE p.id = (SELECT pg_temp.plan('large outputs'));

SELECT pg_temp.unsound();
