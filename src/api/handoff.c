/*
 * handoff.c
 *	  say what a plan waits for: why for a program, handoff for a language model
 *
 * Both functions give the same answer. A Wait is what a plan waits for. Its
 * moves are what lets the plan go on: a tool that the client calls, a function
 * of the engine, or plain words. The first function of the engine among the
 * moves is the nextCall of why. Each type of pause reason has a line in
 * ReasonRules.
 *
 * Locks: none. Nothing is changed, and everything is read under one snapshot.
 */
#include "api/api.h"

#include "miscadmin.h"

#define STEPS_SHOWN		20		/* handoff lists at most this many steps */

typedef enum MoveKind
{
	MOVE_CALL,					/* a function of the engine */
	MOVE_TOOL,					/* a tool of the client */
	MOVE_WORDS					/* a sentence that says what to do */
} MoveKind;

typedef struct Move
{
	MoveKind	kind;
	const char *name;			/* of the function or tool; for MOVE_WORDS, the sentence */
	Jsonb	   *arguments;		/* of the function or tool; NULL for MOVE_WORDS */
	const char *note;			/* instructions for the call, or NULL */
} Move;

typedef struct Wait
{
	Call	   *call;
	PlanRow    *asked;			/* the plan that the caller asked about */
	PlanRow    *plan;			/* of the step that blocks, is claimed or is next; or NULL */
	StepRow    *step;			/* the step that blocks or is claimed, or NULL */
	const Jsonb *reason;		/* the pause reason of the plan, or NULL */
	const char *on;				/* person, client, agent or nobody */
	TimestampTz since;			/* when the wait began */
	char	   *message;		/* a sentence */
	List	   *moves;			/* of Move */
} Wait;

static Wait WaitOf(Call *call, PlanRow *asked);

/* ---------- moves ---------- */

/* Append a move. The caller may set its note. */
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

/* Build the arguments of a function that takes the plan. */
static Jsonb *
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

/* Let the client call the tool and report what it returned. */
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
	/* name the plan of the step: in the plans above it, the name of the step may not be unique */
	JsonPutUuid(&b, "plan_id", &w->plan->id);
	JsonPutText(&b, "tool", tool);
	JsonPutText(&b, "step_name", w->step->name);
	JsonPutText(&b, "result", psprintf("<result of %s>", tool));
	JsonObjectEnd(&b);
	AddMove(w, MOVE_CALL, "record_tool_result", JsonFinish(&b));
}

/* Let the agent follow the instructions and submit the result. A step that was claimed before has to be claimed again. */
static void
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
	JsonPutText(&b, "result", "<your result>");
	if (step->status == STEP_IN_PROGRESS)
		JsonPutInt(&b, "attempt", step->attempt);
	JsonObjectEnd(&b);
	AddMove(w, MOVE_CALL, "submit_step_result", JsonFinish(&b));
}

/* Let the agent skip the step. */
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

/* Let the agent skip a step that only the engine can do. Another step may do its work. */
static void
MoveLeaveOut(Wait *w)
{
	const StepRow *step = w->step;

	AddMove(w, MOVE_WORDS, psprintf("Step \"%s\" %s, so it takes no result from outside: leave it out."
									" If its work is needed, first add another step for it with stepwise.modify_plan.",
									step->name, StepDoes(step)), NULL);
	MoveSkip(w);
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
	{
		AddMove(w, MOVE_WORDS, psprintf("Step \"%s\" cannot be done as it is: give it what it lacks with"
										" stepwise.modify_plan(plan_id, 'update_step', params), or leave it out.",
										w->step->name), NULL);
		MoveSkip(w);
	}
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
	else if (!ToolIsInDatabase(w->call, w->step->tool))
		MoveRetry(w);
	else
	{
		AddMove(w, MOVE_WORDS, psprintf("Tool \"%s\" is in the database. If what made it fail can be mended, do that and call"
										" stepwise.retry_step; otherwise leave the step out.", w->step->tool), NULL);
		MoveSkip(w);
	}
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
	AddMove(w, MOVE_WORDS, psprintf("Decide whether step \"%s\" is to be done: if so, change its condition with"
									" stepwise.modify_plan(plan_id, 'update_step', params); otherwise leave it out.",
									w->step->name), NULL);
	MoveSkip(w);
}

/* Let a person answer a prompt. */
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

/* Let a person decide a review. */
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

/* Let the agent change the step as its review asked. */
static void
MoveChange(Wait *w)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "plan_id", &w->plan->id);
	JsonPutText(&b, "action", "update_step");
	JsonObjectStart(&b, "params");
	JsonPutText(&b, "step", w->step->name);
	JsonPutText(&b, "arguments", "<the changed arguments, or another key of the step>");
	JsonObjectEnd(&b);
	JsonObjectEnd(&b);
	AddMove(w, MOVE_CALL, "modify_plan", JsonFinish(&b));
	MoveSkip(w);
}

/* ---------- sentences ---------- */

/* Does the text end with a punctuation mark? */
static bool
EndsSentence(const char *text)
{
	size_t		length = strlen(text);

	return length > 0 && strchr(".?!", text[length - 1]) != NULL;
}

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

/* Append what a tool said in addition to its message, as a sentence of its own. */
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
}			ReasonRules[REASON_TYPES] = {
	[REASON_UNRESOLVABLE_PARAMS] = {"client", SayUnresolvable, MoveSupply},
	[REASON_UNRESOLVED_DEPENDENCY] = {"client", SayDependency, MoveAfterProducer},
	[REASON_CONDITION_ERROR] = {"client", SayCondition, MoveAfterCondition},
	[REASON_CLIENT_TOOL] = {"client", SayClient, MoveDoIt},
	[REASON_SCHEMA_MISMATCH] = {"client", SayMismatch, MoveDoIt},
	[REASON_TOOL_ERROR] = {"client", SayError, MoveAfterError},
	[REASON_RESOURCE_ERROR] = {"client", SayResource, MoveRetry},
	[REASON_INPUT_REQUIRED] = {"person", SayInput, MoveResume},
	[REASON_REVIEW_REQUESTED] = {"person", SayReview, MoveDecide},
	[REASON_CHANGES_REQUESTED] = {"client", SayChanges, MoveChange},
};

/* ---------- what a plan waits for ---------- */

/*
 * Find since when the step waits: since its checkpoint was opened, since it
 * failed, or since its plan paused.
 */
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

	ParamKey(&params, w->call, &w->plan->id);
	ParamUuid(&params, &w->step->id);
	ParamTime(&params, w->step->completed_at);
	rows = QueryRun(&find, &params);
	return RowTime(&rows, 0, 1);
}

/* Describe the wait of a plan with a pause reason. */
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

/* Describe a plan that has ended. It waits for nobody. */
static void
WaitOfEnded(Wait *w)
{
	const PlanRow *plan = w->asked;

	w->on = "nobody";
	w->since = plan->completed_at;
	w->message = psprintf("the plan is %s%s", PlanStatusName[plan->status], Because(plan->message));
}

/* Say that a step is next, and what will happen to it. */
static char *
SayNext(const StepRow *step)
{
	if (step->sent_back)
		return psprintf("step \"%s\" is next: a review has sent it back", step->name);
	if (AttemptsUsedUp(step))
		return psprintf("step \"%s\" is next, and will fail: its attempts are used up", step->name);
	if (step->status == STEP_IN_PROGRESS)
		return psprintf("step \"%s\" is next: its lease has expired", step->name);
	return psprintf("step \"%s\" is next", step->name);
}

/* Say whether a run would come to the next step; a claim or an open failure before it stops a run. */
static bool
RunMayDo(Call *call, const Next *next)
{
	StepRow		step = *next->step;
	Next		run = {.run = true};
	Judgement	j = {0};

	return step.status == STEP_PENDING && StepIsDue(call, next->plan, &step, &run, &j) != DUE_HELD;
}

/*
 * Describe the wait for the next step. A run does it if its tool is in the
 * database; otherwise an agent does it.
 */
static void
WaitOfNext(Wait *w, const Next *next)
{
	const StepRow *step = next->step;
	bool		run = StepKindOf(step) == KIND_TOOL && ToolIsInDatabase(w->call, step->tool) && RunMayDo(w->call, next);

	w->plan = next->plan;
	w->on = "agent";
	w->since = w->plan->updated_at;
	w->message = SayNext(step);
	AddMove(w, MOVE_CALL, run ? "run" : "get_next_step", PlanArgument(w));
}

/* Is the step claimed? A step in progress that has a nested plan is not. */
static bool
IsClaim(const StepRow *step)
{
	return step->status == STEP_IN_PROGRESS && !StepNests(step);
}

/* the claims of a plan and of the plans nested in it */
#define CLAIMS_BELOW \
	"WITH RECURSIVE tree AS (SELECT $2 AS id UNION ALL" \
	" SELECT n.id FROM tree AS t JOIN stepwise.step AS h ON h.tenant = $1 AND h.plan_id = t.id" \
	" AND h.workflow IS NOT NULL AND h.status IN ('in_progress', 'awaiting_input')" \
	" JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = h.id AND n.completed_at IS NULL)" \
	" SELECT s.* FROM tree AS t JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = t.id" \
	" JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = t.id" \
	" WHERE p.in_progress > 0 AND s.status = 'in_progress' AND s.workflow IS NULL AND s.sent_back IS NULL"
#define OLDEST_FIRST \
	" ORDER BY coalesce(s.active_at, s.started_at), s.id LIMIT 1"

/* Find the claim that has been silent for longest; NULL if there is none. */
static StepRow *
OldestClaim(const Wait *w)
{
	static KeptQuery find = {CLAIMS_BELOW OLDEST_FIRST, 2, {TEXTOID, UUIDOID}};
	return StepFetchById(w->call, &find, &w->asked->id);
}

/* Find the claim that has been silent for longest among those that are stalled or expired; NULL if there is none. */
static StepRow *
OrphanedClaim(const Wait *w)
{
	static KeptQuery find = {
		CLAIMS_BELOW
		" AND (s.lease_expires_at < pg_catalog.clock_timestamp() OR pg_catalog.clock_timestamp() -"
		" coalesce(s.active_at, s.started_at) >= coalesce(s.stall_after, p.stall_after, $3))"
		OLDEST_FIRST,
		3, {TEXTOID, UUIDOID, INTERVALOID}
	};
	Params		params = {0};
	StepRow    *orphan;

	if (w->asked->counts[STEP_IN_PROGRESS] + w->asked->counts[STEP_AWAITING_INPUT] == 0)
		return NULL;
	ParamKey(&params, w->call, &w->asked->id);
	ParamDatum(&params, IntervalPGetDatum(DefaultStallAfter()));
	orphan = StepFetch(&find, &params);
	/* the plan may have been marked by a threshold that was given with a call */
	return orphan == NULL && w->asked->status == PLAN_STALLED ? OldestClaim(w) : orphan;
}

/* Say who holds a claim. */
static char *
SayClaim(const StepRow *step)
{
	return psprintf("step \"%s\" is in progress%s%s", step->name, step->worker ? ", claimed by " : "",
					step->worker ? step->worker : "");
}

/* Describe the wait for the end of a claimed step. */
static void
WaitOfClaim(Wait *w)
{
	w->plan = PlanMustRead(w->call, &w->step->plan_id);
	w->on = "agent";
	w->since = w->step->started_at;
	w->message = SayClaim(w->step);
	/* raw SQL may have started a prompt, which takes no result */
	if (StepRuleOf(w->step)->by_worker)
		MoveSubmit(w);
	else
		MoveLeaveOut(w);
}

/* Build the arguments of release_step; without the attempt a fenced claim would not be released. */
static Jsonb *
ClaimArgument(const StepRow *step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "step_id", &step->id);
	JsonPutInt(&b, "attempt", step->attempt);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Describe a claim that is stalled or expired: it comes before everything else, so that nobody passes it over. */
static void
WaitOfOrphan(Wait *w)
{
	bool		expired = TimeIsSet(w->step->lease_expires_at) && w->step->lease_expires_at < GetCurrentTimestamp();

	w->plan = PlanMustRead(w->call, &w->step->plan_id);
	w->on = "agent";
	w->since = w->step->started_at;
	w->message = psprintf("%s, and %s", SayClaim(w->step), expired ? "its lease has expired" : "shows no sign of life");
	/* release_step takes no threshold, so it releases the claim whichever threshold found it stalled */
	if (StepRuleOf(w->step)->by_worker)
		AddMove(w, MOVE_CALL, "release_step", ClaimArgument(w->step));
	else
		MoveLeaveOut(w);
	AddMove(w, MOVE_CALL, "get_next_step", PlanArgument(w));
}

/* Describe a plan in which nothing is claimed, next or blocked. */
static void
WaitOfNothing(Wait *w)
{
	w->on = "agent";
	w->since = w->asked->updated_at;
	w->message = pstrdup("nothing stands in its way");
	AddMove(w, MOVE_CALL, "get_next_step", PlanArgument(w));
}

/*
 * Describe the wait of a plan without a pause reason: the step that would be
 * handed out comes first, then the claim that has to end before. A nested plan
 * that is held back from above waits for what the plan above waits for.
 */
static void
WaitOfWork(Wait *w)
{
	Next		next = {0};
	StepRow    *before;

	if (NextPeek(w->call, w->asked, &next))
	{
		WaitOfNext(w, &next);
		return;
	}
	w->step = next.step && IsClaim(next.step) ? next.step : OldestClaim(w);
	if (w->step != NULL)
		WaitOfClaim(w);
	else if ((before = HeldAbove(w->call, w->asked, &next)) != NULL)
		*w = WaitOf(w->call, PlanMustRead(w->call, &before->plan_id));
	else
		WaitOfNothing(w);
}

/* Say whether the next search would hand out this claim, whose lease has expired. */
static bool
IsNext(const Wait *w, const StepRow *orphan)
{
	Next		next = {0};

	return w->reason == NULL && NextPeek(w->call, w->asked, &next) && UuidEqual(&next.step->id, &orphan->id);
}

/*
 * Find the step that blocks a plan; NULL if there is none. A pending step that
 * is held back does not block, although it still has the reason of an earlier
 * look: a step has come before it since.
 */
static StepRow *
BlockingStep(Call *call, PlanRow *asked)
{
	StepRow    *step = StepOfReason(call, asked);
	StepRow		again;
	Next		next = {0};
	Judgement	j = {0};

	if (step == NULL || step->status != STEP_PENDING)
		return step;
	again = *step;
	return StepIsDue(call, PlanMustRead(call, &step->plan_id), &again, &next, &j) == DUE_HELD ? NULL : step;
}

/*
 * A step that has to be changed cannot be changed while a person is asked in
 * its plan. Then the person comes first, as in the answer of get_next_step.
 */
static void
PersonFirst(Wait *w)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.status = 'awaiting_input'"
		" AND s.pause_reason IS NOT NULL ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};
	PlanRow		plan;
	StepRow    *asks;
	Params		params = {0};

	if (w->step == NULL || ReasonTypeOf(w->reason) != REASON_CHANGES_REQUESTED)
		return;
	/* a copy, because the caller may hold the plan and save it */
	plan = *PlanMustRead(w->call, &w->step->plan_id);
	ParamKey(&params, w->call, &plan.id);
	if (plan.status != PLAN_AWAITING_REVIEW || (asks = StepFetch(&find, &params)) == NULL)
		return;
	plan.pause_reason = asks->pause_reason;
	w->reason = JsonOf(plan.pause_reason);
	w->step = StepOfReason(w->call, &plan);
}

/* Find what a plan waits for. */
static Wait
WaitOf(Call *call, PlanRow *asked)
{
	Wait		w = {.call = call, .asked = asked};
	StepRow    *orphan;

	if (PlanIsTerminal(asked->status))
	{
		WaitOfEnded(&w);
		return w;
	}
	w.reason = asked->pause_reason ? JsonOf(asked->pause_reason) : NULL;
	orphan = OrphanedClaim(&w);
	if (orphan != NULL && !IsNext(&w, orphan))
	{
		w.reason = NULL;
		w.step = orphan;
		WaitOfOrphan(&w);
		return w;
	}
	if (w.reason != NULL)
	{
		w.step = BlockingStep(call, asked);
		PersonFirst(&w);
	}
	if (w.step != NULL)
		WaitOfReason(&w);
	else
	{
		w.reason = NULL;
		WaitOfWork(&w);
	}
	return w;
}

/* ---------- why ---------- */

/* Put the first function of the engine among the moves; null if there is none. */
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

/* Build {"nextCall": ...}, the call with which a plan goes on; null if there is none. */
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

/* Build the answer of why. */
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
	JsonPutJson(&b, "reason", asked->pause_reason ? JsonOf(asked->pause_reason) : NULL);
	JsonPutText(&b, "message", w.message);
	PutNextCall(&b, &w);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build what a run says about a plan that has not ended: the message and the next call of why. */
Jsonb *
WaitOfRun(Call *call, PlanRow *asked)
{
	Jsonb	   *why = Why(call, asked);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "message", JsonGetText(why, "message"));
	JsonPutJson(&b, "next_call", JsonGetJson(why, "nextCall"));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Explain to a program why a plan does not go on, and what to call next. */
PG_FUNCTION_INFO_V1(stepwise_why);
Datum
stepwise_why(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, Why(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0))));
}

/* ---------- handoff ---------- */

/* Write the name, goal, id, status and progress of the plan. */
static void
TellPlan(StringInfo out, const PlanRow *plan)
{
	appendStringInfo(out, "Plan \"%s\"%s%s\nPlan id: %s\nStatus: %s, %d of %d steps done\n", plan->name,
					 *plan->goal ? ": " : "", plan->goal, UuidText(&plan->id), PlanStatusName[plan->status],
					 plan->counts[STEP_COMPLETED] + plan->counts[STEP_SKIPPED], StepTotal(plan->counts));
}

/* Write the moves as a numbered list. */
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

/* Write one line that says what a pending step will do. */
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

/* Find the first step from an order on that is pending or has an open nested plan. */
static StepRow *
NextOpenStep(const Wait *w, const PlanRow *plan, int from)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order >= $3"
		" AND (s.status = 'pending' OR (s.workflow IS NOT NULL AND s.status IN ('in_progress', 'awaiting_input')))"
		" ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		3, {TEXTOID, UUIDOID, INT4OID}
	};
	Params		params = {0};

	ParamKey(&params, w->call, &plan->id);
	ParamInt(&params, from);
	return StepFetch(&find, &params);
}

/* List one pending step, unless the list is full. */
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
 * List the pending steps of a plan and of the plans nested in it, without the
 * step that blocks. "above" names the parent steps of the plan. "before" is a
 * nested plan that is listed already, or NULL.
 */
static void
TellOpenSteps(StringInfo out, const Wait *w, PlanRow *plan, const char *above, const pg_uuid_t *before, int *told)
{
	int			from = 1;
	StepRow    *step;

	check_stack_depth();
	while (*told <= STEPS_SHOWN && (step = NextOpenStep(w, plan, from)) != NULL)
	{
		pg_uuid_t	nested_id;

		from = step->order + 1;
		if (w->step != NULL && UuidEqual(&step->id, &w->step->id))
			continue;
		if (step->status == STEP_PENDING)
			TellPending(out, w, plan, step, above, told);
		else if (NestedPlanId(w->call, &step->id, &nested_id) && !(before && UuidEqual(&nested_id, before)))
			TellOpenSteps(out, w, PlanMustRead(w->call, &nested_id), psprintf("%s%s/", above, step->name), NULL, told);
	}
}

/*
 * Name the parent steps of a nested plan, from the plan that the caller asked
 * about downwards. Sets *up to the plan of its parent step, or to NULL if it
 * is the plan asked about.
 */
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

/*
 * List the steps that follow: first those in the plan of the step that blocks,
 * then those in each plan above it, up to the plan that the caller asked
 * about. Each plan is listed with the plans nested in it.
 */
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

		TellOpenSteps(out, w, plan, above, before, &told);
		before = &plan->id;
		plan = up;
	} while (plan != NULL);
}

/* Write the text of handoff. */
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

/* Tell a language model how a plan stands and how to continue it. */
PG_FUNCTION_INFO_V1(stepwise_handoff);
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
