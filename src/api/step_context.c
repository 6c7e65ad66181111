/*
 * step_context.c
 *	  what somebody needs to do a step: the step, and what is around it
 *
 * All rows that the answer may show are read first, by index (listed.c). Then it
 * is built and cut, and filled in again, as that of get_plan_context is
 * (context.c). Nothing is locked.
 */
#include "api/api.h"

/* what the answer of get_step_context is built from */
typedef struct StepContextOf
{
	Call	   *call;
	const StepRow *step;
	PlanRow    *plan;
	List	   *depends_on;		/* of Parent: what the definition names */
	List	   *before;			/* of Parent: the steps before it, those that matter most first */
	List	   *after;			/* of StepRow: those that depend on it, in their order */
	List	   *artifacts;		/* of ListedArtifact */
	const ListedCheckpoint *checkpoint; /* or NULL */
	char	   *instructions;	/* filled; or NULL */
	Jsonb	   *arguments;		/* likewise */
	Jsonb	   *resources;		/* likewise */
	List	   *shown;			/* of StepRow: the steps before it in the answer that was built last */
} StepContextOf;

/* Find a step among those before it; NULL if it is not there. */
static Parent *
BeforeFind(const StepContextOf *of, const pg_uuid_t *id)
{
	ListCell   *cell;

	foreach(cell, of->before)
		if (UuidEqual(&((Parent *) lfirst(cell))->id, id))
			return lfirst(cell);
	return NULL;
}

/* Add a step to those before it, unless it is there or NULL. */
static void
BeforeAdd(StepContextOf *of, StepRow *row, const char *via, int rank)
{
	Parent	   *parent;

	if (row == NULL || BeforeFind(of, &row->id) != NULL)
		return;
	parent = palloc0(sizeof(Parent));
	parent->id = row->id;
	parent->row = row;
	parent->via = via;
	parent->rank = rank;
	of->before = lappend(of->before, parent);
}

/* Compare steps before a step: by their rank, then the last one first. */
static int
BeforeByRank(const ListCell *a, const ListCell *b)
{
	const Parent *one = lfirst(a);
	const Parent *other = lfirst(b);

	if (one->rank != other->rank)
		return one->rank < other->rank ? -1 : 1;
	return one->row->order > other->row->order ? -1 : one->row->order < other->row->order;
}

#define SEQUENCE_SHOWN	20		/* steps before it, in a sequence */

/* Read the steps before it: those that it depends on, those that it refers to, and in a sequence the last ones. */
static void
ReadBefore(StepContextOf *of)
{
	const StepRow *step = of->step;
	ListCell   *cell;

	if (!of->plan->sequential)
		of->depends_on = ParentsOf(of->call, &step->id);
	of->before = list_copy(of->depends_on);
	foreach(cell, StepMentions(step))
	{
		const Mention *mention = lfirst(cell);

		BeforeAdd(of, mention->binding ? StepReadByBinding(of->call, &step->plan_id, mention->name) :
				  StepReadByName(of->call, &step->plan_id, mention->name), "reference", 2);
	}
	for (int order = Max(step->order - SEQUENCE_SHOWN, 1); of->plan->sequential && order < step->order; order++)
		BeforeAdd(of, StepReadByOrder(of->call, &step->plan_id, order), "sequence", 3);
	list_sort(of->before, BeforeByRank);
}

/* Read the steps that depend on it. */
static void
ReadAfter(StepContextOf *of)
{
	ListCell   *cell;

	foreach(cell, StepDependents(of->call, of->plan, of->step))
	{
		StepRow    *row = StepRead(of->call, &((Dependent *) lfirst(cell))->step_id);

		if (row != NULL)
			of->after = lappend(of->after, row);
	}
	list_sort(of->after, RowsByOrder);
}

/* Read its own artifacts, those of the steps before it, and those of the plan. */
static void
ReadArtifacts(StepContextOf *of)
{
	ListCell   *cell;

	foreach(cell, ArtifactsOfPlan(of->call, &of->plan->id))
	{
		const ListedArtifact *artifact = lfirst(cell);

		if (!artifact->has_step || UuidEqual(&artifact->step_id, &of->step->id) || BeforeFind(of, &artifact->step_id) != NULL)
			of->artifacts = lappend(of->artifacts, lfirst(cell));
	}
}

/* Resolve the arguments of a step. Returns them as they are written if a value is not there yet. */
static Jsonb *
FilledArguments(Call *call, PlanRow *plan, const StepRow *step)
{
	Jsonb	   *arguments = StepInputs(step);
	ResolveFault fault = {0};
	Jsonb	   *filled = NULL;

	if (step->dynamic && step->inputs == NULL)
		filled = ResolveJson(call, plan, arguments, &fault);
	return filled ? filled : arguments;
}

/* Read the rows from which the answer is built, and what get_next_step hands out with the step, or has handed out. */
static StepContextOf
StepContextRead(Call *call, const StepRow *step)
{
	StepContextOf of = {.call = call, .step = step, .plan = PlanMustRead(call, &step->plan_id)};

	ReadBefore(&of);
	ReadAfter(&of);
	ReadArtifacts(&of);
	of.checkpoint = step->status == STEP_AWAITING_INPUT ? CheckpointOfStep(call, &step->id) : NULL;
	of.instructions = ClaimedInstructions(call, of.plan, step);
	of.arguments = FilledArguments(call, of.plan, step);
	of.resources = ClaimedResources(call, of.plan, step);
	return of;
}

/*
 * Cut a value of a step; NULL for NULL. Where no text is shown, only the fact
 * that it is cut is: a summary and a call for each would not fit.
 */
static Jsonb *
ShownValue(const struct varlena *field, int text, const ReadingFunction *reader)
{
	JsonBuilder b = {0};

	if (field == NULL || text > 0)
		return CutJson(field, text, reader);
	JsonObjectStart(&b, NULL);
	JsonPutBool(&b, "cut", true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Put what get_next_step hands out, cut. */
static void
PutHandedOut(JsonBuilder *b, const StepContextOf *of, int text)
{
	ReadingFunction reader = {"get_step_context", "step_id", UuidText(&of->step->id), "max_bytes"};

	JsonPutText(b, "instructions", of->instructions ? CutText(of->instructions, text, reader.function) : NULL);
	JsonPutJson(b, "arguments", ShownValue((struct varlena *) of->arguments, text, &reader));
	if (of->resources != NULL)
		JsonPutJson(b, "resources", ShownValue((struct varlena *) of->resources, text, &reader));
	if (of->step->feedback != NULL)
		JsonPutText(b, "feedback", CutField(of->step->feedback, text, reader.function));
	if (of->step->previous != NULL)
		JsonPutJson(b, "previousResult", ShownValue(of->step->previous, text, &reader));
}

/* Put the plan of the step in short. */
static void
PutPlanOfStep(JsonBuilder *b, const PlanRow *plan, int cut)
{
	ReadingFunction reader = {"get_plan_context", "plan_id", UuidText(&plan->id), "max_bytes"};
	ReadingFunction why = {"why", "plan_id", reader.id, NULL};

	JsonObjectStart(b, "plan");
	JsonPutUuid(b, "planId", &plan->id);
	JsonPutUuid(b, "rootPlanId", &plan->root_id);
	PutCutText(b, "name", plan->name, Max(cut, 40), reader.function);
	PutCutText(b, "goal", plan->goal, cut, reader.function);
	JsonPutText(b, "status", PlanStatusName[plan->status]);
	PutCutJson(b, "inputs", plan->inputs, cut, &reader);
	PutCutJson(b, "pauseReason", plan->pause_reason, cut, &why);
	JsonPutText(b, "onFailure", OnFailureName[plan->on_failure]);
	JsonObjectEnd(b);
}

/* Put the steps before it. */
static void
PutBefore(JsonBuilder *b, StepContextOf *of, int entries, int cut)
{
	ListCell   *cell;

	of->shown = NIL;
	JsonArrayStart(b, "dependencies");
	foreach(cell, of->before)
	{
		const Parent *parent = lfirst(cell);

		if (foreach_current_index(cell) >= entries)
			break;
		of->shown = lappend(of->shown, parent->row);
		JsonObjectStart(b, NULL);
		PutListedStep(b, parent->row, cut);
		JsonPutText(b, "via", parent->via ? parent->via : "dependsOn");
		if (parent->via == NULL)
			PutNeed(b, parent);
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
	JsonPutInt(b, "dependencyCount", list_length(of->before));
}

/* Put the names of the steps that depend on it. */
static void
PutAfter(JsonBuilder *b, const StepContextOf *of, int entries)
{
	ListCell   *cell;

	JsonArrayStart(b, "dependents");
	foreach(cell, of->after)
	{
		if (foreach_current_index(cell) >= entries)
			break;
		JsonPutText(b, NULL, ((StepRow *) lfirst(cell))->name);
	}
	JsonArrayEnd(b);
	JsonPutInt(b, "dependentCount", list_length(of->after));
}

/* Put what a person is asked about the step; null if nobody is. */
static void
PutCheckpointOfStep(JsonBuilder *b, const StepContextOf *of, int cut)
{
	ReadingFunction reader = {"get_step_context", "step_id", UuidText(&of->step->id), "max_bytes"};

	if (of->checkpoint == NULL)
	{
		JsonPutNull(b, "checkpoint");
		return;
	}
	JsonObjectStart(b, "checkpoint");
	PutCheckpoint(b, of->checkpoint, cut);
	JsonPutTextIfSet(b, "gate", of->checkpoint->gate);
	PutCutJson(b, "submission", of->checkpoint->submission, cut, &reader);
	JsonObjectEnd(b);
}

/* Build the answer of get_step_context at one level. */
static Jsonb *
StepContextAt(void *arg, int entries, int text)
{
	StepContextOf *of = arg;
	int			beside = BesideSteps(entries, text);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "stepId", &of->step->id);
	JsonPutText(&b, "stepStatus", StepStatusName[of->step->status]);
	JsonPutUuid(&b, "planId", &of->plan->id);
	JsonPutUuid(&b, "rootPlanId", &of->plan->root_id);
	JsonPutText(&b, "planStatus", PlanStatusName[of->plan->status]);
	JsonObjectStart(&b, "step");
	PutListedStep(&b, of->step, text);
	PutDependsOn(&b, of->depends_on, text);
	PutNestedPlan(&b, of->call, of->step);
	JsonObjectEnd(&b);
	PutPlanOfStep(&b, of->plan, text);
	PutBefore(&b, of, entries, text);
	PutAfter(&b, of, beside);
	PutCheckpointOfStep(&b, of, text);
	PutArtifacts(&b, of->artifacts, beside, text);
	PutHandedOut(&b, of, text);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Fill the own members of the step, and what a person is asked about it. */
static void
FillOwn(Filling *filling, const StepContextOf *of)
{
	FillTarget *step = FillAt(filling, "step", -1);

	if (of->checkpoint != NULL)
	{
		const Member members[] = {
			{"prompt", FIELD_TEXT, of->checkpoint->prompt},
			{"questions", FIELD_JSON, of->checkpoint->questions},
			{"submission", FIELD_JSON, of->checkpoint->submission},
		};

		FillMembers(filling, FillAt(filling, "checkpoint", -1), members, lengthof(members), 1);
	}
	FillMember(filling, step, "result", of->step->result, FIELD_JSON, 1);
	FillStep(filling, step, of->step);
}

/* Fill what was cut in the answer of get_step_context: what is handed out first, then the step, then those before it. */
static Jsonb *
StepContextFill(const StepContextOf *of, Jsonb *answer, int max_bytes)
{
	Filling		filling = FillBegin(answer, max_bytes);
	FillTarget *plan = FillAt(&filling, "plan", -1);
	const Member members[] = {
		{"instructions", FIELD_TEXT, TextField(of->instructions)},
		{"arguments", FIELD_JSON, (struct varlena *) of->arguments},
		{"resources", FIELD_JSON, (struct varlena *) of->resources},
		{"feedback", FIELD_TEXT, of->step->feedback},
		{"previousResult", FIELD_JSON, of->step->previous},
	};

	FillMembers(&filling, FillAt(&filling, NULL, -1), members, lengthof(members), 1);
	FillMember(&filling, plan, "goal", TextField(of->plan->goal), FIELD_TEXT, 4);
	FillOwn(&filling, of);
	FillSteps(&filling, "dependencies", of->shown, false);
	FillMember(&filling, plan, "inputs", of->plan->inputs, FIELD_JSON, 1);
	FillMember(&filling, plan, "pauseReason", of->plan->pause_reason, FIELD_JSON, 1);
	return FillEnd(&filling);
}

/* Show a step, the results of the steps before it, and their artifacts. */
PG_FUNCTION_INFO_V1(stepwise_get_step_context);
Datum
stepwise_get_step_context(PG_FUNCTION_ARGS)
{
	Call		call;
	StepContextOf of;
	int			max_bytes;

	CallBeginReading(&call);
	of = StepContextRead(&call, StepMustRead(&call, ArgumentUuid(fcinfo, 0)));
	max_bytes = ArgumentMaxBytes(fcinfo, 1);
	return CallEnd(&call, StepContextFill(&of, BoundBuild(StepContextAt, &of, max_bytes, EntriesIn(max_bytes)), max_bytes));
}
