/*
 * tool.c
 *	  find registered tools
 *
 * A tool with a function runs in the database. A tool without one, and any
 * name that was never registered, is called by the client. Built-in tools need
 * no row, and cannot be replaced.
 */
#include "tool/tool.h"

/* Refuse a text that cannot be the name of a tool. */
void
CheckToolName(const char *name)
{
	CheckLine(name, "the name of a tool");
}

/* columns of the queries that read tools */
enum
{
	T_NAME = 1, T_FUNCTION, T_INPUT_SCHEMA, T_DESCRIPTION, T_RETRYABLE, T_EXPOSE
};
#define SELECT_TOOLS \
	"SELECT t.name, t.function, t.input_schema, t.description, t.retryable, t.expose FROM stepwise.tool AS t"

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

/* Find a tool by its name; NULL: it was never registered. */
Tool *
ToolFind(Call *call, const char *name)
{
	static KeptQuery find = {SELECT_TOOLS " WHERE t.tenant = $1 AND t.name = $2", 2, {TEXTOID, TEXTOID}};
	Tool	   *tool = BuiltInTool(name);
	Rows		rows;

	if (tool != NULL)
		return tool;
	rows = QueryByName(call, &find, name);
	if (rows.count > 0)
		tool = RowTool(&rows, 0);
	RowsFree(&rows);
	return tool;
}

/* Say whether a tool is registered with a function, so that a run can call it. */
bool
ToolIsInDatabase(Call *call, const char *name)
{
	Tool	   *tool = ToolFind(call, name);

	return tool != NULL && tool->function != NULL;
}

/* List the registered tools by name, without the built-in ones. */
List *
ToolList(Call *call)
{
	static KeptQuery list = {SELECT_TOOLS " WHERE t.tenant = $1 ORDER BY t.name", 1, {TEXTOID}};
	Rows		rows = QueryOfTenant(call, &list);
	List	   *tools = NIL;

	for (uint64 i = 0; i < rows.count; i++)
		tools = lappend(tools, RowTool(&rows, i));
	RowsFree(&rows);
	return tools;
}
