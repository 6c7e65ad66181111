/*
 * handoff.c
 *	  what to do next: told to a program (why) and to a language model (handoff)
 *
 * Both say the same. A Wait is what a plan waits for, and its moves are what
 * lets it go on: a tool that the client calls, a function of the engine, or
 * plain words. The first function of the engine among them is why's nextCall.
 * Each type of pause reason has a line in one table.
 *
 * Nothing is locked and nothing is changed; all is read under one snapshot.
 */
#include "api/api.h"

#include "miscadmin.h"

#define STEPS_SHOWN		20

PG_FUNCTION_INFO_V1(stepwise_why);
PG_FUNCTION_INFO_V1(stepwise_handoff);

typedef enum MoveKind
{
	MOVE_CALL,					/* a function of the engine */
	MOVE_TOOL,					/* a tool of the client */
	MOVE_WORDS
} MoveKind;

typedef struct Move
{
	MoveKind	kind;
	const char *name;			/* of the function or tool; or the words */
	Jsonb	   *arguments;
	const char *note;			/* what goes with it, or NULL */
} Move;

typedef struct Wait
{
	Call	   *call;
	PlanRow    *asked;			/* the plan that was asked for */
	PlanRow    *plan;			/* the plan of the step, and the step that blocks; or NULL */
	StepRow    *step;
	const Jsonb *reason;		/* pause reason, or NULL */
	const char *on;				/* person, client, agent or nobody */
	TimestampTz since;
	char	   *message;		/* a sentence */
	List	   *moves;			/* of Move */
} Wait;

/* ---------- moves ---------- */

static Move *
AddMove(Wait *w, MoveKind kind, const char *name, Jsonb *arguments)
{
	Move	   *move = palloc0(sizeof(Move));

	move->kind = kind;
	move->name = name;
	move->arguments = arguments;
	w->moves = lappend(w->moves, move);
	return move;
}

static Jsonb *
PlanArgument(const Wait *w)
{
	return JsonTextOf("plan_id", UuidText(&w->asked->id));
}

static Jsonb *
StepArgument(const StepRow *step)
{
	return JsonTextOf("step_id", UuidText(&step->id));
}

/* What the step's tool would be called with, as far as that is known; what is missing is in <…>. */
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

/* Likewise a text of a step. */
static char *
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

/* The client calls the tool and brings back what it returned. */
static void
MoveRecord(Wait *w)
{
	const char *tool = w->step->tool;
	JsonBuilder b = {0};
	Move	   *move;

	move = AddMove(w, MOVE_TOOL, tool, SketchedArguments(w));
	if (w->step->instructions != NULL)
		move->note = SketchedText(w, w->plan, w->step->instructions);
	JsonObjectStart(&b, NULL);
	/* the plan of the step itself: further up its name may not be the only one */
	JsonPutUuid(&b, "plan_id", &w->plan->id);
	JsonPutText(&b, "tool", tool);
	JsonPutText(&b, "step_name", w->step->name);
	JsonPutText(&b, "result", psprintf("<result of %s>", tool));
	JsonObjectEnd(&b);
	AddMove(w, MOVE_CALL, "record_tool_result", JsonFinish(&b));
}

/* The agent does what the instructions say, and submits. */
static void
MoveSubmit(Wait *w)
{
	const StepRow *step = w->step;
	JsonBuilder b = {0};

	AddMove(w, MOVE_WORDS, step->instructions
			? psprintf("Follow the instructions of step \"%s\": %s", step->name, SketchedText(w, w->plan, step->instructions))
			: psprintf("Do step \"%s\".", step->name), NULL);
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "step_id", &step->id);
	JsonPutText(&b, "result", "<your result>");
	if (step->status == STEP_IN_PROGRESS)
		JsonPutInt(&b, "attempt", step->attempt);
	JsonObjectEnd(&b);
	AddMove(w, MOVE_CALL, "submit_step_result", JsonFinish(&b));
}

static void
MoveSkip(Wait *w)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "step_id", &w->step->id);
	JsonPutText(&b, "reason", "<why it is left out>");
	JsonObjectEnd(&b);
	AddMove(w, MOVE_CALL, "skip_step", JsonFinish(&b));
}

/* What the engine cannot do and nobody else may is left out; other steps may do its work. */
static void
MoveLeaveOut(Wait *w)
{
	const StepRow *step = w->step;

	AddMove(w, MOVE_WORDS, psprintf("Step \"%s\" %s, so it takes no result from outside: leave it out."
									" If its work is needed, first add another step for it with stepwise.modify_plan.",
									step->name, StepDoes(step)), NULL);
	MoveSkip(w);
}

static void
MoveDoIt(Wait *w)
{
	if (!StepRuleOf(w->step)->by_worker)
		MoveLeaveOut(w);
	else if (StepKindOf(w->step) == KIND_TOOL)
		MoveRecord(w);
	else
		MoveSubmit(w);
}

static void
MoveRetry(Wait *w)
{
	AddMove(w, MOVE_CALL, "retry_step", StepArgument(w->step));
}

/* What is retryable is tried again; otherwise the client calls the tool itself. */
static void
MoveAfterError(Wait *w)
{
	JsonbValue	retryable;

	if (StepKindOf(w->step) != KIND_TOOL || (JsonGet(w->reason, "retryable", &retryable) && retryable.val.boolean))
		MoveRetry(w);
	else
		MoveRecord(w);
}

/*
 * Find the step whose value is missing. It may be nested deeper, where its name
 * is not the only one: so the step is filled again, to see where it fails.
 */
static StepRow *
Producer(const Wait *w)
{
	StepRow		step = *w->step;
	ResolveFault fault = {0};

	StepFillFault(w->call, w->plan, &step, &fault);
	if (fault.problem == RESOLVE_DEPENDENCY && fault.producer != NULL)
		return StepRead(w->call, &fault.producer->id);
	return StepReadByName(w->call, &w->plan->id, JsonGetText(w->reason, "producingStep"));
}

/* Find what to try again for a missing value: the producing step, or the one that holds its plan, if that has ended. */
static StepRow *
FailedProducer(const Wait *w)
{
	StepRow    *step = Producer(w);

	while (step != NULL)
	{
		PlanRow    *plan = PlanMustRead(w->call, &step->plan_id);

		if (!PlanIsTerminal(plan->status))
			return step->status == STEP_FAILED ? step : NULL;
		step = plan->nested ? StepRead(w->call, &plan->parent_step_id) : NULL;
	}
	return NULL;
}

/* What failed is tried again; what is skipped or completed is final, so the step is done without it. */
static void
MoveAfterProducer(Wait *w)
{
	StepRow    *failed = FailedProducer(w);

	if (failed != NULL)
		AddMove(w, MOVE_CALL, "retry_step", StepArgument(failed));
	else
		MoveDoIt(w);
}

static void
MoveAfterCondition(Wait *w)
{
	if (!StepRuleOf(w->step)->by_worker)
	{
		MoveLeaveOut(w);
		return;
	}
	AddMove(w, MOVE_WORDS, psprintf("Decide whether step \"%s\" is to be done: if so, do it and submit it with stepwise.submit_step_result.",
									w->step->name), NULL);
	MoveSkip(w);
}

static void
MoveResume(Wait *w)
{
	JsonBuilder b = {0};

	AddMove(w, MOVE_WORDS, psprintf("Ask the person: %s", JsonGetText(w->reason, "prompt")), NULL);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "checkpoint_id", JsonGetText(w->reason, "checkpointId"));
	JsonPutText(&b, "response", "<the answer>");
	JsonObjectEnd(&b);
	AddMove(w, MOVE_CALL, "resume", JsonFinish(&b));
}

static void
MoveDecide(Wait *w)
{
	JsonBuilder b = {0};

	AddMove(w, MOVE_WORDS, psprintf("Show the person: %s", JsonGetText(w->reason, "summary")), NULL);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "checkpoint_id", JsonGetText(w->reason, "checkpointId"));
	JsonPutText(&b, "decision", "<approve, reject, modify or skip>");
	JsonObjectEnd(&b);
	AddMove(w, MOVE_CALL, "submit_user_decision", JsonFinish(&b));
}

/* ---------- sentences ---------- */

static bool
EndsSentence(const char *text)
{
	size_t		length = strlen(text);

	return length > 0 && strchr(".?!", text[length - 1]) != NULL;
}

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

/* Append what a tool said beside its message, as a sentence of its own. */
static void
SayMore(StringInfo text, const Jsonb *error, const char *key, const char *label)
{
	char	   *more = JsonGetText(error, key);

	if (more != NULL && *more != '\0')
		appendStringInfo(text, "%s %s: %s", EndsSentence(text->data) ? "" : ".", label, more);
}

static char *
SayError(const Wait *w)
{
	Jsonb	   *error = JsonOf(w->step->error);
	char	   *code = JsonGetText(error, "code");
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfo(&text, "step \"%s\" failed: %s%s%s%s", w->step->name, JsonGetText(w->reason, "error"),
					 code ? " (" : "", code ? code : "", code ? ")" : "");
	SayMore(&text, error, "detail", "Detail");
	SayMore(&text, error, "hint", "Hint");
	return text.data;
}

static char *
SayResource(const Wait *w)
{
	return psprintf("step \"%s\" could not read %s: %s", w->step->name, JsonGetText(w->reason, "uri"),
					JsonGetText(w->reason, "error"));
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
SayCondition(const Wait *w)
{
	return psprintf("the condition of step \"%s\" cannot be decided: %s", w->step->name, JsonGetText(w->reason, "error"));
}

/* ---------- the table ---------- */

static const struct
{
	const char *on;
	char	   *(*say) (const Wait *w);
	void		(*move) (Wait *w);
}			ReasonRules[REASON_TYPES] = {
	[REASON_UNRESOLVABLE_PARAMS] = {"client", SayUnresolvable, MoveDoIt},
	[REASON_UNRESOLVED_DEPENDENCY] = {"client", SayDependency, MoveAfterProducer},
	[REASON_CONDITION_ERROR] = {"client", SayCondition, MoveAfterCondition},
	[REASON_CLIENT_TOOL] = {"client", SayClient, MoveDoIt},
	[REASON_SCHEMA_MISMATCH] = {"client", SayMismatch, MoveDoIt},
	[REASON_TOOL_ERROR] = {"client", SayError, MoveAfterError},
	[REASON_RESOURCE_ERROR] = {"client", SayResource, MoveRetry},
	[REASON_INPUT_REQUIRED] = {"person", SayInput, MoveResume},
	[REASON_REVIEW_REQUESTED] = {"person", SayReview, MoveDecide},
};

/* ---------- what a plan waits for ---------- */

/* Since when a step waits: for a person, since it failed, or since its plan paused. */
static TimestampTz
PausedSince(const Wait *w)
{
	static KeptQuery find = {
		"SELECT coalesce((SELECT k.since FROM stepwise.checkpoint AS k WHERE k.tenant = $1 AND k.step_id = $3), $4,"
		" (SELECT a.at FROM stepwise.audit AS a WHERE a.tenant = $1 AND a.plan_id = $2 AND a.event = 'plan_paused'"
		" ORDER BY a.tenant DESC, a.plan_id DESC, a.id DESC LIMIT 1))",
		4, {TEXTOID, UUIDOID, UUIDOID, TIMESTAMPTZOID}
	};
	Params		params = {0};
	Rows		rows;

	ParamTenant(&params, w->call);
	ParamUuid(&params, &w->plan->id);
	ParamUuid(&params, &w->step->id);
	ParamTime(&params, w->step->completed_at);
	rows = QueryRun(&find, &params);
	return RowTime(&rows, 0, 1);
}

static void
WaitOfReason(Wait *w)
{
	ReasonType	type = ReasonTypeOf(w->reason);

	w->plan = PlanMustRead(w->call, &w->step->plan_id);
	w->on = ReasonRules[type].on;
	w->since = PausedSince(w);
	w->message = ReasonRules[type].say(w);
	ReasonRules[type].move(w);
	AddMove(w, MOVE_CALL, "run", PlanArgument(w));
}

static void
WaitOfEnded(Wait *w)
{
	const PlanRow *plan = w->asked;

	w->on = "nobody";
	w->since = plan->completed_at;
	w->message = psprintf("the plan is %s%s", PlanStatusName[plan->status], Because(plan->message));
}

static char *
SayNext(const StepRow *step)
{
	if (step->max_attempts > 0 && step->attempt >= step->max_attempts)
		return psprintf("step \"%s\" is next, and will fail: its attempts are used up", step->name);
	if (step->status == STEP_IN_PROGRESS)
		return psprintf("step \"%s\" is next: its lease has expired", step->name);
	return psprintf("step \"%s\" is next", step->name);
}

static bool
ToolIsInDatabase(Call *call, const char *name)
{
	Tool	   *tool = ToolFind(call, name);

	return tool != NULL && tool->function != NULL;
}

/* A step is next: for a run, if its tool is in the database; otherwise for an agent. */
static void
WaitOfNext(Wait *w, const Next *next)
{
	const StepRow *step = next->step;
	bool		run = StepKindOf(step) == KIND_TOOL && ToolIsInDatabase(w->call, step->tool);

	w->plan = next->plan;
	w->on = "agent";
	w->since = w->plan->updated_at;
	w->message = SayNext(step);
	AddMove(w, MOVE_CALL, run ? "run" : "get_next_step", PlanArgument(w));
}

static bool
IsClaim(const StepRow *step)
{
	return step->status == STEP_IN_PROGRESS && !StepNests(step);
}

/* Find the claim in a plan, or in those nested in it, that has been quiet for longest; NULL: none. */
static StepRow *
OldestClaim(const Wait *w)
{
	static KeptQuery find = {
		"WITH RECURSIVE tree AS (SELECT $2 AS id UNION ALL"
		" SELECT n.id FROM tree AS t JOIN stepwise.step AS h ON h.tenant = $1 AND h.plan_id = t.id"
		" AND h.workflow IS NOT NULL AND h.status IN ('in_progress', 'awaiting_input')"
		" JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = h.id AND n.completed_at IS NULL)"
		" SELECT s.* FROM tree AS t JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = t.id"
		" WHERE s.status = 'in_progress' AND s.workflow IS NULL ORDER BY coalesce(s.active_at, s.started_at), s.id LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};
	Params		params = {0};

	ParamTenant(&params, w->call);
	ParamUuid(&params, &w->asked->id);
	return StepFetch(&find, &params);
}

/* Somebody has claimed a step and not come back yet. */
static void
WaitOfClaim(Wait *w)
{
	w->plan = PlanMustRead(w->call, &w->step->plan_id);
	w->on = "agent";
	w->since = w->step->started_at;
	w->message = psprintf("step \"%s\" is in progress%s%s", w->step->name, w->step->worker ? ", claimed by " : "",
						  w->step->worker ? w->step->worker : "");
	if (w->asked->status == PLAN_STALLED)
	{
		w->message = psprintf("%s, and shows no sign of life", w->message);
		/* whatever threshold it was that found it stalled */
		AddMove(w, MOVE_CALL, "release_step", StepArgument(w->step));
		AddMove(w, MOVE_CALL, "get_next_step", PlanArgument(w));
	}
	else
		MoveSubmit(w);
}

static void
WaitOfNobody(Wait *w)
{
	w->on = "agent";
	w->since = w->asked->updated_at;
	w->message = pstrdup("nothing stands in its way");
	AddMove(w, MOVE_CALL, "get_next_step", PlanArgument(w));
}

/* Nothing blocks the plan: then a stalled claim comes first, then what would be handed out, then what that waits for. */
static void
WaitOfWork(Wait *w)
{
	Next		next = {0};
	bool		found = false;

	if (w->asked->status == PLAN_STALLED)
		w->step = OldestClaim(w);
	if (w->step == NULL)
		found = NextPeek(w->call, w->asked, &next);
	if (w->step == NULL && !found)
		w->step = next.step && IsClaim(next.step) ? next.step : OldestClaim(w);
	if (found)
		WaitOfNext(w, &next);
	else if (w->step != NULL)
		WaitOfClaim(w);
	else
		WaitOfNobody(w);
}

static Wait
WaitOf(Call *call, PlanRow *asked)
{
	Wait		w = {.call = call, .asked = asked};

	if (PlanIsTerminal(asked->status))
	{
		WaitOfEnded(&w);
		return w;
	}
	if (asked->pause_reason != NULL)
	{
		w.reason = JsonOf(asked->pause_reason);
		w.step = StepOfReason(call, asked);
	}
	if (w.step != NULL)
		WaitOfReason(&w);
	else
		WaitOfWork(&w);
	return w;
}

/* ---------- why ---------- */

static void
PutNextCall(JsonBuilder *b, const Wait *w)
{
	ListCell   *cell;

	foreach(cell, w->moves)
	{
		Move	   *move = lfirst(cell);

		if (move->kind != MOVE_CALL)
			continue;
		JsonObjectStart(b, "nextCall");
		JsonPutText(b, "function", move->name);
		JsonPutJson(b, "arguments", move->arguments);
		JsonObjectEnd(b);
		return;
	}
	JsonPutNull(b, "nextCall");
}

/* The call with which a plan goes on, as {"nextCall": …}; null when there is none. */
Jsonb *
NextCall(Call *call, PlanRow *asked)
{
	Wait		w = WaitOf(call, asked);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutNextCall(&b, &w);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static Jsonb *
Why(Call *call, PlanRow *asked)
{
	Wait		w = WaitOf(call, asked);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "planId", &asked->id);
	JsonPutText(&b, "planStatus", PlanStatusName[asked->status]);
	JsonPutText(&b, "waitingOn", w.on);
	JsonPutTime(&b, "since", w.since);
	JsonPutJson(&b, "reason", w.reason);
	JsonPutText(&b, "message", w.message);
	PutNextCall(&b, &w);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

Datum
stepwise_why(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, Why(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0))));
}

/* ---------- handoff ---------- */

static void
TellPlan(StringInfo out, const PlanRow *plan)
{
	appendStringInfo(out, "Plan \"%s\"%s%s\nPlan id: %s\nStatus: %s, %d of %d steps done\n", plan->name,
					 *plan->goal ? ": " : "", plan->goal, UuidText(&plan->id), PlanStatusName[plan->status],
					 plan->counts[STEP_COMPLETED] + plan->counts[STEP_SKIPPED], StepTotal(plan->counts));
}

static void
TellMoves(StringInfo out, const Wait *w)
{
	ListCell   *cell;
	int			number = 0;

	if (w->moves == NIL)
		return;
	appendStringInfoString(out, "\nTo continue:\n");
	foreach(cell, w->moves)
	{
		Move	   *move = lfirst(cell);

		appendStringInfo(out, "%d. ", ++number);
		if (move->kind == MOVE_WORDS)
			appendStringInfo(out, "%s\n", move->name);
		else
			appendStringInfo(out, "Call %s%s with %s%s\n", move->kind == MOVE_TOOL ? "tool " : "stepwise.", move->name,
							 JsonToText(move->arguments), Because(move->note));
	}
}

/* Say in a line what a pending step will do. */
static void
TellStep(StringInfo out, const Wait *w, PlanRow *plan, const StepRow *step)
{
	Jsonb	   *arguments = step->arguments ? JsonOf(step->arguments) : JsonEmptyObject();

	appendStringInfo(out, "%s: ", step->name);
	switch (StepKindOf(step))
	{
		case KIND_TOOL:
			appendStringInfo(out, "tool %s with %s (%s)\n", step->tool,
							 JsonToText(ResolveSketch(w->call, plan, arguments)),
							 ToolIsInDatabase(w->call, step->tool) ? "in the database" : "the client's");
			break;
		case KIND_WORKFLOW:
			appendStringInfo(out, "workflow %s with %s\n", step->workflow,
							 JsonToText(ResolveSketch(w->call, plan, arguments)));
			break;
		case KIND_PROMPT:
			appendStringInfo(out, "asks a person: %s\n", SketchedText(w, plan, step->prompt));
			break;
		default:
			if (step->instructions != NULL)
				appendStringInfo(out, "%s\n", SketchedText(w, plan, step->instructions));
			else
				appendStringInfoString(out, step->resources ? "reads resources\n" : "no instructions\n");
	}
}

/* Find the next step of a plan that is pending, or holds a nested plan that is open. */
static StepRow *
NextLeft(const Wait *w, const PlanRow *plan, int from)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order >= $3"
		" AND (s.status = 'pending' OR (s.workflow IS NOT NULL AND s.status IN ('in_progress', 'awaiting_input')))"
		" ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		3, {TEXTOID, UUIDOID, INT4OID}
	};
	Params		params = {0};

	ParamTenant(&params, w->call);
	ParamUuid(&params, &plan->id);
	ParamInt(&params, from);
	return StepFetch(&find, &params);
}

/* List one pending step, if the list is not full. */
static void
TellPending(StringInfo out, const Wait *w, PlanRow *plan, const StepRow *step, const char *above, int *told)
{
	if (*told == 0)
		appendStringInfoString(out, w->reason ? "\nSteps after that:\n" : "\nSteps left:\n");
	if ((*told)++ == STEPS_SHOWN)
	{
		appendStringInfoString(out, "- and more\n");
		return;
	}
	appendStringInfo(out, "- %s", above);
	TellStep(out, w, plan, step);
}

/*
 * List the pending steps of a plan, and of those nested in it, beside the one
 * that blocks; above are the steps that hold the plan. A nested plan that was
 * told before is left out.
 */
static void
TellLeft(StringInfo out, const Wait *w, PlanRow *plan, const char *above, const pg_uuid_t *before, int *told)
{
	int			from = 1;
	StepRow    *step;

	check_stack_depth();
	while (*told <= STEPS_SHOWN && (step = NextLeft(w, plan, from)) != NULL)
	{
		pg_uuid_t	nested_id;

		from = step->order + 1;
		if (w->step != NULL && UuidEqual(&step->id, &w->step->id))
			continue;
		if (step->status == STEP_PENDING)
			TellPending(out, w, plan, step, above, told);
		else if (NestedPlanId(w->call, &step->id, &nested_id) && !(before && UuidEqual(&nested_id, before)))
			TellLeft(out, w, PlanMustRead(w->call, &nested_id), psprintf("%s%s/", above, step->name), NULL, told);
	}
}

/* Name the steps that hold a nested plan, from the plan that was asked for down; *up is the plan around it, or NULL. */
static char *
ParentsAbove(const Wait *w, const PlanRow *plan, PlanRow **up)
{
	char	   *above = "";

	*up = NULL;
	while (plan->nested && !UuidEqual(&plan->id, &w->asked->id))
	{
		StepRow    *parent_step = StepMustRead(w->call, &plan->parent_step_id);

		above = psprintf("%s/%s", parent_step->name, above);
		plan = PlanMustRead(w->call, &parent_step->plan_id);
		if (*up == NULL)
			*up = unconstify(PlanRow *, plan);
	}
	return above;
}

/* List what follows: in the plan of the step that blocks, then in those around it, and in others that are nested there. */
static void
TellRest(StringInfo out, const Wait *w)
{
	PlanRow    *plan = w->plan ? w->plan : w->asked;
	const pg_uuid_t *before = NULL;
	PlanRow    *up;
	int			told = 0;

	do
	{
		char	   *above = ParentsAbove(w, plan, &up);

		TellLeft(out, w, plan, above, before, &told);
		before = &plan->id;
		plan = up;
	} while (plan != NULL);
}

static char *
Handoff(Call *call, PlanRow *asked)
{
	Wait		w = WaitOf(call, asked);
	StringInfoData out;

	initStringInfo(&out);
	TellPlan(&out, asked);
	appendStringInfo(&out, "\n%s %s%s\n", w.reason ? "It stopped because" : "How it stands:", w.message,
					 EndsSentence(w.message) ? "" : ".");
	TellMoves(&out, &w);
	if (!PlanIsTerminal(asked->status))
		TellRest(&out, &w);
	else if (asked->outputs != NULL)
		appendStringInfo(&out, "Outputs: %s\n", JsonToText(JsonOf(asked->outputs)));
	return out.data;
}

Datum
stepwise_handoff(PG_FUNCTION_ARGS)
{
	Call		call;
	char	   *message;

	CallBeginReading(&call);
	message = Handoff(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0)));
	message = MemoryContextStrdup(call.outer, message);
	CallEnd(&call, NULL);
	PG_RETURN_TEXT_P(cstring_to_text(message));
}
