/*
 * snapshot.c
 *	  open tables under a snapshot, as a statement does
 *
 * The rows that a call reads and writes are those that a statement would see:
 * under a new snapshot (in READ COMMITTED), or under the snapshot of a call that
 * only reads. Transactions that are read-only get the usual errors.
 */
#include "base/base.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * Take the snapshot of a statement: it shows what is committed by now and what
 * we have written. A call that only reads keeps its snapshot, and so does one
 * that writes several rows together.
 */
Snapshot
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
	relation = OpenOnce(call, table, call->reading || XactReadOnly ? lockmode : RowExclusiveLock);
	if (RelationGetDescr(relation)->natts > TABLE_MAX_COLUMNS)
		elog(ERROR, "table %s has too many columns", table);
	return relation;
}

/* Open a table and push a snapshot, as a statement does. */
Relation
TableBegin(Call *call, const char *table, LOCKMODE lockmode)
{
	Relation	relation = OpenTable(call, table, lockmode);

	PushActiveSnapshot(SnapshotNow(call->reading || call->writing));
	return relation;
}

/*
 * Open a table to write rows that need not be searched. They need no new
 * snapshot; but there must be one where values are stored out of line.
 */
Relation
TableBeginWrite(Call *call, const char *table)
{
	Relation	relation = OpenTable(call, table, RowExclusiveLock);

	PushActiveSnapshot(ActiveSnapshotSet() ? GetActiveSnapshot() : GetTransactionSnapshot());
	return relation;
}

/* End the work on a table: pop the snapshot. */
void
TableEnd(void)
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

/* Check that the transaction may write. */
void
CheckWritable(const char *command)
{
	PreventCommandIfReadOnly(command);
	PreventCommandIfParallelMode(command);
}
