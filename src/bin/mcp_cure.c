/*
 * mcp_cure.c
 *	  what failed, and what to do about it
 *
 * A failure is told to the client that called, and on stderr to the person
 * who set up the program, with the command that cures it.
 */
#include "mcp.h"

typedef struct Cure
{
	const char *sqlstate;		/* or the first characters of it */
	const char *text;			/* {database}, {user} and {login} are filled in */
} Cure;

static const Cure ConnectionCures[] = {
	{"3D000", "Create the database: createdb {database}"},
	{"28P01", "Put the password of {login} into ~/.pgpass, or set PGPASSWORD."},
	{"28", "Check the user name, PGUSER. If there is no such role, create it: createuser {login}. "
	"If the server refuses it, change pg_hba.conf."},
	{"42501", "Let the role connect: psql -d {database} -c 'GRANT CONNECT ON DATABASE \"{database}\" TO \"{login}\"'"},
	{"57P03", "The server is starting up or shutting down. Repeat the call in a moment."},
	{"53300", "The server has no connection left. Close other clients, or raise max_connections."},
	{"", "Start the server, or check PGHOST and PGPORT or the connection string: pg_isready"},
};

#define UNSTORABLE	"PostgreSQL cannot store a value of this message: change it, or leave it out."

static const Cure StatementCures[] = {
	{"3F000", "Install the extension in this database: psql -d {database} -c 'CREATE EXTENSION pg_stepwise'"},
	{"42883", "The extension in this database is older than this program. "
	"Update it: psql -d {database} -c 'ALTER EXTENSION pg_stepwise UPDATE'"},
	{"42501", "Give the role its rights: psql -d {database} -c \"SELECT stepwise.grant_agent('{user}')\""},
	{"22023", "Create the role that --role names, or name another: psql -d {database} -c 'CREATE ROLE \"{user}\"'"},
	{"58P01", "The server lacks the files of the extension. Install them there: make install"},
	{"25006", "The server is a standby, or the program runs with --read-only. Nothing was changed. "
	"Call the primary server, or start the program without --read-only."},
	{"57014", "The server cancelled the call. Of a long run, what was stored before stays. Look at statement_timeout, or ask its administrator."},
	{"40", "Another call was in the way. Of a long run, what was stored before stays. Repeat the call."},
	{"53", "The server lacks resources. Of a long run, what was stored before stays. Repeat the call later."},
	{"22003", UNSTORABLE},
	{"22021", UNSTORABLE},
	{"22P", UNSTORABLE},
	{"54000", UNSTORABLE},
};

static const Cure RoleCure = {"42501", "Let the login role take the other one: psql -d {database} -c 'GRANT \"{user}\" TO \"{login}\"'"};

/* ---------- making failures ---------- */

static void
Fill(StringInfo out, const char *text, PGconn *conn, const char *role)
{
	const char *login = PQuser(conn) ? PQuser(conn) : "";
	const struct
	{
		const char *name;
		const char *value;
	}			blanks[] = {
		{"{database}", PQdb(conn) ? PQdb(conn) : ""},
		{"{user}", role ? role : login},
		{"{login}", login},
	};

	while (*text != '\0')
	{
		int			i = 0;

		while (i < lengthof(blanks) && strncmp(text, blanks[i].name, strlen(blanks[i].name)) != 0)
			i++;
		if (i < lengthof(blanks))
		{
			appendStringInfoString(out, blanks[i].value);
			text += strlen(blanks[i].name);
		}
		else
			appendStringInfoChar(out, *text++);
	}
}

static char *
FindCure(const Cure *cures, int count, const char *sqlstate, PGconn *conn, const char *role)
{
	StringInfoData text;

	for (int i = 0; i < count; i++)
	{
		const char *prefix = cures[i].sqlstate;

		if (strncmp(sqlstate, prefix, strlen(prefix)) != 0 || (*prefix == '\0' && *sqlstate != '\0'))
			continue;
		initStringInfo(&text);
		Fill(&text, cures[i].text, conn, role);
		return text.data;
	}
	return NULL;
}

static char *
CopyField(const PGresult *result, int field)
{
	const char *value = PQresultErrorField(result, field);

	return value ? pstrdup(value) : NULL;
}

static void
Chomp(char *text)
{
	int			len = strlen(text);

	while (len > 0 && isspace((unsigned char) text[len - 1]))
		text[--len] = '\0';
}

/*
 * Take the SQLSTATE out of "FATAL:  3D000: message", and cut off the lines
 * after the message. libpq gives it in no other way before the session
 * begins; mcp_link.c asks for these messages.
 */
static void
TakeSqlstate(char *message, char *sqlstate)
{
	for (char *at = strstr(message, ":  "); at != NULL; at = strstr(at + 1, ":  "))
	{
		if (strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != 5 || strncmp(at + 8, ": ", 2) != 0)
			continue;
		strlcpy(sqlstate, at + 3, 6);
		memmove(at + 3, at + 10, strlen(at + 10) + 1);
		at[3 + strcspn(at + 3, "\n")] = '\0';
		return;
	}
}

/* Say why there is no connection. */
Failure *
FailureOfConnection(PGconn *conn, const char *role)
{
	Failure    *failure = palloc0(sizeof(Failure));

	failure->message = pstrdup(PQerrorMessage(conn));
	TakeSqlstate(failure->message, failure->sqlstate);
	Chomp(failure->message);
	failure->hint = FindCure(ConnectionCures, lengthof(ConnectionCures), failure->sqlstate, conn, role);
	return failure;
}

/* Say why a statement failed. The role of --role cannot be taken if a check of the setting "role" says so. */
Failure *
FailureOfStatement(PGconn *conn, const PGresult *result, const char *role)
{
	Failure    *failure = palloc0(sizeof(Failure));
	const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
	bool		role_refused = role && function && strcmp(function, "call_string_check_hook") == 0;

	strlcpy(failure->sqlstate, sqlstate ? sqlstate : "", sizeof(failure->sqlstate));
	failure->message = pstrdup(message ? message : PQresultErrorMessage(result));
	Chomp(failure->message);
	failure->detail = CopyField(result, PG_DIAG_MESSAGE_DETAIL);
	if (role_refused)
		failure->hint = FindCure(&RoleCure, 1, failure->sqlstate, conn, role);
	if (failure->hint == NULL)
		failure->hint = FindCure(StatementCures, lengthof(StatementCures), failure->sqlstate, conn, role);
	if (failure->hint == NULL)
		failure->hint = CopyField(result, PG_DIAG_MESSAGE_HINT);
	return failure;
}

/* Say that the connection ended while a statement ran. */
Failure *
FailureOfLoss(PGconn *conn)
{
	Failure    *failure = palloc0(sizeof(Failure));

	failure->lost = true;
	strcpy(failure->sqlstate, "08006");
	failure->message = pstrdup("the connection to the server was lost while the call ran; the next call connects again");
	failure->detail = pstrdup(PQerrorMessage(conn));
	Chomp(failure->detail);
	failure->hint = pstrdup("The call may have been carried out, or not. "
							"Find out before you repeat it: get_plan_status shows what is stored.");
	return failure;
}

/* ---------- asking and telling ---------- */

static bool
IsOneOf(const char *sqlstate, const char *const *list, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(sqlstate, list[i]) == 0)
			return true;
	return false;
}

/* Tell whether a connection may succeed later without anybody's help. */
bool
FailureIsPassing(const Failure *failure)
{
	static const char *const passing[] = {"", "53300", "57P01", "57P02", "57P03"};

	return IsOneOf(failure->sqlstate, passing, lengthof(passing));
}

/* Tell whether a statement was undone because of another one, and can be repeated. */
bool
FailureIsRepeatable(const Failure *failure)
{
	static const char *const repeatable[] = {"40001", "40P01"};

	return IsOneOf(failure->sqlstate, repeatable, lengthof(repeatable));
}

/* Tell whether the message of the client is at fault: it has a value that jsonb cannot hold. */
bool
FailureIsClients(const Failure *failure)
{
	static const char *const values[] = {"22003", "22021", "22P02", "22P05", "54000"};

	return IsOneOf(failure->sqlstate, values, lengthof(values));
}

static char *told;

/* Say it on stderr, unless it was the last thing that was said, or only the client can do something about it. */
void
FailureTell(const Failure *failure)
{
	char	   *text;

	if (FailureIsClients(failure))
		return;
	text = psprintf("%s%s%s", failure->message, failure->hint ? "\n  " : "", failure->hint ? failure->hint : "");
	if (told == NULL || strcmp(told, text) != 0)
		Complain("%s", text);
	FailureOver();
	told = text;
}

/* Note that calls succeed again. */
void
FailureOver(void)
{
	if (told)
		pfree(told);
	told = NULL;
}

/* Free a failure, or nothing. */
void
FailureFree(Failure *failure)
{
	if (failure == NULL)
		return;
	pfree(failure->message);
	if (failure->detail)
		pfree(failure->detail);
	if (failure->hint)
		pfree(failure->hint);
	pfree(failure);
}
