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
ShownDigest(const StepRow *step, const Jsonb *submission)
{
	JsonBuilder b = {0};

	JsonArrayStart(&b, NULL);
	JsonPutJson(&b, NULL, StepInputs(step));
	JsonPutJson(&b, NULL, JsonOf(step->arguments));
	JsonPutText(&b, NULL, TextOf(step->instructions));
	if (submission != NULL)
		JsonPutJson(&b, NULL, submission);
	JsonArrayEnd(&b);
	return DigestText(JsonFinish(&b));
}

/* Insert the checkpoint of a step; step->waiting describes it. */
void
CheckpointOpen(Call *call, PlanRow *plan, StepRow *step)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.checkpoint (tenant, id, root_id, plan_id, step_id, kind, prompt, questions, shown,"
		" requested_by, requester, gate, submission)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, coalesce($8, '[]'), $9, $10, $11, $12, $13)",
		13, {TEXTOID, UUIDOID, UUIDOID, UUIDOID, UUIDOID, TEXTOID, TEXTOID, JSONBOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID}
	};
	const Waiting *waiting = step->waiting;
	Params		params = {0};

	ParamKey(&params, call, &waiting->checkpoint_id);
	ParamUuid(&params, &plan->root_id);
	ParamUuid(&params, &plan->id);
	ParamUuid(&params, &step->id);
	ParamText(&params, waiting->review ? "review" : "prompt");
	ParamText(&params, waiting->prompt);
	ParamVarlena(&params, waiting->questions);
	ParamText(&params, waiting->shown ? waiting->shown : ShownDigest(step, waiting->submission));
	/* a gate opens by itself, whoever calls */
	ParamText(&params, waiting->gate ? NULL : call->actor ? call->actor : step->worker);
	ParamText(&params, waiting->gate ? NULL : GetUserNameFromId(call->caller, false));
	ParamText(&params, waiting->gate);
	ParamVarlena(&params, waiting->submission);
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

	ParamKey(&params, call, &plan->root_id);
	ParamUuid(&params, &plan->id);
	QueryRun(&delete, &params);
}

/* Read what a step that waits was submitted with; NULL if there is nothing. */
Jsonb *
CheckpointSubmission(Call *call, const StepRow *step)
{
	static KeptQuery read = {
		"SELECT k.submission FROM stepwise.checkpoint AS k WHERE k.tenant = $1 AND k.step_id = $2",
		2, {TEXTOID, UUIDOID}
	};

	return step->status == STEP_AWAITING_INPUT ? QueryJsonById(call, &read, &step->id) : NULL;
}

/* List the reviews that wait in a tree. */
List *
OpenReviews(Call *call, const pg_uuid_t *root_id)
{
	static KeptQuery read = {
		"SELECT k.step_id, k.gate, k.shown, k.submission FROM stepwise.checkpoint AS k"
		" WHERE k.tenant = $1 AND k.root_id = $2 AND k.kind = 'review' ORDER BY k.id",
		2, {TEXTOID, UUIDOID}
	};
	List	   *reviews = NIL;
	Rows		rows = QueryById(call, &read, root_id);

	for (uint64 i = 0; i < rows.count; i++)
	{
		OpenReview *review = palloc0(sizeof(OpenReview));

		review->step_id = RowUuid(&rows, i, 1);
		review->gate = RowText(&rows, i, 2);
		review->shown = RowText(&rows, i, 3);
		review->submission = RowJson(&rows, i, 4);
		reviews = lappend(reviews, review);
	}
	RowsFree(&rows);
	return reviews;
}
