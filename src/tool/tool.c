/*
 * tool.c
 *	  the register of tools and of functions that read resources
 *
 * A tool with a function runs in the database; one without, and any name that
 * was never registered, is the client's. What is built in needs no row, and
 * cannot be replaced.
 *
 * The pattern of a resource is its URI, in which * stands for anything; of
 * several that fit, the longest pattern counts.
 */
#include "api/api.h"

#include "mb/pg_wchar.h"

PG_FUNCTION_INFO_V1(stepwise_register_tool);
PG_FUNCTION_INFO_V1(stepwise_drop_tool);
PG_FUNCTION_INFO_V1(stepwise_list_tools);
PG_FUNCTION_INFO_V1(stepwise_register_resource);
PG_FUNCTION_INFO_V1(stepwise_drop_resource);

#define TOOL_HINT \
	"A tool is a function that takes its arguments as one jsonb and returns its result as jsonb."
#define RESOURCE_HINT \
	"A resource function takes the URI as one text, or as jsonb {\"uri\": ...}, and returns the content as jsonb."

/* ---------- checks ---------- */

/* A name or pattern: one line, not too long, not empty. */
static void
CheckWord(const char *word, const char *what)
{
	if (word == NULL || TextIsBlank(word) || strpbrk(word, "\r\n") != NULL ||
		pg_mbstrlen(word) > TITLE_MAX_CHARS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("%s must be one line of 1 to %d characters", what, TITLE_MAX_CHARS)));
}

void
CheckToolName(const char *name)
{
	CheckWord(name, "the name of a tool");
}

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

static Jsonb *
ToolAnswer(const char *name, const Tool *tool, bool replaced)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", name);
	JsonPutText(&b, "function", tool->function);
	JsonPutBool(&b, "inDatabase", tool->function != NULL);
	JsonPutBool(&b, "replaced", replaced);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static void PutTool(JsonBuilder *b, const char *name, const Tool *tool, bool built_in);

/* Digest all that is registered of a tool, as list_tools shows it. */
static char *
ToolDigest(const char *name, const Tool *tool)
{
	JsonBuilder b = {0};

	PutTool(&b, name, tool, false);
	return DigestText(JsonFinish(&b));
}

/* Write into the chain of the tenant what was done to a registration. */
static void
AuditRegister(Call *call, const char *action, const Jsonb *detail)
{
	AuditAppendPlanless(call, "plan_modified", JsonMerge(JsonTextOf("action", action), detail));
}

/* Write a tool; true if there was one of that name. */
static bool
ToolStore(Call *call, const char *name, const Tool *tool)
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
	Args		args = {0};
	Rows		rows;

	ArgTenant(&args, call);
	ArgText(&args, name);
	ArgText(&args, tool->function);
	ArgVarlena(&args, tool->input_schema);
	ArgText(&args, tool->description);
	ArgBool(&args, tool->retryable);
	ArgBool(&args, tool->expose);
	rows = QueryRun(&store, &args);
	return RowBool(&rows, 0, 1);
}

/* Read the arguments of register_tool, and check them as the caller. */
static Tool
ArgumentTool(FunctionCallInfo fcinfo, const char *name)
{
	Tool		tool = {0};

	CheckToolName(name);
	CheckNotBuiltIn(name);
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

Datum
stepwise_register_tool(PG_FUNCTION_ARGS)
{
	char	   *name = ArgumentText(fcinfo, 0);
	Tool		tool;
	Call		call;
	Jsonb	   *answer;

	CheckOwner("register tools");
	tool = ArgumentTool(fcinfo, name);
	CallBegin(&call);
	answer = ToolAnswer(name, &tool, ToolStore(&call, name, &tool));
	AuditRegister(&call, "tool_registered", JsonMerge(answer, JsonTextOf("digest", ToolDigest(name, &tool))));
	return CallEnd(&call, answer);
}

/* columns of the queries that read tools */
enum
{
	T_NAME = 1, T_FUNCTION, T_INPUT_SCHEMA, T_DESCRIPTION, T_RETRYABLE, T_EXPOSE
};
#define SELECT_TOOLS \
	"SELECT t.name, t.function, t.input_schema, t.description, t.retryable, t.expose FROM stepwise.tool AS t"

static Tool *
RowTool(const Rows *rows, uint64 row)
{
	Tool	   *tool = palloc0(sizeof(Tool));

	tool->function = RowText(rows, row, T_FUNCTION);
	tool->input_schema = RowJson(rows, row, T_INPUT_SCHEMA);
	tool->description = RowText(rows, row, T_DESCRIPTION);
	tool->retryable = RowBool(rows, row, T_RETRYABLE);
	tool->expose = RowBool(rows, row, T_EXPOSE);
	return tool;
}

/* Find a tool by its name; NULL: it was never registered. */
Tool *
ToolFind(Call *call, const char *name)
{
	static KeptQuery find = {SELECT_TOOLS " WHERE t.tenant = $1 AND t.name = $2", 2, {TEXTOID, TEXTOID}};
	Tool	   *tool = BuiltInTool(name);
	Rows		rows;

	if (tool != NULL)
		return tool;
	rows = QueryByName(call, &find, name);
	if (rows.count > 0)
		tool = RowTool(&rows, 0);
	RowsFree(&rows);
	return tool;
}

/* Drop a registered name by a query over (tenant, name). */
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

static void
PutTool(JsonBuilder *b, const char *name, const Tool *tool, bool built_in)
{
	JsonObjectStart(b, NULL);
	JsonPutText(b, "name", name);
	JsonPutText(b, "description", tool->description);
	JsonPutJson(b, "inputSchema", tool->input_schema);
	JsonPutText(b, "function", tool->function);
	JsonPutBool(b, "inDatabase", tool->function != NULL);
	JsonPutBool(b, "retryable", tool->retryable);
	JsonPutBool(b, "expose", tool->expose);
	JsonPutBool(b, "builtIn", built_in);
	JsonObjectEnd(b);
}

static Jsonb *
ListTools(Call *call)
{
	static KeptQuery list = {SELECT_TOOLS " WHERE t.tenant = $1 ORDER BY t.name", 1, {TEXTOID}};
	JsonBuilder b = {0};
	const char *name;
	Rows		rows = QueryOfTenant(call, &list);

	JsonObjectStart(&b, NULL);
	JsonArrayStart(&b, "tools");
	for (uint64 i = 0; i < rows.count; i++)
		PutTool(&b, RowText(&rows, i, T_NAME), RowTool(&rows, i), false);
	for (int i = 0; (name = BuiltInToolName(i)) != NULL; i++)
		PutTool(&b, name, BuiltInTool(name), true);
	JsonArrayEnd(&b);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

Datum
stepwise_list_tools(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, ListTools(&call));
}

/* ---------- resources ---------- */

/* Take a function of a text, or else of a jsonb. */
static char *
ResourceSignature(Oid function)
{
	if (FunctionTakesText(function))
		return FunctionSignature(function, TEXTOID, RESOURCE_HINT);
	return FunctionSignature(function, JSONBOID, RESOURCE_HINT);
}

static Jsonb *
ResourceStore(Call *call, const char *pattern, const char *function)
{
	static KeptQuery store = {
		"INSERT INTO stepwise.resource (tenant, pattern, function) VALUES ($1, $2, $3)"
		" ON CONFLICT (tenant, pattern) DO UPDATE SET function = excluded.function",
		3, {TEXTOID, TEXTOID, TEXTOID}
	};
	JsonBuilder b = {0};
	Args		args = {0};
	Jsonb	   *answer;

	ArgTenant(&args, call);
	ArgText(&args, pattern);
	ArgText(&args, function);
	QueryRun(&store, &args);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "pattern", pattern);
	JsonPutText(&b, "function", function);
	JsonObjectEnd(&b);
	answer = JsonFinish(&b);
	AuditRegister(call, "resource_registered", answer);
	return answer;
}

Datum
stepwise_register_resource(PG_FUNCTION_ARGS)
{
	char	   *pattern = ArgumentText(fcinfo, 0);
	char	   *function;
	Call		call;

	CheckOwner("register resources");
	CheckWord(pattern, "the pattern of a resource");
	CheckNotOwnScheme(pattern);
	CheckGiven(fcinfo, 1, "function", RESOURCE_HINT);
	function = ResourceSignature(PG_GETARG_OID(1));
	CallBegin(&call);
	return CallEnd(&call, ResourceStore(&call, pattern, function));
}

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
	CheckWord(pattern, "the pattern of a resource");
	CallBegin(&call);
	return CallEnd(&call, Unregister(&call, &drop, "resource", "pattern", pattern));
}

/* Does a URI fit a pattern? After a mismatch, the last * takes one character more. */
static bool
PatternFits(const char *pattern, const char *uri)
{
	const char *star = NULL;
	const char *taken = uri;

	while (*uri != '\0')
	{
		if (*pattern == '*')
		{
			star = pattern++;
			taken = uri;
		}
		else if (*pattern == *uri)
		{
			pattern++;
			uri++;
		}
		else if (star != NULL)
		{
			pattern = star + 1;
			uri = ++taken;
		}
		else
			return false;
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

/* Find the function that reads a URI; NULL: there is none. */
char *
ResourceFind(Call *call, const char *uri)
{
	static KeptQuery list = {
		"SELECT r.pattern, r.function FROM stepwise.resource AS r WHERE r.tenant = $1"
		" ORDER BY pg_catalog.length(r.pattern) DESC, r.pattern",
		1, {TEXTOID}
	};
	char	   *function = NULL;
	Rows		rows = QueryOfTenant(call, &list);

	for (uint64 i = 0; i < rows.count && function == NULL; i++)
		if (PatternFits(RowText(&rows, i, 1), uri))
			function = RowText(&rows, i, 2);
	RowsFree(&rows);
	return function;
}
