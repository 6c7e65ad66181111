/*
 * loop.c
 *	  the agent's loop: next, submit, advance, fail, retry, skip, release, heartbeat, cancel
 *
 * Each function locks the tree, reads the step again, moves it, settles the
 * plan, and answers.
 *
 * A client that lost an answer may repeat the call. A worker that asks for the
 * next step gets its claim again. A repeated submission is recognized by its
 * content, every other call by the state that it makes. It changes nothing, and
 * is answered with "duplicate". Duplicates are recognized before fence.c asks
 * whose claim it is.
 */
#include "api/api.h"

#include "datatype/timestamp.h"
#include "miscadmin.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

/* ---------- checks ---------- */

/* Read an interval that must be positive and not too long; NULL if none is given. */
static Interval *
ArgumentInterval(FunctionCallInfo fcinfo, int n, const char *what)
{
	Interval	zero = {0};
	Interval	longest = {.month = 100 * MONTHS_PER_YEAR};
	Interval   *interval;

	if (PG_ARGISNULL(n))
		return NULL;
	interval = PG_GETARG_INTERVAL_P(n);
	if (DatumGetInt32(DirectFunctionCall2(interval_cmp, IntervalPGetDatum(interval), IntervalPGetDatum(&longest))) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("%s must not be longer than 100 years", what),
				 errhint("Use an interval such as '5 minutes'.")));
	if (DatumGetInt32(DirectFunctionCall2(interval_cmp, IntervalPGetDatum(interval), IntervalPGetDatum(&zero))) <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("%s must be longer than nothing", what),
				 errhint("Use an interval such as '5 minutes'.")));
	return interval;
}

/* ---------- next ---------- */

/* arguments of a claim */
typedef struct Claim
{
	const char *worker;			/* NULL if not given */
	Interval   *lease;			/* NULL if not given */
	bool		run_tools;		/* the database has run its tools before; stop where it stopped */
} Claim;

/* A look back from a step bounds its cost, because it is made for each step of a long plan. */
#define BEFORE_WINDOW	100		/* steps that are looked at */
#define BEFORE_MAX		50		/* steps that are named */

/*
 * List the earlier steps that failed, the last ones first, at most max. An index
 * knows the failures that are open. Others are listed if they are not far back;
 * get_plan_status lists all.
 */
static List *
FailedBefore(Call *call, const PlanRow *plan, const StepRow *step, int max)
{
	int			from = step->order - BEFORE_WINDOW;
	List	   *failed = StepsBetween(call, "step_order_unique", &plan->id, STEP_FAILED, from, step->order, max);

	return list_concat(failed, StepsBetween(call, "step_paused", &plan->id, STEP_FAILED, 1, from, max - list_length(failed)));
}

/* Put the names of earlier steps that failed, if there are any. */
static void
PutFailedBefore(JsonBuilder *b, Call *call, const PlanRow *plan, const StepRow *step)
{
	List	   *failed = FailedBefore(call, plan, step, Min(plan->counts[STEP_FAILED], BEFORE_MAX));
	List	   *names = NIL;
	ListCell   *cell;

	foreach(cell, failed)
		names = lcons(((const StepRow *) lfirst(cell))->name, names);
	if (names != NIL)
		JsonPutTexts(b, "failedBefore", names);
	if (list_length(names) == BEFORE_MAX)
		JsonPutInt(b, "failedCount", plan->counts[STEP_FAILED]);
}

/*
 * List the earlier steps in progress, the last ones first, at most max. There is
 * no index of them. Those who work on one plan together are close to each
 * other, so look at the nearest steps first, and further back only if some are
 * missing. A claim that was lost long ago is not searched for;
 * get_plan_context shows all claims.
 */
static List *
ClaimedBefore(Call *call, const PlanRow *plan, const StepRow *step, int max)
{
	int			first = step->order - Min(2 * max, BEFORE_WINDOW);
	List	   *claimed = StepsBetween(call, "step_order_unique", &plan->id, STEP_IN_PROGRESS, first, step->order, max);

	return list_concat(claimed, StepsBetween(call, "step_order_unique", &plan->id, STEP_IN_PROGRESS,
											step->order - BEFORE_WINDOW, first, max - list_length(claimed)));
}

/* Check whether somebody else than the worker of a step holds an earlier one. */
static bool
IsHeldByOther(const StepRow *before, const StepRow *step)
{
	if (StepNests(before) || before->sent_back)
		return false;
	return step->worker == NULL || before->worker == NULL || strcmp(before->worker, step->worker) != 0;
}

/* Put one earlier step that somebody else holds. */
static void
PutOpenStep(JsonBuilder *b, const PlanRow *plan, const StepRow *step)
{
	JsonObjectStart(b, NULL);
	JsonPutText(b, "name", step->name);
	JsonPutTextIfSet(b, "worker", WorkerShown(step));
	JsonPutTime(b, "since", step->started_at);
	JsonPutBool(b, "stalled", ClaimIsStalled(plan, step));
	JsonObjectEnd(b);
}

/* Put the earlier steps of a sequence that others hold, if there are any. */
static void
PutOpenBefore(JsonBuilder *b, Call *call, const PlanRow *plan, const StepRow *step)
{
	List	   *open = NIL;
	ListCell   *cell;

	/* the step itself is in progress by now */
	if (!plan->sequential || plan->counts[STEP_IN_PROGRESS] < 2)
		return;
	foreach(cell, ClaimedBefore(call, plan, step, plan->counts[STEP_IN_PROGRESS] - 1))
		if (list_length(open) < BEFORE_MAX && IsHeldByOther(lfirst(cell), step))
			open = lcons(lfirst(cell), open);
	if (open == NIL)
		return;
	JsonArrayStart(b, "openBefore");
	foreach(cell, open)
		PutOpenStep(b, plan, lfirst(cell));
	JsonArrayEnd(b);
	if (list_length(open) == BEFORE_MAX)
		JsonPutInt(b, "inProgressCount", plan->counts[STEP_IN_PROGRESS]);
}

static Jsonb *
ReadyAnswer(Call *call, const Next *next, bool again)
{
	PlanRow    *plan = next->plan;
	const StepRow *step = next->step;
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "status", "step_ready");
	JsonPutUuid(&b, "planId", &plan->id);
	JsonPutUuid(&b, "rootPlanId", &plan->root_id);
	JsonPutText(&b, "planStatus", PlanStatusName[plan->status]);
	/* a workflow without a description has no goal of its own */
	JsonPutText(&b, "goal", *plan->goal ? plan->goal : plan->root->goal);
	PutPath(&b, plan, step);
	JsonPutUuid(&b, "stepId", &step->id);
	JsonPutText(&b, "stepStatus", StepStatusName[step->status]);
	JsonPutInt(&b, "stepOrder", step->order);
	JsonPutText(&b, "name", step->name);
	JsonPutText(&b, "stepType", step->type);
	JsonPutTextIfSet(&b, "tool", step->tool);
	if (step->tool != NULL)
		JsonPutBool(&b, "inDatabase", next->tool != NULL && next->tool->function != NULL);
	JsonPutTextIfSet(&b, "instructions", next->instructions);
	JsonPutJson(&b, "arguments", StepInputs(step));
	JsonPutJsonIfSet(&b, "resources", next->resources);
	JsonPutInt(&b, "attempt", step->attempt);
	JsonPutTimeIfSet(&b, "leaseExpiresAt", step->lease_expires_at);
	JsonPutTextIfSet(&b, "feedback", TextOf(step->feedback));
	JsonPutJsonIfSet(&b, "previousResult", JsonOf(step->previous));
	JsonPutTextIfSet(&b, "previousError", step->previous_error);
	PutOpenBefore(&b, call, plan, step);
	PutFailedBefore(&b, call, plan, step);
	if (again)
		JsonPutBool(&b, "again", true);
	JsonObjectEnd(&b);
	return ReadyBound(JsonFinish(&b), step);
}

/* Record that another session continues the plan. */
void
PlanNoteSession(Call *call, PlanRow *plan)
{
	JsonBuilder b = {0};
	char	   *before = plan->session_id;

	if (call->session == NULL || (before && strcmp(before, call->session) == 0))
		return;
	plan->session_id = pstrdup(call->session);
	PlanTouch(plan);
	if (before == NULL)
		return;
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "from", before);
	JsonPutText(&b, "to", call->session);
	JsonObjectEnd(&b);
	AuditAppend(call, plan, NULL, "session_resumed", JsonFinish(&b));
}

/*
 * Hand out a claim again to the worker that holds it. The question is a sign
 * of life of the worker, and so of the plan.
 */
static Jsonb *
ClaimAgain(Call *call, PlanRow *root, StepRow *step, const Claim *claim)
{
	Next		next = {.plan = PlanInTree(call, root, &step->plan_id), .step = step};

	next.instructions = ClaimedInstructions(call, next.plan, step);
	next.resources = ClaimedResources(call, next.plan, step);
	next.tool = step->tool ? ToolFind(call, step->tool) : NULL;
	step->active_at = GetCurrentTimestamp();
	if (claim->lease != NULL)
	{
		root->leases = true;
		PlanTouch(root);
		step->lease_expires_at = TimeAfter(step->active_at, claim->lease);
	}
	StepSave(call, step);
	next.plan->moved = true;
	PlanSettle(call, next.plan);
	return ReadyAnswer(call, &next, true);
}

/* Claim a step for a worker, if one is named, and start it. */
static void
ClaimStep(Call *call, Next *next, const Claim *claim)
{
	StepRow    *step = next->step;

	if (claim->worker != NULL)
		step->worker = step->holder = pstrdup(claim->worker);
	if (claim->lease != NULL)
	{
		next->plan->root->leases = true;
		PlanTouch(next->plan->root);
		step->lease_expires_at = TimeAfter(GetCurrentTimestamp(), claim->lease);
	}
	StepClaim(call, next, NULL);
}

/* Hand out the claim that the worker holds, or else claim the next step. */
static Jsonb *
ClaimNext(Call *call, PlanRow *asked, const Claim *claim)
{
	Next		next = {.run_tools = claim->run_tools};
	StepRow    *held = NULL;

	if (claim->worker != NULL && !PlanIsTerminal(asked->root->status))
		held = ClaimOfWorker(call, asked->root, claim->worker);
	if (held != NULL)
		return ClaimAgain(call, asked->root, held, claim);
	if (!NextFind(call, asked, &next))
		return NextAnswer(call, asked, claim->run_tools);
	ClaimStep(call, &next, claim);
	return ReadyAnswer(call, &next, false);
}

/* Claim the next step of the asked plan, after expired claims of the tree are released. */
static Jsonb *
NextStep(Call *call, PlanRow *asked, const Claim *claim)
{
	call->actor = claim->worker;
	PlanNoteSession(call, asked);
	if (!PlanIsTerminal(asked->root->status))
		ReleaseExpired(call, asked->root);
	return ClaimNext(call, asked, claim);
}

/* Read and check worker, lease and session, from argument number first on. */
static Claim
ArgumentClaim(FunctionCallInfo fcinfo, Call *call, int first)
{
	Claim		claim = {0};

	claim.worker = ArgumentWorker(fcinfo, first);
	claim.lease = ArgumentInterval(fcinfo, first + 1, "lease");
	CallInSession(call, ArgumentText(fcinfo, first + 2));
	return claim;
}

/* Run the tools of the database as far as a run goes, for the worker and the session of a claim. */
static void
RunForAgent(FunctionCallInfo fcinfo, const char *tenant)
{
	Run			run = {.tenant = tenant, .left = INT_MAX, .run_tools = true};
	Call		call;

	/* check the arguments before any tool runs */
	CallBeginIn(&call, tenant);
	ArgumentClaim(fcinfo, &call, 1);
	CallEnd(&call, NULL);
	run.plan_id = ArgumentUuid(fcinfo, 0);
	run.actor = ArgumentText(fcinfo, 1);
	run.session = ArgumentText(fcinfo, 3);
	RunTurns(&run);
}

/* Claim the next step of a plan, or tell why there is none. */
PG_FUNCTION_INFO_V1(stepwise_get_next_step);
Datum
stepwise_get_next_step(PG_FUNCTION_ARGS)
{
	const char *tenant = TenantOfCaller();
	bool		run_tools = ArgumentFlag(fcinfo, 4);
	Call		call;
	Claim		claim;

	if (run_tools)
		RunForAgent(fcinfo, tenant);
	CallBeginIn(&call, tenant);
	claim = ArgumentClaim(fcinfo, &call, 1);
	claim.run_tools = run_tools;
	return CallEnd(&call, NextStep(&call, PlanLock(&call, ArgumentUuid(fcinfo, 0)), &claim));
}

/* ---------- submit ---------- */

/* arguments of submit_step_result and advance, in their order */
enum
{
	SUBMIT_STEP_ID, SUBMIT_RESULT, SUBMIT_SUMMARY, SUBMIT_CONFIDENCE, SUBMIT_REPORT, SUBMIT_NOTES, SUBMIT_OUTCOME,
	SUBMIT_ATTEMPT, SUBMIT_WORKER
};

typedef struct Submission
{
	Jsonb	   *result;
	char	   *summary;
	Numeric		confidence;		/* NULL if not given */
	Jsonb	   *report;
	char	   *notes;
	Outcome		outcome;
} Submission;

/* Read a confidence in the type in which it is stored; NULL if none is given. */
static Numeric
ArgumentConfidence(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		return NULL;
	CheckConfidence(PG_GETARG_FLOAT8(n));
	return DatumGetNumeric(DirectFunctionCall1(float8_numeric, PG_GETARG_DATUM(n)));
}

/* Read and check the arguments of a submission. */
static Submission
ArgumentSubmission(FunctionCallInfo fcinfo)
{
	Submission	s = {0};

	s.result = ArgumentJson(fcinfo, SUBMIT_RESULT);
	s.summary = ArgumentText(fcinfo, SUBMIT_SUMMARY);
	s.confidence = ArgumentConfidence(fcinfo, SUBMIT_CONFIDENCE);
	s.report = ArgumentExecutionReport(fcinfo, SUBMIT_REPORT);
	s.notes = ArgumentText(fcinfo, SUBMIT_NOTES);
	s.outcome = CheckOutcome(ArgumentText(fcinfo, SUBMIT_OUTCOME));
	CheckResultGiven(s.result);
	CheckJsonLimits(s.result, "result");
	CheckTextLimit(s.summary, "result_summary");
	CheckTextLimit(s.notes, "output_formatting_notes");
	return s;
}

static bool
SameText(const char *given, const struct varlena *stored)
{
	if (given == NULL || stored == NULL)
		return given == NULL && stored == NULL;
	return strcmp(given, text_to_cstring((text *) stored)) == 0;
}

static bool
SameJson(const Jsonb *given, const struct varlena *stored)
{
	return JsonEqual(given, stored ? DatumGetJsonbP(PointerGetDatum(stored)) : NULL);
}

static bool
SameNumber(Numeric given, const struct varlena *stored)
{
	if (given == NULL || stored == NULL)
		return given == NULL && stored == NULL;
	return DatumGetBool(DirectFunctionCall2(numeric_eq, NumericGetDatum(given), PointerGetDatum(stored)));
}

/* Put a submission into the row of its step. */
static void
SubmissionPut(StepRow *step, const Submission *s)
{
	step->result = (struct varlena *) s->result;
	step->result_summary = s->summary ? (struct varlena *) cstring_to_text(s->summary) : NULL;
	step->confidence = (struct varlena *) s->confidence;
	step->execution_report = (struct varlena *) s->report;
	step->output_formatting_notes = s->notes ? (struct varlena *) cstring_to_text(s->notes) : NULL;
	step->outcome = s->outcome;
}

/* Check whether this submission waits at the gate after the step. */
static bool
IsWaiting(Call *call, const StepRow *step, const Submission *s)
{
	StepRow		submitted = {0};

	if (!StepHasGate(step, GATE_AFTER))
		return false;
	SubmissionPut(&submitted, s);
	return JsonEqual(CheckpointSubmission(call, step), SubmissionOf(&submitted));
}

/* Check whether the step was submitted with this before. Then the client has only lost the answer. */
static bool
IsDuplicate(Call *call, const StepRow *step, const Submission *s)
{
	if (IsWaiting(call, step, s))
		return true;
	return step->status == STEP_COMPLETED && step->outcome == s->outcome && SameJson(s->result, step->result) &&
		SameText(s->summary, step->result_summary) && SameNumber(s->confidence, step->confidence) &&
		SameJson(s->report, step->execution_report) && SameText(s->notes, step->output_formatting_notes);
}

/* Build the answer of a submission. One that waits at a gate names its checkpoint. */
static Jsonb *
SubmitAnswer(const PlanRow *plan, const StepRow *step, bool duplicate)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	if (step->status == STEP_AWAITING_INPUT && step->pause_reason != NULL)
		JsonPutText(&b, "checkpointId", JsonGetText(JsonOf(step->pause_reason), "checkpointId"));
	JsonPutText(&b, "outcome", OutcomeName[step->outcome]);
	JsonPutJsonIfSet(&b, "branch", plan->branch);
	if (duplicate)
		JsonPutBool(&b, "duplicate", true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Complete a step with its result. A pending step is started first. "advances": the call claims the next step too. */
static Jsonb *
SubmitStep(Call *call, PlanRow *plan, StepRow *step, const Claimant *claimant, const Submission *s, bool advances)
{
	CheckAttempt(call, step, claimant);
	CheckByWorker(call, step, "submitted");
	if (IsDuplicate(call, step, s))
	{
		plan->branch = BranchTaken(call, plan, step);
		PlanTouch(plan);
		return SubmitAnswer(plan, step, true);
	}
	PlanCheckOpen(call, plan);
	CheckClaim(call, step, claimant);
	if (step->status == STEP_PENDING)
	{
		CheckDue(call, plan, step);
		if (claimant->worker != NULL)
			step->worker = pstrdup(claimant->worker);
		StepMove(call, plan, step, STEP_IN_PROGRESS, NULL);
	}
	CheckInProgress(call, step, STEP_COMPLETED, "Only a step that is pending or in progress can be submitted.");
	SubmissionPut(step, s);
	StepSubmit(call, plan, step, NULL);
	/* the next step is often one that this one releases; then its row is written once */
	if (advances && !plan->sequential)
		RowsKeep(call);
	PlanSettle(call, plan);
	return SubmitAnswer(plan, step, false);
}

/* Complete a step with its result. */
PG_FUNCTION_INFO_V1(stepwise_submit_step_result);
Datum
stepwise_submit_step_result(PG_FUNCTION_ARGS)
{
	Call		call;
	Submission	s;
	Claimant	claimant;
	PlanRow    *plan;
	StepRow    *step;

	CallBegin(&call);
	s = ArgumentSubmission(fcinfo);
	claimant = ArgumentClaimant(fcinfo, &call, SUBMIT_ATTEMPT, SUBMIT_WORKER);
	plan = PlanLockOfStep(&call, ArgumentUuid(fcinfo, SUBMIT_STEP_ID), &step);
	return CallEnd(&call, SubmitStep(&call, plan, step, &claimant, &s, false));
}

/* Complete a step with its result, and claim the next step of the tree, in one round trip. */
PG_FUNCTION_INFO_V1(stepwise_advance);
Datum
stepwise_advance(PG_FUNCTION_ARGS)
{
	Call		call;
	Submission	s;
	Claimant	claimant;
	Claim		claim;
	PlanRow    *plan;
	StepRow    *step;
	Jsonb	   *submitted;
	JsonBuilder b = {0};

	CallBegin(&call);
	s = ArgumentSubmission(fcinfo);
	claimant = ArgumentClaimant(fcinfo, &call, SUBMIT_ATTEMPT, SUBMIT_WORKER);
	claim = ArgumentClaim(fcinfo, &call, SUBMIT_WORKER);
	plan = PlanLockOfStep(&call, ArgumentUuid(fcinfo, SUBMIT_STEP_ID), &step);
	submitted = SubmitStep(&call, plan, step, &claimant, &s, true);
	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "submitted", submitted);
	JsonPutJson(&b, "next", NextStep(&call, plan->root, &claim));
	JsonObjectEnd(&b);
	return CallEnd(&call, JsonFinish(&b));
}

/* ---------- other moves ---------- */

static void
CheckErrorGiven(const char *error)
{
	if (error == NULL || *error == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("a failed step needs an error"),
				 errhint("Say in a sentence what went wrong.")));
	CheckTextLimit(error, "error");
}

/* Read the code that says which error it was; NULL if none is given. */
static char *
ArgumentCode(FunctionCallInfo fcinfo, int n)
{
	char	   *code = ArgumentText(fcinfo, n);

	CheckNameLimit(code, "code");
	if (code != NULL && TextIsBlank(code))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("code must not be empty"),
				 errhint("Leave it out, or give a short text such as ETIMEOUT.")));
	return code;
}

/* Build what is kept of a failure beside its message; NULL if there is nothing more. */
static struct varlena *
ErrorWithCode(const char *error, const char *code)
{
	if (code == NULL)
		return NULL;
	return (struct varlena *) JsonMerge(JsonTextOf("error", error), JsonTextOf("code", code));
}

/* arguments of fail_step, in their order */
enum
{
	FAIL_STEP_ID, FAIL_ERROR, FAIL_RETRYABLE, FAIL_ATTEMPT, FAIL_REPORT, FAIL_CODE, FAIL_WORKER
};

/* Give up a step that has failed already; a failure that is not open was given up before. */
static Jsonb *
FailAgain(Call *call, PlanRow *plan, StepRow *step, const Claimant *claimant)
{
	if (plan->on_failure != ON_FAILURE_STOP || step->pause_reason == NULL)
		return DuplicateAnswer(call, plan, step);
	CheckFailedClaim(call, step, claimant);
	StepGiveUp(call, plan, step);
	PlanSettle(call, plan);
	return MovedAnswer(call, plan, step);
}

/* Report that a step could not be done. */
PG_FUNCTION_INFO_V1(stepwise_fail_step);
Datum
stepwise_fail_step(PG_FUNCTION_ARGS)
{
	Call		call;
	Claimant	claimant;
	char	   *error;
	char	   *code;
	Jsonb	   *report;
	PlanRow    *plan;
	StepRow    *step;

	CallBegin(&call);
	error = ArgumentText(fcinfo, FAIL_ERROR);
	CheckErrorGiven(error);
	code = ArgumentCode(fcinfo, FAIL_CODE);
	report = ArgumentExecutionReport(fcinfo, FAIL_REPORT);
	claimant = ArgumentClaimant(fcinfo, &call, FAIL_ATTEMPT, FAIL_WORKER);
	plan = PlanLockOfStep(&call, ArgumentUuid(fcinfo, FAIL_STEP_ID), &step);
	CheckAttempt(&call, step, &claimant);
	CheckDoor(&call, step);
	if (step->status == STEP_FAILED)
		return CallEnd(&call, FailAgain(&call, plan, step, &claimant));
	CheckClaim(&call, step, &claimant);
	CheckMayEnd(&call, step);
	step->message = error;
	step->error = ErrorWithCode(error, code);
	StepReport(step, report);
	step->given_up = true;
	if (!PG_ARGISNULL(FAIL_RETRYABLE))
		step->retryable = PG_GETARG_BOOL(FAIL_RETRYABLE);
	StepMove(&call, plan, step, STEP_FAILED, code ? JsonTextOf("code", code) : NULL);
	PlanSettle(&call, plan);
	return CallEnd(&call, MovedAnswer(&call, plan, step));
}

/* Say whether a step was retried before. Only the audit log knows that. */
static bool
WasRetried(Call *call, const StepRow *step)
{
	static KeptQuery find = {
		"SELECT FROM stepwise.audit AS a WHERE a.tenant = $1 AND a.plan_id = $2 AND a.step_id = $3"
		" AND a.event = 'step_retried' LIMIT 1",
		3, {TEXTOID, UUIDOID, UUIDOID}, .reads_log = true
	};
	Params		params = {0};
	Rows		rows;

	ParamKey(&params, call, &step->plan_id);
	ParamUuid(&params, &step->id);
	rows = QueryRun(&find, &params);
	return rows.count > 0;
}

/* Put a failed step back to pending. */
PG_FUNCTION_INFO_V1(stepwise_retry_step);
Datum
stepwise_retry_step(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanRow    *plan;
	StepRow    *step;

	CallBegin(&call);
	plan = PlanLockOfStep(&call, ArgumentUuid(fcinfo, 0), &step);
	if (step->status == STEP_PENDING && WasRetried(&call, step))
		return CallEnd(&call, DuplicateAnswer(&call, plan, step));
	PlanCheckOpen(&call, plan);
	CheckFailed(&call, step);
	/* maxAttempts counts anew; the number of the attempt goes on, since it fences the claims */
	step->attempts_before = step->attempt;
	StepMove(&call, plan, step, STEP_PENDING, NULL);
	PlanSettle(&call, plan);
	return CallEnd(&call, MovedAnswer(&call, plan, step));
}

/* Skip a step. */
PG_FUNCTION_INFO_V1(stepwise_skip_step);
Datum
stepwise_skip_step(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanRow    *plan;
	StepRow    *step;
	char	   *reason;

	CallBegin(&call);
	reason = ArgumentText(fcinfo, 1);
	CheckTextLimit(reason, "reason");
	plan = PlanLockOfStep(&call, ArgumentUuid(fcinfo, 0), &step);
	if (step->status == STEP_SKIPPED)
		return CallEnd(&call, DuplicateAnswer(&call, plan, step));
	CheckDoor(&call, step);
	CheckMayEnd(&call, step);
	step->message = reason;
	StepMove(&call, plan, step, STEP_SKIPPED, NULL);
	PlanSettle(&call, plan);
	return CallEnd(&call, MovedAnswer(&call, plan, step));
}

/* Give a claimed step back. */
PG_FUNCTION_INFO_V1(stepwise_release_step);
Datum
stepwise_release_step(PG_FUNCTION_ARGS)
{
	Call		call;
	Claimant	claimant;
	PlanRow    *plan;
	StepRow    *step;

	CallBegin(&call);
	claimant = ArgumentClaimant(fcinfo, &call, 1, 2);
	plan = PlanLockOfStep(&call, ArgumentUuid(fcinfo, 0), &step);
	CheckByWorker(&call, step, "released");
	/* a step that was never claimed cannot have been released */
	if (step->status == STEP_PENDING && step->attempt > 0 && !NamesOtherAttempt(step, &claimant))
		return CallEnd(&call, DuplicateAnswer(&call, plan, step));
	CheckAttempt(&call, step, &claimant);
	PlanCheckOpen(&call, plan);
	CheckInProgress(&call, step, STEP_PENDING, "Only a step in progress can be released.");
	CheckNotSentBack(&call, step, STEP_PENDING);
	CheckClaim(&call, step, &claimant);
	StepRelease(&call, plan, step, "released");
	PlanSettle(&call, plan);
	return CallEnd(&call, MovedAnswer(&call, plan, step));
}

/* Note a sign of life of a claim, and extend its lease if asked to. */
static Jsonb *
Heartbeat(Call *call, PlanRow *plan, StepRow *step, Interval *extend, Jsonb *report)
{
	JsonBuilder b = {0};

	step->active_at = GetCurrentTimestamp();
	if (extend != NULL)
	{
		step->lease_expires_at = TimeAfter(step->active_at, extend);
		plan->root->leases = true;
	}
	StepReport(step, report);
	StepSave(call, step);
	PlanTouch(plan->root);
	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	JsonPutInt(&b, "attempt", step->attempt);
	JsonPutTimeIfSet(&b, "leaseExpiresAt", step->lease_expires_at);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Show that a claimed step is being worked on. */
PG_FUNCTION_INFO_V1(stepwise_heartbeat);
Datum
stepwise_heartbeat(PG_FUNCTION_ARGS)
{
	Call		call;
	Interval   *extend;
	Jsonb	   *report;
	Claimant	claimant;
	PlanRow    *plan;
	StepRow    *step;

	CallBegin(&call);
	extend = ArgumentInterval(fcinfo, 2, "extend");
	report = ArgumentExecutionReport(fcinfo, 4);
	claimant = ArgumentClaimant(fcinfo, &call, 1, 3);
	plan = PlanLockOfStep(&call, ArgumentUuid(fcinfo, 0), &step);
	CheckByWorker(&call, step, "claimed");
	CheckAttempt(&call, step, &claimant);
	PlanCheckOpen(&call, plan);
	CheckNotSentBack(&call, step, STEP_IN_PROGRESS);
	CheckClaim(&call, step, &claimant);
	CheckInProgress(&call, step, STEP_IN_PROGRESS, "Only a step in progress has a heartbeat.");
	return CallEnd(&call, Heartbeat(&call, plan, step, extend, report));
}

static Jsonb *
CancelAnswer(const PlanRow *plan, bool duplicate)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutPlanAnswer(&b, plan);
	JsonPutInt(&b, "skippedSteps", plan->counts[STEP_SKIPPED]);
	if (duplicate)
		JsonPutBool(&b, "duplicate", true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* End a plan; its open steps become skipped. */
PG_FUNCTION_INFO_V1(stepwise_cancel_plan);
Datum
stepwise_cancel_plan(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanRow    *plan;
	char	   *reason;

	CallBegin(&call);
	reason = ArgumentText(fcinfo, 1);
	CheckTextLimit(reason, "reason");
	plan = PlanLock(&call, ArgumentUuid(fcinfo, 0));
	if (plan->status == PLAN_CANCELLED)
		return CallEnd(&call, CancelAnswer(plan, true));
	/* the plan around a nested one goes on without it */
	if (plan->nested)
		CheckMayEnd(&call, StepMustRead(&call, &plan->parent_step_id));
	CheckDoorOfCancel(&call, plan);
	PlanCancel(&call, plan, reason);
	PlanSettle(&call, plan);
	return CallEnd(&call, CancelAnswer(plan, false));
}
