/*
 * kind.c
 *	  kinds of step
 *
 * A step asks a person, runs a workflow, calls a tool, reads resources, or has
 * plain instructions. StepKindOf finds out which from the definition of the
 * step. One table says what each kind allows. A new kind needs a value of
 * StepKind, a line in the table, a test in StepKindOf, and a function in
 * ready.c that says when a step of that kind is ready.
 */
#include "engine/engine.h"

static const StepKindRule Kinds[] = {
	[KIND_INSTRUCTIONS] = {
		.by_worker = true,
		.ready = ReadyInstructions,
	},
	[KIND_RESOURCES] = {
		.by_worker = true,
		.ready = ReadyResources,
	},
	[KIND_TOOL] = {
		.by_worker = true,
		.ready = ReadyTool,
	},
	[KIND_PROMPT] = {
		.does = "asks a person",
		.ready = ReadyPrompt,
		.hint = {
			[STEP_PENDING] = "A person is asked when it is due: stepwise.get_next_step(root_id) opens its checkpoint then.",
			/* only plain SQL starts a prompt */
			[STEP_IN_PROGRESS] = "It was started by hand, so nobody is asked; leave it out with stepwise.skip_step(step_id).",
		},
	},
	[KIND_WORKFLOW] = {
		.does = "runs workflow",
		.nests = true,
		.ready = ReadyNested,
		.refusal_detail = "Its result is what its nested plan makes.",
		.hint = {
			[STEP_PENDING] = "stepwise.get_next_step(root_id) hands out the steps of its nested plan; stepwise.skip_step(step_id) ends it.",
			[STEP_IN_PROGRESS] = "stepwise.get_next_step(root_id) hands out the steps of its nested plan; stepwise.skip_step(step_id) ends it.",
		},
	},
};

/* Find the kind of a step; a definition has at most one of prompt, workflow and tool. */
StepKind
StepKindOf(const StepRow *step)
{
	if (step->prompt != NULL)
		return KIND_PROMPT;
	if (step->workflow != NULL)
		return KIND_WORKFLOW;
	if (step->tool != NULL)
		return KIND_TOOL;
	return step->resources != NULL ? KIND_RESOURCES : KIND_INSTRUCTIONS;
}

/* Find the rules for the kind of a step. */
const StepKindRule *
StepRuleOf(const StepRow *step)
{
	return &Kinds[StepKindOf(step)];
}

/* Say whether a nested plan does the work of a step. */
bool
StepNests(const StepRow *step)
{
	return StepRuleOf(step)->nests;
}

/* Say whether a step has a gate at this place: GATE_BEFORE or GATE_AFTER. */
bool
StepHasGate(const StepRow *step, const char *when)
{
	return step->review != NULL && strcmp(JsonGetText(JsonOf(step->review), "when"), when) == 0;
}

/* Say in words what a step does. The step must be of a kind that no worker does. */
char *
StepDoes(const StepRow *step)
{
	const char *does = StepRuleOf(step)->does;

	return StepNests(step) ? psprintf("%s \"%s\"", does, step->workflow) : pstrdup(does);
}

/* Say whether a failed step may be retried. Its definition decides; if that does not say, its tool decides. */
bool
StepIsRetryable(Call *call, const StepRow *step)
{
	Tool	   *tool;

	if (step->retryable >= 0)
		return step->retryable;
	tool = StepKindOf(step) == KIND_TOOL ? ToolFind(call, step->tool) : NULL;
	return tool != NULL && tool->retryable;
}
