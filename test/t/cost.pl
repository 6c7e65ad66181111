# What a call of the hot functions costs. It is counted and not timed, so it is the same in each run: instructions, bytes of WAL, index
# entries, pages touched. A change that makes a call dearer by more than a tenth fails here. "make cost" writes the table anew.

use strict;
use warnings;

use Config;
use lib 'test/t';
use Count qw(can_count_instructions instructions calls_function wal pages mean);
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

# Per call, and of run per step. "prepared" are the instructions of a prepared statement, "simple" those of one that is parsed and planned
# each time. The table is that of PostgreSQL 15 on x86-64. Plans are sequences; in a "chain" each step depends on the one before it, and in a
# "diamond" many depend on the first one, and the last one on these.
my @kinds = qw(prepared simple wal entries pages);
my $table = <<'TABLE';
function                  prepared    simple       wal   entries     pages
create_plan                 934555    970898      5326      34.1      69.1
get_next_step               212991    232298       545       0.2       7.8
submit_step_result          227048    242748       616       0.0       7.3
advance                     295470    330378       811       0.2       9.7
get_next_step:chain         215751    234285       530       0.1       7.4
submit_step_result:chain    262769    279745       747       0.1      10.9
advance:chain               308702    352643       848       0.2      10.9
advance:diamond             388612    424535      1026       0.2      18.3
run:chain                    80763     81838       328       0.1       4.6
run                          74262     75049       296       0.1       2.5
TABLE

# How often a function is called for one number. A run is one call for many steps.
use constant CALLS => 20;
use constant CALLS_BEFORE => 10;
use constant RUN_STEPS => 100;
use constant CLIENTS => 8;
use constant DIAMOND_STEPS => 102;

# How much more than in the table a call may cost. Other versions of PostgreSQL have costs of their own in what we call.
use constant ROOM => 1.1;
use constant ROOM_ELSEWHERE => 1.35;

# How much more than in a sequence a step may cost in a chain. What it releases is in two pages more, and in one of them it is written.
use constant DEPENDENCIES => 1.15;
use constant DEPENDENCIES_PAGES => 1.25;

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

-- the steps on which a step depends; null in a sequence
CREATE FUNCTION parents(step int, size int, shape text) RETURNS jsonb LANGUAGE sql AS $$
    SELECT CASE WHEN shape = 'sequence' THEN NULL ELSE coalesce(jsonb_agg('step_' || i), '[]') END
    FROM generate_series(1, step - 1) AS i
    WHERE CASE WHEN shape = 'chain' THEN i = step - 1 WHEN step < size THEN i = 1 ELSE i > 1 END
$$;

CREATE FUNCTION definition(size int, tool text, shape text) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'name', 'step_' || i, 'tool', tool, 'instructions', 'Look at item ' || i || ' and say what it is',
        'arguments', jsonb_build_object('item', i, 'deep', true), 'dependsOn', parents(i, size, shape))) ORDER BY i)
    FROM generate_series(1, size) AS i
$$;

CREATE FUNCTION new_plan(size int, tool text, shape text) RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('cost', 'See what it costs', definition(size, tool, shape)) ->> 'planId')::uuid
$$;
SQL

# ---------- the calls ----------

my @session = (
	'SET synchronous_commit = off;',
	'PREPARE create_plan(text, text, jsonb) AS SELECT stepwise.create_plan($1, $2, $3);',
	'PREPARE get_next_step(uuid) AS SELECT stepwise.get_next_step($1);',
	'PREPARE submit_step_result(uuid, jsonb) AS SELECT stepwise.submit_step_result($1, $2);',
	'PREPARE advance(uuid, jsonb) AS SELECT stepwise.advance($1, $2);',
	'PREPARE run(uuid) AS SELECT stepwise.run($1);');

my $result = '{"value": 42, "kind": "number", "note": "what the agent found out about the item"}';

# A call of a function, prepared or simple.
sub call
{
	my ($protocol, $function, @arguments) = @_;
	my $list = join(', ', map { "'$_'" } @arguments);
	return $protocol eq 'prepared' ? "EXECUTE $function($list);" : "SELECT stepwise.$function($list);";
}

# Make a plan; return its id, and the ids of its steps in order.
sub new_plan
{
	my ($size, $tool, $shape) = @_;
	my $plan = sql("SELECT new_plan($size, '$tool', '$shape')");
	return ($plan, split(/\n/, sql("SELECT id FROM stepwise.step WHERE plan_id = '$plan' ORDER BY step_order")));
}

# Leave the first calls uncounted.
sub warmed
{
	my ($per_step, @calls) = @_;
	return (before => [ splice(@calls, 0, $per_step * CALLS_BEFORE) ], count => \@calls);
}

# Each function with plans of its own. Claims and submissions alternate; other calls are counted together.
sub create_case
{
	my ($p) = @_;
	my $definition = sql("SELECT definition(10, 'inspect', 'sequence')");
	my %case = warmed(1, (call($p, 'create_plan', 'cost', 'See what it costs', $definition)) x (CALLS_BEFORE + CALLS));
	return { before => $case{before}, count => [ $case{count} ] };
}

sub two_case
{
	my ($p, $shape) = @_;
	my ($plan, @steps) = new_plan(CALLS_BEFORE + CALLS + 1, 'inspect', $shape);
	pop @steps;    # the last one would complete the plan
	return { warmed(2, map { (call($p, 'get_next_step', $plan), call($p, 'submit_step_result', $_, $result)) } @steps) };
}

sub advance_case
{
	my ($p, $shape) = @_;
	my ($plan, @steps) = new_plan(CALLS_BEFORE + CALLS + 1, 'inspect', $shape);
	pop @steps;
	my %case = warmed(1, map { call($p, 'advance', $_, $result) } @steps);
	return { before => [ call($p, 'get_next_step', $plan), @{ $case{before} } ], count => [ $case{count} ] };
}

# Clients share a plan: each has a claim when another one calls. They call in turn, so the steps are submitted in order.
sub together_case
{
	my ($p) = @_;
	my ($plan, @steps) = new_plan(CALLS_BEFORE + CALLS + CLIENTS, 'inspect');
	my %case = warmed(1, map { call($p, 'advance', $_, $result) } @steps[ 0 .. CALLS_BEFORE + CALLS - 1 ]);
	return { before => [ (call($p, 'get_next_step', $plan)) x CLIENTS, @{ $case{before} } ], count => [ $case{count} ] };
}

# A whole plan, after another one.
sub diamond_case
{
	my ($p) = @_;
	my @calls;
	foreach (1 .. 2)
	{
		my ($plan, @steps) = new_plan(DIAMOND_STEPS, 'inspect', 'diamond');
		push @calls, call($p, 'get_next_step', $plan), map { call($p, 'advance', $_, $result) } @steps;
	}
	return { before => [ splice(@calls, 0, DIAMOND_STEPS + 2) ], count => [ \@calls ] };
}

sub run_case
{
	my ($p, $shape) = @_;
	my ($counted, @before) = map { call($p, 'run', (new_plan(RUN_STEPS, 'nothing', $shape))[0]) } 1 .. 3;
	return { before => \@before, count => [$counted] };
}

sub cases
{
	my ($p) = @_;
	return (create_case($p), (map { (two_case($p, $_), advance_case($p, $_), run_case($p, $_)) } qw(sequence chain)), diamond_case($p));
}

# What each function costs, from the counts of the cases.
my @functions = qw(create_plan get_next_step submit_step_result advance
  get_next_step:chain submit_step_result:chain advance:chain advance:diamond run:chain run);

sub per_function
{
	my ($create, @others) = @_;
	my $diamond = pop @others;
	my %costs = (create_plan => $create->[0], 'advance:diamond' => $diamond->[0]);
	foreach my $suffix ('', ':chain')
	{
		my ($two, $advance, $run) = splice(@others, 0, 3);
		my @claims = grep { $_ % 2 == 0 } 0 .. $#$two;
		$costs{"get_next_step$suffix"} = mean(@$two[@claims]);
		$costs{"submit_step_result$suffix"} = mean(@$two[ map { $_ + 1 } @claims ]);
		$costs{"advance$suffix"} = $advance->[0];
		$costs{"run$suffix"} = $run->[0] / RUN_STEPS;
	}
	return \%costs;
}

# ---------- counting ----------

my %count;
my $together;    # instructions of advance in a plan that several clients share

sql('CHECKPOINT');
my @written = wal($node, 'postgres', \@session, cases('prepared'));
$count{wal} = per_function(map { [ map { $_->{bytes} } @$_ ] } @written);
$count{entries} = per_function(map { [ map { $_->{entries} } @$_ ] } @written);
$count{pages} = per_function(pages($node, 'postgres', \@session, cases('prepared')));

# A server with assertions executes far more instructions, and another processor has others.
my $postgres = $node->config_data('--bindir') . '/postgres';
my $why_not = $Config{archname} !~ /^x86_64/ ? 'the table is for x86-64' :
  sql('SHOW debug_assertions') eq 'on' ? 'the server has assertions' :
  can_count_instructions($postgres) ? undef : 'valgrind cannot run here';
unless ($why_not)
{
	my @cases = (cases('prepared'), cases('simple'), together_case('prepared'));
	$node->stop;
	my @counts = instructions($postgres, $node->data_dir, 'postgres', \@session, @cases);
	$together = pop(@counts)->[0];
	$count{prepared} = per_function(splice(@counts, 0, @counts / 2));
	$count{simple} = per_function(@counts);
}

# ---------- comparing ----------

sub shown
{
	my ($number) = @_;
	return sprintf($number < 100 ? '%.1f' : '%.0f', $number);
}

# The table with the counts of this run.
sub new_table
{
	my $text = sprintf("%-24s" . '%10s' x @kinds . "\n", 'function', @kinds);
	foreach my $function (@functions)
	{
		$text .= sprintf("%-24s" . '%10s' x @kinds . "\n", $function, map { $count{$_} ? shown($count{$_}{$function}) : '-' } @kinds);
	}
	return $text;
}

if ($ENV{COST})
{
	diag(new_table());
	plan(skip_all => 'the table was printed, and nothing compared');
}

my $room = $node->pg_version >= 15 && $node->pg_version < 16 ? ROOM : ROOM_ELSEWHERE;
my ($head, @rows) = map { [split] } split(/\n/, $table);
is_deeply([ map { $_->[0] } @rows ], \@functions, 'the table has the functions');
foreach my $row (@rows)
{
	my ($function, @numbers) = @$row;
	compare($function, $kinds[$_], $numbers[$_]) foreach 0 .. $#kinds;
}

sub compare
{
	my ($function, $kind, $expected) = @_;
  SKIP:
	{
		skip("$function, $kind: $why_not", 1) unless $count{$kind};
		my $counted = $count{$kind}{$function};
		my $percent = $expected > 0 ? sprintf(' (%+.0f %%)', 100 * ($counted / $expected - 1)) : '';
		my $what = sprintf('%s, %s: %s, where the table has %s%s', $function, $kind, shown($counted), $expected, $percent);
		# less than one page or entry is no matter
		cmp_ok($counted, '<=', $room * $expected + ($expected < 10 ? 0.3 : 0), $what);
		note("$what: \"make cost\" takes the new number") if $counted < 0.9 * $expected;
	}
	return;
}

# A statement that is one call goes neither to the planner, nor is its answer written by PostgreSQL. Others show that this could be noticed.
my $one_call = 'SELECT stepwise.list_plans(max => 1);';
foreach my $case (
	[ 'standard_planner', $one_call, 0 ],
	[ 'standard_planner', 'SELECT stepwise.list_plans(max => 1) LIMIT 1;', 1 ],
	[ 'jsonb_out', $one_call, 0 ],
	[ 'jsonb_out', 'SELECT stepwise.list_plans(max => 1), 1;', 1 ])
{
  SKIP:
	{
		my ($function, $statement, $called) = @$case;
		skip("what calls $function: $why_not", 1) if $why_not;
		is(calls_function($postgres, $node->data_dir, 'postgres', $function, $statement) ? 1 : 0, $called,
			"$statement " . ($called ? 'calls' : 'does without') . " $function");
	}
}

# The answers that name the claims of others are longer. Nothing else grows with the number of clients.
SKIP:
{
	skip("advance in a shared plan: $why_not", 1) unless $together;
	my $alone = $count{prepared}{advance};
	cmp_ok($together, '<=', 1.5 * $alone, sprintf('advance in a plan that %d clients share: %s instructions, and %s of one client', CLIENTS, shown($together), shown($alone)));
}

# A step with dependencies costs little more than one of a sequence, in one call and in two.
foreach my $functions ([qw(advance)], [qw(get_next_step submit_step_result)])
{
	compare_shapes($_, @$functions) foreach grep { $_ ne 'entries' } @kinds;
}

sub compare_shapes
{
	my ($kind, @functions) = @_;
  SKIP:
	{
		skip("with dependencies, $kind: $why_not", 1) unless $count{$kind};
		my ($sequence, $chain) = map { my $suffix = $_; @functions * mean(map { $count{$kind}{"$_$suffix"} } @functions) } ('', ':chain');
		my $more = $kind eq 'pages' ? DEPENDENCIES_PAGES : DEPENDENCIES;
		cmp_ok($chain, '<=', $more * $sequence, sprintf('%s, %s: %s with dependencies, %s in a sequence', join(' and ', @functions), $kind, shown($chain), shown($sequence)));
	}
	return;
}

done_testing();
