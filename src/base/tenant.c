/*
 * tenant.c
 *	  who may work in which tenant
 *
 * A setting would be no boundary, because users can set it. The tenants that a
 * transaction has entered are kept here, as a stack of (tenant, role,
 * subtransaction), which transaction callbacks cut back. An entry counts only
 * for the role that made it, and only while that role is a member.
 *
 * What was asked about memberships is cached. A role may have many tenants and
 * a tenant many roles, so no more is read than the question needs. A trigger on
 * the table sends an invalidation, and the callback only marks the cache as
 * stale.
 */
#include "base/base.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "catalog/pg_collation_d.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"

typedef struct Entered
{
	char	   *tenant;
	Oid			role;
	SubTransactionId subtransaction;
	struct Entered *below;
} Entered;

/* the answer to a question about memberships */
typedef struct Membership
{
	Oid			role;
	char	   *tenant;			/* that was asked about; NULL: any tenant */
	int			count;			/* of the memberships found; more than one counts as two */
	char	   *found;			/* the tenant of the last one */
} Membership;

#define MEMBERSHIPS_KEPT	64
#define PAGES_FEW			4	/* of a table that is read faster than its index is opened */

/* columns of stepwise.member */
enum
{
	MEMBER_TENANT = 1,
	MEMBER_ROLE
};

static Entered *entered = NULL; /* in TopTransactionContext */

static Oid	memberships_of = InvalidOid;	/* the table that was read; InvalidOid: what is kept is stale */
static MemoryContext memberships_context = NULL;
static Membership memberships[MEMBERSHIPS_KEPT];
static int	membership_count = 0;

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
	if (relid == InvalidOid || relid == memberships_of)
		memberships_of = InvalidOid;
}

/* Register the callbacks. */
void
TenantInit(void)
{
	RegisterXactCallback(TenantAtTransactionEnd, NULL);
	RegisterSubXactCallback(TenantAtSubtransactionEnd, NULL);
	CacheRegisterRelcacheCallback(MembershipsInvalidate, (Datum) 0);
}

/* ---------- memberships ---------- */

static void
MemberKey(ScanKey key, AttrNumber column, Oid collation, RegProcedure equal, Datum value)
{
	ScanKeyEntryInitialize(key, 0, column, BTEqualStrategyNumber, InvalidOid, collation, equal, value);
}

/*
 * Count the memberships of a role in a tenant, or in any tenant if it is NULL;
 * at most max. *found is the tenant of the last one, copied. All of them, with
 * INT_MAX, come in the order of the tenants.
 */
static int
MembershipsCount(Oid role, const char *tenant, int max, char **found)
{
	Relation	relation = TableOpen("member", AccessShareLock);
	bool		by_index = max == INT_MAX || RelationGetNumberOfBlocks(relation) > PAGES_FEW;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;
	int			count = 0;

	MemberKey(&keys[0], MEMBER_ROLE, InvalidOid, F_OIDEQ, ObjectIdGetDatum(role));
	if (tenant != NULL)
		MemberKey(&keys[1], MEMBER_TENANT, C_COLLATION_OID, F_TEXTEQ, CStringGetTextDatum(tenant));
	scan = systable_beginscan(relation, by_index ? TableOid("member_role") : InvalidOid, by_index, NULL, tenant ? 2 : 1, keys);
	while (count < max && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		bool		isnull;

		count++;
		*found = TextDatumGetCString(heap_getattr(tuple, MEMBER_TENANT, RelationGetDescr(relation), &isnull));
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return count;
}

/* Forget what is kept if it is stale, or if there is no room for more. */
static void
MembershipsUpToDate(Oid relid)
{
	if (memberships_of == relid && membership_count < MEMBERSHIPS_KEPT)
		return;
	if (memberships_context == NULL)
		memberships_context = AllocSetContextCreate(TopMemoryContext, "stepwise memberships", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(memberships_context);
	membership_count = 0;
	/* if an invalidation comes while an answer is read, the answer is used now, and read again next time */
	memberships_of = relid;
}

/* Find the answer to a question that is kept; NULL: it is not. */
static Membership *
MembershipKept(Oid role, const char *tenant)
{
	for (int i = 0; i < membership_count; i++)
	{
		Membership *m = &memberships[i];

		if (m->role == role && (tenant == NULL) == (m->tenant == NULL) && (tenant == NULL || strcmp(m->tenant, tenant) == 0))
			return m;
	}
	return NULL;
}

/* Find out about the membership of a role in a tenant, or in any tenant if it is NULL. */
static const Membership *
MembershipOf(Oid role, const char *tenant)
{
	Oid			relid = TableOid("member");
	Membership	m = {.role = role};
	Membership *kept;
	MemoryContext outer;

	AcceptInvalidationMessages();
	MembershipsUpToDate(relid);
	kept = MembershipKept(role, tenant);
	if (kept != NULL)
		return kept;
	outer = MemoryContextSwitchTo(memberships_context);
	m.tenant = tenant ? pstrdup(tenant) : NULL;
	m.count = MembershipsCount(role, tenant, 2, &m.found);
	MemoryContextSwitchTo(outer);
	memberships[membership_count] = m;
	return &memberships[membership_count++];
}

static bool
RoleIsMember(Oid role, const char *tenant)
{
	return MembershipOf(role, tenant)->count > 0;
}

static bool
RoleMayEnter(Oid role, const char *tenant)
{
	return RoleIsMember(role, tenant) || RoleIsOwner(role);
}

/* ---------- the current tenant ---------- */

/* Name the call that makes a role a member of a tenant. */
static char *
MemberHint(Oid role, const char *tenant)
{
	return psprintf("Ask the owner of pg_stepwise for stepwise.add_member(%s, %s).",
					quote_literal_cstr(quote_identifier(GetUserNameFromId(role, false))), quote_literal_cstr(tenant));
}

/* Say what to do about a tenant that is refused. */
static char *
RefusedHint(Oid role, const char *tenant)
{
	if (tenant == NULL || *tenant == '\0' || strlen(tenant) > TENANT_MAX)
		return psprintf("Give the name of a tenant, of 1 to %d bytes, such as '%s'.", TENANT_MAX, DEFAULT_TENANT);
	return MemberHint(role, tenant);
}

/*
 * Refuse a tenant of which the role is not a member. The role may have entered
 * it and lost its membership since.
 */
static void
CheckMayEnter(Oid role, const char *tenant)
{
	if (tenant == NULL || *tenant == '\0' || strlen(tenant) > TENANT_MAX || !RoleMayEnter(role, tenant))
		ereport(ERROR,
				(errcode(ERRCODE_TENANT_REFUSED),
				 errmsg("role \"%s\" may not enter tenant \"%s\"", GetUserNameFromId(role, false), ShortText(tenant)),
				 errhint("%s", RefusedHint(role, tenant))));
}

static const char *
TenantEntered(Oid role)
{
	for (Entered *e = entered; e != NULL; e = e->below)
		if (e->role == role)
			return e->tenant;
	return NULL;
}

/*
 * Find the tenant in which the current role works; copied. NULL if there is
 * none, or more than one, or if the role has lost its membership.
 */
char *
TenantTry(void)
{
	Oid			role = GetUserId();
	const char *tenant = TenantEntered(role);
	const Membership *m;

	if (tenant != NULL)
		return RoleMayEnter(role, tenant) ? pstrdup(tenant) : NULL;
	m = MembershipOf(role, NULL);
	if (m->count == 0 && RoleIsOwner(role))
		return pstrdup(DEFAULT_TENANT);
	return m->count == 1 ? pstrdup(m->found) : NULL;
}

pg_noreturn static void
NoTenantRefuse(Oid role)
{
	char	   *tenant = NULL;
	int			count = MembershipsCount(role, NULL, INT_MAX, &tenant);

	ereport(ERROR,
			(errcode(ERRCODE_TENANT_REQUIRED),
			 errmsg("no tenant for role \"%s\"", GetUserNameFromId(role, false)),
			 count == 0
			 ? errdetail("The role is a member of no tenant.")
			 : errdetail("The role is a member of %d tenants and has entered none of them.", count),
			 count == 0
			 ? errhint("%s", MemberHint(role, DEFAULT_TENANT))
			 : errhint("Begin the transaction with SELECT stepwise.enter_tenant(%s), or with another of them.", quote_literal_cstr(tenant))));
}

/* Find the tenant in which the current role works; copied. */
char *
TenantOfCaller(void)
{
	Oid			role = GetUserId();
	char	   *tenant = TenantTry();

	if (tenant == NULL && TenantEntered(role) != NULL)
		CheckMayEnter(role, TenantEntered(role));
	if (tenant == NULL)
		NoTenantRefuse(role);
	return tenant;
}

/* Enter a tenant until the end of the (sub)transaction. */
void
TenantEnter(const char *tenant)
{
	Entered    *e = entered;

	CheckMayEnter(GetUserId(), tenant);
	/* a loop that enters the same tenant before each call needs one entry only */
	if (e != NULL && e->role == GetUserId() && e->subtransaction == GetCurrentSubTransactionId() && strcmp(e->tenant, tenant) == 0)
		return;
	e = MemoryContextAlloc(TopTransactionContext, sizeof(Entered));
	e->tenant = MemoryContextStrdup(TopTransactionContext, tenant);
	e->role = GetUserId();
	e->subtransaction = GetCurrentSubTransactionId();
	e->below = entered;
	entered = e;
}

/* Remember what is entered, for TenantRestore in the same transaction. */
void *
TenantMark(void)
{
	return entered;
}

/*
 * Go back to what TenantMark remembered. The entries above it are freed, so
 * that a transaction of many calls that each enter a tenant does not grow.
 */
void
TenantRestore(void *mark)
{
	while (entered != mark && entered != NULL)
	{
		Entered    *top = entered;

		entered = top->below;
		pfree(top->tenant);
		pfree(top);
	}
}
