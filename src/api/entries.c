/*
 * entries.c
 *	  take rows of the audit log apart, for view stepwise.audit
 *
 * Anybody who may read the log may call these functions with any bytes. Bytes
 * that are not entries are an error.
 */
#include "api/api.h"

#include "funcapi.h"
#include "miscadmin.h"

/* columns of stepwise.audit_entries */
enum
{
	ENTRIES_ID, ENTRIES_AT, ENTRIES_STEP_ID, ENTRIES_EVENT, ENTRIES_BODY, ENTRIES_HASH,
	ENTRIES_COLUMNS
};

static Datum
Bytea(const void *data, int size)
{
	return PointerGetDatum(cstring_to_text_with_len(data, size));
}

/* Put one entry into the result of stepwise.audit_entries. */
static void
PutEntry(ReturnSetInfo *result, int64 id, TimestampTz since, const StoredEntry *entry)
{
	EntryHead	head = EntryReadHead(entry, since);
	Datum		values[ENTRIES_COLUMNS];
	bool		nulls[ENTRIES_COLUMNS] = {0};

	values[ENTRIES_ID] = Int64GetDatum(id);
	values[ENTRIES_AT] = TimestampTzGetDatum(head.at);
	values[ENTRIES_STEP_ID] = UUIDPGetDatum(&head.step_id);
	nulls[ENTRIES_STEP_ID] = !head.has_step;
	values[ENTRIES_EVENT] = CStringGetTextDatum(head.event);
	values[ENTRIES_BODY] = Bytea(entry->body, entry->size);
	values[ENTRIES_HASH] = Bytea(entry->hash, 32);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/* Show the entries of a row of the log. */
PG_FUNCTION_INFO_V1(stepwise_audit_entries);
Datum
stepwise_audit_entries(PG_FUNCTION_ARGS)
{
	int64		id = PG_GETARG_INT64(0);
	bytea	   *entries = PG_GETARG_BYTEA_PP(2);
	const char *start = VARDATA_ANY(entries);
	const char *next = start + VARSIZE_ANY_EXHDR(entries);
	StoredEntry entry;

	InitMaterializedSRF(fcinfo, 0);
	for (; EntryNext(start, &next, &entry); id++)
	{
		CHECK_FOR_INTERRUPTS();
		PutEntry((ReturnSetInfo *) fcinfo->resultinfo, id, PG_GETARG_TIMESTAMPTZ(1), &entry);
	}
	if (next != start)
		EntryRefuse();
	return (Datum) 0;
}

/* Show the detail of an entry. */
PG_FUNCTION_INFO_V1(stepwise_audit_detail);
Datum
stepwise_audit_detail(PG_FUNCTION_ARGS)
{
	bytea	   *body = PG_GETARG_BYTEA_PP(0);
	StoredEntry entry = {.body = VARDATA_ANY(body), .size = VARSIZE_ANY_EXHDR(body)};

	return PointerGetDatum(EntryReadDetail(&entry));
}
