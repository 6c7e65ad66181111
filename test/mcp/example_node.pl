# The MCP server of examples/ in Node.

use strict;
use warnings;
use lib 'test/t', 'test/mcp';
use Example;

test_example($ENV{MCP_NODE}, 'examples/mcp_server.js');
