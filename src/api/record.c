/*
 * record.c
 *	  record_tool_result: take the result of a tool that the client has called
 *
 * A report is a call of record_tool_result. A step is held if its claim has a
 * worker or a lease. Then its result is expected from that claim, and a report
 * that names the step is refused.
 *
 * Without a step name, a report goes to the open failure of that tool, in the
 * plan or in the plans nested in it. If there is none, it goes to the step of
 * that tool that is due, blocked only by its arguments, or claimed but not
 * held. The engine does not choose among several steps: the report is refused,
 * and names them. In a sequence, a held step with that tool is not passed over;
 * the report is refused. If no step can take the result, it is kept as the
 * variable _workflow.extra.TOOL.
 *
 * A pending step that takes a report is claimed by the report itself. So the
 * report asks StepIsDue first, like every other way into a step. A failed step
 * is asked as it would be after a retry.
 *
 * A step name is looked up in the plan first, where it is unique. If the plan
 * has no such step, or if that step takes no results, the plans nested in it
 * are searched. Several of their steps may have the name. A client that lost
 * the answer repeats its call, and that must not change another step. So a
 * step that already has this very result is taken first. If two of these steps
 * rightly get the same result, the second report looks like a repeated one.
 * Then the client has to name the nested plan. So it has if several of them
 * could take the result.
 *
 * Locks: the root of the tree, the plan that the caller asked about, and the
 * plan of the step.
 */
#include "api/api.h"

#define NAMED_MAX		50		/* an error names at most this many steps */

typedef struct Report
{
	const char *tool;			/* NULL or empty if only the step is named */
	const char *step_name;		/* NULL if only the tool is named */
	Jsonb	   *result;
	bool		is_error;
	Outcome		outcome;
	Jsonb	   *execution_report;	/* or NULL */
} Report;

/* ---------- checks ---------- */

/* Check that a report names a tool or a step. */
static void
CheckReport(const Report *report)
{
	if (report->step_name == NULL && (report->tool == NULL || *report->tool == '\0'))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("a tool, or the name of a step, must be given"),
				 errhint("stepwise.why(plan_id) says which tool is asked for.")));
	if (report->tool != NULL && *report->tool != '\0')
		CheckToolName(report->tool);
}

static void
StepNameNotFound(Call *call, const PlanRow *plan, const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_STEP_NOT_FOUND),
			 errmsg("step \"%s\" not found in plan \"%s\"", name, plan->name),
			 errhint("%s", PlanHint(call, plan, "stepwise.get_plan_context(plan_id) lists the steps of the plan."))));
}

/* ---------- what is reported ---------- */

/* Find the message in a client's error, whatever shape the error has. */
static char *
ErrorOf(const Jsonb *result)
{
	JsonbValue	value;
	char	   *text;

	if (JsonIsNull(result))
		return pstrdup("the tool failed");
	if (JB_ROOT_IS_SCALAR(result) && JsonbExtractScalar(unconstify(JsonbContainer *, &result->root), &value))
		return JsonScalarText(&value);
	text = JsonGetText(result, "error");
	if (text == NULL)
		text = JsonGetText(result, "message");
	return text ? text : JsonToText(result);
}

/* ---------- which step, by tool ---------- */

/* Is the step held, so that its result is expected from its claim? */
static bool
IsHeld(const StepRow *step)
{
	return step->status == STEP_IN_PROGRESS && (step->holder != NULL || TimeIsSet(step->lease_expires_at));
}

/* the steps that a report without a step name may be meant for; of StepRow, in the order of the tree */
typedef struct Found
{
	List	   *failures;		/* open failures */
	List	   *takers;			/* due, blocked by arguments, or claimed but not held */
	StepRow    *held;			/* the first held step in a sequence, or NULL */
	StepRow    *passed;			/* a held step in a sequence before the first taker, or NULL */
} Found;

/* Sort a step with the tool into what was found. */
static void
FoundAdd(Call *call, PlanRow *plan, StepRow *step, Found *found)
{
	Judgement	j = {0};
	Due			due;

	if (IsHeld(step))
	{
		if (plan->sequential && found->held == NULL)
			found->held = step;
		return;
	}
	if (step->status == STEP_FAILED && !IsOpenFailure(plan, step))
		return;
	if (step->status != STEP_IN_PROGRESS && !TakesNow(call, plan, step, &due, &j))
		return;
	if (step->status == STEP_FAILED)
		found->failures = lappend(found->failures, step);
	else
	{
		found->takers = lappend(found->takers, step);
		if (found->passed == NULL)
			found->passed = found->held;
	}
}

/*
 * Look at the steps of a plan that have the tool. Of the pending steps only the
 * first one of a sequence, or the ready ones, can be due.
 */
static void
FoundInPlan(Call *call, PlanRow *plan, const char *tool, Found *found)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order >= $3 AND s.tool = $4"
		" AND (s.status IN ('failed', 'in_progress') OR (s.status = 'pending' AND (s.step_order = $5 OR ($6 AND s.blockers = 0))))"
		" ORDER BY s.tenant, s.plan_id, s.step_order",
		6, {TEXTOID, UUIDOID, INT4OID, TEXTOID, INT4OID, BOOLOID}
	};
	StepRow    *first = plan->sequential && plan->counts[STEP_PENDING] > 0 ? StepNextPending(call, plan, plan->next_order) : NULL;
	Params		params = {0};
	Rows		rows;

	if (first != NULL && plan->counts[STEP_FAILED] + plan->counts[STEP_IN_PROGRESS] == 0)
	{
		if (first->tool != NULL && strcmp(first->tool, tool) == 0)
			FoundAdd(call, plan, first, found);
		return;
	}
	ParamKey(&params, call, &plan->id);
	ParamInt(&params, 1);
	ParamText(&params, tool);
	ParamInt(&params, first ? first->order : 0);
	ParamBool(&params, !plan->sequential);
	rows = QueryRun(&find, &params);
	for (uint64 i = 0; i < rows.count; i++)
		FoundAdd(call, plan, RowStep(&rows, i), found);
	RowsFree(&rows);
}

/*
 * The plan $2 and the plans nested in it, with their places in the tree. A step
 * that was retried may have several nested plans. Only the newest one counts,
 * because the others have ended.
 */
#define PLANS_BELOW(which) \
	"WITH RECURSIVE below AS (" \
	" SELECT $2 AS id, ARRAY[]::int[] AS place, true AS open" \
	" UNION ALL" \
	" SELECT n.id, b.place || s.step_order, b.open AND n.completed_at IS NULL FROM below AS b" \
	" JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = b.id AND s.workflow IS NOT NULL" \
	" CROSS JOIN LATERAL (SELECT p.id, p.completed_at FROM stepwise.plan AS p" \
	" WHERE p.tenant = $1 AND p.parent_step_id = s.id" \
	" ORDER BY p.tenant DESC, p.parent_step_id DESC, p.id DESC LIMIT 1) AS n" which ") "

/* Look at the steps that have the tool in the open plans nested in a plan. */
static void
FoundBelow(Call *call, const PlanRow *plan, const char *tool, Found *found)
{
	static KeptQuery list = {
		PLANS_BELOW(" WHERE n.completed_at IS NULL")
		"SELECT b.id FROM below AS b WHERE b.id <> $2 AND EXISTS (SELECT FROM stepwise.step AS s WHERE s.tenant = $1"
		" AND s.plan_id = b.id AND s.tool = $3 AND s.status IN ('pending', 'failed', 'in_progress')) ORDER BY b.place",
		3, {TEXTOID, UUIDOID, TEXTOID}, .reads_plans = true
	};
	Params		params = {0};
	Rows		rows;

	if (!plan->root->nests)
		return;
	ParamKey(&params, call, &plan->id);
	ParamText(&params, tool);
	rows = QueryRun(&list, &params);
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t	id = RowUuid(&rows, i, 1);

		FoundInPlan(call, PlanInTree(call, plan->root, &id), tool, found);
	}
	RowsFree(&rows);
}

/* Name steps, with their paths where they are nested, for an error. */
static char *
NamesOf(Call *call, const PlanRow *asked, const List *steps)
{
	StringInfoData names;
	ListCell   *cell;

	initStringInfo(&names);
	foreach(cell, steps)
	{
		const StepRow *step = lfirst(cell);
		PlanRow    *plan = PlanInTree(call, asked->root, &step->plan_id);
		JsonBuilder b = {0};

		if (foreach_current_index(cell) == NAMED_MAX)
		{
			appendStringInfo(&names, " and %d more", list_length(steps) - NAMED_MAX);
			break;
		}
		JsonObjectStart(&b, NULL);
		PutPath(&b, plan, step);
		JsonObjectEnd(&b);
		appendStringInfo(&names, "%s%s in plan %s", foreach_current_index(cell) > 0 ? ", " : "",
						 JsonToText(JsonGetJson(JsonFinish(&b), "path")), UuidText(&plan->id));
	}
	return names.data;
}

/* Refuse a report that several steps could take. */
static void
CheckUnique(Call *call, const PlanRow *asked, const List *steps, const char *what)
{
	if (list_length(steps) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_STEP_NOT_FOUND),
				 errmsg("%d steps of plan \"%s\" could take %s", list_length(steps), asked->name, what),
				 errdetail("They are: %s.", NamesOf(call, asked, steps)),
				 errhint("%s", StepHint(call, linitial(steps), psprintf("Say which one is meant, as in stepwise.record_tool_result(plan_id, tool, result, step_name => '%s').",
															  ((StepRow *) linitial(steps))->name)))));
}

/* Refuse a result while a step that it may be meant for is held. */
static void
HeldRefuse(Call *call, const StepRow *step, int sqlstate, const char *detail, const char *hint)
{
	ereport(ERROR,
			(errcode(sqlstate),
			 errmsg("step \"%s\"%s is claimed%s%s", step->name,
					step->tool ? psprintf(" with tool \"%s\"", step->tool) : "",
					step->holder ? " by " : "", step->holder ? step->holder : ""),
			 errdetail("%s", detail),
			 errhint("%s", StepHint(call, step, hint))));
}

/* Find the step of a tool that a report is for; NULL if no step can take it. */
static StepRow *
StepOfTool(Call *call, PlanRow *asked, const char *tool)
{
	char	   *what = psprintf("the result of tool \"%s\"", tool);
	Found		found = {0};
	StepRow    *held;

	FoundInPlan(call, asked, tool, &found);
	FoundBelow(call, asked, tool, &found);
	CheckUnique(call, asked, found.failures, what);
	if (found.failures != NIL)
		return linitial(found.failures);
	held = found.takers != NIL ? found.passed : found.held;
	if (held != NULL)
		HeldRefuse(call, held, ERRCODE_STALE_ATTEMPT, "In a sequence, the result of a tool is not given to a later step instead.",
				   "Who has claimed it submits it with stepwise.submit_step_result(step_id, result) and the attempt of the claim; to answer another step, name it with step_name.");
	CheckUnique(call, asked, found.takers, what);
	return found.takers != NIL ? linitial(found.takers) : NULL;
}

/* ---------- what is recorded already ---------- */

/* Make a fault from a report of an error. */
static ToolFault *
FaultOfReport(const Report *report)
{
	ToolFault  *fault = palloc0(sizeof(ToolFault));
	char	   *code = JsonGetText(report->result, "code");

	fault->message = ErrorOf(report->result);
	fault->reported = JsonIsObject(report->result) ? report->result : NULL;
	if (code != NULL && strlen(code) == 5)
		strlcpy(fault->code, code, sizeof(fault->code));
	return fault;
}

/* Does this result of the step wait at the gate after it? */
static bool
IsWaiting(Call *call, const StepRow *step, const Report *report)
{
	StepRow		submitted = {.result = (struct varlena *) report->result, .outcome = report->outcome};

	StepReport(&submitted, report->execution_report);
	return StepHasGate(step, GATE_AFTER) && JsonEqual(CheckpointSubmission(call, step), SubmissionOf(&submitted));
}

/* Has the step this result already? Then the client lost the answer and repeats its call. */
static bool
IsRecorded(Call *call, const StepRow *step, const Report *report)
{
	if (!report->is_error && IsWaiting(call, step, report))
		return true;
	if (report->is_error)
		return step->status == STEP_FAILED && step->message && strcmp(step->message, ErrorOf(report->result)) == 0;
	return step->status == STEP_COMPLETED && step->outcome == report->outcome &&
		JsonEqual(step->result ? JsonOf(step->result) : JsonNull(), report->result);
}

/* ---------- which step, by name ---------- */

#define NAMESAKES_MAX	1000	/* steps of one name in nested plans that are looked at */

/* Could a step that is named take a report now? */
static bool
CouldTake(Call *call, PlanRow *plan, StepRow *step)
{
	Judgement	j = {0};
	Due			due;

	if (PlanIsTerminal(plan->status) || !StepRuleOf(step)->by_worker)
		return false;
	if (step->status == STEP_IN_PROGRESS)
		return !IsHeld(step);
	return (step->status == STEP_PENDING || IsOpenFailure(plan, step)) && TakesNow(call, plan, step, &due, &j);
}

/* List the steps of this name in the plans nested in a plan: those that take results first, then in the order of the tree. */
static Rows
Namesakes(Call *call, const PlanRow *plan, const char *name)
{
	static KeptQuery find = {
		PLANS_BELOW("")
		"SELECT s.* FROM below AS b JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = b.id"
		" WHERE b.id <> $2 AND s.name = $3 ORDER BY s.workflow IS NULL AND s.prompt IS NULL DESC,"
		" b.open AND s.status IN ('pending', 'in_progress', 'failed') DESC, b.place || s.step_order LIMIT $4",
		4, {TEXTOID, UUIDOID, TEXTOID, INT4OID}, .reads_plans = true
	};
	Params		params = {0};

	ParamKey(&params, call, &plan->id);
	ParamText(&params, name);
	ParamInt(&params, NAMESAKES_MAX);
	return QueryRun(&find, &params);
}

/*
 * Find the step of this name in the plans nested in a plan. A repeated call must
 * not reach another step, so one that has this very result already comes first.
 * Otherwise only one step may be able to take the result. If none is, return
 * one of them, so that the error can say why.
 */
static StepRow *
StepOfNameBelow(Call *call, const PlanRow *plan, const Report *report)
{
	StepRow    *first = NULL;
	List	   *takers = NIL;
	Rows		rows;

	if (!plan->root->nests)
		return NULL;
	rows = Namesakes(call, plan, report->step_name);
	for (uint64 i = 0; i < rows.count; i++)
	{
		StepRow    *step = RowStep(&rows, i);

		if (IsRecorded(call, step, report))
			return step;
		if (CouldTake(call, PlanInTree(call, plan->root, &step->plan_id), step))
			takers = lappend(takers, step);
		first = first ? first : step;
	}
	RowsFree(&rows);
	CheckUnique(call, plan, takers, psprintf("the result for step \"%s\"", report->step_name));
	return takers != NIL ? linitial(takers) : first;
}

/* Find the step that a report names: a step of the plan, or of the plans nested in it. */
static StepRow *
StepOfName(Call *call, const PlanRow *asked, const Report *report)
{
	StepRow    *own = StepReadByName(call, &asked->id, report->step_name);
	StepRow    *below;

	if (own != NULL && StepRuleOf(own)->by_worker)
		return own;
	below = StepOfNameBelow(call, asked, report);
	return below ? below : own;
}

/* ---------- answers ---------- */

/* Add to an answer what run answers, and the next call. */
static Jsonb *
TakenAnswer(Call *call, const PlanRow *asked, const Jsonb *answer)
{
	Jsonb	   *task = TaskAnswer(call, &asked->id, LIST_MAX);

	return JsonMerge(JsonMerge(task, answer), NextCallAfter(call, asked));
}

/* Build the answer for a result that a step took. */
static Jsonb *
RecordAnswer(Call *call, const PlanRow *asked, const PlanRow *plan, const StepRow *step, bool duplicate)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	/* the client may have named a nested plan, but it drives the root */
	JsonPutUuid(&b, "rootPlanId", &plan->root_id);
	JsonPutText(&b, "rootPlanStatus", PlanStatusName[plan->root->status]);
	if (duplicate)
		JsonPutBool(&b, "duplicate", true);
	JsonObjectEnd(&b);
	return TakenAnswer(call, asked, JsonFinish(&b));
}

/* Write the audit entry of a result that no step waits for. */
static void
AuditExtra(Call *call, PlanRow *asked, const Report *report, const char *variable)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", "extra_result");
	JsonPutText(&b, "tool", report->tool);
	JsonPutText(&b, "variable", variable);
	JsonPutBool(&b, "isError", report->is_error);
	JsonPutText(&b, "resultDigest", DigestText(report->result));
	JsonObjectEnd(&b);
	AuditAppend(call, asked, NULL, "plan_modified", JsonFinish(&b));
}

/* Put the tools of the open steps of a plan and of the plans nested in it, which may be what the client meant. */
static void
PutOpenTools(JsonBuilder *b, Call *call, const PlanRow *asked)
{
	static KeptQuery list = {
		PLANS_BELOW(" WHERE n.completed_at IS NULL")
		"SELECT s.tool, pg_catalog.count(*) OVER ()::int FROM below AS b JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = b.id"
		" WHERE s.tool IS NOT NULL AND (s.status IN ('pending', 'in_progress') OR (s.status = 'failed' AND s.pause_reason IS NOT NULL))"
		" GROUP BY s.tool ORDER BY min(b.place || s.step_order) LIMIT 50",
		2, {TEXTOID, UUIDOID}, .reads_plans = true
	};
	Rows		rows = QueryById(call, &list, &asked->id);
	List	   *tools = NIL;

	for (uint64 i = 0; i < rows.count; i++)
		tools = lappend(tools, RowText(&rows, i, 1));
	JsonPutTexts(b, "openTools", tools);
	if (rows.count > 0 && RowInt(&rows, 0, 2) > list_length(tools))
		JsonPutInt(b, "openToolCount", RowInt(&rows, 0, 2));
	RowsFree(&rows);
}

/* Keep a result that no step waits for as a variable of the plan. */
static Jsonb *
RecordExtra(Call *call, PlanRow *asked, const Report *report)
{
	char	   *name = psprintf("_workflow.extra.%s", report->tool);
	JsonBuilder b = {0};

	VariablesStore(call, &asked->id,
				   JsonMerge(JsonOf(PlanDetailOf(call, asked)->variables), JsonObjectOf(name, report->result)));
	AuditExtra(call, asked, report, name);
	JsonObjectStart(&b, NULL);
	PutPlanAnswer(&b, asked);
	JsonPutBool(&b, "matched", false);
	PutOpenTools(&b, call, asked);
	JsonPutText(&b, "variable", name);
	JsonObjectEnd(&b);
	return TakenAnswer(call, asked, JsonFinish(&b));
}

/* ---------- recording ---------- */

/* Refuse a step that cannot take a report now. */
static void
CheckTakes(Call *call, PlanRow *plan, const StepRow *step, const Report *report)
{
	Judgement	j = {0};
	Due			due;

	if (IsHeld(step))
		HeldRefuse(call, step, ERRCODE_INVALID_TRANSITION, "Only who has claimed it can give its result.",
				   "Submit it with stepwise.submit_step_result(step_id, result) and the attempt of the claim, or wait until the claim ends.");
	if (step->status == STEP_IN_PROGRESS)
		return;
	if (step->status != STEP_PENDING && !IsOpenFailure(plan, step))
		StepTransitionRefuse(call, step, report->is_error ? STEP_FAILED : STEP_COMPLETED,
							 "Only a step that is due, in progress, or failed and not given up takes the result of a tool.");
	if (!TakesNow(call, plan, step, &due, &j))
		NotDueRefuse(call, step, due, &j);
}

/* Complete or fail the step with what was reported. The report itself claims a step that nobody has claimed. */
static void
RecordToStep(Call *call, PlanRow *plan, StepRow *step, const Report *report)
{
	Jsonb	   *detail = report->tool ? JsonTextOf("tool", report->tool) : NULL;
	ToolFault  *fault;

	PlanCheckOpen(call, plan);
	CheckByWorker(call, step, "submitted");
	CheckTakes(call, plan, step, report);
	if (step->status != STEP_IN_PROGRESS)
	{
		CheckGatePassed(call, plan, step);
		StepMove(call, plan, step, STEP_IN_PROGRESS, detail);
	}
	else if (step->sent_back)
		StepTake(call, plan, step, detail);
	StepReport(step, report->execution_report);
	if (!report->is_error)
	{
		StepComplete(call, plan, step, report->result, report->outcome);
		return;
	}
	fault = FaultOfReport(report);
	StepFail(call, plan, step, fault, ToolErrorReason(step, fault->message, StepIsRetryable(call, step)));
}

/* Find the step of a report and record the result there. */
static Jsonb *
Record(Call *call, PlanRow *asked, const Report *report)
{
	StepRow    *step;
	PlanRow    *plan;
	bool		duplicate;

	/* a step whose lease has expired is not held */
	if (!PlanIsTerminal(asked->root->status))
		ReleaseExpired(call, asked->root);
	if (report->step_name != NULL)
		step = StepOfName(call, asked, report);
	else
		step = StepOfTool(call, asked, report->tool);
	if (step == NULL && report->step_name != NULL)
		StepNameNotFound(call, asked, report->step_name);
	if (step == NULL)
	{
		PlanCheckOpen(call, asked);
		return RecordExtra(call, asked, report);
	}
	plan = PlanInTree(call, asked->root, &step->plan_id);
	duplicate = report->step_name != NULL && IsRecorded(call, step, report);
	if (!duplicate)
		RecordToStep(call, plan, step, report);
	return RecordAnswer(call, asked, plan, step, duplicate);
}

/* Read the arguments and check them. */
static Report
ArgumentReport(FunctionCallInfo fcinfo)
{
	Report		report = {0};

	report.tool = ArgumentText(fcinfo, 1);
	report.result = ArgumentJson(fcinfo, 2);
	report.is_error = ArgumentFlag(fcinfo, 3);
	report.step_name = ArgumentText(fcinfo, 4);
	report.outcome = CheckOutcome(ArgumentText(fcinfo, 5));
	report.execution_report = ArgumentExecutionReport(fcinfo, 6);
	CheckReport(&report);
	CheckResultGiven(report.result);
	CheckJsonLimits(report.result, "result");
	if (ResultOutcome(report.result) == OUTCOME_FAILURE)
		report.outcome = OUTCOME_FAILURE;
	return report;
}

/* Record what a tool returned that the client called. */
PG_FUNCTION_INFO_V1(stepwise_record_tool_result);
Datum
stepwise_record_tool_result(PG_FUNCTION_ARGS)
{
	Call		call;
	Report		report;
	PlanRow    *asked;

	CallBegin(&call);
	report = ArgumentReport(fcinfo);
	asked = PlanLock(&call, ArgumentUuid(fcinfo, 0));
	return CallEnd(&call, Record(&call, asked, &report));
}
