/*
 * wait.c
 *	  find what a plan waits for
 *
 * Whatever tells about a wait asks WaitOf: why, handoff, the message and the
 * next call of get_next_step, run and get_plan_context. So they tell the same.
 *
 * A claim that is stalled or expired comes first, then a person who is asked,
 * then the pause reason of the plan, then the next step, then the claims that
 * have to end before.
 *
 * Locks: none. Nothing is changed, and everything is read under one snapshot.
 */
#include "api/api.h"

/* ---------- reasons, and ended plans ---------- */

/*
 * Find since when the step waits: since its checkpoint was opened, since it
 * failed, or since its plan paused.
 */
static TimestampTz
PausedSince(const Wait *w)
{
	static KeptQuery find = {
		"SELECT a.at FROM stepwise.audit AS a WHERE a.tenant = $1 AND a.plan_id = $2 AND a.event = 'plan_paused'"
		" ORDER BY a.plan_id DESC, a.batch DESC, a.id DESC LIMIT 1",
		2, {TEXTOID, UUIDOID}, .reads_log = true, .in_order = true
	};
	const ListedCheckpoint *checkpoint = CheckpointOfStep(w->call, &w->step->id);
	Rows		rows;

	if (checkpoint != NULL)
		return checkpoint->since;
	if (TimeIsSet(w->step->completed_at))
		return w->step->completed_at;
	rows = QueryById(w->call, &find, &w->plan->id);
	return rows.count > 0 ? RowTime(&rows, 0, 1) : NO_TIME;
}

/* how a plan has ended, in words */
static const char *const EndWords[PLAN_STATUSES] = {
	[PLAN_COMPLETED] = "is completed",
	[PLAN_FAILED] = "has failed",
	[PLAN_CANCELLED] = "was cancelled",
};

/* Describe a plan that has ended. It waits for nobody. */
static void
WaitOfEnded(Wait *w)
{
	const PlanRow *plan = w->asked;

	w->on = "nobody";
	w->since = plan->completed_at;
	w->message = psprintf("the plan %s%s%s", EndWords[plan->status],
						  plan->outcome == OUTCOME_FAILURE ? ", with outcome failure" : "", Because(plan->message));
}

/*
 * Add what may be called after the end of a plan: the plan around it goes on, a
 * completed plan gets its final output, and everything else can be read.
 */
static void
MoveAfterEnd(Wait *w)
{
	PlanRow    *root = w->asked->nested ? PlanMustRead(w->call, &w->asked->root_id) : w->asked;

	if (!PlanIsTerminal(root->status))
		AddMove(w, MOVE_CALL, "get_next_step", JsonTextOf("plan_id", UuidText(&root->id)));
	else if (w->asked->status != PLAN_COMPLETED)
		AddMove(w, MOVE_CALL, "get_plan_context", PlanArgument(w));
	else if (PlanDetailOf(w->call, w->asked)->final_output != NULL)
		AddMove(w, MOVE_CALL, "get_output", PlanArgument(w));
	else
		AddMove(w, MOVE_CALL, "store_output", JsonMerge(PlanArgument(w), JsonTextOf("content", "<the final output>")));
}

/* ---------- work ---------- */

/* Say that a step is next, and what will happen to it. */
static char *
SayNext(const StepRow *step)
{
	if (step->sent_back)
		return psprintf("step \"%s\" is next: a review has sent it back", step->name);
	if (AttemptsUsedUp(step))
		return psprintf("step \"%s\" is next, and will fail: its attempts are used up", step->name);
	if (step->status == STEP_IN_PROGRESS)
		return psprintf("step \"%s\" is next: its lease has expired", step->name);
	return psprintf("step \"%s\" is next", step->name);
}

/* Say whether a run would come to the next step; a claim or an open failure before it stops a run. */
static bool
RunMayDo(Call *call, const Next *next)
{
	StepRow		step = *next->step;
	Next		run = {.run = true};
	Judgement	j = {0};

	return step.status == STEP_PENDING && StepIsDue(call, next->plan, &step, &run, &j) != DUE_HELD;
}

/*
 * Describe the wait for the next step. A run does it if its tool is in the
 * database; otherwise an agent does it.
 */
static void
WaitOfNext(Wait *w, const Next *next)
{
	const StepRow *step = next->step;
	bool		run = StepKindOf(step) == KIND_TOOL && ToolIsInDatabase(w->call, step->tool) && RunMayDo(w->call, next);

	w->plan = next->plan;
	w->on = "agent";
	w->since = w->plan->updated_at;
	w->message = SayNext(step);
	AddMove(w, MOVE_CALL, run ? "run" : "get_next_step", PlanArgument(w));
	AddOther(w, "get_next_step", PlanArgument(w));
}

/* Is the step claimed? A step in progress that has a nested plan is not. */
static bool
IsClaim(const StepRow *step)
{
	return step->status == STEP_IN_PROGRESS && !StepNests(step);
}

/* Say who holds a claim. */
static char *
SayClaim(const StepRow *step)
{
	return psprintf("step \"%s\" is in progress%s%s", step->name, step->worker ? ", claimed by " : "",
					step->worker ? step->worker : "");
}

/* Build the arguments of release_step; without the attempt a fenced claim would not be released. */
static Jsonb *
ClaimArgument(const StepRow *step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "step_id", &step->id);
	JsonPutInt(&b, "attempt", step->attempt);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Does a worker or a lease hold the claim? Otherwise it may be the caller's own. */
static bool
IsHeld(const StepRow *step)
{
	return step->worker != NULL || TimeIsSet(step->lease_expires_at);
}

/*
 * Describe the wait for the end of a claimed step. Its holder submits it, and all
 * others wait. The number of the attempt is not told, since it identifies the
 * holder.
 */
static void
WaitOfClaim(Wait *w)
{
	w->plan = PlanMustRead(w->call, &w->step->plan_id);
	w->on = "agent";
	w->since = w->step->started_at;
	w->message = psprintf("%s: who holds it submits it, and all others wait", SayClaim(w->step));
	/* raw SQL may have started a prompt, which takes no result */
	if (!StepRuleOf(w->step)->by_worker)
		MoveLeaveOut(w);
	else if (IsHeld(w->step))
	{
		w->message = psprintf("%s%s: wait until it has ended", SayClaim(w->step),
							  w->step->worker ? "" : ", claimed with a lease");
		AddMove(w, MOVE_CALL, "get_next_step", PlanArgument(w));
	}
	else
	{
		MoveSubmit(w);
		AddOther(w, "release_step", ClaimArgument(w->step));
	}
}

/* Find the claims of the plan, unless they are known. */
static const Claims *
ClaimsOfWait(Wait *w)
{
	if (w->claims == NULL)
		w->claims = ClaimsOf(w->call, w->asked);
	return w->claims;
}

/*
 * Find the claim that has to end first; NULL if there is none. A claim that may
 * be the caller's own comes before those that somebody else holds: the caller
 * can end it.
 */
static StepRow *
ClaimToEnd(Wait *w, StepRow *awaited)
{
	const Claims *claims;

	if (awaited != NULL && IsClaim(awaited) && !IsHeld(awaited))
		return awaited;
	claims = ClaimsOfWait(w);
	if (claims->unheld != NULL)
		return claims->unheld;
	return awaited != NULL && IsClaim(awaited) ? awaited : OldestClaim(w->call, claims);
}

/* Find the claim that is lost: it is stalled or expired; NULL if there is none. */
static StepRow *
LostClaim(Wait *w)
{
	const Claims *claims = ClaimsOfWait(w);

	/* the plan may have been marked by a threshold that was given with a call */
	return claims->lost == NULL && w->asked->status == PLAN_STALLED ? OldestClaim(w->call, claims) : claims->lost;
}

/* Describe a claim that is stalled or expired: it comes before everything else, so that nobody passes it over. */
static void
WaitOfOrphan(Wait *w)
{
	bool		expired = TimeIsSet(w->step->lease_expires_at) && w->step->lease_expires_at < GetCurrentTimestamp();

	w->plan = PlanMustRead(w->call, &w->step->plan_id);
	w->on = "agent";
	w->since = w->step->started_at;
	w->message = psprintf("%s, and %s", SayClaim(w->step), expired ? "its lease has expired" : "shows no sign of life");
	/* release_step takes no threshold, so it releases the claim whichever threshold found it stalled */
	if (StepRuleOf(w->step)->by_worker)
		AddMove(w, MOVE_CALL, "release_step", ClaimArgument(w->step));
	else
		MoveLeaveOut(w);
	AddMove(w, MOVE_CALL, "get_next_step", PlanArgument(w));
	if (expired || ClaimIsStalled(w->plan, w->step))
		AddOther(w, "reclaim_stalled", PlanArgument(w));
}

/* Find the claim for which the plan of the step was marked stalled; NULL if there is none. */
static StepRow *
StallOfPlan(const Wait *w)
{
	return w->plan->status == PLAN_STALLED ? OldestClaim(w->call, ClaimsOf(w->call, w->plan)) : NULL;
}

/*
 * Describe the wait of a plan with a pause reason. The reason may be that of a
 * nested plan which alone is marked stalled. Such a plan takes no change before
 * its claim has ended.
 */
static void
WaitOfReason(Wait *w)
{
	StepRow    *orphan;

	w->plan = PlanMustRead(w->call, &w->step->plan_id);
	orphan = StallOfPlan(w);
	if (orphan != NULL)
	{
		w->reason = NULL;
		w->step = orphan;
		WaitOfOrphan(w);
		return;
	}
	w->since = PausedSince(w);
	ExplainReason(w);
}

/* Describe a plan in which nothing is claimed, next or blocked. */
static void
WaitOfNothing(Wait *w)
{
	w->on = "agent";
	w->since = w->asked->updated_at;
	w->message = pstrdup("nothing stands in its way");
	AddMove(w, MOVE_CALL, "get_next_step", PlanArgument(w));
}

/*
 * Describe the wait of a plan without a pause reason: the step that would be
 * handed out comes first, then the claim that has to end before. A nested plan
 * that is held back from above waits for what the plan above waits for.
 */
static void
WaitOfWork(Wait *w)
{
	Next		next = {0};
	StepRow    *before;

	if (NextPeek(w->call, w->asked, &next))
	{
		WaitOfNext(w, &next);
		return;
	}
	w->step = ClaimToEnd(w, next.step);
	if (w->step != NULL)
		WaitOfClaim(w);
	else if ((before = HeldAbove(w->call, w->asked, &next)) != NULL)
		*w = WaitOf(w->call, PlanMustRead(w->call, &before->plan_id));
	else
		WaitOfNothing(w);
}

/* Say whether the next search would hand out this claim, whose lease has expired. */
static bool
IsNext(const Wait *w, const StepRow *orphan)
{
	Next		next = {0};

	return w->reason == NULL && NextPeek(w->call, w->asked, &next) && UuidEqual(&next.step->id, &orphan->id);
}

/* ---------- all of it ---------- */

/*
 * Find the step that blocks a plan; NULL if there is none. A pending step that
 * is held back does not block, although it still has the reason of an earlier
 * look: a step has come before it since.
 */
static StepRow *
BlockingStep(Call *call, PlanRow *asked)
{
	StepRow    *step = StepOfReason(call, asked);
	StepRow		again;
	Next		next = {0};
	Judgement	j = {0};

	if (step == NULL || step->status != STEP_PENDING)
		return step;
	again = *step;
	return StepIsDue(call, PlanMustRead(call, &step->plan_id), &again, &next, &j) == DUE_HELD ? NULL : step;
}

/* Find the step that has asked a person first, in a plan or below it; NULL if nobody is asked. */
static StepRow *
AskingStep(Call *call, const PlanRow *asked)
{
	Jsonb	   *checkpoint = asked->status == PLAN_AWAITING_REVIEW ? OldestCheckpoint(call, asked) : NULL;
	pg_uuid_t	step_id;

	if (checkpoint == NULL || !UuidParse(JsonGetText(checkpoint, "stepId"), &step_id))
		return NULL;
	return StepRead(call, &step_id);
}

/*
 * Find the step that the plan waits for, and its reason. A person who is asked
 * comes first, as in the answer of get_next_step; otherwise it is the step that
 * blocks.
 */
static void
FindBlock(Wait *w)
{
	StepRow    *asking = AskingStep(w->call, w->asked);

	w->step = asking ? asking : BlockingStep(w->call, w->asked);
	w->reason = w->step == NULL ? NULL : JsonOf(asking ? asking->pause_reason : w->asked->pause_reason);
}

/* Describe the wait for the step that blocks, or else for the next one. */
static void
WaitForStep(Wait *w)
{
	FindBlock(w);
	if (w->reason != NULL)
		WaitOfReason(w);
	else
		WaitOfWork(w);
}

/* Find what an open plan waits for. */
static void
WaitOfOpen(Wait *w)
{
	StepRow    *orphan = LostClaim(w);

	w->reason = JsonOf(w->asked->pause_reason);
	if (orphan != NULL && !IsNext(w, orphan))
	{
		w->reason = NULL;
		w->step = orphan;
		WaitOfOrphan(w);
		return;
	}
	WaitForStep(w);
}

/* Find what a plan waits for. */
Wait
WaitOf(Call *call, PlanRow *asked)
{
	Wait		w = {.call = call, .asked = asked};

	if (PlanIsTerminal(asked->status))
		WaitOfEnded(&w);
	else
		WaitOfOpen(&w);
	LeaveToOthers(&w);
	return w;
}

/* Find what a plan waits for, for an agent that wants to go on. It gets a call for a plan that has ended, too. */
Wait
WaitOfAgent(Call *call, PlanRow *asked)
{
	Wait		w = WaitOf(call, asked);

	if (PlanIsTerminal(asked->status))
		MoveAfterEnd(&w);
	LeaveToOthers(&w);
	return w;
}
