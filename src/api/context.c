/*
 * context.c
 *	  what a session needs to continue a plan: the plan, a step, the list of active plans
 *
 * The answers are built by internal SQL functions in sql/56_context.sql, which
 * take the tenant as an argument. This file looks up the ids first, so that an
 * id of another tenant is not found, and checks the other arguments.
 *
 * Nothing is locked, with one exception: get_plan_context locks the tree if
 * another session takes over the plan. It records that first, and reads the
 * answer afterwards.
 */
#include "api/api.h"

#include "utils/array.h"

#define MAX_ROWS	1000		/* in one page */

/* Return the size that a value will have when it is read. sql/56_context.sql uses it to limit what it reads. */
PG_FUNCTION_INFO_V1(stepwise_raw_size);
Datum
stepwise_raw_size(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) RawSize((struct varlena *) PG_GETARG_POINTER(0)));
}

/* Refuse a number of rows below 1, and limit it to a page. */
static int
CheckMax(int max)
{
	if (max < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("max must be at least 1, not %d", max),
				 errhint("Ask for 1 to %d; more are cut to that.", MAX_ROWS)));
	return Min(max, MAX_ROWS);
}

/* Read the number of rows that the caller wants; NULL means the given default. */
int
ArgumentMax(FunctionCallInfo fcinfo, int n, int otherwise)
{
	return PG_ARGISNULL(n) ? otherwise : CheckMax(PG_GETARG_INT32(n));
}

/* ---------- get_plan_context ---------- */

/* Record that another session continues the plan. A read-only transaction records nothing. */
static void
NoteSession(Call *call, const PlanRow *plan)
{
	PlanRow    *locked;

	if (call->session == NULL || XactReadOnly || (plan->session_id && strcmp(plan->session_id, call->session) == 0))
		return;
	CheckTextLimit(call->session, "session_id");
	locked = PlanLock(call, &plan->id);
	PlanNoteSession(call, locked);
}

/* Build the answer of get_plan_context, with the next call to make. */
static Jsonb *
PlanContext(Call *call, const PlanRow *plan)
{
	static KeptQuery read = {"SELECT j FROM stepwise.plan_context_json($1, $2) AS j", 2, {TEXTOID, UUIDOID}};
	Jsonb	   *context;

	NoteSession(call, plan);
	ReadBegin(call);
	context = QueryJsonById(call, &read, &plan->id);
	if (context == NULL)
		PlanNotFound(&plan->id);
	return JsonMerge(context, NextCall(call, PlanMustRead(call, &plan->id)));
}

/* Show all that a new session needs to continue a plan. */
PG_FUNCTION_INFO_V1(stepwise_get_plan_context);
Datum
stepwise_get_plan_context(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBegin(&call);
	/* a reader is no session that continues the plan */
	if (CallerMayWrite(&call))
		CallInSession(&call, ArgumentText(fcinfo, 1));
	return CallEnd(&call, PlanContext(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0))));
}

/* ---------- get_step_context ---------- */

/* Collect the names of steps that a step mentions, or with bindings, the bindings. */
static Datum
MentionedNames(List *mentions, bool bindings)
{
	Datum	   *names = palloc(sizeof(Datum) * (list_length(mentions) + 1));
	int			count = 0;
	ListCell   *cell;

	foreach(cell, mentions)
	{
		const Mention *mention = lfirst(cell);

		if (mention->binding == bindings)
			names[count++] = CStringGetTextDatum(mention->name);
	}
	return PointerGetDatum(construct_array(names, count, TEXTOID, -1, false, TYPALIGN_INT));
}

/* Resolve the arguments of a step. Returns them as they are written if a value is not there yet. */
static Jsonb *
FilledArguments(Call *call, PlanRow *plan, const StepRow *step)
{
	Jsonb	   *arguments = StepInputs(step);
	ResolveFault fault = {0};
	Jsonb	   *filled = NULL;

	if (step->dynamic && step->inputs == NULL)
		filled = ResolveJson(call, plan, arguments, &fault);
	return filled ? filled : arguments;
}

/* Build what get_next_step hands out with the step, or has handed out. */
static Jsonb *
HandedOut(Call *call, const StepRow *step)
{
	PlanRow    *plan = PlanMustRead(call, &step->plan_id);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "instructions", ClaimedInstructions(call, plan, step));
	JsonPutJson(&b, "arguments", FilledArguments(call, plan, step));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the answer of get_step_context. */
static Jsonb *
StepContext(Call *call, const StepRow *step)
{
	static KeptQuery read = {
		"SELECT j FROM stepwise.step_context_json($1, $2, $3, $4) AS j",
		4, {TEXTOID, UUIDOID, TEXTARRAYOID, TEXTARRAYOID}
	};
	List	   *mentions = StepMentions(step);
	Params		params = {0};
	Jsonb	   *context;

	ParamKey(&params, call, &step->id);
	ParamDatum(&params, MentionedNames(mentions, false));
	ParamDatum(&params, MentionedNames(mentions, true));
	context = QueryJson(&read, &params);
	if (context == NULL)
		StepNotFound(&step->id);
	return JsonMerge(context, HandedOut(call, step));
}

/* Show a step, its dependencies with their results, and its artifacts. */
PG_FUNCTION_INFO_V1(stepwise_get_step_context);
Datum
stepwise_get_step_context(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, StepContext(&call, StepMustRead(&call, ArgumentUuid(fcinfo, 0))));
}

/* ---------- list_active_plans ---------- */

static void
CheckPlanStatus(const char *status)
{
	Faults		faults = {0};

	if (status == NULL || NameIndex(status, PlanStatusName, PLAN_STATUSES) >= 0)
		return;
	FaultAdd(&faults, ERRCODE_INVALID_DEFINITION, "status",
			 WordHint(&faults, status, PlanStatusName, PLAN_STATUSES, "statuses"),
			 "\"%s\" is not the status of a plan", ShortText(status));
	FaultsRaise(&faults, "filter");
}

static Jsonb *
ListActivePlans(Call *call, const char *status, const char *session, const pg_uuid_t *after, int max)
{
	static KeptQuery list = {
		"SELECT j FROM stepwise.active_plans_json($1, $2, $3, $4, $5) AS j",
		5, {TEXTOID, TEXTOID, TEXTOID, UUIDOID, INT4OID}
	};
	Params		params = {0};

	CheckPlanStatus(status);
	ParamTenant(&params, call);
	ParamText(&params, status);
	ParamText(&params, session);
	ParamUuid(&params, after);
	ParamInt(&params, max);
	return QueryJson(&list, &params);
}

/* List unfinished plans, newest first, page by page. */
PG_FUNCTION_INFO_V1(stepwise_list_active_plans);
Datum
stepwise_list_active_plans(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, ListActivePlans(&call, ArgumentText(fcinfo, 0), ArgumentText(fcinfo, 1), ArgumentUuid(fcinfo, 2),
										  ArgumentMax(fcinfo, 3, 50)));
}
