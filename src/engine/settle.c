/*
 * settle.c
 *	  draw the consequences of the moves in a plan
 *
 * PlanSettle is called once after any number of moves. It looks at branching
 * conditions, at dependents, at the status of the plan and at its pause reason.
 * If the plan is nested, it then updates the parent step and settles the plan
 * above, and so on up to the root.
 *
 * Branches and dependents move further steps. Steps that have to be looked at
 * are in the queue plan->settled, so a cascade of any length needs no deep
 * stack.
 *
 * Locks: the caller holds the locks of the root and of the plan. Plans above it
 * are locked on the way.
 */
#include "engine/engine.h"

#include "miscadmin.h"

static void ParentStepUpdate(Call *call, PlanRow *nested);

/* ---------- blocked steps ---------- */

/* Give a pending step that is blocked its pause reason and message. */
void
StepBlock(Call *call, PlanRow *plan, StepRow *step, const Judgement *j)
{
	step->message = j->message;
	StepPause(call, plan, step, j->reason);
}

/* Judge a blocked step again, because its obstacle may have gone or changed. */
void
StepReconsider(Call *call, PlanRow *plan, StepRow *step)
{
	Next		next = {0};
	Judgement	j = {0};

	if (step->status != STEP_PENDING || step->pause_reason == NULL)
		return;
	next.run = ReasonOfRun(JsonOf(step->pause_reason));
	if (StepIsDue(call, plan, step, &next, &j) == DUE_BLOCKED)
		StepBlock(call, plan, step, &j);
	else
		StepPause(call, plan, step, NULL);
}

/*
 * Judge all blocked steps of a plan again, because a failed step is retried.
 * Steps that read its result now wait for it. That may hold for any blocked
 * step, whatever its reason, since its condition may read that result.
 */
static void
PlanReconsider(Call *call, PlanRow *plan)
{
	ListCell   *cell;

	if (plan->paused == 0)
		return;
	foreach(cell, StepsInStates(call, "step_paused", &plan->id, STATE_BIT(STEP_PENDING), INT_MAX))
	{
		MemoryContext outer = TurnBegin();

		StepReconsider(call, plan, lfirst(cell));
		TurnEnd(outer, false);
	}
}

/* ---------- the plan ---------- */

/*
 * Work through the queue plan->settled: evaluate branches, then look at
 * dependents. Both may add steps to the queue.
 */
void
PlanDrain(Call *call, PlanRow *plan)
{
	/* not foreach: the list grows during the loop */
	for (plan->drained = 0; plan->drained < list_length(plan->settled); plan->drained++)
	{
		StepRow    *step = list_nth(plan->settled, plan->drained);

		if (step->branches && step->status == STEP_COMPLETED && !PlanIsTerminal(plan->status))
		{
			/* a branch earlier in the queue may have added steps before this one, which changes its order */
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

/*
 * Find the status that a plan should have. It is the derived one, with
 * four exceptions. A plan that has ended stays so. A stalled plan stays stalled
 * until a step moves. A plan never goes back to planning. An open failure keeps
 * a plan executing.
 */
static PlanStatus
PlanTarget(const PlanRow *plan)
{
	PlanStatus	derived = PlanDeriveStatus(plan->counts, plan->on_failure);

	if (PlanIsTerminal(plan->status) || (plan->status == PLAN_STALLED && !plan->moved))
		return plan->status;
	if (derived == PLAN_PLANNING && plan->status != PLAN_PLANNING)
		return PLAN_EXECUTING;
	if (derived == PLAN_COMPLETED && plan->open_failures > 0)
		return PLAN_EXECUTING;
	return derived;
}

/* Find the pause reason of a plan: that of its first step, in order, that has one. */
static Jsonb *
FirstPauseReason(Call *call, PlanRow *plan)
{
	List	   *first;

	if (plan->paused == 0 || PlanIsTerminal(plan->status))
		return NULL;
	first = StepsInStates(call, "step_paused", &plan->id, STATES_OPEN | STATES_ENDED, 1);
	return first ? ReasonWithPath(plan, JsonOf(((StepRow *) linitial(first))->pause_reason)) : NULL;
}

/* Set the pause reason of a plan from its steps, and audit a change. */
static void
PlanUpdatePauseReason(Call *call, PlanRow *plan)
{
	Jsonb	   *before = JsonOf(plan->pause_reason);
	Jsonb	   *reason = FirstPauseReason(call, plan);

	if (JsonEqual(before, reason))
		return;
	plan->pause_reason = CallKeep(call, (struct varlena *) reason);
	/* the audit entry for the end of the plan also ends its pause */
	if (PlanIsTerminal(plan->status))
		return;
	AuditAppend(call, plan, NULL, "plan_paused", JsonObjectOf("reason", reason));
}

/* ---------- the plan above ---------- */

/* Say in which way the outputs of a completed nested plan exceed the limits of a result; NULL if they do not. */
static char *
OutputsExcess(const PlanRow *nested)
{
	if (nested->status != PLAN_COMPLETED || nested->outputs == NULL)
		return NULL;
	return JsonExcess(JsonOf(nested->outputs));
}

/* Derive the status of a parent step from its nested plan. */
static StepStatus
StatusOfParentStep(const PlanRow *nested)
{
	switch (nested->status)
	{
		case PLAN_COMPLETED:
			return OutputsExcess(nested) ? STEP_FAILED : STEP_COMPLETED;
		case PLAN_FAILED:
		case PLAN_CANCELLED:
			return STEP_FAILED;
		case PLAN_AWAITING_REVIEW:
			return STEP_AWAITING_INPUT;
		default:
			return STEP_IN_PROGRESS;
	}
}

/* Move a parent step, with the result or the message of its nested plan. */
static void
ParentStepMove(Call *call, PlanRow *plan, StepRow *step, const PlanRow *nested, StepStatus to)
{
	if (to == STEP_COMPLETED)
	{
		step->result = nested->outputs;
		step->outcome = nested->outcome;
	}
	else if (to == STEP_FAILED && nested->status == PLAN_COMPLETED)
		step->message = psprintf("output of nested plan \"%s\" %s", nested->name, OutputsExcess(nested));
	else if (to == STEP_FAILED)
	{
		step->given_up = nested->status == PLAN_CANCELLED || nested->rejected;
		step->message = psprintf("nested plan \"%s\" %s: %s", nested->name,
								 nested->status == PLAN_CANCELLED ? "was cancelled" : "failed",
								 nested->message ? CutText(nested->message, REASON_TEXT_BYTES, NULL) : "no reason given");
	}
	if (to == STEP_COMPLETED)
		StepSubmit(call, plan, step, NestedDetail(nested));
	else
		StepMove(call, plan, step, to, NestedDetail(nested));
	/* a rejection fails every plan above, whatever its on_failure says */
	if (nested->rejected)
		PlanReject(call, plan, psprintf("step \"%s\" failed: %s", step->name, step->message));
}

/*
 * Wake a plan after a step has moved in a plan nested in it. A stalled plan
 * continues. If that step was retried, blocked steps are judged again, because
 * they may read it.
 */
static void
PlanWake(Call *call, PlanRow *plan, bool retried)
{
	if (plan->status == PLAN_STALLED)
		plan->moved = true;
	if (retried)
		PlanReconsider(call, plan);
	PlanSettle(call, plan);
}

/*
 * Wake the plans around a nested plan in which a step has moved, up to the root.
 * Most of them need no waking, so they are read without a lock first.
 */
static void
PlansAboveWake(Call *call, const PlanRow *nested, const PlanRow *plan)
{
	StepRow    *parent_step;

	while (plan != NULL && !PlanIsTerminal(plan->status))
	{
		if (plan->status == PLAN_STALLED || (nested->retried && plan->paused > 0))
			PlanWake(call, PlanInTree(call, nested->root, &plan->id), nested->retried);
		plan = PlanAround(call, plan, &parent_step);
	}
}

/* Update the parent step of a nested plan, and settle the plan above if the step has changed. */
static void
ParentStepUpdate(Call *call, PlanRow *nested)
{
	StepRow    *step = StepRead(call, &nested->parent_step_id);
	Jsonb	   *reason = NULL;
	StepStatus	to = StatusOfParentStep(nested);
	PlanRow    *plan;

	/* if the nested plan was cancelled because the step ended, the step has moved already */
	if (step == NULL || (step->status != STEP_IN_PROGRESS && step->status != STEP_AWAITING_INPUT))
		return;
	/* the step waits at its own gate, and the plan has ended */
	if (GateIsOpen(call, step))
		return;
	plan = PlanInTree(call, nested->root, &step->plan_id);
	if (PlanIsTerminal(plan->status))
		return;
	if ((nested->moved && nested->root->stalls) || nested->retried)
		PlansAboveWake(call, nested, plan);
	if (nested->pause_reason != NULL && !PlanIsTerminal(nested->status))
		reason = JsonOf(nested->pause_reason);
	if (step->status != to)
		ParentStepMove(call, plan, step, nested, to);
	else if (JsonEqual(reason, JsonOf(step->pause_reason)))
		return;
	if (to == STEP_IN_PROGRESS || to == STEP_AWAITING_INPUT)
		StepPause(call, plan, step, reason);
	PlanSettle(call, plan);
}

/* ---------- all of it ---------- */

/* Draw the consequences of all moves since the last call. The plan is written at the end of the call. */
void
PlanSettle(Call *call, PlanRow *plan)
{
	if (plan->retried)
		PlanReconsider(call, plan);
	PlanDrain(call, plan);
	PlanMove(call, plan, PlanTarget(plan), NULL);
	PlanUpdatePauseReason(call, plan);
	PlanTouch(plan);
	if (plan->nested)
		ParentStepUpdate(call, plan);
	plan->moved = plan->retried = false;
}
