/*
 * tree.c
 *	  nested plans, and the execution tree
 *
 * A step with a workflow holds a nested plan: in_progress while that runs,
 * awaiting_input while it waits for a person. Whenever the nested plan
 * changes, TreeRise tells the step, which settles the plan above, and so on
 * to the root, all in one transaction under the root's lock. What ends a step
 * or a plan ends the plans that are nested in it.
 */
#include "api/api.h"

#include "miscadmin.h"

PG_FUNCTION_INFO_V1(stepwise_execution);
PG_FUNCTION_INFO_V1(stepwise_workflow_response);

/* ---------- how a step looks in the tree ---------- */

static const char *const TreeStatus[STEP_STATUSES] = {
	[STEP_PENDING] = "pending",
	[STEP_IN_PROGRESS] = "running",
	[STEP_AWAITING_INPUT] = "paused",
	[STEP_COMPLETED] = "completed",
	[STEP_FAILED] = "failed",
	[STEP_SKIPPED] = "skipped",
};

/* A step whose nested plan cannot go on is paused, though nobody is asked. */
const char *
TreeStatusOfStep(const StepRow *step)
{
	if (step->status == STEP_IN_PROGRESS && step->pause_reason != NULL)
		return TreeStatus[STEP_AWAITING_INPUT];
	return TreeStatus[step->status];
}

/* Put when something began and ended, and how long it took so far. What ended without having begun took no time. */
static void
PutTimes(JsonBuilder *b, TimestampTz from, TimestampTz to, TimestampTz now)
{
	if (!TimeIsSet(from))
		from = to;
	if (!TimeIsSet(from))
		JsonPutNull(b, "execution_time_ms");
	else
		JsonPutMilliseconds(b, "execution_time_ms", Max((TimeIsSet(to) ? to : now) - from, 0));
	JsonPutTime(b, "started_at", from);
	JsonPutTime(b, "completed_at", to);
}

/* Put what the references ${steps.NAME.succeeded}, failed and skipped stand for. */
static void
PutEnd(JsonBuilder *b, bool succeeded, bool failed, bool skipped)
{
	JsonPutBool(b, "succeeded", succeeded);
	JsonPutBool(b, "failed", failed);
	JsonPutBool(b, "skipped", skipped);
}

bool
StepSucceeded(const StepRow *step)
{
	return step->status == STEP_COMPLETED && step->outcome == OUTCOME_SUCCESS;
}

/* It failed, or completed with failure. */
bool
StepFailed(const StepRow *step)
{
	return step->status == STEP_FAILED || step->outcome == OUTCOME_FAILURE;
}

Jsonb *
StepMetadata(const StepRow *step, TimestampTz now)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "status", TreeStatusOfStep(step));
	JsonPutText(&b, "outcome", OutcomeName[step->outcome]);
	/* a skipped step has done nothing, though it may have begun */
	PutTimes(&b, step->status == STEP_SKIPPED ? NO_TIME : step->started_at, step->completed_at, now);
	JsonPutInt(&b, "wave", step->wave);
	JsonPutInt(&b, "execution_order", step->execution_order);
	JsonPutText(&b, "message", step->message);
	JsonPutInt(&b, "attempt", step->attempt);
	PutEnd(&b, StepSucceeded(step), StepFailed(step), step->status == STEP_SKIPPED);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* The arguments as they were resolved; as they were written, if there was nothing to resolve. */
Jsonb *
StepInputs(const StepRow *step)
{
	if (step->inputs != NULL)
		return JsonOf(step->inputs);
	if (step->arguments != NULL)
		return JsonOf(step->arguments);
	return JsonEmptyObject();
}

/* ---------- nested plans ---------- */

bool
NestedPlanId(Call *call, const pg_uuid_t *step_id, pg_uuid_t *plan_id)
{
	static KeptQuery find = {
		"SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.parent_step_id = $2"
		" ORDER BY p.tenant DESC, p.parent_step_id DESC, p.id DESC LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &find, step_id);
	bool		found = rows.count > 0;

	if (found)
		*plan_id = RowUuid(&rows, 0, 1);
	RowsFree(&rows);
	return found;
}

/* Read the plan around a nested one, and the step that holds it; NULL if there is none. */
PlanRow *
PlanAround(Call *call, const PlanRow *plan, StepRow **holder)
{
	*holder = plan->nested ? StepRead(call, &plan->parent_step_id) : NULL;
	return *holder ? PlanRead(call, &(*holder)->plan_id) : NULL;
}

/* Name the workflows that are nested in each other down to a plan. */
static char *
NestingChain(Call *call, PlanRow *plan, const char *below)
{
	StringInfoData chain;

	initStringInfo(&chain);
	appendStringInfoString(&chain, below);
	for (;;)
	{
		char	   *further = chain.data;
		StepRow    *holder;

		initStringInfo(&chain);
		appendStringInfo(&chain, "%s%s%s", plan->workflow ? plan->workflow : plan->name, Arrow(), further);
		if (!plan->nested)
			return chain.data;
		holder = StepMustRead(call, &plan->parent_step_id);
		plan = PlanInTree(call, plan->root, &holder->plan_id);
	}
}

static void
HolderFail(Call *call, PlanRow *plan, StepRow *step, char *message)
{
	step->message = message;
	StepMove(call, plan, step, STEP_FAILED, NULL);
}

/*
 * Open the plan of a step with a workflow; the resolved arguments are its
 * inputs. False: it could not be opened, and the step has failed.
 */
bool
NestedOpen(Call *call, PlanRow *plan, StepRow *step)
{
	PlanOrigin	origin = {0};
	Faults		faults = {0};
	Definition *definition;

	if (plan->depth + 1 > MaxNesting)
	{
		HolderFail(call, plan, step, psprintf("plans are nested deeper than stepwise.max_nesting, %d: %s", MaxNesting,
											  NestingChain(call, plan, step->workflow)));
		return false;
	}
	/* a fork may name what was dropped since */
	if (!WorkflowExists(call, step->workflow, step->version))
	{
		HolderFail(call, plan, step, psprintf("workflow \"%s\" does not exist any more", step->workflow));
		return false;
	}
	origin.workflow = step->workflow;
	origin.version = step->version;
	origin.inputs = StepInputs(step);
	origin.parent = plan;
	origin.holder = step;
	definition = WorkflowOpen(call, &origin, &faults);
	if (FaultsAny(&faults))
	{
		HolderFail(call, plan, step, psprintf("workflow \"%s\" cannot be opened: %s", step->workflow, FaultsText(&faults)));
		return false;
	}
	StepMove(call, plan, step, STEP_IN_PROGRESS, NULL);
	PlanCreate(call, definition, &origin);
	plan->root->nests = true;
	PlanSettle(call, plan);
	if (plan->root != plan)
		PlanSave(call, plan->root);
	return true;
}

/* End every open step of a plan, then the plan; below is the reason for what is nested in it. */
static void
PlanEnd(Call *call, PlanRow *plan, const char *reason, const char *below)
{
	static KeptQuery open = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND s.status IN ('pending', 'in_progress', 'awaiting_input') ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows;

	PlanCheckOpen(plan);
	plan->ending = CallKeepText(call, unconstify(char *, below));
	rows = QueryById(call, &open, &plan->id);
	for (uint64 i = 0; i < rows.count; i++)
	{
		StepRow    *step = RowStep(&rows, i);

		step->message = psprintf(CANCELLED_WITH_PLAN "%s", reason ? CutText(reason, REASON_TEXT_BYTES) : "no reason given");
		StepMove(call, plan, step, STEP_SKIPPED, NULL);
	}
	RowsFree(&rows);
	plan->settled = NIL;
	plan->message = CallKeepText(call, reason ? pstrdup(reason) : NULL);
	PlanMove(call, plan, PLAN_CANCELLED, JsonTextOf("reason", reason));
}

void
PlanCancel(Call *call, PlanRow *plan, const char *reason)
{
	PlanEnd(call, plan, reason, psprintf("plan \"%s\" above it was cancelled%s", plan->name, BecauseShort(reason)));
}

/* What the chain of the plan above says of a nested plan. */
static Jsonb *
NestedDetail(const PlanRow *nested)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "nestedPlanId", &nested->id);
	JsonPutText(&b, "nestedStatus", PlanStatusName[nested->status]);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* End a nested plan, and what is nested in it, because of what is above; for the chain of that, or NULL if it had ended. */
static Jsonb *
NestedEnd(Call *call, PlanRow *root, const pg_uuid_t *nested_id, const char *reason)
{
	PlanRow    *nested = PlanInTree(call, root, nested_id);

	if (PlanIsTerminal(nested->status))
		return NULL;
	PlanEnd(call, nested, reason, reason);
	nested->pause_reason = NULL;
	PlanSave(call, nested);
	return NestedDetail(nested);
}

/* The step that holds a nested plan has ended: so does the plan. NULL: it had already. */
Jsonb *
NestedCancel(Call *call, PlanRow *plan, const StepRow *step)
{
	const char *reason = plan->ending;
	pg_uuid_t	nested_id;

	if (!NestedPlanId(call, &step->id, &nested_id))
		return NULL;
	if (reason == NULL)
		reason = psprintf("step \"%s\" that holds it is %s%s", step->name, StepStatusName[step->status], BecauseShort(step->message));
	return NestedEnd(call, plan->root, &nested_id, reason);
}

/* A nested plan was ended with the plan around it: its reason is no longer that of the step that holds it. */
static void
HolderForget(Call *call, PlanRow *plan, const pg_uuid_t *step_id)
{
	StepRow    *step = StepRead(call, step_id);

	if (step != NULL && step->status == STEP_IN_PROGRESS)
		StepPause(call, plan, step, NULL);
}

/* A plan has failed: its other steps stay as they are, but what is nested in them cannot go on. */
void
NestedCancelAll(Call *call, PlanRow *plan)
{
	static KeptQuery open = {
		"SELECT n.id, s.id FROM stepwise.step AS s JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = s.id"
		" WHERE s.tenant = $1 AND s.plan_id = $2 AND s.status IN ('in_progress', 'awaiting_input') AND s.workflow IS NOT NULL"
		" AND n.completed_at IS NULL ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows;

	if (!plan->root->nests)
		return;
	rows = QueryById(call, &open, &plan->id);
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t	nested_id = RowUuid(&rows, i, 1);
		pg_uuid_t	step_id = RowUuid(&rows, i, 2);
		char	   *reason = psprintf("plan \"%s\" above it failed%s", plan->name, BecauseShort(plan->message));

		AuditAppend(call, plan, &step_id, "plan_modified",
					JsonMerge(JsonTextOf("action", "cancel_nested"), NestedEnd(call, plan->root, &nested_id, reason)));
		HolderForget(call, plan, &step_id);
	}
	RowsFree(&rows);
}

/* Say what of a nested plan's outputs is over the limits of a result; NULL: nothing. */
static char *
OutputsExcess(const PlanRow *nested)
{
	if (nested->status != PLAN_COMPLETED || nested->outputs == NULL)
		return NULL;
	return JsonExcess(JsonOf(nested->outputs));
}

/* What a step becomes when the plan nested in it stands so. */
static StepStatus
StatusOfHolder(const PlanRow *nested)
{
	switch (nested->status)
	{
		case PLAN_COMPLETED:
			return OutputsExcess(nested) ? STEP_FAILED : STEP_COMPLETED;
		case PLAN_FAILED:
		case PLAN_CANCELLED:
			return STEP_FAILED;
		case PLAN_AWAITING_REVIEW:
			return STEP_AWAITING_INPUT;
		default:
			return STEP_IN_PROGRESS;
	}
}

/* Give the step the result, or the message, of its nested plan, and move it. */
static void
HolderMove(Call *call, PlanRow *plan, StepRow *step, const PlanRow *nested, StepStatus to)
{
	if (to == STEP_COMPLETED)
	{
		step->result = nested->outputs;
		step->outcome = nested->outcome;
	}
	else if (to == STEP_FAILED && nested->status == PLAN_COMPLETED)
		step->message = psprintf("output of nested plan \"%s\" %s", nested->name, OutputsExcess(nested));
	else if (to == STEP_FAILED)
		step->message = psprintf("nested plan \"%s\" %s: %s", nested->name,
								 nested->status == PLAN_CANCELLED ? "was cancelled" : "failed",
								 nested->message ? CutText(nested->message, REASON_TEXT_BYTES) : "no reason given");
	StepMove(call, plan, step, to, NestedDetail(nested));
}

/* A stalled plan goes on when a step moves, also one below it; and a step may read one below that is tried again. */
static void
Wake(Call *call, PlanRow *plan, bool retried)
{
	if (plan->status == PLAN_STALLED)
		plan->moved = plan->touched = true;
	if (retried)
		PlanReconsider(call, plan);
	if (plan->touched)
		PlanSettle(call, plan);
}

/* Wake the plan around a nested one of which a step has moved, and those further up; most are awake, and read only. */
static void
WakeAbove(Call *call, const PlanRow *nested, const PlanRow *plan)
{
	StepRow    *holder;

	while (plan != NULL && !PlanIsTerminal(plan->status))
	{
		if (plan->status == PLAN_STALLED || (nested->retried && plan->paused > 0))
			Wake(call, PlanInTree(call, nested->root, &plan->id), nested->retried);
		plan = PlanAround(call, plan, &holder);
	}
}

void
TreeRise(Call *call, PlanRow *nested)
{
	StepRow    *step = StepRead(call, &nested->parent_step_id);
	Jsonb	   *reason = NULL;
	StepStatus	to = StatusOfHolder(nested);
	PlanRow    *plan;

	/* when the step ends its nested plan, it has moved already */
	if (step == NULL || (step->status != STEP_IN_PROGRESS && step->status != STEP_AWAITING_INPUT))
		return;
	plan = PlanInTree(call, nested->root, &step->plan_id);
	if (PlanIsTerminal(plan->status))
		return;
	if ((nested->moved && nested->root->stalls) || nested->retried)
		WakeAbove(call, nested, plan);
	if (nested->pause_reason != NULL && !PlanIsTerminal(nested->status))
		reason = JsonOf(nested->pause_reason);
	if (step->status != to)
		HolderMove(call, plan, step, nested, to);
	else if (JsonEqual(reason, JsonOf(step->pause_reason)))
		return;
	if (to == STEP_IN_PROGRESS || to == STEP_AWAITING_INPUT)
		StepPause(call, plan, step, reason);
	PlanSettle(call, plan);
}

/* ---------- the execution tree ---------- */

#define BLOCK_BYTES		1024	/* what a block takes beside its inputs, outputs and message */

static void PutBlocks(JsonBuilder *b, Call *call, const pg_uuid_t *plan_id, int depth);

/* Put what a plan or a step has produced; what has no result has no outputs. */
void
PutOutputs(JsonBuilder *b, const struct varlena *outputs)
{
	JsonPutJson(b, "outputs", outputs ? JsonOf(outputs) : JsonEmptyObject());
}

/* A plan and a step have one shape; only where the values come from differs. */
static void
PutStepBlock(JsonBuilder *b, Call *call, const StepRow *step, int depth)
{
	pg_uuid_t	nested_id;

	JsonObjectStart(b, step->name);
	JsonPutJson(b, "inputs", StepInputs(step));
	PutOutputs(b, step->result);
	JsonPutJson(b, "metadata", StepMetadata(step, GetCurrentTimestamp()));
	if (step->workflow != NULL && depth > 0 && NestedPlanId(call, &step->id, &nested_id))
		PutBlocks(b, call, &nested_id, depth - 1);
	else
		JsonPutJson(b, "blocks", JsonEmptyObject());
	JsonObjectEnd(b);
}

/* How much of an answer the block of a step takes, without those that are nested in it. */
size_t
BlockSize(const StepRow *step)
{
	return BLOCK_BYTES + RawSize(step->inputs ? step->inputs : step->arguments) + RawSize(step->result) +
		(step->message ? strlen(step->message) : 0);
}

static void
PutBlocks(JsonBuilder *b, Call *call, const pg_uuid_t *plan_id, int depth)
{
	static KeptQuery read = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	List	   *steps = NIL;
	ListCell   *cell;
	Rows		rows;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	rows = QueryById(call, &read, plan_id);
	for (uint64 i = 0; i < rows.count; i++)
	{
		steps = lappend(steps, RowStep(&rows, i));
		AnswerTake(call, BlockSize(llast(steps)), TREE_HINT);
	}
	JsonObjectStart(b, "blocks");
	foreach(cell, steps)
		PutStepBlock(b, call, lfirst(cell), depth);
	JsonObjectEnd(b);
	RowsFree(&rows);
}

static const char *
TreeStatusOfPlan(const PlanRow *plan)
{
	switch (plan->status)
	{
		case PLAN_PLANNING:
			return plan->pause_reason ? "paused" : "pending";
		case PLAN_AWAITING_REVIEW:
			return "paused";
		case PLAN_COMPLETED:
			return "completed";
		case PLAN_FAILED:
		case PLAN_CANCELLED:
			return "failed";
		default:
			return plan->pause_reason ? "paused" : "running";
	}
}

/* The metadata of a plan; a nested one stands where its step stands. */
Jsonb *
PlanMetadata(Call *call, const PlanRow *plan, TimestampTz now)
{
	StepRow    *holder = plan->nested ? StepRead(call, &plan->parent_step_id) : NULL;
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "status", TreeStatusOfPlan(plan));
	JsonPutText(&b, "outcome", OutcomeName[plan->outcome]);
	PutTimes(&b, plan->started_at, plan->completed_at, now);
	JsonPutInt(&b, "wave", holder ? holder->wave : 0);
	JsonPutInt(&b, "execution_order", holder ? holder->execution_order : 0);
	JsonPutText(&b, "message", plan->message);
	JsonPutInt(&b, "attempt", holder ? holder->attempt : (TimeIsSet(plan->started_at) ? 1 : 0));
	PutEnd(&b, plan->status == PLAN_COMPLETED && plan->outcome == OUTCOME_SUCCESS,
		   plan->outcome == OUTCOME_FAILURE || plan->status == PLAN_FAILED || plan->status == PLAN_CANCELLED, false);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static Jsonb *
Execution(Call *call, const PlanRow *plan, int depth)
{
	JsonBuilder b = {0};

	AnswerTake(call, RawSize(plan->inputs) + RawSize(plan->outputs), TREE_HINT);
	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "inputs", JsonOf(plan->inputs));
	PutOutputs(&b, plan->outputs);
	JsonPutJson(&b, "metadata", PlanMetadata(call, plan, GetCurrentTimestamp()));
	if (depth > 0)
		PutBlocks(&b, call, &plan->id, depth - 1);
	else
		JsonPutJson(&b, "blocks", JsonEmptyObject());
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static int
CheckDepthArgument(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		return INT_MAX;
	if (PG_GETARG_INT32(n) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("depth must not be negative"),
				 errhint("0 shows the plan alone, 1 its steps too, 2 the steps nested in them, and so on.")));
	return PG_GETARG_INT32(n);
}

Datum
stepwise_execution(PG_FUNCTION_ARGS)
{
	Call		call;
	int			depth;

	CallBeginReading(&call);
	depth = CheckDepthArgument(fcinfo, 1);
	return CallEnd(&call, Execution(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0)), depth));
}

/* ---------- how a workflow answers ---------- */

/* Find the first step of a plan that did not succeed; NULL: there is none. */
static StepRow *
FirstUnsuccessful(Call *call, const pg_uuid_t *plan_id)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND (s.status = 'failed' OR s.outcome = 'failure') ORDER BY s.step_order LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, plan_id);
	return StepFetch(&find, &args);
}

/* Say why a plan did not succeed: its own message, or what the first step that did not says, down to the bottom. */
static char *
FailureMessage(Call *call, const PlanRow *plan)
{
	StepRow    *step;
	pg_uuid_t	nested_id;

	check_stack_depth();
	if (plan->message != NULL)
		return plan->message;
	if (plan->status == PLAN_CANCELLED)
		return pstrdup("the plan was cancelled");
	step = FirstUnsuccessful(call, &plan->id);
	if (step == NULL)
		return pstrdup("the plan failed");
	if (step->status == STEP_FAILED)
		return psprintf("step \"%s\" failed: %s", step->name, step->message ? step->message : "no reason given");
	if (step->workflow != NULL && NestedPlanId(call, &step->id, &nested_id))
		return psprintf("step \"%s\" completed with outcome failure: %s", step->name,
						FailureMessage(call, PlanMustRead(call, &nested_id)));
	return psprintf("step \"%s\" completed with outcome failure%s", step->name, Because(step->message));
}

/* The oldest checkpoint that waits in a plan or below it, as JSON; NULL if there is none. */
Jsonb *
OldestCheckpoint(Call *call, const PlanRow *plan)
{
	static KeptQuery read = {"SELECT j FROM stepwise.oldest_checkpoint_json($1, $2) AS j", 2, {TEXTOID, UUIDOID}};

	return PlanJson(call, &read, &plan->id);
}

static void
PutPaused(JsonBuilder *b, Call *call, const PlanRow *plan)
{
	Jsonb	   *checkpoint = plan->status == PLAN_AWAITING_REVIEW ? OldestCheckpoint(call, plan) : NULL;

	if (checkpoint != NULL)
	{
		JsonPutText(b, "checkpoint_id", JsonGetText(checkpoint, "checkpointId"));
		JsonPutText(b, "prompt", JsonGetText(checkpoint, "prompt"));
	}
	else
		JsonPutJson(b, "pause_reason", JsonOf(plan->pause_reason));
}

Jsonb *
WorkflowResponse(Call *call, PlanRow *plan, bool detail)
{
	JsonBuilder b = {0};
	bool		ended = PlanIsTerminal(plan->status);

	JsonObjectStart(&b, NULL);
	if (plan->status == PLAN_COMPLETED && plan->outcome == OUTCOME_SUCCESS)
	{
		JsonPutText(&b, "status", "success");
		JsonPutJson(&b, "outputs", JsonOf(plan->outputs));
	}
	else if (ended)
	{
		JsonPutText(&b, "status", "failure");
		JsonPutText(&b, "error", FailureMessage(call, plan));
	}
	else if (plan->status == PLAN_AWAITING_REVIEW || plan->pause_reason != NULL)
	{
		JsonPutText(&b, "status", "paused");
		PutPaused(&b, call, plan);
	}
	else
		JsonPutText(&b, "status", "running");
	if (detail)
	{
		AnswerTake(call, RawSize(plan->outputs), TREE_HINT);
		JsonPutJson(&b, "metadata", PlanMetadata(call, plan, GetCurrentTimestamp()));
		PutBlocks(&b, call, &plan->id, INT_MAX);
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

Datum
stepwise_workflow_response(PG_FUNCTION_ARGS)
{
	Call		call;
	bool		detail = !PG_ARGISNULL(1) && PG_GETARG_BOOL(1);

	CallBeginReading(&call);
	return CallEnd(&call, WorkflowResponse(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0)), detail));
}
