/*
 * table.c
 *	  read and write rows of our own tables by index, without the executor
 *
 * This is for the few rows that every call reads and writes. A kept SPI plan
 * starts and ends the executor each time, which costs several times as much as
 * the row. The rows are those that a statement would see: under a new snapshot
 * (in READ COMMITTED), or under the snapshot of a call that only reads. Rows
 * are locked as by FOR NO KEY UPDATE, and transactions that are read-only or
 * cannot be serialized get the usual errors. Predicate locks are taken too.
 *
 * A call opens each table and index once. A caller may tell where it has last
 * seen a row; if the row is still there, no index is searched.
 *
 * What an UPDATE does and this does not: CHECK constraints (the engine keeps
 * to them, and store.c verifies), policies (they do not apply to the owner),
 * and row triggers (ours let the engine pass). If a user has added a trigger,
 * a foreign key, a rule, a CHECK, a generated column or an index to a table,
 * its rows are written by a statement instead.
 */
#include "base/base.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_collation_d.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* ---------- keys ---------- */

static void
KeyAdd(Key *key, StrategyNumber strategy, Oid collation, RegProcedure function, Datum value)
{
	if (key->count >= KEY_MAX_COLUMNS)
		elog(ERROR, "key has more than %d columns", KEY_MAX_COLUMNS);
	ScanKeyEntryInitialize(&key->columns[key->count], 0, key->count + 1, strategy, InvalidOid, collation, function, value);
	key->count++;
}

/* Add a text column to a key, as a Datum. */
void
KeyText(Key *key, Datum value)
{
	KeyAdd(key, BTEqualStrategyNumber, C_COLLATION_OID, F_TEXTEQ, value);
}

/* Add a UUID column to a key. */
void
KeyUuid(Key *key, const pg_uuid_t *value)
{
	KeyAdd(key, BTEqualStrategyNumber, InvalidOid, F_UUID_EQ, UUIDPGetDatum(value));
}

/* Add an int4 column to a key. */
void
KeyInt(Key *key, int value)
{
	KeyAdd(key, BTEqualStrategyNumber, InvalidOid, F_INT4EQ, Int32GetDatum(value));
}

/* Add an int4 column to a key, from this value up. */
void
KeyIntFrom(Key *key, int value)
{
	KeyAdd(key, BTGreaterEqualStrategyNumber, InvalidOid, F_INT4GE, Int32GetDatum(value));
}

/* ---------- open tables ---------- */

/*
 * Tables and indexes stay open until the end of the call, since a call comes
 * back to the same few of them.
 */
typedef struct Opened
{
	Relation	relation;
	LOCKMASK	locked;			/* modes in which it is locked, a bit for each */
} Opened;

/* Find a table or index that the call has opened; NULL: it has not. */
static Opened *
OpenedFind(const Call *call, Oid relid)
{
	ListCell   *cell;

	foreach(cell, call->opened)
	{
		Opened	   *opened = lfirst(cell);

		if (RelationGetRelid(opened->relation) == relid)
			return opened;
	}
	return NULL;
}

/* Remember a table or index that was opened and locked in this mode. */
static Relation
OpenedKeep(Call *call, Relation relation, LOCKMODE lockmode)
{
	MemoryContext current = MemoryContextSwitchTo(call->context);
	Opened	   *opened = palloc(sizeof(Opened));

	opened->relation = relation;
	opened->locked = LOCKBIT_ON(lockmode);
	call->opened = lappend(call->opened, opened);
	MemoryContextSwitchTo(current);
	return relation;
}

/*
 * Lock a table or index, and open it. While we wait for the lock, the extension
 * may be dropped and created again; so look up the name again.
 */
static Relation
OpenLocked(const char *name, LOCKMODE lockmode)
{
	for (;;)
	{
		Oid			relid = TableOid(name);

		LockRelationOid(relid, lockmode);
		if (TableOid(name) == relid)
			return relation_open(relid, NoLock);
		UnlockRelationOid(relid, lockmode);
	}
}

/* Open a table or index in a mode, if the call has not done that yet. */
static Relation
Open(Call *call, const char *name, LOCKMODE lockmode)
{
	Opened	   *opened = OpenedFind(call, TableOid(name));

	if (opened == NULL)
		return OpenedKeep(call, OpenLocked(name, lockmode), lockmode);
	if ((opened->locked & LOCKBIT_ON(lockmode)) == 0)
		LockRelationOid(RelationGetRelid(opened->relation), lockmode);
	opened->locked |= LOCKBIT_ON(lockmode);
	return opened->relation;
}

/* Close the tables and indexes of a call. Their locks stay until the end of the transaction. */
void
TablesClose(Call *call)
{
	ListCell   *cell;

	foreach(cell, call->opened)
		relation_close(((Opened *) lfirst(cell))->relation, NoLock);
	call->opened = NIL;
}

/* ---------- reading ---------- */

/*
 * Take the snapshot of a statement: it shows what is committed by now and what
 * we have written. A call that only reads keeps its snapshot.
 */
static Snapshot
SnapshotNow(bool reading)
{
	if (reading)
		return GetActiveSnapshot();
	CommandCounterIncrement();
	return GetTransactionSnapshot();
}

/* Open a table and push a snapshot, as a statement does. */
static Relation
Begin(Call *call, const char *table, LOCKMODE lockmode)
{
	Relation	relation;

	if (call->reading && lockmode != AccessShareLock)
		elog(ERROR, "table %s cannot be written by a call that only reads", table);
	relation = Open(call, table, lockmode);
	if (RelationGetDescr(relation)->natts > TABLE_MAX_COLUMNS)
		elog(ERROR, "table %s has too many columns", table);
	PushActiveSnapshot(SnapshotNow(call->reading));
	return relation;
}

static void
End(void)
{
	PopActiveSnapshot();
}

static void
CheckWritable(const char *command)
{
	PreventCommandIfReadOnly(command);
	PreventCommandIfParallelMode(command);
}

static void
RefuseConcurrentUpdate(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to concurrent update")));
}

/* Begin an index scan of a key; rows come in the order of the index. */
static IndexScanDesc
ScanBegin(Relation relation, const char *index, Key *key)
{
	IndexScanDesc scan = IndexBeginScan(relation, Open(key->call, index, AccessShareLock), GetActiveSnapshot(), key->count);

	index_rescan(scan, key->columns, key->count, NULL, 0);
	return scan;
}

static bool
ScanNext(IndexScanDesc scan, TupleTableSlot *slot)
{
	CHECK_FOR_INTERRUPTS();
	return index_getnext_slot(scan, ForwardScanDirection, slot);
}

/* Check whether a row has the key, which is that of the first columns of the table. */
static bool
HasKey(TupleTableSlot *slot, Key *key)
{
	for (int i = 0; i < key->count; i++)
	{
		ScanKey		column = &key->columns[i];
		bool		isnull;
		Datum		value = slot_getattr(slot, i + 1, &isnull);

		if (isnull || !DatumGetBool(FunctionCall2Coll(&column->sk_func, column->sk_collation, value, column->sk_argument)))
			return false;
	}
	return true;
}

/*
 * Fetch the row from the place where it was last seen. Returns false if it is
 * not there any more, or was updated since.
 */
static bool
FetchPlace(Relation relation, Key *key, TupleTableSlot *slot)
{
	return table_tuple_fetch_row_version(relation, &key->place, GetActiveSnapshot(), slot) && HasKey(slot, key);
}

/*
 * Prepare to fetch a row from a place that an earlier transaction has seen.
 * Since then the table may have become shorter. An index scan prunes the page
 * that it comes to; so do we, or the page would never be pruned.
 */
static bool
PreparePlace(Relation relation, const Key *key)
{
	Buffer		buffer;

	if (!ItemPointerIsValid(&key->place) || relation->rd_tableam != GetHeapamTableAmRoutine() ||
		ItemPointerGetBlockNumber(&key->place) >= RelationGetNumberOfBlocks(relation))
		return false;
	buffer = ReadBuffer(relation, ItemPointerGetBlockNumber(&key->place));
	heap_page_prune_opt(relation, buffer);
	ReleaseBuffer(buffer);
	return true;
}

/* Find the first row of a key that passes the test; NULL: none. */
static TupleTableSlot *
Seek(Relation relation, const char *index, Key *key, TupleTest test, const void *arg)
{
	TupleTableSlot *slot = table_slot_create(relation, NULL);
	IndexScanDesc scan;
	bool		found;

	if (PreparePlace(relation, key) && FetchPlace(relation, key, slot) && (test == NULL || test(slot, arg)))
		return slot;
	scan = ScanBegin(relation, index, key);
	do
		found = ScanNext(scan, slot);
	while (found && test != NULL && !test(slot, arg));
	index_endscan(scan);
	if (found)
		return slot;
	ExecDropSingleTupleTableSlot(slot);
	return NULL;
}

/*
 * Lock the row in the slot, and read it again. Returns false if the row is
 * gone, or if it is locked and we do not wait.
 */
static bool
Lock(Relation relation, TupleTableSlot *slot, LockWaitPolicy wait)
{
	ItemPointerData tid = slot->tts_tid;
	uint8		flags = TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS;
	TM_FailureData failure;
	TM_Result	result;

	if (!IsolationUsesXactSnapshot())
		flags |= TUPLE_LOCK_FLAG_FIND_LAST_VERSION;
	result = table_tuple_lock(relation, &tid, GetActiveSnapshot(), slot, GetCurrentCommandId(false),
							  LockTupleNoKeyExclusive, wait, flags, &failure);
	if (result == TM_Updated || (result == TM_Deleted && IsolationUsesXactSnapshot()))
		RefuseConcurrentUpdate();
	if (result != TM_Ok && result != TM_Deleted && result != TM_WouldBlock)
		elog(ERROR, "row of table %s could not be locked", RelationGetRelationName(relation));
	return result == TM_Ok;
}

static void *
MakeRow(Relation relation, TupleTableSlot *slot, TupleMake make)
{
	return make(ExecFetchSlotHeapTuple(slot, false, NULL), RelationGetDescr(relation));
}

/* Read the first row of a key that passes the test; NULL: none. */
void *
TableRead(const char *table, const char *index, Key *key, TupleTest test, const void *arg, TupleMake make)
{
	Relation	relation = Begin(key->call, table, AccessShareLock);
	TupleTableSlot *slot = Seek(relation, index, key, test, arg);
	void	   *row = NULL;

	if (slot != NULL)
	{
		row = MakeRow(relation, slot, make);
		ExecDropSingleTupleTableSlot(slot);
	}
	End();
	return row;
}

/* Read all rows of a key. Rows for which "make" returns NULL are left out. */
List *
TableReadAll(const char *table, const char *index, Key *key, TupleMake make)
{
	Relation	relation = Begin(key->call, table, AccessShareLock);
	IndexScanDesc scan = ScanBegin(relation, index, key);
	TupleTableSlot *slot = table_slot_create(relation, NULL);
	List	   *rows = NIL;

	while (ScanNext(scan, slot))
	{
		void	   *row = MakeRow(relation, slot, make);

		if (row != NULL)
			rows = lappend(rows, row);
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	End();
	return rows;
}

/*
 * Lock the first row of a key that passes the test, and read it; NULL: none.
 * The test must be about columns that never change, because it is not repeated
 * after a wait.
 */
void *
TableLock(const char *table, const char *index, Key *key, TupleTest test, const void *arg, TupleMake make, bool wait)
{
	Relation	relation;
	TupleTableSlot *slot;
	void	   *row = NULL;

	CheckWritable("SELECT FOR NO KEY UPDATE");
	relation = Begin(key->call, table, RowShareLock);
	slot = Seek(relation, index, key, test, arg);
	if (slot != NULL)
	{
		if (Lock(relation, slot, wait ? LockWaitBlock : LockWaitSkip))
			row = MakeRow(relation, slot, make);
		ExecDropSingleTupleTableSlot(slot);
	}
	End();
	return row;
}

/* ---------- writing by a statement ---------- */

/* cached answers of Judge, until a table changes */
static struct
{
	Oid			relid;
	bool		altered;
}			judged[64];

static void
JudgedForget(Datum arg, Oid relid)
{
	for (size_t i = 0; i < lengthof(judged); i++)
		if (relid == InvalidOid || judged[i].relid == relid)
			judged[i].relid = InvalidOid;
}

/* Register the invalidation callback. */
void
TableInit(void)
{
	CacheRegisterRelcacheCallback(JudgedForget, (Datum) 0);
}

/* keys that foreign keys may refer to, or that are checked at the end of a statement; we never change their columns */
static const char *const FixedKeys[] = {"plan_pkey", "step_pkey", "step_order_unique"};

/*
 * Check whether a trigger can be left out: it is ours, or it is internal and
 * watches a key that we never change.
 */
static bool
TriggerIsHarmless(const Trigger *trigger, Relation relation)
{
	const char *key;

	if (!trigger->tgisinternal)
		return get_func_namespace(trigger->tgfoid) == RelationGetNamespace(relation);
	key = get_rel_name(trigger->tgconstrindid);
	return RI_FKey_trigger_type(trigger->tgfoid) != RI_TRIGGER_FK && key != NULL &&
		NameIndex(key, FixedKeys, lengthof(FixedKeys)) >= 0;
}

static bool
CheckIsOurs(const ConstrCheck *check)
{
	return strcmp(check->ccname, "plan_outcome") == 0 || strcmp(check->ccname, "step_outcome") == 0;
}

/*
 * Functions that an index calls (in expressions, domains or operator classes)
 * would run as the owner, and with the caller's search path. Our own indexes
 * call none, so it is enough to know their names; test/run compares this list
 * with the script that creates them.
 */
static const char *const OurIndexes[] = {
	"plan_pkey", "plan_open", "plan_finished", "plan_nested", "plan_parent_step", "plan_workable", "plan_idempotency_key",
	"step_pkey", "step_order_unique", "step_name", "step_binding", "step_ready", "step_holder", "step_lease", "step_holds",
	"step_sent_back", "step_paused", "audit_chain"
};

static bool
IndexIsOurs(Oid index)
{
	const char *name = get_rel_name(index);

	return name != NULL && NameIndex(name, OurIndexes, lengthof(OurIndexes)) >= 0;
}

/*
 * Check whether a user has added something to a table. It works on copies,
 * because a catalog lookup may process an invalidation, which rebuilds the
 * relation.
 */
static bool
Judge(Relation relation)
{
	TriggerDesc *triggers = CopyTriggerDesc(relation->trigdesc);
	TupleDesc	desc = CreateTupleDescCopyConstr(RelationGetDescr(relation));
	const TupleConstr *constraints = desc->constr;
	ListCell   *cell;

	if (constraints != NULL && HasGeneratedColumns(constraints))
		return true;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
		if (!TriggerIsHarmless(&triggers->triggers[i], relation))
			return true;
	for (int i = 0; constraints != NULL && i < constraints->num_check; i++)
		if (!CheckIsOurs(&constraints->check[i]))
			return true;
	foreach(cell, RelationGetIndexList(relation))
		if (!IndexIsOurs(lfirst_oid(cell)))
		return true;
	return relation->rd_rules != NULL;
}

static bool
IsAltered(Relation relation)
{
	Oid			relid = RelationGetRelid(relation);
	size_t		i = relid % lengthof(judged);

	bool		altered;

	if (judged[i].relid == relid)
		return judged[i].altered;

	/*
	 * if Judge fails, the table counts as altered; if an invalidation clears the entry meanwhile, it is judged again
	 * next time
	 */
	judged[i].relid = relid;
	judged[i].altered = true;
	altered = Judge(relation);
	judged[i].altered = altered;
	return altered;
}

/*
 * Run a statement whose parameters are the columns to set and then the columns
 * of the key, if there is one.
 */
static void
StatementRun(Relation relation, const char *sql, const Changes *changes, const Key *key)
{
	TupleDesc	desc = RelationGetDescr(relation);
	Params		params = {0};
	Oid			types[QUERY_MAX_PARAMS] = {0};

	for (int i = 0; i < desc->natts; i++)
	{
		if (!changes->replaces[i])
			continue;
		if (changes->nulls[i])
			ParamNull(&params);
		else
			ParamDatum(&params, changes->values[i]);
		types[params.count - 1] = TupleDescAttr(desc, i)->atttypid;
	}
	for (int i = 0; key != NULL && i < key->count; i++)
	{
		ParamDatum(&params, key->columns[i].sk_argument);
		types[params.count - 1] = TupleDescAttr(desc, i)->atttypid;
	}
	if (QueryRunOnce(sql, types, &params) != 1)
		elog(ERROR, "row of table %s could not be saved", RelationGetRelationName(relation));
}

/*
 * Update a row by a statement. The key is that of the first columns, tenant
 * and id.
 */
static void
StatementUpdate(Relation relation, const Key *key, const Changes *changes)
{
	TupleDesc	desc = RelationGetDescr(relation);
	StringInfoData sql;
	int			set = 0;

	initStringInfo(&sql);
	appendStringInfo(&sql, "UPDATE stepwise.%s SET", quote_identifier(RelationGetRelationName(relation)));
	for (int i = 0; i < desc->natts; i++)
		if (changes->replaces[i])
		{
			appendStringInfo(&sql, "%s %s = $%d", set > 0 ? "," : "", quote_identifier(NameStr(TupleDescAttr(desc, i)->attname)), set + 1);
			set++;
		}
	if (key->count != 2)
		elog(ERROR, "key of table %s has %d columns", RelationGetRelationName(relation), key->count);
	appendStringInfo(&sql, " WHERE tenant = $%d AND id = $%d", set + 1, set + 2);
	StatementRun(relation, sql.data, changes, key);
}

/* Insert a row by a statement. */
static void
StatementInsert(Relation relation, const Changes *changes)
{
	TupleDesc	desc = RelationGetDescr(relation);
	StringInfoData names;
	StringInfoData sql;
	int			set = 0;

	initStringInfo(&names);
	initStringInfo(&sql);
	for (int i = 0; i < desc->natts; i++)
		if (changes->replaces[i])
		{
			appendStringInfo(&names, "%s%s", set > 0 ? ", " : "", quote_identifier(NameStr(TupleDescAttr(desc, i)->attname)));
			appendStringInfo(&sql, "%s$%d", set > 0 ? ", " : "", set + 1);
			set++;
		}
	StatementRun(relation, psprintf("INSERT INTO stepwise.%s (%s) VALUES (%s)",
									quote_identifier(RelationGetRelationName(relation)), names.data, sql.data), changes, NULL);
}

/* ---------- writing ---------- */

/* Add entries to the indexes of a table, as the executor does. */
static void
IndexesAdd(Relation relation, TupleTableSlot *slot, bool update, bool summaries)
{
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *info = makeNode(ResultRelInfo);

	InitResultRelInfo(info, relation, 0, NULL, 0);
	ExecOpenIndices(info, false);
	InsertIndexTuples(info, slot, estate, update, summaries);
	ExecCloseIndices(info);
	FreeExecutorState(estate);
}

/* Open an index by its id, in order to add entries. */
static Relation
IndexOpen(Call *call, Oid index)
{
	const Opened *opened = OpenedFind(call, index);

	if (opened != NULL && (opened->locked & LOCKBIT_ON(RowExclusiveLock)) != 0)
		return opened->relation;
	return OpenedKeep(call, index_open(index, RowExclusiveLock), RowExclusiveLock);
}

/* Check whether an index has an entry for every row, made of columns alone, and is checked at once. */
static bool
IndexIsPlain(Relation index)
{
	return index->rd_rel->relam == BTREE_AM_OID && index->rd_index->indisready && index->rd_index->indimmediate &&
		RelationGetIndexExpressions(index) == NIL && RelationGetIndexPredicate(index) == NIL;
}

/* Add the entry of a new row to a plain index. A B-tree needs no IndexInfo, as in toast_internals.c. */
static void
EntryAdd(Relation relation, Relation index, TupleTableSlot *slot)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	bool		unique = index->rd_index->indisunique;

	for (int i = 0; i < index->rd_index->indnatts; i++)
		values[i] = slot_getattr(slot, index->rd_index->indkey.values[i], &nulls[i]);
	index_insert(index, values, nulls, &slot->tts_tid, relation, unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false, NULL);
}

/* Add the entries of a new row. If all indexes are plain, this needs no executor. */
static void
EntriesAdd(Call *call, Relation relation, TupleTableSlot *slot)
{
	List	   *indexes = RelationGetIndexList(relation);
	ListCell   *cell;

	foreach(cell, indexes)
		if (!IndexIsPlain(IndexOpen(call, lfirst_oid(cell))))
		{
			IndexesAdd(relation, slot, false, false);
			return;
		}
	foreach(cell, indexes)
		EntryAdd(relation, IndexOpen(call, lfirst_oid(cell)), slot);
}

/* Find the row to be updated: where the call has seen it, or by its key. */
static TupleTableSlot *
SeekAgain(Relation relation, const char *index, Key *key)
{
	TupleTableSlot *slot;

	if (ItemPointerIsValid(&key->place))
	{
		slot = table_slot_create(relation, NULL);
		if (FetchPlace(relation, key, slot))
			return slot;
		ExecDropSingleTupleTableSlot(slot);
		ItemPointerSetInvalid(&key->place);
	}
	slot = Seek(relation, index, key, NULL, NULL);
	if (slot == NULL)
		elog(ERROR, "row of table %s could not be saved", RelationGetRelationName(relation));
	return slot;
}

/*
 * Refuse to set a column to null that is NOT NULL. A user may have declared
 * more of them.
 */
static void
CheckNotNulls(Relation relation, const Changes *changes)
{
	TupleDesc	desc = RelationGetDescr(relation);

	for (int i = 0; i < desc->natts; i++)
		if (changes->replaces[i] && changes->nulls[i] && TupleDescAttr(desc, i)->attnotnull)
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in column \"%s\" of relation \"%s\" violates not-null constraint",
							NameStr(TupleDescAttr(desc, i)->attname), RelationGetRelationName(relation)),
					 errtablecol(relation, i + 1)));
}

/*
 * Write the new version of a row. Returns false if the row was updated since
 * it was read.
 */
static bool
WriteVersion(Relation relation, TupleTableSlot *old, TupleTableSlot *new, Changes *changes, UpdateIndexes *indexes)
{
	HeapTuple	tuple = heap_modify_tuple(ExecFetchSlotHeapTuple(old, false, NULL), RelationGetDescr(relation),
										  changes->values, changes->nulls, changes->replaces);
	TM_FailureData failure;
	LockTupleMode mode;

	ExecStoreHeapTuple(tuple, new, true);
	return table_tuple_update(relation, &old->tts_tid, new, GetCurrentCommandId(true), GetActiveSnapshot(), InvalidSnapshot,
							  true, &failure, &mode, indexes) == TM_Ok;
}

static void
Update(Relation relation, TupleTableSlot *old, Changes *changes, ItemPointer place)
{
	TupleTableSlot *new = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsHeapTuple);
	UpdateIndexes indexes;

	CheckCmdReplicaIdentity(relation, CMD_UPDATE);
	CheckNotNulls(relation, changes);
	/* A concurrent update cannot conflict with ours, since we hold the tree lock; lock the new version and retry. */
	while (!WriteVersion(relation, old, new, changes, &indexes))
		if (IsolationUsesXactSnapshot() || !Lock(relation, old, LockWaitBlock))
			RefuseConcurrentUpdate();
	if (indexes != NO_INDEXES)
		IndexesAdd(relation, new, true, OnlySummaries(indexes));
	*place = new->tts_tid;
	ExecDropSingleTupleTableSlot(new);
}

/*
 * Update one row. The key is that of its first columns, tenant and id, and has
 * the place where the call has seen the row; afterwards it has the new place.
 */
void
TableUpdate(const char *table, const char *index, Key *key, Changes *changes)
{
	Relation	relation;
	TupleTableSlot *old;

	CheckWritable("UPDATE");
	relation = Begin(key->call, table, RowExclusiveLock);
	old = SeekAgain(relation, index, key);
	if (IsAltered(relation))
	{
		StatementUpdate(relation, key, changes);
		ItemPointerSetInvalid(&key->place);
	}
	else
		Update(relation, old, changes, &key->place);
	ExecDropSingleTupleTableSlot(old);
	End();
}

static void
Insert(Call *call, Relation relation, Changes *changes)
{
	TupleDesc	desc = RelationGetDescr(relation);
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsHeapTuple);

	CheckNotNulls(relation, changes);
	ExecStoreHeapTuple(heap_form_tuple(desc, changes->values, changes->nulls), slot, true);
	table_tuple_insert(relation, slot, GetCurrentCommandId(true), 0, NULL);
	EntriesAdd(call, relation, slot);
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * Insert one row. If a user has added a column, a statement fills in its
 * default.
 */
void
TableInsert(Call *call, const char *table, Changes *changes)
{
	Relation	relation;

	CheckWritable("INSERT");
	relation = Begin(call, table, RowExclusiveLock);
	if (IsAltered(relation) || !changes->replaces[RelationGetDescr(relation)->natts - 1])
		StatementInsert(relation, changes);
	else
		Insert(call, relation, changes);
	End();
}

/* ---------- what a write sets ---------- */

/* Set a column. */
void
SetDatum(Changes *c, int column, Datum value, bool isnull)
{
	if (column >= TABLE_MAX_COLUMNS)
		elog(ERROR, "row has no column %d", column + 1);
	c->values[column] = value;
	c->nulls[column] = isnull;
	c->replaces[column] = true;
}

/* Set an int4 column. */
void
SetInt(Changes *c, int column, int value)
{
	SetDatum(c, column, Int32GetDatum(value), false);
}

/* Set an int4 column that counts from 1; null for anything less. */
void
SetPositive(Changes *c, int column, int value)
{
	SetDatum(c, column, Int32GetDatum(value), value <= 0);
}

/* Set a boolean column. */
void
SetBool(Changes *c, int column, bool value)
{
	SetDatum(c, column, BoolGetDatum(value), false);
}

/* Set a boolean column that is true or null. */
void
SetTrue(Changes *c, int column, bool value)
{
	SetDatum(c, column, BoolGetDatum(true), !value);
}

/* Set a time column; NO_TIME for null. */
void
SetTime(Changes *c, int column, TimestampTz value)
{
	SetDatum(c, column, TimestampTzGetDatum(value), !TimeIsSet(value));
}

/* Set a UUID column; NULL for null. */
void
SetUuid(Changes *c, int column, const pg_uuid_t *value)
{
	SetDatum(c, column, UUIDPGetDatum(value), value == NULL);
}

/* Set a column of variable length; NULL for null. */
void
SetVarlena(Changes *c, int column, const void *value)
{
	SetDatum(c, column, PointerGetDatum(value), value == NULL);
}

/* Set a text column; NULL for null. */
void
SetText(Changes *c, int column, const char *value)
{
	SetVarlena(c, column, value ? cstring_to_text(value) : NULL);
}

/* Set an enum column by its label. */
void
SetEnum(Changes *c, int column, const char *type, const char *label)
{
	SetDatum(c, column, ObjectIdGetDatum(EnumValue(type, label)), false);
}
