/*
 * save.c
 *	  write what a call has changed
 *
 * A call writes its plans and audit entries at its end (CallSave), or earlier
 * if a query has to see them. A call that keeps steps in memory (keep.c) writes
 * them likewise. PlanKeep hooks RowsWrite into the call.
 *
 * Another call may write the same rows for somebody who looks. Then they stay
 * as they are in memory, since that write may be rolled back.
 */
#include "engine/engine.h"

#include "access/xact.h"
#include "utils/memutils.h"

/* a call keeps at most so many changed rows in memory, and about so much memory with all that it keeps */
#define KEPT_ROWS	1000
#define KEPT_BYTES	(8 * 1024 * 1024)

/* Write a row that the call has kept. The row itself stays as it is, because the write may be rolled back. */
static void
KeptWrite(Call *call, const KeptStep *kept)
{
	StepRow		shown = *kept->row;

	StepWrite(call, &shown, kept->unblocked);
}

/*
 * Write the steps that a call has kept, and forget them, unless another call
 * writes them.
 *
 * CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY do not wait for the call
 * before they add an index to the table. Then a statement writes the steps after
 * all, and first asks for the audit entries (statement.c), which leads here again.
 */
static void
KeptWriteAll(Call *call, Call *by)
{
	ListCell   *cell;

	if (call->writing)
		return;
	if (KeptChanged(call) != NIL)
		WritesBegin(by);
	foreach(cell, KeptChanged(call))
		KeptWrite(by, lfirst(cell));
	if (KeptChanged(call) != NIL)
		WritesEnd(by);
	if (by == call && call->kept != NULL)
		KeptForget(call);
}

/*
 * Write the audit entries that a call has not written yet. If another call
 * writes them, they are kept, since the write may be rolled back.
 */
static void
LogsWrite(Call *call, Call *by)
{
	ListCell   *cell;

	foreach(cell, call->plans)
	{
		PlanRow    *plan = lfirst(cell);

		if (plan->log == NULL)
			continue;
		LogWrite(by, plan->log);
		if (by != call)
			continue;
		LogFree(plan->log);
		plan->log = NULL;
	}
}

/* Write the steps that a call has kept, and what it has changed else since it last wrote that. */
void
RowsWrite(Call *call, Call *by, int what)
{
	ListCell   *cell;

	KeptWriteAll(call, by);
	if (what & SAVE_LOG)
		LogsWrite(call, by);
	foreach(cell, what & SAVE_PLANS ? call->plans : NIL)
	{
		PlanRow    *plan = lfirst(cell);
		PlanRow		shown = *plan;

		if (plan->touched)
			PlanWrite(by, by == call ? plan : &shown);
	}
}

/*
 * Keep the rows that the call changes in memory, and write them together, if
 * nobody has added something to the tables that must see each change. The
 * first lock of a plan refuses a transaction that is read-only, or a standby.
 */
void
RowsKeep(Call *call)
{
	if (!XactReadOnly && !TableIsAltered(call, "step") && !TableIsAltered(call, "plan") && !LogIsAltered(call))
		KeptBegin(call);
}

/*
 * Keep no more rows in this call if there are very many. A single search may
 * come to thousands of steps.
 */
void
RowsLimit(Call *call)
{
	if (call->kept == NULL || (list_length(KeptChanged(call)) < KEPT_ROWS && MemoryContextMemAllocated(call->context, false) < KEPT_BYTES))
		return;
	RowsWrite(call, call, 0);
	call->kept = NULL;
}

/* Count the rows that are to be written. */
int
RowsKept(const Call *call)
{
	return list_length(KeptChanged(call)) + list_length(call->plans);
}
