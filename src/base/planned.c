/*
 * planned.c
 *	  plan the statements that call our functions
 *
 * A client that does not prepare pays for the planner at each call. There is
 * nothing to plan in "SELECT stepwise.advance(…)", where all arguments are
 * constants or parameters: the plan is a Result with the call as its only column.
 * So it is made here. The planner would also put the values of parameters into
 * the plan, which makes it no better.
 *
 * All other statements go to the planner, with the calls completed (defaults.c).
 */
#include "base/base.h"

#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planmain.h"
#include "optimizer/planner.h"

static planner_hook_type previous_planner = NULL;

/* Check whether a query is a target list and nothing else. */
static bool
IsTargetList(const Query *query)
{
	return query->commandType == CMD_SELECT && query->rtable == NIL && query->cteList == NIL && query->setOperations == NULL &&
		query->jointree->fromlist == NIL && query->jointree->quals == NULL &&
		!query->hasAggs && !query->hasWindowFuncs && !query->hasTargetSRFs && !query->hasSubLinks &&
		query->groupClause == NIL && query->groupingSets == NIL && query->havingQual == NULL && query->distinctClause == NIL &&
		query->sortClause == NIL && query->limitOffset == NULL && query->limitCount == NULL && query->rowMarks == NIL;
}

/* Check whether all arguments of a call are constants or parameters. */
static bool
HasValues(const FuncExpr *call)
{
	ListCell   *cell;

	foreach(cell, call->args)
		if (!IsA(lfirst(cell), Const) && !(IsA(lfirst(cell), Param) && lfirst_node(Param, cell)->paramkind == PARAM_EXTERN))
			return false;
	return true;
}

/* Find the call of one of our functions that is all of a query; NULL: it is something else. */
static const FuncExpr *
OnlyCall(const Query *query)
{
	const FuncExpr *call;

	if (list_length(query->targetList) != 1 || !IsTargetList(query))
		return NULL;
	call = (const FuncExpr *) linitial_node(TargetEntry, query->targetList)->expr;
	return IsA(call, FuncExpr) && DefaultsAreKept(call->funcid) && HasValues(call) ? call : NULL;
}

/* List what makes a plan with a call out of date: a change of the function. */
static List *
DependencyOf(const FuncExpr *call)
{
	PlannerInfo root = {.type = T_PlannerInfo};
	PlannerGlobal global = {.type = T_PlannerGlobal};

	root.glob = &global;
	record_plan_function_dependency(&root, call->funcid);
	return global.invalItems;
}

/* Make the plan of a query that is one call. */
static PlannedStmt *
PlanOf(const Query *query, const FuncExpr *call)
{
	PlannedStmt *planned = makeNode(PlannedStmt);
	Result	   *result = makeNode(Result);

	result->plan.targetlist = query->targetList;
	result->plan.total_cost = cpu_operator_cost;
	result->plan.plan_rows = 1;
	planned->commandType = CMD_SELECT;
	planned->queryId = query->queryId;
	planned->canSetTag = query->canSetTag;
	planned->planTree = &result->plan;
	planned->invalItems = DependencyOf(call);
	planned->stmt_location = query->stmt_location;
	planned->stmt_len = query->stmt_len;
	return planned;
}

/* Plan a statement. The planner may change the query that it gets, so we may too. */
static PlannedStmt *
PlanStatement(Query *query, const char *query_string, int options, ParamListInfo params)
{
	const FuncExpr *call;

	DefaultsComplete(query);
	if (previous_planner != NULL)
		return previous_planner(query, query_string, options, params);
	/* to read backward, the answer must be kept */
	call = options & CURSOR_OPT_SCROLL ? NULL : OnlyCall(query);
	return call != NULL ? PlanOf(query, call) : standard_planner(query, query_string, options, params);
}

/* Install the hook. */
void
PlannedInit(void)
{
	previous_planner = planner_hook;
	planner_hook = PlanStatement;
}
