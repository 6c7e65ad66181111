/*
 * tool_cache.c
 *	  remember which tools are registered, and which names are not
 *
 * Every claim asks for the tool of its step. A trigger on stepwise.tool sends an
 * invalidation to every backend; the callback only counts it. What was
 * remembered under another count is stale. An invalidation may also come while
 * a row is read, perhaps under a snapshot that does not show the change yet. Then
 * the row is not remembered.
 *
 * A name has one place, which it shares with others; the last one stays. So at
 * most CACHE_SIZE tools of CACHE_BYTES are in memory.
 */
#include "tool/tool.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#define CACHE_SIZE		64
#define CACHE_BYTES		8192	/* a larger tool is not remembered */

typedef struct Remembered
{
	MemoryContext context;		/* has all that it points to; NULL: never used */
	uint64		changes;		/* the count under which it was read */
	char	   *tenant;			/* NULL: the place is free */
	char	   *name;
	Tool	   *tool;			/* NULL: the name is not registered */
} Remembered;

static Remembered cache[CACHE_SIZE];
static Oid	tool_table = InvalidOid;	/* the table that was read */
static uint64 changes = 0;		/* how often it has changed, as far as we know */

static void
ToolsInvalidate(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == tool_table)
		changes++;
}

/* Register the invalidation callback. */
void
ToolCacheInit(void)
{
	CacheRegisterRelcacheCallback(ToolsInvalidate, (Datum) 0);
}

/* Return how often the register has changed, as far as we know by now. */
static uint64
ChangesByNow(void)
{
	Oid			relid;

	AcceptInvalidationMessages();
	relid = TableOid("tool");
	if (relid != tool_table)
	{
		tool_table = relid;
		changes++;
	}
	return changes;
}

/* Find the place of a name. */
static Remembered *
PlaceOf(const char *tenant, const char *name)
{
	uint32		hash = hash_combine(hash_bytes((const unsigned char *) tenant, strlen(tenant)),
									hash_bytes((const unsigned char *) name, strlen(name)));

	return &cache[hash % CACHE_SIZE];
}

static bool
IsOf(const Remembered *r, const char *tenant, const char *name)
{
	return r->tenant != NULL && strcmp(r->name, name) == 0 && strcmp(r->tenant, tenant) == 0;
}

static char *
CopyText(const char *text)
{
	return text ? pstrdup(text) : NULL;
}

/* Copy a tool into the current memory; NULL for NULL. */
static Tool *
ToolCopy(const Tool *tool)
{
	Tool	   *copy;

	if (tool == NULL)
		return NULL;
	copy = palloc(sizeof(Tool));
	*copy = *tool;
	copy->name = CopyText(tool->name);
	copy->function = CopyText(tool->function);
	copy->description = CopyText(tool->description);
	if (tool->input_schema != NULL)
		copy->input_schema = (Jsonb *) PG_DETOAST_DATUM_COPY(PointerGetDatum(tool->input_schema));
	return copy;
}

static bool
IsSmall(const Tool *tool)
{
	return tool == NULL ||
		(tool->description ? strlen(tool->description) : 0) + (tool->input_schema ? VARSIZE(tool->input_schema) : 0) <= CACHE_BYTES;
}

/* Remember a tool that was read under a count; NULL: the name is not registered. */
static void
Remember(Remembered *r, const char *tenant, const char *name, const Tool *tool, uint64 read_under)
{
	MemoryContext outer;

	if (r->context == NULL)
		r->context = AllocSetContextCreate(TopMemoryContext, "stepwise tool", ALLOCSET_SMALL_SIZES);
	r->tenant = NULL;
	MemoryContextReset(r->context);
	outer = MemoryContextSwitchTo(r->context);
	r->name = pstrdup(name);
	r->tool = ToolCopy(tool);
	r->changes = read_under;
	r->tenant = pstrdup(tenant);
	MemoryContextSwitchTo(outer);
}

/*
 * Find a tool in memory, or else by the reader, into the current memory; NULL:
 * the name is not registered. Where all is read under one older snapshot, that is
 * true of tools too.
 */
Tool *
ToolRecall(Call *call, const char *name, ToolReader reader)
{
	uint64		before;
	Remembered *r;
	Tool	   *tool;

	if (IsolationUsesXactSnapshot() || call->reading || call->writing)
		return reader(call, name);
	before = ChangesByNow();
	r = PlaceOf(call->tenant, name);
	if (r->changes == before && IsOf(r, call->tenant, name))
		return ToolCopy(r->tool);
	tool = reader(call, name);
	if (changes == before && IsSmall(tool))
		Remember(r, call->tenant, name, tool, before);
	return tool;
}
