/*
 * mcp_pool.c
 *	  requests wait for a connection
 *
 * A long call must not block another one, so there are several connections.
 * They are made when they are needed, and closed when they were idle for
 * long; the first one is made at the start, and stays. Requests that find no
 * connection wait in a queue, in their order.
 */
#include "mcp.h"

#include <sys/wait.h>

#define POOL_SIZE			(MAX_POLLED - 1)
#define MAX_BACKGROUND		(POOL_SIZE / 2)
#define MAX_TRIES			3
#define IDLE_PATIENCE		60000	/* milliseconds */
#define RESTART_PATIENCE	5000	/* how long a request waits for a server that restarts */
#define RETRY_PAUSE			200

static Link links[POOL_SIZE];
static Job *queue;
static Milliseconds retry_at;	/* make no connection before this time */
static bool was_connected;		/* so the server is there, and may come back */

static void Dispatch(void);

/* ---------- the queue ---------- */

static void
PutIntoQueue(Job *job, bool first)
{
	Job		  **place = &queue;

	while (!first && *place != NULL)
		place = &(*place)->next;
	job->next = *place;
	*place = job;
}

static void
TakeFromQueue(Job *job)
{
	for (Job **place = &queue; *place != NULL; place = &(*place)->next)
	{
		if (*place == job)
		{
			*place = job->next;
			return;
		}
	}
}

/* Run a request as soon as there is a connection. */
void
PoolSubmit(Job *job)
{
	job->tries = 0;
	job->link = NULL;
	job->since = Now();
	PutIntoQueue(job, false);
	Dispatch();
}

/* Fail the requests that wait since then or longer. Those that their owners add meanwhile are not among them. */
static void
FailQueue(const Failure *failure, Milliseconds since)
{
	Job		   *failed = queue;

	queue = NULL;
	while (failed != NULL)
	{
		Job		   *job = failed;

		failed = job->next;
		if (job->since <= since)
			job->done(job, NULL, failure);
		else
			PutIntoQueue(job, false);
	}
}

/* ---------- giving requests to connections ---------- */

static int
CountLinks(LinkState state)
{
	int			count = 0;

	for (int i = 0; i < POOL_SIZE; i++)
		count += links[i].state == state;
	return count;
}

static Link *
FreeLink(void)
{
	for (int i = 0; i < POOL_SIZE; i++)
		if (links[i].state == LINK_IDLE && links[i].canceller == 0)
			return &links[i];
	return NULL;
}

/* Find the first request that may run now. Work in the background leaves connections to those who wait. */
static Job *
NextJob(void)
{
	int			background = 0;
	Job		   *job;

	for (int i = 0; i < POOL_SIZE; i++)
		background += links[i].job != NULL && links[i].job->background;
	for (job = queue; job != NULL; job = job->next)
		if (!job->background || background < MAX_BACKGROUND)
			return job;
	return NULL;
}

/* Make as many connections as there are requests that wait. */
static void
MakeConnections(void)
{
	int			needed = -CountLinks(LINK_CONNECTING);

	for (Job *job = NextJob(); job != NULL; job = job->next)
		needed++;
	for (int i = 0; i < POOL_SIZE && needed > 0 && Now() >= retry_at; i++)
	{
		if (links[i].state != LINK_CLOSED || links[i].canceller != 0)
			continue;
		LinkConnect(&links[i]);
		needed--;
	}
}

static void
Dispatch(void)
{
	Job		   *job;
	Link	   *link;

	while ((job = NextJob()) != NULL && (link = FreeLink()) != NULL)
	{
		TakeFromQueue(job);
		if (LinkSend(link, job))
			job->link = link;
		else
			PutIntoQueue(job, true);
	}
	MakeConnections();
}

/* ---------- what becomes of a request ---------- */

/* Give the answer of a link to the owner of its request. */
static void
Deliver(Link *link)
{
	Job		   *job = link->job;
	PGresult   *answer = link->answer;
	Failure    *failure = link->failure;

	link->job = NULL;
	link->answer = NULL;
	link->failure = NULL;
	if (job)
		job->link = NULL;
	if (job && failure && FailureIsRepeatable(failure) && ++job->tries <= MAX_TRIES)
		PutIntoQueue(job, true);
	else if (job)
	{
		bool		has_answer = failure == NULL && answer && PQntuples(answer) == 1 && !PQgetisnull(answer, 0, 0);

		if (failure)
			FailureTell(failure);
		else
			FailureOver();
		job->done(job, has_answer ? PQgetvalue(answer, 0, 0) : NULL, failure);
	}
	PQclear(answer);
	FailureFree(failure);
}

/*
 * There is no connection. While others work, requests wait for those. A
 * server that was there may be restarting, so requests wait for it a while.
 */
static void
ConnectionFailed(Failure *failure)
{
	bool		comes_back = strcmp(failure->sqlstate, "57P03") == 0 || (was_connected && FailureIsPassing(failure));

	retry_at = Now() + RETRY_PAUSE;
	if (CountLinks(LINK_BUSY) + CountLinks(LINK_IDLE) + CountLinks(LINK_CLEANING) > 0)
		LogLine("no further connection: %s", failure->message);
	else
	{
		Milliseconds since = comes_back ? Now() - RESTART_PATIENCE : Now();
		bool		give_up = !comes_back || (queue && queue->since <= since);

		if (give_up)
		{
			was_connected = false;
			FailureTell(failure);
			FailQueue(failure, since);
		}
	}
	FailureFree(failure);
}

/* Cancel a request. Its owner hears no more of it, and may free it. */
void
PoolCancel(Job *job)
{
	if (job->link == NULL)
		TakeFromQueue(job);
	else
	{
		LinkCancel(job->link);
		job->link->job = NULL;
		job->link = NULL;
	}
}

/* ---------- the loop ---------- */

/* Make the first connection. */
void
PoolStart(void)
{
	LinkConnect(&links[0]);
}

/* Tell whether a request runs or waits. */
bool
PoolIsBusy(void)
{
	for (int i = 0; i < POOL_SIZE; i++)
		if (links[i].canceller != 0)
			return true;
	return queue != NULL || CountLinks(LINK_BUSY) + CountLinks(LINK_CLEANING) > 0;
}

/* Add the descriptors that poll() waits for. Returns how many. */
int
PoolPollSet(struct pollfd *fds, Link **polled)
{
	int			count = 0;

	for (int i = 0; i < POOL_SIZE; i++)
	{
		if (links[i].state == LINK_CLOSED || PQsocket(links[i].conn) < 0)
			continue;
		fds[count].fd = PQsocket(links[i].conn);
		fds[count].events = links[i].events;
		fds[count].revents = 0;
		polled[count++] = &links[i];
	}
	return count;
}

/* Go on with a link whose descriptor is ready. */
void
PoolHandle(Link *link)
{
	if (link->state == LINK_CONNECTING)
	{
		Failure    *failure = LinkPollConnection(link);

		if (failure)
			ConnectionFailed(failure);
		was_connected = was_connected || link->state == LINK_IDLE;
	}
	else if (link->state != LINK_CLOSED)
	{
		LinkRead(link);
		if (link->state <= LINK_IDLE)
			Deliver(link);
	}
	Dispatch();
}

static Milliseconds
DeadlineOf(const Link *link)
{
	if (link->state == LINK_IDLE && link != &links[0])
		return link->since + IDLE_PATIENCE;
	if (link->state == LINK_BUSY && link->job == NULL && link->canceller == 0)
		return link->cancel_at;
	return LinkDeadline(link);
}

/* Do what is due by the clock. */
void
PoolTick(void)
{
	for (int i = 0; i < POOL_SIZE; i++)
	{
		if (Now() < DeadlineOf(&links[i]))
			continue;
		if (links[i].state == LINK_IDLE)
			LinkClose(&links[i]);
		else if (links[i].state == LINK_BUSY)
			LinkCancel(&links[i]);
		else
			PoolHandle(&links[i]);
	}
	Dispatch();
}

/* Get the time of the next PoolTick. */
Milliseconds
PoolDeadline(void)
{
	Milliseconds deadline = queue && retry_at > Now() ? retry_at : NEVER;

	for (int i = 0; i < POOL_SIZE; i++)
		deadline = Min(deadline, DeadlineOf(&links[i]));
	return deadline;
}

/* Take note of processes that have ended, and use their links again. */
void
PoolReap(void)
{
	pid_t		pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (int i = 0; i < POOL_SIZE; i++)
			if (LinkReaped(&links[i], pid))
				break;
	Dispatch();
}

/* Close all connections, at the end. */
void
PoolClose(void)
{
	for (int i = 0; i < POOL_SIZE; i++)
	{
		PQclear(links[i].answer);
		FailureFree(links[i].failure);
		LinkClose(&links[i]);
	}
}
