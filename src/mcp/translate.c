/*
 * translate.c
 *	  answers as a model needs them
 *
 * A host lets a model call only the tools that are listed. So what answers say
 * about functions is said about tools here: in calls that they name, and in
 * sentences. Keys that are null are left out. The values of users are left as
 * they are.
 */
#include "mcp/mcp.h"

/* ---------- the tool for a function ---------- */

typedef struct Translation
{
	const char *function;
	const char *tool;
	const char *key;			/* a parameter that the call of the tool has in addition, or NULL */
	const char *word;			/* its value; NULL: true */
	const char *from;			/* an argument that has another name, or NULL */
	const char *to;
	const char *drop;			/* an argument that the tool does not need, or NULL */
} Translation;

static const Translation Translations[] = {
	{"advance", "submit_step_result"},
	{"record_tool_result", "submit_step_result", .from = "step_name", .to = "step", .drop = "tool"},
	{"fail_step", "update_step", "action", "fail"},
	{"retry_step", "update_step", "action", "retry"},
	{"skip_step", "update_step", "action", "skip"},
	{"release_step", "update_step", "action", "release"},
	{"heartbeat", "update_step", "action", "heartbeat"},
	{"resume", "submit_user_decision"},
	{"cancel_plan", "modify_plan", "action", "cancel", .from = "reason", .to = "modification_rationale"},
	{"get_plan_context", "get_plan_status", "view", "context", .drop = "session_id"},
	{"get_step_context", "get_plan_status", "view", "context", .from = "step_id", .to = "step"},
	{"why", "get_plan_status", "view", "why"},
	{"handoff", "get_plan_status", "view", "why"},
	{"execution", "get_plan_status", "view", "tree"},
	{"workflow_response", "get_plan_status", "view", "tree", .drop = "detail"},
	{"find_plans", "get_plan_status"},
	{"list_plans", "get_plan_status"},
	{"list_active_plans", "get_plan_status"},
	{"list_checkpoints", "get_plan_status"},
	{"list_workflows", "start_workflow"},
	{"store_output", "store_artifact", "final"},
	{"get_artifact", "search_artifacts"},
	{"get_output", "get_plan_status", "view", "context"}
};

static const Translation *
TranslationFind(const char *function)
{
	for (size_t i = 0; i < lengthof(Translations); i++)
		if (strcmp(Translations[i].function, function) == 0)
			return &Translations[i];
	return NULL;
}

/* ---------- calls ---------- */

static Jsonb *
AddedParameter(const Translation *t)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	if (t->key != NULL && t->word != NULL)
		JsonPutText(&b, t->key, t->word);
	else if (t->key != NULL)
		JsonPutBool(&b, t->key, true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Turn the arguments of a function into those of its tool. */
static Jsonb *
TranslateArguments(const Translation *t, const Jsonb *given)
{
	Jsonb	   *arguments = JsonCopy(given);
	Jsonb	   *renamed = t->from ? ArgumentTake(&arguments, t->from) : NULL;

	if (t->drop != NULL)
		ArgumentTake(&arguments, t->drop);
	if (renamed != NULL)
		arguments = JsonMerge(arguments, JsonObjectOf(t->to, renamed));
	return JsonMerge(arguments, AddedParameter(t));
}

/* Turn a call of a function, {"function", "arguments"}, into one of its tool. */
static Jsonb *
TranslateCall(const Jsonb *call)
{
	char	   *function = JsonGetText(call, "function");
	const Translation *t = function ? TranslationFind(function) : NULL;
	Jsonb	   *arguments = t ? JsonGetJson(call, "arguments") : NULL;
	JsonBuilder b = {0};

	if (t == NULL)
		return unconstify(Jsonb *, call);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "function", t->tool);
	if (JsonIsObject(arguments))
		JsonPutJson(&b, "arguments", TranslateArguments(t, arguments));
	JsonObjectEnd(&b);
	return JsonMerge(call, JsonFinish(&b));
}

/* Turn a call, or each of an array of calls. */
static Jsonb *
TranslateCalls(const Jsonb *calls)
{
	JsonBuilder b = {0};
	JsonbValue	element;

	if (!JsonIsArray(calls))
		return TranslateCall(calls);
	JsonArrayStart(&b, NULL);
	for (int i = 0; JsonGetIndex(calls, i, &element); i++)
		JsonPutJson(&b, NULL, TranslateCall(JsonFromValue(&element)));
	JsonArrayEnd(&b);
	return JsonFinish(&b);
}

/* ---------- sentences ---------- */

#define PREFIX	"stepwise."

static bool
IsWordChar(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* Append a tool as it is called: update_step(action: retry, step_id). Returns what was read after the name. */
static int
AppendTool(StringInfo text, const Translation *t, const char *rest)
{
	appendStringInfoString(text, t->tool);
	if (t->key == NULL)
		return 0;
	appendStringInfo(text, "(%s: %s", t->key, t->word ? t->word : "true");
	if (rest[0] == '(' && rest[1] != ')')
	{
		appendStringInfoString(text, ", ");
		return 1;
	}
	appendStringInfoChar(text, ')');
	return rest[0] == '(' ? 2 : 0;
}

/* Append what stands for "stepwise.name". Returns the length of what was read. */
static int
AppendName(StringInfo text, const char *mention)
{
	int			length = strlen(PREFIX);
	char	   *name;
	const Translation *t;

	while (IsWordChar(mention[length]))
		length++;
	name = pnstrdup(mention + strlen(PREFIX), length - strlen(PREFIX));
	t = TranslationFind(name);
	if (t != NULL)
		return length + AppendTool(text, t, mention + length);
	appendStringInfoString(text, ModelToolFind(name) ? name : pnstrdup(mention, length));
	return length;
}

/* Name tools instead of functions in a text. */
char *
TranslateText(const Request *request, const char *text)
{
	StringInfoData translated;
	const char *mention;

	if (request->all_tools || strstr(text, PREFIX) == NULL)
		return pstrdup(text);
	initStringInfo(&translated);
	while ((mention = strstr(text, PREFIX)) != NULL)
	{
		appendBinaryStringInfo(&translated, text, mention - text);
		text = mention + AppendName(&translated, mention);
	}
	appendStringInfoString(&translated, text);
	return translated.data;
}

/* ---------- what was cut ---------- */

#define CUT_END	" reads it)"

/* Name a tool at the end of a text that base/cut.c has cut. */
static char *
TranslateCutText(const char *text)
{
	int			length = strlen(text) - strlen(CUT_END);
	const Translation *t;
	int			start = length;
	StringInfoData translated;

	if (length < 0 || strcmp(text + length, CUT_END) != 0)
		return NULL;
	while (start > 0 && IsWordChar(text[start - 1]))
		start--;
	t = TranslationFind(pnstrdup(text + start, length - start));
	if (t == NULL)
		return NULL;
	initStringInfo(&translated);
	appendBinaryStringInfo(&translated, text, start);
	AppendTool(&translated, t, "");
	appendStringInfoString(&translated, CUT_END);
	return translated.data;
}

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

/* keys whose values are not ours */
static const char *const UserKeys[] = {
	"result", "previousResult", "arguments", "inputs", "outputs", "variables", "data", "metadata", "inputSchema", "value", "definition", "default",
	"response", "answers", "questions", "content", "executionReport", "budget", "used",
	"name", "goal", "instructions", "prompt", "summary", "resultSummary", "feedback", "description", "condition", "tool", "path"
};

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
KeyIsAmong(const Walk *walk, const char *const *keys, int count)
{
	return walk->has_key && NameIndex(JsonValueText(&walk->key), keys, count) >= 0;
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
	char	   *text = KeyIsAmong(walk, UserKeys, lengthof(UserKeys)) ? TranslateCutText(given) : TranslateText(walk->request, given);

	if (text == NULL)
		return;
	value->val.string.val = text;
	value->val.string.len = strlen(text);
}

/* Translate a value that is not gone through: a call, or a value of a user. */
static void
WalkWhole(const Walk *walk, JsonbValue *value)
{
	Jsonb	   *given = JsonFromValue(value);
	Jsonb	   *json = KeyIsAmong(walk, CallKeys, lengthof(CallKeys)) ? TranslateCalls(given) : TranslateCutValue(given);

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
	return KeyIsAmong(walk, UserKeys, lengthof(UserKeys)) ||
		(!walk->request->all_tools && KeyIsAmong(walk, CallKeys, lengthof(CallKeys)));
}

/* Turn an answer into one for a model. */
Jsonb *
TranslateAnswer(const Request *request, const Jsonb *answer)
{
	Walk		walk = {.request = request};
	JsonbIterator *iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &answer->root));
	JsonbIteratorToken token;
	JsonbValue	value;

	while ((token = JsonbIteratorNext(&iterator, &value, WalkKeepsWhole(&walk))) != WJB_DONE)
		WalkStep(&walk, token, &value);
	return JsonbValueToJsonb(walk.done);
}
