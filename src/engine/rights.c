/*
 * rights.c
 *	  who may decide for a person
 *
 * The right to decide is EXECUTE on stepwise.submit_user_decision. The owner of
 * the extension always has it. Whatever gets past a prompt or a gate asks for
 * this right.
 *
 * A plan with separateReviewer also looks at what a role has done. Some roles
 * may not decide a review: the one that created the plan, and those that
 * requested the review or ever claimed or submitted the step. Of a step that
 * runs a workflow, these are the roles that did so in its nested plans; of a
 * review that a branch has added, those of the step that is reviewed. The audit
 * log knows them, so no column has to. Only such plans pay for reading it.
 *
 * A role that is renamed later is another role here, because the audit log has
 * the names of roles.
 *
 * Locks: none. Who refuses holds the root of the tree.
 */
#include "engine/engine.h"

/*
 * Say whether the caller may change plans. A reader has EXECUTE on functions
 * that note something by the way; for a reader they write nothing.
 */
bool
CallerMayWrite(Call *call)
{
	return RoleMayExecute(call->caller, "get_next_step");
}

/* Say whether the caller has the right to decide. */
bool
CallerMayDecide(Call *call)
{
	return RoleMayExecute(call->caller, "submit_user_decision");
}

/* ---------- a separate reviewer ---------- */

/* the entries of a role, whatever name it gave; the role is $2 */
#define BY_ROLE "(a.actor = $2 OR pg_catalog.starts_with(a.actor, $2 || '/'))"

/*
 * The entries of who claimed or submitted a step, or requested a review of it.
 * A decision may also complete a step, or bring it to the gate after it, and a
 * branch may request a review: those are no work on the step.
 */
#define IS_WORK \
	"(a.event = 'step_started' OR a.event = 'step_retried' AND a.detail ->> 'to' = 'in_progress'" \
	" OR a.event IN ('step_completed', 'step_waiting') AND a.detail ->> 'from' = 'in_progress')" \
	" AND coalesce(a.detail ->> 'by', '') NOT IN ('branch', 'review')"

/* Begin the parameters of a query: the tenant, and the role that calls. */
static void
ParamRole(Params *params, Call *call)
{
	Call		nameless = {.caller = call->caller};

	ParamTenant(params, call);
	ParamText(params, ActorText(&nameless));
}

/* Say whether a query about the caller has an answer. */
static bool
IsAnswered(KeptQuery *query, const Params *params)
{
	Rows		rows = QueryRun(query, params);
	bool		found = rows.count > 0;

	RowsFree(&rows);
	return found;
}

/*
 * Say whether the caller created the plan. The creator of a nested plan is the
 * creator of its root: a nested plan is opened by whoever happens to ask.
 */
static bool
HasCreated(Call *call, const PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT FROM stepwise.audit AS a WHERE a.tenant = $1 AND a.plan_id = $3 AND a.id = 1 AND " BY_ROLE,
		3, {TEXTOID, TEXTOID, UUIDOID}, .reads_log = true
	};
	Params		params = {0};

	ParamRole(&params, call);
	ParamUuid(&params, &plan->root_id);
	return IsAnswered(&find, &params);
}

/* Say whether the caller has worked on a step. */
static bool
HasWorkedOn(Call *call, const StepRow *step)
{
	static KeptQuery find = {
		"SELECT FROM stepwise.audit AS a WHERE a.tenant = $1 AND a.plan_id = $3 AND a.step_id = $4"
		" AND " BY_ROLE " AND " IS_WORK " LIMIT 1",
		4, {TEXTOID, TEXTOID, UUIDOID, UUIDOID}, .reads_log = true
	};
	Params		params = {0};

	ParamRole(&params, call);
	ParamUuid(&params, &step->plan_id);
	ParamUuid(&params, &step->id);
	return IsAnswered(&find, &params);
}

/*
 * Say whether the caller has worked below a step that runs a workflow. To
 * open or end that step, or to open a prompt, is not work: whoever calls next
 * does that.
 */
static bool
HasWorkedBelow(Call *call, const StepRow *step)
{
	static KeptQuery find = {
		"WITH RECURSIVE below AS (SELECT n.id FROM stepwise.plan AS n WHERE n.tenant = $1 AND n.parent_step_id = $3"
		" UNION ALL SELECT n.id FROM below AS b JOIN stepwise.step AS h ON h.tenant = $1 AND h.plan_id = b.id AND h.workflow IS NOT NULL"
		" JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = h.id)"
		" SELECT FROM below AS b JOIN stepwise.audit AS a ON a.tenant = $1 AND a.plan_id = b.id"
		" JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = a.step_id"
		" WHERE " BY_ROLE " AND " IS_WORK " AND s.workflow IS NULL AND s.prompt IS NULL LIMIT 1",
		3, {TEXTOID, TEXTOID, UUIDOID}, .reads_log = true
	};
	Params		params = {0};

	ParamRole(&params, call);
	ParamUuid(&params, &step->id);
	return IsAnswered(&find, &params);
}

/* Say whether the caller has a part in the work of a step. */
static bool
HasWorked(Call *call, const StepRow *step)
{
	return StepNests(step) ? HasWorkedBelow(call, step) : HasWorkedOn(call, step);
}

/* Find the step that is reviewed by a step that a branch has added; NULL if this is no such step. */
static StepRow *
ReviewedStep(Call *call, const StepRow *step)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.audit AS a JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = (a.detail ->> 'reviewedStepId')::uuid"
		" WHERE a.tenant = $1 AND a.plan_id = $2 AND a.step_id = $3 AND a.event = 'step_waiting' AND a.detail ? 'reviewedStepId' LIMIT 1",
		3, {TEXTOID, UUIDOID, UUIDOID}
	};
	Params		params = {0};

	ParamKey(&params, call, &step->plan_id);
	ParamUuid(&params, &step->id);
	return StepFetch(&find, &params);
}

/*
 * Say why the caller may not decide the review of a step: what part it has had
 * in the step; NULL if it has had none. The call that opens a gate before a step
 * (pending to awaiting_input) is no part: whoever calls next does that.
 */
const char *
PartOfCaller(Call *call, const PlanRow *plan, const StepRow *step)
{
	const StepRow *reviewed = plan->separate_reviewer ? ReviewedStep(call, step) : NULL;

	if (!plan->separate_reviewer)
		return NULL;
	if (HasCreated(call, plan))
		return "created the plan";
	if (HasWorked(call, step))
		return StepNests(step) ? "worked in the workflow of the step" : "worked on the step, or requested the review";
	if (reviewed != NULL && HasWorked(call, reviewed))
		return "worked on the step that is reviewed";
	return NULL;
}

/* Say whether the caller may decide the review of a step. */
bool
CallerMayReview(Call *call, const PlanRow *plan, const StepRow *step)
{
	return CallerMayDecide(call) && PartOfCaller(call, plan, step) == NULL;
}
