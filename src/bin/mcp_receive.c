/*
 * mcp_receive.c
 *	  what a line of the client is
 *
 * A request or a notification goes to the database. The program itself answers
 * "ping", cancels calls, and takes answers to its own questions. What cannot
 * be read gets an error.
 */
#include "mcp.h"

#define MAX_ID		1024		/* bytes */

static const Span NoId;

/* ---------- what the program does itself ---------- */

static bool
AnswerPing(const Message *message)
{
	if (message->modern || message->id.at == NULL)
		return false;
	SendAnswer(message->id, "result", SpanOf("{}"));
	return true;
}

static bool
CancelCall(const Message *message)
{
	if (message->id.at)
		return false;			/* it is no notification */
	AnswerCancel(JsonGet(message->params, "requestId"));
	return true;
}

static const struct
{
	const char *method;
	bool		(*handle) (const Message *message);
}			Own[] = {
	{"ping", AnswerPing},
	{"notifications/cancelled", CancelCall},
};

static bool
IsOwn(const Message *message)
{
	for (int i = 0; i < lengthof(Own); i++)
		if (JsonStringIs(message->method, Own[i].method))
			return Own[i].handle(message);
	return false;
}

/* ---------- messages ---------- */

static bool
IsId(Span id)
{
	char	   *key = id.len <= MAX_ID ? MessageKey(id) : NULL;

	if (key == NULL)
		return false;
	pfree(key);
	return true;
}

static void
ReceiveMessage(Span text)
{
	Message    *message = MessageRead(text);
	bool		has_id = IsId(message->id);

	LogLine("-> %.*s %.*s %d bytes", has_id ? Min(message->id.len, 100) : 0, has_id ? message->id.at : "",
			Min(message->method.len, 100), message->method.at ? message->method.at : "", message->whole.len);
	if (message->id.at && !has_id)
		SendError(NoId, ERROR_REQUEST, "an id is a string or a number, of at most 1 kB");
	else if (message->method.at == NULL && (message->result.at || message->error.at))
		AskAnswered(message);
	else if (!SpanIs(message->method, '"'))
		SendError(message->id, ERROR_REQUEST, "a message needs \"method\", a string");
	else if (!IsOwn(message))
	{
		AnswerBegin(message);
		return;					/* the call owns the message */
	}
	MessageFree(message);
}

/* Take the messages of an array. Each is answered for itself. */
static void
ReceiveBatch(Span text)
{
	JsonList	list;

	JsonRead(text, &list);
	if (list.count == 0 || !CallMayBatch())
		SendError(NoId, ERROR_REQUEST, "send each message for itself, as an object in a line of its own");
	else
	{
		for (int i = 0; i < list.count; i++)
		{
			if (SpanIs(list.members[i].value, '{'))
				ReceiveMessage(list.members[i].value);
			else
				SendError(NoId, ERROR_REQUEST, "a message is an object");
		}
	}
	JsonForget(&list);
}

/* It is JSON, but no text of PostgreSQL can hold it. The id may be readable all the same. */
static void
RefuseEscapes(Span text)
{
	char	   *readable = JsonWithoutEscapes(text);
	Message    *message = MessageRead(SpanOf(readable));

	SendError(IsId(message->id) ? message->id : NoId, ERROR_PARAMS,
			  "a text has \\u0000 or half of a surrogate pair, which PostgreSQL cannot store; leave it out");
	MessageFree(message);
	pfree(readable);
}

/* Take a line. */
void
ReceiveLine(Span line)
{
	switch (JsonCheck(line))
	{
		case JSON_BROKEN:
			SendError(NoId, ERROR_PARSE, "a line is not valid JSON; a message is one JSON object in one line");
			break;
		case JSON_NOT_UTF8:
			SendError(NoId, ERROR_PARSE, "a line is not valid UTF-8");
			break;
		case JSON_TOO_DEEP:
			SendError(NoId, ERROR_PARSE, "a message has more than 1000 levels");
			break;
		case JSON_NOT_STORABLE:
			RefuseEscapes(line);
			break;
		case JSON_FINE:
			if (SpanIs(line, '{'))
				ReceiveMessage(line);
			else if (SpanIs(line, '['))
				ReceiveBatch(line);
			else
				SendError(NoId, ERROR_REQUEST, "a message is an object");
			break;
	}
}

/* Say that a line was too long. */
void
ReceiveOversized(void)
{
	SendError(NoId, ERROR_PARSE, "a message is longer than 16 MB");
}
