/*
 * about.c
 *	  say which plan an answer is about
 */
#include "api/api.h"

/* Put the members that every answer about a changed plan has. */
void
PutPlanAnswer(JsonBuilder *b, const PlanRow *plan)
{
	JsonPutUuid(b, "planId", &plan->id);
	JsonPutText(b, "planStatus", PlanStatusName[plan->status]);
	if (plan->nested)
		JsonPutUuid(b, "rootPlanId", &plan->root_id);
}
