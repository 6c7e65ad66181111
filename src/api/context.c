/*
 * context.c
 *	  what a session needs to continue a plan: the plan, or a step of it
 *
 * The answers are built by internal SQL functions in sql/56_context.sql, which
 * take the tenant as an argument, and cut. This file looks up the ids first, so
 * that an id of another tenant is not found, checks the other arguments, and
 * fills in what was cut (bound.c).
 *
 * Nothing is locked, with one exception: get_plan_context locks the tree if
 * another session takes over the plan. It records that first, and reads the
 * answer afterwards.
 */
#include "api/api.h"

#include "utils/array.h"

/* Return the length of a full list in an answer of so many bytes. */
static int
EntriesIn(int max_bytes)
{
	return Max(LIST_MAX, Min(max_bytes / (CONTEXT_BYTES / LIST_MAX), 1000));
}

/* ---------- fill what was cut ---------- */

/* a member that can be filled in, in the order of the columns that a query returns */
typedef struct Member
{
	const char *key;
	FieldKind	kind;
} Member;

/* Fill the members of one row, from a column on. */
static void
FillRow(Filling *filling, FillTarget *target, const Rows *rows, uint64 row, int column, const Member *members, int count,
		int parts)
{
	for (int i = 0; i < count; i++)
		FillMember(filling, target, members[i].key, RowVarlena(rows, row, column + i), members[i].kind, parts);
}

static const Member StepMembers[] = {
	{"result", FIELD_JSON},
	{"resultSummary", FIELD_TEXT},
	{"message", FIELD_TEXT},
	{"pauseReason", FIELD_JSON},
	{"prompt", FIELD_TEXT},
	{"instructions", FIELD_TEXT},
	{"arguments", FIELD_JSON},
	{"inputs", FIELD_JSON},
	{"resources", FIELD_JSON},
	{"condition", FIELD_TEXT},
	{"tool", FIELD_TEXT},
	{"workflow", FIELD_TEXT},
	{"worker", FIELD_TEXT},
	{"executionReport", FIELD_JSON},
	{"outputFormattingNotes", FIELD_TEXT},
};

/* Read what can be filled in of steps: 1 number in ids, then StepMembers. With latest, those that ended last come first. */
static Rows
StepFields(Call *call, Datum ids, bool latest)
{
	static KeptQuery read = {
		"SELECT pg_catalog.array_position($2, s.id), s.result, s.result_summary, s.message, s.pause_reason, s.prompt, s.instructions,"
		" s.arguments, s.inputs, s.resources, s.condition, s.tool, s.workflow, s.worker, s.execution_report,"
		" s.output_formatting_notes"
		" FROM stepwise.step AS s WHERE s.tenant = $1 AND s.id = ANY ($2)"
		" ORDER BY CASE WHEN $3 THEN s.completed_at END DESC NULLS LAST, 1",
		3, {TEXTOID, UUIDARRAYOID, BOOLOID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamDatum(&params, ids);
	ParamBool(&params, latest);
	return QueryRun(&read, &params);
}

/* Collect the ids of the steps in a list of the answer. */
static Datum
ListedIds(const Jsonb *list, int *count)
{
	Datum	   *ids = palloc(sizeof(Datum) * (list ? JB_ROOT_COUNT(list) + 1 : 1));
	JsonbValue	element;

	for (*count = 0; JsonGetIndex(list, *count, &element); (*count)++)
	{
		pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

		UuidParse(JsonGetText(JsonFromValue(&element), "stepId"), id);
		ids[*count] = UUIDPGetDatum(id);
	}
	return PointerGetDatum(construct_array(ids, *count, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR));
}

/* Fill the steps of a list: first all results, then all else. */
static void
FillSteps(Call *call, Filling *filling, const char *list, bool latest)
{
	int			count;
	Datum		ids = ListedIds(JsonGetJson(filling->answer, list), &count);
	FillTarget **targets = palloc(sizeof(FillTarget *) * (count + 1));
	Rows		rows = StepFields(call, ids, latest);

	for (int i = 0; i < count; i++)
		targets[i] = FillAt(filling, list, i);
	for (uint64 i = 0; i < rows.count; i++)
		FillRow(filling, targets[RowInt(&rows, i, 1) - 1], &rows, i, 2, StepMembers, 1, 1);
	for (uint64 i = 0; i < rows.count; i++)
		FillRow(filling, targets[RowInt(&rows, i, 1) - 1], &rows, i, 3, StepMembers + 1, lengthof(StepMembers) - 1, 1);
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

/* what an answer of the context functions is built from */
typedef struct Context
{
	Call	   *call;
	const PlanRow *plan;		/* of get_plan_context */
	const StepRow *step;		/* of get_step_context */
	Jsonb	   *more;			/* members that are not read by the query, and are not cut */
	char	   *instructions;	/* of get_step_context, filled; or NULL */
	Jsonb	   *arguments;		/* likewise */
	Jsonb	   *resources;		/* likewise */
} Context;

/* Build the answer of get_plan_context at one level. */
static Jsonb *
PlanContextAt(void *arg, int entries, int text)
{
	static KeptQuery read = {
		"SELECT j FROM stepwise.plan_context_json($1, $2, $3, $4) AS j",
		4, {TEXTOID, UUIDOID, INT4OID, INT4OID}
	};
	Context    *context = arg;
	Params		params = {0};
	Jsonb	   *answer;

	ParamKey(&params, context->call, &context->plan->id);
	ParamInt(&params, entries);
	ParamInt(&params, text);
	answer = QueryJson(&read, &params);
	return answer ? JsonMerge(answer, context->more) : NULL;
}

/* what comes before the results of steps, if it is not too long; then what comes after them */
static const Member PlanMembers[] = {
	{"pauseReason", FIELD_JSON},
	{"outputFormattingNotes", FIELD_TEXT},
	{"goal", FIELD_TEXT},
	{"message", FIELD_TEXT},
	{"inputs", FIELD_JSON},
	{"outputs", FIELD_JSON},
	{"variables", FIELD_JSON},
	{"description", FIELD_TEXT},
	{"designRationale", FIELD_TEXT},
	{"name", FIELD_TEXT},
	{"workflow", FIELD_TEXT},
	{"sessionId", FIELD_TEXT},
};
#define FINAL_OUTPUT	(lengthof(PlanMembers) + 1)	/* the column after them */

/* Read what can be filled in of a plan: PlanMembers, then the final output. */
static Rows
PlanFields(Call *call, const PlanRow *plan)
{
	static KeptQuery read = {
		"SELECT p.pause_reason, d.output_formatting_notes, p.goal, p.message, p.inputs, p.outputs, coalesce(d.variables, '{}'), d.description,"
		" d.design_rationale, p.name, p.workflow, p.session_id, d.final_output"
		" FROM stepwise.plan AS p LEFT JOIN stepwise.plan_detail AS d ON d.tenant = $1 AND d.plan_id = $2"
		" WHERE p.tenant = $1 AND p.id = $2",
		2, {TEXTOID, UUIDOID}
	};
	return QueryById(call, &read, &plan->id);
}

/* Fill what people are asked. */
static void
FillCheckpoints(Call *call, Filling *filling)
{
	static const Member members[] = {{"prompt", FIELD_TEXT}, {"questions", FIELD_JSON}};
	static KeptQuery read = {
		"SELECT pg_catalog.array_position($2, k.step_id), k.prompt, k.questions FROM stepwise.checkpoint AS k"
		" WHERE k.tenant = $1 AND k.step_id = ANY ($2) ORDER BY 1",
		2, {TEXTOID, UUIDARRAYOID}
	};
	Params		params = {0};
	Rows		rows;
	int			count;

	ParamTenant(&params, call);
	ParamDatum(&params, ListedIds(JsonGetJson(filling->answer, "checkpoints"), &count));
	rows = QueryRun(&read, &params);
	for (uint64 i = 0; i < rows.count; i++)
		FillRow(filling, FillAt(filling, "checkpoints", RowInt(&rows, i, 1) - 1), &rows, i, 2, members, lengthof(members), 4);
}

/* Fill what was cut in the answer of get_plan_context. */
static Jsonb *
PlanContextFill(Call *call, const PlanRow *plan, Jsonb *answer, int max_bytes)
{
	Filling		filling = FillBegin(answer, max_bytes);
	FillTarget *top = FillAt(&filling, NULL, -1);
	Rows		fields = PlanFields(call, plan);

	if (fields.count == 0)
		PlanNotFound(&plan->id);
	FillCheckpoints(call, &filling);
	FillRow(&filling, top, &fields, 0, 1, PlanMembers, lengthof(PlanMembers), 4);
	FillMember(&filling, FillAt(&filling, "finalOutput", -1), "content", RowVarlena(&fields, 0, FINAL_OUTPUT), FIELD_TEXT, 4);
	FillSteps(call, &filling, "steps", true);
	return FillEnd(&filling);
}

/* Build {"nextCall": ...} for a very small answer: why names the next call. */
static Jsonb *
ShortNextCall(const PlanRow *plan)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonObjectStart(&b, "nextCall");
	JsonPutText(&b, "function", "why");
	JsonPutJson(&b, "arguments", JsonTextOf("plan_id", UuidText(&plan->id)));
	JsonObjectEnd(&b);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the answer of get_plan_context, with the next call to make. */
static Jsonb *
PlanContext(Call *call, const PlanRow *plan, int max_bytes)
{
	Context		context = {.call = call, .plan = plan};
	Jsonb	   *answer;

	NoteSession(call, plan);
	ReadBegin(call);
	context.more = NextCall(call, PlanMustRead(call, &plan->id));
	answer = BoundBuild(PlanContextAt, &context, max_bytes, EntriesIn(max_bytes));
	if (answer == NULL)
		PlanNotFound(&plan->id);
	if (JsonTextLength(answer) > max_bytes)
		answer = JsonMerge(answer, ShortNextCall(plan));
	return PlanContextFill(call, plan, answer, max_bytes);
}

/* Show all that a new session needs to continue a plan. */
PG_FUNCTION_INFO_V1(stepwise_get_plan_context);
Datum
stepwise_get_plan_context(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanRow    *plan;

	CallBegin(&call);
	plan = PlanMustRead(&call, ArgumentUuid(fcinfo, 0));
	/* a reader is no session that continues the plan */
	if (CallerMayWrite(&call))
		CallInSession(&call, ArgumentText(fcinfo, 1));
	return CallEnd(&call, PlanContext(&call, plan, ArgumentMaxBytes(fcinfo, 2)));
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

/* Read what get_next_step hands out with the step, or has handed out. */
static void
ReadHandedOut(Context *context)
{
	Call	   *call = context->call;
	PlanRow    *plan = PlanMustRead(call, &context->step->plan_id);

	context->instructions = ClaimedInstructions(call, plan, context->step);
	context->arguments = FilledArguments(call, plan, context->step);
	context->resources = ClaimedResources(call, plan, context->step);
}

/*
 * Cut a value of a step; NULL for NULL. Where no text is shown, only the fact
 * that it is cut is: a summary and a call for each would not fit.
 */
static Jsonb *
ShownValue(const struct varlena *field, int text, const ReadingFunction *reader)
{
	JsonBuilder b = {0};

	if (field == NULL || text > 0)
		return CutJson(field, text, reader);
	JsonObjectStart(&b, NULL);
	JsonPutBool(&b, "cut", true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build what get_next_step hands out, cut. */
static Jsonb *
HandedOut(const Context *context, int text)
{
	ReadingFunction reader = {"get_step_context", "step_id", UuidText(&context->step->id), "max_bytes"};
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "instructions", context->instructions ? CutText(context->instructions, text, reader.function) : NULL);
	JsonPutJson(&b, "arguments", ShownValue((struct varlena *) context->arguments, text, &reader));
	if (context->resources != NULL)
		JsonPutJson(&b, "resources", ShownValue((struct varlena *) context->resources, text, &reader));
	if (context->step->feedback != NULL)
		JsonPutText(&b, "feedback", CutField(context->step->feedback, text, reader.function));
	if (context->step->previous != NULL)
		JsonPutJson(&b, "previousResult", ShownValue(context->step->previous, text, &reader));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the answer of get_step_context at one level. */
static Jsonb *
StepContextAt(void *arg, int entries, int text)
{
	static KeptQuery read = {
		"SELECT j FROM stepwise.step_context_json($1, $2, $3, $4, $5, $6) AS j",
		6, {TEXTOID, UUIDOID, TEXTARRAYOID, TEXTARRAYOID, INT4OID, INT4OID}
	};
	Context    *context = arg;
	List	   *mentions = StepMentions(context->step);
	Params		params = {0};
	Jsonb	   *answer;

	ParamKey(&params, context->call, &context->step->id);
	ParamDatum(&params, MentionedNames(mentions, false));
	ParamDatum(&params, MentionedNames(mentions, true));
	ParamInt(&params, entries);
	ParamInt(&params, text);
	answer = QueryJson(&read, &params);
	return answer ? JsonMerge(answer, HandedOut(context, text)) : NULL;
}

/* Fill the own members of the step, and what a person is asked about it. */
static void
FillOwn(Call *call, Filling *filling, const StepRow *step)
{
	static const Member members[] = {{"prompt", FIELD_TEXT}, {"questions", FIELD_JSON}, {"submission", FIELD_JSON}};
	static KeptQuery read = {
		"SELECT k.prompt, k.questions, k.submission FROM stepwise.checkpoint AS k WHERE k.tenant = $1 AND k.step_id = $2",
		2, {TEXTOID, UUIDOID}
	};
	Datum		id = UUIDPGetDatum(&step->id);
	Rows		rows = QueryById(call, &read, &step->id);

	if (rows.count > 0)
		FillRow(filling, FillAt(filling, "checkpoint", -1), &rows, 0, 1, members, lengthof(members), 1);
	rows = StepFields(call, PointerGetDatum(construct_array(&id, 1, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR)), false);
	if (rows.count > 0)
		FillRow(filling, FillAt(filling, "step", -1), &rows, 0, 2, StepMembers, lengthof(StepMembers), 1);
}

/* Fill what was cut in the answer of get_step_context: what is handed out first, then the step, then those before it. */
static Jsonb *
StepContextFill(const Context *context, Jsonb *answer, int max_bytes)
{
	Call	   *call = context->call;
	Filling		filling = FillBegin(answer, max_bytes);
	FillTarget *top = FillAt(&filling, NULL, -1);
	FillTarget *plan = FillAt(&filling, "plan", -1);
	PlanRow    *row = PlanMustRead(call, &context->step->plan_id);

	if (context->instructions != NULL)
		FillMember(&filling, top, "instructions", (struct varlena *) cstring_to_text(context->instructions), FIELD_TEXT, 1);
	FillMember(&filling, top, "arguments", (struct varlena *) context->arguments, FIELD_JSON, 1);
	FillMember(&filling, top, "resources", (struct varlena *) context->resources, FIELD_JSON, 1);
	FillMember(&filling, top, "feedback", context->step->feedback, FIELD_TEXT, 1);
	FillMember(&filling, top, "previousResult", context->step->previous, FIELD_JSON, 1);
	FillMember(&filling, plan, "goal", cstring_to_text(row->goal), FIELD_TEXT, 4);
	FillOwn(call, &filling, context->step);
	FillSteps(call, &filling, "dependencies", false);
	FillMember(&filling, plan, "inputs", row->inputs, FIELD_JSON, 1);
	FillMember(&filling, plan, "pauseReason", row->pause_reason, FIELD_JSON, 1);
	return FillEnd(&filling);
}

/* Build the answer of get_step_context. */
static Jsonb *
StepContext(Call *call, const StepRow *step, int max_bytes)
{
	Context		context = {.call = call, .step = step};
	Jsonb	   *answer;

	ReadHandedOut(&context);
	answer = BoundBuild(StepContextAt, &context, max_bytes, EntriesIn(max_bytes));
	if (answer == NULL)
		StepNotFound(&step->id);
	return StepContextFill(&context, answer, max_bytes);
}

/* Show a step, the results of the steps before it, and their artifacts. */
PG_FUNCTION_INFO_V1(stepwise_get_step_context);
Datum
stepwise_get_step_context(PG_FUNCTION_ARGS)
{
	Call		call;
	StepRow    *step;

	CallBeginReading(&call);
	step = StepMustRead(&call, ArgumentUuid(fcinfo, 0));
	return CallEnd(&call, StepContext(&call, step, ArgumentMaxBytes(fcinfo, 1)));
}
