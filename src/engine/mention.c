/*
 * mention.c
 *	  find where the steps of a plan name each other
 *
 * A mention is a reference to a step or a binding in a text, a value or a
 * condition. It is also a name in dependsOn of a step that a branch may add.
 * Dependencies between existing steps, and targets of branches, are stored by
 * id; they are not mentions. The branches of a step that is completed or
 * skipped are left out, because they are never evaluated again.
 *
 * Templates and conditions were parsed when they were accepted. If one does not
 * parse now, it counts as having no mentions.
 */
#include "engine/engine.h"

#include "utils/array.h"

/* a walk through the templates and conditions of a plan */
typedef struct Walk
{
	List	   *found;			/* of Mention */
	int			order;			/* of the current place, as in Mention */
	const char *place;
	bool		branch;
} Walk;

/* Add a mention at the current place. */
static Mention *
MentionAdd(Walk *walk, char *name, char *source)
{
	Mention    *mention = palloc0(sizeof(Mention));

	mention->order = walk->order;
	mention->place = walk->place;
	mention->branch = walk->branch;
	mention->name = name;
	mention->source = source;
	walk->found = lappend(walk->found, mention);
	return mention;
}

/* Add a reference if it names a step or a binding. */
static void
AddReference(Walk *walk, const Reference *reference)
{
	if (reference == NULL || (reference->root != REF_STEPS && reference->root != REF_BINDINGS))
		return;
	MentionAdd(walk, reference->steps[0], psprintf("${%s}", reference->source))->binding = reference->root == REF_BINDINGS;
}

/* Add the references in a text. */
static void
WalkText(Walk *walk, const char *text)
{
	ParseFault	fault = {0};
	ListCell   *cell;

	if (text == NULL || !ReferenceOccurs(text))
		return;
	foreach(cell, ReferenceScan(text, walk->branch, &fault))
		AddReference(walk, ((const TextPart *) lfirst(cell))->reference);
}

/* Add the references in all strings of a value. */
static void
WalkJson(Walk *walk, const Jsonb *json)
{
	JsonbIterator *iterator;
	JsonbValue	value;
	JsonbIteratorToken token;

	if (json == NULL)
		return;
	iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &json->root));
	while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
		if ((token == WJB_VALUE || token == WJB_ELEM) && value.type == jbvString)
			WalkText(walk, JsonValueText(&value));
}

/* Add the references that a compiled condition reads. */
static void
WalkOperands(Walk *walk, struct varlena *operands, bool branching)
{
	Datum	   *sources;
	int			count;

	if (operands == NULL)
		return;
	deconstruct_array(DatumGetArrayTypeP(PointerGetDatum(operands)), TEXTOID, -1, false, TYPALIGN_INT, &sources, NULL, &count);
	for (int i = 0; i < count; i++)
	{
		ParseFault	fault = {0};

		AddReference(walk, ReferenceParse(TextDatumGetCString(sources[i]), 1, branching, &fault));
	}
}

/* ---------- one step ---------- */

/* Add the references in one step, without its branches. */
static void
WalkStep(Walk *walk, const StepRow *step)
{
	walk->order = step->order;
	walk->place = "instructions";
	WalkText(walk, TextOf(step->instructions));
	walk->place = "prompt";
	WalkText(walk, TextOf(step->prompt));
	walk->place = "arguments";
	WalkJson(walk, JsonOf(step->arguments));
	walk->place = "resources";
	WalkJson(walk, JsonOf(step->resources));
	walk->place = "review";
	WalkJson(walk, JsonOf(step->review));
	walk->place = "condition";
	WalkOperands(walk, step->condition_operands, false);
}

/* List the mentions in one step, without its branches. */
List *
StepMentions(const StepRow *step)
{
	Walk		walk = {0};

	WalkStep(&walk, step);
	return walk.found;
}

/* ---------- a plan ---------- */

/* Add the references in the steps of a plan. Steps without any are not read. */
static void
WalkSteps(Call *call, const PlanRow *plan, Walk *walk)
{
	static KeptQuery read = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND (s.dynamic OR s.condition_operands IS NOT NULL) ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &read, &plan->id);

	for (uint64 i = 0; i < rows.count; i++)
		WalkStep(walk, RowStep(&rows, i));
	RowsFree(&rows);
}

/* Add what is named by the steps that a branch may add: references and dependencies. */
static void
WalkAddedSteps(Walk *walk, const Jsonb *steps)
{
	JsonbValue	step;

	WalkJson(walk, steps);
	for (int i = 0; JsonGetIndex(steps, i, &step); i++)
	{
		Jsonb	   *depends = JsonGetJson(JsonFromValue(&step), "dependsOn");
		JsonbValue	parent;

		for (int j = 0; JsonGetIndex(depends, j, &parent); j++)
		{
			char	   *name = parent.type == jbvString ? JsonValueText(&parent) : JsonGetText(JsonFromValue(&parent), "step");

			if (name != NULL)
				MentionAdd(walk, name, psprintf("dependsOn \"%s\"", name));
		}
	}
}

/* Add what is named by the branches of a plan. */
static void
WalkBranches(Call *call, const PlanRow *plan, Walk *walk)
{
	static KeptQuery read = {
		"SELECT s.step_order, b.operands, b.params FROM stepwise.step AS s"
		" JOIN stepwise.branching_condition AS b ON b.tenant = $1 AND b.step_id = s.id"
		" WHERE s.tenant = $1 AND s.plan_id = $2 AND s.branches AND s.status NOT IN ('completed', 'skipped')"
		" ORDER BY s.step_order, b.position",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &read, &plan->id);

	walk->branch = true;
	walk->place = "branchingConditions";
	for (uint64 i = 0; i < rows.count; i++)
	{
		walk->order = RowInt(&rows, i, 1);
		WalkOperands(walk, RowVarlena(&rows, i, 2), true);
		WalkAddedSteps(walk, JsonGetJson(RowJson(&rows, i, 3), "steps"));
		WalkText(walk, JsonGetText(RowJson(&rows, i, 3), "summary"));
		WalkJson(walk, JsonGetJson(RowJson(&rows, i, 3), "questions"));
	}
	walk->branch = false;
	RowsFree(&rows);
}

/* Add the references in the outputs of a plan. */
static void
WalkOutputs(Call *call, PlanRow *plan, Walk *walk)
{
	walk->order = 0;
	walk->place = "outputs";
	WalkJson(walk, JsonOf(PlanDetailOf(call, plan)->outputs));
}

/* List the mentions in a plan: in its steps, then in their branches, then in its outputs. */
List *
PlanMentions(Call *call, PlanRow *plan)
{
	Walk		walk = {0};

	WalkSteps(call, plan, &walk);
	WalkBranches(call, plan, &walk);
	WalkOutputs(call, plan, &walk);
	return walk.found;
}
