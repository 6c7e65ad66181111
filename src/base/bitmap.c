/*
 * bitmap.c
 *	  read rows of our own tables by an index over words
 *
 * Such an index gives a bitmap of the places where rows may be. What a bitmap
 * scan of the executor does with it is done here: the rows that the snapshot
 * shows are fetched, and compared with the query where the index is not sure.
 *
 * An owner may have dropped the index, or made another one of its name. Such an
 * index is not read: then the caller runs a query.
 */
#include "base/base.h"

#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "tsearch/ts_utils.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* a search */
typedef struct WordScan
{
	Call	   *call;
	Relation	relation;
	Relation	index;
	Datum		query;			/* a tsquery */
	IndexFetchTableData *fetch;
	TupleTableSlot *slot;
	IndexInfo  *info;			/* NULL: no row had to be compared yet */
	EState	   *estate;
	TupleMake	make;
	List	   *rows;
	int			max;
} WordScan;

/* Check whether this is an index of the table over one tsvector, and can be read. */
static bool
IsOverWords(Relation index, Relation table)
{
	Form_pg_index form = index->rd_index;

	return index->rd_rel->relkind == RELKIND_INDEX && index->rd_rel->relam == GIN_AM_OID &&
		form->indrelid == RelationGetRelid(table) && form->indnatts == 1 && index->rd_opcintype[0] == TSVECTOROID &&
		form->indisvalid && form->indisready && !form->indcheckxmin;
}

/* Open the index; NULL: it is not there, or is another one. */
static Relation
OpenWords(Call *call, Relation table, const char *name)
{
	Relation	index = TableIsThere(name) ? OpenOnce(call, name, AccessShareLock) : NULL;

	return index != NULL && IsOverWords(index, table) ? index : NULL;
}

/* Find the places of rows that may match. */
static TIDBitmap *
Places(const WordScan *scan)
{
	TIDBitmap  *places = tbm_create(work_mem * 1024L, NULL);
	IndexScanDesc index_scan = IndexBeginBitmap(scan->index, GetActiveSnapshot(), 1);
	ScanKeyData key;

	ScanKeyEntryInitialize(&key, 0, 1, TSearchStrategyNumber, InvalidOid, InvalidOid, F_TS_MATCH_VQ, scan->query);
	index_rescan(index_scan, &key, 1, NULL, 0);
	index_getbitmap(index_scan, places);
	index_endscan(index_scan);
	return places;
}

/* Compare the row in the slot with the query. Its words are those that the index has, computed again. */
static bool
RowMatches(WordScan *scan)
{
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	ExprContext *context;
	MemoryContext outer;
	bool		matches;

	if (scan->info == NULL)
	{
		scan->info = BuildIndexInfo(scan->index);
		scan->estate = CreateExecutorState();
	}
	context = GetPerTupleExprContext(scan->estate);
	context->ecxt_scantuple = scan->slot;
	outer = MemoryContextSwitchTo(context->ecxt_per_tuple_memory);
	FormIndexDatum(scan->info, scan->slot, scan->estate, values, nulls);
	matches = !nulls[0] && DatumGetBool(DirectFunctionCall2(ts_match_vq, values[0], scan->query));
	MemoryContextSwitchTo(outer);
	ResetExprContext(context);
	return matches;
}

/* Take the row at a place, if it can be seen and matches. */
static void
TakeRow(WordScan *scan, BlockNumber block, OffsetNumber offset, bool sure)
{
	ItemPointerData place;
	bool		again = false;

	ItemPointerSet(&place, block, offset);
	if (table_index_fetch_tuple(scan->fetch, &place, GetActiveSnapshot(), scan->slot, &again, NULL) &&
		RowIsWanted(scan->relation, scan->slot, scan->call, NULL, NULL) && (sure || RowMatches(scan)))
		scan->rows = lappend(scan->rows, scan->make(scan->slot));
	ExecClearTuple(scan->slot);
}

/* Take the rows at places, until there is one more than max. */
static void
TakeRows(WordScan *scan, TIDBitmap *places)
{
	BitmapIterator *iterator = BitmapBegin(places);
	OffsetNumber offsets[MaxHeapTuplesPerPage];
	BlockNumber block;
	bool		sure;
	int			count;

	while (list_length(scan->rows) <= scan->max && (count = BitmapNext(iterator, &block, offsets, &sure)) >= 0)
	{
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < count; i++)
			TakeRow(scan, block, offsets[i], sure);
	}
	BitmapEnd(iterator);
}

static void
ScanWords(WordScan *scan)
{
	TIDBitmap  *places = Places(scan);

	scan->slot = ReadSlot(scan->call, scan->relation);
	scan->fetch = table_index_fetch_begin(scan->relation);
	TakeRows(scan, places);
	table_index_fetch_end(scan->fetch);
	tbm_free(places);
	if (scan->estate != NULL)
		FreeExecutorState(scan->estate);
}

/*
 * Read the rows whose words match a tsquery, in no order. Returns false if there
 * are more than max, or if the index cannot be read.
 */
bool
TableReadWords(Call *call, const char *table, const char *index, Datum query, TupleMake make, int max, List **rows)
{
	WordScan	scan = {.call = call, .query = query, .make = make, .max = max};

	scan.relation = TableBegin(call, table, AccessShareLock);
	scan.index = OpenWords(call, scan.relation, index);
	if (scan.index != NULL)
		ScanWords(&scan);
	TableEnd();
	*rows = scan.rows;
	return scan.index != NULL && list_length(scan.rows) <= max;
}
