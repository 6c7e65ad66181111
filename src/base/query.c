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
 * The search path is locked while they run. Otherwise an operator in one of
 * the caller's schemas would run as the owner. The first query of a call locks
 * the path, and OwnerLeave puts it back. Calls that use no query do not
 * pay for this: it costs as much as reading a row.
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

/* set while a statement of the engine runs, and the trigger depth at which it was started */
static bool engine_runs = false;
static int	engine_depth;

/* Check whether a statement of the engine is running. */
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

/*
 * Check whether our trigger was fired by a statement of the engine, and not by
 * a statement of another trigger on it.
 */
bool
EngineWrites(void)
{
	return engine_runs && TriggerDepth() == engine_depth + 1;
}

/* ---------- parameters ---------- */

/* Add a parameter of any type. */
void
ParamDatum(Params *params, Datum value)
{
	if (params->count >= QUERY_MAX_PARAMS)
		elog(ERROR, "query has more than %d parameters", QUERY_MAX_PARAMS);
	params->nulls[params->count] = ' ';
	params->values[params->count++] = value;
}

/* Add a null. */
void
ParamNull(Params *params)
{
	ParamDatum(params, (Datum) 0);
	params->nulls[params->count - 1] = 'n';
}

/* Add a value of variable length; NULL for null. */
void
ParamVarlena(Params *params, const void *value)
{
	if (value == NULL)
		ParamNull(params);
	else
		ParamDatum(params, PointerGetDatum(value));
}

/* Add a text; NULL for null. */
void
ParamText(Params *params, const char *value)
{
	if (value == NULL)
		ParamNull(params);
	else
		ParamDatum(params, CStringGetTextDatum(value));
}

/* Add a UUID; NULL for null. */
void
ParamUuid(Params *params, const pg_uuid_t *value)
{
	if (value == NULL)
		ParamNull(params);
	else
		ParamDatum(params, UUIDPGetDatum(value));
}

/* Add an int4. */
void
ParamInt(Params *params, int value)
{
	ParamDatum(params, Int32GetDatum(value));
}

/* Add a boolean. */
void
ParamBool(Params *params, bool value)
{
	ParamDatum(params, BoolGetDatum(value));
}

/* Add a time; NO_TIME for null. */
void
ParamTime(Params *params, TimestampTz value)
{
	if (!TimeIsSet(value))
		ParamNull(params);
	else
		ParamDatum(params, TimestampTzGetDatum(value));
}

/* Add the tenant of the call, and tie the query to the call. */
void
ParamTenant(Params *params, const Call *call)
{
	params->call = unconstify(Call *, call);
	ParamDatum(params, call->tenant_datum);
}

/* Add the tenant of the call and an id, with which most queries begin; NULL: null. */
void
ParamKey(Params *params, const Call *call, const pg_uuid_t *id)
{
	ParamTenant(params, call);
	ParamUuid(params, id);
}

/* ---------- running ---------- */

static void
QueryPrepare(KeptQuery *query)
{
	/* generic at once: the plan depends neither on the parameters nor on the size of the tables (planner.c) */
	SPIPlanPtr	plan = SPI_prepare_cursor(query->sql, query->nparams, query->types, CURSOR_OPT_GENERIC_PLAN);

	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "could not prepare query: %s", query->sql);
	query->plan = plan;
}

#define OWNER_PATH	"pg_catalog, pg_temp"

/*
 * Lock the search path, unless it is locked. Returns the GUC level to go back
 * to; 0: none.
 */
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

/* Lock the search path for the rest of a call. The first level also undoes what a trigger sets meanwhile. */
void
SearchPathLockFor(Call *call)
{
	int			level = SearchPathLock();

	if (call->guc_level == 0)
		call->guc_level = level;
}

/*
 * Let the planner sort only where no index has the order. Without statistics
 * it takes the rows of a tenant for few, and would rather read and sort them
 * all than read the first ones in order. What needs a sort would look too
 * expensive to go without JIT, so that is off too. Returns the GUC level to
 * put both back to.
 */
static int
SortsAvoid(void)
{
	int			level = NewGUCNestLevel();

	(void) set_config_option("enable_sort", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("jit", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return level;
}

/* Send no notices to the client, but warnings. Returns the GUC level to put that back to (SearchPathUnlock); 0: none. */
int
NoticesAvoid(void)
{
	int			level;

	if (client_min_messages >= WARNING)
		return 0;
	level = NewGUCNestLevel();
	(void) set_config_option("client_min_messages", "warning", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return level;
}

/* Put back the settings of a level, such as the search path; 0: there is none. */
void
SearchPathUnlock(int *level)
{
	if (*level != 0)
		AtEOXact_GUC(true, *level);
	*level = 0;
}

/* Execute a prepared query, and mark that it is the engine's. */
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

/* Write what the call has changed and the query reads. What it keeps of steps is written in any case. */
static void
SaveFor(const KeptQuery *query, Call *call)
{
	int			what = (query->reads_plans ? SAVE_PLANS : 0) | (query->reads_log ? SAVE_LOG : 0);

	if (call != NULL && call->save != NULL && (what != 0 || call->kept != NULL))
		call->save(call, call, what);
}

/* Run a query, as the owner. */
Rows
QueryRun(KeptQuery *query, const Params *params)
{
	Rows		rows = {0};
	MemoryContext context = CurrentMemoryContext;
	int			level = 0;
	int			sorts;
	int			notices;
	int			result;

	if (params->count != query->nparams)
		elog(ERROR, "query got %d parameters instead of %d: %s", params->count, query->nparams, query->sql);
	SaveFor(query, params->call);
	/* in a call it stays locked for the queries that follow */
	if (params->call != NULL)
		SearchPathLockFor(params->call);
	else
		level = SearchPathLock();
	sorts = query->in_order ? SortsAvoid() : 0;
	notices = query->quiet ? NoticesAvoid() : 0;
	result = Execute(query, params);
	SearchPathUnlock(&notices);
	SearchPathUnlock(&sorts);
	/* SPI leaves us in its own context, which is deleted before the answer is copied */
	MemoryContextSwitchTo(context);
	if (result < 0)
		elog(ERROR, "could not run query (%s): %s", SPI_result_code_string(result), query->sql);
	SearchPathUnlock(&level);
	rows.count = SPI_processed;
	rows.table = SPI_tuptable;
	return rows;
}

/* Run a one-off statement; returns the number of rows affected. */
uint64
QueryRunOnce(const char *sql, const Oid *types, const Params *params)
{
	KeptQuery	query = {.sql = sql, .nparams = params->count};
	Rows		rows;

	if (params->count > 0)
		memcpy(query.types, types, sizeof(Oid) * params->count);
	rows = QueryRun(&query, params);
	SPI_freeplan(query.plan);
	return rows.count;
}

/* ---------- queries by the usual keys: $1 is the tenant, $2 the id or name ---------- */

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

	ParamKey(&params, call, id);
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

/* Run a query that returns one jsonb value; NULL if it returns no row. */
Jsonb *
QueryJson(KeptQuery *query, const Params *params)
{
	Rows		rows = QueryRun(query, params);
	Jsonb	   *json = rows.count > 0 ? RowJson(&rows, 0, 1) : NULL;

	RowsFree(&rows);
	return json;
}

/*
 * Run a query over (tenant, id) that returns one jsonb value; NULL if it
 * returns no row.
 */
Jsonb *
QueryJsonById(const Call *call, KeptQuery *query, const pg_uuid_t *id)
{
	Params		params = {0};

	ParamKey(&params, call, id);
	return QueryJson(query, &params);
}

/* ---------- rows ---------- */

/* Free the rows of a query. */
void
RowsFree(Rows *rows)
{
	if (rows->table != NULL)
		SPI_freetuptable(rows->table);
	rows->table = NULL;
}

/*
 * Return a row. A missing row is an error, never a crash, without assertions
 * too.
 */
HeapTuple
RowTuple(const Rows *rows, uint64 row)
{
	if (rows->table == NULL || row >= rows->table->numvals)
		elog(ERROR, "query returned no row %llu", (unsigned long long) row + 1);
	return rows->table->vals[row];
}

/* Read a column of a row, counted from 1. */
Datum
RowDatum(const Rows *rows, uint64 row, int column, bool *isnull)
{
	HeapTuple	tuple = RowTuple(rows, row);

	if (column < 1 || column > rows->table->tupdesc->natts)
		elog(ERROR, "query returned no column %d", column);
	return SPI_getbinval(tuple, rows->table->tupdesc, column, isnull);
}

/* Check whether a column is null. */
bool
RowIsNull(const Rows *rows, uint64 row, int column)
{
	bool		isnull;

	RowDatum(rows, row, column, &isnull);
	return isnull;
}

/* Read a text column. */
char *
RowText(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

/* Read a jsonb column. */
Jsonb *
RowJson(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? NULL : DatumGetJsonbPCopy(value);
}

/* Read a UUID column; zeros if it is null. */
pg_uuid_t
RowUuid(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);
	pg_uuid_t	uuid = {0};

	return isnull ? uuid : *DatumGetUUIDP(value);
}

/* Read an int4 column; 0 if it is null. */
int
RowInt(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? 0 : DatumGetInt32(value);
}

/* Read a boolean column; false if it is null. */
bool
RowBool(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return !isnull && DatumGetBool(value);
}

/* Read a time column; NO_TIME if it is null. */
TimestampTz
RowTime(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? NO_TIME : DatumGetTimestampTz(value);
}

/* Read a column of variable length as it is stored, perhaps toasted. */
struct varlena *
RowVarlena(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? NULL : (struct varlena *) DatumGetPointer(value);
}
