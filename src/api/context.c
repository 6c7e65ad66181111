/*
 * context.c
 *	  what a session needs to go on: a plan, a step, and which plans there are
 *
 * Reading is plain SQL, in internal functions of sql/56_context.sql that take
 * the tenant; here the ids are looked up, so that a foreign one is not found,
 * and what the reader is told to read is checked. Nothing is locked, but when
 * another session takes a plan over: that is written down, and the answer read
 * after that.
 */
#include "api/api.h"

#include "utils/array.h"

#define MAX_ROWS	1000		/* of one page */

PG_FUNCTION_INFO_V1(stepwise_get_plan_context);
PG_FUNCTION_INFO_V1(stepwise_get_step_context);
PG_FUNCTION_INFO_V1(stepwise_list_active_plans);
PG_FUNCTION_INFO_V1(stepwise_raw_size);

/* How large a value will be when it is read, for the budgets of sql/56_context.sql; it is not read for that. */
Datum
stepwise_raw_size(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32((int32) RawSize((struct varlena *) PG_GETARG_POINTER(0)));
}

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

/* Read how many rows a caller wants. */
int
ArgumentMax(FunctionCallInfo fcinfo, int n, int otherwise)
{
	return PG_ARGISNULL(n) ? otherwise : CheckMax(PG_GETARG_INT32(n));
}

/* ---------- get_plan_context ---------- */

/* Write down that another session goes on with the plan, if it does; one that only reads does not. */
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

Datum
stepwise_get_plan_context(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBegin(&call);
	CallInSession(&call, ArgumentText(fcinfo, 1));
	return CallEnd(&call, PlanContext(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0))));
}

/* ---------- get_step_context ---------- */

/* Collect the names, or the bindings, that a step mentions. */
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

/* The arguments with values, as far as there are any yet. */
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

/* What get_next_step would hand out, or has. */
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

	ParamTenant(&params, call);
	ParamUuid(&params, &step->id);
	ParamDatum(&params, MentionedNames(mentions, false));
	ParamDatum(&params, MentionedNames(mentions, true));
	context = QueryJson(&read, &params);
	if (context == NULL)
		StepNotFound(&step->id);
	return JsonMerge(context, HandedOut(call, step));
}

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

Datum
stepwise_list_active_plans(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, ListActivePlans(&call, ArgumentText(fcinfo, 0), ArgumentText(fcinfo, 1), ArgumentUuid(fcinfo, 2),
										  ArgumentMax(fcinfo, 3, 50)));
}
