/*
 * define.c
 *	  accept a definition: read its grammar, and have it checked as a whole
 *
 * An object is read by a table of its keys: each says how its value is read
 * and into which field it goes, so that a new key is a new line. Reading goes
 * on after a fault; a field whose value is faulty stays as if not given, except
 * names, so that what refers to them is not reported too.
 *
 * Order of work: all steps are read, then named (scope.c), then put in order
 * (order.c); only then is it known what each may refer to.
 *
 * Nothing is raised here: faults are collected for FaultsRaise. Everything is
 * in the current memory context, and lives as long as the definition's JSON.
 */
#include "api/api.h"

#include "mb/pg_wchar.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

#define STALL_MAX_YEARS		100 /* so that no time leaves the range of timestamps */

static const char *const StepTypes[] = {
	"search", "extract", "analyze", "critique", "synthesize", "checkpoint", "custom"
};

/* ---------- values ---------- */

/* Check the kind of a value, as JsonKindName names it. */
bool
ExpectKind(Reader *reader, const Path *path, const JsonbValue *value, const char *kind)
{
	const char *found = JsonKindName(value);

	if (strcmp(found, kind) == 0)
		return true;
	FaultAt(reader, path, ERRCODE_INVALID_DEFINITION,
			value->type == jbvNull ? "Leave out what is not set." : NULL,
			"must be of type %s, not %s", kind, found);
	return false;
}

/* Read any text into a char *. */
void
ReadNote(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	if (!ExpectKind(reader, path, value, "string"))
		return;
	if (value->val.string.len > MaxResultBytes)
		FaultAt(reader, path, ERRCODE_VALUE_TOO_LARGE, NULL,
				"is too large: %d bytes, of at most %d (stepwise.max_result_bytes)",
				value->val.string.len, MaxResultBytes);
	else
		*(char **) field = JsonValueText(value);
}

/* Read a text that says something. */
void
ReadText(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	char	   *text = NULL;

	ReadNote(reader, path, value, &text);
	if (text && TextIsBlank(text))
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION, "Leave out what is not set.", "must not be empty");
	else if (text)
		*(char **) field = text;
}

/* Read the name of a workflow, plan or tool: one line of text. */
static void
ReadTitle(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	char	   *title = NULL;

	ReadText(reader, path, value, &title);
	if (title == NULL)
		return;
	*(char **) field = title;
	if (pg_mbstrlen(title) > TITLE_MAX_CHARS)
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION, NULL,
				"must have at most %d characters", TITLE_MAX_CHARS);
	for (const char *c = title; *c; c++)
	{
		if ((unsigned char) *c >= ' ' && *c != 0x7f)
			continue;
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION, NULL, "must not contain control characters");
		break;
	}
	if (title[0] == ' ' || title[strlen(title) - 1] == ' ')
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION, NULL, "must not begin or end with a space");
}

/* Read a name to which references point: of a step, or a binding. */
static void
ReadName(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	char	   *name = NULL;

	ReadText(reader, path, value, &name);
	if (name == NULL)
		return;
	*(char **) field = name;
	if (!ReferenceNameIsValid(name))
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION,
				"A name begins with a letter or \"_\", goes on with letters, digits, \"_\" or \"-\","
				" and has at most 63 characters.",
				"\"%s\" cannot be a name", ShortText(name));
	else if (strcmp(name, "__internal__") == 0)
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION, "Choose another name.", "\"%s\" is reserved", name);
}

/* Read one of several words. */
void
ReadWord(Reader *reader, const Path *path, JsonbValue *value, const char *const *words, int count, char **field)
{
	char	   *word;

	if (!ExpectKind(reader, path, value, "string"))
		return;
	word = JsonValueText(value);
	if (NameIndex(word, words, count) >= 0)
		*field = word;
	else
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION,
				WordHint(reader->faults, word, words, count, "values"),
				"\"%s\" is not one of %s", ShortText(word), WordList(words, count));
}

static void
ReadStepType(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	ReadWord(reader, path, value, StepTypes, lengthof(StepTypes), field);
}

static void
ReadOnFailure(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	char	   *word = NULL;

	ReadWord(reader, path, value, OnFailureName, ON_FAILURES, &word);
	if (word)
		*(OnFailure *) field = NameIndex(word, OnFailureName, ON_FAILURES);
}

static void
ReadBool(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	if (ExpectKind(reader, path, value, "boolean"))
		*(bool *) field = value->val.boolean;
}

/* Read true or false into an int, which can also say: not given. */
void
ReadFlag(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	if (ExpectKind(reader, path, value, "boolean"))
		*(int *) field = value->val.boolean;
}

/* Read a whole number from 1 on. */
void
ReadCount(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	Datum		number;

	if (!ExpectKind(reader, path, value, "number"))
		return;
	number = NumericGetDatum(value->val.numeric);
	if (DatumGetInt32(DirectFunctionCall2(numeric_cmp, number, NumericGetDatum(int64_to_numeric(1)))) < 0 ||
		DatumGetInt32(DirectFunctionCall2(numeric_cmp, number, NumericGetDatum(int64_to_numeric(PG_INT32_MAX)))) > 0 ||
		!DatumGetBool(DirectFunctionCall2(numeric_eq, number,
										  DirectFunctionCall2(numeric_trunc, number, Int32GetDatum(0)))))
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION, NULL, "must be a whole number from 1 on");
	else
		*(int *) field = DatumGetInt32(DirectFunctionCall1(numeric_int4, number));
}

static void
ReadInterval(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	Interval	none = {0};
	Interval	most = {.month = STALL_MAX_YEARS * MONTHS_PER_YEAR};
	char	   *text = NULL;
	Datum		interval;

	ReadText(reader, path, value, &text);
	if (text == NULL)
		return;
	if (!InputSafe(interval_in, text, &interval) ||
		!DatumGetBool(DirectFunctionCall2(interval_gt, interval, IntervalPGetDatum(&none))) ||
		!DatumGetBool(DirectFunctionCall2(interval_le, interval, IntervalPGetDatum(&most))))
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION,
				"Write it as PostgreSQL does, for example \"10 minutes\".",
				"\"%s\" is not an interval between 0 and %d years",
				ShortText(text), STALL_MAX_YEARS);
	else
		*(Interval **) field = DatumGetIntervalP(interval);
}

static void
ReadJsonOfKind(Reader *reader, const Path *path, JsonbValue *value, const char *kind, Jsonb **field)
{
	Jsonb	   *json;
	char	   *excess;

	if (!ExpectKind(reader, path, value, kind))
		return;
	json = JsonFromValue(value);
	excess = JsonExcess(json);
	if (excess)
		FaultAt(reader, path, ERRCODE_VALUE_TOO_LARGE, NULL, "%s", excess);
	else
		*field = json;
}

static void
ReadObject(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	ReadJsonOfKind(reader, path, value, "object", field);
}

/* Read an array of texts. */
void
ReadTexts(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	Jsonb	   *texts = NULL;
	Path		element = {.up = path};
	char	   *ignored;

	ReadJsonOfKind(reader, path, value, "array", &texts);
	if (texts == NULL)
		return;
	*(Jsonb **) field = texts;
	for (uint32 i = 0; i < JB_ROOT_COUNT(texts); i++)
	{
		JsonbValue	text;

		JsonGetIndex(texts, i, &text);
		element.index = i;
		ReadText(reader, &element, &text, &ignored);
	}
}

static void
ReadResources(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	ReadTexts(reader, path, value, field);
	if (*(Jsonb **) field && JB_ROOT_COUNT(*(Jsonb **) field) == 0)
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION, "Leave out what is not set.", "must not be empty");
}

/* Compile a condition of a step, or of a branch. */
static void
ReadExpression(Reader *reader, const Path *path, JsonbValue *value, bool branching, Condition **field)
{
	ParseFault	fault = {0};
	char	   *source = NULL;

	ReadText(reader, path, value, &source);
	if (source == NULL)
		return;
	*field = ConditionCompile(source, branching, &fault);
	if (fault.message)
	{
		*field = NULL;
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION, fault.hint,
				"%s at column %d", fault.message, fault.column);
	}
}

static void
ReadCondition(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	ReadExpression(reader, path, value, false, field);
}

void
ReadBranchCondition(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	ReadExpression(reader, path, value, true, field);
}

/* ---------- objects ---------- */

static void
RefuseKey(Reader *reader, const Path *path, const KeyRule *rules, int count, const char *what)
{
	const char **keys = palloc(sizeof(char *) * (count + 1));

	for (int i = 0; i < count; i++)
		keys[i] = rules[i].key;
	FaultAt(reader, path, ERRCODE_INVALID_DEFINITION,
			count ? WordHint(reader->faults, path->key, keys, count, "keys") : "Leave it out.",
			"%s has no key \"%s\"", what, ShortText(path->key));
	pfree(keys);
}

/*
 * Read an object by the table of its keys into the target. "what" is the
 * object in words, for messages.
 */
void
ReadKeys(Reader *reader, const Path *path, JsonbValue *value, const KeyRule *rules, int count,
		 void *target, const char *what)
{
	Path		member = {.up = path};
	uint32		seen = 0;
	int			rule = 0;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	item;

	if (!ExpectKind(reader, path, value, "object"))
		return;
	iterator = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&iterator, &item, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
		{
			member.key = JsonValueText(&item);
			for (rule = 0; rule < count && strcmp(rules[rule].key, member.key) != 0; rule++)
				;
		}
		else if (token == WJB_VALUE && rule == count)
			RefuseKey(reader, &member, rules, count, what);
		else if (token == WJB_VALUE)
		{
			seen |= 1U << rule;
			rules[rule].read(reader, &member, &item, (char *) target + rules[rule].offset);
		}
		/* a path is spelled when there is a fault: nobody keeps its links */
		if (token == WJB_VALUE)
			pfree(unconstify(char *, member.key));
	}

	for (rule = 0; rule < count; rule++)
	{
		member.key = rules[rule].key;
		if (rules[rule].required && !(seen & (1U << rule)))
			FaultAt(reader, &member, ERRCODE_INVALID_DEFINITION,
					psprintf("Add \"%s\".", member.key), "is missing: %s needs it", what);
	}
}

/* ---------- steps ---------- */

static const KeyRule DependencyKeys[] = {
	{"step", ReadText, offsetof(DependencyDefinition, name), true},
	{"required", ReadBool, offsetof(DependencyDefinition, required), false},
};

/* Keep a name that comes again and again only once. */
char *
ReaderKeep(Reader *reader, char *name)
{
	char	   *kept;

	if (reader->dependencies == NULL)
		reader->dependencies = NamesNew(8);
	kept = NamesKeep(reader->dependencies, name);
	if (kept != name)
		pfree(name);
	return kept;
}

/* Read one element of dependsOn: a name, or an object that has it. */
static void
ReadDependency(Reader *reader, const Path *path, JsonbValue *value, DependencyDefinition *depends)
{
	depends->index = path->index;
	depends->required = true;
	if (value->type == jbvString)
		ReadText(reader, path, value, &depends->name);
	else if (value->type == jbvBinary && JsonContainerIsObject(value->val.binary.data))
		ReadKeys(reader, path, value, DependencyKeys, lengthof(DependencyKeys), depends, "a dependency");
	else
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION,
				"Write \"name\", or {\"step\": \"name\", \"required\": false}.",
				"must be of type string or object, not %s", JsonKindName(value));
	if (depends->name)
		depends->name = ReaderKeep(reader, depends->name);
}

/*
 * Read dependsOn. There may be half a million of them in a plan: one
 * allocation for those of a step, and their names are shared.
 */
static void
ReadDependsOn(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	Path		element = {.up = path,.index = 0};
	DependencyDefinition *depends;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	item;

	/* also an empty array says that the plan is not a sequence */
	reader->depends = true;
	if (!ExpectKind(reader, path, value, "array"))
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
	{"binding", ReadName, offsetof(StepDefinition, binding), false},
	{"dependsOn", ReadDependsOn, offsetof(StepDefinition, depends), false},
	{"condition", ReadCondition, offsetof(StepDefinition, condition), false},
	{"retryable", ReadFlag, offsetof(StepDefinition, retryable), false},
	{"maxAttempts", ReadCount, offsetof(StepDefinition, max_attempts), false},
	{"stallAfter", ReadInterval, offsetof(StepDefinition, stall_after), false},
};

/* Check which keys stand together. */
static void
CheckStepKeys(Reader *reader, const Path *path, const StepDefinition *step)
{
	if ((step->tool != NULL) + (step->workflow != NULL) + (step->prompt != NULL) > 1)
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION, "Make each a step of its own.",
				"has more than one of tool, workflow and prompt");
	if (step->version && !step->workflow)
		FaultAt(reader, &((Path) {.up = path,.key = "version"}), ERRCODE_INVALID_DEFINITION,
				"The version is that of the nested workflow: add \"workflow\", or remove \"version\".",
				"has no workflow beside it");
	if (step->resources && (step->workflow || step->prompt))
		FaultAt(reader, &((Path) {.up = path,.key = "resources"}), ERRCODE_INVALID_DEFINITION,
				"Read resources in a step of their own, or beside a tool.",
				"cannot stand beside workflow or prompt");
}

static void
ReadStep(Reader *reader, const Path *path, JsonbValue *value, StepDefinition *step, int order)
{
	step->order = order;
	step->retryable = -1;
	step->type = "custom";
	ReadKeys(reader, path, value, StepKeys, lengthof(StepKeys), step, "a step");
	CheckStepKeys(reader, path, step);
}

/*
 * Read an array of steps, which have the orders after "after"; "others" is how
 * many the plan has beside them.
 */
static StepDefinition *
ReadStepArray(Reader *reader, const Path *path, JsonbValue *value, int after, int others, int *count)
{
	Path		element = {.up = path};
	StepDefinition *steps;
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	item;

	*count = 0;
	if (!ExpectKind(reader, path, value, "array"))
		return NULL;
	if (JsonContainerSize(value->val.binary.data) == 0)
		FaultAt(reader, path, ERRCODE_INVALID_DEFINITION, "Add a step.", "must have at least one step");
	if ((int) JsonContainerSize(value->val.binary.data) + others > MaxSteps)
	{
		FaultAt(reader, path, ERRCODE_VALUE_TOO_LARGE,
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

/* Check what one step refers to. */
static void
CheckStep(Reader *reader, const Path *path, StepDefinition *step, int number)
{
	ScopeCheckText(reader, &((Path) {.up = path,.key = "instructions"}), step->instructions, number);
	ScopeCheckText(reader, &((Path) {.up = path,.key = "prompt"}), step->prompt, number);
	ScopeCheckJson(reader, &((Path) {.up = path,.key = "arguments"}), step->arguments, number);
	ScopeCheckJson(reader, &((Path) {.up = path,.key = "resources"}), step->resources, number);
	ScopeCheckCondition(reader, &((Path) {.up = path,.key = "condition"}), step->condition, number, false);
	if (step->workflow)
		WorkflowCheckCall(reader, &((Path) {.up = path,.key = "workflow"}), step->workflow, step->version);
}

/* Name the steps of the scope, put them in order, and check them. */
static void
CheckSteps(Reader *reader, const Path *path)
{
	Scope	   *scope = reader->scope;

	ScopeNameSteps(reader, path);
	OrderSteps(reader, path);
	for (int i = 0; i < scope->nsteps; i++)
		CheckStep(reader, &((Path) {.up = path,.index = i}), &scope->steps[i], scope->offset + i + 1);
}

/* Read and check steps that are added to those of the scope around. */
Scope *
ReadAddedSteps(Reader *outer, const Path *path, JsonbValue *value, Scope *around, int after)
{
	Reader		reader = *outer;
	int			others = around->offset + around->nsteps;
	int			count;
	StepDefinition *steps;

	reader.depends = false;
	steps = ReadStepArray(&reader, path, value, after, others, &count);
	reader.scope = ScopeOfSteps(steps, count, around, after);
	reader.scope->inputs = around->inputs;
	CheckSteps(&reader, path);
	return reader.scope;
}

/* ---------- the whole ---------- */

/* Read the steps, and make the scope in which they are checked later. */
static void
ReadSteps(Reader *reader, const Path *path, JsonbValue *value, void *field)
{
	int			count;
	StepDefinition *steps = ReadStepArray(reader, path, value, 0, 0, &count);

	reader->scope = ScopeOfSteps(steps, count, NULL, 0);
	*(StepDefinition **) field = steps;
}

/* Keep a value, to be read when what it needs is known. */
void
ReadLater(Reader *reader pg_attribute_unused(), const Path *path pg_attribute_unused(), JsonbValue *value, void *field)
{
	JsonbValue *kept = palloc(sizeof(JsonbValue));

	*kept = *value;
	*(JsonbValue **) field = kept;
}

/* a definition, and what of it is read last */
typedef struct Draft
{
	Definition	definition;
	JsonbValue *branching;
} Draft;

static const KeyRule DefinitionKeys[] = {
	{"name", ReadTitle, offsetof(Draft, definition.name), true},
	{"description", ReadNote, offsetof(Draft, definition.description), false},
	{"steps", ReadSteps, offsetof(Draft, definition.steps), true},
	{"branchingConditions", ReadLater, offsetof(Draft, branching), false},
	{"outputs", ReadObject, offsetof(Draft, definition.outputs), false},
	{"onFailure", ReadOnFailure, offsetof(Draft, definition.on_failure), false},
	{"stallAfter", ReadInterval, offsetof(Draft, definition.stall_after), false},
	{"separateReviewer", ReadBool, offsetof(Draft, definition.separate_reviewer), false},
	{"outputFormattingNotes", ReadNote, offsetof(Draft, definition.output_formatting_notes), false},
	/* the last one: a plan given on the spot has values instead */
	{"inputs", ReadInputs, offsetof(Draft, definition.inputs), false},
};
#define WORKFLOW_KEYS	lengthof(DefinitionKeys)
#define PLAN_KEYS		(WORKFLOW_KEYS - 1)

static const Path Root = {.key = ""};

/* Check the definition as a whole, when all of it has been read. */
static void
CheckDefinition(Reader *reader, Draft *draft)
{
	Definition *definition = &draft->definition;
	Path		steps = {.up = &Root,.key = "steps"};
	Path		branching = {.up = &Root,.key = "branchingConditions"};
	Path		outputs = {.up = &Root,.key = "outputs"};

	CheckSteps(reader, &steps);
	definition->nsteps = reader->scope->nsteps;
	definition->sequential = reader->scope->sequential;
	ScopeCheckJson(reader, &outputs, definition->outputs, 0);
	if (draft->branching)
		definition->branches = ReadBranches(reader, &branching, draft->branching);
}

/* Accept a workflow's definition. */
Definition *
DefinitionAccept(Call *call, const Jsonb *json, Faults *faults)
{
	Reader		reader = {.call = call,.faults = faults};
	Draft	   *draft = palloc0(sizeof(Draft));
	JsonbValue	value;

	JsonToValue(json, &value);
	ReadKeys(&reader, &Root, &value, DefinitionKeys, WORKFLOW_KEYS, draft, "a definition");
	reader.self = draft->definition.name;
	if (reader.scope)
	{
		reader.scope->inputs = draft->definition.inputs;
		CheckDefinition(&reader, draft);
	}
	return &draft->definition;
}

/*
 * Accept the definition of one plan. Its inputs are values, an object or NULL,
 * of which each has a name to refer to.
 */
Definition *
DefinitionAcceptPlan(Call *call, const Jsonb *json, const Jsonb *inputs, Faults *faults)
{
	Reader		reader = {.call = call,.faults = faults};
	Draft	   *draft = palloc0(sizeof(Draft));
	JsonbValue	value;

	JsonToValue(json, &value);
	ReadKeys(&reader, &Root, &value, DefinitionKeys, PLAN_KEYS, draft, "a plan");
	if (reader.scope)
	{
		reader.scope->inputs = inputs;
		CheckDefinition(&reader, draft);
	}
	return &draft->definition;
}

/* Make the scope of the steps that a plan has. */
static Scope *
ScopeOfKnown(const KnownStep *known, int nknown, bool sequential)
{
	StepDefinition *steps = palloc_extended(sizeof(StepDefinition) * (nknown + 1), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	Scope	   *scope = ScopeOfSteps(steps, nknown, NULL, 0);

	scope->sequential = sequential;
	for (int i = 0; i < nknown; i++)
	{
		steps[i].order = i + 1;
		steps[i].name = known[i].name;
		steps[i].binding = known[i].binding;
		steps[i].workflow = known[i].workflow;
		steps[i].wave = known[i].wave;
		NamesAdd(scope->names, known[i].name, i + 1);
		if (known[i].binding)
			NamesAdd(scope->bindings, known[i].binding, i + 1);
	}
	return scope;
}

/*
 * Accept steps that are to be added to a plan after the step of order "after".
 * Orders go on from there; parents are numbers, 1 to nknown for those that the
 * plan has, then the new ones. "callers" are the workflows in which they
 * are nested.
 */
Definition *
DefinitionAcceptSteps(Call *call, const Jsonb *steps, const KnownStep *known, int nknown, int after,
					  bool sequential, const Jsonb *inputs, List *callers, Faults *faults)
{
	Reader		reader = {.call = call,.faults = faults,.callers = callers};
	Path		place = {.key = "steps"};
	Definition *definition = palloc0(sizeof(Definition));
	Scope	   *around = ScopeOfKnown(known, nknown, sequential);
	Scope	   *scope;
	JsonbValue	value;

	around->inputs = inputs;
	JsonToValue(steps, &value);
	scope = ReadAddedSteps(&reader, &place, &value, around, after);
	definition->steps = scope->steps;
	definition->nsteps = scope->nsteps;
	definition->sequential = scope->sequential;
	return definition;
}
