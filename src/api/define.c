/*
 * define.c
 *	  define, validate and show workflows
 *
 * Workflows are named, versioned and immutable. A changed definition becomes
 * the next version; an identical one keeps its version.
 *
 * Locks: to define or drop, a call first locks the definitions of its tenant.
 * So two sessions can neither take the same version nor close a circle of
 * calls that neither of them can see.
 */
#include "api/api.h"

#include "utils/array.h"

/* ---------- define ---------- */

/*
 * Store a version. A conflict is possible only at a stricter isolation level,
 * with a version that this transaction does not see. Then the transaction
 * fails to serialize.
 */
static KeptQuery InsertQuery = {
	"INSERT INTO stepwise.workflow (tenant, name, version, definition) VALUES ($1, $2, $3, $4)"
	" ON CONFLICT DO NOTHING",
	4, {TEXTOID, TEXTOID, INT4OID, JSONBOID}
};

/* Lock the definitions of the tenant. */
void
LockDefinitions(Call *call)
{
	CallLock(call, "workflows", "");
}

/* Store a version of a workflow. */
static void
InsertVersion(Call *call, const char *name, int version, const Jsonb *json)
{
	Params		params = {0};

	MarkEngineUsed();
	ParamTenant(&params, call);
	ParamText(&params, name);
	ParamInt(&params, version);
	ParamVarlena(&params, json);
	QueryRun(&InsertQuery, &params);
}

/* Write the audit entry of a new version. */
static void
AuditDefined(Call *call, const char *name, int version, const Jsonb *json)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", "workflow_defined");
	JsonPutText(&b, "name", name);
	JsonPutInt(&b, "version", version);
	JsonPutText(&b, "definitionDigest", DigestText(json));
	JsonObjectEnd(&b);
	AuditAppendPlanless(call, "plan_modified", JsonFinish(&b));
}

/* Check a definition, and store it as a new version if it has changed. */
static Jsonb *
DefineWorkflow(Call *call, const Jsonb *json)
{
	Faults		faults = {0};
	JsonBuilder b = {0};
	Definition *definition;
	int			version;
	bool		changed;

	LockDefinitions(call);
	definition = DefinitionAccept(call, json, &faults, NULL);
	FaultsRaise(&faults, "definition");

	version = WorkflowNewestVersion(call, definition->name);
	changed = version == 0 || !JsonEqual(json, WorkflowDefinition(call, definition->name, version));
	if (changed)
	{
		InsertVersion(call, definition->name, ++version, json);
		AuditDefined(call, definition->name, version, json);
	}

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", definition->name);
	JsonPutInt(&b, "version", version);
	JsonPutBool(&b, "created", changed);
	JsonPutInt(&b, "stepCount", definition->nsteps);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Define a workflow. */
PG_FUNCTION_INFO_V1(stepwise_define_workflow);
Datum
stepwise_define_workflow(PG_FUNCTION_ARGS)
{
	Jsonb	   *json = ArgumentJson(fcinfo, 0);
	Call		call;

	CallBegin(&call);
	return CallEnd(&call, DefineWorkflow(&call, json));
}

/* ---------- validate ---------- */

/* Find the tools of a definition that the client has to call. */
static struct names_hash *
ClientTools(Call *call, const Definition *definition)
{
	struct names_hash *seen = NamesNew(8);
	struct names_hash *tools = NamesNew(8);

	for (int i = 0; i < definition->nsteps; i++)
	{
		const char *name = definition->steps[i].tool;

		if (name != NULL && NamesAdd(seen, name, 1) && !ToolIsInDatabase(call, name))
			NamesAdd(tools, name, 1);
	}
	return tools;
}

#define TOOLS_COMPARED	1000	/* a name that may be misspelt is compared with at most this many tools */

/* List the names of the registered and the built-in tools. */
static const char **
KnownTools(Call *call, int *count)
{
	List	   *registered = ToolNames(call, TOOLS_COMPARED);
	const char **names = palloc(sizeof(char *) * (list_length(registered) + BUILT_IN_TOOLS));
	const char *name;
	ListCell   *cell;

	*count = 0;
	foreach(cell, registered)
		names[(*count)++] = lfirst(cell);
	for (int i = 0; (name = BuiltInToolName(i)) != NULL; i++)
		names[(*count)++] = name;
	return names;
}

/* Warn about a tool that the client has to call; its name may be a misspelt one. */
static void
WarnClientTool(Faults *warnings, int index, const char *tool, const char *const *known, int count)
{
	const char *nearest = HintsWanted(warnings) ? NearestWord(tool, known, count) : NULL;
	char	   *place = psprintf("steps[%d].tool", index);

	if (nearest != NULL && strcmp(nearest, tool) != 0)
		FaultAdd(warnings, 0, place, psprintf("Did you mean \"%s\"?", nearest),
				 "tool \"%s\" is not registered, and its name is close to that of tool \"%s\"", tool, nearest);
	else
		FaultAdd(warnings, 0, place, "Register it with register_tool to run it in the database.",
				 "tool \"%s\" has no function here: the client calls it", tool);
}

/* Warn about what is allowed, but perhaps not meant. */
static void
CollectWarnings(Call *call, const Definition *definition, Faults *warnings)
{
	struct names_hash *client = ClientTools(call, definition);
	int			count;
	const char **known = KnownTools(call, &count);

	for (int i = 0; i < definition->nsteps; i++)
	{
		const StepDefinition *step = &definition->steps[i];

		if (step->tool && NamesFind(client, step->tool))
			WarnClientTool(warnings, i, step->tool, known, count);
		if (!step->tool && !step->workflow && !step->prompt && !step->resources && !step->instructions)
			FaultAdd(warnings, 0, psprintf("steps[%d]", i), "Add instructions.",
					 "step \"%s\" does not say what to do", step->name);
	}
	if (definition->sequential && definition->on_failure_given && definition->on_failure == ON_FAILURE_CONTINUE)
		FaultAdd(warnings, 0, "onFailure", "Leave it out, and the sequence stops at a failed step.",
				 "with continue, the steps after a failed one run all the same");
}

/* Check a definition, and collect its faults and warnings. */
static Jsonb *
ValidateDefinition(Call *call, const Jsonb *json)
{
	Faults		faults = {0};
	Faults		warnings = {0};
	JsonBuilder b = {0};
	Definition *definition = DefinitionAccept(call, json, &faults, &warnings);

	CollectWarnings(call, definition, &warnings);
	if (!FaultsAny(&faults))
		WarnNeverDue(definition, &warnings);
	JsonObjectStart(&b, NULL);
	JsonPutBool(&b, "valid", !FaultsAny(&faults));
	JsonPutInt(&b, "errorCount", FaultsCount(&faults));
	FaultsToJson(&b, "errors", &faults);
	JsonPutInt(&b, "warningCount", FaultsCount(&warnings));
	FaultsToJson(&b, "warnings", &warnings);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Check a definition without storing it. */
PG_FUNCTION_INFO_V1(stepwise_validate_definition);
Datum
stepwise_validate_definition(PG_FUNCTION_ARGS)
{
	Jsonb	   *json = ArgumentJson(fcinfo, 0);
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, ValidateDefinition(&call, json));
}

/* ---------- show ---------- */

/* Put version numbers as an array: the newest ones, if there are many. They are given with the newest first. */
void
PutVersionNumbers(JsonBuilder *b, const char *key, const List *versions)
{
	JsonArrayStart(b, key);
	for (int i = Min(list_length(versions), LIST_MAX) - 1; i >= 0; i--)
		JsonPutInt(b, NULL, *(int *) list_nth(versions, i));
	JsonArrayEnd(b);
}

/* Read one version of a workflow; 0 means the newest. */
static Jsonb *
GetWorkflow(Call *call, const char *name, int version)
{
	JsonBuilder b = {0};
	const WorkflowRow *row = WorkflowFind(call, name, version);
	List	   *versions;

	if (row == NULL)
		WorkflowNotFound(call, name, version);
	versions = WorkflowVersions(call, name);

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "name", name);
	JsonPutInt(&b, "version", row->version);
	PutVersionNumbers(&b, "versions", versions);
	JsonPutInt(&b, "versionCount", list_length(versions));
	JsonPutTime(&b, "createdAt", row->created_at);
	JsonPutJson(&b, "definition", JsonOf(row->definition));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Refuse a call that names no workflow. */
void
CheckWorkflowNamed(const char *name)
{
	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_NOT_FOUND),
				 errmsg("name of the workflow must not be null"),
				 errhint("Call stepwise.list_workflows() to see which there are.")));
}

/*
 * Read a version. Null gives 0, which means the newest. So a given 0 becomes
 * -1, which never exists.
 */
int
ArgumentVersion(FunctionCallInfo fcinfo, int n)
{
	if (PG_ARGISNULL(n))
		return 0;
	return PG_GETARG_INT32(n) == 0 ? -1 : PG_GETARG_INT32(n);
}

/* Show a workflow. */
PG_FUNCTION_INFO_V1(stepwise_get_workflow);
Datum
stepwise_get_workflow(PG_FUNCTION_ARGS)
{
	char	   *name = ArgumentText(fcinfo, 0);
	int			version = ArgumentVersion(fcinfo, 1);
	Call		call;

	CheckWorkflowNamed(name);
	CallBeginReading(&call);
	return CallEnd(&call, GetWorkflow(&call, name, version));
}

/* what a page of list_workflows is built from */
typedef struct WorkflowPage
{
	Call	   *call;
	const char *after;			/* the name before the page, or NULL */
	int			count;			/* of all workflows */
} WorkflowPage;

/* Return the number of steps of a definition. */
static int
StepCount(const Jsonb *definition)
{
	Jsonb	   *steps = JsonGetJson(definition, "steps");

	return steps ? JB_ROOT_COUNT(steps) : 0;
}

/* Put a workflow as list_workflows shows it, from its newest version. */
static void
PutWorkflow(JsonBuilder *b, Call *call, const char *name, int cut)
{
	ReadingFunction reader = {"get_workflow", "name", name, ""};
	const WorkflowRow *row = WorkflowFind(call, name, 0);
	Jsonb	   *definition = row->definition ? JsonOf(row->definition) : JsonEmptyObject();
	char	   *description = JsonGetText(definition, "description");
	Jsonb	   *inputs = JsonGetJson(definition, "inputs");

	JsonObjectStart(b, NULL);
	JsonPutText(b, "name", name);
	JsonPutInt(b, "version", row->version);
	JsonPutInt(b, "versionCount", list_length(WorkflowVersions(call, name)));
	if (description != NULL)
		JsonPutText(b, "description", CutText(description, cut, reader.function));
	JsonPutJson(b, "inputs", CutJson((struct varlena *) (inputs ? inputs : JsonEmptyObject()), cut, &reader));
	JsonPutInt(b, "stepCount", StepCount(definition));
	JsonPutTime(b, "createdAt", row->created_at);
	JsonObjectEnd(b);
}

/* Build a page at one level. */
static Jsonb *
WorkflowsAt(void *arg, int entries, int text)
{
	WorkflowPage *page = arg;
	const char *last = page->after ? page->after : "";
	const char *name = WorkflowAfter(page->call, last);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonArrayStart(&b, "workflows");
	for (int shown = 0; name != NULL && shown < Max(entries, 1); shown++)
	{
		PutWorkflow(&b, page->call, name, Max(text, 20));
		last = name;
		name = WorkflowAfter(page->call, last);
	}
	JsonArrayEnd(&b);
	JsonPutInt(&b, "workflowCount", page->count);
	JsonPutText(&b, "next", name ? last : NULL);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* List the workflows, page by page. */
PG_FUNCTION_INFO_V1(stepwise_list_workflows);
Datum
stepwise_list_workflows(PG_FUNCTION_ARGS)
{
	Call		call;
	WorkflowPage page = {.call = &call, .after = ArgumentText(fcinfo, 0)};
	int			max = ArgumentMax(fcinfo, 1, LIST_MAX);

	CheckTextLimit(page.after, "after");
	CallBeginReading(&call);
	page.count = WorkflowCount(&call);
	return CallEnd(&call, BoundBuild(WorkflowsAt, &page, ListBytes(max), max));
}
