/*
 * mcp_ask.c
 *	  the client asks a person
 *
 * The database answers a call with "input_required" and its questions. A
 * client of the generation of 2026-07-28 gets that answer and repeats the call
 * by itself. For an older one the program does that: it sends each question as
 * a request of its own, and repeats the call with the answers.
 */
#include "mcp.h"

typedef struct Question
{
	char	   *id;				/* of our request */
	char	   *key;			/* of the database */
	char	   *answer;			/* as JSON; NULL until it comes */
} Question;

typedef struct Asking
{
	int			count;
	Question   *questions;
} Asking;

static int	last_id;

static void
SendQuestion(Question *question, Span request)
{
	StringInfoData line;
	char	   *method = JsonString(JsonGet(request, "method"));
	Span		params = JsonGet(request, "params");

	question->id = psprintf("stepwise-%d", ++last_id);
	initStringInfo(&line);
	appendStringInfo(&line, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":", question->id);
	JsonQuote(&line, method ? method : "elicitation/create");
	appendStringInfo(&line, ",\"params\":%.*s}", params.at ? params.len : 2, params.at ? params.at : "{}");
	OutputLine(line.data);
	pfree(line.data);
	if (method)
		pfree(method);
}

/* Send the questions of an answer. Returns false if it has none, or the client cannot ask that way. */
bool
AskBegin(Call *call, Span result)
{
	JsonList	requests;
	Asking	   *asking;

	if (call->message->modern || !JsonStringIs(JsonGet(result, "resultType"), "input_required"))
		return false;
	JsonRead(JsonGet(result, "inputRequests"), &requests);
	if (requests.count == 0)
		return false;
	asking = palloc0(sizeof(Asking));
	asking->count = requests.count;
	asking->questions = palloc0(requests.count * sizeof(Question));
	for (int i = 0; i < requests.count; i++)
	{
		asking->questions[i].key = pstrdup(requests.members[i].key ? requests.members[i].key : "");
		SendQuestion(&asking->questions[i], requests.members[i].value);
	}
	JsonForget(&requests);
	call->asking = asking;
	call->state = CALL_ASKING;
	return true;
}

/* ---------- answers ---------- */

static Question *
FindQuestion(const Call *call, const char *id)
{
	for (int i = 0; call->asking && i < call->asking->count; i++)
		if (strcmp(call->asking->questions[i].id, id) == 0)
			return &call->asking->questions[i];
	return NULL;
}

/* Write the answers as a member of params. NULL if one is missing. */
static char *
Responses(const Asking *asking)
{
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfoString(&text, "\"inputResponses\":{");
	for (int i = 0; i < asking->count; i++)
	{
		if (asking->questions[i].answer == NULL)
		{
			pfree(text.data);
			return NULL;
		}
		appendStringInfoString(&text, i > 0 ? "," : "");
		JsonQuote(&text, asking->questions[i].key);
		appendStringInfo(&text, ":%s", asking->questions[i].answer);
	}
	appendStringInfoChar(&text, '}');
	return text.data;
}

static void
FreeAsking(Call *call)
{
	for (int i = 0; i < call->asking->count; i++)
	{
		pfree(call->asking->questions[i].id);
		pfree(call->asking->questions[i].key);
		if (call->asking->questions[i].answer)
			pfree(call->asking->questions[i].answer);
	}
	pfree(call->asking->questions);
	pfree(call->asking);
	call->asking = NULL;
}

/* Take an answer of the client. An error instead of an answer leaves the question open, as a cancel does. */
void
AskAnswered(const Message *message)
{
	char	   *id = JsonString(message->id);
	Question   *question = NULL;
	Call	   *call;
	char	   *responses;

	for (call = id ? CallFirst() : NULL; call != NULL; call = call->next)
		if ((question = FindQuestion(call, id)) != NULL)
			break;
	if (id)
		pfree(id);
	if (question == NULL || question->answer != NULL)
	{
		LogLine("-> an answer to no question");
		return;
	}
	question->answer = SpanIs(message->result, '{') ? SpanCopy(message->result) : pstrdup("{\"action\":\"cancel\"}");
	responses = Responses(call->asking);
	if (responses == NULL)
		return;
	FreeAsking(call);
	CallAsk(call, responses);
	pfree(responses);
}

/* Withdraw the questions that are open, since their call ends. */
void
AskForget(Call *call)
{
	if (call->asking == NULL)
		return;
	for (int i = 0; i < call->asking->count; i++)
	{
		char	   *line;

		if (call->asking->questions[i].answer)
			continue;
		line = psprintf("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"%s\"}}",
						call->asking->questions[i].id);
		OutputLine(line);
		pfree(line);
	}
	FreeAsking(call);
}
