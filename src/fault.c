/*
 * fault.c
 *	  collect all faults of a definition, and raise them as one error
 *
 * Definitions are often written by language models, which repair what they
 * are told about. So nothing stops at the first fault: each is noted with the
 * path of the element, a message, and a hint, and the list goes into DETAIL as
 * JSON, in the form in which validate_definition answers it.
 *
 * Everything lives in the memory context of the caller.
 */
#include "stepwise.h"

#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/varlena.h"

typedef struct Fault
{
	int			sqlstate;
	char	   *path;
	char	   *hint;			/* or NULL */
	char	   *message;
} Fault;

/* A definition of thousands of steps can be wrong in each: where to stop. */
#define FAULTS_KEPT		1000
#define FAULTS_RAISED	100		/* shown in DETAIL */
#define FAULTS_HINTED	50		/* looking for a near word costs the most */

#define WORD_MAX		255		/* longer words are not compared */
#define WORDS_LISTED	20
#define KEY_SHOWN		63		/* bytes of a key in a path */

/*
 * Note a fault.
 */
void
FaultAdd(Faults *faults, int sqlstate, const char *path, const char *hint, const char *format,...)
{
	StringInfoData message;
	Fault	   *fault;

	if (list_length(faults->items) >= FAULTS_KEPT)
	{
		faults->more++;
		return;
	}

	initStringInfo(&message);
	for (;;)
	{
		va_list		args;
		int			needed;

		va_start(args, format);
		needed = appendStringInfoVA(&message, format, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&message, needed);
	}

	fault = palloc(sizeof(Fault));
	fault->sqlstate = sqlstate;
	fault->path = pstrdup(path);
	fault->hint = hint ? pstrdup(hint) : NULL;
	fault->message = message.data;
	faults->items = lappend(faults->items, fault);
}

bool
FaultsAny(const Faults *faults)
{
	return faults->items != NIL;
}

/*
 * Write the first faults as an array, and how many there are beyond.
 */
static void
PutFaults(JsonBuilder *b, const char *key, const Faults *faults, int max)
{
	int			left = list_length(faults->items) + faults->more;
	ListCell   *cell;

	JsonArrayStart(b, key);
	foreach(cell, faults->items)
	{
		const Fault *fault = lfirst(cell);

		if (foreach_current_index(cell) >= max)
			break;
		JsonObjectStart(b, NULL);
		JsonPutText(b, "path", fault->path);
		JsonPutText(b, "message", fault->message);
		JsonPutText(b, "hint", fault->hint);
		JsonObjectEnd(b);
		left--;
	}
	if (left > 0)
	{
		JsonObjectStart(b, NULL);
		JsonPutText(b, "path", "");
		JsonPutText(b, "message", psprintf("%d more faults are not listed", left));
		JsonPutNull(b, "hint");
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
}

void
FaultsToJson(JsonBuilder *b, const char *key, const Faults *faults)
{
	PutFaults(b, key, faults, FAULTS_KEPT);
}

/*
 * Find the SQLSTATE of all: their own if they share one.
 */
static int
SharedState(const Faults *faults)
{
	int			sqlstate = ((const Fault *) linitial(faults->items))->sqlstate;
	ListCell   *cell;

	foreach(cell, faults->items)
	{
		if (((const Fault *) lfirst(cell))->sqlstate != sqlstate)
			return ERRCODE_INVALID_DEFINITION;
	}
	return sqlstate;
}

/*
 * Put the first fault in words: where, and what.
 */
char *
FaultsFirst(const Faults *faults)
{
	const Fault *first = linitial(faults->items);

	return psprintf("%s%s%s", first->path, first->path[0] ? ": " : "", first->message);
}

/*
 * Put all faults in words, in one line.
 */
char *
FaultsText(const Faults *faults)
{
	StringInfoData text;
	ListCell   *cell;

	initStringInfo(&text);
	foreach(cell, faults->items)
	{
		const Fault *fault = lfirst(cell);

		appendStringInfo(&text, "%s%s%s%s", text.len ? "; " : "", fault->path, fault->path[0] ? ": " : "", fault->message);
	}
	if (faults->more > 0)
		appendStringInfo(&text, "; and %d more", faults->more);
	return text.data;
}

/*
 * Raise the faults, if there are any, as one error about a definition, the
 * inputs, or what else they were found in.
 */
void
FaultsRaise(const Faults *faults, const char *what)
{
	int			more = list_length(faults->items) - 1 + faults->more;
	JsonBuilder b = {0};
	const Fault *first;

	if (!FaultsAny(faults))
		return;

	first = linitial(faults->items);
	PutFaults(&b, NULL, faults, FAULTS_RAISED);
	ereport(ERROR,
			(errcode(SharedState(faults)),
			 errmsg("invalid %s: %s%s", what, FaultsFirst(faults),
					more > 0 ? psprintf(" (and %d more)", more) : ""),
			 errdetail_internal("%s", JsonToText(JsonFinish(&b))),
			 errhint("%s", first->hint ? first->hint :
					 "DETAIL lists every fault with the path of its element.")));
}

/*
 * Append one link of a path; a key that is not short is cut, for it is the
 * user's text.
 */
static void
AppendPath(StringInfo text, const Path *path)
{
	if (path->up)
		AppendPath(text, path->up);
	if (path->key == NULL)
		appendStringInfo(text, "[%d]", path->index);
	else
	{
		int			length = strlen(path->key);
		int			shown = pg_mbcliplen(path->key, length, KEY_SHOWN);

		/* the outermost is the definition itself and has no name */
		if (text->len > 0 && length > 0)
			appendStringInfoChar(text, '.');
		appendBinaryStringInfo(text, path->key, path->up ? shown : length);
	}
}

/*
 * Spell a path.
 */
char *
PathText(const Path *path)
{
	StringInfoData text;

	initStringInfo(&text);
	AppendPath(&text, path);
	return text.data;
}

/*
 * Say by what a value exceeds the limits; NULL if by nothing.
 */
char *
JsonExcess(const Jsonb *json)
{
	JsonbIterator *iterator;
	JsonbValue	ignored;
	JsonbIteratorToken token;
	int			depth = 0;

	if (VARSIZE(json) > (size_t) MaxResultBytes)
		return psprintf("is too large: %d bytes, of at most %d (stepwise.max_result_bytes)",
						(int) VARSIZE(json), MaxResultBytes);
	iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &json->root));
	while ((token = JsonbIteratorNext(&iterator, &ignored, false)) != WJB_DONE)
	{
		if (token == WJB_END_ARRAY || token == WJB_END_OBJECT)
			depth--;
		else if ((token == WJB_BEGIN_ARRAY || token == WJB_BEGIN_OBJECT) && ++depth > MaxJsonDepth)
			return psprintf("is nested too deeply: at most %d levels (stepwise.max_json_depth)", MaxJsonDepth);
	}
	return NULL;
}

/*
 * The arrow in a spelled chain; not every encoding has the true one.
 */
const char *
Arrow(void)
{
	return GetDatabaseEncoding() == PG_UTF8 ? " → " : " -> ";
}

/*
 * Bring a word into the form in which words are compared: the case of letters
 * and the style of joining words (dependsOn, depends_on) do not count. Returns
 * its length.
 */
static int
FoldWord(const char *word, char folded[WORD_MAX + 1])
{
	int			length = 0;

	for (; *word && length < WORD_MAX; word++)
	{
		if (*word != '_' && *word != '-' && *word != ' ')
			folded[length++] = pg_ascii_tolower((unsigned char) *word);
	}
	folded[length] = '\0';
	return length;
}

/*
 * Find the word that was probably meant.
 */
const char *
NearestWord(const char *word, const char *const *words, int count)
{
	char		wanted[WORD_MAX + 1];
	char		folded[WORD_MAX + 1];
	const char *nearest = NULL;
	int			length;
	int			most;

	if (strlen(word) > WORD_MAX)
		return NULL;
	length = FoldWord(word, wanted);
	/* about one letter in three may differ */
	most = Min(4, (length + 1) / 3);

	for (int i = 0; i < count && most >= 0; i++)
	{
		int			other;
		int			distance;

		if (strlen(words[i]) > WORD_MAX)
			continue;
		other = FoldWord(words[i], folded);
		if (other == 0 || abs(other - length) > most)
			continue;
		distance = varstr_levenshtein_less_equal(wanted, length, folded, other, 1, 1, 1, most, true);
		if (distance <= most)
		{
			nearest = words[i];
			most = distance - 1;
		}
	}
	return nearest;
}

/*
 * List words for a message, not more than one can read.
 */
char *
WordList(const char *const *words, int count)
{
	StringInfoData list;

	initStringInfo(&list);
	for (int i = 0; i < count && i < WORDS_LISTED; i++)
		appendStringInfo(&list, "%s%s", i > 0 ? ", " : "", words[i]);
	if (count > WORDS_LISTED)
		appendStringInfo(&list, " and %d more", count - WORDS_LISTED);
	return list.data;
}

/*
 * Is it worth while to look for words? Not when there are many faults already.
 */
bool
HintsWanted(const Faults *faults)
{
	return list_length(faults->items) < FAULTS_HINTED;
}

/*
 * Make the hint about a word that is not among the known ones: the nearest of
 * them, or what they are; "plural" says of what kind.
 */
char *
WordHint(const Faults *faults, const char *word, const char *const *words, int count, const char *plural)
{
	const char *nearest;

	if (!HintsWanted(faults))
		return NULL;
	if (count == 0)
		return psprintf("There are no %s.", plural);
	nearest = NearestWord(word, words, count);
	if (nearest)
		return psprintf("Did you mean \"%s\"?", nearest);

	return psprintf("Known %s: %s.", plural, WordList(words, count));
}
