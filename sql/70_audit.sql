-- The audit log: append-only, and verifiable.

CREATE FUNCTION stepwise.audit_guard() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'stepwise_audit_guard';
COMMENT ON FUNCTION stepwise.audit_guard() IS 'refuses every write to the audit log except those of the engine and of a restore';

CREATE TRIGGER guard BEFORE INSERT OR UPDATE OR DELETE ON stepwise.audit_log
FOR EACH ROW EXECUTE FUNCTION stepwise.audit_guard();
CREATE TRIGGER guard INSTEAD OF INSERT OR UPDATE OR DELETE ON stepwise.audit
FOR EACH ROW EXECUTE FUNCTION stepwise.audit_guard();
CREATE TRIGGER guard_truncate BEFORE TRUNCATE ON stepwise.audit_log
FOR EACH STATEMENT EXECUTE FUNCTION stepwise.audit_guard();

CREATE FUNCTION stepwise.verify_audit(plan_id uuid, recursive boolean = false) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_verify_audit';
COMMENT ON FUNCTION stepwise.verify_audit(uuid, boolean) IS 'verify the audit chain of a plan, and show the first entry that does not match; null: the chain of the tenant';

CREATE FUNCTION stepwise.audit_head(plan_id uuid) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_audit_head';
COMMENT ON FUNCTION stepwise.audit_head(uuid) IS 'show the length and the newest hash of the audit chain of a plan, to be stored elsewhere; null: of the chain of the tenant';
