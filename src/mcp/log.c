/*
 * log.c
 *	  keep the calls in stepwise.tool_call
 */
#include "mcp/mcp.h"

#include "access/xact.h"

/* columns of stepwise.tool_call; the first is 0 */
enum
{
	CALL_COL_ID, CALL_COL_PLAN_ID, CALL_COL_AT, CALL_COL_DURATION, CALL_COL_IS_ERROR, CALL_COL_REQUEST_SIZE, CALL_COL_ANSWER_SIZE,
	CALL_COL_TENANT, CALL_COL_TOOL
};

/* Say whether a call can be kept: not on a standby, in a transaction that only reads, or without a tenant. */
static bool
CanLog(void)
{
	return LogToolCalls && !XactReadOnly && !EngineRuns() && TenantTry() != NULL;
}

static Interval *
Duration(TimestampTz since)
{
	Interval   *duration = palloc0(sizeof(Interval));

	duration->time = GetCurrentTimestamp() - since;
	return duration;
}

/* Keep a call: its tool, or else its method. */
void
LogCall(const Request *request, TimestampTz since, const Jsonb *message, const Jsonb *answer)
{
	Changes		c = {0};
	pg_uuid_t	id;
	Call		call;

	if (!CanLog())
		return;
	CallBegin(&call);
	id = IdNew(&call);
	SetUuid(&c, CALL_COL_ID, &id);
	SetUuid(&c, CALL_COL_PLAN_ID, request->has_plan ? &request->plan_id : NULL);
	SetTime(&c, CALL_COL_AT, since);
	SetInterval(&c, CALL_COL_DURATION, Duration(since));
	SetBool(&c, CALL_COL_IS_ERROR, request->is_error);
	SetInt(&c, CALL_COL_REQUEST_SIZE, VARSIZE(message));
	SetInt(&c, CALL_COL_ANSWER_SIZE, VARSIZE(answer));
	SetDatum(&c, CALL_COL_TENANT, call.tenant_datum, false);
	SetText(&c, CALL_COL_TOOL, ShortText(request->tool ? request->tool : request->method));
	TableInsert(&call, "tool_call", &c);
	CallEnd(&call, NULL);
}
