/*
 * elicit.c
 *	  ask the person behind the client
 *
 * A call whose answer is that a person is waited for asks that person: its
 * result is a form, under the id of the checkpoint. The client shows the form
 * and repeats the call with what the person said. This is decided first, and
 * then the call goes on. Who declines leaves the checkpoint open, and gets the
 * answer of the call. No state is kept: a checkpoint is used once.
 *
 * Only those are asked who may decide, with the rights of the connection. A
 * client of the legacy generation is asked by stepwise-mcp in the same words.
 */
#include "mcp/mcp.h"

#define SHOWN_MAX	2000		/* bytes of arguments and results in a form */
#define PROMPT_MAX	8000		/* bytes of the question itself */
#define FIELD_MAX	400			/* bytes of the title of a field */
#define FIELDS_MAX	20			/* questions that have a field */

static const char *const Decisions[] = {"approve", "modify", "reject", "skip"};

/* Write the arguments of a call about a plan. */
Jsonb *
PlanArguments(const pg_uuid_t *plan_id)
{
	return JsonTextOf("plan_id", UuidText(plan_id));
}

/* a checkpoint that a person can answer */
typedef struct Question
{
	pg_uuid_t	id;
	bool		review;			/* a review; otherwise a prompt */
	char	   *prompt;
	Jsonb	   *questions;
	Jsonb	   *submission;		/* or NULL */
	char	   *instructions;	/* of the step, filled, or NULL */
	StepRow    *step;
	PlanRow    *plan;
} Question;

/* Read a checkpoint that waits. Returns false if it does not wait any more, or never did. */
static bool
QuestionRead(Call *call, const pg_uuid_t *id, Question *q)
{
	static KeptQuery read = {
		"SELECT k.kind = 'review', k.prompt, k.questions, k.submission, k.step_id FROM stepwise.checkpoint AS k"
		" WHERE k.tenant = $1 AND k.id = $2",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &read, id);
	pg_uuid_t	step_id;

	if (rows.count == 0)
		return false;
	q->id = *id;
	q->review = RowBool(&rows, 0, 1);
	q->prompt = RowText(&rows, 0, 2);
	q->questions = RowJson(&rows, 0, 3);
	q->submission = RowJson(&rows, 0, 4);
	step_id = RowUuid(&rows, 0, 5);
	q->step = StepMustRead(call, &step_id);
	q->plan = PlanMustRead(call, &q->step->plan_id);
	if (q->step->instructions != NULL)
		q->instructions = ClaimedInstructions(call, q->plan, q->step);
	return true;
}

/* ---------- whom to ask ---------- */

/* Check whether the client can show a form. */
static bool
ClientCanAsk(const Request *request)
{
	Jsonb	   *elicitation = JsonGetJson(request->capabilities, "elicitation");
	JsonbValue	value;

	if (!JsonIsObject(elicitation) || request->read_only || !(request->modern || request->pipe))
		return false;
	return JsonGet(elicitation, "form", &value) || !JsonGet(elicitation, "url", &value);
}

/* Check whether the role of the connection may answer a checkpoint. */
static bool
CallerMayAnswer(Call *call, const Question *q)
{
	if (!q->review)
		return RoleMayExecute(call->caller, "resume");
	return CallerMayReview(call, q->plan, q->step);
}

/* ---------- the form ---------- */

static void
PutField(JsonBuilder *b, const char *name, const char *title, const char *description)
{
	JsonObjectStart(b, name);
	JsonPutText(b, "type", "string");
	JsonPutText(b, "title", title);
	if (description != NULL)
		JsonPutText(b, "description", description);
	JsonObjectEnd(b);
}

static void
PutDecisionField(JsonBuilder *b)
{
	JsonObjectStart(b, "decision");
	JsonPutText(b, "type", "string");
	JsonPutText(b, "title", "Decision");
	JsonPutText(b, "description", "approve: go on; modify: send it back with feedback; reject: the plan fails; skip: go on without this step");
	JsonArrayStart(b, "enum");
	for (size_t i = 0; i < lengthof(Decisions); i++)
		JsonPutText(b, NULL, Decisions[i]);
	JsonArrayEnd(b);
	JsonObjectEnd(b);
}

/* Name the field of a question, counted from 0. */
static char *
AnswerField(int number)
{
	return psprintf("answer_%d", number + 1);
}

static void
PutReviewFields(JsonBuilder *b, const Question *q)
{
	JsonbValue	question;

	PutDecisionField(b);
	PutField(b, "feedback", "Feedback", "what is to be changed; needed for modify");
	for (int i = 0; i < FIELDS_MAX && q->questions != NULL && JsonGetIndex(q->questions, i, &question); i++)
		PutField(b, AnswerField(i), CutText(JsonScalarText(&question), FIELD_MAX, NULL), NULL);
}

/* Say what the person is asked about: the step, and what was submitted or is to be called. */
static char *
QuestionText(const Question *q)
{
	StringInfoData text;
	Jsonb	   *result = q->submission ? JsonGetJson(q->submission, "result") : NULL;

	initStringInfo(&text);
	appendStringInfo(&text, "%s\n\nPlan \"%s\", step \"%s\"", CutText(q->prompt, PROMPT_MAX, NULL), q->plan->name, q->step->name);
	if (q->review && q->step->tool != NULL)
		appendStringInfo(&text, "\nTool: %s with %s", q->step->tool, CutText(JsonToText(StepInputs(q->step)), SHOWN_MAX, NULL));
	if (q->review && q->instructions != NULL)
		appendStringInfo(&text, "\nInstructions: %s", CutText(q->instructions, SHOWN_MAX, NULL));
	if (result != NULL)
		appendStringInfo(&text, "\nResult: %s", CutText(JsonToText(result), SHOWN_MAX, NULL));
	return text.data;
}

/* Put the request of a form, under the id of its checkpoint. "meta" is its _meta, or NULL. */
static void
PutForm(JsonBuilder *b, const Question *q, const Jsonb *meta)
{
	JsonObjectStart(b, UuidText(&q->id));
	JsonPutText(b, "method", "elicitation/create");
	JsonObjectStart(b, "params");
	JsonPutText(b, "mode", "form");
	JsonPutText(b, "message", QuestionText(q));
	JsonObjectStart(b, "requestedSchema");
	JsonPutText(b, "type", "object");
	JsonObjectStart(b, "properties");
	if (q->review)
		PutReviewFields(b, q);
	else
		PutField(b, "response", "Answer", NULL);
	JsonObjectEnd(b);
	JsonPutTexts(b, "required", list_make1(q->review ? "decision" : "response"));
	JsonObjectEnd(b);
	if (meta != NULL)
		JsonPutJson(b, "_meta", meta);
	JsonObjectEnd(b);
	JsonObjectEnd(b);
}

/* Make the forms for a checkpoint, {id: request}; NULL if nobody is to be asked. */
static Jsonb *
Forms(const pg_uuid_t *checkpoint_id, const Jsonb *meta)
{
	Question	q = {0};
	JsonBuilder b = {0};
	Jsonb	   *forms = NULL;
	Call		call;

	CallBeginReading(&call);
	if (QuestionRead(&call, checkpoint_id, &q) && CallerMayAnswer(&call, &q))
	{
		JsonObjectStart(&b, NULL);
		PutForm(&b, &q, meta);
		JsonObjectEnd(&b);
		forms = JsonFinish(&b);
	}
	return (Jsonb *) DatumGetPointer(CallEnd(&call, forms));
}

/* Make the forms for the checkpoint that a reason names, if the client can be asked; NULL: nobody is asked. */
Jsonb *
InputRequests(Request *request, const char *checkpoint, const Jsonb *meta)
{
	Jsonb	   *answered = InputResponses(request);
	JsonbValue	value;
	pg_uuid_t	id;

	if (checkpoint == NULL || !UuidParse(checkpoint, &id) || !ClientCanAsk(request))
		return NULL;
	/* who has just declined is not asked again */
	if (answered != NULL && JsonGet(answered, checkpoint, &value))
		return NULL;
	return Forms(&id, meta);
}

/* Find the checkpoint that an answer names; NULL if it names none. */
static char *
CheckpointOf(const Jsonb *answer)
{
	static const char *const parts[] = {"next", "pause_reason", "pauseReason"};
	char	   *checkpoint = JsonIsObject(answer) ? JsonGetText(answer, "checkpointId") : NULL;

	for (size_t i = 0; checkpoint == NULL && JsonIsObject(answer) && i < lengthof(parts); i++)
	{
		Jsonb	   *part = JsonGetJson(answer, parts[i]);

		if (part != NULL && JsonIsObject(part))
			checkpoint = JsonGetText(part, "checkpointId");
	}
	return checkpoint;
}

/* Make the result that asks a person, if an answer says that one is waited for; otherwise NULL. */
Jsonb *
QuestionOf(Request *request, const Jsonb *answer, const Jsonb *meta)
{
	Jsonb	   *forms = InputRequests(request, CheckpointOf(answer), meta);

	if (forms == NULL)
		return NULL;
	return JsonMerge(JsonTextOf("resultType", "input_required"), JsonObjectOf("inputRequests", forms));
}

/* ---------- what the person said ---------- */

/* Return what people answered, by checkpoint; NULL if the request has no answers. */
Jsonb *
InputResponses(Request *request)
{
	Jsonb	   *responses = JsonGetJson(request->params, "inputResponses");

	if (responses != NULL && !JsonIsObject(responses))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "inputResponses must be an object");
	return responses;
}

/* Check whether a response accepts; others decline or cancel. */
static bool
IsAccepted(Request *request, const Jsonb *response)
{
	static const char *const actions[] = {"accept", "decline", "cancel"};
	char	   *action = JsonIsObject(response) ? JsonGetText(response, "action") : NULL;
	int			which = action ? NameIndex(action, actions, lengthof(actions)) : -1;

	if (which < 0)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "each of inputResponses must have an action: accept, decline or cancel");
	return which == 0;
}

/* Read a field of the form, which is a string; NULL if it is not there. */
static char *
FieldOf(const Jsonb *content, const char *name, bool required)
{
	char	   *text = JsonGetText(content, name);

	if (text == NULL && (required || ArgumentIsGiven(content, name)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("the answer does not fit the form: \"%s\" must be a string", name),
				 errhint("Nothing was decided. Make the call again without inputResponses, and ask the person again.")));
	return text;
}

/* Collect the answers to the questions of a review, in their order; NULL if there are none. */
static Jsonb *
AnswersOf(const Question *q, const Jsonb *content)
{
	int			count = q->questions ? Min(JB_ROOT_COUNT(q->questions), FIELDS_MAX) : 0;
	JsonBuilder b = {0};

	if (count == 0)
		return NULL;
	JsonArrayStart(&b, NULL);
	for (int i = 0; i < count; i++)
		JsonPutText(&b, NULL, FieldOf(content, AnswerField(i), false));
	JsonArrayEnd(&b);
	return JsonFinish(&b);
}

/* Write the arguments of the function that answers a checkpoint. */
static Jsonb *
DecisionArguments(const Question *q, const Jsonb *content)
{
	JsonBuilder b = {0};
	Jsonb	   *answers = AnswersOf(q, content);

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "checkpoint_id", &q->id);
	if (q->review)
	{
		JsonPutText(&b, "decision", FieldOf(content, "decision", true));
		JsonPutText(&b, "feedback", FieldOf(content, "feedback", false));
		if (answers != NULL)
			JsonPutJson(&b, "answers", answers);
	}
	else
		JsonPutText(&b, "response", FieldOf(content, "response", true));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/*
 * Answer one checkpoint. If it was answered meanwhile, or belongs to another
 * tree than that of the given plan, nothing is done.
 */
static void
InputDecide(Request *request, const pg_uuid_t *id, const pg_uuid_t *plan_id, const Jsonb *response)
{
	Jsonb	   *content = JsonGetJson(response, "content");
	Jsonb	   *arguments = NULL;
	Question	q = {0};
	bool		review = false;
	Call		call;

	CallBeginReading(&call);
	if (QuestionRead(&call, id, &q) &&
		(plan_id == NULL || UuidEqual(&q.plan->root_id, &PlanMustRead(&call, plan_id)->root_id)))
	{
		review = q.review;
		arguments = DecisionArguments(&q, content && JsonIsObject(content) ? content : JsonEmptyObject());
	}
	arguments = (Jsonb *) DatumGetPointer(CallEnd(&call, arguments));
	if (arguments != NULL)
		FunctionApply(request, review ? "submit_user_decision" : "resume", arguments);
}

/*
 * Decide what people have answered. If a plan is given, only in its tree.
 * Returns whether something was accepted. Keys that are not known are ignored.
 */
bool
InputsDecide(Request *request, const pg_uuid_t *plan_id)
{
	Jsonb	   *responses = InputResponses(request);
	bool		accepted = false;
	int			count;
	const char **keys = JsonKeys(responses, &count);

	for (int i = 0; i < count; i++)
	{
		Jsonb	   *response = JsonGetJson(responses, keys[i]);
		pg_uuid_t	id;

		if (!IsAccepted(request, response))
			continue;
		accepted = true;
		if (UuidParse(keys[i], &id))
			InputDecide(request, &id, plan_id, response);
	}
	return accepted;
}

/* ---------- tools that ask ---------- */

/* Show how a step stands now. */
static Jsonb *
StepNow(Jsonb *arguments, pg_uuid_t *root_id)
{
	char	   *text = ArgumentsNameStep(&arguments) ? JsonGetText(arguments, "step_id") : NULL;
	JsonBuilder b = {0};
	pg_uuid_t	id;
	StepRow    *step;
	PlanRow    *plan;
	Call		call;

	if (text == NULL || !UuidParse(text, &id))
		return JsonEmptyObject();
	CallBeginReading(&call);
	step = StepMustRead(&call, &id);
	plan = PlanMustRead(&call, &step->plan_id);
	*root_id = plan->root_id;
	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	JsonObjectEnd(&b);
	return (Jsonb *) DatumGetPointer(CallEnd(&call, JsonFinish(&b)));
}

/* Go on after the review of a step was decided: show how the step stands. */
static Jsonb *
ReviewGoesOn(Request *request, Jsonb *arguments)
{
	pg_uuid_t	root_id;

	return StepNow(arguments, &root_id);
}

/*
 * Go on after a submission. It is not submitted again: a review may have sent
 * the step back, or rejected it.
 */
static Jsonb *
SubmissionGoesOn(Request *request, Jsonb *arguments)
{
	static const char *const kept[] = {"worker", "lease", "session_id"};
	bool		next = ArgumentTakeFlag(&arguments, "next", true);
	pg_uuid_t	root_id = {0};
	Jsonb	   *submitted = StepNow(arguments, &root_id);
	Jsonb	   *asking = PlanArguments(&root_id);
	JsonbValue	value;

	if (request->all_tools && strcmp(request->tool, "submit_step_result") == 0)
		return submitted;
	submitted = JsonObjectOf("submitted", submitted);
	if (!next)
		return submitted;
	for (size_t i = 0; i < lengthof(kept); i++)
		if (JsonGet(arguments, kept[i], &value))
			asking = JsonMerge(asking, JsonObjectOf(kept[i], JsonFromValue(&value)));
	return JsonMerge(submitted, JsonObjectOf("next", FunctionApply(request, "get_next_step", asking)));
}

/* the tools that ask, and how they go on after the person has decided */
static const struct
{
	const char *name;
	Jsonb	   *(*go_on) (Request *request, Jsonb *arguments);	/* NULL: as the call says */
}			AskingTools[] = {
	{"get_next_step", NULL},
	{"run", NULL},
	{"submit_step_result", SubmissionGoesOn},
	{"advance", SubmissionGoesOn},
	{"request_user_review", ReviewGoesOn}
};

static int
AskingToolFind(const char *name)
{
	for (int i = 0; i < lengthof(AskingTools); i++)
		if (strcmp(AskingTools[i].name, name) == 0)
			return i;
	return -1;
}

/*
 * Decide what the person has answered to an earlier call of this tool. Returns
 * the answer of the tool; NULL if it is to be called now.
 */
Jsonb *
AnswerAfterInput(Request *request, const char *name, const Jsonb *arguments)
{
	int			tool = AskingToolFind(name);

	if (tool < 0 || InputResponses(request) == NULL || !InputsDecide(request, NULL) || AskingTools[tool].go_on == NULL)
		return NULL;
	return AskingTools[tool].go_on(request, ArgumentsInSnakeCase(arguments));
}

/* Make the result that asks a person, if the answer of a tool says that one is waited for; otherwise NULL. */
Jsonb *
ToolQuestion(Request *request, const char *name, const Jsonb *answer)
{
	return AskingToolFind(name) < 0 ? NULL : QuestionOf(request, answer, NULL);
}
