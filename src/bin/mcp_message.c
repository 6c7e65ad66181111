/*
 * mcp_message.c
 *	  messages of the client, answers to it
 *
 * A message is kept as the text that came. The program adds members to it,
 * and does not write it anew.
 */
#include "mcp.h"

#define VERSION_KEY		"io.modelcontextprotocol/protocolVersion"

/* ---------- reading ---------- */

static void
ReadParams(Message *message)
{
	JsonList	meta;

	message->meta = JsonGet(message->params, "_meta");
	JsonRead(message->meta, &meta);
	message->progress_token = JsonMemberOf(&meta, "progressToken");
	message->modern = JsonMemberOf(&meta, VERSION_KEY).at != NULL;
	JsonForget(&meta);
	if (!SpanIs(message->meta, '{'))
		message->meta.at = NULL;
}

/* Copy a text that is an object, and find its parts. Its answer goes to the batch, unless that is NULL. */
Message *
MessageRead(Span text, Batch *batch)
{
	Message    *message = palloc0(sizeof(Message));
	JsonList	list;

	message->batch = batch;
	if (batch)
		BatchJoin(batch);
	message->text = SpanCopy(text);
	message->whole = SpanOf(message->text);
	JsonRead(message->whole, &list);
	message->id = JsonMemberOf(&list, "id");
	message->method = JsonMemberOf(&list, "method");
	message->params = JsonMemberOf(&list, "params");
	message->result = JsonMemberOf(&list, "result");
	message->error = JsonMemberOf(&list, "error");
	JsonForget(&list);
	if (SpanIs(message->params, '{'))
		ReadParams(message);
	return message;
}

/* Get what identifies an id: its type and its characters. NULL if it is no id. */
char *
MessageKey(Span id)
{
	char	   *string = JsonString(id);
	char	   *key = NULL;

	if (string)
	{
		key = psprintf("\"%s", string);
		pfree(string);
	}
	else if (id.at && (id.at[0] == '-' || isdigit((unsigned char) id.at[0])))
		key = SpanCopy(id);
	return key;
}

/* Free a message. If it was not answered, it never will be. */
void
MessageFree(Message *message)
{
	if (message->batch)
		BatchLeave(message->batch);
	pfree(message->text);
	pfree(message);
}

/* ---------- adding members ---------- */

/*
 * Add members to params._meta, and others to params. The later place comes
 * first, since the earlier one then stays. Where params or _meta is no object,
 * another one is added after it, and the last one counts.
 */
char *
MessageRequest(const Message *message, const char *meta, const char *more)
{
	StringInfoData members;
	char	   *with_more;
	char	   *text;
	Span		inner;

	if (message->params.at && !SpanIs(message->params, '{') && !SpanIs(message->params, 'n'))
		return pstrdup(message->text);	/* the database says what is wrong with it */
	if (message->meta.at)
	{
		with_more = *more ? JsonSplice(message->whole, message->params, more) : pstrdup(message->text);
		inner.at = with_more + (message->meta.at - message->text);
		inner.len = message->meta.len;
		text = JsonSplice(SpanOf(with_more), inner, meta);
		pfree(with_more);
		return text;
	}
	initStringInfo(&members);
	appendStringInfo(&members, "%s%s\"_meta\":{%s}", more, *more ? "," : "", meta);
	if (SpanIs(message->params, '{'))
		text = JsonSplice(message->whole, message->params, members.data);
	else
	{
		with_more = psprintf("\"params\":{%s}", members.data);
		text = JsonSplice(message->whole, message->whole, with_more);
		pfree(with_more);
	}
	pfree(members.data);
	return text;
}

/* ---------- answers ---------- */

/* Begin an answer. An answer to something unreadable has no id: the message is NULL, or has none. */
static void
BeginAnswer(StringInfo out, const Message *to)
{
	initStringInfo(out);
	appendStringInfoString(out, "{\"jsonrpc\":\"2.0\",");
	if (to && to->id.at)
		appendStringInfo(out, "\"id\":%.*s,", to->id.len, to->id.at);
}

/* Send an answer: in a line of its own, or with the others of its batch. */
static void
SendOut(Message *to, StringInfo out)
{
	Batch	   *batch = to ? to->batch : NULL;

	if (batch)
	{
		BatchAdd(batch, out->data);
		to->batch = NULL;
		BatchLeave(batch);
	}
	else
		OutputLine(out->data);
	pfree(out->data);
}

/* Answer with the "result" or "error" that the database gave. The id is written as it came. */
void
SendAnswer(Message *to, const char *kind, Span value)
{
	StringInfoData out;

	BeginAnswer(&out, to);
	appendStringInfo(&out, "\"%s\":", kind);
	appendBinaryStringInfo(&out, value.at, value.len);
	appendStringInfoChar(&out, '}');
	SendOut(to, &out);
}

/* Answer with an error. */
void
SendError(Message *to, int code, const char *text)
{
	StringInfoData out;

	BeginAnswer(&out, to);
	appendStringInfo(&out, "\"error\":{\"code\":%d,\"message\":", code);
	JsonQuote(&out, text);
	appendStringInfoString(&out, "}}");
	SendOut(to, &out);
}

static void
AddText(StringInfo out, const char *key, const char *value)
{
	if (value == NULL || *value == '\0')
		return;
	appendStringInfo(out, "%s\"%s\":", out->data[out->len - 1] == '{' ? "" : ",", key);
	JsonQuote(out, value);
}

/* Answer that the database could not be asked, and what to do. */
void
SendFailure(Message *to, const Failure *failure)
{
	StringInfoData out;
	char	   *message = psprintf("%s%s%s", failure->message, failure->hint ? "\n" : "", failure->hint ? failure->hint : "");

	BeginAnswer(&out, to);
	appendStringInfo(&out, "\"error\":{\"code\":%d,\"message\":", FailureIsClients(failure) ? ERROR_PARAMS : ERROR_INTERNAL);
	JsonQuote(&out, message);
	appendStringInfoString(&out, ",\"data\":{");
	AddText(&out, "sqlstate", failure->sqlstate);
	AddText(&out, "detail", failure->detail);
	AddText(&out, "hint", failure->hint);
	appendStringInfoString(&out, "}}}");
	SendOut(to, &out);
	pfree(message);
}

/* Send each message of an array that the database has made. */
void
SendEach(Span messages)
{
	JsonList	list;

	JsonRead(messages, &list);
	for (int i = 0; i < list.count; i++)
	{
		char	   *message = SpanCopy(list.members[i].value);

		OutputLine(message);
		pfree(message);
	}
	JsonForget(&list);
}
