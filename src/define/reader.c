/*
 * reader.c
 *	  read the values and objects of a definition
 *
 * An object is read by a table of its keys. Each line says how the value is
 * read and where it goes, so a new key is a new line. Reading goes on after a
 * fault. The field of a faulty value stays empty. Names are kept even if they
 * are faulty, so that references to them are not reported as well.
 *
 * Nothing is raised here: faults are collected for FaultsRaise.
 *
 * Memory: everything is in the current memory context, and may point into the
 * JSON of the definition.
 */
#include "define/define.h"

#include "mb/pg_wchar.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#define STALL_MAX_YEARS		100 /* keeps times within the range of timestamps */

/* ---------- texts ---------- */

/* Check the kind of a value, as JsonKindName names it. */
bool
ExpectKind(Reader *reader, const Place *place, const JsonbValue *value, const char *kind)
{
	const char *found = JsonKindName(value);

	if (strcmp(found, kind) == 0)
		return true;
	FaultAt(reader, place, ERRCODE_INVALID_DEFINITION,
			value->type == jbvNull ? "Leave out what is not set." : KindHint(kind),
			"must be of type %s, not %s", kind, found);
	return false;
}

/* Read any text. */
void
ReadNote(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	if (!ExpectKind(reader, place, value, "string"))
		return;
	if (value->val.string.len > MaxResultBytes)
		FaultAt(reader, place, ERRCODE_VALUE_TOO_LARGE, EXCESS_HINT,
				"is too large: %d bytes, of at most %d (stepwise.max_result_bytes)",
				value->val.string.len, MaxResultBytes);
	else
		*(char **) field = JsonValueText(value);
}

/* Read a text that is not blank. */
void
ReadText(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	char	   *text = NULL;

	ReadNote(reader, place, value, &text);
	if (text && TextIsBlank(text))
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Leave out what is not set.", "must not be empty");
	else if (text)
		*(char **) field = text;
}

/* Read the name of a workflow, plan or tool: one line of text. */
void
ReadTitle(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	char	   *title = NULL;

	ReadText(reader, place, value, &title);
	if (title == NULL)
		return;
	*(char **) field = title;
	if (pg_mbstrlen(title) > TITLE_MAX_CHARS)
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Use a short name, and put the rest into the description.",
				"must have at most %d characters", TITLE_MAX_CHARS);
	for (const char *c = title; *c; c++)
	{
		if ((unsigned char) *c >= ' ' && *c != 0x7f)
			continue;
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Write it in one line, with spaces for tabs.", "must not contain control characters");
		break;
	}
	if (title[0] == ' ' || title[strlen(title) - 1] == ' ')
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Remove the spaces around it.", "must not begin or end with a space");
}

/* Read a name that references can use: of a step, or a binding. */
void
ReadName(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	char	   *name = NULL;

	ReadText(reader, place, value, &name);
	if (name == NULL)
		return;
	*(char **) field = name;
	if (!ReferenceNameIsValid(name))
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION,
				"A name begins with a letter or \"_\", goes on with letters, digits, \"_\" or \"-\","
				" and has at most 63 characters.",
				"\"%s\" cannot be a name", ShortText(name));
	else if (strcmp(name, "__internal__") == 0)
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Choose another name.", "\"%s\" is reserved", name);
}

/* Read one of several words. */
void
ReadWord(Reader *reader, const Place *place, JsonbValue *value, const char *const *words, int count, char **field)
{
	char	   *word;

	if (!ExpectKind(reader, place, value, "string"))
		return;
	word = JsonValueText(value);
	if (NameIndex(word, words, count) >= 0)
		*field = word;
	else
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION,
				WordHint(reader->faults, word, words, count, "values"),
				"\"%s\" is not one of %s", ShortText(word), WordList(words, count));
}

/* ---------- other values ---------- */

/* Read true or false. */
void
ReadBool(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	if (ExpectKind(reader, place, value, "boolean"))
		*(bool *) field = value->val.boolean;
}

/* Read true or false into an int, where -1 can mean that it is not given. */
void
ReadFlag(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	if (ExpectKind(reader, place, value, "boolean"))
		*(int *) field = value->val.boolean;
}

/* Read a whole number, 1 or more. */
void
ReadCount(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	Datum		number;

	if (!ExpectKind(reader, place, value, "number"))
		return;
	number = NumericGetDatum(value->val.numeric);
	if (DatumGetInt32(DirectFunctionCall2(numeric_cmp, number, NumericGetDatum(int64_to_numeric(1)))) < 0 ||
		DatumGetInt32(DirectFunctionCall2(numeric_cmp, number, NumericGetDatum(int64_to_numeric(PG_INT32_MAX)))) > 0 ||
		!DatumGetBool(DirectFunctionCall2(numeric_eq, number,
										  DirectFunctionCall2(numeric_trunc, number, Int32GetDatum(0)))))
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Write for example 1.", "must be a whole number from 1 on");
	else
		*(int *) field = DatumGetInt32(DirectFunctionCall1(numeric_int4, number));
}

/* Read a positive interval. */
void
ReadInterval(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	Interval	none = {0};
	Interval	most = {.month = STALL_MAX_YEARS * MONTHS_PER_YEAR};
	char	   *text = NULL;
	Datum		interval;

	ReadText(reader, place, value, &text);
	if (text == NULL)
		return;
	if (!InputSafe(interval_in, text, &interval) ||
		!DatumGetBool(DirectFunctionCall2(interval_gt, interval, IntervalPGetDatum(&none))) ||
		!DatumGetBool(DirectFunctionCall2(interval_le, interval, IntervalPGetDatum(&most))))
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION,
				"Write it as PostgreSQL does, for example \"10 minutes\".",
				"\"%s\" is not an interval between 0 and %d years",
				ShortText(text), STALL_MAX_YEARS);
	else
		*(Interval **) field = DatumGetIntervalP(interval);
}

/* Read a value of one kind, within the limits. */
static void
ReadJsonOfKind(Reader *reader, const Place *place, JsonbValue *value, const char *kind, Jsonb **field)
{
	Jsonb	   *json;
	char	   *excess;

	if (!ExpectKind(reader, place, value, kind))
		return;
	json = JsonFromValue(value);
	excess = JsonExcess(json);
	if (excess)
		FaultAt(reader, place, ERRCODE_VALUE_TOO_LARGE, EXCESS_HINT, "%s", excess);
	else
		*field = json;
}

/* Read an object. */
void
ReadObject(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	ReadJsonOfKind(reader, place, value, "object", field);
}

/* Read an array of texts. */
void
ReadTexts(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	Jsonb	   *texts = NULL;
	Place		element = {.up = place};
	char	   *ignored;

	ReadJsonOfKind(reader, place, value, "array", &texts);
	if (texts == NULL)
		return;
	*(Jsonb **) field = texts;
	for (uint32 i = 0; i < JB_ROOT_COUNT(texts); i++)
	{
		JsonbValue	text;

		JsonGetIndex(texts, i, &text);
		element.index = i;
		ReadText(reader, &element, &text, &ignored);
	}
}

/* Keep a value, to read it later. */
void
ReadLater(Reader *reader pg_attribute_unused(), const Place *place pg_attribute_unused(), JsonbValue *value, void *field)
{
	JsonbValue *kept = palloc(sizeof(JsonbValue));

	*kept = *value;
	*(JsonbValue **) field = kept;
}

/* ---------- references and conditions ---------- */

/*
 * Report the faults of a text. If one is an unknown root, the names of the
 * scope make a better hint. They may not be known yet, so it is given later, by
 * reach.c.
 */
void
ReaderTakeFaults(Reader *reader, const Place *place, int sqlstate, const ParseFault *faults)
{
	for (; faults; faults = faults->next)
	{
		if (faults->root)
		{
			UnknownRoot *unknown = palloc(sizeof(UnknownRoot));

			unknown->fault = *faults;
			unknown->index = list_length(reader->faults->items);
			reader->unknown_roots = lappend(reader->unknown_roots, unknown);
		}
		FaultAt(reader, place, sqlstate, faults->hint, "%s at column %d", faults->message, faults->column);
	}
}

/* Compile a condition. */
static void
ReadExpression(Reader *reader, const Place *place, JsonbValue *value, bool branching, Condition **field)
{
	ParseFault	fault = {0};
	char	   *source = NULL;

	ReadText(reader, place, value, &source);
	if (source == NULL)
		return;
	*field = ConditionCompile(source, branching, &fault);
	if (fault.message)
	{
		*field = NULL;
		ReaderTakeFaults(reader, place, ERRCODE_INVALID_DEFINITION, &fault);
	}
}

/* Compile the condition of a step. */
void
ReadCondition(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	ReadExpression(reader, place, value, false, field);
}

/* Compile the condition of a branch. */
void
ReadBranchCondition(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	ReadExpression(reader, place, value, true, field);
}

/* ---------- objects ---------- */

/* Report an unknown key. */
static void
RefuseKey(Reader *reader, const Place *place, const KeyRule *rules, int count, const char *what)
{
	const char **keys = palloc(sizeof(char *) * (count + 1));

	for (int i = 0; i < count; i++)
		keys[i] = rules[i].key;
	FaultAt(reader, place, ERRCODE_INVALID_DEFINITION,
			count ? WordHint(reader->faults, place->key, keys, count, "keys") : "Leave it out.",
			"%s has no key \"%s\"", what, ShortText(place->key));
	pfree(keys);
}

/* Find the rule of a key; "count" if there is none. */
static int
RuleOf(const KeyRule *rules, int count, const JsonbValue *key)
{
	int			length = key->val.string.len;

	for (int i = 0; i < count; i++)
		if (strncmp(rules[i].key, key->val.string.val, length) == 0 && rules[i].key[length] == '\0')
			return i;
	return count;
}

/*
 * Read an object into the target, by the table of its keys. "what" names the
 * object in messages.
 */
void
ReadKeys(Reader *reader, const Place *place, JsonbValue *value, const KeyRule *rules, int count,
		 void *target, const char *what)
{
	Place		member = {.up = place};
	uint32		seen = 0;
	int			rule = 0;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	item;

	if (!ExpectKind(reader, place, value, "object"))
		return;
	iterator = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&iterator, &item, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
		{
			rule = RuleOf(rules, count, &item);
			member.key = rule < count ? rules[rule].key : JsonValueText(&item);
		}
		else if (token == WJB_VALUE && rule == count)
			RefuseKey(reader, &member, rules, count, what);
		else if (token == WJB_VALUE)
		{
			seen |= 1U << rule;
			rules[rule].read(reader, &member, &item, (char *) target + rules[rule].offset);
		}
	}

	for (rule = 0; rule < count; rule++)
	{
		member.key = rules[rule].key;
		if (rules[rule].required && !(seen & (1U << rule)))
			FaultAt(reader, &member, ERRCODE_INVALID_DEFINITION,
					psprintf("Add \"%s\".", member.key), "is missing: %s needs it", what);
	}
}

/* Keep one copy of a name that occurs many times. */
char *
ReaderKeep(Reader *reader, char *name)
{
	char	   *kept;

	if (reader->dependencies == NULL)
		reader->dependencies = NamesNew(8);
	kept = NamesKeep(reader->dependencies, name);
	if (kept != name)
		pfree(name);
	return kept;
}
