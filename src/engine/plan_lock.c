/*
 * plan_lock.c
 *	  lock trees of plans
 *
 * Locks: first the root plan of the tree, then the plan, both FOR NO KEY
 * UPDATE, then the steps, which an update locks. Every call that changes a
 * plan or a step begins with one of the PlanLock functions, here or in
 * step_lock.c.
 *
 * A locked plan is read into the memory of the call, and is in call->plans.
 */
#include "engine/engine.h"

/* Check that a row of stepwise.plan is the root of its tree; id is its own id. */
static bool
IsRoot(TupleTableSlot *slot, const void *id)
{
	bool		isnull;
	Datum		root_id = slot_getattr(slot, PLAN_COL_ROOT_ID + 1, &isnull);

	return !isnull && UuidEqual(DatumGetUUIDP(root_id), id);
}

/* Add a plan to those of the call; the call has locked or inserted its row. */
PlanRow *
PlanKeep(Call *call, PlanRow *plan, PlanRow *root)
{
	MemoryContext current = MemoryContextSwitchTo(call->context);

	plan->root = root ? root : plan;
	call->plans = lappend(call->plans, plan);
	call->save = RowsWrite;
	MemoryContextSwitchTo(current);
	return plan;
}

/*
 * Lock the row of a plan, and read it into the memory of the call.
 *
 * Those who wait for it queue for a lock of its id first, and only the first
 * of them waits for the row. Otherwise every commit would wake all of them,
 * only to wait for the new version of the row: each has to follow the row from
 * version to version. Who finds the row free does not queue.
 */
static PlanRow *
PlanRowLock(Call *call, const pg_uuid_t *plan_id, TupleTest test, bool wait)
{
	MemoryContext current = MemoryContextSwitchTo(call->context);
	Key			key = PlaceKey(call, plan_id);
	bool		held;
	PlanRow    *plan = TableLock("plan", "plan_pkey", &key, test, plan_id, PlanMake, &held);

	if (held && wait)
	{
		CallLock(call, "plan", UuidText(plan_id));
		plan = TableLock("plan", "plan_pkey", &key, test, plan_id, PlanMake, NULL);
	}
	MemoryContextSwitchTo(current);
	return plan;
}

/* Lock a plan that is the root of its tree; NULL if it is nested or does not exist. */
PlanRow *
RootLock(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow    *plan = PlanLocked(call, plan_id);

	if (plan != NULL)
		return plan;
	plan = PlanRowLock(call, plan_id, IsRoot, true);
	return plan ? PlanKeep(call, plan, NULL) : NULL;
}

/* Lock another plan of a tree whose root is locked. */
PlanRow *
PlanInTree(Call *call, PlanRow *root, const pg_uuid_t *plan_id)
{
	PlanRow    *plan = PlanLocked(call, plan_id);

	if (plan != NULL)
		return plan;
	plan = PlanRowLock(call, plan_id, NULL, true);
	if (plan == NULL)
		PlanNotFound(plan_id);
	return PlanKeep(call, plan, root);
}

/* Lock a nested plan, its root first. */
static PlanRow *
NestedLock(Call *call, const pg_uuid_t *plan_id, const pg_uuid_t *root_id)
{
	PlanRow    *root = RootLock(call, root_id);

	if (root == NULL)
		PlanNotFound(plan_id);
	return PlanInTree(call, root, plan_id);
}

/* Lock the tree of a plan and the plan; SW001 if the tenant has no plan of this id. */
PlanRow *
PlanLock(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow    *plan;

	if (plan_id == NULL)
		PlanNotFound(plan_id);
	/* most plans are root plans; for them this saves a lookup */
	plan = RootLock(call, plan_id);
	if (plan != NULL)
		return plan;
	plan = PlanRead(call, plan_id);
	if (plan == NULL)
		PlanNotFound(plan_id);
	return NestedLock(call, plan_id, &plan->root_id);
}

/*
 * Lock a plan and its tree unless another transaction has locked the tree.
 * Returns NULL if it has, or if there is no such plan (*found is false).
 */
PlanRow *
PlanLockIfFree(Call *call, const pg_uuid_t *plan_id, bool *found)
{
	PlanRow    *plan = PlanRead(call, plan_id);
	PlanRow    *root;

	*found = plan != NULL;
	if (plan == NULL)
		return NULL;
	root = PlanLocked(call, &plan->root_id);
	if (root == NULL)
	{
		root = PlanRowLock(call, &plan->root_id, NULL, false);
		if (root == NULL)
			return NULL;
		PlanKeep(call, root, NULL);
	}
	return PlanInTree(call, root, plan_id);
}
