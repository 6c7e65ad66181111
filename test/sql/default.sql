-- References with a default, variables in references, and what is said about faulty references.

\set ECHO none
\i test/agent.sql
CREATE FUNCTION pg_temp.set(plan text, variables jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', a ->> 'planStatus', a ->> 'variables') FROM stepwise.set_variables(pg_temp.plan(plan), variables) AS a
$$;
-- the faults of a definition: path, message and hint of each
CREATE FUNCTION pg_temp.faults(definition jsonb, key text = 'errors') RETURNS SETOF text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', e ->> 'path', e ->> 'message', e ->> 'hint')
    FROM jsonb_array_elements(stepwise.validate_definition('{"name": "w"}' || definition) -> key) AS e
$$;
\set ECHO all

-- a missing path gives the literal, in its type; a value that is there counts, also null and false
SELECT pg_temp.make('types', '[{"name": "a", "tool": "t", "arguments": {"n": "${inputs.no ?? 1.50}", "s": "${inputs.no ?? \"x } y\"}", "o": "${inputs.in.no ?? {\"k\": [\"}\"]}}",
    "z": "${inputs.no ?? null}", "t": "n is ${inputs.no ?? 2}, s is ${inputs.no??\"two\"}, l is ${inputs.no ?? [1,  2]}", "nil": "${inputs.nil ?? 3}", "f": "${inputs.f ?? true}"}}]',
    inputs => '{"no": {"never": 1}, "in": {}, "nil": null, "f": false}');
SELECT pg_temp.next('types');
SELECT pg_temp.make('gone', '[{"name": "a", "tool": "t", "arguments": {"n": "${inputs.no.x ?? 1.50}", "s": "${inputs.no.x ?? \"x } y\"}", "o": "${inputs.no.x ?? {\"k\": [\"}\"]}}",
    "z": "${inputs.no.x ?? null}", "t": "n is ${inputs.no.x ?? 2}, s is ${inputs.no.x??\"two\"}, l is ${inputs.no.x ?? [1,  2]}", "nil": "${inputs.nil ?? 3}", "f": "${inputs.f ?? true}"}}]',
    inputs => '{"no": {}, "nil": null, "f": false}');
SELECT pg_temp.next('gone');

-- an input that was not given; a workflow must declare it
SELECT pg_temp.make('not given', '[{"name": "a", "tool": "t", "arguments": {"n": "${inputs.language ?? \"en\"}"}}]');
SELECT pg_temp.next('not given');
SELECT pg_temp.faults('{"inputs": {"size": {"type": "integer", "required": false}}, "steps": [{"name": "a", "instructions": "${inputs.size ?? 2} ${inputs.sise ?? 2}"}]}');

-- a step that failed or was skipped, or whose result has no such path; in arguments, instructions, a condition and outputs
SELECT pg_temp.make('steps', '[{"name": "a", "instructions": "a", "binding": "found"}, {"name": "b", "instructions": "b"}, {"name": "c", "instructions": "c"},
    {"name": "d", "tool": "t", "instructions": "got ${bindings.found.n ?? \"nothing\"}", "arguments": {"a": "${bindings.found.n ?? 1}", "b": "${steps.b.outputs ?? []}", "c": "${steps.c.outputs.n ?? 3}"},
     "condition": "${steps.b.outputs.n ?? 5} == 5 and (${bindings.found.n ?? {}} == ${steps.c.outputs.o}) and not ${steps.c.outputs.n ?? false}"}]',
    outputs => '{"a": "${bindings.found ?? {\"none\": true}}", "b": "${steps.b.outputs}", "d": "${steps.d.outputs.x ?? 0}"}');
SELECT pg_temp.next('steps'), pg_temp.fail('steps', 'a');
SELECT stepwise.skip_step(pg_temp.step('steps', 'b')) ->> 'stepStatus';
SELECT pg_temp.next('steps'), pg_temp.submit('steps', 'c', '{"o": {}}');
SELECT a ->> 'instructions', pg_temp.brief(a) FROM stepwise.get_next_step(pg_temp.plan('steps')) AS a;
SELECT pg_temp.submit('steps', 'd');
SELECT outputs FROM stepwise.plan WHERE id = pg_temp.plan('steps');

-- a step that has not ended is waited for, as without the default
SELECT pg_temp.make('wait', '[{"name": "a", "instructions": "a"}, {"name": "b", "tool": "t", "arguments": {"n": "${steps.a.outputs.n ?? 1}"}}]');
SELECT pg_temp.next('wait'), pg_temp.next('wait');
SELECT pg_temp.make('wait for a condition', '[{"name": "a", "instructions": "a"}, {"name": "b", "tool": "t", "condition": "${steps.a.outputs.n ?? 1} == 1"}]');
SELECT pg_temp.next('wait for a condition'), pg_temp.next('wait for a condition');
SELECT pg_temp.submit('wait', 'a', '{}'), pg_temp.next('wait');
SELECT pg_temp.submit('wait for a condition', 'a', '{"n": 2}'), pg_temp.next('wait for a condition');
-- one reference with a default and one without: the one without still stops the step
SELECT pg_temp.make('both', '[{"name": "a", "tool": "t", "arguments": {"x": "${inputs.o.no ?? 1} ${inputs.o.never}"}}]', inputs => '{"o": {}}');
SELECT pg_temp.next('both');
-- in a branching condition, where confidence may be missing
SELECT pg_temp.make('branch', '[{"name": "a", "instructions": "a"}, {"name": "b", "instructions": "b"}]',
    '[{"afterStep": "a", "conditionExpression": "${confidence ?? 0} < 0.5 and ${result.no ?? null} == null", "ifTrueAction": "fail"}]');
SELECT pg_temp.next('branch'), pg_temp.submit('branch', 'a');

-- variables are those of the plan of the step, and are read when the step is handed out
SELECT pg_temp.make('variables', '[{"name": "a", "tool": "t", "arguments": {"r": "${variables.region}"}}, {"name": "b", "instructions": "b",
    "condition": "${variables.go ?? false} == true"}, {"name": "c", "tool": "t", "arguments": {"r": "${variables.region}", "d": "${variables.deep.x.1 ?? \"none\"}", "t": "in ${variables.region}"}}]',
    outputs => '{"r": "${variables.region}", "no": "${variables.no}"}');
-- a variable that is not set is a missing path
SELECT pg_temp.next('variables');
SELECT stepwise.why(pg_temp.plan('variables')) ->> 'message';
SELECT pg_temp.set('variables', '{"other": 1}'), (SELECT pause_reason IS NULL FROM stepwise.plan WHERE id = pg_temp.plan('variables'));
SELECT pg_temp.set('variables', '{"region": "eu", "deep": {"x": [1, 2]}}');
SELECT pause_reason FROM stepwise.plan WHERE id = pg_temp.plan('variables');
SELECT pg_temp.next('variables');
SELECT pg_temp.set('variables', '{"region": "us", "go": true, "deep": {"x": [1]}}'), pg_temp.submit('variables', 'a');
SELECT pg_temp.next('variables'), pg_temp.submit('variables', 'b');
SELECT pg_temp.next('variables');
-- what was handed out stays, whatever is set later
SELECT pg_temp.set('variables', '{"region": "ap"}');
SELECT inputs FROM stepwise.step WHERE id = pg_temp.step('variables', 'c');
SELECT pg_temp.submit('variables', 'c');
SELECT outputs FROM stepwise.plan WHERE id = pg_temp.plan('variables');
-- a nested plan has its own
SELECT stepwise.define_workflow('{"name": "default-inner", "steps": [{"name": "x", "tool": "t", "arguments": {"r": "${variables.region ?? \"inner\"}"}}]}') ->> 'version';
SELECT pg_temp.make('outer', '[{"name": "n", "workflow": "default-inner"}]'), pg_temp.set('outer', '{"region": "outer"}');
SELECT pg_temp.next('outer');
-- a step that runs in the database reads them too, in its turn
CREATE FUNCTION default_echo(arguments jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT arguments';
SELECT stepwise.register_tool('default_echo', 'default_echo(jsonb)') ->> 'name';
SELECT pg_temp.make('run', '[{"name": "a", "tool": "default_echo", "arguments": {"x": "${variables.k ?? 0}"}}, {"name": "b", "tool": "default_echo", "arguments": {"x": "${variables.k}"}}]');
SELECT r -> 'pause_reason' ->> 'type' FROM stepwise.run(pg_temp.plan('run')) AS r;
SELECT pg_temp.set('run', '{"k": [1]}');
SELECT r ->> 'task_status' FROM stepwise.run(pg_temp.plan('run')) AS r;
SELECT name, result FROM stepwise.step WHERE plan_id = pg_temp.plan('run') ORDER BY step_order;
-- the review that a branch requests has its references filled; one without a value is shown, and does not prevent the review
SELECT pg_temp.make('review', '[{"name": "first", "instructions": "f"}, {"name": "a", "instructions": "a", "binding": "found"}, {"name": "b", "instructions": "b"}]',
    '[{"afterStep": "a", "conditionExpression": "confidence < 0.5", "ifTrueAction": "request_review", "actionParams": {"summary": "Found ${bindings.found.n} of ${inputs.all} (${confidence}), $${literal}",
       "questions": ["Keep ${steps.a.outputs.list}?", "${result.n}", "And ${result.missing.x}?", "${steps.first.outputs.no ?? \"no first\"}"]}}]', inputs => '{"all": 9}');
SELECT pg_temp.next('review'), pg_temp.submit('review', 'first'), pg_temp.next('review'), pg_temp.submit('review', 'a', '{"n": 3, "list": ["x", 1]}', confidence => 0.25);
SELECT prompt, questions FROM stepwise.checkpoints WHERE plan_id = pg_temp.plan('review');
-- steps that the review names cannot be removed, and later steps cannot be named
SELECT pg_temp.make('named', '[{"name": "a", "instructions": "a"}, {"name": "b", "instructions": "b"}]',
    '[{"afterStep": "b", "conditionExpression": "true", "ifTrueAction": "request_review", "actionParams": {"summary": "${steps.a.outputs}"}}]');
SELECT pg_temp.try(format('stepwise.modify_plan(%L, ''remove_step'', %L)', pg_temp.plan('named'), jsonb_build_object('stepId', pg_temp.step('named', 'a'))));
SELECT pg_temp.faults('{"steps": [{"name": "a", "instructions": "a"}, {"name": "b", "instructions": "b"}], "branchingConditions": [{"afterStep": "a", "conditionExpression": "true",
    "ifTrueAction": "request_review", "actionParams": {"summary": "${steps.b.outputs} ${steps.c.outputs} ${steps.a.outputs}", "questions": ["${b", "${result}", "${nothing.x}"]}}]}');

-- afterStep beside afterStepOrder
SELECT b, e.*
FROM (VALUES ('{"afterStep": "a"}'::jsonb), ('{"afterStepOrder": 1}'), ('{"afterStep": "b", "afterStepOrder": 2}'), ('{}'), ('{"afterStep": "bb"}'), ('{"afterStep": 1}'), ('{"afterStep": ""}'),
    ('{"afterStepOrder": null, "afterStep": "a"}')) AS x (b)
LEFT JOIN LATERAL pg_temp.faults(jsonb_build_object('steps', '[{"name": "a", "instructions": "a"}, {"name": "b", "instructions": "b"}]'::jsonb, 'branchingConditions',
    jsonb_build_array('{"conditionExpression": "true", "ifTrueAction": "fail"}' || b))) AS e ON true;

-- all faults of one string at once: when it is defined
SELECT pg_temp.faults('{"steps": [{"name": "a", "instructions": "${stesp.x} ${inputs..y} ${steps.b.outputs} ${inputs.z ?? nope} ${variables} ${open"},
    {"name": "b", "instructions": "b", "condition": "${stesp.x} == 1 and ${inputs..y} and not ${steps.c.succeeded} or"}]}');
-- and when it is filled
SELECT pg_temp.make('filled', '[{"name": "a", "instructions": "${inputs.o.one} and ${inputs.o} and ${inputs.o.two.x} and ${variables.three}", "tool": "t"}]', inputs => '{"o": {"k": 1}}');
SELECT pg_temp.next('filled');
SELECT message FROM stepwise.step WHERE id = pg_temp.step('filled', 'a');

-- hints: a name without its root, in texts, conditions and added steps
SELECT pg_temp.faults('{"inputs": {"region": {"type": "string"}}, "steps": [{"name": "search", "instructions": "s", "binding": "found"},
    {"name": "b", "instructions": "Read ${found.urls} from ${search.urls} in ${region}, not ${nowhere.x}", "condition": "${found.count} > 1 and ${search}"}],
    "branchingConditions": [{"afterStep": "search", "conditionExpression": "${found.count} == 0", "ifTrueAction": "add_steps", "actionParams": {"steps": [
        {"name": "more", "instructions": "m", "binding": "extra"}, {"name": "last", "instructions": "${extra.x}", "condition": "${extra} and ${found}"}]}}]}');
-- warnings: the notations of other languages
SELECT pg_temp.faults('{"inputs": {"region": {"type": "string"}}, "steps": [{"name": "search", "instructions": "In $region, for {{ inputs.query }}", "binding": "found"},
    {"name": "b", "instructions": "It costs $5 or $price, {{ and no more", "prompt": "$found.urls?"}, {"name": "c", "instructions": "$search", "tool": "t", "arguments": {"a": ["{{x}}", "$${found}", "${bindings.found}"]}}],
    "outputs": {"u": "$found"}}', 'warnings');

-- nonsense
SELECT x, pg_temp.try(format('stepwise.create_plan(''n'', ''g'', %L)->>''status''', jsonb_build_array(jsonb_build_object('instructions', x))))
FROM (VALUES ('${inputs ?? }'), ('${?? 1}'), ('${inputs.a ?? "'), ('${variables.__internal__ ?? 1}'), ('${variables..k}'), ('${inputs.a ?? 1e999999}'), ('${inputs.a ?? "\ud800"}')) AS v (x);
SELECT pg_temp.try(format('stepwise.create_plan(''n'', ''g'', %L)->>''status''', jsonb_build_array(jsonb_build_object('instructions', '${variables.k ?? ' || repeat('[', 4000) || repeat(']', 4000) || '}'))));

SELECT stepwise.drop_tool('default_echo') ->> 'name';
DROP FUNCTION default_echo;
SELECT * FROM pg_temp.unsound();
