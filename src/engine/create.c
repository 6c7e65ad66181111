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

/* Insert the columns of a plan that are seldom used, if the definition or the call sets some of them. */
static void
InsertDetail(Call *call, const PlanRow *plan, const Definition *definition, const PlanOrigin *origin)
{
	PlanDetail	detail = {
		.outputs = definition->outputs && JB_ROOT_COUNT(definition->outputs) > 0 ? definition->outputs : NULL,
		.output_formatting_notes = definition->output_formatting_notes,
		.description = definition->description,
		.design_rationale = origin->design_rationale,
		.request_digest = origin->request_digest
	};

	DetailInsert(call, plan, &detail);
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

/* List the first steps of a plan with dependencies that are ready. StepsAdd marks the others. */
static void
ListReady(PlanRow *plan, const Definition *definition)
{
	bool		room = !plan->sequential;

	for (int i = 0; room && i < definition->nsteps; i++)
		if (definition->steps[i].depends == NIL)
			room = ReadyListAdd(plan, i + 1);
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
	ListReady(plan, definition);
	if (origin->parent_step != NULL)
		PlanNest(plan, origin->parent, origin->parent_step);
	return plan;
}

/* Count for each step of a definition, by its order, the steps that depend on it. */
static const int *
CountDependents(const Definition *definition)
{
	int		   *counts = palloc0(sizeof(int) * (definition->nsteps + 1));
	ListCell   *cell;

	for (int i = 0; i < definition->nsteps; i++)
		foreach(cell, definition->steps[i].depends)
			counts[((DependencyDefinition *) lfirst(cell))->parent]++;
	return counts;
}

/* Insert the steps of a definition. */
static void
InsertSteps(Call *call, const PlanRow *plan, const Definition *definition, const pg_uuid_t *ids)
{
	bool	   *has_branches = palloc0(sizeof(bool) * (definition->nsteps + 1));
	const int  *dependents = CountDependents(definition);
	Batch	   *batch = StepsBegin(call, plan);
	ListCell   *cell;

	foreach(cell, definition->branches)
		has_branches[((BranchDefinition *) lfirst(cell))->after] = true;
	for (int i = 0; i < definition->nsteps; i++)
	{
		const StepDefinition *step = &definition->steps[i];
		NewStep		place = {.id = &ids[i], .order = i + 1, .branches = has_branches[i + 1], .blockers = list_length(step->depends),
		.dependents = dependents[i + 1]};

		StepsAdd(batch, plan, step, &place);
	}
	BatchEnd(batch);
}

/* Insert the dependencies of a definition. */
static void
InsertDependencies(Call *call, const PlanRow *plan, const Definition *definition, const pg_uuid_t *ids)
{
	Batch	   *batch = LinksBegin(call, plan);

	for (int i = 0; i < definition->nsteps; i++)
	{
		ListCell   *cell;

		foreach(cell, definition->steps[i].depends)
		{
			DependencyDefinition *dependency = lfirst(cell);

			LinksAdd(batch, &ids[i], &ids[dependency->parent - 1], dependency->need);
		}
	}
	BatchEnd(batch);
}

/* Make an array of the branching conditions of a definition. */
static Jsonb *
BranchesJson(const Definition *definition, const pg_uuid_t *ids)
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
	return JsonFinish(&b);
}

/* Insert the branching conditions of a definition. Few plans have some, so this is a statement. */
static void
InsertBranches(Call *call, const PlanRow *plan, const Definition *definition, const pg_uuid_t *ids)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.branching_condition (tenant, plan_id, step_id, position, action, target_id, params,"
		" expression, path, operands)"
		" SELECT $1, $2, x.step_id, x.position, x.action, x.target_id, x.params, x.expression, x.path, x.operands"
		" FROM pg_catalog.jsonb_to_recordset($3) AS x (step_id uuid, position int, action text, target_id uuid,"
		" params jsonb, expression text, path jsonpath, operands text[])",
		3, {TEXTOID, UUIDOID, JSONBOID}
	};
	Params		params = {0};

	ParamKey(&params, call, &plan->id);
	ParamVarlena(&params, BranchesJson(definition, ids));
	QueryRun(&insert, &params);
}

/* Insert the steps, dependencies and branching conditions of a definition. Returns the ids of the steps. */
static const pg_uuid_t *
InsertDefinition(Call *call, const PlanRow *plan, const Definition *definition)
{
	pg_uuid_t  *ids = palloc(sizeof(pg_uuid_t) * definition->nsteps);

	for (int i = 0; i < definition->nsteps; i++)
		ids[i] = IdNew(call);
	InsertSteps(call, plan, definition, ids);
	if (!definition->sequential)
		InsertDependencies(call, plan, definition, ids);
	if (definition->branches != NIL)
		InsertBranches(call, plan, definition, ids);
	return ids;
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
 * Insert a new plan with its steps, and return the ids of the steps too, unless
 * that is NULL. The call then treats a root plan as locked. A nested plan is
 * read again when the search comes to it.
 */
PlanRow *
PlanCreate(Call *call, const Definition *definition, const PlanOrigin *origin, const pg_uuid_t **step_ids)
{
	PlanRow    *plan = PlanFromDefinition(call, definition, origin);
	const pg_uuid_t *ids;

	AuditAppend(call, plan, NULL, "plan_modified", CreatedDetail(plan, definition));
	/* the row of the plan is not touched again, and a nested plan is not kept */
	LogWrite(call, plan->log);
	LogFree(plan->log);
	plan->log = NULL;
	PlanInsert(call, plan, origin->idempotency_key);
	InsertDetail(call, plan, definition, origin);
	ids = InsertDefinition(call, plan, definition);
	if (step_ids != NULL)
		*step_ids = ids;
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
