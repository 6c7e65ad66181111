/*
 * tool.c
 *	  find registered tools
 *
 * A tool with a function runs in the database. A tool without one, and any
 * name that was never registered, is called by the client. Built-in tools need
 * no row, and cannot be replaced.
 */
#include "tool/tool.h"

#include "access/htup_details.h"

/* Refuse a text that cannot be the name of a tool. */
void
CheckToolName(const char *name)
{
	CheckLine(name, "the name of a tool");
}

/* columns of stepwise.tool, in the order of its definition */
enum
{
	TOOL_COL_TENANT = 1, TOOL_COL_NAME, TOOL_COL_FUNCTION, TOOL_COL_INPUT_SCHEMA, TOOL_COL_DESCRIPTION, TOOL_COL_RETRYABLE,
	TOOL_COL_EXPOSE
};

/* Read a text from a row; NULL if it is null. */
static char *
ToolText(TupleTableSlot *slot, int column)
{
	bool		isnull;
	Datum		value = slot_getattr(slot, column, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

/* Read a flag from a row. */
static bool
ToolFlag(TupleTableSlot *slot, int column)
{
	bool		isnull;

	return DatumGetBool(slot_getattr(slot, column, &isnull));
}

/* Make a Tool from a row of stepwise.tool. */
static void *
ToolMake(TupleTableSlot *slot)
{
	Tool	   *tool = palloc0(sizeof(Tool));
	bool		isnull;
	Datum		schema = slot_getattr(slot, TOOL_COL_INPUT_SCHEMA, &isnull);

	tool->input_schema = isnull ? NULL : DatumGetJsonbPCopy(schema);
	tool->name = ToolText(slot, TOOL_COL_NAME);
	tool->function = ToolText(slot, TOOL_COL_FUNCTION);
	tool->description = ToolText(slot, TOOL_COL_DESCRIPTION);
	tool->retryable = ToolFlag(slot, TOOL_COL_RETRYABLE);
	tool->expose = ToolFlag(slot, TOOL_COL_EXPOSE);
	return tool;
}

/* Read the row of a tool; NULL: there is none. */
static Tool *
ToolRead(Call *call, const char *name)
{
	Key			key = {.call = call};

	KeyText(&key, call->tenant_datum);
	KeyText(&key, CStringGetTextDatum(name));
	return TableRead("tool", "tool_pkey", &key, NULL, NULL, ToolMake);
}

/* Find a tool by its name; NULL: it was never registered. */
Tool *
ToolFind(Call *call, const char *name)
{
	Tool	   *tool = BuiltInTool(name);

	return tool != NULL ? tool : ToolRecall(call, name, ToolRead);
}

/* Say whether a tool is registered with a function, so that a run can call it. */
bool
ToolIsInDatabase(Call *call, const char *name)
{
	Tool	   *tool = ToolFind(call, name);

	return tool != NULL && tool->function != NULL;
}

/* columns of the query that lists tools */
enum
{
	T_NAME = 1, T_FUNCTION, T_RETRYABLE, T_EXPOSE, T_INPUT_SCHEMA, T_DESCRIPTION
};

/* Read a tool from a row. */
static Tool *
RowTool(const Rows *rows, uint64 row)
{
	Tool	   *tool = palloc0(sizeof(Tool));

	tool->name = RowText(rows, row, T_NAME);
	tool->function = RowText(rows, row, T_FUNCTION);
	tool->input_schema = RowJson(rows, row, T_INPUT_SCHEMA);
	tool->description = RowText(rows, row, T_DESCRIPTION);
	tool->retryable = RowBool(rows, row, T_RETRYABLE);
	tool->expose = RowBool(rows, row, T_EXPOSE);
	return tool;
}

/*
 * List registered tools by name, without the built-in ones: at most max after
 * a name (NULL: from the first). Schemas and descriptions of more than "cut"
 * bytes are cut.
 */
List *
ToolList(Call *call, const char *after, int max, int cut)
{
	static KeptQuery list = {
		"SELECT t.name, t.function, t.retryable, t.expose,"
		" stepwise.cut_json(t.input_schema, $4, 'list_tools', 'after', coalesce(pg_catalog.lag(t.name) OVER (ORDER BY t.name), $2), 'max'),"
		" stepwise.cut_text(t.description, $4, 'list_tools')"
		" FROM (SELECT * FROM stepwise.tool AS x WHERE x.tenant = $1 AND x.name > $2 ORDER BY x.tenant, x.name LIMIT $3) AS t"
		" ORDER BY t.name",
		4, {TEXTOID, TEXTOID, INT4OID, INT4OID}
	};
	Params		params = {0};
	List	   *tools = NIL;
	Rows		rows;

	ParamTenant(&params, call);
	ParamText(&params, after ? after : "");
	ParamInt(&params, max);
	ParamInt(&params, cut);
	rows = QueryRun(&list, &params);
	for (uint64 i = 0; i < rows.count; i++)
		tools = lappend(tools, RowTool(&rows, i));
	RowsFree(&rows);
	return tools;
}

/* Count the registered tools. */
int
ToolCount(Call *call)
{
	static KeptQuery count = {"SELECT pg_catalog.count(*)::int FROM stepwise.tool AS t WHERE t.tenant = $1", 1, {TEXTOID}};
	Rows		rows = QueryOfTenant(call, &count);

	return RowInt(&rows, 0, 1);
}
