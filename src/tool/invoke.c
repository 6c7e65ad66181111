/*
 * invoke.c
 *	  call a registered SQL function as the caller, in a subtransaction
 *
 * Functions are registered by their Oid and stored as a signature, such as
 * "public.deploy(jsonb)": an Oid would not survive a dump. The name is
 * qualified and the type of the argument is looked up by its Oid, so nobody's
 * search path decides which function that is.
 *
 * A function runs with the rights of the caller, never with the owner's; what
 * it sets (SET, SET ROLE, enter_tenant) ends with it. Its error rolls back its
 * own writes, and is returned. Some errors are not the function's but the
 * transaction's or the server's: those are thrown on.
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
#include "utils/lsyscache.h"
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

/* What makes a function unfit to be called with one value for one value; NULL: nothing. */
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

/* Check a function that is to be registered, as the caller; its signature. */
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

/* Is it a function of one text? */
bool
FunctionTakesText(Oid function)
{
	return SearchSysCacheExists1(PROCOID, ObjectIdGetDatum(function)) &&
		FunctionFault(function, TEXTOID) == NULL;
}

/* Does the function take a text? Otherwise it takes a jsonb. */
bool
SignatureTakesText(const char *signature)
{
	return strcmp(strrchr(signature, '('), "(text)") == 0;
}

/* Find the function of a signature again; as the caller, who must see its schema. */
static Oid
FunctionResolve(const char *signature)
{
	Oid			argument = SignatureTakesText(signature) ? TEXTOID : JSONBOID;
	int			length = strrchr(signature, '(') - signature;
	List	   *name = textToQualifiedNameList(cstring_to_text_with_len(signature, length));
	Oid			function = LookupFuncName(name, 1, &argument, false);
	const char *fault = FunctionFault(function, argument);

	/* it may have been replaced since it was registered */
	if (fault != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("function %s %s", signature, fault)));
	CheckFunctionExecutable(function);
	return function;
}

/* ---------- calling it ---------- */

/*
 * Call a function with a snapshot of its own, so that it sees what the engine
 * and the functions before it have written. NULL for NULL.
 */
static Jsonb *
FunctionCall(Oid function, Datum argument)
{
	LOCAL_FCINFO(fcinfo, 1);
	FmgrInfo	info;
	PgStat_FunctionCallUsage usage;
	Jsonb	   *result;
	Datum		value;

	InvokeFunctionExecuteHook(function);
	fmgr_info(function, &info);
	InitFunctionCallInfoData(*fcinfo, &info, 1, InvalidOid, NULL, NULL);
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

/* Call a function so that nothing it sets outlives it. */
static Jsonb *
FunctionCallConfined(const char *signature, Datum argument)
{
	void	   *tenant = TenantMark();
	Oid			user;
	int			security;
	int			level;
	Jsonb	   *result;

	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(user, security | SECURITY_LOCAL_USERID_CHANGE);
	level = NewGUCNestLevel();
	result = FunctionCall(FunctionResolve(signature), argument);
	/* as if rolled back: a plain SET would otherwise stay */
	AtEOXact_GUC(false, level);
	SetUserIdAndSecContext(user, security);
	TenantRestore(tenant);
	return result;
}

/* ---------- whose error it is ---------- */

/* classes of errors that are never a function's own: the transaction or the server is in trouble */
static const int ForeignClasses[] = {
	ERRCODE_TRANSACTION_ROLLBACK,
	ERRCODE_INSUFFICIENT_RESOURCES,
	ERRCODE_OPERATOR_INTERVENTION,
	ERRCODE_SYSTEM_ERROR,
	ERRCODE_INTERNAL_ERROR
};

static bool
IsForeignError(int sqlstate)
{
	for (size_t i = 0; i < lengthof(ForeignClasses); i++)
		if (ERRCODE_TO_CATEGORY(sqlstate) == ERRCODE_TO_CATEGORY(ForeignClasses[i]))
			return true;
	return false;
}

/* Cut a text of an error to what may be stored, and leave out what could not be; NULL stays NULL. */
static char *
ErrorText(const char *text)
{
	return text ? Utf8Clean(pnstrdup(text, pg_mbcliplen(text, strlen(text), MaxResultBytes))) : NULL;
}

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
 * Call a function in a subtransaction. Returns its result, or NULL and the
 * fault that is the function's own; then what it wrote is gone. A result that
 * could not be stored is a fault too.
 */
Jsonb *
Invoke(const char *signature, Datum argument, const char *what, ToolFault **fault)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	Jsonb	   *volatile result = NULL;
	ErrorData  *volatile error = NULL;

	check_stack_depth();
	*fault = NULL;
	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		result = FunctionCallConfined(signature, argument);
		CheckJsonLimits(result, what);
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
		return result ? result : JsonNull();
	/* only now: whoever catches it must find his own subtransaction on top */
	if (IsForeignError(error->sqlerrcode))
		ReThrowError(error);
	*fault = ToolFaultOf(error);
	return NULL;
}
