/*
 * callable.c
 *	  the functions that can be called by name
 *
 * One table lists them: what grant_agent and grant_reader may grant, except
 * procedures, and except what itself calls by name. The table has only names
 * and kinds. Arguments, types and defaults are read from the catalog at the
 * first use, so they cannot differ from it.
 *
 * Memory: each row of the table keeps what it has read in its own context. A
 * change of any function makes the rows stale; the invalidation callback only
 * counts. A stale row is read again by CallableFind. So what a caller needs
 * while the function runs must be copied before, since the function may change
 * functions and call by name itself.
 */
#include "api/api.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/primnodes.h"
#include "utils/acl.h"
#include "utils/datum.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

static Callable Callables[] = {
	{"help", CALLABLE_READS},
	{"enter_tenant", CALLABLE_READS},
	{"current_tenant", CALLABLE_READS},
	{"create_plan", CALLABLE_ACTS},
	{"define_workflow", CALLABLE_ACTS},
	{"validate_definition", CALLABLE_READS},
	{"start_workflow", CALLABLE_ACTS},
	{"list_workflows", CALLABLE_READS},
	{"get_workflow", CALLABLE_READS},
	{"drop_workflow", CALLABLE_ACTS},
	{"fork_plan", CALLABLE_ACTS},
	{"get_next_step", CALLABLE_ACTS},
	{"submit_step_result", CALLABLE_ACTS},
	{"advance", CALLABLE_ACTS},
	{"fail_step", CALLABLE_ACTS},
	{"retry_step", CALLABLE_ACTS},
	{"skip_step", CALLABLE_ACTS},
	{"release_step", CALLABLE_ACTS},
	{"heartbeat", CALLABLE_ACTS},
	{"reclaim_stalled", CALLABLE_ACTS},
	{"cancel_plan", CALLABLE_ACTS},
	{"modify_plan", CALLABLE_ACTS},
	{"request_user_review", CALLABLE_ACTS},
	{"submit_user_decision", CALLABLE_DECIDES},
	{"resume", CALLABLE_DECIDES},
	{"get_plan_status", CALLABLE_READS},
	{"get_plan_context", CALLABLE_READS},
	{"get_step_context", CALLABLE_READS},
	{"list_active_plans", CALLABLE_READS},
	{"list_plans", CALLABLE_READS},
	{"list_checkpoints", CALLABLE_READS},
	{"find_plans", CALLABLE_READS},
	{"why", CALLABLE_READS},
	{"handoff", CALLABLE_READS},
	{"execution", CALLABLE_READS},
	{"execution_as_of", CALLABLE_READS},
	{"workflow_response", CALLABLE_READS},
	{"list_tools", CALLABLE_READS},
	{"run", CALLABLE_ACTS},
	{"record_tool_result", CALLABLE_ACTS},
	{"state_read", CALLABLE_ACTS},
	{"state_write", CALLABLE_ACTS},
	{"state_merge", CALLABLE_ACTS},
	{"store_artifact", CALLABLE_ACTS},
	{"get_artifact", CALLABLE_READS},
	{"store_output", CALLABLE_ACTS},
	{"get_output", CALLABLE_READS},
	{"search_artifacts", CALLABLE_READS},
	{"log_skill_execution", CALLABLE_ACTS},
	{"set_variables", CALLABLE_ACTS},
	{"task_variables", CALLABLE_READS},
	{"verify_audit", CALLABLE_READS},
	{"audit_head", CALLABLE_READS},
	{"derive_plan_status", CALLABLE_READS},
	{"step_transition_allowed", CALLABLE_READS},
	{"plan_transition_allowed", CALLABLE_READS},
	{"step_fits", CALLABLE_ACTS},
	{"plan_fits", CALLABLE_ACTS},
	{"uuid7", CALLABLE_ACTS},
	{"slot_of", CALLABLE_READS},
	{"tenant_slot", CALLABLE_READS}
};

static uint64 functions_changed = 1;	/* counts the invalidations; a row that was never read has 0 */

static void
CallablesInvalidate(Datum arg, int cache, uint32 hash)
{
	functions_changed++;
}

/* Register the invalidation callback. */
void
CallableInit(void)
{
	CacheRegisterSyscacheCallback(PROCOID, CallablesInvalidate, (Datum) 0);
}

/* ---------- what the catalog says ---------- */

/* Write a name in camelCase: plan_id is planId. */
static char *
CamelCase(const char *name)
{
	char	   *camel = palloc(strlen(name) + 1);
	char	   *end = camel;

	for (; *name; name++)
		*end++ = *name == '_' && name[1] != '\0' ? pg_toupper((unsigned char) *++name) : *name;
	*end = '\0';
	return camel;
}

/* Note the default of an argument. */
static void
ArgumentReadDefault(CallableArgument *argument, Node *expression)
{
	Const	   *value = castNode(Const, expression);

	argument->required = false;
	argument->otherwise_null = value->constisnull;
	argument->otherwise_byval = value->constbyval;
	argument->otherwise_length = value->constlen;
	if (!value->constisnull)
		argument->otherwise = datumCopy(value->constvalue, value->constbyval, value->constlen);
}

/* Read the defaults. The last arguments have them. */
static void
CallableReadDefaults(Callable *callable, HeapTuple tuple)
{
	bool		isnull;
	Datum		stored = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_proargdefaults, &isnull);
	List	   *defaults = isnull ? NIL : castNode(List, stringToNode(TextDatumGetCString(stored)));
	int			first = callable->argument_count - list_length(defaults);

	for (int i = 0; i < list_length(defaults); i++)
		ArgumentReadDefault(&callable->arguments[first + i], list_nth(defaults, i));
}

/* Read what the catalog says about a function, into the current memory context. */
static void
CallableRead(Callable *callable, HeapTuple tuple)
{
	Form_pg_proc form = (Form_pg_proc) GETSTRUCT(tuple);
	Oid		   *types;
	char	  **names;
	char	   *modes;

	callable->function = form->oid;
	callable->result = form->prorettype;
	callable->argument_count = get_func_arg_info(tuple, &types, &names, &modes);
	callable->arguments = palloc0(sizeof(CallableArgument) * callable->argument_count);
	for (int i = 0; i < callable->argument_count; i++)
	{
		callable->arguments[i].name = names[i];
		callable->arguments[i].camel = CamelCase(names[i]);
		callable->arguments[i].type = types[i];
		callable->arguments[i].required = true;
	}
	CallableReadDefaults(callable, tuple);
	fmgr_info_cxt(form->oid, &callable->info, CurrentMemoryContext);
}

/*
 * Read a row of the table again. Returns false if the installed version of the
 * extension does not have the function.
 */
static bool
CallableRefresh(Callable *callable)
{
	uint64		changes = functions_changed;	/* more may come while we read */
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(FunctionOid(callable->name)));
	MemoryContext outer;

	if (!HeapTupleIsValid(tuple))
		return false;
	callable->read_at = 0;
	if (callable->memory == NULL)
		callable->memory = AllocSetContextCreate(TopMemoryContext, "stepwise callable", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(callable->memory);
	outer = MemoryContextSwitchTo(callable->memory);
	CallableRead(callable, tuple);
	MemoryContextSwitchTo(outer);
	ReleaseSysCache(tuple);
	callable->read_at = changes;
	return true;
}

/* ---------- for those who call ---------- */

/* List the names of all functions that can be called by name. */
const char **
CallableNames(int *count)
{
	const char **names = palloc(sizeof(char *) * lengthof(Callables));

	*count = lengthof(Callables);
	for (int i = 0; i < *count; i++)
		names[i] = Callables[i].name;
	return names;
}

/* Check whether a function of this name only reads. Rows of the table stay as they are, since one of them may be running. */
bool
FunctionReads(const char *name)
{
	for (size_t i = 0; i < lengthof(Callables); i++)
		if (strcmp(Callables[i].name, name) == 0)
			return Callables[i].kind == CALLABLE_READS;
	return false;
}

/* Find a function that can be called by name; NULL if there is none. */
const Callable *
CallableFind(const char *name)
{
	for (size_t i = 0; i < lengthof(Callables); i++)
		if (strcmp(Callables[i].name, name) == 0)
			return Callables[i].read_at == functions_changed || CallableRefresh(&Callables[i]) ? &Callables[i] : NULL;
	return NULL;
}

/* Check whether the current role may execute a function. */
bool
CallableIsGranted(const Callable *callable)
{
	return FunctionAclCheck(callable->function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
}
