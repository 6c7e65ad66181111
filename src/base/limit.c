/*
 * limit.c
 *	  how large values and texts may be
 *
 * What is stored has a limit. Otherwise one value could fill the memory of
 * every reader. The Check functions raise SW007. JsonExcess returns a message
 * instead, for callers that collect faults or stop only one step.
 *
 * Answers have a limit too. A thousand values that are stored compressed can
 * be a hundred times larger when they are read. So a function that returns
 * data in full first adds up its size from the headers of the fields, which
 * costs almost nothing.
 */
#include "base/base.h"

#include "mb/pg_wchar.h"

/* ---------- values ---------- */

#define LEVEL_BYTES		(sizeof(uint32) + sizeof(JEntry))	/* that a container takes at least, to hold another */

/* Check whether a value is nested too deeply. A scalar counts as one level. */
static bool
JsonIsTooDeep(const Jsonb *json)
{
	JsonbIterator *iterator;
	JsonbValue	ignored;
	JsonbIteratorToken token;
	int			depth = 0;

	if (VARSIZE(json) / LEVEL_BYTES < (size_t) MaxJsonDepth)
		return false;
	iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &json->root));
	while ((token = JsonbIteratorNext(&iterator, &ignored, false)) != WJB_DONE)
	{
		if (token == WJB_END_ARRAY || token == WJB_END_OBJECT)
			depth--;
		else if ((token == WJB_BEGIN_ARRAY || token == WJB_BEGIN_OBJECT) && ++depth > MaxJsonDepth)
			return true;
	}
	return false;
}

/* Say which limit a value exceeds; NULL if none. */
char *
JsonExcess(const Jsonb *json)
{
	if (VARSIZE(json) > (size_t) MaxResultBytes)
		return psprintf("is too large: %d bytes, of at most %d (stepwise.max_result_bytes)",
						(int) VARSIZE(json), MaxResultBytes);
	if (JsonIsTooDeep(json))
		return psprintf("is nested too deeply: at most %d levels (stepwise.max_json_depth)", MaxJsonDepth);
	return NULL;
}

static void
CheckSize(size_t size, const char *what)
{
	if (size > (size_t) MaxResultBytes)
		ereport(ERROR,
				(errcode(ERRCODE_VALUE_TOO_LARGE),
				 errmsg("%s is too large: %zu bytes", what, size),
				 errdetail("The limit, stepwise.max_result_bytes, is %d bytes.", MaxResultBytes),
				 errhint("Split it, or keep the content elsewhere and hand over where it is.")));
}

static void
CheckDepth(const Jsonb *value, const char *what)
{
	if (JsonIsTooDeep(value))
		ereport(ERROR,
				(errcode(ERRCODE_VALUE_TOO_LARGE),
				 errmsg("%s is nested too deeply", what),
				 errdetail("The limit, stepwise.max_json_depth, is %d levels.", MaxJsonDepth),
				 errhint("Flatten the value, or store it as text.")));
}

/* Refuse a value that is too large, too deep, or not UTF-8. */
void
CheckJsonLimits(const Jsonb *value, const char *what)
{
	if (value == NULL)
		return;
	CheckSize(VARSIZE(value), what);
	CheckDepth(value, what);
	/* for results of tools and plain SQL; arguments have been checked before */
	CheckJsonUtf8(value, what);
}

/* ---------- texts ---------- */

/* Refuse a text that is too large. */
void
CheckTextLimit(const char *value, const char *what)
{
	if (value != NULL)
		CheckSize(strlen(value), what);
}

/*
 * Refuse a name that is too long. Names of sessions, workers, keys and people
 * are in every audit entry, and in indexes.
 */
void
CheckNameLimit(const char *value, const char *what)
{
	if (value != NULL && strlen(value) > NAME_MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_VALUE_TOO_LARGE),
				 errmsg("%s is too long: %zu bytes", what, strlen(value)),
				 errdetail("It may have %d bytes at most.", NAME_MAX_BYTES),
				 errhint("Use a short one, such as 'agent-1'.")));
}

/* Refuse a text that is blank or missing. */
void
CheckNotBlank(const char *value, const char *what)
{
	if (value == NULL || TextIsBlank(value))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("%s must not be empty", what),
				 errhint("Give %s as a text.", what)));
}

static void
CheckTitleLength(const char *value, const char *what)
{
	if (pg_mbstrlen(value) > TITLE_MAX_CHARS)
		ereport(ERROR,
				(errcode(ERRCODE_VALUE_TOO_LARGE),
				 errmsg("%s is too long: %d characters", what, pg_mbstrlen(value)),
				 errdetail("The limit is %d characters.", TITLE_MAX_CHARS),
				 errhint("Put details into the content, and use a short %s.", what)));
}

/* Refuse a title that is blank or too long. */
void
CheckTitle(const char *value, const char *what)
{
	CheckNotBlank(value, what);
	CheckTitleLength(value, what);
}

/* Do the same for a title that may be NULL. */
void
CheckOptionalTitle(const char *value, const char *what)
{
	if (value != NULL)
		CheckTitle(value, what);
}

/* Refuse a name or pattern that is not one line, is too long, or is blank. */
void
CheckLine(const char *word, const char *what)
{
	if (word == NULL || TextIsBlank(word) || strpbrk(word, "\r\n") != NULL ||
		pg_mbstrlen(word) > TITLE_MAX_CHARS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("%s must be one line of 1 to %d characters", what, TITLE_MAX_CHARS),
				 errhint("Use a short one without line breaks, such as 'send_mail' for a tool or 'docs://*' for a resource.")));
}

/* ---------- answers ---------- */

/*
 * The limit of the stored data in one answer. While the answer is built, its
 * jsonb values take several times as much.
 */
#define ANSWER_MAX_MB	64

/*
 * Add to the size of the answer of this call, before the data are read. The
 * hint says how to ask for less.
 */
void
AnswerTake(Call *call, size_t bytes, const char *hint)
{
	call->answer_bytes += bytes;
	if (call->answer_bytes > (size_t) ANSWER_MAX_MB * 1024 * 1024)
		ereport(ERROR,
				(errcode(ERRCODE_VALUE_TOO_LARGE),
				 errmsg("the answer would be too large"),
				 errdetail("One answer holds at most %d MB of inputs and results.", ANSWER_MAX_MB),
				 errhint("%s", hint)));
}
