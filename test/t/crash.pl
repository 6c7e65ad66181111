# kill -9 under load, three times of the whole server and once of a single backend. After each restart the tables are consistent,
# every chain is valid, and all acknowledged changes are there. First the same load runs without a kill, and there is no deadlock.
# On a standby, functions that read give answers, and functions that write raise an error.

use strict;
use warnings;
use lib 'test/t';
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;
use Time::HiRes qw(usleep);

my $sound = slurp_file('test/sound.sql') . 'SELECT * FROM pg_temp.sound()';

# Settings of a production server.
my $node = start_server('crash', <<'CONF', allows_streaming => 1);
fsync = on
full_page_writes = on
synchronous_commit = on
restart_after_crash = on
log_statement = none
max_connections = 30
shared_buffers = 32MB
autovacuum_naptime = 1s
checkpoint_timeout = 30s
CONF

# --- the load ----------------------------------------------------------------

sql(<<'SQL');
CREATE EXTENSION pg_stepwise;
SELECT stepwise.define_workflow('{"name": "nested", "steps": [{"name": "x"}, {"name": "y", "prompt": "Go on?"}, {"name": "z"}]}');

-- Take an open plan or create a new one, and do what an agent might do: one call, or several in a transaction.
CREATE FUNCTION work() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan uuid;
	next jsonb;
	step uuid;
	claim int;
	r float8 := random();
BEGIN
	IF r < 0.02 THEN
		RETURN stepwise.reclaim_stalled('1 second') ->> 'count';
	END IF;
	SELECT id INTO plan FROM stepwise.plan WHERE completed_at IS NULL AND parent_step_id IS NULL OFFSET floor(random() * 20) LIMIT 1;
	IF plan IS NULL THEN
		RETURN stepwise.create_plan('p', 'g', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}, {"name": "c", "dependsOn": ["a"], "workflow": "nested"},
			{"name": "d", "dependsOn": [{"step": "b", "required": false}]}, {"name": "e", "dependsOn": ["c", "d"]}, {"name": "f"}]',
			'[{"afterStepOrder": 2, "conditionExpression": "confidence < 0.2", "ifTrueAction": "add_steps", "actionParams": {"steps": [{"dependsOn": ["b"]}]}}]',
			on_failure => (ARRAY['continue', 'pause', 'fail'])[1 + floor(random() * 3)]) ->> 'planId';
	END IF;
	IF r < 0.03 THEN
		RETURN stepwise.cancel_plan(plan, 'load') ->> 'planStatus';
	ELSIF r < 0.06 THEN
		RETURN stepwise.get_plan_status(plan, '1 second') ->> 'status';
	END IF;
	next := stepwise.get_next_step(plan, lease => CASE WHEN r < 0.2 THEN interval '1 second' END);
	IF next ->> 'status' = 'awaiting_review' THEN
		IF EXISTS (SELECT FROM stepwise.checkpoints WHERE checkpoint_id = (next ->> 'checkpointId')::uuid AND kind = 'prompt') THEN
			RETURN stepwise.resume((next ->> 'checkpointId')::uuid, '"yes"') ->> 'status';
		END IF;
		RETURN stepwise.submit_user_decision((next ->> 'checkpointId')::uuid, (ARRAY['approve', 'modify', 'skip'])[1 + floor(random() * 3)], 'load') ->> 'stepStatus';
	ELSIF next ->> 'status' <> 'step_ready' THEN
		SELECT id, attempt INTO step, claim FROM stepwise.step WHERE root_id = plan AND status IN ('in_progress', 'failed') AND workflow IS NULL ORDER BY random() LIMIT 1;
		RETURN CASE WHEN r < 0.5 THEN stepwise.skip_step(step, 'load') ELSE stepwise.fail_step(step, 'load', attempt => claim) END;
	END IF;
	step := (next ->> 'stepId')::uuid;
	claim := (next ->> 'attempt')::int;
	RETURN CASE
		WHEN r < 0.1 THEN stepwise.fail_step(step, 'load', attempt => claim)
		WHEN r < 0.15 THEN stepwise.request_user_review(step, 'Good?', attempt => claim)
		WHEN r < 0.2 THEN next
		WHEN r < 0.25 THEN stepwise.release_step(step, claim)
		WHEN r < 0.5 THEN stepwise.advance(step, to_jsonb(r), confidence => random()::numeric, attempt => claim)
		ELSE stepwise.submit_step_result(step, to_jsonb(repeat('x', floor(random() * 3000)::int)), confidence => random()::numeric, attempt => claim) END;
EXCEPTION WHEN SQLSTATE 'SW002' OR SQLSTATE 'SW003' OR SQLSTATE 'SW009' OR SQLSTATE 'SW012' THEN
	RETURN sqlstate;	-- somebody else was first
END $$;

-- The same by plain SQL: update steps of one plan, or of several plans, in one statement.
CREATE FUNCTION work_by_hand() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	UPDATE stepwise.step AS s SET status = t.to_status
	FROM (SELECT s.id, (SELECT u FROM unnest(enum_range(NULL::stepwise.step_status)) AS u
			WHERE stepwise.step_transition_allowed(s.status, u) ORDER BY random() LIMIT 1) AS to_status
		FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.id = s.plan_id
		WHERE p.completed_at IS NULL AND s.workflow IS NULL AND random() < 0.02 LIMIT 5) AS t
	WHERE s.id = t.id AND t.to_status IS NOT NULL;
	RETURN 'moved';
EXCEPTION WHEN SQLSTATE 'SW003' OR deadlock_detected THEN
	RETURN sqlstate;
END $$;

-- Complete a step that no other session uses, so that its acknowledgement is certain.
CREATE FUNCTION acknowledged() RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
	step uuid := stepwise.create_plan('acknowledged', 'g', '[{"name": "a"}]') #>> '{stepIds,0}';
BEGIN
	PERFORM stepwise.submit_step_result(step, '1');
	RETURN step;
END $$;
SQL

my $scripts = $node->basedir . '/script';
append_to_file("$scripts.functions", "SELECT work();\n");
append_to_file("$scripts.hand", "SELECT work_by_hand();\n");
append_to_file("$scripts.acknowledged", "SELECT acknowledged() \\watch 0.005\n");
append_to_file("$scripts.verify", "SELECT DISTINCT 'invalid' FROM stepwise.plan WHERE NOT (stepwise.verify_audit(id) ->> 'valid')::boolean \\watch 0.1\n");

# Without a kill, functions only.
$node->command_ok([ 'pgbench', '-n', '-c', '8', '-T', '3', '-f', "$scripts.functions", 'postgres' ], 'eight agents work');
is(sql("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'"), '0', 'functions do not deadlock');
is(sql($sound), '', 'after that all is sound');
cmp_ok(sql('SELECT count(*) FROM stepwise.audit'), '>', 100, 'and much has happened');
is(sql("SELECT count(DISTINCT status) FROM stepwise.plan WHERE status IN ('completed', 'failed', 'cancelled')"), '3', 'of every kind');

# --- kill -9 -----------------------------------------------------------------

# Run the load in the background: functions and plain SQL. Meanwhile one session verifies all chains, and one records what was
# acknowledged.
my ($acked, $verified, $noise);

sub start_load
{
	my @load;

	$acked = $verified = $noise = '';
	push @load, IPC::Run::start([ 'pgbench', '-n', '-c', '6', '-T', '60', '-f', "$scripts.functions\@4", '-f', "$scripts.hand\@1", $node->connstr('postgres') ],
		'<', '/dev/null', '>', \$noise, '2>&1');
	push @load, IPC::Run::start([ 'psql', '-XqAt', '-d', $node->connstr('postgres'), '-f', "$scripts.acknowledged" ], '<', '/dev/null', '>', \$acked, '2>', \$noise);
	push @load, IPC::Run::start([ 'psql', '-XqAt', '-d', $node->connstr('postgres'), '-f', "$scripts.verify" ], '<', '/dev/null', '>', \$verified, '2>', \$noise);
	# wait until the load runs at full speed
	my $tries = 0;
	do { usleep(50_000); $_->pump_nb foreach @load } until (scalar(my @steps = acknowledged()) > 50 || $tries++ > 600);
	usleep(rand(500_000));
	return @load;
}

sub acknowledged
{
	return $acked =~ /([0-9a-f-]{36})\n/g;
}

# Kill the server and all its processes at once, since a surviving backend would keep the shared memory.
sub kill_server
{
	my ($postmaster) = split(/\n/, slurp_file($node->data_dir . '/postmaster.pid'));
	my @children = grep { parent($_) == $postmaster } map { /(\d+)/ } glob('/proc/[0-9]*');

	$node->kill9;
	kill(9, @children);
	# wait until they are reaped, since the next server would take a zombie for a running process
	usleep(10_000) while grep { kill(0, $_) } $postmaster, @children;
}

sub parent
{
	open(my $stat, '<', "/proc/$_[0]/stat") or return 0;
	return <$stat> =~ /\) \S (\d+)/ ? $1 : 0;
}

sub check
{
	my ($when) = @_;
	my @steps = acknowledged();

	cmp_ok(scalar(@steps), '>', 50, "$when: there was a load");
	unlike($verified, qr/invalid/, "$when: every chain verified all the time");
	is(sql($sound), '', "$when: all is sound, every chain verifies");
	is(sql("SELECT count(*) FROM unnest('{" . join(',', @steps) . "}'::uuid[]) AS a LEFT JOIN stepwise.step AS s ON s.id = a WHERE s.status IS DISTINCT FROM 'completed'"),
		'0', "$when: what was acknowledged is there");
}

foreach my $round (1 .. 3)
{
	my @load = start_load();
	kill_server();
	$_->finish foreach @load;
	$node->start;
	check("kill -9 of the server, round $round");
}

{
	my @load = start_load();
	my $started = sql('SELECT pg_postmaster_start_time()');
	my $backend;

	do { $backend = sql("SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT work()%' AND state = 'active' LIMIT 1") } until $backend =~ /^\d+$/;
	kill(9, $backend);
	# all sessions are ended, then the server restarts
	$_->finish foreach @load;
	usleep(50_000) until IPC::Run::run([ 'pg_isready', '-q', '-d', $node->connstr('postgres') ]);
	is(sql('SELECT pg_postmaster_start_time()'), $started, 'the server came back by itself');
	check('kill -9 of a backend');
}

# the plans can be continued
$node->command_ok([ 'pgbench', '-n', '-c', '4', '-t', '50', '-f', "$scripts.functions", 'postgres' ], 'after all that, agents work on');
is(sql($sound), '', 'and all is sound');

# --- a standby ---------------------------------------------------------------

sql('CREATE ROLE agent');
sql('CREATE DATABASE plans');
sql_in('plans', 'CREATE EXTENSION pg_stepwise; ' . slurp_file('test/every_state.sql'));
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);

# The SQLSTATE of a call, or "answer" if it has one.
sub answer
{
	my ($sql) = @_;
	my $answer = sqlstate($standby, 'plans', $sql);
	return $answer =~ /^no error: ./ ? 'answer' : $answer;
}

is(answer("SELECT count(stepwise.$_(id)) FROM stepwise.plan WHERE tenant = 'default'"), 'answer', "$_ answers on a standby, for plans in every state")
  foreach (qw(audit_head verify_audit execution workflow_response get_plan_status get_output task_variables handoff why));
is(answer("SELECT stepwise.$_"), 'answer', "$_ answers on a standby")
  foreach ('list_active_plans()', 'list_plans()', 'list_checkpoints()', "find_plans('fox')", 'list_workflows()', "get_workflow('nested')", 'list_tools()', 'current_tenant()', "search_artifacts('fox')",
	"execution_as_of(public.plan('executing'), now())", "get_step_context(public.step('executing', 'running'))", "get_plan_context(public.plan('executing'))",
	q(validate_definition('{"name": "w", "steps": [{}]}')));
is(answer("SELECT count(*) FROM stepwise.$_"), 'answer', "$_ answers on a standby") foreach ('checkpoints', 'plan_progress', 'check_integrity()');
is($standby->safe_psql('plans', "SET client_min_messages = warning; SELECT problem FROM stepwise.check_integrity()"), '', 'and all is sound there');

is(answer($_), '25006', "refused on a standby: $_")
  foreach ("SELECT stepwise.create_plan('p', 'g', '[{}]')", "SELECT stepwise.get_next_step(public.plan('executing'))",
	"SELECT stepwise.submit_step_result(public.step('executing', 'running'), '1')", "SELECT stepwise.cancel_plan(public.plan('executing'))",
	"SELECT stepwise.run(public.plan('executing'))", "SELECT stepwise.reclaim_stalled()", "CALL stepwise.purge('infinity')",
	"CALL stepwise.run_steps(public.plan('executing'))", q(SELECT stepwise.define_workflow('{"name": "w", "steps": [{}]}')),
	"UPDATE stepwise.step SET status = 'skipped'", "DELETE FROM stepwise.audit");

$standby->promote;
is($standby->safe_psql('plans', "SELECT stepwise.submit_step_result(public.step('executing', 'running'), '1', attempt => 1) ->> 'stepStatus'"),
	'completed', 'promoted, it goes on where the other was');

$standby->stop;
$node->stop;
done_testing();
