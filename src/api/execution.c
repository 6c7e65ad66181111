/*
 * execution.c
 *	  the execution tree, and the response of a workflow
 *
 * A block is a plan or a step in the tree: its inputs, outputs, metadata, and
 * the blocks nested in it. Nothing is locked. Each answer is read under one
 * snapshot.
 */
#include "api/api.h"

#include "miscadmin.h"

/* ---------- the execution tree ---------- */

#define BLOCK_BYTES		1024	/* estimated size of a block without its inputs, outputs and message */

static void PutBlocks(JsonBuilder *b, Call *call, const pg_uuid_t *plan_id, int depth);

/* Put a step as a block. The block of a plan has the same shape. */
static void
PutStepBlock(JsonBuilder *b, Call *call, const StepRow *step, int depth)
{
	pg_uuid_t	nested_id;

	JsonObjectStart(b, step->name ? step->name : "");
	JsonPutJson(b, "inputs", StepInputs(step));
	PutOutputs(b, step->result);
	JsonPutJson(b, "metadata", StepMetadata(step, GetCurrentTimestamp()));
	if (StepNests(step) && depth > 0 && NestedPlanId(call, &step->id, &nested_id))
		PutBlocks(b, call, &nested_id, depth - 1);
	else
		JsonPutJson(b, "blocks", JsonEmptyObject());
	JsonObjectEnd(b);
}

/* Estimate the size of a step's block in the answer, without the blocks nested in it. */
size_t
BlockSize(const StepRow *step)
{
	return BLOCK_BYTES + RawSize(step->inputs ? step->inputs : step->arguments) + RawSize(step->result) +
		(step->message ? strlen(step->message) : 0);
}

/* Put the steps of a plan as blocks. Check the size of the answer before large values are read. */
static void
PutBlocks(JsonBuilder *b, Call *call, const pg_uuid_t *plan_id, int depth)
{
	List	   *steps;
	ListCell   *cell;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	steps = StepsInStates(call, "step_order_unique", plan_id, STATES_ALL, INT_MAX);
	foreach(cell, steps)
		AnswerTake(call, BlockSize(lfirst(cell)), TREE_HINT);
	JsonObjectStart(b, "blocks");
	foreach(cell, steps)
		PutStepBlock(b, call, lfirst(cell), depth);
	JsonObjectEnd(b);
}

/* Build the execution tree of a plan, down to the given depth. */
static Jsonb *
Execution(Call *call, const PlanRow *plan, int depth)
{
	JsonBuilder b = {0};

	AnswerTake(call, RawSize(plan->inputs) + RawSize(plan->outputs), TREE_HINT);
	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "inputs", JsonOf(plan->inputs));
	PutOutputs(&b, plan->outputs);
	JsonPutJson(&b, "metadata", PlanMetadata(call, plan, GetCurrentTimestamp()));
	if (depth > 0)
		PutBlocks(&b, call, &plan->id, depth - 1);
	else
		JsonPutJson(&b, "blocks", JsonEmptyObject());
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static int
CheckDepthArgument(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		return INT_MAX;
	if (PG_GETARG_INT32(n) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("depth must not be negative"),
				 errhint("0 shows the plan alone, 1 its steps too, 2 the steps nested in them, and so on.")));
	return PG_GETARG_INT32(n);
}

/* Show the execution tree of a plan. */
PG_FUNCTION_INFO_V1(stepwise_execution);
Datum
stepwise_execution(PG_FUNCTION_ARGS)
{
	Call		call;
	int			depth;

	CallBeginReading(&call);
	depth = CheckDepthArgument(fcinfo, 1);
	return CallEnd(&call, Execution(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0)), depth));
}

/* ---------- the response of a workflow ---------- */

/* Find the first step of a plan that did not succeed; NULL if there is none. */
static StepRow *
FirstUnsuccessful(Call *call, const pg_uuid_t *plan_id)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND (s.status = 'failed' OR s.outcome = 'failure') ORDER BY s.step_order LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};
	return StepFetchById(call, &find, plan_id);
}

/*
 * Say why a plan did not succeed: its own message, or that of its first
 * unsuccessful step. If that step has a nested plan, ask the nested plan.
 */
static char *
FailureMessage(Call *call, const PlanRow *plan)
{
	StepRow    *step;
	pg_uuid_t	nested_id;

	check_stack_depth();
	if (plan->message != NULL)
		return plan->message;
	if (plan->status == PLAN_CANCELLED)
		return pstrdup("the plan was cancelled");
	step = FirstUnsuccessful(call, &plan->id);
	if (step == NULL)
		return pstrdup("the plan failed");
	if (step->status == STEP_FAILED)
		return psprintf("step \"%s\" failed: %s", step->name, step->message ? step->message : "no reason given");
	if (StepNests(step) && NestedPlanId(call, &step->id, &nested_id))
		return psprintf("step \"%s\" completed with outcome failure: %s", step->name,
						FailureMessage(call, PlanMustRead(call, &nested_id)));
	return psprintf("step \"%s\" completed with outcome failure%s", step->name, Because(step->message));
}

/* Find the oldest open checkpoint of a plan and the plans nested in it; NULL if there is none. */
static const ListedCheckpoint *
OldestOf(Call *call, const PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT f.step_id FROM stepwise.oldest_checkpoint($1, $2) AS f (step_id)", 2, {TEXTOID, UUIDOID}, .reads_plans = true
	};
	Key			key = {.call = call};
	List	   *first;
	Rows		rows;
	pg_uuid_t	step_id;

	if (PlanMustRead(call, &plan->root_id)->nests)
	{
		rows = QueryById(call, &find, &plan->id);
		step_id = rows.count > 0 ? RowUuid(&rows, 0, 1) : plan->id;
		return rows.count > 0 ? CheckpointOfStep(call, &step_id) : NULL;
	}
	/* a failed plan leaves steps that wait as they were */
	if (TimeIsSet(plan->completed_at))
		return NULL;
	KeyUuid(&key, &plan->root_id);
	first = CheckpointsByKey("checkpoint_root", &key, 1);
	return first ? linitial(first) : NULL;
}

/* Show the oldest open checkpoint of a plan and the plans nested in it; NULL if there is none. */
Jsonb *
OldestCheckpoint(Call *call, const PlanRow *plan)
{
	const ListedCheckpoint *checkpoint = OldestOf(call, plan);
	ReadingFunction reader = {"get_step_context", "step_id", checkpoint ? UuidText(&checkpoint->step_id) : NULL, "max_bytes"};
	JsonBuilder b = {0};

	if (checkpoint == NULL)
		return NULL;
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "checkpointId", &checkpoint->id);
	JsonPutUuid(&b, "stepId", &checkpoint->step_id);
	JsonPutText(&b, "kind", checkpoint->kind);
	JsonPutText(&b, "prompt", CutField(checkpoint->prompt, 8000, reader.function));
	JsonPutJson(&b, "questions", CutJson(checkpoint->questions, 8000, &reader));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Put what a paused plan waits for: its oldest checkpoint, or else its pause reason. */
static void
PutPaused(JsonBuilder *b, Call *call, const PlanRow *plan)
{
	Jsonb	   *checkpoint = plan->status == PLAN_AWAITING_REVIEW ? OldestCheckpoint(call, plan) : NULL;

	if (checkpoint != NULL)
	{
		JsonPutText(b, "checkpoint_id", JsonGetText(checkpoint, "checkpointId"));
		JsonPutText(b, "prompt", JsonGetText(checkpoint, "prompt"));
	}
	else
		JsonPutJson(b, "pause_reason", JsonOf(plan->pause_reason));
}

/* Build the state of a plan as an answer to its caller; detail adds metadata and blocks. */
Jsonb *
WorkflowResponse(Call *call, PlanRow *plan, bool detail)
{
	JsonBuilder b = {0};
	bool		ended = PlanIsTerminal(plan->status);

	JsonObjectStart(&b, NULL);
	if (plan->status == PLAN_COMPLETED && plan->outcome == OUTCOME_SUCCESS)
	{
		JsonPutText(&b, "status", "success");
		JsonPutJson(&b, "outputs", detail ? JsonOf(plan->outputs) : OutputsShown(plan));
	}
	else if (ended)
	{
		JsonPutText(&b, "status", "failure");
		JsonPutText(&b, "error", CutText(FailureMessage(call, plan), SHOWN_TEXT, "get_plan_context"));
	}
	else if (plan->status == PLAN_AWAITING_REVIEW || plan->pause_reason != NULL)
	{
		JsonPutText(&b, "status", "paused");
		PutPaused(&b, call, plan);
	}
	else
		JsonPutText(&b, "status", "running");
	if (detail)
	{
		AnswerTake(call, RawSize(plan->outputs), TREE_HINT);
		JsonPutJson(&b, "metadata", PlanMetadata(call, plan, GetCurrentTimestamp()));
		PutBlocks(&b, call, &plan->id, INT_MAX);
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Show the state of a plan as an answer to its caller. */
PG_FUNCTION_INFO_V1(stepwise_workflow_response);
Datum
stepwise_workflow_response(PG_FUNCTION_ARGS)
{
	Call		call;
	bool		detail = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);

	CallBeginReading(&call);
	return CallEnd(&call, WorkflowResponse(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0)), detail));
}
