/*
 * lock.c
 *	  lock words of a tenant, where there is no row to lock
 *
 * A lock is held until the transaction ends.
 */
#include "base/base.h"

#include "access/xlog.h"
#include "catalog/pg_control.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "storage/sinvaladt.h"
#include "utils/fmgrprotos.h"

#define LOCK_OF_OURS	0x5357	/* pg_advisory_lock uses 1 and 2 here, and cannot reach this */

/*
 * Make the lock tag of a word.
 *
 * Any role can see the lock in pg_locks, and could hash a word that it
 * guesses. So the hash begins with a secret of the cluster, the mock
 * authentication nonce.
 */
static LOCKTAG
TagOf(const Call *call, const char *kind, const char *word)
{
	StringInfoData key;
	uint64		hash;
	LOCKTAG		tag;

	/* the terminating zeros keep the parts apart */
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
 * Lock a word of the tenant until the end of the transaction.
 *
 * An advisory lock that SQL can take will not do. Any role could take it
 * first, or find out by trying what another tenant does.
 */
void
CallLock(const Call *call, const char *kind, const char *word)
{
	LOCKTAG		tag = TagOf(call, kind, word);

	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

/* Check whether another transaction holds a word of the tenant. */
bool
CallLockIsHeld(const Call *call, const char *kind, const char *word)
{
	LOCKTAG		tag = TagOf(call, kind, word);
	int			count;

	(void) GetLockConflicts(&tag, ExclusiveLock, &count);
	return count > 0;
}

/* Check whether a process is still in the transaction that was found. */
static bool
IsInTransaction(const PGPROC *holder, VirtualTransactionId found)
{
	VirtualTransactionId now;

	GET_VXID_FROM_PGPROC(now, *holder);
	return VirtualTransactionIdEquals(now, found);
}

/*
 * Cancel the statements that hold a word of the tenant. The caller of this has
 * checked that it may do so.
 */
void
CallLockCancel(const Call *call, const char *kind, const char *word)
{
	LOCKTAG		tag = TagOf(call, kind, word);
	int			count;
	VirtualTransactionId *holders = GetLockConflicts(&tag, ExclusiveLock, &count);

	for (int i = 0; i < count; i++)
	{
		PGPROC	   *holder = TransactionHolder(holders[i]);

		if (holder != NULL && holder->pid != 0 && IsInTransaction(holder, holders[i]))
			(void) DirectFunctionCall1(pg_cancel_backend, Int32GetDatum(holder->pid));
	}
}

#define WORDS_LOCKED	100		/* by one transaction; after that it locks all of them */

/*
 * Count the words that this transaction locks. Returns true if there are too
 * many to lock each of them.
 */
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
 * Lock a word of a kind of which one transaction may lock very many.
 *
 * That would exhaust the lock table of the server. So after the first hundred
 * words, a transaction locks all words of the kind in its tenant at once. It
 * then waits for any transaction that holds this word, but need not keep the
 * lock of the word.
 *
 * A transaction that locks one word must not slip past a transaction that has
 * locked all. So once it has the word, it checks whether another transaction
 * has locked all. If so, it releases the word and waits for that transaction.
 * It never waits for one of the two locks while it holds the other, because
 * the transaction that holds the word may be about to lock all. It releases
 * the word for no other reason: transactions that want the same word queue for
 * it, and the first one keeps it.
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
