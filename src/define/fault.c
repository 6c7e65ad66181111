/*
 * fault.c
 *	  collect all faults of a definition, and raise them as one error
 *
 * Definitions are often written by language models, which repair what they are
 * told about. So nothing stops at the first fault. Each fault is noted with
 * the place of the element, a message and a hint. DETAIL has the list as JSON,
 * in the form in which validate_definition returns it.
 *
 * Memory: everything is in the memory context of the caller.
 */
#include "define/define.h"

#include "mb/pg_wchar.h"

typedef struct Fault
{
	int			sqlstate;
	char	   *place;
	char	   *hint;			/* or NULL */
	char	   *message;
} Fault;

/* a definition of thousands of steps can be wrong in each of them */
#define FAULTS_KEPT		50
#define FAULTS_BYTES	18000	/* of the list of faults */
#define FAULT_BYTES		300		/* of one place, message or hint */
#define FAULT_OF_MANY	100		/* the same, after the first FAULTS_FEW */
#define FAULTS_FEW		10

#define KEY_SHOWN		63		/* bytes of a key that is shown */

/* Note a fault. */
void
FaultAdd(Faults *faults, int sqlstate, const char *place, const char *hint, const char *format, ...)
{
	Fault	   *fault;
	va_list		args;
	int			bytes;

	if (list_length(faults->items) >= FAULTS_KEPT)
	{
		faults->more++;
		return;
	}
	fault = palloc(sizeof(Fault));
	fault->sqlstate = sqlstate;
	bytes = list_length(faults->items) < FAULTS_FEW ? FAULT_BYTES : FAULT_OF_MANY;
	fault->place = CutText(place, bytes, NULL);
	fault->hint = hint ? CutText(hint, bytes, NULL) : NULL;
	va_start(args, format);
	fault->message = CutText(FormatText(format, args), bytes, NULL);
	va_end(args);
	faults->items = lappend(faults->items, fault);
}

/* Replace the hint of a fault. "index" counts all faults, also those that were not kept. */
void
FaultSetHint(Faults *faults, int index, const char *hint)
{
	if (index < list_length(faults->items))
		((Fault *) list_nth(faults->items, index))->hint = CutText(hint, FAULT_BYTES, NULL);
}

/* Check whether there are faults. */
bool
FaultsAny(const Faults *faults)
{
	return faults->items != NIL;
}

/* Count all faults, also those that were not kept. */
int
FaultsCount(const Faults *faults)
{
	return list_length(faults->items) + faults->more;
}

/* Write the first faults as an array. */
void
FaultsToJson(JsonBuilder *b, const char *key, const Faults *faults)
{
	size_t		bytes = 0;
	ListCell   *cell;

	JsonArrayStart(b, key);
	foreach(cell, faults->items)
	{
		const Fault *fault = lfirst(cell);

		bytes += strlen(fault->place) + strlen(fault->message) + (fault->hint ? strlen(fault->hint) : 0);
		if (bytes > FAULTS_BYTES)
			break;
		JsonObjectStart(b, NULL);
		JsonPutText(b, "path", fault->place);
		JsonPutText(b, "message", fault->message);
		JsonPutText(b, "hint", fault->hint);
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
}

/* Describe the first fault. */
char *
FaultsFirst(const Faults *faults)
{
	const Fault *first = linitial(faults->items);

	return psprintf("%s%s%s", first->place, first->place[0] ? ": " : "", first->message);
}

/* Describe all faults in one line. */
char *
FaultsText(const Faults *faults)
{
	StringInfoData text;
	ListCell   *cell;

	initStringInfo(&text);
	foreach(cell, faults->items)
	{
		const Fault *fault = lfirst(cell);

		appendStringInfo(&text, "%s%s%s%s", text.len ? "; " : "", fault->place, fault->place[0] ? ": " : "", fault->message);
	}
	if (faults->more > 0)
		appendStringInfo(&text, "; and %d more", faults->more);
	return text.data;
}

/*
 * Raise the faults, if there are any, as one error. Its SQLSTATE, message and
 * hint are those of the first fault. "what" says what they were found in: a
 * definition, inputs.
 */
void
FaultsRaise(const Faults *faults, const char *what)
{
	int			more = FaultsCount(faults) - 1;
	JsonBuilder b = {0};
	const Fault *first;

	if (!FaultsAny(faults))
		return;

	first = linitial(faults->items);
	FaultsToJson(&b, NULL, faults);
	ereport(ERROR,
			(errcode(first->sqlstate),
			 errmsg("invalid %s: %s%s", what, FaultsFirst(faults),
					more > 0 ? psprintf(" (and %d more)", more) : ""),
			 errdetail_internal("%s", JsonToText(JsonFinish(&b))),
			 errhint("%s", first->hint ? first->hint :
					 "DETAIL lists every fault with the path of its element.")));
}

/* Append one link of a place. A long key is cut, because it is the user's text. */
static void
AppendPlace(StringInfo text, const Place *place)
{
	if (place->up)
		AppendPlace(text, place->up);
	if (place->key == NULL)
		appendStringInfo(text, "[%d]", place->index);
	else
	{
		int			length = strlen(place->key);
		int			shown = pg_mbcliplen(place->key, length, KEY_SHOWN);

		/* the outermost place is the definition itself, which has no name */
		if (text->len > 0 && length > 0)
			appendStringInfoChar(text, '.');
		appendBinaryStringInfo(text, place->key, place->up ? shown : length);
	}
}

/* Spell a place, as in steps[2].dependsOn[0]. */
char *
PlaceText(const Place *place)
{
	StringInfoData text;

	initStringInfo(&text);
	AppendPlace(&text, place);
	return text.data;
}

/* Check whether hints are worth their cost. After many faults they are not. */
bool
HintsWanted(const Faults *faults)
{
	return list_length(faults->items) < FAULTS_KEPT;
}

/*
 * Make the hint for a word that is not known: the nearest known word, or the
 * list of known words. "plural" names their kind.
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

/* Say how a value of a kind is written. The kinds are those of JSON, and integer. */
const char *
KindHint(const char *kind)
{
	static const char *const hints[][2] = {
		{"string", "Write it in double quotes."},
		{"number", "Write a number without quotes, such as 2."},
		{"integer", "Write a whole number without quotes, such as 2."},
		{"boolean", "Write true or false, without quotes."},
		{"array", "Write [...]."},
		{"object", "Write {\"name\": value, ...}."},
	};

	for (size_t i = 0; i < lengthof(hints); i++)
		if (strcmp(kind, hints[i][0]) == 0)
			return hints[i][1];
	return "Give another value.";
}
