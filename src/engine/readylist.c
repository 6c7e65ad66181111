/*
 * readylist.c
 *	  the ready steps of a plan with dependencies
 *
 * A step is ready if it is pending and has no blockers. The row of the plan,
 * which every call writes anyway, lists the orders of ready steps. So a step
 * becomes ready and is claimed without a change in any index of its table.
 *
 * The list has room for few steps. A ready step that is not listed is marked
 * instead (column ready_mark), and found by the index step_ready; the plan then
 * has ready_marks. Who writes many steps by a statement marks them too. A ready
 * step is either listed or marked, and no other step is.
 *
 * The list has orders. Before the steps of a plan are numbered anew, the listed
 * ones are marked, and the call lists no more: it may have rows with orders
 * from before.
 *
 * Who changes the list also moves a step or audits a change, and that marks the
 * plan to be written.
 *
 * Locks: the caller holds the lock of the plan, or only reads.
 */
#include "engine/engine.h"

#include "utils/array.h"

/* Say whether a step of a plan is ready. */
bool
StepIsReady(const PlanRow *plan, const StepRow *step)
{
	return !plan->sequential && step->status == STEP_PENDING && step->blockers == 0;
}

/* Find the place of the first listed step from this order on. */
static int
PlaceFrom(const PlanRow *plan, int order)
{
	int			i = 0;

	while (i < plan->ready_count && plan->ready[i] < order)
		i++;
	return i;
}

/* Find the first listed step from this order on; returns its order, or 0 if there is none. */
int
ReadyListNext(const PlanRow *plan, int from_order)
{
	int			i = PlaceFrom(plan, from_order);

	return i < plan->ready_count ? plan->ready[i] : 0;
}

/* List a ready step. Returns false if it has to be marked instead. */
bool
ReadyListAdd(PlanRow *plan, int order)
{
	int			i = PlaceFrom(plan, order);

	if (i < plan->ready_count && plan->ready[i] == order)
		return true;
	if (plan->ready_closed || plan->ready_count == READY_LIST_MAX)
	{
		plan->ready_marks = true;
		return false;
	}
	memmove(&plan->ready[i + 1], &plan->ready[i], sizeof(int) * (plan->ready_count - i));
	plan->ready[i] = order;
	plan->ready_count++;
	return true;
}

/* Take a step off the list, because it is not ready any more. */
void
ReadyListRemove(PlanRow *plan, int order)
{
	int			i = PlaceFrom(plan, order);

	if (i == plan->ready_count || plan->ready[i] != order)
		return;
	plan->ready_count--;
	memmove(&plan->ready[i], &plan->ready[i + 1], sizeof(int) * (plan->ready_count - i));
}

/* Make an array of the list, as it is stored; NULL if it is empty. */
struct varlena *
ReadyListArray(const PlanRow *plan)
{
	Datum		orders[READY_LIST_MAX];

	if (plan->ready_count == 0)
		return NULL;
	for (int i = 0; i < plan->ready_count; i++)
		orders[i] = Int32GetDatum(plan->ready[i]);
	return (struct varlena *) construct_array(orders, plan->ready_count, INT4OID, sizeof(int32), true, TYPALIGN_INT);
}

/* Read the list from its stored array. */
void
ReadyListRead(PlanRow *plan, struct varlena *stored)
{
	ArrayType  *array = DatumGetArrayTypeP(PointerGetDatum(stored));
	int			count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));

	if (ARR_ELEMTYPE(array) != INT4OID || ARR_HASNULL(array) || count > READY_LIST_MAX)
		elog(ERROR, "the list of ready steps of plan %s is not valid", UuidText(&plan->id));
	memcpy(plan->ready, ARR_DATA_PTR(array), sizeof(int32) * count);
	plan->ready_count = count;
}

/* Mark the listed steps, and list no more in this call, because the steps of the plan are numbered anew. */
void
ReadyListClose(Call *call, PlanRow *plan)
{
	static KeptQuery mark = {
		"UPDATE stepwise.step SET ready_mark = true WHERE tenant = $1 AND plan_id = $2 AND step_order = ANY ($3)",
		3, {TEXTOID, UUIDOID, INT4ARRAYOID}
	};
	Params		params = {0};

	if (plan->sequential)
		return;
	if (plan->ready_count > 0)
	{
		ParamKey(&params, call, &plan->id);
		ParamVarlena(&params, ReadyListArray(plan));
		QueryRun(&mark, &params);
	}
	plan->ready_count = 0;
	plan->ready_marks = plan->ready_closed = true;
}
