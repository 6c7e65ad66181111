/*
 * log.c
 *	  collect the entries of a call, and write them as rows of stepwise.audit_log
 *
 * A call makes one row for each plan that it changes. The row is begun with
 * the first entry, and written when the call ends. It is written earlier if a
 * query reads the log, or a trigger may, if it is full, or if the actor or the
 * session changes; then the next entry begins another row. So a long call needs
 * little memory, and a row fits well into a page.
 *
 * Memory: a row is in the memory of the call until it is written.
 */
#include "engine/engine.h"

#include "commands/async.h"
#include "utils/memutils.h"

#define ROW_FULL	3500		/* bytes of entries; two such rows fit into a page */

/* columns of stepwise.audit_log, in the order of its definition */
enum
{
	LOG_COL_ID, LOG_COL_AT, LOG_COL_PLAN_ID, LOG_COL_TENANT, LOG_COL_ACTOR, LOG_COL_SESSION_ID, LOG_COL_ENTRIES,
	LOG_COLUMNS
};

static bool
SameOrNull(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Begin a row. Its first entry has the number and the time that are in the head. */
static LogRow *
LogBegin(Call *call, const LogHead *head)
{
	MemoryContext current = MemoryContextSwitchTo(call->context);
	LogRow	   *row = palloc0(sizeof(LogRow));

	row->head = *head;
	row->head.tenant = call->tenant;
	row->head.actor = pstrdup(head->actor);
	row->head.session = head->session ? pstrdup(head->session) : NULL;
	if (head->plan_id != NULL)
	{
		row->plan_id = *head->plan_id;
		row->head.plan_id = &row->plan_id;
	}
	initStringInfo(&row->link);
	initStringInfo(&row->entries);
	/* the header of the value comes here */
	appendStringInfoSpaces(&row->entries, VARHDRSZ);
	MemoryContextSwitchTo(current);
	return row;
}

/*
 * Find the row for an entry, given the row of the entry before it, or NULL. If
 * that row cannot take it, the row is written, and another one begun.
 */
LogRow *
LogFor(Call *call, LogRow *row, const LogHead *head)
{
	if (row != NULL && row->entries.len < ROW_FULL && head->at >= row->head.at && SameOrNull(row->head.actor, head->actor) &&
		SameOrNull(row->head.session, head->session))
		return row;
	if (row != NULL)
	{
		LogWrite(call, row);
		LogFree(row);
	}
	return LogBegin(call, head);
}

/* Add an entry to a row. "hash" is that of the entry before it, and becomes that of the entry. */
void
LogAdd(LogRow *row, const EntryFacts *facts, uint8 hash[32])
{
	bool		first = row->entries.len == VARHDRSZ;
	int			body;

	LinkBegin(&row->link, hash, first ? &row->head : NULL);
	body = row->link.len;
	EntryPut(&row->link, facts);
	Sha256(row->link.data, row->link.len, hash);
	EntryStore(&row->entries, row->link.data + body, row->link.len - body, hash);
}

/* Write a row, and notify listeners if stepwise.notify is on. */
void
LogWrite(Call *call, const LogRow *row)
{
	Changes		c = {0};

	SET_VARSIZE(row->entries.data, row->entries.len);
	SetDatum(&c, LOG_COL_ID, Int64GetDatum(row->head.id), false);
	SetTime(&c, LOG_COL_AT, row->head.at);
	SetUuid(&c, LOG_COL_PLAN_ID, row->head.plan_id);
	SetDatum(&c, LOG_COL_TENANT, call->tenant_datum, false);
	SetText(&c, LOG_COL_ACTOR, row->head.actor);
	SetText(&c, LOG_COL_SESSION_ID, row->head.session);
	SetVarlena(&c, LOG_COL_ENTRIES, row->entries.data);
	TableInsert(call, "audit_log", &c);
	if (NotifyChanges)
		Async_Notify("stepwise", NULL);
}

/* Check whether the log is written by statements, because a user has added something to it. */
bool
LogIsAltered(Call *call)
{
	return TableIsAltered(call, "audit_log") || RelationHasMoreColumns(OpenOnce(call, "audit_log", RowExclusiveLock), LOG_COLUMNS);
}

/* Free a row. */
void
LogFree(LogRow *row)
{
	pfree(row->entries.data);
	pfree(row->link.data);
	pfree(unconstify(char *, row->head.actor));
	if (row->head.session != NULL)
		pfree(unconstify(char *, row->head.session));
	pfree(row);
}

/* ---------- reading ---------- */

/* Read the entries of a row; none if an owner has set them to null. */
static void
StoredEntries(StoredRow *row, struct varlena *field)
{
	struct varlena *entries = field ? PG_DETOAST_DATUM_PACKED(PointerGetDatum(field)) : NULL;

	row->entries = entries ? VARDATA_ANY(entries) : "";
	row->end = row->entries + (entries ? VARSIZE_ANY_EXHDR(entries) : 0);
}

/* Make a StoredRow from a row of stepwise.audit_log. An owner may have set any column to null. */
static void *
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
	const char *next = row->entries;
	LogEntry	entry = {.row = &row->head, .id = row->head.id};

	for (; EntryNext(&next, row->end, &entry.stored); entry.id++)
	{
		entry.head = EntryReadHead(&entry.stored, row->head.at);
		visit(arg, &entry);
	}
	if (next != row->end)
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
