/*
 * fork.c
 *	  fork_plan: create a plan that keeps the results of an old one before a step
 *
 * The named step begins again. So do, in a sequential plan, all later steps;
 * steps that have not ended; and steps that depend on a step that begins
 * again. The other steps keep their results and their nested plans. Branches
 * of a step that begins again are evaluated anew: steps that they skipped
 * begin again, and steps that they added are left out.
 *
 * Rows are copied by SQL, which replaces only the columns that differ. So a
 * new column needs no line here, unless a step or plan that begins again must
 * not keep its value: then it goes into FreshStep or FreshPlan.
 *
 * Locks: the tree of the old plan. No other session can see the new plan yet.
 */
#include "api/api.h"

#include "utils/array.h"

/* the steps of the old plan, and the ids of their copies */
typedef struct Copies
{
	int			count;
	Datum	   *old_ids;
	Datum	   *new_ids;
	Datum	   *kept;			/* booleans */
	bool	   *review;			/* a branch asked for this review; ask for it again */
	bool		whole;			/* no step begins again */
} Copies;

/* the columns of a step that begins again */
static const char FreshStep[] =
"{\"status\": \"pending\", \"outcome\": \"n/a\", \"attempt\": 0, \"execution_order\": null, \"ready\": null,"
" \"started_at\": null, \"completed_at\": null, \"active_at\": null, \"lease_expires_at\": null, \"confidence\": null,"
" \"attempts_before\": null, \"worker\": null, \"holder\": null, \"holds\": null, \"sent_back\": null, \"message\": null, \"pause_reason\": null, \"inputs\": null, \"result\": null,"
" \"result_summary\": null, \"execution_report\": null, \"output_formatting_notes\": null, \"error\": null,"
" \"approved\": null, \"fixed_version\": null, \"feedback\": null, \"previous\": null, \"previous_error\": null}";

/* the columns of the new plan */
static const char FreshPlan[] =
"{\"status\": \"planning\", \"outcome\": \"n/a\", \"leases\": false, \"nests\": false, \"stalls\": false, \"workable\": null, \"depth\": 0,"
" \"parent_step_id\": null, \"parent_names\": null, \"pending\": 0, \"in_progress\": 0, \"awaiting_input\": 0, \"completed\": 0, \"failed\": 0,"
" \"skipped\": 0, \"unsuccessful\": 0, \"paused\": 0, \"holding\": 0, \"open_failures\": 0, \"sent_back\": 0, \"crowded\": 0, \"started_steps\": 0, \"next_order\": 1, \"started_at\": null,"
" \"completed_at\": null, \"message\": null, \"pause_reason\": null, \"outputs\": null}";

static Datum
UuidArray(Datum *ids, int count)
{
	return PointerGetDatum(construct_array(ids, count, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR));
}

static Datum
KeptArray(const Copies *copies)
{
	return PointerGetDatum(construct_array(copies->kept, copies->count, BOOLOID, 1, true, TYPALIGN_CHAR));
}

/* Copy a UUID to the memory of the call. */
static Datum
UuidCopy(const pg_uuid_t *uuid)
{
	pg_uuid_t  *copy = palloc(sizeof(pg_uuid_t));

	*copy = *uuid;
	return UUIDPGetDatum(copy);
}

/* ---------- which steps keep their results ---------- */

/* columns of the query that judges the steps */
enum
{
	J_ID = 1, J_KEPT, J_REVIEW
};

/*
 * Find which steps of a plan are copied, and which of them keep their results.
 *
 * The step "from" begins again; if it is NULL, no step does. In a sequential
 * plan, all later steps begin again too. So do steps that have not ended. A
 * step that was skipped only because the plan was cancelled counts as not
 * ended. If a step begins again, so do those that depend on it, and those that
 * its branches skipped. Steps that its branches added are left out.
 */
static Rows
JudgedSteps(Call *call, const PlanRow *plan, const StepRow *from)
{
	static KeptQuery find = {
		"WITH RECURSIVE done AS (SELECT s.id, s.name, s.step_order, s.status = 'completed' OR"
		" (s.status = 'skipped' AND (s.message IS NULL OR s.message NOT LIKE '" CANCELLED_WITH_PLAN "%')) AS done"
		" FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2),"
		" skipped AS MATERIALIZED (SELECT s.id, a.step_id AS by FROM stepwise.audit AS a,"
		" pg_catalog.jsonb_array_elements_text(a.detail -> 'skippedSteps') AS x (name) JOIN done AS s ON s.name = x.name"
		" WHERE a.tenant = $1 AND a.plan_id = $2 AND a.detail ? 'skippedSteps'),"
		" again AS (SELECT s.id FROM done AS s WHERE s.id = $3 OR NOT s.done OR ($4 AND s.step_order > $5)"
		" UNION SELECT h.id FROM again AS a, LATERAL ("
		" SELECT d.step_id FROM stepwise.dependency AS d WHERE d.tenant = $1 AND d.depends_on = a.id"
		" UNION ALL SELECT k.id FROM skipped AS k WHERE k.by = a.id) AS h (id)),"
		" judged AS (SELECT s.id, s.name, s.step_order,"
		" $3 IS NULL OR s.id NOT IN (SELECT a.id FROM again AS a) AS kept FROM done AS s),"
		" added AS (SELECT x.name, a.step_id, a.detail ->> 'branchAction' AS action FROM stepwise.audit AS a,"
		" pg_catalog.jsonb_array_elements_text(a.detail -> 'addedSteps') AS x (name)"
		" WHERE a.tenant = $1 AND a.plan_id = $2 AND a.detail ? 'addedSteps')"
		" SELECT j.id, j.kept, NOT j.kept AND coalesce(a.action = 'request_review', false) FROM judged AS j"
		" LEFT JOIN added AS a ON a.name = j.name LEFT JOIN judged AS b ON b.id = a.step_id"
		" WHERE a.step_id IS NULL OR coalesce(b.kept, true) ORDER BY j.step_order",
		5, {TEXTOID, UUIDOID, UUIDOID, BOOLOID, INT4OID}, .reads_log = true
	};
	Params		params = {0};

	ParamKey(&params, call, &plan->id);
	ParamUuid(&params, from ? &from->id : NULL);
	ParamBool(&params, plan->sequential);
	ParamInt(&params, from ? from->order : 0);
	return QueryRun(&find, &params);
}

/* Choose the steps to copy, and give each copy a new id; from is the step that begins again, or NULL. */
static Copies
PlanCopies(Call *call, const PlanRow *plan, const StepRow *from)
{
	Rows		rows = JudgedSteps(call, plan, from);
	Copies		copies = {.count = (int) rows.count, .whole = from == NULL};

	copies.old_ids = palloc(sizeof(Datum) * Max(rows.count, 1));
	copies.new_ids = palloc(sizeof(Datum) * Max(rows.count, 1));
	copies.kept = palloc(sizeof(Datum) * Max(rows.count, 1));
	copies.review = palloc(sizeof(bool) * Max(rows.count, 1));
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t	old_id = RowUuid(&rows, i, J_ID);
		pg_uuid_t	new_id = IdNew(call);

		copies.old_ids[i] = UuidCopy(&old_id);
		copies.new_ids[i] = UuidCopy(&new_id);
		copies.kept[i] = BoolGetDatum(RowBool(&rows, i, J_KEPT));
		copies.review[i] = RowBool(&rows, i, J_REVIEW);
	}
	RowsFree(&rows);
	return copies;
}

/* ---------- copying rows ---------- */

/* Copy the steps. Orders, and the execution orders of kept steps, are numbered without gaps. */
static void
CopySteps(Call *call, const PlanRow *copy, const Copies *copies)
{
	static KeptQuery insert = {
		"WITH m AS (SELECT * FROM ROWS FROM (pg_catalog.unnest($4), pg_catalog.unnest($5), pg_catalog.unnest($6))"
		" WITH ORDINALITY AS u (old_id, new_id, kept, step_order))"
		" INSERT INTO stepwise.step SELECT r.* FROM ("
		" SELECT s, m.new_id, m.kept, m.step_order, CASE WHEN $8 THEN m.step_order - 1 ELSE s.wave END AS wave,"
		" CASE WHEN s.execution_order IS NOT NULL THEN pg_catalog.row_number()"
		" OVER (PARTITION BY m.kept, s.execution_order IS NULL ORDER BY s.execution_order) END AS execution_order,"
		" CASE WHEN $7 THEN s.blockers ELSE (SELECT pg_catalog.count(*) FROM stepwise.dependency AS d"
		" JOIN m AS o ON o.old_id = d.depends_on WHERE d.tenant = $1 AND d.step_id = s.id) END AS blockers"
		" FROM m JOIN stepwise.step AS s ON s.tenant = $1 AND s.id = m.old_id) AS x,"
		" LATERAL pg_catalog.jsonb_populate_record(x.s, pg_catalog.jsonb_build_object('id', x.new_id, 'plan_id', $2,"
		" 'root_id', $3, 'step_order', x.step_order, 'wave', x.wave, 'execution_order', x.execution_order,"
		" 'blockers', x.blockers) || CASE WHEN x.kept THEN '{}' ELSE $9 END) AS r",
		9, {TEXTOID, UUIDOID, UUIDOID, UUIDARRAYOID, UUIDARRAYOID, BOOLARRAYOID, BOOLOID, BOOLOID, JSONBOID}
	};
	Params		params = {0};

	ParamKey(&params, call, &copy->id);
	ParamUuid(&params, &copy->root_id);
	ParamDatum(&params, UuidArray(copies->old_ids, copies->count));
	ParamDatum(&params, UuidArray(copies->new_ids, copies->count));
	ParamDatum(&params, KeptArray(copies));
	ParamBool(&params, copies->whole);
	ParamBool(&params, copy->sequential);
	ParamDatum(&params, JsonbPGetDatum(JsonParse(FreshStep)));
	QueryRun(&insert, &params);
}

/* Copy the dependencies and branches of the steps. */
static void
CopyLinks(Call *call, const PlanRow *copy, const Copies *copies)
{
	static KeptQuery dependencies = {
		"INSERT INTO stepwise.dependency (tenant, plan_id, step_id, depends_on, required, ended)"
		" SELECT $1, $2, m.new_id, n.new_id, d.required, d.ended FROM stepwise.dependency AS d"
		" JOIN ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS m (old_id, new_id) ON m.old_id = d.step_id"
		" JOIN ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS n (old_id, new_id) ON n.old_id = d.depends_on"
		" WHERE d.tenant = $1 AND d.step_id = ANY ($3)",
		4, {TEXTOID, UUIDOID, UUIDARRAYOID, UUIDARRAYOID}
	};
	static KeptQuery branches = {
		"INSERT INTO stepwise.branching_condition SELECT r.* FROM stepwise.branching_condition AS b"
		" JOIN ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS m (old_id, new_id) ON m.old_id = b.step_id"
		" LEFT JOIN ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4)) AS n (old_id, new_id) ON n.old_id = b.target_id,"
		" LATERAL pg_catalog.jsonb_populate_record(b, pg_catalog.jsonb_build_object('plan_id', $2, 'step_id', m.new_id,"
		" 'target_id', n.new_id)) AS r"
		" WHERE b.tenant = $1 AND b.step_id = ANY ($3)",
		4, {TEXTOID, UUIDOID, UUIDARRAYOID, UUIDARRAYOID}
	};
	Params		params = {0};

	ParamKey(&params, call, &copy->id);
	ParamDatum(&params, UuidArray(copies->old_ids, copies->count));
	ParamDatum(&params, UuidArray(copies->new_ids, copies->count));
	QueryRun(&dependencies, &params);
	QueryRun(&branches, &params);
}

/*
 * Copy the row of a plan and its detail; the columns in "over" are replaced.
 * The copy has no audit entries yet. Without a root, the copy is its own root,
 * and does not keep the final output.
 */
static PlanRow *
CopyPlan(Call *call, const PlanRow *plan, PlanRow *root, const Jsonb *over)
{
	static KeptQuery row = {
		"INSERT INTO stepwise.plan SELECT r.* FROM stepwise.plan AS p, LATERAL pg_catalog.jsonb_populate_record(p, $4 ||"
		" pg_catalog.jsonb_build_object('id', $3, 'audit_entries', 0, 'audit_head', NULL, 'idempotency_key', NULL,"
		" 'created_at', $5, 'updated_at', $5)) AS r WHERE p.tenant = $1 AND p.id = $2",
		5, {TEXTOID, UUIDOID, UUIDOID, JSONBOID, TIMESTAMPTZOID}
	};
	static KeptQuery detail = {
		"INSERT INTO stepwise.plan_detail SELECT r.* FROM (SELECT) AS one"
		" LEFT JOIN stepwise.plan_detail AS p ON p.tenant = $1 AND p.plan_id = $2,"
		" LATERAL pg_catalog.jsonb_populate_record(p, CASE WHEN p.plan_id IS NULL THEN '{\"outputs\": {}, \"variables\": {}}'::jsonb ELSE '{}' END"
		" || pg_catalog.jsonb_build_object('tenant', $1, 'plan_id', $3, 'forked_from', $2, 'request_digest', NULL)"
		" || CASE WHEN $4 THEN '{}' ELSE '{\"final_output\": null, \"final_media_type\": null}'::jsonb END) AS r",
		4, {TEXTOID, UUIDOID, UUIDOID, BOOLOID}
	};
	pg_uuid_t	id = IdNew(call);
	Params		params = {0};

	ParamKey(&params, call, &plan->id);
	ParamUuid(&params, &id);
	ParamDatum(&params, JsonbPGetDatum(JsonMerge(over, JsonTextOf("root_id", UuidText(root ? &root->id : &id)))));
	ParamTime(&params, CallNow(call, plan));
	QueryRun(&row, &params);
	params.count = 3;
	ParamBool(&params, root != NULL);
	QueryRun(&detail, &params);
	return root ? PlanInTree(call, root, &id) : PlanLock(call, &id);
}

/* ---------- waves, when steps are left out ---------- */

/* the steps of a copy in the order of their old waves, so that each comes after the steps on which it depends */
#define STEPS_BY_WAVE \
	"WITH n AS (SELECT s.id, s.wave, (pg_catalog.row_number() OVER (ORDER BY s.wave, s.step_order))::int AS i" \
	" FROM stepwise.step AS s WHERE s.tenant = $1 AND s.plan_id = $2)"

/* Write the waves of a copy, given in the order of STEPS_BY_WAVE. */
static void
WriteWaves(Call *call, const PlanRow *copy, const int *waves, int count)
{
	static KeptQuery write = {
		STEPS_BY_WAVE
		" UPDATE stepwise.step AS s SET wave = u.wave FROM n, pg_catalog.unnest($3) WITH ORDINALITY AS u (wave, i)"
		" WHERE s.tenant = $1 AND s.id = n.id AND u.i = n.i AND u.wave <> s.wave",
		3, {TEXTOID, UUIDOID, INT4ARRAYOID}
	};
	Datum	   *values = palloc(sizeof(Datum) * Max(count, 1));
	Params		params = {0};

	for (int i = 0; i < count; i++)
		values[i] = Int32GetDatum(waves[i]);
	ParamKey(&params, call, &copy->id);
	ParamDatum(&params, PointerGetDatum(construct_array(values, count, INT4OID, sizeof(int32), true, TYPALIGN_INT)));
	QueryRun(&write, &params);
}

/*
 * Compute the waves again: a review that is left out may have stood between
 * steps. Steps that depend on nothing keep their waves.
 */
static void
LowerWaves(Call *call, const PlanRow *copy)
{
	static KeptQuery steps = {STEPS_BY_WAVE " SELECT n.wave FROM n ORDER BY n.i", 2, {TEXTOID, UUIDOID}};
	static KeptQuery links = {
		STEPS_BY_WAVE
		" SELECT c.i, p.i FROM stepwise.dependency AS d JOIN n AS c ON c.id = d.step_id JOIN n AS p ON p.id = d.depends_on"
		" WHERE d.tenant = $1 AND d.plan_id = $2 ORDER BY c.i",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &steps, &copy->id);
	int			count = (int) rows.count;
	int		   *waves = palloc(sizeof(int) * Max(count, 1));
	int			last = 0;

	for (int i = 0; i < count; i++)
		waves[i] = RowInt(&rows, i, 1);
	RowsFree(&rows);
	rows = QueryById(call, &links, &copy->id);
	for (uint64 i = 0; i < rows.count; i++)
	{
		int			child = RowInt(&rows, i, 1);
		int			parent = RowInt(&rows, i, 2);

		waves[child - 1] = Max(child == last ? waves[child - 1] : 0, waves[parent - 1] + 1);
		last = child;
	}
	RowsFree(&rows);
	WriteWaves(call, copy, waves, count);
}

/* ---------- the audit of a fork ---------- */

/* Build the detail of an audit entry that names the other plan of a fork. */
static Jsonb *
LinkDetail(const char *action, const char *key, const pg_uuid_t *id, const char *from_step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", action);
	JsonPutUuid(&b, key, id);
	if (from_step != NULL)
		JsonPutText(&b, "fromStep", from_step);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the mark of audit entries that stand for what happened in the old plan. */
static Jsonb *
ForkedDetail(void)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutBool(&b, "forked", true);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Begin the audit chain of a copy as that of every plan begins. */
static void
AuditCreated(Call *call, PlanRow *copy, const pg_uuid_t *old_id, const char *from_step)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "to", PlanStatusName[PLAN_PLANNING]);
	JsonPutText(&b, "name", copy->name);
	JsonObjectEnd(&b);
	AuditAppend(call, copy, NULL, "plan_modified",
				JsonMerge(LinkDetail("created", "forkedFrom", old_id, from_step), JsonFinish(&b)));
}

/*
 * Audit how a copied step got to its status, so that the chain covers its
 * result too. The entries are transitions that a step may make.
 */
static void
AuditAdopted(Call *call, PlanRow *copy, const StepRow *step)
{
	StepStatus	from = STEP_PENDING;

	if (step->status == from)
		return;
	if (!StepTransitionAllowed(from, step->status) || (step->status == STEP_AWAITING_INPUT && TimeIsSet(step->started_at)))
	{
		StepRow		begun = *step;

		begun.status = STEP_IN_PROGRESS;
		StepAudit(call, copy, &begun, from, ForkedDetail());
		from = begun.status;
	}
	StepAudit(call, copy, step, from, ForkedDetail());
}

/* Audit what the branches of kept steps did. A fork of the fork reads these entries. */
static void
AuditBranches(Call *call, PlanRow *copy, const PlanRow *plan, const Copies *copies)
{
	static KeptQuery read = {
		"SELECT m.new_id, a.detail FROM stepwise.audit AS a"
		" JOIN ROWS FROM (pg_catalog.unnest($3), pg_catalog.unnest($4), pg_catalog.unnest($5)) AS m (old_id, new_id, kept)"
		" ON m.old_id = a.step_id WHERE a.tenant = $1 AND a.plan_id = $2 AND a.event = 'plan_modified'"
		" AND a.detail ?| '{addedSteps,skippedSteps}' AND m.kept ORDER BY a.id",
		5, {TEXTOID, UUIDOID, UUIDARRAYOID, UUIDARRAYOID, BOOLARRAYOID}, .reads_log = true
	};
	Params		params = {0};
	Rows		rows;

	ParamKey(&params, call, &plan->id);
	ParamDatum(&params, UuidArray(copies->old_ids, copies->count));
	ParamDatum(&params, UuidArray(copies->new_ids, copies->count));
	ParamDatum(&params, KeptArray(copies));
	rows = QueryRun(&read, &params);
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t	step_id = RowUuid(&rows, i, 1);

		AuditAppend(call, copy, &step_id, "plan_modified", JsonMerge(RowJson(&rows, i, 2), ForkedDetail()));
	}
	RowsFree(&rows);
}

/* Audit how a nested plan got to its status: from planning to executing to its end. */
static void
AuditEnded(Call *call, PlanRow *copy)
{
	PlanAudit(call, copy, PLAN_PLANNING, PLAN_EXECUTING, ForkedDetail());
	PlanAudit(call, copy, PLAN_EXECUTING, copy->status, ForkedDetail());
}

/* ---------- forking ---------- */

static void CopyNested(Call *call, PlanRow *root, PlanRow *parent, Datum old_parent_step, Datum new_parent_step);

/*
 * Count and audit a step that keeps its result, and have its dependents look
 * at it. Its branches were taken in the old plan; they are not taken again.
 */
static void
AdoptStep(Call *call, PlanRow *copy, StepRow *step)
{
	copy->counts[step->status]++;
	copy->unsuccessful += step->outcome == OUTCOME_FAILURE;
	copy->started_steps = Max(copy->started_steps, step->execution_order);
	AuditAdopted(call, copy, step);
	step->branches = false;
	if (!copy->sequential)
		copy->settled = lappend(copy->settled, step);
}

/* Count the copied steps; those that keep their results get their nested plans. */
static void
AdoptSteps(Call *call, PlanRow *copy, const Copies *copies)
{
	for (int i = 0; i < copies->count; i++)
	{
		StepRow    *step = StepMustRead(call, DatumGetUUIDP(copies->new_ids[i]));

		if (!DatumGetBool(copies->kept[i]))
		{
			copy->counts[STEP_PENDING]++;
			continue;
		}
		AdoptStep(call, copy, step);
		if (StepNests(step))
			CopyNested(call, copy->root, copy, copies->old_ids[i], copies->new_ids[i]);
	}
}

/*
 * Copy the plan nested in a kept step, if there is one, and the plans nested
 * in that. They have ended, so nothing begins again. They are copied because
 * references may lead into them.
 */
static void
CopyNested(Call *call, PlanRow *root, PlanRow *parent, Datum old_parent_step, Datum new_parent_step)
{
	pg_uuid_t	nested_id;
	PlanRow    *nested;
	PlanRow    *copy;
	Copies		copies;
	JsonBuilder b = {0};

	if (!NestedPlanId(call, DatumGetUUIDP(old_parent_step), &nested_id))
		return;
	nested = PlanMustRead(call, &nested_id);
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "parent_step_id", DatumGetUUIDP(new_parent_step));
	JsonPutInt(&b, "depth", parent->depth + 1);
	JsonPutJson(&b, "parent_names", (Jsonb *) ParentNamesBelow(parent, StepMustRead(call, DatumGetUUIDP(new_parent_step))));
	JsonObjectEnd(&b);
	copy = CopyPlan(call, nested, root, JsonFinish(&b));
	AuditCreated(call, copy, &nested_id, NULL);
	copies = PlanCopies(call, nested, NULL);
	CopySteps(call, copy, &copies);
	CopyLinks(call, copy, &copies);
	for (int i = 0; i < copies.count; i++)
	{
		StepRow    *step = StepMustRead(call, DatumGetUUIDP(copies.new_ids[i]));

		AuditAdopted(call, copy, step);
		if (StepNests(step))
			CopyNested(call, root, copy, copies.old_ids[i], copies.new_ids[i]);
	}
	AuditBranches(call, copy, nested, &copies);
	AuditEnded(call, copy);
	root->nests = true;
	PlanTouch(root);
}

/* Ask again for a review that a branch of a kept step asked for. */
static void
ReviewAgain(Call *call, PlanRow *copy, const pg_uuid_t *old_id, const pg_uuid_t *new_id)
{
	static KeptQuery read = {
		"SELECT a.detail ->> 'summary', a.detail -> 'questions' FROM stepwise.step AS s JOIN stepwise.audit AS a"
		" ON a.tenant = $1 AND a.plan_id = s.plan_id AND a.step_id = s.id"
		" WHERE s.tenant = $1 AND s.id = $2 AND a.event = 'user_reviewed' AND a.detail ->> 'action' = 'review_requested'"
		" ORDER BY a.id DESC LIMIT 1",
		2, {TEXTOID, UUIDOID}, .reads_log = true
	};
	Rows		rows = QueryById(call, &read, old_id);

	if (rows.count > 0)
		StepRequestReview(call, copy, StepMustRead(call, new_id), RowText(&rows, 0, 1), RowJson(&rows, 0, 2), NULL, NULL);
	RowsFree(&rows);
}

/* Mark steps that wait for nothing as ready. A sequential plan does not use the mark. */
static void
MarkReady(Call *call, const PlanRow *copy)
{
	static KeptQuery mark = {
		"UPDATE stepwise.step SET ready = true WHERE tenant = $1 AND plan_id = $2 AND status = 'pending' AND blockers = 0",
		2, {TEXTOID, UUIDOID}
	};

	if (copy->sequential)
		return;
	QueryById(call, &mark, &copy->id);
}

static Jsonb *
ForkAnswer(const PlanRow *plan, const PlanRow *copy, const Copies *copies, const char *from_step)
{
	JsonBuilder b = {0};
	int			kept = 0;

	for (int i = 0; i < copies->count; i++)
		kept += DatumGetBool(copies->kept[i]);
	JsonObjectStart(&b, NULL);
	PutPlanAnswer(&b, copy);
	JsonPutUuid(&b, "forkedFrom", &plan->id);
	JsonPutText(&b, "fromStep", from_step);
	JsonPutInt(&b, "keptSteps", kept);
	JsonPutInt(&b, "pendingSteps", copy->counts[STEP_PENDING]);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Create the fork, settle it, and audit it in both plans. */
static Jsonb *
Fork(Call *call, PlanRow *plan, const char *from_step)
{
	StepRow    *from = from_step ? StepReadByName(call, &plan->id, from_step) : NULL;
	PlanRow    *copy;
	Copies		copies;

	if (from == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_STEP_NOT_FOUND),
				 errmsg("plan \"%s\" has no step \"%s\"", plan->name, ShortText(from_step)),
				 errhint("%s", PlanHint(call, plan, "stepwise.get_plan_context(plan_id) lists the steps of the plan."))));
	copies = PlanCopies(call, plan, from);
	copy = CopyPlan(call, plan, NULL, JsonParse(FreshPlan));
	AuditCreated(call, copy, &plan->id, from_step);
	CopySteps(call, copy, &copies);
	CopyLinks(call, copy, &copies);
	if (!copy->sequential && copies.count < StepTotal(plan->counts))
		LowerWaves(call, copy);
	MarkReady(call, copy);
	AdoptSteps(call, copy, &copies);
	AuditBranches(call, copy, plan, &copies);
	for (int i = 0; i < copies.count; i++)
		if (copies.review[i])
			ReviewAgain(call, copy, DatumGetUUIDP(copies.old_ids[i]), DatumGetUUIDP(copies.new_ids[i]));
	copy->moved = true;
	PlanSettle(call, copy);
	AuditAppend(call, plan, &from->id, "plan_modified", LinkDetail("forked", "forkedTo", &copy->id, from_step));
	return ForkAnswer(plan, copy, &copies, from_step);
}

/* Create a plan that keeps the results before a step, to try another way from there. */
PG_FUNCTION_INFO_V1(stepwise_fork_plan);
Datum
stepwise_fork_plan(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBegin(&call);
	return CallEnd(&call, Fork(&call, PlanLock(&call, ArgumentUuid(fcinfo, 0)), ArgumentText(fcinfo, 1)));
}
