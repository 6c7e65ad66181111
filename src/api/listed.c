/*
 * listed.c
 *	  the steps, checkpoints and artifacts of a plan, as answers list them
 *
 * An answer lists a few of many steps. So all steps of a plan are read in short
 * first, and those that are shown are read whole, once. All rows are read by
 * index (base/table.c): a query would have to be planned anew by each
 * connection, which takes longer than the answer.
 *
 * Locks: none. The caller reads under one snapshot.
 */
#include "api/api.h"

/* ---------- cut members ---------- */

/* Put a text, cut; nothing if there is none, or no text is shown. */
void
PutCutText(JsonBuilder *b, const char *key, const char *text, int cut, const char *reader)
{
	if (text != NULL && cut > 0)
		JsonPutText(b, key, CutText(text, cut, reader));
}

/* Do the same for a field of a row. */
void
PutCutField(JsonBuilder *b, const char *key, const struct varlena *field, int cut, const char *reader)
{
	if (field != NULL && cut > 0)
		JsonPutText(b, key, CutField(field, cut, reader));
}

/* Do the same for a value. The reader takes its id, and perhaps max_bytes. */
void
PutCutJson(JsonBuilder *b, const char *key, const struct varlena *field, int cut, const ReadingFunction *reader)
{
	if (field != NULL && cut > 0)
		JsonPutJson(b, key, CutJson(field, cut, reader));
}

/* Return the length of a list that stands beside the list of steps: it gets shorter with the texts. */
int
BesideSteps(int entries, int cut)
{
	if (cut >= 300)
		return entries;
	return cut == 0 ? 0 : Min(entries, Max(cut / 10, 3));
}

/* Put a positive number; nothing for others. */
static void
PutIfPositive(JsonBuilder *b, const char *key, int value)
{
	if (value > 0)
		JsonPutInt(b, key, value);
}

/* Compute the percentage of steps that are completed or skipped. */
int
PlanPercent(const PlanRow *plan)
{
	int64		total = Max(StepTotal(plan->counts), 1);

	return (200 * (int64) (plan->counts[STEP_COMPLETED] + plan->counts[STEP_SKIPPED]) + total) / (2 * total);
}

/* ---------- steps in short ---------- */

/* Make a ListedStep from a row of stepwise.step. */
static void *
ListedMake(TupleTableSlot *slot)
{
	ListedStep *step = palloc0(sizeof(ListedStep));

	step->id = ColumnUuid(slot, STEP_COL_ID);
	step->order = ColumnInt(slot, STEP_COL_ORDER);
	step->status = EnumIndex(DatumGetObjectId(ColumnDatum(slot, STEP_COL_STATUS)), StepStatusName, STEP_STATUSES);
	step->completed_at = ColumnTime(slot, STEP_COL_COMPLETED_AT);
	return step;
}

/* List all steps of a plan in short, in their order. */
List *
ListedSteps(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);

	return TableReadAll("step", "step_order_unique", &key, ListedMake);
}

/* Read a listed step whole. It is read once. */
StepRow *
ListedRow(Call *call, ListedStep *step)
{
	if (step->row == NULL)
		step->row = StepMustRead(call, &step->id);
	return step->row;
}

/* Compare steps by their order. */
int
StepsByOrder(const ListCell *a, const ListCell *b)
{
	const ListedStep *one = lfirst(a);
	const ListedStep *other = lfirst(b);

	return one->order < other->order ? -1 : one->order > other->order;
}

/* Compare steps that have ended: the last one first. */
int
StepsByEnd(const ListCell *a, const ListCell *b)
{
	const ListedStep *one = lfirst(a);
	const ListedStep *other = lfirst(b);

	if (one->completed_at != other->completed_at)
		return one->completed_at > other->completed_at ? -1 : 1;
	return StepsByOrder(b, a);
}

/* Compare steps that have not ended: those that have begun come before those that are pending. */
int
StepsByBegin(const ListCell *a, const ListCell *b)
{
	bool		one = ((const ListedStep *) lfirst(a))->status == STEP_PENDING;
	bool		other = ((const ListedStep *) lfirst(b))->status == STEP_PENDING;

	return one != other ? one - other : StepsByOrder(a, b);
}

/* Pick the first steps of some states in an order, at most max. They are returned in the order of the plan. */
List *
PickSteps(const List *steps, int states, list_sort_comparator order, int max)
{
	List	   *picked = NIL;
	ListCell   *cell;

	foreach(cell, steps)
		if (states & STATE_BIT(((ListedStep *) lfirst(cell))->status))
			picked = lappend(picked, lfirst(cell));
	list_sort(picked, order);
	picked = list_truncate(picked, Max(max, 0));
	list_sort(picked, StepsByOrder);
	return picked;
}

/* Compare whole rows of steps by their order. */
int
RowsByOrder(const ListCell *a, const ListCell *b)
{
	return ((const StepRow *) lfirst(a))->order < ((const StepRow *) lfirst(b))->order ? -1 : 1;
}

/* ---------- a step ---------- */

/* Put what a step has to do, unless it has done it or was skipped. */
static void
PutTask(JsonBuilder *b, const StepRow *step, int cut, const ReadingFunction *reader)
{
	if (step->status == STEP_COMPLETED || step->status == STEP_SKIPPED)
		return;
	PutCutField(b, "prompt", step->prompt, cut, reader->function);
	PutCutField(b, "instructions", step->instructions, cut, reader->function);
	PutCutJson(b, "arguments", step->arguments, cut >= 300 ? cut : 0, reader);
}

/* Put the result of a step. Where no text is shown, only the fact that it is cut is. */
static void
PutResult(JsonBuilder *b, const StepRow *step, int cut, const ReadingFunction *reader)
{
	if (step->result == NULL || cut > 0)
		JsonPutJson(b, "result", CutJson(step->result, cut, reader));
	else
	{
		JsonObjectStart(b, "result");
		JsonPutBool(b, "cut", true);
		JsonObjectEnd(b);
	}
}

/* Put the times and counts of a step. */
static void
PutRun(JsonBuilder *b, const StepRow *step)
{
	PutIfPositive(b, "attempt", step->attempt);
	PutIfPositive(b, "maxAttempts", step->max_attempts);
	if (step->retryable >= 0)
		JsonPutBool(b, "retryable", step->retryable == 1);
	JsonPutTimeIfSet(b, "leaseExpiresAt", step->lease_expires_at);
	JsonPutTextIfSet(b, "stallAfter", step->stall_after ? IntervalText(step->stall_after) : NULL);
	PutIfPositive(b, "executionOrder", step->execution_order);
	JsonPutTimeIfSet(b, "startedAt", step->started_at);
	JsonPutTimeIfSet(b, "completedAt", step->completed_at);
	if (step->confidence != NULL)
	{
		JsonbValue	number = {.type = jbvNumeric, .val.numeric = DatumGetNumeric(PointerGetDatum(step->confidence))};

		JsonPutValue(b, "confidence", &number);
	}
}

/* Put the members of a step. Where room is short, what is cut is left out. */
void
PutListedStep(JsonBuilder *b, const StepRow *step, int cut)
{
	ReadingFunction reader = {"get_step_context", "step_id", UuidText(&step->id), "max_bytes"};

	JsonPutUuid(b, "stepId", &step->id);
	JsonPutInt(b, "stepOrder", step->order);
	JsonPutText(b, "name", step->name);
	JsonPutText(b, "stepType", step->type);
	JsonPutText(b, "status", StepStatusName[step->status]);
	if (step->outcome != OUTCOME_NA)
		JsonPutText(b, "outcome", OutcomeName[step->outcome]);
	PutCutText(b, "tool", step->tool, cut, reader.function);
	PutCutText(b, "workflow", step->workflow, cut, reader.function);
	PutIfPositive(b, "version", step->version);
	JsonPutTextIfSet(b, "binding", step->binding);
	PutCutText(b, "worker", step->worker, cut, reader.function);
	PutRun(b, step);
	PutCutText(b, "message", step->message, cut, reader.function);
	PutCutJson(b, "pauseReason", step->pause_reason, cut >= 300 ? cut : 0, &reader);
	PutCutField(b, "resultSummary", step->result_summary, cut, reader.function);
	PutTask(b, step, cut, &reader);
	PutResult(b, step, cut, &reader);
}

/* Put the id of the newest plan that is nested in a step, if there is one. */
void
PutNestedPlan(JsonBuilder *b, Call *call, const StepRow *step)
{
	pg_uuid_t	id;

	if (step->workflow != NULL && NestedPlanId(call, &step->id, &id))
		JsonPutUuid(b, "nestedPlanId", &id);
}

/* ---------- dependencies ---------- */

/* Make a Parent from a row of stepwise.dependency. */
static void *
ParentMake(TupleTableSlot *slot)
{
	Parent	   *parent = palloc0(sizeof(Parent));

	parent->id = ColumnUuid(slot, DEPENDENCY_COL_DEPENDS_ON);
	parent->required = ColumnBool(slot, DEPENDENCY_COL_REQUIRED);
	parent->ended = ColumnBool(slot, DEPENDENCY_COL_ENDED);
	return parent;
}

static int
ParentsByOrder(const ListCell *a, const ListCell *b)
{
	const Parent *one = lfirst(a);
	const Parent *other = lfirst(b);

	return one->row->order < other->row->order ? -1 : one->row->order > other->row->order;
}

/* List the steps that a step depends on, in the order of the plan. */
List *
ParentsOf(Call *call, const pg_uuid_t *step_id)
{
	Key			key = IdKey(call, step_id);
	List	   *parents = NIL;
	ListCell   *cell;

	foreach(cell, TableReadAll("dependency", "dependency_pkey", &key, ParentMake))
	{
		Parent	   *parent = lfirst(cell);

		parent->row = StepRead(call, &parent->id);
		if (parent->row != NULL)
			parents = lappend(parents, parent);
	}
	list_sort(parents, ParentsByOrder);
	return parents;
}

/* Put how a step depends on another. */
void
PutNeed(JsonBuilder *b, const Parent *parent)
{
	if (parent->ended)
		JsonPutText(b, "when", "ended");
	else
		JsonPutBool(b, "required", parent->required);
}

/* Put what a step depends on, if it depends on anything. */
void
PutDependsOn(JsonBuilder *b, const List *parents, int cut)
{
	int			entries = Min(cut / 20, 50);
	ListCell   *cell;

	if (parents == NIL)
		return;
	JsonArrayStart(b, "dependsOn");
	foreach(cell, parents)
	{
		const Parent *parent = lfirst(cell);

		if (foreach_current_index(cell) >= entries)
			break;
		JsonObjectStart(b, NULL);
		JsonPutText(b, "step", parent->row->name);
		PutNeed(b, parent);
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
	if (list_length(parents) > entries)
		JsonPutInt(b, "dependsOnCount", list_length(parents));
}

/* ---------- checkpoints ---------- */

/* Put what a checkpoint asks. */
void
PutCheckpoint(JsonBuilder *b, const ListedCheckpoint *checkpoint, int cut)
{
	ReadingFunction reader = {"get_step_context", "step_id", UuidText(&checkpoint->step_id), "max_bytes"};

	JsonPutUuid(b, "checkpointId", &checkpoint->id);
	JsonPutText(b, "kind", checkpoint->kind);
	JsonPutTime(b, "since", checkpoint->since);
	PutCutField(b, "prompt", checkpoint->prompt, cut, reader.function);
	PutCutJson(b, "questions", checkpoint->questions, cut, &reader);
}

/* ---------- artifacts ---------- */

/* Make a ListedArtifact from a row of stepwise.artifact. The content is not read. */
static void *
ArtifactMake(TupleTableSlot *slot)
{
	ListedArtifact   *artifact = palloc0(sizeof(ListedArtifact));

	artifact->id = ColumnUuid(slot, ARTIFACT_COL_ID);
	artifact->plan_id = ColumnUuid(slot, ARTIFACT_COL_PLAN_ID);
	artifact->has_step = !ColumnIsNull(slot, ARTIFACT_COL_STEP_ID);
	artifact->step_id = ColumnUuid(slot, ARTIFACT_COL_STEP_ID);
	artifact->version = ColumnInt(slot, ARTIFACT_COL_VERSION);
	artifact->name = ColumnField(slot, ARTIFACT_COL_NAME);
	artifact->media_type = ColumnField(slot, ARTIFACT_COL_MEDIA_TYPE);
	artifact->size = RawSize((struct varlena *) DatumGetPointer(ColumnDatum(slot, ARTIFACT_COL_CONTENT))) - VARHDRSZ;
	return artifact;
}

/* Compare artifacts by their age. */
int
ArtifactsById(const ListCell *a, const ListCell *b)
{
	return memcmp(&((const ListedArtifact *) lfirst(a))->id, &((const ListedArtifact *) lfirst(b))->id, sizeof(pg_uuid_t));
}

/* List the artifacts of a plan, the oldest first. */
List *
ArtifactsOfPlan(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);
	List	   *artifacts = TableReadAll("artifact", "artifact_version", &key, ArtifactMake);

	list_sort(artifacts, ArtifactsById);
	return artifacts;
}

/* Make a WholeArtifact from a row of stepwise.artifact. */
static void *
WholeArtifactMake(TupleTableSlot *slot)
{
	WholeArtifact *artifact = palloc0(sizeof(WholeArtifact));

	artifact->id = ColumnUuid(slot, ARTIFACT_COL_ID);
	artifact->plan_id = ColumnUuid(slot, ARTIFACT_COL_PLAN_ID);
	artifact->has_step = !ColumnIsNull(slot, ARTIFACT_COL_STEP_ID);
	artifact->step_id = ColumnUuid(slot, ARTIFACT_COL_STEP_ID);
	artifact->version = ColumnInt(slot, ARTIFACT_COL_VERSION);
	artifact->created_at = ColumnTime(slot, ARTIFACT_COL_CREATED_AT);
	artifact->name = ColumnField(slot, ARTIFACT_COL_NAME);
	artifact->content = ColumnField(slot, ARTIFACT_COL_CONTENT);
	artifact->media_type = ColumnField(slot, ARTIFACT_COL_MEDIA_TYPE);
	artifact->data = ColumnField(slot, ARTIFACT_COL_DATA);
	artifact->source_url = ColumnField(slot, ARTIFACT_COL_SOURCE_URL);
	artifact->search = ColumnField(slot, ARTIFACT_COL_SEARCH);
	return artifact;
}

/* Read an artifact whole; NULL if there is none. */
WholeArtifact *
ArtifactById(Call *call, const pg_uuid_t *id)
{
	Key			key = IdKey(call, id);

	return TableRead("artifact", "artifact_pkey", &key, NULL, NULL, WholeArtifactMake);
}

/* Read a version of an artifact whole, the newest if version is NULL; NULL if there is none. */
WholeArtifact *
ArtifactVersion(Call *call, const pg_uuid_t *plan_id, const char *name, const int *version)
{
	Key			key = IdKey(call, plan_id);

	KeyText(&key, CStringGetTextDatum(name));
	if (version != NULL)
		KeyInt(&key, *version);
	key.backward = true;
	return TableRead("artifact", "artifact_version", &key, NULL, NULL, WholeArtifactMake);
}

/* Put the newest artifacts, at most "entries", and how many there are. */
void
PutArtifacts(JsonBuilder *b, const List *artifacts, int entries, int cut)
{
	int			count = list_length(artifacts);

	JsonArrayStart(b, "artifacts");
	for (int i = Max(count - entries, 0); i < count; i++)
	{
		const ListedArtifact *artifact = list_nth(artifacts, i);

		JsonObjectStart(b, NULL);
		PutCutField(b, "name", artifact->name, Max(cut, 40), "get_artifact");
		JsonPutInt(b, "version", artifact->version);
		JsonPutInt(b, "size", artifact->size);
		JsonPutUuid(b, "planId", &artifact->plan_id);
		if (artifact->has_step)
			JsonPutUuid(b, "stepId", &artifact->step_id);
		PutCutField(b, "mediaType", artifact->media_type, cut, "get_artifact");
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
	JsonPutInt(b, "artifactCount", count);
}
