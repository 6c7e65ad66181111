/*
 * condition_evaluate.c
 *	  evaluate compiled conditions
 *
 * The compiled path reads a document that ConditionDocument makes of the values
 * of the operands. The value of operand 0 is under "0"; it is left out if it is
 * missing. jsonpath compares neither arrays nor objects. For these the document
 * has two more keys: "=0" is a number that is the same for operands that are
 * equal (null for scalars), and "in0" lists the numbers of the operands that
 * are elements of array 0.
 *
 * Nothing here raises an error for the data: the result is undecided.
 *
 * Memory: everything returned lives in the current memory context.
 */
#include "define/define.h"

#include "miscadmin.h"

#define MAX_EXPLAINED	5		/* operands named in an explanation */

/* Return the container of an array or object; NULL for a scalar. */
static JsonbContainer *
ContainerOf(JsonbValue *value)
{
	if (value->type == jbvArray || value->type == jbvObject)
		return &JsonbValueToJsonb(value)->root;
	return value->type == jbvBinary ? value->val.binary.data : NULL;
}

/* Find the first container that equals this one; -1: none. */
static int
FindContainer(JsonbContainer **containers, int count, JsonbContainer *wanted)
{
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (containers[i] && compareJsonbContainers(containers[i], wanted) == 0)
			return i;
	}
	return -1;
}

/* Put the numbers of the operands that are elements of an array, each once. */
static void
PutElements(JsonBuilder *b, int index, JsonbContainer **containers, int count)
{
	JsonbIterator *iterator = JsonbIteratorInit(containers[index]);
	bool	   *seen = palloc0(sizeof(bool) * count);
	JsonbValue	element;
	JsonbIteratorToken token;

	JsonArrayStart(b, psprintf("in%d", index));
	while ((token = JsonbIteratorNext(&iterator, &element, true)) != WJB_DONE)
	{
		int			found;

		if (token != WJB_ELEM || element.type != jbvBinary)
			continue;
		found = FindContainer(containers, count, element.val.binary.data);
		if (found < 0 || seen[found])
			continue;
		seen[found] = true;
		JsonPutInt(b, NULL, found);
	}
	JsonArrayEnd(b);
}

/* Make the document of the operands' values. NULL stands for a missing value. */
Jsonb *
ConditionDocument(int noperands, JsonbValue **values)
{
	JsonbContainer **containers = palloc0(sizeof(JsonbContainer *) * Max(noperands, 1));
	JsonBuilder b = {0};

	for (int i = 0; i < noperands; i++)
		containers[i] = values[i] ? ContainerOf(values[i]) : NULL;
	JsonObjectStart(&b, NULL);
	for (int i = 0; i < noperands; i++)
	{
		if (values[i] == NULL)
			continue;
		JsonPutValue(&b, psprintf("%d", i), values[i]);
		if (containers[i])
			JsonPutInt(&b, psprintf("=%d", i), FindContainer(containers, noperands, containers[i]));
		else
			JsonPutNull(&b, psprintf("=%d", i));
		if (containers[i] && JsonContainerIsArray(containers[i]))
			PutElements(&b, i, containers, noperands);
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Say which operands are missing or, if none is, of which kinds they are. */
static char *
ExplainOperands(const Jsonb *document, int noperands, char **names)
{
	StringInfoData missing;
	StringInfoData kinds;
	int			nmissing = 0;

	initStringInfo(&missing);
	initStringInfo(&kinds);
	for (int i = 0; i < noperands; i++)
	{
		JsonbValue	value;

		if (JsonGet(document, psprintf("%d", i), &value))
		{
			if (i < MAX_EXPLAINED)
				appendStringInfo(&kinds, "%s${%s} is %s", i == 0 ? "" : ", ", names[i],
								 value.type == jbvNull ? "null" : psprintf("of type %s", JsonKindName(&value)));
		}
		else if (nmissing++ < MAX_EXPLAINED)
			appendStringInfo(&missing, "%s${%s}", nmissing == 1 ? "" : ", ", names[i]);
	}
	if (nmissing > 0)
		return psprintf("%s %s no value", missing.data, nmissing == 1 ? "has" : "have");
	return psprintf("these values cannot be compared: %s", kinds.data);
}

/*
 * Evaluate a compiled condition over its document. "names" has the names of
 * the operands, for messages; a condition that is jsonpath as written has
 * none. If the result is undecided, "why" says why.
 */
ConditionResult
ConditionEvaluate(Datum path, const Jsonb *document, int noperands, char **names, char **why)
{
	ConditionResult result = PathMatch(path, document, why);

	if (result == CONDITION_UNDECIDED && *why == NULL)
		*why = noperands > 0 ? ExplainOperands(document, noperands, names) :
			pstrdup("it does not come to true or false");
	return result;
}
