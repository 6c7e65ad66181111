/*
 * variables.c
 *	  the variables of a plan: those that are set, and those made from its rows
 *
 * Only variables that are set are stored. Names that begin with _workflow.
 * belong to the engine. Their values are made from the rows when they are
 * read, so they always agree with the rows. The exception is
 * _workflow.extra.TOOL, which record_tool_result stores.
 *
 * Locks: a change locks the plan. Reading takes no lock.
 */
#include "api/api.h"

#define RESERVED_NAME	"_workflow"

/* ---------- stored ---------- */

/* Replace the stored variables of a plan. The caller has locked the plan. */
void
VariablesStore(Call *call, const pg_uuid_t *plan_id, const Jsonb *variables)
{
	Changes		c = {0};

	CheckJsonLimits(variables, "the whole of the plan's variables");
	SetVarlena(&c, DETAIL_COL_VARIABLES, variables);
	DetailUpdate(call, plan_id, &c);
}

/* ---------- setting ---------- */

/* Refuse a name that belongs to the engine. */
static void
CheckVariableName(const char *name)
{
	size_t		length = strlen(RESERVED_NAME);

	if (strncmp(name, RESERVED_NAME, length) == 0 && (name[length] == '.' || name[length] == '\0'))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("variable \"%s\" is the engine's", name),
				 errdetail("Names under %s. show how the plan stands.", RESERVED_NAME),
				 errhint("Choose a name that does not begin with %s.", RESERVED_NAME)));
}

static void
CheckVariables(const Jsonb *variables)
{
	const char **names;
	int			count;

	if (!JsonIsObject(variables))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("variables must be an object"),
				 errhint("Give names and values, such as {\"region\": \"eu\"}; null deletes a name.")));
	CheckJsonLimits(variables, "the object of variables");
	names = JsonKeys(variables, &count);
	for (int i = 0; i < count; i++)
		CheckVariableName(names[i]);
}

/* Does the object have the name, with the value null? */
static bool
IsNullIn(const Jsonb *object, const char *name)
{
	JsonbValue	value;

	return JsonGet(object, name, &value) && value.type == jbvNull;
}

/* Merge the given variables into those before. A name that is given as null is deleted. */
static Jsonb *
VariablesMerge(const Jsonb *before, const Jsonb *given)
{
	Jsonb	   *joined = JsonMerge(before, given);
	JsonBuilder b = {0};
	int			count;
	const char **names = JsonKeys(joined, &count);

	JsonObjectStart(&b, NULL);
	for (int i = 0; i < count; i++)
	{
		JsonbValue	value;

		if (!IsNullIn(given, names[i]) && JsonGet(joined, names[i], &value))
			JsonPutValue(&b, names[i], &value);
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Put the names that are set, or the names that are deleted. */
static void
PutNames(JsonBuilder *b, const char *key, const Jsonb *given, bool deleted)
{
	int			count;
	const char **names = JsonKeys(given, &count);

	JsonArrayStart(b, key);
	for (int i = 0; i < count; i++)
		if (IsNullIn(given, names[i]) == deleted)
			JsonPutText(b, NULL, names[i]);
	JsonArrayEnd(b);
}

static void
AuditVariables(Call *call, PlanRow *plan, const Jsonb *given)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", "set_variables");
	PutNames(&b, "set", given, false);
	PutNames(&b, "deleted", given, true);
	JsonObjectEnd(&b);
	AuditAppend(call, plan, NULL, "plan_modified", JsonFinish(&b));
}

/* Judge blocked steps again, because they may read a variable that has changed. */
static void
ReconsiderSteps(Call *call, PlanRow *plan)
{
	if (plan->paused == 0 || PlanIsTerminal(plan->status))
		return;
	plan->retried = true;
	PlanSettle(call, plan);
}

/* Store the variables, if that changes any. */
static Jsonb *
SetVariables(Call *call, PlanRow *plan, const Jsonb *given)
{
	Jsonb	   *before = JsonOf(PlanDetailOf(call, plan)->variables);
	Jsonb	   *variables = VariablesMerge(before, given);
	ReadingFunction reader = {"task_variables", "plan_id", UuidText(&plan->id)};
	JsonBuilder b = {0};

	if (!JsonEqual(before, variables))
	{
		VariablesStore(call, &plan->id, variables);
		AuditVariables(call, plan, given);
		ReconsiderSteps(call, plan);
	}
	JsonObjectStart(&b, NULL);
	PutPlanAnswer(&b, plan);
	JsonPutJson(&b, "variables", CutJson((struct varlena *) variables, SHOWN_VALUE, &reader));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Set and delete variables of a plan. */
PG_FUNCTION_INFO_V1(stepwise_set_variables);
Datum
stepwise_set_variables(PG_FUNCTION_ARGS)
{
	Call		call;
	Jsonb	   *given;
	PlanRow    *plan;

	CallBegin(&call);
	given = ArgumentJson(fcinfo, 1);
	CheckVariables(given);
	plan = PlanLock(&call, ArgumentUuid(fcinfo, 0));
	return CallEnd(&call, SetVariables(&call, plan, given));
}

/* ---------- showing ---------- */

/* Count the size of the answer before it is read, so that a too large one is refused. */
static void
TakeValue(Call *call, size_t size)
{
	AnswerTake(call, size,
			   "Ask for less: stepwise.get_plan_context(plan_id) shows the results that fit,"
			   " stepwise.get_step_context(step_id) that of one step.");
}

/* Put the goal, and the names and states of the steps. */
static void
PutProgress(JsonBuilder *b, const PlanRow *plan, const List *steps)
{
	ListCell   *cell;

	JsonObjectStart(b, "_workflow.progress");
	JsonPutText(b, "goal", psprintf("%s: %s", plan->name, plan->goal));
	JsonArrayStart(b, "steps");
	foreach(cell, steps)
	{
		const StepRow *step = lfirst(cell);

		JsonObjectStart(b, NULL);
		JsonPutText(b, "name", step->name);
		JsonPutTextIfSet(b, "tool", step->tool);
		JsonPutText(b, "status", StepStatusName[step->status]);
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
	JsonPutInt(b, "schemaVersion", 1);
	JsonObjectEnd(b);
}

/* Put the result of a step that is completed, or the error of one that has failed. */
static void
PutResult(JsonBuilder *b, const StepRow *step)
{
	char	   *key = psprintf("_workflow.result.%s", step->name);

	if (step->status == STEP_COMPLETED)
		JsonPutJson(b, key, JsonOf(step->result));
	else if (step->status == STEP_FAILED)
		JsonPutJson(b, key, step->error ? JsonOf(step->error) : JsonTextOf("error", step->message));
}

/* Read the stored variables and those made from the rows. Where names are the same, those made from the rows win. */
static Jsonb *
TaskVariables(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow    *plan = PlanMustRead(call, plan_id);
	List	   *steps = StepsInStates(call, "step_order_unique", &plan->id, STATES_OPEN | STATES_ENDED, INT_MAX);
	const struct varlena *stored = PlanDetailOf(call, plan)->variables;
	JsonBuilder b = {0};
	ListCell   *cell;

	foreach(cell, steps)
	{
		const StepRow *step = lfirst(cell);

		if (step->status == STEP_COMPLETED || step->status == STEP_FAILED)
			TakeValue(call, RawSize(step->result) + (step->message ? VARHDRSZ + strlen(step->message) : 0));
	}
	TakeValue(call, RawSize(stored));
	JsonObjectStart(&b, NULL);
	JsonPutMembers(&b, JsonOf(stored));
	PutProgress(&b, plan, steps);
	foreach(cell, steps)
		PutResult(&b, lfirst(cell));
	if (plan->pause_reason != NULL)
		JsonPutJson(&b, "_workflow.pause_reason", JsonOf(plan->pause_reason));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Show all variables of a plan. */
PG_FUNCTION_INFO_V1(stepwise_task_variables);
Datum
stepwise_task_variables(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, TaskVariables(&call, ArgumentUuid(fcinfo, 0)));
}
