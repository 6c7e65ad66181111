/*
 * lock.c
 *	  lock words of a tenant, for what has no row to lock
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
