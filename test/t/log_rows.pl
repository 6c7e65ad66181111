# Which calls share a row of the audit log. How many fit depends on the room in a page, so the table is empty at first.

use strict;
use warnings;
use lib 'test/t';
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server('log_rows', 'autovacuum = off');
sql(q(CREATE EXTENSION pg_stepwise;
	CREATE FUNCTION plan(text) RETURNS uuid LANGUAGE sql AS 'SELECT id FROM stepwise.plan WHERE name = $1';
	CREATE FUNCTION step(text) RETURNS uuid LANGUAGE sql AS 'SELECT id FROM stepwise.step WHERE name = $1';
	CREATE VIEW log_rows AS SELECT string_agg(batch || '+' || n, ' ' ORDER BY batch) AS shown, sum(n) AS entries
	FROM (SELECT batch, count(*) AS n FROM stepwise.audit WHERE plan_id = plan('log') GROUP BY batch) AS b;
	CREATE FUNCTION verified() RETURNS text LANGUAGE sql AS
	$$ SELECT concat_ws(' ', v -> 'valid', v -> 'entries', v #>> '{firstInvalid,id}') FROM stepwise.verify_audit(plan('log')) AS v $$));

my $steps = 40;
my $done = 1;                   # number of the step that is claimed

# Make a new plan of steps s1, s2 and so on, whose first one is claimed by a session of its own.
sub new_plan
{
	sql(q(SELECT stepwise.cancel_plan(id) FROM stepwise.plan; CALL stepwise.purge('infinity'); VACUUM FULL stepwise.audit_log));
	sql(qq(SELECT stepwise.create_plan('log', 'log_rows.pl', jsonb_agg(jsonb_build_object('name', 's' || n))) FROM generate_series(1, $steps) AS n));
	sql(q(SELECT stepwise.get_next_step(plan('log'))));
	$done = 0;
}

# A call that completes a step and claims the next one.
sub advance
{
	my ($more) = @_;
	$done++;
	return "DO 'BEGIN PERFORM stepwise.advance(step(''s$done''), ''$done''" . ($more ? ", $more" : '') . "); END';";
}

# Run statements in one session; what is expected are the rows afterwards: the first entry of each, and the number of its entries.
sub rows_after
{
	my ($statements, $rows, $what) = @_;
	sql($statements);
	is(sql('SELECT shown FROM log_rows'), $rows, $what);
	my ($valid, $entries) = split(/ /, sql('SELECT verified()'));
	is("$valid $entries", 'true ' . sql('SELECT entries FROM log_rows'), 'and the chain is whole');
}

new_plan();
is(sql('SELECT shown FROM log_rows'), '1+1 2+2', 'two sessions, two rows');
rows_after(advance() . advance() . advance(), '1+1 2+2 4+6', 'three calls of a session share a row');
rows_after(advance(), '1+1 2+2 4+6 10+2', 'another session begins a row');

new_plan();
rows_after(advance() . advance("session_id => ''later''") . advance() . advance("worker => ''anna''") . advance("worker => ''anna''"),
	'1+1 2+2 4+2 6+4 10+4', 'so does another session of the agent, and another name');

new_plan();
rows_after(advance() . 'BEGIN;' . advance() . 'SAVEPOINT s;' . advance() . 'ROLLBACK TO s; COMMIT', '1+1 2+2 4+4', 'what is rolled back to a savepoint is not in the row');
$done--;
rows_after(advance() . 'BEGIN;' . advance() . 'SAVEPOINT s;' . advance() . 'RELEASE s; COMMIT;' . advance(), '1+1 2+2 4+4 8+8', 'what is released is');
rows_after(advance() . 'BEGIN;' . advance() . 'ROLLBACK', '1+1 2+2 4+4 8+8 16+2', 'a transaction that is rolled back leaves the row as it was');
$done--;
rows_after('BEGIN;' . advance() . 'ROLLBACK;' . do { $done--; advance() } . advance(), '1+1 2+2 4+4 8+8 16+2 18+4', 'also one that has begun the row');

new_plan();
rows_after(advance() . advance() . 'VACUUM FULL stepwise.audit_log;' . advance() . advance(), '1+1 2+2 4+4 8+4', 'a row that was moved is left as it is');

new_plan();
sql(join('', map { advance() } 1 .. 30));
my ($most, $rows) = split(/\|/, sql(q(SELECT max(length(entries)), count(*) FROM stepwise.audit_log WHERE plan_id = plan('log'))));
cmp_ok($most, '>', 700, 'a row is continued as long as it is short');
cmp_ok($most, '<', 1200, "then another one begins: $most bytes at most");
cmp_ok($rows, '<', 15, "$rows rows for 32 calls");
is(sql('SELECT verified()'), 'true 63', 'and the chain is whole');
is(sql(q(SELECT count(*) FROM stepwise.audit WHERE plan_id = plan('log') AND batch >= (SELECT batch FROM stepwise.audit WHERE plan_id = plan('log') AND id = 55) AND id > 55)),
	'8', 'entries after one that was seen are found by its row');
is(sql(q(SELECT count(*) FROM (SELECT at, lag(at) OVER (ORDER BY id) AS before FROM stepwise.audit WHERE plan_id = plan('log')) AS t WHERE at < before)), '0', 'times rise');

# The versions of a row that nobody sees any more are removed, so the table does not grow with them.
my ($before) = sql(q(SELECT pg_relation_size('stepwise.audit_log')));
cmp_ok($before, '<=', 3 * 8192, "the table has $before bytes");

# Past the guards: entries that are added to a changed row do not hide the change.
new_plan();
sql(advance() . q(BEGIN; SET LOCAL session_replication_role = replica; UPDATE stepwise.audit_log SET at = at - interval '1 us' WHERE id = 4; COMMIT;) . advance());
is((split(/ /, sql('SELECT verified()')))[2], '4', 'a changed time is found');
new_plan();
sql(advance() . q(BEGIN; SET LOCAL session_replication_role = replica; UPDATE stepwise.audit_log SET entries = set_byte(entries, length(entries) - 40, 7) WHERE id = 4; COMMIT;) . advance());
is((split(/ /, sql('SELECT verified()')))[2], '4', 'and a changed entry');
new_plan();
sql(advance() . q(BEGIN; SET LOCAL session_replication_role = replica; UPDATE stepwise.audit_log SET entries = set_byte(entries, 0, 7) WHERE id = 4; COMMIT;) . advance());
is((split(/ /, sql('SELECT verified()')))[2], '5', 'and the newest entry');

# A user who watches the log sees new rows only.
new_plan();
sql(q(CREATE TABLE seen (said text);
	CREATE FUNCTION watch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.seen VALUES (TG_OP || NEW.id); RETURN NULL; END'));
rows_after(advance() . 'CREATE TRIGGER watch AFTER INSERT OR UPDATE ON stepwise.audit_log FOR EACH ROW EXECUTE FUNCTION watch();' . advance() . advance(),
	'1+1 2+2 4+2 6+2 8+2', 'with a trigger each call has a row');
is(sql(q(SELECT string_agg(said, ' ') FROM seen)), 'INSERT6 INSERT8', 'and the trigger gets it');
sql('DROP TRIGGER watch ON stepwise.audit_log');

$node->stop;
done_testing();
