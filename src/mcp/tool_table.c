/*
 * tool_table.c
 *	  the tools that a model sees by default
 *
 * A model chooses worse among many tools, and reads their descriptions in
 * every conversation. So there are twelve, and their texts are short. Each has
 * the parameters that a model needs; a call may give every other argument of
 * the functions behind it too.
 */
#include "mcp/mcp.h"

#define STRING		"{\"type\": \"string\"}"
#define INTEGER		"{\"type\": \"integer\"}"
#define NUMBER		"{\"type\": \"number\"}"
#define BOOLEAN		"{\"type\": \"boolean\"}"
#define OBJECT		"{\"type\": \"object\"}"
#define ARRAY		"{\"type\": \"array\"}"
#define STRINGS		"{\"type\": \"array\", \"items\": {\"type\": \"string\"}}"
#define ANYTHING	"{}"
#define WORDS(list)	"{\"type\": \"string\", \"enum\": [" list "]}"

/* parameters that several tools have */
#define PLAN		{"plan_id", STRING, "id of the plan", .required = true}
#define STEP_ID		{"step_id", STRING, "id of the step; or give plan_id and step"}
#define STEP_PLAN	{"plan_id", STRING, "plan of the step"}
#define STEP_NAME	{"step", STRING, "name of the step"}
#define ATTEMPT		{"attempt", INTEGER, "attempt that get_next_step gave"}
#define WORKER		{"worker", STRING, "your name, the same in all calls"}
#define MAX_BYTES	{"max_bytes", INTEGER, "longest answer; default 25000"}
#define END			{NULL}

static const ToolParam CreatePlanParams[] = {
	{"name", STRING, "short name", .required = true},
	{"goal", STRING, "what the plan is to achieve", .required = true},
	{"steps", "{\"type\": \"array\", \"items\": {\"type\": \"object\", \"properties\": {"
		"\"name\": {\"type\": \"string\"}, \"instructions\": {\"type\": \"string\"}, \"tool\": {\"type\": \"string\"},"
		" \"arguments\": {\"type\": \"object\"}, \"prompt\": {\"type\": \"string\"}, \"workflow\": {\"type\": \"string\"},"
		" \"dependsOn\": {\"type\": \"array\"}, \"condition\": {\"type\": \"string\"}, \"review\": {\"type\": \"object\"}}}}",
		"in order. Each has instructions for you, or a tool with arguments, or a prompt for a person, or a workflow."
		" ${inputs.x} and ${steps.NAME.outputs.x} refer to values. dependsOn names steps; review {when: before|after, summary} is a gate",
	.required = true},
	{"inputs", OBJECT, "values for ${inputs.x}"},
	{"outputs", OBJECT, "what the plan yields, by references"},
	{"branching_conditions", ARRAY, "[{afterStep, conditionExpression, ifTrueAction, actionParams}]"},
	{"on_failure", WORDS("\"continue\", \"stop\", \"pause\", \"fail\""), "what a failed step does to the plan"},
	{"strict_order", BOOLEAN, "one step at a time"},
	{"separate_reviewer", BOOLEAN, "who works may not decide reviews"},
	{"idempotency_key", STRING, "the same key again returns the same plan"},
	END
};

static const ToolParam StartWorkflowParams[] = {
	{"workflow", STRING, "its name; leave out to list the workflows"},
	{"inputs", OBJECT, "values for its declared inputs"},
	{"version", INTEGER, "default: the newest"},
	{"goal", STRING, "default: its description"},
	{"idempotency_key", STRING, "the same key again returns the same plan"},
	END
};

static const ToolParam GetNextStepParams[] = {
	PLAN,
	WORKER,
	{"lease", STRING, "time after which others may take the step, such as \"10 minutes\""},
	{"run_tools", BOOLEAN, "first run the steps that the database can run"},
	MAX_BYTES,
	END
};

static const ToolParam SubmitStepResultParams[] = {
	STEP_ID, STEP_PLAN, STEP_NAME,
	{"result", ANYTHING, "any JSON; later steps read its fields", .required = true},
	{"result_summary", STRING, "one or two sentences"},
	{"confidence", NUMBER, "0 to 1"},
	{"outcome", WORDS("\"success\", \"failure\""), "failure: done, but it did not achieve its aim"},
	{"next", BOOLEAN, "false: do not claim the next step"},
	ATTEMPT, WORKER,
	MAX_BYTES,
	END
};

static const ToolParam UpdateStepParams[] = {
	{"action", WORDS("\"fail\", \"retry\", \"skip\", \"release\", \"heartbeat\""), "fail: it cannot be done; retry: a failed step;"
		" release: give the claim back; heartbeat: still at work", .required = true},
	STEP_ID, STEP_PLAN, STEP_NAME,
	{"error", STRING, "for fail: what went wrong"},
	{"retryable", BOOLEAN, "for fail: a retry may help"},
	{"reason", STRING, "for skip"},
	ATTEMPT, WORKER,
	END
};

static const ToolParam RequestUserReviewParams[] = {
	STEP_ID, STEP_PLAN, STEP_NAME,
	{"summary", STRING, "what the person is to judge", .required = true},
	{"questions", STRINGS, "for the person"},
	{"result", ANYTHING, "an approval completes the step with it"},
	ATTEMPT,
	END
};

static const ToolParam SubmitUserDecisionParams[] = {
	{"checkpoint_id", STRING, "checkpointId of the wait", .required = true},
	{"decision", WORDS("\"approve\", \"modify\", \"reject\", \"skip\""), "on a review; modify sends the step back"},
	{"feedback", STRING, "the person's words; modify needs it"},
	{"answers", ANYTHING, "to the questions of the review"},
	{"response", ANYTHING, "instead of decision: the answer to a prompt"},
	{"run_tools", BOOLEAN, "then run what the database can run"},
	END
};

static const ToolParam ModifyPlanParams[] = {
	PLAN,
	{"action", WORDS("\"add_steps\", \"remove_step\", \"reorder_steps\", \"update_step_instructions\", \"update_step\", \"fail_step\","
		" \"set_outputs\", \"cancel\""), "what to change", .required = true},
	{"params", OBJECT, "add_steps {steps, after}; remove_step {step}; reorder_steps {steps}; update_step_instructions {step, instructions};"
	" update_step {step, keys of a step}; fail_step {step, reason}; set_outputs {outputs}"},
	{"modification_rationale", STRING, "why"},
	END
};

static const ToolParam GetPlanStatusParams[] = {
	{"plan_id", STRING, "leave out to list the active plans"},
	{"view", WORDS("\"status\", \"context\", \"why\", \"tree\""), "status: progress; context: all that a new session needs;"
	" why: what it waits for; tree: all inputs and outputs"},
	{"step", STRING, "for context: around this step"},
	{"query", STRING, "without plan_id: search plans by words"},
	{"status", WORDS("\"planning\", \"executing\", \"awaiting_review\", \"stalled\", \"completed\", \"failed\", \"cancelled\""),
	"without plan_id: only plans of this status"},
	{"max", INTEGER, "longest list; default 20"},
	MAX_BYTES,
	END
};

static const ToolParam RunParams[] = {
	PLAN,
	{"max_steps", INTEGER, "stop after so many"},
	END
};

static const ToolParam StoreArtifactParams[] = {
	PLAN,
	{"name", STRING, "the same name again is a new version; not needed with final"},
	{"content", STRING, "the text", .required = true},
	{"final", BOOLEAN, "it is the final output of the plan"},
	{"step", STRING, "name or id of the step that made it"},
	{"media_type", STRING, "such as text/markdown"},
	END
};

static const ToolParam SearchArtifactsParams[] = {
	{"query", STRING, "words to search for"},
	{"plan_id", STRING, "only in this plan"},
	{"name", STRING, "with plan_id instead of query: the whole document"},
	{"version", INTEGER, "of the document; default: the newest"},
	{"max", INTEGER, "longest list; default 20"},
	MAX_BYTES,
	END
};

const ModelTool ModelTools[MODEL_TOOLS] = {
	{"create_plan", "Create a plan", "Store a goal and its steps as a durable plan. Use it for work of several steps, or work that others continue."
		" Then call get_next_step with planId.",
		CreatePlanParams, {"create_plan"}, NULL,
		.output = "{\"type\": \"object\", \"properties\": {\"planId\": {\"type\": \"string\"}, \"status\": {\"type\": \"string\"},"
	" \"stepCount\": {\"type\": \"integer\"}}, \"required\": [\"planId\"]}"},
	{"start_workflow", "Start a workflow", "Start a plan from a workflow that is defined in the database, or list the workflows."
		" Then call run or get_next_step with planId.",
	StartWorkflowParams, {"start_workflow", "list_workflows"}, StartWorkflow},
	{"get_next_step", "Get the next step", "Claim the next step of a plan and learn what to do, or why there is none."
		" Do the step, then call submit_step_result.",
		GetNextStepParams, {"get_next_step"}, NULL,
		.output = "{\"type\": \"object\", \"properties\": {\"status\": {\"type\": \"string\", \"enum\": [\"step_ready\", \"plan_complete\","
		" \"plan_failed\", \"plan_cancelled\", \"awaiting_review\", \"paused\", \"waiting\", \"no_pending_steps\"]}},"
	" \"required\": [\"status\"]}"},
	{"submit_step_result", "Submit a result", "Submit the result of a step. The answer has the next step under next, already claimed:"
		" go on with it without get_next_step.",
		SubmitStepResultParams, {"advance", "submit_step_result", "record_tool_result"}, SubmitStepResult, .idempotent = true,
	.output = "{\"type\": \"object\", \"properties\": {\"submitted\": {\"type\": \"object\"}, \"next\": {\"type\": \"object\"}}}"},
	{"update_step", "Update a step", "Say that a step failed, or retry, skip or release it, or show that you are still at work."
		" Then call get_next_step.",
	UpdateStepParams, {"fail_step", "retry_step", "skip_step", "release_step", "heartbeat"}, UpdateStep, .destructive = true},
	{"request_user_review", "Ask for a review", "Let a step that you work on wait until a person has looked at it."
		" Show the summary to the user, then call submit_user_decision or stop.",
	RequestUserReviewParams, {"request_user_review"}, RequestUserReview},
	{"submit_user_decision", "Submit a person's decision", "Pass on what the user decided about a review, or answered to a prompt."
		" Only the user's own words; never decide yourself. Then call get_next_step.",
	SubmitUserDecisionParams, {"submit_user_decision", "resume"}, SubmitUserDecision, .destructive = true},
	{"modify_plan", "Change a plan", "Add, remove, reorder or change steps of a plan that has not ended, or cancel it."
		" Use it when the plan turns out wrong.",
	ModifyPlanParams, {"modify_plan", "cancel_plan"}, ModifyPlan, .destructive = true},
	{"get_plan_status", "Look at plans", "See how a plan stands, continue one from an earlier session (view context), or find plans."
		" It changes nothing.",
		GetPlanStatusParams, {"get_plan_status", "get_plan_context", "get_step_context", "why", "execution", "find_plans", "list_plans",
	"list_active_plans"}, GetPlanStatus, .reads = true, .idempotent = true},
	{"run", "Run in the database", "Run the steps whose tools are in the database, until the plan ends or needs you or a person."
		" next_call says how to go on.",
		RunParams, {"run"}, RunPlan, .destructive = true,
		.output = "{\"type\": \"object\", \"properties\": {\"task_id\": {\"type\": \"string\"}, \"task_status\": {\"type\": \"string\"},"
	" \"steps\": {\"type\": \"array\"}}, \"required\": [\"task_id\", \"task_status\"]}"},
	{"store_artifact", "Store a document", "Keep a document with a plan, for later steps and sessions."
		" With final, it is the answer of the whole plan.",
	StoreArtifactParams, {"store_artifact", "store_output"}, StoreArtifact},
	{"search_artifacts", "Search documents", "Search the stored documents of all plans by words, best first."
		" Or read one by plan_id and name.",
	SearchArtifactsParams, {"search_artifacts", "get_artifact"}, SearchArtifacts, .reads = true, .idempotent = true},
};

/* Find a tool of this table; NULL if there is none. */
const ModelTool *
ModelToolFind(const char *name)
{
	for (int i = 0; i < MODEL_TOOLS; i++)
		if (strcmp(ModelTools[i].name, name) == 0)
			return &ModelTools[i];
	return NULL;
}

/* Check whether a tool is listed: the role may call its first function, and the connection may write or the tool reads. */
bool
ModelToolIsListed(const Request *request, const ModelTool *tool)
{
	const Callable *callable = CallableFind(tool->functions[0]);

	return callable != NULL && CallableIsGranted(callable) && (tool->reads || !request->read_only);
}

/* Put what a tool does to the world. */
void
PutAnnotations(JsonBuilder *b, bool reads, bool destructive, bool idempotent, bool open_world)
{
	JsonObjectStart(b, "annotations");
	JsonPutBool(b, "readOnlyHint", reads);
	JsonPutBool(b, "destructiveHint", destructive);
	JsonPutBool(b, "idempotentHint", idempotent);
	JsonPutBool(b, "openWorldHint", open_world);
	JsonObjectEnd(b);
}
