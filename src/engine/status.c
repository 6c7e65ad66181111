/*
 * status.c
 *	  the transition tables, and the status of a plan from those of its steps
 *
 * These functions run no query. They read nothing but the labels of the enum
 * types. The engine and the SQL functions use the same code.
 */
#include "engine/engine.h"

#include "utils/array.h"

#define TO(status)	(1 << (status)) /* the bit of a status in a set */

/* for each status of a step, the set of those that it may change to */
static const int StepTransitions[STEP_STATUSES] = {
	[STEP_PENDING] = TO(STEP_IN_PROGRESS) | TO(STEP_AWAITING_INPUT) | TO(STEP_SKIPPED) | TO(STEP_FAILED),
	[STEP_IN_PROGRESS] = TO(STEP_COMPLETED) | TO(STEP_FAILED) | TO(STEP_AWAITING_INPUT) | TO(STEP_SKIPPED) | TO(STEP_PENDING),
	[STEP_AWAITING_INPUT] = TO(STEP_IN_PROGRESS) | TO(STEP_COMPLETED) | TO(STEP_FAILED) | TO(STEP_SKIPPED) | TO(STEP_PENDING),
	[STEP_FAILED] = TO(STEP_PENDING) | TO(STEP_IN_PROGRESS) | TO(STEP_SKIPPED),
	[STEP_COMPLETED] = 0,
	[STEP_SKIPPED] = 0,
};

/* for each status of a plan, the set of those that it may change to */
static const int PlanTransitions[PLAN_STATUSES] = {
	[PLAN_PLANNING] = TO(PLAN_EXECUTING) | TO(PLAN_FAILED) | TO(PLAN_CANCELLED),
	[PLAN_EXECUTING] = TO(PLAN_AWAITING_REVIEW) | TO(PLAN_STALLED) | TO(PLAN_COMPLETED) | TO(PLAN_FAILED) | TO(PLAN_CANCELLED),
	[PLAN_AWAITING_REVIEW] = TO(PLAN_EXECUTING) | TO(PLAN_FAILED) | TO(PLAN_CANCELLED),
	[PLAN_STALLED] = TO(PLAN_EXECUTING) | TO(PLAN_FAILED) | TO(PLAN_CANCELLED),
	[PLAN_COMPLETED] = 0,
	[PLAN_FAILED] = 0,
	[PLAN_CANCELLED] = 0,
};

/* Say whether a step may change from one status to another. */
bool
StepTransitionAllowed(StepStatus from, StepStatus to)
{
	return (StepTransitions[from] & TO(to)) != 0;
}

/* Say whether a plan may change from one status to another. */
bool
PlanTransitionAllowed(PlanStatus from, PlanStatus to)
{
	return (PlanTransitions[from] & TO(to)) != 0;
}

/* Say whether a plan of this status has ended. */
bool
PlanIsTerminal(PlanStatus status)
{
	return PlanTransitions[status] == 0;
}

/* List the statuses to which a step may change, for messages. */
char *
StepTransitionsText(StepStatus from)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int to = 0; to < STEP_STATUSES; to++)
		if (StepTransitionAllowed(from, to))
			appendStringInfo(&text, "%s%s", text.len ? ", " : "", StepStatusName[to]);
	return text.len ? text.data : pstrdup("nothing");
}

/* Add up the steps of all statuses. */
int
StepTotal(const int counts[STEP_STATUSES])
{
	int			total = 0;

	for (int i = 0; i < STEP_STATUSES; i++)
		total += counts[i];
	return total;
}

/* Derive the status of a plan from those of its steps. The rules are those of the contract, in the same order. */
PlanStatus
PlanDeriveStatus(const int counts[STEP_STATUSES], OnFailure on_failure)
{
	int			total = StepTotal(counts);
	int			done = counts[STEP_COMPLETED] + counts[STEP_SKIPPED];

	if (on_failure == ON_FAILURE_CONTINUE || on_failure == ON_FAILURE_STOP)
		done += counts[STEP_FAILED];

	if (total == 0)
		return PLAN_PLANNING;
	if (counts[STEP_FAILED] > 0 && on_failure == ON_FAILURE_FAIL)
		return PLAN_FAILED;
	if (counts[STEP_AWAITING_INPUT] > 0)
		return PLAN_AWAITING_REVIEW;
	if (done == total)
		return PLAN_COMPLETED;
	if (counts[STEP_PENDING] == total)
		return PLAN_PLANNING;
	return PLAN_EXECUTING;
}

/* Read on_failure; error if it is not one of the known words. */
static OnFailure
CheckOnFailure(const char *name)
{
	int			index = NameIndex(name, OnFailureName, ON_FAILURES);

	if (index < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("unknown on_failure \"%s\"", ShortText(name)),
				 errhint("Use continue, stop, pause or fail.")));
	return index;
}

/* Derive the status of a plan from an array of step statuses. */
PG_FUNCTION_INFO_V1(stepwise_derive_plan_status);
Datum
stepwise_derive_plan_status(PG_FUNCTION_ARGS)
{
	ArrayType  *statuses = PG_GETARG_ARRAYTYPE_P(0);
	OnFailure	on_failure = CheckOnFailure(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	int			counts[STEP_STATUSES] = {0};
	Datum	   *values;
	bool	   *nulls;
	int			count;

	deconstruct_array(statuses, ARR_ELEMTYPE(statuses), sizeof(Oid), true, TYPALIGN_INT, &values, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_DEFINITION),
					 errmsg("step statuses must not contain nulls"),
					 errhint("Give the status of each step, such as 'pending'.")));
		counts[EnumIndex(DatumGetObjectId(values[i]), StepStatusName, STEP_STATUSES)]++;
	}
	PG_RETURN_OID(EnumValue("plan_status", PlanStatusName[PlanDeriveStatus(counts, on_failure)]));
}

/* Say whether a step may change from one status to another. */
PG_FUNCTION_INFO_V1(stepwise_step_transition_allowed);
Datum
stepwise_step_transition_allowed(PG_FUNCTION_ARGS)
{
	int			from = EnumIndex(PG_GETARG_OID(0), StepStatusName, STEP_STATUSES);
	int			to = EnumIndex(PG_GETARG_OID(1), StepStatusName, STEP_STATUSES);

	PG_RETURN_BOOL(StepTransitionAllowed(from, to));
}

/* Check that a step has an outcome if and only if it is completed, for the constraint of its table. */
PG_FUNCTION_INFO_V1(stepwise_step_fits);
Datum
stepwise_step_fits(PG_FUNCTION_ARGS)
{
	int			status = EnumIndex(PG_GETARG_OID(0), StepStatusName, STEP_STATUSES);
	int			outcome = EnumIndex(PG_GETARG_OID(1), OutcomeName, OUTCOMES);

	PG_RETURN_BOOL((status == STEP_COMPLETED) == (outcome != OUTCOME_NA));
}

/*
 * Check that a plan has an outcome if and only if it is completed, and
 * completed_at if and only if it has ended, for the constraint of its table.
 * The function is not strict, because completed_at may be null.
 */
PG_FUNCTION_INFO_V1(stepwise_plan_fits);
Datum
stepwise_plan_fits(PG_FUNCTION_ARGS)
{
	int			status;
	int			outcome;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		PG_RETURN_BOOL(false);
	status = EnumIndex(PG_GETARG_OID(0), PlanStatusName, PLAN_STATUSES);
	outcome = EnumIndex(PG_GETARG_OID(1), OutcomeName, OUTCOMES);
	PG_RETURN_BOOL((status == PLAN_COMPLETED) == (outcome != OUTCOME_NA) && PlanIsTerminal(status) == !PG_ARGISNULL(2));
}

/* Say whether a plan may change from one status to another. */
PG_FUNCTION_INFO_V1(stepwise_plan_transition_allowed);
Datum
stepwise_plan_transition_allowed(PG_FUNCTION_ARGS)
{
	int			from = EnumIndex(PG_GETARG_OID(0), PlanStatusName, PLAN_STATUSES);
	int			to = EnumIndex(PG_GETARG_OID(1), PlanStatusName, PLAN_STATUSES);

	PG_RETURN_BOOL(PlanTransitionAllowed(from, to));
}
