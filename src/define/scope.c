/*
 * scope.c
 *	  what names a definition has, and what its references may reach
 *
 * A reference is good if what it names exists and can have run before the
 * step in which it stands: in a sequence a step of lower order, in a plan with
 * dependencies an ancestor. What lies behind the name, the path into a result,
 * is known only at run time.
 *
 * Definitions have up to thousands of steps, so names are looked up in hash
 * tables, and paths are spelled only for faults.
 */
#include "api/api.h"

#include "common/hashfn.h"
#include "miscadmin.h"

typedef struct NameEntry
{
	const char *name;
	int			number;
	uint32		hash;
	char		status;
} NameEntry;

#define SH_PREFIX				names
#define SH_ELEMENT_TYPE			NameEntry
#define SH_KEY_TYPE				const char *
#define SH_KEY					name
#define SH_HASH_KEY(tb, key)	hash_bytes((const unsigned char *) (key), strlen(key))
#define SH_EQUAL(tb, a, b)		(strcmp(a, b) == 0)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, a)		((a)->hash)
#define SH_SCOPE				static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* ---------- tables of names ---------- */

struct names_hash *
NamesNew(int size)
{
	return names_create(CurrentMemoryContext, Max(size, 8), NULL);
}

/* Enter a name, which must live as long as the table; false if it is there. */
bool
NamesAdd(struct names_hash *names, const char *name, int number)
{
	bool		found;
	NameEntry  *entry = names_insert(names, name, &found);

	if (!found)
		entry->number = number;
	return !found;
}

/* Enter a name, or give the one that is there another number. */
void
NamesSet(struct names_hash *names, const char *name, int number)
{
	bool		found;

	names_insert(names, name, &found)->number = number;
}

/* Find the name that is there, or enter this one. */
char *
NamesKeep(struct names_hash *names, char *name)
{
	bool		found;

	return unconstify(char *, names_insert(names, name, &found)->name);
}

int
NamesFind(struct names_hash *names, const char *name)
{
	NameEntry  *entry = names_lookup(names, name);

	return entry ? entry->number : 0;
}

/* ---------- the scope ---------- */

/*
 * Make the scope of some steps; around and after, if they are to be added to
 * others.
 */
Scope *
ScopeOfSteps(StepDefinition *steps, int nsteps, Scope *around, int after)
{
	Scope	   *scope = palloc0(sizeof(Scope));

	scope->around = around;
	scope->after = after;
	scope->offset = around ? around->offset + around->nsteps : 0;
	scope->steps = steps;
	scope->nsteps = nsteps;
	scope->names = NamesNew(nsteps);
	scope->bindings = NamesNew(8);
	return scope;
}

StepDefinition *
ScopeStep(const Scope *scope, int number)
{
	while (number <= scope->offset)
		scope = scope->around;
	return &scope->steps[number - scope->offset - 1];
}

int
ScopeFindStep(const Scope *scope, const char *name)
{
	int			number = 0;

	for (; scope && number == 0; scope = scope->around)
		number = NamesFind(scope->names, name);
	return number;
}

static int
FindBinding(const Scope *scope, const char *name)
{
	int			number = 0;

	for (; scope && number == 0; scope = scope->around)
		number = NamesFind(scope->bindings, name);
	return number;
}

/* Collect the names of all steps, or their bindings, for a hint. */
static const char **
AllNames(const Scope *scope, bool bindings, int *count)
{
	int			total = scope->offset + scope->nsteps;
	const char **names = palloc(sizeof(char *) * Max(total, 1));

	*count = 0;
	for (int number = 1; number <= total; number++)
	{
		const StepDefinition *step = ScopeStep(scope, number);
		const char *name = bindings ? step->binding : step->name;

		if (name)
			names[(*count)++] = name;
	}
	return names;
}

/* Say which step, or binding, was probably meant. */
static char *
NameHint(Reader *reader, const char *name, bool bindings)
{
	int			count;
	const char **names;

	if (!HintsWanted(reader->faults))
		return NULL;
	names = AllNames(reader->scope, bindings, &count);
	return WordHint(reader->faults, name, names, count, bindings ? "bindings" : "steps");
}

char *
ScopeStepHint(Reader *reader, const char *name)
{
	return NameHint(reader, name, false);
}

/* ---------- names of the steps ---------- */

/* Enter the names that were given, each of which must be new. */
static void
EnterGivenNames(Reader *reader, const Path *path)
{
	Scope	   *scope = reader->scope;

	for (int i = 0; i < scope->nsteps; i++)
	{
		StepDefinition *step = &scope->steps[i];
		Path		element = {.up = path,.index = i};

		step->named = step->name != NULL;
		if (step->name && (ScopeFindStep(scope, step->name) ||
						   !NamesAdd(scope->names, step->name, scope->offset + i + 1)))
			FaultAt(reader, &((Path) {.up = &element,.key = "name"}), ERRCODE_INVALID_DEFINITION,
					"Names of steps are unique in their plan.",
					"name \"%s\" is taken by another step", step->name);
		if (step->binding && (FindBinding(scope, step->binding) ||
							  !NamesAdd(scope->bindings, step->binding, scope->offset + i + 1)))
			FaultAt(reader, &((Path) {.up = &element,.key = "binding"}), ERRCODE_INVALID_DEFINITION,
					"Bindings are unique in their plan.",
					"binding \"%s\" is taken by another step", step->binding);
	}
}

/*
 * Name the steps: as they say, and the others by their number. A number that
 * another step has for a name is passed over.
 */
void
ScopeNameSteps(Reader *reader, const Path *path)
{
	Scope	   *scope = reader->scope;
	int			number = scope->offset;

	EnterGivenNames(reader, path);
	for (int i = 0; i < scope->nsteps; i++)
	{
		StepDefinition *step = &scope->steps[i];

		number = Max(number + 1, scope->offset + i + 1);
		if (step->name)
			continue;
		while (ScopeFindStep(scope, step->name = psprintf("step_%d", number)))
			number++;
		NamesAdd(scope->names, step->name, scope->offset + i + 1);
	}
}

/* ---------- references ---------- */

/* Show a reference in a message, cut if it is long. */
static const char *
Shown(const Reference *reference)
{
	return ShortText(reference->source);
}

/*
 * Can the step have run before the one in which the reference stands? Of steps
 * that are around, in a plan with dependencies, only the plan itself knows.
 */
static bool
CanHaveRun(Scope *scope, int target, int from)
{
	if (target <= scope->offset)
		return !scope->around->sequential || target <= scope->after;
	if (scope->sequential)
		return target < from;
	return OrderIsAncestor(scope, target, from);
}

static void
CheckReach(Reader *reader, const Path *path, const Reference *reference, int target, int from)
{
	const char *name = ScopeStep(reader->scope, target)->name;

	if (target == from)
		FaultAt(reader, path, ERRCODE_UNRESOLVED_REFERENCE,
				"A step can refer to steps that run before it.",
				"${%s} refers to the result of the step itself", Shown(reference));
	else if (CanHaveRun(reader->scope, target, from))
		return;
	else if (reader->scope->sequential)
		FaultAt(reader, path, ERRCODE_UNRESOLVED_REFERENCE,
				psprintf("Steps run in the order in which they stand; move step \"%s\" before this one.", name),
				"${%s} refers to step \"%s\", which runs later", Shown(reference), name);
	else
		FaultAt(reader, path, ERRCODE_UNRESOLVED_REFERENCE,
				psprintf("Add \"%s\" to dependsOn of this step.", name),
				"${%s} refers to step \"%s\", on which this step does not depend", Shown(reference), name);
}

static void
CheckInput(Reader *reader, const Path *path, const Reference *reference)
{
	const Jsonb *inputs = reader->scope->inputs;
	JsonbValue	found;
	const char **names = NULL;
	int			count = 0;

	if (reader->inputs_unknown || reference->npath == 0 || JsonGet(inputs, reference->path[0], &found))
		return;

	if (HintsWanted(reader->faults))
		names = JsonKeys(inputs, &count);
	FaultAt(reader, path, ERRCODE_UNRESOLVED_REFERENCE,
			WordHint(reader->faults, reference->path[0], names, count, "inputs"),
			"${%s}: input \"%s\" does not exist", Shown(reference), reference->path[0]);
}

static void
CheckBinding(Reader *reader, const Path *path, const Reference *reference, int from)
{
	const char *name = reference->steps[0];
	int			target = FindBinding(reader->scope, name);

	if (target == 0)
		FaultAt(reader, path, ERRCODE_UNRESOLVED_REFERENCE, NameHint(reader, name, true),
				"${%s}: binding \"%s\" does not exist", Shown(reference), name);
	else if (from)
		CheckReach(reader, path, reference, target, from);
}

static void
CheckStep(Reader *reader, const Path *path, const Reference *reference, int from)
{
	const char *name = reference->steps[0];
	int			target = ScopeFindStep(reader->scope, name);

	if (target == 0)
	{
		FaultAt(reader, path, ERRCODE_UNRESOLVED_REFERENCE, ScopeStepHint(reader, name),
				"${%s}: step \"%s\" does not exist", Shown(reference), name);
		return;
	}
	if (reference->nsteps > 1 && ScopeStep(reader->scope, target)->workflow == NULL)
		FaultAt(reader, path, ERRCODE_UNRESOLVED_REFERENCE,
				"Only a step with \"workflow\" has steps inside.",
				"${%s}: step \"%s\" has no steps inside", Shown(reference), name);
	if (from)
		CheckReach(reader, path, reference, target, from);
}

/*
 * Check a reference that stands in step number from, or, if 0, where any step
 * may be named.
 */
static void
CheckReference(Reader *reader, const Path *path, const Reference *reference, int from)
{
	if (reference->root == REF_INPUTS)
		CheckInput(reader, path, reference);
	else if (reference->root == REF_STEPS)
		CheckStep(reader, path, reference, from);
	else if (reference->root == REF_BINDINGS)
		CheckBinding(reader, path, reference, from);
}

/* Check the references in a text. */
void
ScopeCheckText(Reader *reader, const Path *path, const char *text, int from)
{
	ParseFault	fault = {0};
	List	   *parts;
	ListCell   *cell;

	if (text == NULL || !ReferenceOccurs(text))
		return;
	if (from)
		ScopeStep(reader->scope, from)->dynamic = true;

	parts = ReferenceScan(text, &fault);
	if (fault.message)
	{
		FaultAt(reader, path, ERRCODE_UNRESOLVED_REFERENCE, fault.hint,
				"%s at column %d", fault.message, fault.column);
		return;
	}
	foreach(cell, parts)
	{
		const TextPart *part = lfirst(cell);

		if (part->reference)
			CheckReference(reader, path, part->reference, from);
	}
}

/*
 * Check the references in a value, at any depth. The depth of the whole was
 * limited when it was read.
 */
static void
CheckContainer(Reader *reader, const Path *path, JsonbContainer *container, int from)
{
	JsonbIterator *iterator = JsonbIteratorInit(container);
	Path		member = {.up = path,.index = -1};
	JsonbValue	value;
	JsonbIteratorToken token;

	check_stack_depth();
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			member.key = JsonValueText(&value);
		if (token == WJB_ELEM)
			member.index++;
		if (token != WJB_ELEM && token != WJB_VALUE)
			continue;
		if (value.type == jbvBinary)
			CheckContainer(reader, &member, value.val.binary.data, from);
		else if (value.type == jbvString &&
				 memchr(value.val.string.val, '$', value.val.string.len) != NULL)
			ScopeCheckText(reader, &member, JsonValueText(&value), from);
	}
}

void
ScopeCheckJson(Reader *reader, const Path *path, const Jsonb *json, int from)
{
	if (json)
		CheckContainer(reader, path, unconstify(JsonbContainer *, &json->root), from);
}

/*
 * Check the references of a condition; itself, if it may name the step in
 * which it stands.
 */
void
ScopeCheckCondition(Reader *reader, const Path *path, const Condition *condition, int from, bool itself)
{
	if (condition == NULL)
		return;
	for (int i = 0; i < condition->noperands; i++)
	{
		const Reference *reference = condition->operands[i];

		if (itself && reference->root == REF_STEPS &&
			ScopeFindStep(reader->scope, reference->steps[0]) == from)
			continue;
		if (itself && reference->root == REF_BINDINGS &&
			FindBinding(reader->scope, reference->steps[0]) == from)
			continue;
		CheckReference(reader, path, reference, from);
	}
}
