-- An owner may drop the NOT NULL constraints of the audit log, and then set columns of an entry to null. verify_audit names the
-- changed entry, and does not fail on the nulls.

SELECT (stepwise.create_plan('emptied', 'g', '[{"name": "a"}]') ->> 'planId')::uuid AS plan \gset
SELECT stepwise.submit_step_result(id, '1', worker => 'another') ->> 'planStatus' AS status FROM stepwise.step WHERE plan_id = :'plan';
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

-- Nor do other readers fail on columns of their tables that became null.
SELECT stepwise.store_artifact(:'plan', 'notes', 'text') ->> 'name' AS stored, stepwise.define_workflow('{"name": "emptied", "steps": [{"name": "a"}]}') ->> 'name' AS defined;
CREATE FUNCTION read_without(relation regclass, missing text, query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('ALTER TABLE %s DISABLE TRIGGER USER', relation);
    EXECUTE format('ALTER TABLE %s ALTER COLUMN %I DROP NOT NULL', relation, missing);
    EXECUTE format('UPDATE %s SET %I = NULL', relation, missing);
    EXECUTE query INTO answer;
    RAISE EXCEPTION USING ERRCODE = 'ZZ000', MESSAGE = coalesce(answer, 'null');
EXCEPTION WHEN SQLSTATE 'ZZ000' THEN
    RETURN sqlerrm;
END $$;
SELECT read_without('stepwise.plan', missing, $$SELECT stepwise.find_plans('emptied') ->> 'count'$$) AS found FROM unnest('{goal,inputs,tenant}'::text[]) AS missing;
SELECT read_without('stepwise.artifact', 'content', format($$SELECT stepwise.get_artifact(%L, 'notes') ->> 'size'$$, :'plan')) AS size;
SELECT read_without('stepwise.workflow', 'definition', $$SELECT stepwise.list_workflows() -> 'workflows' -> 0 ->> 'stepCount'$$) AS steps;
SELECT read_without('stepwise.step', 'name', format($$SELECT stepwise.execution_as_of(%L, now()) #>> '{metadata,status}'$$, :'plan')) AS status;
DROP FUNCTION read_without;
