/*
 * role.c
 *	  the owner of the extension, the rights of roles, and their names
 */
#include "base/base.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/fmgrprotos.h"
#include "utils/syscache.h"

/* ---------- the owner ---------- */

/* Find the owner of the extension: the owner of its tables. */
Oid
OwnerRole(void)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(TableOid("plan")));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for table stepwise.plan");
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

/* Check whether a role has the rights of the owner. */
bool
RoleIsOwner(Oid role)
{
	return has_privs_of_role(role, OwnerRole());
}

/* Refuse a caller without the rights of the owner. */
void
CheckOwner(const char *what)
{
	if (!RoleIsOwner(GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to %s", what),
				 errhint("Only the owner of extension pg_stepwise may do this.")));
}

/* ---------- rights ---------- */

/*
 * Check whether a role has EXECUTE on one of our functions. The function is
 * found by its name alone, because none is overloaded.
 */
bool
RoleMayExecute(Oid role, const char *function)
{
	Oid			schema = get_namespace_oid("stepwise", false);
	CatCList   *list = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(function));
	bool		may = false;

	for (int i = 0; i < list->n_members && !may; i++)
	{
		Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(&list->members[i]->tuple);

		may = proc->pronamespace == schema &&
			DatumGetBool(DirectFunctionCall3(has_function_privilege_id_id, ObjectIdGetDatum(role), ObjectIdGetDatum(proc->oid),
											 CStringGetTextDatum("EXECUTE")));
	}
	ReleaseSysCacheList(list);
	return may;
}

/* ---------- names ---------- */

/*
 * Name a role. A role that was dropped has only its number. Roles are shared
 * by databases of all encodings, so the name is cleaned.
 */
char *
RoleText(Oid role)
{
	char	   *name = GetUserNameFromId(role, true);

	return name ? Utf8Clean(name) : psprintf("%u", role);
}

/*
 * Name the role of the caller and, after a slash, the name given with the
 * call.
 *
 * A role whose own name has a slash or a double quote is quoted as in SQL, so
 * the first slash outside of quotes ends the role.
 */
char *
ActorText(const Call *call)
{
	char	   *role = RoleText(call->caller);
	const char *shown = strpbrk(role, "/\"") ? quote_identifier(role) : role;

	return call->actor ? psprintf("%s/%s", shown, call->actor) : pstrdup(shown);
}
