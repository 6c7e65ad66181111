-- The tables. Ids are unique over all tenants, so a key that has one does not contain the tenant; the engine compares the tenant
-- of each row that it finds. Indexes that find what a tenant has start with the tenant. There are no foreign keys, since a parallel
-- restore would lose rows to them. The engine maintains the references, and stepwise.check_integrity() checks them.
--
-- The order of the columns: those of fixed width, then the others. An update logs what lies between the first and the last byte
-- that it changes. So in plan and step, what each call changes stands together, and what never changes stands around it.

CREATE TABLE stepwise.engine (used boolean NOT NULL);
INSERT INTO stepwise.engine VALUES (false);
COMMENT ON TABLE stepwise.engine IS 'one row, which is not dumped: while it is false, a restore may insert rows';
COMMENT ON COLUMN stepwise.engine.used IS 'whether the engine has written anything yet';

CREATE TABLE stepwise.member (
    tenant text COLLATE "C" NOT NULL CHECK (tenant <> ''),
    role   regrole NOT NULL,
    PRIMARY KEY (tenant, role)
);
CREATE INDEX member_role ON stepwise.member (role, tenant);
COMMENT ON TABLE stepwise.member IS 'which role may work in which tenant';

CREATE TABLE stepwise.plan (
    id                uuid NOT NULL,
    root_id           uuid NOT NULL,
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    depth             int NOT NULL DEFAULT 0,
    on_failure        stepwise.on_failure NOT NULL,
    sequential        boolean NOT NULL DEFAULT true,
    separate_reviewer boolean NOT NULL DEFAULT false,
    strict_order      boolean NOT NULL DEFAULT false,
    leases            boolean NOT NULL DEFAULT false,
    nests             boolean NOT NULL DEFAULT false,
    stalls            boolean NOT NULL DEFAULT false,
    ready_marks       boolean NOT NULL DEFAULT false,
    relinked          boolean NOT NULL DEFAULT false,
    outcome           stepwise.outcome NOT NULL DEFAULT 'n/a',
    status            stepwise.plan_status NOT NULL DEFAULT 'planning',
    awaiting_input    int NOT NULL DEFAULT 0,
    failed            int NOT NULL DEFAULT 0,
    skipped           int NOT NULL DEFAULT 0,
    unsuccessful      int NOT NULL DEFAULT 0,
    paused            int NOT NULL DEFAULT 0,
    holding           int NOT NULL DEFAULT 0,
    open_failures     int NOT NULL DEFAULT 0,
    sent_back         int NOT NULL DEFAULT 0,
    crowded           int NOT NULL DEFAULT 0,
    tenant            text COLLATE "C" NOT NULL,
    parent_step_id    uuid,
    stall_after       interval,
    version           int,
    workable          boolean,
    started_at        timestamptz,
    completed_at      timestamptz,
    pending           int NOT NULL DEFAULT 0,
    in_progress       int NOT NULL DEFAULT 0,
    completed         int NOT NULL DEFAULT 0,
    started_steps     int NOT NULL DEFAULT 0,
    next_order        int NOT NULL DEFAULT 1,
    audit_entries     int NOT NULL DEFAULT 0,
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    audit_head        bytea,
    ready_steps       int[],
    session_id        text,
    message           text,
    pause_reason      jsonb,
    outputs           jsonb,
    name              text NOT NULL,
    goal              text NOT NULL,
    workflow          text COLLATE "C",
    idempotency_key   text COLLATE "C",
    inputs            jsonb NOT NULL DEFAULT '{}',
    parent_names      jsonb,
    PRIMARY KEY (id),
    CONSTRAINT plan_outcome CHECK (stepwise.plan_fits(status, outcome, completed_at))
) WITH (fillfactor = 70, toast_tuple_target = 512);
CREATE INDEX plan_root ON stepwise.plan (tenant, id) WHERE parent_step_id IS NULL;
CREATE INDEX plan_open ON stepwise.plan (tenant, id) WHERE completed_at IS NULL;
CREATE INDEX plan_finished ON stepwise.plan (tenant, completed_at) WHERE completed_at IS NOT NULL AND parent_step_id IS NULL;
CREATE INDEX plan_nested ON stepwise.plan (root_id, completed_at) WHERE parent_step_id IS NOT NULL;
CREATE INDEX plan_parent_step ON stepwise.plan (parent_step_id, id) WHERE parent_step_id IS NOT NULL;
CREATE INDEX plan_workable ON stepwise.plan (root_id, depth DESC, id) WHERE workable;
CREATE UNIQUE INDEX plan_idempotency_key ON stepwise.plan (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL;
COMMENT ON TABLE stepwise.plan IS 'one execution of a workflow, or of a definition passed to create_plan';
COMMENT ON COLUMN stepwise.plan.root_id IS 'the plan at the top of the tree; locking its row locks the tree';
COMMENT ON COLUMN stepwise.plan.parent_step_id IS 'the step that holds this nested plan';
COMMENT ON COLUMN stepwise.plan.status IS 'derived from the steps; written by the engine only';
COMMENT ON COLUMN stepwise.plan.outcome IS 'success or failure when completed, otherwise n/a';
COMMENT ON COLUMN stepwise.plan.on_failure IS 'what a failed step does to the plan';
COMMENT ON COLUMN stepwise.plan.sequential IS 'no step declares a dependency, so the steps run in order';
COMMENT ON COLUMN stepwise.plan.separate_reviewer IS 'a review may not be decided by a role that created the plan, requested the review, or worked on the step';
COMMENT ON COLUMN stepwise.plan.strict_order IS 'in a sequence, a step in progress holds back the next one for agents too';
COMMENT ON COLUMN stepwise.plan.leases IS 'root plans only: some claim in the tree has had a lease';
COMMENT ON COLUMN stepwise.plan.nests IS 'root plans only: some step of the tree has opened a nested plan';
COMMENT ON COLUMN stepwise.plan.stalls IS 'root plans only: some plan of the tree was marked stalled';
COMMENT ON COLUMN stepwise.plan.ready_marks IS 'with dependencies: some step may have a ready_mark';
COMMENT ON COLUMN stepwise.plan.relinked IS 'dependencies have changed since the plan was created';
COMMENT ON COLUMN stepwise.plan.ready_steps IS 'with dependencies: orders of steps that are pending and have no blockers; further ones have a ready_mark';
COMMENT ON COLUMN stepwise.plan.workable IS 'nested plans only: it may have a step to hand out';
COMMENT ON COLUMN stepwise.plan.depth IS 'nesting depth; 0 for a root plan';
COMMENT ON COLUMN stepwise.plan.pending IS 'number of pending steps; the next five columns count the other states';
COMMENT ON COLUMN stepwise.plan.unsuccessful IS 'number of steps that completed with outcome failure';
COMMENT ON COLUMN stepwise.plan.paused IS 'number of steps that have a pause reason';
COMMENT ON COLUMN stepwise.plan.holding IS 'number of steps that hold back the steps after them in a sequence';
COMMENT ON COLUMN stepwise.plan.open_failures IS 'number of failed steps that nobody has dealt with; under on_failure stop they keep the plan executing';
COMMENT ON COLUMN stepwise.plan.sent_back IS 'root plans only: number of steps in the tree that a review sent back and nobody has claimed since';
COMMENT ON COLUMN stepwise.plan.crowded IS 'root plans only: number of plans in the tree in which several steps hold back the steps after them';
COMMENT ON COLUMN stepwise.plan.started_steps IS 'number of steps that have started, which is the last execution_order';
COMMENT ON COLUMN stepwise.plan.next_order IS 'no step of a lower order is pending';
COMMENT ON COLUMN stepwise.plan.audit_entries IS 'length of the audit chain';
COMMENT ON COLUMN stepwise.plan.updated_at IS 'when the engine last saved the row; it never decreases';
COMMENT ON COLUMN stepwise.plan.stall_after IS 'how long a claim may show no sign of life, unless the step sets it; null: the setting stepwise.stall_after applies';
ALTER TABLE stepwise.plan ALTER COLUMN audit_head SET STORAGE PLAIN, ALTER COLUMN ready_steps SET STORAGE PLAIN;
COMMENT ON COLUMN stepwise.plan.audit_head IS 'hash of the newest audit entry';
COMMENT ON COLUMN stepwise.plan.session_id IS 'the session that works on the plan, as named by the last call';
COMMENT ON COLUMN stepwise.plan.message IS 'why the plan failed or was cancelled';
COMMENT ON COLUMN stepwise.plan.pause_reason IS 'why the plan cannot go on: the pause reason of its first blocking step';
COMMENT ON COLUMN stepwise.plan.outputs IS 'outputs of the plan, made from the template in plan_detail when it completes';
COMMENT ON COLUMN stepwise.plan.workflow IS 'the workflow that the plan runs; null: it was created from a definition';
COMMENT ON COLUMN stepwise.plan.version IS 'version of the workflow';
COMMENT ON COLUMN stepwise.plan.idempotency_key IS 'key of the creating call; repeating the call returns this plan';
COMMENT ON COLUMN stepwise.plan.inputs IS 'values that steps refer to, with defaults filled in';
COMMENT ON COLUMN stepwise.plan.parent_names IS 'nested plans only: names of the steps above it, from the root down';

CREATE TABLE stepwise.plan_detail (
    plan_id                 uuid NOT NULL,
    forked_from             uuid,
    tenant                  text COLLATE "C" NOT NULL,
    outputs                 jsonb NOT NULL DEFAULT '{}',
    variables               jsonb NOT NULL DEFAULT '{}',
    description             text,
    design_rationale        text,
    output_formatting_notes text,
    request_digest          text,
    final_output            text,
    final_media_type        text,
    PRIMARY KEY (plan_id)
);
COMMENT ON TABLE stepwise.plan_detail IS 'wide columns of a plan that are seldom written; without a row, all have their defaults';
COMMENT ON COLUMN stepwise.plan_detail.outputs IS 'template of the outputs of the plan';
COMMENT ON COLUMN stepwise.plan_detail.variables IS 'variables that set_variables and record_tool_result store';
COMMENT ON COLUMN stepwise.plan_detail.request_digest IS 'digest of the creating call, compared when its idempotency key is used again';
COMMENT ON COLUMN stepwise.plan_detail.final_output IS 'output that store_output stored';
COMMENT ON COLUMN stepwise.plan_detail.forked_from IS 'the plan from which fork_plan made this one';

CREATE TABLE stepwise.step (
    id                      uuid NOT NULL,
    plan_id                 uuid NOT NULL,
    root_id                 uuid,
    step_order              int NOT NULL,
    wave                    int NOT NULL DEFAULT 0,
    blockers                int NOT NULL DEFAULT 0,
    branches                boolean NOT NULL DEFAULT false,
    dynamic                 boolean NOT NULL DEFAULT false,
    tenant                  text COLLATE "C" NOT NULL,
    name                    text COLLATE "C" NOT NULL,
    ready_mark              boolean,
    dependents              int,
    holds                   boolean,
    sent_back               boolean,
    retryable               boolean,
    max_attempts            int,
    version                 int,
    attempts_before         int,
    fixed_version           int,
    stall_after             interval,
    attempt                 int NOT NULL DEFAULT 0,
    execution_order         int,
    started_at              timestamptz,
    active_at               timestamptz,
    lease_expires_at        timestamptz,
    status                  stepwise.step_status NOT NULL DEFAULT 'pending',
    outcome                 stepwise.outcome NOT NULL DEFAULT 'n/a',
    completed_at            timestamptz,
    holder                  text COLLATE "C",
    worker                  text,
    confidence              numeric,
    result                  jsonb,
    result_summary          text,
    execution_report        jsonb,
    output_formatting_notes text,
    message                 text,
    pause_reason            jsonb,
    inputs                  jsonb,
    error                   jsonb,
    approved                text,
    feedback                text,
    previous                jsonb,
    previous_error          text,
    type                    text NOT NULL DEFAULT 'custom',
    tool                    text COLLATE "C",
    workflow                text COLLATE "C",
    binding                 text COLLATE "C",
    prompt                  text,
    instructions            text,
    arguments               jsonb,
    resources               jsonb,
    condition               text,
    condition_path          jsonpath,
    condition_operands      text[],
    review                  jsonb,
    PRIMARY KEY (id),
    CONSTRAINT step_order_unique UNIQUE (plan_id, step_order) DEFERRABLE,
    CONSTRAINT step_outcome CHECK (stepwise.step_fits(status, outcome))
) WITH (fillfactor = 45, toast_tuple_target = 1024);
CREATE UNIQUE INDEX step_name ON stepwise.step (plan_id, name);
CREATE UNIQUE INDEX step_binding ON stepwise.step (plan_id, binding) WHERE binding IS NOT NULL;
CREATE INDEX step_ready ON stepwise.step (plan_id, step_order) WHERE ready_mark;
CREATE INDEX step_holder ON stepwise.step (root_id, holder) WHERE holder IS NOT NULL;
CREATE INDEX step_lease ON stepwise.step (root_id, lease_expires_at) WHERE lease_expires_at IS NOT NULL;
CREATE INDEX step_holds ON stepwise.step (plan_id, step_order) WHERE holds;
CREATE INDEX step_sent_back ON stepwise.step (root_id) WHERE sent_back;
CREATE INDEX step_paused ON stepwise.step (plan_id, step_order) WHERE pause_reason IS NOT NULL;
CREATE INDEX step_notes ON stepwise.step (plan_id, step_order) WHERE output_formatting_notes IS NOT NULL;
COMMENT ON TABLE stepwise.step IS 'one unit of work of a plan';
COMMENT ON COLUMN stepwise.step.root_id IS 'the plan at the top of the tree';
COMMENT ON COLUMN stepwise.step.step_order IS 'place in the plan, from 1, without holes';
COMMENT ON COLUMN stepwise.step.wave IS 'length of the longest path from a step without dependencies; step_order - 1 in a sequential plan';
COMMENT ON COLUMN stepwise.step.status IS 'state of the step; what it achieved is its outcome';
COMMENT ON COLUMN stepwise.step.outcome IS 'success or failure when completed, otherwise n/a';
COMMENT ON COLUMN stepwise.step.attempt IS 'how often the step was claimed; it serves as the fencing number of the claim';
COMMENT ON COLUMN stepwise.step.execution_order IS 'position in the order in which the steps of the plan started, from 1';
COMMENT ON COLUMN stepwise.step.blockers IS 'number of dependencies that are not settled';
COMMENT ON COLUMN stepwise.step.ready_mark IS 'in a plan with dependencies: the step is pending and has no blockers, and ready_steps of its plan does not list it';
COMMENT ON COLUMN stepwise.step.dependents IS 'number of steps that depend on it, as long as the plan is not relinked; null: not counted';
COMMENT ON COLUMN stepwise.step.holds IS 'the step holds back the steps after it in a sequence';
COMMENT ON COLUMN stepwise.step.sent_back IS 'a review sent the step back for more work, and nobody has claimed it since';
COMMENT ON COLUMN stepwise.step.branches IS 'a branching condition follows this step';
COMMENT ON COLUMN stepwise.step.dynamic IS 'prompt, instructions, arguments, resources or review contain references';
COMMENT ON COLUMN stepwise.step.retryable IS 'whether a failed attempt may be retried; null: the tool decides';
COMMENT ON COLUMN stepwise.step.max_attempts IS 'number of claims after which the step fails instead of being handed out again; null: no limit';
COMMENT ON COLUMN stepwise.step.attempts_before IS 'attempts before the last retry_step, which max_attempts does not count';
COMMENT ON COLUMN stepwise.step.active_at IS 'last sign of life of the claim: the claim itself or a heartbeat';
COMMENT ON COLUMN stepwise.step.lease_expires_at IS 'when the claim counts as released; null: never';
COMMENT ON COLUMN stepwise.step.stall_after IS 'how long a claim may show no sign of life; null: the plan decides';
COMMENT ON COLUMN stepwise.step.worker IS 'the worker that claimed it last';
COMMENT ON COLUMN stepwise.step.holder IS 'the worker, while its claim is valid';
COMMENT ON COLUMN stepwise.step.message IS 'why it failed, was skipped, or cannot go on';
COMMENT ON COLUMN stepwise.step.pause_reason IS 'why the step cannot go on, and what unblocks it';
COMMENT ON COLUMN stepwise.step.inputs IS 'the resolved arguments, if they contain references';
COMMENT ON COLUMN stepwise.step.type IS 'informational: search, extract, analyze, critique, synthesize, checkpoint, custom';
COMMENT ON COLUMN stepwise.step.tool IS 'the tool that it calls; at most one of tool, workflow and prompt is set';
COMMENT ON COLUMN stepwise.step.workflow IS 'the workflow that it runs as a nested plan';
COMMENT ON COLUMN stepwise.step.version IS 'version of that workflow; null: the newest one when the nested plan is opened';
COMMENT ON COLUMN stepwise.step.binding IS 'name by which later steps refer to its result';
COMMENT ON COLUMN stepwise.step.prompt IS 'question to a person';
COMMENT ON COLUMN stepwise.step.arguments IS 'arguments as written, with references not resolved';
COMMENT ON COLUMN stepwise.step.resources IS 'URIs to read';
COMMENT ON COLUMN stepwise.step.condition IS 'condition as written; if it is false, the step is skipped';
COMMENT ON COLUMN stepwise.step.condition_path IS 'the compiled condition';
COMMENT ON COLUMN stepwise.step.condition_operands IS 'references that the compiled condition reads, in order';
COMMENT ON COLUMN stepwise.step.error IS 'details of a tool''s error: {error, code, detail, hint}, or the object that the client reported';
COMMENT ON COLUMN stepwise.step.review IS 'the gate before or after the step, as defined';
COMMENT ON COLUMN stepwise.step.approved IS 'digest of what a gate before the step has approved';
COMMENT ON COLUMN stepwise.step.fixed_version IS 'version of the workflow that was fixed when the gate before the step opened';
COMMENT ON COLUMN stepwise.step.feedback IS 'what the last review asked to change';
COMMENT ON COLUMN stepwise.step.previous IS 'result that the last review sent back';
COMMENT ON COLUMN stepwise.step.previous_error IS 'how the attempt before has failed or was lost';

CREATE TABLE stepwise.dependency (
    step_id    uuid NOT NULL,
    depends_on uuid NOT NULL,
    plan_id    uuid NOT NULL,
    required   boolean NOT NULL DEFAULT true,
    ended      boolean NOT NULL DEFAULT false,
    tenant     text COLLATE "C" NOT NULL,
    PRIMARY KEY (step_id, depends_on),
    CONSTRAINT dependency_need CHECK (NOT (required AND ended))
);
CREATE INDEX dependency_of ON stepwise.dependency (depends_on);
COMMENT ON TABLE stepwise.dependency IS 'which step waits for which';
COMMENT ON COLUMN stepwise.dependency.step_id IS 'the step that waits';
COMMENT ON COLUMN stepwise.dependency.depends_on IS 'the step that it waits for';
COMMENT ON COLUMN stepwise.dependency.required IS 'true: the step runs only if the dependency succeeds; false: it runs unless the dependency fails';
COMMENT ON COLUMN stepwise.dependency.ended IS 'true: the step runs however the dependency ends; required is false then';

CREATE TABLE stepwise.branching_condition (
    step_id     uuid NOT NULL,
    plan_id     uuid NOT NULL,
    position    int NOT NULL,
    target_id   uuid,
    tenant      text COLLATE "C" NOT NULL,
    action      text NOT NULL,
    params      jsonb NOT NULL DEFAULT '{}',
    expression  text NOT NULL,
    path        jsonpath NOT NULL,
    operands    text[],
    PRIMARY KEY (step_id, position)
);
COMMENT ON TABLE stepwise.branching_condition IS 'conditions that are evaluated when a step completes, and what they do';
COMMENT ON COLUMN stepwise.branching_condition.step_id IS 'the step after which it is evaluated';
COMMENT ON COLUMN stepwise.branching_condition.position IS 'order in which the conditions of a step are tried, from 1';
COMMENT ON COLUMN stepwise.branching_condition.action IS 'continue, skip_to, add_steps, fail or request_review';
COMMENT ON COLUMN stepwise.branching_condition.target_id IS 'the step to which skip_to goes';
COMMENT ON COLUMN stepwise.branching_condition.params IS 'parameters of the action, as written';
COMMENT ON COLUMN stepwise.branching_condition.expression IS 'expression as written';
COMMENT ON COLUMN stepwise.branching_condition.path IS 'the compiled expression';
COMMENT ON COLUMN stepwise.branching_condition.operands IS 'references that the compiled expression reads, in order';

CREATE TABLE stepwise.workflow (
    tenant      text COLLATE "C" NOT NULL,
    name        text COLLATE "C" NOT NULL,
    version     int NOT NULL,
    definition  jsonb NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, name, version)
);
COMMENT ON TABLE stepwise.workflow IS 'named, versioned, immutable definitions';

CREATE TABLE stepwise.checkpoint (
    id            uuid NOT NULL,
    root_id       uuid NOT NULL,
    plan_id       uuid NOT NULL,
    step_id       uuid NOT NULL,
    since         timestamptz NOT NULL DEFAULT clock_timestamp(),
    tenant        text COLLATE "C" NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('prompt', 'review')),
    prompt        text NOT NULL,
    questions     jsonb NOT NULL DEFAULT '[]',
    shown         text,
    requested_by  text,
    requester     text,
    gate          text CHECK (gate IN ('before', 'after')),
    submission    jsonb,
    PRIMARY KEY (id),
    UNIQUE (step_id)
);
CREATE INDEX checkpoint_tenant ON stepwise.checkpoint (tenant, id);
CREATE INDEX checkpoint_root ON stepwise.checkpoint (root_id, id);
COMMENT ON TABLE stepwise.checkpoint IS 'a step that waits for a person; the row is removed when it is answered';
COMMENT ON COLUMN stepwise.checkpoint.root_id IS 'the plan at the top of the tree';
COMMENT ON COLUMN stepwise.checkpoint.kind IS 'prompt: answered by stepwise.resume; review: decided by stepwise.submit_user_decision';
COMMENT ON COLUMN stepwise.checkpoint.prompt IS 'the question, or the summary of the review';
COMMENT ON COLUMN stepwise.checkpoint.shown IS 'digest of what the reviewer was shown';
COMMENT ON COLUMN stepwise.checkpoint.requester IS 'the role that requested it; null: a gate, which has no requester';
COMMENT ON COLUMN stepwise.checkpoint.requested_by IS 'the name that the requesting worker gave';
COMMENT ON COLUMN stepwise.checkpoint.gate IS 'before or after: the gate of the step; null: the review was requested';
COMMENT ON COLUMN stepwise.checkpoint.submission IS 'what the step was submitted with; an approval completes the step with it';

CREATE TABLE stepwise.tool (
    tenant        text COLLATE "C" NOT NULL,
    name          text COLLATE "C" NOT NULL,
    function      text,
    input_schema  jsonb,
    description   text,
    retryable     boolean NOT NULL DEFAULT false,
    expose        boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tenant, name)
);
COMMENT ON TABLE stepwise.tool IS 'registered tools; one with a function runs in the database';
COMMENT ON COLUMN stepwise.tool.function IS 'signature of the SQL function; null: the client calls the tool';
COMMENT ON COLUMN stepwise.tool.input_schema IS 'JSON Schema of the arguments; checked before the function is called';
COMMENT ON COLUMN stepwise.tool.retryable IS 'whether a failed call may be retried, unless the step sets it';

CREATE TABLE stepwise.resource (
    tenant   text COLLATE "C" NOT NULL,
    pattern  text COLLATE "C" NOT NULL,
    function text NOT NULL,
    PRIMARY KEY (tenant, pattern)
);
COMMENT ON TABLE stepwise.resource IS 'functions that read resources, by pattern of their URI';
COMMENT ON COLUMN stepwise.resource.pattern IS 'a URI, in which * matches anything; the longest matching pattern applies';
COMMENT ON COLUMN stepwise.resource.function IS 'signature of the SQL function';

CREATE TABLE stepwise.state (
    tenant     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    value      jsonb NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, name)
);
COMMENT ON TABLE stepwise.state IS 'named JSON state that outlives plans; the built-in state tools read and write it';

CREATE TABLE stepwise.artifact (
    id         uuid NOT NULL,
    plan_id    uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    version    int NOT NULL,
    step_id    uuid,
    tenant     text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    media_type text,
    content    text NOT NULL,
    data       jsonb,
    source_url text,
    search     tsvector GENERATED ALWAYS AS
               (setweight(to_tsvector('pg_catalog.english', name), 'A') || to_tsvector('pg_catalog.english', left(content, CASE WHEN octet_length(left(content, 250000)) <= 260000 THEN 250000 ELSE 65000 END))
                || array_to_tsvector(ARRAY['tenant ' || hashtextextended(tenant, 0)::text])) STORED,
    PRIMARY KEY (id)
);
CREATE UNIQUE INDEX artifact_version ON stepwise.artifact (plan_id, name, version);
CREATE INDEX artifact_search ON stepwise.artifact USING gin (search);
COMMENT ON TABLE stepwise.artifact IS 'texts, data and sources that steps produced beside their results';
COMMENT ON COLUMN stepwise.artifact.step_id IS 'the step of the tree that produced it; null: none was named, or the step was removed';
COMMENT ON COLUMN stepwise.artifact.version IS 'counts the artifacts of this name in the plan, from 1, without holes';
COMMENT ON COLUMN stepwise.artifact.search IS 'words of the name and the content for searching; names weigh more. One more word stands for the tenant; no text contains it';

CREATE TABLE stepwise.skill_execution (
    id            uuid NOT NULL,
    plan_id       uuid,
    started_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    completed_at  timestamptz,
    tenant        text COLLATE "C" NOT NULL,
    session_id    text COLLATE "C",
    skill_name    text NOT NULL,
    status        text NOT NULL CHECK (status IN ('started', 'executing', 'completed', 'failed')),
    metadata      jsonb NOT NULL DEFAULT '{}',
    error_message text,
    PRIMARY KEY (id)
);
CREATE INDEX skill_execution_session ON stepwise.skill_execution (tenant, session_id, id);
CREATE INDEX skill_execution_plan ON stepwise.skill_execution (plan_id, id) WHERE plan_id IS NOT NULL;
COMMENT ON TABLE stepwise.skill_execution IS 'executions of an agent''s skills, linked to the plans that they made';
COMMENT ON COLUMN stepwise.skill_execution.plan_id IS 'the plan that it created or works on; null: none, or the plan was purged';
COMMENT ON COLUMN stepwise.skill_execution.metadata IS 'metadata from the agent; outputMediaType and outputFormattingInstructions are shown when the plan completes';

CREATE TABLE stepwise.tool_call (
    id           uuid NOT NULL,
    plan_id      uuid,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    duration     interval,
    is_error     boolean NOT NULL,
    request_size int,
    answer_size  int,
    tenant       text COLLATE "C" NOT NULL,
    tool         text NOT NULL,
    PRIMARY KEY (id)
);
COMMENT ON TABLE stepwise.tool_call IS 'calls through MCP, except ping';

-- The column "entries" has the entries of one call in one plan, or of several calls of one session; src/engine/entry.c describes its form.
-- Columns of a fixed size come first. The fill factor leaves a row room to grow. Most rows are far smaller than the limit. Only what is larger than
-- a page is compressed or moved out of the table.
CREATE TABLE stepwise.audit_log (
    id         bigint NOT NULL,
    at         timestamptz NOT NULL,
    plan_id    uuid,
    tenant     text COLLATE "C" NOT NULL,
    actor      text NOT NULL,
    session_id text,
    entries    bytea NOT NULL
) WITH (fillfactor = 90, toast_tuple_target = 8160);
CREATE UNIQUE INDEX audit_log_plan ON stepwise.audit_log (plan_id, id);
CREATE UNIQUE INDEX audit_log_tenant ON stepwise.audit_log (tenant, id) WHERE plan_id IS NULL;
COMMENT ON TABLE stepwise.audit_log IS 'append-only log; a row has the entries of one call or of several calls of a session in a plan; view audit shows the entries, which form a SHA-256 chain per plan';
COMMENT ON COLUMN stepwise.audit_log.id IS 'position of the first entry in the chain of its plan, from 1';
COMMENT ON COLUMN stepwise.audit_log.at IS 'time of the first entry';
COMMENT ON COLUMN stepwise.audit_log.plan_id IS 'null: the entries belong to the chain of their tenant';
COMMENT ON COLUMN stepwise.audit_log.actor IS 'the role, followed by a slash and the name that the caller gave, if any; a role name with a slash or a double quote is quoted as in SQL';
COMMENT ON COLUMN stepwise.audit_log.entries IS 'the entries in a compact form, each with its hash; audit_entries takes them apart';

-- These tables have no primary key. Without this, a publication of all tables would refuse updates and deletes.
ALTER TABLE stepwise.engine REPLICA IDENTITY FULL;
ALTER TABLE stepwise.audit_log REPLICA IDENTITY FULL;

-- A dump contains the users' rows, but not the engine's flag. pg_dump requires one call per statement.
-- The row of a dropped role stays in stepwise.member. Such a role has no name, so the row must not be restored.
SELECT pg_catalog.pg_extension_config_dump('stepwise.member', 'WHERE role::pg_catalog.oid IN (SELECT oid FROM pg_catalog.pg_roles)');
SELECT pg_catalog.pg_extension_config_dump('stepwise.plan', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.plan_detail', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.step', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.dependency', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.branching_condition', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.workflow', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.checkpoint', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.tool', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.resource', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.state', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.artifact', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.skill_execution', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.tool_call', '');
SELECT pg_catalog.pg_extension_config_dump('stepwise.audit_log', '');
