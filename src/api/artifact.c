/*
 * artifact.c
 *	  what a plan produces beside results: artifacts, the final output, and the search over them
 *
 * Artifacts and the final output may be stored at any time, even after the
 * plan has ended: a report is often written last. An artifact of a name that
 * the plan has already is the next version of it; each version is a row of its
 * own. The lock of the tree keeps two sessions from taking the same number.
 *
 * The search is PostgreSQL's full text search in English. It covers the first
 * 250,000 characters of a text, or 65,000 if many of them take several bytes
 * (sql/58_artifact.sql). The shown fragments come from one window of the text.
 * So the memory for them does not grow with the text. Of several versions that
 * match, the newest is shown; at most a thousand artifacts are ranked.
 */
#include "api/api.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "tsearch/ts_type.h"
#include "tsearch/ts_utils.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"

/* ---------- checks ---------- */

static void
CheckContent(const char *content)
{
	CheckNotBlank(content, "content");
	CheckTextLimit(content, "content");
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
ArgumentArtifact(const Call *call, FunctionCallInfo fcinfo)
{
	Artifact	a = {0};

	a.id = IdNew(call);
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

/* Insert an artifact as the next version of its name; returns the version. */
static int
InsertArtifact(Call *call, const PlanRow *plan, const Artifact *a)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.artifact (tenant, id, plan_id, step_id, name, media_type, content, data, source_url, version)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1 + coalesce("
		"(SELECT max(o.version) FROM stepwise.artifact AS o WHERE o.tenant = $1 AND o.plan_id = $3 AND o.name = $5), 0))"
		" RETURNING version",
		9, {TEXTOID, UUIDOID, UUIDOID, UUIDOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, TEXTOID}
	};
	Params		params = {0};
	Rows		rows;
	int			version;

	ParamKey(&params, call, &a->id);
	ParamUuid(&params, &plan->id);
	ParamUuid(&params, a->step_id);
	ParamText(&params, a->name);
	ParamText(&params, a->media_type);
	ParamText(&params, a->content);
	ParamVarlena(&params, a->data);
	ParamText(&params, a->source_url);
	rows = QueryRun(&insert, &params);
	version = RowInt(&rows, 0, 1);
	RowsFree(&rows);
	return version;
}

/* Describe an artifact, for the audit log and the answer. */
static Jsonb *
ArtifactBrief(const Artifact *a, int version)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "artifactId", &a->id);
	JsonPutText(&b, "name", a->name);
	JsonPutInt(&b, "version", version);
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

	JsonObjectStart(&b, NULL);
	if (step != NULL)
		PutStepAnswer(&b, plan, step);
	else
		PutPlanAnswer(&b, plan);
	JsonObjectEnd(&b);
	return JsonMerge(JsonFinish(&b), brief);
}

/* Store an artifact under the lock of the tree, since it is audited. The step may be in another plan of the tree. */
static Jsonb *
StoreArtifact(Call *call, const pg_uuid_t *plan_id, const Artifact *a)
{
	PlanRow    *plan = PlanLock(call, plan_id);
	StepRow    *step = a->step_id ? StepRead(call, a->step_id) : NULL;
	Jsonb	   *brief;

	if (a->step_id != NULL && (step == NULL || !UuidEqual(&step->root_id, &plan->root_id)))
		StepNotFound(a->step_id);
	brief = ArtifactBrief(a, InsertArtifact(call, plan, a));
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
	a = ArgumentArtifact(&call, fcinfo);
	return CallEnd(&call, StoreArtifact(&call, ArgumentUuid(fcinfo, SA_PLAN), &a));
}

/* ---------- get_artifact ---------- */

#define NAMES_IN_HINT	20
#define VERSIONS_SHOWN	50
#define WHOLE_HINT \
	"Read it in parts, by plain SQL: substr(content, 1, 100000) from stepwise.artifact, substr(final_output, 1, 100000) from stepwise.plan_detail."

/* Say which artifacts a plan has, for a hint. */
static char *
ArtifactsHint(Call *call, const pg_uuid_t *plan_id)
{
	static KeptQuery list = {
		"SELECT pg_catalog.string_agg(pg_catalog.format('\"%s\" (version %s)', x.name, x.version), ', ' ORDER BY x.name)"
		" FROM (SELECT a.name, pg_catalog.max(a.version) AS version FROM stepwise.artifact AS a"
		" WHERE a.tenant = $1 AND a.plan_id = $2 GROUP BY a.name ORDER BY a.name LIMIT $3) AS x",
		3, {TEXTOID, UUIDOID, INT4OID}
	};
	Params		params = {0};
	Rows		rows;
	char	   *names;

	ParamKey(&params, call, plan_id);
	ParamInt(&params, NAMES_IN_HINT);
	rows = QueryRun(&list, &params);
	names = RowText(&rows, 0, 1);
	RowsFree(&rows);
	if (names == NULL)
		return "The plan has no artifact; stepwise.search_artifacts searches those of all plans.";
	return psprintf("The plan has, with their newest versions: %s.", names);
}

pg_noreturn static void
ArtifactNotFound(Call *call, const pg_uuid_t *plan_id, const char *name, const int *version)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_DEFINITION),
			 version == NULL ? errmsg("the plan has no artifact \"%s\"", ShortText(name))
			 : errmsg("the plan has no version %d of artifact \"%s\"", *version, ShortText(name)),
			 errhint("%s", ArtifactsHint(call, plan_id))));
}

/* Put the numbers of the versions that there are, at most the newest of them. */
static void
PutVersions(JsonBuilder *b, int newest)
{
	JsonArrayStart(b, "versions");
	for (int version = Max(1, newest - VERSIONS_SHOWN + 1); version <= newest; version++)
		JsonPutInt(b, NULL, version);
	JsonArrayEnd(b);
}

/* Build the answer of get_artifact: the artifact, whole. */
static Jsonb *
GetArtifact(Call *call, const PlanRow *plan, const char *name, const int *version)
{
	const WholeArtifact *newest = ArtifactVersion(call, &plan->id, name, NULL);
	const WholeArtifact *a = version == NULL ? newest : ArtifactVersion(call, &plan->id, name, version);
	JsonBuilder b = {0};
	char	   *content;

	if (newest == NULL || a == NULL)
		ArtifactNotFound(call, &plan->id, name, newest == NULL ? NULL : version);
	AnswerTake(call, RawSize(a->content) + RawSize(a->data) + RawSize(a->source_url), WHOLE_HINT);
	content = TextOf(a->content);
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "artifactId", &a->id);
	JsonPutUuid(&b, "planId", &plan->id);
	JsonPutUuid(&b, "stepId", a->has_step ? &a->step_id : NULL);
	JsonPutText(&b, "name", name);
	JsonPutInt(&b, "version", a->version);
	PutVersions(&b, newest->version);
	JsonPutText(&b, "mediaType", TextOf(a->media_type));
	JsonPutText(&b, "sourceUrl", TextOf(a->source_url));
	JsonPutTime(&b, "createdAt", a->created_at);
	JsonPutInt(&b, "size", strlen(content));
	JsonPutText(&b, "content", content);
	JsonPutJson(&b, "data", JsonOf(a->data));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Show an artifact of a plan, whole: its newest version, or the one given. */
PG_FUNCTION_INFO_V1(stepwise_get_artifact);
Datum
stepwise_get_artifact(PG_FUNCTION_ARGS)
{
	Call		call;
	char	   *name;
	int			version = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT32(2);

	CallBeginReading(&call);
	name = ArgumentText(fcinfo, 1);
	CheckTitle(name, "name");
	return CallEnd(&call, GetArtifact(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0)), name,
									  PG_ARGISNULL(2) ? NULL : &version));
}

/* ---------- store_output ---------- */

/* Write the final output; returns true if it replaced another. */
static bool
WriteOutput(Call *call, const PlanRow *plan, const char *content, const char *media_type)
{
	bool		replaces = DetailOf(call, &plan->id)->final_output != NULL;
	Changes		c = {0};

	SetText(&c, DETAIL_COL_FINAL_OUTPUT, content);
	SetText(&c, DETAIL_COL_FINAL_MEDIA_TYPE, media_type);
	DetailUpdate(call, &plan->id, &c);
	return replaces;
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

/* ---------- get_output ---------- */

/* Build the answer of get_output: the final output, whole. Its content is null while there is none. */
static Jsonb *
GetOutput(Call *call, const PlanRow *plan)
{
	const ListedDetail *detail = DetailOf(call, &plan->id);
	JsonBuilder b = {0};
	char	   *content;

	AnswerTake(call, RawSize(detail->final_output), WHOLE_HINT);
	content = TextOf(detail->final_output);
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "planId", &plan->id);
	JsonPutText(&b, "planStatus", PlanStatusName[plan->status]);
	JsonPutText(&b, "mediaType", TextOf(detail->final_media_type));
	JsonPutInt(&b, "size", content ? strlen(content) : 0);
	JsonPutText(&b, "content", content);
	if (content == NULL)
		JsonPutText(&b, "message", CallerMayWrite(call) ? "the plan has no final output; stepwise.store_output stores one"
					: "the plan has no final output");
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Show the final output of a plan, whole. */
PG_FUNCTION_INFO_V1(stepwise_get_output);
Datum
stepwise_get_output(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, GetOutput(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0))));
}

/* ---------- search_artifacts ---------- */

/* Search a plan and the plans nested in it; all plans if plan_id is NULL. */
static Jsonb *
SearchArtifacts(Call *call, const char *query, const pg_uuid_t *plan_id, int max)
{
	static KeptQuery search = {
		"SELECT f.id, f.item, f.count FROM stepwise.found_artifacts($1, $2, $3, $4) AS f",
		4, {TEXTOID, TEXTOID, UUIDOID, INT4OID}, .quiet = true
	};
	Params		params = {0};
	Rows		rows;

	if (plan_id != NULL)
		(void) PlanMustRead(call, plan_id);
	ParamTenant(&params, call);
	ParamText(&params, SearchWords(call, query, ALL_WORDS));
	ParamUuid(&params, plan_id);
	ParamInt(&params, max);
	rows = QueryRun(&search, &params);
	return FoundAnswer(query, "results", &rows, max);
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
