/*
 * dependency.c
 *	  read rows of stepwise.dependency
 */
#include "engine/engine.h"

#define LASTS	256				/* plans for which a place is remembered */

/* Make a Dependent from a row of stepwise.dependency. */
static void *
DependentMake(TupleTableSlot *slot)
{
	Dependent  *dependent = palloc(sizeof(Dependent));
	bool		isnull;

	dependent->step_id = *DatumGetUUIDP(slot_getattr(slot, DEPENDENCY_COL_STEP_ID + 1, &isnull));
	if (DatumGetBool(slot_getattr(slot, DEPENDENCY_COL_ENDED + 1, &isnull)))
		dependent->need = NEED_END;
	else
		dependent->need = DatumGetBool(slot_getattr(slot, DEPENDENCY_COL_REQUIRED + 1, &isnull)) ?
			NEED_SUCCESS : NEED_NO_FAILURE;
	dependent->tid = slot->tts_tid;
	return dependent;
}

/*
 * The dependencies of a plan were inserted in the order of the steps that have
 * them. So that of the next step is often right behind the one that was found
 * last, as with steps.
 */
typedef struct LastLink
{
	pg_uuid_t	plan_id;
	ItemPointerData tid;
} LastLink;

static LastLink last_links[LASTS];

/* Read the only dependent of a step. What is in the place where it may be is compared with the key. */
static List *
OnlyDependent(Call *call, const StepRow *step)
{
	static const AttrNumber columns[] = {DEPENDENCY_COL_DEPENDS_ON + 1};
	LastLink   *last = &last_links[step->plan_id.data[13] % LASTS];
	Key			key = IdKey(call, &step->id);
	Dependent  *dependent;

	key.of_table = columns;
	if (UuidEqual(&last->plan_id, &step->plan_id))
		ItemPointerSet(&key.place, ItemPointerGetBlockNumber(&last->tid), ItemPointerGetOffsetNumber(&last->tid) + 1);
	dependent = TableRead("dependency", "dependency_of", &key, NULL, NULL, DependentMake);
	if (dependent == NULL)
		return NIL;
	last->plan_id = step->plan_id;
	last->tid = dependent->tid;
	return list_make1(dependent);
}

/* List the steps that depend on a step, as the index has them. */
List *
DependentsOf(Call *call, const pg_uuid_t *step_id)
{
	Key			key = IdKey(call, step_id);

	return TableReadAll("dependency", "dependency_of", &key, DependentMake);
}

/* List the steps that depend on a step. Its plan says whether the step has counted them. */
List *
StepDependents(Call *call, const PlanRow *plan, const StepRow *step)
{
	int			count = plan->relinked ? -1 : step->dependents;

	if (count == 0 || plan->sequential)
		return NIL;
	if (count == 1)
		return OnlyDependent(call, step);
	return DependentsOf(call, &step->id);
}
