/*
 * review.c
 *	  reviews, decisions, checkpoints, resume
 *
 * A checkpoint is one wait of a step: opened when the step goes to
 * awaiting_input, closed when it leaves that state, by whatever way. A used
 * checkpoint and an unknown one look the same: there is no row.
 */
#include "stepwise.h"

#include "miscadmin.h"

/* ---------- opening and closing ---------- */

/* Digest what the reviewer is shown, so that an approval cannot be of something else. */
static char *
ShownDigest(const StepRow *step)
{
	JsonBuilder b = {0};

	JsonArrayStart(&b, NULL);
	JsonPutJson(&b, NULL, StepInputs(step));
	JsonPutText(&b, NULL, step->instructions ? text_to_cstring((text *) step->instructions) : NULL);
	JsonArrayEnd(&b);
	return DigestText(JsonFinish(&b));
}

void
CheckpointOpen(Call *call, PlanRow *plan, StepRow *step)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.checkpoint (tenant, id, root_id, plan_id, step_id, kind, prompt, questions, shown,"
		" requested_by, requester) VALUES ($1, $2, $3, $4, $5, $6, $7, coalesce($8, '[]'), $9, $10, $11)",
		11, {TEXTOID, UUIDOID, UUIDOID, UUIDOID, UUIDOID, TEXTOID, TEXTOID, JSONBOID, TEXTOID, TEXTOID, TEXTOID}
	};
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, &step->waiting->checkpoint_id);
	ArgUuid(&args, &plan->root_id);
	ArgUuid(&args, &plan->id);
	ArgUuid(&args, &step->id);
	ArgText(&args, step->waiting->review ? "review" : "prompt");
	ArgText(&args, step->waiting->prompt);
	ArgVarlena(&args, step->waiting->questions);
	ArgText(&args, ShownDigest(step));
	ArgText(&args, step->worker);
	ArgText(&args, GetUserNameFromId(call->caller, false));
	QueryRun(&insert, &args);
}

void
CheckpointClose(Call *call, const StepRow *step)
{
	static KeptQuery delete = {
		"DELETE FROM stepwise.checkpoint WHERE tenant = $1 AND step_id = $2",
		2, {TEXTOID, UUIDOID}
	};
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, &step->id);
	QueryRun(&delete, &args);
}

void
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
