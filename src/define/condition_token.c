/*
 * condition_token.c
 *	  read the tokens of a condition
 *
 * What a user wrote becomes a part of jsonpath only as a number that fits
 * JSON's grammar, or as an escaped string. A reference becomes an operand. Its
 * faults are collected, so that one error has those of all references; any
 * other fault ends the reading.
 *
 * Memory: everything returned lives in the current memory context.
 */
#include "define/define.h"

#include "mb/pg_wchar.h"
#include "utils/fmgrprotos.h"

/* an operator, or a wrong one and what to write instead; longer ones first */
typedef struct Sign
{
	const char *text;
	Comparison	op;
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

/* Check whether the current token is this mark. */
bool
TokenIsMark(const Compiler *c, char mark)
{
	return c->token.kind == TOKEN_MARK && c->token.mark == mark;
}

/* Return the column of a byte of the condition. */
int
TokenColumn(const Compiler *c, int offset)
{
	return 1 + pg_mbstrlen_with_len(c->source, offset);
}

static char *
TokenText(const Compiler *c)
{
	return ClipText(c->source + c->token.offset, c->token.length);
}

/* Report that something else is expected at this token. */
void
TokenUnexpected(Compiler *c, const char *wanted)
{
	char	   *hint = pstrdup("Write comparisons, as ${inputs.size} >= 2, and join them with \"and\" or \"or\".");

	if (TokenIsMark(c, '['))
		hint = pstrdup("Write the place in an array as a part of the path, as ${inputs.list.0}.");
	if (c->token.kind == TOKEN_END)
		ParseFaultSet(c->fault, TokenColumn(c, c->token.offset), hint,
					  "condition ends where %s is expected", wanted);
	else
		ParseFaultSet(c->fault, TokenColumn(c, c->token.offset), hint,
					  "unexpected \"%s\" where %s is expected", TokenText(c), wanted);
}

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

/* Make a value of this kind; NULL is the text of a list. */
ConditionValue *
ValueMake(ValueKind kind, char *text)
{
	ConditionValue *value = palloc0(sizeof(ConditionValue));

	value->kind = kind;
	value->text = text;
	return value;
}

/* Make an operand of a reference. The same reference twice is one operand. */
static ConditionValue *
MakeOperand(Compiler *c, Reference *reference)
{
	ConditionValue *value;
	int			i;

	for (i = 0; i < c->noperands; i++)
		if (strcmp(c->operands[i]->source, reference->source) == 0)
			break;
	if (i == CONDITION_OPERANDS)
	{
		ParseFaultSet(c->fault, reference->column, pstrdup("Decide a part of it in a step before, and compare its result."),
					  "condition has more than %d references", CONDITION_OPERANDS);
		return NULL;
	}
	if (i == c->noperands)
		c->operands[c->noperands++] = reference;
	value = ValueMake(VALUE_OPERAND, psprintf("$.\"%d\"", i));
	value->operand = i;
	return value;
}

static ConditionValue *
LexReference(Compiler *c)
{
	int			offset = c->at - c->source;
	int			column = TokenColumn(c, offset);
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
	return ValueMake(VALUE_OPERAND, pstrdup("$"));
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
			ParseFaultSet(c->fault, TokenColumn(c, c->at - c->source),
						  pstrdup("Known are \\n, \\t, \\r, \\b, \\f, \\\\, \\\", \\', \\/ and \\uXXXX (in pairs above U+FFFF, never 0000)."),
						  "unknown escape in a string");
			return false;
		}
		appendBinaryStringInfo(text, c->at, length);
	}
	c->at += length;
	return true;
}

/* Pass a character of a string on to jsonpath. A reference is refused, but "$${" is the text "${". */
static bool
LexCharacter(Compiler *c, StringInfo text)
{
	if (*c->at == '\\')
		return LexEscape(c, text);
	if (strncmp(c->at, "$${", 3) == 0)
		c->at++;
	else if (strncmp(c->at, "${", 2) == 0 && c->at[-1] != '$')
	{
		ParseFaultSet(c->fault, TokenColumn(c, c->at - c->source),
					  pstrdup("Write the reference without quotes; for a literal \"${\" write \"$${\"."),
					  "reference inside a string");
		return false;
	}
	if (*c->at == '"')
		appendStringInfoChar(text, '\\');
	appendStringInfoChar(text, *c->at++);
	return true;
}

static ConditionValue *
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
			ParseFaultSet(c->fault, TokenColumn(c, offset), psprintf("End it with %c.", quote), "string has no end");
			return NULL;
		}
		if (!LexCharacter(c, &text))
			return NULL;
	}
	c->at++;
	appendStringInfoChar(&text, '"');
	return ValueMake(VALUE_STRING, text.data);
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

static ConditionValue *
LexNumber(Compiler *c)
{
	int			offset = c->at - c->source;
	int			length = NumberLength(c->at);
	char	   *text;
	Datum		ignored;

	if (length == 0)
	{
		ParseFaultSet(c->fault, TokenColumn(c, offset), pstrdup("Numbers are written as in JSON: 12, -0.5, 1.5e3."),
					  "malformed number");
		return NULL;
	}
	text = pnstrdup(c->at, length);
	c->at += length;
	if (!InputSafe(numeric_in, text, &ignored))
	{
		ParseFaultSet(c->fault, TokenColumn(c, offset), pstrdup("Use a number of ordinary size, such as 1e300."), "number is out of range");
		return NULL;
	}
	return ValueMake(VALUE_NUMBER, text);
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
static ConditionValue *
LexBarePath(Compiler *c, char *word, int offset)
{
	int			column = TokenColumn(c, offset);
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

/*
 * Return a hint for a keyword in the wrong case or of another language; NULL
 * for other words.
 */
static char *
MistakenWordHint(const char *word)
{
	for (size_t i = 0; i < lengthof(Words); i++)
		if (pg_strcasecmp(word, Words[i].text) == 0)
			return psprintf("Write \"%s\", in lower case.", Words[i].text);
	for (size_t i = 0; i < lengthof(ForeignWords); i++)
		if (strcmp(word, ForeignWords[i][0]) == 0)
			return pstrdup(ForeignWords[i][1]);
	return NULL;
}

/* Report a word that is neither a keyword nor a path that is allowed here. */
static void
FaultWord(Compiler *c, const char *word, int offset)
{
	static const char *const roots[] = {"inputs", "steps", "blocks", "bindings", "variables", "plan"};
	int			column = TokenColumn(c, offset);
	char	   *shown = ShortText(word);
	char	   *hint = MistakenWordHint(word);

	if (hint == NULL && *c->at == '(')
	{
		ParseFaultSet(c->fault, column, pstrdup("Compare values, as ${inputs.size} >= 2; let a step before compute what is not there."),
					  "unknown function \"%s\": conditions have no functions", shown);
		return;
	}
	if (hint == NULL && StartsWithRoot(word, roots, lengthof(roots)))
		hint = psprintf("Write ${%s}.", shown);
	if (hint == NULL)
		hint = psprintf("Write references as ${inputs.NAME}, and text in quotes, as '%s'.", shown);
	ParseFaultSet(c->fault, column, hint, "unknown word \"%s\"", shown);
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
				c->token.value = ValueMake(Words[i].value, word);
			return;
		}
	if (!c->branching || *c->at == '(' || MistakenWordHint(word))
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
			ParseFaultSet(c->fault, TokenColumn(c, c->token.offset), psprintf("Write \"%s\".", Signs[i].instead),
						  "unknown operator \"%s\"", Signs[i].text);
			return;
		}
		c->token.kind = TOKEN_COMPARE;
		c->token.op = Signs[i].op;
		c->at += strlen(Signs[i].text);
		return;
	}
	/* this is never the first byte of a multibyte character: that would start a word */
	ParseFaultSet(c->fault, TokenColumn(c, c->token.offset),
				  pstrdup("Conditions are made of references, literals, ==, ===, !=, !==, <, <=, >, >=, in, not in, and, or, not and parentheses."),
				  "unexpected \"%c\"", *c->at);
}

/* Read the next token. After a fault the token is TOKEN_END. */
void
TokenNext(Compiler *c)
{
	c->at += strspn(c->at, CONDITION_BLANKS);
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
