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

/* 1 name */
static KeptQuery NamesQuery = {
	"SELECT DISTINCT name FROM stepwise.workflow WHERE tenant = $1 ORDER BY name LIMIT " NAMES_FOR_HINT,
	1, {TEXTOID}
};

/* Make the key of a version; 0: of all versions, the newest first. */
static Key
WorkflowKey(Call *call, const char *name, int version)
{
	Key			key = {.call = call, .backward = true};

	KeyText(&key, call->tenant_datum);
	KeyText(&key, CStringGetTextDatum(name));
	if (version != 0)
		KeyInt(&key, version);
	return key;
}

/* Make a WorkflowRow from a row of stepwise.workflow. */
static void *
WorkflowMake(TupleTableSlot *slot)
{
	WorkflowRow *row = palloc(sizeof(WorkflowRow));

	row->version = ColumnInt(slot, WORKFLOW_COL_VERSION);
	row->definition = ColumnField(slot, WORKFLOW_COL_DEFINITION);
	row->created_at = ColumnTime(slot, WORKFLOW_COL_CREATED_AT);
	return row;
}

/* Find a version, or the newest if version is 0; NULL: none. */
WorkflowRow *
WorkflowFind(Call *call, const char *name, int version)
{
	Key			key = WorkflowKey(call, name, version);

	return TableRead("workflow", "workflow_pkey", &key, NULL, NULL, WorkflowMake);
}

static void *
VersionMake(TupleTableSlot *slot)
{
	int		   *version = palloc(sizeof(int));

	*version = ColumnInt(slot, WORKFLOW_COL_VERSION);
	return version;
}

/* List the numbers of all versions of a workflow, the newest first. */
List *
WorkflowVersions(Call *call, const char *name)
{
	Key			key = WorkflowKey(call, name, 0);

	return TableReadAll("workflow", "workflow_pkey", &key, VersionMake);
}

static void *
NameMake(TupleTableSlot *slot)
{
	return ColumnText(slot, WORKFLOW_COL_NAME);
}

/* Find the first name after another; NULL: there is none. */
char *
WorkflowAfter(Call *call, const char *name)
{
	Key			key = {.call = call};

	KeyText(&key, call->tenant_datum);
	KeyTextAbove(&key, name);
	return TableRead("workflow", "workflow_pkey", &key, NULL, NULL, NameMake);
}

/* Count the workflows. */
int
WorkflowCount(Call *call)
{
	Key			key = {.call = call};
	const char *last = NULL;
	int			count = 0;
	ListCell   *cell;

	KeyText(&key, call->tenant_datum);
	foreach(cell, TableReadAll("workflow", "workflow_pkey", &key, NameMake))
	{
		if (last == NULL || strcmp(last, lfirst(cell)) != 0)
			count++;
		last = lfirst(cell);
	}
	return count;
}

/* Find the newest version; 0: there is no such workflow. */
int
WorkflowNewestVersion(Call *call, const char *name)
{
	const WorkflowRow *row = WorkflowFind(call, name, 0);

	return row ? row->version : 0;
}

/* Check whether a version exists; version 0 means any. */
bool
WorkflowExists(Call *call, const char *name, int version)
{
	return WorkflowFind(call, name, version) != NULL;
}

/* Read the definition of a version, or of the newest; NULL: none. */
Jsonb *
WorkflowDefinition(Call *call, const char *name, int version)
{
	const WorkflowRow *row = WorkflowFind(call, name, version);

	return row ? JsonOf(row->definition) : NULL;
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
	Key			key = WorkflowKey(call, name, *version);
	WorkflowRow *row;

	/* if the newest version was dropped while we waited, there may be another */
	do
		row = TablePin("workflow", "workflow_pkey", &key, WorkflowMake);
	while (row == NULL && WorkflowExists(call, name, *version));
	if (row == NULL)
		WorkflowNotFound(call, name, *version);
	*version = row->version;
	return JsonOf(row->definition);
}

/* ---------- dropping ---------- */

/* Lock a version, or all, so that no plan starts from it. Returns the numbers, the newest first. */
List *
WorkflowLock(Call *call, const char *name, int version)
{
	Key			key = WorkflowKey(call, name, version);

	return TableLockAll("workflow", "workflow_pkey", &key, VersionMake);
}

/* Delete a version, or all, by a statement. */
static void
DeleteByStatement(Call *call, const char *name, int version)
{
	static KeptQuery delete = {
		"DELETE FROM stepwise.workflow WHERE tenant = $1 AND name = $2 AND ($3 = 0 OR version = $3)",
		3, {TEXTOID, TEXTOID, INT4OID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamText(&params, name);
	ParamInt(&params, version);
	QueryRun(&delete, &params);
}

/* Delete a version, or all. */
void
WorkflowDelete(Call *call, const char *name, int version)
{
	Key			key = WorkflowKey(call, name, version);

	if (TableIsAltered(call, "workflow"))
		DeleteByStatement(call, name, version);
	else
		TableDelete("workflow", "workflow_pkey", &key, NULL, NULL);
}
