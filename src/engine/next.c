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
 * What is to be made of a step is decided by Judge, which changes nothing;
 * Prepare does it. So NextPeek can say what a search would find.
 *
 * What a claim takes and gives back is here too.
 *
 * Locks: the caller holds the root. Plans on the way are locked as they come.
 */
#include "engine/engine.h"

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

static Verdict
GiveUp(Call *call, PlanRow *plan, StepRow *step)
{
	step->message = psprintf("gave up after %d attempt%s", step->attempt, step->attempt == 1 ? "" : "s");
	StepMove(call, plan, step, STEP_FAILED, NULL);
	return VERDICT_GONE;
}

static Verdict
Skip(Call *call, PlanRow *plan, StepRow *step)
{
	step->message = psprintf("condition is false: %s", TextOf(step->condition));
	StepMove(call, plan, step, STEP_SKIPPED, JsonTextOf("condition", TextOf(step->condition)));
	return VERDICT_GONE;
}

/* Note that a step waits for another; it may have been blocked before that one was tried again. */
static Verdict
Await(Call *call, PlanRow *plan, StepRow *step, const StepRow *awaited)
{
	StepPause(call, plan, step, NULL);
	if (awaited != NULL && !UuidEqual(&awaited->plan_id, &plan->id))
		plan->reads_below = true;
	return VERDICT_WAITS;
}

static Verdict
PrepareStep(Call *call, PlanRow *plan, StepRow *step, Next *next)
{
	Judgement	j = {0};

	switch (Judge(call, plan, step, next, &j))
	{
		case DUE_READY:
			return VERDICT_READY;
		case DUE_GIVE_UP:
			return GiveUp(call, plan, step);
		case DUE_SKIP:
			return Skip(call, plan, step);
		case DUE_ASK:
			StepPrompt(call, plan, step, j.prompt);
			return VERDICT_WAITS;
		case DUE_NEST:
			return NestedOpen(call, plan, step) ? VERDICT_NESTED : VERDICT_GONE;
		case DUE_WAITS:
			return Await(call, plan, step, j.awaited);
		default:
			StepBlock(call, plan, step, &j);
			return VERDICT_BLOCKED;
	}
}

/* Do it in a turn; of a step that is not ready, nothing but its row is needed any more. */
static Verdict
Prepare(Call *call, PlanRow *plan, StepRow *step, Next *next)
{
	MemoryContext outer = TurnBegin(call);
	Verdict		verdict = PrepareStep(call, plan, step, next);

	if (verdict == VERDICT_GONE)
		PlanSettle(call, plan);
	TurnEnd(outer, verdict == VERDICT_READY);
	return verdict;
}

/* ---------- searching one plan ---------- */

/* Read the order that a query over a plan finds; INT_MAX: none. */
static int
FirstOrder(Call *call, KeptQuery *query, const PlanRow *plan)
{
	Rows		rows = QueryById(call, query, &plan->id);
	int			order = rows.count > 0 ? RowInt(&rows, 0, 1) : INT_MAX;

	RowsFree(&rows);
	return order;
}

/* Find the order of the first step that stands in the way of a sequence. */
static int
FirstObstacle(Call *call, const PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT s.step_order FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND s.pause_reason IS NOT NULL AND s.status <> 'pending' ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};

	return plan->paused > 0 ? FirstOrder(call, &find, plan) : INT_MAX;
}

/* Under pause a failed step stops a run, independent branches too: find the order from which on it does nothing. */
static int
FirstFailure(Call *call, const PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT s.step_order FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND s.pause_reason IS NOT NULL AND s.status = 'failed' ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};

	return plan->on_failure == ON_FAILURE_PAUSE && plan->counts[STEP_FAILED] > 0 ? FirstOrder(call, &find, plan) : INT_MAX;
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

/* An agent goes on with what does not depend on a failed step; a run does not go past it. */
static bool
StopsBefore(Call *call, const PlanRow *plan, const Next *next, const StepRow *step)
{
	return next->run && FirstFailure(call, plan) < step->order;
}

/* Take the first ready step; what waits or is blocked holds back only what depends on it. */
static bool
SearchReady(Call *call, PlanRow *plan, Next *next)
{
	int			from = 1;
	StepRow    *step;

	while ((step = StepNextReady(call, plan, from)) != NULL && !StopsBefore(call, plan, next, step))
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
	plan->reads_below = false;
	found = plan->sequential ? SearchSequence(call, plan, next) : SearchReady(call, plan, next);
	/* nothing moves in this plan when a step that it reads from below ends: so it is to be searched again */
	if (!found && (plan->touched || (plan->workable && !plan->reads_below)))
	{
		PlanDrain(call, plan);
		/* what a run cannot do, an agent may */
		if (!next->run)
			plan->workable = plan->reads_below;
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
IsUnder(Call *call, const PlanRow *plan, const PlanRow *asked)
{
	StepRow    *parent_step;

	if (!asked->nested)
		return true;
	while (plan != NULL && !UuidEqual(&plan->id, &asked->id))
	{
		if (PlanIsTerminal(plan->status))
			return false;
		plan = PlanAround(call, plan, &parent_step);
	}
	return plan != NULL;
}

/*
 * What is nested in a step counts as that step: does the search stop before it?
 * What stops it has a reason, and the root would know of it.
 */
static bool
StopsAbove(Call *call, const PlanRow *plan, const PlanRow *asked, const Next *next)
{
	StepRow    *parent_step;

	if (asked->root->paused == 0)
		return false;
	while (!UuidEqual(&plan->id, &asked->id) && (plan = PlanAround(call, plan, &parent_step)) != NULL)
		if (plan->sequential ? FirstObstacle(call, plan) < parent_step->order : StopsBefore(call, plan, next, parent_step))
			return true;
	return false;
}

/* Find the deepest nested plan that may have work, after the one that was tried last; NULL: none. */
static PlanRow *
NextWorkable(Call *call, PlanRow *root, const PlanRow *tried)
{
	static KeptQuery find = {
		"SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.root_id = $2 AND p.workable"
		" AND ($3 IS NULL OR p.depth < $4 OR (p.depth = $4 AND p.id > $3))"
		" ORDER BY p.tenant, p.root_id, p.depth DESC, p.id LIMIT 1",
		4, {TEXTOID, UUIDOID, UUIDOID, INT4OID}, .reads_plans = true
	};
	Params		params = {0};
	PlanRow    *plan = NULL;
	Rows		rows;

	ParamTenant(&params, call);
	ParamUuid(&params, &root->id);
	ParamUuid(&params, tried ? &tried->id : NULL);
	ParamInt(&params, tried ? tried->depth : 0);
	rows = QueryRun(&find, &params);
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
NextFind(Call *call, PlanRow *asked, Next *next)
{
	PlanRow    *tried = NULL;
	PlanRow    *plan;

	/* a plan that has failed may have left nested ones open */
	if (asked->root->nests && !PlanIsTerminal(asked->status))
	{
		while ((plan = NextWorkable(call, asked->root, tried)) != NULL)
		{
			if (IsUnder(call, plan, asked) && !UuidEqual(&plan->id, &asked->id) && !StopsAbove(call, plan, asked, next) &&
				SearchPlan(call, plan, next))
				return true;
			tried = plan;
		}
	}
	return SearchPlan(call, asked, next);
}

/* ---------- looking without doing ---------- */

/* Would a search do something with a step? *awaited: the first step that is waited for instead. */
static bool
IsDue(Call *call, PlanRow *plan, StepRow *step, StepRow **awaited)
{
	Next		next = {0};
	Judgement	j = {0};

	switch (Judge(call, plan, step, &next, &j))
	{
		case DUE_WAITS:
			if (*awaited == NULL)
				*awaited = j.awaited;
			return false;
		case DUE_BLOCKED:
			return !JsonEqual(j.reason, JsonOf(step->pause_reason));
		default:
			return true;
	}
}

/* Likewise in a turn, of which only what is asked for stays. */
static bool
PeekStep(Call *call, PlanRow *plan, StepRow *step, StepRow **awaited)
{
	StepRow    *before = *awaited;
	MemoryContext outer = TurnBegin(call);
	bool		due = IsDue(call, plan, step, awaited);

	TurnEnd(outer, due || *awaited != before);
	return due;
}

/* Find the first step of a plan with which a search would do something; NULL: none. */
static StepRow *
PeekPlan(Call *call, PlanRow *plan, StepRow **awaited)
{
	int			limit = plan->sequential ? FirstObstacle(call, plan) : INT_MAX;
	int			from = plan->sequential ? plan->next_order : 1;

	while (plan->counts[STEP_PENDING] > 0)
	{
		StepRow    *step = plan->sequential ? StepNextPending(call, plan, from) : StepNextReady(call, plan, from);

		if (step == NULL || step->order > limit)
			return NULL;
		if (PeekStep(call, plan, step, awaited))
			return step;
		if (plan->sequential)
			return NULL;
		from = step->order + 1;
		CHECK_FOR_INTERRUPTS();
	}
	return NULL;
}

/* Find the first claim of a plan whose lease has expired; NULL: none. */
static StepRow *
PeekExpired(Call *call, const PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.root_id = $2 AND s.lease_expires_at < $3"
		" AND s.plan_id = $4 ORDER BY s.step_order LIMIT 1",
		4, {TEXTOID, UUIDOID, TIMESTAMPTZOID, UUIDOID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamUuid(&params, &plan->root_id);
	ParamTime(&params, GetCurrentTimestamp());
	ParamUuid(&params, &plan->id);
	return StepFetch(&find, &params);
}

/* Look into one plan; what has expired is pending again when a search begins. */
static bool
Peek(Call *call, PlanRow *plan, Next *next, StepRow **awaited)
{
	StepRow    *expired = PeekExpired(call, plan);
	StepRow    *step = PeekPlan(call, plan, awaited);

	next->plan = plan;
	next->step = expired && (step == NULL || expired->order < step->order) ? expired : step;
	return next->step != NULL;
}

/* List the nested plans of a tree that a search would look into, in its order. */
static Rows
PlansToPeek(Call *call, const PlanRow *asked)
{
	static KeptQuery find = {
		"SELECT x.id FROM (SELECT p.id, p.depth FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.root_id = $2 AND p.workable"
		" UNION SELECT p.id, p.depth FROM stepwise.step AS s JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = s.plan_id"
		" WHERE s.tenant = $1 AND s.root_id = $2 AND s.lease_expires_at < $3 AND p.completed_at IS NULL) AS x"
		" ORDER BY x.depth DESC, x.id",
		3, {TEXTOID, UUIDOID, TIMESTAMPTZOID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamUuid(&params, &asked->root_id);
	ParamTime(&params, GetCurrentTimestamp());
	return QueryRun(&find, &params);
}

/*
 * Find the step with which get_next_step would do something first: hand it out,
 * or skip it, open it, note why it is blocked. False: there is none, and
 * next->step is the one that has to end before, or NULL. Nothing is locked.
 */
bool
NextPeek(Call *call, PlanRow *asked, Next *next)
{
	StepRow    *awaited = NULL;
	Rows		rows = PlansToPeek(call, asked);
	bool		found = false;

	for (uint64 i = 0; i < rows.count && !found; i++)
	{
		pg_uuid_t	id = RowUuid(&rows, i, 1);
		PlanRow    *plan = UuidEqual(&id, &asked->id) ? NULL : PlanRead(call, &id);

		found = plan != NULL && IsUnder(call, plan, asked) && Peek(call, plan, next, &awaited);
	}
	RowsFree(&rows);
	if (!found)
		found = Peek(call, asked, next, &awaited);
	if (!found)
		next->step = awaited;
	return found;
}
