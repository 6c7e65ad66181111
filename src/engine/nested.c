/*
 * nested.c
 *	  open the plan that is nested in a step
 *
 * A step that runs a workflow has a nested plan, and is the parent step of that
 * plan. The step is in_progress while the plan runs, and awaiting_input while
 * the plan waits for a person. settle.c updates the parent step when its nested
 * plan changes. state.c cancels the nested plan when the parent step ends.
 *
 * Locks: the caller holds the locks of the root and of the plan.
 */
#include "engine/engine.h"

/*
 * Spell the chain of workflows from the root down to a plan, and on to "below",
 * the workflow that was to be opened in it.
 */
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

/* Fail a step whose nested plan cannot be opened. */
static void
ParentStepFail(Call *call, PlanRow *plan, StepRow *step, char *message)
{
	step->message = message;
	StepMove(call, plan, step, STEP_FAILED, NULL);
}

/*
 * Open the nested plan of a step that runs a workflow. The filled arguments of
 * the step are the inputs of the plan. Returns false if the plan could not be
 * opened; the step has then failed.
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
	origin.version = step->version ? step->version : step->fixed_version;
	/* the plan may be a fork, and the workflow may have been dropped since the original was defined */
	if (!WorkflowExists(call, step->workflow, origin.version))
	{
		ParentStepFail(call, plan, step, psprintf("workflow \"%s\" does not exist any more", step->workflow));
		return false;
	}
	origin.workflow = step->workflow;
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
	PlanCreate(call, definition, &origin, NULL);
	plan->root->nests = true;
	PlanTouch(plan->root);
	PlanSettle(call, plan);
	return true;
}
