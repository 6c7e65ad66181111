/*
 * claims.c
 *	  find the claims for which a plan waits
 *
 * A claim is a step in progress that has no nested plan, and that no review has
 * sent back. A caller that has to wait is told about the claims in a plan and
 * in the plans nested in it: which one is lost, which one may be its own, and
 * when the first one ends by itself. They are read once per call: those of a
 * single plan by index, those of a tree by one query.
 *
 * There is no index of claims, since it would make every claim write into it.
 * In each plan, the search goes from the next pending step backwards, then
 * forwards, and stops when all steps in progress are found; the plan counts
 * them. So the cost grows with the number of claims, and with the distance of
 * the farthest one from the next step. It does not grow with the length of a
 * plan, nor with the nested plans that have ended.
 *
 * Locks: none. Nothing is changed.
 */
#include "api/api.h"

#include "utils/array.h"
#include "utils/fmgrprotos.h"

#define CLAIMS_SHOWN	10		/* waitingFor names at most this many claims */

/* columns of the query below */
enum
{
	CLAIMS_COUNT = 1, CLAIMS_END, CLAIMS_OLDEST, CLAIMS_LOST, CLAIMS_UNHELD
};

/* the steps in progress of a plan p on one side of its next pending step */
#define IN_PROGRESS(side, direction) \
	"(SELECT s.id, s.workflow IS NULL AND s.sent_back IS NULL AS claimed, coalesce(s.active_at, s.started_at) AS since," \
	" s.lease_expires_at AS lease, s.worker IS NULL AND s.lease_expires_at IS NULL AS unheld," \
	" coalesce(s.active_at, s.started_at) + coalesce(s.stall_after, p.stall_after, $3) AS stalls" \
	" FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = p.id AND s.step_order " side " p.next_order AND s.status = 'in_progress'" \
	" ORDER BY s.tenant " direction ", s.plan_id " direction ", s.step_order " direction ")"

/* what is asked of the claims in some plans: those in a strict sequence also end when they stall */
#define CLAIMS_IN(plans) \
	"SELECT pg_catalog.count(*)::int, pg_catalog.min(least(c.lease, CASE WHEN c.strict_order THEN c.stalls END))," \
	" (pg_catalog.array_agg(c.id))[1:$4]," \
	" (pg_catalog.array_agg(c.id) FILTER (WHERE c.lease < pg_catalog.clock_timestamp() OR c.stalls <= pg_catalog.clock_timestamp()))[1]," \
	" (pg_catalog.array_agg(c.id) FILTER (WHERE c.unheld))[1]" \
	" FROM (SELECT x.*, p.strict_order FROM (" plans ") AS p CROSS JOIN LATERAL (" \
	"SELECT y.* FROM (" IN_PROGRESS("<", "DESC") " UNION ALL " IN_PROGRESS(">=", "ASC") ") AS y LIMIT p.in_progress) AS x" \
	" WHERE p.in_progress > 0 AND x.claimed ORDER BY x.since, x.id) AS c"

#define THIS_PLAN	"SELECT p.* FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2"

/* Read the claims of a whole tree: the plans above an open one are open too. */
static Rows
ClaimsInTree(const Params *params)
{
	static KeptQuery find = {
		CLAIMS_IN(THIS_PLAN " UNION ALL SELECT p.* FROM stepwise.plan AS p"
				  " WHERE p.tenant = $1 AND p.root_id = $2 AND p.parent_step_id IS NOT NULL AND p.completed_at IS NULL"),
		4, {TEXTOID, UUIDOID, INTERVALOID, INT4OID}, .in_order = true
	};

	return QueryRun(&find, params);
}

/* Read the claims of a nested plan and of the plans nested in it, plan by plan, however many the planner expects. */
static Rows
ClaimsBelow(const Params *params)
{
	static KeptQuery find = {
		"WITH RECURSIVE tree AS (SELECT $2 AS id UNION ALL SELECT n.id FROM tree AS t CROSS JOIN LATERAL ("
		"SELECT n.id FROM stepwise.step AS h JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = h.id AND n.completed_at IS NULL"
		" WHERE h.tenant = $1 AND h.plan_id = t.id AND h.workflow IS NOT NULL AND h.status IN ('in_progress', 'awaiting_input')"
		" OFFSET 0) AS n) "
		CLAIMS_IN("SELECT n.* FROM tree AS t CROSS JOIN LATERAL (SELECT p.* FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = t.id"
				  " OFFSET 0) AS n"),
		4, {TEXTOID, UUIDOID, INTERVALOID, INT4OID}, .in_order = true
	};

	return QueryRun(&find, params);
}

/* Read the ids of the claims that have been silent for longest. */
static List *
OldestIds(const Rows *rows)
{
	bool		isnull;
	Datum		array = RowDatum(rows, 0, CLAIMS_OLDEST, &isnull);
	List	   *ids = NIL;
	Datum	   *values;
	int			count;

	if (isnull)
		return NIL;
	deconstruct_array(DatumGetArrayTypePCopy(array), UUIDOID, UUID_LEN, false, TYPALIGN_CHAR, &values, NULL, &count);
	for (int i = 0; i < count; i++)
		ids = lappend(ids, DatumGetUUIDP(values[i]));
	return ids;
}

/* Read the step that a column names; NULL if it names none. */
static StepRow *
ClaimAt(Call *call, const Rows *rows, int column)
{
	pg_uuid_t	id = RowUuid(rows, 0, column);

	return RowIsNull(rows, 0, column) ? NULL : StepMustRead(call, &id);
}

/* Read the claims of a tree with nested plans. */
static void
ClaimsRead(Call *call, const PlanRow *asked, Claims *claims)
{
	Params		params = {0};
	Rows		rows;

	ParamKey(&params, call, &asked->id);
	ParamDatum(&params, IntervalPGetDatum(DefaultStallAfter()));
	ParamInt(&params, CLAIMS_SHOWN);
	rows = asked->nested ? ClaimsBelow(&params) : ClaimsInTree(&params);
	claims->count = RowInt(&rows, 0, CLAIMS_COUNT);
	claims->end = RowTime(&rows, 0, CLAIMS_END);
	claims->ids = OldestIds(&rows);
	claims->lost = ClaimAt(call, &rows, CLAIMS_LOST);
	claims->unheld = ClaimAt(call, &rows, CLAIMS_UNHELD);
	RowsFree(&rows);
}

/* Return the last sign of life of a claim. */
TimestampTz
ActiveSince(const StepRow *step)
{
	return TimeIsSet(step->active_at) ? step->active_at : step->started_at;
}

/*
 * Say whether a claim has been silent for at least its threshold: the one given,
 * or that of the step, or that of the plan, or the setting.
 */
bool
IsSilent(const PlanRow *plan, const StepRow *step, Interval *stall_after)
{
	Interval   *own = step->stall_after ? step->stall_after : plan->stall_after;
	Interval   *threshold = stall_after ? stall_after : own ? own : DefaultStallAfter();
	Datum		silent_for = DirectFunctionCall2(timestamp_mi, TimestampTzGetDatum(GetCurrentTimestamp()),
												 TimestampTzGetDatum(ActiveSince(step)));

	return DatumGetInt32(DirectFunctionCall2(interval_cmp, silent_for, IntervalPGetDatum(threshold))) >= 0;
}

/* Compare claims: those that are silent for longest come first. */
int
ClaimsBySilence(const ListCell *a, const ListCell *b)
{
	const StepRow *one = lfirst(a);
	const StepRow *other = lfirst(b);

	if (ActiveSince(one) != ActiveSince(other))
		return ActiveSince(one) < ActiveSince(other) ? -1 : 1;
	return memcmp(&one->id, &other->id, sizeof(pg_uuid_t));
}

/* List the claims of a plan alone. */
List *
ClaimsInPlan(Call *call, const PlanRow *plan)
{
	List	   *claims = NIL;
	ListCell   *cell;

	foreach(cell, StepsInProgress(call, plan))
	{
		StepRow    *step = lfirst(cell);

		if (step->workflow == NULL && !step->sent_back)
			claims = lappend(claims, step);
	}
	list_sort(claims, ClaimsBySilence);
	return claims;
}

/* Take the earlier of two times; NO_TIME is none. */
static TimestampTz
Earlier(TimestampTz a, TimestampTz b)
{
	if (!TimeIsSet(a) || !TimeIsSet(b))
		return TimeIsSet(a) ? a : b;
	return Min(a, b);
}

/* Add a claim of a plan to those that are known. In a strict sequence a claim also ends when it stalls. */
static void
ClaimAdd(Claims *claims, const PlanRow *plan, StepRow *step)
{
	Interval   *threshold = step->stall_after ? step->stall_after : plan->stall_after;
	TimestampTz stalls = TimeAfter(ActiveSince(step), threshold ? threshold : DefaultStallAfter());
	TimestampTz now = GetCurrentTimestamp();

	claims->count++;
	if (claims->count <= CLAIMS_SHOWN)
		claims->ids = lappend(claims->ids, &step->id);
	claims->end = Earlier(claims->end, Earlier(step->lease_expires_at, plan->strict_order ? stalls : NO_TIME));
	if (claims->lost == NULL && (stalls <= now || (TimeIsSet(step->lease_expires_at) && step->lease_expires_at < now)))
		claims->lost = step;
	if (claims->unheld == NULL && step->worker == NULL && !TimeIsSet(step->lease_expires_at))
		claims->unheld = step;
}

/* Find the claims in a plan and below it. */
Claims *
ClaimsOf(Call *call, const PlanRow *asked)
{
	Claims	   *claims = palloc0(sizeof(Claims));
	ListCell   *cell;

	claims->end = NO_TIME;
	if (asked->counts[STEP_IN_PROGRESS] + asked->counts[STEP_AWAITING_INPUT] == 0)
		return claims;
	if (PlanMustRead(call, &asked->root_id)->nests)
		ClaimsRead(call, asked, claims);
	else
		foreach(cell, ClaimsInPlan(call, asked))
			ClaimAdd(claims, asked, lfirst(cell));
	return claims;
}

/* Read the claim that has been silent for longest; NULL if there is none. */
StepRow *
OldestClaim(Call *call, const Claims *claims)
{
	return claims->ids == NIL ? NULL : StepMustRead(call, linitial(claims->ids));
}

/* Put in how many milliseconds a claim ends by itself, if one does. */
void
PutRetryAfter(JsonBuilder *b, const Claims *claims)
{
	if (claims != NULL && TimeIsSet(claims->end))
		JsonPutInt(b, "retryAfterMs", Max((claims->end - GetCurrentTimestamp()) / 1000, 0) + 1);
}

/* Put one claim for which others wait. */
static void
PutClaim(JsonBuilder *b, const PlanRow *plan, const StepRow *step)
{
	JsonObjectStart(b, NULL);
	JsonPutUuid(b, "stepId", &step->id);
	JsonPutText(b, "name", step->name);
	PutPath(b, plan, step);
	JsonPutTextIfSet(b, "worker", WorkerShown(step));
	JsonPutTime(b, "since", step->started_at);
	JsonPutTimeIfSet(b, "leaseExpiresAt", step->lease_expires_at);
	JsonPutBool(b, "stalled", ClaimIsStalled(plan, step));
	JsonObjectEnd(b);
}

/* Put "waitingFor": the claims that have to end first, those that are silent for longest. */
void
PutWaitingFor(JsonBuilder *b, Call *call, const Claims *claims)
{
	ListCell   *cell;

	JsonArrayStart(b, "waitingFor");
	foreach(cell, claims ? claims->ids : NIL)
	{
		StepRow    *step = StepMustRead(call, lfirst(cell));

		PutClaim(b, PlanMustRead(call, &step->plan_id), step);
	}
	JsonArrayEnd(b);
	if (claims != NULL && claims->count > CLAIMS_SHOWN)
		JsonPutInt(b, "waitingForCount", claims->count);
}
