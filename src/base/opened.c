/*
 * opened.c
 *	  open tables and indexes for a call
 *
 * Tables and indexes stay open until the end of the call, since a call comes
 * back to the same few of them. Each table has a slot for the row that was read
 * last, and one for a row that is written.
 */
#include "base/base.h"

#include "access/relation.h"
#include "storage/lmgr.h"
#include "utils/rel.h"

/* Find a table or index that the call has opened; NULL: it has not. */
Opened *
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
Relation
OpenOnce(Call *call, const char *name, LOCKMODE lockmode)
{
	Opened	   *opened = OpenedByName(call, name);

	if (opened == NULL)
		return OpenedKeep(call, name, TableOpen(name, lockmode), lockmode);
	if ((opened->locked & LOCKBIT_ON(lockmode)) == 0)
		LockRelationOid(RelationGetRelid(opened->relation), lockmode);
	opened->locked |= LOCKBIT_ON(lockmode);
	return opened->relation;
}

/* Open an index by its id, in order to add entries. */
Relation
IndexOpen(Call *call, Oid index)
{
	const Opened *opened = OpenedFind(call, index);

	if (opened != NULL && (opened->locked & LOCKBIT_ON(RowExclusiveLock)) != 0)
		return opened->relation;
	return OpenedKeep(call, NULL, index_open(index, RowExclusiveLock), RowExclusiveLock);
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
 * that they have read last (TableSeekAgain).
 */
TupleTableSlot *
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
TupleTableSlot *
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
