/*
 * tool_map.c
 *	  how the tools of a model become calls of functions
 *
 * Each function here stands behind a line of tool_table.c. Its arguments are
 * in snake_case. Tools that are not here call the function of their name.
 */
#include "mcp/mcp.h"

/* Refuse a call that names no step. */
static void
CheckStepNamed(Jsonb **arguments)
{
	if (!ArgumentsNameStep(arguments))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("no step is given"),
				 errhint("Give step_id, or plan_id and step, the name of the step.")));
}

/* Name the step by step_id, for a function that does not take the plan. */
static void
StepAlone(Jsonb **arguments)
{
	CheckStepNamed(arguments);
	ArgumentTake(arguments, "plan_id");
}

/* Start a workflow, or list the workflows. */
Jsonb *
StartWorkflow(Request *request, Jsonb *arguments)
{
	bool		named = ArgumentIsGiven(arguments, "workflow");

	if (!named && (ArgumentIsGiven(arguments, "inputs") || ArgumentIsGiven(arguments, "version") || ArgumentIsGiven(arguments, "goal")))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("parameter \"workflow\" of tool start_workflow is missing"),
				 errhint("Name the workflow to start; leave out the other parameters too to list the workflows.")));
	if (!named)
		ArgumentTake(&arguments, "workflow");
	return FunctionApply(request, named ? "start_workflow" : "list_workflows", arguments);
}

/* ---------- results ---------- */

/* what a submission is about */
typedef struct Target
{
	pg_uuid_t	plan_id;
	pg_uuid_t	root_id;
	char	   *name;
	char	   *tool;			/* or NULL */
	bool		takes_report;	/* only record_tool_result takes its result now */
} Target;

/*
 * Find the step of a submission. A tool of the client may be called although
 * its step has failed, or is blocked by its arguments. Its result is then
 * recorded.
 */
static Target
TargetFind(const char *step_id)
{
	MemoryContext outer = CurrentMemoryContext;
	Target		target = {0};
	pg_uuid_t	id;
	StepRow    *step;
	PlanRow    *plan;
	Judgement	j = {0};
	Due			due;
	Call		call;

	if (step_id == NULL || !UuidParse(step_id, &id))
		return target;
	CallBeginReading(&call);
	step = StepMustRead(&call, &id);
	plan = PlanMustRead(&call, &step->plan_id);
	target.plan_id = plan->id;
	target.root_id = plan->root_id;
	target.name = MemoryContextStrdup(outer, step->name);
	target.tool = step->tool ? MemoryContextStrdup(outer, step->tool) : NULL;
	target.takes_report = step->tool != NULL && (step->status == STEP_PENDING || step->status == STEP_FAILED) &&
		StepTakesReport(&call, plan, step) &&
		(step->status == STEP_FAILED || (TakesNow(&call, plan, step, &due, &j) && due != DUE_READY));
	CallEnd(&call, NULL);
	return target;
}

/* Make the answer of a submission: what became of it, and the next step. */
static Jsonb *
SubmittedAnswer(const Jsonb *submitted, const Jsonb *next)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "submitted", submitted);
	if (next != NULL)
		JsonPutJson(&b, "next", next);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Keep of the answer of record_tool_result what submit_step_result answers too. */
static Jsonb *
RecordedAnswer(Jsonb *recorded)
{
	static const char *const others[] = {"steps", "stepCount", "message", "nextCall", "next_call", "task_id", "task_status",
	"pause_reason", "claimed", "outputs"};

	for (size_t i = 0; i < lengthof(others); i++)
		ArgumentTake(&recorded, others[i]);
	return recorded;
}

/* Record the result of a tool that the client has called for a step that was not claimed. */
static Jsonb *
RecordResult(Request *request, const Target *target, const Jsonb *given, bool next)
{
	JsonBuilder b = {0};
	JsonbValue	value;
	Jsonb	   *recorded;

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "plan_id", &target->plan_id);
	JsonPutText(&b, "tool", target->tool);
	JsonPutText(&b, "step_name", target->name);
	if (JsonGet(given, "result", &value))
		JsonPutValue(&b, "result", &value);
	if (JsonGet(given, "outcome", &value))
		JsonPutValue(&b, "outcome", &value);
	if (JsonGet(given, "execution_report", &value))
		JsonPutValue(&b, "execution_report", &value);
	JsonObjectEnd(&b);
	recorded = FunctionApply(request, "record_tool_result", JsonFinish(&b));
	return SubmittedAnswer(RecordedAnswer(recorded), next ? FunctionApply(request, "get_next_step",
														  JsonTextOf("plan_id", UuidText(&target->root_id))) : NULL);
}

/* Submit a result, and get the next step unless "next" is false. */
Jsonb *
SubmitStepResult(Request *request, Jsonb *arguments)
{
	bool		next = ArgumentTakeFlag(&arguments, "next", true);
	Target		target;

	StepAlone(&arguments);
	ArgumentTake(&arguments, "tool");	/* handoff names it, since record_tool_result needs it */
	target = TargetFind(JsonGetText(arguments, "step_id"));
	if (target.takes_report)
		return RecordResult(request, &target, arguments, next);
	if (next)
		return FunctionApply(request, "advance", arguments);
	return SubmittedAnswer(FunctionApply(request, "submit_step_result", arguments), NULL);
}

/* ---------- steps ---------- */

/* Take out what agents send with every call, if the function does not need it. */
static void
LeaveOutClaim(Jsonb **arguments, const char *function)
{
	static const char *const claim[] = {"attempt", "worker"};
	const Callable *callable = CallableFind(function);

	for (size_t i = 0; callable != NULL && i < lengthof(claim); i++)
		if (!FunctionHas(callable, claim[i]))
			ArgumentTake(arguments, claim[i]);
}

/* Fail, retry, skip or release a step, or show a sign of life. */
Jsonb *
UpdateStep(Request *request, Jsonb *arguments)
{
	static const char *const actions[] = {"fail", "retry", "skip", "release", "heartbeat"};
	static const char *const functions[] = {"fail_step", "retry_step", "skip_step", "release_step", "heartbeat"};
	char	   *action = ArgumentTakeText(&arguments, "action");
	int			chosen = ArgumentChoose("action", action, actions, lengthof(actions));

	StepAlone(&arguments);
	LeaveOutClaim(&arguments, functions[chosen]);
	return FunctionApply(request, functions[chosen], arguments);
}

/* Let a step wait for a person. */
Jsonb *
RequestUserReview(Request *request, Jsonb *arguments)
{
	StepAlone(&arguments);
	return FunctionApply(request, "request_user_review", arguments);
}

/* ---------- people ---------- */

/* Pass on a decision about a review, or the answer to a prompt. */
Jsonb *
SubmitUserDecision(Request *request, Jsonb *arguments)
{
	bool		answers_prompt = ArgumentIsGiven(arguments, "response");

	if (answers_prompt && ArgumentIsGiven(arguments, "decision"))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("decision and response exclude each other"),
				 errhint("A review gets a decision, a prompt gets a response.")));
	ArgumentTake(&arguments, answers_prompt ? "decision" : "response");
	if (answers_prompt)
		ArgumentTake(&arguments, "feedback");
	return FunctionApply(request, answers_prompt ? "resume" : "submit_user_decision", arguments);
}

/* ---------- plans ---------- */

/* Cancel a plan. The reason may be given as the rationale. */
static Jsonb *
CancelPlan(Request *request, Jsonb *arguments)
{
	char	   *rationale = ArgumentTakeText(&arguments, "modification_rationale");

	ArgumentTake(&arguments, "params");
	if (rationale != NULL && !ArgumentIsGiven(arguments, "reason"))
		arguments = JsonMerge(arguments, JsonTextOf("reason", rationale));
	return FunctionApply(request, "cancel_plan", arguments);
}

/* Change a plan, or cancel it. */
Jsonb *
ModifyPlan(Request *request, Jsonb *arguments)
{
	char	   *action = JsonGetText(arguments, "action");

	if (action == NULL || strcmp(action, "cancel") != 0)
		return FunctionApply(request, "modify_plan", arguments);
	ArgumentTake(&arguments, "action");
	return CancelPlan(request, arguments);
}

/* Find plans: by words, by status, or the active ones. */
static Jsonb *
FindPlans(Request *request, Jsonb *arguments)
{
	if (ArgumentIsGiven(arguments, "query"))
		return FunctionApply(request, "find_plans", arguments);
	return FunctionApply(request, ArgumentIsGiven(arguments, "status") ? "list_plans" : "list_active_plans", arguments);
}

/* Look at a plan from one side, or find plans. */
Jsonb *
GetPlanStatus(Request *request, Jsonb *arguments)
{
	static const char *const views[] = {"status", "context", "why", "tree"};
	static const char *const functions[] = {"get_plan_status", "get_plan_context", "why", "execution"};
	char	   *view = ArgumentTakeText(&arguments, "view");
	int			chosen = ArgumentChoose("view", view ? view : "status", views, lengthof(views));

	if (ArgumentsNameStep(&arguments))
	{
		ArgumentTake(&arguments, "plan_id");
		return FunctionApply(request, "get_step_context", arguments);
	}
	if (!ArgumentIsGiven(arguments, "plan_id"))
		return FindPlans(request, arguments);
	return FunctionApply(request, functions[chosen], arguments);
}

/* Run what the database can run. A run that comes again has no answer yet. */
Jsonb *
RunPlan(Request *request, Jsonb *arguments)
{
	Jsonb	   *answer = RunApply(request, arguments, NULL);

	return answer ? answer : JsonEmptyObject();
}

/* ---------- documents ---------- */

/* Store a document, or the final output. */
Jsonb *
StoreArtifact(Request *request, Jsonb *arguments)
{
	if (ArgumentTakeFlag(&arguments, "final", false))
	{
		ArgumentTake(&arguments, "name");
		ArgumentTake(&arguments, "step");
		return FunctionApply(request, "store_output", arguments);
	}
	ArgumentsNameStep(&arguments);
	return FunctionApply(request, "store_artifact", arguments);
}

/* Search documents, or read one by its name. */
Jsonb *
SearchArtifacts(Request *request, Jsonb *arguments)
{
	bool		by_name = ArgumentIsGiven(arguments, "name");

	return FunctionApply(request, by_name ? "get_artifact" : "search_artifacts", arguments);
}
