/*
 * prompts.c
 *	  prompts: workflows that a person can start
 *
 * prompts/get starts a workflow and runs what the database can run. It answers
 * with the conversation up to there, as if a model had made the calls, and with
 * the handoff, which tells a model how to go on. Where a person is waited for,
 * a client that can ask is asked first; the repeated request names the plan in
 * its requestState.
 */
#include "mcp/mcp.h"

#include "utils/fmgrprotos.h"

#define STEPS_TOLD		20		/* of which calls and results are told */
#define GOAL_BYTES		2000	/* of the goal that are told */
#define INPUTS_BYTES	2000	/* of the inputs that are told */

/* Say whether prompts can be used at all: they start and run workflows. */
static bool
PromptsAllowed(const Request *request)
{
	return MayAct(request, "start_workflow") && MayAct(request, "run");
}

/* ---------- prompts/list ---------- */

/* Say of which type an input is, and its default. */
static char *
InputNote(const Jsonb *declared)
{
	char	   *type = JsonGetText(declared, "type");
	Jsonb	   *fallback = JsonGetJson(declared, "default");

	if (fallback != NULL)
		return psprintf("%s, default %s", type ? type : "any JSON", CutText(JsonToText(fallback), TITLE_MAX_CHARS, NULL));
	return psprintf("%s", type ? type : "any JSON");
}

/* Check whether an input must be given. */
static bool
InputIsRequired(const Jsonb *declared)
{
	JsonbValue	required;

	if (JsonGet(declared, "required", &required) && required.type == jbvBool)
		return required.val.boolean;
	return !JsonGet(declared, "default", &required);
}

static void
PutPromptArgument(JsonBuilder *b, const char *name, const Jsonb *declared)
{
	char	   *description = JsonGetText(declared, "description");

	JsonObjectStart(b, NULL);
	JsonPutText(b, "name", name);
	JsonPutText(b, "description", description ? psprintf("%s (%s)", description, InputNote(declared)) : InputNote(declared));
	JsonPutBool(b, "required", InputIsRequired(declared));
	JsonObjectEnd(b);
}

/* Make the entry of a workflow in the list of prompts. */
static Jsonb *
PromptEntry(const Request *request, const Rows *rows, uint64 row)
{
	char	   *description = RowText(rows, row, 2);
	Jsonb	   *inputs = RowJson(rows, row, 3);
	JsonBuilder b = {0};
	int			count;
	const char **names = JsonKeys(inputs, &count);

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", RowText(rows, row, 1));
	if (description != NULL)
		JsonPutText(&b, "description", description);
	JsonArrayStart(&b, "arguments");
	for (int i = 0; i < count; i++)
		PutPromptArgument(&b, names[i], JsonGetJson(inputs, names[i]));
	JsonArrayEnd(&b);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Put the workflows that belong to a page, each in its newest version. */
static void
PutPrompts(Listing *listing, const Request *request)
{
	static KeptQuery list = {
		"SELECT w.name, w.definition ->> 'description', w.definition -> 'inputs'"
		" FROM (SELECT x.name, pg_catalog.max(x.version) AS newest FROM stepwise.workflow AS x WHERE x.tenant = $1 AND x.name > $2"
		" GROUP BY x.name ORDER BY x.name LIMIT $3) AS n"
		" JOIN stepwise.workflow AS w ON w.tenant = $1 AND w.name = n.name AND w.version = n.newest ORDER BY w.name",
		3, {TEXTOID, TEXTOID, INT4OID}, .in_order = true
	};

	ListingPutRows(listing, request, &list, PromptEntry);
}

/* Answer prompts/list: the workflows, for those who may start them. */
Jsonb *
PromptsList(Request *request)
{
	Listing		listing;

	ListingBegin(&listing, request, "prompts");
	if (PromptsAllowed(request))
		PutPrompts(&listing, request);
	return ListingEnd(&listing);
}

/* ---------- arguments ---------- */

/* Find the workflow of a prompt. */
Jsonb *
PromptDefinition(Request *request, const char *name)
{
	Jsonb	   *definition;
	Call		call;

	CallBeginReading(&call);
	definition = (Jsonb *) DatumGetPointer(CallEnd(&call, WorkflowDefinition(&call, name, 0)));
	if (definition == NULL || !PromptsAllowed(request))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "there is no prompt \"%s\"; prompts/list names them", ShortText(name));
	return definition;
}

/* Turn the string of an argument into a value of the declared type. What does not fit is left for the workflow to refuse. */
static void
PutInput(JsonBuilder *b, const char *name, JsonbValue *given, const Jsonb *declared)
{
	char	   *type = declared && JsonIsObject(declared) ? JsonGetText(declared, "type") : NULL;
	Datum		parsed;

	if (given->type == jbvString && type != NULL && strcmp(type, "string") != 0 &&
		InputSafe(jsonb_in, JsonValueText(given), &parsed))
		JsonPutJson(b, name, DatumGetJsonbP(parsed));
	else
		JsonPutValue(b, name, given);
}

/* Read the arguments of a prompt as inputs of its workflow. */
static Jsonb *
PromptInputs(Request *request, const Jsonb *definition)
{
	Jsonb	   *arguments = JsonGetJson(request->params, "arguments");
	Jsonb	   *declarations = JsonGetJson(definition, "inputs");
	JsonBuilder b = {0};
	int			count;
	const char **names;

	if (arguments != NULL && !JsonIsObject(arguments))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "arguments must be an object of strings");
	names = JsonKeys(arguments, &count);
	JsonObjectStart(&b, NULL);
	for (int i = 0; i < count; i++)
	{
		JsonbValue	given;

		JsonGet(arguments, names[i], &given);
		PutInput(&b, names[i], &given, declarations ? JsonGetJson(declarations, names[i]) : NULL);
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* ---------- the conversation ---------- */

static void
PutMessage(JsonBuilder *b, const char *role, const char *text)
{
	JsonObjectStart(b, NULL);
	JsonPutText(b, "role", role);
	JsonObjectStart(b, "content");
	JsonPutText(b, "type", "text");
	JsonPutText(b, "text", text);
	JsonObjectEnd(b);
	JsonObjectEnd(b);
}

/* Say what is wanted: the workflow, its goal, the inputs. */
static char *
IntentText(const char *workflow, const PlanRow *plan)
{
	return psprintf("Run the workflow \"%s\"%s\nInputs: %s", workflow, *plan->goal ? Because(CutText(plan->goal, GOAL_BYTES, NULL)) : ".",
					CutText(JsonToText(JsonOf(plan->inputs)), INPUTS_BYTES, NULL));
}

/* the steps of a plan, as they are told */
typedef struct Told
{
	const char *workflow;
	const char *handoff;
	const PlanRow *plan;
	List	   *steps;			/* of StepRow *, in order */
	int			entries;		/* so many are told */
} Told;

/* Append a step to the numbered list of them. */
static void
ListStep(StringInfo list, const StepRow *step)
{
	appendStringInfo(list, "%d. %s", step->order, step->name);
	if (step->tool != NULL)
		appendStringInfo(list, " (tool %s)", step->tool);
	else if (step->workflow != NULL)
		appendStringInfo(list, " (workflow %s)", step->workflow);
	else if (step->prompt != NULL)
		appendStringInfoString(list, " (asks a person)");
	appendStringInfoChar(list, '\n');
}

/* Name the steps of the plan. */
static char *
PlanText(const Told *told)
{
	StringInfoData list;
	ListCell   *cell;

	initStringInfo(&list);
	foreach(cell, told->steps)
		if (foreach_current_index(cell) < told->entries)
			ListStep(&list, lfirst(cell));
	return psprintf("The plan %s has %d steps:\n%s", UuidText(&told->plan->id), list_length(told->steps), list.data);
}

/* Say what was done for a step. */
static char *
DeedText(const StepRow *step, int text)
{
	char	   *arguments = CutText(JsonToText(StepInputs(step)), text, NULL);

	if (step->tool != NULL)
		return psprintf("Step %s: calling the tool %s with %s", step->name, step->tool, arguments);
	if (step->workflow != NULL)
		return psprintf("Step %s: running the workflow %s with %s", step->name, step->workflow, arguments);
	if (step->prompt != NULL)
		return psprintf("Step %s: asking a person", step->name);
	return psprintf("Step %s: following its instructions", step->name);
}

static bool
WasDone(const StepRow *step)
{
	return step->status == STEP_COMPLETED || step->status == STEP_FAILED;
}

/* Put the call of a tool and its result. */
static void
PutStepMessages(JsonBuilder *b, const StepRow *step, int text)
{
	PutMessage(b, "assistant", DeedText(step, text));
	PutMessage(b, "user", step->status == STEP_FAILED || step->result == NULL
			   ? psprintf("Step %s %s%s", step->name, StepStatusName[step->status], BecauseShort(step->message))
			   : psprintf("Step %s, result: %s", step->name, CutText(JsonToText(JsonOf(step->result)), text, NULL)));
}

static List *
StepsToTell(Call *call, const PlanRow *plan)
{
	static KeptQuery read = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &read, &plan->id);
	List	   *steps = NIL;

	for (uint64 i = 0; i < rows.count; i++)
		steps = lappend(steps, RowStep(&rows, i));
	return steps;
}

/* Build the conversation up to now: the intent, the plan, each call and its result, the handoff; see BoundBuild. */
static Jsonb *
ConversationAt(void *arg, int entries, int text)
{
	Told	   *told = arg;
	JsonBuilder b = {0};
	int			calls = 0;
	ListCell   *cell;

	told->entries = entries;
	JsonArrayStart(&b, NULL);
	PutMessage(&b, "user", IntentText(told->workflow, told->plan));
	PutMessage(&b, "assistant", PlanText(told));
	foreach(cell, told->steps)
		if (WasDone(lfirst(cell)) && ++calls <= entries)
			PutStepMessages(&b, lfirst(cell), text);
	PutMessage(&b, "user", told->handoff);
	JsonArrayEnd(&b);
	return JsonFinish(&b);
}

/* Tell the conversation of a plan, as far as it fits into max_bytes. */
static Jsonb *
Conversation(Call *call, const char *workflow, const pg_uuid_t *plan_id, const char *handoff, int max_bytes)
{
	Told		told = {.workflow = workflow, .handoff = handoff, .plan = PlanMustRead(call, plan_id)};

	told.steps = StepsToTell(call, told.plan);
	return BoundBuild(ConversationAt, &told, max_bytes, STEPS_TOLD);
}

/* ---------- prompts/get ---------- */

/* Start the workflow of a prompt. */
static pg_uuid_t
PromptStart(Request *request, const char *name, const Jsonb *inputs)
{
	JsonBuilder b = {0};
	pg_uuid_t	plan_id;

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "workflow", name);
	JsonPutJson(&b, "inputs", inputs);
	JsonObjectEnd(&b);
	if (!UuidParse(JsonGetText(FunctionApply(request, "start_workflow", JsonFinish(&b)), "planId"), &plan_id))
		elog(ERROR, "start_workflow has answered no plan");
	return plan_id;
}

/* Find the plan that a repeated request goes on with. Returns false if it is a first request. */
static bool
PromptGoesOn(Request *request, pg_uuid_t *plan_id)
{
	char	   *state = JsonGetText(request->params, "requestState");

	if (InputResponses(request) == NULL || state == NULL)
		return false;
	if (!UuidParse(state, plan_id))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "invalid requestState");
	return true;
}

/* Keep what _meta has of the answer of a run: exactly these keys. */
static Jsonb *
PromptMeta(const Jsonb *run)
{
	static const char *const keys[] = {"task_id", "task_status", "steps", "pause_reason"};
	JsonBuilder b = {0};
	JsonbValue	value;

	JsonObjectStart(&b, NULL);
	for (size_t i = 0; i < lengthof(keys); i++)
		if (JsonGet(run, keys[i], &value))
			JsonPutValue(&b, keys[i], &value);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Make the result of prompts/get for a plan that was run. */
static Jsonb *
PromptResult(Request *request, const char *name, const Jsonb *definition, const pg_uuid_t *plan_id, const Jsonb *run)
{
	Jsonb	   *handoff = FunctionApply(request, "handoff", PlanArguments(plan_id));
	char	   *description = JsonGetText(definition, "description");
	JsonBuilder b = {0};
	JsonbValue	text;
	char	   *told;
	Jsonb	   *messages;
	Call		call;

	JsonToValue(handoff, &text);
	told = TranslateText(request, JsonScalarText(&text));
	CallBeginReading(&call);
	messages = Conversation(&call, name, plan_id, told, request->max_bytes);
	messages = (Jsonb *) DatumGetPointer(CallEnd(&call, messages));
	JsonObjectStart(&b, NULL);
	if (description != NULL)
		JsonPutText(&b, "description", description);
	JsonPutJson(&b, "messages", messages);
	JsonPutJson(&b, "_meta", PromptMeta(CutLists(run, request->max_entries)));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Answer prompts/get: start a workflow and run it, or go on after a person has answered. */
Jsonb *
PromptsGet(Request *request)
{
	char	   *name = ParamRequiredText(request, "name");
	Jsonb	   *definition = PromptDefinition(request, name);
	pg_uuid_t	plan_id;
	Jsonb	   *run;
	Jsonb	   *question;

	if (RoundPlan(request, &plan_id))
		 /* it was started in an earlier round */ ;
	else if (PromptGoesOn(request, &plan_id))
		InputsDecide(request, &plan_id);
	else
		plan_id = PromptStart(request, name, PromptInputs(request, definition));
	request->plan_id = plan_id;
	request->has_plan = true;
	run = RunApply(request, PlanArguments(&plan_id), NULL);
	if (run == NULL)
		return JsonEmptyObject();
	question = request->modern ? QuestionOf(request, run, NULL) : NULL;
	if (question != NULL)
		return JsonMerge(question, JsonTextOf("requestState", UuidText(&plan_id)));
	return PromptResult(request, name, definition, &plan_id, run);
}
