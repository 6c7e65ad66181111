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

/* Read the head of a row from the first columns of a query: id, at, actor, session_id. */
LogHead
RowLogHead(const Rows *rows, uint64 row, const char *tenant, const pg_uuid_t *plan_id)
{
	LogHead		head = {.tenant = tenant, .plan_id = plan_id};
	bool		isnull;

	head.id = DatumGetInt64(RowDatum(rows, row, 1, &isnull));
	head.at = RowTime(rows, row, 2);
	head.actor = RowText(rows, row, 3);
	head.session = RowText(rows, row, 4);
	return head;
}

/* Read the entries of a row from a column. Returns where they begin; NULL if there are none. */
const char *
RowEntries(const Rows *rows, uint64 row, int column, const char **end)
{
	struct varlena *stored = RowVarlena(rows, row, column);
	struct varlena *entries = stored ? PG_DETOAST_DATUM_PACKED(PointerGetDatum(stored)) : NULL;

	*end = entries ? VARDATA_ANY(entries) + VARSIZE_ANY_EXHDR(entries) : NULL;
	return entries ? VARDATA_ANY(entries) : NULL;
}
