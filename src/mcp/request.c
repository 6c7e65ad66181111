/*
 * request.c
 *	  read a JSON-RPC request of either generation of MCP
 *
 * A request of the modern generation carries the version of the protocol and
 * the client's capabilities in params._meta. Legacy clients negotiate both in
 * "initialize"; what they got, stepwise-mcp adds to each request under keys of
 * ours. So no request needs a session.
 *
 * A malformed request is refused by RequestRefuse. It notes the code of the
 * JSON-RPC error in the request and raises an error, so that nothing stays of
 * what was done before.
 */
#include "mcp/mcp.h"

#include "utils/memutils.h"

#define META_VERSION		"io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES	"io.modelcontextprotocol/clientCapabilities"
#define META_NEGOTIATED		"stepwise/version"	/* by a legacy client */

static const char *const LegacyVersions[] = {"2024-11-05", BATCH_VERSION, "2025-06-18", LEGACY_VERSION};

/* Refuse a request with the code and the data of a JSON-RPC error. */
void
RequestRefuse(Request *request, int code, const Jsonb *data, const char *format,...)
{
	MemoryContext outer = MemoryContextSwitchTo(request->memory);
	va_list		args;
	char	   *message;

	va_start(args, format);
	message = FormatText(format, args);
	va_end(args);
	request->error_code = code;
	request->error_data = data ? JsonCopy(data) : NULL;
	MemoryContextSwitchTo(outer);
	ereport(ERROR, (errcode(ERRCODE_PROTOCOL_VIOLATION), errmsg("%s", message)));
}

/* ---------- the envelope ---------- */

/*
 * Check whether an answer is expected. There is none to a notification, nor to
 * a response. Whatever else comes is answered, with an error at least.
 */
bool
RequestIsExpected(const Jsonb *message)
{
	JsonbValue	value;

	if (!JsonIsObject(message))
		return true;
	if (!JsonGet(message, "method", &value))
		return !JsonGet(message, "result", &value) && !JsonGet(message, "error", &value);
	return JsonGet(message, "id", &value) || JsonGetText(message, "method") == NULL || JsonGetText(message, "jsonrpc") == NULL;
}

/* Note the id: a string or an integer. Others are not repeated, since clients reject them. */
static void
RequestReadId(Request *request, const Jsonb *message)
{
	JsonbValue	id;

	if (JsonGet(message, "id", &id) && (id.type == jbvString || JsonHasType(&id, "integer")))
		request->id = JsonFromValue(&id);
}

static void
CheckEnvelope(Request *request, const Jsonb *message)
{
	char	   *version;

	if (!JsonIsObject(message))
		RequestRefuse(request, RPC_INVALID_REQUEST, NULL, "a request must be an object");
	RequestReadId(request, message);
	if (request->id == NULL)
		RequestRefuse(request, RPC_INVALID_REQUEST, NULL, "the id of a request must be a string or an integer");
	version = JsonGetText(message, "jsonrpc");
	if (version == NULL || strcmp(version, "2.0") != 0)
		RequestRefuse(request, RPC_INVALID_REQUEST, NULL, "a request must have \"jsonrpc\": \"2.0\"");
	request->method = JsonGetText(message, "method");
	if (request->method == NULL)
		RequestRefuse(request, RPC_INVALID_REQUEST, NULL, "the method of a request must be a string");
}

/* Look up an object; an empty one if there is none, or null. */
static Jsonb *
GetObject(Request *request, const Jsonb *object, const char *key, const char *what)
{
	Jsonb	   *value = JsonGetJson(object, key);

	if (value == NULL || JsonIsNull(value))
		return JsonEmptyObject();
	if (!JsonIsObject(value))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "%s must be an object", what);
	return value;
}

/* ---------- the generation ---------- */

static bool
MetaSays(const Request *request, const char *key, const char *word)
{
	char	   *value = JsonGetText(request->meta, key);

	return value != NULL && strcmp(value, word) == 0;
}

static bool
MetaFlag(const Request *request, const char *key)
{
	JsonbValue	value;

	return JsonGet(request->meta, key, &value) && value.type == jbvBool && value.val.boolean;
}

/* Allow a result of so many bytes. Who asks for more bytes asks for longer lists, too. */
void
RequestAllow(Request *request, int max_bytes)
{
	request->max_bytes = Min(max_bytes, RESULT_BYTES_MAX);
	request->max_entries = Max(request->max_bytes / (RESULT_BYTES / RESULT_ENTRIES), RESULT_ENTRIES);
}

/* Read how long the text of a result may be, for tools that have no such parameter. */
static int
MetaMaxBytes(Request *request)
{
	JsonbValue	value;
	Datum		number;

	if (!JsonGet(request->meta, "stepwise/maxBytes", &value))
		return RESULT_BYTES;
	if (!JsonToDatum(&value, INT4OID, &number) || DatumGetInt32(number) < RESULT_BYTES_MIN)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "_meta[\"stepwise/maxBytes\"] must be an integer of at least %d", RESULT_BYTES_MIN);
	return DatumGetInt32(number);
}

/* Refuse a version of the modern generation that is not known. */
static void
CheckModernVersion(Request *request, JsonbValue *version)
{
	JsonBuilder b = {0};

	if (version->type != jbvString)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "_meta[\"" META_VERSION "\"] must be a string");
	if (MetaSays(request, META_VERSION, MODERN_VERSION))
		return;
	JsonObjectStart(&b, NULL);
	JsonPutTexts(&b, "supported", list_make1(MODERN_VERSION));
	JsonPutValue(&b, "requested", version);
	JsonObjectEnd(&b);
	RequestRefuse(request, RPC_NO_VERSION, JsonFinish(&b), "unsupported protocol version");
}

static void
RequestReadModern(Request *request, JsonbValue *version)
{
	JsonbValue	capabilities;

	CheckModernVersion(request, version);
	if (!JsonGet(request->meta, META_CAPABILITIES, &capabilities))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "_meta[\"" META_CAPABILITIES "\"] is missing");
	request->modern = true;
	request->version = MODERN_VERSION;
	request->capabilities = GetObject(request, request->meta, META_CAPABILITIES, "_meta[\"" META_CAPABILITIES "\"]");
}

/* Choose the version for a legacy client: the one that it asks for, or else the newest. */
const char *
LegacyVersion(const char *asked)
{
	int			known = asked ? NameIndex(asked, LegacyVersions, lengthof(LegacyVersions)) : -1;

	return known >= 0 ? LegacyVersions[known] : LEGACY_VERSION;
}

/* Check whether a message comes from a client that may send batches. */
bool
MessageIsOfBatchVersion(const Jsonb *message)
{
	Jsonb	   *params = JsonGetJson(message, "params");
	Jsonb	   *meta = params ? JsonGetJson(params, "_meta") : NULL;
	char	   *version = meta ? JsonGetText(meta, META_NEGOTIATED) : NULL;

	return version != NULL && strcmp(version, BATCH_VERSION) == 0;
}

/* Note what a legacy client negotiated. */
static void
RequestReadLegacy(Request *request)
{
	request->version = LegacyVersion(JsonGetText(request->meta, META_NEGOTIATED));
	request->capabilities = GetObject(request, request->meta, "stepwise/clientCapabilities", "_meta[\"stepwise/clientCapabilities\"]");
}

/* Read a request. What is malformed is refused. */
void
RequestRead(Request *request, const Jsonb *message)
{
	JsonbValue	version;

	CheckEnvelope(request, message);
	request->params = GetObject(request, message, "params", "params");
	request->meta = GetObject(request, request->params, "_meta", "_meta");
	if (JsonGet(request->meta, META_VERSION, &version))
		RequestReadModern(request, &version);
	else
		RequestReadLegacy(request);
	request->pipe = MetaFlag(request, "stepwise/pipe");
	request->all_tools = MetaSays(request, "stepwise/tools", "all");
	request->read_only = MetaFlag(request, "stepwise/readOnly");
	RequestAllow(request, MetaMaxBytes(request));
}

/* ---------- for handlers ---------- */

/* Read a parameter that must be a string. */
char *
ParamRequiredText(Request *request, const char *key)
{
	char	   *value = JsonGetText(request->params, key);

	if (value == NULL)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "%s needs the parameter \"%s\", a string", ShortText(request->method), key);
	return value;
}

/* Read a parameter that must be an object; an empty one if it is not there. */
Jsonb *
ParamObject(Request *request, const char *key)
{
	return GetObject(request, request->params, key, key);
}

/* Ask stepwise-mcp to do something. Others do not see it. */
void
BesidePut(Request *request, const char *key, const Jsonb *value)
{
	request->beside = JsonMerge(request->beside, JsonObjectOf(key, value));
}

/* Note the plan that a request is about, for the log. The first one counts. */
void
RequestNotePlan(Request *request, const char *plan_id)
{
	if (plan_id != NULL && !request->has_plan)
		request->has_plan = UuidParse(plan_id, &request->plan_id);
}
