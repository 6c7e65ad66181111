/*
 * bound.c
 *	  fit answers into a number of bytes
 *
 * An answer is read by a model with a limited window. These are the rules:
 *
 * - A list keeps the last done and the next to come, at most LIST_MAX or the
 *   max of the call. The full count stands beside it.
 * - A long text or value is cut (base/cut.c), and names the call that reads it.
 * - The context functions fit into their max_bytes. Other answers have fixed
 *   limits for each list and text, which keep them below ANSWER_BYTES.
 *
 * An answer is first built at the highest level of the table Levels, then at
 * lower ones, until it fits. A level says how many entries a list has, and how
 * long a text is before it is cut. In what is left of max_bytes, cut members
 * are then replaced by whole ones, one by one in the order of their importance.
 * All sizes are those of the answer as text, so the limit holds for every
 * content.
 */
#include "api/api.h"

#include "miscadmin.h"

#define MAX_BYTES_MIN	2000
#define MAX_BYTES_MAX	(16 * 1024 * 1024)
#define MAX_ROWS		1000	/* in one page */

/* ---------- arguments ---------- */

/* Refuse a number of rows below 1, and limit it to a page. */
int
CheckMax(int max)
{
	if (max < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("max must be at least 1, not %d", max),
				 errhint("Ask for 1 to %d; more are cut to that.", MAX_ROWS)));
	return Min(max, MAX_ROWS);
}

/* Read the number of rows that the caller wants; NULL means the given default. */
int
ArgumentMax(FunctionCallInfo fcinfo, int n, int otherwise)
{
	return PG_ARGISNULL(n) ? otherwise : CheckMax(PG_GETARG_INT32(n));
}

/* Read how many bytes an answer may have; NULL means the default. */
int
ArgumentMaxBytes(FunctionCallInfo fcinfo, int n)
{
	int			max = PG_ARGISNULL(n) ? CONTEXT_BYTES : PG_GETARG_INT32(n);

	if (max < MAX_BYTES_MIN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("max_bytes must be at least %d, not %d", MAX_BYTES_MIN, max),
				 errhint("Ask for %d to %d; more are cut to that. The default is %d.", MAX_BYTES_MIN, MAX_BYTES_MAX, CONTEXT_BYTES)));
	return Min(max, MAX_BYTES_MAX);
}

/* Return the limit of an answer in bytes. It grows with the number of entries that the caller asks for. */
int
ListBytes(int entries)
{
	return ANSWER_BYTES / LIST_MAX * Max(entries, LIST_MAX);
}

/* ---------- levels ---------- */

/* the highest level first; the last one shows the structure alone */
static const struct
{
	int			percent;		/* of the entries of a list */
	int			text;			/* bytes of a text or value that are not cut */
}			Levels[] = {
	{100, 1000}, {100, 300}, {100, 120}, {100, 60}, {70, 60}, {45, 40}, {25, 30}, {12, 20}, {4, 20}, {2, 0}, {0, 0}
};

/* Build an answer at the highest level at which it fits into max_bytes. "entries" is the length of a full list. */
Jsonb *
BoundBuild(BoundBuilder build, void *arg, int max_bytes, int entries)
{
	Jsonb	   *answer = NULL;

	for (size_t i = 0; i < lengthof(Levels); i++)
	{
		int			percent = Levels[i].percent;

		CHECK_FOR_INTERRUPTS();
		answer = build(arg, percent > 0 ? Max(entries * percent / 100, 1) : 0, Levels[i].text);
		if (answer == NULL || JsonTextLength(answer) <= max_bytes)
			break;
	}
	return answer;
}

/* ---------- filling ---------- */

/* an object of the answer whose members can be replaced */
struct FillTarget
{
	const char *container;		/* key of the object or array in the answer; NULL: the answer itself */
	int			index;			/* in the array; -1: the container is an object */
	Jsonb	   *object;			/* as it is */
	JsonBuilder members;		/* that replace others: an unfinished object */
	bool		filled;			/* there are such members */
};

/* Begin to fill an answer that was built. */
Filling
FillBegin(Jsonb *answer, int max_bytes)
{
	Filling		filling = {.answer = answer, .left = max_bytes - JsonTextLength(answer), .to_read = 4 * (int64) max_bytes};

	return filling;
}

/* Note an object of the answer; NULL if it is not there. */
FillTarget *
FillAt(Filling *filling, const char *container, int index)
{
	FillTarget *target = palloc0(sizeof(FillTarget));
	JsonbValue	element;

	target->container = container;
	target->index = index;
	target->object = container ? JsonGetJson(filling->answer, container) : filling->answer;
	if (target->object != NULL && index >= 0)
		target->object = JsonGetIndex(target->object, index, &element) ? JsonFromValue(&element) : NULL;
	if (!JsonIsObject(target->object))
		return NULL;
	filling->targets = lappend(filling->targets, target);
	return target;
}

/* Return the bytes that a member takes in the answer now. */
static int64
MemberLength(const FillTarget *target, const char *key)
{
	Jsonb	   *value = JsonGetJson(target->object, key);

	/* the key has quotes, a colon and a comma */
	return value ? JsonTextLength(value) : -(int64) strlen(key) - 6;
}

/* Make a value of a text. */
static Jsonb *
TextValue(const struct varlena *field)
{
	JsonbValue	value = {.type = jbvString};

	value.val.string.val = TextOf(field);
	value.val.string.len = strlen(value.val.string.val);
	return JsonFromValue(&value);
}

/*
 * Put a member whole, if it takes at most what is left, divided by "parts". A
 * field that cannot fit is not read. After many that did not fit, no more are
 * read.
 */
void
FillMember(Filling *filling, FillTarget *target, const char *key, const struct varlena *field, FieldKind kind, int parts)
{
	int64		allowed = filling->left / parts;
	int64		now;
	int64		grows;
	Jsonb	   *value;

	if (target == NULL || field == NULL)
		return;
	now = MemberLength(target, key);
	if (IsFarOver(field, allowed + Max(now, 0)) || filling->to_read < 0)
		return;
	filling->to_read -= RawSize(field);
	value = kind == FIELD_JSON ? JsonOf(field) : TextValue(field);
	grows = JsonTextLength(value) - now;
	if (grows > allowed)
		return;
	if (!target->filled)
		JsonObjectStart(&target->members, NULL);
	target->filled = true;
	JsonPutJson(&target->members, key, value);
	filling->left -= grows;
}

/* Return an object with its new members. */
static Jsonb *
TargetFilled(FillTarget *target)
{
	if (!target->filled)
		return target->object;
	JsonObjectEnd(&target->members);
	return JsonMerge(target->object, JsonFinish(&target->members));
}

/* Find the target of an element; NULL if nothing of it is filled. */
static FillTarget *
TargetOf(const Filling *filling, const char *container, int index)
{
	ListCell   *cell;

	foreach(cell, filling->targets)
	{
		FillTarget *target = lfirst(cell);

		if (target->filled && target->container && strcmp(target->container, container) == 0 && target->index == index)
			return target;
	}
	return NULL;
}

/* Put an array of the answer, with the new members of its elements. */
static void
PutFilledArray(JsonBuilder *b, const Filling *filling, const char *container)
{
	Jsonb	   *array = JsonGetJson(filling->answer, container);
	JsonbValue	element;

	JsonArrayStart(b, container);
	for (int i = 0; JsonGetIndex(array, i, &element); i++)
	{
		FillTarget *target = TargetOf(filling, container, i);

		if (target != NULL)
			JsonPutJson(b, NULL, TargetFilled(target));
		else
			JsonPutValue(b, NULL, &element);
	}
	JsonArrayEnd(b);
}

/* Return the answer with what was filled. */
Jsonb *
FillEnd(Filling *filling)
{
	List	   *arrays = NIL;	/* of char *, keys that are put */
	JsonBuilder b = {0};
	Jsonb	   *answer = filling->answer;
	ListCell   *cell;

	JsonObjectStart(&b, NULL);
	foreach(cell, filling->targets)
	{
		FillTarget *target = lfirst(cell);

		if (!target->filled)
			continue;
		if (target->container == NULL)
			answer = TargetFilled(target);
		else if (target->index < 0)
			JsonPutJson(&b, target->container, TargetFilled(target));
		else if (!list_member_ptr(arrays, target->container))
		{
			arrays = lappend(arrays, unconstify(char *, target->container));
			PutFilledArray(&b, filling, target->container);
		}
	}
	JsonObjectEnd(&b);
	return JsonMerge(answer, JsonFinish(&b));
}

/* ---------- single values ---------- */

/* Return the outputs of a plan as answers show them. */
Jsonb *
OutputsShown(const PlanRow *plan)
{
	ReadingFunction reader = {"execution", "plan_id", UuidText(&plan->id), "depth"};

	return CutJson(plan->outputs, SHOWN_VALUE, &reader);
}

#define WORKER_SHOWN	100		/* bytes of the name of a worker in a list */

/* Return the worker of a claim as lists show it; NULL if there is none. */
char *
WorkerShown(const StepRow *step)
{
	return step->worker ? CutText(step->worker, WORKER_SHOWN, "get_step_context") : NULL;
}

/* members of a step that is handed out that can be long, and that get_step_context reads whole */
static const char *const LongMembers[] = {
	"goal", "instructions", "arguments", "resources", "feedback", "previousResult", "previousError"
};

/* Build short forms of the members of an object that can be long. */
static Jsonb *
LongMembersCut(const Jsonb *object, const ReadingFunction *reader)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	for (size_t i = 0; i < lengthof(LongMembers); i++)
	{
		const char *key = LongMembers[i];
		char	   *text = JsonGetText(object, key);
		Jsonb	   *value = JsonGetJson(object, key);

		if (text != NULL)
			JsonPutText(&b, key, CutText(text, SHOWN_TEXT, reader->function));
		else if (value != NULL)
			JsonPutJson(&b, key, CutJson((struct varlena *) value, SHOWN_TEXT, reader));
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Cut a step that is handed out, if it is too large. */
Jsonb *
ReadyBound(Jsonb *answer, const StepRow *step)
{
	ReadingFunction reader = {"get_step_context", "step_id", UuidText(&step->id), "max_bytes"};

	if (JsonFits(answer, READY_BYTES))
		return answer;
	return JsonMerge(answer, LongMembersCut(answer, &reader));
}

/* ---------- for sql/ ---------- */

/* Cut a text of an answer that is built in SQL. Where no text is shown, it is null. */
PG_FUNCTION_INFO_V1(stepwise_cut_text);
Datum
stepwise_cut_text(PG_FUNCTION_ARGS)
{
	int			max = PG_GETARG_INT32(1);

	if (max <= 0)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(CutField((struct varlena *) PG_GETARG_POINTER(0), max, text_to_cstring(PG_GETARG_TEXT_PP(2)))));
}

/* Do the same for a value. */
PG_FUNCTION_INFO_V1(stepwise_cut_json);
Datum
stepwise_cut_json(PG_FUNCTION_ARGS)
{
	int			max = PG_GETARG_INT32(1);
	ReadingFunction reader;

	if (max <= 0)
		PG_RETURN_NULL();
	reader.function = text_to_cstring(PG_GETARG_TEXT_PP(2));
	reader.argument = text_to_cstring(PG_GETARG_TEXT_PP(3));
	reader.id = text_to_cstring(PG_GETARG_TEXT_PP(4));
	reader.also = text_to_cstring(PG_GETARG_TEXT_PP(5));
	PG_RETURN_JSONB_P(CutJson((struct varlena *) PG_GETARG_POINTER(0), max, &reader));
}

/* Leave out the members of an object that are null, but not those below them. */
PG_FUNCTION_INFO_V1(stepwise_drop_nulls);
Datum
stepwise_drop_nulls(PG_FUNCTION_ARGS)
{
	Jsonb	   *object = PG_GETARG_JSONB_P(0);
	int			count;
	const char **keys = JsonKeys(object, &count);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	for (int i = 0; i < count; i++)
	{
		JsonbValue	value;

		if (JsonGet(object, keys[i], &value) && value.type != jbvNull)
			JsonPutValue(&b, keys[i], &value);
	}
	JsonObjectEnd(&b);
	PG_RETURN_JSONB_P(JsonFinish(&b));
}
