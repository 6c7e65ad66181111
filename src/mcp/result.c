/*
 * result.c
 *	  the results of tools
 *
 * A result is text for the model, and the same as an object for programs. An
 * error is text alone, since clients check objects against the schema of the
 * tool.
 */
#include "mcp/mcp.h"

#define CUT_NOTE	60			/* bytes of what CutText adds */

/* Cut a text that is too long for a result. */
const char *
TextWithin(const char *text, int max_bytes)
{
	return strlen(text) > max_bytes ? CutText(text, max_bytes - CUT_NOTE, NULL) : text;
}

static void
PutTextContent(JsonBuilder *b, const char *text, int max_bytes)
{
	JsonArrayStart(b, "content");
	JsonObjectStart(b, NULL);
	JsonPutText(b, "type", "text");
	JsonPutText(b, "text", TextWithin(text, max_bytes));
	JsonObjectEnd(b);
	JsonArrayEnd(b);
}

/* Show an answer as text: a string as it is, others as compact JSON. */
char *
AnswerText(const Jsonb *answer)
{
	JsonbValue	value;

	JsonToValue(answer, &value);
	return JsonScalarText(&value);
}

/* Make the result of a tool from its answer, which may be any JSON. */
Jsonb *
ToolResult(Request *request, const Jsonb *answer)
{
	JsonBuilder b = {0};
	char	   *text;

	if (JsonIsObject(answer))
		answer = Shorten(answer, request->max_bytes);
	text = AnswerText(answer);
	JsonObjectStart(&b, NULL);
	PutTextContent(&b, text, request->max_bytes);
	if (JsonIsObject(answer))
		JsonPutJson(&b, "structuredContent", answer);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Make the result of a tool that could not do its work. */
Jsonb *
ToolErrorResult(const Request *request, const char *text)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutTextContent(&b, text, request->max_bytes);
	JsonPutBool(&b, "isError", true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Make the result of a tool that raised an error. */
Jsonb *
ToolFaultResult(const Request *request, const ToolFault *fault)
{
	return ToolErrorResult(request, TranslateText(request, FaultText(fault)));
}
