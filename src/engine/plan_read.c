/*
 * plan_read.c
 *	  read plans without locking them
 *
 * A plan that the call has locked is not read again.
 */
#include "engine/engine.h"

/* Find a plan that this call has locked; NULL if it has not. */
PlanRow *
PlanLocked(const Call *call, const pg_uuid_t *plan_id)
{
	ListCell   *cell;

	foreach(cell, call->plans)
	{
		PlanRow    *plan = lfirst(cell);

		if (UuidEqual(&plan->id, plan_id))
			return plan;
	}
	return NULL;
}

/* Report that the tenant has no plan of this id. */
void
PlanNotFound(const pg_uuid_t *plan_id)
{
	ereport(ERROR,
			(errcode(ERRCODE_PLAN_NOT_FOUND),
			 errmsg("plan \"%s\" not found", plan_id ? UuidText(plan_id) : ""),
			 errhint("stepwise.list_plans() lists the plans of your tenant.")));
}

/* Read a plan without locking it; NULL if there is none. A plan that the call has locked is not read again. */
PlanRow *
PlanRead(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow    *plan;
	Key			key;

	if (plan_id == NULL)
		return NULL;
	plan = PlanLocked(call, plan_id);
	key = PlaceKey(call, plan_id);
	return plan ? plan : TableRead("plan", "plan_pkey", &key, NULL, NULL, PlanMake);
}

/* Read the plan that was created with an idempotency key; NULL if there is none. */
PlanRow *
PlanReadByKey(Call *call, const char *idempotency_key)
{
	Key			key = {.call = call};

	KeyText(&key, call->tenant_datum);
	KeyText(&key, CStringGetTextDatum(idempotency_key));
	return TableRead("plan", "plan_idempotency_key", &key, NULL, NULL, PlanMake);
}

/* Read a plan without locking it; SW001 if the tenant has no plan of this id. */
PlanRow *
PlanMustRead(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow    *plan = PlanRead(call, plan_id);

	if (plan == NULL)
		PlanNotFound(plan_id);
	return plan;
}
