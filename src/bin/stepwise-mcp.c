/*
 * stepwise-mcp.c
 *	  the MCP server on stdin and stdout: options, signals, the loop
 *
 * It ends when the input ends or a signal comes. At the end of the input the
 * calls that run are finished first; a signal cancels them.
 */
#include "mcp.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "getopt_long.h"

#define FINISH_PATIENCE		10000	/* milliseconds for calls that run when the input ends */
#define CANCEL_PATIENCE		2000	/* for calls that are cancelled */
#define UNREAD_LIMIT		MAX_LINE	/* bytes; read no more from a client that does not read */

typedef enum Phase
{
	PHASE_WORKING,
	PHASE_FINISHING,			/* the input has ended */
	PHASE_CANCELLING,
	PHASE_OVER
} Phase;

static Phase phase;
static Milliseconds phase_end = NEVER;
static bool client_gone;		/* nobody reads the output */
static Frame input;

/* ---------- options ---------- */

static void
Usage(void)
{
	printf("stepwise-mcp is the MCP server of pg_stepwise on stdin and stdout.\n\n"
		   "Usage:\n"
		   "  stepwise-mcp [OPTION]... [DATABASE | CONNECTION STRING]\n\n"
		   "Options:\n"
		   "  --tenant NAME        work in this tenant\n"
		   "  --role NAME          act as this role, of which the user is a member\n"
		   "  --read-only          change nothing\n"
		   "  --tools default|all  the tools that a model sees (default: default)\n"
		   "  --log FILE           append a line for each message to this file\n"
		   "  --version            print the version\n"
		   "  --help               print this\n\n"
		   "The connection is that of psql: PGHOST, PGPORT, PGUSER, PGDATABASE, PGSERVICE,\n"
		   "~/.pgpass, or a connection string such as \"host=db dbname=plans user=agent\".\n");
}

static void
SetTools(const char *value)
{
	if (strcmp(value, "default") != 0 && strcmp(value, "all") != 0)
	{
		Complain("--tools is \"default\" or \"all\", not \"%s\"", value);
		exit(1);
	}
	TheTools = value;
}

/* Set an option that may be there, or print something and end. */
static void
SetOption(int option)
{
	switch (option)
	{
		case 't':
			TheLink.tenant = optarg;
			break;
		case 'r':
			TheLink.role = optarg;
			break;
		case 'o':
			TheLink.read_only = true;
			break;
		case 's':
			SetTools(optarg);
			break;
		case 'l':
			LogOpen(optarg);
			break;
		case 'v':
			printf("stepwise-mcp (pg_stepwise) %s\n", STEPWISE_VERSION);
			exit(0);
		case 'h':
			Usage();
			exit(0);
		default:
			fprintf(stderr, "Try \"stepwise-mcp --help\".\n");
			exit(1);
	}
}

static void
ReadOptions(int argc, char **argv)
{
	static const struct option options[] = {
		{"tenant", required_argument, NULL, 't'},
		{"role", required_argument, NULL, 'r'},
		{"read-only", no_argument, NULL, 'o'},
		{"tools", required_argument, NULL, 's'},
		{"log", required_argument, NULL, 'l'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0}
	};
	int			option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
		SetOption(option);
	if (optind < argc)
		TheLink.conninfo = argv[optind++];
	if (optind < argc)
	{
		Complain("too many arguments, the first is \"%s\"", argv[optind]);
		exit(1);
	}
}

/* ---------- signals ---------- */

static int	signal_pipe[2];
static volatile sig_atomic_t stop_signal;

/* Wake up poll(). The pipe does not block; if it is full, poll() wakes up anyway. */
static void
SignalHandler(int number)
{
	int			saved_errno = errno;
	ssize_t		ignored;

	if (number != SIGCHLD)
		stop_signal = number;
	ignored = write(signal_pipe[1], "", 1);
	(void) ignored;
	errno = saved_errno;
}

static void
CatchSignals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
	struct sigaction action = {0};

	if (pipe(signal_pipe) < 0)
	{
		Complain("could not make a pipe: %s", strerror(errno));
		exit(1);
	}
	for (int i = 0; i < 2; i++)
	{
		fcntl(signal_pipe[i], F_SETFL, O_NONBLOCK);
		fcntl(signal_pipe[i], F_SETFD, FD_CLOEXEC);
	}
	action.sa_handler = SignalHandler;
	action.sa_flags = SA_RESTART;
	for (int i = 0; i < lengthof(signals); i++)
		sigaction(signals[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);	/* write() says that the client is gone */
}

/* ---------- the end ---------- */

static void
SetPhase(Phase next, Milliseconds patience)
{
	phase = next;
	phase_end = Now() + patience;
}

static void
CancelAll(const char *why)
{
	if (phase >= PHASE_CANCELLING)
		return;
	LogLine("%s", why);
	SetPhase(PHASE_CANCELLING, CANCEL_PATIENCE);
	AnswerEndAll(why);
}

/* Look whether the next phase begins. */
static void
Advance(void)
{
	if (stop_signal)
		CancelAll("stepwise-mcp was ended by a signal, and the call was cancelled");
	if (phase == PHASE_FINISHING)
		AnswerEndWaits();
	if (phase == PHASE_FINISHING && Now() >= phase_end)
		CancelAll("the input ended, and the call took too long and was cancelled");
	if (phase != PHASE_WORKING && !PoolIsBusy() && (OutputPending() == 0 || client_gone))
		phase = PHASE_OVER;
	if (phase == PHASE_CANCELLING && Now() >= phase_end)
		phase = PHASE_OVER;
}

/* ---------- input and output ---------- */

static void
TakeLines(void)
{
	Span		line;
	FrameKind	kind;

	while ((kind = FrameNext(&input, &line)) != FRAME_NONE)
	{
		if (kind == FRAME_LINE)
			ReceiveLine(line);
		else
			ReceiveOversized();
	}
}

static void
ReadInput(void)
{
	static char buffer[64 * 1024];
	ssize_t		count = read(STDIN_FILENO, buffer, sizeof(buffer));

	if (count < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (count > 0)
		FrameFeed(&input, buffer, count);
	else
		FrameEnd(&input);
	TakeLines();
	if (count > 0)
		return;
	LogLine("the input has ended");
	SetPhase(PHASE_FINISHING, FINISH_PATIENCE);
}

static void
WriteOutput(short revents)
{
	client_gone = (revents & (POLLERR | POLLNVAL)) != 0 || (OutputPending() > 0 && !OutputWrite());
	if (client_gone)
		CancelAll("the client has gone");
}

/* ---------- the loop ---------- */

enum
{
	FD_SIGNAL,
	FD_INPUT,
	FD_OUTPUT,
	FD_LINKS
};

static int
Timeout(void)
{
	Milliseconds deadlines[] = {PoolDeadline(), ListenDeadline(), WaitDeadline(), phase_end};
	Milliseconds left = NEVER;
	Milliseconds now = Now();

	for (int i = 0; i < lengthof(deadlines); i++)
		left = Min(left, deadlines[i] == NEVER ? NEVER : deadlines[i] - now);
	return left == NEVER ? -1 : (int) Max(0, Min(left, 3600000));
}

static void
HandleSignals(void)
{
	char		ignored[64];

	while (read(signal_pipe[0], ignored, sizeof(ignored)) > 0)
		 /* empty the pipe */ ;
	PoolReap();
}

/* Wait for what comes first, and handle it. */
static void
Turn(void)
{
	struct pollfd fds[FD_LINKS + MAX_POLLED] = {0};
	Link	   *polled[MAX_POLLED];
	bool		is_read = OutputPending() <= UNREAD_LIMIT || client_gone;
	int			count = 0;

	fds[FD_SIGNAL].fd = signal_pipe[0];
	fds[FD_SIGNAL].events = POLLIN;
	fds[FD_INPUT].fd = phase == PHASE_WORKING && is_read ? STDIN_FILENO : -1;
	fds[FD_INPUT].events = POLLIN;
	fds[FD_OUTPUT].fd = client_gone ? -1 : STDOUT_FILENO;
	fds[FD_OUTPUT].events = OutputPending() > 0 ? POLLOUT : 0;
	if (is_read)
	{
		count = PoolPollSet(fds + FD_LINKS, polled);
		count += ListenPollSet(fds + FD_LINKS + count, polled + count);
	}
	if (poll(fds, FD_LINKS + count, Timeout()) < 0)
		return;
	if (fds[FD_SIGNAL].revents)
		HandleSignals();
	if (fds[FD_OUTPUT].revents)
		WriteOutput(fds[FD_OUTPUT].revents);
	for (int i = 0; i < count; i++)
		if (fds[FD_LINKS + i].revents && !ListenHandle(polled[i]))
			PoolHandle(polled[i]);
	if (fds[FD_INPUT].revents && phase == PHASE_WORKING)
		ReadInput();
}

int
main(int argc, char **argv)
{
	Span		none = {0};

	ReadOptions(argc, argv);
	CatchSignals();
	FrameInit(&input);
	PoolStart();
	while (phase != PHASE_OVER)
	{
		Turn();
		PoolTick();
		ListenTick();
		WaitTick();
		Advance();
	}
	AnswerEndAll("stepwise-mcp has ended");
	PoolClose();
	ListenClose();
	CallRemember(none, none);
	FailureOver();
	FrameFree(&input);
	OutputFree();
	return 0;
}
