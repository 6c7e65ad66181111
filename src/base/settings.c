/*
 * settings.c
 *	  the settings of the extension, in the order in which they are documented
 */
#include "base/base.h"

#include "utils/guc.h"

/*
 * stepwise.stall_after
 *
 * How many seconds a claimed step may go without a sign of life before it
 * counts as stalled. The call, the step and the plan can say otherwise.
 */
static int	stall_after_seconds = 30 * 60;

/*
 * stepwise.max_result_bytes
 *
 * The largest value that is stored: a result, an artifact, an input.
 */
int			MaxResultBytes = 1024 * 1024;

/*
 * stepwise.max_json_depth
 *
 * How deep objects and arrays may be nested in a value that is stored.
 */
int			MaxJsonDepth = 64;

/*
 * stepwise.max_steps
 *
 * How many steps a plan may have.
 */
int			MaxSteps = 10000;

/*
 * stepwise.max_nesting
 *
 * How deep plans may be nested.
 */
int			MaxNesting = 50;

/*
 * stepwise.allow_recursion
 *
 * Whether a workflow may call itself, down to max_nesting.
 */
bool		AllowRecursion = false;

/*
 * stepwise.notify
 *
 * Whether each change sends NOTIFY stepwise. It has no payload: any role may
 * listen, so it must not tell anything about a tenant.
 */
bool		NotifyChanges = false;

/*
 * stepwise.log_tool_calls
 *
 * Whether calls through MCP are kept in stepwise.tool_call.
 */
bool		LogToolCalls = true;

/* Return stepwise.stall_after as an interval. */
Interval *
DefaultStallAfter(void)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = stall_after_seconds * USECS_PER_SEC;
	return interval;
}

static void
DefineLimit(const char *name, const char *description, int *variable, int lowest, int highest, int flags)
{
	DefineCustomIntVariable(name, description, NULL, variable, *variable, lowest, highest,
							PGC_SUSET, flags, NULL, NULL, NULL);
}

static void
DefineSwitch(const char *name, const char *description, bool *variable)
{
	DefineCustomBoolVariable(name, description, NULL, variable, *variable, PGC_SUSET, 0, NULL, NULL, NULL);
}

/* Define the settings. */
void
SettingsInit(void)
{
	DefineLimit("stepwise.stall_after", "Time without a sign of life after which a claimed step is stalled.",
				&stall_after_seconds, 1, INT_MAX, GUC_UNIT_S);
	DefineLimit("stepwise.max_result_bytes", "Largest value that is stored.",
				&MaxResultBytes, 1024, 256 * 1024 * 1024, GUC_UNIT_BYTE);
	DefineLimit("stepwise.max_json_depth", "Deepest nesting of a value that is stored.",
				&MaxJsonDepth, 1, 1000, 0);
	DefineLimit("stepwise.max_steps", "Most steps that a plan may have.",
				&MaxSteps, 1, 100000, 0);
	DefineLimit("stepwise.max_nesting", "Deepest nesting of plans.",
				&MaxNesting, 1, 1000, 0);
	DefineSwitch("stepwise.allow_recursion", "Lets a workflow call itself, down to max_nesting.", &AllowRecursion);
	DefineSwitch("stepwise.notify", "Sends NOTIFY stepwise with each change.", &NotifyChanges);
	DefineSwitch("stepwise.log_tool_calls", "Keeps calls through MCP in stepwise.tool_call.", &LogToolCalls);
	MarkGUCPrefixReserved("stepwise");
}
