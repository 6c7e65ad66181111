/*
 * condition.c
 *	  compile conditions to jsonpath, and evaluate them
 *
 * An operand is a reference in the condition. The compiled path reads a
 * document that ConditionDocument makes of the values of the operands. The
 * value of operand 0 is under "0"; it is left out if it is missing. jsonpath
 * in strict mode gives the three results that we want (true, false,
 * undecided), but it compares neither arrays nor objects. For these the
 * document has two more keys: "=0" is a number that is the same for operands
 * that are equal (null for scalars), and "in0" lists the numbers of the
 * operands that are elements of array 0.
 *
 * Nothing here raises an error for what a user wrote or for the data. The
 * former comes back as a ParseFault, the latter as undecided. A path is built
 * as text, from the leaves up. What a user wrote goes into it only as a number
 * that fits JSON's grammar, or as an escaped string. Chains of "and" and "or"
 * become balanced trees, so the depth of a path is bounded by the depth of the
 * parentheses, not by the length of the condition.
 *
 * Memory: everything returned lives in the current memory context.
 */
#include "define/define.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/fmgrprotos.h"

#define MAX_CHARACTERS	4000
#define MAX_DEPTH		100
#define MAX_OPERANDS	100
#define MAX_EXPLAINED	5		/* operands named in an explanation */

/* predicates with a fixed result */
#define ALWAYS			"(true == true)"
#define NEVER			"(true == false)"
#define UNDECIDED		"(true == 1)"

typedef enum Operator
{
	OP_EQUAL,
	OP_NOT_EQUAL,
	OP_SAME,
	OP_NOT_SAME,
	OP_LESS,
	OP_LESS_EQUAL,
	OP_GREATER,
	OP_GREATER_EQUAL,
	OP_NONE
} Operator;

/* an operator, or a wrong one and what to write instead; longer ones first */
typedef struct Sign
{
	const char *text;
	Operator	op;
	const char *instead;
} Sign;

static const Sign Signs[] = {
	{"===", OP_SAME, NULL},
	{"!==", OP_NOT_SAME, NULL},
	{"==", OP_EQUAL, NULL},
	{"!=", OP_NOT_EQUAL, NULL},
	{"<=", OP_LESS_EQUAL, NULL},
	{">=", OP_GREATER_EQUAL, NULL},
	{"<>", OP_NONE, "!="},
	{"=>", OP_NONE, ">="},
	{"=<", OP_NONE, "<="},
	{"=~", OP_NONE, "=="},
	{"??", OP_NONE, "${path ?? literal}"},
	{"&&", OP_NONE, "and"},
	{"||", OP_NONE, "or"},
	{"<", OP_LESS, NULL},
	{">", OP_GREATER, NULL},
	{"=", OP_NONE, "=="},
	{"!", OP_NONE, "not"},
	{"&", OP_NONE, "and"},
	{"|", OP_NONE, "or"},
};

typedef enum TokenKind
{
	TOKEN_END,
	TOKEN_VALUE,
	TOKEN_COMPARE,
	TOKEN_IN,
	TOKEN_AND,
	TOKEN_OR,
	TOKEN_NOT,
	TOKEN_MARK					/* ( ) [ ] , */
} TokenKind;

typedef enum ValueKind
{
	VALUE_NULL,
	VALUE_BOOLEAN,
	VALUE_NUMBER,
	VALUE_STRING,
	VALUE_LIST,
	VALUE_OPERAND
} ValueKind;

/* jsonpath's words for the kinds of literals */
static const char *const KindName[] = {"null", "boolean", "number", "string", "array"};

typedef struct Value
{
	ValueKind	kind;
	char	   *text;			/* in jsonpath; NULL for a list */
	int			operand;
	List	   *elements;		/* of Value */
} Value;

typedef struct Token
{
	TokenKind	kind;
	Operator	op;
	char		mark;
	Value	   *value;
	int			offset;
	int			length;
} Token;

typedef struct Word
{
	const char *text;
	TokenKind	kind;
	ValueKind	value;
} Word;

static const Word Words[] = {
	{"and", TOKEN_AND, VALUE_NULL},
	{"or", TOKEN_OR, VALUE_NULL},
	{"not", TOKEN_NOT, VALUE_NULL},
	{"in", TOKEN_IN, VALUE_NULL},
	{"true", TOKEN_VALUE, VALUE_BOOLEAN},
	{"false", TOKEN_VALUE, VALUE_BOOLEAN},
	{"null", TOKEN_VALUE, VALUE_NULL},
};

/* words of other languages, with a hint */
static const char *const ForeignWords[][2] = {
	{"None", "Write \"null\"."},
	{"undefined", "Write \"null\"."},
	{"is", "Write \"==\"."},
	{"strict", "A jsonpath starts with \"$.\" and is strict without saying so."},
	{"lax", "A jsonpath starts with \"$.\" and is strict."},
};

/* roots of bare paths in branching conditions; any other path begins with a key of the result */
static const char *const BareRoots[] = {
	"result", "confidence", "outcome", "summary", "inputs", "steps", "blocks"
};

/* a part of a condition: a value that may still be compared, or a finished predicate */
typedef struct Part
{
	Value	   *value;
	char	   *predicate;
	int			offset;
} Part;

typedef struct Compiler
{
	const char *source;
	const char *at;				/* after the current token */
	bool		branching;
	Token		token;
	int			depth;
	int			noperands;
	Reference  *operands[MAX_OPERANDS];
	ParseFault	references;		/* the faults of the references, chained */
	ParseFault *fault;
} Compiler;

static Part *CompileOr(Compiler *c);

/* ---------- faults ---------- */

static int
ColumnAt(const Compiler *c, int offset)
{
	return 1 + pg_mbstrlen_with_len(c->source, offset);
}

static char *
TokenText(const Compiler *c)
{
	return ClipText(c->source + c->token.offset, c->token.length);
}

/* Report that something else is expected at this token. */
static void
FaultUnexpected(Compiler *c, const char *wanted)
{
	char	   *hint = pstrdup("Write comparisons, as ${inputs.size} >= 2, and join them with \"and\" or \"or\".");

	if (c->token.kind == TOKEN_MARK && c->token.mark == '[')
		hint = pstrdup("Write the place in an array as a part of the path, as ${inputs.list.0}.");
	if (c->token.kind == TOKEN_END)
		ParseFaultSet(c->fault, ColumnAt(c, c->token.offset), hint,
					  "condition ends where %s is expected", wanted);
	else
		ParseFaultSet(c->fault, ColumnAt(c, c->token.offset), hint,
					  "unexpected \"%s\" where %s is expected", TokenText(c), wanted);
}

/* ---------- tokens ---------- */

static bool
IsWordStart(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || IS_HIGHBIT_SET(c);
}

static bool
IsDigit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
IsWordPart(char c)
{
	return IsWordStart(c) || IsDigit(c) || c == '-' || c == '.';
}

static bool
IsBlank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static Value *
MakeValue(ValueKind kind, char *text)
{
	Value	   *value = palloc0(sizeof(Value));

	value->kind = kind;
	value->text = text;
	return value;
}

/* Make an operand of a reference. The same reference twice is one operand. */
static Value *
MakeOperand(Compiler *c, Reference *reference)
{
	Value	   *value;
	int			i;

	for (i = 0; i < c->noperands; i++)
		if (strcmp(c->operands[i]->source, reference->source) == 0)
			break;
	if (i == MAX_OPERANDS)
	{
		ParseFaultSet(c->fault, reference->column, pstrdup("Decide a part of it in a step before, and compare its result."),
					  "condition has more than %d references", MAX_OPERANDS);
		return NULL;
	}
	if (i == c->noperands)
		c->operands[c->noperands++] = reference;
	value = MakeValue(VALUE_OPERAND, psprintf("$.\"%d\"", i));
	value->operand = i;
	return value;
}

static Value *
LexReference(Compiler *c)
{
	int			offset = c->at - c->source;
	int			column = ColumnAt(c, offset);
	const char *source = c->at + 2;
	const char *end = ReferenceEnd(source, column, c->fault);
	ParseFault	fault;
	Reference  *reference;

	if (end == NULL)
		return NULL;
	c->at = end + 1;
	reference = ReferenceParse(pnstrdup(source, end - source), column + 2, c->branching, &fault);
	if (reference)
		return MakeOperand(c, reference);
	/* go on as if the reference were good, to find the faults of the others */
	ParseFaultAppend(&c->references, &fault);
	return MakeValue(VALUE_OPERAND, pstrdup("$"));
}

/* Read the four digits of \uXXXX; -1: they are not there. */
static int
HexDigits(const char *text)
{
	int			number = 0;

	for (int i = 0; i < 4; i++)
	{
		int			digit = HexDigit(text[i]);

		if (digit < 0)
			return -1;
		number = number * 16 + digit;
	}
	return number;
}

/* Return the length of a \uXXXX, or of a pair of them; 0: it is not valid. */
static int
UnicodeEscapeLength(const char *at)
{
	int			first = HexDigits(at + 2);
	int			second;

	if (first <= 0 || (first >= 0xDC00 && first <= 0xDFFF))
		return 0;
	if (first < 0xD800 || first > 0xDBFF)
		return 6;
	if (at[6] != '\\' || at[7] != 'u')
		return 0;
	second = HexDigits(at + 8);
	return second >= 0xDC00 && second <= 0xDFFF ? 12 : 0;
}

/* Pass an escape on to jsonpath. It knows the same ones, except \' and \/. */
static bool
LexEscape(Compiler *c, StringInfo text)
{
	char		escaped = c->at[1];
	int			length = 2;

	if (escaped == '\'' || escaped == '/')
		appendStringInfoChar(text, escaped);
	else
	{
		if (escaped == 'u')
			length = UnicodeEscapeLength(c->at);
		else if (escaped == '\0' || strchr("bfnrt\\\"", escaped) == NULL)
			length = 0;
		if (length == 0)
		{
			ParseFaultSet(c->fault, ColumnAt(c, c->at - c->source),
						  pstrdup("Known are \\n, \\t, \\r, \\b, \\f, \\\\, \\\", \\', \\/ and \\uXXXX (in pairs above U+FFFF, never 0000)."),
						  "unknown escape in a string");
			return false;
		}
		appendBinaryStringInfo(text, c->at, length);
	}
	c->at += length;
	return true;
}

static Value *
LexString(Compiler *c)
{
	int			offset = c->at - c->source;
	char		quote = *c->at++;
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfoChar(&text, '"');
	while (*c->at != quote)
	{
		if (*c->at == '\0')
		{
			ParseFaultSet(c->fault, ColumnAt(c, offset), psprintf("End it with %c.", quote), "string has no end");
			return NULL;
		}
		if (*c->at == '\\')
		{
			if (!LexEscape(c, &text))
				return NULL;
			continue;
		}
		if (strncmp(c->at, "$${", 3) == 0)
			c->at++;
		else if (strncmp(c->at, "${", 2) == 0 && c->at[-1] != '$')
		{
			ParseFaultSet(c->fault, ColumnAt(c, c->at - c->source),
						  pstrdup("Write the reference without quotes; for a literal \"${\" write \"$${\"."),
						  "reference inside a string");
			return NULL;
		}
		if (*c->at == '"')
			appendStringInfoChar(&text, '\\');
		appendStringInfoChar(&text, *c->at++);
	}
	c->at++;
	appendStringInfoChar(&text, '"');
	return MakeValue(VALUE_STRING, text.data);
}

/* Return the length of a number by JSON's grammar; 0: it is not one. */
static int
NumberLength(const char *text)
{
	const char *at = text;

	if (*at == '-')
		at++;
	if (!IsDigit(*at))
		return 0;
	if (*at == '0')
		at++;
	else
		while (IsDigit(*at))
			at++;
	if (*at == '.')
	{
		if (!IsDigit(at[1]))
			return 0;
		for (at++; IsDigit(*at);)
			at++;
	}
	if (*at == 'e' || *at == 'E')
	{
		at++;
		if (*at == '+' || *at == '-')
			at++;
		if (!IsDigit(*at))
			return 0;
		while (IsDigit(*at))
			at++;
	}
	return IsWordPart(*at) ? 0 : at - text;
}

static Value *
LexNumber(Compiler *c)
{
	int			offset = c->at - c->source;
	int			length = NumberLength(c->at);
	char	   *text;
	Datum		ignored;

	if (length == 0)
	{
		ParseFaultSet(c->fault, ColumnAt(c, offset), pstrdup("Numbers are written as in JSON: 12, -0.5, 1.5e3."),
					  "malformed number");
		return NULL;
	}
	text = pnstrdup(c->at, length);
	c->at += length;
	if (!InputSafe(numeric_in, text, &ignored))
	{
		ParseFaultSet(c->fault, ColumnAt(c, offset), pstrdup("Use a number of ordinary size, such as 1e300."), "number is out of range");
		return NULL;
	}
	return MakeValue(VALUE_NUMBER, text);
}

/* Check whether the first segment of a path is one of these words. */
static bool
StartsWithRoot(const char *path, const char *const *roots, int count)
{
	size_t		length = strcspn(path, ".");

	for (int i = 0; i < count; i++)
		if (strlen(roots[i]) == length && strncmp(path, roots[i], length) == 0)
			return true;
	return false;
}

/*
 * Read a bare path: "confidence", "result.a.b", or "a.b", which means
 * "result.a.b".
 */
static Value *
LexBarePath(Compiler *c, char *word, int offset)
{
	int			column = ColumnAt(c, offset);
	int			added = 0;
	Reference  *reference;

	if (!StartsWithRoot(word, BareRoots, lengthof(BareRoots)))
	{
		word = psprintf("result.%s", word);
		added = strlen("result.");
	}
	reference = ReferenceParse(word, column - added, true, c->fault);
	if (reference == NULL)
		return NULL;
	reference->column = column;
	return MakeOperand(c, reference);
}

/* Report a word that is neither a keyword nor a path that is allowed here. */
static void
FaultWord(Compiler *c, const char *word, int offset)
{
	static const char *const roots[] = {"inputs", "steps", "blocks", "bindings", "variables", "plan"};
	int			column = ColumnAt(c, offset);
	char	   *shown = ShortText(word);

	for (size_t i = 0; i < lengthof(Words); i++)
		if (pg_strcasecmp(word, Words[i].text) == 0)
		{
			ParseFaultSet(c->fault, column, psprintf("Write \"%s\", in lower case.", Words[i].text),
						  "unknown word \"%s\"", shown);
			return;
		}
	for (size_t i = 0; i < lengthof(ForeignWords); i++)
		if (strcmp(word, ForeignWords[i][0]) == 0)
		{
			ParseFaultSet(c->fault, column, pstrdup(ForeignWords[i][1]), "unknown word \"%s\"", shown);
			return;
		}
	if (*c->at == '(')
		ParseFaultSet(c->fault, column, pstrdup("Compare values, as ${inputs.size} >= 2; let a step before compute what is not there."),
					  "unknown function \"%s\": conditions have no functions", shown);
	else if (StartsWithRoot(word, roots, lengthof(roots)))
		ParseFaultSet(c->fault, column, psprintf("Write ${%s}.", shown), "unknown word \"%s\"", shown);
	else
		ParseFaultSet(c->fault, column,
					  psprintf("Write references as ${inputs.NAME}, and text in quotes, as '%s'.", shown),
					  "unknown word \"%s\"", shown);
}

/*
 * Check whether a word is a keyword in the wrong case, or of another language.
 * Such a word is no path either.
 */
static bool
IsMistakenWord(const char *word)
{
	for (size_t i = 0; i < lengthof(Words); i++)
		if (pg_strcasecmp(word, Words[i].text) == 0)
			return true;
	for (size_t i = 0; i < lengthof(ForeignWords); i++)
		if (strcmp(word, ForeignWords[i][0]) == 0)
			return true;
	return false;
}

static void
LexWord(Compiler *c)
{
	int			offset = c->at - c->source;
	char	   *word;

	while (IsWordPart(*c->at))
		c->at++;
	word = pnstrdup(c->source + offset, c->at - c->source - offset);
	for (size_t i = 0; i < lengthof(Words); i++)
		if (strcmp(word, Words[i].text) == 0)
		{
			c->token.kind = Words[i].kind;
			if (c->token.kind == TOKEN_VALUE)
				c->token.value = MakeValue(Words[i].value, word);
			return;
		}
	if (!c->branching || *c->at == '(' || IsMistakenWord(word))
	{
		FaultWord(c, word, offset);
		return;
	}
	c->token.kind = TOKEN_VALUE;
	c->token.value = LexBarePath(c, word, offset);
}

static void
LexSign(Compiler *c)
{
	for (size_t i = 0; i < lengthof(Signs); i++)
	{
		if (strncmp(c->at, Signs[i].text, strlen(Signs[i].text)) != 0)
			continue;
		if (Signs[i].instead)
		{
			ParseFaultSet(c->fault, ColumnAt(c, c->token.offset), psprintf("Write \"%s\".", Signs[i].instead),
						  "unknown operator \"%s\"", Signs[i].text);
			return;
		}
		c->token.kind = TOKEN_COMPARE;
		c->token.op = Signs[i].op;
		c->at += strlen(Signs[i].text);
		return;
	}
	/* this is never the first byte of a multibyte character: that would start a word */
	ParseFaultSet(c->fault, ColumnAt(c, c->token.offset),
				  pstrdup("Conditions are made of references, literals, ==, ===, !=, !==, <, <=, >, >=, in, not in, and, or, not and parentheses."),
				  "unexpected \"%c\"", *c->at);
}

/* Read the next token. After a fault the token is TOKEN_END. */
static void
Advance(Compiler *c)
{
	while (IsBlank(*c->at))
		c->at++;
	memset(&c->token, 0, sizeof(Token));
	c->token.offset = c->at - c->source;
	if (*c->at == '\0' || c->fault->message)
		return;
	if (strchr("()[],", *c->at))
	{
		c->token.kind = TOKEN_MARK;
		c->token.mark = *c->at++;
	}
	else if (IsWordStart(*c->at))
		LexWord(c);
	else if (*c->at == '"' || *c->at == '\'' || *c->at == '-' || IsDigit(*c->at) || strncmp(c->at, "${", 2) == 0)
	{
		c->token.kind = TOKEN_VALUE;
		if (*c->at == '$')
			c->token.value = LexReference(c);
		else if (*c->at == '"' || *c->at == '\'')
			c->token.value = LexString(c);
		else
			c->token.value = LexNumber(c);
	}
	else
		LexSign(c);
	c->token.length = c->at - c->source - c->token.offset;
	if (c->fault->message)
		c->token.kind = TOKEN_END;
}

static bool
AtMark(const Compiler *c, char mark)
{
	return c->token.kind == TOKEN_MARK && c->token.mark == mark;
}

/* ---------- predicates, as text of jsonpath ---------- */

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

static char *
JoinList(List *parts, const char *connective)
{
	char	  **array = palloc(sizeof(char *) * list_length(parts));

	for (int i = 0; i < list_length(parts); i++)
		array[i] = list_nth(parts, i);
	return JoinParts(array, list_length(parts), connective);
}

static char *
Negate(char *predicate)
{
	return psprintf("(!(%s))", predicate);
}

/*
 * Compare the value at a path with a literal, in type and value. The result is
 * decided for any value there.
 */
static char *
SameAsLiteral(const char *path, const Value *literal)
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
	return JoinList(parts, "&&");
}

/* Compare two operands, in type and value. */
static char *
SameOperands(const Value *a, const Value *b)
{
	return psprintf("(%1$s.type() == %2$s.type() && $.\"=%3$d\" == $.\"=%4$d\" && "
					"(%1$s == %2$s || $.\"=%3$d\" != null))",
					a->text, b->text, a->operand, b->operand);
}

static char *
Same(const Value *a, const Value *b)
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
Equal(const Value *a, const Value *b)
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
Order(const Value *a, const Value *b, const char *op)
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

/* Check whether a value is an element of the array that an operand holds. */
static char *
InOperand(const Value *left, const Value *list)
{
	if (left->kind != VALUE_OPERAND)
		return psprintf("(exists(%s[*] ? (%s)))", list->text, SameAsLiteral("@", left));

	/* the second part finds containers; it is undecided if the left side is missing */
	return psprintf("(exists(%1$s[*] ? (@ == %2$s)) || $.\"in%3$d\"[*] == $.\"=%4$d\")",
					list->text, left->text, list->operand, left->operand);
}

/* Check whether a value is an element of a list. */
static char *
InList(const Value *left, const Value *list)
{
	List	   *parts = NIL;
	ListCell   *cell;

	if (list->elements == NIL)
		return left->kind == VALUE_OPERAND ? psprintf("(!exists(%s))", left->text) : pstrdup(NEVER);
	foreach(cell, list->elements)
		parts = lappend(parts, Same(left, lfirst(cell)));
	return JoinList(parts, "||");
}

/* ---------- grammar ---------- */

/* Go one level deeper, if the limit allows it. */
static bool
Descend(Compiler *c)
{
	if (++c->depth <= MAX_DEPTH)
		return true;
	ParseFaultSet(c->fault, ColumnAt(c, c->token.offset), pstrdup("Decide a part of it in a step before, and compare its result."),
				  "condition is nested more than %d levels deep", MAX_DEPTH);
	return false;
}

/* Read a list; the current token is its "[". */
static Value *
CompileList(Compiler *c)
{
	Value	   *list = MakeValue(VALUE_LIST, NULL);

	if (!Descend(c))
		return NULL;
	Advance(c);
	while (!AtMark(c, ']'))
	{
		Value	   *element = c->token.value;

		if (AtMark(c, '['))
			element = CompileList(c);
		else if (c->token.kind == TOKEN_VALUE)
			Advance(c);
		else
			FaultUnexpected(c, "a value");
		if (c->fault->message)
			return NULL;
		list->elements = lappend(list->elements, element);
		if (AtMark(c, ']'))
			break;
		if (!AtMark(c, ','))
		{
			FaultUnexpected(c, "\",\" or \"]\"");
			return NULL;
		}
		Advance(c);
		if (AtMark(c, ']'))
			FaultUnexpected(c, "a value");
	}
	Advance(c);
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
		Advance(c);
	}
	else if (AtMark(c, '['))
		part->value = CompileList(c);
	else if (AtMark(c, '('))
	{
		if (!Descend(c))
			return NULL;
		Advance(c);
		part = CompileOr(c);
		if (!AtMark(c, ')'))
			FaultUnexpected(c, "\")\"");
		Advance(c);
		c->depth--;
	}
	else
		FaultUnexpected(c, "a value");
	return c->fault->message ? NULL : part;
}

static bool
HasOperand(const Value *value)
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
CheckListOperand(Compiler *c, const Value *value, const Value *other, int offset)
{
	if (value->kind != VALUE_LIST)
		return true;
	if (HasOperand(value))
		ParseFaultSet(c->fault, ColumnAt(c, offset),
					  pstrdup("Compare the elements one by one, or use \"in\"."),
					  "list with references cannot be compared");
	else if (other->kind != VALUE_OPERAND)
		ParseFaultSet(c->fault, ColumnAt(c, offset), pstrdup("Write the reference on one side, as ${inputs.list} == [1, 2]."),
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
	ParseFaultSet(c->fault, ColumnAt(c, part->offset), pstrdup("Use == or !=."),
				  "\"%s\" compares numbers or strings, not %s", sign,
				  kind == VALUE_LIST ? "lists" : part->value->text);
	return false;
}

static char *
CompileComparison(Compiler *c, const Part *left, Operator op, const char *sign, const Part *right)
{
	const Value *a = left->value;
	const Value *b = right->value;

	if (op >= OP_LESS)
		return CheckOrdered(c, left, sign) && CheckOrdered(c, right, sign) ? Order(a, b, sign) : NULL;
	if (!CheckListOperand(c, a, b, left->offset) || !CheckListOperand(c, b, a, right->offset))
		return NULL;
	switch (op)
	{
		case OP_EQUAL:
			return Equal(a, b);
		case OP_NOT_EQUAL:
			return Negate(Equal(a, b));
		case OP_SAME:
			return Same(a, b);
		default:
			return Negate(Same(a, b));
	}
}

static char *
CompileIn(Compiler *c, const Part *left, bool negated)
{
	int			offset = c->token.offset;
	Part	   *right;
	char	   *predicate;
	ListCell   *cell;

	if (AtMark(c, '('))
	{
		ParseFaultSet(c->fault, ColumnAt(c, offset), pstrdup("Write the list in brackets, as [1, 2, 3]."),
					  "\"in\" wants a list, not \"(\"");
		return NULL;
	}
	if ((right = CompilePrimary(c)) == NULL)
		return NULL;
	if (right->value->kind == VALUE_OPERAND)
	{
		if (left->value->kind == VALUE_LIST && !CheckListOperand(c, left->value, right->value, left->offset))
			return NULL;
		predicate = InOperand(left->value, right->value);
	}
	else if (right->value->kind == VALUE_LIST)
	{
		foreach(cell, right->value->elements)
		{
			if (!CheckListOperand(c, left->value, lfirst(cell), left->offset) ||
				!CheckListOperand(c, lfirst(cell), left->value, offset))
				return NULL;
		}
		predicate = InList(left->value, right->value);
	}
	else
	{
		ParseFaultSet(c->fault, ColumnAt(c, offset),
					  pstrdup("Write a list in brackets, as [1, 2, 3], or a reference to one."),
					  "\"in\" wants a list, not %s", ShortText(right->value->text));
		return NULL;
	}
	return negated ? Negate(predicate) : predicate;
}

/* Make a predicate of a value that stands alone: a reference, true or false. */
static char *
CompileAlone(Compiler *c, const Part *part)
{
	if (part->predicate)
		return part->predicate;
	if (part->value->kind == VALUE_OPERAND)
		return psprintf("(%s == true)", part->value->text);
	if (part->value->kind == VALUE_BOOLEAN)
		return pstrdup(strcmp(part->value->text, "true") == 0 ? ALWAYS : NEVER);
	ParseFaultSet(c->fault, ColumnAt(c, part->offset), pstrdup("Compare it with something."),
				  "%s alone is not a condition", part->value->kind == VALUE_LIST ? "list" : "literal");
	return NULL;
}

/* Refuse to compare the result of a comparison. */
static bool
CheckComparable(Compiler *c, const Part *part, int offset)
{
	if (part->predicate == NULL)
		return true;
	ParseFaultSet(c->fault, ColumnAt(c, offset), pstrdup("Join comparisons with \"and\" or \"or\"."),
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
	Advance(c);
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
			FaultUnexpected(c, "\"in\"");
			return NULL;
		}
		Advance(c);
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

	for (; c->token.kind == TOKEN_NOT; Advance(c))
		nots++;
	part = CompileTerm(c);
	if (part == NULL || nots == 0)
		return part;
	predicate = CompileAlone(c, part);
	return MakePredicate(predicate && nots % 2 ? Negate(predicate) : predicate, offset);
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
			return MakePredicate(JoinList(predicates, sign), offset);
		Advance(c);
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

/* ---------- compile ---------- */

/*
 * Repair a message of the jsonpath scanner, which may cut a character in two
 * where it failed.
 */
static char *
ValidMessage(char *message)
{
	if (!pg_verifymbstr(message, strlen(message), true))
		for (char *c = message; *c; c++)
			if (IS_HIGHBIT_SET(*c))
				*c = '?';
	return message;
}

/*
 * Call a function that has neither side effects nor resources of its own, and
 * catch its error if the data caused it. Any other error, such as a cancel, is
 * thrown on.
 */
static bool
CallQuietly(FunctionCallInfo fcinfo, PGFunction function, Datum *result, char **message)
{
	MemoryContext context = CurrentMemoryContext;
	volatile bool good = false;

	PG_TRY();
	{
		*result = function(fcinfo);
		good = true;
	}
	PG_CATCH();
	{
		ErrorData  *error;
		int			class;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		class = ERRCODE_TO_CATEGORY(error->sqlerrcode);
		if (class != ERRCODE_TO_CATEGORY(ERRCODE_DATA_EXCEPTION) &&
			class != ERRCODE_TO_CATEGORY(ERRCODE_SYNTAX_ERROR) &&
			class != ERRCODE_TO_CATEGORY(ERRCODE_FEATURE_NOT_SUPPORTED) &&
			error->sqlerrcode != ERRCODE_STATEMENT_TOO_COMPLEX)
			PG_RE_THROW();
		FlushErrorState();
		*message = ValidMessage(error->message);
	}
	PG_END_TRY();
	return good;
}

static bool
PathFromText(char *text, Datum *path, char **message)
{
	LOCAL_FCINFO(fcinfo, 1);

	InitFunctionCallInfoData(*fcinfo, NULL, 1, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = CStringGetDatum(text);
	fcinfo->args[0].isnull = false;
	return CallQuietly(fcinfo, jsonpath_in, path, message);
}

/*
 * Check whether a jsonpath has variables. It shows them as $"name", and shows
 * nothing else like that outside of strings.
 */
static bool
PathHasVariables(Datum path)
{
	const char *shown = DatumGetCString(DirectFunctionCall1(jsonpath_out, path));
	bool		quoted = false;

	for (const char *c = shown; *c; c++)
	{
		if (quoted && *c == '\\' && c[1])
			c++;
		else if (!quoted && c[0] == '$' && c[1] == '"')
			return true;
		else if (*c == '"')
			quoted = !quoted;
	}
	return false;
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
	Advance(&c);
	whole = CompileOr(&c);
	if (whole && c.token.kind != TOKEN_END)
		FaultUnexpected(&c, "\"and\", \"or\" or the end");
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
	const char *start = source;
	bool		good;

	memset(fault, 0, sizeof(*fault));
	condition->source = pstrdup(source);
	while (IsBlank(*start))
		start++;
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

/* ---------- evaluate ---------- */

/* Return the container of an array or object; NULL for a scalar. */
static JsonbContainer *
ContainerOf(JsonbValue *value)
{
	if (value->type == jbvArray || value->type == jbvObject)
		return &JsonbValueToJsonb(value)->root;
	return value->type == jbvBinary ? value->val.binary.data : NULL;
}

/* Find the first container that equals this one; -1: none. */
static int
FindContainer(JsonbContainer **containers, int count, JsonbContainer *wanted)
{
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (containers[i] && compareJsonbContainers(containers[i], wanted) == 0)
			return i;
	}
	return -1;
}

/* Put the numbers of the operands that are elements of an array, each once. */
static void
PutElements(JsonBuilder *b, int index, JsonbContainer **containers, int count)
{
	JsonbIterator *iterator = JsonbIteratorInit(containers[index]);
	bool	   *seen = palloc0(sizeof(bool) * count);
	JsonbValue	element;
	JsonbIteratorToken token;

	JsonArrayStart(b, psprintf("in%d", index));
	while ((token = JsonbIteratorNext(&iterator, &element, true)) != WJB_DONE)
	{
		int			found;

		if (token != WJB_ELEM || element.type != jbvBinary)
			continue;
		found = FindContainer(containers, count, element.val.binary.data);
		if (found < 0 || seen[found])
			continue;
		seen[found] = true;
		JsonPutInt(b, NULL, found);
	}
	JsonArrayEnd(b);
}

/* Make the document of the operands' values. NULL stands for a missing value. */
Jsonb *
ConditionDocument(int noperands, JsonbValue **values)
{
	JsonbContainer **containers = palloc0(sizeof(JsonbContainer *) * Max(noperands, 1));
	JsonBuilder b = {0};

	for (int i = 0; i < noperands; i++)
		containers[i] = values[i] ? ContainerOf(values[i]) : NULL;
	JsonObjectStart(&b, NULL);
	for (int i = 0; i < noperands; i++)
	{
		if (values[i] == NULL)
			continue;
		JsonPutValue(&b, psprintf("%d", i), values[i]);
		if (containers[i])
			JsonPutInt(&b, psprintf("=%d", i), FindContainer(containers, noperands, containers[i]));
		else
			JsonPutNull(&b, psprintf("=%d", i));
		if (containers[i] && JsonContainerIsArray(containers[i]))
			PutElements(&b, i, containers, noperands);
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Say which operands are missing or, if none is, of which kinds they are. */
static char *
ExplainOperands(const Jsonb *document, int noperands, char **names)
{
	StringInfoData missing;
	StringInfoData kinds;
	int			nmissing = 0;

	initStringInfo(&missing);
	initStringInfo(&kinds);
	for (int i = 0; i < noperands; i++)
	{
		JsonbValue	value;

		if (JsonGet(document, psprintf("%d", i), &value))
		{
			if (i < MAX_EXPLAINED)
				appendStringInfo(&kinds, "%s${%s} is %s", i == 0 ? "" : ", ", names[i],
								 value.type == jbvNull ? "null" : psprintf("of type %s", JsonKindName(&value)));
		}
		else if (nmissing++ < MAX_EXPLAINED)
			appendStringInfo(&missing, "%s${%s}", nmissing == 1 ? "" : ", ", names[i]);
	}
	if (nmissing > 0)
		return psprintf("%s %s no value", missing.data, nmissing == 1 ? "has" : "have");
	return psprintf("these values cannot be compared: %s", kinds.data);
}

/*
 * Evaluate a compiled condition over its document. "names" has the names of
 * the operands, for messages; a condition that is jsonpath as written has
 * none. If the result is undecided, "why" says why.
 */
ConditionResult
ConditionEvaluate(Datum path, const Jsonb *document, int noperands, char **names, char **why)
{
	LOCAL_FCINFO(fcinfo, 2);
	Datum		result;

	*why = NULL;
	InitFunctionCallInfoData(*fcinfo, NULL, 2, InvalidOid, NULL, NULL);
	fcinfo->args[0].value = JsonbPGetDatum(document);
	fcinfo->args[0].isnull = false;
	fcinfo->args[1].value = path;
	fcinfo->args[1].isnull = false;

	/* with two arguments it is silent: an error inside gives null */
	if (!CallQuietly(fcinfo, jsonb_path_match_opr, &result, why))
		return CONDITION_UNDECIDED;
	if (!fcinfo->isnull)
		return DatumGetBool(result) ? CONDITION_TRUE : CONDITION_FALSE;
	if (noperands > 0)
		*why = ExplainOperands(document, noperands, names);
	else
		*why = pstrdup("it does not come to true or false");
	return CONDITION_UNDECIDED;
}
