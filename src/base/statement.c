/*
 * statement.c
 *	  write rows of our own tables by a statement
 *
 * This is for tables to which a user has added something (altered.c). The
 * statement does all that any UPDATE, DELETE or INSERT does, at the price of the
 * executor.
 */
#include "base/base.h"

#include "utils/rel.h"

/*
 * Run a statement whose parameters are the columns to set and then, if there is
 * a key, the tenant and the columns of the key.
 */
static void
StatementRun(Relation relation, const char *sql, const Changes *changes, const Key *key)
{
	TupleDesc	desc = RelationGetDescr(relation);
	Params		params = {0};
	Oid			types[QUERY_MAX_PARAMS] = {0};

	for (int i = 0; i < desc->natts; i++)
	{
		if (!changes->replaces[i])
			continue;
		if (changes->nulls[i])
			ParamNull(&params);
		else
			ParamDatum(&params, changes->values[i]);
		types[params.count - 1] = TupleDescAttr(desc, i)->atttypid;
	}
	if (key != NULL)
	{
		ParamDatum(&params, key->call->tenant_datum);
		types[params.count - 1] = TEXTOID;
	}
	for (int i = 0; key != NULL && i < key->count; i++)
	{
		ParamDatum(&params, key->columns[i].sk_argument);
		types[params.count - 1] = TupleDescAttr(desc, KeyColumn(key, i) - 1)->atttypid;
	}
	if (QueryRunOnce(sql, types, &params) != 1)
		elog(ERROR, "row of table %s could not be saved", RelationGetRelationName(relation));
}

static const char *
ColumnName(Relation relation, AttrNumber column)
{
	return quote_identifier(NameStr(TupleDescAttr(RelationGetDescr(relation), column - 1)->attname));
}

/* Update a row by a statement. */
void
StatementUpdate(Relation relation, const Key *key, const Changes *changes)
{
	TupleDesc	desc = RelationGetDescr(relation);
	StringInfoData sql;
	int			set = 0;

	initStringInfo(&sql);
	appendStringInfo(&sql, "UPDATE stepwise.%s SET", quote_identifier(RelationGetRelationName(relation)));
	for (int i = 0; i < desc->natts; i++)
		if (changes->replaces[i])
		{
			appendStringInfo(&sql, "%s %s = $%d", set > 0 ? "," : "", ColumnName(relation, i + 1), set + 1);
			set++;
		}
	appendStringInfo(&sql, " WHERE tenant = $%d", ++set);
	for (int i = 0; i < key->count; i++)
		appendStringInfo(&sql, " AND %s = $%d", ColumnName(relation, KeyColumn(key, i)), ++set);
	StatementRun(relation, sql.data, changes, key);
}

/* Delete a row by a statement. The id is its first column. */
void
StatementDelete(const Call *call, Relation relation, const pg_uuid_t *id)
{
	static const Oid types[] = {TEXTOID, UUIDOID};
	Params		params = {0};

	ParamDatum(&params, call->tenant_datum);
	ParamUuid(&params, id);
	(void) QueryRunOnce(psprintf("DELETE FROM stepwise.%s WHERE tenant = $1 AND %s = $2",
								 quote_identifier(RelationGetRelationName(relation)), ColumnName(relation, 1)), types, &params);
}

/* Insert a row by a statement. */
void
StatementInsert(Relation relation, const Changes *changes)
{
	TupleDesc	desc = RelationGetDescr(relation);
	StringInfoData names;
	StringInfoData sql;
	int			set = 0;

	initStringInfo(&names);
	initStringInfo(&sql);
	for (int i = 0; i < desc->natts; i++)
		if (changes->replaces[i])
		{
			appendStringInfo(&names, "%s%s", set > 0 ? ", " : "", ColumnName(relation, i + 1));
			appendStringInfo(&sql, "%s$%d", set > 0 ? ", " : "", set + 1);
			set++;
		}
	StatementRun(relation, psprintf("INSERT INTO stepwise.%s (%s) VALUES (%s)",
									quote_identifier(RelationGetRelationName(relation)), names.data, sql.data), changes, NULL);
}

/* Write the audit entries of a call, before a statement fires triggers, which may look at them. */
void
StatementShowLog(Call *call)
{
	if (call->save != NULL)
		call->save(call, call, SAVE_LOG);
}
