/*
 * move.c
 *	  the calls that end a wait, and the sentences that explain it
 *
 * A Wait is what a plan waits for (wait.c). Its moves are what lets the plan go
 * on: a tool that the client calls, a function of the engine, or plain words.
 * They are done one after the other. The first function of the engine among
 * them is the next call. The others of a wait are calls of which each ends the
 * wait by itself; they are the alternatives of why.
 *
 * Each type of pause reason has a line in ReasonRules. No call is named that
 * the caller may not make: who skips or changes a gate, or answers a person's
 * question, needs the right to decide. Without it, the plan waits for a person.
 * A function without EXECUTE is no move. If none is left, the plan waits for
 * somebody else.
 *
 * Locks: none. Nothing is changed.
 */
#include "api/api.h"

/* ---------- moves ---------- */

/* Make a move. */
static Move *
MoveNew(MoveKind kind, const char *name, Jsonb *arguments)
{
	Move	   *move = palloc0(sizeof(Move));

	move->kind = kind;
	move->name = name;
	move->arguments = arguments;
	return move;
}

/* Say whether the caller has EXECUTE on a function. */
static bool
MayExecute(const Wait *w, const char *function)
{
	return RoleMayExecute(w->call->caller, function);
}

/* Append a move, unless the caller may not make it, or one before it. The caller may set its note. */
Move *
AddMove(Wait *w, MoveKind kind, const char *name, Jsonb *arguments)
{
	Move	   *move = MoveNew(kind, name, arguments);

	if (kind == MOVE_CALL && !MayExecute(w, name))
		w->barred = true;
	if (!w->barred)
		w->moves = lappend(w->moves, move);
	return move;
}

/* Find the next call: the first function of the engine among the moves; NULL if there is none. */
const Move *
NextMove(const Wait *w)
{
	ListCell   *cell;

	foreach(cell, w->moves)
	{
		const Move *move = lfirst(cell);

		if (move->kind == MOVE_CALL)
			return move;
	}
	return NULL;
}

/* Append a call that also ends the wait, unless it is the next call, or the caller may not make it. */
void
AddOther(Wait *w, const char *name, Jsonb *arguments)
{
	const Move *next = NextMove(w);

	if (next != NULL && strcmp(next->name, name) == 0)
		return;
	if (MayExecute(w, name))
		w->others = lappend(w->others, MoveNew(MOVE_CALL, name, arguments));
}

/*
 * If the caller may not make the next call, take another one that also ends the
 * wait. If there is none, leave the plan to others.
 */
void
LeaveToOthers(Wait *w)
{
	if (!w->barred || NextMove(w) != NULL)
		return;
	w->barred = false;
	w->moves = NIL;
	if (w->others != NIL)
	{
		w->moves = list_make1(linitial(w->others));
		w->others = list_delete_first(w->others);
		return;
	}
	w->message = psprintf("%s%s %s: wait for somebody who may.", w->message, EndsSentence(w->message) ? "" : ".",
						  FunctionIsOffered ? "This connection only reads, and may not continue the plan" : "This role may not continue the plan");
}

/* Build the arguments of a function that takes the plan. */
Jsonb *
PlanArgument(const Wait *w)
{
	return JsonTextOf("plan_id", UuidText(&w->asked->id));
}

/* Build the arguments of a function that takes a step. */
static Jsonb *
StepArgument(const StepRow *step)
{
	return JsonTextOf("step_id", UuidText(&step->id));
}

/*
 * Build the arguments of the tool of the step, as far as they are known. A
 * missing one is shown as <name>.
 */
static Jsonb *
SketchedArguments(const Wait *w)
{
	Jsonb	   *written = JsonOf(w->step->arguments);
	Jsonb	   *missing = JsonGetJson(w->reason, "missingFields");
	JsonBuilder b = {0};
	JsonbValue	name;

	JsonObjectStart(&b, NULL);
	for (int i = 0; JsonGetIndex(missing, i, &name); i++)
		JsonPutText(&b, JsonValueText(&name), psprintf("<%s>", JsonValueText(&name)));
	JsonObjectEnd(&b);
	return JsonMerge(written ? ResolveSketch(w->call, w->plan, written) : NULL, JsonFinish(&b));
}

/* Fill the references in a text of a step, as far as their values are known. */
char *
SketchedText(const Wait *w, PlanRow *plan, const struct varlena *written)
{
	JsonBuilder b = {0};
	JsonbValue	text;

	JsonArrayStart(&b, NULL);
	JsonPutText(&b, NULL, TextOf(written));
	JsonArrayEnd(&b);
	JsonGetIndex(ResolveSketch(w->call, plan, JsonFinish(&b)), 0, &text);
	return JsonScalarText(&text);
}

/* Build the arguments of record_tool_result for the step. */
static Jsonb *
RecordArgument(const Wait *w)
{
	const char *tool = w->step->tool;
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	/* name the plan of the step: in the plans above it, the name of the step may not be unique */
	JsonPutUuid(&b, "plan_id", &w->plan->id);
	JsonPutText(&b, "tool", tool);
	JsonPutText(&b, "step_name", w->step->name);
	JsonPutText(&b, "result", psprintf("<result of %s>", tool));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Let the client call the tool and report what it returned. */
static void
MoveRecord(Wait *w)
{
	Move	   *move = AddMove(w, MOVE_TOOL, w->step->tool, SketchedArguments(w));

	if (w->step->instructions != NULL)
		move->note = SketchedText(w, w->plan, w->step->instructions);
	AddMove(w, MOVE_CALL, "record_tool_result", RecordArgument(w));
}

/* Let the agent follow the instructions and submit the result. A step that was claimed before has to be claimed again. */
void
MoveSubmit(Wait *w)
{
	const StepRow *step = w->step;
	JsonBuilder b = {0};

	/* without a claim, a result is taken only of a step that was never claimed */
	if (step->status == STEP_PENDING && step->attempt > 0)
	{
		AddMove(w, MOVE_CALL, "get_next_step", PlanArgument(w));
		return;
	}
	AddMove(w, MOVE_WORDS, step->instructions
			? psprintf("Follow the instructions of step \"%s\": %s", step->name, SketchedText(w, w->plan, step->instructions))
			: psprintf("Do step \"%s\".", step->name), NULL);
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "step_id", &step->id);
	JsonPutText(&b, "result", step->holder ? psprintf("<the result of %s>", step->holder) : "<your result>");
	if (step->status == STEP_IN_PROGRESS)
		JsonPutInt(&b, "attempt", step->attempt);
	JsonObjectEnd(&b);
	AddMove(w, MOVE_CALL, "submit_step_result", JsonFinish(&b));
}

/* Build the arguments of a function that takes the step and a text, which is left open. */
static Jsonb *
TextArgument(const Wait *w, const char *key, const char *what)
{
	return JsonMerge(StepArgument(w->step), JsonTextOf(key, what));
}

/* Build the arguments of skip_step. */
static Jsonb *
SkipArgument(const Wait *w)
{
	return TextArgument(w, "reason", "<why it is left out>");
}

/* Let the plan wait for a person, because the caller has not the right to decide what happens to the step. */
static void
MoveAwaitPerson(Wait *w)
{
	w->on = "person";
	w->message = psprintf("%s%s Wait for a person who may decide.", w->message, EndsSentence(w->message) ? "" : ".");
	AddMove(w, MOVE_CALL, "get_next_step", PlanArgument(w));
}

/* Let the agent skip the step. */
static void
MoveSkip(Wait *w)
{
	if (MaySkip(w->call, w->step))
		AddMove(w, MOVE_CALL, "skip_step", SkipArgument(w));
	else
		MoveAwaitPerson(w);
}

/* Let the agent skip the step, after words that say what else may be done. */
static void
MoveMend(Wait *w, char *words)
{
	if (MaySkip(w->call, w->step))
		AddMove(w, MOVE_WORDS, words, NULL);
	MoveSkip(w);
}

/* Say whether modify_plan takes the plan of the step, and the caller has EXECUTE on it. */
static bool
IsModifiable(const Wait *w)
{
	return (w->plan->status == PLAN_PLANNING || w->plan->status == PLAN_EXECUTING) && MayExecute(w, "modify_plan");
}

/* Say which key of the step has to be changed. */
static const char *
UpdateKey(const Wait *w)
{
	ReasonType	type = ReasonTypeOf(w->reason);
	const StepRow *step = w->step;
	char	   *missing = JsonGetText(w->reason, "missingParam");
	JsonbValue	value;

	if (type == REASON_CONDITION_ERROR)
		return "condition";
	/* review.summary is a part of the key "review" */
	if (missing != NULL && !(step->arguments && JsonGet(JsonOf(step->arguments), missing, &value)))
		return pnstrdup(missing, strcspn(missing, "."));
	if (type == REASON_UNRESOLVED_DEPENDENCY && step->arguments == NULL)
		return step->prompt ? "prompt" : step->resources ? "resources" : "instructions";
	return "arguments";
}

/* Can the definition of the step be changed, and does that help? A failed step has to be retried after that. */
static bool
CanChange(const Wait *w)
{
	if (w->step->status != STEP_PENDING || ReasonOfRun(w->reason))
		return false;
	/* in a plan with a separate reviewer, who has a part in the step does not change its review */
	if (strcmp(UpdateKey(w), "review") == 0 && !CallerMayReview(w->call, w->plan, w->step))
		return false;
	return IsModifiable(w) && MayChange(w->call, w->plan, w->step);
}

/* Let the agent skip a step that only the engine can do. Another step may do its work. */
void
MoveLeaveOut(Wait *w)
{
	MoveMend(w, psprintf("Step \"%s\" %s, so it takes no result from outside: leave it out.%s", w->step->name, StepDoes(w->step),
						 IsModifiable(w) && MayAppend(w->call, w->plan)
						 ? " If its work is needed, first add another step for it with stepwise.modify_plan." : ""));
}

/* Let the client or the agent do the step. */
static void
MoveDoIt(Wait *w)
{
	if (!StepRuleOf(w->step)->by_worker)
		MoveLeaveOut(w);
	else if (StepKindOf(w->step) != KIND_TOOL)
		MoveSubmit(w);
	else if (StepTakesReport(w->call, w->plan, w->step))
		MoveRecord(w);
	else
		AddMove(w, MOVE_CALL, "get_next_step", PlanArgument(w));
}

/* Let the client call the tool with the value that the step lacks; other steps, and gated ones, have to be changed. */
static void
MoveSupply(Wait *w)
{
	if (!StepRuleOf(w->step)->by_worker)
		MoveLeaveOut(w);
	else if (StepKindOf(w->step) == KIND_TOOL && StepTakesReport(w->call, w->plan, w->step))
		MoveRecord(w);
	else
		MoveMend(w, psprintf("Step \"%s\" cannot be done as it is: %sleave it out.", w->step->name,
							 CanChange(w) ? "give it what it lacks with stepwise.modify_plan(plan_id, 'update_step', params), or " : ""));
}

/* Let the agent retry the step. */
static void
MoveRetry(Wait *w)
{
	AddMove(w, MOVE_CALL, "retry_step", StepArgument(w->step));
}

/*
 * Retry the step if that may help, or if it is not its turn now. Otherwise let
 * the client call the tool itself, or leave out the step if the tool is in the
 * database.
 */
static void
MoveAfterError(Wait *w)
{
	JsonbValue	retryable;

	if (StepKindOf(w->step) != KIND_TOOL || (JsonGet(w->reason, "retryable", &retryable) && retryable.val.boolean))
		MoveRetry(w);
	else if (!ToolIsInDatabase(w->call, w->step->tool) && StepTakesReport(w->call, w->plan, w->step))
		MoveRecord(w);
	else if (!ToolIsInDatabase(w->call, w->step->tool) || !MaySkip(w->call, w->step))
		MoveRetry(w);
	else
		MoveMend(w, psprintf("Tool \"%s\" is in the database%s leave the step out.", w->step->tool,
							 MayExecute(w, "retry_step") ? ". If what made it fail can be mended, do that and call stepwise.retry_step; otherwise" : ":"));
}

/*
 * Find the step whose value is missing. It may be in a nested plan, where the
 * name in the pause reason may not be unique. So fill the step again, to see
 * where that fails.
 */
static StepRow *
FindProducer(const Wait *w)
{
	StepRow		step = *w->step;
	ResolveFault fault = {0};

	StepFillFault(w->call, w->plan, &step, &fault);
	if (fault.problem == RESOLVE_DEPENDENCY && fault.producer != NULL)
		return StepRead(w->call, &fault.producer->id);
	return StepReadByName(w->call, &w->plan->id, JsonGetText(w->reason, "producingStep"));
}

/*
 * Find the failed step to retry for a missing value; NULL if there is none.
 * Start with the producing step. If the plan of a step has ended, go up to the
 * parent step of that plan.
 */
static StepRow *
FailedProducer(const Wait *w)
{
	StepRow    *step = FindProducer(w);

	while (step != NULL)
	{
		PlanRow    *plan = PlanMustRead(w->call, &step->plan_id);

		if (!PlanIsTerminal(plan->status))
			return step->status == STEP_FAILED ? step : NULL;
		step = plan->nested ? StepRead(w->call, &plan->parent_step_id) : NULL;
	}
	return NULL;
}

/*
 * Retry the producing step if it failed. A skipped or completed step is final,
 * so the step has to be done without its value.
 */
static void
MoveAfterProducer(Wait *w)
{
	StepRow    *failed = FailedProducer(w);

	if (failed != NULL)
		AddMove(w, MOVE_CALL, "retry_step", StepArgument(failed));
	else
		MoveSupply(w);
}

/* Let the agent decide whether the step is done, because its condition cannot decide it. */
static void
MoveAfterCondition(Wait *w)
{
	if (!StepRuleOf(w->step)->by_worker)
	{
		MoveLeaveOut(w);
		return;
	}
	MoveMend(w, CanChange(w)
			 ? psprintf("Decide whether step \"%s\" is to be done: if so, change its condition with"
						" stepwise.modify_plan(plan_id, 'update_step', params); otherwise leave it out.", w->step->name)
			 : psprintf("The condition of step \"%s\" cannot be decided: leave it out.", w->step->name));
}

/* Let a person answer a prompt. */
static void
MoveResume(Wait *w)
{
	JsonBuilder b = {0};

	if (!CallerMayDecide(w->call))
	{
		MoveAwaitPerson(w);
		return;
	}
	AddMove(w, MOVE_WORDS, psprintf("Ask the person: %s", JsonGetText(w->reason, "prompt")), NULL);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "checkpoint_id", JsonGetText(w->reason, "checkpointId"));
	JsonPutText(&b, "response", "<the answer>");
	JsonObjectEnd(&b);
	AddMove(w, MOVE_CALL, "resume", JsonFinish(&b));
}

/* Let a person decide a review. */
static void
MoveDecide(Wait *w)
{
	JsonBuilder b = {0};

	if (!CallerMayReview(w->call, w->plan, w->step))
	{
		MoveAwaitPerson(w);
		return;
	}
	AddMove(w, MOVE_WORDS, psprintf("Show the person: %s", JsonGetText(w->reason, "summary")), NULL);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "checkpoint_id", JsonGetText(w->reason, "checkpointId"));
	JsonPutText(&b, "decision", "<approve, reject, modify or skip>");
	JsonObjectEnd(&b);
	AddMove(w, MOVE_CALL, "submit_user_decision", JsonFinish(&b));
}

/* Put the key of the step that has to be changed, with what it has now, or with a place to fill in. */
static void
PutUpdate(JsonBuilder *b, const Wait *w)
{
	const char *key = UpdateKey(w);

	if (ReasonTypeOf(w->reason) == REASON_CHANGES_REQUESTED)
		JsonPutText(b, key, "<the changed arguments, or another key of the step>");
	else if (strcmp(key, "arguments") == 0 && w->step->arguments != NULL)
		JsonPutJson(b, key, SketchedArguments(w));
	else
		JsonPutText(b, key, psprintf("<the new %s>", key));
}

/* Build the arguments of modify_plan that change the step. */
static Jsonb *
UpdateArgument(const Wait *w)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "plan_id", &w->plan->id);
	JsonPutText(&b, "action", "update_step");
	JsonObjectStart(&b, "params");
	JsonPutText(&b, "step", w->step->name);
	PutUpdate(&b, w);
	JsonObjectEnd(&b);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Let the agent change the step as its review asked. */
static void
MoveChange(Wait *w)
{
	if (MayChange(w->call, w->plan, w->step))
		AddMove(w, MOVE_CALL, "modify_plan", UpdateArgument(w));
	else
		MoveAwaitPerson(w);
}

/* ---------- other calls ---------- */

/* Can the client give the result of its tool? */
static bool
CanRecord(const Wait *w)
{
	return StepKindOf(w->step) == KIND_TOOL && !ToolIsInDatabase(w->call, w->step->tool) &&
		StepTakesReport(w->call, w->plan, w->step);
}

/* Can the step be retried? */
static bool
CanRetry(const Wait *w)
{
	return w->step->status == STEP_FAILED;
}

/* Can the step be left out? */
static bool
CanSkip(const Wait *w)
{
	return MaySkip(w->call, w->step);
}

/* Can an open failure be given up, so that it stops nothing any more? */
static bool
CanGiveUp(const Wait *w)
{
	return CanSkip(w) && w->plan->on_failure == ON_FAILURE_STOP && IsOpenFailure(w->plan, w->step);
}

/* Would get_next_step move a step in spite of the wait? To note that another step is blocked too leads nowhere. */
static bool
CanGoOn(const Wait *w)
{
	Next		next = {.moves = true};

	return NextPeek(w->call, w->asked, &next);
}

static Jsonb *
RetryArgument(const Wait *w)
{
	return StepArgument(w->step);
}

static Jsonb *
GiveUpArgument(const Wait *w)
{
	return TextArgument(w, "error", "<why it is given up>");
}

/* the calls that may end a wait, in the order in which they are named */
static const struct
{
	const char *function;
	bool		(*can) (const Wait *w);
	Jsonb	   *(*argument) (const Wait *w);
}			OtherRules[] = {
	{"record_tool_result", CanRecord, RecordArgument},
	{"retry_step", CanRetry, RetryArgument},
	{"modify_plan", CanChange, UpdateArgument},
	{"skip_step", CanSkip, SkipArgument},
	{"fail_step", CanGiveUp, GiveUpArgument},
	{"get_next_step", CanGoOn, PlanArgument},
};

/* Add all calls that also end the wait. */
static void
AddOthers(Wait *w)
{
	for (size_t i = 0; i < lengthof(OtherRules); i++)
		if (OtherRules[i].can(w))
			AddOther(w, OtherRules[i].function, OtherRules[i].argument(w));
}

/* ---------- sentences ---------- */

/* Say which argument has no value. Each Say function below explains one type of pause reason. */
static char *
SayUnresolvable(const Wait *w)
{
	return psprintf("step \"%s\" has no value for its argument \"%s\"%s", w->step->name,
					JsonGetText(w->reason, "missingParam"), Because(w->step->message));
}

static char *
SayMismatch(const Wait *w)
{
	return psprintf("the arguments of step \"%s\" do not fit its tool%s", w->step->name, Because(w->step->message));
}

static char *
SayError(const Wait *w)
{
	return psprintf("step \"%s\" failed: %s", w->step->name,
					ErrorText(JsonGetText(w->reason, "error"), JsonOf(w->step->error)));
}

static char *
SayResource(const Wait *w)
{
	return psprintf("step \"%s\" could not read %s: %s", w->step->name, JsonGetText(w->reason, "uri"),
					ErrorText(JsonGetText(w->reason, "error"), JsonOf(w->step->error)));
}

static char *
SayDependency(const Wait *w)
{
	return psprintf("step \"%s\" needs what step \"%s\" did not produce%s", w->step->name,
					JsonGetText(w->reason, "producingStep"), Because(w->step->message));
}

static char *
SayClient(const Wait *w)
{
	if (StepKindOf(w->step) != KIND_TOOL)
		return psprintf("step \"%s\" has instructions to follow, and no tool", w->step->name);
	return psprintf("step \"%s\" is done with tool \"%s\", which the client calls", w->step->name, w->step->tool);
}

static char *
SayInput(const Wait *w)
{
	return psprintf("step \"%s\" asks a person: %s", w->step->name, JsonGetText(w->reason, "prompt"));
}

static char *
SayReview(const Wait *w)
{
	return psprintf("step \"%s\" waits for a review: %s", w->step->name, JsonGetText(w->reason, "summary"));
}

static char *
SayChanges(const Wait *w)
{
	return psprintf("the review of step \"%s\" asked for changes: %s", w->step->name, JsonGetText(w->reason, "feedback"));
}

static char *
SayCondition(const Wait *w)
{
	return psprintf("the condition of step \"%s\" cannot be decided: %s", w->step->name, JsonGetText(w->reason, "error"));
}

/* ---------- the table ---------- */

/* what each type of pause reason waits on, how it is explained, and how the plan goes on */
static const struct
{
	const char *on;
	char	   *(*say) (const Wait *w);
	void		(*move) (Wait *w);
	bool		only;			/* there is no other call that ends it */
}			ReasonRules[REASON_TYPES] = {
	[REASON_UNRESOLVABLE_PARAMS] = {"client", SayUnresolvable, MoveSupply},
	[REASON_UNRESOLVED_DEPENDENCY] = {"client", SayDependency, MoveAfterProducer},
	[REASON_CONDITION_ERROR] = {"client", SayCondition, MoveAfterCondition},
	[REASON_CLIENT_TOOL] = {"client", SayClient, MoveDoIt},
	[REASON_SCHEMA_MISMATCH] = {"client", SayMismatch, MoveSupply},
	[REASON_TOOL_ERROR] = {"client", SayError, MoveAfterError},
	[REASON_RESOURCE_ERROR] = {"client", SayResource, MoveRetry},
	[REASON_INPUT_REQUIRED] = {"person", SayInput, MoveResume},
	/* a decision may be to skip the step */
	[REASON_REVIEW_REQUESTED] = {"person", SayReview, MoveDecide, true},
	[REASON_CHANGES_REQUESTED] = {"client", SayChanges, MoveChange},
};

/* Explain the wait of a plan by its reason: on whom it waits, why, and how it goes on. */
void
ExplainReason(Wait *w)
{
	ReasonType	type = ReasonTypeOf(w->reason);

	w->on = ReasonRules[type].on;
	w->message = ReasonRules[type].say(w);
	ReasonRules[type].move(w);
	AddMove(w, MOVE_CALL, "run", PlanArgument(w));
	if (!ReasonRules[type].only)
		AddOthers(w);
}
