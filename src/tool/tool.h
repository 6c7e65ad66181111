/*
 * tool.h
 *	  tools, their schemas, resources, and how a registered function is called
 */
#ifndef STEPWISE_TOOL_H
#define STEPWISE_TOOL_H

#include "define/define.h"

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

/* ---------- tool.c: registered tools ---------- */

typedef struct Tool
{
	char	   *name;
	char	   *function;		/* signature; NULL: the client's */
	Jsonb	   *input_schema;	/* or NULL */
	char	   *description;	/* or NULL */
	bool		retryable;
	bool		expose;
} Tool;

extern Tool *ToolFind(Call *call, const char *name);	/* NULL: never registered */
extern List *ToolList(Call *call);	/* of Tool */
extern void CheckToolName(const char *name);	/* SW005 */

/* ---------- builtin.c: the built-in tools ---------- */

extern Tool *BuiltInTool(const char *name); /* NULL: not built in */
extern const char *BuiltInToolName(int index);	/* NULL: no more */

/* ---------- resource.c: read the resources of a step ---------- */

#define OWN_SCHEME	"stepwise://"

typedef struct PlanKey
{
	const char *tenant;
	pg_uuid_t	plan_id;
	pg_uuid_t	root_id;
} PlanKey;

extern Jsonb *ResourcesRead(const PlanKey *plan, const Jsonb *uris, const char **uri, ToolFault **fault);	/* no call is open */

#endif							/* STEPWISE_TOOL_H */
