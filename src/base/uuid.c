/*
 * uuid.c
 *	  make, compare, read and show UUIDs
 *
 * New UUIDs are ordered by time. They are of version 7 (RFC 9562): 48 bits of
 * Unix milliseconds, 12 bits of the fraction of the millisecond, 50 random
 * bits, and 12 bits that the caller gives, the slot. Within a backend each one
 * is greater than the one before, even if the clock stands still or steps back.
 */
#include "base/base.h"

#include <time.h>

#define FRACTION_BITS	12
#define UUID_TEXT_LENGTH	36

/* Return the time in 1/4096 ms, never the same twice. */
static uint64
NextTick(void)
{
	static uint64 last = 0;
	struct timespec now;
	uint64		tick;

	clock_gettime(CLOCK_REALTIME, &now);
	tick = ((uint64) now.tv_sec * 1000 + now.tv_nsec / 1000000) << FRACTION_BITS;
	tick |= ((uint64) (now.tv_nsec % 1000000) << FRACTION_BITS) / 1000000;
	last = Max(last + 1, tick);
	return last;
}

#define RANDOM_POOL		512

/*
 * Take some random bytes. They are made in advance, because each request costs
 * much more than its bytes.
 */
static void
TakeRandom(void *bytes, size_t size)
{
	static uint8 pool[RANDOM_POOL];
	static size_t left = 0;

	if (left < size)
	{
		left = 0;
		if (!pg_strong_random(pool, sizeof(pool)))
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("could not generate random values")));
		left = sizeof(pool);
	}
	left -= size;
	memcpy(bytes, pool + left, size);
}

/* Make a new UUID that ends with this slot. */
pg_uuid_t
UuidNew(int slot)
{
	uint64		tick = NextTick();
	uint64		milliseconds = tick >> FRACTION_BITS;
	pg_uuid_t	uuid;

	TakeRandom(&uuid.data[8], 7);
	for (int i = 0; i < 6; i++)
		uuid.data[i] = (unsigned char) (milliseconds >> (40 - 8 * i));
	uuid.data[6] = 0x70 | ((tick >> 8) & 0x0f);
	uuid.data[7] = tick & 0xff;
	uuid.data[8] = (uuid.data[8] & 0x3f) | 0x80;
	uuid.data[14] = (uuid.data[14] & 0xf0) | (slot >> 8);
	uuid.data[15] = slot & 0xff;
	return uuid;
}

/* Show a UUID. */
char *
UuidText(const pg_uuid_t *uuid)
{
	static const char digits[] = "0123456789abcdef";
	char	   *text = palloc(UUID_TEXT_LENGTH + 1);
	char	   *end = text;

	for (int byte = 0; byte < UUID_LEN; byte++)
	{
		if (byte == 4 || byte == 6 || byte == 8 || byte == 10)
			*end++ = '-';
		*end++ = digits[uuid->data[byte] >> 4];
		*end++ = digits[uuid->data[byte] & 0x0f];
	}
	*end = '\0';
	return text;
}

/* Compare two UUIDs. */
bool
UuidEqual(const pg_uuid_t *a, const pg_uuid_t *b)
{
	return memcmp(a->data, b->data, UUID_LEN) == 0;
}

/*
 * Read the usual form of a UUID, with 36 characters. Returns false if it is
 * not one.
 */
bool
UuidParse(const char *text, pg_uuid_t *uuid)
{
	if (strlen(text) != UUID_TEXT_LENGTH)
		return false;
	for (int byte = 0; byte < UUID_LEN; byte++)
	{
		int			high;
		int			low;

		if (*text == '-' && (byte == 4 || byte == 6 || byte == 8 || byte == 10))
			text++;
		high = HexDigit(*text++);
		low = HexDigit(*text++);
		if (high < 0 || low < 0)
			return false;
		uuid->data[byte] = high << 4 | low;
	}
	return *text == '\0';
}
