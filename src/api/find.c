/*
 * find.c
 *	  find plans and checkpoints: lists, page by page, and searches
 *
 * A list shows the newest first. Its cursor is the id of the last item that it
 * has shown: ids ascend with time, so what others insert or purge between two
 * pages neither repeats an item nor hides one. A page ends early before it
 * grows too long for a model to read.
 *
 * The lists read by index. A filter of list_plans may fit few plans, so one
 * call looks at no more than LOOK_AT_MOST of them; then its page may be short,
 * or even empty, and the next one goes on from there.
 *
 * Nothing is locked; one snapshot serves the whole answer.
 */
#include "api/api.h"

#include "catalog/namespace.h"
#include "catalog/pg_collation_d.h"
#include "nodes/value.h"
#include "utils/fmgrprotos.h"

#define QUERY_MAX_BYTES	2000	/* so no word is too long for a tsquery */
#define QUERY_SHOWN		200		/* bytes of it in the answer */
#define ITEM_BYTES		760		/* fifty items of this size fit into 40 kB, with what is around them */
#define ITEMS_AT_LEAST	50		/* of that size, whatever was asked for */
#define LOOK_AT_MOST	20000	/* plans, in one call of list_plans */
#define LOOK_AT_ONCE	100		/* rows, where some have to be left out */

/* ---------- checks ---------- */

static void
CheckPlanStatus(const char *status)
{
	Faults		faults = {0};

	if (status == NULL || NameIndex(status, PlanStatusName, PLAN_STATUSES) >= 0)
		return;
	FaultAdd(&faults, ERRCODE_INVALID_DEFINITION, "status",
			 WordHint(&faults, status, PlanStatusName, PLAN_STATUSES, "statuses"),
			 "\"%s\" is not the status of a plan", ShortText(status));
	FaultsRaise(&faults, "filter");
}

/*
 * Read the cursor of a list; NULL: from the newest on. The row that it names
 * may have been purged since. But it must be an id of ours, so of version 7.
 */
static pg_uuid_t *
ArgumentAfter(FunctionCallInfo fcinfo, int n)
{
	pg_uuid_t  *after = ArgumentUuid(fcinfo, n);

	if (after != NULL && after->data[6] >> 4 != 7)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("after is not the id of an item of this list: \"%s\"", UuidText(after)),
				 errhint("Use the value of \"next\" in the page before, or leave it out for the newest.")));
	return after;
}

static void
CheckQuery(const char *query)
{
	CheckNotBlank(query, "query");
	if (strlen(query) > QUERY_MAX_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_VALUE_TOO_LARGE),
				 errmsg("query is too long: %zu bytes", strlen(query)),
				 errdetail("The limit is %d bytes.", QUERY_MAX_BYTES),
				 errhint("Search for a few words.")));
}

/* ---------- answers ---------- */

/* an item of a list */
typedef struct ListItem
{
	pg_uuid_t	id;
	Jsonb	   *json;
} ListItem;

/* Add an item to a list. */
List *
ItemAdd(List *items, const pg_uuid_t *id, Jsonb *json)
{
	ListItem   *item = palloc(sizeof(ListItem));

	item->id = *id;
	item->json = json;
	return lappend(items, item);
}

/*
 * Put the items of a list, at most max of them, and only as many as fit. At
 * least one is put. Returns how many were put.
 */
static int
PutItems(JsonBuilder *b, const char *key, const List *items, int max)
{
	size_t		room = (size_t) ITEM_BYTES * Max(max, ITEMS_AT_LEAST);
	int			n;

	JsonArrayStart(b, key);
	for (n = 0; n < list_length(items) && n < max; n++)
	{
		const ListItem *item = list_nth(items, n);
		size_t		size = JsonTextLength(item->json);

		if (n > 0 && size > room)
			break;
		room -= Min(room, size);
		JsonPutJson(b, NULL, item->json);
	}
	JsonArrayEnd(b);
	return n;
}

/*
 * Build a page. There is one item more than max if there are more to come. If
 * not, "beyond" is the cursor, or NULL for none.
 */
static Jsonb *
PageAnswer(const char *key, const List *items, int max, const pg_uuid_t *beyond)
{
	JsonBuilder b = {0};
	int			shown;

	JsonObjectStart(&b, NULL);
	shown = PutItems(&b, key, items, max);
	if (shown < list_length(items))
		beyond = &((const ListItem *) list_nth(items, shown - 1))->id;
	JsonPutUuid(&b, "next", beyond);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the answer of a search from its items. "count" is the number of all matches. */
Jsonb *
FoundItems(const char *query, const char *key, const List *items, int64 count, int max)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "query", CutText(query, QUERY_SHOWN, NULL));
	PutItems(&b, key, items, max);
	JsonPutInt(&b, "count", count);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Put the rank of a match. */
void
PutRank(JsonBuilder *b, float4 rank)
{
	char	   *text = DatumGetCString(DirectFunctionCall1(float4out, Float4GetDatum(rank)));
	JsonbValue	number = {.type = jbvNumeric};

	number.val.numeric = DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
	JsonPutValue(b, "rank", &number);
}

/* ---------- pages of plans ---------- */

/* Build a plan as lists show it. */
Jsonb *
PlanBrief(const PlanRow *plan)
{
	ReadingFunction reader = {"get_plan_context", "plan_id", UuidText(&plan->id), "max_bytes"};
	ReadingFunction why = {"why", "plan_id", reader.id, NULL};
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "planId", &plan->id);
	JsonPutText(&b, "name", plan->name);
	JsonPutText(&b, "status", PlanStatusName[plan->status]);
	JsonPutText(&b, "outcome", OutcomeName[plan->outcome]);
	JsonPutText(&b, "workflow", plan->workflow);
	JsonPutPositive(&b, "version", plan->version);
	JsonPutText(&b, "sessionId", plan->session_id);
	JsonPutInt(&b, "progress", PlanPercent(plan));
	JsonPutInt(&b, "totalSteps", StepTotal(plan->counts));
	JsonPutTime(&b, "createdAt", plan->created_at);
	JsonPutTime(&b, "updatedAt", plan->updated_at);
	JsonPutTime(&b, "completedAt", plan->completed_at);
	JsonPutText(&b, "goal", plan->goal ? CutText(plan->goal, 200, reader.function) : NULL);
	JsonPutJson(&b, "inputs", CutJson(plan->inputs, 200, &reader));
	JsonPutJson(&b, "pauseReason", CutJson(plan->pause_reason, 300, &why));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* which plans a list shows; NULL: any */
typedef struct PlanFilter
{
	const char *status;
	const char *session;
	const char *workflow;
} PlanFilter;

/* a plan that a list looks at; what the filters are about */
typedef struct LookedPlan
{
	pg_uuid_t	id;
	PlanFilter	has;
} LookedPlan;

/* Make a LookedPlan from a row of stepwise.plan. */
static void *
LookedMake(TupleTableSlot *slot)
{
	LookedPlan *plan = palloc0(sizeof(LookedPlan));
	Oid			status = DatumGetObjectId(ColumnDatum(slot, PLAN_COL_STATUS));

	plan->id = ColumnUuid(slot, PLAN_COL_ID);
	plan->has.status = PlanStatusName[EnumIndex(status, PlanStatusName, PLAN_STATUSES)];
	plan->has.session = ColumnText(slot, PLAN_COL_SESSION_ID);
	plan->has.workflow = ColumnText(slot, PLAN_COL_WORKFLOW);
	return plan;
}

/* Check that a row of stepwise.plan is not nested. */
static bool
IsRoot(TupleTableSlot *slot, const void *arg)
{
	return ColumnIsNull(slot, PLAN_COL_PARENT_STEP_ID);
}

static bool
WordFits(const char *wanted, const char *has)
{
	return wanted == NULL || (has != NULL && strcmp(wanted, has) == 0);
}

/* Make the key of the rows of the tenant with a lower id than "after", the highest first. The first columns are tenant and id. */
static Key
KeyAfter(Call *call, const pg_uuid_t *after)
{
	Key			key = {.call = call, .backward = true};

	KeyText(&key, call->tenant_datum);
	if (after != NULL)
		KeyUuidBelow(&key, after);
	return key;
}

/* Return how many rows to read at once for a page: first what it shows and one more, then as many as were read so far, and more. */
static int
RowsAtOnce(int max, int looked)
{
	return looked == 0 ? max + 1 : Max(looked, LOOK_AT_ONCE);
}

/* Build a page of root plans, newest first. They are read from the index; at most look_at_most of them are looked at. */
static Jsonb *
ListRoots(Call *call, const char *index, const PlanFilter *filter, const pg_uuid_t *after, int max, int look_at_most)
{
	List	   *items = NIL;
	int			looked = 0;
	int			at_once;
	List	   *plans;
	ListCell   *cell;

	CheckPlanStatus(filter->status);
	do
	{
		Key			key = KeyAfter(call, after);

		at_once = Min(RowsAtOnce(max, looked), look_at_most - looked);
		plans = TableReadSome("plan", index, &key, IsRoot, NULL, LookedMake, at_once);
		foreach(cell, plans)
		{
			const LookedPlan *plan = lfirst(cell);

			after = &plan->id;
			if (list_length(items) <= max && WordFits(filter->status, plan->has.status) &&
				WordFits(filter->session, plan->has.session) && WordFits(filter->workflow, plan->has.workflow))
				items = ItemAdd(items, &plan->id, PlanBrief(PlanMustRead(call, &plan->id)));
		}
		looked += list_length(plans);
	} while (list_length(plans) == at_once && looked < look_at_most && list_length(items) <= max);
	return PageAnswer("plans", items, max, looked == look_at_most ? after : NULL);
}

/* ---------- list_active_plans ---------- */

/* List unfinished plans, newest first, page by page. */
PG_FUNCTION_INFO_V1(stepwise_list_active_plans);
Datum
stepwise_list_active_plans(PG_FUNCTION_ARGS)
{
	PlanFilter	filter = {0};
	Call		call;

	CallBeginReading(&call);
	filter.status = ArgumentText(fcinfo, 0);
	filter.session = ArgumentText(fcinfo, 1);
	return CallEnd(&call, ListRoots(&call, "plan_open", &filter, ArgumentAfter(fcinfo, 2), ArgumentMax(fcinfo, 3, 50), INT_MAX));
}

/* ---------- list_plans ---------- */

/* arguments of list_plans, in their order */
enum
{
	LP_STATUS, LP_SESSION, LP_WORKFLOW, LP_AFTER, LP_MAX
};

/* List plans, finished ones too, newest first, page by page. */
PG_FUNCTION_INFO_V1(stepwise_list_plans);
Datum
stepwise_list_plans(PG_FUNCTION_ARGS)
{
	PlanFilter	filter = {0};
	Call		call;

	CallBeginReading(&call);
	filter.status = ArgumentText(fcinfo, LP_STATUS);
	filter.session = ArgumentText(fcinfo, LP_SESSION);
	filter.workflow = ArgumentText(fcinfo, LP_WORKFLOW);
	return CallEnd(&call, ListRoots(&call, "plan_root", &filter, ArgumentAfter(fcinfo, LP_AFTER), ArgumentMax(fcinfo, LP_MAX, 50),
									LOOK_AT_MOST));
}

/* ---------- list_checkpoints ---------- */

/* Build a checkpoint as lists show it; NULL if its plan has ended. */
static Jsonb *
CheckpointBrief(Call *call, const ListedCheckpoint *checkpoint)
{
	ReadingFunction reader = {"get_step_context", "step_id", UuidText(&checkpoint->step_id), "max_bytes"};
	PlanRow    *plan = PlanMustRead(call, &checkpoint->plan_id);
	JsonBuilder b = {0};

	if (TimeIsSet(plan->completed_at))
		return NULL;
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "checkpointId", &checkpoint->id);
	JsonPutUuid(&b, "planId", &plan->id);
	JsonPutUuid(&b, "rootPlanId", &plan->root_id);
	JsonPutText(&b, "planName", PlanMustRead(call, &plan->root_id)->name);
	JsonPutUuid(&b, "stepId", &checkpoint->step_id);
	PutPath(&b, plan, StepMustRead(call, &checkpoint->step_id));
	JsonPutText(&b, "kind", checkpoint->kind);
	JsonPutText(&b, "gate", checkpoint->gate);
	JsonPutTime(&b, "since", checkpoint->since);
	JsonPutText(&b, "prompt", CutField(checkpoint->prompt, 300, reader.function));
	JsonPutJson(&b, "questions", CutJson(checkpoint->questions, 200, &reader));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build a page of checkpoints, newest first. */
static Jsonb *
ListCheckpoints(Call *call, const pg_uuid_t *after, int max)
{
	List	   *items = NIL;
	int			looked = 0;
	int			at_once;
	List	   *checkpoints;
	ListCell   *cell;

	do
	{
		Key			key = KeyAfter(call, after);

		at_once = RowsAtOnce(max, looked);
		checkpoints = CheckpointsByKey("checkpoint_tenant", &key, at_once);
		foreach(cell, checkpoints)
		{
			const ListedCheckpoint *checkpoint = lfirst(cell);
			Jsonb	   *brief = list_length(items) <= max ? CheckpointBrief(call, checkpoint) : NULL;

			after = &checkpoint->id;
			if (brief != NULL)
				items = ItemAdd(items, &checkpoint->id, brief);
		}
		looked += list_length(checkpoints);
	} while (list_length(checkpoints) == at_once && list_length(items) <= max);
	return PageAnswer("checkpoints", items, max, NULL);
}

/* List the steps that wait for a person, newest first, page by page. */
PG_FUNCTION_INFO_V1(stepwise_list_checkpoints);
Datum
stepwise_list_checkpoints(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, ListCheckpoints(&call, ArgumentAfter(fcinfo, 0), ArgumentMax(fcinfo, 1, 50)));
}

/* ---------- searches ---------- */

static const char *const WaysHint[] = {
	[ANY_WORD] = "Use words that say what the plan is about; any of them is enough.",
	[ALL_WORDS] = "Use words that say what you look for; \"quotes\" mean a phrase, - leaves a word out, or means either.",
};

/* Return the text search configuration of searches. */
Oid
SearchConfig(void)
{
	return get_ts_config_oid(list_make2(makeString("pg_catalog"), makeString("english")), false);
}

/* Turn a query for all words into one for any of them. plainto_tsquery joins all words by "and". */
static TSQuery
AnyOf(TSQuery words)
{
	Datum		written = CStringGetTextDatum(DatumGetCString(DirectFunctionCall1(tsqueryout, TSQueryGetDatum(words))));

	written = DirectFunctionCall3Coll(replace_text, C_COLLATION_OID, written, CStringGetTextDatum(" & "), CStringGetTextDatum(" | "));
	return DatumGetTSQuery(DirectFunctionCall1(tsqueryin, CStringGetDatum(TextDatumGetCString(written))));
}

/* Turn a query into a tsquery. A query without a word to search for is an error. */
TSQuery
SearchWords(Call *call, const char *query, SearchWay way)
{
	Datum		config = ObjectIdGetDatum(SearchConfig());
	int			notices;
	TSQuery		words;

	CheckQuery(query);
	SearchPathLockFor(call);
	notices = NoticesAvoid();
	words = DatumGetTSQuery(DirectFunctionCall2(way == ANY_WORD ? plainto_tsquery_byid : websearch_to_tsquery_byid, config,
												CStringGetTextDatum(query)));
	SearchPathUnlock(&notices);
	if (words->size == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("query \"%s\" has no word to search for", query),
				 errdetail("Words such as \"the\" or \"and\" are in every text and are not searched for."),
				 errhint("%s", WaysHint[way])));
	return way == ANY_WORD ? AnyOf(words) : words;
}
