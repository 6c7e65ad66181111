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
 * requested the review or ever claimed or submitted the step. The audit log
 * knows them, so no column has to. Only such plans pay for reading it.
 *
 * A role that is renamed later is another role here, because the audit log has
 * the names of roles.
 *
 * Locks: who refuses holds the root of the tree; who only asks holds none.
 */
#include "api/api.h"

/*
 * Say whether the caller may change plans. A reader has EXECUTE on functions
 * that note something by the way; for a reader they write nothing.
 */
bool
CallerMayWrite(Call *call)
{
	return RoleIsOwner(call->caller) || RoleMayExecute(call->caller, "get_next_step");
}

/* Say whether the caller has the right to decide. */
bool
CallerMayDecide(Call *call)
{
	return RoleIsOwner(call->caller) || RoleMayExecute(call->caller, "submit_user_decision");
}

/* ---------- a separate reviewer ---------- */

/*
 * Say what part the caller has had in a step that waits for a review; NULL if
 * none.
 *
 * The creator of a nested plan is the creator of its root: a nested plan is
 * opened by whoever happens to ask. For the same reason, who makes a gate
 * before a step open (pending to awaiting_input) has no part in the step.
 */
static char *
PartOfCaller(Call *call, const PlanRow *plan, const StepRow *step)
{
	static KeptQuery find = {
		"SELECT CASE WHEN a.plan_id = $2 AND a.id = 1 THEN 'created the plan' ELSE 'worked on the step, or requested the review' END"
		" FROM stepwise.audit AS a WHERE a.tenant = $1"
		" AND (a.plan_id = $2 AND a.id = 1 OR a.plan_id = $3 AND a.step_id = $4"
		" AND (a.event IN ('step_started', 'step_completed')"
		" OR a.event = 'step_retried' AND a.detail ->> 'to' = 'in_progress'"
		" OR a.event = 'step_waiting' AND a.detail ->> 'from' = 'in_progress'))"
		" AND (a.actor = $5 OR pg_catalog.starts_with(a.actor, $5 || '/')) LIMIT 1",
		5, {TEXTOID, UUIDOID, UUIDOID, UUIDOID, TEXTOID}, .reads_log = true
	};
	Call		nameless = {.caller = call->caller};
	Params		params = {0};
	Rows		rows;

	ParamKey(&params, call, &plan->root_id);
	ParamUuid(&params, &plan->id);
	ParamUuid(&params, &step->id);
	ParamText(&params, ActorText(&nameless));
	rows = QueryRun(&find, &params);
	return rows.count > 0 ? RowText(&rows, 0, 1) : NULL;
}

/* Say whether the caller may decide the review of a step. */
bool
CallerMayReview(Call *call, const PlanRow *plan, const StepRow *step)
{
	return CallerMayDecide(call) && !(plan->separate_reviewer && PartOfCaller(call, plan, step) != NULL);
}

/* Refuse to end the review of a step, if the plan wants a separate reviewer and the caller is none. */
void
CheckSeparateReviewer(Call *call, const PlanRow *plan, const StepRow *step)
{
	char	   *part = plan->separate_reviewer ? PartOfCaller(call, plan, step) : NULL;

	if (part != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_APPROVAL_MISMATCH),
				 errmsg("role \"%s\" may not decide the review of step \"%s\"", RoleText(call->caller), step->name),
				 errdetail("The plan wants a separate reviewer, and this role %s.", part),
				 errhint("%s", StepHint(step, "The review waits for a person who has no part in the step; stepwise.why(root_id) shows it."))));
}
