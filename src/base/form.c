/*
 * form.c
 *	  form the tuple of a row
 *
 * The tuples are those of heap_form_tuple. That function asks the description of
 * the table about each column, twice, and calls a function for each. Our rows
 * have many columns, and most of them are null. So what it asks is kept in a
 * small array, and a column that is null costs next to nothing. With assertions,
 * what is stored of each tuple is compared with that of heap_form_tuple. A null
 * in a column that is NOT NULL is refused, as by the executor.
 *
 * Left out: values of the kinds "indirect" and "expanded", which exist in memory
 * only. We make none. And the header is that of a row, not of a composite value:
 * its fields for transactions are empty until the row is inserted.
 */
#include "base/base.h"

#include "access/htup_details.h"
#include "utils/rel.h"

static int
Alignment(char typalign)
{
	switch (typalign)
	{
		case TYPALIGN_CHAR:
			return 1;
		case TYPALIGN_SHORT:
			return ALIGNOF_SHORT;
		case TYPALIGN_INT:
			return ALIGNOF_INT;
		default:
			return ALIGNOF_DOUBLE;
	}
}

/* Read how the columns of a table are stored. */
void
RowFormRead(RowForm *form, TupleDesc desc)
{
	if (desc->natts > TABLE_MAX_COLUMNS)
		elog(ERROR, "a table has %d columns", desc->natts);
	for (int i = 0; i < desc->natts; i++)
	{
		const FormData_pg_attribute *column = TupleDescAttr(desc, i);

		form->columns[i].length = column->attlen;
		form->columns[i].alignment = Alignment(column->attalign);
		form->columns[i].by_value = column->attbyval;
		form->columns[i].packable = column->attlen == -1 && column->attstorage != TYPSTORAGE_PLAIN;
		form->columns[i].not_null = column->attnotnull;
	}
}

/* Check whether a value of variable length gets a short header when it is stored. */
static inline bool
IsPacked(const ColumnForm *column, const void *value)
{
	return column->packable && VARATT_CAN_MAKE_SHORT(value);
}

/* Find where a value is stored that comes at this offset or later. Values with a short header are not aligned. */
static inline Size
StoredAt(const ColumnForm *column, Datum value, Size offset)
{
	if (column->length == -1 && (VARATT_IS_1B(DatumGetPointer(value)) || IsPacked(column, DatumGetPointer(value))))
		return offset;
	return TYPEALIGN(column->alignment, offset);
}

static inline Size
StoredSize(const ColumnForm *column, Datum value)
{
	if (column->length >= 0)
		return column->length;
	if (IsPacked(column, DatumGetPointer(value)))
		return VARATT_CONVERTED_SHORT_SIZE(DatumGetPointer(value));
	return VARSIZE_ANY(DatumGetPointer(value));
}

/* Store a value; "to" is aligned. */
static inline void
Store(const ColumnForm *column, Datum value, char *to, Size size)
{
	if (column->by_value)
		store_att_byval(to, value, column->length);
	else if (column->length == -1 && IsPacked(column, DatumGetPointer(value)))
	{
		SET_VARSIZE_SHORT(to, size);
		memcpy(to + VARHDRSZ_SHORT, VARDATA(DatumGetPointer(value)), size - VARHDRSZ_SHORT);
	}
	else
		memcpy(to, DatumGetPointer(value), size);
}

static void
RefuseNull(Relation relation, int column)
{
	ereport(ERROR,
			(errcode(ERRCODE_NOT_NULL_VIOLATION),
			 errmsg("null value in column \"%s\" of relation \"%s\" violates not-null constraint",
					NameStr(TupleDescAttr(RelationGetDescr(relation), column)->attname), RelationGetRelationName(relation)),
			 errtablecol(relation, column + 1)));
}

/* Find the size of the data of a row. */
static Size
DataSize(const RowForm *form, Relation relation, const Datum *values, const bool *nulls, bool *has_null)
{
	int			natts = RelationGetDescr(relation)->natts;
	Size		size = 0;

	*has_null = false;
	for (int i = 0; i < natts; i++)
	{
		const ColumnForm *column = &form->columns[i];

		if (!nulls[i])
			size = StoredAt(column, values[i], size) + StoredSize(column, values[i]);
		else if (column->not_null)
			RefuseNull(relation, i);
		else
			*has_null = true;
	}
	return size;
}

/* Find the flag of a tuple for a value of variable length that is stored elsewhere, or else 0. */
static inline int
ExternalFlag(const void *value)
{
	if (!VARATT_IS_EXTERNAL(value))
		return 0;
	if (!VARATT_IS_EXTERNAL_ONDISK(value))
		elog(ERROR, "a value is in memory only");
	return HEAP_HASEXTERNAL;
}

/* Store the columns of a row that are not null in a tuple of zeros. */
static void
DataFill(const RowForm *form, int natts, const Datum *values, const bool *nulls, HeapTupleHeader header)
{
	char	   *data = (char *) header + header->t_hoff;
	Size		offset = 0;

	for (int i = 0; i < natts; i++)
	{
		const ColumnForm *column = &form->columns[i];
		Size		size;

		if (nulls[i])
			continue;
		if (header->t_infomask & HEAP_HASNULL)
			header->t_bits[i >> 3] |= 1 << (i & 7);
		if (column->length == -1)
			header->t_infomask |= HEAP_HASVARWIDTH | ExternalFlag(DatumGetPointer(values[i]));
		offset = StoredAt(column, values[i], offset);
		size = StoredSize(column, values[i]);
		Store(column, values[i], data + offset, size);
		offset += size;
	}
}

/* Make a tuple of zeros with its header. */
static HeapTuple
EmptyTuple(int natts, Size size, bool has_null)
{
	Size		start = MAXALIGN(SizeofHeapTupleHeader + (has_null ? BITMAPLEN(natts) : 0));
	HeapTuple	tuple = palloc0(HEAPTUPLESIZE + start + size);
	HeapTupleHeader header = (HeapTupleHeader) ((char *) tuple + HEAPTUPLESIZE);

	tuple->t_data = header;
	tuple->t_len = start + size;
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = InvalidOid;
	ItemPointerSetInvalid(&header->t_ctid);
	HeapTupleHeaderSetNatts(header, natts);
	header->t_hoff = start;
	header->t_infomask = has_null ? HEAP_HASNULL : 0;
	return tuple;
}

#ifdef USE_ASSERT_CHECKING

/* Check whether two tuples are the same but for what an insert writes into their headers. */
static bool
AreStoredAlike(const HeapTuple a, const HeapTuple b)
{
	const HeapTupleHeader x = a->t_data;
	const HeapTupleHeader y = b->t_data;
	Size		start = offsetof(HeapTupleHeaderData, t_hoff);

	return a->t_len == b->t_len && x->t_infomask2 == y->t_infomask2 &&
		((x->t_infomask ^ y->t_infomask) & ~HEAP_XACT_MASK) == 0 &&
		memcmp((char *) x + start, (char *) y + start, a->t_len - start) == 0;
}

#endif

/* Form a tuple of a table. */
HeapTuple
RowFormTuple(const RowForm *form, Relation relation, const Datum *values, const bool *nulls)
{
	TupleDesc	desc = RelationGetDescr(relation);
	bool		has_null;
	Size		size = DataSize(form, relation, values, nulls, &has_null);
	HeapTuple	tuple = EmptyTuple(desc->natts, size, has_null);

	DataFill(form, desc->natts, values, nulls, tuple->t_data);
#ifdef USE_ASSERT_CHECKING
	{
		HeapTuple	same = heap_form_tuple(desc, (Datum *) values, (bool *) nulls);

		Assert(AreStoredAlike(tuple, same));
		heap_freetuple(same);
	}
#endif
	return tuple;
}
