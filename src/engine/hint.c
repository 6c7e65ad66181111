/*
 * hint.c
 *	  put ids into the calls that a hint names
 *
 * Whoever reads an error may know nothing else. So a hint names a call that can
 * be copied. In the source the call has the names of its arguments, as in
 * stepwise.retry_step(step_id).
 *
 * Memory: everything is in the current memory context.
 */
#include "engine/engine.h"

/* Put an id in the place of an argument, wherever a call of the hint begins with it. */
char *
HintWithId(const char *hint, const char *argument, const pg_uuid_t *id)
{
	char	   *opening = psprintf("(%s", argument);
	const char *found;
	StringInfoData text;

	initStringInfo(&text);
	while ((found = strstr(hint, opening)) != NULL)
	{
		appendBinaryStringInfo(&text, hint, found - hint);
		appendStringInfo(&text, "('%s'", UuidText(id));
		hint = found + strlen(opening);
	}
	appendStringInfoString(&text, hint);
	return text.data;
}

/* Fill the hint of an error about a step: step_id is the step, plan_id its plan, root_id the root of the tree. */
char *
StepHint(const StepRow *step, const char *hint)
{
	hint = HintWithId(hint, "step_id", &step->id);
	hint = HintWithId(hint, "plan_id", &step->plan_id);
	return HintWithId(hint, "root_id", &step->root_id);
}

/* Fill the hint of an error about a plan. */
char *
PlanHint(const PlanRow *plan, const char *hint)
{
	return HintWithId(hint, "plan_id", &plan->id);
}
