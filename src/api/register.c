/*
 * register.c
 *	  the register of tools, and of functions that read resources
 *
 * Only the owner of the extension changes the register. tool.c and resource.c
 * read it.
 */
#include "api/api.h"

#define TOOL_HINT \
	"A tool is a function that takes its arguments as one jsonb and returns its result as jsonb."
#define RESOURCE_HINT \
	"A resource function takes the URI as one text, or as jsonb {\"uri\": ...}, and returns the content as jsonb."

/* ---------- checks ---------- */

static void
CheckNotBuiltIn(const char *name)
{
	if (BuiltInTool(name) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("tool \"%s\" is built in", name),
				 errhint("Choose another name; stepwise.list_tools() lists those in use.")));
}

static void
CheckNotOwnScheme(const char *pattern)
{
	if (strncmp(pattern, OWN_SCHEME, strlen(OWN_SCHEME)) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("resources of %s are built in", OWN_SCHEME),
				 errhint("Choose another scheme, such as docs://*.")));
}

static void
CheckGiven(FunctionCallInfo fcinfo, int n, const char *what, const char *hint)
{
	if (PG_ARGISNULL(n))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("%s must not be null", what),
				 errhint("%s", hint)));
}

/* Raise the error that a tool or a resource is not registered. */
static void
NotRegistered(const char *kind, const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_NAME_NOT_FOUND),
			 errmsg("%s \"%s\" is not registered", kind, name),
			 strcmp(kind, "resource") == 0 ? errhint("Table stepwise.resource has what is.")
			 : errhint("stepwise.list_tools() lists what is.")));
}

/* ---------- tools ---------- */

/* Build the answer of register_tool. */
static Jsonb *
ToolAnswer(const Tool *tool, bool replaced)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", tool->name);
	JsonPutText(&b, "function", tool->function);
	JsonPutBool(&b, "inDatabase", tool->function != NULL);
	JsonPutBool(&b, "replaced", replaced);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Put a tool as list_tools shows it. */
static void
PutTool(JsonBuilder *b, const Tool *tool, bool built_in)
{
	JsonObjectStart(b, NULL);
	JsonPutText(b, "name", tool->name);
	if (tool->description != NULL)
		JsonPutText(b, "description", tool->description);
	if (tool->input_schema != NULL)
		JsonPutJson(b, "inputSchema", tool->input_schema);
	if (tool->function != NULL)
		JsonPutText(b, "function", tool->function);
	JsonPutBool(b, "inDatabase", tool->function != NULL);
	JsonPutBool(b, "retryable", tool->retryable);
	JsonPutBool(b, "expose", tool->expose);
	JsonPutBool(b, "builtIn", built_in);
	JsonObjectEnd(b);
}

/* Compute a digest of a whole registration, as list_tools shows it. */
static char *
ToolDigest(const Tool *tool)
{
	JsonBuilder b = {0};

	PutTool(&b, tool, false);
	return DigestText(JsonFinish(&b));
}

/* Write the audit entry of a change of the register. */
static void
AuditRegister(Call *call, const char *action, const Jsonb *detail)
{
	AuditAppendPlanless(call, "plan_modified", JsonMerge(JsonTextOf("action", action), detail));
}

/* Store a tool. Returns true if it replaces one of the same name. */
static bool
ToolStore(Call *call, const Tool *tool)
{
	static KeptQuery store = {
		"WITH before AS (SELECT t.name FROM stepwise.tool AS t WHERE t.tenant = $1 AND t.name = $2)"
		" INSERT INTO stepwise.tool (tenant, name, function, input_schema, description, retryable, expose)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7)"
		" ON CONFLICT (tenant, name) DO UPDATE SET function = excluded.function, input_schema = excluded.input_schema,"
		" description = excluded.description, retryable = excluded.retryable, expose = excluded.expose"
		" RETURNING EXISTS (SELECT FROM before)",
		7, {TEXTOID, TEXTOID, TEXTOID, JSONBOID, TEXTOID, BOOLOID, BOOLOID}
	};
	Params		params = {0};
	Rows		rows;

	ParamTenant(&params, call);
	ParamText(&params, tool->name);
	ParamText(&params, tool->function);
	ParamVarlena(&params, tool->input_schema);
	ParamText(&params, tool->description);
	ParamBool(&params, tool->retryable);
	ParamBool(&params, tool->expose);
	rows = QueryRun(&store, &params);
	return RowBool(&rows, 0, 1);
}

/* Read the arguments of register_tool, and check them as the caller. */
static Tool
ArgumentTool(FunctionCallInfo fcinfo)
{
	Tool		tool = {.name = ArgumentText(fcinfo, 0)};

	CheckToolName(tool.name);
	CheckNotBuiltIn(tool.name);
	if (!PG_ARGISNULL(1))
		tool.function = FunctionSignature(PG_GETARG_OID(1), JSONBOID, TOOL_HINT);
	tool.input_schema = ArgumentJson(fcinfo, 2);
	tool.description = ArgumentText(fcinfo, 3);
	CheckGiven(fcinfo, 4, "retryable", "Use true or false.");
	CheckGiven(fcinfo, 5, "expose", "Use true or false.");
	tool.retryable = PG_GETARG_BOOL(4);
	tool.expose = PG_GETARG_BOOL(5);
	CheckTextLimit(tool.description, "description");
	if (tool.input_schema != NULL)
		CheckInputSchema(tool.input_schema);
	return tool;
}

/* Register a tool, or replace its registration. */
PG_FUNCTION_INFO_V1(stepwise_register_tool);
Datum
stepwise_register_tool(PG_FUNCTION_ARGS)
{
	Tool		tool;
	Call		call;
	Jsonb	   *answer;

	CheckOwner("register tools");
	tool = ArgumentTool(fcinfo);
	CallBegin(&call);
	answer = ToolAnswer(&tool, ToolStore(&call, &tool));
	AuditRegister(&call, "tool_registered", JsonMerge(answer, JsonTextOf("digest", ToolDigest(&tool))));
	return CallEnd(&call, answer);
}

/* Delete a registration by a query with the parameters (tenant, name). */
static Jsonb *
Unregister(Call *call, KeptQuery *query, const char *kind, const char *key, const char *name)
{
	JsonBuilder b = {0};
	Jsonb	   *answer;

	if (QueryByName(call, query, name).count == 0)
		NotRegistered(kind, name);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, key, name);
	JsonPutBool(&b, "dropped", true);
	JsonObjectEnd(&b);
	answer = JsonFinish(&b);
	AuditRegister(call, psprintf("%s_dropped", kind), JsonTextOf(key, name));
	return answer;
}

/* Drop a tool. */
PG_FUNCTION_INFO_V1(stepwise_drop_tool);
Datum
stepwise_drop_tool(PG_FUNCTION_ARGS)
{
	static KeptQuery drop = {
		"DELETE FROM stepwise.tool WHERE tenant = $1 AND name = $2",
		2, {TEXTOID, TEXTOID}
	};
	char	   *name = ArgumentText(fcinfo, 0);
	Call		call;

	CheckOwner("drop tools");
	CheckToolName(name);
	CheckNotBuiltIn(name);
	CallBegin(&call);
	return CallEnd(&call, Unregister(&call, &drop, "tool", "name", name));
}

/* what a page of list_tools is built from */
typedef struct ToolPage
{
	Call	   *call;
	const char *after;			/* the name before the page, or NULL */
	int			count;			/* of all tools */
	bool		whole;			/* one tool was asked for, which is not cut */
} ToolPage;

/* Append the built-in tools after a name to the registered ones. */
static List *
WithBuiltIns(List *tools, const char *after)
{
	const char *name;

	for (int i = 0; (name = BuiltInToolName(i)) != NULL; i++)
		if (after == NULL || BuiltInTool(after) == NULL || strcmp(name, after) > 0)
			tools = lappend(tools, BuiltInTool(name));
	return tools;
}

/* Build a page at one level. The registered tools come first, then the built-in ones. */
static Jsonb *
ToolsAt(void *arg, int entries, int text)
{
	ToolPage   *page = arg;
	bool		registered = page->after == NULL || BuiltInTool(page->after) == NULL;
	int			max = Max(entries, 1);
	List	   *tools = registered ? ToolList(page->call, page->after, max + 1, page->whole ? INT_MAX / 8 : Max(text, 20)) : NIL;
	JsonBuilder b = {0};
	ListCell   *cell;
	const char *next = NULL;

	tools = WithBuiltIns(tools, page->after);
	JsonObjectStart(&b, NULL);
	JsonArrayStart(&b, "tools");
	foreach(cell, tools)
	{
		Tool	   *tool = lfirst(cell);

		if (foreach_current_index(cell) >= max)
			break;
		PutTool(&b, tool, BuiltInTool(tool->name) != NULL);
		if (foreach_current_index(cell) == max - 1 && lnext(tools, cell) != NULL)
			next = tool->name;
	}
	JsonArrayEnd(&b);
	JsonPutInt(&b, "toolCount", page->count);
	JsonPutText(&b, "next", next);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Count the built-in tools. */
static int
BuiltInCount(void)
{
	int			count = 0;

	while (BuiltInToolName(count) != NULL)
		count++;
	return count;
}

/* List the registered tools and the built-in ones, page by page. */
PG_FUNCTION_INFO_V1(stepwise_list_tools);
Datum
stepwise_list_tools(PG_FUNCTION_ARGS)
{
	Call		call;
	ToolPage	page = {.call = &call, .after = ArgumentText(fcinfo, 0)};
	int			max = ArgumentMax(fcinfo, 1, LIST_MAX);

	CheckTextLimit(page.after, "after");
	CallBeginReading(&call);
	page.count = ToolCount(&call) + BuiltInCount();
	page.whole = max == 1;
	return CallEnd(&call, BoundBuild(ToolsAt, &page, ListBytes(max), max));
}

/* ---------- resources ---------- */

/* Check that a function takes one text or one jsonb, and return its signature. */
static char *
ResourceSignature(Oid function)
{
	if (FunctionTakesText(function))
		return FunctionSignature(function, TEXTOID, RESOURCE_HINT);
	return FunctionSignature(function, JSONBOID, RESOURCE_HINT);
}

/* Store the function that reads the resources of a pattern. */
static Jsonb *
ResourceStore(Call *call, const char *pattern, const char *function)
{
	static KeptQuery store = {
		"INSERT INTO stepwise.resource (tenant, pattern, function) VALUES ($1, $2, $3)"
		" ON CONFLICT (tenant, pattern) DO UPDATE SET function = excluded.function",
		3, {TEXTOID, TEXTOID, TEXTOID}
	};
	JsonBuilder b = {0};
	Params		params = {0};
	Jsonb	   *answer;

	ParamTenant(&params, call);
	ParamText(&params, pattern);
	ParamText(&params, function);
	QueryRun(&store, &params);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "pattern", pattern);
	JsonPutText(&b, "function", function);
	JsonObjectEnd(&b);
	answer = JsonFinish(&b);
	AuditRegister(call, "resource_registered", answer);
	return answer;
}

/* Register a function that reads resources. */
PG_FUNCTION_INFO_V1(stepwise_register_resource);
Datum
stepwise_register_resource(PG_FUNCTION_ARGS)
{
	char	   *pattern = ArgumentText(fcinfo, 0);
	char	   *function;
	Call		call;

	CheckOwner("register resources");
	CheckLine(pattern, "the pattern of a resource");
	CheckNotOwnScheme(pattern);
	CheckGiven(fcinfo, 1, "function", RESOURCE_HINT);
	function = ResourceSignature(PG_GETARG_OID(1));
	CallBegin(&call);
	return CallEnd(&call, ResourceStore(&call, pattern, function));
}

/* Drop a function that reads resources. */
PG_FUNCTION_INFO_V1(stepwise_drop_resource);
Datum
stepwise_drop_resource(PG_FUNCTION_ARGS)
{
	static KeptQuery drop = {
		"DELETE FROM stepwise.resource WHERE tenant = $1 AND pattern = $2",
		2, {TEXTOID, TEXTOID}
	};
	char	   *pattern = ArgumentText(fcinfo, 0);
	Call		call;

	CheckOwner("drop resources");
	CheckLine(pattern, "the pattern of a resource");
	CallBegin(&call);
	return CallEnd(&call, Unregister(&call, &drop, "resource", "pattern", pattern));
}
