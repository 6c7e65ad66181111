/*
 * value.c
 *	  UUIDs, times and intervals for SQL, in the form that the engine uses
 */
#include "api/api.h"

/* Generate a UUID of version 7. */
PG_FUNCTION_INFO_V1(stepwise_uuid7);
Datum
stepwise_uuid7(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	*uuid = UuidNew();
	PG_RETURN_UUID_P(uuid);
}

/* Format a time as the engine does in its answers. */
PG_FUNCTION_INFO_V1(stepwise_time_text);
Datum
stepwise_time_text(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(TimeText(PG_GETARG_TIMESTAMPTZ(0))));
}

/* Format an interval as the engine does in its answers. */
PG_FUNCTION_INFO_V1(stepwise_interval_text);
Datum
stepwise_interval_text(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(IntervalText(PG_GETARG_INTERVAL_P(0))));
}
