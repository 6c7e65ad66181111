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

/* functions that are never tools: for the plumbing of a session or a table, or for who looks after the database */
static const char *const NoTools[] = {"enter_tenant", "step_fits", "plan_fits", "drop_workflow"};

/* Find the function that is a tool of this name; NULL if there is none. */
const Callable *
FunctionOfTool(const char *name)
{
	return NameIndex(name, NoTools, lengthof(NoTools)) < 0 ? CallableFind(name) : NULL;
}

/* Check whether a name is that of a tool of ours, so that a registered one is hidden. */
bool
IsOwnTool(const char *name)
{
	const char *meant = NameMeant(name);

	return ModelToolFind(meant) != NULL || FunctionOfTool(meant) != NULL;
}

/* Check whether the answer of a function has the names and values of users alone. */
bool
AnswersUserValues(const char *name)
{
	return strcmp(name, "task_variables") == 0;
}
