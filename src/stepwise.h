/*
 * stepwise.h
 *	  the one internal header: types, and prototypes under a heading per file
 *
 * From the ground up: settings and tables, values and texts, definitions, the
 * rows of plans and what moves them, tools, and last what callers ask for.
 */
#ifndef STEPWISE_H
#define STEPWISE_H

#include "postgres.h"

#include "access/skey.h"
#include "access/tableam.h"
#include "catalog/pg_type_d.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/jsonpath.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "compat.h"
#include "errcodes.h"

/* ---------- states: the words of the enum types, in their order ---------- */

typedef enum StepStatus
{
	STEP_PENDING,
	STEP_IN_PROGRESS,
	STEP_AWAITING_INPUT,
	STEP_COMPLETED,
	STEP_FAILED,
	STEP_SKIPPED
} StepStatus;
#define STEP_STATUSES	6

typedef enum PlanStatus
{
	PLAN_PLANNING,
	PLAN_EXECUTING,
	PLAN_AWAITING_REVIEW,
	PLAN_STALLED,
	PLAN_COMPLETED,
	PLAN_FAILED,
	PLAN_CANCELLED
} PlanStatus;
#define PLAN_STATUSES	7

typedef enum Outcome
{
	OUTCOME_SUCCESS,
	OUTCOME_FAILURE,
	OUTCOME_NA
} Outcome;
#define OUTCOMES		3

typedef enum OnFailure
{
	ON_FAILURE_CONTINUE,
	ON_FAILURE_PAUSE,
	ON_FAILURE_FAIL
} OnFailure;
#define ON_FAILURES		3

/* ---------- stepwise.c: module magic and settings ---------- */

extern int	MaxResultBytes;
extern int	MaxJsonDepth;
extern int	MaxSteps;
extern int	MaxNesting;
extern bool AllowRecursion;
extern bool NotifyChanges;
extern bool LogToolCalls;
extern Interval *DefaultStallAfter(void);

/* ---------- status.c: plan status from step states; pure ---------- */

extern const char *const StepStatusName[STEP_STATUSES];
extern const char *const PlanStatusName[PLAN_STATUSES];
extern const char *const OutcomeName[OUTCOMES];
extern const char *const OnFailureName[ON_FAILURES];

extern bool StepTransitionAllowed(StepStatus from, StepStatus to);
extern bool PlanTransitionAllowed(PlanStatus from, PlanStatus to);
extern bool PlanIsTerminal(PlanStatus status);
extern char *StepTransitionsText(StepStatus from);
extern int	StepTotal(const int counts[STEP_STATUSES]);
extern PlanStatus PlanDeriveStatus(const int counts[STEP_STATUSES], OnFailure on_failure);
extern int	EnumIndex(Oid value, const char *const *names, int count);

/* ---------- query.c: kept SPI plans, run as the owner ---------- */

#define QUERY_MAX_ARGS	40

typedef struct KeptQuery
{
	const char *sql;
	int			nargs;
	Oid			types[QUERY_MAX_ARGS];
	SPIPlanPtr	plan;			/* prepared at first use, kept for the backend */
	bool		latest;			/* reads what is committed by now, at stricter isolation levels too */
} KeptQuery;

/*
 * No time: what stands for null in C. It is -infinity, and not 0, which is a
 * time like others; what is stored is finite (guard.c).
 */
#define NO_TIME			DT_NOBEGIN
#define TimeIsSet(time)	((time) != NO_TIME)

/* the arguments of one execution, in the order of $1, $2, … */
typedef struct Args
{
	struct Call *call;			/* or NULL: the search path is locked for this query alone */
	int			count;
	Datum		values[QUERY_MAX_ARGS];
	char		nulls[QUERY_MAX_ARGS];	/* ' ' or 'n' */
} Args;

extern void ArgDatum(Args *args, Datum value);
extern void ArgNull(Args *args);
extern void ArgText(Args *args, const char *value); /* NULL: null; so the next two */
extern void ArgVarlena(Args *args, const void *value);
extern void ArgUuid(Args *args, const pg_uuid_t *value);
extern void ArgInt(Args *args, int value);
extern void ArgBool(Args *args, bool value);
extern void ArgTime(Args *args, TimestampTz value); /* NO_TIME: null */

/* what a query returned; lives until RowsFree or the end of the call */
typedef struct Rows
{
	uint64		count;
	SPITupleTable *table;
} Rows;

extern uint64 QueryRunOnce(const char *sql, const Oid *types, const Args *args);	/* not kept */
extern Rows QueryRun(KeptQuery *query, const Args *args);	/* as the owner: between CallBegin and CallEnd */
extern void RowsFree(Rows *rows);
extern HeapTuple RowTuple(const Rows *rows, uint64 row);
extern Datum RowDatum(const Rows *rows, uint64 row, int column, bool *isnull);	/* not copied */
extern bool RowIsNull(const Rows *rows, uint64 row, int column);
extern char *RowText(const Rows *rows, uint64 row, int column); /* NULL if null; copied */
extern Jsonb *RowJson(const Rows *rows, uint64 row, int column);	/* NULL if null; copied, detoasted */
extern pg_uuid_t RowUuid(const Rows *rows, uint64 row, int column);
extern int	RowInt(const Rows *rows, uint64 row, int column);
extern bool RowBool(const Rows *rows, uint64 row, int column);	/* false if null */

/*
 * One call into the engine: who called, in which tenant, and what must be
 * put back. Everything allocated between CallBegin and CallEnd is gone after.
 */
typedef struct Call
{
	const char *tenant;
	Datum		tenant_datum;	/* the same as text */
	Oid			caller;			/* role */
	const char *actor;			/* name that the caller gave himself, or NULL */
	const char *session;		/* session id given with the call, or NULL */
	MemoryContext context;
	MemoryContext scratch;		/* of one audit entry at a time */
	MemoryContext outer;
	Oid			saved_user;
	int			saved_security;
	int			guc_level;		/* to which its search path goes back; 0: it has not been locked */
	bool		as_owner;
	bool		reading;		/* under one snapshot, the active one; see ReadBegin */
	bool		deferred;		/* plans are saved once, at the end: PlansSave */
	TimestampTz now;			/* 0: the clock has not been read yet; see CallNow */
	List	   *plans;			/* of PlanRow: those that this call has locked */
	size_t		answer_bytes;	/* what its answer will hold, as far as it is known; see AnswerTake */
} Call;

extern void CallBegin(Call *call);	/* in the caller's tenant */
extern void CallBeginReading(Call *call);	/* likewise, to read under one snapshot only */
extern void CallBeginIn(Call *call, const char *tenant);	/* for triggers, maintenance and procedures */
extern Datum CallEnd(Call *call, Jsonb *answer);	/* NULL: no answer */
extern void ReadBegin(Call *call);	/* from here on under one snapshot, and nothing is written */
extern void ReadEnd(Call *call);	/* also at CallEnd */
extern void CallInSession(Call *call, char *session);	/* NULL: none was given */
extern MemoryContext TurnBegin(Call *call); /* memory for one of many steps; returns that around it */
extern void TurnEnd(MemoryContext outer, bool keep);
extern char *CallKeepText(Call *call, char *text);	/* let it outlive a turn; NULL stays NULL */
extern struct varlena *CallKeep(Call *call, struct varlena *value); /* likewise */
extern void OwnerEnter(Call *call);
extern void OwnerLeave(Call *call);
extern void CallLock(const Call *call, const char *kind, const char *word);	/* until the end of the transaction */
extern void CallLockOfMany(const Call *call, const char *kind, const char *word);	/* the same; the word is not empty */
extern Oid	OwnerRole(void);
extern bool RoleIsOwner(Oid role);
extern void CheckOwner(const char *what);
extern void ArgTenant(Args *args, const Call *call);
extern bool EngineRuns(void);	/* a statement of the engine's own */
extern bool EngineWrites(void); /* for triggers: is it the engine that writes? */
extern bool MayCommit(FunctionCallInfo fcinfo); /* of a procedure: not inside a larger transaction? */
extern void CommitAs(Oid caller);	/* no call is open */

/* reading the arguments of SQL-callable functions; NULL if null */
extern char *ArgumentText(FunctionCallInfo fcinfo, int n);
extern Jsonb *ArgumentJson(FunctionCallInfo fcinfo, int n);
extern pg_uuid_t *ArgumentUuid(FunctionCallInfo fcinfo, int n);

/* ---------- planner.c: kept plans that stay good as the tables grow ---------- */

extern void PlannerInit(void);

/* ---------- catalog.c: our tables, indexes and enum values by name ---------- */

extern void CatalogInit(void);
extern Oid	TableOid(const char *name);
extern Oid	EnumValue(const char *type, const char *label);

/* ---------- table.c: rows of our own tables by index, without the executor ---------- */

#define KEY_MAX_COLUMNS	4

/* what an index is searched for, column by column */
typedef struct Key
{
	bool		reading;		/* by a call that reads under one snapshot */
	int			count;
	ScanKeyData columns[KEY_MAX_COLUMNS];
} Key;

#define ROW_MAX_COLUMNS	128		/* enough for the widest table, and for columns that a later version adds */

/* what an update sets */
typedef struct Changes
{
	Datum		values[ROW_MAX_COLUMNS];
	bool		nulls[ROW_MAX_COLUMNS];
	bool		replaces[ROW_MAX_COLUMNS];
} Changes;

/* columns are counted from 0; a plan and a step both have their id in column 1 */
typedef bool (*RowTest) (TupleTableSlot *slot, const void *arg);
typedef void *(*RowMake) (HeapTuple tuple, TupleDesc desc);

extern void TableInit(void);
extern void KeyText(Key *key, Datum value);
extern void KeyUuid(Key *key, const pg_uuid_t *value);
extern void KeyInt(Key *key, int value);
extern void KeyIntFrom(Key *key, int value);	/* this or more */
extern void *RowRead(const char *table, const char *index, Key *key, RowTest test, const void *arg, RowMake make);
extern List *RowsRead(const char *table, const char *index, Key *key, RowMake make);
extern void *RowLock(const char *table, const char *index, Key *key, RowTest test, const void *arg, RowMake make, bool wait);
extern void RowUpdate(const char *table, const char *index, Key *key, ItemPointer seen, RowTest test, const void *arg,
					  Changes *changes);
extern void RowInsert(const char *table, Changes *changes);	/* all columns are set */

extern void SetDatum(Changes *c, int column, Datum value, bool isnull);
extern void SetInt(Changes *c, int column, int value);
extern void SetPositive(Changes *c, int column, int value);	/* otherwise null */
extern void SetBool(Changes *c, int column, bool value);
extern void SetTrue(Changes *c, int column, bool value);	/* false: null */
extern void SetTime(Changes *c, int column, TimestampTz value); /* NO_TIME: null */
extern void SetUuid(Changes *c, int column, const pg_uuid_t *value);	/* NULL: null; so the next two */
extern void SetVarlena(Changes *c, int column, const void *value);
extern void SetText(Changes *c, int column, const char *value);
extern void SetEnum(Changes *c, int column, const char *type, const char *label);

/* ---------- tenant.c: who may work in which tenant ---------- */

extern void TenantInit(void);
extern char *TenantOfCaller(void);	/* raises SW010 when there is none or several */
extern void TenantEnter(const char *tenant);	/* until the end of the (sub)transaction; SW011 */
extern void *TenantMark(void);	/* what is entered now */
extern void TenantRestore(void *mark);	/* undo what was entered since */

/* ---------- json.c: get and put ---------- */

typedef struct JsonBuilder
{
	JsonbParseState *state;
	JsonbValue *done;			/* after the outermost end */
} JsonBuilder;

/* key NULL: an element of an array, or the outermost value */
extern void JsonObjectStart(JsonBuilder *b, const char *key);
extern void JsonObjectEnd(JsonBuilder *b);
extern void JsonArrayStart(JsonBuilder *b, const char *key);
extern void JsonArrayEnd(JsonBuilder *b);
extern void JsonPutText(JsonBuilder *b, const char *key, const char *value);	/* NULL: null */
extern void JsonPutJson(JsonBuilder *b, const char *key, const Jsonb *value);	/* NULL: null */
extern void JsonPutValue(JsonBuilder *b, const char *key, JsonbValue *value);
extern void JsonPutInt(JsonBuilder *b, const char *key, int64 value);
extern void JsonPutMilliseconds(JsonBuilder *b, const char *key, int64 microseconds);
extern void JsonPutPositive(JsonBuilder *b, const char *key, int value);	/* otherwise null */
extern void JsonPutBool(JsonBuilder *b, const char *key, bool value);
extern void JsonPutUuid(JsonBuilder *b, const char *key, const pg_uuid_t *value);	/* NULL: null */
extern void JsonPutTime(JsonBuilder *b, const char *key, TimestampTz value);	/* NO_TIME: null */
extern void JsonPutNull(JsonBuilder *b, const char *key);
extern void JsonPutTexts(JsonBuilder *b, const char *key, const List *texts);	/* of char * */
extern Jsonb *JsonFinish(JsonBuilder *b);

extern bool JsonGet(const Jsonb *object, const char *key, JsonbValue *value);
extern char *JsonGetText(const Jsonb *object, const char *key); /* NULL unless a string */
extern Jsonb *JsonGetJson(const Jsonb *object, const char *key);	/* NULL if not there */
extern const char **JsonKeys(const Jsonb *object, int *count);
extern bool JsonGetIndex(const Jsonb *array, int index, JsonbValue *value);
extern Jsonb *JsonFromValue(JsonbValue *value);
extern void JsonToValue(const Jsonb *json, JsonbValue *value);	/* NULL: null */
extern Jsonb *JsonOf(const struct varlena *field);	/* of a row; NULL if null */
extern char *TextOf(const struct varlena *field);	/* likewise */
extern char *JsonToText(const Jsonb *value);
extern void JsonCompact(StringInfo text, JsonbValue *value); /* append as JSON without spaces */
extern char *JsonValueText(const JsonbValue *value);	/* a jbvString as C string */
extern const char *JsonKindName(const JsonbValue *value);	/* "string", "object", … */
extern bool JsonIsObject(const Jsonb *value);
extern bool JsonIsArray(const Jsonb *value);
extern bool JsonEqual(const Jsonb *a, const Jsonb *b);	/* NULL equals NULL only */
extern Jsonb *JsonMerge(const Jsonb *a, const Jsonb *b);	/* a || b for objects; NULL: empty */
extern Jsonb *JsonMergeDeep(const Jsonb *a, const Jsonb *b);	/* objects at every depth; what else b has replaces */
extern Jsonb *JsonEmptyObject(void);
extern Jsonb *JsonObjectOf(const char *key, const Jsonb *value);	/* of one member */
extern Jsonb *JsonTextOf(const char *key, const char *value);	/* likewise */
extern Jsonb *JsonNull(void);
extern bool JsonIsNull(const Jsonb *value);
extern Jsonb *JsonCopy(const Jsonb *value);
extern Jsonb *JsonParse(const char *text);	/* must be JSON */
extern char *JsonScalarText(const JsonbValue *value);	/* a string as it is, others as compact JSON */
extern char *TimeText(TimestampTz at);
extern char *IntervalText(Interval *interval);

/* ---------- uuid.c: make, compare, read and show UUIDs ---------- */

extern pg_uuid_t UuidNew(void); /* version 7, rising within the backend */
extern char *UuidText(const pg_uuid_t *uuid);
extern bool UuidEqual(const pg_uuid_t *a, const pg_uuid_t *b);
extern bool UuidParse(const char *text, pg_uuid_t *uuid);

/* ---------- word.c: words among others, and texts for messages ---------- */

extern int	NameIndex(const char *name, const char *const *names, int count);	/* -1: not there */
extern const char *NearestWord(const char *word, const char *const *words, int count);	/* NULL: none near */
extern char *WordList(const char *const *words, int count);
extern int	HexDigit(char c);	/* -1: none */
extern bool TextIsBlank(const char *text);
extern char *ClipText(const char *text, int length);
extern char *ShortText(const char *text);	/* the same of a whole text, or of NULL */
#define REASON_TEXT_BYTES	1000	/* of a message that goes on to other steps and plans */
extern char *CutText(const char *text, int max);	/* to so many bytes, saying how many there were */
extern char *Because(const char *reason);	/* ": reason"; nothing for NULL */
extern char *BecauseShort(const char *reason);	/* the same, cut */
extern char *FormatText(const char *format, va_list args) pg_attribute_printf(1, 0);
extern const char *Arrow(void); /* between the links of a chain that is spelled */

/* ---------- encoding.c: texts in UTF-8, whatever the encoding of the database ---------- */

extern void CheckUtf8(const char *text, const char *what);	/* SW005; so the next three */
extern void CheckJsonUtf8(const Jsonb *value, const char *what);
extern void CheckArgumentUtf8(FunctionCallInfo fcinfo, int n, const char *text);
extern void CheckArgumentJsonUtf8(FunctionCallInfo fcinfo, int n, const Jsonb *value);
extern const char *Utf8Form(const char *text);	/* the text itself, if it has none */
extern char *Utf8Clean(const char *text);

/* ---------- limit.c: how large values and texts may be ---------- */

#define NAME_MAX_BYTES	500
#define TITLE_MAX_CHARS	200		/* an index entry must hold it */

extern char *JsonExcess(const Jsonb *json); /* what is over the limits, as a message; NULL: nothing */
extern void CheckJsonLimits(const Jsonb *value, const char *what);	/* SW007 */
extern void CheckTextLimit(const char *value, const char *what);	/* SW007 */
extern void CheckNameLimit(const char *value, const char *what);	/* SW007 */
extern void CheckNotBlank(const char *value, const char *what); /* SW005 */
extern void CheckTitle(const char *value, const char *what);	/* SW005, SW007 */
extern void CheckOptionalTitle(const char *value, const char *what);
extern size_t RawSize(const struct varlena *field);	/* of a row's field, as it will be when it is read */
extern void AnswerTake(Call *call, size_t bytes, const char *hint);	/* SW007 */

/* ---------- fault.c: all faults of a definition, in one error ---------- */

typedef struct Faults
{
	List	   *items;			/* of Fault, in the order found */
	int			more;			/* so many came after the list was full */
} Faults;

/* where in a definition: links on the stack, spelled only when there is a fault */
typedef struct Path
{
	const struct Path *up;		/* NULL: the outermost */
	const char *key;			/* NULL: an element of an array */
	int			index;			/* 0-based */
} Path;

/* path names the element, as "steps[2].dependsOn[0]"; hint may be NULL */
extern void FaultAdd(Faults *faults, int sqlstate, const char *path, const char *hint,
					 const char *format,...) pg_attribute_printf(5, 6);
extern bool FaultsAny(const Faults *faults);
extern char *FaultsFirst(const Faults *faults); /* in words; there must be one */
extern char *FaultsText(const Faults *faults);	/* all in words, in one line */
extern void FaultsRaise(const Faults *faults, const char *what);	/* does nothing when there are none */
extern void FaultsToJson(JsonBuilder *b, const char *key, const Faults *faults);
extern char *PathText(const Path *path);
extern bool HintsWanted(const Faults *faults);
extern char *WordHint(const Faults *faults, const char *word, const char *const *words, int count,
					  const char *plural);

/* ---------- reference.c: ${…}, the scanner; pure ---------- */

typedef enum ReferenceRoot
{
	REF_INPUTS,
	REF_STEPS,
	REF_BINDINGS,
	REF_PLAN,
	/* in branching conditions only */
	REF_RESULT,
	REF_CONFIDENCE,
	REF_OUTCOME,
	REF_SUMMARY
} ReferenceRoot;

typedef enum StepField
{
	FIELD_OUTPUTS,
	FIELD_INPUTS,
	FIELD_METADATA,
	FIELD_SUCCEEDED,
	FIELD_FAILED,
	FIELD_SKIPPED,
	FIELD_STATUS,
	FIELD_OUTCOME
} StepField;

/* ${steps.a.steps.b.outputs.x.0}: steps {a, b}, field outputs, path {x, 0} */
typedef struct Reference
{
	ReferenceRoot root;
	int			nsteps;			/* REF_STEPS: names, outermost first; REF_BINDINGS: the binding */
	char	  **steps;
	StepField	field;
	int			npath;
	char	  **path;
	char	   *source;			/* without ${ and } */
	int			column;			/* 1-based, in characters, in the text it stands in */
} Reference;

typedef struct ParseFault
{
	char	   *message;		/* NULL: no fault */
	char	   *hint;			/* or NULL */
	int			column;			/* 1-based, in characters */
} ParseFault;

/* a piece of a text: either a literal or a reference */
typedef struct TextPart
{
	char	   *literal;
	Reference  *reference;
} TextPart;

extern bool ReferenceOccurs(const char *text);	/* is there anything to resolve, $${ included? */
extern List *ReferenceScan(const char *text, ParseFault *fault);	/* of TextPart */
extern Reference *ReferenceParse(const char *source, int column, bool branching, ParseFault *fault);
extern const char *ReferenceEnd(const char *source, int column, ParseFault *fault); /* the "}", or NULL */
extern bool ReferenceNameIsValid(const char *name); /* as the name of a step */
extern void ParseFaultSet(ParseFault *fault, int column, char *hint,
						  const char *format,...) pg_attribute_printf(4, 5);

/* ---------- condition.c: expressions to jsonpath; pure ---------- */

typedef enum ConditionResult
{
	CONDITION_FALSE,
	CONDITION_TRUE,
	CONDITION_UNDECIDED
} ConditionResult;

typedef struct Condition
{
	char	   *source;
	Datum		path;			/* jsonpath, compiled */
	bool		raw;			/* written as jsonpath: reads the document as it is, has no operands */
	int			noperands;
	Reference **operands;		/* their values, in this order, make the document */
} Condition;

extern Condition *ConditionCompile(const char *source, bool branching, ParseFault *fault);
extern Jsonb *ConditionDocument(int noperands, JsonbValue **values); /* NULL: missing */
extern ConditionResult ConditionEvaluate(Datum path, const Jsonb *document, int noperands,
										 char **names, char **why); /* names of the operands, for why */

/* ---------- define.c: accept a definition ---------- */

typedef struct DependencyDefinition
{
	char	   *name;			/* as written */
	int			index;			/* 0-based place in dependsOn */
	int			parent;			/* number of the step it depends on */
	bool		required;
} DependencyDefinition;

typedef struct StepDefinition
{
	int			order;			/* 1-based */
	int			wave;
	char	   *name;
	bool		named;			/* by its definition, not by its number */
	char	   *type;
	char	   *tool;			/* at most one of tool, workflow, prompt */
	char	   *workflow;
	int			version;		/* 0: the newest */
	char	   *prompt;
	char	   *instructions;
	char	   *binding;
	Jsonb	   *arguments;
	Jsonb	   *resources;
	Condition  *condition;
	int			retryable;		/* -1: not said */
	int			max_attempts;	/* 0: not said */
	Interval   *stall_after;
	bool		dynamic;		/* contains references beside its condition */
	List	   *depends;		/* of DependencyDefinition */
} StepDefinition;

typedef struct BranchDefinition
{
	int			after;			/* order of the step */
	int			position;		/* 1-based among the branches after that step */
	char	   *action;
	int			target;			/* skip_to: order of the step; otherwise 0 */
	Jsonb	   *params;
	struct Scope *added;		/* add_steps: the steps; otherwise NULL */
	Condition  *condition;
} BranchDefinition;

typedef struct Definition
{
	char	   *name;
	char	   *description;
	Jsonb	   *inputs;			/* declarations, or NULL */
	StepDefinition *steps;
	int			nsteps;
	bool		sequential;		/* no dependsOn anywhere */
	List	   *branches;		/* of BranchDefinition */
	Jsonb	   *outputs;
	OnFailure	on_failure;
	Interval   *stall_after;
	bool		separate_reviewer;
	char	   *output_formatting_notes;
} Definition;

/* a step that a plan already has, for steps that are added to it */
typedef struct KnownStep
{
	char	   *name;
	char	   *binding;		/* or NULL */
	char	   *workflow;		/* or NULL */
	int			wave;
} KnownStep;

extern Definition *DefinitionAccept(Call *call, const Jsonb *json, Faults *faults);
extern Definition *DefinitionAcceptPlan(Call *call, const Jsonb *json, const Jsonb *inputs, Faults *faults);
extern Definition *DefinitionAcceptSteps(Call *call, const Jsonb *steps, const KnownStep *known, int nknown,
										 int after, bool sequential, const Jsonb *inputs, List *callers,
										 Faults *faults);

/* ---------- define.c, shared with branchdef.c, inputs.c, scope.c, order.c and modify.c ---------- */

/*
 * The steps that a definition can name. Steps have numbers: those of the
 * scope around it (a plan to which steps are added) come first, then its own.
 */
typedef struct Scope
{
	struct Scope *around;		/* or NULL */
	int			after;			/* order in the scope around, after which these are added */
	int			offset;			/* how many steps are around */
	StepDefinition *steps;
	int			nsteps;
	bool		sequential;
	struct names_hash *names;
	struct names_hash *bindings;
	const Jsonb *inputs;		/* object whose keys are the inputs, or NULL: not known */
	/* order.c: the steps in an order in which they could run */
	int		   *sorted;
	int			nsorted;		/* fewer than nsteps if there is a cycle */
	int		   *place;			/* in sorted; -1: in or behind a cycle */
	uint64	  **ancestors;		/* one set of bits per step, made as far as asked for */
	int			nancestors;		/* so many of sorted have theirs */
} Scope;

/* one walk over a definition */
typedef struct Reader
{
	Call	   *call;
	Faults	   *faults;
	Scope	   *scope;
	const char *self;			/* name of the workflow that is being defined, or NULL */
	List	   *callers;		/* of steps that are added: names of the workflows that they are nested in */
	bool		depends;		/* dependsOn was seen */
	bool		inputs_unknown; /* their declarations are faulty, so do not check against them */
	struct names_hash *workflows;	/* nested ones that were found good */
	struct names_hash *followed;	/* those, and what they call, that lead to no circle */
	struct names_hash *dependencies;	/* names in dependsOn, each once */
} Reader;

/* a key of an object, how its value is read, and where in the target it goes */
typedef struct KeyRule
{
	const char *key;
	void		(*read) (Reader *reader, const Path *path, JsonbValue *value, void *field);
	size_t		offset;
	bool		required;
} KeyRule;

#define FaultAt(reader, path, sqlstate, hint, ...) \
	FaultAdd((reader)->faults, sqlstate, PathText(path), hint, __VA_ARGS__)

extern void ReadKeys(Reader *reader, const Path *path, JsonbValue *value, const KeyRule *rules, int count,
					 void *target, const char *what);
extern void ReadText(Reader *reader, const Path *path, JsonbValue *value, void *field);
extern void ReadNote(Reader *reader, const Path *path, JsonbValue *value, void *field);
extern void ReadFlag(Reader *reader, const Path *path, JsonbValue *value, void *field);
extern void ReadWord(Reader *reader, const Path *path, JsonbValue *value, const char *const *words, int count,
					 char **field);
extern void ReadCount(Reader *reader, const Path *path, JsonbValue *value, void *field);
extern void ReadTexts(Reader *reader, const Path *path, JsonbValue *value, void *field);
extern void ReadBranchCondition(Reader *reader, const Path *path, JsonbValue *value, void *field);
extern void ReadLater(Reader *reader, const Path *path, JsonbValue *value, void *field);
extern Scope *ReadAddedSteps(Reader *outer, const Path *path, JsonbValue *value, Scope *around, int after);
extern char *ReaderKeep(Reader *reader, char *name);	/* the name of a dependency, which may come often */
extern bool ExpectKind(Reader *reader, const Path *path, const JsonbValue *value, const char *kind);

/* ---------- branchdef.c: the branching conditions of a definition ---------- */

extern List *ReadBranches(Reader *reader, const Path *path, JsonbValue *value);

/* ---------- inputs.c: declared inputs, and values for them ---------- */

extern void ReadInputs(Reader *reader, const Path *path, JsonbValue *value, void *field);
extern Jsonb *InputsAccept(const Jsonb *declarations, const Jsonb *values, Faults *faults);
extern bool JsonHasType(const JsonbValue *value, const char *type); /* JSON's kinds, and integer; NULL: any */

/* ---------- scope.c: what names a definition has, and what references may reach ---------- */

extern struct names_hash *NamesNew(int size);
extern bool NamesAdd(struct names_hash *names, const char *name, int number);	/* false: was there */
extern int	NamesFind(struct names_hash *names, const char *name);	/* 0: not there */
extern void NamesSet(struct names_hash *names, const char *name, int number);
extern char *NamesKeep(struct names_hash *names, char *name);	/* the one that is there, or this one */
extern Scope *ScopeOfSteps(StepDefinition *steps, int nsteps, Scope *around, int after);
extern void ScopeNameSteps(Reader *reader, const Path *path);
extern StepDefinition *ScopeStep(const Scope *scope, int number);
extern int	ScopeFindStep(const Scope *scope, const char *name);	/* 0: none */
extern char *ScopeStepHint(Reader *reader, const char *name);
extern void ScopeCheckText(Reader *reader, const Path *path, const char *text, int from);
extern void ScopeCheckJson(Reader *reader, const Path *path, const Jsonb *json, int from);
extern void ScopeCheckCondition(Reader *reader, const Path *path, const Condition *condition, int from, bool itself);

/* ---------- order.c: dependencies: waves, cycles, ancestors ---------- */

extern void OrderSteps(Reader *reader, const Path *path);
extern bool OrderIsAncestor(Scope *scope, int ancestor, int step);	/* numbers of the scope's own steps */

/* ---------- workflow.c: named, versioned definitions ---------- */

extern bool WorkflowExists(Call *call, const char *name, int version);	/* version 0: any */
extern Jsonb *WorkflowDefinition(Call *call, const char *name, int version);	/* 0: the newest; NULL: none */
extern Jsonb *WorkflowPin(Call *call, const char *name, int *version);	/* the same, kept from being dropped; SW016 */
extern void WorkflowCheckCall(Reader *reader, const Path *path, const char *name, int version);

/* ---------- store.c: rows of plans and steps; the only access of the engine to them ---------- */

typedef struct PlanRow
{
	pg_uuid_t	id;
	pg_uuid_t	root_id;
	pg_uuid_t	parent_step_id;
	bool		nested;			/* parent_step_id is set */
	PlanStatus	status;
	Outcome		outcome;
	OnFailure	on_failure;
	bool		sequential;
	bool		separate_reviewer;
	bool		leases;
	bool		nests;
	bool		stalls;
	bool		workable;
	int			depth;
	int			counts[STEP_STATUSES];
	int			unsuccessful;
	int			paused;
	int			started_steps;
	int			next_order;
	int			audit_entries;
	uint8		audit_head[32];
	TimestampTz created_at;
	TimestampTz started_at;		/* or NO_TIME; so the next */
	TimestampTz completed_at;
	TimestampTz updated_at;
	Interval   *stall_after;
	char	   *session_id;
	char	   *message;
	struct varlena *pause_reason;	/* jsonb, perhaps toasted; so the next two */
	struct varlena *outputs;
	struct varlena *inputs;
	struct varlena *holders;		/* of a nested plan: the names of the steps that hold it, from the root down */
	char	   *name;
	char	   *goal;
	char	   *workflow;
	int			version;
	ItemPointerData tid;		/* where the row was last seen */
	struct PlanRow *root;			/* itself, if it is the root */
	/* of this call only */
	bool		moved;			/* a step has moved */
	bool		retried;		/* a step that had failed is tried again */
	bool		reads_below;	/* a step waits for one of a plan nested in it */
	bool		touched;		/* something has changed since it was saved */
	const char *ending;			/* it is being cancelled: why what is nested in it ends too */
	List	   *settled;		/* of StepRow: moved to an end, or back to wait; branches, dependents, parents have yet to look */
	int			drained;		/* at so many of them they have looked */
	Jsonb	   *branch;			/* what the last branching condition did, for the answer */
} PlanRow;

/* what a step waits for, when it goes to awaiting_input */
typedef struct Waiting
{
	pg_uuid_t	checkpoint_id;
	bool		review;			/* a review; otherwise a prompt */
	const char *prompt;			/* or the summary of the review */
	Jsonb	   *questions;		/* or NULL */
} Waiting;

typedef struct StepRow
{
	pg_uuid_t	id;
	pg_uuid_t	plan_id;
	pg_uuid_t	root_id;
	int			order;
	int			wave;
	StepStatus	status;
	Outcome		outcome;
	int			attempt;
	int			execution_order;	/* 0: not started */
	int			blockers;
	bool		ready;
	bool		branches;
	bool		dynamic;
	int			retryable;		/* -1: not said */
	int			max_attempts;	/* 0: not said */
	TimestampTz started_at;		/* or NO_TIME; so the next three */
	TimestampTz completed_at;
	TimestampTz active_at;
	TimestampTz lease_expires_at;
	Interval   *stall_after;
	/* varlena, perhaps toasted, NULL if null */
	struct varlena *confidence;
	char	   *worker;
	char	   *holder;
	char	   *message;
	struct varlena *pause_reason;
	struct varlena *inputs;
	struct varlena *result;
	struct varlena *result_summary;
	struct varlena *execution_report;
	struct varlena *output_formatting_notes;
	/* what it does; set at definition */
	char	   *name;
	char	   *type;
	char	   *tool;
	char	   *workflow;
	int			version;		/* 0: the newest */
	char	   *binding;
	struct varlena *prompt;
	struct varlena *instructions;
	struct varlena *arguments;
	struct varlena *resources;
	struct varlena *condition;
	struct varlena *condition_path;
	struct varlena *condition_operands;
	struct varlena *error;		/* what a failed step's tool said beside its message, or NULL */
	ItemPointerData tid;		/* where the row was last seen */
	/* of this call only */
	bool		was_paused;		/* it has a pause reason in the table */
	Waiting    *waiting;		/* set before it moves to awaiting_input */
} StepRow;

/* what is seldom read of a plan */
typedef struct PlanDetail
{
	Jsonb	   *outputs;		/* templates */
	char	   *output_formatting_notes;	/* or NULL */
} PlanDetail;

/* what a step says of how its result is to be shown */
typedef struct FormattingNote
{
	int			order;
	char	   *name;
	char	   *notes;
} FormattingNote;

/* a step that waits for another */
typedef struct Dependent
{
	pg_uuid_t	step_id;
	bool		required;
} Dependent;

extern PlanRow *PlanLock(Call *call, const pg_uuid_t *plan_id);	/* root, then plan; SW001 */
extern PlanRow *PlanLockOfStep(Call *call, const pg_uuid_t *step_id, StepRow **step); /* and read the step; SW002 */
extern PlanRow *PlanLockIfStep(Call *call, const pg_uuid_t *step_id, StepRow **step); /* likewise; NULL: no such step */
extern PlanRow *PlanLockIfFree(Call *call, const pg_uuid_t *plan_id, bool *found); /* NULL: locked by another */
extern PlanRow *PlanRead(Call *call, const pg_uuid_t *plan_id);	/* no lock; NULL: none */
extern PlanRow *PlanInTree(Call *call, PlanRow *root, const pg_uuid_t *plan_id);	/* another plan of a locked tree */
extern TimestampTz CallNow(Call *call, const PlanRow *plan);	/* when what this call changes has changed */
extern void PlanSave(Call *call, PlanRow *plan);
extern void PlansSave(Call *call);	/* those that were deferred */
extern StepRow *StepRead(Call *call, const pg_uuid_t *step_id);	/* NULL: none */
extern StepRow *StepMustRead(Call *call, const pg_uuid_t *step_id);	/* SW002 */
extern StepRow *StepReadByName(Call *call, const pg_uuid_t *plan_id, const char *name);
extern StepRow *StepReadByBinding(Call *call, const pg_uuid_t *plan_id, const char *binding);
extern StepRow *StepReadByOrder(Call *call, const pg_uuid_t *plan_id, int order);
extern StepRow *StepNextPending(Call *call, const PlanRow *plan, int from_order);
extern StepRow *StepNextReady(Call *call, const PlanRow *plan, int from_order);
extern StepRow *StepFromTuple(HeapTuple tuple, TupleDesc desc);
extern void StepSave(Call *call, StepRow *step);
extern PlanDetail *PlanDetailRead(Call *call, const pg_uuid_t *plan_id);
extern List *FormattingNotes(Call *call, const pg_uuid_t *plan_id);	/* FormattingNote, in the order of the steps */
extern Jsonb *SkillMetadata(Call *call, const pg_uuid_t *plan_id);	/* of the plan's newest skill execution, or NULL */
extern List *StepDependents(Call *call, const pg_uuid_t *step_id);	/* Dependent */
extern void StepUnblock(Call *call, const pg_uuid_t *step_id);	/* one thing less to wait for */
extern void StepInstruct(Call *call, StepRow *step, const char *instructions);
extern StepRow *StepFetch(KeptQuery *query, const Args *args);	/* first of whole step rows; NULL: none */
pg_noreturn extern void PlanNotFound(const pg_uuid_t *plan_id);
pg_noreturn extern void StepNotFound(const pg_uuid_t *step_id);
extern PlanRow *PlanMustRead(Call *call, const pg_uuid_t *plan_id);	/* no lock; SW001 */
extern void StoreInit(void);
extern void MarkEngineUsed(void);
extern bool EngineUsed(void);

/* ---------- lookup.c: queries by the usual keys ---------- */

extern Rows QueryOfTenant(const Call *call, KeptQuery *query);
extern Rows QueryById(const Call *call, KeptQuery *query, const pg_uuid_t *id);
extern Rows QueryByName(const Call *call, KeptQuery *query, const char *name);
extern Jsonb *QueryJson(KeptQuery *query, const Args *args);	/* of a query that makes one JSON; NULL: none */
extern StepRow *RowStep(const Rows *rows, uint64 row);	/* of whole step rows */
extern TimestampTz RowTime(const Rows *rows, uint64 row, int column);	/* NO_TIME if null */
extern struct varlena *RowVarlena(const Rows *rows, uint64 row, int column);	/* NULL if null; not copied */

/* ---------- audit.c: the chain of audit entries ---------- */

extern void AuditAppend(Call *call, PlanRow *plan, const pg_uuid_t *step_id, const char *event, Jsonb *detail);
extern char *DigestText(const void *jsonb_varlena); /* SHA-256 of a jsonb value's text, in hex; NULL for NULL */
extern char *DigestOfText(const char *text);	/* likewise */

extern char *RoleText(Oid role);
extern char *ActorText(const Call *call);	/* role, and after a slash the name given */

/* an entry that belongs to no plan */
typedef struct PlanlessEntry
{
	const char *event;
	const char *actor;
	const char *session;		/* or NULL */
	TimestampTz at;
	Jsonb	   *detail;
} PlanlessEntry;

/* the newest entry of the chain of a tenant; 0 and zeros before there is one */
typedef struct ChainEnd
{
	int64		id;
	uint8		hash[32];
} ChainEnd;

extern ChainEnd ChainEndRead(Call *call, bool latest);
extern void AuditWritePlanless(Call *call, const PlanlessEntry *planless, ChainEnd *end);

/* ---------- chain.c: the audit chain of a tenant ---------- */

extern void ChainInit(void);
extern void AuditAppendPlanless(Call *call, const char *event, Jsonb *detail);	/* at the end of the transaction */

/* ---------- state.c: the one routine that moves a step ---------- */

/* every move: check, stamp, save, count, audit; PlanSettle then draws the consequences, once */
extern void StepMove(Call *call, PlanRow *plan, StepRow *step, StepStatus to, Jsonb *detail);
pg_noreturn extern void StepTransitionRefuse(const StepRow *step, StepStatus to, const char *rule);	/* SW003 */
extern void StepStamp(StepRow *step, StepStatus to, TimestampTz now);	/* check the transition, set what goes with it */
extern bool StepStampInPlan(Call *call, PlanRow *plan, StepRow *step);	/* the part that needs the plan */
extern void StepAudit(Call *call, PlanRow *plan, const StepRow *step, StepStatus from, const Jsonb *detail);
extern void StepMoved(Call *call, PlanRow *plan, StepRow *step, StepStatus from, Jsonb *detail);
extern void StepPause(Call *call, PlanRow *plan, StepRow *step, Jsonb *reason);	/* a pending step cannot go on; NULL: it can */
extern void PlanMove(Call *call, PlanRow *plan, PlanStatus to, Jsonb *detail);
extern void PlanDrain(Call *call, PlanRow *plan);	/* only branches and dependents */
extern void PlanReconsider(Call *call, PlanRow *plan);	/* what is blocked in it; the caller settles */
extern void PlanSettle(Call *call, PlanRow *plan); /* branches, dependents, status, pause reason, parent; saves */
extern void PlanCheckOpen(const PlanRow *plan);	/* SW003 when the plan has ended */
extern void PlanCheckModifiable(const PlanRow *plan);	/* SW004 unless planning or executing */
extern Jsonb *MoveDetail(const char *from, const char *to, const Jsonb *extra);

/* what a settled parent means for a step that depends on it */
typedef enum DependentVerdict
{
	DEPENDENT_WAITS,
	DEPENDENT_RUNS,
	DEPENDENT_SKIPPED
} DependentVerdict;

extern DependentVerdict DependentVerdictOf(const PlanRow *plan, StepStatus parent, Outcome outcome, bool required);

/* ---------- guard.c: triggers for raw SQL ---------- */

extern bool RestoreMayInsert(void);
extern struct TriggerData *TriggerOf(FunctionCallInfo fcinfo);	/* must be called as a trigger */
extern Datum TriggerPass(const struct TriggerData *trigger);	/* let the row pass */

/* ---------- create.c: rows of new plans and added steps ---------- */

/* where a plan comes from, beside its definition */
typedef struct PlanOrigin
{
	const char *workflow;		/* or NULL */
	int			version;
	const char *goal;
	Jsonb	   *inputs;
	const char *design_rationale;
	const char *idempotency_key;
	const char *request_digest;
	PlanRow    *parent;			/* of a nested plan; so holder, the step */
	StepRow    *holder;
} PlanOrigin;

extern PlanRow *PlanCreate(Call *call, const Definition *definition, const PlanOrigin *origin);
extern Definition *WorkflowOpen(Call *call, PlanOrigin *origin, Faults *faults);
extern pg_uuid_t *PlanAddSteps(Call *call, PlanRow *plan, const Jsonb *steps, int after, Faults *faults, int *count);
extern StepRow *PlanAddCheckpointStep(Call *call, PlanRow *plan, const StepRow *after);
extern void ShiftSteps(Call *call, const PlanRow *plan, int after, int by);
extern const Jsonb *PlanInputNames(Call *call, const PlanRow *plan);

/* ---------- branch.c: what is decided when a step completes ---------- */

extern void BranchesAfter(Call *call, PlanRow *plan, StepRow *step);

/* ---------- resolve.c: values of references ---------- */

typedef enum ResolveProblem
{
	RESOLVE_FINE,
	RESOLVE_MISSING,			/* nothing is there */
	RESOLVE_NOT_READY,			/* the step that makes it has not ended */
	RESOLVE_DEPENDENCY			/* the step that makes it failed or was skipped */
} ResolveProblem;

typedef struct ResolveFault
{
	ResolveProblem problem;
	char	   *param;			/* the argument at fault */
	char	   *message;
	const char *asked_for;		/* binding or step whose value is missing, or NULL; so the next */
	const char *producing_step;
	StepRow    *producer;		/* with an id of zeros: a step that was never opened */
} ResolveFault;

extern Jsonb *ResolveJson(Call *call, PlanRow *plan, const Jsonb *template, ResolveFault *fault);	/* NULL: fault */
extern char *ResolveText(Call *call, PlanRow *plan, const char *template, const char *param, ResolveFault *fault);
extern ConditionResult StepConditionDecide(Call *call, PlanRow *plan, const StepRow *step, char **why, ResolveFault *open);	/* open: what has not ended */
extern ConditionResult BranchConditionDecide(Call *call, PlanRow *plan, StepRow *completed, Datum path,
											 struct varlena *operands, char **why);
extern struct varlena *PlanOutputs(Call *call, PlanRow *plan);
extern Jsonb *ResolveSketch(Call *call, PlanRow *plan, const Jsonb *template);	/* <…> where there is no value yet */

/* ---------- mention.c: where the steps of a plan name each other ---------- */

typedef struct Mention
{
	int			order;			/* of the step in which it stands; 0: in the outputs of the plan */
	const char *place;			/* key of the step: "arguments", "condition", … */
	bool		branch;			/* in a branch after the step, which may name the step itself */
	bool		binding;
	char	   *name;			/* of the step, or of the binding */
	char	   *source;			/* as it is written */
} Mention;

extern List *StepMentions(const StepRow *step); /* of Mention */
extern List *PlanMentions(Call *call, const PlanRow *plan);

/* ---------- invoke.c: registered functions, called as the caller ---------- */

typedef struct ToolFault
{
	char	   *message;
	char		code[6];		/* SQLSTATE; empty: none */
	char	   *detail;			/* or NULL; so the next two */
	char	   *hint;
	Jsonb	   *reported;		/* the object with which a client reported it */
} ToolFault;

extern char *FunctionSignature(Oid function, Oid argument, const char *hint);	/* checked, as the caller */
extern bool FunctionTakesText(Oid function);
extern bool SignatureTakesText(const char *signature);
extern Jsonb *Invoke(const char *signature, Datum argument, const char *what, ToolFault **fault);	/* no call is open */

/* ---------- schema.c: input schemas of tools ---------- */

typedef struct SchemaFault
{
	List	   *missing;		/* of char *, in the order of the schema */
	List	   *invalid;		/* of char * */
	char	   *why;
} SchemaFault;

extern void CheckInputSchema(const Jsonb *schema);	/* SW005 */
extern bool SchemaMatch(const Jsonb *schema, const Jsonb *arguments, SchemaFault *fault);

/* ---------- tool.c: the register of tools and resources ---------- */

#define OWN_SCHEME	"stepwise://"

typedef struct Tool
{
	char	   *function;		/* signature; NULL: the client's */
	Jsonb	   *input_schema;	/* or NULL */
	char	   *description;	/* or NULL */
	bool		retryable;
	bool		expose;
} Tool;

extern Tool *ToolFind(Call *call, const char *name);	/* NULL: never registered */
extern bool StepIsRetryable(Call *call, const StepRow *step);
extern void CheckToolName(const char *name);
extern char *ResourceFind(Call *call, const char *uri); /* signature; NULL: none */

/* ---------- state_tools.c: the built-in tools ---------- */

extern Tool *BuiltInTool(const char *name); /* NULL: not built in */
extern const char *BuiltInToolName(int index);	/* NULL: no more */

/* ---------- resource.c: read the resources of a step ---------- */

typedef struct ResourcePlace
{
	const char *tenant;
	pg_uuid_t	plan_id;
	pg_uuid_t	root_id;
} ResourcePlace;

extern Jsonb *ResourcesRead(const ResourcePlace *place, const Jsonb *uris, const char **uri, ToolFault **fault);	/* no call is open */

/* ---------- pause.c: pause reasons ---------- */

extern Jsonb *ToolErrorReason(const StepRow *step, const char *error, bool retryable);
extern Jsonb *WaitingReason(const StepRow *step);
extern Jsonb *UnresolvedReason(const StepRow *step, const ResolveFault *fault);
extern Jsonb *ConditionReason(const StepRow *step, const char *error);
extern Jsonb *ClientToolReason(const StepRow *step, const Jsonb *arguments, const char *instructions);
extern Jsonb *SchemaReason(const StepRow *step, const SchemaFault *fault);
extern Jsonb *ResourceErrorReason(const StepRow *step, const char *uri, const char *error, bool retryable,
								  const char *suggested);
extern bool ReasonOfRun(const Jsonb *reason);	/* it stops a run, and no agent */
extern Jsonb *ReasonWithPath(Call *call, PlanRow *plan, Jsonb *reason);
extern StepRow *StepOfReason(Call *call, const PlanRow *plan);	/* the step that blocks a plan, at any depth; NULL: none */
extern StepRow *StepAtPath(Call *call, const PlanRow *plan, const Jsonb *path); /* from the root of its tree; NULL: none */

/* ---------- review.c: reviews and checkpoints ---------- */

extern void CheckpointOpen(Call *call, PlanRow *plan, StepRow *step);
extern void CheckpointClose(Call *call, const StepRow *step);
extern void CheckpointsClose(Call *call, const PlanRow *plan);	/* the plan has ended */
extern void StepRequestReview(Call *call, PlanRow *plan, StepRow *step, const char *summary, Jsonb *questions);

/* ---------- tree.c: nested plans ---------- */

extern bool NestedPlanId(Call *call, const pg_uuid_t *step_id, pg_uuid_t *plan_id);	/* false: none */
extern PlanRow *PlanAround(Call *call, const PlanRow *plan, StepRow **holder);
extern const char *TreeStatusOfStep(const StepRow *step);
extern bool StepSucceeded(const StepRow *step);
extern bool StepFailed(const StepRow *step);
extern void PutOutputs(JsonBuilder *b, const struct varlena *outputs);
extern Jsonb *StepMetadata(const StepRow *step, TimestampTz now);
extern Jsonb *PlanMetadata(Call *call, const PlanRow *plan, TimestampTz now);
extern Jsonb *StepInputs(const StepRow *step); /* resolved arguments */
extern size_t BlockSize(const StepRow *step);	/* in the execution tree */
#define TREE_HINT \
	"Ask for less: stepwise.execution(plan_id, depth) with a smaller depth, or of a nested plan;" \
	" stepwise.get_step_context(step_id) shows one step."
extern void TreeRise(Call *call, PlanRow *plan);	/* tell the step that holds a nested plan how it stands */
extern Jsonb *OldestCheckpoint(Call *call, const PlanRow *plan);	/* NULL: none */
extern Jsonb *WorkflowResponse(Call *call, PlanRow *plan, bool detail);
extern bool NestedOpen(Call *call, PlanRow *plan, StepRow *step);
#define CANCELLED_WITH_PLAN	"plan cancelled: " /* how the message of a step that was skipped for that begins */
extern void PlanCancel(Call *call, PlanRow *plan, const char *reason);
extern Jsonb *NestedCancel(Call *call, PlanRow *plan, const StepRow *step); /* the step has ended */
extern void NestedCancelAll(Call *call, PlanRow *plan); /* the plan has failed */

/* ---------- next.c: find the step that can be done next ---------- */

typedef struct Next
{
	bool		run;			/* set before: a run asks, not an agent */
	PlanRow    *plan;
	StepRow    *step;
	char	   *instructions;	/* filled; so the next */
	Jsonb	   *resources;
	Tool	   *tool;			/* of a run: NULL if it only reads resources */
} Next;

extern bool NextFind(Call *call, PlanRow *scope, Next *next);
extern bool NextPeek(Call *call, PlanRow *scope, Next *next);	/* false: next->step is what is waited for, or NULL */
extern void StepReconsider(Call *call, PlanRow *plan, StepRow *step);
extern bool StepFillInputs(Call *call, PlanRow *plan, StepRow *step);	/* when it starts without having been found */
extern void ReleaseExpired(Call *call, PlanRow *root);
extern void StepRelease(Call *call, PlanRow *plan, StepRow *step, const char *why);
extern StepRow *ClaimOfWorker(Call *call, const PlanRow *root, const char *worker);
extern void StepFillFault(Call *call, PlanRow *plan, StepRow *step, ResolveFault *fault);	/* what it cannot be filled with */
extern char *ClaimedInstructions(Call *call, PlanRow *plan, const StepRow *step);
extern Jsonb *ClaimedResources(Call *call, PlanRow *plan, const StepRow *step);

/* ---------- runner.c: run a plan in the database ---------- */

extern Jsonb *RunObstacle(Call *call, const StepRow *step, Next *next, char **why); /* NULL: a run can do it */
extern Outcome ResultOutcome(const Jsonb *result);	/* failure if it says isError */
extern void StepComplete(Call *call, PlanRow *plan, StepRow *step, Jsonb *result, Outcome outcome);
extern void StepFail(Call *call, PlanRow *plan, StepRow *step, const ToolFault *fault, Jsonb *reason);
extern Jsonb *TaskAnswer(Call *call, const pg_uuid_t *plan_id); /* how a plan stands, as run answers it */

/* ---------- loop.c: the agent's loop ---------- */

extern void PlanNoteSession(Call *call, PlanRow *plan); /* session_resumed; the caller saves */
extern Jsonb *NextAnswer(Call *call, PlanRow *scope);	/* when there is no step to hand out */
extern void PutPath(JsonBuilder *b, const PlanRow *plan, const StepRow *step);
extern struct varlena *HoldersBelow(const PlanRow *plan, const StepRow *holder);	/* of the plan that it holds */
extern void PutStepAnswer(JsonBuilder *b, const PlanRow *plan, const StepRow *step);
extern Jsonb *StepAnswer(const PlanRow *plan, const StepRow *step);	/* what every change of a step answers */
extern Outcome CheckOutcome(const char *outcome);
extern void CheckConfidence(double confidence);
extern void CheckResultGiven(const Jsonb *result);	/* SW005 */
extern bool OnlyEngineDoes(const StepRow *step);	/* it takes no result from outside */
extern void CheckNotHolder(const StepRow *step, const char *what);
extern void CheckNotPrompt(const StepRow *step);
extern Jsonb *PlanJson(Call *call, KeptQuery *query, const pg_uuid_t *plan_id); /* what a query over (tenant, plan) makes */

/* ---------- variables.c: the variables of a plan ---------- */

extern Jsonb *VariablesRead(Call *call, const pg_uuid_t *plan_id);	/* the plan's own */
extern void VariablesStore(Call *call, const pg_uuid_t *plan_id, const Jsonb *variables);	/* SW007 */

/* ---------- context.c: what a session needs to go on ---------- */

extern int	ArgumentMax(FunctionCallInfo fcinfo, int n, int otherwise);	/* how many rows; SW005 */

/* ---------- handoff.c: why, and what to call next ---------- */

extern Jsonb *NextCall(Call *call, PlanRow *scope);

#endif							/* STEPWISE_H */
