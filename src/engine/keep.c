/*
 * keep.c
 *	  rows of steps that a call keeps in memory
 *
 * A run does many steps in one call. It reads the rows of the next steps ahead,
 * and writes the row of a step once, when it has ended, instead of at each
 * move. With dependencies, advance keeps the steps that it releases, since it
 * often claims one of them.
 *
 * This file holds these rows. step_read.c and step_next.c decide when they are
 * read, step_save.c and save.c when they are written. Nobody else can change
 * them, because the call holds the lock of the tree. Before any query of the
 * call runs, the changed rows are written, and all of them are forgotten.
 *
 * A kept row that is handed out is a copy of the struct alone: what it points
 * to is never changed in place, and lives as long as the call.
 *
 * The search for the next step asks for the first step, in order, that is a
 * candidate: pending in a sequence, ready in a plan with dependencies. Rows
 * that were read ahead are candidates as the tables have them. Rows that the
 * call itself has made pending or ready are in a list beside them.
 */
#include "engine/engine.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"

#define AHEAD_MAX	64			/* rows that are read ahead at once; first AHEAD_MIN, then more */
#define AHEAD_MIN	1

/* the rows of one plan that were read ahead, in their order */
typedef struct Ahead
{
	pg_uuid_t	plan_id;
	int			from;			/* the first order that was asked for */
	int			to;				/* the rows up to here, without it, were read */
	int			size;			/* how many are read next */
	int			first;			/* index in steps; those before it are no candidates any more */
	List	   *steps;			/* of KeptStep */
} Ahead;

typedef struct Kept
{
	HTAB	   *steps;			/* of KeptStep, by id; NULL: there is none */
	List	   *changed;		/* of KeptStep: to be written */
	List	   *again;			/* of KeptStep: changed, and a candidate when it was */
	Ahead		ahead;
} Kept;

/* members of StepRow that point to a value; the others are copied with the struct */
static const size_t Texts[] = {
	offsetof(StepRow, worker), offsetof(StepRow, holder), offsetof(StepRow, message), offsetof(StepRow, name),
	offsetof(StepRow, type), offsetof(StepRow, tool), offsetof(StepRow, workflow), offsetof(StepRow, binding),
	offsetof(StepRow, approved), offsetof(StepRow, previous_error)
};
static const size_t Varlenas[] = {
	offsetof(StepRow, confidence), offsetof(StepRow, pause_reason), offsetof(StepRow, inputs), offsetof(StepRow, result),
	offsetof(StepRow, result_summary), offsetof(StepRow, execution_report), offsetof(StepRow, output_formatting_notes),
	offsetof(StepRow, prompt), offsetof(StepRow, instructions), offsetof(StepRow, arguments), offsetof(StepRow, resources),
	offsetof(StepRow, condition), offsetof(StepRow, condition_path), offsetof(StepRow, condition_operands),
	offsetof(StepRow, error), offsetof(StepRow, review), offsetof(StepRow, feedback), offsetof(StepRow, previous)
};

#define MEMBER(row, offset)	(*(void **) ((char *) (row) + (offset)))

/* ---------- rows ---------- */

/* Begin to keep rows of steps in memory. */
void
KeptBegin(Call *call)
{
	call->kept = MemoryContextAllocZero(call->context, sizeof(Kept));
	call->kept->ahead.size = AHEAD_MIN;
}

/* Forget the kept rows. Changed ones must have been written. Rows that were handed out stay good. */
void
KeptForget(Call *call)
{
	if (call->kept->steps != NULL)
		hash_destroy(call->kept->steps);
	memset(call->kept, 0, sizeof(Kept));
	call->kept->ahead.size = AHEAD_MIN;
}

/* Find a step among the kept ones; NULL if it is not there, or if the call keeps none. */
KeptStep *
KeptFind(const Call *call, const pg_uuid_t *step_id)
{
	if (call->kept == NULL || call->kept->steps == NULL)
		return NULL;
	return hash_search(call->kept->steps, step_id, HASH_FIND, NULL);
}

/* Find a step among the kept ones, or make an entry without a row. */
static KeptStep *
KeptEnter(Call *call, const pg_uuid_t *step_id)
{
	HASHCTL		control = {.keysize = sizeof(pg_uuid_t), .entrysize = sizeof(KeptStep), .hcxt = call->context};
	KeptStep   *entry;
	bool		found;

	if (call->kept->steps == NULL)
		call->kept->steps = hash_create("stepwise kept steps", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	entry = hash_search(call->kept->steps, step_id, HASH_ENTER, &found);
	if (!found)
		memset((char *) entry + sizeof(pg_uuid_t), 0, sizeof(KeptStep) - sizeof(pg_uuid_t));
	return entry;
}

/* Copy the values of a row that the kept row does not have yet. "kept" is a copy of the struct; "before" is NULL at first. */
static void
CopyValues(StepRow *kept, const StepRow *before)
{
	for (size_t i = 0; i < lengthof(Texts); i++)
	{
		char	   *text = MEMBER(kept, Texts[i]);

		if (text != NULL && (before == NULL || text != MEMBER(before, Texts[i])))
			MEMBER(kept, Texts[i]) = pstrdup(text);
	}
	for (size_t i = 0; i < lengthof(Varlenas); i++)
	{
		struct varlena *value = MEMBER(kept, Varlenas[i]);

		if (value != NULL && (before == NULL || value != MEMBER(before, Varlenas[i])))
			MEMBER(kept, Varlenas[i]) = memcpy(palloc(VARSIZE_ANY(value)), value, VARSIZE_ANY(value));
	}
	if (before == NULL && kept->stall_after != NULL)
		kept->stall_after = memcpy(palloc(sizeof(Interval)), kept->stall_after, sizeof(Interval));
}

/* Keep a copy of a row that is to be written later. The blockers are those of the row before it, as in the table. */
KeptStep *
KeptChange(Call *call, const StepRow *step)
{
	MemoryContext outer = MemoryContextSwitchTo(call->context);
	KeptStep   *entry = KeptEnter(call, &step->id);
	StepRow    *before = entry->row;
	StepRow    *row = palloc(sizeof(StepRow));

	*row = *step;
	CopyValues(row, before);
	if (before != NULL)
	{
		row->blockers = before->blockers;
		row->sets_mark = row->sets_mark || before->sets_mark;
		row->tid = before->tid;
	}
	entry->row = row;
	if (!entry->changed)
		call->kept->changed = lappend(call->kept->changed, entry);
	entry->changed = true;
	if (row->status == STEP_PENDING && !entry->again)
	{
		call->kept->again = lappend(call->kept->again, entry);
		entry->again = true;
	}
	MemoryContextSwitchTo(outer);
	return entry;
}

/* Hand out a kept row, as if it were read now. */
StepRow *
KeptRow(const KeptStep *entry)
{
	StepRow    *step = memcpy(palloc(sizeof(StepRow)), entry->row, sizeof(StepRow));

	step->sets_mark = step->send_back = step->given_up = step->accepted = false;
	step->waiting = NULL;
	StepCounted(step);
	return step;
}

/* Note what the plan has counted of a row that was just read. */
void
StepCounted(StepRow *step)
{
	step->was_paused = step->pause_reason != NULL;
	step->was_open_failure = step->status == STEP_FAILED && step->pause_reason != NULL;
	step->was_holding = step->holds;
	step->was_sent_back = step->sent_back;
}

/* List the rows that are to be written. */
List *
KeptChanged(const Call *call)
{
	return call->kept ? call->kept->changed : NIL;
}

/* Say whether some of the rows that are to be written are marked as ready. */
bool
KeptMarks(const Call *call)
{
	ListCell   *cell;

	foreach(cell, KeptChanged(call))
		if (((const KeptStep *) lfirst(cell))->row->ready_mark)
			return true;
	return false;
}

/* ---------- the next candidate ---------- */

static bool
IsCandidate(const PlanRow *plan, const StepRow *row)
{
	return plan->sequential ? row->status == STEP_PENDING : StepIsReady(plan, row);
}

/* Find the first candidate from this order on that the call itself has made one; NULL if there is none. */
static KeptStep *
FirstAgain(const Kept *kept, const PlanRow *plan, int from)
{
	KeptStep   *first = NULL;
	ListCell   *cell;

	foreach(cell, kept->again)
	{
		KeptStep   *entry = lfirst(cell);

		if (IsCandidate(plan, entry->row) && entry->row->order >= from && UuidEqual(&entry->row->plan_id, &plan->id) &&
			(first == NULL || entry->row->order < first->row->order))
			first = entry;
	}
	return first;
}

/* Find the first candidate from this order on among the rows that were read ahead; NULL if there is none. */
static KeptStep *
FirstAhead(Ahead *ahead, const PlanRow *plan, int from)
{
	for (int i = ahead->first; i < list_length(ahead->steps); i++)
	{
		KeptStep   *entry = list_nth(ahead->steps, i);

		if (!IsCandidate(plan, entry->row))
		{
			if (i == ahead->first)
				ahead->first++;
		}
		else if (entry->row->order >= from)
			return entry;
	}
	return NULL;
}

/* Begin anew with reading ahead, unless that has begun for this plan at this order or before it. */
static void
AheadBegin(Call *call, const PlanRow *plan, int from)
{
	Ahead	   *ahead = &call->kept->ahead;

	if (UuidEqual(&ahead->plan_id, &plan->id) && from >= ahead->from)
		return;
	ahead->plan_id = plan->id;
	ahead->from = ahead->to = from;
	ahead->first = 0;
	ahead->steps = NIL;
}

/* Read more rows ahead; returns false if there are no more. */
static bool
AheadRead(Call *call, PlanRow *plan, ReadAhead *read)
{
	Ahead	   *ahead = &call->kept->ahead;
	MemoryContext outer;
	List	   *rows;
	ListCell   *cell;

	if (ahead->to == INT_MAX)
		return false;
	outer = MemoryContextSwitchTo(call->context);
	rows = read(call, plan, ahead->to, ahead->size);
	foreach(cell, rows)
	{
		StepRow    *row = lfirst(cell);
		KeptStep   *entry = KeptEnter(call, &row->id);

		if (entry->row == NULL)
			entry->row = row;
		ahead->steps = lappend(ahead->steps, entry);
	}
	ahead->to = list_length(rows) < ahead->size ? INT_MAX : ((StepRow *) llast(rows))->order + 1;
	ahead->size = Min(ahead->size * 4, AHEAD_MAX);
	MemoryContextSwitchTo(outer);
	return rows != NIL;
}

/*
 * Find the first candidate of a plan from this order on; NULL if there is none.
 * No candidate has an order below "first". "read" reads candidates from the
 * table that are not among the changed rows.
 */
StepRow *
KeptNext(Call *call, PlanRow *plan, int from, int first, ReadAhead *read)
{
	Kept	   *kept = call->kept;
	KeptStep   *again = FirstAgain(kept, plan, from);
	KeptStep   *next;

	if (again != NULL && again->row->order <= first)
		return KeptRow(again);
	AheadBegin(call, plan, from);
	while ((next = FirstAhead(&kept->ahead, plan, from)) == NULL)
		if (!AheadRead(call, plan, read))
			break;
	if (next == NULL || (again != NULL && again->row->order < next->row->order))
		next = again;
	return next ? KeptRow(next) : NULL;
}
