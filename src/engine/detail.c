/*
 * detail.c
 *	  the columns of a plan that are seldom used: stepwise.plan_detail
 *
 * A plan has no row there if all of them have their defaults. This file reads
 * the rows; insert.c writes them.
 */
#include "engine/engine.h"

/* Make a DetailRow from a row of stepwise.plan_detail. */
static void *
DetailMake(TupleTableSlot *slot)
{
	DetailRow  *detail = palloc0(sizeof(DetailRow));
	Fields		f = SlotFields(slot, DETAIL_COLUMNS, "plan_detail");

	detail->outputs = FieldVarlena(&f, DETAIL_COL_OUTPUTS);
	detail->variables = FieldVarlena(&f, DETAIL_COL_VARIABLES);
	detail->description = FieldVarlena(&f, DETAIL_COL_DESCRIPTION);
	detail->design_rationale = FieldVarlena(&f, DETAIL_COL_DESIGN_RATIONALE);
	detail->output_formatting_notes = FieldVarlena(&f, DETAIL_COL_OUTPUT_FORMATTING_NOTES);
	detail->request_digest = FieldVarlena(&f, DETAIL_COL_REQUEST_DIGEST);
	detail->final_output = FieldVarlena(&f, DETAIL_COL_FINAL_OUTPUT);
	detail->final_media_type = FieldVarlena(&f, DETAIL_COL_FINAL_MEDIA_TYPE);
	return detail;
}

/* Make the DetailRow of a plan that has no row of stepwise.plan_detail. */
static DetailRow *
DetailDefault(void)
{
	DetailRow  *detail = palloc0(sizeof(DetailRow));

	detail->outputs = detail->variables = (struct varlena *) JsonEmptyObject();
	return detail;
}

/* Check whether a plan has a row of stepwise.plan_detail. */
bool
PlanHasDetail(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);

	return TableRead("plan_detail", "plan_detail_pkey", &key, NULL, NULL, DetailMake) != NULL;
}

/* Read the columns of a plan that are seldom used. */
DetailRow *
PlanDetailRead(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);
	DetailRow  *detail = TableRead("plan_detail", "plan_detail_pkey", &key, NULL, NULL, DetailMake);

	return detail ? detail : DetailDefault();
}

/*
 * The same, but they are read once: nobody else can change them while the call
 * has the lock of the tree, or reads under one snapshot.
 */
const DetailRow *
PlanDetailOf(Call *call, PlanRow *plan)
{
	MemoryContext current = MemoryContextSwitchTo(call->context);

	if (plan->detail == NULL)
		plan->detail = PlanDetailRead(call, &plan->id);
	MemoryContextSwitchTo(current);
	return plan->detail;
}

/* Read these columns again when they are next used, because the call changes them. */
void
PlanDetailForget(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow    *plan = PlanLocked(call, plan_id);

	if (plan != NULL)
		plan->detail = NULL;
}
