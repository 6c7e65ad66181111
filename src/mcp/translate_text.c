/*
 * translate_text.c
 *	  texts that name tools instead of functions
 *
 * Hints, messages and handoff mention functions in one of three ways:
 *
 *	stepwise.retry_step
 *	stepwise.retry_step('0190…')
 *	stepwise.retry_step with {"step_id": "0190…"}
 *
 * The last two are calls, and become calls of the tool that can be made as
 * they stand: update_step {"action": "retry", "step_id": "0190…"}. Values that
 * are left open are in angle brackets. What cannot be read is left as it is. An
 * alternative of handoff that no tool can do is left out.
 */
#include "mcp/mcp.h"

#include "utils/fmgrprotos.h"

#define PREFIX	"stepwise."
#define WITH	" with "
#define OTHER	"\n- Call " /* before an alternative, in handoff */

static bool
IsWordChar(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* ---------- a call as SQL writes it ---------- */

static void
SkipSpaces(const char **at)
{
	*at += strspn(*at, " ");
}

/* Read a word; NULL if there is none. */
static char *
TakeWord(const char **at)
{
	const char *start = *at;

	while (IsWordChar(**at))
		(*at)++;
	return *at > start ? pnstrdup(start, *at - start) : NULL;
}

/* Read a string in single quotes; NULL if it does not end. */
static char *
TakeString(const char **at)
{
	StringInfoData text;

	initStringInfo(&text);
	for ((*at)++; **at != '\0'; (*at)++)
	{
		if (**at == '\'' && (*at)[1] != '\'')
		{
			(*at)++;
			return text.data;
		}
		*at += **at == '\'';
		appendStringInfoChar(&text, **at);
	}
	return NULL;
}

static bool
IsNumber(const char *word)
{
	return strspn(word, "0123456789") == strlen(word) && strlen(word) < 10;
}

/* Read a value: a string, a number, or the name of what is left open. NULL if it is something else. */
static Jsonb *
TakeValue(const char **at, char *word)
{
	JsonBuilder b = {0};
	char	   *string = word == NULL && **at == '\'' ? TakeString(at) : NULL;

	if (word == NULL && string == NULL)
		return NULL;
	JsonArrayStart(&b, NULL);
	if (word != NULL && IsNumber(word))
		JsonPutInt(&b, NULL, atoi(word));
	else
		JsonPutText(&b, NULL, string ? string : psprintf("<%s>", word));
	JsonArrayEnd(&b);
	return JsonFinish(&b);
}

/* Read one argument into the builder. Returns false if it cannot be read. */
static bool
TakeArgument(const char **at, const Callable *callable, int position, JsonBuilder *b)
{
	const char *name = position < callable->argument_count ? callable->arguments[position].name : NULL;
	char	   *word;
	Jsonb	   *value;
	JsonbValue	element;

	SkipSpaces(at);
	word = TakeWord(at);
	if (word != NULL && strncmp(*at, " => ", 4) == 0)
	{
		name = word;
		*at += 4;
		word = TakeWord(at);
	}
	value = TakeValue(at, word);
	if (name == NULL || value == NULL)
		return false;
	JsonGetIndex(value, 0, &element);
	JsonPutValue(b, name, &element);
	SkipSpaces(at);
	return true;
}

/* Read "(a, b, c => d)". Returns the arguments and moves on; NULL if they cannot be read. */
static Jsonb *
TakeArguments(const char **at, const Callable *callable)
{
	const char *end = *at + 1;
	JsonBuilder b = {0};
	bool		more = *end != ')';

	JsonObjectStart(&b, NULL);
	for (int i = 0; more; i++)
	{
		if (!TakeArgument(&end, callable, i, &b) || (*end != ',' && *end != ')'))
			return NULL;
		more = *end == ',';
		end += more;
	}
	JsonObjectEnd(&b);
	*at = end + 1;
	return JsonFinish(&b);
}

/* ---------- a call as JSON writes it ---------- */

/* Return the length of the object at the beginning of a text; 0 if it does not end. */
static int
ObjectLength(const char *text)
{
	bool		in_string = false;
	int			depth = 0;

	for (const char *c = text; *c != '\0'; c++)
	{
		if (in_string && *c == '\\' && c[1] != '\0')
			c++;
		else if (*c == '"')
			in_string = !in_string;
		else if (!in_string && *c == '{')
			depth++;
		else if (!in_string && *c == '}' && --depth == 0)
			return c - text + 1;
	}
	return 0;
}

/* Read an object. Returns it and moves on; NULL if it cannot be read. */
static Jsonb *
TakeObject(const char **at)
{
	int			length = ObjectLength(*at);
	Datum		object;

	if (length == 0 || !InputSafe(jsonb_in, pnstrdup(*at, length), &object))
		return NULL;
	*at += length;
	return DatumGetJsonbP(object);
}

/* ---------- mentions ---------- */

/* Append a tool that is only named: update_step(action: retry). */
static void
AppendNamed(StringInfo text, const Translation *t, const char *tool)
{
	appendStringInfoString(text, tool);
	if (t != NULL && t->key != NULL)
		appendStringInfo(text, "(%s: %s)", t->key, t->word ? t->word : "true");
}

/* Append a call of a tool that can be made as it stands. */
static void
AppendCall(StringInfo text, const Translation *t, const char *tool, const char *between, const Jsonb *arguments)
{
	Jsonb	   *translated = TranslateArguments(t, arguments);

	appendStringInfoString(text, tool);
	if (JB_ROOT_COUNT(translated) > 0)
		appendStringInfo(text, "%s%s", between, JsonToText(translated));
}

/* Append a mention of a function that is no tool, or leave out its line. Returns where the text goes on. */
static const char *
AppendUntold(StringInfo text, const char *mention, const char *end)
{
	int			before = strlen(OTHER);

	if (text->len < before || strcmp(text->data + text->len - before, OTHER) != 0)
	{
		appendBinaryStringInfo(text, mention, end - mention);
		return end;
	}
	text->len -= before;
	text->data[text->len] = '\0';
	return end + strcspn(end, "\n");
}

/* Append what stands for the mention of a function. Returns where the text goes on. */
static const char *
AppendMention(StringInfo text, const Request *request, const char *mention)
{
	const char *at = mention + strlen(PREFIX);
	char	   *name = TakeWord(&at);
	const Callable *callable = name ? CallableFind(name) : NULL;
	const Translation *t = name ? TranslationFind(name) : NULL;
	const char *tool = name ? TranslatedTool(request, name) : NULL;
	const char *between = *at == '(' ? " " : WITH;
	Jsonb	   *arguments = NULL;

	if (callable == NULL || tool == NULL)
		return AppendUntold(text, mention, at);
	if (*at == '(')
		arguments = TakeArguments(&at, callable);
	else if (strncmp(at, WITH "{", strlen(WITH "{")) == 0)
	{
		const char *object = at + strlen(WITH);

		arguments = TakeObject(&object);
		at = arguments ? object : at;
	}
	if (arguments != NULL)
		AppendCall(text, t, tool, between, arguments);
	else
		AppendNamed(text, t, tool);
	return at;
}

/* ---------- what was cut ---------- */

#define CUT_START	" bytes in all; "
#define CUT_END		" reads it)"

/* Append a text that ends with the name of the function that reads it whole, and name its tool. */
static void
AppendReader(StringInfo out, const char *text, int length)
{
	int			start = length;
	int			before = strlen(CUT_START);
	const Translation *t = NULL;

	while (start > 0 && IsWordChar(text[start - 1]))
		start--;
	if (start >= before && strncmp(text + start - before, CUT_START, before) == 0)
		t = TranslationFind(pnstrdup(text + start, length - start));
	appendBinaryStringInfo(out, text, t ? start : length);
	if (t != NULL)
		AppendNamed(out, t, t->tool);
}

/* Name tools where base/cut.c has cut a text. */
char *
TranslateCuts(const char *text)
{
	StringInfoData translated;
	const char *end;

	initStringInfo(&translated);
	while ((end = strstr(text, CUT_END)) != NULL)
	{
		AppendReader(&translated, text, end - text);
		appendStringInfoString(&translated, CUT_END);
		text = end + strlen(CUT_END);
	}
	appendStringInfoString(&translated, text);
	return translated.data;
}

/* ---------- texts ---------- */

/* Name tools instead of functions in a text. */
char *
TranslateText(const Request *request, const char *text)
{
	StringInfoData translated;
	const char *mention;

	if (request->all_tools)
		return pstrdup(text);
	initStringInfo(&translated);
	while ((mention = strstr(text, PREFIX)) != NULL)
	{
		appendBinaryStringInfo(&translated, text, mention - text);
		text = AppendMention(&translated, request, mention);
	}
	appendStringInfoString(&translated, text);
	return TranslateCuts(translated.data);
}
