/*
 * fuzz_frame.c
 *	  fuzz target of the input of stepwise-mcp: lines and messages
 *
 * This is a program of its own, linked with the objects of src/bin that read
 * the client's input, with sanitizers and with small limits. A case depends
 * only on its number and the seed: fuzz_frame CASES SEED.
 */
#include "bin/mcp.h"

#define FAIL(...) (fprintf(stderr, __VA_ARGS__), fprintf(stderr, "\ncase %d of seed %d: %s\n", number, seed, input.data), exit(1))

static int	seed;
static int	number;
static StringInfoData input;	/* of the case */

/* ---------- random numbers and texts ---------- */

static uint64 chance;

/* Draw one of 0 … count - 1. */
static int
Draw(int count)
{
	uint64		z = (chance += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return (z ^ (z >> 31)) % count;
}

static const char *const Scalars[] = {
	"null", "true", "0", "-1.50e2", "12345678901234567890123", "\"\"", "\"a\"", "\"\\u0061\"", "\"\\u0000\"", "\"\\ud83d\"", "\"\\ud83d\\ude00\"",
	"\"\\\\u0000\"", "\"\\\"{}\"", "\"é\"", "\"2.0\"",
};

static const char *const Keys[] = {
	"id", "method", "params", "_meta", "progressToken", "result", "error", "jsonrpc", "\\u0069d", "io.modelcontextprotocol/protocolVersion", "uri", "stepwise/pipe",
};

static const char *const Scraps[] = {
	"{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\u00", "\n", "\r\n", " ", "\t", "\xff", "\xc3", "\x01", "1", "-", "e", "tru", "null", "[[[[[[", "{\"a\":", "\"id\":1,",
};

static void
AddValue(StringInfo out, int depth)
{
	int			count = Draw(4);
	bool		is_object = Draw(3) > 0;

	if (depth == 0 || Draw(3) == 0)
	{
		appendStringInfoString(out, Scalars[Draw(lengthof(Scalars))]);
		return;
	}
	appendStringInfoString(out, is_object ? "{" : "[");
	for (int i = 0; i < count; i++)
	{
		appendStringInfoString(out, i > 0 ? ", " : Draw(2) ? " " : "");
		if (is_object)
			appendStringInfo(out, "\"%s\":", Keys[Draw(lengthof(Keys))]);
		AddValue(out, depth - 1);
	}
	appendStringInfoString(out, is_object ? "}" : "]");
}

/* Replace a few bytes by a scrap. */
static void
Mutate(StringInfo out)
{
	int			at = Draw(out->len + 1);
	int			end = at + Draw(Min(8, out->len - at + 1));
	char	   *rest = pnstrdup(out->data + end, out->len - end);

	out->len = at;
	appendStringInfoString(out, Scraps[Draw(lengthof(Scraps))]);
	appendStringInfoString(out, rest);
	pfree(rest);
}

/* ---------- messages ---------- */

static void
CheckSpan(const Message *message, Span span)
{
	if (span.at && (span.at <= message->text || span.at + span.len >= message->text + message->whole.len))
		FAIL("a part is outside its message");
	if (span.at && JsonCheck(span) != JSON_FINE)
		FAIL("a part is not JSON: %.*s", span.len, span.at);
}

/* Check that what the program adds to a message is there, whatever the client has written. */
static void
CheckRequest(const Message *message)
{
	char	   *request = MessageRequest(message, "\"stepwise/pipe\":true", Draw(2) ? "\"inputResponses\":{}" : "");
	Span		span = SpanOf(request);
	Span		flag;
	Span		id = JsonGet(span, "id");

	if (JsonCheck(span) != JSON_FINE && JsonCheck(span) != JSON_TOO_DEEP)
		FAIL("a request is broken: %s", request);
	flag = JsonGet(JsonGet(JsonGet(span, "params"), "_meta"), "stepwise/pipe");
	if ((message->params.at == NULL || SpanIs(message->params, '{')) && !SpanIs(flag, 't'))
		FAIL("a request lacks what was added: %s", request);
	if (id.len != message->id.len || (id.at && memcmp(id.at, message->id.at, id.len) != 0))
		FAIL("a request has another id: %s", request);
	pfree(request);
}

static void
CheckMessage(Span line)
{
	Message    *message = MessageRead(line, NULL);
	char	   *key = MessageKey(message->id);

	CheckSpan(message, message->id);
	CheckSpan(message, message->method);
	CheckSpan(message, message->params);
	CheckSpan(message, message->meta);
	CheckSpan(message, message->progress_token);
	CheckRequest(message);
	if (key)
		pfree(key);
	MessageFree(message);
}

/* Check that the messages of an array get one line, if any of them is answered. Some are answered later. */
static void
CheckBatch(Span line)
{
	int			before = OutputPending();
	bool		answered = false;
	Message    *late = NULL;
	JsonList	list;
	Batch	   *batch = BatchOpen();

	JsonRead(line, &list);
	for (int i = 0; i < list.count; i++)
	{
		Message    *message = SpanIs(list.members[i].value, '{') ? MessageRead(list.members[i].value, batch) : NULL;

		if (message && Draw(2))
		{
			SendError(message, ERROR_REQUEST, "answered");
			answered = true;
		}
		if (message && late == NULL && Draw(3) == 0)
			late = message;
		else if (message)
			MessageFree(message);
	}
	BatchLeave(batch);
	JsonForget(&list);
	if (late && late->batch && OutputPending() > before)
		FAIL("a batch was written before its last answer");
	if (late)
		MessageFree(late);
	if (answered != (OutputPending() > before))
		FAIL("a batch was answered by %d bytes", OutputPending() - before);
}

/* Read a line as the program does. Returns whether it is a message. */
static bool
CheckLine(Span line)
{
	JsonFault	fault = JsonCheck(line);
	char	   *readable;

	if (fault == JSON_NOT_STORABLE)
	{
		readable = JsonWithoutEscapes(line);
		if (JsonCheck(SpanOf(readable)) != JSON_FINE)
			FAIL("not readable without its escapes: %s", readable);
		pfree(readable);
	}
	if (fault == JSON_FINE && SpanIs(line, '['))
		CheckBatch(line);
	if (fault != JSON_FINE || !SpanIs(line, '{'))
		return false;
	CheckMessage(line);
	return true;
}

/* ---------- lines ---------- */

/* Count the lines of the text that are not blank, and those that are too long, in the simplest way. */
static void
CountLines(int *lines, int *oversized)
{
	int			start = 0;

	for (int i = 0; i <= input.len; i++)
	{
		bool		is_blank = true;

		if (i < input.len && input.data[i] != '\n')
			continue;
		for (int j = start; j < i; j++)
			is_blank = is_blank && isspace((unsigned char) input.data[j]);
		if (i - start > MAX_LINE)
			(*oversized)++;
		else if (!is_blank)
			(*lines)++;
		start = i + 1;
	}
}

/* Feed the text in pieces. Returns the number of messages. */
static int
FeedText(void)
{
	Frame		frame;
	Span		line;
	FrameKind	kind;
	int			found[3] = {0};
	int			lines = 0;
	int			oversized = 0;
	int			messages = 0;

	FrameInit(&frame);
	for (int fed = 0; fed < input.len || !frame.ended;)
	{
		int			drawn = 1 + Draw(Draw(2) ? 3 : 2 * MAX_LINE);
		int			piece = Min(input.len - fed, drawn);

		if (fed < input.len)
			FrameFeed(&frame, input.data + fed, piece);
		else
			FrameEnd(&frame);
		fed += piece;
		while ((kind = FrameNext(&frame, &line)) != FRAME_NONE)
		{
			found[kind]++;
			if (kind == FRAME_LINE)
				messages += CheckLine(line);
		}
	}
	FrameFree(&frame);
	CountLines(&lines, &oversized);
	if (found[FRAME_LINE] != lines || found[FRAME_OVERSIZED] != oversized)
		FAIL("%d lines and %d oversized ones, but %d and %d were found", lines, oversized, found[FRAME_LINE], found[FRAME_OVERSIZED]);
	return messages;
}

int
main(int argc, char **argv)
{
	int			cases = atoi(argv[1]);
	int			messages = 0;

	seed = atoi(argv[2]);
	initStringInfo(&input);
	for (number = 0; number < cases; number++)
	{
		chance = (uint64) seed * 1000003 + number;
		resetStringInfo(&input);
		for (int i = Draw(4); i >= 0; i--)
		{
			AddValue(&input, Draw(6));
			appendStringInfoString(&input, Draw(8) ? "\n" : "");
		}
		for (int i = Draw(4); i > 0; i--)
			Mutate(&input);
		messages += FeedText();
	}
	pfree(input.data);
	OutputFree();
	printf("ok frame: %d cases, %d messages\n", cases, messages);
	return 0;
}
