/*
 * batch.c
 *	  insert many rows into a table of our own, without the executor
 *
 * Rows are collected and inserted together. What this leaves out is the same as
 * for one row (write.c): if a user has added something to the table, the
 * collected rows are inserted by one statement.
 */
#include "base/base.h"

#include "access/htup_details.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define BATCH_ROWS		250
#define BATCH_BYTES		65536

/*
 * Begin to insert rows into a table of which we know so many columns. In
 * batch->row they are null until they are set; then they keep their value from
 * row to row. What only one row needs may be allocated in batch->memory.
 */
Batch *
BatchBegin(Call *call, const char *table, int columns)
{
	Batch	   *batch = palloc(sizeof(Batch));

	if (call->reading)
		elog(ERROR, "table %s cannot be written by a call that only reads", table);
	CheckWritable("INSERT");
	/* a call that has read steps ahead must read the new ones too */
	if (call->kept != NULL && call->save != NULL)
		call->save(call, call, 0);
	memset(batch, 0, offsetof(Batch, row));
	batch->call = call;
	batch->relation = OpenOnce(call, table, RowExclusiveLock);
	if (RelationGetDescr(batch->relation)->natts < columns)
		elog(ERROR, "table %s has too few columns", table);
	batch->by_statement = RelationIsAltered(batch->relation) || RelationHasMoreColumns(batch->relation, columns);
	batch->memory = AllocSetContextCreate(CurrentMemoryContext, "stepwise rows", ALLOCSET_DEFAULT_SIZES);
	memset(batch->row.replaces, false, sizeof(batch->row.replaces));
	memset(batch->row.replaces, true, columns);
	memset(batch->row.nulls, true, sizeof(batch->row.nulls));
	return batch;
}

/* Copy a row as it is stored, for BatchTake. It is a TupleMake. */
void *
TupleTaken(TupleTableSlot *slot)
{
	return ExecCopySlotHeapTuple(slot);
}

/* Take all columns of another row of the table, those that a user has added too. The row must live until it is inserted. */
void
BatchTake(Batch *batch, void *row)
{
	TupleDesc	desc = RelationGetDescr(batch->relation);

	if (row == NULL)
		elog(ERROR, "row of table %s could not be copied", RelationGetRelationName(batch->relation));
	if (desc->natts > TABLE_MAX_COLUMNS)
		elog(ERROR, "table %s has too many columns", RelationGetRelationName(batch->relation));
	heap_deform_tuple(row, desc, batch->row.values, batch->row.nulls);
	for (int i = 0; i < desc->natts; i++)
	{
		bool		dropped = TupleDescAttr(desc, i)->attisdropped;

		batch->row.replaces[i] = !dropped && TupleDescAttr(desc, i)->attgenerated == '\0';
		batch->row.nulls[i] = batch->row.nulls[i] || dropped;
	}
}

/* Get a free slot for the next row. */
static TupleTableSlot *
BatchSlot(Batch *batch)
{
	if (batch->count == batch->nslots)
	{
		if (batch->nslots % 16 == 0)
			batch->slots = batch->slots ? repalloc(batch->slots, sizeof(TupleTableSlot *) * (batch->nslots + 16)) :
				palloc(sizeof(TupleTableSlot *) * 16);
		batch->slots[batch->nslots++] = MakeSingleTupleTableSlot(RelationGetDescr(batch->relation), &TTSOpsHeapTuple);
	}
	return batch->slots[batch->count++];
}

/* Make the row of a slot a value of the row type of its table. */
static Datum
SlotDatum(TupleTableSlot *slot)
{
	return heap_copy_tuple_as_datum(ExecFetchSlotHeapTuple(slot, false, NULL), slot->tts_tupleDescriptor);
}

/*
 * Insert the collected rows by one statement: their columns are those of an
 * array of rows. Columns that we do not know get their defaults.
 */
static void
BatchInsertByStatement(Batch *batch)
{
	TupleDesc	desc = RelationGetDescr(batch->relation);
	Oid			type = batch->relation->rd_rel->reltype;
	Oid			types[] = {get_array_type(type)};
	Datum	   *rows = palloc(sizeof(Datum) * batch->count);
	Params		params = {0};
	StringInfoData names;

	StatementShowLog(batch->call);
	initStringInfo(&names);
	for (int i = 0; i < desc->natts; i++)
		if (batch->row.replaces[i])
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", quote_identifier(NameStr(TupleDescAttr(desc, i)->attname)));
	for (int i = 0; i < batch->count; i++)
		rows[i] = SlotDatum(batch->slots[i]);
	ParamDatum(&params, PointerGetDatum(construct_array(rows, batch->count, type, -1, false, TYPALIGN_DOUBLE)));
	if (QueryRunOnce(psprintf("INSERT INTO stepwise.%s (%s) SELECT %s FROM pg_catalog.unnest($1)",
							  quote_identifier(RelationGetRelationName(batch->relation)), names.data, names.data),
					 types, &params) != batch->count)
		elog(ERROR, "rows of table %s could not be saved", RelationGetRelationName(batch->relation));
}

/* Insert the collected rows. */
static void
BatchInsert(Batch *batch)
{
	MemoryContext outer = MemoryContextSwitchTo(batch->memory);

	if (batch->by_statement)
		BatchInsertByStatement(batch);
	else if (batch->count > 0)
	{
		table_multi_insert(batch->relation, batch->slots, batch->count, CommandOf(batch->call), 0, NULL);
		EntriesAdd(batch->call, batch->relation, batch->slots, batch->count, NULL);
		batch->place = batch->slots[batch->count - 1]->tts_tid;
	}
	for (int i = 0; i < batch->count; i++)
		ExecClearTuple(batch->slots[i]);
	batch->count = 0;
	batch->bytes = 0;
	MemoryContextSwitchTo(outer);
	MemoryContextReset(batch->memory);
}

/* Store a row in a slot, with its columns, so that they need not be taken out of the tuple again. */
static void
SlotStore(TupleTableSlot *slot, HeapTuple tuple, const Changes *row)
{
	int			natts = slot->tts_tupleDescriptor->natts;

	ExecStoreHeapTuple(tuple, slot, true);
	memcpy(slot->tts_values, row->values, sizeof(Datum) * natts);
	memcpy(slot->tts_isnull, row->nulls, sizeof(bool) * natts);
	slot->tts_nvalid = natts;
}

/* Add a row as it is in batch->row. What it points to must live until the row is inserted. */
void
BatchAdd(Batch *batch)
{
	MemoryContext outer = MemoryContextSwitchTo(batch->memory);
	HeapTuple	tuple = batch->by_statement ?
		heap_form_tuple(RelationGetDescr(batch->relation), batch->row.values, batch->row.nulls) : TableForm(batch->relation, &batch->row);

	MemoryContextSwitchTo(outer);
	SlotStore(BatchSlot(batch), tuple, &batch->row);
	batch->bytes += tuple->t_len;
	if (batch->count == BATCH_ROWS || batch->bytes >= BATCH_BYTES)
		BatchInsert(batch);
}

/* Insert the rows that are left. Afterwards batch->place is that of the last row, if we know it. */
void
BatchEnd(Batch *batch)
{
	if (batch->count > 0)
		BatchInsert(batch);
	for (int i = 0; i < batch->nslots; i++)
		ExecDropSingleTupleTableSlot(batch->slots[i]);
	MemoryContextDelete(batch->memory);
}
