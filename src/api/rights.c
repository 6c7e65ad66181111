/*
 * rights.c
 *	  the right to decide
 *
 * Whoever may call submit_user_decision may decide. The owner of the extension
 * always may.
 */
#include "api/api.h"

/* Say whether the caller may decide reviews. */
bool
CallerMayDecide(Call *call)
{
	static KeptQuery ask = {
		"SELECT pg_catalog.bool_or(pg_catalog.has_function_privilege($1, p.oid, 'EXECUTE')) FROM pg_catalog.pg_proc AS p"
		" WHERE p.pronamespace = 'stepwise'::pg_catalog.regnamespace AND p.proname = 'submit_user_decision'",
		1, {OIDOID}
	};
	Params		params = {0};
	bool		may;
	Rows		rows;

	if (RoleIsOwner(call->caller))
		return true;
	ParamDatum(&params, ObjectIdGetDatum(call->caller));
	rows = QueryRun(&ask, &params);
	may = rows.count > 0 && RowBool(&rows, 0, 1);
	RowsFree(&rows);
	return may;
}

/* Refuse a caller without the right to decide; "step" asks a person, or has a gate. */
void
CheckMayDecide(Call *call, const StepRow *step)
{
	if (!CallerMayDecide(call))
		ereport(ERROR,
				(errcode(ERRCODE_APPROVAL_MISMATCH),
				 errmsg("a person decides about step \"%s\"", step->name),
				 errdetail("Role \"%s\" does not have the right to decide.", RoleText(call->caller)),
				 errhint("stepwise.why(plan_id) says what the plan waits for.")));
}
