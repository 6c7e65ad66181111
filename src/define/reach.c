/*
 * reach.c
 *	  check what the references of a definition may reach
 *
 * A reference is good if the step that it names exists and can have run before
 * the step that has the reference. In a sequence that is a step of lower
 * order, in a plan with dependencies an ancestor. The rest of the reference,
 * the path into a result, can be checked only at run time.
 */
#include "define/define.h"

#include "miscadmin.h"

/* ---------- one reference ---------- */

/* Cut a reference for a message. */
static const char *
Shown(const Reference *reference)
{
	return ShortText(reference->source);
}

/*
 * Check whether a step can have run before the one that has the reference. For
 * steps of the outer scope in a plan with dependencies, this is left to the
 * plan.
 */
static bool
CanHaveRun(Scope *scope, int target, int from)
{
	if (target <= scope->offset)
		return !scope->around->sequential || target <= scope->after;
	if (scope->sequential)
		return target < from;
	return OrderIsAncestor(scope, target, from);
}

/* Check that a step can have run before the one that has the reference. */
static void
CheckReach(Reader *reader, const Place *place, const Reference *reference, int target, int from)
{
	const char *name = ScopeStep(reader->scope, target)->name;

	if (target == from)
		FaultAt(reader, place, ERRCODE_UNRESOLVED_REFERENCE,
				"A step can refer to steps that run before it.",
				"${%s} refers to the result of the step itself", Shown(reference));
	else if (CanHaveRun(reader->scope, target, from))
		return;
	else if (reader->scope->sequential)
		FaultAt(reader, place, ERRCODE_UNRESOLVED_REFERENCE,
				psprintf("Steps run in the order in which they stand; move step \"%s\" before this one.", name),
				"${%s} refers to step \"%s\", which runs later", Shown(reference), name);
	else
		FaultAt(reader, place, ERRCODE_UNRESOLVED_REFERENCE,
				psprintf("Add \"%s\" to dependsOn of this step.", name),
				"${%s} refers to step \"%s\", on which this step does not depend", Shown(reference), name);
}

/* Check a reference to an input. */
static void
CheckInput(Reader *reader, const Place *place, const Reference *reference)
{
	const Jsonb *inputs = reader->scope->inputs;
	JsonbValue	found;
	const char **names = NULL;
	int			count = 0;

	if (reader->inputs_unknown || reference->npath == 0 || JsonGet(inputs, reference->path[0], &found))
		return;
	/* an input that was not given is what a default is for */
	if (reference->fallback && !reader->inputs_declared)
		return;

	if (HintsWanted(reader->faults))
		names = JsonKeys(inputs, &count);
	FaultAt(reader, place, ERRCODE_UNRESOLVED_REFERENCE,
			WordHint(reader->faults, reference->path[0], names, count, "inputs"),
			"${%s}: input \"%s\" does not exist", Shown(reference), reference->path[0]);
}

/* Check a reference to a binding. */
static void
CheckBinding(Reader *reader, const Place *place, const Reference *reference, int from)
{
	const char *name = reference->steps[0];
	int			target = ScopeFindBinding(reader->scope, name);

	if (target == 0)
		FaultAt(reader, place, ERRCODE_UNRESOLVED_REFERENCE, ScopeBindingHint(reader, name),
				"${%s}: binding \"%s\" does not exist", Shown(reference), name);
	else if (from)
		CheckReach(reader, place, reference, target, from);
}

/* Check a reference to a step. */
static void
CheckStep(Reader *reader, const Place *place, const Reference *reference, int from)
{
	const char *name = reference->steps[0];
	int			target = ScopeFindStep(reader->scope, name);

	if (target == 0)
	{
		FaultAt(reader, place, ERRCODE_UNRESOLVED_REFERENCE, ScopeStepHint(reader, name),
				"${%s}: step \"%s\" does not exist", Shown(reference), name);
		return;
	}
	if (reference->nsteps > 1 && ScopeStep(reader->scope, target)->workflow == NULL)
		FaultAt(reader, place, ERRCODE_UNRESOLVED_REFERENCE,
				"Only a step with \"workflow\" has steps inside.",
				"${%s}: step \"%s\" has no steps inside", Shown(reference), name);
	if (from)
		CheckReach(reader, place, reference, target, from);
}

/*
 * Check a reference in step number "from", or in a place where any step may be
 * named (0).
 */
static void
CheckReference(Reader *reader, const Place *place, const Reference *reference, int from)
{
	if (reference->root == REF_INPUTS)
		CheckInput(reader, place, reference);
	else if (reference->root == REF_STEPS)
		CheckStep(reader, place, reference, from);
	else if (reference->root == REF_BINDINGS)
		CheckBinding(reader, place, reference, from);
}

/* Check whether a reference names this step, or its binding. */
static bool
RefersTo(Reader *reader, const Reference *reference, int step)
{
	if (reference->root == REF_STEPS)
		return ScopeFindStep(reader->scope, reference->steps[0]) == step;
	return reference->root == REF_BINDINGS && ScopeFindBinding(reader->scope, reference->steps[0]) == step;
}

/* ---------- hints ---------- */

/*
 * Say how to write a reference whose root is unknown, if the root is the name
 * of a binding, a step or an input; otherwise NULL.
 */
static char *
RootHint(Reader *reader, const char *root, const char *rest)
{
	const char *before = NULL;
	const char *between = "";
	JsonbValue	found;

	if (ScopeFindBinding(reader->scope, root))
		before = "bindings.";
	else if (ScopeFindStep(reader->scope, root))
	{
		before = "steps.";
		between = ".outputs";
	}
	else if (reader->scope->inputs && JsonGet(reader->scope->inputs, root, &found))
		before = "inputs.";
	else
		return NULL;
	return psprintf("${%s%s%s%s}", before, root, between, ShortText(rest));
}

/* Give the final hints to the faults about unknown roots. All names are known now. */
void
ReachHintRoots(Reader *reader)
{
	ListCell   *cell;

	foreach(cell, reader->unknown_roots)
	{
		const UnknownRoot *unknown = lfirst(cell);
		char	   *instead = RootHint(reader, unknown->fault.root, unknown->fault.rest);

		if (instead)
			FaultSetHint(reader->faults, unknown->index, psprintf("Write %s.", instead));
	}
	reader->unknown_roots = NIL;
}

/* Warn about {{…}}, which other languages fill. */
static void
WarnBraces(Reader *reader, const Place *place, const char *text)
{
	const char *open = strstr(text, "{{");
	const char *close = open ? strstr(open, "}}") : NULL;

	if (close)
		FaultAdd(reader->warnings, 0, PlaceText(place), "References are written ${inputs.NAME}, ${steps.NAME.outputs} or ${bindings.NAME}.",
				 "\"%s\" is not a reference; it stays as it is", ShortText(pnstrdup(open, close + 2 - open)));
}

/* Warn about $NAME, where there is a binding, step or input of that name. */
static void
WarnDollars(Reader *reader, const Place *place, const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";

	for (text = strchr(text, '$'); text; text = strchr(text + 1, '$'))
	{
		size_t		length = strspn(text + 1, letters);
		char	   *root = pnstrdup(text + 1, length);
		size_t		more = text[length + 1] == '.' ? 1 + strspn(text + length + 2, letters) : 0;
		char	   *instead;

		if (more == 1)
			more = 0;
		instead = length > 0 ? RootHint(reader, root, pnstrdup(text + 1 + length, more)) : NULL;
		if (instead)
			FaultAdd(reader->warnings, 0, PlaceText(place), psprintf("Write %s.", instead),
					 "\"$%s\" is not a reference; it stays as it is", ShortText(root));
	}
}

/* ---------- texts, values and conditions ---------- */

/* Check the references in a text of a step, or of a branch after it. */
static void
CheckText(Reader *reader, const Place *place, const char *text, int from, bool branch)
{
	ParseFault	faults = {0};
	List	   *parts;
	ListCell   *cell;

	if (text == NULL)
		return;
	if (reader->warnings)
	{
		WarnBraces(reader, place, text);
		WarnDollars(reader, place, text);
	}
	if (!ReferenceOccurs(text))
		return;
	if (from && !branch)
		ScopeStep(reader->scope, from)->dynamic = true;

	parts = ReferenceScan(text, branch, &faults);
	if (faults.message)
	{
		ReaderTakeFaults(reader, place, ERRCODE_UNRESOLVED_REFERENCE, &faults);
		ReachHintRoots(reader);
	}
	foreach(cell, parts)
	{
		const TextPart *part = lfirst(cell);

		if (part->reference && !(branch && RefersTo(reader, part->reference, from)))
			CheckReference(reader, place, part->reference, from);
	}
}

/* Check the references in a text. */
void
ReachCheckText(Reader *reader, const Place *place, const char *text, int from)
{
	CheckText(reader, place, text, from, false);
}

/*
 * Check the references in the review that a branch requests. They may name the
 * step after which the branch stands, and its result as a condition may.
 */
void
ReachCheckReview(Reader *reader, const Place *place, const char *summary, const Jsonb *questions, int after)
{
	Place		key = {.up = place, .key = "questions"};
	Place		element = {.up = &key};
	JsonbValue	question;

	CheckText(reader, &((Place) {.up = place, .key = "summary"}), summary, after, true);
	for (; questions && JsonGetIndex(questions, element.index, &question); element.index++)
		CheckText(reader, &element, JsonValueText(&question), after, true);
}

/*
 * Check the references in a value, at any depth. The depth was limited when
 * the value was read.
 */
static void
CheckContainer(Reader *reader, const Place *place, JsonbContainer *container, int from)
{
	JsonbIterator *iterator = JsonbIteratorInit(container);
	Place		member = {.up = place, .index = -1};
	JsonbValue	value;
	JsonbIteratorToken token;

	check_stack_depth();
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			member.key = JsonValueText(&value);
		if (token == WJB_ELEM)
			member.index++;
		if (token != WJB_ELEM && token != WJB_VALUE)
			continue;
		if (value.type == jbvBinary)
			CheckContainer(reader, &member, value.val.binary.data, from);
		else if (value.type == jbvString &&
				 (reader->warnings || memchr(value.val.string.val, '$', value.val.string.len) != NULL))
			ReachCheckText(reader, &member, JsonValueText(&value), from);
	}
}

/* Check the references in a value. If it has no dollar sign, it has none. */
void
ReachCheckJson(Reader *reader, const Place *place, const Jsonb *json, int from)
{
	if (json && (reader->warnings || memchr(&json->root, '$', VARSIZE(json) - VARHDRSZ) != NULL))
		CheckContainer(reader, place, unconstify(JsonbContainer *, &json->root), from);
}

/*
 * Check the references in a condition. With "itself", it may refer to its own
 * step.
 */
void
ReachCheckCondition(Reader *reader, const Place *place, const Condition *condition, int from, bool itself)
{
	if (condition == NULL)
		return;
	for (int i = 0; i < condition->noperands; i++)
	{
		const Reference *reference = condition->operands[i];

		if (!itself || !RefersTo(reader, reference, from))
			CheckReference(reader, place, reference, from);
	}
}
