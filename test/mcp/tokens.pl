# How many tokens the list of tools costs a model. They are counted with a tokenizer from npm, which is installed below build/;
# without it, by characters, with a stricter limit.

use strict;
use warnings;
use lib 'test/t';
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $limit = 3000;
my $characters_of_token = 4.2;    # 4.33 were measured

my $node = start_server('tokens');
$node->safe_psql('postgres', 'CREATE EXTENSION pg_stepwise');
my $response = decode_json($node->safe_psql('postgres', q(SELECT stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}'))));
my $list = encode_json($response->{result});
is(scalar @{ $response->{result}{tools} }, 12, 'twelve tools are listed');
cmp_ok(length($list) / $characters_of_token, '<=', $limit, 'characters of the list');

SKIP:
{
	my $folder = "$ENV{TESTDATADIR}/tokenizer" if $ENV{TESTDATADIR};
	$folder //= PostgreSQL::Test::Utils::tempdir();
	skip 'SKIPPED: there is no npm', 1 if system('command -v npm >/dev/null 2>&1') != 0;
	skip 'SKIPPED: npm could not install the tokenizer', 1
	  if system("timeout 60 npm install --prefix '$folder' --cache '$folder/cache' --silent --no-audit --no-fund gpt-tokenizer\@3 >/dev/null 2>&1") != 0;
	append_to_file("$folder/list.json", $list);
	my $tokens = `node -e 'console.log(require("$folder/node_modules/gpt-tokenizer").encode(require("fs").readFileSync("$folder/list.json", "utf8")).length)'`;
	chomp $tokens;
	note "$tokens tokens, " . length($list) . ' characters';
	cmp_ok($tokens, '<=', $limit, 'tokens of the list');
}

$node->stop;
done_testing();
