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

/* Write what the database has to know with each request, since it keeps no session. */
static char *
MetaKeys(bool modern)
{
	StringInfoData keys;

	initStringInfo(&keys);
	appendStringInfo(&keys, "\"stepwise/pipe\":true,\"stepwise/tools\":\"%s\"", TheTools);
	if (TheLink.read_only)
		appendStringInfoString(&keys, ",\"stepwise/readOnly\":true");
	if (version && !modern)
		appendStringInfo(&keys, ",\"stepwise/version\":%s,\"stepwise/clientCapabilities\":%s", version, capabilities);
	return keys.data;
}

/* ---------- asking the database ---------- */

/* Hand on progress, if it is more than the client knows and the client reads. */
static void
ForwardProgress(Job *job, const char *notice)
{
	Call	   *call = (Call *) job;
	Span		token = call->message->progress_token;
	Span		object = SpanOf(notice);
	Span		progress;
	char	   *line;

	if (token.at == NULL || !SpanIs(object, '{') || JsonCheck(object) != JSON_FINE || OutputPending() > MAX_LINE)
		return;
	progress = JsonGet(object, "progress");
	if (progress.at == NULL || !(strtod(progress.at, NULL) > call->progress))
		return;
	call->progress = strtod(progress.at, NULL);
	line = psprintf("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":%.*s,%s}",
					token.len, token.at, notice + 1);
	OutputLine(line);
	pfree(line);
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

/* Ask the database with this request, which the call then owns. */
static void
Submit(Call *call, char *request)
{
	if (call->job.request)
		pfree(call->job.request);
	call->job.request = request;
	call->state = CALL_RUNNING;
	call->asked = Now();
	call->seen = ListenCount();
	PoolSubmit(&call->job);
}

/* Ask the database with the message of the call, and more members of its params. */
void
CallAsk(Call *call, const char *more)
{
	char	   *keys = MetaKeys(call->message->modern);
	char	   *request = MessageRequest(call->message, keys, more);

	pfree(keys);
	Submit(call, request);
}

/* Ask the database what has changed since a state. */
void
CallAskChanges(Call *call, const char *state)
{
	char	   *keys = MetaKeys(call->message->modern);
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
	if (call->job.request)
		pfree(call->job.request);
	if (call->key)
		pfree(call->key);
	MessageFree(call->message);
	pfree(call);
}
