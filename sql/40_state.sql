-- The state machines: functions that show them, and triggers that apply them to raw SQL.

CREATE FUNCTION stepwise.derive_plan_status(statuses stepwise.step_status[], on_failure text) RETURNS stepwise.plan_status
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'stepwise_derive_plan_status';
COMMENT ON FUNCTION stepwise.derive_plan_status(stepwise.step_status[], text) IS 'status of a plan whose steps have these states';

CREATE FUNCTION stepwise.step_transition_allowed(from_status stepwise.step_status, to_status stepwise.step_status) RETURNS boolean
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'stepwise_step_transition_allowed';
COMMENT ON FUNCTION stepwise.step_transition_allowed(stepwise.step_status, stepwise.step_status) IS 'whether a step may go from one state to another';

CREATE FUNCTION stepwise.plan_transition_allowed(from_status stepwise.plan_status, to_status stepwise.plan_status) RETURNS boolean
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'stepwise_plan_transition_allowed';
COMMENT ON FUNCTION stepwise.plan_transition_allowed(stepwise.plan_status, stepwise.plan_status) IS 'whether a plan may go from one state to another';

CREATE FUNCTION stepwise.engine_guard() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'stepwise_engine_guard';
COMMENT ON FUNCTION stepwise.engine_guard() IS 'refuses every write except those of the engine and of a restore';

CREATE FUNCTION stepwise.step_guard() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'stepwise_step_guard';
COMMENT ON FUNCTION stepwise.step_guard() IS 'checks and stamps steps that raw SQL writes';

CREATE FUNCTION stepwise.steps_changed() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'stepwise_steps_changed';
COMMENT ON FUNCTION stepwise.steps_changed() IS 'counts, audits and settles what raw SQL has written to steps';

CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON stepwise.step
FOR EACH ROW EXECUTE FUNCTION stepwise.step_guard();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON stepwise.step
FOR EACH STATEMENT EXECUTE FUNCTION stepwise.step_guard();
CREATE TRIGGER moved AFTER UPDATE ON stepwise.step
REFERENCING OLD TABLE AS old_steps NEW TABLE AS new_steps
FOR EACH STATEMENT EXECUTE FUNCTION stepwise.steps_changed();
CREATE TRIGGER added AFTER INSERT ON stepwise.step
REFERENCING NEW TABLE AS new_steps
FOR EACH STATEMENT EXECUTE FUNCTION stepwise.steps_changed();

-- Workflows are immutable. Only the engine writes plans, the rows that belong to them, and its own flag.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['plan', 'plan_detail', 'dependency', 'branching_condition', 'checkpoint', 'workflow', 'engine']
    LOOP
        EXECUTE pg_catalog.format('CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON stepwise.%I FOR EACH ROW EXECUTE FUNCTION stepwise.engine_guard()', name);
        EXECUTE pg_catalog.format('CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON stepwise.%I FOR EACH STATEMENT EXECUTE FUNCTION stepwise.engine_guard()', name);
    END LOOP;
END $$;
