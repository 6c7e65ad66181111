-- Every way into a step against every obstacle: one table of ways, one of obstacles, and the answer of each pair. The step is
-- "target". Its tool is in the database, so a run can do it, an agent can get it, and a client can report its result.

\set ECHO none
\i test/agent.sql
CREATE SCHEMA regress_doors;
CREATE FUNCTION regress_doors.door(a jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT '"by the database"'::jsonb $$;
CREATE FUNCTION regress_doors.fail(a jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it failed'; END $$;
\set ECHO all
SELECT stepwise.register_tool('door', 'regress_doors.door(jsonb)', '{"required": ["key"]}') ->> 'name', stepwise.register_tool('jam', 'regress_doors.fail(jsonb)') ->> 'name';
SELECT stepwise.define_workflow('{"name": "doors below", "steps": [{"name": "inner"}]}') ->> 'version';

CREATE TEMP TABLE way (n int GENERATED ALWAYS AS IDENTITY, name text, call text);
INSERT INTO way (name, call) VALUES
    ('get_next_step', $$ SELECT concat_ws(' ', a ->> 'status', a ->> 'name') FROM stepwise.get_next_step($1) AS a $$),
    ('get_next_step, run_tools', $$ SELECT concat_ws(' ', a ->> 'status', a ->> 'name') FROM stepwise.get_next_step($1, run_tools => true) AS a $$),
    ('advance', $$ SELECT concat_ws(' ', a -> 'next' ->> 'status', a -> 'next' ->> 'name') FROM stepwise.advance($2, '{}') AS a $$),
    ('run', $$ SELECT concat_ws(' ', a ->> 'task_status', a -> 'pause_reason' ->> 'type', a ->> 'claimed') FROM stepwise.run($1) AS a $$),
    ('submit_step_result', $$ SELECT a ->> 'stepStatus' FROM stepwise.submit_step_result($3, '"by an agent"') AS a $$),
    ('record_tool_result', $$ SELECT coalesce(a ->> 'stepStatus', 'matched ' || (a ->> 'matched')) FROM stepwise.record_tool_result($1, 'door', '"by a client"') AS a $$),
    ('record_tool_result, by name', $$ SELECT coalesce(a ->> 'stepStatus', 'matched ' || (a ->> 'matched')) FROM stepwise.record_tool_result($1, 'door', '"by a client"', step_name => 'target') AS a $$);

-- The steps before the target, the keys of the target beside its name and tool, and what is done before the try: by default nothing.
-- All plans begin with step "zero", which is completed.
CREATE TEMP TABLE obstacle (n int GENERATED ALWAYS AS IDENTITY, name text, before jsonb DEFAULT '[]', target jsonb DEFAULT '{}', setup text DEFAULT 'SELECT',
    on_failure text, in_order boolean DEFAULT false, inputs jsonb DEFAULT '{}');
INSERT INTO obstacle (name) VALUES ('none');
INSERT INTO obstacle (name, before, setup) VALUES
    ('order', '[{"name": "before"}]', DEFAULT),
    ('claimed before', '[{"name": "before"}]', $$ SELECT stepwise.get_next_step($1, 'w') $$),
    ('prompt not asked yet', '[{"name": "before", "prompt": "Sure?"}]', DEFAULT),
    ('prompt unanswered', '[{"name": "before", "prompt": "Sure?"}]', $$ SELECT stepwise.get_next_step($1) $$),
    ('nested step not opened', '[{"name": "before", "workflow": "doors below"}]', DEFAULT),
    ('nested step claimed', '[{"name": "before", "workflow": "doors below"}]', $$ SELECT stepwise.get_next_step($1, 'w') $$),
    ('under review', '[{"name": "before"}]', $$ SELECT stepwise.request_user_review((stepwise.get_next_step($1) ->> 'stepId')::uuid, 'Look') $$),
    ('sent back', '[{"name": "before"}]', $$ SELECT stepwise.submit_user_decision((r ->> 'checkpointId')::uuid, 'modify', 'more')
        FROM stepwise.request_user_review((stepwise.get_next_step($1) ->> 'stepId')::uuid, 'Look') AS r $$),
    ('plan ended', DEFAULT, $$ SELECT stepwise.cancel_plan($1) $$),
    ('claimed with a lease', DEFAULT, $$ SELECT stepwise.get_next_step($1, lease => '1 hour') $$),
    ('claimed by a worker', DEFAULT, $$ SELECT stepwise.get_next_step($1, 'w') $$),
    ('claimed before, and released', DEFAULT, $$ SELECT stepwise.release_step((stepwise.get_next_step($1) ->> 'stepId')::uuid) $$);
INSERT INTO obstacle (name, before, setup, on_failure) VALUES
    ('open failure before, stop', '[{"name": "before", "tool": "jam"}]', $$ SELECT stepwise.run($1) $$, 'stop'),
    ('failure before, pause', '[{"name": "before", "tool": "jam"}]', $$ SELECT stepwise.run($1, 1) $$, 'pause');
INSERT INTO obstacle (name, before, target, setup) VALUES
    ('open dependency', '[{"name": "before"}]', '{"dependsOn": ["before"]}', DEFAULT),
    ('dependency claimed', '[{"name": "before"}]', '{"dependsOn": ["before"]}', $$ SELECT stepwise.get_next_step($1, 'w') $$),
    ('dependency on a prompt', '[{"name": "before", "prompt": "Sure?"}]', '{"dependsOn": ["before"]}', $$ SELECT stepwise.get_next_step($1) $$);
INSERT INTO obstacle (name, target, inputs) VALUES
    ('condition false', '{"condition": "${inputs.go}"}', '{"go": false}'),
    ('condition undecidable', '{"condition": "${inputs.go.now}"}', '{"go": {}}'),
    ('unresolved argument', '{"arguments": {"key": "${inputs.go.now}"}}', '{"go": {}}'),
    ('schema', '{"arguments": {}}', DEFAULT);
INSERT INTO obstacle (name, before, setup, in_order) VALUES
    ('claimed before, strictOrder', '[{"name": "before"}]', $$ SELECT stepwise.get_next_step($1, 'w') $$, true);

-- Make the plan of an obstacle, try a way, and tell the answer, and what became of the target.
CREATE FUNCTION pg_temp.door(o obstacle, w way) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    depends boolean := o.target ? 'dependsOn';
    plan uuid := stepwise.create_plan('doors', 'test', jsonb_build_array(jsonb_build_object('name', 'zero') || CASE WHEN depends THEN '{"dependsOn": []}' ELSE '{}'::jsonb END)
        || o.before || jsonb_build_array('{"name": "target", "tool": "door", "arguments": {"key": 1}}'::jsonb || o.target),
        inputs => o.inputs, on_failure => o.on_failure, strict_order => o.in_order) ->> 'planId';
    zero uuid := stepwise.get_next_step(plan) ->> 'stepId';
    target uuid := s.id FROM stepwise.step AS s WHERE s.plan_id = plan AND s.name = 'target';
    answer text;
BEGIN
    PERFORM stepwise.submit_step_result(zero, '{}');
    EXECUTE o.setup USING plan;
    BEGIN
        EXECUTE w.call INTO answer USING plan, zero, target;
    EXCEPTION WHEN OTHERS THEN
        answer := sqlstate || ' ' || sqlerrm;
    END;
    RETURN concat_ws(' → ', answer, (SELECT concat_ws(' ', s.status, s.result) FROM stepwise.step AS s WHERE s.id = target));
END $$;

SELECT o.name || ': ' || w.name, pg_temp.door(o, w) FROM obstacle AS o, way AS w ORDER BY o.n, w.n;

SELECT pg_temp.unsound();
SELECT count(stepwise.drop_tool(name)) FROM unnest('{door,jam}'::text[]) AS name;
DROP SCHEMA regress_doors CASCADE;
