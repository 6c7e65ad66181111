/*
 * drop_workflow.c
 *	  drop_workflow: delete versions of a workflow that nothing needs
 *
 * The versions are locked first, so that no plan starts from them: a plan pins
 * its version (WorkflowPin). Then everything that may still run them is looked at
 * under one snapshot: a branch may just add a step to a plan, and under two
 * snapshots neither the branch nor the step might be seen.
 *
 * Memory: what a plan or a definition takes is freed before the next one.
 */
#include "api/api.h"

#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#define PLANS_AT_ONCE	100		/* that are read, and then looked at */

/* what is to be dropped */
typedef struct Doomed
{
	Call	   *call;
	const char *name;
	int			version;		/* 0: all versions */
	bool		last;			/* no other version remains for those that take the newest */
	/* how it is found in definitions, and in parameters of branches */
	Datum		steps_path;
	Datum		branches_path;
	Jsonb	   *vars;
	MemoryContext scratch;
} Doomed;

/* ---------- definitions that run it ---------- */

/* a filter for steps that run the workflow */
#define CALLS_IT \
	" ? (@.workflow == $name && ($all == true || @.version == $version || ($last == true && !exists (@.version))))"

/* Build the variables of the filter. */
static Jsonb *
FilterVariables(const Doomed *doomed)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", doomed->name);
	JsonPutPositive(&b, "version", doomed->version);
	JsonPutBool(&b, "all", doomed->version == 0);
	JsonPutBool(&b, "last", doomed->last);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static Datum
PathRead(const char *path)
{
	return DirectFunctionCall1(jsonpath_in, CStringGetDatum(path));
}

/* Say how it is found. */
static void
FilterMake(Doomed *doomed)
{
	doomed->steps_path = PathRead("$.steps[*]" CALLS_IT);
	doomed->branches_path = PathRead("$.branchingConditions[*].actionParams.steps[*]" CALLS_IT);
	doomed->vars = FilterVariables(doomed);
}

static bool
PathExists(const Doomed *doomed, Datum json, Datum path)
{
	return DatumGetBool(DirectFunctionCall4(jsonb_path_exists, json, path, JsonbPGetDatum(doomed->vars), BoolGetDatum(false)));
}

/* Check whether a row of stepwise.workflow is of another workflow, and runs it. */
static bool
DefinitionRunsIt(TupleTableSlot *slot, const void *arg)
{
	const Doomed *doomed = arg;
	MemoryContext outer = MemoryContextSwitchTo(doomed->scratch);
	const char *name = ColumnText(slot, WORKFLOW_COL_NAME);
	Datum		definition = ColumnDatum(slot, WORKFLOW_COL_DEFINITION);
	bool		runs = name != NULL && strcmp(name, doomed->name) != 0 && !ColumnIsNull(slot, WORKFLOW_COL_DEFINITION) &&
			   (PathExists(doomed, definition, doomed->steps_path) || PathExists(doomed, definition, doomed->branches_path));

	MemoryContextSwitchTo(outer);
	MemoryContextReset(doomed->scratch);
	return runs;
}

/* another workflow that runs it */
typedef struct Caller
{
	char	   *name;
	int			version;
} Caller;

static void *
CallerMake(TupleTableSlot *slot)
{
	Caller	   *caller = palloc(sizeof(Caller));

	caller->name = ColumnText(slot, WORKFLOW_COL_NAME);
	caller->version = ColumnInt(slot, WORKFLOW_COL_VERSION);
	return caller;
}

/* Find the first workflow with a step that runs it, or with a branch that may add such a step; NULL: none. */
static Caller *
FindCaller(const Doomed *doomed)
{
	Key			key = {.call = doomed->call};

	KeyText(&key, doomed->call->tenant_datum);
	return TableRead("workflow", "workflow_pkey", &key, DefinitionRunsIt, doomed, CallerMake);
}

/* ---------- plans that run it ---------- */

/* columns of stepwise.branching_condition, in the order of its definition */
enum
{
	BRANCH_COL_STEP_ID, BRANCH_COL_PLAN_ID, BRANCH_COL_POSITION, BRANCH_COL_TARGET_ID, BRANCH_COL_TENANT, BRANCH_COL_ACTION,
	BRANCH_COL_PARAMS
};

/* Check whether a row of stepwise.branching_condition adds a step that runs it. */
static bool
BranchAddsIt(TupleTableSlot *slot, const void *arg)
{
	const Doomed *doomed = arg;
	const char *action = ColumnText(slot, BRANCH_COL_ACTION);

	return action != NULL && strcmp(action, "add_steps") == 0 && !ColumnIsNull(slot, BRANCH_COL_PARAMS) &&
		PathExists(doomed, ColumnDatum(slot, BRANCH_COL_PARAMS), doomed->steps_path);
}

/* a plan or a step, and the workflow that it runs */
typedef struct Runner
{
	pg_uuid_t	id;
	pg_uuid_t	root_id;
	char	   *workflow;		/* NULL: none */
	bool		newest;			/* it takes the newest version */
	int			version;
	bool		branches;		/* a step that has branches */
} Runner;

/* Make a Runner from a row of stepwise.plan. */
static void *
PlanRunnerMake(TupleTableSlot *slot)
{
	Runner	   *plan = palloc0(sizeof(Runner));

	plan->id = ColumnUuid(slot, PLAN_COL_ID);
	plan->root_id = ColumnUuid(slot, PLAN_COL_ROOT_ID);
	plan->workflow = ColumnText(slot, PLAN_COL_WORKFLOW);
	plan->version = ColumnInt(slot, PLAN_COL_VERSION);
	return plan;
}

/* Make a Runner from a row of stepwise.step. */
static void *
StepRunnerMake(TupleTableSlot *slot)
{
	Runner	   *step = palloc0(sizeof(Runner));

	step->id = ColumnUuid(slot, STEP_COL_ID);
	step->workflow = ColumnText(slot, STEP_COL_WORKFLOW);
	step->newest = ColumnIsNull(slot, STEP_COL_VERSION);
	step->version = ColumnInt(slot, STEP_COL_VERSION);
	step->branches = ColumnBool(slot, STEP_COL_BRANCHES);
	return step;
}

/* Check whether a step may still run a workflow, or add a step that does. */
static bool
StepMayRun(TupleTableSlot *slot, const void *arg)
{
	Oid			value = DatumGetObjectId(ColumnDatum(slot, STEP_COL_STATUS));
	StepStatus	status = OidIsValid(value) ? EnumIndex(value, StepStatusName, STEP_STATUSES) : STEP_SKIPPED;

	return status != STEP_COMPLETED && status != STEP_SKIPPED &&
		(ColumnBool(slot, STEP_COL_BRANCHES) || !ColumnIsNull(slot, STEP_COL_WORKFLOW));
}

static bool
RunsIt(const Doomed *doomed, const Runner *runner)
{
	if (runner->workflow == NULL || strcmp(runner->workflow, doomed->name) != 0)
		return false;
	return doomed->version == 0 || (runner->newest ? doomed->last : runner->version == doomed->version);
}

/* Check whether a plan was made from it, has a step that may still run it, or has a branch that may still add such a step. */
static bool
PlanNeedsIt(const Doomed *doomed, const Runner *plan)
{
	Key			key = IdKey(doomed->call, &plan->id);
	ListCell   *cell;

	if (RunsIt(doomed, plan))
		return true;
	foreach(cell, TableReadSome("step", "step_order_unique", &key, StepMayRun, NULL, StepRunnerMake, INT_MAX))
	{
		const Runner *step = lfirst(cell);
		Key			branches = IdKey(doomed->call, &step->id);

		if (RunsIt(doomed, step) ||
			(step->branches && TableRead("branching_condition", "branching_condition_pkey", &branches, BranchAddsIt, doomed, TupleTaken)))
			return true;
	}
	return false;
}

/* Find a plan of a list that needs it, and whose root has not ended; NULL: none. */
static const Runner *
FindAmong(const Doomed *doomed, const List *plans)
{
	ListCell   *cell;

	foreach(cell, plans)
	{
		const Runner *plan = lfirst(cell);
		MemoryContext outer = TurnBegin();
		const PlanRow *root = PlanNeedsIt(doomed, plan) ? PlanRead(doomed->call, &plan->root_id) : NULL;
		bool		open = root != NULL && !TimeIsSet(root->completed_at);

		TurnEnd(outer, false);
		if (open)
			return plan;
	}
	return NULL;
}

/* Find a plan that has not ended and needs it, the newest first. Returns false if there is none. */
static bool
FindPlan(const Doomed *doomed, pg_uuid_t *id)
{
	bool		found;
	bool		more;

	memset(id, 0xff, sizeof(*id));
	do
	{
		Key			key = {.call = doomed->call, .backward = true};
		MemoryContext outer = TurnBegin();
		const Runner *plan;
		List	   *plans;

		KeyText(&key, doomed->call->tenant_datum);
		KeyUuidBelow(&key, id);
		plans = TableReadSome("plan", "plan_open", &key, NULL, NULL, PlanRunnerMake, PLANS_AT_ONCE);
		plan = FindAmong(doomed, plans);
		found = plan != NULL;
		more = list_length(plans) == PLANS_AT_ONCE;
		if (!found && more)
			plan = llast(plans);
		if (plan != NULL)
			*id = plan->id;
		TurnEnd(outer, false);
	} while (!found && more);
	return found;
}

/* ---------- drop ---------- */

/* Raise the error that a workflow is in use. */
static void
RaiseInUse(const Doomed *doomed, const char *user, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_PLAN_NOT_MODIFIABLE),
			 errmsg("%s is in use", WorkflowLabel(doomed->name, doomed->version)),
			 errdetail("%s needs it.", user),
			 errhint("%s", hint)));
}

/* Refuse to drop a workflow that is in use. */
static void
CheckUnused(Call *call, const char *name, int version)
{
	Doomed		doomed = {.call = call, .name = name, .version = version};
	const Caller *caller;
	pg_uuid_t	id;
	bool		found;

	doomed.last = list_length(WorkflowVersions(call, name)) == 1;
	FilterMake(&doomed);
	doomed.scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise definition", ALLOCSET_DEFAULT_SIZES);
	WritesBegin(call);
	found = FindPlan(&doomed, &id);
	caller = found ? NULL : FindCaller(&doomed);
	WritesEnd(call);
	if (found)
		RaiseInUse(&doomed, psprintf("Plan %s, which is not finished,", UuidText(&id)),
				   PlanHint(call, PlanMustRead(call, &id), "Finish the plan first; or cancel it with stepwise.cancel_plan(plan_id)."));
	if (caller != NULL)
		RaiseInUse(&doomed, psprintf("Version %d of workflow \"%s\"", caller->version, caller->name),
				   psprintf("Drop that first, with stepwise.drop_workflow(%s, %d).", quote_literal_cstr(caller->name), caller->version));
}

/* Delete a version or all versions of a workflow that is not in use. */
static Jsonb *
DropWorkflow(Call *call, const char *name, int version)
{
	JsonBuilder b = {0};
	Jsonb	   *answer;
	List	   *versions;

	LockDefinitions(call);
	versions = WorkflowLock(call, name, version);
	if (versions == NIL)
		WorkflowNotFound(call, name, version);
	CheckUnused(call, name, version);
	WorkflowDelete(call, name, version);

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", name);
	PutVersionNumbers(&b, "dropped", versions);
	JsonObjectEnd(&b);
	answer = JsonFinish(&b);
	AuditAppendPlanless(call, "plan_modified", JsonMerge(JsonTextOf("action", "workflow_dropped"), answer));
	return answer;
}

/* Drop a workflow, or one version of it. */
PG_FUNCTION_INFO_V1(stepwise_drop_workflow);
Datum
stepwise_drop_workflow(PG_FUNCTION_ARGS)
{
	char	   *name = ArgumentText(fcinfo, 0);
	int			version = ArgumentVersion(fcinfo, 1);
	Call		call;

	CheckWorkflowNamed(name);
	CallBegin(&call);
	return CallEnd(&call, DropWorkflow(&call, name, version));
}
