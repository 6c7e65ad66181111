/*
 * context.c
 *	  what a session needs to continue a plan
 *
 * All rows that an answer may show are read first, by index (listed.c). Then the
 * answer is built and cut, at lower and lower levels until it fits, and what was
 * cut is filled in again as far as there is room (bound.c).
 *
 * Nothing is locked, with one exception: get_plan_context locks the tree if
 * another session takes over the plan. It records that first, and reads the
 * answer afterwards.
 */
#include "api/api.h"

/* Record that another session continues the plan. A read-only transaction records nothing. */
static void
NoteSession(Call *call, const PlanRow *plan)
{
	PlanRow    *locked;

	if (call->session == NULL || XactReadOnly || (plan->session_id && strcmp(plan->session_id, call->session) == 0))
		return;
	CheckTextLimit(call->session, "session_id");
	locked = PlanLock(call, &plan->id);
	PlanNoteSession(call, locked);
}

/* what the answer of get_plan_context is built from */
typedef struct PlanContextOf
{
	Call	   *call;
	const PlanRow *plan;
	const DetailRow *detail;
	Jsonb	   *more;			/* members that are not cut */
	List	   *tree;			/* of PlanRow: the plan, and those nested in it */
	List	   *steps;			/* of ListedStep, all of the plan */
	List	   *claims;			/* of OpenClaim, in the tree */
	List	   *checkpoints;	/* of ListedCheckpoint, in the tree */
	List	   *artifacts;		/* of ListedArtifact, in the tree */
	bool		has_skill;
	List	   *shown;			/* of StepRow: the steps in the answer that was built last */
} PlanContextOf;

/* a claim in a tree */
typedef struct OpenClaim
{
	const PlanRow *plan;
	const StepRow *step;
	bool		stalled;
	bool		expired;
} OpenClaim;

/* List the plan, and those that are nested in it. */
static List *
TreeOf(Call *call, PlanRow *plan)
{
	static KeptQuery find = {
		"WITH RECURSIVE tree AS (SELECT $2 AS id, 0 AS depth UNION ALL SELECT n.id, t.depth + 1 FROM tree AS t"
		" JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = t.id AND s.workflow IS NOT NULL"
		" JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = s.id)"
		" SELECT t.id FROM tree AS t WHERE t.depth > 0",
		2, {TEXTOID, UUIDOID}
	};
	List	   *tree = list_make1(plan);
	Rows		rows;

	if (!PlanMustRead(call, &plan->root_id)->nests)
		return tree;
	rows = QueryById(call, &find, &plan->id);
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t	id = RowUuid(&rows, i, 1);

		tree = lappend(tree, PlanMustRead(call, &id));
	}
	RowsFree(&rows);
	return tree;
}

/* Compare claims: those that are stalled or expired come first, then those that are silent for longest. */
static int
ClaimsByNeed(const ListCell *a, const ListCell *b)
{
	const OpenClaim *one = lfirst(a);
	const OpenClaim *other = lfirst(b);
	ListCell	first = {.ptr_value = unconstify(StepRow *, one->step)};
	ListCell	second = {.ptr_value = unconstify(StepRow *, other->step)};

	if ((one->stalled || one->expired) != (other->stalled || other->expired))
		return one->stalled || one->expired ? -1 : 1;
	return ClaimsBySilence(&first, &second);
}

/* Add the claims of an open plan. */
static void
ReadClaims(PlanContextOf *of, const PlanRow *plan)
{
	ListCell   *cell;

	foreach(cell, ClaimsInPlan(of->call, plan))
	{
		const StepRow *step = lfirst(cell);
		OpenClaim  *claim = palloc(sizeof(OpenClaim));

		claim->plan = plan;
		claim->step = step;
		claim->stalled = IsSilent(plan, step, NULL);
		claim->expired = TimeIsSet(step->lease_expires_at) && step->lease_expires_at < GetCurrentTimestamp();
		of->claims = lappend(of->claims, claim);
	}
}

/* Find a plan of the tree by its id; NULL if it is not there. */
static const PlanRow *
PlanOfTree(const PlanContextOf *of, const pg_uuid_t *id)
{
	ListCell   *cell;

	foreach(cell, of->tree)
		if (UuidEqual(&((PlanRow *) lfirst(cell))->id, id))
			return lfirst(cell);
	return NULL;
}

/* Read the checkpoints of the plans that have not ended. A plan alone has one only if a step waits. */
static void
ReadCheckpoints(PlanContextOf *of)
{
	ListCell   *cell;

	if (list_length(of->tree) == 1 && of->plan->counts[STEP_AWAITING_INPUT] == 0)
		return;
	foreach(cell, CheckpointsInTree(of->call, &of->plan->root_id))
	{
		ListedCheckpoint *checkpoint = lfirst(cell);
		const PlanRow *plan = PlanOfTree(of, &checkpoint->plan_id);

		if (plan != NULL && !TimeIsSet(plan->completed_at))
			of->checkpoints = lappend(of->checkpoints, checkpoint);
	}
}

/* Read the rows from which the answer is built. */
static PlanContextOf
PlanContextRead(Call *call, PlanRow *plan)
{
	PlanContextOf of = {.call = call, .plan = plan};
	ListCell   *cell;

	of.detail = PlanDetailOf(call, plan);
	of.tree = TreeOf(call, plan);
	of.steps = ListedSteps(call, &plan->id);
	foreach(cell, of.tree)
	{
		const PlanRow *each = lfirst(cell);

		if (!TimeIsSet(each->completed_at))
			ReadClaims(&of, each);
		of.artifacts = list_concat(of.artifacts, ArtifactsOfPlan(call, &each->id));
	}
	list_sort(of.claims, ClaimsByNeed);
	list_sort(of.artifacts, ArtifactsById);
	ReadCheckpoints(&of);
	of.has_skill = SkillMetadata(call, &plan->id) != NULL;
	return of;
}

/* Put a step of the plan. What it depends on is read once. */
static void
PutContextStep(JsonBuilder *b, PlanContextOf *of, ListedStep *step, int cut)
{
	if (step->row == NULL && !of->plan->sequential)
		step->parents = ParentsOf(of->call, &step->id);
	of->shown = lappend(of->shown, ListedRow(of->call, step));
	JsonObjectStart(b, NULL);
	PutListedStep(b, step->row, cut);
	PutDependsOn(b, step->parents, cut);
	PutNestedPlan(b, of->call, step->row);
	JsonObjectEnd(b);
}

/* Put the steps that ended last, and the next to come. */
static void
PutContextSteps(JsonBuilder *b, PlanContextOf *of, int entries, int cut)
{
	const int  *counts = of->plan->counts;
	int			ended = counts[STEP_COMPLETED] + counts[STEP_SKIPPED] + counts[STEP_FAILED];
	int			open = StepTotal(counts) - ended;
	List	   *picked = PickSteps(of->steps, STATES_OPEN, StepsByBegin, Max((entries + 1) / 2, entries - ended));
	ListCell   *cell;

	picked = list_concat(picked, PickSteps(of->steps, STATES_ENDED, StepsByEnd, Max(entries / 2, entries - open)));
	list_sort(picked, StepsByOrder);
	of->shown = NIL;
	JsonArrayStart(b, "steps");
	foreach(cell, picked)
		PutContextStep(b, of, lfirst(cell), cut);
	JsonArrayEnd(b);
}

/* Put the path of a step, cut. */
static void
PutCutPath(JsonBuilder *b, const PlanRow *plan, const StepRow *step, int cut)
{
	ReadingFunction reader = {"get_step_context", "step_id", UuidText(&step->id), "max_bytes"};

	PutCutJson(b, "path", ParentNamesBelow(plan, step), cut, &reader);
}

/* Put the claims of the tree. */
static void
PutOpenClaims(JsonBuilder *b, const PlanContextOf *of, int entries, int cut)
{
	ListCell   *cell;

	JsonArrayStart(b, "openClaims");
	foreach(cell, of->claims)
	{
		const OpenClaim *claim = lfirst(cell);
		const StepRow *step = claim->step;

		if (foreach_current_index(cell) >= entries)
			break;
		JsonObjectStart(b, NULL);
		JsonPutUuid(b, "stepId", &step->id);
		JsonPutUuid(b, "planId", &step->plan_id);
		JsonPutText(b, "name", step->name);
		PutCutPath(b, claim->plan, step, cut);
		PutCutText(b, "worker", step->worker, cut, "get_step_context");
		JsonPutInt(b, "attempt", step->attempt);
		JsonPutTimeIfSet(b, "since", step->started_at);
		JsonPutTimeIfSet(b, "leaseExpiresAt", step->lease_expires_at);
		JsonPutTimeIfSet(b, "activeAt", ActiveSince(step));
		JsonPutBool(b, "stalled", claim->stalled);
		JsonPutBool(b, "expired", claim->expired);
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
	JsonPutInt(b, "openClaimCount", list_length(of->claims));
}

/* Put the checkpoints of the tree. */
static void
PutCheckpoints(JsonBuilder *b, const PlanContextOf *of, int entries, int cut)
{
	ListCell   *cell;

	JsonArrayStart(b, "checkpoints");
	foreach(cell, of->checkpoints)
	{
		const ListedCheckpoint *checkpoint = lfirst(cell);

		if (foreach_current_index(cell) >= entries)
			break;
		JsonObjectStart(b, NULL);
		JsonPutUuid(b, "planId", &checkpoint->plan_id);
		JsonPutUuid(b, "stepId", &checkpoint->step_id);
		PutCutPath(b, PlanOfTree(of, &checkpoint->plan_id), StepMustRead(of->call, &checkpoint->step_id), cut);
		PutCheckpoint(b, checkpoint, cut);
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
	JsonPutInt(b, "checkpointCount", list_length(of->checkpoints));
}

/* Put the newest execution of a skill that made the plan or works on it, if there is one. */
static void
PutSkill(JsonBuilder *b, const PlanContextOf *of, int cut)
{
	static KeptQuery read = {
		"SELECT stepwise.drop_nulls(stepwise.skill_json(e, $3)) FROM stepwise.skill_execution AS e"
		" WHERE e.tenant = $1 AND e.plan_id = $2 ORDER BY e.id DESC LIMIT 1",
		3, {TEXTOID, UUIDOID, INT4OID}
	};
	Params		params = {0};

	if (!of->has_skill || cut <= 0)
		return;
	ParamKey(&params, of->call, &of->plan->id);
	ParamInt(&params, cut);
	JsonPutJsonIfSet(b, "skill", QueryJson(&read, &params));
}

/* Put the texts and values of the plan. */
static void
PutPlanTexts(JsonBuilder *b, const PlanContextOf *of, int cut)
{
	const PlanRow *plan = of->plan;
	const DetailRow *detail = of->detail;
	ReadingFunction reader = {"get_plan_context", "plan_id", UuidText(&plan->id), "max_bytes"};
	ReadingFunction variables = {"task_variables", "plan_id", reader.id, NULL};
	ReadingFunction why = {"why", "plan_id", reader.id, NULL};

	PutCutText(b, "name", plan->name, Max(cut, 40), reader.function);
	PutCutText(b, "goal", plan->goal, cut, reader.function);
	PutCutText(b, "workflow", plan->workflow, cut, reader.function);
	PutCutField(b, "description", detail->description, cut, reader.function);
	PutCutField(b, "designRationale", detail->design_rationale, cut, reader.function);
	PutCutJson(b, "inputs", plan->inputs, cut, &reader);
	PutCutJson(b, "outputs", plan->outputs, cut, &reader);
	PutCutJson(b, "variables", detail->variables, cut, &variables);
	PutCutText(b, "sessionId", plan->session_id, cut, reader.function);
	PutCutText(b, "message", plan->message, cut, reader.function);
	PutCutJson(b, "pauseReason", plan->pause_reason, cut, &why);
	JsonPutText(b, "outputFormattingNotes", cut > 0 ? CutField(detail->output_formatting_notes, cut, reader.function) : NULL);
	if (detail->final_output == NULL)
	{
		JsonPutNull(b, "finalOutput");
		return;
	}
	JsonObjectStart(b, "finalOutput");
	JsonPutText(b, "content", cut > 0 ? CutField(detail->final_output, cut, "get_output") : NULL);
	JsonPutText(b, "mediaType", cut > 0 ? CutField(detail->final_media_type, cut, "get_output") : NULL);
	JsonObjectEnd(b);
}

/* Put the state of the plan. */
static void
PutPlanState(JsonBuilder *b, const PlanRow *plan)
{
	JsonPutUuid(b, "planId", &plan->id);
	JsonPutUuid(b, "rootPlanId", &plan->root_id);
	if (plan->nested)
		JsonPutUuid(b, "parentStepId", &plan->parent_step_id);
	JsonPutText(b, "status", PlanStatusName[plan->status]);
	JsonPutText(b, "planStatus", PlanStatusName[plan->status]);
	JsonPutText(b, "outcome", OutcomeName[plan->outcome]);
	JsonPutText(b, "onFailure", OnFailureName[plan->on_failure]);
	if (plan->version > 0)
		JsonPutInt(b, "version", plan->version);
	JsonPutTimeIfSet(b, "createdAt", plan->created_at);
	JsonPutTimeIfSet(b, "startedAt", plan->started_at);
	JsonPutTimeIfSet(b, "completedAt", plan->completed_at);
	JsonPutTimeIfSet(b, "updatedAt", plan->updated_at);
	JsonPutInt(b, "totalSteps", StepTotal(plan->counts));
	JsonPutInt(b, "progress", PlanPercent(plan));
}

/* Build the answer of get_plan_context at one level. */
static Jsonb *
PlanContextAt(void *arg, int entries, int text)
{
	PlanContextOf *of = arg;
	int			beside = BesideSteps(entries, text);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutPlanState(&b, of->plan);
	PutPlanTexts(&b, of, text);
	PutContextSteps(&b, of, entries, text);
	PutOpenClaims(&b, of, beside, text);
	PutCheckpoints(&b, of, beside, text);
	PutArtifacts(&b, of->artifacts, beside, text);
	PutSkill(&b, of, text);
	JsonPutMembers(&b, of->more);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Fill the members of the plan. They come before the results of its steps, if they are not too long. */
static void
FillPlan(Filling *filling, const PlanContextOf *of)
{
	const PlanRow *plan = of->plan;
	const DetailRow *detail = of->detail;
	const Member members[] = {
		{"pauseReason", FIELD_JSON, plan->pause_reason},
		{"outputFormattingNotes", FIELD_TEXT, detail->output_formatting_notes},
		{"goal", FIELD_TEXT, TextField(plan->goal)},
		{"message", FIELD_TEXT, TextField(plan->message)},
		{"inputs", FIELD_JSON, plan->inputs},
		{"outputs", FIELD_JSON, plan->outputs},
		{"variables", FIELD_JSON, detail->variables},
		{"description", FIELD_TEXT, detail->description},
		{"designRationale", FIELD_TEXT, detail->design_rationale},
		{"name", FIELD_TEXT, TextField(plan->name)},
		{"workflow", FIELD_TEXT, TextField(plan->workflow)},
		{"sessionId", FIELD_TEXT, TextField(plan->session_id)},
	};

	FillMembers(filling, FillAt(filling, NULL, -1), members, lengthof(members), 4);
	FillMember(filling, FillAt(filling, "finalOutput", -1), "content", detail->final_output, FIELD_TEXT, 4);
}

/* Fill what people are asked. */
static void
FillCheckpoints(Filling *filling, const PlanContextOf *of)
{
	ListCell   *cell;

	foreach(cell, of->checkpoints)
	{
		const ListedCheckpoint *checkpoint = lfirst(cell);
		FillTarget *target = FillAt(filling, "checkpoints", foreach_current_index(cell));

		if (target == NULL)
			break;
		FillMember(filling, target, "prompt", checkpoint->prompt, FIELD_TEXT, 4);
		FillMember(filling, target, "questions", checkpoint->questions, FIELD_JSON, 4);
	}
}

/* Fill what was cut in the answer of get_plan_context. */
static Jsonb *
PlanContextFill(const PlanContextOf *of, Jsonb *answer, int max_bytes)
{
	Filling		filling = FillBegin(answer, max_bytes);

	FillCheckpoints(&filling, of);
	FillPlan(&filling, of);
	FillSteps(&filling, "steps", of->shown, true);
	return FillEnd(&filling);
}

/* Build {"nextCall": ...} for a very small answer: why names the next call. */
static Jsonb *
ShortNextCall(const PlanRow *plan)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonObjectStart(&b, "nextCall");
	JsonPutText(&b, "function", "why");
	JsonPutJson(&b, "arguments", JsonTextOf("plan_id", UuidText(&plan->id)));
	JsonObjectEnd(&b);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the answer of get_plan_context, with the next call to make. */
static Jsonb *
PlanContext(Call *call, const PlanRow *plan, int max_bytes)
{
	PlanContextOf of;
	PlanRow    *now;
	Jsonb	   *answer;

	NoteSession(call, plan);
	ReadBegin(call);
	now = PlanMustRead(call, &plan->id);
	of = PlanContextRead(call, now);
	of.more = NextCall(call, now);
	answer = BoundBuild(PlanContextAt, &of, max_bytes, EntriesIn(max_bytes));
	if (JsonTextLength(answer) > max_bytes)
		answer = JsonMerge(answer, ShortNextCall(plan));
	return PlanContextFill(&of, answer, max_bytes);
}

/* Show all that a new session needs to continue a plan. */
PG_FUNCTION_INFO_V1(stepwise_get_plan_context);
Datum
stepwise_get_plan_context(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanRow    *plan;

	CallBegin(&call);
	plan = PlanMustRead(&call, ArgumentUuid(fcinfo, 0));
	/* a reader is no session that continues the plan */
	if (CallerMayWrite(&call))
		CallInSession(&call, ArgumentText(fcinfo, 1));
	return CallEnd(&call, PlanContext(&call, plan, ArgumentMaxBytes(fcinfo, 2)));
}
