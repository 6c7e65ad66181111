/*
 * translate_call.c
 *	  calls of functions as calls of tools
 *
 * A host lets a model call only the tools that are listed. So a call that an
 * answer names is turned into one of its tool.
 */
#include "mcp/mcp.h"

/* ---------- the tool for a function ---------- */

static const Translation Translations[] = {
	{"advance", "submit_step_result"},
	{"record_tool_result", "submit_step_result", .from = "step_name", .to = "step", .drop = "tool"},
	{"fail_step", "update_step", "action", "fail"},
	{"retry_step", "update_step", "action", "retry"},
	{"skip_step", "update_step", "action", "skip"},
	{"release_step", "update_step", "action", "release"},
	{"heartbeat", "update_step", "action", "heartbeat"},
	{"resume", "submit_user_decision"},
	{"cancel_plan", "modify_plan", "action", "cancel", .from = "reason", .to = "modification_rationale"},
	{"get_plan_context", "get_plan_status", "view", "context", .drop = "session_id"},
	{"get_step_context", "get_plan_status", "view", "context", .from = "step_id", .to = "step"},
	{"why", "get_plan_status", "view", "why"},
	{"handoff", "get_plan_status", "view", "why"},
	{"execution", "get_plan_status", "view", "tree"},
	{"workflow_response", "get_plan_status", "view", "tree", .drop = "detail"},
	{"find_plans", "get_plan_status"},
	{"list_plans", "get_plan_status"},
	{"list_active_plans", "get_plan_status"},
	{"list_checkpoints", "get_plan_status"},
	{"list_workflows", "start_workflow"},
	{"store_output", "store_artifact", "final"},
	{"get_artifact", "search_artifacts"},
	{"get_output", "get_plan_status", "view", "context"}
};

/* Find how a function is called as a tool of another name; NULL if it is not. */
const Translation *
TranslationFind(const char *function)
{
	for (size_t i = 0; i < lengthof(Translations); i++)
		if (strcmp(Translations[i].function, function) == 0)
			return &Translations[i];
	return NULL;
}

/* Name the tool that stands for a function; NULL if none is listed. */
const char *
TranslatedTool(const Request *request, const char *function)
{
	const Translation *t = TranslationFind(function);
	const ModelTool *tool = ModelToolFind(t ? t->tool : function);

	return tool != NULL && ModelToolIsListed(request, tool) ? tool->name : NULL;
}

/* ---------- calls ---------- */

static Jsonb *
AddedParameter(const Translation *t)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	if (t->key != NULL && t->word != NULL)
		JsonPutText(&b, t->key, t->word);
	else if (t->key != NULL)
		JsonPutBool(&b, t->key, true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Turn the arguments of a function into those of its tool. If t is NULL, they are the same. */
Jsonb *
TranslateArguments(const Translation *t, const Jsonb *given)
{
	Jsonb	   *arguments = JsonCopy(given);
	Jsonb	   *renamed = t && t->from ? ArgumentTake(&arguments, t->from) : NULL;

	if (t == NULL)
		return arguments;
	if (t->drop != NULL)
		ArgumentTake(&arguments, t->drop);
	if (renamed != NULL)
		arguments = JsonMerge(arguments, JsonObjectOf(t->to, renamed));
	return JsonMerge(arguments, AddedParameter(t));
}

/* Turn a call of a function, {"function", "arguments"}, into one of its tool. */
Jsonb *
TranslateCall(const Jsonb *call)
{
	char	   *function = JsonGetText(call, "function");
	const Translation *t = function ? TranslationFind(function) : NULL;
	Jsonb	   *arguments = t ? JsonGetJson(call, "arguments") : NULL;
	JsonBuilder b = {0};

	if (t == NULL)
		return unconstify(Jsonb *, call);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "function", t->tool);
	if (JsonIsObject(arguments))
		JsonPutJson(&b, "arguments", TranslateArguments(t, arguments));
	JsonObjectEnd(&b);
	return JsonMerge(call, JsonFinish(&b));
}

/* Check whether a call of a function can be made by a tool. */
static bool
HasTool(const Request *request, const Jsonb *call)
{
	char	   *function = JsonGetText(call, "function");

	return function != NULL && TranslatedTool(request, function) != NULL;
}

/* Turn a call, or each of an array of calls. An array has alternatives; those without a tool are left out. */
Jsonb *
TranslateCalls(const Request *request, const Jsonb *calls)
{
	JsonBuilder b = {0};
	JsonbValue	element;

	if (!JsonIsArray(calls))
		return TranslateCall(calls);
	JsonArrayStart(&b, NULL);
	for (int i = 0; JsonGetIndex(calls, i, &element); i++)
		if (HasTool(request, JsonFromValue(&element)))
			JsonPutJson(&b, NULL, TranslateCall(JsonFromValue(&element)));
	JsonArrayEnd(&b);
	return JsonFinish(&b);
}
