/*
 * tenant.c
 *	  who may work in which tenant
 *
 * A setting would be no boundary, because users can set it. The tenants that a
 * transaction has entered are kept here, as a stack of (tenant, role,
 * subtransaction), which transaction callbacks cut back. An entry counts only
 * for the role that made it, and only while that role is a member.
 *
 * All memberships are cached, in the order of roles. A trigger on the table
 * sends an invalidation, and the callback only marks the cache as stale.
 */
#include "base/base.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "miscadmin.h"
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

static Oid	memberships_of = InvalidOid;	/* the table that was read; InvalidOid: read again */
static bool memberships_changed;	/* an invalidation came, perhaps while they were read */
static MemoryContext memberships_context = NULL;
static Membership *memberships; /* ordered by role and tenant */
static int	membership_count;

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

/* Register the callbacks. */
void
TenantInit(void)
{
	RegisterXactCallback(TenantAtTransactionEnd, NULL);
	RegisterSubXactCallback(TenantAtSubtransactionEnd, NULL);
	CacheRegisterRelcacheCallback(MembershipsInvalidate, (Datum) 0);
}

/* ---------- memberships ---------- */

/* Order memberships by role, then by tenant; for qsort and bsearch. */
static int
MembershipCompare(const void *a, const void *b)
{
	const Membership *x = a;
	const Membership *y = b;

	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	return strcmp(x->tenant, y->tenant);
}

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
	qsort(memberships, membership_count, sizeof(Membership), MembershipCompare);
	/* if an invalidation came while we were reading, use the result now, and read again next time */
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
	Membership	wanted = {role, unconstify(char *, tenant)};

	MembershipsUpToDate();
	return bsearch(&wanted, memberships, membership_count, sizeof(Membership), MembershipCompare) != NULL;
}

/* Find the first membership of a role, or where it would be. */
static int
FirstOfRole(Oid role)
{
	int			low = 0;
	int			high = membership_count;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (memberships[middle].role < role)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Count the tenants of a role; *only is the last one seen. */
static int
TenantsOfRole(Oid role, const char **only)
{
	int			count = 0;

	MembershipsUpToDate();
	for (int i = FirstOfRole(role); i < membership_count && memberships[i].role == role; i++)
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
	int			count;

	if (tenant != NULL)
		return RoleMayEnter(role, tenant) ? pstrdup(tenant) : NULL;
	count = TenantsOfRole(role, &tenant);
	if (count == 0 && RoleIsOwner(role))
		return pstrdup(DEFAULT_TENANT);
	return count == 1 ? pstrdup(tenant) : NULL;
}

pg_noreturn static void
NoTenantRefuse(Oid role)
{
	const char *tenant;
	int			count = TenantsOfRole(role, &tenant);

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
