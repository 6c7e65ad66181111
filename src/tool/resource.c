/*
 * resource.c
 *	  read the resources of a step
 *
 * stepwise://artifact/NAME is the newest artifact of that name in the plan of
 * the step, or otherwise in another plan of its tree. Every other URI is read
 * by the function that is registered for it, as the caller, in a
 * subtransaction. It is registered by a pattern: a URI in which * stands for
 * any text. If several patterns fit, the longest one counts.
 *
 * Each resource becomes an entry {"uri", "content"}. The entry of an artifact
 * also has "mediaType" and, if there are any, "data".
 */
#include "tool/tool.h"

#define ARTIFACT_PREFIX	OWN_SCHEME "artifact/"

static ToolFault *
NotFoundFault(char *message)
{
	ToolFault  *fault = palloc0(sizeof(ToolFault));

	fault->message = message;
	strlcpy(fault->code, unpack_sql_state(ERRCODE_NAME_NOT_FOUND), sizeof(fault->code));
	return fault;
}

/* Find an artifact by its URI, as an entry; NULL: there is none. */
static Jsonb *
ArtifactEntry(Call *call, const PlanKey *plan, const char *uri)
{
	static KeptQuery find = {
		"SELECT pg_catalog.jsonb_build_object('uri', $5, 'content', a.content, 'mediaType', a.media_type)"
		" || CASE WHEN a.data IS NULL THEN '{}' ELSE pg_catalog.jsonb_build_object('data', a.data) END"
		" FROM stepwise.artifact AS a WHERE a.tenant = $1 AND a.name = $4 AND a.plan_id IN"
		" (SELECT $3 UNION ALL SELECT p.id FROM stepwise.plan AS p"
		" WHERE p.tenant = $1 AND p.root_id = $3 AND p.parent_step_id IS NOT NULL)"
		" ORDER BY a.plan_id = $2 DESC, a.id DESC LIMIT 1",
		5, {TEXTOID, UUIDOID, UUIDOID, TEXTOID, TEXTOID}
	};
	Params		params = {0};
	Rows		rows;

	ParamKey(&params, call, &plan->plan_id);
	ParamUuid(&params, &plan->root_id);
	ParamText(&params, uri + strlen(ARTIFACT_PREFIX));
	ParamText(&params, uri);
	rows = QueryRun(&find, &params);
	return rows.count > 0 ? RowJson(&rows, 0, 1) : NULL;
}

/* Read an artifact. */
static Jsonb *
ArtifactRead(const PlanKey *plan, const char *uri, ToolFault **fault)
{
	Call		call;
	Jsonb	   *entry;

	CallBeginIn(&call, plan->tenant);
	entry = (Jsonb *) DatumGetPointer(CallEnd(&call, ArtifactEntry(&call, plan, uri)));
	if (entry == NULL)
		*fault = NotFoundFault(psprintf("artifact \"%s\" not found in the plan", uri + strlen(ARTIFACT_PREFIX)));
	return entry;
}

/*
 * Check whether a URI fits a pattern. After a mismatch, the last * takes one
 * more character.
 */
static bool
PatternFits(const char *pattern, const char *uri)
{
	const char *star = NULL;
	const char *taken = uri;

	while (*uri != '\0')
	{
		if (*pattern == '*')
		{
			star = pattern++;
			taken = uri;
		}
		else if (*pattern == *uri)
		{
			pattern++;
			uri++;
		}
		else if (star != NULL)
		{
			pattern = star + 1;
			uri = ++taken;
		}
		else
			return false;
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

/* Find the function that reads a URI; NULL: there is none. */
static char *
ResourceFind(Call *call, const char *uri)
{
	static KeptQuery list = {
		"SELECT r.pattern, r.function FROM stepwise.resource AS r WHERE r.tenant = $1"
		" ORDER BY pg_catalog.length(r.pattern) DESC, r.pattern",
		1, {TEXTOID}
	};
	char	   *function = NULL;
	Rows		rows = QueryOfTenant(call, &list);

	for (uint64 i = 0; i < rows.count && function == NULL; i++)
		if (PatternFits(RowText(&rows, i, 1), uri))
			function = RowText(&rows, i, 2);
	RowsFree(&rows);
	return function;
}

static char *
FunctionOfResource(const PlanKey *plan, const char *uri)
{
	Call		call;
	char	   *function;

	CallBeginIn(&call, plan->tenant);
	function = ResourceFind(&call, uri);
	if (function != NULL)
		function = MemoryContextStrdup(call.outer, function);
	CallEnd(&call, NULL);
	return function;
}

static Jsonb *
ContentEntry(const char *uri, const Jsonb *content)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "uri", uri);
	JsonPutJson(&b, "content", content);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/*
 * Read a URI by its registered function. A null result means that the resource
 * does not exist.
 */
static Jsonb *
FunctionRead(const PlanKey *plan, const char *uri, ToolFault **fault)
{
	char	   *function = FunctionOfResource(plan, uri);
	Datum		argument;
	Jsonb	   *content;

	if (function == NULL)
	{
		*fault = NotFoundFault(pstrdup("no function is registered that reads this resource"));
		return NULL;
	}
	if (SignatureTakesText(function))
		argument = CStringGetTextDatum(uri);
	else
		argument = JsonbPGetDatum(JsonTextOf("uri", uri));
	content = Invoke(InvokablesNew(), function, argument, "resource", fault);
	if (*fault != NULL)
		return NULL;
	if (JsonIsNull(content))
	{
		*fault = NotFoundFault(pstrdup("resource not found"));
		return NULL;
	}
	return ContentEntry(uri, content);
}

static Jsonb *
ResourceRead(const PlanKey *plan, const char *uri, ToolFault **fault)
{
	if (strncmp(uri, ARTIFACT_PREFIX, strlen(ARTIFACT_PREFIX)) == 0)
		return ArtifactRead(plan, uri, fault);
	return FunctionRead(plan, uri, fault);
}

/*
 * Return a fault if the contents together are too large to be stored;
 * otherwise NULL.
 */
static ToolFault *
TooLargeFault(const Jsonb *contents)
{
	char	   *excess = JsonExcess(contents);
	ToolFault  *fault;

	if (excess == NULL)
		return NULL;
	fault = NotFoundFault(psprintf("what was read %s", excess));
	strlcpy(fault->code, unpack_sql_state(ERRCODE_VALUE_TOO_LARGE), sizeof(fault->code));
	return fault;
}

/*
 * Read an array of URIs into an array of entries. Returns NULL, the fault and
 * the URI at fault if one cannot be read.
 */
Jsonb *
ResourcesRead(const PlanKey *plan, const Jsonb *uris, const char **uri, ToolFault **fault)
{
	JsonBuilder b = {0};
	JsonbValue	value;
	Jsonb	   *contents;

	*fault = NULL;
	JsonArrayStart(&b, NULL);
	for (int i = 0; JsonGetIndex(uris, i, &value); i++)
	{
		*uri = JsonScalarText(&value);
		JsonPutJson(&b, NULL, ResourceRead(plan, *uri, fault));
		if (*fault != NULL)
			return NULL;
	}
	JsonArrayEnd(&b);
	contents = JsonFinish(&b);
	*fault = TooLargeFault(contents);
	return contents;
}
