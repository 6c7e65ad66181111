/*
 * door.c
 *	  a gate has no other door
 *
 * A prompt, and a step with a review, is a gate: a person decides there. Whoever
 * skips, fails, changes, removes or reorders one, in any state, needs the right
 * to decide. So does whoever changes a step that comes after one: in a sequence
 * a later step, with dependencies a step that depends on it at any distance. A
 * nested plan counts as a part of the step that holds it. So a step that holds
 * a gate below it is not skipped or failed either.
 *
 * Callers who may decide pass before anything is searched.
 */
#include "api/api.h"

/* Say whether a person decides at a step: by its definition, or because a review waits or has sent it back. */
static bool
IsGate(const StepRow *step)
{
	return step->prompt != NULL || step->review != NULL || step->feedback != NULL ||
		(step->status == STEP_AWAITING_INPUT && !StepNests(step));
}

/* Say whether a query finds a gate in the workflow of a step, or in the plans nested in the step. */
static bool
QueryFinds(Call *call, KeptQuery *query, const StepRow *step)
{
	Params		params = {0};
	bool		found;
	Rows		rows;

	ParamKey(&params, call, &step->id);
	ParamText(&params, step->workflow);
	ParamInt(&params, step->version ? step->version : step->fixed_version);
	rows = QueryRun(query, &params);
	found = rows.count > 0;
	RowsFree(&rows);
	return found;
}

/*
 * The steps of the definition d, and those that its branches may add. Only they count: the arguments of a tool may well
 * have a key "prompt".
 */
#define DEFINED_STEPS \
	"pg_catalog.jsonb_path_query_array(d.definition, 'lax $.steps[*]')" \
	" || pg_catalog.jsonb_path_query_array(d.definition, 'lax $.branchingConditions[*].actionParams.steps[*]')"

/*
 * Say whether a gate is below a step that runs a workflow. The definition tells
 * of steps that are still to come; a plan that is open may have got others.
 */
static bool
HasGateBelow(Call *call, const StepRow *step)
{
	static KeptQuery defined = {
		"WITH RECURSIVE called AS (SELECT $3::text AS name, nullif($4, 0) AS version UNION"
		" SELECT x.step ->> 'workflow', (x.step ->> 'version')::int FROM called AS c JOIN stepwise.workflow AS d"
		" ON d.tenant = $1 AND d.name = c.name AND d.version = coalesce(c.version, (SELECT pg_catalog.max(n.version)"
		" FROM stepwise.workflow AS n WHERE n.tenant = $1 AND n.name = c.name)),"
		" LATERAL pg_catalog.jsonb_path_query(" DEFINED_STEPS ", 'lax $[*] ? (exists (@.workflow))') AS x (step))"
		" SELECT 1 FROM called AS c JOIN stepwise.workflow AS d"
		" ON d.tenant = $1 AND d.name = c.name AND d.version = coalesce(c.version, (SELECT pg_catalog.max(n.version)"
		" FROM stepwise.workflow AS n WHERE n.tenant = $1 AND n.name = c.name)) AND $2 IS NOT NULL"
		" WHERE pg_catalog.jsonb_path_exists(" DEFINED_STEPS ", 'lax $[*] ? (exists (@.prompt) || exists (@.review))') LIMIT 1",
		4, {TEXTOID, UUIDOID, TEXTOID, INT4OID}
	};
	static KeptQuery opened = {
		"WITH RECURSIVE below AS (SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.parent_step_id = $2"
		" AND $3 IS NOT NULL AND $4 IS NOT NULL UNION ALL"
		" SELECT n.id FROM below AS b JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = b.id AND s.workflow IS NOT NULL"
		" JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = s.id)"
		" SELECT 1 FROM below AS b JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = b.id"
		" WHERE s.prompt IS NOT NULL OR s.review IS NOT NULL OR s.feedback IS NOT NULL"
		" OR (s.status = 'awaiting_input' AND s.workflow IS NULL) LIMIT 1",
		4, {TEXTOID, UUIDOID, TEXTOID, INT4OID}
	};

	return StepNests(step) && (QueryFinds(call, &defined, step) || QueryFinds(call, &opened, step));
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

		if (IsGate(step) || HasGateBelow(call, step))
			gate = step;
	}
	RowsFree(&rows);
	return gate;
}

/* Find a gate on which a step depends; NULL if there is none. */
static StepRow *
GateBehind(Call *call, const PlanRow *plan, const StepRow *step)
{
	static KeptQuery before = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order < $3"
		" AND " MAY_BE_GATE " ORDER BY s.step_order DESC",
		3, {TEXTOID, UUIDOID, INT4OID}
	};
	static KeptQuery above = {
		"WITH RECURSIVE up AS (SELECT $2 AS id UNION SELECT d.depends_on FROM up AS u"
		" JOIN stepwise.dependency AS d ON d.tenant = $1 AND d.step_id = u.id)"
		" SELECT s.* FROM up AS u JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = u.id"
		" WHERE s.id <> $2 AND " MAY_BE_GATE " ORDER BY s.step_order DESC",
		2, {TEXTOID, UUIDOID}
	};
	Params		params = {0};

	ParamKey(&params, call, plan->sequential ? &plan->id : &step->id);
	if (plan->sequential)
		ParamInt(&params, step->order);
	return FirstGate(call, plan->sequential ? &before : &above, &params);
}

/* Find the gate that a change of a step concerns: the step itself, or one on which it depends; NULL if there is none. */
static const StepRow *
GateOfStep(Call *call, const PlanRow *plan, const StepRow *step)
{
	return IsGate(step) || HasGateBelow(call, step) ? step : GateBehind(call, plan, step);
}

/* Refuse to skip or fail a gate, or a step that has one below it, without the right to decide. */
void
CheckDoor(Call *call, const StepRow *step)
{
	if (!IsGate(step) && !StepNests(step))
		return;
	if (!CallerMayDecide(call) && (IsGate(step) || HasGateBelow(call, step)))
		CheckMayDecide(call, step);
}

/* Refuse to cancel a nested plan that has a gate, without the right to decide: the plan above would go on. */
void
CheckDoorOfCancel(Call *call, const PlanRow *plan)
{
	if (plan->nested && !CallerMayDecide(call))
		CheckDoor(call, StepMustRead(call, &plan->parent_step_id));
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
				 errhint("stepwise.why(plan_id) says what the plan waits for.")));
	if (!GateIsPassed(call, plan, step))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" is not due", step->name),
				 errdetail("A person has to approve it first."),
				 errhint("stepwise.get_next_step(plan_id) opens its review; stepwise.why(plan_id) says what the plan waits for.")));
}
