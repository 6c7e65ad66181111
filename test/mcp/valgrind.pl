# stepwise-mcp under valgrind: no invalid access, and no memory that is lost, over everything that a client can do.

use strict;
use warnings;
use lib 'test/t', 'test/mcp';
use Pipe;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;
use Time::HiRes qw(usleep);

plan skip_all => 'valgrind is not installed' if system('valgrind --version >/dev/null 2>&1') != 0;

my $node = start_server('valgrind');
sql('CREATE DATABASE pipe; CREATE ROLE agent');
sql_in('pipe', slurp_file('test/mcp/stand_in.sql') . 'GRANT USAGE ON SCHEMA stepwise TO agent');
my %modern = (_meta => { 'io.modelcontextprotocol/protocolVersion' => '2026-07-28' });
$ENV{PROGRAM_WRAPPER} = 'valgrind -q --leak-check=full --errors-for-leak-kinds=definite,indirect --error-exitcode=99';

sub session
{
	my ($name, $conninfo, $options, $talk) = @_;
	my $pipe = Pipe->start($conninfo, @$options);
	$talk->($pipe);
	is($pipe->stop, 0, $name) or diag($pipe->errors);
}

session('ordinary calls', $node->connstr('pipe'), [], sub {
	my ($pipe) = @_;
	$pipe->ask(1, 'initialize', { protocolVersion => '2025-03-26', capabilities => { elicitation => {} } }) foreach 1 .. 2;
	$pipe->request($_, 'sleep', { seconds => 0.1 }) foreach 1 .. 5;
	$pipe->receive foreach 1 .. 5;
	$pipe->request('long', 'sleep', { seconds => 60 });
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
	$pipe->notify('notifications/cancelled', { requestId => 'long' });
	$pipe->request('p', 'progress', { _meta => { progressToken => 1 } });
	$pipe->receive foreach 1 .. 4;
	$pipe->ask('tell', 'tell') foreach 1 .. 2;
	$pipe->ask('work', 'work', { seconds => 0.1 });
	$pipe->ask('rounds', 'rounds', { count => 3, seconds => 0 });
	$pipe->ask('work', 'work', { count => 3, seconds => 0 });
	$pipe->request('r', 'rounds', { count => 1000, seconds => 0.1 });
	usleep(500_000);
	$pipe->notify('notifications/cancelled', { requestId => 'r' });
	$pipe->request('ask', 'ask', { a => 1 });
	my @questions = map { $pipe->receive } 1 .. 2;
	$pipe->send({ id => $_->{id}, result => { action => 'accept' } }) foreach @questions;
	ok($pipe->receive->{result}, 'an answer');
	$pipe->request('ask', 'ask', { a => 1 });
	$pipe->receive foreach 1 .. 2;
	$pipe->request('l', 'subscriptions/listen', {%modern});
	$pipe->receive;
	$pipe->ask('s', 'resources/subscribe', { uri => 'a' });
	$pipe->request('w', 'wait', { for => 'nothing', ms => 100 });
	sql_in('pipe', 'NOTIFY stepwise');
	usleep(500_000);
	$pipe->send('[{"id": 1, "method": "ping"}, {"id": 2, "method": "echo"}, 3, {"id": {}, "method": "echo"}, {"method": "notifications/x"}]');
	is_deeply([ sort map { $_->{id} // '' } @{ $pipe->receive } ], [ '', '', 1, 2 ], 'a batch, in the one version that has it');
	$pipe->send('[{"method": "notifications/x"}, {"id": "b", "method": "sleep", "params": {"seconds": 60}}, {"id": "c", "method": "sleep", "params": {"seconds": 60}}]');
	$node->poll_query_until('postgres', "SELECT count(*) = 2 FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
	$pipe->notify('notifications/cancelled', { requestId => 'b' });
});

session('bad input', $node->connstr('pipe'), [], sub {
	my ($pipe) = @_;
	my @lines = ('{', '[]', '1', '"\ud800"', '{"id": 1, "method": "a\u0000"}', '{"a": {"b": [1, {"c": "\ud800"}], "d": tru}}', "\xff", '[' x 100_000,
		'{"id": {}, "method": "a"}', '{"id": 1, "method": 1}', '{"id": 1, "result": 1}', '{"id": 1}', '{"id": 1, "method": "echo", "params": [1]}');
	$pipe->send($_) foreach @lines;
	$pipe->receive(2) foreach 1 .. @lines - 1;
	$pipe->send('x' x 17_000_000);
	is($pipe->receive->{error}{code}, -32700, 'too long');
	$pipe->raw('{"id": 1, "met');
});

# The answer to a request. The call that waits may be answered before, if it was just looking when the server stopped.
sub answer_to
{
	my ($pipe, $id) = @_;
	my $answer = $pipe->receive;
	$answer = $pipe->receive if $answer->{id} eq 'w';
	is($answer->{id}, $id, "$id is answered");
	return $answer;
}

session('failures', $node->connstr('pipe'), [qw(--role agent --tenant nobody --read-only)], sub { is($_[0]->ask(1, 'who')->{error}{data}{sqlstate}, 'SW013', 'refused') });
session('no server', 'host=/nowhere', [], sub { ok($_[0]->ask(1, 'who')->{error}, 'no server') });
session('a restart', $node->connstr('pipe'), [], sub {
	my ($pipe) = @_;
	$pipe->request('w', 'wait', { for => 'nothing', ms => 600_000 });
	$pipe->request('lost', 'sleep', { seconds => 60 });
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
	$node->stop('immediate');
	$node->start;
	ok(answer_to($pipe, 'lost')->{error}, 'a call is lost');
	$pipe->request('next', 'echo');
	ok(answer_to($pipe, 'next')->{result}, 'the next one is answered');
});
$node->stop;
done_testing();
