/*
 * history.c
 *	  the execution tree at a past time, rebuilt from the audit chain
 *
 * The chain records states, pauses, times, attempts and actors. Of results it
 * records only digests: an output is shown only if the stored one still has
 * the recorded digest. What a step does, and its wave, are shown as they are
 * now, or as they were when the step was removed.
 *
 * "Then" is the state at the asked time. Nothing is locked. The answer is read
 * under one snapshot.
 */
#include "api/api.h"

#include "miscadmin.h"

static void PutBlocksAsOf(JsonBuilder *b, Call *call, const pg_uuid_t *plan_id, TimestampTz at);

/* Read a word from a row as its index in a list of words. */
static int
RowWord(const Rows *rows, uint64 row, int column, const char *const *words, int count, int otherwise)
{
	char	   *word = RowText(rows, row, column);
	int			index = word ? NameIndex(word, words, count) : -1;

	return index < 0 ? otherwise : index;
}

/* what the chain says of a plan itself, at the asked time */
typedef struct PlanThen
{
	char	   *status;			/* NULL if the plan did not exist yet */
	Jsonb	   *pause_reason;	/* NULL if it was not paused */
	char	   *actor;			/* who made the last change */
} PlanThen;

/* Read what the chain says of a plan at a time. */
static PlanThen
ReadPlanThen(Call *call, const pg_uuid_t *plan_id, TimestampTz at)
{
	static KeptQuery read = {
		"WITH e AS (SELECT a.id, a.event, a.actor, a.detail FROM stepwise.audit AS a WHERE a.tenant = $1 AND a.plan_id = $2"
		" AND a.at <= $3 AND a.step_id IS NULL AND (a.event = 'plan_paused'"
		" OR (a.event IN ('plan_status_changed', 'plan_modified') AND a.detail ? 'to')))"
		" SELECT (SELECT e.detail ->> 'to' FROM e WHERE e.event <> 'plan_paused' ORDER BY e.id DESC LIMIT 1),"
		" (SELECT e.detail -> 'reason' FROM e WHERE e.event = 'plan_paused' ORDER BY e.id DESC LIMIT 1),"
		" (SELECT e.actor FROM e ORDER BY e.id DESC LIMIT 1)",
		3, {TEXTOID, UUIDOID, TIMESTAMPTZOID}
	};
	PlanThen	then;
	Params		params = {0};
	Rows		rows;

	ParamKey(&params, call, plan_id);
	ParamDatum(&params, TimestampTzGetDatum(at));
	rows = QueryRun(&read, &params);
	then.status = RowText(&rows, 0, 1);
	then.pause_reason = RowJson(&rows, 0, 2);
	then.actor = RowText(&rows, 0, 3);
	RowsFree(&rows);
	/* the end of a pause is audited as a null reason, except if the plan itself ends */
	if (then.pause_reason != NULL && (JsonIsNull(then.pause_reason) || then.status == NULL ||
									  PlanIsTerminal(NameIndex(then.status, PlanStatusName, PLAN_STATUSES))))
		then.pause_reason = NULL;
	return then;
}

/* columns of the query of ReadStepsThen */
enum
{
	H_ID = 1, H_STATUS, H_OUTCOME, H_STARTED_AT, H_ENDED_AT, H_BEGUN, H_ATTEMPT, H_MESSAGE, H_ACTOR, H_DIGEST, H_NESTED,
	/* null unless the step was removed since */
	H_NAME, H_WAVE, H_EXECUTION_ORDER, H_INPUTS
};

/*
 * Read the steps of a plan as they were.
 *
 * A step existed then unless a later entry says that it was added. A step that
 * a later entry says was removed still existed. The entry of a branch lists
 * the steps that it added by name. Such a name means a removed step only if
 * that was removed after the entry.
 */
static Rows
ReadStepsThen(Call *call, const pg_uuid_t *plan_id, TimestampTz at)
{
	static KeptQuery read = {
		"WITH e AS (SELECT a.id, a.step_id, a.at, a.actor, a.detail FROM stepwise.audit AS a"
		" WHERE a.tenant = $1 AND a.plan_id = $2 AND a.at <= $3 AND a.step_id IS NOT NULL AND a.detail ? 'to'),"
		" last AS (SELECT DISTINCT ON (e.step_id) e.* FROM e ORDER BY e.step_id, e.id DESC),"
		" started AS (SELECT e.step_id, pg_catalog.max(e.id) AS id, pg_catalog.max(e.at) AS at FROM e"
		" WHERE e.detail ->> 'to' = 'in_progress' AND e.detail ->> 'from' <> 'awaiting_input' GROUP BY e.step_id),"
		" reset AS (SELECT e.step_id, pg_catalog.max(e.id) AS id FROM e WHERE e.detail ->> 'to' = 'pending' GROUP BY e.step_id),"
		" later AS (SELECT a.id, a.step_id, a.detail FROM stepwise.audit AS a WHERE a.tenant = $1 AND a.plan_id = $2 AND a.at > $3"
		" AND a.event = 'plan_modified' AND (a.detail ->> 'action' IN ('add_steps', 'remove_step') OR a.detail ? 'addedSteps')),"
		" steps AS (SELECT s.id, s.name, s.step_order, s.started_at, s.completed_at, NULL::bigint AS removed, NULL::jsonb AS detail"
		" FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" UNION ALL SELECT l.step_id, l.detail ->> 'name', (l.detail ->> 'stepOrder')::int, NULL, NULL, l.id, l.detail"
		" FROM later AS l WHERE l.detail ->> 'action' = 'remove_step'),"
		" added AS (SELECT x.id::uuid FROM later AS l, pg_catalog.jsonb_array_elements_text(l.detail -> 'stepIds') AS x (id)"
		" UNION ALL SELECT l.step_id FROM later AS l WHERE l.detail ->> 'action' = 'add_steps'"
		" UNION ALL SELECT s.id FROM later AS l CROSS JOIN pg_catalog.jsonb_array_elements_text(l.detail -> 'addedSteps') AS x (name)"
		" JOIN steps AS s ON s.name = x.name AND (s.removed IS NULL OR s.removed > l.id))"
		" SELECT s.id, l.detail ->> 'to', l.detail ->> 'outcome',"
		" CASE WHEN l.detail ? 'forked' THEN s.started_at WHEN b.id > coalesce(r.id, 0) THEN b.at END,"
		" CASE WHEN l.detail ? 'forked' THEN s.completed_at WHEN l.detail ->> 'to' IN ('completed', 'failed', 'skipped') THEN l.at END,"
		" l.detail ? 'forked' OR b.id IS NOT NULL, (l.detail ->> 'attempt')::int, l.detail ->> 'message', l.actor,"
		" l.detail ->> 'resultDigest',"
		" (SELECT n.id FROM stepwise.plan AS n WHERE n.tenant = $1 AND n.parent_step_id = s.id AND n.created_at <= $3"
		" ORDER BY n.id DESC LIMIT 1),"
		" s.detail ->> 'name', (s.detail ->> 'wave')::int, (s.detail ->> 'executionOrder')::int, s.detail -> 'inputs'"
		" FROM steps AS s LEFT JOIN last AS l ON l.step_id = s.id LEFT JOIN started AS b ON b.step_id = s.id"
		" LEFT JOIN reset AS r ON r.step_id = s.id"
		" WHERE NOT EXISTS (SELECT FROM added AS d WHERE d.id = s.id) ORDER BY s.step_order",
		3, {TEXTOID, UUIDOID, TIMESTAMPTZOID}
	};
	Params		params = {0};

	ParamKey(&params, call, plan_id);
	ParamDatum(&params, TimestampTzGetDatum(at));
	return QueryRun(&read, &params);
}

/* Build the row of a step that was removed since; NULL if it still exists. */
static StepRow *
RemovedStep(const Rows *rows, uint64 row)
{
	StepRow    *step;

	if (RowIsNull(rows, row, H_NAME))
		return NULL;
	step = palloc0(sizeof(StepRow));
	step->active_at = step->lease_expires_at = NO_TIME;
	step->id = RowUuid(rows, row, H_ID);
	step->name = RowText(rows, row, H_NAME);
	step->wave = RowInt(rows, row, H_WAVE);
	step->execution_order = RowInt(rows, row, H_EXECUTION_ORDER);
	step->arguments = (struct varlena *) RowJson(rows, row, H_INPUTS);
	return step;
}

/* Read a step, and set it back to how it was. CheckRecorded looks at its result later. */
static StepRow *
StepAsOf(Call *call, const Rows *rows, uint64 row)
{
	pg_uuid_t	id = RowUuid(rows, row, H_ID);
	StepRow    *step = RemovedStep(rows, row);

	if (step == NULL)
		step = StepMustRead(call, &id);
	step->status = RowWord(rows, row, H_STATUS, StepStatusName, STEP_STATUSES, STEP_PENDING);
	step->outcome = RowWord(rows, row, H_OUTCOME, OutcomeName, OUTCOMES, OUTCOME_NA);
	step->started_at = RowTime(rows, row, H_STARTED_AT);
	step->completed_at = RowTime(rows, row, H_ENDED_AT);
	step->attempt = RowInt(rows, row, H_ATTEMPT);
	/* the chain has no message of a completed step; the stored one is final */
	if (step->status != STEP_COMPLETED)
		step->message = RowText(rows, row, H_MESSAGE);
	step->pause_reason = NULL;
	if (!RowBool(rows, row, H_BEGUN))
		step->execution_order = 0;
	/* a pending step has no resolved arguments yet */
	if (step->status == STEP_PENDING)
		step->inputs = NULL;
	if (step->status != STEP_COMPLETED || RowIsNull(rows, row, H_DIGEST))
		step->result = NULL;
	return step;
}

/* Drop the result unless it has the recorded digest. */
static void
CheckRecorded(StepRow *step, const Rows *rows, uint64 row)
{
	if (step->result != NULL && strcmp(RowText(rows, row, H_DIGEST), DigestText(step->result)) != 0)
		step->result = NULL;
}

/* Limit the asked time to now: a time in the future is answered with the present state. */
static TimestampTz
KnownUntil(TimestampTz at)
{
	return Min(at, GetCurrentTimestamp());
}

/* Build the metadata of a step, with the actor of its last change. */
static Jsonb *
MetadataAsOf(const StepRow *step, const char *actor, TimestampTz at)
{
	return JsonMerge(StepMetadata(step, KnownUntil(at)), JsonTextOf("actor", actor));
}

/* Put a step as a block, with the blocks of the plan that was nested in it then. */
static void
PutBlockAsOf(JsonBuilder *b, Call *call, StepRow *step, const Rows *rows, uint64 row, TimestampTz at)
{
	bool		nested = !RowIsNull(rows, row, H_NESTED);
	pg_uuid_t	nested_id = RowUuid(rows, row, H_NESTED);

	CheckRecorded(step, rows, row);
	/* a parent step pauses with its nested plan */
	if (nested)
		step->pause_reason = (struct varlena *) ReadPlanThen(call, &nested_id, at).pause_reason;
	JsonObjectStart(b, step->name);
	JsonPutJson(b, "inputs", StepInputs(step));
	PutOutputs(b, step->result);
	JsonPutJson(b, "metadata", MetadataAsOf(step, RowText(rows, row, H_ACTOR), at));
	if (nested)
		PutBlocksAsOf(b, call, &nested_id, at);
	else
		JsonPutJson(b, "blocks", JsonEmptyObject());
	JsonObjectEnd(b);
}

/* Put the steps of a plan as blocks. Check the size of the answer before large values are read. */
static void
PutBlocksAsOf(JsonBuilder *b, Call *call, const pg_uuid_t *plan_id, TimestampTz at)
{
	StepRow   **steps;
	Rows		rows;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	rows = ReadStepsThen(call, plan_id, at);
	steps = palloc(sizeof(StepRow *) * Max(rows.count, 1));
	for (uint64 i = 0; i < rows.count; i++)
	{
		steps[i] = StepAsOf(call, &rows, i);
		AnswerTake(call, BlockSize(steps[i]), TREE_HINT);
	}
	JsonObjectStart(b, "blocks");
	for (uint64 i = 0; i < rows.count; i++)
		PutBlockAsOf(b, call, steps[i], &rows, i, at);
	JsonObjectEnd(b);
	RowsFree(&rows);
}

/* Refuse a time before the plan was created. */
static const char *
CheckThere(Call *call, const PlanRow *plan, const char *status, TimestampTz at)
{
	if (status == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_PLAN_NOT_FOUND),
				 errmsg("plan \"%s\" was not there at %s", plan->name, TimeText(at)),
				 errdetail("It was created at %s.", TimeText(plan->created_at)),
				 errhint("%s", PlanHint(call, plan, "Ask for a time after that; stepwise.execution(plan_id) shows the plan as it is now."))));
	return status;
}

/* Set the row of a plan back to how it was. */
static PlanRow
PlanAsOf(Call *call, const PlanRow *plan, const PlanThen *told, TimestampTz at)
{
	PlanRow		then = *plan;

	then.status = NameIndex(CheckThere(call, plan, told->status, at), PlanStatusName, PLAN_STATUSES);
	then.pause_reason = (struct varlena *) told->pause_reason;
	if (then.status != PLAN_COMPLETED)
	{
		then.outcome = OUTCOME_NA;
		then.outputs = NULL;
	}
	if (!PlanIsTerminal(then.status))
	{
		then.completed_at = NO_TIME;
		then.message = NULL;
	}
	if (then.started_at > at)
		then.started_at = NO_TIME;
	return then;
}

/* Build the execution tree of a plan at a time. Its metadata have the actor of the last change too. */
static Jsonb *
ExecutionAsOf(Call *call, PlanRow *plan, TimestampTz at)
{
	PlanThen	told = ReadPlanThen(call, &plan->id, at);
	PlanRow		then = PlanAsOf(call, plan, &told, at);
	JsonBuilder more = {0};
	JsonBuilder b = {0};

	AnswerTake(call, RawSize(then.inputs) + RawSize(then.outputs), TREE_HINT);
	JsonObjectStart(&more, NULL);
	JsonPutText(&more, "actor", told.actor);
	JsonPutTime(&more, "as_of", KnownUntil(at));
	JsonObjectEnd(&more);
	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "inputs", JsonOf(then.inputs));
	PutOutputs(&b, then.outputs);
	JsonPutJson(&b, "metadata", JsonMerge(PlanMetadata(call, &then, KnownUntil(at)), JsonFinish(&more)));
	PutBlocksAsOf(&b, call, &plan->id, at);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Show the execution tree of a plan at a past time. */
PG_FUNCTION_INFO_V1(stepwise_execution_as_of);
Datum
stepwise_execution_as_of(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanRow    *plan;

	CallBeginReading(&call);
	plan = PlanMustRead(&call, ArgumentUuid(fcinfo, 0));
	if (PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("execution_as_of needs a time"),
				 errhint("%s", PlanHint(&call, plan, "Give a time, as in stepwise.execution_as_of(plan_id, clock_timestamp())."))));
	return CallEnd(&call, ExecutionAsOf(&call, plan, PG_GETARG_TIMESTAMPTZ(1)));
}
