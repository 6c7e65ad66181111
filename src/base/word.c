/*
 * word.c
 *	  words among others, and texts for messages
 *
 * What a user wrote goes into a message only when it is cut short. Everything
 * returned lives in the current memory context.
 */
#include "base/base.h"

#include "mb/pg_wchar.h"
#include "utils/varlena.h"

#define WORD_MAX		255		/* longer words are not compared */
#define WORDS_LISTED	20
#define SHOWN_BYTES		80		/* of a user's text */

/* ---------- words ---------- */

/* Find the place of a name among others; -1: it is not there. */
int
NameIndex(const char *name, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return -1;
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

/* Find the word that was probably meant; NULL: none is near. */
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

/* List words for a message, not more than one can read. */
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

/* ---------- texts ---------- */

/* The value of a hexadecimal digit; -1: it is none. */
int
HexDigit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool
TextIsBlank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}

/* Cut a user's text to what a message can carry. */
char *
ClipText(const char *text, int length)
{
	if (length <= SHOWN_BYTES)
		return pnstrdup(text, length);
	return psprintf("%.*s...", pg_mbcliplen(text, length, SHOWN_BYTES), text);
}

/* What a caller wrote, for a message; he may have written very much, or nothing. */
char *
ShortText(const char *text)
{
	return text ? ClipText(text, strlen(text)) : pstrdup("");
}

/* Cut a text that is to be kept, or sent on, in many places; what is cut says how long it was. */
char *
CutText(const char *text, int max)
{
	int			length = strlen(text);

	if (length <= max)
		return pstrdup(text);
	return psprintf("%.*s... (cut: %d bytes in all)", pg_mbcliplen(text, length, max), text, length);
}

/* The end of a sentence that gives a reason, or of one that has none to give. */
char *
Because(const char *reason)
{
	return reason ? psprintf(": %s", reason) : pstrdup("");
}

/* The same of a reason that goes on to other plans, and perhaps to many. */
char *
BecauseShort(const char *reason)
{
	return Because(reason ? CutText(reason, REASON_TEXT_BYTES) : NULL);
}

/* psprintf for functions that themselves take a format. */
char *
FormatText(const char *format, va_list args)
{
	StringInfoData text;
	int			needed;

	initStringInfo(&text);
	for (;;)
	{
		va_list		again;

		va_copy(again, args);
		needed = appendStringInfoVA(&text, format, again);
		va_end(again);
		if (needed == 0)
			return text.data;
		enlargeStringInfo(&text, needed);
	}
}

/* The arrow in a spelled chain; not every encoding has the true one. */
const char *
Arrow(void)
{
	return GetDatabaseEncoding() == PG_UTF8 ? " → " : " -> ";
}
