/*
 * dependents.c
 *	  what the end of a step means for the steps that depend on it
 *
 * In this file, the parent is the step that a dependent depends on. It is not
 * the parent step of a nested plan.
 *
 * One table says whether a dependent may run. It depends on how the parent
 * ended, and on whether the dependency is required. If the dependent may run,
 * its count of blockers goes down by one. Otherwise it is skipped.
 *
 * Locks: the caller holds the locks of the root and of the plan.
 */
#include "engine/engine.h"

/* how a parent ended */
typedef enum Settlement
{
	SETTLED_SUCCESS,
	SETTLED_FAILURE,
	SETTLED_FAILED,
	SETTLED_SKIPPED
} Settlement;

/* whether a dependent may run: [settlement][required] */
static const bool DependentRuns[][2] = {
	[SETTLED_SUCCESS] = {true, true},
	[SETTLED_FAILURE] = {true, false},
	[SETTLED_FAILED] = {false, false},
	[SETTLED_SKIPPED] = {true, false},
};

static const char *const SettlementText[] = {
	[SETTLED_SUCCESS] = "completed",
	[SETTLED_FAILURE] = "completed with outcome failure",
	[SETTLED_FAILED] = "failed",
	[SETTLED_SKIPPED] = "was skipped",
};

/* Say how a step ended. It must have ended. */
static Settlement
SettlementOf(StepStatus status, Outcome outcome)
{
	if (status == STEP_FAILED)
		return SETTLED_FAILED;
	if (status == STEP_SKIPPED)
		return SETTLED_SKIPPED;
	return outcome == OUTCOME_FAILURE ? SETTLED_FAILURE : SETTLED_SUCCESS;
}

/* Decide what the state of a parent means for a dependent. */
DependentVerdict
DependentVerdictOf(const PlanRow *plan, StepStatus parent, Outcome outcome, bool required)
{
	if (parent != STEP_COMPLETED && parent != STEP_FAILED && parent != STEP_SKIPPED)
		return DEPENDENT_WAITS;
	/* under on_failure pause, dependents wait until the failed step is retried, skipped or answered */
	if (parent == STEP_FAILED && plan->on_failure == ON_FAILURE_PAUSE)
		return DEPENDENT_WAITS;
	return DependentRuns[SettlementOf(parent, outcome)][required] ? DEPENDENT_RUNS : DEPENDENT_SKIPPED;
}

/* Count one blocker less for the dependents that may run. */
static void
DependentsRelease(Call *call, const StepRow *step, const DependentVerdict verdicts[2])
{
	ListCell   *cell;

	foreach(cell, StepDependents(call, &step->id))
	{
		const Dependent *dependent = lfirst(cell);

		if (verdicts[dependent->required] == DEPENDENT_RUNS)
			StepUnblock(call, &dependent->step_id);
	}
}

/* Skip a dependent. Its message names the parent and how that ended. */
static void
DependentSkip(Call *call, PlanRow *plan, StepRow *child, const StepRow *parent, bool required)
{
	child->message = psprintf("%s step \"%s\" %s", required ? "required" : "optional", parent->name,
							  SettlementText[SettlementOf(parent->status, parent->outcome)]);
	StepMove(call, plan, child, STEP_SKIPPED, NULL);
}

/* Run a query over the dependencies at one side of a step, either the required or the optional ones. */
static Rows
RelatedSteps(Call *call, KeptQuery *query, const StepRow *step, bool required)
{
	Params		params = {0};

	ParamTenant(&params, call);
	ParamUuid(&params, &step->id);
	ParamBool(&params, required);
	return QueryRun(query, &params);
}

/* Skip the pending dependents of a step: those with a required dependency on it, or those with an optional one. */
static void
DependentsSkip(Call *call, PlanRow *plan, const StepRow *step, bool required)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.dependency AS d JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = d.step_id"
		" WHERE d.tenant = $1 AND d.depends_on = $2 AND d.required = $3 AND s.status = 'pending' ORDER BY s.step_order",
		3, {TEXTOID, UUIDOID, BOOLOID}
	};
	Rows		rows = RelatedSteps(call, &find, step, required);

	for (uint64 i = 0; i < rows.count; i++)
	{
		StepRow    *child = RowStep(&rows, i);

		DependentSkip(call, plan, child, step, required);
	}
	RowsFree(&rows);
}

/*
 * Skip a pending step if one of its parents does not let it run. A step that is
 * retried or released was not pending when that parent ended, so DependentsLook
 * has not skipped it.
 */
void
ParentsLook(Call *call, PlanRow *plan, StepRow *step)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.dependency AS d JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = d.depends_on"
		" WHERE d.tenant = $1 AND d.step_id = $2 AND d.required = $3 ORDER BY s.step_order",
		3, {TEXTOID, UUIDOID, BOOLOID}
	};

	/* a parent that ended in the same call may have skipped the step already */
	if (StepMustRead(call, &step->id)->status != STEP_PENDING)
		return;
	for (int required = 0; required <= 1; required++)
	{
		Rows		rows = RelatedSteps(call, &find, step, required);

		for (uint64 i = 0; i < rows.count && step->status == STEP_PENDING; i++)
		{
			StepRow    *parent = RowStep(&rows, i);

			if (DependentVerdictOf(plan, parent->status, parent->outcome, required) == DEPENDENT_SKIPPED)
				DependentSkip(call, plan, step, parent, required);
		}
		RowsFree(&rows);
	}
}

/* Unblock or skip the dependents of a step that has ended. */
void
DependentsLook(Call *call, PlanRow *plan, const StepRow *step)
{
	DependentVerdict verdicts[2];

	for (int required = 0; required <= 1; required++)
		verdicts[required] = DependentVerdictOf(plan, step->status, step->outcome, required);
	if (verdicts[false] == DEPENDENT_RUNS || verdicts[true] == DEPENDENT_RUNS)
		DependentsRelease(call, step, verdicts);
	for (int required = 0; required <= 1; required++)
		if (verdicts[required] == DEPENDENT_SKIPPED)
			DependentsSkip(call, plan, step, required);
}
