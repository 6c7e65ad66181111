/*
 * trigger.c
 *	  what all our triggers share
 */
#include "base/base.h"

#include "commands/trigger.h"

/* Return the context of a trigger function. */
TriggerData *
TriggerOf(FunctionCallInfo fcinfo)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "not called as a trigger");
	return (TriggerData *) fcinfo->context;
}

/* Return what lets the row of a trigger pass. */
Datum
TriggerPass(const TriggerData *trigger)
{
	if (TRIGGER_FIRED_FOR_STATEMENT(trigger->tg_event))
		return PointerGetDatum(NULL);
	if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
		return PointerGetDatum(trigger->tg_newtuple);
	return PointerGetDatum(trigger->tg_trigtuple);
}
