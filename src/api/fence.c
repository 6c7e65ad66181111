/*
 * fence.c
 *	  check that a call about a claim comes from who holds the claim
 *
 * A worker may be late: its claim was taken back, and another one has the step
 * by now. So a claim with a lease, and every claim after the first, is fenced:
 * the call must say the attempt of the claim, or be made by its worker. The
 * first claim without a lease has had no other claimant, so there the call may
 * say neither. What it says must be right in any case.
 *
 * The errors do not tell the current attempt. A late worker could repeat its
 * call with that number, and so overwrite the work of another one.
 */
#include "api/api.h"

/* Read the name that a worker gives itself; NULL if none is given. */
char *
ArgumentWorker(FunctionCallInfo fcinfo, int n)
{
	char	   *worker = ArgumentText(fcinfo, n);

	CheckNameLimit(worker, "worker");
	if (worker != NULL && *worker == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("worker must not be empty"),
				 errhint("Leave it out, or give a name that tells this agent from others.")));
	return worker;
}

/* Read what a call says about the claim. The worker becomes the actor of the audit entries. */
Claimant
ArgumentClaimant(FunctionCallInfo fcinfo, Call *call, int attempt, int worker)
{
	Claimant	claimant = {0};

	claimant.worker = ArgumentWorker(fcinfo, worker);
	claimant.says_attempt = !PG_ARGISNULL(attempt);
	if (claimant.says_attempt)
		claimant.attempt = PG_GETARG_INT32(attempt);
	call->actor = claimant.worker;
	return claimant;
}

/* Say whether a call names another attempt than the last one. */
bool
NamesOtherAttempt(const StepRow *step, const Claimant *claimant)
{
	return claimant->says_attempt && claimant->attempt != step->attempt;
}

/* Refuse the number of an attempt whose claim is no longer valid. */
void
CheckAttempt(Call *call, const StepRow *step, const Claimant *claimant)
{
	bool		taken_back = step->status == STEP_PENDING && step->attempt > 0;

	if (NamesOtherAttempt(step, claimant) || (claimant->says_attempt && taken_back))
		ereport(ERROR,
				(errcode(ERRCODE_STALE_ATTEMPT),
				 errmsg("attempt %d of step \"%s\" is no longer current", claimant->attempt, step->name),
				 errdetail("The step is %s.", StepStatusName[step->status]),
				 errhint("%s", StepHint(call, step, "Its claim was taken back. Drop the result; ask for work with stepwise.get_next_step(root_id)."))));
}

/* Refuse a pending step that was claimed before: the claim of the caller was taken back. */
void
CheckNotTakenBack(Call *call, const StepRow *step)
{
	if (step->status == STEP_PENDING && step->attempt > 0)
		ereport(ERROR,
				(errcode(ERRCODE_STALE_ATTEMPT),
				 errmsg("the claim on step \"%s\" was taken back", step->name),
				 errhint("%s", StepHint(call, step, "Drop the result; ask for work with stepwise.get_next_step(root_id)."))));
}

/* Refuse a worker that is not the one who holds the claim, or who held the claim that failed. */
static void
CheckHolder(Call *call, const StepRow *step, const Claimant *claimant)
{
	bool		failed = step->status == STEP_FAILED;

	if (claimant->worker != NULL && step->worker != NULL && strcmp(claimant->worker, step->worker) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_STALE_ATTEMPT),
				 errmsg("step \"%s\" %s claimed by another worker", step->name, failed ? "was" : "is"),
				 errdetail("\"%s\" %s it, not \"%s\".", step->worker, failed ? "held" : "holds", claimant->worker),
				 errhint("%s", StepHint(call, step, "Drop the result; ask for work with stepwise.get_next_step(root_id)."))));
}

/* Refuse a call that shows by nothing that it knows the claim, if the claim is fenced. */
static void
CheckShowsClaim(const StepRow *step, const Claimant *claimant)
{
	bool		fenced = step->attempt > 1 || TimeIsSet(step->lease_expires_at);

	/* CheckHolder has compared the worker, where the claim has one */
	if (!fenced || claimant->says_attempt || (claimant->worker != NULL && step->worker != NULL))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_STALE_ATTEMPT),
			 errmsg("the call does not show whose claim on step \"%s\" it is about", step->name),
			 errdetail("A claim with a lease, and every claim after the first, is known by its attempt or its worker."),
			 errhint("Pass the attempt that stepwise.get_next_step answered, or the worker that it was given.")));
}

/* Refuse a call about a claim that the caller does not hold. */
void
CheckClaim(Call *call, const StepRow *step, const Claimant *claimant)
{
	CheckAttempt(call, step, claimant);
	if (claimant->worker != NULL)
		CheckNotTakenBack(call, step);
	if (step->status != STEP_IN_PROGRESS)
		return;
	CheckHolder(call, step, claimant);
	CheckShowsClaim(step, claimant);
}

/*
 * Refuse to give up a failure in the name of a worker whose claim was not the
 * one that failed: the worker is late, and speaks of an earlier claim. A call
 * that names no worker is not about a claim, so everybody may give up.
 */
void
CheckFailedClaim(Call *call, const StepRow *step, const Claimant *claimant)
{
	if (claimant->worker == NULL)
		return;
	CheckHolder(call, step, claimant);
	CheckShowsClaim(step, claimant);
}
