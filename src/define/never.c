/*
 * never.c
 *	  find the steps of a definition that nothing can make due
 *
 * Such a step is allowed, but hardly meant. Its condition is false whatever the
 * other steps achieve, or it requires a step that never runs. Only what is
 * certain is found: a value that is not known leaves a condition undecided.
 */
#include "define/define.h"

/* the values that fields of a step have after it has completed with success */
static const struct
{
	StepField	field;
	const char *text;			/* NULL: a boolean */
	bool		boolean;
}			AfterSuccess[] = {
	{FIELD_SUCCEEDED, NULL, true},
	{FIELD_FAILED, NULL, false},
	{FIELD_SKIPPED, NULL, false},
	{FIELD_STATUS, "completed", false},
	{FIELD_OUTCOME, "success", false},
};

/* Does the step require the step of this name to succeed? */
static bool
Requires(const StepDefinition *step, const char *name)
{
	ListCell   *cell;

	foreach(cell, step->depends)
	{
		const DependencyDefinition *depends = lfirst(cell);

		if (depends->need == NEED_SUCCESS && strcmp(depends->name, name) == 0)
			return true;
	}
	return false;
}

/* Find the value that an operand has whenever the condition is evaluated; NULL: it is not known. */
static JsonbValue *
CertainValue(const StepDefinition *step, const Reference *reference)
{
	JsonbValue *value = palloc0(sizeof(JsonbValue));

	if (reference->root != REF_STEPS || reference->nsteps != 1 || reference->npath != 0 ||
		!Requires(step, reference->steps[0]))
		return NULL;
	for (size_t i = 0; i < lengthof(AfterSuccess); i++)
	{
		if (AfterSuccess[i].field != reference->field)
			continue;
		value->type = AfterSuccess[i].text ? jbvString : jbvBool;
		value->val.boolean = AfterSuccess[i].boolean;
		if (AfterSuccess[i].text)
		{
			value->val.string.val = pstrdup(AfterSuccess[i].text);
			value->val.string.len = strlen(AfterSuccess[i].text);
		}
		return value;
	}
	return NULL;
}

/* Is the condition of a step false, whatever happens? */
static bool
IsAlwaysFalse(const StepDefinition *step)
{
	const Condition *condition = step->condition;
	JsonbValue **values;
	char	  **names;
	char	   *why = NULL;

	if (condition == NULL || condition->raw)
		return false;
	values = palloc0(sizeof(JsonbValue *) * (condition->noperands + 1));
	names = palloc0(sizeof(char *) * (condition->noperands + 1));
	for (int i = 0; i < condition->noperands; i++)
	{
		values[i] = CertainValue(step, condition->operands[i]);
		names[i] = condition->operands[i]->source;
	}
	return ConditionEvaluate(condition->path, ConditionDocument(condition->noperands, values), condition->noperands,
							 names, &why) == CONDITION_FALSE;
}

/* Find a required parent that never runs; NULL: none. */
static const DependencyDefinition *
NeverRunParent(const StepDefinition *step, const bool *never)
{
	ListCell   *cell;

	foreach(cell, step->depends)
	{
		const DependencyDefinition *depends = lfirst(cell);

		if (depends->need == NEED_SUCCESS && never[depends->parent - 1])
			return depends;
	}
	return NULL;
}

/* Warn about the steps that require one that never runs. Returns whether there were new ones. */
static bool
WarnBelow(const Definition *definition, bool *never, Faults *warnings)
{
	bool		found = false;

	for (int i = 0; i < definition->nsteps; i++)
	{
		const StepDefinition *step = &definition->steps[i];
		const DependencyDefinition *parent = never[i] ? NULL : NeverRunParent(step, never);

		if (parent == NULL)
			continue;
		FaultAdd(warnings, 0, psprintf("steps[%d].dependsOn[%d]", i, parent->index), "Change the condition of that step, or this dependency.",
				 "step \"%s\" can never be due: it requires step \"%s\", which never runs", step->name, parent->name);
		never[i] = found = true;
	}
	return found;
}

/* Warn about the steps that nothing can make due. The definition must have no faults. */
void
WarnNeverDue(const Definition *definition, Faults *warnings)
{
	bool	   *never = palloc0(sizeof(bool) * (definition->nsteps + 1));
	bool		found = false;

	for (int i = 0; i < definition->nsteps; i++)
	{
		if (!IsAlwaysFalse(&definition->steps[i]))
			continue;
		FaultAdd(warnings, 0, psprintf("steps[%d].condition", i), "Change the condition, or let the dependency be optional.",
				 "step \"%s\" can never be due: its condition is false whenever its dependencies let it run",
				 definition->steps[i].name);
		never[i] = found = true;
	}
	while (found)
		found = WarnBelow(definition, never, warnings);
}
