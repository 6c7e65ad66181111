/*
 * judge.c
 *	  decide what becomes of a pending step, without changing anything
 *
 * The search for work, the functions that explain a pause, and the second
 * look at a blocked step all ask Judge, so they cannot disagree.
 */
#include "engine/engine.h"

/* Judge a value that is missing: it is only not there yet, or it blocks the step. */
static Due
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

static Due
JudgeCondition(Call *call, PlanRow *plan, const StepRow *step, Judgement *j)
{
	ResolveFault open = {0};
	char	   *why = NULL;

	if (step->condition_path == NULL)
		return DUE_READY;
	switch (StepConditionDecide(call, plan, step, &why, &open))
	{
		case CONDITION_TRUE:
			return DUE_READY;
		case CONDITION_FALSE:
			return DUE_SKIP;
		default:
			if (open.problem == RESOLVE_NOT_READY)
				return JudgeFault(step, &open, j);
			j->reason = ConditionReason(step, why);
			return DUE_BLOCKED;
	}
}

static Due
JudgePrompt(Call *call, PlanRow *plan, const StepRow *step, Judgement *j)
{
	ResolveFault fault = {0};

	j->prompt = FillStepText(call, plan, step, step->prompt, "prompt", &fault);
	return j->prompt ? DUE_ASK : JudgeFault(step, &fault, j);
}

/* Fill arguments, resources and instructions; READY means that all could be. */
static Due
JudgeArguments(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	ResolveFault fault = {0};

	FillArguments(call, plan, step, &fault);
	if (fault.problem == RESOLVE_FINE)
		next->resources = FillResources(call, plan, step, &fault);
	if (fault.problem == RESOLVE_FINE)
		next->instructions = FillStepText(call, plan, step, step->instructions, "instructions", &fault);
	return fault.problem == RESOLVE_FINE ? DUE_READY : JudgeFault(step, &fault, j);
}

/*
 * Say why a step that is ready is not for a run to do; NULL: it is. *why
 * explains what the reason does not.
 */
static Jsonb *
RunObstacle(Call *call, const StepRow *step, Next *next, char **why)
{
	SchemaFault fault = {0};
	Jsonb	   *arguments = StepInputs(step);

	next->tool = step->tool ? ToolFind(call, step->tool) : NULL;
	if (step->tool == NULL && step->resources != NULL)
		return NULL;
	if (next->tool == NULL || next->tool->function == NULL)
		return ClientToolReason(step, arguments, next->instructions);
	if (next->tool->input_schema == NULL)
		return NULL;
	/* they are read only after the claim, and handed over under this name */
	if (step->resources != NULL)
		arguments = JsonMerge(arguments, JsonObjectOf("resources", next->resources));
	if (SchemaMatch(next->tool->input_schema, arguments, &fault))
		return NULL;
	*why = fault.why;
	return SchemaReason(step, &fault);
}

/* A run does only what a tool in the database can do; the rest is the client's. */
static Due
JudgeRun(Call *call, const StepRow *step, Next *next, Judgement *j)
{
	j->reason = RunObstacle(call, step, next, &j->message);
	return j->reason ? DUE_BLOCKED : DUE_READY;
}

/* Decide what is to be made of a pending step; nothing is written. */
Due
Judge(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j)
{
	Due			due;

	/* a step that was claimed too often is not handed out again by itself */
	if (step->max_attempts > 0 && step->attempt >= step->max_attempts)
		return DUE_GIVE_UP;
	due = JudgeCondition(call, plan, step, j);
	if (due != DUE_READY)
		return due;
	if (step->prompt != NULL)
		return JudgePrompt(call, plan, step, j);
	due = JudgeArguments(call, plan, step, next, j);
	if (due != DUE_READY)
		return due;
	if (step->workflow != NULL)
		return DUE_NEST;
	return next->run ? JudgeRun(call, step, next, j) : DUE_READY;
}
