/*
 * modify.c
 *	  modify_plan: change what a plan that is not finished will do
 *
 * An action is a line in Actions: its name, the keys of its params, and its
 * function. After every action, the plan is one that a definition could have
 * made. Every name that a step mentions exists. In a sequence, a step mentions
 * only steps before it. Orders are 1..n without gaps.
 *
 * The order of a step is its position, not the time when it ran; that is its
 * execution_order. So a pending step may be moved before finished ones, and
 * then it is the next to be handed out.
 *
 * Faults are collected and raised as one error. The transaction then rolls
 * back what was written before.
 *
 * Locks: the root of the tree and the plan.
 */
#include "api/api.h"

#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#define EXCERPT_BYTES	2000	/* of a text, in an audit entry */

/* the params of all actions; NULL or NIL if not given */
typedef struct ModifyParams
{
	JsonbValue *steps;			/* of add_steps */
	JsonbValue *after_order;	/* insertAfterOrder */
	char	   *after;			/* name of a step */
	pg_uuid_t  *step_id;
	char	   *step;			/* name of a step, instead of step_id */
	List	   *step_ids;		/* of pg_uuid_t * */
	List	   *names;			/* of char *, instead of step_ids */
	char	   *instructions;
	char	   *reason;
	Jsonb	   *outputs;
} ModifyParams;

/* a modification in progress */
typedef struct Change
{
	Call	   *call;
	PlanRow    *plan;
	ModifyParams params;
	const Jsonb *given;			/* params as given, an object */
	StepRow    *step;			/* the step that stepId or step names, or NULL */
	bool		removed;		/* the step is deleted */
	Faults		faults;
	JsonBuilder detail;			/* the detail of the audit entry, an unfinished object */
	JsonBuilder answer;			/* the answer, an unfinished object */
} Change;

typedef struct ActionRule
{
	const char *name;
	const KeyRule *keys;
	int			nkeys;
	const char *either[2];		/* two keys of which one is given, not both */
	bool		needed;			/* one of the two must be given */
	bool		open;			/* other keys are those of a step */
	void		(*act) (Change *change);
} ActionRule;

/* ---------- params ---------- */

/* Read the id of a step into a pg_uuid_t *. */
static void
ReadStepId(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));
	char	   *text = NULL;

	ReadText(reader, place, value, &text);
	if (text == NULL)
		return;
	if (UuidParse(text, id))
		*(pg_uuid_t **) field = id;
	else
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION,
				"Names of steps go into \"step\" or \"steps\"; stepwise.get_plan_context(plan_id) lists the ids.",
				"\"%s\" is not the id of a step", ShortText(text));
}

/* Read an array of step ids into a List of pg_uuid_t *. */
static void
ReadStepIds(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	Place		element = {.up = place};
	Jsonb	   *ids;
	JsonbValue	item;

	if (!ExpectKind(reader, place, value, "array"))
		return;
	ids = JsonFromValue(value);
	for (element.index = 0; JsonGetIndex(ids, element.index, &item); element.index++)
	{
		pg_uuid_t  *id = NULL;

		ReadStepId(reader, &element, &item, &id);
		if (id != NULL)
			*(List **) field = lappend(*(List **) field, id);
	}
}

/* Read an array of names of steps into a List of char *. */
static void
ReadStepNames(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	Place		element = {.up = place};
	Jsonb	   *names;
	JsonbValue	item;

	if (!ExpectKind(reader, place, value, "array"))
		return;
	names = JsonFromValue(value);
	for (element.index = 0; JsonGetIndex(names, element.index, &item); element.index++)
	{
		char	   *name = NULL;

		ReadText(reader, &element, &item, &name);
		if (name != NULL)
			*(List **) field = lappend(*(List **) field, name);
	}
}

/* Is the key given in params? */
static bool
Given(const Change *change, const char *key)
{
	JsonbValue	value;

	return JsonGet(change->given, key, &value);
}

/* Add the fault that the plan has no step of this name. */
static void
FaultNoStep(Change *change, const char *place, const char *name)
{
	Reader		reader = {.call = change->call, .faults = &change->faults};

	PlanScopeRead(&reader, change->plan);
	FaultAdd(&change->faults, ERRCODE_STEP_NOT_FOUND, place, ScopeStepHint(&reader, name),
			 "plan \"%s\" has no step \"%s\"", change->plan->name, ShortText(name));
}

/* ---------- add_steps ---------- */

/* Is the value a whole number from 0 to most? */
static bool
IsOrderUpTo(const JsonbValue *value, int most)
{
	Datum		number;

	if (value->type != jbvNumeric)
		return false;
	number = NumericGetDatum(value->val.numeric);
	return DatumGetBool(DirectFunctionCall2(numeric_ge, number, NumericGetDatum(int64_to_numeric(0)))) &&
		DatumGetBool(DirectFunctionCall2(numeric_le, number, NumericGetDatum(int64_to_numeric(most)))) &&
		DatumGetBool(DirectFunctionCall2(numeric_eq, number, DirectFunctionCall1(numeric_floor, number)));
}

/* Find the order of the step that "after" names. Returns -1 if there is none. */
static int
OrderOfAfter(Change *change)
{
	StepRow    *step = StepReadByName(change->call, &change->plan->id, change->params.after);

	if (step != NULL)
		return step->order;
	FaultNoStep(change, "after", change->params.after);
	return -1;
}

/* Find the order after which steps are added. Returns -1, which means the end, if none is given or it is not valid. */
static int
InsertAfter(Change *change)
{
	JsonbValue *value = change->params.after_order;
	int			count = StepTotal(change->plan->counts);

	if (change->params.after != NULL)
		return OrderOfAfter(change);
	if (value == NULL)
		return -1;
	if (IsOrderUpTo(value, count))
		return DatumGetInt32(DirectFunctionCall1(numeric_int4, NumericGetDatum(value->val.numeric)));
	FaultAdd(&change->faults, ERRCODE_INVALID_DEFINITION, "insertAfterOrder",
			 "0 puts the steps before all others; without insertAfterOrder they go to the end.",
			 "must be a whole number from 0 to %d, the number of steps", count);
	return -1;
}

static void
PutIds(JsonBuilder *b, const char *key, const pg_uuid_t *ids, int count)
{
	JsonArrayStart(b, key);
	for (int i = 0; i < count; i++)
		JsonPutUuid(b, NULL, &ids[i]);
	JsonArrayEnd(b);
}

static void
ActAddSteps(Change *change)
{
	int			before = StepTotal(change->plan->counts);
	int			after = InsertAfter(change);
	int			count = 0;
	pg_uuid_t  *ids;

	if (change->params.steps == NULL)
		return;
	ids = PlanAddSteps(change->call, change->plan, JsonFromValue(change->params.steps), after, &change->faults, &count);
	if (FaultsAny(&change->faults))
		return;
	if (after < 0)
		after = before;
	CheckDoorOfAdded(change->call, change->plan, ids, count, after + 1);
	JsonPutInt(&change->detail, "insertAfterOrder", after);
	PutIds(&change->detail, "stepIds", ids, count);
	JsonPutInt(&change->answer, "insertAfterOrder", after);
	PutIds(&change->answer, "stepIds", ids, Min(count, LIST_MAX));
}

static const KeyRule AddStepsKeys[] = {
	{"steps", ReadLater, offsetof(ModifyParams, steps), true},
	{"insertAfterOrder", ReadLater, offsetof(ModifyParams, after_order), false},
	{"after", ReadText, offsetof(ModifyParams, after), false},
};

/* ---------- remove_step ---------- */

static void
CheckRemovable(Call *call, const StepRow *step)
{
	if (step->status != STEP_PENDING)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" is %s and cannot be removed", step->name, StepStatusName[step->status]),
				 errdetail("Only a pending step can be removed."),
				 errhint("%s", StepHint(call, step, step->status == STEP_COMPLETED || step->status == STEP_SKIPPED
									 ? "What has ended stays in the plan. Add steps with stepwise.modify_plan(plan_id, 'add_steps', '{\"steps\": [{\"instructions\": \"Do the rest\"}]}')."
									 : "Skip it with stepwise.skip_step(step_id) instead."))));
}

/*
 * Refuse to remove a step that has a nested plan. A step that is pending again
 * keeps the plan that it had opened.
 */
static void
CheckHasNoPlan(Change *change)
{
	pg_uuid_t	nested_id;

	if (NestedPlanId(change->call, &change->step->id, &nested_id))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" has held a nested plan and cannot be removed", change->step->name),
				 errdetail("Plan \"%s\" would have no step above it.", UuidText(&nested_id)),
				 errhint("%s", StepHint(change->call, change->step, "Skip the step with stepwise.skip_step(step_id) instead."))));
}

static void
CheckNotOnly(Change *change)
{
	if (StepTotal(change->plan->counts) == 1)
		FaultAdd(&change->faults, ERRCODE_INVALID_DEFINITION, "stepId",
				 PlanHint(change->call, change->plan, "Add another step first; or end the plan with stepwise.cancel_plan(plan_id)."),
				 "step \"%s\" is the only step of its plan", change->step->name);
}

/*
 * Add the fault that the step is needed elsewhere. "order" is the order of the
 * step that needs it, or 0 for the plan itself.
 */
static void
FaultInUse(Change *change, int sqlstate, int order, const char *place, const char *source)
{
	char	   *path = order ? psprintf("steps[%d].%s", order - 1, place) : pstrdup(place);

	FaultAdd(&change->faults, sqlstate, path,
			 StepHint(change->call, change->step, "Change or remove what needs it first; or skip the step with stepwise.skip_step(step_id)."),
			 "step \"%s\" is needed here: %s", change->step->name, source);
}

/* Check that no other step, and no output of the plan, refers to the step. */
static void
CheckNotMentioned(Change *change)
{
	const StepRow *step = change->step;
	ListCell   *cell;

	foreach(cell, PlanMentions(change->call, change->plan))
	{
		const Mention *mention = lfirst(cell);
		const char *own = mention->binding ? step->binding : step->name;

		/* mentions in the step itself are removed with it */
		if (own != NULL && mention->order != step->order && strcmp(mention->name, own) == 0)
			FaultInUse(change, ERRCODE_UNRESOLVED_REFERENCE, mention->order, mention->place, mention->source);
	}
}

/* Check that no step depends on the step. */
static void
CheckNoDependents(Change *change)
{
	static KeptQuery dependents = {
		"SELECT s.step_order FROM stepwise.dependency AS d JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = d.step_id"
		" WHERE d.tenant = $1 AND d.depends_on = $2 ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(change->call, &dependents, &change->step->id);

	for (uint64 i = 0; i < rows.count; i++)
		FaultInUse(change, ERRCODE_INVALID_DEFINITION, RowInt(&rows, i, 1), "dependsOn",
				   psprintf("dependsOn \"%s\"", change->step->name));
	RowsFree(&rows);
}

/* Check that no branch that may still be taken skips to the step. */
static void
CheckNoTarget(Change *change)
{
	static KeptQuery branches = {
		"SELECT s.step_order FROM stepwise.step AS s"
		" JOIN stepwise.branching_condition AS b ON b.tenant = $1 AND b.step_id = s.id AND b.target_id = $3"
		" WHERE s.tenant = $1 AND s.plan_id = $2 AND s.branches AND s.status NOT IN ('completed', 'skipped')"
		" ORDER BY s.step_order",
		3, {TEXTOID, UUIDOID, UUIDOID}
	};
	Params		params = {0};
	Rows		rows;

	ParamKey(&params, change->call, &change->plan->id);
	ParamUuid(&params, &change->step->id);
	rows = QueryRun(&branches, &params);
	for (uint64 i = 0; i < rows.count; i++)
		FaultInUse(change, ERRCODE_INVALID_DEFINITION, RowInt(&rows, i, 1), "branchingConditions", "skip_to goes to it");
	RowsFree(&rows);
}

/* Delete the step with its dependencies and branches. Its artifacts stay with the plan. */
static void
StepDelete(Change *change)
{
	static KeptQuery dependencies = {
		"DELETE FROM stepwise.dependency WHERE tenant = $1 AND step_id = $2",
		2, {TEXTOID, UUIDOID}
	};
	static KeptQuery branches = {
		"DELETE FROM stepwise.branching_condition WHERE tenant = $1 AND step_id = $2",
		2, {TEXTOID, UUIDOID}
	};
	static KeptQuery artifacts = {
		"UPDATE stepwise.artifact SET step_id = NULL"
		" WHERE tenant = $1 AND step_id = $2 AND plan_id IN ("
		"SELECT s.root_id FROM stepwise.step AS s WHERE s.tenant = $1 AND s.id = $2"
		" UNION ALL SELECT p.id FROM stepwise.step AS s JOIN stepwise.plan AS p"
		" ON p.tenant = $1 AND p.root_id = s.root_id AND p.parent_step_id IS NOT NULL WHERE s.tenant = $1 AND s.id = $2)",
		2, {TEXTOID, UUIDOID}
	};
	static KeptQuery step = {
		"DELETE FROM stepwise.step WHERE tenant = $1 AND id = $2",
		2, {TEXTOID, UUIDOID}
	};

	QueryById(change->call, &dependencies, &change->step->id);
	QueryById(change->call, &branches, &change->step->id);
	QueryById(change->call, &artifacts, &change->step->id);
	QueryById(change->call, &step, &change->step->id);
}

/*
 * Put what the execution tree showed of the step into the audit entry, because
 * its row is deleted.
 */
static void
PutRemoved(JsonBuilder *detail, const StepRow *step)
{
	JsonPutInt(detail, "stepOrder", step->order);
	JsonPutInt(detail, "wave", step->wave);
	if (step->execution_order > 0)
		JsonPutInt(detail, "executionOrder", step->execution_order);
	if (step->arguments != NULL)
		JsonPutJson(detail, "inputs", StepInputs(step));
}

static void
ActRemoveStep(Change *change)
{
	PlanRow    *plan = change->plan;
	StepRow    *step = change->step;

	if (step == NULL)
		return;
	CheckRemovable(change->call, step);
	CheckHasNoPlan(change);
	CheckNotOnly(change);
	CheckNoDependents(change);
	CheckNoTarget(change);
	CheckNotMentioned(change);
	if (FaultsAny(&change->faults))
		return;
	StepDelete(change);
	ReadyListRemove(plan, step->order);
	plan->relinked = true;
	/* next_order stays valid: all later pending steps are now at the order of this step, or after it */
	ShiftSteps(change->call, plan, step->order, -1);
	plan->counts[STEP_PENDING]--;
	plan->paused -= step->was_paused;
	change->removed = true;
	PutRemoved(&change->detail, step);
}

static const KeyRule RemoveStepKeys[] = {
	{"stepId", ReadStepId, offsetof(ModifyParams, step_id), false},
	{"step", ReadText, offsetof(ModifyParams, step), false},
};

/* ---------- reorder_steps ---------- */

/* the steps of a plan, by order and by name */
typedef struct OrderedSteps
{
	int			count;
	char	  **names;			/* names[order - 1] */
	struct names_hash *ids;		/* from id, as text, to order */
	struct names_hash *by_name; /* from name to order */
	struct names_hash *by_binding;	/* from binding to order */
	int			first_pending;	/* order of the first pending step; count + 1 if there is none */
} OrderedSteps;

static OrderedSteps
ReadOrderedSteps(const Change *change)
{
	static KeptQuery read = {
		"SELECT s.id, s.name, s.binding, s.status = 'pending' FROM stepwise.step AS s"
		" WHERE s.tenant = $1 AND s.plan_id = $2 ORDER BY s.step_order",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(change->call, &read, &change->plan->id);
	OrderedSteps steps = {.count = (int) rows.count};

	steps.names = palloc(sizeof(char *) * (steps.count + 1));
	steps.ids = NamesNew(steps.count);
	steps.by_name = NamesNew(steps.count);
	steps.by_binding = NamesNew(8);
	steps.first_pending = steps.count + 1;
	for (int i = 0; i < steps.count; i++)
	{
		pg_uuid_t	id = RowUuid(&rows, i, 1);

		steps.names[i] = RowText(&rows, i, 2);
		NamesAdd(steps.ids, UuidText(&id), i + 1);
		NamesAdd(steps.by_name, steps.names[i], i + 1);
		if (!RowIsNull(&rows, i, 3))
			NamesAdd(steps.by_binding, RowText(&rows, i, 3), i + 1);
		if (RowBool(&rows, i, 4))
			steps.first_pending = Min(steps.first_pending, i + 1);
	}
	RowsFree(&rows);
	return steps;
}

/* Turn the names of steps into ids. */
static void
FindNamedSteps(Change *change)
{
	ListCell   *cell;

	foreach(cell, change->params.names)
	{
		char	   *name = lfirst(cell);
		StepRow    *step = StepReadByName(change->call, &change->plan->id, name);

		if (step != NULL)
			change->params.step_ids = lappend(change->params.step_ids, &step->id);
		else
			FaultNoStep(change, psprintf("steps[%d]", foreach_current_index(cell)), name);
	}
}

/* Check that the list has every step of the plan exactly once. */
static void
CheckCompleteList(Change *change)
{
	const char *key = Given(change, "steps") ? "steps" : "stepIds";
	OrderedSteps steps = ReadOrderedSteps(change);
	bool	   *seen = palloc0(sizeof(bool) * (steps.count + 1));
	const char **missing = palloc(sizeof(char *) * (steps.count + 1));
	int			nmissing = 0;
	ListCell   *cell;

	foreach(cell, change->params.step_ids)
	{
		const pg_uuid_t *id = lfirst(cell);
		int			order = NamesFind(steps.ids, UuidText(id));

		if (order == 0)
			StepNotFound(id);
		if (seen[order])
			FaultAdd(&change->faults, ERRCODE_INVALID_DEFINITION, psprintf("%s[%d]", key, foreach_current_index(cell)),
					 "Name each step once.", "step \"%s\" is named twice", steps.names[order - 1]);
		seen[order] = true;
	}
	for (int order = 1; order <= steps.count; order++)
		if (!seen[order])
			missing[nmissing++] = steps.names[order - 1];
	if (nmissing > 0)
		FaultAdd(&change->faults, ERRCODE_INVALID_DEFINITION, key, "Give all steps of the plan, in their new order.",
				 "the list is not complete; missing: %s", WordList(missing, nmissing));
}

/* Write the new order. The wave of a step in a sequence follows its order. */
static void
WriteOrder(const Change *change)
{
	static KeptQuery write = {
		"UPDATE stepwise.step AS s SET step_order = x.n, wave = CASE WHEN $4 THEN x.n - 1 ELSE s.wave END"
		" FROM (SELECT u.id, u.n::int AS n FROM pg_catalog.unnest($3) WITH ORDINALITY AS u (id, n)) AS x"
		" WHERE s.tenant = $1 AND s.id = x.id AND s.plan_id = $2 AND s.step_order <> x.n",
		4, {TEXTOID, UUIDOID, UUIDARRAYOID, BOOLOID}
	};
	List	   *ids = change->params.step_ids;
	Datum	   *values = palloc(sizeof(Datum) * (list_length(ids) + 1));
	Params		params = {0};
	ListCell   *cell;

	ReadyListClose(change->call, change->plan);
	foreach(cell, ids)
		values[foreach_current_index(cell)] = UUIDPGetDatum(lfirst(cell));
	ParamKey(&params, change->call, &change->plan->id);
	ParamDatum(&params, PointerGetDatum(construct_array(values, list_length(ids), UUIDOID, UUID_LEN, false, TYPALIGN_CHAR)));
	ParamBool(&params, change->plan->sequential);
	QueryRun(&write, &params);
}

/*
 * Check that the steps of a sequence mention only steps before them. A branch
 * may mention its own step too.
 */
static void
CheckMentionsOrder(Change *change, const OrderedSteps *steps)
{
	ListCell   *cell;

	if (!change->plan->sequential)
		return;
	foreach(cell, PlanMentions(change->call, change->plan))
	{
		const Mention *mention = lfirst(cell);
		int			target = NamesFind(mention->binding ? steps->by_binding : steps->by_name, mention->name);

		if (mention->order == 0 || target < mention->order || (mention->branch && target == mention->order))
			continue;
		FaultAdd(&change->faults, ERRCODE_UNRESOLVED_REFERENCE, psprintf("steps[%d].%s", mention->order - 1, mention->place),
				 psprintf("Put step \"%s\" before step \"%s\".", steps->names[target - 1], steps->names[mention->order - 1]),
				 "%s of step \"%s\" refers to step \"%s\", which would run later", mention->source,
				 steps->names[mention->order - 1], steps->names[target - 1]);
	}
}

/* Check that every skip_to that may still be taken goes forward. */
static void
CheckTargetsOrder(Change *change, const OrderedSteps *steps)
{
	static KeptQuery backwards = {
		"SELECT s.step_order, t.step_order FROM stepwise.step AS s"
		" JOIN stepwise.branching_condition AS b ON b.tenant = $1 AND b.step_id = s.id"
		" JOIN stepwise.step AS t ON t.tenant = $1 AND t.id = b.target_id"
		" WHERE s.tenant = $1 AND s.plan_id = $2 AND s.branches AND s.status NOT IN ('completed', 'skipped')"
		" AND t.step_order <= s.step_order ORDER BY s.step_order, b.position",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(change->call, &backwards, &change->plan->id);

	for (uint64 i = 0; i < rows.count; i++)
	{
		const char *name = steps->names[RowInt(&rows, i, 1) - 1];
		const char *target = steps->names[RowInt(&rows, i, 2) - 1];

		FaultAdd(&change->faults, ERRCODE_INVALID_DEFINITION, psprintf("steps[%d].branchingConditions", RowInt(&rows, i, 1) - 1),
				 psprintf("Put step \"%s\" after step \"%s\".", target, name),
				 "skip_to after step \"%s\" would go back, to step \"%s\"", name, target);
	}
	RowsFree(&rows);
}

static void
ActReorderSteps(Change *change)
{
	OrderedSteps steps;

	FindNamedSteps(change);
	if (FaultsAny(&change->faults))
		return;
	CheckCompleteList(change);
	if (FaultsAny(&change->faults))
		return;
	WriteOrder(change);
	steps = ReadOrderedSteps(change);
	CheckMentionsOrder(change, &steps);
	CheckTargetsOrder(change, &steps);
	change->plan->next_order = steps.first_pending;
	JsonArrayStart(&change->detail, "order");
	for (int i = 0; i < steps.count; i++)
		JsonPutText(&change->detail, NULL, steps.names[i]);
	JsonArrayEnd(&change->detail);
	JsonArrayStart(&change->answer, "stepIds");
	for (int i = 0; i < Min(steps.count, LIST_MAX); i++)
		JsonPutUuid(&change->answer, NULL, list_nth(change->params.step_ids, i));
	JsonArrayEnd(&change->answer);
}

static const KeyRule ReorderStepsKeys[] = {
	{"stepIds", ReadStepIds, offsetof(ModifyParams, step_ids), false},
	{"steps", ReadStepNames, offsetof(ModifyParams, names), false},
};

/* ---------- update_step_instructions ---------- */

/* Check the references in the new instructions. */
static void
CheckInstructions(Change *change)
{
	Reader		reader = {.call = change->call, .faults = &change->faults};
	Place		place = {.key = "instructions"};

	if (!ReferenceOccurs(change->params.instructions))
		return;
	PlanScopeRead(&reader, change->plan);
	PlanScopeOrder(&reader, change->plan);
	ReachCheckText(&reader, &place, change->params.instructions, change->step->order);
}

/* Cut a text for the audit log, so that entries stay small. */
static char *
Excerpt(const char *text)
{
	return pnstrdup(text, pg_mbcliplen(text, strlen(text), EXCERPT_BYTES));
}

static void
ActUpdateInstructions(Change *change)
{
	if (change->step == NULL || change->params.instructions == NULL)
		return;
	CheckInstructions(change);
	if (FaultsAny(&change->faults))
		return;
	StepInstruct(change->call, change->step, change->params.instructions);
	StepMarkDynamic(change->call, change->step);
	/* the old instructions may have been what blocked the step */
	change->step = StepRead(change->call, &change->step->id);
	GateReset(change->call, change->plan, change->step);
	StepReconsider(change->call, change->plan, change->step);
	JsonPutText(&change->detail, "instructions", Excerpt(change->params.instructions));
	if (strlen(change->params.instructions) > EXCERPT_BYTES)
		JsonPutText(&change->detail, "instructionsDigest", DigestOfText(change->params.instructions));
}

static const KeyRule UpdateInstructionsKeys[] = {
	{"stepId", ReadStepId, offsetof(ModifyParams, step_id), false},
	{"step", ReadText, offsetof(ModifyParams, step), false},
	{"instructions", ReadText, offsetof(ModifyParams, instructions), true},
};

/* ---------- fail_step ---------- */

static void
ActFailStep(Change *change)
{
	if (FaultsAny(&change->faults))
		return;
	CheckMayEnd(change->call, change->step);
	change->step->message = change->params.reason;
	change->step->given_up = true;
	StepMove(change->call, change->plan, change->step, STEP_FAILED, NULL);
	JsonPutText(&change->detail, "reason", change->params.reason);
}

static const KeyRule FailStepKeys[] = {
	{"stepId", ReadStepId, offsetof(ModifyParams, step_id), false},
	{"step", ReadText, offsetof(ModifyParams, step), false},
	{"reason", ReadText, offsetof(ModifyParams, reason), true},
};

/* ---------- update_step ---------- */

/* Copy params: with only stepId and step, or without them. */
static Jsonb *
PickParams(const Change *change, bool naming)
{
	JsonBuilder b = {0};
	int			count;
	const char **keys = JsonKeys(change->given, &count);

	JsonObjectStart(&b, NULL);
	for (int i = 0; i < count; i++)
	{
		JsonbValue	value;

		if ((strcmp(keys[i], "stepId") == 0 || strcmp(keys[i], "step") == 0) == naming && JsonGet(change->given, keys[i], &value))
			JsonPutValue(&b, keys[i], &value);
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static void
ActUpdateStep(Change *change)
{
	if (change->step != NULL)
		change->step = StepUpdate(change->call, change->plan, change->step, PickParams(change, false), &change->faults,
								  &change->detail);
}

static const KeyRule UpdateStepKeys[] = {
	{"stepId", ReadStepId, offsetof(ModifyParams, step_id), false},
	{"step", ReadText, offsetof(ModifyParams, step), false},
};

/* ---------- set_outputs ---------- */

/* Check the references in the new outputs. They may name any step. */
static void
CheckOutputs(Change *change)
{
	Reader		reader = {.call = change->call, .faults = &change->faults};
	Place		place = {.key = "outputs"};

	PlanScopeRead(&reader, change->plan);
	PlanScopeOrder(&reader, change->plan);
	ReachCheckJson(&reader, &place, change->params.outputs, 0);
}

static void
ActSetOutputs(Change *change)
{
	Changes		c = {0};

	if (change->params.outputs == NULL)
		return;
	CheckOutputs(change);
	if (FaultsAny(&change->faults))
		return;
	JsonPutText(&change->detail, "outputsDigestBefore", DigestText(JsonOf(PlanDetailOf(change->call, change->plan)->outputs)));
	JsonPutText(&change->detail, "outputsDigest", DigestText(change->params.outputs));
	SetVarlena(&c, DETAIL_COL_OUTPUTS, change->params.outputs);
	DetailUpdate(change->call, &change->plan->id, &c);
}

static const KeyRule SetOutputsKeys[] = {
	{"outputs", ReadObject, offsetof(ModifyParams, outputs), true},
};

/* ---------- modify_plan ---------- */

#define KEYS(rules)		rules, lengthof(rules)
#define ONE_STEP		{"stepId", "step"}, true

static const ActionRule Actions[] = {
	{"add_steps", KEYS(AddStepsKeys), {"insertAfterOrder", "after"}, false, false, ActAddSteps},
	{"remove_step", KEYS(RemoveStepKeys), ONE_STEP, false, ActRemoveStep},
	{"reorder_steps", KEYS(ReorderStepsKeys), {"stepIds", "steps"}, true, false, ActReorderSteps},
	{"update_step_instructions", KEYS(UpdateInstructionsKeys), ONE_STEP, false, ActUpdateInstructions},
	{"update_step", KEYS(UpdateStepKeys), ONE_STEP, true, ActUpdateStep},
	{"fail_step", KEYS(FailStepKeys), ONE_STEP, false, ActFailStep},
	{"set_outputs", KEYS(SetOutputsKeys), {NULL, NULL}, false, false, ActSetOutputs},
};

/*
 * Find the rule of an action. If there is no such action, add a fault and
 * return the rule of the one that was probably meant, so that the params can
 * be checked too; NULL if nothing is near.
 */
static const ActionRule *
FindAction(Change *change, const char *action)
{
	const char *names[lengthof(Actions)];
	const char *nearest;

	for (size_t i = 0; i < lengthof(Actions); i++)
	{
		names[i] = Actions[i].name;
		if (action != NULL && strcmp(action, names[i]) == 0)
			return &Actions[i];
	}
	FaultAdd(&change->faults, ERRCODE_INVALID_DEFINITION, "action",
			 WordHint(&change->faults, action ? action : "", names, lengthof(Actions), "actions"),
			 "\"%s\" is not an action", ShortText(action));
	nearest = NearestWord(action ? action : "", names, lengthof(Actions));
	return nearest ? &Actions[NameIndex(nearest, names, lengthof(Actions))] : NULL;
}

/* Check that one of two keys is given, and not both. */
static void
CheckEither(Change *change, const ActionRule *rule)
{
	const char *const *either = rule->either;
	bool		first = either[0] != NULL && Given(change, either[0]);
	bool		second = either[1] != NULL && Given(change, either[1]);

	if (first && second)
		FaultAdd(&change->faults, ERRCODE_INVALID_DEFINITION, either[1], psprintf("Leave out \"%s\" or \"%s\".", either[0], either[1]),
				 "stands beside \"%s\", which means the same", either[0]);
	if (rule->needed && !first && !second)
		FaultAdd(&change->faults, ERRCODE_INVALID_DEFINITION, either[0], psprintf("Add \"%s\" or \"%s\".", either[0], either[1]),
				 "is missing: %s needs it, or \"%s\"", rule->name, either[1]);
}

/* Find the step that the params name. */
static void
FindStep(Change *change)
{
	const ModifyParams *params = &change->params;

	if (params->step_id != NULL)
		change->step = StepRead(change->call, params->step_id);
	else if (params->step != NULL)
		change->step = StepReadByName(change->call, &change->plan->id, params->step);
	else
		return;
	if (change->step != NULL && UuidEqual(&change->step->plan_id, &change->plan->id))
		return;
	change->step = NULL;
	if (params->step_id == NULL)
		FaultNoStep(change, "step", params->step);
	else if (FaultsAny(&change->faults))
		FaultAdd(&change->faults, ERRCODE_STEP_NOT_FOUND, "stepId",
				 PlanHint(change->call, change->plan, "stepwise.get_plan_context(plan_id) lists the steps of the plan."),
				 "step \"%s\" not found", UuidText(params->step_id));
	else
		StepNotFound(params->step_id);
}

/* Read the params of an action, and the step that they name. */
static void
ReadParams(Change *change, const ActionRule *rule, const Jsonb *params)
{
	Reader		reader = {.call = change->call, .faults = &change->faults};
	Place		place = {.key = ""};
	JsonbValue	value;

	JsonToValue(params ? params : JsonEmptyObject(), &value);
	if (!ExpectKind(&reader, &place, &value, "object"))
		return;
	change->given = params ? params : JsonEmptyObject();
	if (rule == NULL)
		return;
	if (rule->open)
		JsonToValue(PickParams(change, true), &value);
	CheckEither(change, rule);
	ReadKeys(&reader, &place, &value, rule->keys, rule->nkeys, &change->params, rule->name);
	FindStep(change);
}

static void
AuditModified(Change *change, const char *rationale)
{
	if (change->step != NULL)
		JsonPutText(&change->detail, "name", change->step->name);
	JsonPutText(&change->detail, "rationale", rationale);
	JsonObjectEnd(&change->detail);
	AuditAppend(change->call, change->plan, change->step ? &change->step->id : NULL, "plan_modified",
				JsonFinish(&change->detail));
}

static Jsonb *
ModifiedAnswer(Change *change)
{
	JsonBuilder *b = &change->answer;

	PutPlanAnswer(b, change->plan);
	JsonPutInt(b, "stepCount", StepTotal(change->plan->counts));
	if (change->step != NULL)
	{
		JsonPutUuid(b, "stepId", &change->step->id);
		JsonPutTextIfSet(b, "stepStatus", change->removed ? NULL : StepStatusName[change->step->status]);
	}
	JsonObjectEnd(b);
	return JsonMerge(JsonFinish(b), NextCallAfter(change->call, change->plan));
}

/* Refuse a change that opens a way around a gate. */
static void
CheckDoors(Change *change)
{
	CheckDoorOfPlan(change->call, change->plan);
	if (change->step != NULL)
		CheckDoorOfChange(change->call, change->plan, change->step);
	/* without its gate, the step would need no other reviewer */
	if (change->step != NULL && change->step->review != NULL && Given(change, "review"))
		CheckSeparateReviewer(change->call, change->plan, change->step);
	if (change->params.step_ids != NIL || change->params.names != NIL)
		CheckDoorOfOrder(change->call, change->plan);
}

/* Lock the plan, do the action, and settle the plan. */
static Jsonb *
ModifyPlan(Call *call, const pg_uuid_t *plan_id, const char *action, const Jsonb *params, const char *rationale)
{
	Change		change = {.call = call};
	const ActionRule *rule;
	const char *what;
	bool		known;

	CheckTextLimit(rationale, "modification_rationale");
	change.plan = PlanLock(call, plan_id);
	PlanCheckModifiable(call, change.plan);
	rule = FindAction(&change, action);
	known = !FaultsAny(&change.faults);
	ReadParams(&change, rule, params);
	what = FaultsAny(&change.faults) ? "params" : "modification";
	/* what the params say is checked even if one of them is faulty, so that all faults come at once */
	if (!known || change.given == NULL)
		FaultsRaise(&change.faults, known ? what : "modification");
	CheckDoors(&change);
	JsonObjectStart(&change.detail, NULL);
	JsonPutText(&change.detail, "action", rule->name);
	JsonObjectStart(&change.answer, NULL);
	JsonPutText(&change.answer, "action", rule->name);
	rule->act(&change);
	FaultsRaise(&change.faults, what);
	/* an earlier search may have found nothing to do: let the next one look again */
	change.plan->workable = PlanMayHaveWork(change.plan);
	AuditModified(&change, rationale);
	PlanSettle(call, change.plan);
	return ModifiedAnswer(&change);
}

/* Change a plan that is not finished. */
PG_FUNCTION_INFO_V1(stepwise_modify_plan);
Datum
stepwise_modify_plan(PG_FUNCTION_ARGS)
{
	pg_uuid_t  *plan_id = ArgumentUuid(fcinfo, 0);
	char	   *action = ArgumentText(fcinfo, 1);
	Jsonb	   *params = ArgumentJson(fcinfo, 2);
	char	   *rationale = ArgumentText(fcinfo, 3);
	Call		call;

	CallBegin(&call);
	return CallEnd(&call, ModifyPlan(&call, plan_id, action, params, rationale));
}
