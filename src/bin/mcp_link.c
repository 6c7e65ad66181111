/*
 * mcp_link.c
 *	  one connection to the database
 *
 * A request is one pipeline: what the options ask for, the call of
 * stepwise.mcp, and one Sync. So it takes one round trip and one transaction.
 * The settings hold for the transaction only; a pooler in transaction mode
 * may stand between.
 */
#include "mcp.h"

#include <signal.h>
#include <unistd.h>

#define CONNECT_PATIENCE	10000	/* milliseconds, where connect_timeout is not set */
#define CANCEL_PATIENCE		10	/* seconds */
#define CANCEL_PAUSE		300 /* milliseconds between two tries */

LinkOptions TheLink;

static void
SetState(Link *link, LinkState state)
{
	link->state = state;
	link->since = Now();
}

/* ---------- connecting ---------- */

/* Hand progress to the call that runs. Write other messages of the server to the log. */
static void
ReceiveNotice(void *arg, const PGresult *result)
{
	Link	   *link = arg;
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	if (sqlstate == NULL || message == NULL)
		return;
	if (strcmp(sqlstate, "SW000") != 0)
		LogLine("server: %s: %s", sqlstate, message);
	else if (link->job && link->job->notice)
		link->job->notice(link->job, message);
}

static Milliseconds
ConnectPatience(PGconn *conn)
{
	PQconninfoOption *options = PQconninfo(conn);
	int			seconds = 0;

	for (PQconninfoOption *option = options; option && option->keyword; option++)
		if (strcmp(option->keyword, "connect_timeout") == 0 && option->val)
			seconds = atoi(option->val);
	PQconninfoFree(options);
	return seconds > 0 ? seconds * 1000 : CONNECT_PATIENCE;
}

/* Begin to connect. A connection string stands in place of the database's name, as in psql. */
void
LinkConnect(Link *link)
{
	const char *const keywords[] = {"dbname", "fallback_application_name", "client_encoding", NULL};
	const char *const values[] = {TheLink.conninfo, "stepwise-mcp", "UTF8", NULL};

	link->conn = PQconnectStartParams(keywords, values, 1);
	if (link->conn == NULL)
	{
		Complain("out of memory");
		exit(1);
	}
	link->patience = ConnectPatience(link->conn);
	link->events = POLLOUT;
	PQsetErrorVerbosity(link->conn, PQERRORS_VERBOSE);	/* for TakeSqlstate */
	PQsetNoticeReceiver(link->conn, ReceiveNotice, link);
	SetState(link, LINK_CONNECTING);
}

static void
SessionBegins(Link *link)
{
	PQsetErrorVerbosity(link->conn, PQERRORS_DEFAULT);
	PQsetnonblocking(link->conn, 1);
	PQenterPipelineMode(link->conn);
	link->events = POLLIN;
	SetState(link, LINK_IDLE);
	LogLine("connected to \"%s\" as \"%s\"", PQdb(link->conn), PQuser(link->conn));
}

/* Say that a server does not answer. */
static Failure *
FailureOfTimeout(void)
{
	Failure    *failure = palloc0(sizeof(Failure));

	failure->message = pstrdup("the server did not answer in time");
	failure->hint = pstrdup("Check PGHOST and PGPORT or the connection string: pg_isready");
	return failure;
}

/* Go on connecting. Returns the failure, and closes the link, if that is not possible. */
Failure *
LinkPollConnection(Link *link)
{
	Failure    *failure = NULL;

	switch (PQconnectPoll(link->conn))
	{
		case PGRES_POLLING_OK:
			SessionBegins(link);
			return NULL;
		case PGRES_POLLING_READING:
			link->events = POLLIN;
			break;
		case PGRES_POLLING_WRITING:
			link->events = POLLOUT;
			break;
		default:
			failure = FailureOfConnection(link->conn, TheLink.role);
	}
	if (failure == NULL && Now() >= LinkDeadline(link))
		failure = FailureOfTimeout();
	if (failure)
		LinkClose(link);
	return failure;
}

/* Get the time at which a connection that is being made must be looked at. */
Milliseconds
LinkDeadline(const Link *link)
{
	if (link->state != LINK_CONNECTING)
		return NEVER;
	return PQstatus(link->conn) == CONNECTION_BAD ? 0 : link->since + link->patience;
}

/* ---------- sending ---------- */

static void
Flush(Link *link)
{
	link->events = POLLIN | (PQflush(link->conn) == 1 ? POLLOUT : 0);
}

static bool
SendStatement(Link *link, const char *statement, const char *argument)
{
	return PQsendQueryParams(link->conn, statement, argument ? 1 : 0, NULL, &argument, NULL, NULL, 0);
}

static bool
SendRole(Link *link)
{
	char	   *name = PQescapeIdentifier(link->conn, TheLink.role, strlen(TheLink.role));
	char	   *statement;
	bool		sent;

	if (name == NULL)
		return false;
	statement = psprintf("SET LOCAL ROLE %s", name);
	sent = SendStatement(link, statement, NULL);
	pfree(statement);
	PQfreemem(name);
	return sent;
}

/* Send what the options ask for, in a transaction, around the call. Without options, the call is enough. */
static bool
SendRequest(Link *link, const char *request)
{
	bool		is_block = TheLink.tenant || TheLink.role || TheLink.read_only;

	if (is_block && !SendStatement(link, TheLink.read_only ? "BEGIN READ ONLY" : "BEGIN", NULL))
		return false;
	if (TheLink.role && !SendRole(link))
		return false;
	if (TheLink.tenant && !SendStatement(link, "SELECT stepwise.enter_tenant($1) AS tenant", TheLink.tenant))
		return false;
	if (!SendStatement(link, "SELECT stepwise.mcp($1::pg_catalog.jsonb) AS answer", request))
		return false;
	return !is_block || SendStatement(link, "COMMIT", NULL);
}

/* Send a request on an idle link. If that fails nothing was done, and the link is closed. */
bool
LinkSend(Link *link, Job *job)
{
	if (!SendRequest(link, job->request) || !PQpipelineSync(link->conn))
	{
		LinkClose(link);
		return false;
	}
	link->job = job;
	SetState(link, LINK_BUSY);
	Flush(link);
	return true;
}

/* The same for a statement of the program itself. */
bool
LinkSendPlain(Link *link, const char *statement)
{
	if (!SendStatement(link, statement, NULL) || !PQpipelineSync(link->conn))
	{
		LinkClose(link);
		return false;
	}
	SetState(link, LINK_BUSY);
	Flush(link);
	return true;
}

/* ---------- reading ---------- */

static void
Lose(Link *link)
{
	if (link->state == LINK_BUSY)
	{
		FailureFree(link->failure);
		link->failure = FailureOfLoss(link->conn);
	}
	LogLine("lost a connection");
	LinkClose(link);
}

/* Keep the answer, and the first error. */
static void
KeepResult(Link *link, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status == PGRES_TUPLES_OK && strcmp(PQfname(result, 0), "answer") == 0 && link->answer == NULL)
	{
		link->answer = result;
		return;
	}
	if (status == PGRES_FATAL_ERROR && link->failure == NULL && link->state == LINK_BUSY)
		link->failure = FailureOfStatement(link->conn, result, TheLink.role);
	PQclear(result);
}

/* A request that failed leaves its transaction open. */
static void
PipelineEnds(Link *link)
{
	if (PQtransactionStatus(link->conn) == PQTRANS_IDLE)
	{
		SetState(link, LINK_IDLE);
		return;
	}
	if (!LinkSendPlain(link, "ROLLBACK"))
		return;
	SetState(link, LINK_CLEANING);
}

static void
ReadResults(Link *link)
{
	int			nothing = 0;

	while (link->state >= LINK_BUSY && nothing < 2 && !PQisBusy(link->conn))
	{
		PGresult   *result = PQgetResult(link->conn);

		if (result == NULL)
			nothing++;
		else if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
		{
			PQclear(result);
			PipelineEnds(link);
			nothing = 0;
		}
		else
		{
			KeepResult(link, result);
			nothing = 0;
		}
	}
}

/*
 * Read what the server has sent. When the request is done the link is idle,
 * or closed if the connection was lost, and has the answer or the failure.
 */
void
LinkRead(Link *link)
{
	bool		works = PQconsumeInput(link->conn);

	if (link->state >= LINK_BUSY)
		ReadResults(link);
	else
		PQisBusy(link->conn);	/* parses messages that nobody asked for */
	if (link->state == LINK_CLOSED)
		return;
	if (!works || PQstatus(link->conn) == CONNECTION_BAD)
		Lose(link);
	else
		Flush(link);
}

/* ---------- ending ---------- */

#ifdef LIBPQ_HAS_ASYNC_CANCEL
typedef PGcancelConn Canceller;
#define CancellerMake(conn)		PQcancelCreate(conn)
#define CancellerRun(canceller) PQcancelBlocking(canceller)
#define CancellerFree(canceller) PQcancelFinish(canceller)
#else
typedef PGcancel Canceller;
#define CancellerMake(conn)		PQgetCancel(conn)
#define CancellerFree(canceller) PQfreeCancel(canceller)

static void
CancellerRun(Canceller *canceller)
{
	char		ignored[256];

	PQcancel(canceller, ignored, sizeof(ignored));
}
#endif

/*
 * Cancel the request that runs. libpq waits for the server while it does that,
 * so a process of its own does it. The link is not used again before that
 * process has ended, since it could cancel the next request. The server
 * forgets a cancel that overtakes its request, so it may take several tries.
 */
void
LinkCancel(Link *link)
{
	Canceller  *canceller;

	if (link->state != LINK_BUSY || link->canceller != 0)
		return;
	link->cancel_at = Now() + CANCEL_PAUSE;
	canceller = CancellerMake(link->conn);
	if (canceller == NULL)
		return;
	fflush(NULL);
	link->canceller = fork();
	if (link->canceller == 0)
	{
		/* the client waits for the end of its pipe, and must not wait for us */
		close(STDIN_FILENO);
		close(STDOUT_FILENO);
		signal(SIGALRM, SIG_DFL);
		alarm(CANCEL_PATIENCE);
		CancellerRun(canceller);
		_exit(0);
	}
	if (link->canceller < 0)
		link->canceller = 0;
	CancellerFree(canceller);
}

/* Note that a process has ended. */
bool
LinkReaped(Link *link, pid_t pid)
{
	if (link->canceller != pid)
		return false;
	link->canceller = 0;
	return true;
}

/* Close the connection. Answer and failure stay. */
void
LinkClose(Link *link)
{
	if (link->conn)
		PQfinish(link->conn);
	link->conn = NULL;
	SetState(link, LINK_CLOSED);
}
