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
 * a key, the tenant and the column of the key.
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
		ParamDatum(&params, key->columns[0].sk_argument);
		types[params.count - 1] = UUIDOID;
	}
	if (QueryRunOnce(sql, types, &params) != 1)
		elog(ERROR, "row of table %s could not be saved", RelationGetRelationName(relation));
}

/* Return the name of the first column of a table, which has the id of its rows. */
static const char *
IdColumn(Relation relation)
{
	return quote_identifier(NameStr(TupleDescAttr(RelationGetDescr(relation), 0)->attname));
}

/* Update a row by a statement. The key is the id. */
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
			appendStringInfo(&sql, "%s %s = $%d", set > 0 ? "," : "", quote_identifier(NameStr(TupleDescAttr(desc, i)->attname)), set + 1);
			set++;
		}
	if (key->count != 1)
		elog(ERROR, "key of table %s has %d columns", RelationGetRelationName(relation), key->count);
	appendStringInfo(&sql, " WHERE tenant = $%d AND %s = $%d", set + 1, IdColumn(relation), set + 2);
	StatementRun(relation, sql.data, changes, key);
}

/* Delete a row by a statement. */
void
StatementDelete(const Call *call, Relation relation, const pg_uuid_t *id)
{
	static const Oid types[] = {TEXTOID, UUIDOID};
	Params		params = {0};

	ParamDatum(&params, call->tenant_datum);
	ParamUuid(&params, id);
	(void) QueryRunOnce(psprintf("DELETE FROM stepwise.%s WHERE tenant = $1 AND %s = $2",
								 quote_identifier(RelationGetRelationName(relation)), IdColumn(relation)), types, &params);
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
			appendStringInfo(&names, "%s%s", set > 0 ? ", " : "", quote_identifier(NameStr(TupleDescAttr(desc, i)->attname)));
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
