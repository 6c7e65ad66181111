/*
 * reply.c
 *	  write the responses of JSON-RPC
 */
#include "mcp/mcp.h"

#define META_SERVER		"io.modelcontextprotocol/serverInfo"
#define CACHE_MS		5000	/* how long a client may use a list without asking again */

/* Put the name and the version of this server. */
void
PutServerInfo(JsonBuilder *b, const char *key)
{
	JsonObjectStart(b, key);
	JsonPutText(b, "name", "pg_stepwise");
	JsonPutText(b, "version", STEPWISE_VERSION);
	JsonObjectEnd(b);
}

static void
PutId(JsonBuilder *b, const Request *request)
{
	JsonPutText(b, "jsonrpc", "2.0");
	if (request->id != NULL)
		JsonPutJson(b, "id", request->id);
}

/* Make what every modern result has; members of the result itself come before it. */
static Jsonb *
ModernMembers(const Jsonb *result, Caching caching)
{
	JsonBuilder b = {0};
	JsonBuilder meta = {0};

	JsonObjectStart(&meta, NULL);
	PutServerInfo(&meta, META_SERVER);
	JsonObjectEnd(&meta);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "resultType", "complete");
	if (caching != CACHE_UNSAID)
	{
		JsonPutInt(&b, "ttlMs", caching == CACHE_BRIEFLY ? CACHE_MS : 0);
		JsonPutText(&b, "cacheScope", "private");
	}
	JsonObjectEnd(&b);
	return JsonMerge(JsonMerge(JsonFinish(&b), result),
					 JsonObjectOf("_meta", JsonMerge(JsonFinish(&meta), JsonGetJson(result, "_meta"))));
}

/* Put what stepwise-mcp is to do. */
static void
PutBeside(JsonBuilder *b, const Request *request)
{
	if (request->pipe && request->beside != NULL)
		JsonPutJson(b, "stepwise", request->beside);
}

/* Make the response with a result. */
Jsonb *
ReplyResult(const Request *request, const Jsonb *result, Caching caching)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutId(&b, request);
	JsonPutJson(&b, "result", request->modern ? ModernMembers(result, caching) : result);
	PutBeside(&b, request);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Make the response with an error, whose code the request has noted. */
Jsonb *
ReplyError(const Request *request, const char *message)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutId(&b, request);
	JsonObjectStart(&b, "error");
	JsonPutInt(&b, "code", request->error_code);
	JsonPutText(&b, "message", message);
	if (request->error_data != NULL)
		JsonPutJson(&b, "data", request->error_data);
	JsonObjectEnd(&b);
	PutBeside(&b, request);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Show an error of the engine to a model: code, message, detail and hint, one a line. */
char *
FaultText(const ToolFault *fault)
{
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfo(&text, "%s: %s", fault->code, fault->message);
	if (fault->detail != NULL)
		appendStringInfo(&text, "\nDETAIL: %s", fault->detail);
	if (fault->hint != NULL)
		appendStringInfo(&text, "\nHINT: %s", fault->hint);
	return text.data;
}
