/*
 * mcp.h
 *	  the Model Context Protocol: requests, methods and tools
 *
 * It stands on functions called by name (api/callable.c). Each section needs
 * only the sections above it.
 */
#ifndef STEPWISE_MCP_H
#define STEPWISE_MCP_H

#include "api/api.h"

/* ---------- request.c: read a JSON-RPC request ---------- */

/* the codes of JSON-RPC errors */
#define RPC_INVALID_REQUEST		(-32600)
#define RPC_NO_METHOD			(-32601)
#define RPC_INVALID_PARAMS		(-32602)
#define RPC_INTERNAL			(-32603)
#define RPC_NO_RESOURCE			(-32002)	/* of legacy clients */
#define RPC_NO_CAPABILITY		(-32021)
#define RPC_NO_VERSION			(-32022)

#define MODERN_VERSION			"2026-07-28"
#define LEGACY_VERSION			"2025-11-25"	/* the newest */
#define BATCH_VERSION			"2025-03-26"	/* the only one that has batches */

#define RESULT_BYTES			25000	/* of a tool's result, unless more is asked for */
#define RESULT_ENTRIES			20		/* of a list, likewise */
#define RESULT_BYTES_MIN		2000
#define RESULT_BYTES_MAX		(16 * 1024 * 1024)

typedef struct Request
{
	MemoryContext memory;		/* lives until the answer is written */
	Jsonb	   *id;				/* NULL: none, or not valid */
	char	   *method;
	Jsonb	   *params;			/* an object; empty if there are none */
	Jsonb	   *meta;			/* params._meta, likewise */
	const char *version;		/* of the protocol */
	bool		modern;			/* the generation without sessions */
	Jsonb	   *capabilities;	/* of the client; an object */
	bool		pipe;			/* the caller is stepwise-mcp, and understands "stepwise" beside the result */
	bool		all_tools;		/* list a tool for each function */
	bool		read_only;		/* list and call only what reads */
	bool		reads;			/* it calls a tool that reads, and writes nothing by the way either */
	int			max_bytes;		/* of a tool's result */
	int			max_entries;	/* of each list in it */

	/* set while it is handled */
	const char *tool;			/* that it calls, for the log; or NULL */
	pg_uuid_t	plan_id;		/* that it is about, for the log */
	bool		has_plan;
	bool		is_error;		/* its result is an error */
	bool		comes_again;	/* the pipe will send it again; it is logged then */
	Jsonb	   *beside;			/* for the pipe: the member "stepwise" of the response; or NULL */
	int			error_code;		/* of the JSON-RPC error; 0: none */
	Jsonb	   *error_data;		/* or NULL */
} Request;

extern const char *LegacyVersion(const char *asked);	/* the newest, if it is not known */
extern bool MessageIsOfBatchVersion(const Jsonb *message);
extern bool RequestIsExpected(const Jsonb *message);	/* an answer is expected: it is not a notification */
extern void RequestRead(Request *request, const Jsonb *message);	/* -32600, -32602, -32022 */
extern void RequestAllow(Request *request, int max_bytes);	/* a result of so many bytes, and lists to match */
pg_noreturn extern void RequestRefuse(Request *request, int code, const Jsonb *data, const char *format,...) pg_attribute_printf(4, 5);
extern char *ParamRequiredText(Request *request, const char *key);	/* -32602; likewise the next */
extern Jsonb *ParamObject(Request *request, const char *key);	/* an empty one if it is not there */
extern void RequestNotePlan(Request *request, const char *plan_id); /* the first one counts; NULL: none */
extern void BesidePut(Request *request, const char *key, const Jsonb *value);	/* what stepwise-mcp is to do */

/* ---------- reply.c: write responses ---------- */

/* whether modern results have ttlMs and cacheScope, and what they say */
typedef enum Caching
{
	CACHE_UNSAID,
	CACHE_NOT,					/* a plan changes with every call */
	CACHE_BRIEFLY
} Caching;

extern Jsonb *ReplyResult(const Request *request, const Jsonb *result, Caching caching);
extern Jsonb *ReplyError(const Request *request, const char *message);
extern char *FaultText(const ToolFault *fault); /* code, message, detail and hint, one a line */
extern void PutServerInfo(JsonBuilder *b, const char *key);

/* ---------- listing.c: lists in pages, by name ---------- */

/* one page of a list */
typedef struct Listing
{
	JsonBuilder builder;		/* of the result */
	const char *after;			/* the page begins after this name; NULL: at the beginning */
	const char *last;			/* it goes up to this name */
	int			looked;			/* rows that were looked at */
	int			shown;
	size_t		bytes;			/* of those shown */
} Listing;

typedef Jsonb *(*MakeEntry) (const Request *request, const Rows *rows, uint64 row); /* NULL: it is not shown */

extern void ListingBegin(Listing *listing, Request *request, const char *key);	/* -32602 */
extern void ListingPut(Listing *listing, const Jsonb *entry);
extern void ListingPutRows(Listing *listing, const Request *request, KeptQuery *query, MakeEntry make);
extern Jsonb *ListingEnd(Listing *listing);

/* ---------- log.c: keep the calls in stepwise.tool_call ---------- */

extern void LogCall(const Request *request, TimestampTz since, const Jsonb *message, const Jsonb *answer);

/* which generation of clients has a method or a capability */
typedef enum Generation
{
	LEGACY = 1,
	MODERN = 2,
	BOTH = 3
} Generation;

/* ---------- arguments.c: the arguments of a call of a tool ---------- */

extern Jsonb *ArgumentsInSnakeCase(const Jsonb *arguments); /* SW005; likewise the next */
extern Jsonb *ArgumentTake(Jsonb **arguments, const char *name);	/* takes it out; NULL if it is not there or null */
extern char *ArgumentTakeText(Jsonb **arguments, const char *name);
extern bool ArgumentTakeFlag(Jsonb **arguments, const char *name, bool otherwise);
extern int	ArgumentTakeInt(Jsonb **arguments, const char *name, int otherwise);
extern bool ArgumentIsGiven(const Jsonb *arguments, const char *name);
extern int	ArgumentChoose(const char *name, const char *word, const char *const *words, int count);
extern bool ArgumentsNameStep(Jsonb **arguments);	/* false: no step is given; SW002 */

/* ---------- function.c: call functions of the extension for tools ---------- */

extern bool FunctionHas(const Callable *callable, const char *argument);
extern bool MayAct(const Request *request, const char *name);
extern void CheckMayChange(const Request *request, const Callable *callable);	/* 25006 */
extern Jsonb *FunctionApply(const Request *request, const char *name, const Jsonb *arguments);	/* SW005, 42501 */

/* ---------- session.c: initialize, discover, ping, logging ---------- */

extern Jsonb *Initialize(Request *request);
extern Jsonb *Discover(Request *request);
extern Jsonb *Ping(Request *request);
extern Jsonb *SetLevel(Request *request);

/* ---------- round.c: runs in rounds ---------- */

extern bool RoundPlan(const Request *request, pg_uuid_t *plan_id);	/* that an earlier round has made; false: none */
extern TimestampTz RoundsBegan(const Request *request, TimestampTz otherwise);
extern Jsonb *RunApply(Request *request, const Jsonb *arguments, const Jsonb *about);	/* NULL: it comes again; SW005, 42501 */

/* ---------- tool_map.c: how the tools of a model become calls of functions ---------- */

extern Jsonb *StartWorkflow(Request *request, Jsonb *arguments);
extern Jsonb *SubmitStepResult(Request *request, Jsonb *arguments);
extern Jsonb *UpdateStep(Request *request, Jsonb *arguments);
extern Jsonb *RequestUserReview(Request *request, Jsonb *arguments);
extern Jsonb *SubmitUserDecision(Request *request, Jsonb *arguments);
extern Jsonb *ModifyPlan(Request *request, Jsonb *arguments);
extern Jsonb *GetPlanStatus(Request *request, Jsonb *arguments);
extern Jsonb *RunPlan(Request *request, Jsonb *arguments);
extern Jsonb *StoreArtifact(Request *request, Jsonb *arguments);
extern Jsonb *SearchArtifacts(Request *request, Jsonb *arguments);

/* ---------- tool_table.c: the tools that a model sees by default ---------- */

typedef struct ToolParam
{
	const char *name;			/* NULL: the end of the list */
	const char *schema;			/* JSON, without the description */
	const char *description;
	bool		required;
} ToolParam;

#define MODEL_TOOL_FUNCTIONS	8

typedef struct ModelTool
{
	const char *name;
	const char *title;
	const char *description;
	const ToolParam *params;
	const char *functions[MODEL_TOOL_FUNCTIONS];	/* behind it; who may call the first one sees the tool */
	Jsonb	   *(*call) (Request *request, Jsonb *arguments);	/* NULL: calls the first function */
	const char *output;			/* schema of the answer, or NULL */
	bool		reads;			/* it changes nothing */
	bool		destructive;	/* it may end or replace what is there */
	bool		idempotent;		/* the same call again changes nothing more */
} ModelTool;
#define MODEL_TOOLS		12

extern const ModelTool ModelTools[MODEL_TOOLS];

extern const ModelTool *ModelToolFind(const char *name);	/* NULL if there is none */
extern bool ModelToolIsListed(const Request *request, const ModelTool *tool);
extern void PutAnnotations(JsonBuilder *b, bool reads, bool destructive, bool idempotent, bool open_world);

/* ---------- translate_call.c: calls of functions as calls of tools ---------- */

typedef struct Translation
{
	const char *function;
	const char *tool;
	const char *key;			/* a parameter that the call of the tool has in addition, or NULL */
	const char *word;			/* its value; NULL: true */
	const char *from;			/* an argument that has another name, or NULL */
	const char *to;
	const char *drop;			/* an argument that the tool does not need, or NULL */
} Translation;

extern const Translation *TranslationFind(const char *function);	/* NULL: it has the name of its tool, or none */
extern Jsonb *TranslateArguments(const Translation *t, const Jsonb *given); /* t NULL: they are the same */
extern const char *TranslatedTool(const Request *request, const char *function);	/* NULL: none is listed */
extern Jsonb *TranslateCall(const Jsonb *call); /* {"function", "arguments"} */
extern Jsonb *TranslateCalls(const Request *request, const Jsonb *calls);	/* one, or an array */

/* ---------- translate_text.c: texts that name tools instead of functions ---------- */

extern char *TranslateCuts(const char *text);	/* only where base/cut.c has cut it */
extern char *TranslateText(const Request *request, const char *text);

/* ---------- user_key.c: which members of an answer have values of users ---------- */

extern bool IsUserKey(const char *key);

/* ---------- cut_lists.c: cut the lists of an answer ---------- */

extern Jsonb *CutLists(const Jsonb *answer, int max);

/* ---------- translate.c: answers as a model needs them ---------- */

extern Jsonb *TranslateAnswer(const Request *request, const Jsonb *answer); /* cuts lists and leaves out what is null, too */

/* ---------- shorten.c: cut an answer to a length ---------- */

extern char *AnswerText(const Jsonb *answer);
extern Jsonb *Shorten(const Jsonb *answer, int max_bytes, bool twice, char **text);
extern bool FitsTwice(const char *text, int max_bytes);

/* ---------- result.c: the results of tools ---------- */

extern const char *TextWithin(const char *text, int max_bytes);
extern Jsonb *ToolResult(const Request *request, const Jsonb *answer);
extern Jsonb *ToolErrorResult(const Request *request, const char *text);
extern Jsonb *ToolFaultResult(const Request *request, const ToolFault *fault);

/* ---------- param_table.c: what the arguments of functions mean ---------- */

extern void PutArgumentSchema(JsonBuilder *b, const Callable *callable, const CallableArgument *argument);

/* ---------- tool_name.c: names of tools ---------- */

extern const char *NameMeant(const char *name); /* for the names that other engines have */
extern const Callable *FunctionOfTool(const char *name);	/* NULL: there is no such tool */
extern bool IsOwnTool(const char *name);
extern bool AnswersUserValues(const char *name);

/* ---------- task_support.c: which tools can be tasks ---------- */

extern bool VersionHasTasks(const Request *request);
extern bool ClientKnowsTasks(const Request *request);
extern void CheckKnowsTasks(Request *request);	/* -32021 */
extern bool ToolCanBeTask(const char *name);	/* of ours */
extern void PutTaskSupport(JsonBuilder *b, const Request *request);

/* ---------- elicit.c: ask the person behind the client ---------- */

extern Jsonb *PlanArguments(const pg_uuid_t *plan_id);	/* {"plan_id": ...} */
extern Jsonb *InputRequests(Request *request, const char *checkpoint, const Jsonb *meta);	/* meta: of each; NULL: nobody is asked */
extern Jsonb *QuestionOf(Request *request, const Jsonb *answer, const Jsonb *meta); /* a result that asks; NULL: nobody is asked */
extern Jsonb *InputResponses(Request *request); /* NULL: none; -32602 */
extern bool InputsDecide(Request *request, const pg_uuid_t *plan_id);	/* true: something was accepted; -32602 */
extern Jsonb *AnswerAfterInput(Request *request, const char *name, const Jsonb *arguments); /* NULL: the tool is to be called */
extern Jsonb *ToolQuestion(Request *request, const char *name, const Jsonb *answer);	/* NULL: nobody is asked */

/* ---------- exposed.c: tools in the database that are registered for clients ---------- */

extern Tool *ExposedFind(const char *name); /* NULL: there is no such tool */
extern void ExposedCheck(const Tool *tool, const Jsonb *arguments); /* SW005 */
extern Jsonb *ExposedResult(Request *request, const Jsonb *result);
extern char *PlanOfCall(Request *request); /* to which it is recorded; NULL: none; -32602 */
extern Jsonb *ExposedCall(Request *request, const char *name, const Jsonb *arguments);	/* NULL: there is no such tool */
extern void ExposedPut(Listing *listing, const Request *request);

/* ---------- markdown.c: a plan as Markdown ---------- */

extern char *PlanMarkdown(const Jsonb *context);	/* from the answer of get_plan_context */

/* ---------- resources.c: plans and what they have produced ---------- */

typedef struct ResourceView ResourceView;

typedef struct ResourceUri
{
	const char *text;
	pg_uuid_t	plan_id;
	const ResourceView *view;
	char	   *name;			/* of an artifact; or NULL */
} ResourceUri;

extern bool UriRead(const char *text, ResourceUri *uri);	/* false: it is none of ours */
extern bool IsResourceTemplate(const char *template);
pg_noreturn extern void ResourceNotFound(Request *request, const char *uri);	/* -32002, -32602 */
#define PLANS_LOOKED	1000	/* for a page of root plans */
/* root plans before $2, newest first, as p; at most $3 */
#define ROOTS_LOOKED \
	"(SELECT o.* FROM (SELECT q.* FROM stepwise.plan AS q WHERE q.tenant = $1 AND q.id < $2" \
	" ORDER BY q.id DESC LIMIT " CppAsString2(PLANS_LOOKED) ") AS o WHERE o.parent_step_id IS NULL ORDER BY o.id DESC LIMIT $3) AS p"

extern Jsonb *PlanPage(Request *request, KeptQuery *query, const char *key);	/* -32602 */
extern Jsonb *ResourcesList(Request *request);
extern Jsonb *ResourceTemplatesList(Request *request);
extern Jsonb *ResourceRead(Request *request);

/* ---------- prompts.c: workflows that a person can start ---------- */

extern Jsonb *PromptDefinition(Request *request, const char *name); /* -32602 */
extern Jsonb *PromptsList(Request *request);
extern Jsonb *PromptsGet(Request *request);

/* ---------- complete.c: propose values ---------- */

extern Jsonb *CompletionComplete(Request *request);

/* ---------- task.c: calls that go on after their answer ---------- */

#define WAIT_MS	(NotifyChanges ? 30000 : 1000)	/* without notifications, one has to look now and then */

extern Jsonb *TaskCall(Request *request, const char *name, const Jsonb *arguments); /* NULL: it is called as usual */
extern Jsonb *TaskNotice(Request *request, const pg_uuid_t *id);	/* NULL: there is no such task */
extern Jsonb *TasksGet(Request *request);
extern Jsonb *TasksResult(Request *request);
extern Jsonb *TasksList(Request *request);
extern Jsonb *TasksCancel(Request *request);
extern Jsonb *TasksUpdate(Request *request);
extern Jsonb *StepwiseWork(Request *request);

/* ---------- subscribe.c: tell clients what has changed ---------- */

extern Jsonb *ResourcesSubscribe(Request *request);
extern Jsonb *ResourcesUnsubscribe(Request *request);
extern Jsonb *SubscriptionsListen(Request *request);
extern Jsonb *StepwiseChanges(Request *request);

/* ---------- tool_list.c: tools/list ---------- */

extern Jsonb *ToolsList(Request *request);

/* ---------- tool_call.c: tools/call ---------- */

extern Jsonb *ToolsCall(Request *request);

/* ---------- method.c: the methods ---------- */

typedef struct Method
{
	const char *name;
	Generation	generation;
	Jsonb	   *(*handle) (Request *request);	/* returns the result, an object; may raise errors */
	Jsonb	   *(*explain) (const Request *request, const ToolFault *fault);	/* makes a result of an error; NULL: it is a JSON-RPC error */
	Caching		caching;
	bool		unlogged;		/* not kept in stepwise.tool_call */
} Method;

extern const Method *MethodFind(Request *request);	/* -32601 */

#endif							/* STEPWISE_MCP_H */
