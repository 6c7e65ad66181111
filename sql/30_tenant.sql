-- Tenants: their members, and the policies that separate them.

CREATE FUNCTION stepwise.enter_tenant(tenant text) RETURNS void
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_enter_tenant';
COMMENT ON FUNCTION stepwise.enter_tenant(text) IS 'work in a tenant until the end of the transaction';

CREATE FUNCTION stepwise.current_tenant() RETURNS text
LANGUAGE C STABLE PARALLEL RESTRICTED AS 'MODULE_PATHNAME', 'stepwise_current_tenant';
COMMENT ON FUNCTION stepwise.current_tenant() IS 'the tenant in which the current role works';

CREATE FUNCTION stepwise.add_member(role regrole, tenant text) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_add_member';
COMMENT ON FUNCTION stepwise.add_member(regrole, text) IS 'let a role work in a tenant';

CREATE FUNCTION stepwise.remove_member(role regrole, tenant text) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_remove_member';
COMMENT ON FUNCTION stepwise.remove_member(regrole, text) IS 'stop letting a role work in a tenant';

CREATE FUNCTION stepwise.grant_agent(role regrole, decide boolean = true) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_grant_agent';
COMMENT ON FUNCTION stepwise.grant_agent(regrole, boolean) IS 'give a role what an agent needs: EXECUTE on the functions, SELECT on the tables; with decide => false, without the right to decide for a person';

CREATE FUNCTION stepwise.grant_reader(role regrole) RETURNS jsonb
LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'stepwise_grant_reader';
COMMENT ON FUNCTION stepwise.grant_reader(regrole) IS 'give a role what a dashboard needs: SELECT on the tables, EXECUTE on what only reads';

CREATE FUNCTION stepwise.remembered_changed() RETURNS trigger
LANGUAGE C AS 'MODULE_PATHNAME', 'stepwise_remembered_changed';
COMMENT ON FUNCTION stepwise.remembered_changed() IS 'tells every backend to read the rows of a table again that it remembers';

-- Row triggers that are always enabled also fire for replicated changes on a subscriber.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['member', 'tool']
    LOOP
        EXECUTE pg_catalog.format('CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON stepwise.%I FOR EACH ROW EXECUTE FUNCTION stepwise.remembered_changed()', name);
        EXECUTE pg_catalog.format('CREATE TRIGGER truncated AFTER TRUNCATE ON stepwise.%I FOR EACH STATEMENT EXECUTE FUNCTION stepwise.remembered_changed()', name);
        EXECUTE pg_catalog.format('ALTER TABLE stepwise.%I ENABLE ALWAYS TRIGGER changed', name);
        EXECUTE pg_catalog.format('ALTER TABLE stepwise.%I ENABLE ALWAYS TRIGGER truncated', name);
    END LOOP;
END $$;

-- Policies do not apply to the owner of the tables. The engine runs as the owner, so its queries name the tenant instead.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['member', 'plan', 'plan_detail', 'step', 'dependency', 'branching_condition', 'workflow',
        'checkpoint', 'tool', 'resource', 'state', 'artifact', 'skill_execution', 'tool_call', 'audit_log']
    LOOP
        EXECUTE pg_catalog.format('ALTER TABLE stepwise.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE pg_catalog.format('CREATE POLICY tenant ON stepwise.%I USING (tenant = (SELECT stepwise.current_tenant()))', name);
        EXECUTE pg_catalog.format('COMMENT ON POLICY tenant ON stepwise.%I IS %L', name, 'only rows of the tenant in which the role works');
    END LOOP;
END $$;
ALTER TABLE stepwise.engine ENABLE ROW LEVEL SECURITY;
