/*
 * entry.c
 *	  the stored form of an audit entry, and its hash
 *
 * A row of stepwise.audit_log has the entries that one call, or several calls of
 * one session, made in one plan. Its column "entries" has for each of them the
 * body, its hash of 32 bytes, and the length of the body. A length below 255 is
 * one byte; a larger one is four bytes and the byte 255. All numbers have the
 * highest byte first. The newest entry comes first, and reading begins at the
 * end: what is added to a row leaves the bytes behind it as they were, and
 * PostgreSQL writes only what is new of it to the WAL.
 *
 * The body has the number of the event (one byte), flags (one byte), and then
 * what the flags name, in this order:
 *
 *	1	the step, 16 bytes
 *	2	how much later it is than the "at" of the row: microseconds, a count
 *	4	a move: one byte "from" and "to", four bits each; one byte of marks;
 *		and then what the marks name, in this order:
 *			1	attempt, a count
 *			2	leaseExpiresAt: microseconds since 2000, eight bytes
 *			4	outcome: one byte; a resultDigest follows, or is null
 *			8	resultDigest, 32 bytes
 *			16	message, a text
 *			32	checkpointId, 16 bytes
 *	8	texts: how many (one byte), and for each the number of its key (one
 *		byte), and the text
 *	16	other members, as JSON text, up to the end of the body
 *
 * A count has seven bits in each byte, the lowest first; all bytes but the last
 * have the highest bit set. A text is a count of bytes, and the bytes in UTF-8.
 * So the bytes mean the same in every encoding, on every machine, and in every
 * version of PostgreSQL; they are hashed as they are.
 *
 * The hash of an entry is SHA-256 over these, in this order:
 *
 *	- the version of the chain, one byte
 *	- one byte: 1 for the first entry of its row, otherwise 0
 *	- the hash of the entry before it
 *	- in the first entry of a row, the other columns of the row
 *	- the body
 *
 * So the entries of a plan form a chain, and every stored byte is in it.
 *
 * The numbers of events, states and keys are in the log for ever. New ones go
 * to the ends of the lists.
 *
 * Memory: bodies are read in place. Texts are copied to the current context.
 */
#include "engine/engine.h"

#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
#include "utils/fmgrprotos.h"

#define CHAIN_VERSION	2
#define LONG_LENGTH		255		/* the length follows as four bytes */

/* the events, by their numbers, from 0 */
static const char *const EventNames[] = {
	"step_started", "step_completed", "plan_status_changed", "plan_modified", "step_failed", "step_skipped", "step_released",
	"step_retried", "step_waiting", "step_resumed", "plan_paused", "user_reviewed", "session_resumed", "skill_started",
	"skill_completed"
};

/* keys of texts, by their numbers, from 0 */
static const char *const TextKeys[] = {
	"by", "reason", "worker", "action", "code", "gate", "condition", "tool", "checkpointId", "nestedPlanId", "nestedStatus",
	"outputsDigest"
};

/* flags of an entry */
enum
{
	HAS_STEP = 1, HAS_TIME = 2, HAS_MOVE = 4, HAS_TEXTS = 8, HAS_JSON = 16
};

/* marks of a move */
enum
{
	HAS_ATTEMPT = 1, HAS_LEASE = 2, HAS_OUTCOME = 4, HAS_DIGEST = 8, HAS_MESSAGE = 16, HAS_CHECKPOINT = 32
};

/* ---------- writing ---------- */

static void
PutByte(StringInfo body, int byte)
{
	appendStringInfoCharMacro(body, (char) byte);
}

/* Append eight bytes, the highest first. */
static void
PutLong(StringInfo body, int64 number)
{
	uint64		bytes = pg_hton64((uint64) number);

	appendBinaryStringInfo(body, (char *) &bytes, sizeof(bytes));
}

static void
PutCount(StringInfo body, uint64 count)
{
	for (; count > 0x7F; count >>= 7)
		PutByte(body, 0x80 | (int) (count & 0x7F));
	PutByte(body, (int) count);
}

/* Append a text in UTF-8, so that it can be read after a dump and restore in another encoding. */
static void
PutText(StringInfo body, const char *text)
{
	int			size;

	CheckUtf8(text, "an audit entry");
	text = Utf8Form(text);
	size = strlen(text);
	PutCount(body, size);
	appendBinaryStringInfo(body, text, size);
}

/* Append a move. Its marks stand before what they name. */
static void
PutMove(StringInfo body, const EntryMove *move)
{
	int			marks;

	PutByte(body, move->from << 4 | move->to);
	marks = body->len;
	PutByte(body, (move->attempt > 0 ? HAS_ATTEMPT : 0) | (TimeIsSet(move->lease_expires_at) ? HAS_LEASE : 0) |
			(move->completed ? HAS_OUTCOME : 0) | (move->message ? HAS_MESSAGE : 0) | (move->checkpoint_id ? HAS_CHECKPOINT : 0));
	if (move->attempt > 0)
		PutCount(body, move->attempt);
	if (TimeIsSet(move->lease_expires_at))
		PutLong(body, move->lease_expires_at);
	if (move->completed)
	{
		uint8		digest[32];

		PutByte(body, move->outcome);
		if (DigestJson(move->result, digest))
		{
			body->data[marks] |= HAS_DIGEST;
			appendBinaryStringInfo(body, (char *) digest, sizeof(digest));
		}
	}
	if (move->message != NULL)
		PutText(body, move->message);
	if (move->checkpoint_id != NULL)
		appendBinaryStringInfo(body, (const char *) move->checkpoint_id, UUID_LEN);
}

/* Find the number of a key; -1 if it has none. */
static int
TextKey(const JsonbValue *key)
{
	for (size_t i = 0; i < lengthof(TextKeys); i++)
		if (strlen(TextKeys[i]) == (size_t) key->val.string.len && memcmp(TextKeys[i], key->val.string.val, key->val.string.len) == 0)
			return (int) i;
	return -1;
}

/*
 * Append the members of an object as texts. Returns false, and appends
 * nothing, if one of them is not a string or has no number.
 */
static bool
PutTexts(StringInfo body, const Jsonb *object)
{
	JsonbIterator *iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &object->root));
	JsonbIteratorToken token;
	JsonbValue	value;
	int			start = body->len;
	bool		fits = JB_ROOT_COUNT(object) <= lengthof(TextKeys);

	PutByte(body, JB_ROOT_COUNT(object));
	while (fits && (token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		int			key = token == WJB_KEY ? TextKey(&value) : 0;

		fits = key >= 0 && (token != WJB_VALUE || value.type == jbvString);
		if (fits && token == WJB_KEY)
			PutByte(body, key);
		if (fits && token == WJB_VALUE)
			PutText(body, JsonValueText(&value));
	}
	if (!fits)
		body->len = start;
	return fits;
}

/* Append the members of an object: as texts, or as JSON. Returns the flag that says which. */
static int
PutMembers(StringInfo body, const Jsonb *object)
{
	const char *text;

	if (object == NULL || JB_ROOT_COUNT(object) == 0)
		return 0;
	if (PutTexts(body, object))
		return HAS_TEXTS;
	CheckJsonUtf8(object, "an audit entry");
	text = Utf8Form(JsonToText(object));
	appendBinaryStringInfo(body, text, strlen(text));
	return HAS_JSON;
}

/* Append the body of an entry. */
void
EntryPut(StringInfo body, const EntryFacts *facts)
{
	int			event = NameIndex(facts->event, EventNames, lengthof(EventNames));
	int			flags = body->len + 1;	/* where they are */
	int			members;

	if (event < 0)
		elog(ERROR, "audit event \"%s\" has no number", facts->event);
	PutByte(body, event);
	PutByte(body, 0);
	if (facts->step_id != NULL)
	{
		body->data[flags] |= HAS_STEP;
		appendBinaryStringInfo(body, (const char *) facts->step_id, UUID_LEN);
	}
	if (facts->later != 0)
	{
		body->data[flags] |= HAS_TIME;
		PutCount(body, facts->later);
	}
	if (facts->move != NULL)
	{
		body->data[flags] |= HAS_MOVE;
		PutMove(body, facts->move);
	}
	/* the buffer may move while the members are appended */
	members = PutMembers(body, facts->members);
	body->data[flags] |= members;
}

/* Put bytes in front of the entries of a row, and behind the header of the value. */
static void
PutInFront(StringInfo entries, const void *bytes, int size)
{
	char	   *front;

	enlargeStringInfo(entries, size);
	front = entries->data + VARHDRSZ;
	memmove(front + size, front, entries->len - VARHDRSZ + 1);
	memcpy(front, bytes, size);
	entries->len += size;
}

/* Put an entry in front of the entries of a row, which are a varlena. */
void
EntryStore(StringInfo entries, const char *body, int size, const uint8 hash[32])
{
	uint32		length = pg_hton32((uint32) size);
	uint8		mark = Min(size, LONG_LENGTH);

	PutInFront(entries, &mark, 1);
	if (mark == LONG_LENGTH)
		PutInFront(entries, &length, sizeof(length));
	PutInFront(entries, hash, 32);
	PutInFront(entries, body, size);
}

/* ---------- hashing ---------- */

/* Append a text with its length. A null has the length 0xFFFFFFFF. */
static void
LinkText(StringInfo link, const char *text)
{
	const char *utf8 = text ? Utf8Form(text) : "";
	uint32		length = pg_hton32(text ? (uint32) strlen(utf8) : PG_UINT32_MAX);

	CheckUtf8(text, "an audit entry");
	appendBinaryStringInfo(link, (char *) &length, sizeof(length));
	appendBinaryStringInfo(link, utf8, strlen(utf8));
}

/*
 * Begin what is hashed of an entry; its body is to be appended. "before" is the
 * hash of the entry before it. "row" is NULL unless it is the first of its row.
 */
void
LinkBegin(StringInfo link, const uint8 before[32], const LogHead *row)
{
	static const pg_uuid_t none = {0};

	resetStringInfo(link);
	PutByte(link, CHAIN_VERSION);
	PutByte(link, row != NULL);
	appendBinaryStringInfo(link, (const char *) before, 32);
	if (row == NULL)
		return;
	LinkText(link, row->tenant);
	PutByte(link, row->plan_id != NULL);
	appendBinaryStringInfo(link, (const char *) (row->plan_id ? row->plan_id : &none), UUID_LEN);
	PutLong(link, row->id);
	PutLong(link, row->at);
	LinkText(link, row->actor);
	LinkText(link, row->session);
}

/* ---------- rows ---------- */

static bool
SameOrNull(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Check whether an entry can be in a row: with the same actor and session, and not before its first entry. */
bool
LogHeadsFit(const LogHead *row, const LogHead *entry)
{
	return entry->at >= row->at && SameOrNull(row->actor, entry->actor) && SameOrNull(row->session, entry->session);
}

/* ---------- reading ---------- */

/*
 * Find the next entry of a row: the one that ends at *end. Returns false after the
 * last one, and if the rest cannot be an entry; then *end is not the start.
 */
bool
EntryNext(const char *start, const char **end, StoredEntry *entry)
{
	const unsigned char *at = (const unsigned char *) *end;
	int64		left = *end - start;
	int64		size;
	int			tail = 1;

	if (left < 1)
		return false;
	size = at[-1];
	if (size == LONG_LENGTH)
	{
		tail = 5;
		if (left < tail)
			return false;
		size = (int64) at[-5] << 24 | at[-4] << 16 | at[-3] << 8 | at[-2];
	}
	/* the event and the flags are always there */
	if (size < 2 || left < size + 32 + tail)
		return false;
	entry->hash = at - tail - 32;
	entry->body = (const char *) entry->hash - size;
	entry->size = size;
	*end = entry->body;
	return true;
}

/* what is left of a body */
typedef struct Bytes
{
	const char *next;
	const char *end;
} Bytes;

/* Refuse bytes that are no entry. */
void
EntryRefuse(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_DEFINITION),
			 errmsg("an entry of the audit log cannot be read"),
			 errhint("stepwise.verify_audit(plan_id) names the first entry that was changed.")));
}

static const char *
Take(Bytes *bytes, int64 size)
{
	const char *taken = bytes->next;

	if (size < 0 || bytes->end - bytes->next < size)
		EntryRefuse();
	bytes->next += size;
	return taken;
}

static int
TakeByte(Bytes *bytes)
{
	return (unsigned char) *Take(bytes, 1);
}

/* Take the index of a word. */
static int
TakeIndex(Bytes *bytes, int count)
{
	int			index = TakeByte(bytes);

	if (index >= count)
		EntryRefuse();
	return index;
}

static int64
TakeLong(Bytes *bytes)
{
	uint64		number;

	memcpy(&number, Take(bytes, sizeof(number)), sizeof(number));
	return (int64) pg_ntoh64(number);
}

static int64
TakeCount(Bytes *bytes)
{
	uint64		count = 0;
	int			shift = 0;
	int			byte;

	do
	{
		byte = TakeByte(bytes);
		if (shift > 56)
			EntryRefuse();
		count |= (uint64) (byte & 0x7F) << shift;
		shift += 7;
	} while (byte & 0x80);
	return (int64) count;
}

static pg_uuid_t
TakeUuid(Bytes *bytes)
{
	pg_uuid_t	uuid;

	memcpy(&uuid, Take(bytes, UUID_LEN), UUID_LEN);
	return uuid;
}

/* Take a text of the given size, in the encoding of the database. */
static char *
TakeChars(Bytes *bytes, int64 size)
{
	const char *utf8 = Take(bytes, size);
	char	   *text = pg_any_to_server(utf8, (int) size, PG_UTF8);

	return text == utf8 ? pnstrdup(utf8, size) : text;
}

static char *
TakeText(Bytes *bytes)
{
	return TakeChars(bytes, TakeCount(bytes));
}

/* Take the facts before the detail. "at" is that of the row. */
static int
TakeHead(Bytes *bytes, EntryHead *head, TimestampTz at)
{
	int			flags;

	head->event = EventNames[TakeIndex(bytes, lengthof(EventNames))];
	flags = TakeByte(bytes);
	head->has_step = (flags & HAS_STEP) != 0;
	if (head->has_step)
		head->step_id = TakeUuid(bytes);
	head->at = at;
	if (flags & HAS_TIME)
		head->at += TakeCount(bytes);
	return flags;
}

/* Read the event, the step and the time of an entry. "at" is that of its row. */
EntryHead
EntryReadHead(const StoredEntry *entry, TimestampTz at)
{
	Bytes		bytes = {entry->body, entry->body + entry->size};
	EntryHead	head;

	TakeHead(&bytes, &head, at);
	return head;
}

/* Name the event of an entry; NULL if it has none. */
const char *
EntryEvent(const StoredEntry *entry)
{
	size_t		event = (unsigned char) entry->body[0];

	return event < lengthof(EventNames) ? EventNames[event] : NULL;
}

static void
TakeOutcome(JsonBuilder *b, Bytes *bytes, bool has_digest)
{
	JsonPutText(b, "outcome", OutcomeName[TakeIndex(bytes, OUTCOMES)]);
	JsonPutText(b, "resultDigest", has_digest ? DigestHex((const uint8 *) Take(bytes, 32)) : NULL);
}

/* Take a move. Without a step it is that of a plan. */
static void
TakeMove(JsonBuilder *b, Bytes *bytes, bool has_step)
{
	const char *const *names = has_step ? StepStatusName : PlanStatusName;
	int			count = has_step ? STEP_STATUSES : PLAN_STATUSES;
	int			states = TakeByte(bytes);
	int			marks = TakeByte(bytes);

	if (states >> 4 >= count || (states & 15) >= count)
		EntryRefuse();
	JsonPutText(b, "from", names[states >> 4]);
	JsonPutText(b, "to", names[states & 15]);
	if (marks & HAS_ATTEMPT)
		JsonPutInt(b, "attempt", TakeCount(bytes));
	if (marks & HAS_LEASE)
		JsonPutTime(b, "leaseExpiresAt", TakeLong(bytes));
	if (marks & HAS_OUTCOME)
		TakeOutcome(b, bytes, (marks & HAS_DIGEST) != 0);
	if (marks & HAS_MESSAGE)
		JsonPutText(b, "message", TakeText(bytes));
	if (marks & HAS_CHECKPOINT)
	{
		pg_uuid_t	checkpoint_id = TakeUuid(bytes);

		JsonPutUuid(b, "checkpointId", &checkpoint_id);
	}
}

static void
TakeTexts(JsonBuilder *b, Bytes *bytes)
{
	for (int left = TakeByte(bytes); left > 0; left--)
	{
		int			key = TakeIndex(bytes, lengthof(TextKeys));

		JsonPutText(b, TextKeys[key], TakeText(bytes));
	}
}

static void
TakeJson(JsonBuilder *b, Bytes *bytes)
{
	Datum		json;

	if (!InputSafe(jsonb_in, TakeChars(bytes, bytes->end - bytes->next), &json) || !JsonIsObject(DatumGetJsonbP(json)))
		EntryRefuse();
	JsonPutMembers(b, DatumGetJsonbP(json));
}

/* Read the detail of an entry. */
Jsonb *
EntryReadDetail(const StoredEntry *entry)
{
	Bytes		bytes = {entry->body, entry->body + entry->size};
	EntryHead	head;
	int			flags = TakeHead(&bytes, &head, 0);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	if (flags & HAS_MOVE)
		TakeMove(&b, &bytes, head.has_step);
	if (flags & HAS_TEXTS)
		TakeTexts(&b, &bytes);
	if (flags & HAS_JSON)
		TakeJson(&b, &bytes);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}
