/*
 * base.h
 *	  the lowest floor: words, values, settings, tables, queries, tenants, and the
 *	  frame of a call
 *
 * It knows nothing about plans, steps and definitions, except the words of
 * their states. Each section needs only the sections above it.
 */
#ifndef STEPWISE_BASE_H
#define STEPWISE_BASE_H

#include "postgres.h"

#include "access/genam.h"
#include "access/skey.h"
#include "access/tableam.h"
#include "catalog/pg_type_d.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "nodes/pg_list.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/jsonpath.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "base/compat.h"
#include "base/errcodes.h"

typedef struct Call Call;		/* call.c */

/* ---------- enum.c: the words of the enum types, in their order ---------- */

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
	ON_FAILURE_STOP,
	ON_FAILURE_PAUSE,
	ON_FAILURE_FAIL
} OnFailure;
#define ON_FAILURES		4

extern const char *const StepStatusName[STEP_STATUSES];
extern const char *const PlanStatusName[PLAN_STATUSES];
extern const char *const OutcomeName[OUTCOMES];
extern const char *const OnFailureName[ON_FAILURES];

extern void EnumInit(void);
extern int	EnumIndex(Oid value, const char *const *names, int count);

/* ---------- settings.c: the settings of the extension ---------- */

extern int	MaxResultBytes;
extern int	MaxJsonDepth;
extern int	MaxSteps;
extern int	MaxNesting;
extern bool AllowRecursion;
extern bool NotifyChanges;
extern bool LogToolCalls;

extern void SettingsInit(void);
extern Interval *DefaultStallAfter(void);

/* ---------- word.c: search words, and cut texts for messages ---------- */

extern int	NameIndex(const char *name, const char *const *names, int count);	/* -1: not there */
extern const char *NearestWord(const char *word, const char *const *words, int count);	/* NULL: none near */
extern char *WordList(const char *const *words, int count);
extern int	HexDigit(char c);	/* -1: not a digit */
extern bool TextIsBlank(const char *text);
extern char *ClipText(const char *text, int length);
extern char *ShortText(const char *text);	/* the same for a whole text; NULL gives "" */
extern char *Because(const char *reason);	/* ": reason", or "" for NULL */
extern bool EndsSentence(const char *text); /* with a punctuation mark */
extern char *FormatText(const char *format, va_list args) pg_attribute_printf(1, 0);
extern const char *Arrow(void); /* between the names of a chain */

/* ---------- uuid.c: make, compare, read and show UUIDs ---------- */

extern pg_uuid_t UuidNew(int slot); /* version 7, ascending within the backend; ends with the slot */
extern char *UuidText(const pg_uuid_t *uuid);
extern bool UuidEqual(const pg_uuid_t *a, const pg_uuid_t *b);
extern bool UuidParse(const char *text, pg_uuid_t *uuid);

/* ---------- time.c: show times and intervals ---------- */

/*
 * A time that is null in SQL. It is -infinity and not 0, which is a valid time;
 * stored times are finite (guard.c).
 */
#define NO_TIME			DT_NOBEGIN
#define TimeIsSet(time)	((time) != NO_TIME)

extern TimestampTz TimeAfter(TimestampTz from, Interval *interval);
extern char *TimeText(TimestampTz at);
extern char *IntervalText(Interval *interval);

/* ---------- builder.c: build jsonb values ---------- */

typedef struct JsonItem JsonItem;

/* begins as zeros */
typedef struct JsonBuilder
{
	JsonItem   *items;
	int			count;
	int			room;
	int			open;			/* number of the innermost open container, from 1 on; 0: none */
} JsonBuilder;

/* without a key, the value is an element of an array, or the outermost value */
extern void JsonObjectStart(JsonBuilder *b, const char *key);
extern void JsonObjectEnd(JsonBuilder *b);
extern void JsonArrayStart(JsonBuilder *b, const char *key);
extern void JsonArrayEnd(JsonBuilder *b);
extern void JsonPutText(JsonBuilder *b, const char *key, const char *value);	/* NULL: null */
extern void JsonPutJson(JsonBuilder *b, const char *key, const Jsonb *value);	/* NULL: null */
extern void JsonPutValue(JsonBuilder *b, const char *key, const JsonbValue *value);
extern void JsonPutInt(JsonBuilder *b, const char *key, int64 value);
extern void JsonPutMilliseconds(JsonBuilder *b, const char *key, int64 microseconds);
extern void JsonPutPositive(JsonBuilder *b, const char *key, int value);	/* null unless positive */
extern void JsonPutBool(JsonBuilder *b, const char *key, bool value);
extern void JsonPutUuid(JsonBuilder *b, const char *key, const pg_uuid_t *value);	/* NULL: null */
extern void JsonPutTime(JsonBuilder *b, const char *key, TimestampTz value);	/* NO_TIME: null */
extern void JsonPutNull(JsonBuilder *b, const char *key);
extern void JsonPutTextIfSet(JsonBuilder *b, const char *key, const char *value);	/* NULL: the key is left out */
extern void JsonPutJsonIfSet(JsonBuilder *b, const char *key, const Jsonb *value);	/* likewise */
extern void JsonPutTimeIfSet(JsonBuilder *b, const char *key, TimestampTz value);	/* NO_TIME: likewise */
extern void JsonPutTexts(JsonBuilder *b, const char *key, const List *texts);	/* of char * */
extern void JsonPutMembers(JsonBuilder *b, const Jsonb *object);	/* of an object, into the open one */
extern Jsonb *JsonFinish(JsonBuilder *b);

/* ---------- json_text.c: write jsonb values as text ---------- */

extern char *JsonToText(const Jsonb *value);
extern void JsonCompact(StringInfo text, const JsonbValue *value);	/* appends JSON without spaces */

/* ---------- json.c: read, compare and merge jsonb values ---------- */

extern bool JsonGet(const Jsonb *object, const char *key, JsonbValue *value);
extern char *JsonGetText(const Jsonb *object, const char *key); /* NULL if it is no string */
extern Jsonb *JsonGetJson(const Jsonb *object, const char *key);	/* NULL if not there */
extern int	JsonGetInt(const Jsonb *object, const char *key);	/* 0 if it is no number */
extern List *JsonGetTexts(const Jsonb *object, const char *key);	/* of char *, from an array */
extern const char **JsonKeys(const Jsonb *object, int *count);
extern bool JsonGetIndex(const Jsonb *array, int index, JsonbValue *value);
extern Jsonb *JsonFromValue(JsonbValue *value);
extern void JsonToValue(const Jsonb *json, JsonbValue *value);	/* NULL: null */
extern Jsonb *JsonOf(const struct varlena *field);	/* detoasts a field of a row; NULL for NULL */
extern char *TextOf(const struct varlena *field);	/* likewise */
extern char *JsonValueText(const JsonbValue *value);	/* of a jbvString */
extern const char *JsonKindName(const JsonbValue *value);	/* "string", "object", … */
extern bool JsonHasType(const JsonbValue *value, const char *type); /* a kind of JSON, or integer; NULL: any type */
extern bool JsonIsObject(const Jsonb *value);
extern bool JsonIsArray(const Jsonb *value);
extern bool JsonEqual(const Jsonb *a, const Jsonb *b);	/* NULL equals NULL only */
extern Jsonb *JsonMerge(const Jsonb *a, const Jsonb *b);	/* a || b for objects; NULL counts as empty */
extern Jsonb *JsonMergeDeep(const Jsonb *a, const Jsonb *b);	/* merges objects at every depth; other values of b
																 * replace those of a */
extern Jsonb *JsonEmptyObject(void);
extern Jsonb *JsonObjectOf(const char *key, const Jsonb *value);	/* of one member */
extern Jsonb *JsonTextOf(const char *key, const char *value);	/* likewise */
extern Jsonb *JsonNull(void);
extern bool JsonIsNull(const Jsonb *value);
extern Jsonb *JsonCopy(const Jsonb *value);
extern Jsonb *JsonParse(const char *text);	/* must be JSON */
extern char *JsonScalarText(const JsonbValue *value);	/* a string as it is, others as compact JSON */

/* ---------- encoding.c: texts in UTF-8, whatever the encoding of the database ---------- */

extern bool TextIsUtf8(const char *text);
extern bool JsonIsUtf8(const Jsonb *value);
extern void CheckUtf8(const char *text, const char *what);	/* SW005; likewise the next */
extern void CheckJsonUtf8(const Jsonb *value, const char *what);
extern const char *Utf8Form(const char *text);	/* the text itself, if it has no UTF-8 form */
extern char *Utf8Clean(const char *text);

/* ---------- limit.c: how large values and texts may be ---------- */

#define NAME_MAX_BYTES	500
#define TITLE_MAX_CHARS	200		/* an index entry must hold it */

extern char *JsonExcess(const Jsonb *json); /* a message; NULL if it is within the limits */
extern void CheckJsonLimits(const Jsonb *value, const char *what);	/* SW007 */
extern void CheckTextLimit(const char *value, const char *what);	/* SW007 */
extern void CheckNameLimit(const char *value, const char *what);	/* SW007 */
extern void CheckNotBlank(const char *value, const char *what); /* SW005 */
extern void CheckTitle(const char *value, const char *what);	/* SW005, SW007 */
extern void CheckOptionalTitle(const char *value, const char *what);
extern void CheckLine(const char *word, const char *what);	/* SW005 */
extern void AnswerTake(Call *call, size_t bytes, const char *hint); /* SW007 */

/* ---------- cut.c: cut long texts and values, so that an answer stays small enough for a model ---------- */

#define REASON_TEXT_BYTES	1000	/* of a message that is passed on to other steps and plans */

/* the function that reads a value whole */
typedef struct ReadingFunction
{
	const char *function;
	const char *argument;		/* that says of what */
	const char *id;				/* the value of this argument */
	const char *also;			/* another argument that it needs: max_bytes, max or depth; NULL or "": none */
} ReadingFunction;

extern size_t RawSize(const struct varlena *field); /* when detoasted; 0 for NULL */
extern char *CutText(const char *text, int max, const char *reader);	/* the result says how long the text was */
extern char *CutField(const struct varlena *field, int max, const char *reader);	/* NULL for NULL */
extern char *BecauseShort(const char *reason);	/* Because, cut */
extern Jsonb *CutJson(const struct varlena *field, int max, const ReadingFunction *reader);	/* NULL for NULL */
extern bool IsFarOver(const struct varlena *field, int64 max);
extern int64 JsonTextLength(const Jsonb *value);
extern bool JsonFits(const Jsonb *value, int64 max);

/* ---------- digest.c: SHA-256 ---------- */

extern void Sha256(const void *data, size_t size, uint8 digest[32]);
extern char *DigestHex(const uint8 digest[32]);
extern char *DigestOfText(const char *text);	/* in hex; NULL for NULL */
extern bool DigestJson(const void *jsonb_varlena, uint8 digest[32]);	/* of the text of a jsonb value; false for NULL */
extern char *DigestText(const void *jsonb_varlena); /* of the text of a jsonb value; NULL for NULL */

/* ---------- catalog.c: our tables, indexes, enum values and functions by name ---------- */

extern void CatalogInit(void);
extern Oid	TableOid(const char *name);
extern Relation TableOpen(const char *name, LOCKMODE lockmode);
extern bool TableIsThere(const char *name);
extern Oid	EnumValue(const char *type, const char *label);
extern Oid	FunctionOid(const char *name);	/* InvalidOid if there is none */

/* ---------- role.c: the owner, the rights of roles, and their names ---------- */

extern Oid	OwnerRole(void);
extern bool RoleIsOwner(Oid role);
extern bool RoleMayExecute(Oid role, const char *function);
extern bool (*FunctionIsOffered) (const char *function);	/* NULL: all are */
extern void CheckOwner(const char *what);
extern char *RoleText(Oid role);
extern char *ActorText(const Call *call);	/* role, or role/name */

/* ---------- query.c: kept SPI plans, and the rows that they return ---------- */

#define QUERY_MAX_PARAMS	40

typedef struct KeptQuery
{
	const char *sql;
	int			nparams;
	Oid			types[QUERY_MAX_PARAMS];
	SPIPlanPtr	plan;			/* prepared at first use, kept for the backend */
	bool		latest;			/* use the latest snapshot, at stricter isolation levels too */
	bool		reads_plans;	/* reads what a call changes in plans; the call saves its changes first */
	bool		reads_log;		/* reads the audit log; the call writes its entries first */
	bool		in_order;		/* reads the first of many rows in the order of an index; they must not be sorted */
	bool		quiet;			/* sends no notices, such as those about words that are too long to be searched for */
} KeptQuery;

/* the parameters of one execution, in the order of $1, $2, … */
typedef struct Params
{
	Call	   *call;			/* or NULL: the search path is locked for this query only */
	int			count;
	Datum		values[QUERY_MAX_PARAMS];
	char		nulls[QUERY_MAX_PARAMS];	/* ' ' or 'n' */
} Params;

extern void ParamDatum(Params *params, Datum value);
extern void ParamNull(Params *params);
extern void ParamText(Params *params, const char *value);	/* NULL: null; likewise the next two */
extern void ParamVarlena(Params *params, const void *value);
extern void ParamUuid(Params *params, const pg_uuid_t *value);
extern void ParamInt(Params *params, int value);
extern void ParamBool(Params *params, bool value);
extern void ParamTime(Params *params, TimestampTz value);	/* NO_TIME: null */
extern void ParamTenant(Params *params, const Call *call);
extern void ParamKey(Params *params, const Call *call, const pg_uuid_t *id);

/* what a query returned; it lives until RowsFree or the end of the call */
typedef struct Rows
{
	uint64		count;
	SPITupleTable *table;
} Rows;

extern uint64 QueryRunOnce(const char *sql, const Oid *types, const Params *params);	/* one-off; returns the number
																						 * of rows affected */
extern Rows QueryRun(KeptQuery *query, const Params *params);	/* as the owner, between CallBegin and CallEnd */
extern Rows QueryOfTenant(const Call *call, KeptQuery *query);
extern Rows QueryById(const Call *call, KeptQuery *query, const pg_uuid_t *id);
extern Rows QueryByName(const Call *call, KeptQuery *query, const char *name);
extern Jsonb *QueryJson(KeptQuery *query, const Params *params);	/* one jsonb value; NULL if there is no row */
extern Jsonb *QueryJsonById(const Call *call, KeptQuery *query, const pg_uuid_t *id);

extern void RowsFree(Rows *rows);
extern HeapTuple RowTuple(const Rows *rows, uint64 row);
extern Datum RowDatum(const Rows *rows, uint64 row, int column, bool *isnull);	/* not copied */
extern bool RowIsNull(const Rows *rows, uint64 row, int column);
extern char *RowText(const Rows *rows, uint64 row, int column); /* NULL if null; copied */
extern Jsonb *RowJson(const Rows *rows, uint64 row, int column);	/* NULL if null; copied, detoasted */
extern pg_uuid_t RowUuid(const Rows *rows, uint64 row, int column);
extern int	RowInt(const Rows *rows, uint64 row, int column);
extern bool RowBool(const Rows *rows, uint64 row, int column);	/* false if null */
extern TimestampTz RowTime(const Rows *rows, uint64 row, int column);	/* NO_TIME if null */
extern struct varlena *RowVarlena(const Rows *rows, uint64 row, int column);	/* NULL if null; not copied */

extern bool EngineRuns(void);	/* is a statement of the engine running? */
extern bool EngineWrites(void); /* for triggers: was it fired by a statement of the engine? */
extern void SearchPathLockFor(Call *call);	/* for functions that are called without a query */
extern int	NoticesAvoid(void); /* returns the level for SearchPathUnlock */
extern void SearchPathUnlock(int *level);	/* what the first query of a call has locked */

/* ---------- planner.c: let kept plans stay good as the tables grow ---------- */

extern void PlannerInit(void);

/* ---------- defaults.c: complete calls of our functions with their defaults, from a cache ---------- */

extern void DefaultsComplete(struct Query *query);
extern bool DefaultsAreKept(Oid function);
extern void DefaultsInit(void);

/* ---------- planned.c: plan the statements that call our functions ---------- */

extern void PlannedInit(void);

/* ---------- key.c: make search keys of indexes, column by column ---------- */

#define KEY_MAX_COLUMNS	4

/* a search key of an index, column by column */
typedef struct Key
{
	Call	   *call;
	int			count;
	ScanKeyData columns[KEY_MAX_COLUMNS];
	bool		backward;		/* read the rows in descending order */
	ItemPointerData place;		/* where the row may be; or invalid */
	ItemPointerData held;		/* where the row was when another transaction had locked it; or invalid */
	const AttrNumber *of_table; /* the columns of the table that the row there is compared in; NULL: its first ones */
} Key;

extern Key	IdKey(Call *call, const pg_uuid_t *id);
extern void KeyText(Key *key, Datum value);
extern void KeyUuid(Key *key, const pg_uuid_t *value);
extern void KeyInt(Key *key, int value);
extern void KeyLong(Key *key, int64 value);
extern void KeyIntFrom(Key *key, int value);	/* this value or more */
extern void KeyIntBelow(Key *key, int value);	/* less than this value */
extern void KeyIntBetween(Key *key, int from, int below);
extern void KeyUuidBelow(Key *key, const pg_uuid_t *value);	/* likewise */
extern void KeyLongAbove(Key *key, int64 value);	/* more than this value */
extern void KeyTextAbove(Key *key, const char *value);	/* likewise */

/* ---------- column.c: read columns of a row that was found by index; they are counted from 0 ---------- */

extern bool ColumnIsNull(TupleTableSlot *slot, int column);
extern Datum ColumnDatum(TupleTableSlot *slot, int column); /* passed by value, or not copied; 0 if null */
extern int	ColumnInt(TupleTableSlot *slot, int column);	/* 0 if null */
extern bool ColumnBool(TupleTableSlot *slot, int column);	/* false if null */
extern TimestampTz ColumnTime(TupleTableSlot *slot, int column);	/* NO_TIME if null */
extern pg_uuid_t ColumnUuid(TupleTableSlot *slot, int column);	/* zeros if null */
extern char *ColumnText(TupleTableSlot *slot, int column);	/* NULL if null; likewise the next two */
extern Jsonb *ColumnJson(TupleTableSlot *slot, int column); /* detoasted */
extern struct varlena *ColumnField(TupleTableSlot *slot, int column);	/* as it is stored, perhaps toasted */

/* ---------- change.c: say which columns an insert or update sets ---------- */

#define TABLE_MAX_COLUMNS	128 /* enough for the widest table, and for columns of later versions */

/* the columns that an insert or update sets */
typedef struct Changes
{
	Datum		values[TABLE_MAX_COLUMNS];
	bool		nulls[TABLE_MAX_COLUMNS];
	bool		replaces[TABLE_MAX_COLUMNS];
} Changes;

extern void SetDatum(Changes *c, int column, Datum value, bool isnull);
extern void SetInt(Changes *c, int column, int value);
extern void SetPositive(Changes *c, int column, int value); /* null unless positive */
extern void SetBool(Changes *c, int column, bool value);
extern void SetTrue(Changes *c, int column, bool value);	/* false: null */
extern void SetTime(Changes *c, int column, TimestampTz value); /* NO_TIME: null */
extern void SetUuid(Changes *c, int column, const pg_uuid_t *value);	/* NULL: null; likewise the next two */
extern void SetVarlena(Changes *c, int column, const void *value);
extern void SetText(Changes *c, int column, const char *value);
extern void SetInterval(Changes *c, int column, const Interval *value); /* NULL: null */
extern void SetEnum(Changes *c, int column, const char *type, const char *label);

/* ---------- form.c: form the tuple of a row ---------- */

/* how a column is stored */
typedef struct ColumnForm
{
	int16		length;			/* -1: it varies */
	uint8		alignment;
	bool		by_value;
	bool		packable;		/* a short value gets a short header */
	bool		not_null;
} ColumnForm;

typedef struct RowForm
{
	ColumnForm	columns[TABLE_MAX_COLUMNS];
} RowForm;

extern void RowFormRead(RowForm *form, TupleDesc desc);
extern HeapTuple RowFormTuple(const RowForm *form, Relation relation, const Datum *values, const bool *nulls);

/* ---------- facts.c: remember facts about our tables ---------- */

#define INDEXES_MAX		16		/* of a table */
#define TESTS_MAX		2		/* in the predicate of an index */

/* what an index asks of a column of a row */
typedef struct ColumnTest
{
	AttrNumber	column;
	enum
	{
		COLUMN_IS_NULL,
		COLUMN_IS_NOT_NULL,
		COLUMN_IS_TRUE
	}			kind;
} ColumnTest;

/* how rows get into an index; this never changes while it exists */
typedef struct IndexFacts
{
	Oid			index;
	bool		plain;			/* a B-tree over columns, in use */
	bool		unique;
	int			ncolumns;
	AttrNumber	columns[KEY_MAX_COLUMNS];
	int			ntests;			/* all must hold for an entry; -1: the predicate is not understood */
	ColumnTest	tests[TESTS_MAX];
} IndexFacts;

/* what is known about a table, until it changes */
typedef struct Facts
{
	AttrNumber	tenant;			/* number of its column tenant */
	RowForm		form;			/* how its columns are stored */
	bool		judged;			/* is it known whether a user has altered it (altered.c)? */
	bool		altered;		/* the answer */
	bool		indexed;		/* have its indexes been read? */
	int			nindexes;		/* -1: too many */
	IndexFacts	indexes[INDEXES_MAX];
} Facts;

extern void FactsInit(void);
extern Facts *FactsOf(Relation relation);

/* ---------- opened.c: open tables and indexes for a call ---------- */

/* a table or index that a call has open */
typedef struct Opened
{
	const char *name;			/* by which it was opened; NULL: by its id */
	Relation	relation;
	LOCKMASK	locked;			/* modes in which it is locked, a bit for each */
	TupleTableSlot *read;		/* has the row that was read last, or NULL */
	TupleTableSlot *written;	/* for a row that is written, or NULL; empty between two uses */
} Opened;

extern Opened *OpenedFind(const Call *call, Oid relid); /* NULL: the call has not opened it */
extern Relation OpenOnce(Call *call, const char *name, LOCKMODE lockmode);
extern Relation IndexOpen(Call *call, Oid index);	/* in order to add entries */
extern void TablesClose(Call *call);
extern TupleTableSlot *ReadSlot(Call *call, Relation relation);
extern TupleTableSlot *WriteSlot(Call *call, Relation relation);

/* ---------- snapshot.c: open tables under a snapshot, as a statement does ---------- */

extern Snapshot SnapshotNow(bool reading);
extern Relation TableBegin(Call *call, const char *table, LOCKMODE lockmode);
extern Relation TableBeginWrite(Call *call, const char *table); /* rows that need not be searched */
extern void TableEnd(void);
extern void LatestBegin(Call *call);	/* reads what is committed by now, at stricter isolation levels too */
extern void LatestEnd(Call *call);
extern void WritesBegin(Call *call);
extern void WritesEnd(Call *call);
extern void CheckWritable(const char *command);

/* ---------- table.c: read and lock rows of our own tables by index, without the executor ---------- */

/* columns are counted from 0; plans and steps have their id in column 0 */
typedef bool (*TupleTest) (TupleTableSlot *slot, const void *arg);
typedef void *(*TupleMake) (TupleTableSlot *slot);

extern void *TableRead(const char *table, const char *index, Key *key, TupleTest test, const void *arg, TupleMake make);
extern List *TableReadAll(const char *table, const char *index, Key *key, TupleMake make);
extern List *TableReadSome(const char *table, const char *index, Key *key, TupleTest test, const void *arg, TupleMake make, int max);
extern void *TableLock(const char *table, const char *index, Key *key, TupleTest test, const void *arg, TupleMake make, bool *held);
extern void *TablePin(const char *table, const char *index, Key *key, TupleMake make);
extern List *TableLockAll(const char *table, const char *index, Key *key, TupleMake make);

/* for those who write rows */
extern IndexScanDesc ScanBegin(Relation relation, const char *index, Key *key);
extern bool ScanNext(IndexScanDesc scan, const Key *key, TupleTableSlot *slot);
extern bool RowIsWanted(Relation relation, TupleTableSlot *slot, const Call *call, TupleTest test, const void *arg);
extern TM_Result RowLock(Relation relation, TupleTableSlot *slot, LockTupleMode mode, LockWaitPolicy wait);
extern void RefuseConcurrentUpdate(void);
extern TupleTableSlot *TableSeekAgain(Relation relation, const char *index, Key *key);
extern TupleTableSlot *TableSeekPlace(Relation relation, Key *key);

/* ---------- bitmap.c: read rows of our own tables by an index over words ---------- */

extern bool TableReadWords(Call *call, const char *table, const char *index, Datum query, TupleMake make, int max, List **rows);

/* ---------- altered.c: check whether a user has added something to a table ---------- */

extern bool RelationIsAltered(Relation relation);
extern bool RelationHasMoreColumns(Relation relation, int columns);
extern bool TableIsAltered(Call *call, const char *table);

/* ---------- statement.c: write rows of our own tables by a statement ---------- */

extern void StatementUpdate(Relation relation, const Key *key, const Changes *changes);
extern void StatementDelete(const Call *call, Relation relation, const pg_uuid_t *id);
extern void StatementInsert(Relation relation, const Changes *changes);
extern void StatementShowLog(Call *call);	/* to the triggers that a statement fires */

/* ---------- entries.c: add entries of rows to the indexes of their tables ---------- */

extern void EntriesAdd(Call *call, Relation relation, TupleTableSlot **slots, int count, const Changes *update);	/* NULL: new rows */
extern void EntriesAddOfUpdate(Call *call, Relation relation, TupleTableSlot *new, const Changes *changes, UpdateIndexes indexes);

/* ---------- write.c: update, delete and insert rows of our own tables, without the executor ---------- */

extern void TableUpdate(const char *table, const char *index, Key *key, Changes *changes);
extern void TableDelete(const char *table, const char *index, Key *key, TupleTest test, const void *arg);
extern ItemPointerData TableInsert(Call *call, const char *table, Changes *changes);	/* all columns must be set */
extern void *TableReadToGrow(const char *table, Key *key, Size growth, TupleMake make);
extern void TableGrow(const char *table, const char *index, Key *key, Changes *changes);	/* after TableReadToGrow */
extern CommandId CommandOf(const Call *call);
extern HeapTuple TableForm(Relation relation, const Changes *row);

/* ---------- batch.c: insert many rows into a table of our own, without the executor ---------- */

/* rows that are being inserted, many at a time; by a statement if a user has added something to the table */
typedef struct Batch
{
	Call	   *call;
	Relation	relation;
	bool		by_statement;
	MemoryContext memory;		/* of the rows that are not inserted yet */
	TupleTableSlot **slots;
	int			nslots;
	int			count;			/* of the rows that are not inserted yet */
	size_t		bytes;			/* their size */
	ItemPointerData place;		/* of the last row that was inserted; invalid: not known */
	Changes		row;			/* what BatchAdd adds */
} Batch;

extern Batch *BatchBegin(Call *call, const char *table, int columns);
extern void *TupleTaken(TupleTableSlot *slot);	/* a TupleMake */
extern void BatchTake(Batch *batch, void *row); /* what TupleTaken has made */
extern void BatchAdd(Batch *batch); /* batch->row */
extern void BatchEnd(Batch *batch);

/* ---------- tenant.c: who may work in which tenant ---------- */

#define DEFAULT_TENANT	"default"
#define TENANT_MAX		200		/* bytes of its name */

extern void TenantInit(void);
extern char *TenantTry(void);	/* NULL if there is none, or more than one */
extern char *TenantOfCaller(void);	/* SW010 if there is none, or more than one */
extern void TenantEnter(const char *tenant);	/* until the end of the (sub)transaction; SW011 */
extern void *TenantMark(void);	/* what is entered now, for TenantRestore */
extern void TenantRestore(void *mark);	/* undoes what was entered since */

/* ---------- send.c: send the answers of our functions to the client ---------- */

extern Datum SendNote(Datum value); /* the answer that a function returns */
extern void SendInit(void);

/* ---------- call.c: the frame of a call ---------- */

/* what a call saves beside the steps that it keeps in memory */
#define SAVE_PLANS	1
#define SAVE_LOG	2			/* audit entries */

/*
 * One call into the engine: the caller, its tenant, and what CallEnd restores.
 * Everything that is allocated between CallBegin and CallEnd is freed there.
 */
struct Call
{
	const char *tenant;
	Datum		tenant_datum;	/* the same, as text */
	Oid			caller;			/* role */
	const char *actor;			/* name given with the call, or NULL */
	const char *session;		/* session id given with the call, or NULL */
	MemoryContext context;
	MemoryContext scratch;		/* for one audit entry at a time */
	MemoryContext outer;
	Oid			saved_user;
	int			saved_security;
	int			guc_level;		/* GUC level of the locked search path; 0: not locked */
	bool		as_owner;
	bool		reading;		/* under one snapshot, the active one (ReadBegin) */
	bool		writing;		/* likewise, rows together (WritesBegin) */
	void		(*save) (Call *call, Call *by, int what);	/* writes what the call has changed, or NULL; SAVE_... says
														 * what beside steps. If another call writes it, the call
														 * still has it to write */
	TimestampTz now;			/* 0: the clock has not been read yet (CallNow) */
	List	   *plans;			/* of PlanRow, locked by this call */
	List	   *opened;			/* tables and indexes that the call has open (opened.c) */
	CommandId	command;		/* with which it writes; InvalidCommandId: the current one */
	struct Kept *kept;			/* rows of steps that it keeps in memory (keep.c); NULL: it writes them at once */
	bool		in_turns;		/* it does many steps of a run */
	/* while it is suspended */
	Call	   *below;			/* another suspended call, or NULL */
	ResourceOwner owner;		/* of its open tables */
	SubTransactionId suspended_in;
	SubTransactionId shown_in;	/* where what it has changed was written; InvalidSubTransactionId: nowhere */
	size_t		answer_bytes;	/* size of the answer, as far as it is known (AnswerTake) */
};

extern void CallBegin(Call *call);	/* in the caller's tenant */
extern void CallBeginReading(Call *call);	/* likewise, reads under one snapshot */
extern void CallBeginIn(Call *call, const char *tenant);	/* for triggers, maintenance and procedures */
extern Datum CallEnd(Call *call, Jsonb *answer);	/* saves the changes; answer NULL: none */
extern void CallSuspend(Call *call);	/* as the caller again, who may call anything */
extern bool CallResume(Call *call); /* false: the call has ended, because somebody looked */
extern bool CallIsSuspended(void);
extern void CallShow(void);		/* to somebody who looks */
extern void CallInit(void);
extern void ReadBegin(Call *call);	/* from here on the call may not write */
extern void ReadEnd(Call *call);	/* CallEnd does it too */
extern void CallInSession(Call *call, char *session);	/* NULL: none was given */
extern MemoryContext TurnBegin(void); /* returns the outer context, for TurnEnd */
extern void TurnEnd(MemoryContext outer, bool keep);
extern char *CallKeepText(Call *call, char *text);	/* NULL for NULL */
extern struct varlena *CallKeep(Call *call, struct varlena *value); /* likewise */
extern bool MayCommit(FunctionCallInfo fcinfo); /* for procedures */
extern void CommitAs(Oid caller);	/* no call is open */

/* ---------- slot.c: ids that carry the slot of their tenant ---------- */

extern int	TenantSlot(const char *tenant); /* 0 to 4095 */
extern int	SlotOf(const pg_uuid_t *id);
extern pg_uuid_t IdNew(const Call *call);	/* of the tenant of the call */

/* ---------- look.c: notice who looks at our tables while a call is suspended ---------- */

extern void LookInit(void);

/* ---------- lock.c: lock words of a tenant, where there is no row to lock ---------- */

extern void CallLock(const Call *call, const char *kind, const char *word); /* until the end of the transaction */
extern bool CallLockIsHeld(const Call *call, const char *kind, const char *word);	/* by another transaction */
extern void CallLockCancel(const Call *call, const char *kind, const char *word);	/* the statements that hold it */
extern void CallLockOfMany(const Call *call, const char *kind, const char *word);	/* likewise; word must not be empty */

/* ---------- argument.c: arguments of SQL-callable functions; NULL for null ---------- */

extern char *ArgumentText(FunctionCallInfo fcinfo, int n);
extern Jsonb *ArgumentJson(FunctionCallInfo fcinfo, int n);
extern pg_uuid_t *ArgumentUuid(FunctionCallInfo fcinfo, int n);
extern bool ArgumentFlag(FunctionCallInfo fcinfo, int n);	/* NULL means false */

/* ---------- trigger.c: what all our triggers share ---------- */

extern struct TriggerData *TriggerOf(FunctionCallInfo fcinfo);	/* the function must be called as a trigger */
extern Datum TriggerPass(const struct TriggerData *trigger);	/* lets the row pass */

/* ---------- used.c: has the engine been used in this database? ---------- */

extern void UsedInit(void);
extern void MarkEngineUsed(void);
extern bool EngineUsed(void);

#endif							/* STEPWISE_BASE_H */
