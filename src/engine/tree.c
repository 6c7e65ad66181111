/*
 * tree.c
 *	  find plans and steps in a tree of plans
 *
 * A nested plan has a parent step, which runs its workflow. A path is a list of
 * step names, from a step of the root plan down to the step that it names.
 */
#include "engine/engine.h"

/* Copy the id of a row of stepwise.plan. */
static void *
IdMake(TupleTableSlot *slot)
{
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

	*id = ColumnUuid(slot, PLAN_COL_ID);
	return id;
}

/*
 * Find the plan that is nested in a step; false if there is none. A step that
 * was tried again may have several, so take the newest.
 */
bool
NestedPlanId(Call *call, const pg_uuid_t *step_id, pg_uuid_t *plan_id)
{
	Key			key = {.call = call, .backward = true};
	pg_uuid_t  *newest;

	KeyUuid(&key, step_id);
	newest = TableRead("plan", "plan_parent_step", &key, NULL, NULL, IdMake);
	if (newest != NULL)
		*plan_id = *newest;
	return newest != NULL;
}

/* Read the plan in which a plan is nested, and its parent step; NULL if it is not nested. */
PlanRow *
PlanAround(Call *call, const PlanRow *plan, StepRow **parent_step)
{
	*parent_step = plan->nested ? StepRead(call, &plan->parent_step_id) : NULL;
	return *parent_step ? PlanRead(call, &(*parent_step)->plan_id) : NULL;
}

/* Put the path of a step. Of the step, only its name is read. */
void
PutPath(JsonBuilder *b, const PlanRow *plan, const StepRow *step)
{
	JsonArrayStart(b, "path");
	if (plan->parent_names != NULL)
	{
		Jsonb	   *above = DatumGetJsonbP(PointerGetDatum(plan->parent_names));
		JsonbIterator *iterator = JsonbIteratorInit(&above->root);
		JsonbIteratorToken token;
		JsonbValue	name;

		while ((token = JsonbIteratorNext(&iterator, &name, true)) != WJB_DONE)
			if (token == WJB_ELEM)
				JsonPutValue(b, NULL, &name);
	}
	JsonPutText(b, NULL, step->name);
	JsonArrayEnd(b);
}

/* Make the parent_names of a plan that is nested in this step. */
struct varlena *
ParentNamesBelow(const PlanRow *plan, const StepRow *parent_step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutPath(&b, plan, parent_step);
	JsonObjectEnd(&b);
	return (struct varlena *) JsonGetJson(JsonFinish(&b), "path");
}

/* Find the step that a path names, from the root of the tree of this plan; NULL if there is none. */
StepRow *
StepAtPath(Call *call, const PlanRow *plan, const Jsonb *path)
{
	pg_uuid_t	plan_id = plan->root_id;
	StepRow    *step = NULL;
	JsonbValue	name;

	for (int i = 0; JsonGetIndex(path, i, &name); i++)
	{
		if (step != NULL && !NestedPlanId(call, &step->id, &plan_id))
			return NULL;
		step = StepReadByName(call, &plan_id, JsonValueText(&name));
		if (step == NULL)
			return NULL;
	}
	return step;
}
