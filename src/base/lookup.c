/*
 * lookup.c
 *	  queries by the usual keys: the tenant, and an id or a name in it
 *
 * Most queries of the engine ask for one thing of the caller's tenant. Their
 * parameters are $1, the tenant, and $2, what is looked for. What is read from
 * a row beside the plain types (query.c) is here too.
 */
#include "api/api.h"

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
