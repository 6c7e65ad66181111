/*
 * task_support.c
 *	  which tools can be tasks
 */
#include "mcp/mcp.h"

/* the tools of ours that can be; exposed tools can be, too */
static const char *const TaskTools[] = {"run", "start_workflow"};

/* Check whether a client of the legacy generation has tasks. One of its versions does. */
bool
VersionHasTasks(const Request *request)
{
	return !request->modern && strcmp(request->version, LEGACY_VERSION) == 0;
}

/* Check whether a tool of ours can be a task. */
bool
ToolCanBeTask(const char *name)
{
	return NameIndex(name, TaskTools, lengthof(TaskTools)) >= 0;
}

/* Put that a tool can be a task, for clients whose version tells it that way. */
void
PutTaskSupport(JsonBuilder *b, const Request *request)
{
	if (VersionHasTasks(request))
		JsonPutJson(b, "execution", JsonTextOf("taskSupport", "optional"));
}
