-- The audit log, entry by entry.

CREATE FUNCTION stepwise.audit_entries(first bigint, since timestamptz, entries bytea)
RETURNS TABLE (id bigint, at timestamptz, step_id uuid, event text, body bytea, hash bytea)
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE ROWS 2 AS 'MODULE_PATHNAME', 'stepwise_audit_entries';
COMMENT ON FUNCTION stepwise.audit_entries(bigint, timestamptz, bytea) IS 'take a row of audit_log apart, given its columns id, at and entries';

-- The detail is made only for queries that ask for it. It costs more than other conditions, which are therefore tried first.
CREATE FUNCTION stepwise.audit_detail(body bytea) RETURNS jsonb
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE COST 100 AS 'MODULE_PATHNAME', 'stepwise_audit_detail';
COMMENT ON FUNCTION stepwise.audit_detail(bytea) IS 'the detail of an entry, given its body';

CREATE VIEW stepwise.audit WITH (security_invoker) AS
    SELECT l.tenant, l.plan_id, e.id, e.step_id, e.at, e.event COLLATE "C" AS event, l.actor, l.session_id,
           stepwise.audit_detail(e.body) AS detail, e.hash, l.id AS batch
    FROM stepwise.audit_log AS l, LATERAL stepwise.audit_entries(l.id, l.at, l.entries) AS e;
COMMENT ON VIEW stepwise.audit IS 'the audit log, with one entry per change; the entries of a plan form a SHA-256 chain';
COMMENT ON COLUMN stepwise.audit.plan_id IS 'null: the entry belongs to the chain of its tenant';
COMMENT ON COLUMN stepwise.audit.id IS 'position in the chain of its plan, from 1';
COMMENT ON COLUMN stepwise.audit.actor IS 'the role, followed by a slash and the name that the caller gave, if any; a role name with a slash or a double quote is quoted as in SQL';
COMMENT ON COLUMN stepwise.audit.detail IS 'what changed: action, from and to; results, contents and values appear as digests only';
COMMENT ON COLUMN stepwise.audit.hash IS 'SHA-256 over the previous hash and all fields of this entry';
COMMENT ON COLUMN stepwise.audit.batch IS 'id of the first entry that was stored with this one; an index has plan_id and batch';
