/*
 * fuzz_condition.c
 *	  conditions: random expressions compared with a second evaluator, and mutated ones
 *
 * condition	A random expression is made as a tree. Its text must compile,
 *				and for random values give the same result as a second
 *				evaluator, which works on the tree and without jsonpath.
 * mutation		The text of such an expression is changed at random. It must
 *				compile, or have a fault within the text. A compiled one can
 *				be evaluated and dumped, and its operands can be parsed again.
 * jsonpath		The same for conditions written as jsonpath, of random parts.
 */
#include "fuzz.h"

#include "mb/pg_wchar.h"
#include "utils/fmgrprotos.h"

PG_FUNCTION_INFO_V1(fuzz_condition);
PG_FUNCTION_INFO_V1(fuzz_mutation);
PG_FUNCTION_INFO_V1(fuzz_jsonpath);

/* ---------- expressions as trees ---------- */

#define REFERENCES 7

/* notation, and name in the compiler */
static const char *const Written[2][REFERENCES] = {
	{"${inputs.a}", "${ inputs.a.ключ.0 }", "${steps.x-1.outputs.b}", "${blocks.x.steps.y.succeeded}",
	"${bindings.b.c ?? {\"}\": 1}}", "${variables.k ?? \"x\" }", "${inputs}"},
	{"confidence", "result.a.ключ-1.0", "foo.bar", "${steps.x.outputs.b}", "inputs.a", "outcome", "bindings.x"}
};
static const char *const Named[2][REFERENCES] = {
	{"inputs.a", "inputs.a.ключ.0", "steps.x-1.outputs.b", "blocks.x.steps.y.succeeded",
	"bindings.b.c ?? {\"}\": 1}", "variables.k ?? \"x\"", "inputs"},
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
	Operand		list[4];		/* TREE_IN: the elements of a literal list */
	int			nlist;			/* -1: right refers to the list */
} Tree;

static const char *const Operators[] = {"==", "!=", "===", "!==", "<", "<=", ">", ">="};
#define ORDERINGS 4				/* index of the first ordering operator */

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

/* Test whether a value contains an object, which cannot be written as a literal. */
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

/* Write an operand of a comparison, sometimes in parentheses. */
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

/* Make the text of an expression. */
char *
RandomCondition(bool branching)
{
	StringInfoData text;

	initStringInfo(&text);
	WriteTree(&text, RandomTree(Draw(3)), branching, TREE_OR);
	return text.data;
}

/* ---------- the second evaluator ---------- */

typedef enum Truth
{
	TRUTH_FALSE,
	TRUTH_TRUE,
	TRUTH_UNKNOWN
} Truth;

const char *const TruthName[] = {"false", "true", "undecided"};

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

/* ---------- condition ---------- */

char	  **
OperandNames(const Condition *condition)
{
	char	  **names = palloc(sizeof(char *) * Max(condition->noperands, 1));

	for (int i = 0; i < condition->noperands; i++)
		names[i] = condition->operands[i]->source;
	return names;
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
		/* often repeat another value, so that equal values occur */
		values[i] = i > 0 && Draw(3) == 0 ? values[Draw(i)] : RandomVal(3);
		if (values[i] && Draw(4) == 0 && i > 0 && values[i - 1] && values[i]->kind != KIND_ARRAY)
			values[i] = MakeArray(RandomScalar(), values[i - 1]);
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
	if ((a->fallback == NULL) != (b->fallback == NULL))
		return false;
	return a->fallback == NULL || JsonEqual(a->fallback, b->fallback);
}

/* Check that the stored form, a path and the names of operands, can be read back. */
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

/* Compile an arbitrary text, and check that the result is plausible. */
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
	static const char *const openings[] = {"(", "not ", "[", "((((", "${", "'", "true or "};
	bool		branching = Draw(2);
	char	   *mutant = RandomCondition(branching);

	for (int i = Draw(4); i >= 0; i--)
		mutant = Mutate(mutant);
	/* sometimes something very long or deep */
	for (int i = Draw(500) ? 0 : 12; i > 0; i--)
		mutant = Draw(2) ? psprintf("%s %s", mutant, mutant) : psprintf("%s%s", DRAW(openings), mutant);
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
