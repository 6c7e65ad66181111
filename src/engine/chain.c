/*
 * chain.c
 *	  the audit chain of a tenant: entries that belong to no plan
 *
 * Changes of workflows, tools, resources, members and state, and purges, write
 * their entries here. A chain grows one entry at a time, so appending needs a
 * lock that the whole tenant shares. If a transaction took this lock at its
 * first change, it would keep it until its end. Then any two runs that write
 * state would wait for each other, and would deadlock if they also lock the
 * same tree or name. So a change only adds a note to a list in memory, and the
 * notes are appended just before the transaction commits. From then on the
 * transaction waits only for locks of chains, and it takes these in the order
 * of the tenants' names.
 *
 * This has a price. Transactions of one tenant that write such entries commit
 * one after the other. The order of a chain is the order of the commits, while
 * each entry has the time of its change. The entries of a transaction can be
 * seen only after its end.
 *
 * Memory: notes are in TopTransactionContext. The notes of a subtransaction
 * that is rolled back are freed.
 */
#include "engine/engine.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/trigger.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/portal.h"

/* an entry to be appended at the end of the transaction */
typedef struct Note
{
	Oid			table;			/* stepwise.audit_log at that time */
	SubTransactionId subtransaction;
	int			number;			/* position in the transaction */
	char	   *tenant;
	PlanlessEntry entry;
} Note;

static List *notes = NIL;		/* of Note */
static int	noted = 0;			/* number of notes that this transaction has made */

/* ---------- noting ---------- */

static char *
CopyOrNull(const char *text)
{
	return text ? pstrdup(text) : NULL;
}

/* Note an entry that belongs to no plan. It is appended when the transaction commits. */
void
AuditAppendPlanless(Call *call, const char *event, Jsonb *detail)
{
	MemoryContext outer;
	Note	   *note;
	char	   *actor = ActorText(call);

	MarkEngineUsed();
	outer = MemoryContextSwitchTo(TopTransactionContext);
	note = palloc0(sizeof(Note));
	note->table = TableOid("audit_log");
	note->subtransaction = GetCurrentSubTransactionId();
	note->number = noted++;
	note->tenant = pstrdup(call->tenant);
	note->entry.event = pstrdup(event);
	note->entry.actor = pstrdup(actor);
	note->entry.session = CopyOrNull(call->session);
	note->entry.at = GetCurrentTimestamp();
	note->entry.detail = JsonCopy(detail);
	notes = lappend(notes, note);
	MemoryContextSwitchTo(outer);
}

/* Free a note. */
static void
ForgetNote(Note *note)
{
	pfree(note->tenant);
	pfree(unconstify(char *, note->entry.event));
	pfree(unconstify(char *, note->entry.actor));
	if (note->entry.session != NULL)
		pfree(unconstify(char *, note->entry.session));
	pfree(note->entry.detail);
	pfree(note);
}

/* ---------- appending ---------- */

/* Sort notes by tenant, then by their position in the transaction. */
static int
NoteCompare(const ListCell *a, const ListCell *b)
{
	const Note *x = lfirst(a);
	const Note *y = lfirst(b);
	int			result = strcmp(x->tenant, y->tenant);

	return result != 0 ? result : x->number - y->number;
}

/*
 * Append the notes of one tenant, which are neighbours in the sorted list.
 * Returns the index of the first note of the next tenant.
 */
static int
AppendOfTenant(List *sorted, int from)
{
	const char *tenant = ((Note *) list_nth(sorted, from))->tenant;
	int			i;
	LogRow	   *row = NULL;
	ChainEnd	end;
	Call		call;

	CallBeginIn(&call, tenant);
	CallLock(&call, "audit", "");
	end = ChainEndRead(&call, true);
	for (i = from; i < list_length(sorted); i++)
	{
		const Note *note = list_nth(sorted, i);

		if (strcmp(note->tenant, tenant) != 0)
			break;
		AuditAddPlanless(&call, &row, &note->entry, &end);
	}
	LogWrite(&call, row);
	LogFree(row);
	CallEnd(&call, NULL);
	return i;
}

/*
 * Say whether the audit table of a note still exists. The same transaction may
 * have dropped the extension, and even created it again.
 */
static bool
TableStillExists(const Note *note)
{
	return get_relname_relid("audit_log", get_namespace_oid("stepwise", true)) == note->table;
}

/* Take the notes out of the list, sorted. Notes of a dropped audit table are left out. */
static List *
TakeNotes(void)
{
	List	   *taken = NIL;
	ListCell   *cell;

	foreach(cell, notes)
		if (TableStillExists(lfirst(cell)))
		taken = lappend(taken, lfirst(cell));
	notes = NIL;
	list_sort(taken, NoteCompare);
	return taken;
}

/*
 * Fire deferred triggers and close cursors again. The server has done both
 * before it called us. But a user may have added a trigger to the audit table.
 * Our inserts may queue it as a deferred trigger. A cursor that it leaves open
 * would outlive the transaction and crash the next one.
 */
static void
EndTriggers(bool prepare)
{
	do
		AfterTriggerFireDeferred();
	while (PreCommit_Portals(prepare));
}

/* Append all notes. A trigger that a user has added to the audit table may make more of them. */
static void
AppendNotes(bool prepare)
{
	/* a transaction may have been set read-only after its changes */
	bool		read_only = XactReadOnly;

	XactReadOnly = false;
	while (notes != NIL)
	{
		List	   *taken = TakeNotes();
		int			next = 0;

		while (next < list_length(taken))
			next = AppendOfTenant(taken, next);
		EndTriggers(prepare);
	}
	XactReadOnly = read_only;
}

/* ---------- callbacks ---------- */

/* Append the notes before the transaction commits, and forget them when it has ended. */
static void
ChainAtTransactionEnd(XactEvent event, void *arg)
{
	if ((event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE) && notes != NIL)
		AppendNotes(event == XACT_EVENT_PRE_PREPARE);
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
	{
		notes = NIL;
		noted = 0;
	}
}

/* Free the notes of a subtransaction that is rolled back; give those of a committed one to its parent. */
static void
ChainAtSubtransactionEnd(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			count = list_length(notes);

	if (event != SUBXACT_EVENT_ABORT_SUB && event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	/* its notes are at the end of the list; earlier notes belong to its parents */
	for (; count > 0; count--)
	{
		Note	   *note = list_nth(notes, count - 1);

		if (note->subtransaction != mine)
			break;
		if (event == SUBXACT_EVENT_ABORT_SUB)
			ForgetNote(note);
		else
			note->subtransaction = parent;
	}
	if (event == SUBXACT_EVENT_COMMIT_SUB)
		return;
	/* list_truncate does not free a list that becomes empty */
	if (count == 0)
		list_free(notes);
	notes = list_truncate(notes, count);
}

/* Register the callbacks for the end of transactions and subtransactions. */
void
ChainInit(void)
{
	RegisterXactCallback(ChainAtTransactionEnd, NULL);
	RegisterSubXactCallback(ChainAtSubtransactionEnd, NULL);
}
