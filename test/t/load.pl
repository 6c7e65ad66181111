# Eight agents work on one plan of a thousand steps. Each step is claimed once and completed once, also when every tenth call is
# repeated as by a client that lost the answer, and when connections are killed at random.

use strict;
use warnings;

use POSIX qw(WNOHANG);
use lib 'test/t';
use PostgreSQL::Test::Utils;
use Server;
use Test::More;
use Time::HiRes qw(sleep);

use constant AGENTS => 8;
use constant STEPS => 1000;

my $node = start_server('load');

my $connection = $node->connstr('postgres') . ' application_name=agent';

sql(<<'SQL');
CREATE EXTENSION pg_stepwise;

-- What the agents have recorded. Two agents with the same claim or the same finished step would violate a key here.
CREATE TABLE claimed (step_id uuid, attempt int, worker text NOT NULL, PRIMARY KEY (step_id, attempt));
CREATE TABLE finished (step_id uuid PRIMARY KEY);
CREATE TABLE fault (what text, answer jsonb);

-- A plan of one of two shapes: a line, or a tree in which ten steps depend on each step and the last step depends on many.
CREATE FUNCTION make(name text, shape text) RETURNS uuid LANGUAGE sql AS $$
    SELECT (stepwise.create_plan(name, 'load', jsonb_agg(jsonb_build_object('name', 's' || i) ||
        CASE WHEN shape = 'line' OR i = 1 THEN '{}'
             WHEN i = 1000 THEN jsonb_build_object('dependsOn', (SELECT jsonb_agg('s' || j) FROM generate_series(900, 999) AS j))
             ELSE jsonb_build_object('dependsOn', jsonb_build_array('s' || (i + 8) / 10)) END ORDER BY i)) ->> 'planId')::uuid
    FROM generate_series(1, 1000) AS i
$$;

-- Record a claim of an agent.
CREATE FUNCTION note_claim(x jsonb, worker text) RETURNS void LANGUAGE sql AS $$
    INSERT INTO claimed VALUES ((x ->> 'stepId')::uuid, (x ->> 'attempt')::int, coalesce(worker, ''))
    ON CONFLICT (step_id, attempt) DO UPDATE SET worker = CASE WHEN claimed.worker = excluded.worker AND claimed.worker <> '' THEN claimed.worker END
$$;

-- Whether to lose this answer. An agent with a worker name may lose it after the commit, since it can ask again. Others lose it
-- only before the commit, when nothing has happened.
CREATE PROCEDURE lose(INOUT lost boolean, worker text, repeats float) LANGUAGE plpgsql AS $$
BEGIN
    lost := random() < repeats;
    IF lost AND (worker IS NULL OR random() < 0.3) THEN
        ROLLBACK;
    ELSE
        COMMIT;
    END IF;
END $$;

CREATE PROCEDURE ask(INOUT x jsonb, plan_id uuid, worker text, lease interval, repeats float) LANGUAGE plpgsql AS $$
DECLARE
    lost boolean;
BEGIN
    x := stepwise.get_next_step(plan_id, worker, lease);
    CALL lose(lost, worker, repeats);
    IF lost THEN
        x := stepwise.get_next_step(plan_id, worker, lease);
    END IF;
    IF x ->> 'status' = 'step_ready' THEN
        PERFORM note_claim(x, worker);
    END IF;
    COMMIT;
END $$;

-- Finish a step and, with advance, take the next one. A claim that was lost since is no error.
CREATE PROCEDURE finish(INOUT x jsonb, worker text, lease interval, repeats float, advancing boolean) LANGUAGE plpgsql AS $$
DECLARE
    call text := CASE WHEN advancing THEN 'SELECT stepwise.advance($1, $2, attempt => $3, worker => $4, lease => $5)'
                      ELSE 'SELECT jsonb_build_object(''submitted'', stepwise.submit_step_result($1, $2, attempt => $3))' END;
    step_id uuid := x ->> 'stepId';
    attempt int := x ->> 'attempt';
    answer jsonb;
    lost boolean;
BEGIN
    x := NULL;
    BEGIN
        EXECUTE call INTO answer USING step_id, to_jsonb(step_id), attempt, worker, lease;
    EXCEPTION WHEN SQLSTATE 'SW012' THEN
        RETURN;
    END;
    CALL lose(lost, worker, repeats);
    IF lost THEN
        EXECUTE call INTO answer USING step_id, to_jsonb(step_id), attempt, worker, lease;
    END IF;
    INSERT INTO finished VALUES (step_id) ON CONFLICT DO NOTHING;
    x := answer -> 'next';
    IF x ->> 'status' = 'step_ready' THEN
        PERFORM note_claim(x, worker);
    END IF;
    COMMIT;
END $$;

-- Request a review and decide it; both calls may be repeated.
CREATE PROCEDURE review(x jsonb, repeats float) LANGUAGE plpgsql AS $$
DECLARE
    lost boolean;
BEGIN
    PERFORM stepwise.request_user_review((x ->> 'stepId')::uuid, 'Look', attempt => (x ->> 'attempt')::int);
    CALL lose(lost, '', repeats);
    IF lost THEN
        BEGIN
            PERFORM stepwise.request_user_review((x ->> 'stepId')::uuid, 'Look', attempt => (x ->> 'attempt')::int);
        EXCEPTION WHEN SQLSTATE 'SW003' THEN
            -- another session has decided it
        END;
        COMMIT;
    END IF;
END $$;

CREATE PROCEDURE decide(checkpoint_id uuid, repeats float) LANGUAGE plpgsql AS $$
DECLARE
    decision text := CASE WHEN random() < 0.3 THEN 'modify' ELSE 'approve' END;
    lost boolean := false;
BEGIN
    BEGIN
        PERFORM stepwise.submit_user_decision(checkpoint_id, decision, 'more');
    EXCEPTION WHEN SQLSTATE 'SW009' THEN
        RETURN;
    END;
    CALL lose(lost, '', repeats);
    IF lost THEN
        BEGIN
            PERFORM stepwise.submit_user_decision(checkpoint_id, decision, 'more');
        EXCEPTION WHEN SQLSTATE 'SW009' THEN
            -- another session had claimed it
        END;
        COMMIT;
    END IF;
END $$;

-- Work until the plan is complete.
CREATE PROCEDURE agent(plan_id uuid, worker text, lease interval, repeats float, advancing boolean, reviewing boolean) LANGUAGE plpgsql AS $$
DECLARE
    x jsonb;
BEGIN
    LOOP
        IF x IS NULL THEN
            CALL ask(x, plan_id, worker, lease, repeats);
        END IF;
        CASE x ->> 'status'
            WHEN 'step_ready' THEN
                IF reviewing AND (x ->> 'stepOrder')::int % 20 = 7 AND coalesce(x ->> 'instructions', '') NOT LIKE '%User feedback%' THEN
                    CALL review(x, repeats);
                    x := NULL;
                ELSE
                    CALL finish(x, worker, lease, repeats, advancing);
                END IF;
            WHEN 'plan_complete' THEN
                RETURN;
            WHEN 'awaiting_review' THEN
                CALL decide((x ->> 'checkpointId')::uuid, repeats);
                x := NULL;
            WHEN 'no_pending_steps' THEN
                PERFORM pg_sleep(0.01);
                COMMIT;
                x := NULL;
            ELSE
                INSERT INTO fault VALUES ('answer', x);
                COMMIT;
                RETURN;
        END CASE;
    END LOOP;
END $$;
SQL

# --- agents as processes ------------------------------------------------------

my $log = $node->basedir . '/agents.log';

sub start_agent
{
	my ($call) = @_;
	my $pid = fork;
	die "could not fork: $!" unless defined $pid;
	return $pid if $pid;
	open(STDOUT, '>>', $log);
	open(STDERR, '>&', \*STDOUT);
	exec('psql', '-XqAt', '-d', $connection, '-c', $call) or POSIX::_exit(127);
}

# Run agents until each has seen the end of the plan, and kill some of their connections.
sub run_agents
{
	my ($plan, %how) = @_;
	my $kills = 0;
	my %agent;
	foreach my $number (1 .. AGENTS)
	{
		my $call = sprintf("CALL agent('%s', %s, %s, %s, %s, %s)", $plan,
			$how{workers} ? "'w$number'" : 'NULL', $how{lease} ? "'$how{lease}'" : 'NULL', $how{repeats} // 0,
			$how{advancing} ? 'true' : 'false', $how{reviewing} ? 'true' : 'false');
		$agent{ start_agent($call) } = $call;
	}
	while (%agent)
	{
		if ($how{kills})
		{
			$kills += sql("SELECT count(pg_terminate_backend(a.pid)) FROM (SELECT pid FROM pg_stat_activity"
				  . " WHERE application_name = 'agent' ORDER BY random() LIMIT 2) AS a");
		}
		sleep(0.02);
		while ((my $pid = waitpid(-1, WNOHANG)) > 0)
		{
			my $call = delete $agent{$pid} // next;
			$agent{ start_agent($call) } = $call if $? != 0 && $how{kills};
		}
	}
	return $kills;
}

# --- checks ---------------------------------------------------------------------

sub check_plan
{
	my ($name, $plan, %how) = @_;
	is(sql("SELECT status || ' ' || outcome FROM stepwise.plan WHERE id = '$plan'"), 'completed success', "$name: the plan is complete");
	is(sql("SELECT count(*) FROM stepwise.step WHERE plan_id = '$plan' AND status = 'completed'"), STEPS, "$name: and all its steps");
	is(sql("SELECT count(*), count(DISTINCT step_id) FROM stepwise.audit WHERE plan_id = '$plan' AND event = 'step_completed'"),
		STEPS . '|' . STEPS, "$name: each was completed once");
	is(sql("SELECT count(*) FROM stepwise.audit WHERE plan_id = '$plan' AND event = 'plan_status_changed' AND detail ->> 'to' = 'completed'"),
		1, "$name: and the plan once");
	is(sql("SELECT count(*) FROM stepwise.step AS s JOIN finished AS f ON f.step_id = s.id WHERE s.plan_id = '$plan'"), STEPS,
		"$name: all were finished by an agent") unless $how{reviewing} || $how{kills};
	is(sql("SELECT count(*) FROM stepwise.step AS s WHERE s.plan_id = '$plan' AND s.attempt <> 1 + (SELECT count(*) FROM stepwise.audit AS a
			WHERE a.plan_id = s.plan_id AND a.step_id = s.id AND a.event = 'step_released' AND a.detail ->> 'reason' = 'sent back')"),
		0, "$name: each was claimed once, and once more for each time that it was sent back")
	  unless $how{lease};
	is(sql("SELECT count(*) FROM (SELECT a.step_id FROM stepwise.audit AS a WHERE a.plan_id = '$plan' AND a.event = 'step_started'"
			  . " GROUP BY a.step_id HAVING count(*) <> (SELECT s.attempt FROM stepwise.step AS s WHERE s.id = a.step_id)) AS odd"),
		0, "$name: each claim is in the log once");
	is(sql("SELECT count(*) FROM stepwise.step WHERE plan_id = '$plan' AND type <> 'checkpoint' AND result <> to_jsonb(id) AND NOT result ? 'decision'"), 0,
		"$name: each has its own result");
}

sub scenario
{
	my ($name, $shape, %how) = @_;
	my $plan = sql("SELECT make('$name', '$shape')");
	my $kills = run_agents($plan, %how);
	check_plan($name, $plan, %how);
	cmp_ok($kills, '>', 0, "$name: connections were killed") if $how{kills};
}

scenario('line', 'line');
scenario('line of workers', 'line', workers => 1, advancing => 1);
scenario('tree', 'tree', advancing => 1, workers => 1);
scenario('line with repeats', 'line', repeats => 0.1);
scenario('workers with repeats', 'line', repeats => 0.1, workers => 1);
scenario('advancing with repeats', 'tree', repeats => 0.1, workers => 1, advancing => 1);
scenario('reviews with repeats', 'tree', repeats => 0.1, workers => 1, reviewing => 1);
scenario('killed workers', 'tree', repeats => 0.1, workers => 1, advancing => 1, reviewing => 1, kills => 1);
scenario('killed leases', 'line', lease => '300 milliseconds', kills => 1);

# The tables are altered all the time, with locks for which nobody waits. A new session must notice each change of what it has
# read about the tables.
sql(<<'SQL');
CREATE PROCEDURE alter_tables() LANGUAGE plpgsql AS $$
DECLARE
    began timestamptz := clock_timestamp();
BEGIN
    FOR i IN 1 .. 1000000 LOOP
        EXIT WHEN clock_timestamp() > began + interval '4 s';
        EXECUTE format('ALTER TABLE stepwise.%I SET (autovacuum_vacuum_cost_delay = %s)', (ARRAY['plan', 'step', 'audit_log'])[1 + i % 3], i % 50);
        COMMIT;
    END LOOP;
END $$;
SQL
my $altered = sql("SELECT make('altered', 'line')");
my $altering = start_agent('CALL alter_tables()');
$node->pgbench("-n -C -c 4 -T 3 -D plan=$altered", 0, [qr/number of failed transactions: 0/], [qr/^$/], 'agents that connect anew while tables are altered',
	{ 'altered' => "SELECT stepwise.submit_step_result((x ->> 'stepId')::uuid, '1', attempt => (x ->> 'attempt')::int) FROM stepwise.get_next_step(':plan') AS x WHERE x ->> 'status' = 'step_ready';" });
waitpid($altering, 0);

is(sql('SELECT count(*) FROM fault'), 0, 'no agent met an answer that it did not expect');
unlike(slurp_file($log), qr/ERROR/, 'nor an error');
is(sql('SELECT count(*) FROM stepwise.check_integrity()'), 0, 'the tables do not contradict themselves');
is(sql("SELECT count(*) FROM stepwise.plan AS p WHERE NOT (stepwise.verify_audit(p.id) ->> 'valid')::boolean"), 0, 'all chains verify');

$node->stop;
done_testing();
