/*
 * guard.c
 *	  triggers for raw SQL on the engine's tables
 *
 * Raw SQL is a statement that does not come from the engine. Statements of the
 * engine pass at once. Rows that the engine writes without a statement
 * (base/write.c) fire no trigger.
 *
 * An UPDATE of steps fires two triggers. Before each row, step_guard checks
 * and stamps it like any move. After the statement, steps_changed counts,
 * audits and settles the changes, once per plan. Rows that a restore inserts
 * pass unchanged, as long as the engine has not been used in this database.
 *
 * Locks: raw SQL locks its step rows before the plan, and the functions lock
 * the plan first. At worst that ends in PostgreSQL's own deadlock error.
 *
 * Memory: the trigger after the statement has a context of its own.
 */
#include "api/api.h"

#include "access/htup_details.h"
#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"

/* columns of a step that raw SQL may set; only the engine sets the others */
static const char *const RawColumns[] = {
	"status", "outcome", "result", "result_summary", "confidence", "execution_report", "output_formatting_notes",
	"message", "worker", "lease_expires_at", "started_at", "completed_at", "active_at"
};

/* ---------- common ---------- */

/* Check whether inserted rows may come from a restore: the engine has not written in this database yet. */
static bool
RestoreMayInsert(void)
{
	Call		call;
	bool		used;

	CallBeginIn(&call, "");
	used = EngineUsed();
	CallEnd(&call, NULL);
	return !used;
}

/* Name what the statement does, as a participle for messages. */
static const char *
VerbOf(const TriggerData *trigger)
{
	if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
		return "inserted";
	if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
		return "updated";
	if (TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		return "deleted";
	return "truncated";
}

static void
RefuseByHand(const TriggerData *trigger)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_TRANSITION),
			 errmsg("rows of table stepwise.%s are not %s by hand", RelationGetRelationName(trigger->tg_relation), VerbOf(trigger)),
			 errdetail("The engine keeps them; the status of a plan is derived from its steps."),
			 errhint("Use the functions: stepwise.create_plan, stepwise.modify_plan, stepwise.cancel_plan; CALL stepwise.purge(before) removes finished plans.")));
}

/* Compare two rows byte by byte. A value that is stored in another form counts as changed. */
static bool
SameValues(HeapTuple old, HeapTuple new, TupleDesc desc)
{
	for (int i = 1; i <= desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i - 1);
		bool		old_null;
		bool		new_null;
		Datum		old_value = heap_getattr(old, i, desc, &old_null);
		Datum		new_value = heap_getattr(new, i, desc, &new_null);

		if (old_null != new_null || (!old_null && !datumIsEqual(old_value, new_value, att->attbyval, att->attlen)))
			return false;
	}
	return true;
}

/* Check whether an UPDATE changes nothing. Some tools send such statements, so they may pass. */
static bool
ChangesNothing(const TriggerData *trigger)
{
	return SameValues(trigger->tg_trigtuple, trigger->tg_newtuple, RelationGetDescr(trigger->tg_relation));
}

/* Check whether a row has a null that its table forbids. PostgreSQL refuses such a row right after the trigger. */
static bool
LacksRequired(HeapTuple tuple, TupleDesc desc)
{
	for (int i = 1; i <= desc->natts; i++)
		if (TupleDescAttr(desc, i - 1)->attnotnull && heap_attisnull(tuple, i, desc))
			return true;
	return false;
}

/* Refuse every write to a table except those of the engine and of a restore. */
PG_FUNCTION_INFO_V1(stepwise_engine_guard);
Datum
stepwise_engine_guard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = TriggerOf(fcinfo);

	if (EngineWrites())
		return TriggerPass(trigger);
	if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event) && RestoreMayInsert())
		return TriggerPass(trigger);
	if (TRIGGER_FIRED_FOR_ROW(trigger->tg_event) && TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) && ChangesNothing(trigger))
		return TriggerPass(trigger);
	RefuseByHand(trigger);
	return (Datum) 0;
}

/* ---------- before a row of steps ---------- */

/* Refuse an infinite time: we cannot compute with it. One such claim would stop the release of all expired ones. */
static void
CheckFinite(TimestampTz time, const char *column)
{
	if (TIMESTAMP_NOT_FINITE(time))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("%s must be a finite time", column),
				 errhint("Set it to null if there is none.")));
}

/* Check a value against the limits that the functions apply. */
static void
CheckRawValue(const char *column, Oid type, Datum value)
{
	if (type == JSONBOID)
		CheckJsonLimits(DatumGetJsonbP(value), column);
	else if (type == NUMERICOID)
		CheckConfidence(DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value)));
	else if (type == TIMESTAMPTZOID)
		CheckFinite(DatumGetTimestampTz(value), column);
	else if (strcmp(column, "worker") == 0)
		CheckNameLimit(TextDatumGetCString(value), column);
	else if (type == TEXTOID)
		CheckTextLimit(TextDatumGetCString(value), column);
	if (type == TEXTOID)
		CheckUtf8(TextDatumGetCString(value), column);
}

/* Check the columns that an UPDATE changes: whether raw SQL may set them, and their new values. */
static void
CheckRawColumns(const TriggerData *trigger, const StepRow *old)
{
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);

	for (int i = 1; i <= desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i - 1);
		bool		old_null;
		bool		new_null;
		Datum		old_value = heap_getattr(trigger->tg_trigtuple, i, desc, &old_null);
		Datum		new_value = heap_getattr(trigger->tg_newtuple, i, desc, &new_null);

		if (old_null == new_null && (old_null || datumIsEqual(old_value, new_value, att->attbyval, att->attlen)))
			continue;
		if (NameIndex(NameStr(att->attname), RawColumns, lengthof(RawColumns)) < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TRANSITION),
					 errmsg("column %s of step \"%s\" is kept by the engine", NameStr(att->attname), old->name),
					 errhint("%s", StepHint(NULL, old, "Plain SQL may set the status of a step and what it achieved; stepwise.modify_plan(plan_id, 'update_step', params) changes what it does."))));
		if (!new_null)
			CheckRawValue(NameStr(att->attname), att->atttypid, new_value);
	}
}

/* Refuse a change of a completed or skipped step. */
static void
CheckStepNotFinal(const StepRow *step)
{
	if (step->status == STEP_COMPLETED || step->status == STEP_SKIPPED)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" is %s, and final", step->name, StepStatusName[step->status]),
				 errdetail("Its result is in the audit chain."),
				 errhint("%s", StepHint(NULL, step, "Add a step to do more work: stepwise.modify_plan(plan_id, 'add_steps', '{\"steps\": [{\"instructions\": \"Do the rest\"}]}')."))));
}

/* Refuse to set a status that the nested plan decides. Raw SQL may fail or skip the step, or retry it. */
static void
CheckNotDecidedByNested(const StepRow *step, StepStatus to)
{
	if (StepNests(step) && to != STEP_FAILED && to != STEP_SKIPPED &&
		!(to == STEP_PENDING && step->status == STEP_FAILED))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" runs workflow \"%s\" and cannot be set to %s by hand", step->name, step->workflow,
						StepStatusName[to]),
				 errdetail("Its state is what its nested plan makes."),
				 errhint("%s", StepHint(NULL, step, "stepwise.get_next_step(root_id) opens the nested plan and hands out its steps."))));
}

/* Refuse a lease without a claim: only a step in progress has one, and never a step that runs a workflow. */
static void
CheckLease(const StepRow *step)
{
	if (TimeIsSet(step->lease_expires_at) && (step->status != STEP_IN_PROGRESS || StepNests(step)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" %s, and cannot have a lease", step->name,
						StepNests(step) ? "runs a workflow" : psprintf("is %s", StepStatusName[step->status])),
				 errhint("%s", StepHint(NULL, step, "Claim the step with stepwise.get_next_step(root_id, 'agent-1', '5 minutes')."))));
}

/* Put the stamps of a move into the row that is about to be written. */
static HeapTuple
StampedTuple(const TriggerData *trigger, HeapTuple tuple, const StepRow *step)
{
	static const char *const columns[] = {
		"outcome", "attempt", "ready_mark", "started_at", "completed_at", "active_at", "lease_expires_at", "worker", "holder",
		"message", "pause_reason", "error", "previous_error"
	};
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	int			numbers[lengthof(columns)];
	Datum		values[lengthof(columns)];
	bool		nulls[lengthof(columns)] = {0};
	Params		params = {0};

	ParamDatum(&params, ObjectIdGetDatum(EnumValue("outcome", OutcomeName[step->outcome])));
	ParamInt(&params, step->attempt);
	if (step->ready_mark)
		ParamBool(&params, true);
	else
		ParamNull(&params);
	ParamTime(&params, step->started_at);
	ParamTime(&params, step->completed_at);
	ParamTime(&params, step->active_at);
	ParamTime(&params, step->lease_expires_at);
	ParamText(&params, step->worker);
	ParamText(&params, step->holder);
	ParamText(&params, step->message);
	ParamVarlena(&params, step->pause_reason);
	ParamVarlena(&params, step->error);
	ParamText(&params, step->previous_error);
	for (size_t i = 0; i < lengthof(columns); i++)
	{
		numbers[i] = SPI_fnumber(desc, columns[i]);
		values[i] = params.values[i];
		nulls[i] = params.nulls[i] == 'n';
	}
	return heap_modify_tuple_by_cols(tuple, desc, lengthof(columns), numbers, values, nulls);
}

/* Return one time for all rows of a statement. It is kept in fn_extra, which lives as long as the statement. */
static TimestampTz
StatementNow(FmgrInfo *trigger_function)
{
	if (trigger_function->fn_extra == NULL)
	{
		TimestampTz *now = MemoryContextAlloc(trigger_function->fn_mcxt, sizeof(TimestampTz));

		*now = GetCurrentTimestamp();
		trigger_function->fn_extra = now;
	}
	return *(TimestampTz *) trigger_function->fn_extra;
}

/* Check and stamp a row that raw SQL updates. */
static Datum
RawUpdate(const TriggerData *trigger, TimestampTz now)
{
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	StepRow    *old;
	StepRow    *new;
	StepStatus	to;

	if (ChangesNothing(trigger) || LacksRequired(trigger->tg_newtuple, desc))
		return TriggerPass(trigger);
	old = StepFromTuple(trigger->tg_trigtuple, desc);
	CheckRawColumns(trigger, old);
	new = StepFromTuple(trigger->tg_newtuple, desc);
	to = new->status;
	if (to == old->status)
	{
		CheckStepNotFinal(old);
		CheckLease(new);
		return TriggerPass(trigger);
	}
	CheckNotDecidedByNested(old, to);
	new->status = old->status;
	StepStamp(NULL, new, to, now);
	return PointerGetDatum(StampedTuple(trigger, trigger->tg_newtuple, new));
}

/* Refuse to insert a step with a history. */
static void
CheckInsertedStep(const StepRow *step)
{
	if (step->status != STEP_PENDING || step->outcome != OUTCOME_NA || step->attempt != 0 || step->attempts_before != 0 || step->execution_order != 0 ||
		TimeIsSet(step->started_at) || TimeIsSet(step->completed_at) || TimeIsSet(step->active_at) ||
		TimeIsSet(step->lease_expires_at) || step->worker || step->holder ||
		step->result || step->message || step->pause_reason || step->holds || step->sent_back || step->inputs || step->error || step->blockers != 0 || step->dependents >= 0 || step->branches)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" cannot begin as %s%s", step->name, StepStatusName[step->status],
						step->status == STEP_PENDING ? " with what only the engine sets" : ""),
				 errdetail("A step begins pending, and has done nothing yet."),
				 errhint("%s", StepHint(NULL, step, "Add a step with stepwise.modify_plan(plan_id, 'add_steps', '{\"steps\": [{\"instructions\": \"Do the rest\"}]}')."))));
}

/* Refuse inserted texts that have no UTF-8 form, as the functions do. */
static void
CheckInsertedTexts(HeapTuple tuple, TupleDesc desc)
{
	for (int i = 1; i <= desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i - 1);
		bool		isnull;
		Datum		value = heap_getattr(tuple, i, desc, &isnull);

		if (!isnull && att->atttypid == TEXTOID)
			CheckUtf8(TextDatumGetCString(value), NameStr(att->attname));
		else if (!isnull && att->atttypid == JSONBOID)
			CheckJsonUtf8(DatumGetJsonbP(value), NameStr(att->attname));
	}
}

/*
 * Refuse a step for a plan of another tenant with the same error as for a plan
 * that does not exist. The policy is applied only after this trigger, and its
 * error would reveal that the plan exists. A role that bypasses policies may
 * see every plan anyway.
 */
static void
CheckTenantOfInsert(const TriggerData *trigger, const char *tenant, const StepRow *step)
{
	if (check_enable_rls(RelationGetRelid(trigger->tg_relation), InvalidOid, true) == RLS_ENABLED &&
		strcmp(tenant, TenantOfCaller()) != 0)
		PlanNotFound(&step->plan_id);
}

/* Refuse an id that does not carry the slot of the tenant. */
static void
CheckInsertedId(const char *tenant, const StepRow *step)
{
	if (SlotOf(&step->id) != TenantSlot(tenant))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("id \"%s\" does not carry the slot of tenant \"%s\"", UuidText(&step->id), tenant),
				 errhint("Leave the id out; then the step gets one.")));
}

/* Give an id to a row that has none. Its tenant decides how the id ends. */
static HeapTuple
WithId(HeapTuple tuple, TupleDesc desc)
{
	int			number = SPI_fnumber(desc, "id");
	bool		no_tenant;
	Datum		tenant = SPI_getbinval(tuple, desc, SPI_fnumber(desc, "tenant"), &no_tenant);
	pg_uuid_t	id;
	Datum		value = UUIDPGetDatum(&id);
	bool		isnull = false;

	if (no_tenant || !heap_attisnull(tuple, number, desc))
		return tuple;
	id = UuidNew(TenantSlot(TextDatumGetCString(tenant)));
	return heap_modify_tuple_by_cols(tuple, desc, 1, &number, &value, &isnull);
}

/* Check a step that raw SQL inserts, and set the columns that depend on its plan. */
static Datum
RawInsert(const TriggerData *trigger)
{
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	HeapTuple	tuple = WithId(trigger->tg_trigtuple, desc);
	StepRow    *step;
	char	   *tenant;
	bool		isnull;
	int			numbers[] = {SPI_fnumber(desc, "root_id"), SPI_fnumber(desc, "wave"), SPI_fnumber(desc, "ready_mark")};
	Datum		values[3];
	bool		nulls[3] = {0};
	pg_uuid_t	root_id;
	bool		sequential;
	Call		call;
	PlanRow    *plan;

	if (LacksRequired(tuple, desc))
		return TriggerPass(trigger);
	step = StepFromTuple(tuple, desc);
	CheckInsertedStep(step);
	CheckInsertedTexts(tuple, desc);
	tenant = TextDatumGetCString(SPI_getbinval(tuple, desc, SPI_fnumber(desc, "tenant"), &isnull));
	CheckTenantOfInsert(trigger, tenant, step);
	CheckInsertedId(tenant, step);
	CallBeginIn(&call, tenant);
	plan = PlanMustRead(&call, &step->plan_id);
	root_id = plan->root_id;
	sequential = plan->sequential;
	CallEnd(&call, NULL);
	values[0] = UUIDPGetDatum(&root_id);
	values[1] = Int32GetDatum(sequential ? step->order - 1 : 0);
	values[2] = BoolGetDatum(true);
	nulls[2] = sequential;
	return PointerGetDatum(heap_modify_tuple_by_cols(tuple, desc, 3, numbers, values, nulls));
}

/* Check and stamp a step that raw SQL writes; fires before each row. */
PG_FUNCTION_INFO_V1(stepwise_step_guard);
Datum
stepwise_step_guard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = TriggerOf(fcinfo);

	if (EngineWrites())
		return TriggerPass(trigger);
	if (TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
	{
		if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
			return RawUpdate(trigger, StatementNow(fcinfo->flinfo));
		if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event))
			return RestoreMayInsert() ? TriggerPass(trigger) : RawInsert(trigger);
	}
	RefuseByHand(trigger);
	return (Datum) 0;
}

/* ---------- after a statement on steps ---------- */

/* one row that a raw statement has written */
typedef struct RawChange
{
	char	   *tenant;
	StepRow    *old;			/* NULL if the row was inserted */
	StepRow    *new;
} RawChange;

/*
 * Order changes by tenant, then by tree, so that roots are locked in the order
 * of their ids. Within a tree, a nested plan comes before the plan of its
 * parent step: it is newer, and ids grow with time.
 */
static int
RawChangeCompare(const ListCell *a, const ListCell *b)
{
	const RawChange *x = lfirst(a);
	const RawChange *y = lfirst(b);
	int			result = strcmp(x->tenant, y->tenant);

	if (result == 0)
		result = memcmp(&x->new->root_id, &y->new->root_id, UUID_LEN);
	if (result == 0)
		result = memcmp(&y->new->plan_id, &x->new->plan_id, UUID_LEN);
	if (result == 0)
		result = x->new->order - y->new->order;
	return result;
}

/* Read the next row of a transition table; NULL at its end or if there is no table. */
static HeapTuple
NextTuple(Tuplestorestate *store, TupleTableSlot *slot)
{
	if (store == NULL || !tuplestore_gettupleslot(store, true, false, slot))
		return NULL;
	return ExecCopySlotHeapTuple(slot);
}

/*
 * Collect the changes of a statement. The transition tables are filled row by
 * row in the same order, so rows at the same position belong together. Rows
 * that did not change are left out.
 */
static List *
RawChanges(const TriggerData *trigger)
{
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	List	   *changes = NIL;
	HeapTuple	new;

	while ((new = NextTuple(trigger->tg_newtable, slot)) != NULL)
	{
		HeapTuple	old = NextTuple(trigger->tg_oldtable, slot);

		if (old == NULL || !SameValues(old, new, desc))
		{
			RawChange  *change = palloc0(sizeof(RawChange));
			bool		isnull;

			change->tenant = TextDatumGetCString(SPI_getbinval(new, desc, SPI_fnumber(desc, "tenant"), &isnull));
			change->old = old ? StepFromTuple(old, desc) : NULL;
			change->new = StepFromTuple(new, desc);
			changes = lappend(changes, change);
		}
		heap_freetuple(new);
		if (old != NULL)
			heap_freetuple(old);
	}
	ExecDropSingleTupleTableSlot(slot);
	list_sort(changes, RawChangeCompare);
	return changes;
}

/* Refuse a change of a step whose state and result its nested plan decides. */
static void
CheckNoNestedPlan(Call *call, const StepRow *step)
{
	pg_uuid_t	nested;

	if (StepNests(step) && (step->status == STEP_COMPLETED || step->status == STEP_AWAITING_INPUT) &&
		NestedPlanId(call, &step->id, &nested))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" runs workflow \"%s\" and cannot be set %s by hand", step->name, step->workflow,
						StepStatusName[step->status]),
				 errdetail("Its state and its result are what its nested plan makes."),
				 errhint("%s", StepHint(call, step, "stepwise.get_next_step(root_id) hands out the steps of the nested plan; stepwise.skip_step(step_id) ends it."))));
}

/* Note in the root that a claim has a lease. Expired leases are searched only in trees with this mark. */
static void
NoteLease(Call *call, PlanRow *root, const StepRow *step)
{
	if (!TimeIsSet(step->lease_expires_at) || root->leases)
		return;
	root->leases = true;
	PlanTouch(root);
}

/* Find the column with the time of a move; NULL if the move sets none. */
static TimestampTz *
StampOf(StepRow *step, StepStatus from)
{
	if (TimeIsSet(step->completed_at))
		return &step->completed_at;
	if (step->status == STEP_IN_PROGRESS && from != STEP_AWAITING_INPUT)
		return &step->started_at;
	return NULL;
}

/*
 * Stamp a row again if its plan has changed since. The row was stamped before
 * the plan was locked, and a step must not move before an earlier change of
 * its plan. Returns true if the row has changed.
 */
static bool
RestampInPlan(Call *call, const PlanRow *plan, StepRow *step, StepStatus from)
{
	TimestampTz *stamp = StampOf(step, from);

	if (stamp == NULL)
		return false;
	call->now = Max(call->now, *stamp);
	if (*stamp == CallNow(call, plan))
		return false;
	*stamp = CallNow(call, plan);
	return true;
}

/* Count and audit a step that raw SQL has updated. */
static void
RawMoved(Call *call, PlanRow *plan, RawChange *change)
{
	PlanCheckOpen(call, plan);
	CheckNoNestedPlan(call, change->new);
	NoteLease(call, plan->root, change->new);
	StepWasAs(change->new, change->old);
	change->new->given_up = true;
	if (change->old->status != change->new->status)
	{
		bool		stamped = StepStampInPlan(call, plan, change->new);

		if (RestampInPlan(call, plan, change->new, change->old->status) || stamped)
			StepSave(call, change->new);
		StepMoved(call, plan, change->new, change->old->status, NULL);
		return;
	}
	AuditAppend(call, plan, &change->new->id, "plan_modified", JsonTextOf("action", "update_by_hand"));
}

/* Refuse inserted steps that leave gaps in the step orders, or exceed the number of steps. */
static void
CheckOrders(Call *call, const PlanRow *plan)
{
	static KeptQuery count = {
		"SELECT pg_catalog.count(*)::int, pg_catalog.max(s.step_order) FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &count, &plan->id);

	if (RowInt(&rows, 0, 1) != RowInt(&rows, 0, 2))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("step orders of plan \"%s\" would have holes", plan->name),
				 errhint("The next step_order is one more than the number of steps.")));
	if (RowInt(&rows, 0, 1) > MaxSteps)
		ereport(ERROR,
				(errcode(ERRCODE_VALUE_TOO_LARGE),
				 errmsg("plan \"%s\" would have more than %d steps", plan->name, MaxSteps),
				 errhint("Put parts of the work into workflows of their own, and nest them.")));
}

/* Count and audit a step that raw SQL has inserted. */
static void
RawInserted(Call *call, PlanRow *plan, RawChange *change)
{
	JsonBuilder b = {0};

	plan->counts[STEP_PENDING]++;
	plan->next_order = Min(plan->next_order, change->new->order);
	plan->workable = true;
	plan->ready_marks = plan->ready_marks || change->new->ready_mark;
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", "add_steps");
	JsonPutText(&b, "name", change->new->name);
	JsonObjectEnd(&b);
	AuditAppend(call, plan, &change->new->id, "plan_modified", JsonFinish(&b));
}

/* Lock the plan of a change. Check it if steps were inserted; updates are checked one by one. */
static PlanRow *
RawPlan(Call *call, const RawChange *change)
{
	PlanRow    *plan = PlanLock(call, &change->new->plan_id);

	if (change->old == NULL)
	{
		PlanCheckModifiable(call, plan);
		CheckOrders(call, plan);
	}
	return plan;
}

/*
 * Handle the changes from..to, which belong to one tenant. Handle all rows
 * before any plan is settled: the end of a nested plan may move steps that the
 * statement has moved too.
 */
static void
RawSettle(List *changes, int from, int to)
{
	Call		call;
	PlanRow    *plan = NULL;
	List	   *plans = NIL;
	ListCell   *cell;

	CallBeginIn(&call, ((RawChange *) list_nth(changes, from))->tenant);
	for (int i = from; i < to; i++)
	{
		RawChange  *change = list_nth(changes, i);

		if (plan == NULL || !UuidEqual(&plan->id, &change->new->plan_id))
		{
			plan = RawPlan(&call, change);
			plans = lappend(plans, plan);
		}
		if (change->old == NULL)
			RawInserted(&call, plan, change);
		else
			RawMoved(&call, plan, change);
	}
	foreach(cell, plans)
		PlanSettle(&call, lfirst(cell));
	CallEnd(&call, NULL);
}

/* Count, audit and settle what raw SQL has written to steps; fires after the statement. */
PG_FUNCTION_INFO_V1(stepwise_steps_changed);
Datum
stepwise_steps_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = TriggerOf(fcinfo);
	MemoryContext context;
	MemoryContext outer;
	List	   *changes;
	int			from = 0;

	if (EngineWrites() || (TRIGGER_FIRED_BY_INSERT(trigger->tg_event) && RestoreMayInsert()))
		return PointerGetDatum(NULL);
	context = AllocSetContextCreate(CurrentMemoryContext, "stepwise raw changes", ALLOCSET_DEFAULT_SIZES);
	outer = MemoryContextSwitchTo(context);
	changes = RawChanges(trigger);
	for (int to = 1; to <= list_length(changes); to++)
	{
		RawChange  *first = list_nth(changes, from);
		RawChange  *next = to < list_length(changes) ? list_nth(changes, to) : NULL;

		if (next && strcmp(first->tenant, next->tenant) == 0)
			continue;
		RawSettle(changes, from, to);
		from = to;
	}
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(context);
	return PointerGetDatum(NULL);
}

/*
 * Refuse every write to the audit log except those of the engine and of a
 * restore, and every write through the view.
 */
PG_FUNCTION_INFO_V1(stepwise_audit_guard);
Datum
stepwise_audit_guard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = TriggerOf(fcinfo);

	if (TRIGGER_FIRED_INSTEAD(trigger->tg_event) ||
		(!EngineWrites() && !(TRIGGER_FIRED_BY_INSERT(trigger->tg_event) && RestoreMayInsert())))
		ereport(ERROR,
				(errcode(ERRCODE_AUDIT_IMMUTABLE),
				 errmsg("the audit log is append-only, and only the engine appends"),
				 errhint("Entries are written by the functions of pg_stepwise; CALL stepwise.purge(before) removes those of finished plans.")));
	return TriggerPass(trigger);
}
