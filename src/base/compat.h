/*
 * compat.h
 *	  every PG_VERSION_NUM of the module; that of the program is in bin/mcp_json.c
 */
#ifndef STEPWISE_COMPAT_H
#define STEPWISE_COMPAT_H

#if PG_VERSION_NUM < 150000
#error "pg_stepwise needs PostgreSQL 15 or newer"
#endif

#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#ifndef pg_noreturn
#define pg_noreturn __attribute__((noreturn))
#endif

/* 18 has the name and version of the module in the magic block */
#if PG_VERSION_NUM >= 180000
#define STEPWISE_MODULE_MAGIC(module, number) PG_MODULE_MAGIC_EXT(.name = module, .version = number)
#else
#define STEPWISE_MODULE_MAGIC(module, number) PG_MODULE_MAGIC
#endif

/*
 * Read a value by the input function of its type. Returns false if the text is
 * not valid. From 16 on, input functions can report a bad value. In 15 they
 * raise an error; errors of class 22 are caught here. The functions used take
 * no resources, so no subtransaction is needed.
 */
#if PG_VERSION_NUM >= 160000
#include "fmgr.h"
#include "nodes/miscnodes.h"

static inline bool
InputSafe(PGFunction input, char *text, Datum *result)
{
	ErrorSaveContext context = {.type = T_ErrorSaveContext};

	return DirectInputFunctionCallSafe(input, text, InvalidOid, -1, (Node *) &context, result);
}
#else
#include "fmgr.h"

static inline bool
InputSafe(PGFunction input, char *text, Datum *result)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool good = true;

	PG_TRY();
	{
		*result = DirectFunctionCall3(input, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1));
	}
	PG_CATCH();
	{
		if (ERRCODE_TO_CATEGORY(geterrcode()) != ERRCODE_DATA_EXCEPTION)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		good = false;
	}
	PG_END_TRY();
	return good;
}
#endif

/* from 16 on, one function checks the rights on all kinds of objects */
#if PG_VERSION_NUM >= 160000
#define FunctionAclCheck(function, role, mode) object_aclcheck(ProcedureRelationId, function, role, mode)
#else
#define FunctionAclCheck(function, role, mode) pg_proc_aclcheck(function, role, mode)
#endif

/* 18 counts index scans for EXPLAIN */
#if PG_VERSION_NUM >= 180000
#define IndexBeginScan(table, index, snapshot, keys) index_beginscan(table, index, snapshot, NULL, keys, 0)
#else
#define IndexBeginScan(table, index, snapshot, keys) index_beginscan(table, index, snapshot, keys, 0)
#endif

/* up to 17, ExecutorRun is told whether a query is run only once */
#if PG_VERSION_NUM >= 180000
#define RUN_LIMITS uint64 count
#define RUN_LIMITS_GIVEN count
#else
#define RUN_LIMITS uint64 count, bool once
#define RUN_LIMITS_GIVEN count, once
#endif

/*
 * Go through the places of a bitmap, page by page. BitmapNext returns how many
 * there are in the next page; -1: there is none. If the bitmap has only the page,
 * all places in it are given. "sure" says whether the index is.
 */
#include "access/htup_details.h"
#include "nodes/tidbitmap.h"

static inline int
BitmapWholePage(OffsetNumber *offsets)
{
	for (int i = 0; i < (int) MaxHeapTuplesPerPage; i++)
		offsets[i] = i + 1;
	return MaxHeapTuplesPerPage;
}

#if PG_VERSION_NUM >= 180000
#define IndexBeginBitmap(index, snapshot, keys) index_beginscan_bitmap(index, snapshot, NULL, keys)
typedef TBMPrivateIterator BitmapIterator;
#define BitmapBegin(bitmap) tbm_begin_private_iterate(bitmap)
#define BitmapEnd(iterator) tbm_end_private_iterate(iterator)

static inline int
BitmapNext(BitmapIterator *iterator, BlockNumber *block, OffsetNumber *offsets, bool *sure)
{
	TBMIterateResult page;

	if (!tbm_private_iterate(iterator, &page))
		return -1;
	*block = page.blockno;
	*sure = !page.recheck && !page.lossy;
	return page.lossy ? BitmapWholePage(offsets) : tbm_extract_page_tuple(&page, offsets, MaxHeapTuplesPerPage);
}
#else
#define IndexBeginBitmap(index, snapshot, keys) index_beginscan_bitmap(index, snapshot, keys)
typedef TBMIterator BitmapIterator;
#define BitmapBegin(bitmap) tbm_begin_iterate(bitmap)
#define BitmapEnd(iterator) tbm_end_iterate(iterator)

static inline int
BitmapNext(BitmapIterator *iterator, BlockNumber *block, OffsetNumber *offsets, bool *sure)
{
	const TBMIterateResult *page = tbm_iterate(iterator);

	if (page == NULL)
		return -1;
	*block = page->blockno;
	*sure = !page->recheck && page->ntuples >= 0;
	if (page->ntuples < 0)
		return BitmapWholePage(offsets);
	memcpy(offsets, page->offsets, sizeof(OffsetNumber) * page->ntuples);
	return page->ntuples;
}
#endif

/* from 16 on, an update tells which indexes need an entry */
#if PG_VERSION_NUM >= 160000
typedef TU_UpdateIndexes UpdateIndexes;
#define NO_INDEXES		TU_None
#define OnlySummaries(indexes) ((indexes) == TU_Summarizing)
#define InsertIndexTuples(info, slot, estate, update, summaries) \
	ExecInsertIndexTuples(info, slot, estate, update, false, NULL, NIL, summaries)
#else
typedef bool UpdateIndexes;
#define NO_INDEXES		false
#define OnlySummaries(indexes) false
#define InsertIndexTuples(info, slot, estate, update, summaries) \
	ExecInsertIndexTuples(info, slot, estate, update, false, NULL, NIL)
#endif

/* 18 has generated columns that are not stored; they can be NOT NULL */
#if PG_VERSION_NUM >= 180000
#define HasGeneratedColumns(constraints) ((constraints)->has_generated_stored || (constraints)->has_generated_virtual)
#else
#define HasGeneratedColumns(constraints) ((constraints)->has_generated_stored)
#endif

/* up to 15, the settings of the server are a sorted array (settings.c) */
#if PG_VERSION_NUM < 160000
#define SETTINGS_ARE_SORTED
#endif

/* 17 moved the local transaction id of a backend into a struct */
#if PG_VERSION_NUM >= 170000
#define MyLocalTransaction (MyProc->vxid.lxid)
#else
#define MyLocalTransaction (MyProc->lxid)
#endif

/* 17 renamed the number of a backend */
#if PG_VERSION_NUM >= 170000
#define TransactionHolder(vxid) ProcNumberGetProc((vxid).procNumber)
#else
#define TransactionHolder(vxid) BackendIdGetProc((vxid).backendId)
#endif

#endif							/* STEPWISE_COMPAT_H */
