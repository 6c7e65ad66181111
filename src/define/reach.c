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

/* ---------- texts, values and conditions ---------- */

/* Check the references in a text. */
void
ReachCheckText(Reader *reader, const Place *place, const char *text, int from)
{
	ParseFault	fault = {0};
	List	   *parts;
	ListCell   *cell;

	if (text == NULL || !ReferenceOccurs(text))
		return;
	if (from)
		ScopeStep(reader->scope, from)->dynamic = true;

	parts = ReferenceScan(text, &fault);
	if (fault.message)
	{
		FaultAt(reader, place, ERRCODE_UNRESOLVED_REFERENCE, fault.hint,
				"%s at column %d", fault.message, fault.column);
		return;
	}
	foreach(cell, parts)
	{
		const TextPart *part = lfirst(cell);

		if (part->reference)
			CheckReference(reader, place, part->reference, from);
	}
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
				 memchr(value.val.string.val, '$', value.val.string.len) != NULL)
			ReachCheckText(reader, &member, JsonValueText(&value), from);
	}
}

/* Check the references in a value. */
void
ReachCheckJson(Reader *reader, const Place *place, const Jsonb *json, int from)
{
	if (json)
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

		if (itself && reference->root == REF_STEPS &&
			ScopeFindStep(reader->scope, reference->steps[0]) == from)
			continue;
		if (itself && reference->root == REF_BINDINGS &&
			ScopeFindBinding(reader->scope, reference->steps[0]) == from)
			continue;
		CheckReference(reader, place, reference, from);
	}
}
