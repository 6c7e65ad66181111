/*
 * write.c
 *	  update, delete and insert rows of our own tables, without the executor
 *
 * What an UPDATE does and this does not: CHECK constraints (the engine keeps
 * to them, and plan_row.c and step_save.c verify), policies (they do not apply to the owner),
 * and row triggers (ours let the engine pass). If a user has added something to
 * a table (altered.c), its rows are written by a statement instead (statement.c).
 */
#include "base/base.h"

#include "access/heapam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "executor/executor.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Return the command id with which a call writes. */
CommandId
CommandOf(const Call *call)
{
	return call->command != InvalidCommandId ? call->command : GetCurrentCommandId(true);
}

/*
 * Check whether the rows of a table are written by statements.
 *
 * What a suspended call has kept is shown without (CallShow): a statement has a
 * later command id, which who looks may not see. The call began to keep rows when
 * nobody had added anything to their tables, and has them locked. So what was
 * added since is an index, made concurrently, and it wants no entries before our
 * transaction ends.
 */
static bool
NeedsStatement(const Call *call, Relation relation)
{
	return call->command == InvalidCommandId && RelationIsAltered(relation);
}

/* Form a row of a table. */
HeapTuple
TableForm(Relation relation, const Changes *row)
{
	return RowFormTuple(&FactsOf(relation)->form, relation, row->values, row->nulls);
}

/* ---------- updating ---------- */

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

/* Return the size of a row that was read from its page. */
static Size
SizeOfRow(TupleTableSlot *slot)
{
	return TTS_IS_BUFFERTUPLE(slot) ? ((BufferHeapTupleTableSlot *) slot)->base.tuple->t_len : 0;
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
	return TableForm(relation, changes);
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
		if (IsolationUsesXactSnapshot() || RowLock(relation, old, LockTupleNoKeyExclusive, LockWaitBlock) != TM_Ok)
			RefuseConcurrentUpdate();
	EntriesAddOfUpdate(call, relation, new, changes, indexes);
	*place = new->tts_tid;
	ExecClearTuple(new);
}

/* Write the new version of a row that the call has seen in a place; it has a new place then. */
static void
UpdateRow(const char *table, const char *index, Key *key, Changes *changes, bool grows)
{
	Relation	relation;
	TupleTableSlot *old;

	CheckWritable("UPDATE");
	relation = TableBeginWrite(key->call, table);
	old = TableSeekAgain(relation, index, key);
	if (!grows && NeedsStatement(key->call, relation))
	{
		StatementShowLog(key->call);
		StatementUpdate(relation, key, changes);
		ItemPointerSetInvalid(&key->place);
	}
	else
		Update(key->call, relation, old, changes, &key->place);
	ExecClearTuple(old);
	TableEnd();
}

/*
 * Update one row. The key is its id, and has the place where the call has seen
 * the row; afterwards it has the new place.
 */
void
TableUpdate(const char *table, const char *index, Key *key, Changes *changes)
{
	UpdateRow(table, index, key, changes, false);
}

/*
 * Find the row of a key in its place, if the page has room for a version that
 * is larger by "growth"; NULL: not so. A page that must be pruned for that must
 * then have room for two versions: otherwise each call would prune it.
 */
static TupleTableSlot *
SeekWithRoom(Relation relation, Key *key, Size growth)
{
	TupleTableSlot *slot = TableSeekPlace(relation, key);

	if (slot == NULL || !HasNoRoom(slot, SizeOfRow(slot) + growth))
		return slot;
	ExecClearTuple(slot);
	MakeRoom(relation, ItemPointerGetBlockNumber(&key->place));
	slot = TableSeekPlace(relation, key);
	return slot != NULL && HasNoRoom(slot, 2 * (SizeOfRow(slot) + growth)) ? NULL : slot;
}

/*
 * Read the row of a key in the place where it may be, in order to replace it by
 * a larger version in the same page. Returns NULL if it is not there, or if the
 * page has no room for so much more. Also returns NULL if others would see the
 * update: the triggers of a user, and the subscribers of a publication.
 */
void *
TableReadToGrow(const char *table, Key *key, Size growth, TupleMake make)
{
	Relation	relation = TableBegin(key->call, table, RowExclusiveLock);
	TupleTableSlot *slot = NULL;
	void	   *row;

	if (!RelationIsAltered(relation) && !RelationIsLogicallyLogged(relation))
		slot = SeekWithRoom(relation, key, growth);
	row = slot ? make(slot) : NULL;
	TableEnd();
	return row;
}

/*
 * Write the larger version of a row. The table has been locked since the row was
 * read. So nobody has altered it, but for an index that is made concurrently and
 * wants no entries before our transaction ends.
 */
void
TableGrow(const char *table, const char *index, Key *key, Changes *changes)
{
	UpdateRow(table, index, key, changes, true);
}

/* ---------- deleting ---------- */

/* Delete the row in the slot. If it was updated since it was read, delete the new version. */
static void
Delete(const Call *call, Relation relation, TupleTableSlot *slot)
{
	TM_FailureData failure;

	while (table_tuple_delete(relation, &slot->tts_tid, CommandOf(call), GetActiveSnapshot(), InvalidSnapshot,
							  true, &failure, false) != TM_Ok)
		if (IsolationUsesXactSnapshot() || RowLock(relation, slot, LockTupleExclusive, LockWaitBlock) != TM_Ok)
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

	StatementShowLog(key->call);
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
	relation = TableBegin(key->call, table, RowExclusiveLock);
	if (RelationIsAltered(relation))
		DeleteByStatements(relation, table, index, key, test, arg);
	else
	{
		CheckCmdReplicaIdentity(relation, CMD_DELETE);
		slot = ReadSlot(key->call, relation);
		scan = ScanBegin(relation, index, key);
		while (ScanNext(scan, key, slot))
			if (RowIsWanted(relation, slot, key->call, test, arg))
				Delete(key->call, relation, slot);
		index_endscan(scan);
		ExecClearTuple(slot);
	}
	TableEnd();
}

/* ---------- inserting ---------- */

static ItemPointerData
Insert(Call *call, Relation relation, Changes *changes)
{
	TupleTableSlot *slot = WriteSlot(call, relation);
	ItemPointerData place;

	ExecStoreHeapTuple(TableForm(relation, changes), slot, true);
	table_tuple_insert(relation, slot, CommandOf(call), 0, NULL);
	EntriesAdd(call, relation, &slot, 1, NULL);
	place = slot->tts_tid;
	ExecClearTuple(slot);
	return place;
}

/* Check whether a row leaves out a column that a user has added. One that was dropped is set to null. */
static bool
LeavesColumnOut(Relation relation, Changes *row)
{
	int			known = RelationGetDescr(relation)->natts;

	while (known > 0 && !row->replaces[known - 1])
		row->nulls[--known] = true;
	return RelationHasMoreColumns(relation, known);
}

/*
 * Insert one row, and return its place. If a user has added a column, a
 * statement fills in its default; then the place is not valid.
 */
ItemPointerData
TableInsert(Call *call, const char *table, Changes *changes)
{
	ItemPointerData place = {0};
	Relation	relation;

	CheckWritable("INSERT");
	relation = TableBeginWrite(call, table);
	if (NeedsStatement(call, relation) || LeavesColumnOut(relation, changes))
		StatementInsert(relation, changes);
	else
		place = Insert(call, relation, changes);
	TableEnd();
	return place;
}
