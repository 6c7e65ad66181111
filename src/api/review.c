/*
 * review.c
 *	  reviews, decisions, checkpoints, resume
 *
 * A checkpoint is one wait of a step for a person: for the decision of a review
 * or for the answer to a prompt. It is opened when the step moves to
 * awaiting_input. It is closed, and its row deleted, when the step leaves that
 * state in any way. So a used checkpoint and an unknown one look the same.
 *
 * With run_tools, the call that answers a checkpoint is followed by a run of the
 * root plan, outside of the call, and by a call that reads the answer (Follow).
 *
 * Locks: the root of the tree and the plan. A checkpoint is read again under
 * the lock, because another session may have used it.
 */
#include "api/api.h"

/* ---------- finding a checkpoint ---------- */

typedef struct Checkpoint
{
	pg_uuid_t	id;
	pg_uuid_t	step_id;
	bool		review;			/* a review; otherwise a prompt */
	bool		before;			/* of the gate before the step */
	bool		after;			/* of the gate after the step */
	Jsonb	   *submission;		/* what the step was submitted with, or NULL */
	char	   *shown;			/* digest of what the reviewer was shown, or NULL */
} Checkpoint;

/* Raise the error that a checkpoint does not wait. */
static void
CheckpointUnknown(const pg_uuid_t *id)
{
	ereport(ERROR,
			(errcode(ERRCODE_CHECKPOINT_USED),
			 errmsg("checkpoint \"%s\" was used, or never was", id ? UuidText(id) : ""),
			 errdetail("A checkpoint can be answered once, while its step waits."),
			 errhint("stepwise.list_checkpoints() lists what waits.")));
}

/* Read a checkpoint. Returns false if there is none. */
static bool
CheckpointRead(Call *call, const pg_uuid_t *id, Checkpoint *checkpoint)
{
	const ListedCheckpoint *row = CheckpointById(call, id);

	if (row == NULL)
		return false;
	checkpoint->id = *id;
	checkpoint->step_id = row->step_id;
	checkpoint->review = IsReview(row);
	checkpoint->shown = row->shown;
	checkpoint->before = row->gate != NULL && strcmp(row->gate, GATE_BEFORE) == 0;
	checkpoint->after = row->gate != NULL && strcmp(row->gate, GATE_AFTER) == 0;
	checkpoint->submission = JsonOf(row->submission);
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
CheckKind(Call *call, const StepRow *step, const Checkpoint *checkpoint, bool review)
{
	if (checkpoint->review != review)
		ereport(ERROR,
				(errcode(ERRCODE_CHECKPOINT_USED),
				 errmsg("checkpoint \"%s\" is a %s", UuidText(&checkpoint->id), checkpoint->review ? "review" : "prompt"),
				 errhint("%s", StepHint(call, step, psprintf(checkpoint->review ? "Decide it with stepwise.submit_user_decision('%s', decision)."
															 : "Answer it with stepwise.resume('%s', response).", UuidText(&checkpoint->id))))));
}

/* ---------- running after an answer ---------- */

/* what is run after a checkpoint was answered */
typedef struct Follow
{
	const char *tenant;
	pg_uuid_t	root_id;
	pg_uuid_t	step_id;		/* the step that was answered */
	const char *actor;			/* or NULL */
} Follow;

/* Note the step that was answered, for a run after the call. */
static void
FollowStep(Follow *follow, const Call *call, const StepRow *step, const char *actor)
{
	follow->root_id = step->root_id;
	follow->step_id = step->id;
	follow->actor = actor ? MemoryContextStrdup(call->outer, actor) : NULL;
}

/* Run the root plan as far as a run goes. No call is open. */
static void
FollowRun(const Follow *follow)
{
	Run			run = {.tenant = follow->tenant, .plan_id = &follow->root_id, .actor = follow->actor, .left = INT_MAX};

	RunTurns(&run);
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

static Jsonb *
ReviewAnswer(Call *call, const PlanRow *plan, const StepRow *step, const pg_uuid_t *checkpoint_id, bool duplicate)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	JsonPutUuid(&b, "checkpointId", checkpoint_id);
	JsonPutText(&b, "message", "The claim has ended with the review, and its lease too.");
	if (duplicate)
		JsonPutBool(&b, "duplicate", true);
	JsonObjectEnd(&b);
	return JsonMerge(JsonFinish(&b), NextCallAfter(call, plan));
}

/*
 * Find the open review of a step with the same summary, questions and
 * submission. If there is one, a client that lost the answer is repeating its
 * request.
 */
static bool
ReviewFind(Call *call, const StepRow *step, const char *summary, Jsonb *questions, const Jsonb *submission,
		   pg_uuid_t *checkpoint_id)
{
	static KeptQuery find = {
		"SELECT k.id FROM stepwise.checkpoint AS k WHERE k.tenant = $1 AND k.step_id = $2 AND k.kind = 'review' AND k.gate IS NULL"
		" AND k.prompt = $3 AND k.questions = coalesce($4, '[]') AND coalesce(k.submission = $5, k.submission IS NULL AND $5 IS NULL)",
		5, {TEXTOID, UUIDOID, TEXTOID, JSONBOID, JSONBOID}
	};
	Params		params = {0};
	bool		found;
	Rows		rows;

	if (step->status != STEP_AWAITING_INPUT)
		return false;
	ParamKey(&params, call, &step->id);
	ParamText(&params, summary);
	ParamVarlena(&params, questions);
	ParamVarlena(&params, submission);
	rows = QueryRun(&find, &params);
	found = rows.count > 0;
	if (found)
		*checkpoint_id = RowUuid(&rows, 0, 1);
	RowsFree(&rows);
	return found;
}

static void
CheckReviewable(Call *call, const StepRow *step)
{
	if (!StepRuleOf(step)->by_worker || step->status != STEP_IN_PROGRESS)
		StepTransitionRefuse(call, step, STEP_AWAITING_INPUT,
							 "A review can be requested of a step that is in progress, and neither runs a workflow nor asks a person.");
}

/* Let a step wait for a review, unless it already does so for the same one. */
static Jsonb *
RequestReview(Call *call, PlanRow *plan, StepRow *step, const Claimant *claimant, const char *summary, Jsonb *questions,
			  Jsonb *result)
{
	StepRow		submitted = {.result = (struct varlena *) result, .outcome = result ? ResultOutcome(result) : OUTCOME_NA};
	Jsonb	   *submission = result ? SubmissionOf(&submitted) : NULL;
	pg_uuid_t	open_id;

	if (ReviewFind(call, step, summary, questions, submission, &open_id))
		return ReviewAnswer(call, plan, step, &open_id, true);
	PlanCheckOpen(call, plan);
	CheckClaim(call, step, claimant);
	CheckReviewable(call, step);
	StepRequestReview(call, plan, step, summary, questions, submission, NULL);
	PlanSettle(call, plan);
	return ReviewAnswer(call, plan, step, &step->waiting->checkpoint_id, false);
}

/* Request a review of a step. */
PG_FUNCTION_INFO_V1(stepwise_request_user_review);
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
	CheckJsonLimits(result, "result");
	plan = PlanLockOfStep(&call, ArgumentUuid(fcinfo, 0), &step);
	return CallEnd(&call, RequestReview(&call, plan, step, &claimant, summary, questions, result));
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
CheckShown(Call *call, const Decision *d)
{
	const Checkpoint *checkpoint = d->checkpoint;
	char	   *now = checkpoint->before ? GateDigest(call, d->plan, d->step) : ShownDigest(d->step, checkpoint->submission);

	if (checkpoint->shown != NULL && (now == NULL || strcmp(checkpoint->shown, now) != 0))
		ereport(ERROR,
				(errcode(ERRCODE_APPROVAL_MISMATCH),
				 errmsg("step \"%s\" has changed since its review was requested", d->step->name),
				 errdetail("An approval counts for the arguments, the instructions and the result that were shown."),
				 errhint("%s", StepHint(call, d->step, "stepwise.get_next_step(root_id) opens the review anew, with what is there now."))));
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

/*
 * Approve the step. At the gate before it, it may start now. Otherwise it is
 * completed: with its submission, or with the decision as its result. If the
 * review was requested, the gate after the step comes next.
 */
static void
DecideApprove(Call *call, Decision *d)
{
	const Checkpoint *checkpoint = d->checkpoint;

	if (checkpoint->before)
	{
		d->step->approved = checkpoint->shown;
		StepMove(call, d->plan, d->step, STEP_PENDING, JsonTextOf("gate", "approved"));
		return;
	}
	if (checkpoint->submission != NULL)
		SubmissionApply(d->step, checkpoint->submission);
	else if (d->step->result == NULL)
	{
		Jsonb	   *result = DecisionResult(d);

		CheckJsonLimits(result, "decision with feedback and answers");
		d->step->result = (struct varlena *) result;
	}
	d->step->accepted = checkpoint->after;
	if (checkpoint->after)
		StepMove(call, d->plan, d->step, STEP_COMPLETED, NULL);
	else
		StepSubmit(call, d->plan, d->step, JsonTextOf("by", "review"));
}

/* Fail the step, its plan, and every plan above. A rejected review ends them, whatever their on_failure says. */
static void
DecideReject(Call *call, Decision *d)
{
	d->step->message = psprintf("rejected by review%s", Because(d->feedback));
	d->step->given_up = true;
	StepMove(call, d->plan, d->step, STEP_FAILED, NULL);
	PlanReject(call, d->plan, psprintf("step \"%s\" was %s", d->step->name, d->step->message));
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

/* Refuse to send a step back that nobody can do again. */
static void
CheckCanChange(const Decision *d)
{
	if (d->feedback == NULL || *d->feedback == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("the decision modify needs feedback"),
				 errhint("Say what is to be done differently; it is appended to the instructions of the step.")));
	if (d->checkpoint->after && StepNests(d->step))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("step \"%s\" %s and cannot be sent back", d->step->name, StepDoes(d->step)),
				 errdetail("Its nested plan has ended."),
				 errhint("Decide approve, reject or skip.")));
}

/* Append the feedback to the instructions of the step. */
static void
AppendFeedback(Call *call, Decision *d)
{
	StepRow    *step = d->step;
	const char *before = step->instructions ? TextOf(step->instructions) : "";
	char	   *feedback = step->dynamic ? EscapeReferences(d->feedback) : pstrdup(d->feedback);
	char	   *instructions = psprintf("%s%s---\n\nUser feedback:\n%s", before, *before ? "\n\n" : "", feedback);

	CheckTextLimit(instructions, "instructions with the feedback");
	StepInstruct(call, step, instructions);
}

/*
 * Answer the gate before a step with feedback. An agent follows instructions,
 * so the feedback is added to them, and the step may start. That is an
 * approval, so it counts only for what was shown. A tool, a workflow and the
 * reading of resources do not read instructions: somebody has to change the
 * step first.
 */
static void
ModifyBefore(Call *call, Decision *d)
{
	StepRow    *step = d->step;

	step->approved = NULL;
	step->fixed_version = 0;
	if (StepKindOf(step) == KIND_INSTRUCTIONS)
	{
		CheckShown(call, d);
		AppendFeedback(call, d);
		step->approved = GateDigest(call, d->plan, step);
	}
	StepMove(call, d->plan, step, STEP_PENDING, JsonTextOf("gate", "modified"));
	if (step->approved == NULL)
		StepPause(call, d->plan, step, ChangesReason(step));
}

/* Send the step back with feedback, or let it wait for changes. */
static void
DecideModify(Call *call, Decision *d)
{
	StepRow    *step = d->step;
	bool		passed;

	CheckCanChange(d);
	step->feedback = (struct varlena *) cstring_to_text(d->feedback);
	if (d->checkpoint->before)
	{
		ModifyBefore(call, d);
		return;
	}
	/* the approval of a gate before the step goes on with the feedback, unless the step has changed since */
	passed = StepHasGate(step, GATE_BEFORE) && GateIsPassed(call, d->plan, step);
	AppendFeedback(call, d);
	if (passed)
		step->approved = GateDigest(call, d->plan, step);
	step->previous = (struct varlena *) JsonGetJson(d->checkpoint->submission, "result");
	step->send_back = true;
	StepMove(call, d->plan, step, STEP_IN_PROGRESS, NULL);
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
	if (d->checkpoint->before || d->checkpoint->after)
		JsonPutText(&b, "gate", d->checkpoint->before ? GATE_BEFORE : GATE_AFTER);
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

	CheckKind(call, d->step, d->checkpoint, true);
	CheckSeparateReviewer(call, d->plan, d->step);
	if (Decisions[which].checks_shown)
		CheckShown(call, d);
	AuditDecision(call, d);
	Decisions[which].decide(call, d);
	PlanSettle(call, d->plan);
	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, d->plan, d->step);
	JsonPutText(&b, "decision", d->word);
	JsonPutJsonIfSet(&b, "branch", d->plan->branch);
	if (d->step->sent_back)
		JsonPutText(&b, "message", "The step is in progress and nobody has claimed it: its worker and its lease are cleared."
					" It is the next step to be handed out.");
	JsonObjectEnd(&b);
	return JsonMerge(JsonFinish(&b), NextCallAfter(call, d->plan));
}

/* Read the arguments of a decision, lock its checkpoint, and decide. */
static Jsonb *
DecideArguments(FunctionCallInfo fcinfo, Call *call, Follow *follow)
{
	Checkpoint	checkpoint;
	Decision	d = {0};
	int			which;

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
	d.plan = CheckpointLock(call, ArgumentUuid(fcinfo, 0), &checkpoint, &d.step);
	d.checkpoint = &checkpoint;
	call->actor = d.decided_by;
	FollowStep(follow, call, d.step, d.decided_by);
	return Decide(call, &d, which);
}

/* Decide a review, and run the plan if the caller wants that. */
PG_FUNCTION_INFO_V1(stepwise_submit_user_decision);
Datum
stepwise_submit_user_decision(PG_FUNCTION_ARGS)
{
	Follow		follow = {.tenant = TenantOfCaller()};
	bool		run_tools = ArgumentFlag(fcinfo, 5);
	Call		call;
	Datum		decided;
	PlanRow    *plan;
	StepRow    *step;
	Jsonb	   *ran;

	CallBeginIn(&call, follow.tenant);
	decided = CallEnd(&call, DecideArguments(fcinfo, &call, &follow));
	if (!run_tools)
		return decided;
	FollowRun(&follow);
	CallBeginIn(&call, follow.tenant);
	ran = JsonObjectOf("run", TaskAnswer(&call, &follow.root_id, 0));
	step = StepMustRead(&call, &follow.step_id);
	plan = PlanMustRead(&call, &step->plan_id);
	return CallEnd(&call, JsonMerge(JsonMerge(DatumGetJsonbP(decided), MovedAnswer(&call, plan, step)), ran));
}

/* ---------- resuming ---------- */

/*
 * Complete a prompt with its answer. It may be in any plan of the tree.
 */
static void
Resume(Call *call, PlanRow *plan, StepRow *step, const Checkpoint *checkpoint, Jsonb *response)
{
	Jsonb	   *result = JsonObjectOf("response", response);

	CheckKind(call, step, checkpoint, false);
	CheckJsonLimits(result, "response as a result");
	step->result = (struct varlena *) result;
	StepMove(call, plan, step, STEP_COMPLETED, JsonTextOf("checkpointId", UuidText(&checkpoint->id)));
	PlanSettle(call, plan);
}

/* Build the answer of resume: how the root plan stands, and the step. */
static Jsonb *
ResumeAnswer(Call *call, const PlanRow *plan, const StepRow *step, bool detail)
{
	JsonBuilder b = {0};

	ReadBegin(call);
	JsonObjectStart(&b, NULL);
	PutStepAnswer(&b, plan, step);
	JsonPutUuid(&b, "rootPlanId", &plan->root_id);
	JsonObjectEnd(&b);
	return JsonMerge(WorkflowResponse(call, PlanMustRead(call, &plan->root_id), detail), JsonFinish(&b));
}

/* Answer a prompt, and run the plan if the caller wants that. */
PG_FUNCTION_INFO_V1(stepwise_resume);
Datum
stepwise_resume(PG_FUNCTION_ARGS)
{
	Follow		follow = {.tenant = TenantOfCaller()};
	bool		run_tools = ArgumentFlag(fcinfo, 2);
	bool		detail = ArgumentFlag(fcinfo, 3);
	Call		call;
	Checkpoint	checkpoint;
	Jsonb	   *response;
	PlanRow    *plan;
	StepRow    *step;

	CallBeginIn(&call, follow.tenant);
	response = ArgumentJson(fcinfo, 1);
	CheckJsonLimits(response, "response");
	plan = CheckpointLock(&call, ArgumentUuid(fcinfo, 0), &checkpoint, &step);
	Resume(&call, plan, step, &checkpoint, response);
	if (!run_tools)
		return CallEnd(&call, ResumeAnswer(&call, plan, step, detail));
	FollowStep(&follow, &call, step, NULL);
	CallEnd(&call, NULL);
	FollowRun(&follow);
	CallBeginIn(&call, follow.tenant);
	step = StepMustRead(&call, &follow.step_id);
	return CallEnd(&call, ResumeAnswer(&call, PlanMustRead(&call, &step->plan_id), step, detail));
}
