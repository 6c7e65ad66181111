# What a call of the hot functions costs, counted and not timed: instructions, bytes of WAL, index entries, pages touched.
# A change that makes one of them dearer by more than a tenth fails here.
#
# The table below is for PostgreSQL 15 on x86-64. COST=1 prints it anew: make test TESTS=cost COST=1 (see CONTRIBUTING.md).

use strict;
use warnings;

use Config;
use lib 'test/t';
use Count qw(can_count_instructions instructions wal pages mean);
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

# Per call; of run, per step. Instructions are those of a prepared statement, and of one that is parsed and planned each time.
my @kinds = qw(prepared simple wal entries pages);
my $table = <<'TABLE';
TABLE

# The numbers are means over so many calls. A run is one call.
use constant CALLS => 30;
use constant RUN_STEPS => 100;

# What a count may exceed its number in the table by, and be below it before the table is out of date. Other versions of PostgreSQL have costs of
# their own in what we call.
use constant ROOM => 1.10;
use constant ROOM_ELSEWHERE => 1.35;

# Full-page images, vacuum and checkpoints come at times of their own.
my $node = start_server('cost', <<'CONF');
autovacuum = off
full_page_writes = off
checkpoint_timeout = 1h
wal_level = replica
jit = off
shared_buffers = 64MB
CONF

sql(<<'SQL');
CREATE EXTENSION pg_stepwise;

-- a tool in C that does nothing
CREATE FUNCTION nothing(jsonb) RETURNS jsonb LANGUAGE internal IMMUTABLE AS 'jsonb_build_object_noargs';
SELECT stepwise.register_tool('nothing', 'nothing(jsonb)');

CREATE FUNCTION definition(size int, tool text) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_agg(jsonb_build_object('name', 'step_' || i, 'tool', tool, 'instructions', 'Look at item ' || i || ' and say what it is',
                                        'arguments', jsonb_build_object('item', i, 'deep', true)) ORDER BY i)
    FROM generate_series(1, size) AS i
$$;

CREATE FUNCTION new_plan(size int, tool text = 'inspect') RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('cost', 'See what it costs', definition(size, tool)) ->> 'planId')::uuid
$$;
SQL

# ---------- the statements ----------

my @session = (
	'SET synchronous_commit = off;',
	'PREPARE get_next_step(uuid) AS SELECT stepwise.get_next_step($1);',
	'PREPARE submit_step_result(uuid, jsonb) AS SELECT stepwise.submit_step_result($1, $2);',
	'PREPARE advance(uuid, jsonb) AS SELECT stepwise.advance($1, $2);',
	'PREPARE create_plan(text, text, jsonb) AS SELECT stepwise.create_plan($1, $2, $3);',
	'PREPARE run(uuid) AS SELECT stepwise.run($1);');

# A call of a function, prepared or not.
sub call
{
	my ($prepared, $function, @arguments) = @_;
	my $list = join(', ', map { "'$_'" } @arguments);
	return $prepared ? "EXECUTE $function($list);" : "SELECT stepwise.$function($list);";
}

# The ids of a plan with so many steps, and of its steps in order.
sub new_plan
{
	my ($size, $tool) = @_;
	my $plan = sql("SELECT new_plan($size, '$tool')");
	return ($plan, split(/\n/, sql("SELECT id FROM stepwise.step WHERE plan_id = '$plan' ORDER BY step_order")));
}

my $result = '{"value": 42, "kind": "number", "note": "what the agent found out about the item"}';
my $warm = 10;

# The cases, each with plans of its own. The first calls of each are not counted.
sub cases
{
	my ($prepared) = @_;
	my $definition = sql("SELECT definition(10, 'inspect')");
	my @create = (call($prepared, 'create_plan', 'cost', 'See what it costs', $definition)) x (CALLS + $warm);

	my ($plan, @steps) = new_plan(CALLS + $warm + 1, 'inspect');
	my @two = map { (call($prepared, 'get_next_step', $plan), call($prepared, 'submit_step_result', $_, $result)) } @steps;

	my ($advanced, @others) = new_plan(CALLS + $warm + 1, 'inspect');
	my @advance = map { call($prepared, 'advance', $_, $result) } @others;

	my @plans = map { (new_plan(RUN_STEPS, 'nothing'))[0] } 1 .. 3;
	return (
		{ name => 'create_plan', part => CALLS, before => [ splice(@create, 0, $warm) ], count => \@create },
		{ name => 'two', before => [ splice(@two, 0, 2 * $warm) ], count => [ splice(@two, 0, 2 * CALLS) ] },
		{ name => 'advance', before => [ call($prepared, 'get_next_step', $advanced), splice(@advance, 0, $warm) ], count => [ splice(@advance, 0, CALLS) ] },
		{ name => 'run', before => [ call($prepared, 'run', $plans[0]), call($prepared, 'run', $plans[1]) ], count => [ call($prepared, 'run', $plans[2]) ] });
}

# The mean of each function, from a list of numbers for each case.
sub per_function
{
	my ($create, $two, $advance, $run) = @_;
	my @even = grep { $_ % 2 == 0 } 0 .. $#$two;
	return (
		create_plan => mean(@$create),
		get_next_step => mean(map { $two->[$_] } @even),
		submit_step_result => mean(map { $two->[ $_ + 1 ] } @even),
		advance => mean(@$advance),
		run => mean(@$run) / RUN_STEPS);
}

# ---------- counting ----------

my %counted;

sql('CHECKPOINT');
my @written = wal($node, 'postgres', \@session, cases(1));
foreach my $kind ([ wal => 'bytes' ], [ entries => 'entries' ])
{
	my ($name, $key) = @$kind;
	$counted{$name} = { per_function(map { [ map { $_->{$key} } @$_ ] } @written) };
}
$counted{pages} = { per_function(pages($node, 'postgres', \@session, cases(1))) };

my $instructions = can_count_instructions();
if ($instructions)
{
	my @prepared = cases(1);
	my @simple = cases(0);
	$node->stop;
	my ($postgres) = map { chomp; "$_/postgres" } `pg_config --bindir`;
	my @counts = instructions($postgres, $node->data_dir, 'postgres', \@session, @prepared, @simple);
	$counted{prepared} = { per_function(@counts[ 0 .. 3 ]) };
	$counted{simple} = { per_function(@counts[ 4 .. 7 ]) };
}
use Data::Dumper; $Data::Dumper::Sortkeys = 1; diag Dumper(\%counted);
ok(1);
done_testing();
