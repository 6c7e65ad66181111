/*
 * task.c
 *	  tasks: calls that go on after their answer
 *
 * A task is a plan, and its id is that of the plan. A call of run or
 * start_workflow becomes a task of the plan that it runs; the call of an
 * exposed tool becomes a plan of one step, unless it continues another plan.
 * The plan is stored before the answer. stepwise-mcp then asks for the work, in
 * requests of their own. For other callers the work is done in the same call.
 * If the work was cut off, whoever asks about the task lets it be taken up
 * again.
 *
 * Clients of the legacy generation ask for a task. For modern ones the server
 * chooses: a plan that the database cannot finish alone is no task, since its
 * client would wait for itself.
 *
 * What a task has come to is read from the plan: nothing else is stored.
 */
#include "mcp/mcp.h"

#include "catalog/pg_collation.h"

#define META_TASK		"io.modelcontextprotocol/related-task"
#define POLL_MS			500		/* how often a client should look */
#define TOOL_STEP		"call"	/* name of the step that calls an exposed tool */
#define WORK_LOCK		"task"	/* held while a task is worked on */
#define WORK_LOST_MS	5000	/* a task that nobody works on and that has not changed for so long was left */

/* ---------- which calls become tasks ---------- */

/* Check whether a call is to become a task, if its tool can be one. */
static bool
TaskIsWanted(Request *request)
{
	Jsonb	   *task = JsonGetJson(request->params, "task");

	if (request->modern)
		return ClientKnowsTasks(request);
	if (task == NULL || !VersionHasTasks(request))
		return false;
	if (!JsonIsObject(task))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "task must be an object");
	return true;
}

/*
 * Check whether the steps of a plan that are left can all be done by the
 * database, or by a person. A nested workflow may have steps of the client.
 */
static bool
DatabaseFinishes(const pg_uuid_t *plan_id)
{
	static KeptQuery left = {
		"SELECT DISTINCT CASE WHEN s.status <> 'failed' THEN s.tool END FROM stepwise.step AS s"
		" WHERE s.tenant = $1 AND s.plan_id = $2 AND s.prompt IS NULL AND NOT (s.tool IS NULL AND s.resources IS NOT NULL)"
		" AND (s.status IN ('pending', 'in_progress', 'awaiting_input') OR s.status = 'failed' AND s.pause_reason IS NOT NULL)",
		2, {TEXTOID, UUIDOID}
	};
	bool		finishes = true;
	Call		call;
	Rows		rows;

	CallBeginReading(&call);
	rows = QueryById(&call, &left, plan_id);
	for (uint64 i = 0; finishes && i < rows.count; i++)
		finishes = !RowIsNull(&rows, i, 1) && ToolIsInDatabase(&call, RowText(&rows, i, 1));
	CallEnd(&call, NULL);
	return finishes;
}

/* ---------- the plan of a task ---------- */

/* a call that becomes a task */
typedef struct Making
{
	Request    *request;
	const char *name;			/* of the tool */
	const Jsonb *given;
	bool		made;			/* there is a plan */
	pg_uuid_t	plan_id;
	Jsonb	   *answer;			/* of the call that has made the plan; or NULL */
} Making;

/* Read the id of the plan from an answer or arguments. */
static void
MakingTake(Making *m, const Jsonb *from, const char *key)
{
	char	   *id = JsonGetText(from, key);

	m->made = id != NULL && UuidParse(id, &m->plan_id);
}

/* A run becomes a task of its plan, unless it is to do a number of steps. */
static void
MakeOfRun(Making *m, Jsonb *arguments)
{
	Call		call;

	if (ArgumentIsGiven(arguments, "max_steps"))
		return;
	CheckMayChange(m->request, CallableNamed("run"));
	MakingTake(m, arguments, "plan_id");
	if (!m->made)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("no plan is given"),
				 errhint("Give plan_id, the id of the plan.")));
	CallBeginReading(&call);
	PlanMustRead(&call, &m->plan_id);
	CallEnd(&call, NULL);
}

/* The start of a workflow becomes a task that also runs it. */
static void
MakeOfWorkflow(Making *m, Jsonb *arguments)
{
	if (!ArgumentIsGiven(arguments, "workflow"))
		return;
	CallableNamed("run");
	ArgumentTake(&arguments, "max_bytes");
	ArgumentTake(&arguments, "max");
	m->answer = FunctionApply(m->request, "start_workflow", arguments);
	MakingTake(m, m->answer, "planId");
}

/* Write arguments so that nothing in them is taken for a reference. */
static Jsonb *
Literal(const Jsonb *arguments)
{
	Datum		written = CStringGetTextDatum(JsonToText(arguments));

	written = DirectFunctionCall3Coll(replace_text, C_COLLATION_OID, written, CStringGetTextDatum("${"), CStringGetTextDatum("$${"));
	return JsonParse(TextDatumGetCString(written));
}

/* The call of an exposed tool becomes a plan of one step. */
static void
MakeOfTool(Making *m, const Tool *tool)
{
	JsonBuilder b = {0};

	ExposedCheck(tool, m->given);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", tool->name);
	JsonPutText(&b, "goal", psprintf("Call the tool %s", tool->name));
	JsonPutText(&b, "on_failure", OnFailureName[ON_FAILURE_FAIL]);
	JsonArrayStart(&b, "steps");
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", TOOL_STEP);
	JsonPutText(&b, "tool", tool->name);
	JsonPutJson(&b, "arguments", Literal(m->given));
	JsonObjectEnd(&b);
	JsonArrayEnd(&b);
	JsonObjectEnd(&b);
	m->answer = FunctionApply(m->request, "create_plan", JsonFinish(&b));
	MakingTake(m, m->answer, "planId");
}

/* Make the plan of a call, if it can be a task. Who may make no plans can still call an exposed tool as usual. */
static void
MakingDo(void *arg)
{
	Making	   *m = arg;
	Tool	   *exposed;

	if (strcmp(m->name, "run") == 0)
		MakeOfRun(m, ArgumentsInSnakeCase(m->given));
	else if (ToolCanBeTask(m->name))
		MakeOfWorkflow(m, ArgumentsInSnakeCase(m->given));
	else if (!IsOwnTool(m->name) && MayAct(m->request, "create_plan") && MayAct(m->request, "run") &&
			 PlanOfCall(m->request) == NULL && (exposed = ExposedFind(m->name)) != NULL)
		MakeOfTool(m, exposed);
}

/* ---------- what a task has come to ---------- */

typedef struct Task
{
	pg_uuid_t	id;
	const char *status;			/* as run says it */
	char	   *message;		/* or NULL */
	char	   *checkpoint;		/* that a person is asked about; or NULL */
	TimestampTz created_at;
	TimestampTz updated_at;
	Jsonb	   *answer;			/* of run */
	bool		failed;			/* the plan failed, or completed with failure */
	bool		of_tool;		/* it calls an exposed tool */
	Jsonb	   *tool_result;	/* of that tool; or NULL */
	Jsonb	   *tool_error;		/* of that tool; or NULL */
} Task;

static bool
TaskIsWorking(const Task *task)
{
	return strcmp(task->status, "working") == 0;
}

static bool
TaskNeedsInput(const Task *task)
{
	return strcmp(task->status, "input_required") == 0;
}

/* Check whether a task has ended. */
static bool
TaskHasEnded(const Task *task)
{
	return !TaskIsWorking(task) && !TaskNeedsInput(task);
}

/* Read what the one step of a plan that calls an exposed tool has come to. */
static void
TaskReadTool(Call *call, const PlanRow *plan, Task *task)
{
	StepRow    *step;

	if (plan->workflow != NULL || StepTotal(plan->counts) != 1)
		return;
	step = StepReadByName(call, &plan->id, TOOL_STEP);
	task->of_tool = step != NULL && step->tool != NULL && strcmp(step->tool, plan->name) == 0;
	if (!task->of_tool)
		return;
	task->tool_result = step->result ? JsonOf(step->result) : NULL;
	task->tool_error = step->error ? JsonOf(step->error) : JsonTextOf("error", step->message ? step->message : plan->message);
}

/* Say how far a plan has come. */
static char *
ProgressText(const PlanRow *plan)
{
	return psprintf("%d of %d steps have ended", plan->counts[STEP_COMPLETED] + plan->counts[STEP_SKIPPED] + plan->counts[STEP_FAILED],
					StepTotal(plan->counts));
}

static void
TaskFill(Call *call, PlanRow *plan, Task *task)
{
	Jsonb	   *reason;

	task->id = plan->id;
	task->created_at = plan->created_at;
	task->updated_at = plan->updated_at;
	task->failed = plan->status == PLAN_FAILED || plan->status == PLAN_CANCELLED || plan->outcome == OUTCOME_FAILURE;
	TaskReadTool(call, plan, task);
	task->message = task->failed ? JsonGetText(WorkflowResponse(call, plan, false), "error") : NULL;
	/* its steps are part of the result, and not read before */
	task->answer = TaskAnswer(call, &plan->id, PlanIsTerminal(plan->status) ? 0 : 1);
	task->status = JsonGetText(task->answer, "task_status");
	reason = JsonGetJson(task->answer, "pause_reason");
	if (task->message == NULL)
		task->message = TaskIsWorking(task) && reason == NULL ? ProgressText(plan) : JsonGetText(task->answer, "message");
	task->checkpoint = reason ? JsonGetText(reason, "checkpointId") : NULL;
}

/* Copy what was read out of the memory of the call. */
static void
TaskKeep(const Call *call, Task *task)
{
	MemoryContext inner = MemoryContextSwitchTo(call->outer);

	task->status = pstrdup(task->status);
	task->message = task->message ? pstrdup(task->message) : NULL;
	task->checkpoint = task->checkpoint ? pstrdup(task->checkpoint) : NULL;
	task->answer = JsonCopy(task->answer);
	task->tool_result = task->tool_result ? JsonCopy(task->tool_result) : NULL;
	task->tool_error = task->tool_error ? JsonCopy(task->tool_error) : NULL;
	MemoryContextSwitchTo(inner);
}

/* Read a task. Returns false if there is none of that id. */
static bool
TaskRead(const pg_uuid_t *id, Task *task)
{
	PlanRow    *plan;
	Call		call;

	CallBegin(&call);
	plan = PlanRead(&call, id);
	if (plan != NULL)
	{
		TaskFill(&call, plan, task);
		TaskKeep(&call, task);
	}
	CallEnd(&call, NULL);
	return plan != NULL;
}

/* Name the task that a message is about, as its _meta does. */
static Jsonb *
RelatedTask(const pg_uuid_t *id)
{
	return JsonObjectOf(META_TASK, JsonTextOf("taskId", UuidText(id)));
}

/* ---------- its result ---------- */

/* Turn the error of a tool, as its step keeps it, into a fault. */
static ToolFault *
FaultOf(const Jsonb *error)
{
	ToolFault  *fault = palloc0(sizeof(ToolFault));
	char	   *code = JsonGetText(error, "code");
	char	   *message = JsonGetText(error, "error");

	fault->message = message ? message : JsonToText(error);
	strlcpy(fault->code, code ? code : unpack_sql_state(ERRCODE_RAISE_EXCEPTION), sizeof(fault->code));
	fault->detail = JsonGetText(error, "detail");
	fault->hint = JsonGetText(error, "hint");
	return fault;
}

/* Make the result that the call would have had: of the tool, or of the run. */
static Jsonb *
TaskResult(Request *request, const Task *task)
{
	Jsonb	   *result;

	if (task->of_tool && task->tool_result != NULL)
		return ExposedResult(request, task->tool_result);
	if (task->of_tool && strcmp(task->status, "cancelled") != 0)
		return ToolFaultResult(request, FaultOf(task->tool_error));
	if (!task->failed)
		return ToolResult(request, TranslateAnswer(request, task->answer));
	result = ToolResult(request, TranslateAnswer(request, JsonMerge(task->answer, JsonTextOf("message", task->message))));
	/* an error is text alone */
	ArgumentTake(&result, "structuredContent");
	return JsonMerge(result, JsonParse("{\"isError\": true}"));
}

/* ---------- its state, as clients see it ---------- */

/* the keys that differ between the generations */
static const struct
{
	const char *ttl;
	const char *poll;
}			TaskKeys[] = {{"ttl", "pollInterval"}, {"ttlMs", "pollIntervalMs"}};

/* Say which status a client sees. What failed is failed for a legacy client, and completed with an error for others. */
static const char *
StatusShown(const Task *task, bool modern)
{
	bool		cancelled = strcmp(task->status, "cancelled") == 0;

	if (!task->failed || cancelled)
		return task->status;
	return modern ? "completed" : "failed";
}

/* Make a task as clients see it. */
static Jsonb *
TaskState(const Task *task, bool modern, const char *status)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "taskId", &task->id);
	JsonPutText(&b, "status", status);
	if (task->message != NULL)
		JsonPutText(&b, "statusMessage", CutText(task->message, REASON_TEXT_BYTES, NULL));
	JsonPutTime(&b, "createdAt", task->created_at);
	JsonPutTime(&b, "lastUpdatedAt", task->updated_at);
	JsonPutNull(&b, TaskKeys[modern].ttl);
	JsonPutInt(&b, TaskKeys[modern].poll, POLL_MS);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Make a task with what its status calls for: the result, or questions to a person. */
static Jsonb *
TaskInDetail(Request *request, const Task *task)
{
	const char *status = StatusShown(task, true);
	Jsonb	   *state = TaskState(task, true, status);
	Jsonb	   *requests;

	if (strcmp(status, "completed") == 0)
		return JsonMerge(state, JsonObjectOf("result", JsonMerge(JsonTextOf("resultType", "complete"), TaskResult(request, task))));
	if (!TaskNeedsInput(task))
		return state;
	requests = InputRequests(request, task->checkpoint, NULL);
	return JsonMerge(state, JsonObjectOf("inputRequests", requests ? requests : JsonEmptyObject()));
}

/* Show a task to a modern client that listens; NULL if there is none. */
Jsonb *
TaskNotice(Request *request, const pg_uuid_t *id)
{
	Task		task = {0};

	return TaskRead(id, &task) ? TaskInDetail(request, &task) : NULL;
}

/* ---------- doing its work ---------- */

/* Run the plan of a task, or a round of it. The lock lets tasks/cancel find who does. */
static void
WorkDo(Request *request, const pg_uuid_t *id)
{
	Call		call;

	CallBegin(&call);
	CallLock(&call, WORK_LOCK, UuidText(id));
	CallEnd(&call, NULL);
	RunApply(request, PlanArguments(id), JsonObjectOf("_meta", RelatedTask(id)));
}

/*
 * Write what stepwise-mcp asks for the work with. A legacy client that wants to
 * hear of progress does so until the task has ended.
 */
static Jsonb *
WorkParams(const Request *request, const pg_uuid_t *id)
{
	Jsonb	   *params = JsonTextOf("taskId", UuidText(id));
	JsonbValue	token;

	if (request->modern || !JsonGet(request->meta, "progressToken", &token))
		return params;
	return JsonMerge(params, JsonObjectOf("_meta", JsonObjectOf("progressToken", JsonFromValue(&token))));
}

/* Let the work of a task be done: by requests of stepwise-mcp after the answer, or now. */
static void
WorkBegin(Request *request, const pg_uuid_t *id)
{
	JsonBuilder b = {0};

	if (!request->pipe)
	{
		WorkDo(request, id);
		return;
	}
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "jsonrpc", "2.0");
	JsonPutText(&b, "id", "stepwise-work");
	JsonPutText(&b, "method", "stepwise/work");
	JsonPutJson(&b, "params", WorkParams(request, id));
	JsonObjectEnd(&b);
	BesidePut(request, "work", JsonFinish(&b));
}

/* Check whether nobody works on a task, though the database could. */
static bool
WorkIsLost(const Request *request, const Task *task)
{
	bool		held;
	Call		call;

	if (!TaskIsWorking(task) || !request->pipe || !MayAct(request, "run") ||
		!TimestampDifferenceExceeds(task->updated_at, GetCurrentTimestamp(), WORK_LOST_MS) || !DatabaseFinishes(&task->id))
		return false;
	CallBeginReading(&call);
	held = CallLockIsHeld(&call, WORK_LOCK, UuidText(&task->id));
	CallEnd(&call, NULL);
	return !held;
}

/* Let the work be taken up again, if whoever did it is gone. */
static void
WorkTakeUp(Request *request, const Task *task)
{
	if (WorkIsLost(request, task))
		WorkBegin(request, &task->id);
}

/* ---------- tools/call ---------- */

/* Answer a call that has become a task. It begins as working. */
static Jsonb *
TaskCreated(Request *request, const pg_uuid_t *id)
{
	Task		task = {0};
	Jsonb	   *state;

	request->plan_id = *id;
	request->has_plan = true;
	TaskRead(id, &task);
	task.message = NULL;
	state = TaskState(&task, request->modern, "working");
	WorkBegin(request, id);
	if (request->modern)
		return JsonMerge(JsonTextOf("resultType", "task"), state);
	return JsonObjectOf("task", state);
}

/* Make the plan for a legacy client, which expects a task or a JSON-RPC error. */
static void
MakeAsked(Making *m)
{
	ToolFault  *fault;

	if (!Attempt(MakingDo, m, &fault))
	{
		if (m->request->error_code == 0)
			RequestRefuse(m->request, RPC_INVALID_PARAMS, NULL, "%s", TranslateText(m->request, FaultText(fault)));
		RequestRefuse(m->request, m->request->error_code, m->request->error_data, "%s", fault->message);
	}
	if (!m->made)
		RequestRefuse(m->request, IsOwnTool(m->name) && !ToolCanBeTask(m->name) ? RPC_NO_METHOD : RPC_INVALID_PARAMS, NULL,
					  "this call of tool \"%s\" cannot be a task; call it without one", ShortText(m->name));
}

/* Answer a call of a tool with a task, if it is to become one; NULL: it is to be called as usual. */
Jsonb *
TaskCall(Request *request, const char *name, const Jsonb *arguments)
{
	Making		m = {.request = request, .name = name, .given = arguments};

	if (!TaskIsWanted(request) || !(IsOwnTool(name) || ExposedFind(name) != NULL))
		return NULL;
	if (!request->modern)
	{
		MakeAsked(&m);
		return TaskCreated(request, &m.plan_id);
	}
	MakingDo(&m);
	if (m.made && DatabaseFinishes(&m.plan_id))
		return TaskCreated(request, &m.plan_id);
	return m.answer ? ToolResult(request, TranslateAnswer(request, m.answer)) : NULL;
}

/* ---------- tasks/… ---------- */

/* Read the task that a request names. */
static void
TaskOfRequest(Request *request, Task *task)
{
	char	   *text;
	pg_uuid_t	id;

	CheckKnowsTasks(request);
	text = ParamRequiredText(request, "taskId");
	if (!UuidParse(text, &id) || !TaskRead(&id, task))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "there is no task \"%s\"", ShortText(text));
	request->plan_id = id;
	request->has_plan = true;
}

/* Answer tasks/get. */
Jsonb *
TasksGet(Request *request)
{
	Task		task = {0};

	TaskOfRequest(request, &task);
	WorkTakeUp(request, &task);
	if (request->modern)
		return TaskInDetail(request, &task);
	return TaskState(&task, false, StatusShown(&task, false));
}

/* Let stepwise-mcp ask again when something has changed, or when the work of a task may have been left. */
static Jsonb *
TaskWait(Request *request, const Task *task)
{
	JsonBuilder b = {0};

	if (!request->pipe)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "the task has not ended; call tasks/get until it has");
	JsonObjectStart(&b, NULL);
	JsonPutInt(&b, "ms", TaskIsWorking(task) ? Min(WAIT_MS, WORK_LOST_MS) : WAIT_MS);
	JsonObjectEnd(&b);
	BesidePut(request, "wait", JsonFinish(&b));
	request->comes_again = true;
	return JsonEmptyObject();
}

/* Answer tasks/result: the result of a task that has ended. Until then its client waits, or is asked. */
Jsonb *
TasksResult(Request *request)
{
	Task		task = {0};
	Jsonb	   *question;

	TaskOfRequest(request, &task);
	if (InputResponses(request) != NULL && InputsDecide(request, &task.id))
	{
		WorkBegin(request, &task.id);
		TaskRead(&task.id, &task);
	}
	else
		WorkTakeUp(request, &task);
	question = TaskNeedsInput(&task) ? QuestionOf(request, task.answer, RelatedTask(&task.id)) : NULL;
	if (question != NULL)
		return question;
	if (!TaskHasEnded(&task))
		return TaskWait(request, &task);
	return JsonMerge(TaskResult(request, &task), JsonObjectOf("_meta", RelatedTask(&task.id)));
}

/* Answer tasks/list: root plans, newest first. */
Jsonb *
TasksList(Request *request)
{
	static KeptQuery list = {
		"SELECT p.id, pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object('taskId', p.id, 'status',"
		" CASE WHEN p.status = 'cancelled' THEN 'cancelled' WHEN p.status = 'failed' OR p.outcome = 'failure' THEN 'failed'"
		" WHEN p.status = 'completed' THEN 'completed' WHEN p.status = 'awaiting_review' THEN 'input_required' ELSE 'working' END,"
		" 'createdAt', pg_catalog.to_char(p.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'),"
		" 'lastUpdatedAt', pg_catalog.to_char(p.updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'),"
		" 'ttl', null, 'pollInterval', " CppAsString2(POLL_MS) "))"
		" FROM " ROOTS_LOOKED " ORDER BY p.id DESC",
		3, {TEXTOID, UUIDOID, INT4OID}, .in_order = true
	};

	return PlanPage(request, &list, "tasks");
}

/*
 * Stop the statement that works on a task, if the caller may cancel its plan
 * for certain. To cancel a nested plan may need more rights, which cancel_plan
 * checks. Then it waits for the statement.
 */
static void
WorkStop(Request *request, const pg_uuid_t *id)
{
	Call		call;

	CheckMayChange(request, CallableNamed("cancel_plan"));
	CallBegin(&call);
	if (!PlanMustRead(&call, id)->nested)
		CallLockCancel(&call, WORK_LOCK, UuidText(id));
	CallEnd(&call, NULL);
}

/* Cancel the plan of a task, and the statement that works on it. */
static void
TaskCancel(Request *request, const pg_uuid_t *id)
{
	WorkStop(request, id);
	FunctionApply(request, "cancel_plan", JsonMerge(PlanArguments(id), JsonTextOf("reason", "cancelled by the client")));
}

/* Answer tasks/cancel. */
Jsonb *
TasksCancel(Request *request)
{
	Task		task = {0};
	bool		ended;

	TaskOfRequest(request, &task);
	ended = TaskHasEnded(&task);
	if (ended && !request->modern)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "the task has ended: %s", StatusShown(&task, false));
	if (!ended)
		TaskCancel(request, &task.id);
	if (request->modern)
		return JsonEmptyObject();
	TaskRead(&task.id, &task);
	return TaskState(&task, false, StatusShown(&task, false));
}

/* Answer tasks/update: decide what people have answered, and go on. */
Jsonb *
TasksUpdate(Request *request)
{
	Task		task = {0};

	TaskOfRequest(request, &task);
	if (InputResponses(request) == NULL)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "tasks/update needs the parameter \"inputResponses\", an object");
	if (InputsDecide(request, &task.id))
		WorkBegin(request, &task.id);
	return JsonEmptyObject();
}

/* Answer stepwise/work, by which stepwise-mcp asks for the work of a task. */
Jsonb *
StepwiseWork(Request *request)
{
	char	   *text = ParamRequiredText(request, "taskId");
	pg_uuid_t	id;

	if (!UuidParse(text, &id))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "there is no task \"%s\"", ShortText(text));
	request->plan_id = id;
	request->has_plan = true;
	WorkDo(request, &id);
	return JsonEmptyObject();
}
