/*
 * runner.c
 *	  run a plan in the database, step by step
 *
 * A run goes in turns. Each turn files the result of the last step and claims
 * the next one. The run does the claimed step between two turns. A tool runs as
 * the caller, and may use the engine itself, even on the same plan.
 *
 * Many turns share one call. It keeps the rows of plans, steps and audit entries in memory,
 * and is suspended while a tool runs. Whoever looks at the tables meanwhile,
 * sees them as if they had been written (CallShow). Then the tool may have
 * changed anything, so the call ends, and the next turn begins another one,
 * which reads everything again. It does not file a step that is no longer as it
 * was claimed. A call also ends after some time, so that a run notices what
 * others change, and when it has much to write. If somebody has added a trigger
 * or the like to our tables, each turn is a call, which writes each change.
 *
 * run_steps commits after each step. So it files a step in the transaction
 * that has claimed it, and claims the next one in a new transaction. run() can
 * be made a round of several, which begins no step after some time. Its caller
 * then commits, and calls it again.
 *
 * Locks: the root of the tree, from the first claim to the end of the
 * transaction. So of two runs on one plan, one waits.
 *
 * Memory: each turn has its own context. It is deleted after the next turn,
 * which still reads the task and its result.
 */
#include "api/api.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* when the call of a run ends, and another one begins */
#define CALL_ROWS	256			/* so many rows are to be written */
#define CALL_BYTES	(4 * 1024 * 1024)	/* it uses so much memory */
#define CALL_TIME	1000000		/* it lasts so many microseconds */

/* the call of a run */
typedef struct RunCall
{
	Call		call;
	MemoryContext context;		/* in which it begins */
	Invokables *invokables;
	bool		suspended;
	bool		begins;			/* this turn is its first */
	TimestampTz since;
} RunCall;

/* a step that the run has claimed, and what is needed to do it */
typedef struct Task
{
	pg_uuid_t	step_id;
	char	   *name;
	int			attempt;
	PlanKey		key;
	char	   *tool;			/* its name; NULL if the step only reads resources */
	char	   *function;		/* of the tool, or NULL likewise */
	Jsonb	   *arguments;
	Jsonb	   *resources;		/* URIs, or NULL */
	Invokables *invokables;		/* functions that the run has looked up */
} Task;

/* what doing the step gave: a result, or a fault of the tool or of a resource */
typedef struct Done
{
	Jsonb	   *result;
	ToolFault  *fault;
	const char *uri;			/* of the resource at fault, or NULL */
} Done;

/* ---------- claiming ---------- */

/* Copy what is needed to do the step into the memory of the turn, which outlives the call. */
static Task *
TaskNew(const Call *call, const Next *next)
{
	const StepRow *step = next->step;
	Task	   *task = palloc0(sizeof(Task));

	task->step_id = step->id;
	task->name = pstrdup(step->name);
	task->attempt = step->attempt;
	task->key.tenant = pstrdup(call->tenant);
	task->key.plan_id = next->plan->id;
	task->key.root_id = next->plan->root_id;
	task->tool = next->tool ? pstrdup(next->tool->name) : NULL;
	task->function = next->tool ? pstrdup(next->tool->function) : NULL;
	task->arguments = JsonCopy(StepInputs(step));
	task->resources = next->resources ? JsonCopy(next->resources) : NULL;
	return task;
}

/* Claim the next step that a run can do; NULL if there is none. */
static Task *
TaskClaim(Call *call, Run *run, bool begins)
{
	PlanRow    *asked = PlanLock(call, run->plan_id);
	Next		next = {.run = true, .run_tools = run->run_tools};

	if (run->total == 0)
		run->total = run->done + asked->counts[STEP_PENDING] + asked->counts[STEP_IN_PROGRESS];
	if (begins && !PlanIsTerminal(asked->root->status))
		ReleaseExpired(call, asked->root);
	if (!NextFind(call, asked, &next))
		return NULL;
	StepClaim(call, &next, JsonTextOf("by", "run"));
	return TaskNew(call, &next);
}

/* ---------- doing ---------- */

/* Read the resources of the step, and call its tool with them. */
static Done
TaskWork(const Task *task)
{
	Jsonb	   *contents = NULL;
	Jsonb	   *arguments = task->arguments;
	Done		done = {0};

	if (task->resources != NULL)
	{
		contents = ResourcesRead(&task->key, task->resources, &done.uri, &done.fault);
		if (done.fault != NULL)
			return done;
		contents = JsonObjectOf("resources", contents);
	}
	done.uri = NULL;
	if (task->function == NULL)
	{
		done.result = contents;
		return done;
	}
	if (contents != NULL)
		arguments = JsonMerge(arguments, contents);
	done.result = Invoke(task->invokables, task->function, JsonbPGetDatum(arguments), "result of the tool", &done.fault);
	return done;
}

/* Name the step and its tool in the context of an error that ends the run. */
static void
TaskContext(void *arg)
{
	const Task *task = arg;

	if (task->tool != NULL)
		errcontext("step \"%s\" with tool \"%s\"", task->name, task->tool);
	else
		errcontext("step \"%s\"", task->name);
}

/* Do a step. An error of the transaction or of the server is thrown on. */
static Done
TaskDo(Task *task)
{
	ErrorContextCallback context = {.previous = error_context_stack, .callback = TaskContext, .arg = task};
	Done		done;

	error_context_stack = &context;
	done = TaskWork(task);
	error_context_stack = context.previous;
	return done;
}

/* ---------- filing ---------- */

/*
 * Find the tool that a client may call if a resource cannot be read: the tool
 * of the step, or if it only reads resources, the tool of the step after it.
 */
static const char *
ToolAfterResource(Call *call, const StepRow *step)
{
	StepRow    *after;

	if (step->tool != NULL)
		return step->tool;
	after = StepReadByOrder(call, &step->plan_id, step->order + 1);
	return after && after->tool ? after->tool : "";
}

/*
 * File the result of a step. Returns false if the step is pending again. Then
 * the run ends, because it does not do a step twice.
 */
static bool
TaskFile(Call *call, const Task *task, const Done *done)
{
	StepRow    *step;
	PlanRow    *plan = PlanLockOfStep(call, &task->step_id, &step);
	ToolFault  *fault = done->fault;
	Jsonb	   *reason;

	/* the tool may itself have ended the step or the plan, or released the step */
	if (step->status != STEP_IN_PROGRESS || step->attempt != task->attempt || PlanIsTerminal(plan->status))
		return step->status != STEP_PENDING;
	if (fault == NULL)
	{
		StepComplete(call, plan, step, done->result, ResultOutcome(done->result));
		return true;
	}
	if (done->uri != NULL)
		reason = ResourceErrorReason(step, done->uri, fault->message, StepIsRetryable(call, step), ToolAfterResource(call, step));
	else
		reason = ToolErrorReason(step, fault->message, StepIsRetryable(call, step));
	StepFail(call, plan, step, fault, reason);
	return true;
}

/* ---------- progress ---------- */

bool		RunWatched = false;

/* Send a notice after each step to a client that watches the run. */
static void
ReportProgress(const Run *run, const char *message)
{
	JsonBuilder b = {0};
	Jsonb	   *report;

	if (!run->watched)
		return;
	JsonObjectStart(&b, NULL);
	JsonPutInt(&b, "progress", run->done);
	JsonPutInt(&b, "total", Max(run->total, run->done));
	JsonPutText(&b, "message", message);
	JsonObjectEnd(&b);
	report = JsonFinish(&b);
	if (run->round != NULL && run->round->about != NULL)
		report = JsonMerge(report, run->round->about);
	ereport(NOTICE, (errcode(ERRCODE_PROGRESS), errmsg("%s", JsonToText(report))));
}

/* ---------- rounds ---------- */

RunRound   *TheRound = NULL;

/* Note in the round how far the run has come. */
static void
RoundNote(const Run *run, const char *message)
{
	RunRound   *round = run->round;

	if (round == NULL)
		return;
	strlcpy(round->last, message, sizeof(round->last));
	round->done = run->done;
	round->total = Max(run->total, run->done);
}

/* Tell whoever follows the run that a step has ended. */
static void
ReportStep(const Run *run, const Task *step)
{
	char	   *message;

	if (!run->watched && run->round == NULL)
		return;
	message = psprintf("step \"%s\" has ended", step->name);
	ReportProgress(run, message);
	RoundNote(run, message);
}

/* Check whether the round is over: it does one step at least. */
static bool
RoundIsOver(const Run *run, const Task *last)
{
	if (run->round == NULL || last == NULL || run->left <= 0 || GetCurrentTimestamp() < run->round->until)
		return false;
	run->round->unfinished = true;
	return true;
}

/* Take the flags that are meant for this run. A tool may call run() again, which must not find them. */
static void
RunTakeFlags(Run *run)
{
	run->watched = RunWatched;
	RunWatched = false;
}

/* ---------- the run ---------- */

/* Resume the call of the run, or begin one. The turn works in its own memory. */
static void
TurnEnter(const Run *run, RunCall *r)
{
	MemoryContext turn = CurrentMemoryContext;

	r->begins = !r->suspended || !CallResume(&r->call);
	if (r->begins)
	{
		MemoryContextSwitchTo(r->context);
		CallBeginIn(&r->call, run->tenant);
		CallInSession(&r->call, run->session);
		r->call.actor = run->actor;
		r->since = GetCurrentTimestamp();
		r->call.in_turns = true;
		RowsKeep(&r->call);
	}
	MemoryContextSwitchTo(turn);
}

/* Say whether the call of the run ends with this turn. */
static bool
CallIsOver(const RunCall *r, const Task *task)
{
	return task == NULL || r->call.kept == NULL || RowsKept(&r->call) > CALL_ROWS ||
		GetCurrentTimestamp() - r->since > CALL_TIME || MemoryContextMemAllocated(r->call.context, true) > CALL_BYTES;
}

/* Suspend the call of the run, or end it. */
static void
TurnLeave(RunCall *r, const Task *task)
{
	MemoryContext turn = CurrentMemoryContext;

	r->suspended = !CallIsOver(r, task);
	if (r->suspended)
	{
		PlansStamp(&r->call);
		CallSuspend(&r->call);
	}
	else
		CallEnd(&r->call, NULL);
	MemoryContextSwitchTo(turn);
}

/* File the last step, if there is one, and claim the next, if the run may go on. */
static Task *
RunTurn(Run *run, RunCall *r, const Task *last, const Done *done)
{
	Task	   *task = NULL;

	TurnEnter(run, r);
	if (last != NULL)
	{
		run->left = TaskFile(&r->call, last, done) ? run->left - 1 : 0;
		run->done++;
		ReportStep(run, last);
	}
	if (run->left > 0 && (last == NULL || !run->commits) && !RoundIsOver(run, last))
		task = TaskClaim(&r->call, run, r->begins);
	if (task != NULL)
		task->invokables = r->invokables;
	TurnLeave(r, task);
	return task;
}

/*
 * Do steps until there are no more, or until the run has done its share. A run
 * that commits does one.
 */
void
RunTurns(Run *run)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext last = NULL;
	RunCall		r = {.context = AllocSetContextCreate(outer, "stepwise run", ALLOCSET_DEFAULT_SIZES)};
	Task	   *task = NULL;
	Done		done = {0};

	RunTakeFlags(run);
	MemoryContextSwitchTo(r.context);
	r.invokables = InvokablesNew();
	do
	{
		MemoryContext context = AllocSetContextCreate(r.context, "stepwise run turn", ALLOCSET_DEFAULT_SIZES);

		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(context);
		task = RunTurn(run, &r, task, &done);
		if (last != NULL)
			MemoryContextDelete(last);
		last = context;
		if (task != NULL)
			done = TaskDo(task);
	} while (task != NULL);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(r.context);
}

/* task_status, by the status of a plan */
static const char *const TaskStatus[PLAN_STATUSES] = {
	[PLAN_PLANNING] = "working",
	[PLAN_EXECUTING] = "working",
	[PLAN_AWAITING_REVIEW] = "input_required",
	[PLAN_STALLED] = "working",
	[PLAN_COMPLETED] = "completed",
	[PLAN_FAILED] = "failed",
	[PLAN_CANCELLED] = "cancelled",
};

/* Put all steps of a plan. */
static void
PutAllSteps(JsonBuilder *b, Call *call, const PlanRow *plan)
{
	ListCell   *cell;

	JsonArrayStart(b, "steps");
	foreach(cell, StepStates(call, &plan->id))
	{
		const StepState *step = lfirst(cell);

		JsonObjectStart(b, NULL);
		JsonPutText(b, "name", step->name);
		JsonPutText(b, "status", StepStatusName[step->status]);
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
}

/* Compare steps that have ended: the last one first; a run ends many at one time. */
static int
StepsByTime(const ListCell *a, const ListCell *b)
{
	TimestampTz one = ((const ListedStep *) lfirst(a))->completed_at;
	TimestampTz other = ((const ListedStep *) lfirst(b))->completed_at;

	return one != other ? (one > other ? -1 : 1) : StepsByOrder(a, b);
}

/* Put the last steps done and the next to come, and how many there are. */
static void
PutSomeSteps(JsonBuilder *b, Call *call, const PlanRow *plan, int max)
{
	List	   *steps = ListedSteps(call, &plan->id);
	int			total = StepTotal(plan->counts);
	int			open = plan->counts[STEP_PENDING] + plan->counts[STEP_IN_PROGRESS] + plan->counts[STEP_AWAITING_INPUT];
	List	   *picked = PickSteps(steps, STATES_OPEN, StepsByBegin, Max(max / 2, max - (total - open)));
	ListCell   *cell;

	picked = list_concat(picked, PickSteps(steps, STATES_ENDED, StepsByTime, Max(max / 2, max - open)));
	list_sort(picked, StepsByOrder);
	JsonArrayStart(b, "steps");
	foreach(cell, picked)
	{
		const StepRow *step = ListedRow(call, lfirst(cell));

		JsonObjectStart(b, NULL);
		JsonPutText(b, "name", step->name);
		JsonPutText(b, "status", StepStatusName[step->status]);
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
	JsonPutInt(b, "stepCount", total);
}

/* Say which steps are claimed in a plan without nested ones, in the form of stepwise.task_claimed. */
static Jsonb *
ClaimedInPlan(Call *call, const PlanRow *plan)
{
	List	   *claims = ClaimsInPlan(call, plan);
	int			count = list_length(claims);
	JsonBuilder b = {0};
	ListCell   *cell;

	if (claims == NIL)
		return NULL;
	list_sort(claims, RowsByOrder);
	JsonObjectStart(&b, NULL);
	JsonArrayStart(&b, "claimed");
	foreach(cell, list_truncate(claims, LIST_MAX))
		JsonPutText(&b, NULL, ((StepRow *) lfirst(cell))->name);
	JsonArrayEnd(&b);
	if (count > LIST_MAX)
		JsonPutInt(&b, "claimedCount", count);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Find the names of the steps that workers hold, also in nested plans, as members of an answer; NULL if there are none. */
static Jsonb *
ClaimedSteps(Call *call, const PlanRow *plan)
{
	static KeptQuery read = {"SELECT stepwise.task_claimed($1, $2)", 2, {TEXTOID, UUIDOID}};

	if (PlanIsTerminal(plan->status) || plan->counts[STEP_IN_PROGRESS] + plan->counts[STEP_AWAITING_INPUT] == 0)
		return NULL;
	if (!PlanMustRead(call, &plan->root_id)->nests)
		return ClaimedInPlan(call, plan);
	return QueryJsonById(call, &read, &plan->id);
}

/*
 * Build the answer of a run. It is read from the rows, so every later reader
 * gets the same. The call writes nothing after that.
 */
Jsonb *
TaskAnswer(Call *call, const pg_uuid_t *plan_id, int max)
{
	JsonBuilder b = {0};
	PlanRow    *plan;
	Jsonb	   *claimed;

	ReadBegin(call);
	/* run_steps has committed, so the plan may have been purged */
	plan = PlanMustRead(call, plan_id);
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "task_id", &plan->id);
	JsonPutText(&b, "task_status", TaskStatus[plan->status]);
	if (max == 0)
		PutAllSteps(&b, call, plan);
	else
		PutSomeSteps(&b, call, plan, max);
	JsonPutJsonIfSet(&b, "pause_reason", JsonOf(plan->pause_reason));
	if (plan->status == PLAN_COMPLETED && plan->outputs != NULL && JB_ROOT_COUNT(JsonOf(plan->outputs)) > 0)
		JsonPutJson(&b, "outputs", OutputsShown(plan));
	if ((claimed = ClaimedSteps(call, plan)) != NULL)
		JsonPutMembers(&b, claimed);
	if (!PlanIsTerminal(plan->status))
		JsonPutMembers(&b, WaitOfRun(call, plan));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the answer of a run in a call of its own. */
static Datum
RunAnswer(const Run *run)
{
	Call		call;

	CallBeginIn(&call, run->tenant);
	return CallEnd(&call, TaskAnswer(&call, run->plan_id, 0));
}

/* Read how many steps a run may do. */
static int
ArgumentMaxSteps(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		return INT_MAX;
	if (PG_GETARG_INT32(n) < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("max_steps must be at least 1"),
				 errhint("Leave it out to run as far as the plan goes.")));
	return PG_GETARG_INT32(n);
}

/* Run a plan in one transaction. A round that is not the last one has no answer yet. */
PG_FUNCTION_INFO_V1(stepwise_run);
Datum
stepwise_run(PG_FUNCTION_ARGS)
{
	Run			run = {.round = TheRound};

	TheRound = NULL;
	run.tenant = TenantOfCaller();
	run.plan_id = ArgumentUuid(fcinfo, 0);
	run.left = ArgumentMaxSteps(fcinfo, 1);
	if (run.round != NULL)
	{
		run.done = run.round->done;
		run.left -= run.done;
	}
	RunTurns(&run);
	if (run.round != NULL && run.round->unfinished)
		PG_RETURN_JSONB_P(JsonEmptyObject());
	return RunAnswer(&run);
}

/* ---------- one transaction a step ---------- */

static void
CheckMayCommit(FunctionCallInfo fcinfo)
{
	if (!MayCommit(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("run_steps commits after each step, and cannot do so inside a transaction"),
				 errhint("Call it outside of a transaction block, or use stepwise.run(plan_id), which needs none.")));
}

/* Make the row that a procedure with an INOUT argument returns. */
static Datum
ResultRow(Datum result)
{
	TupleDesc	desc = CreateTemplateTupleDesc(1);
	bool		isnull = result == (Datum) 0;

	TupleDescInitEntry(desc, 1, "result", JSONBOID, -1, 0);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), &result, &isnull));
}

/* Run a plan with one transaction per step. */
PG_FUNCTION_INFO_V1(stepwise_run_steps);
Datum
stepwise_run_steps(PG_FUNCTION_ARGS)
{
	Run			run = {.commits = true};
	Oid			caller = GetUserId();
	int			before;
	Datum		answer;

	CheckMayCommit(fcinfo);
	run.plan_id = ArgumentUuid(fcinfo, 0);
	run.left = ArgumentMaxSteps(fcinfo, 1);
	run.tenant = PG_ARGISNULL(2) ? TenantOfCaller() : ArgumentText(fcinfo, 2);
	do
	{
		before = run.left;
		TenantEnter(run.tenant);
		PushActiveSnapshot(GetTransactionSnapshot());
		RunTurns(&run);
		PopActiveSnapshot();
		CommitAs(caller);
	} while (run.left > 0 && run.left < before);
	PushActiveSnapshot(GetTransactionSnapshot());
	answer = RunAnswer(&run);
	PopActiveSnapshot();
	return ResultRow(answer);
}
