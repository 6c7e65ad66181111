/*
 * checkpoint.c
 *	  rows of checkpoints
 *
 * A checkpoint is one wait of a step. It is opened when the step goes to
 * awaiting_input, and deleted when the step leaves that state in any way.
 */
#include "engine/engine.h"

#include "miscadmin.h"

/* Digest what the reviewer is shown, so that an approval cannot be of something else. */
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

void
CheckpointClose(Call *call, const StepRow *step)
{
	static KeptQuery delete = {
		"DELETE FROM stepwise.checkpoint WHERE tenant = $1 AND step_id = $2",
		2, {TEXTOID, UUIDOID}
	};

	QueryById(call, &delete, &step->id);
}

/* A plan has ended: nobody is asked any more. */
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
