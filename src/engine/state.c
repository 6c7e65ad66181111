/*
 * state.c
 *	  the one routine that moves a step, and what follows for its plan
 *
 * A move has two halves, because raw SQL comes in through triggers: StepStamp
 * checks and stamps the row before it is written, StepMoved counts and audits
 * after. StepMove is both with the write between them. What a move leads to
 * (branches, dependents, the status of the plan, its parent) is drawn once,
 * in PlanSettle, however many steps have moved; a queue instead of recursion,
 * so that a cascade of any length needs no stack.
 *
 * The clock is read once a call (CallNow): what moves together has one time.
 *
 * Locks: the caller holds the tree's root and the plan.
 */
#include "api/api.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"

#define MESSAGE_BYTES	2000	/* of a message that is taken from a result */

/* ---------- moving a step ---------- */

/* the audit event of a move, by the state that it leads to */
static const char *const EventTo[STEP_STATUSES] = {
	[STEP_PENDING] = "step_released",
	[STEP_IN_PROGRESS] = "step_started",
	[STEP_AWAITING_INPUT] = "step_waiting",
	[STEP_COMPLETED] = "step_completed",
	[STEP_FAILED] = "step_failed",
	[STEP_SKIPPED] = "step_skipped",
};

static const char *
EventOf(StepStatus from, StepStatus to)
{
	if (from == STEP_FAILED && (to == STEP_PENDING || to == STEP_IN_PROGRESS))
		return "step_retried";
	if (from == STEP_AWAITING_INPUT && to == STEP_IN_PROGRESS)
		return "step_resumed";
	return EventTo[to];
}

/* what to call instead, for the hint of a refused move, by the state that the step is in */
static const char *const HintFrom[STEP_STATUSES] = {
	[STEP_PENDING] = "Claim the step first, with stepwise.get_next_step(plan_id).",
	[STEP_IN_PROGRESS] = "Submit the step with stepwise.submit_step_result(step_id, result), or give it back with stepwise.release_step(step_id).",
	[STEP_AWAITING_INPUT] = "Answer its checkpoint with stepwise.submit_user_decision or stepwise.resume; the view stepwise.checkpoints lists them.",
	[STEP_COMPLETED] = "A completed step is final. Add a step with stepwise.modify_plan to do more work.",
	[STEP_FAILED] = "Put the step back with stepwise.retry_step(step_id), or skip it with stepwise.skip_step(step_id).",
	[STEP_SKIPPED] = "A skipped step is final. Add a step with stepwise.modify_plan to do the work after all.",
};

/* Those that only the engine does can be neither claimed nor submitted. */
static const char *
HintOf(const StepRow *step)
{
	if (step->workflow != NULL && (step->status == STEP_PENDING || step->status == STEP_IN_PROGRESS))
		return "stepwise.get_next_step(plan_id) hands out the steps of its nested plan; stepwise.skip_step(step_id) ends it.";
	if (step->prompt != NULL && step->status == STEP_PENDING)
		return "stepwise.get_next_step(plan_id) opens its checkpoint; stepwise.resume(checkpoint_id, response) answers it.";
	return HintFrom[step->status];
}

/*
 * Refuse a move. A function may take a narrower path than the transition table;
 * then rule says in a sentence which. NULL: it is the table that refuses.
 */
void
StepTransitionRefuse(const StepRow *step, StepStatus to, const char *rule)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TRANSITION),
			 errmsg("step \"%s\" cannot go from %s to %s", step->name, StepStatusName[step->status], StepStatusName[to]),
			 rule ? errdetail("%s", rule)
			 : errdetail("Allowed from %s: %s.", StepStatusName[step->status], StepTransitionsText(step->status)),
			 errhint("%s", HintOf(step))));
}

static void
CheckTransition(const StepRow *step, StepStatus to)
{
	if (!StepTransitionAllowed(step->status, to))
		StepTransitionRefuse(step, to, NULL);
}

void
PlanCheckOpen(const PlanRow *plan)
{
	if (PlanIsTerminal(plan->status))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("plan \"%s\" is %s", plan->name, PlanStatusName[plan->status]),
				 errdetail("Steps of a plan that has ended do not change."),
				 errhint("Create a new plan, or try another way from one of its steps with stepwise.fork_plan(plan_id, from_step).")));
}

void
PlanCheckModifiable(const PlanRow *plan)
{
	if (plan->status != PLAN_PLANNING && plan->status != PLAN_EXECUTING)
		ereport(ERROR,
				(errcode(ERRCODE_PLAN_NOT_MODIFIABLE),
				 errmsg("plan \"%s\" is %s and cannot be modified", plan->name, PlanStatusName[plan->status]),
				 errdetail("A plan can be modified while it is planning or executing."),
				 PlanIsTerminal(plan->status)
				 ? errhint("Create a new plan, or try another way from one of its steps with stepwise.fork_plan(plan_id, from_step).")
				 : errhint("stepwise.why(plan_id) says what it waits for.")));
}

/* A claim begins: a new attempt, unless the step only goes on after a wait. */
static void
StampStart(StepRow *step, TimestampTz now)
{
	if (step->status != STEP_AWAITING_INPUT)
	{
		step->attempt++;
		step->started_at = now;
		step->message = NULL;
		step->error = NULL;
	}
	else
		step->holder = step->worker;
	step->completed_at = NO_TIME;
	step->active_at = now;
}

static void
StampClaimEnd(StepRow *step)
{
	step->holder = NULL;
	step->lease_expires_at = NO_TIME;
}

/* Say why work that ended with failure did, as far as it says itself. */
static char *
FailureText(const StepRow *step)
{
	static const char *const keys[] = {"error", "stderr", "message"};
	Jsonb	   *result = JsonOf(step->result);
	char	   *text = NULL;

	for (size_t i = 0; i < lengthof(keys) && (text == NULL || TextIsBlank(text)); i++)
		text = JsonGetText(result, keys[i]);
	if (text == NULL || TextIsBlank(text))
		text = TextOf(step->result_summary);
	if (text == NULL || TextIsBlank(text))
		return pstrdup("the work ended with failure");
	return pnstrdup(text, pg_mbcliplen(text, strlen(text), MESSAGE_BYTES));
}

/* Check a transition and set what goes with it; knows the step only. */
void
StepStamp(StepRow *step, StepStatus to, TimestampTz now)
{
	CheckTransition(step, to);
	step->pause_reason = NULL;
	step->ready = false;
	if (to == STEP_IN_PROGRESS)
		StampStart(step, now);
	else
		StampClaimEnd(step);
	if (to == STEP_PENDING)
	{
		step->started_at = NO_TIME;
		step->completed_at = NO_TIME;
		step->active_at = NO_TIME;
		step->message = NULL;
		step->error = NULL;
		step->worker = NULL;
	}
	if (to == STEP_COMPLETED || to == STEP_FAILED || to == STEP_SKIPPED)
		step->completed_at = now;
	if (to != STEP_COMPLETED)
		step->outcome = OUTCOME_NA;
	else if (step->outcome == OUTCOME_NA)
		step->outcome = OUTCOME_SUCCESS;
	if (step->outcome == OUTCOME_FAILURE && step->message == NULL)
		step->message = FailureText(step);
	step->status = to;
}

/* Give a wait that was opened by raw SQL what a review has. */
static Waiting *
DefaultWaiting(const StepRow *step)
{
	Waiting    *waiting = palloc0(sizeof(Waiting));

	waiting->checkpoint_id = UuidNew();
	waiting->review = step->prompt == NULL;
	waiting->prompt = step->prompt ? TextOf(step->prompt) : psprintf("Step \"%s\" waits for a decision.", step->name);
	return waiting;
}

/* Set what only the plan knows; true if that changed the row. */
bool
StepStampInPlan(Call *call, PlanRow *plan, StepRow *step)
{
	bool		changed = false;

	if (step->status == STEP_IN_PROGRESS && step->execution_order == 0)
	{
		step->execution_order = ++plan->started_steps;
		changed = true;
	}
	if (step->status == STEP_IN_PROGRESS && step->inputs == NULL && StepFillInputs(call, plan, step))
		changed = true;
	if (step->status == STEP_PENDING && step->inputs != NULL)
	{
		step->inputs = NULL;
		changed = true;
	}
	if (step->status == STEP_PENDING && !plan->sequential && step->blockers == 0)
	{
		step->ready = true;
		changed = true;
	}
	if (step->status == STEP_FAILED && plan->on_failure == ON_FAILURE_PAUSE)
	{
		step->pause_reason = (struct varlena *) ToolErrorReason(step, step->message, step->retryable == 1);
		changed = true;
	}
	if (step->status == STEP_AWAITING_INPUT && step->workflow == NULL)
	{
		if (step->waiting == NULL)
			step->waiting = DefaultWaiting(step);
		step->pause_reason = (struct varlena *) WaitingReason(step);
		changed = true;
	}
	return changed;
}

/* Keep the counters of the plan true. */
static void
PlanCount(Call *call, PlanRow *plan, StepRow *step, StepStatus from)
{
	plan->counts[from]--;
	plan->counts[step->status]++;
	if (step->status == STEP_COMPLETED && step->outcome == OUTCOME_FAILURE)
		plan->unsuccessful++;
	plan->paused += (step->pause_reason != NULL) - step->was_paused;
	step->was_paused = step->pause_reason != NULL;
	if (step->status == STEP_PENDING)
		plan->next_order = Min(plan->next_order, step->order);
	else if (from == STEP_PENDING && step->order == plan->next_order)
		plan->next_order++;
	plan->workable = plan->counts[STEP_PENDING] > 0;
	plan->moved = plan->touched = true;
	if (step->status == STEP_FAILED && plan->on_failure == ON_FAILURE_FAIL && plan->message == NULL)
		plan->message = CallKeepText(call, psprintf("step \"%s\" failed: %s", step->name,
													 step->message ? step->message : "no reason given"));
}

Jsonb *
MoveDetail(const char *from, const char *to, const Jsonb *extra)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "from", from);
	JsonPutText(&b, "to", to);
	JsonObjectEnd(&b);
	return extra ? JsonMerge(JsonFinish(&b), extra) : JsonFinish(&b);
}

/* Say in the audit entry what the move achieved: no results, only their digest. */
static Jsonb *
StepDetail(const StepRow *step, StepStatus from, const Jsonb *extra)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "from", StepStatusName[from]);
	JsonPutText(&b, "to", StepStatusName[step->status]);
	if (step->attempt > 0)
		JsonPutInt(&b, "attempt", step->attempt);
	if (step->status == STEP_IN_PROGRESS && TimeIsSet(step->lease_expires_at))
		JsonPutTime(&b, "leaseExpiresAt", step->lease_expires_at);
	if (step->status == STEP_COMPLETED)
	{
		JsonPutText(&b, "outcome", OutcomeName[step->outcome]);
		JsonPutText(&b, "resultDigest", DigestText(step->result));
	}
	if ((step->status == STEP_FAILED || step->status == STEP_SKIPPED) && step->message)
		JsonPutText(&b, "message", step->message);
	if (step->waiting != NULL && step->status == STEP_AWAITING_INPUT)
		JsonPutUuid(&b, "checkpointId", &step->waiting->checkpoint_id);
	JsonObjectEnd(&b);
	return extra ? JsonMerge(JsonFinish(&b), extra) : JsonFinish(&b);
}

/* Enter a move into the chain. */
void
StepAudit(Call *call, PlanRow *plan, const StepRow *step, StepStatus from, const Jsonb *detail)
{
	/* what the detail is built of goes with the entry: a call may enter thousands */
	MemoryContext outer = MemoryContextSwitchTo(call->scratch);

	AuditAppend(call, plan, &step->id, EventOf(from, step->status), StepDetail(step, from, detail));
	MemoryContextSwitchTo(outer);
}

/*
 * A failed step is tried again: what reads it waits for it now. Whatever blocks a
 * step, its condition may read the one that is tried again, and come out false.
 */
void
PlanReconsider(Call *call, PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND s.status = 'pending' AND s.pause_reason IS NOT NULL ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows;

	if (plan->paused == 0)
		return;
	rows = QueryById(call, &find, &plan->id);
	for (uint64 i = 0; i < rows.count; i++)
	{
		MemoryContext outer = TurnBegin(call);

		StepReconsider(call, plan, RowStep(&rows, i));
		TurnEnd(outer, false);
	}
	RowsFree(&rows);
}

/* Count and audit a move that is already in the table; note what has to look at it. */
void
StepMoved(Call *call, PlanRow *plan, StepRow *step, StepStatus from, Jsonb *detail)
{
	Jsonb	   *nested = NULL;

	PlanCount(call, plan, step, from);
	if (step->workflow != NULL && step->status != STEP_IN_PROGRESS && step->status != STEP_AWAITING_INPUT)
		nested = NestedCancel(call, plan, step);
	StepAudit(call, plan, step, from, nested ? JsonMerge(detail, nested) : detail);
	if (from == STEP_AWAITING_INPUT)
		CheckpointClose(call, step);
	if (from == STEP_FAILED && step->status != STEP_SKIPPED)
	{
		PlanReconsider(call, plan);
		plan->retried = true;
	}
	if (step->status == STEP_AWAITING_INPUT && step->waiting != NULL)
		CheckpointOpen(call, plan, step);
	if (TimeIsSet(step->completed_at) ? !plan->sequential || step->branches : step->status == STEP_PENDING && step->blockers > 0)
		plan->settled = lappend(plan->settled, step);
}

void
StepMove(Call *call, PlanRow *plan, StepRow *step, StepStatus to, Jsonb *detail)
{
	StepStatus	from = step->status;
	struct varlena *reason = step->pause_reason;
	bool		new_reason = reason != NULL && !step->was_paused;

	PlanCheckOpen(plan);
	StepStamp(step, to, CallNow(call, plan));
	StepStampInPlan(call, plan, step);
	/* the caller may know better why it failed */
	if (new_reason && step->pause_reason != NULL)
		step->pause_reason = reason;
	StepSave(call, step);
	StepMoved(call, plan, step, from, detail);
}

/* Note why a pending step cannot go on, or that it can again; this is not a move. */
void
StepPause(Call *call, PlanRow *plan, StepRow *step, Jsonb *reason)
{
	if (reason == NULL && step->pause_reason == NULL)
		return;
	if (reason && step->pause_reason && JsonEqual(reason, JsonOf(step->pause_reason)))
		return;
	step->pause_reason = (struct varlena *) reason;
	/* the message of a step that waits says why */
	if (reason == NULL && step->status == STEP_PENDING)
		step->message = NULL;
	plan->paused += (reason != NULL) - step->was_paused;
	step->was_paused = reason != NULL;
	/* what it held back can be handed out */
	if (reason == NULL && !PlanIsTerminal(plan->status))
		plan->workable = plan->counts[STEP_PENDING] > 0;
	plan->touched = true;
	StepSave(call, step);
}

/* ---------- dependents ---------- */

/* how a step that is settled looks to those that depend on it */
typedef enum Settlement
{
	SETTLED_SUCCESS,
	SETTLED_FAILURE,
	SETTLED_FAILED,
	SETTLED_SKIPPED
} Settlement;

/* may a dependent run? [settlement][required] */
static const bool DependentRuns[][2] = {
	[SETTLED_SUCCESS] = {true, true},
	[SETTLED_FAILURE] = {true, false},
	[SETTLED_FAILED] = {false, false},
	[SETTLED_SKIPPED] = {true, false},
};

static const char *const SettlementText[] = {
	[SETTLED_SUCCESS] = "completed",
	[SETTLED_FAILURE] = "completed with outcome failure",
	[SETTLED_FAILED] = "failed",
	[SETTLED_SKIPPED] = "was skipped",
};

static Settlement
SettlementOf(StepStatus status, Outcome outcome)
{
	if (status == STEP_FAILED)
		return SETTLED_FAILED;
	if (status == STEP_SKIPPED)
		return SETTLED_SKIPPED;
	return outcome == OUTCOME_FAILURE ? SETTLED_FAILURE : SETTLED_SUCCESS;
}

DependentVerdict
DependentVerdictOf(const PlanRow *plan, StepStatus parent, Outcome outcome, bool required)
{
	if (parent != STEP_COMPLETED && parent != STEP_FAILED && parent != STEP_SKIPPED)
		return DEPENDENT_WAITS;
	/* under pause they wait until the failed step is retried, skipped or answered */
	if (parent == STEP_FAILED && plan->on_failure == ON_FAILURE_PAUSE)
		return DEPENDENT_WAITS;
	return DependentRuns[SettlementOf(parent, outcome)][required] ? DEPENDENT_RUNS : DEPENDENT_SKIPPED;
}

/* One thing less to wait for. */
static void
DependentsRelease(Call *call, const StepRow *step, const DependentVerdict verdicts[2])
{
	ListCell   *cell;

	foreach(cell, StepDependents(call, &step->id))
	{
		const Dependent *dependent = lfirst(cell);

		if (verdicts[dependent->required] == DEPENDENT_RUNS)
			StepUnblock(call, &dependent->step_id);
	}
}

static void
DependentSkip(Call *call, PlanRow *plan, StepRow *child, const StepRow *parent, bool required)
{
	child->message = psprintf("%s step \"%s\" %s", required ? "required" : "optional", parent->name,
							  SettlementText[SettlementOf(parent->status, parent->outcome)]);
	StepMove(call, plan, child, STEP_SKIPPED, NULL);
}

/* Find the steps on the other end of a step's dependencies, required or optional ones. */
static Rows
RelatedSteps(Call *call, KeptQuery *query, const StepRow *step, bool required)
{
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, &step->id);
	ArgBool(&args, required);
	return QueryRun(query, &args);
}

static void
DependentsSkip(Call *call, PlanRow *plan, const StepRow *step, bool required)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.dependency AS d JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = d.step_id"
		" WHERE d.tenant = $1 AND d.depends_on = $2 AND d.required = $3 AND s.status = 'pending' ORDER BY s.step_order",
		3, {TEXTOID, UUIDOID, BOOLOID}
	};
	Rows		rows = RelatedSteps(call, &find, step, required);

	for (uint64 i = 0; i < rows.count; i++)
	{
		StepRow    *child = RowStep(&rows, i);

		DependentSkip(call, plan, child, step, required);
	}
	RowsFree(&rows);
}

/*
 * A step that is tried again, or was given back, may have missed what became
 * of those that it waits for: then nobody else would skip it.
 */
static void
ParentsLook(Call *call, PlanRow *plan, StepRow *step)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.dependency AS d JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = d.depends_on"
		" WHERE d.tenant = $1 AND d.step_id = $2 AND d.required = $3 ORDER BY s.step_order",
		3, {TEXTOID, UUIDOID, BOOLOID}
	};

	/* one that settled in the same call may have skipped it already */
	if (StepMustRead(call, &step->id)->status != STEP_PENDING)
		return;
	for (int required = 0; required <= 1; required++)
	{
		Rows		rows = RelatedSteps(call, &find, step, required);

		for (uint64 i = 0; i < rows.count && step->status == STEP_PENDING; i++)
		{
			StepRow    *parent = RowStep(&rows, i);

			if (DependentVerdictOf(plan, parent->status, parent->outcome, required) == DEPENDENT_SKIPPED)
				DependentSkip(call, plan, step, parent, required);
		}
		RowsFree(&rows);
	}
}

static void
DependentsLook(Call *call, PlanRow *plan, const StepRow *step)
{
	DependentVerdict verdicts[2];

	for (int required = 0; required <= 1; required++)
		verdicts[required] = DependentVerdictOf(plan, step->status, step->outcome, required);
	if (verdicts[false] == DEPENDENT_RUNS || verdicts[true] == DEPENDENT_RUNS)
		DependentsRelease(call, step, verdicts);
	for (int required = 0; required <= 1; required++)
		if (verdicts[required] == DEPENDENT_SKIPPED)
			DependentsSkip(call, plan, step, required);
}

/* Let branches and dependents look at what has settled; either may settle more. */
void
PlanDrain(Call *call, PlanRow *plan)
{
	/* not foreach: the list grows while we walk it */
	for (plan->drained = 0; plan->drained < list_length(plan->settled); plan->drained++)
	{
		StepRow    *step = list_nth(plan->settled, plan->drained);

		if (step->branches && step->status == STEP_COMPLETED && !PlanIsTerminal(plan->status))
		{
			/* a branch before this one may have added steps, and so moved this one on */
			if (plan->drained > 0)
				step->order = StepMustRead(call, &step->id)->order;
			BranchesAfter(call, plan, step);
		}
		if (!plan->sequential && !PlanIsTerminal(plan->status))
		{
			if (step->status == STEP_PENDING)
				ParentsLook(call, plan, step);
			else
				DependentsLook(call, plan, step);
		}
		CHECK_FOR_INTERRUPTS();
	}
	plan->settled = NIL;
}

/* ---------- the plan ---------- */

/* Move a plan; what is not in the table passes through executing. */
void
PlanMove(Call *call, PlanRow *plan, PlanStatus to, Jsonb *detail)
{
	PlanStatus	from = plan->status;

	if (from == to)
		return;
	if (!PlanTransitionAllowed(from, to))
	{
		if (PlanIsTerminal(from) || !PlanTransitionAllowed(from, PLAN_EXECUTING))
			elog(ERROR, "plan %s cannot go from %s to %s", UuidText(&plan->id), PlanStatusName[from], PlanStatusName[to]);
		PlanMove(call, plan, PLAN_EXECUTING, NULL);
		from = plan->status;
	}
	plan->status = to;
	if (to == PLAN_EXECUTING && !TimeIsSet(plan->started_at))
		plan->started_at = CallNow(call, plan);
	if (PlanIsTerminal(to))
	{
		plan->completed_at = CallNow(call, plan);
		plan->workable = false;
		if (plan->counts[STEP_AWAITING_INPUT] > 0)
			CheckpointsClose(call, plan);
	}
	if (to == PLAN_COMPLETED)
	{
		plan->outcome = plan->counts[STEP_FAILED] + plan->unsuccessful > 0 ? OUTCOME_FAILURE : OUTCOME_SUCCESS;
		plan->outputs = CallKeep(call, PlanOutputs(call, plan));
		if (plan->outputs != NULL && JB_ROOT_COUNT(JsonOf(plan->outputs)) > 0)
			detail = JsonMerge(detail, JsonTextOf("outputsDigest", DigestText(plan->outputs)));
	}
	AuditAppend(call, plan, NULL, "plan_status_changed",
				MoveDetail(PlanStatusName[from], PlanStatusName[to], detail));
	if (to == PLAN_FAILED)
		NestedCancelAll(call, plan);
}

/* What is stored: the derived status, but never back to planning, and stalled until a step moves. */
static PlanStatus
PlanTarget(const PlanRow *plan)
{
	PlanStatus	derived = PlanDeriveStatus(plan->counts, plan->on_failure);

	if (PlanIsTerminal(plan->status) || (plan->status == PLAN_STALLED && !plan->moved))
		return plan->status;
	if (derived == PLAN_PLANNING && plan->status != PLAN_PLANNING)
		return PLAN_EXECUTING;
	return derived;
}

/* Find the reason of the first step, in order, that still blocks. */
static Jsonb *
FirstPauseReason(Call *call, PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT s.pause_reason FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND s.pause_reason IS NOT NULL ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};
	Jsonb	   *reason = NULL;
	Rows		rows;

	if (plan->paused == 0 || PlanIsTerminal(plan->status))
		return NULL;
	rows = QueryById(call, &find, &plan->id);
	if (rows.count > 0)
		reason = ReasonWithPath(call, plan, RowJson(&rows, 0, 1));
	RowsFree(&rows);
	return reason;
}

static void
PlanUpdatePauseReason(Call *call, PlanRow *plan)
{
	Jsonb	   *before = JsonOf(plan->pause_reason);
	Jsonb	   *reason = FirstPauseReason(call, plan);

	if (JsonEqual(before, reason))
		return;
	plan->pause_reason = CallKeep(call, (struct varlena *) reason);
	/* that a plan has ended says also that its pause has */
	if (PlanIsTerminal(plan->status))
		return;
	AuditAppend(call, plan, NULL, "plan_paused", JsonObjectOf("reason", reason));
}

/* Draw the consequences of what has moved, and save the plan. */
void
PlanSettle(Call *call, PlanRow *plan)
{
	PlanDrain(call, plan);
	PlanMove(call, plan, PlanTarget(plan), NULL);
	PlanUpdatePauseReason(call, plan);
	PlanSave(call, plan);
	if (plan->nested)
		TreeRise(call, plan);
	plan->moved = plan->retried = false;
}
