/*
 * api.h
 *	  what the SQL-callable functions share
 */
#ifndef STEPWISE_API_H
#define STEPWISE_API_H

#include "engine/engine.h"

/* ---------- loop.c: the agent's loop ---------- */

extern void PlanNoteSession(Call *call, PlanRow *plan); /* audits session_resumed */

/* ---------- variables.c: the variables of a plan ---------- */

extern void VariablesStore(Call *call, const pg_uuid_t *plan_id, const Jsonb *variables);	/* SW007 if too large */

/* ---------- context.c: what a session needs to continue a plan ---------- */

extern int	ArgumentMax(FunctionCallInfo fcinfo, int n, int otherwise); /* a number of rows; SW005 */

/* ---------- handoff.c: what a plan waits for, and what to call next ---------- */

extern Jsonb *NextCall(Call *call, PlanRow *asked); /* {"nextCall": ...} */
extern Jsonb *WaitOfRun(Call *call, PlanRow *asked);	/* {"message": ..., "next_call": ...} */

/* ---------- answer.c: answers that several functions share ---------- */

extern void PutStepAnswer(JsonBuilder *b, const PlanRow *plan, const StepRow *step);
extern Jsonb *StepAnswer(const PlanRow *plan, const StepRow *step);
extern Jsonb *DuplicateAnswer(const PlanRow *plan, const StepRow *step);	/* for a call that was made before */
extern Jsonb *NextAnswer(Call *call, PlanRow *asked, bool run_tools);	/* for a plan with no step to hand out */

/* ---------- rights.c: who may decide for a person ---------- */

extern bool CallerMayWrite(Call *call);
extern bool CallerMayDecide(Call *call);
extern void CheckSeparateReviewer(Call *call, const PlanRow *plan, const StepRow *step);	/* SW014 */

/* ---------- check.c: checks that several functions share ---------- */

pg_noreturn extern void NotDueRefuse(const StepRow *step, Due due, const Judgement *j); /* SW003 */
extern void CheckDue(Call *call, PlanRow *plan, StepRow *step); /* SW003, SW012 */
extern void CheckNotSentBack(const StepRow *step, StepStatus to);	/* SW003 */
extern void CheckInProgress(const StepRow *step, StepStatus to, const char *rule);
extern void CheckFailed(const StepRow *step);
extern void CheckConfidence(double confidence);
extern void CheckResultGiven(const Jsonb *result);	/* SW005 */
extern void CheckMayDecide(Call *call, const StepRow *step);	/* SW014 */
extern Outcome CheckOutcome(const char *outcome);

/* ---------- end.c: end a step that waits for a person by another way ---------- */

extern void CheckMayEnd(Call *call, PlanRow *plan, const StepRow *step);	/* SW014 */

/* ---------- plan_scope.c: the steps of a plan, as the grammar of definitions sees them ---------- */

extern void PlanScopeRead(Reader *reader, const PlanRow *plan);
extern void PlanScopeOrder(Reader *reader, const PlanRow *plan);

/* ---------- update_step.c: change the definition of a step ---------- */

extern void StepMarkDynamic(Call *call, StepRow *step);
extern StepRow *StepUpdate(Call *call, PlanRow *plan, StepRow *step, const Jsonb *keys, Faults *faults,
						   JsonBuilder *detail);	/* SW003 */

/* ---------- takes.c: which steps take the result of a tool ---------- */

extern bool IsOpenFailure(const PlanRow *plan, const StepRow *step);
extern bool TakesNow(Call *call, PlanRow *plan, const StepRow *step, Due *due, Judgement *j);	/* of a pending or
																								 * failed step */
extern bool StepTakesReport(Call *call, PlanRow *plan, const StepRow *step);

/* ---------- door.c: a gate has no other door ---------- */

extern void CheckDoor(Call *call, const StepRow *step); /* SW014; likewise the next four */
extern void CheckDoorOfCancel(Call *call, const PlanRow *plan);
extern void CheckDoorOfPlan(Call *call, const PlanRow *plan);
extern void CheckDoorOfChange(Call *call, const PlanRow *plan, const StepRow *step);
extern void CheckDoorOfOrder(Call *call, const PlanRow *plan);
extern void CheckGatePassed(Call *call, PlanRow *plan, StepRow *step);	/* SW003 */

/* ---------- fence.c: check that a call about a claim comes from who holds it ---------- */

/* what a call says about the claim */
typedef struct Claimant
{
	const char *worker;			/* NULL if not given */
	bool		says_attempt;	/* attempt is given */
	int			attempt;
} Claimant;

extern char *ArgumentWorker(FunctionCallInfo fcinfo, int n);	/* SW005, SW007 */
extern Claimant ArgumentClaimant(FunctionCallInfo fcinfo, Call *call, int attempt, int worker);
extern bool NamesOtherAttempt(const StepRow *step, const Claimant *claimant);
extern void CheckAttempt(const StepRow *step, const Claimant *claimant);	/* SW012 */
extern void CheckNotTakenBack(const StepRow *step); /* SW012 */
extern void CheckClaim(const StepRow *step, const Claimant *claimant);	/* SW012 */

/* ---------- execution.c: the execution tree ---------- */

#define TREE_HINT \
	"Ask for less: stepwise.execution(plan_id, depth) with a smaller depth, or of a nested plan;" \
	" stepwise.get_step_context(step_id) shows one step."

extern size_t BlockSize(const StepRow *step);
extern Jsonb *OldestCheckpoint(Call *call, const PlanRow *plan);	/* NULL if there is none */
extern Jsonb *WorkflowResponse(Call *call, PlanRow *plan, bool detail);

/* ---------- runner.c: run a plan in the database ---------- */

typedef struct Run
{
	const char *tenant;
	const pg_uuid_t *plan_id;
	const char *actor;			/* the name that the caller gave, or NULL */
	char	   *session;		/* or NULL */
	int			left;			/* how many steps it may still do */
	bool		commits;		/* it commits after each step */
	bool		run_tools;		/* it goes before an agent, which takes the client's steps itself */
} Run;

extern void RunTurns(Run *run); /* no call may be open */
extern Jsonb *TaskAnswer(Call *call, const pg_uuid_t *plan_id); /* what a run answers; begins to read; SW001 */

#endif							/* STEPWISE_API_H */
