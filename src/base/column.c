/*
 * column.c
 *	  read columns of a row that was found by index
 *
 * Columns are counted from 0, in the order of the definition of the table.
 * Whatever is returned is copied, since the row stays only until the next one
 * is read.
 */
#include "base/base.h"

/* Check whether a column is null. */
bool
ColumnIsNull(TupleTableSlot *slot, int column)
{
	return slot_attisnull(slot, column + 1);
}

/* Read a column that is passed by value; 0 if it is null. */
Datum
ColumnDatum(TupleTableSlot *slot, int column)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, column + 1, &isnull);

	return isnull ? (Datum) 0 : value;
}

/* Read an int4 column; 0 if it is null. */
int
ColumnInt(TupleTableSlot *slot, int column)
{
	return DatumGetInt32(ColumnDatum(slot, column));
}

/* Read a boolean column; false if it is null. */
bool
ColumnBool(TupleTableSlot *slot, int column)
{
	return DatumGetBool(ColumnDatum(slot, column));
}

/* Read a time column; NO_TIME if it is null. */
TimestampTz
ColumnTime(TupleTableSlot *slot, int column)
{
	return ColumnIsNull(slot, column) ? NO_TIME : DatumGetTimestampTz(ColumnDatum(slot, column));
}

/* Read a UUID column; zeros if it is null. */
pg_uuid_t
ColumnUuid(TupleTableSlot *slot, int column)
{
	pg_uuid_t	none = {0};

	return ColumnIsNull(slot, column) ? none : *DatumGetUUIDP(ColumnDatum(slot, column));
}

/* Read a text column; NULL if it is null. */
char *
ColumnText(TupleTableSlot *slot, int column)
{
	return ColumnIsNull(slot, column) ? NULL : TextDatumGetCString(ColumnDatum(slot, column));
}

/* Read a jsonb column; NULL if it is null. */
Jsonb *
ColumnJson(TupleTableSlot *slot, int column)
{
	return ColumnIsNull(slot, column) ? NULL : DatumGetJsonbPCopy(ColumnDatum(slot, column));
}

/* Read a column of variable length as it is stored, perhaps toasted; NULL if it is null. */
struct varlena *
ColumnField(TupleTableSlot *slot, int column)
{
	struct varlena *field = (struct varlena *) DatumGetPointer(ColumnDatum(slot, column));

	return field ? memcpy(palloc(VARSIZE_ANY(field)), field, VARSIZE_ANY(field)) : NULL;
}
