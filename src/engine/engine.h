/*
 * engine.h
 *	  the rows of plans and steps, and all that moves them
 */
#ifndef STEPWISE_ENGINE_H
#define STEPWISE_ENGINE_H

#include "tool/tool.h"

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
extern StepRow *RowStep(const Rows *rows, uint64 row);	/* of whole step rows */

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
extern bool StepIsRetryable(Call *call, const StepRow *step);

#endif							/* STEPWISE_ENGINE_H */
