/*
 * task_support.c
 *	  which tools can be tasks
 */
#include "mcp/mcp.h"

#define TASKS_EXTENSION	"io.modelcontextprotocol/tasks"

/* the tools of ours that can be; exposed tools can be, too */
static const char *const TaskTools[] = {"run", "start_workflow"};

/* Check whether a client of the legacy generation has tasks. One of its versions does. */
bool
VersionHasTasks(const Request *request)
{
	return !request->modern && strcmp(request->version, LEGACY_VERSION) == 0;
}

/* Check whether a modern client has declared that it knows tasks. */
bool
ClientKnowsTasks(const Request *request)
{
	Jsonb	   *extensions = JsonGetJson(request->capabilities, "extensions");
	JsonbValue	value;

	return extensions != NULL && JsonIsObject(extensions) && JsonGet(extensions, TASKS_EXTENSION, &value);
}

/* Refuse a modern client that has not declared that it knows tasks. */
void
CheckKnowsTasks(Request *request)
{
	if (request->modern && !ClientKnowsTasks(request))
		RequestRefuse(request, RPC_NO_CAPABILITY,
					  JsonParse("{\"requiredCapabilities\": {\"extensions\": {\"" TASKS_EXTENSION "\": {}}}}"),
					  "the client has not declared the extension " TASKS_EXTENSION);
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
