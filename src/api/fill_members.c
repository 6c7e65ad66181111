/*
 * fill_members.c
 *	  fill in the members of an answer that were cut, as far as there is room
 *
 * get_plan_context and get_step_context build their answers cut (bound.c), and
 * then make members whole: results before all else.
 */
#include "api/api.h"

/* Return the length of a full list in an answer of so many bytes. */
int
EntriesIn(int max_bytes)
{
	return Max(LIST_MAX, Min(max_bytes / (CONTEXT_BYTES / LIST_MAX), 1000));
}

/* Make a field of a text; NULL for NULL. */
struct varlena *
TextField(const char *text)
{
	return text ? (struct varlena *) cstring_to_text(text) : NULL;
}

/* Fill members of an object, in this order. */
void
FillMembers(Filling *filling, FillTarget *target, const Member *members, int count, int parts)
{
	for (int i = 0; i < count; i++)
		FillMember(filling, target, members[i].key, members[i].field, members[i].kind, parts);
}

/* Fill the members of a step, but its result. */
void
FillStep(Filling *filling, FillTarget *target, const StepRow *step)
{
	const Member members[] = {
		{"resultSummary", FIELD_TEXT, step->result_summary},
		{"message", FIELD_TEXT, TextField(step->message)},
		{"pauseReason", FIELD_JSON, step->pause_reason},
		{"prompt", FIELD_TEXT, step->prompt},
		{"instructions", FIELD_TEXT, step->instructions},
		{"arguments", FIELD_JSON, step->arguments},
		{"inputs", FIELD_JSON, step->inputs},
		{"resources", FIELD_JSON, step->resources},
		{"condition", FIELD_TEXT, step->condition},
		{"tool", FIELD_TEXT, TextField(step->tool)},
		{"workflow", FIELD_TEXT, TextField(step->workflow)},
		{"worker", FIELD_TEXT, TextField(step->worker)},
		{"executionReport", FIELD_JSON, step->execution_report},
		{"outputFormattingNotes", FIELD_TEXT, step->output_formatting_notes},
	};

	FillMembers(filling, target, members, lengthof(members), 1);
}

/* a step in a list of the answer */
typedef struct ShownStep
{
	const StepRow *row;
	FillTarget *target;
} ShownStep;

/* Compare steps of a list: those that ended last come first. */
static int
ShownByEnd(const ListCell *a, const ListCell *b)
{
	const StepRow *one = ((const ShownStep *) lfirst(a))->row;
	const StepRow *other = ((const ShownStep *) lfirst(b))->row;

	if (one->completed_at != other->completed_at)
		return one->completed_at > other->completed_at ? -1 : 1;
	return one->order < other->order ? -1 : 1;
}

/* Fill the steps of a list: first all results, then all else. With latest, those that ended last come first. */
void
FillSteps(Filling *filling, const char *list, const List *rows, bool latest)
{
	List	   *shown = NIL;
	ListCell   *cell;

	foreach(cell, rows)
	{
		ShownStep  *step = palloc(sizeof(ShownStep));

		step->row = lfirst(cell);
		step->target = FillAt(filling, list, foreach_current_index(cell));
		shown = lappend(shown, step);
	}
	if (latest)
		list_sort(shown, ShownByEnd);
	foreach(cell, shown)
	{
		const ShownStep *step = lfirst(cell);

		FillMember(filling, step->target, "result", step->row->result, FIELD_JSON, 1);
	}
	foreach(cell, shown)
		FillStep(filling, ((ShownStep *) lfirst(cell))->target, ((ShownStep *) lfirst(cell))->row);
}
