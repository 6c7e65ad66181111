/*
 * search.c
 *	  search_artifacts: search artifacts and final outputs, best match first
 *
 * The search is PostgreSQL's full text search in English. It covers the first
 * 250,000 characters of a text, or 65,000 if many of them take several bytes
 * (sql/58_artifact.sql). Of several versions of an artifact that match, the
 * newest is shown. Of the matches, the newest thousand artifacts and the newest
 * thousand outputs are ranked, and outputs by their first 20,000 characters: what
 * the ranking reads does not grow with what is stored.
 *
 * Ids are found by the indexes of words, and what is shown is read by id. A search
 * in a tree, and one that finds very many, run a query for the ids, which each new
 * connection has to plan.
 *
 * The shown fragments come from one window of the text. So the memory for them
 * does not grow with the text.
 */
#include "api/api.h"

#include "catalog/pg_collation_d.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "tsearch/ts_utils.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#define RANKED_AT_MOST	1000	/* artifacts, and as many outputs */
#define RANKED_CHARS	20000	/* of an output */
#define FOUND_AT_MOST	10000	/* artifacts or outputs whose ids are in memory; a query sorts more of them */

/* ---------- fragments of a text ---------- */

/*
 * ts_headline allocates memory for every candidate that it tries, and frees it
 * only at its end: a phrase in a log of 270 kB took 2.5 GB. So it gets only a
 * window of this size.
 */
#define WINDOW_BYTES	20000
#define WINDOW_OVERLAP	2000	/* finds a phrase that crosses the end of a window */
#define WORD_BYTES		100		/* a window is extended by at most this to not cut a word */

#define HEADLINE_CHARS	250000	/* of a text that are searched for fragments */
#define FRAGMENT_CHARS	500		/* of a fragment */
#define FRAGMENT_END	'\x1e'
#define HEADLINE_OPTIONS \
	"MaxFragments=3, MinWords=5, MaxWords=25, ShortWord=0, FragmentDelimiter=\"\x1e\""

/* how well a window fits a query */
typedef enum WindowFit
{
	FITS_NOT,
	FITS_WORD,					/* it contains a word of the query */
	FITS_QUERY					/* it matches the query */
} WindowFit;

/* Check whether a text contains any word of a query, even a negated one. */
bool
HasWord(TSVector vector, TSQuery query)
{
	QueryItem  *items = GETQUERY(query);
	WordEntry  *words = ARRPTR(vector);

	for (int i = 0; i < query->size; i++)
	{
		QueryOperand *operand = &items[i].qoperand;

		if (items[i].type != QI_VAL)
			continue;
		for (int j = 0; j < vector->size; j++)
			if (tsCompareString(GETOPERAND(query) + operand->distance, operand->length,
								STRPTR(vector) + words[j].pos, words[j].len, operand->prefix) == 0)
				return true;
	}
	return false;
}

/* Check how well a window fits the query. */
static WindowFit
FitOfWindow(Oid config, const char *start, int length, TSQuery query)
{
	Datum		vector = DirectFunctionCall2(to_tsvector_byid, ObjectIdGetDatum(config),
											 PointerGetDatum(cstring_to_text_with_len(start, length)));

	if (DatumGetBool(DirectFunctionCall2(ts_match_vq, vector, TSQueryGetDatum(query))))
		return FITS_QUERY;
	return HasWord(DatumGetTSVector(vector), query) ? FITS_WORD : FITS_NOT;
}

/* Find the end of the word at a position. Returns the position itself if the end is not near. */
static int
WordEnd(const char *content, int at, int length)
{
	for (int end = at; end < length && end < at + WORD_BYTES; end++)
		if (content[end] == ' ' || content[end] == '\n')
			return end;
	return Min(at, length);
}

/*
 * Find the first window that matches the query. If there is none, take the
 * first one with a word of the query; otherwise the first one.
 */
static WindowFit
FindWindow(Oid config, const char *content, int length, TSQuery query, int *from, int *to)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise headline", ALLOCSET_DEFAULT_SIZES);
	WindowFit	best = FITS_NOT;
	int			start = 0;

	*from = 0;
	*to = WordEnd(content, pg_mbcliplen(content, length, WINDOW_BYTES), length);
	while (start < length && best != FITS_QUERY)
	{
		int			end = WordEnd(content, start + pg_mbcliplen(content + start, length - start, WINDOW_BYTES), length);
		MemoryContext outer = MemoryContextSwitchTo(scratch);
		WindowFit	fit = FitOfWindow(config, content + start, end - start, query);

		MemoryContextSwitchTo(outer);
		MemoryContextReset(scratch);
		CHECK_FOR_INTERRUPTS();
		if (fit > best)
		{
			best = fit;
			*from = start;
			*to = end;
		}
		if (end == length)
			break;
		start = WordEnd(content, start + pg_mbcliplen(content + start, length - start, WINDOW_BYTES - WINDOW_OVERLAP), length);
	}
	MemoryContextDelete(scratch);
	return best;
}

/* Make a query that matches any word of the given one. */
static Datum
AnyWord(TSQuery query)
{
	QueryItem  *items = GETQUERY(query);
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < query->size; i++)
	{
		QueryOperand *operand = &items[i].qoperand;
		const char *word = GETOPERAND(query) + operand->distance;

		if (items[i].type != QI_VAL)
			continue;
		appendStringInfoString(&text, text.len ? " | '" : "'");
		for (uint32 j = 0; j < operand->length; j++)
		{
			if (word[j] == '\'' || word[j] == '\\')
				appendStringInfoChar(&text, word[j]);
			appendStringInfoChar(&text, word[j]);
		}
		appendStringInfoString(&text, operand->prefix ? "':*" : "'");
	}
	return DirectFunctionCall1(tsqueryin, CStringGetDatum(text.data));
}

/*
 * Find fragments of a text around the matches of a query, separated by
 * FRAGMENT_END. If the words of the query are too far apart for one window, find
 * fragments with some of them.
 */
static char *
Headline(Oid config, const struct varlena *content, TSQuery query)
{
	text	   *searched = DatumGetTextPP(DirectFunctionCall2(text_left, PointerGetDatum(content), Int32GetDatum(HEADLINE_CHARS)));
	int			from;
	int			to;
	WindowFit	fit = FindWindow(config, VARDATA_ANY(searched), VARSIZE_ANY_EXHDR(searched), query, &from, &to);

	return TextDatumGetCString(DirectFunctionCall4(ts_headline_byid_opt, ObjectIdGetDatum(config),
												   PointerGetDatum(cstring_to_text_with_len(VARDATA_ANY(searched) + from, to - from)),
												   fit == FITS_WORD ? AnyWord(query) : TSQueryGetDatum(query),
												   PointerGetDatum(cstring_to_text(HEADLINE_OPTIONS))));
}

/* Put the fragments of a text around the matches of a query. */
static void
PutFragments(JsonBuilder *b, Oid config, const struct varlena *content, TSQuery query)
{
	char	   *rest = Headline(config, content, query);

	JsonArrayStart(b, "fragments");
	while (rest != NULL && *rest != '\0')
	{
		char	   *end = strchr(rest, FRAGMENT_END);

		if (end != NULL)
			*end++ = '\0';
		JsonPutText(b, NULL, TextDatumGetCString(DirectFunctionCall2(text_left, CStringGetTextDatum(rest), Int32GetDatum(FRAGMENT_CHARS))));
		rest = end;
	}
	JsonArrayEnd(b);
}

/* ---------- matches ---------- */

/* a match, and what is shown of it */
typedef struct Match
{
	WholeArtifact *artifact;	/* NULL: a final output */
	pg_uuid_t	plan_id;
	float4		rank;
} Match;

/* Add the word that stands for the tenant to a query. */
static Datum
OfTenant(const Call *call, TSQuery query)
{
	int64		hash = DatumGetInt64(DirectFunctionCall2Coll(hashtextextended, C_COLLATION_OID, call->tenant_datum, Int64GetDatum(0)));
	Datum		tenant = DirectFunctionCall1(tsqueryin, CStringGetDatum(psprintf("'tenant " INT64_FORMAT "'", hash)));

	return DirectFunctionCall2(tsquery_and, TSQueryGetDatum(query), tenant);
}

/* Run a query that finds ids: all of the tenant, or those of a tree if plan_id is given. */
static List *
FindIds(Call *call, KeptQuery *of_all, KeptQuery *of_tree, Datum query, const pg_uuid_t *plan_id, int max)
{
	Params		params = {0};
	List	   *ids = NIL;
	Rows		rows;

	ParamTenant(&params, call);
	ParamDatum(&params, query);
	ParamInt(&params, max);
	if (plan_id != NULL)
		ParamUuid(&params, plan_id);
	rows = QueryRun(plan_id ? of_tree : of_all, &params);
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

		*id = RowUuid(&rows, i, 1);
		ids = lappend(ids, id);
	}
	RowsFree(&rows);
	return ids;
}

/* Compare ids: the newer one first. */
static int
IdsByAge(const ListCell *a, const ListCell *b)
{
	return memcmp(lfirst(b), lfirst(a), sizeof(pg_uuid_t));
}

/* Pick the newest ids of a list, at most max. */
static List *
NewestIds(List *ids, int max)
{
	list_sort(ids, IdsByAge);
	return list_truncate(ids, max);
}

/* Make the id of a plan from a row of stepwise.plan_detail. */
static void *
DetailPlanMake(TupleTableSlot *slot)
{
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

	*id = ColumnUuid(slot, DETAIL_COL_PLAN_ID);
	return id;
}

#define OUTPUT_MATCHES \
	" d.tenant = $1 AND d.final_output IS NOT NULL AND (pg_catalog.to_tsvector('pg_catalog.english', pg_catalog.left(d.final_output," \
	" CASE WHEN pg_catalog.octet_length(pg_catalog.left(d.final_output, 250000)) <= 260000 THEN 250000 ELSE 65000 END))" \
	" || pg_catalog.array_to_tsvector(ARRAY['tenant ' || pg_catalog.hashtextextended(d.tenant, 0)::text])) @@ $2"

/* List the newest plans whose final output matches, at most max: of a plan and those nested in it, or of all plans. */
List *
PlansByOutput(Call *call, TSQuery query, const pg_uuid_t *plan_id, int max)
{
	static KeptQuery of_all = {
		"SELECT d.plan_id FROM stepwise.plan_detail AS d WHERE" OUTPUT_MATCHES " ORDER BY d.plan_id DESC LIMIT $3",
		3, {TEXTOID, TSQUERYOID, INT4OID}, .quiet = true
	};
	static KeptQuery of_tree = {
		"SELECT d.plan_id FROM stepwise.plan_detail AS d JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = d.plan_id"
		" AND (p.id = $4 OR p.root_id = $4) WHERE" OUTPUT_MATCHES " ORDER BY d.plan_id DESC LIMIT $3",
		4, {TEXTOID, TSQUERYOID, INT4OID, UUIDOID}, .quiet = true
	};
	Datum		wanted = OfTenant(call, query);
	List	   *ids;

	if (plan_id == NULL && TableReadWords(call, "plan_detail", "plan_detail_search", wanted, DetailPlanMake, FOUND_AT_MOST, &ids))
		return NewestIds(ids, max);
	return FindIds(call, &of_all, &of_tree, wanted, plan_id, max);
}

/* an artifact that matches */
typedef struct FoundArtifact
{
	pg_uuid_t	id;
	pg_uuid_t	plan_id;
	int			version;
	char	   *name;			/* NULL: it was set to null */
} FoundArtifact;

/* Make a FoundArtifact from a row of stepwise.artifact. */
static void *
FoundMake(TupleTableSlot *slot)
{
	FoundArtifact *found = palloc(sizeof(FoundArtifact));

	found->id = ColumnUuid(slot, ARTIFACT_COL_ID);
	found->plan_id = ColumnUuid(slot, ARTIFACT_COL_PLAN_ID);
	found->version = ColumnInt(slot, ARTIFACT_COL_VERSION);
	found->name = ColumnText(slot, ARTIFACT_COL_NAME);
	return found;
}

/* Compare the plans and names of artifacts. */
static int
CompareNames(const FoundArtifact *one, const FoundArtifact *other)
{
	int			plans = memcmp(&one->plan_id, &other->plan_id, sizeof(pg_uuid_t));

	if (plans != 0)
		return plans;
	if (one->name == NULL || other->name == NULL)
		return (one->name == NULL) - (other->name == NULL);
	return strcmp(one->name, other->name);
}

/* Compare artifacts by plan and name, and then the newer version first. */
static int
FoundByVersion(const ListCell *a, const ListCell *b)
{
	const FoundArtifact *one = lfirst(a);
	const FoundArtifact *other = lfirst(b);
	int			names = CompareNames(one, other);

	if (names != 0)
		return names;
	return one->version > other->version ? -1 : one->version < other->version;
}

/* List the ids of the newest versions. */
static List *
NewestVersions(List *found)
{
	const FoundArtifact *last = NULL;
	List	   *ids = NIL;
	ListCell   *cell;

	list_sort(found, FoundByVersion);
	foreach(cell, found)
	{
		FoundArtifact *artifact = lfirst(cell);

		if (last == NULL || CompareNames(last, artifact) != 0)
			ids = lappend(ids, &artifact->id);
		last = artifact;
	}
	return ids;
}

#define ARTIFACTS_FOUND \
	"(SELECT DISTINCT ON (a.plan_id, a.name) a.id, a.plan_id FROM stepwise.artifact AS a" \
	" WHERE a.tenant = $1 AND a.search @@ $2 ORDER BY a.plan_id, a.name, a.version DESC) AS m"

/* List the newest artifacts that match. Of several versions, only the newest that matches counts. */
static List *
ArtifactsByWords(Call *call, TSQuery query, const pg_uuid_t *plan_id, int max)
{
	static KeptQuery of_all = {
		"SELECT m.id FROM " ARTIFACTS_FOUND " ORDER BY m.id DESC LIMIT $3",
		3, {TEXTOID, TSQUERYOID, INT4OID}, .quiet = true
	};
	static KeptQuery of_tree = {
		"SELECT m.id FROM " ARTIFACTS_FOUND " JOIN stepwise.plan AS p ON p.tenant = $1 AND p.id = m.plan_id"
		" AND (p.id = $4 OR p.root_id = $4) ORDER BY m.id DESC LIMIT $3",
		4, {TEXTOID, TSQUERYOID, INT4OID, UUIDOID}, .quiet = true
	};
	Datum		wanted = OfTenant(call, query);
	List	   *found;

	if (plan_id == NULL && TableReadWords(call, "artifact", "artifact_search", wanted, FoundMake, FOUND_AT_MOST, &found))
		return NewestIds(NewestVersions(found), max);
	return FindIds(call, &of_all, &of_tree, wanted, plan_id, max);
}

static float4
Rank(Datum words, TSQuery query)
{
	return DatumGetFloat4(DirectFunctionCall2(ts_rankcd_tt, words, TSQueryGetDatum(query)));
}

/* Rank a final output by its beginning. */
static float4
RankOutput(const struct varlena *output, Oid config, TSQuery query)
{
	Datum		beginning = DirectFunctionCall2(text_left, PointerGetDatum(output), Int32GetDatum(RANKED_CHARS));

	return Rank(DirectFunctionCall2(to_tsvector_byid, ObjectIdGetDatum(config), beginning), query);
}

/* Rank an artifact, or the final output of a plan if it is NULL. The words are read in scratch memory. */
static List *
MatchAdd(List *matches, Call *call, WholeArtifact *artifact, const pg_uuid_t *plan_id, Oid config, TSQuery query)
{
	Match	   *match = palloc0(sizeof(Match));
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise rank", ALLOCSET_DEFAULT_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(scratch);

	match->artifact = artifact;
	match->plan_id = *plan_id;
	match->rank = artifact ? Rank(PointerGetDatum(artifact->search), query)
		: RankOutput(PlanDetailRead(call, plan_id)->final_output, config, query);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(scratch);
	return lappend(matches, match);
}

/* Find and rank the artifacts and outputs that match. */
static List *
FindMatches(Call *call, Oid config, TSQuery query, const pg_uuid_t *plan_id)
{
	List	   *matches = NIL;
	ListCell   *cell;

	foreach(cell, ArtifactsByWords(call, query, plan_id, RANKED_AT_MOST))
	{
		WholeArtifact *artifact = ArtifactById(call, lfirst(cell));

		if (artifact != NULL)
			matches = MatchAdd(matches, call, artifact, &artifact->plan_id, config, query);
	}
	foreach(cell, PlansByOutput(call, query, plan_id, RANKED_AT_MOST))
		matches = MatchAdd(matches, call, NULL, lfirst(cell), config, query);
	return matches;
}

/* Compare matches: the better one first, then outputs, then the newer artifact. */
static int
MatchesByRank(const ListCell *a, const ListCell *b)
{
	const Match *one = lfirst(a);
	const Match *other = lfirst(b);

	if (one->rank != other->rank)
		return one->rank > other->rank ? -1 : 1;
	if ((one->artifact == NULL) != (other->artifact == NULL))
		return one->artifact == NULL ? -1 : 1;
	if (one->artifact != NULL)
		return memcmp(&other->artifact->id, &one->artifact->id, sizeof(pg_uuid_t));
	return memcmp(&one->plan_id, &other->plan_id, sizeof(pg_uuid_t));
}

/* ---------- the answer ---------- */

/* Put what an artifact has and an output has not. */
static void
PutArtifact(JsonBuilder *b, Call *call, const WholeArtifact *a)
{
	char	   *name = a ? TextOf(a->name) : NULL;
	const WholeArtifact *newest = a ? ArtifactVersion(call, &a->plan_id, name, NULL) : NULL;

	JsonPutText(b, "kind", a ? "artifact" : "output");
	JsonPutUuid(b, "artifactId", a ? &a->id : NULL);
	JsonPutUuid(b, "stepId", a && a->has_step ? &a->step_id : NULL);
	JsonPutText(b, "name", a ? name : "output");
	JsonPutPositive(b, "version", a ? a->version : 0);
	JsonPutPositive(b, "newestVersion", newest ? newest->version : 0);
	JsonPutTime(b, "createdAt", a ? a->created_at : NO_TIME);
	JsonPutText(b, "sourceUrl", a && a->source_url ? CutField(a->source_url, 300, "get_artifact") : NULL);
}

/* Build a match as the answer shows it. */
static Jsonb *
MatchBrief(Call *call, const Match *match, Oid config, TSQuery query)
{
	const WholeArtifact *a = match->artifact;
	const DetailRow *detail = a ? NULL : PlanDetailRead(call, &match->plan_id);
	const struct varlena *content = a ? a->content : detail->final_output;
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutArtifact(&b, call, a);
	JsonPutUuid(&b, "planId", &match->plan_id);
	JsonPutText(&b, "planName", PlanMustRead(call, &match->plan_id)->name);
	JsonPutText(&b, "mediaType", TextOf(a ? a->media_type : detail->final_media_type));
	JsonPutInt(&b, "size", RawSize(content) - VARHDRSZ);
	PutRank(&b, match->rank);
	PutFragments(&b, config, content, query);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Search a plan and the plans nested in it; all plans if plan_id is NULL. */
static Jsonb *
SearchArtifacts(Call *call, const char *given, const pg_uuid_t *plan_id, int max)
{
	Oid			config = SearchConfig();
	List	   *items = NIL;
	List	   *matches;
	TSQuery		query;
	int			notices;

	if (plan_id != NULL)
		(void) PlanMustRead(call, plan_id);
	query = SearchWords(call, given, ALL_WORDS);
	notices = NoticesAvoid();
	matches = FindMatches(call, config, query, plan_id);
	list_sort(matches, MatchesByRank);
	for (int i = 0; i < Min(list_length(matches), max); i++)
		items = ItemAdd(items, &((Match *) list_nth(matches, i))->plan_id, MatchBrief(call, list_nth(matches, i), config, query));
	SearchPathUnlock(&notices);
	return FoundItems(given, "results", items, list_length(matches), max);
}

/* Search artifacts and final outputs, best match first. */
PG_FUNCTION_INFO_V1(stepwise_search_artifacts);
Datum
stepwise_search_artifacts(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, SearchArtifacts(&call, ArgumentText(fcinfo, 0), ArgumentUuid(fcinfo, 1), ArgumentMax(fcinfo, 2, 20)));
}
