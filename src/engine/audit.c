/*
 * audit.c
 *	  hash and write audit entries
 *
 * The hash of an entry is SHA-256 over a version byte, the hash of the entry
 * before it, and all its fields, each preceded by its length. So the entries
 * form a chain. Each plan has a chain. The row of the plan has the number and
 * the hash of the newest entry, and is locked when an entry is written. Entries
 * without a plan form one chain per tenant; chain.c says when they are written.
 *
 * An entry of a plan has the time of its call (CallNow), which never decreases.
 *
 * Memory: an entry is built in call->scratch, which is reset after each entry.
 */
#include "engine/engine.h"

#include "commands/async.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"

#define CHAIN_VERSION	1

/* columns of stepwise.audit, in the order of its definition */
enum
{
	AUDIT_COL_TENANT, AUDIT_COL_PLAN_ID, AUDIT_COL_ID, AUDIT_COL_STEP_ID, AUDIT_COL_AT, AUDIT_COL_EVENT, AUDIT_COL_ACTOR,
	AUDIT_COL_SESSION_ID, AUDIT_COL_DETAIL, AUDIT_COL_HASH,
	AUDIT_COLUMNS
};

/* ---------- hashing ---------- */

/* Append a field with its length. A null has the length 0xFFFFFFFF. */
static void
HashField(StringInfo data, const void *field, int size)
{
	uint32		length = pg_hton32(field ? (uint32) size : PG_UINT32_MAX);

	appendBinaryStringInfo(data, (char *) &length, sizeof(length));
	if (field != NULL)
		appendBinaryStringInfo(data, field, size);
}

/* Append a text in UTF-8, so that the chain verifies after a dump and restore in another encoding. */
static void
HashText(StringInfo data, const char *text)
{
	CheckUtf8(text, "an audit entry");
	if (text != NULL)
		text = Utf8Form(text);
	HashField(data, text, text ? strlen(text) : 0);
}

/* Append a number as eight bytes, the highest first. */
static void
HashNumber(StringInfo data, int64 number)
{
	uint8		bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (uint8) ((uint64) number >> (56 - 8 * i));
	HashField(data, bytes, sizeof(bytes));
}

/* Hash an entry; before is the hash of the entry before it. Both arrays may be the same. */
void
EntryHash(const AuditEntry *entry, const uint8 before[32], uint8 hash[32])
{
	StringInfoData data;

	initStringInfo(&data);
	appendStringInfoChar(&data, CHAIN_VERSION);
	HashField(&data, before, 32);
	HashText(&data, entry->tenant);
	HashField(&data, entry->plan_id, UUID_LEN);
	HashNumber(&data, entry->id);
	HashField(&data, entry->step_id, UUID_LEN);
	HashNumber(&data, entry->at);
	HashText(&data, entry->event);
	HashText(&data, entry->actor);
	HashText(&data, entry->session);
	HashText(&data, entry->detail);
	Sha256(data.data, data.len, hash);
	pfree(data.data);
}

/* Read the number of an entry from a row. */
int64
RowEntryId(const Rows *rows, uint64 row, int column)
{
	bool		isnull;

	return DatumGetInt64(RowDatum(rows, row, column, &isnull));
}

/* Insert an entry, and notify listeners if stepwise.notify is on. */
static void
EntryWrite(Call *call, const AuditEntry *entry, Jsonb *detail, const uint8 hash[32])
{
	Changes		c = {0};

	SetDatum(&c, AUDIT_COL_TENANT, call->tenant_datum, false);
	SetUuid(&c, AUDIT_COL_PLAN_ID, entry->plan_id);
	SetDatum(&c, AUDIT_COL_ID, Int64GetDatum(entry->id), false);
	SetUuid(&c, AUDIT_COL_STEP_ID, entry->step_id);
	SetTime(&c, AUDIT_COL_AT, entry->at);
	SetText(&c, AUDIT_COL_EVENT, entry->event);
	SetText(&c, AUDIT_COL_ACTOR, entry->actor);
	SetText(&c, AUDIT_COL_SESSION_ID, entry->session);
	SetVarlena(&c, AUDIT_COL_DETAIL, detail);
	SetVarlena(&c, AUDIT_COL_HASH, cstring_to_text_with_len((const char *) hash, 32));
	TableInsert(call, "audit", &c);
	if (NotifyChanges)
		Async_Notify("stepwise", NULL);
}

/* Append an entry to the chain of a plan, which the caller has locked. */
void
AuditAppend(Call *call, PlanRow *plan, const pg_uuid_t *step_id, const char *event, Jsonb *detail)
{
	MemoryContext outer = MemoryContextSwitchTo(call->scratch);
	AuditEntry	entry = {0};

	MarkEngineUsed();
	if (detail == NULL)
		detail = JsonEmptyObject();
	entry.tenant = call->tenant;
	entry.plan_id = &plan->id;
	PlanTouch(plan);
	entry.id = ++plan->audit_entries;
	entry.step_id = step_id;
	entry.at = CallNow(call, plan);
	entry.event = event;
	entry.actor = ActorText(call);
	entry.session = call->session ? call->session : plan->session_id;
	entry.detail = JsonToText(detail);
	EntryHash(&entry, plan->audit_head, plan->audit_head);
	EntryWrite(call, &entry, detail, plan->audit_head);
	MemoryContextSwitchTo(outer);
	MemoryContextReset(call->scratch);
}

/*
 * Read the newest entry of the chain of the tenant. With "latest", see what is
 * committed by now, also under REPEATABLE READ and SERIALIZABLE.
 */
ChainEnd
ChainEndRead(Call *call, bool latest)
{
#define NEWEST_ENTRY \
	"SELECT a.id, a.hash FROM stepwise.audit AS a WHERE a.tenant = $1 AND a.plan_id IS NULL" \
	" ORDER BY a.tenant DESC, a.plan_id DESC, a.id DESC LIMIT 1"
	static KeptQuery seen = {NEWEST_ENTRY, 1, {TEXTOID}};
	static KeptQuery committed = {NEWEST_ENTRY, 1, {TEXTOID}, .latest = true};
	ChainEnd	end = {0};
	Rows		rows = QueryOfTenant(call, latest ? &committed : &seen);

	if (rows.count > 0)
	{
		struct varlena *hash = RowVarlena(&rows, 0, 2);

		end.id = RowEntryId(&rows, 0, 1);
		if (hash != NULL && VARSIZE_ANY_EXHDR(hash) == sizeof(end.hash))
			memcpy(end.hash, VARDATA_ANY(hash), sizeof(end.hash));
	}
	RowsFree(&rows);
	return end;
}

/* Append an entry to the chain of the tenant, which the caller has locked. *end becomes the new entry. */
void
AuditWritePlanless(Call *call, const PlanlessEntry *planless, ChainEnd *end)
{
	MemoryContext outer = MemoryContextSwitchTo(call->scratch);
	AuditEntry	entry = {0};

	entry.tenant = call->tenant;
	entry.id = ++end->id;
	entry.at = planless->at;
	entry.event = planless->event;
	entry.actor = planless->actor;
	entry.session = planless->session;
	entry.detail = JsonToText(planless->detail);
	EntryHash(&entry, end->hash, end->hash);
	EntryWrite(call, &entry, planless->detail, end->hash);
	MemoryContextSwitchTo(outer);
	MemoryContextReset(call->scratch);
}
