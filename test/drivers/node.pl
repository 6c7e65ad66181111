# The agent of examples/ and the page doc/drivers.md, in Node with the package pg.

use strict;
use warnings;
use lib 'test/drivers';
use Client;
use Language;
use Test::More;

plan skip_all => 'there is no Node with the package pg' unless grep { $_ eq 'node' } languages();

test_language('node');
done_testing();
