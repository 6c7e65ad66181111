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
 * Locks: the caller holds the root of the tree.
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

/* Refuse a caller that has no right to decide. The step waits for a person, or will. */
void
CheckMayDecide(Call *call, const StepRow *step)
{
	if (!CallerMayDecide(call))
		ereport(ERROR,
				(errcode(ERRCODE_APPROVAL_MISMATCH),
				 errmsg("role \"%s\" has no right to decide about step \"%s\"", RoleText(call->caller), step->name),
				 errdetail("A person decides about this step, or about a step before it."),
				 errhint("Leave the decision to the person; stepwise.why(plan_id) says what the plan waits for.")));
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
		5, {TEXTOID, UUIDOID, UUIDOID, UUIDOID, TEXTOID}
	};
	Call		nameless = {.caller = call->caller};
	Params		params = {0};
	Rows		rows;

	ParamTenant(&params, call);
	ParamUuid(&params, &plan->root_id);
	ParamUuid(&params, &plan->id);
	ParamUuid(&params, &step->id);
	ParamText(&params, ActorText(&nameless));
	rows = QueryRun(&find, &params);
	return rows.count > 0 ? RowText(&rows, 0, 1) : NULL;
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
				 errhint("The review waits for a person who has no part in the step.")));
}

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

/*
 * Refuse to end a step by another way than a decision, if that would end a
 * review for which the caller may not decide: of the step itself, or of a step
 * nested in it.
 */
void
CheckMayEnd(Call *call, PlanRow *plan, const StepRow *step)
{
	static KeptQuery waiting = {
		"SELECT k.plan_id, k.step_id FROM stepwise.checkpoint AS k"
		" JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = k.plan_id AND p.separate_reviewer"
		" WHERE k.tenant = $1 AND k.root_id = $2 AND k.kind = 'review' ORDER BY k.id",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows;

	if (step->status != STEP_AWAITING_INPUT && !(step->status == STEP_IN_PROGRESS && StepNests(step)))
		return;
	rows = QueryById(call, &waiting, &plan->root_id);
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t	plan_id = RowUuid(&rows, i, 1);
		pg_uuid_t	step_id = RowUuid(&rows, i, 2);
		PlanRow    *around = PlanInTree(call, plan->root, &plan_id);

		if (UuidEqual(&step_id, &step->id) || IsBelow(call, around, step))
			CheckSeparateReviewer(call, around, StepMustRead(call, &step_id));
	}
	RowsFree(&rows);
}
