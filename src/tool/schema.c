/*
 * schema.c
 *	  check arguments of tools against the input schemas of the tools
 *
 * Only a part of JSON Schema is checked: "required", and "type" and "enum" of
 * the top-level properties. The rest of a schema is stored for its readers,
 * and not enforced.
 */
#include "tool/tool.h"

static const char *const SchemaTypes[] = {"string", "number", "integer", "boolean", "array", "object", "null"};

/* ---------- is it a schema? ---------- */

static void
SchemaRefuse(const char *place, const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_DEFINITION),
			 errmsg("input_schema%s%s: %s", *place ? "." : "", place, message),
			 errhint("Give a JSON Schema of an object, such as {\"type\": \"object\", \"required\": [\"region\"], \"properties\": {\"region\": {\"type\": \"string\"}}}.")));
}

static void
CheckSchemaType(const char *place, JsonbValue *type)
{
	char	   *word = type->type == jbvString ? JsonValueText(type) : NULL;

	if (word == NULL || NameIndex(word, SchemaTypes, lengthof(SchemaTypes)) < 0)
		SchemaRefuse(place, psprintf("must be one of %s", WordList(SchemaTypes, lengthof(SchemaTypes))));
}

/* Check a type: a word, or an array of words. */
static void
CheckSchemaTypes(const char *place, JsonbValue *type)
{
	Jsonb	   *types = JsonFromValue(type);
	JsonbValue	element;

	if (!JsonIsArray(types))
		CheckSchemaType(place, type);
	for (int i = 0; JsonGetIndex(types, i, &element); i++)
		CheckSchemaType(place, &element);
}

static void
CheckSchemaProperty(const char *name, JsonbValue *value)
{
	Jsonb	   *property = JsonFromValue(value);
	JsonbValue	part;

	/* true and false are schemas too */
	if (value->type != jbvBool && !JsonIsObject(property))
		SchemaRefuse(psprintf("properties.%s", name), "must be an object");
	if (JsonGet(property, "type", &part))
		CheckSchemaTypes(psprintf("properties.%s.type", name), &part);
	if (JsonGet(property, "enum", &part) && !JsonIsArray(JsonFromValue(&part)))
		SchemaRefuse(psprintf("properties.%s.enum", name), "must be an array");
}

static void
CheckSchemaProperties(const Jsonb *properties)
{
	const char **names;
	int			count;

	if (properties == NULL)
		return;
	if (!JsonIsObject(properties))
		SchemaRefuse("properties", "must be an object");
	names = JsonKeys(properties, &count);
	for (int i = 0; i < count; i++)
	{
		JsonbValue	property;

		JsonGet(properties, names[i], &property);
		CheckSchemaProperty(names[i], &property);
	}
}

static void
CheckSchemaRequired(const Jsonb *required)
{
	JsonbValue	name;

	if (required == NULL)
		return;
	if (!JsonIsArray(required))
		SchemaRefuse("required", "must be an array of names");
	for (int i = 0; JsonGetIndex(required, i, &name); i++)
		if (name.type != jbvString)
			SchemaRefuse(psprintf("required[%d]", i), "must be a name");
}

/* Refuse a schema that is not valid. */
void
CheckInputSchema(const Jsonb *schema)
{
	JsonbValue	type;

	CheckJsonLimits(schema, "input_schema");
	if (!JsonIsObject(schema))
		SchemaRefuse("", "must be an object");
	if (JsonGet(schema, "type", &type) && (type.type != jbvString || strcmp(JsonValueText(&type), "object") != 0))
		SchemaRefuse("type", "must be object");
	CheckSchemaRequired(JsonGetJson(schema, "required"));
	CheckSchemaProperties(JsonGetJson(schema, "properties"));
}

/* ---------- do arguments fit it? ---------- */

/* Note a name at fault, and what is wrong with it. */
static void
Mismatch(List **names, StringInfo why, char *name, const char *what)
{
	*names = lappend(*names, name);
	appendStringInfo(why, "%s\"%s\" %s", why->len ? "; " : "", name, what);
}

static bool
FitsTypes(JsonbValue *value, JsonbValue *type)
{
	Jsonb	   *types = JsonFromValue(type);
	JsonbValue	element;

	if (type->type == jbvString)
		return JsonHasType(value, JsonValueText(type));
	for (int i = 0; JsonGetIndex(types, i, &element); i++)
		if (JsonHasType(value, JsonValueText(&element)))
			return true;
	return false;
}

static bool
FitsEnum(JsonbValue *value, const Jsonb *words)
{
	Jsonb	   *given = JsonFromValue(value);
	JsonbValue	word;

	for (int i = 0; JsonGetIndex(words, i, &word); i++)
		if (JsonEqual(given, JsonFromValue(&word)))
			return true;
	return false;
}

static void
MatchProperty(SchemaFault *fault, StringInfo why, const char *name, const Jsonb *property, JsonbValue *value)
{
	JsonbValue	part;
	StringInfoData wanted;

	initStringInfo(&wanted);
	if (JsonGet(property, "type", &part) && !FitsTypes(value, &part))
	{
		JsonCompact(&wanted, &part);
		Mismatch(&fault->invalid, why, pstrdup(name),
				 psprintf("must be of type %s, not %s", wanted.data, JsonKindName(value)));
	}
	else if (JsonGet(property, "enum", &part) && !FitsEnum(value, JsonFromValue(&part)))
	{
		JsonCompact(&wanted, &part);
		Mismatch(&fault->invalid, why, pstrdup(name), psprintf("must be one of %s", wanted.data));
	}
}

/*
 * Compare arguments with a schema. Missing names are listed in the order of
 * the schema.
 */
bool
SchemaMatch(const Jsonb *schema, const Jsonb *arguments, SchemaFault *fault)
{
	Jsonb	   *required = JsonGetJson(schema, "required");
	Jsonb	   *properties = JsonGetJson(schema, "properties");
	const char **names;
	int			count;
	JsonbValue	name;
	JsonbValue	value;
	StringInfoData why;

	initStringInfo(&why);
	for (int i = 0; JsonGetIndex(required, i, &name); i++)
		if (!JsonGet(arguments, JsonValueText(&name), &value))
			Mismatch(&fault->missing, &why, JsonValueText(&name), "is missing");
	names = JsonKeys(properties, &count);
	for (int i = 0; i < count; i++)
		if (JsonGet(arguments, names[i], &value))
			MatchProperty(fault, &why, names[i], JsonGetJson(properties, names[i]), &value);
	fault->why = why.data;
	return fault->missing == NIL && fault->invalid == NIL;
}
