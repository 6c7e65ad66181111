/*
 * step_read.c
 *	  read a step by its id, name, binding or order
 *
 * A row that the call keeps in memory (keep.c) is returned instead of the
 * stored one.
 */
#include "engine/engine.h"

/* Report that the tenant has no step of this id. */
void
StepNotFound(const pg_uuid_t *step_id)
{
	ereport(ERROR,
			(errcode(ERRCODE_STEP_NOT_FOUND),
			 errmsg("step \"%s\" not found", step_id ? UuidText(step_id) : ""),
			 errhint("stepwise.get_plan_context(plan_id) lists the steps of a plan.")));
}

/* Take the kept row of a step instead of the stored one; NULL for NULL. */
static StepRow *
StepAsKept(Call *call, StepRow *stored)
{
	const KeptStep *kept = stored ? KeptFind(call, &stored->id) : NULL;

	return kept ? KeptRow(kept) : stored;
}

/* Read a step by its id; NULL if there is none. */
StepRow *
StepRead(Call *call, const pg_uuid_t *step_id)
{
	const KeptStep *kept = KeptFind(call, step_id);
	Key			key;

	if (kept != NULL)
		return KeptRow(kept);
	key = PlaceKey(call, step_id);
	return TableRead("step", "step_pkey", &key, NULL, NULL, StepMake);
}

/* Read a step by its id; SW002 if the tenant has no step of this id. */
StepRow *
StepMustRead(Call *call, const pg_uuid_t *step_id)
{
	StepRow    *step = step_id ? StepRead(call, step_id) : NULL;

	if (step == NULL)
		StepNotFound(step_id);
	return step;
}

/* Read the step of a plan that has this name or binding, as the index says; NULL if there is none. */
static StepRow *
StepReadByWord(Call *call, const char *index, const pg_uuid_t *plan_id, const char *word)
{
	Key			key = IdKey(call, plan_id);

	if (word == NULL)
		return NULL;
	KeyText(&key, CStringGetTextDatum(word));
	return StepAsKept(call, TableRead("step", index, &key, NULL, NULL, StepMake));
}

/* Read the step of a plan by its name; NULL if there is none. */
StepRow *
StepReadByName(Call *call, const pg_uuid_t *plan_id, const char *name)
{
	return StepReadByWord(call, "step_name", plan_id, name);
}

/* Read the step of a plan by its binding; NULL if there is none. */
StepRow *
StepReadByBinding(Call *call, const pg_uuid_t *plan_id, const char *binding)
{
	return StepReadByWord(call, "step_binding", plan_id, binding);
}

/*
 * The steps of a plan were inserted one after the other. So the next step is
 * often right behind the place where the last one was found, which saves a
 * search in the index. What is there is compared with the key.
 */
#define LASTS	256

typedef struct LastStep
{
	pg_uuid_t	plan_id;
	pg_uuid_t	id;
	int			order;
	ItemPointerData tid;		/* where it was found first; since then it may have got a new version */
} LastStep;

static LastStep lasts[LASTS];

/* Find the entry for a plan. It is chosen by random bytes of the id. */
static LastStep *
LastOf(const pg_uuid_t *plan_id)
{
	return &lasts[plan_id->data[13] % LASTS];
}

/* Remember where a step was found, if it is not the one that was found last. */
static void
LastRemember(const StepRow *step)
{
	LastStep   *last = LastOf(&step->plan_id);

	if (UuidEqual(&last->id, &step->id))
		return;
	last->plan_id = step->plan_id;
	last->id = step->id;
	last->order = step->order;
	last->tid = step->tid;
}

/* Find the place behind the last step of a plan; it is not valid if there is none. */
static ItemPointerData
PlaceBehindLast(const pg_uuid_t *plan_id)
{
	const LastStep *last = LastOf(plan_id);
	ItemPointerData place = {0};

	if (UuidEqual(&last->plan_id, plan_id))
		ItemPointerSet(&place, ItemPointerGetBlockNumber(&last->tid), ItemPointerGetOffsetNumber(&last->tid) + 1);
	return place;
}

/* Make the key of the step of a plan by its order, with the place where it may be. */
static Key
OrderKey(Call *call, const pg_uuid_t *plan_id, int order)
{
	static const AttrNumber columns[] = {STEP_COL_PLAN_ID + 1, STEP_COL_ORDER + 1};
	const LastStep *last = LastOf(plan_id);
	Key			key = IdKey(call, plan_id);

	KeyInt(&key, order);
	key.of_table = columns;
	if (last->order == order - 1)
		key.place = PlaceBehindLast(plan_id);
	else if (last->order == order && UuidEqual(&last->plan_id, plan_id))
		key.place = PlaceKey(call, &last->id).place;
	return key;
}

/* Read the step of a plan by its order; NULL if there is none. */
StepRow *
StepReadByOrder(Call *call, const pg_uuid_t *plan_id, int order)
{
	Key			key = OrderKey(call, plan_id, order);
	StepRow    *step = TableRead("step", "step_order_unique", &key, NULL, NULL, StepMake);

	if (step != NULL)
		LastRemember(step);
	return StepAsKept(call, step);
}

/* Read a step that depends on another one of its plan; NULL if there is none. Often it is right behind that. */
StepRow *
StepReadDependent(Call *call, const pg_uuid_t *plan_id, const pg_uuid_t *step_id)
{
	Key			key = PlaceKey(call, step_id);
	StepRow    *step;

	/* a join was found before, and is seldom next to its parents */
	if (KeptFind(call, step_id) != NULL || ItemPointerIsValid(&key.place))
		return StepRead(call, step_id);
	key.place = PlaceBehindLast(plan_id);
	step = TableRead("step", "step_pkey", &key, NULL, NULL, StepMake);
	if (step != NULL)
		LastRemember(step);
	return step;
}
