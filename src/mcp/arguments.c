/*
 * arguments.c
 *	  the arguments of a call of a tool
 *
 * They come in camelCase or snake_case, and are handled in snake_case, the way
 * the functions have them.
 */
#include "mcp/mcp.h"

/* Write a name in snake_case: planId is plan_id. */
static char *
SnakeCase(const char *name)
{
	StringInfoData snake;

	initStringInfo(&snake);
	for (const char *c = name; *c; c++)
	{
		if (*c >= 'A' && *c <= 'Z' && c > name)
			appendStringInfoChar(&snake, '_');
		appendStringInfoChar(&snake, pg_ascii_tolower((unsigned char) *c));
	}
	return snake.data;
}

static void
CheckNotTwice(const Jsonb *arguments, const char *name, const char *snake)
{
	JsonbValue	value;

	if (strcmp(name, snake) != 0 && JsonGet(arguments, snake, &value))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("parameter \"%s\" is given twice", ShortText(snake)),
				 errdetail("It is given as \"%s\" and as \"%s\".", ShortText(snake), ShortText(name)),
				 errhint("Leave one of them out.")));
}

/* Give the arguments the names that functions have. */
Jsonb *
ArgumentsInSnakeCase(const Jsonb *arguments)
{
	JsonBuilder b = {0};
	int			count;
	const char **names = JsonKeys(arguments, &count);

	JsonObjectStart(&b, NULL);
	for (int i = 0; i < count; i++)
	{
		char	   *snake = SnakeCase(names[i]);
		JsonbValue	value;

		CheckNotTwice(arguments, names[i], snake);
		JsonGet(arguments, names[i], &value);
		JsonPutValue(&b, snake, &value);
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Copy arguments without one of them. */
static Jsonb *
ArgumentsWithout(const Jsonb *arguments, const char *name)
{
	return DatumGetJsonbP(DirectFunctionCall2(jsonb_delete, JsonbPGetDatum(arguments), CStringGetTextDatum(name)));
}

/* Take an argument out; NULL if it is not there or null. */
Jsonb *
ArgumentTake(Jsonb **arguments, const char *name)
{
	Jsonb	   *value = JsonGetJson(*arguments, name);

	if (value != NULL)
		*arguments = ArgumentsWithout(*arguments, name);
	return value == NULL || JsonIsNull(value) ? NULL : value;
}

pg_noreturn static void
MistypedRefuse(const char *name, const char *wanted)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_DEFINITION),
			 errmsg("parameter \"%s\" must be %s", name, wanted),
			 errhint("Write it as the schema of the tool says.")));
}

/* Take a string out; NULL if it is not there or null. */
char *
ArgumentTakeText(Jsonb **arguments, const char *name)
{
	char	   *text = JsonGetText(*arguments, name);

	if (ArgumentTake(arguments, name) != NULL && text == NULL)
		MistypedRefuse(name, "a string");
	return text;
}

/* Take a boolean out; "otherwise" if it is not there or null. */
bool
ArgumentTakeFlag(Jsonb **arguments, const char *name, bool otherwise)
{
	JsonbValue	value;
	bool		given = JsonGet(*arguments, name, &value);

	if (ArgumentTake(arguments, name) == NULL)
		return otherwise;
	if (!given || value.type != jbvBool)
		MistypedRefuse(name, "true or false");
	return value.val.boolean;
}

/* Take an integer out; "otherwise" if it is not there or null. */
int
ArgumentTakeInt(Jsonb **arguments, const char *name, int otherwise)
{
	JsonbValue	value;
	Datum		number;
	bool		given = JsonGet(*arguments, name, &value);

	if (ArgumentTake(arguments, name) == NULL)
		return otherwise;
	if (!given || !JsonToDatum(&value, INT4OID, &number))
		MistypedRefuse(name, "an integer");
	return DatumGetInt32(number);
}

/* Check whether an argument is given, and not null. */
bool
ArgumentIsGiven(const Jsonb *arguments, const char *name)
{
	JsonbValue	value;

	return JsonGet(arguments, name, &value) && value.type != jbvNull;
}

/* Choose among the words of a parameter. */
int
ArgumentChoose(const char *name, const char *word, const char *const *words, int count)
{
	int			chosen = word ? NameIndex(word, words, count) : -1;

	if (chosen < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 word ? errmsg("parameter \"%s\" cannot be \"%s\"", name, ShortText(word)) : errmsg("parameter \"%s\" is missing", name),
				 errhint("Use one of: %s.", WordList(words, count))));
	return chosen;
}

/* ---------- steps by name ---------- */

pg_noreturn static void
NoStepNamedRefuse(const char *name, const pg_uuid_t *plan_id)
{
	ereport(ERROR,
			(errcode(ERRCODE_STEP_NOT_FOUND),
			 errmsg("plan %s has no step \"%s\"", UuidText(plan_id), ShortText(name)),
			 errhint("Call get_plan_status with this plan_id to see its steps. A step of a nested plan has that plan's id.")));
}

/* Find the id of a step by its plan and its name. */
static char *
StepIdByName(const char *plan, const char *name)
{
	MemoryContext outer = CurrentMemoryContext;
	pg_uuid_t	plan_id;
	StepRow    *step;
	char	   *id;
	Call		call;

	if (plan == NULL || !UuidParse(plan, &plan_id))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("a step that is given by its name needs the plan_id of its plan"),
				 errhint("Give step_id, or plan_id and step.")));
	CallBeginReading(&call);
	PlanMustRead(&call, &plan_id);
	step = StepReadByName(&call, &plan_id, name);
	if (step == NULL)
		NoStepNamedRefuse(name, &plan_id);
	id = MemoryContextStrdup(outer, UuidText(&step->id));
	CallEnd(&call, NULL);
	return id;
}

/*
 * Find which step is meant, by id or by plan and name, and name it by
 * step_id alone. Returns false if none is given.
 */
bool
ArgumentsNameStep(Jsonb **arguments)
{
	pg_uuid_t	id;
	char	   *step = ArgumentTakeText(arguments, "step");
	char	   *name = ArgumentTakeText(arguments, "step_name");
	char	   *plan;

	if (ArgumentIsGiven(*arguments, "step_id"))
		return true;
	name = step ? step : name;
	if (name == NULL)
		return false;
	plan = JsonGetText(*arguments, "plan_id");
	*arguments = JsonMerge(*arguments, JsonTextOf("step_id", UuidParse(name, &id) ? name : StepIdByName(plan, name)));
	return true;
}
