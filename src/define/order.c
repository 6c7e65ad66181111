/*
 * order.c
 *	  dependencies between steps: waves, cycles, ancestors
 *
 * The steps of a scope are sorted so that each step comes after those on which
 * it depends (Kahn's algorithm). Steps that cannot be sorted are in a cycle,
 * or depend on one. Indexes here are 0-based among the scope's own steps;
 * numbers are those of the scope. Dependencies on steps of the outer scope are
 * not part of the graph: those steps exist already and cannot be in a cycle.
 *
 * The ancestor sets of all steps take n² bits, 12.5 MB for 10,000 steps. So
 * they are computed only when a reference needs them, and only as far as it
 * needs.
 */
#include "define/define.h"

#define CYCLE_SHOWN		20		/* names shown of a cycle */

/* the children of step i are children[first[i]] to children[first[i + 1] - 1] */
typedef struct Graph
{
	int		   *first;
	int		   *children;
	int		   *waiting;		/* number of parents that are not sorted yet */
} Graph;

/* ---------- from names to numbers ---------- */

/*
 * Find the step that a dependency names. Returns false if the dependency is
 * faulty.
 */
static bool
LinkDependency(Reader *reader, const Place *place, int number, DependencyDefinition *depends, int *last)
{
	const char *own = ScopeStep(reader->scope, number)->name;

	depends->parent = ScopeFindStep(reader->scope, depends->name);
	if (depends->parent == 0)
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, ScopeStepHint(reader, depends->name),
				"step \"%s\" does not exist", depends->name);
	else if (depends->parent == number)
		FaultAt(reader, place, ERRCODE_CIRCULAR_DEFINITION, "A step cannot depend on itself: remove this dependency.",
				"circular: %s%s%s", own, Arrow(), own);
	else if (last[depends->parent] == number)
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Name each step once.",
				"step \"%s\" is named twice", depends->name);
	else
	{
		last[depends->parent] = number;
		return true;
	}
	return false;
}

/* Link the dependencies of all steps, and drop those that are faulty. */
static void
LinkSteps(Reader *reader, const Place *place)
{
	Scope	   *scope = reader->scope;
	int		   *last = palloc0(sizeof(int) * (scope->offset + scope->nsteps + 1));

	for (int i = 0; i < scope->nsteps; i++)
	{
		StepDefinition *step = &scope->steps[i];
		Place		element = {.up = place, .index = i};
		Place		key = {.up = &element, .key = "dependsOn"};
		List	   *linked = NIL;
		ListCell   *cell;

		foreach(cell, step->depends)
		{
			DependencyDefinition *depends = lfirst(cell);
			Place		entry = {.up = &key, .index = depends->index};

			if (LinkDependency(reader, &entry, scope->offset + i + 1, depends, last))
				linked = lappend(linked, depends);
		}
		list_free(step->depends);
		step->depends = linked;
	}
	pfree(last);
}

/* ---------- sorting ---------- */

/* Find the index of a parent; -1: it is in the outer scope. */
static inline int
ParentIndex(const Scope *scope, const DependencyDefinition *depends)
{
	return depends->parent > scope->offset ? depends->parent - scope->offset - 1 : -1;
}

/* Build the graph from parents to children. */
static void
GraphBuild(const Scope *scope, Graph *graph)
{
	int			n = scope->nsteps;
	int		   *next = palloc(sizeof(int) * (n + 1));
	ListCell   *cell;

	graph->first = palloc0(sizeof(int) * (n + 2));
	graph->waiting = palloc0(sizeof(int) * (n + 1));
	for (int i = 0; i < n; i++)
		foreach(cell, scope->steps[i].depends)
	{
		int			parent = ParentIndex(scope, lfirst(cell));

		if (parent < 0)
			continue;
		graph->first[parent + 1]++;
		graph->waiting[i]++;
	}
	for (int i = 0; i < n; i++)
		graph->first[i + 1] += graph->first[i];

	memcpy(next, graph->first, sizeof(int) * (n + 1));
	graph->children = palloc(sizeof(int) * (graph->first[n] + 1));
	for (int i = 0; i < n; i++)
		foreach(cell, scope->steps[i].depends)
	{
		int			parent = ParentIndex(scope, lfirst(cell));

		if (parent >= 0)
			graph->children[next[parent]++] = i;
	}
	pfree(next);
}

/* Append a step to the sorted ones. Its wave is final then. */
static void
SortStep(Scope *scope, int index)
{
	StepDefinition *step = &scope->steps[index];
	ListCell   *cell;

	step->wave = 0;
	foreach(cell, step->depends)
	{
		const DependencyDefinition *depends = lfirst(cell);

		step->wave = Max(step->wave, ScopeStep(scope, depends->parent)->wave + 1);
	}
	scope->rank[index] = scope->nsorted;
	scope->sorted[scope->nsorted++] = index;
}

/* Sort the steps. */
static void
SortSteps(Scope *scope, Graph *graph)
{
	int			n = scope->nsteps;

	scope->sorted = palloc(sizeof(int) * (n + 1));
	scope->rank = palloc(sizeof(int) * (n + 1));
	scope->nsorted = 0;
	for (int i = 0; i < n; i++)
	{
		scope->rank[i] = -1;
		if (graph->waiting[i] == 0)
			SortStep(scope, i);
	}
	for (int done = 0; done < scope->nsorted; done++)
	{
		int			index = scope->sorted[done];

		for (int c = graph->first[index]; c < graph->first[index + 1]; c++)
			if (--graph->waiting[graph->children[c]] == 0)
				SortStep(scope, graph->children[c]);
	}
}

/* ---------- cycles ---------- */

/*
 * Find the first dependency of an unsorted step that is unsorted too. There is
 * one, or the step would be sorted.
 */
static const DependencyDefinition *
UnsortedParent(const Scope *scope, int index)
{
	ListCell   *cell;

	foreach(cell, scope->steps[index].depends)
	{
		int			parent = ParentIndex(scope, lfirst(cell));

		if (parent >= 0 && scope->rank[parent] < 0)
			return lfirst(cell);
	}
	elog(ERROR, "step \"%s\" is not sorted and waits for nothing", scope->steps[index].name);
	return NULL;				/* keep compiler quiet */
}

static int
UnsortedParentIndex(const Scope *scope, int index)
{
	return ParentIndex(scope, UnsortedParent(scope, index));
}

/*
 * Report the cycle on which a step lies, beginning with its first step in the
 * definition.
 */
static void
ReportCycle(Reader *reader, const Place *place, int index)
{
	const Scope *scope = reader->scope;
	StringInfoData names;
	int			start = index;
	int			length = 1;
	int			shown = 0;

	for (int i = UnsortedParentIndex(scope, index); i != index; i = UnsortedParentIndex(scope, i))
	{
		start = Min(start, i);
		length++;
	}

	initStringInfo(&names);
	for (int i = start; shown < length && shown < CYCLE_SHOWN; i = UnsortedParentIndex(scope, i))
	{
		appendStringInfo(&names, "%s%s", scope->steps[i].name, Arrow());
		shown++;
	}
	if (shown < length)
		appendStringInfo(&names, "(%d more)%s", length - shown, Arrow());
	appendStringInfoString(&names, scope->steps[start].name);

	{
		Place		element = {.up = place, .index = start};
		Place		key = {.up = &element, .key = "dependsOn"};
		Place		entry = {.up = &key, .index = UnsortedParent(scope, start)->index};

		FaultAt(reader, &entry, ERRCODE_CIRCULAR_DEFINITION,
				"Each step in the chain depends on the next; remove one of these dependencies.",
				"circular: %s", names.data);
	}
}

/*
 * Report every cycle that is found by going from each unsorted step to an
 * unsorted parent.
 */
static void
ReportCycles(Reader *reader, const Place *place)
{
	const Scope *scope = reader->scope;
	int		   *walk = palloc0(sizeof(int) * (scope->nsteps + 1));

	if (scope->nsorted < scope->nsteps)
		for (int i = 0; i < scope->nsteps; i++)
		{
			int			at = i;

			if (scope->rank[i] >= 0 || walk[i])
				continue;
			for (; walk[at] == 0; at = UnsortedParentIndex(scope, at))
				walk[at] = i + 1;
			if (walk[at] == i + 1)
				ReportCycle(reader, place, at);
		}
	pfree(walk);
}

/* ---------- entry points ---------- */

/*
 * Put the steps of the scope in order: link dependencies, compute waves,
 * report cycles. In a sequence each step is a wave of its own.
 */
void
OrderSteps(Reader *reader, const Place *place)
{
	Scope	   *scope = reader->scope;
	Graph		graph;

	scope->sequential = !reader->depends && (!scope->around || scope->around->sequential);
	if (scope->sequential)
	{
		for (int i = 0; i < scope->nsteps; i++)
			scope->steps[i].wave = scope->steps[i].order - 1;
		return;
	}
	LinkSteps(reader, place);
	GraphBuild(scope, &graph);
	SortSteps(scope, &graph);
	ReportCycles(reader, place);
}

/*
 * Compute the ancestors of a sorted step from those of its parents, which are
 * sorted before it.
 */
static uint64 *
AncestorsMake(const Scope *scope, int index, int words)
{
	uint64	   *set = palloc0(sizeof(uint64) * words);
	ListCell   *cell;

	foreach(cell, scope->steps[index].depends)
	{
		int			parent = ParentIndex(scope, lfirst(cell));

		if (parent < 0)
			continue;
		for (int w = 0; w < words; w++)
			set[w] |= scope->ancestors[parent][w];
		set[parent / 64] |= UINT64CONST(1) << (parent % 64);
	}
	return set;
}

/* Check whether one step is an ancestor of another. */
bool
OrderIsAncestor(Scope *scope, int ancestor, int step)
{
	int			words = (scope->nsteps + 63) / 64;
	int			above = ancestor - scope->offset - 1;
	int			below = step - scope->offset - 1;
	ListCell   *cell;

	/* most references are to a direct parent */
	foreach(cell, scope->steps[below].depends)
		if (((const DependencyDefinition *) lfirst(cell))->parent == ancestor)
		return true;

	/* the step depends on a cycle, which has been reported */
	if (scope->rank[below] < 0)
		return true;

	if (scope->ancestors == NULL)
		scope->ancestors = palloc0(sizeof(uint64 *) * scope->nsteps);
	for (; scope->nancestors <= scope->rank[below]; scope->nancestors++)
	{
		int			next = scope->sorted[scope->nancestors];

		scope->ancestors[next] = AncestorsMake(scope, next, words);
	}
	return (scope->ancestors[below][above / 64] >> (above % 64)) & 1;
}
