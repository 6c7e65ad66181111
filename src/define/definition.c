/*
 * definition.c
 *	  accept a definition: of a workflow, of a plan, or of steps to be added
 *
 * Reading does not stop at a fault. The faults are collected, and the caller
 * raises them.
 */
#include "define/define.h"

/* a definition, and the part of it that is read last */
typedef struct Draft
{
	Definition	definition;
	JsonbValue *branching;
	char	   *on_failure;
} Draft;

/* Read the word of onFailure. */
static void
ReadOnFailure(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	ReadWord(reader, place, value, OnFailureName, ON_FAILURES, field);
}

static const KeyRule DefinitionKeys[] = {
	{"name", ReadTitle, offsetof(Draft, definition.name), true},
	{"description", ReadNote, offsetof(Draft, definition.description), false},
	{"steps", ReadSteps, offsetof(Draft, definition.steps), true},
	{"branchingConditions", ReadLater, offsetof(Draft, branching), false},
	{"outputs", ReadObject, offsetof(Draft, definition.outputs), false},
	{"onFailure", ReadOnFailure, offsetof(Draft, on_failure), false},
	{"stallAfter", ReadInterval, offsetof(Draft, definition.stall_after), false},
	{"separateReviewer", ReadBool, offsetof(Draft, definition.separate_reviewer), false},
	{"strictOrder", ReadBool, offsetof(Draft, definition.strict_order), false},
	{"outputFormattingNotes", ReadNote, offsetof(Draft, definition.output_formatting_notes), false},
	/* this key must be the last one: a plan without a workflow has values instead */
	{"inputs", ReadInputs, offsetof(Draft, definition.inputs), false},
};
#define WORKFLOW_KEYS	lengthof(DefinitionKeys)
#define PLAN_KEYS		(WORKFLOW_KEYS - 1)

static const Place Root = {.key = ""};

/* Find what a failed step does to the plan; the default depends on the order of the steps. */
static OnFailure
OnFailureOf(const Draft *draft)
{
	if (draft->on_failure)
		return NameIndex(draft->on_failure, OnFailureName, ON_FAILURES);
	return draft->definition.sequential ? ON_FAILURE_STOP : ON_FAILURE_CONTINUE;
}

/* Check the definition as a whole, after all of it has been read. */
static void
CheckDefinition(Reader *reader, Draft *draft)
{
	Definition *definition = &draft->definition;
	Place		steps = {.up = &Root, .key = "steps"};
	Place		branching = {.up = &Root, .key = "branchingConditions"};
	Place		outputs = {.up = &Root, .key = "outputs"};
	Place		strict = {.up = &Root, .key = "strictOrder"};

	CheckSteps(reader, &steps);
	definition->nsteps = reader->scope->nsteps;
	definition->sequential = reader->scope->sequential;
	definition->on_failure = OnFailureOf(draft);
	definition->on_failure_given = draft->on_failure != NULL;
	if (definition->strict_order && !definition->sequential)
		FaultAt(reader, &strict, ERRCODE_INVALID_DEFINITION, "Leave out strictOrder, or dependsOn.",
				"strictOrder is for a sequence, and a step has dependsOn");
	ReachCheckJson(reader, &outputs, definition->outputs, 0);
	if (draft->branching)
		definition->branches = ReadBranches(reader, &branching, draft->branching);
}

/* Accept the definition of a workflow. Warnings are collected unless they are NULL. */
Definition *
DefinitionAccept(Call *call, const Jsonb *json, Faults *faults, Faults *warnings)
{
	Reader		reader = {.call = call, .faults = faults, .warnings = warnings, .inputs_declared = true};
	Draft	   *draft = palloc0(sizeof(Draft));
	JsonbValue	value;

	JsonToValue(json, &value);
	ReadKeys(&reader, &Root, &value, DefinitionKeys, WORKFLOW_KEYS, draft, "a definition");
	reader.self = draft->definition.name;
	if (reader.scope)
	{
		reader.scope->inputs = draft->definition.inputs;
		CheckDefinition(&reader, draft);
	}
	return &draft->definition;
}

/*
 * Accept the definition of one plan. Its inputs are values (an object or
 * NULL), and each of them can be referred to by its name.
 */
Definition *
DefinitionAcceptPlan(Call *call, const Jsonb *json, const Jsonb *inputs, Faults *faults)
{
	Reader		reader = {.call = call, .faults = faults};
	Draft	   *draft = palloc0(sizeof(Draft));
	JsonbValue	value;

	JsonToValue(json, &value);
	ReadKeys(&reader, &Root, &value, DefinitionKeys, PLAN_KEYS, draft, "a plan");
	if (reader.scope)
	{
		reader.scope->inputs = inputs;
		CheckDefinition(&reader, draft);
	}
	return &draft->definition;
}

/* Make the scope of the steps that a plan has. */
static Scope *
ScopeOfKnown(const KnownStep *known, int nknown, bool sequential)
{
	StepDefinition *steps = palloc_extended(sizeof(StepDefinition) * (nknown + 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	Scope	   *scope = ScopeOfSteps(steps, nknown, NULL, 0);

	scope->sequential = sequential;
	for (int i = 0; i < nknown; i++)
	{
		steps[i].order = i + 1;
		steps[i].name = known[i].name;
		steps[i].binding = known[i].binding;
		steps[i].workflow = known[i].workflow;
		steps[i].wave = known[i].wave;
		NamesAdd(scope->names, known[i].name, i + 1);
		if (known[i].binding)
			NamesAdd(scope->bindings, known[i].binding, i + 1);
	}
	return scope;
}

/*
 * Accept steps that are to be added to a plan after the step of order "after".
 * Their orders follow it. Parents are numbers: 1 to nknown are the steps that
 * the plan has, then come the new ones. "callers" are the workflows in which
 * the steps are nested.
 */
Definition *
DefinitionAcceptSteps(Call *call, const Jsonb *steps, const KnownStep *known, int nknown, int after,
					  bool sequential, const Jsonb *inputs, List *callers, Faults *faults)
{
	Reader		reader = {.call = call, .faults = faults, .callers = callers};
	Place		place = {.key = "steps"};
	Definition *definition = palloc0(sizeof(Definition));
	Scope	   *around = ScopeOfKnown(known, nknown, sequential);
	Scope	   *scope;
	JsonbValue	value;

	around->inputs = inputs;
	JsonToValue(steps, &value);
	scope = ReadAddedSteps(&reader, &place, &value, around, after);
	definition->steps = scope->steps;
	definition->nsteps = scope->nsteps;
	definition->sequential = scope->sequential;
	return definition;
}
