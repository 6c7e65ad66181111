/*
 * audit.c
 *	  append audit entries to the chains of plans and tenants
 *
 * Each plan has a chain. The row of the plan has the number and the hash of the
 * newest entry, and is locked when an entry is appended. Entries without a plan
 * form one chain per tenant; chain.c says when they are written. entry.c has
 * the form of an entry and its hash, log.c collects the entries of a call.
 *
 * An entry of a plan has the time of its call (CallNow), which never decreases.
 *
 * Memory: an entry is built in call->scratch, which is reset after each entry.
 */
#include "engine/engine.h"

#include "utils/memutils.h"

/* Get the row of the log that takes the next entry of a plan. */
static void
PlanLog(Call *call, PlanRow *plan)
{
	bool		same = plan->log != NULL && plan->log->given == call->actor;
	LogHead		head = {
		.plan_id = &plan->id,
		.id = plan->audit_entries + 1,
		.at = CallNow(call, plan),
		.actor = same ? plan->log->head.actor : ActorText(call),
		.session = call->session ? call->session : plan->session_id
	};

	plan->log = LogFor(call, plan->log, &head, plan->audit_head);
	plan->log->given = call->actor;
}

/* Append an entry to the chain of a plan. */
static void
PlanAppend(Call *call, PlanRow *plan, EntryFacts *facts)
{
	MemoryContext outer = MemoryContextSwitchTo(call->scratch);

	MarkEngineUsed();
	PlanTouch(plan);
	PlanLog(call, plan);
	facts->later = CallNow(call, plan) - plan->log->head.at;
	LogAdd(plan->log, facts, plan->audit_head);
	plan->audit_entries++;
	MemoryContextSwitchTo(outer);
	MemoryContextReset(call->scratch);
}

/* Append an entry to the chain of a plan, which the caller has locked. */
void
AuditAppend(Call *call, PlanRow *plan, const pg_uuid_t *step_id, const char *event, const Jsonb *detail)
{
	EntryFacts	facts = {.event = event, .step_id = step_id, .members = detail};

	PlanAppend(call, plan, &facts);
}

/*
 * Append the move of a step, or of the plan if step_id is NULL. "detail" has
 * more members for its detail, or is NULL.
 */
void
AuditMove(Call *call, PlanRow *plan, const pg_uuid_t *step_id, const char *event, const EntryMove *move, const Jsonb *detail)
{
	EntryFacts	facts = {.event = event, .step_id = step_id, .move = move, .members = detail};

	PlanAppend(call, plan, &facts);
}

/*
 * Read the newest entry of the chain of the tenant. With "latest", see what is
 * committed by now, also under REPEATABLE READ and SERIALIZABLE.
 */
ChainEnd
ChainEndRead(Call *call, bool latest)
{
	ChainEnd	end = {0};
	StoredRow  *row;

	if (latest)
		LatestBegin(call);
	row = LogNewest(call);
	if (latest)
		LatestEnd(call);
	if (row != NULL)
	{
		const char *next = row->end;
		StoredEntry entry;
		int			count = 0;

		for (; EntryNext(row->entries, &next, &entry); count++)
			memcpy(end.hash, entry.hash, sizeof(end.hash));
		/* a row that cannot be read has its number all the same */
		end.id = row->head.id + Max(count, 1) - 1;
	}
	return end;
}

/*
 * Add an entry to the chain of the tenant, which the caller has locked. *end
 * becomes the new entry. *row is the row of the entry before it, or NULL, and
 * becomes that of the entry; the caller writes it at the end.
 */
void
AuditAddPlanless(Call *call, LogRow **row, const PlanlessEntry *planless, ChainEnd *end)
{
	MemoryContext outer = MemoryContextSwitchTo(call->scratch);
	LogHead		head = {.id = end->id + 1, .at = planless->at, .actor = planless->actor, .session = planless->session};
	EntryFacts	facts = {.event = planless->event, .members = planless->detail};

	*row = LogFor(call, *row, &head, end->hash);
	facts.later = planless->at - (*row)->head.at;
	LogAdd(*row, &facts, end->hash);
	end->id++;
	MemoryContextSwitchTo(outer);
	MemoryContextReset(call->scratch);
}
