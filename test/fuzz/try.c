/*
 * try.c
 *	  single conditions and references, for the tests in units.sql
 */
#include "fuzz.h"

PG_FUNCTION_INFO_V1(try_condition);
PG_FUNCTION_INFO_V1(try_reference);

static Datum
FaultText(const ParseFault *fault)
{
	return PointerGetDatum(cstring_to_text(psprintf("%d: %s%s%s", fault->column, fault->message,
													fault->hint ? " | " : "", fault->hint ? fault->hint : "")));
}

/*
 * try_condition(source text, "values" jsonb, branching boolean): values is
 * {"inputs.a": 1, …}, or the document of a condition that is jsonpath. The
 * answer is true, false, "undecided: why" or "column: fault | hint".
 */
Datum
try_condition(PG_FUNCTION_ARGS)
{
	char	   *source = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Jsonb	   *given = PG_GETARG_JSONB_P(1);
	ParseFault	fault;
	Condition  *condition = ConditionCompile(source, PG_GETARG_BOOL(2), &fault);
	JsonbValue **values;
	char	   *why;
	ConditionResult result;

	if (condition == NULL)
		return FaultText(&fault);
	values = palloc0(sizeof(JsonbValue *) * Max(condition->noperands, 1));
	for (int i = 0; i < condition->noperands; i++)
	{
		values[i] = palloc(sizeof(JsonbValue));
		if (!JsonGet(given, condition->operands[i]->source, values[i]))
			values[i] = NULL;
	}
	result = ConditionEvaluate(condition->path, condition->raw ? given : ConditionDocument(condition->noperands, values),
							   condition->noperands, OperandNames(condition), &why);
	PG_RETURN_TEXT_P(cstring_to_text(why ? psprintf("undecided: %s", why) : TruthName[result]));
}

static char *
ReferenceText(const Reference *reference)
{
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfo(&text, "<%d", reference->root);
	for (int i = 0; i < reference->nsteps; i++)
		appendStringInfo(&text, " step %s", reference->steps[i]);
	if (reference->root == REF_STEPS)
		appendStringInfo(&text, " field %d", reference->field);
	for (int i = 0; i < reference->npath; i++)
		appendStringInfo(&text, " /%s", reference->path[i]);
	if (reference->fallback)
		appendStringInfo(&text, " else %s", JsonToText(reference->fallback));
	appendStringInfo(&text, " @%d>", reference->column);
	return text.data;
}

/* try_reference(text): literals in brackets, references by their parts; or "column: fault | hint" */
Datum
try_reference(PG_FUNCTION_ARGS)
{
	ParseFault	fault;
	List	   *parts = ReferenceScan(text_to_cstring(PG_GETARG_TEXT_PP(0)), false, &fault);
	StringInfoData text;
	ListCell   *cell;

	if (fault.message)
		return FaultText(&fault);
	initStringInfo(&text);
	foreach(cell, parts)
	{
		TextPart   *part = lfirst(cell);

		appendStringInfoString(&text, part->literal ? psprintf("[%s]", part->literal) : ReferenceText(part->reference));
	}
	PG_RETURN_TEXT_P(cstring_to_text(text.data));
}
