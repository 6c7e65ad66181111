/*
 * used.c
 *	  has the engine been used in this database?
 *
 * Until the engine writes for the first time, rows may come from a restore,
 * and the triggers let them pass. The answer is in table stepwise.engine. A
 * backend remembers it once it is true and committed.
 */
#include "base/base.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

static Oid	used_known = InvalidOid;	/* OID of the table stepwise.engine that is known to say yes */
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

/* Register the callbacks. */
void
UsedInit(void)
{
	RegisterXactCallback(UsedAtTransactionEnd, NULL);
	RegisterSubXactCallback(UsedAtSubtransactionEnd, NULL);
}

/*
 * Check whether the engine has written in this database. This is asked at the
 * first call of each connection, so it does without a query, which would take
 * longer to prepare than the rest of the call. The newest snapshot is right in
 * any isolation level, since the answer changes only once.
 */
bool
EngineUsed(void)
{
	Relation	relation = TableOpen("engine", AccessShareLock);
	SysScanDesc scan;
	HeapTuple	row;
	bool		isnull;
	bool		used = true;

	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	scan = systable_beginscan(relation, InvalidOid, false, GetActiveSnapshot(), 0, NULL);
	row = systable_getnext(scan);
	if (HeapTupleIsValid(row))
		used = DatumGetBool(heap_getattr(row, 1, RelationGetDescr(relation), &isnull));
	systable_endscan(scan);
	PopActiveSnapshot();
	table_close(relation, NoLock);
	return used;
}

/* Note that from now on rows come from the engine, not from a restore. */
void
MarkEngineUsed(void)
{
	/* if the row is locked, another transaction is marking it; do not wait */
	static KeptQuery mark = {
		"UPDATE stepwise.engine SET used = true WHERE ctid IN"
		" (SELECT e.ctid FROM stepwise.engine AS e WHERE NOT e.used FOR UPDATE SKIP LOCKED)",
		0
	};
	Params		params = {0};
	Oid			relid = TableOid("engine");

	if (used_known == relid || used_in_transaction == relid)
		return;
	if (EngineUsed() || QueryRun(&mark, &params).count > 0)
		used_in_transaction = relid;
}
