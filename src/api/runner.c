/*
 * runner.c
 *	  run a plan in the database: step by step, each by its tool
 *
 * A run goes in turns: in a call into the engine it files what came of the
 * last step and claims the next; then, with no call open and nothing unsaved,
 * it does that one. So a tool runs as the caller, and may itself use the
 * engine, on this plan too: the next turn reads everything again, and does
 * nothing to a step that is no longer as it was claimed. run_steps commits
 * after each step, and so files it before it claims another.
 *
 * Locks: the root, from the first claim to the end of the transaction. So of
 * two runs on one plan, one waits.
 *
 * Memory: each turn has a context of its own, deleted after the next one.
 */
#include "api/api.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(stepwise_run);
PG_FUNCTION_INFO_V1(stepwise_run_steps);

typedef struct Run
{
	const char *tenant;
	pg_uuid_t  *plan_id;
	int			left;			/* how many steps it may still do */
	bool		commits;		/* after each step */
} Run;

/* a step that the run has claimed, and what it takes to do it */
typedef struct Task
{
	pg_uuid_t	step_id;
	int			attempt;
	PlanKey		key;
	char	   *function;		/* NULL: it only reads resources */
	Jsonb	   *arguments;
	Jsonb	   *resources;		/* URIs, or NULL */
} Task;

/* what came of it: a result, or a fault, which is of the tool or of a resource */
typedef struct Done
{
	Jsonb	   *result;
	ToolFault  *fault;
	const char *uri;			/* of the resource, or NULL */
} Done;

/* ---------- what stops a run before the call ---------- */

/* ---------- claiming ---------- */

/* Copy what the tool needs out of the call. */
static Task *
TaskNew(const Call *call, const Next *next)
{
	MemoryContext inner = MemoryContextSwitchTo(call->outer);
	const StepRow *step = next->step;
	Task	   *task = palloc0(sizeof(Task));

	task->step_id = step->id;
	task->attempt = step->attempt;
	task->key.tenant = pstrdup(call->tenant);
	task->key.plan_id = next->plan->id;
	task->key.root_id = next->plan->root_id;
	task->function = next->tool ? pstrdup(next->tool->function) : NULL;
	task->arguments = JsonCopy(StepInputs(step));
	task->resources = next->resources ? JsonCopy(next->resources) : NULL;
	MemoryContextSwitchTo(inner);
	return task;
}

/* Claim the next step that a run can do; NULL: there is none. */
static Task *
TaskClaim(Call *call, const Run *run)
{
	PlanRow    *asked = PlanLock(call, run->plan_id);
	Next		next = {.run = true};

	if (!PlanIsTerminal(asked->root->status))
		ReleaseExpired(call, asked->root);
	if (!NextFind(call, asked, &next))
		return NULL;
	StepMove(call, next.plan, next.step, STEP_IN_PROGRESS, JsonTextOf("by", "run"));
	PlanSettle(call, next.plan);
	return TaskNew(call, &next);
}

/* ---------- doing ---------- */

static Done
TaskDo(const Task *task)
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
	done.result = Invoke(task->function, JsonbPGetDatum(arguments), "result of the tool", &done.fault);
	return done;
}

/* ---------- filing ---------- */

/* The tool that a client calls instead: the step's, or if it only reads, that of the step after it. */
static const char *
ToolAfterResource(Call *call, const StepRow *step)
{
	StepRow    *after;

	if (step->tool != NULL)
		return step->tool;
	after = StepReadByOrder(call, &step->plan_id, step->order + 1);
	return after && after->tool ? after->tool : "";
}

/* File what came of a step; false: it has to be done again, which is not for this run. */
static bool
TaskFile(Call *call, const Task *task, const Done *done)
{
	StepRow    *step;
	PlanRow    *plan = PlanLockOfStep(call, &task->step_id, &step);
	ToolFault  *fault = done->fault;
	Jsonb	   *reason;

	/* the tool itself may have ended the step, or the plan, or given the step back */
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

/* ---------- the run ---------- */

/* File the last step, if there is one, and claim the next, if there is to be one. */
static Task *
RunTurn(Run *run, const Task *last, const Done *done)
{
	Task	   *task = NULL;
	Call		call;

	CallBeginIn(&call, run->tenant);
	if (last != NULL)
		run->left = TaskFile(&call, last, done) ? run->left - 1 : 0;
	if (run->left > 0 && (last == NULL || !run->commits))
		task = TaskClaim(&call, run);
	CallEnd(&call, NULL);
	return task;
}

/* Do steps until there is none, or the run has done its share, or, if it commits, one. */
static void
RunTurns(Run *run)
{
	MemoryContext outer = CurrentMemoryContext;
	MemoryContext last = NULL;
	Task	   *task = NULL;
	Done		done = {0};

	do
	{
		MemoryContext context = AllocSetContextCreate(outer, "stepwise run", ALLOCSET_DEFAULT_SIZES);

		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(context);
		task = RunTurn(run, task, &done);
		if (last != NULL)
			MemoryContextDelete(last);
		last = context;
		if (task != NULL)
			done = TaskDo(task);
	} while (task != NULL);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(last);
}

/* What a run answers: from the rows, as any later reader would. */
Jsonb *
TaskAnswer(Call *call, const pg_uuid_t *plan_id)
{
	static KeptQuery read = {"SELECT j FROM stepwise.task_json($1, $2) AS j", 2, {TEXTOID, UUIDOID}, .reads_plans = true};
	Jsonb	   *answer = QueryJsonById(call, &read, plan_id);

	/* run_steps has committed: it may have been purged since */
	if (answer == NULL)
		PlanNotFound(plan_id);
	return answer;
}

static Datum
RunAnswer(const Run *run)
{
	Call		call;

	CallBeginIn(&call, run->tenant);
	return CallEnd(&call, TaskAnswer(&call, run->plan_id));
}

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

Datum
stepwise_run(PG_FUNCTION_ARGS)
{
	Run			run = {0};

	run.tenant = TenantOfCaller();
	run.plan_id = ArgumentUuid(fcinfo, 0);
	run.left = ArgumentMaxSteps(fcinfo, 1);
	RunTurns(&run);
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

/* An INOUT argument comes back as a row. */
static Datum
ResultRow(Datum result)
{
	TupleDesc	desc = CreateTemplateTupleDesc(1);
	bool		isnull = result == (Datum) 0;

	TupleDescInitEntry(desc, 1, "result", JSONBOID, -1, 0);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), &result, &isnull));
}

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
