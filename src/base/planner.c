/*
 * planner.c
 *	  let kept plans stay good as the tables grow
 *
 * The engine's queries are planned once per backend and kept. A plan that is
 * made while the tables are nearly empty, after an installation or a purge, is
 * bad: with so few rows, every index that leads with the tenant looks as good
 * as the right one. Such a plan would read all rows of a tenant for each row
 * that it wants, until the next ANALYZE. So the engine's own queries are
 * planned as if the tables were large. ANALYZE would not help later either:
 * the columns keep no statistics (sql/85_statistics.sql).
 */
#include "base/base.h"

#include "catalog/namespace.h"
#include "optimizer/plancat.h"
#include "utils/lsyscache.h"

/* large enough to tell the indexes apart, too small to bring in JIT or parallel workers */
#define ROWS_AT_LEAST	100000
#define PAGES_AT_LEAST	5000

static get_relation_info_hook_type previous_hook = NULL;

static void
IndexLooksLarge(IndexOptInfo *index)
{
	int			share = index->indpred == NIL ? 1 : 10; /* a partial index has few of the rows */

	index->tuples = Max(index->tuples, ROWS_AT_LEAST / share);
	index->pages = Max(index->pages, PAGES_AT_LEAST / 5 / share);
	index->tree_height = Max(index->tree_height, 2);
}

static void
TableLooksLarge(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	ListCell   *cell;

	if (previous_hook != NULL)
		previous_hook(root, relid, inhparent, rel);
	if (!EngineRuns() || get_rel_namespace(relid) != get_namespace_oid("stepwise", true))
		return;
	rel->tuples = Max(rel->tuples, ROWS_AT_LEAST);
	rel->pages = Max(rel->pages, PAGES_AT_LEAST);
	foreach(cell, rel->indexlist)
		IndexLooksLarge(lfirst(cell));
}

/* Install the planner hook. */
void
PlannerInit(void)
{
	previous_hook = get_relation_info_hook;
	get_relation_info_hook = TableLooksLarge;
}
