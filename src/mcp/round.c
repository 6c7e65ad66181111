/*
 * round.c
 *	  runs in rounds
 *
 * A run for stepwise-mcp is a number of rounds. Each is a request, and so a
 * transaction. What a round has done is stored: others see it, and a cancel
 * keeps it. The database asks for the next round by "again" beside the result,
 * and stepwise-mcp sends the request again, with the state that it got.
 *
 * For other callers a run is one call.
 */
#include "mcp/mcp.h"

#define ROUND_MS	500			/* a round begins no step after that */

/* Return the state of the rounds before this one; an empty object if it is the first. */
static Jsonb *
RoundState(const Request *request)
{
	Jsonb	   *state = request->pipe ? JsonGetJson(request->meta, "stepwise/again") : NULL;

	return state != NULL && JsonIsObject(state) ? state : JsonEmptyObject();
}

/* Read how many steps the rounds before this one have done. */
static int
StepsBefore(const Request *request)
{
	JsonbValue	value;
	Datum		number;

	if (!JsonGet(RoundState(request), "done", &value) || !JsonToDatum(&value, INT4OID, &number))
		return 0;
	return Max(DatumGetInt32(number), 0);
}

/* Find the plan that an earlier round of this request has made. Returns false if there is none. */
bool
RoundPlan(const Request *request, pg_uuid_t *plan_id)
{
	char	   *text = JsonGetText(RoundState(request), "plan");

	return text != NULL && UuidParse(text, plan_id);
}

/* Read when the first round began; the given time if this is the first. */
TimestampTz
RoundsBegan(const Request *request, TimestampTz otherwise)
{
	JsonbValue	value;
	Datum		time;

	if (request->meta == NULL || !JsonGet(RoundState(request), "since", &value) || !JsonToDatum(&value, TIMESTAMPTZOID, &time))
		return otherwise;
	return Min(DatumGetTimestampTz(time), otherwise);
}

/* Say how far the run has come, as clients hear it. */
static Jsonb *
Progress(const RunRound *round)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutInt(&b, "progress", round->done);
	JsonPutInt(&b, "total", round->total);
	JsonPutText(&b, "message", round->last);
	JsonObjectEnd(&b);
	return JsonMerge(JsonFinish(&b), round->about);
}

/* Let the request come again for the next round. */
static void
ComeAgain(Request *request, const RunRound *round, TimestampTz now)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonObjectStart(&b, "state");
	JsonPutInt(&b, "done", round->done);
	JsonPutTime(&b, "since", RoundsBegan(request, now));
	if (request->has_plan)
		JsonPutUuid(&b, "plan", &request->plan_id);
	JsonObjectEnd(&b);
	JsonPutJson(&b, "progress", Progress(round));
	JsonObjectEnd(&b);
	BesidePut(request, "again", JsonFinish(&b));
	request->comes_again = true;
}

/*
 * Run a plan, or a round of it. Returns what run answers; NULL if the request
 * comes again. "about" has members for the reports of progress; or is NULL.
 */
Jsonb *
RunApply(Request *request, const Jsonb *arguments, const Jsonb *about)
{
	TimestampTz now = GetCurrentTimestamp();
	RunRound	round = {.until = TimestampTzPlusMilliseconds(now, ROUND_MS), .done = StepsBefore(request), .about = about};
	Jsonb	   *volatile answer = NULL;

	PG_TRY();
	{
		TheRound = request->pipe ? &round : NULL;
		answer = FunctionApply(request, "run", arguments);
	}
	PG_FINALLY();
	{
		TheRound = NULL;
	}
	PG_END_TRY();
	if (!round.unfinished)
		return answer;
	ComeAgain(request, &round, now);
	return NULL;
}
