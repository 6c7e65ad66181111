# The memory of one call is limited. It does not depend on the size of the plan's values, nor on how well they compress. The tests
# compare the peak resident size (VmHWM) of a new backend before and after the call.

use strict;
use warnings;

use lib 'test/t';
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

plan skip_all => 'needs the /proc of Linux' unless -r '/proc/self/status';

# The peak includes pages of shared buffers. With few buffers they do not matter.
my $node = start_server('memory', "autovacuum = off\nshared_buffers = 8MB\njit = off\nmax_wal_size = 2GB");

sql(<<'SQL');
CREATE EXTENSION pg_stepwise;

CREATE FUNCTION peak() RETURNS int LANGUAGE sql VOLATILE AS $$
    SELECT (regexp_match(pg_read_file('/proc/self/status'), 'VmHWM:\s+(\d+)'))[1]::int / 1024
$$;

-- Make a call, and return its SQLSTATE if it fails.
CREATE FUNCTION outcome_of(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'SELECT length((' || call || ')::text)';
    RETURN 'done';
EXCEPTION WHEN OTHERS THEN
    RETURN sqlstate;
END $$;

CREATE TABLE known (name text PRIMARY KEY, plan_id uuid, data jsonb);

-- A sequence of n steps, each completed with the result.
CREATE PROCEDURE make(name text, n int, result jsonb) LANGUAGE plpgsql AS $$
DECLARE
    plan_id uuid := stepwise.create_plan(name, 'memory', (
        SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'instructions', 'go')) FROM generate_series(1, n) AS i)) ->> 'planId';
    x jsonb := stepwise.get_next_step(plan_id);
BEGIN
    INSERT INTO known VALUES (name, plan_id);
    WHILE x ->> 'status' = 'step_ready' LOOP
        x := stepwise.advance((x ->> 'stepId')::uuid, result) -> 'next';
    END LOOP;
END $$;

-- A plan of n steps, each of which depends on all steps before it.
CREATE FUNCTION dense(first int, n int) RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'instructions', 'go', 'dependsOn', (
        SELECT coalesce(jsonb_agg('s' || j), '[]') FROM generate_series(1, i - 1) AS j)))
    FROM generate_series(first, first + n - 1) AS i
$$;
SQL

# Make a call in a new backend. Check its outcome, and that it takes at most this many MB.
sub takes
{
	my ($call, $outcome, $most) = @_;
	my $out = sql("SELECT outcome_of('SELECT 1'); SELECT peak(); SELECT outcome_of(\$call\$$call\$call\$); SELECT peak()");
	my ($first, $before, $came, $after) = split /\n/, $out;
	(my $name = $call) =~ s/\s+/ /g;
	is($came, $outcome, "$name: $outcome");
	cmp_ok($after - $before, '<=', $most, "$name: at most $most MB");
}

sub plan_of { return "(SELECT plan_id FROM known WHERE name = '$_[0]')" }

# --- dependencies ------------------------------------------------------------

# 179,700 dependencies; the argument with the definition takes memory too
sql("INSERT INTO known VALUES ('dense', NULL, dense(1, 600)), ('more', NULL, dense(401, 200)), ('half', NULL, dense(1, 400))");
takes("stepwise.create_plan('dense', 'memory', (SELECT data FROM known WHERE name = 'dense'))", 'done', 60);
sql("UPDATE known SET plan_id = (stepwise.create_plan('half', 'memory', data) ->> 'planId')::uuid WHERE name = 'half'");
takes("stepwise.modify_plan(@{[plan_of('half')]}, 'add_steps',
	(SELECT jsonb_build_object('steps', data) FROM known WHERE name = 'more'))", 'done', 60);
takes("stepwise.modify_plan(@{[plan_of('half')]}, 'update_step_instructions', (SELECT jsonb_build_object('stepId', s.id,
	'instructions', 'see \${steps.s1.outputs}') FROM stepwise.step AS s WHERE s.plan_id = @{[plan_of('half')]} AND s.name = 's600'))",
	'done', 60);
takes("stepwise.get_plan_context(@{[plan_of('half')]})", 'done', 120);

# --- results that compress well ----------------------------------------------

# 1 MB each, compressed to a hundredth of that
sql("CALL make('big', 100, jsonb_build_object('text', repeat('all work and no play ', 49000)))");
sql("CALL make('fits', 20, jsonb_build_object('text', repeat('all work and no play ', 49000)))");

takes("stepwise.verify_audit(@{[plan_of('big')]})", 'done', 40);
takes("stepwise.fork_plan(@{[plan_of('big')]}, 's100')", 'done', 80);
takes("stepwise.get_plan_context(@{[plan_of('big')]})", 'done', 120);

# Functions that return complete data refuse if there is too much.
for my $call ('execution(%s)', 'execution_as_of(%s, now())', 'workflow_response(%s, true)', 'task_variables(%s)')
{
	takes('stepwise.' . sprintf($call, plan_of('big')), 'SW007', 30);
	takes('stepwise.' . sprintf($call, plan_of('fits')), 'done', 350);
}
takes("stepwise.execution(@{[plan_of('big')]}, 0)", 'done', 30);
takes("stepwise.workflow_response(@{[plan_of('big')]})", 'done', 30);
# at a time when most steps were not done, there is less data
takes("stepwise.execution_as_of(@{[plan_of('big')]}, (SELECT completed_at FROM stepwise.step
	WHERE plan_id = @{[plan_of('big')]} AND name = 's5'))", 'done', 200);

# Values other than results count too.
sql(<<'SQL');
INSERT INTO known SELECT 'wide', (stepwise.create_plan('wide', 'memory', (
    SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'tool', 't', 'arguments', jsonb_build_object('text', repeat('all work ', 100000)),
                                        'instructions', repeat('no play ', 100000))) FROM generate_series(1, 40) AS i)) ->> 'planId')::uuid
SQL
takes("stepwise.get_plan_context(@{[plan_of('wide')]})", 'done', 120);

# --- references --------------------------------------------------------------

# 400 references, each to a word in a result of 1 MB
sql(<<'SQL');
INSERT INTO known SELECT 'refers', (stepwise.create_plan('refers', 'memory', jsonb_build_array(
    '{"name": "first", "instructions": "go"}'::jsonb,
    jsonb_build_object('name', 'second', 'tool', 't', 'arguments', (
        SELECT jsonb_object_agg('a' || i, '${steps.first.outputs.word}') FROM generate_series(1, 400) AS i)))) ->> 'planId')::uuid;
SELECT stepwise.submit_step_result((stepwise.get_next_step(plan_id) ->> 'stepId')::uuid,
    jsonb_build_object('word', 'play', 'text', repeat('all work and no play ', 49000))) FROM known WHERE name = 'refers';
SQL
takes("stepwise.get_next_step(@{[plan_of('refers')]})", 'done', 30);

# --- one call, many steps ----------------------------------------------------

# A search visits 150 steps, each of which reads a result of 1 MB. It skips them, records why they are blocked, opens nested plans,
# or asks a person.
sql(<<'SQL');
SELECT stepwise.define_workflow('{"name": "brief", "inputs": {"x": {"type": "string"}},
                                  "steps": [{"name": "a", "condition": "${inputs.x} == \"no\""}]}');
SELECT stepwise.define_workflow('{"name": "picky", "inputs": {"x": {"type": "integer"}}, "steps": [{"name": "a"}]}');
INSERT INTO known
SELECT x.name, (stepwise.create_plan(x.name, 'memory', '[{"name": "first", "instructions": "go"}]' || (
    SELECT jsonb_agg(x.step || jsonb_build_object('name', 's' || i)) FROM generate_series(1, 150) AS i)) ->> 'planId')::uuid
FROM (VALUES
    ('many_skipped', '{"condition": "${steps.first.outputs.text} == \"x\""}'::jsonb),
    ('many_undecided', '{"dependsOn": ["first"], "condition": "${steps.first.outputs.text} == 1"}'),
    ('many_blocked', '{"dependsOn": ["first"], "tool": "t", "arguments": {"a": "${steps.first.outputs}", "b": "${steps.first.outputs.b}"}}'),
    ('many_nested', '{"workflow": "brief", "arguments": {"x": "${steps.first.outputs.text}"}}'),
    ('many_refused', '{"workflow": "picky", "arguments": {"x": "${steps.first.outputs.text}"}}'),
    ('many_asked', '{"dependsOn": ["first"], "prompt": "${steps.first.outputs.text}"}'),
    ('many_clients', '{"dependsOn": ["first"], "tool": "t", "arguments": {"a": "${steps.first.outputs}"}}')) AS x (name, step);
INSERT INTO known SELECT 'many_branches', (stepwise.create_plan('many_branches', 'memory', '[{"name": "first", "instructions": "go"}]', (
    SELECT jsonb_agg(jsonb_build_object('afterStepOrder', 1, 'conditionExpression', format('result.text == "%s"', i), 'ifTrueAction', 'continue'))
    FROM generate_series(1, 150) AS i)) ->> 'planId')::uuid;
SQL
my $submit = "stepwise.submit_step_result((stepwise.get_next_step(%s) ->> 'stepId')::uuid,
	jsonb_build_object('text', repeat('all work and no play ', 49000)))";
takes(sprintf($submit, plan_of('many_branches')), 'done', 40);
for my $name (qw(many_skipped many_undecided many_blocked many_nested many_refused many_asked))
{
	sql('SELECT ' . sprintf($submit, plan_of($name)));
	takes("stepwise.get_next_step(@{[plan_of($name)]})", 'done', 50);
}
sql('SELECT ' . sprintf($submit, plan_of('many_clients')));
takes("stepwise.run(@{[plan_of('many_clients')]})", 'done', 50);
takes("stepwise.get_plan_context(@{[plan_of('many_asked')]})", 'done', 120);

# 100 errors of 1 MB
sql(<<'SQL');
INSERT INTO known SELECT 'many_failed', (stepwise.create_plan('many_failed', 'memory', (
    SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'instructions', 'go')) FROM generate_series(1, 100) AS i)) ->> 'planId')::uuid;
SELECT stepwise.fail_step(s.id, repeat('all work and no play ', 49000)) FROM stepwise.step AS s WHERE s.plan_id = (SELECT plan_id FROM known WHERE name = 'many_failed')
SQL
takes("stepwise.get_plan_status(@{[plan_of('many_failed')]})", 'done', 60);

# --- searching ---------------------------------------------------------------

# Phrases that match before and after the last position that full text search counts (16,383).
sql(<<'SQL');
SELECT stepwise.store_artifact(k.plan_id, x.name, x.content)
FROM known AS k, (VALUES
    ('log', repeat('accepted from 10.0.0.1 ', 3000) || 'connection refused by peer' || repeat(' connection closed', 7000)),
    ('dense', repeat('connection refused ', 13000)),
    ('apart', 'timeout of the first ' || repeat('connection closed ', 13000) || ' second was refused')) AS x (name, content)
WHERE k.name = 'fits'
SQL
takes("stepwise.search_artifacts('\"connection refused\"')", 'done', 100);
takes("stepwise.search_artifacts('timeout refused')", 'done', 100);
like(sql("SELECT stepwise.search_artifacts('\"connection refused\"') #>> '{results,1,fragments,0}'"),
	qr/<b>connection<\/b> <b>refused<\/b> by peer/, 'the phrase is shown, though it is far behind');
like(sql("SELECT stepwise.search_artifacts('timeout refused') #>> '{results,0,fragments,0}'"),
	qr/<b>timeout<\/b> of the first/, 'of words that are far apart, some are shown');

done_testing();
