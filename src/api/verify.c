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

#define ROWS_AT_ONCE	100

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
VerifyArtifact(Verification *v, Call *call, const pg_uuid_t *plan_id, const Verified *entry)
{
	const Jsonb *detail = entry->detail;
	char	   *id = JsonGetText(detail, "artifactId");
	pg_uuid_t	artifact_id;
	const WholeArtifact *a;

	if (JsonGetText(detail, "contentDigest") == NULL || id == NULL || !UuidParse(id, &artifact_id))
		return;
	a = ArtifactById(call, &artifact_id);
	if (a == NULL || !UuidEqual(&a->plan_id, plan_id))
		VerifyFails(v, entry->id, entry->head.event, "the artifact of this entry is gone");
	else if (!SameDigest(JsonGetText(detail, "contentDigest"), DigestOfText(TextOf(a->content))) ||
			 !SameDigest(JsonGetText(detail, "dataDigest"), DigestText(a->data)) ||
			 !SameDigest(JsonGetText(detail, "sourceUrlDigest"), DigestOfText(TextOf(a->source_url))) ||
			 !SameDigest(JsonGetText(detail, "name"), TextOf(a->name)) ||
			 !SameDigest(JsonGetText(detail, "mediaType"), TextOf(a->media_type)))
		VerifyFails(v, entry->id, entry->head.event, "the stored artifact is not the one that was recorded");
}

/*
 * Compare a stored artifact with its entry, and note the digests of outputs.
 * The newest entry about outputs counts.
 */
static void
VerifyStored(Verification *v, Call *call, const pg_uuid_t *plan_id, const Verified *entry)
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
VerifyRow(Verification *v, Call *call, const StoredRow *row)
{
	int64		id = row->head.id;
	const char *next = row->end;
	StoredEntry stored;

	for (; EntryNext(row->entries, &next, &stored); id++)
		VerifyEntry(v, call, &row->head, id, &stored);
	if (next != row->entries || id == row->head.id)
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
VerifyRowIn(MemoryContext scratch, Verification *v, Call *call, const StoredRow *row)
{
	Verification before = *v;
	MemoryContext outer = MemoryContextSwitchTo(scratch);

	VerifyRow(v, call, row);
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
	Verification v = {0};
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise verify", ALLOCSET_DEFAULT_SIZES);
	MemoryContext batch = AllocSetContextCreate(CurrentMemoryContext, "stepwise log", ALLOCSET_DEFAULT_SIZES);
	int64		after = PG_INT64_MIN;
	bool		more = true;

	while (more && v.reason == NULL)
	{
		MemoryContext outer = MemoryContextSwitchTo(batch);
		List	   *rows = LogRows(call, plan_id, after, ROWS_AT_ONCE);
		ListCell   *cell;

		MemoryContextSwitchTo(outer);
		more = list_length(rows) == ROWS_AT_ONCE;
		foreach(cell, rows)
		{
			after = ((StoredRow *) lfirst(cell))->head.id;
			more = more && after <= entries;
			if (after <= entries)
				VerifyRowIn(scratch, &v, call, lfirst(cell));
		}
		MemoryContextReset(batch);
	}
	MemoryContextDelete(batch);
	MemoryContextDelete(scratch);
	return v;
}

/* Check that there are no entries after the newest one that the plan records. */
static void
VerifyNothingAfter(Call *call, const PlanRow *plan, Verification *v)
{
	List	   *rows = LogRows(call, &plan->id, plan->audit_entries, 1);

	if (rows != NIL)
	{
		const StoredRow *row = linitial(rows);
		StoredEntry entry;
		const char *next = row->end;

		VerifyFails(v, row->head.id, EntryNext(row->entries, &next, &entry) ? EntryEvent(&entry) : NULL, "this entry was inserted");
	}
}

/* Compare the outputs of the plan with the digests in the newest entries about them. */
static void
VerifyOutputs(Call *call, const PlanRow *plan, Verification *v)
{
	struct varlena *output;

	if (v->outputs_digest != NULL && !SameDigest(v->outputs_digest, DigestText(plan->outputs)))
		VerifyFails(v, v->outputs_entry, "plan_status_changed", "the stored outputs of the plan are not those that were recorded");
	if (v->output_digest == NULL)
		return;
	output = PlanDetailRead(call, &plan->id)->final_output;
	if (!SameDigest(v->output_digest, DigestOfText(TextOf(output))))
		VerifyFails(v, v->output_entry, "plan_modified", "the stored output is not the one that was recorded");
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
