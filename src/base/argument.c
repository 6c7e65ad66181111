/*
 * argument.c
 *	  read the arguments of SQL-callable functions
 *
 * Text that has no UTF-8 form is refused here, by the name of its argument.
 */
#include "base/base.h"

#include "funcapi.h"
#include "utils/syscache.h"

/* Name an argument of the function that was called. */
static const char *
ArgumentName(FunctionCallInfo fcinfo, int n)
{
	HeapTuple	tuple = fcinfo->flinfo ? SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid)) : NULL;
	const char *name = NULL;
	Oid		   *types;
	char	  **names;
	char	   *modes;

	if (!HeapTupleIsValid(tuple))
		return "an argument";
	if (get_func_arg_info(tuple, &types, &names, &modes) > n && names != NULL && *names[n] != '\0')
		name = psprintf("argument \"%s\"", names[n]);
	ReleaseSysCache(tuple);
	return name ? name : "an argument";
}

/* Read a text argument; refuse one that has no UTF-8 form. */
char *
ArgumentText(FunctionCallInfo fcinfo, int n)
{
	char	   *value;

	if (PG_ARGISNULL(n))
		return NULL;
	value = text_to_cstring(PG_GETARG_TEXT_PP(n));
	if (!TextIsUtf8(value))
		CheckUtf8(value, ArgumentName(fcinfo, n));
	return value;
}

/* Read a jsonb argument; refuse one with a string that has no UTF-8 form. */
Jsonb *
ArgumentJson(FunctionCallInfo fcinfo, int n)
{
	Jsonb	   *value;

	if (PG_ARGISNULL(n))
		return NULL;
	value = PG_GETARG_JSONB_P(n);
	if (!JsonIsUtf8(value))
		CheckJsonUtf8(value, ArgumentName(fcinfo, n));
	return value;
}

/* Read a flag; NULL means false. */
bool
ArgumentFlag(FunctionCallInfo fcinfo, int n)
{
	return !PG_ARGISNULL(n) && PG_GETARG_BOOL(n);
}

/* Read a UUID argument. */
pg_uuid_t *
ArgumentUuid(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : PG_GETARG_UUID_P(n);
}
