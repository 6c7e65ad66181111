#!/usr/bin/perl
#
# Count the instructions of a step in each way, by callgrind: test/bench/count.pl POSTGRES DATA OUT. The server of the folder DATA runs; it is
# stopped, and is not started again. It has handwritten.sql and setup.sql. Each line of the file OUT is: way, protocol, instructions of a step.

use strict;
use warnings;

use File::Basename qw(dirname);
use lib dirname(__FILE__) . '/../t';
use Count qw(instructions mean);
use IPC::Run qw(run);

my ($postgres, $data, $out) = @ARGV;

use constant STEPS => 20;       # steps that are counted
use constant WARM => 6;         # steps before them
use constant RUN_STEPS => 100;

my $result = '{"value": 42, "kind": "number", "note": "what the agent found out about the item"}';

sub psql
{
	my ($query) = @_;
	my ($answer, $err);
	run([ qw(psql -XqAt -v ON_ERROR_STOP=1 -c), $query ], '>', \$answer, '2>', \$err) or die $err;
	return split(/\n/, $answer);
}

# ---------- plans ----------

# Each returns the id of a new plan, and the ids of its steps in order.
sub our_plan
{
	my ($size, $tool) = @_;
	my ($plan) = psql("SELECT bench.new_plan(bench.steps($size, '$tool'))");
	return ($plan, psql("SELECT id FROM stepwise.step WHERE plan_id = '$plan' ORDER BY step_order"));
}

sub handwritten_plan
{
	my ($size) = @_;
	my ($plan) = psql("SELECT bench.new_handwritten_plan(bench.steps($size))");
	return ($plan, psql("SELECT id FROM handwritten.step WHERE plan_id = '$plan' ORDER BY step_order"));
}

# ---------- ways ----------

# The statements of each way, as they are prepared; they are those of client.c.
my $claimed = 'step_id, step_order, name, tool, instructions, arguments, attempt';
my %statements = (
	claim => "$claimed FROM handwritten.claim(\$1::uuid)",
	complete => 'handwritten.complete($1::uuid, $2::jsonb)',
	advance_by_hand => "$claimed FROM handwritten.advance(\$1::uuid, \$2::jsonb)",
	create_by_hand => 'bench.new_handwritten_plan($1::jsonb)',
	get_next_step => 'stepwise.get_next_step($1::uuid)',
	submit_step_result => 'stepwise.submit_step_result($1::uuid, $2::jsonb)',
	advance => 'stepwise.advance($1::uuid, $2::jsonb)',
	create_plan => 'stepwise.create_plan($1::text, $2::text, $3::jsonb)',
	run => 'stepwise.run($1::uuid)',
	call => 'stepwise.call($1::text, $2::jsonb)',
	mcp => 'stepwise.mcp($1::jsonb)');

sub call
{
	my ($protocol, $name, @arguments) = @_;
	return "EXECUTE $name(" . join(', ', map { "'$_'" } @arguments) . ');' if $protocol eq 'prepared';
	# named as a client would: without the casts, which the signature makes unnecessary
	(my $call = $statements{$name}) =~ s/::\w+//g;
	$call =~ s/\$(\d)/'$arguments[$1 - 1]'/g;
	return "SELECT $call;";
}

sub request
{
	my ($tool, $arguments) = @_;
	return qq({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "$tool", "arguments": $arguments}});
}

# Do each step of a plan by these calls: a case with a statement for each step.
sub steps_of
{
	my ($first, $each, $plan, @steps) = @_;
	my @count = map { join("\n", $each->($_, $plan)) } @steps;
	return { before => [ ($first ? $first->($plan) : ()), splice(@count, 0, WARM) ], count => [ splice(@count, 0, STEPS) ], per => 1 };
}

sub whole_plans
{
	my ($each, $per) = @_;
	my @plans = map { $each->() } 1 .. 4;
	return { before => [ splice(@plans, 0, 2) ], count => \@plans, per => $per };
}

sub ways
{
	my ($p) = @_;
	my $size = STEPS + WARM + 1;
	my ($definition) = psql('SELECT bench.steps(10)');
	return (
		[ handwritten => steps_of(undef, sub { (call($p, 'claim', $_[1]), call($p, 'complete', $_[0], $result)) }, handwritten_plan($size)) ],
		[ handwritten_one => steps_of(sub { call($p, 'claim', $_[0]) }, sub { call($p, 'advance_by_hand', $_[0], $result) }, handwritten_plan($size)) ],
		[ two_calls => steps_of(undef, sub { (call($p, 'get_next_step', $_[1]), call($p, 'submit_step_result', $_[0], $result)) }, our_plan($size, 'inspect')) ],
		[ advance => steps_of(sub { call($p, 'get_next_step', $_[0]) }, sub { call($p, 'advance', $_[0], $result) }, our_plan($size, 'inspect')) ],
		[ call => steps_of(sub { call($p, 'get_next_step', $_[0]) }, sub { call($p, 'call', 'advance', qq({"stepId": "$_[0]", "result": $result})) }, our_plan($size, 'inspect')) ],
		[ mcp => steps_of(sub { call($p, 'get_next_step', $_[0]) },
				sub { call($p, 'mcp', request('submit_step_result', qq({"step_id": "$_[0]", "result": $result}))) }, our_plan($size, 'inspect')) ],
		(map {
			my $language = $_;
			[ "run_$language" => whole_plans(sub { call($p, 'run', (our_plan(RUN_STEPS, "nothing_$language"))[0]) }, RUN_STEPS) ]
		} qw(c sql plpgsql)),
		[ create_handwritten => whole_plans(sub { call($p, 'create_by_hand', $definition) }, 10) ],
		[ create => whole_plans(sub { call($p, 'create_plan', 'bench', 'See how fast it goes', $definition) }, 10) ]);
}

my @protocols = qw(prepared simple);
my @ways = map { my $p = $_; map { [ $p, @$_ ] } ways($p) } @protocols;
my @session = ('SET synchronous_commit = off;', map {
	my ($name, $call) = ($_, $statements{$_});
	my @types = $call =~ /\$\d::(\w+)/g;
	$call =~ s/(\$\d)::\w+/$1/g;
	"PREPARE $name(" . join(', ', @types) . ") AS SELECT $call;"
} sort keys %statements);

run([ 'pg_ctl', '-s', '-w', '-D', $data, 'stop' ]) or die "the server did not stop";
my @counts = instructions($postgres, $data, $ENV{PGDATABASE}, \@session, map { $_->[2] } @ways);

open(my $file, '>', $out) or die "could not write $out: $!";
printf $file "%s\t%s\t%d\n", $ways[$_][1], $ways[$_][0], mean(@{ $counts[$_] }) / $ways[$_][2]{per} foreach 0 .. $#ways;
close($file) or die "could not write $out: $!";
