/*
 * circle.c
 *	  find the workflows that a workflow calls, and circles of such calls
 *
 * A workflow calls another one where a step nests it, or where a branch may
 * add such a step.
 */
#include "define/define.h"

#include "miscadmin.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/numeric.h"

/* ---------- the calls of a definition ---------- */

typedef struct NestedCall
{
	char	   *name;
	int			version;		/* 0: the newest */
} NestedCall;

/* Append the calls in an array of steps. */
static List *
CollectCalls(List *calls, const Jsonb *steps)
{
	JsonbValue	step;

	for (int i = 0; JsonGetIndex(steps, i, &step); i++)
	{
		Jsonb	   *json = JsonFromValue(&step);
		char	   *name = JsonGetText(json, "workflow");
		NestedCall *nested;
		JsonbValue	version;

		if (name == NULL)
			continue;
		nested = palloc0(sizeof(NestedCall));
		nested->name = name;
		if (JsonGet(json, "version", &version) && version.type == jbvNumeric)
			nested->version = DatumGetInt32(DirectFunctionCall1(numeric_int4,
																NumericGetDatum(version.val.numeric)));
		calls = lappend(calls, nested);
	}
	return calls;
}

/* List the calls in a stored definition, including steps that a branch may add. */
static List *
DefinitionCalls(const Jsonb *definition)
{
	List	   *calls = CollectCalls(NIL, JsonGetJson(definition, "steps"));
	Jsonb	   *branches = JsonGetJson(definition, "branchingConditions");
	JsonbValue	branch;

	for (int i = 0; JsonGetIndex(branches, i, &branch); i++)
	{
		Jsonb	   *params = JsonGetJson(JsonFromValue(&branch), "actionParams");

		calls = CollectCalls(calls, JsonGetJson(params, "steps"));
	}
	return calls;
}

/*
 * List the calls of a stored workflow. Definitions may be large and many, so
 * only the calls stay in memory.
 */
static List *
WorkflowCalls(Call *call, const NestedCall *nested)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise calls", ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(scratch);
	List	   *found = DefinitionCalls(WorkflowDefinition(call, nested->name, nested->version));
	List	   *calls = NIL;
	ListCell   *cell;

	MemoryContextSwitchTo(outer);
	foreach(cell, found)
	{
		NestedCall *copy = palloc(sizeof(NestedCall));

		copy->name = pstrdup(((NestedCall *) lfirst(cell))->name);
		copy->version = ((NestedCall *) lfirst(cell))->version;
		calls = lappend(calls, copy);
	}
	MemoryContextDelete(scratch);
	return calls;
}

/* ---------- circles ---------- */

/* a walk along calls */
typedef struct Walk
{
	Call	   *call;
	List	   *chain;			/* of names, from the start of the walk to where it is */
	struct names_hash *on_chain;	/* the same names, to look them up */
	struct names_hash *followed;	/* workflows that need not be followed again */
} Walk;

/* Spell a chain of calls, from the first occurrence of its last name. */
static char *
SpellChain(List *chain)
{
	StringInfoData text;
	bool		inside = false;
	ListCell   *cell;

	initStringInfo(&text);
	foreach(cell, chain)
	{
		inside = inside || strcmp(lfirst(cell), llast(chain)) == 0;
		if (inside)
			appendStringInfo(&text, "%s%s", text.len ? Arrow() : "", (char *) lfirst(cell));
	}
	return text.data;
}

/*
 * Follow the calls of a workflow, each workflow once. Returns a chain that
 * comes back to one of its names, spelled out, or NULL.
 */
static char *
FindCircle(Walk *walk, const NestedCall *nested)
{
	char	   *key = psprintf("%s@%d", nested->name, nested->version);
	char	   *circle = NULL;
	ListCell   *cell;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	walk->chain = lappend(walk->chain, nested->name);
	if (NamesFind(walk->on_chain, nested->name))
		return SpellChain(walk->chain);
	if (!NamesFind(walk->followed, key))
	{
		NamesSet(walk->on_chain, nested->name, 1);
		foreach(cell, WorkflowCalls(walk->call, nested))
		{
			circle = FindCircle(walk, lfirst(cell));
			if (circle)
				return circle;
		}
		NamesSet(walk->on_chain, nested->name, 0);
		NamesSet(walk->followed, key, 1);
	}
	walk->chain = list_delete_last(walk->chain);
	return NULL;
}

/*
 * Check whether a call leads back to the workflow that is being defined, or to
 * the workflows in which the steps are nested.
 */
static char *
CircleOfCall(Reader *reader, const NestedCall *nested)
{
	Walk		walk = {.call = reader->call, .on_chain = NamesNew(8)};
	ListCell   *cell;

	if (reader->followed == NULL)
		reader->followed = NamesNew(8);
	walk.followed = reader->followed;
	walk.chain = reader->self ? list_make1(unconstify(char *, reader->self)) : list_copy(reader->callers);
	foreach(cell, walk.chain)
		NamesSet(walk.on_chain, lfirst(cell), 1);
	return FindCircle(&walk, nested);
}

/*
 * Check a step that calls a workflow. The workflow must exist, and must not
 * lead back to a workflow that calls it. If recursion is allowed, a workflow
 * may name itself before it exists.
 */
void
WorkflowCheckCall(Reader *reader, const Place *place, const char *name, int version)
{
	NestedCall	nested = {.name = unconstify(char *, name), .version = version};
	bool		itself = reader->self && strcmp(name, reader->self) == 0;
	char	   *key = psprintf("%s@%d", name, version);
	char	   *circle = NULL;

	if (reader->workflows == NULL)
		reader->workflows = NamesNew(8);
	if (NamesFind(reader->workflows, key))
		return;

	if (!AllowRecursion)
		circle = CircleOfCall(reader, &nested);
	if (circle)
		FaultAt(reader, place, ERRCODE_CIRCULAR_DEFINITION,
				"Each workflow in the chain calls the next; only with stepwise.allow_recursion may it come back.",
				"circular: %s", circle);
	else if (!(itself && version == 0) && !WorkflowExists(reader->call, name, version))
		FaultAt(reader, place, ERRCODE_NAME_NOT_FOUND, WorkflowHint(reader->call, reader->faults, name),
				"%s does not exist", WorkflowLabel(name, version));
	else
		NamesAdd(reader->workflows, key, 1);
}
