/*
 * log.c
 *	  keep the calls in stepwise.tool_call
 */
#include "mcp/mcp.h"

#include "access/xact.h"

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
	static KeptQuery insert = {
		"INSERT INTO stepwise.tool_call (tenant, id, plan_id, tool, at, duration, is_error, request_size, answer_size)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
		9, {TEXTOID, UUIDOID, UUIDOID, TEXTOID, TIMESTAMPTZOID, INTERVALOID, BOOLOID, INT4OID, INT4OID}
	};
	Params		params = {0};
	pg_uuid_t	id;
	Call		call;

	if (!CanLog())
		return;
	CallBegin(&call);
	id = IdNew(&call);
	ParamKey(&params, &call, &id);
	ParamUuid(&params, request->has_plan ? &request->plan_id : NULL);
	ParamText(&params, ShortText(request->tool ? request->tool : request->method));
	ParamTime(&params, since);
	ParamDatum(&params, IntervalPGetDatum(Duration(since)));
	ParamBool(&params, request->is_error);
	ParamInt(&params, VARSIZE(message));
	ParamInt(&params, VARSIZE(answer));
	QueryRun(&insert, &params);
	CallEnd(&call, NULL);
}
