/*
 * member.c
 *	  the current tenant, the members of tenants, and grants to roles
 *
 * A member is a role that may work in a tenant. Only the owner of the
 * extension changes members and grants.
 */
#include "api/api.h"

#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/inval.h"

/* ---------- the current tenant ---------- */

/* Show the tenant of the caller. */
PG_FUNCTION_INFO_V1(stepwise_current_tenant);
Datum
stepwise_current_tenant(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(TenantOfCaller()));
}

/* Enter a tenant. */
PG_FUNCTION_INFO_V1(stepwise_enter_tenant);
Datum
stepwise_enter_tenant(PG_FUNCTION_ARGS)
{
	TenantEnter(ArgumentText(fcinfo, 0));
	PG_RETURN_VOID();
}

/* ---------- members ---------- */

static void
CheckMember(FunctionCallInfo fcinfo)
{
	char	   *tenant = ArgumentText(fcinfo, 1);

	if (PG_ARGISNULL(0) || tenant == NULL || *tenant == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("role and tenant must be given"),
				 errhint("Call it as stepwise.add_member('agent_role', 'tenant_name').")));
	/* every index key begins with the tenant, which must leave room for the rest */
	if (strlen(tenant) > TENANT_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_VALUE_TOO_LARGE),
				 errmsg("the name of a tenant may have %d bytes at most", TENANT_MAX),
				 errhint("Use a short name, such as 'acme'.")));
}

/* Run a query over (tenant, role), and answer whether it changed anything. */
static Datum
MemberChange(FunctionCallInfo fcinfo, KeptQuery *query, const char *key)
{
	Call		call;
	Params		params = {0};
	JsonBuilder b = {0};
	Rows		rows;

	CheckOwner("change the members of tenants");
	CheckMember(fcinfo);
	CallBeginIn(&call, ArgumentText(fcinfo, 1));
	ParamTenant(&params, &call);
	ParamDatum(&params, PG_GETARG_DATUM(0));
	rows = QueryRun(query, &params);
	if (rows.count > 0)
		AuditAppendPlanless(&call, "plan_modified",
							JsonMerge(JsonTextOf("action", psprintf("member_%s", key)), JsonTextOf("role", RoleText(PG_GETARG_OID(0)))));
	JsonObjectStart(&b, NULL);
	/* a dropped role has no name, but may still have a membership */
	JsonPutText(&b, "role", GetUserNameFromId(PG_GETARG_OID(0), true));
	JsonPutText(&b, "tenant", call.tenant);
	JsonPutBool(&b, key, rows.count > 0);
	JsonObjectEnd(&b);
	return CallEnd(&call, JsonFinish(&b));
}

/* Make a role a member of a tenant. */
PG_FUNCTION_INFO_V1(stepwise_add_member);
Datum
stepwise_add_member(PG_FUNCTION_ARGS)
{
	static KeptQuery add = {
		"INSERT INTO stepwise.member (tenant, role) VALUES ($1, $2::pg_catalog.regrole) ON CONFLICT DO NOTHING",
		2, {TEXTOID, OIDOID}
	};

	if (!PG_ARGISNULL(0) && GetUserNameFromId(PG_GETARG_OID(0), true) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("role with OID %u does not exist", PG_GETARG_OID(0)),
				 errhint("Create the role first: CREATE ROLE agent_role.")));
	return MemberChange(fcinfo, &add, "added");
}

/* End the membership of a role in a tenant. */
PG_FUNCTION_INFO_V1(stepwise_remove_member);
Datum
stepwise_remove_member(PG_FUNCTION_ARGS)
{
	static KeptQuery remove = {
		"DELETE FROM stepwise.member WHERE tenant = $1 AND role = $2::pg_catalog.regrole",
		2, {TEXTOID, OIDOID}
	};

	return MemberChange(fcinfo, &remove, "removed");
}

/* Send an invalidation to every backend when rows have changed that backends remember: members, tools. */
PG_FUNCTION_INFO_V1(stepwise_remembered_changed);
Datum
stepwise_remembered_changed(PG_FUNCTION_ARGS)
{
	CacheInvalidateRelcache(TriggerOf(fcinfo)->tg_relation);
	return PointerGetDatum(NULL);
}

/* ---------- grants ---------- */

/*
 * Run the statements that the view stepwise.grants lists for a kind of role.
 * Each of its rows is a GRANT without its grantee. Returns how many there are.
 */
static uint64
RunGrants(const char *kind, const char *role, bool revoke)
{
	static KeptQuery list = {
		"SELECT g.statement FROM stepwise.grants AS g WHERE g.kind = $1 ORDER BY g.statement",
		1, {TEXTOID}
	};
	Params		params = {0};
	Rows		rows;

	ParamText(&params, kind);
	rows = QueryRun(&list, &params);
	for (uint64 i = 0; i < rows.count; i++)
	{
		const char *statement = RowText(&rows, i, 1);
		Params		none = {0};

		if (revoke)
			statement = psprintf("REVOKE %s FROM %s", statement + strlen("GRANT "), quote_identifier(role));
		else
			statement = psprintf("%s TO %s", statement, quote_identifier(role));
		QueryRunOnce(statement, NULL, &none);
	}
	return rows.count;
}

/* Find the name of the role that is to get grants. */
static const char *
GrantedRole(FunctionCallInfo fcinfo)
{
	const char *role;

	CheckOwner("grant the use of pg_stepwise");
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("role must be given"),
				 errhint("Give the name of a role, such as 'agent_role'.")));
	role = GetUserNameFromId(PG_GETARG_OID(0), true);
	if (role == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("role with OID %u does not exist", PG_GETARG_OID(0)),
				 errhint("Create the role first: CREATE ROLE agent_role.")));
	return role;
}

/* Grant a role what an agent needs. Without decide, the right to decide is taken away. */
PG_FUNCTION_INFO_V1(stepwise_grant_agent);
Datum
stepwise_grant_agent(PG_FUNCTION_ARGS)
{
	const char *role = GrantedRole(fcinfo);
	bool		decide;
	uint64		count;
	Call		call;
	JsonBuilder b = {0};

	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("decide must not be null"),
				 errhint("Say true or false: whether the role may decide for a person.")));
	decide = PG_GETARG_BOOL(1);
	CallBeginIn(&call, DEFAULT_TENANT);
	count = RunGrants("agent", role, false);
	if (decide)
		count += RunGrants("decide", role, false);
	else
		RunGrants("decide", role, true);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "role", role);
	JsonPutText(&b, "granted", "agent");
	JsonPutBool(&b, "decide", decide);
	JsonPutInt(&b, "objects", count);
	JsonObjectEnd(&b);
	return CallEnd(&call, JsonFinish(&b));
}

/* Grant a role what a reader needs. */
PG_FUNCTION_INFO_V1(stepwise_grant_reader);
Datum
stepwise_grant_reader(PG_FUNCTION_ARGS)
{
	const char *role = GrantedRole(fcinfo);
	Call		call;
	JsonBuilder b = {0};

	CallBeginIn(&call, DEFAULT_TENANT);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "role", role);
	JsonPutText(&b, "granted", "reader");
	JsonPutInt(&b, "objects", RunGrants("reader", role, false));
	JsonObjectEnd(&b);
	return CallEnd(&call, JsonFinish(&b));
}
