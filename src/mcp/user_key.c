/*
 * user_key.c
 *	  which members of an answer have values of users
 */
#include "mcp/mcp.h"

static const char *const UserKeys[] = {
	"result", "previousResult", "arguments", "inputs", "outputs", "variables", "data", "metadata", "inputSchema", "value", "definition", "default",
	"response", "answers", "questions", "content", "executionReport", "budget", "used", "resources",
	"name", "goal", "instructions", "prompt", "summary", "resultSummary", "feedback", "description", "condition", "tool", "path"
};

/* Check whether the value of a key is not ours. It is passed on as it is. */
bool
IsUserKey(const char *key)
{
	return NameIndex(key, UserKeys, lengthof(UserKeys)) >= 0;
}
