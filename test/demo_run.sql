-- A part of "make demo": a deployment runs in the database, fails once, is handed off, continued and completed.
-- test/demo.sql includes this file, and defines pg_temp.claim and pg_temp.steps.

\echo
\echo '================================================================'
\echo ' A deployment: in the database, out to the client, and back'
\echo '================================================================'
\echo
\echo 'Tools are SQL functions that take and return jsonb. They run with the rights of the caller:'
CREATE TABLE public.zone (name text PRIMARY KEY, room int);
INSERT INTO public.zone VALUES ('eu-1', 0);
CREATE TABLE public.service (name text, zone text, url text);

CREATE FUNCTION public.check_config(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RETURN a || '{"checked": true}';
END $$;
CREATE FUNCTION public.deploy_service(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO public.service VALUES (a #>> '{config,name}', a ->> 'zone', 'https://shop.example.org');
    IF (SELECT room FROM public.zone WHERE name = a ->> 'zone') < 1 THEN
        RAISE EXCEPTION 'no room in zone %', a ->> 'zone';
    END IF;
    RETURN '{"url": "https://shop.example.org"}';
END $$;
CREATE FUNCTION public.announce(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RETURN to_jsonb(format('%s is live, answered in %s ms', a ->> 'url', a ->> 'ms'));
END $$;
SELECT t ->> 'name' AS tool, t ->> 'function' AS function FROM (VALUES
    (stepwise.register_tool('check_config', 'public.check_config(jsonb)')),
    (stepwise.register_tool('deploy_service', 'public.deploy_service(jsonb)', retryable => true,
        input_schema => '{"type": "object", "required": ["config", "zone"], "properties": {"zone": {"type": "string"}}}')),
    (stepwise.register_tool('announce', 'public.announce(jsonb)'))) AS v (t);

\echo 'A workflow uses them. smoke_test is not registered, so the client calls it.'
SELECT stepwise.define_workflow('{
    "name": "deploy", "description": "Deploy a service",
    "inputs": {"name": {"type": "string"}, "zone": {"type": "string"}},
    "steps": [
      {"name": "check",    "tool": "check_config",   "arguments": {"name": "${inputs.name}"}, "binding": "config"},
      {"name": "deploy",   "tool": "deploy_service", "arguments": {"config": "${bindings.config}", "zone": "${inputs.zone}"}},
      {"name": "smoke",    "tool": "smoke_test",     "arguments": {"url": "${steps.deploy.outputs.url}"}, "instructions": "Open the page once"},
      {"name": "announce", "tool": "announce",       "arguments": {"url": "${steps.deploy.outputs.url}", "ms": "${steps.smoke.outputs.ms}"}}],
    "outputs": {"message": "${steps.announce.outputs}"},
    "onFailure": "pause"}') ->> 'version' AS version;
SELECT stepwise.start_workflow('deploy', '{"name": "shop", "zone": "eu-1"}') ->> 'planId' AS plan \gset

\echo 'One call runs the plan as far as possible. The zone is full:'
SELECT stepwise.run(:'plan') AS answer \gset
SELECT jsonb_pretty(CAST(:'answer' AS jsonb) - 'task_id') AS run;
\echo 'The tool had inserted a row before it failed. Only the writes of the tool are rolled back:'
SELECT count(*) AS services FROM public.service;
SELECT no, name, status, note FROM pg_temp.steps WHERE plan_id = :'plan' ORDER BY no;

\echo 'why tells the cause to a program, and handoff tells it to a language model:'
SELECT w ->> 'waitingOn' AS "waiting on", w ->> 'message' AS why, w -> 'nextCall' ->> 'function' AS "next call" FROM stepwise.why(:'plan') AS w;
\t on
\a
SELECT stepwise.handoff(:'plan');
\a
\t off

\echo 'The zone gets more room. The step is retried, and the run continues. Finished steps are not run again:'
UPDATE public.zone SET room = 1 WHERE name = 'eu-1';
SELECT stepwise.retry_step(id) ->> 'stepStatus' AS "deploy is" FROM stepwise.step WHERE plan_id = :'plan' AND name = 'deploy';
SELECT r ->> 'task_status' AS task, r -> 'pause_reason' ->> 'type' AS "stopped by", r -> 'pause_reason' ->> 'suggestedTool' AS tool,
       r -> 'pause_reason' ->> 'arguments' AS arguments
FROM stepwise.run(:'plan') AS r;
\t on
\a
SELECT stepwise.handoff(:'plan');
\a
\t off

\echo 'The client calls smoke_test and records its result, and the plan completes:'
SELECT r ->> 'stepStatus' AS "smoke is", r ->> 'planStatus' AS "the plan is"
FROM stepwise.record_tool_result(:'plan', 'smoke_test', '{"ms": 41}') AS r;
SELECT r ->> 'task_status' AS task FROM stepwise.run(:'plan') AS r;
SELECT no, name, status, attempt FROM pg_temp.steps WHERE plan_id = :'plan' ORDER BY no;
SELECT outputs ->> 'message' AS message FROM stepwise.plan WHERE id = :'plan';
SELECT pg_temp.claim('the deployment failed once, was continued, and completed; its chain is valid',
    (SELECT status = 'completed' AND outcome = 'success' FROM stepwise.plan WHERE id = :'plan')
    AND (SELECT count(*) = 1 FROM stepwise.audit WHERE plan_id = :'plan' AND event = 'step_failed')
    AND (SELECT attempt = 1 FROM stepwise.step WHERE plan_id = :'plan' AND name = 'check')
    AND (SELECT count(*) = 1 FROM public.service)
    AND stepwise.verify_audit(:'plan') ->> 'valid' = 'true') AS ok \gset
\echo :ok
