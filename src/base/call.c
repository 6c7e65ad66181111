/*
 * call.c
 *	  the frame of a call: its identity, snapshot and memory
 *
 * Our SQL functions are SECURITY INVOKER. CallBegin notes the role that called
 * and finds its tenant; then OwnerEnter switches to the owner. The engine
 * changes its identity nowhere else. An error needs no clean-up here: the end
 * of the (sub)transaction restores role, settings, SPI and memory.
 *
 * Snapshots: each query of a call sees what is committed by then, so that what
 * is read under a lock is current. A function that builds its answer from
 * several queries without a lock reads everything under one snapshot instead
 * (CallBeginReading, or ReadBegin after its writes). Otherwise a row that one
 * query has found could be gone for the next. That snapshot is the active one
 * until CallEnd, for queries and for rows by index (table.c) alike. A write
 * under it is an error.
 *
 * A call may be suspended while a tool runs, and resumed afterwards. What it
 * has changed may be in memory only. So when somebody looks at our tables
 * meanwhile, it is written first (CallShow). Who looks is noticed by CallBegin
 * and by look.c. That write belongs to the subtransaction of the tool. If that
 * is rolled back, the changes are in memory only, as before, and the call goes
 * on. Otherwise the tool may have changed the same rows, and the call ends.
 *
 * Memory: everything that a call allocates is in its own context, which
 * CallEnd deletes.
 */
#include "base/base.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

static void CallSave(Call *call);

/* ---------- identity ---------- */

/* Switch to the owner of the extension. */
static void
OwnerEnter(Call *call)
{
	if (call->as_owner)
		elog(ERROR, "the call has switched to the owner already");
	GetUserIdAndSecContext(&call->saved_user, &call->saved_security);
	SetUserIdAndSecContext(OwnerRole(),
						   call->saved_security | SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS);
	call->as_owner = true;
}

/* Switch back to the caller, and put back the search path. */
static void
OwnerLeave(Call *call)
{
	if (!call->as_owner)
		elog(ERROR, "the call has not switched to the owner");
	SearchPathUnlock(&call->guc_level);
	SetUserIdAndSecContext(call->saved_user, call->saved_security);
	call->as_owner = false;
}

/* ---------- begin and end ---------- */

/*
 * Begin a call.
 *
 * SPI's memory belongs to the transaction, in procedures too: the call is over
 * before they commit. With SPI_OPT_NONATOMIC it would belong to the portal,
 * and would be freed twice when a procedure that was called after a SAVEPOINT
 * fails.
 */
static void
Begin(Call *call, const char *tenant)
{
	memset(call, 0, sizeof(Call));
	call->command = InvalidCommandId;
	call->owner = CurrentResourceOwner;
	call->outer = CurrentMemoryContext;
	call->caller = GetUserId();
	call->context = AllocSetContextCreate(CurrentMemoryContext, "stepwise call", ALLOCSET_DEFAULT_SIZES);
	call->scratch = AllocSetContextCreate(call->context, "stepwise audit entry", ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(call->context);
	call->tenant = pstrdup(tenant);
	call->tenant_datum = CStringGetTextDatum(tenant);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	MemoryContextSwitchTo(call->context);
	OwnerEnter(call);
}

/* Begin a call in a given tenant. */
void
CallBeginIn(Call *call, const char *tenant)
{
	/* it would change rows of which the outer call holds copies */
	if (EngineRuns())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("functions of pg_stepwise cannot be called while it writes"),
				 errdetail("A trigger on a table of schema stepwise has called one."),
				 errhint("Let the trigger write down what is to be done, and do it after the call that fired it.")));
	CallShow();
	Begin(call, tenant);
}

/* Begin a call in the tenant of the caller. */
void
CallBegin(Call *call)
{
	CallBeginIn(call, TenantOfCaller());
}

/* Begin a call that only reads. Its whole answer is from one snapshot. */
void
CallBeginReading(Call *call)
{
	CallBegin(call);
	ReadBegin(call);
}

/*
 * Read under one snapshot from here on. It shows what is committed by now, and
 * what this transaction has written.
 */
void
ReadBegin(Call *call)
{
	if (call->reading)
		elog(ERROR, "the call reads under one snapshot already");
	CallSave(call);
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	call->reading = true;
}

/* Drop the snapshot. After that the call may write. */
void
ReadEnd(Call *call)
{
	if (call->reading)
		PopActiveSnapshot();
	call->reading = false;
}

/*
 * Write what the call has changed and not yet written, its audit entries first.
 * A query that reads such rows does a part of that (reads_plans, reads_log).
 */
static void
CallSave(Call *call)
{
	if (call->save != NULL)
		call->save(call, call, SAVE_PLANS | SAVE_LOG);
}

/* Leave SPI, and free the memory of the call. */
static void
Finish(Call *call)
{
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	MemoryContextSwitchTo(call->outer);
	MemoryContextDelete(call->context);
}

/*
 * End the call, and restore everything. The answer is copied to the caller's
 * memory.
 */
Datum
CallEnd(Call *call, Jsonb *answer)
{
	Datum		result = (Datum) 0;

	CallSave(call);
	TablesClose(call);
	OwnerLeave(call);
	/* copy it before SPI_finish: it may be in SPI's memory, for example after a bare SPI_execute */
	if (answer != NULL)
	{
		result = PointerGetDatum(MemoryContextAlloc(call->outer, VARSIZE(answer)));
		memcpy(DatumGetPointer(result), answer, VARSIZE(answer));
	}
	ReadEnd(call);
	Finish(call);
	return SendNote(result);
}

/* Note the session id that came with the call. */
void
CallInSession(Call *call, char *session)
{
	CheckNameLimit(session, "session_id");
	call->session = session;
}

/* ---------- suspended calls ---------- */

static Call *suspended = NULL;	/* the innermost one: a tool may run another plan */

/* Check whether a call is suspended whose changes nobody has looked at. */
bool
CallIsSuspended(void)
{
	return suspended != NULL && suspended->shown_in == InvalidSubTransactionId;
}

/*
 * Suspend a call. What it has changed is shown with a command id of its own,
 * which every later snapshot sees: who looks may have taken a snapshot before
 * we notice.
 */
void
CallSuspend(Call *call)
{
	OwnerLeave(call);
	MemoryContextSwitchTo(call->outer);
	CommandCounterIncrement();
	call->command = GetCurrentCommandId(true);
	CommandCounterIncrement();
	call->suspended_in = GetCurrentSubTransactionId();
	call->shown_in = InvalidSubTransactionId;
	call->below = suspended;
	suspended = call;
}

/*
 * Resume a call. Returns false if somebody has looked: then all is written, and
 * the call has ended.
 */
bool
CallResume(Call *call)
{
	if (suspended != call)
		elog(ERROR, "the call is not suspended");
	suspended = call->below;
	if (call->shown_in != InvalidSubTransactionId)
	{
		TablesClose(call);
		Finish(call);
		return false;
	}
	OwnerEnter(call);
	call->command = InvalidCommandId;
	call->now = 0;
	return true;
}

/*
 * Write what a suspended call has changed, unless that is done. Its tables are
 * closed, since who looks may be about to alter them.
 */
void
CallShow(void)
{
	Call	   *call = suspended;
	ResourceOwner owner = CurrentResourceOwner;
	bool		read_only = XactReadOnly;
	Call		by;

	if (!CallIsSuspended())
		return;
	/* the changes are from before; who looks may have set the transaction read-only since */
	XactReadOnly = false;
	call->shown_in = GetCurrentSubTransactionId();
	CurrentResourceOwner = call->owner;
	TablesClose(call);
	CurrentResourceOwner = owner;
	Begin(&by, call->tenant);
	by.command = call->command;
	by.now = call->now;
	if (call->save != NULL)
		call->save(call, &by, SAVE_PLANS | SAVE_LOG);
	CallEnd(&by, NULL);
	XactReadOnly = read_only;
}

static void
SuspendedAtTransactionEnd(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		suspended = NULL;
}

/* Forget calls that a rolled back subtransaction has suspended, and what it has written for others. */
static void
SuspendedAtSubtransactionEnd(SubXactEvent event, SubTransactionId mine, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		while (suspended != NULL && suspended->suspended_in >= mine)
			suspended = suspended->below;
	for (Call *call = suspended; call != NULL; call = call->below)
	{
		if (event == SUBXACT_EVENT_ABORT_SUB && call->shown_in >= mine)
			call->shown_in = InvalidSubTransactionId;
		if (event == SUBXACT_EVENT_COMMIT_SUB && call->shown_in == mine)
			call->shown_in = parent;
	}
}

/* Register the callbacks for the end of transactions and subtransactions. */
void
CallInit(void)
{
	RegisterXactCallback(SuspendedAtTransactionEnd, NULL);
	RegisterSubXactCallback(SuspendedAtSubtransactionEnd, NULL);
}

/* ---------- memory of a part of a call ---------- */

/*
 * Begin a turn: memory for one of many steps.
 *
 * A search may look at thousands of steps, and fill each with large values. So
 * it uses a memory context of its own for each step, and deletes it before the
 * next one. Turns may be nested. What a plan row keeps from a turn is copied
 * to the memory of the call.
 */
MemoryContext
TurnBegin(void)
{
	MemoryContext turn = AllocSetContextCreate(CurrentMemoryContext, "stepwise turn", ALLOCSET_DEFAULT_SIZES);

	return MemoryContextSwitchTo(turn);
}

/*
 * End a turn. "outer" is what TurnBegin returned. With "keep", the memory of
 * the turn lives as long as the outer memory.
 */
void
TurnEnd(MemoryContext outer, bool keep)
{
	MemoryContext turn = MemoryContextSwitchTo(outer);

	if (!keep)
		MemoryContextDelete(turn);
}

/* Copy a text to the memory of the call, so that it outlives a turn. */
char *
CallKeepText(Call *call, char *text)
{
	return text == NULL || CurrentMemoryContext == call->context ? text : MemoryContextStrdup(call->context, text);
}

/* Copy a value to the memory of the call, so that it outlives a turn. */
struct varlena *
CallKeep(Call *call, struct varlena *value)
{
	if (value == NULL || CurrentMemoryContext == call->context)
		return value;
	return memcpy(MemoryContextAlloc(call->context, VARSIZE_ANY(value)), value, VARSIZE_ANY(value));
}

/* ---------- procedures that commit ---------- */

/*
 * Check whether a procedure may commit: it is neither in a transaction block
 * nor in a subtransaction, such as a PL/pgSQL block that catches errors.
 */
bool
MayCommit(FunctionCallInfo fcinfo)
{
	return fcinfo->context && IsA(fcinfo->context, CallContext) && !castNode(CallContext, fcinfo->context)->atomic &&
		!IsSubTransaction();
}

/*
 * Commit, and begin a new transaction. The caller must have left the owner, or
 * the session would stay the owner.
 */
void
CommitAs(Oid caller)
{
	if (GetUserId() != caller)
		elog(ERROR, "about to commit as another role");
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	SPI_commit();
	SPI_finish();
	/* SET LOCAL ROLE ends with the transaction; do nothing more as the role below it */
	if (GetUserId() != caller)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("the role has changed at the commit"),
				 errdetail("What was committed so far stays."),
				 errhint("A procedure that commits needs SET ROLE; SET LOCAL ROLE ends with the first commit.")));
}
