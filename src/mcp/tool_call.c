/*
 * tool_call.c
 *	  tools/call
 *
 * A name is looked up among the tools for models, the functions, and the
 * exposed tools, in this order. Names that are not listed can be called too,
 * and names that other engines of plans have.
 */
#include "mcp/mcp.h"

/* ---------- tools for models ---------- */

static bool
ToolTakes(const ModelTool *tool, const char *name)
{
	for (const ToolParam *p = tool->params; p->name != NULL; p++)
		if (strcmp(p->name, name) == 0)
			return true;
	for (int i = 0; i < MODEL_TOOL_FUNCTIONS && tool->functions[i] != NULL; i++)
	{
		const Callable *callable = CallableFind(tool->functions[i]);

		if (callable != NULL && FunctionHas(callable, name))
			return true;
	}
	return false;
}

pg_noreturn static void
UnknownParameterRefuse(const ModelTool *tool, const char *name)
{
	const char *names[32];
	const char *nearest;
	StringInfoData list;
	int			count = 0;

	initStringInfo(&list);
	for (const ToolParam *p = tool->params; p->name != NULL && count < lengthof(names); p++)
	{
		appendStringInfo(&list, "%s%s", count > 0 ? ", " : "", p->name);
		names[count++] = p->name;
	}
	nearest = NearestWord(name, names, count);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_DEFINITION),
			 errmsg("tool %s has no parameter \"%s\"", tool->name, ShortText(name)),
			 errdetail("Its parameters are: %s.", list.data),
			 nearest ? errhint("Perhaps \"%s\" is meant.", nearest) : errhint("Leave it out.")));
}

static void
CheckNotMissing(const ModelTool *tool, const ToolParam *param, const Jsonb *arguments)
{
	JsonbValue	value;

	if (param->required && !JsonGet(arguments, param->name, &value))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("parameter \"%s\" of tool %s is missing", param->name, tool->name),
				 errhint("Add it: %s.", param->description)));
}

/* Refuse unknown parameters, then missing ones: a misspelt parameter is also a missing one. */
static void
CheckParameters(const ModelTool *tool, const Jsonb *arguments)
{
	int			count;
	const char **names = JsonKeys(arguments, &count);

	for (int i = 0; i < count; i++)
		if (!ToolTakes(tool, names[i]))
			UnknownParameterRefuse(tool, names[i]);
	for (const ToolParam *p = tool->params; p->name != NULL; p++)
		CheckNotMissing(tool, p, arguments);
}

static Jsonb *
ModelToolCall(Request *request, const ModelTool *tool, Jsonb *arguments)
{
	CheckParameters(tool, arguments);
	request->reads = tool->reads;
	if (tool->call != NULL)
		return tool->call(request, arguments);
	return FunctionApply(request, tool->functions[0], arguments);
}

/* ---------- what the call says ---------- */

/* Take out how long the result may be, and the lists in it. */
static void
ReadLimits(Request *request, Jsonb **arguments)
{
	int			max_bytes = ArgumentTakeInt(arguments, "max_bytes", request->max_bytes);

	if (max_bytes < RESULT_BYTES_MIN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("max_bytes must be at least %d, not %d", RESULT_BYTES_MIN, max_bytes),
				 errhint("Ask for %d to %d; more are cut to that. The default is %d.", RESULT_BYTES_MIN, RESULT_BYTES_MAX, RESULT_BYTES)));
	RequestAllow(request, max_bytes);
	request->max_entries = CheckMax(ArgumentTakeInt(arguments, "max", request->max_entries));
}

/* Note the plan for the log: the one that the call names, or else the one that the answer does. */
static void
NotePlan(Request *request, const Jsonb *arguments, const Jsonb *answer)
{
	static const char *const keys[] = {"planId", "plan_id", "task_id"};
	Jsonb	   *submitted = JsonGetJson(answer, "submitted");

	RequestNotePlan(request, JsonGetText(arguments, "plan_id"));
	for (size_t i = 0; i < lengthof(keys); i++)
		RequestNotePlan(request, JsonGetText(submitted ? submitted : answer, keys[i]));
}

pg_noreturn static void
UnknownToolRefuse(Request *request, const char *name)
{
	const char *names[MODEL_TOOLS];
	const char *nearest;

	for (int i = 0; i < MODEL_TOOLS; i++)
		names[i] = ModelTools[i].name;
	nearest = NearestWord(name, names, MODEL_TOOLS);
	RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "unknown tool \"%s\"%s", ShortText(name),
				  nearest ? psprintf("; perhaps \"%s\" is meant", nearest) : "");
}

/* ---------- the call ---------- */

/* Call a function by its own name. */
static Jsonb *
FunctionCall(Request *request, const char *name, Jsonb *arguments)
{
	return strcmp(name, "run") == 0 ? RunPlan(request, arguments) : FunctionApply(request, name, arguments);
}

/* Call a tool of ours. Returns its answer; NULL if there is none of that name. */
static Jsonb *
OwnCall(Request *request, const char *name, const Jsonb *given)
{
	const ModelTool *tool = request->all_tools && FunctionOfTool(name) ? NULL : ModelToolFind(name);
	Jsonb	   *arguments;
	Jsonb	   *answer;

	if (BuiltInTool(name) != NULL || (tool == NULL && FunctionOfTool(name) == NULL))
		return NULL;
	arguments = ArgumentsInSnakeCase(given);
	RequestNotePlan(request, JsonGetText(arguments, "plan_id"));
	ReadLimits(request, &arguments);
	answer = tool ? ModelToolCall(request, tool, arguments) : FunctionCall(request, name, arguments);
	NotePlan(request, arguments, answer);
	return answer;
}

/* Turn the answer of a tool of ours into its result. Of variables, only our own are not values of users. */
static Jsonb *
OwnResult(Request *request, const char *name, const Jsonb *answer)
{
	static const char *const ours = "_workflow.progress";
	Jsonb	   *progress;

	if (!AnswersUserValues(name))
		return ToolResult(request, TranslateAnswer(request, answer));
	progress = CutLists(JsonGetJson(answer, ours), request->max_entries);
	return ToolResult(request, JsonMerge(answer, JsonObjectOf(ours, progress)));
}

/* Call a tool of ours, or an exposed one. */
static Jsonb *
AnyCall(Request *request, const char *name, const Jsonb *arguments)
{
	Jsonb	   *result = TaskCall(request, name, arguments);
	Jsonb	   *answer;
	Jsonb	   *question;

	if (result != NULL)
		return result;
	answer = AnswerAfterInput(request, name, arguments);
	if (answer == NULL)
		answer = OwnCall(request, name, arguments);
	if (request->comes_again)
		return JsonEmptyObject();
	if (answer != NULL)
	{
		question = ToolQuestion(request, name, answer);
		return question ? question : OwnResult(request, name, answer);
	}
	result = ExposedCall(request, name, arguments);
	if (result == NULL)
		UnknownToolRefuse(request, name);
	return result;
}

/* Call a tool. */
Jsonb *
ToolsCall(Request *request)
{
	char	   *name = ParamRequiredText(request, "name");

	request->tool = name;
	return AnyCall(request, NameMeant(name), ParamObject(request, "arguments"));
}
