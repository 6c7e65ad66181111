/*
 * catalog.c
 *	  find our tables, indexes, enum values and functions by name
 *
 * Every call needs the same few tables, indexes and enum values. What was
 * found is cached until an invalidation says that it may have changed.
 */
#include "base/base.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_index.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "utils/catcache.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* Names are constants of ours, so they are the same if their addresses are. */
typedef struct Known
{
	Oid			oid;			/* InvalidOid: the entry is free */
	const char *type;			/* of an enum value; NULL: a table or an index */
	const char *name;
} Known;

#define KNOWN_TOGETHER	4		/* entries that a name may have */

static Known known[256];

static void
ForgetRelation(Datum arg, Oid relid)
{
	for (size_t i = 0; i < lengthof(known); i++)
		if (relid == InvalidOid || known[i].oid == relid)
			known[i].oid = InvalidOid;
}

static void
ForgetAll(Datum arg, int cache, uint32 hash)
{
	ForgetRelation(arg, InvalidOid);
}

/* Register the invalidation callbacks. */
void
CatalogInit(void)
{
	CacheRegisterRelcacheCallback(ForgetRelation, (Datum) 0);
	CacheRegisterSyscacheCallback(ENUMOID, ForgetAll, (Datum) 0);
}

static bool
IsKnown(const Known *k, const char *type, const char *name)
{
	return k->name == name && k->type == type && OidIsValid(k->oid);
}

/*
 * Find the cache entry of a name, or else one that may be used for it. Names with
 * the same hash stand side by side.
 */
static Known *
KnownOf(const char *type, const char *name)
{
	uintptr_t	hash = (uintptr_t) type * 31 + (uintptr_t) name;
	Known	   *first = &known[(hash ^ hash >> 7) % (lengthof(known) - KNOWN_TOGETHER)];
	Known	   *unused = first;

	for (int i = 0; i < KNOWN_TOGETHER; i++)
	{
		if (IsKnown(&first[i], type, name))
			return &first[i];
		if (!OidIsValid(first[i].oid))
			unused = &first[i];
	}
	return unused;
}

static Oid
Keep(const char *type, const char *name, Oid oid)
{
	Known	   *k = KnownOf(type, name);

	k->type = type;
	k->name = name;
	k->oid = oid;
	return oid;
}

/*
 * Lock the catalogs that describe tables and indexes, until the end of the
 * transaction, as every reader of them does for a moment.
 *
 * The first call of a connection opens thirty tables and indexes, and reads these
 * catalogs two hundred times. To lock and unlock them each time is a tenth of
 * what it does.
 */
static void
HoldCatalogs(void)
{
	static const Oid catalogs[] = {RelationRelationId, ClassOidIndexId, AttributeRelationId, AttributeRelidNumIndexId,
								   IndexRelationId, IndexRelidIndexId};

	for (size_t i = 0; i < lengthof(catalogs); i++)
		LockRelationOid(catalogs[i], AccessShareLock);
}

/*
 * Find one of our tables or indexes by its name, a constant; raise an error if
 * the extension is not installed.
 */
Oid
TableOid(const char *name)
{
	const Known *k = KnownOf(NULL, name);
	Oid			relid;

	if (IsKnown(k, NULL, name))
		return k->oid;
	HoldCatalogs();
	relid = get_relname_relid(name, get_namespace_oid("stepwise", false));
	if (!OidIsValid(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("stepwise.%s not found", name),
				 errhint("The engine finds its tables and indexes by name: was one of them renamed or dropped?")));
	return Keep(NULL, name, relid);
}

/*
 * Lock one of our tables or indexes, and open it. While we wait for the lock, the
 * extension may be dropped and created again; so look up the name again.
 */
Relation
TableOpen(const char *name, LOCKMODE lockmode)
{
	for (;;)
	{
		Oid			relid = TableOid(name);

		LockRelationOid(relid, lockmode);
		if (TableOid(name) == relid)
			return relation_open(relid, NoLock);
		UnlockRelationOid(relid, lockmode);
	}
}

/* Check whether one of our tables or indexes is there. */
bool
TableIsThere(const char *name)
{
	return OidIsValid(get_relname_relid(name, get_namespace_oid("stepwise", false)));
}

/* Find the enum value of type stepwise.<type> with this label; both are constants. */
Oid
EnumValue(const char *type, const char *label)
{
	const Known *k = KnownOf(type, label);
	Oid			typid;
	Oid			value;

	if (IsKnown(k, type, label))
		return k->oid;
	typid = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
							CStringGetDatum(type), ObjectIdGetDatum(get_namespace_oid("stepwise", false)));
	value = GetSysCacheOid2(ENUMTYPOIDNAME, Anum_pg_enum_oid, ObjectIdGetDatum(typid), CStringGetDatum(label));
	if (!OidIsValid(value))
		elog(ERROR, "enum value %s of type %s not found", label, type);
	return Keep(type, label, value);
}

/*
 * Find one of our functions by its name alone, because none is overloaded;
 * InvalidOid if there is none. This is not cached.
 */
Oid
FunctionOid(const char *name)
{
	Oid			schema = get_namespace_oid("stepwise", false);
	CatCList   *list = SearchSysCacheList1(PROCNAMEARGSNSP, CStringGetDatum(name));
	Oid			function = InvalidOid;

	for (int i = 0; i < list->n_members && !OidIsValid(function); i++)
	{
		Form_pg_proc proc = (Form_pg_proc) GETSTRUCT(&list->members[i]->tuple);

		if (proc->pronamespace == schema)
			function = proc->oid;
	}
	ReleaseSysCacheList(list);
	return function;
}
