/*
 * why.c
 *	  say what a plan waits for, and what to call next
 *
 * The functions here put a Wait (wait.c) into JSON: the answer of why, and the
 * message and the next call that stand in the answers of other functions.
 *
 * Locks: none. Nothing is changed, and everything is read under one snapshot.
 */
#include "api/api.h"

/* Put a call; NULL puts null. */
static void
PutCall(JsonBuilder *b, const char *key, const Move *move)
{
	if (move == NULL)
	{
		JsonPutNull(b, key);
		return;
	}
	JsonObjectStart(b, key);
	JsonPutText(b, "function", move->name);
	JsonPutJson(b, "arguments", move->arguments);
	JsonObjectEnd(b);
}

/* Put the calls that also let the plan go on. */
static void
PutAlternatives(JsonBuilder *b, const Wait *w)
{
	ListCell   *cell;

	JsonArrayStart(b, "alternatives");
	foreach(cell, w->others)
		PutCall(b, NULL, lfirst(cell));
	JsonArrayEnd(b);
}

/* Build {"nextCall": ...}, the call with which a plan goes on; null if there is none. */
Jsonb *
NextCall(Call *call, PlanRow *asked)
{
	Wait		w = WaitOf(call, asked);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutCall(&b, "nextCall", NextMove(&w));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/*
 * Build {"nextCall": ...} for the answer of a call that has changed a plan: the
 * call with which its root plan goes on. The call writes nothing after that.
 */
Jsonb *
NextCallAfter(Call *call, const PlanRow *plan)
{
	JsonBuilder b = {0};
	Wait		w;

	if (!call->reading)
		ReadBegin(call);
	w = WaitOfAgent(call, PlanMustRead(call, &plan->root_id));
	JsonObjectStart(&b, NULL);
	PutCall(&b, "nextCall", NextMove(&w));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build {"message": ..., "nextCall": ...} for an agent that asks for work and gets none. */
Jsonb *
WaitAnswer(const Wait *w)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "message", CutText(w->message, SHOWN_TEXT, "get_step_context"));
	PutCall(&b, "nextCall", NextMove(w));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build what a run says about a plan that has not ended: the message and the next call of why. */
Jsonb *
WaitOfRun(Call *call, PlanRow *asked)
{
	Wait		w = WaitOf(call, asked);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "message", CutText(w.message, SHOWN_TEXT, "get_step_context"));
	PutCall(&b, "next_call", NextMove(&w));
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Build the answer of why. */
static Jsonb *
Why(Call *call, PlanRow *asked)
{
	Wait		w = WaitOf(call, asked);
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	PutPlanAnswer(&b, asked);
	JsonPutText(&b, "waitingOn", w.on);
	JsonPutTime(&b, "since", w.since);
	JsonPutJson(&b, "reason", asked->pause_reason ? JsonOf(asked->pause_reason) : NULL);
	JsonPutText(&b, "message", CutText(w.message, SHOWN_TEXT, "get_step_context"));
	PutCall(&b, "nextCall", NextMove(&w));
	PutAlternatives(&b, &w);
	PutRetryAfter(&b, w.claims);
	JsonObjectEnd(&b);
	return JsonFinish(&b);
}

/* Explain to a program why a plan does not go on, and what to call next. */
PG_FUNCTION_INFO_V1(stepwise_why);
Datum
stepwise_why(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, Why(&call, PlanMustRead(&call, ArgumentUuid(fcinfo, 0))));
}
