/*
 * handoff.c
 *	  tell a language model how a plan stands: handoff
 *
 * The text says what why says, and then lists the steps that follow.
 *
 * Locks: none. Nothing is changed, and everything is read under one snapshot.
 */
#include "api/api.h"

#include "miscadmin.h"

#define STEPS_SHOWN		20		/* handoff lists at most this many steps */
#define LINE_SHOWN		500		/* bytes of a line about one of them */
#define PLANS_SEARCHED	50		/* nested plans in which it looks for steps */

/* Write the name, goal, id, status and progress of the plan. */
static void
TellPlan(StringInfo out, const PlanRow *plan)
{
	appendStringInfo(out, "Plan \"%s\"%s%s\nPlan id: %s\nStatus: %s, %d of %d steps done\n", plan->name,
					 *plan->goal ? ": " : "", CutText(plan->goal, SHOWN_TEXT, "get_plan_context"), UuidText(&plan->id),
					 PlanStatusName[plan->status], plan->counts[STEP_COMPLETED] + plan->counts[STEP_SKIPPED], StepTotal(plan->counts));
}

/* Write one move. */
static void
TellMove(StringInfo out, const Move *move)
{
	if (move->kind == MOVE_WORDS)
		appendStringInfo(out, "%s\n", CutText(move->name, SHOWN_TEXT, "get_step_context"));
	else
		appendStringInfo(out, "Call %s%s with %s%s\n", move->kind == MOVE_TOOL ? "tool " : "stepwise.", move->name,
						 CutText(JsonToText(move->arguments), SHOWN_TEXT, "get_step_context"),
						 Because(move->note ? CutText(move->note, SHOWN_TEXT, "get_step_context") : NULL));
}

/* Write the moves as a numbered list, then the calls that also let the plan go on. */
static void
TellMoves(StringInfo out, const Wait *w)
{
	ListCell   *cell;

	if (w->moves != NIL)
		appendStringInfoString(out, "\nTo continue:\n");
	foreach(cell, w->moves)
	{
		appendStringInfo(out, "%d. ", foreach_current_index(cell) + 1);
		TellMove(out, lfirst(cell));
	}
	if (w->others != NIL)
		appendStringInfoString(out, "\nOr one of these instead:\n");
	foreach(cell, w->others)
	{
		appendStringInfoString(out, "- ");
		TellMove(out, lfirst(cell));
	}
}

/* Write what a pending step will do. */
static void
TellStep(StringInfo out, const Wait *w, PlanRow *plan, const StepRow *step)
{
	Jsonb	   *arguments = step->arguments ? JsonOf(step->arguments) : JsonEmptyObject();

	appendStringInfo(out, "%s: ", step->name);
	switch (StepKindOf(step))
	{
		case KIND_TOOL:
			appendStringInfo(out, "tool %s with %s (%s)", step->tool,
							 JsonToText(ResolveSketch(w->call, plan, arguments)),
							 ToolIsInDatabase(w->call, step->tool) ? "in the database" : "the client's");
			break;
		case KIND_WORKFLOW:
			appendStringInfo(out, "workflow %s with %s", step->workflow,
							 JsonToText(ResolveSketch(w->call, plan, arguments)));
			break;
		case KIND_PROMPT:
			appendStringInfo(out, "asks a person: %s", SketchedText(w, plan, step->prompt));
			break;
		default:
			if (step->instructions != NULL)
				appendStringInfo(out, "%s", SketchedText(w, plan, step->instructions));
			else
				appendStringInfoString(out, step->resources ? "reads resources" : "no instructions");
	}
}

/* Find the first step from an order on that is pending or, if these are wanted, has an open nested plan. */
static StepRow *
NextOpenStep(const Wait *w, const PlanRow *plan, int from, bool nested)
{
	static KeptQuery find = {
		"SELECT s.* FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2 AND s.step_order >= $3"
		" AND (s.status = 'pending' OR (s.workflow IS NOT NULL AND s.status IN ('in_progress', 'awaiting_input')))"
		" ORDER BY s.tenant, s.plan_id, s.step_order LIMIT 1",
		3, {TEXTOID, UUIDOID, INT4OID}
	};
	Params		params = {0};

	/* no step of an order below next_order is pending */
	if (!nested)
		return StepNextPending(w->call, plan, Max(from, plan->next_order));
	ParamKey(&params, w->call, &plan->id);
	ParamInt(&params, from);
	return StepFetch(&find, &params);
}

/* Show the names of the parent steps; of very many, the last ones. */
static const char *
EndOfPath(const char *above)
{
	size_t		length = strlen(above);

	if (length <= LINE_SHOWN)
		return above;
	return psprintf("...%s", strchr(above + length - LINE_SHOWN, '/'));
}

/* how much of the list is written */
typedef struct Rest
{
	int			told;			/* steps */
	int			searched;		/* nested plans */
} Rest;

/* List one pending step, unless the list is full. */
static void
TellPending(StringInfo out, const Wait *w, PlanRow *plan, const StepRow *step, const char *above, Rest *rest)
{
	StringInfoData line;

	if (rest->told == 0)
		appendStringInfoString(out, w->reason ? "\nSteps after that:\n" : "\nSteps left:\n");
	if (rest->told++ == STEPS_SHOWN)
	{
		appendStringInfoString(out, "- and more\n");
		return;
	}
	initStringInfo(&line);
	TellStep(&line, w, plan, step);
	appendStringInfo(out, "- %s%s\n", EndOfPath(above), CutText(line.data, LINE_SHOWN, "get_step_context"));
}

/*
 * List the pending steps of a plan and of the plans nested in it, without the
 * step that blocks. "above" names the parent steps of the plan. "before" is a
 * nested plan that is listed already, or NULL. Of very many nested plans, only
 * the first are searched.
 */
static void
TellOpenSteps(StringInfo out, const Wait *w, PlanRow *plan, const char *above, const pg_uuid_t *before, Rest *rest)
{
	bool		nests = PlanMustRead(w->call, &plan->root_id)->nests;
	int			from = 1;
	StepRow    *step;

	check_stack_depth();
	while (rest->told <= STEPS_SHOWN &&
		   (step = NextOpenStep(w, plan, from, nests && rest->searched < PLANS_SEARCHED)) != NULL)
	{
		pg_uuid_t	nested_id;

		from = step->order + 1;
		if (w->step != NULL && UuidEqual(&step->id, &w->step->id))
			continue;
		if (step->status == STEP_PENDING)
			TellPending(out, w, plan, step, above, rest);
		else if (NestedPlanId(w->call, &step->id, &nested_id) && rest->searched++ < PLANS_SEARCHED &&
				 !(before && UuidEqual(&nested_id, before)))
			TellOpenSteps(out, w, PlanMustRead(w->call, &nested_id), psprintf("%s%s/", above, step->name), NULL, rest);
	}
}

/*
 * Name the parent steps of a nested plan, from the plan that the caller asked
 * about downwards. Sets *up to the plan of its parent step, or to NULL if it
 * is the plan asked about.
 */
static char *
ParentsAbove(const Wait *w, const PlanRow *plan, PlanRow **up)
{
	char	   *above = "";

	*up = NULL;
	while (plan->nested && !UuidEqual(&plan->id, &w->asked->id))
	{
		StepRow    *parent_step = StepMustRead(w->call, &plan->parent_step_id);

		above = psprintf("%s/%s", parent_step->name, above);
		plan = PlanMustRead(w->call, &parent_step->plan_id);
		if (*up == NULL)
			*up = unconstify(PlanRow *, plan);
	}
	return above;
}

/*
 * List the steps that follow: first those in the plan of the step that blocks,
 * then those in each plan above it, up to the plan that the caller asked
 * about. Each plan is listed with the plans nested in it.
 */
static void
TellRest(StringInfo out, const Wait *w)
{
	PlanRow    *plan = w->plan ? w->plan : w->asked;
	const pg_uuid_t *before = NULL;
	PlanRow    *up;
	Rest		rest = {0};

	do
	{
		char	   *above = ParentsAbove(w, plan, &up);

		TellOpenSteps(out, w, plan, above, before, &rest);
		before = &plan->id;
		plan = up;
	} while (plan != NULL);
}

/* Write the text of handoff. */
static char *
Handoff(Call *call, PlanRow *asked)
{
	Wait		w = WaitOf(call, asked);
	StringInfoData out;

	initStringInfo(&out);
	TellPlan(&out, asked);
	appendStringInfo(&out, "\n%s %s%s\n", w.reason ? "It stopped because" : "How it stands:",
					 CutText(w.message, SHOWN_TEXT, "get_step_context"), EndsSentence(w.message) ? "" : ".");
	TellMoves(&out, &w);
	if (!PlanIsTerminal(asked->status))
		TellRest(&out, &w);
	else if (asked->outputs != NULL)
		appendStringInfo(&out, "Outputs: %s\n", JsonToText(OutputsShown(asked)));
	return out.data;
}

/* Tell a language model how a plan stands and how to continue it. */
PG_FUNCTION_INFO_V1(stepwise_handoff);
Datum
stepwise_handoff(PG_FUNCTION_ARGS)
{
	Call		call;
	char	   *message;

	CallBeginReading(&call);
	message = Handoff(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0)));
	message = MemoryContextStrdup(call.outer, message);
	CallEnd(&call, NULL);
	PG_RETURN_TEXT_P(cstring_to_text(message));
}
