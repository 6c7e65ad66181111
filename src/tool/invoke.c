/*
 * invoke.c
 *	  call a registered SQL function as the caller, in a subtransaction
 *
 * Functions are registered by OID and stored as a signature, such as
 * "public.deploy(jsonb)", because an OID would not survive a dump. The name is
 * qualified, and the type of the argument is looked up by its OID. So the
 * search path does not matter.
 *
 * A run calls the same few functions many times. It remembers what it has
 * looked up and checked (Invokables) until an entry of the system catalogs
 * changes on which that depends. What a function itself remembers from call to
 * call (fn_extra) is forgotten after an error, and at the end of the run.
 *
 * A function runs with the rights of the caller, never with those of the
 * owner. What it sets (SET, SET ROLE, enter_tenant) ends with it. Its error
 * rolls back its own writes, and is returned. Errors of the transaction or of
 * the server are thrown on.
 *
 * Memory: results and errors are in the context of the caller.
 */
#include "tool/tool.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "parser/parse_func.h"
#include "pgstat.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

/* ---------- which function ---------- */

static void
CheckFunctionExists(Oid function)
{
	if (!SearchSysCacheExists1(PROCOID, ObjectIdGetDatum(function)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("function with OID %u does not exist", function),
				 errhint("Name it as in 'public.deploy(jsonb)'.")));
}

/*
 * Say why a function cannot be called with one argument of this type to return
 * jsonb; NULL if it can.
 */
static const char *
FunctionFault(Oid function, Oid argument)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	const char *fault = NULL;
	Form_pg_proc form;

	if (!HeapTupleIsValid(tuple))
		return "does not exist";
	form = (Form_pg_proc) GETSTRUCT(tuple);
	if (form->prokind != PROKIND_FUNCTION)
		fault = "is no plain function";
	else if (isAnyTempNamespace(form->pronamespace))
		fault = "is temporary";
	else if (form->proretset)
		fault = "returns a set";
	else if (form->prorettype != JSONBOID)
		fault = "does not return jsonb";
	else if (form->pronargs != 1 || form->proargtypes.values[0] != argument)
		fault = argument == JSONBOID ? "does not take one jsonb" : "does not take one text";
	ReleaseSysCache(tuple);
	return fault;
}

static void
CheckFunctionFits(Oid function, Oid argument, const char *hint)
{
	const char *fault = FunctionFault(function, argument);

	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("function %s cannot be registered: it %s", get_func_name(function), fault),
				 errhint("%s", hint)));
}

static void
CheckFunctionExecutable(Oid function)
{
	AclResult	result = FunctionAclCheck(function, GetUserId(), ACL_EXECUTE);

	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_FUNCTION, get_func_name(function));
}

/*
 * Check a function that is to be registered, as the caller, and return its
 * signature.
 */
char *
FunctionSignature(Oid function, Oid argument, const char *hint)
{
	CheckFunctionExists(function);
	CheckFunctionFits(function, argument, hint);
	CheckFunctionExecutable(function);
	return psprintf("%s(%s)",
					quote_qualified_identifier(get_namespace_name(get_func_namespace(function)), get_func_name(function)),
					argument == JSONBOID ? "jsonb" : "text");
}

/* Check whether a function takes one text. */
bool
FunctionTakesText(Oid function)
{
	return SearchSysCacheExists1(PROCOID, ObjectIdGetDatum(function)) &&
		FunctionFault(function, TEXTOID) == NULL;
}

/*
 * Check whether the function of a signature takes a text. Otherwise it takes a
 * jsonb.
 */
bool
SignatureTakesText(const char *signature)
{
	return strcmp(strrchr(signature, '('), "(text)") == 0;
}

/*
 * Find the function of a signature, as the caller, who must have access to its
 * schema.
 */
static Oid
FunctionResolve(const char *signature)
{
	Oid			argument = SignatureTakesText(signature) ? TEXTOID : JSONBOID;
	int			length = strrchr(signature, '(') - signature;
	List	   *name = textToQualifiedNameList(cstring_to_text_with_len(signature, length));
	Oid			function = LookupFuncName(name, 1, &argument, false);
	const char *fault = FunctionFault(function, argument);

	/* the function may have been replaced since it was registered */
	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("function %s %s", signature, fault)));
	CheckFunctionExecutable(function);
	return function;
}

/* ---------- what a run remembers ---------- */

/* a function that was found, and that the role may call */
typedef struct Invokable
{
	char	   *signature;
	Oid			role;
	FmgrInfo	info;
	uint64		known;			/* catalog_changes when it was looked up; 0: it is to be looked up again */
	MemoryContext context;
} Invokable;

struct Invokables
{
	MemoryContext context;
	List	   *list;			/* of Invokable */
};

static uint64 catalog_changes = 1;	/* counts changes of what Invokables depend on */

static void
CatalogChanged(Datum arg, int cache, uint32 hash)
{
	catalog_changes++;
}

/* Register the invalidation callbacks: functions, schemas, roles, memberships. */
void
InvokeInit(void)
{
	static const int caches[] = {PROCOID, NAMESPACEOID, AUTHOID, AUTHMEMROLEMEM};

	for (size_t i = 0; i < lengthof(caches); i++)
		CacheRegisterSyscacheCallback(caches[i], CatalogChanged, (Datum) 0);
}

/* Begin to remember functions, until the current memory context is deleted. */
Invokables *
InvokablesNew(void)
{
	Invokables  *invokables = palloc0(sizeof(Invokables));

	invokables->context = CurrentMemoryContext;
	return invokables;
}

/* Find what is remembered of a signature, or make an entry. */
static Invokable *
InvokableOf(Invokables *invokables, const char *signature)
{
	MemoryContext outer;
	Invokable   *invokable;
	ListCell   *cell;

	foreach(cell, invokables->list)
	{
		invokable = lfirst(cell);
		if (strcmp(invokable->signature, signature) == 0)
			return invokable;
	}
	outer = MemoryContextSwitchTo(invokables->context);
	invokable = palloc0(sizeof(Invokable));
	invokable->signature = pstrdup(signature);
	invokable->context = AllocSetContextCreate(invokables->context, "stepwise function", ALLOCSET_SMALL_SIZES);
	invokables->list = lappend(invokables->list, invokable);
	MemoryContextSwitchTo(outer);
	return invokable;
}

/* Look up a function and check the rights of the caller, unless nothing has changed since that was done. */
static void
InvokableLookUp(Invokable *invokable)
{
	uint64		changes;
	Oid			function;

	AcceptInvalidationMessages();
	if (invokable->known == catalog_changes && invokable->role == GetUserId())
		return;
	invokable->known = 0;
	MemoryContextReset(invokable->context);
	changes = catalog_changes;
	function = FunctionResolve(invokable->signature);
	fmgr_info_cxt(function, &invokable->info, invokable->context);
	invokable->role = GetUserId();
	invokable->known = changes;
}

/* ---------- calling it ---------- */

/*
 * Call a function with a new snapshot, so that it sees what the engine and the
 * functions before it have written. Returns NULL for null.
 */
static Jsonb *
FunctionCall(FmgrInfo *info, Datum argument)
{
	LOCAL_FCINFO(fcinfo, 1);
	PgStat_FunctionCallUsage usage;
	Jsonb	   *result;
	Datum		value;

	InvokeFunctionExecuteHook(info->fn_oid);
	InitFunctionCallInfoData(*fcinfo, info, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = argument;
	fcinfo->args[0].isnull = false;
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	pgstat_init_function_usage(fcinfo, &usage);
	value = FunctionCallInvoke(fcinfo);
	pgstat_end_function_usage(&usage, true);
	result = fcinfo->isnull ? NULL : DatumGetJsonbPCopy(value);
	PopActiveSnapshot();
	CommandCounterIncrement();
	return result;
}

/* Call a function so that its settings do not outlive it. */
static Jsonb *
FunctionCallConfined(Invokable *invokable, Datum argument)
{
	void	   *tenant = TenantMark();
	Oid			user;
	int			security;
	int			level;
	Jsonb	   *result;

	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(user, security | SECURITY_LOCAL_USERID_CHANGE);
	level = NewGUCNestLevel();
	InvokableLookUp(invokable);
	result = FunctionCall(&invokable->info, argument);
	/* as after an error; otherwise a plain SET would stay */
	AtEOXact_GUC(false, level);
	SetUserIdAndSecContext(user, security);
	TenantRestore(tenant);
	return result;
}

/* ---------- whose error it is ---------- */

/* classes of errors that are never the fault of a function */
static const int ForeignClasses[] = {
	ERRCODE_TRANSACTION_ROLLBACK,
	ERRCODE_INSUFFICIENT_RESOURCES,
	ERRCODE_OPERATOR_INTERVENTION,
	ERRCODE_SYSTEM_ERROR,
	ERRCODE_INTERNAL_ERROR
};

/* Check whether an error is the transaction's or the server's. */
static bool
IsForeignError(int sqlstate)
{
	for (size_t i = 0; i < lengthof(ForeignClasses); i++)
		if (ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_TO_CATEGORY(ForeignClasses[i]))
			return true;
	return false;
}

/* Cut a text of an error to what may be stored, and clean it; NULL for NULL. */
static char *
ErrorText(const char *text)
{
	return text ? Utf8Clean(pnstrdup(text, pg_mbcliplen(text, strlen(text), MaxResultBytes))) : NULL;
}

/* Make a fault of an error. */
static ToolFault *
ToolFaultOf(const ErrorData *error)
{
	ToolFault  *fault = palloc0(sizeof(ToolFault));

	fault->message = ErrorText(error->message ? error->message : "error without a message");
	strlcpy(fault->code, unpack_sql_state(error->sqlerrcode), sizeof(fault->code));
	fault->detail = ErrorText(error->detail);
	fault->hint = ErrorText(error->hint);
	return fault;
}

/*
 * Do work in a subtransaction. Returns false and the fault if it raises an
 * error; then what it has written is rolled back.
 */
bool
Attempt(AttemptWork work, void *arg, ToolFault **fault)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	check_stack_depth();
	*fault = NULL;
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(arg);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (error == NULL)
		return true;
	/* not earlier: a handler expects its own subtransaction to be the current one */
	if (IsForeignError(error->sqlerrcode))
		ReThrowError(error);
	*fault = ToolFaultOf(error);
	return false;
}

/* one call of a function */
typedef struct Invocation
{
	Invokable   *invokable;
	Datum		argument;
	const char *what;
	Jsonb	   *result;
} Invocation;

static void
InvocationDo(void *arg)
{
	Invocation *invocation = arg;

	invocation->result = FunctionCallConfined(invocation->invokable, invocation->argument);
	CheckJsonLimits(invocation->result, invocation->what);
}

/*
 * Call a function in a subtransaction. Returns its result; or NULL and its
 * fault, and then its writes are rolled back. A result that cannot be stored
 * is a fault too.
 */
Jsonb *
Invoke(Invokables *invokables, const char *signature, Datum argument, const char *what, ToolFault **fault)
{
	Invocation	invocation = {InvokableOf(invokables, signature), argument, what, NULL};

	if (!Attempt(InvocationDo, &invocation, fault))
	{
		invocation.invokable->known = 0;
		return NULL;
	}
	return invocation.result ? invocation.result : JsonNull();
}
