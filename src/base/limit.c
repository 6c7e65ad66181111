/*
 * limit.c
 *	  how large values and texts may be
 *
 * What is stored has a limit, or one value could fill the memory of every
 * reader. A Check raises SW007; where faults are collected, or where only one
 * step is to stop, JsonExcess says the same as a message.
 *
 * What is answered has one too. A thousand values that are stored compressed
 * can be a hundred times larger when they are read. So an answer that gives
 * data whole counts first how large it will be, from what the rows say of
 * their fields, which costs nothing to read.
 */
#include "base/base.h"

#include "access/detoast.h"
#include "mb/pg_wchar.h"

/* ---------- values ---------- */

/* A scalar is one level deep, as all that may be stored can be. */
static bool
JsonIsTooDeep(const Jsonb *json)
{
	JsonbIterator *iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &json->root));
	JsonbValue	ignored;
	JsonbIteratorToken token;
	int			depth = 0;

	while ((token = JsonbIteratorNext(&iterator, &ignored, false)) != WJB_DONE)
	{
		if (token == WJB_END_ARRAY || token == WJB_END_OBJECT)
			depth--;
		else if ((token == WJB_BEGIN_ARRAY || token == WJB_BEGIN_OBJECT) && ++depth > MaxJsonDepth)
			return true;
	}
	return false;
}

/* Say by what a value exceeds the limits; NULL if by nothing. */
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

void
CheckJsonLimits(const Jsonb *value, const char *what)
{
	if (value == NULL)
		return;
	CheckSize(VARSIZE(value), what);
	CheckDepth(value, what);
	/* results of tools, and what plain SQL brings in: arguments have been looked at */
	CheckJsonUtf8(value, what);
}

/* ---------- texts ---------- */

void
CheckTextLimit(const char *value, const char *what)
{
	if (value != NULL)
		CheckSize(strlen(value), what);
}

/* Names of sessions, workers, keys and people go into every entry, and into indexes. */
void
CheckNameLimit(const char *value, const char *what)
{
	if (value != NULL && strlen(value) > NAME_MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_VALUE_TOO_LARGE),
				 errmsg("%s is too long: %zu bytes", what, strlen(value)),
				 errdetail("It may have %d bytes at most.", NAME_MAX_BYTES)));
}

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

/* A name that one can find again: not empty, and short. */
void
CheckTitle(const char *value, const char *what)
{
	CheckNotBlank(value, what);
	CheckTitleLength(value, what);
}

/* The same, where it may be left out. */
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
				 errmsg("%s must be one line of 1 to %d characters", what, TITLE_MAX_CHARS)));
}

/* ---------- answers ---------- */

/*
 * The most that an answer holds of what is stored. While it is put together,
 * the values of jsonb take several times as much.
 */
#define ANSWER_MAX_MB	64

/* How large a field is when it is neither compressed nor kept out of line; 0: null. */
size_t
RawSize(const struct varlena *field)
{
	return field ? toast_raw_datum_size(PointerGetDatum(field)) : 0;
}

/* Count what the answer of this call will hold, before it is read. The hint says how to ask for less. */
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
