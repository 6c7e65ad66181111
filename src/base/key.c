/*
 * key.c
 *	  make search keys of indexes, column by column
 *
 * Text columns of our keys have the collation "C".
 */
#include "base/base.h"

#include "access/stratnum.h"
#include "catalog/pg_collation_d.h"
#include "catalog/pg_type_d.h"
#include "utils/fmgroids.h"

static void
KeyAdd(Key *key, StrategyNumber strategy, Oid type, RegProcedure function, Datum value)
{
	Oid			collation = type == TEXTOID ? C_COLLATION_OID : InvalidOid;

	if (key->count >= KEY_MAX_COLUMNS)
		elog(ERROR, "key has more than %d columns", KEY_MAX_COLUMNS);
	ScanKeyEntryInitialize(&key->columns[key->count], 0, key->count + 1, strategy, type, collation, function, value);
	key->count++;
}

/* Add a text column to a key, as a Datum. */
void
KeyText(Key *key, Datum value)
{
	KeyAdd(key, BTEqualStrategyNumber, TEXTOID, F_TEXTEQ, value);
}

/* Add a text column to a key, above this value. */
void
KeyTextAbove(Key *key, const char *value)
{
	KeyAdd(key, BTGreaterStrategyNumber, TEXTOID, F_TEXT_GT, CStringGetTextDatum(value));
}

/* Add a UUID column to a key. */
void
KeyUuid(Key *key, const pg_uuid_t *value)
{
	KeyAdd(key, BTEqualStrategyNumber, UUIDOID, F_UUID_EQ, UUIDPGetDatum(value));
}

/* Make a key whose first column is an id. */
Key
IdKey(Call *call, const pg_uuid_t *id)
{
	Key			key = {.call = call};

	KeyUuid(&key, id);
	return key;
}

/* Add an int4 column to a key. */
void
KeyInt(Key *key, int value)
{
	KeyAdd(key, BTEqualStrategyNumber, INT4OID, F_INT4EQ, Int32GetDatum(value));
}

/* Add an int8 column to a key. */
void
KeyLong(Key *key, int64 value)
{
	KeyAdd(key, BTEqualStrategyNumber, INT8OID, F_INT8EQ, Int64GetDatum(value));
}

/* Add an int4 column to a key, from this value up. */
void
KeyIntFrom(Key *key, int value)
{
	KeyAdd(key, BTGreaterEqualStrategyNumber, INT4OID, F_INT4GE, Int32GetDatum(value));
}

/* Add an int4 column to a key, below this value. */
void
KeyIntBelow(Key *key, int value)
{
	KeyAdd(key, BTLessStrategyNumber, INT4OID, F_INT4LT, Int32GetDatum(value));
}

/* Add an int4 column to a key, from one value up to below another. */
void
KeyIntBetween(Key *key, int from, int below)
{
	KeyIntFrom(key, from);
	KeyIntBelow(key, below);
	/* both are about the same column */
	key->columns[key->count - 1].sk_attno = key->columns[key->count - 2].sk_attno;
}

/* Add a UUID column to a key, below this value. */
void
KeyUuidBelow(Key *key, const pg_uuid_t *value)
{
	KeyAdd(key, BTLessStrategyNumber, UUIDOID, F_UUID_LT, UUIDPGetDatum(value));
}

/* Add an int8 column to a key, above this value. */
void
KeyLongAbove(Key *key, int64 value)
{
	KeyAdd(key, BTGreaterStrategyNumber, INT8OID, F_INT8GT, Int64GetDatum(value));
}
