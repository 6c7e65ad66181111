/*
 * function.c
 *	  call functions of the extension for tools
 *
 * A function is called by its name, with the rights of the role. Over MCP it
 * answers less than in SQL, unless more is asked for. A tool that says that it
 * reads must keep to it: it writes nothing by the way either, not even that a
 * plan is stalled.
 */
#include "mcp/mcp.h"

#include "access/xact.h"

/* Check whether a function has an argument. */
bool
FunctionHas(const Callable *callable, const char *argument)
{
	for (int i = 0; i < callable->argument_count; i++)
		if (strcmp(callable->arguments[i].name, argument) == 0)
			return true;
	return false;
}

/* Add a number to the arguments, where the function has such an argument and it is not given. */
static Jsonb *
AddDefault(const Callable *callable, const Jsonb *arguments, const char *name, int number)
{
	JsonBuilder b = {0};

	if (!FunctionHas(callable, name) || ArgumentIsGiven(arguments, name))
		return unconstify(Jsonb *, arguments);
	JsonObjectStart(&b, NULL);
	JsonPutInt(&b, name, number);
	JsonObjectEnd(&b);
	return JsonMerge(arguments, JsonFinish(&b));
}

/* Check whether the role may execute a function that writes, and the connection may write. */
bool
MayAct(const Request *request, const char *name)
{
	const Callable *callable = CallableFind(name);

	return !request->read_only && callable != NULL && CallableIsGranted(callable);
}

/* Refuse to change something by a connection that only reads. */
void
CheckMayChange(const Request *request, const Callable *callable)
{
	if (request->read_only && callable->kind != CALLABLE_READS)
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("%s changes something, and this connection only reads", callable->name),
				 errhint("Ask the user for a connection that may write: stepwise-mcp without --read-only.")));
}

/* Call a function by name. Arguments are in snake_case. */
Jsonb *
FunctionApply(const Request *request, const char *name, const Jsonb *arguments)
{
	const Callable *callable = CallableNamed(name);
	bool		read_only = XactReadOnly;
	Jsonb	   *answer;

	CheckMayChange(request, callable);
	if (JsonIsObject(arguments))
	{
		arguments = AddDefault(callable, arguments, "max", request->max_entries);
		/* in the text of a result quotes are escaped */
		arguments = AddDefault(callable, arguments, "max_bytes", Max(request->max_bytes / 5 * 4, RESULT_BYTES_MIN));
	}
	/* after an error, the end of the subtransaction restores it */
	if (request->reads || request->read_only)
		XactReadOnly = true;
	answer = CallableApply(callable, arguments);
	XactReadOnly = read_only;
	return answer;
}
