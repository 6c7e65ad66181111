# A program for Node that prints "ok NAME" or "not ok NAME" for each of its checks, and diagnostics after "#".
package Program;

use strict;
use warnings;
use Exporter qw(import);
use Test::More;

our @EXPORT = qw(run_program NO_CLIENTS);

use constant NO_CLIENTS => 'NPM COULD NOT BE REACHED, or there is no Node: the official clients of MCP were NOT TESTED';

# Run it with arguments, and count its checks as tests of this script.
sub run_program
{
	my ($program, @arguments) = @_;
	my $checks = 0;

	open(my $from, '-|', $ENV{MCP_NODE}, $program, @arguments) or die "could not run $program: $!";
	while (my $line = <$from>)
	{
		if ($line =~ /^(not )?ok (.*)/)
		{
			ok(!$1, $2);
			$checks++;
		}
		else
		{
			diag($line);
		}
	}
	close($from);
	is($?, 0, "$program ends");
	cmp_ok($checks, '>', 0, "$program has checked something");
	return;
}

1;
