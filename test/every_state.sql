-- Plans in every state, with all kinds of rows that belong to them, in two tenants, for the tests of dump and standby.
CREATE FUNCTION public.plan(name text) RETURNS uuid LANGUAGE sql STABLE AS 'SELECT p.id FROM stepwise.plan AS p WHERE p.name = plan.name';
CREATE FUNCTION public.step(plan text, name text) RETURNS uuid LANGUAGE sql STABLE AS
    'SELECT s.id FROM stepwise.step AS s WHERE s.plan_id = public.plan(plan) AND s.name = step.name';
CREATE FUNCTION public.echo(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION public.page(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT ''{"text": "page"}''::jsonb';

-- purge the first plan, so that the log has entries without a plan
SELECT stepwise.create_plan('purged', 'gone', '[{"name": "a"}]');
UPDATE stepwise.step SET status = 'skipped' WHERE id = public.step('purged', 'a');
CALL stepwise.purge('infinity');

SELECT stepwise.register_tool('echo', 'public.echo(jsonb)', '{"type": "object"}', 'gives back what it gets', true, true);
SELECT stepwise.register_tool('client', NULL, NULL, 'called by the client');
SELECT stepwise.register_resource('page://*', 'public.page(jsonb)');
SELECT stepwise.state_write('{"name": "counter", "value": {"n": 12345678901234567890.123}}');

SELECT stepwise.define_workflow('{"name": "nested", "steps": [{"name": "x"}, {"name": "y"}]}');
SELECT stepwise.define_workflow('{"name": "nested", "steps": [{"name": "x"}, {"name": "y", "prompt": "Go on, ${inputs.who}?"}],
    "inputs": {"who": {"type": "string", "default": "Ünïcödé 🐘"}}, "outputs": {"all": "${steps.x.outputs}"}}');

SELECT stepwise.create_plan('planning', 'not begun', '[{"name": "a"}, {"name": "b", "tool": "client", "arguments": {"k": "${inputs.i}"}, "condition": "${inputs.i} in [1, 2]"}]',
    inputs => '{"i": 1}', outputs => '{"o": "${steps.b.outputs}"}', idempotency_key => 'key', design_rationale => 'because', stall_after => '1 day');

SELECT stepwise.create_plan('executing', 'all states of a step but one', '[{"name": "done"}, {"name": "failed"}, {"name": "skipped", "dependsOn": ["failed"]},
    {"name": "running", "dependsOn": ["done"]}, {"name": "pending", "dependsOn": [{"step": "running", "required": false}, "done"]}]',
    '[{"afterStepOrder": 4, "conditionExpression": "confidence < 0.5", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"name": "more"}]}}]', session_id => 'session');
SELECT stepwise.get_next_step(public.plan('executing'), 'worker');
SELECT stepwise.submit_step_result(public.step('executing', 'done'), jsonb_build_object('text', repeat('Ünïcödé ', 20000), 'n', 1.10), 'a summary', 0.75, '{"tokens": 7}', 'as a table');
SELECT stepwise.fail_step(public.step('executing', 'failed'), 'it broke', true);
SELECT stepwise.get_next_step(public.plan('executing'), 'worker', '1 hour', 'another session');
SELECT stepwise.store_artifact(public.plan('executing'), 'notes', 'The quick brown fox', public.step('executing', 'done'), 'text/plain', '{"a": [1, 2]}', 'https://example.org/');
SELECT stepwise.set_variables(public.plan('executing'), '{"own": {"deep": [null, true]}}');

SELECT stepwise.create_plan('awaiting_review', 'waits for a decision', '[{"name": "a", "instructions": "look"}, {"name": "b"}]', separate_reviewer => true);
SELECT stepwise.get_next_step(public.plan('awaiting_review'), 'worker');
SELECT stepwise.request_user_review(public.step('awaiting_review', 'a'), 'Good?', '["Why?"]');

SELECT stepwise.create_plan('nesting', 'waits for an answer, one level down', '[{"name": "holder", "workflow": "nested"}, {"name": "after"}]');
SELECT stepwise.get_next_step(public.plan('nesting'));
SELECT stepwise.submit_step_result((SELECT s.id FROM stepwise.step AS s WHERE s.root_id = public.plan('nesting') AND s.name = 'x'), '"x"');
SELECT stepwise.get_next_step(public.plan('nesting'));

SELECT stepwise.create_plan('paused', 'a failed step under pause', '[{"name": "a"}, {"name": "b"}]', on_failure => 'pause');
SELECT stepwise.get_next_step(public.plan('paused'));
SELECT stepwise.fail_step(public.step('paused', 'a'), 'no luck');

SELECT stepwise.create_plan('stalled', 'nobody there', '[{"name": "a", "stallAfter": "1 minute", "maxAttempts": 3}, {"name": "b"}]');
SELECT stepwise.get_next_step(public.plan('stalled'));
UPDATE stepwise.step SET active_at = now() - interval '1 hour' WHERE id = public.step('stalled', 'a');
SELECT stepwise.get_plan_status(public.plan('stalled'));

SELECT stepwise.create_plan('completed', 'in the database', '[{"name": "a", "tool": "echo", "arguments": {"v": 1}, "binding": "bound"},
    {"name": "b", "tool": "echo", "arguments": {"v": "${bindings.bound.v}"}}]', outputs => '{"v": "${steps.b.outputs.v}"}');
SELECT stepwise.run(public.plan('completed'));
SELECT stepwise.store_output(public.plan('completed'), '# Done');
SELECT stepwise.log_skill_execution('a skill', 'started', 'session', public.plan('completed'), '{"outputMediaType": "text/html"}');

SELECT stepwise.create_plan('unsuccessful', 'completed, with outcome failure', '[{"name": "a"}]');
SELECT stepwise.submit_step_result(public.step('unsuccessful', 'a'), 'null', outcome => 'failure');
SELECT stepwise.create_plan('failed', 'fails with its step', '[{"name": "a"}, {"name": "b"}]', on_failure => 'fail');
UPDATE stepwise.step SET status = 'failed', message = 'by hand' WHERE id = public.step('failed', 'a');
SELECT stepwise.create_plan('failed branch', 'fails by a branch', '[{"name": "a"}, {"name": "b"}]',
    '[{"afterStepOrder": 1, "conditionExpression": "result.bad == true", "ifTrueAction": "fail", "actionParams": {"reason": "bad"}}]');
SELECT stepwise.submit_step_result(public.step('failed branch', 'a'), '{"bad": true}');
SELECT stepwise.create_plan('cancelled', 'cancelled', '[{"name": "a"}, {"name": "b"}]');
SELECT stepwise.cancel_plan(public.plan('cancelled'), 'enough');
SELECT stepwise.fork_plan(public.plan('completed'), 'b');

SELECT stepwise.add_member('agent', 'other');
BEGIN;
SELECT stepwise.enter_tenant('other');
SELECT stepwise.create_plan('elsewhere', 'in another tenant', '[{"name": "a"}, {"name": "b"}]');
SELECT stepwise.get_next_step(public.plan('elsewhere'));
COMMIT;
