/*
 * resources.c
 *	  the resources that clients can read: plans and what they have produced
 *
 * A URI names a plan and one view of it. A new view is a line in the table
 * Views, and a function that puts its contents.
 *
 * Lists go through the root plans, newest first. Their cursor is the id of the
 * last plan, so the cost of a page does not depend on the pages before it.
 */
#include "mcp/mcp.h"

#include "mb/pg_wchar.h"

#define PLAN_PREFIX		OWN_SCHEME "plan/"
#define UUID_LENGTH		36
#define PLANS_IN_PAGE	20
#define ARTIFACTS_SHOWN	50		/* of a plan in the list */
#define GOAL_BYTES		200		/* of the goal in the list */

/* ---------- names in URIs ---------- */

/* Encode a name for a URI. */
static char *
PercentEncode(const char *name)
{
	StringInfoData encoded;

	initStringInfo(&encoded);
	for (const unsigned char *c = (const unsigned char *) name; *c; c++)
	{
		if (isalnum(*c) && *c < 128)
			appendStringInfoChar(&encoded, *c);
		else if (strchr("-._~", *c) != NULL)
			appendStringInfoChar(&encoded, *c);
		else
			appendStringInfo(&encoded, "%%%02X", *c);
	}
	return encoded.data;
}

/* Decode a name of a URI; NULL if it is not valid. */
static char *
PercentDecode(const char *encoded)
{
	StringInfoData name;

	initStringInfo(&name);
	for (; *encoded; encoded++)
	{
		int			high = *encoded == '%' ? HexDigit(encoded[1]) : 0;
		int			low = *encoded == '%' && high >= 0 ? HexDigit(encoded[2]) : 0;

		if (high < 0 || low < 0 || (*encoded == '%' && high == 0 && low == 0))
			return NULL;
		appendStringInfoChar(&name, *encoded == '%' ? high * 16 + low : *encoded);
		encoded += *encoded == '%' ? 2 : 0;
	}
	return pg_verify_mbstr(GetDatabaseEncoding(), name.data, name.len, true) ? name.data : NULL;
}

/* ---------- what can be read ---------- */

static bool PutPlan(JsonBuilder *b, Request *request, const ResourceUri *uri);
static bool PutMarkdown(JsonBuilder *b, Request *request, const ResourceUri *uri);
static bool PutArtifact(JsonBuilder *b, Request *request, const ResourceUri *uri);
static bool PutOutput(JsonBuilder *b, Request *request, const ResourceUri *uri);

struct ResourceView
{
	const char *suffix;			/* after the id of the plan */
	bool		named;			/* a name follows */
	const char *template;
	const char *title;
	const char *description;
	const char *media_type;		/* NULL: it depends */
	bool		(*put) (JsonBuilder *b, Request *request, const ResourceUri *uri);	/* false: there is no such thing */
};

static const ResourceView Views[] = {
	{"", false, PLAN_PREFIX "{planId}", "Plan",
		"A plan with its steps, results, waits and artifacts, as JSON and as Markdown.", "application/json", PutPlan},
	{"/markdown", false, PLAN_PREFIX "{planId}/markdown", "Plan as Markdown",
		"A plan with its steps and results, for people to read.", "text/markdown", PutMarkdown},
	{"/artifact/", true, PLAN_PREFIX "{planId}/artifact/{name}", "Artifact",
		"A document of a plan; the newest one of that name.", NULL, PutArtifact},
	{"/output", false, PLAN_PREFIX "{planId}/output", "Final output",
		"The final output of a plan.", NULL, PutOutput}
};

/* Find a template by its text. Returns whether there is one. */
bool
IsResourceTemplate(const char *template)
{
	for (size_t i = 0; i < lengthof(Views); i++)
		if (strcmp(Views[i].template, template) == 0)
			return true;
	return false;
}

/* Read what follows the id of the plan. */
static bool
UriReadView(ResourceUri *uri, const char *rest)
{
	for (size_t i = 0; i < lengthof(Views); i++)
	{
		const ResourceView *view = &Views[i];
		size_t		length = strlen(view->suffix);

		if (view->named ? strncmp(rest, view->suffix, length) != 0 : strcmp(rest, view->suffix) != 0)
			continue;
		uri->view = view;
		uri->name = view->named ? PercentDecode(rest + length) : NULL;
		return !view->named || (uri->name != NULL && *uri->name != '\0');
	}
	return false;
}

/* Read a URI. Returns false if it is none of ours. */
bool
UriRead(const char *text, ResourceUri *uri)
{
	const char *id = text + strlen(PLAN_PREFIX);

	if (strncmp(text, PLAN_PREFIX, strlen(PLAN_PREFIX)) != 0 || strlen(id) < UUID_LENGTH)
		return false;
	uri->text = text;
	return UuidParse(pnstrdup(id, UUID_LENGTH), &uri->plan_id) && UriReadView(uri, id + UUID_LENGTH);
}

/* Write the URI of a plan. */
static char *
PlanUri(const pg_uuid_t *plan_id)
{
	return psprintf(PLAN_PREFIX "%s", UuidText(plan_id));
}

/* Refuse a URI that leads to nothing. */
void
ResourceNotFound(Request *request, const char *uri)
{
	RequestRefuse(request, request->modern ? RPC_INVALID_PARAMS : RPC_NO_RESOURCE, JsonTextOf("uri", uri),
				  "resource not found: %s", ShortText(uri));
}

/* ---------- reading ---------- */

static void
PutContent(JsonBuilder *b, const char *uri, const char *media_type, const char *text)
{
	JsonObjectStart(b, NULL);
	JsonPutText(b, "uri", uri);
	JsonPutText(b, "mimeType", media_type);
	JsonPutText(b, "text", text);
	JsonObjectEnd(b);
}

static bool
PlanExists(const pg_uuid_t *plan_id)
{
	Call		call;
	bool		found;

	CallBeginReading(&call);
	found = PlanRead(&call, plan_id) != NULL;
	CallEnd(&call, NULL);
	return found;
}

/* Read a plan as a new session would; NULL if there is none. *text is the answer as text. */
static Jsonb *
PlanContext(Request *request, const ResourceUri *uri, char **text)
{
	JsonBuilder b = {0};

	if (!PlanExists(&uri->plan_id))
		return NULL;
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "plan_id", &uri->plan_id);
	JsonObjectEnd(&b);
	return Shorten(TranslateAnswer(request, FunctionApply(request, "get_plan_context", JsonFinish(&b))), request->max_bytes, false, text);
}

/* Put a plan: as JSON, and as Markdown. */
static bool
PutPlan(JsonBuilder *b, Request *request, const ResourceUri *uri)
{
	char	   *text;
	Jsonb	   *context = PlanContext(request, uri, &text);

	if (context == NULL)
		return false;
	PutContent(b, uri->text, "application/json", text);
	PutContent(b, psprintf("%s/markdown", PlanUri(&uri->plan_id)), "text/markdown", TextWithin(PlanMarkdown(context), request->max_bytes));
	return true;
}

/* Put a plan as Markdown. */
static bool
PutMarkdown(JsonBuilder *b, Request *request, const ResourceUri *uri)
{
	char	   *text;
	Jsonb	   *context = PlanContext(request, uri, &text);

	if (context == NULL)
		return false;
	PutContent(b, uri->text, "text/markdown", TextWithin(PlanMarkdown(context), request->max_bytes));
	return true;
}

/* Put what a query finds: a text and its media type. The query gets a name, if there is one. */
static bool
PutFound(JsonBuilder *b, KeptQuery *query, const ResourceUri *uri, const char *otherwise)
{
	Call		call;
	Params		params = {0};
	Jsonb	   *found;
	char	   *media_type;

	CallBeginReading(&call);
	ParamKey(&params, &call, &uri->plan_id);
	if (uri->name != NULL)
		ParamText(&params, uri->name);
	found = (Jsonb *) DatumGetPointer(CallEnd(&call, QueryJson(query, &params)));
	if (found == NULL)
		return false;
	media_type = JsonGetText(found, "mediaType");
	PutContent(b, uri->text, media_type ? media_type : otherwise, JsonGetText(found, "text"));
	return true;
}

/* Put the newest artifact of a name. */
static bool
PutArtifact(JsonBuilder *b, Request *request, const ResourceUri *uri)
{
	static KeptQuery find = {
		"SELECT pg_catalog.jsonb_build_object('text', a.content, 'mediaType', a.media_type) FROM stepwise.artifact AS a"
		" WHERE a.tenant = $1 AND a.plan_id = $2 AND a.name = $3 ORDER BY a.version DESC LIMIT 1",
		3, {TEXTOID, UUIDOID, TEXTOID}
	};

	return PutFound(b, &find, uri, "text/plain");
}

/* Put the final output of a plan. */
static bool
PutOutput(JsonBuilder *b, Request *request, const ResourceUri *uri)
{
	static KeptQuery find = {
		"SELECT pg_catalog.jsonb_build_object('text', d.final_output, 'mediaType', d.final_media_type) FROM stepwise.plan_detail AS d"
		" WHERE d.tenant = $1 AND d.plan_id = $2 AND d.final_output IS NOT NULL",
		2, {TEXTOID, UUIDOID}
	};

	return PutFound(b, &find, uri, "text/markdown");
}

/* Answer resources/read. */
Jsonb *
ResourceRead(Request *request)
{
	char	   *text = ParamRequiredText(request, "uri");
	JsonBuilder b = {0};
	ResourceUri uri = {0};

	if (!UriRead(text, &uri))
		ResourceNotFound(request, text);
	request->plan_id = uri.plan_id;
	request->has_plan = true;
	request->reads = true;
	JsonObjectStart(&b, NULL);
	JsonArrayStart(&b, "contents");
	if (!uri.view->put(&b, request, &uri))
		ResourceNotFound(request, text);
	JsonArrayEnd(&b);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* ---------- listing ---------- */

/* Read the cursor of a list of plans: only plans older than that follow. */
static pg_uuid_t
PlanCursor(Request *request)
{
	JsonbValue	cursor;
	pg_uuid_t	before;

	memset(&before, 0xff, sizeof(before));
	if (!JsonGet(request->params, "cursor", &cursor))
		return before;
	if (cursor.type != jbvString || (cursor.val.string.len > 0 && !UuidParse(JsonValueText(&cursor), &before)))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "invalid cursor");
	return before;
}

/* Find the last plan that is looked at for a page; false if they end before. */
static bool
LastLooked(Call *call, const pg_uuid_t *before, pg_uuid_t *last)
{
	static KeptQuery find = {
		"SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id < $2 ORDER BY p.id DESC"
		" OFFSET " CppAsString2(PLANS_LOOKED) " - 1 LIMIT 1",
		2, {TEXTOID, UUIDOID}, .in_order = true
	};
	Rows		rows = QueryById(call, &find, before);

	if (rows.count > 0)
		*last = RowUuid(&rows, 0, 1);
	return rows.count > 0;
}

/*
 * List root plans as a page of a result. The query gets the cursor and a
 * number of rows; it returns the id of a plan, and its entries as an array. It
 * reads from ROOTS_LOOKED, so that nested plans do not make a page expensive.
 */
Jsonb *
PlanPage(Request *request, KeptQuery *query, const char *key)
{
	pg_uuid_t	before = PlanCursor(request);
	JsonBuilder b = {0};
	Params		params = {0};
	Call		call;
	Rows		rows;
	JsonbValue	entry;

	CallBeginReading(&call);
	ParamKey(&params, &call, &before);
	ParamInt(&params, PLANS_IN_PAGE + 1);
	rows = QueryRun(query, &params);
	JsonObjectStart(&b, NULL);
	JsonArrayStart(&b, key);
	for (uint64 i = 0; i < Min(rows.count, PLANS_IN_PAGE); i++)
	{
		Jsonb	   *entries = RowJson(&rows, i, 2);

		for (int j = 0; JsonGetIndex(entries, j, &entry); j++)
			JsonPutValue(&b, NULL, &entry);
	}
	JsonArrayEnd(&b);
	if (rows.count > PLANS_IN_PAGE)
		before = RowUuid(&rows, PLANS_IN_PAGE - 1, 1);
	if (rows.count > PLANS_IN_PAGE || LastLooked(&call, &before, &before))
		JsonPutUuid(&b, "nextCursor", &before);
	JsonObjectEnd(&b);
	return (Jsonb *) DatumGetPointer(CallEnd(&call, JsonFinish(&b)));
}

/* Put the entry of a plan in the list. */
static void
PutPlanEntry(JsonBuilder *b, const Jsonb *plan, const char *uri)
{
	JsonObjectStart(b, NULL);
	JsonPutText(b, "uri", uri);
	JsonPutText(b, "name", JsonGetText(plan, "name"));
	JsonPutText(b, "description", psprintf("%s: %s", JsonGetText(plan, "status"),
										   CutText(JsonGetText(plan, "goal"), GOAL_BYTES, NULL)));
	JsonPutText(b, "mimeType", "application/json");
	JsonObjectEnd(b);
}

/* Put the entry of an artifact in the list. */
static void
PutArtifactEntry(JsonBuilder *b, JsonbValue *artifact, const Jsonb *plan, const char *uri)
{
	Jsonb	   *brief = JsonFromValue(artifact);
	char	   *name = JsonGetText(brief, "name");
	char	   *media_type = JsonGetText(brief, "mediaType");

	JsonObjectStart(b, NULL);
	JsonPutText(b, "uri", psprintf("%s/artifact/%s", uri, PercentEncode(name)));
	JsonPutText(b, "name", name);
	JsonPutText(b, "description", psprintf("document of the plan \"%s\"", JsonGetText(plan, "name")));
	JsonPutText(b, "mimeType", media_type ? media_type : "text/plain");
	JsonPutJson(b, "size", JsonGetJson(brief, "size"));
	JsonObjectEnd(b);
}

/* Turn what the list has about plans into resources. */
static Jsonb *
ResourcesOfPage(const Jsonb *listing)
{
	Jsonb	   *plans = JsonGetJson(listing, "resources");
	JsonBuilder b = {0};
	JsonbValue	element;

	JsonArrayStart(&b, NULL);
	for (int i = 0; JsonGetIndex(plans, i, &element); i++)
	{
		Jsonb	   *plan = JsonFromValue(&element);
		Jsonb	   *artifacts = JsonGetJson(plan, "artifacts");
		char	   *uri = psprintf(PLAN_PREFIX "%s", JsonGetText(plan, "id"));
		JsonbValue	artifact;

		PutPlanEntry(&b, plan, uri);
		for (int j = 0; JsonGetIndex(artifacts, j, &artifact); j++)
			PutArtifactEntry(&b, &artifact, plan, uri);
	}
	JsonArrayEnd(&b);
	return JsonMerge(listing, JsonObjectOf("resources", JsonFinish(&b)));
}

/* Answer resources/list: the plans and their artifacts, newest first. */
Jsonb *
ResourcesList(Request *request)
{
	static KeptQuery list = {
		"SELECT p.id, pg_catalog.jsonb_build_array(pg_catalog.jsonb_build_object('id', p.id, 'name', p.name, 'goal', p.goal,"
		" 'status', p.status, 'artifacts', coalesce(a.list, '[]')))"
		" FROM " ROOTS_LOOKED
		" LEFT JOIN LATERAL (SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object('name', x.name, 'mediaType', x.media_type,"
		" 'size', pg_catalog.octet_length(x.content)) ORDER BY x.name) AS list"
		" FROM (SELECT DISTINCT ON (y.name) y.name, y.media_type, y.content FROM stepwise.artifact AS y"
		" WHERE y.tenant = $1 AND y.plan_id = p.id ORDER BY y.name, y.version DESC LIMIT " CppAsString2(ARTIFACTS_SHOWN) ") AS x) AS a ON true"
		" ORDER BY p.id DESC",
		3, {TEXTOID, UUIDOID, INT4OID}, .in_order = true
	};

	return ResourcesOfPage(PlanPage(request, &list, "resources"));
}

/* Answer resources/templates/list. */
Jsonb *
ResourceTemplatesList(Request *request)
{
	Listing		listing;

	ListingBegin(&listing, request, "resourceTemplates");
	for (size_t i = 0; listing.after == NULL && i < lengthof(Views); i++)
	{
		JsonBuilder b = {0};

		JsonObjectStart(&b, NULL);
		JsonPutText(&b, "uriTemplate", Views[i].template);
		JsonPutText(&b, "name", Views[i].title);
		JsonPutText(&b, "description", Views[i].description);
		if (Views[i].media_type != NULL)
			JsonPutText(&b, "mimeType", Views[i].media_type);
		JsonObjectEnd(&b);
		ListingPut(&listing, JsonFinish(&b));
	}
	return ListingEnd(&listing);
}
