/*
 * resolve.c
 *	  find the values of references, and fill templates with them
 *
 * A lookup reads the rows that a reference names: a step by its name or
 * binding, a nested plan by its parent step. A template is filled in one pass:
 * a value that looks like a reference is not resolved again.
 *
 * If a reference cannot be resolved, that is a ResolveFault and not an error,
 * because it usually becomes a pause reason. Functions that return bool return
 * false on a fault. Only the first fault is kept; its message also says what is
 * wrong with the other references of the same string.
 *
 * Memory: each lookup has a context of its own; see ValueOfReference.
 */
#include "engine/engine.h"

#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/memutils.h"

#define KEYS_SHOWN	10			/* in a message */
#define KEY_BYTES_SHOWN	64		/* of each key */
#define FAULT_BYTES_SHOWN	1000	/* no more faults of a string are added to a message of this size */
#define OUTPUTS_LIMIT	16		/* limit for the outputs of a plan, in multiples of the limit for a result */

/* one resolution of a template or a condition */
typedef struct Resolver
{
	Call	   *call;
	PlanRow    *plan;
	StepRow    *completed;		/* branches only: the step that completed; otherwise NULL */
	bool		lenient;		/* a string that cannot be filled becomes null */
	bool		sketch;			/* a string that cannot be filled shows its references as <…> */
	ResolveFault *fault;		/* the first fault is stored here */
	size_t		filled;			/* bytes filled in so far */
} Resolver;

/* ---------- faults ---------- */

/* Store a fault unless there is one already. Returns false, for the caller to return. */
static bool
Fault(Resolver *r, ResolveProblem problem, char *message)
{
	if (r->fault->problem == RESOLVE_FINE)
	{
		r->fault->problem = problem;
		r->fault->message = message;
	}
	return false;
}

/* Store a fault about a value that comes from this step. */
static bool
FaultOfStep(Resolver *r, ResolveProblem problem, const Reference *ref, const StepRow *step, char *message)
{
	if (r->fault->problem == RESOLVE_FINE)
	{
		r->fault->asked_for = ref->steps[ref->nsteps - 1];
		r->fault->producing_step = step->name;
		r->fault->producer = unconstify(StepRow *, step);
	}
	return Fault(r, problem, message);
}

/* Describe the value in which a key or an index was not found. */
static char *
DescribeValue(const JsonbValue *value)
{
	StringInfoData text;
	JsonbIterator *iterator;
	JsonbValue	key;
	JsonbIteratorToken token;
	int			count = 0;

	if (value->type != jbvBinary)
		return psprintf("there is %s %s", strchr("aeiou", JsonKindName(value)[0]) ? "an" : "a", JsonKindName(value));
	if (JsonContainerIsArray(value->val.binary.data))
		return psprintf("there is an array of %u elements", JsonContainerSize(value->val.binary.data));
	initStringInfo(&text);
	iterator = JsonbIteratorInit(value->val.binary.data);
	while ((token = JsonbIteratorNext(&iterator, &key, true)) != WJB_DONE)
		if (token == WJB_KEY && ++count <= KEYS_SHOWN)
			appendStringInfo(&text, "%s%.*s", text.len ? ", " : "",
							 pg_mbcliplen(key.val.string.val, key.val.string.len, KEY_BYTES_SHOWN), key.val.string.val);
	if (count == 0)
		return pstrdup("there is an empty object");
	if (count > KEYS_SHOWN)
		appendStringInfo(&text, ", and %d more", count - KEYS_SHOWN);
	return psprintf("keys there: %s", text.data);
}

/* ---------- walking into a value ---------- */

/* Read a segment as an array index: digits without leading zeros. */
static bool
IsIndex(const char *segment, uint32 *index)
{
	char	   *end;
	unsigned long number;

	if (*segment < '0' || *segment > '9' || (*segment == '0' && segment[1] != '\0') || strlen(segment) > 9)
		return false;
	number = strtoul(segment, &end, 10);
	*index = (uint32) number;
	return *end == '\0';
}

/* Go down one segment: to a key of an object, or to an index of an array. */
static bool
WalkSegment(JsonbValue *value, const char *segment)
{
	JsonbContainer *container;
	JsonbValue *found = NULL;
	uint32		index;

	if (value->type != jbvBinary)
		return false;
	container = value->val.binary.data;
	if (JsonContainerIsObject(container))
		found = getKeyJsonValueFromContainer(container, segment, strlen(segment), NULL);
	else if (JsonContainerIsArray(container) && IsIndex(segment, &index))
		found = getIthJsonbValueFromContainer(container, index);
	if (found == NULL)
		return false;
	*value = *found;
	return true;
}

/* Go down the path of a reference, from the value at its root. */
static bool
WalkPath(Resolver *r, const Reference *ref, JsonbValue *value)
{
	for (int i = 0; i < ref->npath; i++)
	{
		JsonbValue	here = *value;

		if (!WalkSegment(value, ref->path[i]))
			return Fault(r, RESOLVE_MISSING,
						 psprintf("\"%s\" not found in ${%s}: %s", ref->path[i], ref->source, DescribeValue(&here)));
	}
	return true;
}

static void
ValueOfText(const char *text, JsonbValue *value)
{
	value->type = jbvString;
	value->val.string.val = pstrdup(text);
	value->val.string.len = strlen(text);
}

static void
ValueOfBool(bool truth, JsonbValue *value)
{
	value->type = jbvBool;
	value->val.boolean = truth;
}

/* ---------- steps ---------- */

/*
 * Stand in for a step of a nested plan that is not there. If the parent step has
 * ended, nothing will run in it, so return a pending step. Its inputs and
 * outputs will never exist; a reference to them is a fault. If the parent step
 * has not ended, any reference is a fault.
 */
static StepRow *
StepOfUnopened(Resolver *r, const Reference *ref, const StepRow *parent_step, bool *open)
{
	StepRow    *step;
	bool		ended = TimeIsSet(parent_step->completed_at);

	if (!ended || ref->field == FIELD_OUTPUTS || ref->field == FIELD_INPUTS)
	{
		FaultOfStep(r, ended ? RESOLVE_DEPENDENCY : RESOLVE_NOT_READY, ref, parent_step,
					psprintf("step \"%s\" has %s nested plan%s", parent_step->name, ended ? "opened no" : "no",
							 ended ? "" : " yet"));
		return NULL;
	}
	*open = false;
	step = palloc0(sizeof(StepRow));
	step->started_at = step->completed_at = step->active_at = step->lease_expires_at = NO_TIME;
	step->name = ref->steps[ref->nsteps - 1];
	step->status = STEP_PENDING;
	step->outcome = OUTCOME_NA;
	return step;
}

/*
 * Find the step that a reference names, through nested plans; NULL on a fault.
 * *open says that the step has not ended and may still end. If a parent step
 * has ended, the steps of its nested plan cannot.
 */
static StepRow *
StepOfReference(Resolver *r, const Reference *ref, bool *open)
{
	pg_uuid_t	plan_id = r->plan->id;
	StepRow    *step = NULL;

	*open = true;
	if (ref->root == REF_BINDINGS)
		step = StepReadByBinding(r->call, &plan_id, ref->steps[0]);
	else
	{
		for (int i = 0; i < ref->nsteps; i++)
		{
			/* a pending step that is tried again will open another nested plan; the old one has ended */
			if (i > 0 && (step->status == STEP_PENDING || !NestedPlanId(r->call, &step->id, &plan_id)))
				return StepOfUnopened(r, ref, step, open);
			step = StepReadByName(r->call, &plan_id, ref->steps[i]);
			if (step == NULL)
				break;
			*open = *open && !TimeIsSet(step->completed_at);
		}
	}
	if (step != NULL)
		*open = *open && !TimeIsSet(step->completed_at);
	else
		Fault(r, RESOLVE_MISSING, psprintf("${%s} names no %s of the plan", ref->source,
										   ref->root == REF_BINDINGS ? "binding" : "step"));
	return step;
}

/* Store the fault that a step has no value. If the step may still end, the value may come later. */
static bool
FaultOfOpenStep(Resolver *r, const Reference *ref, const StepRow *step, bool open)
{
	return FaultOfStep(r, open ? RESOLVE_NOT_READY : RESOLVE_DEPENDENCY, ref, step,
					   psprintf("step \"%s\" is %s, so ${%s} has no value%s", step->name,
								StepStatusName[step->status], ref->source, open ? " yet" : ""));
}

/* Find a value in the result of a step. Only a completed step has one. */
static bool
ValueOfResult(Resolver *r, const Reference *ref, StepRow *step, bool open, JsonbValue *value)
{
	switch (step->status)
	{
		case STEP_COMPLETED:
			JsonToValue(JsonOf(step->result), value);
			return WalkPath(r, ref, value) ||
				FaultOfStep(r, RESOLVE_MISSING, ref, step, NULL);
		case STEP_FAILED:
		case STEP_SKIPPED:
			return FaultOfStep(r, RESOLVE_DEPENDENCY, ref, step,
							   psprintf("step \"%s\" %s, so ${%s} has no value", step->name,
										step->status == STEP_FAILED ? "failed" : "was skipped", ref->source));
		default:
			return FaultOfOpenStep(r, ref, step, open);
	}
}

/* Find a value in the resolved arguments of a step. Before they are resolved there are only templates. */
static bool
ValueOfInputs(Resolver *r, const Reference *ref, StepRow *step, bool open, JsonbValue *value)
{
	if (step->dynamic && step->arguments != NULL && step->inputs == NULL)
		return FaultOfOpenStep(r, ref, step, open);
	JsonToValue(StepInputs(step), value);
	return WalkPath(r, ref, value);
}

/* Find how a step ended. While it is open this is a fault, because false would look like a final answer. */
static bool
ValueOfEnd(Resolver *r, const Reference *ref, StepRow *step, bool open, JsonbValue *value)
{
	if (open)
		return FaultOfOpenStep(r, ref, step, open);
	switch (ref->field)
	{
		case FIELD_SUCCEEDED:
			ValueOfBool(StepSucceeded(step), value);
			return true;
		case FIELD_FAILED:
			ValueOfBool(StepFailed(step), value);
			return true;
		case FIELD_SKIPPED:
			ValueOfBool(step->status == STEP_SKIPPED, value);
			return true;
		default:
			ValueOfText(OutcomeName[step->outcome], value);
			return true;
	}
}

/* Find the value of a reference to a step or a binding. */
static bool
ValueOfStep(Resolver *r, const Reference *ref, JsonbValue *value)
{
	bool		open;
	StepRow    *step = StepOfReference(r, ref, &open);

	if (step == NULL)
		return false;
	if (ref->root == REF_BINDINGS)
		return ValueOfResult(r, ref, step, open, value);
	switch (ref->field)
	{
		case FIELD_OUTPUTS:
			return ValueOfResult(r, ref, step, open, value);
		case FIELD_INPUTS:
			return ValueOfInputs(r, ref, step, open, value);
		case FIELD_METADATA:
			JsonToValue(StepMetadata(step, GetCurrentTimestamp()), value);
			return WalkPath(r, ref, value);
		case FIELD_STATUS:
			ValueOfText(TreeStatusOfStep(step), value);
			return true;
		default:
			return ValueOfEnd(r, ref, step, open, value);
	}
}

/* ---------- other roots ---------- */

/* Find the value of ${plan.id}, ${plan.name} or ${plan.goal}. */
static bool
ValueOfPlan(Resolver *r, const Reference *ref, JsonbValue *value)
{
	const char *word = ref->path[0];

	if (strcmp(word, "id") == 0)
		ValueOfText(UuidText(&r->plan->id), value);
	else
		ValueOfText(strcmp(word, "name") == 0 ? r->plan->name : r->plan->goal, value);
	return true;
}

/* Find a value of the step that has completed, for a branching condition. */
static bool
ValueOfCompleted(Resolver *r, const Reference *ref, JsonbValue *value)
{
	StepRow    *step = r->completed;

	if (step == NULL)
		return Fault(r, RESOLVE_MISSING, psprintf("%s has a value in branching conditions only", ref->source));
	switch (ref->root)
	{
		case REF_RESULT:
			JsonToValue(JsonOf(step->result), value);
			return WalkPath(r, ref, value);
		case REF_CONFIDENCE:
			if (step->confidence == NULL)
				return Fault(r, RESOLVE_MISSING, pstrdup("the step was submitted without confidence"));
			value->type = jbvNumeric;
			value->val.numeric = DatumGetNumeric(PointerGetDatum(step->confidence));
			return true;
		case REF_OUTCOME:
			ValueOfText(OutcomeName[step->outcome], value);
			return true;
		default:
			if (step->result_summary == NULL)
				return Fault(r, RESOLVE_MISSING, pstrdup("the step was submitted without summary"));
			ValueOfText(TextOf(step->result_summary), value);
			return true;
	}
}

/* Find the value of a reference. It may point into rows that were read for it. */
static bool
FindValue(Resolver *r, const Reference *ref, JsonbValue *value)
{
	switch (ref->root)
	{
		case REF_INPUTS:
			JsonToValue(JsonOf(r->plan->inputs), value);
			return WalkPath(r, ref, value);
		case REF_STEPS:
		case REF_BINDINGS:
			return ValueOfStep(r, ref, value);
		case REF_PLAN:
			return ValueOfPlan(r, ref, value);
		case REF_VARIABLES:
			JsonToValue(JsonOf(PlanDetailOf(r->call, r->plan)->variables), value);
			return WalkPath(r, ref, value);
		default:
			return ValueOfCompleted(r, ref, value);
	}
}

/*
 * Find the value of a reference, or its default. The default stands for a
 * value that will never be there. A value that may still come is waited for.
 */
static bool
FindValueOrDefault(Resolver *r, const Reference *ref, JsonbValue *value)
{
	ResolveFault before = *r->fault;

	if (ref->fallback == NULL)
		return FindValue(r, ref, value);
	r->fault->problem = RESOLVE_FINE;
	if (FindValue(r, ref, value))
	{
		*r->fault = before;
		return true;
	}
	if (r->fault->problem != RESOLVE_NOT_READY)
	{
		*r->fault = before;
		JsonToValue(ref->fallback, value);
		return true;
	}
	if (before.problem != RESOLVE_FINE)
		*r->fault = before;
	return false;
}

/* Copy what a value points to into the current memory context. */
static void
CopyValue(JsonbValue *value)
{
	if (value->type == jbvString)
		value->val.string.val = pnstrdup(value->val.string.val, value->val.string.len);
	else if (value->type == jbvNumeric)
		value->val.numeric = memcpy(palloc(VARSIZE_ANY(value->val.numeric)), value->val.numeric, VARSIZE_ANY(value->val.numeric));
	else if (value->type == jbvBinary)
		value->val.binary.data = memcpy(palloc(value->val.binary.len), value->val.binary.data, value->val.binary.len);
}

/*
 * Find the value of a reference, and copy it to the current memory context. A
 * small value may be in a large result, and a template may have thousands of
 * references, so everything else that was read is freed. The first fault points
 * into that memory, so then it is kept.
 */
static bool
ValueOfReference(Resolver *r, const Reference *ref, JsonbValue *value)
{
	MemoryContext scratch = AllocSetContextCreate(CurrentMemoryContext, "stepwise reference", ALLOCSET_SMALL_SIZES);
	MemoryContext outer = MemoryContextSwitchTo(scratch);
	bool		had_fault = r->fault->problem != RESOLVE_FINE;
	bool		found = FindValueOrDefault(r, ref, value);

	MemoryContextSwitchTo(outer);
	if (found)
		CopyValue(value);
	if (found || had_fault)
		MemoryContextDelete(scratch);
	return found;
}

/* ---------- templates ---------- */

/* Append a value to a text: a string as it is, other values as compact JSON. */
static void
AppendValue(StringInfo text, JsonbValue *value)
{
	if (value->type == jbvString)
		appendBinaryStringInfo(text, value->val.string.val, value->val.string.len);
	else
		JsonCompact(text, value);
}

/* Count bytes that are filled in, and check the limit. A small template can name a large value very often. */
static bool
CheckFilled(Resolver *r, size_t size)
{
	size_t		limit = (size_t) MaxResultBytes * (r->lenient ? OUTPUTS_LIMIT : 1);

	r->filled += size;
	if (r->filled <= limit)
		return true;
	return Fault(r, RESOLVE_MISSING,
				 psprintf("what is filled in is too large: at most %d bytes (stepwise.max_result_bytes)", MaxResultBytes));
}

/* Fill a string that is a single reference. The value keeps its type. */
static bool
FillWhole(Resolver *r, const Reference *ref, JsonbValue *value)
{
	/* stop reading once the limit is exceeded */
	if (!CheckFilled(r, 0) || !ValueOfReference(r, ref, value))
		return false;
	if (value->type == jbvBinary)
		return CheckFilled(r, value->val.binary.len);
	return CheckFilled(r, value->type == jbvString ? value->val.string.len : 0);
}

/*
 * Add to the fault of a string what is wrong with another reference in it, so
 * that all of them can be repaired at once. What may still come is left out.
 */
static void
FaultOfAnother(Resolver *r, const Reference *ref)
{
	ResolveFault *first = r->fault;
	ResolveFault another = {0};
	JsonbValue	ignored;

	if (r->lenient || r->sketch || first->problem == RESOLVE_NOT_READY || strlen(first->message) > FAULT_BYTES_SHOWN)
		return;
	r->fault = &another;
	ValueOfReference(r, ref, &ignored);
	r->fault = first;
	if (another.problem != RESOLVE_FINE && another.problem != RESOLVE_NOT_READY)
		first->message = psprintf("%s; %s", first->message, another.message);
}

/* Fill one string of a template. The result is a string, unless the template is a single reference. */
static bool
FillText(Resolver *r, const char *template, JsonbValue *value)
{
	ParseFault	parse = {0};
	List	   *parts = ReferenceScan(template, r->completed != NULL, &parse);
	StringInfoData text;
	bool		good = true;
	ListCell   *cell;

	if (parse.message != NULL)
		return Fault(r, RESOLVE_MISSING, parse.message);
	if (list_length(parts) == 1 && ((TextPart *) linitial(parts))->reference != NULL)
		return FillWhole(r, ((TextPart *) linitial(parts))->reference, value);
	initStringInfo(&text);
	foreach(cell, parts)
	{
		TextPart   *part = lfirst(cell);
		int			before = text.len;

		if (!good && part->reference != NULL)
			FaultOfAnother(r, part->reference);
		else if (part->reference == NULL)
			appendStringInfoString(&text, part->literal);
		else if (CheckFilled(r, 0) && ValueOfReference(r, part->reference, value))
			AppendValue(&text, value);
		else
			good = false;
		if (!CheckFilled(r, text.len - before))
			return false;
	}
	if (!good)
		return false;
	value->type = jbvString;
	value->val.string.val = text.data;
	value->val.string.len = text.len;
	return true;
}

/* Replace the references in a string by <…>, so that a reader sees what belongs there. */
static void
SketchText(JsonbValue *value, bool branching)
{
	StringInfoData text;
	ListCell   *cell;

	initStringInfo(&text);
	foreach(cell, ReferenceScan(JsonValueText(value), branching, &((ParseFault) {0})))
	{
		TextPart   *part = lfirst(cell);

		if (part->reference == NULL)
			appendStringInfoString(&text, part->literal);
		else
			appendStringInfo(&text, "<%s>", part->reference->source);
	}
	ValueOfText(text.data, value);
}

/* Fill a value of a template if it is a string. Other values stay as they are. */
static bool
FillValue(Resolver *r, JsonbValue *value)
{
	JsonbValue	written;

	if (value->type != jbvString)
		return true;
	written = *value;
	if (FillText(r, JsonValueText(value), value))
		return true;
	if (r->sketch)
	{
		*value = written;
		SketchText(value, r->completed != NULL);
		return true;
	}
	if (!r->lenient)
		return false;
	value->type = jbvNull;
	return true;
}

/* Fill all strings of a template, at any depth; NULL on a fault. Keys stay as they are. */
static Jsonb *
FillJson(Resolver *r, const Jsonb *template)
{
	JsonbIterator *iterator = JsonbIteratorInit(unconstify(JsonbContainer *, &template->root));
	JsonbParseState *state = NULL;
	JsonbValue *result = NULL;
	JsonbValue	value;
	JsonbIteratorToken token;
	int			depth = 0;

	while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
	{
		if (token == WJB_BEGIN_ARRAY || token == WJB_BEGIN_OBJECT)
			depth++;
		else if (token == WJB_END_ARRAY || token == WJB_END_OBJECT)
			depth--;
		else if (token == WJB_KEY && depth == 1 && r->fault->problem == RESOLVE_FINE)
			r->fault->param = JsonValueText(&value);
		else if ((token == WJB_VALUE || token == WJB_ELEM) && !FillValue(r, &value))
			return NULL;
		/* push only keys and elements with a value; the begin of a container must have none */
		result = pushJsonbValue(&state, token, token < WJB_BEGIN_ARRAY ? &value : NULL);
	}
	return JsonbValueToJsonb(result);
}

/* Fill a template; NULL on a fault, which names the top-level key at which it occurred. */
Jsonb *
ResolveJson(Call *call, PlanRow *plan, const Jsonb *template, ResolveFault *fault)
{
	Resolver	r = {.call = call, .plan = plan, .fault = fault};

	return FillJson(&r, template);
}

/* Fill the strings of a template that have all their values; show the references of the others as <…>. */
Jsonb *
ResolveSketch(Call *call, PlanRow *plan, const Jsonb *template)
{
	ResolveFault fault = {0};
	Resolver	r = {.call = call, .plan = plan, .sketch = true, .fault = &fault};

	return FillJson(&r, template);
}

/* Fill a text; NULL on a fault, which names the text by param. */
char *
ResolveText(Call *call, PlanRow *plan, const char *template, const char *param, ResolveFault *fault)
{
	Resolver	r = {.call = call, .plan = plan, .fault = fault};
	JsonbValue	value;
	StringInfoData text;

	fault->param = pstrdup(param);
	if (!FillText(&r, template, &value))
		return NULL;
	initStringInfo(&text);
	AppendValue(&text, &value);
	return text.data;
}

/*
 * Fill a text of the review that a branch requests after a step has completed.
 * A value that is missing must not prevent the review, so its reference is shown
 * as <…>.
 */
char *
ResolveForReview(Call *call, PlanRow *plan, StepRow *completed, const char *template)
{
	ResolveFault fault = {0};
	Resolver	r = {.call = call, .plan = plan, .completed = completed, .sketch = true, .fault = &fault};
	JsonbValue	value;
	StringInfoData text;

	ValueOfText(template, &value);
	FillValue(&r, &value);
	initStringInfo(&text);
	AppendValue(&text, &value);
	return text.data;
}

/* ---------- conditions ---------- */

/* Build the document for a condition that is written as jsonpath. */
static Jsonb *
RawDocument(const Resolver *r)
{
	JsonBuilder b = {0};
	StepRow    *step = r->completed;

	JsonObjectStart(&b, NULL);
	JsonPutJson(&b, "inputs", JsonOf(r->plan->inputs));
	if (step != NULL)
	{
		JsonPutJson(&b, "result", JsonOf(step->result));
		if (step->confidence != NULL)
		{
			JsonbValue	value;

			value.type = jbvNumeric;
			value.val.numeric = DatumGetNumeric(PointerGetDatum(step->confidence));
			JsonPutValue(&b, "confidence", &value);
		}
		JsonPutText(&b, "outcome", OutcomeName[step->outcome]);
		if (step->result_summary != NULL)
			JsonPutText(&b, "summary", TextOf(step->result_summary));
	}
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Decide a compiled condition. *open becomes the first fault about a step that has not ended. */
static ConditionResult
Decide(Resolver *r, Datum path, struct varlena *operands, char **why, ResolveFault *open)
{
	Datum	   *sources;
	int			count;
	JsonbValue **values;
	char	  **names;

	if (operands == NULL)
		return ConditionEvaluate(path, RawDocument(r), 0, NULL, why);
	deconstruct_array(DatumGetArrayTypeP(PointerGetDatum(operands)), TEXTOID, -1, false, TYPALIGN_INT, &sources, NULL, &count);
	values = palloc0(sizeof(JsonbValue *) * Max(count, 1));
	names = palloc0(sizeof(char *) * Max(count, 1));
	for (int i = 0; i < count; i++)
	{
		ParseFault	parse = {0};
		ResolveFault fault = {0};
		Reference  *ref;

		names[i] = TextDatumGetCString(sources[i]);
		ref = ReferenceParse(names[i], 1, r->completed != NULL, &parse);
		r->fault = &fault;
		values[i] = palloc(sizeof(JsonbValue));
		if (ref == NULL || !ValueOfReference(r, ref, values[i]))
			values[i] = NULL;
		if (fault.problem == RESOLVE_NOT_READY && open->problem == RESOLVE_FINE)
			*open = fault;
	}
	return ConditionEvaluate(path, ConditionDocument(count, values), count, names, why);
}

/* Decide the condition of a step. *open becomes the first fault about a step that has not ended. */
ConditionResult
StepConditionDecide(Call *call, PlanRow *plan, const StepRow *step, char **why, ResolveFault *open)
{
	Resolver	r = {.call = call, .plan = plan};

	return Decide(&r, PointerGetDatum(step->condition_path), step->condition_operands, why, open);
}

/* Decide a branching condition after a step has completed. *why is copied to the caller's memory. */
ConditionResult
BranchConditionDecide(Call *call, PlanRow *plan, StepRow *completed, Datum path, struct varlena *operands, char **why)
{
	Resolver	r = {.call = call, .plan = plan, .completed = completed};
	ResolveFault open = {0};
	MemoryContext outer = TurnBegin();
	ConditionResult result = Decide(&r, path, operands, why, &open);

	if (*why != NULL)
		*why = MemoryContextStrdup(outer, *why);
	TurnEnd(outer, false);
	return result;
}

/* ---------- outputs ---------- */

/* Fill the outputs of a plan. Values that cannot be found are null, so that the plan can always end. */
struct varlena *
PlanOutputs(Call *call, PlanRow *plan)
{
	ResolveFault fault = {0};
	Resolver	r = {.call = call, .plan = plan, .lenient = true, .fault = &fault};

	return (struct varlena *) FillJson(&r, JsonOf(PlanDetailOf(call, plan)->outputs));
}
