# Calls of the functions that agents and readers use, each twice: for what the first call of a connection costs more than the second.
package FirstCalls;

use strict;
use warnings;
use Exporter qw(import);

our @EXPORT_OK = qw(FIXTURES functions calls);

# What the calls are about. Each call of first.of makes a new one, and returns its id.
use constant FIXTURES => <<'SQL';
CREATE SCHEMA first;
GRANT USAGE ON SCHEMA first TO PUBLIC;
CREATE FUNCTION first.nothing(jsonb) RETURNS jsonb LANGUAGE internal IMMUTABLE AS 'jsonb_build_object_noargs';
SELECT stepwise.state_write('{"name": "first", "value": 1}') \g /dev/null
SELECT stepwise.register_tool('first_tool', 'first.nothing(jsonb)') \g /dev/null

CREATE FUNCTION first.plan(size int = 10, tool text = 'inspect') RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('first', 'See how long it takes', jsonb_agg(jsonb_build_object(
                'name', 'step_' || i, 'tool', tool, 'instructions', 'Look at item ' || i, 'arguments', jsonb_build_object('item', i)))) ->> 'planId')::uuid
    FROM generate_series(1, size) AS i
$$;

CREATE FUNCTION first.of(kind text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    plan uuid := first.plan(tool => CASE WHEN kind = 'runnable' THEN 'first_tool' ELSE 'inspect' END);
    step uuid := stepwise.get_next_step(plan) ->> 'stepId';
BEGIN
    CASE kind
        WHEN 'plan', 'runnable' THEN
            PERFORM stepwise.release_step(step);
            RETURN plan;
        WHEN 'pending' THEN
            RETURN s.id FROM stepwise.step AS s WHERE s.plan_id = plan ORDER BY s.step_order DESC LIMIT 1;
        WHEN 'claimed' THEN
            RETURN step;
        WHEN 'halfway' THEN
            PERFORM stepwise.advance(step, '{"value": 42}');
            PERFORM stepwise.store_artifact(plan, 'notes', 'What was found so far');
            PERFORM stepwise.store_output(plan, 'What was found');
            RETURN plan;
        WHEN 'failed' THEN
            PERFORM stepwise.fail_step(step, 'it did not work', retryable => false);
            RETURN step;
        WHEN 'review' THEN
            RETURN stepwise.request_user_review(step, 'Is this right?') ->> 'checkpointId';
        WHEN 'workflow' THEN
            RETURN stepwise.define_workflow(jsonb_build_object('name', 'first_' || plan, 'steps', jsonb_build_array(jsonb_build_object(
                       'name', 'a', 'instructions', 'b')))) ->> 'name';
        WHEN 'prompt' THEN
            plan := stepwise.create_plan('first', 'Ask', '[{"name": "ask", "prompt": "Which one?"}, {"name": "go", "instructions": "Go"}]') ->> 'planId';
            RETURN stepwise.get_next_step(plan) ->> 'checkpointId';
    END CASE;
END $$;
SQL

my $definition = '{"name": "first_new", "steps": [{"name": "a", "instructions": "b"}, {"name": "c", "instructions": "d"}]}';

# Of each function: the arguments, and what their %s is. Without it, both calls are the same. CALL is for procedures.
my %calls = (
	advance => [ q{'%s', '{"value": 42}'}, 'claimed' ],
	audit_head => [ q{'%s'}, 'halfway' ],
	call => [ q{'get_next_step', '{"planId": "%s"}'}, 'plan' ],
	cancel_plan => [ q{'%s'}, 'plan' ],
	create_plan => [q{'first', 'See how long it takes', '[{"name": "a", "instructions": "b"}]'}],
	current_tenant => [''],
	define_workflow => [qq{'$definition'}],
	drop_workflow => [ q{'%s'}, 'workflow' ],
	enter_tenant => [q{'default'}],
	execution => [ q{'%s'}, 'halfway' ],
	execution_as_of => [ q{'%s', now()}, 'halfway' ],
	fail_step => [ q{'%s', 'it did not work'}, 'claimed' ],
	find_plans => [q{'long'}],
	fork_plan => [ q{'%s', 'step_1'}, 'halfway' ],
	get_artifact => [ q{'%s', 'notes'}, 'halfway' ],
	get_next_step => [ q{'%s'}, 'plan' ],
	get_output => [ q{'%s'}, 'halfway' ],
	get_plan_context => [ q{'%s'}, 'halfway' ],
	get_plan_status => [ q{'%s'}, 'halfway' ],
	get_step_context => [ q{'%s'}, 'claimed' ],
	get_workflow => [ q{'%s'}, 'workflow' ],
	handoff => [ q{'%s'}, 'halfway' ],
	heartbeat => [ q{'%s'}, 'claimed' ],
	help => [''],
	list_active_plans => ['max => 5'],
	list_checkpoints => ['max => 5'],
	list_plans => ['max => 5'],
	list_tools => [''],
	list_workflows => [''],
	log_skill_execution => [q{'first', 'started'}],
	mcp => [ q{'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_next_step", "arguments": {"plan_id": "%s"}}}'}, 'plan' ],
	modify_plan => [ q{'%s', 'add_steps', '{"steps": [{"name": "new", "instructions": "Look again"}]}'}, 'plan' ],
	reclaim_stalled => [ q{plan_id => '%s'}, 'plan' ],
	record_tool_result => [ q{'%s', 'inspect', '{"value": 42}'}, 'plan' ],
	release_step => [ q{'%s'}, 'claimed' ],
	request_user_review => [ q{'%s', 'Is this right?'}, 'claimed' ],
	resume => [ q{'%s', '"this one"'}, 'prompt' ],
	retry_step => [ q{'%s'}, 'failed' ],
	run => [ q{'%s'}, 'runnable' ],
	run_steps => [ q{'%s'}, 'runnable', 'CALL' ],
	search_artifacts => [q{'found'}],
	set_variables => [ q{'%s', '{"a": 1}'}, 'plan' ],
	skip_step => [ q{'%s'}, 'pending' ],
	start_workflow => [ q{'%s'}, 'workflow' ],
	state_merge => [q{'{"name": "first", "value": {"a": 1}}'}],
	state_read => [q{'{"name": "first"}'}],
	state_write => [q{'{"name": "first", "value": 1}'}],
	store_artifact => [ q{'%s', 'notes', 'What was found so far'}, 'plan' ],
	store_output => [ q{'%s', 'What was found'}, 'plan' ],
	submit_step_result => [ q{'%s', '{"value": 42}'}, 'claimed' ],
	submit_user_decision => [ q{'%s', 'approve'}, 'review' ],
	task_variables => [ q{'%s'}, 'halfway' ],
	uuid7 => [''],
	validate_definition => [qq{'$definition'}],
	verify_audit => [ q{'%s'}, 'halfway' ],
	why => [ q{'%s'}, 'plan' ],
	workflow_response => [ q{'%s'}, 'halfway' ]);

# The names of all functions.
sub functions
{
	my @names = sort keys %calls;
	return @names;
}

# Two statements that call a function: calls NAME, SQL. SQL is a function that runs a query and returns its answer.
sub calls
{
	my ($name, $sql) = @_;
	my ($arguments, $kind, $verb) = @{ $calls{$name} };
	my $call = ($verb // 'SELECT') . " stepwise.$name($arguments);";
	return map { $kind ? sprintf($call, $sql->("SELECT first.of('$kind')")) : $call } 1 .. 2;
}

1;
