-- Rights. PUBLIC has none, not even those that PostgreSQL grants by default. grant_agent and grant_reader grant what the view lists.

CREATE VIEW stepwise.grants WITH (security_invoker) AS
    SELECT k.kind, 'GRANT USAGE ON SCHEMA stepwise' AS statement
    FROM (VALUES ('agent'), ('reader')) AS k (kind)
    UNION ALL
    SELECT k.kind, pg_catalog.format('GRANT SELECT ON %I.%I', n.nspname, c.relname)
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace,
         (VALUES ('agent'), ('reader')) AS k (kind)
    WHERE n.nspname = 'stepwise' AND c.relkind IN ('r', 'v') AND c.relname NOT IN ('engine', 'member', 'grants')
    UNION ALL
    SELECT k.kind, pg_catalog.format('GRANT EXECUTE ON ROUTINE %s', p.oid::pg_catalog.regprocedure)
    FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace,
         (VALUES ('agent'), ('reader')) AS k (kind)
    WHERE n.nspname = 'stepwise' AND p.prorettype <> 'pg_catalog.trigger'::pg_catalog.regtype
      AND p.proname NOT IN ('add_member', 'remove_member', 'grant_agent', 'grant_reader', 'register_tool', 'drop_tool',
                            'register_resource', 'drop_resource', 'purge', 'check_integrity', 'step_json', 'step_size', 'artifact_json', 'skill_json',
                            'json_size', 'text_size', 'search_headline', 'time_text', 'interval_text')
      -- what takes the tenant as an argument is the engine's own
      AND (p.proname = 'enter_tenant' OR coalesce(p.proargnames[1], '') <> 'tenant')
      AND (k.kind = 'agent' OR p.proname IN ('enter_tenant', 'current_tenant', 'derive_plan_status',
                                             'step_transition_allowed', 'plan_transition_allowed'));
COMMENT ON VIEW stepwise.grants IS 'statements that grant_agent and grant_reader run; they leave out what only the owner may do';

REVOKE ALL ON SCHEMA stepwise FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA stepwise FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA stepwise FROM PUBLIC;
REVOKE ALL ON TYPE stepwise.step_status, stepwise.plan_status, stepwise.outcome, stepwise.on_failure FROM PUBLIC;
