/*
 * answer.c
 *	  reports and answers that several SQL-callable functions share
 */
#include "api/api.h"

/* ---------- what a caller reports about its work ---------- */

/* Read the argument execution_report; NULL if it is not given. */
Jsonb *
ArgumentExecutionReport(FunctionCallInfo fcinfo, int n)
{
	Jsonb	   *report = ArgumentJson(fcinfo, n);

	CheckJsonLimits(report, "execution_report");
	return report;
}

/* Put a report into the row of its step; without one, an earlier one stays. */
void
StepReport(StepRow *step, Jsonb *report)
{
	if (report != NULL)
		step->execution_report = (struct varlena *) report;
}

/* ---------- after a change ---------- */

/* Put the members that every answer about a changed step has. */
void
PutStepAnswer(JsonBuilder *b, const PlanRow *plan, const StepRow *step)
{
	JsonPutUuid(b, "stepId", &step->id);
	JsonPutText(b, "stepStatus", StepStatusName[step->status]);
	PutPlanAnswer(b, plan);
}

/* Build the answer about a changed step. */
static Jsonb *
StepAnswer(const PlanRow *plan, const StepRow *step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the answer of a function that moved a step, with the next call. The call writes nothing after that. */
Jsonb *
MovedAnswer(Call *call, const PlanRow *plan, const StepRow *step)
{
	return JsonMerge(StepAnswer(plan, step), NextCallAfter(call, plan));
}

/* Build the answer of a function that was called again in the state that it makes. */
Jsonb *
DuplicateAnswer(Call *call, const PlanRow *plan, const StepRow *step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutBool(&b, "duplicate", true);
	JsonObjectEnd(&b);
	return JsonMerge(MovedAnswer(call, plan, step), JsonFinish(&b));
}

/* ---------- no step to hand out ---------- */

#define NOTES_BYTES		8000	/* of the notes of all steps, at most */

/* Build the list of the notes of steps; see BoundBuild. */
static Jsonb *
StepNotes(void *notes, int entries, int text)
{
	JsonBuilder b = {0};
	ListCell   *cell;

	JsonArrayStart(&b, NULL);
	foreach(cell, (List *) notes)
	{
		const FormattingNote *note = lfirst(cell);

		if (foreach_current_index(cell) >= entries)
			break;
		JsonObjectStart(&b, NULL);
		JsonPutInt(&b, "stepOrder", note->order);
		JsonPutText(&b, "name", note->name);
		JsonPutText(&b, "notes", CutField(note->notes, text, "get_step_context"));
		JsonObjectEnd(&b);
	}
	JsonArrayEnd(&b);
	return JsonFinish(&b);
}

/* Put the notes of the plan and of its steps on how to format the outputs. */
static void
PutFormattingNotes(JsonBuilder *b, Call *call, PlanRow *asked, int parts)
{
	const struct varlena *of_plan = PlanDetailOf(call, asked)->output_formatting_notes;
	List	   *notes = FormattingNotes(call, &asked->id);
	Jsonb	   *shown;

	JsonPutTextIfSet(b, "planFormattingNotes", CutField(of_plan, SHOWN_TEXT / parts, "get_plan_context"));
	shown = StepNotes(notes, LIST_MAX, SHOWN_TEXT);
	if (!JsonFits(shown, NOTES_BYTES / parts))
		shown = BoundBuild(StepNotes, notes, NOTES_BYTES / parts, LIST_MAX);
	if (list_length(notes) > (int) JB_ROOT_COUNT(shown))
		JsonPutInt(b, "stepFormattingNoteCount", list_length(notes));
	JsonPutJson(b, "stepFormattingNotes", shown);
}

#define FAILED_BYTES	16000	/* of the failed steps that plan_complete names, at most */

/* Build the list of the steps that failed; see BoundBuild. */
static Jsonb *
FailedSteps(void *rows, int entries, int text)
{
	JsonBuilder b = {0};

	JsonArrayStart(&b, NULL);
	for (uint64 i = 0; i < ((Rows *) rows)->count && i < (uint64) entries; i++)
	{
		StepRow    *step = RowStep(rows, i);

		JsonObjectStart(&b, NULL);
		JsonPutUuid(&b, "stepId", &step->id);
		JsonPutInt(&b, "stepOrder", step->order);
		JsonPutText(&b, "name", step->name);
		JsonPutText(&b, "status", StepStatusName[step->status]);
		JsonPutTextIfSet(&b, "error", step->message ? CutText(step->message, text, "get_step_context") : NULL);
		JsonObjectEnd(&b);
	}
	JsonArrayEnd(&b);
	return JsonFinish(&b);
}

/* Put the steps that failed or completed with failure, and how many there are if some are left out. */
static void
PutFailedSteps(JsonBuilder *b, Call *call, const PlanRow *asked, int parts)
{
	static KeptQuery list = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2"
		" AND (s.status = 'failed' OR s.outcome = 'failure') ORDER BY s.step_order LIMIT $3",
		3, {TEXTOID, UUIDOID, INT4OID}
	};
	int			count = asked->counts[STEP_FAILED] + asked->unsuccessful;
	Params		params = {0};
	Jsonb	   *shown;
	Rows		rows;

	ParamKey(&params, call, &asked->id);
	ParamInt(&params, LIST_MAX);
	rows = QueryRun(&list, &params);
	shown = BoundBuild(FailedSteps, &rows, FAILED_BYTES / parts, LIST_MAX);
	JsonPutJson(b, "failedSteps", shown);
	if (count > (int) JB_ROOT_COUNT(shown))
		JsonPutInt(b, "failedCount", count);
	RowsFree(&rows);
}

/* Put a text from the metadata of a skill; nothing if there is none. */
static void
PutSkillText(JsonBuilder *b, const Jsonb *skill, const char *key, int parts)
{
	char	   *text = JsonGetText(skill, key);

	JsonPutTextIfSet(b, key, text ? CutText(text, SHOWN_TEXT / parts, "get_plan_context") : NULL);
}

/*
 * Build the detail for a completed plan. The media type and the instructions come
 * from its skill, if it has one. The limit of each member is divided by "parts".
 */
static Jsonb *
CompleteParts(Call *call, PlanRow *asked, int parts)
{
	Jsonb	   *skill = SkillMetadata(call, &asked->id);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "outputs", OutputsShown(asked));
	JsonPutText(&b, "outcome", OutcomeName[asked->outcome]);
	PutSkillText(&b, skill, "outputMediaType", parts);
	PutSkillText(&b, skill, "outputFormattingInstructions", parts);
	PutFormattingNotes(&b, call, asked, parts);
	if (asked->outcome == OUTCOME_FAILURE)
		PutFailedSteps(&b, call, asked, parts);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the detail for a completed plan. If many members are long, each is cut at half of its limit. */
static Jsonb *
CompleteDetail(Call *call, PlanRow *asked)
{
	Jsonb	   *detail = CompleteParts(call, asked, 1);

	return JsonFits(detail, ANSWER_BYTES) ? detail : CompleteParts(call, asked, 2);
}

/* Build the detail for a plan that is neither paused nor ended: other workers may hold its steps. */
static Jsonb *
NothingDetail(const Wait *w, const PlanRow *asked)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutInt(&b, "inProgressCount", asked->counts[STEP_IN_PROGRESS]);
	JsonPutInt(&b, "failedCount", asked->counts[STEP_FAILED]);
	JsonPutInt(&b, "pendingCount", asked->counts[STEP_PENDING]);
	PutWaitingFor(&b, w->call, w->claims);
	PutRetryAfter(&b, w->claims);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the detail for a plan that failed or was cancelled. */
static Jsonb *
EndedDetail(const PlanRow *asked)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutTextIfSet(&b, "error", asked->message ? CutText(asked->message, SHOWN_TEXT, "get_plan_context") : NULL);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the detail for a plan that has a pause reason, and may have none if raw SQL made it wait. */
static Jsonb *
PausedDetail(const Wait *w, const PlanRow *asked)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutJsonIfSet(&b, "pauseReason", JsonOf(asked->pause_reason));
	PutRetryAfter(&b, w->claims);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Count the people who are asked in a plan and below it. */
static int
WaitingCount(Call *call, const PlanRow *asked)
{
	static KeptQuery count = {
		"WITH RECURSIVE tree AS (SELECT $2 AS id UNION ALL SELECT n.id FROM tree AS t CROSS JOIN LATERAL ("
		"SELECT n.id FROM stepwise.step AS s JOIN stepwise.plan AS n ON n.tenant = $1 AND n.parent_step_id = s.id AND n.completed_at IS NULL"
		" WHERE s.tenant = $1 AND s.plan_id = t.id AND s.status = 'awaiting_input' AND s.workflow IS NOT NULL AND s.pause_reason IS NOT NULL"
		" OFFSET 0) AS n)"
		" SELECT pg_catalog.count(*)::int FROM stepwise.checkpoint AS k WHERE k.tenant = $1 AND k.root_id = $3"
		/* a plan that has ended has no checkpoint, so all of a tree wait in its root */
		" AND ($2 = $3 OR k.plan_id IN (SELECT t.id FROM tree AS t))",
		3, {TEXTOID, UUIDOID, UUIDOID}
	};
	Params		params = {0};
	Rows		rows;
	int			waiting;

	/* without nested plans, each waiting step asks for itself */
	if (!asked->root->nests)
		return asked->counts[STEP_AWAITING_INPUT];
	ParamKey(&params, call, &asked->id);
	ParamUuid(&params, &asked->root_id);
	rows = QueryRun(&count, &params);
	waiting = RowInt(&rows, 0, 1);
	RowsFree(&rows);
	return waiting;
}

/* Build the detail for a plan in which a person is asked: the oldest question, and how many there are. */
static Jsonb *
AskedDetail(const Wait *w, const PlanRow *asked)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutInt(&b, "waitingCount", WaitingCount(w->call, asked));
	JsonObjectEnd(&b);
	return JsonMerge(JsonMerge(OldestCheckpoint(w->call, asked), JsonFinish(&b)), PausedDetail(w, asked));
}

/*
 * Say whether something stops an agent in a plan. An open failure under on_failure
 * stop does not stop it, unless another step is blocked too, or the agent stops
 * where a run stops. A parent step has the pause reason of its nested plan, so
 * that reason counts once at each level.
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

/* Say in one word how a plan stands that has no step to hand out, and build the detail for that. */
static const char *
StatusOfNext(const Wait *w, PlanRow *asked, bool run_tools, Jsonb **detail)
{
	Call	   *call = w->call;

	switch (asked->status)
	{
		case PLAN_COMPLETED:
			*detail = CompleteDetail(call, asked);
			return "plan_complete";
		case PLAN_FAILED:
			*detail = EndedDetail(asked);
			return "plan_failed";
		case PLAN_CANCELLED:
			*detail = EndedDetail(asked);
			return "plan_cancelled";
		case PLAN_AWAITING_REVIEW:
			*detail = AskedDetail(w, asked);
			return "awaiting_review";
		default:
			if (IsPaused(call, asked, run_tools))
			{
				*detail = PausedDetail(w, asked);
				return "paused";
			}
			*detail = NothingDetail(w, asked);
			return "no_pending_steps";
	}
}

/* Build the answer for a plan that has no step to hand out now. The call writes nothing after that. */
Jsonb *
NextAnswer(Call *call, PlanRow *asked, bool run_tools)
{
	JsonBuilder b = {0};
	Jsonb	   *detail;
	Wait		w;

	ReadBegin(call);
	w = WaitOfAgent(call, asked);
	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "status", StatusOfNext(&w, asked, run_tools, &detail));
	PutPlanAnswer(&b, asked);
	JsonObjectEnd(&b);
	return JsonMerge(JsonMerge(JsonFinish(&b), detail), WaitAnswer(&w));
}
