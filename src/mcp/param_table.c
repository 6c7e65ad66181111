/*
 * param_table.c
 *	  what the arguments of functions mean, for a client that sees all functions
 *
 * Names and types are read from the catalog. What they mean is here, once for
 * all functions that have an argument of that name.
 */
#include "mcp/mcp.h"

#include "utils/lsyscache.h"

typedef struct Meaning
{
	const char *name;
	const char *description;
	const char *schema;			/* more exact than the type, or NULL */
	const char *function;		/* the only one in which it means that; NULL: all others */
} Meaning;

#define OBJECT		"{\"type\": \"object\"}"
#define ARRAY		"{\"type\": \"array\"}"
#define WORDS(list)	"{\"type\": \"string\", \"enum\": [" list "]}"

static const Meaning Meanings[] = {
	{"action", "what to change", WORDS("\"add_steps\", \"remove_step\", \"reorder_steps\", \"update_step_instructions\", \"update_step\", \"fail_step\", \"set_outputs\"")},
	{"after", "last entry of the page before, for the next page"},
	{"answers", "to the questions of the review"},
	{"artifact", "stored document"},
	{"assume", "results assumed for steps, by name", OBJECT},
	{"at", "time to look back to"},
	{"attempt", "attempt that get_next_step gave"},
	{"autorun", "let tick run in-database steps"},
	{"branching_conditions", "array of {afterStep, conditionExpression, ifTrueAction, actionParams}", ARRAY},
	{"budget", "limits by name, such as {\"tokens\": 100000}", OBJECT},
	{"checkpoint_id", "checkpointId of the wait"},
	{"code", "short word for the error, such as ETIMEOUT"},
	{"confidence", "0 to 1"},
	{"content", "the text"},
	{"data", "JSON that belongs to the document"},
	{"deadline", "time or interval after which the plan fails"},
	{"decided_by", "name of the person, for the audit log"},
	{"decision", "on a review", WORDS("\"approve\", \"modify\", \"reject\", \"skip\"")},
	{"definition", "definition of a workflow", OBJECT},
	{"delay", "time until it is due again, such as \"10 minutes\""},
	{"depth", "levels of nested plans to show"},
	{"design_rationale", "why the plan is as it is"},
	{"detail", "answer more"},
	{"error", "what went wrong"},
	{"error_message", "what went wrong"},
	{"event", "name of the event"},
	{"execution_report", "how the work went, such as {\"usage\": {\"tokens\": 1200}}", OBJECT},
	{"extend", "new lease, such as \"10 minutes\""},
	{"fair_key", "key that shares workers fairly"},
	{"feedback", "words of the person; modify needs them"},
	{"from_status", "status before"},
	{"from_step", "name of the first step to do anew"},
	{"goal", "what the plan is to achieve"},
	{"id", "id of anything"},
	{"idempotency_key", "the same key again returns the same plan"},
	{"inputs", "values for ${inputs.x}", OBJECT},
	{"is_error", "the tool failed, and the result is its error"},
	{"key", "which one of the event"},
	{"lease", "time after which others may take the step, such as \"10 minutes\""},
	{"listening", "the caller waits for a NOTIFY"},
	{"max", "longest list"},
	{"max_bytes", "longest answer"},
	{"max_steps", "stop after so many steps"},
	{"media_type", "such as text/markdown"},
	{"metadata", "JSON of the caller", OBJECT},
	{"modification_rationale", "why the plan is changed"},
	{"name", "its name"},
	{"older_than", "time without a sign of life, such as \"30 minutes\""},
	{"on_failure", "what a failed step does to the plan", WORDS("\"continue\", \"stop\", \"pause\", \"fail\"")},
	{"outcome", "what the work achieved", WORDS("\"success\", \"failure\"")},
	{"output_formatting_notes", "how the output is to look"},
	{"outputs", "what the plan yields, by references", OBJECT},
	{"params", "parameters of the action", OBJECT},
	{"payload", "what the event carries"},
	{"plan_id", "id of the plan"},
	{"priority", "1 to 5, low first"},
	{"query", "words to search for"},
	{"questions", "questions for the person", ARRAY},
	{"queue", "name of a queue"},
	{"queues", "names of queues, in order"},
	{"reason", "why"},
	{"recursive", "nested plans too"},
	{"response", "answer to the prompt"},
	{"result", "any JSON; later steps read its fields"},
	{"result_summary", "one or two sentences"},
	{"retryable", "a retry may help"},
	{"run_tools", "run the steps that the database can run"},
	{"separate_reviewer", "who works may not decide reviews"},
	{"session_id", "id of your session"},
	{"settings", "settings of the queue", OBJECT},
	{"skill_name", "name of the skill"},
	{"source_url", "where it comes from"},
	{"stall_after", "time without a sign of life after which a claim is stalled, such as \"30 minutes\""},
	{"status", "of the skill", WORDS("\"started\", \"executing\", \"completed\", \"failed\""), "log_skill_execution"},
	{"status", "only plans of this status",
	WORDS("\"planning\", \"executing\", \"awaiting_review\", \"stalled\", \"completed\", \"failed\", \"cancelled\"")},
	{"statuses", "statuses of the steps"},
	{"step_id", "id of the step"},
	{"step_name", "name of the step"},
	{"steps", "array of steps", ARRAY},
	{"strict_order", "one step at a time"},
	{"summary", "what the person is to judge"},
	{"tenant", "name of the tenant"},
	{"to_status", "status after"},
	{"tool", "name of the tool that was called"},
	{"topic", "such as definitions, gates or errors"},
	{"variables", "values by name; null deletes", OBJECT},
	{"version", "default: the newest"},
	{"worker", "your name, the same in all calls"},
	{"workflow", "name of the workflow"}
};

/* Find what an argument means. What it means in this function alone stands first. */
static const Meaning *
MeaningOf(const char *function, const char *name)
{
	for (size_t i = 0; i < lengthof(Meanings); i++)
		if (strcmp(Meanings[i].name, name) == 0 && (Meanings[i].function == NULL || strcmp(Meanings[i].function, function) == 0))
			return &Meanings[i];
	return NULL;
}

/* Make the schema of a type. */
static Jsonb *
TypeSchema(Oid type)
{
	Oid			element = get_element_type(type);

	switch (type)
	{
		case JSONBOID:
			return JsonEmptyObject();
		case BOOLOID:
			return JsonTextOf("type", "boolean");
		case INT4OID:
			return JsonTextOf("type", "integer");
		case FLOAT8OID:
			return JsonTextOf("type", "number");
		default:
			if (OidIsValid(element))
				return JsonMerge(JsonTextOf("type", "array"), JsonObjectOf("items", TypeSchema(element)));
			return JsonTextOf("type", "string");
	}
}

/* Put the schema of an argument of a function under its name. */
void
PutArgumentSchema(JsonBuilder *b, const Callable *callable, const CallableArgument *argument)
{
	const Meaning *meaning = MeaningOf(callable->name, argument->name);
	Jsonb	   *schema = meaning && meaning->schema ? JsonParse(meaning->schema) : TypeSchema(argument->type);

	JsonPutJson(b, argument->name, JsonMerge(schema, meaning ? JsonTextOf("description", meaning->description) : NULL));
}
