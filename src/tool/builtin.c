/*
 * builtin.c
 *	  the tools that are always there
 *
 * They are SQL functions, called like other tools (api/state_tools.c). Their
 * registration is a table here instead of rows.
 */
#include "tool/tool.h"

typedef struct BuiltIn
{
	const char *name;
	char	   *function;
	char	   *description;
	const char *input_schema;
} BuiltIn;

static const BuiltIn BuiltIns[BUILT_IN_TOOLS] = {
	{"state_read", "stepwise.state_read(jsonb)",
		"Read named state; \"default\" is answered when there is none.",
	"{\"type\": \"object\", \"required\": [\"name\"], \"properties\": {\"name\": {\"type\": \"string\"}, \"default\": {}}}"},
	{"state_write", "stepwise.state_write(jsonb)",
		"Write named state, replacing what is there.",
	"{\"type\": \"object\", \"required\": [\"name\", \"value\"], \"properties\": {\"name\": {\"type\": \"string\"}, \"value\": {}}}"},
	{"state_merge", "stepwise.state_merge(jsonb)",
		"Merge into named state: objects at every depth; arrays and scalars are replaced.",
	"{\"type\": \"object\", \"required\": [\"name\", \"value\"], \"properties\": {\"name\": {\"type\": \"string\"}, \"value\": {}}}"},
};

/* Return the name of a built-in tool by its index; NULL after the last one. */
const char *
BuiltInToolName(int index)
{
	return index < lengthof(BuiltIns) ? BuiltIns[index].name : NULL;
}

/* Find a built-in tool; NULL: there is none of that name. */
Tool *
BuiltInTool(const char *name)
{
	for (size_t i = 0; i < lengthof(BuiltIns); i++)
	{
		if (strcmp(BuiltIns[i].name, name) == 0)
		{
			Tool	   *tool = palloc0(sizeof(Tool));

			tool->name = pstrdup(name);
			tool->function = BuiltIns[i].function;
			tool->description = BuiltIns[i].description;
			tool->input_schema = JsonParse(BuiltIns[i].input_schema);
			tool->expose = true;
			return tool;
		}
	}
	return NULL;
}
