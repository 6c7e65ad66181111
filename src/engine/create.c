/*
 * create.c
 *	  insert the rows of a new plan
 *
 * The definition must have been accepted (define/definition.c).
 *
 * Locks: other transactions do not see a new plan before it is committed, so it
 * needs no lock. For a nested plan, the caller holds the locks of the root and
 * of the plan of the parent step. Calls with the same idempotency key must wait
 * for each other; the caller takes that lock (api/create_plan.c).
 */
#include "engine/engine.h"

#include "miscadmin.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

/* Insert an array of branching conditions. */
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

/* Insert the row of a plan. */
static void
InsertPlan(Call *call, const PlanRow *plan, const char *idempotency_key)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.plan (tenant, id, root_id, parent_step_id, on_failure, sequential, separate_reviewer, strict_order,"
		" workable, depth, pending, audit_entries, created_at, updated_at, stall_after, audit_head, session_id, name,"
		" goal, workflow, version, idempotency_key, inputs, parent_names)"
		" VALUES ($1, $2, $3, $4, $5::stepwise.on_failure, $6, $7, $8, $9, $10, $11, $12, $13, $13, $14, $15, $16, $17, $18,"
		" $19, $20, $21, $22, $23)"

		/*
		 * The caller has found no plan with this key. If there is one all the same, it is newer than the snapshot of a
		 * REPEATABLE READ or SERIALIZABLE transaction. ON CONFLICT then raises a serialization failure.
		 */
		" ON CONFLICT (tenant, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING",
		23, {TEXTOID, UUIDOID, UUIDOID, UUIDOID, TEXTOID, BOOLOID, BOOLOID, BOOLOID, BOOLOID, INT4OID, INT4OID, INT4OID,
		TIMESTAMPTZOID, INTERVALOID, BYTEAOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTOID, JSONBOID, JSONBOID}
	};
	Params		params = {0};

	ParamKey(&params, call, &plan->id);
	ParamUuid(&params, &plan->root_id);
	ParamUuid(&params, plan->nested ? &plan->parent_step_id : NULL);
	ParamText(&params, OnFailureName[plan->on_failure]);
	ParamBool(&params, plan->sequential);
	ParamBool(&params, plan->separate_reviewer);
	ParamBool(&params, plan->strict_order);
	if (plan->nested)
		ParamBool(&params, true);
	else
		ParamNull(&params);
	ParamInt(&params, plan->depth);
	ParamInt(&params, plan->counts[STEP_PENDING]);
	ParamInt(&params, plan->audit_entries);
	ParamTime(&params, plan->created_at);
	if (plan->stall_after)
		ParamDatum(&params, IntervalPGetDatum(plan->stall_after));
	else
		ParamNull(&params);
	ParamDatum(&params, PointerGetDatum(cstring_to_text_with_len((const char *) plan->audit_head, 32)));
	ParamText(&params, plan->session_id);
	ParamText(&params, plan->name);
	ParamText(&params, plan->goal);
	ParamText(&params, plan->workflow);
	if (plan->workflow)
		ParamInt(&params, plan->version);
	else
		ParamNull(&params);
	ParamText(&params, idempotency_key);
	ParamVarlena(&params, plan->inputs);
	ParamVarlena(&params, plan->parent_names);
	QueryRun(&insert, &params);
}

/* Insert the columns of a plan that are seldom read. */
static void
InsertPlanDetail(Call *call, const PlanRow *plan, const Definition *definition, const PlanOrigin *origin)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.plan_detail (tenant, plan_id, outputs, description, design_rationale,"
		" output_formatting_notes, request_digest)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7)",
		7, {TEXTOID, UUIDOID, JSONBOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
	};
	Params		params = {0};

	ParamKey(&params, call, &plan->id);
	ParamDatum(&params, JsonbPGetDatum(definition->outputs ? definition->outputs : JsonEmptyObject()));
	ParamText(&params, definition->description);
	ParamText(&params, origin->design_rationale);
	ParamText(&params, definition->output_formatting_notes);
	ParamText(&params, origin->request_digest);
	QueryRun(&insert, &params);
}

/*
 * Nest a plan in its parent step. If the plan around it asks for a separate
 * reviewer, so does the nested plan. Without a stall_after of its own, it has
 * that of the parent step or of the plan around it.
 */
static void
PlanNest(PlanRow *plan, const PlanRow *parent, const StepRow *parent_step)
{
	plan->nested = true;
	plan->root = parent->root;
	plan->root_id = parent->root_id;
	plan->parent_step_id = parent_step->id;
	plan->depth = parent->depth + 1;
	plan->parent_names = ParentNamesBelow(parent, parent_step);
	plan->separate_reviewer = plan->separate_reviewer || parent->separate_reviewer;
	if (plan->stall_after == NULL)
		plan->stall_after = parent_step->stall_after ? parent_step->stall_after : parent->stall_after;
}

/* Make the row of a new plan in memory. */
static PlanRow *
PlanFromDefinition(Call *call, const Definition *definition, const PlanOrigin *origin)
{
	PlanRow    *plan = palloc0(sizeof(PlanRow));

	plan->id = IdNew(call);
	plan->root = plan;
	plan->root_id = plan->id;
	plan->status = PLAN_PLANNING;
	plan->outcome = OUTCOME_NA;
	plan->on_failure = definition->on_failure;
	plan->sequential = definition->sequential;
	plan->separate_reviewer = definition->separate_reviewer;
	plan->strict_order = definition->strict_order;
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
	if (origin->parent_step != NULL)
		PlanNest(plan, origin->parent, origin->parent_step);
	return plan;
}

/* Insert the steps of a definition. */
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

/* Insert the dependencies of a definition. */
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

			LinksAdd(links, &ids[i], &ids[dependency->parent - 1], dependency->need);
		}
	}
	LinksEnd(links);
}

/* Insert the branching conditions of a definition. */
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

/* Insert the steps, dependencies and branching conditions of a definition. */
static void
InsertDefinition(Call *call, const PlanRow *plan, const Definition *definition)
{
	pg_uuid_t  *ids = palloc(sizeof(pg_uuid_t) * definition->nsteps);

	for (int i = 0; i < definition->nsteps; i++)
		ids[i] = IdNew(call);
	InsertDefinedSteps(call, plan, definition, ids);
	if (!definition->sequential)
		InsertDefinedDependencies(call, plan, definition, ids);
	if (definition->branches != NIL)
		InsertDefinedBranches(call, plan, definition, ids);
}

/* Build the detail of the first audit entry of a plan. */
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

/*
 * Insert a new plan with its steps. The call then treats a root plan as locked.
 * A nested plan is read again when the search comes to it.
 */
PlanRow *
PlanCreate(Call *call, const Definition *definition, const PlanOrigin *origin)
{
	PlanRow    *plan = PlanFromDefinition(call, definition, origin);

	AuditAppend(call, plan, NULL, "plan_modified", CreatedDetail(plan, definition));
	InsertPlan(call, plan, origin->idempotency_key);
	InsertPlanDetail(call, plan, definition, origin);
	InsertDefinition(call, plan, definition);
	plan->touched = false;
	if (origin->parent_step == NULL)
		PlanKeep(call, plan, NULL);
	return plan;
}

/* Report inputs that are not an object. */
void
CheckInputsObject(Faults *faults, const Jsonb *inputs)
{
	if (inputs != NULL && !JsonIsObject(inputs))
		FaultAdd(faults, ERRCODE_INVALID_DEFINITION, "inputs", "Write {\"name\": value, ...}.", "inputs must be an object");
}

/*
 * Accept a stored workflow again, with values for its inputs. Faults of the
 * inputs are added to "faults". Faults of the stored definition raise an error
 * for a root plan; for a nested plan they are returned in "faults" too.
 */
Definition *
WorkflowOpen(Call *call, PlanOrigin *origin, Faults *faults)
{
	Faults		stored = {0};
	Jsonb	   *json = WorkflowPin(call, origin->workflow, &origin->version);
	Definition *definition = DefinitionAccept(call, json, &stored, NULL);

	/* the definition was accepted when it was stored, but a setting may have changed since */
	if (origin->parent_step == NULL)
		FaultsRaise(&stored, "definition");
	else
		*faults = stored;
	CheckInputsObject(faults, origin->inputs);
	if (!FaultsAny(faults))
		origin->inputs = InputsAccept(definition->inputs, origin->inputs ? origin->inputs : JsonEmptyObject(), faults);
	if (origin->goal == NULL)
		origin->goal = definition->description;
	return definition;
}
