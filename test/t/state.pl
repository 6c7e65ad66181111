# Named state under load: ten sessions merge into one name, and no change is lost in the state or in the chain of the tenant.

use strict;
use warnings;
use lib 'test/t';
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server('state', 'max_prepared_transactions = 2');
sql('CREATE EXTENSION pg_stepwise; CREATE SEQUENCE n');

# The state does not exist at first, so the sessions race to create it.
$node->pgbench(
	'--no-vacuum --client=10 --transactions=30',
	0, [qr{processed: 300/300}], [qr{^$}],
	'ten sessions merge',
	{
		'merge' => q(SELECT stepwise.state_merge(jsonb_build_object('name', 'shared', 'value',
			jsonb_build_object('deep', jsonb_build_object(nextval('n')::text, :client_id)))))
	});
is(sql(q(SELECT count(*) FROM stepwise.state, jsonb_each(value -> 'deep') WHERE name = 'shared')),
	'300', 'nothing was lost');

# The same through plans: each session has its own plan, and all use one state.
$node->pgbench(
	'--no-vacuum --client=10 --transactions=10',
	0, [qr{processed: 100/100}], [qr{^$}],
	'ten sessions run plans that merge',
	{
		'run' => q(SELECT stepwise.run((stepwise.create_plan('merge', 'merge', jsonb_build_array(
			jsonb_build_object('name', 'a', 'tool', 'state_merge', 'arguments', jsonb_build_object('name', 'plans', 'value', jsonb_build_object('n' || nextval('n'), 1))),
			jsonb_build_object('name', 'b', 'tool', 'state_merge', 'arguments', jsonb_build_object('name', 'plans', 'value', jsonb_build_object('n' || nextval('n'), 1)))
			)) ->> 'planId')::uuid))
	});
is(sql(q(SELECT count(*) FROM stepwise.state, jsonb_each(value) WHERE name = 'plans')),
	'200', 'nothing was lost through plans');
is(sql(q(SELECT status, count(*) FROM stepwise.plan GROUP BY status)), 'completed|100', 'all plans completed');

is(sql(q(SELECT v -> 'valid', v -> 'entries' FROM stepwise.verify_audit(NULL) AS v)), 'true|500',
	'the chain of the tenant has every merge');

# Two-phase commit: the entry is visible after the commit, not before.
sql(q(BEGIN; SELECT stepwise.state_write('{"name": "prepared", "value": 1}'); PREPARE TRANSACTION 'kept'));
is(sql(q(SELECT v -> 'valid', v -> 'entries' FROM stepwise.verify_audit(NULL) AS v)), 'true|500', 'prepared, and not there yet');
sql(q(COMMIT PREPARED 'kept'));
sql(q(BEGIN; SELECT stepwise.state_write('{"name": "prepared", "value": 2}'); PREPARE TRANSACTION 'undone'));
sql(q(ROLLBACK PREPARED 'undone'));
sql(q(SELECT stepwise.state_write('{"name": "prepared", "value": 3}')));
is(sql(q(SELECT v -> 'valid', v -> 'entries' FROM stepwise.verify_audit(NULL) AS v)), 'true|502', 'two were committed');

# The extension is dropped and created again in one transaction: the new log has the changes since its creation.
sql(q(BEGIN;
	SELECT stepwise.state_write('{"name": "of the old one", "value": 1}');
	SELECT stepwise.enter_tenant('z'), stepwise.state_write('{"name": "of the old one", "value": 1}');
	DROP EXTENSION pg_stepwise;
	CREATE EXTENSION pg_stepwise;
	SELECT stepwise.enter_tenant('z'), stepwise.state_write('{"name": "of the new one", "value": 1}');
	COMMIT));
is(sql(q(SELECT tenant, id, detail ->> 'name' FROM stepwise.audit)), 'z|1|of the new one', 'the new log has what was done since');
sql(q(BEGIN; SELECT stepwise.state_write('{"name": "gone", "value": 1}'); DROP EXTENSION pg_stepwise; COMMIT));
is(sql(q(SELECT to_regnamespace('stepwise') IS NULL)), 't', 'dropped after a change that would leave an entry');

$node->stop;
done_testing();
