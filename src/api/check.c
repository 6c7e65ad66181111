/*
 * check.c
 *	  checks of arguments and of states that several functions share
 */
#include "api/api.h"

/* The fencing number must be that of a claim that stands. */
void
CheckAttempt(const StepRow *step, int attempt)
{
	if (attempt != step->attempt || (step->status == STEP_PENDING && step->attempt > 0))
		ereport(ERROR,
				(errcode(ERRCODE_STALE_ATTEMPT),
				 errmsg("attempt %d of step \"%s\" is no longer current", attempt, step->name),
				 errdetail_plural("The step is %s, and was claimed %d time.", "The step is %s, and was claimed %d times.",
								  step->attempt, StepStatusName[step->status], step->attempt),
				 errhint("Its claim was taken back. Drop the result, and ask for work with stepwise.get_next_step(plan_id).")));
}

void
CheckOptionalAttempt(FunctionCallInfo fcinfo, int n, const StepRow *step)
{
	if (!PG_ARGISNULL(n))
		CheckAttempt(step, PG_GETARG_INT32(n));
}

/* Some functions take a narrower path than the transition table: rule says which. */
void
CheckInProgress(const StepRow *step, StepStatus to, const char *rule)
{
	if (step->status != STEP_IN_PROGRESS)
		StepTransitionRefuse(step, to, rule);
}

void
CheckFailed(const StepRow *step)
{
	if (step->status != STEP_FAILED)
		StepTransitionRefuse(step, STEP_PENDING, "Only a failed step can be tried again.");
}

void
CheckConfidence(double confidence)
{
	/* so written, NaN is refused too */
	if (!(confidence >= 0 && confidence <= 1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("confidence must lie between 0 and 1")));
}

/* SQL NULL is no result; the JSON value null is one. */
void
CheckResultGiven(const Jsonb *result)
{
	if (result == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("result must not be null"),
				 errdetail("SQL NULL is no result."),
				 errhint("Give a JSON value; where there is nothing to tell, {} or the JSON value null.")));
}

Outcome
CheckOutcome(const char *outcome)
{
	int			index = outcome ? NameIndex(outcome, OutcomeName, OUTCOMES) : OUTCOME_SUCCESS;

	if (index != OUTCOME_SUCCESS && index != OUTCOME_FAILURE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("unknown outcome \"%s\"", ShortText(outcome)),
				 errhint("Use success or failure.")));
	return index;
}
