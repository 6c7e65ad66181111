# The cost of a step does not grow with the number of finished plans, the length of its plan, or the depth and width of its tree.
# Nor does the cost of an answer that has no step; where much is open at once, it grows no faster than that.
# The cost is counted in pages touched and in rows read and written, not in time. The database is new, so the planner has no
# statistics yet.

use strict;
use warnings;

use lib 'test/t';
use PostgreSQL::Test::Utils;
use Server;
use Test::More;

use constant MANY => 1000;
use constant DEEP => 50;

my $node = start_server('growth', "autovacuum = off\nshared_buffers = 128MB");

# Tables and procedures that call a function of the engine, and record its cost and its answer.
sql(<<'SQL');
CREATE EXTENSION pg_stepwise;

CREATE TABLE cost (run text, n int, pages int, rows int);
CREATE TABLE answer (a jsonb);

CREATE FUNCTION rows_touched() RETURNS bigint LANGUAGE sql AS $$
    SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) + n_tup_ins + n_tup_upd + n_tup_del)
    FROM pg_stat_xact_user_tables WHERE schemaname = 'stepwise'
$$;

-- Make a call, and record its cost.
CREATE FUNCTION measured(run text, n int, call text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    before bigint := rows_touched();
    plan json;
    result jsonb;
BEGIN
    EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) INSERT INTO answer SELECT ' || call INTO plan;
    DELETE FROM answer RETURNING a INTO result;
    INSERT INTO cost VALUES (run, n, (plan #>> '{0,Plan,Shared Hit Blocks}')::int + (plan #>> '{0,Plan,Shared Read Blocks}')::int,
                             rows_touched() - before);
    RETURN result;
END $$;

-- Work on a plan until nothing is left to do, with one call per step.
CREATE PROCEDURE work(run text, plan_id uuid, result jsonb = '{}') LANGUAGE plpgsql AS $$
DECLARE
    x jsonb := stepwise.get_next_step(plan_id);
    n int := 0;
BEGIN
    WHILE x ->> 'status' = 'step_ready' LOOP
        n := n + 1;
        x := measured(run, n, format('stepwise.advance(%L, %L)', x ->> 'stepId', result)) -> 'next';
        COMMIT;
    END LOOP;
END $$;

-- Claim all steps, then submit all of them.
CREATE PROCEDURE claim_all(run text, plan_id uuid) LANGUAGE plpgsql AS $$
DECLARE
    x jsonb;
    n int := 0;
BEGIN
    LOOP
        n := n + 1;
        x := measured(run || ' claimed', n, format('stepwise.get_next_step(%L)', plan_id));
        COMMIT;
        EXIT WHEN x ->> 'status' <> 'step_ready';
        INSERT INTO claimed VALUES (run, n, (x ->> 'stepId')::uuid);
    END LOOP;
END $$;
CREATE TABLE claimed (run text, n int, step_id uuid);
CREATE PROCEDURE submit_all(what text) LANGUAGE plpgsql AS $$
DECLARE
    c claimed;
BEGIN
    FOR c IN SELECT * FROM claimed WHERE run = what ORDER BY n LOOP
        PERFORM measured(what || ' submitted', c.n, format('stepwise.submit_step_result(%L, ''{}'')', c.step_id));
        COMMIT;
    END LOOP;
END $$;

-- Answer every open prompt.
CREATE PROCEDURE answer_all(run text, root uuid) LANGUAGE plpgsql AS $$
DECLARE
    k uuid;
    n int := 0;
BEGIN
    FOR k IN SELECT checkpoint_id FROM stepwise.checkpoints WHERE root_plan_id = root ORDER BY checkpoint_id LOOP
        n := n + 1;
        PERFORM measured(run, n, format('stepwise.resume(%L, ''1'')', k));
        COMMIT;
    END LOOP;
END $$;
SQL

# Compare the median cost of calls early and late in a run. Medians ignore an occasional page split.
sub flat
{
	my ($run, $what) = @_;
	my ($early, $late, $early_rows, $late_rows, $calls) = split /\|/, sql(<<"SQL");
WITH c AS (SELECT *, ntile(10) OVER (ORDER BY n) AS part FROM cost WHERE run = '$run')
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY pages) FILTER (WHERE part = 1),
       percentile_disc(0.5) WITHIN GROUP (ORDER BY pages) FILTER (WHERE part = 10),
       percentile_disc(0.5) WITHIN GROUP (ORDER BY rows) FILTER (WHERE part = 1),
       percentile_disc(0.5) WITHIN GROUP (ORDER BY rows) FILTER (WHERE part = 10), count(*) FROM c
SQL
	cmp_ok($late, '<=', 1.5 * $early + 30, "$what: pages of $calls calls ($early, then $late)");
	cmp_ok($late_rows, '<=', 1.1 * $early_rows + 4, "$what: rows ($early_rows, then $late_rows)");
	return;
}

# Compare the median cost of calls among few and among many rows. A larger index may have one more level.
sub same
{
	my ($small, $large, $what) = @_;
	foreach my $kind (qw(rows pages))
	{
		my ($before, $after) = map { sql("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY $kind) FROM cost WHERE run = '$_'") } ($small, $large);
		cmp_ok($after, '<=', 1.2 * $before + ($kind eq 'pages' ? 20 : 2), "$what: $kind $before and $after");
	}
	return;
}

# Ask about a plan that has no step to hand out.
sub ask
{
	my ($run, $plan, $status) = @_;
	foreach my $function (qw(get_next_step why handoff))
	{
		sql("SELECT measured('$run $function', n, 'to_jsonb(stepwise.$function(''$plan''))') FROM generate_series(1, 3) AS n");
	}
	is(sql("SELECT stepwise.get_next_step('$plan') ->> 'status'"), $status, "$run: $status");
	return;
}

# The same among many nested plans that are open. The cost is a few rows for each of them, not for each pair.
sub ask_among
{
	my ($run, $plan, $status) = @_;
	ask($run, $plan, $status);
	foreach my $function (qw(get_next_step why handoff))
	{
		my ($rows, $pages) = split /\|/, sql("SELECT min(rows), min(pages) FROM cost WHERE run = '$run $function'");
		cmp_ok($rows, '<=', 4 * MANY + 400, "$function among " . MANY . " open nested plans, $run: $rows rows");
		cmp_ok($pages, '<=', 12 * MANY + 1000, "$function among " . MANY . " open nested plans, $run: $pages pages");
	}
	return;
}

sub start
{
	my ($workflow) = @_;
	return sql("SELECT stepwise.start_workflow('$workflow') ->> 'planId'");
}

sub is_completed
{
	my ($plan, $what) = @_;
	is(sql("SELECT status FROM stepwise.plan WHERE id = '$plan'"), 'completed', "$what: completed");
	is(sql("SELECT count(*) FROM stepwise.audit WHERE plan_id = '$plan' AND detail ->> 'to' = 'completed' AND step_id IS NULL"),
		1, "$what: once");
	return;
}

# ---------- finished plans ----------

sql(<<'SQL');
SELECT stepwise.define_workflow(jsonb_build_object('name', 'hundred', 'steps',
    (SELECT jsonb_agg(jsonb_build_object('name', 'x' || i)) FROM generate_series(1, 100) AS i)));
-- Create plans, and finish them by plain SQL.
CREATE PROCEDURE finish_plans(plans int) LANGUAGE plpgsql AS $$
DECLARE
    made uuid[];
BEGIN
    FOR i IN 1 .. plans / 100 LOOP
        SELECT array_agg((stepwise.create_plan('done', 'test', '[{"name": "a"}, {"name": "b"}]') ->> 'planId')::uuid) INTO made
        FROM generate_series(1, 100);
        UPDATE stepwise.step SET status = 'skipped' WHERE tenant = 'default' AND plan_id = ANY (made);
        COMMIT;
    END LOOP;
END $$;
SQL
# A short page of each list, with one plan that waits for a person.
sub lists
{
	my ($run) = @_;
	sql("SELECT measured('$run $_', n, 'stepwise.$_(max => 1)') FROM generate_series(1, 3) AS n") foreach qw(list_active_plans list_plans list_checkpoints);
	return;
}
sql(q(SELECT stepwise.get_next_step((stepwise.create_plan('asks', 'test', '[{"prompt": "Well?"}]') ->> 'planId')::uuid)));
my $plan = start('hundred');
sql("CALL work('few', '$plan')");
lists('few');
sql("CALL finish_plans(5000)");
is(sql("SELECT count(*) FROM stepwise.plan WHERE status = 'completed' AND name = 'done'"), 5000, 'there are finished plans');
$plan = start('hundred');
sql("CALL work('finished', '$plan')");
same('few', 'finished', 'a new database and one with 5000 finished plans');
# there is no autovacuum here, which would remove the entries of plans that were open once
sql('VACUUM stepwise.plan');
lists('finished');
same("few $_", "finished $_", "$_ in both") foreach qw(list_active_plans list_plans list_checkpoints);

# ---------- long plans ----------

sql(<<'SQL');
CREATE FUNCTION long_plan(size int, chained boolean) RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan('long', 'test', jsonb_agg(jsonb_build_object('name', 's' || i, 'instructions', '${inputs.x}')
        || CASE WHEN chained THEN jsonb_build_object('dependsOn', CASE WHEN i = 1 THEN '[]' ELSE jsonb_build_array('s' || i - 1) END) ELSE '{}' END
        ORDER BY i), inputs => '{"x": 1}') ->> 'planId')::uuid
    FROM generate_series(1, size) AS i
$$;
-- Finish all steps but the last ones by plain SQL.
CREATE PROCEDURE leave(plan uuid, steps int) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE stepwise.step SET status = 'in_progress' WHERE tenant = 'default' AND plan_id = plan AND status = 'pending'
        AND step_order <= (SELECT max(step_order) FROM stepwise.step WHERE tenant = 'default' AND plan_id = plan) - steps;
    UPDATE stepwise.step SET status = 'completed' WHERE tenant = 'default' AND plan_id = plan AND status = 'in_progress';
END $$;
SQL

# the answer that a plan is complete reads no steps, however many there are
foreach my $size (10, 1000)
{
	my $ended = sql("SELECT long_plan($size, false)");
	sql("CALL leave('$ended', 0)");
	ask("ended $size", $ended, 'plan_complete');
}
same("ended 10 $_", "ended 1000 $_", "$_ of a plan that is complete") foreach qw(get_next_step why handoff);
foreach my $kind ([ 'sequence', 'false' ], [ 'chain', 'true' ])
{
	my ($name, $chained) = @$kind;
	my ($short, $long) = map { sql("SELECT long_plan($_, $chained)") } (100, 5000);
	sql("CALL work('short $name', '$short')");
	sql("CALL leave('$long', 100)");
	sql("CALL work('long $name', '$long')");
	same("short $name", "long $name", "a $name of 100 steps and the end of one of 5000");
	is_completed($long, "a $name of 5000 steps");
}

# The look back at failed steps and open claims has an end.
my $long = sql("SELECT long_plan(2000, false)");
sql("SELECT stepwise.fail_step(id, 'no') FROM stepwise.step WHERE plan_id = '$long' AND step_order = 1");
sql("SELECT stepwise.get_next_step('$long', 'gone')");
sql("UPDATE stepwise.step SET status = 'skipped' WHERE plan_id = '$long' AND status = 'pending' AND step_order < 1980");
sql("CALL work('long, after a failure', '$long')");
my ($plain, $failed) = map { sql("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY rows) FROM cost WHERE run = '$_'") } 'short sequence', 'long, after a failure';
cmp_ok($failed, '<=', $plain + 2 * 100 + 10, "a step long after a failure and a lost claim: $failed rows, and $plain in a plan without them");

# ---------- one plan and many clients ----------

sql(<<'SQL');
-- Work on a plan with so many clients in turn: each has a claim when the others call.
CREATE PROCEDURE work_together(run text, plan_id uuid, clients int) LANGUAGE plpgsql AS $$
DECLARE
    steps jsonb[] := ARRAY(SELECT stepwise.get_next_step(plan_id) FROM generate_series(1, clients));
    x jsonb;
    n int := 0;
BEGIN
    WHILE steps[1] ->> 'status' = 'step_ready' LOOP
        n := n + 1;
        x := measured(run, n, format('stepwise.advance(%L, ''{}'')', steps[1] ->> 'stepId')) -> 'next';
        steps := steps[2:] || x;
        COMMIT;
    END LOOP;
END $$;
SQL

# An answer names the claims of the others, which is a row for each of them.
my @shared = map { sql("SELECT long_plan(200, false)") } 1, 2;
sql("CALL work_together('alone', '$shared[0]', 1)");
sql("CALL work_together('together', '$shared[1]', 8)");
foreach my $count ([ 'rows', 8 ], [ 'pages', 20 ])
{
	my ($what, $more) = @$count;
	my ($alone, $together) = map { sql("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY $what) FROM cost WHERE run = '$_' AND n BETWEEN 20 AND 180") } qw(alone together);
	cmp_ok($together, '<=', $alone + $more, "a step of a plan that eight clients share: $together $what, and $alone of one client");
}
is_completed($_, 'a plan that clients share') foreach @shared;

# ---------- many, one after the other ----------

my $many = MANY;
sql(<<"SQL");
SELECT stepwise.define_workflow('{"name": "pair", "steps": [{"name": "x"}, {"name": "y"}]}');
SELECT stepwise.define_workflow(jsonb_build_object('name', 'sequence', 'steps',
    (SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'workflow', 'pair')) FROM generate_series(1, $many) AS i)));
SELECT stepwise.define_workflow(jsonb_build_object('name', 'parallel', 'steps',
    (SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'workflow', 'pair', 'dependsOn', '[]'::jsonb)) FROM generate_series(1, $many) AS i)));
SELECT stepwise.define_workflow('{"name": "question", "steps": [{"name": "ask", "prompt": "Well?"}]}');
SELECT stepwise.define_workflow(jsonb_build_object('name', 'questions', 'steps',
    (SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'workflow', 'question', 'dependsOn', '[]'::jsonb)) FROM generate_series(1, $many) AS i)));
SQL

$plan = start('sequence');
sql("CALL work('sequence', '$plan')");
flat('sequence', MANY . ' nested plans in a row');
is_completed($plan, MANY . ' nested plans in a row');

# ---------- many at once ----------

$plan = start('parallel');
sql("CALL claim_all('parallel', '$plan')");
is(sql("SELECT count(*), max(depth) FROM stepwise.plan WHERE root_id = '$plan' AND status = 'executing'"), (MANY + 1) . '|1', 'all nested plans are open');
flat('parallel claimed', 'claims in ' . MANY . ' nested plans at once');
ask_among('claimed', $plan, 'no_pending_steps');
sql("CALL submit_all('parallel')");
flat('parallel submitted', 'submissions in ' . MANY . ' nested plans at once');
is_completed($plan, MANY . ' nested plans at once');

# ---------- many that wait ----------

$plan = start('questions');
is(sql("SELECT stepwise.get_next_step('$plan') ->> 'status'"), 'awaiting_review', 'prompts wait');
is(sql("SELECT count(*) FROM stepwise.checkpoints WHERE root_plan_id = '$plan'"), MANY, 'all of them');
ask_among('asked', $plan, 'awaiting_review');
sql("CALL answer_all('questions', '$plan')");
flat('questions', 'answers while others wait');
is_completed($plan, 'answers');
my ($answer, $alone) = map { sql("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY pages) FROM cost WHERE run = 'questions' AND n $_") } '<= 100', '> ' . (MANY - 5);
cmp_ok($answer, '<=', 1.5 * $alone + 30, "an answer costs the same with many that wait ($answer pages) and with few ($alone)");

# ---------- beside other open plans of the tenant ----------

sql(<<'SQL');
SELECT stepwise.define_workflow('{"name": "mixed", "steps": [{"name": "a", "workflow": "pair", "dependsOn": []}, {"name": "b", "workflow": "pair", "dependsOn": []},
    {"name": "ask", "workflow": "question", "dependsOn": []}]}');
-- Ask about a tree in which one step is claimed, one was claimed for too short, and one asks a person; then the first is sent back.
CREATE PROCEDURE look_around(run text) LANGUAGE plpgsql AS $$
DECLARE
    tree uuid := stepwise.start_workflow('mixed') ->> 'planId';
    held uuid := stepwise.get_next_step(tree, 'anna', '1 hour') ->> 'stepId';
    call text;
BEGIN
    PERFORM stepwise.get_next_step(tree, 'bert', '1 millisecond');
    COMMIT;
    FOR n IN 1 .. 3 LOOP
        FOREACH call IN ARRAY ARRAY['get_next_step(%L, ''anna'')', 'get_next_step(%L, ''carl'')', 'why(%L)', 'get_plan_status(%L)', 'get_plan_context(%L)',
                                    'reclaim_stalled(plan_id => %L)', 'execution(%L)', 'task_variables(%L)'] LOOP
            PERFORM measured(run || ' ' || regexp_replace(call, '[^a-z_]+|L,', ' ', 'g'), n, 'stepwise.' || format(call, tree));
            COMMIT;
        END LOOP;
    END LOOP;
    PERFORM measured(run || ' handoff', 1, format('to_jsonb(stepwise.handoff(%L))', tree));
    PERFORM stepwise.submit_user_decision((stepwise.request_user_review(held, 'Right?', worker => 'anna') ->> 'checkpointId')::uuid, 'modify', 'no');
    COMMIT;
    PERFORM measured(run || ' why after a review', 1, format('stepwise.why(%L)', tree));
    PERFORM measured(run || ' next after a review', 1, format('stepwise.get_next_step(%L, ''dora'')', tree));
    COMMIT;
    PERFORM measured(run || ' cancel', 1, format('stepwise.cancel_plan(%L)', tree));
END $$;
SQL
sql("CALL look_around('few open')");
sql("SELECT count(stepwise.create_plan('open', 'test', '[{}]')) FROM generate_series(1, 3 * $many)");
sql("CALL look_around('many open')");
foreach my $call (split /\n/, sql("SELECT DISTINCT substr(run, length('few open ') + 1) FROM cost WHERE run LIKE 'few open %' ORDER BY 1"))
{
	same("few open $call", "many open $call", "$call beside few and many open plans");
}

# ---------- beside many entries of the tenant ----------

sql(<<'SQL');
-- Listen for changes of tools and workflows, and look three times whether there are any.
CREATE PROCEDURE listen(run text) LANGUAGE plpgsql AS $$
DECLARE
    state jsonb;
BEGIN
    state := stepwise.mcp('{"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": true, "promptsListChanged": true},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}, "stepwise/pipe": true}}}') #> '{stepwise,listen,state}';
    COMMIT;
    ASSERT state IS NOT NULL;
    FOR n IN 1 .. 3 LOOP
        PERFORM measured(run, n, format('stepwise.mcp(%L)', jsonb_build_object('jsonrpc', '2.0', 'id', 2, 'method', 'stepwise/changes', 'params',
            jsonb_build_object('state', state, '_meta', '{"stepwise/version": "2025-11-25", "stepwise/pipe": true}'::jsonb))));
        COMMIT;
    END LOOP;
END $$;
CREATE PROCEDURE write_states(states int) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. states LOOP
        PERFORM stepwise.state_write(jsonb_build_object('name', 's' || i % 10, 'value', i));
        COMMIT;
    END LOOP;
END $$;
SQL
sql("CALL listen('few entries')");
sql("CALL write_states($many)");
sql("CALL listen('many entries')");
same('few entries', 'many entries', 'a look for changes of tools beside few and many entries of the tenant');

# ---------- deep ----------

my $deep = DEEP;
sql(<<"SQL");
SELECT stepwise.define_workflow(jsonb_build_object('name', 'level$deep', 'steps', (SELECT jsonb_agg(jsonb_build_object('name', 'x' || i)) FROM generate_series(1, 200) AS i)));
DO \$\$
BEGIN
    FOR i IN REVERSE $deep - 1..0 LOOP
        PERFORM stepwise.define_workflow(jsonb_build_object('name', 'level' || i, 'steps',
            jsonb_build_array(jsonb_build_object('name', 'down', 'workflow', 'level' || i + 1))));
    END LOOP;
END \$\$;
SQL
my $shallow = start('level' . (DEEP - 1));
sql("CALL work('shallow', '$shallow')");
$plan = start('level0');
sql("CALL work('deep', '$plan')");
is(sql("SELECT count(*), max(depth) FROM stepwise.plan WHERE root_id = '$plan'"), (DEEP + 1) . '|' . DEEP, 'nested as deep as may be');
flat('deep', 'steps at depth ' . DEEP);
is_completed($plan, 'depth ' . DEEP);
is_completed($shallow, 'depth 1');

# although the path is part of the answer
same('shallow', 'deep', 'depth 1 and ' . DEEP);

# ---------- answers without a step ----------

sql(<<'SQL');
-- A sequence whose last step is special; all other steps are finished by plain SQL.
CREATE FUNCTION nearly_done(size int, last jsonb, on_failure text = NULL) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    plan uuid := stepwise.create_plan('nearly done', 'test', jsonb_agg(jsonb_build_object('name', 's' || i) || CASE WHEN i = size THEN last ELSE '{}' END ORDER BY i),
                                      on_failure => on_failure) ->> 'planId' FROM generate_series(1, size) AS i;
BEGIN
    CALL leave(plan, 1);
    RETURN plan;
END $$;
-- Do some steps of a plan.
CREATE PROCEDURE work_on(plan_id uuid, steps int) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. steps LOOP
        PERFORM stepwise.submit_step_result((x ->> 'stepId')::uuid, '1') FROM stepwise.get_next_step(plan_id) AS x;
        COMMIT;
    END LOOP;
END $$;
SQL
my %stop = (
	'prompt' => [ q('{"prompt": "Well?"}'), "SELECT 1", 'awaiting_review' ],
	'failure' => [ q('{}', 'pause'), "SELECT stepwise.fail_step((x ->> 'stepId')::uuid, 'no') FROM stepwise.get_next_step('PLAN') AS x", 'paused' ],
	'claim' => [ q('{}'), "SELECT stepwise.get_next_step('PLAN', 'anna')", 'no_pending_steps' ],
	'nested claim' => [ q('{"workflow": "pair"}'), "SELECT stepwise.get_next_step('PLAN', 'anna')", 'no_pending_steps' ]);
foreach my $kind (sort keys %stop)
{
	my ($last, $call, $status) = @{ $stop{$kind} };
	foreach my $size (20, 1000)
	{
		my $sequence = sql("SELECT nearly_done($size, $last)");
		sql("SELECT stepwise.get_next_step('$sequence')") if $kind eq 'prompt';
		sql($call =~ s/PLAN/$sequence/r);
		ask("$kind $size", $sequence, $status);
	}
	same("$kind 20 $_", "$kind 1000 $_", "$_ after 20 and 1000 steps, at a $kind") foreach $kind eq 'nested claim' ? qw(get_next_step why) : qw(get_next_step why handoff);
}

# after many nested plans that have ended
foreach my $size (10, 200)
{
	sql("SELECT stepwise.define_workflow(jsonb_build_object('name', 'row $size', 'steps',
	    (SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'workflow', 'pair')) FROM generate_series(1, $size) AS i)))");
	$plan = start("row $size");
	sql("CALL work_on('$plan', $size * 2 - 1)");
	sql("SELECT stepwise.get_next_step('$plan', 'anna')");
	ask("row $size", $plan, 'no_pending_steps');
}
same("row 10 $_", "row 200 $_", "$_ after 10 and 200 nested plans") foreach qw(get_next_step why);

# ---------- after ANALYZE, which counts rows but keeps no statistics ----------

sql('ANALYZE');
$plan = start('hundred');
sql("CALL work('finished, analyzed', '$plan')");
same('few', 'finished, analyzed', 'a new database and one with finished plans, after ANALYZE');
$plan = start('level0');
sql("CALL work('deep, analyzed', '$plan')");
same('deep', 'deep, analyzed', 'depth ' . DEEP . ' before and after ANALYZE');

# ---------- a fork reads the log of its plan once, not for every step ----------

sql(<<'SQL');
SELECT stepwise.define_workflow(jsonb_build_object('name', 'forked', 'steps',
    (SELECT jsonb_agg(jsonb_build_object('name', 's' || i)) FROM generate_series(1, 300) AS i)));
SQL
$plan = start('forked');
sql("CALL work('forked', '$plan')");
sql("SELECT measured('fork', 1, 'stepwise.fork_plan(''$plan'', ''s100'')')");
cmp_ok(sql("SELECT rows FROM cost WHERE run = 'fork'"), '<=', 20 * 300, 'a fork of 300 steps: rows');

# ---------- several agents in one tree ----------

sql(<<'SQL');
SELECT stepwise.define_workflow(jsonb_build_object('name', 'shared', 'steps',
    (SELECT jsonb_agg(jsonb_build_object('name', 's' || i, 'workflow', 'pair', 'dependsOn', '[]'::jsonb)) FROM generate_series(1, 100) AS i)));
SQL
$plan = start('shared');
$node->pgbench(
	"--no-vacuum --client=8 --jobs=2 --transactions=30 --define=plan=$plan",
	0, [qr{processed: 240/240}], [qr{^$}],
	'eight agents',
	{
		'work' => q(
			SELECT stepwise.submit_step_result((x ->> 'stepId')::uuid, '1') FROM stepwise.get_next_step(':plan') AS x WHERE x ->> 'status' = 'step_ready';
			SELECT stepwise.get_next_step(':plan', 'agent' || :client_id);
			SELECT stepwise.submit_step_result(s.id, '1') FROM stepwise.step AS s WHERE s.root_id = ':plan' AND s.holder = 'agent' || :client_id;)
	});
is_completed($plan, 'eight agents');
is(sql("SELECT count(*), sum(attempt) FROM stepwise.step WHERE root_id = '$plan' AND workflow IS NULL"), '200|200', 'each step was handed out once');
is(sql("SELECT count(*) FROM stepwise.audit AS a JOIN stepwise.step AS s ON s.id = a.step_id WHERE s.root_id = '$plan' AND s.workflow IS NULL AND a.event = 'step_completed'"),
	200, 'and completed once');

is(sql('SELECT * FROM stepwise.check_integrity()'), '', 'the tables are sound');
is(sql("SELECT count(*) FROM stepwise.plan AS p, stepwise.verify_audit(p.id, true) AS v WHERE p.parent_step_id IS NULL AND NOT (v -> 'valid')::boolean"),
	0, 'the chains of all trees are valid');

done_testing();
