/*
 * step_list.c
 *	  list steps of a plan
 *
 * The lists are read from the tables. Steps that the call keeps in memory are
 * written first. StepStates does not do that; it is for calls that keep none.
 */
#include "engine/engine.h"

/* Check that a row of stepwise.step has this status. */
bool
HasStatus(TupleTableSlot *slot, const void *status)
{
	bool		isnull;

	return DatumGetObjectId(slot_getattr(slot, STEP_COL_STATUS + 1, &isnull)) == *(const Oid *) status;
}

/* Check that a row of stepwise.step is in one of some states. */
static bool
HasState(TupleTableSlot *slot, const void *states)
{
	bool		isnull;
	Oid			status = DatumGetObjectId(slot_getattr(slot, STEP_COL_STATUS + 1, &isnull));

	return (*(const int *) states & STATE_BIT(EnumIndex(status, StepStatusName, STEP_STATUSES))) != 0;
}

/* List the steps of a plan that an index has and that are in one of some states, in their order, at most max. */
List *
StepsInStates(Call *call, const char *index, const pg_uuid_t *plan_id, int states, int max)
{
	Key			key = IdKey(call, plan_id);

	if (call->kept != NULL)
		RowsWrite(call, call, 0);
	return TableReadSome("step", index, &key, HasState, &states, StepMake, max);
}

/*
 * List the steps in progress of a plan. There is no index of them, since it
 * would make every claim write into it. So the search goes from the next pending
 * step backwards, then forwards, until all that the plan counts are found.
 */
List *
StepsInProgress(Call *call, const PlanRow *plan)
{
	Oid			status = EnumValue("step_status", StepStatusName[STEP_IN_PROGRESS]);
	int			count = plan->counts[STEP_IN_PROGRESS];
	Key			before = IdKey(call, &plan->id);
	Key			after = before;
	List	   *steps;

	if (count == 0)
		return NIL;
	if (call->kept != NULL)
		RowsWrite(call, call, 0);
	KeyIntBelow(&before, plan->next_order);
	before.backward = true;
	steps = TableReadSome("step", "step_order_unique", &before, HasStatus, &status, StepMake, count);
	if (list_length(steps) == count)
		return steps;
	KeyIntFrom(&after, plan->next_order);
	return list_concat(steps, TableReadSome("step", "step_order_unique", &after, HasStatus, &status, StepMake,
											count - list_length(steps)));
}

/* Make a StepRow with what an answer says of a step that others hold, or that has failed; the rest of it is empty. */
static void *
BeforeMake(TupleTableSlot *slot)
{
	StepRow    *step = palloc0(sizeof(StepRow));
	Fields		f = SlotFields(slot, STEP_COLUMNS, "step");

	step->order = FieldInt(&f, STEP_COL_ORDER);
	step->status = FieldEnum(&f, STEP_COL_STATUS, StepStatusName, STEP_STATUSES);
	step->sent_back = FieldBool(&f, STEP_COL_SENT_BACK);
	step->started_at = FieldTime(&f, STEP_COL_STARTED_AT);
	step->active_at = FieldTime(&f, STEP_COL_ACTIVE_AT);
	step->stall_after = FieldInterval(&f, STEP_COL_STALL_AFTER);
	step->worker = FieldText(&f, STEP_COL_WORKER);
	step->name = FieldText(&f, STEP_COL_NAME);
	step->workflow = FieldText(&f, STEP_COL_WORKFLOW);
	return step;
}

/*
 * List the steps of a plan that an index has and that are in a state, from one
 * order up to below another, the last ones first, at most max. Only name,
 * worker, times and kind are read.
 */
List *
StepsBetween(Call *call, const char *index, const pg_uuid_t *plan_id, StepStatus state, int from, int below, int max)
{
	Oid			status = EnumValue("step_status", StepStatusName[state]);
	Key			key = IdKey(call, plan_id);

	if (max <= 0 || from >= below)
		return NIL;
	if (call->kept != NULL)
		RowsWrite(call, call, 0);
	KeyIntBetween(&key, from, below);
	key.backward = true;
	return TableReadSome("step", index, &key, HasStatus, &status, BeforeMake, max);
}

/* Make a FormattingNote from a row of stepwise.step with notes. */
static void *
NoteMake(TupleTableSlot *slot)
{
	FormattingNote *note = palloc(sizeof(FormattingNote));

	note->order = ColumnInt(slot, STEP_COL_ORDER);
	note->name = ColumnText(slot, STEP_COL_NAME);
	note->notes = ColumnField(slot, STEP_COL_OUTPUT_FORMATTING_NOTES);
	return note;
}

/* List the formatting notes of the steps of a plan, in the order of the steps. */
List *
FormattingNotes(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);

	if (call->kept != NULL)
		RowsWrite(call, call, 0);
	return TableReadAll("step", "step_notes", &key, NoteMake);
}

/* Make a StepState from a row of stepwise.step. */
static void *
StateMake(TupleTableSlot *slot)
{
	StepState  *state = palloc(sizeof(StepState));

	state->name = ColumnText(slot, STEP_COL_NAME);
	state->status = EnumIndex(DatumGetObjectId(ColumnDatum(slot, STEP_COL_STATUS)), StepStatusName, STEP_STATUSES);
	return state;
}

/* List the states of the steps of a plan, in the order of the steps. */
List *
StepStates(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);

	return TableReadAll("step", "step_order_unique", &key, StateMake);
}
