/*
 * workflow.c
 *	  find the stored versions of a workflow
 *
 * Starting a plan takes no lock on the definitions of the tenant. It pins the
 * row of its version (WorkflowPin), so that the version cannot be dropped
 * meanwhile.
 */
#include "define/define.h"

#define NAMES_FOR_HINT		"1000"

/*
 * Find a version, or the newest.
 * 1 version, 2 definition
 */
static KeptQuery ReadQuery = {
	"SELECT version, definition FROM stepwise.workflow"
	" WHERE tenant = $1 AND name = $2 AND ($3 IS NULL OR version = $3)"
	" ORDER BY version DESC LIMIT 1",
	3, {TEXTOID, TEXTOID, INT4OID}
};

/* the same, and lock the row so that it cannot be dropped until the transaction ends */
static KeptQuery PinQuery = {
	"SELECT version, definition FROM stepwise.workflow"
	" WHERE tenant = $1 AND name = $2 AND ($3 IS NULL OR version = $3)"
	" ORDER BY version DESC LIMIT 1 FOR KEY SHARE",
	3, {TEXTOID, TEXTOID, INT4OID}
};

/* 1 name */
static KeptQuery NamesQuery = {
	"SELECT DISTINCT name FROM stepwise.workflow WHERE tenant = $1 ORDER BY name LIMIT " NAMES_FOR_HINT,
	1, {TEXTOID}
};

/* Make the first parameters of a query: tenant, name, and version or null. */
Params
WorkflowParams(const Call *call, const char *name, int version)
{
	Params		params = {0};

	ParamTenant(&params, call);
	ParamText(&params, name);
	if (version)
		ParamInt(&params, version);
	else
		ParamNull(&params);
	return params;
}

/* Run a query over (tenant, name, version or null). */
Rows
WorkflowQuery(KeptQuery *query, const Call *call, const char *name, int version)
{
	Params		params = WorkflowParams(call, name, version);

	return QueryRun(query, &params);
}

/* Find the newest version; 0: there is no such workflow. */
int
WorkflowNewestVersion(Call *call, const char *name)
{
	Rows		rows = WorkflowQuery(&ReadQuery, call, name, 0);
	int			version = rows.count ? RowInt(&rows, 0, 1) : 0;

	RowsFree(&rows);
	return version;
}

/* Check whether a version exists; version 0 means any. */
bool
WorkflowExists(Call *call, const char *name, int version)
{
	Rows		rows = WorkflowQuery(&ReadQuery, call, name, version);

	RowsFree(&rows);
	return rows.count > 0;
}

/* Read the definition of a version, or of the newest; NULL: none. */
Jsonb *
WorkflowDefinition(Call *call, const char *name, int version)
{
	Rows		rows = WorkflowQuery(&ReadQuery, call, name, version);
	Jsonb	   *definition = rows.count ? RowJson(&rows, 0, 2) : NULL;

	RowsFree(&rows);
	return definition;
}

/* ---------- messages ---------- */

/* Make the hint for an unknown workflow or version. */
char *
WorkflowHint(Call *call, const Faults *faults, const char *name)
{
	int			newest = WorkflowNewestVersion(call, name);
	Rows		rows;
	const char **names;
	char	   *hint;

	if (newest)
		return psprintf("Its newest version is %d.", newest);
	rows = QueryOfTenant(call, &NamesQuery);
	names = palloc(sizeof(char *) * (rows.count + 1));
	for (uint64 i = 0; i < rows.count; i++)
		names[i] = RowText(&rows, i, 1);
	hint = WordHint(faults, name, names, rows.count, "workflows");
	RowsFree(&rows);
	return hint;
}

/* Name a workflow, or a version of it, in a message. */
char *
WorkflowLabel(const char *name, int version)
{
	return version ? psprintf("version %d of workflow \"%s\"", version, ShortText(name)) : psprintf("workflow \"%s\"", ShortText(name));
}

/* Raise the error for an unknown workflow or version. */
void
WorkflowNotFound(Call *call, const char *name, int version)
{
	Faults		none = {0};

	ereport(ERROR,
			(errcode(ERRCODE_NAME_NOT_FOUND),
			 errmsg("%s does not exist", WorkflowLabel(name, version)),
			 errhint("%s", WorkflowHint(call, &none, name))));
}

/* ---------- pinning ---------- */

/* Read a version, or the newest, and keep it from being dropped until the transaction ends. */
Jsonb *
WorkflowPin(Call *call, const char *name, int *version)
{
	Rows		rows = WorkflowQuery(&PinQuery, call, name, *version);
	Jsonb	   *definition;

	if (rows.count == 0)
		WorkflowNotFound(call, name, *version);
	*version = RowInt(&rows, 0, 1);
	definition = RowJson(&rows, 0, 2);
	RowsFree(&rows);
	return definition;
}
