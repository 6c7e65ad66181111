/*
 * store.c
 *	  read, lock and write the rows of plans and steps
 *
 * Locks: first the root plan of the tree, then the plan, both FOR NO KEY
 * UPDATE, then the steps, which an update locks. Every call that changes a
 * plan or a step begins with one of the PlanLock functions.
 *
 * A call has one PlanRow for each plan that it has locked. It is in call->plans
 * and in the memory of the call. A function that changes it calls PlanTouch.
 * The row is written at the end of the call, or earlier if a query has to see
 * it (CallSave). A StepRow is a copy of the row as it was read. StepSave writes
 * it at once, with all the columns that a move can change. A call of a run keeps
 * it in memory instead (keep.c), and writes it as it writes plans.
 *
 * Statements about many steps are in the files that need them: insert.c and
 * add.c insert and renumber steps, others read with a KeptQuery.
 */
#include "engine/engine.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "utils/memutils.h"

/* the columns that count steps by their state */
static const int CountColumn[STEP_STATUSES] = {
	[STEP_PENDING] = PLAN_COL_PENDING,
	[STEP_IN_PROGRESS] = PLAN_COL_IN_PROGRESS,
	[STEP_AWAITING_INPUT] = PLAN_COL_AWAITING_INPUT,
	[STEP_COMPLETED] = PLAN_COL_COMPLETED,
	[STEP_FAILED] = PLAN_COL_FAILED,
	[STEP_SKIPPED] = PLAN_COL_SKIPPED
};

/* the column of stepwise.skill_execution that is read here; the first is 0 */
#define SKILL_COL_METADATA	8

/* a call keeps at most so many changed rows in memory, and about so much memory with all that it keeps */
#define KEPT_ROWS	1000
#define KEPT_BYTES	(8 * 1024 * 1024)

/* a deformed row */
typedef struct Fields
{
	const Datum *values;
	const bool *nulls;
} Fields;

static void RowsWrite(Call *call, Call *by, int what);
static void KeptWrite(Call *call, const KeptStep *kept);

/* ---------- fields ---------- */

/* Each of these reads one column. A null is returned as zeros, 0, false, NO_TIME or NULL. */

static pg_uuid_t
FieldUuid(const Fields *f, int column)
{
	pg_uuid_t	none = {0};

	return f->nulls[column] ? none : *DatumGetUUIDP(f->values[column]);
}

static int
FieldInt(const Fields *f, int column)
{
	return f->nulls[column] ? 0 : DatumGetInt32(f->values[column]);
}

static bool
FieldBool(const Fields *f, int column)
{
	return !f->nulls[column] && DatumGetBool(f->values[column]);
}

static TimestampTz
FieldTime(const Fields *f, int column)
{
	return f->nulls[column] ? NO_TIME : DatumGetTimestampTz(f->values[column]);
}

static char *
FieldText(const Fields *f, int column)
{
	return f->nulls[column] ? NULL : TextDatumGetCString(f->values[column]);
}

/* Copy a variable-length value as it is stored. A toasted value is fetched only when it is used. */
static struct varlena *
FieldVarlena(const Fields *f, int column)
{
	struct varlena *copy;
	Size		size;

	if (f->nulls[column])
		return NULL;
	size = VARSIZE_ANY(DatumGetPointer(f->values[column]));
	copy = palloc(size);
	memcpy(copy, DatumGetPointer(f->values[column]), size);
	return copy;
}

static Interval *
FieldInterval(const Fields *f, int column)
{
	Interval   *copy;

	if (f->nulls[column])
		return NULL;
	copy = palloc(sizeof(Interval));
	*copy = *DatumGetIntervalP(f->values[column]);
	return copy;
}

static int
FieldEnum(const Fields *f, int column, const char *const *names, int count)
{
	return EnumIndex(DatumGetObjectId(f->values[column]), names, count);
}

/* Read a hash. The column is null before the first entry; then the hash stays all zeros. */
static void
FieldHash(const Fields *f, int column, uint8 hash[32])
{
	struct varlena *value = f->nulls[column] ? NULL : PG_DETOAST_DATUM_PACKED(f->values[column]);

	if (value != NULL && VARSIZE_ANY_EXHDR(value) != 32)
		elog(ERROR, "the hash of a plan has %zu bytes", (size_t) VARSIZE_ANY_EXHDR(value));
	if (value != NULL)
		memcpy(hash, VARDATA_ANY(value), 32);
}

/* Refuse a table that has other columns than this library was built for. */
static void
CheckShape(TupleDesc desc, int columns, const char *table)
{
	if (desc->natts < columns || desc->natts > TABLE_MAX_COLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table stepwise.%s does not fit the loaded library", table),
				 errhint("Run ALTER EXTENSION pg_stepwise UPDATE.")));
}

/* Deform a row of a table that has at least these columns. */
static Fields
SlotFields(TupleTableSlot *slot, int columns, const char *table)
{
	Fields		f = {slot->tts_values, slot->tts_isnull};

	CheckShape(slot->tts_tupleDescriptor, columns, table);
	slot_getallattrs(slot);
	return f;
}

/* ---------- places ---------- */

/*
 * Each backend remembers where it has last seen the rows of plans and steps,
 * which saves a search in the index. The row that is there now is compared with
 * the key, so an entry may be out of date.
 */
#define PLACES	1024

typedef struct RowPlace
{
	pg_uuid_t	id;
	ItemPointerData tid;
} RowPlace;

static RowPlace places[PLACES];

/* Find the entry for a row. It is chosen by random bytes of the id. */
static RowPlace *
PlaceOf(const pg_uuid_t *id)
{
	return &places[(id->data[12] << 8 | id->data[13]) % PLACES];
}

/* Remember where a row is. */
static void
PlaceRemember(const pg_uuid_t *id, ItemPointerData tid)
{
	RowPlace   *place = PlaceOf(id);

	place->id = *id;
	place->tid = tid;
}

/* Make the primary key of a plan or step, with the place where it was last seen. */
static Key
PlaceKey(Call *call, const pg_uuid_t *id)
{
	Key			key = IdKey(call, id);
	const RowPlace *place = PlaceOf(id);

	if (UuidEqual(&place->id, id))
		key.place = place->tid;
	return key;
}

/* Write the row of a plan or step, of which *tid is the place. */
static void
RowWrite(Call *call, const char *table, const char *index, const pg_uuid_t *id, ItemPointer tid, Changes *changes)
{
	Key			key = IdKey(call, id);

	key.place = *tid;
	TableUpdate(table, index, &key, changes);
	*tid = key.place;
	PlaceRemember(id, *tid);
}

/* ---------- plans ---------- */

/* Make a PlanRow from a row of stepwise.plan. */
static void *
PlanMake(TupleTableSlot *slot)
{
	PlanRow    *plan = palloc0(sizeof(PlanRow));
	Fields		f = SlotFields(slot, PLAN_COLUMNS, "plan");

	plan->tid = slot->tts_tid;
	plan->id = FieldUuid(&f, PLAN_COL_ID);
	plan->root_id = FieldUuid(&f, PLAN_COL_ROOT_ID);
	plan->nested = !f.nulls[PLAN_COL_PARENT_STEP_ID];
	plan->parent_step_id = FieldUuid(&f, PLAN_COL_PARENT_STEP_ID);
	plan->status = FieldEnum(&f, PLAN_COL_STATUS, PlanStatusName, PLAN_STATUSES);
	plan->outcome = FieldEnum(&f, PLAN_COL_OUTCOME, OutcomeName, OUTCOMES);
	plan->on_failure = FieldEnum(&f, PLAN_COL_ON_FAILURE, OnFailureName, ON_FAILURES);
	plan->sequential = FieldBool(&f, PLAN_COL_SEQUENTIAL);
	plan->separate_reviewer = FieldBool(&f, PLAN_COL_SEPARATE_REVIEWER);
	plan->strict_order = FieldBool(&f, PLAN_COL_STRICT_ORDER);
	plan->leases = FieldBool(&f, PLAN_COL_LEASES);
	plan->nests = FieldBool(&f, PLAN_COL_NESTS);
	plan->stalls = FieldBool(&f, PLAN_COL_STALLS);
	plan->workable = FieldBool(&f, PLAN_COL_WORKABLE);
	plan->depth = FieldInt(&f, PLAN_COL_DEPTH);
	for (int i = 0; i < STEP_STATUSES; i++)
		plan->counts[i] = FieldInt(&f, CountColumn[i]);
	plan->unsuccessful = FieldInt(&f, PLAN_COL_UNSUCCESSFUL);
	plan->paused = FieldInt(&f, PLAN_COL_PAUSED);
	plan->holding = FieldInt(&f, PLAN_COL_HOLDING);
	plan->open_failures = FieldInt(&f, PLAN_COL_OPEN_FAILURES);
	plan->sent_back = FieldInt(&f, PLAN_COL_SENT_BACK);
	plan->crowded = FieldInt(&f, PLAN_COL_CROWDED);
	plan->started_steps = FieldInt(&f, PLAN_COL_STARTED_STEPS);
	plan->next_order = FieldInt(&f, PLAN_COL_NEXT_ORDER);
	plan->audit_entries = FieldInt(&f, PLAN_COL_AUDIT_ENTRIES);
	plan->created_at = FieldTime(&f, PLAN_COL_CREATED_AT);
	plan->started_at = FieldTime(&f, PLAN_COL_STARTED_AT);
	plan->completed_at = FieldTime(&f, PLAN_COL_COMPLETED_AT);
	plan->updated_at = FieldTime(&f, PLAN_COL_UPDATED_AT);
	plan->stall_after = FieldInterval(&f, PLAN_COL_STALL_AFTER);
	FieldHash(&f, PLAN_COL_AUDIT_HEAD, plan->audit_head);
	if (!f.nulls[PLAN_COL_READY_STEPS])
		ReadyListRead(plan, (struct varlena *) DatumGetPointer(f.values[PLAN_COL_READY_STEPS]));
	plan->ready_marks = FieldBool(&f, PLAN_COL_READY_MARKS);
	plan->relinked = FieldBool(&f, PLAN_COL_RELINKED);
	plan->session_id = FieldText(&f, PLAN_COL_SESSION_ID);
	plan->message = FieldText(&f, PLAN_COL_MESSAGE);
	plan->pause_reason = FieldVarlena(&f, PLAN_COL_PAUSE_REASON);
	plan->outputs = FieldVarlena(&f, PLAN_COL_OUTPUTS);
	plan->inputs = FieldVarlena(&f, PLAN_COL_INPUTS);
	plan->parent_names = FieldVarlena(&f, PLAN_COL_PARENT_NAMES);
	plan->name = FieldText(&f, PLAN_COL_NAME);
	plan->goal = FieldText(&f, PLAN_COL_GOAL);
	plan->workflow = FieldText(&f, PLAN_COL_WORKFLOW);
	plan->version = FieldInt(&f, PLAN_COL_VERSION);
	return plan;
}

/* Check that a row of stepwise.plan is the root of its tree; id is its own id. */
static bool
IsRoot(TupleTableSlot *slot, const void *id)
{
	bool		isnull;
	Datum		root_id = slot_getattr(slot, PLAN_COL_ROOT_ID + 1, &isnull);

	return !isnull && UuidEqual(DatumGetUUIDP(root_id), id);
}

/* Find a plan that this call has locked; NULL if it has not. */
static PlanRow *
PlanLocked(const Call *call, const pg_uuid_t *plan_id)
{
	ListCell   *cell;

	foreach(cell, call->plans)
	{
		PlanRow    *plan = lfirst(cell);

		if (UuidEqual(&plan->id, plan_id))
			return plan;
	}
	return NULL;
}

/* Add a plan to those of the call; the call has locked or inserted its row. */
PlanRow *
PlanKeep(Call *call, PlanRow *plan, PlanRow *root)
{
	MemoryContext current = MemoryContextSwitchTo(call->context);

	plan->root = root ? root : plan;
	call->plans = lappend(call->plans, plan);
	call->save = RowsWrite;
	MemoryContextSwitchTo(current);
	return plan;
}

/*
 * Lock the row of a plan, and read it into the memory of the call.
 *
 * Those who wait for it queue for a lock of its id first, and only the first
 * of them waits for the row. Otherwise every commit would wake all of them,
 * only to wait for the new version of the row: each has to follow the row from
 * version to version. Who finds the row free does not queue.
 */
static PlanRow *
PlanRowLock(Call *call, const pg_uuid_t *plan_id, TupleTest test, bool wait)
{
	MemoryContext current = MemoryContextSwitchTo(call->context);
	Key			key = PlaceKey(call, plan_id);
	bool		held;
	PlanRow    *plan = TableLock("plan", "plan_pkey", &key, test, plan_id, PlanMake, &held);

	if (held && wait)
	{
		CallLock(call, "plan", UuidText(plan_id));
		plan = TableLock("plan", "plan_pkey", &key, test, plan_id, PlanMake, NULL);
	}
	MemoryContextSwitchTo(current);
	return plan;
}

/* Lock a plan that is the root of its tree; NULL if it is nested or does not exist. */
static PlanRow *
RootLock(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow    *plan = PlanLocked(call, plan_id);

	if (plan != NULL)
		return plan;
	plan = PlanRowLock(call, plan_id, IsRoot, true);
	return plan ? PlanKeep(call, plan, NULL) : NULL;
}

/* Report that the tenant has no plan of this id. */
void
PlanNotFound(const pg_uuid_t *plan_id)
{
	ereport(ERROR,
			(errcode(ERRCODE_PLAN_NOT_FOUND),
			 errmsg("plan \"%s\" not found", plan_id ? UuidText(plan_id) : ""),
			 errhint("stepwise.list_plans() lists the plans of your tenant.")));
}

/* Report that the tenant has no step of this id. */
void
StepNotFound(const pg_uuid_t *step_id)
{
	ereport(ERROR,
			(errcode(ERRCODE_STEP_NOT_FOUND),
			 errmsg("step \"%s\" not found", step_id ? UuidText(step_id) : ""),
			 errhint("stepwise.get_plan_context(plan_id) lists the steps of a plan.")));
}

/* Read a plan without locking it; NULL if there is none. A plan that the call has locked is not read again. */
PlanRow *
PlanRead(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow    *plan;
	Key			key;

	if (plan_id == NULL)
		return NULL;
	plan = PlanLocked(call, plan_id);
	key = PlaceKey(call, plan_id);
	return plan ? plan : TableRead("plan", "plan_pkey", &key, NULL, NULL, PlanMake);
}

/* Read the plan that was created with an idempotency key; NULL if there is none. */
PlanRow *
PlanReadByKey(Call *call, const char *idempotency_key)
{
	Key			key = {.call = call};

	KeyText(&key, call->tenant_datum);
	KeyText(&key, CStringGetTextDatum(idempotency_key));
	return TableRead("plan", "plan_idempotency_key", &key, NULL, NULL, PlanMake);
}

/* Read a plan without locking it; SW001 if the tenant has no plan of this id. */
PlanRow *
PlanMustRead(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow    *plan = PlanRead(call, plan_id);

	if (plan == NULL)
		PlanNotFound(plan_id);
	return plan;
}

/* Lock another plan of a tree whose root is locked. */
PlanRow *
PlanInTree(Call *call, PlanRow *root, const pg_uuid_t *plan_id)
{
	PlanRow    *plan = PlanLocked(call, plan_id);

	if (plan != NULL)
		return plan;
	plan = PlanRowLock(call, plan_id, NULL, true);
	if (plan == NULL)
		PlanNotFound(plan_id);
	return PlanKeep(call, plan, root);
}

/* Lock a nested plan, its root first. */
static PlanRow *
NestedLock(Call *call, const pg_uuid_t *plan_id, const pg_uuid_t *root_id)
{
	PlanRow    *root = RootLock(call, root_id);

	if (root == NULL)
		PlanNotFound(plan_id);
	return PlanInTree(call, root, plan_id);
}

/* Lock the tree of a plan and the plan; SW001 if the tenant has no plan of this id. */
PlanRow *
PlanLock(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow    *plan;

	if (plan_id == NULL)
		PlanNotFound(plan_id);
	/* most plans are root plans; for them this saves a lookup */
	plan = RootLock(call, plan_id);
	if (plan != NULL)
		return plan;
	plan = PlanRead(call, plan_id);
	if (plan == NULL)
		PlanNotFound(plan_id);
	return NestedLock(call, plan_id, &plan->root_id);
}

/*
 * Lock a plan and its tree unless another transaction has locked the tree.
 * Returns NULL if it has, or if there is no such plan (*found is false).
 */
PlanRow *
PlanLockIfFree(Call *call, const pg_uuid_t *plan_id, bool *found)
{
	PlanRow    *plan = PlanRead(call, plan_id);
	PlanRow    *root;

	*found = plan != NULL;
	if (plan == NULL)
		return NULL;
	root = PlanLocked(call, &plan->root_id);
	if (root == NULL)
	{
		root = PlanRowLock(call, &plan->root_id, NULL, false);
		if (root == NULL)
			return NULL;
		PlanKeep(call, root, NULL);
	}
	return PlanInTree(call, root, plan_id);
}

/*
 * Get the time of the changes of this call. The clock is read once, so that
 * step, plan and audit entry have the same time. The time is never before the
 * last update of the plan, even if the clock was set back or another session
 * has read it later.
 */
TimestampTz
CallNow(Call *call, const PlanRow *plan)
{
	if (call->now == 0)
		call->now = GetCurrentTimestamp();
	call->now = Max(call->now, plan->updated_at);
	return call->now;
}

/* Set the columns of a plan that change. */
void
PlanSetState(Changes *c, const PlanRow *plan)
{
	SetEnum(c, PLAN_COL_STATUS, "plan_status", PlanStatusName[plan->status]);
	SetEnum(c, PLAN_COL_OUTCOME, "outcome", OutcomeName[plan->outcome]);
	SetBool(c, PLAN_COL_LEASES, plan->leases);
	SetBool(c, PLAN_COL_NESTS, plan->nests);
	SetBool(c, PLAN_COL_STALLS, plan->stalls);
	SetBool(c, PLAN_COL_READY_MARKS, plan->ready_marks);
	SetBool(c, PLAN_COL_RELINKED, plan->relinked);
	SetTrue(c, PLAN_COL_WORKABLE, plan->nested && plan->workable);
	for (int i = 0; i < STEP_STATUSES; i++)
		SetInt(c, CountColumn[i], plan->counts[i]);
	SetInt(c, PLAN_COL_UNSUCCESSFUL, plan->unsuccessful);
	SetInt(c, PLAN_COL_PAUSED, plan->paused);
	SetInt(c, PLAN_COL_HOLDING, plan->holding);
	SetInt(c, PLAN_COL_OPEN_FAILURES, plan->open_failures);
	SetInt(c, PLAN_COL_SENT_BACK, plan->sent_back);
	SetInt(c, PLAN_COL_CROWDED, plan->crowded);
	SetInt(c, PLAN_COL_STARTED_STEPS, plan->started_steps);
	SetInt(c, PLAN_COL_NEXT_ORDER, plan->next_order);
	SetInt(c, PLAN_COL_AUDIT_ENTRIES, plan->audit_entries);
	SetTime(c, PLAN_COL_STARTED_AT, plan->started_at);
	SetTime(c, PLAN_COL_COMPLETED_AT, plan->completed_at);
	SetTime(c, PLAN_COL_UPDATED_AT, plan->updated_at);
	SetVarlena(c, PLAN_COL_AUDIT_HEAD, cstring_to_text_with_len((char *) plan->audit_head, sizeof(plan->audit_head)));
	SetVarlena(c, PLAN_COL_READY_STEPS, ReadyListArray(plan));
	SetText(c, PLAN_COL_SESSION_ID, plan->session_id);
	SetText(c, PLAN_COL_MESSAGE, plan->message);
	SetVarlena(c, PLAN_COL_PAUSE_REASON, plan->pause_reason);
	SetVarlena(c, PLAN_COL_OUTPUTS, plan->outputs);
	/* constraints are not checked when the row is written */
	if ((plan->status == PLAN_COMPLETED) != (plan->outcome != OUTCOME_NA) || PlanIsTerminal(plan->status) != TimeIsSet(plan->completed_at))
		elog(ERROR, "plan %s does not fit its constraint", UuidText(&plan->id));
}

/* Note the time of the last change of a plan, unless that is done. */
static void
PlanStamp(Call *call, PlanRow *plan)
{
	if (!plan->stamped)
		plan->updated_at = CallNow(call, plan);
	plan->stamped = true;
}

/* Note the time of the changes to plans, because the call goes on later. */
void
PlansStamp(Call *call)
{
	ListCell   *cell;

	foreach(cell, call->plans)
	{
		PlanRow    *plan = lfirst(cell);

		if (plan->touched)
			PlanStamp(call, plan);
	}
}

/* Write the row of a plan. */
static void
PlanWrite(Call *call, PlanRow *plan)
{
	Changes		c = {0};

	plan->touched = false;
	PlanStamp(call, plan);
	PlanSetState(&c, plan);
	RowWrite(call, "plan", "plan_pkey", &plan->id, &plan->tid, &c);
}

/* Note that the row of a new plan was inserted, and where it is. */
void
PlanInserted(PlanRow *plan, ItemPointerData place)
{
	plan->touched = false;
	plan->tid = place;
	PlaceRemember(&plan->id, place);
}

/*
 * Write the audit entries that a call has not written yet. If another call
 * writes them, they are kept, since the write may be rolled back.
 */
static void
LogsWrite(Call *call, Call *by)
{
	ListCell   *cell;

	foreach(cell, call->plans)
	{
		PlanRow    *plan = lfirst(cell);

		if (plan->log == NULL)
			continue;
		LogWrite(by, plan->log);
		if (by != call)
			continue;
		LogFree(plan->log);
		plan->log = NULL;
	}
}

/* Write the steps that a call has kept, and what it has changed else since it last wrote that. */
static void
RowsWrite(Call *call, Call *by, int what)
{
	ListCell   *cell;

	if (KeptChanged(call) != NIL)
		WritesBegin(by);
	foreach(cell, KeptChanged(call))
		KeptWrite(by, lfirst(cell));
	if (KeptChanged(call) != NIL)
		WritesEnd(by);
	if (what & SAVE_LOG)
		LogsWrite(call, by);
	foreach(cell, what & SAVE_PLANS ? call->plans : NIL)
	{
		PlanRow    *plan = lfirst(cell);
		PlanRow		shown = *plan;

		if (plan->touched)
			PlanWrite(by, by == call ? plan : &shown);
	}
	if (by == call && call->kept != NULL)
		KeptForget(call);
}

/*
 * Keep the rows that the call changes in memory, and write them together, if
 * nobody has added something to the tables that must see each change. The
 * first lock of a plan refuses a transaction that is read-only, or a standby.
 */
void
RowsKeep(Call *call)
{
	if (!XactReadOnly && !TableIsAltered(call, "step") && !TableIsAltered(call, "plan") && !TableIsAltered(call, "audit_log"))
		KeptBegin(call);
}

/*
 * Keep no more rows in this call if there are very many. A single search may
 * come to thousands of steps.
 */
static void
RowsLimit(Call *call)
{
	if (call->kept == NULL || (list_length(KeptChanged(call)) < KEPT_ROWS && MemoryContextMemAllocated(call->context, false) < KEPT_BYTES))
		return;
	RowsWrite(call, call, 0);
	call->kept = NULL;
}

/* Count the rows that are to be written. */
int
RowsKept(const Call *call)
{
	return list_length(KeptChanged(call)) + list_length(call->plans);
}

/*
 * Mark a plan to be written at the end of the call. A function that changes
 * anything below a plan must do this. Under REPEATABLE READ a lock alone does
 * not conflict with a concurrent change.
 */
void
PlanTouch(PlanRow *plan)
{
	plan->touched = true;
	plan->stamped = false;
}

/* ---------- where a step belongs ---------- */

/*
 * A step never changes its plan, and a plan never changes its root. So each
 * backend remembers where steps belong, which saves a query. If a step was
 * purged since, or belongs to another tenant, that is noticed when its tree is
 * locked.
 */
#define HOMES	1024

typedef struct StepHome
{
	pg_uuid_t	step_id;
	pg_uuid_t	plan_id;
	pg_uuid_t	root_id;
} StepHome;

static StepHome homes[HOMES];

/* Find the entry for a step. It is chosen by random bytes of the id. */
static StepHome *
HomeOf(const pg_uuid_t *step_id)
{
	return &homes[(step_id->data[12] << 8 | step_id->data[13]) % HOMES];
}

/* Remember where a step belongs. */
static void
HomeRemember(const StepRow *step)
{
	StepHome   *home = HomeOf(&step->id);

	home->step_id = step->id;
	home->plan_id = step->plan_id;
	home->root_id = step->root_id;
}

/* Read from a row of stepwise.step where the step belongs. */
static void *
HomeMake(TupleTableSlot *slot)
{
	StepHome   *home = palloc(sizeof(StepHome));
	Fields		f = SlotFields(slot, STEP_COLUMNS, "step");

	home->step_id = FieldUuid(&f, STEP_COL_ID);
	home->plan_id = FieldUuid(&f, STEP_COL_PLAN_ID);
	home->root_id = FieldUuid(&f, STEP_COL_ROOT_ID);
	return home;
}

/* Find where a step belongs, from memory or from its row; NULL if there is no such step. */
static const StepHome *
HomeFind(Call *call, const pg_uuid_t *step_id)
{
	const StepHome *home = HomeOf(step_id);
	Key			key;

	if (UuidEqual(&home->step_id, step_id))
		return home;
	key = PlaceKey(call, step_id);
	return TableRead("step", "step_pkey", &key, NULL, NULL, HomeMake);
}

/* Lock the root and the plan of a step; NULL if the tenant has no such tree. */
static PlanRow *
HomeLock(Call *call, const StepHome *home)
{
	PlanRow    *root = RootLock(call, &home->root_id);

	return root ? PlanInTree(call, root, &home->plan_id) : NULL;
}

/* Lock the tree and the plan of a step, and read the step; NULL if there is no such step under the lock. */
PlanRow *
PlanLockIfStep(Call *call, const pg_uuid_t *step_id, StepRow **step)
{
	const StepHome *home = step_id ? HomeFind(call, step_id) : NULL;
	PlanRow    *plan = home ? HomeLock(call, home) : NULL;

	/* read it only under the lock; before, another transaction could still change it */
	*step = plan ? StepRead(call, step_id) : NULL;
	if (*step == NULL)
		return NULL;
	HomeRemember(*step);
	return plan;
}

/* Lock the tree and the plan of a step, and read the step; SW002 if the tenant has no step of this id. */
PlanRow *
PlanLockOfStep(Call *call, const pg_uuid_t *step_id, StepRow **step)
{
	PlanRow    *plan = PlanLockIfStep(call, step_id, step);

	if (plan == NULL)
		StepNotFound(step_id);
	return plan;
}

/* ---------- steps ---------- */

/* Read the columns of a step that its definition sets, and what reviews have said. */
static void
StepReadDefinition(StepRow *step, const Fields *f)
{
	step->name = FieldText(f, STEP_COL_NAME);
	step->type = FieldText(f, STEP_COL_TYPE);
	step->tool = FieldText(f, STEP_COL_TOOL);
	step->workflow = FieldText(f, STEP_COL_WORKFLOW);
	step->version = FieldInt(f, STEP_COL_VERSION);
	step->binding = FieldText(f, STEP_COL_BINDING);
	step->prompt = FieldVarlena(f, STEP_COL_PROMPT);
	step->instructions = FieldVarlena(f, STEP_COL_INSTRUCTIONS);
	step->arguments = FieldVarlena(f, STEP_COL_ARGUMENTS);
	step->resources = FieldVarlena(f, STEP_COL_RESOURCES);
	step->condition = FieldVarlena(f, STEP_COL_CONDITION);
	step->condition_path = FieldVarlena(f, STEP_COL_CONDITION_PATH);
	step->condition_operands = FieldVarlena(f, STEP_COL_CONDITION_OPERANDS);
	step->error = FieldVarlena(f, STEP_COL_ERROR);
	step->review = FieldVarlena(f, STEP_COL_REVIEW);
	step->approved = FieldText(f, STEP_COL_APPROVED);
	step->fixed_version = FieldInt(f, STEP_COL_FIXED_VERSION);
	step->feedback = FieldVarlena(f, STEP_COL_FEEDBACK);
	step->previous = FieldVarlena(f, STEP_COL_PREVIOUS);
	step->previous_error = FieldText(f, STEP_COL_PREVIOUS_ERROR);
}

/* Make a StepRow from the columns of a row of stepwise.step. */
static StepRow *
StepFromFields(const Fields *f, ItemPointerData tid)
{
	StepRow    *step = palloc0(sizeof(StepRow));

	step->tid = tid;
	step->id = FieldUuid(f, STEP_COL_ID);
	step->plan_id = FieldUuid(f, STEP_COL_PLAN_ID);
	step->root_id = FieldUuid(f, STEP_COL_ROOT_ID);
	step->order = FieldInt(f, STEP_COL_ORDER);
	step->wave = FieldInt(f, STEP_COL_WAVE);
	step->status = FieldEnum(f, STEP_COL_STATUS, StepStatusName, STEP_STATUSES);
	step->outcome = FieldEnum(f, STEP_COL_OUTCOME, OutcomeName, OUTCOMES);
	step->attempt = FieldInt(f, STEP_COL_ATTEMPT);
	step->execution_order = FieldInt(f, STEP_COL_EXECUTION_ORDER);
	step->blockers = FieldInt(f, STEP_COL_BLOCKERS);
	step->ready_mark = FieldBool(f, STEP_COL_READY_MARK);
	step->dependents = f->nulls[STEP_COL_DEPENDENTS] ? -1 : FieldInt(f, STEP_COL_DEPENDENTS);
	step->holds = FieldBool(f, STEP_COL_HOLDS);
	step->sent_back = FieldBool(f, STEP_COL_SENT_BACK);
	step->branches = FieldBool(f, STEP_COL_BRANCHES);
	step->dynamic = FieldBool(f, STEP_COL_DYNAMIC);
	step->retryable = f->nulls[STEP_COL_RETRYABLE] ? -1 : FieldBool(f, STEP_COL_RETRYABLE);
	step->max_attempts = FieldInt(f, STEP_COL_MAX_ATTEMPTS);
	step->attempts_before = FieldInt(f, STEP_COL_ATTEMPTS_BEFORE);
	step->started_at = FieldTime(f, STEP_COL_STARTED_AT);
	step->completed_at = FieldTime(f, STEP_COL_COMPLETED_AT);
	step->active_at = FieldTime(f, STEP_COL_ACTIVE_AT);
	step->lease_expires_at = FieldTime(f, STEP_COL_LEASE_EXPIRES_AT);
	step->stall_after = FieldInterval(f, STEP_COL_STALL_AFTER);
	step->confidence = FieldVarlena(f, STEP_COL_CONFIDENCE);
	step->worker = FieldText(f, STEP_COL_WORKER);
	step->holder = FieldText(f, STEP_COL_HOLDER);
	step->message = FieldText(f, STEP_COL_MESSAGE);
	step->pause_reason = FieldVarlena(f, STEP_COL_PAUSE_REASON);
	step->inputs = FieldVarlena(f, STEP_COL_INPUTS);
	step->result = FieldVarlena(f, STEP_COL_RESULT);
	step->result_summary = FieldVarlena(f, STEP_COL_RESULT_SUMMARY);
	step->execution_report = FieldVarlena(f, STEP_COL_EXECUTION_REPORT);
	step->output_formatting_notes = FieldVarlena(f, STEP_COL_OUTPUT_FORMATTING_NOTES);
	StepReadDefinition(step, f);
	StepCounted(step);
	return step;
}

/* Make a StepRow from a row of stepwise.step. */
StepRow *
StepFromTuple(HeapTuple tuple, TupleDesc desc)
{
	Datum		values[TABLE_MAX_COLUMNS];
	bool		nulls[TABLE_MAX_COLUMNS];
	Fields		f = {values, nulls};

	CheckShape(desc, STEP_COLUMNS, "step");
	heap_deform_tuple(tuple, desc, values, nulls);
	return StepFromFields(&f, tuple->t_self);
}

/* Run a query that returns whole step rows, and return the first; NULL if there is none. */
StepRow *
StepFetch(KeptQuery *query, const Params *params)
{
	Rows		rows = QueryRun(query, params);
	StepRow    *step = NULL;

	if (rows.count > 0)
		step = RowStep(&rows, 0);
	RowsFree(&rows);
	return step;
}

/* Run a query over (tenant, id) that returns whole rows of steps, and read the first; NULL if there is none. */
StepRow *
StepFetchById(Call *call, KeptQuery *query, const pg_uuid_t *id)
{
	Params		params = {0};

	ParamKey(&params, call, id);
	return StepFetch(query, &params);
}

/* The same, for TableRead. */
static void *
StepMake(TupleTableSlot *slot)
{
	Fields		f = SlotFields(slot, STEP_COLUMNS, "step");

	return StepFromFields(&f, slot->tts_tid);
}

/* Take the kept row of a step instead of the stored one; NULL for NULL. */
static StepRow *
StepAsKept(Call *call, StepRow *stored)
{
	const KeptStep *kept = stored ? KeptFind(call, &stored->id) : NULL;

	return kept ? KeptRow(kept) : stored;
}

/* Read a step by its id; NULL if there is none. */
StepRow *
StepRead(Call *call, const pg_uuid_t *step_id)
{
	const KeptStep *kept = KeptFind(call, step_id);
	Key			key;

	if (kept != NULL)
		return KeptRow(kept);
	key = PlaceKey(call, step_id);
	return TableRead("step", "step_pkey", &key, NULL, NULL, StepMake);
}

/* Read a step by its id; SW002 if the tenant has no step of this id. */
StepRow *
StepMustRead(Call *call, const pg_uuid_t *step_id)
{
	StepRow    *step = step_id ? StepRead(call, step_id) : NULL;

	if (step == NULL)
		StepNotFound(step_id);
	return step;
}

/* Read the step of a plan that has this name or binding, as the index says; NULL if there is none. */
static StepRow *
StepReadByWord(Call *call, const char *index, const pg_uuid_t *plan_id, const char *word)
{
	Key			key = IdKey(call, plan_id);

	if (word == NULL)
		return NULL;
	KeyText(&key, CStringGetTextDatum(word));
	return StepAsKept(call, TableRead("step", index, &key, NULL, NULL, StepMake));
}

/* Read the step of a plan by its name; NULL if there is none. */
StepRow *
StepReadByName(Call *call, const pg_uuid_t *plan_id, const char *name)
{
	return StepReadByWord(call, "step_name", plan_id, name);
}

/* Read the step of a plan by its binding; NULL if there is none. */
StepRow *
StepReadByBinding(Call *call, const pg_uuid_t *plan_id, const char *binding)
{
	return StepReadByWord(call, "step_binding", plan_id, binding);
}

/*
 * The steps of a plan were inserted one after the other. So the next step is
 * often right behind the place where the last one was found, which saves a
 * search in the index. What is there is compared with the key.
 */
#define LASTS	256

typedef struct LastStep
{
	pg_uuid_t	plan_id;
	pg_uuid_t	id;
	int			order;
	ItemPointerData tid;		/* where it was found first; since then it may have got a new version */
} LastStep;

static LastStep lasts[LASTS];

/* Find the entry for a plan. It is chosen by random bytes of the id. */
static LastStep *
LastOf(const pg_uuid_t *plan_id)
{
	return &lasts[plan_id->data[13] % LASTS];
}

/* Remember where a step was found, if it is not the one that was found last. */
static void
LastRemember(const StepRow *step)
{
	LastStep   *last = LastOf(&step->plan_id);

	if (UuidEqual(&last->id, &step->id))
		return;
	last->plan_id = step->plan_id;
	last->id = step->id;
	last->order = step->order;
	last->tid = step->tid;
}

/* Find the place behind the last step of a plan; it is not valid if there is none. */
static ItemPointerData
PlaceBehindLast(const pg_uuid_t *plan_id)
{
	const LastStep *last = LastOf(plan_id);
	ItemPointerData place = {0};

	if (UuidEqual(&last->plan_id, plan_id))
		ItemPointerSet(&place, ItemPointerGetBlockNumber(&last->tid), ItemPointerGetOffsetNumber(&last->tid) + 1);
	return place;
}

/* Make the key of the step of a plan by its order, with the place where it may be. */
static Key
OrderKey(Call *call, const pg_uuid_t *plan_id, int order)
{
	static const AttrNumber columns[] = {STEP_COL_PLAN_ID + 1, STEP_COL_ORDER + 1};
	const LastStep *last = LastOf(plan_id);
	Key			key = IdKey(call, plan_id);

	KeyInt(&key, order);
	key.of_table = columns;
	if (last->order == order - 1)
		key.place = PlaceBehindLast(plan_id);
	else if (last->order == order && UuidEqual(&last->plan_id, plan_id))
		key.place = PlaceKey(call, &last->id).place;
	return key;
}

/* Read the step of a plan by its order; NULL if there is none. */
StepRow *
StepReadByOrder(Call *call, const pg_uuid_t *plan_id, int order)
{
	Key			key = OrderKey(call, plan_id, order);
	StepRow    *step = TableRead("step", "step_order_unique", &key, NULL, NULL, StepMake);

	if (step != NULL)
		LastRemember(step);
	return StepAsKept(call, step);
}

/* Read a step that depends on another one of its plan; NULL if there is none. Often it is right behind that. */
static StepRow *
StepReadDependent(Call *call, const pg_uuid_t *plan_id, const pg_uuid_t *step_id)
{
	Key			key = PlaceKey(call, step_id);
	StepRow    *step;

	/* a join was found before, and is seldom next to its parents */
	if (KeptFind(call, step_id) != NULL || ItemPointerIsValid(&key.place))
		return StepRead(call, step_id);
	key.place = PlaceBehindLast(plan_id);
	step = TableRead("step", "step_pkey", &key, NULL, NULL, StepMake);
	if (step != NULL)
		LastRemember(step);
	return step;
}

/* Read the first step of a plan, from this order on, that is in the index and passes the test. */
static StepRow *
StepReadFrom(Call *call, const char *index, const pg_uuid_t *plan_id, int order, TupleTest test, const void *arg)
{
	Key			key = IdKey(call, plan_id);

	KeyIntFrom(&key, order);
	return TableRead("step", index, &key, test, arg, StepMake);
}

/* Check that a row of stepwise.step has this status. */
static bool
HasStatus(TupleTableSlot *slot, const void *status)
{
	bool		isnull;

	return DatumGetObjectId(slot_getattr(slot, STEP_COL_STATUS + 1, &isnull)) == *(const Oid *) status;
}

/* Check that a row of stepwise.step is in one of some states. */
static bool
HasState(TupleTableSlot *slot, const void *states)
{
	bool		isnull;
	Oid			status = DatumGetObjectId(slot_getattr(slot, STEP_COL_STATUS + 1, &isnull));

	return (*(const int *) states & STATE_BIT(EnumIndex(status, StepStatusName, STEP_STATUSES))) != 0;
}

/* List the steps of a plan that an index has and that are in one of some states, in their order, at most max. */
List *
StepsInStates(Call *call, const char *index, const pg_uuid_t *plan_id, int states, int max)
{
	Key			key = IdKey(call, plan_id);

	if (call->kept != NULL)
		RowsWrite(call, call, 0);
	return TableReadSome("step", index, &key, HasState, &states, StepMake, max);
}

/*
 * List the steps in progress of a plan. There is no index of them, since it
 * would make every claim write into it. So the search goes from the next pending
 * step backwards, then forwards, until all that the plan counts are found.
 */
List *
StepsInProgress(Call *call, const PlanRow *plan)
{
	Oid			status = EnumValue("step_status", StepStatusName[STEP_IN_PROGRESS]);
	int			count = plan->counts[STEP_IN_PROGRESS];
	Key			before = IdKey(call, &plan->id);
	Key			after = before;
	List	   *steps;

	if (count == 0)
		return NIL;
	if (call->kept != NULL)
		RowsWrite(call, call, 0);
	KeyIntBelow(&before, plan->next_order);
	before.backward = true;
	steps = TableReadSome("step", "step_order_unique", &before, HasStatus, &status, StepMake, count);
	if (list_length(steps) == count)
		return steps;
	KeyIntFrom(&after, plan->next_order);
	return list_concat(steps, TableReadSome("step", "step_order_unique", &after, HasStatus, &status, StepMake,
											count - list_length(steps)));
}

/* Make a StepRow with what an answer says of a step that others hold, or that has failed; the rest of it is empty. */
static void *
BeforeMake(TupleTableSlot *slot)
{
	StepRow    *step = palloc0(sizeof(StepRow));
	Fields		f = SlotFields(slot, STEP_COLUMNS, "step");

	step->order = FieldInt(&f, STEP_COL_ORDER);
	step->status = FieldEnum(&f, STEP_COL_STATUS, StepStatusName, STEP_STATUSES);
	step->sent_back = FieldBool(&f, STEP_COL_SENT_BACK);
	step->started_at = FieldTime(&f, STEP_COL_STARTED_AT);
	step->active_at = FieldTime(&f, STEP_COL_ACTIVE_AT);
	step->stall_after = FieldInterval(&f, STEP_COL_STALL_AFTER);
	step->worker = FieldText(&f, STEP_COL_WORKER);
	step->name = FieldText(&f, STEP_COL_NAME);
	step->workflow = FieldText(&f, STEP_COL_WORKFLOW);
	return step;
}

/*
 * List the steps of a plan that an index has and that are in a state, from one
 * order up to below another, the last ones first, at most max. Only name,
 * worker, times and kind are read.
 */
List *
StepsBetween(Call *call, const char *index, const pg_uuid_t *plan_id, StepStatus state, int from, int below, int max)
{
	Oid			status = EnumValue("step_status", StepStatusName[state]);
	Key			key = IdKey(call, plan_id);

	if (max <= 0 || from >= below)
		return NIL;
	if (call->kept != NULL)
		RowsWrite(call, call, 0);
	KeyIntBetween(&key, from, below);
	key.backward = true;
	return TableReadSome("step", index, &key, HasStatus, &status, BeforeMake, max);
}

/* Check that a row of stepwise.step is not among those that the call has changed. */
static bool
IsUnchanged(TupleTableSlot *slot, const void *call)
{
	bool		isnull;
	Datum		id = slot_getattr(slot, STEP_COL_ID + 1, &isnull);
	const KeptStep *kept = KeptFind(call, DatumGetUUIDP(id));

	return kept == NULL || !kept->changed;
}

/* Check that a row of stepwise.step is pending, and not among those that the call has changed. */
static bool
IsUnchangedPending(TupleTableSlot *slot, const void *call)
{
	Oid			pending = EnumValue("step_status", StepStatusName[STEP_PENDING]);

	return HasStatus(slot, &pending) && IsUnchanged(slot, call);
}

/* Read pending steps of a plan from this order on, but those that the call has changed. */
static List *
PendingAhead(Call *call, PlanRow *plan, int from, int max)
{
	Key			key = IdKey(call, &plan->id);

	KeyIntFrom(&key, from);
	return TableReadSome("step", "step_order_unique", &key, IsUnchangedPending, call, StepMake, max);
}

static int
CompareOrders(const ListCell *a, const ListCell *b)
{
	return ((const StepRow *) lfirst(a))->order - ((const StepRow *) lfirst(b))->order;
}

/* Read listed steps of a plan from this order on, but those that the call has changed. */
static List *
ListedAhead(Call *call, const PlanRow *plan, int from, int max)
{
	List	   *rows = NIL;

	for (int order = from; list_length(rows) < max && (order = ReadyListNext(plan, order)) > 0; order++)
	{
		StepRow    *step = StepReadByOrder(call, &plan->id, order);
		const KeptStep *kept = step ? KeptFind(call, &step->id) : NULL;

		/* without the lock, the step may have moved since the plan was read */
		if (step != NULL && StepIsReady(plan, step) && (kept == NULL || !kept->changed))
			rows = lappend(rows, step);
	}
	return rows;
}

/* Read marked steps of a plan from this order on, but those that the call has changed. */
static List *
MarkedAhead(Call *call, PlanRow *plan, int from, int max)
{
	Key			key = IdKey(call, &plan->id);
	List	   *rows;

	if (!plan->ready_marks)
		return NIL;
	KeyIntFrom(&key, from);
	rows = TableReadSome("step", "step_ready", &key, IsUnchanged, call, StepMake, max);
	/* there are no more of them, so the next search need not look */
	if (rows == NIL && from == 1 && !KeptMarks(call))
		plan->ready_marks = false;
	return rows;
}

/* Read ready steps of a plan from this order on, but those that the call has changed. */
static List *
ReadyAhead(Call *call, PlanRow *plan, int from, int max)
{
	List	   *listed = ListedAhead(call, plan, from, max);
	List	   *marked = MarkedAhead(call, plan, from, max);
	List	   *rows = list_concat(listed, marked);

	if (marked != NIL)
		list_sort(rows, CompareOrders);
	return list_truncate(rows, max);
}

/*
 * Read the first pending step of a plan from this order on; NULL if there is
 * none. Usually it is the step of that order, so look there first: a scan would
 * read a whole page of the index.
 */
StepRow *
StepNextPending(Call *call, const PlanRow *plan, int from_order)
{
	Oid			pending = EnumValue("step_status", StepStatusName[STEP_PENDING]);
	StepRow    *step;

	RowsLimit(call);
	if (call->kept != NULL)
		return KeptNext(call, unconstify(PlanRow *, plan), from_order, from_order, PendingAhead);
	step = StepReadByOrder(call, &plan->id, from_order);
	if (step != NULL && step->status == STEP_PENDING)
		return step;
	return StepReadFrom(call, "step_order_unique", &plan->id, from_order + 1, HasStatus, &pending);
}

/* Read the first ready step of a plan from this order on; NULL if there is none. */
StepRow *
StepNextReady(Call *call, PlanRow *plan, int from_order)
{
	List	   *rows;

	RowsLimit(call);
	if (call->kept != NULL)
		return KeptNext(call, plan, from_order, plan->ready_marks ? from_order : ReadyListNext(plan, from_order), ReadyAhead);
	rows = ReadyAhead(call, plan, from_order, 1);
	return rows ? linitial(rows) : NULL;
}

/* Refuse a row that does not fit its constraint, since TableUpdate does not check it. */
static void
CheckStepFits(const StepRow *step)
{
	if ((step->status == STEP_COMPLETED) != (step->outcome != OUTCOME_NA))
		elog(ERROR, "step %s does not fit its constraint", UuidText(&step->id));
}

/* Write a step; "unblocked": its blockers too. */
static void
StepWrite(Call *call, StepRow *step, bool unblocked)
{
	Changes		c = {0};

	if (unblocked)
		SetInt(&c, STEP_COL_BLOCKERS, step->blockers);
	SetEnum(&c, STEP_COL_STATUS, "step_status", StepStatusName[step->status]);
	SetEnum(&c, STEP_COL_OUTCOME, "outcome", OutcomeName[step->outcome]);
	SetInt(&c, STEP_COL_ATTEMPT, step->attempt);
	SetPositive(&c, STEP_COL_EXECUTION_ORDER, step->execution_order);
	if (step->sets_mark)
		SetTrue(&c, STEP_COL_READY_MARK, step->ready_mark);
	SetTrue(&c, STEP_COL_HOLDS, step->holds);
	SetTrue(&c, STEP_COL_SENT_BACK, step->sent_back);
	SetPositive(&c, STEP_COL_MAX_ATTEMPTS, step->max_attempts);
	SetPositive(&c, STEP_COL_ATTEMPTS_BEFORE, step->attempts_before);
	SetDatum(&c, STEP_COL_RETRYABLE, BoolGetDatum(step->retryable == 1), step->retryable < 0);
	SetTime(&c, STEP_COL_STARTED_AT, step->started_at);
	SetTime(&c, STEP_COL_COMPLETED_AT, step->completed_at);
	SetTime(&c, STEP_COL_ACTIVE_AT, step->active_at);
	SetTime(&c, STEP_COL_LEASE_EXPIRES_AT, step->lease_expires_at);
	SetVarlena(&c, STEP_COL_CONFIDENCE, step->confidence);
	SetText(&c, STEP_COL_WORKER, step->worker);
	SetText(&c, STEP_COL_HOLDER, step->holder);
	SetText(&c, STEP_COL_MESSAGE, step->message);
	SetVarlena(&c, STEP_COL_PAUSE_REASON, step->pause_reason);
	SetVarlena(&c, STEP_COL_INPUTS, step->inputs);
	SetVarlena(&c, STEP_COL_RESULT, step->result);
	SetVarlena(&c, STEP_COL_RESULT_SUMMARY, step->result_summary);
	SetVarlena(&c, STEP_COL_EXECUTION_REPORT, step->execution_report);
	SetVarlena(&c, STEP_COL_OUTPUT_FORMATTING_NOTES, step->output_formatting_notes);
	SetVarlena(&c, STEP_COL_ERROR, step->error);
	SetText(&c, STEP_COL_APPROVED, step->approved);
	SetPositive(&c, STEP_COL_FIXED_VERSION, step->fixed_version);
	SetVarlena(&c, STEP_COL_FEEDBACK, step->feedback);
	SetVarlena(&c, STEP_COL_PREVIOUS, step->previous);
	SetText(&c, STEP_COL_PREVIOUS_ERROR, step->previous_error);
	RowWrite(call, "step", "step_pkey", &step->id, &step->tid, &c);
}

/* Write a row that the call has kept. The row itself stays as it is, because the write may be rolled back. */
static void
KeptWrite(Call *call, const KeptStep *kept)
{
	StepRow		shown = *kept->row;

	StepWrite(call, &shown, kept->unblocked);
}

/* Write a step, or keep it to be written. */
void
StepSave(Call *call, StepRow *step)
{
	CheckStepFits(step);
	HomeRemember(step);
	RowsLimit(call);
	if (call->kept != NULL)
		KeptChange(call, step);
	else
		StepWrite(call, step, false);
	step->sets_mark = false;
}

/* Make a DetailRow from a row of stepwise.plan_detail. */
static void *
DetailMake(TupleTableSlot *slot)
{
	DetailRow  *detail = palloc0(sizeof(DetailRow));
	Fields		f = SlotFields(slot, DETAIL_COLUMNS, "plan_detail");

	detail->outputs = FieldVarlena(&f, DETAIL_COL_OUTPUTS);
	detail->variables = FieldVarlena(&f, DETAIL_COL_VARIABLES);
	detail->description = FieldVarlena(&f, DETAIL_COL_DESCRIPTION);
	detail->design_rationale = FieldVarlena(&f, DETAIL_COL_DESIGN_RATIONALE);
	detail->output_formatting_notes = FieldVarlena(&f, DETAIL_COL_OUTPUT_FORMATTING_NOTES);
	detail->request_digest = FieldVarlena(&f, DETAIL_COL_REQUEST_DIGEST);
	detail->final_output = FieldVarlena(&f, DETAIL_COL_FINAL_OUTPUT);
	detail->final_media_type = FieldVarlena(&f, DETAIL_COL_FINAL_MEDIA_TYPE);
	return detail;
}

/* Make the DetailRow of a plan that has no row of stepwise.plan_detail. */
static DetailRow *
DetailDefault(void)
{
	DetailRow  *detail = palloc0(sizeof(DetailRow));

	detail->outputs = detail->variables = (struct varlena *) JsonEmptyObject();
	return detail;
}

/* Check whether a plan has a row of stepwise.plan_detail. */
bool
PlanHasDetail(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);

	return TableRead("plan_detail", "plan_detail_pkey", &key, NULL, NULL, DetailMake) != NULL;
}

/* Read the columns of a plan that are seldom used. */
DetailRow *
PlanDetailRead(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);
	DetailRow  *detail = TableRead("plan_detail", "plan_detail_pkey", &key, NULL, NULL, DetailMake);

	return detail ? detail : DetailDefault();
}

/*
 * The same, but they are read once: nobody else can change them while the call
 * has the lock of the tree, or reads under one snapshot.
 */
const DetailRow *
PlanDetailOf(Call *call, PlanRow *plan)
{
	MemoryContext current = MemoryContextSwitchTo(call->context);

	if (plan->detail == NULL)
		plan->detail = PlanDetailRead(call, &plan->id);
	MemoryContextSwitchTo(current);
	return plan->detail;
}

/* Read these columns again when they are next used, because the call changes them. */
void
PlanDetailForget(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow    *plan = PlanLocked(call, plan_id);

	if (plan != NULL)
		plan->detail = NULL;
}

/* Make a FormattingNote from a row of stepwise.step with notes. */
static void *
NoteMake(TupleTableSlot *slot)
{
	FormattingNote *note = palloc(sizeof(FormattingNote));

	note->order = ColumnInt(slot, STEP_COL_ORDER);
	note->name = ColumnText(slot, STEP_COL_NAME);
	note->notes = ColumnField(slot, STEP_COL_OUTPUT_FORMATTING_NOTES);
	return note;
}

/* List the formatting notes of the steps of a plan, in the order of the steps. */
List *
FormattingNotes(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);

	if (call->kept != NULL)
		RowsWrite(call, call, 0);
	return TableReadAll("step", "step_notes", &key, NoteMake);
}

/* Make a StepState from a row of stepwise.step. */
static void *
StateMake(TupleTableSlot *slot)
{
	StepState  *state = palloc(sizeof(StepState));

	state->name = ColumnText(slot, STEP_COL_NAME);
	state->status = EnumIndex(DatumGetObjectId(ColumnDatum(slot, STEP_COL_STATUS)), StepStatusName, STEP_STATUSES);
	return state;
}

/* List the states of the steps of a plan, in the order of the steps. */
List *
StepStates(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);

	return TableReadAll("step", "step_order_unique", &key, StateMake);
}

/* Read the metadata from a row of stepwise.skill_execution. */
static void *
MetadataMake(TupleTableSlot *slot)
{
	return ColumnJson(slot, SKILL_COL_METADATA);
}

/* Read the metadata of the newest skill execution of a plan; NULL if there is none. */
Jsonb *
SkillMetadata(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);
	List	   *all = TableReadAll("skill_execution", "skill_execution_plan", &key, MetadataMake);

	return all ? llast(all) : NULL;
}

/* Check whether skill executions of a session are recorded. */
bool
SessionHasSkill(Call *call, const char *session)
{
	Key			key = {.call = call};

	KeyText(&key, call->tenant_datum);
	KeyText(&key, CStringGetTextDatum(session));
	return TableRead("skill_execution", "skill_execution_session", &key, NULL, NULL, MetadataMake) != NULL;
}

/* Make a Dependent from a row of stepwise.dependency. */
static void *
DependentMake(TupleTableSlot *slot)
{
	Dependent  *dependent = palloc(sizeof(Dependent));
	bool		isnull;

	dependent->step_id = *DatumGetUUIDP(slot_getattr(slot, DEPENDENCY_COL_STEP_ID + 1, &isnull));
	if (DatumGetBool(slot_getattr(slot, DEPENDENCY_COL_ENDED + 1, &isnull)))
		dependent->need = NEED_END;
	else
		dependent->need = DatumGetBool(slot_getattr(slot, DEPENDENCY_COL_REQUIRED + 1, &isnull)) ?
			NEED_SUCCESS : NEED_NO_FAILURE;
	dependent->tid = slot->tts_tid;
	return dependent;
}

/*
 * The dependencies of a plan were inserted in the order of the steps that have
 * them. So that of the next step is often right behind the one that was found
 * last, as with steps.
 */
typedef struct LastLink
{
	pg_uuid_t	plan_id;
	ItemPointerData tid;
} LastLink;

static LastLink last_links[LASTS];

/* Read the only dependent of a step. What is in the place where it may be is compared with the key. */
static List *
OnlyDependent(Call *call, const StepRow *step)
{
	static const AttrNumber columns[] = {DEPENDENCY_COL_DEPENDS_ON + 1};
	LastLink   *last = &last_links[step->plan_id.data[13] % LASTS];
	Key			key = IdKey(call, &step->id);
	Dependent  *dependent;

	key.of_table = columns;
	if (UuidEqual(&last->plan_id, &step->plan_id))
		ItemPointerSet(&key.place, ItemPointerGetBlockNumber(&last->tid), ItemPointerGetOffsetNumber(&last->tid) + 1);
	dependent = TableRead("dependency", "dependency_of", &key, NULL, NULL, DependentMake);
	if (dependent == NULL)
		return NIL;
	last->plan_id = step->plan_id;
	last->tid = dependent->tid;
	return list_make1(dependent);
}

/* List the steps that depend on a step, as the index has them. */
List *
DependentsOf(Call *call, const pg_uuid_t *step_id)
{
	Key			key = IdKey(call, step_id);

	return TableReadAll("dependency", "dependency_of", &key, DependentMake);
}

/* List the steps that depend on a step. Its plan says whether the step has counted them. */
List *
StepDependents(Call *call, const PlanRow *plan, const StepRow *step)
{
	int			count = plan->relinked ? -1 : step->dependents;

	if (count == 0 || plan->sequential)
		return NIL;
	if (count == 1)
		return OnlyDependent(call, step);
	return DependentsOf(call, &step->id);
}

/* Write that a step has one blocker less, or keep it to be written. */
static void
UnblockedSave(Call *call, StepRow *step)
{
	Changes		c = {0};
	KeptStep   *kept;

	RowsLimit(call);
	if (call->kept != NULL)
	{
		kept = KeptChange(call, step);
		kept->row->blockers = step->blockers;
		kept->unblocked = true;
		return;
	}
	SetInt(&c, STEP_COL_BLOCKERS, step->blockers);
	if (step->sets_mark)
		SetTrue(&c, STEP_COL_READY_MARK, step->ready_mark);
	RowWrite(call, "step", "step_pkey", &step->id, &step->tid, &c);
}

/* Count one blocker less for a step. A pending step without blockers is ready. */
void
StepUnblock(Call *call, PlanRow *plan, const pg_uuid_t *step_id)
{
	StepRow    *step = StepReadDependent(call, &plan->id, step_id);

	if (step == NULL)
		return;
	step->blockers--;
	if (StepIsReady(plan, step))
		step->ready_mark = step->sets_mark = !ReadyListAdd(plan, step->order);
	UnblockedSave(call, step);
}

/* Change the instructions of a step, in its row and in the table. */
void
StepInstruct(Call *call, StepRow *step, const char *instructions)
{
	static KeptQuery save = {
		"UPDATE stepwise.step SET instructions = $3 WHERE tenant = $1 AND id = $2",
		3, {TEXTOID, UUIDOID, TEXTOID}
	};
	Params		params = {0};

	step->instructions = (struct varlena *) cstring_to_text(instructions);
	ParamKey(&params, call, &step->id);
	ParamVarlena(&params, step->instructions);
	QueryRun(&save, &params);
}

/* Make a StepRow from the row of a query that returns whole step rows. */
StepRow *
RowStep(const Rows *rows, uint64 row)
{
	return StepFromTuple(RowTuple(rows, row), rows->table->tupdesc);
}
