/*
 * verify.c
 *	  verify the audit chains, and show their heads
 *
 * A valid chain proves that no entry was changed, removed or inserted; for the
 * end of the chain of a tenant, see TenantVerify. In addition, the digests in
 * the entries are compared with the results, artifacts and outputs that are
 * stored now. The head of a chain is the hash of its newest entry.
 *
 * Locks: none; one snapshot serves the whole answer.
 *
 * Memory: rows are read in batches, and each one is verified in scratch memory,
 * so that a long chain does not fill the memory.
 */
#include "api/api.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#define V_ENTRIES	5			/* column of the queries that read a chain, after those of RowLogHead */

/* an entry whose hash fits */
typedef struct Verified
{
	int64		id;
	EntryHead	head;
	Jsonb	   *detail;
} Verified;

typedef struct Verification
{
	int64		entries;		/* verified so far */
	uint8		head[32];		/* the hash of the last one */
	/* the first fault */
	int64		bad_id;			/* the id of the entry */
	const char *bad_event;		/* or NULL */
	const char *reason;			/* NULL if there is no fault */
	/* what the newest entries about outputs record */
	const char *output_digest;	/* of the stored output, or NULL */
	int64		output_entry;	/* the entry that records it */
	const char *outputs_digest; /* of the outputs of the plan, or NULL */
	int64		outputs_entry;	/* the entry that records it */
} Verification;

/* Note a fault. Only the first one counts. */
static void
VerifyFails(Verification *v, int64 id, const char *event, const char *reason)
{
	if (v->reason != NULL)
		return;
	v->bad_id = id;
	v->bad_event = event;
	v->reason = reason;
}

/* Compare the result of a completed step with the digest in its entry. */
static void
VerifyResult(Verification *v, Call *call, const Verified *entry)
{
	char	   *stored = JsonGetText(entry->detail, "resultDigest");
	StepRow    *step;
	char	   *now;

	if (strcmp(entry->head.event, "step_completed") != 0)
		return;
	step = entry->head.has_step ? StepRead(call, &entry->head.step_id) : NULL;
	if (step == NULL)
	{
		VerifyFails(v, entry->id, entry->head.event, "the step of this entry is gone");
		return;
	}
	now = DigestText(step->result);
	if ((stored == NULL) != (now == NULL) || (stored && strcmp(stored, now) != 0))
		VerifyFails(v, entry->id, entry->head.event, "the stored result of the step is not the one that was recorded");
}

/* Are two digests equal, or both missing? */
static bool
SameDigest(const char *recorded, const char *now)
{
	return recorded == NULL ? now == NULL : now != NULL && strcmp(recorded, now) == 0;
}

/*
 * Compare a stored artifact with the digests in its entry. Artifacts may be
 * large, so they are read one at a time.
 */
static void
VerifyArtifact(Verification *v, const Call *call, const pg_uuid_t *plan_id, const Verified *entry)
{
	static KeptQuery find = {
		"SELECT a.content, a.data, a.source_url, a.name, a.media_type FROM stepwise.artifact AS a"
		" WHERE a.tenant = $1 AND a.id = $2 AND a.plan_id = $3",
		3, {TEXTOID, UUIDOID, UUIDOID}
	};
	const Jsonb *detail = entry->detail;
	char	   *id = JsonGetText(detail, "artifactId");
	pg_uuid_t	artifact_id;
	Params		params = {0};
	Rows		rows;

	if (JsonGetText(detail, "contentDigest") == NULL || id == NULL || !UuidParse(id, &artifact_id))
		return;
	ParamKey(&params, call, &artifact_id);
	ParamUuid(&params, plan_id);
	rows = QueryRun(&find, &params);
	if (rows.count == 0)
		VerifyFails(v, entry->id, entry->head.event, "the artifact of this entry is gone");
	else if (!SameDigest(JsonGetText(detail, "contentDigest"), DigestOfText(RowText(&rows, 0, 1))) ||
			 !SameDigest(JsonGetText(detail, "dataDigest"), DigestText(RowVarlena(&rows, 0, 2))) ||
			 !SameDigest(JsonGetText(detail, "sourceUrlDigest"), DigestOfText(RowText(&rows, 0, 3))) ||
			 !SameDigest(JsonGetText(detail, "name"), RowText(&rows, 0, 4)) ||
			 !SameDigest(JsonGetText(detail, "mediaType"), RowText(&rows, 0, 5)))
		VerifyFails(v, entry->id, entry->head.event, "the stored artifact is not the one that was recorded");
	RowsFree(&rows);
}

/*
 * Compare a stored artifact with its entry, and note the digests of outputs.
 * The newest entry about outputs counts.
 */
static void
VerifyStored(Verification *v, const Call *call, const pg_uuid_t *plan_id, const Verified *entry)
{
	const Jsonb *detail = entry->detail;
	char	   *action = JsonGetText(detail, "action");

	if (strcmp(entry->head.event, "plan_modified") == 0 && action != NULL)
	{
		if (strcmp(action, "artifact_stored") == 0)
			VerifyArtifact(v, call, plan_id, entry);
		if (strcmp(action, "output_stored") == 0)
		{
			v->output_digest = JsonGetText(detail, "contentDigest");
			v->output_entry = entry->id;
		}
	}
	if (strcmp(entry->head.event, "plan_status_changed") == 0 && JsonGetText(detail, "outputsDigest") != NULL)
	{
		v->outputs_digest = JsonGetText(detail, "outputsDigest");
		v->outputs_entry = entry->id;
	}
}

/* Verify the hash of an entry. "row" is NULL unless it is the first of its row. */
static bool
HashFits(Verification *v, const LogHead *row, const StoredEntry *stored)
{
	StringInfoData link;

	initStringInfo(&link);
	LinkBegin(&link, v->head, row);
	appendBinaryStringInfo(&link, stored->body, stored->size);
	Sha256(link.data, link.len, v->head);
	pfree(link.data);
	return memcmp(v->head, stored->hash, sizeof(v->head)) == 0;
}

/* Verify the id and the hash of one entry, and what it records about stored values. */
static void
VerifyEntry(Verification *v, Call *call, const LogHead *row, int64 id, const StoredEntry *stored)
{
	Verified	entry = {.id = id};

	v->entries++;
	if (v->reason != NULL)
		return;
	if (id != v->entries)
		VerifyFails(v, id, EntryEvent(stored), id > v->entries ? "an entry before this one is missing" : "this entry was inserted");
	else if (!HashFits(v, id == row->id ? row : NULL, stored))
		VerifyFails(v, id, EntryEvent(stored), "the hash does not fit the entry and the one before it");
	if (v->reason != NULL)
		return;
	entry.head = EntryReadHead(stored, row->at);
	entry.detail = EntryReadDetail(stored);
	VerifyResult(v, call, &entry);
	VerifyStored(v, call, row->plan_id, &entry);
}

/* Verify the entries of a row. */
static void
VerifyRow(Verification *v, Call *call, const pg_uuid_t *plan_id, const Rows *rows, uint64 row)
{
	LogHead		head = RowLogHead(rows, row, call->tenant, plan_id);
	int64		id = head.id;
	const char *end;
	const char *next = RowEntries(rows, row, V_ENTRIES, &end);
	StoredEntry stored;

	for (; EntryNext(&next, end, &stored); id++)
		VerifyEntry(v, call, &head, id, &stored);
	if (next != end || id == head.id)
		VerifyFails(v, id, NULL, "this entry cannot be read");
}

/*
 * Copy a text out of the scratch memory of a row. If it is the text from
 * before, it was copied already.
 */
static void
KeepText(const char **text, const char *before)
{
	if (*text != NULL && *text != before)
		*text = pstrdup(*text);
}

/* Verify one row in scratch memory, and reset that memory. */
static void
VerifyRowIn(MemoryContext scratch, Verification *v, Call *call, const pg_uuid_t *plan_id, const Rows *rows, uint64 row)
{
	Verification before = *v;
	MemoryContext outer = MemoryContextSwitchTo(scratch);

	VerifyRow(v, call, plan_id, rows, row);
	MemoryContextSwitchTo(outer);
	KeepText(&v->bad_event, before.bad_event);
	KeepText(&v->output_digest, before.output_digest);
	KeepText(&v->outputs_digest, before.outputs_digest);
	MemoryContextReset(scratch);
	CHECK_FOR_INTERRUPTS();
}

/* Verify the first entries of the chain of a plan, or of the tenant if plan_id is NULL. */
static Verification
ChainVerify(Call *call, const pg_uuid_t *plan_id, int64 entries)
{
	static KeptQuery batch = {
		"SELECT l.id, l.at, l.actor, l.session_id, l.entries FROM stepwise.audit_log AS l"
		" WHERE l.tenant = $1 AND l.plan_id = $2 AND l.id > $3 AND l.id <= $4 ORDER BY l.plan_id, l.id LIMIT 100",
		4, {TEXTOID, UUIDOID, INT8OID, INT8OID}
	};
	static KeptQuery planless = {
		"SELECT l.id, l.at, l.actor, l.session_id, l.entries FROM stepwise.audit_log AS l"
		" WHERE l.tenant = $1 AND l.plan_id IS NULL AND l.id > $3 AND l.id <= $4 ORDER BY l.tenant, l.id LIMIT 100",
		4, {TEXTOID, UUIDOID, INT8OID, INT8OID}
	};
	Verification v = {0};
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise verify", ALLOCSET_DEFAULT_SIZES);
	int64		after = PG_INT64_MIN;
	Rows		rows;

	do
	{
		Params		params = {0};

		ParamKey(&params, call, plan_id);
		ParamDatum(&params, Int64GetDatum(after));
		ParamDatum(&params, Int64GetDatum(entries));
		rows = QueryRun(plan_id ? &batch : &planless, &params);
		for (uint64 i = 0; i < rows.count; i++)
			VerifyRowIn(scratch, &v, call, plan_id, &rows, i);
		if (rows.count > 0)
			after = RowLogHead(&rows, rows.count - 1, call->tenant, plan_id).id;
		RowsFree(&rows);
	} while (rows.count > 0 && v.reason == NULL);
	MemoryContextDelete(scratch);
	return v;
}

/* Check that there are no entries after the newest one that the plan records. */
static void
VerifyNothingAfter(Call *call, const PlanRow *plan, Verification *v)
{
	static KeptQuery after = {
		"SELECT l.id, l.entries FROM stepwise.plan AS p JOIN stepwise.audit_log AS l"
		" ON l.tenant = $1 AND l.plan_id = $2 AND l.id > p.audit_entries"
		" WHERE p.tenant = $1 AND p.id = $2 ORDER BY l.plan_id, l.id LIMIT 1",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows = QueryById(call, &after, &plan->id);

	if (rows.count > 0)
	{
		StoredEntry entry;
		const char *end;
		const char *next = RowEntries(&rows, 0, 2, &end);
		bool		isnull;

		VerifyFails(v, DatumGetInt64(RowDatum(&rows, 0, 1, &isnull)), EntryNext(&next, end, &entry) ? EntryEvent(&entry) : NULL,
					"this entry was inserted");
	}
	RowsFree(&rows);
}

/* Compare the outputs of the plan with the digests in the newest entries about them. */
static void
VerifyOutputs(Call *call, const PlanRow *plan, Verification *v)
{
	static KeptQuery find = {
		"SELECT d.final_output FROM stepwise.plan_detail AS d WHERE d.tenant = $1 AND d.plan_id = $2",
		2, {TEXTOID, UUIDOID}
	};
	Rows		rows;

	if (v->outputs_digest != NULL && !SameDigest(v->outputs_digest, DigestText(plan->outputs)))
		VerifyFails(v, v->outputs_entry, "plan_status_changed", "the stored outputs of the plan are not those that were recorded");
	if (v->output_digest == NULL)
		return;
	rows = QueryById(call, &find, &plan->id);
	if (rows.count == 0 || !SameDigest(v->output_digest, DigestOfText(RowText(&rows, 0, 1))))
		VerifyFails(v, v->output_entry, "plan_modified", "the stored output is not the one that was recorded");
	RowsFree(&rows);
}

/* Verify the chain of one plan, up to the newest entry that the plan records. */
static Verification
PlanVerify(Call *call, const PlanRow *plan)
{
	Verification v = ChainVerify(call, &plan->id, plan->audit_entries);

	if (v.entries < plan->audit_entries)
		VerifyFails(&v, v.entries + 1, NULL, "this entry, and what followed it, is missing");
	else if (memcmp(v.head, plan->audit_head, 32) != 0)
		VerifyFails(&v, v.entries, NULL, "the newest entry is not the one that the plan recorded");
	VerifyNothingAfter(call, plan, &v);
	VerifyOutputs(call, plan, &v);
	return v;
}

static void
VerificationToJson(JsonBuilder *b, const pg_uuid_t *plan_id, const Verification *v)
{
	JsonPutUuid(b, "planId", plan_id);
	JsonPutBool(b, "valid", v->reason == NULL);
	JsonPutInt(b, "entries", v->entries);
	JsonPutText(b, "head", DigestHex(v->head));
	if (v->reason != NULL)
	{
		JsonObjectStart(b, "firstInvalid");
		JsonPutInt(b, "id", v->bad_id);
		JsonPutText(b, "event", v->bad_event);
		JsonPutText(b, "reason", v->reason);
		JsonObjectEnd(b);
	}
}

/* Verify a plan and the plans nested in it. The answer says whether all are valid. */
static Jsonb *
TreeVerify(Call *call, const PlanRow *plan)
{
	static KeptQuery below = {
		"WITH RECURSIVE tree AS ("
		" SELECT p.id FROM stepwise.plan AS p WHERE p.tenant = $1 AND p.id = $2"
		" UNION ALL"
		" SELECT c.id FROM tree AS t JOIN stepwise.step AS s ON s.tenant = $1 AND s.plan_id = t.id"
		" JOIN stepwise.plan AS c ON c.tenant = $1 AND c.parent_step_id = s.id WHERE s.workflow IS NOT NULL)"
		" SELECT tree.id FROM tree WHERE tree.id <> $2 ORDER BY tree.id",
		2, {TEXTOID, UUIDOID}
	};
	Verification v = PlanVerify(call, plan);
	bool		valid = v.reason == NULL;
	int			shown[2] = {0};	/* of invalid and of valid plans */
	JsonBuilder b = {0};
	Rows		rows;

	JsonObjectStart(&b, NULL);
	VerificationToJson(&b, &plan->id, &v);
	rows = QueryById(call, &below, &plan->id);
	JsonArrayStart(&b, "nested");
	for (uint64 i = 0; i < rows.count; i++)
	{
		pg_uuid_t	id = RowUuid(&rows, i, 1);

		v = PlanVerify(call, PlanMustRead(call, &id));
		valid = valid && v.reason == NULL;
		if (shown[v.reason == NULL]++ >= LIST_MAX)
			continue;
		JsonObjectStart(&b, NULL);
		VerificationToJson(&b, &id, &v);
		JsonObjectEnd(&b);
	}
	JsonArrayEnd(&b);
	JsonPutInt(&b, "nestedCount", rows.count);
	/* this replaces the value above, because the last of equal keys counts: all plans must be valid */
	JsonPutBool(&b, "valid", valid);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/*
 * Verify the chain of the tenant. No row records its length, so the id of its
 * newest entry is taken. Entries that were removed at its end are not noticed.
 */
static Jsonb *
TenantVerify(Call *call)
{
	Verification v = ChainVerify(call, NULL, ChainEndRead(call, false).id);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "tenant", call->tenant);
	VerificationToJson(&b, NULL, &v);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Verify the chain of a plan, of a plan with its nested plans, or of the tenant. */
PG_FUNCTION_INFO_V1(stepwise_verify_audit);
Datum
stepwise_verify_audit(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanRow    *plan;
	Verification v;
	JsonBuilder b = {0};

	CallBeginReading(&call);
	if (PG_ARGISNULL(0))
		return CallEnd(&call, TenantVerify(&call));
	plan = PlanMustRead(&call, ArgumentUuid(fcinfo, 0));
	if (!PG_ARGISNULL(1) && PG_GETARG_BOOL(1))
		return CallEnd(&call, TreeVerify(&call, plan));
	v = PlanVerify(&call, plan);
	JsonObjectStart(&b, NULL);
	VerificationToJson(&b, &plan->id, &v);
	JsonObjectEnd(&b);
	return CallEnd(&call, JsonFinish(&b));
}

/* Show the head of the chain of the tenant. */
static Jsonb *
TenantHead(Call *call)
{
	ChainEnd	end = ChainEndRead(call, false);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "tenant", call->tenant);
	JsonPutNull(&b, "planId");
	JsonPutInt(&b, "entries", end.id);
	JsonPutText(&b, "head", DigestHex(end.hash));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Show the head of the chain of a plan or of the tenant, so that it can be kept elsewhere. */
PG_FUNCTION_INFO_V1(stepwise_audit_head);
Datum
stepwise_audit_head(PG_FUNCTION_ARGS)
{
	Call		call;
	PlanRow    *plan;
	JsonBuilder b = {0};

	CallBeginReading(&call);
	if (PG_ARGISNULL(0))
		return CallEnd(&call, TenantHead(&call));
	plan = PlanMustRead(&call, ArgumentUuid(fcinfo, 0));
	JsonObjectStart(&b, NULL);
	JsonPutUuid(&b, "planId", &plan->id);
	JsonPutInt(&b, "entries", plan->audit_entries);
	JsonPutText(&b, "head", DigestHex(plan->audit_head));
	JsonObjectEnd(&b);
	return CallEnd(&call, JsonFinish(&b));
}
