-- The audit log: append-only, and verifiable.

CREATE FUNCTION stepwise.audit_guard() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'stepwise_audit_guard';
COMMENT ON FUNCTION stepwise.audit_guard() IS 'refuses every write to the audit log that is neither the engine''s nor a restore''s';

CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON stepwise.audit
FOR EACH ROW EXECUTE FUNCTION stepwise.audit_guard();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON stepwise.audit
FOR EACH STATEMENT EXECUTE FUNCTION stepwise.audit_guard();

CREATE FUNCTION stepwise.verify_audit(plan_id uuid, recursive boolean = false) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_verify_audit';
COMMENT ON FUNCTION stepwise.verify_audit(uuid, boolean) IS 'whether the audit chain of a plan holds, or the first entry that does not fit; of no plan (null): the chain of the tenant';

CREATE FUNCTION stepwise.audit_head(plan_id uuid) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_audit_head';
COMMENT ON FUNCTION stepwise.audit_head(uuid) IS 'length and newest hash of the audit chain of a plan, or of the tenant (null), to be stored elsewhere';
