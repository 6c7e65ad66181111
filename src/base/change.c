/*
 * change.c
 *	  say which columns an insert or update sets
 *
 * Columns are counted from 0, in the order of the definition of the table. A
 * value must live until the row is written.
 */
#include "base/base.h"

/* Set a column. */
void
SetDatum(Changes *c, int column, Datum value, bool isnull)
{
	if (column >= TABLE_MAX_COLUMNS)
		elog(ERROR, "row has no column %d", column + 1);
	c->values[column] = value;
	c->nulls[column] = isnull;
	c->replaces[column] = true;
}

/* Set an int4 column. */
void
SetInt(Changes *c, int column, int value)
{
	SetDatum(c, column, Int32GetDatum(value), false);
}

/* Set an int4 column that counts from 1; null for anything less. */
void
SetPositive(Changes *c, int column, int value)
{
	SetDatum(c, column, Int32GetDatum(value), value <= 0);
}

/* Set a boolean column. */
void
SetBool(Changes *c, int column, bool value)
{
	SetDatum(c, column, BoolGetDatum(value), false);
}

/* Set a boolean column that is true or null. */
void
SetTrue(Changes *c, int column, bool value)
{
	SetDatum(c, column, BoolGetDatum(true), !value);
}

/* Set a time column; NO_TIME for null. */
void
SetTime(Changes *c, int column, TimestampTz value)
{
	SetDatum(c, column, TimestampTzGetDatum(value), !TimeIsSet(value));
}

/* Set a UUID column; NULL for null. */
void
SetUuid(Changes *c, int column, const pg_uuid_t *value)
{
	SetDatum(c, column, UUIDPGetDatum(value), value == NULL);
}

/* Set a column of variable length; NULL for null. */
void
SetVarlena(Changes *c, int column, const void *value)
{
	SetDatum(c, column, PointerGetDatum(value), value == NULL);
}

/* Set a text column; NULL for null. */
void
SetText(Changes *c, int column, const char *value)
{
	SetVarlena(c, column, value ? cstring_to_text(value) : NULL);
}

/* Set an interval column; NULL for null. */
void
SetInterval(Changes *c, int column, const Interval *value)
{
	SetDatum(c, column, IntervalPGetDatum(value), value == NULL);
}

/* Set an enum column by its label. */
void
SetEnum(Changes *c, int column, const char *type, const char *label)
{
	SetDatum(c, column, ObjectIdGetDatum(EnumValue(type, label)), false);
}
