/*
 * apply.c
 *	  call a function with arguments that are given as JSON
 *
 * Arguments have the names of SQL, or the same in camelCase. JSON null stands
 * for the default of an argument that has one. For others it is SQL NULL, or
 * the JSON value null if the argument is jsonb.
 *
 * The function runs as the current role, without a new snapshot or identity,
 * as if it were called by SQL.
 */
#include "api/api.h"

#include "catalog/objectaccess.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_proc.h"
#include "pgstat.h"
#include "utils/datum.h"

/* ---------- what is wrong with arguments ---------- */

/* List the arguments of a function in a sentence. */
static char *
ArgumentList(const Callable *callable)
{
	StringInfoData list;

	if (callable->argument_count == 0)
		return pstrdup("It has no arguments.");
	initStringInfo(&list);
	for (int i = 0; i < callable->argument_count; i++)
	{
		const CallableArgument *argument = &callable->arguments[i];

		appendStringInfo(&list, "%s%s %s%s", i == 0 ? "Its arguments are: " : ", ", argument->name,
						 format_type_be(argument->type), argument->required ? " (required)" : "");
	}
	appendStringInfoChar(&list, '.');
	return list.data;
}

/* Find the argument that was probably meant; NULL if none is near. */
static const char *
NearestArgument(const Callable *callable, const char *name)
{
	const char **names = palloc(sizeof(char *) * (callable->argument_count + 1));

	for (int i = 0; i < callable->argument_count; i++)
		names[i] = callable->arguments[i].name;
	return NearestWord(name, names, callable->argument_count);
}

/* which call lists the ids that an argument takes */
static const char *const IdSources[][2] = {
	{"plan_id", "stepwise.list_plans()"},
	{"step_id", "stepwise.get_plan_context(plan_id)"},
	{"checkpoint_id", "stepwise.list_checkpoints()"},
};

/* Say how an argument is written. No example of an id would be right, so the hint says who lists them. */
static char *
ArgumentHint(const CallableArgument *argument)
{
	for (size_t i = 0; i < lengthof(IdSources); i++)
		if (strcmp(argument->name, IdSources[i][0]) == 0)
			return psprintf("Write it as \"%s\": \"...\", with an id that %s lists.", argument->name, IdSources[i][1]);
	return psprintf("Write it for example as \"%s\": %s.", argument->name, TypeExample(argument->type));
}

pg_noreturn static void
UnknownArgumentRefuse(const Callable *callable, const char *name)
{
	const char *nearest = NearestArgument(callable, name);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_DEFINITION),
			 errmsg("function %s has no argument \"%s\"", callable->name, ShortText(name)),
			 errdetail("%s", ArgumentList(callable)),
			 nearest ? errhint("Perhaps \"%s\" is meant.", nearest) : errhint("Leave it out.")));
}

static void
CheckNotMissing(const Callable *callable, const CallableArgument *argument)
{
	if (argument->required)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("argument \"%s\" of function %s is missing", argument->name, callable->name),
				 errdetail("%s", ArgumentList(callable)),
				 errhint("%s", ArgumentHint(argument))));
}

pg_noreturn static void
MistypedArgumentRefuse(const Callable *callable, const CallableArgument *argument, JsonbValue *value)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_DEFINITION),
			 errmsg("argument \"%s\" of function %s has a wrong value: %s", argument->name, callable->name,
					ShortText(JsonToText(JsonFromValue(value)))),
			 errdetail("It must be %s.", TypeWants(argument->type)),
			 errhint("%s", ArgumentHint(argument))));
}

static void
CheckGivenOnce(const Callable *callable, const CallableArgument *argument, bool given)
{
	if (given)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("argument \"%s\" of function %s is given twice", argument->name, callable->name),
				 errdetail("It is given as \"%s\" and as \"%s\".", argument->name, argument->camel),
				 errhint("Leave one of them out.")));
}

/* Refuse names that no argument has. "found" counts those that one has. */
static void
CheckAllKnown(const Callable *callable, const Jsonb *arguments, int found)
{
	int			count;
	const char **names;

	if (JB_ROOT_COUNT(arguments) == found)
		return;
	names = JsonKeys(arguments, &count);
	for (int i = 0; i < count; i++)
	{
		bool		known = false;

		for (int j = 0; j < callable->argument_count && !known; j++)
			known = strcmp(names[i], callable->arguments[j].name) == 0 || strcmp(names[i], callable->arguments[j].camel) == 0;
		if (!known)
			UnknownArgumentRefuse(callable, names[i]);
	}
}

static void
CheckIsObject(const Jsonb *arguments)
{
	if (!JsonIsObject(arguments))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("the arguments of a call must be an object"),
				 errdetail("They are: %s", ShortText(JsonToText(arguments))),
				 errhint("Write {\"name\": value, ...}; {} gives none.")));
}

/* ---------- reading them ---------- */

/* the value of an argument, as the call gives it */
typedef struct Given
{
	bool		is;
	JsonbValue	value;
} Given;

/* Find the value of an argument under either of its names. */
static Given
ArgumentFind(const Callable *callable, const CallableArgument *argument, const Jsonb *arguments)
{
	Given		given = {0};

	given.is = JsonGet(arguments, argument->name, &given.value);
	if (strcmp(argument->name, argument->camel) == 0 || !JsonGet(arguments, argument->camel, &given.value))
		return given;
	CheckGivenOnce(callable, argument, given.is);
	given.is = true;
	return given;
}

/* Use the default. It is copied, since the function may make the row of the table stale. */
static void
ArgumentUseDefault(const CallableArgument *argument, NullableDatum *slot)
{
	slot->isnull = argument->otherwise_null;
	slot->value = slot->isnull ? (Datum) 0
		: datumCopy(argument->otherwise, argument->otherwise_byval, argument->otherwise_length);
}

static void
ArgumentRead(const Callable *callable, const CallableArgument *argument, Given *given, NullableDatum *slot)
{
	bool		is_null = given->is && given->value.type == jbvNull;

	if (!given->is)
		CheckNotMissing(callable, argument);
	if (!argument->required && (!given->is || is_null))
	{
		ArgumentUseDefault(argument, slot);
		return;
	}
	slot->value = (Datum) 0;
	slot->isnull = is_null && argument->type != JSONBOID;
	if (!slot->isnull && !JsonToDatum(&given->value, argument->type, &slot->value))
		MistypedArgumentRefuse(callable, argument, &given->value);
}

/*
 * Read all arguments. Returns whether one of them is null. Unknown names are
 * reported first, since a misspelt argument is also a missing one.
 */
static bool
ArgumentsRead(const Callable *callable, const Jsonb *arguments, NullableDatum *slots)
{
	Given		given[FUNC_MAX_ARGS];
	int			found = 0;
	bool		any_null = false;

	CheckIsObject(arguments);
	for (int i = 0; i < callable->argument_count; i++)
	{
		given[i] = ArgumentFind(callable, &callable->arguments[i], arguments);
		found += given[i].is;
	}
	CheckAllKnown(callable, arguments, found);
	for (int i = 0; i < callable->argument_count; i++)
	{
		ArgumentRead(callable, &callable->arguments[i], &given[i], &slots[i]);
		any_null |= slots[i].isnull;
	}
	return any_null;
}

/* ---------- the call ---------- */

/* Call a function with arguments by name. The caller has checked the right to execute it. */
Jsonb *
CallableApply(const Callable *callable, const Jsonb *arguments)
{
	LOCAL_FCINFO(fcinfo, FUNC_MAX_ARGS);
	PgStat_FunctionCallUsage usage;
	FmgrInfo	info;
	Oid			result = callable->result;
	Datum		value;

	/* copies, since the function may make the row of the table stale */
	fmgr_info_copy(&info, unconstify(FmgrInfo *, &callable->info), CurrentMemoryContext);
	InitFunctionCallInfoData(*fcinfo, &info, callable->argument_count, DEFAULT_COLLATION_OID, NULL, NULL);
	if (ArgumentsRead(callable, arguments, fcinfo->args) && info.fn_strict)
		return JsonNull();
	InvokeFunctionExecuteHook(info.fn_oid);
	pgstat_init_function_usage(fcinfo, &usage);
	value = FunctionCallInvoke(fcinfo);
	pgstat_end_function_usage(&usage, true);
	return fcinfo->isnull ? JsonNull() : DatumToJson(value, result);
}
