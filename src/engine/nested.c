/*
 * nested.c
 *	  open the plan that is nested in a step
 *
 * A step with a workflow holds a nested plan. The step is in_progress while
 * that plan runs, and awaiting_input while it waits for a person. settle.c
 * tells the step when its nested plan changes; state.c ends the nested plan
 * when the step ends.
 */
#include "engine/engine.h"

/* Name the workflows that are nested in each other down to a plan. */
static char *
NestingChain(Call *call, PlanRow *plan, const char *below)
{
	StringInfoData chain;

	initStringInfo(&chain);
	appendStringInfoString(&chain, below);
	for (;;)
	{
		char	   *further = chain.data;
		StepRow    *parent_step;

		initStringInfo(&chain);
		appendStringInfo(&chain, "%s%s%s", plan->workflow ? plan->workflow : plan->name, Arrow(), further);
		if (!plan->nested)
			return chain.data;
		parent_step = StepMustRead(call, &plan->parent_step_id);
		plan = PlanInTree(call, plan->root, &parent_step->plan_id);
	}
}

static void
ParentStepFail(Call *call, PlanRow *plan, StepRow *step, char *message)
{
	step->message = message;
	StepMove(call, plan, step, STEP_FAILED, NULL);
}

/*
 * Open the plan of a step with a workflow; the resolved arguments are its
 * inputs. False: it could not be opened, and the step has failed.
 */
bool
NestedOpen(Call *call, PlanRow *plan, StepRow *step)
{
	PlanOrigin	origin = {0};
	Faults		faults = {0};
	Definition *definition;

	if (plan->depth + 1 > MaxNesting)
	{
		ParentStepFail(call, plan, step, psprintf("plans are nested deeper than stepwise.max_nesting, %d: %s", MaxNesting,
											  NestingChain(call, plan, step->workflow)));
		return false;
	}
	/* a fork may name what was dropped since */
	if (!WorkflowExists(call, step->workflow, step->version))
	{
		ParentStepFail(call, plan, step, psprintf("workflow \"%s\" does not exist any more", step->workflow));
		return false;
	}
	origin.workflow = step->workflow;
	origin.version = step->version;
	origin.inputs = StepInputs(step);
	origin.parent = plan;
	origin.parent_step = step;
	definition = WorkflowOpen(call, &origin, &faults);
	if (FaultsAny(&faults))
	{
		ParentStepFail(call, plan, step, psprintf("workflow \"%s\" cannot be opened: %s", step->workflow, FaultsText(&faults)));
		return false;
	}
	StepMove(call, plan, step, STEP_IN_PROGRESS, NULL);
	PlanCreate(call, definition, &origin);
	plan->root->nests = true;
	PlanTouch(plan->root);
	PlanSettle(call, plan);
	return true;
}
