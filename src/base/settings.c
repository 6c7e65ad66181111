/*
 * settings.c
 *	  the settings of the extension, in the order in which they are documented
 */
#include "base/base.h"

#include "utils/guc.h"
#include "utils/guc_tables.h"

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

/* Define all settings, in the order of their names. */
static void
DefineAll(void)
{
	DefineSwitch("stepwise.allow_recursion", "Lets a workflow call itself, down to max_nesting.", &AllowRecursion);
	DefineSwitch("stepwise.log_tool_calls", "Keeps calls through MCP in stepwise.tool_call.", &LogToolCalls);
	DefineLimit("stepwise.max_json_depth", "Deepest nesting of a value that is stored.",
				&MaxJsonDepth, 1, 1000, 0);
	DefineLimit("stepwise.max_nesting", "Deepest nesting of plans.",
				&MaxNesting, 1, 1000, 0);
	DefineLimit("stepwise.max_result_bytes", "Largest value that is stored.",
				&MaxResultBytes, 1024, 256 * 1024 * 1024, GUC_UNIT_BYTE);
	DefineLimit("stepwise.max_steps", "Most steps that a plan may have.",
				&MaxSteps, 1, 100000, 0);
	DefineSwitch("stepwise.notify", "Sends NOTIFY stepwise with each change.", &NotifyChanges);
	DefineLimit("stepwise.stall_after", "Time without a sign of life after which a claimed step is stalled.",
				&stall_after_seconds, 1, INT_MAX, GUC_UNIT_S);
}

#ifdef SETTINGS_ARE_SORTED

/* how the name of a setting stands to those of ours */
typedef enum NamePlace
{
	BEFORE_OURS,
	LIKE_OURS,
	BEHIND_OURS
} NamePlace;

/* Compare the name of a setting with the beginning of ours, as PostgreSQL does: letters of ASCII count as small. */
static NamePlace
PlaceOfName(const char *name)
{
	for (const char *ours = "stepwise."; *ours != '\0'; ours++, name++)
	{
		char		c = *name >= 'A' && *name <= 'Z' ? *name + ('a' - 'A') : *name;

		if (c != *ours)
			return c < *ours ? BEFORE_OURS : BEHIND_OURS;
	}
	return LIKE_OURS;
}

/* Find the first setting behind ours. Returns 0 if there is none before ours, or if there is one like ours. */
static int
FirstBehind(struct config_generic **all, int count)
{
	int			first = count;

	while (first > 0 && PlaceOfName(all[first - 1]->name) == BEHIND_OURS)
		first--;
	return first > 0 && PlaceOfName(all[first - 1]->name) == BEFORE_OURS ? first : 0;
}

/* Put the settings back into the array, and those that were defined meanwhile before the first one behind ours. */
static void
PutBack(struct config_generic **before, int first, int count)
{
	struct config_generic **all = get_guc_variables();
	int			defined = GetNumConfigOptions() - count;

	memmove(all + first, all + count, sizeof(*all) * defined);
	memcpy(all, before, sizeof(*all) * first);
	memcpy(all + first + defined, before + first, sizeof(*all) * (count - first));
}

/* Define all settings, while the array has one without a name in the place of each other. */
static void
DefineAlone(struct config_generic **all, int first, int count)
{
	static struct config_generic nameless = {.name = ""};
	struct config_generic **before = palloc(sizeof(*before) * count);

	memcpy(before, all, sizeof(*before) * count);
	for (int i = 0; i < count; i++)
		all[i] = &nameless;
	PG_TRY();
	{
		DefineAll();
	}
	PG_FINALLY();
	{
		PutBack(before, first, count);
	}
	PG_END_TRY();
	pfree(before);
}

/*
 * Define all settings, without sorting those of PostgreSQL each time.
 *
 * PostgreSQL 15 has the settings in a sorted array. A new one is appended, and
 * the array is sorted, unless it is in order already. For each of ours that is
 * a quarter of a million instructions, and for all of them far more than the
 * rest of loading this library. So the others are taken out of the array
 * meanwhile. It is in order all the time, and nothing else looks at it.
 *
 * If one of ours was set before, a placeholder stands in the array. PostgreSQL
 * replaces it where it stands; so then nothing is taken out.
 */
static void
DefineInOrder(void)
{
	int			count = GetNumConfigOptions();
	struct config_generic **all = get_guc_variables();
	int			first = FirstBehind(all, count);

	if (first > 0)
		DefineAlone(all, first, count);
	else
		DefineAll();
}

#else

static void
DefineInOrder(void)
{
	DefineAll();
}

#endif

/* Define the settings. */
void
SettingsInit(void)
{
	DefineInOrder();
	MarkGUCPrefixReserved("stepwise");
}
