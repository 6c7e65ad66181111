/*
 * api.h
 *	  what the SQL-callable functions share
 */
#ifndef STEPWISE_API_H
#define STEPWISE_API_H

#include "engine/engine.h"

/* ---------- loop.c: the agent's loop ---------- */

extern void PlanNoteSession(Call *call, PlanRow *plan); /* session_resumed; the caller saves */
extern Jsonb *NextAnswer(Call *call, PlanRow *scope);	/* when there is no step to hand out */
extern void PutPath(JsonBuilder *b, const PlanRow *plan, const StepRow *step);
extern struct varlena *HoldersBelow(const PlanRow *plan, const StepRow *holder);	/* of the plan that it holds */
extern void PutStepAnswer(JsonBuilder *b, const PlanRow *plan, const StepRow *step);
extern Jsonb *StepAnswer(const PlanRow *plan, const StepRow *step);	/* what every change of a step answers */
extern Outcome CheckOutcome(const char *outcome);
extern void CheckConfidence(double confidence);
extern void CheckResultGiven(const Jsonb *result);	/* SW005 */
extern bool OnlyEngineDoes(const StepRow *step);	/* it takes no result from outside */
extern void CheckNotHolder(const StepRow *step, const char *what);
extern void CheckNotPrompt(const StepRow *step);
extern Jsonb *PlanJson(Call *call, KeptQuery *query, const pg_uuid_t *plan_id); /* what a query over (tenant, plan) makes */

/* ---------- variables.c: the variables of a plan ---------- */

extern Jsonb *VariablesRead(Call *call, const pg_uuid_t *plan_id);	/* the plan's own */
extern void VariablesStore(Call *call, const pg_uuid_t *plan_id, const Jsonb *variables);	/* SW007 */

/* ---------- context.c: what a session needs to go on ---------- */

extern int	ArgumentMax(FunctionCallInfo fcinfo, int n, int otherwise);	/* how many rows; SW005 */

/* ---------- handoff.c: why, and what to call next ---------- */

extern Jsonb *NextCall(Call *call, PlanRow *scope);

#endif							/* STEPWISE_API_H */
