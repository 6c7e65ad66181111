/*
 * ask.c
 *	  let a step wait for a person: by a review or by a prompt
 *
 * A pending step passes through in_progress, which counts as an attempt. Only a
 * gate before a step lets it wait while it is pending. Each wait has a
 * checkpoint with a new id.
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
	if (step->waiting->gate != NULL)
		JsonPutText(&b, "gate", step->waiting->gate);
	if (step->waiting->submission != NULL)
		JsonPutText(&b, "submissionDigest", DigestText(step->waiting->submission));
	JsonObjectEnd(&b);
	AuditAppend(call, plan, &step->id, "user_reviewed", JsonFinish(&b));
}

/* Let a step wait for a review. At a gate before it, the step is pending; otherwise it is in progress. */
void
StepAwaitReview(Call *call, PlanRow *plan, StepRow *step, Waiting *waiting)
{
	step->waiting = waiting;
	StepMove(call, plan, step, STEP_AWAITING_INPUT, waiting->detail);
	AuditReviewRequested(call, plan, step);
}

/* Make what a step waits for in a review. */
Waiting *
ReviewMake(const Call *call, const char *summary, Jsonb *questions)
{
	Waiting    *waiting = palloc0(sizeof(Waiting));

	waiting->checkpoint_id = IdNew(call);
	waiting->review = true;
	waiting->prompt = summary;
	waiting->questions = questions;
	return waiting;
}

/*
 * Let a step wait for a review that was requested. An approval completes it
 * with the submission, if there is one. A pending step is started first.
 */
void
StepRequestReview(Call *call, PlanRow *plan, StepRow *step, const char *summary, Jsonb *questions, Jsonb *submission,
				  Jsonb *detail)
{
	Waiting    *waiting = ReviewMake(call, summary, questions);

	waiting->submission = submission;
	waiting->detail = detail;
	if (step->status == STEP_PENDING)
		StepMove(call, plan, step, STEP_IN_PROGRESS, detail);
	StepAwaitReview(call, plan, step, waiting);
}

/* Give a review a new checkpoint, because what it has shown is not what is there now. */
void
CheckpointRenew(Call *call, PlanRow *plan, StepRow *step, char *shown)
{
	static KeptQuery renew = {
		"UPDATE stepwise.checkpoint SET id = $3, shown = $4, since = pg_catalog.clock_timestamp()"
		" WHERE tenant = $1 AND step_id = $2",
		4, {TEXTOID, UUIDOID, UUIDOID, TEXTOID}
	};
	pg_uuid_t	id = IdNew(call);
	Params		params = {0};
	JsonBuilder b = {0};

	ParamKey(&params, call, &step->id);
	ParamUuid(&params, &id);
	ParamText(&params, shown);
	QueryRun(&renew, &params);
	StepPause(call, plan, step, JsonMerge(JsonOf(step->pause_reason), JsonTextOf("checkpointId", UuidText(&id))));
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", "review_renewed");
	JsonPutUuid(&b, "checkpointId", &id);
	JsonObjectEnd(&b);
	AuditAppend(call, plan, &step->id, "user_reviewed", JsonFinish(&b));
}

/* Let a pending prompt wait for its answer. */
void
StepPrompt(Call *call, PlanRow *plan, StepRow *step, const char *prompt)
{
	Waiting    *waiting = palloc0(sizeof(Waiting));

	waiting->checkpoint_id = IdNew(call);
	waiting->prompt = prompt;
	StepMove(call, plan, step, STEP_IN_PROGRESS, NULL);
	step->waiting = waiting;
	StepMove(call, plan, step, STEP_AWAITING_INPUT, NULL);
}
