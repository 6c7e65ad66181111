/*
 * digest.c
 *	  SHA-256, of bytes and of values as text
 *
 * Text is digested in UTF-8, so that a copy of the database in another
 * encoding has the same digests.
 */
#include "base/base.h"

#include "utils/memutils.h"

/*
 * A server with OpenSSL has its library in memory. PostgreSQL's own functions for
 * digests look up the algorithm each time, which takes longer than the digest of
 * a few bytes. So we look it up once, if the headers of OpenSSL are there.
 */
#if defined(USE_OPENSSL) && defined(__linux__) && defined(__has_include)
#if __has_include(<openssl/evp.h>)
#define DIGEST_BY_OPENSSL
#endif
#endif

#ifdef DIGEST_BY_OPENSSL
#include <openssl/evp.h>
#else
#include "common/cryptohash.h"
#include "common/sha2.h"
#include "utils/resowner.h"
#endif

static void
DigestFailed(const char *why)
{
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("could not compute SHA-256: %s", why)));
}

#ifdef DIGEST_BY_OPENSSL

/* Look up the algorithm, for the life of the backend; NULL if the library refuses. */
static const EVP_MD *
Algorithm(void)
{
	static const EVP_MD *algorithm = NULL;

	if (algorithm == NULL)
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
		algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
#else
		algorithm = EVP_sha256();
#endif
	return algorithm;
}

/* Compute the SHA-256 of some bytes. */
void
Sha256(const void *data, size_t size, uint8 digest[32])
{
	static EVP_MD_CTX *context = NULL;	/* all digests use it, as long as the backend lives */

	if (context == NULL)
		context = EVP_MD_CTX_new();
	if (context == NULL || Algorithm() == NULL ||
		!EVP_DigestInit_ex(context, Algorithm(), NULL) ||
		!EVP_DigestUpdate(context, data, size) ||
		!EVP_DigestFinal_ex(context, digest, NULL))
		DigestFailed("OpenSSL refused");
}

#else

/*
 * Get the context that all digests use. It lives as long as the backend. So it
 * belongs to a resource owner that is never released, not to that of a
 * transaction.
 */
static pg_cryptohash_ctx *
DigestContext(void)
{
	static pg_cryptohash_ctx *context = NULL;
	ResourceOwner outer = CurrentResourceOwner;
	MemoryContext current;

	if (context != NULL)
		return context;
	current = MemoryContextSwitchTo(TopMemoryContext);
	CurrentResourceOwner = ResourceOwnerCreate(NULL, "stepwise digest");
	context = pg_cryptohash_create(PG_SHA256);
	CurrentResourceOwner = outer;
	MemoryContextSwitchTo(current);
	return context;
}

/* Compute the SHA-256 of some bytes. */
void
Sha256(const void *data, size_t size, uint8 digest[32])
{
	pg_cryptohash_ctx *context = DigestContext();

	if (context == NULL ||
		pg_cryptohash_init(context) < 0 ||
		pg_cryptohash_update(context, data, size) < 0 ||
		pg_cryptohash_final(context, digest, PG_SHA256_DIGEST_LENGTH) < 0)
		DigestFailed(pg_cryptohash_error(context));
}

#endif

/* Write a digest in hexadecimal. */
char *
DigestHex(const uint8 digest[32])
{
	char	   *text = palloc(65);

	hex_encode((const char *) digest, 32, text);
	text[64] = '\0';
	return text;
}

/* Digest a text in UTF-8. */
static void
DigestChars(const char *text, uint8 digest[32])
{
	text = Utf8Form(text);
	Sha256(text, strlen(text), digest);
}

/* Digest a text, in hexadecimal; NULL for NULL. */
char *
DigestOfText(const char *text)
{
	uint8		digest[32];

	if (text == NULL)
		return NULL;
	DigestChars(text, digest);
	return DigestHex(digest);
}

/*
 * Digest a jsonb value, perhaps toasted, by its text. Returns false for NULL.
 *
 * Values may be large, and one call may digest thousands of them. Nothing stays
 * in memory.
 */
bool
DigestJson(const void *jsonb_varlena, uint8 digest[32])
{
	MemoryContext scratch;
	MemoryContext outer;

	if (jsonb_varlena == NULL)
		return false;
	scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise digest", ALLOCSET_SMALL_SIZES);
	outer = MemoryContextSwitchTo(scratch);
	DigestChars(JsonToText(JsonOf(jsonb_varlena)), digest);
	MemoryContextSwitchTo(outer);
	MemoryContextDelete(scratch);
	return true;
}

/* The same, in hexadecimal; NULL for NULL. */
char *
DigestText(const void *jsonb_varlena)
{
	uint8		digest[32];

	return DigestJson(jsonb_varlena, digest) ? DigestHex(digest) : NULL;
}
