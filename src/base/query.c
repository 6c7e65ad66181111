/*
 * query.c
 *	  run SQL by kept SPI plans, and read the rows that it returns
 *
 * A KeptQuery is a static variable beside the code that reads its columns. It
 * is prepared at its first use and kept for the life of the backend; the plan
 * cache takes care of changed tables. Enum values are passed as text and cast
 * in the SQL, so that a kept plan survives DROP and CREATE EXTENSION.
 *
 * Queries run between CallBegin and CallEnd, as the owner of the extension.
 * The search path is locked while they run. Otherwise an operator in a schema
 * of the caller's would run as the owner. The first query of a call locks the
 * path, and the end of the call (SearchPathUnlock) puts it back. Calls that use only
 * table.c do not pay for this: it costs as much as reading a row.
 *
 * Memory: rows are in SPI's memory until RowsFree or the end of the call.
 * RowText and RowJson copy into the current memory context.
 */
#include "base/base.h"

#include "catalog/namespace.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* set while the engine's own statement runs, and how deep in triggers that was */
static bool engine_runs = false;
static int	engine_depth;

bool
EngineRuns(void)
{
	return engine_runs;
}

static int
TriggerDepth(void)
{
	return DatumGetInt32(DirectFunctionCall1(pg_trigger_depth, (Datum) 0));
}

/* Was our trigger fired by the engine's own statement, and not by what somebody's trigger on it did? */
bool
EngineWrites(void)
{
	return engine_runs && TriggerDepth() == engine_depth + 1;
}

/* ---------- arguments ---------- */

void
ParamDatum(Params *params, Datum value)
{
	if (params->count >= QUERY_MAX_PARAMS)
		elog(ERROR, "query has more than %d arguments", QUERY_MAX_PARAMS);
	params->nulls[params->count] = ' ';
	params->values[params->count++] = value;
}

void
ParamNull(Params *params)
{
	ParamDatum(params, (Datum) 0);
	params->nulls[params->count - 1] = 'n';
}

void
ParamVarlena(Params *params, const void *value)
{
	if (value == NULL)
		ParamNull(params);
	else
		ParamDatum(params, PointerGetDatum(value));
}

void
ParamText(Params *params, const char *value)
{
	if (value == NULL)
		ParamNull(params);
	else
		ParamDatum(params, CStringGetTextDatum(value));
}

void
ParamUuid(Params *params, const pg_uuid_t *value)
{
	if (value == NULL)
		ParamNull(params);
	else
		ParamDatum(params, UUIDPGetDatum(value));
}

void
ParamInt(Params *params, int value)
{
	ParamDatum(params, Int32GetDatum(value));
}

void
ParamBool(Params *params, bool value)
{
	ParamDatum(params, BoolGetDatum(value));
}

void
ParamTime(Params *params, TimestampTz value)
{
	if (!TimeIsSet(value))
		ParamNull(params);
	else
		ParamDatum(params, TimestampTzGetDatum(value));
}

void
ParamTenant(Params *params, const Call *call)
{
	params->call = unconstify(Call *, call);
	ParamDatum(params, call->tenant_datum);
}

/* ---------- running ---------- */

static void
QueryPrepare(KeptQuery *query)
{
	/* generic at once: the plan does not depend on the arguments, nor on how full the tables are (planner.c) */
	SPIPlanPtr	plan = SPI_prepare_cursor(query->sql, query->nparams, query->types, CURSOR_OPT_GENERIC_PLAN);

	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "could not prepare query: %s", query->sql);
	query->plan = plan;
}

#define OWNER_PATH	"pg_catalog, pg_temp"

/* Lock the search path, unless it is; the level to go back to, 0: none. */
static int
SearchPathLock(void)
{
	int			level;

	if (strcmp(namespace_search_path, OWNER_PATH) == 0)
		return 0;
	level = NewGUCNestLevel();
	(void) set_config_option("search_path", OWNER_PATH, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return level;
}

void
SearchPathUnlock(int *level)
{
	if (*level != 0)
		AtEOXact_GUC(true, *level);
	*level = 0;
}

static int
Execute(KeptQuery *query, const Params *params)
{
	bool		outer = engine_runs;
	int			outer_depth = engine_depth;
	bool		reading = params->call != NULL && params->call->reading;
	volatile int result;

	if (query->plan == NULL)
		QueryPrepare(query);
	engine_runs = true;
	engine_depth = TriggerDepth();
	PG_TRY();
	{
		if (query->latest)
			result = SPI_execute_snapshot(query->plan, (Datum *) params->values, params->nulls, GetLatestSnapshot(),
										  InvalidSnapshot, true, false, 0);
		else
			result = SPI_execute_plan(query->plan, (Datum *) params->values, params->nulls, reading, 0);
	}
	PG_FINALLY();
	{
		engine_runs = outer;
		engine_depth = outer_depth;
	}
	PG_END_TRY();
	return result;
}

Rows
QueryRun(KeptQuery *query, const Params *params)
{
	Rows		rows = {0};
	MemoryContext context = CurrentMemoryContext;
	int			level;
	int			result;

	if (params->count != query->nparams)
		elog(ERROR, "query got %d arguments instead of %d: %s", params->count, query->nparams, query->sql);
	if (query->reads_plans && params->call != NULL && params->call->save != NULL)
		params->call->save(params->call);
	level = SearchPathLock();
	if (level != 0 && params->call != NULL)
	{
		/* for the queries that follow, too; what a trigger has set meanwhile goes with the first level */
		if (params->call->guc_level == 0)
			params->call->guc_level = level;
		level = 0;
	}
	result = Execute(query, params);
	/* SPI leaves us in its own context, which is gone before the answer is copied */
	MemoryContextSwitchTo(context);
	if (result < 0)
		elog(ERROR, "could not run query (%s): %s", SPI_result_code_string(result), query->sql);
	SearchPathUnlock(&level);
	rows.count = SPI_processed;
	rows.table = SPI_tuptable;
	return rows;
}

/* Run a statement that is not worth to be kept; how many rows it was about. */
uint64
QueryRunOnce(const char *sql, const Oid *types, const Params *params)
{
	KeptQuery	query = {.sql = sql,.nparams = params->count};
	Rows		rows;

	if (params->count > 0)
		memcpy(query.types, types, sizeof(Oid) * params->count);
	rows = QueryRun(&query, params);
	SPI_freeplan(query.plan);
	return rows.count;
}

/* ---------- queries by the usual keys: $1 is the tenant, $2 what is looked for ---------- */

/* Run a query over (tenant). */
Rows
QueryOfTenant(const Call *call, KeptQuery *query)
{
	Params		params = {0};

	ParamTenant(&params, call);
	return QueryRun(query, &params);
}

/* Run a query over (tenant, id). */
Rows
QueryById(const Call *call, KeptQuery *query, const pg_uuid_t *id)
{
	Params		params = {0};

	ParamTenant(&params, call);
	ParamUuid(&params, id);
	return QueryRun(query, &params);
}

/* Run a query over (tenant, name). */
Rows
QueryByName(const Call *call, KeptQuery *query, const char *name)
{
	Params		params = {0};

	ParamTenant(&params, call);
	ParamText(&params, name);
	return QueryRun(query, &params);
}

/* Run a query that makes one JSON; NULL if what it is to be made of is not there. */
Jsonb *
QueryJson(KeptQuery *query, const Params *params)
{
	Rows		rows = QueryRun(query, params);
	Jsonb	   *json = rows.count > 0 ? RowJson(&rows, 0, 1) : NULL;

	RowsFree(&rows);
	return json;
}

/* Run a query over (tenant, id) that makes one JSON; NULL if there is no row. */
Jsonb *
QueryJsonById(const Call *call, KeptQuery *query, const pg_uuid_t *id)
{
	Params		params = {0};

	ParamTenant(&params, call);
	ParamUuid(&params, id);
	return QueryJson(query, &params);
}

/* ---------- rows ---------- */

void
RowsFree(Rows *rows)
{
	if (rows->table != NULL)
		SPI_freetuptable(rows->table);
	rows->table = NULL;
}

/* Take a row; that it is not there is an error also without assertions, never a crash. */
HeapTuple
RowTuple(const Rows *rows, uint64 row)
{
	if (rows->table == NULL || row >= rows->table->numvals)
		elog(ERROR, "query returned no row %llu", (unsigned long long) row + 1);
	return rows->table->vals[row];
}

/* Take a column of a row, counted from 1. */
Datum
RowDatum(const Rows *rows, uint64 row, int column, bool *isnull)
{
	HeapTuple	tuple = RowTuple(rows, row);

	if (column < 1 || column > rows->table->tupdesc->natts)
		elog(ERROR, "query returned no column %d", column);
	return SPI_getbinval(tuple, rows->table->tupdesc, column, isnull);
}

bool
RowIsNull(const Rows *rows, uint64 row, int column)
{
	bool		isnull;

	RowDatum(rows, row, column, &isnull);
	return isnull;
}

char *
RowText(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

Jsonb *
RowJson(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? NULL : DatumGetJsonbPCopy(value);
}

pg_uuid_t
RowUuid(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);
	pg_uuid_t	uuid = {0};

	return isnull ? uuid : *DatumGetUUIDP(value);
}

int
RowInt(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? 0 : DatumGetInt32(value);
}

bool
RowBool(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return !isnull && DatumGetBool(value);
}

TimestampTz
RowTime(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? NO_TIME : DatumGetTimestampTz(value);
}

struct varlena *
RowVarlena(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? NULL : (struct varlena *) DatumGetPointer(value);
}
