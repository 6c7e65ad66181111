/*
 * plan_scope.c
 *	  the steps of a plan that exists, as the grammar of definitions sees them
 *
 * A part of a plan that is changed later is checked like a part of a
 * definition: by a reader whose scope has the steps of the plan.
 */
#include "api/api.h"

#include "utils/array.h"

/*
 * Read the names of the steps that a step depends on, as in a definition.
 * Equal names share one copy.
 */
static List *
ReadDependencies(Reader *reader, const Rows *rows, uint64 row, int column)
{
	List	   *depends = NIL;
	bool		isnull;
	Datum		array = RowDatum(rows, row, column, &isnull);
	DependencyDefinition *dependencies;
	Datum	   *names;
	int			count;

	if (isnull)
		return NIL;
	deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false, TYPALIGN_INT, &names, NULL, &count);
	dependencies = palloc_extended(sizeof(DependencyDefinition) * (count + 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (int i = 0; i < count; i++)
	{
		dependencies[i].name = ReaderKeep(reader, TextDatumGetCString(names[i]));
		depends = lappend(depends, &dependencies[i]);
	}
	pfree(names);
	return depends;
}

/* Give a reader the steps of the plan. Before it can check anything, PlanScopeOrder has to follow. */
void
PlanScopeRead(Reader *reader, const PlanRow *plan)
{
	static KeptQuery read = {
		"SELECT s.name, s.binding, s.workflow, (SELECT pg_catalog.array_agg(p.name::text ORDER BY p.step_order)"
		" FROM stepwise.dependency AS d"
		" JOIN stepwise.step AS p ON p.tenant = $1 AND p.id = d.depends_on WHERE d.tenant = $1 AND d.step_id = s.id)"
		" FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(reader->call, &read, &plan->id);
	StepDefinition *steps = palloc_extended(sizeof(StepDefinition) * (rows.count + 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	for (uint64 i = 0; i < rows.count; i++)
	{
		steps[i].order = i + 1;
		steps[i].name = RowText(&rows, i, 1);
		steps[i].binding = RowText(&rows, i, 2);
		steps[i].workflow = RowText(&rows, i, 3);
		steps[i].depends = ReadDependencies(reader, &rows, i, 4);
	}
	reader->scope = ScopeOfSteps(steps, (int) rows.count, NULL, 0);
	reader->scope->inputs = PlanInputNames(reader->call, plan);
	RowsFree(&rows);
}

/* Name the steps of the scope, and put them in order. */
void
PlanScopeOrder(Reader *reader, const PlanRow *plan)
{
	Place		place = {.key = "steps"};

	reader->depends = !plan->sequential;
	ScopeNameSteps(reader, &place);
	OrderSteps(reader, &place);
}
