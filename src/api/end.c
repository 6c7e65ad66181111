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

/* Refuse to end a step if that would end a wait about which the caller may not decide. */
void
CheckMayEnd(Call *call, const StepRow *step)
{
	PlanRow    *around;
	StepRow    *ended = WaitOfOthers(call, step, &around);

	if (ended != NULL)
	{
		CheckMayDecide(call, ended);
		CheckSeparateReviewer(call, around, ended);
	}
}
