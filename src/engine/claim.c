/*
 * claim.c
 *	  claims: find them, give them back, release those whose lease expired
 */
#include "engine/engine.h"

/* A plan that failed leaves its steps as they were; what is claimed there is nobody's work any more. */
#define IN_OPEN_PLAN \
	" AND EXISTS (SELECT FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = s.plan_id AND p.completed_at IS NULL)"

/* An expired lease counts as released. */
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

		ParamTenant(&params, call);
		ParamUuid(&params, &root->id);
		ParamTime(&params, GetCurrentTimestamp());
		step = StepFetch(&find, &params);
		if (step == NULL)
			return;
		plan = PlanInTree(call, root, &step->plan_id);
		StepRelease(call, plan, step, "lease expired");
		PlanSettle(call, plan);
	}
}

/* Give a claim back, and say why. */
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

/* Find the claim that a worker holds in the tree; a worker that asks again gets it again. */
StepRow *
ClaimOfWorker(Call *call, const PlanRow *root, const char *worker)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.root_id = $2 AND s.holder = $3" IN_OPEN_PLAN
		" ORDER BY s.started_at LIMIT 1",
		3, {TEXTOID, UUIDOID, TEXTOID}, .reads_plans = true
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamUuid(&params, &root->id);
	ParamText(&params, worker);
	return StepFetch(&find, &params);
}
