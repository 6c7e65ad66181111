#!/usr/bin/perl
#
# How much longer the first call of a function takes than the second, in a new connection: test/bench/first.pl TIMES. Each line is: first,
# function, milliseconds of the first call, milliseconds of the second. The functions are those of test/t/FirstCalls.pm, and two by hand.

use strict;
use warnings;

use lib 'test/t';
use FirstCalls qw(FIXTURES functions calls);
use IPC::Run qw(run);

my ($times) = @ARGV;

sub psql
{
	my ($script) = @_;
	my ($out, $err);
	run([qw(psql -XqAt -v ON_ERROR_STOP=1)], '<', \$script, '>', \$out, '2>', \$err) or die $err;
	chomp $out;
	return $out;
}

# Call a function twice, as an agent, in a new connection that has done something else before.
sub twice
{
	my ($name, @calls) = @_;
	local $ENV{PGUSER} = 'bench_agent';
	my @took = psql(join("\n", 'SELECT 1;', '\timing on', @calls)) =~ /^Time: ([0-9.]+) ms/mg;
	print join("\t", 'first', $name, @took[ 0, 1 ]), "\n";
	return;
}

my $plan = 'bench.new_handwritten_plan(bench.steps(10))';
my %by_hand = (
	handwritten_claim => sub { "SELECT handwritten.claim('" . psql("SELECT $plan") . "');" },
	handwritten_complete => sub { "SELECT handwritten.complete('" . psql("SELECT step_id FROM handwritten.claim($plan)") . q{', '{"value": 42}');} });

# Each turn has a copy of the database, so that searches do not find the plans of earlier turns.
psql(FIXTURES);
my $fixtures = $ENV{PGDATABASE};
foreach my $turn (1 .. $times)
{
	local $ENV{PGDATABASE} = 'postgres';
	psql("DROP DATABASE IF EXISTS ${fixtures}_copy;\nCREATE DATABASE ${fixtures}_copy TEMPLATE $fixtures;");
	$ENV{PGDATABASE} = "${fixtures}_copy";
	twice($_, $by_hand{$_}->(), $by_hand{$_}->()) foreach sort keys %by_hand;
	twice($_, calls($_, \&psql)) foreach functions();
}
