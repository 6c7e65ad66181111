/*
 * place.c
 *	  where rows of plans and steps were last seen
 *
 * Each backend remembers where it has last seen the rows of plans and steps,
 * which saves a search in the index. The row that is there now is compared with
 * the key, so an entry may be out of date.
 */
#include "engine/engine.h"

#define PLACES	1024

typedef struct RowPlace
{
	pg_uuid_t	id;
	ItemPointerData tid;
} RowPlace;

static RowPlace places[PLACES];

/* Find the entry for a row. It is chosen by random bytes of the id. */
static RowPlace *
PlaceOf(const pg_uuid_t *id)
{
	return &places[(id->data[12] << 8 | id->data[13]) % PLACES];
}

/* Remember where a row is. */
void
PlaceRemember(const pg_uuid_t *id, ItemPointerData tid)
{
	RowPlace   *place = PlaceOf(id);

	place->id = *id;
	place->tid = tid;
}

/* Make the primary key of a plan or step, with the place where it was last seen. */
Key
PlaceKey(Call *call, const pg_uuid_t *id)
{
	Key			key = IdKey(call, id);
	const RowPlace *place = PlaceOf(id);

	if (UuidEqual(&place->id, id))
		key.place = place->tid;
	return key;
}

/* Write the row of a plan or step, of which *tid is the place. */
void
RowWrite(Call *call, const char *table, const char *index, const pg_uuid_t *id, ItemPointer tid, Changes *changes)
{
	Key			key = IdKey(call, id);

	key.place = *tid;
	TableUpdate(table, index, &key, changes);
	*tid = key.place;
	PlaceRemember(id, *tid);
}
