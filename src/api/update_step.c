/*
 * update_step.c
 *	  change the definition of a step that is pending or has failed
 *
 * The given keys are read by the grammar of definitions and take the place of
 * what the step has; null removes a key. Only what is given is written. The
 * keys together must be ones that a definition could have, and every reference
 * in the plan that was good before must be good afterwards. So a step that is
 * referred to keeps its name and its binding.
 *
 * Faults are collected. If some are found after the row was written, the error
 * that the caller raises rolls it back.
 *
 * Locks: the caller holds the root of the tree and the plan.
 */
#include "api/api.h"

#include "utils/array.h"

#define VALUE_BYTES		2000	/* a larger value appears in the audit log as its digest */

/* the columns of each key of a step; dependsOn has a table of its own */
static const struct
{
	const char *key;
	const char *columns[4];		/* ends with NULL */
}			StepColumns[] = {
	{"name", {"name"}},
	{"type", {"type"}},
	{"instructions", {"instructions"}},
	{"tool", {"tool"}},
	{"workflow", {"workflow", "version"}},
	{"version", {"version"}},
	{"prompt", {"prompt"}},
	{"arguments", {"arguments"}},
	{"resources", {"resources"}},
	{"binding", {"binding"}},
	{"dependsOn", {NULL}},
	{"condition", {"condition", "condition_path", "condition_operands"}},
	{"retryable", {"retryable"}},
	{"maxAttempts", {"max_attempts"}},
	{"stallAfter", {"stall_after"}},
	{"review", {"review"}},
};

/* an update in progress */
typedef struct StepChange
{
	Call	   *call;
	PlanRow    *plan;
	StepRow    *step;
	const Jsonb *keys;			/* as given */
	Faults	   *faults;
	Reader		before;			/* its scope has the steps as they are */
	Reader		after;			/* its scope has the steps as they will be */
	StepDefinition given;		/* what the keys say; other members are empty */
	Jsonb	   *old_row;
} StepChange;

static const Place Root = {.key = ""};

/* ---------- references of a step ---------- */

/* Does a reference occur in the JSON? */
static bool
OccursIn(struct varlena *json)
{
	return json != NULL && ReferenceOccurs(JsonToText(JsonOf(json)));
}

/* Does a reference occur in the text? */
static bool
OccursInText(struct varlena *text)
{
	return text != NULL && ReferenceOccurs(TextOf(text));
}

/* Write whether a step has references, after its texts or arguments were changed. */
void
StepMarkDynamic(Call *call, StepRow *step)
{
	static KeptQuery write = {
		"UPDATE stepwise.step SET dynamic = $3 WHERE tenant = $1 AND id = $2",
		3, {TEXTOID, UUIDOID, BOOLOID}
	};
	Params		params = {0};
	bool		dynamic = OccursInText(step->instructions) || OccursInText(step->prompt) || OccursIn(step->arguments) ||
		OccursIn(step->resources) || OccursIn(step->review);

	if (dynamic == step->dynamic)
		return;
	step->dynamic = dynamic;
	ParamKey(&params, call, &step->id);
	ParamBool(&params, dynamic);
	QueryRun(&write, &params);
}

/* ---------- reading ---------- */

/* Is the key given, be it null? */
static bool
Given(const StepChange *u, const char *key)
{
	JsonbValue	value;

	return JsonGet(u->keys, key, &value);
}

/* May the key be removed by null? A step always has a name. */
static bool
IsRemovable(const char *key)
{
	for (size_t i = 0; i < lengthof(StepColumns); i++)
		if (strcmp(StepColumns[i].key, key) == 0)
			return strcmp(key, "name") != 0;
	return false;
}

/* Read the keys that are not null. */
static void
ReadGiven(StepChange *u)
{
	JsonBuilder b = {0};
	JsonbValue	value;
	int			count;
	const char **keys = JsonKeys(u->keys, &count);

	JsonObjectStart(&b, NULL);
	for (int i = 0; i < count; i++)
		if (JsonGet(u->keys, keys[i], &value) && !(value.type == jbvNull && IsRemovable(keys[i])))
			JsonPutValue(&b, keys[i], &value);
	JsonObjectEnd(&b);
	JsonToValue(JsonFinish(&b), &value);
	u->given.retryable = -1;
	ReadStepKeys(&u->after, &Root, &value, &u->given);
}

/* Merge the given keys with those members of the step that are checked together. */
static StepDefinition
Merge(const StepChange *u)
{
	StepDefinition merged = u->given;
	const StepRow *step = u->step;

	if (!Given(u, "name") || merged.name == NULL)
		merged.name = step->name;
	if (!Given(u, "binding"))
		merged.binding = step->binding;
	if (!Given(u, "tool"))
		merged.tool = step->tool;
	if (!Given(u, "workflow"))
		merged.workflow = step->workflow;
	/* a version is that of one workflow, so another workflow begins without */
	if (!Given(u, "version") && !Given(u, "workflow"))
		merged.version = step->version;
	if (!Given(u, "prompt"))
		merged.prompt = TextOf(step->prompt);
	if (!Given(u, "resources"))
		merged.resources = JsonOf(step->resources);
	if (!Given(u, "review"))
		merged.review = JsonOf(step->review);
	return merged;
}

/* ---------- checks ---------- */

static void
CheckUpdatable(Call *call, const StepRow *step)
{
	if (step->status != STEP_PENDING && step->status != STEP_FAILED)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" is %s and cannot be updated", step->name, StepStatusName[step->status]),
				 errdetail("Only a pending or a failed step can be updated."),
				 errhint("%s", StepHint(call, step, psprintf("In any state the instructions can change: stepwise.modify_plan(plan_id, 'update_step_instructions', '{\"step\": \"%s\", \"instructions\": \"Do this\"}').",
												   step->name)))));
}

static void
CheckSomething(StepChange *u)
{
	int			count;

	JsonKeys(u->keys, &count);
	if (count == 0)
		FaultAdd(u->faults, ERRCODE_INVALID_DEFINITION, "", "Add the keys of the step that are to change, for example \"arguments\".",
				 "there is nothing to update");
}

/* Refuse a new name where the old one is stored elsewhere: in a pause reason, or in the path of a nested plan. */
static void
CheckRename(StepChange *u, const char *name)
{
	pg_uuid_t	nested_id;

	if (strcmp(name, u->step->name) == 0)
		return;
	if (u->step->status == STEP_FAILED || NestedPlanId(u->call, &u->step->id, &nested_id))
		FaultAdd(u->faults, ERRCODE_INVALID_DEFINITION, "name", "Leave out \"name\".",
				 "step \"%s\" has run, and keeps its name", u->step->name);
}

/* In a sequence there are no dependencies. Without one the plan would not be a sequence any more. */
static void
CheckDependsOn(StepChange *u)
{
	JsonbValue	value;

	if (u->plan->sequential && JsonGet(u->keys, "dependsOn", &value) && value.type != jbvNull)
		FaultAdd(u->faults, ERRCODE_INVALID_DEFINITION, "dependsOn", "Leave dependsOn out; reorder_steps changes the order.",
				 "the steps of plan \"%s\" go in order", u->plan->name);
}

/* Put the changed step into the new scope, and check it there. */
static void
CheckChanged(StepChange *u)
{
	StepDefinition merged = Merge(u);
	StepDefinition checked = u->given;
	StepDefinition *place = &u->after.scope->steps[u->step->order - 1];

	CheckRename(u, merged.name);
	CheckDependsOn(u);
	place->name = merged.name;
	place->binding = merged.binding;
	place->workflow = merged.workflow;
	if (Given(u, "dependsOn") && !u->plan->sequential)
		place->depends = u->given.depends;
	PlanScopeOrder(&u->after, u->plan);
	CheckStepKeys(&u->after, &Root, &merged);
	/* references of keys that are not given stay as they are */
	checked.workflow = Given(u, "workflow") || Given(u, "version") ? merged.workflow : NULL;
	checked.version = merged.version;
	CheckStepReferences(&u->after, &Root, &checked, u->step->order);
}

/* ---------- writing ---------- */

/* Read the row of the step as JSON. */
static Jsonb *
ReadRow(const StepChange *u)
{
	static KeptQuery read = {
		"SELECT pg_catalog.to_jsonb(s) FROM stepwise.step AS s WHERE s.tenant = $1 AND s.id = $2",
		2, {TEXTOID, UUIDOID}
	};

	return QueryJsonById(u->call, &read, &u->step->id);
}

/* Put the columns that the keys of a step set. */
static void
PutDefinition(JsonBuilder *b, const StepDefinition *step)
{
	if (step->retryable >= 0)
		JsonPutBool(b, "retryable", step->retryable == 1);
	JsonPutPositive(b, "max_attempts", step->max_attempts);
	PutInterval(b, "stall_after", step->stall_after);
	JsonPutText(b, "name", step->name);
	JsonPutText(b, "type", step->type ? step->type : "custom");
	JsonPutText(b, "tool", step->tool);
	JsonPutText(b, "workflow", step->workflow);
	JsonPutPositive(b, "version", step->version);
	JsonPutText(b, "binding", step->binding);
	JsonPutText(b, "prompt", step->prompt);
	JsonPutText(b, "instructions", step->instructions);
	JsonPutJsonIfSet(b, "arguments", step->arguments);
	JsonPutJsonIfSet(b, "resources", step->resources);
	JsonPutJsonIfSet(b, "review", step->review);
	if (step->condition != NULL)
		PutCondition(b, step->condition, "condition", "condition_path", "condition_operands");
}

/* Put one column of the row that the given keys make; null if they leave it empty. */
static void
PutColumn(JsonBuilder *b, const Jsonb *row, const char *column)
{
	JsonbValue	value;

	if (JsonGet(row, column, &value))
		JsonPutValue(b, column, &value);
	else
		JsonPutNull(b, column);
}

/* Collect the columns of the given keys. */
static Jsonb *
GivenColumns(StepChange *u)
{
	JsonBuilder whole = {0};
	JsonBuilder b = {0};
	Jsonb	   *row;

	JsonObjectStart(&whole, NULL);
	PutDefinition(&whole, &u->given);
	JsonObjectEnd(&whole);
	row = JsonFinish(&whole);
	JsonObjectStart(&b, NULL);
	for (size_t i = 0; i < lengthof(StepColumns); i++)
		for (int c = 0; Given(u, StepColumns[i].key) && StepColumns[i].columns[c]; c++)
			PutColumn(&b, row, StepColumns[i].columns[c]);
	/* the arguments of an earlier attempt */
	if (Given(u, "arguments"))
		JsonPutNull(&b, "inputs");
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Write the columns of the given keys, and whether the step has references. */
static void
WriteColumns(StepChange *u)
{
	static KeptQuery write = {
		"UPDATE stepwise.step AS s SET (name, type, instructions, tool, workflow, version, prompt, arguments, inputs, resources,"
		" binding, condition, condition_path, condition_operands, retryable, max_attempts, stall_after, review)"
		" = (SELECT x.name, x.type, x.instructions, x.tool, x.workflow, x.version, x.prompt, x.arguments, x.inputs, x.resources,"
		" x.binding, x.condition, x.condition_path, x.condition_operands, x.retryable, x.max_attempts, x.stall_after, x.review"
		" FROM pg_catalog.jsonb_populate_record(s, $3) AS x) WHERE s.tenant = $1 AND s.id = $2",
		3, {TEXTOID, UUIDOID, JSONBOID}
	};
	Params		params = {0};

	ParamKey(&params, u->call, &u->step->id);
	ParamDatum(&params, JsonbPGetDatum(GivenColumns(u)));
	QueryRun(&write, &params);
	u->step = StepMustRead(u->call, &u->step->id);
	StepMarkDynamic(u->call, u->step);
}

/* Write how many dependencies are not settled. */
static void
WriteBlockers(StepChange *u, int blockers)
{
	static KeptQuery write = {
		"UPDATE stepwise.step SET blockers = $3, ready_mark = CASE WHEN status = 'pending' AND $3 = 0 THEN true END"
		" WHERE tenant = $1 AND id = $2",
		3, {TEXTOID, UUIDOID, INT4OID}
	};
	Params		params = {0};

	ParamKey(&params, u->call, &u->step->id);
	ParamInt(&params, blockers);
	QueryRun(&write, &params);
	ReadyListRemove(u->plan, u->step->order);
	u->plan->ready_marks = true;
}

/* Write the waves of the new scope. The waves of all steps that depend on the changed one may differ. */
static void
WriteWaves(StepChange *u)
{
	static KeptQuery write = {
		"UPDATE stepwise.step AS s SET wave = x.wave"
		" FROM (SELECT w.wave, w.n FROM pg_catalog.unnest($3) WITH ORDINALITY AS w (wave, n)) AS x"
		" WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order = x.n AND s.wave <> x.wave",
		3, {TEXTOID, UUIDOID, INT4ARRAYOID}
	};
	const Scope *scope = u->after.scope;
	Datum	   *waves = palloc(sizeof(Datum) * (scope->nsteps + 1));
	Params		params = {0};

	for (int i = 0; i < scope->nsteps; i++)
		waves[i] = Int32GetDatum(scope->steps[i].wave);
	ParamKey(&params, u->call, &u->plan->id);
	ParamDatum(&params, PointerGetDatum(construct_array(waves, scope->nsteps, INT4OID, sizeof(int32), true, TYPALIGN_INT)));
	QueryRun(&write, &params);
}

/* Replace the dependencies of the step. A parent that does not let it run skips it later (ParentsLook). */
static void
WriteDependencies(StepChange *u)
{
	static KeptQuery delete = {
		"DELETE FROM stepwise.dependency WHERE tenant = $1 AND step_id = $2",
		2, {TEXTOID, UUIDOID}
	};
	Batch	   *links;
	int			blockers = 0;
	ListCell   *cell;

	QueryById(u->call, &delete, &u->step->id);
	u->plan->relinked = true;
	links = LinksBegin(u->call, u->plan);
	foreach(cell, u->after.scope->steps[u->step->order - 1].depends)
	{
		const DependencyDefinition *dependency = lfirst(cell);
		StepRow    *parent = StepReadByOrder(u->call, &u->plan->id, dependency->parent);

		LinksAdd(links, &u->step->id, &parent->id, dependency->need);
		if (DependentVerdictOf(u->plan, parent->status, parent->outcome, dependency->need) == DEPENDENT_WAITS)
			blockers++;
	}
	BatchEnd(links);
	WriteBlockers(u, blockers);
	WriteWaves(u);
}

/* ---------- references elsewhere ---------- */

/* Check a mention in the new scope, unless it was not good before: then it was accepted for another reason. */
static void
CheckMention(StepChange *u, const Mention *mention)
{
	Place		steps = {.key = "steps"};
	Place		element = {.up = &steps, .index = mention->order - 1};
	Place		place = {.up = mention->order ? &element : NULL, .key = mention->place};
	const Scope *scope = u->before.scope;
	int			target = mention->binding ? ScopeFindBinding(scope, mention->name) : ScopeFindStep(scope, mention->name);
	int			from = mention->branch && target == mention->order ? 0 : mention->order;
	char	   *text = ReferenceOccurs(mention->source) ? mention->source : psprintf("${steps.%s.status}", mention->name);
	Faults		old = {0};

	u->before.faults = &old;
	ReachCheckText(&u->before, &place, text, from);
	if (!FaultsAny(&old))
		ReachCheckText(&u->after, &place, text, from);
}

/* Check what the plan mentions, if that may have lost its meaning. */
static void
CheckMentions(StepChange *u)
{
	ListCell   *cell;

	if (!Given(u, "name") && !Given(u, "binding") && !Given(u, "workflow") && !Given(u, "dependsOn"))
		return;
	foreach(cell, PlanMentions(u->call, u->plan))
	{
		const Mention *mention = lfirst(cell);

		/* new references of the step have been checked */
		if (mention->order != u->step->order || mention->branch || !Given(u, mention->place))
			CheckMention(u, mention);
	}
}

/* ---------- the audit entry ---------- */

/* Put a value, or the digest of a large one. */
static void
PutBounded(JsonBuilder *b, const char *key, Jsonb *value)
{
	int			bytes = strlen(JsonToText(value));

	if (bytes <= VALUE_BYTES)
	{
		JsonPutJson(b, key, value);
		return;
	}
	JsonObjectStart(b, key);
	JsonPutInt(b, "bytes", bytes);
	JsonPutText(b, "digest", DigestText(value));
	JsonObjectEnd(b);
}

/* List the names on which a step of a scope depends. */
static Jsonb *
DependencyNames(const StepChange *u, const Scope *scope)
{
	JsonBuilder b = {0};
	ListCell   *cell;

	JsonArrayStart(&b, NULL);
	foreach(cell, scope->steps[u->step->order - 1].depends)
		JsonPutText(&b, NULL, ((const DependencyDefinition *) lfirst(cell))->name);
	JsonArrayEnd(&b);
	return JsonFinish(&b);
}

/* Put what each given key was, and what it is now. */
static void
PutChanges(const StepChange *u, JsonBuilder *detail)
{
	Jsonb	   *new_row = ReadRow(u);

	JsonObjectStart(detail, "changes");
	for (size_t i = 0; i < lengthof(StepColumns); i++)
	{
		const char *column = StepColumns[i].columns[0];

		if (!Given(u, StepColumns[i].key))
			continue;
		JsonObjectStart(detail, StepColumns[i].key);
		PutBounded(detail, "from", column ? JsonGetJson(u->old_row, column) : DependencyNames(u, u->before.scope));
		PutBounded(detail, "to", column ? JsonGetJson(new_row, column) : DependencyNames(u, u->after.scope));
		JsonObjectEnd(detail);
	}
	JsonObjectEnd(detail);
}

/*
 * Change the definition of a step. Returns the step as it is then. Faults are
 * added, and the caller raises them.
 */
StepRow *
StepUpdate(Call *call, PlanRow *plan, StepRow *step, const Jsonb *keys, Faults *faults, JsonBuilder *detail)
{
	Faults		none = {0};
	StepChange		u = {
		.call = call, .plan = plan, .step = step, .keys = keys, .faults = faults,
		.before = {.call = call, .faults = &none},
		.after = {.call = call, .faults = faults, .callers = PlanCallers(call, plan)}
	};

	CheckUpdatable(call, step);
	CheckSomething(&u);
	PlanScopeRead(&u.before, plan);
	PlanScopeOrder(&u.before, plan);
	PlanScopeRead(&u.after, plan);
	ReadGiven(&u);
	CheckChanged(&u);
	if (FaultsAny(faults))
		return step;
	u.old_row = ReadRow(&u);
	WriteColumns(&u);
	if (Given(&u, "dependsOn") && !plan->sequential)
		WriteDependencies(&u);
	CheckMentions(&u);
	PutChanges(&u, detail);
	plan->workable = true;
	if (Given(&u, "dependsOn") && u.step->status == STEP_PENDING)
		ParentsLook(call, plan, StepMustRead(call, &step->id));
	u.step = StepMustRead(call, &step->id);
	GateReset(call, plan, u.step);
	StepMarkHolds(call, plan, u.step);
	StepReconsider(call, plan, u.step);
	/* the reason may be the same as before, but not the message */
	if (u.step->status == STEP_PENDING && u.step->pause_reason != NULL)
		StepSave(call, u.step);
	return u.step;
}
