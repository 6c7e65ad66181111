/*
 * mcp_call.c
 *	  calls that are open
 *
 * A call is a message of the client that is not answered yet, or something
 * that the program asks the database by itself. It may ask the database
 * several times; between that it waits and needs no connection.
 */
#include "mcp.h"

#define MAX_CALLS			256
#define MAX_CALL_BYTES		(4 * MAX_LINE)	/* of all open calls together */
#define MAX_CAPABILITIES	(64 * 1024) /* bytes; they are sent with each request */

const char *TheTools = "default";

static Call *calls;
static int	call_count;
static int64 call_bytes;

/* ---------- what a client has negotiated by "initialize" ---------- */

static char *version;			/* as JSON; NULL before that */
static char *capabilities;

/* Remember it. NULL forgets it. */
void
CallRemember(Span new_version, Span new_capabilities)
{
	bool		is_usable = SpanIs(new_capabilities, '{') && new_capabilities.len <= MAX_CAPABILITIES;

	if (version)
	{
		pfree(version);
		pfree(capabilities);
	}
	version = new_version.at ? SpanCopy(new_version) : NULL;
	capabilities = new_version.at ? (is_usable ? SpanCopy(new_capabilities) : pstrdup("{}")) : NULL;
}

/* Tell whether several messages may come in one array. One version had that. */
bool
CallMayBatch(void)
{
	return version && strcmp(version, "\"2025-03-26\"") == 0;
}

/*
 * Write what the database has to know with each request, since it keeps no
 * session. A client could send these keys too; those of the program count.
 */
static char *
MetaKeys(const Call *call)
{
	StringInfoData keys;

	initStringInfo(&keys);
	appendStringInfo(&keys, "\"stepwise/pipe\":true,\"stepwise/tools\":\"%s\",\"stepwise/again\":%s", TheTools,
					 call->again ? call->again : "null");
	if (TheLink.read_only)
		appendStringInfoString(&keys, ",\"stepwise/readOnly\":true");
	if (version && !call->message->modern)
		appendStringInfo(&keys, ",\"stepwise/version\":%s,\"stepwise/clientCapabilities\":%s", version, capabilities);
	return keys.data;
}

/* ---------- asking the database ---------- */

/* Hand on progress, an object, if it is more than the client knows and the client reads. */
void
CallProgress(Call *call, Span progress)
{
	Span		token = call->message->progress_token;
	Span		number;
	char	   *line;

	if (token.at == NULL || !SpanIs(progress, '{') || OutputPending() > MAX_LINE)
		return;
	number = JsonGet(progress, "progress");
	if (number.at == NULL || !(strtod(number.at, NULL) > call->progress))
		return;
	call->progress = strtod(number.at, NULL);
	line = psprintf("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%.*s,%.*s}",
					token.len, token.at, progress.len - 1, progress.at + 1);
	OutputLine(line);
	pfree(line);
}

/* Hand on progress that the server tells while the statement runs. */
static void
ForwardProgress(Job *job, const char *notice)
{
	if (JsonCheck(SpanOf(notice)) == JSON_FINE)
		CallProgress((Call *) job, SpanOf(notice));
}

/* Tell whether there is room for another call. */
bool
CallFits(const Message *message)
{
	return call_count < MAX_CALLS && call_bytes + message->whole.len <= MAX_CALL_BYTES;
}

/* Open a call. It owns the message. */
Call *
CallNew(Message *message, CallDone done)
{
	Call	   *call = palloc0(sizeof(Call));

	call->message = message;
	call->key = MessageKey(message->id);
	call->started = Now();
	call->progress = -1;
	call->job.done = done;
	call->job.notice = ForwardProgress;
	call->next = calls;
	calls = call;
	call_count++;
	call_bytes += message->whole.len;
	return call;
}

static void
SetText(char **place, char *text)
{
	if (*place)
		pfree(*place);
	*place = text;
}

/* Ask the database with this request, which the call then owns. */
static void
Submit(Call *call, char *request)
{
	SetText(&call->job.request, request);
	call->state = CALL_RUNNING;
	call->asked = Now();
	call->seen = ListenCount();
	PoolSubmit(&call->job);
}

/* Ask the database with the message of the call, and more members of its params. */
void
CallAsk(Call *call, const char *more)
{
	char	   *keys = MetaKeys(call);
	char	   *request = MessageRequest(call->message, keys, more);
	char	   *kept = pstrdup(more);

	pfree(keys);
	SetText(&call->more, kept);
	Submit(call, request);
}

/* Ask the database the same again, with the state that it gave. */
void
CallAskAgain(Call *call, Span state)
{
	SetText(&call->again, SpanCopy(state));
	CallAsk(call, call->more);
}

/* Ask the database what has changed since a state. */
void
CallAskChanges(Call *call, const char *state)
{
	char	   *keys = MetaKeys(call);
	char	   *request = psprintf("{\"jsonrpc\":\"2.0\",\"id\":\"stepwise-changes\",\"method\":\"stepwise/changes\","
								   "\"params\":{\"state\":%s,\"_meta\":{%s}}}", state, keys);

	pfree(keys);
	Submit(call, request);
}

/* ---------- the list ---------- */

/* Get the first open call. */
Call *
CallFirst(void)
{
	return calls;
}

/* Find the call that has this id, or NULL. */
Call *
CallFind(Span id)
{
	char	   *key = MessageKey(id);
	Call	   *call = key ? calls : NULL;

	while (call != NULL && (call->key == NULL || strcmp(call->key, key) != 0))
		call = call->next;
	if (key)
		pfree(key);
	return call;
}

/* Tell whether this request of the database is being worked on. */
bool
CallWorks(Span request)
{
	Call	   *call = calls;

	while (call != NULL && !(call->job.background && call->message->whole.len == request.len &&
							 memcmp(call->message->text, request.at, request.len) == 0))
		call = call->next;
	return call != NULL;
}

/* Forget a call. If its statement runs it is cancelled. */
void
CallEnd(Call *call)
{
	Call	  **place = &calls;

	while (*place != call)
		place = &(*place)->next;
	*place = call->next;
	call_count--;
	call_bytes -= call->message->whole.len;
	if (call->state == CALL_RUNNING)
		PoolCancel(&call->job);
	SetText(&call->job.request, NULL);
	SetText(&call->key, NULL);
	SetText(&call->more, NULL);
	SetText(&call->again, NULL);
	MessageFree(call->message);
	pfree(call);
}
