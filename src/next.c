/*
 * next.c
 *	  find the step that can be done next
 *
 * The tree is searched from its deepest nested plan up to the plan that was
 * asked for, and in each plan in order: in a sequence from the low-water mark
 * next_order, with dependencies over the index of ready steps. On its way the
 * search does what needs no worker: skips steps whose condition is false,
 * opens checkpoints of prompts, opens nested plans, fails what has been
 * handed out too often, and notes on blocked steps why they are.
 *
 * What a claim takes and gives back is here too.
 *
 * Locks: the caller holds the root. Plans on the way are locked as they come.
 */
#include "stepwise.h"

#include "miscadmin.h"

/* what the search makes of a step */
typedef enum Verdict
{
	VERDICT_READY,
	VERDICT_GONE,				/* skipped or failed on the way: look on */
	VERDICT_WAITS,				/* for a person, or for a step in progress */
	VERDICT_BLOCKED,			/* has a pause reason */
	VERDICT_NESTED				/* opened a nested plan, which has to be searched */
} Verdict;

static bool SearchNested(Call *call, PlanRow *plan, StepRow *step, Next *next);

/* ---------- preparing a step ---------- */

/* Decide the condition of a step: READY means that it holds. */
static Verdict
PrepareCondition(Call *call, PlanRow *plan, StepRow *step)
{
	char	   *why = NULL;
	bool		not_ready = false;

	if (step->condition_path == NULL)
		return VERDICT_READY;
	switch (StepConditionDecide(call, plan, step, &why, &not_ready))
	{
		case CONDITION_TRUE:
			return VERDICT_READY;
		case CONDITION_FALSE:
			step->message = psprintf("condition is false: %s", TextOf(step->condition));
			StepMove(call, plan, step, STEP_SKIPPED, JsonTextOf("condition", TextOf(step->condition)));
			return VERDICT_GONE;
		default:
			if (not_ready)
				return VERDICT_WAITS;
			StepPause(call, plan, step, ConditionReason(step, why));
			return VERDICT_BLOCKED;
	}
}

/* Note a fault of resolution on the step, unless the value is only not there yet. */
static Verdict
PrepareFault(Call *call, PlanRow *plan, StepRow *step, const ResolveFault *fault)
{
	if (fault->problem == RESOLVE_NOT_READY)
	{
		/* it may have been blocked by a step that is now being tried again */
		StepPause(call, plan, step, NULL);
		return VERDICT_WAITS;
	}
	step->message = fault->message;
	StepPause(call, plan, step, UnresolvedReason(step, fault));
	return VERDICT_BLOCKED;
}

/* Fill a text of a step; the text itself when there is nothing to fill. */
static char *
FillStepText(Call *call, PlanRow *plan, const StepRow *step, struct varlena *template, const char *param, ResolveFault *fault)
{
	char	   *written;

	if (template == NULL)
		return NULL;
	written = TextOf(template);
	return step->dynamic ? ResolveText(call, plan, written, param, fault) : written;
}

/* Fill the URIs of a step; NULL if it has none, or a fault. */
static Jsonb *
FillResources(Call *call, PlanRow *plan, const StepRow *step, ResolveFault *fault)
{
	Jsonb	   *written;

	if (step->resources == NULL)
		return NULL;
	written = JsonOf(step->resources);
	fault->param = "resources";
	return step->dynamic ? ResolveJson(call, plan, written, fault) : written;
}

/* Arguments over the limits block their step, and no other. */
static bool
ArgumentsFit(const Jsonb *inputs, ResolveFault *fault)
{
	char	   *excess = JsonExcess(inputs);

	if (excess == NULL)
		return true;
	fault->problem = RESOLVE_MISSING;
	fault->param = "arguments";
	fault->message = psprintf("what the arguments resolve to %s", excess);
	return false;
}

/* Fill the arguments of a step; false: there is nothing to fill, or a fault. */
static bool
FillArguments(Call *call, PlanRow *plan, StepRow *step, ResolveFault *fault)
{
	Jsonb	   *inputs;

	if (!step->dynamic || step->arguments == NULL)
		return false;
	inputs = ResolveJson(call, plan, JsonOf(step->arguments), fault);
	if (inputs == NULL || !ArgumentsFit(inputs, fault))
		return false;
	step->inputs = (struct varlena *) inputs;
	return true;
}

/*
 * Fill the arguments of a step that starts in another way than by the search:
 * submitted or reviewed while pending, or set by hand. Who did it without them
 * is not held up; what cannot be filled stays a template.
 */
bool
StepFillInputs(Call *call, PlanRow *plan, StepRow *step)
{
	ResolveFault fault = {0};

	return FillArguments(call, plan, step, &fault);
}

/* Find again why a step cannot be filled: for who explains a pause. */
void
StepFillFault(Call *call, PlanRow *plan, StepRow *step, ResolveFault *fault)
{
	FillArguments(call, plan, step, fault);
	if (fault->problem == RESOLVE_FINE)
		FillResources(call, plan, step, fault);
	if (fault->problem == RESOLVE_FINE)
		FillStepText(call, plan, step, step->instructions, "instructions", fault);
	if (fault->problem == RESOLVE_FINE)
		FillStepText(call, plan, step, step->prompt, "prompt", fault);
}

/* Fill arguments, resources and instructions; READY means that all could be. */
static Verdict
PrepareArguments(Call *call, PlanRow *plan, StepRow *step, Next *next)
{
	ResolveFault fault = {0};

	FillArguments(call, plan, step, &fault);
	if (fault.problem == RESOLVE_FINE)
		next->resources = FillResources(call, plan, step, &fault);
	if (fault.problem == RESOLVE_FINE)
		next->instructions = FillStepText(call, plan, step, step->instructions, "instructions", &fault);
	if (fault.problem != RESOLVE_FINE)
		return PrepareFault(call, plan, step, &fault);
	return VERDICT_READY;
}

/* A prompt waits at once, as a checkpoint. */
static Verdict
PreparePrompt(Call *call, PlanRow *plan, StepRow *step)
{
	ResolveFault fault = {0};
	char	   *prompt = FillStepText(call, plan, step, step->prompt, "prompt", &fault);
	Waiting    *waiting = palloc0(sizeof(Waiting));

	if (prompt == NULL)
		return PrepareFault(call, plan, step, &fault);
	waiting->checkpoint_id = UuidNew();
	waiting->prompt = prompt;
	StepMove(call, plan, step, STEP_IN_PROGRESS, NULL);
	step->waiting = waiting;
	StepMove(call, plan, step, STEP_AWAITING_INPUT, NULL);
	return VERDICT_WAITS;
}

/* A step that was claimed too often is not handed out again by itself. */
static bool
GiveUp(Call *call, PlanRow *plan, StepRow *step)
{
	if (step->max_attempts == 0 || step->attempt < step->max_attempts)
		return false;
	step->message = psprintf("gave up after %d attempt%s", step->attempt, step->attempt == 1 ? "" : "s");
	StepMove(call, plan, step, STEP_FAILED, NULL);
	return true;
}

/* A run does only what a tool in the database can do; the rest is the client's. */
static Verdict
PrepareRun(Call *call, PlanRow *plan, StepRow *step, Next *next)
{
	char	   *why = NULL;
	Jsonb	   *reason = RunObstacle(call, step, next, &why);

	if (reason == NULL)
		return VERDICT_READY;
	step->message = why;
	StepPause(call, plan, step, reason);
	return VERDICT_BLOCKED;
}

static Verdict
Prepare(Call *call, PlanRow *plan, StepRow *step, Next *next)
{
	Verdict		verdict;

	if (GiveUp(call, plan, step))
		return VERDICT_GONE;
	verdict = PrepareCondition(call, plan, step);
	if (verdict != VERDICT_READY)
		return verdict;
	if (step->prompt != NULL)
		return PreparePrompt(call, plan, step);
	verdict = PrepareArguments(call, plan, step, next);
	if (verdict != VERDICT_READY)
		return verdict;
	if (step->workflow != NULL)
		return NestedOpen(call, plan, step) ? VERDICT_NESTED : VERDICT_GONE;
	return next->run ? PrepareRun(call, plan, step, next) : VERDICT_READY;
}

/* ---------- searching one plan ---------- */

/* Find the order of the first step that stands in the way of a sequence. */
static int
FirstObstacle(Call *call, const PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT s.step_order FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND s.pause_reason IS NOT NULL AND s.status <> 'pending' ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};
	int			order = INT_MAX;
	Rows		rows;

	if (plan->paused == 0)
		return order;
	rows = QueryById(call, &find, &plan->id);
	if (rows.count > 0)
		order = RowInt(&rows, 0, 1);
	RowsFree(&rows);
	return order;
}

/* Take the first pending step of a sequence; what waits or is blocked stops the search. */
static bool
SearchSequence(Call *call, PlanRow *plan, Next *next)
{
	int			obstacle = FirstObstacle(call, plan);

	for (;;)
	{
		StepRow    *step = plan->counts[STEP_PENDING] > 0 ? StepNextPending(call, plan, plan->next_order) : NULL;

		if (step == NULL || step->order > obstacle)
			return false;
		plan->next_order = step->order;
		next->plan = plan;
		next->step = step;
		switch (Prepare(call, plan, step, next))
		{
			case VERDICT_READY:
				return true;
			case VERDICT_NESTED:
				if (SearchNested(call, plan, step, next))
					return true;
				break;
			case VERDICT_GONE:
				PlanSettle(call, plan);
				break;
			default:
				return false;
		}
		/* the step, or the one that holds the nested plan, may have ended, or wait, or be blocked */
		if (PlanIsTerminal(plan->status))
			return false;
		obstacle = FirstObstacle(call, plan);
		CHECK_FOR_INTERRUPTS();
	}
}

/* Take the first ready step; what waits or is blocked holds back only what depends on it. */
static bool
SearchReady(Call *call, PlanRow *plan, Next *next)
{
	int			from = 1;
	StepRow    *step;

	while ((step = StepNextReady(call, plan, from)) != NULL)
	{
		next->plan = plan;
		next->step = step;
		switch (Prepare(call, plan, step, next))
		{
			case VERDICT_READY:
				return true;
			case VERDICT_NESTED:
				if (SearchNested(call, plan, step, next))
					return true;
				from = 1;
				break;
			case VERDICT_GONE:
				/* what depends on it may be ready now, at a lower order too */
				PlanSettle(call, plan);
				from = 1;
				break;
			default:
				from = step->order + 1;
		}
		if (PlanIsTerminal(plan->status))
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

/* Search one plan; when it has nothing, save what the search has found out. */
static bool
SearchPlan(Call *call, PlanRow *plan, Next *next)
{
	bool		found;

	if (PlanIsTerminal(plan->status))
		return false;
	/* under pause a failed step stops a run, independent branches too; an agent may go on with those */
	if (next->run && plan->on_failure == ON_FAILURE_PAUSE && plan->counts[STEP_FAILED] > 0)
		return false;
	found = plan->sequential ? SearchSequence(call, plan, next) : SearchReady(call, plan, next);
	if (!found && (plan->touched || plan->workable))
	{
		PlanDrain(call, plan);
		/* what a run cannot do, an agent may */
		if (!next->run)
			plan->workable = false;
		PlanSettle(call, plan);
	}
	return found;
}

/* Search the plan that a step has just opened. */
static bool
SearchNested(Call *call, PlanRow *plan, StepRow *step, Next *next)
{
	pg_uuid_t	nested_id;

	if (!NestedPlanId(call, &step->id, &nested_id))
		return false;
	return SearchPlan(call, PlanInTree(call, plan->root, &nested_id), next);
}

/* ---------- searching the tree ---------- */

/* Does a nested plan belong under the plan that was asked for, and nothing between them has ended? */
static bool
IsUnder(Call *call, PlanRow *plan, const PlanRow *scope)
{
	if (!scope->nested)
		return true;
	while (!UuidEqual(&plan->id, &scope->id))
	{
		StepRow    *holder;

		if (!plan->nested || PlanIsTerminal(plan->status))
			return false;
		holder = StepRead(call, &plan->parent_step_id);
		if (holder == NULL)
			return false;
		plan = PlanInTree(call, plan->root, &holder->plan_id);
	}
	return true;
}

/* Find the deepest nested plan that may have work, after the one that was tried last; NULL: none. */
static PlanRow *
NextWorkable(Call *call, PlanRow *root, const PlanRow *tried)
{
	static KeptQuery find = {
		"SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.root_id = $2 AND p.workable"
		" AND ($3 IS NULL OR p.depth < $4 OR (p.depth = $4 AND p.id > $3))"
		" ORDER BY p.tenant, p.root_id, p.depth DESC, p.id LIMIT 1",
		4, {TEXTOID, UUIDOID, UUIDOID, INT4OID}
	};
	Args		args = {0};
	PlanRow    *plan = NULL;
	Rows		rows;

	ArgTenant(&args, call);
	ArgUuid(&args, &root->id);
	ArgUuid(&args, tried ? &tried->id : NULL);
	ArgInt(&args, tried ? tried->depth : 0);
	rows = QueryRun(&find, &args);
	if (rows.count > 0)
	{
		pg_uuid_t	id = RowUuid(&rows, 0, 1);

		plan = PlanInTree(call, root, &id);
	}
	RowsFree(&rows);
	return plan;
}

/* Find the next step of a plan and what is nested in it; false: there is none now. */
bool
NextFind(Call *call, PlanRow *scope, Next *next)
{
	PlanRow    *tried = NULL;
	PlanRow    *plan;

	/* a plan that has failed may have left nested ones open */
	if (scope->root->nests && !PlanIsTerminal(scope->status))
	{
		while ((plan = NextWorkable(call, scope->root, tried)) != NULL)
		{
			if (IsUnder(call, plan, scope) && !UuidEqual(&plan->id, &scope->id) && SearchPlan(call, plan, next))
				return true;
			tried = plan;
		}
	}
	return SearchPlan(call, scope, next);
}

/* ---------- claims ---------- */

/* A plan that failed leaves its steps as they were; what is claimed there is nobody's work any more. */
#define IN_OPEN_PLAN \
	" AND EXISTS (SELECT FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = s.plan_id AND p.completed_at IS NULL)"

/* An expired lease counts as released. */
void
ReleaseExpired(Call *call, PlanRow *root)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.root_id = $2 AND s.lease_expires_at < $3" IN_OPEN_PLAN
		" ORDER BY s.lease_expires_at LIMIT 1",
		3, {TEXTOID, UUIDOID, TIMESTAMPTZOID}
	};

	while (root->leases)
	{
		Args		args = {0};
		StepRow    *step;
		PlanRow    *plan;

		ArgTenant(&args, call);
		ArgUuid(&args, &root->id);
		ArgTime(&args, GetCurrentTimestamp());
		step = StepFetch(&find, &args);
		if (step == NULL)
			return;
		plan = PlanInTree(call, root, &step->plan_id);
		StepRelease(call, plan, step, "lease expired");
		PlanSettle(call, plan);
	}
}

/* Give a claim back, and say why. */
void
StepRelease(Call *call, PlanRow *plan, StepRow *step, const char *why)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "reason", why);
	if (step->worker != NULL)
		JsonPutText(&b, "worker", step->worker);
	JsonObjectEnd(&b);
	StepMove(call, plan, step, STEP_PENDING, JsonFinish(&b));
}

/* Find the claim that a worker holds in the tree; a worker that asks again gets it again. */
StepRow *
ClaimOfWorker(Call *call, const PlanRow *root, const char *worker)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.root_id = $2 AND s.holder = $3" IN_OPEN_PLAN
		" ORDER BY s.started_at LIMIT 1",
		3, {TEXTOID, UUIDOID, TEXTOID}
	};
	Args		args = {0};

	ArgTenant(&args, call);
	ArgUuid(&args, &root->id);
	ArgText(&args, worker);
	return StepFetch(&find, &args);
}

/* Fill the instructions of a step that is claimed already. */
char *
ClaimedInstructions(Call *call, PlanRow *plan, const StepRow *step)
{
	ResolveFault fault = {0};
	char	   *filled = FillStepText(call, plan, step, step->instructions, "instructions", &fault);

	return filled ? filled : TextOf(step->instructions);
}

/* Likewise its resources. */
Jsonb *
ClaimedResources(Call *call, PlanRow *plan, const StepRow *step)
{
	ResolveFault fault = {0};
	Jsonb	   *filled = FillResources(call, plan, step, &fault);

	return filled ? filled : JsonOf(step->resources);
}
