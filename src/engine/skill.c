/*
 * skill.c
 *	  read rows of stepwise.skill_execution
 */
#include "engine/engine.h"

/* the column of stepwise.skill_execution that is read here; the first is 0 */
#define SKILL_COL_METADATA	8

/* Read the metadata from a row of stepwise.skill_execution. */
static void *
MetadataMake(TupleTableSlot *slot)
{
	return ColumnJson(slot, SKILL_COL_METADATA);
}

/* Read the metadata of the newest skill execution of a plan; NULL if there is none. */
Jsonb *
SkillMetadata(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = IdKey(call, plan_id);
	List	   *all = TableReadAll("skill_execution", "skill_execution_plan", &key, MetadataMake);

	return all ? llast(all) : NULL;
}

/* Check whether skill executions of a session are recorded. */
bool
SessionHasSkill(Call *call, const char *session)
{
	Key			key = {.call = call};

	KeyText(&key, call->tenant_datum);
	KeyText(&key, CStringGetTextDatum(session));
	return TableRead("skill_execution", "skill_execution_session", &key, NULL, NULL, MetadataMake) != NULL;
}
