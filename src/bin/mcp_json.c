/*
 * mcp_json.c
 *	  a shallow look into JSON
 *
 * JSON is parsed by the parser of libpgcommon. It reports where each value
 * begins and ends, so ids and numbers pass through exactly as they were
 * written; a library that builds values would lose that.
 *
 * Everything but JsonCheck is for texts that have passed JsonCheck, or come
 * from the database. In the client the parser does not look at the depth of
 * its stack, and what it has allocated at an error is lost. So JsonCheck
 * counts the levels first, and then parses without actions, which allocates
 * nothing.
 */
#include "mcp.h"

#include "common/jsonapi.h"
#include "mb/pg_wchar.h"

/* The signatures changed in versions 16 and 17. */
#if PG_VERSION_NUM >= 160000
typedef JsonParseErrorType ActionResult;
#define ACTION_RETURN	return JSON_SUCCESS
#else
typedef void ActionResult;
#define ACTION_RETURN	return
#endif

static JsonLexContext *
LexBegin(Span text, bool need_escapes)
{
#if PG_VERSION_NUM >= 170000
	return makeJsonLexContextCstringLen(NULL, text.at, text.len, PG_UTF8, need_escapes);
#else
	return makeJsonLexContextCstringLen(unconstify(char *, text.at), text.len, PG_UTF8, need_escapes);
#endif
}

static void
LexEnd(JsonLexContext *lex)
{
#if PG_VERSION_NUM >= 170000
	freeJsonLexContext(lex);
#else
	if (lex->strval)
	{
		pfree(lex->strval->data);
		pfree(lex->strval);
	}
	pfree(lex);
#endif
}

/* ---------- spans ---------- */

/* Make a span of a whole text. */
Span
SpanOf(const char *text)
{
	Span		span = {text, strlen(text)};

	return span;
}

/* Tell whether a value begins like this: '{' is an object, '"' a string. */
bool
SpanIs(Span span, char first)
{
	return span.at != NULL && span.len > 0 && span.at[0] == first;
}

/* Copy a span into a text of its own. */
char *
SpanCopy(Span span)
{
	return pnstrdup(span.at, span.len);
}

/* ---------- checking ---------- */

static bool
IsTooDeep(Span text)
{
	JsonLexContext *lex = LexBegin(text, false);
	int			level = 0;

	while (level <= MAX_DEPTH && json_lex(lex) == JSON_SUCCESS && lex->token_type != JSON_TOKEN_END)
	{
		if (lex->token_type == JSON_TOKEN_OBJECT_START || lex->token_type == JSON_TOKEN_ARRAY_START)
			level++;
		else if (lex->token_type == JSON_TOKEN_OBJECT_END || lex->token_type == JSON_TOKEN_ARRAY_END)
			level--;
	}
	LexEnd(lex);
	return level > MAX_DEPTH;
}

static JsonParseErrorType
ParseWithoutActions(Span text, bool need_escapes)
{
	JsonLexContext *lex = LexBegin(text, need_escapes);
	JsonSemAction none = {0};
	JsonParseErrorType result = pg_parse_json(lex, &none);

	LexEnd(lex);
	return result;
}

/* Say what is wrong with a text. */
JsonFault
JsonCheck(Span text)
{
	if (pg_encoding_verifymbstr(PG_UTF8, text.at, text.len) != text.len)
		return JSON_NOT_UTF8;
	if (IsTooDeep(text))
		return JSON_TOO_DEEP;
	if (ParseWithoutActions(text, true) == JSON_SUCCESS)
		return JSON_FINE;
	/* zero, or half of a surrogate pair: the escapes are well formed, but mean no character */
	return ParseWithoutActions(text, false) == JSON_SUCCESS ? JSON_NOT_STORABLE : JSON_BROKEN;
}

/* Copy a text that is JSON_NOT_STORABLE, with another character in place of each one escaped by its number. */
char *
JsonWithoutEscapes(Span text)
{
	char	   *copy = SpanCopy(text);

	for (char *at = copy; *at != '\0'; at++)
	{
		if (*at != '\\')
			continue;
		at++;
		if (*at == 'u')
			memcpy(at + 1, "003f", 4);
	}
	return copy;
}

/* ---------- members ---------- */

typedef struct Reading
{
	JsonLexContext *lex;
	JsonList   *list;
	int			room;
	const char *start;
} Reading;

static void
AddMember(Reading *reading, char *key)
{
	JsonList   *list = reading->list;
	JsonMember *member;

	if (list->count == reading->room)
	{
		reading->room = Max(16, reading->room * 2);
		list->members = list->members ? repalloc(list->members, reading->room * sizeof(JsonMember))
			: palloc(reading->room * sizeof(JsonMember));
	}
	member = &list->members[list->count++];
	member->key = key;
	member->value.at = reading->start;
	member->value.len = reading->lex->prev_token_terminator - reading->start;
}

static ActionResult
FieldStart(void *state, char *key, bool isnull)
{
	Reading    *reading = state;

	if (reading->lex->lex_level == 1)
		reading->start = reading->lex->token_start;
	ACTION_RETURN;
}

static ActionResult
FieldEnd(void *state, char *key, bool isnull)
{
	Reading    *reading = state;

	if (reading->lex->lex_level == 1)
		AddMember(reading, key);
	else
		pfree(key);
	ACTION_RETURN;
}

static ActionResult
ElementStart(void *state, bool isnull)
{
	return FieldStart(state, NULL, isnull);
}

static ActionResult
ElementEnd(void *state, bool isnull)
{
	Reading    *reading = state;

	if (reading->lex->lex_level == 1)
		AddMember(reading, NULL);
	ACTION_RETURN;
}

/* List the members of an object or the elements of an array. Anything else has none. */
void
JsonRead(Span container, JsonList *list)
{
	Reading		reading = {0};
	JsonSemAction actions = {0};

	memset(list, 0, sizeof(JsonList));
	if (!SpanIs(container, '{') && !SpanIs(container, '['))
		return;
	reading.lex = LexBegin(container, true);
	reading.list = list;
	actions.semstate = &reading;
	actions.object_field_start = FieldStart;
	actions.object_field_end = FieldEnd;
	actions.array_element_start = ElementStart;
	actions.array_element_end = ElementEnd;
	if (pg_parse_json(reading.lex, &actions) != JSON_SUCCESS)
		JsonForget(list);
	LexEnd(reading.lex);
}

/* Find a member. If a key is there twice the last one counts, as in jsonb. */
Span
JsonMemberOf(const JsonList *list, const char *key)
{
	Span		none = {0};

	for (int i = list->count - 1; i >= 0; i--)
		if (list->members[i].key && strcmp(list->members[i].key, key) == 0)
			return list->members[i].value;
	return none;
}

/* Find one member of an object. */
Span
JsonGet(Span object, const char *key)
{
	JsonList	list;
	Span		value;

	JsonRead(object, &list);
	value = JsonMemberOf(&list, key);
	JsonForget(&list);
	return value;
}

/* Free what JsonRead has made. */
void
JsonForget(JsonList *list)
{
	for (int i = 0; i < list->count; i++)
		if (list->members[i].key)
			pfree(list->members[i].key);
	if (list->members)
		pfree(list->members);
	memset(list, 0, sizeof(JsonList));
}

/* ---------- values ---------- */

static ActionResult
KeepScalar(void *state, char *token, JsonTokenType type)
{
	*(char **) state = token;
	ACTION_RETURN;
}

/* Get the characters of a string, or NULL if it is none. */
char *
JsonString(Span span)
{
	char	   *text = NULL;
	JsonSemAction actions = {0};
	JsonLexContext *lex;

	if (!SpanIs(span, '"'))
		return NULL;
	lex = LexBegin(span, true);
	actions.semstate = &text;
	actions.scalar = KeepScalar;
	pg_parse_json(lex, &actions);
	LexEnd(lex);
	return text;
}

/* Tell whether a value is this string. */
bool
JsonStringIs(Span span, const char *text)
{
	char	   *string = JsonString(span);
	bool		same = string && strcmp(string, text) == 0;

	if (string)
		pfree(string);
	return same;
}

/* Read a time to wait, at least a tenth of a second and at most an hour. */
Milliseconds
JsonMilliseconds(Span span, Milliseconds otherwise)
{
	double		value = otherwise;

	if (span.at && (isdigit((unsigned char) span.at[0]) || span.at[0] == '-'))
		value = strtod(span.at, NULL);
	return (Milliseconds) Max(100.0, Min(value, 3600000.0));
}

/* ---------- writing ---------- */

/* Append a text as a JSON string. */
void
JsonQuote(StringInfo out, const char *text)
{
	appendStringInfoChar(out, '"');
	for (; *text != '\0'; text++)
	{
		if (*text == '"' || *text == '\\')
			appendStringInfo(out, "\\%c", *text);
		else if (*text == '\n')
			appendStringInfoString(out, "\\n");
		else if ((unsigned char) *text < ' ')
			appendStringInfo(out, "\\u%04x", (unsigned char) *text);
		else
			appendStringInfoChar(out, *text);
	}
	appendStringInfoChar(out, '"');
}

/*
 * Copy a text and add members at the end of an object in it. There they
 * override members of the same name, since the last one counts in jsonb.
 */
char *
JsonSplice(Span text, Span object, const char *members)
{
	StringInfoData out;
	int			end = object.at - text.at + object.len - 1;
	const char *inside = object.at + 1;

	while (isspace((unsigned char) *inside))
		inside++;
	initStringInfo(&out);
	appendBinaryStringInfo(&out, text.at, end);
	if (*inside != '}')
		appendStringInfoChar(&out, ',');
	appendStringInfoString(&out, members);
	appendBinaryStringInfo(&out, text.at + end, text.len - end);
	return out.data;
}
