-- An owner may drop the NOT NULL constraints of the audit log, and then set columns of an entry to null. verify_audit names the
-- changed entry, and does not fail on the nulls.

SELECT (stepwise.create_plan('emptied', 'g', '[{"name": "a"}]') ->> 'planId')::uuid AS plan \gset
SELECT stepwise.submit_step_result(id, '1') ->> 'planStatus' AS status FROM stepwise.step WHERE plan_id = :'plan';
SELECT stepwise.verify_audit(:'plan') -> 'valid' AS valid;

CREATE FUNCTION verify_without(plan uuid, missing text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    answer jsonb;
BEGIN
    ALTER TABLE stepwise.audit_log DISABLE TRIGGER USER;
    EXECUTE format('ALTER TABLE stepwise.audit_log ALTER COLUMN %I DROP NOT NULL', missing);
    EXECUTE format('UPDATE stepwise.audit_log SET %I = NULL WHERE plan_id = $1 AND id > 1', missing) USING plan;
    answer := stepwise.verify_audit(plan);
    RAISE EXCEPTION USING ERRCODE = 'ZZ000', MESSAGE = answer ->> 'valid' || ' ' || (answer -> 'firstInvalid' ->> 'reason');
EXCEPTION WHEN SQLSTATE 'ZZ000' THEN
    -- nothing of it stays
    RETURN to_jsonb(sqlerrm);
END $$;

SELECT missing, verify_without(:'plan', missing) AS verified
FROM unnest('{entries,actor,at,id,tenant}'::text[]) AS missing;
SELECT stepwise.verify_audit(:'plan') -> 'valid' AS valid;

DROP FUNCTION verify_without;
