-- Definitions: which are accepted, and which are refused, with the SQLSTATE, the path of the element, and a hint. A refused
-- definition leaves nothing stored.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

-- Try a definition: "stored", or the SQLSTATE and the paths that DETAIL names.
CREATE FUNCTION pg_temp.try(definition jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    code text;
    list text;
BEGIN
    PERFORM stepwise.define_workflow(definition);
    RETURN 'stored';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, list = PG_EXCEPTION_DETAIL;
    RETURN code || ' ' || coalesce((SELECT string_agg(coalesce(nullif(e ->> 'path', ''), '(all)'), ' ')
                                    FROM jsonb_array_elements(list::jsonb) AS e), sqlerrm);
END $$;

-- The faults of a definition in words.
CREATE FUNCTION pg_temp.faults(definition jsonb) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('%s: %s [%s]', e ->> 'path', e ->> 'message', e ->> 'hint')
    FROM jsonb_array_elements(stepwise.validate_definition(definition) -> 'errors') AS e
$$;

-- A definition with the given steps and other keys.
CREATE FUNCTION pg_temp.def(steps jsonb, more jsonb = '{}') RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('name', 'w', 'steps', steps) || more
$$;

-- A definition of two steps with one branching condition after the first.
CREATE FUNCTION pg_temp.branch(branch jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT pg_temp.def('[{"name": "a"}, {"name": "b"}]', jsonb_build_object('branchingConditions', jsonb_build_array(
        jsonb_build_object('afterStepOrder', 1, 'conditionExpression', 'confidence < 0.5', 'ifTrueAction', 'continue') || branch)))
$$;

-- ---------- what is refused ----------

CREATE TEMP TABLE malformed (n int GENERATED ALWAYS AS IDENTITY, label text, definition jsonb);

INSERT INTO malformed (label, definition) VALUES
('null', NULL),
('null in JSON', 'null'),
('a string', '"deploy"'),
('an array', '[]'),
('an empty object', '{}'),
('no name', '{"steps": [{"name": "a"}]}'),
('empty name', '{"name": "", "steps": [{}]}'),
('blank name', '{"name": "  ", "steps": [{}]}'),
('name with a line break', '{"name": "a\nb", "steps": [{}]}'),
('name with a space at its end', '{"name": "a ", "steps": [{}]}'),
('long name', jsonb_build_object('name', repeat('x', 201), 'steps', '[{}]'::jsonb)),
('name that is a number', '{"name": 1, "steps": [{}]}'),
('description that is an object', pg_temp.def('[{}]', '{"description": {}}')),
('unknown key', pg_temp.def('[{}]', '{"step": []}')),
('snake case', pg_temp.def('[{}]', '{"on_failure": "pause"}')),
('steps null', pg_temp.def('null')),
('steps an object', pg_temp.def('{"a": {}}')),
('no step', pg_temp.def('[]')),
('step that is a string', pg_temp.def('["a"]')),
('step that is null', pg_temp.def('[{}, null]')),
('unknown key of a step', pg_temp.def('[{}, {"depends_on": ["step_1"]}]')),
('step name with a space', pg_temp.def('[{"name": "a b"}]')),
('step name that begins with a digit', pg_temp.def('[{"name": "1a"}]')),
('step name that begins with -', pg_temp.def('[{"name": "-a"}]')),
('step name with a dot', pg_temp.def('[{"name": "a.b"}]')),
('step name beyond ASCII', pg_temp.def('[{"name": "prüfen"}]')),
('step name of 64 characters', pg_temp.def(jsonb_build_array(jsonb_build_object('name', repeat('x', 64))))),
('step name empty', pg_temp.def('[{"name": ""}]')),
('step name reserved', pg_temp.def('[{"name": "__internal__"}]')),
('step name twice', pg_temp.def('[{"name": "a"}, {"name": "b"}, {"name": "a"}]')),
('binding out of pattern', pg_temp.def('[{"binding": "a.b"}]')),
('binding twice', pg_temp.def('[{"binding": "b"}, {"binding": "b"}]')),
('unknown type', pg_temp.def('[{"type": "analyse"}]')),
('type that is a number', pg_temp.def('[{"type": 3}]')),
('tool and workflow', pg_temp.def('[{"tool": "t", "prompt": "?"}]')),
('tool that is empty', pg_temp.def('[{"tool": ""}]')),
('tool that is null', pg_temp.def('[{"tool": null}]')),
('prompt that is empty', pg_temp.def('[{"prompt": " "}]')),
('instructions that are an array', pg_temp.def('[{"instructions": ["a"]}]')),
('version without workflow', pg_temp.def('[{"tool": "t", "version": 2}]')),
('version 0', pg_temp.def('[{"workflow": "w2", "version": 0}]')),
('workflow that does not exist', pg_temp.def('[{"workflow": "nowhere"}]')),
('workflow that is itself', pg_temp.def('[{"workflow": "w"}]')),
('arguments that are an array', pg_temp.def('[{"tool": "t", "arguments": []}]')),
('arguments that are too deep', pg_temp.def(jsonb_build_array(jsonb_build_object('arguments',
    (repeat('{"a":', 65) || '1' || repeat('}', 65))::jsonb)))),
('arguments that are too large', pg_temp.def(jsonb_build_array(jsonb_build_object('arguments',
    jsonb_build_object('a', repeat('x', 1100000)))))),
('instructions that are too large', pg_temp.def(jsonb_build_array(jsonb_build_object('instructions', repeat('x', 1100000))))),
('resources that are a string', pg_temp.def('[{"resources": "a"}]')),
('resources that are empty', pg_temp.def('[{"resources": []}]')),
('resource that is a number', pg_temp.def('[{"resources": ["a", 1]}]')),
('resources beside a prompt', pg_temp.def('[{"prompt": "?", "resources": ["a"]}]')),
('retryable that is a string', pg_temp.def('[{"retryable": "yes"}]')),
('maxAttempts 0', pg_temp.def('[{"maxAttempts": 0}]')),
('maxAttempts 1.5', pg_temp.def('[{"maxAttempts": 1.5}]')),
('maxAttempts beyond numbers', pg_temp.def('[{"maxAttempts": 1e1000}]')),
('stallAfter that is no interval', pg_temp.def('[{"stallAfter": "soon"}]')),
('stallAfter 0', pg_temp.def('[{"stallAfter": "0 s"}]')),
('stallAfter below 0', pg_temp.def('[{}]', '{"stallAfter": "-1 hour"}')),
('stallAfter that overflows', pg_temp.def('[{}]', '{"stallAfter": "999999999999999 years"}')),
('stallAfter of a thousand years', pg_temp.def('[{}]', '{"stallAfter": "1000 years"}')),
('stallAfter that is a number', pg_temp.def('[{"stallAfter": 60}]')),
('onFailure unknown', pg_temp.def('[{}]', '{"onFailure": "ignore"}')),
('separateReviewer that is a number', pg_temp.def('[{}]', '{"separateReviewer": 1}')),
('outputFormattingNotes that are an array', pg_temp.def('[{}]', '{"outputFormattingNotes": []}')),
('outputs that are a string', pg_temp.def('[{}]', '{"outputs": "${steps.step_1.outputs}"}')),
-- dependencies
('dependsOn that is a string', pg_temp.def('[{"name": "a"}, {"dependsOn": "a"}]')),
('dependsOn with a number', pg_temp.def('[{"name": "a"}, {"dependsOn": ["a", 1]}]')),
('dependsOn without step', pg_temp.def('[{"name": "a"}, {"dependsOn": [{"required": false}]}]')),
('dependsOn with an unknown key', pg_temp.def('[{"name": "a"}, {"dependsOn": [{"step": "a", "optional": true}]}]')),
('dependsOn required a string', pg_temp.def('[{"name": "a"}, {"dependsOn": [{"step": "a", "required": "no"}]}]')),
('dependsOn unknown', pg_temp.def('[{"name": "fetch"}, {}, {"dependsOn": ["fecth"]}]')),
('dependsOn twice', pg_temp.def('[{"name": "a"}, {"dependsOn": ["a", {"step": "a", "required": false}]}]')),
('dependsOn itself', pg_temp.def('[{"name": "a", "dependsOn": ["a"]}]')),
('cycle of two', pg_temp.def('[{"name": "a", "dependsOn": ["b"]}, {"name": "b", "dependsOn": ["a"]}]')),
('cycle of three behind others', pg_temp.def('[{"name": "x"}, {"name": "y", "dependsOn": ["c"]}, {"name": "a", "dependsOn": ["x", "b"]},
    {"name": "b", "dependsOn": ["c"]}, {"name": "c", "dependsOn": ["a"]}]')),
('two cycles', pg_temp.def('[{"name": "a", "dependsOn": ["b"]}, {"name": "b", "dependsOn": ["a"]},
    {"name": "c", "dependsOn": ["d"]}, {"name": "d", "dependsOn": [{"step": "c", "required": false}]}]')),
-- references
('reference to an unknown input', pg_temp.def('[{"prompt": "${inputs.regoin}?"}]', '{"inputs": {"region": {}}}')),
('reference to an input, none declared', pg_temp.def('[{"prompt": "${inputs.region}?"}]')),
('reference to an unknown step', pg_temp.def('[{"name": "a"}, {"arguments": {"x": "${steps.aa.outputs}"}}]')),
('reference to an unknown binding', pg_temp.def('[{"binding": "b"}, {"arguments": {"x": "${bindings.c}"}}]')),
('reference deep in arguments', pg_temp.def('[{"arguments": {"config": {"urls": [1, {"url": "see ${steps.z.outputs}"}]}}}]')),
('reference to itself', pg_temp.def('[{"name": "a", "instructions": "${steps.a.outputs}"}]')),
('reference to its own binding', pg_temp.def('[{"binding": "b", "prompt": "${bindings.b}"}]')),
('reference to a later step', pg_temp.def('[{"name": "a", "arguments": {"x": "${steps.b.outputs}"}}, {"name": "b"}]')),
('reference to a later binding', pg_temp.def('[{"arguments": {"x": "${bindings.b}"}}, {"binding": "b"}]')),
('reference to no ancestor', pg_temp.def('[{"name": "a"}, {"name": "b", "dependsOn": []}, {"dependsOn": ["a"], "prompt": "${steps.b.outputs}"}]')),
('reference in resources', pg_temp.def('[{"resources": ["stepwise://artifact/${inputs.x}"]}]')),
('reference in a condition', pg_temp.def('[{"condition": "${steps.later.succeeded}"}, {"name": "later"}]')),
('reference in outputs', pg_temp.def('[{}]', '{"outputs": {"a": {"b": "${steps.z.outputs}"}}}')),
('reference into a step without workflow', pg_temp.def('[{"name": "a"}, {"prompt": "${steps.a.steps.b.outputs}"}]')),
('reference without end', pg_temp.def('[{"prompt": "${inputs.x"}]')),
('reference that is empty', pg_temp.def('[{"prompt": "${}"}]')),
('reference with an unknown root', pg_temp.def('[{"prompt": "${input.x}"}]')),
('reference to __internal__', pg_temp.def('[{"prompt": "${inputs.a.__internal__}"}]', '{"inputs": {"a": {}}}')),
-- conditions
('condition that is empty', pg_temp.def('[{"condition": ""}]')),
('condition that is a boolean', pg_temp.def('[{"condition": true}]')),
('condition that breaks off', pg_temp.def('[{"condition": "1 == "}]')),
('condition with an assignment', pg_temp.def('[{"condition": "1 = 1"}]')),
-- inputs
('inputs that are an array', pg_temp.def('[{}]', '{"inputs": ["a"]}')),
('input that is a string', pg_temp.def('[{}]', '{"inputs": {"a": "string"}}')),
('input of unknown type', pg_temp.def('[{}]', '{"inputs": {"a": {"type": "text"}}}')),
('input with an unknown key', pg_temp.def('[{}]', '{"inputs": {"a": {"requierd": true}}}')),
('input with required a string', pg_temp.def('[{}]', '{"inputs": {"a": {"required": "true"}}}')),
('input whose default has another type', pg_temp.def('[{}]', '{"inputs": {"a": {"type": "integer", "default": 1.5}}}')),
('input name with a dot', pg_temp.def('[{}]', '{"inputs": {"a.b": {}}}')),
-- branching conditions
('branching conditions that are an object', pg_temp.def('[{}]', '{"branchingConditions": {}}')),
('branching condition that is a string', pg_temp.def('[{}]', '{"branchingConditions": ["confidence < 0.5"]}')),
('branching condition that is empty', pg_temp.def('[{}]', '{"branchingConditions": [{}]}')),
('branching condition with an unknown key', pg_temp.branch('{"action": "fail"}')),
('afterStepOrder 0', pg_temp.branch('{"afterStepOrder": 0}')),
('afterStepOrder 3 of 2', pg_temp.branch('{"afterStepOrder": 3}')),
('afterStepOrder a name', pg_temp.branch('{"afterStepOrder": "a"}')),
('conditionExpression broken', pg_temp.branch('{"conditionExpression": "confidence <"}')),
('conditionExpression on a later step', pg_temp.branch('{"conditionExpression": "${steps.b.succeeded}"}')),
('unknown action', pg_temp.branch('{"ifTrueAction": "skipto"}')),
('continue with a parameter', pg_temp.branch('{"actionParams": {"reason": "x"}}')),
('actionParams that are an array', pg_temp.branch('{"actionParams": []}')),
('skip_to without parameters', pg_temp.branch('{"ifTrueAction": "skip_to"}')),
('skip_to with both', pg_temp.branch('{"ifTrueAction": "skip_to", "actionParams": {"stepOrder": 2, "stepName": "b"}}')),
('skip_to itself', pg_temp.branch('{"ifTrueAction": "skip_to", "actionParams": {"stepOrder": 1}}')),
('skip_to backwards', pg_temp.branch('{"afterStepOrder": 2, "ifTrueAction": "skip_to", "actionParams": {"stepName": "a"}}')),
('skip_to out of range', pg_temp.branch('{"ifTrueAction": "skip_to", "actionParams": {"stepOrder": 9}}')),
('skip_to an unknown step', pg_temp.branch('{"ifTrueAction": "skip_to", "actionParams": {"stepName": "c"}}')),
('skip_to with a foreign parameter', pg_temp.branch('{"ifTrueAction": "skip_to", "actionParams": {"stepName": "b", "reason": "x"}}')),
('fail with a foreign parameter', pg_temp.branch('{"ifTrueAction": "fail", "actionParams": {"summary": "x"}}')),
('fail with a reason that is a number', pg_temp.branch('{"ifTrueAction": "fail", "actionParams": {"reason": 1}}')),
('request_review without summary', pg_temp.branch('{"ifTrueAction": "request_review", "actionParams": {"questions": ["?"]}}')),
('request_review with a question that is a number', pg_temp.branch('{"ifTrueAction": "request_review", "actionParams": {"summary": "s", "questions": ["?", 1]}}')),
('add_steps without steps', pg_temp.branch('{"ifTrueAction": "add_steps"}')),
('add_steps with none', pg_temp.branch('{"ifTrueAction": "add_steps", "actionParams": {"steps": []}}')),
('add_steps with a name that is taken', pg_temp.branch('{"ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "b"}]}}')),
('add_steps with a faulty step', pg_temp.branch('{"ifTrueAction": "add_steps", "actionParams": {"steps": [{}, {"tool": 1}]}}')),
('add_steps that refers to a later step', pg_temp.branch('{"ifTrueAction": "add_steps", "actionParams": {"steps": [{"prompt": "${steps.b.outputs}"}]}}')),
('add_steps that refers forward among them', pg_temp.branch('{"ifTrueAction": "add_steps", "actionParams": {"steps": [{"prompt": "${steps.d.outputs}"}, {"name": "d"}]}}')),
('add_steps with a cycle', pg_temp.branch('{"ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "c", "dependsOn": ["d"]}, {"name": "d", "dependsOn": ["c"]}]}}')),
('add_steps that depends on an unknown step', pg_temp.branch('{"ifTrueAction": "add_steps", "actionParams": {"steps": [{"dependsOn": ["z"]}]}}')),
-- several at once
('faults of one kind', pg_temp.def('[{"name": "a", "dependsOn": ["b"]}, {"name": "b", "dependsOn": ["a", "b"]}]')),
('a missing workflow, then an unknown input', pg_temp.def('[{"name": "a", "workflow": "nowhere"}, {"name": "b", "instructions": "${inputs.x}"}]')),
('an unknown input, then a missing workflow', pg_temp.def('[{"name": "a", "instructions": "${inputs.x}"}, {"name": "b", "workflow": "nowhere"}]')),
('a circle, then an unknown input', pg_temp.def('[{"name": "a", "dependsOn": ["a"]}, {"name": "b", "instructions": "${inputs.x}", "dependsOn": []}]')),
('faults of several kinds', '{"steps": [{"name": "a b", "tool": "", "dependsOn": ["c"]}, {"maxAttempts": -1, "prompt": "${inputs.x}"}], "onFailure": 1, "x": 1}');

SELECT n, label, pg_temp.try(definition) FROM malformed ORDER BY n;

-- each was refused with an SQLSTATE of class SW, and validate_definition names the same paths
SELECT count(*) AS malformed, count(*) FILTER (WHERE pg_temp.try(definition) !~ '^SW') AS "not refused",
       count(*) FILTER (WHERE (stepwise.validate_definition(definition) ->> 'valid')::boolean) AS "found valid",
       count(*) FILTER (WHERE substr(pg_temp.try(definition), 7) <>
           (SELECT string_agg(coalesce(nullif(e ->> 'path', ''), '(all)'), ' ')
            FROM jsonb_array_elements(stepwise.validate_definition(definition) -> 'errors') AS e)) AS "otherwise validated"
FROM malformed;

-- and nothing is stored
SELECT count(*) AS stored FROM stepwise.workflow;

-- ---------- messages and hints ----------

SELECT label, f FROM malformed, pg_temp.faults(definition) AS f
WHERE label IN ('an empty object', 'unknown key of a step', 'step name with a space', 'step name twice', 'unknown type', 'tool and workflow',
    'tool that is null', 'workflow that does not exist', 'workflow that is itself', 'arguments that are too deep', 'stallAfter that is no interval',
    'dependsOn unknown', 'dependsOn itself', 'cycle of two', 'cycle of three behind others', 'two cycles', 'reference to an unknown input',
    'reference to an input, none declared', 'reference to an unknown step', 'reference to a later step', 'reference to no ancestor',
    'reference with an unknown root', 'reference into a step without workflow', 'condition that breaks off', 'input of unknown type',
    'input whose default has another type', 'afterStepOrder 3 of 2', 'unknown action', 'skip_to backwards', 'skip_to with both',
    'request_review without summary', 'continue with a parameter', 'faults of several kinds')
ORDER BY n;

-- the error as a client sees it: message, detail, hint
CREATE FUNCTION pg_temp.error(definition jsonb, OUT message text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stepwise.define_workflow(definition);
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
\x
SELECT * FROM pg_temp.error(pg_temp.def('[{"name": "fetch"}, {"dependsOn": ["fecth"]}]'));
SELECT * FROM pg_temp.error(pg_temp.def('[{"name": "a"}, {"dependsOn": ["b", "c"]}]'));
\x

-- a definition with a fault in every step: the list of faults is limited
SELECT jsonb_array_length(v -> 'errors'), v -> 'errorCount'
FROM stepwise.validate_definition(pg_temp.def((SELECT jsonb_agg('{"tool": 1}'::jsonb) FROM generate_series(1, 5000)))) AS v;

-- ---------- what is accepted ----------

CREATE TEMP TABLE wellformed (n int GENERATED ALWAYS AS IDENTITY, label text, definition jsonb);

INSERT INTO wellformed (label, definition) VALUES
('the least', pg_temp.def('[{}]')),
('every key', '{"name": "Deploy a service, größer", "description": "", "inputs": {"region": {"type": "string", "required": true, "description": "where"},
    "size": {"type": "integer", "default": 2.0}, "any": {}, "tags": {"type": "array", "default": []}, "größe": {"required": false}},
  "steps": [{"name": "lint", "instructions": "Look at ${inputs.region}"},
    {"name": "check", "type": "analyze", "tool": "check it", "arguments": {"a": ["${inputs.size}", {"b": "$${literal} ${plan.id}"}]}, "binding": "checked",
     "retryable": false, "resources": ["stepwise://artifact/${inputs.region}"], "dependsOn": ["lint"]},
    {"name": "deploy-2", "tool": "deploy", "arguments": {"config": "${bindings.checked}", "l": "${blocks.lint.outputs.x.0}"},
     "dependsOn": ["check", {"step": "lint", "required": false}], "condition": "${steps.check.succeeded} and ${inputs.size} >= 2",
     "maxAttempts": 3, "stallAfter": "10 minutes"},
    {"name": "approve", "type": "checkpoint", "prompt": "Keep it in ${inputs.größe}?", "dependsOn": ["deploy-2"]}],
  "branchingConditions": [
    {"afterStepOrder": 1, "conditionExpression": "confidence < 0.5", "ifTrueAction": "add_steps",
     "actionParams": {"steps": [{"name": "again", "prompt": "${steps.lint.outputs}"}, {"dependsOn": ["again", "lint"]}]}},
    {"afterStepOrder": 1, "conditionExpression": "result.x == 1 and ${steps.lint.succeeded}", "ifTrueAction": "skip_to", "actionParams": {"stepName": "deploy-2"}},
    {"afterStepOrder": 1, "conditionExpression": "outcome == \"failure\"", "ifTrueAction": "fail", "actionParams": {"reason": "no"}},
    {"afterStepOrder": 2, "conditionExpression": "confidence < 0.9", "ifTrueAction": "request_review", "actionParams": {"summary": "s", "questions": ["?"]}},
    {"afterStepOrder": 2, "conditionExpression": "true", "ifTrueAction": "continue"}],
  "outputs": {"url": "${steps.deploy-2.outputs.url}", "n": 1}, "onFailure": "pause", "stallAfter": "1 hour", "separateReviewer": true,
  "outputFormattingNotes": "short"}'),
('references backwards in a sequence', pg_temp.def('[{"name": "a", "binding": "x"}, {"name": "b", "prompt": "${bindings.x}"}, {"prompt": "${steps.a.outputs} ${steps.b.outputs}"}]')),
('dependencies forwards', pg_temp.def('[{"name": "b", "dependsOn": ["a"], "prompt": "${steps.a.outputs}"}, {"name": "a"}]')),
('reference to an ancestor far above', pg_temp.def('[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": [{"step": "b", "required": false}]},
    {"dependsOn": ["c"], "prompt": "${steps.a.outputs}"}]')),
('default name beside a given one', pg_temp.def('[{"name": "step_2"}, {}, {}, {"prompt": "${steps.step_3.outputs} ${steps.step_4.outputs}"}]')),
('name of 63 characters', pg_temp.def(jsonb_build_array(jsonb_build_object('name', repeat('x', 63))))),
('outputs from any step', pg_temp.def('[{"name": "a"}, {"name": "b", "dependsOn": []}]', '{"outputs": {"x": "${steps.a.outputs}${steps.b.outputs}"}}')),
('arguments as deep as may be', pg_temp.def(jsonb_build_array(jsonb_build_object('arguments',
    (repeat('{"a":', 64) || '1' || repeat('}', 64))::jsonb))));

SELECT n, label, stepwise.validate_definition(definition) -> 'errors' FROM wellformed ORDER BY n;

-- possible mistakes give warnings, but no error
SELECT jsonb_pretty(stepwise.validate_definition(pg_temp.def('[{"tool": "mine"}, {}, {"tool": "state_read"}]')) -> 'warnings');

-- ---------- many steps ----------

-- a sequence in which each step refers to the first; then a chain of dependencies, in which the ancestors are far away
CREATE FUNCTION pg_temp.many(n int, chained boolean) RETURNS jsonb LANGUAGE sql AS $$
    SELECT pg_temp.def(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('name', 's' || i, 'tool', 't',
        'arguments', CASE WHEN i > 1 THEN '{"x": "${steps.s1.outputs}"}'::jsonb END,
        'dependsOn', CASE WHEN chained AND i > 1 THEN jsonb_build_array('s' || i - 1) END)) ORDER BY i))
    FROM generate_series(1, n) AS i
$$;
SELECT pg_temp.try(pg_temp.many(10000, false) || '{"name": "many"}'),
       pg_temp.try(pg_temp.many(10001, false) || '{"name": "too many"}');
SELECT pg_temp.try(pg_temp.many(10000, true) || '{"name": "chained"}');

-- a cycle through all of them is shown in part
SELECT regexp_replace(f, 's\d+ → ', '', 'g') FROM pg_temp.faults(pg_temp.def((SELECT jsonb_agg(jsonb_build_object('name', 's' || i,
    'dependsOn', jsonb_build_array('s' || i % 1000 + 1)) ORDER BY i) FROM generate_series(1, 1000) AS i))) AS f;

-- steps that a branch may add count too
SET stepwise.max_steps = 3;
SELECT pg_temp.try(pg_temp.branch('{"ifTrueAction": "add_steps", "actionParams": {"steps": [{}, {}]}}'));
RESET stepwise.max_steps;

-- ---------- versions ----------

SELECT stepwise.drop_workflow('many'), stepwise.drop_workflow('chained');
SELECT stepwise.define_workflow('{"name": "v", "steps": [{"name": "a"}]}');
-- the same definition in another notation is no new version
SELECT stepwise.define_workflow('{"steps": [{"name":   "a"}], "name": "v"}');
SELECT stepwise.define_workflow('{"name": "v", "description": "changed", "steps": [{"name": "a"}, {}], "inputs": {"x": {}}}');
-- back to the first is a change
SELECT stepwise.define_workflow('{"name": "v", "steps": [{"name": "a"}]}');
SELECT stepwise.get_workflow('v') - 'createdAt';
SELECT stepwise.get_workflow('v', 2) - 'createdAt';
SELECT jsonb_path_query(stepwise.list_workflows(), '$.workflows[*]') - 'createdAt';
SELECT stepwise.drop_workflow('v', 2);
SELECT stepwise.get_workflow('v') -> 'versions';
\set VERBOSITY sqlstate
SELECT stepwise.get_workflow('v', 2);
SELECT stepwise.get_workflow('v', 0);
SELECT stepwise.get_workflow('vv');
SELECT stepwise.get_workflow(NULL);
SELECT stepwise.drop_workflow('vv');
SELECT stepwise.drop_workflow('v', 2);

-- ---------- nested workflows ----------

SELECT pg_temp.try('{"name": "outer", "steps": [{"name": "n", "workflow": "v"}, {"prompt": "${steps.n.steps.a.outputs}"}]}');
SELECT pg_temp.try('{"name": "pinned", "steps": [{"workflow": "v", "version": 1}]}');
SELECT pg_temp.try('{"name": "lost", "steps": [{"workflow": "v", "version": 2}]}');
-- a circle, through a step and through one that a branch adds
SELECT pg_temp.faults('{"name": "v", "steps": [{"workflow": "outer"}]}');
SELECT pg_temp.try('{"name": "adds", "steps": [{}], "branchingConditions": [{"afterStepOrder": 1, "conditionExpression": "true",
    "ifTrueAction": "add_steps", "actionParams": {"steps": [{"workflow": "outer"}]}}]}');
SELECT pg_temp.faults('{"name": "v", "steps": [{}, {"workflow": "adds"}]}');
SELECT pg_temp.faults('{"name": "v", "steps": [{"workflow": "v"}]}');
-- workflows that are called cannot be dropped: a version that is named, and the last version
SELECT stepwise.drop_workflow('v', 1);
SELECT stepwise.drop_workflow('v');
SELECT stepwise.drop_workflow('v', 3);
SELECT stepwise.drop_workflow('pinned');
SELECT stepwise.drop_workflow('v', 1);
SELECT stepwise.drop_workflow('v', 3);
SELECT stepwise.drop_workflow('outer');
SELECT stepwise.drop_workflow('adds'), stepwise.drop_workflow('outer');
SELECT stepwise.drop_workflow('v', 1);
-- with recursion allowed, a workflow may name itself before it exists
SET stepwise.allow_recursion = on;
SELECT pg_temp.try('{"name": "again", "steps": [{"workflow": "again"}]}');
SELECT pg_temp.try('{"name": "again2", "steps": [{"workflow": "again3"}]}');
RESET stepwise.allow_recursion;
SELECT pg_temp.faults('{"name": "caller", "steps": [{"workflow": "again"}]}');
SELECT stepwise.drop_workflow('again');
SELECT count(*) AS "left over" FROM stepwise.workflow;

-- ---------- values of inputs ----------

SELECT stepwise.define_workflow('{"name": "typed", "steps": [{}], "inputs": {"text": {"type": "string"}, "number": {"type": "number", "default": 0.5},
    "count": {"type": "integer", "default": 2}, "flag": {"type": "boolean", "required": false}, "list": {"type": "array", "default": []},
    "map": {"type": "object", "required": false}, "any": {"required": false}, "note": {"type": "string", "default": "none"}}}');

-- Start it: the inputs that the plan has, or the SQLSTATE and the faults.
CREATE FUNCTION pg_temp.start(inputs jsonb) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    plan uuid;
    code text;
    list text;
BEGIN
    plan := stepwise.start_workflow('typed', inputs) ->> 'planId';
    RETURN QUERY SELECT p.inputs::text FROM stepwise.plan AS p WHERE p.id = plan;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, list = PG_EXCEPTION_DETAIL;
    RETURN QUERY SELECT format('%s %s: %s [%s]', code, e ->> 'path', e ->> 'message', e ->> 'hint')
        FROM jsonb_array_elements(list::jsonb) AS e;
END $$;

-- accepted, completed with the defaults
SELECT pg_temp.start('{"text": "x"}');
SELECT pg_temp.start('{"text": "x", "number": 1e-30, "count": 3.0, "flag": false, "list": [null], "map": {"a": {}}, "any": null, "note": ""}');
-- refused, all faults in one error
SELECT pg_temp.start('{}');
SELECT pg_temp.start('{"text": ""}');
SELECT pg_temp.start('{"text": null}');
SELECT pg_temp.start('{"text": 1, "number": "1", "count": 1.5, "flag": "true", "list": {}, "map": [], "note": null}');
SELECT pg_temp.start('{"text": "x", "numbr": 1, "zzzzzzzzz": 1}');
SELECT pg_temp.start('["text"]');
SELECT pg_temp.start(jsonb_build_object('text', repeat('x', 1100000)));
SELECT count(*) AS plans FROM stepwise.plan WHERE workflow = 'typed';
-- a version that an unfinished plan uses cannot be dropped until the plan ends
SELECT stepwise.drop_workflow('typed');
UPDATE stepwise.step SET status = 'skipped' WHERE status = 'pending';
SELECT stepwise.drop_workflow('typed');
-- the same for a version that a step of the plan will open
SELECT pg_temp.try('{"name": "inner", "steps": [{}]}'), pg_temp.try('{"name": "outer", "steps": [{"workflow": "inner"}]}');
SELECT stepwise.start_workflow('outer') ->> 'status';
SELECT stepwise.drop_workflow('outer');
SELECT stepwise.drop_workflow('inner');
UPDATE stepwise.step SET status = 'skipped' WHERE status = 'pending';
SELECT stepwise.drop_workflow('outer'), stepwise.drop_workflow('inner');
