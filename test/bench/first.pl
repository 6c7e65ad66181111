#!/usr/bin/perl
#
# How much longer the first call of a function takes than the second, in a new connection: test/bench/first.pl TIMES. Each line is: first,
# function, milliseconds of the first call, milliseconds of the second.

use strict;
use warnings;

use IPC::Run qw(run);

my ($times) = @ARGV;
my $result = '{"value": 42}';

sub psql
{
	my ($script) = @_;
	my ($out, $err);
	run([qw(psql -XqAt -v ON_ERROR_STOP=1)], '<', \$script, '>', \$out, '2>', \$err) or die $err;
	return $out;
}

# Call a function twice in a new connection that has done something else before.
sub twice
{
	my ($name, $before, @calls) = @_;
	my $out = psql("SELECT 1;\n$before\n\\timing on\n" . join('', map { "SELECT $_;\n" } @calls));
	my @took = $out =~ /^Time: ([0-9.]+) ms/mg;
	print join("\t", 'first', $name, @took[ 0, 1 ]), "\n";
	return;
}

# Plans, and steps of them that are claimed, that others have made.
sub plans
{
	my ($tool) = @_;
	return split(/\n/, psql("SELECT bench.new_plan(bench.steps(10, '$tool')) FROM generate_series(1, 2);"));
}

sub claimed
{
	return map { psql("SELECT stepwise.get_next_step('$_') ->> 'stepId';") =~ /(\S+)/ } plans('inspect');
}

sub claimed_by_hand
{
	return map { psql("SELECT step_id FROM handwritten.claim(bench.new_handwritten_plan(bench.steps(10)));") =~ /(\S+)/ } 1 .. 2;
}

my %calls = (
	create_plan => sub { (q{stepwise.create_plan('first', 'See how long it takes', '[{"name": "a", "instructions": "b"}]')}) x 2 },
	get_next_step => sub { map { "stepwise.get_next_step('$_')" } plans('inspect') },
	submit_step_result => sub { map { "stepwise.submit_step_result('$_', '$result')" } claimed() },
	advance => sub { map { "stepwise.advance('$_', '$result')" } claimed() },
	run => sub { map { "stepwise.run('$_')" } plans('nothing_c') },
	get_plan_status => sub { map { "stepwise.get_plan_status('$_')" } plans('inspect') },
	get_plan_context => sub { map { "stepwise.get_plan_context('$_')" } plans('inspect') },
	why => sub { map { "stepwise.why('$_')" } plans('inspect') },
	list_active_plans => sub { ('stepwise.list_active_plans(max => 5)') x 2 },
	call => sub { map { qq{stepwise.call('get_next_step', '{"planId": "$_"}')} } plans('inspect') },
	mcp => sub {
		map { qq{stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_next_step", "arguments": {"plan_id": "$_"}}}')} }
		  plans('inspect');
	},
	handwritten_claim => sub { map { "handwritten.claim('$_')" } split(/\n/, psql('SELECT bench.new_handwritten_plan(bench.steps(10)) FROM generate_series(1, 2);')) },
	handwritten_complete => sub { map { "handwritten.complete('$_', '$result')" } claimed_by_hand() });

foreach my $turn (1 .. $times)
{
	twice($_, '', $calls{$_}->()) foreach sort keys %calls;
}
