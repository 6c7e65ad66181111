/*
 * condition.c
 *	  compile conditions to jsonpath
 *
 * The grammar is read by recursive descent, a function for each of its rules.
 * An operand is a reference in the condition; condition_evaluate.c says how the
 * compiled path gets at its value.
 *
 * Nothing here raises an error for what a user wrote. It comes back as a
 * ParseFault.
 *
 * Memory: everything returned lives in the current memory context.
 */
#include "define/define.h"

#include "mb/pg_wchar.h"

#define MAX_CHARACTERS	4000
#define MAX_DEPTH		100

/* a part of a condition: a value that may still be compared, or a finished predicate */
typedef struct Part
{
	ConditionValue *value;
	char	   *predicate;
	int			offset;
} Part;

static Part *CompileOr(Compiler *c);

/* ---------- grammar ---------- */

/* Go one level deeper, if the limit allows it. */
static bool
Descend(Compiler *c)
{
	if (++c->depth <= MAX_DEPTH)
		return true;
	ParseFaultSet(c->fault, TokenColumn(c, c->token.offset), pstrdup("Decide a part of it in a step before, and compare its result."),
				  "condition is nested more than %d levels deep", MAX_DEPTH);
	return false;
}

/* Read a list; the current token is its "[". */
static ConditionValue *
CompileList(Compiler *c)
{
	ConditionValue *list = ValueMake(VALUE_LIST, NULL);

	if (!Descend(c))
		return NULL;
	TokenNext(c);
	while (!TokenIsMark(c, ']'))
	{
		ConditionValue *element = c->token.value;

		if (TokenIsMark(c, '['))
			element = CompileList(c);
		else if (c->token.kind == TOKEN_VALUE)
			TokenNext(c);
		else
			TokenUnexpected(c, "a value");
		if (c->fault->message)
			return NULL;
		list->elements = lappend(list->elements, element);
		if (TokenIsMark(c, ']'))
			break;
		if (!TokenIsMark(c, ','))
		{
			TokenUnexpected(c, "\",\" or \"]\"");
			return NULL;
		}
		TokenNext(c);
		if (TokenIsMark(c, ']'))
			TokenUnexpected(c, "a value");
	}
	TokenNext(c);
	c->depth--;
	return list;
}

static Part *
CompilePrimary(Compiler *c)
{
	Part	   *part = palloc0(sizeof(Part));

	part->offset = c->token.offset;
	if (c->token.kind == TOKEN_VALUE)
	{
		part->value = c->token.value;
		TokenNext(c);
	}
	else if (TokenIsMark(c, '['))
		part->value = CompileList(c);
	else if (TokenIsMark(c, '('))
	{
		if (!Descend(c))
			return NULL;
		TokenNext(c);
		part = CompileOr(c);
		if (!TokenIsMark(c, ')'))
			TokenUnexpected(c, "\")\"");
		TokenNext(c);
		c->depth--;
	}
	else
		TokenUnexpected(c, "a value");
	return c->fault->message ? NULL : part;
}

static bool
HasOperand(const ConditionValue *value)
{
	ListCell   *cell;

	if (value->kind == VALUE_OPERAND)
		return true;
	foreach(cell, value->elements)
	{
		if (HasOperand(lfirst(cell)))
			return true;
	}
	return false;
}

/*
 * Refuse a list in a comparison, unless it has only literals and is compared
 * with a reference.
 */
static bool
CheckListOperand(Compiler *c, const ConditionValue *value, const ConditionValue *other, int offset)
{
	if (value->kind != VALUE_LIST)
		return true;
	if (HasOperand(value))
		ParseFaultSet(c->fault, TokenColumn(c, offset),
					  pstrdup("Compare the elements one by one, or use \"in\"."),
					  "list with references cannot be compared");
	else if (other->kind != VALUE_OPERAND)
		ParseFaultSet(c->fault, TokenColumn(c, offset), pstrdup("Write the reference on one side, as ${inputs.list} == [1, 2]."),
					  "list can only be compared with a reference");
	return c->fault->message == NULL;
}

/* Refuse a value that has no order. */
static bool
CheckOrdered(Compiler *c, const Part *part, const char *sign)
{
	ValueKind	kind = part->value->kind;

	if (kind == VALUE_NUMBER || kind == VALUE_STRING || kind == VALUE_OPERAND)
		return true;
	ParseFaultSet(c->fault, TokenColumn(c, part->offset), pstrdup("Use == or !=."),
				  "\"%s\" compares numbers or strings, not %s", sign,
				  kind == VALUE_LIST ? "lists" : part->value->text);
	return false;
}

static char *
CompileComparison(Compiler *c, const Part *left, Comparison op, const char *sign, const Part *right)
{
	const ConditionValue *a = left->value;
	const ConditionValue *b = right->value;
	bool		good;

	if (op >= OP_LESS)
		good = CheckOrdered(c, left, sign) && CheckOrdered(c, right, sign);
	else
		good = CheckListOperand(c, a, b, left->offset) && CheckListOperand(c, b, a, right->offset);
	return good ? PredicateCompare(a, op, sign, b) : NULL;
}

/* Refuse an "in" unless a list or a reference is on its right, and its elements can be compared with the left. */
static bool
CheckIn(Compiler *c, const Part *left, const Part *right)
{
	const ConditionValue *list = right->value;
	ListCell   *cell;

	if (list->kind == VALUE_OPERAND)
		return CheckListOperand(c, left->value, list, left->offset);
	if (list->kind != VALUE_LIST)
	{
		ParseFaultSet(c->fault, TokenColumn(c, right->offset),
					  pstrdup("Write a list in brackets, as [1, 2, 3], or a reference to one."),
					  "\"in\" wants a list, not %s", ShortText(list->text));
		return false;
	}
	foreach(cell, list->elements)
	{
		if (!CheckListOperand(c, left->value, lfirst(cell), left->offset) ||
			!CheckListOperand(c, lfirst(cell), left->value, right->offset))
			return false;
	}
	return true;
}

/* Read the right side of "in" or "not in". */
static char *
CompileIn(Compiler *c, const Part *left, bool negated)
{
	Part	   *right;
	char	   *predicate;

	if (TokenIsMark(c, '('))
	{
		ParseFaultSet(c->fault, TokenColumn(c, c->token.offset), pstrdup("Write the list in brackets, as [1, 2, 3]."),
					  "\"in\" wants a list, not \"(\"");
		return NULL;
	}
	right = CompilePrimary(c);
	if (right == NULL || !CheckIn(c, left, right))
		return NULL;
	predicate = PredicateIn(left->value, right->value);
	return negated ? PredicateNot(predicate) : predicate;
}

/* Make a predicate of a value that stands alone: a reference, true or false. */
static char *
CompileAlone(Compiler *c, const Part *part)
{
	char	   *predicate = part->predicate ? part->predicate : PredicateAlone(part->value);

	if (predicate)
		return predicate;
	ParseFaultSet(c->fault, TokenColumn(c, part->offset), pstrdup("Compare it with something."),
				  "%s alone is not a condition", part->value->kind == VALUE_LIST ? "list" : "literal");
	return NULL;
}

/* Refuse to compare the result of a comparison. */
static bool
CheckComparable(Compiler *c, const Part *part, int offset)
{
	if (part->predicate == NULL)
		return true;
	ParseFaultSet(c->fault, TokenColumn(c, offset), pstrdup("Join comparisons with \"and\" or \"or\"."),
				  "result of a comparison cannot be compared");
	return false;
}

/* Read the rest of a comparison, from its operator. */
static char *
CompileRest(Compiler *c, const Part *left)
{
	Token		operator = c->token;
	Part	   *right;

	if (!CheckComparable(c, left, operator.offset))
		return NULL;
	TokenNext(c);
	if (operator.kind == TOKEN_COMPARE)
	{
		right = CompilePrimary(c);
		if (right == NULL || !CheckComparable(c, right, operator.offset))
			return NULL;
		return CompileComparison(c, left, operator.op,
								 pnstrdup(c->source + operator.offset, operator.length), right);
	}
	if (operator.kind == TOKEN_NOT)
	{
		if (c->token.kind != TOKEN_IN)
		{
			TokenUnexpected(c, "\"in\"");
			return NULL;
		}
		TokenNext(c);
	}
	return CompileIn(c, left, operator.kind == TOKEN_NOT);
}

static Part *
MakePredicate(char *predicate, int offset)
{
	Part	   *part;

	if (predicate == NULL)
		return NULL;
	part = palloc0(sizeof(Part));
	part->predicate = predicate;
	part->offset = offset;
	return part;
}

/* Read a value and, if it is compared, the comparison. */
static Part *
CompileTerm(Compiler *c)
{
	Part	   *part = CompilePrimary(c);

	while (part && (c->token.kind == TOKEN_COMPARE || c->token.kind == TOKEN_IN || c->token.kind == TOKEN_NOT))
		part = MakePredicate(CompileRest(c, part), part->offset);
	return part;
}

/*
 * Read a term with its "not"s. Two of them cancel out, even if the term is
 * undecided.
 */
static Part *
CompileNot(Compiler *c)
{
	int			offset = c->token.offset;
	int			nots = 0;
	Part	   *part;
	char	   *predicate;

	for (; c->token.kind == TOKEN_NOT; TokenNext(c))
		nots++;
	part = CompileTerm(c);
	if (part == NULL || nots == 0)
		return part;
	predicate = CompileAlone(c, part);
	return MakePredicate(predicate && nots % 2 ? PredicateNot(predicate) : predicate, offset);
}

/* Read parts and their connective. A single part stays as it is. */
static Part *
CompileChain(Compiler *c, Part *(*compile) (Compiler *c), TokenKind connective, const char *sign)
{
	Part	   *part = compile(c);
	List	   *predicates = NIL;
	int			offset;

	if (part == NULL || c->token.kind != connective)
		return part;
	offset = part->offset;
	for (;;)
	{
		char	   *predicate = part ? CompileAlone(c, part) : NULL;

		if (predicate == NULL)
			return NULL;
		predicates = lappend(predicates, predicate);
		if (c->token.kind != connective)
			return MakePredicate(PredicateJoin(predicates, sign), offset);
		TokenNext(c);
		part = compile(c);
	}
}

static Part *
CompileAnd(Compiler *c)
{
	return CompileChain(c, CompileNot, TOKEN_AND, "&&");
}

static Part *
CompileOr(Compiler *c)
{
	return CompileChain(c, CompileAnd, TOKEN_OR, "||");
}

static bool
CompileRaw(Condition *condition, const char *source, ParseFault *fault)
{
	char	   *message;

	condition->raw = true;
	if (!PathFromText(psprintf("strict %s", source), &condition->path, &message))
	{
		ParseFaultSet(fault, 1, pstrdup("A condition that starts with \"$.\" is read as jsonpath; references are written ${inputs.NAME}."),
					  "malformed jsonpath: %s", message);
		return false;
	}
	if (PathHasVariables(condition->path))
	{
		ParseFaultSet(fault, 1, pstrdup("Read values from the document, as $.inputs.NAME."),
					  "jsonpath of a condition cannot have variables");
		return false;
	}
	return true;
}

static bool
CompileExpression(Condition *condition, const char *source, bool branching, ParseFault *fault)
{
	Compiler	c = {0};
	Part	   *whole;
	char	   *predicate = NULL;
	char	   *message;

	c.source = c.at = source;
	c.branching = branching;
	c.fault = fault;
	TokenNext(&c);
	whole = CompileOr(&c);
	if (whole && c.token.kind != TOKEN_END)
		TokenUnexpected(&c, "\"and\", \"or\" or the end");
	if (whole)
		predicate = CompileAlone(&c, whole);
	if (c.references.message)
	{
		if (fault->message)
			ParseFaultAppend(&c.references, fault);
		*fault = c.references;
	}
	if (fault->message)
		return false;
	if (!PathFromText(psprintf("strict %s", predicate), &condition->path, &message))
	{
		ParseFaultSet(fault, 1, pstrdup("Write shorter comparisons, as ${inputs.size} >= 2."), "condition cannot be compiled: %s", message);
		return false;
	}
	condition->noperands = c.noperands;
	condition->operands = palloc(sizeof(Reference *) * Max(c.noperands, 1));
	memcpy(condition->operands, c.operands, sizeof(Reference *) * c.noperands);
	return true;
}

/*
 * Compile a condition. If it starts with "$.", it is jsonpath as written.
 * Returns NULL and a fault if it cannot be compiled.
 */
Condition *
ConditionCompile(const char *source, bool branching, ParseFault *fault)
{
	Condition  *condition = palloc0(sizeof(Condition));
	const char *start = source + strspn(source, CONDITION_BLANKS);
	bool		good;

	memset(fault, 0, sizeof(*fault));
	condition->source = pstrdup(source);
	if (*start == '\0')
		ParseFaultSet(fault, 1, pstrdup("Write a comparison, as ${inputs.size} >= 2, or leave the condition out."),
					  "condition is empty");
	else if (pg_mbstrlen(source) > MAX_CHARACTERS)
		ParseFaultSet(fault, 1, psprintf("At most %d are allowed.", MAX_CHARACTERS),
					  "condition has %d characters", pg_mbstrlen(source));
	if (fault->message)
		return NULL;
	if (strncmp(start, "$.", 2) == 0)
		good = CompileRaw(condition, start, fault);
	else
		good = CompileExpression(condition, source, branching, fault);
	return good ? condition : NULL;
}
