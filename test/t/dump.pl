# Dump and restore: plans in every state are restored unchanged by all ways of pg_dump and pg_restore. Their chains are valid, and
# they can be continued. Only a restore may insert rows. DROP EXTENSION leaves nothing behind.

use strict;
use warnings;
use lib 'test/t';
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

my $node = start_server('dump', 'log_statement = none');

my $sound = slurp_file('test/sound.sql');
my $file = $node->basedir . '/dump';

# A digest of all rows for each table of the extension, except the flag of the engine.
sub contents
{
	my ($db) = @_;
	my $queries = sql_in($db, q(
		SELECT string_agg(format('SELECT %L, count(*), md5(coalesce(string_agg(t::text, E''\n'' ORDER BY t::text), '''')) FROM stepwise.%I AS t', relname, relname), ' UNION ALL ' ORDER BY relname)
		FROM pg_class WHERE relnamespace = 'stepwise'::regnamespace AND relkind = 'r' AND relname <> 'engine'));
	return sql_in($db, "SET timezone = 'UTC'; $queries ORDER BY 1");
}

# --- plans to dump -----------------------------------------------------------

sql_in('postgres', 'CREATE ROLE agent');
sql('CREATE DATABASE plans');
sql_in('plans', 'CREATE EXTENSION pg_stepwise');
sql_in('plans', slurp_file('test/every_state.sql'));
sql_in('plans', "INSERT INTO stepwise.tool_call (tenant, id, tool, is_error) VALUES ('default', stepwise.uuid7(), 'get_next_step', false)");

is(sql_in('plans', 'SELECT string_agg(DISTINCT status::text, $$ $$ ORDER BY status::text) FROM stepwise.plan'),
	'awaiting_review cancelled completed executing failed planning stalled', 'there are plans in every state');
is(sql_in('plans', 'SELECT string_agg(DISTINCT status::text, $$ $$ ORDER BY status::text) FROM stepwise.step'),
	'awaiting_input completed failed in_progress pending skipped', 'there are steps in every state');
my $contents = contents('plans');
is(join(' ', grep { /\|0\|/ } split(/\n/, $contents)), '', 'no table is empty');
is(sql_in('plans', "$sound SELECT * FROM pg_temp.sound()"), '', 'and all is sound');

# --- dump and restore --------------------------------------------------------

my %ways = (
	'pg_dump | psql' => [ [ 'pg_dump', '-f', $file, 'plans' ], [ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-o', '/dev/null', '-d', 'copy' ] ],
	'pg_dump --inserts | psql -1' => [ [ 'pg_dump', '--inserts', '-f', $file, 'plans' ], [ 'psql', '-XqAt1', '-v', 'ON_ERROR_STOP=1', '-f', $file, '-o', '/dev/null', '-d', 'copy' ] ],
	'pg_dump -Fc, pg_restore -j4' => [ [ 'pg_dump', '-Fc', '-f', $file, 'plans' ], [ 'pg_restore', '-j4', '-d', 'copy', $file ] ],
	'pg_dump -Fd -j2, pg_restore -j4' => [ [ 'pg_dump', '-Fd', '-j2', '-f', "$file.d", 'plans' ], [ 'pg_restore', '-j4', '-d', 'copy', "$file.d" ] ],
	'pg_dump --data-only, into a new extension' => [ [ 'pg_dump', '--data-only', '-Fc', '-f', $file, 'plans' ], [ 'pg_restore', '-j4', '-d', 'copy', $file ] ]);

foreach my $way (sort keys %ways)
{
	my ($dump, $restore) = @{ $ways{$way} };

	sql('CREATE DATABASE copy');
	sql_in('copy', 'CREATE EXTENSION pg_stepwise; ' . join(';', grep { /public\.echo|public\.page/ && /CREATE/ } split(/;/, slurp_file('test/every_state.sql'))))
	  if $way =~ /data-only/;
	$node->command_ok($dump, "$way: dump");
	$node->command_ok($restore, "$way: restore");
	is(contents('copy'), $contents, "$way: all rows of all tables are there");
	is(sql_in('copy', 'SELECT used FROM stepwise.engine'), 'f', "$way: the engine knows that this is a restore");
	is(sql_in('copy', "$sound SELECT * FROM pg_temp.sound()"), '', "$way: all is sound, every chain verifies");
	is( sql_in('copy', "BEGIN; SELECT stepwise.enter_tenant('other'); SELECT string_agg(stepwise.verify_audit(id) ->> 'valid', ' ') FROM stepwise.plan WHERE tenant = 'other'; COMMIT"),
		"\ntrue", "$way: also in another tenant");
	goes_on($way);
	refuses($way);
	sql('DROP DATABASE copy');
}

# Finish the open plans of the copy, by the call that each of them waits for.
sub goes_on
{
	my ($way) = @_;

	sql_in('copy', q(
		CREATE OR REPLACE FUNCTION public.plan(name text) RETURNS uuid LANGUAGE sql STABLE AS 'SELECT p.id FROM stepwise.plan AS p WHERE p.name = plan.name ORDER BY p.id LIMIT 1';
		CREATE OR REPLACE FUNCTION public.step(plan text, name text) RETURNS uuid LANGUAGE sql STABLE AS 'SELECT s.id FROM stepwise.step AS s WHERE s.plan_id = public.plan(plan) AND s.name = step.name';
		SELECT stepwise.submit_step_result(public.step('executing', 'running'), '1', confidence => 0.1, attempt => 1);
		DO 'BEGIN CREATE ROLE reviewer SUPERUSER; EXCEPTION WHEN duplicate_object THEN NULL; END';
		SET ROLE reviewer;
		SELECT stepwise.submit_user_decision(checkpoint_id, 'approve') FROM stepwise.checkpoints WHERE kind = 'review';
		RESET ROLE;
		SELECT stepwise.resume(checkpoint_id, '"yes"') FROM stepwise.checkpoints WHERE kind = 'prompt';
		SELECT stepwise.retry_step(public.step('paused', 'a'));
		UPDATE stepwise.step SET status = 'completed' WHERE id = public.step('stalled', 'a');
		DO $$
		DECLARE
			p record;
			next jsonb;
		BEGIN
			FOR p IN SELECT id FROM stepwise.plan WHERE completed_at IS NULL AND parent_step_id IS NULL AND tenant = 'default' LOOP
				LOOP
					next := stepwise.get_next_step(p.id);
					EXIT WHEN next ->> 'status' <> 'step_ready';
					PERFORM stepwise.submit_step_result((next ->> 'stepId')::uuid, '{"v": 2}', attempt => (next ->> 'attempt')::int);
				END LOOP;
			END LOOP;
		END $$));
	is(sql_in('copy', "SELECT string_agg(name || ' ' || status, ', ') FROM stepwise.plan WHERE completed_at IS NULL AND tenant = 'default'"), '', "$way: every plan goes on to its end");
	is(sql_in('copy', "SELECT count(*) FROM stepwise.step WHERE plan_id = public.plan('executing') AND name = 'more' AND status = 'completed'"), '1', "$way: a branch came along");
	is(sql_in('copy', "$sound SELECT * FROM pg_temp.sound()"), '', "$way: and all is sound after that");
	is(sql_in('copy', q(SELECT stepwise.create_plan('planning', 'not begun', '[{"name": "a"}, {"name": "b", "tool": "client", "arguments": {"k": "${inputs.i}"}, "condition": "${inputs.i} in [1, 2]"}]',
		inputs => '{"i": 1}', outputs => '{"o": "${steps.b.outputs}"}', idempotency_key => 'key', design_rationale => 'because', stall_after => '1 day') ->> 'existing')),
		'true', "$way: an idempotency key is known");
}

# After the engine has written, rows can no longer be inserted.
sub refuses
{
	my ($way) = @_;

	is(sql_in('copy', 'SELECT used FROM stepwise.engine'), 't', "$way: the engine has been used");
	is(sql_in('copy', <<"SQL"), join("\n", (map { "$_ SW003 SW003" } qw(branching_condition dependency plan plan_detail step workflow)), 'audit_log SW015 SW015'),
CREATE FUNCTION pg_temp.try(statement text) RETURNS text LANGUAGE plpgsql AS 'BEGIN EXECUTE statement; RETURN ''no error''; EXCEPTION WHEN OTHERS THEN RETURN sqlstate; END';
SELECT format('%s %s %s', name, pg_temp.try(format('INSERT INTO stepwise.%I SELECT * FROM stepwise.%1\$I LIMIT 1', name)),
	pg_temp.try(format('COPY (SELECT * FROM stepwise.%I LIMIT 1) TO ''$file.row''; COPY stepwise.%1\$I FROM ''$file.row''', name)))
FROM unnest(ARRAY['branching_condition', 'dependency', 'plan', 'plan_detail', 'step', 'workflow', 'audit_log']) AS name;
SQL
		"$way: no INSERT, no COPY by hand");
	is(sql_in('copy', "$sound SELECT * FROM pg_temp.sound()"), '', "$way: and nothing came in");
}

# --- dropping and creating the extension -------------------------------------

my $objects = q(SELECT string_agg(format('%s %s %s', type, identity, n), E'\n' ORDER BY 1) FROM (
	SELECT type, identity, count(*) AS n FROM (
		SELECT i.type, i.identity FROM pg_depend AS d, pg_identify_object(d.classid, d.objid, d.objsubid) AS i WHERE d.classid <> 0 AND i.schema IS DISTINCT FROM 'pg_toast'
		UNION ALL SELECT 'namespace', nspname FROM pg_namespace WHERE nspname !~ '^pg_(temp|toast_temp)'
		UNION ALL SELECT 'class', oid::regclass::text FROM pg_class WHERE relnamespace <> 'pg_toast'::regnamespace
		UNION ALL SELECT 'proc', oid::regprocedure::text FROM pg_proc
		UNION ALL SELECT 'type', oid::regtype::text FROM pg_type WHERE typnamespace <> 'pg_toast'::regnamespace) AS o
	GROUP BY 1, 2) AS c);
my $use = <<'SQL';
SELECT stepwise.create_plan('used', 'g', '[{"name": "a"}, {"name": "b", "dependsOn": ["a"]}]') ->> 'planId' AS p \gset
SELECT stepwise.get_next_step(:'p') ->> 'name';
UPDATE stepwise.step SET status = 'completed', result = '1' WHERE plan_id = :'p' AND name = 'a';
SELECT stepwise.advance((stepwise.get_next_step(:'p') ->> 'stepId')::uuid, '2') #>> '{next,status}';
SELECT stepwise.derive_plan_status('{pending,completed}', 'fail'), stepwise.verify_audit(:'p') ->> 'valid';
SQL
my $used = "a\nplan_complete\nexecuting|true";

sql('CREATE DATABASE again');
my $before = sql_in('again', $objects);
sql_in('again', 'CREATE EXTENSION pg_stepwise');
is(sql_in('again', $use), $used, 'the extension works');
sql_in('again', 'DROP EXTENSION pg_stepwise');
is(sql_in('again', $objects), $before, 'DROP EXTENSION leaves nothing behind');

# In one session, which has cached query plans, and in another session that stays connected.
{ no warnings; *PostgreSQL::Test::BackgroundPsql::note = sub { }; }    # it prints too much
my $other = $node->background_psql('again');
$other->query_safe('CREATE EXTENSION pg_stepwise');
is($other->query_safe($use), $used, 'another session has used it');
my $many = "DROP EXTENSION pg_stepwise; CREATE EXTENSION pg_stepwise; $use";
is(sql_in('again', "$many $many $many"), "$used\n$used\n$used", 'created again in the same session, it works as the first time');
is($other->query_safe($use), $used, 'and in the session that has plans from before');
is(sqlstate($node, 'again', "INSERT INTO stepwise.plan SELECT * FROM stepwise.plan LIMIT 1"), 'SW003', 'it knows that it has been used');
$other->quit;

$node->stop;
done_testing();
