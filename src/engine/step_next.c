/*
 * step_next.c
 *	  find the first step of a plan that is pending, or ready
 *
 * A call that keeps rows in memory (keep.c) reads them ahead, with the Ahead
 * functions. They leave out the rows that the call has changed, since keep.c
 * knows these.
 */
#include "engine/engine.h"

/* Read the first step of a plan, from this order on, that is in the index and passes the test. */
static StepRow *
StepReadFrom(Call *call, const char *index, const pg_uuid_t *plan_id, int order, TupleTest test, const void *arg)
{
	Key			key = IdKey(call, plan_id);

	KeyIntFrom(&key, order);
	return TableRead("step", index, &key, test, arg, StepMake);
}

/* Check that a row of stepwise.step is not among those that the call has changed. */
static bool
IsUnchanged(TupleTableSlot *slot, const void *call)
{
	bool		isnull;
	Datum		id = slot_getattr(slot, STEP_COL_ID + 1, &isnull);
	const KeptStep *kept = KeptFind(call, DatumGetUUIDP(id));

	return kept == NULL || !kept->changed;
}

/* Check that a row of stepwise.step is pending, and not among those that the call has changed. */
static bool
IsUnchangedPending(TupleTableSlot *slot, const void *call)
{
	Oid			pending = EnumValue("step_status", StepStatusName[STEP_PENDING]);

	return HasStatus(slot, &pending) && IsUnchanged(slot, call);
}

/* Read pending steps of a plan from this order on, but those that the call has changed. */
static List *
PendingAhead(Call *call, PlanRow *plan, int from, int max)
{
	Key			key = IdKey(call, &plan->id);

	KeyIntFrom(&key, from);
	return TableReadSome("step", "step_order_unique", &key, IsUnchangedPending, call, StepMake, max);
}

static int
CompareOrders(const ListCell *a, const ListCell *b)
{
	return ((const StepRow *) lfirst(a))->order - ((const StepRow *) lfirst(b))->order;
}

/* Read listed steps of a plan from this order on, but those that the call has changed. */
static List *
ListedAhead(Call *call, const PlanRow *plan, int from, int max)
{
	List	   *rows = NIL;

	for (int order = from; list_length(rows) < max && (order = ReadyListNext(plan, order)) > 0; order++)
	{
		StepRow    *step = StepReadByOrder(call, &plan->id, order);
		const KeptStep *kept = step ? KeptFind(call, &step->id) : NULL;

		/* without the lock, the step may have moved since the plan was read */
		if (step != NULL && StepIsReady(plan, step) && (kept == NULL || !kept->changed))
			rows = lappend(rows, step);
	}
	return rows;
}

/* Read marked steps of a plan from this order on, but those that the call has changed. */
static List *
MarkedAhead(Call *call, PlanRow *plan, int from, int max)
{
	Key			key = IdKey(call, &plan->id);
	List	   *rows;

	if (!plan->ready_marks)
		return NIL;
	KeyIntFrom(&key, from);
	rows = TableReadSome("step", "step_ready", &key, IsUnchanged, call, StepMake, max);
	/* there are no more of them, so the next search need not look */
	if (rows == NIL && from == 1 && !KeptMarks(call))
		plan->ready_marks = false;
	return rows;
}

/* Read ready steps of a plan from this order on, but those that the call has changed. */
static List *
ReadyAhead(Call *call, PlanRow *plan, int from, int max)
{
	List	   *listed = ListedAhead(call, plan, from, max);
	List	   *marked = MarkedAhead(call, plan, from, max);
	List	   *rows = list_concat(listed, marked);

	if (marked != NIL)
		list_sort(rows, CompareOrders);
	return list_truncate(rows, max);
}

/*
 * Read the first pending step of a plan from this order on; NULL if there is
 * none. Usually it is the step of that order, so look there first: a scan would
 * read a whole page of the index.
 */
StepRow *
StepNextPending(Call *call, const PlanRow *plan, int from_order)
{
	Oid			pending = EnumValue("step_status", StepStatusName[STEP_PENDING]);
	StepRow    *step;

	RowsLimit(call);
	if (call->kept != NULL)
		return KeptNext(call, unconstify(PlanRow *, plan), from_order, from_order, PendingAhead);
	step = StepReadByOrder(call, &plan->id, from_order);
	if (step != NULL && step->status == STEP_PENDING)
		return step;
	return StepReadFrom(call, "step_order_unique", &plan->id, from_order + 1, HasStatus, &pending);
}

/* Read the first ready step of a plan from this order on; NULL if there is none. */
StepRow *
StepNextReady(Call *call, PlanRow *plan, int from_order)
{
	List	   *rows;

	RowsLimit(call);
	if (call->kept != NULL)
		return KeptNext(call, plan, from_order, plan->ready_marks ? from_order : ReadyListNext(plan, from_order), ReadyAhead);
	rows = ReadyAhead(call, plan, from_order, 1);
	return rows ? linitial(rows) : NULL;
}
