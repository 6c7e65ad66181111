/*
 * ready.c
 *	  what a step of each kind needs before it can be done
 *
 * Each function fills the references of a step in memory, and says what is due
 * with the step. None of them writes to the database. The table in kind.c says
 * which function serves which kind.
 */
#include "engine/engine.h"

/*
 * Judge a step that refers to a missing value. If the value is still to come,
 * the step waits for the step that makes it; otherwise it is blocked.
 */
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

/* Fill the text of a prompt. The prompt can be asked once that is done. */
Due
ReadyPrompt(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	ResolveFault fault = {0};

	j->prompt = FillStepText(call, plan, step, step->prompt, "prompt", &fault);
	return j->prompt ? DUE_ASK : JudgeFault(step, &fault, j);
}

/* Fill the arguments, resources and instructions of a step. */
static Due
ReadyArguments(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	ResolveFault fault = {0};

	next->tool = NULL;
	FillArguments(call, plan, step, &fault);
	if (fault.problem == RESOLVE_FINE)
		next->resources = FillResources(call, plan, step, &fault);
	if (fault.problem == RESOLVE_FINE)
		next->instructions = FillStepText(call, plan, step, step->instructions, "instructions", &fault);
	return fault.problem == RESOLVE_FINE ? DUE_READY : JudgeFault(step, &fault, j);
}

/* Fill the arguments of a step that runs a workflow. They are the inputs of its nested plan. */
Due
ReadyNested(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	Due			due = ReadyArguments(call, plan, step, next, j);

	return due == DUE_READY ? DUE_NEST : due;
}

/* Fill a step that reads resources. Both an agent and a run can do it. */
Due
ReadyResources(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	return ReadyArguments(call, plan, step, next, j);
}

/*
 * Decide what becomes of a step that the client does. It blocks a run, unless
 * the run only goes before an agent, which then takes the step.
 */
static Due
ReadyForClient(const StepRow *step, const Next *next, Judgement *j)
{
	if (next->run_tools)
		return next->run ? DUE_WAITS : DUE_READY;
	j->reason = ClientToolReason(step, StepInputs(step), next->instructions);
	return DUE_BLOCKED;
}

/* Fill a step with plain instructions. A run cannot follow them, so the step blocks a run. */
Due
ReadyInstructions(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	Due			due = ReadyArguments(call, plan, step, next, j);

	return due == DUE_READY && next->run ? ReadyForClient(step, next, j) : due;
}

/*
 * Find the pause reason of a step whose arguments do not fit the schema of its
 * tool; NULL if they fit. *why is set if the step needs a message beside the
 * reason.
 */
static Jsonb *
SchemaObstacle(const StepRow *step, const Next *next, char **why)
{
	SchemaFault fault = {0};
	Jsonb	   *arguments = StepInputs(step);

	if (next->tool->input_schema == NULL)
		return NULL;
	/* The tool gets resources under this name. They are read after the claim, so their URIs stand for them here. */
	if (step->resources != NULL)
		arguments = JsonMerge(arguments, JsonObjectOf("resources", next->resources));
	if (SchemaMatch(next->tool->input_schema, arguments, &fault))
		return NULL;
	*why = fault.why;
	return SchemaReason(step, &fault);
}

/*
 * Fill a step with a tool. The arguments must fit its schema, whoever calls it.
 * An agent can call any tool; a run needs a function in the database.
 */
Due
ReadyTool(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	Due			due = ReadyArguments(call, plan, step, next, j);

	if (due != DUE_READY)
		return due;
	next->tool = ToolFind(call, step->tool);
	if (next->run && (next->tool == NULL || next->tool->function == NULL))
		return ReadyForClient(step, next, j);
	if (next->tool != NULL)
		j->reason = SchemaObstacle(step, next, &j->message);
	return j->reason ? DUE_BLOCKED : DUE_READY;
}
