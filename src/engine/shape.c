/*
 * shape.c
 *	  what plans and steps have in common: inputs, outputs, metadata
 *
 * The execution tree, references and the metadata of an answer read a plan or
 * a step with these functions, so they always agree about its status.
 */
#include "engine/engine.h"

/* the status of a step, as the execution tree and references name it */
static const char *const TreeStatus[STEP_STATUSES] = {
	[STEP_PENDING] = "pending",
	[STEP_IN_PROGRESS] = "running",
	[STEP_AWAITING_INPUT] = "paused",
	[STEP_COMPLETED] = "completed",
	[STEP_FAILED] = "failed",
	[STEP_SKIPPED] = "skipped",
};

/* Name the status of a step. A step in progress is paused if its nested plan cannot go on. */
const char *
TreeStatusOfStep(const StepRow *step)
{
	if (step->status == STEP_IN_PROGRESS && step->pause_reason != NULL)
		return TreeStatus[STEP_AWAITING_INPUT];
	return TreeStatus[step->status];
}

/*
 * Put when something started and ended, and how long it took so far. If it
 * ended without a start, it took no time.
 */
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

/* Put the values of ${steps.NAME.succeeded}, failed and skipped. */
static void
PutEnd(JsonBuilder *b, bool succeeded, bool failed, bool skipped)
{
	JsonPutBool(b, "succeeded", succeeded);
	JsonPutBool(b, "failed", failed);
	JsonPutBool(b, "skipped", skipped);
}

/* Say whether a step completed with success. */
bool
StepSucceeded(const StepRow *step)
{
	return step->status == STEP_COMPLETED && step->outcome == OUTCOME_SUCCESS;
}

/* Say whether a step failed, or completed with failure. */
bool
StepFailed(const StepRow *step)
{
	return step->status == STEP_FAILED || step->outcome == OUTCOME_FAILURE;
}

/* Build the metadata of a step. */
Jsonb *
StepMetadata(const StepRow *step, TimestampTz now)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "status", TreeStatusOfStep(step));
	JsonPutText(&b, "outcome", OutcomeName[step->outcome]);
	/* a skipped step took no time, even if it had started */
	PutTimes(&b, step->status == STEP_SKIPPED ? NO_TIME : step->started_at, step->completed_at, now);
	JsonPutInt(&b, "wave", step->wave);
	JsonPutInt(&b, "execution_order", step->execution_order);
	JsonPutText(&b, "message", step->message);
	JsonPutInt(&b, "attempt", step->attempt);
	PutEnd(&b, StepSucceeded(step), StepFailed(step), step->status == STEP_SKIPPED);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Name the status of a plan with the same words. */
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

/* Build the metadata of a plan. A nested plan has the wave, order and attempt of its parent step. */
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

/* Get the resolved arguments of a step, or the arguments as written if it has none. */
Jsonb *
StepInputs(const StepRow *step)
{
	if (step->inputs != NULL)
		return JsonOf(step->inputs);
	if (step->arguments != NULL)
		return JsonOf(step->arguments);
	return JsonEmptyObject();
}

/* Put the outputs of a plan or a step; without a result, an empty object. */
void
PutOutputs(JsonBuilder *b, const struct varlena *outputs)
{
	JsonPutJson(b, "outputs", outputs ? JsonOf(outputs) : JsonEmptyObject());
}

/* Append what a tool said in addition to its message, as a sentence of its own. */
static void
AppendMore(StringInfo text, const Jsonb *error, const char *key, const char *label)
{
	char	   *more = JsonGetText(error, key);

	if (more != NULL && *more != '\0')
		appendStringInfo(text, "%s %s: %s", EndsSentence(text->data) ? "" : ".", label, more);
}

/* Spell an error: its message, then code, detail and hint, where the step has kept them. */
char *
ErrorText(const char *message, const Jsonb *error)
{
	char	   *code = JsonGetText(error, "code");
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfoString(&text, message ? message : "the step failed");
	if (code != NULL)
		appendStringInfo(&text, " (%s)", code);
	AppendMore(&text, error, "detail", "Detail");
	AppendMore(&text, error, "hint", "Hint");
	return text.data;
}
