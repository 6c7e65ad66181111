# The server of a test in this folder, and statements that run in it.
package Server;

use strict;
use warnings;
use Exporter qw(import);
use PostgreSQL::Test::Cluster;

our @EXPORT = qw(start_server sql sql_in sqlstate);

my $node;

# Make a cluster with these settings, and start it: start_server NAME, SETTINGS, OPTION => VALUE ...
# The options are those of PostgreSQL::Test::Cluster::init.
sub start_server
{
	my ($name, $settings, %options) = @_;
	$node = PostgreSQL::Test::Cluster->new($name);
	$node->init(%options);
	$node->append_conf('postgresql.conf', $settings) if defined $settings;
	$node->start;
	return $node;
}

# Run statements in the database postgres, and return the answer.  An error ends the test.
sub sql
{
	my ($query) = @_;
	return sql_in('postgres', $query);
}

# The same in another database.
sub sql_in
{
	my ($db, $query) = @_;
	return $node->safe_psql($db, "SET client_min_messages = warning; $query");
}

# Run a statement on any server, and return the SQLSTATE of its error, or "no error: " and the answer.
sub sqlstate
{
	my ($server, $db, $query) = @_;
	my ($status, $out, $err) = $server->psql($db, "\\set VERBOSITY sqlstate\n$query");
	return $1 if $err =~ /(?:ERROR|FATAL):  ([0-9A-Z]{5})/;
	return $err eq '' ? "no error: $out" : "no SQLSTATE: $err";
}

1;
