/*
 * mcp_listen.c
 *	  the connection that listens
 *
 * The database notifies the channel "stepwise" of every change of a plan. The
 * connection is made when the first call waits. Calls that wait look at the
 * number of notifications; it also grows when the connection begins to listen,
 * since a notification may have been missed before.
 */
#include "mcp.h"

#define FIRST_PAUSE		1000	/* milliseconds before a lost connection is made again */
#define LONGEST_PAUSE	30000

static Link listener;
static bool wanted;
static bool listens;			/* the statement was sent */
static uint64 notifications;
static Milliseconds pause = FIRST_PAUSE;

/* Listen from now on. */
void
ListenStart(void)
{
	if (wanted)
		return;
	wanted = true;
	LinkConnect(&listener);
}

/* Get the number of notifications so far. */
uint64
ListenCount(void)
{
	return notifications;
}

/* Add the descriptor that poll() waits for. Returns how many. */
int
ListenPollSet(struct pollfd *fds, Link **polled)
{
	if (listener.state == LINK_CLOSED || PQsocket(listener.conn) < 0)
		return 0;
	fds->fd = PQsocket(listener.conn);
	fds->events = listener.events;
	fds->revents = 0;
	*polled = &listener;
	return 1;
}

static void
GoOnConnecting(void)
{
	Failure    *failure = LinkPollConnection(&listener);

	listens = false;
	if (failure)
	{
		LogLine("cannot listen: %s", failure->message);
		FailureFree(failure);
	}
	else if (listener.state == LINK_IDLE)
		LinkSendPlain(&listener, "LISTEN stepwise");
}

static void
ReadNotifications(void)
{
	PGnotify   *notify;

	LinkRead(&listener);
	FailureFree(listener.failure);
	listener.failure = NULL;
	if (listener.state == LINK_CLOSED)
		return;
	if (listener.state == LINK_IDLE && !listens)
	{
		listens = true;
		pause = FIRST_PAUSE;
		notifications++;
	}
	while ((notify = PQnotifies(listener.conn)) != NULL)
	{
		notifications++;
		PQfreemem(notify);
	}
}

/* Go on, if it is this link that is ready. */
bool
ListenHandle(const Link *link)
{
	if (link != &listener)
		return false;
	if (listener.state == LINK_CONNECTING)
		GoOnConnecting();
	else if (listener.state != LINK_CLOSED)
		ReadNotifications();
	return true;
}

/* Connect again after a while. */
void
ListenTick(void)
{
	if (Now() < ListenDeadline())
		return;
	if (listener.state == LINK_CONNECTING)
		GoOnConnecting();
	else
	{
		pause = Min(pause * 2, LONGEST_PAUSE);
		LinkConnect(&listener);
	}
}

/* Get the time of the next ListenTick. */
Milliseconds
ListenDeadline(void)
{
	if (wanted && listener.state == LINK_CLOSED)
		return listener.since + pause;
	return LinkDeadline(&listener);
}

/* Close the connection, at the end. */
void
ListenClose(void)
{
	FailureFree(listener.failure);
	LinkClose(&listener);
}
