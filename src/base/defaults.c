/*
 * defaults.c
 *	  complete calls of our functions with their defaults, from a cache
 *
 * Our functions have many arguments with defaults. PostgreSQL keeps defaults
 * as text in pg_proc, and reads that text twice for each statement that leaves
 * some out: once when it looks for the function, and once when it plans the
 * call. For a client that does not prepare its statements, that is a good part
 * of a call. The first reading cannot be avoided. For the second one, this
 * completes the call before the planner sees it, as the planner would do.
 *
 * Only calls in the target list and in FROM are completed, and only if all
 * defaults of the function are constants. The planner completes all others.
 */
#include "base/base.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

typedef struct Defaults
{
	Oid			function;		/* InvalidOid: the entry is out of date */
	int			nargs;			/* of the function; 0: it is not one of ours, or has no constant defaults */
	List	   *values;			/* of the last arguments */
	MemoryContext context;		/* of the values; NULL: none yet */
} Defaults;

static Defaults kept[64];

/* ---------- the cache ---------- */

static void
DefaultsForget(Datum arg, int cache, uint32 hash)
{
	for (size_t i = 0; i < lengthof(kept); i++)
		kept[i].function = InvalidOid;
}

/* Check whether a function takes values of any type. The type of its defaults would follow that of its arguments. */
static bool
TakesAnyType(Form_pg_proc proc)
{
	for (int i = 0; i < proc->pronargs; i++)
		if (IsPolymorphicType(proc->proargtypes.values[i]))
			return true;
	return false;
}

/* Check whether a function is ours and has defaults that can be kept. */
static bool
IsOurs(Form_pg_proc proc)
{
	return proc->pronargdefaults > 0 && proc->prokind == PROKIND_FUNCTION && !OidIsValid(proc->provariadic) &&
		proc->pronamespace == get_namespace_oid("stepwise", true) && !TakesAnyType(proc);
}

static bool
AreConstants(List *values)
{
	ListCell   *cell;

	foreach(cell, values)
		if (!IsA(lfirst(cell), Const))
			return false;
	return true;
}

/* Read the defaults of a function; NIL if they are not all constants. */
static List *
ReadDefaults(HeapTuple tuple)
{
	bool		isnull;
	Datum		stored = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proargdefaults, &isnull);
	List	   *values = isnull ? NIL : castNode(List, stringToNode(TextDatumGetCString(stored)));

	return AreConstants(values) ? values : NIL;
}

/*
 * Fill an entry of the cache. It is marked as valid before anything is read: a
 * lookup may process an invalidation, and then what was read is out of date, and
 * serves this time only.
 */
static void
Keep(Defaults *entry, Oid function)
{
	HeapTuple	tuple;
	MemoryContext outer;

	entry->function = function;
	entry->nargs = 0;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return;
	if (IsOurs((Form_pg_proc) GETSTRUCT(tuple)))
	{
		if (entry->context == NULL)
			entry->context = AllocSetContextCreate(CacheMemoryContext, "stepwise defaults", ALLOCSET_SMALL_SIZES);
		MemoryContextReset(entry->context);
		outer = MemoryContextSwitchTo(entry->context);
		entry->values = ReadDefaults(tuple);
		MemoryContextSwitchTo(outer);
		if (entry->values != NIL)
			entry->nargs = ((Form_pg_proc) GETSTRUCT(tuple))->pronargs;
	}
	ReleaseSysCache(tuple);
}

/* Find the defaults of a function; NULL: it is not one of ours, or has none. */
static const Defaults *
DefaultsOf(Oid function)
{
	Defaults   *entry = &kept[function % lengthof(kept)];

	if (function < FirstNormalObjectId)
		return NULL;
	if (entry->function != function)
		Keep(entry, function);
	return entry->nargs > 0 ? entry : NULL;
}

/* Check whether a function is one of ours, with constant defaults. */
bool
DefaultsAreKept(Oid function)
{
	return DefaultsOf(function) != NULL;
}

/* ---------- completing ---------- */

/* Put each argument of a call in its place. */
static void
PlaceArguments(const FuncExpr *call, Node **places)
{
	int			next = 0;
	ListCell   *cell;

	foreach(cell, call->args)
	{
		Node	   *argument = lfirst(cell);

		if (IsA(argument, NamedArgExpr))
			places[((NamedArgExpr *) argument)->argnumber] = (Node *) ((NamedArgExpr *) argument)->arg;
		else
			places[next++] = argument;
	}
}

/* Add the defaults of the arguments that a call leaves out. */
static void
CompleteCall(FuncExpr *call)
{
	const Defaults *defaults = DefaultsOf(call->funcid);
	Node	   *places[FUNC_MAX_ARGS] = {0};
	List	   *arguments = NIL;
	int			required;

	if (defaults == NULL || list_length(call->args) >= defaults->nargs)
		return;
	required = defaults->nargs - list_length(defaults->values);
	PlaceArguments(call, places);
	for (int i = 0; i < defaults->nargs; i++)
	{
		if (places[i] == NULL && i < required)
			return;
		if (places[i] == NULL)
			places[i] = copyObject(list_nth(defaults->values, i - required));
		arguments = lappend(arguments, places[i]);
	}
	call->args = arguments;
}

static bool
CompleteCalls(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, FuncExpr))
		CompleteCall((FuncExpr *) node);
	return expression_tree_walker(node, CompleteCalls, context);
}

/* Complete the calls of a query. The planner may change the query that it gets, so we may too. */
void
DefaultsComplete(Query *query)
{
	ListCell   *cell;

	CompleteCalls((Node *) query->targetList, NULL);
	foreach(cell, query->rtable)
		CompleteCalls((Node *) lfirst_node(RangeTblEntry, cell)->functions, NULL);
}

/* Register the invalidation callbacks. */
void
DefaultsInit(void)
{
	CacheRegisterSyscacheCallback(PROCOID, DefaultsForget, (Datum) 0);
	CacheRegisterSyscacheCallback(NAMESPACEOID, DefaultsForget, (Datum) 0);
}
