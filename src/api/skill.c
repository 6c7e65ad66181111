/*
 * skill.c
 *	  executions of an agent's skills, and their link to plans
 *
 * The status "started" makes a new execution. Every other status goes to the
 * newest execution of that skill, in the plan or in the session, that has not
 * ended. If there is none, it makes a new execution too.
 *
 * create_plan links the latest started execution of the session to the new
 * plan. From then on, the audit entries of the execution go to the chain of
 * the plan. Until then, they go to the chain of the tenant.
 *
 * Locks: the plan, if there is one, then the execution.
 */
#include "api/api.h"

typedef enum SkillStatus
{
	SKILL_STARTED,
	SKILL_EXECUTING,
	SKILL_COMPLETED,
	SKILL_FAILED
} SkillStatus;

static const char *const SkillStatusName[] = {"started", "executing", "completed", "failed"};

/* the audit event of each status, or NULL */
static const char *const SkillEvent[] = {
	[SKILL_STARTED] = "skill_started",
	[SKILL_EXECUTING] = NULL,
	[SKILL_COMPLETED] = "skill_completed",
	[SKILL_FAILED] = "skill_completed",
};

/* the keys of the metadata that get_next_step shows */
static const char *const TextKeys[] = {"outputMediaType", "outputFormattingInstructions"};

/* what a call says about an execution, and the execution that it is about */
typedef struct SkillNote
{
	char	   *skill;
	SkillStatus status;
	char	   *session;		/* or NULL */
	pg_uuid_t  *plan_id;		/* or NULL */
	Jsonb	   *metadata;
	char	   *error;			/* or NULL */
	/* the execution in the table */
	pg_uuid_t	id;
	char	   *before;			/* its status before the call; NULL if it is new */
	pg_uuid_t	linked;			/* the plan that it is linked to, if is_linked */
	bool		is_linked;
} SkillNote;

/* ---------- checks ---------- */

static SkillStatus
CheckSkillStatus(const char *status)
{
	int			index = status ? NameIndex(status, SkillStatusName, lengthof(SkillStatusName)) : -1;
	Faults		faults = {0};

	if (index >= 0)
		return index;
	FaultAdd(&faults, ERRCODE_INVALID_DEFINITION, "status",
			 WordHint(&faults, status ? status : "", SkillStatusName, lengthof(SkillStatusName), "statuses"),
			 "\"%s\" is not the status of a skill execution", ShortText(status));
	FaultsRaise(&faults, "skill execution");
	return SKILL_STARTED;
}

static void
CheckMetadata(const Jsonb *metadata)
{
	Faults		faults = {0};
	JsonbValue	value;

	CheckJsonLimits(metadata, "metadata");
	if (!JsonIsObject(metadata))
		FaultAdd(&faults, ERRCODE_INVALID_DEFINITION, "metadata", "Write {\"name\": value, ...}.", "must be of type object");
	for (size_t i = 0; i < lengthof(TextKeys); i++)
		if (JsonGet(metadata, TextKeys[i], &value) && value.type != jbvString && value.type != jbvNull)
			FaultAdd(&faults, ERRCODE_INVALID_DEFINITION, psprintf("metadata.%s", TextKeys[i]), KindHint("string"),
					 "must be of type string, not %s", JsonKindName(&value));
	FaultsRaise(&faults, "skill execution");
}

/* Read the arguments and check them. */
static SkillNote
ArgumentNote(FunctionCallInfo fcinfo)
{
	SkillNote	note = {0};

	note.skill = ArgumentText(fcinfo, 0);
	note.status = CheckSkillStatus(ArgumentText(fcinfo, 1));
	note.session = ArgumentText(fcinfo, 2);
	note.plan_id = ArgumentUuid(fcinfo, 3);
	note.metadata = PG_ARGISNULL(4) ? JsonEmptyObject() : ArgumentJson(fcinfo, 4);
	note.error = ArgumentText(fcinfo, 5);
	CheckTitle(note.skill, "skill_name");
	CheckOptionalTitle(note.session, "session_id");
	CheckMetadata(note.metadata);
	CheckTextLimit(note.error, "error_message");
	return note;
}

/* ---------- rows ---------- */

/*
 * Run a query for an open execution, and note what it finds. Returns false if
 * there is none.
 * 1 id, 2 status, 3 plan
 */
static bool
FindBy(KeptQuery *query, const Params *params, SkillNote *note)
{
	Rows		rows = QueryRun(query, params);
	bool		found = rows.count > 0;

	if (found)
	{
		note->id = RowUuid(&rows, 0, 1);
		note->before = RowText(&rows, 0, 2);
		note->is_linked = !RowIsNull(&rows, 0, 3);
		note->linked = RowUuid(&rows, 0, 3);
	}
	RowsFree(&rows);
	return found;
}

/* Find the newest open execution of the plan. */
static bool
FindOfPlan(Call *call, SkillNote *note)
{
	static KeptQuery find = {
		"SELECT e.id, e.status, e.plan_id FROM stepwise.skill_execution AS e"
		" WHERE e.tenant = $1 AND e.plan_id = $2 AND e.skill_name = $3 AND e.completed_at IS NULL"
		" ORDER BY e.id DESC LIMIT 1",
		3, {TEXTOID, UUIDOID, TEXTOID}
	};
	Params		params = {0};

	ParamKey(&params, call, note->plan_id);
	ParamText(&params, note->skill);
	return FindBy(&find, &params, note);
}

/*
 * Find the newest open execution of the session. If the call names a plan, an
 * execution that is linked to a plan does not count.
 */
static bool
FindOfSession(Call *call, SkillNote *note)
{
	static KeptQuery find = {
		"SELECT e.id, e.status, e.plan_id FROM stepwise.skill_execution AS e"
		" WHERE e.tenant = $1 AND e.session_id = $2 AND e.skill_name = $3 AND e.completed_at IS NULL"
		" AND ($4 IS NULL OR e.plan_id IS NULL) ORDER BY e.id DESC LIMIT 1",
		4, {TEXTOID, TEXTOID, TEXTOID, UUIDOID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamText(&params, note->session);
	ParamText(&params, note->skill);
	ParamUuid(&params, note->plan_id);
	return FindBy(&find, &params, note);
}

/* Find the newest open execution without session and plan. */
static bool
FindLoose(Call *call, SkillNote *note)
{
	static KeptQuery find = {
		"SELECT e.id, e.status, e.plan_id FROM stepwise.skill_execution AS e"
		" WHERE e.tenant = $1 AND e.session_id IS NULL AND e.plan_id IS NULL AND e.skill_name = $2"
		" AND e.completed_at IS NULL ORDER BY e.id DESC LIMIT 1",
		2, {TEXTOID, TEXTOID}
	};
	Params		params = {0};

	ParamTenant(&params, call);
	ParamText(&params, note->skill);
	return FindBy(&find, &params, note);
}

/* Find the open execution that a call is about. Returns false if it needs a new one. */
static bool
FindOpen(Call *call, SkillNote *note)
{
	if (note->status == SKILL_STARTED)
		return false;
	if (note->plan_id == NULL && note->session == NULL)
		return FindLoose(call, note);
	return (note->plan_id != NULL && FindOfPlan(call, note)) || (note->session != NULL && FindOfSession(call, note));
}

/* Does an execution end with this status? */
static bool
Ends(SkillStatus status)
{
	return status == SKILL_COMPLETED || status == SKILL_FAILED;
}

/* Insert or update the execution. Returns false if it exists but has ended meanwhile. */
static bool
WriteNote(Call *call, const SkillNote *note)
{
	static KeptQuery write = {
		"INSERT INTO stepwise.skill_execution AS e (tenant, id, session_id, plan_id, skill_name, status, metadata,"
		" error_message, completed_at)"
		" VALUES ($1, $2, $3, $4, $5, $6, $7, $8, CASE WHEN $9 THEN pg_catalog.clock_timestamp() END)"
		" ON CONFLICT (id) DO UPDATE SET status = $6, metadata = e.metadata || $7,"
		" plan_id = coalesce(e.plan_id, $4), error_message = coalesce($8, e.error_message),"
		" completed_at = CASE WHEN $9 THEN pg_catalog.clock_timestamp() END"
		" WHERE e.tenant = $1 AND e.completed_at IS NULL RETURNING e.metadata",
		9, {TEXTOID, UUIDOID, TEXTOID, UUIDOID, TEXTOID, TEXTOID, JSONBOID, TEXTOID, BOOLOID}
	};
	Params		params = {0};
	Rows		rows;

	ParamKey(&params, call, &note->id);
	ParamText(&params, note->session);
	ParamUuid(&params, note->plan_id);
	ParamText(&params, note->skill);
	ParamText(&params, SkillStatusName[note->status]);
	ParamVarlena(&params, note->metadata);
	ParamText(&params, note->error);
	ParamBool(&params, Ends(note->status));
	rows = QueryRun(&write, &params);
	/* the limit applies to the metadata of all calls together, as to that of one */
	if (rows.count > 0)
		CheckJsonLimits(JsonOf(RowVarlena(&rows, 0, 1)), "metadata with what was noted before");
	RowsFree(&rows);
	return rows.count > 0;
}

/* ---------- log_skill_execution ---------- */

/* Write the audit entry into the chain of the plan, or into that of the tenant. */
static void
AuditSkill(Call *call, PlanRow *plan, const SkillNote *note)
{
	const char *event = SkillEvent[note->status];
	JsonBuilder b = {0};

	if (event == NULL)
		return;
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "executionId", &note->id);
	JsonPutText(&b, "skillName", note->skill);
	JsonPutText(&b, "from", note->before);
	JsonPutText(&b, "to", SkillStatusName[note->status]);
	if (note->error != NULL)
		JsonPutText(&b, "error", note->error);
	JsonObjectEnd(&b);
	if (plan == NULL)
		AuditAppendPlanless(call, event, JsonFinish(&b));
	else
		AuditAppend(call, plan, NULL, event, JsonFinish(&b));
}

static Jsonb *
SkillAnswer(Call *call, const PlanRow *plan, const SkillNote *note)
{
	static KeptQuery read = {
		"SELECT stepwise.skill_json(e, 4000) FROM stepwise.skill_execution AS e WHERE e.tenant = $1 AND e.id = $2",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &read, &note->id);
	Jsonb	   *answer;

	answer = JsonMerge(RowJson(&rows, 0, 1), JsonTextOf("planStatus", plan ? PlanStatusName[plan->status] : NULL));
	return plan != NULL && plan->nested ? JsonMerge(answer, JsonTextOf("rootPlanId", UuidText(&plan->root_id))) : answer;
}

/* Find the execution or make one, and write what the call says about it. */
static Jsonb *
LogSkill(Call *call, SkillNote *note)
{
	PlanRow    *plan = note->plan_id ? PlanLock(call, note->plan_id) : NULL;

	CallInSession(call, note->session);
	MarkEngineUsed();
	if (!FindOpen(call, note))
		note->id = IdNew(call);
	if (plan == NULL && note->is_linked)
		plan = PlanLock(call, &note->linked);
	if (!WriteNote(call, note))
	{
		/* another session has ended it meanwhile: make a new execution with the same plan */
		note->id = IdNew(call);
		note->before = NULL;
		if (note->is_linked)
			note->plan_id = &note->linked;
		WriteNote(call, note);
	}
	AuditSkill(call, plan, note);
	return SkillAnswer(call, plan, note);
}

/* Log the start, the progress or the end of a skill execution. */
PG_FUNCTION_INFO_V1(stepwise_log_skill_execution);
Datum
stepwise_log_skill_execution(PG_FUNCTION_ARGS)
{
	Call		call;
	SkillNote	note;

	CallBegin(&call);
	note = ArgumentNote(fcinfo);
	return CallEnd(&call, LogSkill(&call, &note));
}
