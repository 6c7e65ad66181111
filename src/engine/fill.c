/*
 * fill.c
 *	  fill the references in a step's arguments, resources and texts
 *
 * Only a step that is marked dynamic has references; others are used as they
 * are written.
 */
#include "engine/engine.h"

/* Fill a text of a step; the text itself when there is nothing to fill. */
char *
FillStepText(Call *call, PlanRow *plan, const StepRow *step, struct varlena *template, const char *param, ResolveFault *fault)
{
	char	   *written;

	if (template == NULL)
		return NULL;
	written = TextOf(template);
	return step->dynamic ? ResolveText(call, plan, written, param, fault) : written;
}

/* Fill the URIs of a step; NULL if it has none, or a fault. */
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

/* Arguments over the limits block their step, and no other. */
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

/* Fill the arguments of a step; false: there is nothing to fill, or a fault. */
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
 * Fill the arguments of a step that starts in another way than by the search:
 * submitted or reviewed while pending, or set by hand. Who did it without them
 * is not held up; what cannot be filled stays a template.
 */
bool
StepFillInputs(Call *call, PlanRow *plan, StepRow *step)
{
	ResolveFault fault = {0};

	return FillArguments(call, plan, step, &fault);
}

/* Find again why a step cannot be filled: for who explains a pause. */
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

/* Fill the instructions of a step that is claimed already. */
char *
ClaimedInstructions(Call *call, PlanRow *plan, const StepRow *step)
{
	ResolveFault fault = {0};
	char	   *filled = FillStepText(call, plan, step, step->instructions, "instructions", &fault);

	return filled ? filled : TextOf(step->instructions);
}

/* Likewise its resources. */
Jsonb *
ClaimedResources(Call *call, PlanRow *plan, const StepRow *step)
{
	ResolveFault fault = {0};
	Jsonb	   *filled = FillResources(call, plan, step, &fault);

	return filled ? filled : JsonOf(step->resources);
}
