/*
 * branch.c
 *	  branching conditions, which are evaluated when a step completes
 *
 * The conditions of a step are evaluated in the order of their positions. The
 * first one that is true fires: its action is carried out, and the rest are not
 * evaluated. Every evaluation has an audit entry, whether it fired or not.
 *
 * Locks: the caller holds the locks of the root and of the plan.
 */
#include "engine/engine.h"

/* columns of the query that reads the conditions */
enum
{
	B_POSITION = 1, B_ACTION, B_TARGET, B_PARAMS, B_EXPRESSION, B_PATH, B_OPERANDS
};

/* a branching condition that fires, and the step that it belongs to */
typedef struct Branch
{
	PlanRow    *plan;
	StepRow    *step;
	char	   *action;
	pg_uuid_t	target_id;
	Jsonb	   *params;
	/* for the audit entry */
	const char *note;			/* why the action did nothing, or NULL */
	List	   *added;			/* names of the steps that the action added */
	List	   *skipped;		/* names of the steps that the action skipped */
} Branch;

/* Do nothing: the plan goes on with its next step. */
static void
ActContinue(Call *call, Branch *branch)
{
}

/*
 * Skip the pending steps between the step and the target. Steps that the target
 * depends on, directly or through others, are not skipped: otherwise the target
 * would be skipped too, or would run without their results. A sequence has no
 * dependencies, so all the steps between are skipped.
 */
static void
ActSkipTo(Call *call, Branch *branch)
{
	static KeptQuery between = {
		"WITH RECURSIVE above AS ("
		" SELECT d.depends_on AS id FROM stepwise.dependency AS d WHERE d.tenant = $1 AND d.step_id = $5"
		" UNION"
		" SELECT d.depends_on FROM above AS a JOIN stepwise.dependency AS d ON d.tenant = $1 AND d.step_id = a.id)"
		" SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order > $3"
		" AND s.step_order < $4 AND s.status = 'pending' AND s.id NOT IN (SELECT a.id FROM above AS a) ORDER BY s.step_order",
		5, {TEXTOID, UUIDOID, INT4OID, INT4OID, UUIDOID}
	};
	StepRow    *target = StepRead(call, &branch->target_id);
	Params		params = {0};
	Rows		rows;

	if (target == NULL || target->order <= branch->step->order)
	{
		branch->note = target == NULL ? "the target was removed" : "the target is not after the step";
		return;
	}
	ParamKey(&params, call, &branch->plan->id);
	ParamInt(&params, branch->step->order);
	ParamInt(&params, target->order);
	ParamUuid(&params, &target->id);
	rows = QueryRun(&between, &params);
	for (uint64 i = 0; i < rows.count; i++)
	{
		StepRow    *step = RowStep(&rows, i);

		step->message = psprintf("a branch after step \"%s\" skipped to \"%s\"", branch->step->name, target->name);
		StepMove(call, branch->plan, step, STEP_SKIPPED, NULL);
		branch->skipped = lappend(branch->skipped, step->name);
	}
	RowsFree(&rows);
}

/* Add steps after this one. */
static void
ActAddSteps(Call *call, Branch *branch)
{
	Jsonb	   *steps = JsonGetJson(branch->params, "steps");
	Faults		faults = {0};
	pg_uuid_t  *ids;
	int			count;

	ids = PlanAddSteps(call, branch->plan, steps, branch->step->order, &faults, &count);
	/* the steps were accepted when the branch was defined, but their names may have been taken since */
	if (FaultsAny(&faults))
	{
		branch->note = psprintf("the steps cannot be added any more: %s", FaultsFirst(&faults));
		return;
	}
	for (int i = 0; i < count; i++)
		branch->added = lappend(branch->added, StepMustRead(call, &ids[i])->name);
}

/* Fail the plan at once. Its other steps keep their states. */
static void
ActFail(Call *call, Branch *branch)
{
	char	   *reason = JsonGetText(branch->params, "reason");

	if (reason == NULL)
		reason = psprintf("a branch after step \"%s\" failed the plan", branch->step->name);
	branch->plan->message = CallKeepText(call, reason);
	PlanMove(call, branch->plan, PLAN_FAILED, JsonTextOf("reason", branch->plan->message));
}

/* Fill the references in the questions of a review; NULL if there are none. */
static Jsonb *
FillQuestions(Call *call, const Branch *branch)
{
	Jsonb	   *questions = JsonGetJson(branch->params, "questions");
	JsonBuilder b = {0};
	JsonbValue	question;

	if (questions == NULL)
		return NULL;
	JsonArrayStart(&b, NULL);
	for (int i = 0; JsonGetIndex(questions, i, &question); i++)
		JsonPutText(&b, NULL, ResolveForReview(call, branch->plan, branch->step, JsonValueText(&question)));
	JsonArrayEnd(&b);
	return JsonFinish(&b);
}

/*
 * Build the detail of the moves of a review that a branch has requested. Who
 * completed the step may be the reviewer of an earlier review, so the caller
 * is not the one who requested it.
 */
static Jsonb *
ReviewDetail(const Branch *branch)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "by", "branch");
	JsonPutUuid(&b, "reviewedStepId", &branch->step->id);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/*
 * Add a checkpoint step after this one, and let it wait for a review. The limit
 * max_steps is not checked, so that it cannot prevent a review.
 */
static void
ActRequestReview(Call *call, Branch *branch)
{
	char	   *summary = JsonGetText(branch->params, "summary");
	StepRow    *step = PlanAddCheckpointStep(call, branch->plan, branch->step);

	if (summary == NULL)
		summary = psprintf("Review the result of step \"%s\".", branch->step->name);
	else
		summary = ResolveForReview(call, branch->plan, branch->step, summary);
	StepRequestReview(call, branch->plan, step, summary, FillQuestions(call, branch), NULL, ReviewDetail(branch));
	branch->added = list_make1(step->name);
}

/* the branching actions */
static const struct
{
	const char *name;
	void		(*act) (Call *call, Branch *branch);
}			Actions[] = {
	{"continue", ActContinue},
	{"skip_to", ActSkipTo},
	{"add_steps", ActAddSteps},
	{"fail", ActFail},
	{"request_review", ActRequestReview},
};

/* Carry out the action of a branching condition. */
static void
BranchAct(Call *call, Branch *branch)
{
	for (size_t i = 0; i < lengthof(Actions); i++)
		if (strcmp(branch->action, Actions[i].name) == 0)
		{
			Actions[i].act(call, branch);
			return;
		}
	elog(ERROR, "unknown branching action \"%s\"", branch->action);
}

/* Build the detail of the audit entry of one evaluation. "fired" is NULL if the condition did not fire. */
static Jsonb *
BranchDetail(const Rows *rows, uint64 row, ConditionResult result, const char *why, const Branch *fired)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", "branch");
	JsonPutInt(&b, "position", RowInt(rows, row, B_POSITION));
	JsonPutText(&b, "condition", RowText(rows, row, B_EXPRESSION));
	JsonPutBool(&b, "fired", result == CONDITION_TRUE);
	JsonPutText(&b, "branchAction", RowText(rows, row, B_ACTION));
	if (result == CONDITION_UNDECIDED)
		JsonPutText(&b, "undecided", why);
	if (fired != NULL && fired->note != NULL)
		JsonPutText(&b, "note", fired->note);
	/* a fork that starts before the branch undoes its action, so it needs the names of the steps */
	if (fired != NULL && fired->added != NIL)
		JsonPutTexts(&b, "addedSteps", fired->added);
	if (fired != NULL && fired->skipped != NIL)
		JsonPutTexts(&b, "skippedSteps", fired->skipped);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

#define PARAMS_SHOWN	4000	/* bytes of the parameters of a branch in an answer */

/* Carry out a condition that is true, and audit it. Returns what it did, for the answer of the call. */
static Jsonb *
BranchFire(Call *call, PlanRow *plan, StepRow *step, const Rows *rows, uint64 row)
{
	ReadingFunction reader = {"get_plan_context", "plan_id", UuidText(&plan->id), "max_bytes"};
	Branch		branch = {plan, step};
	JsonBuilder b = {0};

	branch.action = RowText(rows, row, B_ACTION);
	branch.target_id = RowUuid(rows, row, B_TARGET);
	branch.params = RowJson(rows, row, B_PARAMS);
	BranchAct(call, &branch);
	AuditAppend(call, plan, &step->id, "plan_modified", BranchDetail(rows, row, CONDITION_TRUE, NULL, &branch));
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", branch.action);
	JsonPutText(&b, "condition", RowText(rows, row, B_EXPRESSION));
	JsonPutJson(&b, "params", CutJson((struct varlena *) branch.params, PARAMS_SHOWN, &reader));
	if (branch.note != NULL)
		JsonPutText(&b, "note", branch.note);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Put a condition that cannot be decided, and why. The first one begins the list. */
static void
PutUndecided(JsonBuilder *b, const char *condition, const char *why)
{
	if (b->items == NULL)
	{
		JsonObjectStart(b, NULL);
		JsonArrayStart(b, "undecided");
	}
	JsonObjectStart(b, NULL);
	JsonPutText(b, "condition", condition);
	JsonPutText(b, "error", why);
	JsonObjectEnd(b);
}

/* Keep what the conditions of a step did, for the answer of the call; fired is NULL if none was true. */
static void
KeepBranch(Call *call, PlanRow *plan, Jsonb *fired, JsonBuilder *undecided)
{
	Jsonb	   *branch = fired;

	if (undecided->items != NULL)
	{
		JsonArrayEnd(undecided);
		JsonObjectEnd(undecided);
		branch = JsonMerge(fired, JsonFinish(undecided));
	}
	if (branch != NULL)
		plan->branch = (Jsonb *) CallKeep(call, (struct varlena *) branch);
}

/* Evaluate the branching conditions of a completed step, and fire the first one that is true. */
void
BranchesAfter(Call *call, PlanRow *plan, StepRow *step)
{
	static KeptQuery read = {
		"SELECT b.position, b.action, b.target_id, b.params, b.expression, b.path, b.operands"
		" FROM stepwise.branching_condition AS b WHERE b.tenant = $1 AND b.step_id = $2 ORDER BY b.position",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &read, &step->id);
	JsonBuilder undecided = {0};
	Jsonb	   *fired = NULL;

	for (uint64 i = 0; i < rows.count && fired == NULL; i++)
	{
		Datum		path = PointerGetDatum(RowVarlena(&rows, i, B_PATH));
		char	   *why = NULL;
		ConditionResult result = BranchConditionDecide(call, plan, step, path, RowVarlena(&rows, i, B_OPERANDS), &why);

		if (result == CONDITION_TRUE)
		{
			fired = BranchFire(call, plan, step, &rows, i);
			continue;
		}
		if (result == CONDITION_UNDECIDED)
		{
			why = why ? why : pstrdup("the condition cannot be decided");
			PutUndecided(&undecided, RowText(&rows, i, B_EXPRESSION), why);
		}
		AuditAppend(call, plan, &step->id, "plan_modified", BranchDetail(&rows, i, result, why, NULL));
	}
	KeepBranch(call, plan, fired, &undecided);
	RowsFree(&rows);
}
