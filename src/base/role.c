/*
 * role.c
 *	  the owner of the extension, the rights of roles, and their names
 */
#include "base/base.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "utils/acl.h"
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
 * A limit to what anybody may call, for a connection that only reads. Who asks
 * for rights then gets the answer that a role with only the rest would get.
 */
bool		(*FunctionIsOffered) (const char *function) = NULL;

/* Check whether a role may call one of our functions. The owner may call all. */
bool
RoleMayExecute(Oid role, const char *function)
{
	Oid			oid = FunctionOid(function);

	if (FunctionIsOffered != NULL && !FunctionIsOffered(function))
		return false;
	return OidIsValid(oid) && (RoleIsOwner(role) || FunctionAclCheck(oid, role, ACL_EXECUTE) == ACLCHECK_OK);
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
