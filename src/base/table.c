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
 * Ids are unique over all tenants, so most keys do not contain the tenant. Each
 * row that is found is compared with the tenant of the call, before it is
 * locked or returned (IsOurs). A row of another tenant is treated as if it did
 * not exist.
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
#include "commands/trigger.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* ---------- facts about tables ---------- */

#define INDEXES_MAX		16		/* of a table */
#define TESTS_MAX		2		/* in the predicate of an index */

/* what an index asks of a column of a row */
typedef struct ColumnTest
{
	AttrNumber	column;
	enum
	{
		COLUMN_IS_NULL,
		COLUMN_IS_NOT_NULL,
		COLUMN_IS_TRUE
	}			kind;
} ColumnTest;

/* how rows get into an index; this never changes while it exists */
typedef struct IndexFacts
{
	Oid			index;
	bool		plain;			/* a B-tree over columns, in use */
	bool		unique;
	int			ncolumns;
	AttrNumber	columns[KEY_MAX_COLUMNS];
	int			ntests;			/* all must hold for an entry; -1: the predicate is not understood */
	ColumnTest	tests[TESTS_MAX];
} IndexFacts;

/* what is known about a table, until it changes */
typedef struct Facts
{
	AttrNumber	tenant;			/* number of its column tenant */
	RowForm		form;			/* how its columns are stored */
	bool		judged;			/* has Judge been asked? */
	bool		altered;		/* its answer */
	bool		indexed;		/* have its indexes been read? */
	int			nindexes;		/* -1: too many */
	IndexFacts	indexes[INDEXES_MAX];
} Facts;

#define FACTS	16				/* more than the engine has tables that it reads here */

static Facts facts[FACTS];
static Oid	factual[FACTS];		/* their tables; apart from them, since this is searched often */

static void
FactsForget(Datum arg, Oid relid)
{
	for (int i = 0; i < FACTS; i++)
		if (relid == InvalidOid || factual[i] == relid)
			factual[i] = InvalidOid;
}

/* Register the invalidation callback. */
void
TableInit(void)
{
	CacheRegisterRelcacheCallback(FactsForget, (Datum) 0);
}

/* Find the column tenant of a table. */
static AttrNumber
TenantColumn(Relation relation)
{
	TupleDesc	desc = RelationGetDescr(relation);

	for (int i = 0; i < desc->natts; i++)
		if (strcmp(NameStr(TupleDescAttr(desc, i)->attname), "tenant") == 0)
			return i + 1;
	elog(ERROR, "table %s has no column tenant", RelationGetRelationName(relation));
}

/* Find the number of the entry of a table, or else of a free one. */
static int
FactsEntry(Oid relid)
{
	int			unused = 0;

	for (int i = 0; i < FACTS; i++)
	{
		if (factual[i] == relid)
			return i;
		if (!OidIsValid(factual[i]))
			unused = i;
	}
	return unused;
}

static Facts *
FactsOf(Relation relation)
{
	int			i = FactsEntry(RelationGetRelid(relation));
	Facts	   *f = &facts[i];

	if (factual[i] == RelationGetRelid(relation))
		return f;
	factual[i] = InvalidOid;	/* until all is known */
	f->tenant = TenantColumn(relation);
	RowFormRead(&f->form, RelationGetDescr(relation));
	f->judged = false;
	f->indexed = false;
	factual[i] = RelationGetRelid(relation);
	return f;
}

/* ---------- open tables ---------- */

/*
 * Tables and indexes stay open until the end of the call, since a call comes
 * back to the same few of them.
 */
typedef struct Opened
{
	const char *name;			/* by which it was opened; NULL: by its id */
	Relation	relation;
	LOCKMASK	locked;			/* modes in which it is locked, a bit for each */
	TupleTableSlot *read;		/* has the row that was read last, or NULL */
	TupleTableSlot *written;	/* for a row that is written, or NULL; empty between two uses */
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
OpenedKeep(Call *call, const char *name, Relation relation, LOCKMODE lockmode)
{
	MemoryContext current = MemoryContextSwitchTo(call->context);
	Opened	   *opened = palloc0(sizeof(Opened));

	opened->name = name;
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

/* Find a table or index that the call has opened by this name. Names are constants, so most are found by their address. */
static Opened *
OpenedByName(const Call *call, const char *name)
{
	ListCell   *cell;

	foreach(cell, call->opened)
	{
		Opened	   *opened = lfirst(cell);

		if (opened->name == name)
			return opened;
	}
	return OpenedFind(call, TableOid(name));
}

/* Open a table or index in a mode, if the call has not done that yet. */
static Relation
Open(Call *call, const char *name, LOCKMODE lockmode)
{
	Opened	   *opened = OpenedByName(call, name);

	if (opened == NULL)
		return OpenedKeep(call, name, OpenLocked(name, lockmode), lockmode);
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
	{
		Opened	   *opened = lfirst(cell);

		if (opened->read != NULL)
			ExecDropSingleTupleTableSlot(opened->read);
		if (opened->written != NULL)
			ExecDropSingleTupleTableSlot(opened->written);
		relation_close(opened->relation, NoLock);
	}
	call->opened = NIL;
}

/*
 * Get the slot for a row of a table that is read, empty. The row stays there
 * until the next one is read, and its page stays pinned: most calls write the row
 * that they have read last (SeekAgain).
 */
static TupleTableSlot *
ReadSlot(Call *call, Relation relation)
{
	Opened	   *opened = OpenedFind(call, RelationGetRelid(relation));
	MemoryContext current;

	if (opened->read != NULL)
		return ExecClearTuple(opened->read);
	current = MemoryContextSwitchTo(call->context);
	opened->read = table_slot_create(relation, NULL);
	MemoryContextSwitchTo(current);
	return opened->read;
}

/* Get the slot for a row of a table that is written. Whoever gets it empties it. */
static TupleTableSlot *
WriteSlot(Call *call, Relation relation)
{
	Opened	   *opened = OpenedFind(call, RelationGetRelid(relation));
	MemoryContext current;

	if (opened->written == NULL)
	{
		current = MemoryContextSwitchTo(call->context);
		opened->written = MakeSingleTupleTableSlot(RelationGetDescr(relation), &TTSOpsHeapTuple);
		MemoryContextSwitchTo(current);
	}
	return opened->written;
}

/* ---------- reading ---------- */

/*
 * Take the snapshot of a statement: it shows what is committed by now and what
 * we have written. A call that only reads keeps its snapshot, and so does one
 * that writes several rows together.
 */
static Snapshot
SnapshotNow(bool reading)
{
	if (reading)
		return GetActiveSnapshot();
	CommandCounterIncrement();
	return GetTransactionSnapshot();
}

/*
 * Open a table. A call that may write locks it for that at once, instead of
 * once to read and once more to write.
 */
static Relation
OpenTable(Call *call, const char *table, LOCKMODE lockmode)
{
	Relation	relation;

	if (call->reading && lockmode != AccessShareLock)
		elog(ERROR, "table %s cannot be written by a call that only reads", table);
	relation = Open(call, table, call->reading || XactReadOnly ? lockmode : RowExclusiveLock);
	if (RelationGetDescr(relation)->natts > TABLE_MAX_COLUMNS)
		elog(ERROR, "table %s has too many columns", table);
	return relation;
}

/* Open a table and push a snapshot, as a statement does. */
static Relation
Begin(Call *call, const char *table, LOCKMODE lockmode)
{
	Relation	relation = OpenTable(call, table, lockmode);

	PushActiveSnapshot(SnapshotNow(call->reading || call->writing));
	return relation;
}

/*
 * Open a table to write rows that need not be searched. They need no new
 * snapshot; but there must be one where values are stored out of line.
 */
static Relation
BeginWrite(Call *call, const char *table)
{
	Relation	relation = OpenTable(call, table, RowExclusiveLock);

	PushActiveSnapshot(ActiveSnapshotSet() ? GetActiveSnapshot() : GetTransactionSnapshot());
	return relation;
}

static void
End(void)
{
	PopActiveSnapshot();
}

/*
 * Begin to read what is committed by now, at stricter isolation levels too. The
 * call reads under this snapshot until LatestEnd.
 */
void
LatestBegin(Call *call)
{
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	call->writing = true;
}

/* End reading what is committed by now. */
void
LatestEnd(Call *call)
{
	call->writing = false;
	PopActiveSnapshot();
}

/* Begin to write rows together, each of them once, under one snapshot. */
void
WritesBegin(Call *call)
{
	PushActiveSnapshot(SnapshotNow(false));
	call->writing = true;
}

/* End writing rows together. */
void
WritesEnd(Call *call)
{
	call->writing = false;
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

/* Begin an index scan of a key; rows come in the order of the index, or backward. */
static IndexScanDesc
ScanBegin(Relation relation, const char *index, Key *key)
{
	IndexScanDesc scan = IndexBeginScan(relation, Open(key->call, index, AccessShareLock), GetActiveSnapshot(), key->count);

	index_rescan(scan, key->columns, key->count, NULL, 0);
	return scan;
}

static bool
ScanNext(IndexScanDesc scan, const Key *key, TupleTableSlot *slot)
{
	CHECK_FOR_INTERRUPTS();
	return index_getnext_slot(scan, key->backward ? BackwardScanDirection : ForwardScanDirection, slot);
}

/* Check whether a row belongs to the tenant of the call. */
static bool
IsOurs(Relation relation, TupleTableSlot *slot, const Call *call)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, FactsOf(relation)->tenant, &isnull);
	text	   *ours = DatumGetTextPP(call->tenant_datum);
	text	   *tenant;

	/* an owner may have dropped the NOT NULL constraint */
	if (isnull)
		return false;
	tenant = DatumGetTextPP(value);
	return VARSIZE_ANY_EXHDR(tenant) == VARSIZE_ANY_EXHDR(ours) &&
		memcmp(VARDATA_ANY(tenant), VARDATA_ANY(ours), VARSIZE_ANY_EXHDR(ours)) == 0;
}

/* Check whether a row is of the tenant and passes the test; NULL: any row does. */
static bool
IsWanted(Relation relation, TupleTableSlot *slot, const Call *call, TupleTest test, const void *arg)
{
	return IsOurs(relation, slot, call) && (test == NULL || test(slot, arg));
}

/* Check whether a row has the key. */
static bool
HasKey(TupleTableSlot *slot, Key *key)
{
	for (int i = 0; i < key->count; i++)
	{
		ScanKey		column = &key->columns[i];
		bool		isnull;
		Datum		value = slot_getattr(slot, key->of_table ? key->of_table[i] : i + 1, &isnull);

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
 * Check whether a row can be fetched from a place that an earlier transaction
 * has seen. Since then the table may have become shorter.
 */
static bool
HasPlace(Relation relation, const Key *key)
{
	return ItemPointerIsValid(&key->place) && relation->rd_tableam == GetHeapamTableAmRoutine() &&
		ItemPointerGetBlockNumber(&key->place) < RelationGetNumberOfBlocks(relation);
}

/* Find the first row of a key that is of the tenant and passes the test; NULL: none. */
static TupleTableSlot *
Seek(Relation relation, const char *index, Key *key, TupleTest test, const void *arg)
{
	TupleTableSlot *slot = ReadSlot(key->call, relation);
	IndexScanDesc scan;
	bool		found;

	if (HasPlace(relation, key) && FetchPlace(relation, key, slot) && IsWanted(relation, slot, key->call, test, arg))
		return slot;
	ExecClearTuple(slot);
	scan = ScanBegin(relation, index, key);
	do
		found = ScanNext(scan, key, slot);
	while (found && !IsWanted(relation, slot, key->call, test, arg));
	index_endscan(scan);
	if (found)
		return slot;
	ExecClearTuple(slot);
	return NULL;
}

/*
 * Lock the row in the slot, and read it again. Returns TM_Deleted if the row is
 * gone, and TM_WouldBlock if it is locked and we do not wait.
 */
static TM_Result
Lock(Relation relation, TupleTableSlot *slot, LockTupleMode mode, LockWaitPolicy wait)
{
	ItemPointerData tid = slot->tts_tid;
	uint8		flags = TUPLE_LOCK_FLAG_LOCK_UPDATE_IN_PROGRESS;
	TM_FailureData failure;
	TM_Result	result;

	if (!IsolationUsesXactSnapshot())
		flags |= TUPLE_LOCK_FLAG_FIND_LAST_VERSION;
	result = table_tuple_lock(relation, &tid, GetActiveSnapshot(), slot, GetCurrentCommandId(false),
							  mode, wait, flags, &failure);
	if (result == TM_Updated || (result == TM_Deleted && IsolationUsesXactSnapshot()))
		RefuseConcurrentUpdate();
	if (result != TM_Ok && result != TM_Deleted && result != TM_WouldBlock)
		elog(ERROR, "row of table %s could not be locked", RelationGetRelationName(relation));
	return result;
}

/* Read the first row of a key that passes the test; NULL: none. */
void *
TableRead(const char *table, const char *index, Key *key, TupleTest test, const void *arg, TupleMake make)
{
	Relation	relation = Begin(key->call, table, AccessShareLock);
	TupleTableSlot *slot = Seek(relation, index, key, test, arg);
	void	   *row = slot ? make(slot) : NULL;

	End();
	return row;
}

/*
 * Read the first rows of a key that pass the test, at most max. Rows for which
 * "make" returns NULL are left out.
 */
List *
TableReadSome(const char *table, const char *index, Key *key, TupleTest test, const void *arg, TupleMake make, int max)
{
	Relation	relation = Begin(key->call, table, AccessShareLock);
	IndexScanDesc scan = ScanBegin(relation, index, key);
	TupleTableSlot *slot = ReadSlot(key->call, relation);
	List	   *rows = NIL;

	while (list_length(rows) < max && ScanNext(scan, key, slot))
	{
		void	   *row = IsWanted(relation, slot, key->call, test, arg) ? make(slot) : NULL;

		if (row != NULL)
			rows = lappend(rows, row);
	}
	index_endscan(scan);
	ExecClearTuple(slot);
	End();
	return rows;
}

/* Read all rows of a key. Rows for which "make" returns NULL are left out. */
List *
TableReadAll(const char *table, const char *index, Key *key, TupleMake make)
{
	return TableReadSome(table, index, key, NULL, NULL, make, INT_MAX);
}

/*
 * Find the row to lock. If it was held before, go to the place where it was, from
 * which Lock follows it to its newest version. A search would look at all old
 * versions that those who wait may still see.
 */
static TupleTableSlot *
SeekToLock(Relation relation, const char *index, Key *key, TupleTest test, const void *arg)
{
	TupleTableSlot *slot;

	if (!ItemPointerIsValid(&key->held))
		return Seek(relation, index, key, test, arg);
	slot = ReadSlot(key->call, relation);
	slot->tts_tid = key->held;
	return slot;
}

/*
 * Lock the first row of a key that passes the test, and read it; NULL: none.
 * With "held", do not wait; *held then says whether another transaction has
 * locked the row. The key then knows where the row was. That version of the row
 * is not removed as long as there is a snapshot from before.
 */
static void *
LockFirst(const char *table, const char *index, Key *key, TupleTest test, const void *arg, TupleMake make,
		  LockTupleMode mode, bool *held)
{
	bool		lasting = ActiveSnapshotSet();
	Relation	relation = Begin(key->call, table, RowShareLock);
	TupleTableSlot *slot = SeekToLock(relation, index, key, test, arg);
	ItemPointerData tid = {0};
	TM_Result	result = TM_Deleted;
	void	   *row = NULL;

	if (slot != NULL)
	{
		tid = slot->tts_tid;
		result = Lock(relation, slot, mode, held == NULL ? LockWaitBlock : LockWaitSkip);
		if (result == TM_Ok)
			row = make(slot);
		else
			ExecClearTuple(slot);
	}
	End();
	if (held != NULL)
		*held = result == TM_WouldBlock;
	if (result == TM_WouldBlock && lasting)
		key->held = tid;
	return row;
}

/*
 * Lock the first row of a key that passes the test, and read it; NULL: none.
 * The test must be about columns that never change, because it is not repeated
 * after a wait. With "held", do not wait; *held then says whether another
 * transaction has locked the row.
 */
void *
TableLock(const char *table, const char *index, Key *key, TupleTest test, const void *arg, TupleMake make, bool *held)
{
	CheckWritable("SELECT FOR NO KEY UPDATE");
	return LockFirst(table, index, key, test, arg, make, LockTupleNoKeyExclusive, held);
}

/*
 * Lock the first row of a key so that it cannot be deleted, as FOR KEY SHARE
 * does, and read it; NULL: there is none, or it was deleted while we waited.
 */
void *
TablePin(const char *table, const char *index, Key *key, TupleMake make)
{
	CheckWritable("SELECT FOR KEY SHARE");
	return LockFirst(table, index, key, NULL, NULL, make, LockTupleKeyShare, NULL);
}

/* ---------- writing by a statement ---------- */

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
	static const char *const names[] = {"plan_outcome", "step_outcome", "dependency_need", "checkpoint_kind_check", "checkpoint_gate_check"};

	return NameIndex(check->ccname, names, lengthof(names)) >= 0;
}

/*
 * Functions that an index calls (in expressions, domains or operator classes)
 * would run as the owner, and with the caller's search path. Our own indexes
 * call none, so it is enough to know their names; test/run compares this list
 * with the script that creates them.
 */
static const char *const OurIndexes[] = {
	"plan_pkey", "plan_root", "plan_open", "plan_finished", "plan_nested", "plan_parent_step", "plan_workable", "plan_idempotency_key",
	"step_pkey", "step_order_unique", "step_name", "step_binding", "step_ready", "step_holder", "step_lease", "step_holds",
	"step_sent_back", "step_paused", "step_notes", "dependency_pkey", "dependency_of", "plan_detail_pkey", "plan_detail_search",
	"audit_log_plan", "audit_log_tenant", "tool_call_pkey",
	"checkpoint_pkey", "checkpoint_step_id_key", "checkpoint_tenant", "checkpoint_root"
};

/* Check whether an index is ours. It is opened for that, because a write opens all indexes of its table anyway. */
static bool
IndexIsOurs(Oid oid)
{
	Relation	index = index_open(oid, AccessShareLock);
	bool		ours = NameIndex(RelationGetRelationName(index), OurIndexes, lengthof(OurIndexes)) >= 0;

	index_close(index, NoLock);
	return ours;
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
	Facts	   *f = FactsOf(relation);
	bool		altered;

	if (f->judged)
		return f->altered;

	/*
	 * if Judge fails, the table counts as altered; if an invalidation comes meanwhile, the facts are found again next
	 * time
	 */
	f->judged = true;
	f->altered = true;
	altered = Judge(relation);
	f->altered = altered;
	return altered;
}

/* Lock a table for writing, and check whether a user has added something to it. */
bool
TableIsAltered(Call *call, const char *table)
{
	return IsAltered(Open(call, table, RowExclusiveLock));
}

/*
 * Run a statement whose parameters are the columns to set and then, if there is
 * a key, the tenant and the column of the key.
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
	if (key != NULL)
	{
		ParamDatum(&params, key->call->tenant_datum);
		types[params.count - 1] = TEXTOID;
		ParamDatum(&params, key->columns[0].sk_argument);
		types[params.count - 1] = UUIDOID;
	}
	if (QueryRunOnce(sql, types, &params) != 1)
		elog(ERROR, "row of table %s could not be saved", RelationGetRelationName(relation));
}

/* Return the name of the first column of a table, which has the id of its rows. */
static const char *
IdColumn(Relation relation)
{
	return quote_identifier(NameStr(TupleDescAttr(RelationGetDescr(relation), 0)->attname));
}

/* Update a row by a statement. The key is the id. */
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
	if (key->count != 1)
		elog(ERROR, "key of table %s has %d columns", RelationGetRelationName(relation), key->count);
	appendStringInfo(&sql, " WHERE tenant = $%d AND %s = $%d", set + 1, IdColumn(relation), set + 2);
	StatementRun(relation, sql.data, changes, key);
}

/* Delete a row by a statement. */
static void
StatementDelete(const Call *call, Relation relation, const pg_uuid_t *id)
{
	static const Oid types[] = {TEXTOID, UUIDOID};
	Params		params = {0};

	ParamDatum(&params, call->tenant_datum);
	ParamUuid(&params, id);
	(void) QueryRunOnce(psprintf("DELETE FROM stepwise.%s WHERE tenant = $1 AND %s = $2",
								 quote_identifier(RelationGetRelationName(relation)), IdColumn(relation)), types, &params);
}

/* Write the audit entries of a call, before a statement fires triggers, which may look at them. */
static void
LogShow(Call *call)
{
	if (call->save != NULL)
		call->save(call, call, SAVE_LOG);
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
	return OpenedKeep(call, NULL, index_open(index, RowExclusiveLock), RowExclusiveLock);
}

/* ---------- index entries ---------- */

/*
 * Our indexes are B-trees over columns, so their entries need no executor. Some
 * have entries only for rows in which certain columns are null, not null, or
 * true.
 */

/* Read one test of a predicate. Returns false if it is of another kind. */
static bool
TestRead(const Node *node, ColumnTest *test)
{
	const NullTest *null_test = (const NullTest *) node;

	if (IsA(node, Var))
		test->kind = COLUMN_IS_TRUE;
	else if (IsA(node, NullTest) && IsA(null_test->arg, Var) && !null_test->argisrow)
	{
		test->kind = null_test->nulltesttype == IS_NULL ? COLUMN_IS_NULL : COLUMN_IS_NOT_NULL;
		node = (const Node *) null_test->arg;
	}
	else
		return false;
	test->column = ((const Var *) node)->varattno;
	return test->column > 0;
}

/* Read the predicate of an index, a list of tests. Returns their number; -1: it is not understood. */
static int
TestsRead(Relation index, ColumnTest *tests)
{
	List	   *predicate = RelationGetIndexPredicate(index);
	ListCell   *cell;
	int			count = 0;

	foreach(cell, predicate)
		if (count == TESTS_MAX || !TestRead(lfirst(cell), &tests[count++]))
		return -1;
	return count;
}

/* Read from the catalog how rows get into an index. */
static void
IndexFactsRead(Call *call, Oid oid, IndexFacts *facts)
{
	Relation	index = IndexOpen(call, oid);
	Form_pg_index form = index->rd_index;

	facts->index = oid;
	facts->unique = form->indisunique;
	facts->ncolumns = form->indnatts;
	facts->plain = index->rd_rel->relam == BTREE_AM_OID && form->indisready && form->indnatts <= KEY_MAX_COLUMNS &&
		RelationGetIndexExpressions(index) == NIL;
	for (int i = 0; facts->plain && i < facts->ncolumns; i++)
		facts->columns[i] = form->indkey.values[i];
	facts->ntests = TestsRead(index, facts->tests);
}

/* Read how rows get into the indexes of a table. */
static void
IndexesRead(Call *call, Relation relation, Facts *f)
{
	List	   *indexes = RelationGetIndexList(relation);
	ListCell   *cell;

	f->nindexes = list_length(indexes) > INDEXES_MAX ? -1 : 0;
	if (f->nindexes == 0)
		foreach(cell, indexes)
			IndexFactsRead(call, lfirst_oid(cell), &f->indexes[f->nindexes++]);
	f->indexed = true;
}

/*
 * Find what is known about a table, with its indexes. If an invalidation comes
 * while they are read, they are good for this time, and are read again the next.
 */
static const Facts *
FactsWithIndexes(Call *call, Relation relation)
{
	Facts	   *f = FactsOf(relation);

	if (!f->indexed)
		IndexesRead(call, relation, f);
	return f;
}

static bool
TestHolds(const ColumnTest *test, TupleTableSlot *slot)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, test->column, &isnull);

	if (test->kind == COLUMN_IS_TRUE)
		return !isnull && DatumGetBool(value);
	return isnull == (test->kind == COLUMN_IS_NULL);
}

/* Check whether an index has an entry for a row. */
static bool
HasEntry(const IndexFacts *facts, TupleTableSlot *slot)
{
	for (int i = 0; i < facts->ntests; i++)
		if (!TestHolds(&facts->tests[i], slot))
			return false;
	return true;
}

/*
 * Add the entry of a new row to an index. A B-tree needs no IndexInfo, as in
 * toast_internals.c.
 *
 * A deferrable constraint is checked at once too. The executor would check it at
 * the end of the statement, but no statement of ours leaves duplicates to be
 * resolved by the next one. Those of a user's statement are not our concern.
 *
 * "unchanged" says that the version before has the same key, so no other row can
 * have it, and that is not checked again. (The predicates of our unique indexes
 * are about columns of their keys.) "has_dead" says that the index may have
 * entries of dead versions; then it looks for them before it splits a page.
 */
static void
EntryAdd(Relation relation, Relation index, const IndexFacts *facts, TupleTableSlot *slot, bool unchanged, bool has_dead)
{
	Datum		values[KEY_MAX_COLUMNS];
	bool		nulls[KEY_MAX_COLUMNS];
	bool		check = facts->unique && !unchanged;

	for (int i = 0; i < facts->ncolumns; i++)
		values[i] = slot_getattr(slot, facts->columns[i], &nulls[i]);
	index_insert(index, values, nulls, &slot->tts_tid, relation, check ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO,
				 unchanged && has_dead, NULL);
}

/* Check whether a write leaves the columns of an index as they were; NULL: the row is new. */
static bool
IsUnchanged(const IndexFacts *facts, const Changes *update)
{
	for (int i = 0; update != NULL && i < facts->ncolumns; i++)
		if (update->replaces[facts->columns[i] - 1])
			return false;
	return update != NULL;
}

/*
 * Check whether it makes sense to let an index look for entries of dead
 * versions. A run writes many rows, each of them once, in one transaction, in
 * which no version dies.
 */
static bool
HasDeadEntries(const Call *call)
{
	return !call->in_turns;
}

/* Check whether the entries of a row need the executor. */
static bool
NeedsExecutor(const Facts *f, TupleTableSlot *slot)
{
	for (int i = 0; i < f->nindexes; i++)
		if (f->indexes[i].ntests < 0 || (!f->indexes[i].plain && HasEntry(&f->indexes[i], slot)))
			return true;
	return f->nindexes < 0;
}

/*
 * Add the entries of new rows, or of the new version of a row that an update
 * has written, one index after the other. An index that gets none is not opened.
 */
static void
EntriesAdd(Call *call, Relation relation, TupleTableSlot **slots, int count, const Changes *update)
{
	const Facts *f = FactsWithIndexes(call, relation);

	for (int row = 0; row < count; row++)
		if (NeedsExecutor(f, slots[row]))
		{
			for (row = 0; row < count; row++)
				IndexesAdd(relation, slots[row], update != NULL, false);
			return;
		}
	for (int i = 0; i < f->nindexes; i++)
	{
		Relation	index = NULL;

		for (int row = 0; row < count; row++)
			if (HasEntry(&f->indexes[i], slots[row]))
			{
				if (index == NULL)
					index = IndexOpen(call, f->indexes[i].index);
				EntryAdd(relation, index, &f->indexes[i], slots[row], IsUnchanged(&f->indexes[i], update), HasDeadEntries(call));
			}
	}
}

/*
 * Check whether a row that was read from a place is still in its slot, and is the
 * newest version that we know. The page is pinned, so no other row can have
 * taken the place. Somebody else may update the row just now; the write notices.
 */
static bool
IsStillThere(TupleTableSlot *slot, Key *key)
{
	HeapTupleHeader header;

	if (slot == NULL || TTS_EMPTY(slot) || !TTS_IS_BUFFERTUPLE(slot) || !ItemPointerEquals(&slot->tts_tid, &key->place))
		return false;
	header = ((BufferHeapTupleTableSlot *) slot)->base.tuple->t_data;
	return ((header->t_infomask & HEAP_XMAX_INVALID) != 0 || HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask)) && HasKey(slot, key);
}

/* Fetch the row to be updated: from where the call has seen it, or by its key. */
static TupleTableSlot *
FetchAgain(Relation relation, const char *index, Key *key)
{
	TupleTableSlot *slot = ReadSlot(key->call, relation);

	if (ItemPointerIsValid(&key->place) && FetchPlace(relation, key, slot) && IsOurs(relation, slot, key->call))
		return slot;
	ItemPointerSetInvalid(&key->place);
	slot = Seek(relation, index, key, NULL, NULL);
	if (slot == NULL)
		elog(ERROR, "row of table %s could not be saved", RelationGetRelationName(relation));
	return slot;
}

/* Find the row to be updated. Usually the call has just read it. */
static TupleTableSlot *
SeekAgain(Relation relation, const char *index, Key *key)
{
	TupleTableSlot *slot = OpenedFind(key->call, RelationGetRelid(relation))->read;

	if (ItemPointerIsValid(&key->place) && IsStillThere(slot, key))
		return slot;
	PushActiveSnapshot(SnapshotNow(key->call->writing));
	slot = FetchAgain(relation, index, key);
	PopActiveSnapshot();
	return slot;
}

/* Return the command id with which a call writes. */
static CommandId
CommandOf(const Call *call)
{
	return call->command != InvalidCommandId ? call->command : GetCurrentCommandId(true);
}

/*
 * Check whether the page of a row has no room for its new version. The page is
 * looked at without a lock, as heap_page_prune_opt does.
 */
static bool
HasNoRoom(TupleTableSlot *old, Size size)
{
	Buffer		buffer = TTS_IS_BUFFERTUPLE(old) ? ((BufferHeapTupleTableSlot *) old)->buffer : InvalidBuffer;

	return BufferIsValid(buffer) && PageGetHeapFreeSpace(BufferGetPage(buffer)) < MAXALIGN(size);
}

/*
 * Make room in a page: remove what nobody can see any more. An index scan does
 * that whenever it comes to a page that is rather full, and writes WAL each
 * time. Here it is done only if a tuple would not fit.
 */
static void
MakeRoom(Relation relation, BlockNumber block)
{
	Buffer		buffer = ReadBuffer(relation, block);

	heap_page_prune_opt(relation, buffer);
	ReleaseBuffer(buffer);
}

/* Form a row of a table. */
static HeapTuple
Form(Relation relation, const Changes *row)
{
	return RowFormTuple(&FactsOf(relation)->form, relation, row->values, row->nulls);
}

/* Form the new version of a row: columns that are not set keep their values. */
static HeapTuple
FormVersion(Relation relation, TupleTableSlot *old, Changes *changes)
{
	TupleDesc	desc = old->tts_tupleDescriptor;

	slot_getallattrs(old);
	for (int i = 0; i < desc->natts; i++)
		if (!changes->replaces[i])
		{
			changes->values[i] = old->tts_values[i];
			changes->nulls[i] = old->tts_isnull[i];
		}
	return Form(relation, changes);
}

/*
 * Write the new version of a row. Returns false if the row was updated since
 * it was read. The old one is let go first: a page that is in use is not pruned.
 */
static bool
WriteVersion(const Call *call, Relation relation, TupleTableSlot *old, TupleTableSlot *new, Changes *changes, UpdateIndexes *indexes)
{
	HeapTuple	tuple = FormVersion(relation, old, changes);
	ItemPointerData tid = old->tts_tid;
	bool		full = HasNoRoom(old, tuple->t_len);
	TM_FailureData failure;
	LockTupleMode mode;

	ExecClearTuple(old);
	old->tts_tid = tid;
	ExecStoreHeapTuple(tuple, new, true);
	if (full)
		MakeRoom(relation, ItemPointerGetBlockNumber(&tid));
	return table_tuple_update(relation, &tid, new, CommandOf(call), GetActiveSnapshot(), InvalidSnapshot,
							  true, &failure, &mode, indexes) == TM_Ok;
}

static void
Update(Call *call, Relation relation, TupleTableSlot *old, Changes *changes, ItemPointer place)
{
	TupleTableSlot *new = WriteSlot(call, relation);
	UpdateIndexes indexes;

	CheckCmdReplicaIdentity(relation, CMD_UPDATE);
	/* A concurrent update cannot conflict with ours, since we hold the tree lock; lock the new version and retry. */
	while (!WriteVersion(call, relation, old, new, changes, &indexes))
		if (IsolationUsesXactSnapshot() || Lock(relation, old, LockTupleNoKeyExclusive, LockWaitBlock) != TM_Ok)
			RefuseConcurrentUpdate();
	if (indexes != NO_INDEXES && OnlySummaries(indexes))
		IndexesAdd(relation, new, true, true);
	else if (indexes != NO_INDEXES)
		EntriesAdd(call, relation, &new, 1, changes);
	*place = new->tts_tid;
	ExecClearTuple(new);
}

/*
 * Update one row. The key is its id, and has the place where the call has seen
 * the row; afterwards it has the new place.
 */
void
TableUpdate(const char *table, const char *index, Key *key, Changes *changes)
{
	Relation	relation;
	TupleTableSlot *old;

	CheckWritable("UPDATE");
	relation = BeginWrite(key->call, table);
	old = SeekAgain(relation, index, key);
	if (IsAltered(relation))
	{
		LogShow(key->call);
		StatementUpdate(relation, key, changes);
		ItemPointerSetInvalid(&key->place);
	}
	else
		Update(key->call, relation, old, changes, &key->place);
	ExecClearTuple(old);
	End();
}

/* ---------- deleting ---------- */

/* Delete the row in the slot. If it was updated since it was read, delete the new version. */
static void
Delete(const Call *call, Relation relation, TupleTableSlot *slot)
{
	TM_FailureData failure;

	while (table_tuple_delete(relation, &slot->tts_tid, CommandOf(call), GetActiveSnapshot(), InvalidSnapshot,
							  true, &failure, false) != TM_Ok)
		if (IsolationUsesXactSnapshot() || Lock(relation, slot, LockTupleExclusive, LockWaitBlock) != TM_Ok)
			RefuseConcurrentUpdate();
}

static void *
IdMake(TupleTableSlot *slot)
{
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

	*id = ColumnUuid(slot, 0);
	return id;
}

/* Delete the rows of a key that pass the test, each by a statement. */
static void
DeleteByStatements(Relation relation, const char *table, const char *index, Key *key, TupleTest test, const void *arg)
{
	ListCell   *cell;

	LogShow(key->call);
	foreach(cell, TableReadSome(table, index, key, test, arg, IdMake, INT_MAX))
		StatementDelete(key->call, relation, lfirst(cell));
}

/*
 * Delete the rows of a key that pass the test. The id of a row is its first
 * column. Index entries stay, as after every DELETE; a vacuum removes them.
 */
void
TableDelete(const char *table, const char *index, Key *key, TupleTest test, const void *arg)
{
	Relation	relation;
	TupleTableSlot *slot;
	IndexScanDesc scan;

	CheckWritable("DELETE");
	relation = Begin(key->call, table, RowExclusiveLock);
	if (IsAltered(relation))
		DeleteByStatements(relation, table, index, key, test, arg);
	else
	{
		CheckCmdReplicaIdentity(relation, CMD_DELETE);
		slot = ReadSlot(key->call, relation);
		scan = ScanBegin(relation, index, key);
		while (ScanNext(scan, key, slot))
			if (IsWanted(relation, slot, key->call, test, arg))
				Delete(key->call, relation, slot);
		index_endscan(scan);
		ExecClearTuple(slot);
	}
	End();
}

/* ---------- inserting a row ---------- */

static void
Insert(Call *call, Relation relation, Changes *changes)
{
	TupleTableSlot *slot = WriteSlot(call, relation);

	ExecStoreHeapTuple(Form(relation, changes), slot, true);
	table_tuple_insert(relation, slot, CommandOf(call), 0, NULL);
	EntriesAdd(call, relation, &slot, 1, NULL);
	ExecClearTuple(slot);
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
	relation = BeginWrite(call, table);
	if (IsAltered(relation) || !changes->replaces[RelationGetDescr(relation)->natts - 1])
		StatementInsert(relation, changes);
	else
		Insert(call, relation, changes);
	End();
}

/* ---------- inserting many rows ---------- */

#define BATCH_ROWS		250
#define BATCH_BYTES		65536

/* Check whether a table has more columns than we know. */
static bool
HasMoreColumns(Relation relation, int columns)
{
	TupleDesc	desc = RelationGetDescr(relation);

	for (int i = columns; i < desc->natts; i++)
		if (!TupleDescAttr(desc, i)->attisdropped)
			return true;
	return false;
}

/*
 * Begin to insert rows into a table of which we know so many columns. In
 * batch->row they are null until they are set; then they keep their value from
 * row to row. What only one row needs may be allocated in batch->memory.
 */
Batch *
BatchBegin(Call *call, const char *table, int columns)
{
	Batch	   *batch = palloc(sizeof(Batch));

	if (call->reading)
		elog(ERROR, "table %s cannot be written by a call that only reads", table);
	CheckWritable("INSERT");
	/* a call that has read steps ahead must read the new ones too */
	if (call->kept != NULL && call->save != NULL)
		call->save(call, call, 0);
	memset(batch, 0, offsetof(Batch, row));
	batch->call = call;
	batch->relation = Open(call, table, RowExclusiveLock);
	if (RelationGetDescr(batch->relation)->natts < columns)
		elog(ERROR, "table %s has too few columns", table);
	batch->by_statement = IsAltered(batch->relation) || HasMoreColumns(batch->relation, columns);
	batch->memory = AllocSetContextCreate(CurrentMemoryContext, "stepwise rows", ALLOCSET_DEFAULT_SIZES);
	memset(batch->row.replaces, false, sizeof(batch->row.replaces));
	memset(batch->row.replaces, true, columns);
	memset(batch->row.nulls, true, sizeof(batch->row.nulls));
	return batch;
}

/* Copy a row as it is stored, for BatchTake. It is a TupleMake. */
void *
TupleTaken(TupleTableSlot *slot)
{
	return ExecCopySlotHeapTuple(slot);
}

/* Take all columns of another row of the table, those that a user has added too. The row must live until it is inserted. */
void
BatchTake(Batch *batch, void *row)
{
	TupleDesc	desc = RelationGetDescr(batch->relation);

	if (row == NULL)
		elog(ERROR, "row of table %s could not be copied", RelationGetRelationName(batch->relation));
	if (desc->natts > TABLE_MAX_COLUMNS)
		elog(ERROR, "table %s has too many columns", RelationGetRelationName(batch->relation));
	heap_deform_tuple(row, desc, batch->row.values, batch->row.nulls);
	for (int i = 0; i < desc->natts; i++)
	{
		bool		dropped = TupleDescAttr(desc, i)->attisdropped;

		batch->row.replaces[i] = !dropped && TupleDescAttr(desc, i)->attgenerated == '\0';
		batch->row.nulls[i] = batch->row.nulls[i] || dropped;
	}
}

/* Get a free slot for the next row. */
static TupleTableSlot *
BatchSlot(Batch *batch)
{
	if (batch->count == batch->nslots)
	{
		if (batch->nslots % 16 == 0)
			batch->slots = batch->slots ? repalloc(batch->slots, sizeof(TupleTableSlot *) * (batch->nslots + 16)) :
				palloc(sizeof(TupleTableSlot *) * 16);
		batch->slots[batch->nslots++] = MakeSingleTupleTableSlot(RelationGetDescr(batch->relation), &TTSOpsHeapTuple);
	}
	return batch->slots[batch->count++];
}

/* Make the row of a slot a value of the row type of its table. */
static Datum
SlotDatum(TupleTableSlot *slot)
{
	return heap_copy_tuple_as_datum(ExecFetchSlotHeapTuple(slot, false, NULL), slot->tts_tupleDescriptor);
}

/*
 * Insert the collected rows by one statement: their columns are those of an
 * array of rows. Columns that we do not know get their defaults.
 */
static void
BatchInsertByStatement(Batch *batch)
{
	TupleDesc	desc = RelationGetDescr(batch->relation);
	Oid			type = batch->relation->rd_rel->reltype;
	Oid			types[] = {get_array_type(type)};
	Datum	   *rows = palloc(sizeof(Datum) * batch->count);
	Params		params = {0};
	StringInfoData names;

	LogShow(batch->call);
	initStringInfo(&names);
	for (int i = 0; i < desc->natts; i++)
		if (batch->row.replaces[i])
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", quote_identifier(NameStr(TupleDescAttr(desc, i)->attname)));
	for (int i = 0; i < batch->count; i++)
		rows[i] = SlotDatum(batch->slots[i]);
	ParamDatum(&params, PointerGetDatum(construct_array(rows, batch->count, type, -1, false, TYPALIGN_DOUBLE)));
	if (QueryRunOnce(psprintf("INSERT INTO stepwise.%s (%s) SELECT %s FROM pg_catalog.unnest($1)",
							  quote_identifier(RelationGetRelationName(batch->relation)), names.data, names.data),
					 types, &params) != batch->count)
		elog(ERROR, "rows of table %s could not be saved", RelationGetRelationName(batch->relation));
}

/* Insert the collected rows. */
static void
BatchInsert(Batch *batch)
{
	MemoryContext outer = MemoryContextSwitchTo(batch->memory);

	if (batch->by_statement)
		BatchInsertByStatement(batch);
	else if (batch->count > 0)
	{
		table_multi_insert(batch->relation, batch->slots, batch->count, CommandOf(batch->call), 0, NULL);
		EntriesAdd(batch->call, batch->relation, batch->slots, batch->count, NULL);
		batch->place = batch->slots[batch->count - 1]->tts_tid;
	}
	for (int i = 0; i < batch->count; i++)
		ExecClearTuple(batch->slots[i]);
	batch->count = 0;
	batch->bytes = 0;
	MemoryContextSwitchTo(outer);
	MemoryContextReset(batch->memory);
}

/* Store a row in a slot, with its columns, so that they need not be taken out of the tuple again. */
static void
SlotStore(TupleTableSlot *slot, HeapTuple tuple, const Changes *row)
{
	int			natts = slot->tts_tupleDescriptor->natts;

	ExecStoreHeapTuple(tuple, slot, true);
	memcpy(slot->tts_values, row->values, sizeof(Datum) * natts);
	memcpy(slot->tts_isnull, row->nulls, sizeof(bool) * natts);
	slot->tts_nvalid = natts;
}

/* Add a row as it is in batch->row. What it points to must live until the row is inserted. */
void
BatchAdd(Batch *batch)
{
	MemoryContext outer = MemoryContextSwitchTo(batch->memory);
	HeapTuple	tuple = batch->by_statement ?
		heap_form_tuple(RelationGetDescr(batch->relation), batch->row.values, batch->row.nulls) : Form(batch->relation, &batch->row);

	MemoryContextSwitchTo(outer);
	SlotStore(BatchSlot(batch), tuple, &batch->row);
	batch->bytes += tuple->t_len;
	if (batch->count == BATCH_ROWS || batch->bytes >= BATCH_BYTES)
		BatchInsert(batch);
}

/* Insert the rows that are left. Afterwards batch->place is that of the last row, if we know it. */
void
BatchEnd(Batch *batch)
{
	if (batch->count > 0)
		BatchInsert(batch);
	for (int i = 0; i < batch->nslots; i++)
		ExecDropSingleTupleTableSlot(batch->slots[i]);
	MemoryContextDelete(batch->memory);
}
