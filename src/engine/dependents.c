/*
 * dependents.c
 *	  what the end of a step means for the steps that depend on it
 *
 * In this file, the parent is the step that a dependent depends on. It is not
 * the parent step of a nested plan.
 *
 * One table says whether a dependent may run. It depends on how the parent
 * ended, and on what the dependency needs. If the dependent may run, its count
 * of blockers goes down by one. Otherwise it is skipped. If a failed parent is
 * tried again, state.c counts one blocker more for the dependents that ran
 * although it had failed.
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

/* whether a dependent may run */
static const bool DependentRuns[][NEEDS] = {
	[SETTLED_SUCCESS] = {[NEED_NO_FAILURE] = true, [NEED_SUCCESS] = true, [NEED_END] = true},
	[SETTLED_FAILURE] = {[NEED_NO_FAILURE] = true, [NEED_SUCCESS] = false, [NEED_END] = true},
	[SETTLED_FAILED] = {[NEED_NO_FAILURE] = false, [NEED_SUCCESS] = false, [NEED_END] = true},
	[SETTLED_SKIPPED] = {[NEED_NO_FAILURE] = true, [NEED_SUCCESS] = false, [NEED_END] = true},
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
DependentVerdictOf(const PlanRow *plan, StepStatus parent, Outcome outcome, Need need)
{
	if (parent != STEP_COMPLETED && parent != STEP_FAILED && parent != STEP_SKIPPED)
		return DEPENDENT_WAITS;
	/* under on_failure pause, dependents wait until the failed step is retried, skipped or answered */
	if (parent == STEP_FAILED && plan->on_failure == ON_FAILURE_PAUSE)
		return DEPENDENT_WAITS;
	return DependentRuns[SettlementOf(parent, outcome)][need] ? DEPENDENT_RUNS : DEPENDENT_SKIPPED;
}

/* Count one blocker less for the dependents that may run. */
static void
DependentsRelease(Call *call, PlanRow *plan, const StepRow *step, const DependentVerdict *verdicts)
{
	ListCell   *cell;

	foreach(cell, StepDependents(call, plan, step))
	{
		const Dependent *dependent = lfirst(cell);

		if (verdicts[dependent->need] == DEPENDENT_RUNS)
			StepUnblock(call, plan, &dependent->step_id);
	}
}

/* Skip a dependent. Its message names the parent and how that ended. */
static void
DependentSkip(Call *call, PlanRow *plan, StepRow *child, const StepRow *parent, Need need)
{
	child->message = psprintf("%s step \"%s\" %s", need == NEED_SUCCESS ? "required" : "optional", parent->name,
							  SettlementText[SettlementOf(parent->status, parent->outcome)]);
	StepMove(call, plan, child, STEP_SKIPPED, NULL);
}

/* Run a query over the dependencies of one need, at one side of a step. */
static Rows
RelatedSteps(Call *call, KeptQuery *query, const StepRow *step, Need need)
{
	Params		params = {0};

	ParamKey(&params, call, &step->id);
	ParamBool(&params, need == NEED_SUCCESS);
	ParamBool(&params, need == NEED_END);
	return QueryRun(query, &params);
}

/* Skip the pending dependents of a step whose dependencies on it have this need. */
static void
DependentsSkip(Call *call, PlanRow *plan, const StepRow *step, Need need)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.dependency AS d JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = d.step_id"
		" WHERE d.tenant = $1 AND d.depends_on = $2 AND d.required = $3 AND d.ended = $4"
		" AND s.status = 'pending' ORDER BY s.step_order",
		4, {TEXTOID, UUIDOID, BOOLOID, BOOLOID}
	};
	Rows		rows = RelatedSteps(call, &find, step, need);

	for (uint64 i = 0; i < rows.count; i++)
	{
		StepRow    *child = RowStep(&rows, i);

		DependentSkip(call, plan, child, step, need);
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
		" WHERE d.tenant = $1 AND d.step_id = $2 AND d.required = $3 AND d.ended = $4 ORDER BY s.step_order",
		4, {TEXTOID, UUIDOID, BOOLOID, BOOLOID}
	};

	/* a parent that ended in the same call may have skipped the step already */
	if (StepMustRead(call, &step->id)->status != STEP_PENDING)
		return;
	/* nothing that ends skips a join, so NEED_END is left out */
	for (Need need = NEED_NO_FAILURE; need < NEED_END; need++)
	{
		Rows		rows = RelatedSteps(call, &find, step, need);

		for (uint64 i = 0; i < rows.count && step->status == STEP_PENDING; i++)
		{
			StepRow    *parent = RowStep(&rows, i);

			if (DependentVerdictOf(plan, parent->status, parent->outcome, need) == DEPENDENT_SKIPPED)
				DependentSkip(call, plan, step, parent, need);
		}
		RowsFree(&rows);
	}
}

/* Unblock or skip the dependents of a step that has ended. */
void
DependentsLook(Call *call, PlanRow *plan, const StepRow *step)
{
	DependentVerdict verdicts[NEEDS];
	bool		any_runs = false;

	for (Need need = 0; need < NEEDS; need++)
	{
		verdicts[need] = DependentVerdictOf(plan, step->status, step->outcome, need);
		any_runs = any_runs || verdicts[need] == DEPENDENT_RUNS;
	}
	if (any_runs)
		DependentsRelease(call, plan, step, verdicts);
	for (Need need = 0; need < NEEDS; need++)
		if (verdicts[need] == DEPENDENT_SKIPPED)
			DependentsSkip(call, plan, step, need);
}
