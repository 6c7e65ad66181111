# Four workers with leases, of which one is killed in the middle of a step. By the record, every step was done exactly once, and
# none is lost.

use strict;
use warnings;
use lib 'test/drivers';
use Client;
use Test::More;

use constant {
	STEPS => 24,
	LEASE => 2,      # seconds
	POLL => 200      # milliseconds
};

my @languages = languages();
plan skip_all => 'there is neither Node with the package pg nor Python with psycopg 3' unless @languages;

new_database('drivers_workers', 'on');
test_killed($_) foreach @languages;
is(sql('SELECT count(*) FROM stepwise.check_integrity()'), '0', 'the tables are consistent');
done_testing();

# The victim is of this language. The others are of all languages.
sub test_killed
{
	my ($language) = @_;
	my $plan = new_plan(steps());
	my $victim = start_worker($language, $plan, 'victim');

	$victim->{run}->pump until $victim->{out} =~ /^holding (\w+)$/m;
	my $held = $1;
	my @others = map { start_worker($languages[ $_ % @languages ], $plan, "worker $_") } 1 .. 3;
	await_true("SELECT count(*) > 5 FROM stepwise.step WHERE plan_id = '$plan' AND status = 'completed'");
	$victim->{run}->signal('KILL');
	is_deeply([ map { finish_client($_) . ' ' . ($_->{out} =~ /(\w+)\s*\z/)[0] } @others ], [ ('0 plan_complete') x 3 ],
		"$language: the other workers end the plan") or diag map { $_->{err} } @others;
	test_record($language, $plan, $held);
	finish_client($victim);
	return;
}

# Parallel steps. One takes longer than the lease, which heartbeats extend.
sub steps
{
	my @steps = map { qq({"name": "s$_", "tool": "t", "arguments": {"seconds": 0.02}, "dependsOn": []}) } 1 .. STEPS - 1;
	my $long = '{"name": "long", "tool": "t", "arguments": {"seconds": 3}, "dependsOn": []}';
	return '[' . join(', ', @steps[ 0 .. 4 ], $long, @steps[ 5 .. $#steps ]) . ']';
}

# Under SERIALIZABLE the workers get serialization failures, and repeat what failed.
sub start_worker
{
	my ($language, $plan, $name) = @_;
	local $ENV{PGOPTIONS} = '-c default_transaction_isolation=serializable';
	return start_client(client($language, 'test/drivers/worker', $plan, $name, LEASE, POLL));
}

sub test_record
{
	my ($language, $plan, $held) = @_;
	my $of_plan = "plan_id = '$plan'";

	is(sql("SELECT status, outcome FROM stepwise.plan WHERE id = '$plan'"), 'completed|success', 'the plan is completed');
	is( sql("SELECT count(*), count(DISTINCT step_id) FROM stepwise.audit WHERE $of_plan AND event = 'step_completed'"),
		STEPS . '|' . STEPS,
		'every step was completed exactly once');
	is( sql("SELECT count(*) FROM stepwise.step WHERE $of_plan AND result ->> 'by' <> worker"),
		'0', 'every result is that of the worker on record');
	is( sql("SELECT name, attempt, worker <> 'victim' FROM stepwise.step WHERE $of_plan AND attempt > 1"),
		"$held|2|t", 'only the step of the killed worker was handed out again');
	is(sql("SELECT stepwise.verify_audit('$plan') ->> 'valid'"), 'true', 'the audit chain is valid');
	return;
}
