-- Rights. PUBLIC has none, not even those that PostgreSQL grants by default, except that everyone may compute slots. grant_agent and grant_reader grant what this view
-- lists. A new object is granted to nobody until its name is here; a name that does not exist is passed over.
--   reader   what only reads: for agents too
--   agent    what an agent needs
--   decide   what decides for a person: for agents, unless they are granted without decisions

CREATE VIEW stepwise.grants WITH (security_invoker) AS
    WITH listed (kind, privilege, names) AS (VALUES
        ('reader', 'SELECT', 'plan plan_detail step dependency branching_condition workflow checkpoint tool resource state'),
        ('reader', 'SELECT', 'artifact skill_execution tool_call audit audit_log'),
        ('reader', 'SELECT', 'checkpoints plan_progress claims waiting stalled'),
        ('reader', 'EXECUTE', 'enter_tenant current_tenant derive_plan_status step_transition_allowed plan_transition_allowed'),
        ('reader', 'EXECUTE', 'get_plan_status get_plan_context get_step_context list_active_plans list_plans list_checkpoints find_plans why handoff task_variables'),
        ('reader', 'EXECUTE', 'validate_definition list_workflows get_workflow list_tools search_artifacts get_artifact get_output'),
        ('reader', 'EXECUTE', 'execution execution_as_of workflow_response verify_audit audit_head'),
        ('reader', 'EXECUTE', 'call mcp help slot_of tenant_slot'),
        -- view audit calls these as the role that reads it
        ('reader', 'EXECUTE', 'audit_entries audit_detail'),
        ('agent', 'EXECUTE', 'create_plan define_workflow start_workflow drop_workflow fork_plan uuid7'),
        ('agent', 'EXECUTE', 'get_next_step submit_step_result advance fail_step retry_step skip_step release_step heartbeat'),
        ('agent', 'EXECUTE', 'reclaim_stalled cancel_plan request_user_review modify_plan'),
        ('agent', 'EXECUTE', 'store_artifact store_output log_skill_execution'),
        ('agent', 'EXECUTE', 'run run_steps record_tool_result set_variables state_read state_write state_merge'),
        -- CHECK constraints call these as the writing role, which may be a role that was allowed to write by plain SQL
        ('agent', 'EXECUTE', 'step_fits plan_fits'),
        ('decide', 'EXECUTE', 'submit_user_decision resume')),
    named (kind, privilege, name) AS (
        SELECT l.kind, l.privilege, n.name
        FROM listed AS l, pg_catalog.regexp_split_to_table(l.names, ' ') AS n (name)
        UNION ALL
        SELECT 'agent', l.privilege, n.name
        FROM listed AS l, pg_catalog.regexp_split_to_table(l.names, ' ') AS n (name) WHERE l.kind = 'reader')
    SELECT k.kind, 'GRANT USAGE ON SCHEMA stepwise' AS statement
    FROM (VALUES ('agent'), ('reader')) AS k (kind)
    UNION ALL
    SELECT n.kind, pg_catalog.format('GRANT SELECT ON stepwise.%I', c.relname)
    FROM named AS n JOIN pg_catalog.pg_class AS c
      ON c.relname = n.name AND c.relnamespace = 'stepwise'::pg_catalog.regnamespace AND c.relkind IN ('r', 'v')
    WHERE n.privilege = 'SELECT'
    UNION ALL
    SELECT n.kind, pg_catalog.format('GRANT EXECUTE ON ROUTINE %s', p.oid::pg_catalog.regprocedure)
    FROM named AS n JOIN pg_catalog.pg_proc AS p
      ON p.proname = n.name AND p.pronamespace = 'stepwise'::pg_catalog.regnamespace
    WHERE n.privilege = 'EXECUTE';
COMMENT ON VIEW stepwise.grants IS 'statements that grant_agent and grant_reader run: what may be granted to a reader, to an agent, and to an agent that decides';

REVOKE CREATE ON SCHEMA stepwise FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA stepwise FROM PUBLIC;
REVOKE ALL ON ALL ROUTINES IN SCHEMA stepwise FROM PUBLIC;
-- Whoever routes calls to servers needs them, and they tell nothing about any tenant.
GRANT USAGE ON SCHEMA stepwise TO PUBLIC;
GRANT EXECUTE ON FUNCTION stepwise.slot_of(uuid), stepwise.tenant_slot(text) TO PUBLIC;
REVOKE ALL ON TYPE stepwise.step_status, stepwise.plan_status, stepwise.outcome, stepwise.on_failure FROM PUBLIC;
