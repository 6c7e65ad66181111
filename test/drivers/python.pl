# The agent of examples/ and the page doc/drivers.md, in Python with psycopg 3.

use strict;
use warnings;
use lib 'test/drivers';
use Client;
use Language;
use Test::More;

plan skip_all => 'there is no Python with psycopg 3' unless grep { $_ eq 'python' } languages();

test_language('python');
done_testing();
