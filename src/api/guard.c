/*
 * guard.c
 *	  triggers for raw SQL on the tables of plans and steps
 *
 * The engine's own statements pass at once, and what it writes without a
 * statement (table.c) comes past no trigger. A plain UPDATE of steps comes in
 * twice: before each row, to be checked and stamped like any move, and after
 * the statement, to be counted, audited and settled once per plan. Rows that
 * a restore inserts pass as they are, as long as the engine has not been used
 * in this database.
 *
 * Locks: raw SQL holds its step rows before the plan; at worst that ends in
 * PostgreSQL's own deadlock error.
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

PG_FUNCTION_INFO_V1(stepwise_audit_guard);
PG_FUNCTION_INFO_V1(stepwise_engine_guard);
PG_FUNCTION_INFO_V1(stepwise_step_guard);
PG_FUNCTION_INFO_V1(stepwise_steps_changed);

/* columns of a step that raw SQL may set; the engine keeps the others */
static const char *const RawColumns[] = {
	"status", "outcome", "result", "result_summary", "confidence", "execution_report", "output_formatting_notes",
	"message", "worker", "lease_expires_at", "started_at", "completed_at", "active_at"
};

/* ---------- common ---------- */

/* Until the engine first writes, rows may come from a restore. */
bool
RestoreMayInsert(void)
{
	Call		call;
	bool		used;

	CallBeginIn(&call, "");
	used = EngineUsed();
	CallEnd(&call, NULL);
	return !used;
}

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

/* Let an UPDATE that changes nothing pass: tools do that. */
static bool
ChangesNothing(const TriggerData *trigger)
{
	return SameValues(trigger->tg_trigtuple, trigger->tg_newtuple, RelationGetDescr(trigger->tg_relation));
}

/* A row that lacks what must not be null is refused by the table itself, right after us. */
static bool
LacksRequired(HeapTuple tuple, TupleDesc desc)
{
	for (int i = 1; i <= desc->natts; i++)
		if (TupleDescAttr(desc, i - 1)->attnotnull && heap_attisnull(tuple, i, desc))
			return true;
	return false;
}

/* For tables that only the engine writes. */
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

/* An infinite time cannot be reckoned with: one claim that has it would stop the reclaiming of all. */
static void
CheckFinite(TimestampTz time, const char *column)
{
	if (TIMESTAMP_NOT_FINITE(time))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("%s must be a finite time", column),
				 errhint("Set it to null if there is none.")));
}

/* The limits of the functions are those of plain SQL too. */
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
					 errhint("Plain SQL may set the status of a step and what it achieved; stepwise.modify_plan changes what it does.")));
		if (!new_null)
			CheckRawValue(NameStr(att->attname), att->atttypid, new_value);
	}
}

static void
CheckStepNotFinal(const StepRow *step)
{
	if (step->status == STEP_COMPLETED || step->status == STEP_SKIPPED)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" is %s, and final", step->name, StepStatusName[step->status]),
				 errdetail("Its result is in the audit chain."),
				 errhint("Add a step with stepwise.modify_plan to do more work.")));
}

/* What its nested plan decides is not set by hand; to end the step, or to retry it, is free. */
static void
CheckNotHeld(const StepRow *step, StepStatus to)
{
	if (StepNests(step) && to != STEP_FAILED && to != STEP_SKIPPED &&
		!(to == STEP_PENDING && step->status == STEP_FAILED))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" runs workflow \"%s\" and cannot be set to %s by hand", step->name, step->workflow,
						StepStatusName[to]),
				 errdetail("Its state is what its nested plan makes."),
				 errhint("stepwise.get_next_step(plan_id) opens the nested plan and hands out its steps.")));
}

/* Only a step that is in progress has a claim, so only it has a lease; never one that holds a nested plan. */
static void
CheckLease(const StepRow *step)
{
	if (TimeIsSet(step->lease_expires_at) && (step->status != STEP_IN_PROGRESS || StepNests(step)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" %s, and cannot have a lease", step->name,
						StepNests(step) ? "runs a workflow" : psprintf("is %s", StepStatusName[step->status])),
				 errhint("Claim the step with stepwise.get_next_step(plan_id, worker, lease).")));
}

/* Put the stamps into the row that is about to be written. */
static HeapTuple
StampedTuple(const TriggerData *trigger, HeapTuple tuple, const StepRow *step)
{
	static const char *const columns[] = {
		"outcome", "attempt", "ready", "started_at", "completed_at", "active_at", "lease_expires_at", "worker", "holder",
		"message", "pause_reason", "error"
	};
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	int			numbers[lengthof(columns)];
	Datum		values[lengthof(columns)];
	bool		nulls[lengthof(columns)] = {0};
	Params		params = {0};

	ParamDatum(&params, ObjectIdGetDatum(EnumValue("outcome", OutcomeName[step->outcome])));
	ParamInt(&params, step->attempt);
	if (step->ready)
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
	for (size_t i = 0; i < lengthof(columns); i++)
	{
		numbers[i] = SPI_fnumber(desc, columns[i]);
		values[i] = params.values[i];
		nulls[i] = params.nulls[i] == 'n';
	}
	return heap_modify_tuple_by_cols(tuple, desc, lengthof(columns), numbers, values, nulls);
}

/* Say when the rows of a statement move: all at once. What a trigger keeps lives as long as the statement. */
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
	CheckNotHeld(old, to);
	new->status = old->status;
	StepStamp(new, to, now);
	return PointerGetDatum(StampedTuple(trigger, trigger->tg_newtuple, new));
}

static void
CheckInsertedStep(const StepRow *step)
{
	if (step->status != STEP_PENDING || step->outcome != OUTCOME_NA || step->attempt != 0 || step->execution_order != 0 ||
		TimeIsSet(step->started_at) || TimeIsSet(step->completed_at) || TimeIsSet(step->active_at) ||
		TimeIsSet(step->lease_expires_at) || step->worker || step->holder ||
		step->result || step->message || step->pause_reason || step->inputs || step->error || step->blockers != 0 || step->branches)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" cannot begin as %s%s", step->name, StepStatusName[step->status],
						step->status == STEP_PENDING ? " with what only the engine sets" : ""),
				 errdetail("A step begins pending, and has done nothing yet."),
				 errhint("Add steps with stepwise.modify_plan(plan_id, 'add_steps', params).")));
}

/* What is inserted by hand has a UTF-8 form, like what the functions take. */
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
 * Refuse a step for another tenant's plan as one for a plan that does not
 * exist. The policy is applied only after this trigger, and would tell the two
 * apart. A role that policies do not bind may see every plan anyway.
 */
static void
CheckTenantOfInsert(const TriggerData *trigger, const char *tenant, const StepRow *step)
{
	if (check_enable_rls(RelationGetRelid(trigger->tg_relation), InvalidOid, true) == RLS_ENABLED &&
		strcmp(tenant, TenantOfCaller()) != 0)
		PlanNotFound(&step->plan_id);
}

/* Fill in what the plan knows of a step that was inserted by hand. */
static Datum
RawInsert(const TriggerData *trigger)
{
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	HeapTuple	tuple = trigger->tg_trigtuple;
	StepRow    *step;
	char	   *tenant;
	bool		isnull;
	int			numbers[] = {SPI_fnumber(desc, "root_id"), SPI_fnumber(desc, "wave"), SPI_fnumber(desc, "ready")};
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
	StepRow    *old;			/* NULL: inserted */
	StepRow    *new;
} RawChange;

/*
 * By tenant, then tree: so that roots are locked in the order of their ids. In
 * a tree a nested plan, which is newer, before the step that holds it.
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

/* Read the next row of a transition table; NULL at its end, or if there is no such table. */
static HeapTuple
NextTuple(Tuplestorestate *store, TupleTableSlot *slot)
{
	if (store == NULL || !tuplestore_gettupleslot(store, true, false, slot))
		return NULL;
	return ExecCopySlotHeapTuple(slot);
}

/* Pair the transition tables: both are filled row by row, in one order. Rows that are as before are no change. */
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

/* What a nested plan makes of its step is not said by hand. */
static void
CheckNotHolding(Call *call, const StepRow *step)
{
	pg_uuid_t	nested;

	if (StepNests(step) && (step->status == STEP_COMPLETED || step->status == STEP_AWAITING_INPUT) &&
		NestedPlanId(call, &step->id, &nested))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" runs workflow \"%s\" and cannot be set %s by hand", step->name, step->workflow,
						StepStatusName[step->status]),
				 errdetail("Its state and its result are what its nested plan makes."),
				 errhint("Move the steps of the nested plan; a step that is skipped or failed ends its nested plan.")));
}

/* Claims with a lease are looked for only where there are any. */
static void
NoteLease(Call *call, PlanRow *root, const StepRow *step)
{
	if (!TimeIsSet(step->lease_expires_at) || root->leases)
		return;
	root->leases = true;
	PlanTouch(root);
}

/* Find the time that a move has left on its row; NULL: none. */
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
 * The row was stamped before its plan was locked: if the plan has changed in
 * between, the step has moved after that. True if that changed the row.
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

static void
RawMoved(Call *call, PlanRow *plan, RawChange *change)
{
	PlanCheckOpen(plan);
	CheckNotHolding(call, change->new);
	NoteLease(call, plan->root, change->new);
	change->new->was_paused = change->old->pause_reason != NULL;
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
				 errmsg("plan \"%s\" would have more than %d steps", plan->name, MaxSteps)));
}

static void
RawInserted(Call *call, PlanRow *plan, RawChange *change)
{
	JsonBuilder b = {0};

	plan->counts[STEP_PENDING]++;
	plan->next_order = Min(plan->next_order, change->new->order);
	plan->workable = true;
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", "add_steps");
	JsonPutText(&b, "name", change->new->name);
	JsonObjectEnd(&b);
	AuditAppend(call, plan, &change->new->id, "plan_modified", JsonFinish(&b));
}

static PlanRow *
RawPlan(Call *call, const RawChange *change)
{
	PlanRow    *plan = PlanLock(call, &change->new->plan_id);

	if (change->old == NULL)
	{
		PlanCheckModifiable(plan);
		CheckOrders(call, plan);
	}
	return plan;
}

/*
 * Handle the changes in one tenant. First all of them, then what follows: the
 * end of a nested plan may move steps that the statement has moved too.
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

/* Refuse every write to the log that is not the engine's, nor a restore's. */
Datum
stepwise_audit_guard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = TriggerOf(fcinfo);

	if (!EngineWrites() && !(TRIGGER_FIRED_BY_INSERT(trigger->tg_event) && RestoreMayInsert()))
		ereport(ERROR,
				(errcode(ERRCODE_AUDIT_IMMUTABLE),
				 errmsg("the audit log is append-only, and only the engine appends"),
				 errhint("Entries are written by the functions of pg_stepwise; CALL stepwise.purge(before) removes those of finished plans.")));
	return TriggerPass(trigger);
}
