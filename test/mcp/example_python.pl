# The MCP server of examples/ in Python.

use strict;
use warnings;
use lib 'test/t', 'test/mcp';
use Example;

test_example($ENV{PYTHON}, 'examples/mcp_server.py');
