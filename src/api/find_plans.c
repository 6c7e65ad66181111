/*
 * find_plans.c
 *	  find_plans: find plans by any word of their texts, best match first
 *
 * There is no index over the words of plans, since every plan would pay for it.
 * The words are made here: of the newest open plans, and of the last that have
 * ended. Texts are read whole up to a sum of TEXTS_AT_MOST, and of the rest the
 * names and the beginnings of the goals. Final outputs have an index, and are
 * found in all plans.
 *
 * Plans often have the same names, goals and steps. So the words of short texts
 * are kept during the call. Only plans that have a word of the query are ranked.
 *
 * Memory: the words of a plan are made in scratch memory, which is reset after
 * each plan.
 */
#include "api/api.h"

#include "miscadmin.h"
#include "tsearch/ts_type.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#define SEARCH_AT_MOST	2000	/* open plans, and as many ended ones */
#define TEXTS_AT_MOST	4000000 /* bytes of goals and inputs that are read whole, with STEP_BYTES for each step */
#define STEP_BYTES		64
#define INPUTS_AT_MOST	100000	/* bytes of the inputs of a plan */
#define GOAL_WHOLE		50000	/* characters of a goal */
#define GOAL_BEGINNING	200
#define KEPT_BYTES		2000	/* a longer text is not kept */
#define KEPT_TEXTS		1000
#define RANK_OF_OUTPUT	0.05	/* more, if a final output of the tree matches */

/* a plan that is searched */
typedef struct Candidate
{
	pg_uuid_t	id;
	bool		active;
	bool		in_output;		/* a final output of the tree matches */
	int			steps;
	/* may be toasted */
	struct varlena *name;
	struct varlena *goal;
	struct varlena *inputs;
	double		rank;
} Candidate;

/* the words of a text */
typedef struct Words
{
	TSVector	vector;			/* NULL: none */
	bool		match;			/* one of them is in the query */
} Words;

/* the texts of a plan, in the order of their weights */
enum
{
	OF_NAME, OF_GOAL, OF_STEPS, OF_INPUTS,
	TEXTS
};
static const char Weights[TEXTS] = {'A', 'B', 'C', 'D'};

typedef struct Search
{
	Call	   *call;
	Oid			config;
	TSQuery		query;
	MemoryContext context;		/* of what is kept */
	struct names_hash *texts;	/* whose words are kept, with their numbers from 1 */
	Words		kept[KEPT_TEXTS];
	int			nkept;
} Search;

/* ---------- which plans ---------- */

/* Make a Candidate from a row of stepwise.plan. */
static void *
CandidateMake(TupleTableSlot *slot)
{
	Candidate  *plan = palloc0(sizeof(Candidate));

	plan->id = ColumnUuid(slot, PLAN_COL_ID);
	plan->active = ColumnIsNull(slot, PLAN_COL_COMPLETED_AT);
	plan->steps = ColumnInt(slot, PLAN_COL_PENDING) + ColumnInt(slot, PLAN_COL_IN_PROGRESS) + ColumnInt(slot, PLAN_COL_AWAITING_INPUT) +
		ColumnInt(slot, PLAN_COL_COMPLETED) + ColumnInt(slot, PLAN_COL_FAILED) + ColumnInt(slot, PLAN_COL_SKIPPED);
	plan->name = ColumnField(slot, PLAN_COL_NAME);
	plan->goal = ColumnField(slot, PLAN_COL_GOAL);
	plan->inputs = ColumnField(slot, PLAN_COL_INPUTS);
	return plan;
}

static bool
IsRoot(TupleTableSlot *slot, const void *arg)
{
	return ColumnIsNull(slot, PLAN_COL_PARENT_STEP_ID);
}

/* Read the last root plans of an index that begins with the tenant. */
static List *
LastPlans(Call *call, const char *index)
{
	Key			key = {.call = call, .backward = true};

	KeyText(&key, call->tenant_datum);
	return TableReadSome("plan", index, &key, IsRoot, NULL, CandidateMake, SEARCH_AT_MOST);
}

/* a candidate by its id */
typedef struct CandidateEntry
{
	pg_uuid_t	id;
	Candidate  *plan;
} CandidateEntry;

/* Find a plan among the candidates, or read it and add it to the list. */
static Candidate *
CandidateOf(Call *call, HTAB *by_id, const pg_uuid_t *id, List **plans)
{
	bool		found;
	CandidateEntry *entry = hash_search(by_id, id, HASH_ENTER, &found);
	Key			key = {.call = call};

	if (found)
		return entry->plan;
	KeyUuid(&key, id);
	entry->plan = TableRead("plan", "plan_pkey", &key, NULL, NULL, CandidateMake);
	if (entry->plan == NULL)
		PlanNotFound(id);
	*plans = lappend(*plans, entry->plan);
	return entry->plan;
}

/* Mark the plans of which a final output matches. Those that are not among the candidates are added. */
static List *
AddByOutput(Call *call, List *plans, TSQuery query)
{
	HASHCTL		control = {.keysize = sizeof(pg_uuid_t), .entrysize = sizeof(CandidateEntry), .hcxt = CurrentMemoryContext};
	List	   *found = PlansByOutput(call, query, NULL, SEARCH_AT_MOST);
	HTAB	   *by_id;
	ListCell   *cell;

	if (found == NIL)
		return plans;
	by_id = hash_create("stepwise found plans", 256, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	foreach(cell, plans)
		((CandidateEntry *) hash_search(by_id, &((Candidate *) lfirst(cell))->id, HASH_ENTER, NULL))->plan = lfirst(cell);
	foreach(cell, found)
	{
		const PlanRow *plan = PlanMustRead(call, lfirst(cell));

		CandidateOf(call, by_id, &plan->root_id, &plans)->in_output = true;
	}
	return plans;
}

/* Compare plans: those that have not ended first, then the newest. */
static int
CandidatesByAge(const ListCell *a, const ListCell *b)
{
	const Candidate *one = lfirst(a);
	const Candidate *other = lfirst(b);

	if (one->active != other->active)
		return one->active ? -1 : 1;
	return memcmp(&other->id, &one->id, sizeof(pg_uuid_t));
}

/* Compare plans that match: those that have not ended first, then the better match, then the newest. */
static int
CandidatesByRank(const ListCell *a, const ListCell *b)
{
	const Candidate *one = lfirst(a);
	const Candidate *other = lfirst(b);

	if (one->active == other->active && one->rank != other->rank)
		return one->rank > other->rank ? -1 : 1;
	return CandidatesByAge(a, b);
}

/* ---------- words ---------- */

/* Find which words a text has. */
static Words
WordsOf(const Search *search, Datum text)
{
	Words		words;

	words.vector = DatumGetTSVector(DirectFunctionCall2(to_tsvector_byid, ObjectIdGetDatum(search->config), text));
	words.match = HasWord(words.vector, search->query);
	return words;
}

/* Find which words a text has, and keep them. */
static Words
WordsKept(Search *search, char *text)
{
	int			number = NamesFind(search->texts, text);
	MemoryContext outer;

	if (number > 0)
		return search->kept[number - 1];
	if (search->nkept == KEPT_TEXTS || strlen(text) > KEPT_BYTES)
		return WordsOf(search, CStringGetTextDatum(text));
	outer = MemoryContextSwitchTo(search->context);
	search->kept[search->nkept++] = WordsOf(search, CStringGetTextDatum(text));
	NamesAdd(search->texts, pstrdup(text), search->nkept);
	MemoryContextSwitchTo(outer);
	return search->kept[search->nkept - 1];
}

/* Read the beginning of a text. One that was set to null is empty. */
static char *
Beginning(const struct varlena *field, int characters)
{
	if (field == NULL)
		return pstrdup("");
	if ((int64) RawSize(field) - VARHDRSZ <= characters)
		return TextOf(field);
	return TextDatumGetCString(DirectFunctionCall2(text_left, PointerGetDatum(field), Int32GetDatum(characters)));
}

static void *
StepNameMake(TupleTableSlot *slot)
{
	return ColumnText(slot, STEP_COL_NAME);
}

/* Join the names of the steps of a plan. */
static char *
StepNames(Call *call, const pg_uuid_t *plan_id)
{
	Key			key = {.call = call};
	StringInfoData names;
	ListCell   *cell;

	KeyUuid(&key, plan_id);
	initStringInfo(&names);
	foreach(cell, TableReadAll("step", "step_order_unique", &key, StepNameMake))
		appendStringInfo(&names, "%s%s", names.len > 0 ? " " : "", (char *) lfirst(cell));
	return names.data;
}

/* Find which words the inputs of a plan have: keys, texts and numbers. */
static Words
WordsOfInputs(const Search *search, const struct varlena *inputs)
{
	Words		words = {0};

	if (inputs == NULL || RawSize(inputs) > INPUTS_AT_MOST || JB_ROOT_COUNT(JsonOf(inputs)) == 0)
		return words;
	words.vector = DatumGetTSVector(DirectFunctionCall3(jsonb_to_tsvector_byid, ObjectIdGetDatum(search->config),
														JsonbPGetDatum(JsonOf(inputs)),
														JsonbPGetDatum(JsonParse("[\"key\", \"string\", \"numeric\"]"))));
	words.match = HasWord(words.vector, search->query);
	return words;
}

/* Join the words of the texts of a plan, with their weights. */
static Datum
WordsJoin(const Words words[TEXTS])
{
	Datum		joined = 0;

	for (int i = 0; i < TEXTS; i++)
	{
		Datum		weighted;

		if (words[i].vector == NULL)
			continue;
		weighted = DirectFunctionCall2(tsvector_setweight, TSVectorGetDatum(words[i].vector), CharGetDatum(Weights[i]));
		joined = i == 0 ? weighted : DirectFunctionCall2(tsvector_concat, joined, weighted);
	}
	return joined;
}

/* Check whether a plan matches, and rank it. If it is not read whole, only its name and the beginning of its goal count. */
static bool
PlanMatches(Search *search, Candidate *plan, bool whole)
{
	Words		words[TEXTS] = {0};
	bool		match = plan->in_output;
	Datum		joined;

	words[OF_NAME] = WordsKept(search, Beginning(plan->name, GOAL_WHOLE));
	words[OF_GOAL] = WordsKept(search, Beginning(plan->goal, whole ? GOAL_WHOLE : GOAL_BEGINNING));
	if (whole)
	{
		words[OF_STEPS] = WordsKept(search, StepNames(search->call, &plan->id));
		words[OF_INPUTS] = WordsOfInputs(search, plan->inputs);
	}
	for (int i = 0; i < TEXTS; i++)
		match = match || words[i].match;
	if (!match)
		return false;
	joined = WordsJoin(words);
	plan->rank = DatumGetFloat4(DirectFunctionCall2(ts_rank_tt, joined, TSQueryGetDatum(search->query))) +
		(plan->in_output ? RANK_OF_OUTPUT : 0);
	return plan->in_output || DatumGetBool(DirectFunctionCall2(ts_match_vq, joined, TSQueryGetDatum(search->query)));
}

/* Pick the plans that match. */
static List *
PickMatches(Search *search, List *plans)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise words", ALLOCSET_DEFAULT_SIZES);
	List	   *matches = NIL;
	int64		bytes = 0;
	ListCell   *cell;

	foreach(cell, plans)
	{
		Candidate  *plan = lfirst(cell);
		MemoryContext outer;
		bool		match;

		CHECK_FOR_INTERRUPTS();
		bytes += (int64) RawSize(plan->goal) - VARHDRSZ + RawSize(plan->inputs) + (int64) STEP_BYTES * plan->steps;
		outer = MemoryContextSwitchTo(scratch);
		match = PlanMatches(search, plan, bytes <= TEXTS_AT_MOST);
		MemoryContextSwitchTo(outer);
		MemoryContextReset(scratch);
		if (match)
			matches = lappend(matches, plan);
	}
	MemoryContextDelete(scratch);
	return matches;
}

/* ---------- the answer ---------- */

/* Build a plan as lists show it, with its rank. */
static Jsonb *
FoundBrief(Call *call, const Candidate *plan)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutRank(&b, (float4) plan->rank);
	JsonObjectEnd(&b);
	return JsonMerge(PlanBrief(PlanMustRead(call, &plan->id)), JsonFinish(&b));
}

static Jsonb *
FindPlans(Call *call, const char *query, int max)
{
	Search	   *search = palloc0(sizeof(Search));
	int			notices;
	List	   *items = NIL;
	List	   *plans;

	search->call = call;
	search->config = SearchConfig();
	search->query = SearchWords(call, query, ANY_WORD);
	search->context = CurrentMemoryContext;
	search->texts = NamesNew(64);
	notices = NoticesAvoid();
	plans = list_concat(LastPlans(call, "plan_open"), LastPlans(call, "plan_finished"));
	plans = AddByOutput(call, plans, search->query);
	list_sort(plans, CandidatesByAge);
	plans = PickMatches(search, plans);
	SearchPathUnlock(&notices);
	list_sort(plans, CandidatesByRank);
	for (int i = 0; i < Min(list_length(plans), max); i++)
		items = ItemAdd(items, &((Candidate *) list_nth(plans, i))->id, FoundBrief(call, list_nth(plans, i)));
	return FoundItems(query, "plans", items, list_length(plans), max);
}

/* Find plans by any word, active ones first, best match first. */
PG_FUNCTION_INFO_V1(stepwise_find_plans);
Datum
stepwise_find_plans(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, FindPlans(&call, ArgumentText(fcinfo, 0), ArgumentMax(fcinfo, 1, 20)));
}
