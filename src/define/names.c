/*
 * names.c
 *	  tables of names, each with a number
 *
 * A definition may have thousands of steps, so names are looked up in hash
 * tables. A name must live as long as its table.
 */
#include "define/define.h"

#include "common/hashfn.h"

typedef struct NameEntry
{
	const char *name;
	int			number;
	uint32		hash;
	char		status;
} NameEntry;

#define SH_PREFIX				names
#define SH_ELEMENT_TYPE			NameEntry
#define SH_KEY_TYPE				const char *
#define SH_KEY					name
#define SH_HASH_KEY(tb, key)	hash_bytes((const unsigned char *) (key), strlen(key))
#define SH_EQUAL(tb, a, b)		(strcmp(a, b) == 0)
#define SH_STORE_HASH
#define SH_GET_HASH(tb, a)		((a)->hash)
#define SH_SCOPE				static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

/* Make a table; "size" is the expected number of names. */
struct names_hash *
NamesNew(int size)
{
	return names_create(CurrentMemoryContext, Max(size, 8), NULL);
}

/* Enter a name. Returns false if it is there already. */
bool
NamesAdd(struct names_hash *names, const char *name, int number)
{
	bool		found;
	NameEntry  *entry = names_insert(names, name, &found);

	if (!found)
		entry->number = number;
	return !found;
}

/* Enter a name, or change the number of a name that is there. */
void
NamesSet(struct names_hash *names, const char *name, int number)
{
	bool		found;

	names_insert(names, name, &found)->number = number;
}

/* Return the name that is in the table, or enter this one. */
char *
NamesKeep(struct names_hash *names, char *name)
{
	bool		found;

	return unconstify(char *, names_insert(names, name, &found)->name);
}

/* Find the number of a name; 0: it is not there. */
int
NamesFind(struct names_hash *names, const char *name)
{
	NameEntry  *entry = names_lookup(names, name);

	return entry ? entry->number : 0;
}
