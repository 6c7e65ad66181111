/*
 * log_last.c
 *	  the row of stepwise.audit_log that this session has written last in a plan
 *
 * A session that works on a plan makes call after call. A row for each of them
 * would need an index entry for each, and new pages. So a call continues the row
 * of the call before, as long as that is short, if the entries have the same
 * actor and session, and no other session has written in between. The new
 * version of the row stays in its page, and gets no index entries (HOT).
 *
 * What is remembered may be out of date: the transaction may have been rolled
 * back, and a vacuum may have moved the row. So the row is read, and must be that
 * of the newest entry of the plan. It is continued only while the plan is locked.
 */
#include "engine/engine.h"

#define PLANS_REMEMBERED	256
#define BYTES_TO_CONTINUE	700 /* of entries: a longer row is not continued, since each version is written whole */
#define NONE				0	/* no entry has this number */
#define BYTES_OF_CALL		400 /* that a call adds, usually at most */

/* a row; zeros: none */
typedef struct LastRow
{
	pg_uuid_t	plan_id;
	int64		id;				/* of its first entry */
	int64		next;			/* of the entry behind its last one */
	ItemPointerData place;
} LastRow;

static LastRow lasts[PLANS_REMEMBERED];

/* Find the entry for a plan. It is chosen by random bytes of the id. */
static LastRow *
LastRowOf(const pg_uuid_t *plan_id)
{
	return &lasts[plan_id->data[13] % PLANS_REMEMBERED];
}

/*
 * Remember the row of a plan that was written last: its head, the number of the
 * entry that comes next, the size of its entries, and its place.
 */
void
LastRowRemember(const LogHead *head, int64 next, int size, ItemPointerData place)
{
	LastRow    *last = LastRowOf(head->plan_id);

	last->plan_id = *head->plan_id;
	last->id = head->id;
	last->next = size < BYTES_TO_CONTINUE ? next : NONE;
	last->place = place;
}

/* Make the key of a row of a plan, with the place where it may be. */
Key
LogRowKey(Call *call, const pg_uuid_t *plan_id, int64 id, ItemPointerData place)
{
	static const AttrNumber columns[] = {LOG_COL_PLAN_ID + 1, LOG_COL_ID + 1};
	Key			key = IdKey(call, plan_id);

	KeyLong(&key, id);
	key.of_table = columns;
	key.place = place;
	return key;
}

/* Check whether the newest entry of a row has this hash. */
static bool
EndsWith(const StoredRow *row, const uint8 hash[32])
{
	const char *next = row->end;
	StoredEntry entry = {0};

	while (EntryNext(row->entries, &next, &entry))
		;
	return next == row->entries && entry.hash != NULL && memcmp(entry.hash, hash, 32) == 0;
}

/*
 * Read the row that a new entry of a plan continues; NULL if there is none. The
 * head is that of the entry, and "before" the hash of the entry before it.
 */
StoredRow *
LastRowRead(Call *call, const LogHead *head, const uint8 before[32])
{
	const LastRow *last = LastRowOf(head->plan_id);
	StoredRow  *row;
	Key			key;

	if (last->next != head->id || !UuidEqual(&last->plan_id, head->plan_id))
		return NULL;
	key = LogRowKey(call, head->plan_id, last->id, last->place);
	row = TableReadToGrow("audit_log", &key, BYTES_OF_CALL, StoredMake);
	return row != NULL && LogHeadsFit(&row->head, head) && EndsWith(row, before) ? row : NULL;
}
