/*
 * log.c
 *	  collect the entries of a call, and write them as rows of stepwise.audit_log
 *
 * A call makes one row for each plan that it changes, or continues the row that
 * the session has written last (log_last.c). The row is begun with the first
 * entry, and written when the call ends. It is written earlier if a query reads
 * the log, or a trigger may, if it is full, or if the actor or the session
 * changes; then the next entry begins another row. So a long call needs little
 * memory, and a row fits well into a page.
 *
 * Memory: a row is in the memory of the call until it is written.
 */
#include "engine/engine.h"

#include "commands/async.h"
#include "utils/memutils.h"

#define ROW_FULL	3500		/* bytes of entries; two such rows fit into a page */

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
	row->next = head->id;
	initStringInfo(&row->link);
	initStringInfo(&row->entries);
	/* the header of the value comes here */
	appendStringInfoSpaces(&row->entries, VARHDRSZ);
	MemoryContextSwitchTo(current);
	return row;
}

/* Continue a row that is in the table with an entry of this number. */
static LogRow *
LogContinue(Call *call, const StoredRow *stored, int64 next)
{
	LogRow	   *row = LogBegin(call, &stored->head);

	row->continues = true;
	row->place = stored->place;
	row->next = next;
	appendBinaryStringInfo(&row->entries, stored->entries, stored->end - stored->entries);
	return row;
}

/*
 * Find the row for an entry, given the row of the entry before it in this call,
 * or NULL. If that row cannot take it, the row is written. Then a row that is
 * in the table is continued, or another one begun. "before" is the hash of the
 * entry before it.
 */
LogRow *
LogFor(Call *call, LogRow *row, const LogHead *head, const uint8 before[32])
{
	StoredRow  *stored;

	if (row != NULL && row->entries.len < ROW_FULL && LogHeadsFit(&row->head, head))
		return row;
	if (row != NULL)
	{
		LogWrite(call, row);
		LogFree(row);
	}
	stored = head->plan_id ? LastRowRead(call, head, before) : NULL;
	return stored ? LogContinue(call, stored, head->id) : LogBegin(call, head);
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
	row->next++;
}

/* Insert a row. Returns its place. */
static ItemPointerData
LogInsert(Call *call, const LogRow *row)
{
	Changes		c = {0};

	SetDatum(&c, LOG_COL_ID, Int64GetDatum(row->head.id), false);
	SetTime(&c, LOG_COL_AT, row->head.at);
	SetUuid(&c, LOG_COL_PLAN_ID, row->head.plan_id);
	SetDatum(&c, LOG_COL_TENANT, call->tenant_datum, false);
	SetText(&c, LOG_COL_ACTOR, row->head.actor);
	SetText(&c, LOG_COL_SESSION_ID, row->head.session);
	SetVarlena(&c, LOG_COL_ENTRIES, row->entries.data);
	return TableInsert(call, "audit_log", &c);
}

/* Write more entries into a row that is in the table. Returns its new place. */
static ItemPointerData
LogUpdate(Call *call, const LogRow *row)
{
	Key			key = LogRowKey(call, &row->plan_id, row->head.id, row->place);
	Changes		c = {0};

	SetVarlena(&c, LOG_COL_ENTRIES, row->entries.data);
	TableGrow("audit_log", "audit_log_plan", &key, &c);
	return key.place;
}

/* Write a row, and notify listeners if stepwise.notify is on. */
void
LogWrite(Call *call, const LogRow *row)
{
	ItemPointerData place;

	SET_VARSIZE(row->entries.data, row->entries.len);
	place = row->continues ? LogUpdate(call, row) : LogInsert(call, row);
	if (row->head.plan_id != NULL)
		LastRowRemember(&row->head, row->next, row->entries.len - VARHDRSZ, place);
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
