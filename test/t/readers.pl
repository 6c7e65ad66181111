# All functions that read, while other sessions remove, retry, cancel, purge and drop what is read. No call crashes the server,
# every error is of class SW, and every answer shows one moment.

use strict;
use warnings;

use POSIX ();
use lib 'test/t';
use PostgreSQL::Test::Utils;
use Server;
use Test::More;
use Time::HiRes qw(sleep time);

use constant SECONDS => 10;

my $node = start_server('readers', "restart_after_crash = off\nautovacuum = off");

sql(<<'SQL');
CREATE EXTENSION pg_stepwise;

-- What the writers work on: a plan, and a step of it that will be removed or that holds a nested plan.
CREATE TABLE target (id bigserial PRIMARY KEY, plan_id uuid, step_id uuid);
CREATE TABLE fault (what text, state text, message text);
CREATE TABLE done (what text, count bigint);

-- Queries, and a condition that must never be true for the answer.
CREATE TABLE reading (query text, never text);
INSERT INTO reading (query, never) VALUES
    ('stepwise.execution(plan_id)', $$answer -> 'metadata' ->> 'status' IN ('pending', 'running')
        AND NOT EXISTS (SELECT FROM jsonb_each(answer -> 'blocks') AS b WHERE b.value -> 'metadata' ->> 'status' IN ('pending', 'running', 'paused'))$$),
    ('stepwise.execution_as_of(plan_id, clock_timestamp() - interval ''20 ms'')', 'false'),
    ('stepwise.execution_as_of(plan_id, ''infinity'')', 'false'),
    ('stepwise.get_step_context(step_id)', $$NOT answer ? 'step'$$),
    ('stepwise.get_plan_context(plan_id)', $$NOT answer ? 'steps'$$),
    ('stepwise.get_plan_context(plan_id, md5(random()::text))', $$NOT answer ? 'steps'$$),
    ('to_jsonb(stepwise.handoff(plan_id))', 'false'),
    ('stepwise.why(plan_id)', 'false'),
    ('stepwise.call(''why'', jsonb_build_object(''planId'', plan_id))', 'false'),
    ('stepwise.mcp(jsonb_build_object(''jsonrpc'', ''2.0'', ''id'', 1, ''method'', ''tools/call'', ''params'',
        jsonb_build_object(''name'', ''get_plan_status'', ''arguments'', jsonb_build_object(''planId'', plan_id, ''view'', ''context''))))', $$NOT answer ? 'result'$$),
    ('stepwise.get_plan_status(plan_id)', $$answer ->> 'totalSteps' = '0'$$),
    ('stepwise.get_plan_status(plan_id, ''0'')', $$answer ->> 'totalSteps' = '0'$$),
    ('stepwise.workflow_response(plan_id, true)', 'false'),
    ('stepwise.task_variables(plan_id)', 'false'),
    ('stepwise.verify_audit(plan_id)', $$answer ->> 'valid' <> 'true'$$),
    ('stepwise.verify_audit(plan_id, true)', $$answer ->> 'valid' <> 'true'$$),
    ('stepwise.audit_head(plan_id)', 'false'),
    ('stepwise.search_artifacts(''report'')', 'false'),
    ('stepwise.search_artifacts(''report'', plan_id)', 'false'),
    ('stepwise.list_active_plans()', $$jsonb_path_exists(answer, '$.plans[*] ? (@.status == "completed" || @.completedAt != null)')$$),
    ('stepwise.list_plans()', $$jsonb_path_exists(answer, '$.plans[*] ? (@.status == "completed" && @.progress != 100)')$$),
    ('stepwise.list_plans(''cancelled'')', $$jsonb_path_exists(answer, '$.plans[*] ? (@.status != "cancelled")')$$),
    ('stepwise.list_plans(after => (SELECT id FROM stepwise.plan ORDER BY id DESC LIMIT 1), max => 500)', $$(SELECT count(*) <> count(DISTINCT p ->> 'planId')
        FROM jsonb_array_elements(answer -> 'plans') AS p)$$),
    ('stepwise.list_checkpoints()', $$jsonb_path_exists(answer, '$.checkpoints[*] ? (!(@.path[0] == "h"))')$$),
    ('stepwise.find_plans(''line report'')', $$(answer ->> 'count')::int < jsonb_array_length(answer -> 'plans')$$),
    ('stepwise.get_artifact(plan_id, ''report'')', $$answer ->> 'content' IS NULL$$),
    ('stepwise.get_output(plan_id)', $$NOT answer ? 'content'$$),
    ('stepwise.list_tools()', 'false'),
    ('stepwise.list_workflows()', 'false'),
    ('stepwise.get_workflow(''gone'')', $$NOT answer -> 'versions' @> (answer -> 'version')$$),
    ('stepwise.validate_definition(''{"name": "v", "steps": [{"name": "g", "workflow": "gone"}, {"name": "t", "tool": "gone"}]}'')', 'false'),
    ('stepwise.state_read(''{"name": "x", "default": 1}'')', 'false'),
    ('(SELECT to_jsonb(count(*)) FROM stepwise.checkpoints)', 'false'),
    ('(SELECT to_jsonb(count(*)) FROM stepwise.plan_progress)', 'false'),
    ('(SELECT to_jsonb(count(*)) FROM stepwise.check_integrity())', $$answer <> '0'$$),
    -- these write, but their answer shows existing rows
    ('stepwise.create_plan(''line'', ''g'', line(), idempotency_key => ''key'')', $$NOT answer ? 'firstStep'$$),
    ('stepwise.start_workflow(''gone'', idempotency_key => ''start'')', $$NOT answer ? 'firstStep'$$);

CREATE FUNCTION line() RETURNS jsonb IMMUTABLE LANGUAGE sql AS $$
    SELECT '[{"name": "a"}, {"name": "b", "tool": "gone"}, {"name": "c", "instructions": "${steps.a.outputs}"}]'::jsonb
$$;
CREATE FUNCTION no_op(a jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT a $$;
-- stored out of line
CREATE FUNCTION large() RETURNS jsonb LANGUAGE sql AS $$ SELECT to_jsonb(string_agg(md5(random()::text), '')) FROM generate_series(1, 150) $$;
CREATE FUNCTION step_of(plan uuid, name text) RETURNS uuid LANGUAGE sql AS $$
    SELECT s.id FROM stepwise.step AS s WHERE s.plan_id = plan AND s.name = step_of.name
$$;

SELECT stepwise.define_workflow('{"name": "ask", "steps": [{"name": "x"}, {"name": "q", "prompt": "Really?"}]}');

CREATE PROCEDURE note_fault(what text, state text, message text) LANGUAGE plpgsql AS $$
BEGIN
    IF state !~ '^SW' AND state NOT IN ('40001', '40P01') THEN
        INSERT INTO fault VALUES (what, state, message);
    END IF;
END $$;

-- Run all queries on what the writers work on, again and again.
CREATE PROCEDURE read(seconds float) LANGUAGE plpgsql AS $$
DECLARE
    over timestamptz := clock_timestamp() + seconds * interval '1 s';
    readings reading[] := ARRAY(SELECT r FROM reading AS r ORDER BY random());
    r reading;
    answer jsonb;
    bad boolean;
    answered bigint := 0;
    refused bigint := 0;
BEGIN
    WHILE clock_timestamp() < over LOOP
        FOREACH r IN ARRAY readings LOOP
            BEGIN
                EXECUTE format('SELECT answer, %s FROM (SELECT * FROM target WHERE id > (SELECT max(id) - 8 FROM target) ORDER BY random() LIMIT 1) AS t,'
                    ' LATERAL (SELECT %s AS answer OFFSET 0) AS a', r.never, r.query) INTO answer, bad;
                IF bad THEN
                    INSERT INTO fault VALUES (r.query, 'answer', answer);
                END IF;
                answered := answered + 1;
            EXCEPTION WHEN OTHERS THEN
                CALL note_fault(r.query, sqlstate, sqlerrm);
                refused := refused + 1;
            END;
            COMMIT;
        END LOOP;
    END LOOP;
    INSERT INTO done VALUES ('answered', answered), ('refused', refused);
END $$;

-- Make a call of a writer. Another session may have been faster.
CREATE FUNCTION try(query text, VARIADIC args text[]) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    EXECUTE 'SELECT ' || format(query, VARIADIC args) INTO answer;
    RETURN answer;
EXCEPTION WHEN OTHERS THEN
    CALL note_fault(query, sqlstate, sqlerrm);
    RETURN NULL;
END $$;

-- A plan that loses a step, and is then completed.
CREATE PROCEDURE remove(n bigint) LANGUAGE plpgsql AS $$
DECLARE
    plan uuid := stepwise.create_plan('line', 'g', line(), idempotency_key => CASE WHEN n % 2 = 0 THEN 'key' END) ->> 'planId';
    step uuid := step_of(plan, 'b');
BEGIN
    INSERT INTO target (plan_id, step_id) VALUES (plan, step);
    PERFORM try('stepwise.store_artifact(%L, ''report'', ''a report'', %L)', plan::text, step::text);
    COMMIT;
    PERFORM try('stepwise.store_output(%L, ''a report, too'')', plan::text);
    COMMIT;
    PERFORM try('stepwise.submit_step_result(step_of(%L, ''a''), large())', plan::text);
    COMMIT;
    PERFORM try('stepwise.modify_plan(%L, ''remove_step'', jsonb_build_object(''stepId'', %L))', plan::text, step::text);
    COMMIT;
    PERFORM try('stepwise.get_next_step(%L)', plan::text);
    COMMIT;
    PERFORM try('stepwise.submit_step_result(step_of(%L, ''c''), large())', plan::text);
    COMMIT;
END $$;

-- A plan with a step that opens several nested plans one after the other, and that is then cancelled.
CREATE PROCEDURE retry(n bigint) LANGUAGE plpgsql AS $$
DECLARE
    plan uuid := stepwise.create_plan('root', 'g', '[{"name": "h", "workflow": "ask"}, {"name": "last"}]') ->> 'planId';
    holder uuid := step_of(plan, 'h');
    x jsonb;
BEGIN
    INSERT INTO target (plan_id, step_id) VALUES (plan, holder);
    FOR i IN 1 .. 3 LOOP
        x := try('stepwise.get_next_step(%L)', plan::text);
        INSERT INTO target (plan_id, step_id) VALUES ((x ->> 'planId')::uuid, (x ->> 'stepId')::uuid);
        COMMIT;
        PERFORM try('stepwise.advance(%L, large())', x ->> 'stepId');
        COMMIT;
        PERFORM try('stepwise.fail_step(%L, ''again'')', holder::text);
        COMMIT;
        PERFORM try('stepwise.retry_step(%L)', holder::text);
        COMMIT;
    END LOOP;
    PERFORM try('stepwise.cancel_plan(%L)', plan::text);
    COMMIT;
END $$;

CREATE PROCEDURE purge(n bigint) LANGUAGE plpgsql AS $$
BEGIN
    CALL stepwise.purge(clock_timestamp(), 5);
    DELETE FROM target WHERE id < (SELECT max(id) - 100 FROM target);
    COMMIT;
    PERFORM pg_sleep(0.005);
END $$;

CREATE PROCEDURE drop_all(n bigint) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stepwise.register_tool('gone', 'no_op(jsonb)', jsonb_build_object('type', 'object', 'description', large()));
    PERFORM stepwise.define_workflow(jsonb_build_object('name', 'gone', 'description', n::text, 'steps', '[{"name": "a"}]'::jsonb));
    COMMIT;
    PERFORM stepwise.drop_tool('gone');
    PERFORM stepwise.define_workflow('{"name": "gone", "description": "again", "steps": [{"name": "a"}]}');
    COMMIT;
    -- plans that readers have started prevent it
    PERFORM try('stepwise.cancel_plan(%L)', id::text) FROM stepwise.plan WHERE workflow = 'gone' AND completed_at IS NULL;
    COMMIT;
    PERFORM try('stepwise.drop_workflow(%L)', 'gone');
    COMMIT;
END $$;

-- Write until the time is over.
CREATE PROCEDURE write(name text, seconds float) LANGUAGE plpgsql AS $$
DECLARE
    over timestamptz := clock_timestamp() + seconds * interval '1 s';
    count bigint := 0;
BEGIN
    WHILE clock_timestamp() < over LOOP
        CASE name
            WHEN 'remove' THEN CALL remove(count);
            WHEN 'retry' THEN CALL retry(count);
            WHEN 'purge' THEN CALL purge(count);
            WHEN 'drop_all' THEN CALL drop_all(count);
        END CASE;
        count := count + 1;
    END LOOP;
    INSERT INTO done VALUES (name, count);
END $$;
SQL

# ---------- nothing that reads is left out ----------

# Functions that change something or read no row. Every function must be either in this list or in the queries above.
my @others = qw(add_member advance audit_detail audit_entries cancel_plan current_tenant define_workflow derive_plan_status drop_resource drop_tool drop_workflow
  enter_tenant fail_step fork_plan get_next_step grant_agent grant_reader heartbeat help log_skill_execution modify_plan plan_fits
  plan_transition_allowed purge reclaim_stalled record_tool_result register_resource register_tool release_step remove_member
  request_user_review resume retry_step run run_steps set_variables skip_step state_merge state_write step_fits
  slot_of step_transition_allowed store_artifact store_output submit_step_result submit_user_decision uuid7
  cut_json cut_text drop_nulls json_size skill_json time_text);
is(sql("SELECT string_agg(DISTINCT p.proname, ' ') FROM pg_proc AS p WHERE p.pronamespace = 'stepwise'::regnamespace"
		  . " AND p.prorettype <> 'trigger'::regtype AND coalesce(p.proargnames[1], '') <> 'tenant'"
		  . " AND p.proname <> ALL ('{" . join(',', @others) . "}')"
		  . " AND NOT EXISTS (SELECT FROM reading AS r WHERE strpos(r.query, 'stepwise.' || p.proname || '(') > 0)"),
	'', 'every function that reads is in the load');

# ---------- the load ----------

my $log = $node->basedir . '/load.log';

# Start a session that makes one call, and return its process id.
sub start_session
{
	my ($call, $isolation) = @_;
	my $pid = fork;
	die "could not fork: $!" unless defined $pid;
	return $pid if $pid;
	open(STDOUT, '>>', $log);
	open(STDERR, '>&', \*STDOUT);
	$ENV{PGOPTIONS} = "-c client_min_messages=warning -c default_transaction_isolation=$isolation";
	exec('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-c', $call) or POSIX::_exit(127);
}

sql("CALL $_(0)") foreach qw(drop_all remove retry);
my @sessions = (
	(map { start_session("CALL write('$_', " . SECONDS . ')', 'read\ committed') } qw(remove remove retry retry purge drop_all)),
	(map { start_session('CALL read(' . SECONDS . ')', $_) } ('read\ committed') x 4, 'repeatable\ read', 'serializable'));

# Vacuum all the time, so that dead rows disappear as early as possible.
my $over = time + SECONDS;
while (time < $over)
{
	last if $node->psql('postgres', 'VACUUM stepwise.plan, stepwise.step, stepwise.plan_detail, stepwise.audit_log, stepwise.tool, stepwise.workflow') != 0;
	sleep(0.05);
}
my $failed = 0;
foreach my $pid (@sessions)
{
	waitpid($pid, 0);
	$failed++ if $? != 0;
}

# ---------- what must hold ----------

my @crashes = grep { /terminated by signal|TRAP:|PANIC:/ } split(/\n/, slurp_file($node->logfile));
is("@crashes", '', 'the server did not crash');
is($failed, 0, 'every session came to its end') or diag(slurp_file($log));
is(sql("SELECT string_agg(DISTINCT concat_ws(' ', what, state, left(message, 300)), E'\\n') FROM fault"), '', 'no answer was wrong, and no error not ours');
note(sql("SELECT string_agg(what || ' ' || count, ', ' ORDER BY what) FROM (SELECT what, sum(count) AS count FROM done GROUP BY what) AS d"));
is(sql('SELECT count(DISTINCT what) FROM done WHERE count > 0'), 6, 'all have done something');
# sessions that shared an idempotency key once blocked each other
cmp_ok(sql("SELECT sum(count) FROM done WHERE what = 'answered'"), '>', 1000, 'readers get on');
is(sql('SELECT count(*) FROM stepwise.check_integrity()'), 0, 'the tables do not contradict themselves');

$node->stop;
done_testing();
