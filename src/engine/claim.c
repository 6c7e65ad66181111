/*
 * claim.c
 *	  find and release the claims of workers
 *
 * A claim is a step in progress that was handed out to a worker. The worker is
 * its holder, if it gave its name. A claim may have a lease. An expired lease
 * releases the claim: the step is pending again.
 *
 * Locks: the caller holds the lock of the root. StepRelease also needs the lock
 * of the plan.
 */
#include "engine/engine.h"

/* A failed plan may have steps that are still in progress. These claims do not count any more. */
#define IN_OPEN_PLAN \
	" AND EXISTS (SELECT FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = s.plan_id AND p.completed_at IS NULL)"

/* Release the claims of a tree whose leases have expired. */
void
ReleaseExpired(Call *call, PlanRow *root)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.root_id = $2 AND s.lease_expires_at < $3" IN_OPEN_PLAN
		" ORDER BY s.lease_expires_at LIMIT 1",
		3, {TEXTOID, UUIDOID, TIMESTAMPTZOID}, .reads_plans = true
	};

	while (root->leases)
	{
		Params		params = {0};
		StepRow    *step;
		PlanRow    *plan;

		ParamKey(&params, call, &root->id);
		ParamTime(&params, GetCurrentTimestamp());
		step = StepFetch(&find, &params);
		if (step == NULL)
			return;
		plan = PlanInTree(call, root, &step->plan_id);
		StepReclaim(call, plan, step, "lease expired");
		PlanSettle(call, plan);
	}
}

/* Release a claim whose worker seems to be gone. The next attempt is told that this one was lost. */
void
StepReclaim(Call *call, PlanRow *plan, StepRow *step, const char *why)
{
	step->previous_error = psprintf("attempt %d ended without a result: %s", step->attempt, why);
	StepRelease(call, plan, step, why);
}

/* Release a claim. The audit entry says why. */
void
StepRelease(Call *call, PlanRow *plan, StepRow *step, const char *why)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "reason", why);
	if (step->worker != NULL)
		JsonPutText(&b, "worker", step->worker);
	JsonObjectEnd(&b);
	StepMove(call, plan, step, STEP_PENDING, JsonFinish(&b));
}

/* Claim the step that a search has found. */
void
StepClaim(Call *call, Next *next, Jsonb *detail)
{
	if (next->step->status == STEP_IN_PROGRESS)
		StepTake(call, next->plan, next->step, detail);
	else
		StepMove(call, next->plan, next->step, STEP_IN_PROGRESS, detail);
	PlanSettle(call, next->plan);
}

/* Say whether a claim has shown no sign of life for longer than its threshold. */
bool
ClaimIsStalled(const PlanRow *plan, const StepRow *step)
{
	TimestampTz since = TimeIsSet(step->active_at) ? step->active_at : step->started_at;
	Interval   *threshold = step->stall_after ? step->stall_after : plan->stall_after;

	if (step->status != STEP_IN_PROGRESS || step->sent_back || StepNests(step) || !TimeIsSet(since))
		return false;
	return TimeAfter(since, threshold ? threshold : DefaultStallAfter()) <= GetCurrentTimestamp();
}

/* List the steps of a tree that a review has sent back and nobody has claimed since, the longest waiting first. */
Rows
StepsSentBack(Call *call, const PlanRow *asked)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.root_id = $2 AND s.sent_back" IN_OPEN_PLAN
		" ORDER BY s.active_at, s.id",
		2, {TEXTOID, UUIDOID}, .reads_plans = true
	};

	return QueryById(call, &find, &asked->root_id);
}

/* Find the oldest claim that a worker holds in a tree; a worker that asks for work again gets that step again. */
StepRow *
ClaimOfWorker(Call *call, const PlanRow *root, const char *worker)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.root_id = $2 AND s.holder = $3" IN_OPEN_PLAN
		" ORDER BY s.started_at LIMIT 1",
		3, {TEXTOID, UUIDOID, TEXTOID}, .reads_plans = true
	};
	Params		params = {0};

	ParamKey(&params, call, &root->id);
	ParamText(&params, worker);
	return StepFetch(&find, &params);
}
