/*
 * history.c
 *	  the execution tree at a past time, rebuilt from the audit chain
 *
 * The chain records states, pauses, times, attempts and actors. Of results it
 * records only digests: an output is shown only if the stored one still has
 * the recorded digest. What a step does, and its wave, are shown as they are
 * now, or as they were when the step was removed.
 *
 * "Then" is the state at the asked time. Nothing is locked. The answer is read
 * under one snapshot.
 */
#include "api/api.h"

#include "miscadmin.h"
#include "utils/hsearch.h"

/* what the chain says of a step, at the asked time */
typedef struct StepThen
{
	pg_uuid_t	id;				/* the key */
	bool		forked;			/* the last move stands for what happened in the plan before a fork */
	char	   *status;			/* to which the last move led */
	char	   *outcome;		/* or NULL; likewise the next two */
	char	   *message;
	char	   *digest;			/* of its result */
	char	   *actor;			/* who made the last move */
	int			attempt;
	TimestampTz at;				/* of the last move */
	TimestampTz begun_at;		/* of the last claim, or NO_TIME */
	int64		begun;			/* its entry; 0: none */
	int64		reset;			/* the entry of the last move back to pending; 0: none */
} StepThen;

/* a step that was removed after the asked time */
typedef struct Removed
{
	StepRow    *row;
	int64		entry;
} Removed;

/* what the chain says of a plan, at the asked time */
typedef struct PlanThen
{
	MemoryContext context;		/* of what is kept of entries */
	TimestampTz asked;			/* the time */
	char	   *status;			/* NULL if the plan did not exist yet */
	Jsonb	   *pause_reason;	/* NULL if it was not paused */
	char	   *actor;			/* who made the last change */
	HTAB	   *steps;			/* of StepThen */
	List	   *removed;		/* of Removed */
	HTAB	   *added;			/* ids of steps that were added later */
	struct names_hash *added_names; /* names of such steps, with the first entry that has the name */
} PlanThen;

/* a step as it was */
typedef struct PastStep
{
	StepRow    *row;
	const StepThen *told;		/* NULL: it had not moved */
} PastStep;

static void PutBlocksAsOf(JsonBuilder *b, Call *call, const pg_uuid_t *plan_id, const PlanThen *then);

/* ---------- the chain ---------- */

static bool
EventIs(const LogEntry *entry, const char *event)
{
	return strcmp(entry->head.event, event) == 0;
}

/* Copy a text; NULL for NULL. */
static char *
Kept(const char *text)
{
	return text ? pstrdup(text) : NULL;
}

/* Note an entry about the plan itself. */
static void
TellPlan(PlanThen *then, const LogEntry *entry, const Jsonb *detail)
{
	char	   *to = JsonGetText(detail, "to");
	bool		moves = (EventIs(entry, "plan_status_changed") || EventIs(entry, "plan_modified")) && to != NULL;

	if (moves)
		then->status = Kept(to);
	else if (EventIs(entry, "plan_paused"))
		then->pause_reason = JsonGetJson(detail, "reason");
	else
		return;
	then->actor = Kept(entry->row->actor);
}

/* Note the move of a step. */
static void
TellStep(PlanThen *then, const LogEntry *entry, const Jsonb *detail)
{
	char	   *to = JsonGetText(detail, "to");
	char	   *from = JsonGetText(detail, "from");
	JsonbValue	value;
	StepThen   *step;
	bool		found;

	if (to == NULL)
		return;
	step = hash_search(then->steps, &entry->head.step_id, HASH_ENTER, &found);
	if (!found)
	{
		step->begun = step->reset = 0;
		step->begun_at = NO_TIME;
	}
	step->forked = JsonGet(detail, "forked", &value);
	step->status = Kept(to);
	step->outcome = Kept(JsonGetText(detail, "outcome"));
	step->message = Kept(JsonGetText(detail, "message"));
	step->digest = Kept(JsonGetText(detail, "resultDigest"));
	step->actor = Kept(entry->row->actor);
	step->attempt = JsonGetInt(detail, "attempt");
	step->at = entry->head.at;
	if (strcmp(to, StepStatusName[STEP_IN_PROGRESS]) == 0 && from != NULL &&
		strcmp(from, StepStatusName[STEP_AWAITING_INPUT]) != 0)
	{
		step->begun = entry->id;
		step->begun_at = entry->head.at;
	}
	if (strcmp(to, StepStatusName[STEP_PENDING]) == 0)
		step->reset = entry->id;
}

/* Note a step that was removed later. What it did, and its wave, are in the entry. */
static void
TellRemoved(PlanThen *then, const LogEntry *entry, const Jsonb *detail)
{
	Removed    *removed = palloc0(sizeof(Removed));
	StepRow    *row = palloc0(sizeof(StepRow));

	row->active_at = row->lease_expires_at = row->started_at = row->completed_at = NO_TIME;
	row->id = entry->head.step_id;
	row->order = JsonGetInt(detail, "stepOrder");
	row->name = Kept(JsonGetText(detail, "name"));
	row->wave = JsonGetInt(detail, "wave");
	row->execution_order = JsonGetInt(detail, "executionOrder");
	row->arguments = (struct varlena *) JsonGetJson(detail, "inputs");
	removed->row = row;
	removed->entry = entry->id;
	then->removed = lappend(then->removed, removed);
}

/* Note the steps that a later entry says were added or removed. */
static void
TellLater(PlanThen *then, const LogEntry *entry, const Jsonb *detail)
{
	char	   *action = JsonGetText(detail, "action");
	bool		adds = action != NULL && strcmp(action, "add_steps") == 0;
	bool		removes = action != NULL && strcmp(action, "remove_step") == 0;
	List	   *names = JsonGetTexts(detail, "addedSteps");
	ListCell   *cell;
	pg_uuid_t	id;

	if (removes)
		TellRemoved(then, entry, detail);
	if (adds && entry->head.has_step)
		hash_search(then->added, &entry->head.step_id, HASH_ENTER, NULL);
	if (adds || removes || names != NIL)
		foreach(cell, JsonGetTexts(detail, "stepIds"))
			if (UuidParse(lfirst(cell), &id))
				hash_search(then->added, &id, HASH_ENTER, NULL);
	foreach(cell, names)
		NamesAdd(then->added_names, lfirst(cell), (int) entry->id);
}

/* Note what an entry says. */
static void
Tell(void *arg, const LogEntry *entry)
{
	PlanThen   *then = arg;
	bool		later = entry->head.at > then->asked;
	MemoryContext outer;
	Jsonb	   *detail;

	if (later && !EventIs(entry, "plan_modified"))
		return;
	detail = EntryReadDetail(&entry->stored);
	outer = MemoryContextSwitchTo(then->context);
	if (later)
		TellLater(then, entry, detail);
	else if (entry->head.has_step)
		TellStep(then, entry, detail);
	else
		TellPlan(then, entry, detail);
	MemoryContextSwitchTo(outer);
}

/* Make an empty hash table whose keys are ids. */
static HTAB *
HashOfIds(Size entry)
{
	HASHCTL		control = {.keysize = sizeof(pg_uuid_t), .entrysize = entry, .hcxt = CurrentMemoryContext};

	return hash_create("stepwise steps as of", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Read what the chain says of a plan at a time. */
static PlanThen
ReadPlanThen(Call *call, const pg_uuid_t *plan_id, TimestampTz at)
{
	PlanThen	then = {.context = CurrentMemoryContext, .asked = at};

	then.steps = HashOfIds(sizeof(StepThen));
	then.added = HashOfIds(sizeof(pg_uuid_t));
	then.added_names = NamesNew(8);
	LogVisit(call, plan_id, Tell, &then);
	/* the end of a pause is audited as a null reason, except if the plan itself ends */
	if (then.pause_reason != NULL && (JsonIsNull(then.pause_reason) || then.status == NULL ||
									  PlanIsTerminal(NameIndex(then.status, PlanStatusName, PLAN_STATUSES))))
		then.pause_reason = NULL;
	return then;
}

/* ---------- steps as they were ---------- */

/*
 * Check whether a step was added after the asked time. "removed" is the entry
 * that says that it was removed since, or 0. The entry of a branch lists the
 * steps that it added by name. Such a name means a removed step only if that was
 * removed after the entry.
 */
static bool
WasAdded(const PlanThen *then, const StepRow *step, int64 removed)
{
	int			entry = step->name ? NamesFind(then->added_names, step->name) : 0;

	return hash_search(then->added, &step->id, HASH_FIND, NULL) != NULL || (entry != 0 && (removed == 0 || removed > entry));
}

static int
PastByOrder(const ListCell *a, const ListCell *b)
{
	int			one = ((const PastStep *) lfirst(a))->row->order;
	int			other = ((const PastStep *) lfirst(b))->row->order;

	return one < other ? -1 : one > other;
}

/* Read a word as its index in a list of words. */
static int
WordOr(const char *word, const char *const *words, int count, int otherwise)
{
	int			index = word ? NameIndex(word, words, count) : -1;

	return index < 0 ? otherwise : index;
}

/* Set the times of a step back to how they were. */
static void
TimesAsOf(StepRow *step, const StepThen *told)
{
	bool		ended = STATES_ENDED & STATE_BIT(step->status);

	/* a fork keeps the times of the plan before it */
	if (told != NULL && told->forked)
		return;
	step->started_at = told != NULL && told->begun > told->reset ? told->begun_at : NO_TIME;
	step->completed_at = told != NULL && ended ? told->at : NO_TIME;
	if (told == NULL || told->begun == 0)
		step->execution_order = 0;
}

/* Set a step back to how it was. CheckRecorded looks at its result later. */
static void
StepAsOf(StepRow *step, const StepThen *told)
{
	step->status = WordOr(told ? told->status : NULL, StepStatusName, STEP_STATUSES, STEP_PENDING);
	step->outcome = WordOr(told ? told->outcome : NULL, OutcomeName, OUTCOMES, OUTCOME_NA);
	step->attempt = told ? told->attempt : 0;
	/* the chain has no message of a completed step; the stored one is final */
	if (step->status != STEP_COMPLETED)
		step->message = told ? told->message : NULL;
	step->pause_reason = NULL;
	TimesAsOf(step, told);
	/* a pending step has no resolved arguments yet */
	if (step->status == STEP_PENDING)
		step->inputs = NULL;
	if (step->status != STEP_COMPLETED || told->digest == NULL)
		step->result = NULL;
}

/* Add a step to those that there were, unless it was added later. */
static List *
AddPast(List *past, const PlanThen *then, StepRow *row, int64 removed)
{
	PastStep   *step;

	if (WasAdded(then, row, removed))
		return past;
	step = palloc(sizeof(PastStep));
	step->row = row;
	step->told = hash_search(then->steps, &row->id, HASH_FIND, NULL);
	StepAsOf(row, step->told);
	return lappend(past, step);
}

/* List the steps of a plan as they were, in their order. Steps that were removed since are among them. */
static List *
StepsAsOf(Call *call, const pg_uuid_t *plan_id, const PlanThen *then)
{
	List	   *past = NIL;
	ListCell   *cell;

	foreach(cell, StepsInStates(call, "step_order_unique", plan_id, STATES_ALL, INT_MAX))
		past = AddPast(past, then, lfirst(cell), 0);
	foreach(cell, then->removed)
	{
		const Removed *removed = lfirst(cell);

		past = AddPast(past, then, removed->row, removed->entry);
	}
	list_sort(past, PastByOrder);
	return past;
}

/* Drop the result unless it has the recorded digest. */
static void
CheckRecorded(const PastStep *step)
{
	if (step->row->result != NULL && strcmp(step->told->digest, DigestText(step->row->result)) != 0)
		step->row->result = NULL;
}

/* Check that a row of stepwise.plan was there at a time. */
static bool
WasThere(TupleTableSlot *slot, const void *at)
{
	return ColumnTime(slot, PLAN_COL_CREATED_AT) <= *(const TimestampTz *) at;
}

static void *
PlanIdMake(TupleTableSlot *slot)
{
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

	*id = ColumnUuid(slot, PLAN_COL_ID);
	return id;
}

/* Find the plan that was nested in a step at a time; NULL if there was none. */
static pg_uuid_t *
NestedAsOf(Call *call, const StepRow *step, TimestampTz at)
{
	Key			key = {.call = call, .backward = true};

	KeyUuid(&key, &step->id);
	return TableRead("plan", "plan_parent_step", &key, WasThere, &at, PlanIdMake);
}

/* ---------- the answer ---------- */

/* Limit the asked time to now: a time in the future is answered with the present state. */
static TimestampTz
KnownUntil(TimestampTz at)
{
	return Min(at, GetCurrentTimestamp());
}

/* Build the metadata of a step, with the actor of its last change. */
static Jsonb *
MetadataAsOf(const StepRow *step, const char *actor, TimestampTz at)
{
	return JsonMerge(StepMetadata(step, KnownUntil(at)), JsonTextOf("actor", actor));
}

/* Put a step as a block, with the blocks of the plan that was nested in it then. */
static void
PutBlockAsOf(JsonBuilder *b, Call *call, const PastStep *step, TimestampTz at)
{
	const pg_uuid_t *nested_id = NestedAsOf(call, step->row, at);
	PlanThen	nested = {0};

	CheckRecorded(step);
	/* a parent step pauses with its nested plan */
	if (nested_id != NULL)
	{
		nested = ReadPlanThen(call, nested_id, at);
		step->row->pause_reason = (struct varlena *) nested.pause_reason;
	}
	JsonObjectStart(b, step->row->name ? step->row->name : "");
	JsonPutJson(b, "inputs", StepInputs(step->row));
	PutOutputs(b, step->row->result);
	JsonPutJson(b, "metadata", MetadataAsOf(step->row, step->told ? step->told->actor : NULL, at));
	if (nested_id != NULL)
		PutBlocksAsOf(b, call, nested_id, &nested);
	else
		JsonPutJson(b, "blocks", JsonEmptyObject());
	JsonObjectEnd(b);
}

/* Put the steps of a plan as blocks. Check the size of the answer before large values are read. */
static void
PutBlocksAsOf(JsonBuilder *b, Call *call, const pg_uuid_t *plan_id, const PlanThen *then)
{
	List	   *steps;
	ListCell   *cell;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	steps = StepsAsOf(call, plan_id, then);
	foreach(cell, steps)
		AnswerTake(call, BlockSize(((PastStep *) lfirst(cell))->row), TREE_HINT);
	JsonObjectStart(b, "blocks");
	foreach(cell, steps)
		PutBlockAsOf(b, call, lfirst(cell), then->asked);
	JsonObjectEnd(b);
}

/* Refuse a time before the plan was created. */
static const char *
CheckThere(Call *call, const PlanRow *plan, const char *status, TimestampTz at)
{
	if (status == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_PLAN_NOT_FOUND),
				 errmsg("plan \"%s\" was not there at %s", plan->name, TimeText(at)),
				 errdetail("It was created at %s.", TimeText(plan->created_at)),
				 errhint("%s", PlanHint(call, plan, "Ask for a time after that; stepwise.execution(plan_id) shows the plan as it is now."))));
	return status;
}

/* Set the row of a plan back to how it was. */
static PlanRow
PlanAsOf(Call *call, const PlanRow *plan, const PlanThen *told, TimestampTz at)
{
	PlanRow		then = *plan;

	then.status = NameIndex(CheckThere(call, plan, told->status, at), PlanStatusName, PLAN_STATUSES);
	then.pause_reason = (struct varlena *) told->pause_reason;
	if (then.status != PLAN_COMPLETED)
	{
		then.outcome = OUTCOME_NA;
		then.outputs = NULL;
	}
	if (!PlanIsTerminal(then.status))
	{
		then.completed_at = NO_TIME;
		then.message = NULL;
	}
	if (then.started_at > at)
		then.started_at = NO_TIME;
	return then;
}

/* Build the execution tree of a plan at a time. Its metadata have the actor of the last change too. */
static Jsonb *
ExecutionAsOf(Call *call, PlanRow *plan, TimestampTz at)
{
	PlanThen	told = ReadPlanThen(call, &plan->id, at);
	PlanRow		then = PlanAsOf(call, plan, &told, at);
	JsonBuilder more = {0};
	JsonBuilder b = {0};

	AnswerTake(call, RawSize(then.inputs) + RawSize(then.outputs), TREE_HINT);
	JsonObjectStart(&more, NULL);
	JsonPutText(&more, "actor", told.actor);
	JsonPutTime(&more, "as_of", KnownUntil(at));
	JsonObjectEnd(&more);
	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "inputs", JsonOf(then.inputs));
	PutOutputs(&b, then.outputs);
	JsonPutJson(&b, "metadata", JsonMerge(PlanMetadata(call, &then, KnownUntil(at)), JsonFinish(&more)));
	PutBlocksAsOf(&b, call, &plan->id, &told);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Show the execution tree of a plan at a past time. */
PG_FUNCTION_INFO_V1(stepwise_execution_as_of);
Datum
stepwise_execution_as_of(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanRow    *plan;

	CallBeginReading(&call);
	plan = PlanMustRead(&call, ArgumentUuid(fcinfo, 0));
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("execution_as_of needs a time"),
				 errhint("%s", PlanHint(&call, plan, "Give a time, as in stepwise.execution_as_of(plan_id, clock_timestamp())."))));
	return CallEnd(&call, ExecutionAsOf(&call, plan, PG_GETARG_TIMESTAMPTZ(1)));
}
