/*
 * check.c
 *	  checks of arguments and of states that several functions share
 */
#include "api/api.h"

/*
 * Refuse to let a worker do a step that the engine does. "what" is a participle
 * for the message, such as "submitted".
 */
void
CheckByWorker(Call *call, const StepRow *step, const char *what)
{
	const StepKindRule *rule = StepRuleOf(step);

	if (!rule->by_worker)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" %s and cannot be %s", step->name, StepDoes(step), what),
				 rule->refusal_detail ? errdetail("%s", rule->refusal_detail) : 0,
				 errhint("%s", StateHint(call, step))));
}

/* Say in a sentence why a pending step is not due. */
static char *
NotDueDetail(const StepRow *step, Due due, const Judgement *j)
{
	switch (due)
	{
		case DUE_HELD:
		case DUE_WAITS:
			if (j->awaited != NULL)
				return psprintf("Step \"%s\" comes first, and is %s.", j->awaited->name, StepStatusName[j->awaited->status]);
			return pstrdup("A step before it has not ended.");
		case DUE_REVIEW:
			return pstrdup("A person has to approve it first.");
		case DUE_SKIP:
			return pstrdup("Its condition is false, so it will be skipped.");
		case DUE_GIVE_UP:
			return pstrdup("Its attempts are used up.");
		case DUE_BLOCKED:
			return psprintf("It is blocked: %s.", JsonGetText(j->reason, "type"));
		default:
			return pstrdup("It is not for a worker to do.");
	}
}

/* Raise the error that a pending step is not due. */
void
NotDueRefuse(Call *call, const StepRow *step, Due due, const Judgement *j)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TRANSITION),
			 errmsg("step \"%s\" is not due", step->name),
			 errdetail("%s", NotDueDetail(step, due, j)),
			 errhint("%s", StepHint(call, step, "stepwise.get_next_step(root_id) hands out what is due; stepwise.why(root_id) says what the plan waits for."))));
}

/* Refuse a pending step that was claimed before, or is not due now. */
void
CheckDue(Call *call, PlanRow *plan, StepRow *step)
{
	Next		next = {0};
	Judgement	j = {0};
	Due			due;

	CheckNotTakenBack(call, step);
	due = StepIsDue(call, plan, step, &next, &j);
	if (due != DUE_READY)
		NotDueRefuse(call, step, due, &j);
}

/* Refuse a step that a review sent back: nobody holds it until somebody claims it again. */
void
CheckNotSentBack(Call *call, const StepRow *step, StepStatus to)
{
	if (step->sent_back)
		StepTransitionRefuse(call, step, to, "A review has sent the step back, and nobody has claimed it since.");
}

/* Refuse a caller that has no right to decide. The step waits for a person, or will. */
void
CheckMayDecide(Call *call, const StepRow *step)
{
	if (!CallerMayDecide(call))
		ereport(ERROR,
				(errcode(ERRCODE_APPROVAL_MISMATCH),
				 errmsg("role \"%s\" has no right to decide about step \"%s\"", RoleText(call->caller), step->name),
				 errdetail("A person decides about this step, or about a step before it."),
				 errhint("%s", StepHint(call, step, "Leave the decision to the person; stepwise.why(root_id) says what the plan waits for."))));
}

/* Refuse to end the review of a step, if the plan wants a separate reviewer and the caller is none. */
void
CheckSeparateReviewer(Call *call, const PlanRow *plan, const StepRow *step)
{
	const char *part = PartOfCaller(call, plan, step);

	if (part != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_APPROVAL_MISMATCH),
				 errmsg("role \"%s\" may not decide the review of step \"%s\"", RoleText(call->caller), step->name),
				 errdetail("The plan wants a separate reviewer, and this role %s.", part),
				 errhint("%s", StepHint(call, step, "The review waits for a person who has no part in the step; stepwise.why(root_id) shows it."))));
}

/* Refuse a step that is not in progress. The transition table allows more; rule says what this function needs. */
void
CheckInProgress(Call *call, const StepRow *step, StepStatus to, const char *rule)
{
	if (step->status != STEP_IN_PROGRESS)
		StepTransitionRefuse(call, step, to, rule);
}

/* Refuse a step that has not failed. */
void
CheckFailed(Call *call, const StepRow *step)
{
	if (step->status != STEP_FAILED)
		StepTransitionRefuse(call, step, STEP_PENDING, "Only a failed step can be tried again.");
}

/* Refuse a confidence outside 0 to 1. */
void
CheckConfidence(double confidence)
{
	/* this form refuses NaN too */
	if (!(confidence >= 0 && confidence <= 1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("confidence must lie between 0 and 1"),
				 errhint("Use a fraction such as 0.85, not a percentage.")));
}

/* Refuse SQL NULL as a result. The JSON value null is a result. */
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

/* Read the outcome of a submission; NULL means success. */
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
