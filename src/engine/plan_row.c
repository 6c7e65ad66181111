/*
 * plan_row.c
 *	  the rows of stepwise.plan, as they are in memory
 *
 * A call has one PlanRow for each plan that it has locked. It is in call->plans
 * and in the memory of the call. A function that changes it calls PlanTouch.
 * The row is written at the end of the call, or earlier if a query has to see
 * it; save.c does that.
 */
#include "engine/engine.h"

/* the columns that count steps by their state */
static const int CountColumn[STEP_STATUSES] = {
	[STEP_PENDING] = PLAN_COL_PENDING,
	[STEP_IN_PROGRESS] = PLAN_COL_IN_PROGRESS,
	[STEP_AWAITING_INPUT] = PLAN_COL_AWAITING_INPUT,
	[STEP_COMPLETED] = PLAN_COL_COMPLETED,
	[STEP_FAILED] = PLAN_COL_FAILED,
	[STEP_SKIPPED] = PLAN_COL_SKIPPED
};

/* Make a PlanRow from a row of stepwise.plan. */
void *
PlanMake(TupleTableSlot *slot)
{
	PlanRow    *plan = palloc0(sizeof(PlanRow));
	Fields		f = SlotFields(slot, PLAN_COLUMNS, "plan");

	plan->tid = slot->tts_tid;
	plan->id = FieldUuid(&f, PLAN_COL_ID);
	plan->root_id = FieldUuid(&f, PLAN_COL_ROOT_ID);
	plan->nested = !f.nulls[PLAN_COL_PARENT_STEP_ID];
	plan->parent_step_id = FieldUuid(&f, PLAN_COL_PARENT_STEP_ID);
	plan->status = FieldEnum(&f, PLAN_COL_STATUS, PlanStatusName, PLAN_STATUSES);
	plan->outcome = FieldEnum(&f, PLAN_COL_OUTCOME, OutcomeName, OUTCOMES);
	plan->on_failure = FieldEnum(&f, PLAN_COL_ON_FAILURE, OnFailureName, ON_FAILURES);
	plan->sequential = FieldBool(&f, PLAN_COL_SEQUENTIAL);
	plan->separate_reviewer = FieldBool(&f, PLAN_COL_SEPARATE_REVIEWER);
	plan->strict_order = FieldBool(&f, PLAN_COL_STRICT_ORDER);
	plan->leases = FieldBool(&f, PLAN_COL_LEASES);
	plan->nests = FieldBool(&f, PLAN_COL_NESTS);
	plan->stalls = FieldBool(&f, PLAN_COL_STALLS);
	plan->workable = FieldBool(&f, PLAN_COL_WORKABLE);
	plan->depth = FieldInt(&f, PLAN_COL_DEPTH);
	for (int i = 0; i < STEP_STATUSES; i++)
		plan->counts[i] = FieldInt(&f, CountColumn[i]);
	plan->unsuccessful = FieldInt(&f, PLAN_COL_UNSUCCESSFUL);
	plan->paused = FieldInt(&f, PLAN_COL_PAUSED);
	plan->holding = FieldInt(&f, PLAN_COL_HOLDING);
	plan->open_failures = FieldInt(&f, PLAN_COL_OPEN_FAILURES);
	plan->sent_back = FieldInt(&f, PLAN_COL_SENT_BACK);
	plan->crowded = FieldInt(&f, PLAN_COL_CROWDED);
	plan->started_steps = FieldInt(&f, PLAN_COL_STARTED_STEPS);
	plan->next_order = FieldInt(&f, PLAN_COL_NEXT_ORDER);
	plan->audit_entries = FieldInt(&f, PLAN_COL_AUDIT_ENTRIES);
	plan->created_at = FieldTime(&f, PLAN_COL_CREATED_AT);
	plan->started_at = FieldTime(&f, PLAN_COL_STARTED_AT);
	plan->completed_at = FieldTime(&f, PLAN_COL_COMPLETED_AT);
	plan->updated_at = FieldTime(&f, PLAN_COL_UPDATED_AT);
	plan->stall_after = FieldInterval(&f, PLAN_COL_STALL_AFTER);
	FieldHash(&f, PLAN_COL_AUDIT_HEAD, plan->audit_head);
	if (!f.nulls[PLAN_COL_READY_STEPS])
		ReadyListRead(plan, (struct varlena *) DatumGetPointer(f.values[PLAN_COL_READY_STEPS]));
	plan->ready_marks = FieldBool(&f, PLAN_COL_READY_MARKS);
	plan->relinked = FieldBool(&f, PLAN_COL_RELINKED);
	plan->session_id = FieldText(&f, PLAN_COL_SESSION_ID);
	plan->message = FieldText(&f, PLAN_COL_MESSAGE);
	plan->pause_reason = FieldVarlena(&f, PLAN_COL_PAUSE_REASON);
	plan->outputs = FieldVarlena(&f, PLAN_COL_OUTPUTS);
	plan->inputs = FieldVarlena(&f, PLAN_COL_INPUTS);
	plan->parent_names = FieldVarlena(&f, PLAN_COL_PARENT_NAMES);
	plan->name = FieldText(&f, PLAN_COL_NAME);
	plan->goal = FieldText(&f, PLAN_COL_GOAL);
	plan->workflow = FieldText(&f, PLAN_COL_WORKFLOW);
	plan->version = FieldInt(&f, PLAN_COL_VERSION);
	return plan;
}

/*
 * Get the time of the changes of this call. The clock is read once, so that
 * step, plan and audit entry have the same time. The time is never before the
 * last update of the plan, even if the clock was set back or another session
 * has read it later.
 */
TimestampTz
CallNow(Call *call, const PlanRow *plan)
{
	if (call->now == 0)
		call->now = GetCurrentTimestamp();
	call->now = Max(call->now, plan->updated_at);
	return call->now;
}

/* Set the columns of a plan that change. */
void
PlanSetState(Changes *c, const PlanRow *plan)
{
	SetEnum(c, PLAN_COL_STATUS, "plan_status", PlanStatusName[plan->status]);
	SetEnum(c, PLAN_COL_OUTCOME, "outcome", OutcomeName[plan->outcome]);
	SetBool(c, PLAN_COL_LEASES, plan->leases);
	SetBool(c, PLAN_COL_NESTS, plan->nests);
	SetBool(c, PLAN_COL_STALLS, plan->stalls);
	SetBool(c, PLAN_COL_READY_MARKS, plan->ready_marks);
	SetBool(c, PLAN_COL_RELINKED, plan->relinked);
	SetTrue(c, PLAN_COL_WORKABLE, plan->nested && plan->workable);
	for (int i = 0; i < STEP_STATUSES; i++)
		SetInt(c, CountColumn[i], plan->counts[i]);
	SetInt(c, PLAN_COL_UNSUCCESSFUL, plan->unsuccessful);
	SetInt(c, PLAN_COL_PAUSED, plan->paused);
	SetInt(c, PLAN_COL_HOLDING, plan->holding);
	SetInt(c, PLAN_COL_OPEN_FAILURES, plan->open_failures);
	SetInt(c, PLAN_COL_SENT_BACK, plan->sent_back);
	SetInt(c, PLAN_COL_CROWDED, plan->crowded);
	SetInt(c, PLAN_COL_STARTED_STEPS, plan->started_steps);
	SetInt(c, PLAN_COL_NEXT_ORDER, plan->next_order);
	SetInt(c, PLAN_COL_AUDIT_ENTRIES, plan->audit_entries);
	SetTime(c, PLAN_COL_STARTED_AT, plan->started_at);
	SetTime(c, PLAN_COL_COMPLETED_AT, plan->completed_at);
	SetTime(c, PLAN_COL_UPDATED_AT, plan->updated_at);
	SetVarlena(c, PLAN_COL_AUDIT_HEAD, cstring_to_text_with_len((char *) plan->audit_head, sizeof(plan->audit_head)));
	SetVarlena(c, PLAN_COL_READY_STEPS, ReadyListArray(plan));
	SetText(c, PLAN_COL_SESSION_ID, plan->session_id);
	SetText(c, PLAN_COL_MESSAGE, plan->message);
	SetVarlena(c, PLAN_COL_PAUSE_REASON, plan->pause_reason);
	SetVarlena(c, PLAN_COL_OUTPUTS, plan->outputs);
	/* constraints are not checked when the row is written */
	if ((plan->status == PLAN_COMPLETED) != (plan->outcome != OUTCOME_NA) || PlanIsTerminal(plan->status) != TimeIsSet(plan->completed_at))
		elog(ERROR, "plan %s does not fit its constraint", UuidText(&plan->id));
}

/*
 * Mark a plan to be written at the end of the call. A function that changes
 * anything below a plan must do this. Under REPEATABLE READ a lock alone does
 * not conflict with a concurrent change.
 */
void
PlanTouch(PlanRow *plan)
{
	plan->touched = true;
	plan->stamped = false;
}

/* Note the time of the last change of a plan, unless that is done. */
static void
PlanStamp(Call *call, PlanRow *plan)
{
	if (!plan->stamped)
		plan->updated_at = CallNow(call, plan);
	plan->stamped = true;
}

/* Note the time of the changes to plans, because the call goes on later. */
void
PlansStamp(Call *call)
{
	ListCell   *cell;

	foreach(cell, call->plans)
	{
		PlanRow    *plan = lfirst(cell);

		if (plan->touched)
			PlanStamp(call, plan);
	}
}

/* Write the row of a plan. */
void
PlanWrite(Call *call, PlanRow *plan)
{
	Changes		c = {0};

	plan->touched = false;
	PlanStamp(call, plan);
	PlanSetState(&c, plan);
	RowWrite(call, "plan", "plan_pkey", &plan->id, &plan->tid, &c);
}

/* Note that the row of a new plan was inserted, and where it is. */
void
PlanInserted(PlanRow *plan, ItemPointerData place)
{
	plan->touched = false;
	plan->tid = place;
	PlaceRemember(&plan->id, place);
}
