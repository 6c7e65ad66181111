# PgBouncer in transaction mode, with one connection to the server for all clients: agents, and a tenant that ends with its
# transaction.

use strict;
use warnings;
use lib 'test/drivers';
use Client;
use Cwd qw(getcwd);
use Test::More;

plan skip_all => 'there is no PgBouncer' unless $ENV{PGBOUNCER};

my $server = $ENV{PGHOST};
my $socket = getcwd();

new_database('drivers_pooler', 'on');
sql(<<'SQL');
CREATE ROLE drivers_agent LOGIN;
SELECT stepwise.grant_agent('drivers_agent'), stepwise.add_member('drivers_agent', 'one'), stepwise.add_member('drivers_agent', 'two');
SQL
my $pooler = start_pooler();
test_tenant();
test_agents();
$pooler->{run}->signal('TERM');
finish_client($pooler);
is(scalar(() = $pooler->{err} =~ /drivers_pooler\/postgres\S* login attempt/g), 2 * languages(), 'they did not go past it');
sql(<<'SQL');
SELECT stepwise.remove_member('drivers_agent', 'one'), stepwise.remove_member('drivers_agent', 'two');
DROP OWNED BY drivers_agent;
DROP ROLE drivers_agent;
SQL
done_testing();

# All clients share one connection of each role.
sub start_pooler
{
	write_file('users.txt', qq("postgres" ""\n"drivers_agent" ""\n));
	write_file('pgbouncer.ini', <<"INI");
[databases]
* = host=$server port=$ENV{PGPORT}
[pgbouncer]
listen_addr =
listen_port = $ENV{PGPORT}
unix_socket_dir = $socket
auth_type = trust
auth_file = users.txt
pool_mode = transaction
default_pool_size = 1
INI
	my $started = start_client([ $ENV{PGBOUNCER}, 'pgbouncer.ini' ]);
	$started->{run}->pump until $started->{err} =~ /process up/ || !$started->{run}->pumpable;
	return $started;
}

sub write_file
{
	my ($name, $content) = @_;
	open(my $out, '>', $name) or die "could not write $name: $!";
	print $out $content;
	close($out) or die "could not write $name: $!";
	return;
}

# Run statements through the pooler, as an agent of two tenants. Each is a transaction of its own, unless they say BEGIN.
sub agent_says
{
	my ($statements) = @_;
	local @ENV{qw(PGHOST PGUSER)} = ($socket, 'drivers_agent');
	my $psql = start_client([ 'psql', '-XAtq', '-v', 'VERBOSITY=sqlstate', map { ('-c', $_) } @$statements ]);
	finish_client($psql);
	return join(' ', split(/\n/, $psql->{out} . $psql->{err}));
}

sub test_tenant
{
	my $create = q{SELECT stepwise.create_plan('p', 'g', '[{"name": "a"}]') ->> 'status'};
	my $backend = 'SELECT pg_backend_pid()';
	my @transaction = ('BEGIN', q{SELECT stepwise.enter_tenant('one')}, $create, 'SELECT stepwise.current_tenant()', 'COMMIT');
	my ($pid, @rest) = split(/ /, agent_says([ $backend, @transaction ]));

	is("@rest", ' planning one', 'a transaction is in the tenant that it enters');
	is(agent_says([ $backend, $create ]), "$pid ERROR:  SW010", 'the next client of the same connection is not');
	is( agent_says([ q{SELECT stepwise.enter_tenant('two')}, $create ]),
		' ERROR:  SW010', 'nor is the next transaction of the same client');
	is(sql('SELECT string_agg(tenant, \' \') FROM stepwise.plan'), 'one', 'there is the one plan');
	return;
}

# Two agents of each language. Only their LISTEN goes past the pooler.
sub test_agents
{
	my $steps = '[' . join(', ', map { qq({"name": "s$_", "tool": "t", "dependsOn": []}) } 1 .. 20) . ']';
	foreach my $language (languages())
	{
		my $plan = new_plan($steps);
		local $ENV{LISTEN_URL} = "postgresql:///$ENV{PGDATABASE}?host=$server";
		local $ENV{DATABASE_URL} = "postgresql:///$ENV{PGDATABASE}?host=$socket";
		my @agents = map { start_client(client($language, 'test/drivers/worker', $plan, "w$_", 10, 200)) } 1 .. 2;
		is(join(' ', map { finish_client($_) } @agents), '0 0', "$language: agents behind the pooler end the plan")
		  or diag map { $_->{err} } @agents;
		is( sql("SELECT count(*), sum(attempt) FROM stepwise.step WHERE plan_id = '$plan' AND status = 'completed'"),
			'20|20', "$language: every step was done once");
	}
	return;
}
