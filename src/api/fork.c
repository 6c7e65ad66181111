/*
 * fork.c
 *	  fork_plan: create a plan that keeps the results of an old one before a step
 *
 * The named step begins again. So do, in a sequential plan, all later steps;
 * steps that have not ended; and steps that depend on a step that begins
 * again. The other steps keep their results and their nested plans. Branches
 * of a step that begins again are evaluated anew: steps that they skipped
 * begin again, and steps that they added are left out.
 *
 * Rows are copied whole, and only the columns that differ are replaced. So a new
 * column needs no line here, unless a step or plan that begins again must not
 * keep its value: then it goes into FreshStep or FreshPlan.
 *
 * Locks: the tree of the old plan. No other session can see the new plan yet.
 */
#include "api/api.h"

#include "utils/array.h"
#include "utils/hsearch.h"

/* a step of the old plan */
typedef struct OldStep
{
	pg_uuid_t	id;
	pg_uuid_t	new_id;			/* of its copy */
	void	   *row;			/* as TupleTaken has it */
	char	   *name;
	int			order;
	int			wave;
	int			execution_order;	/* 0: it has not started */
	int			blockers;		/* of its copy */
	StepStatus	status;
	bool		branches;
	bool		done;			/* it has ended, and not only because the plan was cancelled */
	bool		again;			/* it begins again */
	bool		copied;
	bool		review;			/* a branch asked for this review; ask for it again */
	List	   *dependents;		/* of Dependent */
	List	   *skipped;		/* of OldStep, by its branches */
} OldStep;

/* an entry about a branch of a step */
typedef struct BranchEntry
{
	OldStep    *step;			/* NULL: it was removed */
	Jsonb	   *detail;
} BranchEntry;

/* the steps of the old plan, and which of them are copied */
typedef struct Copies
{
	MemoryContext context;		/* of what is kept of audit entries */
	List	   *steps;			/* of OldStep, in their order */
	HTAB	   *by_id;
	struct names_hash *by_name; /* with their numbers from 1 */
	List	   *branches;		/* of BranchEntry */
	int			count;			/* of the steps that are copied */
	bool		whole;			/* no step begins again */
} Copies;

/* a step by its id */
typedef struct StepEntry
{
	pg_uuid_t	id;
	OldStep    *step;
} StepEntry;

/* columns of a step that begins again; they become null */
static const int FreshStep[] = {
	STEP_COL_EXECUTION_ORDER, STEP_COL_READY_MARK, STEP_COL_STARTED_AT, STEP_COL_COMPLETED_AT, STEP_COL_ACTIVE_AT,
	STEP_COL_LEASE_EXPIRES_AT, STEP_COL_CONFIDENCE, STEP_COL_ATTEMPTS_BEFORE, STEP_COL_WORKER, STEP_COL_HOLDER, STEP_COL_HOLDS,
	STEP_COL_SENT_BACK, STEP_COL_MESSAGE, STEP_COL_PAUSE_REASON, STEP_COL_INPUTS, STEP_COL_RESULT, STEP_COL_RESULT_SUMMARY,
	STEP_COL_EXECUTION_REPORT, STEP_COL_OUTPUT_FORMATTING_NOTES, STEP_COL_ERROR, STEP_COL_APPROVED, STEP_COL_FIXED_VERSION,
	STEP_COL_FEEDBACK, STEP_COL_PREVIOUS, STEP_COL_PREVIOUS_ERROR
};

/* columns of the new plan that become null, 0, or false */
static const int FreshPlanNulls[] = {
	PLAN_COL_WORKABLE, PLAN_COL_PARENT_STEP_ID, PLAN_COL_PARENT_NAMES, PLAN_COL_STARTED_AT, PLAN_COL_COMPLETED_AT, PLAN_COL_MESSAGE,
	PLAN_COL_PAUSE_REASON, PLAN_COL_OUTPUTS, PLAN_COL_READY_STEPS
};
static const int FreshPlanZeros[] = {
	PLAN_COL_DEPTH, PLAN_COL_PENDING, PLAN_COL_IN_PROGRESS, PLAN_COL_AWAITING_INPUT, PLAN_COL_COMPLETED, PLAN_COL_FAILED, PLAN_COL_SKIPPED,
	PLAN_COL_UNSUCCESSFUL, PLAN_COL_PAUSED, PLAN_COL_HOLDING, PLAN_COL_OPEN_FAILURES, PLAN_COL_SENT_BACK, PLAN_COL_CROWDED,
	PLAN_COL_STARTED_STEPS
};
static const int FreshPlanFlags[] = {PLAN_COL_LEASES, PLAN_COL_NESTS, PLAN_COL_STALLS};

static void
SetNulls(Changes *c, const int *columns, int count)
{
	for (int i = 0; i < count; i++)
		SetDatum(c, columns[i], (Datum) 0, true);
}

/* ---------- the steps of the old plan ---------- */

/* Check whether a step that was skipped was so only because the plan was cancelled. */
static bool
WasCancelled(const char *message)
{
	return message != NULL && strncmp(message, CANCELLED_WITH_PLAN, strlen(CANCELLED_WITH_PLAN)) == 0;
}

/* Make an OldStep from a row of stepwise.step. */
static void *
OldStepMake(TupleTableSlot *slot)
{
	OldStep    *step = palloc0(sizeof(OldStep));

	step->id = ColumnUuid(slot, STEP_COL_ID);
	step->name = ColumnIsNull(slot, STEP_COL_NAME) ? "" : ColumnText(slot, STEP_COL_NAME);
	step->order = ColumnInt(slot, STEP_COL_ORDER);
	step->wave = ColumnInt(slot, STEP_COL_WAVE);
	step->execution_order = ColumnInt(slot, STEP_COL_EXECUTION_ORDER);
	step->blockers = ColumnInt(slot, STEP_COL_BLOCKERS);
	step->branches = ColumnBool(slot, STEP_COL_BRANCHES);
	step->status = EnumIndex(DatumGetObjectId(ColumnDatum(slot, STEP_COL_STATUS)), StepStatusName, STEP_STATUSES);
	step->done = step->status == STEP_COMPLETED ||
		(step->status == STEP_SKIPPED && !WasCancelled(ColumnText(slot, STEP_COL_MESSAGE)));
	step->row = TupleTaken(slot);
	return step;
}

static OldStep *
StepById(const Copies *copies, const pg_uuid_t *id)
{
	StepEntry  *entry = hash_search(copies->by_id, id, HASH_FIND, NULL);

	return entry ? entry->step : NULL;
}

static OldStep *
StepByName(const Copies *copies, const char *name)
{
	int			number = NamesFind(copies->by_name, name);

	return number > 0 ? list_nth(copies->steps, number - 1) : NULL;
}

/* Read the steps of a plan, and what depends on them. */
static Copies
OldSteps(Call *call, const PlanRow *plan)
{
	HASHCTL		control = {.keysize = sizeof(pg_uuid_t), .entrysize = sizeof(StepEntry), .hcxt = CurrentMemoryContext};
	Copies		copies = {.context = CurrentMemoryContext};
	Key			key = IdKey(call, &plan->id);

	copies.steps = TableReadAll("step", "step_order_unique", &key, OldStepMake);
	copies.by_id = hash_create("stepwise fork", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	copies.by_name = NamesNew(list_length(copies.steps));
	for (int i = 0; i < list_length(copies.steps); i++)
	{
		OldStep    *step = list_nth(copies.steps, i);

		((StepEntry *) hash_search(copies.by_id, &step->id, HASH_ENTER, NULL))->step = step;
		NamesAdd(copies.by_name, step->name, i + 1);
		step->dependents = DependentsOf(call, &step->id);
	}
	return copies;
}

/* Note an entry about a branch that has added or skipped steps. */
static void
NoteBranch(void *arg, const LogEntry *entry)
{
	Copies	   *copies = arg;
	BranchEntry *branch;
	MemoryContext outer;
	Jsonb	   *detail;

	if (strcmp(entry->head.event, "plan_modified") != 0)
		return;
	detail = EntryReadDetail(&entry->stored);
	if (JsonGetTexts(detail, "addedSteps") == NIL && JsonGetTexts(detail, "skippedSteps") == NIL)
		return;
	outer = MemoryContextSwitchTo(copies->context);
	branch = palloc(sizeof(BranchEntry));
	branch->step = entry->head.has_step ? StepById(copies, &entry->head.step_id) : NULL;
	branch->detail = JsonCopy(detail);
	copies->branches = lappend(copies->branches, branch);
	MemoryContextSwitchTo(outer);
}

/* Note which steps the branches of a step have skipped. */
static void
NoteSkipped(const Copies *copies)
{
	ListCell   *cell;

	foreach(cell, copies->branches)
	{
		const BranchEntry *branch = lfirst(cell);
		ListCell   *name;

		if (branch->step != NULL)
			foreach(name, JsonGetTexts(branch->detail, "skippedSteps"))
			{
				OldStep    *skipped = StepByName(copies, lfirst(name));

				if (skipped != NULL)
					branch->step->skipped = lappend(branch->step->skipped, skipped);
			}
	}
}

/* ---------- which steps keep their results ---------- */

static List *
BeginAgain(List *again, OldStep *step)
{
	if (step == NULL || step->again)
		return again;
	step->again = true;
	return lappend(again, step);
}

/*
 * Find which steps begin again. The step "from" does. In a sequential plan, all
 * later steps do too. So do steps that have not ended. If a step begins again,
 * so do those that depend on it, and those that its branches skipped.
 */
static void
JudgeSteps(const Copies *copies, const PlanRow *plan, const StepRow *from)
{
	List	   *again = NIL;
	ListCell   *cell;

	foreach(cell, copies->steps)
	{
		OldStep    *step = lfirst(cell);

		if (UuidEqual(&step->id, &from->id) || !step->done || (plan->sequential && step->order > from->order))
			again = BeginAgain(again, step);
	}
	/* the list grows while it is walked */
	for (int i = 0; i < list_length(again); i++)
	{
		const OldStep *step = list_nth(again, i);

		foreach(cell, step->dependents)
			again = BeginAgain(again, StepById(copies, &((Dependent *) lfirst(cell))->step_id));
		foreach(cell, step->skipped)
			again = BeginAgain(again, lfirst(cell));
	}
}

/* Leave out the steps that branches of a step that begins again have added. Reviews that others asked for are asked for again. */
static void
JudgeAdded(const Copies *copies)
{
	ListCell   *cell;

	foreach(cell, copies->branches)
	{
		const BranchEntry *branch = lfirst(cell);
		char	   *action = JsonGetText(branch->detail, "branchAction");
		ListCell   *name;

		foreach(name, JsonGetTexts(branch->detail, "addedSteps"))
		{
			OldStep    *added = StepByName(copies, lfirst(name));

			if (added == NULL)
				continue;
			added->copied = branch->step == NULL || !branch->step->again;
			added->review = added->again && action != NULL && strcmp(action, "request_review") == 0;
		}
	}
}

/* Count what each copied step waits for: the copies of the steps on which it depends. */
static void
CountBlockers(const Copies *copies)
{
	ListCell   *cell;
	ListCell   *dependent;

	foreach(cell, copies->steps)
		((OldStep *) lfirst(cell))->blockers = 0;
	foreach(cell, copies->steps)
	{
		const OldStep *parent = lfirst(cell);

		if (!parent->copied)
			continue;
		foreach(dependent, parent->dependents)
		{
			OldStep    *child = StepById(copies, &((Dependent *) lfirst(dependent))->step_id);

			if (child != NULL)
				child->blockers++;
		}
	}
}

/* Choose the steps to copy, and give each copy a new id; from is the step that begins again, or NULL. */
static Copies
PlanCopies(Call *call, const PlanRow *plan, const StepRow *from)
{
	Copies		copies = OldSteps(call, plan);
	ListCell   *cell;

	copies.whole = from == NULL;
	foreach(cell, copies.steps)
		((OldStep *) lfirst(cell))->copied = true;
	LogVisit(call, &plan->id, NoteBranch, &copies);
	if (from != NULL)
	{
		NoteSkipped(&copies);
		JudgeSteps(&copies, plan, from);
		JudgeAdded(&copies);
		CountBlockers(&copies);
	}
	foreach(cell, copies.steps)
	{
		OldStep    *step = lfirst(cell);

		if (!step->copied)
			continue;
		step->new_id = IdNew(call);
		copies.count++;
	}
	return copies;
}

/* ---------- copying rows ---------- */

static int
ByExecution(const ListCell *a, const ListCell *b)
{
	return ((const OldStep *) lfirst(a))->execution_order < ((const OldStep *) lfirst(b))->execution_order ? -1 : 1;
}

/* Number the kept steps without gaps in the order in which they were executed. */
static void
NumberExecutions(const Copies *copies)
{
	List	   *started = NIL;
	ListCell   *cell;

	foreach(cell, copies->steps)
	{
		const OldStep *step = lfirst(cell);

		if (step->copied && !step->again && step->execution_order > 0)
			started = lappend(started, lfirst(cell));
	}
	list_sort(started, ByExecution);
	foreach(cell, started)
		((OldStep *) lfirst(cell))->execution_order = foreach_current_index(cell) + 1;
}

/* Set the columns of a step that begins again. One that waits for nothing is ready; a sequential plan does not use the mark. */
static void
SetFresh(Changes *c, const PlanRow *copy, const OldStep *step)
{
	SetNulls(c, FreshStep, lengthof(FreshStep));
	SetEnum(c, STEP_COL_STATUS, "step_status", StepStatusName[STEP_PENDING]);
	SetEnum(c, STEP_COL_OUTCOME, "outcome", OutcomeName[OUTCOME_NA]);
	SetInt(c, STEP_COL_ATTEMPT, 0);
	SetTrue(c, STEP_COL_READY_MARK, !copy->sequential && step->blockers == 0);
}

/* Copy the steps. Orders, and the execution orders of kept steps, are numbered without gaps. */
static void
CopySteps(Call *call, const PlanRow *copy, const Copies *copies)
{
	Batch	   *batch = BatchBegin(call, "step", STEP_COLUMNS);
	Changes    *c = &batch->row;
	int			order = 0;
	ListCell   *cell;

	NumberExecutions(copies);
	foreach(cell, copies->steps)
	{
		const OldStep *step = lfirst(cell);

		if (!step->copied)
			continue;
		BatchTake(batch, step->row);
		SetUuid(c, STEP_COL_ID, &step->new_id);
		SetUuid(c, STEP_COL_PLAN_ID, &copy->id);
		SetUuid(c, STEP_COL_ROOT_ID, &copy->root_id);
		SetInt(c, STEP_COL_ORDER, ++order);
		SetInt(c, STEP_COL_WAVE, copy->sequential ? order - 1 : step->wave);
		SetInt(c, STEP_COL_BLOCKERS, step->blockers);
		SetPositive(c, STEP_COL_EXECUTION_ORDER, step->execution_order);
		if (step->again)
			SetFresh(c, copy, step);
		BatchAdd(batch);
	}
	BatchEnd(batch);
}

/* Copy the branches of the steps. */
static void
CopyBranches(Call *call, const PlanRow *copy, Datum old_ids, Datum new_ids)
{
	static KeptQuery branches = {
		"INSERT INTO stepwise.branching_condition SELECT r.* FROM stepwise.branching_condition AS b"
		" JOIN ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS m (old_id, new_id) ON m.old_id = b.step_id"
		" LEFT JOIN ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS n (old_id, new_id) ON n.old_id = b.target_id,"
		" LATERAL pg_catalog.jsonb_populate_record(b, pg_catalog.jsonb_build_object('plan_id', $2, 'step_id', m.new_id,"
		" 'target_id', n.new_id)) AS r"
		" WHERE b.tenant = $1 AND b.step_id = ANY ($3)",
		4, {TEXTOID, UUIDOID, UUIDARRAYOID, UUIDARRAYOID}
	};
	Params		params = {0};

	ParamKey(&params, call, &copy->id);
	ParamDatum(&params, old_ids);
	ParamDatum(&params, new_ids);
	QueryRun(&branches, &params);
}

static Datum
UuidArray(Datum *ids, int count)
{
	return PointerGetDatum(construct_array(ids, count, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR));
}

/* Copy the dependencies and branches of the steps. */
static void
CopyLinks(Call *call, const PlanRow *copy, const Copies *copies)
{
	Batch	   *batch = LinksBegin(call, copy);
	Datum	   *old_ids = palloc(sizeof(Datum) * Max(copies->count, 1));
	Datum	   *new_ids = palloc(sizeof(Datum) * Max(copies->count, 1));
	bool		branches = false;
	int			count = 0;
	ListCell   *cell;

	foreach(cell, copies->steps)
	{
		const OldStep *step = lfirst(cell);
		ListCell   *link;

		if (!step->copied)
			continue;
		old_ids[count] = UUIDPGetDatum(&step->id);
		new_ids[count++] = UUIDPGetDatum(&step->new_id);
		branches = branches || step->branches;
		foreach(link, step->dependents)
		{
			const OldStep *child = StepById(copies, &((Dependent *) lfirst(link))->step_id);

			if (child != NULL && child->copied)
				LinksAdd(batch, &child->new_id, &step->new_id, ((Dependent *) lfirst(link))->need);
		}
	}
	BatchEnd(batch);
	if (branches)
		CopyBranches(call, copy, UuidArray(old_ids, count), UuidArray(new_ids, count));
}

/* Copy what is seldom set of a plan. A copy that is its own root does not keep the final output. */
static void
CopyDetail(Call *call, const PlanRow *plan, const pg_uuid_t *id, bool nested)
{
	Key			key = IdKey(call, &plan->id);
	void	   *row = TableRead("plan_detail", "plan_detail_pkey", &key, NULL, NULL, TupleTaken);
	Batch	   *batch = BatchBegin(call, "plan_detail", DETAIL_COLUMNS);
	Changes    *c = &batch->row;

	if (row != NULL)
		BatchTake(batch, row);
	else
	{
		SetVarlena(c, DETAIL_COL_OUTPUTS, JsonEmptyObject());
		SetVarlena(c, DETAIL_COL_VARIABLES, JsonEmptyObject());
	}
	SetDatum(c, DETAIL_COL_TENANT, call->tenant_datum, false);
	SetUuid(c, DETAIL_COL_PLAN_ID, id);
	SetUuid(c, DETAIL_COL_FORKED_FROM, &plan->id);
	SetText(c, DETAIL_COL_REQUEST_DIGEST, NULL);
	if (!nested)
	{
		SetText(c, DETAIL_COL_FINAL_OUTPUT, NULL);
		SetText(c, DETAIL_COL_FINAL_MEDIA_TYPE, NULL);
	}
	BatchAdd(batch);
	BatchEnd(batch);
}

/* Set the columns of a copy that is its own root. */
static void
SetFreshPlan(Changes *c)
{
	SetNulls(c, FreshPlanNulls, lengthof(FreshPlanNulls));
	for (size_t i = 0; i < lengthof(FreshPlanZeros); i++)
		SetInt(c, FreshPlanZeros[i], 0);
	for (size_t i = 0; i < lengthof(FreshPlanFlags); i++)
		SetBool(c, FreshPlanFlags[i], false);
	SetEnum(c, PLAN_COL_STATUS, "plan_status", PlanStatusName[PLAN_PLANNING]);
	SetEnum(c, PLAN_COL_OUTCOME, "outcome", OutcomeName[OUTCOME_NA]);
	SetInt(c, PLAN_COL_NEXT_ORDER, 1);
}

/*
 * Copy the row of a plan and its detail. The copy has no audit entries yet. It is
 * nested in a step of the plan "parent"; if that is NULL, it is its own root.
 */
static PlanRow *
CopyPlan(Call *call, const PlanRow *plan, PlanRow *parent, const StepRow *parent_step)
{
	Key			key = IdKey(call, &plan->id);
	void	   *row = TableRead("plan", "plan_pkey", &key, NULL, NULL, TupleTaken);
	Batch	   *batch = BatchBegin(call, "plan", PLAN_COLUMNS);
	Changes    *c = &batch->row;
	pg_uuid_t	id = IdNew(call);

	BatchTake(batch, row);
	SetUuid(c, PLAN_COL_ID, &id);
	SetUuid(c, PLAN_COL_ROOT_ID, parent ? &parent->root_id : &id);
	SetInt(c, PLAN_COL_AUDIT_ENTRIES, 0);
	SetVarlena(c, PLAN_COL_AUDIT_HEAD, NULL);
	SetText(c, PLAN_COL_IDEMPOTENCY_KEY, NULL);
	SetTime(c, PLAN_COL_CREATED_AT, CallNow(call, plan));
	SetTime(c, PLAN_COL_UPDATED_AT, CallNow(call, plan));
	if (parent == NULL)
	{
		SetFreshPlan(c);
		SetBool(c, PLAN_COL_READY_MARKS, !plan->sequential);
		SetBool(c, PLAN_COL_RELINKED, !plan->sequential);
	}
	else
	{
		SetUuid(c, PLAN_COL_PARENT_STEP_ID, &parent_step->id);
		SetInt(c, PLAN_COL_DEPTH, parent->depth + 1);
		SetVarlena(c, PLAN_COL_PARENT_NAMES, ParentNamesBelow(parent, parent_step));
	}
	BatchAdd(batch);
	BatchEnd(batch);
	CopyDetail(call, plan, &id, parent != NULL);
	return parent ? PlanInTree(call, parent->root, &id) : PlanLock(call, &id);
}

/* ---------- waves, when steps are left out ---------- */

/* the steps of a copy in the order of their old waves, so that each comes after the steps on which it depends */
#define STEPS_BY_WAVE \
	"WITH n AS (SELECT s.id, s.wave, (pg_catalog.row_number() OVER (ORDER BY s.wave, s.step_order))::int AS i" \
	" FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2)"

/* Write the waves of a copy, given in the order of STEPS_BY_WAVE. */
static void
WriteWaves(Call *call, const PlanRow *copy, const int *waves, int count)
{
	static KeptQuery write = {
		STEPS_BY_WAVE
		" UPDATE stepwise.step AS s SET wave = u.wave FROM n, pg_catalog.unnest($3) WITH ORDINALITY AS u (wave, i)"
		" WHERE s.tenant = $1 AND s.id = n.id AND u.i = n.i AND u.wave <> s.wave",
		3, {TEXTOID, UUIDOID, INT4ARRAYOID}
	};
	Datum	   *values = palloc(sizeof(Datum) * Max(count, 1));
	Params		params = {0};

	for (int i = 0; i < count; i++)
		values[i] = Int32GetDatum(waves[i]);
	ParamKey(&params, call, &copy->id);
	ParamDatum(&params, PointerGetDatum(construct_array(values, count, INT4OID, sizeof(int32), true, TYPALIGN_INT)));
	QueryRun(&write, &params);
}

/*
 * Compute the waves again: a review that is left out may have stood between
 * steps. Steps that depend on nothing keep their waves.
 */
static void
LowerWaves(Call *call, const PlanRow *copy)
{
	static KeptQuery steps = {STEPS_BY_WAVE " SELECT n.wave FROM n ORDER BY n.i", 2, {TEXTOID, UUIDOID}};
	static KeptQuery links = {
		STEPS_BY_WAVE
		" SELECT c.i, p.i FROM stepwise.dependency AS d JOIN n AS c ON c.id = d.step_id JOIN n AS p ON p.id = d.depends_on"
		" WHERE d.tenant = $1 AND d.plan_id = $2 ORDER BY c.i",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &steps, &copy->id);
	int			count = (int) rows.count;
	int		   *waves = palloc(sizeof(int) * Max(count, 1));
	int			last = 0;

	for (int i = 0; i < count; i++)
		waves[i] = RowInt(&rows, i, 1);
	RowsFree(&rows);
	rows = QueryById(call, &links, &copy->id);
	for (uint64 i = 0; i < rows.count; i++)
	{
		int			child = RowInt(&rows, i, 1);
		int			parent = RowInt(&rows, i, 2);

		waves[child - 1] = Max(child == last ? waves[child - 1] : 0, waves[parent - 1] + 1);
		last = child;
	}
	RowsFree(&rows);
	WriteWaves(call, copy, waves, count);
}

/* ---------- the audit of a fork ---------- */

/* Build the detail of an audit entry that names the other plan of a fork. */
static Jsonb *
LinkDetail(const char *action, const char *key, const pg_uuid_t *id, const char *from_step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", action);
	JsonPutUuid(&b, key, id);
	if (from_step != NULL)
		JsonPutText(&b, "fromStep", from_step);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the mark of audit entries that stand for what happened in the old plan. */
static Jsonb *
ForkedDetail(void)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutBool(&b, "forked", true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Begin the audit chain of a copy as that of every plan begins. */
static void
AuditCreated(Call *call, PlanRow *copy, const pg_uuid_t *old_id, const char *from_step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "to", PlanStatusName[PLAN_PLANNING]);
	JsonPutText(&b, "name", copy->name);
	JsonObjectEnd(&b);
	AuditAppend(call, copy, NULL, "plan_modified",
				JsonMerge(LinkDetail("created", "forkedFrom", old_id, from_step), JsonFinish(&b)));
}

/*
 * Audit how a copied step got to its status, so that the chain covers its
 * result too. The entries are transitions that a step may make.
 */
static void
AuditAdopted(Call *call, PlanRow *copy, const StepRow *step)
{
	StepStatus	from = STEP_PENDING;

	if (step->status == from)
		return;
	if (!StepTransitionAllowed(from, step->status) || (step->status == STEP_AWAITING_INPUT && TimeIsSet(step->started_at)))
	{
		StepRow		begun = *step;

		begun.status = STEP_IN_PROGRESS;
		StepAudit(call, copy, &begun, from, ForkedDetail());
		from = begun.status;
	}
	StepAudit(call, copy, step, from, ForkedDetail());
}

/* Audit what the branches of kept steps did. A fork of the fork reads these entries. */
static void
AuditBranches(Call *call, PlanRow *copy, const Copies *copies)
{
	ListCell   *cell;

	foreach(cell, copies->branches)
	{
		const BranchEntry *branch = lfirst(cell);

		if (branch->step != NULL && branch->step->copied && !branch->step->again)
			AuditAppend(call, copy, &branch->step->new_id, "plan_modified", JsonMerge(branch->detail, ForkedDetail()));
	}
}

/* Audit how a nested plan got to its status: from planning to executing to its end. */
static void
AuditEnded(Call *call, PlanRow *copy)
{
	PlanAudit(call, copy, PLAN_PLANNING, PLAN_EXECUTING, ForkedDetail());
	PlanAudit(call, copy, PLAN_EXECUTING, copy->status, ForkedDetail());
}

/* ---------- forking ---------- */

static void CopyNested(Call *call, PlanRow *parent, const OldStep *old_step, const StepRow *new_step);

/*
 * Count and audit a step that keeps its result, and have its dependents look
 * at it. Its branches were taken in the old plan; they are not taken again.
 */
static void
AdoptStep(Call *call, PlanRow *copy, StepRow *step)
{
	copy->counts[step->status]++;
	copy->unsuccessful += step->outcome == OUTCOME_FAILURE;
	copy->started_steps = Max(copy->started_steps, step->execution_order);
	AuditAdopted(call, copy, step);
	step->branches = false;
	if (!copy->sequential)
		copy->settled = lappend(copy->settled, step);
}

/* Count the copied steps; those that keep their results get their nested plans. */
static void
AdoptSteps(Call *call, PlanRow *copy, const Copies *copies)
{
	ListCell   *cell;

	foreach(cell, copies->steps)
	{
		const OldStep *old = lfirst(cell);
		StepRow    *step;

		if (!old->copied)
			continue;
		if (old->again)
		{
			copy->counts[STEP_PENDING]++;
			continue;
		}
		step = StepMustRead(call, &old->new_id);
		AdoptStep(call, copy, step);
		if (StepNests(step))
			CopyNested(call, copy, old, step);
	}
}

/*
 * Copy the plan nested in a kept step, if there is one, and the plans nested
 * in that. They have ended, so nothing begins again. They are copied because
 * references may lead into them.
 */
static void
CopyNested(Call *call, PlanRow *parent, const OldStep *old_step, const StepRow *new_step)
{
	pg_uuid_t	nested_id;
	PlanRow    *nested;
	PlanRow    *copy;
	Copies		copies;
	ListCell   *cell;

	if (!NestedPlanId(call, &old_step->id, &nested_id))
		return;
	nested = PlanMustRead(call, &nested_id);
	copy = CopyPlan(call, nested, parent, new_step);
	AuditCreated(call, copy, &nested_id, NULL);
	copies = PlanCopies(call, nested, NULL);
	CopySteps(call, copy, &copies);
	CopyLinks(call, copy, &copies);
	foreach(cell, copies.steps)
	{
		const OldStep *old = lfirst(cell);
		StepRow    *step = StepMustRead(call, &old->new_id);

		AuditAdopted(call, copy, step);
		if (StepNests(step))
			CopyNested(call, copy, old, step);
	}
	AuditBranches(call, copy, &copies);
	AuditEnded(call, copy);
	parent->root->nests = true;
	PlanTouch(parent->root);
}

/* Ask again for a review that a branch of a kept step asked for. */
static void
ReviewAgain(Call *call, PlanRow *copy, const pg_uuid_t *old_id, const pg_uuid_t *new_id)
{
	static KeptQuery read = {
		"SELECT a.detail ->> 'summary', a.detail -> 'questions' FROM stepwise.step AS s JOIN stepwise.audit AS a"
		" ON a.tenant = $1 AND a.plan_id = s.plan_id AND a.step_id = s.id"
		" WHERE s.tenant = $1 AND s.id = $2 AND a.event = 'user_reviewed' AND a.detail ->> 'action' = 'review_requested'"
		" ORDER BY a.id DESC LIMIT 1",
		2, {TEXTOID, UUIDOID}, .reads_log = true
	};
	Rows		rows = QueryById(call, &read, old_id);

	if (rows.count > 0)
		StepRequestReview(call, copy, StepMustRead(call, new_id), RowText(&rows, 0, 1), RowJson(&rows, 0, 2), NULL, NULL);
	RowsFree(&rows);
}

/* Count the copied steps that keep their results. */
static int
KeptCount(const Copies *copies)
{
	int			kept = 0;
	ListCell   *cell;

	foreach(cell, copies->steps)
	{
		const OldStep *step = lfirst(cell);

		kept += step->copied && !step->again;
	}
	return kept;
}

static Jsonb *
ForkAnswer(const PlanRow *plan, const PlanRow *copy, const Copies *copies, const char *from_step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutPlanAnswer(&b, copy);
	JsonPutUuid(&b, "forkedFrom", &plan->id);
	JsonPutText(&b, "fromStep", from_step);
	JsonPutInt(&b, "keptSteps", KeptCount(copies));
	JsonPutInt(&b, "pendingSteps", copy->counts[STEP_PENDING]);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Create the fork, settle it, and audit it in both plans. */
static Jsonb *
Fork(Call *call, PlanRow *plan, const char *from_step)
{
	StepRow    *from = from_step ? StepReadByName(call, &plan->id, from_step) : NULL;
	PlanRow    *copy;
	Copies		copies;
	ListCell   *cell;

	if (from == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_STEP_NOT_FOUND),
				 errmsg("plan \"%s\" has no step \"%s\"", plan->name, ShortText(from_step)),
				 errhint("%s", PlanHint(call, plan, "stepwise.get_plan_context(plan_id) lists the steps of the plan."))));
	copies = PlanCopies(call, plan, from);
	copy = CopyPlan(call, plan, NULL, NULL);
	AuditCreated(call, copy, &plan->id, from_step);
	CopySteps(call, copy, &copies);
	CopyLinks(call, copy, &copies);
	if (!copy->sequential && copies.count < StepTotal(plan->counts))
		LowerWaves(call, copy);
	AdoptSteps(call, copy, &copies);
	AuditBranches(call, copy, &copies);
	foreach(cell, copies.steps)
	{
		const OldStep *step = lfirst(cell);

		if (step->copied && step->review)
			ReviewAgain(call, copy, &step->id, &step->new_id);
	}
	copy->moved = true;
	PlanSettle(call, copy);
	AuditAppend(call, plan, &from->id, "plan_modified", LinkDetail("forked", "forkedTo", &copy->id, from_step));
	return ForkAnswer(plan, copy, &copies, from_step);
}

/* Create a plan that keeps the results before a step, to try another way from there. */
PG_FUNCTION_INFO_V1(stepwise_fork_plan);
Datum
stepwise_fork_plan(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBegin(&call);
	return CallEnd(&call, Fork(&call, PlanLock(&call, ArgumentUuid(fcinfo, 0)), ArgumentText(fcinfo, 1)));
}
