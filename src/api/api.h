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

extern Jsonb *VariablesRead(Call *call, const pg_uuid_t *plan_id);	/* only those that are stored */
extern void VariablesStore(Call *call, const pg_uuid_t *plan_id, const Jsonb *variables);	/* SW007 if too large */

/* ---------- context.c: what a session needs to continue a plan ---------- */

extern int	ArgumentMax(FunctionCallInfo fcinfo, int n, int otherwise); /* a number of rows; SW005 */

/* ---------- handoff.c: what a plan waits for, and what to call next ---------- */

extern Jsonb *NextCall(Call *call, PlanRow *asked); /* {"nextCall": ...} */

/* ---------- answer.c: answers that several functions share ---------- */

extern void PutStepAnswer(JsonBuilder *b, const PlanRow *plan, const StepRow *step);
extern Jsonb *StepAnswer(const PlanRow *plan, const StepRow *step);
extern Jsonb *NextAnswer(Call *call, PlanRow *asked);	/* for a plan with no step to hand out */

/* ---------- check.c: checks that several functions share ---------- */

extern void CheckAttempt(const StepRow *step, int attempt);	/* SW009 */
extern void CheckOptionalAttempt(FunctionCallInfo fcinfo, int n, const StepRow *step);
extern void CheckDue(Call *call, PlanRow *plan, StepRow *step);	/* SW003, SW012 */
extern void CheckNotSentBack(const StepRow *step, StepStatus to);	/* SW003 */
extern void CheckInProgress(const StepRow *step, StepStatus to, const char *rule);
extern void CheckFailed(const StepRow *step);
extern void CheckConfidence(double confidence);
extern void CheckResultGiven(const Jsonb *result);	/* SW005 */
extern Outcome CheckOutcome(const char *outcome);

/* ---------- rights.c: the right to decide ---------- */

extern bool CallerMayDecide(Call *call);
extern void CheckMayDecide(Call *call, const StepRow *step);	/* SW014 */

/* ---------- door.c: a gate has no other door ---------- */

extern void CheckDoor(Call *call, const StepRow *step); /* SW014; likewise the next three */
extern void CheckDoorOfPlan(Call *call, const PlanRow *plan);
extern void CheckDoorOfChange(Call *call, const PlanRow *plan, const StepRow *step);
extern void CheckDoorOfOrder(Call *call, const PlanRow *plan);
extern void CheckGatePassed(Call *call, PlanRow *plan, StepRow *step);	/* SW003 */

/* ---------- execution.c: the execution tree ---------- */

#define TREE_HINT \
	"Ask for less: stepwise.execution(plan_id, depth) with a smaller depth, or of a nested plan;" \
	" stepwise.get_step_context(step_id) shows one step."

extern size_t BlockSize(const StepRow *step);
extern Jsonb *OldestCheckpoint(Call *call, const PlanRow *plan);	/* NULL if there is none */
extern Jsonb *WorkflowResponse(Call *call, PlanRow *plan, bool detail);

/* ---------- runner.c: run a plan in the database ---------- */

extern Jsonb *TaskAnswer(Call *call, const pg_uuid_t *plan_id); /* what a run answers; SW001 */

#endif							/* STEPWISE_API_H */
