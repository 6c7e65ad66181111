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

/* columns of stepwise.checkpoint, in the order of its definition */
enum
{
	CHECKPOINT_COL_ID, CHECKPOINT_COL_ROOT_ID, CHECKPOINT_COL_PLAN_ID, CHECKPOINT_COL_STEP_ID, CHECKPOINT_COL_SINCE,
	CHECKPOINT_COL_TENANT, CHECKPOINT_COL_KIND, CHECKPOINT_COL_PROMPT, CHECKPOINT_COL_QUESTIONS, CHECKPOINT_COL_SHOWN,
	CHECKPOINT_COL_REQUESTED_BY, CHECKPOINT_COL_REQUESTER, CHECKPOINT_COL_GATE, CHECKPOINT_COL_SUBMISSION,
	CHECKPOINT_COLUMNS
};

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

/* ---------- reading ---------- */

/* Make a ListedCheckpoint from a row of stepwise.checkpoint. */
static void *
CheckpointMake(TupleTableSlot *slot)
{
	ListedCheckpoint *checkpoint = palloc0(sizeof(ListedCheckpoint));

	checkpoint->id = ColumnUuid(slot, CHECKPOINT_COL_ID);
	checkpoint->plan_id = ColumnUuid(slot, CHECKPOINT_COL_PLAN_ID);
	checkpoint->step_id = ColumnUuid(slot, CHECKPOINT_COL_STEP_ID);
	checkpoint->since = ColumnTime(slot, CHECKPOINT_COL_SINCE);
	checkpoint->kind = ColumnText(slot, CHECKPOINT_COL_KIND);
	checkpoint->gate = ColumnText(slot, CHECKPOINT_COL_GATE);
	checkpoint->shown = ColumnText(slot, CHECKPOINT_COL_SHOWN);
	checkpoint->prompt = ColumnField(slot, CHECKPOINT_COL_PROMPT);
	checkpoint->questions = ColumnField(slot, CHECKPOINT_COL_QUESTIONS);
	checkpoint->submission = ColumnField(slot, CHECKPOINT_COL_SUBMISSION);
	return checkpoint;
}

/* List the checkpoints of a key, at most max. */
List *
CheckpointsByKey(const char *index, Key *key, int max)
{
	return TableReadSome("checkpoint", index, key, NULL, NULL, CheckpointMake, max);
}

/* List the checkpoints of a tree, the oldest first. */
List *
CheckpointsInTree(Call *call, const pg_uuid_t *root_id)
{
	Key			key = IdKey(call, root_id);

	return CheckpointsByKey("checkpoint_root", &key, INT_MAX);
}

/* Check whether a checkpoint is a review; otherwise it is a prompt. */
bool
IsReview(const ListedCheckpoint *checkpoint)
{
	return checkpoint->kind != NULL && strcmp(checkpoint->kind, "review") == 0;
}

/* List the reviews that wait in a tree, the oldest first. */
List *
OpenReviews(Call *call, const pg_uuid_t *root_id)
{
	List	   *reviews = NIL;
	ListCell   *cell;

	foreach(cell, CheckpointsInTree(call, root_id))
		if (IsReview(lfirst(cell)))
			reviews = lappend(reviews, lfirst(cell));
	return reviews;
}

/* Read a checkpoint; NULL if there is none. */
ListedCheckpoint *
CheckpointById(Call *call, const pg_uuid_t *id)
{
	Key			key = IdKey(call, id);

	return TableRead("checkpoint", "checkpoint_pkey", &key, NULL, NULL, CheckpointMake);
}

/* Read the checkpoint of a step; NULL if it has none. */
ListedCheckpoint *
CheckpointOfStep(Call *call, const pg_uuid_t *step_id)
{
	Key			key = IdKey(call, step_id);

	return TableRead("checkpoint", "checkpoint_step_id_key", &key, NULL, NULL, CheckpointMake);
}

/* Read what a step that waits was submitted with; NULL if there is nothing. */
Jsonb *
CheckpointSubmission(Call *call, const StepRow *step)
{
	const ListedCheckpoint *checkpoint = step->status == STEP_AWAITING_INPUT ? CheckpointOfStep(call, &step->id) : NULL;

	return checkpoint ? JsonOf(checkpoint->submission) : NULL;
}

/* ---------- writing ---------- */

/* Insert the checkpoint of a step; step->waiting describes it. */
void
CheckpointOpen(Call *call, PlanRow *plan, StepRow *step)
{
	const Waiting *waiting = step->waiting;
	Batch	   *batch = BatchBegin(call, "checkpoint", CHECKPOINT_COLUMNS);
	Changes    *c = &batch->row;

	SetDatum(c, CHECKPOINT_COL_TENANT, call->tenant_datum, false);
	SetUuid(c, CHECKPOINT_COL_ID, &waiting->checkpoint_id);
	SetUuid(c, CHECKPOINT_COL_ROOT_ID, &plan->root_id);
	SetUuid(c, CHECKPOINT_COL_PLAN_ID, &plan->id);
	SetUuid(c, CHECKPOINT_COL_STEP_ID, &step->id);
	SetTime(c, CHECKPOINT_COL_SINCE, GetCurrentTimestamp());
	SetText(c, CHECKPOINT_COL_KIND, waiting->review ? "review" : "prompt");
	SetText(c, CHECKPOINT_COL_PROMPT, waiting->prompt);
	SetVarlena(c, CHECKPOINT_COL_QUESTIONS, waiting->questions ? waiting->questions : JsonParse("[]"));
	SetText(c, CHECKPOINT_COL_SHOWN, waiting->shown ? waiting->shown : ShownDigest(step, waiting->submission));
	/* a gate opens by itself, whoever calls */
	SetText(c, CHECKPOINT_COL_REQUESTED_BY, waiting->gate ? NULL : call->actor ? call->actor : step->worker);
	SetText(c, CHECKPOINT_COL_REQUESTER, waiting->gate ? NULL : GetUserNameFromId(call->caller, false));
	SetText(c, CHECKPOINT_COL_GATE, waiting->gate);
	SetVarlena(c, CHECKPOINT_COL_SUBMISSION, waiting->submission);
	BatchAdd(batch);
	BatchEnd(batch);
}

/* Delete the checkpoint of a step, if it has one. */
void
CheckpointClose(Call *call, const StepRow *step)
{
	Key			key = IdKey(call, &step->id);

	TableDelete("checkpoint", "checkpoint_step_id_key", &key, NULL, NULL);
}

/* Check that a row of stepwise.checkpoint belongs to a plan. */
static bool
IsOfPlan(TupleTableSlot *slot, const void *plan_id)
{
	pg_uuid_t	its = ColumnUuid(slot, CHECKPOINT_COL_PLAN_ID);

	return UuidEqual(&its, plan_id);
}

/* Delete all checkpoints of a plan that has ended. */
void
CheckpointsClose(Call *call, const PlanRow *plan)
{
	Key			key = IdKey(call, &plan->root_id);

	TableDelete("checkpoint", "checkpoint_root", &key, IsOfPlan, &plan->id);
}
