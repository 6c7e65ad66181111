/*
 * state_tools.c
 *	  the functions of the built-in tools: named JSON state that outlives plans
 *
 * Locks: a merge locks the row of its name before it reads it, so concurrent
 * merges wait for each other and none is lost. The lock is held until the
 * transaction ends, so a long run delays others that write the same name. The
 * audit entry takes no lock before the transaction commits (chain.c).
 */
#include "api/api.h"

#define STATE_NAME_MAX	500

/* ---------- arguments ---------- */

static void
CheckStateName(const char *name)
{
	if (name == NULL || *name == '\0' || strlen(name) > STATE_NAME_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("state needs a \"name\" of 1 to %d bytes", STATE_NAME_MAX),
				 errhint("Give the arguments as an object, such as {\"name\": \"counter\", \"value\": 1}.")));
}

static void
CheckStateValue(const Jsonb *value)
{
	if (value == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_DEFINITION),
				 errmsg("state needs a \"value\""),
				 errhint("Give the arguments as an object, such as {\"name\": \"counter\", \"value\": 1}.")));
	CheckJsonLimits(value, "state");
}

/* Raise the error that there is no state of this name. */
static void
StateNotFound(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_NAME_NOT_FOUND),
			 errmsg("state \"%s\" not found", name),
			 errhint("Write it with state_write, or give a \"default\".")));
}

/* ---------- read ---------- */

/* Read a value by a query with the parameters (tenant, name); NULL if there is none. */
static Jsonb *
StateOfName(Call *call, KeptQuery *query, const char *name)
{
	Rows		rows = QueryByName(call, query, name);

	return rows.count > 0 ? RowJson(&rows, 0, 1) : NULL;
}

/* Read a value; if there is none, return the default of the call. */
static Jsonb *
StateRead(Call *call, const Jsonb *arguments)
{
	static KeptQuery read = {
		"SELECT s.value FROM stepwise.state AS s WHERE s.tenant = $1 AND s.name = $2",
		2, {TEXTOID, TEXTOID}
	};
	char	   *name = JsonGetText(arguments, "name");
	Jsonb	   *value;

	CheckStateName(name);
	value = StateOfName(call, &read, name);
	if (value == NULL)
		value = JsonGetJson(arguments, "default");
	if (value == NULL)
		StateNotFound(name);
	return value;
}

/* Read a value (tool state_read). */
PG_FUNCTION_INFO_V1(stepwise_state_read);
Datum
stepwise_state_read(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBeginReading(&call);
	return CallEnd(&call, StateRead(&call, ArgumentJson(fcinfo, 0)));
}

/* ---------- write ---------- */

/* Run a query with the parameters (tenant, name, value). Returns the number of rows written. */
static uint64
StateInsert(Call *call, KeptQuery *query, const char *name, const Jsonb *value)
{
	Params		params = {0};

	ParamTenant(&params, call);
	ParamText(&params, name);
	ParamVarlena(&params, value);
	return QueryRun(query, &params).count;
}

/* Insert a value, or replace the present one. */
static Jsonb *
StateStore(Call *call, const char *name, Jsonb *value)
{
	static KeptQuery store = {
		"INSERT INTO stepwise.state (tenant, name, value) VALUES ($1, $2, $3)"
		" ON CONFLICT (tenant, name) DO UPDATE SET value = excluded.value, updated_at = pg_catalog.clock_timestamp()",
		3, {TEXTOID, TEXTOID, JSONBOID}
	};

	StateInsert(call, &store, name, value);
	return value;
}

/*
 * Write the audit entry of a change. It has a digest of the value, not the
 * value. Returns the value.
 */
static Jsonb *
StateAudit(Call *call, const char *action, const char *name, Jsonb *value)
{
	JsonBuilder b = {0};

	JsonObjectStart(&b, NULL);
	JsonPutText(&b, "action", action);
	JsonPutText(&b, "name", name);
	JsonPutText(&b, "valueDigest", DigestText(value));
	JsonObjectEnd(&b);
	AuditAppendPlanless(call, "plan_modified", JsonFinish(&b));
	return value;
}

/* Check the arguments and store the value. */
static Jsonb *
StateWrite(Call *call, const Jsonb *arguments)
{
	char	   *name = JsonGetText(arguments, "name");
	Jsonb	   *value = JsonGetJson(arguments, "value");

	CheckStateName(name);
	CheckStateValue(value);
	return StateAudit(call, "state_written", name, StateStore(call, name, value));
}

/* Write a value (tool state_write). */
PG_FUNCTION_INFO_V1(stepwise_state_write);
Datum
stepwise_state_write(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBegin(&call);
	return CallEnd(&call, StateWrite(&call, ArgumentJson(fcinfo, 0)));
}

/* ---------- merge ---------- */

/*
 * Insert a value if there is none. Waits for an uncommitted insert of another
 * transaction. Returns true if the value was inserted.
 */
static bool
StateBegin(Call *call, const char *name, Jsonb *value)
{
	static KeptQuery begin = {
		"INSERT INTO stepwise.state (tenant, name, value) VALUES ($1, $2, $3) ON CONFLICT (tenant, name) DO NOTHING",
		3, {TEXTOID, TEXTOID, JSONBOID}
	};

	return StateInsert(call, &begin, name, value) > 0;
}

/* Merge a value into the present one, or insert it. */
static Jsonb *
StateMerge(Call *call, const Jsonb *arguments)
{
	static KeptQuery lock = {
		"SELECT s.value FROM stepwise.state AS s WHERE s.tenant = $1 AND s.name = $2 FOR UPDATE",
		2, {TEXTOID, TEXTOID}
	};
	char	   *name = JsonGetText(arguments, "name");
	Jsonb	   *value = JsonGetJson(arguments, "value");

	CheckStateName(name);
	CheckStateValue(value);
	if (StateBegin(call, name, value))
		return StateAudit(call, "state_merged", name, value);
	value = JsonMergeDeep(StateOfName(call, &lock, name), value);
	CheckJsonLimits(value, "merged state");
	return StateAudit(call, "state_merged", name, StateStore(call, name, value));
}

/* Merge a value into the present one (tool state_merge). */
PG_FUNCTION_INFO_V1(stepwise_state_merge);
Datum
stepwise_state_merge(PG_FUNCTION_ARGS)
{
	Call		call;

	CallBegin(&call);
	return CallEnd(&call, StateMerge(&call, ArgumentJson(fcinfo, 0)));
}
