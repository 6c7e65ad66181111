/*
 * shorten.c
 *	  cut an answer to a length
 *
 * Functions bound their answers themselves. This is for those that a model
 * would still not want to read whole. Each level of the table cuts more, until
 * the answer fits: long texts, long lists, and what is nested deep.
 */
#include "mcp/mcp.h"

typedef struct Level
{
	int			text;			/* bytes of a string */
	int			entries;		/* of an array or object */
	int			depth;			/* of objects and arrays */
} Level;

static const Level Levels[] = {
	{8000, 200, 64}, {2000, 50, 64}, {1000, 20, 64}, {300, 20, 32}, {150, 10, 16}, {80, 8, 6}, {60, 4, 4}, {40, 40, 1}, {20, 10, 1}
};

static void PutShort(JsonBuilder *b, const char *key, JsonbValue *value, const Level *level, int depth);

static void
PutShortText(JsonBuilder *b, const char *key, const JsonbValue *value, const Level *level)
{
	JsonPutText(b, key, CutText(JsonValueText(value), level->text, NULL));
}

static void
PutShortArray(JsonBuilder *b, const char *key, const Jsonb *array, const Level *level, int depth)
{
	JsonbValue	element;

	JsonArrayStart(b, key);
	for (int i = 0; i < level->entries && JsonGetIndex(array, i, &element); i++)
		PutShort(b, NULL, &element, level, depth + 1);
	JsonArrayEnd(b);
}

static void
PutShortObject(JsonBuilder *b, const char *key, const Jsonb *object, const Level *level, int depth)
{
	int			count;
	const char **names = JsonKeys(object, &count);

	JsonObjectStart(b, key);
	/* the outermost object is an answer, whose keys are few and ours */
	for (int i = 0; i < count && i < Max(level->entries, 40); i++)
	{
		JsonbValue	value;

		JsonGet(object, names[i], &value);
		PutShort(b, names[i], &value, level, depth + 1);
	}
	JsonObjectEnd(b);
}

static void
PutShort(JsonBuilder *b, const char *key, JsonbValue *value, const Level *level, int depth)
{
	Jsonb	   *json;

	if (value->type == jbvString)
	{
		PutShortText(b, key, value, level);
		return;
	}
	if (value->type != jbvBinary)
	{
		JsonPutValue(b, key, value);
		return;
	}
	json = JsonFromValue(value);
	if (depth >= level->depth)
		JsonPutJson(b, key, JsonParse(JsonIsArray(json) ? "[]" : "{\"cut\": true}"));	/* its type stays */
	else if (JsonIsArray(json))
		PutShortArray(b, key, json, level, depth);
	else
		PutShortObject(b, key, json, level, depth);
}

/* Show an answer as text: a string as it is, others as compact JSON. */
char *
AnswerText(const Jsonb *answer)
{
	JsonbValue	value;

	JsonToValue(answer, &value);
	return JsonScalarText(&value);
}

/*
 * Measure an answer in a message: its text in a string, where quotes, backslashes
 * and line ends are escaped, and if it comes twice also as an object, which
 * PostgreSQL writes with a blank after each comma and colon.
 */
static int
MessageLength(const char *text, bool twice)
{
	int			quoted = 0;
	int			spaced = 0;

	for (; *text; text++)
	{
		quoted += *text == '"' || *text == '\\' || (unsigned char) *text < ' ' ? 2 : 1;
		spaced += *text == ',' || *text == ':' ? 2 : 1;
	}
	return twice ? quoted + spaced : quoted;
}

/* Say that an answer is cut, and how to get more. */
static Jsonb *
CutNote(int length)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonObjectStart(&b, "truncated");
	JsonPutInt(&b, "bytes", length);
	JsonPutText(&b, "message", "This answer was too long: texts and lists in it are cut. Read the whole with max_bytes, of a step by"
				" get_plan_status with its plan_id and step and view context.");
	JsonObjectEnd(&b);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/*
 * Cut an object so that a message with it is not longer than max_bytes. The
 * message has its text and, if it comes twice, the object itself.
 */
Jsonb *
Shorten(const Jsonb *answer, int max_bytes, bool twice, char **text)
{
	Jsonb	   *cut = unconstify(Jsonb *, answer);
	int			length;

	*text = AnswerText(answer);
	length = strlen(*text);
	for (size_t i = 0; i < lengthof(Levels) && MessageLength(*text, twice) > max_bytes; i++)
	{
		JsonBuilder b = {0};
		JsonbValue	value;

		/* our own lists have their counts beside them */
		JsonToValue(CutLists(answer, Levels[i].entries), &value);
		PutShort(&b, NULL, &value, &Levels[i], 0);
		cut = JsonMerge(JsonFinish(&b), CutNote(length));
		*text = AnswerText(cut);
	}
	return cut;
}

/* Check whether an answer fits into a message of max_bytes as text and as an object. */
bool
FitsTwice(const char *text, int max_bytes)
{
	return MessageLength(text, true) <= max_bytes;
}
