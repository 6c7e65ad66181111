# An MCP server of examples/, with the official clients.
package Example;

use strict;
use warnings;
use Exporter qw(import);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Program;
use Server;
use Test::More;

our @EXPORT = qw(test_example);

# test_example INTERPRETER, PROGRAM
sub test_example
{
	my ($interpreter, $program) = @_;

	plan skip_all => NO_CLIENTS unless $ENV{MCP_NODE};
	plan skip_all => "there is nothing that runs $program with its packages" unless $interpreter;
	my $node = start_server('example');
	sql(slurp_file('test/mcp/clients/setup.sql'));
	local %ENV = (%ENV, CONNECTION => $node->connstr('postgres'), DATA => $node->data_dir, DATABASE_URL => '',
		PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres', PGUSER => 'owner');
	run_program('test/mcp/clients/example.mjs', $interpreter, $program);
	$node->stop;
	done_testing();
	return;
}

1;
