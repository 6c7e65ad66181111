# The program stepwise-mcp against a stand-in for stepwise.mcp: framing, ids, concurrent calls, cancelling, progress, waiting,
# streams, asking, options, failures, a restart of the server, the end.

use strict;
use warnings;
use lib 'test/t', 'test/mcp';
use JSON::PP;
use Pipe;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;
use Time::HiRes qw(time usleep);

delete $ENV{PGAPPNAME};
my $node = start_server('pipe');
sql('CREATE DATABASE pipe');
sql_in('pipe', slurp_file('test/mcp/stand_in.sql'));
sql('CREATE DATABASE late TEMPLATE pipe');
my $conninfo = $node->connstr('pipe');
my $old = { protocolVersion => '2025-11-25', capabilities => { elicitation => {} } };
my %modern = (_meta => { 'io.modelcontextprotocol/protocolVersion' => '2026-07-28' });

sub heard
{
	my ($what) = @_;
	return sql_in('pipe', "SELECT stepwise.heard('$what')");
}

sub await
{
	my ($query, $wanted) = @_;
	for (1 .. 500)
	{
		my $got = sql_in('pipe', $query);
		return $got if $got eq $wanted;
		usleep(20_000);
	}
	return "not in time";
}

# what runs in the database for a method of the stand-in
sub running
{
	return "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stepwise-mcp' AND datname = 'pipe' AND state = 'active' AND wait_event = 'PgSleep'";
}

# a call that takes too long when the input ends; it is looked at below
my $late = Pipe->start($node->connstr('late'));
$late->request('late', 'sleep', { seconds => 60 });
$late->finish;

# --- options -----------------------------------------------------------------

my $help = `$ENV{STEPWISE_MCP} --help`;
like($help, qr/$_/, "--help names $_") foreach qw(--tenant --role --read-only --tools --log --version --help);
like(`$ENV{STEPWISE_MCP} --version`, qr/^stepwise-mcp \(pg_stepwise\) \d+\.\d+\.\d+$/, '--version');
is(system("$ENV{STEPWISE_MCP} --nonsense 2>/dev/null") >> 8, 1, 'an unknown option is refused');
is(system("$ENV{STEPWISE_MCP} --tools some 2>/dev/null") >> 8, 1, 'so is an unknown set of tools');
is(system("$ENV{STEPWISE_MCP} one two 2>/dev/null") >> 8, 1, 'and a second argument');

# --- requests, ids, what is added --------------------------------------------

my $pipe = Pipe->start($conninfo);
is_deeply($pipe->ask(1, 'ping'), { jsonrpc => '2.0', id => 1, result => {} }, 'ping');
foreach my $id ('1', '-7', '1.50', '1e2', '12345678901234567890123', '"a"', '"\u00e9\n"', '"😀"')
{
	$pipe->send(qq({"jsonrpc": "2.0", "id": $id, "method": "echo"}));
	my $line = $pipe->line // '';
	ok(index($line, qq("id":$id,)) > 0, "the id $id comes back as it was") or diag($line);
}
my $meta = $pipe->ask(2, 'echo')->{result}{params}{_meta};
is_deeply($meta, { 'stepwise/pipe' => JSON::PP::true, 'stepwise/tools' => 'default', 'stepwise/again' => undef }, 'a request without params gets _meta');
is_deeply($pipe->ask(2, 'echo', { a => 1 })->{result}{params}, { a => 1, _meta => $meta }, 'so does one with params');
$pipe->send('{"jsonrpc": "2.0", "id": 2, "method": "echo", "params": null}');
is_deeply($pipe->receive->{result}{params}, { _meta => $meta }, 'and one whose params are null');
is_deeply($pipe->ask(2, 'echo', { a => 1, _meta => {} })->{result}{params}, { a => 1, _meta => $meta }, 'and one with an empty _meta');
is_deeply($pipe->ask(2, 'echo', { _meta => { b => 2, 'stepwise/tools' => 'all', 'stepwise/pipe' => 0, 'stepwise/again' => { done => 7 } }, z => 1 })->{result}{params},
	{ _meta => { b => 2, %$meta }, z => 1 }, 'a client does not override the keys of the program');
$pipe->send('{"id": 2, "method": "echo", "params": {"n": 1.2300, "big": 123456789012345678901, "_meta": 5}}');
like($pipe->line, qr/"n": 1.2300.*/, 'numbers are kept exactly');
is($pipe->ask(3, 'nonsense')->{error}{code}, -32601, 'an error of the database is handed on');
$pipe->notify('notifications/initialized');
is(await("SELECT stepwise.heard('notifications/initialized')", 1), 1, 'a notification goes to the database, and has no answer');

$pipe->ask(4, 'initialize', $old);
$meta = $pipe->ask(5, 'echo')->{result}{params}{_meta};
is($meta->{'stepwise/version'}, '2025-11-25', 'what was negotiated is sent along');
is_deeply($meta->{'stepwise/clientCapabilities'}, { elicitation => {} }, 'with the capabilities');
ok(!exists $pipe->ask(6, 'echo', \%modern)->{result}{params}{_meta}{'stepwise/version'}, 'but not with a request that says its version');

# --- what cannot be read -----------------------------------------------------

sub refused
{
	my ($name, $line, $code, $id) = @_;
	$pipe->send($line);
	my $answer = $pipe->receive;
	is($answer->{error}{code}, $code, $name);
	is_deeply([ exists $answer->{id}, $answer->{id} ], [ defined $id, $id ], "$name: the id");
}

refused('truncated', '{"jsonrpc": "2.0", "id": 1, "method": "ec', -32700);
refused('binary', join('', map { chr } grep { $_ != 10 } 0 .. 255), -32700);
refused('a zero byte', qq({"id": 1, "method": "a\0b"}), -32700);
refused('Latin-1', qq({"id": 1, "method": "\xe9"}), -32700);
refused('deeply nested', '{"id": 1, "method": "echo", "params": ' . '[' x 1_000_000 . ']' x 1_000_000 . '}', -32700);
refused('deeply nested and not closed', '[' x 3_000_000, -32700);
refused('a number', '1', -32600);
refused('an array', '[{"id": 1, "method": "echo"}]', -32600);
refused('no method', '{"id": 1}', -32600, 1);
refused('a method that is no string', '{"id": "a", "method": 1}', -32600, 'a');
refused('an id that is an object', '{"id": {}, "method": "echo"}', -32600);
refused('an id that is null', '{"id": null, "method": "echo"}', -32600);
refused('a long id', '{"id": "' . 'x' x 2000 . '", "method": "echo"}', -32600);
refused('\u0000, and the id last', '{"method": "echo", "params": {"a": "\u0000\\\\"}, "id": 9}', -32602, 9);
refused('half of a surrogate pair', '{"method": "echo", "params": {"a": "\ud83d"}, "id": 9}', -32602, 9);
refused('a number that is too large', '{"method": "echo", "params": {"a": 1e999999}, "id": 9}', -32602, 9);
is($pipe->errors, '', 'what only the client can mend is not told on stderr');
refused('a notification that is sent as a request', '{"method": "notifications/cancelled", "params": {"requestId": 9}, "id": 9}', -32601, 9);
refused('oversized', '{"id": 1, "method": "echo", "params": {"a": "' . 'x' x (17 * 1024 * 1024) . '"}}', -32700);
$pipe->raw("\n\r\n  \n");
is_deeply($pipe->ask(7, 'ping')->{result}, {}, 'empty lines are nothing, and the program lives');
$pipe->request(8, 'echo', { a => 'x' x (15 * 1024 * 1024) });
is(length $pipe->receive->{result}{params}{a}, 15 * 1024 * 1024, 'a message of 15 MB passes');
$pipe->raw('{"id": 9, "met');
usleep(50_000);
$pipe->raw("hod\": \"ping\"}\r\n{\"id\": 10, \"method\": \"ping\"}\n");
is_deeply([ map { $pipe->receive->{id} } 1 .. 2 ], [ 9, 10 ], 'messages come in pieces');

# --- several calls at once ---------------------------------------------------

$pipe->request("sleep $_", 'sleep', { seconds => 1.5 }) foreach 1 .. 3;
my $start = time;
$pipe->request('short', 'echo');
$pipe->request('ping', 'ping');
is_deeply([ sort map { $pipe->receive->{id} } 1 .. 2 ], [ 'ping', 'short' ], 'a long call blocks neither ping nor a short call');
cmp_ok(time - $start, '<', 1, 'in time');
$pipe->receive foreach 1 .. 3;
cmp_ok(time - $start, '<', 3, 'long calls run at the same time');
$pipe->request($_, 'sleep', { seconds => 0.3 }) foreach 1 .. 20;
my %answered = map { $pipe->receive->{id} => 1 } 1 .. 20;
is(scalar(keys %answered), 20, 'twenty calls are answered');
is(sql_in('pipe', "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stepwise-mcp' AND datname = 'pipe'"), '8', 'over eight connections');
$pipe->request('same', 'sleep', { seconds => 1.5 });
is($pipe->ask('same', 'echo')->{error}{code}, -32600, 'an id that is in use is refused');
ok($pipe->receive->{result}, 'and the first call is answered');
$pipe->request("many $_", 'sleep', { seconds => 0.02 }) foreach 1 .. 400;
my @many = map { $pipe->receive } 1 .. 400;
cmp_ok(scalar(grep { ($_->{error}{message} // '') =~ /too many calls/ } @many), '>', 0, 'calls beyond a limit are refused');
is(scalar(keys %{ { map { $_->{id} => 1 } @many } }), 400, 'and every one is answered once');

# --- cancelling, progress ----------------------------------------------------

my $slept = heard('slept');
$pipe->request('long', 'sleep', { seconds => 60 });
is(await(running(), 1), 1, 'a long call runs');
$pipe->notify('notifications/cancelled', { requestId => 'long', reason => 'enough' });
is(await(running(), 0), 0, 'a cancel ends it');
is($pipe->receive(0.3), undef, 'and nothing is sent for it');
is(heard('slept'), $slept, 'it has done nothing');
foreach my $id (1 .. 20)
{
	$pipe->request($id, 'sleep', { seconds => 60 });
	$pipe->notify('notifications/cancelled', { requestId => $id });
}
is($pipe->receive(0.5), undef, 'a cancel may come at once');
is(await(running(), 0), 0, 'and nothing runs on');
$pipe->notify('notifications/cancelled', { requestId => 'unknown' });
is_deeply([ map { $pipe->ask($_, 'echo')->{id} } 1 .. 12 ], [ 1 .. 12 ], 'other calls are not cancelled');

$pipe->request('p', 'progress', { _meta => { progressToken => 1.0 } });
my @progress = map { $pipe->receive } 1 .. 4;
is_deeply([ map { $_->{params}{progress} // $_->{id} } @progress ], [ 1, 2, 3, 'p' ], 'progress comes strictly increasing, then the answer');
is_deeply($progress[1], { jsonrpc => '2.0', method => 'notifications/progress', params => { progressToken => 1, progress => 2, total => 3, message => 'step 2' } },
	'with the token of the client');
is($pipe->ask('q', 'progress')->{id}, 'q', 'without a token there is no progress');

# --- rounds ------------------------------------------------------------------

$pipe->request('r', 'rounds', { count => 4, seconds => 0.05, _meta => { progressToken => 'mine' } });
@progress = map { $pipe->receive } 1 .. 4;
is_deeply([ map { $_->{params}{message} // $_->{result}{done} } @progress ], [ 'round 1', 'round 2', 'round 3', 4 ], 'a call in rounds reports each, and is answered once');
is($pipe->ask('r', 'rounds', { count => 3, seconds => 0 })->{result}{done}, 3, 'without a token it is answered');
my $rounds = heard('round');
$pipe->request('r', 'rounds', { count => 1000, seconds => 0.1, _meta => { progressToken => 1 } });
$pipe->receive foreach 1 .. 2;
$pipe->notify('notifications/cancelled', { requestId => 'r' });
is(await(running(), 0), 0, 'a cancel ends the rounds');
1 while defined $pipe->receive(0.3);
my $stayed = heard('round') - $rounds;
cmp_ok($stayed, '>=', 2, 'what earlier rounds have done stays');
usleep(300_000);
is(heard('round') - $rounds, $stayed, 'and no other begins');

# --- waiting, streams --------------------------------------------------------

$pipe->request('w', 'wait', { for => 'event', ms => 60000 });
is($pipe->receive(1), undef, 'a call waits');
my $asked = heard('asked to wait');
cmp_ok($asked, '<=', 2, 'and does not ask again and again');
is($pipe->ask('x', 'echo')->{id}, 'x', 'meanwhile others are answered');
$start = time;
sql_in('pipe', "INSERT INTO stepwise.heard (what) VALUES ('event'); NOTIFY stepwise");
is_deeply($pipe->receive, { jsonrpc => '2.0', id => 'w', result => { came => JSON::PP::true } }, 'a notification ends the wait');
cmp_ok(time - $start, '<', 1, 'at once');
$pipe->request('t', 'wait', { for => 'silent event', ms => 500 });
sql_in('pipe', "INSERT INTO stepwise.heard (what) VALUES ('silent event')");
is($pipe->receive->{id}, 't', 'without a notification, it asks again after the time that was said');
$pipe->request('c', 'wait', { for => 'nothing', ms => 60000 });
usleep(100_000);
$pipe->notify('notifications/cancelled', { requestId => 'c' });
sql_in('pipe', 'NOTIFY stepwise');
is($pipe->receive(0.3), undef, 'a call that waits can be cancelled');

sub news
{
	sql_in('pipe', "INSERT INTO stepwise.heard (what) VALUES ('news'); NOTIFY stepwise");
}

$pipe->request('l', 'subscriptions/listen', {%modern});
is($pipe->receive->{method}, 'acknowledged', 'a stream begins with its first message');
news();
is_deeply($pipe->receive->{params}, { number => 1, about => 'l' }, 'what changes is sent');
news();
is_deeply($pipe->receive->{params}, { number => 2, about => 'l' }, 'once each');
$pipe->notify('notifications/cancelled', { requestId => 'l' });
usleep(100_000);
news();
is($pipe->receive(0.3), undef, 'a cancel ends the stream');

is_deeply($pipe->ask('s', 'resources/subscribe', { uri => 'stepwise://plan/1' })->{result}, { ended => JSON::PP::true }, 'a subscription of an older client is answered at once');
$pipe->ask('s', 'resources/subscribe', { uri => 'stepwise://plan/1' });
news();
is_deeply($pipe->receive->{params}, { number => 4, about => 'stepwise://plan/1' }, 'and goes on');
is($pipe->receive(0.3), undef, 'once, though it was asked for twice');
$pipe->ask('u', 'resources/unsubscribe', { uri => 'stepwise://plan/1' });
news();
is($pipe->receive(0.3), undef, 'until it is ended');
$pipe->request("l $_", 'subscriptions/listen', {%modern}) foreach 1 .. 130;
my @streams = map { $pipe->receive } 1 .. 130;
is(scalar(grep { ($_->{error}{message} // '') =~ /too many subscriptions/ } @streams), 2, 'subscriptions beyond a limit are refused');
is($pipe->ask('x', 'echo')->{id}, 'x', 'so that there is room for calls');
$pipe->notify('notifications/cancelled', { requestId => "l $_" }) foreach 1 .. 130;

# --- work, asking ------------------------------------------------------------

$slept = heard('slept');
is_deeply($pipe->ask('task', 'work', { seconds => 0.3 })->{result}, { task => 1 }, 'a task is answered first');
is(heard('slept'), $slept, 'before its work is done');
is(await("SELECT stepwise.heard('slept')", $slept + 1), $slept + 1, 'then its work is done');
is($pipe->receive(0.2), undef, 'without another answer');
$rounds = heard('round');
is_deeply($pipe->ask('task', 'work', { count => 3, seconds => 0.1, _meta => { progressToken => 't' } })->{result}, { task => 1 }, 'work in rounds is answered first');
is_deeply([ map { $pipe->receive->{params} } 1 .. 2 ], [ map { { progressToken => 't', progress => $_, message => "round $_" } } 1 .. 2 ], 'its progress has the token of the call');
is(await("SELECT stepwise.heard('round')", $rounds + 3), $rounds + 3, 'all rounds are done');
is($pipe->receive(0.2), undef, 'and nobody gets an answer');
$pipe->request($_, 'work', { count => 2, seconds => 0.2 }) foreach 1 .. 3;
is(scalar(grep { $_->{result}{task} } map { $pipe->receive } 1 .. 3), 3, 'the same work is asked for three times');
is(await("SELECT stepwise.heard('round')", $rounds + 5), $rounds + 5, 'and done');
usleep(500_000);
is(heard('round'), $rounds + 5, 'once');

is($pipe->ask('m', 'ask', {%modern})->{result}{resultType}, 'input_required', 'a newer client gets the questions themselves');
$pipe->request('a', 'ask', { key => 'value' });
my @questions = map { $pipe->receive } 1 .. 2;
is_deeply([ map { $_->{method} } @questions ], [ ('elicitation/create') x 2 ], 'an older client is asked');
is_deeply($questions[0]{params}, { mode => 'form', message => 'Good?' }, 'with the params of the database');
is($pipe->ask('x', 'echo')->{id}, 'x', 'meanwhile others are answered');
$pipe->send({ jsonrpc => '2.0', id => $questions[1]{id}, error => { code => -1, message => 'no' } });
$pipe->send({ jsonrpc => '2.0', id => 'unknown', result => {} });
is($pipe->receive(0.2), undef, 'it waits for all answers');
$pipe->send({ jsonrpc => '2.0', id => $questions[0]{id}, result => { action => 'accept', content => { n => 1 } } });
is_deeply($pipe->receive, { jsonrpc => '2.0', id => 'a',
	result => { responses => { first => { action => 'accept', content => { n => 1 } }, second => { action => 'cancel' } } } }, 'the answers go to the database');
$pipe->request('a', 'ask', { count => 3, seconds => 0 });
$pipe->send({ jsonrpc => '2.0', id => $_->{id}, result => { action => 'decline' } }) foreach map { $pipe->receive } 1 .. 2;
is_deeply($pipe->receive->{result}, { done => 3, responses => { map { $_ => { action => 'decline' } } qw(first second) } }, 'rounds after a question keep the answers');
$pipe->request('b', 'ask');
@questions = map { $pipe->receive } 1 .. 2;
$pipe->notify('notifications/cancelled', { requestId => 'b' });
is_deeply([ map { $pipe->receive->{params}{requestId} } 1 .. 2 ], [ map { $_->{id} } @questions ], 'a cancel withdraws the questions');

# --- batches -----------------------------------------------------------------

$pipe->ask('old', 'initialize', { protocolVersion => '2025-03-26', capabilities => { elicitation => {} } });

sub batch
{
	return { jsonrpc => '2.0', @_ };
}

# The answers of a batch, sorted: what each id got.
sub answers
{
	my ($batch) = @_;
	return ref $batch eq 'ARRAY' ? [ sort map { ($_->{id} // 'none') . ($_->{error} ? " $_->{error}{code}" : '') } @$batch ] : $batch;
}

$pipe->send([ batch(id => 1, method => 'echo', params => { a => 1 }), batch(id => 'two', method => 'ping'), batch(method => 'notifications/batched'), batch(id => 3, method => 'nonsense') ]);
my $batch = $pipe->receive;
is_deeply(answers($batch), [ 1, '3 -32601', 'two' ], 'a batch gets one array with the answers, and none for a notification');
is_deeply([ map { $_->{result}{params}{a} } grep { $_->{id} eq 1 } @$batch ], [1], 'each with its result');
is(await("SELECT stepwise.heard('notifications/batched')", 1), 1, 'its notifications arrive');
$pipe->send([ batch(method => 'notifications/batched'), batch(method => 'notifications/cancelled', params => { requestId => 'none' }), batch(id => 'unknown', result => {}) ]);
is($pipe->receive(0.3), undef, 'a batch of notifications and responses gets nothing');
$pipe->send([ 1, 'x', [], batch(id => {}, method => 'ping'), batch(id => 5), batch(id => 6, method => 'ping'), batch(id => 6, method => 'echo'), batch(id => 6, method => 'echo') ]);
is_deeply(answers($pipe->receive), [ 5 . ' -32600', 6, 6, '6 -32600', ('none -32600') x 4 ], 'what is no message gets an error among the others');
$pipe->send([]);
is_deeply([ map { ref, $_->{error}{code} } $pipe->receive ], [ 'HASH', -32600 ], 'an empty batch is an error');
$start = time;
$pipe->send([ map { batch(id => "b $_", method => 'sleep', params => { seconds => 0.5 }) } 1 .. 4 ]);
is($pipe->ask('meanwhile', 'echo')->{id}, 'meanwhile', 'a batch blocks no other call');
is(scalar @{ $pipe->receive }, 4, 'and is answered when its last call is');
cmp_ok(time - $start, '<', 1.8, 'its calls run at the same time');
$pipe->send([ map { batch(id => "c $_", method => 'sleep', params => { seconds => $_ }) } 0.1, 60 ]);
is(await(running(), 1), 1, 'one call of a batch takes long');
is($pipe->receive(0.3), undef, 'the others wait for it');
$pipe->notify('notifications/cancelled', { requestId => 'c 60' });
is_deeply(answers($pipe->receive), ['c 0.1'], 'until it is cancelled: it gets no answer');
$pipe->send([ batch(id => 'd', method => 'sleep', params => { seconds => 60 }) ]);
is(await(running(), 1), 1, 'a batch of one');
$pipe->notify('notifications/cancelled', { requestId => 'd' });
is($pipe->receive(0.3), undef, 'gets nothing if that is cancelled');
$pipe->send([ batch(id => 'ask', method => 'ask'), batch(id => 'w', method => 'wait', params => { for => 'batched', ms => 60000 }), batch(id => 's', method => 'resources/subscribe', params => { uri => 'u' }) ]);
@questions = map { $pipe->receive } 1 .. 2;
is_deeply([ map { $_->{method} } @questions ], [ ('elicitation/create') x 2 ], 'a question of a batch is a message of its own');
$pipe->send([ map { batch(id => $_->{id}, result => { action => 'accept' }) } @questions ]);
is($pipe->receive(0.3), undef, 'its answer may come in a batch');
sql_in('pipe', "INSERT INTO stepwise.heard (what) VALUES ('batched'); NOTIFY stepwise");
is_deeply(answers($pipe->receive), [qw(ask s w)], 'all are answered together, the subscription too');
news();
is($pipe->receive->{params}{about}, 'u', 'which goes on');
$pipe->ask('u', 'resources/unsubscribe', { uri => 'u' });
$pipe->send([ map { batch(id => $_, method => 'echo', params => { a => 'x' x 300_000 }) } 1 .. 50 ]);
is(scalar @{ $pipe->receive }, 50, 'a batch may be long');
$pipe->send([ map { batch(id => $_, method => 'ping') } 1 .. 101 ]);
like($pipe->receive->{error}{message}, qr/at most 100/, 'but not too long');
$pipe->ask('new', 'initialize', $old);
refused('a batch of another version', '[{"id": 1, "method": "ping"}]', -32600);

# --- errors of statements ----------------------------------------------------

is_deeply($pipe->ask('f', 'fail', { sqlstate => '40001', times => 2 })->{result}, { tries => 3 }, 'a serialization failure is retried');
my $error = $pipe->ask('f', 'fail', { sqlstate => '40P01', times => 1000 })->{error};
is_deeply([ $error->{code}, $error->{data}{sqlstate} ], [ -32603, '40P01' ], 'but not for ever');
is(sql_in('pipe', 'SELECT last_value FROM stepwise.tries'), '7', 'four times');
$error = $pipe->ask('f', 'fail', { sqlstate => 'P0001', times => 1000 })->{error};
is_deeply($error, { code => -32603, message => "failed on purpose\na hint", data => { sqlstate => 'P0001', detail => 'a detail', hint => 'a hint' } }, 'an error has message, detail and hint');
$error = $pipe->ask('f', 'fail', { sqlstate => '42501', times => 1000 })->{error};
like($error->{message}, qr/grant_agent/, 'missing rights come with the command that grants them');
like($pipe->errors, qr/grant_agent/, 'on stderr too');

is_deeply($pipe->ask('t', 'tell'), { jsonrpc => '2.0', id => 't', result => {} }, 'what the owner is told is not sent to the client') foreach 1 .. 2;
is(scalar(() = $pipe->errors =~ /a tenant is missing/g), 1, 'it is told on stderr, once');

# --- a restart of the server -------------------------------------------------

like($late->receive->{error}{message}, qr/took too long/, 'a call that still runs long after the end of the input is cancelled');
is($late->ended, 0, 'and the program ends');
is(sql("SELECT count(*) FROM pg_stat_activity WHERE datname = 'late' AND backend_type = 'client backend' AND state = 'active'"), '0', 'and the query');

$pipe->request('l', 'subscriptions/listen', {%modern});
$pipe->receive;
$pipe->request('lost', 'sleep', { seconds => 60 });
is(await(running(), 1), 1, 'a call runs');
$node->stop('immediate');
$error = $pipe->receive->{error};
like($error->{message}, qr/lost.*may have been carried out.*get_plan_status/s, 'the call in flight says that the connection was lost, and how to find out');
is($pipe->ask('p', 'ping')->{id}, 'p', 'ping works without a server');
$pipe->request('later', 'echo');
usleep(500_000);
$node->start;
is($pipe->receive->{id}, 'later', 'a call that is made during the restart waits for the server');
is($pipe->ask('after', 'echo')->{id}, 'after', 'and so do later ones');
news();
is($pipe->receive->{params}{about}, 'l', 'a stream lives through the restart');
$pipe->notify('notifications/cancelled', { requestId => 'l' });
$node->restart;
is($pipe->ask('again', 'echo')->{id}, 'again', 'a restart between two calls is not noticed');
$node->stop;
$start = time;
$error = $pipe->ask('down', 'echo')->{error};
like($error->{message}, qr/pg_isready/, 'a server that stays away is an error that says what to do');
cmp_ok(time - $start, '<', 8, 'after a bounded time');
$start = time;
$pipe->ask('down', 'echo');
cmp_ok(time - $start, '<', 1, 'the next call does not wait for it');
$node->start;
is($pipe->ask('up', 'echo')->{id}, 'up', 'until it is back');
is($pipe->ask('w', 'wait', { for => 'event', ms => 1000 })->{result}{came}, JSON::PP::true, 'waiting works again');

# --- the end -----------------------------------------------------------------

$pipe->request('l', 'subscriptions/listen', {%modern});
$pipe->receive;
$pipe->request('w', 'wait', { for => 'nothing', ms => 60000 });
usleep(200_000);
$pipe->request('last', 'sleep', { seconds => 0.7 });
$pipe->raw('{"id": "cut off');
$pipe->finish;
my %last = map { my $m = $pipe->receive; ($m->{id} // '') => $m } 1 .. 4;
is_deeply([ sort keys %last ], [ '', 'l', 'last', 'w' ], 'at the end of the input, all that is open is answered');
is($last{''}{error}{code}, -32700, 'a line that was cut off is an error');
is_deeply($last{l}{result}, { ended => JSON::PP::true }, 'a stream ends with its result');
ok($last{w}{error}, 'a call that waits ends with an error');
is_deeply($last{last}{result}, {}, 'a call that runs is finished');
is($pipe->ended, 0, 'then the program ends');

foreach my $signal (qw(TERM INT HUP))
{
	$pipe = Pipe->start($conninfo);
	$pipe->request('s', 'sleep', { seconds => 60 });
	is(await(running(), 1), 1, 'a call runs');
	kill($signal, $pipe->{pid});
	like($pipe->receive->{error}{message}, qr/signal/, "$signal: the call gets an error");
	is($pipe->ended(5), 0, "$signal: the program ends");
	is(await(running(), 0), 0, "$signal: the query is cancelled");
}

$pipe = Pipe->start($conninfo);
$pipe->request('s', 'sleep', { seconds => 60 });
is(await(running(), 1), 1, 'a call runs');
close($pipe->{from});
is($pipe->ended(5), 0, 'when the client is gone the program ends');
is(await(running(), 0), 0, 'and its query');

# a client that writes much before it reads
$pipe = Pipe->start($conninfo);
$pipe->request($_, 'echo', { a => 'x' x 100_000 }) foreach 1 .. 100;
is(scalar(grep { length($pipe->receive->{result}{params}{a}) == 100_000 } 1 .. 100), 100, 'a client may write before it reads');
is($pipe->stop, 0, 'and end');

# --- options of the connection -----------------------------------------------

sql_in('pipe', <<'SQL');
CREATE ROLE agent; CREATE ROLE "odd ""name"; CREATE ROLE stranger LOGIN; CREATE DATABASE empty;
GRANT USAGE ON SCHEMA stepwise TO agent, "odd ""name";
SQL

sub who
{
	my $pipe = Pipe->start($conninfo, @_);
	my $answer = $pipe->ask(1, 'who');
	my $again = $pipe->ask(2, 'who');
	is($pipe->stop, 0, "@_: ends");
	return $again->{result} // $answer;
}

my $who = who();
is_deeply([ @$who{qw(user readOnly tenant encoding)} ], [ sql('SELECT current_user'), 'off', undef, 'UTF8' ], 'without options');
is(who('--role', 'agent')->{user}, 'agent', '--role');
is(who('--role', 'odd "name')->{user}, 'odd "name', '--role with an odd name');
is(who('--tenant', "a'cme")->{tenant}, "a'cme", '--tenant');
$who = who('--tenant', 'acme', '--role', 'agent', '--read-only');
is_deeply([ @$who{qw(user readOnly tenant)} ], [ 'agent', 'on', 'acme' ], 'all together');

$pipe = Pipe->start($conninfo, '--read-only', '--tools', 'all', '--log', "$ENV{TESTDATADIR}/pipe.log");
is_deeply($pipe->ask(1, 'echo')->{result}{params}{_meta}, { 'stepwise/pipe' => JSON::PP::true, 'stepwise/tools' => 'all', 'stepwise/again' => undef, 'stepwise/readOnly' => JSON::PP::true },
	'--tools and --read-only are told to the database');
is($pipe->ask(2, 'write', { secret => 'confidential' })->{error}{data}{sqlstate}, '25006', '--read-only: nothing can be written');
is($pipe->ask(3, 'echo')->{id}, 3, 'after an error the connection is used on');
$pipe->stop;
my $log = slurp_file("$ENV{TESTDATADIR}/pipe.log");
like($log, qr/-> 2 "write" \d+ bytes\n.*<- 2 "write" 25006 \d+ ms/s, '--log has a line for each message');
unlike($log, qr/confidential/, 'and no contents');

# --- what is missing ---------------------------------------------------------

sub missing
{
	my ($name, $conninfo, $options, $cure) = @_;
	my $pipe = Pipe->start($conninfo, @$options);
	like($pipe->ask(1, 'echo')->{error}{message}, $cure, "$name: the call is told what to do");
	like($pipe->errors, $cure, "$name: stderr too");
	is($pipe->ask(2, 'ping')->{id}, 2, "$name: the program lives");
	is($pipe->stop, 0, "$name: and ends");
}

my $server = 'host=' . $node->host . ' port=' . $node->port;
missing('no server', 'host=/nowhere', [], qr/pg_isready/);
missing('no database', "$server dbname=none", [], qr/createdb none/);
missing('no user', "$server dbname=pipe user=none", [], qr/createuser none/);
missing('no extension', "$server dbname=empty", [], qr/psql -d empty -c 'CREATE EXTENSION pg_stepwise'/);
missing('no rights', "$server dbname=pipe user=stranger", [], qr/grant_agent\('stranger'\)/);
missing('no role', $conninfo, [qw(--role nemo)], qr/CREATE ROLE "nemo"/);
missing('not a member', "$server dbname=pipe user=stranger", [qw(--role agent)], qr/GRANT "agent" TO "stranger"/);
missing('no tenant', $conninfo, [qw(--tenant nobody)], qr/Ask for another tenant/);
missing('a bad connection string', 'host=/nowhere nonsense=1', [], qr/nonsense/);
sql_in('pipe', 'ALTER FUNCTION stepwise.mcp RENAME TO other');
missing('an old extension', $conninfo, [], qr/ALTER EXTENSION pg_stepwise UPDATE/);
sql_in('pipe', 'ALTER FUNCTION stepwise.other RENAME TO mcp');

$node->stop;
done_testing();
