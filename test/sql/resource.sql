-- Steps with resources: artifacts and registered functions, without and with a tool, and errors.

\pset format unaligned
\pset tuples_only on
SET client_min_messages = warning;

CREATE SCHEMA regress_resource;
GRANT USAGE ON SCHEMA regress_resource TO PUBLIC;
SET search_path = regress_resource;

CREATE FUNCTION told(answer jsonb) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' | ', answer ->> 'task_status',
        (SELECT string_agg(s ->> 'name' || ' ' || (s ->> 'status'), ', ') FROM jsonb_array_elements(answer -> 'steps') AS s), answer ->> 'pause_reason')
$$;
CREATE FUNCTION plan(steps jsonb, on_failure text = 'continue', inputs jsonb = '{}') RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('plan', 'to be run', steps, on_failure => on_failure, inputs => inputs) ->> 'planId')::uuid
$$;

CREATE TABLE page (uri text, content text);
INSERT INTO page VALUES ('docs://one', 'page one'), ('docs://two/deep', 'page two');
CREATE FUNCTION page(uri text) RETURNS jsonb LANGUAGE sql AS $$ SELECT jsonb_build_object('text', p.content) FROM page AS p WHERE p.uri = $1 $$;
CREATE FUNCTION other(a jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT a || '{"read": true}' $$;
CREATE FUNCTION broken(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO page VALUES ('never', 'seen');
    RAISE EXCEPTION 'no connection to %', a ->> 'uri' USING errcode = '08001';
END $$;
CREATE FUNCTION huge(uri text) RETURNS jsonb LANGUAGE sql AS $$ SELECT to_jsonb(repeat('x', 600000)) $$;
CREATE FUNCTION say(a jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT a';
SELECT stepwise.register_resource(pattern, function::regprocedure) ->> 'function'
FROM (VALUES ('docs://*', 'page(text)'), ('docs://other/*/x', 'other(jsonb)'), ('docs://other/*', 'page(text)'), ('down://*', 'broken(jsonb)'), ('huge://*', 'huge(text)')) AS v (pattern, function);
SELECT stepwise.register_tool('say', 'say(jsonb)') ->> 'name';

-- ---------- read ----------

SELECT plan('[{"name": "read", "resources": ["docs://one", "docs://${inputs.which}/deep", "docs://other/1/2/x", "stepwise://artifact/report"], "instructions": "read them"},
              {"name": "use", "tool": "say", "arguments": {"first": "${steps.read.outputs.resources.0.content.text}", "report": "${steps.read.outputs.resources.3.content}"}},
              {"name": "both", "tool": "say", "arguments": {"a": 1}, "resources": ["docs://one"]}]', inputs => '{"which": "two"}') AS id \gset
SELECT stepwise.store_artifact(:'id', 'report', content, media_type => 'text/plain') ->> 'name' FROM unnest('{old,new}'::text[]) AS content;
SELECT told(stepwise.run(:'id'));
SELECT name, jsonb_pretty(result) FROM stepwise.step WHERE plan_id = :'id' ORDER BY step_order;

-- an artifact with data: of the plan itself, else of its tree, never of another tree
SELECT stepwise.define_workflow('{"name": "reader", "steps": [{"name": "read", "resources": ["stepwise://artifact/a", "stepwise://artifact/b"]}], "outputs": {"read": "${steps.read.outputs.resources}"}}') ->> 'name';
SELECT plan('[{"name": "make", "instructions": "make it"}, {"name": "nested", "workflow": "reader"}]') AS id \gset
SELECT stepwise.store_artifact(:'id', 'a', 'of the root', data => '{"x": 1}') ->> 'name', stepwise.store_artifact(:'id', 'b', 'of the root') ->> 'name';
SELECT stepwise.submit_step_result(id, '1') ->> 'stepStatus' FROM stepwise.step WHERE plan_id = :'id' AND name = 'make';
SELECT told(stepwise.run(:'id'));
SELECT jsonb_pretty(result) FROM stepwise.step WHERE plan_id = :'id' AND name = 'nested';
SELECT stepwise.run(plan('[{"name": "read", "resources": ["stepwise://artifact/a"]}]', 'pause')) -> 'pause_reason';

-- ---------- handed out to an agent with resolved URIs, also when it asks again ----------

SELECT plan('[{"name": "read", "resources": ["docs://${inputs.x}"]}]', inputs => '{"x": "one"}') AS id \gset
SELECT n -> 'resources', n -> 'again' FROM stepwise.get_next_step(:'id', 'w') AS n;
SELECT n -> 'resources', n -> 'again' FROM stepwise.get_next_step(:'id', 'w') AS n;

-- ---------- errors are always reported ----------

SELECT uri, told(r)
FROM unnest('{docs://none,down://x,nowhere://x,stepwise://artifact/none,stepwise://plan/x,stepwise://,"",docs:/one}'::text[]) AS uri,
     LATERAL (SELECT stepwise.run(plan(jsonb_build_array(jsonb_build_object('name', 'read', 'resources', jsonb_build_array('docs://one', uri || '${inputs.nothing}')),
                                                         '{"name": "next", "tool": "summarize"}'::jsonb), 'pause', '{"nothing": ""}')) AS r OFFSET 0) AS r;
SELECT count(*) FROM page WHERE uri = 'never';
-- with a tool, that tool is suggested; without a later tool, none
SELECT stepwise.run(plan('[{"name": "read", "tool": "say", "resources": ["down://x"], "retryable": true}]', 'pause')) -> 'pause_reason';
SELECT stepwise.run(plan('[{"name": "read", "resources": ["down://x"]}]', 'pause')) -> 'pause_reason' ->> 'suggestedTool' = '';
-- a step without a tool gets none from a step that the search has passed before
SELECT stepwise.register_tool('demanding', 'other(jsonb)', '{"type": "object", "required": ["x"]}') ->> 'name';
SELECT plan('[{"name": "strict", "tool": "demanding"}, {"name": "read", "resources": ["docs://one"]}, {"name": "last", "tool": "say", "dependsOn": ["strict"]}]') AS id \gset
SELECT stepwise.run(:'id') #>> '{pause_reason,type}';
SELECT name, status, result FROM stepwise.step WHERE plan_id = :'id' ORDER BY step_order;

-- the sum of all resources must be within the limit
SELECT stepwise.run(plan('[{"name": "read", "resources": ["huge://1", "huge://2"]}]', 'pause')) -> 'pause_reason';
-- like any failed step: on_failure applies, and it can be retried
SELECT plan('[{"name": "read", "resources": ["docs://later"]}, {"name": "use", "tool": "say", "arguments": {"x": "${steps.read.outputs.resources.0.content.text}"}}]', 'pause') AS id \gset
SELECT told(stepwise.run(:'id'));
INSERT INTO page VALUES ('docs://later', 'now it is there');
SELECT stepwise.retry_step(id) ->> 'stepStatus' FROM stepwise.step WHERE plan_id = :'id' AND name = 'read';
SELECT told(stepwise.run(:'id'));
SELECT result FROM stepwise.step WHERE plan_id = :'id' AND name = 'use';
SELECT on_failure, told(stepwise.run(plan('[{"name": "read", "resources": ["docs://none"]}, {"name": "next", "tool": "say"}]', on_failure))) FROM unnest('{continue,fail}'::text[]) AS on_failure;
-- a missing value in a URI is not an error of the resource
SELECT stepwise.run(plan('[{"name": "read", "resources": ["docs://${inputs.a.b}"]}]', inputs => '{"a": 1}')) -> 'pause_reason';
-- a client tool with resources: the client reads them
SELECT stepwise.run(plan('[{"name": "read", "tool": "mine", "resources": ["docs://one"], "arguments": {"x": 1}}]')) -> 'pause_reason';
-- the schema of a tool may require them
SELECT stepwise.register_tool('strict', 'say(jsonb)', '{"required": ["resources", "x"], "properties": {"resources": {"type": "array"}}}') ->> 'name';
SELECT told(stepwise.run(plan('[{"name": "read", "tool": "strict", "resources": ["docs://one"], "arguments": {"x": 1}}]')));

-- ---------- read as the caller ----------

CREATE ROLE regress_resource_agent;
SELECT stepwise.grant_agent('regress_resource_agent') ->> 'granted', stepwise.add_member('regress_resource_agent', 'default') ->> 'added';
SET ROLE regress_resource_agent;
SELECT stepwise.run(plan('[{"name": "read", "resources": ["docs://one"]}]', 'pause')) -> 'pause_reason' ->> 'error';
RESET ROLE;
DROP OWNED BY regress_resource_agent;
SELECT stepwise.remove_member('regress_resource_agent', 'default') ->> 'removed';
DROP ROLE regress_resource_agent;

SELECT * FROM stepwise.check_integrity();
SELECT DISTINCT stepwise.verify_audit(id) -> 'valid' FROM stepwise.plan WHERE tenant = stepwise.current_tenant();

SELECT count(stepwise.drop_resource(pattern)) FROM stepwise.resource WHERE tenant = stepwise.current_tenant();
SELECT count(stepwise.drop_tool(name)) > 0 FROM stepwise.tool WHERE tenant = stepwise.current_tenant() AND coalesce(function, 'regress_resource.') LIKE 'regress_resource.%';
DROP SCHEMA regress_resource CASCADE;
