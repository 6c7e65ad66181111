# What the first call of a function costs more than the second in a new connection: the library is loaded, catalog entries are read, queries
# are planned. It is counted in instructions, so it is the same in each run. A change that adds more than a tenth fails here; mostly that is
# a query where rows can be read by index. "make cost" writes the table anew. test/bench/first.pl times the same calls.
#
# Every function that agents may call is there, but for those that read no row. What a first call loads must not grow with the members of tenants either.

use strict;
use warnings;

use Config;
use lib 'test/t';
use Count qw(can_count_instructions first_call);
use FirstCalls qw(FIXTURES functions calls);
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

# In thousands of instructions. The table is that of PostgreSQL 15 on x86-64; a millisecond is 2,500 to 5,000 of them.
my $table = <<'TABLE';
function               more
advance                5286
audit_head             1934
call                   5266
cancel_plan            5056
create_plan            4892
current_tenant          947
define_workflow        2929
drop_workflow          4694
enter_tenant            982
execution              2403
execution_as_of        3379
fail_step              5256
find_plans             4166
fork_plan              6060
get_artifact           2279
get_next_step          5231
get_output             2224
get_plan_context       3716
get_plan_status        2527
get_step_context       2699
get_workflow           1354
handoff                2693
heartbeat              3887
help                    530
list_active_plans      2025
list_checkpoints       2660
list_plans             2023
list_tools             1322
list_workflows         1346
log_skill_execution    4535
mcp                    5531
modify_plan            5614
reclaim_stalled        1972
record_tool_result     5342
release_step           5267
request_user_review    5579
resume                 5606
retry_step             5250
run_steps              5714
search_artifacts       3996
set_variables          4259
skip_step              5278
start_workflow         5071
state_merge            3276
state_read             1811
state_write            2766
store_artifact         5808
store_output           5719
submit_step_result     4939
submit_user_decision   5443
task_variables         2678
uuid7                  1547
validate_definition    1325
verify_audit           3843
why                    2670
workflow_response      1943
run                    5658
TABLE
# "make cost" reads up to the line of run.
my @functions = ((grep { $_ ne 'run' } functions()), 'run');

use constant ROOM => 1.1;
use constant ROOM_ELSEWHERE => 1.35;

my $node = start_server('first', "autovacuum = off\njit = off\n");
sql('CREATE EXTENSION pg_stepwise; CREATE ROLE first_agent;'
	  . " SELECT stepwise.add_member('first_agent', 'default'), stepwise.grant_agent('first_agent')");
sql("SET client_min_messages = warning;\n" . FIXTURES);

my $postgres = $node->config_data('--bindir') . '/postgres';
plan(skip_all => 'the table is for x86-64') if $Config{archname} !~ /^x86_64/;
plan(skip_all => 'the server has assertions') if sql('SHOW debug_assertions') eq 'on';
plan(skip_all => 'valgrind cannot run here') unless can_count_instructions($postgres);

# Those that read no row are left out, but for uuid7: their first call only loads the library.
my $granted = sql(q{SELECT string_agg(p.proname, ' ' ORDER BY p.proname COLLATE "C") FROM pg_proc AS p
	WHERE p.pronamespace = 'stepwise'::regnamespace AND has_function_privilege('first_agent', p.oid, 'EXECUTE')
	  AND p.proname <> ALL ('{audit_detail,audit_entries,derive_plan_status,plan_fits,plan_transition_allowed,slot_of,step_fits,
		step_transition_allowed,tenant_slot}')});

my %calls = map { $_ => [ calls($_, \&sql) ] } @functions;
$node->stop;
my @before = ('SET SESSION AUTHORIZATION first_agent;', 'SET synchronous_commit = off;');

# Count what the first call costs more, in thousands of instructions.
sub more
{
	my ($function) = @_;
	return first_call($postgres, $node->data_dir, 'postgres', \@before, @{ $calls{$function} }) / 1000;
}

my %more = map { $_ => more($_) } @functions;

if ($ENV{COST})
{
	diag(join("\n", sprintf('%-20s %6s', 'function', 'more'), map { sprintf('%-20s %6.0f', $_, $more{$_}) } @functions));
	plan(skip_all => 'the table was printed, and nothing compared');
}

my $room = $node->pg_version >= 15 && $node->pg_version < 16 ? ROOM : ROOM_ELSEWHERE;
my (undef, @rows) = map { [split] } split(/\n/, $table);
is_deeply([ map { $_->[0] } @rows ], \@functions, 'the table has the functions');
foreach my $row (@rows)
{
	my ($function, $expected) = @$row;
	my $what = sprintf('%s: %.0f, where the table has %s (%+.0f %%)', $function, $more{$function}, $expected, 100 * ($more{$function} / $expected - 1));
	cmp_ok($more{$function}, '<=', $room * $expected, $what);
	note("$what: \"make cost\" takes the new number") if $more{$function} < 0.9 * $expected;
}

is(join(' ', sort @functions), $granted, 'every function that an agent may call is counted');

$node->start;
sql("INSERT INTO stepwise.member SELECT 'tenant ' || i, (100000 + i)::oid::regrole FROM generate_series(1, 5000) AS i");
$node->stop;
my $beside = more('list_plans');
cmp_ok($beside, '<=', $room * $more{list_plans}, sprintf('list_plans beside 5,000 members: %.0f instead of %.0f', $beside, $more{list_plans}));

done_testing();
