/*
 * markdown.c
 *	  a plan as Markdown, for people
 *
 * It is written from what get_plan_context answers, so it is bounded as that
 * is. Texts of users are quoted or indented, so they cannot look like a part of
 * the page.
 */
#include "mcp/mcp.h"

#define RESULT_SHOWN	2000	/* of a result that is shown */

/* the mark of a step, by its status */
static const char *const StepMark[STEP_STATUSES] = {
	[STEP_PENDING] = "[ ]",
	[STEP_IN_PROGRESS] = "[~]",
	[STEP_AWAITING_INPUT] = "[?]",
	[STEP_COMPLETED] = "[x]",
	[STEP_FAILED] = "[!]",
	[STEP_SKIPPED] = "[-]"
};

/* Append a text as one line of at most that many characters. */
static void
AppendLine(StringInfo out, const char *text, int length)
{
	char	   *line = CutText(text, length, NULL);

	for (char *c = line; *c; c++)
		if (*c == '\n' || *c == '\r')
			*c = ' ';
	appendStringInfoString(out, line);
}

/* Append a text, each line behind a prefix. */
static void
AppendBehind(StringInfo out, const char *prefix, const char *text)
{
	appendStringInfoString(out, prefix);
	for (; *text; text++)
	{
		appendStringInfoChar(out, *text);
		if (*text == '\n' && text[1] != '\0')
			appendStringInfoString(out, prefix);
	}
	appendStringInfoString(out, "\n");
}

static const char *
MarkOf(const char *status)
{
	int			index = status ? NameIndex(status, StepStatusName, STEP_STATUSES) : -1;

	return index < 0 ? "[ ]" : StepMark[index];
}

/* Append what a step has come to: its summary, its message, its result. */
static void
AppendOutcome(StringInfo out, const Jsonb *step)
{
	char	   *summary = JsonGetText(step, "resultSummary");
	char	   *message = JsonGetText(step, "message");
	JsonbValue	result;

	if (summary != NULL)
		AppendBehind(out, "    > ", CutText(summary, RESULT_SHOWN, NULL));
	if (message != NULL)
		AppendBehind(out, "    > ", CutText(message, RESULT_SHOWN, NULL));
	if (!JsonGet(step, "result", &result) || result.type == jbvNull)
		return;
	appendStringInfoString(out, "\n");
	AppendBehind(out, "        ", CutText(JsonScalarText(&result), RESULT_SHOWN, NULL));
	appendStringInfoString(out, "\n");
}

static void
AppendStep(StringInfo out, const Jsonb *step)
{
	char	   *status = JsonGetText(step, "status");
	char	   *tool = JsonGetText(step, "tool");
	char	   *name = JsonGetText(step, "name");

	appendStringInfo(out, "- %s **%s** (%s%s%s)\n", MarkOf(status), name ? name : "", status ? status : "",
					 tool ? ", tool " : "", tool ? tool : "");
	AppendOutcome(out, step);
}

/* Append each element of a list under a heading; nothing if there are none. */
static void
AppendList(StringInfo out, const Jsonb *context, const char *key, const char *heading,
		   void (*append) (StringInfo out, const Jsonb *element))
{
	Jsonb	   *list = JsonGetJson(context, key);
	JsonbValue	element;

	if (list == NULL || !JsonIsArray(list) || JB_ROOT_COUNT(list) == 0)
		return;
	appendStringInfo(out, "\n## %s\n\n", heading);
	for (int i = 0; JsonGetIndex(list, i, &element); i++)
		append(out, JsonFromValue(&element));
}

static void
AppendCheckpoint(StringInfo out, const Jsonb *checkpoint)
{
	char	   *prompt = JsonGetText(checkpoint, "prompt");
	char	   *kind = JsonGetText(checkpoint, "kind");

	appendStringInfo(out, "- %s, checkpoint `%s`\n", kind ? kind : "wait", JsonGetText(checkpoint, "checkpointId"));
	if (prompt != NULL)
		AppendBehind(out, "    > ", CutText(prompt, RESULT_SHOWN, NULL));
}

static void
AppendArtifact(StringInfo out, const Jsonb *artifact)
{
	appendStringInfoString(out, "- ");
	AppendLine(out, JsonGetText(artifact, "name"), TITLE_MAX_CHARS);
	appendStringInfoString(out, "\n");
}

/* Write a plan as Markdown, from the answer of get_plan_context. */
char *
PlanMarkdown(const Jsonb *context)
{
	StringInfoData out;
	char	   *goal = JsonGetText(context, "goal");
	Jsonb	   *final = JsonGetJson(context, "finalOutput");

	initStringInfo(&out);
	appendStringInfoString(&out, "# ");
	AppendLine(&out, JsonGetText(context, "name"), TITLE_MAX_CHARS);
	appendStringInfo(&out, "\n\nPlan `%s`, status **%s**\n\n", JsonGetText(context, "planId"), JsonGetText(context, "status"));
	if (goal != NULL)
		AppendBehind(&out, "> ", goal);
	AppendList(&out, context, "steps", "Steps", AppendStep);
	AppendList(&out, context, "checkpoints", "Waits for a person", AppendCheckpoint);
	AppendList(&out, context, "artifacts", "Artifacts", AppendArtifact);
	if (final != NULL && JsonIsObject(final) && JsonGetText(final, "content") != NULL)
		appendStringInfo(&out, "\n## Final output\n\n%s\n", JsonGetText(final, "content"));
	return out.data;
}
