/*
 * settle.c
 *	  draw the consequences of what has moved in a plan
 *
 * However many steps have moved, PlanSettle looks once: at branching
 * conditions, at dependents, at the status of the plan, at its pause reason,
 * and at the step that holds the plan if it is nested, which settles the plan
 * above, and so on up to the root. Steps whose end has yet to be looked at are
 * in a queue, plan->settled, so that a cascade of any length needs no stack.
 *
 * Locks: the caller holds the tree's root and the plan.
 */
#include "engine/engine.h"

#include "miscadmin.h"

static void TreeRise(Call *call, PlanRow *nested);

/* ---------- what is blocked ---------- */

/* Note on a pending step why it cannot go on. */
void
StepBlock(Call *call, PlanRow *plan, StepRow *step, const Judgement *j)
{
	step->message = j->message;
	StepPause(call, plan, step, j->reason);
}

/* Look again at a pending step that is blocked: what blocked it may have changed. */
void
StepReconsider(Call *call, PlanRow *plan, StepRow *step)
{
	Next		next = {0};
	Judgement	j = {0};

	if (step->status != STEP_PENDING || step->pause_reason == NULL)
		return;
	next.run = ReasonOfRun(JsonOf(step->pause_reason));
	if (Judge(call, plan, step, &next, &j) == DUE_BLOCKED)
		StepBlock(call, plan, step, &j);
	else
		StepPause(call, plan, step, NULL);
}

/*
 * A failed step is tried again: what reads it waits for it now. Whatever blocks a
 * step, its condition may read the one that is tried again, and come out false.
 */
static void
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
		reason = ReasonWithPath(plan, RowJson(&rows, 0, 1));
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

/* Say what of a nested plan's outputs is over the limits of a result; NULL: nothing. */
static char *
OutputsExcess(const PlanRow *nested)
{
	if (nested->status != PLAN_COMPLETED || nested->outputs == NULL)
		return NULL;
	return JsonExcess(JsonOf(nested->outputs));
}

/* What a step becomes when the plan nested in it stands so. */
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

/* Give the step the result, or the message, of its nested plan, and move it. */
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
		step->message = psprintf("nested plan \"%s\" %s: %s", nested->name,
								 nested->status == PLAN_CANCELLED ? "was cancelled" : "failed",
								 nested->message ? CutText(nested->message, REASON_TEXT_BYTES) : "no reason given");
	StepMove(call, plan, step, to, NestedDetail(nested));
}

/* A stalled plan goes on when a step moves, also one below it; and a step may read one below that is tried again. */
static void
Wake(Call *call, PlanRow *plan, bool retried)
{
	if (plan->status == PLAN_STALLED)
		plan->moved = true;
	if (retried)
		PlanReconsider(call, plan);
	PlanSettle(call, plan);
}

/* Wake the plan around a nested one of which a step has moved, and those further up; most are awake, and read only. */
static void
WakeAbove(Call *call, const PlanRow *nested, const PlanRow *plan)
{
	StepRow    *parent_step;

	while (plan != NULL && !PlanIsTerminal(plan->status))
	{
		if (plan->status == PLAN_STALLED || (nested->retried && plan->paused > 0))
			Wake(call, PlanInTree(call, nested->root, &plan->id), nested->retried);
		plan = PlanAround(call, plan, &parent_step);
	}
}

static void
TreeRise(Call *call, PlanRow *nested)
{
	StepRow    *step = StepRead(call, &nested->parent_step_id);
	Jsonb	   *reason = NULL;
	StepStatus	to = StatusOfParentStep(nested);
	PlanRow    *plan;

	/* when the step ends its nested plan, it has moved already */
	if (step == NULL || (step->status != STEP_IN_PROGRESS && step->status != STEP_AWAITING_INPUT))
		return;
	plan = PlanInTree(call, nested->root, &step->plan_id);
	if (PlanIsTerminal(plan->status))
		return;
	if ((nested->moved && nested->root->stalls) || nested->retried)
		WakeAbove(call, nested, plan);
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

/* Draw the consequences of what has moved, and save the plan. */
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
		TreeRise(call, plan);
	plan->moved = plan->retried = false;
}
