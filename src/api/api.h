/*
 * api.h
 *	  what the SQL-callable functions share
 */
#ifndef STEPWISE_API_H
#define STEPWISE_API_H

#include "engine/engine.h"

#include "tsearch/ts_type.h"

/* ---------- loop.c: the agent's loop ---------- */

extern void PlanNoteSession(Call *call, PlanRow *plan); /* audits session_resumed */

/* ---------- variables.c: the variables of a plan ---------- */

extern void VariablesStore(Call *call, const pg_uuid_t *plan_id, const Jsonb *variables);	/* SW007 if too large */

/* ---------- about.c: say which plan an answer is about ---------- */

extern void PutPlanAnswer(JsonBuilder *b, const PlanRow *plan);

/* ---------- bound.c: fit answers into a number of bytes ---------- */

#define LIST_MAX		50		/* entries of a list, unless the call asks for more */
#define CONTEXT_BYTES	32000	/* of an answer of the context functions, unless the call asks for more */
#define ANSWER_BYTES	36000	/* of other answers */
#define READY_BYTES		64000	/* of a step that is handed out */
#define SHOWN_TEXT		4000	/* of one text in an answer */
#define SHOWN_VALUE		16000	/* of one value in an answer */

/* builds an answer with lists of so many entries, and texts of so many bytes */
typedef Jsonb *(*BoundBuilder) (void *arg, int entries, int text);

typedef struct FillTarget FillTarget;

/* an answer in which cut members are replaced by whole ones */
typedef struct Filling
{
	Jsonb	   *answer;
	int64		left;			/* bytes that may be added */
	int64		to_read;		/* bytes that may still be read to see whether they fit */
	List	   *targets;		/* of FillTarget */
} Filling;

typedef enum FieldKind
{
	FIELD_TEXT,
	FIELD_JSON
} FieldKind;

extern int	CheckMax(int max);	/* SW005; likewise the next */
extern int	ArgumentMax(FunctionCallInfo fcinfo, int n, int otherwise); /* a number of rows; SW005 */
extern int	ArgumentMaxBytes(FunctionCallInfo fcinfo, int n);	/* SW005 */
extern int	ListBytes(int entries);
extern Jsonb *BoundBuild(BoundBuilder build, void *arg, int max_bytes, int entries);
extern Filling FillBegin(Jsonb *answer, int max_bytes);
extern FillTarget *FillAt(Filling *filling, const char *container, int index);	/* NULL: it is not there */
extern void FillMember(Filling *filling, FillTarget *target, const char *key, const struct varlena *field, FieldKind kind,
					   int parts);
extern Jsonb *FillEnd(Filling *filling);
extern Jsonb *OutputsShown(const PlanRow *plan);	/* NULL: it has none */
extern char *WorkerShown(const StepRow *step);	/* NULL: it has none */
extern Jsonb *ReadyBound(Jsonb *answer, const StepRow *step);

/* ---------- fill_members.c: fill in what was cut ---------- */

/* a member that can be filled in */
typedef struct Member
{
	const char *key;
	FieldKind	kind;
	const struct varlena *field;	/* or NULL */
} Member;

extern int	EntriesIn(int max_bytes);	/* of a full list */
extern struct varlena *TextField(const char *text);	/* NULL for NULL */
extern void FillMembers(Filling *filling, FillTarget *target, const Member *members, int count, int parts);
extern void FillStep(Filling *filling, FillTarget *target, const StepRow *step);
extern void FillSteps(Filling *filling, const char *list, const List *rows, bool latest);

/* ---------- listed.c: the steps, checkpoints and artifacts of a plan, as answers list them ---------- */

/* columns of stepwise.artifact that are read here; the first is 0 */
enum
{
	ARTIFACT_COL_ID, ARTIFACT_COL_PLAN_ID, ARTIFACT_COL_CREATED_AT, ARTIFACT_COL_VERSION, ARTIFACT_COL_STEP_ID,
	ARTIFACT_COL_TENANT, ARTIFACT_COL_NAME, ARTIFACT_COL_MEDIA_TYPE, ARTIFACT_COL_CONTENT,
	ARTIFACT_COL_DATA, ARTIFACT_COL_SOURCE_URL, ARTIFACT_COL_SEARCH
};

/* a step of a plan in short */
typedef struct ListedStep
{
	pg_uuid_t	id;
	int			order;
	StepStatus	status;
	TimestampTz completed_at;	/* or NO_TIME */
	StepRow    *row;			/* the whole row; NULL: not read yet (ListedRow) */
	List	   *parents;		/* of Parent; what it depends on, if the row was read */
} ListedStep;

/* a step that another one depends on */
typedef struct Parent
{
	pg_uuid_t	id;
	bool		required;
	bool		ended;
	StepRow    *row;
	const char *via;			/* what makes it a parent; NULL: dependsOn */
	int			rank;			/* lower ones come first */
} Parent;

/* a row of stepwise.artifact, without its content */
typedef struct ListedArtifact
{
	pg_uuid_t	id;
	pg_uuid_t	plan_id;
	pg_uuid_t	step_id;
	bool		has_step;
	int			version;
	int64		size;			/* of the content, in bytes */
	struct varlena *name;		/* text, may be toasted */
	struct varlena *media_type; /* likewise, or NULL */
} ListedArtifact;

/* a whole row of stepwise.artifact; texts and data may be toasted */
typedef struct WholeArtifact
{
	pg_uuid_t	id;
	pg_uuid_t	plan_id;
	pg_uuid_t	step_id;
	bool		has_step;
	int			version;
	TimestampTz created_at;
	struct varlena *name;
	struct varlena *content;
	/* or NULL */
	struct varlena *media_type;
	struct varlena *data;
	struct varlena *source_url;
	struct varlena *search;		/* its words; never NULL */
} WholeArtifact;

/* "cut" is the number of bytes of a text or value that are not cut; at 0 it is left out */
extern void PutCutText(JsonBuilder *b, const char *key, const char *text, int cut, const char *reader);
extern void PutCutField(JsonBuilder *b, const char *key, const struct varlena *field, int cut, const char *reader);
extern void PutCutJson(JsonBuilder *b, const char *key, const struct varlena *field, int cut, const ReadingFunction *reader);
extern int	BesideSteps(int entries, int cut);
extern int	PlanPercent(const PlanRow *plan);
extern List *ListedSteps(Call *call, const pg_uuid_t *plan_id); /* of ListedStep */
extern StepRow *ListedRow(Call *call, ListedStep *step);
extern int	StepsByOrder(const ListCell *a, const ListCell *b); /* of ListedStep; likewise the next two */
extern int	StepsByEnd(const ListCell *a, const ListCell *b);
extern int	StepsByBegin(const ListCell *a, const ListCell *b);
extern List *PickSteps(const List *steps, int states, list_sort_comparator order, int max);	/* of ListedStep */
extern int	RowsByOrder(const ListCell *a, const ListCell *b);	/* of StepRow */
extern void PutListedStep(JsonBuilder *b, const StepRow *step, int cut);
extern void PutNestedPlan(JsonBuilder *b, Call *call, const StepRow *step);
extern List *ParentsOf(Call *call, const pg_uuid_t *step_id);	/* of Parent */
extern void PutNeed(JsonBuilder *b, const Parent *parent);
extern void PutDependsOn(JsonBuilder *b, const List *parents, int cut);
extern void PutCheckpoint(JsonBuilder *b, const ListedCheckpoint *checkpoint, int cut);
extern int	ArtifactsById(const ListCell *a, const ListCell *b);	/* of ListedArtifact */
extern List *ArtifactsOfPlan(Call *call, const pg_uuid_t *plan_id); /* of ListedArtifact */
extern WholeArtifact *ArtifactById(Call *call, const pg_uuid_t *id);	/* NULL: none */
extern WholeArtifact *ArtifactVersion(Call *call, const pg_uuid_t *plan_id, const char *name, const int *version);	/* NULL: none */
extern void PutArtifacts(JsonBuilder *b, const List *artifacts, int entries, int cut);

/* ---------- find.c: lists and searches ---------- */

typedef enum SearchWay
{
	ANY_WORD,					/* any word is enough */
	ALL_WORDS					/* all words; with phrases, "or" and "-" */
} SearchWay;

extern TSQuery SearchWords(Call *call, const char *query, SearchWay way);	/* SW005, SW007 */
extern Oid	SearchConfig(void);
extern List *ItemAdd(List *items, const pg_uuid_t *id, Jsonb *json);
extern Jsonb *FoundItems(const char *query, const char *key, const List *items, int64 count, int max);
extern void PutRank(JsonBuilder *b, float4 rank);
extern Jsonb *PlanBrief(const PlanRow *plan);

/* ---------- search.c: search artifacts and final outputs ---------- */

extern bool HasWord(TSVector vector, TSQuery query);
extern List *PlansByOutput(Call *call, TSQuery query, const pg_uuid_t *plan_id, int max);	/* ids of plans */

/* ---------- move.c: the calls that end a wait, and the sentences that explain it ---------- */

typedef enum MoveKind
{
	MOVE_CALL,					/* a function of the engine */
	MOVE_TOOL,					/* a tool of the client */
	MOVE_WORDS					/* a sentence that says what to do */
} MoveKind;

typedef struct Move
{
	MoveKind	kind;
	const char *name;			/* of the function or tool; for MOVE_WORDS, the sentence */
	Jsonb	   *arguments;		/* of the function or tool; NULL for MOVE_WORDS */
	const char *note;			/* instructions for the call, or NULL */
} Move;

/* what is known of the claims in a plan and below it */
typedef struct Claims
{
	int			count;
	TimestampTz end;			/* when the first one ends by itself; NO_TIME if none does */
	List	   *ids;			/* of pg_uuid_t: a few, those that are silent for longest */
	StepRow    *lost;			/* the first of those that are stalled or expired; NULL if there is none */
	StepRow    *unheld;			/* the first of those without worker and lease; NULL if there is none */
} Claims;

/* what a plan waits for */
typedef struct Wait
{
	Call	   *call;
	PlanRow    *asked;			/* the plan that the caller asked about */
	PlanRow    *plan;			/* of the step that blocks, is claimed or is next; or NULL */
	StepRow    *step;			/* the step that blocks or is claimed, or NULL */
	const Jsonb *reason;		/* the pause reason of that step, or NULL */
	const char *on;				/* person, client, agent or nobody */
	TimestampTz since;			/* when the wait began */
	char	   *message;		/* a sentence */
	List	   *moves;			/* of Move: what lets the plan go on, one after the other */
	List	   *others;			/* of Move: calls of which each lets it go on instead */
	const Claims *claims;		/* those of the plan; NULL if nobody looked for them */
	bool		barred;			/* the caller may not make a call that lets it go on */
} Wait;

extern Move *AddMove(Wait *w, MoveKind kind, const char *name, Jsonb *arguments);
extern void AddOther(Wait *w, const char *name, Jsonb *arguments);
extern const Move *NextMove(const Wait *w); /* the next call; NULL: none */
extern void LeaveToOthers(Wait *w);
extern Jsonb *PlanArgument(const Wait *w);
extern char *SketchedText(const Wait *w, PlanRow *plan, const struct varlena *written);
extern void MoveSubmit(Wait *w);
extern void MoveLeaveOut(Wait *w);
extern void ExplainReason(Wait *w);

/* ---------- claims.c: the claims for which a plan waits ---------- */

extern TimestampTz ActiveSince(const StepRow *step);
extern int	ClaimsBySilence(const ListCell *a, const ListCell *b);	/* of StepRow */
extern List *ClaimsInPlan(Call *call, const PlanRow *plan); /* of StepRow, the most silent first */
extern bool IsSilent(const PlanRow *plan, const StepRow *step, Interval *stall_after);	/* NULL: by its own threshold */
extern Claims *ClaimsOf(Call *call, const PlanRow *asked);
extern StepRow *OldestClaim(Call *call, const Claims *claims);	/* NULL: none */
extern void PutRetryAfter(JsonBuilder *b, const Claims *claims);	/* "retryAfterMs", if a claim ends by itself */
extern void PutWaitingFor(JsonBuilder *b, Call *call, const Claims *claims);

/* ---------- wait.c: what a plan waits for ---------- */

extern Wait WaitOf(Call *call, PlanRow *asked);
extern Wait WaitOfAgent(Call *call, PlanRow *asked);	/* with a call for a plan that has ended too */

/* ---------- why.c: say what a plan waits for, and what to call next ---------- */

extern Jsonb *NextCall(Call *call, PlanRow *asked); /* {"nextCall": ...} */
extern Jsonb *NextCallAfter(Call *call, const PlanRow *plan);	/* likewise, of the root; the call may not write after it */
extern Jsonb *WaitAnswer(const Wait *w);	/* {"message": ..., "nextCall": ...} */
extern Jsonb *WaitOfRun(Call *call, PlanRow *asked);	/* {"message": ..., "next_call": ...} */

/* ---------- answer.c: reports and answers that several functions share ---------- */

extern Jsonb *ArgumentExecutionReport(FunctionCallInfo fcinfo, int n);	/* NULL: none; SW007 */
extern void StepReport(StepRow *step, Jsonb *report);
extern void PutStepAnswer(JsonBuilder *b, const PlanRow *plan, const StepRow *step);
extern Jsonb *MovedAnswer(Call *call, const PlanRow *plan, const StepRow *step);	/* with the next call; the call may
																				 * not write after it */
extern Jsonb *DuplicateAnswer(Call *call, const PlanRow *plan, const StepRow *step);	/* for a call that was made
																						 * before */
extern Jsonb *NextAnswer(Call *call, PlanRow *asked, bool run_tools);	/* for a plan with no step to hand out */

/* ---------- check.c: checks that several functions share ---------- */

extern void CheckByWorker(Call *call, const StepRow *step, const char *what);	/* SW003 */
pg_noreturn extern void NotDueRefuse(Call *call, const StepRow *step, Due due, const Judgement *j); /* SW003 */
extern void CheckDue(Call *call, PlanRow *plan, StepRow *step); /* SW003, SW012 */
extern void CheckNotSentBack(Call *call, const StepRow *step, StepStatus to);	/* SW003 */
extern void CheckInProgress(Call *call, const StepRow *step, StepStatus to, const char *rule);
extern void CheckFailed(Call *call, const StepRow *step);
extern void CheckConfidence(double confidence);
extern void CheckResultGiven(const Jsonb *result);	/* SW005 */
extern void CheckMayDecide(Call *call, const StepRow *step);	/* SW014 */
extern void CheckSeparateReviewer(Call *call, const PlanRow *plan, const StepRow *step);	/* SW014 */
extern Outcome CheckOutcome(const char *outcome);

/* ---------- end.c: end a step that waits for a person by another way ---------- */

extern void CheckMayEnd(Call *call, const StepRow *step);	/* SW014 */

/* ---------- plan_scope.c: the steps of a plan, as the grammar of definitions sees them ---------- */

extern void PlanScopeRead(Reader *reader, const PlanRow *plan);
extern void PlanScopeOrder(Reader *reader, const PlanRow *plan);

/* ---------- update_step.c: change the definition of a step ---------- */

extern void StepMarkDynamic(Call *call, StepRow *step);
extern StepRow *StepUpdate(Call *call, PlanRow *plan, StepRow *step, const Jsonb *keys, Faults *faults,
						   JsonBuilder *detail);	/* SW003 */

/* ---------- takes.c: which steps take the result of a tool ---------- */

extern bool IsOpenFailure(const PlanRow *plan, const StepRow *step);
extern bool TakesNow(Call *call, PlanRow *plan, const StepRow *step, Due *due, Judgement *j);	/* of a pending or
																								 * failed step */
extern bool StepTakesReport(Call *call, PlanRow *plan, const StepRow *step);

/* ---------- door.c: a gate has no other door ---------- */

extern void CheckDoor(Call *call, const StepRow *step); /* SW014; likewise the next four */
extern void CheckDoorOfCancel(Call *call, const PlanRow *plan);
extern void CheckDoorOfPlan(Call *call, const PlanRow *plan);
extern void CheckDoorOfChange(Call *call, const PlanRow *plan, const StepRow *step);
extern void CheckDoorOfAdded(Call *call, const PlanRow *plan, const pg_uuid_t *ids, int count, int order);
extern void CheckDoorOfOrder(Call *call, const PlanRow *plan);
extern void CheckGatePassed(Call *call, PlanRow *plan, StepRow *step);	/* SW003 */

/* ---------- fence.c: check that a call about a claim comes from who holds it ---------- */

/* what a call says about the claim */
typedef struct Claimant
{
	const char *worker;			/* NULL if not given */
	bool		says_attempt;	/* attempt is given */
	int			attempt;
} Claimant;

extern char *ArgumentWorker(FunctionCallInfo fcinfo, int n);	/* SW005, SW007 */
extern Claimant ArgumentClaimant(FunctionCallInfo fcinfo, Call *call, int attempt, int worker);
extern bool NamesOtherAttempt(const StepRow *step, const Claimant *claimant);
extern void CheckAttempt(Call *call, const StepRow *step, const Claimant *claimant);	/* SW012 */
extern void CheckNotTakenBack(Call *call, const StepRow *step); /* SW012 */
extern void CheckClaim(Call *call, const StepRow *step, const Claimant *claimant);	/* SW012 */
extern void CheckFailedClaim(Call *call, const StepRow *step, const Claimant *claimant);	/* SW012 */

/* ---------- define.c: define and show workflows ---------- */

extern void LockDefinitions(Call *call);
extern void CheckWorkflowNamed(const char *name);	/* SW016 */
extern int	ArgumentVersion(FunctionCallInfo fcinfo, int n);	/* 0: the newest, or all */
extern void PutVersionNumbers(JsonBuilder *b, const char *key, const List *versions);	/* of int *, the newest first */

/* ---------- execution.c: the execution tree ---------- */

#define TREE_HINT \
	"Ask for less: stepwise.execution(plan_id, depth) with a smaller depth, or of a nested plan;" \
	" stepwise.get_step_context(step_id) shows one step."

extern size_t BlockSize(const StepRow *step);
extern Jsonb *OldestCheckpoint(Call *call, const PlanRow *plan);	/* NULL if there is none */
extern Jsonb *WorkflowResponse(Call *call, PlanRow *plan, bool detail);

/* ---------- runner.c: run a plan in the database ---------- */

typedef struct Run
{
	const char *tenant;
	const pg_uuid_t *plan_id;
	const char *actor;			/* the name that the caller gave, or NULL */
	char	   *session;		/* or NULL */
	int			left;			/* how many steps it may still do */
	int			done;			/* how many it has done */
	int			total;			/* how many were open in the plan when it began */
	bool		commits;		/* it commits after each step */
	bool		run_tools;		/* it goes before an agent, which takes the client's steps itself */
	struct RunRound *round;		/* that it is a part of; or NULL */
	bool		watched;		/* it reports its progress */
} Run;

/*
 * A run that commits now and then is a number of rounds, each in its own
 * transaction. Who begins one sets TheRound for the next call of run().
 */
typedef struct RunRound
{
	TimestampTz until;			/* it begins no step after that */
	int			done;			/* how many steps the rounds have done; set by the run, too */
	bool		unfinished;		/* set by the run: its time was over, and another round may go on */
	char		last[100];		/* set by the run: what it did last; "" if nothing */
	int			total;			/* set by the run: how many steps there are to do, those that are done included */
	const Jsonb *about;			/* members of each report of progress; or NULL */
} RunRound;

#define ERRCODE_PROGRESS	SW_ERRCODE('0', '0')	/* of notices, never of errors */

extern bool RunWatched;			/* the next run reports its progress, by notices of ERRCODE_PROGRESS */
extern RunRound *TheRound;		/* NULL: a run goes as far as it can */

extern void RunTurns(Run *run); /* no call may be open */
extern Jsonb *TaskAnswer(Call *call, const pg_uuid_t *plan_id, int max);	/* what a run answers, with at most max steps;
																			 * 0: all; begins to read; SW001 */

/* ---------- callable.c: the functions that can be called by name ---------- */

typedef enum CallableKind
{
	CALLABLE_READS,				/* granted to readers and agents */
	CALLABLE_ACTS,				/* granted to agents */
	CALLABLE_DECIDES			/* granted to agents that decide for a person */
} CallableKind;

typedef struct CallableArgument
{
	const char *name;
	const char *camel;			/* the same in camelCase */
	Oid			type;
	bool		required;		/* it has no default */
	Datum		otherwise;		/* the default */
	bool		otherwise_null;
	bool		otherwise_byval;
	int			otherwise_length;
} CallableArgument;

typedef struct Callable
{
	const char *name;
	CallableKind kind;
	MemoryContext memory;		/* of what was read from the catalog, as follows */
	uint64		read_at;		/* how often functions had changed by then; 0: not read */
	Oid			function;
	Oid			result;
	FmgrInfo	info;
	int			argument_count;
	CallableArgument *arguments;
} Callable;

extern void CallableInit(void);
extern const char **CallableNames(int *count);
extern bool FunctionReads(const char *name);
extern const Callable *CallableFind(const char *name);	/* NULL if there is none */
extern bool CallableIsGranted(const Callable *callable);	/* to the current role */

/* ---------- convert.c: turn JSON into values of SQL types, and answers into JSON ---------- */

extern bool JsonToDatum(JsonbValue *value, Oid type, Datum *result);	/* false if it does not fit */
extern char *TypeWants(Oid type);
extern char *TypeExample(Oid type); /* as JSON */
extern Jsonb *DatumToJson(Datum value, Oid type);

/* ---------- apply.c: call a function with arguments that are given as JSON ---------- */

extern Jsonb *CallableApply(const Callable *callable, const Jsonb *arguments);	/* SW005 */

/* ---------- by_name.c: call() ---------- */

extern const Callable *CallableNamed(const char *name); /* SW005, 42501 */

/* ---------- help_text.c: the texts that help() answers ---------- */

typedef struct HelpTopic
{
	const char *name;
	const char *text;
} HelpTopic;
#define HELP_TOPICS	4

extern const HelpTopic HelpTopics[HELP_TOPICS]; /* the first one is the default */

#endif							/* STEPWISE_API_H */
