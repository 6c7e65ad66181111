/*
 * mcp.c
 *	  mcp(): answer a message of the Model Context Protocol
 *
 * Each request is handled in a subtransaction. An error rolls back what it did
 * and becomes its answer: a result for those methods that say so, a JSON-RPC
 * error for others. The transaction of the caller goes on. Errors of the
 * transaction or the server are thrown on.
 */
#include "mcp/mcp.h"

#include "miscadmin.h"

#define BATCH_MAX	100			/* requests in a batch */

/* one request on its way */
typedef struct Handling
{
	Request		request;
	const Jsonb *message;
	const Method *method;		/* NULL: not known yet */
	Jsonb	   *result;
} Handling;

/*
 * Handle a request. If the client wants to hear of progress, runs report it
 * meanwhile. A connection that only reads is told of nothing that writes.
 */
static void
RequestHandle(void *arg)
{
	Handling   *handling = arg;
	Request    *request = &handling->request;

	RequestRead(request, handling->message);
	handling->method = MethodFind(request);
	PG_TRY();
	{
		RunWatched = request->pipe && ArgumentIsGiven(request->meta, "progressToken");
		FunctionIsOffered = request->read_only ? FunctionReads : NULL;
		handling->result = handling->method->handle(request);
	}
	PG_FINALLY();
	{
		RunWatched = false;
		FunctionIsOffered = NULL;
	}
	PG_END_TRY();
}

/* Choose the code for an error that no handler has chosen one for. */
static int
CodeOfFault(const ToolFault *fault)
{
	static const char *const refused[] = {"42501", "25006"};	/* missing rights, only reading */

	return strncmp(fault->code, "SW", 2) == 0 || NameIndex(fault->code, refused, lengthof(refused)) >= 0 ? RPC_INVALID_PARAMS : RPC_INTERNAL;
}

/* Let the pipe tell who looks after it that the role has no tenant. A model can only pass that on. */
static void
TellOwner(Request *request, const ToolFault *fault)
{
	if (strcmp(fault->code, "SW010") == 0)
		BesidePut(request, "tell", JsonTextOf("text", FaultText(fault)));
}

/* Make the answer to a request that failed. */
static Jsonb *
FaultReply(Handling *handling, const ToolFault *fault)
{
	Request    *request = &handling->request;

	request->is_error = true;
	request->beside = NULL;
	request->comes_again = false;
	TellOwner(request, fault);
	if (request->error_code != 0)
		return ReplyError(request, fault->message);
	if (handling->method != NULL && handling->method->explain != NULL)
		return ReplyResult(request, handling->method->explain(request, fault), false);
	request->error_code = CodeOfFault(fault);
	return ReplyError(request, TranslateText(request, FaultText(fault)));
}

/* Answer one message; NULL if there is no answer to it. */
static Jsonb *
MessageAnswer(const Jsonb *message)
{
	Handling	handling = {.request.memory = CurrentMemoryContext, .message = message};
	TimestampTz since = GetCurrentTimestamp();
	ToolFault  *fault;
	Jsonb	   *answer;

	if (!RequestIsExpected(message))
		return NULL;
	if (Attempt(RequestHandle, &handling, &fault))
		answer = ReplyResult(&handling.request, handling.result, handling.method->caching);
	else
		answer = FaultReply(&handling, fault);
	if (handling.request.method != NULL && !handling.request.comes_again && (handling.method == NULL || !handling.method->unlogged))
		LogCall(&handling.request, RoundsBegan(&handling.request, since), message, answer);
	return answer;
}

/* ---------- batches ---------- */

/* Say what is wrong with a batch; NULL if nothing is. Only one version has batches. */
static const char *
BatchFault(const Jsonb *batch)
{
	bool		allowed = false;
	JsonbValue	element;

	if (JB_ROOT_COUNT(batch) == 0)
		return "a batch must not be empty";
	if (JB_ROOT_COUNT(batch) > BATCH_MAX)
		return "a batch has at most 100 messages";
	for (int i = 0; !allowed && JsonGetIndex(batch, i, &element); i++)
		allowed = MessageIsOfBatchVersion(JsonFromValue(&element));
	return allowed ? NULL : "batches exist in version " BATCH_VERSION " only";
}

/* Answer a batch; NULL if no message in it has an answer. */
static Jsonb *
BatchAnswer(const Jsonb *batch)
{
	JsonBuilder b = {0};
	JsonbValue	element;
	int			count = 0;

	JsonArrayStart(&b, NULL);
	for (int i = 0; JsonGetIndex(batch, i, &element); i++)
	{
		Jsonb	   *answer = MessageAnswer(JsonFromValue(&element));

		CHECK_FOR_INTERRUPTS();
		if (answer != NULL)
			JsonPutJson(&b, NULL, answer);
		count += answer != NULL;
	}
	JsonArrayEnd(&b);
	return count > 0 ? JsonFinish(&b) : NULL;
}

/* Answer a message, or a batch of them. */
PG_FUNCTION_INFO_V1(stepwise_mcp);
Datum
stepwise_mcp(PG_FUNCTION_ARGS)
{
	Jsonb	   *message = PG_ARGISNULL(0) ? JsonNull() : ArgumentJson(fcinfo, 0);
	Request		nameless = {.error_code = RPC_INVALID_REQUEST};
	const char *fault;
	Jsonb	   *answer;

	if (!JsonIsArray(message))
		answer = MessageAnswer(message);
	else if ((fault = BatchFault(message)) != NULL)
		answer = ReplyError(&nameless, fault);
	else
		answer = BatchAnswer(message);
	if (answer == NULL)
		PG_RETURN_NULL();
	return SendNote(JsonbPGetDatum(answer));
}
