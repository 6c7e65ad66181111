/*
 * branchdef.c
 *	  read the branching conditions of a definition
 *
 * They are read after the steps, because they name steps. The parameters of an
 * action are a table of keys. A new action is a new line in Actions, and its
 * table.
 */
#include "define/define.h"

/* a branching condition as it is written */
typedef struct BranchDraft
{
	int			after;
	char	   *after_name;
	Condition  *condition;
	char	   *action;
	JsonbValue *params;
} BranchDraft;

/* the parameters of all actions */
typedef struct ActionParams
{
	int			step_order;
	char	   *step_name;
	JsonbValue *steps;
	char	   *reason;
	char	   *summary;
	Jsonb	   *questions;
} ActionParams;

typedef struct ActionRule
{
	const char *name;
	const KeyRule *keys;
	int			nkeys;
	void		(*check) (Reader *reader, const Place *place, const ActionParams *params, BranchDefinition *branch);
} ActionRule;

static const KeyRule SkipToKeys[] = {
	{"stepOrder", ReadCount, offsetof(ActionParams, step_order), false},
	{"stepName", ReadText, offsetof(ActionParams, step_name), false},
};

static const KeyRule AddStepsKeys[] = {
	{"steps", ReadLater, offsetof(ActionParams, steps), true},
};

static const KeyRule FailKeys[] = {
	{"reason", ReadText, offsetof(ActionParams, reason), false},
};

static const KeyRule RequestReviewKeys[] = {
	{"summary", ReadText, offsetof(ActionParams, summary), true},
	{"questions", ReadTexts, offsetof(ActionParams, questions), false},
};

/*
 * Find the step to which skip_to goes. It goes forward only, because a step
 * that has run does not run again.
 */
static void
CheckSkipTo(Reader *reader, const Place *place, const ActionParams *params, BranchDefinition *branch)
{
	const Scope *scope = reader->scope;
	Place		key = {.up = place, .key = params->step_name ? "stepName" : "stepOrder"};
	int			target = params->step_order;

	if ((params->step_name != NULL) == (params->step_order != 0))
	{
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Say where to go by one of them.",
				"skip_to needs either stepOrder or stepName");
		return;
	}
	if (params->step_name)
		target = ScopeFindStep(scope, params->step_name);

	if (target == 0)
		FaultAt(reader, &key, ERRCODE_INVALID_DEFINITION, ScopeStepHint(reader, params->step_name),
				"step \"%s\" does not exist", params->step_name);
	else if (target > scope->nsteps)
		FaultAt(reader, &key, ERRCODE_INVALID_DEFINITION,
				psprintf("Steps have the orders 1 to %d.", scope->nsteps),
				"there is no step of order %d", target);
	else if (target <= branch->after)
		FaultAt(reader, &key, ERRCODE_INVALID_DEFINITION, "Name a later step.",
				"skip_to cannot go back: step %d does not come after step %d", target, branch->after);
	else
		branch->target = target;
}

static void
CheckAddSteps(Reader *reader, const Place *place, const ActionParams *params, BranchDefinition *branch)
{
	Place		key = {.up = place, .key = "steps"};

	if (params->steps)
		branch->added = ReadAddedSteps(reader, &key, params->steps, reader->scope, branch->after);
}

/* Check what the review shows. */
static void
CheckRequestReview(Reader *reader, const Place *place, const ActionParams *params, BranchDefinition *branch)
{
	ReachCheckReview(reader, place, params->summary, params->questions, branch->after);
}

static const ActionRule Actions[] = {
	{"continue", NULL, 0, NULL},
	{"skip_to", SkipToKeys, lengthof(SkipToKeys), CheckSkipTo},
	{"add_steps", AddStepsKeys, lengthof(AddStepsKeys), CheckAddSteps},
	{"fail", FailKeys, lengthof(FailKeys), NULL},
	{"request_review", RequestReviewKeys, lengthof(RequestReviewKeys), CheckRequestReview},
};

/* Read the name of an action. */
static void
ReadAction(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	const char *names[lengthof(Actions)];

	for (size_t i = 0; i < lengthof(Actions); i++)
		names[i] = Actions[i].name;
	ReadWord(reader, place, value, names, lengthof(Actions), field);
}

static const KeyRule BranchKeys[] = {
	{"afterStepOrder", ReadCount, offsetof(BranchDraft, after), false},
	{"afterStep", ReadText, offsetof(BranchDraft, after_name), false},
	{"conditionExpression", ReadBranchCondition, offsetof(BranchDraft, condition), true},
	{"ifTrueAction", ReadAction, offsetof(BranchDraft, action), true},
	{"actionParams", ReadLater, offsetof(BranchDraft, params), false},
};

/*
 * Read the parameters of the action. If there are none, read an empty object,
 * so that missing ones are reported.
 */
static void
ReadParams(Reader *reader, const Place *place, const BranchDraft *draft, BranchDefinition *branch)
{
	Place		key = {.up = place, .key = "actionParams"};
	ActionParams params = {0};
	const ActionRule *rule = Actions;
	int			before = list_length(reader->faults->items);
	JsonbValue	empty;

	while (strcmp(rule->name, draft->action) != 0)
		rule++;
	JsonbToJsonbValue(JsonEmptyObject(), &empty);
	ReadKeys(reader, &key, draft->params ? draft->params : &empty, rule->keys, rule->nkeys, &params, rule->name);
	/* do not report a refused parameter as missing, too */
	if (rule->check && list_length(reader->faults->items) == before)
		rule->check(reader, &key, &params, branch);
	branch->params = draft->params ? JsonFromValue(draft->params) : JsonEmptyObject();
}

/* Check whether an object has a key, also if its value was refused. */
static bool
HasKey(JsonbValue *object, const char *key)
{
	return getKeyJsonValueFromContainer(object->val.binary.data, key, strlen(key), NULL) != NULL;
}

/* Find the step after which a branch stands; 0: the draft does not say it well. */
static int
FindAfter(Reader *reader, const Place *place, JsonbValue *value, const BranchDraft *draft)
{
	int			nsteps = reader->scope->nsteps;
	Place		by_order = {.up = place, .key = "afterStepOrder"};
	Place		by_name = {.up = place, .key = "afterStep"};
	bool		ordered = HasKey(value, by_order.key);
	bool		named = HasKey(value, by_name.key);
	int			after = 0;

	if (ordered && named)
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION, "Leave out one of them.",
				"has both afterStep and afterStepOrder");
	else if (!ordered && !named)
		FaultAt(reader, &by_order, ERRCODE_INVALID_DEFINITION, "Add \"afterStep\", the name of a step, or \"afterStepOrder\".",
				"is missing: a branching condition needs it, or afterStep");
	else if (draft->after_name && (after = ScopeFindStep(reader->scope, draft->after_name)) == 0)
		FaultAt(reader, &by_name, ERRCODE_INVALID_DEFINITION, ScopeStepHint(reader, draft->after_name),
				"step \"%s\" does not exist", ShortText(draft->after_name));
	else if (draft->after <= nsteps)
		after = Max(after, draft->after);
	else if (nsteps > 0)
		FaultAt(reader, &by_order, ERRCODE_INVALID_DEFINITION,
				psprintf("Steps have the orders 1 to %d.", nsteps),
				"there is no step of order %d", draft->after);
	return after;
}

static BranchDefinition *
ReadBranch(Reader *reader, const Place *place, JsonbValue *value)
{
	BranchDraft draft = {0};
	BranchDefinition *branch = palloc0(sizeof(BranchDefinition));

	ReadKeys(reader, place, value, BranchKeys, lengthof(BranchKeys), &draft, "a branching condition");
	ReachHintRoots(reader);
	branch->action = draft.action;
	branch->condition = draft.condition;
	if (strcmp(JsonKindName(value), "object") == 0)
		branch->after = FindAfter(reader, place, value, &draft);
	if (branch->after)
		ReachCheckCondition(reader, &((Place) {.up = place, .key = "conditionExpression"}),
							branch->condition, branch->after, true);
	if (branch->after && branch->action)
		ReadParams(reader, place, &draft, branch);
	return branch;
}

/* ---------- names that two branches would add ---------- */

/* where a branch adds a name */
typedef struct AddedName
{
	const BranchDefinition *branch;
	int			index;			/* of the branch, among all branches */
	int			step;
} AddedName;

/* the names, or bindings, that branches add; entries are numbered from 1 */
typedef struct AddedNames
{
	const char *key;			/* of a step: "name" or "binding" */
	struct names_hash *numbers;
	List	   *entries;		/* of AddedName */
} AddedNames;

/*
 * Enter a name that a branch adds. Of the branches after one step only one
 * acts, so they may add the same name. Branches after different steps may both
 * act.
 */
static void
EnterAdded(Reader *reader, const Place *place, AddedNames *names, const char *word, const AddedName *added)
{
	int			number = NamesFind(names->numbers, word);
	AddedName  *entry = number ? list_nth(names->entries, number - 1) : NULL;
	Place		branch = {.up = place, .index = added->index};
	Place		params = {.up = &branch, .key = "actionParams"};
	Place		steps = {.up = &params, .key = "steps"};
	Place		step = {.up = &steps, .index = added->step};
	Place		key = {.up = &step, .key = names->key};

	if (entry == NULL)
	{
		entry = palloc(sizeof(AddedName));
		*entry = *added;
		names->entries = lappend(names->entries, entry);
		NamesAdd(names->numbers, word, list_length(names->entries));
	}
	else if (entry->branch->after != added->branch->after)
		FaultAt(reader, &key, ERRCODE_INVALID_DEFINITION,
				"Both branches may act in one plan, where names are unique; choose another.",
				"%s \"%s\" is also added by branchingConditions[%d].actionParams.steps[%d]", names->key, word,
				entry->index, entry->step);
}

/*
 * Find names and bindings that two branches would add to one plan. Only names
 * that are written in the definition count; generated names are always new.
 */
static void
CheckAddedNames(Reader *reader, const Place *place, const List *branches)
{
	AddedNames	names = {.key = "name", .numbers = NamesNew(8)};
	AddedNames	bindings = {.key = "binding", .numbers = NamesNew(8)};
	ListCell   *cell;

	foreach(cell, branches)
	{
		const BranchDefinition *branch = lfirst(cell);

		for (int i = 0; branch->added && i < branch->added->nsteps; i++)
		{
			const StepDefinition *step = &branch->added->steps[i];
			AddedName	added = {branch, foreach_current_index(cell), i};

			if (step->name && step->named)
				EnterAdded(reader, place, &names, step->name, &added);
			if (step->binding)
				EnterAdded(reader, place, &bindings, step->binding, &added);
		}
	}
}

/* Read the branching conditions into a list of BranchDefinition. */
List *
ReadBranches(Reader *reader, const Place *place, JsonbValue *value)
{
	List	   *branches = NIL;
	int		   *positions = palloc0(sizeof(int) * (reader->scope->nsteps + 1));
	Place		element = {.up = place, .index = 0};
	JsonbIterator *iterator;
	JsonbIteratorToken token;
	JsonbValue	item;

	if (!ExpectKind(reader, place, value, "array"))
		return NIL;
	iterator = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&iterator, &item, true)) != WJB_DONE)
	{
		BranchDefinition *branch;

		if (token != WJB_ELEM)
			continue;
		branch = ReadBranch(reader, &element, &item);
		branch->position = ++positions[branch->after];
		branches = lappend(branches, branch);
		element.index++;
	}
	CheckAddedNames(reader, place, branches);
	return branches;
}
