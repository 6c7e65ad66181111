/*
 * tool_name.c
 *	  names of tools
 */
#include "mcp/mcp.h"

/* other names of tools and functions */
static const struct
{
	const char *alias;
	const char *name;
}			Aliases[] = {
	{"create_research_plan", "create_plan"},
	{"get_research_context", "get_plan_context"},
	{"store_research", "store_artifact"},
	{"store_research_output", "store_output"},
	{"search_sources", "search_artifacts"}
};

/* Find the name that is meant by one that another engine of plans has. */
const char *
NameMeant(const char *name)
{
	for (size_t i = 0; i < lengthof(Aliases); i++)
		if (strcmp(Aliases[i].alias, name) == 0)
			return Aliases[i].name;
	return name;
}

/* Check whether a name is that of a tool of ours, so that a registered one is hidden. */
bool
IsOwnTool(const char *name)
{
	const char *meant = NameMeant(name);

	return ModelToolFind(meant) != NULL || CallableFind(meant) != NULL;
}

/* Check whether the answer of a function has the names and values of users alone. */
bool
AnswersUserValues(const char *name)
{
	return strcmp(name, "task_variables") == 0;
}
