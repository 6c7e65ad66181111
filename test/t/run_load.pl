# Many concurrent runs of one plan, and a crash in the middle of a run. Each step is done once, and no step stays in progress.

use strict;
use warnings;
use IPC::Run;
use lib 'test/t';
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server('run_load');
sql(q(
	CREATE EXTENSION pg_stepwise;
	CREATE TABLE done (plan uuid, step text);
	CREATE FUNCTION work(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO done VALUES ((a ->> 'plan')::uuid, a ->> 'step');
		PERFORM pg_sleep((a ->> 'sleep')::float);
		RETURN a;
	END $$;
	SELECT stepwise.register_tool('work', 'work(jsonb)')));

sub new_plan
{
	my ($steps, $sleep) = @_;
	return sql(qq(SELECT stepwise.create_plan('load', 'load', jsonb_agg(jsonb_build_object('name', 's' || n, 'tool', 'work',
		'arguments', jsonb_build_object('plan', '\${plan.id}', 'step', 's' || n, 'sleep', $sleep)))) ->> 'planId' FROM generate_series(1, $steps) AS n));
}

sub is_done_once
{
	my ($plan, $steps, $name) = @_;
	is(sql(qq(SELECT count(*), count(DISTINCT step) FROM done WHERE plan = '$plan')), "$steps|$steps", "$name: each step was done once");
	is(sql(qq(SELECT p.status, count(*) FROM stepwise.plan AS p JOIN stepwise.step AS s ON s.plan_id = p.id
		WHERE p.id = '$plan' AND s.status = 'completed' AND s.attempt = 1 GROUP BY p.status)), "completed|$steps", "$name: and completed");
	is_sound($name);
}

sub is_sound
{
	my ($name) = @_;
	is(sql('SELECT count(*) FROM stepwise.check_integrity()'), '0', "$name: the tables are sound");
	is(sql(q(SELECT count(*) FROM stepwise.plan WHERE NOT (stepwise.verify_audit(id) -> 'valid')::boolean)), '0', "$name: the chains hold");
}

# ---------- eight at once ----------

my $plan = new_plan(200, 0);
$node->pgbench('--no-vacuum --client=8 --transactions=1', 0, [qr{processed: 8/8}], [qr{^$}], 'eight sessions run a plan',
	{ 'run' => "SELECT stepwise.run('$plan')" });
is_done_once($plan, 200, 'run');

$plan = new_plan(200, 0.001);
$node->pgbench('--no-vacuum --client=8 --transactions=1', 0, [qr{processed: 8/8}], [qr{^$}], 'eight sessions run the steps of a plan',
	{ 'run_steps' => "CALL stepwise.run_steps('$plan')" });
is_done_once($plan, 200, 'run_steps');

# ---------- a crash ----------

my $in_one = new_plan(300, 0.01);
my $by_step = new_plan(300, 0.01);
my @clients = map {
	my ($in, $out, $err) = ('', '', '');
	IPC::Run::start([ 'psql', '-X', '-d', $node->connstr('postgres'), '-c', $_ ], '<', \$in, '>', \$out, '2>', \$err);
} ("SELECT stepwise.run('$in_one')", "CALL stepwise.run_steps('$by_step')");
$node->poll_query_until('postgres', qq(SELECT count(*) > 20 FROM done WHERE plan = '$by_step')) or die 'the steps do not run';
$node->stop('immediate');
$_->finish foreach @clients;
$node->start;

is(sql(q(SELECT count(*) FROM stepwise.step WHERE status = 'in_progress')), '0', 'no step is left in progress');
is(sql(qq(SELECT count(*) FROM done WHERE plan = '$in_one')), '0', 'run: all or nothing');
is(sql(qq(SELECT (SELECT count(*) FROM done WHERE plan = '$by_step')
	= (SELECT count(*) FROM stepwise.step WHERE plan_id = '$by_step' AND status = 'completed'))), 't', 'run_steps: what was done is recorded');
is_sound('after the crash');
sql(qq(SELECT stepwise.run('$in_one')));
sql(qq(CALL stepwise.run_steps('$by_step')));
is_done_once($in_one, 300, 'run, after the crash');
is_done_once($by_step, 300, 'run_steps, after the crash');

# ---------- a terminated session: the same, without a crash ----------

$plan = new_plan(300, 0.01);
my ($in, $out, $err) = ('', '', '');
my $client = IPC::Run::start([ 'psql', '-X', '-d', $node->connstr('postgres'), '-c', "SELECT stepwise.run('$plan')" ], '<', \$in, '>', \$out, '2>', \$err);
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^SELECT stepwise.run' AND state = 'active' AND pid <> pg_backend_pid()}) or die 'the run does not start';
sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ~ '^SELECT stepwise.run' AND pid <> pg_backend_pid()});
$client->finish;
like($err, qr/terminating connection|server closed the connection/, 'the session was terminated');
is(sql(qq(SELECT count(*) FROM stepwise.step WHERE plan_id = '$plan' AND status <> 'pending')), '0', 'and its run is gone whole');
sql(qq(SELECT stepwise.run('$plan')));
is_done_once($plan, 300, 'after the termination');

$node->stop;
done_testing();
