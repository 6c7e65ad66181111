/*
 * chain.c
 *	  the audit chain of a tenant: entries that belong to no plan
 *
 * Workflows, tools, resources, members, state and purges leave their entries
 * here. A chain grows one entry at a time, so its end is a lock that all of
 * the tenant share. To take it when something changes, and to keep it until
 * the transaction ends, would make every two runs that write state wait for
 * each other, and deadlock where they also meet at a tree or a name. So a
 * change only notes its entry; the notes are appended as the last act of the
 * transaction, before it commits. Then a transaction waits for no lock but
 * those of chains, and takes those in the order of the tenants' names.
 *
 * The price: transactions of one tenant that leave such entries commit one
 * after the other; the order of a chain is that of the commits, while each
 * entry has the time of its change; and the entries of a transaction can be
 * seen only after its end.
 *
 * Memory: notes are in TopTransactionContext. Those of a subtransaction that
 * is rolled back are forgotten.
 */
#include "engine/engine.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/trigger.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/portal.h"

/* an entry that waits for the end of the transaction */
typedef struct Note
{
	Oid			table;			/* stepwise.audit, as it was then */
	SubTransactionId subtransaction;
	int			number;			/* in the transaction */
	char	   *tenant;
	PlanlessEntry entry;
} Note;

static List *notes = NIL;		/* of Note */
static int	noted = 0;

/* ---------- noting ---------- */

static char *
CopyOrNull(const char *text)
{
	return text ? pstrdup(text) : NULL;
}

/* Note an entry that belongs to no plan; it is appended when the transaction commits. */
void
AuditAppendPlanless(Call *call, const char *event, Jsonb *detail)
{
	MemoryContext outer;
	Note	   *note;
	char	   *actor = ActorText(call);

	MarkEngineUsed();
	outer = MemoryContextSwitchTo(TopTransactionContext);
	note = palloc0(sizeof(Note));
	note->table = TableOid("audit");
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

static int
NoteCompare(const ListCell *a, const ListCell *b)
{
	const Note *x = lfirst(a);
	const Note *y = lfirst(b);
	int			result = strcmp(x->tenant, y->tenant);

	return result != 0 ? result : x->number - y->number;
}

/* Append the notes of one tenant, which follow each other in the list; where those of the next begin. */
static int
AppendOfTenant(List *sorted, int from)
{
	const char *tenant = ((Note *) list_nth(sorted, from))->tenant;
	int			i;
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
		AuditWritePlanless(&call, &note->entry, &end);
	}
	CallEnd(&call, NULL);
	return i;
}

/* Has the extension been dropped since, in this very transaction? Then there is nothing to append to, or another log. */
static bool
IsStillThere(const Note *note)
{
	return get_relname_relid("audit", get_namespace_oid("stepwise", true)) == note->table;
}

/* Take the notes, sorted by tenant, and begin a new list. */
static List *
TakeNotes(void)
{
	List	   *taken = NIL;
	ListCell   *cell;

	foreach(cell, notes)
		if (IsStillThere(lfirst(cell)))
			taken = lappend(taken, lfirst(cell));
	notes = NIL;
	list_sort(taken, NoteCompare);
	return taken;
}

/*
 * Do what the server has done before it called us, once more for a trigger
 * that somebody has added to the log: it may be deferred, and a cursor that it
 * has left open would outlive the transaction, and crash the next.
 */
static void
EndTriggers(bool prepare)
{
	do
		AfterTriggerFireDeferred();
	while (PreCommit_Portals(prepare));
}

/* Append what was noted. A trigger that somebody has added to the log may note more. */
static void
AppendNotes(bool prepare)
{
	/* a transaction may have become read-only after it wrote */
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

static void
ChainAtSubtransactionEnd(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	int			count = list_length(notes);

	if (event != SUBXACT_EVENT_ABORT_SUB && event != SUBXACT_EVENT_COMMIT_SUB)
		return;
	/* its notes are the last ones: those before are of the transactions around it */
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
	if (count == 0)
		list_free(notes);
	notes = list_truncate(notes, count);
}

/* Register the callbacks. */
void
ChainInit(void)
{
	RegisterXactCallback(ChainAtTransactionEnd, NULL);
	RegisterSubXactCallback(ChainAtSubtransactionEnd, NULL);
}
