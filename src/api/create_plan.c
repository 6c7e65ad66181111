/*
 * create_plan.c
 *	  create_plan and start_workflow
 *
 * A call with an idempotency key may be repeated: the second call answers with
 * the plan of the first. Calls with the same key wait for each other.
 */
#include "api/api.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* arguments of create_plan, in their order */
enum
{
	CP_NAME, CP_GOAL, CP_STEPS, CP_BRANCHING, CP_INPUTS, CP_OUTPUTS, CP_ON_FAILURE, CP_SESSION, CP_RATIONALE, CP_NOTES,
	CP_STALL_AFTER, CP_KEY, CP_SEPARATE_REVIEWER, CP_STRICT_ORDER
};

/*
 * Raise a serialization failure if there is a plan of this key that a REPEATABLE
 * READ or SERIALIZABLE transaction does not see, because it is newer than its
 * snapshot. The lock of the key is held, so no such plan can be made from here on.
 */
static void
CheckKeyIsFree(Call *call, const char *key)
{
	static KeptQuery find = {
		"SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.idempotency_key = $2",
		2, {TEXTOID, TEXTOID}, .latest = true
	};

	if (IsolationUsesXactSnapshot() && QueryByName(call, &find, key).count > 0)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to concurrent update")));
}

/*
 * Find the plan that was created with the idempotency key; NULL if there is
 * none. It is an error if the key was used with a different request. If a plan
 * is found, the rest of the call reads under one snapshot.
 */
static PlanRow *
PlanOfKey(Call *call, const PlanOrigin *origin)
{
	PlanRow    *plan;
	const char *digest;

	if (origin->idempotency_key == NULL)
		return NULL;
	/* wait for a call with the same key, so that we find its plan */
	CallLockOfMany(call, "idempotency key", origin->idempotency_key);
	/* the plan is not locked, and may be purged while we build the answer */
	ReadBegin(call);
	plan = PlanReadByKey(call, origin->idempotency_key);
	if (plan == NULL)
	{
		ReadEnd(call);
		CheckKeyIsFree(call, origin->idempotency_key);
		return NULL;
	}
	digest = TextOf(PlanDetailOf(call, plan)->request_digest);
	if (digest == NULL || strcmp(digest, origin->request_digest) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_IDEMPOTENCY_CONFLICT),
				 errmsg("idempotency key \"%s\" was used with other content", origin->idempotency_key),
				 errdetail("It belongs to plan \"%s\".", UuidText(&plan->id)),
				 errhint("%s", HintWithId("stepwise.get_plan_context(plan_id) shows that plan. Use a new key for a new plan.", "plan_id", &plan->id))));
	return plan;
}

/* what the answer shows of the steps of a plan */
typedef struct ShownSteps
{
	const pg_uuid_t *ids;		/* of the first ones */
	int			count;
	const char *name;			/* of the first step; likewise the next two */
	const char *type;
	const char *instructions;	/* cut, or NULL */
} ShownSteps;

static void
PutFirstStep(JsonBuilder *b, const ShownSteps *steps)
{
	JsonObjectStart(b, "firstStep");
	JsonPutUuid(b, "stepId", &steps->ids[0]);
	JsonPutInt(b, "stepOrder", 1);
	JsonPutText(b, "name", steps->name);
	JsonPutText(b, "stepType", steps->type);
	JsonPutTextIfSet(b, "instructions", steps->instructions);
	JsonObjectEnd(b);
}

/* Build the answer of create_plan and start_workflow; existing means that the key was used before. */
static Jsonb *
CreatedAnswer(const PlanRow *plan, const ShownSteps *steps, bool existing)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "planId", &plan->id);
	JsonPutText(&b, "name", plan->name);
	JsonPutText(&b, "goal", CutText(plan->goal, SHOWN_TEXT, "get_plan_context"));
	JsonPutText(&b, "status", PlanStatusName[plan->status]);
	JsonPutText(&b, "planStatus", PlanStatusName[plan->status]);
	if (plan->workflow != NULL)
	{
		JsonPutText(&b, "workflow", plan->workflow);
		JsonPutInt(&b, "version", plan->version);
	}
	JsonPutInt(&b, "stepCount", StepTotal(plan->counts));
	JsonArrayStart(&b, "stepIds");
	for (int i = 0; i < steps->count; i++)
		JsonPutUuid(&b, NULL, &steps->ids[i]);
	JsonArrayEnd(&b);
	PutFirstStep(&b, steps);
	if (existing)
		JsonPutBool(&b, "existing", true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Read the first step of a plan. Every plan has one; if it is missing, so is the plan. */
static StepRow *
FirstStep(Call *call, const PlanRow *plan)
{
	StepRow    *step = StepReadByOrder(call, &plan->id, 1);

	if (step == NULL)
		PlanNotFound(&plan->id);
	return step;
}

/* Build the answer of a call whose key was used before. */
static Jsonb *
ExistingAnswer(Call *call, const PlanRow *plan)
{
	static KeptQuery read = {
		"SELECT s.id FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" ORDER BY s.tenant, s.plan_id, s.step_order LIMIT $3",
		3, {TEXTOID, UUIDOID, INT4OID}
	};
	const StepRow *first = FirstStep(call, plan);
	pg_uuid_t	ids[LIST_MAX];
	ShownSteps	steps = {
		.ids = ids, .name = first->name, .type = first->type,
		.instructions = CutField(first->instructions, SHOWN_TEXT, "get_step_context")
	};
	Params		params = {0};
	Rows		rows;

	ParamKey(&params, call, &plan->id);
	ParamInt(&params, LIST_MAX);
	rows = QueryRun(&read, &params);
	for (steps.count = 0; steps.count < (int) rows.count; steps.count++)
		ids[steps.count] = RowUuid(&rows, steps.count, 1);
	RowsFree(&rows);
	return CreatedAnswer(plan, &steps, true);
}

/* Link the session's latest started skill execution to the plan that it made, unless it has a plan already. */
static void
LinkSkill(Call *call, const PlanRow *plan)
{
	static KeptQuery link = {
		"UPDATE stepwise.skill_execution SET plan_id = $3 WHERE tenant = $1 AND id = ("
		"SELECT e.id FROM stepwise.skill_execution AS e WHERE e.tenant = $1 AND e.session_id = $2 AND e.status = 'started'"
		" ORDER BY e.tenant DESC, e.session_id DESC, e.id DESC LIMIT 1) AND plan_id IS NULL",
		3, {TEXTOID, TEXTOID, UUIDOID}
	};
	Params		params = {0};

	if (call->session == NULL || !SessionHasSkill(call, call->session))
		return;
	ParamTenant(&params, call);
	ParamText(&params, call->session);
	ParamUuid(&params, &plan->id);
	QueryRun(&link, &params);
}

/*
 * Build one definition from the arguments, so that create_plan and
 * define_workflow share one grammar. A builder takes several times the memory
 * of its result, so it has a memory context of its own, deleted at the end.
 */
static Jsonb *
DefinitionOfArguments(FunctionCallInfo fcinfo)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise definition", ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(scratch);
	JsonBuilder b = {0};
	Jsonb	   *definition;

	JsonObjectStart(&b, NULL);
	if (!PG_ARGISNULL(CP_NAME))
		JsonPutText(&b, "name", ArgumentText(fcinfo, CP_NAME));
	if (!PG_ARGISNULL(CP_STEPS))
		JsonPutJson(&b, "steps", ArgumentJson(fcinfo, CP_STEPS));
	if (!PG_ARGISNULL(CP_BRANCHING))
		JsonPutJson(&b, "branchingConditions", ArgumentJson(fcinfo, CP_BRANCHING));
	if (!PG_ARGISNULL(CP_OUTPUTS))
		JsonPutJson(&b, "outputs", ArgumentJson(fcinfo, CP_OUTPUTS));
	if (!PG_ARGISNULL(CP_ON_FAILURE))
		JsonPutText(&b, "onFailure", ArgumentText(fcinfo, CP_ON_FAILURE));
	if (!PG_ARGISNULL(CP_STALL_AFTER))
		PutInterval(&b, "stallAfter", PG_GETARG_INTERVAL_P(CP_STALL_AFTER));
	if (!PG_ARGISNULL(CP_SEPARATE_REVIEWER))
		JsonPutBool(&b, "separateReviewer", PG_GETARG_BOOL(CP_SEPARATE_REVIEWER));
	if (!PG_ARGISNULL(CP_STRICT_ORDER))
		JsonPutBool(&b, "strictOrder", PG_GETARG_BOOL(CP_STRICT_ORDER));
	if (!PG_ARGISNULL(CP_NOTES))
		JsonPutText(&b, "outputFormattingNotes", ArgumentText(fcinfo, CP_NOTES));
	JsonObjectEnd(&b);
	definition = JsonFinish(&b);
	MemoryContextSwitchTo(outer);
	definition = JsonCopy(definition);
	MemoryContextDelete(scratch);
	return definition;
}

static void
CheckIdempotencyKey(const char *key)
{
	if (key != NULL && *key == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("idempotency_key must not be empty"),
				 errhint("Leave it out, or make one up for this request.")));
	CheckNameLimit(key, "idempotency_key");
}

/*
 * Compute a digest of a request, to recognize its repetition. It covers all
 * arguments but the session and the key. Without a key it is not needed: NULL.
 */
static char *
RequestDigest(const char *key, const Jsonb *definition, const char *goal, const Jsonb *inputs, const char *rationale)
{
	MemoryContext scratch;
	MemoryContext outer;
	JsonBuilder b = {0};
	char	   *digest;

	if (key == NULL)
		return NULL;
	scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise request", ALLOCSET_DEFAULT_SIZES);
	outer = MemoryContextSwitchTo(scratch);
	JsonArrayStart(&b, NULL);
	JsonPutJson(&b, NULL, definition);
	JsonPutText(&b, NULL, goal);
	JsonPutJson(&b, NULL, inputs);
	JsonPutText(&b, NULL, rationale);
	JsonArrayEnd(&b);
	digest = DigestText(JsonFinish(&b));
	MemoryContextSwitchTo(outer);
	digest = pstrdup(digest);
	MemoryContextDelete(scratch);
	return digest;
}

static void
CheckGoal(Faults *faults, const char *goal)
{
	if (goal == NULL || *goal == '\0')
		FaultAdd(faults, ERRCODE_INVALID_DEFINITION, "goal", "Say in a sentence what the plan is to achieve.",
				 "goal is missing");
}

/* Create a plan of an accepted definition, and build the answer. */
static Jsonb *
Create(Call *call, const Definition *definition, const PlanOrigin *origin)
{
	const StepDefinition *first = &definition->steps[0];
	ShownSteps	steps = {
		.count = Min(definition->nsteps, LIST_MAX), .name = first->name, .type = first->type,
		.instructions = first->instructions ? CutText(first->instructions, SHOWN_TEXT, "get_step_context") : NULL
	};
	PlanRow    *plan = PlanCreate(call, definition, origin, &steps.ids);

	LinkSkill(call, plan);
	return CreatedAnswer(plan, &steps, false);
}

/* Create a plan, or find the one of an earlier call with the same key. */
static Jsonb *
CreatePlan(Call *call, const Jsonb *json, PlanOrigin *origin)
{
	Faults		faults = {0};
	const PlanRow *plan = PlanOfKey(call, origin);
	Definition *definition;

	if (plan != NULL)
		return ExistingAnswer(call, plan);
	CheckGoal(&faults, origin->goal);
	CheckInputsObject(&faults, origin->inputs);
	definition = DefinitionAcceptPlan(call, json, JsonIsObject(origin->inputs) ? origin->inputs : JsonEmptyObject(), &faults);
	FaultsRaise(&faults, "definition");
	CheckJsonLimits(origin->inputs, "inputs");
	return Create(call, definition, origin);
}

/* Create a plan from a definition in the arguments. */
PG_FUNCTION_INFO_V1(stepwise_create_plan);
Datum
stepwise_create_plan(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanOrigin	origin = {0};
	Jsonb	   *definition;

	CallBegin(&call);
	CallInSession(&call, ArgumentText(fcinfo, CP_SESSION));
	definition = DefinitionOfArguments(fcinfo);
	origin.goal = ArgumentText(fcinfo, CP_GOAL);
	origin.inputs = ArgumentJson(fcinfo, CP_INPUTS);
	origin.design_rationale = ArgumentText(fcinfo, CP_RATIONALE);
	origin.idempotency_key = ArgumentText(fcinfo, CP_KEY);
	CheckIdempotencyKey(origin.idempotency_key);
	CheckTextLimit(origin.goal, "goal");
	CheckTextLimit(origin.design_rationale, "design_rationale");
	origin.request_digest = RequestDigest(origin.idempotency_key, definition, origin.goal, origin.inputs, origin.design_rationale);
	return CallEnd(&call, CreatePlan(&call, definition, &origin));
}

/* Create a plan from a workflow, or find the one of an earlier call with the same key. */
static Jsonb *
StartWorkflow(Call *call, PlanOrigin *origin)
{
	Faults		faults = {0};
	const PlanRow *plan = PlanOfKey(call, origin);
	Definition *definition;

	if (plan != NULL)
		return ExistingAnswer(call, plan);
	if (origin->goal != NULL)
		CheckGoal(&faults, origin->goal);
	FaultsRaise(&faults, "arguments");
	definition = WorkflowOpen(call, origin, &faults);
	FaultsRaise(&faults, "inputs");
	CheckJsonLimits(origin->inputs, "inputs");
	return Create(call, definition, origin);
}

/* Create a plan from a workflow. */
PG_FUNCTION_INFO_V1(stepwise_start_workflow);
Datum
stepwise_start_workflow(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanOrigin	origin = {0};
	JsonBuilder b = {0};

	CallBegin(&call);
	CallInSession(&call, ArgumentText(fcinfo, 3));
	origin.workflow = ArgumentText(fcinfo, 0);
	origin.inputs = ArgumentJson(fcinfo, 1);
	/* 0 stands for the newest version; if the caller passes 0 or less, ask for -1, which does not exist */
	origin.version = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT32(2) > 0 ? PG_GETARG_INT32(2) : -1;
	origin.idempotency_key = ArgumentText(fcinfo, 4);
	origin.goal = ArgumentText(fcinfo, 5);
	CheckIdempotencyKey(origin.idempotency_key);
	CheckTextLimit(origin.goal, "goal");
	if (origin.workflow == NULL)
		origin.workflow = "";
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "workflow", origin.workflow);
	JsonPutInt(&b, "version", origin.version);
	JsonObjectEnd(&b);
	origin.request_digest = RequestDigest(origin.idempotency_key, JsonFinish(&b), origin.goal, origin.inputs, NULL);
	return CallEnd(&call, StartWorkflow(&call, &origin));
}
