/*
 * gate.c
 *	  the reviews that a definition puts before and after a step
 *
 * A step has at most one gate, its "review". A gate before a step opens when
 * the step is otherwise due: the step goes from pending to awaiting_input. An
 * approval puts it back to pending, and is bound to a digest of what was shown:
 * the tool, the workflow and its version, the resources, the arguments and the
 * instructions, all filled. If they are filled differently when the step is
 * claimed, the gate opens again.
 *
 * A gate after a step holds its submission back. The submission is kept with
 * the checkpoint, so no reference, output or branch can see it. An approval
 * completes the step with it.
 *
 * A gate before a step may ask for changes. The step is then pending, has
 * feedback, and nothing is approved. It stays blocked until it is changed, and
 * GateReset is called for that.
 *
 * Locks: the caller holds the locks of the root and of the plan, except for
 * GateJudge, GateIsPassed and GateDigest, which write nothing.
 */
#include "engine/engine.h"

/* ---------- the digest ---------- */

/* Digest what a gate shows of a step; "next" has its filled resources and instructions. */
static char *
FilledDigest(const StepRow *step, const Next *next)
{
	JsonBuilder b = {0};

	JsonArrayStart(&b, NULL);
	JsonPutText(&b, NULL, step->tool);
	JsonPutText(&b, NULL, step->workflow);
	JsonPutPositive(&b, NULL, step->version ? step->version : step->fixed_version);
	JsonPutJson(&b, NULL, next->resources);
	JsonPutJson(&b, NULL, StepInputs(step));
	JsonPutText(&b, NULL, next->instructions);
	JsonArrayEnd(&b);
	return DigestText(JsonFinish(&b));
}

/* Digest what a gate would show of a step now; NULL if the step cannot be filled. */
char *
GateDigest(Call *call, PlanRow *plan, StepRow *step)
{
	StepRow		filled = *step;
	Next		next = {0};
	Judgement	j = {0};
	Due			due = StepRuleOf(step)->ready(call, plan, &filled, &next, &j);

	return due == DUE_READY || due == DUE_NEST ? FilledDigest(&filled, &next) : NULL;
}

/* Say whether a step may start as far as a gate before it is concerned. */
bool
GateIsPassed(Call *call, PlanRow *plan, StepRow *step)
{
	char	   *digest;

	if (!StepHasGate(step, GATE_BEFORE))
		return true;
	digest = step->approved ? GateDigest(call, plan, step) : NULL;
	return digest != NULL && strcmp(digest, step->approved) == 0;
}

/* ---------- what is shown ---------- */

/* Make a review from the summary and the questions of a gate. */
static Waiting *
GateWaiting(const Call *call, const char *when, const char *summary, Jsonb *questions)
{
	Waiting    *waiting = ReviewMake(call, summary, questions);

	waiting->gate = when;
	return waiting;
}

/* Fill the summary and the questions of a gate before a step. A missing value blocks the step. */
static Due
JudgeReview(Call *call, PlanRow *plan, const StepRow *step, Judgement *j)
{
	Jsonb	   *review = JsonOf(step->review);
	char	   *summary = JsonGetText(review, "summary");
	Jsonb	   *questions = JsonGetJson(review, "questions");
	ResolveFault fault = {0};

	if (summary == NULL)
		summary = psprintf("Step \"%s\" is due. May it start?", step->name);
	else if (step->dynamic)
		summary = ResolveText(call, plan, summary, "review.summary", &fault);
	if (summary != NULL && questions != NULL && step->dynamic)
	{
		fault.param = "review.questions";
		questions = ResolveJson(call, plan, questions, &fault);
	}
	if (fault.problem != RESOLVE_FINE)
		return JudgeFault(step, &fault, j);
	j->waiting = GateWaiting(call, GATE_BEFORE, summary, questions);
	return DUE_REVIEW;
}

/* Make the review of a gate after a step. The work is done, so a missing value is shown as <…> and blocks nothing. */
static Waiting *
ReviewAfter(Call *call, PlanRow *plan, const StepRow *step)
{
	Jsonb	   *review = JsonOf(step->review);
	char	   *summary = NULL;
	JsonbValue	value;

	if (step->dynamic)
		review = ResolveSketch(call, plan, review);
	if (JsonGet(review, "summary", &value))
		summary = value.type == jbvBinary ? JsonToText(JsonFromValue(&value)) : JsonScalarText(&value);
	if (summary == NULL)
		summary = psprintf("Step \"%s\" was submitted. Is its result good?", step->name);
	return GateWaiting(call, GATE_AFTER, summary, JsonGetJson(review, "questions"));
}

/* ---------- the gate before a step ---------- */

/* Say whether a review of the gate before a step asked for changes that nobody has made. */
static bool
WantsChanges(const StepRow *step)
{
	return step->approved == NULL && step->feedback != NULL;
}

/* Say whether a step is due but for its gate. A run cannot do the steps of a client, but opens their gates. */
static bool
IsOtherwiseDue(Due due, const Judgement *j)
{
	return due == DUE_READY || due == DUE_NEST ||
		(due == DUE_BLOCKED && ReasonTypeOf(j->reason) == REASON_CLIENT_TOOL);
}

/* Judge a step by the gate before it; "due" is the verdict without the gate, and "next" is filled. */
Due
GateJudge(Call *call, PlanRow *plan, StepRow *step, Next *next, Due due, Judgement *j)
{
	if (!StepHasGate(step, GATE_BEFORE) || !IsOtherwiseDue(due, j))
		return due;
	if (WantsChanges(step))
	{
		j->reason = ChangesReason(step);
		return DUE_BLOCKED;
	}
	if (step->approved != NULL && strcmp(step->approved, FilledDigest(step, next)) == 0)
		return due;
	return JudgeReview(call, plan, step, j);
}

/* Open the gate before a step. The version of its workflow is fixed from here on. */
void
GateOpen(Call *call, PlanRow *plan, StepRow *step, Waiting *waiting)
{
	step->fixed_version = 0;
	if (step->workflow != NULL && step->version == 0)
		step->fixed_version = WorkflowNewestVersion(call, step->workflow);
	waiting->shown = GateDigest(call, plan, step);
	StepAwaitReview(call, plan, step, waiting);
}

/*
 * Forget what the gate before a step has said, because the definition of the
 * step has changed. The gate opens again, also if it had asked for changes. The
 * caller has read the step after the change.
 */
void
GateReset(Call *call, PlanRow *plan, StepRow *step)
{
	bool		asked = step->pause_reason != NULL && ReasonTypeOf(JsonOf(step->pause_reason)) == REASON_CHANGES_REQUESTED;

	/* the change may have removed the gate that asked for it */
	if (!asked && !StepHasGate(step, GATE_BEFORE))
		return;
	step->approved = NULL;
	step->fixed_version = 0;
	step->feedback = NULL;
	if (asked)
		StepPause(call, plan, step, NULL);
	else
		StepSave(call, step);
}

/* ---------- the gate after a step ---------- */

/* Build what a step is submitted with, from its row. What is not given is left out. */
Jsonb *
SubmissionOf(const StepRow *step)
{
	JsonBuilder b = {0};
	JsonbValue	confidence = {.type = jbvNumeric};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "outcome", OutcomeName[step->outcome == OUTCOME_NA ? OUTCOME_SUCCESS : step->outcome]);
	if (step->result != NULL)
		JsonPutJson(&b, "result", JsonOf(step->result));
	if (step->result_summary != NULL)
		JsonPutText(&b, "summary", TextOf(step->result_summary));
	if (step->confidence != NULL)
	{
		confidence.val.numeric = DatumGetNumeric(PointerGetDatum(step->confidence));
		JsonPutValue(&b, "confidence", &confidence);
	}
	if (step->execution_report != NULL)
		JsonPutJson(&b, "report", JsonOf(step->execution_report));
	if (step->output_formatting_notes != NULL)
		JsonPutText(&b, "notes", TextOf(step->output_formatting_notes));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Read a text of a submission as a column; NULL if it is not there. */
static struct varlena *
SubmittedText(const Jsonb *submission, const char *key)
{
	char	   *text = JsonGetText(submission, key);

	return text ? (struct varlena *) cstring_to_text(text) : NULL;
}

/* Put a submission into the row of its step; NULL removes all that belongs to one. */
void
SubmissionApply(StepRow *step, const Jsonb *submission)
{
	JsonbValue	confidence;
	char	   *outcome = JsonGetText(submission, "outcome");

	step->outcome = outcome ? NameIndex(outcome, OutcomeName, OUTCOMES) : OUTCOME_NA;
	step->result = (struct varlena *) JsonGetJson(submission, "result");
	step->result_summary = SubmittedText(submission, "summary");
	step->confidence = NULL;
	if (JsonGet(submission, "confidence", &confidence) && confidence.type == jbvNumeric)
		step->confidence = (struct varlena *) confidence.val.numeric;
	step->execution_report = (struct varlena *) JsonGetJson(submission, "report");
	step->output_formatting_notes = SubmittedText(submission, "notes");
}

/*
 * Complete a step with what its row holds, or let that wait at the gate after
 * the step. Every way to complete a step comes through here.
 */
void
StepSubmit(Call *call, PlanRow *plan, StepRow *step, Jsonb *detail)
{
	Waiting    *waiting;

	if (!StepHasGate(step, GATE_AFTER))
	{
		StepMove(call, plan, step, STEP_COMPLETED, detail);
		return;
	}
	waiting = ReviewAfter(call, plan, step);
	waiting->submission = SubmissionOf(step);
	waiting->detail = detail;
	SubmissionApply(step, NULL);
	/* its nested plan, or a review that was requested, may have waited for a person */
	if (step->status == STEP_AWAITING_INPUT)
		StepMove(call, plan, step, STEP_IN_PROGRESS, detail);
	StepAwaitReview(call, plan, step, waiting);
}

/* Say whether a step waits at its own gate, and not for a nested plan. */
bool
GateIsOpen(Call *call, const StepRow *step)
{
	const ListedCheckpoint *checkpoint;

	if (step->review == NULL || step->status != STEP_AWAITING_INPUT)
		return false;
	checkpoint = CheckpointOfStep(call, &step->id);
	return checkpoint != NULL && checkpoint->gate != NULL;
}

/* ---------- a review of what has changed ---------- */

/*
 * Compare what a review has shown with what is there now. If that differs, the
 * review is void: the gate before a step closes, and the next search opens it
 * again. Another review gets a new checkpoint. Returns true if the step is
 * pending now.
 */
bool
ReviewLookAgain(Call *call, PlanRow *plan, StepRow *step, const ListedCheckpoint *review)
{
	bool		before = review->gate != NULL && strcmp(review->gate, GATE_BEFORE) == 0;
	char	   *digest = before ? GateDigest(call, plan, step) : ShownDigest(step, JsonOf(review->submission));

	if (digest != NULL && review->shown != NULL && strcmp(digest, review->shown) == 0)
		return false;
	if (before)
		StepMove(call, plan, step, STEP_PENDING, JsonTextOf("reason", "changed since it was shown"));
	else
		CheckpointRenew(call, plan, step, digest);
	return before;
}
