/*
 * complete.c
 *	  completion/complete: propose values for the arguments of prompts and templates
 *
 * The inputs of a workflow are completed with what they were in earlier plans,
 * ids of plans and names of artifacts with those that exist. Only the newest
 * plans are looked at, and only inputs that are not large, so the cost does not
 * grow with their number and size.
 */
#include "mcp/mcp.h"

#define VALUES_MAX		100		/* the protocol allows no more */
#define INPUTS_BYTES	8000	/* of the inputs of a plan; more are not looked at */

/* the newest root plans of the tenant, as p */
#define NEWEST_ROOTS \
	"(SELECT o.* FROM (SELECT q.* FROM stepwise.plan AS q WHERE q.tenant = $1 ORDER BY q.id DESC LIMIT 1000) AS o" \
	" WHERE o.parent_step_id IS NULL) AS p"

/* what is completed */
typedef struct Completion
{
	Request    *request;
	char	   *argument;
	char	   *value;			/* what was typed so far */
	Jsonb	   *definition;		/* of a prompt: its workflow; else NULL */
	char	   *name;			/* of the prompt, or the template */
} Completion;

/*
 * Run a query that proposes values: it gets the beginning of the value, and two
 * words of its own. It returns one column of texts, at most one more than may
 * be shown.
 */
static List *
Propose(KeptQuery *query, const Completion *c, const char *word)
{
	Call		call;
	Params		params = {0};
	List	   *values = NIL;
	MemoryContext inner;
	Rows		rows;

	CallBeginReading(&call);
	ParamTenant(&params, &call);
	ParamText(&params, c->value);
	ParamText(&params, c->argument);
	ParamText(&params, word);
	rows = QueryRun(query, &params);
	inner = MemoryContextSwitchTo(call.outer);
	for (uint64 i = 0; i < rows.count; i++)
		values = lappend(values, RowText(&rows, i, 1));
	MemoryContextSwitchTo(inner);
	CallEnd(&call, NULL);
	return values;
}

/* Propose what an input was in earlier plans, its default, and the values of a boolean. */
static List *
ProposeInputs(const Completion *c)
{
	static KeptQuery find = {
		"SELECT v.text FROM (SELECT CASE pg_catalog.jsonb_typeof(p.inputs -> $3) WHEN 'string' THEN p.inputs ->> $3"
		" ELSE (p.inputs -> $3)::text END AS text, max(p.id::text) AS newest"
		" FROM " NEWEST_ROOTS
		" WHERE p.workflow = $4 AND CASE WHEN pg_catalog.pg_column_size(p.inputs) <= " CppAsString2(INPUTS_BYTES) " THEN p.inputs ? $3 END"
		" GROUP BY 1) AS v"
		" WHERE pg_catalog.starts_with(pg_catalog.lower(v.text), pg_catalog.lower($2)) AND pg_catalog.length(v.text) <= 1000"
		" ORDER BY v.newest DESC LIMIT 101",
		4, {TEXTOID, TEXTOID, TEXTOID, TEXTOID}
	};

	return Propose(&find, c, c->name);
}

/* Propose ids of plans. */
static List *
ProposePlans(const Completion *c)
{
	static KeptQuery find = {
		"SELECT p.id::text FROM " NEWEST_ROOTS
		" WHERE pg_catalog.starts_with(p.id::text, pg_catalog.lower($2)) ORDER BY p.id DESC LIMIT 101",
		4, {TEXTOID, TEXTOID, TEXTOID, TEXTOID}
	};

	return Propose(&find, c, NULL);
}

/* Propose names of the artifacts of a plan, which the context of the completion names. */
static List *
ProposeArtifacts(const Completion *c)
{
	static KeptQuery find = {
		"SELECT DISTINCT a.name FROM stepwise.artifact AS a WHERE a.tenant = $1 AND a.plan_id = $4::uuid"
		" AND pg_catalog.starts_with(pg_catalog.lower(a.name), pg_catalog.lower($2)) ORDER BY a.name LIMIT 101",
		4, {TEXTOID, TEXTOID, TEXTOID, TEXTOID}
	};
	Jsonb	   *context = JsonGetJson(c->request->params, "context");
	Jsonb	   *arguments = context && JsonIsObject(context) ? JsonGetJson(context, "arguments") : NULL;
	char	   *plan = arguments && JsonIsObject(arguments) ? JsonGetText(arguments, "planId") : NULL;
	pg_uuid_t	plan_id;

	if (plan == NULL || !UuidParse(plan, &plan_id))
		return NIL;
	return Propose(&find, c, plan);
}

/* ---------- what is asked for ---------- */

/* the arguments of templates */
static const struct
{
	const char *name;
	List	   *(*propose) (const Completion *c);
}			TemplateArguments[] = {
	{"planId", ProposePlans},
	{"name", ProposeArtifacts}
};

static List *
CompleteTemplate(Completion *c)
{
	if (c->name == NULL || !IsResourceTemplate(c->name))
		RequestRefuse(c->request, RPC_INVALID_PARAMS, NULL, "there is no such resource template; resources/templates/list names them");
	for (size_t i = 0; i < lengthof(TemplateArguments); i++)
		if (strcmp(TemplateArguments[i].name, c->argument) == 0)
			return TemplateArguments[i].propose(c);
	return NIL;
}

static bool
BeginsWith(const char *text, const char *beginning)
{
	return pg_strncasecmp(text, beginning, strlen(beginning)) == 0;
}

/* Add a value, unless it is there already or does not begin as what was typed. */
static List *
AddValue(List *values, const Completion *c, char *value)
{
	ListCell   *cell;

	if (!BeginsWith(value, c->value))
		return values;
	foreach(cell, values)
		if (strcmp(lfirst(cell), value) == 0)
			return values;
	return lappend(values, value);
}

static List *
CompletePrompt(Completion *c)
{
	Jsonb	   *inputs;
	Jsonb	   *declared;
	char	   *type;
	JsonbValue	fallback;
	List	   *values;

	if (c->name == NULL)
		RequestRefuse(c->request, RPC_INVALID_PARAMS, NULL, "ref must name a prompt");
	inputs = JsonGetJson(PromptDefinition(c->request, c->name), "inputs");
	declared = inputs ? JsonGetJson(inputs, c->argument) : NULL;
	if (declared == NULL)
		return NIL;
	values = ProposeInputs(c);
	if (JsonGet(declared, "default", &fallback))
		values = AddValue(values, c, JsonScalarText(&fallback));
	type = JsonGetText(declared, "type");
	if (type != NULL && strcmp(type, "boolean") == 0)
		values = AddValue(AddValue(values, c, "true"), c, "false");
	return values;
}

/* what can be completed */
static const struct
{
	const char *type;
	const char *key;			/* that names it */
	List	   *(*complete) (Completion *c);
}			References[] = {
	{"ref/prompt", "name", CompletePrompt},
	{"ref/resource", "uri", CompleteTemplate}
};

static Jsonb *
CompletionResult(List *values)
{
	JsonBuilder b = {0};
	bool		more = list_length(values) > VALUES_MAX;

	JsonObjectStart(&b, NULL);
	JsonObjectStart(&b, "completion");
	JsonPutTexts(&b, "values", more ? list_truncate(values, VALUES_MAX) : values);
	if (!more)
		JsonPutInt(&b, "total", list_length(values));
	JsonPutBool(&b, "hasMore", more);
	JsonObjectEnd(&b);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Read an object that a completion needs. */
static Jsonb *
RequiredObject(Request *request, const char *key)
{
	Jsonb	   *object = JsonGetJson(request->params, key);

	if (object == NULL || !JsonIsObject(object))
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "completion/complete needs the parameter \"%s\", an object", key);
	return object;
}

/* Answer completion/complete. */
Jsonb *
CompletionComplete(Request *request)
{
	Jsonb	   *ref = RequiredObject(request, "ref");
	Jsonb	   *argument = RequiredObject(request, "argument");
	char	   *type = JsonGetText(ref, "type");
	Completion	c = {.request = request, .argument = JsonGetText(argument, "name"), .value = JsonGetText(argument, "value")};

	if (c.argument == NULL || c.value == NULL)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "argument must have \"name\" and \"value\", strings");
	for (size_t i = 0; type != NULL && i < lengthof(References); i++)
		if (strcmp(References[i].type, type) == 0)
		{
			c.name = JsonGetText(ref, References[i].key);
			return CompletionResult(References[i].complete(&c));
		}
	RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "ref must have the type \"ref/prompt\" or \"ref/resource\"");
}
