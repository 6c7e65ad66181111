/*
 * send.c
 *	  send the answers of our functions to the client
 *
 * To send a jsonb value as text, PostgreSQL calls jsonb_out, which takes longer
 * than anything else that is done for an agent's call. So the answer of a call
 * is written by json_text.c, if it is what a SELECT sends to the client: the
 * only column, in text format. A receiver of rows stands before that of
 * PostgreSQL. In place of the answer it hands over its text as a value of type
 * text, which PostgreSQL sends as it is. The client is told jsonb all the same,
 * since what it is told comes from the query.
 *
 * Everything else passes through: values that are not the answer of a call,
 * other formats, EXPLAIN, cursors, EXECUTE, and statements inside of functions.
 */
#include "base/base.h"

#include "executor/executor.h"
#include "tcop/dest.h"
#include "tcop/pquery.h"

/* a receiver of rows that stands before another one */
typedef struct Sender
{
	DestReceiver pub;
	DestReceiver *client;
} Sender;

static ExecutorRun_hook_type previous_run = NULL;
static Datum answer = (Datum) 0;	/* of the last call; it tells its row from others */
static TupleTableSlot *text_slot = NULL;	/* for a row of one text */

/* Note the answer that a function returns. Returns it. */
Datum
SendNote(Datum value)
{
	answer = value;
	return value;
}

/* Hand over a row with the text of a jsonb value. */
static bool
SendText(const Jsonb *value, DestReceiver *client)
{
	char	   *text = JsonToText(value);
	bool		more;

	ExecClearTuple(text_slot);
	text_slot->tts_values[0] = CStringGetTextDatum(text);
	text_slot->tts_isnull[0] = false;
	ExecStoreVirtualTuple(text_slot);
	more = client->receiveSlot(text_slot, client);
	pfree(DatumGetPointer(text_slot->tts_values[0]));
	ExecClearTuple(text_slot);
	pfree(text);
	return more;
}

static bool
SenderReceive(TupleTableSlot *slot, DestReceiver *self)
{
	DestReceiver *client = ((Sender *) self)->client;

	slot_getallattrs(slot);
	if (slot->tts_isnull[0] || slot->tts_values[0] != answer)
		return client->receiveSlot(slot, client);
	return SendText(DatumGetJsonbP(answer), client);
}

static void
SenderStartup(DestReceiver *self, int operation, TupleDesc type)
{
	DestReceiver *client = ((Sender *) self)->client;

	client->rStartup(client, operation, type);
}

static void
SenderShutdown(DestReceiver *self)
{
	DestReceiver *client = ((Sender *) self)->client;

	client->rShutdown(client);
}

static void
SenderDestroy(DestReceiver *self)
{
}

/* Check whether rows go to the client, or to who uses a backend without a server. */
static bool
IsForClient(const DestReceiver *receiver)
{
	return receiver->mydest == DestRemote || receiver->mydest == DestRemoteExecute || receiver->mydest == DestDebug;
}

/* Check whether a query sends one jsonb value in each row, as text. */
static bool
SendsJsonText(const QueryDesc *query)
{
	return IsForClient(query->dest) && query->operation == CMD_SELECT &&
		query->tupDesc->natts == 1 && TupleDescAttr(query->tupDesc, 0)->atttypid == JSONBOID &&
		ActivePortal != NULL && (ActivePortal->formats == NULL || ActivePortal->formats[0] == 0);
}

static void
RunOn(QueryDesc *query, ScanDirection direction, RUN_LIMITS)
{
	if (previous_run != NULL)
		previous_run(query, direction, RUN_LIMITS_GIVEN);
	else
		standard_ExecutorRun(query, direction, RUN_LIMITS_GIVEN);
}

/* Run a query. After an error nobody uses its receiver any more. */
static void
SendRun(QueryDesc *query, ScanDirection direction, RUN_LIMITS)
{
	Sender		sender = {.pub = {SenderReceive, SenderStartup, SenderShutdown, SenderDestroy}};

	answer = (Datum) 0;
	if (!SendsJsonText(query))
	{
		RunOn(query, direction, RUN_LIMITS_GIVEN);
		return;
	}
	sender.client = query->dest;
	sender.pub.mydest = sender.client->mydest;
	query->dest = &sender.pub;
	RunOn(query, direction, RUN_LIMITS_GIVEN);
	query->dest = sender.client;
}

/* Install the hook. */
void
SendInit(void)
{
	MemoryContext outer = MemoryContextSwitchTo(TopMemoryContext);
	TupleDesc	type = CreateTemplateTupleDesc(1);

	TupleDescInitBuiltinEntry(type, 1, "answer", TEXTOID, -1, 0);
	text_slot = MakeSingleTupleTableSlot(type, &TTSOpsVirtual);
	MemoryContextSwitchTo(outer);
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = SendRun;
}
