/*
 * artifact.c
 *	  what a plan produces beside results: artifacts and the final output
 *
 * Artifacts and the final output may be stored at any time, even after the
 * plan has ended: a report is often written last. An artifact of a name that
 * the plan has already is the next version of it; each version is a row of its
 * own. The lock of the tree keeps two sessions from taking the same number.
 */
#include "api/api.h"

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

/*
 * Insert an artifact as the next version of its name; returns the version. The
 * executor makes the column of its words.
 */
static int
InsertArtifact(Call *call, const PlanRow *plan, const Artifact *a)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.artifact (tenant, id, plan_id, step_id, name, media_type, content, data, source_url, version)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
		10, {TEXTOID, UUIDOID, UUIDOID, UUIDOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID, TEXTOID, INT4OID}
	};
	const WholeArtifact *newest = ArtifactVersion(call, &plan->id, a->name, NULL);
	int			version = newest ? newest->version + 1 : 1;
	Params		params = {0};

	ParamKey(&params, call, &a->id);
	ParamUuid(&params, &plan->id);
	ParamUuid(&params, a->step_id);
	ParamText(&params, a->name);
	ParamText(&params, a->media_type);
	ParamText(&params, a->content);
	ParamVarlena(&params, a->data);
	ParamText(&params, a->source_url);
	ParamInt(&params, version);
	QueryRun(&insert, &params);
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
	JsonPutInt(&b, "size", content ? strlen(content) : 0);
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
	bool		replaces = PlanDetailRead(call, &plan->id)->final_output != NULL;
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
	const DetailRow *detail = PlanDetailRead(call, &plan->id);
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
