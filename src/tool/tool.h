/*
 * tool.h
 *	  tools, their schemas, resources, and calls of registered functions
 */
#ifndef STEPWISE_TOOL_H
#define STEPWISE_TOOL_H

#include "define/define.h"

/* ---------- invoke.c: call a registered function as the caller ---------- */

typedef struct ToolFault
{
	char	   *message;
	char		code[6];		/* SQLSTATE; empty: none */
	char	   *detail;			/* or NULL; likewise the next two */
	char	   *hint;
	Jsonb	   *reported;		/* the object in which a client reported the error */
} ToolFault;

typedef void (*AttemptWork) (void *arg);
typedef struct Invokables Invokables; /* functions that a run has looked up */

extern char *FunctionSignature(Oid function, Oid argument, const char *hint);	/* checks the function as the caller;
																				 * SW005 */
extern bool FunctionTakesText(Oid function);
extern bool SignatureTakesText(const char *signature);
extern bool Attempt(AttemptWork work, void *arg, ToolFault **fault);	/* no call may be open; likewise the next */
extern Invokables *InvokablesNew(void);
extern Jsonb *Invoke(Invokables *invokables, const char *signature, Datum argument, const char *what, ToolFault **fault);
extern void InvokeInit(void);

/* ---------- schema.c: check arguments against input schemas ---------- */

typedef struct SchemaFault
{
	List	   *missing;		/* of char *, in the order of the schema */
	List	   *invalid;		/* of char * */
	char	   *why;
} SchemaFault;

extern void CheckInputSchema(const Jsonb *schema);	/* SW005 */
extern bool SchemaMatch(const Jsonb *schema, const Jsonb *arguments, SchemaFault *fault);

/* ---------- tool_cache.c: tools that were read before ---------- */

typedef struct Tool
{
	char	   *name;
	char	   *function;		/* signature; NULL: the client calls the tool */
	Jsonb	   *input_schema;	/* or NULL */
	char	   *description;	/* or NULL */
	bool		retryable;
	bool		expose;
} Tool;

typedef Tool *(*ToolReader) (Call *call, const char *name);

extern Tool *ToolRecall(Call *call, const char *name, ToolReader reader);	/* NULL: it was never registered */
extern void ToolCacheInit(void);

/* ---------- tool.c: registered tools ---------- */

extern Tool *ToolFind(Call *call, const char *name);	/* NULL: it was never registered */
extern bool ToolIsInDatabase(Call *call, const char *name);
extern List *ToolList(Call *call, const char *after, int max, int cut); /* of Tool */
extern List *ToolNames(Call *call, int max);	/* of char *, likewise */
extern int	ToolCount(Call *call);
extern void CheckToolName(const char *name);	/* SW005 */

/* ---------- builtin.c: the built-in tools ---------- */

extern Tool *BuiltInTool(const char *name); /* NULL: not built in */
#define BUILT_IN_TOOLS	3

extern const char *BuiltInToolName(int index);	/* NULL: after the last one */

/* ---------- resource.c: read the resources of a step ---------- */

#define OWN_SCHEME	"stepwise://"

/* the plan of the step that reads */
typedef struct PlanKey
{
	const char *tenant;
	pg_uuid_t	plan_id;
	pg_uuid_t	root_id;
} PlanKey;

extern Jsonb *ResourcesRead(const PlanKey *plan, const Jsonb *uris, const char **uri, ToolFault **fault);	/* no call may be open */

#endif							/* STEPWISE_TOOL_H */
