# What is tested in every language: the agent of examples/, and the blocks of doc/drivers.md.
package Language;

use strict;
use warnings;
use utf8;
use Client;
use Exporter qw(import);
use Test::More;
use Time::HiRes qw(time);

our @EXPORT = qw(test_language);

# How programs and their comments look, and what stands around the blocks of the page.
my %SYNTAX = (
	node => {
		block => 'js',
		extension => 'js',
		comment => '//',
		before => "(async () => {\n",
		after => "})().catch((error) => { console.error(error); process.exit(1); });\n"
	},
	python => { block => 'python', extension => 'py', comment => '#', before => '', after => '' });

sub test_language
{
	my ($language) = @_;

	new_database("drivers_$language", 'on');
	test_to_the_end($language);
	test_failing_work($language);
	test_lost_claim($language);
	test_woken($language);
	test_page($language);
	sql("ALTER DATABASE drivers_$language SET stepwise.notify = off");
	test_polling($language);
	is(sql('SELECT count(*) FROM stepwise.check_integrity()'), '0', 'the tables are consistent');
	return;
}

# How the steps of a plan ended, and who did them.
sub steps_of
{
	my ($plan) = @_;
	return sql("SELECT string_agg(concat_ws(' ', name, status, worker, message), ', ' ORDER BY step_order) FROM stepwise.step WHERE plan_id = '$plan'");
}

sub test_to_the_end
{
	my ($language) = @_;
	my $plan = new_plan('[{"name": "a", "instructions": "Do a"}, {"name": "b", "instructions": "After ${steps.a.outputs.ok}"}]');
	my $agent = start_client(client($language, 'examples/agent', $plan, 'w1'));

	is(finish_client($agent), 0, 'the agent ends') or diag $agent->{err};
	like($agent->{out}, qr/doing a Do a.*doing b After true.*plan_complete/s, 'it does the steps and says so');
	is(steps_of($plan), 'a completed w1, b completed w1', 'the steps are its');
	is(sql("SELECT stepwise.verify_audit('$plan') ->> 'valid'"), 'true', 'the audit chain is valid');
	return;
}

sub test_failing_work
{
	my ($language) = @_;
	my $plan = new_plan('[{"name": "a", "tool": "kettle", "arguments": {"fails": true}},
		{"name": "b", "tool": "kettle", "arguments": {"unfit": true}}, {"name": "c", "tool": "pot"}]');
	my $worker = start_client(client($language, 'test/drivers/worker', $plan, 'w1', 5, 5000));

	is(finish_client($worker), 0, 'work that fails does not end the agent') or diag $worker->{err};
	like(steps_of($plan), qr/^a failed.*no water.*, b failed.*, c completed w1$/, 'it fails the step, also if the result is not JSON');
	return;
}

# While the worker works, its step is taken away, and somebody else does it.
sub test_lost_claim
{
	my ($language) = @_;
	my $taken = "taken_$language";
	my $plan = new_plan(qq([{"name": "a", "tool": "kettle", "arguments": {"until": "$taken"}}, {"name": "b", "tool": "pot"}]));
	my $worker = start_client(client($language, 'test/drivers/worker', $plan, 'w1', 5, 200));

	await_true("SELECT status = 'in_progress' FROM stepwise.step WHERE plan_id = '$plan' AND name = 'a'");
	sql(<<"SQL");
SELECT stepwise.release_step(id, attempt => 1), stepwise.get_next_step('$plan', worker => 'w2'), stepwise.submit_step_result(id, '"w2"', attempt => 2)
FROM stepwise.step WHERE plan_id = '$plan' AND name = 'a';
SQL
	open(my $out, '>', $taken) or die "could not write $taken: $!";
	close($out);
	is(finish_client($worker), 0, 'a lost claim does not end the agent') or diag $worker->{err};
	like($worker->{out}, qr/no longer ours/, 'it drops the result');
	is(steps_of($plan), 'a completed w2, b completed w1', 'and goes on');
	return;
}

# The plan waits for a person. The worker would sleep for 40 seconds, but is woken by the answer.
sub test_woken
{
	my ($language) = @_;
	my ($worker, $began) = answer_while_waiting($language, 40000);

	is(finish_client($worker), 0, 'an agent that waits goes on when the plan changes') or diag $worker->{err};
	cmp_ok(time - $began, '<', 20, 'LISTEN woke it');
	return;
}

# The same without notifications.
sub test_polling
{
	my ($language) = @_;
	my ($worker) = answer_while_waiting($language, 200);

	is(finish_client($worker), 0, 'without notifications it asks again after a while') or diag $worker->{err};
	return;
}

sub answer_while_waiting
{
	my ($language, $poll) = @_;
	my $plan = new_plan('[{"name": "ask", "prompt": "Milk?"}, {"name": "pour", "tool": "pot"}]');
	my $worker = start_client(client($language, 'test/drivers/worker', $plan, 'w1', 5, $poll));

	$worker->{run}->pump until $worker->{out} =~ /awaiting_review/;
	my $began = time;
	sql("SELECT stepwise.resume(checkpoint_id, 'true') FROM stepwise.checkpoints WHERE plan_id = '$plan'");
	return ($worker, $began);
}

# The blocks of the page, and after_page.* after them, are one program. It prints what its comments say.
sub test_page
{
	my ($language) = @_;
	my $syntax = $SYNTAX{$language};
	my $file = "page.$syntax->{extension}";
	my $source = blocks('doc/drivers.md', $syntax->{block}) . content("test/drivers/after_page.$syntax->{extension}");
	my @shown = $source =~ /$syntax->{comment} => (.*)/g;

	new_database("drivers_page_$language", 'on');
	open(my $out, '>:encoding(UTF-8)', $file) or die "could not write $file: $!";
	print $out $syntax->{before}, $source, $syntax->{after};
	close($out) or die "could not write $file: $!";
	my $page = start_client(client($language, 'page'));
	is(finish_client($page), 0, 'the blocks of doc/drivers.md run') or diag $page->{err};
	is_deeply([ split(/\n/, $page->{out}) ], \@shown, 'and print what the page says');
	$ENV{PGDATABASE} = "drivers_$language";
	return;
}

sub blocks
{
	my ($file, $language) = @_;
	return join("\n", content($file) =~ /^```\Q$language\E\n(.*?)^```$/msg);
}

sub content
{
	my ($file) = @_;
	open(my $in, '<:encoding(UTF-8)', $file) or die "could not read $file: $!";
	local $/ = undef;
	return <$in>;
}

1;
