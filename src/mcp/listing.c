/*
 * listing.c
 *	  lists in pages, by name
 *
 * A cursor is opaque to clients. Here it names the last entry of the page
 * before, so a page costs the same wherever it is. The empty cursor is the
 * beginning. A page ends after a number of entries, of bytes, or of rows that
 * were looked at. One entry that is larger than that is a page.
 */
#include "mcp/mcp.h"

#define PAGE_ENTRIES	100
#define PAGE_BYTES		(256 * 1024)
#define PAGE_LOOKED		1000	/* rows that are looked at for a page, such as tools that are not exposed */
#define ROWS_AT_ONCE	20		/* they may be large, so not a page of them */
#define CURSOR_MARK		"after:"

/* Read the name after which the page begins; NULL at the beginning. */
static char *
CursorRead(Request *request)
{
	JsonbValue	cursor;
	char	   *text;

	if (!JsonGet(request->params, "cursor", &cursor) || (cursor.type == jbvString && cursor.val.string.len == 0))
		return NULL;
	text = cursor.type == jbvString ? JsonValueText(&cursor) : "not a string";
	if (strncmp(text, CURSOR_MARK, strlen(CURSOR_MARK)) != 0)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "invalid cursor");
	return text + strlen(CURSOR_MARK);
}

/* Begin the result of a method that lists, with its entries under a key. */
void
ListingBegin(Listing *listing, Request *request, const char *key)
{
	memset(listing, 0, sizeof(Listing));
	listing->after = CursorRead(request);
	listing->last = listing->after ? listing->after : "";
	JsonObjectStart(&listing->builder, NULL);
	JsonArrayStart(&listing->builder, key);
}

/* Check whether the page has no room for another entry. */
static bool
ListingIsFull(const Listing *listing)
{
	return listing->shown >= PAGE_ENTRIES || listing->bytes >= PAGE_BYTES || listing->looked >= PAGE_LOOKED;
}

/* Note that the page goes up to a name, whether that is shown or not. */
static void
ListingPass(Listing *listing, const char *name)
{
	listing->last = pstrdup(name);
	listing->looked++;
}

/* Put an entry. */
void
ListingPut(Listing *listing, const Jsonb *entry)
{
	JsonPutJson(&listing->builder, NULL, entry);
	listing->shown++;
	listing->bytes += VARSIZE(entry);
}

/* End the result. A full page names the next one, which may be empty. */
Jsonb *
ListingEnd(Listing *listing)
{
	JsonArrayEnd(&listing->builder);
	if (ListingIsFull(listing))
		JsonPutText(&listing->builder, "nextCursor", psprintf(CURSOR_MARK "%s", listing->last));
	JsonObjectEnd(&listing->builder);
	return JsonFinish(&listing->builder);
}

/*
 * Put the rows of a query into a page, as many as it has room for. The query
 * gets the name after which it begins, and a number of rows. It returns a name
 * and what the entry is made of.
 */
void
ListingPutRows(Listing *listing, const Request *request, KeptQuery *query, MakeEntry make)
{
	bool		more = true;

	while (more && !ListingIsFull(listing))
	{
		Params		params = {0};
		Call		call;
		Rows		rows;

		CallBeginReading(&call);
		ParamTenant(&params, &call);
		ParamText(&params, listing->last);
		ParamInt(&params, ROWS_AT_ONCE);
		rows = QueryRun(query, &params);
		more = rows.count == ROWS_AT_ONCE;
		for (uint64 i = 0; i < rows.count && !ListingIsFull(listing); i++)
		{
			MemoryContext inner = MemoryContextSwitchTo(call.outer);
			Jsonb	   *entry = make(request, &rows, i);

			ListingPass(listing, RowText(&rows, i, 1));
			if (entry != NULL)
				ListingPut(listing, entry);
			MemoryContextSwitchTo(inner);
		}
		CallEnd(&call, NULL);
	}
}
