/*
 * define.h
 *	  the language of definitions: faults, references, conditions, steps, inputs,
 *	  workflows
 *
 * It reads what a user has written, and the stored workflows. It knows nothing
 * about running plans. Each section needs only the sections above it.
 */
#ifndef STEPWISE_DEFINE_H
#define STEPWISE_DEFINE_H

#include "base/base.h"

/* ---------- fault.c: all faults of a definition, in one error ---------- */

typedef struct Faults
{
	List	   *items;			/* of Fault, in the order found */
	int			more;			/* number of faults after the list was full */
} Faults;

/* a place in a definition: a chain of links on the stack, spelled only if there is a fault */
typedef struct Place
{
	const struct Place *up;		/* NULL: the outermost */
	const char *key;			/* NULL: an element of an array */
	int			index;			/* 0-based */
} Place;

/* place is spelled, as "steps[2].dependsOn[0]"; hint may be NULL */
extern void FaultAdd(Faults *faults, int sqlstate, const char *place, const char *hint,
					 const char *format, ...) pg_attribute_printf(5, 6);
extern void FaultSetHint(Faults *faults, int index, const char *hint);
extern bool FaultsAny(const Faults *faults);
extern char *FaultsFirst(const Faults *faults); /* there must be one */
extern char *FaultsText(const Faults *faults);	/* in one line */
extern void FaultsRaise(const Faults *faults, const char *what);	/* does nothing if there are none */
extern int	FaultsCount(const Faults *faults);
extern void FaultsToJson(JsonBuilder *b, const char *key, const Faults *faults);
extern char *PlaceText(const Place *place);
extern bool HintsWanted(const Faults *faults);
extern char *WordHint(const Faults *faults, const char *word, const char *const *words, int count,
					  const char *plural);
extern const char *KindHint(const char *kind);

/* for a value that JsonExcess refuses */
#define EXCESS_HINT		"Split or flatten it, or keep the content elsewhere and give where it is."

/* ---------- names.c: tables of names ---------- */

extern struct names_hash *NamesNew(int size);
extern bool NamesAdd(struct names_hash *names, const char *name, int number);	/* false: it was there */
extern int	NamesFind(struct names_hash *names, const char *name);	/* 0: not there */
extern void NamesSet(struct names_hash *names, const char *name, int number);
extern char *NamesKeep(struct names_hash *names, char *name);	/* the copy that is in the table */

/* ---------- reference.c: find and parse references, ${…}; pure ---------- */

typedef enum ReferenceRoot
{
	REF_INPUTS,
	REF_STEPS,
	REF_BINDINGS,
	REF_PLAN,
	REF_VARIABLES,
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
	Jsonb	   *fallback;		/* the literal after "??"; NULL: none */
	int			column;			/* in the text around it; 1-based, in characters */
} Reference;

typedef struct ParseFault
{
	char	   *message;		/* NULL: no fault */
	char	   *hint;			/* or NULL */
	int			column;			/* 1-based, in characters */
	const char *root;			/* an unknown root, and the rest of its path; otherwise NULL */
	const char *rest;
	struct ParseFault *next;	/* the next fault of the text; NULL: none */
} ParseFault;

/* a part of a text: a literal or a reference */
typedef struct TextPart
{
	char	   *literal;
	Reference  *reference;
} TextPart;

extern bool ReferenceOccurs(const char *text);	/* is there anything to resolve, including "$${"? */
extern List *ReferenceScan(const char *text, bool branching, ParseFault *faults);	/* of TextPart */
extern Reference *ReferenceParse(const char *source, int column, bool branching, ParseFault *fault);
extern const char *ReferenceEnd(const char *source, int column, ParseFault *fault); /* the "}", or NULL */
extern void ParseFaultAppend(ParseFault *faults, const ParseFault *fault);
extern bool ReferenceNameIsValid(const char *name); /* as the name of a step */
extern void ParseFaultSet(ParseFault *fault, int column, char *hint,
						  const char *format, ...) pg_attribute_printf(4, 5);

/* ---------- condition_token.c: read the tokens of a condition; pure ---------- */

#define CONDITION_BLANKS	" \t\n\r"
#define CONDITION_OPERANDS	100 /* at most */

typedef enum Comparison
{
	OP_EQUAL,
	OP_NOT_EQUAL,
	OP_SAME,
	OP_NOT_SAME,
	/* the rest compares by order */
	OP_LESS,
	OP_LESS_EQUAL,
	OP_GREATER,
	OP_GREATER_EQUAL,
	OP_NONE
} Comparison;

typedef enum ValueKind
{
	VALUE_NULL,
	VALUE_BOOLEAN,
	VALUE_NUMBER,
	VALUE_STRING,
	VALUE_LIST,
	VALUE_OPERAND				/* a reference */
} ValueKind;

typedef struct ConditionValue
{
	ValueKind	kind;
	char	   *text;			/* in jsonpath; NULL for a list */
	int			operand;
	List	   *elements;		/* of ConditionValue */
} ConditionValue;

typedef enum TokenKind
{
	TOKEN_END,
	TOKEN_VALUE,
	TOKEN_COMPARE,
	TOKEN_IN,
	TOKEN_AND,
	TOKEN_OR,
	TOKEN_NOT,
	TOKEN_MARK					/* ( ) [ ] , */
} TokenKind;

typedef struct Token
{
	TokenKind	kind;
	Comparison	op;
	char		mark;
	ConditionValue *value;
	int			offset;
	int			length;
} Token;

/* the state of compiling a condition */
typedef struct Compiler
{
	const char *source;
	const char *at;				/* after the current token */
	bool		branching;
	Token		token;
	int			depth;
	int			noperands;
	Reference  *operands[CONDITION_OPERANDS];
	ParseFault	references;		/* the faults of the references, chained */
	ParseFault *fault;
} Compiler;

extern ConditionValue *ValueMake(ValueKind kind, char *text);
extern void TokenNext(Compiler *c);
extern bool TokenIsMark(const Compiler *c, char mark);
extern int	TokenColumn(const Compiler *c, int offset);
extern void TokenUnexpected(Compiler *c, const char *wanted);

/* ---------- condition_predicate.c: predicates of jsonpath, as text; pure ---------- */

extern char *PredicateJoin(List *predicates, const char *connective);
extern char *PredicateNot(char *predicate);
extern char *PredicateCompare(const ConditionValue *a, Comparison op, const char *sign, const ConditionValue *b);
extern char *PredicateIn(const ConditionValue *left, const ConditionValue *list);
extern char *PredicateAlone(const ConditionValue *value);

/* ---------- condition_path.c: read and match jsonpath without errors; pure ---------- */

typedef enum ConditionResult
{
	CONDITION_FALSE,
	CONDITION_TRUE,
	CONDITION_UNDECIDED
} ConditionResult;

extern bool PathFromText(char *text, Datum *path, char **message);
extern bool PathHasVariables(Datum path);
extern ConditionResult PathMatch(Datum path, const Jsonb *document, char **message);

/* ---------- condition.c: compile conditions; pure ---------- */

typedef struct Condition
{
	char	   *source;
	Datum		path;			/* jsonpath, compiled */
	bool		raw;			/* jsonpath as written; it has no operands */
	int			noperands;
	Reference **operands;		/* in the order of their values in the document */
} Condition;

extern Condition *ConditionCompile(const char *source, bool branching, ParseFault *fault);

/* ---------- condition_evaluate.c: evaluate conditions; pure ---------- */

extern Jsonb *ConditionDocument(int noperands, JsonbValue **values);	/* value NULL: missing */
extern ConditionResult ConditionEvaluate(Datum path, const Jsonb *document, int noperands,
										 char **names, char **why); /* names of the operands, for messages */

/* ---------- what a definition becomes ---------- */

/* how the step that is depended on must end, for the dependent to run */
typedef enum Need
{
	NEED_NO_FAILURE,			/* "required": false: it did not fail */
	NEED_SUCCESS,				/* "required": true: it completed with success */
	NEED_END					/* "when": "ended": in any way */
} Need;
#define NEEDS	3

typedef struct DependencyDefinition
{
	char	   *name;			/* as it is written */
	int			index;			/* 0-based, in dependsOn */
	int			parent;			/* number of the step that it depends on */
	Need		need;
} DependencyDefinition;

typedef struct StepDefinition
{
	int			order;			/* 1-based */
	int			wave;
	char	   *name;
	bool		named;			/* by the definition, not by its number */
	char	   *type;
	char	   *tool;			/* at most one of tool, workflow, prompt */
	char	   *workflow;
	int			version;		/* 0: the newest */
	char	   *prompt;
	char	   *instructions;
	char	   *binding;
	Jsonb	   *arguments;
	Jsonb	   *resources;
	Jsonb	   *review;			/* the gate before or after it, or NULL */
	Condition  *condition;
	int			retryable;		/* -1: not given */
	int			max_attempts;	/* 0: not given */
	Interval   *stall_after;
	bool		dynamic;		/* has references outside of its condition */
	List	   *depends;		/* of DependencyDefinition */
} StepDefinition;

typedef struct BranchDefinition
{
	int			after;			/* order of the step */
	int			position;		/* among the branches after that step, 1-based */
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
	bool		on_failure_given;	/* by the definition; otherwise it is the default */
	Interval   *stall_after;
	bool		separate_reviewer;
	bool		strict_order;
	char	   *output_formatting_notes;
} Definition;

/* ---------- reader.c: read the values and objects of a definition ---------- */

/*
 * The steps that a definition can name. Steps have numbers: first those of the
 * outer scope (a plan to which steps are added), then the scope's own.
 */
typedef struct Scope
{
	struct Scope *around;		/* the outer scope, or NULL */
	int			after;			/* order in the outer scope after which these steps are added */
	int			offset;			/* number of steps of the outer scope */
	StepDefinition *steps;
	int			nsteps;
	bool		sequential;
	struct names_hash *names;
	struct names_hash *bindings;
	const Jsonb *inputs;		/* object whose keys are the inputs; NULL: none are known */
	/* set by order.c: the steps in an order in which they could run */
	int		   *sorted;
	int			nsorted;		/* fewer than nsteps if there is a cycle */
	int		   *rank;			/* index in sorted; -1: the step is in a cycle, or depends on one */
	uint64	  **ancestors;		/* one bit set per step, computed as needed */
	int			nancestors;		/* number of sorted steps that have theirs */
} Scope;

/* a fault about the unknown root of a reference */
typedef struct UnknownRoot
{
	ParseFault	fault;
	int			index;			/* among the reader's faults */
} UnknownRoot;

/* the state of reading a definition */
typedef struct Reader
{
	Call	   *call;
	Faults	   *faults;
	Faults	   *warnings;		/* NULL: not wanted */
	List	   *unknown_roots;	/* of UnknownRoot: faults whose hints are not final */
	Scope	   *scope;
	const char *self;			/* name of the workflow that is being defined, or NULL */
	List	   *callers;		/* names of the workflows in which added steps are nested */
	bool		depends;		/* dependsOn was seen */
	bool		inputs_declared;	/* others cannot be given; in a plan without declarations any can be missing */
	bool		inputs_unknown; /* the declarations are faulty: do not check against them */
	struct names_hash *workflows;	/* nested workflows that were checked, and are good */
	struct names_hash *followed;	/* workflows that lead to no circle */
	struct names_hash *dependencies;	/* names in dependsOn, one copy of each */
} Reader;

/* a key of an object, the function that reads its value, and the field that it sets */
typedef struct KeyRule
{
	const char *key;
	void		(*read) (Reader *reader, const Place *place, JsonbValue *value, void *field);
	size_t		offset;
	bool		required;
} KeyRule;

#define FaultAt(reader, path, sqlstate, hint, ...) \
	FaultAdd((reader)->faults, sqlstate, PlaceText(path), hint, __VA_ARGS__)

extern bool ExpectKind(Reader *reader, const Place *place, const JsonbValue *value, const char *kind);
extern void ReadKeys(Reader *reader, const Place *place, JsonbValue *value, const KeyRule *rules, int count,
					 void *target, const char *what);
extern void ReadWord(Reader *reader, const Place *place, JsonbValue *value, const char *const *words, int count,
					 char **field);
extern void ReaderTakeFaults(Reader *reader, const Place *place, int sqlstate, const ParseFault *faults);
extern char *ReaderKeep(Reader *reader, char *name);	/* for names that occur many times */

/* functions for a KeyRule; the comment is the type of the field */
extern void ReadNote(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* char * */
extern void ReadText(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* char * */
extern void ReadTitle(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* char * */
extern void ReadName(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* char * */
extern void ReadBool(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* bool */
extern void ReadFlag(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* int */
extern void ReadCount(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* int */
extern void ReadInterval(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* Interval * */
extern void ReadObject(Reader *reader, const Place *place, JsonbValue *value, void *field); /* Jsonb * */
extern void ReadTexts(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* Jsonb * */
extern void ReadCondition(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* Condition * */
extern void ReadBranchCondition(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* Condition * */
extern void ReadLater(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* JsonbValue * */

/* ---------- scope.c: the steps that a definition can name ---------- */

extern Scope *ScopeOfSteps(StepDefinition *steps, int nsteps, Scope *around, int after);
extern void ScopeNameSteps(Reader *reader, const Place *place);
extern StepDefinition *ScopeStep(const Scope *scope, int number);
extern int	ScopeFindStep(const Scope *scope, const char *name);	/* 0: none */
extern int	ScopeFindBinding(const Scope *scope, const char *name); /* 0: none */
extern char *ScopeStepHint(Reader *reader, const char *name);
extern char *ScopeBindingHint(Reader *reader, const char *name);

/* ---------- order.c: dependencies: waves, cycles, ancestors ---------- */

extern void OrderSteps(Reader *reader, const Place *place);
extern bool OrderIsAncestor(Scope *scope, int ancestor, int step);	/* both are the scope's own steps */

/* ---------- reach.c: check what references may reach ---------- */

/* from is the number of the step that has the references; 0: they may name any step */
extern void ReachCheckText(Reader *reader, const Place *place, const char *text, int from);
extern void ReachCheckJson(Reader *reader, const Place *place, const Jsonb *json, int from);
extern void ReachCheckReview(Reader *reader, const Place *place, const char *summary, const Jsonb *questions, int after);
extern void ReachHintRoots(Reader *reader);
extern void ReachCheckCondition(Reader *reader, const Place *place, const Condition *condition, int from, bool itself);

/* ---------- workflow.c: the stored versions of workflows ---------- */

/* columns of stepwise.workflow, in the order of its definition */
enum
{
	WORKFLOW_COL_TENANT, WORKFLOW_COL_NAME, WORKFLOW_COL_VERSION, WORKFLOW_COL_DEFINITION, WORKFLOW_COL_CREATED_AT
};

/* a row of stepwise.workflow */
typedef struct WorkflowRow
{
	int			version;
	struct varlena *definition; /* jsonb, may be toasted */
	TimestampTz created_at;
} WorkflowRow;

extern WorkflowRow *WorkflowFind(Call *call, const char *name, int version);	/* 0: the newest; NULL: none */
extern List *WorkflowVersions(Call *call, const char *name);	/* of int *, the newest first */
extern char *WorkflowAfter(Call *call, const char *name);	/* the next name; NULL: none */
extern int	WorkflowCount(Call *call);
extern bool WorkflowExists(Call *call, const char *name, int version);	/* version 0: any */
extern int	WorkflowNewestVersion(Call *call, const char *name);	/* 0: none */
extern Jsonb *WorkflowDefinition(Call *call, const char *name, int version);	/* 0: the newest; NULL: none */
extern Jsonb *WorkflowPin(Call *call, const char *name, int *version);	/* likewise, and locks the row; sets *version;
																		 * SW016 */
extern List *WorkflowLock(Call *call, const char *name, int version);	/* of int *; 0: all versions; likewise the next */
extern void WorkflowDelete(Call *call, const char *name, int version);
extern char *WorkflowLabel(const char *name, int version);
extern char *WorkflowHint(Call *call, const Faults *faults, const char *name);
pg_noreturn extern void WorkflowNotFound(Call *call, const char *name, int version);	/* SW016 */

/* ---------- circle.c: workflows that call each other ---------- */

extern void WorkflowCheckCall(Reader *reader, const Place *place, const char *name, int version);

/* ---------- inputs.c: declared inputs, and values for them ---------- */

extern void ReadInputs(Reader *reader, const Place *place, JsonbValue *value, void *field);
extern Jsonb *InputsAccept(const Jsonb *declarations, const Jsonb *values, Faults *faults);

/* ---------- stepdef.c: the steps of a definition ---------- */

extern void ReadSteps(Reader *reader, const Place *place, JsonbValue *value, void *field);	/* StepDefinition *; sets
																							 * the reader's scope */
extern Scope *ReadAddedSteps(Reader *outer, const Place *place, JsonbValue *value, Scope *around, int after);
extern void CheckSteps(Reader *reader, const Place *place);
extern void ReadStepKeys(Reader *reader, const Place *place, JsonbValue *value, StepDefinition *step);
extern void CheckStepKeys(Reader *reader, const Place *place, const StepDefinition *step);
extern void CheckStepReferences(Reader *reader, const Place *place, const StepDefinition *step, int number);

/* ---------- branchdef.c: the branching conditions of a definition ---------- */

extern List *ReadBranches(Reader *reader, const Place *place, JsonbValue *value);

/* ---------- never.c: steps that nothing can make due ---------- */

extern void WarnNeverDue(const Definition *definition, Faults *warnings);

/* ---------- definition.c: accept a definition ---------- */

/* a step that a plan has, for steps that are added to it */
typedef struct KnownStep
{
	char	   *name;
	char	   *binding;		/* or NULL */
	char	   *workflow;		/* or NULL */
	int			wave;
} KnownStep;

extern Definition *DefinitionAccept(Call *call, const Jsonb *json, Faults *faults, Faults *warnings);	/* NULL: no warnings */
extern Definition *DefinitionAcceptPlan(Call *call, const Jsonb *json, const Jsonb *inputs, Faults *faults);
extern Definition *DefinitionAcceptSteps(Call *call, const Jsonb *steps, const KnownStep *known, int nknown,
										 int after, bool sequential, const Jsonb *inputs, List *callers,
										 Faults *faults);

#endif							/* STEPWISE_DEFINE_H */
