# Counts of what statements cost that do not depend on the clock: instructions, bytes of WAL, index entries, pages.
#
# What is to be counted comes as a list of cases. A case is a hash: the statements of "before" come first and are not counted. Those
# of "count" are counted. Each is a statement, or a reference to a list of statements that are counted together. What is returned for
# a case is a reference to a list, with a mean per statement for each element of "count".
#
# Instructions are counted by callgrind, in a backend without a server around it. Before and after what is counted, the backend calls
# a function of the extension that does nothing; there callgrind writes down what it has counted so far, and begins anew.
package Count;

use strict;
use warnings;
use Exporter qw(import);
use File::Temp qw(tempdir);
use IPC::Run qw(run);

our @EXPORT_OK = qw(can_count_instructions instructions first_call calls_function wal pages mean);

# A mark that needs neither the extension nor its catalog entries.
use constant EMPTY_MARK => 'SELECT pg_backend_pid();';
use constant EMPTY_MARK_FUNCTION => 'pg_backend_pid';

# A mark that is not planned.
use constant UTILITY_MARK => 'SHOW port;';
use constant UTILITY_MARK_FUNCTION => 'GetPGVariable';

use constant MARK => "SELECT stepwise.step_transition_allowed('pending', 'in_progress');";
use constant MARK_FUNCTION => 'stepwise_step_transition_allowed';

sub mean
{
	my @numbers = @_;
	my $sum = 0;
	$sum += $_ foreach @numbers;
	return @numbers ? $sum / @numbers : 0;
}

# The statements of an element of "count".
sub statements
{
	my ($element) = @_;
	my @statements = ref $element ? @$element : ($element);
	return @statements;
}

# Whether this machine can run a program of the server under callgrind: can_count_instructions POSTGRES
sub can_count_instructions
{
	my ($postgres) = @_;
	return eval { run([ qw(valgrind --tool=callgrind --callgrind-out-file=/dev/null), $postgres, '--version' ], '>', \my $out, '2>', \my $err) };
}

# Count instructions: instructions POSTGRES, DATA, DATABASE, BEFORE, CASE ... The server must be stopped.
# The statements of the list BEFORE come first in the session, such as PREPARE.
sub instructions
{
	my ($postgres, $data, $database, $before, @cases) = @_;
	my $folder = tempdir(CLEANUP => 1);
	# The first marks fill the caches. Between the last two of them there is nothing, so that is the cost of a mark.
	my @script = (@$before, (MARK) x 5);
	push @script, @{ $_->{before} }, map { (MARK, statements($_), MARK) } @{ $_->{count} } foreach @cases;

	callgrind($folder, MARK_FUNCTION, $postgres, $data, $database, @script);

	my $dump = 5;
	my $mark = counted("$folder/out.$dump");
	return map {
		[ map { $dump += 2; (counted("$folder/out.$dump") - $mark) / statements($_) } @{ $_->{count} } ]
	} @cases;
}

# Count how many instructions more than the second the first of two calls takes in a new session:
# first_call POSTGRES, DATA, DATABASE, BEFORE, CALL, CALL. The server must be stopped.
sub first_call
{
	my ($postgres, $data, $database, $before, @calls) = @_;
	my $folder = tempdir(CLEANUP => 1);
	callgrind($folder, EMPTY_MARK_FUNCTION, $postgres, $data, $database, @$before, (EMPTY_MARK) x 3, map { ($_, EMPTY_MARK) } @calls);
	return counted("$folder/out.4") - counted("$folder/out.5");
}

# Check whether a statement calls a function of the server: calls_function POSTGRES, DATA, DATABASE, FUNCTION, STATEMENT. The server must be
# stopped. The statement is run once before.
sub calls_function
{
	my ($postgres, $data, $database, $function, $statement) = @_;
	my $folder = tempdir(CLEANUP => 1);
	callgrind($folder, UTILITY_MARK_FUNCTION, $postgres, $data, $database, $statement, UTILITY_MARK, $statement, UTILITY_MARK);
	open(my $in, '<', "$folder/out.2") or die "callgrind wrote nothing: a mark is missing";
	return scalar(grep { /^c?fn=\(\d+\) \Q$function\E$/ } <$in>);
}

# Run statements in a backend without a server. At each mark, callgrind writes a file out.NUMBER into the folder.
sub callgrind
{
	my ($folder, $mark, $postgres, $data, $database, @script) = @_;
	my ($out, $err);
	run([ qw(valgrind --tool=callgrind), "--dump-before=$mark", "--callgrind-out-file=$folder/out", $postgres, '--single', '-D', $data, $database ],
		'<', \join("\n", @script, ''), '>', \$out, '2>', \$err)
	  or die "callgrind failed: $err";
	die "a statement failed: $1\n" if "$out$err" =~ /((?:ERROR|FATAL): .*)/;
	return;
}

sub counted
{
	my ($file) = @_;
	open(my $in, '<', $file) or die "callgrind wrote no $file: a mark is missing";
	while (my $line = <$in>)
	{
		return $1 if $line =~ /^totals: (\d+)/;
	}
	die "callgrind counted nothing in $file";
}

# Count what is written to the WAL: wal NODE, DATABASE, BEFORE, CASE ... Each element of "count" gives a reference to a hash: bytes, records,
# and how many of the records are index entries.
sub wal
{
	my ($node, $database, $before, @cases) = @_;
	my $lsn = "\\o\nSELECT pg_current_wal_insert_lsn();\n\\o /dev/null";
	my @script = ("\\o /dev/null", @$before);
	push @script, @{ $_->{before} }, map { ($lsn, statements($_), $lsn) } @{ $_->{count} } foreach @cases;

	my @lsns = split(/\n/, $node->safe_psql($database, join("\n", @script)));
	my @records = wal_records($node, $lsns[0], $lsns[-1]);
	return map {
		[ map { wal_between(\@records, splice(@lsns, 0, 2), scalar(statements($_))) } @{ $_->{count} } ]
	} @cases;
}

sub position
{
	my ($lsn) = @_;
	my ($high, $low) = split(m{/}, $lsn);
	return hex($high) * 2**32 + hex($low);
}

# Read the records from one place in the WAL to another.
sub wal_records
{
	my ($node, $from, $to) = @_;
	my ($out, $err);
	run([ 'pg_waldump', '-p', $node->data_dir . '/pg_wal', '-s', $from, '-e', $to ], '>', \$out, '2>', \$err);
	my @records;
	while ($out =~ /^rmgr: (\S+).*? lsn: ([0-9A-F\/]+), .*?desc: (\S+)/mg)
	{
		push @records, { at => position($2), entry => $1 eq 'Btree' && $3 =~ /^(?:INSERT|SPLIT)/ };
	}
	return @records;
}

sub wal_between
{
	my ($records, $from, $to, $statements) = @_;
	($from, $to) = (position($from), position($to));
	my @within = grep { $_->{at} >= $from && $_->{at} < $to } @$records;
	return {
		bytes => ($to - $from) / $statements,
		records => @within / $statements,
		entries => grep({ $_->{entry} } @within) / $statements };
}

# Count the pages that are touched: pages NODE, DATABASE, BEFORE, CASE ... The statements must be such that EXPLAIN takes them.
sub pages
{
	my ($node, $database, $before, @cases) = @_;
	my $explain = "\\o\nEXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)";
	my @script = ("\\o /dev/null", @$before);
	push @script, @{ $_->{before} }, map { ($explain, $_, "\\o /dev/null") } map { statements($_) } @{ $_->{count} } foreach @cases;

	# the pages of the execution are indented; those of the planning are not
	my @pages = $node->safe_psql($database, join("\n", @script)) =~ /^  Buffers: shared (.*)/mg;
	return map {
		[ map { mean(map { touched($_) } splice(@pages, 0, scalar(statements($_)))) } @{ $_->{count} } ]
	} @cases;
}

sub touched
{
	my ($line) = @_;
	my $pages = 0;
	$pages += $1 while $line =~ /(?:hit|read)=(\d+)/g;
	return $pages;
}

1;
