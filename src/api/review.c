/*
 * review.c
 *	  reviews, decisions, checkpoints, resume
 *
 * A checkpoint is one wait of a step for a person: for the decision of a review
 * or for the answer to a prompt. It is opened when the step moves to
 * awaiting_input. It is closed, and its row deleted, when the step leaves that
 * state in any way. So a used checkpoint and an unknown one look the same.
 *
 * Locks: the root of the tree and the plan. A checkpoint is read again under
 * the lock, because another session may have used it.
 */
#include "api/api.h"

#include "miscadmin.h"

PG_FUNCTION_INFO_V1(stepwise_request_user_review);
PG_FUNCTION_INFO_V1(stepwise_submit_user_decision);
PG_FUNCTION_INFO_V1(stepwise_resume);

/* ---------- finding a checkpoint ---------- */

typedef struct Checkpoint
{
	pg_uuid_t	id;
	pg_uuid_t	step_id;
	bool		review;			/* a review; otherwise a prompt */
	char	   *shown;			/* digest of what the reviewer was shown, or NULL */
	char	   *requested_by;	/* the worker that requested it, or NULL */
	char	   *requester;		/* the role that requested it */
} Checkpoint;

/* Raise the error that a checkpoint does not wait. */
static void
CheckpointUnknown(const pg_uuid_t *id)
{
	ereport(ERROR,
			(errcode(ERRCODE_CHECKPOINT_USED),
			 errmsg("checkpoint \"%s\" was used, or never was", id ? UuidText(id) : ""),
			 errdetail("A checkpoint can be answered once, while its step waits."),
			 errhint("The view stepwise.checkpoints lists what waits.")));
}

/* Read a checkpoint. Returns false if there is none. */
static bool
CheckpointRead(Call *call, const pg_uuid_t *id, Checkpoint *checkpoint)
{
	static KeptQuery read = {
		"SELECT k.step_id, k.kind = 'review', k.shown, k.requested_by, k.requester FROM stepwise.checkpoint AS k"
		" WHERE k.tenant = $1 AND k.id = $2",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &read, id);

	if (rows.count == 0)
		return false;
	checkpoint->id = *id;
	checkpoint->step_id = RowUuid(&rows, 0, 1);
	checkpoint->review = RowBool(&rows, 0, 2);
	checkpoint->shown = RowText(&rows, 0, 3);
	checkpoint->requested_by = RowText(&rows, 0, 4);
	checkpoint->requester = RowText(&rows, 0, 5);
	RowsFree(&rows);
	return true;
}

/* Lock the tree in which a checkpoint waits, and check again that it does. */
static PlanRow *
CheckpointLock(Call *call, const pg_uuid_t *id, Checkpoint *checkpoint, StepRow **step)
{
	PlanRow    *plan;

	if (id == NULL || !CheckpointRead(call, id, checkpoint))
		CheckpointUnknown(id);
	plan = PlanLockIfStep(call, &checkpoint->step_id, step);
	/* meanwhile the checkpoint may have been used, or its plan purged */
	if (plan == NULL || !CheckpointRead(call, id, checkpoint))
		CheckpointUnknown(id);
	return plan;
}

/* Refuse to answer a review like a prompt, or a prompt like a review. */
static void
CheckKind(const Checkpoint *checkpoint, bool review)
{
	if (checkpoint->review != review)
		ereport(ERROR,
				(errcode(ERRCODE_CHECKPOINT_USED),
				 errmsg("checkpoint \"%s\" is a %s", UuidText(&checkpoint->id), checkpoint->review ? "review" : "prompt"),
				 checkpoint->review
				 ? errhint("Decide it with stepwise.submit_user_decision(checkpoint_id, decision).")
				 : errhint("Answer it with stepwise.resume(checkpoint_id, response).")));
}

/* ---------- requesting a review ---------- */

static void
CheckReviewRequest(const char *summary, const Jsonb *questions)
{
	if (summary == NULL || *summary == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("a review needs a summary"),
				 errhint("Say in a sentence what the person is to look at.")));
	if (questions != NULL && !JsonIsArray(questions))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("questions must be an array"),
				 errhint("For example: [\"Is the source good enough?\"].")));
	CheckTextLimit(summary, "summary");
	CheckJsonLimits(questions, "questions");
}

/* Refuse a result to be reviewed: an approval does not complete the step with it yet. */
static void
CheckNoResult(const Jsonb *result)
{
	if (result != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("a review of a result is not supported"),
				 errhint("Leave result out, and submit it after the review.")));
}

static Jsonb *
ReviewAnswer(const PlanRow *plan, const StepRow *step, const pg_uuid_t *checkpoint_id, bool duplicate)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	JsonPutUuid(&b, "checkpointId", checkpoint_id);
	if (duplicate)
		JsonPutBool(&b, "duplicate", true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/*
 * Find the open review of a step with the same summary and questions. If there
 * is one, a client that lost the answer is repeating its request.
 */
static bool
ReviewFind(Call *call, const StepRow *step, const char *summary, Jsonb *questions, pg_uuid_t *checkpoint_id)
{
	static KeptQuery find = {
		"SELECT k.id FROM stepwise.checkpoint AS k WHERE k.tenant = $1 AND k.step_id = $2 AND k.kind = 'review'"
		" AND k.prompt = $3 AND k.questions = coalesce($4, '[]')",
		4, {TEXTOID, UUIDOID, TEXTOID, JSONBOID}
	};
	Params		params = {0};
	bool		found;
	Rows		rows;

	if (step->status != STEP_AWAITING_INPUT)
		return false;
	ParamTenant(&params, call);
	ParamUuid(&params, &step->id);
	ParamText(&params, summary);
	ParamVarlena(&params, questions);
	rows = QueryRun(&find, &params);
	found = rows.count > 0;
	if (found)
		*checkpoint_id = RowUuid(&rows, 0, 1);
	RowsFree(&rows);
	return found;
}

static void
CheckReviewable(const StepRow *step)
{
	if (!StepRuleOf(step)->by_worker || (step->status != STEP_IN_PROGRESS && step->status != STEP_PENDING))
		StepTransitionRefuse(step, STEP_AWAITING_INPUT,
							 "A review can be requested of a step that is pending or in progress, and neither runs a workflow nor asks a person.");
}

/* Let a step wait for a review, unless it already does so for the same one. */
static Jsonb *
RequestReview(Call *call, PlanRow *plan, StepRow *step, const Claimant *claimant, const char *summary, Jsonb *questions)
{
	pg_uuid_t	open_id;

	if (ReviewFind(call, step, summary, questions, &open_id))
		return ReviewAnswer(plan, step, &open_id, true);
	PlanCheckOpen(plan);
	CheckClaim(step, claimant);
	CheckReviewable(step);
	StepRequestReview(call, plan, step, summary, questions);
	PlanSettle(call, plan);
	return ReviewAnswer(plan, step, &step->waiting->checkpoint_id, false);
}

/* Request a review of a step. */
Datum
stepwise_request_user_review(PG_FUNCTION_ARGS)
{
	Call		call;
	Claimant	claimant;
	char	   *summary;
	Jsonb	   *questions;
	Jsonb	   *result;
	PlanRow    *plan;
	StepRow    *step;

	CallBegin(&call);
	summary = ArgumentText(fcinfo, 1);
	questions = ArgumentJson(fcinfo, 2);
	result = ArgumentJson(fcinfo, 3);
	claimant = ArgumentClaimant(fcinfo, &call, 4, 5);
	CheckReviewRequest(summary, questions);
	plan = PlanLockOfStep(&call, ArgumentUuid(fcinfo, 0), &step);
	CheckNoResult(result);
	return CallEnd(&call, RequestReview(&call, plan, step, &claimant, summary, questions));
}

/* ---------- deciding ---------- */

typedef struct Decision
{
	PlanRow    *plan;
	StepRow    *step;
	const Checkpoint *checkpoint;
	const char *word;			/* a word of the table Decisions */
	const char *feedback;		/* or NULL */
	Jsonb	   *answers;		/* or NULL */
	const char *decided_by;		/* or NULL */
} Decision;

/* Refuse to approve a step that has changed since it was shown to the reviewer. */
static void
CheckShown(const Decision *d)
{
	if (d->checkpoint->shown != NULL && strcmp(d->checkpoint->shown, ShownDigest(d->step)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_APPROVAL_MISMATCH),
				 errmsg("step \"%s\" has changed since its review was requested", d->step->name),
				 errdetail("An approval counts for the arguments and instructions that were shown."),
				 errhint("Decide modify, so that the step goes on, and request a new review.")));
}

/* Refuse a decision by the requester, if the plan wants a separate reviewer. */
static void
CheckReviewer(const Call *call, const Decision *d)
{
	const char *requested_by = d->checkpoint->requested_by ? d->checkpoint->requested_by : "";

	/* without decided_by, assume the requester */
	const char *name = d->decided_by ? d->decided_by : requested_by;

	if (!d->plan->separate_reviewer)
		return;
	if (strcmp(GetUserNameFromId(call->caller, false), d->checkpoint->requester) == 0 && strcmp(name, requested_by) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_APPROVAL_MISMATCH),
				 errmsg("the review of step \"%s\" needs a person other than the one who asked", d->step->name),
				 errhint("Decide as another role, or say with decided_by who decides.")));
}

/* Build the result of an approved step that has none. */
static Jsonb *
DecisionResult(const Decision *d)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "decision", d->word);
	JsonPutText(&b, "feedback", d->feedback);
	JsonPutJson(&b, "answers", d->answers);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Complete the step. */
static void
DecideApprove(Call *call, Decision *d)
{
	if (d->step->result == NULL)
	{
		Jsonb	   *result = DecisionResult(d);

		CheckJsonLimits(result, "decision with feedback and answers");
		d->step->result = (struct varlena *) result;
	}
	StepMove(call, d->plan, d->step, STEP_COMPLETED, NULL);
}

/* Fail the step and the plan. A rejected review ends the plan, whatever its on_failure says. */
static void
DecideReject(Call *call, Decision *d)
{
	d->step->message = psprintf("rejected by review%s", Because(d->feedback));
	d->step->given_up = true;
	StepMove(call, d->plan, d->step, STEP_FAILED, NULL);
	d->plan->message = psprintf("step \"%s\" was %s", d->step->name, d->step->message);
	PlanMove(call, d->plan, PLAN_FAILED, JsonTextOf("reason", d->plan->message));
}

/* Escape "${" in the text of a person, because it is not a template. */
static char *
EscapeReferences(const char *text)
{
	StringInfoData escaped;

	initStringInfo(&escaped);
	for (; *text; text++)
	{
		if (text[0] == '$' && text[1] == '{')
			appendStringInfoChar(&escaped, '$');
		appendStringInfoChar(&escaped, *text);
	}
	return escaped.data;
}

/* Append the feedback to the instructions, and let the step go on. */
static void
DecideModify(Call *call, Decision *d)
{
	const char *before = d->step->instructions ? TextOf(d->step->instructions) : "";
	char	   *feedback;
	char	   *instructions;

	if (d->feedback == NULL || *d->feedback == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("the decision modify needs feedback"),
				 errhint("Say what is to be done differently; it is appended to the instructions of the step.")));
	feedback = d->step->dynamic ? EscapeReferences(d->feedback) : pstrdup(d->feedback);
	instructions = psprintf("%s%s---\n\nUser feedback:\n%s", before, *before ? "\n\n" : "", feedback);
	CheckTextLimit(instructions, "instructions with the feedback");
	StepInstruct(call, d->step, instructions);
	d->step->send_back = true;
	StepMove(call, d->plan, d->step, STEP_IN_PROGRESS, NULL);
}

/* Skip the step. */
static void
DecideSkip(Call *call, Decision *d)
{
	d->step->message = psprintf("skipped by review%s", Because(d->feedback));
	StepMove(call, d->plan, d->step, STEP_SKIPPED, NULL);
}

static const struct
{
	const char *word;
	void		(*decide) (Call *call, Decision *d);
	bool		checks_shown;	/* the step must be as the reviewer was shown it */
}			Decisions[] = {
	{"approve", DecideApprove, true},
	{"reject", DecideReject, false},
	{"modify", DecideModify, false},
	{"skip", DecideSkip, false},
};

/* Find a decision in the table; raise an error if there is no such decision. */
static int
CheckDecisionWord(const char *word)
{
	for (int i = 0; word != NULL && i < lengthof(Decisions); i++)
		if (strcmp(word, Decisions[i].word) == 0)
			return i;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_DEFINITION),
			 errmsg("unknown decision \"%s\"", ShortText(word)),
			 errhint("Use approve, reject, modify or skip.")));
	return -1;
}

static void
AuditDecision(Call *call, const Decision *d)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", d->word);
	JsonPutUuid(&b, "checkpointId", &d->checkpoint->id);
	JsonPutText(&b, "feedback", d->feedback);
	JsonPutJson(&b, "answers", d->answers);
	JsonPutText(&b, "decidedBy", d->decided_by);
	JsonObjectEnd(&b);
	AuditAppend(call, d->plan, &d->step->id, "user_reviewed", JsonFinish(&b));
}

/* Do what a decision says, and settle the plan. */
static Jsonb *
Decide(Call *call, Decision *d, int which)
{
	JsonBuilder b = {0};

	CheckKind(d->checkpoint, true);
	CheckReviewer(call, d);
	if (Decisions[which].checks_shown)
		CheckShown(d);
	AuditDecision(call, d);
	Decisions[which].decide(call, d);
	PlanSettle(call, d->plan);
	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, d->plan, d->step);
	JsonPutText(&b, "decision", d->word);
	JsonPutJson(&b, "branch", d->plan->branch);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Decide a review. */
Datum
stepwise_submit_user_decision(PG_FUNCTION_ARGS)
{
	Call		call;
	Checkpoint	checkpoint;
	Decision	d = {0};
	int			which;

	CallBegin(&call);
	d.word = ArgumentText(fcinfo, 1);
	d.feedback = ArgumentText(fcinfo, 2);
	d.answers = ArgumentJson(fcinfo, 3);
	d.decided_by = ArgumentText(fcinfo, 4);
	if (d.decided_by != NULL && *d.decided_by == '\0')
		d.decided_by = NULL;
	which = CheckDecisionWord(d.word);
	CheckNameLimit(d.decided_by, "decided_by");
	CheckTextLimit(d.feedback, "feedback");
	CheckJsonLimits(d.answers, "answers");
	d.plan = CheckpointLock(&call, ArgumentUuid(fcinfo, 0), &checkpoint, &d.step);
	d.checkpoint = &checkpoint;
	call.actor = d.decided_by;
	return CallEnd(&call, Decide(&call, &d, which));
}

/* ---------- resuming ---------- */

/*
 * Complete a prompt with its answer. It may be in any plan of the tree; the
 * answer shows the root plan.
 */
static Jsonb *
Resume(Call *call, PlanRow *plan, StepRow *step, const Checkpoint *checkpoint, Jsonb *response)
{
	Jsonb	   *result = JsonObjectOf("response", response);

	CheckKind(checkpoint, false);
	CheckJsonLimits(result, "response as a result");
	step->result = (struct varlena *) result;
	StepMove(call, plan, step, STEP_COMPLETED, JsonTextOf("checkpointId", UuidText(&checkpoint->id)));
	PlanSettle(call, plan);
	return JsonMerge(WorkflowResponse(call, plan->root, false), StepAnswer(plan, step));
}

/* Answer a prompt. */
Datum
stepwise_resume(PG_FUNCTION_ARGS)
{
	Call		call;
	Checkpoint	checkpoint;
	Jsonb	   *response;
	PlanRow    *plan;
	StepRow    *step;

	CallBegin(&call);
	response = ArgumentJson(fcinfo, 1);
	CheckJsonLimits(response, "response");
	plan = CheckpointLock(&call, ArgumentUuid(fcinfo, 0), &checkpoint, &step);
	return CallEnd(&call, Resume(&call, plan, step, &checkpoint, response));
}
