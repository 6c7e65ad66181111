/*
 * ready.c
 *	  what a step of each kind needs before it can be done
 *
 * These functions fill the step, and change nothing in the database. kind.c
 * says which of them serves which kind.
 */
#include "engine/engine.h"

/* Judge a missing value: either it is not there yet, or it blocks the step. */
Due
JudgeFault(const StepRow *step, const ResolveFault *fault, Judgement *j)
{
	if (fault->problem == RESOLVE_NOT_READY)
	{
		j->awaited = fault->producer;
		return DUE_WAITS;
	}
	j->message = fault->message;
	j->reason = UnresolvedReason(step, fault);
	return DUE_BLOCKED;
}

/* A prompt can be asked when its text can be filled. */
Due
ReadyPrompt(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	ResolveFault fault = {0};

	j->prompt = FillStepText(call, plan, step, step->prompt, "prompt", &fault);
	return j->prompt ? DUE_ASK : JudgeFault(step, &fault, j);
}

/* Fill arguments, resources and instructions. */
static Due
ReadyArguments(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	ResolveFault fault = {0};

	FillArguments(call, plan, step, &fault);
	if (fault.problem == RESOLVE_FINE)
		next->resources = FillResources(call, plan, step, &fault);
	if (fault.problem == RESOLVE_FINE)
		next->instructions = FillStepText(call, plan, step, step->instructions, "instructions", &fault);
	return fault.problem == RESOLVE_FINE ? DUE_READY : JudgeFault(step, &fault, j);
}

/* A nested plan can be opened when its inputs can be filled. */
Due
ReadyNested(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	Due			due = ReadyArguments(call, plan, step, next, j);

	return due == DUE_READY ? DUE_NEST : due;
}

/* Whoever reads resources can be an agent or a run. */
Due
ReadyResources(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	return ReadyArguments(call, plan, step, next, j);
}

/* Instructions are for an agent; a run cannot follow them. */
Due
ReadyInstructions(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	Due			due = ReadyArguments(call, plan, step, next, j);

	if (due != DUE_READY || !next->run)
		return due;
	j->reason = ClientToolReason(step, StepInputs(step), next->instructions);
	return DUE_BLOCKED;
}

/* Say why a run cannot call the tool of a step; NULL: it can. *why explains what the reason does not. */
static Jsonb *
ToolObstacle(Call *call, const StepRow *step, Next *next, char **why)
{
	SchemaFault fault = {0};
	Jsonb	   *arguments = StepInputs(step);

	next->tool = ToolFind(call, step->tool);
	if (next->tool == NULL || next->tool->function == NULL)
		return ClientToolReason(step, arguments, next->instructions);
	if (next->tool->input_schema == NULL)
		return NULL;
	/* resources are read after the claim, and handed over under this name */
	if (step->resources != NULL)
		arguments = JsonMerge(arguments, JsonObjectOf("resources", next->resources));
	if (SchemaMatch(next->tool->input_schema, arguments, &fault))
		return NULL;
	*why = fault.why;
	return SchemaReason(step, &fault);
}

/* An agent calls any tool; a run needs a function in the database that takes the arguments. */
Due
ReadyTool(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	Due			due = ReadyArguments(call, plan, step, next, j);

	if (due != DUE_READY || !next->run)
		return due;
	j->reason = ToolObstacle(call, step, next, &j->message);
	return j->reason ? DUE_BLOCKED : DUE_READY;
}
