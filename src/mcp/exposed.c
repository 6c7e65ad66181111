/*
 * exposed.c
 *	  tools in the database that are registered for clients, with "expose"
 *
 * A client calls them like the tools of this server. They run with the rights
 * of its role. A tool of this server hides a registered one of its name.
 *
 * If the request names a plan, the result is recorded to it too, as by
 * record_tool_result. Both happen, or neither.
 */
#include "mcp/mcp.h"

#define NAME_CHARS	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/"
#define NAME_LENGTH	128

/* ---------- the list ---------- */

/* Check whether MCP allows the name of a tool, and no tool of ours has it. */
static bool
IsListable(const char *name)
{
	return strlen(name) <= NAME_LENGTH && strspn(name, NAME_CHARS) == strlen(name) && !IsOwnTool(name);
}

/* Make the entry of a tool; NULL if it is not for clients. */
static Jsonb *
ExposedEntry(const Request *request, const Rows *rows, uint64 row)
{
	char	   *name = RowText(rows, row, 1);
	char	   *description = RowText(rows, row, 2);
	JsonBuilder b = {0};

	if (!RowBool(rows, row, 5) || !IsListable(name))
		return NULL;
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", name);
	if (description != NULL)
		JsonPutText(&b, "description", description);
	JsonPutJson(&b, "inputSchema", JsonMerge(JsonTextOf("type", "object"), RowJson(rows, row, 3)));
	PutAnnotations(&b, false, true, RowBool(rows, row, 4), true);
	PutTaskSupport(&b, request);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Put the exposed tools of the tenant that belong to a page. */
void
ExposedPut(Listing *listing, const Request *request)
{
	static KeptQuery list = {
		"SELECT t.name, t.description, t.input_schema, t.retryable, t.expose AND t.function IS NOT NULL FROM stepwise.tool AS t"
		" WHERE t.tenant = $1 AND t.name > $2 ORDER BY t.tenant, t.name LIMIT $3",
		3, {TEXTOID, TEXTOID, INT4OID}, .in_order = true
	};

	ListingPutRows(listing, request, &list, ExposedEntry);
}

/* ---------- the call ---------- */

/* Find an exposed tool; NULL if there is none. */
Tool *
ExposedFind(const char *name)
{
	MemoryContext outer = CurrentMemoryContext;
	Tool	   *found = NULL;
	Call		call;
	Tool	   *tool;

	if (TenantTry() == NULL)
		return BuiltInTool(name);
	CallBeginReading(&call);
	tool = ToolFind(&call, name);
	if (tool != NULL && tool->expose && tool->function != NULL)
	{
		MemoryContextSwitchTo(outer);
		found = palloc0(sizeof(Tool));
		found->name = pstrdup(tool->name);
		found->function = pstrdup(tool->function);
		found->input_schema = tool->input_schema ? JsonCopy(tool->input_schema) : NULL;
	}
	CallEnd(&call, NULL);
	return found;
}

/* Refuse arguments that do not fit an exposed tool. */
void
ExposedCheck(const Tool *tool, const Jsonb *arguments)
{
	SchemaFault fault = {0};

	if (tool->input_schema != NULL && !SchemaMatch(tool->input_schema, arguments, &fault))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("the arguments do not fit tool \"%s\"%s", tool->name, Because(fault.why)),
				 errhint("Call it as its input schema says.")));
}

static bool
ResultIsError(const Jsonb *result)
{
	JsonbValue	value;

	return JsonGet(result, "isError", &value) && value.type == jbvBool && value.val.boolean;
}

/* Make the result for the client. Content blocks are passed on as they are. */
Jsonb *
ExposedResult(Request *request, const Jsonb *result)
{
	Jsonb	   *content = JsonGetJson(result, "content");

	if (JsonIsArray(content))
		return unconstify(Jsonb *, result);
	return ResultIsError(result) ? ToolErrorResult(request, JsonToText(result)) : ToolResult(request, result);
}

/* Find the plan to which the call is recorded; NULL if none is named. */
char *
PlanOfCall(Request *request)
{
	char	   *plan = JsonGetText(request->meta, "stepwise/taskId");
	pg_uuid_t	id;

	if (plan == NULL)
		plan = JsonGetText(request->meta, "_task_id");
	if (plan != NULL && !UuidParse(plan, &id))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "_meta[\"stepwise/taskId\"] must be the id of a plan");
	return plan;
}

/* Record what a tool answered, or its error, to a plan. */
static Jsonb *
RecordCall(Request *request, const char *plan, const Tool *tool, const Jsonb *result, const ToolFault *fault)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "plan_id", plan);
	JsonPutText(&b, "tool", tool->name);
	if (fault != NULL)
		JsonPutJson(&b, "result", JsonMerge(JsonTextOf("error", fault->message), JsonTextOf("code", fault->code)));
	else
		JsonPutJson(&b, "result", result);
	JsonPutBool(&b, "is_error", fault != NULL);
	if (fault == NULL && ResultIsError(result))
		JsonPutText(&b, "outcome", OutcomeName[OUTCOME_FAILURE]);
	JsonObjectEnd(&b);
	return TranslateAnswer(request, FunctionApply(request, "record_tool_result", JsonFinish(&b)));
}

/* Call an exposed tool. Returns NULL if there is none of that name. */
Jsonb *
ExposedCall(Request *request, const char *name, const Jsonb *arguments)
{
	Tool	   *tool = request->read_only ? NULL : ExposedFind(name);
	char	   *plan;
	Jsonb	   *result;
	Jsonb	   *made;
	ToolFault  *fault;

	if (tool == NULL)
		return NULL;
	plan = PlanOfCall(request);
	ExposedCheck(tool, arguments);
	result = Invoke(InvokablesNew(), tool->function, JsonbPGetDatum(arguments), "result of the tool", &fault);
	request->is_error = fault != NULL || ResultIsError(result);
	made = fault ? ToolFaultResult(request, fault) : ExposedResult(request, result);
	if (plan == NULL)
		return made;
	RequestNotePlan(request, plan);
	return JsonMerge(made, JsonObjectOf("_meta", JsonMerge(JsonGetJson(made, "_meta"),
														   JsonObjectOf("stepwise/recorded", RecordCall(request, plan, tool, result, fault)))));
}
