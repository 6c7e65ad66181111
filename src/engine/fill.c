/*
 * fill.c
 *	  fill the references in a step's arguments, resources and texts
 *
 * To fill is to replace each reference by its value (resolve.c). Only a step
 * that is marked dynamic has references. Other steps are used as they are
 * written.
 */
#include "engine/engine.h"

/* Fill a text of a step; NULL if there is no text, or on a fault. */
char *
FillStepText(Call *call, PlanRow *plan, const StepRow *step, struct varlena *template, const char *param, ResolveFault *fault)
{
	char	   *written;

	if (template == NULL)
		return NULL;
	written = TextOf(template);
	return step->dynamic ? ResolveText(call, plan, written, param, fault) : written;
}

/* Fill the resource URIs of a step; NULL if it has none, or on a fault. */
Jsonb *
FillResources(Call *call, PlanRow *plan, const StepRow *step, ResolveFault *fault)
{
	Jsonb	   *written;

	if (step->resources == NULL)
		return NULL;
	written = JsonOf(step->resources);
	fault->param = "resources";
	return step->dynamic ? ResolveJson(call, plan, written, fault) : written;
}

/* Check the limits of filled arguments. An excess is a fault and not an error, so only this step is blocked. */
static bool
ArgumentsFit(const Jsonb *inputs, ResolveFault *fault)
{
	char	   *excess = JsonExcess(inputs);

	if (excess == NULL)
		return true;
	fault->problem = RESOLVE_MISSING;
	fault->param = "arguments";
	fault->message = psprintf("what the arguments resolve to %s", excess);
	return false;
}

/* Fill the arguments of a step, into step->inputs; false if there is nothing to fill, or on a fault. */
bool
FillArguments(Call *call, PlanRow *plan, StepRow *step, ResolveFault *fault)
{
	Jsonb	   *inputs;

	if (!step->dynamic || step->arguments == NULL)
		return false;
	inputs = ResolveJson(call, plan, JsonOf(step->arguments), fault);
	if (inputs == NULL || !ArgumentsFit(inputs, fault))
		return false;
	step->inputs = (struct varlena *) inputs;
	return true;
}

/*
 * Fill the arguments of a step that starts without a search: it was submitted
 * or reviewed while pending, or its status was set by hand. A fault must not
 * stop a worker that did the step without the arguments; they stay templates
 * then. Returns true if step->inputs has changed.
 */
bool
StepFillInputs(Call *call, PlanRow *plan, StepRow *step)
{
	ResolveFault fault = {0};

	return FillArguments(call, plan, step, &fault);
}

/* Fill a step again to find out why that fails. This serves functions that explain a pause. */
void
StepFillFault(Call *call, PlanRow *plan, StepRow *step, ResolveFault *fault)
{
	FillArguments(call, plan, step, fault);
	if (fault->problem == RESOLVE_FINE)
		FillResources(call, plan, step, fault);
	if (fault->problem == RESOLVE_FINE)
		FillStepText(call, plan, step, step->instructions, "instructions", fault);
	if (fault->problem == RESOLVE_FINE)
		FillStepText(call, plan, step, step->prompt, "prompt", fault);
}

/* Fill the instructions of a step that is claimed already. On a fault, return them as written. */
char *
ClaimedInstructions(Call *call, PlanRow *plan, const StepRow *step)
{
	ResolveFault fault = {0};
	char	   *filled = FillStepText(call, plan, step, step->instructions, "instructions", &fault);

	return filled ? filled : TextOf(step->instructions);
}

/* Fill the resource URIs of a step that is claimed already. On a fault, return them as written. */
Jsonb *
ClaimedResources(Call *call, PlanRow *plan, const StepRow *step)
{
	ResolveFault fault = {0};
	Jsonb	   *filled = FillResources(call, plan, step, &fault);

	return filled ? filled : JsonOf(step->resources);
}
