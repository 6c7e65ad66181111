/*
 * tenant.c
 *	  who may work in which tenant
 *
 * A setting is no boundary, because users can set it. What a transaction has
 * entered is kept here: a stack of (tenant, role, subtransaction), cut back
 * by transaction callbacks. An entry counts only for the role that made it,
 * and only while that role is a member.
 *
 * Memberships are cached whole; a trigger on the table sends an invalidation,
 * and the callback only marks the cache.
 */
#include "api/api.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define DEFAULT_TENANT	"default"
#define TENANT_MAX		200

typedef struct Entered
{
	char	   *tenant;
	Oid			role;
	SubTransactionId subtransaction;
	struct Entered *below;
} Entered;

typedef struct Membership
{
	Oid			role;
	char	   *tenant;
} Membership;

/* columns of stepwise.member */
enum
{
	MEMBER_TENANT = 1,
	MEMBER_ROLE
};

static Entered *entered = NULL; /* in TopTransactionContext */

static Oid	memberships_of = InvalidOid;	/* the table that was read; invalid: read again */
static bool memberships_changed;	/* an invalidation came, perhaps while they were read */
static MemoryContext memberships_context = NULL;
static Membership *memberships;
static int	membership_count;

PG_FUNCTION_INFO_V1(stepwise_enter_tenant);
PG_FUNCTION_INFO_V1(stepwise_current_tenant);
PG_FUNCTION_INFO_V1(stepwise_add_member);
PG_FUNCTION_INFO_V1(stepwise_remove_member);
PG_FUNCTION_INFO_V1(stepwise_members_changed);
PG_FUNCTION_INFO_V1(stepwise_grant_agent);
PG_FUNCTION_INFO_V1(stepwise_grant_reader);

/* ---------- callbacks ---------- */

static void
TenantAtTransactionEnd(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE ||
		event == XACT_EVENT_PARALLEL_COMMIT || event == XACT_EVENT_PARALLEL_ABORT)
		entered = NULL;
}

static void
TenantAtSubtransactionEnd(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		while (entered != NULL && entered->subtransaction == mine)
			entered = entered->below;
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
		for (Entered *e = entered; e != NULL && e->subtransaction == mine; e = e->below)
			e->subtransaction = parent;
}

static void
MembershipsInvalidate(Datum arg, Oid relid)
{
	memberships_changed = true;
	if (relid == InvalidOid || relid == memberships_of)
		memberships_of = InvalidOid;
}

void
TenantInit(void)
{
	RegisterXactCallback(TenantAtTransactionEnd, NULL);
	RegisterSubXactCallback(TenantAtSubtransactionEnd, NULL);
	CacheRegisterRelcacheCallback(MembershipsInvalidate, (Datum) 0);
}

/* ---------- memberships ---------- */

static void
MembershipsRead(Oid relid)
{
	Relation	relation = table_open(relid, AccessShareLock);
	SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, NULL, 0, NULL);
	HeapTuple	tuple;
	MemoryContext outer;
	int			room = 8;

	if (memberships_context == NULL)
		memberships_context = AllocSetContextCreate(TopMemoryContext, "stepwise memberships", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(memberships_context);
	outer = MemoryContextSwitchTo(memberships_context);
	memberships_changed = false;
	memberships = palloc(sizeof(Membership) * room);
	membership_count = 0;
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Membership *m;
		bool		isnull;

		if (membership_count == room)
			memberships = repalloc(memberships, sizeof(Membership) * (room *= 2));
		m = &memberships[membership_count++];
		m->role = DatumGetObjectId(heap_getattr(tuple, MEMBER_ROLE, RelationGetDescr(relation), &isnull));
		m->tenant = TextDatumGetCString(heap_getattr(tuple, MEMBER_TENANT, RelationGetDescr(relation), &isnull));
	}
	MemoryContextSwitchTo(outer);
	systable_endscan(scan);
	/* what was read is older than an invalidation that came meanwhile: use it now, and read again next time */
	if (!memberships_changed)
		memberships_of = relid;
	table_close(relation, AccessShareLock);
}

static void
MembershipsUpToDate(void)
{
	Oid			relid = TableOid("member");

	AcceptInvalidationMessages();
	if (memberships_of != relid)
		MembershipsRead(relid);
}

static bool
RoleIsMember(Oid role, const char *tenant)
{
	MembershipsUpToDate();
	for (int i = 0; i < membership_count; i++)
		if (memberships[i].role == role && strcmp(memberships[i].tenant, tenant) == 0)
			return true;
	return false;
}

/* Count the tenants of a role; *only is the last one seen. */
static int
TenantsOfRole(Oid role, const char **only)
{
	int			count = 0;

	MembershipsUpToDate();
	for (int i = 0; i < membership_count; i++)
		if (memberships[i].role == role)
		{
			*only = memberships[i].tenant;
			count++;
		}
	return count;
}

static bool
RoleMayEnter(Oid role, const char *tenant)
{
	return RoleIsMember(role, tenant) || RoleIsOwner(role);
}

/* ---------- the current tenant ---------- */

/* Refuse a tenant in which the role is no member; also one that it has entered and is no member of any more. */
static void
CheckMayEnter(Oid role, const char *tenant)
{
	if (tenant == NULL || *tenant == '\0' || strlen(tenant) > TENANT_MAX || !RoleMayEnter(role, tenant))
		ereport(ERROR,
				(errcode(ERRCODE_TENANT_REFUSED),
				 errmsg("role \"%s\" may not enter tenant \"%s\"", GetUserNameFromId(role, false), ShortText(tenant)),
				 errhint("Ask the owner of pg_stepwise for stepwise.add_member(role, tenant).")));
}

static const char *
TenantEntered(Oid role)
{
	for (Entered *e = entered; e != NULL; e = e->below)
		if (e->role == role)
			return e->tenant;
	return NULL;
}

/* Find the tenant in which the current role works now; copied. */
char *
TenantOfCaller(void)
{
	Oid			role = GetUserId();
	const char *tenant = TenantEntered(role);
	int			count;

	if (tenant != NULL)
	{
		CheckMayEnter(role, tenant);
		return pstrdup(tenant);
	}
	count = TenantsOfRole(role, &tenant);
	if (count == 1)
		return pstrdup(tenant);
	if (count == 0 && RoleIsOwner(role))
		return pstrdup(DEFAULT_TENANT);
	ereport(ERROR,
			(errcode(ERRCODE_TENANT_REQUIRED),
			 errmsg("no tenant for role \"%s\"", GetUserNameFromId(role, false)),
			 count == 0
			 ? errdetail("The role is a member of no tenant.")
			 : errdetail("The role is a member of %d tenants and has entered none of them.", count),
			 count == 0
			 ? errhint("Ask the owner of pg_stepwise for stepwise.add_member(role, tenant).")
			 : errhint("Begin the transaction with SELECT stepwise.enter_tenant(name).")));
	return NULL;
}

Datum
stepwise_current_tenant(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(TenantOfCaller()));
}

/* Enter a tenant until the end of the (sub)transaction. */
void
TenantEnter(const char *tenant)
{
	Entered    *e = entered;

	CheckMayEnter(GetUserId(), tenant);
	/* so that a loop that enters before each call needs no more memory than one entry */
	if (e != NULL && e->role == GetUserId() && e->subtransaction == GetCurrentSubTransactionId() && strcmp(e->tenant, tenant) == 0)
		return;
	e = MemoryContextAlloc(TopTransactionContext, sizeof(Entered));
	e->tenant = MemoryContextStrdup(TopTransactionContext, tenant);
	e->role = GetUserId();
	e->subtransaction = GetCurrentSubTransactionId();
	e->below = entered;
	entered = e;
}

/* Remember what is entered, to go back to it. Both in one transaction. */
void *
TenantMark(void)
{
	return entered;
}

void
TenantRestore(void *mark)
{
	entered = mark;
}

Datum
stepwise_enter_tenant(PG_FUNCTION_ARGS)
{
	TenantEnter(ArgumentText(fcinfo, 0));
	PG_RETURN_VOID();
}

/* ---------- members and grants: for the owner alone ---------- */

static void
CheckMember(FunctionCallInfo fcinfo)
{
	char	   *tenant = ArgumentText(fcinfo, 1);

	if (PG_ARGISNULL(0) || tenant == NULL || *tenant == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("role and tenant must be given"),
				 errhint("Call it as stepwise.add_member('agent_role', 'tenant_name').")));
	/* it leads every key, and must leave room there */
	if (strlen(tenant) > TENANT_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_VALUE_TOO_LARGE),
				 errmsg("the name of a tenant may have %d bytes at most", TENANT_MAX)));
}

/* Run a query over (role, tenant) and answer whether it changed something. */
static Datum
MemberChange(FunctionCallInfo fcinfo, KeptQuery *query, const char *key)
{
	Call		call;
	Args		args = {0};
	JsonBuilder b = {0};
	Rows		rows;

	CheckOwner("change the members of tenants");
	CheckMember(fcinfo);
	CallBeginIn(&call, ArgumentText(fcinfo, 1));
	ArgTenant(&args, &call);
	ArgDatum(&args, PG_GETARG_DATUM(0));
	rows = QueryRun(query, &args);
	if (rows.count > 0)
		AuditAppendPlanless(&call, "plan_modified",
							JsonMerge(JsonTextOf("action", psprintf("member_%s", key)), JsonTextOf("role", RoleText(PG_GETARG_OID(0)))));
	JsonObjectStart(&b, NULL);
	/* a role that was dropped has no name any more, but may have a membership */
	JsonPutText(&b, "role", GetUserNameFromId(PG_GETARG_OID(0), true));
	JsonPutText(&b, "tenant", call.tenant);
	JsonPutBool(&b, key, rows.count > 0);
	JsonObjectEnd(&b);
	return CallEnd(&call, JsonFinish(&b));
}

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
				 errmsg("role with OID %u does not exist", PG_GETARG_OID(0))));
	return MemberChange(fcinfo, &add, "added");
}

Datum
stepwise_remove_member(PG_FUNCTION_ARGS)
{
	static KeptQuery remove = {
		"DELETE FROM stepwise.member WHERE tenant = $1 AND role = $2::pg_catalog.regrole",
		2, {TEXTOID, OIDOID}
	};

	return MemberChange(fcinfo, &remove, "removed");
}

/* Tell every backend that memberships have changed. */
Datum
stepwise_members_changed(PG_FUNCTION_ARGS)
{
	CacheInvalidateRelcache(TriggerOf(fcinfo)->tg_relation);
	return PointerGetDatum(NULL);
}

/*
 * Grant by the list that the view stepwise.grants keeps: each row is one GRANT
 * statement without its grantee.
 */
static Datum
GrantRole(FunctionCallInfo fcinfo, const char *kind)
{
	static KeptQuery list = {
		"SELECT g.statement FROM stepwise.grants AS g WHERE g.kind = $1 ORDER BY g.statement",
		1, {TEXTOID}
	};
	Call		call;
	Args		args = {0};
	JsonBuilder b = {0};
	Rows		rows;
	const char *role;

	CheckOwner("grant the use of pg_stepwise");
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("role must be given")));
	role = GetUserNameFromId(PG_GETARG_OID(0), false);
	CallBeginIn(&call, DEFAULT_TENANT);
	ArgText(&args, kind);
	rows = QueryRun(&list, &args);
	for (uint64 i = 0; i < rows.count; i++)
	{
		Args		none = {0};

		QueryRunOnce(psprintf("%s TO %s", RowText(&rows, i, 1), quote_identifier(role)), NULL, &none);
	}
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "role", role);
	JsonPutText(&b, "granted", kind);
	JsonPutInt(&b, "objects", rows.count);
	JsonObjectEnd(&b);
	return CallEnd(&call, JsonFinish(&b));
}

Datum
stepwise_grant_agent(PG_FUNCTION_ARGS)
{
	return GrantRole(fcinfo, "agent");
}

Datum
stepwise_grant_reader(PG_FUNCTION_ARGS)
{
	return GrantRole(fcinfo, "reader");
}
