/*
 * purge.c
 *	  retention: remove finished plans, in batches
 *
 * A tree is removed as a whole, once its root has finished. A tree whose root
 * is locked is skipped. Calls through MCP are removed by their own age.
 *
 * The procedure commits after each batch. It does so as the caller. If it
 * committed while switched to the owner, the session would stay the owner.
 */
#include "api/api.h"

#include "miscadmin.h"

/* what is removed with a plan: the rows of every table that has a plan_id, then the plans */
static KeptQuery Deletions[] = {
	{"DELETE FROM stepwise.audit_log WHERE tenant = $1 AND plan_id = ANY ($2)", 2, {TEXTOID, UUIDARRAYOID}},
	{"DELETE FROM stepwise.artifact WHERE tenant = $1 AND plan_id = ANY ($2)", 2, {TEXTOID, UUIDARRAYOID}},
	{"DELETE FROM stepwise.checkpoint WHERE tenant = $1 AND plan_id = ANY ($2)", 2, {TEXTOID, UUIDARRAYOID}},
	{"DELETE FROM stepwise.dependency WHERE tenant = $1 AND step_id IN"
	" (SELECT s.id FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = ANY ($2))", 2, {TEXTOID, UUIDARRAYOID}},
	{"DELETE FROM stepwise.branching_condition WHERE tenant = $1 AND step_id IN"
	" (SELECT s.id FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = ANY ($2))", 2, {TEXTOID, UUIDARRAYOID}},
	{"UPDATE stepwise.skill_execution SET plan_id = NULL WHERE tenant = $1 AND plan_id = ANY ($2)", 2, {TEXTOID, UUIDARRAYOID}},
	{"DELETE FROM stepwise.step WHERE tenant = $1 AND plan_id = ANY ($2)", 2, {TEXTOID, UUIDARRAYOID}},
	{"DELETE FROM stepwise.plan_detail WHERE tenant = $1 AND plan_id = ANY ($2)", 2, {TEXTOID, UUIDARRAYOID}},
	{"DELETE FROM stepwise.plan WHERE tenant = $1 AND id = ANY ($2)", 2, {TEXTOID, UUIDARRAYOID}},
};

/* Lock a batch of finished trees, and find their plans. Returns the number of trees; if 0, plans is not valid. */
static int
FindBatch(Call *call, TimestampTz before, int batch, Datum *plans)
{
	static KeptQuery find = {
		"WITH root AS (SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.completed_at < $2"
		" AND p.completed_at IS NOT NULL AND p.parent_step_id IS NULL ORDER BY p.completed_at LIMIT $3"
		" FOR UPDATE SKIP LOCKED),"
		" tree AS (SELECT r.id FROM root AS r UNION ALL SELECT n.id FROM root AS r JOIN stepwise.plan AS n"
		" ON n.tenant = $1 AND n.root_id = r.id AND n.parent_step_id IS NOT NULL)"
		" SELECT (SELECT pg_catalog.count(*)::int FROM root), pg_catalog.array_agg(t.id) FROM tree AS t",
		3, {TEXTOID, TIMESTAMPTZOID, INT4OID}
	};
	Params		params = {0};
	bool		isnull;
	Rows		rows;

	ParamTenant(&params, call);
	ParamDatum(&params, TimestampTzGetDatum(before));
	ParamInt(&params, batch);
	rows = QueryRun(&find, &params);
	*plans = RowDatum(&rows, 0, 2, &isnull);
	return RowInt(&rows, 0, 1);
}

/* Audit a purge. The entry belongs to no plan. */
static void
AuditPurge(Call *call, TimestampTz before, int count)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", "purged");
	JsonPutInt(&b, "plans", count);
	JsonPutTime(&b, "before", before);
	JsonObjectEnd(&b);
	AuditAppendPlanless(call, "plan_modified", JsonFinish(&b));
}

/* Remove one batch of a tenant; returns the number of removed trees. */
static int
PurgeBatch(const char *tenant, TimestampTz before, int batch)
{
	Call		call;
	Datum		plans;
	int			count;

	CallBeginIn(&call, tenant);
	count = FindBatch(&call, before, batch, &plans);
	for (int i = 0; count > 0 && i < lengthof(Deletions); i++)
	{
		Params		params = {0};

		ParamTenant(&params, &call);
		ParamDatum(&params, plans);
		QueryRun(&Deletions[i], &params);
	}
	if (count > 0)
		AuditPurge(&call, before, count);
	CallEnd(&call, NULL);
	return count;
}

/* Make the least UUID that is not older than a time. */
static pg_uuid_t
LeastUuid(TimestampTz at)
{
	int64		epoch = (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
	uint64		milliseconds = TIMESTAMP_IS_NOEND(at) ? PG_UINT64_MAX : at < -epoch ? 0 : (uint64) (at / 1000 + epoch / 1000);
	pg_uuid_t	uuid = {0};

	for (int i = 0; i < 6; i++)
		uuid.data[i] = (unsigned char) (milliseconds >> (40 - 8 * i));
	return uuid;
}

/*
 * Remove one batch of the calls of all tenants that were kept; returns their
 * number. Their ids begin with their time, in milliseconds.
 */
static int
PurgeCalls(TimestampTz before, int batch)
{
	static KeptQuery purge = {
		"WITH gone AS (DELETE FROM stepwise.tool_call AS t USING (SELECT c.id FROM stepwise.tool_call AS c"
		" WHERE c.id < $1 ORDER BY c.id LIMIT $2) AS old WHERE t.id = old.id RETURNING 1)"
		" SELECT pg_catalog.count(*)::int FROM gone",
		2, {UUIDOID, INT4OID}
	};
	pg_uuid_t	first = LeastUuid(before);
	Params		params = {0};
	int			count;
	Call		call;
	Rows		rows;

	CallBeginIn(&call, "");
	ParamUuid(&params, &first);
	ParamInt(&params, batch);
	rows = QueryRun(&purge, &params);
	count = RowInt(&rows, 0, 1);
	CallEnd(&call, NULL);
	return count;
}

/* List the tenants that have plans, in the caller's memory. */
static List *
AllTenants(void)
{
	static KeptQuery list = {"SELECT DISTINCT p.tenant FROM stepwise.plan AS p ORDER BY 1", 0};
	MemoryContext outer = CurrentMemoryContext;
	List	   *tenants = NIL;
	Params		params = {0};
	Call		call;
	Rows		rows;

	CallBeginIn(&call, "");
	rows = QueryRun(&list, &params);
	for (uint64 i = 0; i < rows.count; i++)
	{
		char	   *tenant = RowText(&rows, i, 1);
		MemoryContext inner = MemoryContextSwitchTo(outer);

		tenants = lappend(tenants, pstrdup(tenant));
		MemoryContextSwitchTo(inner);
	}
	CallEnd(&call, NULL);
	return tenants;
}

/* Commit, unless the call is part of a larger transaction. */
static void
CommitBatch(FunctionCallInfo fcinfo, Oid caller)
{
	if (MayCommit(fcinfo))
		CommitAs(caller);
}

static void
CheckPurgeArguments(FunctionCallInfo fcinfo)
{
	CheckOwner("purge plans");
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_GETARG_INT32(1) < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("purge needs a time and a positive batch size"),
				 errhint("For example: CALL stepwise.purge(now() - interval '90 days').")));
}

/* Remove plans of all tenants that finished before a time. */
PG_FUNCTION_INFO_V1(stepwise_purge);
Datum
stepwise_purge(PG_FUNCTION_ARGS)
{
	Oid			caller = GetUserId();
	int64		total = 0;
	TimestampTz before;
	int			batch;
	int			calls;
	ListCell   *cell;

	CheckPurgeArguments(fcinfo);
	before = PG_GETARG_TIMESTAMPTZ(0);
	batch = PG_GETARG_INT32(1);
	foreach(cell, AllTenants())
	{
		int			count;

		do
		{
			CHECK_FOR_INTERRUPTS();
			count = PurgeBatch(lfirst(cell), before, batch);
			total += count;
			CommitBatch(fcinfo, caller);
		} while (count == batch);
	}
	do
	{
		CHECK_FOR_INTERRUPTS();
		calls = PurgeCalls(before, batch);
		CommitBatch(fcinfo, caller);
	} while (calls == batch);
	ereport(NOTICE,
			(errmsg_plural("purged %lld plan", "purged %lld plans", total, (long long) total)));
	PG_RETURN_VOID();
}
