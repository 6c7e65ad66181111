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

/* columns of stepwise.tool, in the order of its definition */
enum
{
	TOOL_COL_TENANT, TOOL_COL_NAME, TOOL_COL_FUNCTION, TOOL_COL_INPUT_SCHEMA, TOOL_COL_DESCRIPTION, TOOL_COL_RETRYABLE,
	TOOL_COL_EXPOSE
};

/* Make a Tool from a row of stepwise.tool, without its schema and its description. */
static Tool *
ToolBrief(TupleTableSlot *slot)
{
	Tool	   *tool = palloc0(sizeof(Tool));

	tool->name = ColumnText(slot, TOOL_COL_NAME);
	tool->function = ColumnText(slot, TOOL_COL_FUNCTION);
	tool->retryable = ColumnBool(slot, TOOL_COL_RETRYABLE);
	tool->expose = ColumnBool(slot, TOOL_COL_EXPOSE);
	return tool;
}

/* Make a Tool from a row of stepwise.tool. */
static void *
ToolMake(TupleTableSlot *slot)
{
	Tool	   *tool = ToolBrief(slot);

	tool->input_schema = ColumnJson(slot, TOOL_COL_INPUT_SCHEMA);
	tool->description = ColumnText(slot, TOOL_COL_DESCRIPTION);
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

/* ---------- lists ---------- */

/* a tool with what may be cut, as it is stored */
typedef struct StoredTool
{
	Tool	   *tool;
	struct varlena *input_schema;
	struct varlena *description;
} StoredTool;

static void *
StoredToolMake(TupleTableSlot *slot)
{
	StoredTool *stored = palloc(sizeof(StoredTool));

	stored->tool = ToolBrief(slot);
	stored->input_schema = ColumnField(slot, TOOL_COL_INPUT_SCHEMA);
	stored->description = ColumnField(slot, TOOL_COL_DESCRIPTION);
	return stored;
}

/* Read rows of tools in the order of their names, at most max after a name (NULL: from the first). */
static List *
ToolRows(Call *call, const char *after, TupleMake make, int max)
{
	Key			key = {.call = call};

	KeyText(&key, call->tenant_datum);
	if (after != NULL)
		KeyTextAbove(&key, after);
	return TableReadSome("tool", "tool_pkey", &key, NULL, NULL, make, max);
}

/*
 * List registered tools by name, without the built-in ones: at most max after
 * a name (NULL: from the first). Schemas and descriptions of more than "cut"
 * bytes are cut.
 */
List *
ToolList(Call *call, const char *after, int max, int cut)
{
	List	   *tools = NIL;
	ReadingFunction reader = {"list_tools", "after", after ? after : "", "max"};
	ListCell   *cell;

	foreach(cell, ToolRows(call, after, StoredToolMake, max))
	{
		const StoredTool *stored = lfirst(cell);
		Tool	   *tool = stored->tool;

		tool->input_schema = CutJson(stored->input_schema, cut, &reader);
		tool->description = stored->description ? CutField(stored->description, cut, reader.function) : NULL;
		tools = lappend(tools, tool);
		reader.id = tool->name;
	}
	return tools;
}

static void *
ToolName(TupleTableSlot *slot)
{
	return ColumnText(slot, TOOL_COL_NAME);
}

/* List the names of registered tools, without the built-in ones, at most max. */
List *
ToolNames(Call *call, int max)
{
	return ToolRows(call, NULL, ToolName, max);
}

/* Count the registered tools. */
int
ToolCount(Call *call)
{
	return list_length(ToolNames(call, INT_MAX));
}
