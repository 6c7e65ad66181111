/*
 * next.c
 *	  find the step that can be done next
 *
 * The search begins with the deepest nested plans and ends with the plan that
 * the caller asked about ("asked"). It looks at the steps of each plan in order:
 * in a sequence from the low-water mark next_order, in a plan with dependencies
 * by the index of ready steps. On the way, the search does the work that needs
 * no worker: it skips steps whose condition is false, opens the checkpoints of
 * prompts and gates, opens nested plans, fails steps that have used up their attempts, and
 * gives blocked steps their pause reasons.
 *
 * StepIsDue decides what becomes of a step and changes nothing; PrepareStep carries
 * that out. So NextPeek can tell what a search would find without searching.
 *
 * Memory: each step is prepared in a turn (TurnBegin), since a search may look
 * at thousands of steps.
 *
 * Locks: the caller of NextFind holds the lock of the root. Plans are locked
 * when the search comes to them. NextPeek takes no locks.
 */
#include "engine/engine.h"

#include "miscadmin.h"

/* what the search has done with a step */
typedef enum Verdict
{
	VERDICT_READY,				/* it can be handed out */
	VERDICT_GONE,				/* it was skipped or failed: search on */
	VERDICT_WAITS,				/* it waits for a person, or for another step */
	VERDICT_HELD,				/* a step before it holds it back, and all later steps too */
	VERDICT_BLOCKED,			/* it has a pause reason */
	VERDICT_NESTED				/* its nested plan was opened and has to be searched */
} Verdict;

static bool SearchNested(Call *call, PlanRow *plan, StepRow *step, Next *next);

/* ---------- preparing a step ---------- */

/* Fail a step that has used up its attempts. */
static Verdict
GiveUp(Call *call, PlanRow *plan, StepRow *step)
{
	step->message = psprintf("gave up after %d attempt%s", step->attempt, step->attempt == 1 ? "" : "s");
	StepMove(call, plan, step, STEP_FAILED, NULL);
	return VERDICT_GONE;
}

/* Skip a step whose condition is false. */
static Verdict
Skip(Call *call, PlanRow *plan, StepRow *step)
{
	step->message = psprintf("condition is false: %s", TextOf(step->condition));
	StepMove(call, plan, step, STEP_SKIPPED, JsonTextOf("condition", TextOf(step->condition)));
	return VERDICT_GONE;
}

/*
 * Let a step wait for another one, which may belong to a plan below. If the step
 * was blocked before the other one was retried, clear its pause reason.
 */
static Verdict
Await(Call *call, PlanRow *plan, StepRow *step, const StepRow *awaited)
{
	StepPause(call, plan, step, NULL);
	if (awaited != NULL && !UuidEqual(&awaited->plan_id, &plan->id))
		plan->reads_below = true;
	return VERDICT_WAITS;
}

/*
 * A step before this one holds it back. In a strict sequence, release it if its
 * claim is stalled: then it is the next to be handed out.
 */
static Verdict
Held(Call *call, PlanRow *plan, const Next *next, StepRow *before)
{
	if (next->run || !plan->strict_order || before == NULL || !ClaimIsStalled(plan, before))
		return VERDICT_HELD;
	StepReclaim(call, plan, before, "stalled");
	return VERDICT_GONE;
}

/* Judge a step, and do what is due with it. */
static Verdict
PrepareStep(Call *call, PlanRow *plan, StepRow *step, Next *next)
{
	Judgement	j = {0};

	switch (StepIsDue(call, plan, step, next, &j))
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
		case DUE_REVIEW:
			GateOpen(call, plan, step, j.waiting);
			return VERDICT_WAITS;
		case DUE_NEST:
			return NestedOpen(call, plan, step) ? VERDICT_NESTED : VERDICT_GONE;
		case DUE_HELD:
			return Held(call, plan, next, j.awaited);
		case DUE_WAITS:
			return Await(call, plan, step, j.awaited);
		default:
			StepBlock(call, plan, step, &j);
			return VERDICT_BLOCKED;
	}
}

/* Prepare a step in a turn. The memory of the turn is kept only for a step that is ready. */
static Verdict
Prepare(Call *call, PlanRow *plan, StepRow *step, Next *next)
{
	MemoryContext outer = TurnBegin();
	Verdict		verdict = PrepareStep(call, plan, step, next);

	if (verdict == VERDICT_GONE)
		PlanSettle(call, plan);
	TurnEnd(outer, verdict == VERDICT_READY);
	return verdict;
}

/* ---------- searching one plan ---------- */

/* Release the stalled claim of a strict sequence that has no pending step; returns false if there is none. */
static bool
ReleaseStalledLast(Call *call, PlanRow *plan, const Next *next)
{
	StepRow    *holding = plan->strict_order ? FirstHolding(call, plan) : NULL;

	if (holding == NULL || Held(call, plan, next, holding) != VERDICT_GONE)
		return false;
	PlanSettle(call, plan);
	return true;
}

/* Search a sequence for its first pending step. A step that waits or is blocked ends the search. */
static bool
SearchSequence(Call *call, PlanRow *plan, Next *next)
{
	for (;;)
	{
		StepRow    *step = plan->counts[STEP_PENDING] > 0 ? StepNextPending(call, plan, plan->next_order) : NULL;

		if (step == NULL && ReleaseStalledLast(call, plan, next))
			continue;
		if (step == NULL)
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
		/* the step, or a step of its nested plan, may have ended the plan */
		if (PlanIsTerminal(plan->status))
			return false;
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Search a plan with dependencies for its first ready step. A step that waits or
 * is blocked holds back only the steps that depend on it.
 */
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
				/* its dependents may be ready now, and may have a lower order */
				from = 1;
				break;
			case VERDICT_HELD:
				return false;
			default:
				from = step->order + 1;
		}
		if (PlanIsTerminal(plan->status))
			return false;
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

/* Search one plan. If the search finds nothing, settle the plan and note whether a new search makes sense. */
static bool
SearchPlan(Call *call, PlanRow *plan, Next *next)
{
	bool		found;
	bool		again;

	/* a plan that is held back from above stays workable */
	if (PlanIsTerminal(plan->status) || HeldAbove(call, plan, next) != NULL)
		return false;
	plan->reads_below = false;
	found = plan->sequential ? SearchSequence(call, plan, next) : SearchReady(call, plan, next);

	/*
	 * A step may wait for a step of a plan below, or for a claim to stall. Then nothing moves in this plan, so it must
	 * stay workable.
	 */
	again = plan->reads_below || (plan->strict_order && plan->counts[STEP_IN_PROGRESS] > 0);
	if (!found && (plan->touched || (plan->workable && !again)))
	{
		PlanDrain(call, plan);
		/* an agent may find work where a run finds none */
		if (!next->run && !next->run_tools)
			plan->workable = again;
		PlanSettle(call, plan);
	}
	return found;
}

/* Search the nested plan that was opened for a step. */
static bool
SearchNested(Call *call, PlanRow *plan, StepRow *step, Next *next)
{
	pg_uuid_t	nested_id;

	if (!NestedPlanId(call, &step->id, &nested_id))
		return false;
	return SearchPlan(call, PlanInTree(call, plan->root, &nested_id), next);
}

/* ---------- searching the tree ---------- */

/*
 * Say whether a nested plan is below the plan that was asked about, and neither
 * it nor a plan between them has ended. Below the root, this needs no check.
 */
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
 * Find the next nested plan that may have work, the deepest ones first. "tried"
 * is the plan that was searched last, or NULL. Returns NULL if there is no more.
 */
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

	ParamKey(&params, call, &root->id);
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

/* Say whether a step that was sent back can be taken by who asks, and fill what it takes. */
static bool
CanTake(Call *call, PlanRow *plan, StepRow *step, Next *next)
{
	Judgement	j = {0};

	if (next->run)
		return StepRuleOf(step)->by_worker && StepRuleOf(step)->ready(call, plan, step, next, &j) == DUE_READY;
	next->instructions = ClaimedInstructions(call, plan, step);
	next->resources = ClaimedResources(call, plan, step);
	next->tool = step->tool ? ToolFind(call, step->tool) : NULL;
	return true;
}

/* Find a step that a review sent back; it comes before everything else in the tree. */
static bool
FindSentBack(Call *call, PlanRow *asked, Next *next)
{
	bool		found = false;
	Rows		rows;

	if (asked->root->sent_back == 0)
		return false;
	rows = StepsSentBack(call, asked);
	for (uint64 i = 0; i < rows.count && !found; i++)
	{
		StepRow    *step = RowStep(&rows, i);
		PlanRow    *plan = PlanInTree(call, asked->root, &step->plan_id);

		if (!IsUnder(call, plan, asked))
			continue;
		/* what was approved is not what would be done now: let the gate before it open again */
		if (!GateIsPassed(call, plan, step))
		{
			StepRelease(call, plan, step, "changed since it was approved");
			PlanSettle(call, plan);
			continue;
		}
		found = CanTake(call, plan, step, next);
		next->plan = plan;
		next->step = step;
	}
	RowsFree(&rows);
	return found;
}

/* Search the plans nested in a plan, then the plan itself. */
static bool
SearchTree(Call *call, PlanRow *asked, Next *next)
{
	PlanRow    *tried = NULL;
	PlanRow    *plan;

	/* a plan that has failed may have left nested ones open */
	if (asked->root->nests && !PlanIsTerminal(asked->status))
	{
		while ((plan = NextWorkable(call, asked->root, tried)) != NULL)
		{
			if (IsUnder(call, plan, asked) && !UuidEqual(&plan->id, &asked->id) && SearchPlan(call, plan, next))
				return true;
			tried = plan;
		}
	}
	return SearchPlan(call, asked, next);
}

/* Look at the reviews that wait below a plan. Returns true if a step is pending again, because its review is void. */
static bool
LookAtReviews(Call *call, PlanRow *asked)
{
	bool		again = false;
	ListCell   *cell;

	if (PlanIsTerminal(asked->status) || asked->root->counts[STEP_AWAITING_INPUT] == 0)
		return false;
	foreach(cell, OpenReviews(call, &asked->root_id))
	{
		const ListedCheckpoint *review = lfirst(cell);
		StepRow    *step = StepMustRead(call, &review->step_id);
		PlanRow    *plan = PlanInTree(call, asked->root, &step->plan_id);

		if (!IsUnder(call, plan, asked))
			continue;
		if (ReviewLookAgain(call, plan, step, review))
			again = true;
		if (plan->touched)
			PlanSettle(call, plan);
	}
	return again;
}

/*
 * Find the next step of a plan and of the plans nested in it; returns false if
 * there is none now. An agent looks at the reviews first: whoever was refused an
 * approval is told that the next call opens the review anew. A run has many
 * turns, and looks at them when nothing else is left.
 */
bool
NextFind(Call *call, PlanRow *asked, Next *next)
{
	if (!next->run)
		LookAtReviews(call, asked);
	if (!PlanIsTerminal(asked->status) && FindSentBack(call, asked, next))
		return true;
	if (SearchTree(call, asked, next))
		return true;
	return next->run && LookAtReviews(call, asked) && SearchTree(call, asked, next);
}

/* ---------- looking without doing ---------- */

/*
 * Say whether a search would do something with a step. If the step waits for
 * another one, that one is stored in *awaited, unless there is one already.
 * "moves" asks whether the step would move: to note why it is blocked is not
 * enough then.
 */
static bool
IsDue(Call *call, PlanRow *plan, StepRow *step, bool moves, StepRow **awaited)
{
	Next		next = {0};
	Judgement	j = {0};

	switch (StepIsDue(call, plan, step, &next, &j))
	{
		case DUE_WAITS:
		case DUE_HELD:
			if (*awaited == NULL)
				*awaited = j.awaited;
			return false;
		case DUE_BLOCKED:
			return !moves && !JsonEqual(j.reason, JsonOf(step->pause_reason));
		default:
			return true;
	}
}

/* Call IsDue in a turn. The memory of the turn is kept only if it has a result that the caller needs. */
static bool
PeekStep(Call *call, PlanRow *plan, StepRow *step, bool moves, StepRow **awaited)
{
	StepRow    *before = *awaited;
	MemoryContext outer = TurnBegin();
	bool		due = IsDue(call, plan, step, moves, awaited);

	TurnEnd(outer, due || *awaited != before);
	return due;
}

/* Find the first pending step of a plan with which a search would do something; returns NULL if there is none. */
static StepRow *
PeekPending(Call *call, PlanRow *plan, bool moves, StepRow **awaited)
{
	int			from = plan->sequential ? plan->next_order : 1;

	while (plan->counts[STEP_PENDING] > 0)
	{
		StepRow    *step = plan->sequential ? StepNextPending(call, plan, from) : StepNextReady(call, plan, from);

		if (step == NULL)
			return NULL;
		if (PeekStep(call, plan, step, moves, awaited))
			return step;
		if (plan->sequential)
			return NULL;
		from = step->order + 1;
		CHECK_FOR_INTERRUPTS();
	}
	return NULL;
}

/* Find the first step of a plan whose lease has expired; returns NULL if there is none, as in a tree without leases. */
static StepRow *
PeekExpired(Call *call, const PlanRow *root, const PlanRow *plan)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.root_id = $2 AND s.lease_expires_at < $3"
		" AND s.plan_id = $4 ORDER BY s.step_order LIMIT 1",
		4, {TEXTOID, UUIDOID, TIMESTAMPTZOID, UUIDOID}
	};
	Params		params = {0};

	if (!root->leases)
		return NULL;
	ParamKey(&params, call, &root->id);
	ParamTime(&params, GetCurrentTimestamp());
	ParamUuid(&params, &plan->id);
	return StepFetch(&find, &params);
}

/*
 * Find the first step of a plan with which a search would do something. A search
 * begins by releasing expired claims, so these steps count as pending.
 */
static bool
PeekPlan(Call *call, const PlanRow *root, PlanRow *plan, Next *next, StepRow **awaited)
{
	StepRow    *expired = PeekExpired(call, root, plan);
	StepRow    *step = PeekPending(call, plan, next->moves, awaited);

	next->plan = plan;
	next->step = expired && (step == NULL || expired->order < step->order) ? expired : step;
	return next->step != NULL;
}

/* Find a step that a review sent back, without locking anything. */
static bool
PeekSentBack(Call *call, const PlanRow *root, PlanRow *asked, Next *next)
{
	bool		found = false;
	Rows		rows;

	if (root->sent_back == 0)
		return false;
	rows = StepsSentBack(call, asked);
	for (uint64 i = 0; i < rows.count && !found; i++)
	{
		next->step = RowStep(&rows, i);
		next->plan = PlanRead(call, &next->step->plan_id);
		found = next->plan != NULL && IsUnder(call, next->plan, asked);
	}
	RowsFree(&rows);
	if (!found)
		next->step = NULL;
	return found;
}

/* List the nested plans of a tree that a search would look into, in the order of the search. */
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

	ParamKey(&params, call, &asked->root_id);
	ParamTime(&params, GetCurrentTimestamp());
	return QueryRun(&find, &params);
}

/* Look at the nested plans of a tree, if it has any. */
static bool
PeekNested(Call *call, const PlanRow *root, PlanRow *asked, Next *next)
{
	StepRow    *awaited = NULL;
	bool		found = false;
	Rows		rows;

	if (!root->nests)
		return false;
	rows = PlansToPeek(call, asked);
	for (uint64 i = 0; i < rows.count && !found; i++)
	{
		pg_uuid_t	id = RowUuid(&rows, i, 1);
		PlanRow    *plan = UuidEqual(&id, &asked->id) ? NULL : PlanRead(call, &id);

		found = plan != NULL && IsUnder(call, plan, asked) && PeekPlan(call, root, plan, next, &awaited);
	}
	RowsFree(&rows);
	return found;
}

/*
 * Find the step with which get_next_step would do something first: hand it out,
 * skip it, open its checkpoint or nested plan, or note why it is blocked. If
 * there is none, return false; next->step is then the step of the plan itself
 * that has to end first, or NULL. What steps of nested plans wait for is not
 * told: which of these plans are searched depends on earlier searches.
 */
bool
NextPeek(Call *call, PlanRow *asked, Next *next)
{
	PlanRow    *root = PlanMustRead(call, &asked->root_id);
	StepRow    *awaited = NULL;

	if (PeekSentBack(call, root, asked, next) || PeekNested(call, root, asked, next) ||
		PeekPlan(call, root, asked, next, &awaited))
		return true;
	next->step = awaited;
	return false;
}
