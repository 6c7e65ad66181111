/*
 * altered.c
 *	  check whether a user has added something to a table
 *
 * This is a trigger, a foreign key, a rule, a CHECK, a generated column or an
 * index. The rows of such a table are written by statements, so that all of
 * these work.
 */
#include "base/base.h"

#include "commands/trigger.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* keys that foreign keys may refer to, or that are checked at the end of a statement; we never change their columns */
static const char *const FixedKeys[] = {"plan_pkey", "step_pkey", "step_order_unique"};

/*
 * Check whether a trigger can be left out: it is ours, or it is internal and
 * watches a key that we never change.
 */
static bool
TriggerIsHarmless(const Trigger *trigger, Relation relation)
{
	const char *key;

	if (!trigger->tgisinternal)
		return get_func_namespace(trigger->tgfoid) == RelationGetNamespace(relation);
	key = get_rel_name(trigger->tgconstrindid);
	return RI_FKey_trigger_type(trigger->tgfoid) != RI_TRIGGER_FK && key != NULL &&
		NameIndex(key, FixedKeys, lengthof(FixedKeys)) >= 0;
}

static bool
CheckIsOurs(const ConstrCheck *check)
{
	static const char *const names[] = {"plan_outcome", "step_outcome", "dependency_need", "checkpoint_kind_check", "checkpoint_gate_check"};

	return NameIndex(check->ccname, names, lengthof(names)) >= 0;
}

/*
 * Functions that an index calls (in expressions, domains or operator classes)
 * would run as the owner, and with the caller's search path. Our own indexes
 * call none, so it is enough to know their names; test/run compares this list
 * with the script that creates them.
 */
static const char *const OurIndexes[] = {
	"plan_pkey", "plan_root", "plan_open", "plan_finished", "plan_nested", "plan_parent_step", "plan_workable", "plan_idempotency_key",
	"step_pkey", "step_order_unique", "step_name", "step_binding", "step_ready", "step_holder", "step_lease", "step_holds",
	"step_sent_back", "step_paused", "step_notes", "dependency_pkey", "dependency_of", "plan_detail_pkey", "plan_detail_search",
	"audit_log_plan", "audit_log_tenant", "tool_call_pkey",
	"checkpoint_pkey", "checkpoint_step_id_key", "checkpoint_tenant", "checkpoint_root", "workflow_pkey"
};

/*
 * Open an index. Its columns are read from the catalog together before. Otherwise
 * PostgreSQL would look them up one by one.
 */
static Relation
OpenIndex(Oid oid)
{
	ReleaseSysCacheList(SearchSysCacheList1(ATTNUM, ObjectIdGetDatum(oid)));
	return index_open(oid, AccessShareLock);
}

/* Check whether an index is ours. It is opened for that, because a write opens all indexes of its table anyway. */
static bool
IndexIsOurs(Oid oid)
{
	Relation	index = OpenIndex(oid);
	bool		ours = NameIndex(RelationGetRelationName(index), OurIndexes, lengthof(OurIndexes)) >= 0;

	index_close(index, NoLock);
	return ours;
}

/*
 * Check whether a user has added something to a table. It works on copies,
 * because a catalog lookup may process an invalidation, which rebuilds the
 * relation.
 */
static bool
Judge(Relation relation)
{
	TriggerDesc *triggers = CopyTriggerDesc(relation->trigdesc);
	TupleDesc	desc = CreateTupleDescCopyConstr(RelationGetDescr(relation));
	const TupleConstr *constraints = desc->constr;
	ListCell   *cell;

	if (constraints != NULL && HasGeneratedColumns(constraints))
		return true;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
		if (!TriggerIsHarmless(&triggers->triggers[i], relation))
			return true;
	for (int i = 0; constraints != NULL && i < constraints->num_check; i++)
		if (!CheckIsOurs(&constraints->check[i]))
			return true;
	foreach(cell, RelationGetIndexList(relation))
		if (!IndexIsOurs(lfirst_oid(cell)))
			return true;
	return relation->rd_rules != NULL;
}

/* Check whether a user has added something to a table; the answer is remembered. */
bool
RelationIsAltered(Relation relation)
{
	Facts	   *f = FactsOf(relation);
	bool		altered;

	if (f->judged)
		return f->altered;

	/*
	 * if Judge fails, the table counts as altered; if an invalidation comes meanwhile, the facts are found again next
	 * time
	 */
	f->judged = true;
	f->altered = true;
	altered = Judge(relation);
	f->altered = altered;
	return altered;
}

/* Check whether a user has added columns to a table of which we know so many. Those that were dropped do not count. */
bool
RelationHasMoreColumns(Relation relation, int columns)
{
	TupleDesc	desc = RelationGetDescr(relation);

	for (int i = columns; i < desc->natts; i++)
		if (!TupleDescAttr(desc, i)->attisdropped)
			return true;
	return false;
}

/* Lock a table for writing, and check whether a user has added something to it. */
bool
TableIsAltered(Call *call, const char *table)
{
	return RelationIsAltered(OpenOnce(call, table, RowExclusiveLock));
}
