/*
 * below.c
 *	  find gates below a step that runs a workflow
 *
 * A gate is a step at which a person decides: a prompt, a step with a review,
 * or one that waits for a review or was sent back by it. The nested plan of a
 * step counts as a part of the step. So whoever ends the step passes the gates
 * below it, opened or not, at any depth.
 *
 * Nothing is written here.
 */
#include "engine/engine.h"

/* Is the step s a gate? */
#define IS_GATE \
	"(s.prompt IS NOT NULL OR s.review IS NOT NULL OR s.feedback IS NOT NULL" \
	" OR (s.status = 'awaiting_input' AND s.workflow IS NULL))"

/* Say whether a query has found something. */
static bool
FoundAny(Rows rows)
{
	bool		any = rows.count > 0;

	RowsFree(&rows);
	return any;
}

/*
 * The steps of the definition d, and those that its branches may add. Only they count: the arguments of a tool may well
 * have a key "prompt".
 */
#define DEFINED_STEPS \
	"pg_catalog.jsonb_path_query_array(d.definition, 'lax $.steps[*]')" \
	" || pg_catalog.jsonb_path_query_array(d.definition, 'lax $.branchingConditions[*].actionParams.steps[*]')"

/* Say whether the workflow of a step, or one that it calls, defines a gate. */
static bool
DefinesGate(Call *call, const StepRow *step)
{
	static KeptQuery defined = {
		"WITH RECURSIVE called AS (SELECT $2 AS name, nullif($3, 0) AS version UNION"
		" SELECT x.step ->> 'workflow', (x.step ->> 'version')::int FROM called AS c JOIN stepwise.workflow AS d"
		" ON d.tenant = $1 AND d.name = c.name AND d.version = coalesce(c.version, (SELECT pg_catalog.max(n.version)"
		" FROM stepwise.workflow AS n WHERE n.tenant = $1 AND n.name = c.name)),"
		" LATERAL pg_catalog.jsonb_path_query(" DEFINED_STEPS ", 'lax $[*] ? (exists (@.workflow))') AS x (step))"
		" SELECT 1 FROM called AS c JOIN stepwise.workflow AS d"
		" ON d.tenant = $1 AND d.name = c.name AND d.version = coalesce(c.version, (SELECT pg_catalog.max(n.version)"
		" FROM stepwise.workflow AS n WHERE n.tenant = $1 AND n.name = c.name))"
		" WHERE pg_catalog.jsonb_path_exists(" DEFINED_STEPS ", 'lax $[*] ? (exists (@.prompt) || exists (@.review))') LIMIT 1",
		3, {TEXTOID, TEXTOID, INT4OID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamText(&params, step->workflow);
	ParamInt(&params, step->version ? step->version : step->fixed_version);
	return FoundAny(QueryRun(&defined, &params));
}

/* Say whether a plan nested in a step, at any depth, has a gate. */
static bool
HasGateOpened(Call *call, const StepRow *step)
{
	static KeptQuery opened = {
		"WITH RECURSIVE below AS (SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.parent_step_id = $2"
		" UNION ALL"
		" SELECT n.id FROM below AS b JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = b.id AND s.workflow IS NOT NULL"
		" JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = s.id)"
		" SELECT 1 FROM below AS b JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = b.id"
		" WHERE " IS_GATE " LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};

	return FoundAny(QueryById(call, &opened, &step->id));
}

/*
 * Say whether a gate is below a step that runs a workflow. The definition tells
 * of steps that are still to come; a plan that is open may have got others.
 */
bool
GateIsBelow(Call *call, const StepRow *step)
{
	return StepNests(step) && (DefinesGate(call, step) || HasGateOpened(call, step));
}

/* the newest nested plan n of the step s; the plans of earlier attempts do not count */
#define NEWEST_BELOW(parent_step_id) \
	"(SELECT p.id, p.status = 'cancelled' AS cancelled FROM stepwise.plan AS p" \
	" WHERE p.tenant = $1 AND p.parent_step_id = " parent_step_id \
	" ORDER BY p.tenant DESC, p.parent_step_id DESC, p.id DESC LIMIT 1)"

/* Has the step s of the plan b not come to its end? The steps of a cancelled plan were skipped with it. */
#define NOT_DONE \
	"(s.status NOT IN ('completed', 'skipped') OR (s.status = 'skipped' AND b.cancelled))"

/*
 * Say whether a step that runs a workflow has failed before a person was asked
 * at every gate below it. A gate that was passed, or left out by its plan, does
 * not count. Of a plan that was not opened, the definition tells.
 */
bool
GateBelowIsMissed(Call *call, const StepRow *step)
{
	static KeptQuery missed = {
		"WITH RECURSIVE below AS (SELECT n.* FROM " NEWEST_BELOW("$2") " AS n UNION ALL"
		" SELECT n.* FROM below AS b JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = b.id AND s.workflow IS NOT NULL"
		" AND " NOT_DONE ", LATERAL " NEWEST_BELOW("s.id") " AS n)"
		" SELECT s.* FROM below AS b JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = b.id"
		" WHERE " NOT_DONE " AND (" IS_GATE " OR (s.workflow IS NOT NULL"
		" AND NOT EXISTS (SELECT FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.parent_step_id = s.id)))",
		2, {TEXTOID, UUIDOID}, .reads_plans = true
	};
	bool		found = false;
	pg_uuid_t	nested_id;
	Rows		rows;

	if (!StepNests(step))
		return false;
	if (!NestedPlanId(call, &step->id, &nested_id))
		return DefinesGate(call, step);
	rows = QueryById(call, &missed, &step->id);
	for (uint64 i = 0; i < rows.count && !found; i++)
	{
		StepRow    *missing = RowStep(&rows, i);

		found = !StepNests(missing) || missing->review != NULL || missing->feedback != NULL || DefinesGate(call, missing);
	}
	RowsFree(&rows);
	return found;
}
