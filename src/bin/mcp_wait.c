/*
 * mcp_wait.c
 *	  calls that wait, and streams
 *
 * A call that waits is asked again when the database notifies, or after the
 * time that the database said. A stream stays open after its first answer: it
 * asks for what has changed since a state, which the database gave and the
 * program keeps without looking into it.
 */
#include "mcp.h"

#define SHORTEST_PAUSE	50		/* milliseconds between two questions, however often the database notifies */
#define DEFAULT_PAUSE	30000
#define MAX_STREAMS		128
#define UNREAD_LIMIT	(1024 * 1024)	/* bytes; a client that does not read gets no more of a stream */

typedef struct Stream
{
	char	   *state;			/* as JSON */
	char	   *result;			/* that ends it; NULL if it was sent already */
	char	   *uri;			/* as JSON, of an older client's subscription; or NULL */
	Milliseconds pause;
} Stream;

static void
WaitFor(Call *call, CallState state, Milliseconds pause)
{
	call->state = state;
	call->wake = Now() + pause;
	ListenStart();
}

/* Let a call wait, then ask again. */
void
WaitBegin(Call *call, Span wait)
{
	WaitFor(call, CALL_WAITING, JsonMilliseconds(JsonGet(wait, "ms"), DEFAULT_PAUSE));
}

/* ---------- streams ---------- */

static void
SetText(char **place, Span span)
{
	if (span.at == NULL)
		return;
	if (*place)
		pfree(*place);
	*place = SpanCopy(span);
}

/* Find the stream of an older client's subscription. */
Call *
StreamOf(Span uri)
{
	Call	   *call = CallFirst();

	while (call != NULL && !(call->stream && call->stream->uri && (int) strlen(call->stream->uri) == uri.len &&
							 memcmp(call->stream->uri, uri.at, uri.len) == 0))
		call = call->next;
	return call;
}

/* Tell whether another stream may be opened. They must leave room for calls. */
bool
StreamFits(void)
{
	int			count = 0;

	for (Call *call = CallFirst(); call != NULL; call = call->next)
		count += call->stream != NULL;
	return count < MAX_STREAMS;
}

/*
 * Open a stream. An older client has its answer already and names the stream
 * by its URI; for others it is named by the id of the call.
 */
void
StreamBegin(Call *call, Span listen, Span result)
{
	Stream	   *stream = palloc0(sizeof(Stream));

	stream->state = pstrdup("{}");
	SetText(&stream->state, JsonGet(listen, "state"));
	stream->pause = JsonMilliseconds(JsonGet(listen, "ms"), DEFAULT_PAUSE);
	if (call->message->modern)
		SetText(&stream->result, result);
	else
	{
		SetText(&stream->uri, JsonGet(call->message->params, "uri"));
		pfree(call->key);
		call->key = NULL;
	}
	call->stream = stream;
	SendEach(JsonGet(listen, "messages"));
	WaitFor(call, CALL_STREAMING, stream->pause);
}

/* Send what has changed, and wait on. Without a result, the question failed, and is asked again later. */
void
StreamGoOn(Call *call, Span result)
{
	SendEach(JsonGet(result, "messages"));
	SetText(&call->stream->state, JsonGet(result, "state"));
	WaitFor(call, CALL_STREAMING, call->stream->pause);
}

/* Send the result that ends a stream. */
void
StreamFinish(Call *call)
{
	if (call->stream && call->stream->result)
		SendAnswer(call->message, "result", SpanOf(call->stream->result));
}

/* Free a stream, since its call ends. */
void
StreamForget(Call *call)
{
	Stream	   *stream = call->stream;

	if (stream == NULL)
		return;
	pfree(stream->state);
	if (stream->result)
		pfree(stream->result);
	if (stream->uri)
		pfree(stream->uri);
	pfree(stream);
	call->stream = NULL;
}

/* ---------- the clock ---------- */

/* Get the time at which a call is asked again: soon after a notification, but not more often than is good. */
static Milliseconds
WakeTime(const Call *call)
{
	if (call->state != CALL_WAITING && call->state != CALL_STREAMING)
		return NEVER;
	if (call->state == CALL_STREAMING && OutputPending() > UNREAD_LIMIT)
		return NEVER;
	return call->seen != ListenCount() ? call->asked + SHORTEST_PAUSE : call->wake;
}

/* Ask again for the calls whose time has come. */
void
WaitTick(void)
{
	for (Call *call = CallFirst(); call != NULL; call = call->next)
	{
		if (Now() < WakeTime(call))
			continue;
		if (call->state == CALL_STREAMING)
			CallAskChanges(call, call->stream->state);
		else
			CallAsk(call, "");
	}
}

/* Get the time of the next WaitTick. */
Milliseconds
WaitDeadline(void)
{
	Milliseconds deadline = NEVER;

	for (Call *call = CallFirst(); call != NULL; call = call->next)
		deadline = Min(deadline, WakeTime(call));
	return deadline;
}
