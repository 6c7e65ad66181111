-- The schema, the types, and ids. Everything lives in schema stepwise; every object has its comment.

CREATE SCHEMA stepwise;
COMMENT ON SCHEMA stepwise IS 'pg_stepwise: durable plans for AI agents';

CREATE TYPE stepwise.step_status AS ENUM ('pending', 'in_progress', 'awaiting_input', 'completed', 'failed', 'skipped');
COMMENT ON TYPE stepwise.step_status IS 'state of a step; what it achieved is its outcome';

CREATE TYPE stepwise.plan_status AS ENUM ('planning', 'executing', 'awaiting_review', 'stalled', 'completed', 'failed', 'cancelled');
COMMENT ON TYPE stepwise.plan_status IS 'state of a plan, derived from its steps';

CREATE TYPE stepwise.outcome AS ENUM ('success', 'failure', 'n/a');
COMMENT ON TYPE stepwise.outcome IS 'what completed work achieved; n/a while it is not completed';

CREATE TYPE stepwise.on_failure AS ENUM ('continue', 'stop', 'pause', 'fail');
COMMENT ON TYPE stepwise.on_failure IS 'what a failed step does to its plan';

-- PostgreSQL parses the text of a CHECK constraint for every statement. A single call of a C function keeps it short.

CREATE FUNCTION stepwise.step_fits(status stepwise.step_status, outcome stepwise.outcome) RETURNS boolean
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'stepwise_step_fits';
COMMENT ON FUNCTION stepwise.step_fits(stepwise.step_status, stepwise.outcome)
IS 'whether a step may have this outcome in this state: success or failure when completed, otherwise n/a';

CREATE FUNCTION stepwise.plan_fits(status stepwise.plan_status, outcome stepwise.outcome, completed_at timestamptz) RETURNS boolean
LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'stepwise_plan_fits';
COMMENT ON FUNCTION stepwise.plan_fits(stepwise.plan_status, stepwise.outcome, timestamptz)
IS 'whether a plan may have this outcome in this state; a plan that has ended must have a completion time';

CREATE FUNCTION stepwise.uuid7() RETURNS uuid
LANGUAGE C VOLATILE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'stepwise_uuid7';
COMMENT ON FUNCTION stepwise.uuid7() IS 'a new time-ordered UUID (version 7) that ends with the slot of the current tenant';

CREATE FUNCTION stepwise.slot_of(id uuid) RETURNS int
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'stepwise_slot_of';
COMMENT ON FUNCTION stepwise.slot_of(uuid) IS 'the slot of the tenant to which an id belongs: its last three hex digits, 0 to 4095';

CREATE FUNCTION stepwise.tenant_slot(tenant text) RETURNS int
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'stepwise_tenant_slot';
COMMENT ON FUNCTION stepwise.tenant_slot(text) IS 'the slot of a tenant: the first 12 bits of the SHA-256 of its name in UTF-8, 0 to 4095';

CREATE FUNCTION stepwise.time_text(at timestamptz) RETURNS text
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'stepwise_time_text';
COMMENT ON FUNCTION stepwise.time_text(timestamptz) IS 'internal: a time in its JSON form: UTC, ISO 8601 with microseconds';

CREATE FUNCTION stepwise.json_size(value jsonb) RETURNS int
LANGUAGE C STABLE STRICT AS 'MODULE_PATHNAME', 'stepwise_json_size';
COMMENT ON FUNCTION stepwise.json_size(jsonb) IS 'internal: size of a value when it is read; pg_column_size tells its stored size';

CREATE FUNCTION stepwise.cut_text(value text, max int, reader text) RETURNS text
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'stepwise_cut_text';
COMMENT ON FUNCTION stepwise.cut_text(text, int, text) IS 'internal: a text, cut if it has more than max bytes; null if max is 0';

CREATE FUNCTION stepwise.cut_json(value jsonb, max int, function text, argument text, id text, also text) RETURNS jsonb
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'stepwise_cut_json';
COMMENT ON FUNCTION stepwise.cut_json(jsonb, int, text, text, text, text)
IS 'internal: a value, or its size and the call that reads it if it has more than max bytes as text; null if max is 0';

CREATE FUNCTION stepwise.drop_nulls(object jsonb) RETURNS jsonb
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'stepwise_drop_nulls';
COMMENT ON FUNCTION stepwise.drop_nulls(jsonb) IS 'internal: an object without its members that are null; values below them stay as they are';
