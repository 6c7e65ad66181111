/*
 * progress.c
 *	  the status of a plan, stalled claims, and taking them back
 *
 * A claim is stalled when it has been silent for at least its threshold. The
 * threshold is the one given in the call, or that of the step, or that of the
 * plan, or the setting, in this order. A step that has a nested plan has no
 * claim itself; the claims in its nested plan count instead.
 *
 * Locks: a plan is marked as stalled, and a claim is taken back, only if the
 * tree can be locked without waiting. Everything else is read without a lock.
 */
#include "api/api.h"

#include "access/xact.h"
#include "utils/fmgrprotos.h"

/* Read an interval that must not be negative; NULL if it is not given. */
static Interval *
ArgumentThreshold(FunctionCallInfo fcinfo, int n, const char *what)
{
	Interval	zero = {0};

	if (PG_ARGISNULL(n))
		return NULL;
	if (DatumGetInt32(DirectFunctionCall2(interval_cmp, PG_GETARG_DATUM(n), IntervalPGetDatum(&zero))) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("%s must not be negative", what),
				 errhint("Use an interval such as '30 minutes'.")));
	return PG_GETARG_INTERVAL_P(n);
}

static void
ParamInterval(Params *params, Interval *interval)
{
	if (interval == NULL)
		ParamNull(params);
	else
		ParamDatum(params, IntervalPGetDatum(interval));
}

/* ---------- status ---------- */

/* a claim that is stalled */
typedef struct StalledClaim
{
	pg_uuid_t	step_id;
	char	   *name;
	int64		seconds;		/* since its last sign of life */
} StalledClaim;

/* Add a stalled claim to a list. */
static List *
StalledAdd(List *stalled, pg_uuid_t step_id, char *name, int64 seconds)
{
	StalledClaim *claim = palloc(sizeof(StalledClaim));

	claim->step_id = step_id;
	claim->name = name;
	claim->seconds = seconds;
	return lappend(stalled, claim);
}

/* List the stalled claims of a plan that has no nested plans. */
static List *
StalledInPlan(Call *call, const PlanRow *plan, Interval *stall_after)
{
	List	   *stalled = NIL;
	ListCell   *cell;

	foreach(cell, ClaimsInPlan(call, plan))
	{
		StepRow    *step = lfirst(cell);

		if (IsSilent(plan, step, stall_after))
			stalled = StalledAdd(stalled, step->id, step->name, (GetCurrentTimestamp() - ActiveSince(step)) / USECS_PER_SEC);
	}
	return stalled;
}

/* List the stalled claims of a plan and of the plans nested in it. */
static List *
StalledInTree(Call *call, const PlanRow *plan, Interval *stall_after)
{
	static KeptQuery find = {
		"SELECT x.step_id, x.name, pg_catalog.floor(EXTRACT(epoch FROM x.silent_for))::int8 FROM stepwise.stalled_steps($1, $2, $3, $4) AS x"
		" ORDER BY x.silent_for DESC, x.step_id",
		4, {TEXTOID, UUIDOID, INTERVALOID, INTERVALOID}
	};
	Params		params = {0};
	Rows		rows;
	List	   *stalled = NIL;
	bool		isnull;

	ParamKey(&params, call, &plan->id);
	ParamInterval(&params, stall_after);
	ParamInterval(&params, DefaultStallAfter());
	rows = QueryRun(&find, &params);
	for (uint64 i = 0; i < rows.count; i++)
		stalled = StalledAdd(stalled, RowUuid(&rows, i, 1), RowText(&rows, i, 2), DatumGetInt64(RowDatum(&rows, i, 3, &isnull)));
	RowsFree(&rows);
	return stalled;
}

/*
 * List the claims that are stalled in a plan and in those nested in it, the
 * most silent first. A step with a nested plan in which somebody works is in
 * progress itself.
 */
static List *
StalledClaims(Call *call, const PlanRow *plan, Interval *stall_after)
{
	if (TimeIsSet(plan->completed_at) || plan->counts[STEP_IN_PROGRESS] == 0)
		return NIL;
	if (PlanMustRead(call, &plan->root_id)->nests)
		return StalledInTree(call, plan, stall_after);
	return StalledInPlan(call, plan, stall_after);
}

/*
 * Note in the root that its tree has stalled plans. Unless that is noted, a
 * step that moves does not look for stalled plans above it.
 */
static void
NoteStall(PlanRow *root)
{
	if (root->stalls)
		return;
	root->stalls = true;
	PlanTouch(root);
}

/*
 * Mark a locked plan as stalled, and the nested plans in which a claim is
 * stalled. So a move in a nested plan wakes every plan above it.
 */
static void
MarkTree(Call *call, PlanRow *plan, Interval *stall_after)
{
	static KeptQuery open = {
		"SELECT n.id FROM stepwise.step AS s JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = s.id"
		" WHERE s.tenant = $1 AND s.plan_id = $2 AND s.status = 'in_progress' AND s.workflow IS NOT NULL"
		" AND n.completed_at IS NULL ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows;

	if (plan->status != PLAN_EXECUTING || StalledClaims(call, plan, stall_after) == NIL)
		return;
	PlanMove(call, plan, PLAN_STALLED, NULL);
	NoteStall(plan->root);
	if (!plan->root->nests)
		return;
	rows = QueryById(call, &open, &plan->id);
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t	nested_id = RowUuid(&rows, i, 1);

		MarkTree(call, PlanInTree(call, plan->root, &nested_id), stall_after);
	}
	RowsFree(&rows);
}

/*
 * Mark an executing plan as stalled. A plan that another transaction has
 * locked is being worked on, so it is left alone.
 */
static void
MarkStalled(Call *call, const pg_uuid_t *plan_id, Interval *stall_after)
{
	bool		found;
	PlanRow    *plan = PlanLockIfFree(call, plan_id, &found);

	if (plan != NULL)
		MarkTree(call, plan, stall_after);
}

/* what the status is built from */
typedef struct StatusOf
{
	Call	   *call;
	const PlanRow *plan;
	List	   *steps;			/* of ListedStep, all */
	List	   *stalled;		/* of StalledClaim */
} StatusOf;

/* Put a step as the status shows it. */
static void
PutStatusStep(JsonBuilder *b, const char *key, const StepRow *step, int cut)
{
	JsonObjectStart(b, key);
	JsonPutUuid(b, "stepId", &step->id);
	JsonPutInt(b, "stepOrder", step->order);
	JsonPutText(b, "name", step->name);
	JsonPutText(b, "stepType", step->type);
	JsonPutText(b, "status", StepStatusName[step->status]);
	if (step->status == STEP_IN_PROGRESS || step->status == STEP_AWAITING_INPUT)
	{
		PutCutText(b, "worker", step->worker, cut, "get_step_context");
		JsonPutInt(b, "attempt", step->attempt);
		JsonPutTimeIfSet(b, "since", step->started_at);
		JsonPutTimeIfSet(b, "leaseExpiresAt", step->lease_expires_at);
	}
	else if (step->status == STEP_FAILED)
	{
		PutCutText(b, "error", step->message, cut, "get_step_context");
		JsonPutBool(b, "retryable", step->retryable == 1);
		JsonPutInt(b, "attempt", step->attempt);
	}
	else if (step->status != STEP_PENDING)
	{
		JsonPutText(b, "outcome", OutcomeName[step->outcome]);
		PutCutField(b, "resultSummary", step->result_summary, cut, "get_step_context");
	}
	JsonObjectEnd(b);
}

/* Put a list of steps: the last done, or the next to come. */
static void
PutStatusSteps(JsonBuilder *b, const char *key, const StatusOf *of, int states, int entries, int cut)
{
	ListCell   *cell;

	JsonArrayStart(b, key);
	foreach(cell, PickSteps(of->steps, states, states & STATES_ENDED ? StepsByEnd : StepsByOrder, entries))
		PutStatusStep(b, NULL, ListedRow(of->call, lfirst(cell)), cut);
	JsonArrayEnd(b);
}

/* Put the first step that has begun; null if there is none. */
static void
PutCurrentStep(JsonBuilder *b, const StatusOf *of, int cut)
{
	List	   *begun = PickSteps(of->steps, STATE_BIT(STEP_IN_PROGRESS) | STATE_BIT(STEP_AWAITING_INPUT), StepsByOrder, 1);

	if (begun == NIL)
		JsonPutNull(b, "currentStep");
	else
		PutStatusStep(b, "currentStep", ListedRow(of->call, linitial(begun)), cut);
}

/* Put the claims that are stalled. */
static void
PutStalled(JsonBuilder *b, const StatusOf *of, int entries)
{
	ListCell   *cell;

	JsonPutBool(b, "stalled", of->plan->status == PLAN_STALLED || of->stalled != NIL);
	JsonPutInt(b, "stalledCount", list_length(of->stalled));
	JsonArrayStart(b, "stalledSteps");
	foreach(cell, of->stalled)
	{
		const StalledClaim *claim = lfirst(cell);

		if (foreach_current_index(cell) >= entries)
			break;
		JsonObjectStart(b, NULL);
		JsonPutUuid(b, "stepId", &claim->step_id);
		JsonPutText(b, "name", claim->name);
		JsonPutInt(b, "silentSeconds", claim->seconds);
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
}

/* Derive the status of the plan from the steps as they are. */
static PlanStatus
DerivedStatus(const StatusOf *of)
{
	int			counts[STEP_STATUSES] = {0};
	ListCell   *cell;

	foreach(cell, of->steps)
		counts[((ListedStep *) lfirst(cell))->status]++;
	return PlanDeriveStatus(counts, of->plan->on_failure);
}

/* Put how many steps are in which state. */
static void
PutCounts(JsonBuilder *b, const PlanRow *plan)
{
	const int  *counts = plan->counts;

	JsonPutInt(b, "progress", PlanPercent(plan));
	JsonPutInt(b, "totalSteps", StepTotal(counts));
	JsonPutInt(b, "completedCount", counts[STEP_COMPLETED] + counts[STEP_SKIPPED]);
	JsonPutInt(b, "failedCount", counts[STEP_FAILED]);
	JsonPutInt(b, "pendingCount", counts[STEP_PENDING]);
	JsonPutInt(b, "inProgressCount", counts[STEP_IN_PROGRESS]);
	JsonPutInt(b, "awaitingCount", counts[STEP_AWAITING_INPUT]);
}

/* Build the status of the plan at one level. */
static Jsonb *
StatusAt(void *arg, int entries, int text)
{
	const StatusOf *of = arg;
	const PlanRow *plan = of->plan;
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "planId", &plan->id);
	JsonPutText(&b, "name", CutText(plan->name, Max(text, 40), "get_plan_context"));
	JsonPutText(&b, "status", PlanStatusName[plan->status]);
	JsonPutText(&b, "planStatus", PlanStatusName[plan->status]);
	JsonPutText(&b, "derivedStatus", PlanStatusName[DerivedStatus(of)]);
	JsonPutText(&b, "outcome", OutcomeName[plan->outcome]);
	PutStalled(&b, of, entries);
	PutCounts(&b, plan);
	PutCurrentStep(&b, of, text);
	PutStatusSteps(&b, "inProgressSteps", of, STATE_BIT(STEP_IN_PROGRESS), entries, text);
	PutStatusSteps(&b, "completedSteps", of, STATE_BIT(STEP_COMPLETED) | STATE_BIT(STEP_SKIPPED), entries, text);
	PutStatusSteps(&b, "failedSteps", of, STATE_BIT(STEP_FAILED), entries, text);
	PutStatusSteps(&b, "pendingSteps", of, STATE_BIT(STEP_PENDING), entries, text);
	JsonPutJson(&b, "pauseReason", JsonOf(plan->pause_reason));
	if (plan->nested)
		JsonPutUuid(&b, "rootPlanId", &plan->root_id);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the status of a plan, with lists of at most max entries. */
static Jsonb *
StatusJson(Call *call, const pg_uuid_t *plan_id, Interval *stall_after, int max)
{
	StatusOf	of = {.call = call, .plan = PlanMustRead(call, plan_id)};

	of.steps = ListedSteps(call, plan_id);
	of.stalled = StalledClaims(call, of.plan, stall_after);
	return BoundBuild(StatusAt, &of, ListBytes(max), max);
}

/* Show the status of a plan, and mark the plan if a claim in it is stalled. */
PG_FUNCTION_INFO_V1(stepwise_get_plan_status);
Datum
stepwise_get_plan_status(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanRow    *plan;
	Interval   *stall_after;
	int			max;

	CallBegin(&call);
	stall_after = ArgumentThreshold(fcinfo, 1, "stall_after");
	max = ArgumentMax(fcinfo, 2, LIST_MAX);
	plan = PlanMustRead(&call, ArgumentUuid(fcinfo, 0));
	/* a read-only transaction, a standby or a reader cannot mark the plan, and only sees its status */
	if (plan->status == PLAN_EXECUTING && !XactReadOnly && StalledClaims(&call, plan, stall_after) != NIL && CallerMayWrite(&call))
		MarkStalled(&call, &plan->id, stall_after);
	ReadBegin(&call);
	return CallEnd(&call, StatusJson(&call, &plan->id, stall_after, max));
}

/* ---------- reclaiming ---------- */

/* columns of the query that finds trees with stalled claims */
enum
{
	R_ROOT_ID = 1, R_PLAN_ID, R_STEP_ID
};

/*
 * The condition for a claim in an open plan that has expired or is stalled.
 * "given" is the threshold of the call, and "otherwise" is the setting.
 */
#define IS_STALLED(given, otherwise) \
	" AND s.status = 'in_progress' AND s.workflow IS NULL AND s.sent_back IS NULL AND p.completed_at IS NULL" \
	" AND (s.lease_expires_at < pg_catalog.clock_timestamp() OR pg_catalog.clock_timestamp() -" \
	" coalesce(s.active_at, s.started_at) >= coalesce(" given ", s.stall_after, p.stall_after, " otherwise "))"

/* Put one claim that was taken back. */
static void
PutReclaimed(JsonBuilder *b, const PlanRow *plan, const StepRow *step)
{
	JsonObjectStart(b, NULL);
	PutStepAnswer(b, plan, step);
	JsonPutText(b, "name", step->name);
	JsonPutInt(b, "attempt", step->attempt);
	JsonObjectEnd(b);
}

static bool
IsExpired(const StepRow *step)
{
	return TimeIsSet(step->lease_expires_at) && step->lease_expires_at < GetCurrentTimestamp();
}

/* Check the claim again under the lock: it may have shown life, or have ended. */
static bool
StillStalled(const PlanRow *plan, const StepRow *step, Interval *older_than)
{
	return step->status == STEP_IN_PROGRESS && step->workflow == NULL && !step->sent_back && !TimeIsSet(plan->completed_at) &&
		(IsExpired(step) || IsSilent(plan, step, older_than));
}

/* the progress of reclaim_stalled */
typedef struct Reclaim
{
	Call	   *call;
	Interval   *older_than;		/* the threshold of the call, or NULL */
	JsonBuilder reclaimed;		/* the answer, an unfinished object */
	int			count;			/* of claims taken back */
	List	   *skipped;		/* of char *, ids of root plans; at most LIST_MAX */
	int			skipped_count;	/* of all skipped trees */
	pg_uuid_t	last_skipped;	/* root of the last skipped tree */
} Reclaim;

/*
 * Note that a tree is locked. All claims of a tree are found in a row, so the
 * last skipped root is enough to count each tree once.
 */
static void
ReclaimSkip(Reclaim *r, const pg_uuid_t *root_id)
{
	r->last_skipped = *root_id;
	if (r->skipped_count++ < LIST_MAX)
		r->skipped = lappend(r->skipped, UuidText(root_id));
}

/*
 * Take back one claim, unless its tree is locked. The transaction that holds
 * the lock may stay idle, and the other trees must not wait for it.
 */
static void
ReclaimStep(Reclaim *r, const pg_uuid_t *root_id, const pg_uuid_t *plan_id, const pg_uuid_t *step_id)
{
	bool		found;
	PlanRow    *plan;
	StepRow    *step;

	if (UuidEqual(root_id, &r->last_skipped))
		return;
	plan = PlanLockIfFree(r->call, plan_id, &found);
	if (plan == NULL && found)
		ReclaimSkip(r, root_id);
	step = plan ? StepRead(r->call, step_id) : NULL;
	if (step == NULL || !StillStalled(plan, step, r->older_than))
		return;
	StepReclaim(r->call, plan, step, IsExpired(step) ? "lease expired" : "stalled");
	PlanSettle(r->call, plan);
	if (r->count++ < LIST_MAX)
		PutReclaimed(&r->reclaimed, plan, step);
}

static Jsonb *
ReclaimAnswer(Reclaim *r)
{
	JsonBuilder *b = &r->reclaimed;

	JsonArrayEnd(b);
	JsonPutInt(b, "count", r->count);
	JsonPutTexts(b, "skipped", r->skipped);
	JsonPutInt(b, "skippedCount", r->skipped_count);
	JsonObjectEnd(b);
	return JsonFinish(b);
}

#define RECLAIM_COLUMNS	"SELECT p.root_id, p.id, s.id FROM "
#define RECLAIM_ORDER	" ORDER BY p.root_id, p.id, s.step_order"

/* Find the stalled and expired claims of the tenant. */
static Rows
FindStalled(Call *call, Interval *older_than)
{
	static KeptQuery find = {
		RECLAIM_COLUMNS "stepwise.plan AS p JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = p.id"
		" WHERE p.tenant = $1 AND p.in_progress > 0" IS_STALLED("$2", "$3") RECLAIM_ORDER,
		3, {TEXTOID, INTERVALOID, INTERVALOID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamInterval(&params, older_than);
	ParamInterval(&params, DefaultStallAfter());
	return QueryRun(&find, &params);
}

/* Find the stalled and expired claims of a plan and of the plans nested in it. */
static Rows
FindStalledIn(Call *call, const PlanRow *plan, Interval *older_than)
{
	static KeptQuery find = {
		"WITH RECURSIVE tree AS (SELECT $4 AS id UNION ALL SELECT n.id FROM tree AS t CROSS JOIN LATERAL ("
		"SELECT n.id FROM stepwise.step AS h JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = h.id AND n.completed_at IS NULL"
		" WHERE h.tenant = $1 AND h.plan_id = t.id AND h.workflow IS NOT NULL AND h.status IN ('in_progress', 'awaiting_input')"
		" OFFSET 0) AS n) "
		RECLAIM_COLUMNS "tree AS t CROSS JOIN LATERAL (SELECT x.* FROM stepwise.plan AS x WHERE x.tenant = $1 AND x.id = t.id OFFSET 0) AS p"
		" CROSS JOIN LATERAL (SELECT x.* FROM stepwise.step AS x WHERE x.tenant = $1 AND x.plan_id = p.id AND x.status = 'in_progress' OFFSET 0) AS s"
		" WHERE p.in_progress > 0" IS_STALLED("$2", "$3") RECLAIM_ORDER,
		4, {TEXTOID, INTERVALOID, INTERVALOID, UUIDOID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamInterval(&params, older_than);
	ParamInterval(&params, DefaultStallAfter());
	ParamUuid(&params, &plan->id);
	return QueryRun(&find, &params);
}

/* Take back the claims that a query has found. */
static void
ReclaimRows(Reclaim *r, const Rows *rows)
{
	for (uint64 i = 0; i < rows->count; i++)
	{
		pg_uuid_t	root_id = RowUuid(rows, i, R_ROOT_ID);
		pg_uuid_t	claim_plan_id = RowUuid(rows, i, R_PLAN_ID);
		pg_uuid_t	step_id = RowUuid(rows, i, R_STEP_ID);

		ReclaimStep(r, &root_id, &claim_plan_id, &step_id);
	}
}

/* Take back the stalled and expired claims of a plan that has no nested plans. */
static void
ReclaimInPlan(Reclaim *r, const PlanRow *plan)
{
	List	   *claims = ClaimsInPlan(r->call, plan);
	ListCell   *cell;

	list_sort(claims, RowsByOrder);
	foreach(cell, claims)
	{
		const StepRow *step = lfirst(cell);

		if (StillStalled(plan, step, r->older_than))
			ReclaimStep(r, &plan->root_id, &plan->id, &step->id);
	}
}

/*
 * Take back every stalled or expired claim of the tenant, tree by tree in the
 * order of their roots; or only those of one plan, if plan_id is not NULL.
 */
static Jsonb *
ReclaimStalled(Call *call, Interval *older_than, const pg_uuid_t *plan_id)
{
	Reclaim		reclaim = {.call = call, .older_than = older_than};
	const PlanRow *plan = plan_id ? PlanMustRead(call, plan_id) : NULL;
	Rows		rows = {0};

	JsonObjectStart(&reclaim.reclaimed, NULL);
	JsonArrayStart(&reclaim.reclaimed, "reclaimed");
	if (plan == NULL)
		rows = FindStalled(call, older_than);
	else if (PlanMustRead(call, &plan->root_id)->nests)
		rows = FindStalledIn(call, plan, older_than);
	else
		ReclaimInPlan(&reclaim, plan);
	ReclaimRows(&reclaim, &rows);
	return ReclaimAnswer(&reclaim);
}

/* Take back stalled and expired claims. */
PG_FUNCTION_INFO_V1(stepwise_reclaim_stalled);
Datum
stepwise_reclaim_stalled(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBegin(&call);
	return CallEnd(&call, ReclaimStalled(&call, ArgumentThreshold(fcinfo, 0, "older_than"), ArgumentUuid(fcinfo, 1)));
}
