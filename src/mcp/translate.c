/*
 * translate.c
 *	  answers as a model needs them
 *
 * What answers say about functions is said about tools here: in calls that they
 * name, and in sentences. Lists are cut. Keys that are null are left out. The
 * values of users are left as they are.
 */
#include "mcp/mcp.h"

/* Name a tool in what stands for a value that base/cut.c has cut. */
static Jsonb *
TranslateCutValue(const Jsonb *value)
{
	Jsonb	   *call = JsonGetJson(value, "call");
	JsonbValue	cut;

	if (call == NULL || !JsonGet(value, "cut", &cut))
		return NULL;
	return JsonMerge(value, JsonObjectOf("call", TranslateCall(call)));
}

/* ---------- answers ---------- */

/* keys of calls, or of arrays of calls */
static const char *const CallKeys[] = {"nextCall", "next_call", "alternatives", "call"};

typedef struct Walk
{
	const Request *request;
	JsonbParseState *state;
	JsonbValue *done;
	JsonbValue	key;			/* of the value that comes next */
	bool		has_key;
} Walk;

static bool
HasUserKey(const Walk *walk)
{
	return walk->has_key && IsUserKey(JsonValueText(&walk->key));
}

static bool
HasCallKey(const Walk *walk)
{
	return walk->has_key && NameIndex(JsonValueText(&walk->key), CallKeys, lengthof(CallKeys)) >= 0;
}

static void
WalkPush(Walk *walk, JsonbIteratorToken token, JsonbValue *value)
{
	if (walk->has_key)
		pushJsonbValue(&walk->state, WJB_KEY, &walk->key);
	walk->has_key = false;
	walk->done = pushJsonbValue(&walk->state, token, value);
}

/* Translate a text. In a text of a user, only what we have added to it. */
static void
WalkText(const Walk *walk, JsonbValue *value)
{
	char	   *given = JsonValueText(value);
	char	   *text = HasUserKey(walk) ? TranslateCuts(given) : TranslateText(walk->request, given);

	value->val.string.val = text;
	value->val.string.len = strlen(text);
}

/* Translate a value that is not gone through: a call, or a value of a user. */
static void
WalkWhole(const Walk *walk, JsonbValue *value)
{
	Jsonb	   *given = JsonFromValue(value);
	Jsonb	   *json = HasCallKey(walk) ? TranslateCalls(walk->request, given) : TranslateCutValue(given);

	if (json != NULL)
		JsonToValue(json, value);
}

/* Put a scalar, or a value that is not gone through. */
static void
WalkValue(Walk *walk, JsonbIteratorToken token, JsonbValue *value)
{
	if (token == WJB_VALUE && value->type == jbvNull)
	{
		walk->has_key = false;
		return;
	}
	if (!walk->request->all_tools && value->type == jbvString)
		WalkText(walk, value);
	else if (!walk->request->all_tools && value->type == jbvBinary)
		WalkWhole(walk, value);
	WalkPush(walk, token, value);
}

/* Put what was read. A key waits for its value, which may be left out. */
static void
WalkStep(Walk *walk, JsonbIteratorToken token, JsonbValue *value)
{
	if (token == WJB_KEY)
	{
		walk->key = *value;
		walk->has_key = true;
	}
	else if (token == WJB_VALUE || token == WJB_ELEM)
		WalkValue(walk, token, value);
	else						/* only the array around a scalar has a value when it begins */
		WalkPush(walk, token, token == WJB_BEGIN_ARRAY && value->val.array.rawScalar ? value : NULL);
}

/* Check whether the value of the key that was just read is put as a whole. */
static bool
WalkKeepsWhole(const Walk *walk)
{
	return HasUserKey(walk) ||
		(!walk->request->all_tools && HasCallKey(walk));
}

/* Turn an answer into one for a model. */
Jsonb *
TranslateAnswer(const Request *request, const Jsonb *answer)
{
	Walk		walk = {.request = request};
	Jsonb	   *cut = CutLists(answer, request->max_entries);
	JsonbIterator *iterator = JsonbIteratorInit(&cut->root);
	JsonbIteratorToken token;
	JsonbValue	value;

	while ((token = JsonbIteratorNext(&iterator, &value, WalkKeepsWhole(&walk))) != WJB_DONE)
		WalkStep(&walk, token, &value);
	return JsonbValueToJsonb(walk.done);
}
