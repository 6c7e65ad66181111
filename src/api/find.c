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
 * Each query returns the id and the item of each row, newest or best first,
 * and a search also returns the number of all matches. Nothing is locked; one
 * snapshot serves the whole answer.
 */
#include "api/api.h"

#define QUERY_MAX_BYTES	2000	/* so no word is too long for a tsquery */
#define QUERY_SHOWN		200		/* bytes of it in the answer */
#define ITEM_BYTES		760		/* fifty items of this size fit into 40 kB, with what is around them */
#define ITEMS_AT_LEAST	50		/* of that size, whatever was asked for */
#define LOOK_AT_MOST	20000	/* plans, in one call of list_plans */
#define SEARCH_AT_MOST	2000	/* open plans, and as many ended ones, in one call of find_plans */

/* columns of every query below */
enum
{
	ITEM_ID = 1, ITEM_JSON, ITEM_MATCHES
};

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

/*
 * Put the items of a list, at most max of them, and only as many as fit. At
 * least one is put. Returns how many were put.
 */
static uint64
PutItems(JsonBuilder *b, const char *key, const Rows *rows, int max)
{
	size_t		room = (size_t) ITEM_BYTES * Max(max, ITEMS_AT_LEAST);
	uint64		n;

	JsonArrayStart(b, key);
	for (n = 0; n < rows->count && n < (uint64) max; n++)
	{
		Jsonb	   *item = RowJson(rows, n, ITEM_JSON);
		size_t		size = strlen(JsonToText(item));

		if (n > 0 && size > room)
			break;
		room -= Min(room, size);
		JsonPutJson(b, NULL, item);
	}
	JsonArrayEnd(b);
	return n;
}

/*
 * Build a page. The query was asked for one row more than max, so that we know
 * whether there are more. If not, "beyond" is the cursor, or NULL for none.
 */
static Jsonb *
PageAnswer(const char *key, const Rows *rows, int max, const pg_uuid_t *beyond)
{
	JsonBuilder b = {0};
	uint64		shown;
	pg_uuid_t	last;

	JsonObjectStart(&b, NULL);
	shown = PutItems(&b, key, rows, max);
	if (shown < rows->count)
	{
		last = RowUuid(rows, shown - 1, ITEM_ID);
		beyond = &last;
	}
	JsonPutUuid(&b, "next", beyond);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the answer of a search. Its rows also have the number of all matches. */
Jsonb *
FoundAnswer(const char *query, const char *key, const Rows *rows, int max)
{
	JsonBuilder b = {0};
	bool		isnull;

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "query", CutText(query, QUERY_SHOWN, NULL));
	PutItems(&b, key, rows, max);
	JsonPutInt(&b, "count", rows->count > 0 ? DatumGetInt64(RowDatum(rows, 0, ITEM_MATCHES, &isnull)) : 0);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* ---------- list_active_plans ---------- */

static Jsonb *
ListActivePlans(Call *call, const char *status, const char *session, const pg_uuid_t *after, int max)
{
	static KeptQuery list = {
		"SELECT p.id, stepwise.plan_brief(p) FROM stepwise.plan AS p"
		" WHERE p.tenant = $1 AND p.completed_at IS NULL AND p.parent_step_id IS NULL"
		" AND p.id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff')"
		" AND ($3 IS NULL OR p.status = $3::stepwise.plan_status) AND ($4 IS NULL OR p.session_id = $4)"
		" ORDER BY p.id DESC LIMIT $5",
		5, {TEXTOID, UUIDOID, TEXTOID, TEXTOID, INT4OID}, .in_order = true
	};
	Params		params = {0};
	Rows		rows;

	CheckPlanStatus(status);
	ParamKey(&params, call, after);
	ParamText(&params, status);
	ParamText(&params, session);
	ParamInt(&params, max + 1);
	rows = QueryRun(&list, &params);
	return PageAnswer("plans", &rows, max, NULL);
}

/* List unfinished plans, newest first, page by page. */
PG_FUNCTION_INFO_V1(stepwise_list_active_plans);
Datum
stepwise_list_active_plans(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, ListActivePlans(&call, ArgumentText(fcinfo, 0), ArgumentText(fcinfo, 1), ArgumentAfter(fcinfo, 2),
										  ArgumentMax(fcinfo, 3, 50)));
}

/* ---------- list_plans ---------- */

/* arguments of list_plans, in their order */
enum
{
	LP_STATUS, LP_SESSION, LP_WORKFLOW, LP_AFTER, LP_MAX
};

/* Find the last plan that one call looks at; false if it comes to the end before. */
static bool
LastLooked(Call *call, const pg_uuid_t *after, pg_uuid_t *last)
{
	static KeptQuery find = {
		"SELECT p.id FROM stepwise.plan AS p"
		" WHERE p.tenant = $1 AND p.parent_step_id IS NULL AND p.id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff')"
		" ORDER BY p.id DESC OFFSET " CppAsString2(LOOK_AT_MOST) " - 1 LIMIT 1",
		2, {TEXTOID, UUIDOID}, .in_order = true
	};
	Rows		rows = QueryById(call, &find, after);
	bool		found = rows.count > 0;

	if (found)
		*last = RowUuid(&rows, 0, ITEM_ID);
	RowsFree(&rows);
	return found;
}

static Jsonb *
ListPlans(Call *call, FunctionCallInfo fcinfo)
{
	static KeptQuery list = {
		"SELECT p.id, stepwise.plan_brief(p) FROM ("
		"SELECT l.id FROM ("
		"SELECT p.id, p.status, p.session_id, p.workflow FROM stepwise.plan AS p"
		" WHERE p.tenant = $1 AND p.parent_step_id IS NULL AND p.id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff')"
		" ORDER BY p.id DESC LIMIT " CppAsString2(LOOK_AT_MOST) ") AS l"
		" WHERE ($3 IS NULL OR l.status = $3::stepwise.plan_status)"
		" AND ($4 IS NULL OR l.session_id = $4) AND ($5 IS NULL OR l.workflow = $5)"
		" ORDER BY l.id DESC LIMIT $6) AS f"
		" JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = f.id ORDER BY p.id DESC",
		6, {TEXTOID, UUIDOID, TEXTOID, TEXTOID, TEXTOID, INT4OID}, .in_order = true
	};
	pg_uuid_t  *after = ArgumentAfter(fcinfo, LP_AFTER);
	char	   *status = ArgumentText(fcinfo, LP_STATUS);
	char	   *session = ArgumentText(fcinfo, LP_SESSION);
	char	   *workflow = ArgumentText(fcinfo, LP_WORKFLOW);
	int			max = ArgumentMax(fcinfo, LP_MAX, 50);
	Params		params = {0};
	pg_uuid_t	last;
	Rows		rows;

	CheckPlanStatus(status);
	ParamKey(&params, call, after);
	ParamText(&params, status);
	ParamText(&params, session);
	ParamText(&params, workflow);
	ParamInt(&params, max + 1);
	rows = QueryRun(&list, &params);
	return PageAnswer("plans", &rows, max, rows.count <= (uint64) max && LastLooked(call, after, &last) ? &last : NULL);
}

/* List plans, finished ones too, newest first, page by page. */
PG_FUNCTION_INFO_V1(stepwise_list_plans);
Datum
stepwise_list_plans(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, ListPlans(&call, fcinfo));
}

/* ---------- list_checkpoints ---------- */

static Jsonb *
ListCheckpoints(Call *call, const pg_uuid_t *after, int max)
{
	static KeptQuery list = {
		"SELECT c.checkpoint_id, pg_catalog.jsonb_build_object('checkpointId', c.checkpoint_id, 'planId', c.plan_id,"
		" 'rootPlanId', c.root_plan_id, 'planName', r.name, 'stepId', c.step_id, 'path', c.path, 'kind', c.kind, 'gate', c.gate,"
		" 'since', stepwise.time_text(c.since), 'prompt', stepwise.cut_text(c.prompt, 300, 'get_step_context'),"
		" 'questions', stepwise.cut_json(c.questions, 200, 'get_step_context', 'step_id', c.step_id::text, 'max_bytes'))"
		" FROM stepwise.checkpoints AS c JOIN stepwise.plan AS r ON r.tenant = $1 AND r.id = c.root_plan_id"
		" WHERE c.tenant = $1 AND c.checkpoint_id < coalesce($2, 'ffffffff-ffff-ffff-ffff-ffffffffffff')"
		" ORDER BY c.checkpoint_id DESC LIMIT $3",
		3, {TEXTOID, UUIDOID, INT4OID}, .in_order = true
	};
	Params		params = {0};
	Rows		rows;

	ParamKey(&params, call, after);
	ParamInt(&params, max + 1);
	rows = QueryRun(&list, &params);
	return PageAnswer("checkpoints", &rows, max, NULL);
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

/* Turn a query into the text of a tsquery. A query without a word to search for is an error. */
char *
SearchWords(Call *call, const char *query, SearchWay way)
{
	/* plainto_tsquery joins all words by "and" */
	static KeptQuery parse = {
		"SELECT CASE WHEN $2 THEN replace(plainto_tsquery('pg_catalog.english', $1)::text, ' & ', ' | ')"
		" ELSE websearch_to_tsquery('pg_catalog.english', $1)::text END",
		2, {TEXTOID, BOOLOID}, .quiet = true
	};
	Params		params = {0};
	Rows		rows;
	char	   *words;

	CheckQuery(query);
	params.call = call;
	ParamText(&params, query);
	ParamBool(&params, way == ANY_WORD);
	rows = QueryRun(&parse, &params);
	words = RowText(&rows, 0, 1);
	RowsFree(&rows);
	if (*words == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("query \"%s\" has no word to search for", query),
				 errdetail("Words such as \"the\" or \"and\" are in every text and are not searched for."),
				 errhint("%s", WaysHint[way])));
	return words;
}

/* Choose the root plans of which the words are searched, as an array of ids: the newest open ones, and the last that ended. */
static Datum
PlansToSearch(Call *call)
{
	static KeptQuery choose = {
		"SELECT ARRAY("
		"(SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.completed_at IS NULL AND p.parent_step_id IS NULL"
		" ORDER BY p.id DESC LIMIT " CppAsString2(SEARCH_AT_MOST) ")"
		" UNION ALL "
		"(SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.completed_at IS NOT NULL AND p.parent_step_id IS NULL"
		" ORDER BY p.completed_at DESC LIMIT " CppAsString2(SEARCH_AT_MOST) "))",
		1, {TEXTOID}, .in_order = true
	};
	Rows		rows = QueryOfTenant(call, &choose);
	bool		isnull;

	return RowDatum(&rows, 0, 1, &isnull);
}

static Jsonb *
FindPlans(Call *call, const char *query, int max)
{
	static KeptQuery find = {
		"SELECT f.id, f.item, f.count FROM stepwise.found_plans($1, $2, $3, $4) AS f",
		4, {TEXTOID, TEXTOID, UUIDARRAYOID, INT4OID}, .quiet = true
	};
	Params		params = {0};
	Rows		rows;

	ParamTenant(&params, call);
	ParamText(&params, SearchWords(call, query, ANY_WORD));
	ParamDatum(&params, PlansToSearch(call));
	ParamInt(&params, max);
	rows = QueryRun(&find, &params);
	return FoundAnswer(query, "plans", &rows, max);
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
