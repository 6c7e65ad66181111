/*
 * mcp.h
 *	  what the files of the program stepwise-mcp share
 *
 * The program reads MCP from stdin, one JSON message a line, gives each
 * message to stepwise.mcp() in the database, and writes the answers to stdout.
 * All tables of methods, tools and prompts are in the database. The program
 * knows framing, ids, cancelling, waiting and asking.
 *
 * There is one thread and one loop, in stepwise-mcp.c. Nothing in it blocks
 * but the lookup of a host's name. The sections stand in the order in which
 * the files build on each other.
 */
#ifndef STEPWISE_MCP_H
#define STEPWISE_MCP_H

#include "postgres_fe.h"

#include <poll.h>

#include "lib/stringinfo.h"
#include "libpq-fe.h"

/* the fuzz target has smaller limits */
#ifndef MAX_LINE
#define MAX_LINE		(16 * 1024 * 1024)	/* bytes of a message */
#define MAX_DEPTH		1000	/* levels of JSON in a message */
#endif

typedef int64 Milliseconds;

#define NEVER			PG_INT64_MAX

/* ---------- mcp_log.c: the log file, stderr, the clock ---------- */

extern void LogOpen(const char *path);
extern void LogLine(const char *format,...) pg_attribute_printf(1, 2);
extern void Complain(const char *format,...) pg_attribute_printf(1, 2);
extern Milliseconds Now(void);

/* ---------- mcp_json.c: a shallow look into JSON ---------- */

/* a part of a text that somebody else owns; at is NULL if there is none */
typedef struct Span
{
	const char *at;
	int			len;
} Span;

typedef enum JsonFault
{
	JSON_FINE,
	JSON_BROKEN,
	JSON_NOT_UTF8,
	JSON_TOO_DEEP,
	JSON_NOT_STORABLE			/* it is JSON, but jsonb cannot hold its escapes */
} JsonFault;

typedef struct JsonMember
{
	char	   *key;			/* NULL in an array */
	Span		value;
} JsonMember;

/* the members of an object, or the elements of an array */
typedef struct JsonList
{
	JsonMember *members;
	int			count;
} JsonList;

extern Span SpanOf(const char *text);
extern bool SpanIs(Span span, char first);
extern char *SpanCopy(Span span);
extern JsonFault JsonCheck(Span text);
extern char *JsonWithoutEscapes(Span text);
extern void JsonRead(Span container, JsonList *list);
extern Span JsonMemberOf(const JsonList *list, const char *key);
extern Span JsonGet(Span object, const char *key);
extern void JsonForget(JsonList *list);
extern char *JsonString(Span span);
extern bool JsonStringIs(Span span, const char *text);
extern Milliseconds JsonMilliseconds(Span span, Milliseconds otherwise);
extern void JsonQuote(StringInfo out, const char *text);
extern char *JsonSplice(Span text, Span object, const char *members);

/* ---------- mcp_frame.c: lines in, lines out ---------- */

typedef enum FrameKind
{
	FRAME_NONE,					/* more bytes are needed */
	FRAME_LINE,
	FRAME_OVERSIZED				/* a line over MAX_LINE was dropped */
} FrameKind;

/* the lines of an input that comes in pieces */
typedef struct Frame
{
	StringInfoData bytes;		/* what was fed and not yet taken */
	int			searched;		/* so many of them are known to have no line end */
	int			taken;			/* so many of them were handed out */
	bool		dropping;		/* inside a line that is too long */
	bool		ended;
} Frame;

extern void FrameInit(Frame *frame);
extern void FrameFeed(Frame *frame, const char *bytes, int len);
extern void FrameEnd(Frame *frame);
extern FrameKind FrameNext(Frame *frame, Span *line);
extern void FrameFree(Frame *frame);

extern void OutputLine(const char *line);
extern int	OutputPending(void);
extern bool OutputWrite(void);
extern void OutputFree(void);

/* ---------- mcp_cure.c: what failed, and what to do about it ---------- */

typedef struct Failure
{
	char		sqlstate[6];	/* "" if the server sent none */
	char	   *message;
	char	   *detail;			/* or NULL */
	char	   *hint;			/* what to do; or NULL */
	bool		lost;			/* the connection ended while the statement ran */
} Failure;

extern Failure *FailureOfConnection(PGconn *conn, const char *role);
extern Failure *FailureOfStatement(PGconn *conn, const PGresult *result, const char *role);
extern Failure *FailureOfLoss(PGconn *conn);
extern bool FailureIsPassing(const Failure *failure);
extern bool FailureIsRepeatable(const Failure *failure);
extern bool FailureIsClients(const Failure *failure);
extern void FailureTell(const Failure *failure);
extern void FailureOver(void);
extern void FailureFree(Failure *failure);

/* ---------- mcp_link.c: one connection ---------- */

typedef enum LinkState
{
	LINK_CLOSED,
	LINK_CONNECTING,
	LINK_IDLE,
	LINK_BUSY,					/* a request runs */
	LINK_CLEANING				/* it failed inside a transaction, which is rolled back */
} LinkState;

/* how each request is run; set once by the options */
typedef struct LinkOptions
{
	const char *conninfo;		/* or NULL */
	const char *tenant;			/* or NULL */
	const char *role;			/* or NULL */
	bool		read_only;
} LinkOptions;

struct Job;

typedef struct Link
{
	LinkState	state;
	PGconn	   *conn;			/* NULL if closed */
	struct Job *job;			/* what runs; NULL if its owner has cancelled it */
	PGresult   *answer;
	Failure    *failure;
	Milliseconds since;			/* in this state */
	short		events;			/* what poll() waits for */
	Milliseconds patience;		/* to connect */
	pid_t		canceller;		/* the process that cancels the request, or 0 */
	Milliseconds cancel_at;		/* cancel it again at this time */
} Link;

extern LinkOptions TheLink;

extern void LinkConnect(Link *link);
extern Failure *LinkPollConnection(Link *link);
extern bool LinkSend(Link *link, struct Job *job);
extern bool LinkSendPlain(Link *link, const char *statement);
extern void LinkRead(Link *link);
extern void LinkCancel(Link *link);
extern bool LinkReaped(Link *link, pid_t pid);
extern void LinkClose(Link *link);
extern Milliseconds LinkDeadline(const Link *link);

/* ---------- mcp_pool.c: requests wait for a connection ---------- */

/* one statement; its owner embeds it */
typedef struct Job
{
	char	   *request;		/* the text for stepwise.mcp */
	bool		background;		/* nobody waits for it */
	int			tries;
	Milliseconds since;
	Link	   *link;			/* NULL while it waits */
	struct Job *next;			/* in the queue */
	void		(*done) (struct Job *job, const char *answer, const Failure *failure);
	void		(*notice) (struct Job *job, const char *message);
} Job;

#define MAX_POLLED		9		/* descriptors: the pool, and the connection that listens */

extern void PoolStart(void);
extern void PoolSubmit(Job *job);
extern void PoolCancel(Job *job);
extern bool PoolIsBusy(void);
extern int	PoolPollSet(struct pollfd *fds, Link **links);
extern void PoolHandle(Link *link);
extern void PoolTick(void);
extern Milliseconds PoolDeadline(void);
extern void PoolReap(void);
extern void PoolClose(void);

/* ---------- mcp_listen.c: the connection that listens ---------- */

extern void ListenStart(void);
extern uint64 ListenCount(void);
extern int	ListenPollSet(struct pollfd *fds, Link **links);
extern bool ListenHandle(const Link *link);
extern void ListenTick(void);
extern Milliseconds ListenDeadline(void);
extern void ListenClose(void);

/* ---------- mcp_batch.c: answers that go out together ---------- */

/* the answers to messages that came in one array */
typedef struct Batch
{
	int			open;			/* messages that may still be answered, and one while they are read */
	StringInfoData answers;
} Batch;

extern Batch *BatchOpen(void);
extern void BatchJoin(Batch *batch);
extern void BatchAdd(Batch *batch, const char *answer);
extern void BatchLeave(Batch *batch);

/* ---------- mcp_message.c: messages of the client, answers to it ---------- */

/* the spans point into the text */
typedef struct Message
{
	Batch	   *batch;			/* that gets its answer; or NULL */
	char	   *text;
	Span		whole;
	Span		id;
	Span		method;
	Span		params;
	Span		meta;			/* params._meta, if it is an object */
	Span		result;
	Span		error;
	Span		progress_token;
	bool		modern;			/* says its protocol version itself */
} Message;

#define ERROR_PARSE		(-32700)
#define ERROR_REQUEST	(-32600)
#define ERROR_PARAMS	(-32602)
#define ERROR_INTERNAL	(-32603)

extern Message *MessageRead(Span text, Batch *batch);
extern char *MessageRequest(const Message *message, const char *meta, const char *more);
extern char *MessageKey(Span id);
extern void MessageFree(Message *message);
extern void SendAnswer(Message *to, const char *kind, Span value);
extern void SendError(Message *to, int code, const char *text);
extern void SendFailure(Message *to, const Failure *failure);
extern void SendEach(Span messages);

/* ---------- mcp_call.c: calls that are open ---------- */

typedef enum CallState
{
	CALL_RUNNING,				/* its statement runs, or waits for a connection */
	CALL_WAITING,				/* until something changes */
	CALL_ASKING,				/* until the client has answered */
	CALL_STREAMING				/* until the client ends it */
} CallState;

typedef struct Call
{
	Job			job;			/* first, so that a Job is a Call */
	CallState	state;
	Message    *message;
	char	   *key;			/* of its id; NULL if nobody waits for an answer */
	Milliseconds started;
	Milliseconds asked;			/* when the database was asked last */
	Milliseconds wake;			/* ask it again at this time */
	uint64		seen;			/* notifications when it was asked */
	double		progress;		/* that the client knows */
	char	   *more;			/* members that its params got when it asked last; or NULL */
	char	   *again;			/* state of the rounds before, as JSON; or NULL */
	struct Asking *asking;		/* mcp_ask.c */
	struct Stream *stream;		/* mcp_wait.c */
	struct Call *next;
} Call;

typedef void (*CallDone) (Job *job, const char *answer, const Failure *failure);

extern const char *TheTools;	/* "default" or "all" */

extern void CallRemember(Span version, Span capabilities);
extern bool CallMayBatch(void);
extern bool CallFits(const Message *message);
extern Call *CallNew(Message *message, CallDone done);
extern void CallAsk(Call *call, const char *more);
extern void CallAskAgain(Call *call, Span state);
extern void CallAskChanges(Call *call, const char *state);
extern void CallProgress(Call *call, Span progress);
extern bool CallWorks(Span request);
extern Call *CallFirst(void);
extern Call *CallFind(Span id);
extern void CallEnd(Call *call);

/* ---------- mcp_ask.c: the client asks a person ---------- */

extern bool AskBegin(Call *call, Span result);
extern void AskAnswered(const Message *message);
extern void AskForget(Call *call);

/* ---------- mcp_wait.c: calls that wait, and streams ---------- */

extern void WaitBegin(Call *call, Span wait);
extern void StreamBegin(Call *call, Span listen, Span result);
extern void StreamGoOn(Call *call, Span result);
extern void StreamFinish(Call *call);
extern void StreamForget(Call *call);
extern Call *StreamOf(Span uri);
extern bool StreamFits(void);
extern void WaitTick(void);
extern Milliseconds WaitDeadline(void);

/* ---------- mcp_answer.c: what becomes of a call ---------- */

extern void AnswerBegin(Message *message);
extern void AnswerCancel(Span id);
extern void AnswerEndWaits(void);
extern void AnswerEndAll(const char *why);

/* ---------- mcp_receive.c: what a line of the client is ---------- */

extern void ReceiveLine(Span line);
extern void ReceiveOversized(void);

#endif							/* STEPWISE_MCP_H */
