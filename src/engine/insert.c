/*
 * insert.c
 *	  insert rows of plans, steps and dependencies
 *
 * Rows are written in batches, without the executor (base/batch.c). So 10,000
 * steps cost little more than their rows. Columns that a new row leaves out are
 * null.
 *
 * Locks: the plan is new, or the caller holds its lock.
 */
#include "engine/engine.h"

#include "utils/array.h"

/* ---------- plans ---------- */

/* Insert the row of a new plan. */
void
PlanInsert(Call *call, PlanRow *plan, const char *idempotency_key)
{
	Batch	   *batch = BatchBegin(call, "plan", PLAN_COLUMNS);
	Changes    *c = &batch->row;

	SetDatum(c, PLAN_COL_TENANT, call->tenant_datum, false);
	SetUuid(c, PLAN_COL_ID, &plan->id);
	SetUuid(c, PLAN_COL_ROOT_ID, &plan->root_id);
	SetUuid(c, PLAN_COL_PARENT_STEP_ID, plan->nested ? &plan->parent_step_id : NULL);
	SetEnum(c, PLAN_COL_ON_FAILURE, "on_failure", OnFailureName[plan->on_failure]);
	SetBool(c, PLAN_COL_SEQUENTIAL, plan->sequential);
	SetBool(c, PLAN_COL_SEPARATE_REVIEWER, plan->separate_reviewer);
	SetBool(c, PLAN_COL_STRICT_ORDER, plan->strict_order);
	SetInt(c, PLAN_COL_DEPTH, plan->depth);
	SetTime(c, PLAN_COL_CREATED_AT, plan->created_at);
	SetInterval(c, PLAN_COL_STALL_AFTER, plan->stall_after);
	SetText(c, PLAN_COL_NAME, plan->name);
	SetText(c, PLAN_COL_GOAL, plan->goal);
	SetText(c, PLAN_COL_WORKFLOW, plan->workflow);
	SetPositive(c, PLAN_COL_VERSION, plan->workflow ? plan->version : 0);
	SetText(c, PLAN_COL_IDEMPOTENCY_KEY, idempotency_key);
	SetVarlena(c, PLAN_COL_INPUTS, plan->inputs);
	SetVarlena(c, PLAN_COL_PARENT_NAMES, plan->parent_names);
	PlanSetState(c, plan);
	BatchAdd(batch);
	BatchEnd(batch);
	PlanInserted(plan, batch->place);
}

/* Insert the columns of a plan that are seldom used. */
static void
DetailAdd(Call *call, const pg_uuid_t *plan_id, const PlanDetail *detail)
{
	Batch	   *batch = BatchBegin(call, "plan_detail", DETAIL_COLUMNS);
	Changes    *c = &batch->row;

	SetDatum(c, DETAIL_COL_TENANT, call->tenant_datum, false);
	SetUuid(c, DETAIL_COL_PLAN_ID, plan_id);
	SetVarlena(c, DETAIL_COL_OUTPUTS, detail->outputs ? detail->outputs : JsonEmptyObject());
	SetVarlena(c, DETAIL_COL_VARIABLES, JsonEmptyObject());
	SetText(c, DETAIL_COL_DESCRIPTION, detail->description);
	SetText(c, DETAIL_COL_DESIGN_RATIONALE, detail->design_rationale);
	SetText(c, DETAIL_COL_OUTPUT_FORMATTING_NOTES, detail->output_formatting_notes);
	SetText(c, DETAIL_COL_REQUEST_DIGEST, detail->request_digest);
	BatchAdd(batch);
	BatchEnd(batch);
}

/* Insert the columns of a plan that are seldom used. Without the row, they have their defaults. */
void
DetailInsert(Call *call, const PlanRow *plan, const PlanDetail *detail)
{
	if (detail->outputs || detail->description || detail->design_rationale || detail->output_formatting_notes ||
		detail->request_digest)
		DetailAdd(call, &plan->id, detail);
}

/* Change columns of a plan that are seldom used. The caller has locked the plan. */
void
DetailUpdate(Call *call, const pg_uuid_t *plan_id, Changes *changes)
{
	static const PlanDetail defaults = {0};
	Key			key = IdKey(call, plan_id);

	if (!PlanHasDetail(call, plan_id))
		DetailAdd(call, plan_id, &defaults);
	TableUpdate("plan_detail", "plan_detail_pkey", &key, changes);
	PlanDetailForget(call, plan_id);
}

/* ---------- steps ---------- */

/* Begin to insert steps of a plan. */
Batch *
StepsBegin(Call *call, const PlanRow *plan)
{
	Batch	   *batch = BatchBegin(call, "step", STEP_COLUMNS);
	Changes    *c = &batch->row;

	SetDatum(c, STEP_COL_TENANT, call->tenant_datum, false);
	SetUuid(c, STEP_COL_PLAN_ID, &plan->id);
	SetUuid(c, STEP_COL_ROOT_ID, &plan->root_id);
	SetEnum(c, STEP_COL_STATUS, "step_status", StepStatusName[STEP_PENDING]);
	SetEnum(c, STEP_COL_OUTCOME, "outcome", OutcomeName[OUTCOME_NA]);
	SetInt(c, STEP_COL_ATTEMPT, 0);
	return batch;
}

/* Make an array of the references that a condition reads. A condition that is jsonpath as written has none: NULL. */
static ArrayType *
OperandsArray(const Condition *condition)
{
	Datum	   *sources;

	if (condition->raw)
		return NULL;
	sources = palloc(sizeof(Datum) * (condition->noperands + 1));
	for (int i = 0; i < condition->noperands; i++)
		sources[i] = CStringGetTextDatum(condition->operands[i]->source);
	return construct_array(sources, condition->noperands, TEXTOID, -1, false, TYPALIGN_INT);
}

/* Set the columns of a step that its definition sets. */
static void
StepSetDefinition(Changes *c, const StepDefinition *step)
{
	const Condition *condition = step->condition;

	SetBool(c, STEP_COL_DYNAMIC, step->dynamic);
	SetDatum(c, STEP_COL_RETRYABLE, BoolGetDatum(step->retryable == 1), step->retryable < 0);
	SetPositive(c, STEP_COL_MAX_ATTEMPTS, step->max_attempts);
	SetInterval(c, STEP_COL_STALL_AFTER, step->stall_after);
	SetText(c, STEP_COL_NAME, step->name);
	SetText(c, STEP_COL_TYPE, step->type);
	SetText(c, STEP_COL_TOOL, step->tool);
	SetText(c, STEP_COL_WORKFLOW, step->workflow);
	SetPositive(c, STEP_COL_VERSION, step->version);
	SetText(c, STEP_COL_BINDING, step->binding);
	SetText(c, STEP_COL_PROMPT, step->prompt);
	SetText(c, STEP_COL_INSTRUCTIONS, step->instructions);
	SetVarlena(c, STEP_COL_ARGUMENTS, step->arguments);
	SetVarlena(c, STEP_COL_RESOURCES, step->resources);
	SetVarlena(c, STEP_COL_REVIEW, step->review);
	SetText(c, STEP_COL_CONDITION, condition ? condition->source : NULL);
	SetDatum(c, STEP_COL_CONDITION_PATH, condition ? condition->path : (Datum) 0, condition == NULL);
	SetVarlena(c, STEP_COL_CONDITION_OPERANDS, condition ? OperandsArray(condition) : NULL);
}

/* Add a step. Its id must live until the batch ends. */
void
StepsAdd(Batch *batch, const PlanRow *plan, const StepDefinition *step, const NewStep *place)
{
	Changes    *c = &batch->row;
	MemoryContext outer = MemoryContextSwitchTo(batch->memory);

	SetUuid(c, STEP_COL_ID, place->id);
	SetInt(c, STEP_COL_ORDER, place->order);
	SetInt(c, STEP_COL_WAVE, plan->sequential ? place->order - 1 : step->wave);
	SetInt(c, STEP_COL_BLOCKERS, place->blockers);
	SetTrue(c, STEP_COL_READY_MARK, !plan->sequential && place->blockers == 0 && ReadyListNext(plan, place->order) != place->order);
	SetDatum(c, STEP_COL_DEPENDENTS, Int32GetDatum(place->dependents), plan->sequential || place->dependents < 0);
	SetBool(c, STEP_COL_BRANCHES, place->branches);
	StepSetDefinition(c, step);
	MemoryContextSwitchTo(outer);
	BatchAdd(batch);
}

/* ---------- dependencies ---------- */

/* Begin to insert dependencies of a plan. */
Batch *
LinksBegin(Call *call, const PlanRow *plan)
{
	Batch	   *batch = BatchBegin(call, "dependency", DEPENDENCY_COLUMNS);

	SetDatum(&batch->row, DEPENDENCY_COL_TENANT, call->tenant_datum, false);
	SetUuid(&batch->row, DEPENDENCY_COL_PLAN_ID, &plan->id);
	return batch;
}

/* Add a dependency. */
void
LinksAdd(Batch *batch, const pg_uuid_t *step_id, const pg_uuid_t *parent_id, Need need)
{
	SetUuid(&batch->row, DEPENDENCY_COL_STEP_ID, step_id);
	SetUuid(&batch->row, DEPENDENCY_COL_DEPENDS_ON, parent_id);
	SetBool(&batch->row, DEPENDENCY_COL_REQUIRED, need == NEED_SUCCESS);
	SetBool(&batch->row, DEPENDENCY_COL_ENDED, need == NEED_END);
	BatchAdd(batch);
}

/* ---------- rows as JSON, for statements ---------- */

/* Put an interval as text; null for NULL. */
void
PutInterval(JsonBuilder *b, const char *key, Interval *interval)
{
	JsonPutText(b, key, interval ? IntervalText(interval) : NULL);
}

/* Put a compiled condition: its source, its jsonpath, and the references that it reads. A raw condition reads none. */
void
PutCondition(JsonBuilder *b, const Condition *condition, const char *source_key, const char *path_key, const char *operands_key)
{
	JsonPutText(b, source_key, condition->source);
	JsonPutText(b, path_key, DatumGetCString(DirectFunctionCall1(jsonpath_out, condition->path)));
	if (condition->raw)
		return;
	JsonArrayStart(b, operands_key);
	for (int i = 0; i < condition->noperands; i++)
		JsonPutText(b, NULL, condition->operands[i]->source);
	JsonArrayEnd(b);
}
