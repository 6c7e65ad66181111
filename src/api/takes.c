/*
 * takes.c
 *	  decide whether a step takes the result of a tool that the client has called
 *
 * record_tool_result asks this before it records. why and handoff ask it too,
 * so that they name record_tool_result only where it takes the result.
 */
#include "api/api.h"

/* Is it a failure that waits to be dealt with? On_failure pause waits for every failed step, continue for none. */
bool
IsOpenFailure(const PlanRow *plan, const StepRow *step)
{
	return step->status == STEP_FAILED &&
		(plan->on_failure == ON_FAILURE_PAUSE || (plan->on_failure == ON_FAILURE_STOP && step->pause_reason != NULL));
}

/* Do only the arguments of a step block it? The client has called the tool with others. */
static bool
ArgumentsBlock(const Judgement *j)
{
	ReasonType	type = ReasonTypeOf(j->reason);

	return type == REASON_UNRESOLVABLE_PARAMS || type == REASON_UNRESOLVED_DEPENDENCY || type == REASON_SCHEMA_MISMATCH;
}

/* Judge a pending or failed step: can it take a report now? A failed step is judged as it would be after a retry. */
bool
TakesNow(Call *call, PlanRow *plan, const StepRow *step, Due *due, Judgement *j)
{
	StepRow		asked = *step;
	Next		next = {0};

	if (step->status == STEP_FAILED)
	{
		asked.status = STEP_PENDING;
		/* a report is no claim that fails again by itself */
		asked.max_attempts = 0;
	}
	*due = StepIsDue(call, plan, &asked, &next, j);
	return *due == DUE_READY || (*due == DUE_BLOCKED && ArgumentsBlock(j));
}

/* Say whether record_tool_result takes the result of a step that is named and not in progress. */
bool
StepTakesReport(Call *call, PlanRow *plan, const StepRow *step)
{
	StepRow		asked = *step;
	Judgement	j = {0};
	Due			due;

	return (step->status == STEP_PENDING || IsOpenFailure(plan, step)) && TakesNow(call, plan, step, &due, &j) &&
		GateIsPassed(call, plan, &asked);
}
