/*
 * look.c
 *	  notice who looks at our tables while a call is suspended
 *
 * A run suspends its call while a tool runs, with changes that are in memory
 * only. They are written (CallShow) before a statement that reads or writes a
 * table of ours, before every utility statement, and before a statement that
 * may use parallel workers, which do not have our memory. Our own functions
 * need no hook: they begin a call.
 *
 * A C function that reads our tables without a statement is not noticed.
 */
#include "base/base.h"

#include "catalog/namespace.h"
#include "executor/executor.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"

static ExecutorStart_hook_type previous_start = NULL;
static ProcessUtility_hook_type previous_utility = NULL;

/* Check whether a statement may see rows of our tables. */
static bool
StatementLooks(const PlannedStmt *statement)
{
	Oid			schema;
	ListCell   *cell;

	if (statement->parallelModeNeeded)
		return true;
	if (statement->relationOids == NIL)
		return false;
	schema = get_namespace_oid("stepwise", true);
	foreach(cell, statement->relationOids)
		if (get_rel_namespace(lfirst_oid(cell)) == schema)
			return true;
	return false;
}

static void
LookAtStart(QueryDesc *query, int flags)
{
	if (CallIsSuspended() && StatementLooks(query->plannedstmt))
		CallShow();
	if (previous_start != NULL)
		previous_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
}

static void
LookAtUtility(PlannedStmt *statement, const char *source, bool read_only_tree, ProcessUtilityContext context,
			  ParamListInfo params, QueryEnvironment *environment, DestReceiver *destination, QueryCompletion *completion)
{
	CallShow();
	if (previous_utility != NULL)
		previous_utility(statement, source, read_only_tree, context, params, environment, destination, completion);
	else
		standard_ProcessUtility(statement, source, read_only_tree, context, params, environment, destination, completion);
}

/* Install the hooks. */
void
LookInit(void)
{
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = LookAtStart;
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = LookAtUtility;
}
