# Official clients of MCP against stepwise-mcp: programs for Node in test/mcp/clients. Their packages are installed from npm below
# build/ by test/mcp/lib.sh.

use strict;
use warnings;
use lib 'test/t', 'test/mcp';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Program;
use Server;
use Test::More;

plan skip_all => NO_CLIENTS unless $ENV{MCP_NODE};

my $node = start_server('clients', "stepwise.notify = on\n");
sql(slurp_file('test/mcp/clients/setup.sql'));
local %ENV = (%ENV, CONNECTION => $node->connstr('postgres'), DATA => $node->data_dir);

run_program("test/mcp/clients/$_.mjs") foreach qw(both review look tenants follow tasks progress restart);
is(sql('SELECT count(*) FROM stepwise.check_integrity()'), '0', 'the tables are consistent');
$node->stop;
done_testing();
