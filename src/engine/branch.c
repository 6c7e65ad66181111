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
	B_POSITION = 1, B_ACTION, B_TARGET, B_PARAMS, B_EXPRESSION, B_PATH, B_OPERANDS, B_DETAIL
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

/* ---------- the answer of the call ---------- */

#define PARAMS_SHOWN	4000	/* bytes of the parameters of a branch in an answer */
#define CONDITION_SHOWN	300		/* bytes of a condition, and of why it cannot be decided */
#define NOTE_SHOWN		1000	/* bytes of a note */
#define UNDECIDED_SHOWN	20		/* conditions that cannot be decided */

/* what the conditions of a step did */
typedef struct Taken
{
	Jsonb	   *fired;			/* NULL: none was true */
	JsonBuilder undecided;		/* an unfinished array */
	int			count;			/* of those that cannot be decided */
} Taken;

/* Note the condition that fired. */
static void
TakeFired(Taken *taken, const PlanRow *plan, const Rows *rows, uint64 row, const char *note)
{
	ReadingFunction reader = {"get_plan_context", "plan_id", UuidText(&plan->id), "max_bytes"};
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", RowText(rows, row, B_ACTION));
	JsonPutText(&b, "condition", CutText(RowText(rows, row, B_EXPRESSION), CONDITION_SHOWN, NULL));
	JsonPutJson(&b, "params", CutJson(RowVarlena(rows, row, B_PARAMS), PARAMS_SHOWN, &reader));
	if (note != NULL)
		JsonPutText(&b, "note", CutText(note, NOTE_SHOWN, NULL));
	JsonObjectEnd(&b);
	taken->fired = JsonFinish(&b);
}

/* Note a condition that cannot be decided, and why. */
static void
TakeUndecided(Taken *taken, const char *condition, const char *why)
{
	JsonBuilder *b = &taken->undecided;

	if (taken->count++ == 0)
		JsonArrayStart(b, NULL);
	if (taken->count > UNDECIDED_SHOWN)
		return;
	JsonObjectStart(b, NULL);
	JsonPutText(b, "condition", CutText(condition, CONDITION_SHOWN, NULL));
	JsonPutText(b, "error", CutText(why, CONDITION_SHOWN, NULL));
	JsonObjectEnd(b);
}

/* Build what an answer says of the conditions; NULL if there is nothing to say. */
static Jsonb *
TakenAnswer(Taken *taken)
{
	JsonBuilder b = {0};

	if (taken->count == 0)
		return taken->fired;
	JsonArrayEnd(&taken->undecided);
	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "undecided", JsonFinish(&taken->undecided));
	if (taken->count > UNDECIDED_SHOWN)
		JsonPutInt(&b, "undecidedCount", taken->count);
	JsonObjectEnd(&b);
	return JsonMerge(taken->fired, JsonFinish(&b));
}

/* Read again what the conditions of a completed step did, to repeat it in an answer; NULL if there is nothing to say. */
Jsonb *
BranchTaken(Call *call, const PlanRow *plan, const StepRow *step)
{
	static KeptQuery read = {
		"SELECT b.position, b.action, b.target_id, b.params, b.expression, b.path, b.operands, a.detail FROM stepwise.audit AS a"
		" JOIN stepwise.branching_condition AS b ON b.tenant = $1 AND b.step_id = $3 AND b.position = (a.detail ->> 'position')::int"
		" WHERE a.tenant = $1 AND a.plan_id = $2 AND a.step_id = $3 AND a.event = 'plan_modified'"
		" AND a.detail @> '{\"action\": \"branch\"}' ORDER BY a.id",
		3, {TEXTOID, UUIDOID, UUIDOID}, .reads_log = true
	};
	Params		params = {0};
	Taken		taken = {0};
	Rows		rows;

	if (!step->branches)
		return NULL;
	ParamKey(&params, call, &step->plan_id);
	ParamUuid(&params, &step->id);
	rows = QueryRun(&read, &params);
	for (uint64 i = 0; i < rows.count; i++)
	{
		Jsonb	   *detail = RowJson(&rows, i, B_DETAIL);
		char	   *why = JsonGetText(detail, "undecided");
		JsonbValue	fired;

		if (why != NULL)
			TakeUndecided(&taken, RowText(&rows, i, B_EXPRESSION), why);
		else if (JsonGet(detail, "fired", &fired) && fired.val.boolean)
			TakeFired(&taken, plan, &rows, i, JsonGetText(detail, "note"));
	}
	RowsFree(&rows);
	return TakenAnswer(&taken);
}

/* ---------- after a step ---------- */

/* Carry out a condition that is true, and audit it. Returns a note for the answer of the call, or NULL. */
static const char *
BranchFire(Call *call, PlanRow *plan, StepRow *step, const Rows *rows, uint64 row)
{
	Branch		branch = {plan, step};

	branch.action = RowText(rows, row, B_ACTION);
	branch.target_id = RowUuid(rows, row, B_TARGET);
	branch.params = RowJson(rows, row, B_PARAMS);
	BranchAct(call, &branch);
	AuditAppend(call, plan, &step->id, "plan_modified", BranchDetail(rows, row, CONDITION_TRUE, NULL, &branch));
	return branch.note;
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
	Taken		taken = {0};
	Jsonb	   *branch;

	for (uint64 i = 0; i < rows.count && taken.fired == NULL; i++)
	{
		Datum		path = PointerGetDatum(RowVarlena(&rows, i, B_PATH));
		char	   *why = NULL;
		ConditionResult result = BranchConditionDecide(call, plan, step, path, RowVarlena(&rows, i, B_OPERANDS), &why);

		if (result == CONDITION_TRUE)
		{
			TakeFired(&taken, plan, &rows, i, BranchFire(call, plan, step, &rows, i));
			continue;
		}
		if (result == CONDITION_UNDECIDED)
		{
			why = why ? why : pstrdup("the condition cannot be decided");
			TakeUndecided(&taken, RowText(&rows, i, B_EXPRESSION), why);
		}
		AuditAppend(call, plan, &step->id, "plan_modified", BranchDetail(&rows, i, result, why, NULL));
	}
	branch = TakenAnswer(&taken);
	if (branch != NULL)
		plan->branch = (Jsonb *) CallKeep(call, (struct varlena *) branch);
	RowsFree(&rows);
}
