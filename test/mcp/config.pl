# What "make mcp-config" prints: each block is in the format of its host, and the command in it connects.

use strict;
use warnings;
use lib 'test/t', 'test/mcp';
use JSON::PP;
use Pipe;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server('config');
my $database = q(it's "a" \base);
$node->safe_psql('postgres', q(CREATE DATABASE "it's ""a"" \base"));
$node->safe_psql($database, slurp_file('test/mcp/stand_in.sql'));

sub config
{
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => $database, PGPASSWORD => 'secret', @_);
	return `test/mcp/config`;
}

my $config = config();
unlike($config, qr/secret/, 'a password is not printed');
like($config, qr/^\Q$_\E/m, "there is a block for $_") foreach 'Claude Code', 'Claude Desktop', 'VS Code', 'Codex';
like($config, qr/Cursor/, 'and for Cursor');

my @blocks = map { decode_json($_) } $config =~ /^(\{.*\})$/mg;
my @servers = ($blocks[0]{mcpServers}{stepwise}, $blocks[1]{servers}{stepwise});
my ($toml) = $config =~ /^\[mcp_servers\.stepwise\]\n(.*)/ms;
push @servers, { map { /^(\w+) = (.*)$/ ? ($1 => JSON::PP->new->allow_nonref->decode($2)) : () } split(/\n/, $toml) };
my ($shell) = $config =~ /^claude mcp add stepwise -- (.*)$/m;
my ($command, @args) = split(/\0/, do { open(my $in, '-|', 'bash', '-c', "printf '%s\\0' $shell"); local $/; <$in> });
push @servers, { command => $command, args => \@args };

foreach my $server (@servers)
{
	local $ENV{STEPWISE_MCP} = $server->{command};
	my $pipe = Pipe->start($server->{args}[0]);
	is($pipe->ask(1, 'who')->{result}{encoding}, 'UTF8', 'the command connects');
	$pipe->stop;
}

my ($shown) = slurp_file('README.md') =~ /^```js\n(.*)\n```$/m;
my ($program, $connection) = (decode_json($shown)->{mcpServers}{stepwise}{command}, decode_json($shown)->{mcpServers}{stepwise}{args}[0]);
my $printed = `bash -c '. test/mcp/config; print_config "\$1" "\$2"' bash '$program' '$connection'`;
like($printed, qr/^\Q$shown\E$/m, 'README.md shows the block as it is printed');

is(config(STEPWISE_MCP => '/nowhere') . $?, 256, 'a program that is missing is an error');
$node->stop;
done_testing();
