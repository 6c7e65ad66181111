/*
 * door.c
 *	  a gate has no other door
 *
 * engine/behind.c says what a gate is, and who may get past it. The functions
 * here refuse the others.
 *
 * Callers who may decide pass before anything is searched.
 */
#include "api/api.h"

/* Refuse to skip or fail a step if the caller may not. */
void
CheckDoor(Call *call, const StepRow *step)
{
	if (!MaySkip(call, step))
		CheckMayDecide(call, step);
}

/* Refuse to cancel a nested plan that has a gate, without the right to decide: the plan above would go on. */
void
CheckDoorOfCancel(Call *call, const PlanRow *plan)
{
	if (plan->nested && !CallerMayDecide(call))
		CheckDoor(call, StepMustRead(call, &plan->parent_step_id));
}

/* Refuse to change a plan that is nested in a gate, or in a step that depends on one, without the right to decide. */
void
CheckDoorOfPlan(Call *call, const PlanRow *plan)
{
	const StepRow *gate;

	if (!plan->nested || CallerMayDecide(call))
		return;
	if ((gate = GateAround(call, plan)) != NULL)
		CheckMayDecide(call, gate);
}

/* Refuse to change a gate, or a step that depends on one, without the right to decide. */
void
CheckDoorOfChange(Call *call, const PlanRow *plan, const StepRow *step)
{
	const StepRow *gate;

	if (CallerMayDecide(call))
		return;
	if ((gate = GateOfStep(call, plan, step)) != NULL)
		CheckMayDecide(call, gate);
}

/*
 * Refuse steps that were added behind a gate, without the right to decide: who
 * answered there did not see them. A gate that was added with them does not
 * count. In a sequence the added steps stand together, from "order" on.
 */
void
CheckDoorOfAdded(Call *call, const PlanRow *plan, const pg_uuid_t *ids, int count, int order)
{
	StepRow    *gate;

	if (CallerMayDecide(call))
		return;
	if ((gate = GateOfAdded(call, plan, ids, count, order)) != NULL)
		CheckMayDecide(call, gate);
}

/* Refuse to reorder a plan that has a gate, without the right to decide. */
void
CheckDoorOfOrder(Call *call, const PlanRow *plan)
{
	StepRow    *gate;

	if (CallerMayDecide(call))
		return;
	if ((gate = GateOfPlan(call, plan)) != NULL)
		CheckMayDecide(call, gate);
}

/* Say whether a pending step is held back, and a gate is among the steps on which it depends. */
static bool
IsBehindGate(Call *call, PlanRow *plan, const StepRow *step)
{
	StepRow		asked = *step;
	Next		next = {0};
	Judgement	j = {0};

	return step->status == STEP_PENDING && StepIsDue(call, plan, &asked, &next, &j) == DUE_HELD &&
		GateBehind(call, plan, step) != NULL;
}

/* Refuse to start a step with the result of a tool, if a gate before it was not passed. */
void
CheckGatePassed(Call *call, PlanRow *plan, StepRow *step)
{
	if (IsBehindGate(call, plan, step))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" is not due", step->name),
				 errdetail("A step before it has not ended."),
				 errhint("%s", StepHint(call, step, "stepwise.why(root_id) says what the plan waits for."))));
	if (!GateIsPassed(call, plan, step))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" is not due", step->name),
				 errdetail("A person has to approve it first."),
				 errhint("%s", StepHint(call, step, "stepwise.get_next_step(root_id) opens its review; stepwise.why(root_id) says what the plan waits for."))));
}
