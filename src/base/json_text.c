/*
 * json_text.c
 *	  write jsonb values as text
 *
 * PostgreSQL walks through a value with an iterator, copies each string, and
 * escapes it byte by byte. Here the entries of a container are read where they
 * are, in the format that utils/jsonb.h describes, and eight bytes of a string
 * are looked at at once. The text is the same as PostgreSQL's; with assertions,
 * each is compared with it. Digests of values are digests of this text.
 */
#include "base/base.h"

#include "miscadmin.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

/* ---------- strings ---------- */

#define ESCAPED_MAX		6		/* bytes that stand for one byte: \u001f */
#define PIECE			1024	/* bytes of a string for which room is made at once */

#define EACH(byte)		(UINT64CONST(0x0101010101010101) * (byte))
#define ANY_ZERO(word)	(((word) - EACH(0x01)) & ~(word) & EACH(0x80))
#define ANY_BELOW(word, byte)	(((word) - EACH(byte)) & ~(word) & EACH(0x80))

/* Check whether one of eight bytes must be escaped. */
static inline bool
WordIsEscaped(uint64 word)
{
	return (ANY_BELOW(word, ' ') | ANY_ZERO(word ^ EACH('"')) | ANY_ZERO(word ^ EACH('\\'))) != 0;
}

/* Write a byte that must be escaped. Returns the end. */
static char *
PutEscaped(char *to, unsigned char byte)
{
	static const char letters[] = {['\b'] = 'b',['\t'] = 't',['\n'] = 'n',['\f'] = 'f',['\r'] = 'r',['"'] = '"',['\\'] = '\\'};

	*to++ = '\\';
	if (letters[byte] == '\0')
		return to + sprintf(to, "u%04x", byte);
	*to++ = letters[byte];
	return to;
}

/* Write bytes one by one. Returns the end. */
static inline char *
PutBytes(char *to, const char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
	{
		unsigned char byte = from[i];

		if (byte < ' ' || byte == '"' || byte == '\\')
			to = PutEscaped(to, byte);
		else
			*to++ = byte;
	}
	return to;
}

/* Write a piece of a string. Returns the end. */
static char *
PutPiece(char *to, const char *from, size_t size)
{
	uint64		word;

	for (; size >= sizeof(word); from += sizeof(word), size -= sizeof(word))
	{
		memcpy(&word, from, sizeof(word));
		if (WordIsEscaped(word))
			to = PutBytes(to, from, sizeof(word));
		else
		{
			memcpy(to, &word, sizeof(word));
			to += sizeof(word);
		}
	}
	return PutBytes(to, from, size);
}

static void
WriteString(StringInfo text, const char *string, size_t size)
{
	appendStringInfoCharMacro(text, '"');
	while (size > 0)
	{
		size_t		piece = Min(size, PIECE);

		enlargeStringInfo(text, piece * ESCAPED_MAX);
		text->len = PutPiece(text->data + text->len, string, piece) - text->data;
		string += piece;
		size -= piece;
	}
	appendStringInfoCharMacro(text, '"');
}

/* ---------- values ---------- */

static void
WriteNumber(StringInfo text, Numeric number)
{
	char	   *digits = DatumGetCString(DirectFunctionCall1(numeric_out, NumericGetDatum(number)));

	appendStringInfoString(text, digits);
	pfree(digits);
}

static void WriteContainer(StringInfo text, const JsonbContainer *container, bool spaces);

/* Write an entry, the data of which are from here to there. Those of numbers and containers are aligned. */
static void
WriteEntry(StringInfo text, JEntry entry, const char *data, uint32 from, uint32 to, bool spaces)
{
	if (JBE_ISSTRING(entry))
		WriteString(text, data + from, to - from);
	else if (JBE_ISCONTAINER(entry))
		WriteContainer(text, (const JsonbContainer *) (data + INTALIGN(from)), spaces);
	else if (JBE_ISNUMERIC(entry))
		WriteNumber(text, (Numeric) (data + INTALIGN(from)));
	else if (JBE_ISBOOL(entry))
		appendStringInfoString(text, JBE_ISBOOL_TRUE(entry) ? "true" : "false");
	else
		appendStringInfoString(text, "null");
}

/* Write what follows a member or a key. */
static inline void
WriteMark(StringInfo text, char mark, bool spaces)
{
	appendStringInfoCharMacro(text, mark);
	if (spaces)
		appendStringInfoCharMacro(text, ' ');
}

/* Write the entries of a container. An object has those of all keys first. */
static void
WriteEntries(StringInfo text, const JsonbContainer *container, bool spaces)
{
	int			count = JsonContainerSize(container);
	int			keys = JsonContainerIsObject(container) ? count : 0;
	const char *data = (const char *) (container->children + keys + count);
	uint32		key_end = 0;
	uint32		end = getJsonbOffset(container, keys);

	for (int i = 0; i < count; i++)
	{
		uint32		key_begin = key_end;
		uint32		begin = end;

		if (i > 0)
			WriteMark(text, ',', spaces);
		if (keys > 0)
		{
			JBE_ADVANCE_OFFSET(key_end, container->children[i]);
			WriteString(text, data + key_begin, key_end - key_begin);
			WriteMark(text, ':', spaces);
		}
		JBE_ADVANCE_OFFSET(end, container->children[keys + i]);
		WriteEntry(text, container->children[keys + i], data, begin, end, spaces);
	}
}

/* Write a container. A single value is in an array of its own. */
static void
WriteContainer(StringInfo text, const JsonbContainer *container, bool spaces)
{
	bool		is_object = JsonContainerIsObject(container);

	check_stack_depth();
	if (JsonContainerIsScalar(container))
	{
		WriteEntries(text, container, spaces);
		return;
	}
	appendStringInfoCharMacro(text, is_object ? '{' : '[');
	WriteEntries(text, container, spaces);
	appendStringInfoCharMacro(text, is_object ? '}' : ']');
}

/* ---------- for those who write ---------- */

/* Write a jsonb as text, as PostgreSQL does. */
char *
JsonToText(const Jsonb *value)
{
	StringInfoData text;

	initStringInfo(&text);
	enlargeStringInfo(&text, VARSIZE(value));
	WriteContainer(&text, &value->root, true);
	Assert(strcmp(text.data, JsonbToCString(NULL, unconstify(JsonbContainer *, &value->root), VARSIZE(value))) == 0);
	return text.data;
}

/* Append a value as JSON without spaces. */
void
JsonCompact(StringInfo text, const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvBinary:
			WriteContainer(text, value->val.binary.data, false);
			break;
		case jbvString:
			WriteString(text, value->val.string.val, value->val.string.len);
			break;
		case jbvNumeric:
			WriteNumber(text, value->val.numeric);
			break;
		case jbvBool:
			appendStringInfoString(text, value->val.boolean ? "true" : "false");
			break;
		default:
			appendStringInfoString(text, "null");
	}
}
