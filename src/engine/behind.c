/*
 * behind.c
 *	  find the gates that a change would get past, and say who may
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
 * Callers who may decide pass before anything is searched. Nothing is written
 * here.
 */
#include "engine/engine.h"

#include "utils/array.h"

/* ---------- gates ---------- */

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
StepRow *
GateBehind(Call *call, const PlanRow *plan, const StepRow *step)
{
	return plan->sequential ? GateBefore(call, plan, step->order) : GateAbove(call, &step->id, 1);
}

/* Find the gate that a change of a step concerns: the step itself, or one on which it depends; NULL if there is none. */
const StepRow *
GateOfStep(Call *call, const PlanRow *plan, const StepRow *step)
{
	return IsGate(step) || GateIsBelow(call, step) ? step : GateBehind(call, plan, step);
}

/* Find the gate in which a plan is nested, or on which a step depends that holds it; NULL if there is none. */
const StepRow *
GateAround(Call *call, const PlanRow *plan)
{
	StepRow    *parent_step;
	const StepRow *gate = NULL;

	while (gate == NULL && (plan = PlanAround(call, plan, &parent_step)) != NULL)
		gate = GateOfStep(call, plan, parent_step);
	return gate;
}

/*
 * Find a gate before steps that were added, from "order" on in a sequence; NULL
 * if there is none. A gate that was added with them does not count.
 */
StepRow *
GateOfAdded(Call *call, const PlanRow *plan, const pg_uuid_t *ids, int count, int order)
{
	return plan->sequential ? GateBefore(call, plan, order) : GateAbove(call, ids, count);
}

/* Find the first gate of a plan; NULL if there is none. */
StepRow *
GateOfPlan(Call *call, const PlanRow *plan)
{
	static KeptQuery any = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND " MAY_BE_GATE
		" ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Params		params = {0};

	ParamKey(&params, call, &plan->id);
	return FirstGate(call, &any, &params);
}

/* ---------- waits ---------- */

/* Is the plan nested in the step, at any depth? */
static bool
IsBelow(Call *call, const PlanRow *plan, const StepRow *step)
{
	StepRow    *parent;

	for (; plan != NULL && plan->nested; plan = PlanAround(call, plan, &parent))
		if (UuidEqual(&plan->parent_step_id, &step->id))
			return true;
	return false;
}

/* Say whether a checkpoint is that of a step, or of one nested in it, and read what waits there. */
static bool
WaitIsIn(Call *call, const ListedCheckpoint *checkpoint, const StepRow *step, PersonWait *wait)
{
	PlanRow    *plan = PlanMustRead(call, &checkpoint->plan_id);

	if (!UuidEqual(&checkpoint->step_id, &step->id) && !IsBelow(call, plan, step))
		return false;
	*wait = (PersonWait) {checkpoint, plan, StepMustRead(call, &checkpoint->step_id)};
	return true;
}

/* Say whether the caller may end a wait. */
static bool
MayEndWait(Call *call, const PersonWait *wait)
{
	return CallerMayDecide(call) && (!IsReview(wait->checkpoint) || CallerMayReview(call, wait->plan, wait->step));
}

/* Say whether somebody is asked at a step or below it, and who: first where the caller may answer. */
bool
WaitIn(Call *call, const StepRow *step, PersonWait *wait)
{
	bool		found = false;
	ListCell   *cell;

	if (step->status != STEP_AWAITING_INPUT)
		return false;
	foreach(cell, CheckpointsInTree(call, &step->root_id))
	{
		PersonWait	other;

		if (!WaitIsIn(call, lfirst(cell), step, &other))
			continue;
		if (!found || MayEndWait(call, &other))
			*wait = other;
		found = true;
		if (MayEndWait(call, wait))
			break;
	}
	return found;
}

/*
 * Find the first wait that the end of a step would end too, and about which the
 * caller may not decide, with the plan around it; NULL if there is none.
 */
StepRow *
WaitOfOthers(Call *call, const StepRow *step, PlanRow **around)
{
	ListCell   *cell;

	if (step->status != STEP_AWAITING_INPUT && !(step->status == STEP_IN_PROGRESS && StepNests(step)))
		return NULL;
	foreach(cell, CheckpointsInTree(call, &step->root_id))
	{
		PersonWait	wait;

		if (!WaitIsIn(call, lfirst(cell), step, &wait) || MayEndWait(call, &wait))
			continue;
		*around = wait.plan;
		return wait.step;
	}
	return NULL;
}

/* ---------- who may ---------- */

/* Say whether the caller may skip or fail a step: a gate, or a step that has one below it, needs the right to decide. */
bool
MaySkip(Call *call, const StepRow *step)
{
	if (!IsGate(step) && !StepNests(step))
		return true;
	return CallerMayDecide(call) || !(IsGate(step) || GateIsBelow(call, step));
}

/* Say whether the caller may change a step: a gate, and what depends on one, needs the right to decide. */
bool
MayChange(Call *call, const PlanRow *plan, const StepRow *step)
{
	return CallerMayDecide(call) || (GateOfStep(call, plan, step) == NULL && GateAround(call, plan) == NULL);
}

/* Say whether the caller may end a step as skipped or failed, and what waits in it. */
bool
MayEnd(Call *call, const StepRow *step)
{
	PlanRow    *around;

	return MaySkip(call, step) && WaitOfOthers(call, step, &around) == NULL;
}

/* Say whether the caller may add a step at the end of a plan, without dependencies. */
bool
MayAppend(Call *call, const PlanRow *plan)
{
	if (CallerMayDecide(call))
		return true;
	return GateAround(call, plan) == NULL && !(plan->sequential && GateOfPlan(call, plan) != NULL);
}

/* Say whether the caller may cancel a plan: after a nested one, the plan above it goes on. */
bool
MayCancel(Call *call, const PlanRow *plan)
{
	return !plan->nested || MayEnd(call, StepMustRead(call, &plan->parent_step_id));
}
