/*
 * by_name.c
 *	  call(): call a function of the extension by its name
 *
 * The tenant of a call holds for this call only. After an error, the end of
 * the (sub)transaction restores the tenant that was entered before.
 */
#include "api/api.h"

/* what a role needs that may not execute a function of a kind */
static const char *const GrantHint[] = {
	[CALLABLE_READS] = "Ask the owner of pg_stepwise for stepwise.grant_reader(role) or stepwise.grant_agent(role).",
	[CALLABLE_ACTS] = "Ask the owner of pg_stepwise for stepwise.grant_agent(role).",
	[CALLABLE_DECIDES] = "This decides for a person. Ask a person who may decide."
};

pg_noreturn static void
UnknownFunctionRefuse(const char *name)
{
	int			count;
	const char **names = CallableNames(&count);
	const char *nearest = NearestWord(name, names, count);
	StringInfoData list;

	/* not WordList: whoever asks for a wrong function needs all names */
	initStringInfo(&list);
	for (int i = 0; i < count; i++)
		appendStringInfo(&list, "%s%s", i > 0 ? ", " : "", names[i]);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_DEFINITION),
			 errmsg("there is no function \"%s\" to be called by name", ShortText(name)),
			 errdetail("The functions are: %s.", list.data),
			 nearest ? errhint("Perhaps \"%s\" is meant.", nearest)
			 : errhint("Name one of them, without schema and arguments; \"help\" explains them.")));
}

static void
CheckGranted(const Callable *callable)
{
	if (!CallableIsGranted(callable))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function %s", callable->name),
				 errhint("%s", GrantHint[callable->kind])));
}

/* Find a function that the current role may call by name. */
const Callable *
CallableNamed(const char *name)
{
	const Callable *callable = CallableFind(name);

	if (callable == NULL)
		UnknownFunctionRefuse(name);
	CheckGranted(callable);
	return callable;
}

/* Call a function by name, in a tenant that holds for this call only. */
PG_FUNCTION_INFO_V1(stepwise_call);
Datum
stepwise_call(PG_FUNCTION_ARGS)
{
	char	   *function = ArgumentText(fcinfo, 0);
	Jsonb	   *arguments = ArgumentJson(fcinfo, 1);
	char	   *tenant = ArgumentText(fcinfo, 2);
	void	   *mark = TenantMark();
	const Callable *callable;
	Jsonb	   *answer;

	CheckNotBlank(function, "function");
	callable = CallableNamed(function);
	if (tenant != NULL)
		TenantEnter(tenant);
	answer = CallableApply(callable, arguments == NULL || JsonIsNull(arguments) ? JsonEmptyObject() : arguments);
	if (tenant != NULL)
		TenantRestore(mark);
	return SendNote(JsonbPGetDatum(answer));
}
