/*
 * pause.c
 *	  pause reasons: why a plan cannot go on, and which call unblocks it
 *
 * A reason is made where the step stops, stored on the step, and shown on
 * the plan (state.c takes that of the first step that blocks). Each has its
 * type and its keys in one function here.
 */
#include "stepwise.h"

/* Begin a reason; stepkey is blockedStep or failedStep. */
static void
ReasonStart(JsonBuilder *b, const char *type, const char *stepkey, const StepRow *step)
{
	JsonObjectStart(b, NULL);
	JsonPutText(b, "type", type);
	JsonPutText(b, stepkey, step->name);
}

static Jsonb *
ReasonEnd(JsonBuilder *b)
{
	JsonObjectEnd(b);
	return JsonFinish(b);
}

static void
PutSuggestedTool(JsonBuilder *b, const StepRow *step)
{
	JsonPutText(b, "suggestedTool", step->tool ? step->tool : "");
}

Jsonb *
ToolErrorReason(const StepRow *step, const char *error, const char *code, bool retryable)
{
	JsonBuilder b = {0};

	ReasonStart(&b, "toolError", "failedStep", step);
	JsonPutText(&b, "error", error ? error : "the step failed");
	JsonPutText(&b, "code", code);
	JsonPutBool(&b, "retryable", retryable);
	PutSuggestedTool(&b, step);
	return ReasonEnd(&b);
}

/* The reason of a step that waits for a person. */
Jsonb *
WaitingReason(const StepRow *step)
{
	const Waiting *waiting = step->waiting;
	JsonBuilder b = {0};

	ReasonStart(&b, waiting->review ? "reviewRequested" : "inputRequired", "blockedStep", step);
	JsonPutText(&b, waiting->review ? "summary" : "prompt", waiting->prompt);
	if (waiting->review)
	{
		if (waiting->questions != NULL)
			JsonPutJson(&b, "questions", waiting->questions);
		else
		{
			JsonArrayStart(&b, "questions");
			JsonArrayEnd(&b);
		}
	}
	JsonPutUuid(&b, "checkpointId", &waiting->checkpoint_id);
	return ReasonEnd(&b);
}

/* The reason of a step whose arguments cannot be resolved. */
Jsonb *
UnresolvedReason(const StepRow *step, const ResolveFault *fault)
{
	JsonBuilder b = {0};

	if (fault->problem == RESOLVE_DEPENDENCY)
	{
		ReasonStart(&b, "unresolvedDependency", "blockedStep", step);
		JsonPutText(&b, "missingOutput", fault->asked_for);
		JsonPutText(&b, "producingStep", fault->producing_step);
		PutSuggestedTool(&b, step);
		JsonPutText(&b, "producingTool", fault->producing_tool ? fault->producing_tool : "");
	}
	else
	{
		ReasonStart(&b, "unresolvableParams", "blockedStep", step);
		JsonPutText(&b, "missingParam", fault->param);
		PutSuggestedTool(&b, step);
	}
	return ReasonEnd(&b);
}

Jsonb *
ConditionReason(const StepRow *step, const char *error)
{
	JsonBuilder b = {0};

	ReasonStart(&b, "conditionError", "blockedStep", step);
	JsonPutText(&b, "condition", step->condition ? text_to_cstring((text *) step->condition) : NULL);
	JsonPutText(&b, "error", error ? error : "the condition cannot be decided");
	return ReasonEnd(&b);
}

/* The reason of a step that a run cannot do. */
Jsonb *
ClientToolReason(const StepRow *step, const Jsonb *arguments, const char *instructions)
{
	JsonBuilder b = {0};

	ReasonStart(&b, "clientTool", "blockedStep", step);
	PutSuggestedTool(&b, step);
	JsonPutJson(&b, "arguments", arguments);
	JsonPutText(&b, "instructions", instructions);
	return ReasonEnd(&b);
}

static void
PutNames(JsonBuilder *b, const char *key, const List *names)
{
	ListCell   *cell;

	JsonArrayStart(b, key);
	foreach(cell, names)
		JsonPutText(b, NULL, lfirst(cell));
	JsonArrayEnd(b);
}

/* The reason of a step whose arguments its tool would not take. */
Jsonb *
SchemaReason(const StepRow *step, const SchemaFault *fault)
{
	JsonBuilder b = {0};

	ReasonStart(&b, "schemaMismatch", "blockedStep", step);
	PutNames(&b, "missingFields", fault->missing);
	if (fault->invalid != NIL)
		PutNames(&b, "invalidFields", fault->invalid);
	PutSuggestedTool(&b, step);
	return ReasonEnd(&b);
}

Jsonb *
ResourceErrorReason(const StepRow *step, const char *uri, const char *error, bool retryable, const char *suggested)
{
	JsonBuilder b = {0};

	ReasonStart(&b, "resourceError", "failedStep", step);
	JsonPutText(&b, "uri", uri);
	JsonPutText(&b, "error", error);
	JsonPutBool(&b, "retryable", retryable);
	JsonPutText(&b, "suggestedTool", suggested);
	return ReasonEnd(&b);
}

/* Put the name of a step in front of the path of a reason that rises from its nested plan. */
Jsonb *
RisenReason(const Jsonb *reason, const char *step_name)
{
	JsonBuilder b = {0};
	JsonbValue	path;

	JsonObjectStart(&b, NULL);
	JsonArrayStart(&b, "path");
	JsonPutText(&b, NULL, step_name);
	if (JsonGet(reason, "path", &path))
	{
		Jsonb	   *below = JsonFromValue(&path);
		JsonbValue	name;

		for (int i = 0; JsonGetIndex(below, i, &name); i++)
			JsonPutValue(&b, NULL, &name);
	}
	else
	{
		char	   *name = JsonGetText(reason, "blockedStep");

		JsonPutText(&b, NULL, name ? name : JsonGetText(reason, "failedStep"));
	}
	JsonArrayEnd(&b);
	JsonObjectEnd(&b);
	return JsonMerge(reason, JsonFinish(&b));
}
