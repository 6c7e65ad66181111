/*
 * enum.c
 *	  the words of the enum types, in their order
 */
#include "base/base.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "utils/syscache.h"

const char *const StepStatusName[STEP_STATUSES] = {
	"pending", "in_progress", "awaiting_input", "completed", "failed", "skipped"
};
const char *const PlanStatusName[PLAN_STATUSES] = {
	"planning", "executing", "awaiting_review", "stalled", "completed", "failed", "cancelled"
};
const char *const OutcomeName[OUTCOMES] = {"success", "failure", "n/a"};
const char *const OnFailureName[ON_FAILURES] = {"continue", "stop", "pause", "fail"};

/* Find the index of an enum value in a table of names. */
int
EnumIndex(Oid value, const char *const *names, int count)
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
