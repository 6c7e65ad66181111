/*
 * finish.c
 *	  end a step in progress with a result or with a fault
 *
 * Locks: the caller holds the locks of the root and of the plan.
 */
#include "engine/engine.h"

/* Read the outcome from the result of a tool. A tool reports its own failure by "isError": true. */
Outcome
ResultOutcome(const Jsonb *result)
{
	JsonbValue	value;

	if (JsonGet(result, "isError", &value) && value.type == jbvBool && value.val.boolean)
		return OUTCOME_FAILURE;
	return OUTCOME_SUCCESS;
}

/* Complete a step in progress, or let it wait at the gate after it, and settle its plan. */
void
StepComplete(Call *call, PlanRow *plan, StepRow *step, Jsonb *result, Outcome outcome)
{
	step->result = (struct varlena *) result;
	step->outcome = outcome;
	StepSubmit(call, plan, step, NULL);
	PlanSettle(call, plan);
}

/* Build what _workflow.result shows of a failed step. */
static Jsonb *
ErrorOfFault(const ToolFault *fault)
{
	JsonBuilder b = {0};

	if (fault->reported != NULL)
		return fault->reported;
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "error", fault->message);
	if (*fault->code)
		JsonPutText(&b, "code", fault->code);
	if (fault->detail != NULL)
		JsonPutText(&b, "detail", fault->detail);
	if (fault->hint != NULL)
		JsonPutText(&b, "hint", fault->hint);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Fail a step in progress, and settle its plan. "reason" is used only if the plan pauses on failure. */
void
StepFail(Call *call, PlanRow *plan, StepRow *step, const ToolFault *fault, Jsonb *reason)
{
	step->message = fault->message;
	step->error = (struct varlena *) ErrorOfFault(fault);
	step->pause_reason = (struct varlena *) reason;
	StepMove(call, plan, step, STEP_FAILED, *fault->code ? JsonTextOf("code", fault->code) : NULL);
	PlanSettle(call, plan);
}
