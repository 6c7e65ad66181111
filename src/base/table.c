/*
 * table.c
 *	  read and lock rows of our own tables by index, without the executor
 *
 * This is for the few rows that every call reads and writes. A kept SPI plan
 * starts and ends the executor each time, which costs several times as much as
 * the row. Rows are locked as by FOR NO KEY UPDATE, and transactions that cannot
 * be serialized get the usual errors. Predicate locks are taken too.
 *
 * A caller may tell where it has last seen a row; if the row is still there, no
 * index is searched.
 *
 * Ids are unique over all tenants, so most keys do not contain the tenant. Each
 * row that is found is compared with the tenant of the call, before it is
 * locked or returned (IsOurs). A row of another tenant is treated as if it did
 * not exist.
 */
#include "base/base.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* ---------- reading ---------- */

/*
 * Check whether an index is complete. REINDEX CONCURRENTLY gives its name to a
 * new one. A call that has the old one open may go on with it: the old one is
 * kept up to date until those who have the table locked are gone.
 */
static bool
IsComplete(Relation index, const char *name)
{
	return index->rd_index->indisvalid || TableOid(name) != RelationGetRelid(index);
}

/* Check whether an index is a B-tree of a table, and its columns are of the types of a key. */
static bool
FitsKey(Relation index, Relation relation, const Key *key)
{
	if (index->rd_rel->relkind != RELKIND_INDEX || index->rd_rel->relam != BTREE_AM_OID ||
		index->rd_index->indrelid != RelationGetRelid(relation))
		return false;
	for (int i = 0; i < key->count; i++)
	{
		const ScanKeyData *column = &key->columns[i];

		if (column->sk_attno > index->rd_index->indnkeyatts || index->rd_opcintype[column->sk_attno - 1] != column->sk_subtype ||
			index->rd_indcollation[column->sk_attno - 1] != column->sk_collation)
			return false;
	}
	return true;
}

/*
 * Open an index in which a key is to be found. An owner may have dropped it, and
 * may be making it anew, or may have made another one of its name.
 */
static Relation
OpenForKey(Relation relation, const char *name, const Key *key)
{
	Relation	index = OpenOnce(key->call, name, AccessShareLock);

	if (!FitsKey(index, relation, key) || !IsComplete(index, name))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index stepwise.%s cannot be searched", name),
				 errdetail("It is not valid, or it is not the one that the extension has created."),
				 errhint("Drop it, and create it again as the script of the extension does.")));
	return index;
}

/* Begin an index scan of a key; rows come in the order of the index, or backward. */
IndexScanDesc
ScanBegin(Relation relation, const char *index, Key *key)
{
	IndexScanDesc scan = IndexBeginScan(relation, OpenForKey(relation, index, key), GetActiveSnapshot(), key->count);

	index_rescan(scan, key->columns, key->count, NULL, 0);
	return scan;
}

/* Fetch the next row of an index scan. Returns false if there is none. */
bool
ScanNext(IndexScanDesc scan, const Key *key, TupleTableSlot *slot)
{
	CHECK_FOR_INTERRUPTS();
	return index_getnext_slot(scan, key->backward ? BackwardScanDirection : ForwardScanDirection, slot);
}

/* Check whether a row belongs to the tenant of the call. An owner may have set its tenant to null. */
static bool
IsOurs(Relation relation, TupleTableSlot *slot, const Call *call)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, FactsOf(relation)->tenant, &isnull);
	text	   *ours = DatumGetTextPP(call->tenant_datum);
	text	   *tenant = isnull ? NULL : DatumGetTextPP(value);

	return tenant != NULL && VARSIZE_ANY_EXHDR(tenant) == VARSIZE_ANY_EXHDR(ours) &&
		memcmp(VARDATA_ANY(tenant), VARDATA_ANY(ours), VARSIZE_ANY_EXHDR(ours)) == 0;
}

/* Check whether a row is of the tenant and passes the test; NULL: any row does. */
bool
RowIsWanted(Relation relation, TupleTableSlot *slot, const Call *call, TupleTest test, const void *arg)
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
 * Check whether a table has a block. The size that was seen last is enough,
 * without asking the kernel: whoever makes a table shorter tells all sessions to
 * forget its size, and cannot do it while we have the table locked.
 */
static bool
HasBlock(Relation relation, BlockNumber block)
{
	BlockNumber seen = RelationGetSmgr(relation)->smgr_cached_nblocks[MAIN_FORKNUM];

	return (seen != InvalidBlockNumber && block < seen) || block < RelationGetNumberOfBlocks(relation);
}

/*
 * Check whether a row can be fetched from a place that an earlier transaction
 * has seen. Since then the table may have become shorter.
 */
static bool
HasPlace(Relation relation, const Key *key)
{
	return ItemPointerIsValid(&key->place) && relation->rd_tableam == GetHeapamTableAmRoutine() &&
		HasBlock(relation, ItemPointerGetBlockNumber(&key->place));
}

/* Find the row of a key in the place where it may be; NULL: it is not there, or is of another tenant. */
TupleTableSlot *
TableSeekPlace(Relation relation, Key *key)
{
	TupleTableSlot *slot = ReadSlot(key->call, relation);

	if (HasPlace(relation, key) && FetchPlace(relation, key, slot) && IsOurs(relation, slot, key->call))
		return slot;
	ExecClearTuple(slot);
	return NULL;
}

/* Find the first row of a key that is of the tenant and passes the test; NULL: none. */
static TupleTableSlot *
Seek(Relation relation, const char *index, Key *key, TupleTest test, const void *arg)
{
	TupleTableSlot *slot = ReadSlot(key->call, relation);
	IndexScanDesc scan;
	bool		found;

	if (HasPlace(relation, key) && FetchPlace(relation, key, slot) && RowIsWanted(relation, slot, key->call, test, arg))
		return slot;
	ExecClearTuple(slot);
	scan = ScanBegin(relation, index, key);
	do
		found = ScanNext(scan, key, slot);
	while (found && !RowIsWanted(relation, slot, key->call, test, arg));
	index_endscan(scan);
	if (found)
		return slot;
	ExecClearTuple(slot);
	return NULL;
}

/* Read the first row of a key that passes the test; NULL: none. */
void *
TableRead(const char *table, const char *index, Key *key, TupleTest test, const void *arg, TupleMake make)
{
	Relation	relation = TableBegin(key->call, table, AccessShareLock);
	TupleTableSlot *slot = Seek(relation, index, key, test, arg);
	void	   *row = slot ? make(slot) : NULL;

	TableEnd();
	return row;
}

/*
 * Read the first rows of a key that pass the test, at most max. Rows for which
 * "make" returns NULL are left out.
 */
List *
TableReadSome(const char *table, const char *index, Key *key, TupleTest test, const void *arg, TupleMake make, int max)
{
	Relation	relation = TableBegin(key->call, table, AccessShareLock);
	IndexScanDesc scan = ScanBegin(relation, index, key);
	TupleTableSlot *slot = ReadSlot(key->call, relation);
	List	   *rows = NIL;

	while (list_length(rows) < max && ScanNext(scan, key, slot))
	{
		void	   *row = RowIsWanted(relation, slot, key->call, test, arg) ? make(slot) : NULL;

		if (row != NULL)
			rows = lappend(rows, row);
	}
	index_endscan(scan);
	ExecClearTuple(slot);
	TableEnd();
	return rows;
}

/* Read all rows of a key. Rows for which "make" returns NULL are left out. */
List *
TableReadAll(const char *table, const char *index, Key *key, TupleMake make)
{
	return TableReadSome(table, index, key, NULL, NULL, make, INT_MAX);
}

/* ---------- locking ---------- */

/* Refuse to go on, because another transaction has changed the row. */
void
RefuseConcurrentUpdate(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to concurrent update")));
}

/*
 * Lock the row in the slot, and read it again. Returns TM_Deleted if the row is
 * gone, and TM_WouldBlock if it is locked and we do not wait.
 */
TM_Result
RowLock(Relation relation, TupleTableSlot *slot, LockTupleMode mode, LockWaitPolicy wait)
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

/*
 * Find the row to lock. If it was held before, go to the place where it was, from
 * which RowLock follows it to its newest version. A search would look at all old
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
	Relation	relation = TableBegin(key->call, table, RowShareLock);
	TupleTableSlot *slot = SeekToLock(relation, index, key, test, arg);
	ItemPointerData tid = {0};
	TM_Result	result = TM_Deleted;
	void	   *row = NULL;

	if (slot != NULL)
	{
		tid = slot->tts_tid;
		result = RowLock(relation, slot, mode, held == NULL ? LockWaitBlock : LockWaitSkip);
		if (result == TM_Ok)
			row = make(slot);
		else
			ExecClearTuple(slot);
	}
	TableEnd();
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

/*
 * Lock all rows of a key, as FOR UPDATE does, and read them. A row that was
 * deleted while we waited is left out. The key must be about columns that never
 * change, because it is not looked at again after a wait.
 */
List *
TableLockAll(const char *table, const char *index, Key *key, TupleMake make)
{
	Relation	relation;
	TupleTableSlot *slot;
	IndexScanDesc scan;
	List	   *rows = NIL;

	CheckWritable("SELECT FOR UPDATE");
	relation = TableBegin(key->call, table, RowShareLock);
	slot = ReadSlot(key->call, relation);
	scan = ScanBegin(relation, index, key);
	while (ScanNext(scan, key, slot))
		if (RowIsWanted(relation, slot, key->call, NULL, NULL) &&
			RowLock(relation, slot, LockTupleExclusive, LockWaitBlock) == TM_Ok)
			rows = lappend(rows, make(slot));
	index_endscan(scan);
	ExecClearTuple(slot);
	TableEnd();
	return rows;
}

/* ---------- finding a row again, to update it ---------- */

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
TupleTableSlot *
TableSeekAgain(Relation relation, const char *index, Key *key)
{
	TupleTableSlot *slot = OpenedFind(key->call, RelationGetRelid(relation))->read;

	if (ItemPointerIsValid(&key->place) && IsStillThere(slot, key))
		return slot;
	PushActiveSnapshot(SnapshotNow(key->call->writing));
	slot = FetchAgain(relation, index, key);
	PopActiveSnapshot();
	return slot;
}
