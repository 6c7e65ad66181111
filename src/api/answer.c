/*
 * answer.c
 *	  answers that several SQL-callable functions share
 */
#include "api/api.h"

/* Put the members that every answer about a changed step has. */
void
PutStepAnswer(JsonBuilder *b, const PlanRow *plan, const StepRow *step)
{
	JsonPutUuid(b, "stepId", &step->id);
	JsonPutText(b, "stepStatus", StepStatusName[step->status]);
	JsonPutUuid(b, "planId", &plan->id);
	JsonPutText(b, "planStatus", PlanStatusName[plan->status]);
}

/* Build the answer of a function that changed a step. */
Jsonb *
StepAnswer(const PlanRow *plan, const StepRow *step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the answer of a function that was called again in the state that it makes. */
Jsonb *
DuplicateAnswer(const PlanRow *plan, const StepRow *step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	JsonPutBool(&b, "duplicate", true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Put the notes of the plan and of its steps on how to format the outputs. */
static void
PutFormattingNotes(JsonBuilder *b, Call *call, const PlanRow *asked)
{
	ListCell   *cell;

	JsonPutText(b, "planFormattingNotes", PlanDetailRead(call, &asked->id)->output_formatting_notes);
	JsonArrayStart(b, "stepFormattingNotes");
	foreach(cell, FormattingNotes(call, &asked->id))
	{
		const FormattingNote *note = lfirst(cell);

		JsonObjectStart(b, NULL);
		JsonPutInt(b, "stepOrder", note->order);
		JsonPutText(b, "name", note->name);
		JsonPutText(b, "notes", note->notes);
		JsonObjectEnd(b);
	}
	JsonArrayEnd(b);
}

/* Build the detail for a completed plan. The media type and the instructions come from its skill, if it has one. */
static Jsonb *
CompleteDetail(Call *call, const PlanRow *asked)
{
	Jsonb	   *skill = SkillMetadata(call, &asked->id);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "outputs", JsonOf(asked->outputs));
	JsonPutText(&b, "outcome", OutcomeName[asked->outcome]);
	JsonPutText(&b, "outputMediaType", skill ? JsonGetText(skill, "outputMediaType") : NULL);
	JsonPutText(&b, "outputFormattingInstructions", skill ? JsonGetText(skill, "outputFormattingInstructions") : NULL);
	PutFormattingNotes(&b, call, asked);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the detail for a plan that is neither paused nor ended: other workers may hold its steps. */
static Jsonb *
NothingDetail(const PlanRow *asked)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutInt(&b, "inProgressCount", asked->counts[STEP_IN_PROGRESS]);
	JsonPutInt(&b, "failedCount", asked->counts[STEP_FAILED]);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the detail for a plan that failed or was cancelled. */
static Jsonb *
EndedDetail(const PlanRow *asked)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "error", asked->message);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the detail for a plan that has a pause reason. */
static Jsonb *
PausedDetail(const PlanRow *asked)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "pauseReason", DatumGetJsonbP(PointerGetDatum(asked->pause_reason)));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/*
 * Say whether something stops an agent in a plan. An open failure under on_failure
 * stop does not, unless another step is blocked too, or the agent stops where a
 * run stops. The reason of a nested plan
 * is also that of its parent step, which is counted once at each level.
 */
static bool
IsPaused(Call *call, const PlanRow *asked, bool run_tools)
{
	StepRow    *step = asked->pause_reason ? StepOfReason(call, asked) : NULL;
	const PlanRow *plan;
	StepRow    *parent_step;
	int			known = 0;

	if (run_tools || step == NULL || step->status != STEP_FAILED)
		return asked->pause_reason != NULL;
	plan = PlanMustRead(call, &step->plan_id);
	if (plan->on_failure != ON_FAILURE_STOP || step->holds)
		return true;
	while (plan != NULL && plan->paused - plan->open_failures == known && !UuidEqual(&plan->id, &asked->id))
	{
		plan = PlanAround(call, plan, &parent_step);
		known = 1;
	}
	return plan == NULL || plan->paused - plan->open_failures > known;
}

/* Build the answer for a plan that has no step to hand out now. */
Jsonb *
NextAnswer(Call *call, PlanRow *asked, bool run_tools)
{
	const char *status;
	Jsonb	   *detail;
	JsonBuilder b = {0};

	switch (asked->status)
	{
		case PLAN_COMPLETED:
			status = "plan_complete";
			detail = CompleteDetail(call, asked);
			break;
		case PLAN_FAILED:
			status = "plan_failed";
			detail = EndedDetail(asked);
			break;
		case PLAN_CANCELLED:
			status = "plan_cancelled";
			detail = EndedDetail(asked);
			break;
		case PLAN_AWAITING_REVIEW:
			status = "awaiting_review";
			detail = JsonMerge(OldestCheckpoint(call, asked), asked->pause_reason ? PausedDetail(asked) : NULL);
			break;
		default:
			status = IsPaused(call, asked, run_tools) ? "paused" : "no_pending_steps";
			detail = IsPaused(call, asked, run_tools) ? PausedDetail(asked) : NothingDetail(asked);
	}
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "status", status);
	JsonPutUuid(&b, "planId", &asked->id);
	JsonPutText(&b, "planStatus", PlanStatusName[asked->status]);
	JsonObjectEnd(&b);
	return JsonMerge(JsonFinish(&b), detail);
}
