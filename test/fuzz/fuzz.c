/*
 * fuzz.c
 *	  fuzz target of the parsers: random numbers, values, the run
 *
 * This is a separate module, stepwise_fuzz, linked with the objects of src/
 * that it tests; see test/fuzz/run. A case depends only on its number and the
 * seed, so a failure can be repeated with the numbers that its CONTEXT shows.
 * Each case runs in its own memory context. Any error ends the run, since the
 * parsers report faults without raising errors.
 */
#include "fuzz.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

/* settings that the linked objects read; in the extension settings.c defines them */
int			MaxResultBytes = 1024 * 1024;
int			MaxJsonDepth = 64;

#define LEAK_TOLERANCE	(256 * 1024)	/* caches may still warm up */

/* ---------- random numbers ---------- */

static uint64 chance;

static uint64
NextRandom(void)
{
	uint64		z = (chance += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* Draw one of 0 … count - 1. */
int
Draw(int count)
{
	return NextRandom() % count;
}

void
StartCase(uint64 seed, int number)
{
	chance = seed * UINT64CONST(1000003) + number;
}

/* ---------- values, and properties that are known without jsonb ---------- */

typedef struct Sample
{
	int			rank;
	const char *text;
} Sample;

/* several notations of a number, and large numbers that are equal as double */
static const Sample Numbers[] = {
	{0, "-1e400"}, {1, "-2"}, {2, "-1.5"}, {3, "0"}, {3, "-0"}, {3, "0.00"}, {3, "0e5"},
	{4, "1e-300"}, {5, "1"}, {5, "1.0"}, {5, "10e-1"}, {5, "0.1E1"}, {6, "2"}, {6, "0.2e+1"},
	{7, "10"}, {8, "9007199254740992"}, {9, "9007199254740993"}, {9, "9007199254740993.000"},
	{10, "123456789012345678901234567890.1"}, {11, "123456789012345678901234567890.2"}, {12, "1e400"}
};

/* ordered by code point */
static const Sample Strings[] = {
	{0, "\"\""}, {1, "\"\\t\""}, {2, "\"\\n\""}, {3, "\" \""}, {4, "\"\\\"\""}, {5, "\"${x}\""}, {6, "\"'\""},
	{7, "\"1\""}, {8, "\"10\""}, {9, "\"2\""}, {10, "\"A\""}, {11, "\"\\\\\""}, {12, "\"a\""}, {12, "\"\\u0061\""},
	{13, "\"ab\""}, {14, "\"b\""}, {15, "\"true\""}, {16, "\"é\""}, {16, "\"\\u00e9\""}, {17, "\"日本\""},
	{18, "\"\\ufffd\""}, {19, "\"😀\""}, {19, "\"\\ud83d\\ude00\""}
};

static const char *const KeyNames[] = {"a", "b", "ключ", "0"};

Val *
RandomScalar(void)
{
	Val		   *val = palloc0(sizeof(Val));
	const Sample *sample;

	val->kind = Draw(KIND_ARRAY);
	switch (val->kind)
	{
		case KIND_NULL:
			val->text = "null";
			break;
		case KIND_BOOLEAN:
			val->rank = Draw(2);
			val->text = val->rank ? "true" : "false";
			break;
		default:
			sample = val->kind == KIND_NUMBER ? &DRAW(Numbers) : &DRAW(Strings);
			val->rank = sample->rank;
			val->text = sample->text;
	}
	return val;
}

/* Write a container as JSON. */
static const char *
ContainerText(const Val *val)
{
	StringInfoData text;
	int			key = -1;

	initStringInfo(&text);
	appendStringInfoChar(&text, val->kind == KIND_ARRAY ? '[' : '{');
	for (int i = 0; i < val->count; i++)
	{
		appendStringInfoString(&text, i == 0 ? "" : ",");
		if (val->kind == KIND_OBJECT)
		{
			while (!(val->keys & (1 << ++key)))
				 /* look on */ ;
			appendStringInfo(&text, "\"%s\":", KeyNames[key]);
		}
		appendStringInfoString(&text, val->elements[i]->text);
	}
	appendStringInfoChar(&text, val->kind == KIND_ARRAY ? ']' : '}');
	return text.data;
}

Val *
RandomVal(int depth)
{
	Val		   *val;

	if (depth == 0 || Draw(3) > 0)
		return RandomScalar();
	val = palloc0(sizeof(Val));
	val->kind = Draw(2) ? KIND_ARRAY : KIND_OBJECT;
	if (val->kind == KIND_ARRAY)
		val->count = Draw(4);
	else
	{
		val->keys = Draw(1 << lengthof(KeyNames));
		val->count = pg_popcount32(val->keys);
	}
	for (int i = 0; i < val->count; i++)
		val->elements[i] = RandomVal(depth - 1);
	val->text = ContainerText(val);
	return val;
}

bool
ValEqual(const Val *a, const Val *b)
{
	if (a->kind != b->kind || a->rank != b->rank || a->count != b->count || a->keys != b->keys)
		return false;
	for (int i = 0; i < a->count; i++)
		if (!ValEqual(a->elements[i], b->elements[i]))
			return false;
	return true;
}

/* Make an array of two values. */
Val *
MakeArray(Val *first, Val *second)
{
	Val		   *array = palloc0(sizeof(Val));

	array->kind = KIND_ARRAY;
	array->count = 2;
	array->elements[0] = first;
	array->elements[1] = second;
	array->text = ContainerText(array);
	return array;
}

Jsonb *
JsonFromText(const char *text)
{
	return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(text)));
}

/* Get the value of a whole jsonb. */
JsonbValue *
ValueFromText(const char *text)
{
	Jsonb	   *json = JsonFromText(text);
	JsonbValue *value = palloc(sizeof(JsonbValue));

	if (JB_ROOT_IS_SCALAR(json))
		JsonbExtractScalar(&json->root, value);
	else
		JsonbToJsonbValue(json, value);
	return value;
}

/* ---------- mutation ---------- */

static const char *const Scraps[] = {
	"${", "}", "$", "$${", "${inputs.a}", "${steps.a.", "${}", "inputs.x", "__internal__", ".", "..", "(", ")", "((((",
	"[", "]", ",", "and", " or ", "not ", " in ", "==", "===", "!", "=", "<", ">=", "&&", "||", "'", "\"", "\\", "\\u",
	"\\u0000", "\\ud800", "\\u00e9", "1", "-", "0", "01", "1e999999999", "1e-99999", ".5", "1.", "e", "null", "true", "NULL",
	"é", "😀", "日", "\t", "\n", " ", "*", "@", "$.", "$.a", "?", "/*", "--", ";", "confidence", "result.", "foo", "f(",
};

/* Remove, insert, repeat or replace characters; the text stays valid in its encoding. */
char *
Mutate(const char *text)
{
	int			length = strlen(text);
	int			at = pg_mbcliplen(text, length, length ? Draw(length + 1) : 0);
	int			end = at + pg_mbcliplen(text + at, length - at, Draw(8));
	StringInfoData result;

	initStringInfo(&result);
	appendBinaryStringInfo(&result, text, at);
	switch (Draw(5))
	{
		case 0:					/* remove */
			break;
		case 1:					/* repeat */
			appendBinaryStringInfo(&result, text + at, end - at);
			appendBinaryStringInfo(&result, text + at, end - at);
			break;
		case 2:					/* insert */
			appendStringInfoString(&result, DRAW(Scraps));
			appendBinaryStringInfo(&result, text + at, end - at);
			break;
		case 3:					/* replace */
			appendStringInfoString(&result, DRAW(Scraps));
			break;
		default:				/* cut off */
			return result.data;
	}
	appendStringInfoString(&result, text + end);
	return result.data;
}

/* ---------- running cases ---------- */

static void
RunContext(void *arg)
{
	Run		   *run = arg;

	errcontext("%s case %d of seed " UINT64_FORMAT ": %s", run->name, run->number, run->seed,
			   run->text ? run->text : "(not made yet)");
}

/* Run all cases, each in a new context; memory that remains is a leak. */
Datum
RunCases(FunctionCallInfo fcinfo, const char *name, void (*one) (Run *run))
{
	Run			run = {0};
	int			cases = PG_GETARG_INT32(0);
	Size		before = 0;
	Size		after;
	ErrorContextCallback callback = {error_context_stack, RunContext, &run};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "fuzz case", ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(context);

	run.name = name;
	run.seed = PG_GETARG_INT64(1);
	error_context_stack = &callback;
	for (run.number = 0; run.number < cases; run.number++)
	{
		CHECK_FOR_INTERRUPTS();
		StartCase(run.seed, run.number);
		run.text = NULL;
		one(&run);
		run.text = NULL;
		MemoryContextReset(context);
		if (run.number == cases / 10)
			before = MemoryContextMemAllocated(TopMemoryContext, true);
	}
	after = MemoryContextMemAllocated(TopMemoryContext, true);
	error_context_stack = callback.previous;
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(context);
	if (before > 0 && after > before + LEAK_TOLERANCE)
		FAIL("%s: memory grew by %zu bytes over %d cases", name, after - before, cases);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%s: %d cases, %d accepted, %d true, %d false, %d undecided",
											  name, cases, run.accepted, run.results[CONDITION_TRUE],
											  run.results[CONDITION_FALSE], run.results[CONDITION_UNDECIDED])));
}

/* Check that a fault has a message in a valid encoding, and a column inside the text. */
void
CheckFault(const char *text, const ParseFault *fault)
{
	if (fault->next)
		CheckFault(text, fault->next);
	if (fault->message == NULL || fault->message[0] == '\0')
		FAIL("refused without a fault");
	if (fault->column < 1 || fault->column > pg_mbstrlen(text) + 1)
		FAIL("column %d is outside the text: %s", fault->column, fault->message);
	pg_verifymbstr(fault->message, strlen(fault->message), false);
	if (fault->hint)
		pg_verifymbstr(fault->hint, strlen(fault->hint), false);
}
