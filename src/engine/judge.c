/*
 * judge.c
 *	  decide what becomes of a pending step, without changing anything
 *
 * The search for work (NextFind), its preview for the functions that explain a
 * pause (NextPeek), and the second look at a blocked step (StepReconsider) all
 * call Judge, so that they cannot disagree.
 */
#include "engine/engine.h"

/* Judge the condition of a step. A step without a condition is ready. */
static Due
JudgeCondition(Call *call, PlanRow *plan, const StepRow *step, Judgement *j)
{
	ResolveFault open = {0};
	char	   *why = NULL;

	if (step->condition_path == NULL)
		return DUE_READY;
	switch (StepConditionDecide(call, plan, step, &why, &open))
	{
		case CONDITION_TRUE:
			return DUE_READY;
		case CONDITION_FALSE:
			return DUE_SKIP;
		default:
			if (open.problem == RESOLVE_NOT_READY)
				return JudgeFault(step, &open, j);
			j->reason = ConditionReason(step, why);
			return DUE_BLOCKED;
	}
}

/* Decide what becomes of a pending step. This writes nothing. */
Due
Judge(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	Due			due;

	/* The step has used up its attempts, so it is not handed out again. retry_step can allow one more. */
	if (step->max_attempts > 0 && step->attempt >= step->max_attempts)
		return DUE_GIVE_UP;
	due = JudgeCondition(call, plan, step, j);
	return due == DUE_READY ? StepRuleOf(step)->ready(call, plan, step, next, j) : due;
}
