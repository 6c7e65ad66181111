/*
 * stepwise_fuzz.c
 *	  fuzz target and test bench of the parser parts
 *
 * A module of its own, linked with the objects of src/ that it tests; see
 * test/fuzz/run. A case is made from its number and the seed alone, so a
 * failure repeats with the numbers that its CONTEXT shows. Each case runs in
 * its own memory context. An error that is raised, of whatever kind, ends the
 * run: the parser parts answer with faults. What a case must show:
 *
 * condition	an expression is made at random, as a tree; its text must
 *				compile, and over random values give what a second evaluator,
 *				written here on the tree and without jsonpath, says.
 * mutation		the text of such an expression, damaged at random: compiles or
 *				has a fault within the text; what compiles can be evaluated,
 *				survives a dump, and its operands can be parsed again.
 * jsonpath		conditions "as written", of random parts: the same.
 * reference	a text made of known parts splits into these parts; damaged,
 *				it splits into something that means itself, or has a fault.
 */
#include "stepwise.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(fuzz_condition);
PG_FUNCTION_INFO_V1(fuzz_mutation);
PG_FUNCTION_INFO_V1(fuzz_jsonpath);
PG_FUNCTION_INFO_V1(fuzz_reference);
PG_FUNCTION_INFO_V1(try_condition);
PG_FUNCTION_INFO_V1(try_reference);

/* the settings that the linked objects read; stepwise.c defines them otherwise */
int			MaxResultBytes = 1024 * 1024;
int			MaxJsonDepth = 64;
int			MaxSteps = 10000;
int			MaxNesting = 50;
bool		AllowRecursion = false;
bool		NotifyChanges = false;
bool		LogToolCalls = true;

#define LEAK_TOLERANCE	(256 * 1024)	/* caches of the backend may still warm up */

/* ---------- chance ---------- */

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
static int
Draw(int count)
{
	return NextRandom() % count;
}

#define DRAW(array) ((array)[Draw(lengthof(array))])

/* ---------- values, and what one knows about them without jsonb ---------- */

typedef enum Kind
{
	KIND_NULL,
	KIND_BOOLEAN,
	KIND_NUMBER,
	KIND_STRING,
	KIND_ARRAY,
	KIND_OBJECT
} Kind;

typedef struct Val
{
	Kind		kind;
	int			rank;			/* boolean: 0 or 1; number and string: place in the order */
	const char *text;			/* as JSON */
	int			count;
	struct Val *elements[4];	/* of an array, or the values of an object */
	int			keys;			/* of an object: which ones, as bits of KeyNames */
} Val;

typedef struct Sample
{
	int			rank;
	const char *text;
} Sample;

/* several ways to write one number; far ones that a double could not tell apart */
static const Sample Numbers[] = {
	{0, "-1e400"}, {1, "-2"}, {2, "-1.5"}, {3, "0"}, {3, "-0"}, {3, "0.00"}, {3, "0e5"},
	{4, "1e-300"}, {5, "1"}, {5, "1.0"}, {5, "10e-1"}, {5, "0.1E1"}, {6, "2"}, {6, "0.2e+1"},
	{7, "10"}, {8, "9007199254740992"}, {9, "9007199254740993"}, {9, "9007199254740993.000"},
	{10, "123456789012345678901234567890.1"}, {11, "123456789012345678901234567890.2"}, {12, "1e400"}
};

/* by code point */
static const Sample Strings[] = {
	{0, "\"\""}, {1, "\"\\t\""}, {2, "\"\\n\""}, {3, "\" \""}, {4, "\"\\\"\""}, {5, "\"${x}\""}, {6, "\"'\""},
	{7, "\"1\""}, {8, "\"10\""}, {9, "\"2\""}, {10, "\"A\""}, {11, "\"\\\\\""}, {12, "\"a\""}, {12, "\"\\u0061\""},
	{13, "\"ab\""}, {14, "\"b\""}, {15, "\"true\""}, {16, "\"é\""}, {16, "\"\\u00e9\""}, {17, "\"日本\""},
	{18, "\"\\ufffd\""}, {19, "\"😀\""}, {19, "\"\\ud83d\\ude00\""}
};

static const char *const KeyNames[] = {"a", "b", "ключ", "0"};

static Val *
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

static Val *
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

static bool
ValEqual(const Val *a, const Val *b)
{
	if (a->kind != b->kind || a->rank != b->rank || a->count != b->count || a->keys != b->keys)
		return false;
	for (int i = 0; i < a->count; i++)
		if (!ValEqual(a->elements[i], b->elements[i]))
			return false;
	return true;
}

/* ---------- expressions as trees ---------- */

#define REFERENCES 7

/* as one writes them, and as the compiler names them */
static const char *const Written[2][REFERENCES] = {
	{"${inputs.a}", "${ inputs.a.ключ.0 }", "${steps.x-1.outputs.b}", "${blocks.x.steps.y.succeeded}",
	"${bindings.b.c}", "${plan.name}", "${inputs}"},
	{"confidence", "result.a.ключ-1.0", "foo.bar", "${steps.x.outputs.b}", "inputs.a", "outcome", "bindings.x"}
};
static const char *const Named[2][REFERENCES] = {
	{"inputs.a", "inputs.a.ключ.0", "steps.x-1.outputs.b", "blocks.x.steps.y.succeeded",
	"bindings.b.c", "plan.name", "inputs"},
	{"confidence", "result.a.ключ-1.0", "result.foo.bar", "steps.x.outputs.b", "inputs.a", "outcome", "result.bindings.x"}
};

typedef struct Operand
{
	int			reference;		/* -1: a literal */
	Val		   *literal;		/* a scalar, or an array of literals */
} Operand;

typedef enum TreeKind
{
	TREE_OR,
	TREE_AND,
	TREE_NOT,
	TREE_ALONE,
	TREE_COMPARE,
	TREE_IN,
	TREE_NOT_IN
} TreeKind;

typedef struct Tree
{
	TreeKind	kind;
	int			count;
	struct Tree *children[4];
	int			op;
	Operand		left;
	Operand		right;
	Operand		list[4];		/* TREE_IN with a list that is written out */
	int			nlist;			/* -1: the list is what right refers to */
} Tree;

static const char *const Operators[] = {"==", "!=", "===", "!==", "<", "<=", ">", ">="};
#define ORDERINGS 4				/* the first of those that order */

static Operand
RandomReference(void)
{
	Operand		operand = {Draw(REFERENCES), NULL};

	return operand;
}

static Operand
RandomLiteral(bool list)
{
	Operand		operand = {-1, NULL};

	do
		operand.literal = list ? RandomVal(2) : RandomScalar();
	while (strchr(operand.literal->text, '{') && strstr(operand.literal->text, "${") == NULL);
	return operand;
}

static bool
IsOrdered(const Operand *operand)
{
	return operand->reference >= 0 || operand->literal->kind == KIND_NUMBER || operand->literal->kind == KIND_STRING;
}

/* Is it a value that contains an object, which has no literal? */
static bool
HasObject(const Val *val)
{
	if (val->kind == KIND_OBJECT)
		return true;
	for (int i = 0; i < val->count; i++)
		if (HasObject(val->elements[i]))
			return true;
	return false;
}

static Operand
RandomListLiteral(void)
{
	Operand		operand;

	do
		operand = RandomLiteral(true);
	while (HasObject(operand.literal) || (operand.literal->kind != KIND_ARRAY && Draw(4)));
	return operand;
}

static void
RandomComparison(Tree *node)
{
	node->op = Draw(lengthof(Operators));
	do
	{
		node->left = Draw(4) ? RandomReference() : RandomLiteral(false);
		node->right = Draw(2) ? RandomReference() : RandomLiteral(false);
		if (node->op < ORDERINGS && node->left.reference >= 0 && Draw(4) == 0)
			node->right = RandomListLiteral();
		if (Draw(8) == 0)
		{
			Operand		swap = node->left;

			node->left = node->right;
			node->right = swap;
		}
	} while (node->op >= ORDERINGS && (!IsOrdered(&node->left) || !IsOrdered(&node->right)));
}

static void
RandomIn(Tree *node)
{
	node->left = Draw(4) ? RandomReference() : RandomLiteral(false);
	node->nlist = -1;
	if (Draw(2))
	{
		node->right = RandomReference();
		if (Draw(8) == 0)
			node->left = RandomListLiteral();
		return;
	}
	node->nlist = Draw(4);
	for (int i = 0; i < node->nlist; i++)
	{
		if (node->left.reference >= 0 && Draw(4) == 0)
			node->list[i] = RandomListLiteral();
		else
			node->list[i] = Draw(4) ? RandomLiteral(false) : RandomReference();
	}
}

static Tree *
RandomTree(int depth)
{
	Tree	   *node = palloc0(sizeof(Tree));

	node->kind = depth == 0 ? TREE_ALONE + Draw(4) : Draw(TREE_NOT_IN + 1);
	switch (node->kind)
	{
		case TREE_OR:
		case TREE_AND:
			node->count = 2 + Draw(3);
			break;
		case TREE_NOT:
			node->count = 1;
			break;
		case TREE_ALONE:
			node->left = RandomReference();
			while (Draw(4) == 0 && node->left.reference >= 0)
			{
				Operand		literal = RandomLiteral(false);

				if (literal.literal->kind == KIND_BOOLEAN)
					node->left = literal;
			}
			break;
		case TREE_COMPARE:
			RandomComparison(node);
			break;
		default:
			RandomIn(node);
	}
	for (int i = 0; i < node->count; i++)
		node->children[i] = RandomTree(depth - 1);
	return node;
}

/* ---------- trees as text ---------- */

static void
WriteBlank(StringInfo text, bool needed)
{
	static const char *const blanks[] = {" ", "  ", "\t", "\n", " \r\n "};

	if (needed || Draw(3) == 0)
		appendStringInfoString(text, Draw(4) ? " " : DRAW(blanks));
}

/* Write a JSON string as a literal, in either kind of quotes. */
static void
WriteString(StringInfo text, const char *json)
{
	bool		single = Draw(2);

	appendStringInfoChar(text, single ? '\'' : '"');
	for (const char *c = json + 1; c[1]; c++)
	{
		if (strncmp(c, "${", 2) == 0)
			appendStringInfoString(text, "$");
		if (*c == '\'' && single)
			appendStringInfoString(text, "\\'");
		else if (c[0] == '\\' && c[1] == '"' && single && Draw(2))
			appendStringInfoChar(text, *++c);
		else if (*c == '\\')
		{
			appendStringInfoChar(text, *c++);
			appendStringInfoChar(text, *c);
		}
		else
			appendStringInfoChar(text, *c);
	}
	appendStringInfoChar(text, single ? '\'' : '"');
}

static void
WriteLiteral(StringInfo text, const Val *val)
{
	if (val->kind == KIND_STRING)
		WriteString(text, val->text);
	else if (val->kind != KIND_ARRAY)
		appendStringInfoString(text, val->text);
	else
	{
		appendStringInfoChar(text, '[');
		for (int i = 0; i < val->count; i++)
		{
			WriteBlank(text, false);
			appendStringInfoString(text, i == 0 ? "" : ",");
			WriteLiteral(text, val->elements[i]);
		}
		appendStringInfoChar(text, ']');
	}
}

static void
WriteOperand(StringInfo text, const Operand *operand, bool branching)
{
	if (operand->reference < 0)
		WriteLiteral(text, operand->literal);
	else if (branching && Draw(2) && Written[1][operand->reference][0] != '$')
		appendStringInfo(text, "${%s}", Named[1][operand->reference]);
	else
		appendStringInfoString(text, Written[branching][operand->reference]);
}

/* Write an operand of a comparison, which may stand in parentheses. */
static void
WriteCompared(StringInfo text, const Operand *operand, bool branching)
{
	bool		enclosed = Draw(12) == 0;

	appendStringInfoString(text, enclosed ? "(" : "");
	WriteOperand(text, operand, branching);
	appendStringInfoString(text, enclosed ? ")" : "");
}

static void WriteTree(StringInfo text, const Tree *node, bool branching, TreeKind parent);

static void
WriteBare(StringInfo text, const Tree *node, bool branching)
{
	switch (node->kind)
	{
		case TREE_OR:
		case TREE_AND:
			for (int i = 0; i < node->count; i++)
			{
				if (i > 0)
					appendStringInfoString(text, node->kind == TREE_OR ? " or " : " and ");
				WriteTree(text, node->children[i], branching, node->kind);
			}
			break;
		case TREE_NOT:
			appendStringInfoString(text, "not ");
			WriteTree(text, node->children[0], branching, TREE_NOT);
			break;
		case TREE_ALONE:
			WriteOperand(text, &node->left, branching);
			break;
		case TREE_COMPARE:
			WriteCompared(text, &node->left, branching);
			WriteBlank(text, false);
			appendStringInfoString(text, Operators[node->op]);
			WriteBlank(text, false);
			WriteCompared(text, &node->right, branching);
			break;
		case TREE_IN:
		case TREE_NOT_IN:
			WriteCompared(text, &node->left, branching);
			WriteBlank(text, true);
			if (node->kind == TREE_NOT_IN)
			{
				appendStringInfoString(text, "not");
				WriteBlank(text, true);
			}
			appendStringInfoString(text, "in");
			WriteBlank(text, true);
			if (node->nlist < 0)
			{
				WriteOperand(text, &node->right, branching);
				break;
			}
			appendStringInfoChar(text, '[');
			for (int i = 0; i < node->nlist; i++)
			{
				appendStringInfoString(text, i == 0 ? "" : ",");
				WriteBlank(text, false);
				WriteOperand(text, &node->list[i], branching);
			}
			WriteBlank(text, false);
			appendStringInfoChar(text, ']');
	}
}

/* Write a node with parentheses where its parent binds tighter, and sometimes elsewhere. */
static void
WriteTree(StringInfo text, const Tree *node, bool branching, TreeKind parent)
{
	bool		needed = node->kind < parent && node->kind < TREE_NOT;

	if (!needed && Draw(6) > 0)
	{
		WriteBare(text, node, branching);
		return;
	}
	appendStringInfoChar(text, '(');
	WriteBlank(text, false);
	WriteBare(text, node, branching);
	WriteBlank(text, false);
	appendStringInfoChar(text, ')');
}

/* ---------- the second evaluator ---------- */

typedef enum Truth
{
	TRUTH_FALSE,
	TRUTH_TRUE,
	TRUTH_UNKNOWN
} Truth;

static const char *const TruthName[] = {"false", "true", "undecided"};

static Truth
Not(Truth truth)
{
	return truth == TRUTH_UNKNOWN ? truth : truth == TRUTH_TRUE ? TRUTH_FALSE : TRUTH_TRUE;
}

/* NULL: missing */
static const Val *
Resolve(const Operand *operand, Val *const *values)
{
	return operand->reference < 0 ? operand->literal : values[operand->reference];
}

static Truth
SameTruth(const Val *a, const Val *b)
{
	if (a == NULL || b == NULL)
		return TRUTH_UNKNOWN;
	return ValEqual(a, b) ? TRUTH_TRUE : TRUTH_FALSE;
}

static Truth
EqualTruth(const Val *a, const Val *b)
{
	if (a && b && a->kind != b->kind && a->kind != KIND_NULL && b->kind != KIND_NULL)
		return TRUTH_UNKNOWN;
	return SameTruth(a, b);
}

static Truth
OrderTruth(const Val *a, const Val *b, const char *op)
{
	bool		holds;

	if (!a || !b || a->kind != b->kind || (a->kind != KIND_NUMBER && a->kind != KIND_STRING))
		return TRUTH_UNKNOWN;
	if (a->rank == b->rank)
		holds = op[1] == '=';
	else
		holds = (a->rank < b->rank) == (op[0] == '<');
	return holds ? TRUTH_TRUE : TRUTH_FALSE;
}

static Truth
CompareTruth(const Val *a, const Val *b, int op)
{
	Truth		truth;

	if (op >= ORDERINGS)
		return OrderTruth(a, b, Operators[op]);
	truth = op < 2 ? EqualTruth(a, b) : SameTruth(a, b);
	return op % 2 ? Not(truth) : truth;
}

static Truth
InTruth(const Tree *node, Val *const *values)
{
	const Val  *left = Resolve(&node->left, values);
	const Val  *list;
	Truth		truth = left ? TRUTH_FALSE : TRUTH_UNKNOWN;

	if (node->nlist < 0)
	{
		list = Resolve(&node->right, values);
		if (left == NULL || list == NULL || list->kind != KIND_ARRAY)
			return TRUTH_UNKNOWN;
		for (int i = 0; i < list->count; i++)
			if (ValEqual(left, list->elements[i]))
				return TRUTH_TRUE;
		return TRUTH_FALSE;
	}
	for (int i = 0; i < node->nlist; i++)
	{
		Truth		one = SameTruth(left, Resolve(&node->list[i], values));

		if (one == TRUTH_TRUE)
			return TRUTH_TRUE;
		if (one == TRUTH_UNKNOWN)
			truth = TRUTH_UNKNOWN;
	}
	return truth;
}

static Truth
TreeTruth(const Tree *node, Val *const *values)
{
	static const Val yes = {KIND_BOOLEAN, 1, "true", 0, {NULL}, 0};
	Truth		decisive = node->kind == TREE_OR ? TRUTH_TRUE : TRUTH_FALSE;
	Truth		truth = Not(decisive);

	switch (node->kind)
	{
		case TREE_NOT:
			return Not(TreeTruth(node->children[0], values));
		case TREE_ALONE:
			return EqualTruth(Resolve(&node->left, values), &yes);
		case TREE_COMPARE:
			return CompareTruth(Resolve(&node->left, values), Resolve(&node->right, values), node->op);
		case TREE_IN:
			return InTruth(node, values);
		case TREE_NOT_IN:
			return Not(InTruth(node, values));
		default:
			break;
	}
	for (int i = 0; i < node->count; i++)
	{
		Truth		one = TreeTruth(node->children[i], values);

		if (one == decisive)
			return one;
		if (one == TRUTH_UNKNOWN)
			truth = TRUTH_UNKNOWN;
	}
	return truth;
}

/* ---------- running cases ---------- */

typedef struct Run
{
	const char *name;
	uint64		seed;
	int			number;
	const char *text;			/* of the case, as far as it is known */
	int			accepted;
	int			results[3];
} Run;

static void
RunContext(void *arg)
{
	Run		   *run = arg;

	errcontext("%s case %d of seed " UINT64_FORMAT ": %s", run->name, run->number, run->seed,
			   run->text ? run->text : "(not made yet)");
}

#define FAIL(...) ereport(ERROR, (errcode(ERRCODE_ASSERT_FAILURE), errmsg(__VA_ARGS__)))

/* Run all cases, each in a fresh context; what they leave behind is a leak. */
static Datum
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
		chance = run.seed * UINT64CONST(1000003) + run.number;
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

static Jsonb *
JsonFromText(const char *text)
{
	return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(text)));
}

/* Get the value of a whole jsonb. */
static JsonbValue *
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

static char **
OperandNames(const Condition *condition)
{
	char	  **names = palloc(sizeof(char *) * Max(condition->noperands, 1));

	for (int i = 0; i < condition->noperands; i++)
		names[i] = condition->operands[i]->source;
	return names;
}

static void
CheckFault(const char *text, const ParseFault *fault)
{
	if (fault->message == NULL || fault->message[0] == '\0')
		FAIL("refused without a fault");
	if (fault->column < 1 || fault->column > pg_mbstrlen(text) + 1)
		FAIL("column %d is outside the text: %s", fault->column, fault->message);
	pg_verifymbstr(fault->message, strlen(fault->message), false);
	if (fault->hint)
		pg_verifymbstr(fault->hint, strlen(fault->hint), false);
}

static ConditionResult
Evaluate(Run *run, const Condition *condition, const Jsonb *document)
{
	char	   *why;
	ConditionResult result = ConditionEvaluate(condition->path, document, condition->noperands,
											   OperandNames(condition), &why);

	if ((result == CONDITION_UNDECIDED) != (why != NULL))
		FAIL("%s, but the reason is %s", TruthName[result], why ? why : "missing");
	run->results[result]++;
	return result;
}

/* ---------- condition ---------- */

static int
ReferenceNumber(const char *source, bool branching)
{
	for (int i = 0; i < REFERENCES; i++)
		if (strcmp(source, Named[branching][i]) == 0)
			return i;
	FAIL("unknown operand \"%s\"", source);
	return -1;
}

static void
CheckAgainstTree(Run *run, const Condition *condition, const Tree *tree, bool branching)
{
	Val		   *values[REFERENCES] = {0};
	JsonbValue *operands[REFERENCES] = {0};
	StringInfoData shown;
	Truth		expected;
	ConditionResult result;

	initStringInfo(&shown);
	for (int i = 0; i < REFERENCES; i++)
	{
		if (Draw(8) == 0)
			continue;
		/* often one of the others', so that equal ones occur */
		values[i] = i > 0 && Draw(3) == 0 ? values[Draw(i)] : RandomVal(3);
		if (values[i] && Draw(4) == 0 && i > 0 && values[i - 1] && values[i]->kind != KIND_ARRAY)
		{
			Val		   *list = palloc0(sizeof(Val));

			list->kind = KIND_ARRAY;
			list->count = 2;
			list->elements[0] = RandomScalar();
			list->elements[1] = values[i - 1];
			list->text = ContainerText(list);
			values[i] = list;
		}
		if (values[i])
			appendStringInfo(&shown, " %s = %s", Named[branching][i], values[i]->text);
	}
	for (int i = 0; i < condition->noperands; i++)
	{
		Val		   *value = values[ReferenceNumber(condition->operands[i]->source, branching)];

		operands[i] = value ? ValueFromText(value->text) : NULL;
	}
	expected = TreeTruth(tree, values);
	result = Evaluate(run, condition, ConditionDocument(condition->noperands, operands));
	if ((int) result != (int) expected)
		FAIL("%s where %s is right; values are%s", TruthName[result], TruthName[expected], shown.data);
}

static void
ConditionCase(Run *run)
{
	bool		branching = Draw(2);
	Tree	   *tree = RandomTree(Draw(4));
	StringInfoData text;
	Condition  *condition;
	ParseFault	fault;

	initStringInfo(&text);
	WriteTree(&text, tree, branching, TREE_OR);
	run->text = text.data;
	condition = ConditionCompile(text.data, branching, &fault);
	if (condition == NULL && pg_mbstrlen(text.data) > 4000)
		return;
	if (condition == NULL)
		FAIL("refused at column %d: %s", fault.column, fault.message);
	run->accepted++;
	for (int i = 0; i < 4; i++)
		CheckAgainstTree(run, condition, tree, branching);
}

Datum
fuzz_condition(PG_FUNCTION_ARGS)
{
	return RunCases(fcinfo, "condition", ConditionCase);
}

/* ---------- mutation ---------- */

static const char *const Scraps[] = {
	"${", "}", "$", "$${", "${inputs.a}", "${steps.a.", "${}", "inputs.x", "__internal__", ".", "..", "(", ")", "((((",
	"[", "]", ",", "and", " or ", "not ", " in ", "==", "===", "!", "=", "<", ">=", "&&", "||", "'", "\"", "\\", "\\u",
	"\\u0000", "\\ud800", "\\u00e9", "1", "-", "0", "01", "1e999999999", "1e-99999", ".5", "1.", "e", "null", "true", "NULL",
	"é", "😀", "日", "\t", "\n", " ", "*", "@", "$.", "$.a", "?", "/*", "--", ";", "confidence", "result.", "foo", "f(",
};

/* Put characters out, in, twice or elsewhere; the text stays valid in its encoding. */
static char *
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
		case 0:					/* take out */
			break;
		case 1:					/* twice */
			appendBinaryStringInfo(&result, text + at, end - at);
			appendBinaryStringInfo(&result, text + at, end - at);
			break;
		case 2:					/* put in */
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

static bool
SameReference(const Reference *a, const Reference *b)
{
	if (a->root != b->root || a->nsteps != b->nsteps || a->field != b->field || a->npath != b->npath)
		return false;
	for (int i = 0; i < a->nsteps; i++)
		if (strcmp(a->steps[i], b->steps[i]) != 0)
			return false;
	for (int i = 0; i < a->npath; i++)
		if (strcmp(a->path[i], b->path[i]) != 0)
			return false;
	return true;
}

/* What is stored, a path and the names of operands, must come back as it was. */
static void
CheckStorable(const Condition *condition, bool branching)
{
	char	   *shown = DatumGetCString(DirectFunctionCall1(jsonpath_out, condition->path));
	Datum		again = DirectFunctionCall1(jsonpath_in, CStringGetDatum(shown));
	ParseFault	fault;

	if (strcmp(shown, DatumGetCString(DirectFunctionCall1(jsonpath_out, again))) != 0)
		FAIL("path does not survive a dump: %s", shown);
	if (strncmp(shown, "strict ", 7) != 0)
		FAIL("path is not strict: %s", shown);
	for (int i = 0; i < condition->noperands; i++)
	{
		Reference  *reference = ReferenceParse(condition->operands[i]->source, 1, branching, &fault);

		if (reference == NULL || !SameReference(reference, condition->operands[i]))
			FAIL("operand \"%s\" does not survive storage", condition->operands[i]->source);
	}
}

static Jsonb *
RandomDocument(const Condition *condition)
{
	JsonbValue **values = palloc0(sizeof(JsonbValue *) * Max(condition->noperands, 1));

	if (condition->raw)
		return JsonFromText(psprintf("{\"inputs\": {\"a\": %s, \"b\": %s}, \"result\": %s, \"a\": %s}",
									 RandomVal(3)->text, RandomVal(3)->text, RandomVal(3)->text, RandomVal(1)->text));
	for (int i = 0; i < condition->noperands; i++)
		if (Draw(8))
			values[i] = ValueFromText(RandomVal(3)->text);
	return ConditionDocument(condition->noperands, values);
}

/* Compile a text of which nothing is known, and look whether it may be so. */
static void
TryCompile(Run *run, char *text, bool branching)
{
	ParseFault	fault;
	Condition  *condition;

	run->text = text;
	condition = ConditionCompile(text, branching, &fault);
	if (condition == NULL)
	{
		CheckFault(text, &fault);
		return;
	}
	if (fault.message)
		FAIL("accepted with the fault: %s", fault.message);
	run->accepted++;
	CheckStorable(condition, branching);
	for (int i = 0; i < 2; i++)
		Evaluate(run, condition, RandomDocument(condition));
}

static void
MutationCase(Run *run)
{
	bool		branching = Draw(2);
	StringInfoData text;
	char	   *mutant;

	initStringInfo(&text);
	WriteTree(&text, RandomTree(Draw(3)), branching, TREE_OR);
	mutant = text.data;
	for (int i = Draw(4); i >= 0; i--)
		mutant = Mutate(mutant);
	/* now and then something very long or deep */
	for (int i = Draw(500) ? 0 : 12; i > 0; i--)
		mutant = Draw(2) ? psprintf("%s %s", mutant, mutant) : psprintf("%s%s", DRAW(Scraps), mutant);
	TryCompile(run, mutant, branching ^ (Draw(8) == 0));
}

Datum
fuzz_mutation(PG_FUNCTION_ARGS)
{
	return RunCases(fcinfo, "mutation", MutationCase);
}

/* ---------- jsonpath as written ---------- */

static void
JsonpathCase(Run *run)
{
	static const char *const parts[] = {
		"$.", "$", "@", "a", ".a", ".inputs", ".\"b\"", "[*]", "[0]", "[last]", "[0 to 2]", ".*", ".**", ".**{2}", ".type()",
		".size()", ".double()", ".keyvalue()", ".datetime()", ".abs()", "== ", " != ", " < ", " && ", " || ", "!(", "(", ")",
		" ? (", "exists(", "is unknown", "starts with ", "like_regex \"a\"", "like_regex \"(\"", "1", "\"x\"", "null", "true",
		"1e99999999", "+", "-", "*", "/ 0", "%", "$x", "$\"y\"", "last", "lax ", "strict ", "/*", "*/", "\\", "\"", "9999999999999",
		".**{99999999999}", "[1e10]", ".datetime(\"HH24\")", ".ceiling()"
	};
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfoString(&text, Draw(2) ? "$.inputs" : "$.a");
	for (int i = Draw(8); i > 0; i--)
		appendStringInfoString(&text, DRAW(parts));
	if (Draw(300) == 0)
		for (int i = Draw(3000); i > 0; i--)
			appendStringInfoString(&text, parts[i % 2 ? 4 : Draw(8)]);
	TryCompile(run, text.data, Draw(2));
}

Datum
fuzz_jsonpath(PG_FUNCTION_ARGS)
{
	return RunCases(fcinfo, "jsonpath", JsonpathCase);
}

/* ---------- reference ---------- */

/* Write parts as the text that they come from. */
static char *
PartsToText(List *parts)
{
	StringInfoData text;
	ListCell   *cell;

	initStringInfo(&text);
	foreach(cell, parts)
	{
		TextPart   *part = lfirst(cell);

		if (part->reference)
		{
			appendStringInfo(&text, "${%s}", part->reference->source);
			continue;
		}
		for (const char *c = part->literal; *c; c++)
		{
			if (strncmp(c, "${", 2) == 0)
				appendStringInfoChar(&text, '$');
			appendStringInfoChar(&text, *c);
		}
	}
	return text.data;
}

static void
CheckParts(List *parts, List *expected)
{
	if (list_length(parts) != list_length(expected))
		FAIL("%d parts instead of %d", list_length(parts), list_length(expected));
	for (int i = 0; i < list_length(parts); i++)
	{
		TextPart   *one = list_nth(parts, i);
		TextPart   *other = list_nth(expected, i);

		if ((one->literal == NULL) == (one->reference == NULL))
			FAIL("part %d is both a literal and a reference, or neither", i);
		if (one->literal ? !other->literal || strcmp(one->literal, other->literal) != 0
			: !other->reference || strcmp(one->reference->source, other->reference->source) != 0)
			FAIL("part %d is another one", i);
	}
}

static void
AppendPart(List **parts, char *literal, char *source)
{
	TextPart   *part = palloc0(sizeof(TextPart));

	if (literal)
		part->literal = literal;
	else
	{
		part->reference = palloc0(sizeof(Reference));
		part->reference->source = source;
	}
	*parts = lappend(*parts, part);
}

static List *
RandomParts(void)
{
	static const char *const literals[] = {
		"a", "${", "${inputs.a}", "}", "{", "é", "日本 😀", " $ ", "$$ ", "${ ", "\n", "}}", "$\t", "a.b", "{${", "$${x"
	};
	static const char *const sources[] = {
		"inputs", "inputs.a", "inputs.a.b.0", "inputs.ключ.日本", "inputs.a b", "inputs.a-b.$.{", "steps.a.outputs",
		"steps.a.outputs.x.y", "blocks.a-1.inputs.steps", "steps.steps.steps.outputs.outputs.steps", "steps.a.metadata.b",
		"steps.a.succeeded", "blocks.a.blocks.b.failed", "steps._.status", "steps.A.outcome", "steps.a.skipped", "bindings.x",
		"bindings.x.0", "plan.id", "plan.name", "plan.goal"
	};
	List	   *parts = NIL;

	for (int i = Draw(6); i > 0; i--)
	{
		/* two literals in a row would come back as one */
		if (Draw(2) && (parts == NIL || ((TextPart *) llast(parts))->reference))
			AppendPart(&parts, pstrdup(DRAW(literals)), NULL);
		else
			AppendPart(&parts, NULL, pstrdup(DRAW(sources)));
	}
	return parts;
}

static void
ReferenceCase(Run *run)
{
	List	   *made = RandomParts();
	char	   *text = PartsToText(made);
	List	   *parts;
	ParseFault	fault;

	run->text = text;
	parts = ReferenceScan(text, &fault);
	if (fault.message)
		FAIL("refused at column %d: %s", fault.column, fault.message);
	CheckParts(parts, made);
	for (int i = Draw(4); i >= 0; i--)
		run->text = text = Mutate(text);
	parts = ReferenceScan(text, &fault);
	if (fault.message)
	{
		CheckFault(text, &fault);
		return;
	}
	run->accepted++;
	/* "$" before a reference cannot be written; but what was written must mean itself */
	text = PartsToText(parts);
	if (strstr(text, "$$${") == NULL)
		CheckParts(ReferenceScan(text, &fault), parts);
}

Datum
fuzz_reference(PG_FUNCTION_ARGS)
{
	return RunCases(fcinfo, "reference", ReferenceCase);
}

/* ---------- single trials, for tests that are written by hand ---------- */

static Datum
FaultText(const ParseFault *fault)
{
	return PointerGetDatum(cstring_to_text(psprintf("%d: %s%s%s", fault->column, fault->message,
													fault->hint ? " | " : "", fault->hint ? fault->hint : "")));
}

/*
 * try_condition(source text, "values" jsonb, branching boolean): values is
 * {"inputs.a": 1, …}, or the document of a condition that is jsonpath. The
 * answer is true, false, "undecided: why" or "column: fault | hint".
 */
Datum
try_condition(PG_FUNCTION_ARGS)
{
	char	   *source = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Jsonb	   *given = PG_GETARG_JSONB_P(1);
	ParseFault	fault;
	Condition  *condition = ConditionCompile(source, PG_GETARG_BOOL(2), &fault);
	JsonbValue **values;
	char	   *why;
	ConditionResult result;

	if (condition == NULL)
		return FaultText(&fault);
	values = palloc0(sizeof(JsonbValue *) * Max(condition->noperands, 1));
	for (int i = 0; i < condition->noperands; i++)
	{
		values[i] = palloc(sizeof(JsonbValue));
		if (!JsonGet(given, condition->operands[i]->source, values[i]))
			values[i] = NULL;
	}
	result = ConditionEvaluate(condition->path, condition->raw ? given : ConditionDocument(condition->noperands, values),
							   condition->noperands, OperandNames(condition), &why);
	PG_RETURN_TEXT_P(cstring_to_text(why ? psprintf("undecided: %s", why) : TruthName[result]));
}

static char *
ReferenceText(const Reference *reference)
{
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfo(&text, "<%d", reference->root);
	for (int i = 0; i < reference->nsteps; i++)
		appendStringInfo(&text, " step %s", reference->steps[i]);
	if (reference->root == REF_STEPS)
		appendStringInfo(&text, " field %d", reference->field);
	for (int i = 0; i < reference->npath; i++)
		appendStringInfo(&text, " /%s", reference->path[i]);
	appendStringInfo(&text, " @%d>", reference->column);
	return text.data;
}

/* try_reference(text): literals in brackets, references taken apart; or "column: fault | hint" */
Datum
try_reference(PG_FUNCTION_ARGS)
{
	ParseFault	fault;
	List	   *parts = ReferenceScan(text_to_cstring(PG_GETARG_TEXT_PP(0)), &fault);
	StringInfoData text;
	ListCell   *cell;

	if (fault.message)
		return FaultText(&fault);
	initStringInfo(&text);
	foreach(cell, parts)
	{
		TextPart   *part = lfirst(cell);

		appendStringInfoString(&text, part->literal ? psprintf("[%s]", part->literal) : ReferenceText(part->reference));
	}
	PG_RETURN_TEXT_P(cstring_to_text(text.data));
}
