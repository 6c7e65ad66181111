/*
 * method.c
 *	  the methods of MCP
 *
 * A new method is a line here, and a function that returns its result.
 */
#include "mcp/mcp.h"

static const Method Methods[] = {
	{"initialize", LEGACY, Initialize},
	{"ping", LEGACY, Ping, .unlogged = true},
	{"logging/setLevel", LEGACY, SetLevel},
	{"server/discover", MODERN, Discover, .caching = CACHE_BRIEFLY},
	{"tools/list", BOTH, ToolsList, .caching = CACHE_BRIEFLY},
	{"tools/call", BOTH, ToolsCall, ToolFaultResult},
	{"prompts/list", BOTH, PromptsList, .caching = CACHE_BRIEFLY},
	{"prompts/get", BOTH, PromptsGet},
	{"completion/complete", BOTH, CompletionComplete},
	{"resources/list", BOTH, ResourcesList, .caching = CACHE_NOT},
	{"resources/templates/list", BOTH, ResourceTemplatesList, .caching = CACHE_BRIEFLY},
	{"resources/read", BOTH, ResourceRead, .caching = CACHE_NOT},
	{"resources/subscribe", LEGACY, ResourcesSubscribe},
	{"resources/unsubscribe", LEGACY, ResourcesUnsubscribe},
	{"subscriptions/listen", MODERN, SubscriptionsListen},
	{"tasks/get", BOTH, TasksGet},
	{"tasks/result", LEGACY, TasksResult},
	{"tasks/list", LEGACY, TasksList},
	{"tasks/cancel", BOTH, TasksCancel},
	{"tasks/update", MODERN, TasksUpdate},
	{"stepwise/work", BOTH, StepwiseWork},
	{"stepwise/changes", BOTH, StepwiseChanges, .unlogged = true}
};

/* Find the method of a request. */
const Method *
MethodFind(Request *request)
{
	Generation	generation = request->modern ? MODERN : LEGACY;

	for (size_t i = 0; i < lengthof(Methods); i++)
		if ((Methods[i].generation & generation) && strcmp(Methods[i].name, request->method) == 0)
			return &Methods[i];
	RequestRefuse(request, RPC_NO_METHOD, NULL, "there is no method \"%s\" in version %s", ShortText(request->method), request->version);
}
