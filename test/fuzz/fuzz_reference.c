/*
 * fuzz_reference.c
 *	  references: texts of known parts, and mutated ones
 *
 * A text made of known parts must split into these parts. A mutated text
 * either has a fault, or splits into parts that give the same text again.
 */
#include "fuzz.h"

PG_FUNCTION_INFO_V1(fuzz_reference);

/* Write parts as text. */
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
		"blocks.a.metadata.skipped",
		"steps.a.succeeded", "blocks.a.blocks.b.failed", "steps._.status", "steps.A.outcome", "steps.a.skipped", "bindings.x",
		"bindings.x.0", "plan.id", "plan.name", "plan.goal", "variables.k", "variables.k.0 ?? null", "inputs.a ?? -1.5e3",
		"inputs.a??{}", "steps.a.outputs.x ?? {\"}\": [\"\\\"}\", {\"日\": []}]}", "bindings.x.? ?? \"a ?? b\"", "plan.id ?? [ ]"
	};
	List	   *parts = NIL;

	for (int i = Draw(6); i > 0; i--)
	{
		/* two adjacent literals would be read as one */
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
	parts = ReferenceScan(text, false, &fault);
	if (fault.message)
		FAIL("refused at column %d: %s", fault.column, fault.message);
	CheckParts(parts, made);
	for (int i = Draw(4); i >= 0; i--)
		run->text = text = Mutate(text);
	parts = ReferenceScan(text, false, &fault);
	if (fault.message)
	{
		CheckFault(text, &fault);
		return;
	}
	run->accepted++;
	/* "$" before a reference cannot be written, but the result must give itself again */
	text = PartsToText(parts);
	if (strstr(text, "$$${") == NULL)
		CheckParts(ReferenceScan(text, false, &fault), parts);
}

Datum
fuzz_reference(PG_FUNCTION_ARGS)
{
	return RunCases(fcinfo, "reference", ReferenceCase);
}
