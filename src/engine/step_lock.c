/*
 * step_lock.c
 *	  lock the tree of a step
 *
 * A step never changes its plan, and a plan never changes its root. So each
 * backend remembers where steps belong, which saves a query. If a step was
 * purged since, or belongs to another tenant, that is noticed when its tree is
 * locked.
 */
#include "engine/engine.h"

#define HOMES	1024

typedef struct StepHome
{
	pg_uuid_t	step_id;
	pg_uuid_t	plan_id;
	pg_uuid_t	root_id;
} StepHome;

static StepHome homes[HOMES];

/* Find the entry for a step. It is chosen by random bytes of the id. */
static StepHome *
HomeOf(const pg_uuid_t *step_id)
{
	return &homes[(step_id->data[12] << 8 | step_id->data[13]) % HOMES];
}

/* Remember where a step belongs. */
void
HomeRemember(const StepRow *step)
{
	StepHome   *home = HomeOf(&step->id);

	home->step_id = step->id;
	home->plan_id = step->plan_id;
	home->root_id = step->root_id;
}

/* Read from a row of stepwise.step where the step belongs. */
static void *
HomeMake(TupleTableSlot *slot)
{
	StepHome   *home = palloc(sizeof(StepHome));
	Fields		f = SlotFields(slot, STEP_COLUMNS, "step");

	home->step_id = FieldUuid(&f, STEP_COL_ID);
	home->plan_id = FieldUuid(&f, STEP_COL_PLAN_ID);
	home->root_id = FieldUuid(&f, STEP_COL_ROOT_ID);
	return home;
}

/* Find where a step belongs, from memory or from its row; NULL if there is no such step. */
static const StepHome *
HomeFind(Call *call, const pg_uuid_t *step_id)
{
	const StepHome *home = HomeOf(step_id);
	Key			key;

	if (UuidEqual(&home->step_id, step_id))
		return home;
	key = PlaceKey(call, step_id);
	return TableRead("step", "step_pkey", &key, NULL, NULL, HomeMake);
}

/* Lock the root and the plan of a step; NULL if the tenant has no such tree. */
static PlanRow *
HomeLock(Call *call, const StepHome *home)
{
	PlanRow    *root = RootLock(call, &home->root_id);

	return root ? PlanInTree(call, root, &home->plan_id) : NULL;
}

/* Lock the tree and the plan of a step, and read the step; NULL if there is no such step under the lock. */
PlanRow *
PlanLockIfStep(Call *call, const pg_uuid_t *step_id, StepRow **step)
{
	const StepHome *home = step_id ? HomeFind(call, step_id) : NULL;
	PlanRow    *plan = home ? HomeLock(call, home) : NULL;

	/* read it only under the lock; before, another transaction could still change it */
	*step = plan ? StepRead(call, step_id) : NULL;
	if (*step == NULL)
		return NULL;
	HomeRemember(*step);
	return plan;
}

/* Lock the tree and the plan of a step, and read the step; SW002 if the tenant has no step of this id. */
PlanRow *
PlanLockOfStep(Call *call, const pg_uuid_t *step_id, StepRow **step)
{
	PlanRow    *plan = PlanLockIfStep(call, step_id, step);

	if (plan == NULL)
		StepNotFound(step_id);
	return plan;
}
