/*
 * cut_lists.c
 *	  cut the lists of an answer
 *
 * Functions bound their lists for SQL. A model gets fewer entries, unless it
 * asks for more. This is the one place that cuts them: whatever a function
 * answers passes through here. The full count stands beside what was cut.
 *
 * A list is an array that the engine has made, or the blocks of an execution.
 * The values of users are not gone through, and stay as they are.
 */
#include "mcp/mcp.h"

/* lists whose count has another name than the list: plans has planCount */
static const struct
{
	const char *list;
	const char *count;
	const char *also;			/* where the count is said, too; or NULL */
}			Counts[] = {
	{"steps", "stepCount", "totalSteps"},
	{"completedSteps", "completedCount"},
	{"failedSteps", "failedCount"},
	{"pendingSteps", "pendingCount"},
	{"inProgressSteps", "inProgressCount"},
	{"stalledSteps", "stalledCount"},
	{"stepIds", "stepCount"},
	{"reclaimed", "reclaimedCount", "count"},
	{"dependencies", "dependencyCount"},
	{"dependsOn", "dependsOnCount"}
};

#define NAMED_LIST	"blocks"	/* an object that is a list; its keys are names of steps */
#define STEP_LIST	"steps"		/* of a plan, in order */

static void PutCut(JsonBuilder *b, const char *key, JsonbValue *value, int max);

/* Name the key for the full count of a list in an object; NULL if the function has said the count. */
static const char *
CountKey(const Jsonb *object, const char *list)
{
	int			length = strlen(list);
	const char *key = psprintf("%.*sCount", list[length - 1] == 's' ? length - 1 : length, list);
	const char *also = NULL;
	JsonbValue	said;

	for (size_t i = 0; i < lengthof(Counts); i++)
		if (strcmp(Counts[i].list, list) == 0)
		{
			key = Counts[i].count;
			also = Counts[i].also;
		}
	return JsonGet(object, key, &said) || (also && JsonGet(object, also, &said)) ? NULL : key;
}

/* ---------- arrays ---------- */

/* Check whether the step of an entry has ended. */
static bool
EntryHasEnded(JsonbValue *entry)
{
	static const char *const ended[] = {"completed", "failed", "skipped"};
	char	   *status = entry->type == jbvBinary ? JsonGetText(JsonFromValue(entry), "status") : NULL;

	return status != NULL && NameIndex(status, ended, lengthof(ended)) >= 0;
}

/* Choose the first entry that is shown: of the steps of a plan, the last done and the next to come are. */
static int
FirstShown(const char *key, const Jsonb *array, int max)
{
	int			count = JB_ROOT_COUNT(array);
	int			open = 0;
	JsonbValue	entry;

	if (count <= max || key == NULL || strcmp(key, STEP_LIST) != 0)
		return 0;
	while (JsonGetIndex(array, open, &entry) && EntryHasEnded(&entry))
		open++;
	return Min(Max(open - max / 2, 0), count - max);
}

static void
PutCutArray(JsonBuilder *b, const char *key, const Jsonb *array, int max)
{
	int			first = FirstShown(key, array, max);
	JsonbValue	entry;

	JsonArrayStart(b, key);
	for (int i = first; i < first + max && JsonGetIndex(array, i, &entry); i++)
		PutCut(b, NULL, &entry, max);
	JsonArrayEnd(b);
}

/* ---------- objects ---------- */

/* Put the first entries of a list that is an object. */
static void
PutCutNamed(JsonBuilder *b, const char *key, const Jsonb *object, int max)
{
	int			count;
	const char **names = JsonKeys(object, &count);

	JsonObjectStart(b, key);
	for (int i = 0; i < Min(count, max); i++)
	{
		JsonbValue	value;

		JsonGet(object, names[i], &value);
		PutCut(b, names[i], &value, max);
	}
	JsonObjectEnd(b);
}

/* Put a list, and its full count if it is cut. */
static void
PutList(JsonBuilder *b, const Jsonb *object, const char *key, JsonbValue *value, int max)
{
	Jsonb	   *list = JsonFromValue(value);
	const char *count = JB_ROOT_COUNT(list) > (uint32) max ? CountKey(object, key) : NULL;

	if (JsonIsArray(list))
		PutCutArray(b, key, list, max);
	else
		PutCutNamed(b, key, list, max);
	if (count != NULL)
		JsonPutInt(b, count, JB_ROOT_COUNT(list));
}

static void
PutCutObject(JsonBuilder *b, const char *key, const Jsonb *object, int max)
{
	int			count;
	const char **names = JsonKeys(object, &count);

	JsonObjectStart(b, key);
	for (int i = 0; i < count; i++)
	{
		JsonbValue	value;

		JsonGet(object, names[i], &value);
		if (value.type != jbvBinary || IsUserKey(names[i]))
			JsonPutValue(b, names[i], &value);
		else if (JsonContainerIsArray(value.val.binary.data) || strcmp(names[i], NAMED_LIST) == 0)
			PutList(b, object, names[i], &value, max);
		else
			PutCut(b, names[i], &value, max);
	}
	JsonObjectEnd(b);
}

static void
PutCut(JsonBuilder *b, const char *key, JsonbValue *value, int max)
{
	if (value->type != jbvBinary)
		JsonPutValue(b, key, value);
	else if (JsonContainerIsArray(value->val.binary.data))
		PutCutArray(b, key, JsonFromValue(value), max);
	else
		PutCutObject(b, key, JsonFromValue(value), max);
}

/* Check whether anything in an answer has more entries than that. Most answers have not. */
static bool
HasMore(const Jsonb *answer, int max)
{
	JsonbIterator *iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &answer->root));
	JsonbIteratorToken token;
	JsonbValue	value;

	while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
		if ((token == WJB_BEGIN_ARRAY && value.val.array.nElems > max) || (token == WJB_BEGIN_OBJECT && value.val.object.nPairs > max))
			return true;
	return false;
}

/* Cut the lists of an answer to that many entries. */
Jsonb *
CutLists(const Jsonb *answer, int max)
{
	JsonBuilder b = {0};
	JsonbValue	value;

	if (!JsonIsObject(answer) || !HasMore(answer, max))
		return unconstify(Jsonb *, answer);
	JsonToValue(answer, &value);
	PutCut(&b, NULL, &value, max);
	return JsonFinish(&b);
}
