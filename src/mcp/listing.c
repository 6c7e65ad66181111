/*
 * listing.c
 *	  lists in pages
 *
 * A cursor is opaque to clients. Here it is the number of entries before the
 * page; the empty cursor is the beginning. A page ends after a number of
 * entries or bytes. One entry that is larger than that is a page.
 */
#include "mcp/mcp.h"

#define PAGE_BYTES		(256 * 1024)
#define CURSOR_DIGITS	9

/* Return how many entries come before the page that is asked for. */
static int
CursorRead(Request *request)
{
	JsonbValue	cursor;
	char	   *text;

	if (!JsonGet(request->params, "cursor", &cursor))
		return 0;
	text = cursor.type == jbvString ? JsonValueText(&cursor) : "not a string";
	if (strspn(text, "0123456789") != strlen(text) || strlen(text) > CURSOR_DIGITS)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "invalid cursor");
	return atoi(text);
}

/* Begin the result of a method that lists, with its entries under a key. */
void
ListingBegin(Listing *listing, Request *request, const char *key)
{
	memset(listing, 0, sizeof(Listing));
	listing->start = CursorRead(request);
	JsonObjectStart(&listing->builder, NULL);
	JsonArrayStart(&listing->builder, key);
}

static bool
ListingIsFull(const Listing *listing)
{
	return listing->shown >= PAGE_ENTRIES || listing->bytes >= PAGE_BYTES;
}

/* Count an entry. Returns whether it belongs to this page, and is to be put. */
bool
ListingWants(Listing *listing)
{
	if (ListingIsFull(listing))
		return false;
	return listing->seen++ >= listing->start;
}

/* Put an entry. */
void
ListingPut(Listing *listing, const Jsonb *entry)
{
	JsonPutJson(&listing->builder, NULL, entry);
	listing->shown++;
	listing->bytes += VARSIZE(entry);
}

/* Count entries that come before the page, without looking at them. */
void
ListingSkip(Listing *listing, int entries)
{
	listing->seen += entries;
}

/* End the result. A full page names the next one, which may be empty. */
Jsonb *
ListingEnd(Listing *listing, Request *request)
{
	if (listing->start > listing->seen)
		RequestRefuse(request, RPC_INVALID_PARAMS, NULL, "invalid cursor");
	JsonArrayEnd(&listing->builder);
	if (ListingIsFull(listing))
		JsonPutText(&listing->builder, "nextCursor", psprintf("%d", listing->seen));
	JsonObjectEnd(&listing->builder);
	return JsonFinish(&listing->builder);
}
