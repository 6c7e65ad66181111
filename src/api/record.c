/*
 * record.c
 *	  record_tool_result: take the result of a tool that the client has called
 *
 * A report is a call of record_tool_result. A step is held if its claim has a
 * worker or a lease. Then its result is expected from that claim.
 *
 * Without a step name, a report goes to the first step with that tool that is
 * pending, failed, or claimed but not held. The step that blocks the plan comes
 * first, then the steps of the plan in their order, then those of the plans
 * nested in it. In a sequence, a held step with that tool is not passed over;
 * the report is refused. If no step waits for the result, it is kept as the
 * variable _workflow.extra.TOOL.
 *
 * A step name is looked up in the plan first, where it is unique. If the plan
 * has no such step, or if that step takes no results, the plans nested in it
 * are searched. Several of their steps may have the name. A client that lost
 * the answer repeats its call, and that must not change another step. So a
 * step that already has this very result is taken first. If two of these steps
 * rightly get the same result, the second report looks like a repeated one.
 * Then the client has to name the nested plan.
 *
 * Locks: the root of the tree, the plan that the caller asked about, and the
 * plan of the step.
 */
#include "api/api.h"

PG_FUNCTION_INFO_V1(stepwise_record_tool_result);

typedef struct Report
{
	const char *tool;			/* NULL or empty if only the step is named */
	const char *step_name;		/* NULL if only the tool is named */
	Jsonb	   *result;
	bool		is_error;
	Outcome		outcome;
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
StepNameNotFound(const PlanRow *plan, const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_STEP_NOT_FOUND),
			 errmsg("step \"%s\" not found in plan \"%s\"", name, plan->name),
			 errhint("stepwise.get_plan_context(plan_id) lists the steps of a plan.")));
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

/* ---------- which step ---------- */

/* Can the step take a report without being claimed? */
static bool
IsOpenForReport(const StepRow *step)
{
	return step->status == STEP_PENDING || step->status == STEP_FAILED;
}

/* Does the step that blocks wait for this tool? */
static bool
WaitsForTool(const StepRow *step, const char *tool)
{
	return step != NULL && IsOpenForReport(step) && step->tool != NULL && strcmp(step->tool, tool) == 0;
}

/* Is the step held, so that its result is expected from its claim? */
static bool
IsHeld(const StepRow *step)
{
	return step->status == STEP_IN_PROGRESS && (step->holder != NULL || TimeIsSet(step->lease_expires_at));
}

/*
 * The condition for a step that may take the result of a tool. A claimed step
 * may take it if it is not held. In a sequence, a held step is found too, so
 * that CheckNotHeld can refuse the result instead of passing over the step.
 */
#define TAKES_RESULT(sequential) \
	"(s.status IN ('pending', 'failed') OR" \
	" (s.status = 'in_progress' AND (" sequential " OR (s.holder IS NULL AND s.lease_expires_at IS NULL))))"

/*
 * Find the first step of a plan that has this tool and may take its result. In
 * a sequence, that may be a held step.
 */
static StepRow *
StepOfTool(Call *call, const PlanRow *plan, const char *tool)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order >= $3"
		" AND s.tool = $4 AND " TAKES_RESULT("$5") " ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		5, {TEXTOID, UUIDOID, INT4OID, TEXTOID, BOOLOID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamUuid(&params, &plan->id);
	ParamInt(&params, plan->counts[STEP_FAILED] + plan->counts[STEP_IN_PROGRESS] > 0 ? 1 : plan->next_order);
	ParamText(&params, tool);
	ParamBool(&params, plan->sequential);
	return StepFetch(&find, &params);
}

/*
 * The plan $2 and the plans nested in it, with their places in the tree. A step
 * that was retried may have several nested plans. Only the newest one counts,
 * because the others have ended.
 */
#define PLANS_BELOW(which) \
	"WITH RECURSIVE below AS (" \
	" SELECT $2 AS id, ARRAY[]::int[] AS place, true AS open, true AS sequential" \
	" UNION ALL" \
	" SELECT n.id, b.place || s.step_order, b.open AND n.completed_at IS NULL, n.sequential FROM below AS b" \
	" JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = b.id AND s.workflow IS NOT NULL" \
	" CROSS JOIN LATERAL (SELECT p.id, p.completed_at, p.sequential FROM stepwise.plan AS p" \
	" WHERE p.tenant = $1 AND p.parent_step_id = s.id" \
	" ORDER BY p.tenant DESC, p.parent_step_id DESC, p.id DESC LIMIT 1) AS n" which ")" \
	" SELECT s.* FROM below AS b JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = b.id"

/* Do the same as StepOfTool in the plans nested in a plan, without the plan itself. */
static StepRow *
StepOfToolBelow(Call *call, const PlanRow *plan, const char *tool)
{
	static KeptQuery find = {
		PLANS_BELOW(" WHERE n.completed_at IS NULL")
		" WHERE b.id <> $2 AND s.tool = $3 AND " TAKES_RESULT("b.sequential") " ORDER BY b.place || s.step_order LIMIT 1",
		3, {TEXTOID, UUIDOID, TEXTOID}
	};
	Params		params = {0};

	if (!plan->root->nests)
		return NULL;
	ParamTenant(&params, call);
	ParamUuid(&params, &plan->id);
	ParamText(&params, tool);
	return StepFetch(&find, &params);
}

/*
 * Find a step of this name in the plans nested in a plan. There may be
 * several, and a repeated call must not reach another one. So of the steps
 * that take results, prefer the one that has this very result already, then
 * the one that blocks, then an open one. If no step takes the result, return
 * one of them, so that the error can say why.
 */
static StepRow *
StepOfNameBelow(Call *call, const PlanRow *plan, const Report *report)
{
	static KeptQuery find = {
		PLANS_BELOW("")
		" WHERE s.name = $3 ORDER BY s.workflow IS NULL AND s.prompt IS NULL DESC,"
		" CASE WHEN $4 IS NOT NULL THEN s.status = 'failed' AND s.message IS NOT DISTINCT FROM $4"
		" ELSE s.status = 'completed' AND s.outcome::text = $5 AND coalesce(s.result, 'null') = $6 END DESC,"
		" s.id IS NOT DISTINCT FROM $7 DESC,"
		" b.open AND s.status IN ('pending', 'in_progress', 'failed') DESC,"
		" b.place || s.step_order LIMIT 1",
		7, {TEXTOID, UUIDOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, UUIDOID}
	};
	Params		params = {0};
	StepRow    *blocking;

	if (!plan->root->nests)
		return NULL;
	blocking = StepOfReason(call, plan);
	ParamTenant(&params, call);
	ParamUuid(&params, &plan->id);
	ParamText(&params, report->step_name);
	ParamText(&params, report->is_error ? ErrorOf(report->result) : NULL);
	ParamText(&params, OutcomeName[report->outcome]);
	ParamVarlena(&params, report->result);
	ParamUuid(&params, blocking ? &blocking->id : NULL);
	return StepFetch(&find, &params);
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

/* Refuse a result while a step that it may be meant for is held. */
static void
CheckNotHeld(const StepRow *step)
{
	if (IsHeld(step))
		ereport(ERROR,
				(errcode(ERRCODE_STALE_ATTEMPT),
				 errmsg("step \"%s\" with tool \"%s\" is claimed%s%s", step->name, step->tool,
						step->holder ? " by " : "", step->holder ? step->holder : ""),
				 errdetail("In a sequence, the result of a tool is not given to a later step instead."),
				 errhint("Who has claimed it submits it with stepwise.submit_step_result(step_id, result); to answer another step, name it with step_name.")));
}

/*
 * Find the step that blocks, if it waits for the tool. A held step before it
 * in its sequence is an error.
 */
static StepRow *
StepThatBlocks(Call *call, const PlanRow *asked, const char *tool)
{
	StepRow    *step = StepOfReason(call, asked);
	PlanRow    *plan;
	StepRow    *before;

	if (!WaitsForTool(step, tool))
		return NULL;
	plan = PlanInTree(call, asked->root, &step->plan_id);
	if (step->status == STEP_FAILED || !plan->sequential)
		return step;
	before = StepOfTool(call, plan, tool);
	if (before != NULL && before->order < step->order)
		CheckNotHeld(before);
	return step;
}

/* Find the step that a report is for; NULL if no step waits for it. */
static StepRow *
StepOfReport(Call *call, const PlanRow *asked, const Report *report)
{
	StepRow    *step;

	if (report->step_name != NULL)
		return StepOfName(call, asked, report);
	step = StepThatBlocks(call, asked, report->tool);
	if (step != NULL)
		return step;
	step = StepOfTool(call, asked, report->tool);
	if (step == NULL)
		step = StepOfToolBelow(call, asked, report->tool);
	if (step != NULL)
		CheckNotHeld(step);
	return step;
}

/* ---------- recording ---------- */

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
	return JsonMerge(TaskAnswer(call, &asked->id), JsonFinish(&b));
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

/* Keep a result that no step waits for as a variable of the plan. */
static Jsonb *
RecordExtra(Call *call, PlanRow *asked, const Report *report)
{
	char	   *name = psprintf("_workflow.extra.%s", report->tool);
	JsonBuilder b = {0};

	VariablesStore(call, &asked->id,
				   JsonMerge(VariablesRead(call, &asked->id), JsonObjectOf(name, report->result)));
	AuditExtra(call, asked, report, name);
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "planId", &asked->id);
	JsonPutText(&b, "planStatus", PlanStatusName[asked->status]);
	JsonPutNull(&b, "stepId");
	JsonPutNull(&b, "stepStatus");
	JsonPutText(&b, "variable", name);
	JsonObjectEnd(&b);
	return JsonMerge(TaskAnswer(call, &asked->id), JsonFinish(&b));
}

/* Complete or fail the step with what was reported. */
static void
RecordToStep(Call *call, PlanRow *plan, StepRow *step, const Report *report)
{
	ToolFault  *fault;

	PlanCheckOpen(plan);
	CheckByWorker(step, "submitted");
	if (!IsOpenForReport(step) && step->status != STEP_IN_PROGRESS)
		StepTransitionRefuse(step, report->is_error ? STEP_FAILED : STEP_COMPLETED,
							 "Only a step that is pending, in progress or failed takes the result of a tool.");
	if (step->status != STEP_IN_PROGRESS)
	{
		CheckGatePassed(call, plan, step);
		StepMove(call, plan, step, STEP_IN_PROGRESS, report->tool ? JsonTextOf("tool", report->tool) : NULL);
	}
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
	if (report->step_name == NULL && !PlanIsTerminal(asked->root->status))
		ReleaseExpired(call, asked->root);
	step = StepOfReport(call, asked, report);
	if (step == NULL && report->step_name != NULL)
		StepNameNotFound(asked, report->step_name);
	if (step == NULL)
	{
		PlanCheckOpen(asked);
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
	report.is_error = !PG_ARGISNULL(3) && PG_GETARG_BOOL(3);
	report.step_name = ArgumentText(fcinfo, 4);
	report.outcome = CheckOutcome(ArgumentText(fcinfo, 5));
	CheckReport(&report);
	CheckResultGiven(report.result);
	CheckJsonLimits(report.result, "result");
	if (ResultOutcome(report.result) == OUTCOME_FAILURE)
		report.outcome = OUTCOME_FAILURE;
	return report;
}

/* Record what a tool returned that the client called. */
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
