/*
 * door.c
 *	  a gate has no other door
 *
 * A prompt, and a step with a review, is a gate: a person decides there. Whoever
 * skips, fails, changes, removes or reorders one, in any state, needs the right
 * to decide. So does whoever changes or adds a step that comes after one: in a
 * sequence a later step, with dependencies a step that depends on it at any
 * distance. A nested plan counts as a part of the step that holds it. So a step
 * that holds a gate below it is not skipped or failed either.
 *
 * A step may be added before a gate. The gate still asks before the steps that
 * it guards, and nobody has answered for the new step.
 *
 * Callers who may decide pass before anything is searched.
 */
#include "api/api.h"

#include "utils/array.h"

/* Say whether a person decides at a step: by its definition, or because a review waits or has sent it back. */
static bool
IsGate(const StepRow *step)
{
	return step->prompt != NULL || step->review != NULL || step->feedback != NULL ||
		(step->status == STEP_AWAITING_INPUT && !StepNests(step));
}

/* the steps that may be gates, or have one below them */
#define MAY_BE_GATE \
	"(s.prompt IS NOT NULL OR s.review IS NOT NULL OR s.feedback IS NOT NULL OR s.workflow IS NOT NULL" \
	" OR s.status = 'awaiting_input')"

/* Find the first step of a query that is a gate, or has one below it; NULL if there is none. */
static StepRow *
FirstGate(Call *call, KeptQuery *query, const Params *params)
{
	Rows		rows = QueryRun(query, params);
	StepRow    *gate = NULL;

	for (uint64 i = 0; i < rows.count && gate == NULL; i++)
	{
		StepRow    *step = RowStep(&rows, i);

		if (IsGate(step) || GateIsBelow(call, step))
			gate = step;
	}
	RowsFree(&rows);
	return gate;
}

/* Find a gate before an order of a sequence; NULL if there is none. */
static StepRow *
GateBefore(Call *call, const PlanRow *plan, int order)
{
	static KeptQuery before = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order < $3"
		" AND " MAY_BE_GATE " ORDER BY s.step_order DESC",
		3, {TEXTOID, UUIDOID, INT4OID}
	};
	Params		params = {0};

	ParamKey(&params, call, &plan->id);
	ParamInt(&params, order);
	return FirstGate(call, &before, &params);
}

/* Find a gate on which steps depend, other than these steps; NULL if there is none. */
static StepRow *
GateAbove(Call *call, const pg_uuid_t *ids, int count)
{
	static KeptQuery above = {
		"WITH RECURSIVE up AS (SELECT x.id FROM pg_catalog.unnest($2) AS x (id) UNION SELECT d.depends_on FROM up AS u"
		" JOIN stepwise.dependency AS d ON d.tenant = $1 AND d.step_id = u.id)"
		" SELECT s.* FROM up AS u JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = u.id"
		" WHERE s.id <> ALL ($2) AND " MAY_BE_GATE " ORDER BY s.step_order DESC",
		2, {TEXTOID, UUIDARRAYOID}
	};
	Datum	   *values = palloc(sizeof(Datum) * (count + 1));
	Params		params = {0};

	for (int i = 0; i < count; i++)
		values[i] = UUIDPGetDatum(&ids[i]);
	ParamTenant(&params, call);
	ParamDatum(&params, PointerGetDatum(construct_array(values, count, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR)));
	return FirstGate(call, &above, &params);
}

/* Find a gate on which a step depends; NULL if there is none. */
static StepRow *
GateBehind(Call *call, const PlanRow *plan, const StepRow *step)
{
	return plan->sequential ? GateBefore(call, plan, step->order) : GateAbove(call, &step->id, 1);
}

/* Find the gate that a change of a step concerns: the step itself, or one on which it depends; NULL if there is none. */
static const StepRow *
GateOfStep(Call *call, const PlanRow *plan, const StepRow *step)
{
	return IsGate(step) || GateIsBelow(call, step) ? step : GateBehind(call, plan, step);
}

/* Say whether the caller may skip or fail a step: a gate, or a step that has one below it, needs the right to decide. */
bool
MaySkip(Call *call, const StepRow *step)
{
	if (!IsGate(step) && !StepNests(step))
		return true;
	return CallerMayDecide(call) || !(IsGate(step) || GateIsBelow(call, step));
}

/* Refuse to skip or fail a step if the caller may not. */
void
CheckDoor(Call *call, const StepRow *step)
{
	if (!MaySkip(call, step))
		CheckMayDecide(call, step);
}

/* Refuse to cancel a nested plan that has a gate, without the right to decide: the plan above would go on. */
void
CheckDoorOfCancel(Call *call, const PlanRow *plan)
{
	if (plan->nested && !CallerMayDecide(call))
		CheckDoor(call, StepMustRead(call, &plan->parent_step_id));
}

/* Find the gate in which a plan is nested, or on which a step depends that holds it; NULL if there is none. */
static const StepRow *
GateAround(Call *call, const PlanRow *plan)
{
	StepRow    *parent_step;
	const StepRow *gate = NULL;

	while (gate == NULL && (plan = PlanAround(call, plan, &parent_step)) != NULL)
		gate = GateOfStep(call, plan, parent_step);
	return gate;
}

/* Say whether the caller may change a step: a gate, and what depends on one, needs the right to decide. */
bool
MayChange(Call *call, const PlanRow *plan, const StepRow *step)
{
	return CallerMayDecide(call) || (GateOfStep(call, plan, step) == NULL && GateAround(call, plan) == NULL);
}

/* Refuse to change a plan that is nested in a gate, or in a step that depends on one, without the right to decide. */
void
CheckDoorOfPlan(Call *call, const PlanRow *plan)
{
	const StepRow *gate;

	if (!plan->nested || CallerMayDecide(call))
		return;
	if ((gate = GateAround(call, plan)) != NULL)
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
 * Refuse steps that were added behind a gate, without the right to decide: who
 * answered there did not see them. A gate that was added with them does not
 * count. In a sequence the added steps stand together, from "order" on.
 */
void
CheckDoorOfAdded(Call *call, const PlanRow *plan, const pg_uuid_t *ids, int count, int order)
{
	StepRow    *gate;

	if (CallerMayDecide(call))
		return;
	gate = plan->sequential ? GateBefore(call, plan, order) : GateAbove(call, ids, count);
	if (gate != NULL)
		CheckMayDecide(call, gate);
}

/* Refuse to reorder a plan that has a gate, without the right to decide. */
void
CheckDoorOfOrder(Call *call, const PlanRow *plan)
{
	static KeptQuery any = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND " MAY_BE_GATE
		" ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Params		params = {0};
	StepRow    *gate;

	if (CallerMayDecide(call))
		return;
	ParamKey(&params, call, &plan->id);
	if ((gate = FirstGate(call, &any, &params)) != NULL)
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
				 errhint("%s", StepHint(step, "stepwise.why(root_id) says what the plan waits for."))));
	if (!GateIsPassed(call, plan, step))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" is not due", step->name),
				 errdetail("A person has to approve it first."),
				 errhint("%s", StepHint(step, "stepwise.get_next_step(root_id) opens its review; stepwise.why(root_id) says what the plan waits for."))));
}
