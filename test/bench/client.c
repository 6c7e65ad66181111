/*
 * client.c
 *	  the agents of the benchmark: clients that do steps, as programs on libpq do them
 *
 *	client [OPTION ...] WAY
 *
 *	-c CLIENTS		each is a thread with a connection of its own
 *	-p PROTOCOL		simple, extended or prepared
 *	-n PLANS		plans of each client
 *	-s STEPS		steps that it does of each plan
 *	-t TOOL			tool of the steps
 *	-d SHAPE		dependencies of the steps, as bench.steps has them
 *	-f CONTENDER	take the plans of this contender from bench.pool; otherwise they are created while the clock runs
 *
 * The clock starts when all clients are connected and have done a small plan each, so that what a connection pays
 * once is not in it. It stops when the first client has done all of its own: from then on fewer work. The program
 * prints one line: steps per second; of the calls but for the creation of plans the median, the 99th percentile, and
 * the mean of the middle four fifths, in microseconds; per step the microseconds of CPU of the servers of the clients,
 * bytes of WAL, and bytes on disk.
 *
 * The connection is that of the environment: PGHOST, PGDATABASE and so on. An error ends the program.
 */
#include <libpq-fe.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ID_LENGTH		36
#define MOST_VALUES		3
#define VALUE_ROOM		512
#define WARM_STEPS		8		/* PL/pgSQL and the plan cache settle on a plan at the sixth call */

/* ---------- the ways to do a step ---------- */

/*
 * A statement, and the values of its parameters. "%s" in a value stands for what the call is about: a definition, a
 * plan or a step. The key says what precedes the wanted id in the answer. It is empty where the first column is the
 * id, and NULL where none is wanted.
 */
typedef struct Statement
{
	const char *sql;
	const char *values[MOST_VALUES];
	const char *key;
} Statement;

/* Create a plan, claim a step of it, submit its result. A way without claim does the whole plan at once. */
typedef enum Stage
{
	CREATE,
	CLAIM,
	SUBMIT
} Stage;

#define STAGES			(SUBMIT + 1)

static const char *const StageNames[] = {"create", "claim", "submit"};

typedef struct Way
{
	const char *name;
	const Statement *stages[STAGES];
	bool		empty;			/* it does no step, and shows what the calls cost */
} Way;

/*
 * Ids are found without parsing JSON. jsonb writes short keys first, so the first "stepId" of an answer is that of the
 * step that is handed out: that of "next" comes before that of "submitted". In the text inside an MCP answer the quotes
 * are escaped. The answer to the last step of a plan has no next one, so it is not read.
 */
#define FIRST_COLUMN	""
#define PLAN_ID			"\"planId\": \""
#define STEP_ID			"\"stepId\": \""

#define RESULT			"{\"value\": 42, \"kind\": \"number\", \"note\": \"what the agent found out about the item\"}"
#define CLAIMED			"SELECT step_id, step_order, name, tool, instructions, arguments, attempt FROM "
#define MCP_CALL(tool, arguments) \
	"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", " \
	"\"params\": {\"name\": \"" tool "\", \"arguments\": {" arguments "}}}"

static const Statement CreateByHand = {"SELECT bench.new_handwritten_plan($1)", {"%s"}, FIRST_COLUMN};
static const Statement ClaimByHand = {CLAIMED "handwritten.claim($1)", {"%s"}, FIRST_COLUMN};
static const Statement CompleteByHand = {"SELECT handwritten.complete($1, $2)", {"%s", RESULT}, NULL};
static const Statement AdvanceByHand = {CLAIMED "handwritten.advance($1, $2)", {"%s", RESULT}, FIRST_COLUMN};

static const Statement CreateNothing = {
	"SELECT gen_random_uuid(), pg_logical_emit_message(true, '', '')", {NULL}, FIRST_COLUMN
};
static const Statement Nothing = {"SELECT $1::uuid, pg_logical_emit_message(true, '', '')", {"%s"}, FIRST_COLUMN};
static const Statement NothingAgain = {"SELECT $1::uuid, pg_logical_emit_message(true, '', '')", {"%s"}, NULL};

static const Statement CreatePlan = {
	"SELECT stepwise.create_plan($1, $2, $3)", {"bench", "See how fast it goes", "%s"}, PLAN_ID
};
static const Statement GetNextStep = {"SELECT stepwise.get_next_step($1)", {"%s"}, STEP_ID};
static const Statement SubmitStepResult = {"SELECT stepwise.submit_step_result($1, $2)", {"%s", RESULT}, NULL};
static const Statement Advance = {"SELECT stepwise.advance($1, $2)", {"%s", RESULT}, STEP_ID};
static const Statement Run = {"SELECT stepwise.run($1)", {"%s"}, NULL};

static const Statement CallGetNextStep = {
	"SELECT stepwise.call($1, $2)", {"get_next_step", "{\"planId\": \"%s\"}"}, STEP_ID
};
static const Statement CallAdvance = {
	"SELECT stepwise.call($1, $2)", {"advance", "{\"stepId\": \"%s\", \"result\": " RESULT "}"}, STEP_ID
};
static const Statement McpGetNextStep = {
	"SELECT stepwise.mcp($1)", {MCP_CALL("get_next_step", "\"plan_id\": \"%s\"")}, STEP_ID
};
static const Statement McpSubmit = {
	"SELECT stepwise.mcp($1)", {MCP_CALL("submit_step_result", "\"step_id\": \"%s\", \"result\": " RESULT)}, STEP_ID
};

static const Way Ways[] = {
	{"handwritten", {&CreateByHand, &ClaimByHand, &CompleteByHand}},
	{"handwritten_one", {&CreateByHand, &ClaimByHand, &AdvanceByHand}},
	{"two_calls", {&CreatePlan, &GetNextStep, &SubmitStepResult}},
	{"advance", {&CreatePlan, &GetNextStep, &Advance}},
	{"call", {&CreatePlan, &CallGetNextStep, &CallAdvance}},
	{"mcp", {&CreatePlan, &McpGetNextStep, &McpSubmit}},
	{"run", {&CreatePlan, NULL, &Run}},
	{"empty", {&CreateNothing, &Nothing, &NothingAgain}, .empty = true},
	{"empty_one", {&CreateNothing, &Nothing, &Nothing}, .empty = true},
	{NULL}
};

/* ---------- what all clients share ---------- */

typedef struct Client
{
	pthread_t	thread;
	PGconn	   *conn;
	char		number[12];
	char		(*plans)[ID_LENGTH + 1];	/* NULL: it creates them */
	char	   *text;			/* of a statement in the simple protocol */
	size_t		length;
	size_t		room;
	double	   *times;			/* of the calls, in microseconds */
	int			calls;
	double	   *done;			/* when each of its submissions was answered */
	int			submissions;
	double		begin;
} Client;

typedef struct Probe
{
	double		steps;
	double		wal;
	double		disk;
	double		cpu;
} Probe;

static const Way *TheWay;
static enum
{
	SIMPLE, EXTENDED, PREPARED
}			Protocol = PREPARED;
static int	NumClients = 1;
static int	NumPlans = 1;
static int	NumSteps = 10;
static const char *Tool = "inspect";
static const char *Shape = "";
static const char *Contender = NULL;

static char *Definition;		/* of the plans that the clients create */
static char *WarmDefinition;
static pthread_barrier_t Ready;
static pthread_barrier_t Start;

static void
Die(const char *what, const char *detail)
{
	fprintf(stderr, "client: %s: %s\n", what, detail);
	exit(1);
}

static void *
Allocate(void *old, size_t size)
{
	void	   *memory = realloc(old, size);

	if (memory == NULL)
		Die("allocate", "out of memory");
	return memory;
}

static double
Microseconds(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		Die("clock_gettime", "the clock cannot be read");
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static PGconn *
Connect(void)
{
	PGconn	   *conn = PQconnectdb("");

	if (PQstatus(conn) != CONNECTION_OK)
		Die("connect", PQerrorMessage(conn));
	return conn;
}

static PGresult *
Checked(PGconn *conn, const char *sql, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		Die(sql, PQerrorMessage(conn));
	return result;
}

/* Run a query that is no part of what is measured. */
static PGresult *
Query(PGconn *conn, const char *sql, int nvalues, const char *const *values)
{
	return Checked(conn, sql, PQexecParams(conn, sql, nvalues, NULL, values, NULL, NULL, 0));
}

/* ---------- a call ---------- */

static void
Append(Client *client, const char *text, size_t length)
{
	if (client->length + length + 1 > client->room)
	{
		client->room = 2 * (client->length + length + 1);
		client->text = Allocate(client->text, client->room);
	}
	memcpy(client->text + client->length, text, length);
	client->length += length;
	client->text[client->length] = '\0';
}

/* Put quoted values in the places of the parameters, as a client without parameters does. */
static const char *
TextOf(Client *client, const char *sql, const char *const *values)
{
	const char *parameter;

	client->length = 0;
	for (; (parameter = strchr(sql, '$')) != NULL; sql = parameter + 2)
	{
		const char *value = values[parameter[1] - '1'];
		char	   *quoted = PQescapeLiteral(client->conn, value, strlen(value));

		Append(client, sql, parameter - sql);
		Append(client, quoted, strlen(quoted));
		PQfreemem(quoted);
	}
	Append(client, sql, strlen(sql));
	return client->text;
}

static PGresult *
Send(Client *client, Stage stage, int nvalues, const char *const *values)
{
	const char *sql = TheWay->stages[stage]->sql;
	PGresult   *result;

	if (Protocol == SIMPLE)
		result = PQexec(client->conn, TextOf(client, sql, values));
	else if (Protocol == EXTENDED)
		result = PQexecParams(client->conn, sql, nvalues, NULL, values, NULL, NULL, 0);
	else
		result = PQexecPrepared(client->conn, StageNames[stage], nvalues, values, NULL, NULL, 0);
	return Checked(client->conn, sql, result);
}

static void
ReadId(const PGresult *result, const char *key, char *id)
{
	const char *answer = PQntuples(result) == 1 ? PQgetvalue(result, 0, 0) : "";
	const char *place = strstr(answer, key);

	if (place == NULL || strlen(place + strlen(key)) < ID_LENGTH)
		Die("no id in the answer", answer);
	memcpy(id, place + strlen(key), ID_LENGTH);
	id[ID_LENGTH] = '\0';
}

/* Make the call of a stage about a definition, a plan or a step. Set id to the one in the answer, unless it is NULL. */
static void
Call(Client *client, Stage stage, const char *about, char *id)
{
	const Statement *statement = TheWay->stages[stage];
	const char *values[MOST_VALUES];
	char		room[MOST_VALUES][VALUE_ROOM];
	PGresult   *result;
	double		begin = Microseconds(CLOCK_MONOTONIC);
	double		now;
	int			n;

	for (n = 0; n < MOST_VALUES && statement->values[n]; n++)
	{
		values[n] = about;
		if (strcmp(statement->values[n], "%s") != 0)
		{
			snprintf(room[n], VALUE_ROOM, statement->values[n], about);
			values[n] = room[n];
		}
	}
	result = Send(client, stage, n, values);
	if (statement->key && id)
		ReadId(result, statement->key, id);
	PQclear(result);
	now = Microseconds(CLOCK_MONOTONIC);
	if (stage != CREATE)
		client->times[client->calls++] = now - begin;
	if (stage == SUBMIT)
		client->done[client->submissions++] = now;
}

/* ---------- a client ---------- */

static void
DoPlan(Client *client, const char *plan, int steps)
{
	bool		answers_next = TheWay->stages[SUBMIT]->key != NULL;
	char		step[ID_LENGTH + 1];

	if (TheWay->stages[CLAIM] == NULL)
	{
		Call(client, SUBMIT, plan, NULL);
		return;
	}
	for (int i = 0; i < steps; i++)
	{
		if (i == 0 || !answers_next)
			Call(client, CLAIM, plan, step);
		Call(client, SUBMIT, step, i + 1 < steps ? step : NULL);
	}
}

static void
Prepare(Client *client)
{
	for (Stage stage = CREATE; stage < STAGES; stage++)
	{
		const Statement *statement = TheWay->stages[stage];

		if (statement)
			PQclear(Checked(client->conn, statement->sql,
							PQprepare(client->conn, StageNames[stage], statement->sql, 0, NULL)));
	}
}

/* Connect, and do everything that is done once: prepare, do a small plan, learn which plans to work on. */
static void
WarmUp(Client *client)
{
	char		plan[ID_LENGTH + 1];

	client->conn = Connect();
	client->times = Allocate(NULL, sizeof(double) * (NumPlans * 2 * NumSteps + 2 * WARM_STEPS));
	client->done = Allocate(NULL, sizeof(double) * (NumPlans * NumSteps + WARM_STEPS));
	if (Protocol == PREPARED)
		Prepare(client);
	Call(client, CREATE, WarmDefinition, plan);
	DoPlan(client, plan, WARM_STEPS);
	client->calls = 0;
	client->submissions = 0;
	if (Contender)
	{
		const char *values[] = {Contender, client->number};
		const char *sql = "SELECT plan_id FROM bench.pool WHERE contender = $1 AND client = $2 ORDER BY n";
		PGresult   *result = Query(client->conn, sql, 2, values);

		if (PQntuples(result) != NumPlans)
			Die(Contender, "the pool has another number of plans");
		client->plans = Allocate(NULL, sizeof(*client->plans) * NumPlans);
		for (int i = 0; i < NumPlans; i++)
			strcpy(client->plans[i], PQgetvalue(result, i, 0));
		PQclear(result);
	}
}

static void *
Work(void *arg)
{
	Client	   *client = arg;
	char		plan[ID_LENGTH + 1];

	WarmUp(client);
	pthread_barrier_wait(&Ready);
	pthread_barrier_wait(&Start);
	client->begin = Microseconds(CLOCK_MONOTONIC);
	for (int i = 0; i < NumPlans; i++)
	{
		if (client->plans == NULL)
			Call(client, CREATE, Definition, plan);
		DoPlan(client, client->plans ? client->plans[i] : plan, NumSteps);
	}
	return NULL;
}

/* ---------- what it cost ---------- */

/* Completed steps, WAL and disk of the database, and the CPU of the servers of the clients, up to now. */
static Probe
TakeProbe(PGconn *conn, const Client *clients)
{
	PGresult   *result = Query(conn, "SELECT steps, wal, disk FROM bench.probe", 0, NULL);
	Probe		probe = {0};

	probe.steps = atof(PQgetvalue(result, 0, 0));
	probe.wal = atof(PQgetvalue(result, 0, 1));
	probe.disk = atof(PQgetvalue(result, 0, 2));
	PQclear(result);
	for (int i = 0; i < NumClients; i++)
	{
		clockid_t	clock;

		if (clock_getcpuclockid(PQbackendPID(clients[i].conn), &clock) != 0)
			Die("clock_getcpuclockid", "no such process");
		probe.cpu += Microseconds(clock);
	}
	return probe;
}

static int
CompareTimes(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

static double
Earlier(double a, double b)
{
	return a < b ? a : b;
}

/* Steps per second, as long as all clients work. */
static double
Rate(const Client *clients)
{
	int			steps = TheWay->stages[CLAIM] ? 1 : NumSteps;	/* of a submission */
	double		begin = clients[0].begin;
	double		end = clients[0].done[clients[0].submissions - 1];
	int			submissions = 0;

	for (int i = 1; i < NumClients; i++)
	{
		const Client *client = &clients[i];

		begin = Earlier(begin, client->begin);
		end = Earlier(end, client->done[client->submissions - 1]);
	}
	for (int i = 0; i < NumClients; i++)
		for (int n = 0; n < clients[i].submissions && clients[i].done[n] <= end; n++)
			submissions++;
	return (double) submissions * steps / (end - begin) * 1e6;
}

/* Print the line of results. All steps must have been done, each once. Empty ways have done none. */
static void
Report(const Client *clients, const Probe *before, const Probe *after)
{
	double		steps = (double) NumClients * NumPlans * NumSteps;
	double	   *times = NULL;
	int			n = 0;
	int			margin;
	double		sum = 0;

	if (after->steps - before->steps != (TheWay->empty ? 0 : steps))
		Die(TheWay->name, "not all steps were done");
	for (int i = 0; i < NumClients; i++)
	{
		times = Allocate(times, sizeof(double) * (n + clients[i].calls));
		memcpy(times + n, clients[i].times, sizeof(double) * clients[i].calls);
		n += clients[i].calls;
	}
	qsort(times, n, sizeof(double), CompareTimes);
	margin = n / 10;
	for (int i = margin; i < n - margin; i++)
		sum += times[i];
	printf("%.1f\t%.0f\t%.0f\t%.1f\t%.1f\t%.0f\t%.0f\n", Rate(clients),
		   times[(n - 1) / 2], times[(n * 99 + 99) / 100 - 1], sum / (n - 2 * margin),
		   (after->cpu - before->cpu) / steps, (after->wal - before->wal) / steps,
		   (after->disk - before->disk) / steps);
}

/* ---------- main ---------- */

/* Have a definition of so many steps made. */
static char *
Define(PGconn *conn, int steps)
{
	char		size[12];
	const char *values[] = {size, Tool, Shape};
	PGresult   *result;
	char	   *definition;

	snprintf(size, sizeof(size), "%d", steps);
	result = Query(conn, "SELECT bench.steps($1, $2, $3)", 3, values);
	definition = strdup(PQgetvalue(result, 0, 0));
	PQclear(result);
	return definition;
}

static void
ReadOptions(int argc, char **argv)
{
	int			option;

	while ((option = getopt(argc, argv, "c:p:n:s:t:d:f:")) != -1)
	{
		switch (option)
		{
			case 'c':
				NumClients = atoi(optarg);
				break;
			case 'p':
				Protocol = optarg[0] == 's' ? SIMPLE : optarg[0] == 'e' ? EXTENDED : PREPARED;
				break;
			case 'n':
				NumPlans = atoi(optarg);
				break;
			case 's':
				NumSteps = atoi(optarg);
				break;
			case 't':
				Tool = optarg;
				break;
			case 'd':
				Shape = optarg;
				break;
			case 'f':
				Contender = optarg;
				break;
			default:
				exit(1);
		}
	}
	for (TheWay = Ways; TheWay->name && (optind >= argc || strcmp(TheWay->name, argv[optind]) != 0); TheWay++)
		;
	if (TheWay->name == NULL || NumClients < 1 || NumPlans < 1 || NumSteps < 1)
		Die("usage", "client [OPTION ...] WAY");
}

int
main(int argc, char **argv)
{
	PGconn	   *conn;
	Client	   *clients;
	Probe		before;
	Probe		after;

	ReadOptions(argc, argv);
	conn = Connect();
	Definition = Contender ? NULL : Define(conn, NumSteps);
	WarmDefinition = Define(conn, WARM_STEPS);
	pthread_barrier_init(&Ready, NULL, NumClients + 1);
	pthread_barrier_init(&Start, NULL, NumClients + 1);
	clients = calloc(NumClients, sizeof(Client));
	for (int i = 0; i < NumClients; i++)
	{
		snprintf(clients[i].number, sizeof(clients[i].number), "%d", i);
		if (pthread_create(&clients[i].thread, NULL, Work, &clients[i]) != 0)
			Die("pthread_create", "no thread");
	}
	pthread_barrier_wait(&Ready);
	before = TakeProbe(conn, clients);
	pthread_barrier_wait(&Start);
	for (int i = 0; i < NumClients; i++)
		pthread_join(clients[i].thread, NULL);
	after = TakeProbe(conn, clients);
	Report(clients, &before, &after);
	return 0;
}
