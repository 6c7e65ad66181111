/*
 * answer.c
 *	  answers that several functions of the loop share
 */
#include "api/api.h"

/* What every change of a step answers. */
void
PutStepAnswer(JsonBuilder *b, const PlanRow *plan, const StepRow *step)
{
	JsonPutUuid(b, "stepId", &step->id);
	JsonPutText(b, "stepStatus", StepStatusName[step->status]);
	JsonPutUuid(b, "planId", &plan->id);
	JsonPutText(b, "planStatus", PlanStatusName[plan->status]);
}

Jsonb *
StepAnswer(const PlanRow *plan, const StepRow *step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static void
PutFormattingNotes(JsonBuilder *b, Call *call, const PlanRow *scope)
{
	ListCell   *cell;

	JsonPutText(b, "planFormattingNotes", PlanDetailRead(call, &scope->id)->output_formatting_notes);
	JsonArrayStart(b, "stepFormattingNotes");
	foreach(cell, FormattingNotes(call, &scope->id))
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

static Jsonb *
CompleteDetail(Call *call, const PlanRow *scope)
{
	Jsonb	   *skill = SkillMetadata(call, &scope->id);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "outputs", JsonOf(scope->outputs));
	JsonPutText(&b, "outcome", OutcomeName[scope->outcome]);
	JsonPutText(&b, "outputMediaType", skill ? JsonGetText(skill, "outputMediaType") : NULL);
	JsonPutText(&b, "outputFormattingInstructions", skill ? JsonGetText(skill, "outputFormattingInstructions") : NULL);
	PutFormattingNotes(&b, call, scope);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static Jsonb *
NothingDetail(const PlanRow *scope)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutInt(&b, "inProgressCount", scope->counts[STEP_IN_PROGRESS]);
	JsonPutInt(&b, "failedCount", scope->counts[STEP_FAILED]);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static Jsonb *
EndedDetail(const PlanRow *scope)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "error", scope->message);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

static Jsonb *
PausedDetail(const PlanRow *scope)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "pauseReason", DatumGetJsonbP(PointerGetDatum(scope->pause_reason)));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Answer for a plan that has no step to hand out now. */
Jsonb *
NextAnswer(Call *call, PlanRow *scope)
{
	const char *status;
	Jsonb	   *detail;
	JsonBuilder b = {0};

	switch (scope->status)
	{
		case PLAN_COMPLETED:
			status = "plan_complete";
			detail = CompleteDetail(call, scope);
			break;
		case PLAN_FAILED:
			status = "plan_failed";
			detail = EndedDetail(scope);
			break;
		case PLAN_CANCELLED:
			status = "plan_cancelled";
			detail = EndedDetail(scope);
			break;
		case PLAN_AWAITING_REVIEW:
			status = "awaiting_review";
			detail = JsonMerge(OldestCheckpoint(call, scope), scope->pause_reason ? PausedDetail(scope) : NULL);
			break;
		default:
			status = scope->pause_reason ? "paused" : "no_pending_steps";
			detail = scope->pause_reason ? PausedDetail(scope) : NothingDetail(scope);
	}
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "status", status);
	JsonPutUuid(&b, "planId", &scope->id);
	JsonPutText(&b, "planStatus", PlanStatusName[scope->status]);
	JsonObjectEnd(&b);
	return JsonMerge(JsonFinish(&b), detail);
}
