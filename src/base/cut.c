/*
 * cut.c
 *	  cut long texts and values, so that an answer stays small enough for a model
 *
 * This is the one place that cuts what an answer shows. A text that is too long
 * stays a text: it ends with its size and the name of the function that reads
 * it whole. A value that is too large becomes an object:
 *
 *	{"cut": true, "bytes": 120000, "summary": "an array of 800 elements",
 *	 "call": {"function": "get_step_context", "arguments": {"step_id": …, "max_bytes": …}}}
 *
 * "bytes" is the size of the value as it is stored. Nothing is read that is not
 * shown: the size is in the header of a field, and the summary in its first
 * bytes. So a hundred results of 1 MB are cut as fast as small ones.
 *
 * api/bound.c decides how much of an answer is cut.
 */
#include "base/base.h"

#include "access/detoast.h"
#include "mb/pg_wchar.h"

/*
 * Return the size that a field will have when it is read: neither compressed
 * nor out of line; 0 for NULL.
 */
size_t
RawSize(const struct varlena *field)
{
	return field ? toast_raw_datum_size(PointerGetDatum(field)) : 0;
}

/* Return the bytes that one byte of a text takes in JSON, as escape_json writes it. */
static int
EscapedBytes(unsigned char byte)
{
	if (byte == '"' || byte == '\\')
		return 2;
	if (byte >= ' ')
		return 1;
	return strchr("\b\f\n\r\t", byte) ? 2 : 6;
}

/* Return how many bytes at the start of a text take at most max bytes in JSON. */
static int
FittingBytes(const char *start, int length, int max)
{
	int			used = 0;
	int			i;

	for (i = 0; i < length; i++)
	{
		used += EscapedBytes((unsigned char) start[i]);
		if (used > max)
			break;
	}
	return i;
}

/*
 * Cut a text that takes more than max bytes in JSON. Only its first bytes need
 * be there; "all" is its whole length. "reader" names the function that reads it
 * whole, or is NULL.
 */
static char *
CutStart(const char *start, int length, int64 all, int max, const char *reader)
{
	int			fitting = FittingBytes(start, length, max);

	if (fitting == all)
		return pnstrdup(start, length);
	return psprintf("%.*s... (cut: " INT64_FORMAT " bytes in all%s%s%s)", pg_mbcliplen(start, length, fitting), start,
					all, reader ? "; " : "", reader ? reader : "", reader ? " reads it" : "");
}

/* Cut a text that takes more than max bytes in JSON. */
char *
CutText(const char *text, int max, const char *reader)
{
	return CutStart(text, strlen(text), strlen(text), max, reader);
}

/* Do the same for a field of a row, and read only what is shown; NULL for NULL. */
char *
CutField(const struct varlena *field, int max, const char *reader)
{
	int64		all;
	text	   *start;

	if (field == NULL)
		return NULL;
	all = (int64) RawSize(field) - VARHDRSZ;
	start = DatumGetTextPSlice(PointerGetDatum(field), 0, max + 1);
	return CutStart(VARDATA_ANY(start), VARSIZE_ANY_EXHDR(start), all, max, reader);
}

/* Write a reason that is passed on to other plans as the end of a sentence; nothing for NULL. */
char *
BecauseShort(const char *reason)
{
	return Because(reason ? CutText(reason, REASON_TEXT_BYTES, NULL) : NULL);
}

#define SUMMARY_BYTES	100		/* of a string */

/* Describe a value that is not a container: a string by its beginning. */
static char *
ScalarSummary(const char *data, int length)
{
	JEntry		entry;
	int			size;

	memcpy(&entry, data + sizeof(uint32), sizeof(entry));
	if (!JBE_ISSTRING(entry))
		return pstrdup("a number");
	size = Min((int) JBE_OFFLENFLD(entry), length - (int) (sizeof(uint32) + sizeof(JEntry)));
	return CutStart(data + sizeof(uint32) + sizeof(JEntry), size, JBE_OFFLENFLD(entry), SUMMARY_BYTES, NULL);
}

/* Describe a value in a few words, from its first bytes. */
static char *
ValueSummary(const struct varlena *field)
{
	struct varlena *start = (struct varlena *)
		PG_DETOAST_DATUM_SLICE(PointerGetDatum(field), 0, sizeof(uint32) + sizeof(JEntry) + SUMMARY_BYTES + 1);
	uint32		header;

	memcpy(&header, VARDATA_ANY(start), sizeof(header));
	if (header & JB_FSCALAR)
		return ScalarSummary(VARDATA_ANY(start), VARSIZE_ANY_EXHDR(start));
	if (header & JB_FARRAY)
		return psprintf("an array of %d elements", (int) (header & JB_CMASK));
	return psprintf("an object of %d keys", (int) (header & JB_CMASK));
}

/* Return the value of the other argument: room for the value, one entry, or the plan alone. */
static int64
AlsoValue(const char *argument, int64 bytes)
{
	if (strcmp(argument, "max_bytes") == 0)
		return Max(bytes + bytes / 4 + 8000, 32000);
	return strcmp(argument, "max") == 0 ? 1 : 0;
}

/* Build the call that reads a value of this size whole. */
static Jsonb *
ReadingCall(const ReadingFunction *reader, int64 bytes)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "function", reader->function);
	JsonObjectStart(&b, "arguments");
	JsonPutText(&b, reader->argument, reader->id);
	if (reader->also != NULL && *reader->also != '\0')
		JsonPutInt(&b, reader->also, AlsoValue(reader->also, bytes));
	JsonObjectEnd(&b);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build what stands in an answer for a value that is cut. */
static Jsonb *
CutValue(const struct varlena *field, const ReadingFunction *reader)
{
	int64		bytes = (int64) RawSize(field) - VARHDRSZ;
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutBool(&b, "cut", true);
	JsonPutInt(&b, "bytes", bytes);
	JsonPutText(&b, "summary", ValueSummary(field));
	JsonPutJson(&b, "call", ReadingCall(reader, bytes));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/*
 * Check by its header whether a value has certainly more than max bytes as
 * text, so that it need not be read. No value takes more than four times the
 * bytes of its text.
 */
bool
IsFarOver(const struct varlena *field, int64 max)
{
	return (int64) RawSize(field) - VARHDRSZ > 4 * max + 64;
}

/* Return the number of bytes of a value as text. */
int64
JsonTextLength(const Jsonb *value)
{
	char	   *text = JsonToText(value);
	int64		length = strlen(text);

	pfree(text);
	return length;
}

/* Check whether a value has at most max bytes as text. A small one is not written out for that. */
bool
JsonFits(const Jsonb *value, int64 max)
{
	/* no text is so much longer than its value, unless it has numbers of thousands of digits */
	return VARSIZE(value) <= max / 8 || JsonTextLength(value) <= max;
}

/* Return a value, or what stands for it if it has more than max bytes as text; NULL for NULL. */
Jsonb *
CutJson(const struct varlena *field, int max, const ReadingFunction *reader)
{
	Jsonb	   *value;

	if (field == NULL)
		return NULL;
	if (IsFarOver(field, max))
		return CutValue(field, reader);
	value = JsonOf(field);
	return JsonTextLength(value) <= max ? value : CutValue(field, reader);
}

/* Return the size that a value has when it is read, without reading it. */
PG_FUNCTION_INFO_V1(stepwise_json_size);
Datum
stepwise_json_size(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(RawSize((struct varlena *) PG_GETARG_POINTER(0)));
}
