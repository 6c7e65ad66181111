/*
 * reference.c
 *	  find the references ${…} in a text, and parse them
 *
 * The source of a reference is the text between the braces. Before "??" stands
 * the path, whose segments are the words between the dots. After "??" stands
 * the default, a JSON literal. Nothing here looks up a value, and nothing here
 * raises an error: what is wrong with a text comes back as ParseFaults. In
 * every server encoding, the bytes of multibyte characters are not ASCII. So
 * the scan goes byte by byte, and only columns are counted in characters.
 *
 * Memory: everything returned lives in the current memory context.
 */
#include "define/define.h"

#include "mb/pg_wchar.h"
#include "utils/fmgrprotos.h"

#define DEFAULT_SIGN		"??"
#define MAX_DEFAULT_BYTES	10000
#define MAX_DEFAULT_DEPTH	64
#define MAX_SEGMENTS		100
#define MAX_NAME_LENGTH		63	/* [A-Za-z_][A-Za-z0-9_-]{0,62} */

/* the state of parsing one source */
typedef struct Parser
{
	const char *source;
	const char *path;			/* what stands before "??" */
	int			column;			/* of the first character of the source */
	int			nsegments;
	char	  **segments;
	int			next;			/* the next segment to parse */
	Reference  *reference;
	ParseFault *fault;
} Parser;

static bool ParsePath(Parser *p);
static bool ParseNoPath(Parser *p);
static bool ParseSteps(Parser *p);
static bool ParseBinding(Parser *p);
static bool ParseVariable(Parser *p);
static bool ParsePlan(Parser *p);

typedef struct RootRule
{
	const char *name;
	ReferenceRoot root;
	bool		(*parse) (Parser *p);	/* parses what follows the root */
} RootRule;

/* the first STEP_ROOTS are allowed everywhere, the others only in branching conditions */
static const RootRule Roots[] = {
	{"inputs", REF_INPUTS, ParsePath},
	{"steps", REF_STEPS, ParseSteps},
	{"blocks", REF_STEPS, ParseSteps},
	{"bindings", REF_BINDINGS, ParseBinding},
	{"variables", REF_VARIABLES, ParseVariable},
	{"plan", REF_PLAN, ParsePlan},
	{"result", REF_RESULT, ParsePath},
	{"confidence", REF_CONFIDENCE, ParseNoPath},
	{"outcome", REF_OUTCOME, ParseNoPath},
	{"summary", REF_SUMMARY, ParseNoPath},
};
#define STEP_ROOTS		6
#define BRANCH_ROOTS	((int) lengthof(Roots))

/* in the order of StepField */
static const char *const FieldName[] = {
	"outputs", "inputs", "metadata", "succeeded", "failed", "skipped", "status", "outcome"
};

static const char *const PlanField[] = {"id", "name", "goal"};

/* Note a fault. Only the first one is kept. */
void
ParseFaultSet(ParseFault *fault, int column, char *hint, const char *format, ...)
{
	va_list		args;

	if (fault->message != NULL)
		return;
	va_start(args, format);
	fault->message = FormatText(format, args);
	va_end(args);
	fault->hint = hint;
	fault->column = column;
}

/* List the words that are allowed here, the nearest one first. */
static char *
HintWords(const char *what, const char *word, const char *const *words, int count)
{
	const char *nearest = NearestWord(word, words, count);
	char	   *known = psprintf("%s: %s.", what, WordList(words, count));

	if (nearest == NULL)
		return known;
	return psprintf("Did you mean \"%s\"? %s", nearest, known);
}

/*
 * Find the column of a segment. The segment after the last one stands for the
 * end of the path.
 */
static int
SegmentColumn(const Parser *p, int segment)
{
	int			offset = 0;

	for (int i = 0; i < segment && i < p->nsegments; i++)
		offset += strlen(p->segments[i]) + 1;
	offset = Min(offset, (int) strlen(p->path));
	return p->column + pg_mbstrlen_with_len(p->path, offset);
}

/* Take the remaining segments as the path. */
static bool
ParsePath(Parser *p)
{
	p->reference->npath = p->nsegments - p->next;
	p->reference->path = p->segments + p->next;
	return true;
}

/* Refuse segments after the last one that is allowed. */
static bool
ParseNoPath(Parser *p)
{
	if (p->next == p->nsegments)
		return true;
	ParseFaultSet(p->fault, SegmentColumn(p, p->next),
				  psprintf("Leave out \".%s\".", ShortText(p->segments[p->next])),
				  "reference \"${%s}\" goes on after \"%s\", which has no parts",
				  ShortText(p->source), p->segments[p->next - 1]);
	return false;
}

static bool
BeginsName(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Check whether a name fits the pattern of step names. */
bool
ReferenceNameIsValid(const char *name)
{
	const char *c = name;

	if (!BeginsName(*c))
		return false;
	while (BeginsName(*c) || (*c >= '0' && *c <= '9') || *c == '-')
		c++;
	return *c == '\0' && c - name <= MAX_NAME_LENGTH;
}

static bool
ParseStepName(Parser *p)
{
	if (p->next == p->nsegments)
	{
		ParseFaultSet(p->fault, SegmentColumn(p, p->next),
					  pstrdup("Name the step and its field, as ${steps.NAME.outputs}."),
					  "reference \"${%s}\" names no step", ShortText(p->source));
		return false;
	}
	if (!ReferenceNameIsValid(p->segments[p->next]))
	{
		ParseFaultSet(p->fault, SegmentColumn(p, p->next),
					  pstrdup("Step names are letters, digits, _ and -, start with a letter or _, and have at most 63 characters."),
					  "reference \"${%s}\" has \"%s\" where a step's name belongs",
					  ShortText(p->source), ShortText(p->segments[p->next]));
		return false;
	}
	p->reference->steps[p->reference->nsteps++] = p->segments[p->next++];
	return true;
}

/*
 * Read what follows metadata: metadata.succeeded means the same as the short
 * form succeeded.
 */
static void
ParseMetadata(Parser *p)
{
	int			field = NameIndex(p->segments[p->next], FieldName, lengthof(FieldName));

	if (field <= FIELD_METADATA)
		return;
	p->next++;
	p->reference->field = field;
}

static bool
ParseField(Parser *p)
{
	const char *last = p->reference->steps[p->reference->nsteps - 1];
	int			field;

	if (p->next == p->nsegments)
	{
		ParseFaultSet(p->fault, SegmentColumn(p, p->next),
					  psprintf("Say what of it, as ${%s.outputs}. Fields are: %s.", ShortText(p->path),
							   WordList(FieldName, lengthof(FieldName))),
					  "reference \"${%s}\" names no field of step \"%s\"", ShortText(p->source), last);
		return false;
	}
	field = NameIndex(p->segments[p->next], FieldName, lengthof(FieldName));
	if (field < 0)
	{
		ParseFaultSet(p->fault, SegmentColumn(p, p->next),
					  HintWords("Fields of a step are", p->segments[p->next], FieldName, lengthof(FieldName)),
					  "reference \"${%s}\" has the unknown field \"%s\"",
					  ShortText(p->source), ShortText(p->segments[p->next]));
		return false;
	}
	p->next++;
	p->reference->field = field;
	if (field == FIELD_METADATA && p->next < p->nsegments)
		ParseMetadata(p);
	return p->reference->field <= FIELD_METADATA ? ParsePath(p) : ParseNoPath(p);
}

/* Read NAME, then perhaps .steps.NAME inside it, and at last a field. */
static bool
ParseSteps(Parser *p)
{
	p->reference->steps = palloc(sizeof(char *) * p->nsegments);
	for (;;)
	{
		if (!ParseStepName(p))
			return false;
		if (p->next == p->nsegments ||
			(strcmp(p->segments[p->next], "steps") != 0 && strcmp(p->segments[p->next], "blocks") != 0))
			return ParseField(p);
		p->next++;
	}
}

/* Refuse a reference that ends before the name of what it reads, a binding or a variable. */
static bool
ExpectName(Parser *p, const char *what)
{
	if (p->next < p->nsegments)
		return true;
	ParseFaultSet(p->fault, SegmentColumn(p, p->next), psprintf("Name the %s, as ${%ss.NAME}.", what, what),
				  "reference \"${%s}\" names no %s", ShortText(p->source), what);
	return false;
}

static bool
ParseBinding(Parser *p)
{
	if (!ExpectName(p, "binding"))
		return false;
	p->reference->nsteps = 1;
	p->reference->steps = p->segments + p->next++;
	return ParsePath(p);
}

static bool
ParseVariable(Parser *p)
{
	return ExpectName(p, "variable") && ParsePath(p);
}

static bool
ParsePlan(Parser *p)
{
	const char *field = p->next < p->nsegments ? p->segments[p->next] : "";

	if (NameIndex(field, PlanField, lengthof(PlanField)) < 0)
	{
		ParseFaultSet(p->fault, SegmentColumn(p, p->next),
					  pstrdup("Of a plan there are ${plan.id}, ${plan.name} and ${plan.goal}."),
					  "reference \"${%s}\" does not say what of the plan", ShortText(p->source));
		return false;
	}
	p->reference->npath = 1;
	p->reference->path = p->segments + p->next++;
	return ParseNoPath(p);
}

/* Split the path at its dots. */
static bool
SplitSegments(Parser *p)
{
	char	   *rest = pstrdup(p->path);

	p->nsegments = 1;
	for (const char *c = p->path; *c; c++)
		if (*c == '.')
			p->nsegments++;
	if (p->nsegments > MAX_SEGMENTS)
	{
		ParseFaultSet(p->fault, p->column, psprintf("At most %d are allowed.", MAX_SEGMENTS),
					  "reference \"${%s}\" has %d segments", ShortText(p->source), p->nsegments);
		return false;
	}
	p->segments = palloc(sizeof(char *) * p->nsegments);
	for (int i = 0; i < p->nsegments; i++)
	{
		size_t		length = strcspn(rest, ".");

		rest[length] = '\0';
		p->segments[i] = rest;
		rest += length + 1;
	}
	return true;
}

static bool
CheckSegments(Parser *p)
{
	for (int i = 0; i < p->nsegments; i++)
	{
		if (p->segments[i][0] == '\0')
		{
			ParseFaultSet(p->fault, SegmentColumn(p, i),
						  pstrdup("Write names separated by single dots, as ${inputs.region}."),
						  "reference \"${%s}\" has an empty segment", ShortText(p->source));
			return false;
		}
		if (strcmp(p->segments[i], "__internal__") == 0)
		{
			ParseFaultSet(p->fault, SegmentColumn(p, i), pstrdup("Refer to something else, as ${inputs.region}."),
						  "reference \"${%s}\" reads \"__internal__\", which is not accessible", ShortText(p->source));
			return false;
		}
	}
	return true;
}

/* Read the first segment, and leave the others to its rule. */
static bool
ParseRoot(Parser *p, bool branching)
{
	int			count = branching ? BRANCH_ROOTS : STEP_ROOTS;
	const char *names[BRANCH_ROOTS];

	for (int i = 0; i < count; i++)
	{
		names[i] = Roots[i].name;
		if (strcmp(p->segments[0], Roots[i].name) != 0)
			continue;
		p->next = 1;
		p->reference->root = Roots[i].root;
		return Roots[i].parse(p);
	}
	p->fault->root = p->segments[0];
	p->fault->rest = p->path + strlen(p->segments[0]);
	ParseFaultSet(p->fault, p->column,
				  HintWords("References start with one of", p->segments[0], names, count),
				  "reference \"${%s}\" has the unknown root \"%s\"", ShortText(p->source), ShortText(p->segments[0]));
	return false;
}

/* Copy a source without the white space around it, and adjust the column. */
static char *
TrimSource(const char *source, int *column)
{
	size_t		length;

	while (*source && isspace((unsigned char) *source) && !IS_HIGHBIT_SET(*source))
	{
		source++;
		(*column)++;
	}
	length = strlen(source);
	while (length > 0 && isspace((unsigned char) source[length - 1]) && !IS_HIGHBIT_SET(source[length - 1]))
		length--;
	return pnstrdup(source, length);
}

/* ---------- defaults ---------- */

/*
 * Find the end of the JSON that starts here: the first "}" that closes nothing
 * in it. Returns NULL if there is none. *deepest is how deep it is nested.
 * Whether it is JSON is checked later.
 */
static const char *
LiteralEnd(const char *at, int *deepest)
{
	int			depth = 0;
	bool		quoted = false;

	*deepest = 0;
	for (; *at; at++)
	{
		if (quoted && *at == '\\' && at[1])
			at++;
		else if (*at == '"')
			quoted = !quoted;
		else if (quoted)
			continue;
		else if (*at == '{' || *at == '[')
		{
			depth++;
			*deepest = Max(*deepest, depth);
		}
		else if (*at == ']')
			depth--;
		else if (*at == '}' && depth-- <= 0)
			return at;
	}
	return NULL;
}

/* Report a default that is not JSON. */
static void
FaultDefault(Parser *p, const char *literal, int column)
{
	char	   *hint = pstrdup("After \"??\" stands a JSON value, as ${inputs.size ?? 2}, ${inputs.list ?? []} or ${inputs.name ?? \"none\"}.");

	if (*literal == '\'')
		hint = pstrdup("Write the text in double quotes, as ${inputs.name ?? \"none\"}.");
	else if (strspn(literal, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == strlen(literal) && *literal)
		hint = psprintf("The default is a JSON value, not a reference; a text is written in double quotes, as ${%s ?? \"%s\"}.",
						ShortText(p->path), ShortText(literal));
	ParseFaultSet(p->fault, column, hint, "reference \"${%s}\" has a default that is not JSON", ShortText(p->source));
}

/* Read the default of a reference. */
static bool
ParseDefault(Parser *p, const char *literal, int column)
{
	Datum		json;
	int			depth;

	/* the parser is recursive, so the depth is checked before */
	LiteralEnd(literal, &depth);
	if (strlen(literal) > MAX_DEFAULT_BYTES || depth > MAX_DEFAULT_DEPTH)
	{
		ParseFaultSet(p->fault, column, psprintf("At most %d bytes and %d levels are allowed.", MAX_DEFAULT_BYTES, MAX_DEFAULT_DEPTH),
					  "reference \"${%s}\" has a default that is too large", ShortText(p->source));
		return false;
	}
	if (!InputSafe(jsonb_in, unconstify(char *, literal), &json))
	{
		FaultDefault(p, literal, column);
		return false;
	}
	p->reference->fallback = DatumGetJsonbP(json);
	return true;
}

/* Separate the path from the default, if there is one, and read the default. */
static bool
SplitDefault(Parser *p)
{
	const char *sign = strstr(p->source, DEFAULT_SIGN);
	const char *literal;
	int			column;
	int			ignored = 0;

	p->path = p->source;
	if (sign == NULL)
		return true;
	p->path = TrimSource(pnstrdup(p->source, sign - p->source), &ignored);
	sign += strlen(DEFAULT_SIGN);
	column = p->column + pg_mbstrlen_with_len(p->source, sign - p->source);
	if (p->path[0] == '\0')
	{
		ParseFaultSet(p->fault, p->column, pstrdup("Name a value before \"??\", as ${inputs.size ?? 2}."),
					  "reference \"${%s}\" has a default and no path", ShortText(p->source));
		return false;
	}
	literal = TrimSource(sign, &column);
	return ParseDefault(p, literal, column);
}

/* ---------- references ---------- */

/*
 * Parse a source. "column" is that of its first character in the text. Returns
 * NULL and a fault if it is not a reference.
 */
Reference *
ReferenceParse(const char *source, int column, bool branching, ParseFault *fault)
{
	Parser		p = {0};

	memset(fault, 0, sizeof(*fault));
	p.source = TrimSource(source, &column);
	p.column = column;
	p.fault = fault;
	if (p.source[0] == '\0')
	{
		ParseFaultSet(fault, column, pstrdup("Name a value, as ${inputs.region}; for a literal \"${\" write \"$${\"."),
					  "reference \"${}\" is empty");
		return NULL;
	}
	if (strstr(p.source, "${") != NULL)
	{
		ParseFaultSet(fault, column, pstrdup("Close the first reference before the second; they cannot be nested."),
					  "reference \"${%s\" contains \"${\"", ShortText(p.source));
		return NULL;
	}
	p.reference = palloc0(sizeof(Reference));
	p.reference->source = unconstify(char *, p.source);
	p.reference->column = column;
	if (!SplitDefault(&p) || !SplitSegments(&p) || !CheckSegments(&p) || !ParseRoot(&p, branching))
		return NULL;
	return p.reference;
}

/* Check whether a text has anything to resolve, including "$${". */
bool
ReferenceOccurs(const char *text)
{
	return strstr(text, "${") != NULL;
}

/*
 * Find the end of the reference whose source starts here. "column" is that of
 * the "${". Returns NULL and a fault if there is none.
 */
const char *
ReferenceEnd(const char *source, int column, ParseFault *fault)
{
	const char *end = strchr(source, '}');
	const char *sign = strstr(source, DEFAULT_SIGN);
	int			ignored;

	/* in a default, strings and objects may have a "}" */
	if (end != NULL && sign != NULL && sign < end)
		end = LiteralEnd(sign + strlen(DEFAULT_SIGN), &ignored);
	if (end == NULL)
		ParseFaultSet(fault, column, pstrdup("End it with \"}\"; for a literal \"${\" write \"$${\"."),
					  "reference \"${%s\" has no end", ShortText(source));
	return end;
}

static List *
AppendLiteral(List *parts, StringInfo literal)
{
	TextPart   *part;

	if (literal->len == 0)
		return parts;
	part = palloc0(sizeof(TextPart));
	part->literal = pnstrdup(literal->data, literal->len);
	resetStringInfo(literal);
	return lappend(parts, part);
}

/* Append a fault to those of a text. */
void
ParseFaultAppend(ParseFault *faults, const ParseFault *fault)
{
	if (faults->message == NULL)
	{
		*faults = *fault;
		return;
	}
	while (faults->next)
		faults = faults->next;
	faults->next = palloc(sizeof(ParseFault));
	*faults->next = *fault;
}

static List *
AppendReference(List *parts, const char *source, int length, int column, bool branching, ParseFault *faults)
{
	TextPart   *part = palloc0(sizeof(TextPart));
	ParseFault	fault;

	part->reference = ReferenceParse(pnstrdup(source, length), column, branching, &fault);
	if (part->reference)
		return lappend(parts, part);
	ParseFaultAppend(faults, &fault);
	return parts;
}

/*
 * Split a text into literals and references, in their order. All faults of the
 * text are chained to "faults"; references that have one are left out.
 */
List *
ReferenceScan(const char *text, bool branching, ParseFault *faults)
{
	List	   *parts = NIL;
	int			column = 1;
	StringInfoData literal;

	memset(faults, 0, sizeof(*faults));
	initStringInfo(&literal);
	for (;;)
	{
		const char *found = strstr(text, "${");
		int			before = found ? found - text : (int) strlen(text);
		bool		escaped = found && before > 0 && text[before - 1] == '$';
		ParseFault	fault = {0};
		const char *end;

		appendBinaryStringInfo(&literal, text, escaped ? before - 1 : before);
		column += pg_mbstrlen_with_len(text, before);
		if (found == NULL)
			return AppendLiteral(parts, &literal);
		text = found + 2;
		if (escaped)
		{
			appendStringInfoString(&literal, "${");
			column += 2;
			continue;
		}
		parts = AppendLiteral(parts, &literal);
		if ((end = ReferenceEnd(text, column, &fault)) == NULL)
		{
			ParseFaultAppend(faults, &fault);
			return parts;
		}
		column += 2;
		parts = AppendReference(parts, text, end - text, column, branching, faults);
		column += pg_mbstrlen_with_len(text, end - text) + 1;
		text = end + 1;
	}
}
