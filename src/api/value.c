/*
 * value.c
 *	  UUIDs, times and intervals for SQL, in the form that the engine uses
 */
#include "api/api.h"

/* Make a new id of the tenant in which the current role works. */
PG_FUNCTION_INFO_V1(stepwise_uuid7);
Datum
stepwise_uuid7(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	*uuid = UuidNew(TenantSlot(TenantOfCaller()));
	PG_RETURN_UUID_P(uuid);
}

/* Read the slot at the end of an id. */
PG_FUNCTION_INFO_V1(stepwise_slot_of);
Datum
stepwise_slot_of(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(SlotOf(PG_GETARG_UUID_P(0)));
}

/* Compute the slot of a tenant. */
PG_FUNCTION_INFO_V1(stepwise_tenant_slot);
Datum
stepwise_tenant_slot(PG_FUNCTION_ARGS)
{
	char	   *tenant = ArgumentText(fcinfo, 0);

	CheckNameLimit(tenant, "tenant");
	PG_RETURN_INT32(TenantSlot(tenant));
}

/* Format a time as the engine does in its answers. */
PG_FUNCTION_INFO_V1(stepwise_time_text);
Datum
stepwise_time_text(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(TimeText(PG_GETARG_TIMESTAMPTZ(0))));
}
