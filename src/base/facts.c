/*
 * facts.c
 *	  remember facts about our tables, until a table changes
 *
 * An invalidation makes a table's facts void. They are then found again at the
 * next use: where its column tenant is and how its columns are stored at once
 * (FactsOf), whether a user has altered it (altered.c) and how rows get into
 * its indexes (entries.c) when somebody asks.
 */
#include "base/base.h"

#include "utils/inval.h"
#include "utils/rel.h"

#define FACTS	16				/* more than the engine has tables that it reads here */

static Facts facts[FACTS];
static Oid	factual[FACTS];		/* their tables; apart from them, since this is searched often */

static void
FactsForget(Datum arg, Oid relid)
{
	for (int i = 0; i < FACTS; i++)
		if (relid == InvalidOid || factual[i] == relid)
			factual[i] = InvalidOid;
}

/* Register the invalidation callback. */
void
FactsInit(void)
{
	CacheRegisterRelcacheCallback(FactsForget, (Datum) 0);
}

/* Find the column tenant of a table. */
static AttrNumber
TenantColumn(Relation relation)
{
	TupleDesc	desc = RelationGetDescr(relation);

	for (int i = 0; i < desc->natts; i++)
		if (strcmp(NameStr(TupleDescAttr(desc, i)->attname), "tenant") == 0)
			return i + 1;
	elog(ERROR, "table %s has no column tenant", RelationGetRelationName(relation));
}

/* Find the number of the entry of a table, or else of a free one. */
static int
FactsEntry(Oid relid)
{
	int			unused = 0;

	for (int i = 0; i < FACTS; i++)
	{
		if (factual[i] == relid)
			return i;
		if (!OidIsValid(factual[i]))
			unused = i;
	}
	return unused;
}

/* Find what is known about a table. */
Facts *
FactsOf(Relation relation)
{
	int			i = FactsEntry(RelationGetRelid(relation));
	Facts	   *f = &facts[i];

	if (factual[i] == RelationGetRelid(relation))
		return f;
	factual[i] = InvalidOid;	/* until all is known */
	f->tenant = TenantColumn(relation);
	RowFormRead(&f->form, RelationGetDescr(relation));
	f->judged = false;
	f->indexed = false;
	factual[i] = RelationGetRelid(relation);
	return f;
}
