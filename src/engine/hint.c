/*
 * hint.c
 *	  the hints of errors: name calls that can be made, with their ids
 *
 * Whoever reads an error may know nothing else. So a hint names a call that can
 * be copied. In the source the call has the names of its arguments, as in
 * stepwise.retry_step(step_id).
 *
 * A hint names no call that the caller may not make, or that would be refused
 * as the step and its plan are. It is made of clauses, each of which ends with
 * ". " or "; " and can stand for itself. A clause with such a call is left out,
 * and the hint says whom to ask instead. The rules of a call that needs more
 * than EXECUTE are in Guarded.
 *
 * Memory: everything is in the current memory context.
 */
#include "engine/engine.h"

#include "miscadmin.h"

#define MENTION		"stepwise."

/* what a hint is about, and who gets it */
typedef struct About
{
	Call	   *call;			/* NULL: plain SQL of the current role, outside of a call */
	const PlanRow *plan;
	const StepRow *step;		/* or NULL */
	bool		asks;			/* a person is asked at the step, or below it: */
	PersonWait	wait;
} About;

/* ---------- ids ---------- */

/* Put an id in the place of an argument, wherever a call of the hint begins with it. */
char *
HintWithId(const char *hint, const char *argument, const pg_uuid_t *id)
{
	char	   *opening = psprintf("(%s", argument);
	const char *found;
	StringInfoData text;

	initStringInfo(&text);
	while ((found = strstr(hint, opening)) != NULL)
	{
		appendBinaryStringInfo(&text, hint, found - hint);
		appendStringInfo(&text, "('%s'", UuidText(id));
		hint = found + strlen(opening);
	}
	appendStringInfoString(&text, hint);
	return text.data;
}

/* ---------- who may make a call ---------- */

/* Say whether the caller may decide about the step, or about what waits below it. */
static bool
MayReviewIt(const About *about)
{
	if (about->asks)
		return CallerMayReview(about->call, about->wait.plan, about->wait.step);
	return CallerMayDecide(about->call) && (about->step == NULL || CallerMayReview(about->call, about->plan, about->step));
}

static bool
MayDecideIt(const About *about)
{
	return about->asks && IsReview(about->wait.checkpoint) && MayReviewIt(about);
}

static bool
MayAnswerIt(const About *about)
{
	return about->asks && !IsReview(about->wait.checkpoint) && CallerMayDecide(about->call);
}

/* Say whether the step is in a state in an open plan. */
static bool
IsOpenAs(const About *about, StepStatus status)
{
	return about->step->status == status && !PlanIsTerminal(about->plan->status);
}

/* Say whether somebody can hold the step, and so submit or release it. */
static bool
MayBeHeld(const About *about)
{
	return IsOpenAs(about, STEP_IN_PROGRESS) && StepRuleOf(about->step)->by_worker && !about->step->sent_back;
}

static bool
MayRetryIt(const About *about)
{
	return IsOpenAs(about, STEP_FAILED);
}

static bool
MayEndIt(const About *about)
{
	return !PlanIsTerminal(about->plan->status) && StepTransitionAllowed(about->step->status, STEP_SKIPPED) &&
		MayEnd(about->call, about->step);
}

static bool
IsModifiable(const PlanRow *plan)
{
	return plan->status == PLAN_PLANNING || plan->status == PLAN_EXECUTING;
}

static bool
MayAppendToIt(const About *about)
{
	return IsModifiable(about->plan) && MayAppend(about->call, about->plan);
}

static bool
MayChangeIt(const About *about)
{
	return IsModifiable(about->plan) && MayChange(about->call, about->plan, about->step);
}

static bool
MayCancelIt(const About *about)
{
	return !PlanIsTerminal(about->plan->status) && MayCancel(about->call, about->plan);
}

/* Say whether the tree has not ended. */
static bool
TreeIsOpen(const About *about)
{
	return !PlanIsTerminal(PlanMustRead(about->call, &about->plan->root_id)->status);
}

/* calls that need more than EXECUTE, by how they begin; the first that fits counts */
static const struct
{
	const char *call;
	bool		of_step;		/* a hint about a plan cannot name it */
	bool		(*may) (const About *about);
}			Guarded[] = {
	{"get_next_step(root_id", false, TreeIsOpen},
	{"submit_step_result(", true, MayBeHeld},
	{"release_step(", true, MayBeHeld},
	{"retry_step(", true, MayRetryIt},
	{"submit_user_decision(", true, MayDecideIt},
	{"resume(", true, MayAnswerIt},
	{"skip_step(", true, MayEndIt},
	{"modify_plan(plan_id, 'add_steps'", false, MayAppendToIt},
	{"modify_plan(", true, MayChangeIt},
	{"cancel_plan(", false, MayCancelIt},
};

/* Say whether the caller has EXECUTE on a function. */
static bool
MayExecute(const About *about, const char *function)
{
	Oid			role = about->call ? about->call->caller : GetUserId();

	return RoleMayExecute(role, function);
}

/* Say whether the caller may make the call that begins here. */
static bool
MayMake(const About *about, const char *call)
{
	if (!MayExecute(about, pnstrdup(call, strspn(call, "abcdefghijklmnopqrstuvwxyz0123456789_"))))
		return false;
	for (size_t i = 0; i < lengthof(Guarded) && about->call != NULL; i++)
		if (strncmp(call, Guarded[i].call, strlen(Guarded[i].call)) == 0)
			return !(Guarded[i].of_step && about->step == NULL) && Guarded[i].may(about);
	return true;
}

/* ---------- clauses ---------- */

/* Find the end of the clause that begins here. */
static const char *
ClauseEnd(const char *clause)
{
	while (*clause != '\0' && !(strchr(".;", *clause) && (clause[1] == ' ' || clause[1] == '\0')))
		clause++;
	return *clause == '\0' ? clause : clause + 1;
}

/* Say whether the caller may make all calls of a clause. */
static bool
MayMakeAll(const About *about, const char *clause)
{
	while ((clause = strstr(clause, MENTION)) != NULL)
	{
		clause += strlen(MENTION);
		if (!MayMake(about, clause))
			return false;
	}
	return true;
}

/* Append what the caller can do instead of a call that it may not make. */
static void
AppendInstead(StringInfo hint, const About *about)
{
	bool		ended = about->call != NULL && !TreeIsOpen(about);
	bool		lacks = about->call != NULL && !ended && !MayReviewIt(about);
	bool		why = MayExecute(about, "why");

	if (hint->len > 0)
	{
		hint->data[hint->len - 1] = '.';
		appendStringInfoChar(hint, ' ');
	}
	if (lacks || !why)
		appendStringInfoString(hint, lacks ? "Ask a person who may decide" : "Ask somebody who may go on with the plan");
	if (why)
		appendStringInfo(hint, "%s" MENTION "why(root_id) says %s", lacks ? "; " : "", ended ? "how the plan has ended" : "what the plan waits for");
	appendStringInfoChar(hint, '.');
}

/* Leave out the clauses with calls that the caller may not make. */
static char *
HintAllowed(const About *about, const char *text)
{
	StringInfoData kept;
	bool		all = true;

	initStringInfo(&kept);
	for (const char *end; *text != '\0'; text = end + strspn(end, " "))
	{
		char	   *clause;

		end = ClauseEnd(text);
		clause = pnstrdup(text, end - text);
		if (MayMakeAll(about, clause))
			appendStringInfo(&kept, "%s%s", kept.len > 0 ? " " : "", clause);
		else
			all = false;
	}
	if (!all)
		AppendInstead(&kept, about);
	return kept.data;
}

/* ---------- hints ---------- */

/*
 * Fill the hint of an error about a step: step_id is the step, plan_id its plan, root_id the root of the tree,
 * checkpoint_id what waits at the step or below it.
 */
char *
StepHint(Call *call, const StepRow *step, const char *hint)
{
	About		about = {call, call ? PlanMustRead(call, &step->plan_id) : NULL, step};

	about.asks = call != NULL && WaitIn(call, step, &about.wait);
	hint = HintAllowed(&about, hint);
	if (about.asks)
		hint = HintWithId(hint, "checkpoint_id", &about.wait.checkpoint->id);
	hint = HintWithId(hint, "step_id", &step->id);
	hint = HintWithId(hint, "plan_id", &step->plan_id);
	return HintWithId(hint, "root_id", &step->root_id);
}

/* Fill the hint of an error about a plan: plan_id is the plan, root_id the root of its tree. */
char *
PlanHint(Call *call, const PlanRow *plan, const char *hint)
{
	About		about = {.call = call, .plan = plan};

	hint = HintAllowed(&about, hint);
	hint = HintWithId(hint, "plan_id", &plan->id);
	return HintWithId(hint, "root_id", &plan->root_id);
}
