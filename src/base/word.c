/*
 * word.c
 *	  search words, and cut texts for messages
 *
 * A text that a user wrote is cut before it goes into a message. Everything
 * returned lives in the current memory context.
 */
#include "base/base.h"

#include "mb/pg_wchar.h"
#include "utils/varlena.h"

#define WORD_MAX		255		/* bytes; longer words are not compared */
#define WORDS_LISTED	20
#define SHOWN_BYTES		80		/* of a user's text in a message */

/* ---------- words ---------- */

/* Find the index of a name in an array; -1: it is not there. */
int
NameIndex(const char *name, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return -1;
}

/*
 * Fold a word for comparison. The case of letters and the way words are joined
 * (dependsOn, depends_on) do not count. Returns the length.
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

/* List words for a message, but not too many. */
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

/* Return the value of a hexadecimal digit; -1: it is not one. */
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

/* Check whether a text is empty or has only white space. */
bool
TextIsBlank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}

/* Cut a user's text for a message. */
char *
ClipText(const char *text, int length)
{
	if (length <= SHOWN_BYTES)
		return pnstrdup(text, length);
	return psprintf("%.*s...", pg_mbcliplen(text, length, SHOWN_BYTES), text);
}

/* Cut a whole text for a message; NULL gives an empty text. */
char *
ShortText(const char *text)
{
	return text ? ClipText(text, strlen(text)) : pstrdup("");
}

/* Write a reason as the end of a sentence; nothing for NULL. */
char *
Because(const char *reason)
{
	return reason ? psprintf(": %s", reason) : pstrdup("");
}

/* Do what psprintf does, for functions that take a format themselves. */
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

/* Return the arrow of a spelled chain. Not every encoding has the real one. */
const char *
Arrow(void)
{
	return GetDatabaseEncoding() == PG_UTF8 ? " → " : " -> ";
}

/* Does the text end with a punctuation mark? */
bool
EndsSentence(const char *text)
{
	size_t		length = strlen(text);

	return length > 0 && strchr(".?!", text[length - 1]) != NULL;
}
