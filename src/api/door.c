/*
 * door.c
 *	  a gate has no other door
 *
 * A prompt, and a step with a review, is a gate: a person decides there. Whoever
 * skips, fails, changes, removes or reorders one, in any state, needs the right
 * to decide. So does whoever changes a step that comes after one: in a sequence
 * a later step, with dependencies a step that depends on it at any distance. A
 * nested plan counts as a part of the step that holds it.
 *
 * Callers who may decide pass before anything is searched.
 */
#include "api/api.h"

/* Say whether a person decides at a step. */
static bool
IsGate(const StepRow *step)
{
	return step->prompt != NULL || step->review != NULL;
}

/* Find a gate on which a step depends; NULL if there is none. */
static StepRow *
GateBehind(Call *call, const PlanRow *plan, const StepRow *step)
{
	static KeptQuery before = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order < $3"
		" AND (s.prompt IS NOT NULL OR s.review IS NOT NULL) ORDER BY s.step_order DESC LIMIT 1",
		3, {TEXTOID, UUIDOID, INT4OID}
	};
	static KeptQuery above = {
		"WITH RECURSIVE up AS (SELECT $2 AS id UNION SELECT d.depends_on FROM up AS u"
		" JOIN stepwise.dependency AS d ON d.tenant = $1 AND d.step_id = u.id)"
		" SELECT s.* FROM up AS u JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = u.id"
		" WHERE s.prompt IS NOT NULL OR s.review IS NOT NULL ORDER BY s.step_order DESC LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamUuid(&params, plan->sequential ? &plan->id : &step->id);
	if (plan->sequential)
		ParamInt(&params, step->order);
	return StepFetch(plan->sequential ? &before : &above, &params);
}

/* Find the gate that a change of a step concerns: the step itself, or one on which it depends; NULL if there is none. */
static const StepRow *
GateOfStep(Call *call, const PlanRow *plan, const StepRow *step)
{
	return IsGate(step) ? step : GateBehind(call, plan, step);
}

/* Refuse to skip or fail a gate without the right to decide. */
void
CheckDoor(Call *call, const StepRow *step)
{
	if (IsGate(step))
		CheckMayDecide(call, step);
}

/* Refuse to change a plan that is nested in a gate, or in a step that depends on one, without the right to decide. */
void
CheckDoorOfPlan(Call *call, const PlanRow *plan)
{
	StepRow    *parent_step;
	const StepRow *gate;

	if (!plan->nested || CallerMayDecide(call))
		return;
	while ((plan = PlanAround(call, plan, &parent_step)) != NULL)
		if ((gate = GateOfStep(call, plan, parent_step)) != NULL)
			CheckMayDecide(call, gate);
}

/* Refuse to change a gate, or a step that depends on one, without the right to decide. */
void
CheckDoorOfChange(Call *call, const PlanRow *plan, const StepRow *step)
{
	const StepRow *gate;

	if (CallerMayDecide(call))
		return;
	if ((gate = GateOfStep(call, plan, step)) != NULL)
		CheckMayDecide(call, gate);
}

/*
 * Refuse to reorder a plan that has a gate, without the right to decide. With
 * dependencies the order of steps lets nothing pass, so only the gates count
 * whose own place changes; but a caller that names all steps names these too.
 */
void
CheckDoorOfOrder(Call *call, const PlanRow *plan)
{
	static KeptQuery any = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND (s.prompt IS NOT NULL OR s.review IS NOT NULL) ORDER BY s.step_order LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};
	Params		params = {0};
	StepRow    *gate;

	if (CallerMayDecide(call))
		return;
	ParamTenant(&params, call);
	ParamUuid(&params, &plan->id);
	if ((gate = StepFetch(&any, &params)) != NULL)
		CheckMayDecide(call, gate);
}

/* Say whether a pending step is held back, and a gate is among the steps on which it depends. */
static bool
IsBehindGate(Call *call, PlanRow *plan, const StepRow *step)
{
	StepRow		asked = *step;
	Next		next = {0};
	Judgement	j = {0};

	return step->status == STEP_PENDING && StepIsDue(call, plan, &asked, &next, &j) == DUE_HELD &&
		GateBehind(call, plan, step) != NULL;
}

/* Refuse to start a step with the result of a tool, if a gate before it was not passed. */
void
CheckGatePassed(Call *call, PlanRow *plan, StepRow *step)
{
	if (IsBehindGate(call, plan, step))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" is not due", step->name),
				 errdetail("A step before it has not ended."),
				 errhint("stepwise.why(plan_id) says what the plan waits for.")));
	if (!GateIsPassed(call, plan, step))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" is not due", step->name),
				 errdetail("A person has to approve it first."),
				 errhint("stepwise.get_next_step(plan_id) opens its review; stepwise.why(plan_id) says what the plan waits for.")));
}
