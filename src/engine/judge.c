/*
 * judge.c
 *	  decide what becomes of a pending step, without changing anything
 *
 * Every way into a step asks StepIsDue: the search for work, a submission, the
 * result of a tool, the functions that explain a pause, and the second look
 * at a blocked step. So nothing gets past an obstacle by another door.
 *
 * An agent and a run are asked different questions. In a sequence an agent may
 * pass a step in progress, whose worker may be gone; a run never overtakes it.
 * An agent may go on after an open failure under on_failure stop; a run stops.
 * An agent that lets the database run its tools (run_tools) stops where a run stops.
 */
#include "engine/engine.h"

/* Evaluate the condition of a step. */
static Due
JudgeCondition(Call *call, PlanRow *plan, const StepRow *step, Judgement *j)
{
	ResolveFault open = {0};
	char	   *why = NULL;

	if (step->condition_path == NULL)
		return DUE_READY;
	switch (StepConditionDecide(call, plan, step, &why, &open))
	{
		case CONDITION_TRUE:
			return DUE_READY;
		case CONDITION_FALSE:
			return DUE_SKIP;
		default:
			if (open.problem == RESOLVE_NOT_READY)
				return JudgeFault(step, &open, j);
			j->reason = ConditionReason(step, why);
			return DUE_BLOCKED;
	}
}

/* ---------- order ---------- */

/* Find the first step that holds back the steps after it in a sequence; NULL if there is none. */
StepRow *
FirstHolding(Call *call, const PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.holds"
		" ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};

	return plan->sequential && plan->holding > 0 ? StepFetchById(call, &find, &plan->id) : NULL;
}

/* Find the first step in progress of a sequence, which a run does not overtake; NULL if there is none. */
static StepRow *
FirstInProgress(Call *call, const PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.status = 'in_progress'"
		" ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};

	return plan->sequential && plan->counts[STEP_IN_PROGRESS] > 0 ? StepFetchById(call, &find, &plan->id) : NULL;
}

/* Find the first open failure, past which a run does nothing; NULL if there is none. */
static StepRow *
FirstOpenFailure(Call *call, const PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND s.pause_reason IS NOT NULL AND s.status = 'failed' ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};

	return plan->open_failures > 0 ? StepFetchById(call, &find, &plan->id) : NULL;
}

/* Find a dependency of a step that has not ended; NULL if there is none. */
static StepRow *
OpenDependency(Call *call, const PlanRow *plan, const StepRow *step)
{
	static KeptQuery find = {
		"SELECT p.* FROM stepwise.dependency AS d JOIN stepwise.step AS p ON p.tenant = $1 AND p.id = d.depends_on"
		" WHERE d.tenant = $1 AND d.step_id = $2 AND p.status NOT IN ('completed', 'skipped')"
		" AND (p.status <> 'failed' OR $3) ORDER BY p.step_order LIMIT 1",
		3, {TEXTOID, UUIDOID, BOOLOID}
	};
	Params		params = {0};

	ParamKey(&params, call, &step->id);
	/* only under on_failure pause does a failed step hold back its dependents */
	ParamBool(&params, plan->on_failure == ON_FAILURE_PAUSE);
	return StepFetch(&find, &params);
}

/* Say whether claims and open failures stop who asks. */
static bool
StopsAtClaims(const Next *next)
{
	return next->run || next->run_tools;
}

/* Find the step of a plan that holds back what comes after the given order; NULL if there is none. */
static StepRow *
HeldInPlan(Call *call, const PlanRow *plan, int order, const Next *next)
{
	StepRow    *before = FirstHolding(call, plan);

	if (StopsAtClaims(next) && (before == NULL || before->order >= order))
		before = FirstInProgress(call, plan);
	if (StopsAtClaims(next) && (before == NULL || before->order >= order))
		before = FirstOpenFailure(call, plan);
	return before && before->order < order ? before : NULL;
}

/* Find the step of a plan above that holds back the step in which a plan is nested; NULL if there is none. */
StepRow *
HeldAbove(Call *call, const PlanRow *plan, const Next *next)
{
	const PlanRow *root = plan->root ? plan->root : PlanRead(call, &plan->root_id);
	StepRow    *parent_step;
	StepRow    *before;

	/* the parent step of an open plan holds back others itself, so an agent is held only where another step does that too */
	if (!plan->nested || root == NULL || (!StopsAtClaims(next) && root->crowded == 0))
		return NULL;
	while ((plan = PlanAround(call, plan, &parent_step)) != NULL)
		if ((before = HeldInPlan(call, plan, parent_step->order, next)) != NULL)
			return before;
	return NULL;
}

/* Say whether a step before it holds back a pending step; *before is that step, if one can be named. */
static bool
IsHeldBack(Call *call, PlanRow *plan, const StepRow *step, const Next *next, StepRow **before)
{
	if (!plan->sequential && step->blockers > 0)
	{
		*before = OpenDependency(call, plan, step);
		return true;
	}
	/* no step of an order below next_order is pending */
	if (plan->sequential && step->order > plan->next_order)
	{
		*before = StepNextPending(call, plan, plan->next_order);
		if (*before != NULL && (*before)->order < step->order)
			return true;
	}
	*before = HeldInPlan(call, plan, step->order, next);
	if (*before == NULL)
		*before = HeldAbove(call, plan, next);
	return *before != NULL;
}

/* ---------- the question ---------- */

/* Say whether a step was claimed as often as its maxAttempts allows. */
bool
AttemptsUsedUp(const StepRow *step)
{
	return step->max_attempts > 0 && step->attempt - step->attempts_before >= step->max_attempts;
}

/* Decide whether a pending step is due, and if not, what becomes of it; nothing is written. */
Due
StepIsDue(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	Due			due;

	if (IsHeldBack(call, plan, step, next, &j->awaited))
		return DUE_HELD;
	/* a step that was claimed too often is not handed out again by itself */
	if (AttemptsUsedUp(step))
		return DUE_GIVE_UP;
	due = JudgeCondition(call, plan, step, j);
	if (due == DUE_READY)
		due = StepRuleOf(step)->ready(call, plan, step, next, j);
	return step->review != NULL ? GateJudge(call, plan, step, next, due, j) : due;
}
