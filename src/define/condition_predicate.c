/*
 * condition_predicate.c
 *	  predicates of jsonpath, as text
 *
 * jsonpath in strict mode gives the three results that we want (true, false,
 * undecided), but it compares neither arrays nor objects. So a predicate reads
 * these by the keys "=0" and "in0" of the document, which
 * condition_evaluate.c describes.
 *
 * A path is built from the leaves up. Chains of "and" and "or" become balanced
 * trees, so the depth of a path is bounded by the depth of the parentheses, not
 * by the length of the condition.
 *
 * Memory: everything returned lives in the current memory context.
 */
#include "define/define.h"

/* predicates with a fixed result */
#define ALWAYS			"(true == true)"
#define NEVER			"(true == false)"
#define UNDECIDED		"(true == 1)"

/* jsonpath's words for the kinds of literals */
static const char *const KindName[] = {"null", "boolean", "number", "string", "array"};

/* Join predicates with && or ||, as a balanced tree. */
static char *
JoinParts(char **parts, int count, const char *connective)
{
	if (count == 1)
		return parts[0];
	return psprintf("(%s %s %s)",
					JoinParts(parts, count / 2, connective), connective,
					JoinParts(parts + count / 2, count - count / 2, connective));
}

/* Join a list of predicates with && or ||; it has at least one. */
char *
PredicateJoin(List *predicates, const char *connective)
{
	char	  **array = palloc(sizeof(char *) * list_length(predicates));

	for (int i = 0; i < list_length(predicates); i++)
		array[i] = list_nth(predicates, i);
	return JoinParts(array, list_length(predicates), connective);
}

/* Negate a predicate. */
char *
PredicateNot(char *predicate)
{
	return psprintf("(!(%s))", predicate);
}

/*
 * Compare the value at a path with a literal, in type and value. The result is
 * decided for any value there.
 */
static char *
SameAsLiteral(const char *path, const ConditionValue *literal)
{
	List	   *parts = NIL;
	int			index = 0;
	ListCell   *cell;

	if (literal->kind == VALUE_NULL)
		return psprintf("(%s == null)", path);
	if (literal->kind != VALUE_LIST)
		return psprintf("(%s.type() == \"%s\" && %s == %s)",
						path, KindName[literal->kind], path, literal->text);

	/* a missing element is undecided, but then the size decides */
	parts = lappend(parts, psprintf("%s.type() == \"array\"", path));
	parts = lappend(parts, psprintf("%s.size() == %d", path, list_length(literal->elements)));
	foreach(cell, literal->elements)
		parts = lappend(parts, SameAsLiteral(psprintf("%s[%d]", path, index++), lfirst(cell)));
	return PredicateJoin(parts, "&&");
}

/* Compare two operands, in type and value. */
static char *
SameOperands(const ConditionValue *a, const ConditionValue *b)
{
	return psprintf("(%1$s.type() == %2$s.type() && $.\"=%3$d\" == $.\"=%4$d\" && "
					"(%1$s == %2$s || $.\"=%3$d\" != null))",
					a->text, b->text, a->operand, b->operand);
}

/* Compare two values, in type and value. */
static char *
Same(const ConditionValue *a, const ConditionValue *b)
{
	if (a->kind != VALUE_OPERAND && b->kind == VALUE_OPERAND)
		return Same(b, a);
	if (b->kind == VALUE_OPERAND)
		return SameOperands(a, b);
	if (a->kind == VALUE_OPERAND)
		return SameAsLiteral(a->text, b);
	return a->kind == b->kind ? psprintf("(%s == %s)", a->text, b->text) : pstrdup(NEVER);
}

/*
 * Compare two values. It is undecided if they are of different kinds, unless
 * one of them is null.
 */
static char *
Equal(const ConditionValue *a, const ConditionValue *b)
{
	if (a->kind != VALUE_OPERAND && b->kind == VALUE_OPERAND)
		return Equal(b, a);
	if (b->kind == VALUE_OPERAND)
		return psprintf("(%1$s || (%2$s.type() != %3$s.type() && %2$s == %3$s))",
						SameOperands(a, b), a->text, b->text);
	if (b->kind == VALUE_LIST)
		return psprintf("(%1$s || (%2$s.type() != \"array\" && %2$s != null && " UNDECIDED "))",
						SameAsLiteral(a->text, b), a->text);
	return psprintf("(%s == %s)", a->text, b->text);
}

/*
 * Compare numbers with numbers and strings with strings by their order.
 * jsonpath alone would order null and booleans too.
 */
static char *
Order(const ConditionValue *a, const ConditionValue *b, const char *op)
{
	if (a->kind == VALUE_OPERAND && b->kind == VALUE_OPERAND)
	{
		char	   *ordered = psprintf("(%1$s.type() == %2$s.type() && (%1$s.type() == \"number\" || %1$s.type() == \"string\"))",
									   a->text, b->text);

		return psprintf("((%1$s && %2$s %3$s %4$s) || (!(%1$s) && " UNDECIDED "))",
						ordered, a->text, op, b->text);
	}
	return psprintf("(%s %s %s || ((%s == null || %s == null) && " UNDECIDED "))",
					a->text, op, b->text, a->text, b->text);
}

/* Compare two values. The sign is that of the comparison. */
char *
PredicateCompare(const ConditionValue *a, Comparison op, const char *sign, const ConditionValue *b)
{
	switch (op)
	{
		case OP_EQUAL:
			return Equal(a, b);
		case OP_NOT_EQUAL:
			return PredicateNot(Equal(a, b));
		case OP_SAME:
			return Same(a, b);
		case OP_NOT_SAME:
			return PredicateNot(Same(a, b));
		default:
			return Order(a, b, sign);
	}
}

/* Check whether a value is an element of the array that an operand holds. */
static char *
InOperand(const ConditionValue *left, const ConditionValue *list)
{
	if (left->kind != VALUE_OPERAND)
		return psprintf("(exists(%s[*] ? (%s)))", list->text, SameAsLiteral("@", left));

	/* the second part finds containers; it is undecided if the left side is missing */
	return psprintf("(exists(%1$s[*] ? (@ == %2$s)) || $.\"in%3$d\"[*] == $.\"=%4$d\")",
					list->text, left->text, list->operand, left->operand);
}

/* Check whether a value is an element of a list. */
static char *
InList(const ConditionValue *left, const ConditionValue *list)
{
	List	   *parts = NIL;
	ListCell   *cell;

	if (list->elements == NIL)
		return left->kind == VALUE_OPERAND ? psprintf("(!exists(%s))", left->text) : pstrdup(NEVER);
	foreach(cell, list->elements)
		parts = lappend(parts, Same(left, lfirst(cell)));
	return PredicateJoin(parts, "||");
}

/* Check whether a value is an element of a list, or of the array that an operand holds. */
char *
PredicateIn(const ConditionValue *left, const ConditionValue *list)
{
	return list->kind == VALUE_LIST ? InList(left, list) : InOperand(left, list);
}

/* Make a predicate of a value that stands alone; NULL unless it is an operand, true or false. */
char *
PredicateAlone(const ConditionValue *value)
{
	if (value->kind == VALUE_OPERAND)
		return psprintf("(%s == true)", value->text);
	if (value->kind == VALUE_BOOLEAN)
		return pstrdup(strcmp(value->text, "true") == 0 ? ALWAYS : NEVER);
	return NULL;
}
