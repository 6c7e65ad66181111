/*
 * step_save.c
 *	  write changed steps
 *
 * StepSave writes a step at once, with all the columns that a move can change.
 * A call of a run keeps it in memory instead (keep.c), and writes it as it
 * writes plans (save.c).
 */
#include "engine/engine.h"

/* Refuse a row that does not fit its constraint, since TableUpdate does not check it. */
static void
CheckStepFits(const StepRow *step)
{
	if ((step->status == STEP_COMPLETED) != (step->outcome != OUTCOME_NA))
		elog(ERROR, "step %s does not fit its constraint", UuidText(&step->id));
}

/* Write a step, or keep it to be written. */
void
StepSave(Call *call, StepRow *step)
{
	CheckStepFits(step);
	HomeRemember(step);
	RowsLimit(call);
	if (call->kept != NULL)
		KeptChange(call, step);
	else
		StepWrite(call, step, false);
	step->sets_mark = false;
}

/* Write that a step has one blocker less, or keep it to be written. */
static void
UnblockedSave(Call *call, StepRow *step)
{
	Changes		c = {0};
	KeptStep   *kept;

	RowsLimit(call);
	if (call->kept != NULL)
	{
		kept = KeptChange(call, step);
		kept->row->blockers = step->blockers;
		kept->unblocked = true;
		return;
	}
	SetInt(&c, STEP_COL_BLOCKERS, step->blockers);
	if (step->sets_mark)
		SetTrue(&c, STEP_COL_READY_MARK, step->ready_mark);
	RowWrite(call, "step", "step_pkey", &step->id, &step->tid, &c);
}

/* Count one blocker less for a step. A pending step without blockers is ready. */
void
StepUnblock(Call *call, PlanRow *plan, const pg_uuid_t *step_id)
{
	StepRow    *step = StepReadDependent(call, &plan->id, step_id);

	if (step == NULL)
		return;
	step->blockers--;
	if (StepIsReady(plan, step))
		step->ready_mark = step->sets_mark = !ReadyListAdd(plan, step->order);
	UnblockedSave(call, step);
}

/* Change the instructions of a step, in its row and in the table. */
void
StepInstruct(Call *call, StepRow *step, const char *instructions)
{
	static KeptQuery save = {
		"UPDATE stepwise.step SET instructions = $3 WHERE tenant = $1 AND id = $2",
		3, {TEXTOID, UUIDOID, TEXTOID}
	};
	Params		params = {0};

	step->instructions = (struct varlena *) cstring_to_text(instructions);
	ParamKey(&params, call, &step->id);
	ParamVarlena(&params, step->instructions);
	QueryRun(&save, &params);
}
