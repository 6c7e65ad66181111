# Programs of a language as clients of the test's server, and statements that look at what they did.
package Client;

use strict;
use warnings;
use Exporter qw(import);
use IPC::Run ();

our @EXPORT = qw(languages new_database sql await_true new_plan client start_client finish_client);

use constant PATIENCE => 60;    # seconds for a program

# The interpreters that test/drivers/lib.sh has found, and how the names of their programs end.
my %LANGUAGES = (node => [ $ENV{NODE}, 'js' ], python => [ $ENV{PYTHON}, 'py' ]);

# The languages that are there.
sub languages
{
	return grep { $LANGUAGES{$_}[0] } sort keys %LANGUAGES;
}

# Make a database that has the extension, in which all that follows happens.
sub new_database
{
	my ($name, $notify) = @_;
	system('createdb', $name) == 0 or die "could not create $name\n";
	$ENV{PGDATABASE} = $name;
	sql("CREATE EXTENSION pg_stepwise; ALTER DATABASE $name SET stepwise.notify = $notify");
	return;
}

# Run statements, and return their rows. An error ends the test.
sub sql
{
	my ($statements) = @_;
	my ($out, $err);
	IPC::Run::run([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1' ], '<', \$statements, '>', \$out, '2>', \$err)
	  or die "$statements\n$err";
	chomp $out;
	return $out;
}

# Wait until a query answers true.
sub await_true
{
	my ($query) = @_;
	foreach (1 .. 300)
	{
		return if sql($query) eq 't';
		select(undef, undef, undef, 0.1);
	}
	die "this did not become true: $query\n";
}

# Create a plan, and return its id.
sub new_plan
{
	my ($steps) = @_;
	return sql("SELECT stepwise.create_plan('plan', 'goal', \$steps\$$steps\$steps\$) ->> 'planId'");
}

# The command that runs a program of this repository: client LANGUAGE, PROGRAM, ARGUMENT ...
sub client
{
	my ($language, $program, @arguments) = @_;
	my ($interpreter, $extension) = @{ $LANGUAGES{$language} };
	return [ $interpreter, "$program.$extension", @arguments ];
}

# Start a command. Its output is in {out} and {err} as it comes.
sub start_client
{
	my ($command) = @_;
	my $client = { out => '', err => '' };
	$client->{run} = IPC::Run::start($command, '<', \undef, '>', \$client->{out}, '2>', \$client->{err},
		IPC::Run::timeout(PATIENCE));
	return $client;
}

# Wait for the end of a command, and return its exit status.
sub finish_client
{
	my ($client) = @_;
	$client->{run}->finish;
	return $client->{run}->full_result(0);
}

1;
