/*
 * result.c
 *	  the results of tools
 *
 * A result is text for the model, and the same as an object for programs. Where
 * both are too long, the object is left out, unless the tool has promised it by
 * a schema. An error is text alone, since clients check objects against the
 * schema.
 */
#include "mcp/mcp.h"

#define CUT_NOTE	60			/* bytes of what CutText adds */
#define FRAME		200			/* bytes of a result beside the answer */

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

/* Check whether the tool of a result has promised an object. If we do not know the tool, it may have. */
static bool
NeedsObject(const Request *request)
{
	const ModelTool *tool = request->tool && !request->all_tools ? ModelToolFind(request->tool) : NULL;

	return tool ? tool->output != NULL : request->tool == NULL;
}

/* Make the result of a tool from an object. */
static Jsonb *
ObjectResult(const Request *request, const Jsonb *answer)
{
	JsonBuilder b = {0};
	bool		needed = NeedsObject(request);
	int			max_bytes = request->max_bytes - FRAME;
	char	   *text;
	Jsonb	   *cut = Shorten(answer, max_bytes, needed, &text);

	JsonObjectStart(&b, NULL);
	PutTextContent(&b, text, request->max_bytes);
	if (needed || FitsTwice(text, max_bytes))
		JsonPutJson(&b, "structuredContent", cut);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Make the result of a tool from its answer, which may be any JSON. */
Jsonb *
ToolResult(const Request *request, const Jsonb *answer)
{
	JsonBuilder b = {0};

	if (JsonIsObject(answer))
		return ObjectResult(request, answer);
	JsonObjectStart(&b, NULL);
	PutTextContent(&b, AnswerText(answer), request->max_bytes);
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
