/*
 * encoding.c
 *	  texts in UTF-8, whatever the encoding of the database
 *
 * The audit chain is hashed in UTF-8, so that a copy in another encoding can
 * be verified. A database in another encoding can hold bytes that have no
 * UTF-8 form: any byte in SQL_ASCII, a few in WIN1252. They are refused where
 * they come in: as an argument, as the result of a tool, or by plain SQL. So
 * everything that is stored can be hashed. In a UTF-8 database this costs
 * nothing.
 *
 * Only the conversions of pg_catalog are used, so the search path does not
 * matter.
 */
#include "base/base.h"

#include "catalog/pg_conversion.h"
#include "catalog/pg_namespace_d.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"

#define PART_BYTES	1024		/* converted at once, cut between characters */

static bool
IsAscii(const char *text, int length)
{
	for (int i = 0; i < length; i++)
		if (IS_HIGHBIT_SET(text[i]))
			return false;
	return true;
}

/* Convert a part of a text. Returns how many of its bytes have a UTF-8 form. */
static int
ConvertPart(Oid conversion, const char *part, int length, StringInfo out)
{
	unsigned char converted[(PART_BYTES + 4) * MAX_CONVERSION_GROWTH];
	int			done;

	converted[0] = '\0';
	done = pg_do_encoding_conversion_buf(conversion, GetDatabaseEncoding(), PG_UTF8,
										 (unsigned char *) unconstify(char *, part), length,
										 converted, sizeof(converted), true);
	if (out != NULL)
		appendStringInfoString(out, (char *) converted);
	return done;
}

/*
 * Convert a text up to the first byte that has no UTF-8 form. Returns the
 * number of bytes converted. "out" may be NULL.
 */
static int
Convert(const char *text, int length, StringInfo out)
{
	int			encoding = GetDatabaseEncoding();
	Oid			conversion;
	int			done = 0;

	if (encoding == PG_UTF8 || encoding == PG_SQL_ASCII || IsAscii(text, length))
	{
		done = encoding == PG_SQL_ASCII ? pg_encoding_verifymbstr(PG_UTF8, text, length) : length;
		if (out != NULL)
			appendBinaryStringInfo(out, text, done);
		return done;
	}
	conversion = FindDefaultConversion(PG_CATALOG_NAMESPACE, encoding, PG_UTF8);
	while (OidIsValid(conversion) && done < length)
	{
		int			part = Min(pg_mbcliplen(text + done, length - done, PART_BYTES), length - done);
		int			converted = ConvertPart(conversion, text + done, part, out);

		done += converted;
		if (converted == 0 || converted < part)
			break;
	}
	return done;
}

/* Check whether some bytes have a UTF-8 form. */
static bool
IsUtf8(const char *text, int length)
{
	return GetDatabaseEncoding() == PG_UTF8 || Convert(text, length, NULL) == length;
}

static void
RefuseBytes(const char *text, int length, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_DEFINITION),
			 errmsg("%s contains bytes that have no UTF-8 form", what),
			 errdetail("The database is encoded in %s; the byte 0x%02x cannot be converted.", GetDatabaseEncodingName(),
					   (unsigned char) text[Convert(text, length, NULL)]),
			 errhint("Send text whose characters are in UTF-8; encode binary data, for instance as base64.")));
}

/* Check whether a text has a UTF-8 form. */
bool
TextIsUtf8(const char *text)
{
	return IsUtf8(text, strlen(text));
}

/* Refuse a text that has no UTF-8 form. */
void
CheckUtf8(const char *text, const char *what)
{
	if (text != NULL && !IsUtf8(text, strlen(text)))
		RefuseBytes(text, strlen(text), what);
}

/*
 * Find a string in a value, or a key, that has no UTF-8 form. Returns false if
 * there is none.
 */
static bool
FindBadString(const Jsonb *value, JsonbValue *item)
{
	JsonbIterator *iterator;
	JsonbIteratorToken token;

	if (value == NULL || GetDatabaseEncoding() == PG_UTF8)
		return false;
	iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &value->root));
	while ((token = JsonbIteratorNext(&iterator, item, false)) != WJB_DONE)
		if ((token == WJB_KEY || token == WJB_VALUE || token == WJB_ELEM) && item->type == jbvString &&
			!IsUtf8(item->val.string.val, item->val.string.len))
			return true;
	return false;
}

/* Check whether all strings of a value, keys included, have a UTF-8 form. */
bool
JsonIsUtf8(const Jsonb *value)
{
	JsonbValue	bad;

	return !FindBadString(value, &bad);
}

/* Refuse a value with a string or key that has no UTF-8 form. */
void
CheckJsonUtf8(const Jsonb *value, const char *what)
{
	JsonbValue	bad;

	if (FindBadString(value, &bad))
		RefuseBytes(bad.val.string.val, bad.val.string.len, what);
}

/*
 * Convert a text to UTF-8. A text that has no such form stays as it is: it was
 * stored before this was checked.
 */
const char *
Utf8Form(const char *text)
{
	int			length = strlen(text);
	StringInfoData converted;

	if (GetDatabaseEncoding() == PG_UTF8)
		return text;
	initStringInfo(&converted);
	return Convert(text, length, &converted) == length ? converted.data : text;
}

/*
 * Replace every byte that has no UTF-8 form by a question mark. This is for
 * messages that the caller did not write and cannot correct.
 */
char *
Utf8Clean(const char *text)
{
	char	   *clean = pstrdup(text);
	int			length = strlen(clean);
	int			done = 0;

	while ((done += Convert(clean + done, length - done, NULL)) < length)
		clean[done++] = '?';
	return clean;
}
