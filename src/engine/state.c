/*
 * state.c
 *	  move a step, move a plan
 *
 * This is the only file that changes a status. StepMove moves a step. Its parts
 * are exported, because triggers need them one by one for moves by raw SQL:
 * StepStamp checks the transition and stamps the row before it is written,
 * StepStampInPlan sets what depends on the plan, and StepMoved counts and
 * audits the move after the row was written.
 *
 * StepMoved also puts the step into the queue plan->settled, if other steps or
 * branches have to react to the move. PlanSettle (settle.c) works through that
 * queue and draws the consequences, once for all moves.
 *
 * The end of a step or of a plan cancels the plans nested in it. That is done
 * here too.
 *
 * The clock is read once per call (CallNow), so that a step, its plan and the
 * audit entry have the same time.
 *
 * Memory: a move may happen in a turn (TurnBegin). What a PlanRow keeps is
 * copied to the memory of the call (CallKeep). The queue plan->settled is not
 * copied, so a turn that moves steps must settle the plan before it ends.
 *
 * Locks: the caller holds the locks of the root and of the plan.
 */
#include "engine/engine.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"

#define MESSAGE_BYTES	2000	/* limit for a message that is taken from a result, and for the error of an attempt before */

static Jsonb *NestedCancel(Call *call, PlanRow *plan, const StepRow *step);
static void NestedCancelAll(Call *call, PlanRow *plan);

/* ---------- moving a step ---------- */

/* audit events of moves, by the new state */
static const char *const EventTo[STEP_STATUSES] = {
	[STEP_PENDING] = "step_released",
	[STEP_IN_PROGRESS] = "step_started",
	[STEP_AWAITING_INPUT] = "step_waiting",
	[STEP_COMPLETED] = "step_completed",
	[STEP_FAILED] = "step_failed",
	[STEP_SKIPPED] = "step_skipped",
};

/* Name the audit event of a move. */
static const char *
EventOf(StepStatus from, StepStatus to)
{
	if (from == STEP_FAILED && (to == STEP_PENDING || to == STEP_IN_PROGRESS))
		return "step_retried";
	if (from == STEP_AWAITING_INPUT && to == STEP_IN_PROGRESS)
		return "step_resumed";
	return EventTo[to];
}

/* a plan that has ended: what can be done instead */
#define HINT_ENDED	"Create a new plan; or try another way from one of its steps with stepwise.fork_plan(plan_id, from_step)."

/* hints for what waits for a person */
#define HINT_REVIEW	"It waits for a person; stepwise.submit_user_decision(checkpoint_id, decision) answers, and stepwise.list_checkpoints() shows what is asked."
#define HINT_PROMPT	"It waits for a person; stepwise.resume(checkpoint_id, response) answers, and stepwise.list_checkpoints() shows what is asked."

/* hints for a refused move, by the state of the step */
static const char *const HintFrom[STEP_STATUSES] = {
	[STEP_PENDING] = "Claim the step first, with stepwise.get_next_step(root_id).",
	[STEP_IN_PROGRESS] = "Who has claimed it submits it with stepwise.submit_step_result(step_id, result), or gives it back with stepwise.release_step(step_id); a claim after the first needs its attempt too.",
	[STEP_AWAITING_INPUT] = HINT_REVIEW,
	[STEP_COMPLETED] = "A completed step is final. Add a step to do more work: stepwise.modify_plan(plan_id, 'add_steps', '{\"steps\": [{\"instructions\": \"Do the rest\"}]}').",
	[STEP_FAILED] = "Put the step back with stepwise.retry_step(step_id); or skip it with stepwise.skip_step(step_id).",
	[STEP_SKIPPED] = "A skipped step is final. Add a step to do the work after all: stepwise.modify_plan(plan_id, 'add_steps', '{\"steps\": [{\"instructions\": \"Do the rest\"}]}').",
};

/* Find the hint for a step that waits: what it waits for, or a step nested in it. */
static const char *
HintOfWait(Call *call, const StepRow *step)
{
	PersonWait	wait;

	if (call != NULL && WaitIn(call, step, &wait))
		return IsReview(wait.checkpoint) ? HINT_REVIEW : HINT_PROMPT;
	return step->prompt != NULL ? HINT_PROMPT : HINT_REVIEW;
}

/*
 * Find the hint for what is refused about a step: by the end of its plan, by
 * its kind and state, or by its state alone.
 */
static const char *
HintOf(Call *call, const StepRow *step)
{
	const char *hint = StepRuleOf(step)->hint[step->status];

	if (call != NULL && PlanIsTerminal(PlanMustRead(call, &step->plan_id)->status))
		return HINT_ENDED;
	/* nobody holds a step that a review sent back */
	if (step->sent_back)
		return HintFrom[STEP_PENDING];
	if (step->status == STEP_AWAITING_INPUT)
		return HintOfWait(call, step);
	return hint ? hint : HintFrom[step->status];
}

/* Make the hint for what is refused about a step in its state. */
char *
StateHint(Call *call, const StepRow *step)
{
	return StepHint(call, step, HintOf(call, step));
}

/*
 * Refuse a move of a step. Some functions allow less than the transition table.
 * They pass their rule as a sentence. If "rule" is NULL, the table refuses the
 * move.
 */
void
StepTransitionRefuse(Call *call, const StepRow *step, StepStatus to, const char *rule)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TRANSITION),
			 errmsg("step \"%s\" cannot go from %s to %s", step->name, StepStatusName[step->status], StepStatusName[to]),
			 rule ? errdetail("%s", rule)
			 : errdetail("Allowed from %s: %s.", StepStatusName[step->status], StepTransitionsText(step->status)),
			 errhint("%s", StateHint(call, step))));
}

/* Refuse a move that is not in the transition table. */
static void
CheckTransition(Call *call, const StepRow *step, StepStatus to)
{
	if (!StepTransitionAllowed(step->status, to))
		StepTransitionRefuse(call, step, to, NULL);
}

/* Refuse to change a plan that has ended. */
void
PlanCheckOpen(Call *call, const PlanRow *plan)
{
	if (PlanIsTerminal(plan->status))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("plan \"%s\" is %s", plan->name, PlanStatusName[plan->status]),
				 errdetail("Steps of a plan that has ended do not change."),
				 errhint("%s", PlanHint(call, plan, HINT_ENDED))));
}

/* Refuse to modify a plan that is neither planning nor executing. */
void
PlanCheckModifiable(Call *call, const PlanRow *plan)
{
	if (plan->status != PLAN_PLANNING && plan->status != PLAN_EXECUTING)
		ereport(ERROR,
				(errcode(ERRCODE_PLAN_NOT_MODIFIABLE),
				 errmsg("plan \"%s\" is %s and cannot be modified", plan->name, PlanStatusName[plan->status]),
				 errdetail("A plan can be modified while it is planning or executing."),
				 PlanIsTerminal(plan->status)
				 ? errhint("%s", PlanHint(call, plan, HINT_ENDED))
				 : errhint("%s", PlanHint(call, plan, "stepwise.why(plan_id) says what it waits for."))));
}

/* Stamp the start of a claim. It is a new attempt, unless the step continues after it has waited for a person. */
static void
StampStart(StepRow *step, TimestampTz now)
{
	/* raw SQL may start a step from the gate before it */
	if (step->status != STEP_AWAITING_INPUT || !TimeIsSet(step->started_at))
	{
		step->attempt++;
		step->started_at = now;
		step->message = NULL;
		step->error = NULL;
	}
	else if (step->send_back)
		step->worker = NULL;
	else
		step->holder = step->worker;
	step->completed_at = NO_TIME;
	step->active_at = now;
}

/* Stamp the end of a claim. */
static void
StampClaimEnd(StepRow *step)
{
	step->holder = NULL;
	step->lease_expires_at = NO_TIME;
}

/* Find a message for a step that completed with failure, in its result or in the summary of that. */
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

/* Keep the error of a step that is tried again, for its next attempt. It is forgotten when the step is completed. */
static void
StampPreviousError(StepRow *step, StepStatus to)
{
	if (step->status == STEP_FAILED && to != STEP_SKIPPED)
		step->previous_error = CutText(ErrorText(step->message, JsonOf(step->error)), MESSAGE_BYTES, NULL);
	else if (to == STEP_COMPLETED || step->send_back)
		step->previous_error = NULL;
}

/* Check a transition and set the columns that depend on the step alone. */
void
StepStamp(Call *call, StepRow *step, StepStatus to, TimestampTz now)
{
	CheckTransition(call, step, to);
	StampPreviousError(step, to);
	step->pause_reason = NULL;
	step->ready_mark = false;
	step->sets_mark = true;
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
	if (to == STEP_COMPLETED && !TimeIsSet(step->started_at))
		step->started_at = now;
	if (to != STEP_COMPLETED)
		step->outcome = OUTCOME_NA;
	else if (step->outcome == OUTCOME_NA)
		step->outcome = OUTCOME_SUCCESS;
	if (step->outcome == OUTCOME_FAILURE && step->message == NULL)
		step->message = FailureText(step);
	step->status = to;
}

/*
 * Describe the wait of a step that raw SQL has moved to awaiting_input. It
 * counts as a review, unless the step is a prompt.
 */
static Waiting *
DefaultWaiting(const Call *call, const StepRow *step)
{
	Waiting    *waiting = palloc0(sizeof(Waiting));

	waiting->checkpoint_id = IdNew(call);
	waiting->review = StepKindOf(step) != KIND_PROMPT;
	waiting->prompt = !waiting->review ? TextOf(step->prompt) : psprintf("Step \"%s\" waits for a decision.", step->name);
	return waiting;
}

/* Say whether a failure waits for somebody to deal with it. */
static bool
FailureIsOpen(const PlanRow *plan, const StepRow *step)
{
	return plan->on_failure == ON_FAILURE_PAUSE || (plan->on_failure == ON_FAILURE_STOP && !step->given_up);
}

/* Say whether a step holds back the steps after it in a sequence. */
static bool
StepHolds(Call *call, const PlanRow *plan, const StepRow *step)
{
	if (!plan->sequential)
		return false;
	switch (step->status)
	{
		case STEP_AWAITING_INPUT:
			return true;
		case STEP_IN_PROGRESS:
			return plan->strict_order || step->sent_back || StepNests(step);
		case STEP_FAILED:
			/* nobody was asked what the gate after the step, or one below it, was to ask */
			return step->pause_reason != NULL &&
				(plan->on_failure == ON_FAILURE_PAUSE || StepHasGate(step, GATE_AFTER) || GateBelowIsMissed(call, step));
		default:
			return false;
	}
}

/* Set the columns that depend on the plan; returns true if that changed the row. */
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
	if (!StepIsReady(plan, step))
		ReadyListRemove(plan, step->order);
	else if (!ReadyListAdd(plan, step->order))
	{
		step->ready_mark = true;
		changed = true;
	}
	if (step->status == STEP_FAILED && FailureIsOpen(plan, step))
	{
		step->pause_reason = (struct varlena *) ToolErrorReason(step, step->message, step->retryable == 1);
		changed = true;
	}
	/* a step that waits for its nested plan has no review of its own, unless it is at its gate */
	if (step->status == STEP_AWAITING_INPUT &&
		(!StepNests(step) || step->waiting != NULL || !TimeIsSet(step->started_at)))
	{
		if (step->waiting == NULL)
			step->waiting = DefaultWaiting(call, step);
		step->pause_reason = (struct varlena *) WaitingReason(step);
		changed = true;
	}
	step->sent_back = step->send_back && step->status == STEP_IN_PROGRESS;
	step->holds = StepHolds(call, plan, step);
	return changed || step->sent_back != step->was_sent_back || step->holds != step->was_holding;
}

/* Count that more or fewer steps of a plan hold back the steps after them. */
static void
CountHolding(PlanRow *plan, int more)
{
	bool		was_crowded = plan->holding > 1;

	plan->holding += more;
	if ((plan->holding > 1) == was_crowded)
		return;
	plan->root->crowded += was_crowded ? -1 : 1;
	PlanTouch(plan->root);
}

/* Count what the columns of a step mark; the marks in the table are counted already. */
static void
CountMarks(PlanRow *plan, StepRow *step)
{
	bool		open_failure = step->status == STEP_FAILED && step->pause_reason != NULL;

	plan->paused += (step->pause_reason != NULL) - step->was_paused;
	plan->open_failures += open_failure - step->was_open_failure;
	CountHolding(plan, step->holds - step->was_holding);
	if (step->sent_back != step->was_sent_back)
	{
		plan->root->sent_back += step->sent_back - step->was_sent_back;
		PlanTouch(plan->root);
	}
	step->was_paused = step->pause_reason != NULL;
	step->was_open_failure = open_failure;
	step->was_holding = step->holds;
	step->was_sent_back = step->sent_back;
	PlanTouch(plan);
}

/* Take over from the row before it what has been counted of a step. */
void
StepWasAs(StepRow *step, const StepRow *before)
{
	step->was_paused = before->was_paused;
	step->was_open_failure = before->was_open_failure;
	step->was_holding = before->was_holding;
	step->was_sent_back = before->was_sent_back;
}

/* Say whether a search may find work in a plan. In a strict sequence, a claim that stalls is handed out again. */
bool
PlanMayHaveWork(const PlanRow *plan)
{
	return plan->counts[STEP_PENDING] > 0 || (plan->strict_order && plan->counts[STEP_IN_PROGRESS] > 0);
}

/* Update the counters of a plan after a step has moved. */
static void
PlanCount(Call *call, PlanRow *plan, StepRow *step, StepStatus from)
{
	plan->counts[from]--;
	plan->counts[step->status]++;
	if (step->status == STEP_COMPLETED && step->outcome == OUTCOME_FAILURE)
		plan->unsuccessful++;
	CountMarks(plan, step);
	if (step->status == STEP_PENDING)
		plan->next_order = Min(plan->next_order, step->order);
	else if (from == STEP_PENDING && step->order == plan->next_order)
		plan->next_order++;
	plan->workable = PlanMayHaveWork(plan);
	plan->moved = true;
	if (step->status == STEP_FAILED && plan->on_failure == ON_FAILURE_FAIL && plan->message == NULL)
		plan->message = CallKeepText(call, psprintf("step \"%s\" failed: %s", step->name,
													step->message ? step->message : "no reason given"));
}

/* Tell a step's move for its audit entry. The entry has the digest of the result, never the result. */
static EntryMove
StepEntryMove(const StepRow *step, StepStatus from)
{
	EntryMove	move = {.from = from, .to = step->status, .attempt = step->attempt, .lease_expires_at = NO_TIME};

	if (step->status == STEP_IN_PROGRESS)
		move.lease_expires_at = step->lease_expires_at;
	if (step->status == STEP_COMPLETED)
	{
		move.completed = true;
		move.outcome = step->outcome;
		move.result = step->result;
	}
	if (step->status == STEP_FAILED || step->status == STEP_SKIPPED)
		move.message = step->message;
	if (step->waiting != NULL && step->status == STEP_AWAITING_INPUT)
		move.checkpoint_id = &step->waiting->checkpoint_id;
	return move;
}

/* Append a step's move to the audit chain of its plan. "detail" has more members for the entry, or is NULL. */
void
StepAudit(Call *call, PlanRow *plan, const StepRow *step, StepStatus from, const Jsonb *detail)
{
	EntryMove	move = StepEntryMove(step, from);

	AuditMove(call, plan, &step->id, EventOf(from, step->status), &move, detail);
}

/* Append a plan's move to its audit chain. "detail" has more members for the entry, or is NULL. */
void
PlanAudit(Call *call, PlanRow *plan, PlanStatus from, PlanStatus to, const Jsonb *detail)
{
	EntryMove	move = {.from = from, .to = to, .lease_expires_at = NO_TIME};

	AuditMove(call, plan, NULL, "plan_status_changed", &move, detail);
}

/*
 * Let the joins after a failed step wait for it again, because it is no longer
 * failed. DependentsLook has counted the failure as an end for them, except
 * under on_failure pause. Joins that have started go on.
 */
static void
JoinsWaitAgain(Call *call, PlanRow *plan, const StepRow *step)
{
	static KeptQuery block = {
		"UPDATE stepwise.step AS s SET blockers = s.blockers + 1, ready_mark = NULL FROM stepwise.dependency AS d"
		" WHERE d.tenant = $1 AND d.depends_on = $2 AND d.ended AND s.tenant = $1 AND s.id = d.step_id RETURNING s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows;

	if (plan->sequential || plan->on_failure == ON_FAILURE_PAUSE)
		return;
	rows = QueryById(call, &block, &step->id);
	for (uint64 i = 0; i < rows.count; i++)
		ReadyListRemove(plan, RowInt(&rows, i, 1));
	RowsFree(&rows);
}

/*
 * Count and audit a move that is already in the table. End the nested plan and
 * the checkpoint of the step where the move ends them, and queue the step for
 * PlanSettle.
 */
void
StepMoved(Call *call, PlanRow *plan, StepRow *step, StepStatus from, Jsonb *detail)
{
	Jsonb	   *nested = NULL;

	PlanCount(call, plan, step, from);
	if (StepNests(step) && step->status != STEP_IN_PROGRESS && step->status != STEP_AWAITING_INPUT)
		nested = NestedCancel(call, plan, step);
	StepAudit(call, plan, step, from, nested ? JsonMerge(detail, nested) : detail);
	if (from == STEP_AWAITING_INPUT)
		CheckpointClose(call, step);
	if (from == STEP_FAILED)
		JoinsWaitAgain(call, plan, step);
	if (from == STEP_FAILED && step->status != STEP_SKIPPED)
		plan->retried = true;
	if (step->status == STEP_AWAITING_INPUT && step->waiting != NULL)
		CheckpointOpen(call, plan, step);
	if (TimeIsSet(step->completed_at) ? !plan->sequential || step->branches : step->status == STEP_PENDING && step->blockers > 0)
		plan->settled = lappend(plan->settled, step);
}

/*
 * Refuse to move a step past its gate. Everybody looks at the gate before; this
 * is the last door. Raw SQL does not come here.
 */
static void
CheckGate(Call *call, const StepRow *step, StepStatus to)
{
	bool		starts = to == STEP_IN_PROGRESS && step->status != STEP_AWAITING_INPUT;

	if (step->review == NULL)
		return;
	if ((starts && StepHasGate(step, GATE_BEFORE) && step->approved == NULL) ||
		(to == STEP_COMPLETED && StepHasGate(step, GATE_AFTER) && !step->accepted))
		StepTransitionRefuse(call, step, to, "A person has to approve it first.");
}

/* Move a step: check and stamp the row, write it, then count and audit the move. */
void
StepMove(Call *call, PlanRow *plan, StepRow *step, StepStatus to, Jsonb *detail)
{
	StepStatus	from = step->status;
	struct varlena *reason = step->pause_reason;
	bool		new_reason = reason != NULL && !step->was_paused;

	PlanCheckOpen(call, plan);
	CheckGate(call, step, to);
	StepStamp(call, step, to, CallNow(call, plan));
	StepStampInPlan(call, plan, step);
	/* A reason that the caller has set is more precise than the one from StepStampInPlan. */
	if (new_reason && step->pause_reason != NULL)
		step->pause_reason = reason;
	StepSave(call, step);
	StepMoved(call, plan, step, from, detail);
}

/* Set the pause reason of a step without moving it. NULL clears the reason. */
void
StepPause(Call *call, PlanRow *plan, StepRow *step, Jsonb *reason)
{
	if (reason == NULL && step->pause_reason == NULL)
		return;
	if (reason && step->pause_reason && JsonEqual(reason, JsonOf(step->pause_reason)))
		return;
	step->pause_reason = (struct varlena *) reason;
	/* the message of a pending step belongs to its reason */
	if (reason == NULL && step->status == STEP_PENDING)
		step->message = NULL;
	step->holds = StepHolds(call, plan, step);
	CountMarks(plan, step);
	/* steps that this one held back may be due now */
	if (reason == NULL && !PlanIsTerminal(plan->status))
		plan->workable = PlanMayHaveWork(plan);
	StepSave(call, step);
}

/* Mark anew whether a step holds back the steps after it, because its definition has changed. */
void
StepMarkHolds(Call *call, PlanRow *plan, StepRow *step)
{
	step->holds = StepHolds(call, plan, step);
	if (step->holds == step->was_holding)
		return;
	CountMarks(plan, step);
	StepSave(call, step);
}

/* Note that nobody will deal with an open failure any more; the step stays failed. */
void
StepGiveUp(Call *call, PlanRow *plan, StepRow *step)
{
	AuditAppend(call, plan, &step->id, "plan_modified", JsonTextOf("action", "give_up"));
	StepPause(call, plan, step, NULL);
	plan->moved = true;
}

/*
 * Claim a step that was sent back. It is in progress already, so it passes
 * through pending; the claim that the caller has set is kept.
 */
void
StepTake(Call *call, PlanRow *plan, StepRow *step, Jsonb *detail)
{
	char	   *worker = step->worker;
	char	   *holder = step->holder;
	TimestampTz lease_expires_at = step->lease_expires_at;

	StepMove(call, plan, step, STEP_PENDING, JsonTextOf("reason", "sent back"));
	step->worker = worker;
	step->holder = holder;
	step->lease_expires_at = lease_expires_at;
	StepMove(call, plan, step, STEP_IN_PROGRESS, detail);
}

/* ---------- moving a plan ---------- */

/* Move a plan. A move that is not in the transition table passes through executing. */
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
	PlanAudit(call, plan, from, to, detail);
	if (to == PLAN_FAILED)
		NestedCancelAll(call, plan);
}

/* ---------- cancelling plans ---------- */

/* Skip every open step of a plan, then cancel the plan. The plans nested in it are cancelled for "nested_reason". */
static void
PlanEnd(Call *call, PlanRow *plan, const char *reason, const char *nested_reason)
{
	ListCell   *cell;

	PlanCheckOpen(call, plan);
	plan->ending = CallKeepText(call, unconstify(char *, nested_reason));
	foreach(cell, StepsInStates(call, "step_order_unique", &plan->id, STATES_OPEN, INT_MAX))
	{
		StepRow    *step = lfirst(cell);

		step->message = psprintf(CANCELLED_WITH_PLAN "%s", reason ? CutText(reason, REASON_TEXT_BYTES, NULL) : "no reason given");
		StepMove(call, plan, step, STEP_SKIPPED, NULL);
	}
	plan->settled = NIL;
	plan->message = CallKeepText(call, reason ? pstrdup(reason) : NULL);
	PlanMove(call, plan, PLAN_CANCELLED, JsonTextOf("reason", reason));
}

/* Fail a plan because of a rejected review in it or below it; the plans above fail too when it is settled. */
void
PlanReject(Call *call, PlanRow *plan, const char *message)
{
	plan->message = CallKeepText(call, pstrdup(message));
	plan->rejected = true;
	PlanMove(call, plan, PLAN_FAILED, JsonTextOf("reason", plan->message));
}

/* Cancel a plan and the plans nested in it. */
void
PlanCancel(Call *call, PlanRow *plan, const char *reason)
{
	PlanEnd(call, plan, reason, psprintf("plan \"%s\" above it was cancelled%s", plan->name, BecauseShort(reason)));
}

/* Build what the audit chain of the plan above says about a nested plan. */
Jsonb *
NestedDetail(const PlanRow *nested)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "nestedPlanId", &nested->id);
	JsonPutText(&b, "nestedStatus", PlanStatusName[nested->status]);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/*
 * Cancel a nested plan, and the plans nested in it, because a step or plan above
 * has ended. Returns the detail for the audit chain of the plan above, or NULL
 * if the nested plan had ended before.
 */
static Jsonb *
NestedEnd(Call *call, PlanRow *root, const pg_uuid_t *nested_id, const char *reason)
{
	PlanRow    *nested = PlanInTree(call, root, nested_id);

	if (PlanIsTerminal(nested->status))
		return NULL;
	PlanEnd(call, nested, reason, reason);
	nested->pause_reason = NULL;
	PlanTouch(nested);
	return NestedDetail(nested);
}

/*
 * Cancel the nested plan of a parent step that has stopped. Returns the detail
 * for the audit entry of that step, or NULL if there was nothing to cancel.
 */
static Jsonb *
NestedCancel(Call *call, PlanRow *plan, const StepRow *step)
{
	const char *reason = plan->ending;
	pg_uuid_t	nested_id;

	if (!NestedPlanId(call, &step->id, &nested_id))
		return NULL;
	if (reason == NULL)
		reason = psprintf("step \"%s\" that holds it is %s%s", step->name, StepStatusName[step->status], BecauseShort(step->message));
	return NestedEnd(call, plan->root, &nested_id, reason);
}

/*
 * Clear the pause reason of a parent step whose nested plan was cancelled. The
 * step had that reason from the nested plan.
 */
static void
ParentStepClearReason(Call *call, PlanRow *plan, const pg_uuid_t *step_id)
{
	StepRow    *step = StepRead(call, step_id);

	if (step != NULL && step->status == STEP_IN_PROGRESS)
		StepPause(call, plan, step, NULL);
}

/*
 * Cancel the plans nested in the open steps of a plan that has failed. The steps
 * themselves keep their states.
 */
static void
NestedCancelAll(Call *call, PlanRow *plan)
{
	static KeptQuery open = {
		"SELECT n.id, s.id FROM stepwise.step AS s JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = s.id"
		" WHERE s.tenant = $1 AND s.plan_id = $2 AND s.status IN ('in_progress', 'awaiting_input') AND s.workflow IS NOT NULL"
		" AND n.completed_at IS NULL ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}, .reads_plans = true
	};
	Rows		rows;

	if (!plan->root->nests)
		return;
	rows = QueryById(call, &open, &plan->id);
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t	nested_id = RowUuid(&rows, i, 1);
		pg_uuid_t	step_id = RowUuid(&rows, i, 2);
		char	   *reason = psprintf("plan \"%s\" above it failed%s", plan->name, BecauseShort(plan->message));

		AuditAppend(call, plan, &step_id, "plan_modified",
					JsonMerge(JsonTextOf("action", "cancel_nested"), NestedEnd(call, plan->root, &nested_id, reason)));
		ParentStepClearReason(call, plan, &step_id);
	}
	RowsFree(&rows);
}
