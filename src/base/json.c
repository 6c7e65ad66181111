/*
 * json.c
 *	  read, compare and merge jsonb values
 *
 * Everything returned lives in the current memory context. A JsonbValue that
 * points into a Jsonb lives as long as that Jsonb.
 */
#include "base/base.h"

#include "miscadmin.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"

/*
 * Look up a key in an object. Returns false if it is not an object or has no
 * such key.
 */
bool
JsonGet(const Jsonb *object, const char *key, JsonbValue *value)
{
	if (object == NULL || !JB_ROOT_IS_OBJECT(object))
		return false;
	return getKeyJsonValueFromContainer(unconstify(JsonbContainer *, &object->root),
										key, strlen(key), value) != NULL;
}

/* Look up a string in an object; NULL if there is none. */
char *
JsonGetText(const Jsonb *object, const char *key)
{
	JsonbValue	value;

	if (!JsonGet(object, key, &value) || value.type != jbvString)
		return NULL;
	return JsonValueText(&value);
}

/* Look up a value in an object; NULL if there is none. */
Jsonb *
JsonGetJson(const Jsonb *object, const char *key)
{
	JsonbValue	value;

	return JsonGet(object, key, &value) ? JsonFromValue(&value) : NULL;
}

/*
 * Look up an element of an array. Returns false if it is not an array or has
 * no such element.
 */
bool
JsonGetIndex(const Jsonb *array, int index, JsonbValue *value)
{
	JsonbValue *found;

	if (array == NULL || !JsonIsArray(array) || index < 0)
		return false;
	found = getIthJsonbValueFromContainer(unconstify(JsonbContainer *, &array->root), index);
	if (found == NULL)
		return false;
	*value = *found;
	return true;
}

/* Make a jsonb of a value. */
Jsonb *
JsonFromValue(JsonbValue *value)
{
	return JsonbValueToJsonb(value);
}

/* Make a value of a jsonb; it lives as long as the jsonb. */
void
JsonToValue(const Jsonb *json, JsonbValue *value)
{
	if (json == NULL)
		value->type = jbvNull;
	else if (JB_ROOT_IS_SCALAR(json))
		JsonbExtractScalar(unconstify(JsonbContainer *, &json->root), value);
	else
		JsonbToJsonbValue(unconstify(Jsonb *, json), value);
}

/* Read a jsonb from a field of a row, perhaps toasted; NULL for NULL. */
Jsonb *
JsonOf(const struct varlena *field)
{
	return field ? DatumGetJsonbP(PointerGetDatum(field)) : NULL;
}

/* Read a whole number from a member of an object; 0 if it is no number. */
int
JsonGetInt(const Jsonb *object, const char *key)
{
	JsonbValue	value;

	if (!JsonGet(object, key, &value) || value.type != jbvNumeric)
		return 0;
	return DatumGetInt32(DirectFunctionCall1(numeric_int4, NumericGetDatum(value.val.numeric)));
}

/* List the texts in an array that is a member of an object. */
List *
JsonGetTexts(const Jsonb *object, const char *key)
{
	Jsonb	   *array = JsonGetJson(object, key);
	List	   *texts = NIL;
	JsonbValue	value;

	if (array == NULL || !JsonIsArray(array))
		return NIL;
	for (int i = 0; JsonGetIndex(array, i, &value); i++)
		if (value.type == jbvString)
			texts = lappend(texts, JsonValueText(&value));
	return texts;
}

/* Read a text from a field of a row, perhaps toasted; NULL for NULL. */
char *
TextOf(const struct varlena *field)
{
	return field ? text_to_cstring((const text *) field) : NULL;
}

/* Collect the keys of an object; there are none if it is not an object. */
const char **
JsonKeys(const Jsonb *object, int *count)
{
	const char **keys = palloc(sizeof(char *) * (JsonIsObject(object) ? JB_ROOT_COUNT(object) + 1 : 1));
	JsonbIterator *iterator;
	JsonbValue	value;
	JsonbIteratorToken token;

	*count = 0;
	if (!JsonIsObject(object))
		return keys;
	iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &object->root));
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			keys[(*count)++] = JsonValueText(&value);
	}
	return keys;
}

/* Read a string value as a C string. */
char *
JsonValueText(const JsonbValue *value)
{
	if (value->type != jbvString)
		elog(ERROR, "expected a JSON string, not %s", JsonKindName(value));
	return pnstrdup(value->val.string.val, value->val.string.len);
}

/* Name the kind of a value. */
const char *
JsonKindName(const JsonbValue *value)
{
	switch (value->type)
	{
		case jbvNull:
			return "null";
		case jbvString:
			return "string";
		case jbvNumeric:
			return "number";
		case jbvBool:
			return "boolean";
		case jbvArray:
			return "array";
		case jbvObject:
			return "object";
		case jbvBinary:
			return JsonContainerIsObject(value->val.binary.data) ? "object" : "array";
		default:
			return "value";
	}
}

static bool
NumberIsIntegral(const JsonbValue *value)
{
	Datum		number = NumericGetDatum(value->val.numeric);
	Datum		whole = DirectFunctionCall2(numeric_trunc, number, Int32GetDatum(0));

	return DatumGetBool(DirectFunctionCall2(numeric_eq, number, whole));
}

/* Check whether a value has a type; NULL means any type. */
bool
JsonHasType(const JsonbValue *value, const char *type)
{
	if (type == NULL)
		return true;
	if (strcmp(type, "integer") == 0)
		return value->type == jbvNumeric && NumberIsIntegral(value);
	return strcmp(type, JsonKindName(value)) == 0;
}

/* Check whether a jsonb is an object. */
bool
JsonIsObject(const Jsonb *value)
{
	return value != NULL && JB_ROOT_IS_OBJECT(value);
}

/* Check whether a jsonb is an array. */
bool
JsonIsArray(const Jsonb *value)
{
	return value != NULL && JB_ROOT_IS_ARRAY(value) && !JB_ROOT_IS_SCALAR(value);
}

/* Compare two values. */
bool
JsonEqual(const Jsonb *a, const Jsonb *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return compareJsonbContainers(unconstify(JsonbContainer *, &a->root),
								  unconstify(JsonbContainer *, &b->root)) == 0;
}

/* Merge two objects. If both have a key, the value of the second one stays. */
Jsonb *
JsonMerge(const Jsonb *a, const Jsonb *b)
{
	JsonBuilder builder = {0};

	JsonObjectStart(&builder, NULL);
	if (JsonIsObject(a))
		JsonPutMembers(&builder, a);
	if (JsonIsObject(b))
		JsonPutMembers(&builder, b);
	JsonObjectEnd(&builder);
	return JsonFinish(&builder);
}

/*
 * Merge two values, objects at every depth. Anything else in the second one
 * replaces what the first one has.
 */
Jsonb *
JsonMergeDeep(const Jsonb *a, const Jsonb *b)
{
	JsonBuilder builder = {0};
	JsonbIterator *iterator;
	JsonbValue	value;
	JsonbIteratorToken token;

	check_stack_depth();
	if (!JsonIsObject(a) || !JsonIsObject(b))
		return unconstify(Jsonb *, b);
	JsonObjectStart(&builder, NULL);
	JsonPutMembers(&builder, a);
	iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &b->root));
	while ((token = JsonbIteratorNext(&iterator, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
		{
			char	   *key = JsonValueText(&value);

			JsonPutJson(&builder, key, JsonMergeDeep(JsonGetJson(a, key), JsonGetJson(b, key)));
		}
	}
	JsonObjectEnd(&builder);
	return JsonFinish(&builder);
}

/* Make an empty object. */
Jsonb *
JsonEmptyObject(void)
{
	Jsonb	   *object = palloc(sizeof(Jsonb));

	SET_VARSIZE(object, sizeof(Jsonb));
	object->root.header = JB_FOBJECT;
	return object;
}

/* Make an object of one member. */
Jsonb *
JsonObjectOf(const char *key, const Jsonb *value)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, key, value);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Make an object of one string. */
Jsonb *
JsonTextOf(const char *key, const char *value)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, key, value);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Make a JSON null. */
Jsonb *
JsonNull(void)
{
	JsonbValue	value;

	value.type = jbvNull;
	return JsonFromValue(&value);
}

/* Check whether a value is a JSON null, or NULL. */
bool
JsonIsNull(const Jsonb *json)
{
	JsonbValue	value;

	JsonToValue(json, &value);
	return value.type == jbvNull;
}

/* Copy a value. */
Jsonb *
JsonCopy(const Jsonb *value)
{
	return memcpy(palloc(VARSIZE(value)), value, VARSIZE(value));
}

/* Parse a text, which must be JSON. */
Jsonb *
JsonParse(const char *text)
{
	return DatumGetJsonbP(DirectFunctionCall1(jsonb_in, CStringGetDatum(text)));
}

/* Write a string as it is, and any other value as compact JSON. */
char *
JsonScalarText(const JsonbValue *value)
{
	StringInfoData text;

	if (value->type == jbvString)
		return JsonValueText(value);
	initStringInfo(&text);
	JsonCompact(&text, value);
	return text.data;
}
