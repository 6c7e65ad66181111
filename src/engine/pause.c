/*
 * pause.c
 *	  pause reasons: why a plan cannot go on, and which call unblocks it
 *
 * A reason is made when a step cannot go on, and is stored in the step. The
 * plan shows the reason of its first step that has one (settle.c). Each type of
 * reason has its keys in one function here. In a nested plan, a reason also has
 * the path of its step; the parent_names of the plan are the first part of it.
 *
 * A reason is copied to the step, the plan and the audit log of every plan
 * above. So a reason over REASON_MAX_BYTES is shortened. It keeps its keys. A
 * long text or value is cut (base/cut.c), and names the call that reads it.
 */
#include "engine/engine.h"

/* each type of reason: its name, the key that names its step, and whether it stops only a run, not an agent */
static const struct
{
	const char *name;
	const char *step_key;
	bool		of_run;
}			Types[REASON_TYPES] = {
	[REASON_UNRESOLVABLE_PARAMS] = {"unresolvableParams", "blockedStep", false},
	[REASON_UNRESOLVED_DEPENDENCY] = {"unresolvedDependency", "blockedStep", false},
	[REASON_CONDITION_ERROR] = {"conditionError", "blockedStep", false},
	[REASON_CLIENT_TOOL] = {"clientTool", "blockedStep", true},
	[REASON_SCHEMA_MISMATCH] = {"schemaMismatch", "blockedStep", false},
	[REASON_TOOL_ERROR] = {"toolError", "failedStep", false},
	[REASON_RESOURCE_ERROR] = {"resourceError", "failedStep", false},
	[REASON_INPUT_REQUIRED] = {"inputRequired", "blockedStep", false},
	[REASON_REVIEW_REQUESTED] = {"reviewRequested", "blockedStep", false},
	[REASON_CHANGES_REQUESTED] = {"changesRequested", "blockedStep", false},
};

#define REASON_MAX_BYTES	8000
#define MEMBER_MAX_BYTES	1000	/* limit for one key if the whole is too large */

/* Put a member of a reason that is too large, shortened if the member is long. */
static void
PutShortened(JsonBuilder *b, const char *key, JsonbValue *value, const StepRow *step)
{
	ReadingFunction reader = {"get_step_context", "step_id", UuidText(&step->id), "max_bytes"};

	if (value->type == jbvString)
		JsonPutText(b, key, CutText(JsonValueText(value), MEMBER_MAX_BYTES, reader.function));
	else
		JsonPutJson(b, key, CutJson((struct varlena *) JsonFromValue(value), MEMBER_MAX_BYTES, &reader));
}

/* Shorten a reason that is too large to be copied to the plans above. In a nested plan, half of it is for the path. */
static Jsonb *
ReasonBound(Jsonb *reason, const StepRow *step)
{
	bool		nested = !UuidEqual(&step->root_id, &step->plan_id);
	JsonBuilder b = {0};
	const char **keys;
	int			count;
	int			max;

	max = nested ? REASON_MAX_BYTES / 2 : REASON_MAX_BYTES;
	if (VARSIZE(reason) <= max && JsonTextLength(reason) <= max)
		return reason;
	keys = JsonKeys(reason, &count);
	JsonObjectStart(&b, NULL);
	for (int i = 0; i < count; i++)
	{
		JsonbValue	value;

		if (JsonGet(reason, keys[i], &value))
			PutShortened(&b, keys[i], &value, step);
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Begin a reason with its type and its step. */
static void
ReasonStart(JsonBuilder *b, ReasonType type, const StepRow *step)
{
	JsonObjectStart(b, NULL);
	JsonPutText(b, "type", Types[type].name);
	JsonPutText(b, Types[type].step_key, step->name);
}

/* End a reason, and shorten it if it is too large. */
static Jsonb *
ReasonEnd(JsonBuilder *b, const StepRow *step)
{
	JsonObjectEnd(b);
	return ReasonBound(JsonFinish(b), step);
}

/* Put the tool of the step; an empty text if it has none. */
static void
PutSuggestedTool(JsonBuilder *b, const StepRow *step)
{
	JsonPutText(b, "suggestedTool", step->tool ? step->tool : "");
}

/* Build the reason of a step that failed. */
Jsonb *
ToolErrorReason(const StepRow *step, const char *error, bool retryable)
{
	JsonBuilder b = {0};

	ReasonStart(&b, REASON_TOOL_ERROR, step);
	JsonPutText(&b, "error", error ? error : "the step failed");
	JsonPutBool(&b, "retryable", retryable);
	PutSuggestedTool(&b, step);
	return ReasonEnd(&b, step);
}

/* Build the reason of a step that waits for a person. */
Jsonb *
WaitingReason(const StepRow *step)
{
	const Waiting *waiting = step->waiting;
	JsonBuilder b = {0};

	ReasonStart(&b, waiting->review ? REASON_REVIEW_REQUESTED : REASON_INPUT_REQUIRED, step);
	JsonPutText(&b, waiting->review ? "summary" : "prompt", waiting->prompt);
	if (waiting->review && waiting->questions != NULL)
		JsonPutJson(&b, "questions", waiting->questions);
	else if (waiting->review)
		JsonPutTexts(&b, "questions", NIL);
	JsonPutUuid(&b, "checkpointId", &waiting->checkpoint_id);
	return ReasonEnd(&b, step);
}

/* Build the reason of a step whose gate asked for changes. */
Jsonb *
ChangesReason(const StepRow *step)
{
	JsonBuilder b = {0};

	ReasonStart(&b, REASON_CHANGES_REQUESTED, step);
	JsonPutText(&b, "feedback", TextOf(step->feedback));
	return ReasonEnd(&b, step);
}

/* Build the reason of a step whose references cannot be resolved. */
Jsonb *
UnresolvedReason(const StepRow *step, const ResolveFault *fault)
{
	JsonBuilder b = {0};

	if (fault->problem == RESOLVE_DEPENDENCY)
	{
		ReasonStart(&b, REASON_UNRESOLVED_DEPENDENCY, step);
		JsonPutText(&b, "missingOutput", fault->asked_for);
		JsonPutText(&b, "producingStep", fault->producing_step);
		PutSuggestedTool(&b, step);
	}
	else
	{
		ReasonStart(&b, REASON_UNRESOLVABLE_PARAMS, step);
		JsonPutText(&b, "missingParam", fault->param);
		PutSuggestedTool(&b, step);
	}
	return ReasonEnd(&b, step);
}

/* Build the reason of a step whose condition cannot be decided. */
Jsonb *
ConditionReason(const StepRow *step, const char *error)
{
	JsonBuilder b = {0};

	ReasonStart(&b, REASON_CONDITION_ERROR, step);
	JsonPutText(&b, "condition", TextOf(step->condition));
	JsonPutText(&b, "error", error ? error : "the condition cannot be decided");
	return ReasonEnd(&b, step);
}

/* Build the reason of a step that a run cannot do, but a client can. */
Jsonb *
ClientToolReason(const StepRow *step, const Jsonb *arguments, const char *instructions)
{
	JsonBuilder b = {0};

	ReasonStart(&b, REASON_CLIENT_TOOL, step);
	PutSuggestedTool(&b, step);
	JsonPutJson(&b, "arguments", arguments);
	JsonPutText(&b, "instructions", instructions);
	return ReasonEnd(&b, step);
}

/* Put the names of fields, up to the size of one key, and how many were left out. */
static void
PutFields(JsonBuilder *b, const char *key, const List *fields)
{
	size_t		bytes = 0;
	ListCell   *cell;

	JsonArrayStart(b, key);
	foreach(cell, fields)
	{
		bytes += strlen(lfirst(cell)) + sizeof(JEntry);
		if (bytes > MEMBER_MAX_BYTES)
		{
			JsonPutText(b, NULL, psprintf("... (%d more)", list_length(fields) - foreach_current_index(cell)));
			break;
		}
		JsonPutText(b, NULL, lfirst(cell));
	}
	JsonArrayEnd(b);
}

/* Build the reason of a step whose arguments do not match the schema of its tool. */
Jsonb *
SchemaReason(const StepRow *step, const SchemaFault *fault)
{
	JsonBuilder b = {0};

	ReasonStart(&b, REASON_SCHEMA_MISMATCH, step);
	PutFields(&b, "missingFields", fault->missing);
	if (fault->invalid != NIL)
		PutFields(&b, "invalidFields", fault->invalid);
	PutSuggestedTool(&b, step);
	return ReasonEnd(&b, step);
}

/* Build the reason of a step that could not read a resource. */
Jsonb *
ResourceErrorReason(const StepRow *step, const char *uri, const char *error, bool retryable, const char *suggested)
{
	JsonBuilder b = {0};

	ReasonStart(&b, REASON_RESOURCE_ERROR, step);
	JsonPutText(&b, "uri", uri);
	JsonPutText(&b, "error", error);
	JsonPutBool(&b, "retryable", retryable);
	JsonPutText(&b, "suggestedTool", suggested);
	return ReasonEnd(&b, step);
}

/* Read the type of a reason. */
ReasonType
ReasonTypeOf(const Jsonb *reason)
{
	char	   *name = JsonGetText(reason, "type");

	for (int i = 0; name != NULL && i < REASON_TYPES; i++)
		if (strcmp(name, Types[i].name) == 0)
			return i;
	elog(ERROR, "unknown type of pause reason: %s", name ? name : "none");
}

/* Say whether a reason stops only a run, not an agent. */
bool
ReasonOfRun(const Jsonb *reason)
{
	return Types[ReasonTypeOf(reason)].of_run;
}

/* Read the name of the step that a reason is about. */
static char *
ReasonStepName(const Jsonb *reason)
{
	return JsonGetText(reason, Types[ReasonTypeOf(reason)].step_key);
}

/* Add the path of its step to a reason of a nested plan, unless a plan below has done so. */
Jsonb *
ReasonWithPath(PlanRow *plan, Jsonb *reason)
{
	StepRow		step = {.name = ReasonStepName(reason)};
	JsonBuilder b = {0};
	JsonbValue	path;

	if (!plan->nested || JsonGet(reason, "path", &path))
		return reason;
	JsonObjectStart(&b, NULL);
	PutPath(&b, plan, &step);
	JsonObjectEnd(&b);
	return JsonMerge(reason, JsonFinish(&b));
}

/* Find the step that the pause reason of a plan is about, at any depth; NULL if there is none. */
StepRow *
StepOfReason(Call *call, const PlanRow *plan)
{
	Jsonb	   *reason = JsonOf(plan->pause_reason);
	Jsonb	   *path = JsonGetJson(reason, "path");
	char	   *name;

	if (path != NULL)
		return StepAtPath(call, plan, path);
	name = reason ? ReasonStepName(reason) : NULL;
	return name ? StepReadByName(call, &plan->id, name) : NULL;
}
