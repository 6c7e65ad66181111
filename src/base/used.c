/*
 * used.c
 *	  has the engine been used in this database?
 *
 * Until the engine writes for the first time, rows may come from a restore,
 * and the triggers let them pass. The answer is in table stepwise.engine. A
 * backend remembers it once it is true and committed.
 */
#include "base/base.h"

#include "access/xact.h"

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
	if (QueryRun(&mark, &params).count > 0 || EngineUsed())
		used_in_transaction = relid;
}

/* Check whether the engine has written in this database. */
bool
EngineUsed(void)
{
	static KeptQuery read = {"SELECT e.used FROM stepwise.engine AS e", 0};
	Params		params = {0};
	Rows		rows = QueryRun(&read, &params);

	return rows.count == 0 || RowBool(&rows, 0, 1);
}
