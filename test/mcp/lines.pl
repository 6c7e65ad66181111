# Lines of JSON to stepwise-mcp with the extension behind it: both generations through one program, batches, waiting with notifications
# off, tenants and roles, a pooler, the log of calls, and how fast the program starts.

use strict;
use warnings;
use lib 'test/t', 'test/mcp';
use JSON::PP;
use Pipe;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Server;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = start_server('lines');
sql(slurp_file('test/mcp/clients/setup.sql'));
my $conninfo = $node->connstr('postgres');
my %modern = ('io.modelcontextprotocol/protocolVersion' => '2026-07-28', 'io.modelcontextprotocol/clientCapabilities' => {});
my %tasks = (%modern, 'io.modelcontextprotocol/clientCapabilities' => { extensions => { 'io.modelcontextprotocol/tasks' => {} } });
my $last = 0;

# Call a tool, and return the object that it answers, or its error.
sub tool
{
	my ($pipe, $name, $arguments, $meta) = @_;
	my $answer = $pipe->ask(++$last, 'tools/call', { name => $name, arguments => $arguments // {}, $meta ? (_meta => $meta) : () });
	return $answer->{error} // $answer->{result}{structuredContent} // $answer->{result}{content}[0]{text};
}

sub make_plan
{
	my ($pipe, $name, @steps) = @_;
	return tool($pipe, 'create_plan', { name => $name, goal => 'g', steps => \@steps })->{planId};
}

# --- both generations through one program --------------------------------------

my $pipe = Pipe->start($conninfo);
my $discovered = $pipe->ask(1, 'server/discover', { _meta => {%modern} })->{result};
is_deeply($discovered->{supportedVersions}, ['2026-07-28'], 'a new client discovers');
my $initialized = $pipe->ask(2, 'initialize', { protocolVersion => '2025-06-18', capabilities => {} })->{result};
is($initialized->{protocolVersion}, '2025-06-18', 'an older one is welcome in the same program');
is($initialized->{instructions}, $discovered->{instructions}, 'both read the same instructions');
my $old = $pipe->ask(3, 'tools/list')->{result};
my $new = $pipe->ask(4, 'tools/list', { _meta => {%modern} })->{result};
is_deeply([ map { [ sort keys %$_ ] } $old, $new ], [ ['tools'], [qw(_meta cacheScope resultType tools ttlMs)] ], 'each gets what its version has');
is_deeply([ map { $_->{name} } @{ $old->{tools} } ], [ map { $_->{name} } @{ $new->{tools} } ], 'the same tools');
is_deeply($new->{_meta}{'io.modelcontextprotocol/serverInfo'}{name}, 'pg_stepwise', 'with the name of the server');
is($pipe->ask(5, 'server/discover')->{error}{code}, -32601, 'a method of the other version is not known');
is($pipe->ask(6, 'ping', { _meta => {%modern} })->{error}{code}, -32601, 'nor is ping');
is_deeply($pipe->ask(7, 'tools/list', { _meta => { %modern, 'io.modelcontextprotocol/protocolVersion' => '2099-01-01' } })->{error}{data},
	{ supported => ['2026-07-28'], requested => '2099-01-01' }, 'an unknown version is told the known ones');
is($pipe->ask(8, 'tools/list', { _meta => { 'io.modelcontextprotocol/protocolVersion' => '2026-07-28' } })->{error}{code}, -32602, 'capabilities may not be missing');
is($pipe->ask(9, 'resources/read', { uri => 'stepwise://x' })->{error}{code}, -32002, 'a resource that is not there, for the older version');
is_deeply($pipe->ask(10, 'resources/read', { uri => 'stepwise://x', _meta => {%modern} })->{error}{data}, { uri => 'stepwise://x' }, 'and for the newer one');

# --- which version has which method, and what its results have -------------------

my $task = make_plan($pipe, 'a task', { name => 'a', tool => 'brew', arguments => { leaf => 'mint' } });
my %params = (
	'initialize' => { protocolVersion => '2025-11-25', capabilities => {} },
	'logging/setLevel' => { level => 'info' },
	'tools/call' => { name => 'get_plan_status', arguments => {} },
	'prompts/get' => { name => 'tea' },
	'completion/complete' => { ref => { type => 'ref/prompt', name => 'tea' }, argument => { name => 'leaf', value => '' } },
	'resources/read' => { uri => "stepwise://plan/$task" }, 'resources/subscribe' => { uri => "stepwise://plan/$task" }, 'resources/unsubscribe' => { uri => "stepwise://plan/$task" },
	'subscriptions/listen' => { notifications => { toolsListChanged => JSON::PP::true } },
	map { $_ => { taskId => $task, inputResponses => {} } } qw(tasks/get tasks/result tasks/update tasks/cancel),
);
my %versions = (
	old => [qw(initialize ping logging/setLevel resources/subscribe resources/unsubscribe tasks/result tasks/list)],
	new => [qw(server/discover subscriptions/listen tasks/update)],
	both => [qw(tools/list tools/call prompts/list prompts/get resources/list resources/templates/list resources/read completion/complete tasks/get tasks/cancel)],
);
my %cached = map { $_ => 1 } qw(server/discover tools/list prompts/list resources/list resources/templates/list resources/read);
tool($pipe, 'run', { plan_id => $task });
foreach my $kind (qw(old new both))
{
	foreach my $method (@{ $versions{$kind} })
	{
		my $answer = $pipe->ask("$method old", $method, $params{$method});
		is(($answer->{error}{code} // 0) == -32601, $kind eq 'new', "$method before 2026-07-28");
		is_deeply([ grep { exists $answer->{result}{$_} } qw(resultType ttlMs cacheScope) ], [], "$method has nothing of 2026-07-28 then");
		$pipe->request("$method new", $method, { %{ $params{$method} // {} }, _meta => {%tasks} });
		if ($method eq 'subscriptions/listen')
		{
			is($pipe->receive->{params}{_meta}{'io.modelcontextprotocol/subscriptionId'}, "$method new", "$method: its first message names it");
			$pipe->notify('notifications/cancelled', { requestId => "$method new" });
			next;
		}
		$answer = $pipe->receive;
		is(($answer->{error}{code} // 0) == -32601, $kind eq 'old', "$method in 2026-07-28");
		next if $answer->{error};
		is_deeply([ $answer->{result}{resultType}, $answer->{result}{_meta}{'io.modelcontextprotocol/serverInfo'}{name} ], [ 'complete', 'pg_stepwise' ], "$method: what each result has");
		is_deeply([ exists $answer->{result}{ttlMs}, $answer->{result}{cacheScope} ], $cached{$method} ? [ 1, 'private' ] : [ '', undef ], "$method: whether it may be kept");
	}
}

# --- batches -------------------------------------------------------------------

sub request
{
	my ($id, $method, $params) = @_;
	return { jsonrpc => '2.0', id => $id, method => $method, $params ? (params => $params) : () };
}

# The answers to a batch, by their ids. Notifications may come before.
sub answers
{
	my ($pipe) = @_;
	my $answers = $pipe->receive;
	$answers = $pipe->receive while ref $answers eq 'HASH' && $answers->{method};
	return map { $_->{id} => $_ } @$answers;
}

$pipe->send([ request(1, 'ping') ]);
is($pipe->receive->{error}{code}, -32600, 'a batch is refused in 2025-06-18');
$pipe->ask(2, 'initialize', { protocolVersion => '2025-03-26', capabilities => {} });
my $plan = make_plan($pipe, 'batched', { name => 'a', instructions => 'Do it' }, { name => 'b', tool => 'brew', arguments => { leaf => 'mint' } });
$pipe->send([
	request('list', 'tools/list'), request('ping', 'ping'), { jsonrpc => '2.0', method => 'notifications/initialized' },
	request('next', 'tools/call', { name => 'get_next_step', arguments => { plan_id => $plan } }),
	request('none', 'tools/call', { name => 'no_such_tool' }), request('bad', 'tools/call', { name => 'run', arguments => { plan => 1 } }),
	request('new', 'server/discover') ]);
my %got = answers($pipe);
is_deeply([ sort keys %got ], [qw(bad list new next none ping)], 'a batch is answered by one array');
is($got{next}{result}{structuredContent}{name}, 'a', 'a tool in it is called');
is_deeply([ map { $_->{error}{code} // $_->{result}{isError} } @got{qw(none bad new)} ], [ -32602, JSON::PP::true, -32601 ], 'an error is the answer of its request alone');
$pipe->send([ request('a', 'tools/call', { name => 'submit_step_result', arguments => { plan_id => $plan, step => 'a', result => 1, next => JSON::PP::false } }) ]);
is($pipe->receive->[0]{result}{structuredContent}{submitted}{stepStatus}, 'completed', 'so is one that writes');
$pipe->send([ request('run', 'tools/call', { name => 'run', arguments => { plan_id => $plan } }), request('x', 'resources/subscribe', { uri => "stepwise://plan/$plan" }) ]);
%got = answers($pipe);
is_deeply([ $got{run}{result}{structuredContent}{task_status}, $got{x}{result} ], [ 'completed', {} ], 'a run and a subscription are answered');
$pipe->ask(3, 'resources/unsubscribe', { uri => "stepwise://plan/$plan" });
1 while $pipe->receive(0.2);
$pipe->stop;

# --- waiting while stepwise.notify is off ----------------------------------------

is(sql(q(SELECT FROM stepwise.current_tenant(); SHOW stepwise.notify)), 'off', 'the server sends no notifications');
$pipe = Pipe->start($conninfo);
$pipe->ask('i', 'initialize', { protocolVersion => '2025-11-25', capabilities => {} });
$plan = make_plan($pipe, 'watched', { name => 'a', prompt => 'Sure?' }, { name => 'b', tool => 'brew', arguments => { leaf => 'mint' } });
$pipe->ask('s', 'resources/subscribe', { uri => "stepwise://plan/$plan" });
$pipe->request('l', 'subscriptions/listen', { notifications => { taskIds => [$plan] }, _meta => {%tasks} });
is($pipe->receive->{method}, 'notifications/subscriptions/acknowledged', 'a subscription begins');
$pipe->request('task', 'tools/call', { name => 'run', arguments => { plan_id => $plan }, task => {} });
$pipe->request('result', 'tasks/result', { taskId => $plan });
my $start = time;
my (%heard, $decided);
while (!$heard{result} && time - $start < 20)
{
	my $message = $pipe->receive(1) // next;
	$heard{ $message->{id} // $message->{method} } = $message;
	next if $decided || ($message->{params}{status} // '') ne 'input_required';
	sql("SELECT stepwise.resume(checkpoint_id, '\"yes\"') FROM stepwise.checkpoints WHERE plan_id = '$plan'; SELECT stepwise.run('$plan')");
	$decided = time;
}
is($heard{task}{result}{task}{status}, 'working', 'a task begins');
is($heard{result}{result}{structuredContent}{task_status}, 'completed', 'who waits for it learns what others did');
cmp_ok(time - ($decided // 0), '<', 5, 'soon');
for (1 .. 40)
{
	last if ($heard{'notifications/tasks'}{params}{status} // '') eq 'completed' && $heard{'notifications/resources/updated'};
	my $message = $pipe->receive(0.2) // next;
	$heard{ $message->{id} // $message->{method} } = $message;
}
is($heard{'notifications/resources/updated'}{params}{uri}, "stepwise://plan/$plan", 'a subscription hears of it');
is($heard{'notifications/tasks'}{params}{status}, 'completed', 'of both generations');
is($heard{'notifications/tasks'}{params}{_meta}{'io.modelcontextprotocol/subscriptionId'}, 'l', 'by its id');
$pipe->finish;
my ($end) = grep { ($_->{id} // '') eq 'l' } map { $pipe->receive(5) // () } 1 .. 5;
is($end->{result}{resultType}, 'complete', 'it ends with a result');
is($pipe->ended, 0, 'and the program');

# --- environment, tenants, roles -------------------------------------------------

sub answer
{
	my ($name, $connection, @options) = @_;
	my $pipe = Pipe->start($connection, @options);
	my $answer = tool($pipe, $name);
	$pipe->stop;
	return ref $answer ? $answer->{message} : $answer;
}

{
	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port, PGDATABASE => 'postgres', PGUSER => 'theirs');
	is(answer('current_tenant', undef), 'theirs', 'PGHOST, PGPORT, PGDATABASE and PGUSER connect');
	is(answer('current_tenant', 'user=ours'), 'ours', 'what the connection string says counts first');
	append_to_file("$ENV{TESTDATADIR}/services.conf", "[plans]\nuser=ours\ndbname=postgres\n");
	local $ENV{PGSERVICEFILE} = "$ENV{TESTDATADIR}/services.conf";
	local $ENV{PGUSER} = undef;
	delete $ENV{PGUSER};
	is(answer('current_tenant', 'service=plans'), 'ours', 'so does a service');
	is(answer('current_tenant', 'postgres'), 'default', 'and the name of a database');
}
is(answer('current_tenant', $conninfo, qw(--tenant theirs)), 'theirs', '--tenant');
like(answer('current_tenant', "$conninfo user=ours", qw(--tenant theirs)), qr/theirs.*\n/, 'who is not a member is refused, and told what to do');
is(answer('current_tenant', $conninfo, qw(--role theirs)), 'theirs', '--role');
like(answer('purge', $conninfo, qw(--role theirs)), qr/unknown tool/, 'purge is no tool');
$pipe = Pipe->start($conninfo, qw(--role worker));
$plan = make_plan($pipe, 'by a role', { name => 'a' });
is(sql("SELECT actor FROM stepwise.audit WHERE plan_id = '$plan' LIMIT 1"), 'worker', 'the role of the connection is the actor');
$pipe->stop;

# --- a role without a tenant ---------------------------------------------------------

sql("CREATE ROLE homeless LOGIN; SELECT stepwise.grant_agent('homeless')");
$pipe = Pipe->start("$conninfo user=homeless");
like($_, qr/^SW010: .*add_member\('homeless', 'default'\)/s, 'a role without a tenant is told what it lacks') foreach tool($pipe, 'get_plan_status'), tool($pipe, 'get_plan_status', {}, \%modern);
like($pipe->ask('r', 'resources/list')->{error}{message}, qr/^SW010: .*add_member/s, 'by other methods, too');
is(scalar(() = $pipe->errors =~ /add_member\('homeless', 'default'\)/g), 1, 'and stderr says it once');
$pipe->stop;

# --- behind a pooler in transaction mode ------------------------------------------------

# All clients of a role share one connection to the server.
sub start_pooler
{
	my ($folder) = @_;
	append_to_file("$folder/users.txt", join('', map { qq("$_" ""\n) } qw(owner agent theirs)));
	append_to_file("$folder/pgbouncer.ini", <<"INI");
[databases]
* = host=@{[ $node->host ]} port=@{[ $node->port ]}
[pgbouncer]
listen_addr =
listen_port = @{[ $node->port ]}
unix_socket_dir = $folder
auth_type = trust
auth_file = $folder/users.txt
pool_mode = transaction
default_pool_size = 1
INI
	my $pid = fork() // die $!;
	exec("exec $ENV{PGBOUNCER} $folder/pgbouncer.ini >$folder/log 2>&1") or POSIX::_exit(127) if !$pid;
	for (1 .. 100)
	{
		last if -e "$folder/log" && slurp_file("$folder/log") =~ /process up/;
		usleep(100_000);
	}
	return $pid;
}

SKIP:
{
	skip 'there is no PgBouncer', 7 unless $ENV{PGBOUNCER};
	my $folder = PostgreSQL::Test::Utils::tempdir_short();
	my $pooler = start_pooler($folder);
	my $through = "host=$folder port=" . $node->port . ' dbname=postgres';
	my $tenant = Pipe->start("$through user=owner", qw(--tenant theirs));
	my $role = Pipe->start("$through user=owner", qw(--role ours));
	$pipe = Pipe->start("$through user=owner");
	is(join(' ', map { tool($_, 'current_tenant') } $tenant, $role, $pipe, $tenant, $role, $pipe), 'theirs ours default theirs ours default', 'a tenant and a role hold for their call');
	$pipe->ask('i', 'initialize', { protocolVersion => '2025-11-25', capabilities => { elicitation => {} } });
	$plan = make_plan($pipe, 'pooled', { name => 'a', prompt => 'Sure?' }, { name => 'b', tool => 'brew', arguments => { leaf => 'mint', seconds => 0.1 } });
	$pipe->request('r', 'tools/call', { name => 'run', arguments => { plan_id => $plan } });
	my $question = $pipe->receive;
	is($question->{method}, 'elicitation/create', 'a person is asked');
	is(tool($tenant, 'current_tenant'), 'theirs', 'meanwhile others use the connection');
	$pipe->send({ jsonrpc => '2.0', id => $question->{id}, result => { action => 'accept', content => { response => 'yes' } } });
	is($pipe->receive->{result}{structuredContent}{task_status}, 'completed', 'and what was answered is decided');
	$plan = make_plan($pipe, 'pooled', { name => 'a', tool => 'brew', arguments => { leaf => 'mint', seconds => 0.1 } });
	$pipe->ask('t', 'tools/call', { name => 'run', arguments => { plan_id => $plan }, task => {} });
	is($pipe->ask('w', 'tasks/result', { taskId => $plan })->{result}{structuredContent}{task_status}, 'completed', 'who waits gets the result');
	$pipe->request('long', 'tools/call', { name => 'brew', arguments => { leaf => 'mint', seconds => 60 } });
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'");
	$pipe->notify('notifications/cancelled', { requestId => 'long' });
	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"), 'a cancel reaches the server');
	is(tool($pipe, 'current_tenant'), 'default', 'and the next call is answered');
	$_->stop foreach $tenant, $role, $pipe;
	kill('TERM', $pooler);
	waitpid($pooler, 0);
}

# --- the log of calls --------------------------------------------------------------

sql('DELETE FROM stepwise.tool_call');
$pipe = Pipe->start($conninfo);
$pipe->ask('i', 'initialize', { protocolVersion => '2025-11-25', capabilities => {} });
$pipe->ask('p', 'ping');
$pipe->ask('x', 'no/such');
$pipe->ask('l', 'tools/list');
tool($pipe, 'get_plan_status', { plan_id => $plan });
tool($pipe, 'get_plan_status', { plan_id => 'x' });
tool($pipe, 'no_such_tool');
tool($pipe, 'brew', { leaf => 'none' });
$pipe->ask('r', 'resources/read', { uri => 'stepwise://x' });
$pipe->send('{"broken');
$pipe->receive;
is(sql("SELECT string_agg(concat_ws(' ', tool, plan_id = '$plan', is_error, request_size > 0 AND answer_size > 0 AND duration > '0'), ', ' ORDER BY id) FROM stepwise.tool_call"),
	'initialize f t, no/such t t, tools/list f t, get_plan_status t f t, get_plan_status t t, no_such_tool t t, brew t t, resources/read t t', 'each call but ping is kept, failed ones too');
$node->append_conf('postgresql.conf', 'stepwise.log_tool_calls = off');
$node->reload;
usleep(200_000);
tool($pipe, 'get_plan_status');
tool($pipe, 'get_plan_status');
cmp_ok(sql('SELECT count(*) FROM stepwise.tool_call'), '<=', 9, 'a setting turns it off');
sql('CALL stepwise.purge(now())');
is(sql('SELECT count(*) FROM stepwise.tool_call'), '0', 'purge takes them along');
$pipe->stop;

# --- start-up ------------------------------------------------------------------------

# The fastest of several, taken in turn: from the start to the first answer.
my %ways = (
	psql => sub { open(my $from, '-|', 'psql', '-XAtq', '-d', $conninfo, '-c', 'SELECT 1'); my $line = <$from>; return sub { close($from) } },
	initialize => sub { return first('initialize', { protocolVersion => '2025-11-25', capabilities => {} }) },
	discover => sub { return first('server/discover', { _meta => {%modern} }) },
	call => sub { return first('tools/call', { name => 'get_plan_status', arguments => {}, _meta => {%modern} }) },
);

sub first
{
	my $pipe = Pipe->start($conninfo);
	my $answer = $pipe->ask(1, @_);
	die 'there was an error' if $answer->{error} || $answer->{result}{isError};
	return sub { $pipe->stop };
}

my %fastest;
foreach my $turn (1 .. 7)
{
	foreach my $way (sort keys %ways)
	{
		my $start = time;
		my $end = $ways{$way}->();
		my $took = time - $start;
		$end->();
		$fastest{$way} = $took if !defined $fastest{$way} || $took < $fastest{$way};
	}
}
note(join(', ', map { sprintf('%s %.0f ms', $_, 1000 * $fastest{$_}) } sort keys %fastest));
cmp_ok($fastest{$_}, '<', $fastest{psql} + 0.1, "$_: the first answer comes within 100 ms of that of psql") foreach qw(initialize discover call);

$node->stop;
done_testing();
