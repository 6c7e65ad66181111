/*
 * end.c
 *	  end a step that waits for a person by another way than an answer
 *
 * skip_step and fail_step end a wait like a decision does. So they ask for the
 * same rights. A step that holds a nested plan ends the waits in that plan
 * too, and so does cancel_plan of the nested plan. To cancel a root plan is
 * left to all, because then nothing goes on.
 *
 * Locks: the caller holds the root of the tree.
 */
#include "api/api.h"

/* Is the plan nested in the step, at any depth? */
static bool
IsBelow(Call *call, const PlanRow *plan, const StepRow *step)
{
	StepRow    *parent;

	for (; plan != NULL && plan->nested; plan = PlanAround(call, plan, &parent))
		if (UuidEqual(&plan->parent_step_id, &step->id))
			return true;
	return false;
}

/* Refuse to end a step if that would end a wait about which the caller may not decide. */
void
CheckMayEnd(Call *call, PlanRow *plan, const StepRow *step)
{
	static KeptQuery waiting = {
		"SELECT k.plan_id, k.step_id, k.kind = 'review' FROM stepwise.checkpoint AS k"
		" WHERE k.tenant = $1 AND k.root_id = $2 ORDER BY k.id",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows;

	if (step->status != STEP_AWAITING_INPUT && !(step->status == STEP_IN_PROGRESS && StepNests(step)))
		return;
	rows = QueryById(call, &waiting, &plan->root_id);
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t	plan_id = RowUuid(&rows, i, 1);
		pg_uuid_t	step_id = RowUuid(&rows, i, 2);
		PlanRow    *around = PlanInTree(call, plan->root, &plan_id);
		StepRow    *ended;

		if (!UuidEqual(&step_id, &step->id) && !IsBelow(call, around, step))
			continue;
		ended = StepMustRead(call, &step_id);
		CheckMayDecide(call, ended);
		if (RowBool(&rows, i, 3))
			CheckSeparateReviewer(call, around, ended);
	}
	RowsFree(&rows);
}
