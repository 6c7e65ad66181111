/*
 * create.c
 *	  the rows of a new plan, and of steps that are added to one
 *
 * A definition has been accepted before it comes here (define.c). Steps go in
 * by one statement, however many: as one jsonb array that PostgreSQL takes
 * apart, so that 10,000 steps cost little more than the rows.
 *
 * Locks: a new plan is seen by nobody yet; steps are added to a plan that the
 * caller has locked. Of calls with the same idempotency key, one waits.
 */
#include "api/api.h"

#include "miscadmin.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(stepwise_create_plan);
PG_FUNCTION_INFO_V1(stepwise_start_workflow);

/* ---------- rows as JSON ---------- */

static void
PutInterval(JsonBuilder *b, const char *key, Interval *interval)
{
	JsonPutText(b, key, interval ? IntervalText(interval) : NULL);
}

/* A compiled condition: its source, its path, and the references it reads. */
static void
PutCondition(JsonBuilder *b, const Condition *condition, const char *source_key, const char *path_key, const char *operands_key)
{
	JsonPutText(b, source_key, condition->source);
	JsonPutText(b, path_key, DatumGetCString(DirectFunctionCall1(jsonpath_out, condition->path)));
	if (condition->raw)
		return;
	JsonArrayStart(b, operands_key);
	for (int i = 0; i < condition->noperands; i++)
		JsonPutText(b, NULL, condition->operands[i]->source);
	JsonArrayEnd(b);
}

static void
PutStep(JsonBuilder *b, const StepDefinition *step, const pg_uuid_t *id, int order, bool sequential, bool branches, int blockers)
{
	JsonObjectStart(b, NULL);
	JsonPutUuid(b, "id", id);
	JsonPutInt(b, "step_order", order);
	JsonPutInt(b, "wave", sequential ? order - 1 : step->wave);
	JsonPutInt(b, "blockers", blockers);
	if (!sequential && blockers == 0)
		JsonPutBool(b, "ready", true);
	JsonPutBool(b, "branches", branches);
	JsonPutBool(b, "dynamic", step->dynamic);
	if (step->retryable >= 0)
		JsonPutBool(b, "retryable", step->retryable == 1);
	JsonPutPositive(b, "max_attempts", step->max_attempts);
	PutInterval(b, "stall_after", step->stall_after);
	JsonPutText(b, "name", step->name);
	JsonPutText(b, "type", step->type ? step->type : "custom");
	JsonPutText(b, "tool", step->tool);
	JsonPutText(b, "workflow", step->workflow);
	JsonPutPositive(b, "version", step->version);
	JsonPutText(b, "binding", step->binding);
	JsonPutText(b, "prompt", step->prompt);
	JsonPutText(b, "instructions", step->instructions);
	if (step->arguments != NULL)
		JsonPutJson(b, "arguments", step->arguments);
	if (step->resources != NULL)
		JsonPutJson(b, "resources", step->resources);
	if (step->condition != NULL)
		PutCondition(b, step->condition, "condition", "condition_path", "condition_operands");
	JsonObjectEnd(b);
}

/* Run a query over (tenant, plan, root, array of rows); one that needs no root still has to name its parameter. */
static void
InsertRows(Call *call, KeptQuery *query, const PlanRow *plan, JsonBuilder *b)
{
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, &plan->id);
	ArgUuid(&args, &plan->root_id);
	ArgDatum(&args, JsonbPGetDatum(JsonFinish(b)));
	QueryRun(query, &args);
}

static void
InsertSteps(Call *call, const PlanRow *plan, JsonBuilder *b)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.step (tenant, id, plan_id, root_id, step_order, wave, blockers, ready, branches, dynamic,"
		" retryable, max_attempts, stall_after, name, type, tool, workflow, version, binding, prompt, instructions,"
		" arguments, resources, condition, condition_path, condition_operands)"
		" SELECT $1, x.id, $2, $3, x.step_order, x.wave, x.blockers, x.ready, x.branches, x.dynamic,"
		" x.retryable, x.max_attempts, x.stall_after, x.name, x.type, x.tool, x.workflow, x.version, x.binding, x.prompt,"
		" x.instructions, x.arguments, x.resources, x.condition, x.condition_path, x.condition_operands"
		" FROM pg_catalog.jsonb_to_recordset($4) AS x (id uuid, step_order int, wave int, blockers int, ready boolean,"
		" branches boolean, dynamic boolean, retryable boolean, max_attempts int, stall_after interval, name text,"
		" type text, tool text, workflow text, version int, binding text, prompt text, instructions text,"
		" arguments jsonb, resources jsonb, condition text, condition_path jsonpath, condition_operands text[])",
		4, {TEXTOID, UUIDOID, UUIDOID, JSONBOID}
	};

	InsertRows(call, &insert, plan, b);
}

/*
 * Dependencies on their way into the table. A plan of 1,000 steps can have half
 * a million of them: they go in as arrays, some thousands by one statement.
 */
#define LINKS_AT_ONCE	5000

typedef struct Links
{
	Call	   *call;
	const PlanRow *plan;
	int			count;
	Datum		step_ids[LINKS_AT_ONCE];
	Datum		parent_ids[LINKS_AT_ONCE];
	Datum		required[LINKS_AT_ONCE];
} Links;

static Links *
LinksBegin(Call *call, const PlanRow *plan)
{
	Links	   *links = palloc(sizeof(Links));

	links->call = call;
	links->plan = plan;
	links->count = 0;
	return links;
}

/* Write the dependencies that were collected. */
static void
LinksInsert(Links *links)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.dependency (tenant, plan_id, step_id, depends_on, required)"
		" SELECT $1, $2, x.step_id, x.depends_on, x.required"
		" FROM ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5))"
		" AS x (step_id, depends_on, required)",
		5, {TEXTOID, UUIDOID, UUIDARRAYOID, UUIDARRAYOID, BOOLARRAYOID}
	};
	Args		args = {0};

	if (links->count == 0)
		return;
	ArgTenant(&args, links->call);
	ArgUuid(&args, &links->plan->id);
	ArgDatum(&args, PointerGetDatum(construct_array(links->step_ids, links->count, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR)));
	ArgDatum(&args, PointerGetDatum(construct_array(links->parent_ids, links->count, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR)));
	ArgDatum(&args, PointerGetDatum(construct_array(links->required, links->count, BOOLOID, 1, true, TYPALIGN_CHAR)));
	QueryRun(&insert, &args);
	for (int i = 2; i < args.count; i++)
		pfree(DatumGetPointer(args.values[i]));
	links->count = 0;
}

/* Add a dependency; both ids must live until LinksEnd. */
static void
LinksAdd(Links *links, const pg_uuid_t *step_id, const pg_uuid_t *parent_id, bool required)
{
	if (links->count == LINKS_AT_ONCE)
		LinksInsert(links);
	links->step_ids[links->count] = UUIDPGetDatum(step_id);
	links->parent_ids[links->count] = UUIDPGetDatum(parent_id);
	links->required[links->count] = BoolGetDatum(required);
	links->count++;
}

static void
LinksEnd(Links *links)
{
	LinksInsert(links);
	pfree(links);
}

static void
InsertBranches(Call *call, const PlanRow *plan, JsonBuilder *b)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.branching_condition (tenant, plan_id, step_id, position, action, target_id, params,"
		" expression, path, operands)"
		" SELECT $1, $2, x.step_id, x.position, x.action, x.target_id, x.params, x.expression, x.path, x.operands"
		" FROM pg_catalog.jsonb_to_recordset($4) AS x (step_id uuid, position int, action text, target_id uuid,"
		" params jsonb, expression text, path jsonpath, operands text[])"
		" WHERE $3 IS NOT NULL",
		4, {TEXTOID, UUIDOID, UUIDOID, JSONBOID}
	};

	InsertRows(call, &insert, plan, b);
}

/* ---------- a new plan ---------- */

static void
InsertPlan(Call *call, const PlanRow *plan, const char *idempotency_key)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.plan (tenant, id, root_id, parent_step_id, on_failure, sequential, separate_reviewer,"
		" workable, depth, pending, audit_entries, created_at, updated_at, stall_after, audit_head, session_id, name,"
		" goal, workflow, version, idempotency_key, inputs, holders)"
		" VALUES ($1, $2, $3, $4, $5::stepwise.on_failure, $6, $7, $8, $9, $10, $11, $12, $12, $13, $14, $15, $16, $17,"
		" $18, $19, $20, $21, $22)"
		/* a key that is taken was seen, but by a transaction at a stricter level: that then fails to serialize */
		" ON CONFLICT (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING",
		22, {TEXTOID, UUIDOID, UUIDOID, UUIDOID, TEXTOID, BOOLOID, BOOLOID, BOOLOID, INT4OID, INT4OID, INT4OID,
		TIMESTAMPTZOID, INTERVALOID, BYTEAOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID, JSONBOID, JSONBOID}
	};
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, &plan->id);
	ArgUuid(&args, &plan->root_id);
	ArgUuid(&args, plan->nested ? &plan->parent_step_id : NULL);
	ArgText(&args, OnFailureName[plan->on_failure]);
	ArgBool(&args, plan->sequential);
	ArgBool(&args, plan->separate_reviewer);
	if (plan->nested)
		ArgBool(&args, true);
	else
		ArgNull(&args);
	ArgInt(&args, plan->depth);
	ArgInt(&args, plan->counts[STEP_PENDING]);
	ArgInt(&args, plan->audit_entries);
	ArgTime(&args, plan->created_at);
	if (plan->stall_after)
		ArgDatum(&args, IntervalPGetDatum(plan->stall_after));
	else
		ArgNull(&args);
	ArgDatum(&args, PointerGetDatum(cstring_to_text_with_len((const char *) plan->audit_head, 32)));
	ArgText(&args, plan->session_id);
	ArgText(&args, plan->name);
	ArgText(&args, plan->goal);
	ArgText(&args, plan->workflow);
	if (plan->workflow)
		ArgInt(&args, plan->version);
	else
		ArgNull(&args);
	ArgText(&args, idempotency_key);
	ArgVarlena(&args, plan->inputs);
	ArgVarlena(&args, plan->holders);
	QueryRun(&insert, &args);
}

static void
InsertPlanDetail(Call *call, const PlanRow *plan, const Definition *definition, const PlanOrigin *origin)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.plan_detail (tenant, plan_id, outputs, description, design_rationale,"
		" output_formatting_notes, request_digest)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7)",
		7, {TEXTOID, UUIDOID, JSONBOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
	};
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, &plan->id);
	ArgDatum(&args, JsonbPGetDatum(definition->outputs ? definition->outputs : JsonEmptyObject()));
	ArgText(&args, definition->description);
	ArgText(&args, origin->design_rationale);
	ArgText(&args, definition->output_formatting_notes);
	ArgText(&args, origin->request_digest);
	QueryRun(&insert, &args);
}

/* A nested plan hangs on its holder, and what is asked of the plan around it holds for it too. */
static void
PlanNest(PlanRow *plan, const PlanRow *parent, const StepRow *holder)
{
	plan->nested = true;
	plan->root = parent->root;
	plan->root_id = parent->root_id;
	plan->parent_step_id = holder->id;
	plan->depth = parent->depth + 1;
	plan->holders = HoldersBelow(parent, holder);
	plan->separate_reviewer = plan->separate_reviewer || parent->separate_reviewer;
	if (plan->stall_after == NULL)
		plan->stall_after = holder->stall_after ? holder->stall_after : parent->stall_after;
}

static PlanRow *
PlanFromDefinition(Call *call, const Definition *definition, const PlanOrigin *origin)
{
	PlanRow    *plan = palloc0(sizeof(PlanRow));

	plan->id = UuidNew();
	plan->root = plan;
	plan->root_id = plan->id;
	plan->status = PLAN_PLANNING;
	plan->outcome = OUTCOME_NA;
	plan->on_failure = definition->on_failure;
	plan->sequential = definition->sequential;
	plan->separate_reviewer = definition->separate_reviewer;
	plan->workable = true;
	plan->counts[STEP_PENDING] = definition->nsteps;
	plan->next_order = 1;
	plan->updated_at = plan->started_at = plan->completed_at = NO_TIME;
	plan->created_at = plan->updated_at = CallNow(call, plan);
	plan->stall_after = definition->stall_after;
	plan->session_id = unconstify(char *, call->session);
	plan->name = definition->name;
	plan->goal = unconstify(char *, origin->goal ? origin->goal : "");
	plan->workflow = unconstify(char *, origin->workflow);
	plan->version = origin->version;
	plan->inputs = (struct varlena *) (origin->inputs ? origin->inputs : JsonEmptyObject());
	if (origin->holder != NULL)
		PlanNest(plan, origin->parent, origin->holder);
	return plan;
}

/* Write the rows of the steps. */
static void
InsertDefinedSteps(Call *call, const PlanRow *plan, const Definition *definition, const pg_uuid_t *ids)
{
	bool	   *has_branches = palloc0(sizeof(bool) * (definition->nsteps + 1));
	JsonBuilder b = {0};
	ListCell   *cell;

	foreach(cell, definition->branches)
		has_branches[((BranchDefinition *) lfirst(cell))->after] = true;
	JsonArrayStart(&b, NULL);
	for (int i = 0; i < definition->nsteps; i++)
		PutStep(&b, &definition->steps[i], &ids[i], i + 1, definition->sequential, has_branches[i + 1],
				list_length(definition->steps[i].depends));
	JsonArrayEnd(&b);
	InsertSteps(call, plan, &b);
}

static void
InsertDefinedDependencies(Call *call, const PlanRow *plan, const Definition *definition, const pg_uuid_t *ids)
{
	Links	   *links = LinksBegin(call, plan);

	for (int i = 0; i < definition->nsteps; i++)
	{
		ListCell   *cell;

		foreach(cell, definition->steps[i].depends)
		{
			DependencyDefinition *dependency = lfirst(cell);

			LinksAdd(links, &ids[i], &ids[dependency->parent - 1], dependency->required);
		}
	}
	LinksEnd(links);
}

static void
InsertDefinedBranches(Call *call, const PlanRow *plan, const Definition *definition, const pg_uuid_t *ids)
{
	JsonBuilder b = {0};
	ListCell   *cell;

	JsonArrayStart(&b, NULL);
	foreach(cell, definition->branches)
	{
		BranchDefinition *branch = lfirst(cell);

		JsonObjectStart(&b, NULL);
		JsonPutUuid(&b, "step_id", &ids[branch->after - 1]);
		JsonPutInt(&b, "position", branch->position);
		JsonPutText(&b, "action", branch->action);
		JsonPutUuid(&b, "target_id", branch->target ? &ids[branch->target - 1] : NULL);
		JsonPutJson(&b, "params", branch->params ? branch->params : JsonEmptyObject());
		PutCondition(&b, branch->condition, "expression", "path", "operands");
		JsonObjectEnd(&b);
	}
	JsonArrayEnd(&b);
	InsertBranches(call, plan, &b);
}

/* Write the rows of the steps, and of what hangs on them. */
static void
InsertDefinition(Call *call, const PlanRow *plan, const Definition *definition)
{
	pg_uuid_t  *ids = palloc(sizeof(pg_uuid_t) * definition->nsteps);

	for (int i = 0; i < definition->nsteps; i++)
		ids[i] = UuidNew();
	InsertDefinedSteps(call, plan, definition, ids);
	if (!definition->sequential)
		InsertDefinedDependencies(call, plan, definition, ids);
	if (definition->branches != NIL)
		InsertDefinedBranches(call, plan, definition, ids);
}

static Jsonb *
CreatedDetail(const PlanRow *plan, const Definition *definition)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", "created");
	JsonPutText(&b, "to", PlanStatusName[PLAN_PLANNING]);
	JsonPutText(&b, "name", plan->name);
	JsonPutInt(&b, "steps", definition->nsteps);
	if (plan->workflow != NULL)
	{
		JsonPutText(&b, "workflow", plan->workflow);
		JsonPutInt(&b, "version", plan->version);
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Write the rows of a plan. It then counts as locked by this call; a nested one is read again when it is searched. */
PlanRow *
PlanCreate(Call *call, const Definition *definition, const PlanOrigin *origin)
{
	PlanRow    *plan = PlanFromDefinition(call, definition, origin);

	AuditAppend(call, plan, NULL, "plan_modified", CreatedDetail(plan, definition));
	InsertPlan(call, plan, origin->idempotency_key);
	InsertPlanDetail(call, plan, definition, origin);
	InsertDefinition(call, plan, definition);
	if (origin->holder == NULL)
		call->plans = lappend(call->plans, plan);
	return plan;
}

/* ---------- idempotency ---------- */

/* Find the plan that was created with this key; a different request is an error. What is found is read under one snapshot. */
static PlanRow *
PlanOfKey(Call *call, const PlanOrigin *origin)
{
	static KeptQuery find = {
		"SELECT p.id, d.request_digest FROM stepwise.plan AS p"
		" JOIN stepwise.plan_detail AS d ON d.tenant = $1 AND d.plan_id = p.id"
		" WHERE p.tenant = $1 AND p.idempotency_key = $2",
		2, {TEXTOID, TEXTOID}
	};
	pg_uuid_t	id;
	char	   *digest;
	Rows		rows;

	if (origin->idempotency_key == NULL)
		return NULL;
	/* one at a time per key, so that the second finds the first */
	CallLockOfMany(call, "idempotency key", origin->idempotency_key);
	/* a plan that is found is not locked, and may be purged while it is answered */
	ReadBegin(call);
	rows = QueryByName(call, &find, origin->idempotency_key);
	if (rows.count == 0)
	{
		ReadEnd(call);
		return NULL;
	}
	id = RowUuid(&rows, 0, 1);
	digest = RowText(&rows, 0, 2);
	if (digest == NULL || strcmp(digest, origin->request_digest) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_IDEMPOTENCY_CONFLICT),
				 errmsg("idempotency key \"%s\" was used with other content", origin->idempotency_key),
				 errdetail("It belongs to plan \"%s\".", UuidText(&id)),
				 errhint("Use a new key for a new plan, or repeat the first call unchanged.")));
	return PlanMustRead(call, &id);
}

/* ---------- answers ---------- */

static void
PutFirstStep(JsonBuilder *b, const StepRow *step)
{
	JsonObjectStart(b, "firstStep");
	JsonPutUuid(b, "stepId", &step->id);
	JsonPutInt(b, "stepOrder", step->order);
	JsonPutText(b, "name", step->name);
	JsonPutText(b, "stepType", step->type);
	JsonPutText(b, "instructions", TextOf(step->instructions));
	JsonObjectEnd(b);
}

/* A plan has a first step at all times. */
static StepRow *
FirstStep(Call *call, const PlanRow *plan)
{
	StepRow    *step = StepReadByOrder(call, &plan->id, 1);

	if (step == NULL)
		PlanNotFound(&plan->id);
	return step;
}

static Jsonb *
CreatedAnswer(Call *call, const PlanRow *plan, bool existing)
{
	static KeptQuery ids = {
		"SELECT s.id FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	JsonBuilder b = {0};
	Rows		rows = QueryById(call, &ids, &plan->id);

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "planId", &plan->id);
	JsonPutText(&b, "name", plan->name);
	JsonPutText(&b, "goal", plan->goal);
	JsonPutText(&b, "status", PlanStatusName[plan->status]);
	JsonPutText(&b, "planStatus", PlanStatusName[plan->status]);
	if (plan->workflow != NULL)
	{
		JsonPutText(&b, "workflow", plan->workflow);
		JsonPutInt(&b, "version", plan->version);
	}
	JsonPutInt(&b, "stepCount", rows.count);
	JsonArrayStart(&b, "stepIds");
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t	id = RowUuid(&rows, i, 1);

		JsonPutUuid(&b, NULL, &id);
	}
	JsonArrayEnd(&b);
	PutFirstStep(&b, FirstStep(call, plan));
	if (existing)
		JsonPutBool(&b, "existing", true);
	JsonObjectEnd(&b);
	RowsFree(&rows);
	return JsonFinish(&b);
}

/* Link the session's latest started skill execution to the plan that it made. */
static void
LinkSkill(Call *call, const PlanRow *plan)
{
	static KeptQuery link = {
		"UPDATE stepwise.skill_execution SET plan_id = $3 WHERE tenant = $1 AND id = ("
		"SELECT e.id FROM stepwise.skill_execution AS e WHERE e.tenant = $1 AND e.session_id = $2 AND e.status = 'started'"
		" ORDER BY e.tenant DESC, e.session_id DESC, e.id DESC LIMIT 1) AND plan_id IS NULL",
		3, {TEXTOID, TEXTOID, UUIDOID}
	};
	Args		args = {0};

	if (call->session == NULL)
		return;
	ArgTenant(&args, call);
	ArgText(&args, call->session);
	ArgUuid(&args, &plan->id);
	QueryRun(&link, &args);
}

/* ---------- create_plan ---------- */

/* arguments of create_plan */
enum
{
	CP_NAME, CP_GOAL, CP_STEPS, CP_BRANCHING, CP_INPUTS, CP_OUTPUTS, CP_ON_FAILURE, CP_SESSION, CP_RATIONALE, CP_NOTES,
	CP_STALL_AFTER, CP_KEY, CP_SEPARATE_REVIEWER
};

/*
 * Put the arguments together as one definition, so that there is one grammar.
 * The values of a builder take several times the memory of what they make, so
 * they are dropped at once.
 */
static Jsonb *
DefinitionOfArguments(FunctionCallInfo fcinfo)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise definition", ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(scratch);
	JsonBuilder b = {0};
	Jsonb	   *definition;

	JsonObjectStart(&b, NULL);
	if (!PG_ARGISNULL(CP_NAME))
		JsonPutText(&b, "name", ArgumentText(fcinfo, CP_NAME));
	if (!PG_ARGISNULL(CP_STEPS))
		JsonPutJson(&b, "steps", ArgumentJson(fcinfo, CP_STEPS));
	if (!PG_ARGISNULL(CP_BRANCHING))
		JsonPutJson(&b, "branchingConditions", ArgumentJson(fcinfo, CP_BRANCHING));
	if (!PG_ARGISNULL(CP_OUTPUTS))
		JsonPutJson(&b, "outputs", ArgumentJson(fcinfo, CP_OUTPUTS));
	if (!PG_ARGISNULL(CP_ON_FAILURE))
		JsonPutText(&b, "onFailure", ArgumentText(fcinfo, CP_ON_FAILURE));
	if (!PG_ARGISNULL(CP_STALL_AFTER))
		PutInterval(&b, "stallAfter", PG_GETARG_INTERVAL_P(CP_STALL_AFTER));
	if (!PG_ARGISNULL(CP_SEPARATE_REVIEWER))
		JsonPutBool(&b, "separateReviewer", PG_GETARG_BOOL(CP_SEPARATE_REVIEWER));
	if (!PG_ARGISNULL(CP_NOTES))
		JsonPutText(&b, "outputFormattingNotes", ArgumentText(fcinfo, CP_NOTES));
	JsonObjectEnd(&b);
	definition = JsonFinish(&b);
	MemoryContextSwitchTo(outer);
	definition = JsonCopy(definition);
	MemoryContextDelete(scratch);
	return definition;
}

static void
CheckIdempotencyKey(const char *key)
{
	if (key != NULL && *key == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("idempotency_key must not be empty"),
				 errhint("Leave it out, or make one up for this request.")));
	CheckNameLimit(key, "idempotency_key");
}

/* What makes two creating calls the same: all but session and key. Without a key nobody will ask. */
static char *
RequestDigest(const char *key, const Jsonb *definition, const char *goal, const Jsonb *inputs, const char *rationale)
{
	MemoryContext scratch;
	MemoryContext outer;
	JsonBuilder b = {0};
	char	   *digest;

	if (key == NULL)
		return NULL;
	scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise request", ALLOCSET_DEFAULT_SIZES);
	outer = MemoryContextSwitchTo(scratch);
	JsonArrayStart(&b, NULL);
	JsonPutJson(&b, NULL, definition);
	JsonPutText(&b, NULL, goal);
	JsonPutJson(&b, NULL, inputs);
	JsonPutText(&b, NULL, rationale);
	JsonArrayEnd(&b);
	digest = DigestText(JsonFinish(&b));
	MemoryContextSwitchTo(outer);
	digest = pstrdup(digest);
	MemoryContextDelete(scratch);
	return digest;
}

static void
CheckGoal(Faults *faults, const char *goal)
{
	if (goal == NULL || *goal == '\0')
		FaultAdd(faults, ERRCODE_INVALID_DEFINITION, "goal", "Say in a sentence what the plan is to achieve.",
				 "goal is missing");
}

static void
CheckInputsObject(Faults *faults, const Jsonb *inputs)
{
	if (inputs != NULL && !JsonIsObject(inputs))
		FaultAdd(faults, ERRCODE_INVALID_DEFINITION, "inputs", "Write {\"name\": value, ...}.", "inputs must be an object");
}

static Jsonb *
CreatePlan(Call *call, const Jsonb *json, PlanOrigin *origin)
{
	Faults		faults = {0};
	PlanRow    *plan = PlanOfKey(call, origin);
	Definition *definition;

	if (plan != NULL)
		return CreatedAnswer(call, plan, true);
	CheckGoal(&faults, origin->goal);
	CheckInputsObject(&faults, origin->inputs);
	definition = DefinitionAcceptPlan(call, json, JsonIsObject(origin->inputs) ? origin->inputs : JsonEmptyObject(), &faults);
	FaultsRaise(&faults, "definition");
	CheckJsonLimits(origin->inputs, "inputs");
	plan = PlanCreate(call, definition, origin);
	LinkSkill(call, plan);
	return CreatedAnswer(call, plan, false);
}

Datum
stepwise_create_plan(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanOrigin	origin = {0};
	Jsonb	   *definition;

	CallBegin(&call);
	CallInSession(&call, ArgumentText(fcinfo, CP_SESSION));
	definition = DefinitionOfArguments(fcinfo);
	origin.goal = ArgumentText(fcinfo, CP_GOAL);
	origin.inputs = ArgumentJson(fcinfo, CP_INPUTS);
	origin.design_rationale = ArgumentText(fcinfo, CP_RATIONALE);
	origin.idempotency_key = ArgumentText(fcinfo, CP_KEY);
	CheckIdempotencyKey(origin.idempotency_key);
	CheckTextLimit(origin.goal, "goal");
	CheckTextLimit(origin.design_rationale, "design_rationale");
	origin.request_digest = RequestDigest(origin.idempotency_key, definition, origin.goal, origin.inputs, origin.design_rationale);
	return CallEnd(&call, CreatePlan(&call, definition, &origin));
}

/* ---------- start_workflow ---------- */

/* Accept a stored workflow again, with values for its inputs. */
Definition *
WorkflowOpen(Call *call, PlanOrigin *origin, Faults *faults)
{
	Faults		stored = {0};
	Jsonb	   *json = WorkflowPin(call, origin->workflow, &origin->version);
	Definition *definition = DefinitionAccept(call, json, &stored);

	/* it was good when it was stored; a setting may have changed since */
	if (origin->holder == NULL)
		FaultsRaise(&stored, "definition");
	else
		*faults = stored;
	CheckInputsObject(faults, origin->inputs);
	if (!FaultsAny(faults))
		origin->inputs = InputsAccept(definition->inputs, origin->inputs ? origin->inputs : JsonEmptyObject(), faults);
	origin->goal = definition->description;
	return definition;
}

static Jsonb *
StartWorkflow(Call *call, PlanOrigin *origin)
{
	Faults		faults = {0};
	PlanRow    *plan = PlanOfKey(call, origin);
	Definition *definition;

	if (plan != NULL)
		return CreatedAnswer(call, plan, true);
	definition = WorkflowOpen(call, origin, &faults);
	FaultsRaise(&faults, "inputs");
	CheckJsonLimits(origin->inputs, "inputs");
	plan = PlanCreate(call, definition, origin);
	LinkSkill(call, plan);
	return CreatedAnswer(call, plan, false);
}

Datum
stepwise_start_workflow(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanOrigin	origin = {0};
	JsonBuilder b = {0};

	CallBegin(&call);
	CallInSession(&call, ArgumentText(fcinfo, 3));
	origin.workflow = ArgumentText(fcinfo, 0);
	origin.inputs = ArgumentJson(fcinfo, 1);
	/* 0 would be the newest; who names a version wants that one */
	origin.version = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT32(2) > 0 ? PG_GETARG_INT32(2) : -1;
	origin.idempotency_key = ArgumentText(fcinfo, 4);
	CheckIdempotencyKey(origin.idempotency_key);
	if (origin.workflow == NULL)
		origin.workflow = "";
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "workflow", origin.workflow);
	JsonPutInt(&b, "version", origin.version);
	JsonObjectEnd(&b);
	origin.request_digest = RequestDigest(origin.idempotency_key, JsonFinish(&b), NULL, origin.inputs, NULL);
	return CallEnd(&call, StartWorkflow(&call, &origin));
}

/* ---------- steps that are added to a plan ---------- */

/* a step that the plan has, and whether it still holds others up */
typedef struct PresentStep
{
	pg_uuid_t	id;
	StepStatus	status;
	Outcome		outcome;
} PresentStep;

static KnownStep *
ReadKnownSteps(Call *call, const PlanRow *plan, PresentStep **present, int *count)
{
	static KeptQuery read = {
		"SELECT s.name, s.binding, s.workflow, s.wave, s.id, s.status::text, s.outcome::text FROM stepwise.step AS s"
		" WHERE s.tenant = $1 AND s.plan_id = $2 ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	KnownStep  *known;
	Rows		rows = QueryById(call, &read, &plan->id);

	*count = (int) rows.count;
	known = palloc0(sizeof(KnownStep) * Max(rows.count, 1));
	*present = palloc0(sizeof(PresentStep) * Max(rows.count, 1));
	for (uint64 i = 0; i < rows.count; i++)
	{
		known[i].name = RowText(&rows, i, 1);
		known[i].binding = RowText(&rows, i, 2);
		known[i].workflow = RowText(&rows, i, 3);
		known[i].wave = RowInt(&rows, i, 4);
		(*present)[i].id = RowUuid(&rows, i, 5);
		(*present)[i].status = NameIndex(RowText(&rows, i, 6), StepStatusName, STEP_STATUSES);
		(*present)[i].outcome = NameIndex(RowText(&rows, i, 7), OutcomeName, OUTCOMES);
	}
	RowsFree(&rows);
	return known;
}

/* Make room, or close a hole: what stands behind an order moves by so much. */
void
ShiftSteps(Call *call, const PlanRow *plan, int after, int by)
{
	static KeptQuery shift = {
		"UPDATE stepwise.step SET step_order = step_order + $4, wave = CASE WHEN $5 THEN step_order + $4 - 1 ELSE wave END"
		" WHERE tenant = $1 AND plan_id = $2 AND step_order > $3",
		5, {TEXTOID, UUIDOID, INT4OID, INT4OID, BOOLOID}
	};
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, &plan->id);
	ArgInt(&args, after);
	ArgInt(&args, by);
	ArgBool(&args, plan->sequential);
	QueryRun(&shift, &args);
}

/* the steps that are being added, and those that are there */
typedef struct Addition
{
	PlanRow    *plan;
	int			after;
	const Definition *definition;
	PresentStep *present;
	int			npresent;
	pg_uuid_t  *ids;			/* of the new ones */
	char	  **skip;			/* of each new one: why it cannot run any more, or NULL */
} Addition;

static const pg_uuid_t *
AdditionStepId(const Addition *a, int number)
{
	return number <= a->npresent ? &a->present[number - 1].id : &a->ids[number - a->npresent - 1];
}

/* Has a step ended without having told its dependents yet? Then a new one will be told too. */
static bool
IsSettling(const PlanRow *plan, const pg_uuid_t *step_id)
{
	for (int i = plan->drained; i < list_length(plan->settled); i++)
		if (UuidEqual(&((StepRow *) list_nth(plan->settled, i))->id, step_id))
			return true;
	return false;
}

/* Count what a new step has to wait for; a parent that has settled does not count. */
static int
AdditionBlockers(Addition *a, int i, const KnownStep *known)
{
	int			blockers = 0;
	ListCell   *cell;

	foreach(cell, a->definition->steps[i].depends)
	{
		DependencyDefinition *dependency = lfirst(cell);
		DependentVerdict verdict = DEPENDENT_WAITS;

		if (dependency->parent <= a->npresent && !IsSettling(a->plan, &a->present[dependency->parent - 1].id))
			verdict = DependentVerdictOf(a->plan, a->present[dependency->parent - 1].status,
										 a->present[dependency->parent - 1].outcome, dependency->required);
		if (verdict == DEPENDENT_WAITS)
			blockers++;
		else if (verdict == DEPENDENT_SKIPPED)
		{
			if (a->skip[i] != NULL)
				pfree(a->skip[i]);
			a->skip[i] = psprintf("%s step \"%s\" did not succeed", dependency->required ? "required" : "optional",
								  known[dependency->parent - 1].name);
		}
	}
	return blockers;
}

static void
InsertAddition(Call *call, Addition *a, const KnownStep *known)
{
	JsonBuilder steps = {0};
	Links	   *links;

	JsonArrayStart(&steps, NULL);
	for (int i = 0; i < a->definition->nsteps; i++)
	{
		a->ids[i] = UuidNew();
		PutStep(&steps, &a->definition->steps[i], &a->ids[i], a->after + i + 1, a->plan->sequential, false, AdditionBlockers(a, i, known));
	}
	JsonArrayEnd(&steps);
	InsertSteps(call, a->plan, &steps);
	links = LinksBegin(call, a->plan);
	for (int i = 0; i < a->definition->nsteps; i++)
	{
		ListCell   *cell;

		foreach(cell, a->definition->steps[i].depends)
		{
			DependencyDefinition *dependency = lfirst(cell);

			LinksAdd(links, &a->ids[i], AdditionStepId(a, dependency->parent), dependency->required);
		}
	}
	LinksEnd(links);
}

static void
CheckStepCount(Faults *faults, const PlanRow *plan, int present, int added)
{
	if (present + added > MaxSteps)
		FaultAdd(faults, ERRCODE_VALUE_TOO_LARGE, "steps", NULL,
				 "plan \"%s\" would have %d steps; stepwise.max_steps is %d", plan->name, present + added, MaxSteps);
}

/* A sequence stays one: with one dependency all other steps would be ready at once. */
static void
CheckStillSequential(Faults *faults, const PlanRow *plan, const Definition *definition)
{
	if (plan->sequential && !definition->sequential)
		FaultAdd(faults, ERRCODE_INVALID_DEFINITION, "steps", "Leave dependsOn out: the steps go in order.",
				 "the steps of plan \"%s\" go in order, so added ones cannot have dependsOn", plan->name);
}

/* The inputs that steps may refer to: those given, and those that the workflow declares. */
const Jsonb *
PlanInputNames(Call *call, const PlanRow *plan)
{
	const Jsonb *given = JsonOf(plan->inputs);
	Jsonb	   *workflow = plan->workflow ? WorkflowDefinition(call, plan->workflow, plan->version) : NULL;

	return workflow ? JsonMerge(JsonGetJson(workflow, "inputs"), given) : given;
}

/* The workflows of a plan and of those in which it is nested, the innermost last. */
static List *
Callers(Call *call, PlanRow *plan)
{
	List	   *names = NIL;

	while (plan != NULL)
	{
		if (plan->workflow != NULL)
			names = lcons(plan->workflow, names);
		plan = plan->nested ? PlanInTree(call, plan->root, &StepMustRead(call, &plan->parent_step_id)->plan_id) : NULL;
	}
	return names;
}

/* Add steps after an order (0: before all, -1: at the end); faults instead of errors. The ids come back. */
pg_uuid_t *
PlanAddSteps(Call *call, PlanRow *plan, const Jsonb *steps, int after, Faults *faults, int *count)
{
	Addition	a = {.plan = plan};
	KnownStep  *known = ReadKnownSteps(call, plan, &a.present, &a.npresent);

	a.after = after < 0 ? a.npresent : after;
	a.definition = DefinitionAcceptSteps(call, steps, known, a.npresent, a.after, plan->sequential,
										 PlanInputNames(call, plan), Callers(call, plan), faults);
	CheckStepCount(faults, plan, a.npresent, a.definition->nsteps);
	CheckStillSequential(faults, plan, a.definition);
	if (FaultsAny(faults))
		return NULL;
	a.ids = palloc(sizeof(pg_uuid_t) * a.definition->nsteps);
	a.skip = palloc0(sizeof(char *) * a.definition->nsteps);
	ShiftSteps(call, plan, a.after, a.definition->nsteps);
	InsertAddition(call, &a, known);
	plan->counts[STEP_PENDING] += a.definition->nsteps;
	plan->next_order = Min(plan->next_order, a.after + 1);
	plan->workable = true;
	for (int i = 0; i < a.definition->nsteps; i++)
		if (a.skip[i] != NULL)
		{
			StepRow    *step = StepMustRead(call, &a.ids[i]);

			step->message = a.skip[i];
			StepMove(call, plan, step, STEP_SKIPPED, NULL);
		}
	*count = a.definition->nsteps;
	return a.ids;
}

/* ---------- a checkpoint step that a branch adds ---------- */

static char *
FreeStepName(Call *call, const PlanRow *plan, const char *base)
{
	for (int i = 1;; i++)
	{
		char	   *name = i == 1 ? psprintf("%.50s_review", base) : psprintf("%.50s_review_%d", base, i);

		if (StepReadByName(call, &plan->id, name) == NULL)
			return name;
	}
}

/* What waits for the reviewed step waits for the review too, but not for its approval: a skipped review lets it go on. */
static void
DependOnReview(Call *call, const PlanRow *plan, const StepRow *reviewed, const StepRow *review)
{
	static KeptQuery depend = {
		"WITH child AS ("
		" INSERT INTO stepwise.dependency (tenant, plan_id, step_id, depends_on, required)"
		" SELECT $1, $2, d.step_id, $4, false FROM stepwise.dependency AS d WHERE d.tenant = $1 AND d.depends_on = $3"
		" RETURNING step_id)"
		" UPDATE stepwise.step AS s SET blockers = s.blockers + 1, ready = NULL FROM child"
		" WHERE s.tenant = $1 AND s.id = child.step_id",
		4, {TEXTOID, UUIDOID, UUIDOID, UUIDOID}
	};
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, &plan->id);
	ArgUuid(&args, &reviewed->id);
	ArgUuid(&args, &review->id);
	QueryRun(&depend, &args);
}

/*
 * Move on the waves of what depends on a step that was put in between. None
 * moves by more than one, so each step is met once: those that moved, then those
 * that depend on them, and so on.
 */
static void
RaiseWaves(Call *call, const pg_uuid_t *step_id)
{
	static KeptQuery raise = {
		"UPDATE stepwise.step AS s SET wave = x.wave FROM ("
		" SELECT d.step_id, pg_catalog.max(p.wave) + 1 AS wave FROM pg_catalog.unnest($2) AS moved (id)"
		" JOIN stepwise.step AS p ON p.tenant = $1 AND p.id = moved.id"
		" JOIN stepwise.dependency AS d ON d.tenant = $1 AND d.depends_on = p.id GROUP BY d.step_id) AS x"
		" WHERE s.tenant = $1 AND s.id = x.step_id AND s.wave < x.wave RETURNING s.id",
		2, {TEXTOID, UUIDARRAYOID}
	};
	Datum	   *moved = palloc(sizeof(Datum));
	int			count = 1;

	moved[0] = UUIDPGetDatum(step_id);
	while (count > 0)
	{
		Args		args = {0};
		Rows		rows;

		ArgTenant(&args, call);
		ArgDatum(&args, PointerGetDatum(construct_array(moved, count, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR)));
		rows = QueryRun(&raise, &args);
		count = (int) rows.count;
		moved = palloc(sizeof(Datum) * Max(count, 1));
		for (int i = 0; i < count; i++)
		{
			pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

			*id = RowUuid(&rows, i, 1);
			moved[i] = UUIDPGetDatum(id);
		}
		RowsFree(&rows);
		CHECK_FOR_INTERRUPTS();
	}
}

StepRow *
PlanAddCheckpointStep(Call *call, PlanRow *plan, const StepRow *after)
{
	StepDefinition definition = {0};
	JsonBuilder b = {0};
	pg_uuid_t	id = UuidNew();
	StepRow    *step;

	definition.name = FreeStepName(call, plan, after->name);
	definition.type = "checkpoint";
	definition.wave = after->wave + 1;
	definition.retryable = -1;
	ShiftSteps(call, plan, after->order, 1);
	JsonArrayStart(&b, NULL);
	PutStep(&b, &definition, &id, after->order + 1, plan->sequential, false, 0);
	JsonArrayEnd(&b);
	InsertSteps(call, plan, &b);
	plan->counts[STEP_PENDING]++;
	plan->next_order = Min(plan->next_order, after->order + 1);
	step = StepMustRead(call, &id);
	if (!plan->sequential)
	{
		DependOnReview(call, plan, after, step);
		RaiseWaves(call, &id);
	}
	return step;
}
