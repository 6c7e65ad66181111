/*
 * condition_path.c
 *	  read and match jsonpath without errors
 *
 * PostgreSQL's functions for jsonpath raise errors for what a user wrote and
 * for the data. Here these become a message.
 */
#include "define/define.h"

#include "mb/pg_wchar.h"
#include "utils/fmgrprotos.h"

/*
 * Repair a message of the jsonpath scanner, which may cut a character in two
 * where it failed.
 */
static char *
ValidMessage(char *message)
{
	if (!pg_verifymbstr(message, strlen(message), true))
		for (char *c = message; *c; c++)
			if (IS_HIGHBIT_SET(*c))
				*c = '?';
	return message;
}

/*
 * Call a function that has neither side effects nor resources of its own, and
 * catch its error if the data caused it. Any other error, such as a cancel, is
 * thrown on.
 */
static bool
CallQuietly(FunctionCallInfo fcinfo, PGFunction function, Datum *result, char **message)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool good = false;

	PG_TRY();
	{
		*result = function(fcinfo);
		good = true;
	}
	PG_CATCH();
	{
		ErrorData  *error;
		int			class;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		class = ERRCODE_TO_CATEGORY(error->sqlerrcode);
		if (class != ERRCODE_TO_CATEGORY(ERRCODE_DATA_EXCEPTION) &&
			class != ERRCODE_TO_CATEGORY(ERRCODE_SYNTAX_ERROR) &&
			class != ERRCODE_TO_CATEGORY(ERRCODE_FEATURE_NOT_SUPPORTED) &&
			error->sqlerrcode != ERRCODE_STATEMENT_TOO_COMPLEX)
			PG_RE_THROW();
		FlushErrorState();
		*message = ValidMessage(error->message);
	}
	PG_END_TRY();
	return good;
}

/* Read a jsonpath. Returns false and a message if it is malformed. */
bool
PathFromText(char *text, Datum *path, char **message)
{
	LOCAL_FCINFO(fcinfo, 1);

	InitFunctionCallInfoData(*fcinfo, NULL, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = CStringGetDatum(text);
	fcinfo->args[0].isnull = false;
	return CallQuietly(fcinfo, jsonpath_in, path, message);
}

/*
 * Check whether a jsonpath has variables. It shows them as $"name", and shows
 * nothing else like that outside of strings.
 */
bool
PathHasVariables(Datum path)
{
	const char *shown = DatumGetCString(DirectFunctionCall1(jsonpath_out, path));
	bool		quoted = false;

	for (const char *c = shown; *c; c++)
	{
		if (quoted && *c == '\\' && c[1])
			c++;
		else if (!quoted && c[0] == '$' && c[1] == '"')
			return true;
		else if (*c == '"')
			quoted = !quoted;
	}
	return false;
}

/*
 * Match a document with a jsonpath. The message is set if the result is
 * undecided because of an error.
 */
ConditionResult
PathMatch(Datum path, const Jsonb *document, char **message)
{
	LOCAL_FCINFO(fcinfo, 2);
	Datum		result;

	*message = NULL;
	InitFunctionCallInfoData(*fcinfo, NULL, 2, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = JsonbPGetDatum(document);
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = path;
	fcinfo->args[1].isnull = false;

	/* with two arguments it is silent: an error inside gives null */
	if (!CallQuietly(fcinfo, jsonb_path_match_opr, &result, message) || fcinfo->isnull)
		return CONDITION_UNDECIDED;
	return DatumGetBool(result) ? CONDITION_TRUE : CONDITION_FALSE;
}
