/*
 * shape.c
 *	  the shape that plans and steps share: inputs, outputs, metadata
 *
 * The execution tree, references and the metadata of an answer all read a
 * plan or a step through these functions, so they agree about its status.
 */
#include "engine/engine.h"

static const char *const TreeStatus[STEP_STATUSES] = {
	[STEP_PENDING] = "pending",
	[STEP_IN_PROGRESS] = "running",
	[STEP_AWAITING_INPUT] = "paused",
	[STEP_COMPLETED] = "completed",
	[STEP_FAILED] = "failed",
	[STEP_SKIPPED] = "skipped",
};

/* A step whose nested plan cannot go on is paused, though nobody is asked. */
const char *
TreeStatusOfStep(const StepRow *step)
{
	if (step->status == STEP_IN_PROGRESS && step->pause_reason != NULL)
		return TreeStatus[STEP_AWAITING_INPUT];
	return TreeStatus[step->status];
}

/* Put when something began and ended, and how long it took so far. What ended without having begun took no time. */
static void
PutTimes(JsonBuilder *b, TimestampTz from, TimestampTz to, TimestampTz now)
{
	if (!TimeIsSet(from))
		from = to;
	if (!TimeIsSet(from))
		JsonPutNull(b, "execution_time_ms");
	else
		JsonPutMilliseconds(b, "execution_time_ms", Max((TimeIsSet(to) ? to : now) - from, 0));
	JsonPutTime(b, "started_at", from);
	JsonPutTime(b, "completed_at", to);
}

/* Put what the references ${steps.NAME.succeeded}, failed and skipped stand for. */
static void
PutEnd(JsonBuilder *b, bool succeeded, bool failed, bool skipped)
{
	JsonPutBool(b, "succeeded", succeeded);
	JsonPutBool(b, "failed", failed);
	JsonPutBool(b, "skipped", skipped);
}

bool
StepSucceeded(const StepRow *step)
{
	return step->status == STEP_COMPLETED && step->outcome == OUTCOME_SUCCESS;
}

/* It failed, or completed with failure. */
bool
StepFailed(const StepRow *step)
{
	return step->status == STEP_FAILED || step->outcome == OUTCOME_FAILURE;
}

Jsonb *
StepMetadata(const StepRow *step, TimestampTz now)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "status", TreeStatusOfStep(step));
	JsonPutText(&b, "outcome", OutcomeName[step->outcome]);
	/* a skipped step has done nothing, though it may have begun */
	PutTimes(&b, step->status == STEP_SKIPPED ? NO_TIME : step->started_at, step->completed_at, now);
	JsonPutInt(&b, "wave", step->wave);
	JsonPutInt(&b, "execution_order", step->execution_order);
	JsonPutText(&b, "message", step->message);
	JsonPutInt(&b, "attempt", step->attempt);
	PutEnd(&b, StepSucceeded(step), StepFailed(step), step->status == STEP_SKIPPED);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static const char *
TreeStatusOfPlan(const PlanRow *plan)
{
	switch (plan->status)
	{
		case PLAN_PLANNING:
			return plan->pause_reason ? "paused" : "pending";
		case PLAN_AWAITING_REVIEW:
			return "paused";
		case PLAN_COMPLETED:
			return "completed";
		case PLAN_FAILED:
		case PLAN_CANCELLED:
			return "failed";
		default:
			return plan->pause_reason ? "paused" : "running";
	}
}

/* The metadata of a plan; a nested one stands where its step stands. */
Jsonb *
PlanMetadata(Call *call, const PlanRow *plan, TimestampTz now)
{
	StepRow    *parent_step = plan->nested ? StepRead(call, &plan->parent_step_id) : NULL;
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "status", TreeStatusOfPlan(plan));
	JsonPutText(&b, "outcome", OutcomeName[plan->outcome]);
	PutTimes(&b, plan->started_at, plan->completed_at, now);
	JsonPutInt(&b, "wave", parent_step ? parent_step->wave : 0);
	JsonPutInt(&b, "execution_order", parent_step ? parent_step->execution_order : 0);
	JsonPutText(&b, "message", plan->message);
	JsonPutInt(&b, "attempt", parent_step ? parent_step->attempt : (TimeIsSet(plan->started_at) ? 1 : 0));
	PutEnd(&b, plan->status == PLAN_COMPLETED && plan->outcome == OUTCOME_SUCCESS,
		   plan->outcome == OUTCOME_FAILURE || plan->status == PLAN_FAILED || plan->status == PLAN_CANCELLED, false);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* The arguments as they were resolved; as they were written, if there was nothing to resolve. */
Jsonb *
StepInputs(const StepRow *step)
{
	if (step->inputs != NULL)
		return JsonOf(step->inputs);
	if (step->arguments != NULL)
		return JsonOf(step->arguments);
	return JsonEmptyObject();
}

/* Put what a plan or a step has produced; what has no result has no outputs. */
void
PutOutputs(JsonBuilder *b, const struct varlena *outputs)
{
	JsonPutJson(b, "outputs", outputs ? JsonOf(outputs) : JsonEmptyObject());
}
