/*
 * log_read.c
 *	  read the rows of stepwise.audit_log
 *
 * Memory: what is read of a row is in the current context; bodies and hashes
 * of its entries point into it.
 */
#include "engine/engine.h"

#include "utils/memutils.h"

/* Read the entries of a row; none if an owner has set them to null. */
static void
StoredEntries(StoredRow *row, struct varlena *field)
{
	struct varlena *entries = field ? PG_DETOAST_DATUM_PACKED(PointerGetDatum(field)) : NULL;

	row->entries = entries ? VARDATA_ANY(entries) : "";
	row->end = row->entries + (entries ? VARSIZE_ANY_EXHDR(entries) : 0);
}

/* Make a StoredRow from a row of stepwise.audit_log, for TableRead. An owner may have set any column to null. */
void *
StoredMake(TupleTableSlot *slot)
{
	StoredRow  *row = palloc0(sizeof(StoredRow));
	char	   *actor = ColumnText(slot, LOG_COL_ACTOR);

	row->plan_id = ColumnUuid(slot, LOG_COL_PLAN_ID);
	row->head.tenant = ColumnText(slot, LOG_COL_TENANT);
	row->head.plan_id = ColumnIsNull(slot, LOG_COL_PLAN_ID) ? NULL : &row->plan_id;
	row->head.id = DatumGetInt64(ColumnDatum(slot, LOG_COL_ID));
	row->head.at = ColumnTime(slot, LOG_COL_AT);
	row->head.actor = actor ? actor : "";
	row->head.session = ColumnText(slot, LOG_COL_SESSION_ID);
	StoredEntries(row, ColumnField(slot, LOG_COL_ENTRIES));
	row->place = slot->tts_tid;
	return row;
}

/* Make the key of the rows of a plan, or of the chain of the tenant if plan_id is NULL. */
static Key
LogKey(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = {.call = call};

	if (plan_id != NULL)
		KeyUuid(&key, plan_id);
	else
		KeyText(&key, call->tenant_datum);
	return key;
}

static const char *
LogIndex(const pg_uuid_t *plan_id)
{
	return plan_id ? "audit_log_plan" : "audit_log_tenant";
}

/*
 * Read the rows of a plan, or of the chain of the tenant if plan_id is NULL: those
 * that begin after an entry, at most max, in their order. What the call has not
 * written yet is written first.
 */
List *
LogRows(Call *call, const pg_uuid_t *plan_id, int64 after, int max)
{
	Key			key = LogKey(call, plan_id);

	if (call->save != NULL)
		call->save(call, call, SAVE_LOG);
	KeyLongAbove(&key, after);
	return TableReadSome("audit_log", LogIndex(plan_id), &key, NULL, NULL, StoredMake, max);
}

/* Show the entries of a row to a visitor. */
static void
RowVisit(const StoredRow *row, EntryVisit visit, void *arg)
{
	const char *next = row->end;
	LogEntry	entry = {.row = &row->head, .id = row->head.id};

	for (; EntryNext(row->entries, &next, &entry.stored); entry.id++)
	{
		entry.head = EntryReadHead(&entry.stored, row->head.at);
		visit(arg, &entry);
	}
	if (next != row->entries)
		EntryRefuse();
}

#define ROWS_AT_ONCE	100

/*
 * Show all entries of a plan to a visitor, in their order. What the visitor
 * allocates is freed, unless it allocates it in a context of its own.
 */
void
LogVisit(Call *call, const pg_uuid_t *plan_id, EntryVisit visit, void *arg)
{
	MemoryContext batch = AllocSetContextCreate(CurrentMemoryContext, "stepwise log", ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(batch);
	int64		after = PG_INT64_MIN;
	int			count;

	do
	{
		List	   *rows = LogRows(call, plan_id, after, ROWS_AT_ONCE);
		ListCell   *cell;

		foreach(cell, rows)
			RowVisit(lfirst(cell), visit, arg);
		count = list_length(rows);
		if (count > 0)
			after = ((StoredRow *) llast(rows))->head.id;
		MemoryContextReset(batch);
	} while (count == ROWS_AT_ONCE);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(batch);
}

/* Read the newest row of the chain of the tenant; NULL if there is none. */
StoredRow *
LogNewest(Call *call)
{
	Key			key = LogKey(call, NULL);

	key.backward = true;
	return TableRead("audit_log", LogIndex(NULL), &key, NULL, NULL, StoredMake);
}
