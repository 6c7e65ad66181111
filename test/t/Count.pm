# Counts of what statements cost that do not depend on the clock: instructions, bytes of WAL, index entries, pages.
#
# A test is a list of cases. A case is a reference to a hash: the statements of "before" come first and are not counted; those of
# "count" are counted, each for itself. What is returned for a case is a list with a number for each counted statement.
#
# Instructions are counted by callgrind, in a backend without a server around it. The backend calls a function of the extension
# that does nothing, before and after each counted statement; there callgrind writes down what it has counted, and begins anew.
package Count;

use strict;
use warnings;
use Exporter qw(import);
use File::Temp qw(tempdir);
use IPC::Run qw(run);

our @EXPORT_OK = qw(can_count_instructions instructions wal pages mean);

use constant MARK => "SELECT stepwise.step_transition_allowed('pending', 'in_progress');";
use constant MARK_FUNCTION => 'stepwise_step_transition_allowed';

sub mean
{
	my @numbers = @_;
	my $sum = 0;
	$sum += $_ foreach @numbers;
	return @numbers ? $sum / @numbers : 0;
}

# Whether this machine can run a backend under callgrind.
sub can_count_instructions
{
	my $found = eval { run([qw(valgrind --tool=callgrind --version)], '>', \my $out, '2>', \my $err) };
	return $found ? 1 : 0;
}

# Count the instructions of each statement: instructions POSTGRES, DATA, DATABASE, BEFORE, CASE ... The server must be stopped.
# The statements of the list BEFORE come first in the session, such as PREPARE.
sub instructions
{
	my ($postgres, $data, $database, $before, @cases) = @_;
	my $folder = tempdir(CLEANUP => 1);
	# The first marks fill the caches. Between the last two of them there is nothing, so that is the cost of a mark.
	my @script = (@$before, (MARK) x 5);
	push @script, @{ $_->{before} }, map { (MARK, $_, MARK) } @{ $_->{count} } foreach @cases;

	my ($out, $err);
	run([ qw(valgrind --tool=callgrind), '--dump-before=' . MARK_FUNCTION, "--callgrind-out-file=$folder/out",
			$postgres, '--single', '-D', $data, $database ],
		'<', \join("\n", @script, ''), '>', \$out, '2>', \$err)
	  or die "callgrind failed: $err";
	die "a statement failed: $1\n" if "$out$err" =~ /((?:ERROR|FATAL): .*)/;

	my $dump = 5;
	my $mark = counted("$folder/out.$dump");
	return map {
		[ map { $dump += 2; counted("$folder/out.$dump") - $mark } @{ $_->{count} } ]
	} @cases;
}

sub counted
{
	my ($file) = @_;
	open(my $in, '<', $file) or die "callgrind wrote no $file: a mark is missing";
	while (<$in>) { return $1 if /^totals: (\d+)/ }
	die "callgrind counted nothing in $file";
}

# Count what each statement writes: wal NODE, DATABASE, BEFORE, CASE ... Each counted statement gives a reference to a hash: bytes,
# the number of records, and among them the number of index entries.
sub wal
{
	my ($node, $database, $before, @cases) = @_;
	my $lsn = "\\o\nSELECT pg_current_wal_insert_lsn();\n\\o /dev/null";
	my @script = ("\\o /dev/null", @$before);
	push @script, @{ $_->{before} }, map { ($lsn, $_, $lsn) } @{ $_->{count} } foreach @cases;

	my @lsns = split(/\n/, $node->safe_psql($database, join("\n", @script)));
	my @records = wal_records($node, $lsns[0], $lsns[-1]);
	return map {
		[ map { wal_between(\@records, splice(@lsns, 0, 2)) } @{ $_->{count} } ]
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
	my ($records, $from, $to) = map { ref $_ ? $_ : position($_) } @_;
	my @within = grep { $_->{at} >= $from && $_->{at} < $to } @$records;
	return { bytes => $to - $from, records => scalar(@within), entries => scalar(grep { $_->{entry} } @within) };
}

# Count the pages that each statement touches: pages NODE, DATABASE, BEFORE, CASE ... A statement must be one that EXPLAIN takes.
sub pages
{
	my ($node, $database, $before, @cases) = @_;
	my @script = ("\\o /dev/null", @$before);
	push @script, @{ $_->{before} },
	  map { ("\\o\nEXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)", $_, "\\o /dev/null") } @{ $_->{count} } foreach @cases;

	# the pages of the execution are indented; those of the planning are not
	my @pages = $node->safe_psql($database, join("\n", @script)) =~ /^  +Buffers: shared (.*)/mg;
	return map {
		[ map { touched(shift @pages) } @{ $_->{count} } ]
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
