/*
 * insert.c
 *	  insert rows of steps and dependencies, many by one statement
 *
 * Steps are passed as one jsonb array, which PostgreSQL takes apart. So 10,000
 * steps cost little more than their rows. Dependencies are passed as arrays of
 * columns.
 *
 * Locks: the plan is new, or the caller holds its lock.
 */
#include "engine/engine.h"

#include "utils/array.h"

/*
 * A plan of 1,000 steps can have half a million dependencies. They are inserted
 * in batches of this size.
 */
#define LINKS_AT_ONCE	5000

/* a batch of dependencies that are not inserted yet */
struct Links
{
	Call	   *call;
	const PlanRow *plan;
	int			count;
	Datum		step_ids[LINKS_AT_ONCE];
	Datum		parent_ids[LINKS_AT_ONCE];
	Datum		required[LINKS_AT_ONCE];
	Datum		ended[LINKS_AT_ONCE];
};

/* Put an interval as text; null for NULL. */
void
PutInterval(JsonBuilder *b, const char *key, Interval *interval)
{
	JsonPutText(b, key, interval ? IntervalText(interval) : NULL);
}

/* Put a compiled condition: its source, its jsonpath, and the references that it reads. A raw condition reads none. */
void
PutCondition(JsonBuilder *b, const Condition *condition, const char *source_key, const char *path_key, const char *operands_key)
{
	JsonPutText(b, source_key, condition->source);
	JsonPutText(b, path_key, DatumGetCString(DirectFunctionCall1(jsonpath_out, condition->path)));
	if (condition->raw)
		return;
	JsonArrayStart(b, operands_key);
	for (int i = 0; i < condition->noperands; i++)
		JsonPutText(b, NULL, condition->operands[i]->source);
	JsonArrayEnd(b);
}

/* Put the row of a new step, as InsertSteps reads it. */
void
PutStep(JsonBuilder *b, const StepDefinition *step, const pg_uuid_t *id, int order, bool sequential, bool branches, int blockers)
{
	JsonObjectStart(b, NULL);
	JsonPutUuid(b, "id", id);
	JsonPutInt(b, "step_order", order);
	JsonPutInt(b, "wave", sequential ? order - 1 : step->wave);
	JsonPutInt(b, "blockers", blockers);
	if (!sequential && blockers == 0)
		JsonPutBool(b, "ready", true);
	JsonPutBool(b, "branches", branches);
	JsonPutBool(b, "dynamic", step->dynamic);
	if (step->retryable >= 0)
		JsonPutBool(b, "retryable", step->retryable == 1);
	JsonPutPositive(b, "max_attempts", step->max_attempts);
	PutInterval(b, "stall_after", step->stall_after);
	JsonPutText(b, "name", step->name);
	JsonPutText(b, "type", step->type ? step->type : "custom");
	JsonPutText(b, "tool", step->tool);
	JsonPutText(b, "workflow", step->workflow);
	JsonPutPositive(b, "version", step->version);
	JsonPutText(b, "binding", step->binding);
	JsonPutText(b, "prompt", step->prompt);
	JsonPutText(b, "instructions", step->instructions);
	if (step->arguments != NULL)
		JsonPutJson(b, "arguments", step->arguments);
	if (step->resources != NULL)
		JsonPutJson(b, "resources", step->resources);
	if (step->review != NULL)
		JsonPutJson(b, "review", step->review);
	if (step->condition != NULL)
		PutCondition(b, step->condition, "condition", "condition_path", "condition_operands");
	JsonObjectEnd(b);
}

/* Run a query whose parameters are the tenant, the plan, the root of the plan, and an array of rows. */
void
InsertRows(Call *call, KeptQuery *query, const PlanRow *plan, JsonBuilder *b)
{
	Params		params = {0};

	ParamKey(&params, call, &plan->id);
	ParamUuid(&params, &plan->root_id);
	ParamDatum(&params, JsonbPGetDatum(JsonFinish(b)));
	QueryRun(query, &params);
}

/* Insert an array of steps, built by PutStep. */
void
InsertSteps(Call *call, const PlanRow *plan, JsonBuilder *b)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.step (tenant, id, plan_id, root_id, step_order, wave, blockers, ready, branches, dynamic,"
		" retryable, max_attempts, stall_after, name, type, tool, workflow, version, binding, prompt, instructions,"
		" arguments, resources, condition, condition_path, condition_operands, review)"
		" SELECT $1, x.id, $2, $3, x.step_order, x.wave, x.blockers, x.ready, x.branches, x.dynamic,"
		" x.retryable, x.max_attempts, x.stall_after, x.name, x.type, x.tool, x.workflow, x.version, x.binding, x.prompt,"
		" x.instructions, x.arguments, x.resources, x.condition, x.condition_path, x.condition_operands, x.review"
		" FROM pg_catalog.jsonb_to_recordset($4) AS x (id uuid, step_order int, wave int, blockers int, ready boolean,"
		" branches boolean, dynamic boolean, retryable boolean, max_attempts int, stall_after interval, name text,"
		" type text, tool text, workflow text, version int, binding text, prompt text, instructions text,"
		" arguments jsonb, resources jsonb, condition text, condition_path jsonpath, condition_operands text[], review jsonb)",
		4, {TEXTOID, UUIDOID, UUIDOID, JSONBOID}
	};

	InsertRows(call, &insert, plan, b);
}

/* Begin to insert dependencies of a plan. */
Links *
LinksBegin(Call *call, const PlanRow *plan)
{
	Links	   *links = palloc(sizeof(Links));

	links->call = call;
	links->plan = plan;
	links->count = 0;
	return links;
}

/* Insert the collected batch. */
static void
LinksInsert(Links *links)
{
	static KeptQuery insert = {
		"INSERT INTO stepwise.dependency (tenant, plan_id, step_id, depends_on, required, ended)"
		" SELECT $1, $2, x.step_id, x.depends_on, x.required, x.ended"
		" FROM ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5), pg_catalog.unnest($6))"
		" AS x (step_id, depends_on, required, ended)",
		6, {TEXTOID, UUIDOID, UUIDARRAYOID, UUIDARRAYOID, BOOLARRAYOID, BOOLARRAYOID}
	};
	Params		params = {0};

	if (links->count == 0)
		return;
	ParamKey(&params, links->call, &links->plan->id);
	ParamDatum(&params, PointerGetDatum(construct_array(links->step_ids, links->count, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR)));
	ParamDatum(&params, PointerGetDatum(construct_array(links->parent_ids, links->count, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR)));
	ParamDatum(&params, PointerGetDatum(construct_array(links->required, links->count, BOOLOID, 1, true, TYPALIGN_CHAR)));
	ParamDatum(&params, PointerGetDatum(construct_array(links->ended, links->count, BOOLOID, 1, true, TYPALIGN_CHAR)));
	QueryRun(&insert, &params);
	for (int i = 2; i < params.count; i++)
		pfree(DatumGetPointer(params.values[i]));
	links->count = 0;
}

/* Add a dependency to the batch. Both ids must live until LinksEnd. */
void
LinksAdd(Links *links, const pg_uuid_t *step_id, const pg_uuid_t *parent_id, Need need)
{
	if (links->count == LINKS_AT_ONCE)
		LinksInsert(links);
	links->step_ids[links->count] = UUIDPGetDatum(step_id);
	links->parent_ids[links->count] = UUIDPGetDatum(parent_id);
	links->required[links->count] = BoolGetDatum(need == NEED_SUCCESS);
	links->ended[links->count] = BoolGetDatum(need == NEED_END);
	links->count++;
}

/* Insert the last batch, and free it. */
void
LinksEnd(Links *links)
{
	LinksInsert(links);
	pfree(links);
}
