/*
 * artifact.c
 *	  what a plan produces beside results: artifacts, the final output, and the search over them
 *
 * Artifacts and the final output may be stored at any time, even after the
 * plan has ended: a report is often written last. Several artifacts may have
 * the same name; each one is a row of its own.
 *
 * The search is PostgreSQL's full text search in English. It covers the first
 * 250,000 characters of a text, or 65,000 if many of them take several bytes
 * (sql/58_artifact.sql). The shown fragments come from one window of the text.
 * So the memory for them does not grow with the text.
 */
#include "api/api.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "tsearch/ts_type.h"
#include "tsearch/ts_utils.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

#define QUERY_MAX_BYTES		2000	/* so no word is too long for a tsquery */

/* ---------- checks ---------- */

static void
CheckContent(const char *content)
{
	CheckNotBlank(content, "content");
	CheckTextLimit(content, "content");
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

/* Refuse a query without a word to search for. The search returns no row then. */
static void
CheckSearchable(const Jsonb *found, const char *query)
{
	if (found == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("query \"%s\" has no word to search for", query),
				 errdetail("Words such as \"the\" or \"and\" are in every text and are not searched for."),
				 errhint("Use words that say what you look for; \"quotes\" mean a phrase, - leaves a word out, or means either.")));
}

/* ---------- store_artifact ---------- */

/* arguments of store_artifact, in their order */
enum
{
	SA_PLAN, SA_NAME, SA_CONTENT, SA_STEP, SA_MEDIA_TYPE, SA_DATA, SA_SOURCE_URL
};

typedef struct Artifact
{
	pg_uuid_t	id;
	char	   *name;
	char	   *content;
	pg_uuid_t  *step_id;		/* or NULL */
	char	   *media_type;		/* or NULL */
	Jsonb	   *data;			/* or NULL */
	char	   *source_url;		/* or NULL */
} Artifact;

/* Read and check the arguments of store_artifact. */
static Artifact
ArgumentArtifact(FunctionCallInfo fcinfo)
{
	Artifact	a = {0};

	a.id = UuidNew();
	a.name = ArgumentText(fcinfo, SA_NAME);
	a.content = ArgumentText(fcinfo, SA_CONTENT);
	a.step_id = ArgumentUuid(fcinfo, SA_STEP);
	a.media_type = ArgumentText(fcinfo, SA_MEDIA_TYPE);
	a.data = ArgumentJson(fcinfo, SA_DATA);
	a.source_url = ArgumentText(fcinfo, SA_SOURCE_URL);
	CheckTitle(a.name, "name");
	CheckContent(a.content);
	CheckOptionalTitle(a.media_type, "media_type");
	CheckJsonLimits(a.data, "data");
	CheckTextLimit(a.source_url, "source_url");
	return a;
}

static void
InsertArtifact(Call *call, const PlanRow *plan, const Artifact *a)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.artifact (tenant, id, plan_id, step_id, name, media_type, content, data, source_url)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
		9, {TEXTOID, UUIDOID, UUIDOID, UUIDOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, TEXTOID}
	};
	Params		params = {0};

	ParamKey(&params, call, &a->id);
	ParamUuid(&params, &plan->id);
	ParamUuid(&params, a->step_id);
	ParamText(&params, a->name);
	ParamText(&params, a->media_type);
	ParamText(&params, a->content);
	ParamVarlena(&params, a->data);
	ParamText(&params, a->source_url);
	QueryRun(&insert, &params);
}

/* Describe an artifact, for the audit log and the answer. */
static Jsonb *
ArtifactBrief(const Artifact *a)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "artifactId", &a->id);
	JsonPutText(&b, "name", a->name);
	JsonPutText(&b, "mediaType", a->media_type);
	JsonPutInt(&b, "size", strlen(a->content));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build digests of an artifact for the audit log. verify_audit compares them with the stored values. */
static Jsonb *
ArtifactDigests(const Artifact *a)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "contentDigest", DigestOfText(a->content));
	if (a->data != NULL)
		JsonPutText(&b, "dataDigest", DigestText(a->data));
	if (a->source_url != NULL)
		JsonPutText(&b, "sourceUrlDigest", DigestOfText(a->source_url));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Audit that an artifact or an output was stored. */
static void
AuditStored(Call *call, PlanRow *plan, const pg_uuid_t *step_id, const char *action, const Jsonb *brief, const Jsonb *digests)
{
	AuditAppend(call, plan, step_id, "plan_modified", JsonMerge(JsonMerge(JsonTextOf("action", action), brief), digests));
}

/* Build the answer of store_artifact or store_output; step is NULL if none was given. */
static Jsonb *
StoredAnswer(const PlanRow *plan, const StepRow *step, const Jsonb *brief)
{
	JsonBuilder b = {0};

	if (step != NULL)
		return JsonMerge(StepAnswer(plan, step), brief);
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "planId", &plan->id);
	JsonPutText(&b, "planStatus", PlanStatusName[plan->status]);
	JsonObjectEnd(&b);
	return JsonMerge(JsonFinish(&b), brief);
}

/* Store an artifact under the lock of the tree, since it is audited. */
static Jsonb *
StoreArtifact(Call *call, const pg_uuid_t *plan_id, const Artifact *a)
{
	PlanRow    *plan = PlanLock(call, plan_id);
	StepRow    *step = a->step_id ? StepRead(call, a->step_id) : NULL;
	Jsonb	   *brief = ArtifactBrief(a);

	if (a->step_id != NULL && (step == NULL || !UuidEqual(&step->plan_id, &plan->id)))
		StepNotFound(a->step_id);
	InsertArtifact(call, plan, a);
	AuditStored(call, plan, a->step_id, "artifact_stored", brief, ArtifactDigests(a));
	return StoredAnswer(plan, step, brief);
}

/* Store a text that a plan or one of its steps has produced. */
PG_FUNCTION_INFO_V1(stepwise_store_artifact);
Datum
stepwise_store_artifact(PG_FUNCTION_ARGS)
{
	Call		call;
	Artifact	a;

	CallBegin(&call);
	a = ArgumentArtifact(fcinfo);
	return CallEnd(&call, StoreArtifact(&call, ArgumentUuid(fcinfo, SA_PLAN), &a));
}

/* ---------- store_output ---------- */

/* Write the final output; returns true if it replaced another. */
static bool
WriteOutput(Call *call, const PlanRow *plan, const char *content, const char *media_type)
{
	static KeptQuery write = {
		"UPDATE stepwise.plan_detail AS d SET final_output = $3, final_media_type = $4"
		" FROM stepwise.plan_detail AS o WHERE d.tenant = $1 AND d.plan_id = $2 AND o.tenant = $1 AND o.plan_id = $2"
		" RETURNING o.final_output IS NOT NULL",
		4, {TEXTOID, UUIDOID, TEXTOID, TEXTOID}
	};
	Params		params = {0};
	bool		replaced;
	Rows		rows;

	ParamKey(&params, call, &plan->id);
	ParamText(&params, content);
	ParamText(&params, media_type);
	rows = QueryRun(&write, &params);
	replaced = rows.count > 0 && RowBool(&rows, 0, 1);
	RowsFree(&rows);
	return replaced;
}

/* Store the final output under the lock of the tree, since it is audited. */
static Jsonb *
StoreOutput(Call *call, const pg_uuid_t *plan_id, const char *content, const char *media_type)
{
	PlanRow    *plan = PlanLock(call, plan_id);
	JsonBuilder b = {0};
	Jsonb	   *brief;

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "mediaType", media_type);
	JsonPutInt(&b, "size", strlen(content));
	JsonPutBool(&b, "replaced", WriteOutput(call, plan, content, media_type));
	JsonObjectEnd(&b);
	brief = JsonFinish(&b);
	AuditStored(call, plan, NULL, "output_stored", brief, JsonTextOf("contentDigest", DigestOfText(content)));
	return StoredAnswer(plan, NULL, brief);
}

/* Store the final output of a plan; it replaces an earlier one. */
PG_FUNCTION_INFO_V1(stepwise_store_output);
Datum
stepwise_store_output(PG_FUNCTION_ARGS)
{
	Call		call;
	char	   *content;
	char	   *media_type;

	CallBegin(&call);
	content = ArgumentText(fcinfo, 1);
	media_type = ArgumentText(fcinfo, 2);
	CheckContent(content);
	CheckTitle(media_type, "media_type");
	return CallEnd(&call, StoreOutput(&call, ArgumentUuid(fcinfo, 0), content, media_type));
}

/* ---------- search_artifacts ---------- */

/* Search a plan and the plans nested in it; all plans if plan_id is NULL. */
static Jsonb *
SearchArtifacts(Call *call, const char *query, const pg_uuid_t *plan_id, int max)
{
	static KeptQuery search = {
		"SELECT j FROM stepwise.search_artifacts_json($1, $2, $3, $4) AS j",
		4, {TEXTOID, TEXTOID, UUIDOID, INT4OID}
	};
	Params		params = {0};
	Jsonb	   *found;

	if (plan_id != NULL)
		(void) PlanMustRead(call, plan_id);
	ParamTenant(&params, call);
	ParamText(&params, query);
	ParamUuid(&params, plan_id);
	ParamInt(&params, max);
	found = QueryJson(&search, &params);
	CheckSearchable(found, query);
	return found;
}

/* Search artifacts and final outputs, best match first. */
PG_FUNCTION_INFO_V1(stepwise_search_artifacts);
Datum
stepwise_search_artifacts(PG_FUNCTION_ARGS)
{
	Call		call;
	char	   *query;

	CallBeginReading(&call);
	query = ArgumentText(fcinfo, 0);
	CheckQuery(query);
	return CallEnd(&call, SearchArtifacts(&call, query, ArgumentUuid(fcinfo, 1), ArgumentMax(fcinfo, 2, 20)));
}

/* ---------- fragments of a text ---------- */

/*
 * ts_headline allocates memory for every candidate that it tries, and frees it
 * only at its end: a phrase in a log of 270 kB took 2.5 GB. So it gets only a
 * window of this size.
 */
#define WINDOW_BYTES	20000
#define WINDOW_OVERLAP	2000	/* finds a phrase that crosses the end of a window */
#define WORD_BYTES		100		/* a window is extended by at most this to not cut a word */

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
static bool
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
 * Show fragments of a text around the matches of a query. If the words of the
 * query are too far apart for one window, show fragments with some of them.
 */
PG_FUNCTION_INFO_V1(stepwise_search_headline);
Datum
stepwise_search_headline(PG_FUNCTION_ARGS)
{
	Oid			config = PG_GETARG_OID(0);
	text	   *content = PG_GETARG_TEXT_PP(1);
	TSQuery		query = PG_GETARG_TSQUERY(2);
	int			from;
	int			to;
	WindowFit	fit = FindWindow(config, VARDATA_ANY(content), VARSIZE_ANY_EXHDR(content), query, &from, &to);

	return DirectFunctionCall4(ts_headline_byid_opt, ObjectIdGetDatum(config),
							   PointerGetDatum(cstring_to_text_with_len(VARDATA_ANY(content) + from, to - from)),
							   fit == FITS_WORD ? AnyWord(query) : TSQueryGetDatum(query),
							   PointerGetDatum(cstring_to_text(HEADLINE_OPTIONS)));
}
