/*
 * convert.c
 *	  turn JSON into values of SQL types, and answers into JSON
 *
 * A value that does not fit its type is no error here: the caller knows the
 * name of the argument, and raises it.
 */
#include "api/api.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/syscache.h"

/* ---------- from JSON ---------- */

static bool
ToJson(JsonbValue *value, Datum *result)
{
	*result = JsonbPGetDatum(JsonFromValue(value));
	return true;
}

static bool
ToText(JsonbValue *value, Datum *result)
{
	if (value->type != jbvString)
		return false;
	*result = PointerGetDatum(cstring_to_text_with_len(value->val.string.val, value->val.string.len));
	return true;
}

static bool
ToBoolean(JsonbValue *value, Datum *result)
{
	if (value->type != jbvBool)
		return false;
	*result = BoolGetDatum(value->val.boolean);
	return true;
}

static bool
ToInteger(JsonbValue *value, Datum *result)
{
	bool		overflow = false;

	if (!JsonHasType(value, "integer"))
		return false;
	*result = Int32GetDatum(numeric_int4_opt_error(value->val.numeric, &overflow));
	return !overflow;
}

static bool
ToNumber(JsonbValue *value, Datum *result)
{
	if (value->type != jbvNumeric)
		return false;
	/* a number that is too large becomes infinite; the function refuses it */
	*result = DirectFunctionCall1(numeric_float8_no_overflow, NumericGetDatum(value->val.numeric));
	return true;
}

static bool
ToUuid(JsonbValue *value, Datum *result)
{
	return value->type == jbvString && InputSafe(uuid_in, JsonValueText(value), result);
}

static bool
ToInterval(JsonbValue *value, Datum *result)
{
	return value->type == jbvString && InputSafe(interval_in, JsonValueText(value), result);
}

static bool
ToTime(JsonbValue *value, Datum *result)
{
	return value->type == jbvString && InputSafe(timestamptz_in, JsonValueText(value), result);
}

typedef struct Convertible
{
	Oid			type;
	bool		(*read) (JsonbValue *value, Datum *result);
	const char *wanted;
	const char *example;
} Convertible;

static const Convertible Convertibles[] = {
	{JSONBOID, ToJson, "any JSON", "{}"},
	{TEXTOID, ToText, "a string", "\"some text\""},
	{BOOLOID, ToBoolean, "true or false", "true"},
	{INT4OID, ToInteger, "an integer of at most 2147483647", "3"},
	{FLOAT8OID, ToNumber, "a number", "0.8"},
	{UUIDOID, ToUuid, "a string with a UUID", "\"00000000-0000-7000-8000-000000000001\""},
	{INTERVALOID, ToInterval, "a string with an interval", "\"10 minutes\""},
	{TIMESTAMPTZOID, ToTime, "a string with a time", "\"2026-01-31T12:00:00Z\""}
};

static const Convertible *
ConvertibleOf(Oid type)
{
	for (size_t i = 0; i < lengthof(Convertibles); i++)
		if (Convertibles[i].type == type)
			return &Convertibles[i];
	return NULL;
}

static bool
ToEnum(JsonbValue *value, Oid type, Datum *result)
{
	Oid			label;

	if (value->type != jbvString || value->val.string.len >= NAMEDATALEN)
		return false;
	label = GetSysCacheOid2(ENUMTYPOIDNAME, Anum_pg_enum_oid, ObjectIdGetDatum(type), CStringGetDatum(JsonValueText(value)));
	*result = ObjectIdGetDatum(label);
	return OidIsValid(label);
}

static bool
ToArray(JsonbValue *value, Oid element_type, Datum *result)
{
	Jsonb	   *array = JsonFromValue(value);
	int			count = JsonIsArray(array) ? JB_ROOT_COUNT(array) : -1;
	Datum	   *elements = palloc(sizeof(Datum) * Max(count, 1));
	JsonbValue	element;
	int16		length;
	bool		byval;
	char		align;

	for (int i = 0; i < count; i++)
		if (!JsonGetIndex(array, i, &element) || !JsonToDatum(&element, element_type, &elements[i]))
			return false;
	get_typlenbyvalalign(element_type, &length, &byval, &align);
	if (count >= 0)
		*result = PointerGetDatum(construct_array(elements, count, element_type, length, byval, align));
	return count >= 0;
}

/* Turn JSON into a value of a type. Returns false if it does not fit. */
bool
JsonToDatum(JsonbValue *value, Oid type, Datum *result)
{
	const Convertible *convertible = ConvertibleOf(type);

	if (convertible != NULL)
		return convertible->read(value, result);
	if (OidIsValid(get_element_type(type)))
		return ToArray(value, get_element_type(type), result);
	return ToEnum(value, type, result);
}

/* ---------- what a type wants ---------- */

static char *
EnumLabels(Oid type)
{
	CatCList   *list = SearchSysCacheList1(ENUMTYPOIDNAME, ObjectIdGetDatum(type));
	const char **labels = palloc(sizeof(char *) * Max(list->n_members, 1));
	int			count = list->n_members;

	for (int i = 0; i < count; i++)
		labels[i] = pstrdup(NameStr(((Form_pg_enum) GETSTRUCT(&list->members[i]->tuple))->enumlabel));
	ReleaseSysCacheList(list);
	return WordList(labels, count);
}

/* Say which JSON a type wants. */
char *
TypeWants(Oid type)
{
	const Convertible *convertible = ConvertibleOf(type);

	if (convertible != NULL)
		return pstrdup(convertible->wanted);
	if (OidIsValid(get_element_type(type)))
		return psprintf("an array, each element %s", TypeWants(get_element_type(type)));
	return psprintf("one of these strings: %s", EnumLabels(type));
}

/* Show a value of a type as JSON. */
char *
TypeExample(Oid type)
{
	const Convertible *convertible = ConvertibleOf(type);
	char	   *label;

	if (convertible != NULL)
		return pstrdup(convertible->example);
	if (OidIsValid(get_element_type(type)))
		return psprintf("[%s]", TypeExample(get_element_type(type)));
	label = EnumLabels(type);
	return psprintf("\"%.*s\"", (int) strcspn(label, ","), label);
}

/* ---------- to JSON ---------- */

/*
 * Turn the answer of a function into JSON. Types that JSON does not have
 * become strings.
 */
Jsonb *
DatumToJson(Datum value, Oid type)
{
	JsonbValue	scalar;
	Oid			output;
	bool		is_varlena;

	switch (type)
	{
		case JSONBOID:
			return DatumGetJsonbP(value);
		case VOIDOID:
			return JsonNull();
		case BOOLOID:
			scalar.type = jbvBool;
			scalar.val.boolean = DatumGetBool(value);
			return JsonFromValue(&scalar);
		case INT4OID:
			scalar.type = jbvNumeric;
			scalar.val.numeric = int64_to_numeric(DatumGetInt32(value));
			return JsonFromValue(&scalar);
		default:
			getTypeOutputInfo(type, &output, &is_varlena);
			scalar.type = jbvString;
			scalar.val.string.val = OidOutputFunctionCall(output, value);
			scalar.val.string.len = strlen(scalar.val.string.val);
			return JsonFromValue(&scalar);
	}
}
