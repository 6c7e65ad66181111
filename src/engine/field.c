/*
 * field.c
 *	  read the columns of a deformed row
 *
 * Each Field function reads one column, by its number in the enums of engine.h.
 * What it returns is in the current memory.
 */
#include "engine/engine.h"

/* Read a UUID; zeros for a null. */
pg_uuid_t
FieldUuid(const Fields *f, int column)
{
	pg_uuid_t	none = {0};

	return f->nulls[column] ? none : *DatumGetUUIDP(f->values[column]);
}

/* Read an integer; 0 for a null. */
int
FieldInt(const Fields *f, int column)
{
	return f->nulls[column] ? 0 : DatumGetInt32(f->values[column]);
}

/* Read a boolean; false for a null. */
bool
FieldBool(const Fields *f, int column)
{
	return !f->nulls[column] && DatumGetBool(f->values[column]);
}

/* Read a time; NO_TIME for a null. */
TimestampTz
FieldTime(const Fields *f, int column)
{
	return f->nulls[column] ? NO_TIME : DatumGetTimestampTz(f->values[column]);
}

/* Read a text; NULL for a null. */
char *
FieldText(const Fields *f, int column)
{
	return f->nulls[column] ? NULL : TextDatumGetCString(f->values[column]);
}

/* Copy a variable-length value as it is stored; NULL for a null. A toasted value is fetched only when it is used. */
struct varlena *
FieldVarlena(const Fields *f, int column)
{
	struct varlena *copy;
	Size		size;

	if (f->nulls[column])
		return NULL;
	size = VARSIZE_ANY(DatumGetPointer(f->values[column]));
	copy = palloc(size);
	memcpy(copy, DatumGetPointer(f->values[column]), size);
	return copy;
}

/* Copy an interval; NULL for a null. */
Interval *
FieldInterval(const Fields *f, int column)
{
	Interval   *copy;

	if (f->nulls[column])
		return NULL;
	copy = palloc(sizeof(Interval));
	*copy = *DatumGetIntervalP(f->values[column]);
	return copy;
}

/* Read a value of an enum as its index in the names. The column is never null. */
int
FieldEnum(const Fields *f, int column, const char *const *names, int count)
{
	return EnumIndex(DatumGetObjectId(f->values[column]), names, count);
}

/* Read a hash. The column is null before the first entry; then the hash stays all zeros. */
void
FieldHash(const Fields *f, int column, uint8 hash[32])
{
	struct varlena *value = f->nulls[column] ? NULL : PG_DETOAST_DATUM_PACKED(f->values[column]);

	if (value != NULL && VARSIZE_ANY_EXHDR(value) != 32)
		elog(ERROR, "the hash of a plan has %zu bytes", (size_t) VARSIZE_ANY_EXHDR(value));
	if (value != NULL)
		memcpy(hash, VARDATA_ANY(value), 32);
}

/* Refuse a table that has other columns than this library was built for. */
void
CheckShape(TupleDesc desc, int columns, const char *table)
{
	if (desc->natts < columns || desc->natts > TABLE_MAX_COLUMNS)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table stepwise.%s does not fit the loaded library", table),
				 errhint("Run ALTER EXTENSION pg_stepwise UPDATE.")));
}

/* Deform a row of a table that has at least these columns. */
Fields
SlotFields(TupleTableSlot *slot, int columns, const char *table)
{
	Fields		f = {slot->tts_values, slot->tts_isnull};

	CheckShape(slot->tts_tupleDescriptor, columns, table);
	slot_getallattrs(slot);
	return f;
}
