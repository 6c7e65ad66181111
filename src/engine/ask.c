/*
 * ask.c
 *	  let a step wait for a person: by a review or by a prompt
 *
 * A pending step passes through in_progress, which counts as an attempt. Each
 * wait has a checkpoint with a new id.
 *
 * Locks: the caller holds the locks of the root and of the plan.
 */
#include "engine/engine.h"

/* Write the audit entry of a requested review. */
static void
AuditReviewRequested(Call *call, PlanRow *plan, const StepRow *step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", "review_requested");
	JsonPutUuid(&b, "checkpointId", &step->waiting->checkpoint_id);
	JsonPutText(&b, "summary", step->waiting->prompt);
	if (step->waiting->questions != NULL)
		JsonPutJson(&b, "questions", step->waiting->questions);
	JsonObjectEnd(&b);
	AuditAppend(call, plan, &step->id, "user_reviewed", JsonFinish(&b));
}

/* Let a step that is pending or in progress wait for a review. */
void
StepRequestReview(Call *call, PlanRow *plan, StepRow *step, const char *summary, Jsonb *questions)
{
	Waiting    *waiting = palloc0(sizeof(Waiting));

	waiting->checkpoint_id = UuidNew();
	waiting->review = true;
	waiting->prompt = summary;
	waiting->questions = questions;
	if (step->status == STEP_PENDING)
		StepMove(call, plan, step, STEP_IN_PROGRESS, NULL);
	step->waiting = waiting;
	StepMove(call, plan, step, STEP_AWAITING_INPUT, NULL);
	AuditReviewRequested(call, plan, step);
}

/* Let a pending prompt wait for its answer. */
void
StepPrompt(Call *call, PlanRow *plan, StepRow *step, const char *prompt)
{
	Waiting    *waiting = palloc0(sizeof(Waiting));

	waiting->checkpoint_id = UuidNew();
	waiting->prompt = prompt;
	StepMove(call, plan, step, STEP_IN_PROGRESS, NULL);
	step->waiting = waiting;
	StepMove(call, plan, step, STEP_AWAITING_INPUT, NULL);
}
