/*
 * tree.c
 *	  find the way in a tree of plans: down to a nested plan, up to the plan
 *	  around it, and along a path of step names
 */
#include "engine/engine.h"

bool
NestedPlanId(Call *call, const pg_uuid_t *step_id, pg_uuid_t *plan_id)
{
	static KeptQuery find = {
		"SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.parent_step_id = $2"
		" ORDER BY p.tenant DESC, p.parent_step_id DESC, p.id DESC LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &find, step_id);
	bool		found = rows.count > 0;

	if (found)
		*plan_id = RowUuid(&rows, 0, 1);
	RowsFree(&rows);
	return found;
}

/* Read the plan around a nested one, and the step that holds it; NULL if there is none. */
PlanRow *
PlanAround(Call *call, const PlanRow *plan, StepRow **parent_step)
{
	*parent_step = plan->nested ? StepRead(call, &plan->parent_step_id) : NULL;
	return *parent_step ? PlanRead(call, &(*parent_step)->plan_id) : NULL;
}

/* Put the names of the steps from the root down to this one. */
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

/* The path of a plan that a step holds. */
struct varlena *
ParentNamesBelow(const PlanRow *plan, const StepRow *parent_step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutPath(&b, plan, parent_step);
	JsonObjectEnd(&b);
	return (struct varlena *) JsonGetJson(JsonFinish(&b), "path");
}

/* Find the step at the end of a path of names, which begins at the root. */
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
