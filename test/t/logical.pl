# A subscriber of logical replication gets the audit log as new rows: each call has one, and no row is updated.

use strict;
use warnings;
use lib 'test/t';
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server('logical', 'wal_level = logical');
sql('CREATE EXTENSION pg_stepwise; CREATE PUBLICATION everything FOR ALL TABLES');
my $plan = sql(q(SELECT stepwise.create_plan('logical', 'logical.pl', '[{"name": "a"}, {"name": "b"}]') ->> 'planId'));
sql(q(SELECT pg_create_logical_replication_slot('log', 'test_decoding')));

# All calls are made by one session.
sql(qq(SELECT stepwise.get_next_step('$plan') ->> 'status';
	SELECT stepwise.advance(id, '1') ->> 'status' FROM stepwise.step WHERE name = 'a';
	SELECT stepwise.release_step(id) ->> 'status' FROM stepwise.step WHERE name = 'b'));
is(sql(q(SELECT split_part(data, ': ', 2), count(*) FROM pg_logical_slot_get_changes('log', NULL, NULL)
	WHERE data LIKE 'table stepwise.audit_log:%' GROUP BY 1)), 'INSERT|3', 'a new row for each call');
is(sql(qq(SELECT string_agg(id::text, ' ' ORDER BY id) FROM stepwise.audit_log WHERE plan_id = '$plan')), '1 2 4 6', 'each with its own entries');
is(sql(qq(SELECT stepwise.verify_audit('$plan') ->> 'valid')), 'true', 'and the chain is whole');

# Without logical replication, the session continues its row.
sql('SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots');
$node->append_conf('postgresql.conf', 'wal_level = replica');
$node->restart;
sql(qq(SELECT stepwise.get_next_step('$plan') ->> 'status';
	SELECT stepwise.submit_step_result(id, '1', attempt => 2) ->> 'status' FROM stepwise.step WHERE name = 'b'));
is(sql(qq(SELECT string_agg(id::text, ' ' ORDER BY id) FROM stepwise.audit_log WHERE plan_id = '$plan')), '1 2 4 6 7', 'two calls, one row');
is(sql(qq(SELECT stepwise.verify_audit('$plan') ->> 'valid')), 'true', 'and the chain is whole again');

$node->stop;
done_testing();
