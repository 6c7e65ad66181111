/*
 * query.c
 *	  kept SPI plans, run as the owner; and the frame of a call
 *
 * A Query is a static constant beside the code that reads its columns. It is
 * prepared at its first use and kept for the life of the backend; the plan
 * cache takes care of changed tables. Enum values go in as text and are cast
 * in the SQL, so that a kept plan survives DROP and CREATE EXTENSION.
 *
 * Functions are SECURITY INVOKER: CallBegin notes who called and finds his
 * tenant, then OwnerEnter switches to the owner; that is the only change of
 * identity in the engine. The first query of a call locks the search path, or
 * an operator of the caller's making would run as the owner; calls that get by
 * without a query (table.c) are spared that, for it costs as much as a row. An
 * error needs no clean-up here: the end of the (sub)transaction restores role,
 * settings, SPI and memory.
 *
 * Snapshots: each query of a call sees what is committed by then, so that what
 * is read under a lock is new. A function that puts an answer together from
 * several queries without a lock reads all of it under one snapshot instead
 * (CallBeginReading, or ReadBegin after what it writes), or a row that one query
 * has found would be gone for the next. That snapshot is the active one until
 * CallEnd, for queries and for rows by index (table.c) alike; whoever tries to
 * write under it gets an error.
 *
 * Memory: all of a call's allocations are in its own context, gone at CallEnd.
 */
#include "api/api.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_control.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

/* set while the engine's own statement runs, and how deep in triggers that was */
static bool engine_runs = false;
static int	engine_depth;

bool
EngineRuns(void)
{
	return engine_runs;
}

static int
TriggerDepth(void)
{
	return DatumGetInt32(DirectFunctionCall1(pg_trigger_depth, (Datum) 0));
}

/* Was our trigger fired by the engine's own statement, and not by what somebody's trigger on it did? */
bool
EngineWrites(void)
{
	return engine_runs && TriggerDepth() == engine_depth + 1;
}

/* ---------- arguments ---------- */

void
ArgDatum(Args *args, Datum value)
{
	if (args->count >= QUERY_MAX_ARGS)
		elog(ERROR, "query has more than %d arguments", QUERY_MAX_ARGS);
	args->nulls[args->count] = ' ';
	args->values[args->count++] = value;
}

void
ArgNull(Args *args)
{
	ArgDatum(args, (Datum) 0);
	args->nulls[args->count - 1] = 'n';
}

void
ArgVarlena(Args *args, const void *value)
{
	if (value == NULL)
		ArgNull(args);
	else
		ArgDatum(args, PointerGetDatum(value));
}

void
ArgText(Args *args, const char *value)
{
	if (value == NULL)
		ArgNull(args);
	else
		ArgDatum(args, CStringGetTextDatum(value));
}

void
ArgUuid(Args *args, const pg_uuid_t *value)
{
	if (value == NULL)
		ArgNull(args);
	else
		ArgDatum(args, UUIDPGetDatum(value));
}

void
ArgInt(Args *args, int value)
{
	ArgDatum(args, Int32GetDatum(value));
}

void
ArgBool(Args *args, bool value)
{
	ArgDatum(args, BoolGetDatum(value));
}

void
ArgTime(Args *args, TimestampTz value)
{
	if (!TimeIsSet(value))
		ArgNull(args);
	else
		ArgDatum(args, TimestampTzGetDatum(value));
}

void
ArgTenant(Args *args, const Call *call)
{
	args->call = unconstify(Call *, call);
	ArgDatum(args, call->tenant_datum);
}

/* ---------- running ---------- */

static void
QueryPrepare(KeptQuery *query)
{
	/* generic at once: the plan does not depend on the arguments, nor on how full the tables are (planner.c) */
	SPIPlanPtr	plan = SPI_prepare_cursor(query->sql, query->nargs, query->types, CURSOR_OPT_GENERIC_PLAN);

	if (plan == NULL || SPI_keepplan(plan) != 0)
		elog(ERROR, "could not prepare query: %s", query->sql);
	query->plan = plan;
}

#define OWNER_PATH	"pg_catalog, pg_temp"

/* Lock the search path, unless it is; the level to go back to, 0: none. */
static int
PathLock(void)
{
	int			level;

	if (strcmp(namespace_search_path, OWNER_PATH) == 0)
		return 0;
	level = NewGUCNestLevel();
	(void) set_config_option("search_path", OWNER_PATH, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	return level;
}

static void
PathUnlock(int *level)
{
	if (*level != 0)
		AtEOXact_GUC(true, *level);
	*level = 0;
}

static int
Execute(KeptQuery *query, const Args *args)
{
	bool		outer = engine_runs;
	int			outer_depth = engine_depth;
	bool		reading = args->call != NULL && args->call->reading;
	volatile int result;

	if (query->plan == NULL)
		QueryPrepare(query);
	engine_runs = true;
	engine_depth = TriggerDepth();
	PG_TRY();
	{
		if (query->latest)
			result = SPI_execute_snapshot(query->plan, (Datum *) args->values, args->nulls, GetLatestSnapshot(),
										  InvalidSnapshot, true, false, 0);
		else
			result = SPI_execute_plan(query->plan, (Datum *) args->values, args->nulls, reading, 0);
	}
	PG_FINALLY();
	{
		engine_runs = outer;
		engine_depth = outer_depth;
	}
	PG_END_TRY();
	return result;
}

Rows
QueryRun(KeptQuery *query, const Args *args)
{
	Rows		rows = {0};
	MemoryContext context = CurrentMemoryContext;
	int			level;
	int			result;

	if (args->count != query->nargs)
		elog(ERROR, "query got %d arguments instead of %d: %s", args->count, query->nargs, query->sql);
	if (query->reads_plans && args->call != NULL)
		CallSave(args->call);
	level = PathLock();
	if (level != 0 && args->call != NULL)
	{
		/* for the queries that follow, too; what a trigger has set meanwhile goes with the first level */
		if (args->call->guc_level == 0)
			args->call->guc_level = level;
		level = 0;
	}
	result = Execute(query, args);
	/* SPI leaves us in its own context, which is gone before the answer is copied */
	MemoryContextSwitchTo(context);
	if (result < 0)
		elog(ERROR, "could not run query (%s): %s", SPI_result_code_string(result), query->sql);
	PathUnlock(&level);
	rows.count = SPI_processed;
	rows.table = SPI_tuptable;
	return rows;
}

/* Run a statement that is not worth to be kept; how many rows it was about. */
uint64
QueryRunOnce(const char *sql, const Oid *types, const Args *args)
{
	KeptQuery	query = {.sql = sql,.nargs = args->count};
	Rows		rows;

	if (args->count > 0)
		memcpy(query.types, types, sizeof(Oid) * args->count);
	rows = QueryRun(&query, args);
	SPI_freeplan(query.plan);
	return rows.count;
}

void
RowsFree(Rows *rows)
{
	if (rows->table != NULL)
		SPI_freetuptable(rows->table);
	rows->table = NULL;
}

/* ---------- rows ---------- */

/* Take a row; that it is not there is an error also without assertions, never a crash. */
HeapTuple
RowTuple(const Rows *rows, uint64 row)
{
	if (rows->table == NULL || row >= rows->table->numvals)
		elog(ERROR, "query returned no row %llu", (unsigned long long) row + 1);
	return rows->table->vals[row];
}

/* Take a column of a row, counted from 1. */
Datum
RowDatum(const Rows *rows, uint64 row, int column, bool *isnull)
{
	HeapTuple	tuple = RowTuple(rows, row);

	if (column < 1 || column > rows->table->tupdesc->natts)
		elog(ERROR, "query returned no column %d", column);
	return SPI_getbinval(tuple, rows->table->tupdesc, column, isnull);
}

bool
RowIsNull(const Rows *rows, uint64 row, int column)
{
	bool		isnull;

	RowDatum(rows, row, column, &isnull);
	return isnull;
}

char *
RowText(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

Jsonb *
RowJson(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? NULL : DatumGetJsonbPCopy(value);
}

pg_uuid_t
RowUuid(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);
	pg_uuid_t	uuid = {0};

	return isnull ? uuid : *DatumGetUUIDP(value);
}

int
RowInt(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return isnull ? 0 : DatumGetInt32(value);
}

bool
RowBool(const Rows *rows, uint64 row, int column)
{
	bool		isnull;
	Datum		value = RowDatum(rows, row, column, &isnull);

	return !isnull && DatumGetBool(value);
}

/* ---------- the owner ---------- */

/* The owner of the extension is the owner of its tables. */
Oid
OwnerRole(void)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(TableOid("plan")));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for table stepwise.plan");
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

bool
RoleIsOwner(Oid role)
{
	return has_privs_of_role(role, OwnerRole());
}

void
CheckOwner(const char *what)
{
	if (!RoleIsOwner(GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to %s", what),
				 errhint("Only the owner of extension pg_stepwise may do this.")));
}

void
OwnerEnter(Call *call)
{
	if (call->as_owner)
		elog(ERROR, "the call has switched to the owner already");
	GetUserIdAndSecContext(&call->saved_user, &call->saved_security);
	SetUserIdAndSecContext(OwnerRole(),
						   call->saved_security | SECURITY_LOCAL_USERID_CHANGE | SECURITY_NOFORCE_RLS);
	call->as_owner = true;
}

void
OwnerLeave(Call *call)
{
	if (!call->as_owner)
		elog(ERROR, "the call has not switched to the owner");
	PathUnlock(&call->guc_level);
	SetUserIdAndSecContext(call->saved_user, call->saved_security);
	call->as_owner = false;
}

/* ---------- the frame of a call ---------- */

/*
 * SPI's memory goes with the transaction, in procedures too: the call is over
 * when they commit. In that of the portal (SPI_OPT_NONATOMIC) it would be freed
 * twice when a procedure fails that was called after a SAVEPOINT.
 */
void
CallBeginIn(Call *call, const char *tenant)
{
	/* it would change rows of which the call around holds what it has read */
	if (engine_runs)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("functions of pg_stepwise cannot be called while it writes"),
				 errdetail("A trigger on a table of schema stepwise has called one."),
				 errhint("Let the trigger write down what is to be done, and do it after the call that fired it.")));
	memset(call, 0, sizeof(Call));
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

void
CallBegin(Call *call)
{
	CallBeginIn(call, TenantOfCaller());
}

/* Begin a call of a function that only reads: its whole answer is of one moment. */
void
CallBeginReading(Call *call)
{
	CallBegin(call);
	ReadBegin(call);
}

/* Read under one snapshot from here on: what is committed by now, and what this transaction has done. */
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

/* Give the snapshot back; after that the call may write. */
void
ReadEnd(Call *call)
{
	if (call->reading)
		PopActiveSnapshot();
	call->reading = false;
}

/*
 * Write what the call has changed and not written yet. CallEnd does it, and
 * before that a query that reads such rows (reads_plans).
 */
void
CallSave(Call *call)
{
	if (call->save != NULL)
		call->save(call);
}

/* Put everything back; the answer is copied out to the memory of the caller. */
Datum
CallEnd(Call *call, Jsonb *answer)
{
	Datum		result = (Datum) 0;

	CallSave(call);
	OwnerLeave(call);
	/* copied first: it may be in SPI's memory, for instance after a bare SPI_execute */
	if (answer != NULL)
	{
		result = PointerGetDatum(MemoryContextAlloc(call->outer, VARSIZE(answer)));
		memcpy(DatumGetPointer(result), answer, VARSIZE(answer));
	}
	ReadEnd(call);
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
	MemoryContextSwitchTo(call->outer);
	MemoryContextDelete(call->context);
	return result;
}

void
CallInSession(Call *call, char *session)
{
	CheckNameLimit(session, "session_id");
	call->session = session;
}

/* ---------- memory of a part of a call ---------- */

/*
 * A search may look at thousands of steps, and fill each with large values. So
 * it does so in memory of its own for each of them, a turn, which is gone when
 * the next step is looked at. Turns may be inside of each other. What a plan
 * row keeps from a turn is copied to the memory of the call.
 */
MemoryContext
TurnBegin(Call *call)
{
	MemoryContext turn = AllocSetContextCreate(call->context, "stepwise turn", ALLOCSET_DEFAULT_SIZES);

	return MemoryContextSwitchTo(turn);
}

/* outer is what TurnBegin returned; with keep, what the turn made lives as long as the call. */
void
TurnEnd(MemoryContext outer, bool keep)
{
	MemoryContext turn = MemoryContextSwitchTo(outer);

	if (!keep)
		MemoryContextDelete(turn);
}

char *
CallKeepText(Call *call, char *text)
{
	return text == NULL || CurrentMemoryContext == call->context ? text : MemoryContextStrdup(call->context, text);
}

struct varlena *
CallKeep(Call *call, struct varlena *value)
{
	if (value == NULL || CurrentMemoryContext == call->context)
		return value;
	return memcpy(MemoryContextAlloc(call->context, VARSIZE_ANY(value)), value, VARSIZE_ANY(value));
}

/* ---------- locks on what has no row ---------- */

#define LOCK_OF_OURS	0x5357	/* pg_advisory_lock has 1 and 2 here, and no way to this */

/*
 * What is locked for a word of the tenant. Any role can see the lock in
 * pg_locks, and could hash a word that it guesses. So the hash begins with a
 * secret of the cluster, which it keeps for authentication.
 */
static LOCKTAG
TagOf(const Call *call, const char *kind, const char *word)
{
	StringInfoData key;
	uint64		hash;
	LOCKTAG		tag;

	/* with the zeros between them, so that no two are spelled alike */
	initStringInfo(&key);
	appendBinaryStringInfo(&key, GetMockAuthenticationNonce(), MOCK_AUTH_NONCE_LEN);
	appendBinaryStringInfo(&key, kind, strlen(kind) + 1);
	appendBinaryStringInfo(&key, call->tenant, strlen(call->tenant) + 1);
	appendBinaryStringInfo(&key, word, strlen(word));
	hash = hash_bytes_extended((unsigned char *) key.data, key.len, 0);
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (hash >> 32), (uint32) hash, LOCK_OF_OURS);
	pfree(key.data);
	return tag;
}

/*
 * Lock a word of the tenant until the end of the transaction. An advisory lock
 * that SQL can take would not do: any role could take it first, or see by
 * trying what another tenant does.
 */
void
CallLock(const Call *call, const char *kind, const char *word)
{
	LOCKTAG		tag = TagOf(call, kind, word);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

#define WORDS_LOCKED	100		/* of one transaction; after that it locks all */

/* Count the words that this transaction locks; is it too many to lock each? */
static bool
LocksMany(void)
{
	static LocalTransactionId transaction = InvalidLocalTransactionId;
	static int	count;

	if (transaction != MyLocalTransaction)
		count = 0;
	transaction = MyLocalTransaction;
	return ++count > WORDS_LOCKED;
}

/*
 * Lock a word of which one transaction may lock very many, which would exhaust
 * the lock table of the server. So after the first hundred it locks all words
 * of that kind at once, in its tenant; it then waits for whoever has this word
 * already, but need not keep its lock.
 *
 * Who locks one word must not come in between: once it has the word, it looks
 * whether another transaction has locked all. If so, it gives the word back,
 * and waits for that. It never waits for one lock while it has the other, or it
 * would wait for a transaction that has the word, and is about to lock all. Nor
 * does it give a word back but for such a transaction: those that want the same
 * word queue for it, and the first one keeps it.
 */
void
CallLockOfMany(const Call *call, const char *kind, const char *word)
{
	LOCKTAG		all = TagOf(call, kind, "");
	LOCKTAG		one = TagOf(call, kind, word);

	if (LocksMany())
	{
		(void) LockAcquire(&all, ExclusiveLock, false, false);
		(void) LockAcquire(&one, ExclusiveLock, false, false);
		(void) LockRelease(&one, ExclusiveLock, false);
		return;
	}
	for (;;)
	{
		(void) LockAcquire(&one, ExclusiveLock, false, false);
		if (LockAcquire(&all, ShareLock, false, true) != LOCKACQUIRE_NOT_AVAIL)
			break;
		(void) LockRelease(&one, ExclusiveLock, false);
		(void) LockAcquire(&all, ShareLock, false, false);
		(void) LockRelease(&all, ShareLock, false);
	}
	(void) LockRelease(&all, ShareLock, false);
}

/* ---------- procedures that commit ---------- */

/* Not in a transaction block, nor in a subtransaction, such as a block of PL/pgSQL that catches errors. */
bool
MayCommit(FunctionCallInfo fcinfo)
{
	return fcinfo->context && IsA(fcinfo->context, CallContext) && !castNode(CallContext, fcinfo->context)->atomic &&
		!IsSubTransaction();
}

/* Commit, and begin anew. As the owner, the session would stay the owner for good. */
void
CommitAs(Oid caller)
{
	if (GetUserId() != caller)
		elog(ERROR, "about to commit as another role");
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	SPI_commit();
	SPI_finish();
	/* SET LOCAL ROLE ends with the transaction: nothing more may be done as whoever is behind it */
	if (GetUserId() != caller)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSITION),
				 errmsg("the role has changed at the commit"),
				 errdetail("What was committed so far stays."),
				 errhint("A procedure that commits needs SET ROLE; SET LOCAL ROLE ends with the first commit.")));
}

/* ---------- arguments of SQL-callable functions ---------- */

char *
ArgumentText(FunctionCallInfo fcinfo, int n)
{
	char	   *value;

	if (PG_ARGISNULL(n))
		return NULL;
	value = text_to_cstring(PG_GETARG_TEXT_PP(n));
	CheckArgumentUtf8(fcinfo, n, value);
	return value;
}

Jsonb *
ArgumentJson(FunctionCallInfo fcinfo, int n)
{
	Jsonb	   *value;

	if (PG_ARGISNULL(n))
		return NULL;
	value = PG_GETARG_JSONB_P(n);
	CheckArgumentJsonUtf8(fcinfo, n, value);
	return value;
}

pg_uuid_t *
ArgumentUuid(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : PG_GETARG_UUID_P(n);
}
