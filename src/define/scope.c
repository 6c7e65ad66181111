/*
 * scope.c
 *	  the steps that a definition can name, and their names
 *
 * Steps have numbers. Steps that are added to a plan have a scope of their own
 * inside the scope of the plan's steps, whose numbers come first.
 */
#include "define/define.h"

/*
 * Make the scope of some steps. If they are to be added to other steps,
 * "around" is the scope of those, and "after" the order after which they are
 * added.
 */
Scope *
ScopeOfSteps(StepDefinition *steps, int nsteps, Scope *around, int after)
{
	Scope	   *scope = palloc0(sizeof(Scope));

	scope->around = around;
	scope->after = after;
	scope->offset = around ? around->offset + around->nsteps : 0;
	scope->steps = steps;
	scope->nsteps = nsteps;
	scope->names = NamesNew(nsteps);
	scope->bindings = NamesNew(8);
	return scope;
}

/* Find a step by its number. */
StepDefinition *
ScopeStep(const Scope *scope, int number)
{
	while (number <= scope->offset)
		scope = scope->around;
	return &scope->steps[number - scope->offset - 1];
}

/* Find the number of the step that has a name; 0: none. */
int
ScopeFindStep(const Scope *scope, const char *name)
{
	int			number = 0;

	for (; scope && number == 0; scope = scope->around)
		number = NamesFind(scope->names, name);
	return number;
}

/* Find the number of the step that has a binding; 0: none. */
int
ScopeFindBinding(const Scope *scope, const char *name)
{
	int			number = 0;

	for (; scope && number == 0; scope = scope->around)
		number = NamesFind(scope->bindings, name);
	return number;
}

/* ---------- hints ---------- */

/* Collect the names of all steps, or all bindings, for a hint. */
static const char **
AllNames(const Scope *scope, bool bindings, int *count)
{
	int			total = scope->offset + scope->nsteps;
	const char **names = palloc(sizeof(char *) * Max(total, 1));

	*count = 0;
	for (int number = 1; number <= total; number++)
	{
		const StepDefinition *step = ScopeStep(scope, number);
		const char *name = bindings ? step->binding : step->name;

		if (name)
			names[(*count)++] = name;
	}
	return names;
}

/* Make the hint for an unknown step or binding. */
static char *
NameHint(Reader *reader, const char *name, bool bindings)
{
	int			count;
	const char **names;

	if (!HintsWanted(reader->faults))
		return NULL;
	names = AllNames(reader->scope, bindings, &count);
	return WordHint(reader->faults, name, names, count, bindings ? "bindings" : "steps");
}

/* Make the hint for an unknown step. */
char *
ScopeStepHint(Reader *reader, const char *name)
{
	return NameHint(reader, name, false);
}

/* Make the hint for an unknown binding. */
char *
ScopeBindingHint(Reader *reader, const char *name)
{
	return NameHint(reader, name, true);
}

/* ---------- naming the steps ---------- */

/* Enter the names that the definition gives. Each must be new. */
static void
EnterGivenNames(Reader *reader, const Place *place)
{
	Scope	   *scope = reader->scope;

	for (int i = 0; i < scope->nsteps; i++)
	{
		StepDefinition *step = &scope->steps[i];
		Place		element = {.up = place, .index = i};

		step->named = step->name != NULL;
		if (step->name && (ScopeFindStep(scope, step->name) ||
						   !NamesAdd(scope->names, step->name, scope->offset + i + 1)))
			FaultAt(reader, &((Place) {.up = &element, .key = "name"}), ERRCODE_INVALID_DEFINITION,
					"Names of steps are unique in their plan.",
					"name \"%s\" is taken by another step", step->name);
		if (step->binding && (ScopeFindBinding(scope, step->binding) ||
							  !NamesAdd(scope->bindings, step->binding, scope->offset + i + 1)))
			FaultAt(reader, &((Place) {.up = &element, .key = "binding"}), ERRCODE_INVALID_DEFINITION,
					"Bindings are unique in their plan.",
					"binding \"%s\" is taken by another step", step->binding);
	}
}

/*
 * Name the steps. A step without a name gets one by its number; numbers whose
 * name another step has are passed over.
 */
void
ScopeNameSteps(Reader *reader, const Place *place)
{
	Scope	   *scope = reader->scope;
	int			number = scope->offset;

	EnterGivenNames(reader, place);
	for (int i = 0; i < scope->nsteps; i++)
	{
		StepDefinition *step = &scope->steps[i];

		number = Max(number + 1, scope->offset + i + 1);
		if (step->name)
			continue;
		while (ScopeFindStep(scope, step->name = psprintf("step_%d", number)))
			number++;
		NamesAdd(scope->names, step->name, scope->offset + i + 1);
	}
}
