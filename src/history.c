/*
 * history.c
 *	  the execution tree as it was, from the audit chain
 *
 * What the log says: states, times, attempts, who. Of the results it holds
 * only digests; an output is shown where the stored one is still that which
 * was recorded.
 */
#include "stepwise.h"

#include "miscadmin.h"

PG_FUNCTION_INFO_V1(stepwise_execution_as_of);

/* columns of the query that reads the steps of a plan as they were */
enum
{
	H_NAME = 1, H_ID, H_WAVE, H_STATUS, H_OUTCOME, H_STARTED_AT, H_ENDED_AT, H_ATTEMPT, H_MESSAGE, H_ACTOR, H_DIGEST,
	H_RESULT, H_NESTED
};

static void PutBlocksAsOf(JsonBuilder *b, Call *call, const pg_uuid_t *plan_id, TimestampTz at);

static TimestampTz
RowTime(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? 0 : DatumGetTimestampTz(value);
}

static StepStatus
RowStatus(const Rows *rows, uint64 row)
{
	char	   *status = RowText(rows, row, H_STATUS);
	int			index = status ? NameIndex(status, StepStatusName, STEP_STATUSES) : STEP_PENDING;

	return index < 0 ? STEP_PENDING : index;
}

static void
PutMetadataAsOf(JsonBuilder *b, const Rows *rows, uint64 row)
{
	StepRow		step = {0};
	TimestampTz started = RowTime(rows, row, H_STARTED_AT);
	TimestampTz ended = RowTime(rows, row, H_ENDED_AT);

	step.status = RowStatus(rows, row);
	JsonObjectStart(b, "metadata");
	JsonPutText(b, "status", TreeStatusOfStep(&step));
	JsonPutText(b, "outcome", RowIsNull(rows, row, H_OUTCOME) ? OutcomeName[OUTCOME_NA] : RowText(rows, row, H_OUTCOME));
	if (started && ended)
		JsonPutInt(b, "execution_time_ms", (ended - started) / 1000);
	else
		JsonPutNull(b, "execution_time_ms");
	JsonPutTime(b, "started_at", started);
	JsonPutTime(b, "completed_at", ended);
	JsonPutInt(b, "wave", RowInt(rows, row, H_WAVE));
	JsonPutText(b, "message", RowText(rows, row, H_MESSAGE));
	JsonPutInt(b, "attempt", RowInt(rows, row, H_ATTEMPT));
	JsonPutText(b, "actor", RowText(rows, row, H_ACTOR));
	JsonObjectEnd(b);
}

/* Show a result only where it is still the one that was recorded. */
static void
PutOutputsAsOf(JsonBuilder *b, const Rows *rows, uint64 row)
{
	char	   *digest = RowText(rows, row, H_DIGEST);
	Jsonb	   *result = RowJson(rows, row, H_RESULT);

	if (RowStatus(rows, row) != STEP_COMPLETED || digest == NULL || result == NULL || strcmp(digest, DigestText(result)) != 0)
		JsonPutNull(b, "outputs");
	else
		JsonPutJson(b, "outputs", result);
}

static void
PutBlockAsOf(JsonBuilder *b, Call *call, const Rows *rows, uint64 row, TimestampTz at)
{
	pg_uuid_t	step_id = RowUuid(rows, row, H_ID);
	StepRow    *step = StepRead(call, &step_id);

	JsonObjectStart(b, RowText(rows, row, H_NAME));
	JsonPutJson(b, "inputs", StepInputs(step));
	PutOutputsAsOf(b, rows, row);
	PutMetadataAsOf(b, rows, row);
	if (!RowIsNull(rows, row, H_NESTED))
	{
		pg_uuid_t	nested_id = RowUuid(rows, row, H_NESTED);

		PutBlocksAsOf(b, call, &nested_id, at);
	}
	else
	{
		JsonObjectStart(b, "blocks");
		JsonObjectEnd(b);
	}
	JsonObjectEnd(b);
}

static void
PutBlocksAsOf(JsonBuilder *b, Call *call, const pg_uuid_t *plan_id, TimestampTz at)
{
	/* the id of a step, and of a nested plan, tells when it was made: its first 48 bits are milliseconds */
	static KeptQuery read = {
		"WITH e AS (SELECT a.id, a.step_id, a.at, a.actor, a.detail FROM stepwise.audit AS a"
		" WHERE a.tenant = $1 AND a.plan_id = $2 AND a.at <= $3 AND a.step_id IS NOT NULL AND a.detail ? 'to'),"
		" last AS (SELECT DISTINCT ON (e.step_id) e.* FROM e ORDER BY e.step_id, e.id DESC),"
		" begun AS (SELECT DISTINCT ON (e.step_id) e.step_id, e.at FROM e WHERE e.detail ->> 'to' = 'in_progress'"
		" AND e.detail ->> 'from' <> 'awaiting_input' ORDER BY e.step_id, e.id DESC)"
		" SELECT s.name, s.id, s.wave, l.detail ->> 'to', l.detail ->> 'outcome',"
		" CASE WHEN l.detail ->> 'to' <> 'pending' THEN g.at END,"
		" CASE WHEN l.detail ->> 'to' IN ('completed', 'failed', 'skipped') THEN l.at END,"
		" (l.detail ->> 'attempt')::int, l.detail ->> 'message', l.actor, l.detail ->> 'resultDigest', s.result,"
		" (SELECT n.id FROM stepwise.plan AS n WHERE n.tenant = $1 AND n.parent_step_id = s.id AND n.created_at <= $3"
		" ORDER BY n.id DESC LIMIT 1)"
		" FROM stepwise.step AS s LEFT JOIN last AS l ON l.step_id = s.id LEFT JOIN begun AS g ON g.step_id = s.id"
		" WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND pg_catalog.left(pg_catalog.replace(s.id::text, '-', ''), 12) <="
		" pg_catalog.lpad(pg_catalog.to_hex(pg_catalog.floor(extract(epoch FROM $3) * 1000)::bigint), 12, '0')"
		" ORDER BY s.step_order",
		3, {TEXTOID, UUIDOID, TIMESTAMPTZOID}
	};
	Args		args = {0};
	Rows		rows;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	ArgTenant(&args, call);
	ArgUuid(&args, plan_id);
	ArgDatum(&args, TimestampTzGetDatum(at));
	rows = QueryRun(&read, &args);
	JsonObjectStart(b, "blocks");
	for (uint64 i = 0; i < rows.count; i++)
		PutBlockAsOf(b, call, &rows, i, at);
	JsonObjectEnd(b);
	RowsFree(&rows);
}

/* Read the status that the plan had; NULL: it was not there yet. */
static char *
PlanStatusAsOf(Call *call, const PlanRow *plan, TimestampTz at)
{
	static KeptQuery read = {
		"SELECT a.detail ->> 'to' FROM stepwise.audit AS a WHERE a.tenant = $1 AND a.plan_id = $2 AND a.at <= $3"
		" AND a.step_id IS NULL AND a.event IN ('plan_status_changed', 'plan_modified') AND a.detail ? 'to'"
		" ORDER BY a.id DESC LIMIT 1",
		3, {TEXTOID, UUIDOID, TIMESTAMPTZOID}
	};
	Args		args = {0};
	Rows		rows;

	ArgTenant(&args, call);
	ArgUuid(&args, &plan->id);
	ArgDatum(&args, TimestampTzGetDatum(at));
	rows = QueryRun(&read, &args);
	return rows.count > 0 ? RowText(&rows, 0, 1) : NULL;
}

static const char *
CheckThere(const PlanRow *plan, const char *status, TimestampTz at)
{
	if (status == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_PLAN_NOT_FOUND),
				 errmsg("plan \"%s\" was not there at %s", plan->name, TimeText(at)),
				 errdetail("It was created at %s.", TimeText(plan->created_at))));
	return status;
}

static Jsonb *
ExecutionAsOf(Call *call, PlanRow *plan, TimestampTz at)
{
	PlanRow		then = {0};
	bool		completed;
	JsonBuilder b = {0};

	then.status = NameIndex(CheckThere(plan, PlanStatusAsOf(call, plan, at), at), PlanStatusName, PLAN_STATUSES);
	completed = then.status == PLAN_COMPLETED;
	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "inputs", DatumGetJsonbP(PointerGetDatum(plan->inputs)));
	JsonPutJson(&b, "outputs", completed && plan->outputs ? DatumGetJsonbP(PointerGetDatum(plan->outputs)) : NULL);
	JsonObjectStart(&b, "metadata");
	JsonPutText(&b, "status", TreeStatusOfPlan(&then));
	JsonPutText(&b, "outcome", OutcomeName[completed ? plan->outcome : OUTCOME_NA]);
	JsonPutTime(&b, "started_at", plan->started_at && plan->started_at <= at ? plan->started_at : 0);
	JsonPutTime(&b, "completed_at", plan->completed_at && plan->completed_at <= at ? plan->completed_at : 0);
	JsonPutText(&b, "message", PlanIsTerminal(then.status) ? plan->message : NULL);
	JsonPutTime(&b, "as_of", at);
	JsonObjectEnd(&b);
	PutBlocksAsOf(&b, call, &plan->id, at);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

Datum
stepwise_execution_as_of(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanRow    *plan;

	CallBegin(&call);
	plan = PlanMustRead(&call, ArgumentUuid(fcinfo, 0));
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("execution_as_of needs a time")));
	return CallEnd(&call, ExecutionAsOf(&call, plan, PG_GETARG_TIMESTAMPTZ(1)));
}
