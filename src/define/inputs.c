/*
 * inputs.c
 *	  the inputs that a workflow declares, and their values
 *
 * A declaration without a type takes any value. An input is required unless it
 * has a default. With "required": false and no default, it may be left out;
 * references to it then have no value.
 */
#include "define/define.h"

typedef struct InputDeclaration
{
	char	   *type;			/* NULL: any */
	int			required;		/* -1: not said */
	char	   *description;
	Jsonb	   *fallback;		/* its default, or NULL */
} InputDeclaration;

/* the kinds of JSON, and integer */
static const char *const InputTypes[] = {"string", "number", "integer", "boolean", "array", "object"};

/* Read the type of an input. */
static void
ReadType(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	ReadWord(reader, place, value, InputTypes, lengthof(InputTypes), field);
}

/* Read the default of an input. */
static void
ReadDefault(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	*(Jsonb **) field = JsonFromValue(value);
}

static const KeyRule DeclarationKeys[] = {
	{"type", ReadType, offsetof(InputDeclaration, type), false},
	{"required", ReadFlag, offsetof(InputDeclaration, required), false},
	{"default", ReadDefault, offsetof(InputDeclaration, fallback), false},
	{"description", ReadNote, offsetof(InputDeclaration, description), false},
};

/* ---------- declarations ---------- */

/* Check that a reference can name the input, as in ${inputs.NAME.path}. */
static void
CheckInputName(Reader *reader, const Place *place)
{
	if (place->key[0] == '\0' || strpbrk(place->key, ".{}$ \t\r\n\"") != NULL || strcmp(place->key, "__internal__") == 0)
		FaultAt(reader, place, ERRCODE_INVALID_DEFINITION,
				"Use letters, digits, \"_\" and \"-\".",
				"\"%s\" cannot be the name of an input", place->key);
}

static void
ReadDeclaration(Reader *reader, const Place *place, JsonbValue *value)
{
	InputDeclaration input = {.required = -1};
	JsonbValue	fallback;

	CheckInputName(reader, place);
	ReadKeys(reader, place, value, DeclarationKeys, lengthof(DeclarationKeys), &input, "an input");
	if (!input.fallback)
		return;
	JsonToValue(input.fallback, &fallback);
	if (!JsonHasType(&fallback, input.type))
		FaultAt(reader, &((Place) {.up = place, .key = "default"}), ERRCODE_INVALID_DEFINITION,
				"A default has the type of its input.",
				"must be of type %s, not %s", input.type, JsonKindName(&fallback));
}

/* Read the inputs of a workflow. The field gets the declarations as they are. */
void
ReadInputs(Reader *reader, const Place *place, JsonbValue *value, void *field)
{
	JsonbIterator *iterator;
	Place		member = {.up = place};
	JsonbIteratorToken token;

	if (!ExpectKind(reader, place, value, "object"))
	{
		reader->inputs_unknown = true;
		return;
	}
	*(Jsonb **) field = JsonFromValue(value);
	iterator = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&iterator, value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			member.key = JsonValueText(value);
		else if (token == WJB_VALUE)
			ReadDeclaration(reader, &member, value);
	}
}

/* ---------- values ---------- */

/* Read a declaration that was accepted before. */
static void
LoadDeclaration(const Jsonb *declarations, const char *name, InputDeclaration *input)
{
	Jsonb	   *declared = JsonGetJson(declarations, name);
	JsonbValue	required;

	input->type = JsonGetText(declared, "type");
	input->fallback = JsonGetJson(declared, "default");
	input->required = input->fallback == NULL;
	if (JsonGet(declared, "required", &required) && required.type == jbvBool)
		input->required = required.val.boolean;
}

/* Put the value of a declared input, or its default, into the object. */
static void
AcceptInput(JsonBuilder *b, const char *name, const InputDeclaration *input, const Jsonb *values, Faults *faults)
{
	char	   *place = psprintf("inputs.%s", name);
	JsonbValue	value;

	if (!JsonGet(values, name, &value))
	{
		if (input->fallback)
			JsonPutJson(b, name, input->fallback);
		else if (input->required)
			FaultAdd(faults, ERRCODE_INVALID_DEFINITION, place,
					 psprintf("Give a value%s%s.", input->type ? " of type " : "", input->type ? input->type : ""),
					 "required input \"%s\" is missing", name);
	}
	else if (!JsonHasType(&value, input->type))
		FaultAdd(faults, ERRCODE_INVALID_DEFINITION, place, KindHint(input->type),
				 "must be of type %s, not %s", input->type, JsonKindName(&value));
	else if (input->required && value.type == jbvNull)
		FaultAdd(faults, ERRCODE_INVALID_DEFINITION, place, "Give a value.",
				 "required input \"%s\" must not be null", name);
	else if (input->required && value.type == jbvString && value.val.string.len == 0)
		FaultAdd(faults, ERRCODE_INVALID_DEFINITION, place, "Give a value.",
				 "required input \"%s\" must not be empty", name);
	else
		JsonPutValue(b, name, &value);
}

/* Report values that are not declared. */
static void
RefuseUndeclared(const Jsonb *declarations, const Jsonb *values, Faults *faults)
{
	int			ndeclared;
	int			ngiven;
	const char **declared = JsonKeys(declarations, &ndeclared);
	const char **given = JsonKeys(values, &ngiven);
	JsonbValue	found;

	for (int i = 0; i < ngiven; i++)
	{
		if (!JsonGet(declarations, given[i], &found))
			FaultAdd(faults, ERRCODE_INVALID_DEFINITION, psprintf("inputs.%s", given[i]),
					 WordHint(faults, given[i], declared, ndeclared, "inputs"),
					 "input \"%s\" is not declared", given[i]);
	}
}

/*
 * Check values against the declarations, and add the defaults. Either may be
 * NULL.
 */
Jsonb *
InputsAccept(const Jsonb *declarations, const Jsonb *values, Faults *faults)
{
	JsonBuilder b = {0};
	int			count;
	const char **names = JsonKeys(declarations, &count);
	char	   *excess = values ? JsonExcess(values) : NULL;
	Jsonb	   *accepted;

	if (values && !JsonIsObject(values))
	{
		FaultAdd(faults, ERRCODE_INVALID_DEFINITION, "inputs", "Give an object of names and values.",
				 "must be an object");
		return JsonEmptyObject();
	}
	if (excess)
	{
		FaultAdd(faults, ERRCODE_VALUE_TOO_LARGE, "inputs", EXCESS_HINT, "%s", excess);
		return JsonEmptyObject();
	}

	JsonObjectStart(&b, NULL);
	for (int i = 0; i < count; i++)
	{
		InputDeclaration input;

		LoadDeclaration(declarations, names[i], &input);
		AcceptInput(&b, names[i], &input, values, faults);
	}
	JsonObjectEnd(&b);
	RefuseUndeclared(declarations, values, faults);
	accepted = JsonFinish(&b);
	excess = JsonExcess(accepted);
	if (excess)
		FaultAdd(faults, ERRCODE_VALUE_TOO_LARGE, "inputs", EXCESS_HINT, "with the defaults, what is given %s", excess);
	return accepted;
}
