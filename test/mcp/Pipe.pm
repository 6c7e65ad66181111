# The program stepwise-mcp as a child of a test: messages to it, and what it writes.
package Pipe;

use strict;
use warnings;
use IO::Select;
use JSON::PP;
use POSIX ();
use Time::HiRes qw(time usleep);

my $json = JSON::PP->new->allow_nonref->canonical;

# Start the program: Pipe->start(CONNECTION STRING, OPTION ...). PROGRAM_WRAPPER is a command before it.
sub start
{
	my ($class, $conninfo, @options) = @_;
	pipe(my $in, my $to) or die $!;
	pipe(my $from, my $out) or die $!;
	my $self = bless { to => $to, from => $from, rest => '', errors => $ENV{TESTDATADIR} . "/stderr.$$." . ++our $count }, $class;
	my @wrapper = split(/ /, $ENV{PROGRAM_WRAPPER} // '');
	$self->{pid} = fork() // die $!;
	if (!$self->{pid})
	{
		open(STDIN, '<&', $in);
		open(STDOUT, '>&', $out);
		open(STDERR, '>', $self->{errors});
		close($_) foreach $to, $from, $in, $out;
		exec(@wrapper, $ENV{STEPWISE_MCP}, @options, defined $conninfo ? $conninfo : ()) or POSIX::_exit(127);
	}
	$to->autoflush(1);
	return $self;
}

# Send a message, or bytes as they are.
sub send
{
	my ($self, $message) = @_;
	$self->raw((ref $message ? $json->encode($message) : $message) . "\n");
}

sub raw
{
	my ($self, $bytes) = @_;
	local $SIG{PIPE} = 'IGNORE';
	print { $self->{to} } $bytes;
}

# Send a request: id, method, and params if there are any.
sub request
{
	my ($self, $id, $method, $params) = @_;
	$self->send({ jsonrpc => '2.0', id => $id, method => $method, defined $params ? (params => $params) : () });
}

sub notify
{
	my ($self, $method, $params) = @_;
	$self->send({ jsonrpc => '2.0', method => $method, params => $params // {} });
}

# Seconds that a test waits. A wrapper such as valgrind is slow.
sub patience
{
	return $ENV{PROGRAM_WRAPPER} ? 60 : 20;
}

# The next line, as it was written, or undef if none comes in time.
sub line
{
	my ($self, $seconds) = @_;
	my $end = time + ($seconds // patience());
	while ($self->{rest} !~ /\n/)
	{
		my $left = $end - time;
		return undef if $left <= 0;
		# the end of another process interrupts it
		next unless IO::Select->new($self->{from})->can_read($left);
		return undef unless sysread($self->{from}, $self->{rest}, 65536, length $self->{rest});
	}
	$self->{rest} =~ s/^([^\n]*)\n//;
	return $1;
}

# The next message, or undef if none comes in time.
sub receive
{
	my ($self, $seconds) = @_;
	my $line = $self->line($seconds);
	return defined $line ? $json->decode($line) : undef;
}

# A request and its answer.
sub ask
{
	my ($self, @request) = @_;
	$self->request(@request);
	return $self->receive;
}

sub errors
{
	my ($self) = @_;
	open(my $in, '<', $self->{errors}) or return '';
	local $/;
	return scalar(<$in>) // '';
}

# End the input.
sub finish
{
	my ($self) = @_;
	close($self->{to});
}

# Wait for the end of the program. Returns its exit code, the signal that ended it, or "runs".
sub ended
{
	my ($self, $seconds) = @_;
	my $end = time + ($seconds // patience());
	while (time < $end)
	{
		if (waitpid($self->{pid}, POSIX::WNOHANG()) == $self->{pid})
		{
			return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
		}
		usleep(10_000);
	}
	return 'runs';
}

# End the input and the program. Returns its exit code.
sub stop
{
	my ($self) = @_;
	$self->finish;
	return $self->ended;
}

1;
