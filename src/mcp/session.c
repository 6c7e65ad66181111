/*
 * session.c
 *	  what a client learns first: versions, capabilities, instructions
 *
 * Nothing is kept here: a session is the client's affair.
 */
#include "mcp/mcp.h"

/*
 * The instructions, as a model needs them. Hosts cut texts over 2,048
 * characters. They name only tools that are listed, so there is a text for the
 * tools of models, one for a tool for each function, and one for who only reads.
 * What to do about a waiting person depends on whether the role may decide.
 */
#define ABOUT \
	"Stepwise keeps plans in PostgreSQL: goals, steps, results, waits for people. A plan outlives this conversation, and several agents may work on one.\n\n"
#define ENDED \
	"   - paused, waiting, no_pending_steps: message says why, nextCall what to do.\n" \
	"   - plan_complete, plan_failed, plan_cancelled: it has ended.\n"
#define RULES \
	"Rules: submit each result as soon as you have it. Do only the step that you were given. A result is JSON; later steps read its fields. "
#define ANSWERS \
	"Send attempt, and worker if you gave one, back with the result.\n" \
	"Answers have camelCase keys (planId); parameters are plan_id or planId.\n" \
	"An error has a code (SW001 to SW017) and a HINT: follow it. Nothing has changed then. The same call made twice does no harm: it answers duplicate, again or existing."

typedef struct Instruction
{
	const char *loop;			/* up to what to do about a person */
	const char *decide;
	const char *rest;
} Instruction;

static const char *const Undecided = "Tell the user, and ask again later: here nobody may decide.\n";

static const Instruction ForModels = {
	ABOUT
	"The loop:\n"
	"1. create_plan with a goal and steps, or start_workflow. To continue earlier work: get_plan_status without plan_id lists the active plans, and with view context it tells all that a new session needs.\n"
	"2. get_next_step with plan_id claims a step. Its status says what to do:\n"
	"   - step_ready: follow instructions, or call the tool that it names with its arguments. If inDatabase is true, the database can do it: call get_next_step with run_tools, or run.\n"
	"   - awaiting_review: a person must decide or answer. ",
	"Show the prompt to the user, then call submit_user_decision with what the user said. Never decide yourself.\n",
	ENDED
	"3. submit_step_result with step_id and result. Its answer has the next step under next, already claimed: go on with that.\n"
	"4. When a step cannot be done: update_step with action fail and the error, or skip, retry, release.\n"
	"\n"
	RULES
	"Long documents belong in store_artifact, the final answer too, with final true. If the plan turns out wrong, modify_plan. If a person should look at your work, request_user_review. "
	ANSWERS
};

static const Instruction ForFunctions = {
	ABOUT
	"The loop:\n"
	"1. create_plan with a goal and steps, or start_workflow. To continue earlier work: list_active_plans, then get_plan_context.\n"
	"2. get_next_step with plan_id claims a step. Its status says what to do:\n"
	"   - step_ready: follow instructions, or call the tool that it names with its arguments. If inDatabase is true, the database can do it: call get_next_step with run_tools, or run.\n"
	"   - awaiting_review: a person must decide or answer. ",
	"Show the prompt to the user, then call submit_user_decision, or resume if it is a prompt, with what the user said. Never decide yourself.\n",
	ENDED
	"3. advance with step_id and result. Its answer has the next step under next, already claimed: go on with that.\n"
	"4. When a step cannot be done: fail_step with the error, or skip_step, retry_step, release_step.\n"
	"\n"
	RULES
	"Long documents belong in store_artifact, the final answer in store_output. If the plan turns out wrong, modify_plan. If a person should look at your work, request_user_review. "
	ANSWERS
};

static const char *const ForReaders =
	ABOUT
	"Here you can only look: how plans stand, what they wait for, what they have produced. Find a plan first, then look at it by its id. "
	"Plans are started, worked on and decided over another connection: tell the user what is to be done there.\n"
	"Answers have camelCase keys (planId); parameters are plan_id or planId. An error has a code and a HINT.";

/* Write the instructions for a connection. */
static char *
Instructions(const Request *request)
{
	const Instruction *text = request->all_tools ? &ForFunctions : &ForModels;

	if (!MayAct(request, "get_next_step"))
		return pstrdup(ForReaders);
	return psprintf("%s%s%s", text->loop, MayAct(request, "submit_user_decision") ? text->decide : Undecided, text->rest);
}

/* what this server can do, by generation */
static const struct
{
	const char *name;
	Generation	generation;
	const char *json;
}			Capabilities[] = {
	{"tools", LEGACY, "{}"},
	{"tools", MODERN, "{\"listChanged\": true}"},
	{"prompts", LEGACY, "{}"},
	{"prompts", MODERN, "{\"listChanged\": true}"},
	{"resources", LEGACY, "{\"subscribe\": true}"},
	{"resources", MODERN, "{\"subscribe\": true, \"listChanged\": true}"},
	{"completions", BOTH, "{}"},
	{"tasks", LEGACY, "{\"list\": {}, \"cancel\": {}, \"requests\": {\"tools\": {\"call\": {}}}}"},
	{"extensions", MODERN, "{\"io.modelcontextprotocol/tasks\": {}}"},
	{"logging", LEGACY, "{}"}
};

static void
PutCapabilities(JsonBuilder *b, Generation generation)
{
	JsonObjectStart(b, "capabilities");
	for (size_t i = 0; i < lengthof(Capabilities); i++)
		if (Capabilities[i].generation & generation)
			JsonPutJson(b, Capabilities[i].name, JsonParse(Capabilities[i].json));
	JsonObjectEnd(b);
}

/* Answer initialize: with the version that is asked for, if it is known. */
Jsonb *
Initialize(Request *request)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "protocolVersion", LegacyVersion(JsonGetText(request->params, "protocolVersion")));
	PutCapabilities(&b, LEGACY);
	PutServerInfo(&b, "serverInfo");
	JsonPutText(&b, "instructions", Instructions(request));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Answer server/discover. */
Jsonb *
Discover(Request *request)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutTexts(&b, "supportedVersions", list_make1(MODERN_VERSION));
	PutCapabilities(&b, MODERN);
	JsonPutText(&b, "instructions", Instructions(request));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Answer ping. */
Jsonb *
Ping(Request *request)
{
	return JsonEmptyObject();
}

/* Accept a level of logging. This server sends no log messages. */
Jsonb *
SetLevel(Request *request)
{
	static const char *const levels[] = {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};
	char	   *level = ParamRequiredText(request, "level");

	if (NameIndex(level, levels, lengthof(levels)) < 0)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "unknown level \"%s\"; the levels are: %s", ShortText(level),
					  WordList(levels, lengthof(levels)));
	return JsonEmptyObject();
}
