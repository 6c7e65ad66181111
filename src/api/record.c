/*
 * record.c
 *	  the way back in: what a client got from a tool that it called itself
 *
 * Without a name, the result goes to the first step with that tool that is
 * pending, failed, or claimed without worker and lease: the one that blocks, if
 * it is one of them, then those of the plan in their order, then those of plans
 * nested in it. In a sequence, a step of that tool that somebody holds is not
 * passed over. What no step waits for is kept as a variable, _workflow.extra.TOOL.
 *
 * A name is that of a step of the plan, where it is unique; only if the plan
 * has none that takes results, that of a step in the plans nested in it. A
 * client that lost the answer makes the call again, and then it must not land
 * in another step: so of several nested steps of the name, that which has this
 * very result already is the one that is meant. Two of them that honestly get
 * the same result cannot be told from that; then the client has to name the
 * nested plan.
 */
#include "api/api.h"

PG_FUNCTION_INFO_V1(stepwise_record_tool_result);

typedef struct Report
{
	const char *tool;			/* NULL or empty: only the step is named */
	const char *step_name;		/* or NULL */
	Jsonb	   *result;
	bool		is_error;
	Outcome		outcome;
} Report;

/* ---------- checks ---------- */

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

/* What a client's error says, whatever shape it has. */
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

static bool
IsOpenForReport(const StepRow *step)
{
	return step->status == STEP_PENDING || step->status == STEP_FAILED;
}

/* Is the step that blocks one that this tool is for? */
static bool
WaitsForTool(const StepRow *step, const char *tool)
{
	return step != NULL && IsOpenForReport(step) && step->tool != NULL && strcmp(step->tool, tool) == 0;
}

/* Has somebody claimed the step who will come back with its result? */
static bool
IsHeld(const StepRow *step)
{
	return step->status == STEP_IN_PROGRESS && (step->holder != NULL || TimeIsSet(step->lease_expires_at));
}

/*
 * A step that may take the result of a tool: also one that is claimed, but by
 * nobody in particular. One that is held takes none; but a sequence is not
 * passed over, so there it is found too.
 */
#define TAKES_RESULT(sequential) \
	"(s.status IN ('pending', 'failed') OR" \
	" (s.status = 'in_progress' AND (" sequential " OR (s.holder IS NULL AND s.lease_expires_at IS NULL))))"

/* Find the first step of a plan that has this tool and may take its result, or stands in the way. */
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
 * The plans nested in plan $2, and their places in it. Of a step that was
 * tried again only the newest counts: the others are over.
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

/* Find the same in the plans nested in a plan; those of the plan itself have been looked at. */
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
 * Find a step of this name in the plans nested in a plan. There may be several,
 * and a call that is repeated must not land in another one: so of those that
 * take results, first that which has this very one already, then that which
 * blocks, then those that are open, and at last any, to say why not.
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

/* A result goes to no later step while somebody holds one that may be meant. */
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

/* Find the step that blocks, if the tool is for it, and no step before it in its sequence is held. */
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

/* Find the step that a report is for; NULL: none waits for it. */
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

/* Is this what the step already has? Then the client only lost the answer. */
static bool
IsRecorded(const StepRow *step, const Report *report)
{
	if (report->is_error)
		return step->status == STEP_FAILED && step->message && strcmp(step->message, ErrorOf(report->result)) == 0;
	return step->status == STEP_COMPLETED && step->outcome == report->outcome &&
		JsonEqual(step->result ? JsonOf(step->result) : JsonNull(), report->result);
}

static Jsonb *
RecordAnswer(Call *call, const PlanRow *asked, const PlanRow *plan, const StepRow *step, bool duplicate)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	/* the client may have named a nested plan, and still drives the root */
	JsonPutUuid(&b, "rootPlanId", &plan->root_id);
	JsonPutText(&b, "rootPlanStatus", PlanStatusName[plan->root->status]);
	if (duplicate)
		JsonPutBool(&b, "duplicate", true);
	JsonObjectEnd(&b);
	return JsonMerge(TaskAnswer(call, &asked->id), JsonFinish(&b));
}

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

/* Keep what no step waits for; nothing else changes. */
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
		StepMove(call, plan, step, STEP_IN_PROGRESS, report->tool ? JsonTextOf("tool", report->tool) : NULL);
	if (!report->is_error)
	{
		StepComplete(call, plan, step, report->result, report->outcome);
		return;
	}
	fault = FaultOfReport(report);
	StepFail(call, plan, step, fault, ToolErrorReason(step, fault->message, StepIsRetryable(call, step)));
}

static Jsonb *
Record(Call *call, PlanRow *asked, const Report *report)
{
	StepRow    *step;
	PlanRow    *plan;
	bool		duplicate;

	/* an expired lease holds nothing */
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
	duplicate = report->step_name != NULL && IsRecorded(step, report);
	if (!duplicate)
		RecordToStep(call, plan, step, report);
	return RecordAnswer(call, asked, plan, step, duplicate);
}

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
