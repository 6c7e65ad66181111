/*
 * planner.c
 *	  let kept plans stay good as the tables grow
 *
 * The engine's queries are planned once per backend and kept. A plan that is
 * made while the tables are nearly empty, after an installation or a purge, is
 * bad: with so few rows, every index that leads with the tenant looks as good
 * as the right one. Such a plan would read all rows of a tenant for each row
 * that it wants, until the next ANALYZE. So the engine's own queries are
 * planned as if the tables were large, as if few rows had the same id, and as
 * if all plans were of the tenant: by default the planner expects 200 different
 * values in a column. It would take a tenant to have a few open plans, and read
 * all of them in place of the one that it wants. ANALYZE would not help later
 * either: the columns keep no statistics (sql/85_statistics.sql).
 */
#include "base/base.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "optimizer/plancat.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"

/* large enough to tell the indexes apart, too small to bring in JIT or parallel workers */
#define ROWS_AT_LEAST	100000
#define PAGES_AT_LEAST	5000

/* how many different values a column has, as pg_statistic writes it: a tenth of the rows, or one */
#define TEN_OF_A_KIND	(-0.1)
#define ONE_KIND		1.0

/* what the planner is told of a column; the tuple is made at first use, and kept */
typedef struct ColumnLook
{
	float4		distinct;
	int			width;
	HeapTuple	statistics;
} ColumnLook;

static ColumnLook LookOfIds = {TEN_OF_A_KIND, UUID_LEN};
static ColumnLook LookOfTenants = {ONE_KIND, 16};

static get_relation_info_hook_type previous_hook = NULL;
static get_relation_stats_hook_type previous_stats_hook = NULL;

/* Check whether the engine plans a query of its own about this table. */
static bool
IsPlannedHere(Oid relid)
{
	return EngineRuns() && get_rel_namespace(relid) == get_namespace_oid("stepwise", true);
}

static void
IndexLooksLarge(IndexOptInfo *index)
{
	int			share = index->indpred == NIL ? 1 : 10; /* a partial index has few of the rows */

	index->tuples = Max(index->tuples, ROWS_AT_LEAST / share);
	index->pages = Max(index->pages, PAGES_AT_LEAST / 5 / share);
	index->tree_height = Max(index->tree_height, 2);
	/* of an ordered index, the first rows are wanted; a bitmap would read all of them */
	if (index->sortopfamily != NULL)
		index->amhasgetbitmap = false;
}

static void
TableLooksLarge(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	ListCell   *cell;

	if (previous_hook != NULL)
		previous_hook(root, relid, inhparent, rel);
	if (!IsPlannedHere(relid))
		return;
	rel->tuples = Max(rel->tuples, ROWS_AT_LEAST);
	rel->pages = Max(rel->pages, PAGES_AT_LEAST);
	foreach(cell, rel->indexlist)
		IndexLooksLarge(lfirst(cell));
}

/*
 * Make the statistics of a column: a row of pg_statistic that has nothing but its
 * fixed part. To open that table would cost a new connection more than the rest.
 */
static HeapTuple
StatisticsMake(const ColumnLook *look)
{
	Size		start = MAXALIGN(SizeofHeapTupleHeader);
	Size		length = start + sizeof(FormData_pg_statistic);
	HeapTuple	made = MemoryContextAllocZero(TopMemoryContext, HEAPTUPLESIZE + length);
	Form_pg_statistic row;

	made->t_len = length;
	made->t_data = (HeapTupleHeader) ((char *) made + HEAPTUPLESIZE);
	made->t_data->t_hoff = start;
	HeapTupleHeaderSetNatts(made->t_data, Anum_pg_statistic_stacoll5);
	row = (Form_pg_statistic) GETSTRUCT(made);
	row->stawidth = look->width;
	row->stadistinct = look->distinct;
	return made;
}

/* Leave the statistics alone: they are kept. */
static void
KeepStatistics(HeapTuple tuple)
{
}

/* Check whether a column is the tenant of a plan. Only plans have an index of few of the rows of a tenant: the open ones. */
static bool
IsTenantOfPlan(Oid relid, AttrNumber column)
{
	return strcmp(get_rel_name(relid), "plan") == 0 && strcmp(get_attname(relid, column, false), "tenant") == 0;
}

/* Find what the planner is told of a column; NULL: nothing. */
static ColumnLook *
LookOf(Oid relid, AttrNumber column)
{
	switch (get_atttype(relid, column))
	{
		case UUIDOID:
			return &LookOfIds;
		case TEXTOID:
			return IsTenantOfPlan(relid, column) ? &LookOfTenants : NULL;
		default:
			return NULL;
	}
}

static bool
ColumnLooksDifferent(PlannerInfo *root, RangeTblEntry *table, AttrNumber column, VariableStatData *answer)
{
	ColumnLook *look;

	if (previous_stats_hook != NULL && previous_stats_hook(root, table, column, answer))
		return true;
	if (table->rtekind != RTE_RELATION || !IsPlannedHere(table->relid))
		return false;
	look = LookOf(table->relid, column);
	if (look == NULL)
		return false;
	if (look->statistics == NULL)
		look->statistics = StatisticsMake(look);
	answer->statsTuple = look->statistics;
	answer->freefunc = KeepStatistics;
	return true;
}

/* Install the planner hooks. */
void
PlannerInit(void)
{
	previous_stats_hook = get_relation_stats_hook;
	get_relation_stats_hook = ColumnLooksDifferent;
	previous_hook = get_relation_info_hook;
	get_relation_info_hook = TableLooksLarge;
}
