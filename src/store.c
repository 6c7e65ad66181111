/*
 * store.c
 *	  rows of plans and steps; the only access of the engine to them
 *
 * Locks: the root plan of the tree first, then the plan, FOR NO KEY UPDATE,
 * then the steps. Every function that changes something begins with one of
 * the PlanLock functions and ends with PlanSave: a lock alone would lose a
 * completion under REPEATABLE READ.
 *
 * A call has one Plan per plan, found again in call->plans; a Step is what
 * was read, and is saved whole.
 */
#include "stepwise.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "utils/memutils.h"

/* columns of stepwise.plan, in the order of its definition */
enum
{
	PLAN_COL_TENANT, PLAN_COL_ID, PLAN_COL_ROOT_ID, PLAN_COL_PARENT_STEP_ID, PLAN_COL_STATUS, PLAN_COL_OUTCOME,
	PLAN_COL_ON_FAILURE, PLAN_COL_SEQUENTIAL, PLAN_COL_SEPARATE_REVIEWER, PLAN_COL_LEASES, PLAN_COL_NESTS, PLAN_COL_WORKABLE,
	PLAN_COL_DEPTH, PLAN_COL_COUNTS, PLAN_COL_UNSUCCESSFUL = PLAN_COL_COUNTS + STEP_STATUSES, PLAN_COL_PAUSED,
	PLAN_COL_STARTED_STEPS, PLAN_COL_NEXT_ORDER, PLAN_COL_AUDIT_ENTRIES, PLAN_COL_CREATED_AT, PLAN_COL_STARTED_AT,
	PLAN_COL_COMPLETED_AT, PLAN_COL_UPDATED_AT, PLAN_COL_STALL_AFTER, PLAN_COL_AUDIT_HEAD, PLAN_COL_SESSION_ID,
	PLAN_COL_MESSAGE, PLAN_COL_PAUSE_REASON, PLAN_COL_OUTPUTS, PLAN_COL_NAME, PLAN_COL_GOAL, PLAN_COL_WORKFLOW,
	PLAN_COL_VERSION, PLAN_COL_IDEMPOTENCY_KEY, PLAN_COL_INPUTS,
	PLAN_COLUMNS
};

/* columns of stepwise.step, likewise */
enum
{
	STEP_COL_TENANT, STEP_COL_ID, STEP_COL_PLAN_ID, STEP_COL_ROOT_ID, STEP_COL_ORDER, STEP_COL_WAVE, STEP_COL_STATUS,
	STEP_COL_OUTCOME, STEP_COL_ATTEMPT, STEP_COL_EXECUTION_ORDER, STEP_COL_BLOCKERS, STEP_COL_READY, STEP_COL_BRANCHES,
	STEP_COL_DYNAMIC, STEP_COL_RETRYABLE, STEP_COL_MAX_ATTEMPTS, STEP_COL_STARTED_AT, STEP_COL_COMPLETED_AT,
	STEP_COL_ACTIVE_AT, STEP_COL_LEASE_EXPIRES_AT, STEP_COL_STALL_AFTER, STEP_COL_CONFIDENCE, STEP_COL_WORKER,
	STEP_COL_HOLDER, STEP_COL_MESSAGE, STEP_COL_PAUSE_REASON, STEP_COL_INPUTS, STEP_COL_RESULT,
	STEP_COL_RESULT_SUMMARY, STEP_COL_EXECUTION_REPORT, STEP_COL_OUTPUT_FORMATTING_NOTES, STEP_COL_NAME, STEP_COL_TYPE,
	STEP_COL_TOOL, STEP_COL_WORKFLOW, STEP_COL_VERSION, STEP_COL_BINDING, STEP_COL_PROMPT, STEP_COL_INSTRUCTIONS,
	STEP_COL_ARGUMENTS, STEP_COL_RESOURCES, STEP_COL_CONDITION, STEP_COL_CONDITION_PATH, STEP_COL_CONDITION_OPERANDS,
	STEP_COLUMNS
};

/* Room for the wider of the two, and for columns that a later version adds. */
#define MOST_COLUMNS	64

/* a row taken apart */
typedef struct Fields
{
	Datum		values[MOST_COLUMNS];
	bool		nulls[MOST_COLUMNS];
} Fields;

/* ---------- fields ---------- */

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
	return f->nulls[column] ? 0 : DatumGetTimestampTz(f->values[column]);
}

static char *
FieldText(const Fields *f, int column)
{
	return f->nulls[column] ? NULL : TextDatumGetCString(f->values[column]);
}

/* Copy a variable-length value as it is stored: a toasted one is fetched only when it is used. */
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

/* A row of another shape than this library was built for must not be read. */
static void
CheckShape(TupleDesc desc, int columns, const char *table)
{
	if (desc->natts < columns || desc->natts > MOST_COLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table stepwise.%s does not fit the loaded library", table),
				 errhint("Run ALTER EXTENSION pg_stepwise UPDATE.")));
}

/* ---------- plans ---------- */

static PlanRow *
PlanFromTuple(HeapTuple tuple, TupleDesc desc)
{
	PlanRow	   *plan = palloc0(sizeof(PlanRow));
	Fields		f;

	CheckShape(desc, PLAN_COLUMNS, "plan");
	heap_deform_tuple(tuple, desc, f.values, f.nulls);
	plan->id = FieldUuid(&f, PLAN_COL_ID);
	plan->root_id = FieldUuid(&f, PLAN_COL_ROOT_ID);
	plan->nested = !f.nulls[PLAN_COL_PARENT_STEP_ID];
	plan->parent_step_id = FieldUuid(&f, PLAN_COL_PARENT_STEP_ID);
	plan->status = FieldEnum(&f, PLAN_COL_STATUS, PlanStatusName, PLAN_STATUSES);
	plan->outcome = FieldEnum(&f, PLAN_COL_OUTCOME, OutcomeName, OUTCOMES);
	plan->on_failure = FieldEnum(&f, PLAN_COL_ON_FAILURE, OnFailureName, ON_FAILURES);
	plan->sequential = FieldBool(&f, PLAN_COL_SEQUENTIAL);
	plan->separate_reviewer = FieldBool(&f, PLAN_COL_SEPARATE_REVIEWER);
	plan->leases = FieldBool(&f, PLAN_COL_LEASES);
	plan->nests = FieldBool(&f, PLAN_COL_NESTS);
	plan->workable = FieldBool(&f, PLAN_COL_WORKABLE);
	plan->depth = FieldInt(&f, PLAN_COL_DEPTH);
	for (int i = 0; i < STEP_STATUSES; i++)
		plan->counts[i] = FieldInt(&f, PLAN_COL_COUNTS + i);
	plan->unsuccessful = FieldInt(&f, PLAN_COL_UNSUCCESSFUL);
	plan->paused = FieldInt(&f, PLAN_COL_PAUSED);
	plan->started_steps = FieldInt(&f, PLAN_COL_STARTED_STEPS);
	plan->next_order = FieldInt(&f, PLAN_COL_NEXT_ORDER);
	plan->audit_entries = FieldInt(&f, PLAN_COL_AUDIT_ENTRIES);
	plan->created_at = FieldTime(&f, PLAN_COL_CREATED_AT);
	plan->started_at = FieldTime(&f, PLAN_COL_STARTED_AT);
	plan->completed_at = FieldTime(&f, PLAN_COL_COMPLETED_AT);
	plan->updated_at = FieldTime(&f, PLAN_COL_UPDATED_AT);
	plan->stall_after = FieldInterval(&f, PLAN_COL_STALL_AFTER);
	if (!f.nulls[PLAN_COL_AUDIT_HEAD] && VARSIZE_ANY_EXHDR(DatumGetPointer(f.values[PLAN_COL_AUDIT_HEAD])) == sizeof(plan->audit_head))
		memcpy(plan->audit_head, VARDATA_ANY(DatumGetPointer(f.values[PLAN_COL_AUDIT_HEAD])), sizeof(plan->audit_head));
	plan->session_id = FieldText(&f, PLAN_COL_SESSION_ID);
	plan->message = FieldText(&f, PLAN_COL_MESSAGE);
	plan->pause_reason = FieldVarlena(&f, PLAN_COL_PAUSE_REASON);
	plan->outputs = FieldVarlena(&f, PLAN_COL_OUTPUTS);
	plan->inputs = FieldVarlena(&f, PLAN_COL_INPUTS);
	plan->name = FieldText(&f, PLAN_COL_NAME);
	plan->goal = FieldText(&f, PLAN_COL_GOAL);
	plan->workflow = FieldText(&f, PLAN_COL_WORKFLOW);
	plan->version = FieldInt(&f, PLAN_COL_VERSION);
	return plan;
}

/* Run a query over (tenant, plan id) that returns whole plan rows; NULL if there is none. */
static PlanRow *
PlanFetch(Call *call, KeptQuery *query, const pg_uuid_t *plan_id)
{
	Args		args = {0};
	PlanRow	   *plan = NULL;
	Rows		rows;

	ArgTenant(&args, call);
	ArgUuid(&args, plan_id);
	rows = QueryRun(query, &args);
	if (rows.count > 0)
		plan = PlanFromTuple(rows.table->vals[0], rows.table->tupdesc);
	RowsFree(&rows);
	return plan;
}

static PlanRow *
PlanLocked(const Call *call, const pg_uuid_t *plan_id)
{
	ListCell   *cell;

	foreach(cell, call->plans)
	{
		PlanRow	   *plan = lfirst(cell);

		if (UuidEqual(&plan->id, plan_id))
			return plan;
	}
	return NULL;
}

static PlanRow *
PlanKeep(Call *call, PlanRow *plan, PlanRow *root)
{
	plan->root = root ? root : plan;
	call->plans = lappend(call->plans, plan);
	return plan;
}

/* Lock a plan that is the root of its tree; NULL if it is nested or unknown. */
static PlanRow *
RootLock(Call *call, const pg_uuid_t *plan_id)
{
	static KeptQuery lock = {
		"SELECT p.* FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2 AND p.root_id = $2 FOR NO KEY UPDATE",
		2, {TEXTOID, UUIDOID}
	};
	PlanRow	   *plan = PlanLocked(call, plan_id);

	if (plan != NULL)
		return plan;
	plan = PlanFetch(call, &lock, plan_id);
	return plan ? PlanKeep(call, plan, NULL) : NULL;
}

void
PlanNotFound(const pg_uuid_t *plan_id)
{
	ereport(ERROR,
			(errcode(ERRCODE_PLAN_NOT_FOUND),
			 errmsg("plan \"%s\" not found", plan_id ? UuidText(plan_id) : ""),
			 errhint("stepwise.list_active_plans() lists the plans of your tenant.")));
}

void
StepNotFound(const pg_uuid_t *step_id)
{
	ereport(ERROR,
			(errcode(ERRCODE_STEP_NOT_FOUND),
			 errmsg("step \"%s\" not found", step_id ? UuidText(step_id) : ""),
			 errhint("stepwise.get_plan_context(plan_id) lists the steps of a plan.")));
}

PlanRow *
PlanRead(Call *call, const pg_uuid_t *plan_id)
{
	static KeptQuery read = {
		"SELECT p.* FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2",
		2, {TEXTOID, UUIDOID}
	};
	PlanRow	   *plan;

	if (plan_id == NULL)
		return NULL;
	plan = PlanLocked(call, plan_id);
	return plan ? plan : PlanFetch(call, &read, plan_id);
}

/* Read a plan without locking it; SW001 when the tenant has none of that id. */
PlanRow *
PlanMustRead(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow	   *plan = PlanRead(call, plan_id);

	if (plan == NULL)
		PlanNotFound(plan_id);
	return plan;
}

PlanRow *
PlanInTree(Call *call, PlanRow *root, const pg_uuid_t *plan_id)
{
	static KeptQuery lock = {
		"SELECT p.* FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2 FOR NO KEY UPDATE",
		2, {TEXTOID, UUIDOID}
	};
	PlanRow	   *plan = PlanLocked(call, plan_id);

	if (plan != NULL)
		return plan;
	plan = PlanFetch(call, &lock, plan_id);
	if (plan == NULL)
		PlanNotFound(plan_id);
	return PlanKeep(call, plan, root);
}

/* Lock the tree of a nested plan, its root first. */
static PlanRow *
NestedLock(Call *call, const pg_uuid_t *plan_id, const pg_uuid_t *root_id)
{
	PlanRow	   *root = RootLock(call, root_id);

	if (root == NULL)
		PlanNotFound(plan_id);
	return PlanInTree(call, root, plan_id);
}

PlanRow *
PlanLock(Call *call, const pg_uuid_t *plan_id)
{
	PlanRow	   *plan;

	if (plan_id == NULL)
		PlanNotFound(plan_id);
	/* most plans are their own root: one query instead of two */
	plan = RootLock(call, plan_id);
	if (plan != NULL)
		return plan;
	plan = PlanRead(call, plan_id);
	if (plan == NULL)
		PlanNotFound(plan_id);
	return NestedLock(call, plan_id, &plan->root_id);
}

/* Lock the tree if nobody else has it; NULL: somebody has, or *found is false. */
PlanRow *
PlanLockIfFree(Call *call, const pg_uuid_t *plan_id, bool *found)
{
	static KeptQuery lock = {
		"SELECT p.* FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2 FOR NO KEY UPDATE SKIP LOCKED",
		2, {TEXTOID, UUIDOID}
	};
	PlanRow	   *plan = PlanRead(call, plan_id);
	PlanRow	   *root;

	*found = plan != NULL;
	if (plan == NULL)
		return NULL;
	root = PlanFetch(call, &lock, &plan->root_id);
	if (root == NULL)
		return NULL;
	PlanKeep(call, root, NULL);
	return PlanInTree(call, root, plan_id);
}

void
PlanSave(Call *call, PlanRow *plan)
{
	static KeptQuery save = {
		"UPDATE stepwise.plan SET status = $3::stepwise.plan_status, outcome = $4::stepwise.outcome,"
		" leases = $5, workable = $6, pending = $7, in_progress = $8, awaiting_input = $9, completed = $10,"
		" failed = $11, skipped = $12, unsuccessful = $13, paused = $14, started_steps = $15, next_order = $16,"
		" audit_entries = $17, started_at = $18, completed_at = $19, updated_at = $20, audit_head = $21,"
		" session_id = $22, message = $23, pause_reason = $24, outputs = $25, nests = $26"
		" WHERE tenant = $1 AND id = $2",
		26, {TEXTOID, UUIDOID, TEXTOID, TEXTOID, BOOLOID, BOOLOID, INT4OID, INT4OID, INT4OID, INT4OID, INT4OID, INT4OID,
		INT4OID, INT4OID, INT4OID, INT4OID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, BYTEAOID, TEXTOID,
		TEXTOID, JSONBOID, JSONBOID, BOOLOID}
	};
	Args		args = {0};
	Rows		rows;

	plan->touched = call->deferred;
	if (call->deferred)
		return;
	plan->updated_at = GetCurrentTimestamp();
	ArgTenant(&args, call);
	ArgUuid(&args, &plan->id);
	ArgText(&args, PlanStatusName[plan->status]);
	ArgText(&args, OutcomeName[plan->outcome]);
	ArgBool(&args, plan->leases);
	if (plan->nested && plan->workable)
		ArgBool(&args, true);
	else
		ArgNull(&args);
	for (int i = 0; i < STEP_STATUSES; i++)
		ArgInt(&args, plan->counts[i]);
	ArgInt(&args, plan->unsuccessful);
	ArgInt(&args, plan->paused);
	ArgInt(&args, plan->started_steps);
	ArgInt(&args, plan->next_order);
	ArgInt(&args, plan->audit_entries);
	ArgTime(&args, plan->started_at);
	ArgTime(&args, plan->completed_at);
	ArgTime(&args, plan->updated_at);
	ArgDatum(&args, PointerGetDatum(cstring_to_text_with_len((char *) plan->audit_head, sizeof(plan->audit_head))));
	ArgText(&args, plan->session_id);
	ArgText(&args, plan->message);
	ArgVarlena(&args, plan->pause_reason);
	ArgVarlena(&args, plan->outputs);
	ArgBool(&args, plan->nests);
	rows = QueryRun(&save, &args);
	if (rows.count != 1)
		elog(ERROR, "plan %s could not be saved", UuidText(&plan->id));
}

/* Save what was deferred; from here on every save is at once again. */
void
PlansSave(Call *call)
{
	ListCell   *cell;

	if (!call->deferred)
		return;
	call->deferred = false;
	foreach(cell, call->plans)
	{
		PlanRow    *plan = lfirst(cell);

		if (plan->touched)
			PlanSave(call, plan);
	}
}

/* ---------- where a step belongs ---------- */

/*
 * A step never changes its plan, nor a plan its root: so what a backend has
 * seen once saves it a query later. A wrong tenant, or a step that was purged,
 * shows when the step itself is read.
 */
#define PLACES	1024

typedef struct Place
{
	pg_uuid_t	step_id;
	pg_uuid_t	plan_id;
	pg_uuid_t	root_id;
} Place;

static Place places[PLACES];

/* The last bytes of our ids are random. */
static Place *
PlaceOf(const pg_uuid_t *step_id)
{
	return &places[(step_id->data[14] << 8 | step_id->data[15]) % PLACES];
}

static void
PlaceRemember(const StepRow *step)
{
	Place	   *place = PlaceOf(&step->id);

	place->step_id = step->id;
	place->plan_id = step->plan_id;
	place->root_id = step->root_id;
}

/* Find where a step belongs: from memory, or from its row. */
static Place
PlaceFind(Call *call, const pg_uuid_t *step_id)
{
	static KeptQuery find = {
		"SELECT s.plan_id, s.root_id FROM stepwise.step AS s WHERE s.tenant = $1 AND s.id = $2",
		2, {TEXTOID, UUIDOID}
	};
	Place		place = *PlaceOf(step_id);
	Args		args = {0};
	Rows		rows;

	if (UuidEqual(&place.step_id, step_id))
		return place;
	ArgTenant(&args, call);
	ArgUuid(&args, step_id);
	rows = QueryRun(&find, &args);
	if (rows.count == 0)
		StepNotFound(step_id);
	place.plan_id = RowUuid(&rows, 0, 1);
	place.root_id = RowUuid(&rows, 0, 2);
	RowsFree(&rows);
	return place;
}

/* Lock root and plan; NULL if there is no such tree in this tenant. */
static PlanRow *
PlaceLock(Call *call, const Place *place)
{
	PlanRow    *root = RootLock(call, &place->root_id);

	return root ? PlanInTree(call, root, &place->plan_id) : NULL;
}

PlanRow *
PlanLockOfStep(Call *call, const pg_uuid_t *step_id, StepRow **step)
{
	Place		place;
	PlanRow    *plan;

	if (step_id == NULL)
		StepNotFound(step_id);
	place = PlaceFind(call, step_id);
	plan = PlaceLock(call, &place);
	/* read only now: before the lock it may have been another state */
	*step = plan ? StepRead(call, step_id) : NULL;
	if (*step == NULL)
		StepNotFound(step_id);
	PlaceRemember(*step);
	return plan;
}

/* ---------- steps ---------- */

StepRow *
StepFromTuple(HeapTuple tuple, TupleDesc desc)
{
	StepRow	   *step = palloc0(sizeof(StepRow));
	Fields		f;

	CheckShape(desc, STEP_COLUMNS, "step");
	heap_deform_tuple(tuple, desc, f.values, f.nulls);
	step->id = FieldUuid(&f, STEP_COL_ID);
	step->plan_id = FieldUuid(&f, STEP_COL_PLAN_ID);
	step->root_id = FieldUuid(&f, STEP_COL_ROOT_ID);
	step->order = FieldInt(&f, STEP_COL_ORDER);
	step->wave = FieldInt(&f, STEP_COL_WAVE);
	step->status = FieldEnum(&f, STEP_COL_STATUS, StepStatusName, STEP_STATUSES);
	step->outcome = FieldEnum(&f, STEP_COL_OUTCOME, OutcomeName, OUTCOMES);
	step->attempt = FieldInt(&f, STEP_COL_ATTEMPT);
	step->execution_order = FieldInt(&f, STEP_COL_EXECUTION_ORDER);
	step->blockers = FieldInt(&f, STEP_COL_BLOCKERS);
	step->ready = FieldBool(&f, STEP_COL_READY);
	step->branches = FieldBool(&f, STEP_COL_BRANCHES);
	step->dynamic = FieldBool(&f, STEP_COL_DYNAMIC);
	step->retryable = f.nulls[STEP_COL_RETRYABLE] ? -1 : FieldBool(&f, STEP_COL_RETRYABLE);
	step->max_attempts = FieldInt(&f, STEP_COL_MAX_ATTEMPTS);
	step->started_at = FieldTime(&f, STEP_COL_STARTED_AT);
	step->completed_at = FieldTime(&f, STEP_COL_COMPLETED_AT);
	step->active_at = FieldTime(&f, STEP_COL_ACTIVE_AT);
	step->lease_expires_at = FieldTime(&f, STEP_COL_LEASE_EXPIRES_AT);
	step->stall_after = FieldInterval(&f, STEP_COL_STALL_AFTER);
	step->confidence = FieldVarlena(&f, STEP_COL_CONFIDENCE);
	step->worker = FieldText(&f, STEP_COL_WORKER);
	step->holder = FieldText(&f, STEP_COL_HOLDER);
	step->message = FieldText(&f, STEP_COL_MESSAGE);
	step->pause_reason = FieldVarlena(&f, STEP_COL_PAUSE_REASON);
	step->inputs = FieldVarlena(&f, STEP_COL_INPUTS);
	step->result = FieldVarlena(&f, STEP_COL_RESULT);
	step->result_summary = FieldVarlena(&f, STEP_COL_RESULT_SUMMARY);
	step->execution_report = FieldVarlena(&f, STEP_COL_EXECUTION_REPORT);
	step->output_formatting_notes = FieldVarlena(&f, STEP_COL_OUTPUT_FORMATTING_NOTES);
	step->name = FieldText(&f, STEP_COL_NAME);
	step->type = FieldText(&f, STEP_COL_TYPE);
	step->tool = FieldText(&f, STEP_COL_TOOL);
	step->workflow = FieldText(&f, STEP_COL_WORKFLOW);
	step->version = FieldInt(&f, STEP_COL_VERSION);
	step->binding = FieldText(&f, STEP_COL_BINDING);
	step->prompt = FieldVarlena(&f, STEP_COL_PROMPT);
	step->instructions = FieldVarlena(&f, STEP_COL_INSTRUCTIONS);
	step->arguments = FieldVarlena(&f, STEP_COL_ARGUMENTS);
	step->resources = FieldVarlena(&f, STEP_COL_RESOURCES);
	step->condition = FieldVarlena(&f, STEP_COL_CONDITION);
	step->condition_path = FieldVarlena(&f, STEP_COL_CONDITION_PATH);
	step->condition_operands = FieldVarlena(&f, STEP_COL_CONDITION_OPERANDS);
	step->was_paused = step->pause_reason != NULL;
	return step;
}

/* Run a query that returns whole step rows; NULL if there is none, otherwise the first. */
StepRow *
StepFetch(KeptQuery *query, const Args *args)
{
	Rows		rows = QueryRun(query, args);
	StepRow	   *step = NULL;

	if (rows.count > 0)
		step = StepFromTuple(rows.table->vals[0], rows.table->tupdesc);
	RowsFree(&rows);
	return step;
}

StepRow *
StepRead(Call *call, const pg_uuid_t *step_id)
{
	static KeptQuery read = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.id = $2",
		2, {TEXTOID, UUIDOID}
	};
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, step_id);
	return StepFetch(&read, &args);
}

/* Read the step of a plan whose name, or binding, is this. */
static StepRow *
StepReadByWord(Call *call, KeptQuery *query, const pg_uuid_t *plan_id, const char *word)
{
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, plan_id);
	ArgText(&args, word);
	return StepFetch(query, &args);
}

StepRow *
StepReadByName(Call *call, const pg_uuid_t *plan_id, const char *name)
{
	static KeptQuery read = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.name = $3",
		3, {TEXTOID, UUIDOID, TEXTOID}
	};

	return StepReadByWord(call, &read, plan_id, name);
}

StepRow *
StepReadByBinding(Call *call, const pg_uuid_t *plan_id, const char *binding)
{
	static KeptQuery read = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.binding = $3",
		3, {TEXTOID, UUIDOID, TEXTOID}
	};

	return StepReadByWord(call, &read, plan_id, binding);
}

/* Read the first step of a plan from an order on that fits the query. */
static StepRow *
StepReadFrom(Call *call, KeptQuery *query, const pg_uuid_t *plan_id, int order)
{
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, plan_id);
	ArgInt(&args, order);
	return StepFetch(query, &args);
}

StepRow *
StepReadByOrder(Call *call, const pg_uuid_t *plan_id, int order)
{
	static KeptQuery read = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order = $3",
		3, {TEXTOID, UUIDOID, INT4OID}
	};

	return StepReadFrom(call, &read, plan_id, order);
}

StepRow *
StepNextPending(Call *call, const PlanRow *plan, int from_order)
{
	static KeptQuery read = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order >= $3"
		" AND s.status = 'pending' ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		3, {TEXTOID, UUIDOID, INT4OID}
	};

	return StepReadFrom(call, &read, &plan->id, from_order);
}

StepRow *
StepNextReady(Call *call, const PlanRow *plan, int from_order)
{
	static KeptQuery read = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order >= $3"
		" AND s.ready ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		3, {TEXTOID, UUIDOID, INT4OID}
	};

	return StepReadFrom(call, &read, &plan->id, from_order);
}

void
StepSave(Call *call, const StepRow *step)
{
	static KeptQuery save = {
		"UPDATE stepwise.step SET status = $3::stepwise.step_status, outcome = $4::stepwise.outcome, attempt = $5,"
		" execution_order = $6, ready = $7, started_at = $8, completed_at = $9, active_at = $10,"
		" lease_expires_at = $11, confidence = $12, worker = $13, holder = $14, message = $15, pause_reason = $16,"
		" inputs = $17, result = $18, result_summary = $19, execution_report = $20, output_formatting_notes = $21,"
		" max_attempts = $22, retryable = $23"
		" WHERE tenant = $1 AND id = $2",
		23, {TEXTOID, UUIDOID, TEXTOID, TEXTOID, INT4OID, INT4OID, BOOLOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
		TIMESTAMPTZOID, NUMERICOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, JSONBOID, JSONBOID, TEXTOID, JSONBOID, TEXTOID, INT4OID,
		BOOLOID}
	};
	Args		args = {0};
	Rows		rows;

	ArgTenant(&args, call);
	ArgUuid(&args, &step->id);
	ArgText(&args, StepStatusName[step->status]);
	ArgText(&args, OutcomeName[step->outcome]);
	ArgInt(&args, step->attempt);
	if (step->execution_order > 0)
		ArgInt(&args, step->execution_order);
	else
		ArgNull(&args);
	if (step->ready)
		ArgBool(&args, true);
	else
		ArgNull(&args);
	ArgTime(&args, step->started_at);
	ArgTime(&args, step->completed_at);
	ArgTime(&args, step->active_at);
	ArgTime(&args, step->lease_expires_at);
	ArgVarlena(&args, step->confidence);
	ArgText(&args, step->worker);
	ArgText(&args, step->holder);
	ArgText(&args, step->message);
	ArgVarlena(&args, step->pause_reason);
	ArgVarlena(&args, step->inputs);
	ArgVarlena(&args, step->result);
	ArgVarlena(&args, step->result_summary);
	ArgVarlena(&args, step->execution_report);
	ArgVarlena(&args, step->output_formatting_notes);
	if (step->max_attempts > 0)
		ArgInt(&args, step->max_attempts);
	else
		ArgNull(&args);
	if (step->retryable >= 0)
		ArgBool(&args, step->retryable == 1);
	else
		ArgNull(&args);
	PlaceRemember(step);
	rows = QueryRun(&save, &args);
	if (rows.count != 1)
		elog(ERROR, "step %s could not be saved", UuidText(&step->id));
}

/* Change what a step tells its worker. */
void
StepInstruct(Call *call, StepRow *step, const char *instructions)
{
	static KeptQuery save = {
		"UPDATE stepwise.step SET instructions = $3 WHERE tenant = $1 AND id = $2",
		3, {TEXTOID, UUIDOID, TEXTOID}
	};
	Args		args = {0};

	step->instructions = (struct varlena *) cstring_to_text(instructions);
	ArgTenant(&args, call);
	ArgUuid(&args, &step->id);
	ArgVarlena(&args, step->instructions);
	QueryRun(&save, &args);
}

/* ---------- has the engine been used here? ---------- */

static Oid	used_known = InvalidOid;	/* the table stepwise.engine that is known to say so */
static Oid	used_in_transaction = InvalidOid;

static void
UsedAtTransactionEnd(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT && OidIsValid(used_in_transaction))
		used_known = used_in_transaction;
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		used_in_transaction = InvalidOid;
}

static void
UsedAtSubtransactionEnd(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		used_in_transaction = InvalidOid;
}

void
StoreInit(void)
{
	RegisterXactCallback(UsedAtTransactionEnd, NULL);
	RegisterSubXactCallback(UsedAtSubtransactionEnd, NULL);
}

/* Note that from now on rows come from the engine, not from a restore. */
void
MarkEngineUsed(void)
{
	/* who finds it locked does not wait: another transaction is just marking it */
	static KeptQuery mark = {
		"UPDATE stepwise.engine SET used = true WHERE ctid IN"
		" (SELECT e.ctid FROM stepwise.engine AS e WHERE NOT e.used FOR UPDATE SKIP LOCKED)",
		0
	};
	Args		args = {0};
	Oid			relid = TableOid("engine");

	if (used_known == relid || used_in_transaction == relid)
		return;
	if (QueryRun(&mark, &args).count > 0 || EngineUsed())
		used_in_transaction = relid;
}

bool
EngineUsed(void)
{
	static KeptQuery read = {"SELECT e.used FROM stepwise.engine AS e", 0};
	Args		args = {0};
	Rows		rows = QueryRun(&read, &args);

	return rows.count == 0 || RowBool(&rows, 0, 1);
}
