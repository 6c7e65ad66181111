/*
 * entries.c
 *	  add entries of rows to the indexes of their tables
 *
 * Our indexes are B-trees over columns, so their entries need no executor. Some
 * have entries only for rows in which certain columns are null, not null, or
 * true. The executor adds the entries of a row if an index is of another kind.
 */
#include "base/base.h"

#include "catalog/pg_am_d.h"
#include "executor/executor.h"
#include "utils/rel.h"

/* ---------- how rows get into indexes ---------- */

/* Read one test of a predicate. Returns false if it is of another kind. */
static bool
TestRead(const Node *node, ColumnTest *test)
{
	const NullTest *null_test = (const NullTest *) node;

	if (IsA(node, Var))
		test->kind = COLUMN_IS_TRUE;
	else if (IsA(node, NullTest) && IsA(null_test->arg, Var) && !null_test->argisrow)
	{
		test->kind = null_test->nulltesttype == IS_NULL ? COLUMN_IS_NULL : COLUMN_IS_NOT_NULL;
		node = (const Node *) null_test->arg;
	}
	else
		return false;
	test->column = ((const Var *) node)->varattno;
	return test->column > 0;
}

/* Read the predicate of an index, a list of tests. Returns their number; -1: it is not understood. */
static int
TestsRead(Relation index, ColumnTest *tests)
{
	List	   *predicate = RelationGetIndexPredicate(index);
	ListCell   *cell;
	int			count = 0;

	foreach(cell, predicate)
		if (count == TESTS_MAX || !TestRead(lfirst(cell), &tests[count++]))
		return -1;
	return count;
}

/* Read from the catalog how rows get into an index. */
static void
IndexFactsRead(Call *call, Oid oid, IndexFacts *facts)
{
	Relation	index = IndexOpen(call, oid);
	Form_pg_index form = index->rd_index;

	facts->index = oid;
	facts->unique = form->indisunique;
	facts->ncolumns = form->indnatts;
	facts->plain = index->rd_rel->relam == BTREE_AM_OID && form->indisready && form->indnatts <= KEY_MAX_COLUMNS &&
		RelationGetIndexExpressions(index) == NIL;
	for (int i = 0; facts->plain && i < facts->ncolumns; i++)
		facts->columns[i] = form->indkey.values[i];
	facts->ntests = TestsRead(index, facts->tests);
}

/* Read how rows get into the indexes of a table. */
static void
IndexesRead(Call *call, Relation relation, Facts *f)
{
	List	   *indexes = RelationGetIndexList(relation);
	ListCell   *cell;

	f->nindexes = list_length(indexes) > INDEXES_MAX ? -1 : 0;
	if (f->nindexes == 0)
		foreach(cell, indexes)
			IndexFactsRead(call, lfirst_oid(cell), &f->indexes[f->nindexes++]);
	f->indexed = true;
}

/*
 * Find what is known about a table, with its indexes. If an invalidation comes
 * while they are read, they are good for this time, and are read again the next.
 */
static const Facts *
FactsWithIndexes(Call *call, Relation relation)
{
	Facts	   *f = FactsOf(relation);

	if (!f->indexed)
		IndexesRead(call, relation, f);
	return f;
}

/* ---------- adding ---------- */

/* Add entries to the indexes of a table, as the executor does. */
static void
IndexesAdd(Relation relation, TupleTableSlot *slot, bool update, bool summaries)
{
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *info = makeNode(ResultRelInfo);

	InitResultRelInfo(info, relation, 0, NULL, 0);
	ExecOpenIndices(info, false);
	InsertIndexTuples(info, slot, estate, update, summaries);
	ExecCloseIndices(info);
	FreeExecutorState(estate);
}

static bool
TestHolds(const ColumnTest *test, TupleTableSlot *slot)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, test->column, &isnull);

	if (test->kind == COLUMN_IS_TRUE)
		return !isnull && DatumGetBool(value);
	return isnull == (test->kind == COLUMN_IS_NULL);
}

/* Check whether an index has an entry for a row. */
static bool
HasEntry(const IndexFacts *facts, TupleTableSlot *slot)
{
	for (int i = 0; i < facts->ntests; i++)
		if (!TestHolds(&facts->tests[i], slot))
			return false;
	return true;
}

/*
 * Add the entry of a new row to an index. A B-tree needs no IndexInfo, as in
 * toast_internals.c.
 *
 * A deferrable constraint is checked at once too. The executor would check it at
 * the end of the statement, but no statement of ours leaves duplicates to be
 * resolved by the next one. Those of a user's statement are not our concern.
 *
 * "unchanged" says that the version before has the same key, so no other row can
 * have it, and that is not checked again. (The predicates of our unique indexes
 * are about columns of their keys.) "has_dead" says that the index may have
 * entries of dead versions; then it looks for them before it splits a page.
 */
static void
EntryAdd(Relation relation, Relation index, const IndexFacts *facts, TupleTableSlot *slot, bool unchanged, bool has_dead)
{
	Datum		values[KEY_MAX_COLUMNS];
	bool		nulls[KEY_MAX_COLUMNS];
	bool		check = facts->unique && !unchanged;

	for (int i = 0; i < facts->ncolumns; i++)
		values[i] = slot_getattr(slot, facts->columns[i], &nulls[i]);
	index_insert(index, values, nulls, &slot->tts_tid, relation, check ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO,
				 unchanged && has_dead, NULL);
}

/* Check whether a write leaves the columns of an index as they were; NULL: the row is new. */
static bool
IsUnchanged(const IndexFacts *facts, const Changes *update)
{
	for (int i = 0; update != NULL && i < facts->ncolumns; i++)
		if (update->replaces[facts->columns[i] - 1])
			return false;
	return update != NULL;
}

/*
 * Check whether it makes sense to let an index look for entries of dead
 * versions. A run writes many rows, each of them once, in one transaction, in
 * which no version dies.
 */
static bool
HasDeadEntries(const Call *call)
{
	return !call->in_turns;
}

/* Check whether the entries of a row need the executor. */
static bool
NeedsExecutor(const Facts *f, TupleTableSlot *slot)
{
	for (int i = 0; i < f->nindexes; i++)
		if (f->indexes[i].ntests < 0 || (!f->indexes[i].plain && HasEntry(&f->indexes[i], slot)))
			return true;
	return f->nindexes < 0;
}

/*
 * Add the entries of new rows, or of the new version of a row that an update
 * has written, one index after the other. An index that gets none is not opened.
 */
void
EntriesAdd(Call *call, Relation relation, TupleTableSlot **slots, int count, const Changes *update)
{
	const Facts *f = FactsWithIndexes(call, relation);

	for (int row = 0; row < count; row++)
		if (NeedsExecutor(f, slots[row]))
		{
			for (row = 0; row < count; row++)
				IndexesAdd(relation, slots[row], update != NULL, false);
			return;
		}
	for (int i = 0; i < f->nindexes; i++)
	{
		Relation	index = NULL;

		for (int row = 0; row < count; row++)
			if (HasEntry(&f->indexes[i], slots[row]))
			{
				if (index == NULL)
					index = IndexOpen(call, f->indexes[i].index);
				EntryAdd(relation, index, &f->indexes[i], slots[row], IsUnchanged(&f->indexes[i], update), HasDeadEntries(call));
			}
	}
}

/* Add the entries that the new version of a row needs. The update has said in which kinds of indexes. */
void
EntriesAddOfUpdate(Call *call, Relation relation, TupleTableSlot *new, const Changes *changes, UpdateIndexes indexes)
{
	if (indexes != NO_INDEXES && OnlySummaries(indexes))
		IndexesAdd(relation, new, true, true);
	else if (indexes != NO_INDEXES)
		EntriesAdd(call, relation, &new, 1, changes);
}
