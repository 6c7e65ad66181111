/*
 * mcp_answer.c
 *	  what becomes of a call
 *
 * Most answers of the database are handed on. Some ask the program for
 * something: they have a member "stepwise", which the client never sees.
 */
#include "mcp.h"

static void AnswerArrived(Job *job, const char *text, const Failure *failure);

/* the parts of an answer of the database */
typedef struct Answer
{
	Span		result;
	Span		error;
	Span		stepwise;
} Answer;

/* ---------- ending calls ---------- */

static void
End(Call *call)
{
	AskForget(call);
	StreamForget(call);
	CallEnd(call);
}

static void
LogAnswer(const Call *call, const char *outcome, int bytes)
{
	LogLine("<- %.*s %.*s %s " INT64_FORMAT " ms %d bytes", Min(call->message->id.len, 100), call->message->id.at ? call->message->id.at : "",
			Min(call->message->method.len, 100), call->message->method.at, outcome, Now() - call->started, bytes);
}

static void
Forward(Call *call, const Answer *answer)
{
	bool		failed = answer->result.at == NULL;

	LogAnswer(call, failed ? "error" : "ok", failed ? answer->error.len : answer->result.len);
	if (call->key == NULL)
		return;
	if (answer->result.at)
		SendAnswer(call->message, "result", answer->result);
	else if (answer->error.at)
		SendAnswer(call->message, "error", answer->error);
	else
		SendError(call->message, ERROR_INTERNAL, "the database gave no answer to this request");
}

/* ---------- answers that ask for something ---------- */

/* Work on a task, which was created durably. Nobody waits for the answer. */
static void
BeginWork(Span request)
{
	Call	   *work;

	if (!SpanIs(request, '{') || CallWorks(request))
		return;
	work = CallNew(MessageRead(request, NULL), AnswerArrived);
	if (work->key)
		pfree(work->key);
	work->key = NULL;
	work->job.background = true;
	CallAsk(work, "");
}

/* A part of the work is stored. Go on with the rest. */
static void
BeginRound(Call *call, const Answer *answer, Span again)
{
	CallProgress(call, JsonGet(again, "progress"));
	CallAskAgain(call, JsonGet(again, "state"));
}

static void
BeginWait(Call *call, const Answer *answer, Span wait)
{
	WaitBegin(call, wait);
}

static void
BeginStream(Call *call, const Answer *answer, Span listen)
{
	Call	   *before = call->message->modern ? NULL : StreamOf(JsonGet(call->message->params, "uri"));

	if (before)
		End(before);
	if (!StreamFits())
	{
		SendError(call->message, ERROR_REQUEST, "too many subscriptions are open; end one first");
		End(call);
		return;
	}
	if (!call->message->modern)
		Forward(call, answer);
	StreamBegin(call, listen, answer->result);
}

static const struct
{
	const char *key;
	bool		of_client;		/* only for calls that the client waits for */
	void		(*begin) (Call *call, const Answer *answer, Span value);
}			Requests[] = {
	{"again", false, BeginRound},
	{"wait", true, BeginWait},
	{"listen", true, BeginStream},
};

static bool
IsRequest(Call *call, const Answer *answer)
{
	for (int i = 0; i < lengthof(Requests); i++)
	{
		Span		value = JsonGet(answer->stepwise, Requests[i].key);

		if (!SpanIs(value, '{') || (Requests[i].of_client && call->key == NULL))
			continue;
		Requests[i].begin(call, answer, value);
		return true;
	}
	return false;
}

/* ---------- answers that the program takes note of ---------- */

static void
Negotiated(Call *call, const Answer *answer)
{
	CallRemember(JsonGet(answer->result, "protocolVersion"), JsonGet(call->message->params, "capabilities"));
}

static void
Unsubscribed(Call *call, const Answer *answer)
{
	Call	   *stream = StreamOf(JsonGet(call->message->params, "uri"));

	if (stream)
		End(stream);
}

static const struct
{
	const char *method;
	void		(*note) (Call *call, const Answer *answer);
}			Notes[] = {
	{"initialize", Negotiated},
	{"resources/unsubscribe", Unsubscribed},
};

static void
TakeNote(Call *call, const Answer *answer)
{
	for (int i = 0; i < lengthof(Notes); i++)
		if (answer->result.at && !call->message->modern && JsonStringIs(call->message->method, Notes[i].method))
			Notes[i].note(call, answer);
}

/* Say on stderr what only who looks after the database can mend. It is said once. */
static void
Tell(Span tell)
{
	static bool told;
	char	   *text = told ? NULL : JsonString(JsonGet(tell, "text"));

	if (text == NULL)
		return;
	Complain("%s", text);
	pfree(text);
	told = true;
}

/* ---------- answers ---------- */

static void
Failed(Call *call, const Failure *failure)
{
	LogAnswer(call, failure->sqlstate[0] ? failure->sqlstate : "unreachable", 0);
	if (call->key)
		SendFailure(call->message, failure);
	End(call);
}

static void
AnswerArrived(Job *job, const char *text, const Failure *failure)
{
	Call	   *call = (Call *) job;
	Answer		answer = {0};
	JsonList	list = {0};

	call->state = CALL_WAITING; /* its statement does not run any more */
	if (text)
		JsonRead(SpanOf(text), &list);
	answer.result = JsonMemberOf(&list, "result");
	answer.error = JsonMemberOf(&list, "error");
	answer.stepwise = JsonMemberOf(&list, "stepwise");
	JsonForget(&list);
	if (call->stream)
		StreamGoOn(call, answer.result);
	else if (failure)
		Failed(call, failure);
	else if (!IsRequest(call, &answer) && !(call->key && AskBegin(call, answer.result)))
	{
		TakeNote(call, &answer);
		Forward(call, &answer);
		End(call);
	}
	BeginWork(JsonGet(answer.stepwise, "work"));
	Tell(JsonGet(answer.stepwise, "tell"));
}

/* ---------- from the client ---------- */

/* Begin a call. */
void
AnswerBegin(Message *message)
{
	const char *refusal = NULL;

	if (!CallFits(message))
		refusal = "too many calls are open; wait for an answer first";
	else if (CallFind(message->id))
		refusal = "a call with this id is open";
	if (refusal == NULL)
		CallAsk(CallNew(message, AnswerArrived), "");
	else
	{
		LogLine("refused: %s", refusal);
		if (message->id.at)
			SendError(message, ERROR_REQUEST, refusal);
		MessageFree(message);
	}
}

/* End a call that the client does not want any more. It gets no answer. */
void
AnswerCancel(Span id)
{
	Call	   *call = CallFind(id);

	if (call == NULL)
		return;
	LogAnswer(call, "cancelled", 0);
	End(call);
}

/* End the calls that wait for something, since no more input comes. */
void
AnswerEndWaits(void)
{
	Call	   *next;

	for (Call *call = CallFirst(); call != NULL; call = next)
	{
		next = call->next;
		if (call->stream)
			StreamFinish(call);
		else if (call->state == CALL_RUNNING)
			continue;
		else if (call->key)
			SendError(call->message, ERROR_INTERNAL, "the input ended while this call waited");
		End(call);
	}
}

/* End all calls, and cancel what runs. */
void
AnswerEndAll(const char *why)
{
	AnswerEndWaits();
	while (CallFirst() != NULL)
	{
		if (CallFirst()->key)
			SendError(CallFirst()->message, ERROR_INTERNAL, why);
		End(CallFirst());
	}
}
