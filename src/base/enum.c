/*
 * enum.c
 *	  the words of the enum types, in their order
 */
#include "base/base.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "utils/inval.h"
#include "utils/syscache.h"

const char *const StepStatusName[STEP_STATUSES] = {
	"pending", "in_progress", "awaiting_input", "completed", "failed", "skipped"
};
const char *const PlanStatusName[PLAN_STATUSES] = {
	"planning", "executing", "awaiting_review", "stalled", "completed", "failed", "cancelled"
};
const char *const OutcomeName[OUTCOMES] = {"success", "failure", "n/a"};
const char *const OnFailureName[ON_FAILURES] = {"continue", "stop", "pause", "fail"};

/* the values that were last looked up, until an enum type changes */
static struct
{
	Oid			value;
	const char *const *names;
	int			index;
}			seen[64];

static void
SeenForget(Datum arg, int cache, uint32 hash)
{
	memset(seen, 0, sizeof(seen));
}

/* Register the invalidation callback. */
void
EnumInit(void)
{
	CacheRegisterSyscacheCallback(ENUMOID, SeenForget, (Datum) 0);
}

/* Look up the index of an enum value in a table of names. */
static int
EnumLookUp(Oid value, const char *const *names, int count)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, ObjectIdGetDatum(value));
	int			index;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for enum value %u", value);
	index = NameIndex(NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel), names, count);
	ReleaseSysCache(tuple);
	if (index < 0)
		elog(ERROR, "unknown enum value %u", value);
	return index;
}

/* Find the index of an enum value in a table of names. */
int
EnumIndex(Oid value, const char *const *names, int count)
{
	size_t		slot = value % lengthof(seen);
	int			index;

	if (seen[slot].value == value && seen[slot].names == names)
		return seen[slot].index;
	index = EnumLookUp(value, names, count);
	seen[slot].value = value;
	seen[slot].names = names;
	seen[slot].index = index;
	return index;
}
