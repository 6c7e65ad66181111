/*
 * checkpoint.c
 *	  rows of checkpoints
 *
 * A checkpoint is a question or a review for which a step waits. It is inserted
 * when the step goes to awaiting_input. It is deleted when the step leaves that
 * state, whatever the next state is.
 *
 * Locks: the caller holds the plan.
 */
#include "engine/engine.h"

#include "miscadmin.h"

/* Digest what a reviewer is shown. An approval is refused if this has changed since. */
char *
ShownDigest(const StepRow *step)
{
	JsonBuilder b = {0};

	JsonArrayStart(&b, NULL);
	JsonPutJson(&b, NULL, StepInputs(step));
	JsonPutJson(&b, NULL, JsonOf(step->arguments));
	JsonPutText(&b, NULL, TextOf(step->instructions));
	JsonArrayEnd(&b);
	return DigestText(JsonFinish(&b));
}

/* Insert the checkpoint of a step; step->waiting describes it. */
void
CheckpointOpen(Call *call, PlanRow *plan, StepRow *step)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.checkpoint (tenant, id, root_id, plan_id, step_id, kind, prompt, questions, shown,"
		" requested_by, requester) VALUES ($1, $2, $3, $4, $5, $6, $7, coalesce($8, '[]'), $9, $10, $11)",
		11, {TEXTOID, UUIDOID, UUIDOID, UUIDOID, UUIDOID, TEXTOID, TEXTOID, JSONBOID, TEXTOID, TEXTOID, TEXTOID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamUuid(&params, &step->waiting->checkpoint_id);
	ParamUuid(&params, &plan->root_id);
	ParamUuid(&params, &plan->id);
	ParamUuid(&params, &step->id);
	ParamText(&params, step->waiting->review ? "review" : "prompt");
	ParamText(&params, step->waiting->prompt);
	ParamVarlena(&params, step->waiting->questions);
	ParamText(&params, ShownDigest(step));
	ParamText(&params, call->actor ? call->actor : step->worker);
	ParamText(&params, GetUserNameFromId(call->caller, false));
	QueryRun(&insert, &params);
}

/* Delete the checkpoint of a step, if it has one. */
void
CheckpointClose(Call *call, const StepRow *step)
{
	static KeptQuery delete = {
		"DELETE FROM stepwise.checkpoint WHERE tenant = $1 AND step_id = $2",
		2, {TEXTOID, UUIDOID}
	};

	QueryById(call, &delete, &step->id);
}

/* Delete all checkpoints of a plan that has ended. */
void
CheckpointsClose(Call *call, const PlanRow *plan)
{
	static KeptQuery delete = {
		"DELETE FROM stepwise.checkpoint WHERE tenant = $1 AND root_id = $2 AND plan_id = $3",
		3, {TEXTOID, UUIDOID, UUIDOID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamUuid(&params, &plan->root_id);
	ParamUuid(&params, &plan->id);
	QueryRun(&delete, &params);
}
