/*
 * stepdef.c
 *	  read the steps of a definition, and check them
 *
 * All steps are read, then named (scope.c), then put in order (order.c). Only
 * then is it known what each of them may refer to (reach.c).
 */
#include "define/define.h"

static const char *const StepTypes[] = {
	"search", "extract", "analyze", "critique", "synthesize", "checkpoint", "custom"
};

/* ---------- reading ---------- */

/* Read the type of a step. */
static void
ReadStepType(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	ReadWord(reader, place, value, StepTypes, lengthof(StepTypes), field);
}

/* Read the URIs of the resources; there must be at least one. */
static void
ReadResources(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	ReadTexts(reader, place, value, field);
	if (*(Jsonb **) field && JB_ROOT_COUNT(*(Jsonb **) field) == 0)
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Leave out what is not set.", "must not be empty");
}

/* the members of review; their values are checked, and the object is kept as it is written */
typedef struct ReviewKeysRead
{
	char	   *when;
	char	   *summary;
	JsonbValue *questions;
} ReviewKeysRead;

static const char *const ReviewTimes[] = {"before", "after"};

/* Read when a gate opens: before or after its step. */
static void
ReadReviewTime(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	ReadWord(reader, place, value, ReviewTimes, lengthof(ReviewTimes), field);
}

/* Read the questions of a gate; an element may be any value. */
static void
ReadQuestions(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	if (ExpectKind(reader, place, value, "array"))
		ReadLater(reader, place, value, field);
}

static const KeyRule ReviewKeys[] = {
	{"when", ReadReviewTime, offsetof(ReviewKeysRead, when), true},
	{"summary", ReadText, offsetof(ReviewKeysRead, summary), false},
	{"questions", ReadQuestions, offsetof(ReviewKeysRead, questions), false},
};

/* Read the gate of a step. */
static void
ReadReview(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	ReviewKeysRead keys = {0};

	if (!ExpectKind(reader, place, value, "object"))
		return;
	ReadKeys(reader, place, value, ReviewKeys, lengthof(ReviewKeys), &keys, "a review");
	*(Jsonb **) field = JsonFromValue(value);
}

/* a dependency as it is written */
typedef struct DependencyDraft
{
	char	   *name;
	int			required;		/* -1: not given */
	char	   *when;
} DependencyDraft;

/* Read when a dependent runs: the only word says that the other step has ended. */
static void
ReadWhen(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	static const char *const words[] = {"ended"};

	ReadWord(reader, place, value, words, lengthof(words), field);
}

static const KeyRule DependencyKeys[] = {
	{"step", ReadText, offsetof(DependencyDraft, name), true},
	{"required", ReadFlag, offsetof(DependencyDraft, required), false},
	{"when", ReadWhen, offsetof(DependencyDraft, when), false},
};

/* Read a dependency that is written as an object. */
static void
ReadDependencyObject(Reader *reader, const Place *place, JsonbValue *value, DependencyDefinition *depends)
{
	DependencyDraft draft = {.required = -1};

	ReadKeys(reader, place, value, DependencyKeys, lengthof(DependencyKeys), &draft, "a dependency");
	if (draft.when && draft.required >= 0)
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Leave out one of them.",
				"has both required and when");
	depends->name = draft.name;
	if (draft.when)
		depends->need = NEED_END;
	else
		depends->need = draft.required == 0 ? NEED_NO_FAILURE : NEED_SUCCESS;
}

/* Read one element of dependsOn: a name, or an object that has it. */
static void
ReadDependency(Reader *reader, const Place *place, JsonbValue *value, DependencyDefinition *depends)
{
	depends->index = place->index;
	depends->need = NEED_SUCCESS;
	if (value->type == jbvString)
		ReadText(reader, place, value, &depends->name);
	else if (value->type == jbvBinary && JsonContainerIsObject(value->val.binary.data))
		ReadDependencyObject(reader, place, value, depends);
	else
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION,
				"Write \"name\", {\"step\": \"name\", \"required\": false} or {\"step\": \"name\", \"when\": \"ended\"}.",
				"must be of type string or object, not %s", JsonKindName(value));
	if (depends->name)
		depends->name = ReaderKeep(reader, depends->name);
}

/*
 * Read dependsOn. A plan may have half a million dependencies. So those of a
 * step are one allocation, and names are shared.
 */
static void
ReadDependsOn(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	Place		element = {.up = place, .index = 0};
	DependencyDefinition *depends;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	item;

	/* even an empty array says that the plan is not a sequence */
	reader->depends = true;
	if (!ExpectKind(reader, place, value, "array"))
		return;
	depends = palloc_extended(sizeof(DependencyDefinition) * (JsonContainerSize(value->val.binary.data) + 1),
							  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	iterator = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&iterator, &item, true)) != WJB_DONE)
	{
		if (token != WJB_ELEM)
			continue;
		ReadDependency(reader, &element, &item, depends);
		if (depends->name)
			*(List **) field = lappend(*(List **) field, depends);
		element.index++;
		depends++;
	}
}

static const KeyRule StepKeys[] = {
	{"name", ReadName, offsetof(StepDefinition, name), false},
	{"type", ReadStepType, offsetof(StepDefinition, type), false},
	{"instructions", ReadText, offsetof(StepDefinition, instructions), false},
	{"tool", ReadTitle, offsetof(StepDefinition, tool), false},
	{"workflow", ReadTitle, offsetof(StepDefinition, workflow), false},
	{"version", ReadCount, offsetof(StepDefinition, version), false},
	{"prompt", ReadText, offsetof(StepDefinition, prompt), false},
	{"arguments", ReadObject, offsetof(StepDefinition, arguments), false},
	{"resources", ReadResources, offsetof(StepDefinition, resources), false},
	{"review", ReadReview, offsetof(StepDefinition, review), false},
	{"binding", ReadName, offsetof(StepDefinition, binding), false},
	{"dependsOn", ReadDependsOn, offsetof(StepDefinition, depends), false},
	{"condition", ReadCondition, offsetof(StepDefinition, condition), false},
	{"retryable", ReadFlag, offsetof(StepDefinition, retryable), false},
	{"maxAttempts", ReadCount, offsetof(StepDefinition, max_attempts), false},
	{"stallAfter", ReadInterval, offsetof(StepDefinition, stall_after), false},
};

/* Check which keys may stand together. */
void
CheckStepKeys(Reader *reader, const Place *place, const StepDefinition *step)
{
	if ((step->tool != NULL) + (step->workflow != NULL) + (step->prompt != NULL) > 1)
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Make each a step of its own.",
				"has more than one of tool, workflow and prompt");
	if (step->version && !step->workflow)
		FaultAt(reader, &((Place) {.up = place, .key = "version"}), ERRCODE_INVALID_DEFINITION,
				"The version is that of the nested workflow: add \"workflow\", or remove \"version\".",
				"has no workflow beside it");
	if (step->resources && (step->workflow || step->prompt))
		FaultAt(reader, &((Place) {.up = place, .key = "resources"}), ERRCODE_INVALID_DEFINITION,
				"Read resources in a step of their own, or beside a tool.",
				"cannot stand beside workflow or prompt");
	if (step->review && step->prompt)
		FaultAt(reader, &((Place) {.up = place, .key = "review"}), ERRCODE_INVALID_DEFINITION,
				"The answer to a prompt is a person's already: remove \"review\", or put it on the step that follows.",
				"cannot stand beside prompt");
}

/* Read the keys of a step, without checking them together. */
void
ReadStepKeys(Reader *reader, const Place *place, JsonbValue *value, StepDefinition *step)
{
	ReadKeys(reader, place, value, StepKeys, lengthof(StepKeys), step, "a step");
}

/* Read one step. */
static void
ReadStep(Reader *reader, const Place *place, JsonbValue *value, StepDefinition *step, int order)
{
	step->order = order;
	step->retryable = -1;
	step->type = "custom";
	ReadStepKeys(reader, place, value, step);
	CheckStepKeys(reader, place, step);
}

/*
 * Read an array of steps. Their orders begin after "after"; "others" is the
 * number of other steps of the plan.
 */
static StepDefinition *
ReadStepArray(Reader *reader, const Place *place, JsonbValue *value, int after, int others, int *count)
{
	Place		element = {.up = place};
	StepDefinition *steps;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	item;

	*count = 0;
	if (!ExpectKind(reader, place, value, "array"))
		return NULL;
	if (JsonContainerSize(value->val.binary.data) == 0)
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Add a step.", "must have at least one step");
	if ((int) JsonContainerSize(value->val.binary.data) + others > MaxSteps)
	{
		FaultAt(reader, place, ERRCODE_VALUE_TOO_LARGE,
				"Put parts of the work into workflows of their own, and nest them.",
				"a plan of %d steps is too large: at most %d (stepwise.max_steps)",
				(int) JsonContainerSize(value->val.binary.data) + others, MaxSteps);
		return NULL;
	}

	steps = palloc_extended(sizeof(StepDefinition) * (JsonContainerSize(value->val.binary.data) + 1),
							MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	iterator = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&iterator, &item, true)) != WJB_DONE)
	{
		if (token != WJB_ELEM)
			continue;
		element.index = *count;
		ReadStep(reader, &element, &item, &steps[*count], after + *count + 1);
		(*count)++;
	}
	return steps;
}

/* Read the steps, and make the scope in which they are checked later. */
void
ReadSteps(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	int			count;
	StepDefinition *steps = ReadStepArray(reader, place, value, 0, 0, &count);

	reader->scope = ScopeOfSteps(steps, count, NULL, 0);
	*(StepDefinition **) field = steps;
}

/* ---------- checking ---------- */

/* Check what a step refers to. */
void
CheckStepReferences(Reader *reader, const Place *place, const StepDefinition *step, int number)
{
	ReachCheckText(reader, &((Place) {.up = place, .key = "instructions"}), step->instructions, number);
	ReachCheckText(reader, &((Place) {.up = place, .key = "prompt"}), step->prompt, number);
	ReachCheckJson(reader, &((Place) {.up = place, .key = "arguments"}), step->arguments, number);
	ReachCheckJson(reader, &((Place) {.up = place, .key = "resources"}), step->resources, number);
	ReachCheckJson(reader, &((Place) {.up = place, .key = "review"}), step->review, number);
	ReachCheckCondition(reader, &((Place) {.up = place, .key = "condition"}), step->condition, number, false);
	if (step->workflow)
		WorkflowCheckCall(reader, &((Place) {.up = place, .key = "workflow"}), step->workflow, step->version);
}

/* Name the steps of the scope, put them in order, and check them. */
void
CheckSteps(Reader *reader, const Place *place)
{
	Scope	   *scope = reader->scope;

	ScopeNameSteps(reader, place);
	ReachHintRoots(reader);
	OrderSteps(reader, place);
	for (int i = 0; i < scope->nsteps; i++)
		CheckStepReferences(reader, &((Place) {.up = place, .index = i}), &scope->steps[i], scope->offset + i + 1);
}

/* Read and check steps that are added to those of another scope. */
Scope *
ReadAddedSteps(Reader *outer, const Place *place, JsonbValue *value, Scope *around, int after)
{
	Reader		reader = *outer;
	int			others = around->offset + around->nsteps;
	int			count;
	StepDefinition *steps;

	reader.depends = false;
	reader.unknown_roots = NIL;
	steps = ReadStepArray(&reader, place, value, after, others, &count);
	reader.scope = ScopeOfSteps(steps, count, around, after);
	reader.scope->inputs = around->inputs;
	CheckSteps(&reader, place);
	return reader.scope;
}
