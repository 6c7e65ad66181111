/*
 * tool_list.c
 *	  tools/list: the tools of this server, then the exposed ones
 *
 * A role sees what it may call. By default these are the tools for models;
 * with "stepwise/tools": "all", there is a tool for each function, whose
 * schema is made from its signature.
 */
#include "mcp/mcp.h"

#include "catalog/pg_proc.h"
#include "commands/comment.h"

/* ---------- tools for models ---------- */

static void
PutParams(JsonBuilder *b, const ToolParam *params)
{
	JsonObjectStart(b, "properties");
	for (const ToolParam *p = params; p->name != NULL; p++)
		JsonPutJson(b, p->name, JsonMerge(JsonParse(p->schema), JsonTextOf("description", p->description)));
	JsonObjectEnd(b);
	JsonArrayStart(b, "required");
	for (const ToolParam *p = params; p->name != NULL; p++)
		if (p->required)
			JsonPutText(b, NULL, p->name);
	JsonArrayEnd(b);
}

static Jsonb *
ModelToolEntry(const Request *request, const ModelTool *tool)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", tool->name);
	JsonPutText(&b, "title", tool->title);
	JsonPutText(&b, "description", tool->description);
	JsonObjectStart(&b, "inputSchema");
	JsonPutText(&b, "type", "object");
	PutParams(&b, tool->params);
	JsonPutBool(&b, "additionalProperties", false);
	JsonObjectEnd(&b);
	if (tool->output != NULL)
		JsonPutJson(&b, "outputSchema", JsonParse(tool->output));
	PutAnnotations(&b, tool->reads, tool->destructive, tool->idempotent, false);
	if (ToolCanBeTask(tool->name))
		PutTaskSupport(&b, request);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static void
PutModelTools(Listing *listing, const Request *request)
{
	for (int i = 0; i < MODEL_TOOLS; i++)
		if (ModelToolIsListed(request, &ModelTools[i]))
			ListingPut(listing, ModelToolEntry(request, &ModelTools[i]));
}

/* ---------- a tool for each function ---------- */

static void
PutSignature(JsonBuilder *b, const Callable *callable)
{
	JsonObjectStart(b, "properties");
	for (int i = 0; i < callable->argument_count; i++)
		PutArgumentSchema(b, callable, &callable->arguments[i]);
	JsonObjectEnd(b);
	JsonArrayStart(b, "required");
	for (int i = 0; i < callable->argument_count; i++)
		if (callable->arguments[i].required)
			JsonPutText(b, NULL, callable->arguments[i].name);
	JsonArrayEnd(b);
}

/* functions for readers that write something by the way, for those who may */
static const char *const Noting[] = {"get_plan_status", "get_plan_context"};

static Jsonb *
FunctionEntry(const Request *request, const Callable *callable)
{
	const Tool *built_in = BuiltInTool(callable->name);
	bool		reads = callable->kind == CALLABLE_READS;
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", callable->name);
	JsonPutText(&b, "description", built_in ? built_in->description : GetComment(callable->function, ProcedureRelationId, 0));
	if (built_in != NULL)
		JsonPutJson(&b, "inputSchema", built_in->input_schema);
	else
	{
		JsonObjectStart(&b, "inputSchema");
		JsonPutText(&b, "type", "object");
		PutSignature(&b, callable);
		JsonPutBool(&b, "additionalProperties", false);
		JsonObjectEnd(&b);
	}
	PutAnnotations(&b, reads && NameIndex(callable->name, Noting, lengthof(Noting)) < 0, !reads, reads, false);
	if (ToolCanBeTask(callable->name))
		PutTaskSupport(&b, request);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static bool
FunctionIsListed(const Request *request, const Callable *callable)
{
	return callable != NULL && CallableIsGranted(callable) && (callable->kind == CALLABLE_READS || !request->read_only);
}

static void
PutFunctions(Listing *listing, const Request *request)
{
	int			count;
	const char **names = CallableNames(&count);

	for (int i = 0; i < count; i++)
	{
		const Callable *callable = FunctionOfTool(names[i]);

		if (FunctionIsListed(request, callable))
			ListingPut(listing, FunctionEntry(request, callable));
	}
}

/* List the tools. */
Jsonb *
ToolsList(Request *request)
{
	Listing		listing;

	ListingBegin(&listing, request, "tools");
	/* our own are few, and all on the first page */
	if (listing.after == NULL && request->all_tools)
		PutFunctions(&listing, request);
	else if (listing.after == NULL)
		PutModelTools(&listing, request);
	/* a role without a tenant sees what is the same in all of them */
	if (!request->read_only && TenantTry() != NULL)
		ExposedPut(&listing, request);
	return ListingEnd(&listing);
}
