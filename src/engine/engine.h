/*
 * engine.h
 *	  the rows of plans and steps, and all that moves them
 */
#ifndef STEPWISE_ENGINE_H
#define STEPWISE_ENGINE_H

#include "tool/tool.h"

/* ---------- status.c: the transition tables, and the status of a plan from those of its steps ---------- */

extern bool StepTransitionAllowed(StepStatus from, StepStatus to);
extern bool PlanTransitionAllowed(PlanStatus from, PlanStatus to);
extern bool PlanIsTerminal(PlanStatus status);
extern char *StepTransitionsText(StepStatus from);
extern int	StepTotal(const int counts[STEP_STATUSES]);
extern PlanStatus PlanDeriveStatus(const int counts[STEP_STATUSES], OnFailure on_failure);

/* ---------- entry.c: the stored form of an audit entry, and its hash ---------- */

/* the columns of a row of stepwise.audit_log, but its entries */
typedef struct LogHead
{
	const char *tenant;
	const pg_uuid_t *plan_id;	/* or NULL */
	int64		id;				/* of its first entry: the position in the chain, from 1 */
	TimestampTz at;				/* of its first entry */
	const char *actor;
	const char *session;		/* or NULL */
} LogHead;

/* the move of a step or plan, as an entry tells it */
typedef struct EntryMove
{
	int			from;			/* StepStatus or PlanStatus */
	int			to;				/* likewise */
	int			attempt;		/* 0: none */
	TimestampTz lease_expires_at;	/* or NO_TIME */
	bool		completed;		/* a step; it has an outcome, and perhaps a result */
	Outcome		outcome;
	const struct varlena *result;	/* or NULL; the entry has its digest */
	const char *message;		/* or NULL */
	const pg_uuid_t *checkpoint_id; /* or NULL */
} EntryMove;

/* an entry to be stored */
typedef struct EntryFacts
{
	const char *event;
	const pg_uuid_t *step_id;	/* or NULL */
	int64		later;			/* microseconds after the first entry of its row */
	const EntryMove *move;		/* or NULL */
	const Jsonb *members;		/* more members of its detail, or NULL */
} EntryFacts;

/* an entry in a row */
typedef struct StoredEntry
{
	const char *body;
	int			size;			/* of the body */
	const uint8 *hash;			/* 32 bytes */
} StoredEntry;

/* what stands in front of the detail of an entry */
typedef struct EntryHead
{
	const char *event;
	bool		has_step;
	pg_uuid_t	step_id;
	TimestampTz at;
} EntryHead;

extern void EntryPut(StringInfo body, const EntryFacts *facts);
extern void EntryStore(StringInfo entries, const char *body, int size, const uint8 hash[32]);
extern void LinkBegin(StringInfo link, const uint8 before[32], const LogHead *row);
extern bool LogHeadsFit(const LogHead *row, const LogHead *entry);	/* can the entry be in the row? */
extern bool EntryNext(const char *start, const char **end, StoredEntry *entry);	/* false: no more */
extern EntryHead EntryReadHead(const StoredEntry *entry, TimestampTz at);
extern const char *EntryEvent(const StoredEntry *entry);	/* NULL: none */
extern Jsonb *EntryReadDetail(const StoredEntry *entry);
pg_noreturn extern void EntryRefuse(void);

/* ---------- log_read.c: read the rows of stepwise.audit_log ---------- */

/* columns of stepwise.audit_log, in the order of its definition */
enum
{
	LOG_COL_ID, LOG_COL_AT, LOG_COL_PLAN_ID, LOG_COL_TENANT, LOG_COL_ACTOR, LOG_COL_SESSION_ID, LOG_COL_ENTRIES,
	LOG_COLUMNS
};

/* a row of stepwise.audit_log that was read */
typedef struct StoredRow
{
	LogHead		head;
	pg_uuid_t	plan_id;
	const char *entries;
	const char *end;			/* of the entries */
	ItemPointerData place;
} StoredRow;

/* an entry that is shown to a visitor; its detail is read by EntryReadDetail */
typedef struct LogEntry
{
	const LogHead *row;
	int64		id;
	EntryHead	head;
	StoredEntry stored;
} LogEntry;

typedef void (*EntryVisit) (void *arg, const LogEntry *entry);

extern void *StoredMake(TupleTableSlot *slot);	/* a StoredRow */
extern void LogVisit(Call *call, const pg_uuid_t *plan_id, EntryVisit visit, void *arg);
extern List *LogRows(Call *call, const pg_uuid_t *plan_id, int64 after, int max);	/* of StoredRow; plan_id NULL: of the tenant */
extern StoredRow *LogNewest(Call *call);	/* of the tenant; NULL: none */

/* ---------- log_last.c: the row of the log that this session has written last in a plan ---------- */

extern void LastRowRemember(const LogHead *head, int64 next, int size, ItemPointerData place);
extern Key	LogRowKey(Call *call, const pg_uuid_t *plan_id, int64 id, ItemPointerData place);
extern StoredRow *LastRowRead(Call *call, const LogHead *head, const uint8 before[32]);

/* ---------- log.c: collect the entries of a call, and write them ---------- */

/* a row of stepwise.audit_log that is not written yet */
typedef struct LogRow
{
	LogHead		head;
	pg_uuid_t	plan_id;
	const char *given;			/* name given with the call, as in Call */
	int64		next;			/* position of the entry that comes next */
	StringInfoData entries;		/* a varlena */
	bool		continues;		/* the row is in the table, */
	ItemPointerData place;		/* here, and gets more entries */
	StringInfoData link;		/* what is hashed of the newest entry */
} LogRow;

extern LogRow *LogFor(Call *call, LogRow *row, const LogHead *head, const uint8 before[32]);
extern void LogAdd(LogRow *row, const EntryFacts *facts, uint8 hash[32]);
extern void LogWrite(Call *call, const LogRow *row);
extern bool LogIsAltered(Call *call);	/* by a user */
extern void LogFree(LogRow *row);

/* ---------- the rows of plans and steps ---------- */

/* sets of states of steps */
#define STATE_BIT(state)	(1 << (state))
#define STATES_ENDED		(STATE_BIT(STEP_COMPLETED) | STATE_BIT(STEP_SKIPPED) | STATE_BIT(STEP_FAILED))
#define STATES_OPEN			(STATE_BIT(STEP_PENDING) | STATE_BIT(STEP_IN_PROGRESS) | STATE_BIT(STEP_AWAITING_INPUT))
#define STATES_ALL			(STATES_ENDED | STATES_OPEN)

/* columns of stepwise.plan, in the order of its definition */
enum
{
	PLAN_COL_ID, PLAN_COL_ROOT_ID, PLAN_COL_CREATED_AT, PLAN_COL_DEPTH, PLAN_COL_ON_FAILURE, PLAN_COL_SEQUENTIAL,
	PLAN_COL_SEPARATE_REVIEWER, PLAN_COL_STRICT_ORDER, PLAN_COL_LEASES, PLAN_COL_NESTS, PLAN_COL_STALLS,
	PLAN_COL_READY_MARKS, PLAN_COL_RELINKED, PLAN_COL_OUTCOME, PLAN_COL_STATUS, PLAN_COL_AWAITING_INPUT, PLAN_COL_FAILED, PLAN_COL_SKIPPED,
	PLAN_COL_UNSUCCESSFUL, PLAN_COL_PAUSED, PLAN_COL_HOLDING, PLAN_COL_OPEN_FAILURES, PLAN_COL_SENT_BACK,
	PLAN_COL_CROWDED, PLAN_COL_TENANT, PLAN_COL_PARENT_STEP_ID, PLAN_COL_STALL_AFTER, PLAN_COL_VERSION,
	PLAN_COL_WORKABLE, PLAN_COL_STARTED_AT, PLAN_COL_COMPLETED_AT, PLAN_COL_PENDING, PLAN_COL_IN_PROGRESS,
	PLAN_COL_COMPLETED, PLAN_COL_STARTED_STEPS, PLAN_COL_NEXT_ORDER, PLAN_COL_AUDIT_ENTRIES, PLAN_COL_UPDATED_AT,
	PLAN_COL_AUDIT_HEAD, PLAN_COL_READY_STEPS, PLAN_COL_SESSION_ID, PLAN_COL_MESSAGE, PLAN_COL_PAUSE_REASON, PLAN_COL_OUTPUTS,
	PLAN_COL_NAME, PLAN_COL_GOAL, PLAN_COL_WORKFLOW, PLAN_COL_IDEMPOTENCY_KEY, PLAN_COL_INPUTS,
	PLAN_COL_PARENT_NAMES,
	PLAN_COLUMNS
};

/* columns of stepwise.step, in the order of its definition */
enum
{
	STEP_COL_ID, STEP_COL_PLAN_ID, STEP_COL_ROOT_ID, STEP_COL_ORDER, STEP_COL_WAVE, STEP_COL_BLOCKERS,
	STEP_COL_BRANCHES, STEP_COL_DYNAMIC, STEP_COL_TENANT, STEP_COL_NAME, STEP_COL_READY_MARK, STEP_COL_DEPENDENTS, STEP_COL_HOLDS,
	STEP_COL_SENT_BACK,
	STEP_COL_RETRYABLE, STEP_COL_MAX_ATTEMPTS, STEP_COL_VERSION, STEP_COL_ATTEMPTS_BEFORE, STEP_COL_FIXED_VERSION,
	STEP_COL_STALL_AFTER, STEP_COL_ATTEMPT, STEP_COL_EXECUTION_ORDER, STEP_COL_STARTED_AT, STEP_COL_ACTIVE_AT,
	STEP_COL_LEASE_EXPIRES_AT, STEP_COL_STATUS, STEP_COL_OUTCOME, STEP_COL_COMPLETED_AT, STEP_COL_HOLDER,
	STEP_COL_WORKER, STEP_COL_CONFIDENCE, STEP_COL_RESULT, STEP_COL_RESULT_SUMMARY, STEP_COL_EXECUTION_REPORT,
	STEP_COL_OUTPUT_FORMATTING_NOTES, STEP_COL_MESSAGE, STEP_COL_PAUSE_REASON, STEP_COL_INPUTS, STEP_COL_ERROR,
	STEP_COL_APPROVED, STEP_COL_FEEDBACK, STEP_COL_PREVIOUS, STEP_COL_PREVIOUS_ERROR, STEP_COL_TYPE,
	STEP_COL_TOOL, STEP_COL_WORKFLOW, STEP_COL_BINDING, STEP_COL_PROMPT, STEP_COL_INSTRUCTIONS, STEP_COL_ARGUMENTS,
	STEP_COL_RESOURCES, STEP_COL_CONDITION, STEP_COL_CONDITION_PATH, STEP_COL_CONDITION_OPERANDS, STEP_COL_REVIEW,
	STEP_COLUMNS
};

/* columns of stepwise.dependency, in the order of its definition */
enum
{
	DEPENDENCY_COL_STEP_ID, DEPENDENCY_COL_DEPENDS_ON, DEPENDENCY_COL_PLAN_ID, DEPENDENCY_COL_REQUIRED, DEPENDENCY_COL_ENDED,
	DEPENDENCY_COL_TENANT,
	DEPENDENCY_COLUMNS
};

/* columns of stepwise.plan_detail, in the order of its definition */
enum
{
	DETAIL_COL_PLAN_ID, DETAIL_COL_FORKED_FROM, DETAIL_COL_TENANT, DETAIL_COL_OUTPUTS, DETAIL_COL_VARIABLES,
	DETAIL_COL_DESCRIPTION, DETAIL_COL_DESIGN_RATIONALE, DETAIL_COL_OUTPUT_FORMATTING_NOTES, DETAIL_COL_REQUEST_DIGEST,
	DETAIL_COL_FINAL_OUTPUT, DETAIL_COL_FINAL_MEDIA_TYPE,
	DETAIL_COLUMNS
};

#define READY_LIST_MAX	128		/* ready steps that a plan lists */

/* a row of stepwise.plan */
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
	bool		strict_order;	/* in a sequence, a step in progress holds back the next one for agents too */
	bool		leases;			/* root plans only: some claim in the tree has had a lease */
	bool		nests;			/* root plans only: some step of the tree has opened a nested plan */
	bool		stalls;			/* root plans only: some plan of the tree was marked stalled */
	bool		workable;		/* it may have a step to hand out; stored for nested plans only */
	int			depth;
	int			counts[STEP_STATUSES];
	int			unsuccessful;	/* number of steps that completed with failure */
	int			paused;			/* number of steps that have a pause reason */
	int			holding;		/* number of steps that hold back the steps after them in a sequence */
	int			open_failures;	/* number of failed steps that nobody has dealt with */
	int			sent_back;		/* root plans only: number of steps in the tree that wait after a review sent them back */
	int			crowded;		/* root plans only: number of plans in the tree in which several steps hold back others */
	int			started_steps;	/* number of steps that have started */
	int			next_order;		/* no step of a lower order is pending */
	int			ready_count;	/* with dependencies: number of ready steps that are listed */
	int			ready[READY_LIST_MAX];	/* their orders */
	bool		ready_marks;	/* some ready step may be marked instead */
	bool		relinked;		/* dependencies have changed since the plan was created */
	int			audit_entries;
	uint8		audit_head[32]; /* hash of the newest audit entry; zeros before the first */
	TimestampTz created_at;
	TimestampTz started_at;		/* or NO_TIME */
	TimestampTz completed_at;	/* or NO_TIME */
	TimestampTz updated_at;
	Interval   *stall_after;	/* or NULL */
	char	   *session_id;		/* or NULL */
	char	   *message;		/* or NULL */
	/* jsonb, may be toasted */
	struct varlena *pause_reason;	/* or NULL */
	struct varlena *outputs;	/* or NULL */
	struct varlena *inputs;
	struct varlena *parent_names;	/* names of the parent steps, from the root down; NULL: not nested */
	char	   *name;
	char	   *goal;
	char	   *workflow;		/* or NULL */
	int			version;		/* of the workflow; 0: none */
	ItemPointerData tid;		/* where the row was last seen */
	struct PlanRow *root;		/* of its tree, in a locked plan; itself if it is the root */
	/* not stored; the state of this call */
	bool		moved;			/* a step has moved since the plan was settled */
	bool		retried;		/* a failed step was tried again since the plan was settled */
	bool		ready_closed;	/* no more ready steps are listed, because orders have changed */
	bool		reads_below;	/* a step waits for a step of a nested plan */
	bool		rejected;		/* a review in it was rejected: the plans above fail too */
	bool		touched;		/* changed since it was last written */
	bool		stamped;		/* updated_at is the time of its last change */
	LogRow	   *log;			/* audit entries that are not written yet, or NULL */
	const char *ending;			/* the plan is being cancelled: the reason for its nested plans; otherwise NULL */
	List	   *settled;		/* of StepRow: ended or pending again; PlanDrain draws the consequences */
	int			drained;		/* index in settled of the step that PlanDrain is at */
	Jsonb	   *branch;			/* what the last branching condition did, for the answer */
	struct DetailRow *detail;	/* as PlanDetailOf has read it; NULL: not read, or changed since */
} PlanRow;

/* what a step in awaiting_input waits for */
typedef struct Waiting
{
	pg_uuid_t	checkpoint_id;
	bool		review;			/* true: a review; false: a prompt */
	const char *gate;			/* GATE_BEFORE or GATE_AFTER; NULL: a prompt, or a review that was requested */
	const char *prompt;			/* of a review: its summary */
	Jsonb	   *questions;		/* or NULL */
	Jsonb	   *submission;		/* what the step was submitted with, or NULL */
	char	   *shown;			/* digest of what is shown; NULL: ShownDigest */
	Jsonb	   *detail;			/* more for the audit entry of the move, or NULL */
} Waiting;

/* a row of stepwise.step */
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
	int			blockers;		/* number of dependencies that are not settled */
	bool		ready_mark;		/* it is ready, and not in the list of its plan */
	int			dependents;		/* number of steps that depend on it, unless the plan is relinked; -1: not counted */
	bool		holds;			/* it holds back the steps after it in a sequence */
	bool		sent_back;		/* a review sent it back, and nobody has claimed it since */
	bool		branches;		/* it has branching conditions */
	bool		dynamic;		/* prompt, instructions, arguments, resources or review contain references */
	int			retryable;		/* 0 or 1; -1: not set */
	int			max_attempts;	/* 0: no limit */
	int			attempts_before;	/* attempts before the last retry_step, which max_attempts does not count */
	TimestampTz started_at;		/* or NO_TIME */
	TimestampTz completed_at;	/* or NO_TIME */
	TimestampTz active_at;		/* or NO_TIME */
	TimestampTz lease_expires_at;	/* or NO_TIME */
	Interval   *stall_after;	/* or NULL */
	/* from here to error: NULL if the column is null; a varlena may be toasted */
	struct varlena *confidence;
	char	   *worker;			/* the worker that claimed it last */
	char	   *holder;			/* the worker, while its claim is valid */
	char	   *message;
	struct varlena *pause_reason;
	struct varlena *inputs;
	struct varlena *result;
	struct varlena *result_summary;
	struct varlena *execution_report;
	struct varlena *output_formatting_notes;
	/* set by the definition */
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
	struct varlena *error;		/* of a failed step: what its tool reported beside the message */
	struct varlena *review;		/* its gate, as defined, or NULL */
	char	   *approved;		/* digest of what its gate before has approved, or NULL */
	int			fixed_version;	/* of its workflow, since its gate opened; 0: not fixed */
	struct varlena *feedback;	/* what the last review asked to change, or NULL */
	struct varlena *previous;	/* result that the last review sent back, or NULL */
	char	   *previous_error; /* how the attempt before has failed or was lost, or NULL */
	ItemPointerData tid;		/* where the row was last seen */
	/* not stored; the state of this call */
	bool		was_paused;		/* the stored row has a pause reason */
	bool		was_open_failure;	/* the stored row is failed and has a pause reason */
	bool		was_holding;	/* the stored row holds back others */
	bool		was_sent_back;	/* the stored row was sent back */
	bool		sets_mark;		/* ready_mark has changed since the row was read */
	bool		send_back;		/* to be set before a move to in_progress: nobody claims the step */
	bool		given_up;		/* to be set before a move to failed: somebody decided that */
	bool		accepted;		/* to be set before a move to completed: the gate after it was passed */
	Waiting    *waiting;		/* to be set before a move to awaiting_input; NULL: a default is used */
} StepRow;

/* columns of a plan that are seldom used: a row of stepwise.plan_detail, which is not there if all have their defaults */
typedef struct DetailRow
{
	/* may be toasted */
	struct varlena *outputs;	/* templates */
	struct varlena *variables;	/* only those that are stored */
	/* these may be NULL */
	struct varlena *description;
	struct varlena *design_rationale;
	struct varlena *output_formatting_notes;
	struct varlena *request_digest;
	struct varlena *final_output;
	struct varlena *final_media_type;
} DetailRow;

/* what a new plan sets of them; any may be NULL */
typedef struct PlanDetail
{
	Jsonb	   *outputs;
	const char *output_formatting_notes;
	const char *request_digest;
	const char *description;
	const char *design_rationale;
} PlanDetail;

/* the notes of a step about how to show its result */
typedef struct FormattingNote
{
	int			order;
	char	   *name;
	struct varlena *notes;		/* text, may be toasted */
} FormattingNote;

/* how far a step is */
typedef struct StepState
{
	char	   *name;
	StepStatus	status;
} StepState;

/* a step that depends on another */
typedef struct Dependent
{
	pg_uuid_t	step_id;
	Need		need;
	ItemPointerData tid;		/* of the dependency */
} Dependent;

/* ---------- readylist.c: the ready steps of a plan with dependencies ---------- */

extern bool StepIsReady(const PlanRow *plan, const StepRow *step);
extern int	ReadyListNext(const PlanRow *plan, int from_order); /* 0: none */
extern bool ReadyListAdd(PlanRow *plan, int order); /* false: mark the step */
extern void ReadyListRemove(PlanRow *plan, int order);
extern struct varlena *ReadyListArray(const PlanRow *plan); /* NULL: empty */
extern void ReadyListRead(PlanRow *plan, struct varlena *stored);
extern void ReadyListClose(Call *call, PlanRow *plan);	/* before steps get other orders */

/* ---------- keep.c: rows of steps that a call keeps in memory ---------- */

typedef struct KeptStep
{
	pg_uuid_t	id;
	StepRow    *row;
	bool		changed;		/* it is to be written */
	bool		unblocked;		/* its blockers too */
	bool		again;			/* it is in the list of those that may be candidates again */
} KeptStep;

/* reads candidates of a plan from an order on, at most max; of StepRow */
typedef List *ReadAhead(Call *call, PlanRow *plan, int from, int max);

extern void KeptBegin(Call *call);
extern void KeptForget(Call *call);
extern KeptStep *KeptFind(const Call *call, const pg_uuid_t *step_id);	/* NULL: not kept */
extern KeptStep *KeptChange(Call *call, const StepRow *step);
extern StepRow *KeptRow(const KeptStep *entry);
extern List *KeptChanged(const Call *call); /* of KeptStep */
extern bool KeptMarks(const Call *call);
extern StepRow *KeptNext(Call *call, PlanRow *plan, int from, int first, ReadAhead *read);
extern void StepCounted(StepRow *step);

/* ---------- field.c: read the columns of a deformed row ---------- */

/* a deformed row */
typedef struct Fields
{
	const Datum *values;
	const bool *nulls;
} Fields;

extern pg_uuid_t FieldUuid(const Fields *f, int column);	/* zeros: null */
extern int	FieldInt(const Fields *f, int column);	/* 0: null */
extern bool FieldBool(const Fields *f, int column); /* false: null */
extern TimestampTz FieldTime(const Fields *f, int column);	/* NO_TIME: null */
extern char *FieldText(const Fields *f, int column);	/* NULL: null; likewise the next two */
extern struct varlena *FieldVarlena(const Fields *f, int column);
extern Interval *FieldInterval(const Fields *f, int column);
extern int	FieldEnum(const Fields *f, int column, const char *const *names, int count);
extern void FieldHash(const Fields *f, int column, uint8 hash[32]);
extern void CheckShape(TupleDesc desc, int columns, const char *table);
extern Fields SlotFields(TupleTableSlot *slot, int columns, const char *table);

/* ---------- place.c: where rows of plans and steps were last seen ---------- */

extern void PlaceRemember(const pg_uuid_t *id, ItemPointerData tid);
extern Key	PlaceKey(Call *call, const pg_uuid_t *id);
extern void RowWrite(Call *call, const char *table, const char *index, const pg_uuid_t *id, ItemPointer tid, Changes *changes);

/* ---------- plan_row.c: the rows of stepwise.plan, as they are in memory ---------- */

extern void *PlanMake(TupleTableSlot *slot);	/* a PlanRow */
extern TimestampTz CallNow(Call *call, const PlanRow *plan);	/* the time of its changes */
extern void PlanSetState(Changes *c, const PlanRow *plan);	/* the columns that change */
extern void PlanTouch(PlanRow *plan);
extern void PlansStamp(Call *call);
extern void PlanWrite(Call *call, PlanRow *plan);
extern void PlanInserted(PlanRow *plan, ItemPointerData place);

/* ---------- step_row.c: the rows of stepwise.step, as they are in memory ---------- */

extern StepRow *StepFromTuple(HeapTuple tuple, TupleDesc desc);
extern void *StepMake(TupleTableSlot *slot);	/* a StepRow */
extern StepRow *RowStep(const Rows *rows, uint64 row);	/* the query returns whole step rows */
extern StepRow *StepFetch(KeptQuery *query, const Params *params);	/* NULL: none */
extern StepRow *StepFetchById(Call *call, KeptQuery *query, const pg_uuid_t *id);
extern void StepWrite(Call *call, StepRow *step, bool unblocked);

/* ---------- save.c: write what a call has changed ---------- */

extern void RowsWrite(Call *call, Call *by, int what);
extern void RowsKeep(Call *call);	/* until the call ends, or runs a query */
extern void RowsLimit(Call *call);
extern int	RowsKept(const Call *call);

/* ---------- plan_read.c: read plans without locking them ---------- */

extern PlanRow *PlanLocked(const Call *call, const pg_uuid_t *plan_id); /* NULL: the call has not locked it */
pg_noreturn extern void PlanNotFound(const pg_uuid_t *plan_id);
extern PlanRow *PlanRead(Call *call, const pg_uuid_t *plan_id); /* no lock; NULL: none */
extern PlanRow *PlanReadByKey(Call *call, const char *idempotency_key); /* likewise */
extern PlanRow *PlanMustRead(Call *call, const pg_uuid_t *plan_id); /* no lock; SW001 */

/* ---------- plan_lock.c: lock trees of plans ---------- */

extern PlanRow *PlanKeep(Call *call, PlanRow *plan, PlanRow *root); /* root NULL: the plan is a root */
extern PlanRow *RootLock(Call *call, const pg_uuid_t *plan_id); /* NULL: nested, or none */
extern PlanRow *PlanInTree(Call *call, PlanRow *root, const pg_uuid_t *plan_id);	/* SW001 */
extern PlanRow *PlanLock(Call *call, const pg_uuid_t *plan_id); /* SW001 */
extern PlanRow *PlanLockIfFree(Call *call, const pg_uuid_t *plan_id, bool *found);	/* NULL: locked, or none */

/* ---------- detail.c: the columns of a plan that are seldom used ---------- */

extern bool PlanHasDetail(Call *call, const pg_uuid_t *plan_id);
extern DetailRow *PlanDetailRead(Call *call, const pg_uuid_t *plan_id);
extern const DetailRow *PlanDetailOf(Call *call, PlanRow *plan);	/* reads them once */
extern void PlanDetailForget(Call *call, const pg_uuid_t *plan_id);

/* ---------- step_read.c: read a step by its id, name, binding or order ---------- */

pg_noreturn extern void StepNotFound(const pg_uuid_t *step_id);
extern StepRow *StepRead(Call *call, const pg_uuid_t *step_id); /* NULL: none */
extern StepRow *StepMustRead(Call *call, const pg_uuid_t *step_id); /* SW002 */
extern StepRow *StepReadByName(Call *call, const pg_uuid_t *plan_id, const char *name);
extern StepRow *StepReadByBinding(Call *call, const pg_uuid_t *plan_id, const char *binding);
extern StepRow *StepReadByOrder(Call *call, const pg_uuid_t *plan_id, int order);
extern StepRow *StepReadDependent(Call *call, const pg_uuid_t *plan_id, const pg_uuid_t *step_id);	/* NULL: none */

/* ---------- step_list.c: list steps of a plan ---------- */

extern bool HasStatus(TupleTableSlot *slot, const void *status);	/* a TupleTest of stepwise.step */
extern List *StepsInStates(Call *call, const char *index, const pg_uuid_t *plan_id, int states, int max);	/* of StepRow */
extern List *StepsInProgress(Call *call, const PlanRow *plan);	/* of StepRow */
extern List *StepsBetween(Call *call, const char *index, const pg_uuid_t *plan_id, StepStatus state, int from, int below, int max);	/* of StepRow */
extern List *FormattingNotes(Call *call, const pg_uuid_t *plan_id); /* of FormattingNote */
extern List *StepStates(Call *call, const pg_uuid_t *plan_id);	/* of StepState */

/* ---------- step_next.c: find the first step of a plan that is pending, or ready ---------- */

extern StepRow *StepNextPending(Call *call, const PlanRow *plan, int from_order);
extern StepRow *StepNextReady(Call *call, PlanRow *plan, int from_order);

/* ---------- step_lock.c: lock the tree of a step ---------- */

extern void HomeRemember(const StepRow *step);
extern PlanRow *PlanLockIfStep(Call *call, const pg_uuid_t *step_id, StepRow **step);	/* NULL: no such step */
extern PlanRow *PlanLockOfStep(Call *call, const pg_uuid_t *step_id, StepRow **step);	/* SW002 */

/* ---------- step_save.c: write changed steps ---------- */

extern void StepSave(Call *call, StepRow *step);
extern void StepUnblock(Call *call, PlanRow *plan, const pg_uuid_t *step_id);
extern void StepInstruct(Call *call, StepRow *step, const char *instructions);

/* ---------- dependency.c: read rows of stepwise.dependency ---------- */

extern List *DependentsOf(Call *call, const pg_uuid_t *step_id);	/* of Dependent */
extern List *StepDependents(Call *call, const PlanRow *plan, const StepRow *step);	/* the same, sooner */

/* ---------- skill.c: read rows of stepwise.skill_execution ---------- */

extern Jsonb *SkillMetadata(Call *call, const pg_uuid_t *plan_id);	/* NULL: none */
extern bool SessionHasSkill(Call *call, const char *session);

/* ---------- tree.c: find plans and steps in a tree of plans ---------- */

extern bool NestedPlanId(Call *call, const pg_uuid_t *step_id, pg_uuid_t *plan_id); /* false: none */
extern PlanRow *PlanAround(Call *call, const PlanRow *plan, StepRow **parent_step); /* NULL: not nested */
extern void PutPath(JsonBuilder *b, const PlanRow *plan, const StepRow *step);
extern struct varlena *ParentNamesBelow(const PlanRow *plan, const StepRow *parent_step);
extern StepRow *StepAtPath(Call *call, const PlanRow *plan, const Jsonb *path); /* NULL: none */

/* ---------- shape.c: what plans and steps have in common: inputs, outputs, metadata ---------- */

extern const char *TreeStatusOfStep(const StepRow *step);
extern bool StepSucceeded(const StepRow *step);
extern bool StepFailed(const StepRow *step);
extern Jsonb *StepInputs(const StepRow *step);
extern void PutOutputs(JsonBuilder *b, const struct varlena *outputs);
extern Jsonb *StepMetadata(const StepRow *step, TimestampTz now);
extern char *ErrorText(const char *message, const Jsonb *error);	/* error: what is kept beside the message, or NULL */
extern Jsonb *PlanMetadata(Call *call, const PlanRow *plan, TimestampTz now);

/* ---------- audit.c: append audit entries to the chains of plans and tenants ---------- */

/* an entry that belongs to no plan */
typedef struct PlanlessEntry
{
	const char *event;
	const char *actor;
	const char *session;		/* or NULL */
	TimestampTz at;
	Jsonb	   *detail;
} PlanlessEntry;

/* the newest entry of the chain of a tenant; all zeros if there is none */
typedef struct ChainEnd
{
	int64		id;
	uint8		hash[32];
} ChainEnd;

extern void AuditAppend(Call *call, PlanRow *plan, const pg_uuid_t *step_id, const char *event, const Jsonb *detail);
extern void AuditMove(Call *call, PlanRow *plan, const pg_uuid_t *step_id, const char *event, const EntryMove *move,
					  const Jsonb *detail);
extern void AuditAddPlanless(Call *call, LogRow **row, const PlanlessEntry *planless, ChainEnd *end);
extern ChainEnd ChainEndRead(Call *call, bool latest);

/* ---------- chain.c: the audit chain of a tenant ---------- */

extern void ChainInit(void);
extern void AuditAppendPlanless(Call *call, const char *event, Jsonb *detail);	/* appended at commit */

/* ---------- checkpoint.c: rows of checkpoints ---------- */

/* a row of stepwise.checkpoint */
typedef struct ListedCheckpoint
{
	pg_uuid_t	id;
	pg_uuid_t	plan_id;
	pg_uuid_t	step_id;
	TimestampTz since;
	char	   *kind;
	char	   *gate;			/* or NULL */
	char	   *shown;			/* digest of what the reviewer was shown, or NULL */
	/* may be toasted */
	struct varlena *prompt;
	struct varlena *questions;
	struct varlena *submission; /* or NULL */
} ListedCheckpoint;

extern void CheckpointOpen(Call *call, PlanRow *plan, StepRow *step);
extern void CheckpointClose(Call *call, const StepRow *step);
extern void CheckpointsClose(Call *call, const PlanRow *plan);
extern List *CheckpointsByKey(const char *index, Key *key, int max);	/* of ListedCheckpoint; likewise the next two */
extern List *CheckpointsInTree(Call *call, const pg_uuid_t *root_id);	/* the oldest first */
extern List *OpenReviews(Call *call, const pg_uuid_t *root_id); /* likewise */
extern ListedCheckpoint *CheckpointById(Call *call, const pg_uuid_t *id);	/* NULL: none; likewise the next */
extern ListedCheckpoint *CheckpointOfStep(Call *call, const pg_uuid_t *step_id);
extern bool IsReview(const ListedCheckpoint *checkpoint);
extern char *ShownDigest(const StepRow *step, const Jsonb *submission);
extern Jsonb *CheckpointSubmission(Call *call, const StepRow *step);	/* NULL: none */

/* ---------- resolve.c: find the values of references, and fill templates with them ---------- */

typedef enum ResolveProblem
{
	RESOLVE_FINE,
	RESOLVE_MISSING,			/* there is no such value */
	RESOLVE_NOT_READY,			/* the producing step has not ended */
	RESOLVE_DEPENDENCY			/* the producing step failed, was skipped or will not run */
} ResolveProblem;

typedef struct ResolveFault
{
	ResolveProblem problem;
	char	   *param;			/* the argument or text that cannot be filled */
	char	   *message;
	const char *asked_for;		/* binding or step whose value is missing, or NULL */
	const char *producing_step; /* name of the step that produces the value, or NULL */
	StepRow    *producer;		/* that step, or NULL; its id is zeros if its plan was never opened */
} ResolveFault;

extern Jsonb *ResolveJson(Call *call, PlanRow *plan, const Jsonb *template, ResolveFault *fault);	/* NULL: fault */
extern char *ResolveText(Call *call, PlanRow *plan, const char *template, const char *param, ResolveFault *fault);
extern char *ResolveForReview(Call *call, PlanRow *plan, StepRow *completed, const char *template);
extern ConditionResult StepConditionDecide(Call *call, PlanRow *plan, const StepRow *step, char **why,
										   ResolveFault *open); /* open: a step that has not ended */
extern ConditionResult BranchConditionDecide(Call *call, PlanRow *plan, StepRow *completed, Datum path,
											 struct varlena *operands, char **why);
extern struct varlena *PlanOutputs(Call *call, PlanRow *plan);
extern Jsonb *ResolveSketch(Call *call, PlanRow *plan, const Jsonb *template);	/* <…> for missing values */

/* ---------- fill.c: fill the references in a step's arguments, resources and texts ---------- */

extern bool FillArguments(Call *call, PlanRow *plan, StepRow *step, ResolveFault *fault);
extern Jsonb *FillResources(Call *call, PlanRow *plan, const StepRow *step, ResolveFault *fault);
extern char *FillStepText(Call *call, PlanRow *plan, const StepRow *step, struct varlena *template, const char *param,
						  ResolveFault *fault);
extern bool StepFillInputs(Call *call, PlanRow *plan, StepRow *step);	/* true: inputs changed */
extern void StepFillFault(Call *call, PlanRow *plan, StepRow *step, ResolveFault *fault);
extern char *ClaimedInstructions(Call *call, PlanRow *plan, const StepRow *step);
extern Jsonb *ClaimedResources(Call *call, PlanRow *plan, const StepRow *step);

/* ---------- mention.c: find where the steps of a plan name each other ---------- */

typedef struct Mention
{
	int			order;			/* of the step that contains it; 0: the outputs of the plan */
	const char *place;			/* key of the step: "arguments", "condition", … */
	bool		branch;			/* in a branch of the step, which may name the step itself */
	bool		binding;		/* it names a binding; otherwise a step */
	char	   *name;			/* of the step or the binding */
	char	   *source;			/* as written */
} Mention;

extern List *StepMentions(const StepRow *step); /* of Mention */
extern List *PlanMentions(Call *call, PlanRow *plan);	/* of Mention */

/* ---------- pause.c: pause reasons: why a plan cannot go on ---------- */

typedef enum ReasonType
{
	REASON_UNRESOLVABLE_PARAMS,
	REASON_UNRESOLVED_DEPENDENCY,
	REASON_CONDITION_ERROR,
	REASON_CLIENT_TOOL,
	REASON_SCHEMA_MISMATCH,
	REASON_TOOL_ERROR,
	REASON_RESOURCE_ERROR,
	REASON_INPUT_REQUIRED,
	REASON_REVIEW_REQUESTED,
	REASON_CHANGES_REQUESTED
} ReasonType;
#define REASON_TYPES	10

extern Jsonb *ToolErrorReason(const StepRow *step, const char *error, bool retryable);
extern Jsonb *WaitingReason(const StepRow *step);
extern Jsonb *ChangesReason(const StepRow *step);
extern Jsonb *UnresolvedReason(const StepRow *step, const ResolveFault *fault);
extern Jsonb *ConditionReason(const StepRow *step, const char *error);
extern Jsonb *ClientToolReason(const StepRow *step, const Jsonb *arguments, const char *instructions);
extern Jsonb *SchemaReason(const StepRow *step, const SchemaFault *fault);
extern Jsonb *ResourceErrorReason(const StepRow *step, const char *uri, const char *error, bool retryable,
								  const char *suggested);
extern ReasonType ReasonTypeOf(const Jsonb *reason);
extern StepRow *StepOfReason(Call *call, const PlanRow *plan);	/* NULL: none */
extern bool ReasonOfRun(const Jsonb *reason);	/* it stops a run, not an agent */
extern Jsonb *ReasonWithPath(PlanRow *plan, Jsonb *reason);

/* ---------- ready.c: what a step of each kind needs before it can be done ---------- */

/* the next step, and what its worker needs to do it */
typedef struct Next
{
	bool		run;			/* set by the caller: a run asks, not an agent */
	bool		run_tools;		/* set by the caller: an agent asks that stops where a run stops, or the run before it */
	bool		moves;			/* set by the caller of NextPeek: only a step that would move counts */
	PlanRow    *plan;
	StepRow    *step;
	char	   *instructions;	/* filled, or NULL */
	Jsonb	   *resources;		/* URIs, filled, or NULL */
	Tool	   *tool;			/* NULL: the step has none, or it was never registered */
} Next;

/* what is due with a pending step */
typedef enum Due
{
	DUE_READY,					/* it can be handed out, or run */
	DUE_GIVE_UP,				/* it has used up its attempts */
	DUE_SKIP,					/* its condition is false */
	DUE_ASK,					/* it is a prompt */
	DUE_NEST,					/* it runs a workflow */
	DUE_REVIEW,					/* the gate before it has to be passed first */
	DUE_WAITS,					/* it reads a step that has not ended */
	DUE_HELD,					/* a step before it holds it back */
	DUE_BLOCKED					/* it gets a pause reason */
} Due;

/* more about what is due; members that do not apply are NULL */
typedef struct Judgement
{
	char	   *prompt;			/* with DUE_ASK: the filled text */
	Waiting    *waiting;		/* with DUE_REVIEW: the review to open */
	StepRow    *awaited;		/* with DUE_WAITS or DUE_HELD: the step that has to end first, or NULL */
	Jsonb	   *reason;			/* with DUE_BLOCKED: the pause reason */
	char	   *message;		/* with DUE_BLOCKED: the message of the step, or NULL */
} Judgement;

extern Due	JudgeFault(const StepRow *step, const ResolveFault *fault, Judgement *j);
extern Due	ReadyInstructions(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j);
extern Due	ReadyResources(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j);
extern Due	ReadyTool(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j);
extern Due	ReadyPrompt(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j);
extern Due	ReadyNested(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j);

/* ---------- kind.c: kinds of step ---------- */

#define GATE_BEFORE	"before"
#define GATE_AFTER	"after"

typedef enum StepKind
{
	KIND_INSTRUCTIONS,
	KIND_RESOURCES,
	KIND_TOOL,
	KIND_PROMPT,
	KIND_WORKFLOW
} StepKind;

/* what a kind of step allows */
typedef struct StepKindRule
{
	bool		by_worker;		/* a worker gets it and submits it; otherwise the engine does it */
	bool		nests;			/* a nested plan does its work */
	Due			(*ready) (Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j);
	const char *does;			/* what the step does, in words; NULL if a worker does it */
	const char *refusal_detail; /* of the error for a worker, or NULL */
	const char *hint[STEP_STATUSES];	/* of a refused move or worker, by state; NULL: that of state.c */
} StepKindRule;

extern StepKind StepKindOf(const StepRow *step);
extern const StepKindRule *StepRuleOf(const StepRow *step);
extern bool StepNests(const StepRow *step);
extern bool StepHasGate(const StepRow *step, const char *when);
extern char *StepDoes(const StepRow *step);
extern bool StepIsRetryable(Call *call, const StepRow *step);

/* ---------- below.c: find gates below a step that runs a workflow ---------- */

extern bool GateIsBelow(Call *call, const StepRow *step);
extern bool GateBelowIsMissed(Call *call, const StepRow *step);

/* ---------- rights.c: who may decide for a person ---------- */

extern bool CallerMayWrite(Call *call);
extern bool CallerMayDecide(Call *call);
extern const char *PartOfCaller(Call *call, const PlanRow *plan, const StepRow *step);	/* NULL: none that counts */
extern bool CallerMayReview(Call *call, const PlanRow *plan, const StepRow *step);

/* ---------- behind.c: find the gates that a change would get past, and say who may ---------- */

extern StepRow *GateBehind(Call *call, const PlanRow *plan, const StepRow *step);	/* NULL: none; likewise the next
																					 * five */
extern const StepRow *GateOfStep(Call *call, const PlanRow *plan, const StepRow *step);
extern const StepRow *GateAround(Call *call, const PlanRow *plan);
extern StepRow *GateOfAdded(Call *call, const PlanRow *plan, const pg_uuid_t *ids, int count, int order);
extern StepRow *GateOfPlan(Call *call, const PlanRow *plan);

/* a wait for a person: its checkpoint, the step that waits, and the plan of that */
typedef struct PersonWait
{
	const ListedCheckpoint *checkpoint;
	PlanRow    *plan;
	StepRow    *step;
} PersonWait;

extern bool WaitIn(Call *call, const StepRow *step, PersonWait *wait);	/* false: nobody is asked */
extern StepRow *WaitOfOthers(Call *call, const StepRow *step, PlanRow **around);	/* NULL: none */
extern bool MaySkip(Call *call, const StepRow *step);
extern bool MayChange(Call *call, const PlanRow *plan, const StepRow *step);
extern bool MayEnd(Call *call, const StepRow *step);
extern bool MayAppend(Call *call, const PlanRow *plan);
extern bool MayCancel(Call *call, const PlanRow *plan);

/* ---------- hint.c: the hints of errors: name calls that can be made, with their ids ---------- */

extern char *HintWithId(const char *hint, const char *argument, const pg_uuid_t *id);
extern char *StepHint(Call *call, const StepRow *step, const char *hint);	/* fills step_id, plan_id and root_id */
extern char *PlanHint(Call *call, const PlanRow *plan, const char *hint);	/* fills plan_id and root_id */

/* ---------- state.c: move a step, move a plan ---------- */

#define CANCELLED_WITH_PLAN	"plan cancelled: "	/* beginning of the message of steps skipped by PlanCancel */

extern void StepMove(Call *call, PlanRow *plan, StepRow *step, StepStatus to, Jsonb *detail);
extern void StepStamp(Call *call, StepRow *step, StepStatus to, TimestampTz now);
extern bool StepStampInPlan(Call *call, PlanRow *plan, StepRow *step);
extern bool PlanMayHaveWork(const PlanRow *plan);
extern void StepMoved(Call *call, PlanRow *plan, StepRow *step, StepStatus from, Jsonb *detail);
extern void StepAudit(Call *call, PlanRow *plan, const StepRow *step, StepStatus from, const Jsonb *detail);
extern void PlanAudit(Call *call, PlanRow *plan, PlanStatus from, PlanStatus to, const Jsonb *detail);
extern void StepPause(Call *call, PlanRow *plan, StepRow *step, Jsonb *reason); /* NULL: clear it */
extern void StepMarkHolds(Call *call, PlanRow *plan, StepRow *step);
extern char *StateHint(Call *call, const StepRow *step);
pg_noreturn extern void StepTransitionRefuse(Call *call, const StepRow *step, StepStatus to, const char *rule); /* SW003 */
extern void StepGiveUp(Call *call, PlanRow *plan, StepRow *step);
extern void StepTake(Call *call, PlanRow *plan, StepRow *step, Jsonb *detail);
extern void StepWasAs(StepRow *step, const StepRow *before);
extern void PlanMove(Call *call, PlanRow *plan, PlanStatus to, Jsonb *detail);
extern void PlanCancel(Call *call, PlanRow *plan, const char *reason);
extern void PlanReject(Call *call, PlanRow *plan, const char *message);
extern Jsonb *NestedDetail(const PlanRow *nested);
extern void PlanCheckOpen(Call *call, const PlanRow *plan); /* SW003 if the plan has ended */
extern void PlanCheckModifiable(Call *call, const PlanRow *plan);	/* SW004 unless planning or executing */

/* ---------- dependents.c: what the end of a step means for its dependents ---------- */

/* what the state of a parent means for a step that depends on it */
typedef enum DependentVerdict
{
	DEPENDENT_WAITS,
	DEPENDENT_RUNS,				/* unless it waits for another parent */
	DEPENDENT_SKIPPED
} DependentVerdict;

extern DependentVerdict DependentVerdictOf(const PlanRow *plan, StepStatus parent, Outcome outcome, Need need);
extern void DependentsLook(Call *call, PlanRow *plan, const StepRow *step);
extern void ParentsLook(Call *call, PlanRow *plan, StepRow *step);

/* ---------- ask.c: let a step wait for a person ---------- */

extern Waiting *ReviewMake(const Call *call, const char *summary, Jsonb *questions);
extern void StepRequestReview(Call *call, PlanRow *plan, StepRow *step, const char *summary, Jsonb *questions,
							  Jsonb *submission, Jsonb *detail);
extern void StepPrompt(Call *call, PlanRow *plan, StepRow *step, const char *prompt);
extern void StepAwaitReview(Call *call, PlanRow *plan, StepRow *step, Waiting *waiting);
extern void CheckpointRenew(Call *call, PlanRow *plan, StepRow *step, char *shown);

/* ---------- gate.c: the reviews that a definition puts before and after a step ---------- */

extern Due	GateJudge(Call *call, PlanRow *plan, StepRow *step, Next *next, Due due, Judgement *j);
extern bool GateIsPassed(Call *call, PlanRow *plan, StepRow *step);
extern char *GateDigest(Call *call, PlanRow *plan, StepRow *step);	/* NULL: the step cannot be filled */
extern void GateOpen(Call *call, PlanRow *plan, StepRow *step, Waiting *waiting);
extern void GateReset(Call *call, PlanRow *plan, StepRow *step);
extern bool GateIsOpen(Call *call, const StepRow *step);
extern Jsonb *SubmissionOf(const StepRow *step);
extern void SubmissionApply(StepRow *step, const Jsonb *submission);
extern void StepSubmit(Call *call, PlanRow *plan, StepRow *step, Jsonb *detail);
extern bool ReviewLookAgain(Call *call, PlanRow *plan, StepRow *step, const ListedCheckpoint *review);

/* ---------- insert.c: new rows of plans, steps and dependencies ---------- */

/* what a new step has beside its definition */
typedef struct NewStep
{
	const pg_uuid_t *id;
	int			order;
	bool		branches;		/* it has branching conditions */
	int			blockers;		/* number of dependencies that are not settled */
	int			dependents;		/* number of steps that depend on it; -1: not counted */
} NewStep;

extern void PlanInsert(Call *call, PlanRow *plan, const char *idempotency_key); /* the key may be NULL */
extern void DetailInsert(Call *call, const PlanRow *plan, const PlanDetail *detail);
extern void DetailUpdate(Call *call, const pg_uuid_t *plan_id, Changes *changes);
extern Batch *StepsBegin(Call *call, const PlanRow *plan);	/* ended by BatchEnd; likewise LinksBegin */
extern void StepsAdd(Batch *batch, const PlanRow *plan, const StepDefinition *step, const NewStep *place);
extern Batch *LinksBegin(Call *call, const PlanRow *plan);
extern void LinksAdd(Batch *batch, const pg_uuid_t *step_id, const pg_uuid_t *parent_id, Need need);
extern void PutInterval(JsonBuilder *b, const char *key, Interval *interval);
extern void PutCondition(JsonBuilder *b, const Condition *condition, const char *source_key, const char *path_key,
						 const char *operands_key);

/* ---------- create.c: rows of new plans ---------- */

/* what a new plan has beside its definition */
typedef struct PlanOrigin
{
	const char *workflow;		/* NULL: the definition is not stored */
	int			version;		/* of the workflow */
	const char *goal;			/* or NULL */
	Jsonb	   *inputs;			/* or NULL */
	const char *design_rationale;	/* or NULL */
	const char *idempotency_key;	/* or NULL */
	const char *request_digest; /* or NULL */
	PlanRow    *parent;			/* of a nested plan: the plan of its parent step; else NULL */
	StepRow    *parent_step;	/* of a nested plan; else NULL */
} PlanOrigin;

extern PlanRow *PlanCreate(Call *call, const Definition *definition, const PlanOrigin *origin,
						   const pg_uuid_t **step_ids); /* may be NULL */
extern Definition *WorkflowOpen(Call *call, PlanOrigin *origin, Faults *faults);
extern void CheckInputsObject(Faults *faults, const Jsonb *inputs);

/* ---------- add.c: add steps to a plan that exists ---------- */

extern pg_uuid_t *PlanAddSteps(Call *call, PlanRow *plan, const Jsonb *steps, int after, Faults *faults, int *count);
extern StepRow *PlanAddCheckpointStep(Call *call, PlanRow *plan, const StepRow *after);
extern void ShiftSteps(Call *call, PlanRow *plan, int after, int by);
extern const Jsonb *PlanInputNames(Call *call, const PlanRow *plan);
extern List *PlanCallers(Call *call, PlanRow *plan);	/* of char *, names of workflows */

/* ---------- branch.c: branching conditions ---------- */

extern void BranchesAfter(Call *call, PlanRow *plan, StepRow *step);
extern Jsonb *BranchTaken(Call *call, const PlanRow *plan, const StepRow *step);	/* NULL: nothing to say */

/* ---------- judge.c: decide what becomes of a pending step ---------- */

extern Due	StepIsDue(Call *call, PlanRow *plan, StepRow *step, Next *next, Judgement *j);
extern bool AttemptsUsedUp(const StepRow *step);
extern StepRow *FirstHolding(Call *call, const PlanRow *plan);	/* NULL: no step of the plan holds others back */
extern StepRow *HeldAbove(Call *call, const PlanRow *plan, const Next *next);	/* NULL: nothing holds it back */

/* ---------- settle.c: the consequences of moves ---------- */

extern void PlanSettle(Call *call, PlanRow *plan);
extern void PlanDrain(Call *call, PlanRow *plan);
extern void StepReconsider(Call *call, PlanRow *plan, StepRow *step);
extern void StepBlock(Call *call, PlanRow *plan, StepRow *step, const Judgement *j);

/* ---------- nested.c: open the plan that is nested in a step ---------- */

extern bool NestedOpen(Call *call, PlanRow *plan, StepRow *step);	/* false: the step has failed */

/* ---------- claim.c: find and release the claims of workers ---------- */

extern void ReleaseExpired(Call *call, PlanRow *root);
extern void StepRelease(Call *call, PlanRow *plan, StepRow *step, const char *why);
extern void StepReclaim(Call *call, PlanRow *plan, StepRow *step, const char *why); /* likewise, of a worker that is gone */
extern void StepClaim(Call *call, Next *next, Jsonb *detail);
extern Rows StepsSentBack(Call *call, const PlanRow *asked);	/* whole step rows */
extern bool ClaimIsStalled(const PlanRow *plan, const StepRow *step);
extern StepRow *ClaimOfWorker(Call *call, const PlanRow *root, const char *worker);

/* ---------- next.c: find the step that can be done next ---------- */

extern bool NextFind(Call *call, PlanRow *asked, Next *next);
extern bool NextPeek(Call *call, PlanRow *asked, Next *next);	/* false: next->step is the awaited step, or NULL */

/* ---------- finish.c: end a step in progress ---------- */

extern Outcome ResultOutcome(const Jsonb *result);	/* failure if it has isError */
extern void StepComplete(Call *call, PlanRow *plan, StepRow *step, Jsonb *result, Outcome outcome);
extern void StepFail(Call *call, PlanRow *plan, StepRow *step, const ToolFault *fault, Jsonb *reason);

#endif							/* STEPWISE_ENGINE_H */
