/*
 * builder.c
 *	  build jsonb values
 *
 * PostgreSQL builds a jsonb value as a tree of nodes, which it converts at the
 * end. A value that is put into another one is taken apart and put together
 * again. Here, a container is written when it ends, in the format that
 * utils/jsonb.h describes, and a value that is jsonb already is copied. The
 * bytes are the same as PostgreSQL's.
 *
 * The builder keeps a list of items. An open container is followed by what was
 * put into it so far. When it ends, it takes the place of all these.
 *
 * Memory: keys and values are not copied before their container ends, so they
 * must live until then. What the builder allocates is in the memory context
 * that is current at that time.
 */
#include "base/base.h"

#include "utils/numeric.h"

/* a value that waits for the end of its container */
struct JsonItem
{
	const char *key;			/* NULL: an element of an array, or the outermost value */
	uint32		key_size;
	JEntry		type;			/* one of JENTRY_IS... */
	uint32		size;
	const void *data;			/* NULL while a container is open */
	Jsonb	   *made;			/* the container that data is in, if the builder has made it */
	uint32		kind;			/* of an open container: JB_FOBJECT or JB_FARRAY */
	int			outer;			/* likewise: what JsonBuilder.open was before */
};

#define FIRST_ROOM		24		/* items of most answers */
#define SMALL_OBJECT	64		/* members that are sorted by insertion */

/* ---------- writing a container ---------- */

/* Compare two keys as jsonb does: the shorter one first. */
static inline int
CompareKeys(const JsonItem *a, const JsonItem *b)
{
	if (a->key_size != b->key_size)
		return a->key_size < b->key_size ? -1 : 1;
	return memcmp(a->key, b->key, a->key_size);
}

/* Compare two members for qsort: by key, then by their order in the list. */
static int
CompareMembers(const void *a, const void *b)
{
	const JsonItem *x = *(JsonItem *const *) a;
	const JsonItem *y = *(JsonItem *const *) b;
	int			result = CompareKeys(x, y);

	return result != 0 ? result : (x > y) - (x < y);
}

/* Sort members by their keys; of equal keys, the one that was put first comes first. */
static void
SortMembers(const JsonItem **members, int count)
{
	if (count > SMALL_OBJECT)
	{
		qsort(members, count, sizeof(JsonItem *), CompareMembers);
		return;
	}
	for (int i = 1; i < count; i++)
	{
		const JsonItem *member = members[i];
		int			place = i;

		for (; place > 0 && CompareKeys(members[place - 1], member) > 0; place--)
			members[place] = members[place - 1];
		members[place] = member;
	}
}

/* Sort members, and of equal keys keep the last one. Returns how many are left. */
static int
UniqueMembers(const JsonItem **members, int count)
{
	int			kept = 0;

	SortMembers(members, count);
	for (int i = 0; i < count; i++)
	{
		if (kept > 0 && CompareKeys(members[kept - 1], members[i]) == 0)
			kept--;
		members[kept++] = members[i];
	}
	return kept;
}

/* where the next entry of a container is written, and its data */
typedef struct Writer
{
	JEntry	   *entry;
	int			index;			/* of the entry */
	char	   *data;			/* begin of the data of all entries */
	char	   *end;
} Writer;

/* Write an entry and its data. Numbers and containers are aligned; the padding is a part of their size. */
static void
WriteEntry(Writer *w, JEntry type, const void *data, uint32 size)
{
	char	   *begin = w->end;

	if (type == JENTRY_ISNUMERIC || type == JENTRY_ISCONTAINER)
		while ((w->end - w->data) % sizeof(int32) != 0)
			*w->end++ = '\0';
	if (size > 0)
		memcpy(w->end, data, size);
	w->end += size;
	if (w->index++ % JB_OFFSET_STRIDE == 0)
		*w->entry++ = type | JENTRY_HAS_OFF | (JEntry) (w->end - w->data);
	else
		*w->entry++ = type | (JEntry) (w->end - begin);
}

/* Count the bytes of members, with the padding that they may need. */
static uint32
MembersSize(const JsonItem *const *members, int count)
{
	uint64		size = 0;

	for (int i = 0; i < count; i++)
		size += (uint64) members[i]->key_size + members[i]->size + sizeof(int32) - 1;
	if (size > JENTRY_OFFLENMASK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("total size of jsonb elements exceeds the maximum of %u bytes", JENTRY_OFFLENMASK)));
	return size;
}

/* Write a container: its header, an entry for each key, an entry for each value, and their data. */
static Jsonb *
WriteContainer(uint32 kind, const JsonItem *const *members, int count)
{
	int			entries = kind == JB_FOBJECT ? 2 * count : count;
	Jsonb	   *json = palloc(offsetof(Jsonb, root.children) + entries * sizeof(JEntry) + MembersSize(members, count));
	Writer		w = {.entry = json->root.children};

	json->root.header = count | kind;
	w.data = w.end = (char *) (json->root.children + entries);
	if (kind == JB_FOBJECT)
		for (int i = 0; i < count; i++)
			WriteEntry(&w, JENTRY_ISSTRING, members[i]->key, members[i]->key_size);
	for (int i = 0; i < count; i++)
		WriteEntry(&w, members[i]->type, members[i]->data, members[i]->size);
	SET_VARSIZE(json, w.end - (char *) json);
	return json;
}

/* ---------- items ---------- */

/* Add an item; the caller sets its data. */
static JsonItem *
ItemAdd(JsonBuilder *b, const char *key, size_t key_size, JEntry type)
{
	JsonItem   *item;

	if (b->items == NULL)
		b->items = palloc(sizeof(JsonItem) * (b->room = FIRST_ROOM));
	else if (b->count == b->room)
		b->items = repalloc(b->items, sizeof(JsonItem) * (b->room *= 2));
	item = &b->items[b->count++];
	memset(item, 0, sizeof(JsonItem));
	item->key = key;
	item->key_size = key_size;
	item->type = type;
	return item;
}

/* Put a value. Its data are in the form in which jsonb stores them. */
static void
PutItem(JsonBuilder *b, const char *key, JEntry type, const void *data, uint32 size)
{
	JsonItem   *item = ItemAdd(b, key, key ? strlen(key) : 0, type);

	item->data = data;
	item->size = size;
}

/* Begin a container, under its key or as an element. */
static void
ContainerStart(JsonBuilder *b, const char *key, uint32 kind)
{
	JsonItem   *item = ItemAdd(b, key, key ? strlen(key) : 0, JENTRY_ISCONTAINER);

	item->kind = kind;
	item->outer = b->open;
	b->open = b->count;
}

/* Write the innermost open container, and free what it is made of. */
static void
ContainerEnd(JsonBuilder *b)
{
	JsonItem   *container = &b->items[b->open - 1];
	int			count = b->count - b->open;
	const JsonItem **members = palloc(sizeof(JsonItem *) * (count + 1));

	for (int i = 0; i < count; i++)
		members[i] = container + 1 + i;
	container->made = WriteContainer(container->kind, members,
									 container->kind == JB_FOBJECT ? UniqueMembers(members, count) : count);
	container->data = &container->made->root;
	container->size = VARSIZE(container->made) - VARHDRSZ;
	for (int i = 1; i <= count; i++)
		if (container[i].made != NULL)
			pfree(container[i].made);
	pfree(members);
	b->count = b->open;
	b->open = container->outer;
}

/* ---------- containers ---------- */

/* Begin an object, under its key or as an element. */
void
JsonObjectStart(JsonBuilder *b, const char *key)
{
	ContainerStart(b, key, JB_FOBJECT);
}

/* End an object. */
void
JsonObjectEnd(JsonBuilder *b)
{
	ContainerEnd(b);
}

/* Begin an array, under its key or as an element. */
void
JsonArrayStart(JsonBuilder *b, const char *key)
{
	ContainerStart(b, key, JB_FARRAY);
}

/* End an array. */
void
JsonArrayEnd(JsonBuilder *b)
{
	ContainerEnd(b);
}

/* Finish the outermost value, which is an object or an array. */
Jsonb *
JsonFinish(JsonBuilder *b)
{
	if (b->open != 0 || b->count != 1 || b->items[0].made == NULL)
		elog(ERROR, "JSON value is not finished");
	return b->items[0].made;
}

/* ---------- values ---------- */

/* Set the data of an item to a value. */
static void
ItemSet(JsonItem *item, JsonbValue *value)
{
	/* a tree of nodes, or a time: PostgreSQL writes it */
	if (value->type > jbvBool && value->type != jbvBinary)
		JsonbToJsonbValue(JsonbValueToJsonb(value), value);
	if (value->type == jbvBinary && JsonContainerIsScalar(value->val.binary.data))
		JsonbExtractScalar(value->val.binary.data, value);
	switch (value->type)
	{
		case jbvNull:
			item->type = JENTRY_ISNULL;
			break;
		case jbvBool:
			item->type = value->val.boolean ? JENTRY_ISBOOL_TRUE : JENTRY_ISBOOL_FALSE;
			break;
		case jbvString:
			item->type = JENTRY_ISSTRING;
			item->data = value->val.string.val;
			item->size = value->val.string.len;
			break;
		case jbvNumeric:
			item->type = JENTRY_ISNUMERIC;
			item->data = value->val.numeric;
			item->size = VARSIZE_ANY(value->val.numeric);
			break;
		default:
			item->type = JENTRY_ISCONTAINER;
			item->data = value->val.binary.data;
			item->size = value->val.binary.len;
	}
}

/* Put a value, under its key or as an element. */
void
JsonPutValue(JsonBuilder *b, const char *key, const JsonbValue *value)
{
	JsonbValue	copy = *value;

	ItemSet(ItemAdd(b, key, key ? strlen(key) : 0, JENTRY_ISNULL), &copy);
}

/* Put the members of an object into the open one. They replace those of the same key. */
void
JsonPutMembers(JsonBuilder *b, const Jsonb *object)
{
	JsonbIterator *iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &object->root));
	JsonbValue	value;
	JsonbIteratorToken token;
	JsonItem   *item = NULL;

	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			item = ItemAdd(b, value.val.string.val, value.val.string.len, JENTRY_ISNULL);
		else if (token == WJB_VALUE)
			ItemSet(item, &value);
	}
}

/* Put a null. */
void
JsonPutNull(JsonBuilder *b, const char *key)
{
	PutItem(b, key, JENTRY_ISNULL, NULL, 0);
}

/* Put a string; null for NULL. */
void
JsonPutText(JsonBuilder *b, const char *key, const char *text)
{
	if (text == NULL)
		JsonPutNull(b, key);
	else
		PutItem(b, key, JENTRY_ISSTRING, text, strlen(text));
}

/* Put a whole jsonb value; null for NULL. */
void
JsonPutJson(JsonBuilder *b, const char *key, const Jsonb *json)
{
	JsonbValue	value;

	if (json == NULL)
		JsonPutNull(b, key);
	else
	{
		JsonbToJsonbValue(unconstify(Jsonb *, json), &value);
		JsonPutValue(b, key, &value);
	}
}

/* Put a number. */
static void
PutNumber(JsonBuilder *b, const char *key, Numeric number)
{
	PutItem(b, key, JENTRY_ISNUMERIC, number, VARSIZE_ANY(number));
}

/* Put a whole number. */
void
JsonPutInt(JsonBuilder *b, const char *key, int64 number)
{
	PutNumber(b, key, int64_to_numeric(number));
}

/* Put a duration in milliseconds, exact to the microsecond. */
void
JsonPutMilliseconds(JsonBuilder *b, const char *key, int64 microseconds)
{
	PutNumber(b, key, int64_div_fast_to_numeric(microseconds, 3));
}

/* Put a number that counts from 1; null for anything less. */
void
JsonPutPositive(JsonBuilder *b, const char *key, int number)
{
	if (number > 0)
		JsonPutInt(b, key, number);
	else
		JsonPutNull(b, key);
}

/* Put true or false. */
void
JsonPutBool(JsonBuilder *b, const char *key, bool truth)
{
	PutItem(b, key, truth ? JENTRY_ISBOOL_TRUE : JENTRY_ISBOOL_FALSE, NULL, 0);
}

/* Put a UUID as a string; null for NULL. */
void
JsonPutUuid(JsonBuilder *b, const char *key, const pg_uuid_t *uuid)
{
	JsonPutText(b, key, uuid ? UuidText(uuid) : NULL);
}

/* Put a time as a string; null for NO_TIME. */
void
JsonPutTime(JsonBuilder *b, const char *key, TimestampTz at)
{
	JsonPutText(b, key, TimeIsSet(at) ? TimeText(at) : NULL);
}

/* Put a text, unless it is NULL. */
void
JsonPutTextIfSet(JsonBuilder *b, const char *key, const char *value)
{
	if (value != NULL)
		JsonPutText(b, key, value);
}

/* Put a value, unless it is NULL. */
void
JsonPutJsonIfSet(JsonBuilder *b, const char *key, const Jsonb *value)
{
	if (value != NULL)
		JsonPutJson(b, key, value);
}

/* Put a time, unless it is NO_TIME. */
void
JsonPutTimeIfSet(JsonBuilder *b, const char *key, TimestampTz value)
{
	if (TimeIsSet(value))
		JsonPutTime(b, key, value);
}

/* Put a list of texts as an array of strings. */
void
JsonPutTexts(JsonBuilder *b, const char *key, const List *texts)
{
	ListCell   *cell;

	JsonArrayStart(b, key);
	foreach(cell, texts)
		JsonPutText(b, NULL, lfirst(cell));
	JsonArrayEnd(b);
}
