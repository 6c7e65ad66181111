/*
 * step_row.c
 *	  the rows of stepwise.step, as they are in memory
 *
 * A StepRow is a copy of the row as it was read. It is written with all the
 * columns that a move can change; step_save.c and save.c say when.
 *
 * Statements about many steps are in the files that need them: insert.c and
 * add.c insert and renumber steps, others read with a KeptQuery.
 */
#include "engine/engine.h"

#include "access/htup_details.h"

/* Read the columns of a step that its definition sets, and what reviews have said. */
static void
StepReadDefinition(StepRow *step, const Fields *f)
{
	step->name = FieldText(f, STEP_COL_NAME);
	step->type = FieldText(f, STEP_COL_TYPE);
	step->tool = FieldText(f, STEP_COL_TOOL);
	step->workflow = FieldText(f, STEP_COL_WORKFLOW);
	step->version = FieldInt(f, STEP_COL_VERSION);
	step->binding = FieldText(f, STEP_COL_BINDING);
	step->prompt = FieldVarlena(f, STEP_COL_PROMPT);
	step->instructions = FieldVarlena(f, STEP_COL_INSTRUCTIONS);
	step->arguments = FieldVarlena(f, STEP_COL_ARGUMENTS);
	step->resources = FieldVarlena(f, STEP_COL_RESOURCES);
	step->condition = FieldVarlena(f, STEP_COL_CONDITION);
	step->condition_path = FieldVarlena(f, STEP_COL_CONDITION_PATH);
	step->condition_operands = FieldVarlena(f, STEP_COL_CONDITION_OPERANDS);
	step->error = FieldVarlena(f, STEP_COL_ERROR);
	step->review = FieldVarlena(f, STEP_COL_REVIEW);
	step->approved = FieldText(f, STEP_COL_APPROVED);
	step->fixed_version = FieldInt(f, STEP_COL_FIXED_VERSION);
	step->feedback = FieldVarlena(f, STEP_COL_FEEDBACK);
	step->previous = FieldVarlena(f, STEP_COL_PREVIOUS);
	step->previous_error = FieldText(f, STEP_COL_PREVIOUS_ERROR);
}

/* Make a StepRow from the columns of a row of stepwise.step. */
static StepRow *
StepFromFields(const Fields *f, ItemPointerData tid)
{
	StepRow    *step = palloc0(sizeof(StepRow));

	step->tid = tid;
	step->id = FieldUuid(f, STEP_COL_ID);
	step->plan_id = FieldUuid(f, STEP_COL_PLAN_ID);
	step->root_id = FieldUuid(f, STEP_COL_ROOT_ID);
	step->order = FieldInt(f, STEP_COL_ORDER);
	step->wave = FieldInt(f, STEP_COL_WAVE);
	step->status = FieldEnum(f, STEP_COL_STATUS, StepStatusName, STEP_STATUSES);
	step->outcome = FieldEnum(f, STEP_COL_OUTCOME, OutcomeName, OUTCOMES);
	step->attempt = FieldInt(f, STEP_COL_ATTEMPT);
	step->execution_order = FieldInt(f, STEP_COL_EXECUTION_ORDER);
	step->blockers = FieldInt(f, STEP_COL_BLOCKERS);
	step->ready_mark = FieldBool(f, STEP_COL_READY_MARK);
	step->dependents = f->nulls[STEP_COL_DEPENDENTS] ? -1 : FieldInt(f, STEP_COL_DEPENDENTS);
	step->holds = FieldBool(f, STEP_COL_HOLDS);
	step->sent_back = FieldBool(f, STEP_COL_SENT_BACK);
	step->branches = FieldBool(f, STEP_COL_BRANCHES);
	step->dynamic = FieldBool(f, STEP_COL_DYNAMIC);
	step->retryable = f->nulls[STEP_COL_RETRYABLE] ? -1 : FieldBool(f, STEP_COL_RETRYABLE);
	step->max_attempts = FieldInt(f, STEP_COL_MAX_ATTEMPTS);
	step->attempts_before = FieldInt(f, STEP_COL_ATTEMPTS_BEFORE);
	step->started_at = FieldTime(f, STEP_COL_STARTED_AT);
	step->completed_at = FieldTime(f, STEP_COL_COMPLETED_AT);
	step->active_at = FieldTime(f, STEP_COL_ACTIVE_AT);
	step->lease_expires_at = FieldTime(f, STEP_COL_LEASE_EXPIRES_AT);
	step->stall_after = FieldInterval(f, STEP_COL_STALL_AFTER);
	step->confidence = FieldVarlena(f, STEP_COL_CONFIDENCE);
	step->worker = FieldText(f, STEP_COL_WORKER);
	step->holder = FieldText(f, STEP_COL_HOLDER);
	step->message = FieldText(f, STEP_COL_MESSAGE);
	step->pause_reason = FieldVarlena(f, STEP_COL_PAUSE_REASON);
	step->inputs = FieldVarlena(f, STEP_COL_INPUTS);
	step->result = FieldVarlena(f, STEP_COL_RESULT);
	step->result_summary = FieldVarlena(f, STEP_COL_RESULT_SUMMARY);
	step->execution_report = FieldVarlena(f, STEP_COL_EXECUTION_REPORT);
	step->output_formatting_notes = FieldVarlena(f, STEP_COL_OUTPUT_FORMATTING_NOTES);
	StepReadDefinition(step, f);
	StepCounted(step);
	return step;
}

/* Make a StepRow from a row of stepwise.step. */
StepRow *
StepFromTuple(HeapTuple tuple, TupleDesc desc)
{
	Datum		values[TABLE_MAX_COLUMNS];
	bool		nulls[TABLE_MAX_COLUMNS];
	Fields		f = {values, nulls};

	CheckShape(desc, STEP_COLUMNS, "step");
	heap_deform_tuple(tuple, desc, values, nulls);
	return StepFromFields(&f, tuple->t_self);
}

/* Make a StepRow from a row of stepwise.step, for TableRead. */
void *
StepMake(TupleTableSlot *slot)
{
	Fields		f = SlotFields(slot, STEP_COLUMNS, "step");

	return StepFromFields(&f, slot->tts_tid);
}

/* Make a StepRow from the row of a query that returns whole step rows. */
StepRow *
RowStep(const Rows *rows, uint64 row)
{
	return StepFromTuple(RowTuple(rows, row), rows->table->tupdesc);
}

/* Run a query that returns whole step rows, and return the first; NULL if there is none. */
StepRow *
StepFetch(KeptQuery *query, const Params *params)
{
	Rows		rows = QueryRun(query, params);
	StepRow    *step = NULL;

	if (rows.count > 0)
		step = RowStep(&rows, 0);
	RowsFree(&rows);
	return step;
}

/* Run a query over (tenant, id) that returns whole rows of steps, and read the first; NULL if there is none. */
StepRow *
StepFetchById(Call *call, KeptQuery *query, const pg_uuid_t *id)
{
	Params		params = {0};

	ParamKey(&params, call, id);
	return StepFetch(query, &params);
}

/* Write a step; "unblocked": its blockers too. */
void
StepWrite(Call *call, StepRow *step, bool unblocked)
{
	Changes		c = {0};

	if (unblocked)
		SetInt(&c, STEP_COL_BLOCKERS, step->blockers);
	SetEnum(&c, STEP_COL_STATUS, "step_status", StepStatusName[step->status]);
	SetEnum(&c, STEP_COL_OUTCOME, "outcome", OutcomeName[step->outcome]);
	SetInt(&c, STEP_COL_ATTEMPT, step->attempt);
	SetPositive(&c, STEP_COL_EXECUTION_ORDER, step->execution_order);
	if (step->sets_mark)
		SetTrue(&c, STEP_COL_READY_MARK, step->ready_mark);
	SetTrue(&c, STEP_COL_HOLDS, step->holds);
	SetTrue(&c, STEP_COL_SENT_BACK, step->sent_back);
	SetPositive(&c, STEP_COL_MAX_ATTEMPTS, step->max_attempts);
	SetPositive(&c, STEP_COL_ATTEMPTS_BEFORE, step->attempts_before);
	SetDatum(&c, STEP_COL_RETRYABLE, BoolGetDatum(step->retryable == 1), step->retryable < 0);
	SetTime(&c, STEP_COL_STARTED_AT, step->started_at);
	SetTime(&c, STEP_COL_COMPLETED_AT, step->completed_at);
	SetTime(&c, STEP_COL_ACTIVE_AT, step->active_at);
	SetTime(&c, STEP_COL_LEASE_EXPIRES_AT, step->lease_expires_at);
	SetVarlena(&c, STEP_COL_CONFIDENCE, step->confidence);
	SetText(&c, STEP_COL_WORKER, step->worker);
	SetText(&c, STEP_COL_HOLDER, step->holder);
	SetText(&c, STEP_COL_MESSAGE, step->message);
	SetVarlena(&c, STEP_COL_PAUSE_REASON, step->pause_reason);
	SetVarlena(&c, STEP_COL_INPUTS, step->inputs);
	SetVarlena(&c, STEP_COL_RESULT, step->result);
	SetVarlena(&c, STEP_COL_RESULT_SUMMARY, step->result_summary);
	SetVarlena(&c, STEP_COL_EXECUTION_REPORT, step->execution_report);
	SetVarlena(&c, STEP_COL_OUTPUT_FORMATTING_NOTES, step->output_formatting_notes);
	SetVarlena(&c, STEP_COL_ERROR, step->error);
	SetText(&c, STEP_COL_APPROVED, step->approved);
	SetPositive(&c, STEP_COL_FIXED_VERSION, step->fixed_version);
	SetVarlena(&c, STEP_COL_FEEDBACK, step->feedback);
	SetVarlena(&c, STEP_COL_PREVIOUS, step->previous);
	SetText(&c, STEP_COL_PREVIOUS_ERROR, step->previous_error);
	RowWrite(call, "step", "step_pkey", &step->id, &step->tid, &c);
}
