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
 * path, and the end of the call (PathUnlock) puts it back. Calls that use only
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
ArgDatum(Args *args, Datum value)
{
	if (args->count >= QUERY_MAX_ARGS)
		elog(ERROR, "query has more than %d arguments", QUERY_MAX_ARGS);
	args->nulls[args->count] = ' ';
	args->values[args->count++] = value;
}

void
ArgNull(Args *args)
{
	ArgDatum(args, (Datum) 0);
	args->nulls[args->count - 1] = 'n';
}

void
ArgVarlena(Args *args, const void *value)
{
	if (value == NULL)
		ArgNull(args);
	else
		ArgDatum(args, PointerGetDatum(value));
}

void
ArgText(Args *args, const char *value)
{
	if (value == NULL)
		ArgNull(args);
	else
		ArgDatum(args, CStringGetTextDatum(value));
}

void
ArgUuid(Args *args, const pg_uuid_t *value)
{
	if (value == NULL)
		ArgNull(args);
	else
		ArgDatum(args, UUIDPGetDatum(value));
}

void
ArgInt(Args *args, int value)
{
	ArgDatum(args, Int32GetDatum(value));
}

void
ArgBool(Args *args, bool value)
{
	ArgDatum(args, BoolGetDatum(value));
}

void
ArgTime(Args *args, TimestampTz value)
{
	if (!TimeIsSet(value))
		ArgNull(args);
	else
		ArgDatum(args, TimestampTzGetDatum(value));
}

void
ArgTenant(Args *args, const Call *call)
{
	args->call = unconstify(Call *, call);
	ArgDatum(args, call->tenant_datum);
}

/* ---------- running ---------- */

static void
QueryPrepare(KeptQuery *query)
{
	/* generic at once: the plan does not depend on the arguments, nor on how full the tables are (planner.c) */
	SPIPlanPtr	plan = SPI_prepare_cursor(query->sql, query->nargs, query->types, CURSOR_OPT_GENERIC_PLAN);

	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "could not prepare query: %s", query->sql);
	query->plan = plan;
}

#define OWNER_PATH	"pg_catalog, pg_temp"

/* Lock the search path, unless it is; the level to go back to, 0: none. */
static int
PathLock(void)
{
	int			level;

	if (strcmp(namespace_search_path, OWNER_PATH) == 0)
		return 0;
	level = NewGUCNestLevel();
	(void) set_config_option("search_path", OWNER_PATH, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return level;
}

void
PathUnlock(int *level)
{
	if (*level != 0)
		AtEOXact_GUC(true, *level);
	*level = 0;
}

static int
Execute(KeptQuery *query, const Args *args)
{
	bool		outer = engine_runs;
	int			outer_depth = engine_depth;
	bool		reading = args->call != NULL && args->call->reading;
	volatile int result;

	if (query->plan == NULL)
		QueryPrepare(query);
	engine_runs = true;
	engine_depth = TriggerDepth();
	PG_TRY();
	{
		if (query->latest)
			result = SPI_execute_snapshot(query->plan, (Datum *) args->values, args->nulls, GetLatestSnapshot(),
										  InvalidSnapshot, true, false, 0);
		else
			result = SPI_execute_plan(query->plan, (Datum *) args->values, args->nulls, reading, 0);
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
QueryRun(KeptQuery *query, const Args *args)
{
	Rows		rows = {0};
	MemoryContext context = CurrentMemoryContext;
	int			level;
	int			result;

	if (args->count != query->nargs)
		elog(ERROR, "query got %d arguments instead of %d: %s", args->count, query->nargs, query->sql);
	if (query->reads_plans && args->call != NULL && args->call->save != NULL)
		args->call->save(args->call);
	level = PathLock();
	if (level != 0 && args->call != NULL)
	{
		/* for the queries that follow, too; what a trigger has set meanwhile goes with the first level */
		if (args->call->guc_level == 0)
			args->call->guc_level = level;
		level = 0;
	}
	result = Execute(query, args);
	/* SPI leaves us in its own context, which is gone before the answer is copied */
	MemoryContextSwitchTo(context);
	if (result < 0)
		elog(ERROR, "could not run query (%s): %s", SPI_result_code_string(result), query->sql);
	PathUnlock(&level);
	rows.count = SPI_processed;
	rows.table = SPI_tuptable;
	return rows;
}

/* Run a statement that is not worth to be kept; how many rows it was about. */
uint64
QueryRunOnce(const char *sql, const Oid *types, const Args *args)
{
	KeptQuery	query = {.sql = sql,.nargs = args->count};
	Rows		rows;

	if (args->count > 0)
		memcpy(query.types, types, sizeof(Oid) * args->count);
	rows = QueryRun(&query, args);
	SPI_freeplan(query.plan);
	return rows.count;
}

/* ---------- queries by the usual keys: $1 is the tenant, $2 what is looked for ---------- */

/* Run a query over (tenant). */
Rows
QueryOfTenant(const Call *call, KeptQuery *query)
{
	Args		args = {0};

	ArgTenant(&args, call);
	return QueryRun(query, &args);
}

/* Run a query over (tenant, id). */
Rows
QueryById(const Call *call, KeptQuery *query, const pg_uuid_t *id)
{
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, id);
	return QueryRun(query, &args);
}

/* Run a query over (tenant, name). */
Rows
QueryByName(const Call *call, KeptQuery *query, const char *name)
{
	Args		args = {0};

	ArgTenant(&args, call);
	ArgText(&args, name);
	return QueryRun(query, &args);
}

/* Run a query that makes one JSON; NULL if what it is to be made of is not there. */
Jsonb *
QueryJson(KeptQuery *query, const Args *args)
{
	Rows		rows = QueryRun(query, args);
	Jsonb	   *json = rows.count > 0 ? RowJson(&rows, 0, 1) : NULL;

	RowsFree(&rows);
	return json;
}

/* Run a query over (tenant, id) that makes one JSON; NULL if there is no row. */
Jsonb *
QueryJsonById(const Call *call, KeptQuery *query, const pg_uuid_t *id)
{
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, id);
	return QueryJson(query, &args);
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
