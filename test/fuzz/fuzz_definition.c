/*
 * fuzz_definition.c
 *	  random definitions of workflows, mostly valid, with some spoilt values
 *
 * They are only generated here. fuzz.sql passes them to the SQL functions.
 */
#include "fuzz.h"

#include "mb/pg_wchar.h"
#include "utils/json.h"

PG_FUNCTION_INFO_V1(random_definition);

#define SPOILT	150				/* one of so many values is replaced by another */

/* a definition that is being written */
typedef struct Draft
{
	StringInfoData text;
	int			nsteps;
	int			step;			/* the step being written, 1-based; 0: none */
	bool		depends;		/* the steps declare dependencies */
	bool		comma;
} Draft;

static void WriteSteps(Draft *d, int count);

static void
WriteJsonString(Draft *d, const char *text)
{
	escape_json(&d->text, text);
}

/* Write a key, sometimes a wrong one. */
static void
WriteKey(Draft *d, const char *key)
{
	appendStringInfoString(&d->text, d->comma ? ", " : "");
	WriteJsonString(d, Draw(SPOILT) ? key : Mutate(key));
	appendStringInfoString(&d->text, ": ");
	d->comma = true;
}

/* Write something else instead of a value, if it is to be spoilt. */
static bool
Spoil(Draft *d)
{
	if (Draw(SPOILT))
		return false;
	appendStringInfoString(&d->text, RandomVal(2)->text);
	return true;
}

static void
WriteText(Draft *d, const char *key, const char *text)
{
	WriteKey(d, key);
	if (!Spoil(d))
		WriteJsonString(d, Draw(SPOILT) ? text : Mutate(text));
}

static void
WriteRaw(Draft *d, const char *key, const char *json)
{
	WriteKey(d, key);
	if (!Spoil(d))
		appendStringInfoString(&d->text, json);
}

static void
Open(Draft *d, char bracket)
{
	appendStringInfoChar(&d->text, bracket);
	d->comma = false;
}

static void
Close(Draft *d, char bracket)
{
	appendStringInfoChar(&d->text, bracket);
	d->comma = true;
}

/* Name a step that may be referred to from here, or sometimes any step. */
static char *
StepName(Draft *d)
{
	int			last = d->step == 0 || Draw(SPOILT) == 0 ? d->nsteps : d->step - 1;

	return psprintf("s-%d", 1 + Draw(Max(last, 1)));
}

static char *
RandomReferenceText(Draft *d)
{
	static const char *const fields[] = {
		"outputs", "outputs.x", "outputs.list.0", "inputs", "metadata.attempt", "metadata.failed", "succeeded", "failed", "skipped", "status",
		"outcome", "steps.inner.outputs.x"
	};

	if (d->step == 1 || Draw(3) == 0)
		return psprintf("${inputs.%s}", Draw(2) ? "a" : "b.c.0");
	if (Draw(8) == 0)
		return psprintf("${plan.%s}", Draw(2) ? "id" : "goal");
	return psprintf("${%s.%s.%s}", Draw(4) ? "steps" : "blocks", StepName(d), DRAW(fields));
}

static char *
RandomConditionText(Draft *d, bool branching)
{
	static const char *const bare[] = {"confidence < 0.5", "result.sources.count >= 3", "found", "outcome == 'failure'", "summary != null"};
	static const char *const rests[] = {"", " == 1", " >= 2.5", " in [1, 'a', null]", " != 'x' and true", " === null"};

	if (Draw(10) == 0)
		return RandomCondition(branching);
	if (Draw(10) == 0)
		return pstrdup("$.inputs.a == 1");
	if (branching && Draw(2))
		return pstrdup(DRAW(bare));
	return psprintf("%s%s%s", Draw(4) ? "" : "not ", RandomReferenceText(d), DRAW(rests));
}

static void
WriteArguments(Draft *d)
{
	static const char *const keys[] = {"x", "y z", "ключ", "list"};

	WriteKey(d, "arguments");
	Open(d, '{');
	for (int i = Draw(4); i > 0; i--)
	{
		if (Draw(3) == 0)
			WriteRaw(d, keys[i], RandomVal(2)->text);
		else
			WriteText(d, keys[i], Draw(2) ? RandomReferenceText(d) : psprintf("at %s and $${x}", RandomReferenceText(d)));
	}
	Close(d, '}');
}

static void
WriteDependsOn(Draft *d)
{
	static const char *const needs[] = {"\"required\": true", "\"required\": false", "\"when\": \"ended\""};
	bool		used[16] = {0};

	WriteKey(d, "dependsOn");
	Open(d, '[');
	for (int i = d->step > 1 ? 1 + Draw(3) : 0; i > 0; i--)
	{
		int			parent = Draw(SPOILT) ? 1 + Draw(d->step - 1) : 1 + Draw(d->nsteps);

		if (used[parent] && Draw(SPOILT))
			continue;
		used[parent] = true;
		appendStringInfoString(&d->text, d->comma ? ", " : "");
		d->comma = true;
		if (Spoil(d))
			continue;
		if (Draw(3))
			appendStringInfo(&d->text, "\"s-%d\"", parent);
		else
			appendStringInfo(&d->text, "{\"step\": \"s-%d\", %s}", parent, DRAW(needs));
	}
	Close(d, ']');
}

/* Write what the step does. */
static void
WriteWork(Draft *d)
{
	switch (Draw(4))
	{
		case 0:
			WriteText(d, "tool", "fetch");
			WriteArguments(d);
			if (Draw(4) == 0)
				WriteRaw(d, "resources", "[\"file:///a\", \"http://b\"]");
			break;
		case 1:
			WriteText(d, "prompt", psprintf("Go on with %s?", RandomReferenceText(d)));
			break;
		case 2:
			WriteText(d, "instructions", Draw(2) ? "Do it" : psprintf("Do %s", RandomReferenceText(d)));
			break;
		default:
			if (Draw(SPOILT) == 0)
				WriteText(d, "workflow", "nobody");
	}
}

static void
WriteStep(Draft *d)
{
	static const char *const types[] = {"search", "extract", "analyze", "critique", "synthesize", "checkpoint", "custom"};

	Open(d, '{');
	WriteText(d, "name", psprintf("s-%d", d->step));
	WriteWork(d);
	if (Draw(2))
		WriteText(d, "type", DRAW(types));
	if (d->depends)
		WriteDependsOn(d);
	if (Draw(2))
		WriteText(d, "condition", RandomConditionText(d, false));
	if (Draw(4) == 0)
		WriteText(d, "binding", psprintf("b%d", d->step));
	if (Draw(6) == 0)
		WriteRaw(d, "retryable", Draw(2) ? "true" : "false");
	if (Draw(6) == 0)
		WriteRaw(d, "maxAttempts", Draw(8) ? "3" : "1e3");
	if (Draw(6) == 0)
		WriteText(d, "stallAfter", "10 minutes");
	Close(d, '}');
}

static void
WriteSteps(Draft *d, int count)
{
	WriteKey(d, "steps");
	if (Spoil(d))
		return;
	Open(d, '[');
	for (d->step = 1; d->step <= count; d->step++)
	{
		appendStringInfoString(&d->text, d->comma ? ", " : "");
		WriteStep(d);
	}
	d->step = 0;
	Close(d, ']');
}

static void
WriteBranch(Draft *d)
{
	static const char *const actions[] = {"continue", "skip_to", "add_steps", "fail", "request_review"};
	int			action = Draw(lengthof(actions));
	int			after = 1 + Draw(Draw(SPOILT) ? Max(d->nsteps - 1, 1) : d->nsteps + 2);

	Open(d, '{');
	if (Draw(2))
		WriteRaw(d, "afterStepOrder", psprintf("%d", after));
	else
		WriteText(d, "afterStep", psprintf("s-%d", after));
	d->step = after;
	WriteText(d, "conditionExpression", RandomConditionText(d, true));
	d->step = 0;
	WriteText(d, "ifTrueAction", actions[action]);
	if (action == 1)
		WriteRaw(d, "actionParams", Draw(2) ? psprintf("{\"stepOrder\": %d}", after + 1)
				 : psprintf("{\"stepName\": \"s-%d\"}", after + 1));
	else if (action == 2)
		WriteRaw(d, "actionParams", "{\"steps\": [{\"name\": \"more\", \"instructions\": \"Look again at ${steps.s-1.outputs}\"}]}");
	else if (action == 3 && Draw(2))
		WriteRaw(d, "actionParams", "{\"reason\": \"no\"}");
	else if (action == 4)
		WriteRaw(d, "actionParams", "{\"summary\": \"look at ${result} ${plan.name}\", \"questions\": [\"ok, ${confidence ?? 0}?\"]}");
	Close(d, '}');
}

static void
WriteBranches(Draft *d)
{
	WriteKey(d, "branchingConditions");
	Open(d, '[');
	for (int i = Draw(3); i > 0; i--)
	{
		appendStringInfoString(&d->text, d->comma ? ", " : "");
		WriteBranch(d);
	}
	Close(d, ']');
}

static void
WriteInputs(Draft *d)
{
	static const char *const types[] = {"string", "number", "integer", "boolean", "array", "object"};

	WriteKey(d, "inputs");
	Open(d, '{');
	WriteRaw(d, "a", "{\"default\": 1}");
	WriteRaw(d, "b", psprintf("{\"required\": %s, \"description\": \"…\"}", Draw(2) ? "true" : "false"));
	if (Draw(4) == 0)
		WriteRaw(d, "c", psprintf("{\"type\": \"%s\", \"default\": %s}", DRAW(types), RandomVal(1)->text));
	Close(d, '}');
}

static void
WriteDefinition(Draft *d)
{
	static const char *const policies[] = {"continue", "pause", "fail"};

	d->nsteps = 1 + Draw(8);
	d->depends = Draw(2);
	Open(d, '{');
	WriteText(d, "name", "fuzz");
	WriteInputs(d);
	WriteSteps(d, d->nsteps);
	if (Draw(2))
		WriteBranches(d);
	if (Draw(2))
		WriteRaw(d, "outputs", psprintf("{\"x\": \"${steps.s-1.outputs}\", \"y\": %s}", RandomVal(1)->text));
	if (Draw(2))
		WriteText(d, "onFailure", DRAW(policies));
	if (Draw(6) == 0)
		WriteText(d, "stallAfter", "1 hour");
	if (Draw(6) == 0)
		WriteRaw(d, "separateReviewer", "true");
	Close(d, '}');
}

/* random_definition(seed bigint, number int) */
Datum
random_definition(PG_FUNCTION_ARGS)
{
	Draft		d = {0};

	StartCase(PG_GETARG_INT64(0), PG_GETARG_INT32(1));
	initStringInfo(&d.text);
	if (Draw(500))
		WriteDefinition(&d);
	else
		appendStringInfoString(&d.text, RandomVal(3)->text);
	PG_RETURN_JSONB_P(JsonFromText(d.text.data));
}
