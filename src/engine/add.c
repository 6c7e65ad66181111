/*
 * add.c
 *	  add steps to a plan that exists
 *
 * Steps come from modify_plan and from branching conditions. They are checked
 * by the grammar of definitions, together with the steps that the plan has.
 *
 * Locks: the caller holds the locks of the root and of the plan.
 */
#include "engine/engine.h"

#include "miscadmin.h"
#include "utils/array.h"

/* a step that the plan has already */
typedef struct PresentStep
{
	pg_uuid_t	id;
	StepStatus	status;
	Outcome		outcome;
} PresentStep;

/* the steps that are being added, and those that the plan has */
typedef struct Addition
{
	PlanRow    *plan;
	int			after;			/* order of the step before the new ones; 0: none */
	const Definition *definition;
	PresentStep *present;
	int			npresent;
	pg_uuid_t  *ids;			/* of the new steps */
	char	  **skip;			/* for each new step: why it has to be skipped, or NULL */
} Addition;

/* a row of a step, both as the grammar needs it and with its state */
typedef struct AddedTo
{
	KnownStep	known;
	PresentStep present;
} AddedTo;

static void *
AddedToMake(TupleTableSlot *slot)
{
	AddedTo    *step = palloc0(sizeof(AddedTo));

	step->known.name = ColumnText(slot, STEP_COL_NAME);
	step->known.binding = ColumnText(slot, STEP_COL_BINDING);
	step->known.workflow = ColumnText(slot, STEP_COL_WORKFLOW);
	step->known.wave = ColumnInt(slot, STEP_COL_WAVE);
	step->present.id = ColumnUuid(slot, STEP_COL_ID);
	step->present.status = EnumIndex(DatumGetObjectId(ColumnDatum(slot, STEP_COL_STATUS)), StepStatusName, STEP_STATUSES);
	step->present.outcome = EnumIndex(DatumGetObjectId(ColumnDatum(slot, STEP_COL_OUTCOME)), OutcomeName, OUTCOMES);
	return step;
}

/* Read the steps of a plan in order, both as the grammar needs them and with their states. */
static KnownStep *
ReadKnownSteps(Call *call, const PlanRow *plan, PresentStep **present, int *count)
{
	Key			key = {.call = call};
	KnownStep  *known;
	List	   *steps;

	if (call->kept != NULL)
		call->save(call, call, 0);
	KeyUuid(&key, &plan->id);
	steps = TableReadAll("step", "step_order_unique", &key, AddedToMake);
	*count = list_length(steps);
	known = palloc0(sizeof(KnownStep) * Max(*count, 1));
	*present = palloc0(sizeof(PresentStep) * Max(*count, 1));
	for (int i = 0; i < *count; i++)
	{
		const AddedTo *step = list_nth(steps, i);

		known[i] = step->known;
		(*present)[i] = step->present;
	}
	return known;
}

/* Check whether a plan has steps after an order. Most steps are added at the end. */
static bool
HasStepAfter(Call *call, const PlanRow *plan, int order)
{
	Key			key = IdKey(call, &plan->id);

	KeyIntFrom(&key, order + 1);
	return TableRead("step", "step_order_unique", &key, NULL, NULL, AddedToMake) != NULL;
}

/*
 * Add the given number to the order of all later steps. This makes room for new
 * steps, or closes the gap after a removed one.
 */
void
ShiftSteps(Call *call, PlanRow *plan, int after, int by)
{
	static KeptQuery shift = {
		"UPDATE stepwise.step SET step_order = step_order + $4, wave = CASE WHEN $5 THEN step_order + $4 - 1 ELSE wave END"
		" WHERE tenant = $1 AND plan_id = $2 AND step_order > $3",
		5, {TEXTOID, UUIDOID, INT4OID, INT4OID, BOOLOID}
	};
	Params		params = {0};

	if (!HasStepAfter(call, plan, after))
		return;
	ReadyListClose(call, plan);
	ParamKey(&params, call, &plan->id);
	ParamInt(&params, after);
	ParamInt(&params, by);
	ParamBool(&params, plan->sequential);
	QueryRun(&shift, &params);
}

/* Find the id of a step by its number: the steps of the plan come first, then the new ones. */
static const pg_uuid_t *
AdditionStepId(const Addition *a, int number)
{
	return number <= a->npresent ? &a->present[number - 1].id : &a->ids[number - a->npresent - 1];
}

/*
 * Say whether a step has ended in this call and PlanDrain has not looked at its
 * dependents yet. PlanDrain will find the new dependents too.
 */
static bool
IsSettling(const PlanRow *plan, const pg_uuid_t *step_id)
{
	for (int i = plan->drained; i < list_length(plan->settled); i++)
		if (UuidEqual(&((StepRow *) list_nth(plan->settled, i))->id, step_id))
			return true;
	return false;
}

/*
 * Count the parents that a new step has to wait for. A parent that has ended does
 * not count. If it does not let the step run, note why the step is skipped.
 */
static int
AdditionBlockers(Addition *a, int i, const KnownStep *known)
{
	int			blockers = 0;
	ListCell   *cell;

	foreach(cell, a->definition->steps[i].depends)
	{
		DependencyDefinition *dependency = lfirst(cell);
		DependentVerdict verdict = DEPENDENT_WAITS;

		if (dependency->parent <= a->npresent && !IsSettling(a->plan, &a->present[dependency->parent - 1].id))
			verdict = DependentVerdictOf(a->plan, a->present[dependency->parent - 1].status,
										 a->present[dependency->parent - 1].outcome, dependency->need);
		if (verdict == DEPENDENT_WAITS)
			blockers++;
		else if (verdict == DEPENDENT_SKIPPED)
		{
			if (a->skip[i] != NULL)
				pfree(a->skip[i]);
			a->skip[i] = psprintf("%s step \"%s\" did not succeed", dependency->need == NEED_SUCCESS ? "required" : "optional",
								  known[dependency->parent - 1].name);
		}
	}
	return blockers;
}

/* List an added step that is ready. StepsAdd marks it if there is no room. */
static void
ListAdded(PlanRow *plan, const NewStep *place)
{
	if (!plan->sequential && place->blockers == 0)
		ReadyListAdd(plan, place->order);
}

/* Insert the new steps and their dependencies. */
static void
InsertAddition(Call *call, Addition *a, const KnownStep *known)
{
	Batch	   *steps = StepsBegin(call, a->plan);
	Batch	   *links;

	for (int i = 0; i < a->definition->nsteps; i++)
	{
		NewStep		place = {.id = &a->ids[i], .order = a->after + i + 1, .blockers = AdditionBlockers(a, i, known), .dependents = -1};

		a->ids[i] = IdNew(call);
		ListAdded(a->plan, &place);
		StepsAdd(steps, a->plan, &a->definition->steps[i], &place);
	}
	BatchEnd(steps);
	links = LinksBegin(call, a->plan);
	for (int i = 0; i < a->definition->nsteps; i++)
	{
		ListCell   *cell;

		foreach(cell, a->definition->steps[i].depends)
		{
			DependencyDefinition *dependency = lfirst(cell);

			LinksAdd(links, &a->ids[i], AdditionStepId(a, dependency->parent), dependency->need);
		}
	}
	BatchEnd(links);
}

/* Report too many steps. */
static void
CheckStepCount(Faults *faults, const PlanRow *plan, int present, int added)
{
	if (present + added > MaxSteps)
		FaultAdd(faults, ERRCODE_VALUE_TOO_LARGE, "steps",
				 "Put parts of the work into workflows of their own, and nest them.",
				 "plan \"%s\" would have %d steps; stepwise.max_steps is %d", plan->name, present + added, MaxSteps);
}

/*
 * Report dependencies of steps that are added to a sequence. With dependencies
 * the plan would not be a sequence any more, and all its other steps would be
 * ready at once.
 */
static void
CheckStillSequential(Faults *faults, const PlanRow *plan, const Definition *definition)
{
	if (plan->sequential && !definition->sequential)
		FaultAdd(faults, ERRCODE_INVALID_DEFINITION, "steps", "Leave dependsOn out: the steps go in order.",
				 "the steps of plan \"%s\" go in order, so added ones cannot have dependsOn", plan->name);
}

/*
 * Collect the inputs that steps may refer to. These are the given ones, and those
 * that the workflow of the plan declares.
 */
const Jsonb *
PlanInputNames(Call *call, const PlanRow *plan)
{
	const Jsonb *given = JsonOf(plan->inputs);
	Jsonb	   *workflow = plan->workflow ? WorkflowDefinition(call, plan->workflow, plan->version) : NULL;

	return workflow ? JsonMerge(JsonGetJson(workflow, "inputs"), given) : given;
}

/* List the workflows of a plan and of the plans around it, the innermost last. */
List *
PlanCallers(Call *call, PlanRow *plan)
{
	List	   *names = NIL;

	while (plan != NULL)
	{
		if (plan->workflow != NULL)
			names = lcons(plan->workflow, names);
		plan = plan->nested ? PlanInTree(call, plan->root, &StepMustRead(call, &plan->parent_step_id)->plan_id) : NULL;
	}
	return names;
}

/*
 * Add steps after the step of order "after"; 0 adds them before all others, -1 at
 * the end. Returns their ids and *count, or NULL if there are faults. A new step
 * whose parents do not let it run is skipped at once.
 */
pg_uuid_t *
PlanAddSteps(Call *call, PlanRow *plan, const Jsonb *steps, int after, Faults *faults, int *count)
{
	Addition	a = {.plan = plan};
	KnownStep  *known = ReadKnownSteps(call, plan, &a.present, &a.npresent);

	a.after = after < 0 ? a.npresent : after;
	a.definition = DefinitionAcceptSteps(call, steps, known, a.npresent, a.after, plan->sequential,
										 PlanInputNames(call, plan), PlanCallers(call, plan), faults);
	CheckStepCount(faults, plan, a.npresent, a.definition->nsteps);
	CheckStillSequential(faults, plan, a.definition);
	if (FaultsAny(faults))
		return NULL;
	a.ids = palloc(sizeof(pg_uuid_t) * a.definition->nsteps);
	a.skip = palloc0(sizeof(char *) * a.definition->nsteps);
	ShiftSteps(call, plan, a.after, a.definition->nsteps);
	InsertAddition(call, &a, known);
	plan->relinked = true;
	plan->counts[STEP_PENDING] += a.definition->nsteps;
	plan->next_order = Min(plan->next_order, a.after + 1);
	plan->workable = true;
	for (int i = 0; i < a.definition->nsteps; i++)
		if (a.skip[i] != NULL)
		{
			StepRow    *step = StepMustRead(call, &a.ids[i]);

			step->message = a.skip[i];
			StepMove(call, plan, step, STEP_SKIPPED, NULL);
		}
	*count = a.definition->nsteps;
	return a.ids;
}

/* Find a name for the review of a step that no step of the plan has. */
static char *
FreeStepName(Call *call, const PlanRow *plan, const char *base)
{
	for (int i = 1;; i++)
	{
		char	   *name = i == 1 ? psprintf("%.50s_review", base) : psprintf("%.50s_review_%d", base, i);

		if (StepReadByName(call, &plan->id, name) == NULL)
			return name;
	}
}

/*
 * Let the dependents of the reviewed step wait for its review too. The dependency
 * is optional, so a skipped review does not skip them. A join that runs however
 * the reviewed step ended runs however its review ended.
 */
static void
DependOnReview(Call *call, PlanRow *plan, const StepRow *reviewed, const StepRow *review)
{
	static KeptQuery depend = {
		"WITH child AS ("
		" INSERT INTO stepwise.dependency (tenant, plan_id, step_id, depends_on, required, ended)"
		" SELECT $1, $2, d.step_id, $4, false, d.ended FROM stepwise.dependency AS d WHERE d.tenant = $1 AND d.depends_on = $3"
		" RETURNING step_id)"
		" UPDATE stepwise.step AS s SET blockers = s.blockers + 1, ready_mark = NULL FROM child"
		" WHERE s.tenant = $1 AND s.id = child.step_id",
		4, {TEXTOID, UUIDOID, UUIDOID, UUIDOID}
	};
	Params		params = {0};

	ParamKey(&params, call, &plan->id);
	ParamUuid(&params, &reviewed->id);
	ParamUuid(&params, &review->id);
	QueryRun(&depend, &params);
	plan->relinked = true;
}

/*
 * Raise the waves of the steps that depend on an inserted step, directly or
 * through others. Each turn of the loop raises the dependents of the steps that
 * the turn before has raised. No wave rises by more than one, so each step is
 * raised once.
 */
static void
RaiseWaves(Call *call, const pg_uuid_t *step_id)
{
	static KeptQuery raise = {
		"UPDATE stepwise.step AS s SET wave = x.wave FROM ("
		" SELECT d.step_id, pg_catalog.max(p.wave) + 1 AS wave FROM pg_catalog.unnest($2) AS moved (id)"
		" JOIN stepwise.step AS p ON p.tenant = $1 AND p.id = moved.id"
		" JOIN stepwise.dependency AS d ON d.tenant = $1 AND d.depends_on = p.id GROUP BY d.step_id) AS x"
		" WHERE s.tenant = $1 AND s.id = x.step_id AND s.wave < x.wave RETURNING s.id",
		2, {TEXTOID, UUIDARRAYOID}
	};
	Datum	   *moved = palloc(sizeof(Datum));
	int			count = 1;

	moved[0] = UUIDPGetDatum(step_id);
	while (count > 0)
	{
		Params		params = {0};
		Rows		rows;

		ParamTenant(&params, call);
		ParamDatum(&params, PointerGetDatum(construct_array(moved, count, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR)));
		rows = QueryRun(&raise, &params);
		count = (int) rows.count;
		moved = palloc(sizeof(Datum) * Max(count, 1));
		for (int i = 0; i < count; i++)
		{
			pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

			*id = RowUuid(&rows, i, 1);
			moved[i] = UUIDPGetDatum(id);
		}
		RowsFree(&rows);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Add a checkpoint step for the review of a step, directly after that step. */
StepRow *
PlanAddCheckpointStep(Call *call, PlanRow *plan, const StepRow *after)
{
	StepDefinition definition = {0};
	pg_uuid_t	id = IdNew(call);
	NewStep		place = {.id = &id, .order = after->order + 1, .dependents = -1};
	Batch	   *batch;
	StepRow    *step;

	definition.name = FreeStepName(call, plan, after->name);
	definition.type = "checkpoint";
	definition.wave = after->wave + 1;
	definition.retryable = -1;
	ShiftSteps(call, plan, after->order, 1);
	batch = StepsBegin(call, plan);
	ListAdded(plan, &place);
	StepsAdd(batch, plan, &definition, &place);
	BatchEnd(batch);
	plan->counts[STEP_PENDING]++;
	plan->next_order = Min(plan->next_order, after->order + 1);
	step = StepMustRead(call, &id);
	if (!plan->sequential)
	{
		DependOnReview(call, plan, after, step);
		RaiseWaves(call, &id);
	}
	return step;
}
