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
#define MAX_BATCH	100			/* messages, as for stepwise.mcp */

/* ---------- what the program does itself ---------- */

static bool
AnswerPing(Message *message)
{
	if (message->modern || message->id.at == NULL)
		return false;
	SendAnswer(message, "result", SpanOf("{}"));
	return true;
}

static bool
CancelCall(Message *message)
{
	if (message->id.at)
		return false;			/* it is no notification */
	AnswerCancel(JsonGet(message->params, "requestId"));
	return true;
}

static const struct
{
	const char *method;
	bool		(*handle) (Message *message);
}			Own[] = {
	{"ping", AnswerPing},
	{"notifications/cancelled", CancelCall},
};

static bool
IsOwn(Message *message)
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

/* Read a message. Returns whether it has something else than an id in the place of it, which is not repeated. */
static bool
ReadMessage(Span text, Batch *batch, Message **message)
{
	bool		is_wrong;

	*message = MessageRead(text, batch);
	is_wrong = (*message)->id.at && !IsId((*message)->id);
	if (is_wrong)
		(*message)->id.at = NULL;
	return is_wrong;
}

static void
ReceiveMessage(Span text, Batch *batch)
{
	Message    *message;
	bool		has_wrong_id = ReadMessage(text, batch, &message);

	LogLine("-> %.*s %.*s %d bytes", message->id.at ? Min(message->id.len, 100) : 0, message->id.at ? message->id.at : "",
			Min(message->method.len, 100), message->method.at ? message->method.at : "", message->whole.len);
	if (has_wrong_id)
		SendError(message, ERROR_REQUEST, "an id is a string or a number, of at most 1 kB");
	else if (message->method.at == NULL && (message->result.at || message->error.at))
		AskAnswered(message);
	else if (!SpanIs(message->method, '"'))
		SendError(message, ERROR_REQUEST, "a message needs \"method\", a string");
	else if (!IsOwn(message))
	{
		AnswerBegin(message);
		return;					/* the call owns the message */
	}
	MessageFree(message);
}

/* Take what stands for a message. */
static void
ReceiveValue(Span value, Batch *batch)
{
	Message    *nothing;

	if (SpanIs(value, '{'))
	{
		ReceiveMessage(value, batch);
		return;
	}
	nothing = MessageRead(SpanOf("{}"), batch);
	SendError(nothing, ERROR_REQUEST, "a message is an object");
	MessageFree(nothing);
}

/* Take the messages of an array. Their answers go out together, when all are there. */
static void
ReceiveBatch(Span text)
{
	JsonList	list;
	Batch	   *batch;

	JsonRead(text, &list);
	if (list.count == 0 || !CallMayBatch())
		SendError(NULL, ERROR_REQUEST, "send each message for itself, as an object in a line of its own");
	else if (list.count > MAX_BATCH)
		SendError(NULL, ERROR_REQUEST, "a batch has at most 100 messages");
	else
	{
		batch = BatchOpen();
		for (int i = 0; i < list.count; i++)
			ReceiveValue(list.members[i].value, batch);
		BatchLeave(batch);
	}
	JsonForget(&list);
}

/* It is JSON, but no text of PostgreSQL can hold it. The id may be readable all the same. */
static void
RefuseEscapes(Span text)
{
	char	   *readable = JsonWithoutEscapes(text);
	Message    *message;

	ReadMessage(SpanOf(readable), NULL, &message);
	SendError(message, ERROR_PARAMS,
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
			SendError(NULL, ERROR_PARSE, "a line is not valid JSON; a message is one JSON object in one line");
			break;
		case JSON_NOT_UTF8:
			SendError(NULL, ERROR_PARSE, "a line is not valid UTF-8");
			break;
		case JSON_TOO_DEEP:
			SendError(NULL, ERROR_PARSE, "a message has more than 1000 levels");
			break;
		case JSON_NOT_STORABLE:
			RefuseEscapes(line);
			break;
		case JSON_FINE:
			if (SpanIs(line, '['))
				ReceiveBatch(line);
			else
				ReceiveValue(line, NULL);
			break;
	}
}

/* Say that a line was too long. */
void
ReceiveOversized(void)
{
	SendError(NULL, ERROR_PARSE, "a message is longer than 16 MB");
}
